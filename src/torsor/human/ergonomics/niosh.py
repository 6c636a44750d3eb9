"""The revised NIOSH lifting equation (Waters, Putz-Anderson, Garg and Fine 1993), in SI units.

    RWL = 23 kg  HM VM DM AM FM CM      LI = load / RWL

The recommended weight limit RWL is a load that nearly all healthy workers can lift for up to 8 hours a day. The lifting
index LI is the load divided by RWL. If it is above 1, the risk of low back pain is increased; if it is above 3, many
workers are at risk. The multipliers depend on the hand position (H, V), the vertical travel D, the asymmetry angle A,
the frequency F and duration of the lifts, and the coupling C between hands and load.

The equation covers two-handed lifting while standing in one place, under favourable conditions. It does not cover
one-handed lifting, lifting while sitting or kneeling, unstable loads, work of more than 8 hours, pushing, pulling or
carrying.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from torsor.base.checks import flag, instance_of, number, one_of
from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.human.body.work_shift import DURATIONS

LOAD_CONSTANT = 23.0  # load constant (kg)
# Range of the horizontal distance of the hands (m); smaller values count as the minimum.
MIN_HORIZONTAL, MAX_HORIZONTAL = 0.25, 0.63
MAX_HAND_HEIGHT, BEST_HAND_HEIGHT = 1.75, 0.75  # largest and optimal height of the hands (m)
MIN_TRAVEL, MAX_TRAVEL = 0.25, 1.75  # range of vertical travel (m); smaller values count as the minimum
MAX_ASYMMETRY = 135.0  # largest asymmetry angle (degrees)
COUPLINGS = {"good": (1.0, 1.0), "fair": (0.95, 1.0), "poor": (0.90, 0.90)}  # hands below 0.75 m, and from 0.75 m up

# Frequency multipliers by lifts per minute, for short, moderate and long work, with hands below and above 0.75 m.
_FREQUENCIES: dict[float, list[list[float]]] = {
    float(rate): row for rate, row in data_of(__name__)["frequencies"].items()
}
_MAX_FREQUENCY = max(_FREQUENCIES)


class Multipliers(NamedTuple):
    """The multipliers at one end of a lift: horizontal, vertical, distance, asymmetric, frequency and coupling."""

    horizontal: float
    vertical: float
    distance: float
    asymmetric: float
    frequency: float
    coupling: float


@dataclass(frozen=True)
class LiftEnd:
    """Hand position at one end of a lift: ``horizontal`` and ``vertical`` distances (m), and ``asymmetry`` (degrees).

    ``horizontal`` is the horizontal distance between the midpoints of the hands and of the ankles, ``vertical`` is the
    height of the hands above the floor, and ``asymmetry`` is the angle of the load from the forward direction.
    """

    horizontal: float
    vertical: float
    asymmetry: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("horizontal", MAX_HORIZONTAL), ("vertical", MAX_HAND_HEIGHT), ("asymmetry", MAX_ASYMMETRY)):
            value = number(getattr(self, name), "lifting equation", name)
            if not 0.0 <= value <= most + 1e-9:
                unit = "degrees" if name == "asymmetry" else "m"
                what = f"is {value:.4g} {unit}"
                fix = "move the load closer: outside this range the recommended weight limit is 0"
                allowed = f"from 0 to {most:g} {unit}"
                raise ModelError(what, argument=name, where="lifting equation", allowed=allowed, fix=fix)


@dataclass(frozen=True)
class LiftingIndex:
    """Recommended weight limits (kg) and lifting indices at origin and destination, with multipliers.

    ``destination`` and its values are None unless the load is controlled there. ``limit`` and ``index`` are those of
    the worse end. The index is infinite if the equation does not permit this frequency.
    """

    load: float
    origin: Multipliers
    destination: Multipliers | None

    @property
    def origin_limit(self) -> float:
        """The recommended weight limit at the origin (kg)."""
        return LOAD_CONSTANT * math.prod(self.origin)

    @property
    def destination_limit(self) -> float | None:
        """The recommended weight limit at the destination (kg)."""
        return None if self.destination is None else LOAD_CONSTANT * math.prod(self.destination)

    @property
    def limit(self) -> float:
        """The smaller of the two limits (kg)."""
        return min(
            limit_of_end for limit_of_end in (self.origin_limit, self.destination_limit) if limit_of_end is not None
        )

    @property
    def index(self) -> float:
        """The load divided by the limit."""
        return self.load / self.limit if self.limit else math.inf


def lifting_index(
    load: float,
    origin: LiftEnd,
    destination: LiftEnd,
    *,
    frequency: float = 0.2,
    duration: str = "short",
    coupling: str = "fair",
    controlled: bool = True,
) -> LiftingIndex:
    """Return the recommended weight limits and lifting indices for a ``load`` (kg).

    ``frequency`` is in lifts per minute. ``duration`` is "short" (up to 1 hour, followed by rest), "moderate" (2 hours)
    or "long" (8 hours). ``coupling`` between hands and load is "good" (handles), "fair" or "poor". If ``controlled`` is
    True, the load is put down carefully, and the destination is assessed too.

    Example:
        >>> found = lifting_index(15.0, LiftEnd(0.40, 0.30), LiftEnd(0.35, 1.0), frequency=1.0, duration="long")
        >>> round(found.origin_limit, 2), round(found.destination_limit, 2), round(found.index, 2)
        (7.83, 10.08, 1.91)
        >>> lifting_index(10.0, LiftEnd(0.7, 0.3), LiftEnd(0.4, 1.0))
        Traceback (most recent call last):
        torsor.ModelError: lifting equation: horizontal is 0.7 m; allowed: from 0 to 0.63 m; fix: move the load \
