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
    tau = robot.closed.inverse_dynamics(q, x, x_rate, external)
    whole = np.zeros(robot.nv)
    whole[indices(robot)] = tau
    close(robot.closed.forward_dynamics(q, v, whole, external, coordinates="all"), a)
    close(robot.closed.forward_dynamics(q, x, tau, external, method="multipliers"), a[indices(robot)])
    close(
        robot.closed.loop_forces(q, v, whole, external, coordinates="all"),
        robot.closed.loop_forces(q, x, x_rate, external),
    )


@pytest.mark.parametrize("case", CASES)
def test_closed_velocities_are_the_nearest_in_kinetic_energy(case: str) -> None:
    robot, q = mechanism(case)
    v = np.random.default_rng(3).normal(size=robot.nv)
    found, A, M = (
        robot.closed.velocities(q, v, coordinates="all"),
        robot.closed.jacobian(q),
        robot.mass_matrix(q, loops="open"),
    )
    close(A @ found, np.zeros(len(A)))
    _, G = robot.closed.derivatives.velocities(q, np.zeros(len(robot.active)))
    close(G.T @ M @ (v - found), np.zeros(G.shape[1]), 1e-10 * np.abs(M).max())  # M-orthogonal
    close(robot.closed.velocities(q, found, coordinates="all"), found)


def test_a_dead_point_is_no_obstacle_to_the_equations_with_multipliers() -> None:
    robot = slider_crank(0.3, 0.8).with_active(["slide"]).with_spring("big_end", 2.0, rest=0.3)
    dead = np.array([0.0, 0.0, 1.1])  # stretched: the piston cannot turn the crank
    assert robot.closed.mobility(dead).is_singular
    v, tau = robot.closed.velocities(dead, np.array([2.0, 0.0, 0.0]), coordinates="all"), np.array([0.0, 0.0, 5.0])
    assert abs(v[0]) > 0.1 and abs(v[2]) < 1e-12
    close(robot.closed.forward_dynamics(dead, v, tau, coordinates="all"), Lagrangian(robot, dead).accelerations(v, tau))
    assert np.isfinite(robot.closed.loop_forces(dead, v, tau, coordinates="all")).all()
    with refused(what="singular at"):
        robot.closed.forward_dynamics(dead, [0.0], tau[2:])


def test_a_mechanism_that_nobody_drives_falls() -> None:
    robot, q = four_bar().with_active([]), four_bar().closed.assemble([0.7], guess=[0.5, 1.0, 1.5])
    v = robot.closed.velocities(q, np.array([1.0, 0.0, 0.0]), coordinates="all")
    methods = robot.closed.forward_dynamics, robot.closed.loop_forces
    a, forces = (f(q, v, np.zeros(3), coordinates="all") for f in methods)
    close(a, Lagrangian(robot, q).accelerations(v, np.zeros(3)))
    close(robot.inverse_dynamics(q, v, a, loops="open"), robot.closed.jacobian(q).T @ forces)


def test_an_unknown_method_is_refused() -> None:
    robot, q = mechanism("loaded")
    with refused(argument="method", allowed="'projection', 'multipliers'"):
        robot.closed.forward_dynamics(q, [0.0], [0.0], method="kkt")


def test_batches_broadcast() -> None:
    robot = four_bar()
    q = robot.closed.assemble(np.linspace(0.3, 2.0, 4)[:, None], guess=[0.5, 1.0, 1.5])
    v = robot.closed.velocities(q, np.ones(1))
    tau = np.eye(3)[0]
    a = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    assert a.shape == (4, 3) and robot.closed.loop_forces(q, v, tau, coordinates="all").shape == (4, 5)
    np.testing.assert_allclose(a[2], robot.closed.forward_dynamics(q[2], v[2], tau, coordinates="all"), rtol=1e-12)
    np.testing.assert_allclose(a[:, indices(robot)], robot.closed.forward_dynamics(q, [1.0], [1.0]), rtol=1e-10)


def test_a_structure_that_cannot_move_bears_its_weight() -> None:
    robot = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
    robot = robot.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
    robot = robot.with_frame("foot", "base", torsor.spatial.make_pose(p=[1.2, 0, 0]))
    robot = robot.with_loop("pin", "foot", "tip").with_active(["joint1"])
    angle = np.arccos(0.6)
    q = np.array([angle, -2 * angle])  # two rods, leaning on each other
    assert robot.closed.mobility(q).dof == 0
    force = robot.closed.loop_wrenches(q, [0.0], [0.0])[0, 3:]
    close(force, 3 * 9.81 * np.array([-0.5 * 0.6 / 0.8, 1.0, 0.0]))  # each foot bears one rod, and the thrust
    for found in (
        robot.closed.inverse_dynamics(q, [0.0], [0.0]),
        robot.closed.forward_dynamics(q, [0.0], [1.0]),
        *robot.closed.derivatives.inverse_dynamics(q, [0.0], [0.0]),
    ):
        assert not found.any()
    close(robot.closed.forward_dynamics(q, np.zeros(2), [1.0, 0.0], coordinates="all"), np.zeros(2))
