"""Whole-body control: closed forms, equations of motion, optimality, friction, and infeasible programs."""

import sys
from itertools import product

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.control import (
    AngularMomentum,
    CenterOfMass,
    FrameDirection,
    FrameOrientation,
    FramePose,
    FramePosition,
    PointContact,
    Posture,
    SurfaceContact,
    WholeBody,
    WholeBodyResult,
    computed_torque,
)
from torsor.control.whole_body.program import Problem, solve, solver
from torsor.spatial import make_pose

pytest.importorskip("daqp")
FEET = ("fl_foot", "fr_foot", "hl_foot", "hr_foot")


def standing() -> tuple[torsor.Robot, np.ndarray]:
    robot = torsor.library.quadruped().to(device="casadi")
    q = robot.neutral()
    q[7:] = np.tile([0.1, 0.6, -1.2], 4)
    return robot, q


@pytest.fixture(scope="module")
def walker() -> tuple[torsor.Robot, np.ndarray, WholeBody]:
    """A quadruped on four feet that lifts its trunk and turns it, and follows targets that are given."""
    robot, q = standing()
    tasks = [
        CenterOfMass(weight=10.0, name="com"),
        FrameOrientation("trunk", np.eye(3)),
        FrameDirection("fl_thigh", [0, 0, 1], [0.1, 0, 1], weight=1e-3),
        AngularMomentum(weight=0.1),
        Posture(q, weight=0.01),
    ]
    return robot, q, WholeBody(robot, tasks, [PointContact(foot) for foot in FEET])


def arm() -> torsor.Robot:
    return torsor.library.two_link().to(device="casadi")


def wrenches(robot: torsor.Robot, q: np.ndarray, found: WholeBodyResult) -> np.ndarray:
    """Return the contact forces of points as external wrenches on the links."""
    return sum(robot.wrench_at(q, place, force=force, axes="aligned") for place, force in found.forces.items())


def test_posture_of_an_arm_is_computed_torque_control() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    rng = np.random.default_rng(0)
    q, v, x = rng.uniform(-1, 1, (3, robot.nv))
    law = WholeBody(robot, [Posture(x, bandwidth=7.0, damping=0.8)], effort_limits=False, joint_limits=False)
    same = computed_torque(robot, x, bandwidth=7.0, damping=0.8)
    np.testing.assert_allclose(law(0.0, q, v), same(0.0, q, v), rtol=1e-8)


def test_a_moving_pose_of_an_arm_is_followed_exactly() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-1, 1, (2, robot.nv))
    place, T = robot.link_names[-1], robot.pose(q, robot.link_names[-1])

    def path(t: ca.SX) -> ca.SX:
        c, s = ca.cos(0.5 * t), ca.sin(0.5 * t)
        turn = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
        at = ca.SX(ca.DM(T[:3, 3])) + ca.vertcat(0.1 * ca.sin(t), 0, 0.02 * t**2)
        return ca.vertcat(ca.horzcat(turn @ ca.DM(T[:3, :3]), at), ca.SX([[0, 0, 0, 1]]))

    law = WholeBody(robot, [FramePose(place, path, weight=np.inf)], effort_limits=False, joint_limits=False)
    a = law.solve(q, v, 0.0).a
    twist, got = (robot.velocity(q, v, place, axes="aligned"), robot.acceleration(q, v, a, place, axes="aligned"))
    w_d, v_d, a_d = np.array([0, 0, 0.5]), np.array([0.1, 0, 0]), np.array([0, 0, 0.04])
    wanted = np.concatenate([20 * (w_d - twist[:3]), a_d + 20 * (v_d - twist[3:])])
    np.testing.assert_allclose(got, wanted, atol=1e-8)


