"""What closes a loop: a joint that was cut between two frames of the tree, or a relation between coordinates.

A cut joint is described by the equations that hold while it is closed, in the pose (R, p) of frame b seen from frame a.
Axes of cut joints are the z axes of both frames.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca

from torsor.errors import ModelError, describe
from torsor.robot.values import Part, checked_name, frozen_array

__all__ = ["CUTS", "Closure", "Coupling", "Loop", "renamed"]

Rows = Callable[[ca.SX, ca.SX], list[ca.SX]]


def _at(*axes: int) -> Rows:
    """Return the rows that say that the origins agree along axes of frame a."""
    return lambda R, p: [p[k] for k in axes]


# Twice the sine of half an angle, not the sine: axes that point the opposite way are not closed.
def _parallel(R: ca.SX, p: ca.SX) -> list[ca.SX]:
    """Return the rows that say that the z axes are parallel: 2 sin(angle/2) along x and y."""
    half = ca.sqrt((1 + R[2, 2]) / 2)
    return [R[0, 2] / half, R[1, 2] / half]


def _aligned(R: ca.SX, p: ca.SX) -> list[ca.SX]:
    """Return the rows that say that all axes agree: 2 sin(angle/2) times the axis of the turn."""
    half = ca.sqrt(1 + ca.trace(R))  # twice its cosine
    return [(R[2, 1] - R[1, 2]) / half, (R[0, 2] - R[2, 0]) / half, (R[1, 0] - R[0, 1]) / half]


def _across(R: ca.SX, p: ca.SX) -> list[ca.SX]:
    """Return the row that says that the z axes are perpendicular."""
    return [R[2, 2]]


CUTS: dict[str, tuple[Rows, ...]] = {
    "weld": (_at(0, 1, 2), _aligned),
    "revolute": (_at(0, 1, 2), _parallel),
    "prismatic": (_at(0, 1), _aligned),
    "cylindrical": (_at(0, 1), _parallel),
    "universal": (_at(0, 1, 2), _across),
    "spherical": (_at(0, 1, 2),),
    "planar": (_at(2), _parallel),
    "rod": (lambda R, p: [ca.sqrt(p.T @ p)],),
}
"""The equations of each kind of cut joint; a rod has a ball at either end, and a length instead of zero."""


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
        return int(self.rows(ca.SX.eye(3), ca.SX.ones(3, 1)).numel())

    def rows(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return what is zero while the loop is closed (m x 1), from the pose of b seen from a."""
        found = ca.vertcat(*(row for rule in CUTS[self.kind] for row in rule(R, p)))
        return found - self.length if self.kind == "rod" else found


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


Closure = Loop | Coupling


def renamed(loop: Closure, name: Callable[[str], str]) -> Closure:
    """Return a loop all of whose names are other ones."""
    if isinstance(loop, Coupling):
        return replace(loop, name=name(loop.name), shares={name(each): share for each, share in loop.shares.items()})
    return replace(loop, name=name(loop.name), a=name(loop.a), b=name(loop.b))
