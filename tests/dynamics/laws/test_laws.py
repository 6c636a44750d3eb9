"""Laws of mechanics on random mechanisms with every type of joint, exact derivatives by CasADi."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import ALGORITHMS, Tree
from torsor.mechanism.joints import KINDS
from torsor.robot.accessors import method_of

TREES = [(7, 0), (7, 1), (9, 2), (9, 3), (12, 4), (12, 5), (1, 6), (15, 7)]
LARGE = [(12, 5), (15, 7)]
MORE = [(7, 1), (9, 3), (12, 4)]
# A single link and the large ones are machine code; that the laws hold for more trees needs none, which each test would
# call once.
COMPILED = [(1, 6), *LARGE]


@pytest.fixture(
    scope="module",
    params=[pytest.param(tree, marks=pytest.mark.slow) if tree in LARGE + MORE else tree for tree in TREES],
    ids=lambda p: f"{p[0]}-links-seed-{p[1]}",
)
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    robot = torsor.library.random_tree(*request.param)
    return robot if request.param in COMPILED else robot.to(device="casadi")


@pytest.fixture
def state(robot: torsor.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    return q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


class Symbols:
    """Symbols of a motion, and exact rates along it."""

    def __init__(self, robot: torsor.Robot):
        self.robot = robot
        self.q, self.v, self.a = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), ca.SX.sym("a", robot.nv)
        t = ca.SX.sym("t")
        step = robot.function("integrate")(self.q, t * self.v)
        self.q_rate = ca.substitute(ca.jacobian(step, t), t, 0)

    def rate(self, expression: ca.SX) -> ca.SX:
        flat = ca.vec(expression)
        along = ca.jtimes(flat, self.q, self.q_rate) + ca.jtimes(flat, self.v, self.a)
        return ca.reshape(along, expression.shape)

    def value(self, expression: ca.SX, state: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.asarray(ca.Function("value", [self.q, self.v, self.a], [expression])(*state).full())


@pytest.fixture(scope="module")
def symbols(robot: torsor.Robot) -> Symbols:
    return Symbols(robot)


def test_random_trees_have_every_type_of_joint() -> None:
    found = {joint.type for seed in range(4) for joint in torsor.library.random_tree(9, seed).joints}
    assert found == set(KINDS) - {"fixed"}
    followers = [joint for n, seed in TREES for joint in torsor.library.random_tree(n, seed).joints if joint.follows]
    assert followers
    motors = [joint.motor for n, seed in TREES for joint in torsor.library.random_tree(n, seed).joints if joint.motor]
    assert {motor.is_elastic for motor in motors} == {True, False}
    assert {motor.carrier == "base" for motor in motors} == {True, False}


def test_mass_matrix_is_the_derivative_of_force_by_acceleration(robot, symbols, state) -> None:
    tau = robot.function("inverse_dynamics")(symbols.q, symbols.v, symbols.a)
    assert_close(robot.mass_matrix(state[0]), symbols.value(ca.jacobian(tau, symbols.a), state))


def test_mass_matrix_is_symmetric_and_positive(robot, state) -> None:
    M = robot.mass_matrix(state[0])
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0


def test_rate_of_mass_matrix_minus_twice_coriolis_is_skew(robot, symbols, state) -> None:
    M_rate = symbols.value(symbols.rate(ca.densify(robot.function("mass_matrix")(symbols.q))), state)
    N = M_rate - 2 * robot.coriolis_matrix(*state[:2])
    assert_close(N, -N.T)


def test_force_is_the_sum_of_its_parts(robot, state) -> None:
    q, v, a = state
    bias = robot.coriolis_matrix(q, v) @ v + robot.gravity_force(q) + robot.spring_force(q) + robot.friction_force(v)
    assert_close(robot.bias_force(q, v), bias)
    assert_close(robot.inverse_dynamics(q, v, a), robot.mass_matrix(q) @ a + bias)


def test_energy_rate_is_the_power_of_drives_less_friction(robot, symbols, state) -> None:
    q, v, a = state
    energy = robot.function("kinetic_energy")(symbols.q, symbols.v) + robot.function("potential_energy")(symbols.q)
    power = (robot.inverse_dynamics(q, v, a) - robot.friction_force(v)) @ v
    assert_close(symbols.value(symbols.rate(energy), state), power)


def test_kinetic_energy_is_half_v_m_v(robot, state) -> None:
    q, v, _ = state
    assert_close(robot.kinetic_energy(q, v), v @ robot.mass_matrix(q) @ v / 2)


def test_gravity_and_springs_are_the_gradient_of_potential_energy(robot, symbols, state) -> None:
    q, v, _ = state
    power = symbols.value(symbols.rate(robot.function("potential_energy")(symbols.q)), state)
    assert_close(power, (robot.gravity_force(q) + robot.spring_force(q)) @ v)


def test_velocities_are_rates_of_poses(robot, symbols, state) -> None:
    q, v, _ = state
    poses = robot.poses(q)
    rates = symbols.value(symbols.rate(robot.function("poses")(symbols.q)), state).reshape(-1, 4, 4)
    twists = robot.velocities(q, v)
    for T, T_rate, (wx, wy, wz, *u) in zip(poses, rates, twists, strict=True):
        skew = np.array([[0, -wz, wy], [wz, 0, -wx], [-wy, wx, 0]])
        assert_close(T[:3, :3].T @ T_rate[:3, :3], skew)
        assert_close(T[:3, :3].T @ T_rate[:3, 3], np.array(u))


def test_accelerations_are_rates_of_velocities(robot, symbols, state) -> None:
    rates = symbols.value(symbols.rate(robot.function("velocities")(symbols.q, symbols.v)), state)
    twists = robot.velocities(*state[:2])
    # In turning axes, the acceleration of a point is the rate of its velocity's components plus omega x v.
    rates[:, 3:] += np.cross(twists[:, :3], twists[:, 3:])
    assert_close(robot.accelerations(*state), rates)


def test_jacobian_and_its_rate_give_velocity_and_acceleration_of_a_frame(robot, state) -> None:
    q, v, a = state
    pose = np.eye(4)
    pose[:3, :3] = torsor.spatial.from_rpy([0.1, -0.7, 0.4])
    pose[:3, 3] = [0.3, 0.2, -0.1]
    for link in (robot.link_names[0], robot.link_names[-1]):
        moved = robot.with_frame("camera", link, pose)
        J, J_rate = moved.jacobian(q, "camera"), moved.task.jacobian_rate(q, v, "camera")
        twist = moved.velocity(q, v, "camera")
        assert_close(J @ v, twist)
        turning = np.r_[np.zeros(3), np.cross(twist[:3], twist[3:])]
        assert_close(J @ a + J_rate @ v + turning, moved.acceleration(q, v, a, "camera"))
        assert_close(moved.pose(q, "camera"), moved.pose(q, link) @ pose)


def test_jacobian_rate_is_the_rate_of_the_jacobian(robot, symbols, state) -> None:
    link = robot.link_names[-1]
    J = robot.function("jacobian", place=link)(symbols.q)
    assert_close(robot.task.jacobian_rate(state[0], state[1], link), symbols.value(symbols.rate(ca.densify(J)), state))


def rotors(robot: torsor.Robot, carrier: str) -> list[tuple[int, np.ndarray]]:
    """The motors on a link: where each one's coordinate lies in v, and its spin momentum for a unit rate of that."""
    carried = []
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        motor = joint.motor
        if motor is not None and motor.carrier == carrier:
            where = robot.motor_coordinates[joint.name] if joint.is_elastic else slices
            carried.append((where.v.start, motor.inertia * motor.ratio * motor.axis))
    return carried


