"""Estimates of missing information: vertical axis, walking direction, and the foot on each plate."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, warn
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.recording import LOAD_THRESHOLD, GroundForces, Markers, at_times, runs

MIN_MARKERS = 8  # minimum number of markers that determine the extent of a person
MIN_EXTENT_RATIO = 1.5  # minimum ratio of the largest extent to the extent along other axes
MIN_DISTANCE = 0.5  # m; a person who moves less may be standing


def likely_axes(markers: Markers | None, up: Array | None = None) -> str:
    """Return the likely axes of a recording, such as "forward left up", or "" if they cannot be determined.

    ``up`` (3,) is the upward direction, if known. Otherwise, the axis with the largest extent of the markers is assumed
    to be vertical (an upright person). The axis along which the person walks is forward or back. If the person stays in
    place, the first horizontal axis is forward.

    Example:
        >>> heights = np.linspace(0.1, 1.7, 10)
        >>> body = np.stack([0.1 * np.sin(heights * 9), 0.1 * np.cos(heights * 9), heights], axis=1)
        >>> goes_back = np.stack([body, body - [0.0, 1.0, 0.0]])
        >>> likely_axes(Markers([f"m{k}" for k in range(10)], [0.0, 1.0], goes_back))
        'left back up'
    """
    vertical = vertical_axis(markers)
    if up is not None:
        axis = int(np.argmax(np.abs(up)))
        vertical = axis, float(np.sign(up[axis]))
    if vertical is None:
        return ""
    axis, sign = vertical
    travel = np.zeros(3)
    if markers is not None:  # displacement of the markers that are visible at both ends
        moved = markers.positions[-1] - markers.positions[0]
        moved = moved[np.isfinite(moved).all(axis=1)]
        travel = np.median(moved, axis=0) if len(moved) else travel
    travel[axis] = 0.0
    along = int(np.argmax(np.abs(travel)))
    forward, upward = np.zeros((2, 3))
    upward[axis] = sign
    if abs(travel[along]) > MIN_DISTANCE:
        forward[along] = np.sign(travel[along])
    else:
        forward[0 if axis else 1] = 1.0
    named = {"forward": forward, "up": upward, "right": np.cross(forward, upward)}
    opposite = {"forward": "back", "up": "down", "right": "left"}
    return " ".join(
        next(name if vector[k] > 0 else opposite[name] for name, vector in named.items() if vector[k]) for k in range(3)
    )


def vertical_axis(markers: Markers | None) -> tuple[int, float] | None:
    """Return the axis with the largest extent of an upright person and its sign, or None if it is ambiguous."""
    if markers is None or len(markers.names) < MIN_MARKERS:
        return None
    seen = markers.positions[markers.seen.sum(axis=1) >= MIN_MARKERS]
    if not len(seen):
        return None
    extents = np.median(np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1), axis=0)
    axis = int(np.argmax(extents))
    if extents[axis] < MIN_EXTENT_RATIO * np.sort(extents)[1]:
        return None
    return axis, 1.0 if np.nanmedian(seen[:, :, axis]) >= 0 else -1.0  # because the floor is near 0


SIDES = ("right", "left")
_PARTS = r"(heel|hee|toe|ank|calc|cal|mt|met|foot|mal|lmal|mmal)"
_SIDE_BEFORE = re.compile(rf"(?:.*:)?(right|left|r|l)[ ._-]?{_PARTS}", re.IGNORECASE)
_SIDE_AFTER = re.compile(rf"(?:.*:)?{_PARTS}\w*?[ ._-](right|left|r|l)", re.IGNORECASE)
MIN_CONTACT_TIME = 0.05  # s; shorter contacts are vibrations of a plate
MAX_FOOT_DISTANCE = 0.35  # m; a centre of pressure farther from the middle of a foot is not under it


class Contact(NamedTuple):
    """A ``plate`` that is loaded from sample ``first`` to ``last``, and the ``distances`` (m) of both feet.

    ``ways`` (K, 2) are the horizontal distances (m) of the feet from the centre of pressure at each sample.
    """

    plate: int
    first: int
    last: int
    distances: dict[str, float]
    ways: Array

    @property
    def side(self) -> str:
        """The foot with the smaller distance."""
        return min(SIDES, key=lambda side: self.distances[side])


def foot_markers(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the markers of the right and left foot by name, such as R.Heel, RTOE, heel_r and Left_Ankle.

    Example:
        >>> foot_markers(["R.Heel", "L.Toe", "R.Knee", "LHEE", "ankle_r", "RTHI"])
        {'right': ['R.Heel', 'ankle_r'], 'left': ['L.Toe', 'LHEE']}
    """
    feet: dict[str, list[str]] = {side: [] for side in SIDES}
    for name in names:
        before, after = _SIDE_BEFORE.match(name), _SIDE_AFTER.fullmatch(name)
        letter = before[1] if before else after[2] if after else ""
        if letter:
            feet["right" if letter[0].lower() == "r" else "left"].append(name)
    return feet


