"""Accelerations and loop forces by multipliers solve the full system of equations, for every kind of loop."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import library
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.accessors import method_of

from .mechanisms import EQUATIONS, KINDS, closed_chain, slider_crank


def loaded(robot: torsor.Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A velocity that opens nothing, forces on all coordinates, and wrenches on all links."""
    rng = np.random.default_rng(8)
    motions = np.linalg.svd(robot.closed.jacobian(q))[2][robot.nv - robot.closed.mobility(q).dof :]
    v = motions.T @ rng.normal(size=len(motions))
    return v, rng.normal(size=robot.nv), rng.normal(size=(len(robot.links), 6))


@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_and_loop_forces_are_those_of_the_system_with_multipliers(kind: str) -> None:
    robot, q = closed_chain(kind, EQUATIONS[kind] + 1)
    robot = robot.to(device="casadi")  # one state is not worth compiling for
    v, tau, external = loaded(robot, q)
    A, M, n = robot.closed.jacobian(q), robot.mass_matrix(q, loops="open"), robot.nv
    _, A_rate = robot.derivatives.jvp("closure_jacobian", (q,), (v,))
    h = robot.inverse_dynamics(q, v, np.zeros(n), external, loops="open")
    system = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.solve(system, np.r_[tau - h, -A_rate @ v])
    a, forces = (
        method_of(robot, f"closed_{name}")(q, v, tau, external) for name in ("forward_dynamics", "loop_forces")
    )
    np.testing.assert_allclose(a, expected[:n], atol=1e-10 * np.abs(a).max())
    np.testing.assert_allclose(forces, expected[n:], atol=1e-10 * np.abs(forces).max())
    # As wrenches on the links, the loops move the tree in the same way.
    wrenches = robot.closed.loop_loads(q, forces)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, v, tau, external + wrenches, loops="open"), a, atol=1e-10 * np.abs(a).max()
    )


def test_both_sides_of_a_loop_feel_the_same_wrench() -> None:
    robot = library.five_bar().to(device="casadi")
    q = robot.closed.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.3])
    forces = np.random.default_rng(1).normal(size=5)
    wrenches = robot.closed.loop_loads(q, forces)
    assert not wrenches[[0, 2]].any() and wrenches[[1, 3]].all()
    poses = robot.poses(q)
    f = [poses[k, :3, :3] @ wrenches[k, 3:] for k in (1, 3)]
    n = [
        poses[k, :3, :3] @ wrenches[k, :3] + np.cross(poses[k, :3, 3], each) for k, each in zip((1, 3), f, strict=True)
    ]
    np.testing.assert_allclose(f[0], -f[1], atol=1e-14)
    np.testing.assert_allclose(n[0], -n[1], atol=1e-14)  # about the same point


def test_projection_onto_the_active_coordinates_agrees() -> None:
    robot = library.palletiser().to(device="casadi")
    q = robot.closed.assemble([[0.1, 0.3, 0.2, 0.4], [1.0, -0.2, 0.1, 0.0]], guess=robot.neutral())
    rng = np.random.default_rng(3)
    x, force = rng.normal(size=(2, 2, 4))
    v = robot.closed.velocities(q, x)
    tau = np.zeros((2, robot.nv))
    places = [robot.coordinate_names.index(name) for name in robot.active]
    tau[:, places] = force
    a = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    np.testing.assert_allclose(a[:, places], robot.closed.forward_dynamics(q, x, force), rtol=1e-9)
    np.testing.assert_allclose(robot.closed.accelerations(q, x, a[:, places])[1], a, atol=1e-10)
    # No drive is named, and none is needed.
    np.testing.assert_allclose(
        robot.with_active([]).closed.forward_dynamics(q, v, tau, coordinates="all"), a, rtol=1e-10
    )


def test_dead_points_are_nothing_special() -> None:
    robot = slider_crank(0.3, 0.8).with_active(["slide"])
    q, v = np.array([0.0, 0.0, 1.1]), np.array([2.0, -2.0 * 1.1 / 0.8, 0.0])  # stretched
    a = robot.closed.forward_dynamics(q, v, np.zeros(3), coordinates="all")
    np.testing.assert_allclose(
        a, slider_crank(0.3, 0.8).closed.forward_dynamics(q, v, np.zeros(3), coordinates="all"), rtol=1e-10
    )
    assert np.isfinite(a).all()


def test_equations_are_those_that_are_independent_at_each_state() -> None:
    def pair() -> torsor.Robot:
        robot = library.four_bar(1.0, 0.4, 1.0, 0.4).to(device="casadi")
        return robot.with_coupling("gear", {"crank_joint": 1.0, "rocker_joint": -1.0})

    good, poor = pair(), pair()
    # Equations that are dependent where all bars are in line.
    choice = ClosureChoice((0, 1), scales=tuple(poor.closed.closure._equation_scales[:2]))
    poor.closed.closure.__dict__["independent_equations"] = choice
    angle = np.array([1.0, 0.5, 1e-4, 0.0])[:, None]
    q = angle * [1, -1, 1]
    v, tau = np.array([1.0, -1.0, 1.0]), np.array([0.3, 0.0, 0.1])
    a = good.closed.forward_dynamics(q, v, tau, coordinates="all")
    np.testing.assert_allclose(poor.closed.forward_dynamics(q, v, tau, coordinates="all"), a, rtol=1e-9)
    flat = library.four_bar(1.0, 0.4, 1.0, 0.4)
    with refused(what="the closure equations lose rank"):
        flat.closed.forward_dynamics(q, v, tau, coordinates="all")


def test_without_loops_it_is_forward_dynamics() -> None:
    robot = library.random_tree(5, 2).to(device="casadi")
    q, v, tau = robot.neutral(), *np.random.default_rng(4).normal(size=(2, robot.nv))
    np.testing.assert_allclose(
        robot.closed.forward_dynamics(q, v, tau, coordinates="all"),
        robot.forward_dynamics(q, v, tau, loops="open"),
        rtol=1e-9,
    )


def test_open_loops_are_refused() -> None:
    with refused(what="closure error"):
        slider_crank().closed.forward_dynamics([0.1, 0.2, 0.3], np.zeros(3), np.zeros(3), coordinates="all")


@pytest.mark.parametrize(("name", "most"), [("palletiser", 645), ("closed_leg", 1660)])
def test_projected_velocities_do_not_form_the_inverse_of_the_mass_matrix(name: str, most: int) -> None:
    robot = getattr(torsor.library, name)().to(device="casadi")
    assert robot.operation_count("closed_velocities").arithmetic <= most


def test_a_method_and_its_margin_are_one_function() -> None:
    robot = torsor.library.four_bar()
    q = robot.closed.assemble([0.5])
    robot.closed.velocities(q, np.ones(3), coordinates="all")
    names = {request.name for request in robot.kernels._requests.values()}
    assert "closed_velocities_with_margin" in names and not names & {"closed_velocities", "closure_margin"}
