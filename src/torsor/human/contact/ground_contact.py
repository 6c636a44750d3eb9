"""What a motion on the ground is at given moments: torques, wrenches on the feet, reactions, energies; and mirrored.

All of it is one function of a moment, compiled once for all bodies and steps, as the terms of ``walking`` are.
"""

from dataclasses import dataclass, fields
from functools import lru_cache

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.human.contact.balance import Wrench
from torsor.human.contact.schedule import Walk
from torsor.human.contact.support import SIDES
from torsor.human.terms.forces import Grounded, contact_forces
from torsor.motion import MotionProblem, MotionResult, Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch
from torsor.robot.robot import Robot

__all__ = ["JOINTS", "Samples", "grounded", "joint_torques", "mirror", "sampled", "walked"]

Array = NDArray[np.float64]
JOINTS = ("hip", "knee", "ankle")  # of a leg, whose reactions are known

# Of a vector, and of a moment, in a mirror across x.
FLIP, TURN = np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Samples:
    """A motion at K moments; of sides, the right comes first.

    ``q``, ``v``, ``a`` (K, 55); ``torques`` (K, 55), of which those of the six global coordinates are zero; ``forces``
    and ``moments`` (K, 2, 3) of the ground on the feet, moments about the origin; ``reactions`` (K, 2, 3, 3) on the
    parts below hip, knee and ankle; ``kinetic`` and ``potential`` (K,) energy (J); ``ground`` (K, 2), the power of the
    ground at the feet (W). Vectors are in base axes.
    """

    q: Array
    v: Array
    a: Array
    torques: Array
    forces: Array
    moments: Array
    reactions: Array
    kinetic: Array
    potential: Array
    ground: Array

    def mirrored(self, body: Robot, ahead: float = 0.0) -> "Samples":
        """Return the same with left and right exchanged, so far ahead (m): on a slope, that is higher."""
        names, rise = body.coordinate_names, -body.mass * float(body.gravity[2]) * ahead
        order, signs = mirror(names)
        q, v, a, torques = (each[:, order] * signs for each in (self.q, self.v, self.a, self.torques))
        q[:, names.index("tz")] += ahead
        forces = self.forces[:, ::-1] * FLIP
        moments = self.moments[:, ::-1] * TURN + np.cross([0.0, 0.0, ahead], forces)
        reactions, ground = self.reactions[:, ::-1] * FLIP, self.ground[:, ::-1]
        return Samples(q, v, a, torques, forces, moments, reactions, self.kinetic, self.potential + rise, ground)

    def then(self, later: "Samples") -> "Samples":
        """Return both after each other, what both have being that of the first."""
        pairs = ((getattr(self, each.name), getattr(later, each.name)) for each in fields(self))
        return Samples(*(np.concatenate([first, second[1:]]) for first, second in pairs))

    def part(self, first: int, last: int) -> "Samples":
        """Return the moments from the first to the last, which is among them."""
        return Samples(*(getattr(self, each.name)[first : last + 1] for each in fields(self)))


@lru_cache(maxsize=8)
def mirror(names: tuple[str, ...]) -> tuple[list[int], Array]:
    """Return which coordinate is which in a mirror, and signs: q[order] * signs.

    Example:
        >>> order, signs = mirror(("tx", "right_knee_flexion", "left_knee_flexion"))
        >>> order, signs.tolist()
        ([0, 2, 1], [-1.0, 1.0, 1.0])
    """
    swap = {"right": "left", "left": "right"}
    order = []
    for name in names:
        side, _, rest = name.partition("_")
        order.append(names.index(f"{swap[side]}_{rest}" if side in swap else name))
    odd = [name in ("tx", "yaw", "list") or name.endswith(("lateral", "axial")) for name in names]
    return order, np.where(odd, -1.0, 1.0)


