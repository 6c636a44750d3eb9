"""What closes a loop: a joint that was cut between two frames of the tree, or a relation between coordinates.

A cut joint is described by the equations that hold while it is closed, in the pose (R, p) of frame b seen from frame a.
Axes of cut joints are the z axes of both frames.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca

from torsor.errors import ModelError, describe
from torsor.mechanism.values import Part, checked_name, frozen_array

__all__ = ["CUTS", "Closure", "Coupling", "Loop", "renamed"]


class Turns(NamedTuple):
    """What holds axes together: sines of the angles between them, and the cosine of half the angle, which is not 0."""

    sines: Callable[[ca.SX], list[ca.SX]]
    half: Callable[[ca.SX], ca.SX]


def _one(R: ca.SX) -> ca.SX:
    return ca.SX(1)


_FREE = Turns(lambda R: [], _one)
_PARALLEL = Turns(lambda R: [R[0, 2], R[1, 2]], lambda R: ca.sqrt((1 + R[2, 2]) / 2))
_ALIGNED = Turns(
    lambda R: [(R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2],
    lambda R: ca.sqrt(1 + ca.trace(R)) / 2,
)
_ACROSS = Turns(lambda R: [R[2, 2]], _one)

CUTS: dict[str, tuple[tuple[int, ...], Turns]] = {
    "weld": ((0, 1, 2), _ALIGNED),
    "revolute": ((0, 1, 2), _PARALLEL),
    "prismatic": ((0, 1), _ALIGNED),
    "cylindrical": ((0, 1), _PARALLEL),
    "universal": ((0, 1, 2), _ACROSS),
    "spherical": ((0, 1, 2), _FREE),
    "planar": ((2,), _PARALLEL),
    "rod": ((), _FREE),
}
"""What each kind of cut joint holds: the axes of frame a along which the origins agree, and the equations of the
axes. A rod, with a ball at either end, has a distance to hold instead."""


@dataclass(frozen=True, eq=False)
class Loop(Part):
    """A joint that is cut: frame (or link) ``a`` and frame ``b`` are held together as a joint of that ``kind`` holds.

    A revolute one turns about the z axes of both, a prismatic one slides along them, a cylindrical one does both, a
    planar one slides across them and turns about them; of all these the z axes point the same way. A universal joint
    has z of ``a`` and z of ``b`` as its two axes, perpendicular to each other. A "rod" has a ball at either origin,
    ``length`` (m) apart.

    Example:
        >>> Loop("tip", "left_tip", "right_tip").kind
        'revolute'
    """

    name: str
    a: str
    b: str
    kind: str = "revolute"
    length: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        checked_name(self.name, "loop", self.source)
        for end in (self.a, self.b):
            checked_name(end, "frame of a loop", self.source)
        where = f"{self.source}: loop {self.name!r}" if self.source else f"loop {self.name!r}"
        if not isinstance(self.kind, str) or self.kind not in CUTS:
            raise ModelError(describe(f"kind is {self.kind!r}", where=where, allowed=", ".join(CUTS)))
        if self.a == self.b:
            raise ModelError(describe(f"both ends are {self.a!r}", where=where, allowed="two different frames"))
        length = float(frozen_array(self.length, (), where, "length"))
        if (self.kind == "rod") != (length > 0):
            allowed = "a length above 0" if self.kind == "rod" else "no length, except of a rod"
            raise ModelError(describe(f"length of a {self.kind} is {length}", where=where, allowed=allowed))
        self._set(length=length)

    @property
    def count(self) -> int:
        """Number of equations."""
        return self.lengths + len(CUTS[self.kind][1].sines(ca.SX.eye(3)))

    @property
    def lengths(self) -> int:
        """How many of the equations, the first ones, are of lengths (m); the others are of sines of angles."""
        return len(CUTS[self.kind][0]) if self.kind != "rod" else 1

    def units(self, length: float) -> list[float]:
        """Return what each equation is measured by: lengths by that of the mechanism (m), angles by 1."""
        return [length] * self.lengths + [1.0] * (self.count - self.lengths)

    def rows(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return what is zero while the loop is closed (m x 1), from the pose of b seen from a: lengths, then sines."""
        if self.kind == "rod":
            return ca.sqrt(p.T @ p) - self.length
        axes, turns = CUTS[self.kind]
        return ca.vertcat(*(p[k] for k in axes), *turns.sines(R))

    def error(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return what the loop is open by (m x 1): as ``rows``, with twice the sine of half an angle for its sine.

        Both have the same first and second rates where the loop is closed. Only this one is not zero for axes that
        point opposite ways; ``rows`` takes fewer operations.
        """
        rows = self.rows(R, p)
        half = CUTS[self.kind][1].half(R)
        return ca.vertcat(rows[: self.lengths], *(rows[k] / half for k in range(self.lengths, rows.numel())))


@dataclass(frozen=True, eq=False)
class Coupling(Part):
    """A gear or belt between coordinates, or a lock of one: the sum of shares times coordinates is ``offset``.

    Example:
        >>> Coupling("belt", {"joint1": 1.0, "joint3": -2.0}).shares["joint3"]
        -2.0
    """

    name: str
    shares: Mapping[str, float]
    offset: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        checked_name(self.name, "coupling", self.source)
        where = f"{self.source}: coupling {self.name!r}" if self.source else f"coupling {self.name!r}"
        if not isinstance(self.shares, Mapping) or not self.shares:
            raise ModelError(describe(f"shares are {self.shares!r}", where=where, allowed="a coordinate or more"))
        shares: dict[str, Any] = {}
        for name, share in self.shares.items():
            shares[name] = float(frozen_array(share, (), where, f"share of {name!r}"))
            if shares[name] == 0:
                raise ModelError(describe(f"share of {name!r} is 0", where=where, allowed="any other number"))
        self._set(shares=shares, offset=float(frozen_array(self.offset, (), where, "offset")))

    @property
    def count(self) -> int:
        """Number of equations."""
        return 1

    def units(self, length: float) -> list[float]:
        """Return what the equation is measured by."""
        return [1.0]


Closure = Loop | Coupling


def renamed(loop: Closure, name: Callable[[str], str]) -> Closure:
    """Return a loop all of whose names are other ones."""
    if isinstance(loop, Coupling):
        return replace(loop, name=name(loop.name), shares={name(each): share for each, share in loop.shares.items()})
    return replace(loop, name=name(loop.name), a=name(loop.a), b=name(loop.b))
