"""A recorded walk as curves of comparisons: strides of one side, in the signs and units of ``Stride``.

Angles are in degrees: flexion, adduction, inward rotation and dorsiflexion positive. Moments are internal, in N m/kg,
named after their positive direction. Powers are of all axes of a joint, in W/kg; forces in % of the weight: up,
forward and medial.

Columns are found by names of OpenSim (knee_angle_r, knee_angle_r_moment), of Torsor's body (right_knee_flexion), or of
the curves that are compared (knee_flexion, knee_extension, knee_power, vertical).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import name_of, number, one_of, real_array
from torsor.base.errors import ModelError, listing, warn
from torsor.human.gait.references import REFERENCES, Reference
from torsor.human.recordings import GroundForces, MotionTable, load
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.recording import Recording, runs
from torsor.human.recordings.text_files import csv_table, read_csv

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
        """Whether the last value equals the first one, as in one whole stride; with gaps (NaN) it does not."""
        return bool(abs(self.values[-1] - self.values[0]) <= CLOSED * np.ptp(self.values))

    def covers(self, span: Span) -> bool:
        """Whether it is known from start to end of a span, but for half a sample."""
        return bool(self.times[0] <= span[0] + self._slack and span[1] - self._slack <= self.times[-1])

    @property
    def _slack(self) -> float:
        return 0.5 * float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0

    def over(self, span: Span) -> Array:
        """Return the values (401,) at equal steps of a stride, with NaN next to missing values.

        If the signal begins or ends within the stride, the rest is taken from the next or from the last stride.
        """
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

    A recording without two heel strikes is one stride if all signals end with the values with which they began.
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
    """Return a curve (N, 401) over those strides in which it is known throughout.

    If there are none, a recording that is as long as a stride counts as one, joined where it ends.
    """
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


def of_measured(measured: Any, side: str) -> Signals | None:
    """Return the signals of a ``MeasuredDynamics`` or a ``MeasuredMotion``; None if it is neither."""
    from torsor.human.measured import MeasuredDynamics, MeasuredMotion

    if not isinstance(measured, MeasuredMotion | MeasuredDynamics):
        return None
    names = measured.body.coordinate_names if isinstance(measured, MeasuredMotion) else measured.names

    def signals(values: Array) -> dict[str, Signal]:
        return {name: Signal(measured.times, values[:, k]) for name, k in places(names, side).items()}

    found = Signals(angles=signals(np.degrees(measured.q)))
    if isinstance(measured, MeasuredDynamics):
        found.mass = measured.weight / G
        found.rates, found.moments = signals(measured.v), signals(measured.forces)
        found.scales["moment"] = Scale("moment", 1.0, absolute=True)
        if measured.ground is not None:
            found = found.with_more(of_forces(measured.ground, side), measured.ground.source)
    return found


# Powers of joints from recorded angles and moments: the sum over the axes of a joint of moment times angular rate.

AXES = {
    "hip_power": ("hip_flexion", "hip_adduction", "hip_rotation"),
    "knee_power": ("knee_flexion",),
    "ankle_power": ("ankle_flexion", "ankle_inversion"),
}
CUTOFF, ORDER = 6.0, 3  # Hz, and the order of one pass, as in inverse dynamics of walking (Winter 2009)
FEWEST = 8  # samples that a rate is taken from


def powers_of(signals: Signals, spans: Sequence[Span]) -> dict[str, tuple[Signal, Scale]]:
    """Return the powers of hip, knee and ankle, summed over the axes whose angle and moment are both known.

    A joint whose first axis is not known has no power.
    """
    found: dict[str, tuple[Signal, Scale]] = {}
    scale = signals.scales.get("moment")
    for name, axes in AXES.items():
        if scale is None or axes[0] not in signals.moments or axes[0] not in signals.angles:
            continue
        times = signals.moments[axes[0]].times
        total = np.zeros(len(times))
        for axis in axes:
            if axis in signals.moments and axis in signals.angles:
                rate = signals.rates.get(axis) or _rate(signals.angles[axis], spans)
                moment = np.interp(times, *signals.moments[axis])
                total += moment * np.interp(times, *rate, left=np.nan, right=np.nan)
        found[name] = Signal(times, total), Scale("power", scale.factor, scale.absolute)
    return found


def _rate(signal: Signal, spans: Sequence[Span]) -> Signal:
    """Return the rate (rad/s) of an angle, with NaN where the angle is missing.

    One whole stride that ends as it began is periodic; other recordings pass a low-pass filter of 6 Hz.
    """
    from torsor.identification.differentiation import differentiate  # not needed by most who import the human

    times, angle = signal
    known = np.isfinite(angle)
    if known.sum() < FEWEST:
        return Signal(times, np.full(len(times), np.nan))
    t = np.linspace(times[0], times[-1], len(times))
    x = np.radians(np.interp(t, times[known], angle[known]))
    nyquist = 0.5 * (len(t) - 1) / float(t[-1] - t[0])
    if len(spans) == 1 and np.isclose(np.diff(spans[0])[0], t[-1] - t[0]) and signal.is_closed:
        found = differentiate(t[:-1], x[:-1, None], nyquist, periodic=True, order=12)[1][:, 0]
        rate = np.append(found, found[0])
    else:
        rate = differentiate(t, x[:, None], min(CUTOFF, nyquist), order=ORDER, ends="straight")[1][:, 0]
    return Signal(times, np.where(known, np.interp(times, t, rate), np.nan))


SUFFIXES = (".mot", ".sto", ".csv")
_HEAD = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
# Columns of a table over the stride, in place of time.
SHARES = ("share of the stride", "share", "percent", "%", "% of stride", "gait cycle", "gait_cycle", "% gait cycle")
# Columns of ``Stride.save("walk.csv")`` for the own foot, by the names of comparisons.
_OWN = {
    f"force own foot {way}": name for way, name in (("medial", "medial"), ("up", "vertical"), ("forward", "forward"))
}
_KINDS = re.compile(r"(angle|moment|power) (\w+)")


def of_file(path: Path, side: str) -> Signals:
    """Return what a file holds of one side."""
    suffix = path.suffix.lower()
    if suffix in (".trc", ".c3d"):
        fix = "torsor.human.measured finds angles and moments from markers: compare with what inverse_dynamics returns"
        raise ModelError("markers, not curves", where=path.name, fix=fix)
    if suffix not in SUFFIXES:
        allowed = f"a recording: {', '.join(SUFFIXES)}, or a .npz file on its own"
        found = "one of several files" if suffix == ".npz" else f"unknown kind of file {path.suffix!r}"
        raise ModelError(found, where=path.name, allowed=allowed)
    if suffix == ".csv" and path.is_file():
        return _of_csv(path, side)
    return of_recording(load(path, check=False), side)


def of_recording(recording: Recording, side: str, units: dict[str, str] | None = None) -> Signals:
    """Return what a loaded recording holds of one side."""
    found = Signals()
    if recording.has("table"):
        found = of_table(recording.table, side, units)
    if recording.has("forces"):
        found = found.with_more(of_forces(recording.forces, side), recording.source)
    if found.is_empty:
        names = recording.table.names if recording.has("table") else ()
        text = f"no curve of the {side} side is known by its name" + (f": {', '.join(names[:6])}, ..." if names else "")
        allowed = f"names of OpenSim, such as hip_flexion_r, or {', '.join([*list(COORDINATES)[:2], *DIRECT['force']])}"
        raise ModelError(text, where=recording.source, allowed=allowed)
    return found


def _of_csv(path: Path, side: str) -> Signals:
    """Return what a .csv file holds; a unit in brackets at the end of a head is that of the column."""
    names, units = _heads(path)
    bare = {head: name for head, name in names.items() if name.lower() == "time"}
    shares = [head for head, name in names.items() if name.lower() in SHARES]
    if not bare and not shares:
        allowed = f"a column named time, or of the share of the stride: {', '.join(SHARES[:3])}"
        raise ModelError("no column is named time", where=path.name, allowed=allowed)
    # Columns that end with x, y and z would be markers.
    wanted = {head: name for head, name in names.items() if not re.fullmatch(r"(pressure|reaction) .*", name)}
    wanted |= dict.fromkeys(bare or shares[:1], "time")
    if bare:
        wanted = {head: name for head, name in wanted.items() if head not in shares}
    recording = read_csv(path, wanted)
    table = recording.table
    ends = (float(table.times[0]), float(table.times[-1]))
    own = MotionTable(tuple(_own(each) for each in table.names), table.times, table.values, None, "", path.name)
    known = {_own(names[head]): unit for head, unit in units.items()}
    found = of_recording(Recording(path.name, None, recording.found_forces, own), side, known)
    for name in own.names:  # columns that end with _sd are the bands of curves over a stride
        curve = name.removesuffix("_sd")
        if curve != name and (curve in found.curves or curve in found.angles):
            found.bands[curve] = own.column(name)
    if shares:
        found.span = ends
        if not bare:
            found.rates = {name: Signal(s.times, np.full(len(s.times), np.nan)) for name, s in found.angles.items()}
    return found


def _heads(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name of each head without its unit, and the units."""
    names, units = dict[str, str](), dict[str, str]()
    for head in csv_table(path).heads:
        matched = _HEAD.fullmatch(head)
        names[head] = matched[1] if matched and matched[1] else head
        if matched and matched[1] and matched[2] not in ("s", "1", ""):
            units[head] = matched[2]
    return names, units


