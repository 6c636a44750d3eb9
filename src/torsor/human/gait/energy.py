"""Mechanical energy of a walk: the work of the joints, and of the ground at slipping or rolling feet.

The power of the joints and of the ground equals the rate of kinetic and potential energy. It is smooth between knots of
the splines and changes of contact, and is integrated there by Gauss quadrature.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL
from torsor.human.contact.free_walk import solved_step
from torsor.human.terms.samples import sampled, walk_of
from torsor.motion import MotionResult

PARTS, ORDER = 6, 6  # parts of each smooth interval, since powers change sign in it, and Gauss points of each part


class Work(NamedTuple):
    """Work of a joint (J): ``positive`` while it drives, ``negative`` while it brakes."""

    positive: float
    negative: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.positive + self.negative


@dataclass(frozen=True)
class Energy:
    """Energy over a walk of a ``distance`` (m) with a ``mass`` (kg, with the load).

    ``work`` is that of each joint, the sum over its axes; ``ground`` (J) is the work of the ground at the feet, zero
    while they neither slip nor roll; ``change`` (J) is that of kinetic and potential energy from start to end.
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
        """Positive work of all joints (J)."""
        return sum(each.positive for each in self.work.values())

    @property
    def negative(self) -> float:
        """Negative work of all joints (J)."""
        return sum(each.negative for each in self.work.values())

    @property
    def residual(self) -> float:
        """Residual of the energy balance (J): work of joints and ground minus the change of energy."""
        return self.joints + self.ground - self.change

    @property
    def cost_of_transport(self) -> float:
        """Positive work of the joints per mass and distance, J/(kg m): mechanical, not metabolic."""
        return self.positive / (self.mass * self.distance)


def joint_of(name: str) -> str:
    """Return the joint of a coordinate.

    Example:
        >>> joint_of("right_hip_adduction"), joint_of("left_pronation"), joint_of("spine2_axial")
        ('right_hip', 'left_elbow', 'spine2')
    """
    before, _, last = name.rpartition("_")
    return f"{before}_elbow" if last == "pronation" else before


def energy(result: MotionResult) -> Energy:
    """Return the energy over all steps of a walk."""
    term, walk = walk_of(result.problem)
    phase_layout = result.program.layout.phases[0]
    step, T = walk.step, phase_layout.seconds(result.x)
    changes = (0.0, step.ball_off, step.flat, step.toe_off, step.heel_off)
    contacts = [walk.whole_s(k, each) for k in range(walk.steps) for each in changes]
    knots = np.concatenate([spline.inner for spline in phase_layout.splines])
    ends = np.unique(np.concatenate([contacts, knots, [1.0]]).round(12))
    x, w = np.polynomial.legendre.leggauss(ORDER)
    grid = np.concatenate([np.linspace(a, b, PARTS + 1)[:-1] for a, b in pairwise(ends)] + [[1.0]])
    half, clock = np.diff(grid) / 2, phase_layout.phase.timing
    s = (((grid[:-1] + grid[1:]) / 2)[:, None] + half[:, None] * x).ravel()
    weights = T * (half[:, None] * w).ravel() * clock.numeric(s, result.x[list(phase_layout.ticks)], 1)
    at, borders = sampled(result, s), sampled(result, np.array([0.0, 1.0]))
    names = term.body.coordinate_names
    powers: dict[str, Array] = {}
    for k, name in list(enumerate(names))[len(GLOBAL) :]:
        powers[joint_of(name)] = powers.get(joint_of(name), 0.0) + at.torques[:, k] * at.v[:, k]
    work = {
        joint: Work(float(weights @ np.maximum(power, 0.0)), float(weights @ np.minimum(power, 0.0)))
        for joint, power in powers.items()
        if power.any()
    }
    change = float(np.diff(borders.kinetic + borders.potential)[0])
    length = solved_step(walk, result).length
    return Energy(walk.steps * length, term.body.mass, work, float(weights @ at.ground.sum(axis=1)), change)
