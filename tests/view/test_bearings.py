"""Bearing loads: closed forms for a spinning disc off its bearing, and their invariance to the link's frame."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.view.bearings import bearing_loads


def arm(shift: float) -> torsor.Robot:
    """A mass on an arm that turns about the vertical; the link's frame is moved along the axis by a shift."""
    link = torsor.Link("arm", mass=2.0, com=(0.5, 0.0, 0.3 - shift), inertia=np.zeros((3, 3)))
    placement = np.eye(4)
    placement[2, 3] = shift
    joint = torsor.Joint("pin", "revolute", "ground", "arm", placement, point=(0, 0, -shift))
    return torsor.build("arm", [torsor.Link("ground"), link], [joint])


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_a_turning_mass_loads_its_bearing_as_in_the_closed_form(shift: float) -> None:
    robot, rate = arm(shift), 3.0
    loads = bearing_loads(robot, robot.joint_wrenches([0.4], [rate], [0.0]))
    weight, pull = 2.0 * 9.81, 2.0 * 0.5 * rate**2
    np.testing.assert_allclose(loads.axial, [weight], rtol=1e-14)
    np.testing.assert_allclose(loads.radial, [pull], rtol=1e-14)
    # about the bearing: the weight at 0.5 m, the centripetal force at a height of 0.3 m
    np.testing.assert_allclose(loads.tilting, [abs(0.5 * weight + 0.3 * pull)], rtol=1e-13)


def test_peak_and_rms_are_over_all_states() -> None:
    robot = arm(0.0)
    loads = bearing_loads(robot, robot.joint_wrenches(np.zeros((2, 1)), [[1.0], [2.0]], np.zeros((2, 1))))
    np.testing.assert_allclose(loads.peak()[0, 1], 4.0, rtol=1e-14)
    np.testing.assert_allclose(loads.rms()[0, 1], np.sqrt((1.0 + 16.0) / 2), rtol=1e-14)


def test_wrong_shapes_are_refused() -> None:
    with refused(argument="wrenches", allowed="(..., 1, 6)"):
        bearing_loads(arm(0.0), np.zeros((2, 6)))
