"""Curves of a recorded walk for comparisons: strides of one side, with the signs and units of ``Stride``.

Angles are in degrees, with flexion, adduction, internal rotation and dorsiflexion positive. Moments are internal
moments in N m/kg, named after their positive direction. Powers are summed over all axes of a joint, in W/kg. Forces
(up, forward and medial) are in % of body weight.

Columns are identified by the names of OpenSim (knee_angle_r, knee_angle_r_moment), of Torsor's body
(right_knee_flexion), or of the compared curves (knee_flexion, knee_extension, knee_power, vertical).
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import name_of, number, one_of
from torsor.base.errors import ModelError, listing, warn
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.files import check_suffix
from torsor.base.registry import registered
from torsor.base.tables import Column, write_table
from torsor.human.body.coordinates import JOINT_AXES, OSIM_NAMES
from torsor.human.body.strength import GRAVITY
from torsor.human.gait.references import REFERENCES, Reference, in_words
from torsor.human.recordings import GroundForces, MotionTable, load
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.contacts import LOAD_FRACTION, STRIDE_TIMES, Contact, contacts, strike_times
from torsor.human.recordings.recording import Recording
from torsor.human.recordings.text_files import csv_table, read_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Scale(NamedTuple):
    """A conversion factor to comparison units (degrees, N m/kg, W/kg, % of body weight).

    If ``absolute`` is True, the mass is also required.
    """

    kind: str
    factor: float
    absolute: bool = False


DEGREES, RADIANS = Scale("angle", 1.0), Scale("angle", 180 / math.pi)
# Units in column headers, in lower case without blanks.
WORDS = {
    **dict.fromkeys(("degrees", "degree", "deg", "°"), DEGREES),
    **dict.fromkeys(("radians", "rad"), RADIANS),
    **dict.fromkeys(("nm", "n*m", "n.m"), Scale("moment", 1.0, absolute=True)),
    **dict.fromkeys(("nm/kg", "n*m/kg", "n.m/kg"), Scale("moment", 1.0)),
    **dict.fromkeys(("nmm/kg", "n.mm/kg"), Scale("moment", 0.001)),
    "w": Scale("power", 1.0, absolute=True),
    "w/kg": Scale("power", 1.0),
    "n": Scale("force", 100 / GRAVITY, absolute=True),
    "n/kg": Scale("force", 100 / GRAVITY),
    **dict.fromkeys(("bodyweights", "bw"), Scale("force", 100.0)),
    **dict.fromkeys(("%ofweight", "%bw", "%"), Scale("force", 1.0)),
}
# Largest values in walking in each unit, from a child of 17 kg to a fast-walking man of 200 kg.
PEAKS: Mapping[str, tuple[tuple[float, float, str], ...]] = {
    "moment": ((0.3, 5.0, "nm/kg"), (8.0, 600.0, "nm")),
    "power": ((0.3, 15.0, "w/kg"), (20.0, 1500.0, "w")),
    "force": ((0.7, 2.5, "bw"), (7.0, 25.0, "n/kg"), (70.0, 200.0, "%bw"), (200.0, 5000.0, "n")),
}
UNIT_NAMES = {"moment": "N m/kg or N m", "power": "W/kg or W", "force": "body weights, N/kg, % of weight or N"}
JOINT_RANGE = (15.0, 150.0)  # range of motion of a knee or a hip in a stride (degrees)


def said(word: str, kind: str, where: str) -> Scale:
    """Return the scale for a unit name."""
    scale_of_word = WORDS.get(word.lower().replace(" ", ""))
    if scale_of_word is None or scale_of_word.kind != kind:
        allowed = listing([unit for unit, scale in WORDS.items() if scale.kind == kind])
        raise ModelError(f"{word!r} is not a unit of {kind}s", value=word, where=where, allowed=allowed)
    return scale_of_word


def guessed(values: Array, kind: str, where: str) -> Scale:
    """Return the scale of moments, powers or forces for which their largest value is plausible."""
    peak = float(np.nanmax(np.abs(values), initial=0.0))
    for low, high, unit in PEAKS[kind]:
        if low <= peak < high:
            return WORDS[unit]
    what = f"the largest {kind} is {peak:.4g}, which is implausible for walking in any unit"
    fix = "check the unit, or give it in brackets in the header of a .csv column"
    raise ModelError(what, where=where, allowed=UNIT_NAMES[kind], fix=fix)


def range_of(values: Array) -> float:
    """Return the difference between the largest and the smallest value; 0 if all are NaN."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def checked_angles(values: Array, scale: Scale | None, name: str, where: str) -> Scale:
    """Return the scale of angles; raise ModelError if the knee or hip range contradicts the stated unit."""
    span = range_of(values)
    fits = [unit for unit in (DEGREES, RADIANS) if JOINT_RANGE[0] <= span * unit.factor <= JOINT_RANGE[1]]
    if scale is not None and (scale in fits or not fits):  # stiff knees move by only a few degrees
        return scale
    if scale is None and fits:
        return fits[0]
    unit = {None: "of an unknown unit", DEGREES: "degrees", RADIANS: "radians"}[scale]
    fix = "set inDegrees=yes or no in the file, and check that the person walks"
    if scale is not None:
        fix = "these are " + ("radians: set inDegrees=no" if scale == DEGREES else "degrees: set inDegrees=yes")
    allowed = f"{JOINT_RANGE[0]:g} to {JOINT_RANGE[1]:g} degrees"
    raise ModelError(f"the range of motion of {name} is {span:.4g} {unit}", where=where, allowed=allowed, fix=fix)


COUNT = 401  # number of instants of a stride, as in ``Stride``
CLOSURE_TOLERANCE = 0.02  # fraction of the range of a curve within which its end values are equal
LOADED = (0.05, 0.25)  # fractions of a stride between which a foot on a force plate is loaded; stance is longer
END_TOLERANCE = 0.015  # fraction of the stride within which a heel strike is at an end of a closed recording

Span = tuple[float, float]