def world(T: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """A wrench at a link's origin in its axes, taken to the origin of the base in base axes."""
    force = T[:3, :3] @ wrench[3:]
    return np.r_[T[:3, :3] @ wrench[:3] + np.cross(T[:3, 3], force), force]


def test_reactions_balance_each_link(robot, state) -> None:
    q, v, a = state
    external = np.random.default_rng(3).normal(size=(len(robot.links), 6))
    wrenches = robot.joint_wrenches(q, v, a, external)
    poses, twists, accelerations = robot.poses(q), robot.velocities(q, v), robot.accelerations(q, v, a)
    for i, link in enumerate(robot.links):
        R, (w, wd), acc = poses[i][:3, :3], (twists[i, :3], accelerations[i, :3]), accelerations[i, 3:]
        at_com = acc + np.cross(wd, link.com) + np.cross(w, np.cross(w, link.com)) - R.T @ robot.gravity
        force = link.mass * at_com
        moment = link.inertia @ wd + np.cross(w, link.inertia @ w) + np.cross(link.com, force)
        for k, h in rotors(robot, link.name):
            moment += h * a[k] + np.cross(w, h) * v[k]
        total = world(poses[i], wrenches[i]) + world(poses[i], external[i])
        for k, parent in enumerate(robot.parents):
            if parent == i:
                total -= world(poses[k], wrenches[k])
        assert_close(total, world(poses[i], np.r_[moment, force]))


def test_the_drive_takes_the_reaction_along_the_joint(robot, state) -> None:
    q, v, a = state
    tau = np.zeros(robot.nv)
    for i, (joint, wrench) in enumerate(zip(robot.joints, robot.joint_wrenches(q, v, a), strict=True)):
        position = (
            joint.ratio * q[robot.coordinates[i].q] + joint.offset if joint.nq == 1 else q[robot.coordinates[i].q]
        )
        S = torsor.spatial.adjoint(joint.frame) @ np.asarray(joint.kind.subspace(position, joint.pitch), dtype=float)
        tau[robot.coordinates[i].v] += joint.ratio * (S.T @ wrench)
        tau[robot.coordinates[i].v] += joint.ratio**2 * joint.rotor_inertia * a[robot.coordinates[i].v]
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.motor is not None:
            where = robot.motor_coordinates[joint.name] if joint.is_elastic else slices
            tau[where.v] += joint.motor.ratio**2 * joint.motor.inertia * a[where.v]
    for link, turning in zip(robot.links, robot.accelerations(q, v, a)[:, :3], strict=True):
        for k, h in rotors(robot, link.name):
            tau[k] += h @ turning
    assert_close(robot.inverse_dynamics(q, v, a), tau + robot.spring_force(q) + robot.friction_force(v))


def test_external_wrenches_act_through_jacobians(robot, state) -> None:
    q, v, a = state
    external = np.random.default_rng(4).normal(size=(len(robot.links), 6))
    load = sum(robot.jacobian(q, i).T @ external[i] for i in range(len(robot.links)))
    assert_close(robot.inverse_dynamics(q, v, a, external), robot.inverse_dynamics(q, v, a) - load)


def test_momentum_changes_by_the_forces_from_outside(robot, symbols, state) -> None:
    q, v, a = state
    rate = symbols.value(symbols.rate(robot.function("momentum")(symbols.q, symbols.v)), state)[:, 0]
    poses, wrenches, com = robot.poses(q), robot.joint_wrenches(q, v, a), robot.center_of_mass(q)
    total = np.r_[np.zeros(3), robot.mass * robot.gravity]  # at the centre of mass
    for i, parent in enumerate(robot.parents):
        if parent < 0:
            outside = world(poses[i], wrenches[i])
            total += np.r_[outside[:3] - np.cross(com, outside[3:]), outside[3:]]
    assert_close(rate, total)


def test_difference_undoes_integrate(robot, state) -> None:
    q, v, _ = state
    assert_close(robot.difference(q, robot.integrate(q, v)), v)
    assert_close(robot.difference(q, robot.integrate(q, 1e-4 * v)), 1e-4 * v)


def test_the_lean_tree_has_the_same_forces(robot, state) -> None:
    q, v, a = state
    names = [
        name for name, algorithm in ALGORITHMS.items() if algorithm.lean and not (algorithm.results or algorithm.closed)
    ]
    assert "inverse_dynamics" in names
    for name in names:
        inputs = [{"q": q, "v": v, "a": a, "tau": a, "weight": v}[each] for each in ALGORITHMS[name].inputs]
        plain, found = ALGORITHMS[name].rule(Tree.of(robot), *map(ca.SX, inputs)), method_of(robot, name)(*inputs)
        assert_close(found, np.asarray(ca.DM(plain).full()).reshape(found.shape))


def test_batches_agree_with_single_states(robot) -> None:
    rng = np.random.default_rng(5)
    q = robot.integrate(robot.neutral(), rng.normal(size=(4, 1, robot.nv)))
    v, a = rng.normal(size=(3, robot.nv)), rng.normal(size=robot.nv)
    external = rng.normal(size=(3, len(robot.links), 6))
    tau, wrenches, M = (
        robot.inverse_dynamics(q, v, a, external),
        robot.joint_wrenches(q, v, a, external),
        robot.mass_matrix(q),
    )
    assert tau.shape == (4, 3, robot.nv)
    assert wrenches.shape == (4, 3, len(robot.links), 6)
    assert M.shape == (4, 1, robot.nv, robot.nv)
    for i in range(4):
        assert_close(M[i, 0], robot.mass_matrix(q[i, 0]))
        for j in range(3):
            assert_close(tau[i, j], robot.inverse_dynamics(q[i, 0], v[j], a, external[j]))
            assert_close(wrenches[i, j], robot.joint_wrenches(q[i, 0], v[j], a, external[j]))
    assert robot.inverse_dynamics(q[:0], v[:1], a).shape == (0, 1, robot.nv)
    assert robot.poses(np.zeros((0, robot.nq))).shape == (0, len(robot.links), 4, 4)


def test_a_quaternion_of_any_length_is_the_same_rotation() -> None:
    robot = torsor.library.random_tree(3, seed=1, types=("free", "spherical"))
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    scaled = q.copy()
    for joint, (where, _) in zip(robot.joints, robot.coordinates, strict=True):
        scaled[where.stop - 4 : where.stop] *= 3.0 if joint.nq > 1 else 1.0
    v = rng.normal(size=robot.nv)
    assert_close(robot.inverse_dynamics(scaled, v, v), robot.inverse_dynamics(q, v, v))


def test_direct_dynamics_undoes_inverse_dynamics(robot, state) -> None:
    q, v, a = state
    external = np.random.default_rng(6).normal(size=(len(robot.links), 6))
    tau = robot.inverse_dynamics(q, v, a, external)
    assert_close(robot.forward_dynamics(q, v, tau, external), a, 1e-10)
    assert_close(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a, 1e-10)


def test_direct_dynamics_solves_with_the_mass_matrix(robot, state) -> None:
    q, v, tau = state
    solved = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias_force(q, v))
    assert_close(robot.forward_dynamics(q, v, tau), solved, 1e-10)


