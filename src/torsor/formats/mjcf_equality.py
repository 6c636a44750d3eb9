"""Equality constraints of MJCF: read as loops and couplings, and written from these and from followers.

They are soft in MuJoCo and hold exactly here. The compiled model contains what MuJoCo computes in the reference pose
(``qpos0``): the anchor on the second body, and the relative pose of a weld.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.formats.xml import add_element
from torsor.mechanism import Coupling, Frame, Joint, Loop, Mechanism
from torsor.mechanism.build import claim_name
from torsor.mechanism.loops import Closure
from torsor.spatial import from_quaternion, make_pose, to_quaternion

_CONNECT, _WELD, _JOINT = 0, 1, 2  # numbers of mjtEq; the others are of tendons, flexible bodies and geoms
_SITE = 6  # of mjtObj
_LEVER = 0.1  # m between the two points on the axis of a revolute joint
# The constraints of each kind of loop: a revolute joint is two points on its axis.
_CONSTRAINTS = {"weld": ("weld",), "spherical": ("connect",), "revolute": ("connect", "connect")}


class Equalities(NamedTuple):
    """Loops and couplings of a file with their frames, and masks (neq,) of the constraints that are omitted."""

    frames: list[Frame]
    loops: list[Closure]
    nonlinear: NDArray[np.bool_]
    unsupported: NDArray[np.bool_]


class Names(NamedTuple):
    """The names of the objects of a model."""

    equalities: list[str]
    bodies: list[str]
    joints: list[str]
    sites: list[str]


def read_equalities(model: Any, active: NDArray[np.bool_], names: Names, unused: Callable[[str], str]) -> Equalities:
    """Return the loops and couplings of the ``active`` equality constraints; ``unused`` makes a frame's name unique."""
    found = Equalities([], [], np.zeros(model.neq, dtype=bool), np.zeros(model.neq, dtype=bool))
    for e in np.flatnonzero(active):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e])
        if kind == _JOINT:
            coupling = _coupling(model, int(e), data, names)
            found.loops.extend(coupling)
            found.nonlinear[e] = not coupling
        elif kind in (_CONNECT, _WELD):
            frames, loop = _loop(model, int(e), data, names, unused)
            found.frames.extend(frames)
            found.loops.append(loop)
        else:
            found.unsupported[e] = True
    return found


def _coupling(model: Any, e: int, data: Array, names: Names) -> list[Closure]:
    """Return y - y0 = c0 + c1 (x - x0) as a list with one coupling; an empty list if there are higher powers."""
    y, x = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    coefficients, offset = {names.joints[y]: 1.0}, float(data[0] + model.qpos0[model.jnt_qposadr[y]])
    if x >= 0 and data[2:5].any():
        return []
    if x >= 0 and data[1]:  # otherwise y is locked
        coefficients[names.joints[x]] = -float(data[1])
        offset -= float(data[1] * model.qpos0[model.jnt_qposadr[x]])
    return [Coupling(names.equalities[e], coefficients, offset)]


def _loop(model: Any, e: int, data: Array, names: Names, unused: Callable[[str], str]) -> tuple[list[Frame], Closure]:
    """Return the spherical or weld loop between two sites, or between two bodies with the frames that it needs."""
    name, ends = names.equalities[e], (int(model.eq_obj1id[e]), int(model.eq_obj2id[e]))
    rigid = model.eq_type[e] == _WELD and data[10] != 0  # the torque scale: without it a weld is a ball joint
    kind = "weld" if rigid else "spherical"
    if int(getattr(model, "eq_objtype", np.zeros(model.neq))[e]) == _SITE:
        return [], Loop(name, names.sites[ends[0]], names.sites[ends[1]], kind)
    if model.eq_type[e] == _WELD:  # the anchor of the second body, in the first body and in the second
        poses = [make_pose(from_quaternion(np.roll(data[6:10], -1)), data[3:6]), make_pose(p=data[:3])]
    else:
        poses = [make_pose(p=data[:3]), make_pose(p=data[3:6])]
    sides = zip("ab", ends, poses, strict=True)
    frames = [Frame(unused(f"{name}/{end}"), names.bodies[body], pose) for end, body, pose in sides]
    return frames, Loop(name, frames[0].name, frames[1].name, kind)


def write_equalities(
    root: ET.Element, bodies: dict[str, ET.Element], mechanism: Mechanism, joints: Sequence[Joint], source: str
) -> None:
    """Add <equality> for loops, couplings and followers among ``joints``, with sites in the ``bodies`` at loop ends."""
    followers = [joint for joint in joints if joint.follows]
    if not (followers or mechanism.loops):
        return
    equality = add_element(root, "equality")
    places: set[str] = set(mechanism.places)
    names: set[str] = {loop.name for loop in mechanism.loops}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            _write_coupling(equality, loop, source)
        else:
            _write_loop(equality, loop, bodies, mechanism, places, names, source)
    for joint in followers:
        name, polynomial = claim_name(f"{joint.name}/follows", names), [joint.offset, joint.ratio, 0, 0, 0]
        add_element(equality, "joint", name=name, joint1=joint.name, joint2=joint.coordinate, polycoef=polynomial)


def _write_coupling(equality: ET.Element, coupling: Coupling, source: str) -> None:
    (first, c), *others = coupling.coefficients.items()
    if len(others) > 1:
        found = f"coupling {coupling.name!r} has {len(others) + 1} coordinates"
        raise ModelError(describe(found, where=source, allowed="1 or 2 in MJCF", fix="save as .toml"))
    second = others[0][0] if others else None
    polynomial = [coupling.offset / c, -others[0][1] / c if others else 0, 0, 0, 0]
    add_element(equality, "joint", name=coupling.name, joint1=first, joint2=second, polycoef=polynomial)


def _write_loop(
    equality: ET.Element,
    loop: Loop,
    bodies: dict[str, ET.Element],
    mechanism: Mechanism,
    places: set[str],
    names: set[str],
    source: str,
) -> None:
    """Add the constraints of a loop between sites; ``places`` and ``names`` are the names in use."""
    if loop.kind not in _CONSTRAINTS:
        found, allowed = f"loop {loop.name!r} is {loop.kind}", f"{', '.join(_CONSTRAINTS)} in MJCF"
        raise ModelError(describe(found, where=source, allowed=allowed, fix="save as .toml"))
    frames = {frame.name: frame for frame in mechanism.frames}
    for k, tag in enumerate(_CONSTRAINTS[loop.kind]):
        ends = []
        for end, letter in ((loop.a, "a"), (loop.b, "b")):
            if end in frames and not k:  # the site of the frame itself
                ends.append(end)
                continue
            link, pose = (frames[end].link, frames[end].pose) if end in frames else (end, make_pose())
            site, (x, y, z, w) = claim_name(f"{loop.name}/{letter}{k or ''}", places), to_quaternion(pose[:3, :3])
            point = pose[:3, 3] + k * _LEVER * pose[:3, 2]
            add_element(bodies[link], "site", name=site, pos=point, quat=[w, x, y, z])
            ends.append(site)
        name = claim_name(f"{loop.name}/axis", names) if k else loop.name
        add_element(equality, tag, name=name, site1=ends[0], site2=ends[1])