def _own(name: str) -> str:
    """Return the name in comparisons of a column that ``Stride.save`` wrote; other names stay."""
    if name in _OWN:
        return _OWN[name]
    matched = _KINDS.fullmatch(name)
    if not matched:
        return name
    return f"{matched[2]}_power" if matched[1] == "power" else matched[2]


# Moments in the directions of comparisons, with the coordinates that they are against.
MOMENTS = {
    "hip_extension": "hip_flexion",
    "knee_extension": "knee_flexion",
    "ankle_plantarflexion": "ankle_flexion",
    "hip_abduction": "hip_adduction",
}
WEIGHT = 0.1  # of the mass: what forces and a given mass may differ by
FLIGHT = 0.5  # of the mean: both feet together carry more at any time of a walk, or one of them is on no plate


@dataclass(frozen=True, eq=False)
class RecordedWalk:
    """A recorded walk: ``curves`` over a stride, by name, each the mean of its strides with their standard deviation.

    ``label`` is what legends say, ``strides`` their start and end (s), ``mass`` that of the person (kg), or None where
    nothing needs it, ``side`` the foot whose heel strikes they begin with. ``notes`` say how it was read.
    """

    label: str
    curves: dict[str, Reference]
    strides: tuple[Span, ...]
    side: str
    mass: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.label}: {', '.join(self.curves)}", *self.notes])


