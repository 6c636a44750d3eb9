"""Conversion of link, frame or shape names to shape pairs, and the cached distance models of a robot."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from torsor.base.checks import instance_of
from torsor.base.errors import ModelError, listing
from torsor.geometry.allowed import AllowedCollisions, default_matrix, matrix_of, read_srdf, shape_pairs
from torsor.geometry.distances import DistanceModel
from torsor.geometry.placed import Placed, placed_shapes
from torsor.mechanism import Mechanism, Shape
from torsor.mechanism.mechanism import carrier

M = TypeVar("M", bound=Mechanism)
Pairs = Sequence[tuple[str, str]] | AllowedCollisions | None


def distance_model(robot: Mechanism, pairs: Pairs = None, within: float | None = None) -> DistanceModel:
    """Return the distance model of a robot; see ``robot.shapes.distances`` for ``pairs`` and ``within``.

    Models are cached by robot and pair selection, so that ``robot.shapes.distances`` is fast in a loop.

    Example:
        >>> sphere = torsor.Shape("sphere", (0.1,))
        >>> arm = torsor.library.planar_chain(3).with_shapes("base", [sphere]).with_shapes("link3", [sphere])
        >>> model = distance_model(arm, [("base", "link3")])
        >>> model([0.0, 0.0, 0.0]).distance.round(9).tolist()
        [1.8]
    """
    kernels: Any = getattr(instance_of(robot, Mechanism, "distances", "robot"), "kernels", None)
    if kernels is None:
        return _model(robot, pairs, within)  # raises an error that explains why
    key = pairs if pairs is None or isinstance(pairs, AllowedCollisions) else _frozen(pairs, robot.name)
    result: DistanceModel = kernels.once(("distances", key, within), lambda: _model(robot, pairs, within))
    return result


def _frozen(pairs: Any, where: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of names as tuples; raise ModelError for other input."""
    listed = tuple(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes)) else (pairs,)
    result = []
    for item in listed:
        pair = tuple(item) if isinstance(item, (tuple, list)) else ()
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            allowed = "pairs of link, frame or shape names, or an allowed collision matrix"
            raise ModelError(f"contains {item!r}", value=item, argument="pairs", where=where, allowed=allowed)
        result.append(pair)
    return tuple(result)


def _model(robot: Mechanism, pairs: Pairs, within: float | None) -> DistanceModel:
    shapes = placed_shapes(robot)
    if pairs is None or isinstance(pairs, AllowedCollisions):
        if not shapes:
            fix = "load a file with collision geometry, or use robot.with_shapes(link, shapes)"
            raise ModelError("no link has a collision shape", where=robot.name, fix=fix)
        matrix = default_matrix(robot) if pairs is None else pairs
        reasons = ((*key, why) for key, why in matrix.reasons.items())
        known = matrix_of(robot.name, (shape.part for shape in shapes), reasons)
        chosen = shape_pairs(shapes, known)
        chosen.sort(key=lambda pair: [shapes[index].shape.shape for index in pair])  # one call per pair of kinds
        return DistanceModel(robot, shapes, chosen, within)
    result = dict[tuple[int, int], None]()
    for a, b in _frozen(pairs, robot.name):
        both = [(i, j) for i in named_shapes(robot, shapes, a) for j in named_shapes(robot, shapes, b)]
        moving = [(i, j) for i, j in both if shapes[i].link != shapes[j].link]
        if not moving:
            message = f"{a!r} and {b!r} move together, so their distance does not change"
            raise ModelError(message, where=robot.name, allowed="shapes of two links")
        result |= dict.fromkeys(moving)
    return DistanceModel(robot, shapes, list(result), within)