class Signal(NamedTuple):
    """A quantity over time: ``values`` (K,) at ``times`` (K,), NaN where missing."""

    times: Array
    values: Array

    @property
    def is_closed(self) -> bool:
        """Whether the last value equals the first one, as in a complete stride; False if there are gaps (NaN)."""
        return bool(abs(self.values[-1] - self.values[0]) <= CLOSURE_TOLERANCE * np.ptp(self.values))

    def covers(self, span: Span) -> bool:
        """Return whether the signal covers a span to within half a sample."""
        return bool(self.times[0] <= span[0] + self._slack and span[1] - self._slack <= self.times[-1])

    @property
    def _slack(self) -> float:
        return 0.5 * float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0

    def over(self, span: Span) -> Array:
        """Return the values (401,) in equal steps over a stride, with NaN next to missing values.

        If the signal begins or ends within the stride, the missing part is taken from the next or the previous stride.
        """
        at, length = np.linspace(*span, COUNT), span[1] - span[0]
        if not self.covers(span):
            at = np.where(at < self.times[0], at + length, at)
            at = np.where(at > self.times[-1], at - length, at)
        known = np.isfinite(self.values)
        values = np.interp(at, self.times, np.where(known, self.values, 0.0))
        missing = np.interp(at, self.times, np.where(known, 0.0, 1.0)) > 0
        missing |= (at < self.times[0] - self._slack) | (at > self.times[-1] + self._slack)
        return np.where(missing, np.nan, values)


def check_length(times: Array, where: str) -> None:
    """Raise ModelError if ``times`` (K,) (s) span less than the shortest stride."""
    if times[-1] - times[0] < STRIDE_TIMES[0]:
        what = f"the recording from {times[0]:g} to {times[-1]:g} s is too short for one stride"
        raise ModelError(what, where=where, allowed=f"{STRIDE_TIMES[0]:g} s or more")


def heel_strikes(vertical: Signal, where: str) -> list[float]:
    """Return the times (s) at which loading of a foot begins, from its vertical force in any unit."""
    t, force = vertical
    check_length(t, where)
    if not np.isfinite(force).all():
        k = int(np.argmin(np.isfinite(force)))
        raise ModelError(f"the vertical force is missing at {t[k]:g} s (row {k + 1})", where=where)
    peak = float(force.max())
    if peak <= 0:
        what = f"the vertical force is never positive (its maximum is {peak:g})"
        raise ModelError(what, where=where, fix="check axes and signs of the force plates")
    return [contact.strike for contact in contacts(t, force) if contact.strike is not None]


def spans_of(vertical: Signal, others: Sequence[Signal], side: str, where: str) -> list[Span]:
    """Return the start and end (s) of the strides between heel strikes of a foot.

    A recording with fewer than two heel strikes is one stride if all signals end at their initial values.
    """
    strikes = heel_strikes(vertical, where)
    spans = between(strikes)
    if spans:
        return spans
    first, last = float(vertical.times[0]), float(vertical.times[-1])
    length = last - first
    if STRIDE_TIMES[0] <= length <= STRIDE_TIMES[1] and all(signal.is_closed for signal in (vertical, *others)):
        off = [at for at in strikes if min(at - first, last - at) > END_TOLERANCE * length]
        return [(off[0], off[0] + length)] if off else [(first, last)]
    raise _no_stride(f"{first:g} to {last:g} s is too short for one stride", strikes, side, where)


def _no_stride(what: str, strikes: Sequence[float], side: str, where: str) -> ModelError:
    at = ", ".join(f"{time:.3g}" for time in strikes) or "none"
    allowed = f"two heel strikes of a foot, {STRIDE_TIMES[0]:g} to {STRIDE_TIMES[1]:g} s apart"
    fix = "use a longer recording, the other side, or `strikes`"
    return ModelError(f"{what} of the {side} foot, with heel strikes at {at}", where=where, allowed=allowed, fix=fix)


def between(strikes: Sequence[float]) -> list[Span]:
    """Return the start and end (s) of the strides between consecutive heel strikes, if their duration is plausible."""
    return [(a, b) for a, b in pairwise(strikes) if STRIDE_TIMES[0] <= b - a <= STRIDE_TIMES[1]]


def given_spans(strikes: Sequence[float], where: str) -> list[Span]:
    """Return the start and end (s) of the strides between the heel strikes ``strikes`` (s)."""
    return list(pairwise(strike_times(strikes, where)))


def of_strides(signal: Signal, spans: Sequence[Span]) -> Array:
    """Return the values (N, 401) of a signal over the N strides in which it has no gaps.

    If there are none, a recording with the length of a stride is used as one stride, joined at its ends.
    """
    rows = [values for span in spans if signal.covers(span) and np.isfinite(values := signal.over(span)).all()]
    rows = rows or [values for values in map(signal.over, spans) if np.isfinite(values).all()]
    return np.array(rows).reshape(-1, COUNT)


SIDE_LETTERS = {"right": "r", "left": "l"}
OTHER = {"right": "left", "left": "right"}
DIRECT = {
    "moment": ("hip_extension", "knee_extension", "ankle_plantarflexion", "hip_abduction"),
    "power": ("hip_power", "knee_power", "ankle_power"),
    "force": ("vertical", "forward", "medial"),
}


# Angles of pelvis and foot relative to the direction of progression, and their names in ``MeasuredGait.angle``.
IN_DIRECTION = {
    "tilt": "pelvis_tilt",
    "list": "pelvis_obliquity",
    "yaw": "pelvis_rotation",
    "foot_progression": "foot_progression",
}
# Kinds of curves, including angles without a reference.
KINDS = {name: reference.kind for name, reference in REFERENCES.items()} | {
    "tilt": "angle",
    "foot_progression": "angle",
}


@dataclass
class Signals:
    """Signals of one side: ``angles`` (degrees), ``rates`` (rad/s) and ``moments`` (same directions) by coordinate.

    ``curves`` have the signs of comparisons, with their ``scales``. ``other`` is the vertical force on the other foot.
    ``contacts`` are those of events that replace the heel strikes of the force. ``span`` contains the start and end (s)
    if the full recording is one stride. ``mass`` is in kg, or None if it is unknown. ``is_opensim`` is True for results
    with an OpenSim skeleton.
    """

    angles: dict[str, Signal] = field(default_factory=dict)
    rates: dict[str, Signal] = field(default_factory=dict)
    moments: dict[str, Signal] = field(default_factory=dict)
    curves: dict[str, Signal] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)
    other: dict[str, Signal] = field(default_factory=dict)
    bands: dict[str, Array] = field(default_factory=dict)
    contacts: Sequence[Contact] = ()
    mass: float | None = None
    span: tuple[float, float] | None = None
    is_opensim: bool = False

    def with_more(self, more: "Signals", where: str) -> "Signals":
        """Return the combined signals; raise ModelError if both have the same curve."""
        union = Signals(mass=more.mass or self.mass, span=more.span or self.span)
        union.contacts = more.contacts or self.contacts
        union.is_opensim = self.is_opensim or more.is_opensim
        for part in fields(self):
            mine, theirs = getattr(self, part.name), getattr(more, part.name)
            if isinstance(mine, dict):
                twice = [name for name in theirs if name in mine and part.name != "scales"]
                if twice:
                    fix = "pass each recording separately: several files of one recording complement each other"
                    raise ModelError(f"there is a second curve of {listing(twice)}", where=where, fix=fix)
                setattr(union, part.name, mine | theirs)
        return union

    @property
    def is_empty(self) -> bool:
        """Whether there are no ``angles``, ``moments`` or ``curves``."""
        return not (self.angles or self.moments or self.curves)


