"""Quality checks of recordings, which detect likely errors in one or more files of a trial."""

import re
from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.guesses import (
    MAX_FOOT_DISTANCE,
    MIN_CONTACT_TIME,
    SIDES,
    Contact,
    contacts,
    foot_markers,
    likely_axes,
    span_of,
    vertical_axis,
)
from torsor.human.recordings.recording import GroundForces, Markers, MotionTable, Recording, at_times, runs

MAX_PLACES = 5  # maximum number of locations in one finding
_RENAME = "exchange their names if they are: markers.renamed({a: b, b: a})"


class Finding(NamedTuple):
    """A likely error: its ``kind``, such as "swap", and a ``message`` with file, frame, marker or plate, and fix.

    Example:
        >>> print(Finding("gap", "walk.trc: marker 'toe' is missing"))
        walk.trc: marker 'toe' is missing
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return self.message


def finding(kind: str, places: Sequence[str], source: str, fix: str, before: str = "") -> list[Finding]:
    """Return a finding that lists the first locations, or an empty list if there are none."""
    if not places:
        return []
    more = f"; ... {len(places)} in all" if len(places) > MAX_PLACES else ""
    what = f"{before}{'; '.join(places[:MAX_PLACES])}{more}"
    return [Finding(kind, describe(what, where=source, fix=fix))]


# Likely errors in markers and forces of a walking person.
#
# A foot in stance does not move, a toe is ahead of its heel, a knee is above its ankle, and the ground brakes before it
# pushes forward. There are no findings for a person who does not walk.

SPEED_INTERVAL = 0.05  # s; interval over which marker speeds are computed
MAX_STANCE_HEIGHT = 0.02  # m; largest height of a marker of a stance foot above its lowest position
MIN_WALKING_SPEED = 0.3  # m/s; slower motion may be standing or sway
ORDER_MARGIN, WRONG_ORDER_SHARE = 0.02, 0.9  # distance (m) and fraction of frames above which an order is wrong
CONTACT_MARGIN = 0.25  # s; a contact closer to an end of the recording may be incomplete
CONTACT_SHARE, FORCE_SHARE = 0.4, 0.02  # fraction of a contact at its ends, and minimum fraction of the vertical force
# Names of landmarks without a side, from top to bottom.
_LEVELS = [
    re.compile(pattern, re.I) for pattern in ("(sho|acr)", "(asi|psi|hip)", "(kne|lfe|mfe|lfc)", "(ank|lmal|mmal|mal)")
]
_SIDE = re.compile(r"(?:.*:)?(?:(right|left|r|l)[ ._-]?(.+)|(.+?)[ ._-](right|left|r|l))", re.IGNORECASE)


class Walk(NamedTuple):
    """The walk of a person: horizontal direction ``way`` (3,), and velocity ``belt`` (3,) (m/s) of stance feet."""

    way: Array
    belt: Array


def walk_of(markers: Markers) -> Walk | None:
    """Return the walk of a person, overground or on a treadmill, or None if the person appears not to walk."""
    up = up_axis(markers.axes)
    if up is None or len(markers) < 3 or not markers.rate:
        return None
    level = np.array([float(k != up[0]) for k in range(3)])
    standing = [_standing_velocity(markers.only(names), up) for names in foot_markers(markers.names).values() if names]
    if len(standing) < 2 or any(mean is None for mean in standing):
        return None
    belts = np.array([mean for mean in standing if mean is not None]) * level
    belt = belts.mean(axis=0)
    if np.linalg.norm(belts[0] - belts[1]) > MIN_WALKING_SPEED or np.linalg.norm(belt) < MIN_WALKING_SPEED:
        belt = np.zeros(3)
    velocity = _mean_velocity(markers) * level - belt
    speed = float(np.linalg.norm(velocity))
    return Walk(velocity / speed, belt) if speed > MIN_WALKING_SPEED else None


def walking_findings(markers: Markers) -> list[Finding]:
    """Return findings from markers alone: a treadmill, or landmarks in the wrong order."""
    walk, findings = walk_of(markers), _heights(markers)
    if walk is None:
        return findings
    names, away = foot_markers(markers.names), []
    for side in SIDES:
        heels, toes = ([name for name in names[side] if re.search(part, name, re.I)] for part in (r"hee|cal", "toe"))
        for heel, toe in product(heels, toes):
            ahead = (markers.position(toe) - markers.position(heel)) @ walk.way
            if np.mean(ahead[np.isfinite(ahead)] < -ORDER_MARGIN) > WRONG_ORDER_SHARE:
                away.append(f"{heel!r} is ahead of {toe!r}")
    findings += finding("swap", away, markers.source, _RENAME, "markers are in the wrong order: ")
    speed = float(np.linalg.norm(walk.belt))
    if speed:
        what = f"stance feet move backward at {speed:.2f} m/s: the person walks on a treadmill"
        fix = "apply torsor.human.recordings.overground(part, speed) to markers and forces, which adds the belt speed"
        findings += finding("treadmill", [what], markers.source, fix)
    return findings


def contact_findings(forces: GroundForces, markers: Markers, plate_contacts: list[Contact]) -> list[Finding]:
    """Return findings from complete contacts of known feet, which indicate forces with a wrong sign.

    The ground first brakes a foot and later pushes it forward, and it pushes both feet inwards.
    """
    walk, up = walk_of(markers), up_axis(forces.axes)
    if walk is None or up is None:
        return []
    upward, edge = np.zeros(3), CONTACT_MARGIN * (forces.rate or 1.0)
    upward[up[0]] = up[1]
    right, wrong, outward = np.cross(walk.way, upward), [], []
    for contact in plate_contacts:
        is_whole = contact.first > edge and contact.last < len(forces) - edge
        if not is_whole or contact.distances[contact.side] >= MAX_FOOT_DISTANCE:
            continue
        part_forces = forces.forces[contact.first : contact.last + 1, contact.plate]
        weight, count = float(np.mean(part_forces @ upward)), max(1, int(CONTACT_SHARE * len(part_forces)))
        first, last = (float(np.mean(part @ walk.way)) / weight for part in (part_forces[:count], part_forces[-count:]))
        wrong.append(first > FORCE_SHARE and last < -FORCE_SHARE)
        aside = float(np.mean(part_forces @ right)) / weight
        outward.append((aside if contact.side == "right" else -aside) > FORCE_SHARE)
    fix = "change the sign of these forces, or pass the axes of the file: load(path, axes=...)"
    places = []
    if wrong and all(wrong):
        places.append("the ground pushes forward first and brakes later in all contacts: fore-aft forces are reversed")
    if outward and all(outward):
        places.append("the ground pushes the feet apart in all contacts: lateral forces are reversed")
    return finding("axes", places, forces.source, fix)


def _heights(markers: Markers) -> list[Finding]:
    """Return a finding if a landmark of an upright person is below one that should be lower."""
    vertical = vertical_axis(markers)
    if vertical is None:
        return []
    axis, sign = vertical
    known: dict[str, list[tuple[int, str]]] = {}
    for name in markers.names:
        match = _SIDE.fullmatch(name)
        if match is None:
            continue
        side, part = (match[1] or match[4])[0].lower(), match[2] or match[3]
        level = next((k for k, pattern in enumerate(_LEVELS) if pattern.match(part)), None)
        if level is not None:
            known.setdefault(side, []).append((level, name))
    places = []
    for group in known.values():
        for (level, name), (other_level, other) in permutations(group, 2):
            apart = sign * (markers.position(name) - markers.position(other))[:, axis]
            below = apart[np.isfinite(apart)] < -ORDER_MARGIN
            if level < other_level and len(below) and np.mean(below) > WRONG_ORDER_SHARE:
                places.append(f"{name!r} is below {other!r}")
    return finding("swap", places, markers.source, _RENAME, "markers are in the wrong order: ")


def _standing_velocity(markers: Markers, up: tuple[int, float]) -> Array | None:
    """Return the median velocity (3,) (m/s) of foot markers while they are low, or None if they never are."""
    span, velocities = max(1, round(SPEED_INTERVAL * markers.rate)), list[Array]()
    for k in range(len(markers.names)):
        x = markers.positions[:, k]
        height = up[1] * x[:, up[0]]
        if not np.isfinite(height).any():
            continue
        low = height < np.nanquantile(height, 0.05) + MAX_STANCE_HEIGHT
        took = (markers.times[span:] - markers.times[:-span])[:, None]
        velocities.append(((x[span:] - x[:-span]) / took)[low[span:] & low[:-span]])
    rows = np.concatenate(velocities) if velocities else np.zeros((0, 3))
    rows = rows[np.isfinite(rows).all(axis=1)]
    return np.median(rows, axis=0) if len(rows) else None


def _mean_velocity(markers: Markers) -> Array:
    """Return the median (3,) (m/s) over the markers of their mean velocities between first and last visible frames."""
    velocities = []
    for k, seen in enumerate(markers.seen.T):
        frames = np.flatnonzero(seen)
        if len(frames) > 1:
            first, last = frames[0], frames[-1]
            moved = markers.positions[last, k] - markers.positions[first, k]
            velocities.append(moved / (markers.times[last] - markers.times[first]))
    return np.median(velocities, axis=0) if velocities else np.zeros(3)


# Synchrony of forces and markers, because the ground force accelerates the body.
#
#     sum of forces = m a + constant        a: vertical and horizontal accelerations of the markers of the upper body
#
# Both are compared at several time shifts while both feet are on plates. The force is averaged with the weights with
# which second differences of the markers average accelerations.

DIFFERENCE_STEP = 0.04  # s; step of second differences
UPPER_FRACTION = 0.5  # fraction of the largest marker height above which markers move like the centre of mass
FULL_LOAD_FRACTION = 0.5  # fraction of the largest sum of forces; smaller sums occur only if a foot misses the plates
MIN_COMMON_TIME = 0.4  # s; minimum common time
SHIFTS = np.linspace(-0.15, 0.15, 61)  # s
MIN_SHIFT = 0.03  # s; smallest reported shift (good recordings are within 10 ms)
# Largest unexplained variance at the best shift, and smallest improvement compared with no shift.
MAX_UNEXPLAINED, MIN_IMPROVEMENT = 0.6, 0.1


def synchrony_findings(forces: GroundForces, markers: Markers) -> list[Finding]:
    """Return a finding if forces and marker accelerations agree much better with a time shift."""
    left = _disagreement(forces, markers)
    if not np.isfinite(left).any():
        return []
    best, now = int(np.nanargmin(left)), int(np.argmin(np.abs(SHIFTS)))
    shift = float(SHIFTS[best])
    if abs(shift) < MIN_SHIFT or left[best] > MAX_UNEXPLAINED or not left[now] - left[best] > MIN_IMPROVEMENT:
        return []
    way = "before" if shift > 0 else "after"
    what = f"forces are about {1000 * abs(shift):.0f} ms {way} the motion that they cause"
    fix = f"add {shift:.3f} s to the force times, or synchronise the two files"
    return finding("times", [what], forces.source, fix)


def _disagreement(forces: GroundForces, markers: Markers) -> Array:
    """Return the fraction of the force variance that accelerations do not explain at each shift; NaN if unknown."""
    unexplained, up = np.full(len(SHIFTS), np.nan), up_axis(forces.axes)
    if up is None or min(markers.rate, forces.rate) * DIFFERENCE_STEP < 1:
        return unexplained
    a, step = _accelerations(markers, up), round(DIFFERENCE_STEP * markers.rate) / markers.rate
    whole = np.where(forces.loaded()[:, :, None], forces.forces, 0.0).sum(axis=1)
    upward = whole[:, up[0]] * up[1]
    full = runs(np.asarray(upward > FULL_LOAD_FRACTION * np.quantile(upward, 0.95)))
    if not full:
        return unexplained
    width = max(1, round(step * forces.rate))
    weights = np.convolve(np.ones(width), np.ones(width)) / width**2
    mean = np.stack([np.convolve(column, weights, "same") for column in whole.T], axis=1)
    first, last = max(full, key=lambda run: run[1] - run[0])
    times, mean = forces.times[first : last + 1], mean[first : last + 1]
    for k, shift in enumerate(SHIFTS):
        there = at_times(times + shift, markers.times, a, np.nan)
        known = np.isfinite(there).all(axis=1)
        if known.sum() > MIN_COMMON_TIME * forces.rate:
            x, y = there[known] - there[known].mean(axis=0), mean[known] - mean[known].mean(axis=0)
            mass = max(0.0, float((x * y).sum() / max((x * x).sum(), 1e-30)))
            unexplained[k] = ((y - mass * x) ** 2).sum() / max((y**2).sum(), 1e-30)
    return unexplained


def _accelerations(markers: Markers, up: tuple[int, float]) -> Array:
    """Return the mean acceleration (K, 3) (m/s^2) of the upper markers; NaN at the ends and in gaps."""
    heights = np.where(markers.seen, up[1] * markers.positions[:, :, up[0]], -np.inf)
    middle = np.median(heights, axis=0)
    x = markers.positions[:, middle > UPPER_FRACTION * middle.max()].mean(axis=1)
    half, accelerations = max(1, round(DIFFERENCE_STEP * markers.rate)), np.full((len(markers), 3), np.nan)
    if len(markers) > 2 * half:
        accelerations[half:-half] = (x[2 * half :] - 2 * x[half:-half] + x[: -2 * half]) * (markers.rate / half) ** 2
    return accelerations


# Likely errors in ground forces: wrong axes, offsets, positions and feet.

STANDING_FORCE = 100.0  # N; larger than any noise or offset of a plate, and smaller than the weight of any person
MAX_EMPTY_FORCE = 5.0  # N; largest force of an empty plate
CORNER_TOLERANCE = 0.1  # m; tolerance for a centre of pressure outside the corners of its plate
MAX_DISTANCE = 50.0  # m; larger than any laboratory
# N; forces of standing people are far above the first limit, and forces of jumps are below the second, unless in kN or
# mN.
MIN_PEAK_FORCE, MAX_PEAK_FORCE = 5.0, 20_000.0
# Forces in kN: minimum vertical fraction while loaded, and largest fraction while unloaded.
MIN_VERTICAL_SHARE, MAX_EMPTY_SHARE = 0.8, 0.02
MAX_FREE_MOMENT = 100.0  # N m; the free moment of a foot is below 30
# fraction of a contact nearer to each foot, and distance between the feet (m), above which both feet are on the plate
BOTH_FEET_SHARE, FOOT_MARGIN = 0.15, 0.1


def force_findings(forces: GroundForces) -> list[Finding]:
    """Return the likely errors in ground forces."""
    return _units(forces) or [*_force_axes(forces), *_offsets(forces), *_places(forces)]


def foot_findings(forces: GroundForces, markers: Markers) -> list[Finding]:
    """Return likely errors in the combination of forces and markers: no common time, swapped feet, shared plates."""
    overlap = min(forces.times[-1], markers.times[-1]) - max(forces.times[0], markers.times[0])
    if overlap <= 0:
        ends = [f"{part.times[0]:g} to {part.times[-1]:g} s" for part in (forces, markers)]
        place = f"forces from {ends[0]} and markers from {ends[1]} do not overlap in time"
        return finding("times", [place], forces.source, "shift the times of one, or load files of the same trial")
    if forces.axes != markers.axes:
        place = f"forces are in axes {forces.axes!r}, markers in {markers.axes!r}"
        return finding("axes", [place], forces.source, "forces.in_axes(markers.axes)")
    try:
        plate_contacts = contacts(forces, markers)
    except ModelError:  # there are no findings if foot markers are not recognised by name
        return []
    wrong = [item for kind in (_swapped, _shared, _no_foot, _both_feet) for item in kind(forces, plate_contacts)]
    return wrong or [*synchrony_findings(forces, markers), *contact_findings(forces, markers, plate_contacts)]


def _units(forces: GroundForces) -> list[Finding]:
    """Return findings for forces in kN or mN, and free moments in N mm."""
    size = np.linalg.norm(forces.forces, axis=2)
    largest, up = float(np.nanmax(size, initial=0.0)), up_axis(forces.axes)
    places = []
    if largest > MAX_PEAK_FORCE:
        places.append(f"the largest force is {largest:.4g} N, which is impossible for a person")
    elif 0 < largest < MIN_PEAK_FORCE and up is not None:
        plate = int(np.argmax(np.nanmax(size, axis=0)))
        on = size[:, plate] > largest / 2
        upright = np.abs(forces.forces[on, plate, up[0]]).mean() > MIN_VERTICAL_SHARE * size[on, plate].mean()
        if upright and np.quantile(size[:, plate], 0.05) < MAX_EMPTY_SHARE * largest:
            places.append(f"the largest force is {largest:.3g} N: the forces are likely in kN")
    fix = "pass them in N: multiply those in kN by 1000, divide those in mN by 1000"
    findings = finding("unit", places, forces.source, fix)
    moments = np.where(forces.loaded()[:, :, None], forces.moments, 0.0)
    twist = np.abs(np.nan_to_num(moments)).max(axis=(0, 2), initial=0.0)
    turned = [
        f"{name}: its free moment reaches {largest:.4g} N m"
        for name, largest in zip(forces.names, twist, strict=True)
        if largest > MAX_FREE_MOMENT
    ]
    fix = "moments are in N m, about the centre of pressure: divide those in N mm by 1000"
    return findings + finding("unit", turned, forces.source, fix)


def _force_axes(forces: GroundForces) -> list[Finding]:
    up = up_axis(forces.axes)
    if up is None:
        return []
    places = []
    for k, name in enumerate(forces.names):
        on = np.linalg.norm(forces.forces[:, k], axis=1) > STANDING_FORCE
        if not on.any():
            continue
        mean = forces.forces[on, k].mean(axis=0)
        axis = int(np.argmax(np.abs(mean)))
        if axis != up[0] or mean[axis] * up[1] < 0:
            way = f"{'-' if mean[axis] < 0 else ''}{'xyz'[axis]}"
            said = f"{'-' if up[1] < 0 else ''}{'xyz'[up[0]]}"
            places.append(f"{name}: the mean force, {np.linalg.norm(mean):.0f} N, is along {way}, but up is {said}")
    fix = 'pass the axes, load(path, axes="forward left up"), or change the sign if the file has forces on the plate'
    return finding("axes", places, forces.source, fix)


def _offsets(forces: GroundForces) -> list[Finding]:
    """Return findings on offsets of plates that measure a small constant force while they are unloaded."""
    places = []
    for k, name in enumerate(forces.names):
        size = np.linalg.norm(forces.forces[:, k], axis=1)
        low = float(np.quantile(size, 0.05))
        if MAX_EMPTY_FORCE < low < STANDING_FORCE < size.max():
            offset = ", ".join(
                f"{component:.1f}" for component in np.median(forces.forces[size <= low * 1.5, k], axis=0)
            )
            places.append(f"{name}: {low:.0f} N while the plate is empty (x, y, z: {offset})")
    fix = "use forces.without_offset(first, last) with times (s) when the plate is empty"
    return finding("offset", places, forces.source, fix)


def _places(forces: GroundForces) -> list[Finding]:
    places, far = [], []
    for k, name in enumerate(forces.names):
        centers = forces.centers[np.flatnonzero(forces.vertical[:, k] > STANDING_FORCE), k]
        known = np.isfinite(centers).all(axis=1)
        if not known.any():
            continue
        middle = np.median(centers[known], axis=0)
        if np.abs(middle).max() > MAX_DISTANCE:
            far.append(f"{name}: its centre of pressure is at {np.abs(middle).max():.4g} m")
        elif forces.corners is not None:
            edges = np.array([forces.corners[k].min(axis=0), forces.corners[k].max(axis=0)])
            beyond = np.maximum(edges[0] - middle, middle - edges[1])
            level = np.flatnonzero(np.ptp(edges, axis=0) > CORNER_TOLERANCE)
            worst = float(beyond[level].max()) if len(level) else 0.0
            if worst > CORNER_TOLERANCE:
                places.append(f"{name}: its centre of pressure is {worst:.2f} m outside its corners")
    findings = finding("unit", far, forces.source, "positions are in m: divide those in mm by 1000")
    return findings + finding("place", places, forces.source, "check the corners, the origin and the axes of the plate")


def _swapped(forces: GroundForces, plate_contacts: list[Contact]) -> list[Finding]:
    named = [contact for contact in plate_contacts if forces.names[contact.plate] in SIDES]
    places = [
        f"{forces.names[contact.plate]!r} from {span_of(forces, contact)} is below the {contact.side} foot "
        f"({contact.distances[contact.side]:.2f} m, the other {max(contact.distances.values()):.2f} m)"
        for contact in named
        if contact.side != forces.names[contact.plate] and contact.distances[contact.side] < MAX_FOOT_DISTANCE
    ]
    fix = 'use forces.renamed({"right": "left", "left": "right"})'
    return finding("feet", places, forces.source, fix, "feet are swapped: ")


def _shared(forces: GroundForces, plate_contacts: list[Contact]) -> list[Finding]:
    """Return findings for one foot on two plates, which has two simultaneous contacts."""
    places, least = [], MIN_CONTACT_TIME * (forces.rate or 1.0)
    for one, other in combinations(plate_contacts, 2):
        first, last = max(one.first, other.first), min(one.last, other.last)
        near = max(one.distances[one.side], other.distances[one.side]) < MAX_FOOT_DISTANCE
        if one.plate != other.plate and one.side == other.side and last - first > least and near:
            names = f"{forces.names[one.plate]} and {forces.names[other.plate]}"
            times = span_of(forces, one._replace(first=first, last=last))
            places.append(f"the {one.side} foot is on {names} from {times}")
    return finding("shared", places, forces.source, "use torsor.human.recordings.by_foot(forces, markers)")


def _both_feet(forces: GroundForces, plate_contacts: list[Contact]) -> list[Finding]:
    """Return findings for two feet on one plate, whose centre of pressure moves from one foot to the other."""
    places = []
    for contact in plate_contacts:
        ahead = contact.ways[:, 1] - contact.ways[:, 0]
        nearer = np.where(np.abs(ahead) < FOOT_MARGIN, 0, np.sign(ahead))
        near = np.nanmin(contact.ways, axis=1, initial=np.inf) < MAX_FOOT_DISTANCE
        if min(np.mean(near & (nearer > 0)), np.mean(near & (nearer < 0))) > BOTH_FEET_SHARE:
            places.append(f"both feet are on {forces.names[contact.plate]} from {span_of(forces, contact)}")
    fix = "omit this contact: one plate cannot separate the forces of two feet"
    return finding("shared", places, forces.source, fix)


def _no_foot(forces: GroundForces, plate_contacts: list[Contact]) -> list[Finding]:
    places = [
        f"{forces.names[contact.plate]} is loaded from {span_of(forces, contact)}, "
        f"{contact.distances[contact.side]:.2f} m from the nearer foot"
        for contact in plate_contacts
        if MAX_FOOT_DISTANCE < contact.distances[contact.side] < np.inf
    ]
    return finding("place", places, forces.source, "check the corners and the axes of the plate, and the unit")


# Likely errors in markers: wrong unit, gaps, jumps and exchanged names.

# Range of the extent (m) of the markers of one person, from a hand to raised arms; far outside, the unit is wrong.
MIN_EXTENT, MAX_EXTENT = 0.03, 5.0
MIN_MARKERS = 4  # minimum number of markers for a meaningful extent
# A marker deviates from linear motion between two frames by at most 30 g (the largest accelerations at heel strike)
# plus 30 mm (more than any skin motion).
MAX_SKIN_MOTION, MAX_ACCELERATION = 0.03, 300.0  # m, m/s²
MIN_MARKER_DISTANCE = 0.01  # m; minimum distance between markers; smaller exchanges are noise
MIN_PAIRS = 3  # minimum number of pairs of right and left markers, whose majority determines the right side
# distance (m) and fraction of frames, because a leg that crosses the other one is not an exchange
EXCHANGE_MARGIN, EXCHANGE_SHARE = 0.02, 0.9
_WORDS = {"R": "L", "r": "l", "Right": "Left", "right": "left", "RIGHT": "LEFT"}
# Right_heel, R.Heel, RHEE (optionally preceded by a person's name and a colon) and heel_r.
_RIGHT = [re.compile(f"(?:.*:)?{pattern}") for pattern in ("(RIGHT|Right|right)", "([Rr])[ ._-]", "(R)[A-Z]")]
_RIGHT.append(re.compile(".*[ ._-]([Rr]|Right|right)$"))
MIN_FROZEN_TIME, MIN_FROZEN_FRAMES = 0.1, 5  # minimum time (s) and number of frames at exactly the same position
SWAP_FRACTION = 0.1  # fraction of the squared error that remains after exchanging two names


def marker_findings(markers: Markers) -> list[Finding]:
    """Return the likely errors in markers."""
    wrong = _unit(markers)
    if wrong:  # distances are then meaningless
        return [*wrong, *_missing(markers)]
    findings = _marker_axes(markers)
    swaps = swapped(markers)
    swapped_at = {(frame, name) for frame, *names in swaps for name in names}
    exchanged = [f"{a!r} and {b!r} at frame {k + 1} ({markers.times[k]:g} s)" for k, a, b in swaps]
    fix = "exchange them in these frames, or remove the frames and fill the gap"
    findings += finding("swap", exchanged, markers.source, fix, "markers exchange places: ")
    sides = [f"{right!r} and {left!r}" for right, left in exchanged_sides(markers)]
    before = "right and left markers are on opposite sides compared with others: "
    findings += finding("sides", sides, markers.source, _RENAME, before)
    far = [
        f"{name!r} at frame {k + 1} ({markers.times[k]:g} s) by {1000 * by:.0f} mm"
        for k, name, by in jumps(markers)
        if (k, name) not in swapped_at
    ]
    fix = "remove these frames of the marker (NaN) and call fill_gaps"
    findings += finding("jump", far, markers.source, fix, "markers jump: ")
    return [
        *findings,
        *_frozen(markers, {name for _, name in swapped_at}),
        *walking_findings(markers),
        *_missing(markers),
    ]


def jumps(markers: Markers) -> list[tuple[int, str, float]]:
    """Return the frame, marker and distance (m) of each jump away from the line through the last two frames."""
    error, least = _errors(markers)
    found_jumps = []
    for k, name in enumerate(markers.names):
        frames = np.flatnonzero(error[:, k] > least)
        # The two frames after a jump also deviate from the line through the jump.
        first = [int(frame) for n, frame in enumerate(frames) if not n or frame - frames[n - 1] > 2]
        found_jumps += [(frame + 2, name, float(error[frame, k])) for frame in first if not name.startswith("*")]
    return sorted(found_jumps)


def swapped(markers: Markers) -> list[tuple[int, str, str]]:
    """Return the frame and both markers of each exchange, where exchanging the names makes the motion smooth."""
    positions, predicted = markers.positions[2:], _predicted(markers)
    error, _ = _errors(markers)
    exchanges = list[tuple[int, str, str]]()
    last: dict[tuple[int, int], int] = {}
    for k in np.flatnonzero((error > MIN_MARKER_DISTANCE).sum(axis=1) >= 2):
        moved = np.flatnonzero(error[k] > MIN_MARKER_DISTANCE)
        keep = error[k, moved] ** 2
        other = ((positions[k, moved][None] - predicted[k, moved][:, None]) ** 2).sum(axis=2)  # (predicted, found)
        better = other + other.T < SWAP_FRACTION * (keep[:, None] + keep[None])
        for i, j in np.argwhere(np.triu(better, 1)):
            pair = int(moved[i]), int(moved[j])
            if k - last.get(pair, -9) > 2:  # the two frames after an exchange also appear as exchanges
                exchanges.append((int(k) + 2, markers.names[pair[0]], markers.names[pair[1]]))
            last[pair] = int(k)
    return exchanges


def exchanged_sides(markers: Markers) -> list[tuple[str, str]]:
    """Return right and left marker pairs that appear swapped relative to most pairs in nearly all frames."""
    pairs = [(name, other) for name in markers.names if (other := _left_of(name)) in markers.names]
    if len(pairs) < MIN_PAIRS:
        return []
    apart = np.stack([markers.position(right) - markers.position(left) for right, left in pairs], axis=1)
    length = np.linalg.norm(apart, axis=2, keepdims=True)
    ways = np.divide(apart, length, out=np.full_like(apart, np.nan), where=length > 0)
    known = ~np.isnan(ways).any(axis=2)
    enough = known.sum(axis=1) >= MIN_PAIRS
    if not enough.any():
        return []
    usual = np.nanmedian(ways[enough], axis=1)
    usual /= np.linalg.norm(usual, axis=1, keepdims=True) + 1e-12
    across = np.nan_to_num(np.einsum("kpi,ki->kp", apart[enough], usual))  # feet are farther apart in walking direction
    share = (across < -EXCHANGE_MARGIN).sum(axis=0) / np.maximum(known[enough].sum(axis=0), 1)
    return [pair for pair, part in zip(pairs, share, strict=True) if part > EXCHANGE_SHARE]


def _left_of(name: str) -> str:
    """Return the name of the left marker for a right one, or "" for other markers."""
    for pattern in _RIGHT:
        matched = pattern.match(name)
        if matched:
            return f"{name[: matched.start(1)]}{_WORDS[matched[1]]}{name[matched.end(1) :]}"
    return ""


def _predicted(markers: Markers) -> Array:
    """Return the linear extrapolation (K - 2, M, 3) of each marker from its last two frames."""
    t, x = markers.times, markers.positions
    if len(t) < 3:
        return np.zeros((0, *x.shape[1:]))
    ratio = ((t[2:] - t[1:-1]) / (t[1:-1] - t[:-2]))[:, None, None]
    return x[1:-1] + ratio * (x[1:-1] - x[:-2])


def _errors(markers: Markers) -> tuple[Array, float]:
    """Return the distances (K - 2, M) from the extrapolation, 0 for missing markers, and the jump threshold."""
    error = np.linalg.norm(markers.positions[2:] - _predicted(markers), axis=2)
    step = 1 / markers.rate if markers.rate else 0.0
    return np.nan_to_num(error), max(MAX_SKIN_MOTION, MAX_ACCELERATION * step**2)


def _unit(markers: Markers) -> list[Finding]:
    enough = markers.seen.sum(axis=1) >= MIN_MARKERS
    if not enough.any():
        return []
    seen = markers.positions[enough]
    extent = float(np.median((np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1)).max(axis=1)))
    if MIN_EXTENT <= extent <= MAX_EXTENT:
        return []
    other = "mm" if extent > MAX_EXTENT and markers.unit != "mm" else "m"
    place = f"the markers extend over {extent:.4g} m, which is implausible; the stated unit is {markers.unit}"
    fix = f'pass the unit: torsor.human.recordings.load(path, unit="{other}")'
    return finding("unit", [place], markers.source, fix)


def _frozen(markers: Markers, exchanged: set[str]) -> list[Finding]:
    """Return findings on markers (except ``exchanged`` ones) that do not move at all while the nearest marker moves."""
    places, least = [], max(MIN_FROZEN_FRAMES, round(MIN_FROZEN_TIME * markers.rate))
    x = markers.positions
    for k, name in enumerate(markers.names):
        same = np.concatenate([[False], (x[1:, k] == x[:-1, k]).all(axis=1)])
        for first, last in runs(same):
            if last - first + 1 < least or len(markers.names) < 2:
                continue
            apart = np.linalg.norm(x[first - 1] - x[first - 1, k], axis=1)
            apart[k] = np.inf
            other = int(np.nanargmin(np.nan_to_num(apart, nan=np.inf)))
            if exchanged & {name, markers.names[other]}:
                continue
            if np.linalg.norm(x[last, other] - x[first - 1, other]) > MAX_SKIN_MOTION:
                places.append(f"{name!r} from frame {first} to {last + 1}, while {markers.names[other]!r} moves")
    fix = "remove these frames of the marker (NaN) and call fill_gaps: some programs repeat the last position in a gap"
    return finding("frozen", places, markers.source, fix, "markers do not move: ")


def _marker_axes(markers: Markers) -> list[Finding]:
    """Return a finding if the extent of the person is largest along an axis other than the stated vertical one."""
    said, likely = up_axis(markers.axes), vertical_axis(markers)
    if said is None or likely is None or said == likely:
        return []
    ways = [f"{'-' if sign < 0 else ''}{'xyz'[axis]}" for axis, sign in (said, likely)]
    place = f"the person extends along {ways[1]}, but the stated vertical axis is {ways[0]}"
    axes = likely_axes(markers)
    return finding("axes", [place], markers.source, f'pass the axes: torsor.human.recordings.load(path, axes="{axes}")')


def _missing(markers: Markers) -> list[Finding]:
    never = [f"{name!r}" for name, seen in zip(markers.names, markers.seen.T, strict=True) if not seen.any()]
    fix = "omit them: markers.only([...]), or export them again"
    findings = finding("missing", never, markers.source, fix, "markers are never seen: ")
    gaps = [
        f"{gap.marker!r} frames {gap.first + 1} to {gap.last + 1} ({gap.duration:.3g} s)"
        for gap in markers.gaps()
        if gap.last - gap.first + 1 < len(markers)
    ]
    fix = "use torsor.human.recordings.fill_gaps(markers, longest=0.2)"
    return findings + finding("gap", gaps, markers.source, fix, "markers are missing: ")


_ANGLE = re.compile(r"angle|flex|ext(ension)?_|rotation|adduction|abduction|tilt|_list|bending|_add|_rot|pro_sup", re.I)
MAX_ANGLE = 4 * np.pi  # rad; larger than any joint angle
SPOILING_KINDS = ("unit", "axes", "offset")  # findings that make findings on feet on plates meaningless
MAX_RADIANS = 1.6  # typical largest number in a table of angles in radians


def inspect(*parts: Recording | Markers | GroundForces | MotionTable) -> list[Finding]:
    """Return likely errors in recordings of one trial, with locations and fixes.

    The kinds are "unit", "swap" (two markers exchange places, or are in the wrong order), "sides" (right and left in
    all frames), "jump", "frozen", "missing", "gap", "treadmill", "axes", "offset" (an empty plate), "place" (a centre
    of pressure off its plate or foot), "times", "feet" (swapped), "shared" (one foot on two plates, or two feet on one)
    and "degrees". Checks that need both markers and forces run if both are passed.

    Example:
        >>> inspect(Markers(["toe"], [0.0, 0.01, 0.02], [[[0.1, 0.2, 0.3]]] * 3))
        []
    """
    held = list[object]()
    for part in parts:
        if not isinstance(part, Recording | Markers | GroundForces | MotionTable):
            allowed = "Recording, Markers, GroundForces or MotionTable"
            raise ModelError(f"the type {type(part).__name__} is not supported", where="inspect", allowed=allowed)
        held += [part] if not isinstance(part, Recording) else [part.found_markers, part.found_forces, part.found_table]
    markers = [item for item in held if isinstance(item, Markers)]
    forces = [item for item in held if isinstance(item, GroundForces)]
    findings = [item for part in markers for item in marker_findings(part)]
    findings += [item for part in forces for item in force_findings(part)]
    if not any(item.kind in SPOILING_KINDS for item in findings):
        findings += [item for force in forces for marker in markers for item in foot_findings(force, marker)]
    return findings + [item for part in held if isinstance(part, MotionTable) for item in _angles(part)]


def _angles(table: MotionTable) -> list[Finding]:
    """Return findings for angles in degrees in a table of radians, or vice versa."""
    angles = [k for k in table.angles if _ANGLE.search(table.short_names[k])]
    if table.in_degrees is None or not angles:
        return []
    largest = {k: float(np.nanmax(np.abs(table.values[:, k]), initial=0.0)) for k in angles}
    if not table.in_degrees:
        places = [f"{table.names[k]!r} reaches {size:.4g}" for k, size in largest.items() if size > MAX_ANGLE]
        fix = "convert these columns (np.deg2rad), or correct inDegrees in the file"
        return finding("degrees", places, table.source, fix, "the stated angle unit is radians, but ")
    if len(angles) > 2 and 0 < max(largest.values()) < MAX_RADIANS:
        place = f"the stated angle unit is degrees, but no angle is above {max(largest.values()):.3g}"
        return finding("degrees", [place], table.source, "correct inDegrees in the file if they are in radians")
    return []
