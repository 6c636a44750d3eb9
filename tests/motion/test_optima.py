"""Motions with a known optimum, by calculus of variations or from another problem."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.mechanism import Joint, Link
from torsor.motion import (
    SOLVERS,
    Accelerations,
    Clearance,
    Effort,
    End,
    ExpressionConstraint,
    ExpressionCost,
    Follow,
    Jerk,
    MechanicalEnergy,
    MotionProblem,
    Number,
    Path,
    Phase,
    Positions,
    Reaction,
    Sphere,
    Spline,
    Start,
    Time,
    Torques,
    Unactuated,
)
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.program import Settings
from torsor.robot.load import build

WAY, SECONDS = 0.7, 1.3


def arm(**options):
    """Return one link that swings without gravity, of rotational inertia I."""
    robot = torsor.library.planar_chain(1, length=1.0, mass=2.0, **options).with_gravity([0.0, 0.0, 0.0])
    return robot, float(robot.mass_matrix([0.0])[0, 0])


def solved(problem, tolerance=1e-9, start=None):
    found = solve_ipopt(problem.program, problem.guess() if start is None else start, Settings(tolerance=tolerance))
    assert found.is_solved, found.status
    return found


def test_least_effort_of_a_double_integrator_is_a_cubic():
    robot, inertia = arm()
    ends = [Start(q=0.0, v=0.0), End(q=WAY, v=0.0)]
    problem = MotionProblem(robot, Phase(SECONDS, points=7, knots=[0.2, 0.5, 0.6]), Effort(), ends)
    found = solved(problem)
    assert abs(found.objective / (12 * inertia**2 * WAY**2 / SECONDS**3) - 1) < 1e-10
    s = np.linspace(0, 1, 11)
    q = problem.program.layout.phases[0].profiles(found.x, s, 1)[0][:, 0]
    assert np.abs(q - WAY * (3 * s**2 - 2 * s**3)).max() < 1e-9


def test_least_jerk_is_a_quintic():
    robot, _ = arm()
    ends = [Start(q=0.0, v=0.0, a=0.0), End(q=WAY, v=0.0, a=0.0)]
    problem = MotionProblem(robot, Phase(SECONDS, points=9, degree=5), Jerk(), ends)
    found = solved(problem)
    assert abs(found.objective / (720 * WAY**2 / SECONDS**5) - 1) < 1e-10
    s = np.linspace(0, 1, 11)
    q = problem.program.layout.phases[0].profiles(found.x, s, 1)[0][:, 0]
    assert np.abs(q - WAY * (10 * s**3 - 15 * s**4 + 6 * s**5)).max() < 1e-9


def _quickest(points, path=None):
    robot, inertia = arm()
    ends = [Start(q=0.0, v=0.0), End(q=WAY if path is None else 1.0, v=0.0)]
    knots = np.linspace(0, 1, points - 2)
    phase = Phase((0.1, 3.0), points=points, nodes=knots)
    problem = MotionProblem(robot, phase, Time(), [*ends, Torques(upper=2.0)], path=path)
    return solved(problem).objective, 2 * np.sqrt(WAY * inertia / 2.0)


def test_least_time_of_a_double_integrator_comes_down_to_bang_bang():
    # The force of a cubic spline is linear between knots: it turns within the middle one of its spans.
    for points in (6, 12, 24):
        time, bang_bang = _quickest(points)
        assert abs(time / (bang_bang / np.sqrt(1 - 1 / (3 * (points - 3) ** 2))) - 1) < 1e-8


def test_a_straight_path_is_as_quick_as_the_joint_itself():
    path = Path.through(np.linspace([0.0], [WAY], 6))
    assert abs(_quickest(12, path)[0] / _quickest(12)[0] - 1) < 1e-8


def test_the_quickest_slide_is_the_cycloid():
    g, r = 9.81, 0.3
    joints = [
        Joint("x", "prismatic", "base", "cart", axis=(1, 0, 0)),
        Joint("y", "prismatic", "cart", "bead", axis=(0, 1, 0)),
    ]
    links = [Link("base"), Link("cart", 1.0, inertia=np.eye(3)), Link("bead", 1.0, inertia=np.eye(3))]
    bead = build("bead", links, joints)
    # no faster than the fall allows: v^2 <= 2 g y, with y down
    fall = ExpressionConstraint(function=lambda node: ca.sumsqr(node.v) - 2 * g * node.q[1], upper=0.0, name="fall")
    phase = Phase((0.1, 3.0), points=12, degree=5, nodes=41)
    ends = [Start(q=0.0, v=0.0), End(q=[np.pi * r, 2 * r])]
    problem = MotionProblem(bead, phase, Time(), [*ends, fall])
    found = solved(problem, 1e-8)
    exact = np.pi * np.sqrt(r / g)
    assert abs(found.objective / exact - 1) < 1e-5
    s = np.linspace(0, 1, 9)
    q = problem.program.layout.phases[0].profiles(found.x, s, 1)[0]
    turn = np.pi * s
    assert np.abs(q - r * np.c_[turn - np.sin(turn), 1 - np.cos(turn)]).max() < 5e-3


def test_a_free_number_of_the_robot_is_chosen_best():
    robot = torsor.library.two_link().with_gravity([0.0, -9.81, 0.0])
    model = robot.parametric({"counterweight": {"links.link1.com.x": 1.0}})
    ends = [Start(q=[0.0, 0.5], v=0.0), End(q=[0.5, 0.0], v=0.0)]
    phase = Phase(1.0, points=6)
    bounds = {"counterweight": Number(0.0, -2.0, 2.0)}
    problem = MotionProblem(model, phase, Effort(), ends, numbers=bounds)
    found = solved(problem)
    best = found.x[problem.program.layout.numbers["counterweight"]]
    assert -2 < best < 2
    there = [solved(MotionProblem(model.at([best + far]), phase, Effort(), ends)).objective for far in (0, -0.1, 0.1)]
    assert abs(there[0] / found.objective - 1) < 1e-9
    assert there[1] > found.objective and there[2] > found.objective


def test_the_least_peak_of_a_reaction_is_that_of_bang_bang():
    cart = build("cart", [Link("base"), Link("cart", 3.0)], [Joint("x", "prismatic", "base", "cart", axis=(1, 0, 0))])
    phase = Phase(SECONDS, points=8, nodes=np.linspace(0, 1, 6))
    cart = cart.with_gravity([0.0, 0.0, 0.0])
    ends = [Start(q=0.0, v=0.0), End(q=WAY, v=0.0)]
    problem = MotionProblem(cart, [phase], Reaction(kind="peak", force=10.0, weight=2.0), ends)
    found = solved(problem)
    least = 4 * WAY / SECONDS**2 * 3.0 / 10  # |f| = m |a|, measured by 10 N
    assert abs(found.objective / (2 * least / (1 - 1 / (3 * 5**2))) - 1) < 1e-8  # of five spans, as above
    q, v, a = problem.program.layout.phases[0].profiles(found.x, phase.nodes, 3)
    assert abs(np.linalg.norm(cart.joint_wrenches(q, v, a)[:, 0, 3:], axis=-1).max() / 5 - found.objective) < 1e-7


def test_a_hand_goes_along_a_line_and_round_a_ball():
    robot = torsor.library.two_link()
    begin, end = np.array([0.2, 0.9]), np.array([0.8, 0.4])
    hand = [robot.pose(each, "link2")[:3, 3] for each in (begin, end)]
    ends = [Start(q=begin, v=0.0), End(q={"joint1": end[0]}, v=0.0)]
    tip = Positions(lower=-3.0, upper=3.0, hull=True)
    line = Follow(frame="link2", curve=np.linspace(*hand, 6), tolerance=0.02, during=(0.2, 1.0))
    followed = MotionProblem(robot, Phase(1.0, points=7), Effort(), [*ends, tip, line])
    found = solved(followed, 1e-8)
    y = followed.program.layout.phases[0].profiles(found.x, np.linspace(0.2, 1, 9), 2)
    away = robot.pose(y[0][:, :2], "link2")[:, :3, 3] - (hand[0] + y[0][:, 2:] * (hand[1] - hand[0]))
    assert np.abs(away).max() < 0.0201 and (y[1][:, 2] > -1e-6).all()

    through = robot.pose([0.5, 0.65], "link2") @ [0.4, 0.0, 0.0, 1.0]
    ball = Sphere(center=through[:3] + np.array([0.03, 0.03, 0.0]), radius=0.1)
    keep = Clearance(first=Sphere(link="link2", center=[0.4, 0, 0], radius=0.02), second=ball, least=0.01)
    free = MotionProblem(robot, Phase(1.0, points=8), Effort(), [*ends, End(q={"joint2": end[1]}), tip])
    round_it = MotionProblem(robot, Phase(1.0, points=8), Effort(), [*ends, End(q={"joint2": end[1]}), tip, keep])
    paths = []
    for problem in (free, round_it):
        found = solved(problem, 1e-8)
        q = problem.program.layout.phases[0].profiles(found.x, np.linspace(0, 1, 81), 1)[0]
        paths.append(np.linalg.norm((robot.pose(q, "link2") @ [0.4, 0, 0, 1])[:, :3] - ball.center, axis=-1).min())
    assert paths[0] < 0.1 and abs(paths[1] - 0.13) < 1e-6


def _bead(**options):
    """Return the motion of a point from (-1, 0, 0) to (1, 0, 0) in 1 s."""
    links, joints = [Link("base")], []
    for name, axis in (("x", (1, 0, 0)), ("z", (0, 0, 1)), ("y", (0, 1, 0))):
        joints.append(Joint(name, "prismatic", links[-1].name, f"slide {name}", axis=axis))
        links.append(Link(f"slide {name}", 1.0, inertia=np.eye(3)))
    bead = build("bead", links, joints).with_gravity([0.0, 0.0, 0.0])
    ends = [Start(q=[-1.0, 0.0, 0.0], v=0.0), End(q=[1.0, 0.0, 0.0], v=0.0)]
    return MotionProblem(**{"robot": bead, "phases": Phase(1.0, points=12), "constraints": ends} | options)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_symmetric_start_does_not_end_at_a_saddle_point(solver):
    hill = ExpressionCost(function=lambda node: 4000 * ca.exp(-ca.sumsqr(node.q) / 0.1), name="hill")
    problem = _bead(objective=[Effort(), hill])
    found = problem.solve(solver)
    nudged = problem.solve(solver, start=[[-1, 0, 0], [0, 0.01, 0.01], [1, 0, 0]])
    assert found.objective == pytest.approx(nudged.objective, rel=1e-5)
    assert np.abs(found.q[:, 1:]).max() > 0.1  # round the hill
    assert "a saddle point with the objective 1150.46 was left" in found.status
    assert found.curvature.is_minimum and "no negative curvature" in found.report()
    assert found.to_dict()["second_order"]["is_minimum"]


@pytest.mark.parametrize("solver", ["condensed", "sqp"])
def test_a_start_above_the_middle_of_a_ball_does_not_end_on_its_top(solver):
    ball, point = Sphere(center=[0, 0, -0.15], radius=0.3), Sphere(link="slide y", radius=0.05)
    ends = _bead(objective=Effort()).constraints
    effort = Effort(scale={"x": 1.0, "y": 1.0, "z": 0.5})  # it is harder to move up than sideways
    problem = _bead(objective=effort, constraints=[*ends, Clearance(first=point, second=ball, least=0.0)])
    found = problem.solve(solver)
    assert found.objective == pytest.approx(450.9666, rel=1e-6) and np.abs(found.q[:, 2]).max() > 0.3
    assert problem.solve(solver, start=found).status == "optimal"


def test_a_minimum_is_not_left():
    found = _bead(objective=Effort()).solve()
    assert found.status == "optimal" and found.curvature.is_minimum


@pytest.mark.parametrize("mass", [1e-4, 1.0, 1e3])
def test_the_least_mechanical_energy_is_proportional_to_the_mass(mass):
    cart = build("cart", [Link("base"), Link("cart", mass)], [Joint("x", "prismatic", "base", "cart", axis=(1, 0, 0))])
    ends = [Start(q=0.0, v=0.0), End(q=WAY, v=0.0), Accelerations(upper=6 * WAY)]
    found = MotionProblem(cart.with_gravity([0.0, 0.0, 0.0]), Phase(1.0, points=12), MechanicalEnergy(), ends).solve()
    part, fine = found.parts[0], found.at(np.linspace(0.0, 1.0, 20_001))
    work = np.trapezoid(np.abs(fine.tau * fine.v).sum(axis=1), fine.times)
    assert part.exact == pytest.approx(work, rel=1e-4) and 0.96 * work < part.value < work
    # Constant accelerations to the speed v and back take v / a each, and the energy of the motion twice.
    speed = (6 - np.sqrt(12)) / 2 * WAY
    assert mass * speed**2 < work < 1.08 * mass * speed**2
    assert f"exact {part.exact:.8g}" in found.report()
    assert found.to_dict()["parts"][0]["exact"] == part.exact


def _vibration(robot, q, v, tau, seconds, step):
    """Return the largest deviation of a replay from the motion (K moments), and from its end after it."""
    s, still = np.linspace(0, 1, len(q)), np.abs(tau).max(axis=0) == 0
    t, force = ca.SX.sym("t"), Path.through(tau, 5, s)
    push = ca.if_else(t < seconds, force.over(t / seconds)[0], ca.SX.zeros(robot.nv, 1))
    control = ca.Function("tau", [t, ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)], [push])
    replay = torsor.simulate(robot, q[0], v[0], 1.5 * seconds, controller=control, step=step, progress=False)
    at = np.rint(s * seconds / step).astype(int)
    assert still.any()
    return np.abs(replay.q[at] - q).max(), np.abs(replay.q[replay.times >= seconds] - q[-1]).max()


def test_an_elastic_arm_is_moved_without_vibration():
    robot, _ = arm()
    joint = robot.joint_names[0]
    elastic = robot.with_motor(joint, 2e-3, 10.0, stiffness=30.0)
    motor = f"{joint}/motor"
    phase = Phase(0.6, points=16, degree=7, own={motor: Spline.uniform(14, 5)})
    ends = [Start(q=0.0, v=0.0, a=0.0), End(q=WAY, v=0.0, a=0.0)]
    problem = MotionProblem(elastic, phase, Effort(scale={motor: 1.0}), [*ends, Unactuated()])
    q, v, a = problem.program.layout.phases[0].profiles(solved(problem).x, np.linspace(0, 1, 61), 3)
    tau = elastic.inverse_dynamics(q, v, a)
    undriven = elastic.coordinate_names.index(joint)
    assert np.abs(tau[:, undriven]).max() < 1e-4 * np.abs(tau).max()  # also between the places of collocation
    tau[:, undriven] = 0.0
    during, after = _vibration(elastic, q, v, tau, 0.6, 1e-3)
    assert during < 1e-5 and after < 1e-5
    stiff = MotionProblem(robot, Phase(0.6, points=8, degree=7), Effort(), ends)
    y = stiff.program.layout.phases[0].profiles(solved(stiff).x, np.linspace(0, 1, 61), 3)
    tau[:, 1 - undriven] = robot.inverse_dynamics(*y)[:, 0]
    assert _vibration(elastic, np.repeat(y[0], 2, axis=1), np.repeat(y[1], 2, axis=1), tau, 0.6, 1e-3)[1] > 0.05


@pytest.mark.slow
def test_an_elastic_arm_of_two_links_vibrates_less_with_more_control_points():
    robot = torsor.library.two_link()
    arm = robot.with_motor("joint1", 2e-4, 50.0, stiffness=60.0).with_motor("joint2", 1e-4, 50.0, stiffness=40.0)
    motors = arm.coordinate_names[2:]
    left = []
    for points in (16, 24):
        own = {name: Spline.uniform(points - 2, 5) for name in motors}
        ends = [Start(q=[0.0, 0.5] * 2, v=0.0, a=0.0), End(q=[1.0, -0.5] * 2, v=0.0, a=0.0)]
        effort = Effort(scale=dict.fromkeys(motors, 10.0))
        problem = MotionProblem(arm, Phase(0.8, points=points, degree=7, own=own), effort, [*ends, Unactuated()])
        q, v, a = problem.program.layout.phases[0].profiles(solved(problem).x, np.linspace(0, 1, 161), 3)
        tau = arm.inverse_dynamics(q, v, a)
        tau[:, :2] = 0.0
        left.append(_vibration(arm, q, v, tau, 0.8, 5e-4)[1])
    assert left[1] < left[0] / 10 and left[1] < 3e-4


@pytest.mark.slow
def test_the_quickest_motion_of_a_closed_mechanism_is_what_its_torques_cause():
    robot = torsor.library.five_bar()
    ends = [Start(q=[1.2, 0.8], v=0.0), End(q=[2.0, 1.4], v=0.0)]
    problem = MotionProblem(robot, Phase((0.1, 1.5), points=9, degree=5), Time(), [*ends, Torques(upper=15.0)])
    found = solved(problem, 1e-8)
    other = solved(problem, 1e-8, problem.guess() + 0.05 * np.sin(np.arange(problem.program.n)))
    assert abs(found.objective / other.objective - 1) < 1e-6
    s, seconds = np.linspace(0, 1, 201), found.objective
    y = problem.program.layout.phases[0].profiles(found.x, s, 3)
    q = robot.closed.assemble(y[0])
    tau = robot.closed.inverse_dynamics(q, y[1], y[2])
    assert np.abs(tau).max() < 15.05  # 15 at nodes
    force, t = Path.through(tau, 5, s), ca.SX.sym("t")
    control = ca.Function("tau", [t, ca.SX.sym("q", 4), ca.SX.sym("v", 4)], [force.over(t / seconds)[0]])
    replay = torsor.simulate(robot, q[0], np.zeros(4), seconds, controller=control, step=seconds / 800, progress=False)
    assert np.abs(replay.q[::4] - q).max() < 1e-5
