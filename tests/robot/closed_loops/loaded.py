"""Mechanisms with loops and with springs, friction, motors, elastic joints, or a floating base."""

from functools import cache
from itertools import combinations

import numpy as np

import torsor
from torsor.robot.closed_loops.mobility import quality
from torsor.spatial import from_rpy, make_pose

from .mechanisms import chain, closed_chain, four_bar

FOUR_BAR_GUESS = [0.5, 1.0, 1.5]


@cache
def driven(kind: str) -> tuple[torsor.Robot, np.ndarray]:
    """A closed chain with those drives that are farthest from a singularity."""
    return well_driven(*closed_chain(kind))


def ball_chain() -> tuple[torsor.Robot, np.ndarray]:
    """A loop through joints with several freedoms, which turn their own axes."""
    robot, rng = chain(4, 8, ("spherical", "planar", "revolute")), np.random.default_rng(8)
    q = robot.integrate(robot.neutral(), 0.5 * rng.normal(size=robot.nv))
    robot = robot.with_frame("end", robot.link_names[-1], make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3)))
    robot = robot.with_frame("anchor", robot.base.name, robot.pose(q, "end"))
    return well_driven(robot.with_loop("loop", "end", "anchor", "cylindrical"), q)


def geared_chain() -> tuple[torsor.Robot, np.ndarray]:
    """A loop, and a gear between two of its joints and another: both kinds of closure."""
    robot, q = closed_chain("spherical")
    offset = float(q[0] - 0.5 * q[1] + 0.3 * q[6])
    names = robot.coordinate_names
    return well_driven(robot.with_coupling("gear", {names[0]: 1.0, names[1]: -0.5, names[6]: 0.3}, offset), q)


def well_driven(robot: torsor.Robot, q: np.ndarray) -> tuple[torsor.Robot, np.ndarray]:
    """The same with those drives that are farthest from a singularity."""
    A, count = robot.closed.jacobian(q), robot.closed.mobility(q).dof
    best = max(combinations(range(robot.nv), count), key=lambda drives: quality(A, list(drives)))
    return robot.with_active([robot.coordinate_names[k] for k in best]), q


def loaded_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """A spring and friction in passive joints, a geared motor on another link than the joint's."""
    robot = four_bar().with_spring("joint2", 7.0, damping=0.3, rest=0.4)
    robot = robot.with_friction("joint3", coulomb=0.5, viscous=0.2, smooth=0.1)
    robot = robot.with_motor("joint1", 2e-4, 30.0, "link3", (0.0, 0.6, 0.8))
    return robot, robot.closed.assemble([0.7], guess=FOUR_BAR_GUESS)


def elastic_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """The crank's motor sits on the rocker and pulls through a spring: two freedoms, one driven."""
    robot = four_bar().with_motor("joint1", 2e-4, 30.0, "link3", (0.0, 0.6, 0.8), stiffness=90.0, damping=0.4)
    robot = robot.with_active(["joint1", "joint1/motor"])
    return robot, robot.closed.assemble([0.7, 0.75], guess=[*FOUR_BAR_GUESS, 0.75])


def redundant_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """Driven at both ends."""
    robot, q = loaded_four_bar()
    return robot.with_active(["joint1", "joint3"]), q


def floating_four_bar() -> tuple[torsor.Robot, np.ndarray]:
    """A body that nothing holds, with a four-bar linkage as its leg."""
    leg, q = loaded_four_bar()
    body = torsor.Link("body", 5.0, (0.1, -0.05, 0.02), np.diag([0.3, 0.2, 0.25]))
    robot = torsor.build("walker", [body], [], gravity=(0, -9.81, 0.5), base="floating")
    robot = robot.attach(leg, at="body").with_active(["root", "joint1"])
    turned = robot.integrate(robot.neutral(), np.r_[0.3, -0.5, 0.8, 0.2, 0.1, -0.4, np.zeros(robot.nv - 6)])
    return robot, np.r_[turned[:7], q]