def places(names: Sequence[str], side: str, ending: str = "") -> dict[str, int]:
    """Return the column indices of the coordinates of a side or, with the ``ending`` "_moment", of their moments."""
    letter, columns = SIDE_LETTERS[side], dict[str, int]()
    for coordinate, name_there in OSIM_NAMES.items():
        # Without a side, the name of a moment would be that of a curve with a different sign.
        ways = [
            f"{name_there}_{letter}",
            f"{side}_{coordinate}",
            f"{coordinate}_{letter}",
            *([] if ending else [coordinate]),
        ]
        at = _first(names, *(f"{way}{ending}" for way in ways))
        if at is not None:
            columns[coordinate] = at
    return columns


def _first(names: Sequence[str], *ways: str) -> int | None:
    return next((names.index(way) for way in ways if way in names), None)


def of_table(table: MotionTable, side: str, units: Mapping[str, str] | None = None) -> Signals:
    """Return the angles, moments, powers and forces in a table; ``units`` {column: unit} are those in its header."""
    known, names, letter = units or {}, table.short_names, SIDE_LETTERS[side]

    def signal(at: int) -> Signal:
        return Signal(table.times, table.values[:, at])

    signals, at = Signals(), places(names, side)
    signals.angles = {coordinate: signal(k) for coordinate, k in at.items()}
    _to_degrees(signals, {coordinate: table.names[k] for coordinate, k in at.items()}, table, known)
    signals.moments = {coordinate: signal(k) for coordinate, k in places(names, side, "_moment").items()}
    if signals.moments:
        together = np.concatenate([moment.values for moment in signals.moments.values()])
        signals.scales["moment"] = guessed(together, "moment", table.source)
    for kind, curves in DIRECT.items():
        ways = {name: _first(names, f"{name}_{letter}", f"{side}_{name}", name) for name in curves}
        hits = {name: (table.names[k], signal(k)) for name, k in ways.items() if k is not None}
        if not hits:
            continue
        stated = {said(known[name], kind, table.source) for name, _ in hits.values() if name in known}
        if len(stated) > 1:
            raise ModelError(f"the {kind}s have several units", where=table.source, allowed="one unit")
        together = np.concatenate([curve.values for _, curve in hits.values()])
        # The largest value of the curves determines a unit that is missing in the header.
        signals.scales[kind] = stated.pop() if stated else guessed(together, kind, table.source)
        signals.curves |= {name: curve for name, (_, curve) in hits.items()}
    k = _first(names, f"vertical_{SIDE_LETTERS[OTHER[side]]}", f"{OTHER[side]}_vertical")
    if k is not None:
        signals.other["vertical"] = signal(k)
    return signals


def _to_degrees(signals: Signals, spelled: Mapping[str, str], table: MotionTable, units: Mapping[str, str]) -> None:
    """Convert the angles to degrees; the knee and hip ranges confirm the unit stated in the file."""
    check_length(table.times, table.source)
    stated: Scale | None = {None: None, True: DEGREES, False: RADIANS}[table.in_degrees]
    large = [coordinate for coordinate in ("knee_flexion", "hip_flexion") if coordinate in signals.angles]
    if large:
        widest = max(large, key=lambda coordinate: range_of(signals.angles[coordinate].values))
        name = spelled[widest]
        unit = said(units[name], "angle", table.source) if name in units else stated
        stated = checked_angles(signals.angles[widest].values, unit, name, table.source)
    for coordinate, (times, values) in signals.angles.items():
        name = spelled[coordinate]
        scale = said(units[name], "angle", table.source) if name in units else stated
        if scale is None:
            fix = "set inDegrees=yes or no in the file, or [degrees] in the column header"
            raise ModelError(f"the unit of {name} is unknown", where=table.source, fix=fix)
        signals.angles[coordinate] = Signal(times, scale.factor * values)


def of_forces(forces: GroundForces, side: str) -> Signals:
    """Return the vertical, forward and medial ground force on a foot; axes are reversed for backward motion."""
    if side not in forces.names:
        fix = "torsor.human.recordings.by_foot(forces, markers) assigns plates to feet"
        allowed = f"forces named {side}; found: {listing(forces.names)}"
        raise ModelError(f"there is no ground force of the {side} foot", where=forces.source, allowed=allowed, fix=fix)
    turned = forces.in_axes(HUMAN)
    medial, vertical, forward = turned.forces[:, turned.index(side)].T
    sign = 1.0 if side == "right" else -1.0  # x points to the left
    # A foot brakes while its load increases, and pushes forward while it decreases.
    loading = np.gradient(np.nan_to_num(vertical)) if len(forces) > 1 else np.zeros(1)
    if np.nansum(loading * forward) > 0:
        what = f"the {side} foot pushes forward before it brakes: the person moves backwards in these axes"
        fix = 'the axes were turned about the vertical; load(path, axes="back up left") avoids this'
        warn(what, where=forces.source, fix=fix)
        forward, sign = -forward, -sign
    curves = {"vertical": vertical, "forward": forward, "medial": sign * medial}
    signals = Signals(curves={name: Signal(forces.times, np.asarray(values)) for name, values in curves.items()})
    signals.scales["force"] = guessed(vertical, "force", forces.source)
    if OTHER[side] in forces.names:
        signals.other["vertical"] = Signal(forces.times, turned.forces[:, turned.index(OTHER[side]), 1])
    return signals


