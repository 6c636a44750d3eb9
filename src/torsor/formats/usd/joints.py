"""USD joints, which connect two frames that coincide at zero. Angles are in degrees.

A joint is defined by its free axes, which for a PhysicsJoint are those that no limit locks. Translations along the axes
of the first frame come first, followed by rotations about x, y and z.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.usd.stage import (
    AGREEMENT_TOLERANCE,
    Scene,
    agrees,
    exact,
    flag_of,
    number_of,
    own_data,
    rotation_of,
    vector_of,
)
from torsor.mechanism import Frame, Joint, Loop, Motor, Spring
from torsor.mechanism.parts import PER_VELOCITY
from torsor.spatial import axis_frame, inverse_pose, make_pose

AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
WORLD = ""  # the path of anything that is not a body
_TYPED = {"PhysicsFixedJoint": (), "PhysicsSphericalJoint": AXES[3:]}
_ONE = {"PhysicsRevoluteJoint": ("rot", "angular"), "PhysicsPrismaticJoint": ("trans", "linear")}
DEGREE = math.pi / 180
# Properties without a UsdPhysics attribute: the default, then the attributes of MuJoCo, Newton and PhysX.
ENGINES: dict[str, tuple[Any, ...]] = {
    "velocity_limit": (np.inf, "newton:velocityLimit", "physxJoint:maxJointVelocity"),
    "coulomb": (0.0, "mjc:frictionloss", "newton:friction", "physxJoint:jointFriction"),
    "armature": (0.0, "mjc:armature", "newton:armature", "physxJoint:armature"),
    "viscous": (0.0, "newton:damping"),
}
# MuJoCo's attributes with units of their own: its forces are per rad, and only its angles are in degrees.
MUJOCO = ("mjc:damping", "mjc:stiffness")


@dataclass(frozen=True)
class End:
    """One end of a joint: the path of the body, or WORLD, and the pose (4 x 4, in m) of the joint's frame on it."""

    body: str
    pose: Array


@dataclass(frozen=True)
class UsdJoint:
    """A joint of a stage: its prim, its two ends, and its free axes, each with the name of its drive.

    It has the name of its prim until it is assigned to the articulation being read.
    """

    prim: Any
    name: str
    ends: tuple[End, End]
    free: dict[str, str]
    excluded: bool
    length: float | None = None  # of a rod
    turned: bool = False  # whether its ends are exchanged here

    def between(self, parent: str) -> tuple[Array, Array, float]:
        """Return the frames on the parent and on the child, and the sign of the positions as seen from the parent."""
        a, b = self.ends
        sign = -1.0 if self.turned else 1.0
        return (a.pose, b.pose, sign) if a.body == parent else (b.pose, a.pose, -sign)


def joint_of(scene: Scene, prim: Any) -> UsdJoint | None:
    """Return the joint of a prim, or None if it is disabled or of an unsupported kind."""
    joint = scene.pxr.UsdPhysics.Joint(prim)
    name = prim.GetName()
    if not flag_of(joint.GetJointEnabledAttr(), True):
        scene.left_out.note("disabled joints", name)
        return None
    ends = tuple(_end(scene, prim, joint, side) for side in "01")
    if ends[0].body == ends[1].body:
        message = "both of its ends are on the world" if ends[0].body == WORLD else f"both ends are on {ends[0].body}"
        raise ModelError(message, where=scene.where(prim), allowed="two bodies, or one and the world")
    excluded, kind = flag_of(joint.GetExcludeFromArticulationAttr(), False), prim.GetTypeName()
    free, length = dict[str, str](), None
    if kind == "PhysicsJoint":
        ranges = {axis: limits_of(scene, prim, axis) for axis in AXES}
        free = {axis: axis for axis, (low, high) in ranges.items() if low <= high}
        limited = any(np.isfinite(ranges[axis]).any() for axis in AXES[3:])
        scene.left_out.note("limits of ball joints", name, limited and all(axis in free for axis in AXES[3:]))
    elif kind in _ONE:
        prefix, drive = _ONE[kind]
        axis = str(prim.GetAttribute("physics:axis").Get())
        if axis not in ("X", "Y", "Z"):
            raise ModelError(f"its axis is {axis[:20]!r}", where=scene.where(prim), allowed="X, Y, Z")
        free = {prefix + axis: drive}
    elif kind in _TYPED:
        free = dict.fromkeys(_TYPED[kind], "")
        limits = [number_of(prim.GetAttribute(f"physics:coneAngle{k}Limit"), -1.0) for k in "01"]
        limited = kind == "PhysicsSphericalJoint" and max(limits) >= 0
        scene.left_out.note("cone limits of spherical joints", name, limited)
    else:  # a rod has one distance
        least, most = (number_of(prim.GetAttribute(f"physics:{key}Distance"), -1.0) for key in ("min", "max"))
        if kind != "PhysicsDistanceJoint" or least != most or least <= 0:
            scene.left_out.note(f"joints of the kind {kind}", name)
            return None
        length, excluded = float(exact(own_data(prim), "length", least * scene.units.length)), True
    return UsdJoint(prim, name, (ends[0], ends[1]), free, excluded, length)


