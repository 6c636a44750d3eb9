"""How strength falls with work and comes back in rest: the law of three compartments, of Xia and Frey Law (2008).

Of the muscles of a direction of a joint, a share is tired. With L the load, in parts of the strength that was there at
first, c what is left of that, and F and R the rates of tiring and of recovery (1/s),

    dc/dt = R (1 - c) - F L      while L <= c: the load is held
    dc/dt = R (1 - c) - F c      while L > c: all that is left works, and it is too little

and where L = 0 recovery is r times as fast (Looft et al. 2018). This is their law with muscles that are recruited at
once; solutions for a load that does not change are exponentials, which are used here: steps may be of any length. Held
without pause, a load is endured for -ln(1 - R (1 - L) / (F L)) / R seconds, for ever if L <= R / (F + R).

Rates are those of Frey-Law, Looft and Heitsman (2012), table 1, as the documents of MyoSuite quote them, with r = 15;
they were fitted to loads that people hold without moving. Hips have none of their own, and take the general ones. That
joints tire by torques of inverse dynamics, in which muscles that work against each other cancel, is a choice here: real
bodies tire sooner.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.body.strength import JOINTS, Strengths, joint_strength
from torsor.human.contact.schedule import Walk
from torsor.human.terms.forces import Torques
from torsor.motion import MotionResult

__all__ = ["RATES", "Fatigue", "JointLoads", "fatigued", "joint_loads"]

Array = NDArray[np.float64]

# F and R (1/s) by parts of names of coordinates: those of the trunk are for the spine, those of grip for wrists.
RATES: Mapping[str, tuple[float, float]] = {
    "ankle": (0.00589, 0.00058),
    "knee": (0.01500, 0.00149),
    "spine": (0.00755, 0.00075),
    "shoulder": (0.01820, 0.00168),
    "elbow": (0.00912, 0.00094),
    "wrist": (0.00980, 0.00064),
}


@dataclass(frozen=True)
class Fatigue:
    """The law for one direction of a joint: rates of ``tiring`` F and of ``recovery`` R (1/s), and r, in ``rest``.

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
        """Return that of a coordinate by its name: with the rates of its joint, or the general ones."""
        return next((cls(*rates) for part, rates in RATES.items() if part in name), cls())

    def after(self, load: ArrayLike, dt: float, capacity: float = 1.0) -> Array:
        """Return what is left of strength (K,) after each of K intervals of ``dt`` (s), from ``capacity`` on.

        ``load`` (K,), in parts of the strength at first, is the same in all of an interval.
        """
        loads, dt = _loads(load), positive(dt, "fatigue", "dt")
        rates = np.where(loads > 0, self.recovery, self.rest * self.recovery)
        keeps, ends = np.exp(-rates * dt).tolist(), (1 - self.tiring * loads / rates).tolist()
        found, left = np.empty(len(loads)), _share(capacity)
        for k, (each, keep, end) in enumerate(zip(loads.tolist(), keeps, ends, strict=True)):
            after = end + (left - end) * keep
            left = after if min(left, after) >= each else self._short(left, each, dt)
            found[k] = left
        return found

    def _short(self, left: float, load: float, dt: float) -> float:
        """Return what is left after an interval in which the load is more than that, at some time."""
        both, holds = self.tiring + self.recovery, 1 - self.tiring * load / self.recovery
        gives = self.recovery / both
        if left >= load:
            before = math.log((left - holds) / (load - holds)) / self.recovery
            return gives + (load - gives) * math.exp(-both * (dt - before))
        after = gives + (left - gives) * math.exp(-both * dt)
        if after <= load:
            return after
        before = math.log((left - gives) / (load - gives)) / both
        return holds + (load - holds) * math.exp(-self.recovery * (dt - before))

    def rested(self, seconds: float, capacity: float) -> float:
        """Return what there is of strength after so long a rest (s), from ``capacity`` on."""
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
            raise ModelError(describe(f"rest is {seconds!r}", where="fatigue", allowed="seconds, 0 or more"))
        return 1 - (1 - _share(capacity)) * math.exp(-self.rest * self.recovery * seconds)

    def endurance(self, load: float) -> float:
        """Return how long (s) a load is held without pause by who is not tired."""
        (share,) = _loads([load]).tolist()
        tires, recovers = self.tiring * share, self.recovery * (1 - share)
        return math.inf if tires <= recovers else max(0.0, -math.log1p(-recovers / tires) / self.recovery)


def _loads(load: ArrayLike) -> Array:
    try:
        found = np.asarray(load, dtype=float)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0).any():
        raise ModelError(describe(f"load is {load!r}", where="fatigue", allowed="(K,) numbers, 0 or more"))
    return found


def _share(capacity: Any) -> float:
    if isinstance(capacity, bool) or not isinstance(capacity, (int, float)) or not 0 < capacity <= 1:
        raise ModelError(describe(f"capacity is {capacity!r}", where="fatigue", allowed="a number above 0, up to 1"))
    return float(capacity)