def test_a_moving_direction_is_followed_exactly() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    q, v = np.random.default_rng(5).uniform(-1, 1, (2, robot.nv))
    place, axis = robot.link_names[-1], np.array([0.0, 0.0, 1.0])
    n, w = robot.pose(q, place)[:3, :3] @ axis, robot.velocity(q, v, place, axes="aligned")[:3]
    rate, second = np.cross(w, n), np.array([0.3, -0.2, 0.5])  # the direction starts as the axis moves

    def moving(t: ca.SX) -> ca.SX:
        return 3 * (ca.DM(n) + t * ca.DM(rate) + t**2 / 2 * ca.DM(second))

    task = FrameDirection(place, axis, moving, weight=np.inf)
    a = WholeBody(robot, [task], effort_limits=False, joint_limits=False).solve(q, v).a
    turn = robot.acceleration(q, v, a, place, axes="aligned")[:3]
    across = np.eye(3) - np.outer(n, n)
    found = np.cross(turn, n) + np.cross(w, rate)
    # The unit vector of u = n + t n' + t^2 s / 2 has the second rate across @ s - |n'|^2 n at t = 0, since n . n' = 0.
    np.testing.assert_allclose(found, across @ second - rate @ rate * n, atol=1e-8)


def test_torques_satisfy_the_equations_of_motion(
    walker: tuple[torsor.Robot, np.ndarray, WholeBody],
) -> None:
    robot, q, law = walker
    still = np.zeros(robot.nv)
    found = law.solve(q, still, targets={"com": robot.center_of_mass(q)})
    lifted = robot.centroidal.acceleration(q, still, found.a) - robot.gravity
    np.testing.assert_allclose(sum(found.forces.values()), robot.mass * lifted, atol=1e-9)
    v = np.random.default_rng(2).normal(size=robot.nv) * 0.1
    found = law.solve(q, v, targets={"com": robot.center_of_mass(q) + np.array([0.01, 0.02, 0.03])})
    assert found.status == "solved"
    tau = robot.inverse_dynamics(q, v, found.a, wrenches(robot, q, found))
    np.testing.assert_allclose(tau, found.tau, atol=1e-10 * np.abs(tau).max())
    assert not found.tau[:6].any()


def test_the_solution_satisfies_the_conditions_of_optimality(
    walker: tuple[torsor.Robot, np.ndarray, WholeBody],
) -> None:
    robot, q, law = walker
    v = np.random.default_rng(3).normal(size=robot.nv) * 0.3
    target = robot.center_of_mass(q) + np.array([0.3, 0.0, 0.1])  # far away: friction is used up
    matrices = law._kernel(0.0, q, v, target)
    problem = Problem(*matrices[:5], law.program.kinds)
    x, flag, multipliers = solve(problem)
    rows = np.vstack([np.eye(len(x))[: law.program.bounds], problem.A])
    scale = np.abs(problem.g).max()
    assert flag == 1
    np.testing.assert_allclose(problem.H @ x + problem.g + rows.T @ multipliers, 0, atol=1e-8 * scale)
    inside = law.program.kinds != 5
    upper, lower = problem.upper - rows @ x, rows @ x - problem.lower
    assert min(upper.min(), lower.min()) > -1e-6
    assert np.abs(multipliers[inside]).max() > 1e-3  # some inequality is active
    active = inside & (np.abs(multipliers) > 1e-9 * scale)
    assert np.abs(np.where(multipliers > 0, upper, lower)[active]).max() < 1e-6


@pytest.mark.slow
def test_the_wrench_cone_of_a_surface_is_that_of_forces_at_its_corners() -> None:
    from scipy.optimize import linprog

    contact, rng = SurfaceContact("sole", 0.1, 0.05, friction=0.6), np.random.default_rng(4)
    m = 0.6 / np.sqrt(2)
    corners, sides = product((0.1, -0.1), (0.05, -0.05)), list(product((m, -m), (m, -m)))
    rays = np.array([[*np.cross([x, y, 0], [*side, 1]), *side, 1] for x, y in corners for side in sides]).T
    assert (contact.cone() @ rays >= -1e-12).all()
    inside = 0
    for _ in range(30):
        wrench = rays @ rng.dirichlet(np.full(16, 0.2)) + rng.normal(size=6) * [0.01, 0.02, 0.02, 0.1, 0.1, 0]
        possible = linprog(np.zeros(16), A_eq=rays, b_eq=wrench).status == 0
        assert possible == bool((contact.cone() @ wrench >= -1e-9).all())
        inside += possible
    assert 3 < inside < 27