def recorded_walk(
    *sources: Any,
    mass: float | None = None,
    side: str = "right",
    strikes: Sequence[float] | None = None,
    label: str | None = None,
) -> RecordedWalk:
    """Return a recorded walk for comparisons, from one or more files or results of the same recording.

    ``sources`` are paths (.mot, .sto, .csv), what ``torsor.human.recordings.load`` returns, or what
    ``torsor.human.measured.inverse_kinematics`` and ``inverse_dynamics`` return: angles, moments and ground forces of
    one recording may be in several of them. Strides of a ``side`` begin at heel strikes, which the vertical force shows
    (more than 2.5 % of its peak), or at the times ``strikes`` (s). Moments in N m are divided by the ``mass`` (kg), by
    default the one that the ground carries over the strides. ``label`` is for legends: author and year.

    Example:
        >>> t = np.linspace(0.0, 1.0, 101)
        >>> names = ["knee_angle_r", "vertical"]
        >>> values = np.stack([20 - 20 * np.cos(2 * np.pi * t), np.maximum(np.sin(2 * np.pi * t), 0)], axis=1)
        >>> table = MotionTable(names, t, values, in_degrees=True)
        >>> walk = recorded_walk(table, label="Someone 2020")
        >>> walk.curves["knee_flexion"].mean.max().round(6), walk.strides
        (np.float64(40.0), ((0.0, 1.0),))
    """
    one_of(side, tuple(SHORT), "recorded walk", "side")
    if not sources:
        raise ModelError("no file or result is given", where="recorded walk")
    title = name_of(label, "label", "recorded walk") if label is not None else _title(sources[0])
    signals = Signals()
    for source in sources:
        signals = signals.with_more(_signals(source, side), _title(source))
    _turn_knee(signals)
    spans = _spans(signals, side, strikes, title)
    lengths = [last - first for first, last in spans]
    low, high = min(lengths), max(lengths)
    words = f"{low:.3g}" if high - low < 5e-3 else f"{low:.3g} to {high:.3g}"
    notes = [f"{title}: {side} side, {len(spans)} stride{'s' * (len(spans) > 1)} of {words} s"]
    person = _mass(signals, mass, spans, title)
    if person is not None:
        how = "" if mass is not None or signals.mass else ", by the ground forces"
        notes.append(f"{title}: {person:.1f} kg{how}")
    _check_feet(signals, spans, side, title)
    curves, more = _curves(signals, spans, person, title)
    return RecordedWalk(title, curves, tuple(spans), side, person, tuple(notes + more))


