"""Shapes of a robot, with their names, links and compiled motion."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, vectors
from torsor.base.errors import ModelError
from torsor.compiler import cache
from torsor.dynamics.recursions.kinematics import moves, sx, world_poses
from torsor.dynamics.recursions.places import place_in_base
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Mechanism, Place, Shape
from torsor.mechanism.mechanism import lineage
from torsor.spatial import skew


class Placed(NamedTuple):
    """A shape of a robot: its unique ``name``, the index of its ``link`` (-1: the base) and the name of its ``part``.

    A part is a link of the description, which is a frame of the robot if it is welded to another link.
    """

    shape: Shape
    link: int
    name: str
    part: str


def placed_shapes(robot: Mechanism) -> tuple[Placed, ...]:
    """Return all shapes of a robot, base first; a shape without a unique name is called "part/number".

    Example:
        >>> from torsor.mechanism import Link, build
        >>> ground = Link("ground", shapes=(Shape("plane"), Shape("box", (1, 1, 1), name="table")))
        >>> [(each.name, each.part) for each in placed_shapes(build("cell", [ground], []))]
        [('ground/0', 'ground'), ('table', 'ground')]
    """
    links = enumerate((robot.base, *robot.links), start=-1)
    result = [(shape, index, shape.link or link.name) for index, link in links for shape in link.shapes]
    counts = Counter(shape.name for shape, _, _ in result)
    taken, numbers, placed = {*robot.places, *counts}, Counter[str](), list[Placed]()
    for shape, index, part in result:
        name = shape.name if counts[shape.name] == 1 and shape.name not in robot.places else ""
        while not name:
            tried = f"{part}/{numbers[part]}"
            numbers[part] += 1
            name = "" if tried in taken else tried
        taken.add(name)
        placed.append(Placed(shape, index, name, part))
    return tuple(placed)


@dataclass(frozen=True, eq=False)
class Movement:
    """The compiled motion of some shapes: their poses, and the twists that each joint imparts to its subtree."""

    robot: Mechanism
    shapes: tuple[Placed, ...]
    kernel: Any
    gather: Array  # (joint velocities, nv): maps robot velocities to joint velocities
    carries: NDArray[np.bool_]  # (shapes, joint velocities): whether a joint carries a shape

    @classmethod
    def of(cls, robot: Mechanism, shapes: Sequence[Placed]) -> "Movement":
        """Return the motion of a robot's shapes."""
        kernels = getattr(instance_of(robot, Mechanism, "shapes", "robot"), "kernels", None)
        if kernels is None:
            fix = "create a robot from it: torsor.Robot.of(mechanism)"
            raise ModelError("the mechanism has no compiled functions", where=robot.name, fix=fix)
        places = tuple((item.link, item.shape.pose.tobytes()) for item in shapes)
        label = hashlib.sha256(repr(places).encode()).hexdigest()
        key = f"shapes {cache.source_hash('geometry')} {label}"
        widths = [joint.nv for joint in robot.joints]
        sizes = [(robot.nq,)], [(len(shapes), 3, 4), (sum(widths), 6)]
        kernel = kernels.exact.kernel(key, lambda: _traced(robot, shapes), lambda _: sizes)
        gather, ends = np.zeros((sum(widths), robot.nv)), np.cumsum([0, *widths])
        for index, (joint, slices) in enumerate(zip(robot.joints, robot.coordinates, strict=True)):
            gather[ends[index] : ends[index + 1], slices.v] = joint.ratio * np.eye(joint.nv)
        carries = np.zeros((len(shapes), sum(widths)), dtype=bool)
        for row, shape in enumerate(shapes):
            for index in lineage(robot, shape.link):
                carries[row, ends[index] : ends[index + 1]] = True
        return cls(robot, tuple(shapes), kernel, gather, carries)

    def at(self, q: Any) -> tuple[Array, Array]:
        """Return poses (..., shapes, 3, 4) in base axes, and twists (..., joint velocities, 6) at the base origin.

        Each twist (omega, v) is the motion of all bodies that a joint carries, at unit joint velocity.
        """
        poses, twists = self.kernel(vectors(q, self.robot.nq, self.robot.name, "q"))
        return poses, twists


def _traced(robot: Mechanism, shapes: Sequence[Placed]) -> ca.Function:
    """Return the function from q to the poses of shapes (3 rows each) and the twists of joints (1 row each)."""
    tree, q = Tree.of(robot), ca.SX.sym("q", robot.nq)
    moved = moves(tree, q)
    bodies = world_poses(tree, moved)
    places = (Place(shape.link, shape.shape.pose) for shape in shapes)
    poses = [ca.SX.zeros(0, 4), *(ca.horzcat(*place_in_base(tree, bodies, place)) for place in places)]
    twists = [ca.SX.zeros(0, 6)]
    for move, (R, p) in zip(moved, bodies, strict=True):
        w, v = R @ sx(move.S)[:3, :], R @ sx(move.S)[3:, :]
        twists.append(ca.vertcat(w, v + skew(p) @ w).T)
    return ca.Function("shapes", [q], ca.cse([ca.vertcat(*poses), ca.vertcat(*twists)]), ["q"], ["poses", "twists"])