def of_measured(measured: Any, side: str) -> Signals | None:
    """Return the signals of a result of ``torsor.human.measured``, or None for other types."""
    from torsor.human.measured import MeasuredDynamics, MeasuredGait, MeasuredMotion

    if isinstance(measured, MeasuredGait):
        found = of_measured(measured.motion if measured.dynamics is None else measured.dynamics, side)
        if found is not None:
            turned = ((name, measured.turned(side, of_body)) for name, of_body in IN_DIRECTION.items())
            found.angles |= {name: Signal(measured.times, angle) for name, angle in turned if angle is not None}
            found.contacts = measured.contacts(side) if measured.strikes(side) else ()
        return found
    if not isinstance(measured, MeasuredMotion | MeasuredDynamics):
        return None
    names = measured.body.coordinate_names if isinstance(measured, MeasuredMotion) else measured.names

    def signals(values: Array) -> dict[str, Signal]:
        return {name: Signal(measured.times, values[:, k]) for name, k in places(names, side).items()}

    measured_signals = Signals(angles=signals(np.degrees(measured.q)), is_opensim="hip_flexion_r" in names)
    if isinstance(measured, MeasuredDynamics):
        measured_signals.mass = measured.weight / GRAVITY
        measured_signals.rates, measured_signals.moments = signals(measured.v), signals(measured.forces)
        measured_signals.scales["moment"] = Scale("moment", 1.0, absolute=True)
        if measured.ground is not None:
            measured_signals = measured_signals.with_more(of_forces(measured.ground, side), measured.ground.source)
    return measured_signals


# Joint powers from recorded angles and moments: moment times angular velocity, summed over the axes of a joint.

CUTOFF, ORDER = 6.0, 3  # Hz, and order of one pass, as in inverse dynamics of walking (Winter 2009)
MIN_RATE_SAMPLES = 8  # minimum number of samples for a rate


def powers_of(signals: Signals, spans: Sequence[Span]) -> dict[str, tuple[Signal, Scale]]:
    """Return the powers of hip, knee and ankle, summed over the axes with known angle and moment.

    There is no power for a joint with an unknown first axis.
    """
    powers: dict[str, tuple[Signal, Scale]] = {}
    scale = signals.scales.get("moment")
    for joint, axes in JOINT_AXES.items():
        if scale is None or axes[0] not in signals.moments or axes[0] not in signals.angles:
            continue
        times = signals.moments[axes[0]].times
        total = np.zeros(len(times))
        for axis in axes:
            if axis in signals.moments and axis in signals.angles:
                rate = signals.rates.get(axis) or _rate(signals.angles[axis], spans)
                moment = np.interp(times, *signals.moments[axis])
                total += moment * np.interp(times, *rate, left=np.nan, right=np.nan)
        powers[f"{joint}_power"] = Signal(times, total), Scale("power", scale.factor, scale.absolute)
    return powers


def _rate(signal: Signal, spans: Sequence[Span]) -> Signal:
    """Return the rate (rad/s) of an angle, with NaN where the angle is missing.

    A complete stride with equal ends is periodic; other recordings are low-pass filtered at 6 Hz.
    """
    from torsor.identification.differentiation import differentiate  # a slow, rarely needed import

    times, angle = signal
    known = np.isfinite(angle)
    if known.sum() < MIN_RATE_SAMPLES:
        return Signal(times, np.full(len(times), np.nan))
    t = np.linspace(times[0], times[-1], len(times))
    x = np.radians(np.interp(t, times[known], angle[known]))
    nyquist = 0.5 * (len(t) - 1) / float(t[-1] - t[0])
    if len(spans) == 1 and np.isclose(np.diff(spans[0])[0], t[-1] - t[0]) and signal.is_closed:
        rates = differentiate(t[:-1], x[:-1, None], nyquist, periodic=True, order=12)[1][:, 0]
        rate = np.append(rates, rates[0])
    else:
        rate = differentiate(t, x[:, None], min(CUTOFF, nyquist), order=ORDER, ends="straight")[1][:, 0]
    return Signal(times, np.where(known, np.interp(times, t, rate), np.nan))


SUFFIXES = (".mot", ".sto", ".csv")
_HEAD = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
_PLAIN_HEAD = re.compile(r"(\w+)_(deg|Nm_per_kg|W_per_kg|percent_of_weight)")  # written by ``RecordedWalk.save``
# Columns that contain the fraction of the stride instead of time.
SHARES = ("share of the stride", "share", "percent", "%", "% of stride", "gait cycle", "gait_cycle", "% gait cycle")
# Curve names of the columns of ``Stride.save("walk.csv")`` for the foot of the stride.
_OWN_COLUMNS = {
    f"force own foot {way}": name for way, name in (("medial", "medial"), ("up", "vertical"), ("forward", "forward"))
}
_KINDS = re.compile(r"(angle|moment|power) (\w+)")


def of_file(path: Path, side: str) -> Signals:
    """Return the signals of one side in a file."""
    suffix = path.suffix.lower()
    if suffix in (".trc", ".c3d"):
        fix = "compute angles and moments with torsor.human.measured, and compare with the result of inverse_dynamics"
        raise ModelError("the file has markers, not curves", where=path.name, fix=fix)
    if suffix not in SUFFIXES:
        allowed = f"a recording: {', '.join(SUFFIXES)}, or a separate .npz file"
        what = "it cannot be one of several files" if suffix == ".npz" else f"unknown file type {path.suffix!r}"
        raise ModelError(what, where=path.name, allowed=allowed)
    if suffix == ".csv" and path.is_file():
        return _of_csv(path, side)
    return of_recording(load(path, check=False), side)


def of_recording(recording: Recording, side: str, units: dict[str, str] | None = None) -> Signals:
    """Return the signals of one side in a loaded recording."""
    signals = Signals()
    if recording.has("table"):
        signals = of_table(recording.table, side, units)
    if recording.has("forces"):
        signals = signals.with_more(of_forces(recording.forces, side), recording.source)
    if signals.is_empty:
        names = recording.table.names if recording.has("table") else ()
        what = f"no column is a known curve of the {side} side" + (f": {', '.join(names[:6])}, ..." if names else "")
        allowed = f"OpenSim names, such as hip_flexion_r, or {', '.join([*list(OSIM_NAMES)[:2], *DIRECT['force']])}"
        raise ModelError(what, where=recording.source, allowed=allowed)
    return signals


