"""Loop closures of a URDF in a YAML file next to it, as in ``example-parallel-robots``.

Standard URDF has no loops. The YAML file lists them, with the motors and the joints that URDF cannot express:

| key | value |
|---|---|
| ``closed_loop`` | pairs of frames (links or joints) that coincide |
| ``type`` | for each pair, ``6d`` (welded) or ``3d`` (the origins coincide) |
| ``name_mot`` | the joints with motors, or a substring of their names |
| ``joint_name``, ``joint_type`` | joints of another type: ``SPHERICAL``, ``FIXED``, ``CARDAN`` (about x, then y), |
| | ``UJOINT_ZY`` (about z, then y) and the like |
"""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.decoding import check_keys, file_table
from torsor.base.errors import ModelError
from torsor.formats.urdf.reading import read_urdf
from torsor.formats.xml import parse_xml
from torsor.mechanism import Joint, Link, Loop, Mechanism
from torsor.mechanism.build import build
from torsor.mechanism.edit import fix, with_joint_type
from torsor.mechanism.edit_loops import with_active, with_joint_ends
from torsor.mechanism.names import claim_name

MAX_BYTES = 100_000  # of a file; a pair takes about fifty, and the largest known file has about thirty pairs
_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_KINDS = {"6d": "weld", "3d": "spherical"}
_CROSSES = {"CARDAN": "XY"} | {f"UJOINT_{a}{b}": a + b for a, b in permutations("XYZ", 2)}
_TYPES = ("SPHERICAL", "FIXED", *_CROSSES)


def read_closures(path: Path, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of the URDF file next to a YAML file of closures. The extra ``yaml`` is required.

    The URDF file has the same name with the suffix ``.urdf``, or is the only URDF file in the folder.
    """
    data, where = file_table(path, MAX_BYTES), path.name
    check_keys(data, _KEYS, where)
    urdf = _urdf(path)
    root = parse_xml(urdf, strict)
    robot = read_urdf(urdf, base, strict, root, snap)
    names, types = (_strings(data.get(key, []), key, where) for key in ("joint_name", "joint_type"))
    for name, kind in _zipped(names, types, "joint_name", "joint_type", where):
        robot = _with_type(robot, name, kind.upper(), where)
    motors = data.get("name_mot", [])
    if isinstance(motors, str):
        text, motors = motors, [name for name in robot.joint_names if motors in name]
        if not motors or not text:
            message = f"is {text!r}, which {'is empty' if not text else 'no joint has in its name'}"
            allowed = "a part of the names of the driven joints"
            raise ModelError(message, value=text, argument="name_mot", where=where, allowed=allowed)
    active = with_active(robot, _strings(motors, "name_mot", where)).active  # checked here for a better error message
    ends = ((element.get("name"), element.find("child")) for element in root.findall("joint"))
    children = {name: None if child is None else child.get("link") for name, child in ends}
    pairs, kinds = data.get("closed_loop", []), _strings(data.get("type", []), "type", where)
    if not isinstance(pairs, list) or not all(isinstance(item, list) and len(item) == 2 for item in pairs):
        allowed = "closed_loop: [['frame_a', 'frame_b'], ...]"
        raise ModelError("is not a list of pairs", argument="closed_loop", where=where, allowed=allowed)
    pairs, loops = [_strings(pair, "closed_loop", where) for pair in pairs], list[Loop]()
    for number, (pair, kind) in enumerate(_zipped(pairs, kinds, "closed_loop", "type", where), start=1):
        if kind.lower() not in _KINDS:
            raise ModelError(f"type {kind!r} of closed_loop {number}", value=kind, where=where, allowed="6d or 3d")
        a, b = (end if end in robot.places else children.get(end) or end for end in pair)
        loop = Loop(f"{pair[0]}/{pair[1]}", a, b, _KINDS[kind.lower()])
        if not {a, b} <= robot.places.keys():
            robot, loop = with_joint_ends(robot, loop, robot.joints)
        loops.append(loop)
    return with_active(replace(robot, loops=(*robot.loops, *loops)), active)


def _urdf(path: Path) -> Path:
    """Return the URDF file that belongs to a YAML file."""
    same = path.with_suffix(".urdf")
    if same.is_file():
        return same
    result = sorted(path.parent.glob("*.urdf"))
    if len(result) == 1:
        return result[0]
    message = f"{len(result)} URDF files are in its folder, none of them {same.name}"
    raise ModelError(message, where=path.name, allowed="one", fix=f"name the URDF file {same.name}")


def _strings(value: object, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ModelError("is not a list of names", argument=key, where=where, allowed=f"{key}: ['...', '...']")
    return value


def _zipped(first: list[Any], second: list[str], one: str, other: str, where: str) -> list[tuple[Any, str]]:
    if len(first) != len(second):
        message = f"{one} has {len(first)} entries and {other} has {len(second)}"
        raise ModelError(message, where=where, allowed=f"one {other} per entry")
    return list(zip(first, second, strict=True))


def _with_type(robot: Mechanism, name: str, kind: str, where: str) -> Mechanism:
    """Return the mechanism with a joint of another type."""
    if kind not in _TYPES:
        raise ModelError(f"joint_type {kind!r} of {name!r}", where=where, allowed=", ".join(_TYPES))
    if kind == "FIXED":
        return fix(robot, name)
    # The limits of the placeholder joint have no meaning; a warning names other properties that are lost.
    old = robot.joint(name)
    plain = replace(old, lower=-np.inf, upper=np.inf, velocity_limit=np.inf, effort_limit=np.inf)
    robot = replace(robot, joints=tuple(plain if joint is old else joint for joint in robot.joints))
    robot = with_joint_type(robot, name, "spherical")
    return _with_cross(robot, name, _CROSSES[kind]) if kind in _CROSSES else robot


def _with_cross(robot: Mechanism, name: str, axes: str) -> Mechanism:
    """Return the mechanism with a joint replaced by two, which for the axes "XY" are ``name_X`` and ``name_Y``."""
    old, (a, b) = robot.joint(name), (np.eye(3)["XYZ".index(axis)] for axis in axes)
    cross = claim_name(f"{name}_{axes[0]}", {*robot.places})
    first = Joint(f"{name}_{axes[0]}", "continuous", old.parent, cross, old.placement, a, source=old.source)
    second = Joint(f"{name}_{axes[1]}", "continuous", cross, old.child, axis=b, source=old.source)
    joints = [item for joint in robot.joints for item in ((first, second) if joint is old else (joint,))]
    links = [robot.base, *robot.links, Link(cross)]
    return build(robot.name, links, joints, robot.frames, robot.gravity, loops=robot.loops, active=robot.active)
