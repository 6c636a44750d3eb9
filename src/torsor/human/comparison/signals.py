"""What a recording holds of one side of a person: angles, moments and ground forces, found by the names of columns.

Names are those of OpenSim (knee_angle_r, knee_angle_r_moment), of Torsor's body (right_knee_flexion), or of the curves
that are compared (knee_flexion, knee_extension, knee_power, vertical).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, listing, warn
from torsor.human.recordings import GroundForces, MotionTable
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.recording import runs

G = 9.81  # m/s2


class Scale(NamedTuple):
    """A factor to the unit of comparisons: degrees, N m/kg, W/kg, % of weight; ``absolute``: divide by the mass too."""

    kind: str
    factor: float
    absolute: bool = False


DEGREES, RADIANS = Scale("angle", 1.0), Scale("angle", 180 / math.pi)
# Words of heads, without blanks and in lower case.
WORDS = {
    **dict.fromkeys(("degrees", "degree", "deg", "°"), DEGREES),
    **dict.fromkeys(("radians", "rad"), RADIANS),
    **dict.fromkeys(("nm", "n*m", "n.m"), Scale("moment", 1.0, absolute=True)),
    **dict.fromkeys(("nm/kg", "n*m/kg", "n.m/kg"), Scale("moment", 1.0)),
    **dict.fromkeys(("nmm/kg", "n.mm/kg"), Scale("moment", 0.001)),
    "w": Scale("power", 1.0, absolute=True),
    "w/kg": Scale("power", 1.0),
    "n": Scale("force", 100 / G, absolute=True),
    "n/kg": Scale("force", 100 / G),
    **dict.fromkeys(("bodyweights", "bw"), Scale("force", 100.0)),
    **dict.fromkeys(("%ofweight", "%bw", "%"), Scale("force", 1.0)),
}
# Largest values of walking people in each unit, from a child of 17 kg to a man of 200 kg who hurries.
PEAKS: Mapping[str, tuple[tuple[float, float, str], ...]] = {
    "moment": ((0.3, 5.0, "nm/kg"), (8.0, 600.0, "nm")),
    "power": ((0.3, 15.0, "w/kg"), (20.0, 1500.0, "w")),
    "force": ((0.7, 2.5, "bw"), (7.0, 25.0, "n/kg"), (70.0, 200.0, "%bw"), (200.0, 5000.0, "n")),
}
UNIT_NAMES = {"moment": "N m/kg or N m", "power": "W/kg or W", "force": "body weights, N/kg, % of weight or N"}
SPAN = (15.0, 150.0)  # degrees that a knee or a hip moves through in a stride


def said(word: str, kind: str, where: str) -> Scale:
    """Return the scale of a unit in words."""
    found = WORDS.get(word.lower().replace(" ", ""))
    if found is None or found.kind != kind:
        allowed = listing([each for each, scale in WORDS.items() if scale.kind == kind])
        raise ModelError(f"{word!r} as the unit of {kind}s", value=word, where=where, allowed=allowed)
    return found


def guessed(values: Array, kind: str, where: str) -> Scale:
    """Return the scale of moments, powers or forces by their largest value: only one unit fits a person."""
    peak = float(np.nanmax(np.abs(values), initial=0.0))
    for low, high, unit in PEAKS[kind]:
        if low <= peak < high:
            return WORDS[unit]
    found = f"the largest {kind} is {peak:.4g}, which no walking person has in any unit"
    fix = "check the unit, or say it in brackets in the head of a .csv column"
    raise ModelError(found, where=where, allowed=UNIT_NAMES[kind], fix=fix)


def range_of(values: Array) -> float:
    """Return the difference of the largest and the least value, 0 if there are none but NaN."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def checked_angles(values: Array, scale: Scale | None, name: str, where: str) -> Scale:
    """Return the scale of angles; a range of knee or hip that fits the other unit than the stated one is an error."""
    span = range_of(values)
    fits = [each for each in (DEGREES, RADIANS) if SPAN[0] <= span * each.factor <= SPAN[1]]
    if scale is not None and (scale in fits or not fits):  # stiff knees stay within a few degrees
        return scale
    if scale is None and fits:
        return fits[0]
    unit = {None: "of an unknown unit", DEGREES: "degrees", RADIANS: "radians"}[scale]
    fix = "say inDegrees=yes or no in the file, and check that the person walks"
    if scale is not None:
        fix = "these are " + ("radians: say inDegrees=no" if scale == DEGREES else "degrees: say inDegrees=yes")
    allowed = f"{SPAN[0]:g} to {SPAN[1]:g} degrees"
    raise ModelError(f"{name} moves through {span:.4g} {unit}", where=where, allowed=allowed, fix=fix)


