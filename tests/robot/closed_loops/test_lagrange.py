"""Dynamics with closed loops against Lagrange's equations with multipliers, written down a second time."""

import numpy as np
import pytest

from refusals import refused

from .lagrange import Lagrangian
from .loaded import CASES, close, indices, mechanism, state


@pytest.mark.parametrize("case", CASES)
def test_forces_and_accelerations_are_lagranges(case: str) -> None:
    robot, q = mechanism(case)
    v, a, x, x_rate, external = state(robot, q)
    truth, active = Lagrangian(robot, q), indices(robot)
    tau = np.zeros(robot.nv)
    tau[active] = robot.closed.inverse_dynamics(q, x, x_rate, external)
    close(truth.accelerations(v, tau, external), a)
    tau[active] = np.random.default_rng(2).normal(size=len(active))
    expected = truth.accelerations(v, tau, external)
    close(robot.closed.forward_dynamics(q, x, tau[active], external), expected[active])
    close(robot.closed.forward_dynamics(q, x, tau[active], external, method="multipliers"), expected[active])
    close(robot.closed.forward_dynamics(q, v, tau, external, coordinates="all"), expected)


@pytest.mark.parametrize("case", CASES)
def test_energy_grows_by_what_the_drives_give_less_friction(case: str) -> None:
    robot, q = mechanism(case)
    v, a, x, x_rate, _ = state(robot, q, seed=3)
    given = robot.closed.inverse_dynamics(q, x, x_rate) @ x
    assert Lagrangian(robot, q).power(v, a) == pytest.approx(given, rel=1e-10)


def test_a_falling_robot_leaves_nothing_to_its_base() -> None:
    robot, q = mechanism("floating")
    _, _, x, _, _ = state(robot, q)
    a = robot.closed.forward_dynamics(q, x, np.r_[np.zeros(6), 2.0])
    close(robot.closed.inverse_dynamics(q, x, a), np.r_[np.zeros(6), 2.0])


def test_the_name_of_a_joint_stands_for_its_coordinates() -> None:
    robot, _ = mechanism("floating")
    assert robot.active == (*robot.coordinate_names[:6], "joint1")
    with refused(argument="active"):
        robot.with_active(["root/qx"])
