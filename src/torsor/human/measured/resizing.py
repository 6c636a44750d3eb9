"""Bodies with segments of other lengths: ``library.human``, each segment with a factor of its own."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from torsor.arrays import Array
from torsor.checks import number, one_of, table
from torsor.mechanism import Joint, Link
from torsor.mechanism.edit import rebuilt
from torsor.robot.robot import Robot

# The segments with lengths of their own, and the links that belong to each.
SEGMENTS: dict[str, tuple[str, ...]] = {
    "pelvis": (),
    "thigh": ("thigh",),
    "shank": ("shank",),
    "foot": ("foot", "toes"),
    "trunk": ("pelvis", "spine1", "spine2", "spine3", "spine4"),
    "shoulders": ("clavicle",),
    "upper_arm": ("upper_arm",),
    "forearm": ("forearm",),
    "hand": ("hand",),
    "head": ("neck", "head"),
}
LEAST, MOST = 0.4, 2.0  # factors that a person may have


def segment_of(link: str) -> str:
    """Return the segment that a link of ``library.human`` belongs to.

    Example:
        >>> segment_of("right_shank"), segment_of("spine2"), segment_of("left_foot/left_ankle_flexion")
        ('shank', 'trunk', 'foot')
    """
    plain = link.split("/")[0].removeprefix("right_").removeprefix("left_")
    return next((name for name, links in SEGMENTS.items() if plain in links), "")


def offset_factors(body: Robot) -> dict[str, Array]:
    """Return, for each segment, which parts of the origins of joints (links, 3) its factor scales: 0 or 1.

    The factor of "pelvis" is that of the distance between the hips, the factor of "shoulders" that of the width of the
    shoulders. All other lengths of a segment, such as those of the feet, are scaled alike.
    """
    found = {name: np.zeros((len(body.joints), 3)) for name in SEGMENTS}
    for k, joint in enumerate(body.joints):
        if body.parents[k] < 0:
            continue
        if joint.name.endswith("hip_flexion"):
            found["pelvis"][k] = 1.0
        elif joint.name.endswith("clavicle_elevation"):
            found["shoulders"][k, [0, 2]], found["trunk"][k, 1] = 1.0, 1.0
        else:
            found[segment_of(joint.parent)][k] = 1.0
    return found


def resized(body: Robot, factors: Mapping[str, float]) -> Robot:
    """Return a body (``library.human``) with segments that are longer or shorter by factors, {segment: factor}.

    Segments are pelvis (the distance between the hips), thigh, shank, foot, trunk, shoulders (their width), upper_arm,
    forearm, hand and head. Masses stay; centres of mass and radii of gyration stay fractions of the length, as in de
    Leva's tables (1996). The standing height of the whole body follows the legs.

    Example:
        >>> body = torsor.library.human()
        >>> longer = resized(body, {"thigh": 1.1})
        >>> [round(float(each.joint("right_knee_flexion").placement[1, 3]), 4) for each in (body, longer)]
        [-0.4222, -0.4644]
    """
    where = "resized"
    given = table(factors, where, "factors")
    for name in given:
        one_of(name, tuple(SEGMENTS), where, "segment")
    known = {
        name: number(given.get(name, 1.0), where, f"factor of {name}", least=LEAST, most=MOST) for name in SEGMENTS
    }
    scales = 1.0 + sum((known[name] - 1.0) * mask for name, mask in offset_factors(body).items())
    joints = [
        replace(joint, placement=_moved(joint.placement, joint.placement[:3, 3] * scale))
        for joint, scale in zip(body.joints, np.asarray(scales), strict=True)
    ]
    joints[0] = _standing(body, joints, known["foot"])
    links = [_scaled(link, known.get(segment_of(link.name), 1.0)) for link in body.links]
    frames = [
        replace(frame, pose=_moved(frame.pose, frame.pose[:3, 3] * known.get(segment_of(frame.link), 1.0)))
        for frame in body.frames
    ]
    return rebuilt(body, [body.base, *links], joints, frames)


def _moved(pose: Array, origin: Array) -> Array:
    changed = pose.copy()
    changed[:3, 3] = origin
    return changed


def _scaled(link: Link, factor: float) -> Link:
    return link if factor == 1.0 else replace(link, com=link.com * factor, inertia=link.inertia * factor**2)


def _standing(body: Robot, joints: list[Joint], foot: float) -> Joint:
    """Return the first joint, at the height of hips that stand: thigh, shank and the height of the ankle."""
    by_name = {joint.name: joint for joint in joints}
    legs = sum(-float(by_name[f"right_{name}"].placement[1, 3]) for name in ("knee_flexion", "ankle_flexion"))
    sole = foot * float(body.place("right_heel").pose[1, 3])
    origin = joints[0].placement[:3, 3].copy()
    origin[1] = legs - sole
    return replace(joints[0], placement=_moved(joints[0].placement, origin))
