"""Energy and power are linear in the parameters; Khalil's rules find the parameters without effect on forces."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import Tree, regroupings


def tree(seed: int, **settings) -> torsor.Robot:
    """A random tree of every joint type, without the springs and motors that are not among the parameters."""
    robot = torsor.library.random_tree(8, seed, **settings)
    for joint in robot.joints:
        robot = robot.without_motor(joint.name)
        if joint.nv == 1:
            robot = robot.with_spring(joint.name, 0.0)
    return robot


def motion(robot: torsor.Robot, count: int = 5, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=(count, robot.nv)))
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


@pytest.mark.parametrize("seed", range(3))
def test_energy_is_its_regressor_times_the_parameters(seed: int) -> None:
    robot = tree(seed)
    q, v, _ = motion(robot)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    h = robot.inertial.energy_regressor(q, v)
    assert h.shape == (5, len(robot.inertial.names))
    np.testing.assert_allclose(h @ robot.inertial.values, energy, rtol=0, atol=1e-10 * np.abs(energy).max())
    friction = [k for k, name in enumerate(robot.inertial.names) if name.endswith(("coulomb", "viscous"))]
    assert not h[:, friction].any()


@pytest.mark.parametrize("seed", range(3))
def test_power_is_the_rate_of_each_parameters_energy_plus_friction(seed: int) -> None:
    robot = tree(seed)
    q, v, a = motion(robot, 1)
    Q, V, A = (ca.SX.sym(name, size) for name, size in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv)))
    h = robot.function("energy_regressor")
    along = ca.SX.sym("s")
    moved = robot.function("integrate")(Q, along * V)
    rate = ca.substitute(ca.jacobian(h(moved, V + along * A), along), along, 0)
    energy_rate = np.array(ca.Function("rate", [Q, V, A], [rate])(q[0], v[0], a[0])).ravel()
    power = robot.inertial.power_regressor(q, v, a)[0]
    conserved = np.array([not name.endswith(("coulomb", "viscous")) for name in robot.inertial.names])
    np.testing.assert_allclose(power[conserved], energy_rate[conserved], rtol=0, atol=1e-10 * np.abs(power).max())
    lost = power[~conserved] @ robot.inertial.values[~conserved]
    np.testing.assert_allclose(lost, robot.friction_force(v)[0] @ v[0], rtol=1e-10)


ROBOTS = {
    "two_link": torsor.library.two_link,
    "slide_link": torsor.library.slide_link,
    "stanford": torsor.library.stanford,
    "puma": torsor.library.six_axis_arm,
    "scara": torsor.library.scara,
    "planar chain": lambda: torsor.library.planar_chain(3),
    "upright planar chain": lambda: torsor.library.planar_chain(3, gravity=(0, 0, -9.81)),
    "every type of joint": lambda: torsor.library.random_tree(7, 9),
    "slides and turns": lambda: torsor.library.random_tree(5, 3, types=("prismatic", "revolute"), extras=False),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_rules_and_numerical_rank_agree_on_unidentifiable_parameters(name: str) -> None:
    robot = ROBOTS[name]()
    rules, p = regroupings(Tree.of(robot)), len(robot.inertial.names)
    Y = robot.inertial.regressor(*motion(robot, 200)).reshape(-1, p)
    np.testing.assert_allclose(Y @ rules.T, 0.0, rtol=0, atol=1e-12 * np.abs(Y).max())
    base = robot.inertial.base()
    assert base.by_rule
    assert np.linalg.matrix_rank(rules, tol=1e-8) == p - len(base) == p - np.linalg.matrix_rank(Y, tol=1e-9)
    np.testing.assert_allclose(base.matrix @ rules.T, 0.0, rtol=0, atol=1e-12 * np.abs(base.matrix).max())


def test_numerical_rank_finds_dependencies_without_a_rule() -> None:
    """A wheel that turns back as much as its arm turns on does not turn at all."""
    link = torsor.Link("arm", 1.0, np.array([0.5, 0, 0]), 0.1 * np.eye(3))
    hinges = [
        torsor.Joint("shoulder", "revolute", "base", "arm"),
        torsor.Joint("wheel", "revolute", "arm", "hand", coordinate="shoulder", ratio=-1.0),
    ]
    hand = torsor.Link("hand", 1.0, np.array([0.1, 0, 0]), 0.1 * np.eye(3))
    robot = torsor.build("counter", [torsor.Link("base"), link, hand], hinges)
    base = robot.inertial.base()
    assert not base.by_rule
    assert not any(name.startswith("hand.J") for name in base.names)


def test_among_some_parameters_the_others_are_known() -> None:
    robot = torsor.library.six_axis_arm()
    base = robot.inertial.base(among=["link6.*", "joint6.viscous"])
    assert base.by_rule
    assert len(base) == 11  # with the rest of the arm known, a load shows all of its ten
    known = [k for k, name in enumerate(robot.inertial.names) if not name.startswith(("link6.", "joint6.viscous"))]
    assert not base.matrix[:, known].any()
    with refused(value="link7.*"):
        robot.inertial.base(among=["link7.*"])


@pytest.mark.parametrize("seed", range(2))
def test_a_robot_with_its_own_parameters_is_the_same(seed: int) -> None:
    robot = torsor.library.random_tree(8, seed)
    same = robot.inertial.replaced(robot.inertial.values)
    np.testing.assert_allclose(same.inertial.values, robot.inertial.values, rtol=0, atol=1e-14)
    tau = robot.inverse_dynamics(*motion(robot))
    np.testing.assert_allclose(same.inverse_dynamics(*motion(robot)), tau, rtol=0, atol=1e-12 * np.abs(tau).max())


def test_parameters_that_no_body_has_are_refused() -> None:
    robot = torsor.library.two_link()
    good = robot.inertial.values
    for change, message in (
        ({0: -1.0}, "m is -1 kg"),
        ({0: 0.0}, "m is 0 kg and m c is"),
        ({9: 10.0}, "no body has the principal moments"),
        ({22: -0.1}, "viscous"),
        ({3: np.nan}, "parameters"),
    ):
        bad = good.copy()
        for k, value in change.items():
            bad[k] = value
        with refused(message):
            robot.inertial.replaced(bad)
    with refused(argument="parameters"):
        robot.inertial.replaced([1.0, 2.0, 3.0])
