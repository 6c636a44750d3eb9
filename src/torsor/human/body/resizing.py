"""Bodies with segments of other lengths: ``library.human``, each segment with a factor of its own."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import number, positive, table
from torsor.base.errors import ModelError, describe
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
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
# Segments of both sides, with the two points between which their length is measured.
LIMBS: dict[str, tuple[str, str]] = {
    "thigh": ("thigh", "shank"),
    "shank": ("shank", "foot"),
    "foot": ("heel", "toe"),
    "upper_arm": ("upper_arm", "forearm"),
    "forearm": ("forearm", "wrist"),
    "hand": ("wrist", "knuckles"),
}
NAMES = (*SEGMENTS, *(f"{side}_{name}" for side in SIDES for name in LIMBS))  # what has a length


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
    forearm, hand and head; those of the limbs may be of one side ("left_thigh"). Masses stay; centres of mass and radii
    of gyration stay fractions of the length, as in de Leva's tables (1996). The standing height of the whole body
    follows the legs, the longer one if they differ.

    Example:
        >>> body = torsor.library.human()
        >>> longer = resized(body, {"thigh": 1.1})
        >>> [round(float(each.joint("right_knee_flexion").placement[1, 3]), 4) for each in (body, longer)]
        [-0.4222, -0.4644]
    """
    known = _factors(factors, "resized")
    scales = np.ones((len(body.joints), 3))
    for name, mask in offset_factors(body).items():
        own = np.array([known[_sided(name, joint.name)] for joint in body.joints])
        scales += (own[:, None] - 1.0) * mask
    joints = [
        replace(joint, placement=_moved(joint.placement, joint.placement[:3, 3] * scale))
        for joint, scale in zip(body.joints, scales, strict=True)
    ]
    joints[0] = _standing(body, joints, known)
    links = [_scaled(link, known.get(_sided(segment_of(link.name), link.name), 1.0)) for link in body.links]
    frames = [
        replace(
            frame, pose=_moved(frame.pose, frame.pose[:3, 3] * known.get(_sided(segment_of(frame.link), frame.link), 1))
        )
        for frame in body.frames
    ]
    return rebuilt(body, [body.base, *links], joints, frames)


def segment_lengths(body: Robot) -> dict[str, float]:
    """Return the lengths (m) of all segments of a body (``library.human``), of limbs for both sides.

    Limbs are measured between the centres of their joints, feet from heel to toe, hands to the knuckles; the pelvis
    between the hips, the shoulders between their joints, the trunk from the middle of the hips to the neck (C7), the
    head from there to the vertex.

    Example:
        >>> found = segment_lengths(torsor.library.human())
        >>> {name: round(found[name], 4) for name in ("thigh", "left_shank", "pelvis", "trunk")}
        {'thigh': 0.4222, 'left_shank': 0.4403, 'pelvis': 0.17, 'trunk': 0.6033}
    """
    right, left = SIDES
    hips, neck = landmark(body, "pelvis")[1], landmark(body, "neck")[1]
    found = {
        "pelvis": landmark(body, f"{left}_thigh")[0] - landmark(body, f"{right}_thigh")[0],
        "shoulders": landmark(body, f"{left}_upper_arm")[0] - landmark(body, f"{right}_upper_arm")[0],
        "trunk": neck - hips,
        "head": landmark(body, "vertex")[1] - neck,
    }
    for name, ends in LIMBS.items():
        for side in SIDES:
            first, last = (landmark(body, f"{side}_{place}") for place in ends)
            found[f"{side}_{name}"] = np.linalg.norm((last - first)[[0, 2]] if name == "foot" else last - first)
        found[name] = found[f"{right}_{name}"]
    return {name: float(found[name]) for name in NAMES}


def with_lengths(body: Robot, lengths: Mapping[str, float], where: str = "lengths") -> Robot:
    """Return a body whose segments have given lengths, {segment: m}, measured as in ``segment_lengths``.

    Example:
        >>> found = segment_lengths(with_lengths(torsor.library.human(), {"thigh": 0.45, "left_shank": 0.40}))
        >>> [round(found[name], 3) for name in ("left_thigh", "right_thigh", "left_shank", "right_shank")]
        [0.45, 0.45, 0.4, 0.44]
    """
    given = table(lengths, where, "lengths")
    _check_names(given, where)
    usual = segment_lengths(body)
    for name, length in given.items():
        factor = positive(length, where, f"length of {name} (m)") / usual[name]
        if not LEAST <= factor <= MOST:
            found = f"length of {name} is {length:.4g} m"
            allowed = f"from {LEAST * usual[name]:.3g} to {MOST * usual[name]:.3g} m, for a person of this height"
            raise ModelError(describe(found, where=where, allowed=allowed, fix="give it in metres, between joints"))
    return resized(body, {name: length / usual[name] for name, length in given.items()})


def _check_names(given: Mapping[str, float], where: str) -> None:
    """Raise ModelError for what is no segment, and for a segment of both sides and of one."""
    for name in given:
        if name not in NAMES:
            raise ModelError(describe(f"no segment {name!r}", where=where, allowed=", ".join(NAMES)))
        both = name.split("_", 1)[-1]
        if name.startswith(SIDES) and both in given:
            raise ModelError(describe(f"{name} and {both} are both given", where=where, allowed="one of them"))


def _factors(factors: Mapping[str, float], where: str) -> dict[str, float]:
    """Return the factors of all segments, of limbs for each side, 1 for those that are not given."""
    given = table(factors, where, "factors")
    _check_names(given, where)
    for name, factor in given.items():
        number(factor, where, f"factor of {name}", least=LEAST, most=MOST)
    return {name: given.get(name, given.get(name.split("_", 1)[-1], 1.0)) for name in NAMES} | {
        name: given.get(name, 1.0) for name in SEGMENTS
    }


def _sided(segment: str, name: str) -> str:
    """Return the segment of a limb on the side of a link or joint, other segments as they are."""
    side = name.split("_", 1)[0]
    return f"{side}_{segment}" if segment in LIMBS and side in SIDES else segment


def _moved(pose: Array, origin: Array) -> Array:
    changed = pose.copy()
    changed[:3, 3] = origin
    return changed


def _scaled(link: Link, factor: float) -> Link:
    return link if factor == 1.0 else replace(link, com=link.com * factor, inertia=link.inertia * factor**2)


def _standing(body: Robot, joints: list[Joint], factors: Mapping[str, float]) -> Joint:
    """Return the first joint, at the height of hips that stand: thigh, shank and the height of the ankle."""
    by_name = {joint.name: joint for joint in joints}
    legs = []
    for side in SIDES:
        bones = sum(-float(by_name[f"{side}_{name}"].placement[1, 3]) for name in ("knee_flexion", "ankle_flexion"))
        legs.append(bones - factors[f"{side}_foot"] * float(body.place(f"{side}_heel").pose[1, 3]))
    origin = joints[0].placement[:3, 3].copy()
    origin[1] = max(legs)
    return replace(joints[0], placement=_moved(joints[0].placement, origin))
