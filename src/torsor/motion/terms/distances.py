"""Distances between bodies: spheres, capsules and half-spaces, fixed to links or to the world.

Distances are exact. The distance of two segments, the axes of capsules, is the least of that between interior points
and those of their ends from the other segment. Its square has continuous first derivatives wherever the nearest points
are unique (not for parallel axes that overlap), and second ones except where a nearest point reaches an end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from torsor.checks import frozen_array, number, several
from torsor.errors import ModelError, describe
from torsor.motion.terms.frames import direction, point_of
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.node import Node

PARALLEL = 1e-9  # squared sine of the angle below which segments count as parallel


@dataclass(frozen=True, eq=False, kw_only=True)
class _Body:
    """A body fixed to a ``link`` or frame, in its axes (m), or to the world (None)."""

    link: str | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The name, by default the kind of body and its link."""
        return self.name or f"{type(self).__name__.lower()} of {self.link or 'the world'}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Sphere(_Body):
    """A ball about ``center`` (3,).

    Example:
        >>> Sphere(radius=0.1, link="hand").title
        'sphere of hand'
    """

    radius: float
    center: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        number(self.radius, self.title, "radius", least=0.0)
        frozen_array(self.center, (3,), self.title, "center")


@dataclass(frozen=True, eq=False, kw_only=True)
class Capsule(_Body):
    """All points no farther than ``radius`` from the segment between ``start`` and ``end`` (3,).

    Example:
        >>> Capsule(start=[0, 0, 0], end=[0.3, 0, 0], radius=0.05, link="forearm").title
        'capsule of forearm'
    """

    start: Any
    end: Any
    radius: float

    def __post_init__(self) -> None:
        number(self.radius, self.title, "radius", least=0.0)
        ends = [frozen_array(each, (3,), self.title, what) for each, what in ((self.start, "start"), (self.end, "end"))]
        if (ends[0] == ends[1]).all():
            raise ModelError(describe("start and end are the same", where=self.title, fix="make it a Sphere"))


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfSpace(_Body):
    """All points below the plane through ``point`` (3,) with the outward ``normal`` (3,).

    Example:
        >>> HalfSpace(normal=[0, 0, 1]).title
        'halfspace of the world'
    """

    normal: Any
    point: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        direction(self.normal, self.title, "normal")
        frozen_array(self.point, (3,), self.title, "point")


Body = Sphere | Capsule | HalfSpace
KINDS: Mapping[str, type[Body]] = {"sphere": Sphere, "capsule": Capsule, "halfspace": HalfSpace}


def _body(given: Body | Mapping[str, Any], where: str) -> Body:
    """Return a body, also from a table with its ``kind``."""
    if isinstance(given, (Sphere, Capsule, HalfSpace)):
        return given
    if not isinstance(given, Mapping) or str(given.get("kind")) not in KINDS:
        found = f"{given!r}"
        raise ModelError(describe(found, where=where, allowed=f"a body, or a table with kind {', '.join(KINDS)}"))
    rest = {key: value for key, value in given.items() if key != "kind"}
    try:
        return KINDS[given["kind"]](**rest)
    except TypeError as error:
        raise ModelError(describe(str(error), where=where)) from None


def _points(body: Sphere | Capsule, node: Node) -> tuple[list[ca.SX], float]:
    """Return the centre of a sphere, or the ends of a capsule's axis, in base axes; and the radius."""
    own = [body.center] if isinstance(body, Sphere) else [body.start, body.end]
    return [point_of(node, body.link, each) for each in own], body.radius


def _from_segment(p: ca.SX, start: ca.SX, end: ca.SX) -> ca.SX:
    """Return the squared distance of a point from a segment."""
    along = end - start
    s = ca.fmax(0, ca.fmin(1, ca.dot(p - start, along) / ca.sumsqr(along)))
    return ca.sumsqr(p - start - s * along)


