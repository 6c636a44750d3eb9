"""The motion problem of a human in ground contact: trajectories include the ground wrenches and resulting torques."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import FLIP, GLOBAL, SIDES, TURN, mirror
from torsor.human.body.loads import Backpack, Box, hand_wrenches
from torsor.human.body.work_shift import WorkShift
from torsor.human.contact.contact_forces import RAILS, REACTIONS, ground_reaction
from torsor.human.contact.schedule import Walk
from torsor.human.contact.support import Foot, Sitting
from torsor.human.terms.forces import Grounded
from torsor.human.vector_layout import VectorLayout
from torsor.motion import MotionProblem, MotionResult, Node
from torsor.motion.starts import fit
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch
from torsor.robot.robot import Robot

# Samples of a solved motion on the ground: torques, foot wrenches, joint reactions, energies.
#
# They are one function of a node, compiled once for all bodies and steps, like the terms of ``walking``.

REACTION_JOINTS = tuple(REACTIONS)  # leg joints with known reactions
BOTH_SIDES = ("force", "moment", *REACTION_JOINTS, "ground")  # samples of each side


class Samples(NamedTuple):
    """A motion at K samples; the right side comes before the left.

    It contains ``q``, ``v``, ``a`` (K, 55); ``torques`` (K, 55), zero for the six global coordinates; ``forces`` and
    ``moments`` (K, 2, 3) of the ground on the feet, moments about the origin; ``reactions`` (K, 2, 3, 3) on the links
    below hip, knee and ankle; ``kinetic`` and ``potential`` (K,) energy (J); ``ground`` (K, 2), the ground power at the
    feet (W); ``heights`` (K, 2) (m) of the ground under the feet. Vectors are in base axes.
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
    heights: Array

    def mirrored(self, body: Robot, ahead: float = 0.0, up: float = 0.0) -> "Samples":
        """Return the mirror image, with left and right exchanged, moved forward by ``ahead`` and ``up`` (m)."""
        way = np.array([0.0, up, ahead])
        names, lifted = body.coordinate_names, -body.mass * float(body.gravity @ way)
        order, signs = mirror(names)
        q, v, a, torques = (values[:, order] * signs for values in (self.q, self.v, self.a, self.torques))
        q[:, names.index("tz")] += ahead
        q[:, names.index("ty")] += up
        forces = self.forces[:, ::-1] * FLIP
        moments = self.moments[:, ::-1] * TURN + np.cross(way, forces)
        reactions, ground = self.reactions[:, ::-1] * FLIP, self.ground[:, ::-1]
        energies, heights = (self.kinetic, self.potential + lifted), self.heights[:, ::-1] + up
        return Samples(q, v, a, torques, forces, moments, reactions, *energies, ground, heights)

    def then(self, later: "Samples") -> "Samples":
        """Return these samples followed by later ones, except the first of these, which equals the last one here."""
        return Samples(*(np.concatenate([a, b[1:]]) for a, b in zip(self, later, strict=True)))


def grounded_term(problem: MotionProblem) -> Grounded:
    """Return a term of a human motion problem that contains the body, its strengths and its support."""
    term = next((candidate for candidate in problem.terms if isinstance(candidate, Grounded)), None)
    if term is None:
        raise _other(problem, "human", "a result of torsor.human.walking() or of a task of torsor.human")
    return term


def walk_of(problem: MotionProblem) -> tuple[Grounded, Walk]:
    """Return the ``Grounded`` term of a ``walking`` problem, and its walk."""
    term = grounded_term(problem)
    if not isinstance(term.support, Walk):
        raise _other(problem, "stride", "a result of torsor.human.walking()")
    return term, term.support


def _other(problem: MotionProblem, where: str, allowed: str) -> ModelError:
    what = f"the result belongs to the problem {problem.name!r}"
    return ModelError(what, value=problem.name, where=where, allowed=allowed)


