"""Forces are linear in the parameters, and base parameters are the smallest set that determines all forces."""

import numpy as np
import pytest

import torsor
from torsor.mechanism import Link, build


def plain(robot: torsor.Robot) -> torsor.Robot:
    """The robot without springs and motors, which are not among the parameters."""
    for joint in robot.joints:
        robot = robot.without_motor(joint.name)
        if joint.nv == 1:
            robot = robot.with_spring(joint.name, 0.0)
    return robot


def motion(robot: torsor.Robot, count: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=(count, robot.nv)))
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_forces_are_the_regressor_times_the_parameters(seed: int) -> None:
    robot = plain(torsor.library.random_tree(8, seed)).to(device="casadi")
    state = motion(robot, 3)
    tau = robot.inverse_dynamics(*state)
    Y, pi = robot.inertial.regressor(*state), robot.inertial.values
    assert Y.shape == (3, robot.nv, len(pi))
    assert len(pi) == len(robot.inertial.names) == len(set(robot.inertial.names))
    np.testing.assert_allclose(Y @ pi, tau, rtol=0, atol=1e-11 * np.abs(tau).max())


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_base_parameters_give_the_forces_of_unseen_motions(seed: int) -> None:
    robot = plain(torsor.library.random_tree(6, seed))
    base, state = robot.inertial.base(), motion(robot, 20)
    Y, tau = robot.inertial.regressor(*state), robot.inverse_dynamics(*state)
    np.testing.assert_allclose(Y[..., base.columns] @ base.values, tau, rtol=0, atol=1e-8 * np.abs(tau).max())
    np.testing.assert_allclose(base.values, base.matrix @ robot.inertial.values, rtol=1e-12)
    long = robot.inertial.regressor(*motion(robot, 400)).reshape(-1, len(robot.inertial.names))
    assert len(base) == np.linalg.matrix_rank(long, tol=1e-8 * np.linalg.norm(long))


def test_planar_chains_have_the_base_parameters_of_the_textbooks() -> None:
    """Each rod has m x, m y and J about its hinge; the mass of the next rod is at its end (here 1 m away)."""
    base = torsor.library.planar_chain(2, gravity=(0, 0, 0)).without_friction().inertial.base()
    names = [name for name in base.names if name.startswith("link")]
    assert len(names) == 4  # without gravity, the first rod has its moment of inertia only
    assert names[0].startswith("link1.Jzz")
    assert "+ link2.m" in names[0]
    under_gravity = torsor.library.planar_chain(2).inertial.base()
    assert [name for name in under_gravity.names if name.startswith("link1.mx")] == ["link1.mx + link2.m"]


def test_the_puma_has_the_base_parameters_of_the_literature() -> None:
    """There are 36 (Mayeda, Yoshida and Osuka 1990); rotors are counted with the links here."""
    base = torsor.library.six_axis_arm().without_friction().inertial.base()
    assert len([name for name in base.names if name.startswith("link")]) == 36


def test_a_base_without_links_has_no_base_parameters() -> None:
    base = torsor.Robot.of(build("ground", [Link("base")], []))
    assert not len(base.inertial.base().values)
