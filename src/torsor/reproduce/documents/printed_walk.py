"""Barman 2020, eqs. 5.1 to 5.10: the walking problem from the printed equations alone.

Eq. 5.4 requires zero height and velocity of all points in contact, for which no motion with six control points per
coordinate was found. SNOPT accepts a motion if the largest violation, "normalized by the size of the solution" (its
documentation, "Major feasibility tolerance"), is below the tolerance, 1e-3 in the thesis. The size is assumed to be the
norm of the variables. Heights and velocities within ``BAND`` pass this test. All other equations are exact.
"""

import math
import warnings
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.errors import ModelWarning
from torsor.human import Step, Stride, Walk, walking
from torsor.human.body.coordinates import SIDES, frozen_joints, mirror
from torsor.human.body.kernels import shared_model
from torsor.human.gait.printed_constraints import InSupport, pendulums
from torsor.human.terms.forces import Effort, Torques
from torsor.human.terms.habits import hand_clearance
from torsor.human.terms.places import Stands, contacts
from torsor.motion import ExpressionConstraint, MotionProblem, Phase, Positions, Symmetric

POINTS, NODES = 6, 19  # control points per coordinate; instants at which the constraints hold
TOLERANCE = 1e-3  # feasibility tolerance of SNOPT in the thesis
BAND = 0.008  # m, m/s: heights and velocities of the points in contact
KNEE = math.radians(55.0), math.radians(65.0)  # eq. 5.9


def printed_problem() -> MotionProblem:
    """Return the problem: the step of the thesis, its objective, and its constraints by number.

    The thesis prints no body, limits or contact times; they are taken from ``library.human`` and ``Step``. Mid-swing
    (5.9) is halfway between toe-off and heel strike. Foot positions at the end (5.10) follow from the symmetry (5.8).
    """
    body, walk = library.human(), Walk(Step(length=0.6, speed=1.2))
    frozen = frozen_joints(body, None, "walk")
    moving = tuple(name for name in body.coordinate_names if name not in frozen)
    order, signs = mirror(moving)
    partners = {name: moving[k] for name, k in zip(moving, order, strict=True)}
    turned, ahead = dict(zip(moving, signs.tolist(), strict=True)), {"tz": walk.step.length}
    forces: dict[str, Any] = {"body": body, "support": walk}
    middle, knee = (walk.step.toe_off + 1) / 2, f"{SIDES[1]}_knee_flexion"
    joints = [name for name in moving if name in body.joint_names]
    model, numbers = shared_model(body)
    return MotionProblem(
        model,
        Phase(walk.duration, points=POINTS, nodes=np.linspace(0.0, 1.0, NODES), quadrature="trapezoid"),
        Effort(**forces, moving=moving, name="5.1 effort"),
        [
            Positions(only=joints, name="5.2 joint angles"),
            Torques(**forces, moving=moving, name="5.3 torques"),
            *contacts(body, walk, BAND, BAND, placed="y", below=0.0, prefix="5.4 "),
            InSupport(**forces, name="5.5 zero-moment point"),
            ExpressionConstraint(function=pendulums, lower=0.0, labels=["left arm"], name="5.6 arm-leg coupling"),
            ExpressionConstraint(function=hand_clearance, lower=1.0, labels=SIDES, name="5.7 self-avoidance"),
            Symmetric(partners=partners, signs=turned, shifts=ahead, order=1, name="5.8 symmetry"),
            Positions(only=[knee], lower=KNEE[0], upper=KNEE[1], at=middle, name="5.9 knee at mid-swing"),
            *(
                Stands(body=body, stance=each, slack=0.0, axes="xz", at=0.0, name=f"5.10 place of the {each.side} foot")
                for each in walk.stances
                if each.first == 0.0
            ),
        ],
        frozen=frozen,
        numbers=numbers,
        name="printed walk",
    )


@cache
def printed_walk() -> Stride:
    """Return the stride of the printed problem, from q = 0 in the two phases of the thesis."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of violations between the nodes: item gait-equations
        return Stride(printed_problem().solve("condensed", feasible_first=True, tolerance=1e-5))


@cache
def habitual_walk() -> Stride:
    """Return the stride of the version "thesis": the same step with human habits in addition to the equations."""
    return Stride(walking(version="thesis").solve(feasible_first=True))
