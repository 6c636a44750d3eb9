"""Reading the equality constraints of MJCF as loops and couplings.

They are soft in MuJoCo and hold exactly here. The compiled model contains what MuJoCo computes in the reference pose
(``qpos0``): the anchor on the second body, and the relative pose of a weld.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.arrays import Array
from torsor.mechanism import Coupling, Frame, Loop
from torsor.mechanism.loops import Closure
from torsor.spatial import from_quaternion, make_pose

_CONNECT, _WELD, _JOINT = 0, 1, 2  # numbers of mjtEq; the others are of tendons, flexible bodies and geoms
_SITE = 6  # of mjtObj


class Equalities(NamedTuple):
    """Loops and couplings of a file with their frames, and masks (neq,) of the constraints that are omitted."""

    frames: list[Frame]
    loops: list[Closure]
    nonlinear: NDArray[np.bool_]
    unsupported: NDArray[np.bool_]


class _Names(NamedTuple):
    equalities: list[str]
    bodies: list[str]
    joints: list[str]
    sites: list[str]


def read_equalities(
    model: Any, active: NDArray[np.bool_], names: tuple[list[str], ...], unused: Callable[[str], str]
) -> Equalities:
    """Return the loops and couplings of the ``active`` equality constraints.

    ``names`` are those of equality constraints, bodies, joints and sites; ``unused`` makes the name of a frame unique.
    """
    named = _Names(*names)
    found = Equalities([], [], np.zeros(model.neq, dtype=bool), np.zeros(model.neq, dtype=bool))
    for e in np.flatnonzero(active):
        kind, data = int(model.eq_type[e]), np.array(model.eq_data[e])
        if kind == _JOINT:
            coupling = _coupling(model, int(e), data, named)
            found.loops.extend(coupling)
            found.nonlinear[e] = not coupling
        elif kind in (_CONNECT, _WELD):
            frames, loop = _loop(model, int(e), data, named, unused)
            found.frames.extend(frames)
            found.loops.append(loop)
        else:
            found.unsupported[e] = True
    return found


def _coupling(model: Any, e: int, data: Array, names: _Names) -> list[Closure]:
    """Return y - y0 = c0 + c1 (x - x0) as a list with one coupling; an empty list if there are higher powers."""
    y, x = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    coefficients, offset = {names.joints[y]: 1.0}, float(data[0] + model.qpos0[model.jnt_qposadr[y]])
    if x >= 0 and data[2:5].any():
        return []
    if x >= 0 and data[1]:  # otherwise y is locked
        coefficients[names.joints[x]] = -float(data[1])
        offset -= float(data[1] * model.qpos0[model.jnt_qposadr[x]])
    return [Coupling(names.equalities[e], coefficients, offset)]


def _loop(model: Any, e: int, data: Array, names: _Names, unused: Callable[[str], str]) -> tuple[list[Frame], Closure]:
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
    frames = [
        Frame(unused(f"{name}/{end}"), names.bodies[body], pose)
        for end, body, pose in zip("ab", ends, poses, strict=True)
    ]
    return frames, Loop(name, frames[0].name, frames[1].name, kind)
