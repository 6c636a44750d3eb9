"""Distances between bodies: spheres, capsules and half-spaces that are fixed to links or to the world.

Distances are exact. The squared distance between two segments (capsule axes) has continuous first derivatives unless
the axes are parallel and overlap, in which case the nearest points are not unique. Second derivatives are continuous
except where a nearest point reaches the end of a segment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.checks import direction, frozen_array, number, several
from torsor.base.decoding import filled
from torsor.base.errors import ModelError
from torsor.geometry.closed_forms import segment_distance
from torsor.geometry.contacts import contact_points, has_contact_points
from torsor.geometry.pairs import named_shapes
from torsor.geometry.placed import Placed, placed_shapes
from torsor.mechanism import Shape
from torsor.motion.terms.frames import point_of
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.node import Node
from torsor.spatial import axis_frame, make_pose

MAX_DISTANCE = 1e50  # m; its square is finite


@dataclass(frozen=True, eq=False, kw_only=True)
class _Body:
    """A body fixed to a ``link`` or frame, in link axes (m), or to the world (None)."""

    link: str | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The name, by default the kind of body and its link."""
        return self.name or f"{type(self).__name__.lower()} of {self.link or 'the world'}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Sphere(_Body):
    """A ball centred at ``center`` (3,) with ``radius``, in m, in the axes of a ``link`` or frame (None: the world)."""

    radius: float
    center: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        number(self.radius, self.title, "radius", least=0.0)
        frozen_array(self.center, (3,), self.title, "center")


@dataclass(frozen=True, eq=False, kw_only=True)
class Capsule(_Body):
    """All points within ``radius`` of the segment between ``start`` and ``end`` (3,), in m.

    The points are in the axes of a ``link`` or frame (None: the world).
    """

    start: Any
    end: Any
    radius: float

    def __post_init__(self) -> None:
        number(self.radius, self.title, "radius", least=0.0)
        ends = [
            frozen_array(point, (3,), self.title, what) for point, what in ((self.start, "start"), (self.end, "end"))
        ]
        if (ends[0] == ends[1]).all():
            raise ModelError("and end are the same", argument="start", where=self.title, fix="make it a Sphere")


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfSpace(_Body):
    """All points below the plane through ``point`` (3,), in m, with the outward ``normal`` (3,).

    Both are in the axes of a ``link`` or frame (None: the world).
    """

    normal: Any
    point: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        direction(self.normal, self.title, "normal")
        frozen_array(self.point, (3,), self.title, "point")


Body = Sphere | Capsule | HalfSpace
KINDS: Mapping[str, type[Body]] = {"sphere": Sphere, "capsule": Capsule, "halfspace": HalfSpace}


def _body(given: Body | Mapping[str, Any], where: str) -> Body:
    """Return a body, or create it from a dict with its ``kind``."""
    if isinstance(given, (Sphere, Capsule, HalfSpace)):
        return given
    if not isinstance(given, Mapping) or str(given.get("kind")) not in KINDS:
        allowed = f"a body, or a table with kind {', '.join(KINDS)}"
        raise ModelError(f"the body is {given!r}", value=given, where=where, allowed=allowed)
    rest = {key: value for key, value in given.items() if key != "kind"}
    return filled(KINDS[given["kind"]], rest, f"{where}: {given['kind']}", typed=False)


def _points(node: Node, body: Sphere | Capsule) -> list[ca.SX]:
    """Return the centre of a sphere, or the ends of a capsule's axis, in base axes."""
    points = [body.center] if isinstance(body, Sphere) else [body.start, body.end]
    return [point_of(node, body.link, point) for point in points]


