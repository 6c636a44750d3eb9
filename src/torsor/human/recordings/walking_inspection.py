"""Likely mistakes that a person who walks shows, in markers and in forces.

A foot that stands does not move, a toe is ahead of its heel, a knee above its ankle, and the ground brakes before it
pushes on. Nothing is said of a person who does not walk.
"""

import re
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.feet import FARTHEST, SIDES, Contact, foot_markers
from torsor.human.recordings.findings import Finding, finding
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.likely import vertical_axis
from torsor.human.recordings.markers import Markers

WITHIN = 0.05  # s: speeds of markers are taken over this time
LOW = 0.02  # m: a marker of a foot that stands is this near to its lowest place
WALKS = 0.3  # m/s: slower ones may be standing, or sway
ORDER_MARGIN, WRONG_ORDER_SHARE = 0.02, 0.9  # m, and a part of the frames, from which an order is wrong
AROUND = 0.25  # s: a contact that is nearer to an end of the recording may be a part of one
CONTACT_SHARE, FORCE_SHARE = 0.4, 0.02  # of a contact: its beginning and its end; of the vertical force: what counts
# Landmarks from top to bottom, by names without a side.
_LEVELS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"(sho|acr)", r"(asi|psi|hip)", r"(kne|lfe|mfe|lfc)", r"(ank|lmal|mmal|mal)")
)
_SIDE = re.compile(r"(?:.*:)?(?:(right|left|r|l)[ ._-]?(.+)|(.+?)[ ._-](right|left|r|l))", re.IGNORECASE)


class Walk(NamedTuple):
    """How a person goes: the horizontal ``way`` (3,), and the ``belt`` (3,), the velocity of feet that stand."""

    way: Array
    belt: Array


def walk_of(markers: Markers) -> Walk | None:
    """Return how a person walks, on the floor or on a treadmill; None where nothing tells that the person walks."""
    up = up_axis(markers.axes)
    if up is None or len(markers) < 3 or not markers.rate:
        return None
    level = np.array([float(k != up[0]) for k in range(3)])
    standing = [_standing_velocity(markers.only(names), up) for names in foot_markers(markers.names).values() if names]
    if len(standing) < 2 or any(each is None for each in standing):
        return None
    belts = np.array([each for each in standing if each is not None]) * level
    belt = belts.mean(axis=0)
    if np.linalg.norm(belts[0] - belts[1]) > WALKS or np.linalg.norm(belt) < WALKS:
        belt = np.zeros(3)
    velocity = _mean_velocity(markers) * level - belt
    speed = float(np.linalg.norm(velocity))
    return Walk(velocity / speed, belt) if speed > WALKS else None


def walking_findings(markers: Markers) -> list[Finding]:
    """Return what markers alone show: a treadmill, and landmarks in the wrong order."""
    walk, found = walk_of(markers), _heights(markers)
    if walk is None:
        return found
    names, away = foot_markers(markers.names), []
    for side in SIDES:
        heels, toes = (
            [name for name in names[side] if re.search(part, name, re.IGNORECASE)] for part in (r"hee|cal", r"toe")
        )
        for heel in heels:
            for toe in toes:
                ahead = (markers.position(toe) - markers.position(heel)) @ walk.way
                if np.mean(ahead[np.isfinite(ahead)] < -ORDER_MARGIN) > WRONG_ORDER_SHARE:
                    away.append(f"{heel!r} is ahead of {toe!r}")
    fix = "exchange their names if they are: markers.renamed({a: b, b: a})"
    found += finding("swap", away, markers.source, fix, "markers lie in the wrong order: ")
    speed = float(np.linalg.norm(walk.belt))
    if speed:
        text = f"feet that stand move backward at {speed:.2f} m/s: the person walks on a treadmill"
        fix = "torsor.human.recordings.overground(part, speed), of markers and forces, adds the speed of the belt"
        found += finding("treadmill", [text], markers.source, fix)
    return found


