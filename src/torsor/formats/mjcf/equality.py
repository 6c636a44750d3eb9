"""MJCF equality constraints, which are read as loops and couplings, and written for these and for followers.

The constraints are soft in MuJoCo and exact here. The compiled model contains the quantities that MuJoCo computes in
the reference pose (``qpos0``): the anchor on the second body, and the relative pose of a weld.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import numpy as np

from torsor.base.errors import ModelError
from torsor.formats.writing import refused_loop
from torsor.formats.xml import add_element
from torsor.mechanism import Coupling, Frame, Joint, Loop, Mechanism
from torsor.mechanism.loops import HIGHEST_POWER
from torsor.mechanism.names import claim_name
from torsor.spatial import from_quaternion, make_pose, to_quaternion

CONNECT, WELD, JOINT = 0, 1, 2  # values of mjtEq; the others are for tendons, flexible bodies and geoms
_SITE = 6  # of mjtObj
POWERS = HIGHEST_POWER + 1  # numbers of polycoef
_SPACING = 0.1  # m between the two points on the axis of a revolute joint
# The constraints of each loop kind: a revolute joint is two points on its axis.
_CONSTRAINTS = {"weld": ("weld",), "spherical": ("connect",), "revolute": ("connect", "connect")}


def read_coupling(model: Any, e: int, name: str, joints: list[str]) -> Coupling:
    """Return y - y0 = c0 + c1 (x - x0) + ... + c4 (x - x0)^4 as a coupling; without x, y is locked."""
    y, x, data = int(model.eq_obj1id[e]), int(model.eq_obj2id[e]), np.array(model.eq_data[e])
    y0, powers = float(model.qpos0[model.jnt_qposadr[y]]), [float(data[0])]
    if x >= 0:  # expanded in powers of x by Horner's rule
        away, powers = [-float(model.qpos0[model.jnt_qposadr[x]]), 1.0], [float(data[POWERS - 1])]
        for c in data[POWERS - 2 :: -1]:
            powers = np.polynomial.polynomial.polyadd(np.polynomial.polynomial.polymul(powers, away), [c]).tolist()
    coefficients: dict[str, float | list[float]] = {joints[y]: 1.0}
    if any(powers[1:]):
        coefficients[joints[x]] = [-c for c in powers[1:]]
    return Coupling(name, coefficients, powers[0] + y0)


def read_loop(
    model: Any, e: int, name: str, bodies: list[str], sites: list[str], taken: set[str]
) -> tuple[list[Frame], Loop]:
    """Return the spherical or weld loop between two sites or two bodies, and the frames that it needs."""
    ends, data = (int(model.eq_obj1id[e]), int(model.eq_obj2id[e])), np.array(model.eq_data[e])
    rigid = model.eq_type[e] == WELD and data[10] != 0  # the torque scale: without it a weld is a ball joint
    kind = "weld" if rigid else "spherical"
    if int(getattr(model, "eq_objtype", np.zeros(model.neq))[e]) == _SITE:
        return [], Loop(name, sites[ends[0]], sites[ends[1]], kind)
    if model.eq_type[e] == WELD:  # the anchor of the second body, in the first body and in the second
        poses = [make_pose(from_quaternion(np.roll(data[6:10], -1)), data[3:6]), make_pose(p=data[:3])]
    else:
        poses = [make_pose(p=data[:3]), make_pose(p=data[3:6])]
    sides = zip("ab", ends, poses, strict=True)
    frames = [Frame(claim_name(f"{name}/{end}", taken), bodies[body], pose) for end, body, pose in sides]
    return frames, Loop(name, frames[0].name, frames[1].name, kind)


def write_equalities(
    root: ET.Element, bodies: dict[str, ET.Element], mechanism: Mechanism, joints: Sequence[Joint], source: str
) -> None:
    """Add <equality> for loops, couplings and followers among ``joints``, and sites at loop ends in the ``bodies``."""
    followers = [joint for joint in joints if joint.follows]
    if not (followers or mechanism.loops):
        return
    equality = add_element(root, "equality")
    places: set[str] = set(mechanism.places)
    frames = {frame.name: (frame.link, frame.pose) for frame in mechanism.frames}
    names: set[str] = {loop.name for loop in mechanism.loops}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            _write_coupling(equality, loop, source)
        elif isinstance(loop, Loop):
            if loop.kind not in _CONSTRAINTS:
                raise refused_loop(loop, _CONSTRAINTS, source, "MJCF")
            for k, tag in enumerate(_CONSTRAINTS[loop.kind]):
                ends = []
                for end, letter in ((loop.a, "a"), (loop.b, "b")):
                    if end in frames and not k:  # the site of the frame itself
                        ends.append(end)
                        continue
                    link, pose = frames.get(end, (end, make_pose()))
                    ends.append(claim_name(f"{loop.name}/{letter}{k or ''}", places))
                    point = pose[:3, 3] + k * _SPACING * pose[:3, 2]
                    quat = np.roll(to_quaternion(pose[:3, :3]), 1)
                    add_element(bodies[link], "site", name=ends[-1], pos=point, quat=quat)
                name = claim_name(f"{loop.name}/axis", names) if k else loop.name
                add_element(equality, tag, name=name, site1=ends[0], site2=ends[1])
    for joint in followers:
        name, polynomial = claim_name(f"{joint.name}/follows", names), [joint.offset, joint.ratio, 0, 0, 0]
        add_element(equality, "joint", name=name, joint1=joint.name, joint2=joint.coordinate, polycoef=polynomial)


def _write_coupling(equality: ET.Element, coupling: Coupling, source: str) -> None:
    """Add y = c0 + c1 x + ... + c4 x^4, where y is the first coordinate without higher powers."""
    single = [name for name, c in coupling.coefficients.items() if isinstance(c, float)]
    if len(coupling.coefficients) > 2 or not single:
        result = f"coupling {coupling.name!r} has {len(coupling.coefficients)} coordinates"
        result += "" if single else ", all with higher powers"
        allowed = "1 or 2 in MJCF, one of them without higher powers"
        raise ModelError(result, where=source, allowed=allowed, fix="save as .toml")
    y, polynomials = single[0], dict(coupling.polynomials)
    (c,) = polynomials.pop(y)
    x, powers = next(iter(polynomials.items()), (None, ()))
    polynomial = [coupling.offset / c, *(-power / c for power in powers)]
    polynomial += [0.0] * (POWERS - len(polynomial))
    add_element(equality, "joint", name=coupling.name, joint1=y, joint2=x, polycoef=polynomial)