def _of_shapes(name: str, node: Node) -> list["Body | Placed"]:
    """Return the collision shapes of a link, frame or shape, with spheres, capsules and planes as bodies."""
    shapes = placed_shapes(node.robot)
    bodies = list[Body | Placed]()
    for index in named_shapes(node.robot, shapes, name):
        each = shapes[index]
        link = _place(each, node)
        R, p, size = each.shape.pose[:3, :3], each.shape.pose[:3, 3], each.shape.size
        if each.shape.shape == "sphere" or (each.shape.shape == "capsule" and not size[1]):
            bodies.append(Sphere(link=link, name=each.name, radius=size[0], center=p))
        elif each.shape.shape == "capsule":
            half = R[:, 2] * size[1] / 2
            bodies.append(Capsule(link=link, name=each.name, start=p - half, end=p + half, radius=size[0]))
        elif each.shape.shape == "plane":
            bodies.append(HalfSpace(link=link, name=each.name, normal=R[:, 2], point=p))
        else:
            bodies.append(each)
    return bodies


def _as_shape(body: "Body | Placed") -> Shape:
    """Return a body as a collision shape in link axes."""
    if isinstance(body, Placed):
        return body.shape
    if isinstance(body, Sphere):
        return Shape("sphere", (body.radius,), make_pose(p=body.center))
    if isinstance(body, HalfSpace):
        return Shape("plane", (), make_pose(axis_frame(direction(body.normal, body.title, "normal")), body.point))
    start, end = (np.asarray(point, dtype=float) for point in (body.start, body.end))
    pose = make_pose(axis_frame(end - start), (start + end) / 2)
    return Shape("capsule", (body.radius, float(np.linalg.norm(end - start))), pose)


def _place(body: "Body | Placed", node: Node) -> str | None:
    """Return the name of the link or frame to which a body is fixed, or None for the base."""
    if isinstance(body, Placed):
        return None if body.link < 0 else node.robot.links[body.link].name
    return body.link


class _Posed(NamedTuple):
    """A shape with its ``pose`` (4 x 4) on a link; the body has a radius that is larger by ``excess`` (m)."""

    shape: Shape
    pose: ca.SX
    excess: ca.SX


def _posed(body: "Body | Placed", shape: Shape, node: Node) -> _Posed:
    """Return the shape of a body; the pose and radius of world bodies are inputs that may change."""
    place = _place(body, node)
    if place is not None or isinstance(body, Placed):
        return _Posed(shape, ca.SX(np.eye(4)) if place is None else node.pose(place), ca.SX(0))
    pose = node.given(shape.pose)
    if isinstance(body, Sphere):
        return _Posed(Shape("sphere", (1.0,)), pose, node.given(body.radius - 1.0))
    return _Posed(replace(shape, pose=np.eye(4)), pose, ca.SX(0))


def _title(body: "Body | Placed") -> str:
    return body.name if isinstance(body, Placed) else body.title