def test_hybrid_dynamics_agrees_with_inverse_dynamics_whatever_drives(robot, state) -> None:
    q, v, a = state
    external = np.random.default_rng(7).normal(size=(len(robot.links), 6))
    tau = robot.inverse_dynamics(q, v, a, external)
    rng = np.random.default_rng(8)
    for share in (0.0, 0.3, 0.7, 1.0):
        forced = [name for name in robot.coordinate_names if rng.random() < share]
        given = np.isin(robot.coordinate_names, forced)
        # What is wanted is given as NaN, so that it cannot be used.
        given_a, given_tau = np.where(given, np.nan, a), np.where(given, tau, np.nan)
        found_a, found_tau = robot.hybrid_dynamics(q, v, given_a, given_tau, forced, external)
        assert_close(found_a, a, 1e-10)
        assert_close(found_tau, tau, 1e-10)


def test_a_joint_stands_for_all_its_coordinates() -> None:
    robot = torsor.library.random_tree(5, seed=3, types=("free", "revolute", "spherical"))
    joint = next(joint for joint in robot.joints if joint.type == "free")
    rng = np.random.default_rng(0)
    q, (v, a, tau) = robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), rng.normal(size=(3, robot.nv))
    by_joint = robot.hybrid_dynamics(q, v, a, tau, forced=[joint.name])
    by_coordinates = robot.hybrid_dynamics(q, v, a, tau, forced=joint.velocity_names)
    assert np.array_equal(by_joint, by_coordinates)
    with refused(value="elbow"):
        robot.hybrid_dynamics(q, v, a, tau, forced=["elbow"])