def contacts(forces: GroundForces, markers: Markers, feet: Mapping[str, Sequence[str]] | None = None) -> list[Contact]:
    """Return the plate contacts, with the horizontal distances of their centres of pressure from each foot.

    ``feet`` {"right": markers, "left": markers} are the markers of the feet, by default those of ``foot_markers``.
    """
    foot_names = foot_markers(markers.names) if feet is None else {side: list(feet.get(side, ())) for side in SIDES}
    for side in SIDES:
        if not foot_names[side]:
            fix = 'name them: feet={"right": ["R.Heel", "R.Toe"], "left": ["L.Heel", "L.Toe"]}'
            raise ModelError(f"no marker of the {side} foot is recognised by name", where=markers.source, fix=fix)
    up = up_axis(forces.axes)
    level = [k for k in range(3) if up is None or k != up[0]]
    places = {side: _place(markers.only(foot_names[side]), forces.times) for side in SIDES}
    loaded, shortest = [], MIN_CONTACT_TIME * (forces.rate or 1.0)
    for plate, on in enumerate(forces.loaded(LOAD_THRESHOLD).T):
        for first, last in runs(on):
            if last - first + 1 < shortest:
                continue
            samples = slice(first, last + 1)
            weights, distances, ways = forces.vertical[samples, plate], dict[str, float](), list[Array]()
            for side in SIDES:
                apart = np.linalg.norm((forces.centers[samples, plate] - places[side][samples])[:, level], axis=1)
                known = np.isfinite(apart)
                distances[side] = float(np.average(apart[known], weights=weights[known])) if known.any() else np.inf
                ways.append(apart)
            loaded.append(Contact(plate, first, last, distances, np.stack(ways, axis=1)))
    return loaded


def span_of(forces: GroundForces, contact: Contact) -> str:
    """Return the start and end times of a contact as text."""
    return f"{forces.times[contact.first]:g} to {forces.times[contact.last]:g} s"


def by_foot(forces: GroundForces, markers: Markers, feet: Mapping[str, Sequence[str]] | None = None) -> GroundForces:
    """Return the plate forces as forces on the "right" and "left" foot, assigning each contact to the nearer foot.

    ``feet`` {side: marker names} are the markers of each foot, by default ``foot_markers``. The force on a foot on two
    plates is the sum of both forces, with the corresponding centre of pressure. Contacts that are far from both feet
    (of a different person, or on a wrong plate) are omitted with a warning. Markers and forces must have the same axes.

    Example:
        >>> t = np.arange(100) / 1000
        >>> markers = Markers(["R.Heel", "L.Heel"], t, np.zeros((100, 2, 3)) + [[0.0, 0, 0.1], [0.0, 0, -0.1]])
        >>> force, zero = np.zeros((100, 1, 3)) + [0.0, 700.0, 0.0], np.zeros((100, 1, 3))
        >>> plates = GroundForces(["plate 1"], t, force, zero + [0.0, 0.0, -0.1], zero, axes="forward up right")
        >>> by_foot(plates, markers).forces[0].tolist()
        [[0.0, 0.0, 0.0], [0.0, 700.0, 0.0]]
    """
    wrenches = np.zeros((len(forces), 2, 6))
    wrench = forces.wrench()
    for contact in contacts(forces, markers, feet):
        if contact.distances[contact.side] > MAX_FOOT_DISTANCE:
            far = f"{span_of(forces, contact)} is {contact.distances[contact.side]:.2f} m from the nearer foot"
            what = f"{forces.names[contact.plate]}: its contact from {far} and is omitted"
            warn(what, where=forces.source, fix="check the corners and axes of the plate")
            continue
        samples = slice(contact.first, contact.last + 1)
        wrenches[samples, SIDES.index(contact.side)] += wrench[samples, contact.plate]
    zeros, height = np.zeros((2, len(forces), 2, 3))
    up = up_axis(forces.axes)
    if up is not None and forces.loaded().any():
        height[:, :, up[0]] = np.nanmedian(forces.centers[forces.loaded()][:, up[0]])
    empty = replace(forces, names=SIDES, forces=zeros, centers=height, moments=zeros, corners=None)
    return empty.with_wrench(wrenches)


def _place(markers: Markers, times: Array) -> Array:
    """Return the mean position (K, 3) of markers at ``times`` (K,); NaN outside the recording."""
    with np.errstate(invalid="ignore"):
        seen = markers.seen[:, :, None]
        count = seen.sum(axis=1)
        mean = np.where(seen, markers.positions, 0.0).sum(axis=1) / np.where(count, count, np.nan)
    return at_times(times, markers.times, mean, np.nan)