def cart() -> tuple[torsor.Robot, np.ndarray]:
    """A cart on a slope: two wheels that lean, a skid in front and an arm."""
    body = torsor.Link("body", 5.0, (0.1, 0.02, 0.05), np.diag([0.3, 0.2, 0.25]))
    tyres = [torsor.Link(side, 0.8, (0.0, 0.01, 0.0), np.diag([0.01, 0.02, 0.01])) for side in ("left", "right")]
    arm = torsor.Link("arm", 1.0, (0.2, 0.0, 0.1), np.diag([0.02, 0.03, 0.02]))
    joints = [
        torsor.Joint("spin_left", "revolute", "body", "left", make_pose(p=[0, 0.3, 0]), (0.0, 1.0, -0.1)),
        torsor.Joint("spin_right", "revolute", "body", "right", make_pose(p=[-0.05, -0.3, 0]), (0.0, 1.0, 0.15)),
        torsor.Joint("swing", "revolute", "body", "arm", make_pose(p=[0.1, 0, 0.2]), (0.2, 1.0, 0.3)),
    ]
    robot = torsor.build("cart", [body, *tyres, arm], joints, base="floating")
    robot = robot.with_frame("slope", robot.base.name, make_pose(from_rpy([0.2, -0.3, 0.1]), [0.1, 0.0, 0.2]))
    robot = robot.with_wheel("left", "left", 0.2, axis=joints[0].axis, ground="slope")
    robot = robot.with_wheel("right", "right", 0.2, axis=joints[1].axis, ground="slope")
    robot = robot.with_wheel("skid", "body", 0.05, "skid", point=(0.4, 0, -0.1), ground="slope")
    robot = robot.with_spring("swing", 4.0, damping=0.2, rest=0.3)
    q = robot.integrate(robot.neutral(), np.r_[0.3, -0.2, 0.4, 0.2, 0.1, 0.5, 0.7, -0.4, 0.5])
    return robot.with_active(["spin_left", "spin_right", "swing"]), robot.to(device="casadi").closed.positions(q)


MADE = {
    "loaded": loaded_four_bar,
    "elastic": elastic_four_bar,
    "redundant": redundant_four_bar,
    "floating": floating_four_bar,
    "ball": ball_chain,
    "geared": geared_chain,
    "rolling": cart,
}
CASES = [*(case for case in MADE if case != "ball"), "revolute", "spherical", "rod", "universal", "prismatic"]


@cache
def mechanism(case: str) -> tuple[torsor.Robot, np.ndarray]:
    """A mechanism and positions where it is closed. Nothing is compiled: a few states would not be worth it."""
    robot, q = MADE[case]() if case in MADE else driven(case)
    return robot.to(device="casadi"), q


def indices(robot: torsor.Robot) -> list[int]:
    """Where the active coordinates lie in v."""
    return [robot.coordinate_names.index(name) for name in robot.active]


def state(robot: torsor.Robot, q: np.ndarray, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Velocities and accelerations of all coordinates, and of the active ones, that agree; and external wrenches."""
    rng, active = np.random.default_rng(seed), indices(robot)
    x, x_rate = rng.normal(size=(2, len(active)))
    own = used(robot)
    v, a = fewest(robot).closed.accelerations(q, x[own], x_rate[own])
    return v, a, v[active], a[active], rng.normal(size=(len(robot.links), 6))


def used(robot: torsor.Robot) -> list[int]:
    """Which of the active coordinates say how the mechanism moves."""
    return [k for k, index in enumerate(indices(robot)) if index in robot.closed.closure.driven_choice.independent]


@cache
def fewest(robot: torsor.Robot) -> torsor.Robot:
    """The same robot with no more active coordinates than move it; made once, since all its functions are."""
    own = used(robot)
    return robot if len(own) == len(robot.active) else robot.with_active([robot.active[k] for k in own])


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-10) -> None:
    """Check numbers against the largest of them."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))
