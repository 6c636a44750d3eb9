"""Equality constraints of MJCF as loops and couplings.

MuJoCo's are soft; here they hold exactly. What MuJoCo works out in the pose of the file (``qpos0``), the anchor on the
second body and the pose that a weld keeps, stands in its compiled model.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.mechanism import Coupling, Frame, Loop
from torsor.mechanism.loops import Closure
from torsor.spatial import from_quaternion, make_pose

__all__ = ["Equalities", "read_equalities"]

Array = NDArray[np.float64]

_CONNECT, _WELD, _JOINT = 0, 1, 2  # numbers of mjtEq; the others are of tendons, flexible bodies and geoms
_SITE = 6  # of mjtObj


class Equalities(NamedTuple):
    """What the equality constraints of a file become, and which of them are left out (masks over all of them)."""

    frames: list[Frame]
    loops: list[Closure]
    curved: NDArray[np.bool_]
    foreign: NDArray[np.bool_]


class _Names(NamedTuple):
    equalities: list[str]
    bodies: list[str]
    joints: list[str]
    sites: list[str]


def read_equalities(
    model: Any, on: NDArray[np.bool_], names: tuple[list[str], ...], free: Callable[[str], str]
) -> Equalities:
    """Return what those of the constraints become that are ``on``.

    ``names`` are those of equality constraints, bodies, joints and sites; ``free`` makes a name for a frame unique.
    """
    named = _Names(*names)
    found = Equalities([], [], np.zeros(model.neq, dtype=bool), np.zeros(model.neq, dtype=bool))
    for e in np.flatnonzero(on):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e])
        if kind == _JOINT:
            coupling = _coupling(model, int(e), data, named)
            found.loops.extend(coupling)
            found.curved[e] = not coupling
        elif kind in (_CONNECT, _WELD):
            frames, loop = _loop(model, int(e), data, named, free)
            found.frames.extend(frames)
            found.loops.append(loop)
        else:
            found.foreign[e] = True
    return found


def _coupling(model: Any, e: int, data: Array, names: _Names) -> list[Closure]:
    """Return y - y0 = c0 + c1 (x - x0) as a coupling, or nothing where the polynomial has higher powers."""
    y, x = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    shares, offset = {names.joints[y]: 1.0}, float(data[0] + model.qpos0[model.jnt_qposadr[y]])
    if x >= 0 and data[2:5].any():
        return []
    if x >= 0 and data[1]:  # else the joint stands still
        shares[names.joints[x]] = -float(data[1])
        offset -= float(data[1] * model.qpos0[model.jnt_qposadr[x]])
    return [Coupling(names.equalities[e], shares, offset)]


def _loop(model: Any, e: int, data: Array, names: _Names, free: Callable[[str], str]) -> tuple[list[Frame], Closure]:
    """Return a ball joint or a weld between two sites, or between two bodies, where it needs frames of its own."""
    name, ends = names.equalities[e], (int(model.eq_obj1id[e]), int(model.eq_obj2id[e]))
    rigid = model.eq_type[e] == _WELD and data[10] != 0  # the torque scale: without it a weld is a ball joint
    kind = "weld" if rigid else "spherical"
    if int(getattr(model, "eq_objtype", np.zeros(model.neq))[e]) == _SITE:
        return [], Loop(name, names.sites[ends[0]], names.sites[ends[1]], kind)
    if model.eq_type[e] == _WELD:  # the pose of the second body's anchor, first seen from the first body
        poses = [make_pose(from_quaternion(np.roll(data[6:10], -1)), data[3:6]), make_pose(p=data[:3])]
    else:
        poses = [make_pose(p=data[:3]), make_pose(p=data[3:6])]
    frames = [
        Frame(free(f"{name}/{end}"), names.bodies[body], pose)
        for end, body, pose in zip("ab", ends, poses, strict=True)
    ]
    return frames, Loop(name, frames[0].name, frames[1].name, kind)
