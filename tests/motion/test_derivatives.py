"""Gradient, Jacobian and Hessian of whole programs against CasADi's own derivatives of the program written densely."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.mechanism import Joint, Link
from torsor.motion import (
    Accelerations,
    Capsule,
    Clearance,
    Effort,
    ElectricalEnergy,
    End,
    ExpressionConstraint,
    ExpressionCost,
    Follow,
    FramePosition,
    FrameVelocity,
    HalfSpace,
    Jerk,
    Jerks,
    Manipulability,
    MechanicalEnergy,
    MotionProblem,
    Number,
    Orientation,
    Path,
    Periodic,
    Phase,
    Positions,
    Powers,
    Reaction,
    Reactions,
    Reference,
    Sphere,
    Spline,
    Start,
    Time,
    TorqueRate,
    TorqueRates,
    Torques,
    Unactuated,
    Velocities,
)
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.robot.load import build
from torsor.spatial import from_rpy, make_pose

from .whole import disagreement

TWO = torsor.library.two_link()
ENDS = [Start(q=[0.0, -2.0], v=0.0), End(q=[1.0, -1.0], v=0.0)]
CURVE = np.random.default_rng(1).normal(size=(8, 3))


def phase(**options):
    return Phase((0.3, 1.5), points=6, nodes=5, **options)


COSTS = {
    "forces": [Effort(), Effort(kind="normalised"), Effort(kind="absolute", scale=10.0), Time()],
    "energies": [
        MechanicalEnergy(),
        MechanicalEnergy(kind="positive", width=0.5),
        ElectricalEnergy(motor_constant=[2.0, 1.0]),
        ElectricalEnergy(motor_constant=2.0, recovers=False),
    ],
    "rates": [TorqueRate(scale=100.0), Jerk(scale=10.0), Jerk(frame="link2", scale=10.0)],
    "reactions": [
        Reaction(kind="squared", force=10.0),
        Reaction(kind="mean", force=10.0, moment=1.0, joints=["joint1"]),
        Reaction(kind="power", force=10.0, power=4),
    ],
    "peak": [Reaction(kind="peak", force=10.0, moment=3.0)],
    "places": [
        Reference(values=CURVE[:, :2]),
        Manipulability(frame="link2", axes="x"),
        Manipulability(frame="link2", part="rotation", axes="z", kind="reciprocal"),
    ],
    "expressions": [
        ExpressionCost(function=lambda node: node.tau[0] ** 2 * node.v[1] ** 2 + node.t * node.q[0]),
        ExpressionCost(function=lambda node: node.position("link2")[0] ** 2, at=[0.3, 0.8]),
    ],
}
ROWS = {
    "states": [
        Positions(lower=-3.0, upper=3.0),
        Velocities(upper=5.0),
        Accelerations(upper=50.0),
        Jerks(upper=500.0, only=["joint2"]),
    ],
    "forces": [Torques(), Powers(upper=100.0)],
    "force rates": [
        TorqueRates(upper=100.0),
        ExpressionConstraint(function=lambda n: n.tau_rate[0] * n.tau[1], upper=1.0),
    ],
    "reactions": [Reactions(force=100.0, moment=10.0)],
    "frames": [
        FramePosition(frame="link2", position=[0.5, 0.3, 0], tolerance=[0.1, 0.1, np.inf], seen_from="link1"),
        FrameVelocity(frame="link2", speed=2.0, upper=[2.0, 2.0, np.inf]),
        FrameVelocity(frame="link2", part="angular", axes="own", velocity=[0, 0, 1.0], tolerance=3.0),
        Orientation(frame="link2", axis=[1, 0, 0], direction=[0, 1, 0], tolerance=0.5),
        Orientation(frame="link2", rotation=np.eye(3), tolerance=0.5),
        Orientation(frame="link2", axis=[1, 0, 0], direction=[0, 1, 0], at=1.0),
        Orientation(frame="link2", rotation=np.eye(3), during=(0.2, 0.6)),
    ],
    "distances": [
        Clearance(
            first=[
                Sphere(link="link2", radius=0.1, center=[0.4, 0, 0]),
                Capsule(link="link2", start=[0, 0, 0], end=[0.4, 0, 0], radius=0.05),
            ],
            second=[
                HalfSpace(normal=[0, 1, 0], point=[0, -1, 0]),
                Capsule(start=[0.5, 0.5, 0.3], end=[0.7, 0.2, -0.5], radius=0.1),
                Sphere(center=[0.5, 0.5, 0], radius=0.1),
            ],
            least=0.01,
        )
    ],
    "following": [Follow(frame="link2", curve=CURVE, tolerance=0.01, point=[0.3, 0, 0])],
}


@pytest.mark.parametrize("kind", COSTS)
def test_costs_of_a_tree_have_exact_derivatives(kind):
    assert max(disagreement(MotionProblem(TWO, phase(), COSTS[kind], ENDS))) < 1e-12


@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_a_tree_have_exact_derivatives(kind):
    assert max(disagreement(MotionProblem(TWO, phase(), Time(), [*ENDS, *ROWS[kind]]))) < 1e-12


def _five_bar():
    robot = torsor.library.five_bar()
    ends = [Start(q=[1.21, 0.82], v=0.0), End(q=[1.5, 0.6], v=0.0)]
    rows = [Torques(upper=5.0), Velocities(upper=3.0), Follow(frame="link2_tip", curve=CURVE)]
    return MotionProblem(robot, phase(), Time(), [*ends, *rows])


def _four_bar():
    robot = torsor.library.four_bar()
    ends = [Start(q=0.5, v=0.0), End(q=1.5, v=0.0)]
    rows = [
        TorqueRates(upper=50.0),
        Reactions(force=100.0, joints=["rocker_joint"]),
        FrameVelocity(frame="coupler_end", speed=3.0),
    ]
    return MotionProblem(robot, phase(), Time(), [*ends, *rows], assembly=[0.5, 1.0, 1.5])


def _along_a_path():
    path = Path.through([[0, -2], [0.3, -1.0], [0.5, -1.5], [0.8, -1.2], [1.0, -1.0], [1.2, -0.5], [1.3, -0.2]])
    rows = [Start(q=0.0, v=0.0), End(q=1.0, v=0.0), Torques(), TorqueRates(upper=100.0), Jerks(upper=500.0)]
    return MotionProblem(TWO, phase(), [Time(), Effort(weight=0.1)], rows, path=path)


def _parametric():
    model = TWO.parametric(["links.link2.mass", "joints.joint2.origin.x"])
    rows = [Torques(), TorqueRates(upper=100.0), FramePosition(frame="link2", lower=-9.0, upper=9.0)]
    costs = [Time(), Effort(weight=0.1), Reaction(kind="peak", force=10.0)]
    return MotionProblem(model, phase(), costs, [*ENDS, *rows], numbers={"links.link2.mass": Number(1.0, 0.5, 2.0)})


def _several_phases():
    phases = [
        Phase((0.2, 0.8), points=6, nodes=4, name="first"),
        Phase((0.3, 1.0), points=5, degree=4, nodes=4, name="second", own={"joint2": Spline.uniform(7, 5)}),
        Phase(0.4, points=5, nodes=3, quadrature="trapezoid"),
    ]
    costs = [
        Time(),
        Effort(phase="first"),
        Jerk(weight=0.01, phase="second"),
        Reaction(kind="peak", force=30.0),
        ExpressionCost(function=lambda node: node.q[0] ** 2 * node.T, at=0.5, phase=2),
    ]
    rows = [
        Torques(phase=2),
        Velocities(upper=5.0, phase="second", during=(0.2, 0.7)),
        Follow(frame="link2", curve=CURVE, phase=1, tolerance=0.1, point=[0.3, 0, 0]),
        Periodic(only=["joint1"], order=1, shifts={"joint1": 0.3}),
    ]
    return MotionProblem(TWO, phases, costs, [Start(q=[0.0, -2.0], v=0.0), End(q={"joint2": -1.0}), *rows])


def _frozen():
    robot = torsor.library.stanford()
    frozen = {"joint1": 0.2, "joint4": 0.4, "joint5": 0.3, "joint6": 0.1}
    rows = [Torques(upper=100.0), Orientation(frame="link6", axis=[0, 0, 1], direction=[0, 0, 1], tolerance=0.5)]
    ends = [Start(q=[0.3, 0.5], v=0.0), End(q=[0.6, 0.7], v=0.0)]
    return MotionProblem(robot, phase(), [Time(), TorqueRate(scale=100.0)], [*ends, *rows], frozen=frozen)


def _elastic():
    robot = torsor.library.elastic_arm()
    rows = [Torques(upper=100.0), Unactuated()]
    ends = [Start(q=0.1, v=0.0), End(q=0.3, v=0.0)]
    return MotionProblem(robot, phase(), [Time(), Effort(weight=0.01)], [*ends, *rows])


KINDS = [_five_bar, _four_bar, _along_a_path, _parametric]
KINDS += [pytest.param(made, marks=pytest.mark.slow) for made in (_several_phases, _frozen, _elastic)]


@pytest.mark.parametrize("made", KINDS)
def test_all_kinds_of_problems_have_exact_derivatives(made):
    assert max(disagreement(made(), size=0.03)) < 1e-12


@pytest.mark.slow
def test_an_arm_of_six_joints_has_exact_derivatives():
    robot, ends = torsor.library.stanford(), [Start(q=0.1 * np.arange(1, 7), v=0.0), End(q=0.3, v=0.0)]
    costs = [Time(), Manipulability(frame="link6", part="all", kind="reciprocal"), TorqueRate(scale=1e3)]
    rows = [Torques(upper=100.0), Powers(upper=100.0), Reactions(force=100.0), TorqueRates(upper=1e3)]
    assert max(disagreement(MotionProblem(robot, phase(), costs, [*ends, *rows]))) < 1e-12


@pytest.mark.slow
def test_positions_that_follow_by_loops_may_be_quaternions():
    links = [
        Link("ground"),
        Link("crank", 1.0, (0.15, 0, 0), np.diag([0.01, 0.02, 0.03])),
        Link("rod", 0.5, (0.4, 0, 0), np.diag([0.01, 0.02, 0.03])),
        Link("piston", 2.0, (0, 0, 0), np.diag([0.01, 0.01, 0.01])),
    ]
    joints = [
        Joint("main", "revolute", "ground", "crank"),
        Joint("ball", "spherical", "crank", "rod", make_pose(p=[0.3, 0, 0])),
        Joint("slide", "prismatic", "ground", "piston", axis=(1, 0, 0)),
    ]
    tree = build("pump", links, joints).with_gravity([0, -9.81, 0])
    tree = tree.with_frame("end", "rod", make_pose(p=[0.8, 0, 0]))
    q = tree.integrate(tree.neutral(), [0.5, 0.1, 0.2, -0.3, 0.2])
    pin = np.linalg.inv(tree.pose(q, "piston")) @ tree.pose(q, "end") @ make_pose(from_rpy([np.pi / 2, 0, 0]))
    robot = tree.with_frame("anchor", "piston", pin).with_loop("cross", "anchor", "end", "universal")
    rows = [Start(q=0.5, v=0.0), End(q=0.9, v=0.0), TorqueRates(upper=10.0), Reactions(force=10.0), Jerks(upper=100.0)]
    problem = MotionProblem(robot.with_active(["main"]), phase(), [Time(), Effort()], rows, assembly=q)
    program, rng = problem.program, np.random.default_rng(0)
    x, felt = problem.guess() + 0.02 * rng.uniform(-1, 1, program.n), rng.uniform(-1, 1, program.m)

    def jacobians(x):
        gradient, entries = program.jacobian(x)
        jacobian = np.zeros((program.m, program.n))
        np.add.at(jacobian, program.structure, entries)
        return gradient, jacobian

    steps = 1e-5 * np.eye(program.n)  # no second program here: central differences, good to nine digits
    changes = [(program.value(x + step)[1] - program.value(x - step)[1]) / 2e-5 for step in steps]
    sums = [[0.7 * g + felt @ J for g, J in (jacobians(x + step), jacobians(x - step))] for step in steps]
    J, H = jacobians(x)[1], program.hessian(x, felt, 0.7)
    assert np.abs(J - np.array(changes).T).max() < 1e-8 * np.abs(J).max()
    assert np.abs(H - np.array([(up - down) / 2e-5 for up, down in sums])).max() < 1e-8 * np.abs(H).max()


def test_recursions_and_plain_rules_give_the_same_derivatives():
    robot = torsor.library.stanford()
    node = Node(MotionModel(robot))
    weights = ca.SX(np.linspace(0.5, 1.5, 6))
    forces = ca.dot(weights, node.tau) + ca.sumsqr(node.tau_rate) * 1e-4
    pairs = [
        (node.derivatives(forces), node.derivatives(forces, True)),
        (node.second_derivatives(forces), node.second_derivatives(forces, True)),
    ]
    at = np.random.default_rng(0).uniform(-1, 1, node.u.numel())
    for mine, plain in pairs:
        a, b = (ca.Function("f", [node.u], [each])(at).full() for each in (mine, plain))
        assert np.abs(a - b).max() < 1e-11 * np.abs(b).max()
