"""The implicit midpoint rule: its order, its conserved quantities, and its stability for any stiffness."""

from dataclasses import replace
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.simulation.dynamics import forces
from torsor.simulation.inputs import Source
from torsor.simulation.methods import implicit_midpoint


def slopes(errors: list[float]) -> list[float]:
    return [float(np.log2(coarse / fine)) for coarse, fine in pairwise(errors)]


def without_rotors(robot: torsor.Robot) -> torsor.Robot:
    joints = (replace(joint, rotor_inertia=0.0) if joint.type == "free" else joint for joint in robot.joints)
    return replace(robot, joints=tuple(joints)).without_friction()


@pytest.mark.parametrize(
    "robot",
    [
        torsor.library.planar_chain(3),
        without_rotors(torsor.library.random_tree(4, seed=1, types=("free", "revolute", "spherical", "planar"))),
        torsor.library.elastic_arm(),
    ],
    ids=["chain", "every type of joint", "elastic"],
)
def test_the_order_is_two(robot: torsor.Robot) -> None:
    rng = np.random.default_rng(0)
    start = {"q0": robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv)), "v0": rng.normal(size=robot.nv)}
    exact = torsor.simulate(robot, **start, duration=0.2, step=1e-4)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        found = torsor.simulate(robot, **start, duration=0.2, step=h, method="implicit")
        errors.append(
            np.abs(robot.difference(found.q[-1], exact.q[-1])).max() + np.abs(found.v[-1] - exact.v[-1]).max()
        )
    np.testing.assert_allclose(slopes(errors), 2.0, atol=0.05)


def test_the_order_is_two_with_time_dependent_forces() -> None:
    robot = torsor.library.planar_chain(2).with_friction("joint1", viscous=0.3, coulomb=0.2, smooth=0.5)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    push = ca.Function("push", [t, q, v], [ca.sin(5 * t) * ca.vertcat(3, 1) - 0.5 * v])
    wind = ca.Function("wind", [t, q, v], [ca.vertcat(ca.SX.zeros(1, 6), ca.horzcat(0, 0, ca.cos(t), 1, t, 0))])
    settings = {"controller": push, "external": wind, "duration": 0.4}
    exact = torsor.simulate(robot, step=1e-4, **settings).q[-1]
    found = [torsor.simulate(robot, step=h, method="implicit", **settings).q[-1] for h in (8e-3, 4e-3, 2e-3)]
    np.testing.assert_allclose(slopes([np.abs(each - exact).max() for each in found]), 2.0, atol=0.05)


def test_the_step_is_symplectic() -> None:
    """The map (q, p) -> (q, p) has a Jacobian J with J^T W J = W, W the canonical form."""
    robot = torsor.library.elastic_arm()
    n, h = robot.nv, 5e-3
    step = implicit_midpoint(robot, forces(robot, Source(), Source(), False))
    q, p = ca.SX.sym("q", n), ca.SX.sym("p", n)
    M = ca.densify(robot.function("mass_matrix")(q))
    q_next, v_next = step(0, q, ca.solve(M, p), h)
    p_next = robot.function("mass_matrix")(q_next) @ v_next
    jacobian = ca.Function("J", [q, p], [ca.jacobian(ca.vertcat(q_next, p_next), ca.vertcat(q, p))])
    rng = np.random.default_rng(3)
    J = np.asarray(jacobian(rng.normal(size=n), rng.normal(size=n)).full())
    W = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    np.testing.assert_allclose(J.T @ W @ J, W, atol=1e-9 * np.abs(J).max() ** 2)


def test_a_free_flying_arm_conserves_momentum() -> None:
    robot = torsor.library.free_flying_arm()
    motion = torsor.simulate(
        robot, v0=0.5 * np.random.default_rng(0).normal(size=robot.nv), duration=2.0, method="implicit"
    )
    momentum, com = robot.momentum(motion.q, motion.v), robot.center_of_mass(motion.q)
    momentum[:, :3] += np.cross(com, momentum[:, 3:])  # about the origin of the base
    assert np.abs(momentum - momentum[0]).max() < 1e-12 * np.abs(momentum[0]).max()
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, 3:7], axis=1), 1.0, atol=1e-14)


def test_energy_does_not_drift_over_many_steps() -> None:
    """It swings with the step squared and stays there: after 1e5 steps no further off than after the first."""
    robot = torsor.library.elastic_arm()
    q0 = np.array([0.2, 0.3, -0.4, -0.35])
    spread = {}
    for h in (2e-3, 1e-3):
        energy = torsor.simulate(robot, q0, duration=1e5 * h, step=h, method="implicit", record=10 * h).energy
        early, late = np.ptp(energy[:1000]), np.ptp(energy[-1000:])
        assert late < 2 * early
        assert abs(energy[-1000:].mean() - energy[:1000].mean()) < early
        spread[h] = np.ptp(energy)
    assert 3 < spread[2e-3] / spread[1e-3] < 5


def test_long_steps_are_stable_with_stiff_joints() -> None:
    """Springs of 1e5 N m/rad swing far faster than steps of 1 ms see; the slow motion is right all the same."""
    robot = torsor.library.elastic_seven_axis_arm(1e5)
    q0 = np.full(14, 0.5)
    q0[1] += 0.01  # the spring is wound up
    coarse = torsor.simulate(robot, q0, duration=0.5, step=1e-3, method="implicit")
    exact = torsor.simulate(robot, q0, duration=0.5, step=1e-3, method="adaptive")
    assert np.abs(coarse.q[-1] - exact.q[-1]).max() < 0.01
    with refused(fix='method="implicit"', error=torsor.SimulationError):
        torsor.simulate(robot, q0, duration=0.5, step=1e-3)


