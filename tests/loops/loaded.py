"""Mechanisms with loops that also have what robots have: springs, friction, motors, elastic joints, a floating base."""

from itertools import combinations

import numpy as np

import torsor
from torsor.loops.mobility import quality

from .mechanisms import closed_chain, four_bar

FOUR_BAR_GUESS = [0.5, 1.0, 1.5]


def driven(kind: str) -> tuple[torsor.Robot, np.ndarray]:
    """A closed chain with those drives that are farthest from a singularity."""
    robot, q = closed_chain(kind)
    A, count = robot.closure_jacobian(q), robot.mobility(q).dof
    best = max(combinations(range(robot.nv), count), key=lambda drives: quality(A, list(drives)))
    return robot.with_active([robot.coordinate_names[k] for k in best]), q


def loaded_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """A spring and friction in passive joints, a geared motor on another link than the joint's."""
    robot = four_bar().with_spring("joint2", 7.0, damping=0.3, rest=0.4)
    robot = robot.with_friction("joint3", coulomb=0.5, viscous=0.2, smooth=0.1)
    robot = robot.with_motor("joint1", 2e-4, 30.0, "link3", (0.0, 0.6, 0.8))
    return robot, robot.assemble([0.7], guess=FOUR_BAR_GUESS)


def elastic_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """The crank's motor sits on the rocker and pulls through a spring: two freedoms, one driven."""
    robot = four_bar().with_motor("joint1", 2e-4, 30.0, "link3", (0.0, 0.6, 0.8), stiffness=90.0, damping=0.4)
    robot = robot.with_active(["joint1", "joint1/motor"])
    return robot, robot.assemble([0.7, 0.75], guess=[*FOUR_BAR_GUESS, 0.75])


def redundant_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """Driven at both ends."""
    robot, q = loaded_four_bar()
    return robot.with_active(["joint1", "joint3"]), q


def floating_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """A body that nothing holds, with a four-bar linkage as its leg."""
    leg, q = loaded_four_bar()
    body = torsor.Link("body", 5.0, (0.1, -0.05, 0.02), np.diag([0.3, 0.2, 0.25]))
    robot = torsor.assemble("walker", [body], [], gravity=(0, -9.81, 0.5), base="floating")
    robot = robot.attach(leg, at="body").with_active(["root", "joint1"])
    turned = robot.integrate(robot.neutral(), np.r_[0.3, -0.5, 0.8, 0.2, 0.1, -0.4, np.zeros(robot.nv - 6)])
    return robot, np.r_[turned[:7], q]


CASES = {
    "loaded": loaded_four_bar,
    "elastic": elastic_four_bar,
    "redundant": redundant_four_bar,
    "floating": floating_four_bar,
    **{kind: (lambda kind=kind: driven(kind)) for kind in ("revolute", "spherical", "rod", "universal", "prismatic")},
}