COUNT = 401  # instants of a stride, as of ``Stride``
LOADED = 0.025  # of the largest vertical force: 20 N, the usual threshold of gait events, for a person of 70 kg
SHORTEST_CONTACT = 0.1  # s; shorter ones are vibrations of a plate
STRIDE = (0.4, 2.5)  # s: from a fast run to a very slow walk
CLOSED = 0.02  # of the range of a curve: one stride ends as it began
AT_END = 0.015  # of the stride: a heel strike this near to the ends of a closed recording is at the ends

Span = tuple[float, float]


class Signal(NamedTuple):
    """A quantity over time: ``values`` (K,) at ``times`` (K,), NaN where it is missing."""

    times: Array
    values: Array

    @property
    def is_closed(self) -> bool:
        """Whether the last value is the first one, as of one whole stride; not with a gap (NaN)."""
        return bool(abs(self.values[-1] - self.values[0]) <= CLOSED * np.ptp(self.values))

    def covers(self, span: Span) -> bool:
        """Whether it is known from start to end of a span, but for half a sample."""
        return bool(self.times[0] <= span[0] + self._slack and span[1] - self._slack <= self.times[-1])

    @property
    def _slack(self) -> float:
        return 0.5 * float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0

    def over(self, span: Span) -> Array:
        """Return the values (401,) over a stride, NaN next to missing ones; a part of it is joined where it ends."""
        at, length = np.linspace(*span, COUNT), span[1] - span[0]
        if not self.covers(span):
            at = np.where(at < self.times[0], at + length, at)
            at = np.where(at > self.times[-1], at - length, at)
        known = np.isfinite(self.values)
        found = np.interp(at, self.times, np.where(known, self.values, 0.0))
        missing = np.interp(at, self.times, np.where(known, 0.0, 1.0)) > 0
        missing |= (at < self.times[0] - self._slack) | (at > self.times[-1] + self._slack)
        return np.where(missing, np.nan, found)


def check_length(times: Array, where: str) -> None:
    """Raise ModelError if times (K,) are shorter than any stride."""
    if times[-1] - times[0] < STRIDE[0]:
        found = f"too short for one stride: {times[0]:g} to {times[-1]:g} s"
        raise ModelError(found, where=where, allowed=f"{STRIDE[0]:g} s or more")


def heel_strikes(vertical: Signal, where: str) -> list[float]:
    """Return the times (s) at which a foot begins to carry load, by its vertical force in any unit."""
    t, force = vertical
    check_length(t, where)
    if not np.isfinite(force).all():
        k = int(np.argmin(np.isfinite(force)))
        raise ModelError(f"the vertical force is missing at {t[k]:g} s (row {k + 1})", where=where)
    peak = float(force.max())
    if peak <= 0:
        found = f"the vertical force is never positive (largest {peak:g})"
        raise ModelError(found, where=where, fix="the ground pushes people up: check axes and signs of the plates")
    level = LOADED * peak
    found_at = []
    for first, last in runs(np.asarray(force > level)):
        if first and t[last] - t[first] >= SHORTEST_CONTACT:
            low, high = force[first - 1], force[first]
            found_at.append(float(t[first - 1] + (t[first] - t[first - 1]) * (level - low) / (high - low)))
    return found_at


def spans_of(vertical: Signal, others: Sequence[Signal], side: str, where: str) -> list[Span]:
    """Return start and end (s) of the strides between heel strikes of a foot.

    A recording without two of them that ends as it began, in all signals, is one stride.
    """
    strikes = heel_strikes(vertical, where)
    spans = [(a, b) for a, b in pairwise(strikes) if STRIDE[0] <= b - a <= STRIDE[1]]
    if spans:
        return spans
    first, last = float(vertical.times[0]), float(vertical.times[-1])
    length = last - first
    if STRIDE[0] <= length <= STRIDE[1] and all(each.is_closed for each in (vertical, *others)):
        off = [at for at in strikes if min(at - first, last - at) > AT_END * length]
        return [(off[0], off[0] + length)] if off else [(first, last)]
    at = ", ".join(f"{each:.3g}" for each in strikes) or "none"
    found = f"too short for one stride of the {side} foot: {first:g} to {last:g} s, heel strikes at {at}"
    allowed = f"two heel strikes of a foot, {STRIDE[0]:g} to {STRIDE[1]:g} s apart"
    raise ModelError(found, where=where, allowed=allowed, fix="a longer recording, the other side, or strikes=")