def test_hybrid_dynamics_takes_no_more_operations_than_direct_dynamics() -> None:
    branched = torsor.library.random_tree(12, 2, types=("revolute",), extras=False)
    for robot in (torsor.library.seven_axis_arm(), branched):
        direct = robot.operation_count("forward_dynamics").arithmetic
        names = robot.coordinate_names
        for forced in (names[:1], names[::2], names[-2:], names[1:]):
            assert robot.operation_count("hybrid_dynamics", forced=forced).arithmetic <= direct


def test_a_coordinate_may_be_a_multiple_of_its_joints_angle() -> None:
    links = [torsor.Link("base"), *(torsor.Link(f"link{k}", 1.0, (0.3, 0.1, 0), 0.1 * np.eye(3)) for k in range(3))]
    joints = [
        torsor.Joint(
            f"joint{k}",
            "revolute",
            links[k].name,
            links[k + 1].name,
            torsor.spatial.make_pose(p=[0.5, 0, 0]),
            (0, k, 1),
            ratio=(-2.0, 0.5, 3.0)[k],
            offset=0.2 * k,
            rotor_inertia=0.3,
            viscous=0.1,
        )
        for k in range(3)
    ]
    robot = torsor.build("geared", links, joints)
    q, v, a = np.random.default_rng(2).normal(size=(3, 3))
    tau = robot.inverse_dynamics(q, v, a)
    assert_close(tau, robot.mass_matrix(q) @ a + robot.bias_force(q, v))
    assert_close(robot.forward_dynamics(q, v, tau), a)
    found_a, found_tau = robot.hybrid_dynamics(q, v, a, tau, forced=["joint1"])
    assert_close(found_a, a)
    assert_close(found_tau, tau)