@dataclass(frozen=True, eq=False, kw_only=True)
class Clearance(Constraint):
    """A constraint that keeps two bodies, or all pairs of two groups of bodies, at least ``least`` (m) apart.

    ``first`` and ``second`` are one or more of ``Sphere``, ``Capsule`` and ``HalfSpace`` (or dicts with a ``kind``),
    fixed to links, frames or the world. They may also be names of links, frames or shapes, which select collision
    shapes of the robot. Among these, boxes and cylinders are supported only against planes and spheres; for other
    pairs, replace them with capsules (``torsor.geometry.enclosing_capsule``).

    Between spheres and capsules, the row is (distance of their axes / D)^2 >= 1, where D is the sum of both radii and
    ``least``. Against a half-space, rows are the height of the centre, or of both ends, minus the radius. For other
    shapes, there is one row per contact point. All rows are exact. Where two axes intersect, the row has no gradient,
    so bodies must not intersect in the initial guess.

    Example:
        >>> table, ball = HalfSpace(normal=[0, 0, 1]), Sphere(radius=0.1, link="hand")
        >>> Clearance(first=ball, second=table, least=0.02).title
        'Clearance'
    """

    first: Any
    second: Any
    least: float = 0.0

    def rows(self, node: Node) -> Rows:
        """Return the rows of all pairs."""
        number(self.least, self.title, "least", least=0.0)
        sides = [self._bodies(node, bodies) for bodies in (self.first, self.second)]
        pairs = [(a, b, f"{_title(a)} from {_title(b)}") for a in sides[0] for b in sides[1]]
        points = cache(partial(_points, node))
        bounded = [(*row, label) for a, b, label in pairs for row in self._pair(a, b, node, points)]
        rows, lower, labels = zip(*bounded, strict=True)
        return Rows(ca.vertcat(*rows), np.array(lower), np.full(len(rows), np.inf), labels)

    def _bodies(self, node: Node, given: Any) -> list["Body | Placed"]:
        bodies = list[Body | Placed]()
        for entry in [given] if isinstance(given, (Mapping, str)) else several(given):
            bodies += _of_shapes(entry, node) if isinstance(entry, str) else [_body(entry, self.title)]
        if not bodies:
            raise ModelError("there are no bodies", where=self.title, fix="pass first and second")
        for body in bodies:
            if not isinstance(body, Placed) and body.link is not None:
                node.robot.place(body.link)
        return bodies

    def _shaped(self, a: "Body | Placed", b: "Body | Placed", node: Node) -> list[tuple[ca.SX, float]]:
        """Return rows of a pair with a box, cylinder, ellipsoid or mesh: the distances of their contact points."""
        shapes = _as_shape(a), _as_shape(b)
        # Contact points of two boxes describe their overlap, but not the distance of separate boxes.
        if not has_contact_points(*shapes) or shapes[0].shape == shapes[1].shape == "box":
            message = f"{_title(a)!r} is a {shapes[0].shape} and {_title(b)!r} a {shapes[1].shape}"
            fix = "use capsules: robot.with_shapes(link, [torsor.geometry.enclosing_capsule(shape)])"
            raise ModelError(message, where=self.title, allowed="pairs with a closed form", fix=fix)
        first, second = (_posed(body, shape, node) for body, shape in zip((a, b), shapes, strict=True))
        points = contact_points(first.shape, first.pose, second.shape, second.pose)
        return [(point.distance - first.excess - second.excess, self.least) for point in points]

    def _pair(
        self, a: "Body | Placed", b: "Body | Placed", node: Node, points: Callable[[Sphere | Capsule], list[ca.SX]]
    ) -> list[tuple[ca.SX, float]]:
        """Return rows with their lower bounds; ``points`` returns the points of a body."""
        same = _place(a, node) == _place(b, node)
        if same or (isinstance(a, HalfSpace) and isinstance(b, HalfSpace)):
            message = f"the pair is {_title(a)} and {_title(b)}"
            raise ModelError(
                message, where=self.title, allowed="bodies of two different links, and not two half-spaces"
            )
        if isinstance(a, Placed) or isinstance(b, Placed):
            return self._shaped(a, b, node)
        if isinstance(b, HalfSpace):
            a, b = b, a
        assert not isinstance(b, HalfSpace)
        if isinstance(a, HalfSpace):
            base, normal = point_of(node, a.link, a.point), node.given(direction(a.normal, a.title, "normal"))
            up = normal if a.link is None else node.pose(a.link)[:3, :3] @ normal
            return [(ca.dot(up, p - base), b.radius + self.least) for p in points(b)]
        wide = a.radius + b.radius + self.least
        if not wide > 0:
            message = f"{a.title} and {b.title} have no radius"
            raise ModelError(message, where=self.title, fix="give a radius, or a positive least")
        if wide > MAX_DISTANCE:
            message = f"the radii and least add up to {wide:.3g} m"
            raise ModelError(message, where=self.title, allowed=f"up to {MAX_DISTANCE:g} m")
        return [(segment_distance(points(a), points(b)) * node.given(1 / wide**2), 1.0)]
