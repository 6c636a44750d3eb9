"""Likely mistakes in ground forces: wrong axes, offsets, places, and feet."""

import numpy as np

from torsor.base.errors import ModelError
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.feet import FARTHEST, MIN_CONTACT_TIME, SIDES, Contact, contacts, foot_distances
from torsor.human.recordings.findings import Finding, finding
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.markers import Markers
from torsor.human.recordings.synchrony import synchrony_findings
from torsor.human.recordings.walking_inspection import contact_findings

STANDS = 100.0  # N: more than any noise or offset of a plate, less than any person
OFFSET = 5.0  # N: a plate that nobody stands on shows less
OUTSIDE = 0.1  # m: a centre of pressure is on the plate; this much is the error of its corners
FAR = 50.0  # m: no laboratory is larger
# N: people who stand are far above the one, people who jump below the other; in kN or mN they are not.
TINY, HUGE = 5.0, 20_000.0
STEADY, EMPTY = 0.8, 0.02  # of forces in kN: how upright they are while loaded, and the largest part while not loaded
TWIST = 100.0  # N m: the free moment of a foot stays below 30
BOTH_FEET_SHARE, FOOT_MARGIN = (
    0.15,
    0.1,
)  # part of a contact nearer to each foot, and m between them, from which both feet are on it

_IN_NEWTONS = "give them in N: multiply those in kN by 1000, divide those in mN by 1000"


def force_findings(forces: GroundForces) -> list[Finding]:
    """Return the likely mistakes in ground forces.

    Example:
        >>> zero = np.zeros((10, 1, 3))
        >>> t, sideways = np.arange(10) / 10, zero + [0, 0, 700.0]
        >>> found = force_findings(GroundForces(["right"], t, sideways, zero, zero, axes="forward up right"))
        >>> [each.kind for each in found]
        ['axes']
    """
    wrong = _units(forces)
    return wrong or [*_force_axes(forces), *_offsets(forces), *_places(forces)]


def foot_findings(forces: GroundForces, markers: Markers) -> list[Finding]:
    """Return the likely mistakes that forces and markers together show: no common time, swapped feet, shared plates."""
    overlap = min(forces.times[-1], markers.times[-1]) - max(forces.times[0], markers.times[0])
    if overlap <= 0:
        ends = [f"{each.times[0]:g} to {each.times[-1]:g} s" for each in (forces, markers)]
        place = f"forces from {ends[0]} and markers from {ends[1]} have no time in common"
        return finding("times", [place], forces.source, "shift the times of one, or load files of the same trial")
    if forces.axes != markers.axes:
        place = f"forces are in axes {forces.axes!r}, markers in {markers.axes!r}"
        return finding("axes", [place], forces.source, "forces.in_axes(markers.axes)")
    try:
        found = contacts(forces, markers)
    except ModelError:  # no marker of a foot is known by its name: nothing can be said
        return []
    both = _both_feet(forces, markers, found)
    wrong = [*_swapped(forces, found), *_shared(forces, found), *_no_foot(forces, found), *both]
    return wrong or [*synchrony_findings(forces, markers), *contact_findings(forces, markers, found)]


def _units(forces: GroundForces) -> list[Finding]:
    """Return forces in kN or mN, and free moments in N mm."""
    size = np.linalg.norm(forces.forces, axis=2)
    largest, up = float(np.nanmax(size, initial=0.0)), up_axis(forces.axes)
    places = []
    if largest > HUGE:
        places.append(f"the largest force is {largest:.4g} N, which no person makes")
    elif 0 < largest < TINY and up is not None:
        plate = int(np.argmax(np.nanmax(size, axis=0)))
        on = size[:, plate] > largest / 2
        upright = np.abs(forces.forces[on, plate, up[0]]).mean() > STEADY * size[on, plate].mean()
        if upright and np.quantile(size[:, plate], 0.05) < EMPTY * largest:
            places.append(f"the largest force is {largest:.3g} N: the forces are likely in kN")
    found = finding("unit", places, forces.source, _IN_NEWTONS)
    moments = np.where(forces.loaded()[:, :, None], forces.moments, 0.0)
    twist = np.abs(np.nan_to_num(moments)).max(axis=(0, 2), initial=0.0)
    turned = [
        f"{name}: its free moment reaches {each:.4g} N m"
        for name, each in zip(forces.names, twist, strict=True)
        if each > TWIST
    ]
    return found + finding(
        "unit", turned, forces.source, "moments are in N m, about the centre of pressure: divide those in N mm by 1000"
    )


def _force_axes(forces: GroundForces) -> list[Finding]:
    up = up_axis(forces.axes)
    if up is None:
        return []
    places = []
    for k, name in enumerate(forces.names):
        on = np.linalg.norm(forces.forces[:, k], axis=1) > STANDS
        if not on.any():
            continue
        mean = forces.forces[on, k].mean(axis=0)
        axis = int(np.argmax(np.abs(mean)))
        if axis != up[0] or mean[axis] * up[1] < 0:
            way = f"{'-' if mean[axis] < 0 else ''}{'xyz'[axis]}"
            places.append(
                f"{name}: the mean force, {np.linalg.norm(mean):.0f} N, is along {way}, up is "
                f"{'-' if up[1] < 0 else ''}{'xyz'[up[0]]}"
            )
    fix = 'say the axes, load(path, axes="forward left up"), or change the sign where forces on the plate are given'
    return finding("axes", places, forces.source, fix)