def _end(scene: Scene, prim: Any, joint: Any, side: str) -> End:
    """Return one end of a joint. Its frame is given in the axes and scale of its prim."""
    targets = getattr(joint, f"GetBody{side}Rel")().GetTargets()
    point = vector_of(getattr(joint, f"GetLocalPos{side}Attr")())
    R = rotation_of(getattr(joint, f"GetLocalRot{side}Attr")())
    if R is None or not np.isfinite(point).all():
        message = f"localPos{side} is {point.tolist()}, localRot{side} {'no rotation' if R is None else 'a rotation'}"
        raise ModelError(message, where=scene.where(prim), allowed="finite numbers, a quaternion other than 0")
    if not targets:
        return End(WORLD, make_pose(R, point * scene.units.length))
    on = scene.stage.GetPrimAtPath(targets[0])
    if not on or len(targets) > 1:
        why = "missing" if len(targets) == 1 else "several"
        message = f"body{side} is {', '.join(map(str, targets))}, which is {why}"
        raise ModelError(message, where=scene.where(prim), allowed="the path of one prim")
    place, body = scene.place(on), scene.body_of(on)
    local = make_pose(R, point * place.scale * scene.units.length)
    if body is None:
        return End(WORLD, place.pose @ local)
    if body.GetPath() != on.GetPath():
        local = inverse_pose(scene.place(body).pose) @ place.pose @ local
    return End(str(body.GetPath()), local)


def several(scene: Scene, prim: Any) -> dict[str, Array]:
    """Return friction, limits, gains and rotor inertia of a joint with several velocities, if Torsor wrote them."""
    data = own_data(prim)
    engines = [*ENGINES.values(), *((0.0, key) for key in MUJOCO)]
    omitted = [key for default, *keys in engines for key in keys if _engine(prim, default, key) != default]
    scene.left_out.note(f"{', '.join(omitted)} of joints with several axes", prim.GetName(), omitted)
    return {key: np.array(data[key], dtype=float) for key in PER_VELOCITY if key in data}


def axis_of(axis: str) -> Array:
    """Return the direction of an axis: "rotY" is (0, 1, 0)."""
    return np.asarray(np.eye(3)["XYZ".index(axis[-1])])


def single_joint(scene: Scene, joint: UsdJoint, axis: str, sign: float, name: str) -> Joint:
    """Return one free axis of a joint as a hinge or slide in the joint frame, with limits, friction and drive."""
    prim, data, units = joint.prim, own_data(joint.prim), scene.units
    turns = axis.startswith("rot")
    unit, effort = (DEGREE, units.torque) if turns else (units.length, units.force)
    inertia = units.torque if turns else units.mass
    limits = zip(("lower", "upper"), limits_of(scene, prim, axis), strict=True)
    lower, upper = (exact(data, key, value * unit) for key, value in limits)
    limited = bool(np.isfinite([lower, upper]).any())
    settings: dict[str, Any] = {"lower": lower, "upper": upper, "source": scene.source}

    velocity, friction, armature, damping = (_engine(prim, *keys) for keys in ENGINES.values())
    settings["velocity_limit"] = exact(data, "velocity_limit", _limit(velocity) * unit)
    settings["coulomb"] = exact(data, "coulomb", friction * effort)
    settings |= {key: float(data.get(key, 0.0)) for key in ("smooth", "kp", "kd")}
    settings["viscous"] = damping * effort / unit
    settings |= _passive(prim, unit, effort if turns else effort / unit)
    settings |= _driven(scene, joint, joint.free[axis], unit, effort)
    if "motor" in data and agrees(data, "armature", armature * inertia):
        motor: dict[str, Any] = {**data["motor"], "axis": np.array(data["motor"]["axis"], dtype=float)}
        settings |= {"motor": Motor(**motor), "rotor_inertia": float(data["rotor_inertia"])}
    else:
        settings["rotor_inertia"] = exact(data, "armature", armature * inertia)
    settings |= _follower(scene, joint, axis, unit)
    hinge = "revolute" if limited or data.get("type") == "revolute" else "continuous"
    return Joint(name, hinge if turns else "prismatic", "parent", "child", axis=sign * axis_of(axis), **settings)