def contact_findings(forces: GroundForces, markers: Markers, found: list[Contact]) -> list[Finding]:
    """Return what contacts of known feet show: forces against the way."""
    walk, up = walk_of(markers), up_axis(forces.axes)
    if walk is None or up is None:
        return []
    edge = AROUND * (forces.rate or 1.0)
    whole = [
        each
        for each in found
        if each.first > edge and each.last < len(forces) - edge and each.distances[each.side] < FARTHEST
    ]
    return _against(forces, whole, walk, up)


def _against(forces: GroundForces, found: list[Contact], walk: Walk, up: tuple[int, float]) -> list[Finding]:
    """Return a finding where the ground pushes on first and brakes later, or pushes both feet apart."""
    upward = np.zeros(3)
    upward[up[0]] = up[1]
    right, wrong, outward = np.cross(walk.way, upward), [], []
    for contact in found:
        own = forces.forces[contact.first : contact.last + 1, contact.plate]
        weight, count = float(np.mean(own @ upward)), max(1, int(CONTACT_SHARE * len(own)))
        first, last = (float(np.mean(part @ walk.way)) / weight for part in (own[:count], own[-count:]))
        wrong.append(first > FORCE_SHARE and last < -FORCE_SHARE)
        aside = float(np.mean(own @ right)) / weight
        outward.append((aside if contact.side == "right" else -aside) > FORCE_SHARE)
    fix = "change the sign of these forces, or say the axes of the file: load(path, axes=...)"
    places = []
    if wrong and all(wrong):
        places.append("the ground pushes forward first and brakes later, in all contacts: fore-aft forces are reversed")
    if outward and all(outward):
        places.append("the ground pushes the feet apart, in all contacts: lateral forces are reversed")
    return finding("axes", places, forces.source, fix)


def _heights(markers: Markers) -> list[Finding]:
    """Return a finding where a landmark is below one that is lower on the body, of an upright person."""
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
        for level, name in group:
            for other_level, other in group:
                below = sign * (markers.position(name) - markers.position(other))[:, axis] < -ORDER_MARGIN
                both = markers.seen[:, markers.names.index(name)] & markers.seen[:, markers.names.index(other)]
                if level < other_level and both.any() and np.mean(below[both]) > WRONG_ORDER_SHARE:
                    places.append(f"{name!r} is below {other!r}")
    fix = "exchange their names if they are: markers.renamed({a: b, b: a})"
    return finding("swap", places, markers.source, fix, "markers lie in the wrong order: ")


def _standing_velocity(markers: Markers, up: tuple[int, float]) -> Array | None:
    """Return the median velocity (3,) of the markers of a foot while they are low; None if they never are."""
    span, found = max(1, round(WITHIN * markers.rate)), list[Array]()
    for k in range(len(markers.names)):
        x = markers.positions[:, k]
        height = up[1] * x[:, up[0]]
        if not np.isfinite(height).any():
            continue
        low = height < np.nanquantile(height, 0.05) + LOW
        took = (markers.times[span:] - markers.times[:-span])[:, None]
        found.append(((x[span:] - x[:-span]) / took)[low[span:] & low[:-span]])
    rows = np.concatenate(found) if found else np.zeros((0, 3))
    rows = rows[np.isfinite(rows).all(axis=1)]
    return np.median(rows, axis=0) if len(rows) else None


def _mean_velocity(markers: Markers) -> Array:
    """Return the mean velocity (3,) of the markers, from where each was seen first to where it was seen last."""
    found = []
    for k, seen in enumerate(markers.seen.T):
        frames = np.flatnonzero(seen)
        if len(frames) > 1:
            first, last = frames[0], frames[-1]
            moved = markers.positions[last, k] - markers.positions[first, k]
            found.append(moved / (markers.times[last] - markers.times[first]))
    return np.median(found, axis=0) if found else np.zeros(3)
