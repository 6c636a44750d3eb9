"""Friction of all joints at once: one number for all, or one for each velocity."""

import numpy as np
import pytest

import torsor
from refusals import refused


def test_one_call_equals_one_for_each_joint() -> None:
    arm = torsor.library.two_link()
    each = arm.with_friction("joint1", 2.0, 0.5, 0.1).with_friction("joint2", 3.0, 0.25, 0.1)
    assert arm.with_friction(coulomb=[2.0, 3.0], viscous=[0.5, 0.25], smooth=0.1) == each
    both = arm.with_friction("joint1", viscous=0.5).with_friction("joint2", viscous=0.5)
    assert arm.with_friction(viscous=0.5) == both


def test_joints_with_several_velocities_get_their_part() -> None:
    robot = torsor.library.trees.random_tree(2, types=("spherical", "revolute"), extras=False)
    found = robot.with_friction(viscous=np.arange(1.0, robot.nv + 1))
    assert found.friction_force(np.ones(robot.nv)).tolist() == list(range(1, robot.nv + 1))


def test_one_number_is_not_for_the_floating_base_which_has_no_bearing() -> None:
    robot = torsor.library.quadruped()
    found = robot.with_friction(viscous=0.5)
    assert found.friction_force(np.ones(18)).tolist() == 6 * [0.0] + 12 * [0.5]
    assert robot.with_friction(viscous=np.full(18, 0.5)).friction_force(np.ones(18)).tolist() == 18 * [0.5]


@pytest.mark.parametrize("value", [[1.0], -1.0, float("nan"), "much"])
def test_wrong_numbers(value) -> None:
    with refused(argument="coulomb"):
        torsor.library.two_link().with_friction(coulomb=value)
