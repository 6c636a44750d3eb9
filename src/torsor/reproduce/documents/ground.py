"""Barman 2020: ground reaction forces in two steps (section 5.1), and lifting that repeats until fatigue (6.2.2)."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.human import (
    Box,
    Fatigue,
    JointLoads,
    TrunkStrength,
    fatigued,
    ground_reaction,
    joint_loads,
    joint_torques,
    lifting,
    person_of,
    with_strength,
)
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.trunk_strength import SPINE
from torsor.human.terms.problem import HumanProblem
from torsor.motion import MotionError, MotionResult
from torsor.reproduce.documents.drawing import tidy
from torsor.reproduce.documents.printed_walk import habitual_walk
from torsor.reproduce.item import BY_DIFFERENCES, Item, Kind, Outcome, Row, claim, only, same, zero
from torsor.robot.robot import Robot

# Section 5.1: the resultant active force and the zero-moment point come first, then the ground forces at that point.

STEP = 2e-3  # s between the positions from which accelerations are computed
SECOND = np.array([1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90]) / STEP**2  # second derivative, order 6
INSTANTS = (0.03, 0.1, 0.2, 0.5, 0.8, 0.97)  # fractions of the step: three in double support


def equilibrium(body: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """Return the force and the moment about the origin that a moving body needs, from the poses of its links alone.

    They are the sums of m (c'' - g) and of c x m (c'' - g) + the integral of (R r) x (R r)'' dm over all links. The
    accelerations are differences of poses, so that no recursion, Jacobian or velocity is used.
    """
    t = STEP * np.arange(-3, 4)[:, None]
    poses = body.poses(q + v * t + a * t**2 / 2)
    rates, force, moment = np.tensordot(SECOND, poses, axes=1), np.zeros(3), np.zeros(3)
    for link, pose, rate in zip(body.links, poses[3], rates, strict=True):
        centre, lifted = pose[:3, :3] @ link.com + pose[:3, 3], rate[:3, :3] @ link.com + rate[:3, 3]
        push = link.mass * (lifted - body.gravity)
        spread = np.trace(link.inertia) / 2 * np.eye(3) - link.inertia  # the integral of r r^T dm
        turned = pose[:3, :3] @ spread @ rate[:3, :3].T
        force += push
        moment += np.cross(centre, push) + [turned[i, j] - turned[j, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return force, moment


def _two_steps() -> list[Row]:
    result, body = habitual_walk().result, habitual_walk().body
    assert isinstance(result.problem, HumanProblem)
    places = [int(round(s * (len(result.times) - 1))) for s in INSTANTS]
    q, v, a = (values[places] for values in (result.q, result.v, result.a))
    force, moment = (np.array(part) for part in zip(*map(equilibrium, [body] * len(q), q, v, a), strict=True))
    ground = ground_reaction(body, q, v, a)
    zmp = np.stack([ground.zmp[:, 0], 0 * ground.twist, ground.zmp[:, 1]], axis=1)
    about = (moment - np.cross(zmp, force))[:, [0, 2]]
    torques, external = (values[places] for values in result.problem.contact(result))
    balanced = body.inverse_dynamics(q, v, a, external)
    weight = body.mass * float(np.linalg.norm(body.gravity))
    return [
        same("step 1: resultant force", force, ground.force, BY_DIFFERENCES, "N"),
        same("step 1: moment about the origin", moment, ground.moment, BY_DIFFERENCES, "N m"),
        zero("horizontal moment about the zero-moment point", about, weight, BY_DIFFERENCES, "N m"),
        zero("step 2: forces of the six global coordinates", balanced[:, : len(GLOBAL)], weight, unit="N, N m"),
        same("step 2: joint torques, by the recursion with ground forces", balanced[:, len(GLOBAL) :], torques[:, len(GLOBAL) :], unit="N m"),
    ]


ITEMS: list[Item] = []