def given_spans(strikes: Sequence[float], where: str) -> list[Span]:
    """Return start and end (s) of the strides between given heel strikes."""
    times = real_array(strikes, where, "strikes")
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        allowed = "two or more increasing times (s)"
        raise ModelError(f"is {times.tolist()}", argument="strikes", where=where, allowed=allowed)
    return [(float(a), float(b)) for a, b in pairwise(times)]


def of_strides(signal: Signal, spans: Sequence[Span]) -> Array:
    """Return a curve (N, 401) over the strides in which it is known; without any, joined where the recording ends."""
    rows = [each for span in spans if signal.covers(span) and np.isfinite(each := signal.over(span)).all()]
    rows = rows or [each for each in map(signal.over, spans) if np.isfinite(each).all()]
    return np.array(rows).reshape(-1, COUNT)


SHORT = {"right": "r", "left": "l"}
OTHER = {"right": "left", "left": "right"}
# Coordinates of a leg and an arm, with their names in OpenSim.
COORDINATES = {
    **{name: name for name in ("hip_flexion", "hip_adduction", "hip_rotation")},
    "knee_flexion": "knee_angle",
    "ankle_flexion": "ankle_angle",
    "ankle_inversion": "subtalar_angle",
    "shoulder_flexion": "arm_flex",
    "elbow_flexion": "elbow_flex",
}
DIRECT = {
    "moment": ("hip_extension", "knee_extension", "ankle_plantarflexion", "hip_abduction"),
    "power": ("hip_power", "knee_power", "ankle_power"),
    "force": ("vertical", "forward", "medial"),
}


