"""A recorded walk as curves of comparisons: strides of one side, in the signs and units of ``Stride``.

Angles are in degrees: flexion, adduction, inward rotation and dorsiflexion positive. Moments are internal, in N m/kg,
named after their positive direction. Powers are of all axes of a joint, in W/kg; forces in % of the weight: up,
forward and medial.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import name_of, number, one_of
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.human.comparison.files import of_file, of_recording
from torsor.human.comparison.measured import of_measured
from torsor.human.comparison.powers import powers_of
from torsor.human.comparison.signals import SHORT, Signals, of_forces, of_table
from torsor.human.comparison.strides import Signal, Span, given_spans, of_strides, spans_of
from torsor.human.comparison.units import G, Scale
from torsor.human.gait.references import REFERENCES, Reference
from torsor.human.recordings import GroundForces, MotionTable
from torsor.human.recordings.recording import Recording

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
        raise ModelError(describe("no file or result is given", where="recorded walk"))
    title = name_of(label, "label", "recorded walk") if label is not None else _title(sources[0])
    signals = Signals()
    for source in sources:
        signals = signals.with_more(_signals(source, side), _title(source))
    _turn_knee(signals)
    spans = _spans(signals, side, strikes, title)
    notes = [f"{title}: {side} side, {len(spans)} stride{'s' * (len(spans) > 1)} of {_lengths(spans)} s"]
    person = _mass(signals, mass, spans, title)
    if person is not None:
        notes.append(
            f"{title}: {person:.1f} kg" + ("" if mass is not None or signals.mass else ", by the ground forces")
        )
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
        raise ModelError(describe(f"found {type(source).__name__}", where="recorded walk", allowed=allowed))
    return found


def _turn_knee(signals: Signals) -> None:
    """Turn a knee whose flexion is negative, as in older models of OpenSim, with its moment and its rate."""
    knee = signals.angles.get("knee_flexion")
    if knee is None:
        if "knee_flexion" in signals.moments:
            text = "a moment of the knee without its angle: knee_angle is taken as flexion"
            warn(describe(text, where="recorded walk", fix="add the file of angles, whose sign shows the direction"))
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
        raise ModelError(describe("there are no ground forces to find strides with", where=where, fix=fix))
    return spans_of(signals.curves["vertical"], list(signals.angles.values()), side, where)


def _lengths(spans: Sequence[Span]) -> str:
    lengths = [last - first for first, last in spans]
    low, high = min(lengths), max(lengths)
    return f"{low:.3g}" if high - low < 5e-3 else f"{low:.3g} to {high:.3g}"


def _mass(signals: Signals, given: float | None, spans: Sequence[Span], where: str) -> float | None:
    """Return the mass: as given, as of the measured person, or as the ground carries; they may not contradict."""
    carried = _carried(signals, spans)
    person = signals.mass if given is None else number(given, where, "mass (kg)", above=0.0, most=500.0)
    if person is None:
        return carried
    if carried is not None and abs(carried - person) > WEIGHT * person:
        found = f"a mass of {person:.1f} kg, but the ground carries {carried:.1f} kg over the strides"
        fix = "check the mass, and that every step is on a plate"
        raise ModelError(describe(found, where=where, allowed=f"within {100 * WEIGHT:.0f} % of each other", fix=fix))
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
        fix = 'swapped feet: forces.renamed({"right": "left", "left": "right"})'
        raise ModelError(describe(found, where=where, fix=fix))


def _curves(
    signals: Signals, spans: Sequence[Span], mass: float | None, where: str
) -> tuple[dict[str, Reference], list[str]]:
    """Return the curves that are known in at least one stride, and notes about the others."""
    found, lost, joined = dict[str, Reference](), list[str](), list[str]()
    degrees = Scale("angle", 1.0)
    named: dict[str, tuple[Signal, Scale]] = {name: (each, degrees) for name, each in signals.angles.items()}
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
        factor = scale.factor / (_needed(mass, name, where) if scale.absolute else 1.0)
        found[name] = _reference(name, factor * rows, where, signals.bands.get(name), factor)
    if not found:
        ends = ", ".join(f"{first:.3g} to {last:.3g} s" for first, last in spans)
        text = f"no curve is known over a whole stride ({ends})"
        fix = "check that the files have the same times, and fill gaps: torsor.human.recordings.fill_gaps"
        raise ModelError(describe(text, where=where, fix=fix))
    notes = [f"{where}: left out, with gaps or at other times: {listing(lost)}"] if lost else []
    for note in notes:
        warn(note)
    if joined:
        notes.append(f"{where}: no heel strike to heel strike, joined where the file ends: {listing(joined, most=3)}")
    return found, notes


def _needed(mass: float | None, name: str, where: str) -> float:
    if mass is None:
        text = f"{name} is not divided by the mass, which is not known"
        fix = "give it: recorded_walk(..., mass=72.0), or add the file of the ground forces in N"
        raise ModelError(describe(text, where=where, fix=fix))
    return mass


def _reference(name: str, rows: Array, label: str, band: Array | None, factor: float) -> Reference:
    kind, own = REFERENCES[name].kind, REFERENCES[name].name
    if band is not None and len(band) and np.isfinite(band).all():
        at = np.linspace(0.0, 1.0, rows.shape[1])
        return Reference(kind, own, label, rows[0], factor * np.interp(at, np.linspace(0.0, 1.0, len(band)), band))
    return Reference(kind, own, label, rows.mean(axis=0), rows.std(axis=0, ddof=1) if len(rows) > 1 else None)
