"""Where hands, hips and a box are: rows of motions in which something is reached, lifted or left."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.human.body.loads import Box
from torsor.human.contact.support import SIDES
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

__all__ = ["BoxAt", "BoxClears", "BoxLevel", "Placed"]

Array = NDArray[np.float64]
AXES = "xyz"

# What a box keeps clear of, seen from the side: places of the body, each of two links by halves, and radii (m).
SHIN, THIGH, BELLY, CHEST = 0.06, 0.08, 0.10, 0.12
PLACES: tuple[tuple[str, str, float], ...] = (
    *(
        (f"{side}_{a}", f"{side}_{b}", r)
        for side in SIDES
        for a, b, r in (("foot", "shank", SHIN), ("shank", "shank", SHIN), ("shank", "thigh", THIGH))
    ),
    *(
        ("pelvis", "pelvis", BELLY),
        ("spine1", "spine1", BELLY),
        ("spine2", "spine3", BELLY),
        ("spine4", "spine4", CHEST),
    ),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Placed(Constraint):
    """A ``frame`` or link of a body is at a ``place`` (3,), to ``near`` (m), from the ground between the heels.

    ``axes`` are those along which it is.

    Example:
        >>> import torsor
        >>> Placed(body=torsor.library.human(), frame="right_knuckles", place=(-0.2, 1.0, 0.5), at=1.0).near
        0.0
    """

    body: Robot
    frame: str
    place: tuple[float, float, float]
    near: float = 0.0
    axes: str = AXES

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return where the frame is on its link (K, 3)."""
        return {self.title: np.tile(self.body.place(self.frame).pose[:3, 3], (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the coordinates."""
        link = self.body.link_names[self.body.place(self.frame).link]
        pose, held = node.pose(link), [AXES.index(axis) for axis in self.axes]
        rows = (pose[:3, :3] @ node.data(self.title, 3) + pose[:3, 3])[held]
        aim = np.array([self.place[k] for k in held], dtype=float)
        labels = tuple(f"{axis} of {self.frame}" for axis in self.axes)
        return Rows(rows, aim - self.near, aim + self.near, labels)


def _hands(node: Node, own: ca.SX) -> list[ca.SX]:
    """Return where the knuckles of the right and the left hand are, ``own`` in their axes."""
    poses = [node.pose(f"{side}_hand") for side in SIDES]
    return [pose[:3, :3] @ own + pose[:3, 3] for pose in poses]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Held(Constraint):
    """Rows of a ``box`` that both hands of a body hold."""

    body: Robot
    box: Box

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return where the knuckles are on the hands (K, 3)."""
        return {"knuckles": np.tile(self.body.place("left_knuckles").pose[:3, 3], (len(s), 1))}

    def _hands(self, node: Node) -> list[ca.SX]:
        return _hands(node, node.data("knuckles", 3))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxLevel(_Held):
    """The box stays level and across the body: hands are its width apart, to ``near`` (m), and its middle ahead."""

    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the way from the right hand to the left, and how far their middle is to the left."""
        right, left = self._hands(node)
        near = np.array([self.near] * 3 + [2 * self.near])
        aim = np.array([self.box.width, 0.0, 0.0, 0.0])
        rows = ca.vertcat(left - right, (right[0] + left[0]) / 2)
        return Rows(rows, aim - near, aim + near, ("width", "level", "skew", "middle aside"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxAt(_Held):
    """The middle of the box is at a ``height``, so far ``ahead`` of the heels (m)."""

    height: float
    ahead: float

    def rows(self, node: Node) -> Rows:
        """Return height and way ahead."""
        right, left = self._hands(node)
        aim = np.array([self.height, self.ahead])
        return Rows(((right + left) / 2)[1:], aim, aim, ("height", "ahead"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxClears(_Held):
    """Seen from the side, the box keeps clear of shanks, knees, thighs and trunk: both are discs.

    That of the box has half its ``depth`` (m) as radius. The box is wider than the legs are apart, so that it may not
    come between them.
    """

    depth: float = 0.3

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return where the knuckles are on the hands, and squares of the sums of radii (K, 10)."""
        wide = np.array([(self.depth / 2 + radius) ** 2 for *_, radius in PLACES])
        return {**super().data(s), self.title: np.tile(wide, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return squared distances in parts of the least ones."""
        right, left = self._hands(node)
        box, wide, rows, labels = (right + left) / 2, node.data(self.title, len(PLACES)), list[ca.SX](), list[str]()
        for k, (a, b, _) in enumerate(PLACES):
            way = (box - (node.position(a) + node.position(b)) / 2)[1:]
            rows.append(ca.sumsqr(way) / wide[k])
            labels.append(a if a == b else f"middle of {b} and {a}")
        return Rows(ca.vertcat(*rows), np.ones(len(rows)), np.full(len(rows), np.inf), tuple(labels))
