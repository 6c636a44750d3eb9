"""Where points of the feet are: those that stand do not move, and no other is below the ground."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.human.body.landmarks import landmark
from torsor.human.contact.support import FORE, SIDES, WHOLE, Stance, Support
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

__all__ = ["Clears", "Stands", "contacts"]

Array = NDArray[np.float64]
AXES = "xyz"
PARTS: dict[tuple[tuple[str, str], ...], str] = {WHOLE: "foot", FORE: "forefoot"}  # what stands, by its points


def _local(body: Robot, frame: str) -> tuple[str, Array]:
    """Return the link that has a landmark, and where on it that is (3,)."""
    place = body.place(frame)
    return body.link_names[place.link], place.pose[:3, 3]


@dataclass(frozen=True, eq=False, kw_only=True)
class Stands(Constraint):
    """Points of a foot stay where they stand: each within ``slack`` (m), and no faster than ``slip`` (m/s).

    Speeds are bounded along all axes on which a point is held; None does not bound them.
    """

    body: Robot
    stance: Stance
    slack: float = 0.003
    slip: float | None = None

    def _places(self) -> Array:
        """Return where the points stand (points, 3): those of a flat foot."""
        side, (x, z) = self.stance.side, self.stance.heel
        heel = landmark(self.body, f"{side}_heel")
        at = [landmark(self.body, f"{side}_{point}") - heel for point, _ in self.stance.points]
        return np.asarray(np.array(at) + np.array([x, 0.0, z]))

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return of each point where it is on its link, and where it stands (K, 6)."""
        locals_ = [_local(self.body, f"{self.stance.side}_{point}")[1] for point, _ in self.stance.points]
        return {
            f"{self.title}: {point}": np.tile(np.concatenate([own, place]), (len(s), 1))
            for (point, _), own, place in zip(self.stance.points, locals_, self._places(), strict=True)
        }

    def rows(self, node: Node) -> Rows:
        """Return how far points are from where they stand, then how fast they are."""
        rows, speeds, labels = list[ca.SX](), list[ca.SX](), list[str]()
        for point, axes in self.stance.points:
            link, _ = _local(self.body, f"{self.stance.side}_{point}")
            given, pose = node.data(f"{self.title}: {point}", 6), node.pose(link)
            held = [AXES.index(axis) for axis in axes]
            rows.append((pose[:3, :3] @ given[:3] + pose[:3, 3] - given[3:])[held])
            labels += [f"{axis} of {self.stance.side} {point}" for axis in axes]
            if self.slip is not None:
                V = node.velocity(link)
                speeds.append((pose[:3, :3] @ (V[3:] + ca.cross(V[:3], given[:3])))[held])
        near = np.full(len(labels), self.slack)
        if self.slip is not None:
            near, labels = (
                np.append(near, np.full(len(labels), self.slip)),
                [*labels, *(f"speed along {each}" for each in labels)],
            )
        return Rows(ca.vertcat(*rows, *speeds), -near, near, tuple(labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class Clears(Constraint):
    """A ``point`` of the foot of a ``side`` is no lower than ``height`` (m)."""

    body: Robot
    side: str
    point: str
    height: float = 0.0

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return where the point is on its link, and the height (K, 4)."""
        own = _local(self.body, f"{self.side}_{self.point}")[1]
        return {self.title: np.tile(np.append(own, self.height), (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the height above that height (dm)."""
        given = node.data(self.title, 4)
        pose = node.pose(_local(self.body, f"{self.side}_{self.point}")[0])
        row = 10 * (pose[1, :3] @ given[:3] + pose[1, 3] - given[3])
        return Rows(row, np.zeros(1), np.full(1, np.inf), (f"height of {self.side} {self.point}",))


def contacts(body: Robot, support: Support, slack: float, slip: float | None, axes: str = AXES) -> list[Constraint]:
    """Return that points stand when they do, and that heels, balls and toes are not below the ground otherwise.

    ``axes`` are those along which points are held at all.
    """
    found: list[Constraint] = []
    names = list[str]()
    for stance in support.stances:
        during = (stance.first, stance.last)
        part = PARTS.get(stance.points, stance.points[0][0])
        again = sum(each.startswith(f"{stance.side} {part} stands") for each in names)
        names.append(f"{stance.side} {part} stands" + (f", {again + 1}" if again else ""))
        held = [(point, "".join(axis for axis in own if axis in axes)) for point, own in stance.points]
        stance = stance._replace(points=tuple((point, own) for point, own in held if own))
        found.append(Stands(body=body, stance=stance, slack=slack, slip=slip, during=during, name=names[-1]))
    for side in SIDES:
        for point in ("heel", "ball", "toe"):
            for k, during in enumerate(support.free(side, point)):
                name = f"{side} {point} above the ground" + (f", {k + 1}" if k else "")
                found.append(Clears(body=body, side=side, point=point, height=-slack, during=during, name=name))
    return found
