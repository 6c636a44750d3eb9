"""Barman 2020, eqs. 5.1 to 5.10: the walking problem from the printed equations alone, and a walk with habits.

Eq. 5.4 requires zero height and velocity of all points in contact, for which no motion with six control points per
coordinate was found. SNOPT accepts a motion if the largest violation, "normalized by the size of the solution" (its
documentation, "Major feasibility tolerance"), is below the tolerance, 1e-3 in the thesis. The size is assumed to be the
norm of the variables. Heights and velocities within ``BAND`` pass this test. All other equations are exact.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.base.errors import ModelWarning
from torsor.human import Habits, Step, Stride, Walk
from torsor.human.body.coordinates import SIDES, frozen_joints, mirror
from torsor.human.body.kernels import shared_model
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.contact.support import MAX_SIDES, support_sides
from torsor.human.gait.walking import swing
from torsor.human.terms.forces import MOMENT_ARM, Balance, Effort, Grounded, Torques
from torsor.human.terms.habits import Posture, hand_clearance
from torsor.human.terms.places import Stands, contacts
from torsor.human.terms.problem import HumanProblem
from torsor.human.vector_layout import VectorLayout
from torsor.motion import ExpressionConstraint, Node, Phase, Positions, Symmetric
from torsor.motion.terms.term import Constraint, Rows

POINTS, NODES = 6, 19  # control points per coordinate; instants at which the constraints hold
TOLERANCE = 1e-3  # feasibility tolerance of SNOPT in the thesis
BAND = 0.008  # m, m/s: heights and velocities of the points in contact
KNEE = math.radians(55.0), math.radians(65.0)  # eq. 5.9
STEP = Step(length=0.6, width=0.1, speed=1.2, timing="given")
POLYGON = VectorLayout({f"side {k + 1}": 3 for k in range(MAX_SIDES)})


@dataclass(frozen=True, eq=False, kw_only=True)
class InSupport(Grounded, Constraint):
    """A constraint that keeps the zero-moment point within the support polygon (eq. 5.5).

    With the zero-moment point x = n_z / f_y, z = -n_x / f_y, the distance from an edge times the vertical force is a
    n_z - b n_x + c f_y, without division. Rows are divided by body weight, in dm. Together they imply f_y >= 0.
    """

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the edges of the polygon (K, 18)."""
        sides = support_sides(self.body, self.support, s).reshape(len(s), -1)
        return {**super().data(s), "polygon": sides}

    def rows(self, node: Node) -> Rows:
        """Return the distances from the edges, times the vertical force."""
        contact, sides = contact_forces(node), POLYGON.unpack(node.data("polygon", POLYGON.size))
        f, n = contact.level
        moments = ca.vertcat(n[2], -n[0], f[1]) / (MOMENT_ARM * contact.weight)
        rows = ca.vertcat(*(ca.dot(side, moments) for side in sides.values()))
        return Rows(rows, np.zeros(MAX_SIDES), np.full(MAX_SIDES, np.inf), tuple(sides))


def pendulums(node: Node) -> ca.SX:
    """Return the product of the forward components of the left arm and the right leg, in dm^2 (eq. 5.6).

    The arm is the vector from the shoulder to the wrist, the leg the vector from the hip to the ankle.
    """
    arm = node.position("left_hand") - node.position("left_upper_arm")
    leg = node.position("right_foot") - node.position("right_thigh")
    return 100 * arm[2] * leg[2]


def _symmetry(moving: tuple[str, ...], walk: Walk, order: int, name: str) -> Symmetric:
    """Return the condition that the step ends in the mirror image of its start."""
    others, signs = mirror(moving)
    partners = {name: moving[k] for name, k in zip(moving, others, strict=True)}
    turned = dict(zip(moving, signs.tolist(), strict=True))
    return Symmetric(partners=partners, signs=turned, shifts={"tz": walk.step.length}, order=order, name=name)


def _phase(walk: Walk, points: int, nodes: int) -> Phase:
    return Phase(walk.duration, points=points, nodes=np.linspace(0.0, 1.0, nodes), quadrature="trapezoid")


