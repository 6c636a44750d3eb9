"""Constraints of the feet: points in stance do not move, and all other points stay above the ground."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
from torsor.human.contact.sharing import heel_shift
from torsor.human.contact.support import FORE, WHOLE, Stance, Support
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

AXES = "xyz"
PARTS: dict[tuple[tuple[str, str], ...], str] = {WHOLE: "foot", FORE: "forefoot"}  # parts of a foot by their points
STANCE = VectorLayout(local=3, place=3)  # data of a point: its position on the link, and its place on the ground
CLEARANCE = VectorLayout(local=3, height=1)


def _local(body: Robot, frame: str) -> tuple[str, Array]:
    """Return the link of a landmark, and the position (3,) of the landmark on it."""
    place = body.place(frame)
    return body.link_names[place.link], place.pose[:3, 3]


@dataclass(frozen=True, eq=False, kw_only=True)
class Stands(Constraint):
    """Points of a foot stay at their places on the ground: within ``slack`` (m), and slower than ``slip`` (m/s).

    Velocities are bounded along all axes along which a point is fixed; ``slip=None`` leaves them free. Positions are
    bounded along those of these axes that are among ``axes``: with "y", heights alone. A bound of 0 is an equation.
    """

    body: Robot
    stance: Stance
    slack: float = 0.003
    slip: float | None = None
    axes: str = AXES
    is_relative: bool = False  # to a heel whose place is a variable

    def _places(self) -> Array:
        """Return the places (points, 3) of the points: those of a flat foot."""
        side, (x, z) = self.stance.side, self.stance.heel
        heel = landmark(self.body, f"{side}_heel")
        at = [landmark(self.body, f"{side}_{point}") - heel for point, _ in self.stance.points]
        return np.asarray(np.array(at) + np.array([x, self.stance.height, z]))

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return for each point its position on the link and its place on the ground (K, 6)."""
        return {
            f"{self.title}: {point}": STANCE.pack(
                len(s), local=_local(self.body, f"{self.stance.side}_{point}")[1], place=place
            )
            for (point, _), place in zip(self.stance.points, self._places(), strict=True)
        }

    def rows(self, node: Node) -> Rows:
        """Return the distances of the points from their places, then their velocities."""
        rows, velocities, labels, speeds = list[ca.SX](), list[ca.SX](), list[str](), list[str]()
        for point, fixed in self.stance.points:
            link, _ = _local(self.body, f"{self.stance.side}_{point}")
            given, pose = STANCE.unpack(node.data(f"{self.title}: {point}", STANCE.size)), node.pose(link)
            held, placed = ([AXES.index(axis) for axis in fixed if axis in own] for own in (AXES, self.axes))
            place = given["place"] + heel_shift(node, self.stance.side) if self.is_relative else given["place"]
            rows.append((pose[:3, :3] @ given["local"] + pose[:3, 3] - place)[placed])
            labels += [f"{AXES[k]} of {self.stance.side} {point}" for k in placed]
            if self.slip is not None:
                V = node.velocity(link)
                velocities.append((pose[:3, :3] @ (V[3:] + ca.cross(V[:3], given["local"])))[held])
                speeds += [f"speed along {AXES[k]} of {self.stance.side} {point}" for k in held]
        bound = np.append(np.full(len(labels), self.slack), np.full(len(speeds), self.slip or 0.0))
        return Rows(ca.vertcat(*rows, *velocities), -bound, bound, (*labels, *speeds))


@dataclass(frozen=True, eq=False, kw_only=True)
class Clears(Constraint):
    """A ``point`` of the foot of a ``side`` is at a ``height`` (m) above the ground or higher."""

    body: Robot
    side: str
    point: str
    height: float = 0.0

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the point on its link, and the height (K, 4)."""
        local = _local(self.body, f"{self.side}_{self.point}")[1]
        return {self.title: CLEARANCE.pack(len(s), local=local, height=self.height)}

    def rows(self, node: Node) -> Rows:
        """Return the distance above that height (dm)."""
        given = CLEARANCE.unpack(node.data(self.title, CLEARANCE.size))
        pose = node.pose(_local(self.body, f"{self.side}_{self.point}")[0])
        row = 10 * (pose[1, :3] @ given["local"] + pose[1, 3] - given["height"])
        return Rows(row, np.zeros(1), np.full(1, np.inf), (f"height of {self.side} {self.point}",))


def contacts(
    body: Robot,
    support: Support,
    slack: float,
    slip: float | None,
    axes: str = AXES,
    *,
    placed: str = AXES,
    below: float | None = None,
    prefix: str = "",
    is_relative: bool = False,
    floor: Mapping[str, float] | None = None,
) -> list[Constraint]:
    """Return the constraints of all stances, and of heels, balls and toes that stay above the ground otherwise.

    Points are fixed along these ``axes`` only, and bounded in position along those of them that are ``placed``. Free
    points are at most ``below`` (m) under the ground, by default ``slack``; ``floor`` has {side: height (m)} of the
    ground, 0 by default. Names begin with the ``prefix``.
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
        stands = Stands(body=body, stance=stance, slack=slack, slip=slip, axes=placed, during=during)
        found.append(replace(stands, is_relative=is_relative, name=prefix + names[-1]))
    height = -slack if below is None else -below
    for side in SIDES:
        for point in ("heel", "ball", "toe"):
            for k, during in enumerate(support.free(side, point)):
                name = f"{prefix}{side} {point} above the ground" + (f", {k + 1}" if k else "")
                own = height + (floor or {}).get(side, 0.0)
                found.append(Clears(body=body, side=side, point=point, height=own, during=during, name=name))
    return found