class JointLoads(NamedTuple):
    """Torques of joints in parts of their strengths, by coordinates: (K,) each, in K intervals of ``seconds``.

    Below 0 a joint extends, above it flexes: other muscles work. Strengths are those of who is not tired.
    """

    seconds: float
    shares: dict[str, Array]


def joint_loads(result: MotionResult) -> JointLoads:
    """Return loads over a stride of a walk that was found, with the ground's wrenches: means of both ends of intervals.

    With one step that is repeated mirrored, each side begins with the strike of its own heel: both have the same loads.
    Where the walk has strength curves, strengths of hips, knees and ankles are those at their angles and speeds.
    """
    batch, torques = next(
        (
            (batch, rows)
            for batch in result.program.batches
            for rows in batch.kernels.constraints
            if isinstance(rows, Torques)
        ),
        (None, None),
    )
    if batch is None or torques is None:
        found = f"the result of {result.problem.name!r}"
        raise ModelError(describe(found, where="joint loads", allowed="one of torsor.human.walking()"))
    terms = zip(batch.kernels.constraints, batch.kernels.rows, strict=True)
    labels = [(rows, label) for rows, bound in terms for label in bound.labels]
    values = batch.value(result.x)[0].reshape(len(batch.s), -1)
    curves = next((rows.curves for rows in batch.kernels.constraints if isinstance(rows, Strengths)), None)
    moments, body = result.at(batch.s * result.T), torques.body
    shares = {}
    for column, (rows, name) in zip(values.T, labels, strict=True):
        if rows is torques:
            shares[name] = column * torques.strength.get(name, 1.0)
            if curves is not None and name.endswith(JOINTS):
                k = body.coordinate_names.index(name)
                least, most = joint_strength(body, name, moments.q[:, k], moments.v[:, k], curves)
                shares[name] = shares[name] * body.effort_limit[k] / np.where(shares[name] < 0, -least, most)
    even = np.linspace(0.0, 1.0, len(batch.s))  # nodes need not be
    ends = {name: np.interp(even, batch.s, each) for name, each in shares.items()}
    middles = {name: (each[1:] + each[:-1]) / 2 for name, each in ends.items()}
    seconds = result.T / (len(batch.s) - 1)
    if isinstance(torques.support, Walk) and torques.support.steps == 1:
        middles = {name: np.concatenate([sign * middles[each] for each, sign in _stride(name)]) for name in middles}
    return JointLoads(seconds, middles)


def _stride(name: str) -> list[tuple[str, float]]:
    """Return what a coordinate does in a step and in its mirror image: which coordinate does it, and its sign."""
    side, _, joint = name.partition("_")
    if side in ("right", "left"):
        return [(f"right_{joint}", 1.0), (f"left_{joint}", 1.0)]
    return [(name, 1.0), (name, -1.0 if name.endswith(("lateral", "axial")) else 1.0)]


def fatigued(
    loads: JointLoads | MotionResult, repetitions: int, rest: float = 0.0, laws: Mapping[str, Fatigue] | None = None
) -> list[dict[str, float]]:
    """Return what is left of strengths, {coordinate: factor}, after each of so many repetitions, with a ``rest`` (s).

    Factors are for ``walking(strength=...)``; each is that of the direction which is more tired. ``laws`` has those of
    coordinates that are not to have ``Fatigue.of`` their names.

    Example:
        >>> lifting = JointLoads(1.0, {"right_knee_flexion": np.array([-0.6, -0.6, 0.2])})
        >>> factors = fatigued(lifting, 20, rest=2.0)
        >>> round(factors[0]["right_knee_flexion"], 3), round(factors[-1]["right_knee_flexion"], 3)
        (0.983, 0.813)
    """
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
        raise ModelError(describe(f"repetitions is {repetitions!r}", where="fatigue", allowed="an integer, 1 or more"))
    loads = joint_loads(loads) if isinstance(loads, MotionResult) else loads
    if not isinstance(loads, JointLoads):
        raise ModelError(describe(f"loads is {loads!r}", where="fatigue", allowed="a result of a walk, or JointLoads"))
    for name, law in (laws or {}).items():
        if name not in loads.shares or not isinstance(law, Fatigue):
            allowed = f"a Fatigue of one of {', '.join(loads.shares)}"
            raise ModelError(describe(f"laws: {name!r} is {law!r}", where="fatigue", allowed=allowed))
    found = [dict[str, float]() for _ in range(repetitions)]
    for name, shares in loads.shares.items():
        law = (laws or {}).get(name, Fatigue.of(name))
        for sign in (-1.0, 1.0):
            own, left = np.maximum(sign * shares, 0.0), 1.0
            for each in found:
                left = law.rested(rest, float(law.after(own, loads.seconds, left)[-1]))
                each[name] = min(left, each.get(name, 1.0))
    return found