def grounded(problem: MotionProblem) -> Grounded:
    """Return a term of a problem of the human that knows the body, its strengths and what it stands on."""
    for term in problem.terms:
        if isinstance(term, Grounded):
            return term
    found = f"the result of {problem.name!r}"
    raise ModelError(describe(found, where="human", allowed="one of torsor.human.walking() or of another task of it"))


def walked(problem: MotionProblem) -> tuple[Grounded, Walk]:
    """Return the same term of a problem of ``walking``, and the walk itself."""
    term = grounded(problem)
    if not isinstance(term.support, Walk):
        found = f"the result of {problem.name!r}"
        raise ModelError(describe(found, where="stride", allowed="one of torsor.human.walking()"))
    return term, term.support


@dataclass(frozen=True, eq=False, kw_only=True)
class _Seen(Grounded, Constraint):
    """All that ``Samples`` has beside the motion, as rows without bounds."""

    def rows(self, node: Node) -> Rows:
        """Return the rows."""
        gait = contact_forces(node)
        rows = [gait.torques]
        rows += [gait.feet[side].f for side in SIDES] + [gait.feet[side].n for side in SIDES]
        rows += [gait.reaction(side, joint) for side in SIDES for joint in JOINTS]
        rows += [node.call("kinetic_energy", node.q, node.v), node.call("potential_energy", node.q)]
        for side in SIDES:
            toes = gait.toes[side]
            ways = [_power(node, f"{side}_{link}", gait.feet[side]) for link in ("foot", "toes")]
            rows.append((1 - toes) * ways[0] + toes * ways[1])
        column = ca.vertcat(*rows)
        free = np.full(column.numel(), np.inf)
        return Rows(column, -free, free, tuple(map(str, range(column.numel()))))


def _power(node: Node, link: str, wrench: Wrench) -> ca.SX:
    """Return the power of a wrench about the origin on a link."""
    pose, V = node.pose(link), node.velocity(link)
    omega, v = pose[:3, :3] @ V[:3], pose[:3, :3] @ V[3:]
    return ca.dot(wrench.n, omega) + ca.dot(wrench.f, v + ca.cross(pose[:3, 3], omega))


def sampled(result: MotionResult, s: Array) -> Samples:
    """Return a motion at rising shares s (K,) of all of it."""
    problem, x = result.problem, result.x
    term = grounded(problem)
    samplers = problem.samplers
    if ("walk",) not in samplers:
        samplers["walk",] = _Seen(body=term.body, support=term.support, friction=term.friction, strength=term.strength)
    kernels = problem.kernels_of([samplers["walk",]])
    layout, count = problem.program.layout, len(s)
    rows = np.zeros((count, 49 + 12 + 18 + 4))
    places = [int(label) for label in kernels.rows[0].labels]  # what is constant is zero, and no row
    rows[:, places] = Batch(kernels, layout, 0, s, np.zeros(count)).value(x)[0].reshape(count, -1)
    torques, feet, reactions, energies, ground = np.split(rows, [49, 61, 79, 81], axis=1)
    y, model = layout.phases[0].profiles(x, s, 3), problem.model
    q, (v, a) = model.positions(y[0]), np.zeros((2, count, model.robot.nv))
    v[:, model.places], a[:, model.places] = y[1], y[2]
    all_torques = np.hstack([np.zeros((count, 6)), torques])
    forces, moments = feet.reshape(count, 2, 2, 3).swapaxes(0, 1)
    legs = reactions.reshape(count, 2, 3, 3)
    return Samples(q, v, a, all_torques, forces, moments, legs, energies[:, 0], energies[:, 1], ground)


def joint_torques(result: MotionResult) -> Array:
    """Return the torques (K, 55) of all coordinates at ``result.times``, of walking or another task of the human (N m).

    ``result.tau`` is without the ground; here its wrenches are on the feet, and a seat's on the pelvis, so that nothing
    is left of the six global forces.
    """
    return sampled(result, result.times / result.T).torques