def printed_problem(
    band: float = BAND,
    step: Step = STEP,
    *,
    points: int = POINTS,
    nodes: int = NODES,
    order: int = 1,
    frozen: Mapping[str, float] | None = None,
    ranges: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
) -> HumanProblem:
    """Return the problem: the step of the thesis, its objective, and its constraints by number.

    Points in contact are within the ``band`` (m, m/s). The thesis prints no body, limits or contact times; they are
    taken from ``library.human`` and ``Step``, or from lower and upper ``ranges`` (rad, m). Mid-swing (5.9) is halfway
    between toe-off and heel strike. Foot positions at the end (5.10) follow from the symmetry (5.8) up to the
    derivatives of the given ``order``.
    """
    body, walk = library.human(), Walk(step)
    held = frozen_joints(body, frozen, "walk")
    moving = tuple(name for name in body.coordinate_names if name not in held)
    forces: dict[str, Any] = {"body": body, "support": walk}
    middle, knee = (walk.step.toe_off + 1) / 2, f"{SIDES[1]}_knee_flexion"
    lower, upper = (None, None) if ranges is None else ranges
    model, numbers = shared_model(body)
    return HumanProblem(
        model,
        _phase(walk, points, nodes),
        Effort(**forces, moving=moving, name="5.1 effort"),
        [
            Positions(lower=lower, upper=upper, only=list(moving), name="5.2 joint angles"),
            Torques(**forces, moving=moving, name="5.3 torques"),
            *contacts(body, walk, band, band, placed="y", below=0.0, prefix="5.4 "),
            InSupport(**forces, name="5.5 zero-moment point"),
            ExpressionConstraint(function=pendulums, lower=0.0, labels=["left arm"], name="5.6 arm-leg coupling"),
            ExpressionConstraint(function=hand_clearance, lower=1.0, labels=SIDES, name="5.7 self-avoidance"),
            _symmetry(moving, walk, order, "5.8 symmetry"),
            Positions(only=[knee], lower=KNEE[0], upper=KNEE[1], at=middle, name="5.9 knee at mid-swing"),
            *(
                Stands(body=body, stance=each, slack=0.0, axes="xz", at=0.0, name=f"5.10 place of the {each.side} foot")
                for each in walk.stances
                if each.first == 0.0
            ),
        ],
        frozen=held,
        numbers=numbers,
        name="printed walk",
    )


HABITS = Habits()
HABIT_NODES = 31
HABIT_SLACK, HABIT_SLIP = 0.003, 0.25  # m, m/s: tolerances of points in contact in the walk with habits


def habitual_problem() -> HumanProblem:
    """Return the same step with human habits, and with tolerances that people can meet.

    The centre of pressure is in a box around its path, and a relaxed posture is a part of the objective.
    """
    body, walk = library.human(), Walk(STEP)
    held = frozen_joints(body, None, "walk")
    moving = tuple(name for name in body.coordinate_names if name not in held)
    driven: dict[str, Any] = {"body": body, "support": walk, "friction": 0.8}
    lower, upper = HABITS.bounds(body, list(moving), 0.0, False)
    model, numbers = shared_model(body)
    return HumanProblem(
        model,
        _phase(walk, POINTS, HABIT_NODES),
        [
            Effort(**driven, moving=moving, name="effort"),
            Posture(body=body, moving=moving, scale=HABITS.posture, name="posture"),
        ],
        [
            _symmetry(moving, walk, 1, "symmetry"),
            Positions(lower=lower, upper=upper, hull=True, name="ranges"),
            Torques(**driven, moving=moving, name="torques"),
            Balance(**driven, name="balance"),
            *contacts(body, walk, HABIT_SLACK, HABIT_SLIP),
            *swing(body, walk, HABITS, moving, HABIT_SLACK),
            *HABITS.constraints(body, None),
        ],
        frozen=held,
        numbers=numbers,
        name="walk with habits",
        settings={"solver": "condensed", "tolerance": 1e-5},
    )


@cache
def printed_walk() -> Stride:
    """Return the stride of the printed problem, from q = 0 in the two phases of the thesis."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of violations between the nodes: item gait-equations
        return Stride(printed_problem().solve("condensed", feasible_first=True, tolerance=1e-5))


@cache
def habitual_walk() -> Stride:
    """Return the stride of the same step with human habits in addition to the equations."""
    return Stride(habitual_problem().solve(feasible_first=True))
