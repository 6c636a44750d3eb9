"""The closed forms as compiled functions of pairs of shapes: one for each pair of kinds, for all robots and states."""

from functools import lru_cache
from typing import Any

import casadi as ca

from torsor.compiler import compile
from torsor.geometry.closed_forms import closest
from torsor.mechanism.shapes import SHAPE_SIZES


@lru_cache
def pair_kernel(a: str, b: str) -> Any:
    """Return the compiled distance of shapes of kinds a and b, from poses (..., 3, 4) and sizes.

    It returns distances (...), unit normals (..., 3) from the first to the second, the nearest points (..., 2, 3) and
    the moment (..., 3) of the normal at these points about the origin.

    Example:
        >>> low, high = np.eye(3, 4), np.eye(3, 4) + [0, 0, 0, 2.0]
        >>> distance, normal, points, moment = pair_kernel("sphere", "sphere")(low, [0.5], high, [1.0])
        >>> round(float(distance), 6)  # 2 sqrt(3) - 1.5
        1.964102
    """
    poses = [ca.SX.sym(name, 3, 4) for name in ("A", "B")]
    sizes = [ca.SX.sym(name, SHAPE_SIZES[kind]) for name, kind in zip(("a", "b"), (a, b), strict=True)]
    given = [each for each in (poses[0], sizes[0], poses[1], sizes[1]) if each.numel()]  # a plane has no size
    found = closest(a, poses[0], sizes[0], b, poses[1], sizes[1])
    points, moment = ca.vertcat(found.first.T, found.second.T), ca.cross(found.first, found.normal)
    function = ca.Function(f"{a}_{b}", given, ca.cse([found.distance, found.normal, points, moment]))
    inputs = [(3, 4) if each.shape == (3, 4) else (each.numel(),) for each in given]
    return compile(function, inputs=inputs, outputs=[(), (3,), (2, 3), (3,)])