def named_shapes(robot: Mechanism, shapes: Sequence[Placed], name: str) -> list[int]:
    """Return the indices of the shapes called ``name``, or of the shapes of the link or frame called ``name``.

    ModelError is raised if there are none.
    """
    exact = [k for k, shape in enumerate(shapes) if shape.name == name]
    result = exact or [k for k, shape in enumerate(shapes) if shape.part == name]
    if not result and name in robot.places:
        place = robot.place(name)
        is_link = name in (*robot.link_names, robot.base.name)
        result = [k for k, shape in enumerate(shapes) if is_link and shape.link == place.link]
        if not result:
            fix = f"robot.with_shapes({name!r}, [torsor.Shape(...)])"
            raise ModelError(f"{name!r} has no collision shape", value=name, where=robot.name, fix=fix)
    if not result:
        names = dict.fromkeys([*(shape.part for shape in shapes), *(shape.name for shape in shapes)])
        allowed = listing(map(repr, names), like=repr(name))
        raise ModelError(f"no link, frame or shape {name!r}", value=name, where=robot.name, allowed=allowed)
    return result


def with_shapes(robot: M, place: str, shapes: Iterable[Shape]) -> M:
    """Return the robot with the collision shapes of a link or frame replaced by ``shapes``, in its axes.

    An empty list removes them.
    """
    where = f"{robot.name}: {place!r}"
    spot = robot.place(place)
    link = carrier(robot, spot)
    listed = [shapes] if isinstance(shapes, Shape) else shapes
    if not isinstance(listed, Iterable):
        raise ModelError(argument="shapes", value=listed, where=where, allowed="a list of torsor.Shape")
    checked = [instance_of(item, Shape, where, "one of the shapes", allowed="torsor.Shape") for item in listed]
    part = "" if place == link.name else place
    kept = [shape for shape in link.shapes if shape.link != part]
    added = [replace(value, pose=spot.pose @ value.pose, link=part) for value in checked]
    changed = replace(link, shapes=(*kept, *added))
    if spot.link < 0:
        return replace(robot, base=changed)
    return replace(robot, links=(*robot.links[: spot.link], changed, *robot.links[spot.link + 1 :]))


def with_allowed_collisions(robot: M, allowed: Any) -> M:
    """Return the robot with link pairs that may touch: a matrix, a list of (link, link, reason), or an .srdf file."""
    if isinstance(allowed, AllowedCollisions):
        listed = [(*pair, reason) for pair, reason in allowed.reasons.items()]
    elif isinstance(allowed, Iterable) and not isinstance(allowed, str):
        listed = list(allowed)
    else:  # as in MoveIt, an SRDF file may name links that the URDF file does not contain
        listed = [item for item in read_srdf(allowed) if item[0] in robot.places and item[1] in robot.places]
    return replace(robot, allowed_collisions=tuple(listed))


# Overlapping shapes by name, which are not allowed at the start of a motion or simulation.

TOUCHING_DEPTH = 1e-9  # m: overlap due to rounding of shapes that rest on each other


def overlapping(robot: Mechanism, q: ArrayLike, pairs: Pairs = None) -> list[tuple[str, str, float]]:
    """Return (shape, shape, depth in m) for the pairs that overlap at q (..., nq), deepest first.

    Example:
        >>> ball = torsor.Shape("sphere", (0.6,))
        >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
        >>> [(a, b, round(depth, 9)) for a, b, depth in overlapping(arm, [0.0, 3.0, 0.0], [("base", "link3")])]
        [('base/0', 'link3/0', 1.058525597)]
    """
    return distance_model(robot, pairs, within=0.0)(q).overlapping()


def refuse_overlap(
    robot: Mechanism, q: ArrayLike, pairs: Pairs = None, where: str = "", least: float = TOUCHING_DEPTH
) -> None:
    """Raise ModelError that names the shapes if any overlap by more than ``least`` (m) at q (..., nq).

    Example:
        >>> ball = torsor.Shape("sphere", (0.6,))
        >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
        >>> refuse_overlap(arm, [0.0, 0.0, 0.0], [("base", "link3")])
    """
    deep = [item for item in overlapping(robot, q, pairs) if item[2] > least]
    if deep:
        result = listing((f"{a!r} and {b!r} by {1e3 * depth:.3g} mm" for a, b, depth in deep), most=4)
        fix = "start apart, or allow the pair: robot.with_allowed_collisions"
        raise ModelError(f"shapes overlap: {result}", where=where or robot.name, fix=fix)
