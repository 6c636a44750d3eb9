"""Shapes that overlap in a posture, by name: what a start of a motion or simulation must not have."""

from numpy.typing import ArrayLike

from torsor.base.errors import ModelError, describe, listing
from torsor.geometry.pairs import Pairs, distance_model
from torsor.mechanism import Mechanism

TOUCHING = 1e-9  # m: shapes that rest on each other overlap by rounding


def overlapping(robot: Mechanism, q: ArrayLike, pairs: Pairs = None) -> list[tuple[str, str, float]]:
    """Return (shape, shape, depth in m) of the pairs that overlap at q (..., nq), the deepest first.

    Example:
        >>> ball = torsor.Shape("sphere", (0.6,))
        >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
        >>> [(a, b, round(depth, 9)) for a, b, depth in overlapping(arm, [0.0, 3.0, 0.0], [("base", "link3")])]
        [('base/0', 'link3/0', 1.058525597)]
    """
    return distance_model(robot, pairs, within=0.0)(q).overlapping()


def refuse_overlap(
    robot: Mechanism, q: ArrayLike, pairs: Pairs = None, where: str = "", least: float = TOUCHING
) -> None:
    """Raise ModelError that names the shapes which overlap by more than ``least`` (m) at q (..., nq).

    Example:
        >>> ball = torsor.Shape("sphere", (0.6,))
        >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
        >>> refuse_overlap(arm, [0.0, 0.0, 0.0], [("base", "link3")])
    """
    deep = [each for each in overlapping(robot, q, pairs) if each[2] > least]
    if deep:
        found = listing((f"{a!r} and {b!r} by {1e3 * depth:.3g} mm" for a, b, depth in deep), most=4)
        fix = "start apart, or allow the pair: robot.with_allowed_collisions"
        raise ModelError(describe(f"shapes overlap: {found}", where=where or robot.name, fix=fix))