def _layout(body: Robot) -> VectorLayout:
    """Return the layout of the rows of ``_Sampled``; a name that ends with a side belongs to that foot or leg."""
    return VectorLayout(
        {"torques": body.nv - len(GLOBAL)}
        | {f"force {side}": 3 for side in SIDES}
        | {f"moment {side}": 3 for side in SIDES}
        | {f"{joint} {side}": 3 for side in SIDES for joint in REACTION_JOINTS}
        | {"kinetic": 1, "potential": 1}
        | {f"ground {side}": 1 for side in SIDES}
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sampled(Grounded, Constraint):
    """The quantities of ``Samples`` except for the motion itself, as rows without bounds."""

    def rows(self, node: Node) -> Rows:
        """Return the rows, labelled by their indices."""
        contact = self.contact(node)
        parts = {"torques": contact.torques}
        for side in SIDES:
            wrench = contact.feet[side]
            parts |= {f"force {side}": wrench.f, f"moment {side}": wrench.n}
            parts |= {f"{joint} {side}": contact.reaction(side, joint) for joint in REACTION_JOINTS}
            parts[f"ground {side}"] = contact.ground_power(side)
        parts["kinetic"] = node.call("kinetic_energy", node.q, node.v)
        parts["potential"] = node.call("potential_energy", node.q)
        column = ca.vertcat(*(parts[name] for name in _layout(node.robot).sizes))
        free = np.full(column.numel(), np.inf)
        return Rows(column, -free, free, tuple(map(str, range(column.numel()))))


def _sampler(term: Grounded) -> _Sampled:
    """Return the sampling term for the body, the support and the hand forces of another term."""
    names = ("body", "support", "friction", "strength", "hands", "seconds")
    return _Sampled(**{name: getattr(term, name) for name in names})


def sampled(result: MotionResult, s: Array) -> Samples:
    """Return the samples of a motion at increasing times s (K,), fractions of its duration."""
    problem, x = result.problem, result.x
    term = grounded_term(problem)
    samplers = problem.samplers
    if ("walk",) not in samplers:
        samplers["walk",] = _sampler(term)
    kernels = problem.kernels_of([samplers["walk",]])
    program_layout, count, rows_layout = problem.program.layout, len(s), _layout(term.body)
    rows = np.zeros((count, rows_layout.size))
    places = [int(label) for label in kernels.rows[0].labels]  # constant rows are omitted: they are zero
    rows[:, places] = Batch(kernels, program_layout, 0, s, np.zeros(count)).value(x)[0].reshape(count, -1)
    parts = rows_layout.unpack(rows)
    y, model = program_layout.phases[0].profiles(x, s, 3), problem.model
    q, (v, a) = model.positions(y[0]), np.zeros((2, count, model.robot.nv))
    v[:, model.places], a[:, model.places] = (rates[:, : model.names.moving] for rates in y[1:])
    both = {name: np.stack([parts[f"{name} {side}"] for side in SIDES], axis=1) for name in BOTH_SIDES}
    torques = np.hstack([np.zeros((count, len(GLOBAL))), parts["torques"]])
    reactions = np.stack([both[name] for name in REACTION_JOINTS], axis=2)
    energies, heights = (parts["kinetic"][:, 0], parts["potential"][:, 0]), term.support.heights(s)
    feet = both["force"], both["moment"]
    return Samples(q, v, a, torques, *feet, reactions, *energies, both["ground"][..., 0], heights)


def sampled_at(result: MotionResult, fractions: Array) -> Samples:
    """Return the samples at fractions (K,) of the duration, which need not be proportional to s."""
    return sampled(result, result.program.layout.phases[0].places(result.x, fractions * result.T))


def joint_torques(result: MotionResult) -> Array:
    """Return the torques (K, 55) (N m) of all coordinates at ``result.times``, for walking or another human task.

    ``result.tau`` excludes contact. Here the ground wrenches act on the feet, and a seat wrench on the pelvis, so that
    the forces of the six global coordinates are zero.
    """
    return sampled(result, result.moments.s).torques


SEATED = "pelvis"  # link on which a seat acts


@dataclass(frozen=True, eq=False, repr=False)
class HumanProblem(MotionProblem):
    """A motion problem of ``torsor.human``.

    ``result.tau`` excludes contact, as computed by inverse dynamics. Trajectories (also as .csv and in ``to_dict``)
    contain the joint torques with contact, and the contact forces of ground and seat as external wrenches. ``load`` is
    the carried load for pictures; the body already includes its mass. ``shift`` describes the repetitions of the motion
    for its ergonomic assessment.
    """

    load: Backpack | Box | None = None
    shift: WorkShift = WorkShift()  # noqa: RUF009  # frozen

    def fitted(self, values: Array) -> Array:
        """Return the variables closest to profiles (K, N) at equal steps of s; NaN leaves a profile unchanged."""
        x, program = super().guess(), self.program
        for phase_layout in program.layout.phases:
            fit(phase_layout, x, np.linspace(0.0, 1.0, len(values)), values)
        return np.clip(x, program.lower, program.upper)

    def contact(self, solution: Any) -> tuple[Array, Array]:
        """Return the torques (K, nv) with contact, and the wrenches (K, L, 6) of ground, seat and hands on the links.

        A wrench is a moment and a force, at the origin of its link and in link axes.
        """
        term, body = grounded_term(self), solution.robot
        s = solution.moments.s
        samples, whole = sampled(solution, s), ground_reaction(body, solution.q, solution.v, solution.a)
        toes = term.support.carried(s, Foot.of(term.body)).toes
        external = np.zeros((len(s), len(body.links), 6))
        for k, side in enumerate(SIDES):
            for link, part in ((f"{side}_foot", 1 - toes[:, k]), (f"{side}_toes", toes[:, k])):
                wrench = part[:, None] * samples.forces[:, k], part[:, None] * samples.moments[:, k]
                external[:, body.link_names.index(link)] = _at_link(body, samples.q, link, *wrench)
        hands = hand_forces(solution, s)
        external += hand_wrenches(body, samples.q, hands)
        places = np.stack([body.pose(samples.q, f"{side}_knuckles")[:, :3, 3] for side in SIDES], axis=1)
        others = samples.forces + hands, samples.moments + np.cross(places, hands)
        seat = whole.force - others[0].sum(axis=1), whole.moment - others[1].sum(axis=1)
        if term.support.seated(s).fraction.any():
            external[:, body.link_names.index(SEATED)] = _at_link(body, samples.q, SEATED, *seat)
        return samples.torques, external


def hand_forces_of(problem: MotionProblem, times: Array) -> Array:
    """Return the given forces (K, 2, 3) (N) on the right and left hand at times (K,) (s), zero by default."""
    hands = grounded_term(problem).hands
    return np.zeros((len(times), len(SIDES), 3)) if hands is None else hands.at(times)


def hand_forces(solution: Any, s: Array) -> Array:
    """Return the forces (K, 2, 3) (N) on the right and left hand at times s (K,): given forces and rail forces."""
    problem, body = solution.problem, solution.robot
    phase_layout, names = solution.program.layout.phases[0], problem.model.names
    forces = hand_forces_of(problem, phase_layout.times(solution.x, s))
    if RAILS[0] in names:
        profiles, weight = phase_layout.profiles(solution.x, s, 1)[0], body.mass * float(np.linalg.norm(body.gravity))
        forces = forces + weight * profiles[:, [names.index(name) for name in RAILS]].reshape(len(s), len(SIDES), 3)
    return forces


def load_of(problem: MotionProblem) -> Backpack | Box | None:
    """Return the load that the body of a problem carries, or None."""
    return problem.load if isinstance(problem, HumanProblem) else None


def shift_of(problem: MotionProblem) -> WorkShift:
    """Return the repetitions of the motion of a problem."""
    return problem.shift if isinstance(problem, HumanProblem) else WorkShift()


def who(problem: MotionProblem) -> str:
    """Return the person of a problem for titles: name and mass of the body, and its load."""
    body, load = grounded_term(problem).body, load_of(problem)
    carried = 0.0 if load is None else load.mass
    what = "" if load is None else f" with a {type(load).__name__.lower()} of {carried:g} kg"
    return f"{body.name} of {body.mass - carried:.4g} kg{what}"


def _at_link(body: Robot, q: Array, link: str, force: Array, moment: Array) -> Array:
    """Return wrenches (K, 6) at a link origin in link axes, from force and moment about the origin in base axes."""
    pose = body.pose(q, link)
    about = moment - np.cross(pose[:, :3, 3], force)
    return np.concatenate([np.einsum("kji,kj->ki", pose[:, :3, :3], vector) for vector in (about, force)], axis=1)


MIN_LOAD_FRACTION = 1e-6  # fraction of the weight below which a foot has no centre of pressure


def pressure(samples: Samples, body: Robot) -> Array:
    """Return the centres of pressure (K, 2, 3) of both feet on the ground (m), NaN for an unloaded foot."""
    forces, level = samples.forces, samples.heights
    moments = samples.moments - np.cross(level[..., None] * [0.0, 1.0, 0.0], forces)
    weight = body.mass * float(np.linalg.norm(body.gravity))
    up = np.where(forces[..., 1] > MIN_LOAD_FRACTION * weight, forces[..., 1], np.nan)
    return np.stack([moments[..., 2] / up, level + 0.0 * up, -moments[..., 0] / up], axis=-1)


def presses(result: MotionResult, s: Array) -> Array:
    """Return the points (m) and ground forces (N) (K, 2, 6) on both feet at times s (K,); with a seat, (K, 3, 6).

    With rails, the rail forces on both hands follow. Values are NaN where a foot, the seat or a hand is unloaded. Times
    are fractions of the duration.
    """
    samples, term = sampled(result, s), grounded_term(result.problem)
    body, parts = term.body, [np.concatenate([pressure(samples, term.body), samples.forces], axis=-1)]
    hands = hand_forces(result, s)
    if isinstance(term.support, Sitting):
        seat, whole = term.support.seated(s), ground_reaction(body, samples.q, samples.v, samples.a)
        rest = whole.force - samples.forces.sum(axis=1) - hands.sum(axis=1)
        force = np.where(seat.fraction[:, None] > 0, rest, np.nan)
        parts.append(np.concatenate([seat.point, force], axis=-1)[:, None])
    if term.support.rails is not None:
        places = np.stack([body.pose(samples.q, f"{side}_knuckles")[:, :3, 3] for side in SIDES], axis=1)
        least = MIN_LOAD_FRACTION * body.mass * float(np.linalg.norm(body.gravity))
        pushes = np.linalg.norm(hands, axis=-1, keepdims=True) > least
        parts.append(np.concatenate([places, np.where(pushes, hands, np.nan)], axis=-1))
    return np.concatenate(parts, axis=1)