def test_batches_agree_with_single_rollouts() -> None:
    robot = torsor.library.elastic_arm()
    v0 = np.random.default_rng(0).normal(size=(5, 4))
    many = torsor.simulate(robot, v0=v0, duration=0.05, method="implicit")
    one = torsor.simulate(robot, v0=v0[3], duration=0.05, method="implicit")
    assert np.array_equal(many.q[3], one.q)


def test_rotor_inertias_on_free_joints_raise_an_error() -> None:
    robot = torsor.library.random_tree(1, types=("free",))
    with refused(value="joint1", fix="remove it"):
        torsor.simulate(robot, method="implicit")


@pytest.mark.parametrize(("coulomb", "smooth"), [(50.0, 1e-3), (5.0, 1e-3), (50.0, 1e-2), (1.0, 1e-4)])
def test_steep_friction_stops_a_link_where_it_should(coulomb: float, smooth: float) -> None:
    """Friction of F on an inertia of 1/3 brakes from 1 rad/s within 1 / (6 F) rad."""
    robot = torsor.library.planar_chain(1, gravity=(0, 0, 0)).with_friction("joint1", coulomb=coulomb, smooth=smooth)
    motion = torsor.simulate(robot, v0=[1.0], duration=0.5, method="implicit")
    assert motion.q[-1, 0] == pytest.approx(1 / (6 * coulomb), abs=3e-5)
    assert abs(motion.v[-1, 0]) < 1e-6


@pytest.mark.parametrize("kind", ["stiff", "damped", pytest.param("mixed", marks=pytest.mark.slow)])
def test_stiff_controllers_in_casadi_are_stable(kind: str) -> None:
    chain = torsor.library.planar_chain(1, gravity=(0, 0, 0))
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    if kind == "stiff":  # the same as the spring of the robot itself
        law = ca.Function("stiff", [t, q, v], [-1e6 * q])
        found = torsor.simulate(chain, [0.1], duration=0.1, controller=law, method="implicit").q
        expected = torsor.simulate(chain.with_spring("joint1", 1e6), [0.1], duration=0.1, method="implicit").q
        np.testing.assert_allclose(found, expected, atol=1e-9)
    elif kind == "damped":
        law = ca.Function("damped", [t, q, v], [-1e4 * v])
        assert abs(torsor.simulate(chain, v0=[1.0], duration=0.1, controller=law, method="implicit").v[-1, 0]) < 0.2
    else:
        arm = torsor.library.elastic_arm()
        law = torsor.control.mixed(arm, lambda t: 3 * [0.5 * ca.sin(t)], 30.0, 8.0, 20.0, 40.0)
        exact = torsor.simulate(arm, duration=0.5, controller=law, step=2e-4).q[-1]
        found = torsor.simulate(arm, duration=0.5, controller=law, step=2e-3, method="implicit").q[-1]
        np.testing.assert_allclose(found, exact, atol=1e-5)


def test_a_step_that_does_not_converge_raises_an_error() -> None:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    switching = ca.Function("switching", [t, q, v], [-100 * ca.sign(v)])
    with refused(what="the equations of the step to t =", error=torsor.SimulationError):
        torsor.simulate(torsor.library.planar_chain(1), q0=[0.1], controller=switching, method="implicit")


def test_discontinuous_friction_raises_an_error() -> None:
    with refused(argument="method", fix="make it smooth"):
        torsor.simulate(torsor.library.six_axis_arm(), method="implicit")


@pytest.mark.slow
def test_an_arm_with_steep_friction_in_all_joints_falls_as_with_short_steps() -> None:
    robot = torsor.library.six_axis_arm()
    for name in robot.joint_names:
        robot = robot.with_friction(name, smooth=1e-2)
    found = torsor.simulate(robot, duration=0.1, method="implicit").q[-1]
    np.testing.assert_allclose(found, torsor.simulate(robot, duration=0.1, step=2e-5).q[-1], atol=2e-5)


def test_springs_with_piecewise_linear_force() -> None:
    robot = torsor.library.planar_chain(1, gravity=(0, 0, 0))
    gap = robot.with_spring("joint1", "1000 * fmax(0, 1 - 0.1 / fmax(abs(x), 1e-9))")
    found = torsor.simulate(gap, q0=[0.2], duration=1.0, step=1e-4, method="implicit").q[-1]
    np.testing.assert_allclose(found, torsor.simulate(gap, q0=[0.2], duration=1.0, step=1e-4).q[-1], atol=1e-4)
    slope = (gap.potential_energy([0.300001]) - gap.potential_energy([0.299999])) / 2e-6
    assert slope == pytest.approx(gap.spring_force([0.3])[0], rel=1e-3)


def test_a_friction_model_that_jumps_at_rest_raises_an_error_and_a_smooth_one_is_integrated() -> None:
    robot = torsor.library.planar_chain(1).with_friction("joint1", friction_model="0.5 * sign(v) * exp(-(v / 0.5)**2)")
    with refused(argument="method", fix="smooth"):
        torsor.simulate(robot, [1.0], duration=0.1, method="implicit")
    smooth = robot.with_friction("joint1", smooth=0.05)
    exact = torsor.simulate(smooth, [1.0], duration=1.0, method="rk4", step=1e-4).q[-1]
    for method in ("implicit", "sdirk"):
        end = torsor.simulate(smooth, [1.0], duration=1.0, method=method, step=1e-3).q[-1]
        np.testing.assert_allclose(end, exact, rtol=0, atol=1e-5)