closer: outside this range the recommended weight limit is 0
    """
    load = number(load, "lifting equation", "load", above=0.0)
    check_work(frequency, duration, coupling)
    for end, what in ((origin, "origin"), (destination, "destination")):
        instance_of(end, LiftEnd, "lifting equation", what)
    flag(controlled, "lifting equation", "controlled")
    travel = abs(destination.vertical - origin.vertical)
    ends = [
        Multipliers(
            MIN_HORIZONTAL / max(end.horizontal, MIN_HORIZONTAL),
            1 - 0.3 * abs(end.vertical - BEST_HAND_HEIGHT),  # 0.003 per cm
            0.82 + 0.045 / min(max(travel, MIN_TRAVEL), MAX_TRAVEL),
            1 - 0.0032 * end.asymmetry,
            frequency_multiplier(frequency, duration, end.vertical),
            COUPLINGS[coupling][end.vertical >= BEST_HAND_HEIGHT],
        )
        for end in (origin, destination)
    ]
    return LiftingIndex(load, ends[0], ends[1] if controlled else None)


def check_work(frequency: float, duration: str, coupling: str = "fair") -> None:
    """Raise ModelError unless the frequency (lifts per minute) is positive, and duration and coupling are known."""
    number(frequency, "lifting equation", "frequency", above=0.0)
    one_of(duration, tuple(DURATIONS), "lifting equation", "duration")
    one_of(coupling, tuple(COUPLINGS), "lifting equation", "coupling")


def frequency_multiplier(frequency: float, duration: str, vertical: float) -> float:
    """Return the frequency multiplier for hands at the height ``vertical`` (m), by linear interpolation of the table.

    Example:
        >>> frequency_multiplier(9.0, "long", 0.5), frequency_multiplier(9.0, "long", 0.8)
        (0.0, 0.15)
        >>> round(frequency_multiplier(2.5, "short", 0.5), 3)
        0.895
    """
    check_work(frequency, duration)
    height = number(vertical, "lifting equation", "vertical", least=0.0)
    work, high = tuple(DURATIONS).index(duration), height >= BEST_HAND_HEIGHT
    if frequency > _MAX_FREQUENCY:
        return 0.0
    rows = list(_FREQUENCIES)
    above = next((row for row in rows if row >= frequency), _MAX_FREQUENCY)
    below = max((row for row in rows if row <= frequency), default=rows[0])
    first, last = (_FREQUENCIES[row][work][high] for row in (below, above))
    part = 0.0 if above == below else (frequency - below) / (above - below)
    return first + part * (last - first) if last else (first if part == 0 else 0.0)