@pytest.mark.slow
def test_points_of_one_body_hold_it_by_six_equations_and_carry_the_weight() -> None:
    robot, q = standing()
    for k, p in enumerate(([0.1, 0.1, 0], [0.1, -0.1, 0], [-0.1, 0.1, 0], [-0.1, -0.1, 0.1])):
        robot = robot.with_frame(f"pad{k}", "trunk", make_pose(p=p))
    law = WholeBody(robot, [Posture(q)], [PointContact(f"pad{k}") for k in range(4)], effort_limits=False)
    stays = [rows for name, rows in law.program.groups.items() if name.endswith("stays")]
    assert sum(map(len, stays)) == 6
    found = law.solve(q, np.zeros(robot.nv))
    np.testing.assert_allclose(sum(found.forces.values()), -robot.mass * robot.gravity, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.a[:6], 0, atol=1e-8)


def test_several_states_are_solved_as_one_by_one(walker: tuple[torsor.Robot, np.ndarray, WholeBody]) -> None:
    robot, q, law = walker
    rng = np.random.default_rng(6)
    targets, v = {"com": robot.center_of_mass(q)}, rng.normal(size=(2, 3, robot.nv)) * 0.2
    v[1, 2] *= 1e6  # no torques hold this
    found = law.solve(q, v, targets=targets)
    for k in np.ndindex(2, 3):
        one = law.solve(q, v[k], targets=targets)
        assert (found.status[k], found.conflict[k]) == (one.status, one.conflict)
        np.testing.assert_array_equal(found.tau[k], one.tau)
        np.testing.assert_array_equal(found.a[k], one.a)
        np.testing.assert_array_equal(found.forces["fl_foot"][k], one.forces["fl_foot"])
    assert found.status[1, 2] == "infeasible" and (found.status.ravel()[:5] == "solved").all()
    assert law.solve(q, v[:0], targets=targets).forces["fl_foot"].shape == (0, 3, 3)


def test_a_batch_as_a_controller_names_the_state_without_torques() -> None:
    tight = WholeBody(arm(), [Posture([0.1, 0.1], weight=np.inf, bandwidth=50.0)])
    assert WholeBody(arm(), [Posture([0.1, 0.1])])(0.0, np.zeros((3, 2)), np.zeros(2)).shape == (3, 2)
    with refused(value=0.0):
        tight(0.0, [[0.1, 0.1], [2.0, 1.0]], np.zeros(2))


def test_weights_far_apart_are_priorities() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    q, still = np.full(6, 0.3), np.zeros(6)
    place, x = robot.link_names[-1], robot.pose(q, robot.link_names[-1])[:3, 3]
    options = {"effort_limits": False, "joint_limits": False}
    alone = WholeBody(robot, [FramePosition(place, x + 0.1, weight=1.0)], **options).solve(q, still)
    J = robot.jacobian(q, place, axes="aligned")[3:]
    for ratio in (1e3, 1e5):
        tasks = [FramePosition(place, x + 0.1, weight=ratio), Posture(q + 0.5, bandwidth=10.0)]
        both = WholeBody(robot, tasks, **options).solve(q, still)
        # The second task disturbs the first by about the ratio of their weights.
        assert np.abs(J @ (both.a - alone.a)).max() < 20 / ratio * np.abs(J @ alone.a).max()


