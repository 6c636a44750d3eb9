"""Dynamics leg by leg agrees with the whole mechanism: reference numbers, multipliers, Lagrange's equations, power."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.trees.tree import Tree
from torsor.spatial import make_pose

from .mechanisms import KINDS, TARGET, made, motion, target_robot, two_legs

ROBOTS = ["gough_stewart", "delta", "three_rrr"]
MOSTLY_SLOW_ROBOTS = [pytest.param(name, marks=pytest.mark.slow) for name in ROBOTS[:2]] + ROBOTS[2:]
QUICK_KINDS = ("spherical",)  # the others take seconds each
MOSTLY_SLOW = [kind if kind in QUICK_KINDS else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]


def multipliers(robot: torsor.ParallelRobot, pose: np.ndarray, legs: np.ndarray, u: np.ndarray, a: np.ndarray):
    """Forces of the drives from the tree's inverse dynamics, tau = B Gamma + A^T lambda, with all of A."""
    tree, q = robot.as_robot(), np.r_[pose, legs]
    found = robot.leg_accelerations(pose, u, a, q=legs)
    v, rates = (np.r_[mine, theirs] for mine, theirs in zip((u, a), found, strict=True))
    A, A_rate = tree.derivatives.jvp("closure_jacobian", (q,), (v,))
    scale = max(1.0, np.abs(rates).max())
    np.testing.assert_allclose(A @ v, 0, atol=1e-10 * scale)
    np.testing.assert_allclose(A @ rates + A_rate @ v, 0, atol=1e-10 * scale)
    B = np.eye(tree.nv)[:, [tree.coordinate_names.index(name) for name in tree.active]]
    found, *_ = np.linalg.lstsq(np.hstack([B, A.T]), tree.inverse_dynamics(q, v, rates, loops="open"), rcond=None)
    return found[: len(tree.active)]


def test_the_gough_stewart_platform_of_khalil() -> None:
    robot, R = target_robot(), np.array(TARGET["R"])
    pose = make_pose(R, TARGET["X"])
    w, v = R.T @ TARGET["omega"], R.T @ TARGET["v"]
    twist, rate = np.r_[w, v], np.r_[R.T @ TARGET["alpha"], R.T @ TARGET["a"] - np.cross(w, v)]
    q = robot.inverse_kinematics(pose)
    np.testing.assert_allclose(q.reshape(6, 3), TARGET["leg_q"], rtol=1e-12)
    found_v, found_a = robot.leg_accelerations(pose, twist, rate)
    np.testing.assert_allclose(found_v.reshape(6, 3), TARGET["leg_qd"], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found_a.reshape(6, 3), TARGET["leg_qdd"], rtol=1e-11, atol=1e-13)
    # The reference has v first and base axes.
    K = robot.inverse_jacobian(pose)
    in_base = np.hstack([K[:, 3:] @ R.T, K[:, :3] @ R.T])
    np.testing.assert_allclose(in_base, TARGET["Jp_inv"], rtol=1e-11, atol=1e-13)
    for known in (None, q):
        found = robot.inverse_dynamics(pose, twist, rate, q=known)
        np.testing.assert_allclose(found, TARGET["Gamma"], rtol=1e-11)
    K_base, total = np.array(TARGET["Jp_inv"]), robot.platform_force(pose, twist, rate)
    np.testing.assert_allclose(np.r_[R @ total[3:], R @ total[:3]], K_base.T @ TARGET["Gamma"], rtol=1e-11)


@pytest.mark.parametrize("name", MOSTLY_SLOW_ROBOTS)
def test_leg_by_leg_and_cut_joints_agree(name: str) -> None:
    robot = made(name)
    pose, u, a = motion(robot)
    tree, q = robot.as_robot(), robot.inverse_kinematics(pose)
    places = [robot.coordinate_names.index(name) for name in robot.driven_names]
    v, rates = (each[:, places] for each in robot.leg_accelerations(pose, u, a, q=q))
    forces = robot.inverse_dynamics(pose, u, a)
    generic = tree.closed.inverse_dynamics(np.hstack([pose, q]), v, rates)
    np.testing.assert_allclose(forces, generic, rtol=0, atol=1e-10 * np.abs(forces).max())
    for k in range(len(pose)):
        found = multipliers(robot, pose[k], q[k], u[k], a[k])
        np.testing.assert_allclose(forces[k], found, rtol=0, atol=1e-10 * np.abs(found).max())