def _of_csv(path: Path, side: str) -> Signals:
    """Return the signals in a .csv file; a unit in brackets at the end of a header applies to the column."""
    names, units = _heads(path)
    bare = {head: name for head, name in names.items() if name.lower() == "time"}
    shares = [head for head, name in names.items() if name.lower() in SHARES]
    if not bare and not shares:
        allowed = f"a column named time, or one with the share of the stride: {', '.join(SHARES[:3])}"
        raise ModelError("no column is named time", where=path.name, allowed=allowed)
    # Columns that end with x, y and z would be interpreted as markers.
    columns = {head: name for head, name in names.items() if not re.fullmatch(r"(pressure|reaction) .*", name)}
    columns |= dict.fromkeys(bare or shares[:1], "time")
    recording = read_csv(path, columns)
    table = recording.table
    renamed = MotionTable(tuple(_own(column) for column in table.names), table.times, table.values, None, "", path.name)
    known = {_own(names[head]): unit for head, unit in units.items()}
    signals = of_recording(Recording(path.name, None, recording.found_forces, renamed), side, known)
    for name in renamed.names:  # columns that end with _sd are bands of curves over a stride
        curve = name.removesuffix("_sd").removeprefix(f"{side}_")
        if name.endswith("_sd") and (curve in signals.curves or curve in signals.angles):
            _check_band(renamed, name, known, path.name)
            signals.bands[curve] = renamed.column(name)
    if shares:
        _check_stride(table.column(names[shares[0]]) if bare else table.times, shares[0], path.name)
        signals.span = float(table.times[0]), float(table.times[-1])
        if not bare:
            signals.rates = {name: Signal(s.times, np.full(len(s.times), np.nan)) for name, s in signals.angles.items()}
    return signals


def _check_stride(share: Array, head: str, where: str) -> None:
    """Raise ModelError unless shares of the stride (K,), from 0 to 1 or in percent, rise from its start to its end."""
    first, last, rises = float(share[0]), float(share[-1]), np.diff(share)
    whole, step = (100.0 if last > 1 else 1.0), float(rises.max(initial=0.0))
    if not (rises > 0).all():
        raise ModelError(f"{head} does not rise from row to row", where=where, allowed="one stride")
    if first > step or last < whole - step:
        what, allowed = f"{head} is from {first:g} to {last:g}", f"the whole stride: 0 to {whole:g}"
        raise ModelError(what, where=where, allowed=allowed)


def _check_band(table: MotionTable, name: str, units: Mapping[str, str], where: str) -> None:
    """Raise ModelError if standard deviations have another unit than their curve, or are negative."""
    unit, own = (units.get(each, "") for each in (name, name.removesuffix("_sd")))
    if unit and own and unit != own:
        what = f"{name} is in {unit}, and its curve in {own}"
        raise ModelError(what, where=where, allowed="one unit", fix="convert the standard deviations")
    least = float(table.column(name).min())
    if least < 0:
        raise ModelError(f"{name} is {least:g}", where=where, allowed="standard deviations of 0 or more")