def test_a_posture_of_a_later_priority_moves_only_the_null_space() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    q, still = np.full(6, 0.3), np.zeros(6)
    place, x = robot.link_names[-1], robot.pose(q, robot.link_names[-1])[:3, 3]
    tasks = [Posture(q + 0.5, weight=1e3, bandwidth=10.0, priority=1), FramePosition(place, x + 0.1, bandwidth=10.0)]
    a = WholeBody(robot, tasks, effort_limits=False, joint_limits=False).solve(q, still).a
    J, first, second = robot.jacobian(q, place, axes="aligned")[3:], np.full(3, 10.0), np.full(6, 50.0)
    np.testing.assert_allclose(a, second + np.linalg.pinv(J) @ (first - J @ second), rtol=1e-7)  # regularised by 1e-9


@pytest.mark.slow
def test_a_contradictory_task_of_a_later_priority_changes_nothing_of_the_first() -> None:
    robot, q = standing()
    still, com = np.zeros(robot.nv), robot.center_of_mass(q)
    feet = [PointContact(foot) for foot in FEET]
    tasks = [
        CenterOfMass(com + np.array([0.02, 0.0, 0.03]), name="up"),
        CenterOfMass(com - 0.1, weight=1e3, priority=1, name="down"),
        Posture(q, priority=2),
    ]
    J = robot.centroidal.jacobian(q)
    found, alone = (
        WholeBody(robot, each, feet).solve(q, still) for each in (tasks, [tasks[0], Posture(q, priority=1)])
    )
    np.testing.assert_allclose(J @ found.a, [2.0, 0.0, 3.0], atol=1e-5)
    np.testing.assert_allclose(J @ found.a, J @ alone.a, atol=1e-9)


def test_conflicts_are_named() -> None:
    robot, q = standing()
    still, com = np.zeros(robot.nv), robot.center_of_mass(q)
    feet = [PointContact(foot, friction=0.1) for foot in FEET]
    pushed = CenterOfMass(com + np.array([0.5, 0, 0]), weight=np.inf, name="push")
    found = WholeBody(robot, [pushed, Posture(q)], feet, effort_limits=False).solve(q, still)
    assert found.status == "infeasible" and np.isnan(found.tau).all()
    assert "task 'push'" in found.conflict and any(name.startswith("friction") for name in found.conflict)
    held = CenterOfMass(com, weight=np.inf)
    weak = WholeBody(robot, [held, Posture(q)], [PointContact(foot, most=1.0) for foot in FEET])
    calm = weak.solve(q, still)
    assert calm.status == "infeasible"
    assert {f"friction of {foot!r}" for foot in FEET} <= set(calm.conflict)
    with refused(value=0.0):
        weak(0.0, q, still)


def test_hard_tasks_that_say_the_same_have_a_solution_and_contradictions_are_named() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    q, still = np.full(6, 0.3), np.zeros(6)
    place, x = robot.link_names[-1], robot.pose(q, robot.link_names[-1])[:3, 3] + [0.01, 0, 0]
    one, same, other = (
        FramePosition(place, at, weight=np.inf, name=name) for name, at in (("a", x), ("b", x), ("c", x + 0.1))
    )
    options = {"effort_limits": False, "joint_limits": False}
    assert WholeBody(robot, [one, same, Posture(q)], **options).solve(q, still).status == "solved"
    found = WholeBody(robot, [one, other, Posture(q)], **options).solve(q, still)
    assert (found.status, found.conflict) == ("infeasible", ("task 'a'", "task 'c'"))


def test_an_acceleration_that_a_stretched_arm_does_not_have_is_no_solution() -> None:
    robot = arm().with_frame("tip", "link2", make_pose(p=[1, 0, 0]))
    x, still = robot.pose([0.0, 0.0], "tip")[:3, 3], np.zeros(2)
    reach = [FramePosition("tip", x * scale, weight=np.inf) for scale in (1.0, 0.9)]
    laws = [WholeBody(robot, [task], effort_limits=False, joint_limits=False) for task in reach]
    assert laws[0].solve(still, still).status == "solved"
    found = laws[1].solve(still, still)
    assert (found.status, found.conflict) == ("infeasible", ("task 'tip'",))