@pytest.mark.parametrize("name", MOSTLY_SLOW_ROBOTS)
def test_leg_by_leg_takes_fewer_operations(name: str) -> None:
    robot = made(name)
    tree = robot.as_robot()
    for task in ("inverse_dynamics", "forward_dynamics"):
        own, generic = robot.operation_count(task, positions=True), tree.operation_count(f"constrained_{task}")
        assert 2 * own.arithmetic < generic.arithmetic
        if robot.has_closed_form:  # then the legs' positions are found on the way, and still
            assert 5 * robot.operation_count(task).arithmetic < generic.arithmetic


@pytest.mark.parametrize("kind", MOSTLY_SLOW)
def test_every_kind_of_joint_at_the_platform(kind: str) -> None:
    robot = two_legs(kind)
    pose, u, a = (each[0] for each in motion(robot, 1, 0.02))
    q = robot.inverse_kinematics(pose)
    forces = robot.inverse_dynamics(pose, u, a, q=q)
    found = multipliers(robot, pose, q, u, a)
    np.testing.assert_allclose(forces, found, rtol=0, atol=1e-10 * np.abs(found).max())
    again = robot.forward_dynamics(pose, u, forces, q=q)
    np.testing.assert_allclose(again, a, rtol=0, atol=1e-9)


class Lagrange:
    """A mechanism of bodies at poses that are functions of coordinates: T - V, constraints, drives. No recursion."""

    def __init__(self, count: int, gravity: np.ndarray):
        self.q, self.v = ca.SX.sym("q", count), ca.SX.sym("v", count)
        self.gravity, self.L, self.held = ca.DM(gravity), ca.SX(0), []

    def rate(self, x: ca.SX) -> ca.SX:
        return ca.jtimes(x, self.q, self.v)

    def add(self, R: ca.SX, p: ca.SX, link: torsor.Link) -> None:
        centre, W = p + R @ ca.DM(link.com), R.T @ ca.reshape(self.rate(ca.vec(R)), 3, 3)
        w, c = ca.inv_skew(W), self.rate(centre)
        energy = link.mass * ca.dot(c, c) / 2 + ca.dot(w, ca.DM(link.inertia) @ w) / 2
        self.L += energy + link.mass * ca.dot(self.gravity, centre)

    def forces(self, q: np.ndarray, given: dict[int, tuple[float, float]], driven: list[int]) -> np.ndarray:
        """Forces of the driven coordinates, from rates and their rates of the given ones; the others follow."""
        phi = ca.vertcat(*self.held)
        A = ca.jacobian(phi, self.q)
        drift = ca.jtimes(A @ self.v, self.q, self.v)
        momentum = ca.gradient(self.L, self.v)
        M = ca.jacobian(momentum, self.v)
        rest = ca.jtimes(momentum, self.q, self.v) - ca.gradient(self.L, self.q)
        numbers = ca.Function("numbers", [self.q, self.v], [phi, A, drift, M, rest])
        known, free = list(given), [k for k in range(self.q.numel()) if k not in given]
        v, a = np.zeros((2, len(q)))
        v[known], a[known] = np.array(list(given.values())).T
        at = numbers(q, v)[1].full()
        v[free] = np.linalg.solve(at[:, free], -at[:, known] @ v[known])
        phi_, A_, drift_, M_, rest_ = (each.full() for each in numbers(q, v))
        assert np.abs(phi_).max() < 1e-11
        a[free] = np.linalg.solve(A_[:, free], -drift_.ravel() - A_[:, known] @ a[known])
        B = np.eye(len(q))[:, driven]
        found = np.linalg.solve(np.hstack([B, A_.T]), M_ @ a + rest_.ravel())
        return found[: len(driven)]


def turn(axis: int, angle: ca.SX) -> ca.SX:
    R, (i, j) = ca.SX.eye(3), [((axis + 1) % 3), ((axis + 2) % 3)]
    R[i, i] = R[j, j] = ca.cos(angle)
    R[i, j], R[j, i] = -ca.sin(angle), ca.sin(angle)
    return R


