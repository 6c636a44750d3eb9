"""Closed loops in all coordinates, by Lagrange multipliers, also at singularities of the drives."""

import numpy as np
import pytest

import torsor
from refusals import refused

from .lagrange import Lagrangian
from .loaded import CASES, close, indices, mechanism, state
from .mechanisms import four_bar, slider_crank


@pytest.mark.parametrize("case", CASES)
def test_what_holds_the_loops_is_the_same_from_motion_and_from_forces(case: str) -> None:
    robot, q = mechanism(case)
    v, a, x, x_rate, external = state(robot, q)
    tau = robot.constrained_inverse_dynamics(q, x, x_rate, external)
    whole = np.zeros(robot.nv)
    whole[indices(robot)] = tau
    close(robot.closed_forward_dynamics(q, v, whole, external), a)
    close(robot.constrained_forward_dynamics(q, x, tau, external, method="multipliers"), a[indices(robot)])
    close(robot.closed_loop_forces(q, v, whole, external), robot.loop_forces(q, x, x_rate, external))


@pytest.mark.parametrize("case", CASES)
def test_closed_velocities_are_the_nearest_in_kinetic_energy(case: str) -> None:
    robot, q = mechanism(case)
    v = np.random.default_rng(3).normal(size=robot.nv)
    found, A, M = robot.closed_velocities(q, v), robot.closure_jacobian(q), robot.mass_matrix(q, loops="open")
    close(A @ found, np.zeros(len(A)))
    _, G = robot.constrained_velocity_derivatives(q, np.zeros(len(robot.active)))
    close(G.T @ M @ (v - found), np.zeros(G.shape[1]), 1e-10 * np.abs(M).max())  # M-orthogonal
    close(robot.closed_velocities(q, found), found)


def test_a_dead_point_is_no_obstacle_to_the_equations_with_multipliers() -> None:
    robot = slider_crank(0.3, 0.8).with_active(["slide"]).with_spring("big_end", 2.0, rest=0.3)
    dead = np.array([0.0, 0.0, 1.1])  # stretched: the piston cannot turn the crank
    assert robot.mobility(dead).is_singular
    v, tau = robot.closed_velocities(dead, np.array([2.0, 0.0, 0.0])), np.array([0.0, 0.0, 5.0])
    assert abs(v[0]) > 0.1 and abs(v[2]) < 1e-12
    close(robot.closed_forward_dynamics(dead, v, tau), Lagrangian(robot, dead).accelerations(v, tau))
    assert np.isfinite(robot.closed_loop_forces(dead, v, tau)).all()
    with refused(what="singular at"):
        robot.constrained_forward_dynamics(dead, [0.0], tau[2:])


def test_a_mechanism_that_nobody_drives_falls() -> None:
    robot, q = four_bar().with_active([]), four_bar().assemble([0.7], guess=[0.5, 1.0, 1.5])
    v = robot.closed_velocities(q, np.array([1.0, 0.0, 0.0]))
    a, forces = (f(q, v, np.zeros(3)) for f in (robot.closed_forward_dynamics, robot.closed_loop_forces))
    close(a, Lagrangian(robot, q).accelerations(v, np.zeros(3)))
    close(robot.inverse_dynamics(q, v, a, loops="open"), robot.closure_jacobian(q).T @ forces)


def test_an_unknown_method_is_refused() -> None:
    robot, q = mechanism("loaded")
    with refused(argument="method", allowed="'projection', 'multipliers'"):
        robot.constrained_forward_dynamics(q, [0.0], [0.0], method="kkt")


def test_batches_broadcast() -> None:
    robot = four_bar()
    q = robot.assemble(np.linspace(0.3, 2.0, 4)[:, None], guess=[0.5, 1.0, 1.5])
    v = robot.constrained_velocities(q, np.ones(1))
    tau = np.eye(3)[0]
    a = robot.closed_forward_dynamics(q, v, tau)
    assert a.shape == (4, 3) and robot.closed_loop_forces(q, v, tau).shape == (4, 5)
    np.testing.assert_allclose(a[2], robot.closed_forward_dynamics(q[2], v[2], tau), rtol=1e-12)
    np.testing.assert_allclose(a[:, indices(robot)], robot.constrained_forward_dynamics(q, [1.0], [1.0]), rtol=1e-10)


def test_a_structure_that_cannot_move_bears_its_weight() -> None:
    robot = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
    robot = robot.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
    robot = robot.with_frame("foot", "base", torsor.spatial.make_pose(p=[1.2, 0, 0]))
    robot = robot.with_loop("pin", "foot", "tip").with_active(["joint1"])
    angle = np.arccos(0.6)
    q = np.array([angle, -2 * angle])  # two rods, leaning on each other
    assert robot.mobility(q).dof == 0
    force = robot.loop_wrenches(q, [0.0], [0.0])[0, 3:]
    close(force, 3 * 9.81 * np.array([-0.5 * 0.6 / 0.8, 1.0, 0.0]))  # each foot bears one rod, and the thrust
    for found in (
        robot.constrained_inverse_dynamics(q, [0.0], [0.0]),
        robot.constrained_forward_dynamics(q, [0.0], [1.0]),
        *robot.constrained_inverse_dynamics_derivatives(q, [0.0], [0.0]),
    ):
        assert not found.any()
    close(robot.closed_forward_dynamics(q, np.zeros(2), [1.0, 0.0]), np.zeros(2))