def test_torque_and_joint_limits_hold() -> None:
    robot = arm()
    far = WholeBody(robot, [Posture([2.0, 1.0], bandwidth=50.0)])
    tau = far(0.0, [0.0, 0.0], [0.0, 0.0])
    assert (np.abs(tau) <= robot.effort_limit + 1e-6).all() and np.isclose(
        np.abs(tau), robot.effort_limit, atol=1e-6
    ).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda robot, q: WholeBody(robot, []), "no task"),
        (lambda robot, q: WholeBody(robot, ["hand"]), "a task"),
        (lambda robot, q: WholeBody(robot, Posture(q)), "tasks"),
        (lambda robot, q: WholeBody(robot, [Posture(q, damping=-1.0)]), "damping"),
        (lambda robot, q: WholeBody(robot, [Posture(q)], regularisation=(1e-6,)), "regularisation"),
        (lambda robot, q: WholeBody(robot, [FramePosition("hnad", [0, 0, 1])]), "hnad"),
        (lambda robot, q: WholeBody(robot, [FramePosition("trunk", [0, np.nan, 1])]), "not finite"),
        (lambda robot, q: WholeBody(robot, [FramePosition("trunk", [0, 1])]), "shape (2,)"),
        (lambda robot, q: WholeBody(robot, [FrameOrientation("trunk", 2 * np.eye(3))]), "rotation"),
        (lambda robot, q: WholeBody(robot, [FrameDirection("trunk", [0, 0, 0], [0, 0, 1])]), "axis"),
        (lambda robot, q: WholeBody(robot, [Posture(q, weight=-1.0)]), "weight"),
        (lambda robot, q: Posture(q, weight=np.array([1.0, 2.0])), "weight"),
        (lambda robot, q: Posture(q, priority=-1), "priority"),
        (lambda robot, q: Posture(q, priority=1.5), "priority"),
        (lambda robot, q: WholeBody(robot, [Posture(0 * q)]), "target"),
        (lambda robot, q: WholeBody(robot, [CenterOfMass(lambda t: [t, 0])]), "returns a 2 x 1 matrix"),
        (lambda robot, q: WholeBody(robot, [FrameOrientation("trunk", lambda t: 2 * ca.SX.eye(3))]), "rotation"),
        (lambda robot, q: PointContact("fl_foot", most=np.array([1.0, 2.0])), "most"),
        (lambda robot, q: WholeBody(robot, [Posture(q)], [PointContact("fl_foot", friction=0.0)]), "friction"),
        (lambda robot, q: WholeBody(robot, [Posture(q)], [PointContact("fl_foot")] * 2), "two contacts"),
        (lambda robot, q: WholeBody(robot, [Posture(q)], [PointContact(robot.base.name)]), "must be on a moving link"),
        (lambda robot, q: WholeBody(robot, [Posture(q)], passive=["wheel"]), "wheel"),
        (lambda robot, q: WholeBody(robot.with_contacts(["fl_foot"], q), [Posture(q)]), "trees"),
        (lambda robot, q: WholeBody(torsor.library.elastic_arm(), [Posture()]), "elastic"),
        (lambda robot, q: WholeBody(robot, [Posture()]).solve(q, np.zeros(18)), "task 'Posture' has no target"),
        (lambda robot, q: WholeBody(robot, [Posture()]).solve(q, np.zeros(18), targets=[q]), "targets"),
        (lambda robot, q: WholeBody(robot, [Posture(q)]).solve(q, np.zeros(18), targets={"hand": q}), "targets"),
        (lambda robot, q: WholeBody(robot, [Posture(q)]).solve(0 * q, np.zeros(18)), "q"),
        (lambda robot, q: WholeBody(arm(), [Posture([0, 0])]).solve([0, 0], [0, 0], np.nan), "t"),
        (lambda robot, q: WholeBody(arm(), [Posture([0, 0])]).solve([0, 0], [0, np.nan]), "v"),
        (lambda robot, q: WholeBody(arm(), [Posture([0, 0])]).solve([0], [0, 0]), "q"),
        (lambda robot, q: WholeBody(arm(), [Posture([0, 0])]).solve([[0, 0]] * 3, [0, np.inf]), "v"),
        (lambda robot, q: WholeBody(arm(), [Posture([0, 0])]).solve([[0, 0]] * 2, [0, 0], [0, np.nan]), "t"),
    ],
)
def test_impossible_controllers_are_refused(make: object, message: str) -> None:
    with refused(message):
        make(*standing())  # type: ignore[operator]