def _heads(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers without units, and the units."""
    names, units = dict[str, str](), dict[str, str]()
    for head in csv_table(path).heads:
        matched = _HEAD.fullmatch(head) or _PLAIN_HEAD.fullmatch(head)
        names[head] = matched[1] if matched and matched[1] else head
        if matched and matched[1] and matched[2] not in ("s", "1", ""):
            units[head] = matched[2].replace("_per_", "/").replace("percent_of_weight", "%")
    return names, units


def _own(name: str) -> str:
    """Return the curve name of a column written by ``Stride.save``; other names are unchanged."""
    if name in _OWN_COLUMNS:
        return _OWN_COLUMNS[name]
    matched = _KINDS.fullmatch(name)
    if not matched:
        return name
    return f"{matched[2]}_power" if matched[1] == "power" else matched[2]


# Moments in the directions of comparisons, with coordinates of the opposite sign.
MOMENTS = {
    "hip_extension": "hip_flexion",
    "knee_extension": "knee_flexion",
    "ankle_plantarflexion": "ankle_flexion",
    "hip_abduction": "hip_adduction",
}
MASS_TOLERANCE = 0.1  # largest relative difference between the mass from forces and the specified mass
MIN_WALK_LOAD = 0.5  # fraction of the mean load that both feet always exceed in a walk, unless one misses the plates


COLUMNS = 3  # of panels
CYCLE_ROWS = {
    "sagittal": (
        ("hip_flexion", "hip_extension", "hip_power"),
        ("knee_flexion", "knee_extension", "knee_power"),
        ("ankle_flexion", "ankle_plantarflexion", "ankle_power"),
    ),
    "other": (
        ("tilt", "list", "yaw"),
        ("hip_adduction", "hip_rotation", "hip_abduction"),
        ("foot_progression", "vertical", "forward"),
    ),
}
CYCLE_TITLES = {
    "tilt": "pelvis tilt (forward)",
    "list": "pelvis obliquity (this side low)",
    "yaw": "pelvis rotation (this side in front)",
    "hip_rotation": "hip internal rotation",
    "foot_progression": "foot progression (toes inward)",
}
SIDE_COLOURS = {"right": "#1f4e8c", "left": "#d98b2b"}
MORE_COLOURS = ("#4c9a5f", "#a8527a", "#7a5c3a")


@dataclass(frozen=True, eq=False)
class RecordedWalk:
    """A recorded walk: ``curves`` over a stride by name, with mean and standard deviation over the strides.

    ``label`` is the legend text, ``strides`` contains start and end times (s), ``mass`` is the person's mass (kg), or
    None if it is not needed, and ``side`` is the foot whose heel strikes start the strides. ``notes`` document the
    interpretation of the recording. ``is_opensim`` is True for results with an OpenSim skeleton, whose hip flexion is
    not lowered by the pelvic tilt. ``foot_off`` is the fraction of the stride at foot off in events, or None without
    such events; figures then use the vertical force. Moments, powers and forces are those of the strides ``on_plates``.
    """

    label: str
    curves: dict[str, Reference]
    strides: tuple[Span, ...]
    side: str
    mass: float | None = None
    notes: tuple[str, ...] = ()
    is_opensim: bool = False
    foot_off: float | None = None
    on_plates: tuple[Span, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.label}: {', '.join(self.curves)}", *self.notes])

    @property
    def toe_off(self) -> float | None:
        """The fraction of the stride at foot off, from events or from the vertical force; None without either."""
        if self.foot_off is not None or "vertical" not in self.curves:
            return self.foot_off
        force = self.curves["vertical"].mean
        swing = np.flatnonzero(force[len(force) // 10 :] < LOAD_FRACTION * force.max())  # excludes the heel strike
        return float(len(force) // 10 + swing[0]) / (len(force) - 1) if len(swing) else None

    def plot(self, path: str | Path | None = None, *others: Any, planes: str = "sagittal") -> "Figure":
        """Plot the joint curves over the gait cycle and return the figure; with ``path``, save it too.

        Rows are joints, and columns are angles, moments and powers. ``planes`` is "sagittal", "other" (pelvis, hip and
        foot in the frontal and transverse planes, and ground forces), or "all". Grey bands show the means and standard
        deviations of the children in Schwartz 2008, and grey lines the means of OpenSim's tutorial. ``others`` are
        recorded walks (the other side is solid, further walks are dashed), and all ``references`` of
        ``Stride.likeness``. The first of these with standard deviations, such as your norms, replaces the bands of its
        curves.

        Example:
            >>> t = np.linspace(0.0, 1.0, 101)
            >>> values = np.stack([20 - 20 * np.cos(2 * np.pi * t), np.maximum(np.sin(2 * np.pi * t), 0)], axis=1)
            >>> table = MotionTable(["knee_angle_r", "vertical"], t, values, in_degrees=True)
            >>> [axes.get_title() for axes in recorded_walk(table).plot().axes]
            ['knee flexion']
        """
        walks = list(chain.from_iterable(map(self._as_walks, others)))
        planes = one_of(planes, (*CYCLE_ROWS, "all"), self.label, "planes")
        lines, bands = self._lines(walks)
        known = {name for line in lines if line.walk.side for name in line.walk.curves}
        parts = CYCLE_ROWS if planes == "all" else {planes: CYCLE_ROWS[planes]}
        rows = list(chain.from_iterable(_arranged(part, known) for part in parts.values()))
        if not rows:
            allowed = listing([name for part in parts.values() for row in part for name in row])
            raise ModelError(f"there are no joint curves to plot ({planes})", where=self.label, allowed=allowed)
        figure = new_figure(10.0, 2.2 * len(rows) + 0.8)
        grid = figure.add_gridspec(len(rows), max(map(len, rows)))
        for k, row in enumerate(rows):
            for column, name in enumerate(row):
                last = all(len(below) <= column for below in rows[k + 1 :])
                self._panel(figure.add_subplot(grid[k, column]), name, lines, bands, last)
        pairs = (zip(*reversed(axes.get_legend_handles_labels()), strict=True) for axes in figure.axes)
        handles = dict(chain.from_iterable(pairs))
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, frameon=False)
        return saved(figure, path, dpi=100)

    def save(self, path: str | Path, *others: "RecordedWalk") -> None:
        """Write the curves over the gait cycle, per kg, as .csv, with those of ``others``, such as the other side.

        Headers, such as "right_knee_flexion_deg" and "right_knee_flexion_sd_deg", are valid variable names in MATLAB.

        Example:
            >>> import tempfile
            >>> knee = Reference("angle", "knee_flexion", "mine", np.linspace(0.0, 60.0, 401))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     RecordedWalk("mine", {"knee_flexion": knee}, ((0.0, 1.1),), "left").save(folder + "/cycle.csv")
            ...     Path(folder, "cycle.csv").read_text().split()[:2]
            ['percent,left_knee_flexion_deg', '0.0,0.0']
        """
        check_suffix(Path(path), (".csv",))
        columns = [Column("percent", "", np.linspace(0.0, 100.0, COUNT))]
        for walk in (self, *others):
            for name, curve in walk.curves.items():
                unit = curve.unit.replace("degrees", "deg")
                columns.append(Column(f"{walk.side} {name}", unit, curve.mean))
                columns += [] if curve.sd is None else [Column(f"{walk.side} {name} sd", unit, curve.sd)]
        write_table(Path(path), columns, plain=True)

    def _lines(self, others: Sequence["RecordedWalk"]) -> tuple[list["_Line"], list["RecordedWalk"]]:
        """Return this and ``others`` as lines, and the given norms as bands.

        The first walk of each side is solid, and other walks are dashed.
        """
        colours, lines, norms = iter(MORE_COLOURS), list[_Line](), list[RecordedWalk]()
        for walk in (self, *others):
            if not walk.side and not norms and any(curve.sd is not None for curve in walk.curves.values()):
                norms.append(walk)
            elif walk.side and walk.side not in [line.walk.side for line in lines]:
                lines.append(_Line(walk, SIDE_COLOURS[walk.side], "-"))
            else:
                lines.append(_Line(walk, next(colours, "0.3"), "--"))
        return lines, norms

    def _as_walks(self, other: Any) -> list["RecordedWalk"]:
        """Return a recorded walk, or references with one walk per label, whose side is ""."""
        if isinstance(other, RecordedWalk):
            return [other]
        walks = dict[str, RecordedWalk]()
        for reference in registered("walk references", "of any form")(other, self.side):
            walk = walks.setdefault(reference.label, RecordedWalk(reference.label, {}, (), ""))
            walk.curves.setdefault(reference.curve, self._band(reference))
        return list(walks.values())

    def _band(self, reference: Reference) -> Reference:
        """Return a reference with the zero of this walk, without a standard deviation of other people."""
        shift = reference.tilt if self.is_opensim else 0.0
        sd = None if reference.sd_source else reference.sd
        return reference._replace(mean=reference.mean + shift, sd=sd, tilt=reference.tilt - shift)

    def _panel(
        self, axes: Any, name: str, lines: Sequence["_Line"], norms: Sequence["RecordedWalk"], last: bool
    ) -> None:
        for walk, colour, style in (line for line in lines if name in line.walk.curves):
            curve = walk.curves[name]
            at, label = np.linspace(0.0, 100.0, len(curve.mean)), ", ".join(filter(None, (walk.label, walk.side)))
            axes.plot(at, curve.mean, style, color=colour, linewidth=2.0, label=label_of_title(label))
            if curve.sd is not None:
                axes.fill_between(
                    at, curve.mean - curve.sd, curve.mean + curve.sd, color=colour, alpha=0.2, linewidth=0
                )
        feet = [line for line in lines if line.style == "-" and line.walk.toe_off is not None]
        for walk, colour, _ in feet:
            label = f"toe-off, {walk.side}" if len(feet) > 1 else "toe-off"
            axes.axvline(
                100 * (walk.toe_off or 0.0), color=colour, linewidth=1.0, linestyle="--", zorder=0.5, label=label
            )
        given = [walk.curves[name]._replace(source=walk.label) for walk in norms if name in walk.curves]
        bands = [each for each in REFERENCES.values() if each.curve == name and each.sd is not None]
        children = [each for each in bands if each.source == "children"]
        for people in given or map(self._band, (children or bands)[:1]):
            at, line = np.linspace(0.0, 100.0, len(people.mean)), f"mean ({people.label})"
            if people.sd is not None:
                who, colour = ("mean ± SD", "0.78") if given else ("children, mean ± SD", "0.85")
                ends, label = (people.mean - people.sd, people.mean + people.sd), f"{who} ({people.label})"
                axes.fill_between(at, *ends, color=colour, label=label_of_title(label), zorder=0)
                line = ""
            axes.plot(at, people.mean, color="0.6", linewidth=1.0, zorder=0.2, label=label_of_title(line) or None)
            if people.tilt:
                axes.plot([], [], " ", label=f"band of hip flexion lowered by {people.tilt:g}° (pelvic tilt)")
        axes.axhline(0.0, color="0.8", linewidth=0.9, zorder=0)
        shown = next(line.walk.curves[name] for line in lines if line.walk.side and name in line.walk.curves)
        styled(axes, CYCLE_TITLES.get(name, in_words(shown.curve, shown.kind)), shown.unit)
        axes.set_xlim(0.0, 100.0)
        if last:
            axes.set_xlabel("gait cycle (%)")


class _Line(NamedTuple):
    """A walk or references in a figure, with colour and line style."""

    walk: RecordedWalk
    colour: str
    style: str


def _arranged(rows: Sequence[Sequence[str]], known: Collection[str]) -> list[list[str]]:
    """Return the rows of ``known`` curves; short rows are joined to rows of up to three curves."""
    joined: list[list[str]] = [[]]
    for row in rows:
        names = [name for name in row if name in known]
        if len(joined[-1]) + len(names) > COLUMNS:
            joined.append([])
        joined[-1] += names
    return [row for row in joined if row]


def recorded_walk(
    *sources: Any,
    mass: float | None = None,
    side: str = "right",
    strikes: Sequence[float] | None = None,
    label: str | None = None,
) -> RecordedWalk:
    """Return a recorded walk for comparisons from one or more files or results of the same recording.

    ``sources`` are paths (.mot, .sto, .csv), results of ``torsor.human.recordings.load``, or results of
    ``torsor.human.measured.inverse_kinematics`` and ``inverse_dynamics``. Angles, moments and ground forces of one
    recording may be spread over several sources. Strides of a ``side`` begin at heel strikes, detected from the
    vertical force (more than 2.5 % of its peak), at the foot strikes of ``MeasuredGait.events``, or at the times
    ``strikes`` (s). In the last two cases, moments, powers and forces are those of strides that begin on a force plate.
    Moments in N m are divided by the ``mass`` (kg), by default the mean mass supported by the ground over the strides.
    ``label`` (author and year) is the legend text.

    Example:
        >>> t = np.linspace(0.0, 1.0, 101)
        >>> names = ["knee_angle_r", "vertical"]
        >>> values = np.stack([20 - 20 * np.cos(2 * np.pi * t), np.maximum(np.sin(2 * np.pi * t), 0)], axis=1)
        >>> table = MotionTable(names, t, values, in_degrees=True)
        >>> walk = recorded_walk(table, label="Someone 2020")
        >>> walk.curves["knee_flexion"].mean.max().round(6), walk.strides
        (np.float64(40.0), ((0.0, 1.0),))
    """
    one_of(side, tuple(SIDE_LETTERS), "recorded walk", "side")
    if not sources:
        raise ModelError("no file or result is given", where="recorded walk")
    title = name_of(label, "label", "recorded walk") if label is not None else _title(sources[0])
    signals = Signals()
    for source in sources:
        signals = signals.with_more(_signals(source, side), _title(source))
    _turn_knee(signals)
    spans = _spans(signals, side, strikes, title)
    of_plates = _of_plates(signals, spans) if strikes is not None or signals.contacts else spans
    lengths = [last - first for first, last in spans]
    low, high = min(lengths), max(lengths)
    words = f"{low:.3g}" if high - low < 5e-3 else f"{low:.3g} to {high:.3g}"
    notes = [f"{title}: {side} side, {len(spans)} stride{'s' * (len(spans) > 1)} of {words} s"]
    if of_plates != spans:
        number_of = len(of_plates) or "none"
        notes.append(f"{title}: moments, powers and forces of {number_of} of these strides, with the foot on a plate")
    person = _mass(signals, mass, of_plates, title)
    if person is not None:
        how = "" if mass is not None or signals.mass else ", from the ground forces"
        notes.append(f"{title}: {person:.1f} kg{how}")
    _check_feet(signals, of_plates, side, title)
    curves, more = _curves(signals, spans, of_plates, person, title)
    offs = [
        (contact.off - first) / (last - first)
        for first, last in spans
        for contact in signals.contacts
        if contact.off is not None and first < contact.off < last
    ]
    foot_off = float(np.mean(offs)) if offs else None
    notes += more
    details: dict[str, Any] = {"is_opensim": signals.is_opensim, "foot_off": foot_off, "on_plates": tuple(of_plates)}
    return RecordedWalk(title, curves, tuple(spans), side, person, tuple(notes), **details)


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
    signals = of_measured(source, side)
    if signals is None:
        allowed = "a path, a recording, or a result of torsor.human.measured"
        raise ModelError(f"the type {type(source).__name__} is not supported", where="recorded walk", allowed=allowed)
    return signals


def _turn_knee(signals: Signals) -> None:
    """Reverse the angle, rate and moment of a knee whose flexion is negative, as in older OpenSim models."""
    knee = signals.angles.get("knee_flexion")
    if knee is None:
        if "knee_flexion" in signals.moments:
            what = "there is a knee moment without its angle, so knee_angle is assumed to be flexion"
            warn(what, where="recorded walk", fix="add the angle file, whose sign shows the direction")
        return
    known = knee.values[np.isfinite(knee.values)]
    if len(known) and known.max() < -known.min():
        for group in (signals.angles, signals.rates, signals.moments):
            if "knee_flexion" in group:
                times, values = group["knee_flexion"]
                group["knee_flexion"] = Signal(times, -values)


def _spans(signals: Signals, side: str, strikes: Sequence[float] | None, where: str) -> list[Span]:
    if strikes is not None:
        return given_spans(strikes, where)
    if signals.span is not None:
        return [signals.span]
    if signals.contacts:
        times = [contact.strike for contact in signals.contacts if contact.strike is not None]
        if not between(times):
            raise _no_stride("the events contain no stride", times, side, where)
        return between(times)
    if "vertical" not in signals.curves:
        fix = (
            'pass the files of one recording together, ("angles.mot", "forces.mot"), --compare angles.mot forces.mot, '
            "or heel strikes (`strikes`)"
        )
        raise ModelError("there are no ground forces from which to detect strides", where=where, fix=fix)
    return spans_of(signals.curves["vertical"], list(signals.angles.values()), side, where)


def _of_plates(signals: Signals, spans: Sequence[Span]) -> list[Span]:
    """Return the strides that begin with the foot on a force plate, or all if there are no ground forces."""
    if "vertical" not in signals.curves:
        return list(spans)
    times, force = signals.curves["vertical"]
    level = LOAD_FRACTION * float(np.nanmax(force))

    def is_loaded(span: Span) -> bool:
        at = np.interp(LOADED, (0.0, 1.0), span)
        within = (times >= at[0]) & (times <= at[1])
        return bool(within.any() and times[0] <= at[0] and (force[within] > level).all())

    return [span for span in spans if is_loaded(span)]


def _mass(signals: Signals, mass: float | None, spans: Sequence[Span], where: str) -> float | None:
    """Return the specified or measured mass, or the mass supported by the ground; the values must agree."""
    carried = _carried(signals, spans)
    person = signals.mass if mass is None else number(mass, where, "mass (kg)", above=0.0, most=500.0)
    if person is None:
        return carried
    if carried is not None and abs(carried - person) > MASS_TOLERANCE * person:
        what = f"the mass is {person:.1f} kg, but the ground carries {carried:.1f} kg over the strides"
        fix = "check the mass, and that every step is on a force plate"
        raise ModelError(what, where=where, allowed=f"within {100 * MASS_TOLERANCE:.0f} % of each other", fix=fix)
    return person


def _carried(signals: Signals, spans: Sequence[Span]) -> float | None:
    """Return the mass (kg) that corresponds to the mean vertical force over strides, or None if forces are not in N."""
    scale = signals.scales.get("force")
    if scale is None or not scale.absolute or "vertical" not in signals.curves:
        return None
    loads = of_strides(signals.curves["vertical"], spans)
    if not len(loads):
        return None
    total = 2 * loads  # on average, both feet carry the same load
    if "vertical" in signals.other:
        other = of_strides(signals.other["vertical"], spans)
        if len(other) == len(loads) and (loads + other).min() > MIN_WALK_LOAD * loads.mean() * 2:
            total = loads + other
    return float(total[:, :-1].mean()) / GRAVITY  # the last instant of a stride is the first of the next one


def _check_feet(signals: Signals, spans: Sequence[Span], side: str, where: str) -> None:
    """Raise ModelError if a foot is loaded during swing of its knee, which indicates swapped feet."""
    if "knee_flexion" not in signals.angles or "vertical" not in signals.curves:
        return
    knee, force = (of_strides(signal, spans) for signal in (signals.angles["knee_flexion"], signals.curves["vertical"]))
    if len(knee) != len(force) or not len(knee):
        return
    loaded = [row[np.argmax(bend)] > 0.5 * row.max() for bend, row in zip(knee, force, strict=True)]
    if all(loaded):
        what = f"the {side} knee flexes most while the {side} foot is loaded"
        fix = 'the feet are swapped: use forces.renamed({"right": "left", "left": "right"})'
        raise ModelError(what, where=where, fix=fix)


def _curves(
    signals: Signals, spans: Sequence[Span], of_plates: Sequence[Span], mass: float | None, where: str
) -> tuple[dict[str, Reference], list[str]]:
    """Return the curves that are known in at least one stride, and notes on the others.

    Moments, powers and forces are those of the strides ``of_plates``.
    """
    curves, lost, joined = dict[str, Reference](), list[str](), list[str]()
    named: dict[str, tuple[Signal, Scale]] = {name: (angle, DEGREES) for name, angle in signals.angles.items()}
    for name, coordinate in MOMENTS.items():
        if coordinate in signals.moments:
            times, values = signals.moments[coordinate]
            named[name] = Signal(times, -values), signals.scales["moment"]
    direct = {name: (curve, signals.scales[REFERENCES[name].kind]) for name, curve in signals.curves.items()}
    named |= direct | {name: power for name, power in powers_of(signals, spans).items() if name not in direct}
    for name in (curve for curve in KINDS if curve in named):
        signal, scale = named[name]
        own = spans if KINDS[name] == "angle" else of_plates
        if not own:
            continue
        rows = of_strides(signal, own)
        if not len(rows):
            lost.append(name)
            continue
        if not any(map(signal.covers, own)):
            joined.append(name)
        if scale.absolute and mass is None:
            what = "is not divided by the mass, which is unknown"
            fix = "use recorded_walk(..., mass=72.0), or add the file of the ground forces in N"
            raise ModelError(what, argument=name, where=where, fix=fix)
        factor = scale.factor / (mass if scale.absolute and mass else 1.0)
        curves[name] = _reference(name, factor * rows, where, signals.bands.get(name), factor)
    if not curves:
        ends = ", ".join(f"{first:.3g} to {last:.3g} s" for first, last in spans)
        what = f"no curve is known over a whole stride ({ends})"
        fix = "check that the files have the same times, and fill gaps with torsor.human.recordings.fill_gaps"
        raise ModelError(what, where=where, fix=fix)
    notes = [f"{where}: omitted because of gaps or other times: {listing(lost)}"] if lost else []
    for note in notes:
        warn(note)
    if joined:
        notes.append(f"{where}: no complete stride, joined where the file ends: {listing(joined, most=3)}")
    return curves, notes


def _reference(name: str, rows: Array, label: str, band: Array | None, factor: float) -> Reference:
    kind, quantity = KINDS[name], REFERENCES[name].name if name in REFERENCES else name
    if band is not None and len(band) and np.isfinite(band).all():
        at = np.linspace(0.0, 1.0, rows.shape[1])
        return Reference(kind, quantity, label, rows[0], factor * np.interp(at, np.linspace(0.0, 1.0, len(band)), band))
    return Reference(kind, quantity, label, rows.mean(axis=0), rows.std(axis=0, ddof=1) if len(rows) > 1 else None)