@dataclass
class Signals:
    """One side of a person: ``angles`` (degrees), ``rates`` (rad/s) and ``moments`` (along them) of coordinates.

    ``curves`` are in the signs of comparisons, with their ``scales``; ``other`` is the vertical force of the other
    foot; ``span`` says that all of it is one stride; ``mass`` is in kg, where it is known.
    """

    angles: dict[str, Signal] = field(default_factory=dict)
    rates: dict[str, Signal] = field(default_factory=dict)
    moments: dict[str, Signal] = field(default_factory=dict)
    curves: dict[str, Signal] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)
    other: dict[str, Signal] = field(default_factory=dict)
    bands: dict[str, Array] = field(default_factory=dict)
    mass: float | None = None
    span: tuple[float, float] | None = None

    def with_more(self, more: "Signals", where: str) -> "Signals":
        """Return both together; a curve that both have is an error."""
        found = Signals(mass=more.mass or self.mass, span=more.span or self.span)
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(more, each.name)
            if isinstance(mine, dict):
                twice = [name for name in theirs if name in mine and each.name != "scales"]
                if twice:
                    fix = "give each recording on its own: several files in one recording complete each other"
                    raise ModelError(f"a second curve of {listing(twice)}", where=where, fix=fix)
                setattr(found, each.name, mine | theirs)
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is no curve at all."""
        return not (self.angles or self.moments or self.curves)


def places(names: Sequence[str], side: str, ending: str = "") -> dict[str, int]:
    """Return the index of the column of each coordinate of a side; ``ending`` is "_moment" for its moment."""
    letter, found = SHORT[side], dict[str, int]()
    for own, other in COORDINATES.items():
        # Without a side, a name of a moment would be one of comparisons with another sign.
        ways = [f"{other}_{letter}", f"{side}_{own}", f"{own}_{letter}", *([] if ending else [own])]
        at = _first(names, *(f"{way}{ending}" for way in ways))
        if at is not None:
            found[own] = at
    return found


def _first(names: Sequence[str], *ways: str) -> int | None:
    return next((names.index(way) for way in ways if way in names), None)


def of_table(table: MotionTable, side: str, units: Mapping[str, str] | None = None) -> Signals:
    """Return the angles, moments, powers and forces in a table; ``units`` {column: unit} are those of its head."""
    known, names, letter = units or {}, table.short_names, SHORT[side]

    def signal(at: int) -> Signal:
        return Signal(table.times, table.values[:, at])

    found, at = Signals(), places(names, side)
    found.angles = {own: signal(k) for own, k in at.items()}
    _to_degrees(found, {own: table.names[k] for own, k in at.items()}, table, known)
    found.moments = {own: signal(k) for own, k in places(names, side, "_moment").items()}
    if found.moments:
        together = np.concatenate([each.values for each in found.moments.values()])
        found.scales["moment"] = guessed(together, "moment", table.source)
    for kind, curves in DIRECT.items():
        ways = {name: _first(names, f"{name}_{letter}", f"{side}_{name}", name) for name in curves}
        hits = {name: (table.names[k], signal(k)) for name, k in ways.items() if k is not None}
        if not hits:
            continue
        stated = {said(known[name], kind, table.source) for name, _ in hits.values() if name in known}
        if len(stated) > 1:
            raise ModelError(f"{kind}s in several units", where=table.source, allowed="one unit")
        together = np.concatenate([each.values for _, each in hits.values()])
        # The largest of the curves shows the unit that no head says.
        found.scales[kind] = stated.pop() if stated else guessed(together, kind, table.source)
        found.curves |= {name: each for name, (_, each) in hits.items()}
    k = _first(names, f"vertical_{SHORT[OTHER[side]]}", f"{OTHER[side]}_vertical")
    if k is not None:
        found.other["vertical"] = signal(k)
    return found


def _to_degrees(found: Signals, spelled: Mapping[str, str], table: MotionTable, units: Mapping[str, str]) -> None:
    """Convert the angles; the ranges of knee and hip check what the file says of their unit."""
    check_length(table.times, table.source)
    stated: Scale | None = {None: None, True: DEGREES, False: RADIANS}[table.in_degrees]
    large = [each for each in ("knee_flexion", "hip_flexion") if each in found.angles]
    if large:
        widest = max(large, key=lambda each: range_of(found.angles[each].values))
        name = spelled[widest]
        unit = said(units[name], "angle", table.source) if name in units else stated
        stated = checked_angles(found.angles[widest].values, unit, name, table.source)
    for own, (times, values) in found.angles.items():
        name = spelled[own]
        scale = said(units[name], "angle", table.source) if name in units else stated
        if scale is None:
            fix = "say inDegrees=yes or no in the file, or [degrees] in the head of the column"
            raise ModelError(f"the unit of {name} is not known", where=table.source, fix=fix)
        found.angles[own] = Signal(times, scale.factor * values)


def of_forces(forces: GroundForces, side: str) -> Signals:
    """Return the ground's force on a foot: vertical, forward and medial; a person who walks backwards is turned."""
    if side not in forces.names:
        fix = "torsor.human.recordings.by_foot(forces, markers) assigns plates to feet"
        allowed = f"forces named {side}; found: {listing(forces.names)}"
        raise ModelError(f"no ground force of the {side} foot", where=forces.source, allowed=allowed, fix=fix)
    turned = forces.in_axes(HUMAN)
    medial, vertical, forward = turned.forces[:, turned.index(side)].T
    sign = 1.0 if side == "right" else -1.0  # x is to the left
    # People brake while the load of a foot grows, and push forward while it falls.
    loading = np.gradient(np.nan_to_num(vertical)) if len(forces) > 1 else np.zeros(1)
    if np.nansum(loading * forward) > 0:
        text = f"the fore-aft force of the {side} foot pushes before it brakes: the person goes backwards in these axes"
        fix = 'they are turned about the vertical; load(path, axes="back up left") says so'
        warn(text, where=forces.source, fix=fix)
        forward, sign = -forward, -sign
    own = {"vertical": vertical, "forward": forward, "medial": sign * medial}
    found = Signals(curves={name: Signal(forces.times, np.asarray(each)) for name, each in own.items()})
    found.scales["force"] = guessed(vertical, "force", forces.source)
    if OTHER[side] in forces.names:
        found.other["vertical"] = Signal(forces.times, turned.forces[:, turned.index(OTHER[side]), 1])
    return found
