"""A recorded walk as curves of comparisons: strides of one side, in the signs and units of ``Stride``.

Angles are in degrees: flexion, adduction, inward rotation and dorsiflexion positive. Moments are internal, in N m/kg,
named after their positive direction. Powers are of all axes of a joint, in W/kg; forces in % of the weight: up,
forward and medial.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import name_of, number, one_of
from torsor.base.errors import ModelError, listing, warn
from torsor.human.comparison.signals import (
    COORDINATES,
    DEGREES,
    DIRECT,
    SHORT,
    G,
    Scale,
    Signal,
    Signals,
    Span,
    given_spans,
    of_forces,
    of_strides,
    of_table,
    places,
    spans_of,
)
from torsor.human.gait.references import REFERENCES, Reference
from torsor.human.recordings import GroundForces, MotionTable, load
from torsor.human.recordings.recording import Recording
from torsor.human.recordings.text_files import csv_table, read_csv


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
    """Return the powers of hip, knee and ankle of axes with angle and moment; a joint without its first has none."""
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
    """Return the rate (rad/s) of an angle, NaN where it is missing: of a periodic stride, or after a filter of 6 Hz."""
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
