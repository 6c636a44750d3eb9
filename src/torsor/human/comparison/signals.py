"""What a recording holds of one side of a person: angles, moments and ground forces, found by the names of columns.

Names are those of OpenSim (knee_angle_r, knee_angle_r_moment), of Torsor's body (right_knee_flexion), or of the curves
that are compared (knee_flexion, knee_extension, knee_power, vertical).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.human.comparison.strides import Signal, check_length
from torsor.human.comparison.units import DEGREES, RADIANS, Scale, checked_angles, guessed, range_of, said
from torsor.human.recordings import GroundForces, MotionTable
from torsor.human.recordings.axes import HUMAN

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
                    raise ModelError(describe(f"a second curve of {listing(twice)}", where=where, fix=fix))
                setattr(found, each.name, mine | theirs)
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is no curve at all."""
        return not (self.angles or self.moments or self.curves)


def places(names: Sequence[str], side: str, ending: str = "") -> dict[str, int]:
    """Return the index of the column of each coordinate of a side; ``ending`` is "_moment" for its moment.

    Example:
        >>> places(["time", "knee_angle_r", "hip_flexion_l", "right_hip_flexion"], "right")
        {'hip_flexion': 3, 'knee_flexion': 1}
    """
    letter, found = SHORT[side], dict[str, int]()
    for own, other in COORDINATES.items():
        # Without a side, a name of a moment would be one of comparisons with another sign.
        ways = [f"{other}_{letter}", f"{side}_{own}", f"{own}_{letter}", *([] if ending else [own])]
        at = _first(names, [f"{way}{ending}" for way in ways])
        if at is not None:
            found[own] = at
    return found


def _first(names: Sequence[str], ways: Sequence[str]) -> int | None:
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
        hits = dict[str, tuple[str, Signal]]()
        for name in curves:
            k = _first(names, [f"{name}_{letter}", f"{side}_{name}", name])
            if k is not None:
                hits[name] = table.names[k], signal(k)
        if hits:
            _direct(found, kind, hits, known, table.source)
    k = _first(names, [f"vertical_{SHORT[OTHER[side]]}", f"{OTHER[side]}_vertical"])
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
            raise ModelError(describe(f"the unit of {name} is not known", where=table.source, fix=fix))
        found.angles[own] = Signal(times, scale.factor * values)


def _direct(
    found: Signals, kind: str, hits: Mapping[str, tuple[str, Signal]], units: Mapping[str, str], where: str
) -> None:
    """Add curves of one kind; the largest of them shows the unit that no head says."""
    stated = [said(units[name], kind, where) for name, _ in hits.values() if name in units]
    together = np.concatenate([signal.values for _, signal in hits.values()])
    scale = stated[0] if stated else guessed(together, kind, where)
    if any(each != scale for each in stated):
        raise ModelError(describe(f"{kind}s in several units", where=where, allowed="one unit"))
    found.scales[kind] = scale
    found.curves |= {name: signal for name, (_, signal) in hits.items()}


def of_forces(forces: GroundForces, side: str) -> Signals:
    """Return the ground's force on a foot: vertical, forward and medial; a person who walks backwards is turned."""
    if side not in forces.names:
        fix = "torsor.human.recordings.by_foot(forces, markers) assigns plates to feet"
        allowed = f"forces named {side}; found: {listing(forces.names)}"
        raise ModelError(describe(f"no ground force of the {side} foot", where=forces.source, allowed=allowed, fix=fix))
    turned = forces.in_axes(HUMAN)
    medial, vertical, forward = turned.forces[:, turned.index(side)].T
    sign = 1.0 if side == "right" else -1.0  # x is to the left
    if len(forces) > 1 and _pushes_first(vertical, forward):
        text = f"the fore-aft force of the {side} foot pushes before it brakes: the person goes backwards in these axes"
        fix = 'they are turned about the vertical; load(path, axes="back up left") says so'
        warn(describe(text, where=forces.source, fix=fix))
        forward, sign = -forward, -sign
    own = {"vertical": vertical, "forward": forward, "medial": sign * medial}
    found = Signals(curves={name: Signal(forces.times, np.asarray(each)) for name, each in own.items()})
    found.scales["force"] = guessed(vertical, "force", forces.source)
    if OTHER[side] in forces.names:
        found.other["vertical"] = Signal(forces.times, turned.forces[:, turned.index(OTHER[side]), 1])
    return found


def _pushes_first(vertical: Array, forward: Array) -> bool:
    """Whether a foot pushes forward while its load grows, and brakes while it falls: people do the opposite."""
    with np.errstate(invalid="ignore"):
        loading = np.gradient(np.nan_to_num(vertical))
        return bool(np.nansum(loading * forward) > 0)
