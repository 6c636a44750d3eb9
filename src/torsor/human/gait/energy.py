"""Mechanical energy of a walk: what the joints do, and the ground at feet that slip or roll.

At every moment the power of the joints and of the ground is the rate of kinetic and potential energy. Between knots of
the splines and changes of contact all of it is smooth, and is integrated there by Gauss's rule.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.human.contact.ground_contact import sampled, walked
from torsor.motion import MotionResult

__all__ = ["Energy", "Work", "energy", "joint_of"]

Array = NDArray[np.float64]

PARTS, ORDER = 6, 6  # of each smooth piece, and points of Gauss's rule in each: powers change sign between


class Work(NamedTuple):
    """What a joint does (J): ``positive`` while it drives, ``negative`` while it brakes."""

    positive: float
    negative: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.positive + self.negative


@dataclass(frozen=True)
class Energy:
    """Energy over a walk of ``distance`` (m) with ``mass`` (kg, with what is carried).

    ``work`` is that of each joint, all its axes together; ``ground`` (J) what the ground does at the feet, which is
    none where these neither slip nor roll; ``change`` (J) that of kinetic and potential energy from start to end.
    """

    distance: float
    mass: float
    work: dict[str, Work]
    ground: float
    change: float

    @property
    def joints(self) -> float:
        """Work of all joints (J)."""
        return sum(each.total for each in self.work.values())

    @property
    def positive(self) -> float:
        """What joints do while they drive (J)."""
        return sum(each.positive for each in self.work.values())

    @property
    def negative(self) -> float:
        """What joints do while they brake (J), below zero."""
        return sum(each.negative for each in self.work.values())

    @property
    def residual(self) -> float:
        """What is left of the balance (J): of the work of joints and ground, less the change of energy."""
        return self.joints + self.ground - self.change

    @property
    def cost_of_transport(self) -> float:
        """Positive work of the joints for each kg and m, in J/(kg m): mechanical, not what muscles burn."""
        return self.positive / (self.mass * self.distance)


def joint_of(name: str) -> str:
    """Return the joint that a coordinate belongs to.

    Example:
        >>> joint_of("right_hip_adduction"), joint_of("left_pronation"), joint_of("spine2_axial")
        ('right_hip', 'left_elbow', 'spine2')
    """
    before, _, last = name.rpartition("_")
    return f"{before}_elbow" if last == "pronation" else before


def energy(result: MotionResult) -> Energy:
    """Return the energy over all steps of a walk."""
    term, walk = walked(result.problem)
    phase_layout = result.program.layout.phases[0]
    step, T = walk.step, phase_layout.seconds(result.x)
    changes = (0.0, step.ball_off, step.flat, step.toe_off, step.heel_off)
    contacts = [walk.of(k, each) for k in range(walk.steps) for each in changes]
    knots = np.concatenate([spline.inner for spline in phase_layout.splines])
    ends = np.unique(np.concatenate([contacts, knots, [1.0]]).round(12))
    x, w = np.polynomial.legendre.leggauss(ORDER)
    grid = np.concatenate([np.linspace(a, b, PARTS + 1)[:-1] for a, b in pairwise(ends)] + [[1.0]])
    half = np.diff(grid) / 2
    s = (((grid[:-1] + grid[1:]) / 2)[:, None] + half[:, None] * x).ravel()
    weights = T * (half[:, None] * w).ravel()
    at, borders = sampled(result, s), sampled(result, np.array([0.0, 1.0]))
    names = term.body.coordinate_names
    powers: dict[str, Array] = {}
    for k, name in enumerate(names[6:], start=6):
        powers[joint_of(name)] = powers.get(joint_of(name), 0.0) + at.torques[:, k] * at.v[:, k]
    work = {
        joint: Work(float(weights @ np.maximum(power, 0.0)), float(weights @ np.minimum(power, 0.0)))
        for joint, power in powers.items()
        if power.any()
    }
    change = float(np.diff(borders.kinetic + borders.potential)[0])
    return Energy(walk.steps * step.length, term.body.mass, work, float(weights @ at.ground.sum(axis=1)), change)