def _passive(prim: Any, unit: float, factor: float) -> dict[str, Any]:
    """Return viscous friction and spring from MuJoCo's attributes. The spring is at rest if q + ref is springref."""
    result: dict[str, Any] = {}
    damping, stiffness = (prim.GetAttribute(key) for key in MUJOCO)
    if damping:
        result["viscous"] = number_of(damping) * factor
    if stiffness and number_of(stiffness):
        rest, shift = (number_of(prim.GetAttribute(f"mjc:{key}")) * unit for key in ("springref", "ref"))
        result["spring"] = Spring(number_of(stiffness) * factor, rest=rest - shift)
    return result


def _engine(prim: Any, default: float, *keys: str) -> float:
    """Return the value of the first of these attributes that a prim has, or the default."""
    result = (prim.GetAttribute(key) for key in keys)
    return next((number_of(item, default) for item in result if item), default)


def _limit(value: float) -> float:
    """Return a limit. The largest single-precision number means no limit and becomes infinity."""
    return math.copysign(math.inf, value) if abs(value) >= 3e38 else value


def limits_of(scene: Scene, prim: Any, axis: str) -> tuple[float, float]:
    """Return the limits of a joint axis in stage units. For a locked axis, the lower limit is above the upper one."""
    if prim.GetTypeName() == "PhysicsJoint":
        api = scene.pxr.UsdPhysics.LimitAPI
        limit = api(prim, axis)
        low, high = (limit.GetLowAttr(), limit.GetHighAttr()) if prim.HasAPI(api, axis) else (None, None)
    else:
        low, high = (prim.GetAttribute(f"physics:{key}Limit") for key in ("lower", "upper"))
    return _limit(number_of(low, -np.inf)), _limit(number_of(high, np.inf))


def _driven(scene: Scene, joint: UsdJoint, drive: str, unit: float, effort: float) -> dict[str, Any]:
    """Return the largest force of a drive and, if Torsor wrote them, the spring and the viscous friction.

    The gains of any other drive belong to a controller, not to the mechanism.
    """
    api, data = scene.pxr.UsdPhysics.DriveAPI, own_data(joint.prim)
    if not joint.prim.HasAPI(api, drive):
        return {}
    result = api(joint.prim, drive)
    most = _limit(number_of(result.GetMaxForceAttr(), np.inf))
    settings: dict[str, Any] = {"effort_limit": exact(data, "effort_limit", most * effort)}
    gains = result.GetStiffnessAttr(), result.GetDampingAttr()
    stiffness, damping = (number_of(gain) * effort / unit for gain in gains)
    rest = number_of(result.GetTargetPositionAttr()) * unit
    if "drive_damping" not in data:
        scene.left_out.note("gains and targets of drives", joint.name, stiffness or damping)
        return settings
    plain = {"drive_stiffness": stiffness, "drive_damping": damping, "drive_target": rest}
    if all(agrees(data, key, value) for key, value in plain.items()):
        spring: dict[str, Any] | None = data.get("spring")
        return settings | {"viscous": float(data["viscous"]), "spring": None if spring is None else Spring(**spring)}
    return settings | {"viscous": damping, "spring": Spring(stiffness, rest=rest) if stiffness else None}


def unread_drives(scene: Scene, joint: UsdJoint) -> set[str]:
    """Return the drives that have attributes but no drive schema, or that do not belong to a single free axis."""
    api, prefix = scene.pxr.UsdPhysics.DriveAPI, "drive:"
    result = {str(key).split(":")[1] for key in joint.prim.GetAuthoredPropertyNames() if key.startswith(prefix)}
    axes = [axis for axis in joint.free if not (axis in AXES[3:] and {*AXES[3:]} <= {*joint.free})]
    return {drive for drive in result if not joint.prim.HasAPI(api, drive)} | result - {joint.free[key] for key in axes}


