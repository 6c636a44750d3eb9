"""Muscle fatigue: strength decreases under load and recovers at rest (three-compartment model, Xia and Frey Law 2008).

The model is applied to each direction of a joint. With the load L as a fraction of the initial strength, the remaining
fraction c of that strength, and the rates F of fatigue and R of recovery (1/s),

    dc/dt = R (1 - c) - F L      if L <= c (the joint sustains the load)
    dc/dt = R (1 - c) - F c      if L > c (the remaining strength is insufficient)

If L = 0, recovery is r times as fast (Looft et al. 2018). This is the three-compartment model with instantaneous
recruitment. For a constant load, the solutions are exponentials, which are used here, so steps may have any length. A
constant load can be sustained for -ln(1 - R (1 - L) / (F L)) / R seconds, and indefinitely if L <= R / (F + R).

The rates are taken from Frey-Law, Looft and Heitsman (2012), table 1, as quoted in the MyoSuite documentation, with r =
15. They were fitted to isometric loads. There are no rates for the hips, for which the general rates are used. The
loads are net joint torques from inverse dynamics, in which co-contraction cancels, so real people tire sooner.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, number, positive
from torsor.base.errors import ModelError

# F and R (1/s) by substrings of coordinate names; trunk rates are used for the spine, and grip rates for the wrists.
RATES: Mapping[str, tuple[float, float]] = {
    "ankle": (0.00589, 0.00058), "knee": (0.01500, 0.00149), "spine": (0.00755, 0.00075),
    "shoulder": (0.01820, 0.00168), "elbow": (0.00912, 0.00094), "wrist": (0.00980, 0.00064),
}  # fmt: skip


@dataclass(frozen=True)
class Fatigue:
    """Fatigue model of a joint direction: rates ``tiring`` F and ``recovery`` R (1/s), and the factor ``rest`` r.

    Example:
        >>> ankle = Fatigue.of("right_ankle_flexion")
        >>> round(ankle.endurance(0.5)), ankle.endurance(0.08)
        (179, inf)
        >>> left = ankle.after([0.5, 0.5, 0.0], 60.0)
        >>> left.round(3).tolist(), round(ankle.rested(600.0, left[-1]), 3)
        ([0.826, 0.659, 0.797], 0.999)
    """

    tiring: float = 0.00970
    recovery: float = 0.00091
    rest: float = 15.0

    def __post_init__(self) -> None:
        for name in ("tiring", "recovery", "rest"):
            positive(getattr(self, name), "fatigue", name)

    @classmethod
    def of(cls, name: str) -> "Fatigue":
        """Return the model of a coordinate, with the rates of its joint or, if there are none, general rates."""
        return next((cls(*rates) for part, rates in RATES.items() if part in name), cls())

    def after(self, load: ArrayLike, dt: float, capacity: float = 1.0) -> Array:
        """Return the remaining fraction of strength (K,) after each of K intervals of ``dt`` (s).

        ``load`` (K,), as a fraction of the initial strength, is constant in each interval. ``capacity`` is the initial
        fraction of strength.
        """
        loads, dt = _loads(load), positive(dt, "fatigue", "dt")
        rates = np.where(loads > 0, self.recovery, self.rest * self.recovery)
        decays, limits = np.exp(-rates * dt).tolist(), (1 - self.tiring * loads / rates).tolist()
        remaining, c = np.empty(len(loads)), number(capacity, "fatigue", "capacity", above=0.0, most=1.0)
        for k, (fraction, decay, limit) in enumerate(zip(loads.tolist(), decays, limits, strict=True)):
            after = limit + (c - limit) * decay
            c = after if min(c, after) >= fraction else self._after_overload(c, fraction, dt)
            remaining[k] = c
        return remaining

    def _after_overload(self, c: float, load: float, dt: float) -> float:
        """Return the capacity after an interval during part of which the load exceeds it."""
        both, held = self.tiring + self.recovery, 1 - self.tiring * load / self.recovery
        failed = self.recovery / both  # limit of c while the load exceeds it
        if c >= load:
            before = math.log((c - held) / (load - held)) / self.recovery
            return failed + (load - failed) * math.exp(-both * (dt - before))
        after = failed + (c - failed) * math.exp(-both * dt)
        if after <= load:
            return after
        before = math.log((c - failed) / (load - failed)) / both
        return held + (load - held) * math.exp(-self.recovery * (dt - before))

    def rested(self, seconds: float, capacity: float) -> float:
        """Return the fraction of strength after a rest of ``seconds`` (s) that starts at the fraction ``capacity``."""
        seconds = number(seconds, "fatigue", "rest", least=0.0, finite=False)
        capacity = number(capacity, "fatigue", "capacity", above=0.0, most=1.0)
        return 1 - (1 - capacity) * math.exp(-self.rest * self.recovery * seconds)

    def endurance(self, load: float) -> float:
        """Return the time (s) for which a rested joint sustains a constant load, as a fraction of its strength."""
        (fraction,) = _loads([load]).tolist()
        tires, recovers = self.tiring * fraction, self.recovery * (1 - fraction)
        return math.inf if tires <= recovers else max(0.0, -math.log1p(-recovers / tires) / self.recovery)


def _loads(load: ArrayLike) -> Array:
    loads = finite_vector(load)
    if loads is None or np.ndim(load) != 1 or (loads < 0).any():
        raise ModelError(argument="load", value=load, where="fatigue", allowed="(K,) numbers, 0 or more")
    return loads


class JointLoads(NamedTuple):
    """Joint torques (K,) as fractions of joint strength, by coordinate, in K intervals of ``seconds``.

    Extension is negative and flexion positive, because different muscles produce them. Strengths are those of a rested
    body.
    """

    seconds: float
    fractions: dict[str, Array]