def _offsets(forces: GroundForces) -> list[Finding]:
    """Return offsets: of plates that are loaded at times, and else show a small force that stays."""
    places = []
    for k, name in enumerate(forces.names):
        size = np.linalg.norm(forces.forces[:, k], axis=1)
        low = float(np.quantile(size, 0.05))
        if OFFSET < low < STANDS < size.max():
            offset = np.median(forces.forces[size <= low * 1.5, k], axis=0)
            places.append(
                f"{name}: {low:.0f} N while nobody is on it (x, y, z: {', '.join(f'{each:.1f}' for each in offset)})"
            )
    fix = "forces.without_offset(first, last) with times (s) when nobody is on the plate"
    return finding("offset", places, forces.source, fix)


def _places(forces: GroundForces) -> list[Finding]:
    places, far = [], []
    for k, name in enumerate(forces.names):
        on = np.flatnonzero(forces.vertical[:, k] > STANDS)
        centers = forces.centers[on, k]
        known = np.isfinite(centers).all(axis=1)
        if not known.any():
            continue
        middle = np.median(centers[known], axis=0)
        if np.abs(middle).max() > FAR:
            far.append(f"{name}: its centre of pressure is at {np.abs(middle).max():.4g} m")
        elif forces.corners is not None:
            edges = np.array([forces.corners[k].min(axis=0), forces.corners[k].max(axis=0)])
            beyond = np.maximum(edges[0] - middle, middle - edges[1])
            level = np.flatnonzero(np.ptp(edges, axis=0) > OUTSIDE)
            worst = float(beyond[level].max()) if len(level) else 0.0
            if worst > OUTSIDE:
                places.append(f"{name}: its centre of pressure is {worst:.2f} m outside of its corners")
    found = finding("unit", far, forces.source, "places are in m: divide those in mm by 1000")
    return found + finding("place", places, forces.source, "check the corners, the origin and the axes of the plate")


def _swapped(forces: GroundForces, found: list[Contact]) -> list[Finding]:
    named = [each for each in found if forces.names[each.plate] in SIDES]
    wrong = [each for each in named if each.side != forces.names[each.plate] and each.distances[each.side] < FARTHEST]
    if not wrong:
        return []
    places = [
        f"{forces.names[each.plate]!r} from {forces.times[each.first]:g} to {forces.times[each.last]:g} s is below the "
        f"{each.side} foot ({each.distances[each.side]:.2f} m, the other {max(each.distances.values()):.2f} m)"
        for each in wrong
    ]
    fix = 'forces.renamed({"right": "left", "left": "right"})'
    return finding("feet", places, forces.source, fix, "feet are swapped: ")


def _shared(forces: GroundForces, found: list[Contact]) -> list[Finding]:
    """One foot on two plates: two contacts of the same foot at the same time."""
    places, least = [], MIN_CONTACT_TIME * (forces.rate or 1.0)
    for k, one in enumerate(found):
        for other in found[k + 1 :]:
            first, last = max(one.first, other.first), min(one.last, other.last)
            near = max(one.distances[one.side], other.distances[one.side]) < FARTHEST
            if one.plate != other.plate and one.side == other.side and last - first > least and near:
                names = f"{forces.names[one.plate]} and {forces.names[other.plate]}"
                places.append(
                    f"the {one.side} foot is on {names} from {forces.times[first]:g} to {forces.times[last]:g} s"
                )
    return finding("shared", places, forces.source, "torsor.human.recordings.by_foot(forces, markers) adds both")


def _both_feet(forces: GroundForces, markers: Markers, found: list[Contact]) -> list[Finding]:
    """Two feet on one plate: its centre of pressure goes from below one foot to below the other."""
    places = []
    for each in found:
        apart = foot_distances(forces, markers, each)
        nearer = np.where(np.abs(apart[:, 0] - apart[:, 1]) < FOOT_MARGIN, 0, np.sign(apart[:, 1] - apart[:, 0]))
        near = np.nanmin(apart, axis=1, initial=np.inf) < FARTHEST
        if min(np.mean(near & (nearer > 0)), np.mean(near & (nearer < 0))) > BOTH_FEET_SHARE:
            times = f"{forces.times[each.first]:g} to {forces.times[each.last]:g} s"
            places.append(f"both feet are on {forces.names[each.plate]} from {times}")
    fix = "leave this contact out: no plate tells the forces of two feet apart"
    return finding("shared", places, forces.source, fix)


def _no_foot(forces: GroundForces, found: list[Contact]) -> list[Finding]:
    places = [
        f"{forces.names[each.plate]} is loaded from {forces.times[each.first]:g} to {forces.times[each.last]:g} s, "
        f"{each.distances[each.side]:.2f} m from the nearer foot"
        for each in found
        if FARTHEST < each.distances[each.side] < np.inf
    ]
    return finding("place", places, forces.source, "check the corners and the axes of the plate, and the unit")