def _follower(scene: Scene, joint: UsdJoint, axis: str, unit: float) -> dict[str, Any]:
    """Return the coordinate that a joint follows, with ratio and offset: q = ratio q(other) + offset.

    Newton: q = coef1 q(other) + coef0; PhysX: q + gearing q(other) + offset = 0.
    """
    prim, data = joint.prim, own_data(joint.prim)
    targets, ratio, offset = prim.GetRelationship("newton:mimicJoint").GetTargets(), 1.0, 0.0
    if targets and flag_of(prim.GetAttribute("newton:mimicEnabled"), True):
        offset, ratio = (number_of(prim.GetAttribute(f"newton:mimicCoef{k}"), float(k)) for k in (0, 1))
    else:
        keys = [f"physxMimicJoint:{key}" for key in (axis, "rotX", "rotY", "rotZ")]  # PhysX accepts any of these
        result = {key: prim.GetRelationship(f"{key}:referenceJoint").GetTargets() for key in keys}
        key = next((key for key in keys if result[key]), "")
        if not key:
            return {}
        targets, ratio = result[key], -number_of(prim.GetAttribute(f"{key}:gearing"), 1.0)
        offset = -number_of(prim.GetAttribute(f"{key}:offset"))
    leader = scene.stage.GetPrimAtPath(targets[0])
    if not leader or leader == prim or len(targets) > 1:
        why = "which are several joints" if len(targets) > 1 else "itself" if leader == prim else "which is missing"
        what = f"it mimics {', '.join(map(str, targets))}, {why}"
        raise ModelError(what, where=scene.where(prim), allowed="the path of another joint")
    if (leader.GetTypeName() == "PhysicsPrismaticJoint") == axis.startswith("rot") and "ratio" not in data:
        scene.left_out.note("joints that mimic one of another kind", joint.name)
        return {}
    name = scene.name(leader, "joint")
    return {"coordinate": name, "ratio": exact(data, "ratio", ratio), "offset": exact(data, "offset", offset * unit)}


_TURNS = {"rotX", "rotY", "rotZ"}


def loop_of(scene: Scene, joint: UsdJoint, names: Mapping[str, str], frames: list[Frame]) -> Loop | None:
    """Return a joint as a loop and add the frames that it needs, or return None if no cut joint has its free axes.

    ``names`` are the body names by path. Ends that Torsor wrote are links, or are already among the ``frames``.
    """
    kind, axis = cut_kind(joint)
    if kind is None:
        scene.left_out.note(f"loops with the free axes {', '.join(joint.free)}", joint.name)
        return None
    limited = any(np.isfinite(limits_of(scene, joint.prim, parameter)).any() for parameter in joint.free)
    scene.left_out.note("limits of joints that close loops", joint.name, limited)
    poses = [end.pose @ make_pose(axis_frame(axis_of(axis))) for end in joint.ends]
    ends = list[str]()
    for letter, end, pose in zip("ab", joint.ends, poses, strict=True):
        frame_name, link = str(own_data(joint.prim).get(letter, "")), names[end.body]
        known = next((frame for frame in frames if frame.name == frame_name and frame.link == link), None)
        at = known.pose if known is not None else np.eye(4) if frame_name == link else None
        if at is None or not np.allclose(at, pose, rtol=0, atol=AGREEMENT_TOLERANCE * max(1.0, np.abs(pose).max())):
            frame_name = scene.unused(f"{joint.name}/{letter}", "link")
            frames.append(Frame(frame_name, link, pose))
        ends.append(frame_name)
    return Loop(joint.name, ends[0], ends[1], kind, joint.length or 0.0, scene.source)


def cut_kind(joint: UsdJoint) -> tuple[str | None, str]:
    """Return the kind of the cut joint with the free axes of a joint, and the axis that is the z axis of its frames."""
    free = set(joint.free)
    slides, turns = sorted(free - _TURNS), sorted(free & _TURNS)
    if joint.length is not None or not free or free == _TURNS:
        return "rod" if joint.length is not None else "spherical" if free else "weld", "rotZ"
    if len(free) == 1:
        return ("prismatic", slides[0]) if slides else ("revolute", turns[0])
    letters = {slide[-1] for slide in slides}
    if len(turns) == 1 and len(slides) == 1 and letters == {turns[0][-1]}:
        return "cylindrical", turns[0]
    if len(turns) == 1 and len(slides) == 2 and turns[0][-1] not in letters:
        return "planar", turns[0]
    return None, "rotZ"