@pytest.mark.slow
def test_a_sine_of_the_centre_of_mass_is_tracked_in_a_simulation() -> None:
    robot, q = standing()
    robot = robot.to(device="cpu")
    start, v, step = robot.center_of_mass(q), np.zeros(robot.nv), 2e-3

    def path(t: ca.SX) -> ca.SX:
        return ca.SX(ca.DM(start)) + ca.vertcat(0.01 * (1 - ca.cos(4 * t)), 0.01 * (1 - ca.cos(4 * t)), 0)

    tasks = [CenterOfMass(path, weight=10.0), FrameOrientation("trunk", np.eye(3)), Posture(q, weight=1e-3)]
    law = WholeBody(robot, tasks, [PointContact(foot) for foot in FEET])
    feet = np.array([robot.pose(q, foot)[:3, 3] for foot in FEET])
    worst = 0.0
    for k in range(800):
        t = k * step
        tau = law(t, q, v)
        a = robot.forward_dynamics(q, v, tau, _ground(robot, q, v, tau))
        v = v + step * a
        q = robot.integrate(q, step * v)
        desired = start + 0.01 * (1 - np.cos(4 * (t + step))) * np.array([1, 1, 0])
        worst = max(worst, np.abs(robot.center_of_mass(q) - desired).max())
    assert worst < 1e-3
    assert np.abs([robot.pose(q, foot)[:3, 3] for foot in FEET] - feet).max() < 1e-3


def _ground(robot: torsor.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return the wrenches of feet that stick, by multipliers of the contacts, written out."""
    J = np.vstack([robot.jacobian(q, foot, axes="aligned")[3:] for foot in FEET])
    still = np.zeros(robot.nv)
    drift = np.concatenate([robot.acceleration(q, v, still, foot, axes="aligned")[3:] for foot in FEET])
    M, h = robot.mass_matrix(q), robot.bias_force(q, v)
    inverse = np.linalg.solve(M, J.T)
    forces = np.linalg.solve(J @ inverse, -drift - 20 * (J @ v) - J @ np.linalg.solve(M, tau - h))
    return sum(
        robot.wrench_at(q, foot, force=f, axes="aligned") for foot, f in zip(FEET, forces.reshape(4, 3), strict=True)
    )


@pytest.mark.slow
def test_the_human_stands_on_both_feet() -> None:
    human = torsor.library.human()
    q, still = human.neutral(), np.zeros(human.nv)
    points = [f"{side}_{part}" for side in ("right", "left") for part in ("heel", "ball", "toe", "toe_medial")]
    up = tuple(-human.gravity)
    tasks = [CenterOfMass(human.center_of_mass(q), weight=10.0), Posture(q, weight=0.1)]
    law = WholeBody(human, tasks, [PointContact(each, normal=up) for each in points], joint_limits=False)
    found = law.solve(q, still)
    assert found.status == "solved"
    np.testing.assert_allclose(sum(found.forces.values()), -human.mass * human.gravity, rtol=0, atol=1e-3 * human.mass)
    tau = human.inverse_dynamics(q, still, found.a, wrenches(human, q, found))
    np.testing.assert_allclose(tau[:6], 0, atol=1e-8)


def test_a_missing_solver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "daqp", None)
    solver.cache_clear()
    with pytest.raises(ImportError, match="wbc"):
        WholeBody(arm(), [Posture([0, 0])]).solve([0, 0], [0, 0])
    solver.cache_clear()