def segment_distance(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> ca.SX:
    """Return the squared distance of two segments, or points, each given by its ends (3 x 1).

    Example:
        >>> across = [ca.SX([0, -1, 2]), ca.SX([0, 1, 2])]
        >>> segment_distance([ca.SX([-1, 0, 0]), ca.SX([1, 0, 0])], across)
        SX(4)
    """
    if len(first) == 1 and len(second) == 1:
        return ca.sumsqr(first[0] - second[0])
    if len(first) == 1 or len(second) == 1:
        point, segment = (first[0], second) if len(first) == 1 else (second[0], first)
        return _from_segment(point, *segment)
    ends = [_from_segment(p, *second) for p in first] + [_from_segment(p, *first) for p in second]
    least = ends[0]
    for each in ends[1:]:
        least = ca.fmin(least, each)
    a, b, r = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    aa, bb, ab, ar, br = ca.sumsqr(a), ca.sumsqr(b), ca.dot(a, b), ca.dot(a, r), ca.dot(b, r)
    area = aa * bb - ab * ab
    apart = area > PARALLEL * aa * bb
    safe = ca.if_else(apart, area, 1)  # the other branch is evaluated too
    s, t = (ab * br - bb * ar) / safe, (aa * br - ab * ar) / safe
    inside = ca.logic_and(apart, ca.logic_and(ca.logic_and(s > 0, s < 1), ca.logic_and(t > 0, t < 1)))
    return ca.if_else(inside, ca.sumsqr(r + s * a - t * b), least)


@dataclass(frozen=True, eq=False, kw_only=True)
class Clearance(Constraint):
    """Two bodies keep at least ``least`` (m) apart, or each of several from each of several others.

    ``first`` and ``second`` are one or more of ``Sphere``, ``Capsule`` and ``HalfSpace`` (or tables with a ``kind``),
    on links or frames, or in the world. Between spheres and capsules a row is (distance of their axes / D)^2 >= 1 with
    D = both radii + ``least``; against a half-space it is the height of the centre, or of both ends, less the radius.
    All are exact. Where two axes meet, the row has no gradient: bodies must not intersect at the start.

    Example:
        >>> table, ball = HalfSpace(normal=[0, 0, 1]), Sphere(radius=0.1, link="hand")
        >>> Clearance(first=ball, second=table, least=0.02).title
        'Clearance'
    """

    first: Any = field(default=())
    second: Any = field(default=())
    least: float = 0.0

    def rows(self, node: Node) -> Rows:
        """Return the rows of all pairs."""
        number(self.least, self.title, "least", least=0.0)
        sides = [self._bodies(node, each) for each in (self.first, self.second)]
        pairs = [(a, b, f"{a.title} from {b.title}") for a in sides[0] for b in sides[1]]
        found = [(*each, label) for a, b, label in pairs for each in self._pair(a, b, node)]
        rows, lower, labels = zip(*found, strict=True)
        return Rows(ca.vertcat(*rows), np.array(lower), np.full(len(rows), np.inf), labels)

    def _bodies(self, node: Node, given: Any) -> list[Body]:
        bodies = [_body(each, self.title) for each in ([given] if isinstance(given, Mapping) else several(given))]
        if not bodies:
            raise ModelError(describe("no body is given", where=self.title, fix="give first and second"))
        for body in bodies:
            if body.link is not None:
                node.robot.place(body.link)
        return bodies

    def _pair(self, a: Body, b: Body, node: Node) -> list[tuple[ca.SX, float]]:
        """Return rows with their lower bounds."""
        if a.link == b.link or (isinstance(a, HalfSpace) and isinstance(b, HalfSpace)):
            found = f"{a.title} and {b.title}"
            raise ModelError(describe(found, where=self.title, allowed="bodies of two links, not two half-spaces"))
        if isinstance(b, HalfSpace):
            a, b = b, a
        if isinstance(a, HalfSpace):
            ends, radius = _points(b, node)  # type: ignore[arg-type]
            base = point_of(node, a.link, a.point)
            tip = point_of(node, a.link, np.asarray(a.point, dtype=float) + direction(a.normal, a.title, "normal"))
            return [(ca.dot(tip - base, p - base), radius + self.least) for p in ends]
        (first, r), (second, s) = _points(a, node), _points(b, node)  # type: ignore[arg-type]
        wide = r + s + self.least
        if not wide > 0:
            found = f"{a.title} and {b.title} have no radius"
            raise ModelError(describe(found, where=self.title, fix="give a radius, or least above 0"))
        return [(segment_distance(first, second) / wide**2, 1.0)]