def _title(source: Any) -> str:
    if isinstance(source, str | Path):
        return Path(source).name
    return str(getattr(source, "source", "")) or "measured"


def _signals(source: Any, side: str) -> Signals:
    if isinstance(source, str | Path):
        return of_file(Path(source), side)
    if isinstance(source, Recording):
        return of_recording(source, side)
    if isinstance(source, MotionTable):
        return of_table(source, side)
    if isinstance(source, GroundForces):
        return of_forces(source, side)
    found = of_measured(source, side)
    if found is None:
        allowed = "a path, a recording, or a result of torsor.human.measured"
        raise ModelError(f"found {type(source).__name__}", where="recorded walk", allowed=allowed)
    return found


def _turn_knee(signals: Signals) -> None:
    """Turn a knee whose flexion is negative, as in older models of OpenSim, with its moment and its rate."""
    knee = signals.angles.get("knee_flexion")
    if knee is None:
        if "knee_flexion" in signals.moments:
            text = "a moment of the knee without its angle: knee_angle is taken as flexion"
            warn(text, where="recorded walk", fix="add the file of angles, whose sign shows the direction")
        return
    known = knee.values[np.isfinite(knee.values)]
    if len(known) and known.max() < -known.min():
        for found in (signals.angles, signals.rates, signals.moments):
            if "knee_flexion" in found:
                times, values = found["knee_flexion"]
                found["knee_flexion"] = Signal(times, -values)


def _spans(signals: Signals, side: str, strikes: Sequence[float] | None, where: str) -> list[Span]:
    if strikes is not None:
        return given_spans(strikes, where)
    if signals.span is not None:
        return [signals.span]
    if "vertical" not in signals.curves:
        fix = (
            'give the files of one recording together, ("angles.mot", "forces.mot"), --compare angles.mot forces.mot, '
            "or heel strikes: recorded_walk(..., strikes=[0.6, 1.7])"
        )
        raise ModelError("there are no ground forces to find strides with", where=where, fix=fix)
    return spans_of(signals.curves["vertical"], list(signals.angles.values()), side, where)


def _mass(signals: Signals, given: float | None, spans: Sequence[Span], where: str) -> float | None:
    """Return the mass: as given, as of the measured person, or as the ground carries; they may not contradict."""
    carried = _carried(signals, spans)
    person = signals.mass if given is None else number(given, where, "mass (kg)", above=0.0, most=500.0)
    if person is None:
        return carried
    if carried is not None and abs(carried - person) > WEIGHT * person:
        found = f"a mass of {person:.1f} kg, but the ground carries {carried:.1f} kg over the strides"
        fix = "check the mass, and that every step is on a plate"
        raise ModelError(found, where=where, allowed=f"within {100 * WEIGHT:.0f} % of each other", fix=fix)
    return person


