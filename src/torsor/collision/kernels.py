"""The closed forms as compiled functions of pairs of shapes: one for each pair of kinds, for all robots and states."""

from functools import lru_cache
from typing import Any

import casadi as ca

from torsor.collision.closed_forms import CLOSED, closest
from torsor.compiler import compile
from torsor.mechanism.shapes import SHAPE_SIZES


@lru_cache
def pair_kernel(a: str, b: str) -> Any:
    """Return the compiled distance of shapes of kinds a and b, from poses (..., 3, 4) and sizes.

    It returns distances (...), unit normals (..., 3) from the first to the second, and points (..., 3) of the first.

    Example:
        >>> low, high = np.eye(4)[:3], np.eye(4)[:3] + [0, 0, 0, 2.0]
        >>> distance, normal, point = pair_kernel("sphere", "sphere")(low, [0.5], high, [1.0])
        >>> round(float(distance), 9)
        1.9641016151377545
    """
    poses = [ca.SX.sym(name, 3, 4) for name in ("A", "B")]
    sizes = [ca.SX.sym(name, SHAPE_SIZES[kind]) for name, kind in zip(("a", "b"), (a, b), strict=True)]
    arguments = [x for x, kind in zip((poses[0], sizes[0], poses[1], sizes[1]), (a, a, b, b), strict=True)]
    given = [each for each in arguments if each.numel()]
    found = closest(a, poses[0], sizes[0], b, poses[1], sizes[1])
    function = ca.Function(f"{a}_{b}", given, ca.cse([found.distance, found.normal, found.first]))
    inputs = [(3, 4) if each.shape == (3, 4) else (each.numel(),) for each in given]
    return compile(function, inputs=inputs, outputs=[(), (3,), (3,)])


def in_order(a: str, b: str) -> bool:
    """Return whether the closed form of two kinds takes them in this order."""
    return (a, b) in CLOSED