def test_gough_stewart_obeys_lagrange() -> None:
    robot, rng = made("gough_stewart"), np.random.default_rng(3)
    system = Lagrange(24, robot.gravity)
    x, angles = system.q[:3], system.q[3:6]
    R = turn(2, angles[2]) @ turn(1, angles[1]) @ turn(0, angles[0])
    system.add(R, x, robot.platform)
    for k, leg in enumerate(robot.legs):
        swing, tilt, stretch = (system.q[6 + 3 * k + j] for j in range(3))
        foot, p = ca.DM(leg.base[:3, :3]), ca.DM(leg.base[:3, 3])
        cross, barrel, rod = leg.robot.links
        R_cross = foot @ turn(0, swing)
        R_leg = R_cross @ turn(1, tilt)
        tip = p + R_leg @ ca.vertcat(0, 0, stretch)
        for R_body, at, link in ((R_cross, p, cross), (R_leg, p, barrel), (R_leg, tip, rod)):
            system.add(R_body, at, link)
        system.held.append(tip - (x + R @ ca.DM(leg.at[:3, 3])))
    place, rates, second = rng.normal(size=(3, 6)) * [[0.1], [1.0], [1.0]] + [[0, 0, 0.85, 0, 0, 0], [0] * 6, [0] * 6]
    # The platform's twist and its rate, from the angles and theirs.
    w = ca.inv_skew(R.T @ ca.reshape(system.rate(ca.vec(R)), 3, 3))
    twist = ca.vertcat(w, R.T @ system.rate(x))
    a = ca.SX.sym("a", 24)
    change = ca.jtimes(twist, ca.vertcat(system.q, system.v), ca.vertcat(system.v, a))
    body = ca.Function("body", [system.q, system.v, a], [R, twist, change])
    pad = [np.r_[each, np.zeros(18)] for each in (place, rates, second)]
    R_, u, u_rate = (each.full() for each in body(*pad))
    pose = make_pose(R_, place[:3])
    q = np.r_[place, robot.inverse_kinematics(pose)]
    given = {k: (rates[k], second[k]) for k in range(6)}
    expected = system.forces(q, given, [8 + 3 * k for k in range(6)])
    found = robot.inverse_dynamics(pose, u.ravel(), u_rate.ravel())
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.slow
def test_delta_obeys_lagrange() -> None:
    robot, rng = made("delta"), np.random.default_rng(5)
    system = Lagrange(12, robot.gravity)
    x = system.q[:3]
    system.add(ca.SX.eye(3), x, robot.platform)
    for k, leg in enumerate(robot.legs):
        shoulder, elbow, swing = (system.q[3 + 3 * k + j] for j in range(3))
        stand, p = ca.DM(leg.base[:3, :3]), ca.DM(leg.base[:3, 3])
        arm, _, rod, _ = leg.robot.links
        joints = {joint.name: joint.placement[:3, 3] for joint in leg.robot.joints}
        R_arm = stand @ turn(1, shoulder)
        bend = p + R_arm @ ca.DM(joints["elbow"])
        R_bar = R_arm @ turn(1, elbow)
        R_rod = R_bar @ turn(0, swing)
        system.add(R_arm, p, arm)
        ends = [bend + R_bar @ ca.DM(joints[name]) for name in ("swing", "swing2")]
        for end in ends:
            system.add(R_rod, end, rod)
        system.L += 0.02 * system.v[3 + 3 * k] ** 2 / 2  # the rotor
        system.held.append(ends[0] + R_rod @ ca.DM([0, 0, -0.8]) - (x + ca.DM(leg.at[:3, 3])))
    pose, u, a = np.array([0.1, -0.05, -0.75]), *rng.normal(size=(2, 3))
    q = np.r_[pose, robot.inverse_kinematics(pose)]
    expected = system.forces(q, {k: (u[k], a[k]) for k in range(3)}, [3, 6, 9])
    np.testing.assert_allclose(robot.inverse_dynamics(pose, u, a), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", MOSTLY_SLOW_ROBOTS)
def test_the_drives_give_what_the_energy_gains(name: str) -> None:
    robot = made(name).with_gravity([1.0, 2.0, -9.0])
    pose, u, a = (each[0] for each in motion(robot, 1))
    q, (v, _) = robot.inverse_kinematics(pose), robot.leg_accelerations(pose, u, a)
    symbols = [ca.SX.sym("x", len(pose)), ca.SX.sym("q", robot.nq), ca.SX.sym("u", robot.dof)]
    x, legs, rates = symbols
    kinetic, potential = (robot.function(name, positions=True) for name in ("kinetic_energy", "potential_energy"))
    energy = kinetic(x, legs, rates) + potential(x, legs)
    along = ca.vertcat(steps(Tree.of(robot.carriage), x) @ rates, ca.DM(v), ca.DM(a))
    gained = ca.Function("gained", symbols, [ca.jtimes(energy, ca.vertcat(*symbols), along)])(pose, q, u)
    K = robot.inverse_jacobian(pose)
    assert robot.inverse_dynamics(pose, u, a) @ (K @ u) == pytest.approx(float(gained), rel=1e-10)


@pytest.mark.parametrize("name", [*MOSTLY_SLOW_ROBOTS, pytest.param("SPS", marks=pytest.mark.slow)])
def test_forward_inverts_inverse_dynamics(name: str) -> None:
    robot = made("gough_stewart", legs="SPS") if name == "SPS" else made(name)
    pose, u, a = motion(robot)
    load = np.random.default_rng(1).normal(size=6)
    q = None if robot.has_closed_form else robot.inverse_kinematics(pose)  # else each call would look for the same
    for external in (load, None):
        forces = robot.inverse_dynamics(pose, u, a, external, q=q)
        again = robot.forward_dynamics(pose, u, forces, external, q=q)
        np.testing.assert_allclose(again, a, rtol=0, atol=1e-10)
    total, rest = robot.platform_force(pose, u, a, q=q), robot.platform_force(pose, u, 0 * a, q=q)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", robot.mass_matrix(pose, q), a) + rest, total, atol=1e-10)
    np.testing.assert_allclose(np.einsum("kij,ki->kj", robot.inverse_jacobian(pose, q), forces), total, atol=1e-10)


def test_a_wrench_on_the_platform_is_felt_by_the_drives() -> None:
    robot = made("gough_stewart")
    pose, u, a = (each[0] for each in motion(robot, 1))
    load = np.random.default_rng(2).normal(size=6)
    more = robot.inverse_dynamics(pose, u, a, load) - robot.inverse_dynamics(pose, u, a)
    np.testing.assert_allclose(robot.inverse_jacobian(pose).T @ more, -load, rtol=1e-10)


@pytest.mark.slow
def test_of_redundant_drives_the_forces_are_least() -> None:
    single = made("three_rrr")
    legs = [replace(leg, driven=("shoulder", "elbow")) if k == 0 else leg for k, leg in enumerate(single.legs)]
    robot = replace(single, legs=legs)
    pose, u, a = (each[0] for each in motion(robot, 1))
    K, total = robot.inverse_jacobian(pose), single.platform_force(pose, u, a)
    assert K.shape == (4, 3)
    for share in (np.ones(4), np.array([1.0, 4.0, 2.0, 1.0])):
        forces = robot.inverse_dynamics(pose, u, a, share=share)
        np.testing.assert_allclose(K.T @ forces, total, rtol=1e-10)  # they cause the motion
        spare = np.linalg.svd(K.T)[2][-1]
        assert abs(spare @ (forces / share)) < 1e-10 * np.abs(forces).max()  # and nothing against each other
    np.testing.assert_allclose(robot.jacobian(pose) @ K, np.eye(3), atol=1e-11)


def thin(robot: torsor.ParallelRobot) -> torsor.ParallelRobot:
    """The robot with legs that have no inertia about their line, and crosses that have none at all."""
    legs = []
    for leg in robot.legs:
        links = [
            replace(link, inertia=link.inertia * np.diag([1.0, 1.0, 0.0]), strict=False)
            if link.name != "cross"
            else torsor.Link("cross")
            for link in leg.robot.links
        ]
        legs.append(replace(leg, robot=replace(leg.robot, links=tuple(links))))
    return replace(robot, legs=legs)


@pytest.mark.slow
def test_thin_legs_on_balls_and_on_universal_joints_are_the_same() -> None:
    ups, sps = (thin(made("gough_stewart", legs=legs)) for legs in ("UPS", "SPS"))
    pose, u, a = motion(ups)
    expected = ups.inverse_dynamics(pose, u, a)
    np.testing.assert_allclose(sps.inverse_dynamics(pose, u, a), expected, rtol=1e-10)
    v = sps.leg_velocities(pose, u).reshape(-1, 6, 4)
    np.testing.assert_allclose(v[..., 2], 0, atol=1e-12)  # no spin about the leg's line


@pytest.mark.slow
def test_springs_of_universal_joints_are_felt() -> None:
    robot = made("gough_stewart")
    soft = replace(robot, legs=[replace(leg, robot=leg.robot.with_spring("tilt", 30.0)) for leg in robot.legs])
    pose, u, a = motion(robot)
    q = robot.inverse_kinematics(pose)
    for known in (None, q):
        found = soft.platform_force(pose, u, a, q=known) - robot.platform_force(pose, u, a)
        slopes = np.stack([robot.leg_velocities(pose, e) for e in np.eye(6)], axis=-1)
        np.testing.assert_allclose(found, np.einsum("kij,ki->kj", slopes[:, 1::3], 30.0 * q[:, 1::3]), atol=1e-10)


@pytest.mark.slow
def test_single_precision_and_threads_are_the_robots_own() -> None:
    robot = torsor.library.gough_stewart()
    pose, u, a = motion(robot, 8)
    forces = robot.inverse_dynamics(pose, u, a)
    np.testing.assert_allclose(robot.to(dtype="float32").inverse_dynamics(pose, u, a), forces, rtol=1e-3)
    assert np.array_equal(robot.to(threads=2).inverse_dynamics(pose, u, a), forces)