def _carried(signals: Signals, spans: Sequence[Span]) -> float | None:
    """Return the mass (kg) whose weight is the mean vertical force over strides, None where forces are not in N."""
    scale = signals.scales.get("force")
    if scale is None or not scale.absolute or "vertical" not in signals.curves:
        return None
    own = of_strides(signals.curves["vertical"], spans)
    if not len(own):
        return None
    total = 2 * own  # both feet carry the same on average
    if "vertical" in signals.other:
        other = of_strides(signals.other["vertical"], spans)
        if len(other) == len(own) and (own + other).min() > FLIGHT * own.mean() * 2:
            total = own + other
    return float(total[:, :-1].mean()) / G  # the last instant of a stride is the first of the next


def _check_feet(signals: Signals, spans: Sequence[Span], side: str, where: str) -> None:
    """Raise ModelError if a foot carries load while its knee swings: the feet are swapped."""
    if "knee_flexion" not in signals.angles or "vertical" not in signals.curves:
        return
    knee, force = (of_strides(each, spans) for each in (signals.angles["knee_flexion"], signals.curves["vertical"]))
    if len(knee) != len(force) or not len(knee):
        return
    loaded = [row[np.argmax(bend)] > 0.5 * row.max() for bend, row in zip(knee, force, strict=True)]
    if all(loaded):
        found = f"the {side} knee bends most while the {side} foot carries load"
        raise ModelError(found, where=where, fix='swapped feet: forces.renamed({"right": "left", "left": "right"})')


def _curves(
    signals: Signals, spans: Sequence[Span], mass: float | None, where: str
) -> tuple[dict[str, Reference], list[str]]:
    """Return the curves that are known in at least one stride, and notes about the others."""
    found, lost, joined = dict[str, Reference](), list[str](), list[str]()
    named: dict[str, tuple[Signal, Scale]] = {name: (each, DEGREES) for name, each in signals.angles.items()}
    for name, coordinate in MOMENTS.items():
        if coordinate in signals.moments:
            times, values = signals.moments[coordinate]
            named[name] = Signal(times, -values), signals.scales["moment"]
    own = {name: (each, signals.scales[REFERENCES[name].kind]) for name, each in signals.curves.items()}
    named |= own | {name: each for name, each in powers_of(signals, spans).items() if name not in own}
    for name in (each for each in REFERENCES if each in named):
        signal, scale = named[name]
        rows = of_strides(signal, spans)
        if not len(rows):
            lost.append(name)
            continue
        if not any(map(signal.covers, spans)):
            joined.append(name)
        if scale.absolute and mass is None:
            text = "is not divided by the mass, which is not known"
            fix = "give it: recorded_walk(..., mass=72.0), or add the file of the ground forces in N"
            raise ModelError(text, argument=name, where=where, fix=fix)
        factor = scale.factor / (mass if scale.absolute and mass else 1.0)
        found[name] = _reference(name, factor * rows, where, signals.bands.get(name), factor)
    if not found:
        ends = ", ".join(f"{first:.3g} to {last:.3g} s" for first, last in spans)
        text = f"no curve is known over a whole stride ({ends})"
        fix = "check that the files have the same times, and fill gaps: torsor.human.recordings.fill_gaps"
        raise ModelError(text, where=where, fix=fix)
    notes = [f"{where}: left out, with gaps or at other times: {listing(lost)}"] if lost else []
    for note in notes:
        warn(note)
    if joined:
        notes.append(f"{where}: no heel strike to heel strike, joined where the file ends: {listing(joined, most=3)}")
    return found, notes


def _reference(name: str, rows: Array, label: str, band: Array | None, factor: float) -> Reference:
    kind, own = REFERENCES[name].kind, REFERENCES[name].name
    if band is not None and len(band) and np.isfinite(band).all():
        at = np.linspace(0.0, 1.0, rows.shape[1])
        return Reference(kind, own, label, rows[0], factor * np.interp(at, np.linspace(0.0, 1.0, len(band)), band))
    return Reference(kind, own, label, rows.mean(axis=0), rows.std(axis=0, ddof=1) if len(rows) > 1 else None)
