"""The swinging foot on stairs: it stays clear of the edges of the treads that it passes."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.contact.schedule import Step
from torsor.human.contact.stairs import Edge, edges
from torsor.human.contact.support import Foot
from torsor.human.terms.feet import Clears
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node, Phase
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

POINTS = ("heel", "ball", "toe")
SOLE_SEGMENTS = (("heel", "ball"), ("ball", "toe"))  # the sole, seen from the side
ROUND = 0.01  # m: the larger of two distances is rounded where they are equal, and is there too large by half of this
FINER = 3  # moments at which edges are checked, for each node
EDGE = VectorLayout({f"{point} local": 3 for point in POINTS} | {"edge": 2, "clear": 1, "round": 1})


@dataclass(frozen=True, eq=False, kw_only=True)
class ClearsEdge(Constraint):
    """Seen from the side, the foot of a ``side`` stays clear of a tread and its ``edge``, by ``clear`` (m) or more.

    Right at an edge it is by ``ROUND`` / 2 less, so that a foot with the clearance of free steps never cuts one.
    Each point of the sole is beyond the riser or above the tread: the larger of both distances counts, with a smooth
    function. An edge that is between the ends of a part of the sole is below that part.
    """

    body: Robot
    side: str
    edge: Edge
    clear: float

    def moments(self, phase: Phase) -> Array:
        """Return three moments for each node: toes pass an edge by some 15 mm from node to node."""
        nodes = super().moments(phase)
        between = [nodes[:-1] + k / FINER * np.diff(nodes) for k in range(1, FINER)]
        return np.unique(np.concatenate([nodes, *between]))

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the positions of the points on their links, the edge (z, y), and the distance (K, 13)."""
        local = {f"{point} local": self.body.place(f"{self.side}_{point}").pose[:3, 3] for point in POINTS}
        edge = np.array([self.edge.z, self.edge.y])
        return {self.title: EDGE.pack(len(s), **local, edge=edge, clear=self.clear, round=ROUND)}

    def rows(self, node: Node) -> Rows:
        """Return the distances beyond the least one (dm): of the points of the sole, then of its parts."""
        given = EDGE.unpack(node.data(self.title, EDGE.size))
        rounding = given["round"]
        at = {point: self._place(node, point, given[f"{point} local"]) - given["edge"] for point in POINTS}
        rows, labels = list[ca.SX](), list[str]()
        for point, place in at.items():
            rows.append(_larger(-self.edge.ahead * place[0], place[1], rounding))
            labels.append(f"{self.side} {point}")
        for back, front in SOLE_SEGMENTS:
            a, b = at[back], at[front]
            way = b - a
            below = (a[1] * way[0] - a[0] * way[1]) / ca.norm_2(way)
            outside = _larger(a[0], -b[0], rounding)
            rows.append(_larger(outside, below, rounding))
            labels.append(f"sole of {self.side} {back} to {front}")
        margins = 10 * (ca.vertcat(*rows) - given["clear"])
        return Rows(margins, np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))

    def _place(self, node: Node, point: str, local: ca.SX) -> ca.SX:
        """Return the place (z, y) of a point of the foot."""
        pose = node.pose(self.body.link_names[self.body.place(f"{self.side}_{point}").link])
        at = pose[:3, :3] @ local + pose[:3, 3]
        return ca.vertcat(at[2], at[1])


def _larger(a: ca.SX, b: ca.SX, rounding: ca.SX) -> ca.SX:
    """Return the larger of two numbers, rounded where they are equal: there it is too large by half of the rounding."""
    return (a + b + ca.sqrt((a - b) ** 2 + rounding**2)) / 2


def stair_clearance(body: Robot, step: Step, side: str, clear: float, slack: float, swing: float) -> list[Constraint]:
    """Return the constraints of a foot that swings over the edges of stairs.

    They hold from the fraction ``swing`` of the step after toe-off to the same time before the foot lands; after that
    it is over its tread, lower by ``slack`` (m) at most.
    """
    late = 1.0 - swing
    found: list[Constraint] = [
        ClearsEdge(
            body=body,
            side=side,
            edge=edge,
            clear=clear,
            during=(step.toe_off + swing, late),
            name=f"{side} foot, edge {k}",
        )
        for k, edge in enumerate(edges(step, Foot.of(body)), 1)
    ]
    for point in POINTS:
        name = f"{side} {point} over its tread"
        low = step.rise - slack
        found.append(Clears(body=body, side=side, point=point, height=low, during=(late, 1.0), name=name))
    return found
