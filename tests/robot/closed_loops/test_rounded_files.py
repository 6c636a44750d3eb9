"""Loops that are redundant up to the digits of a file: hinges that are made of two points on their axis."""

import warnings

import numpy as np
import pytest

import torsor
from torsor import ModelError, ModelWarning
from torsor.spatial import make_pose

from .mechanisms import closed_chain, four_bar

LEVER = 0.1  # m between the two points


def two_points(robot: torsor.Robot, a: str, b: str, apart: float) -> torsor.Robot:
    """Return a robot whose hinge is made of two balls; on one side they are further ``apart`` by this (m)."""
    for name, end, lever in (("a2", a, LEVER), ("b2", b, LEVER + apart)):
        robot = robot.with_frame(name, end, make_pose(p=[0, 0, lever]))
    robot = robot.without_loop(robot.loops[0].name)
    return robot.with_loop("first", a, b, "spherical").with_loop("second", "a2", "b2", "spherical")


def test_a_four_bar_with_rounded_pins_moves_like_a_four_bar() -> None:
    whole = four_bar()
    robot = two_points(whole, "coupler_end", "rocker_end", 1e-7)
    with pytest.warns(ModelWarning, match="1 of 6 closure equations are redundant up to rounding .*'second'"):
        q = robot.assemble([0.5], guess=[0.5, 1.0, 1.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        np.testing.assert_allclose(q, whole.assemble([0.5], guess=[0.5, 1.0, 1.5]), rtol=0, atol=1e-11)
        assert robot.mobility(q).dof == 1
        tau = robot.constrained_inverse_dynamics(q, [1.0], [0.3])
        np.testing.assert_allclose(tau, whole.constrained_inverse_dynamics(q, [1.0], [0.3]), rtol=1e-10)
        v = robot.constrained_velocities(q, [1.0])
        a = [each.closed_forward_dynamics(q, v, [1.0, 0.0, 0.0]) for each in (robot, whole)]
        np.testing.assert_allclose(*a, rtol=1e-9)


def test_a_hinge_of_two_rounded_points_in_space_is_a_hinge() -> None:
    whole, q = closed_chain("revolute")
    robot = two_points(whole, "anchor", "end", 3e-7)
    with pytest.warns(ModelWarning, match="1 of 6 closure equations"):
        there = robot.closed_positions(q)
    assert np.abs(there - q).max() < 1e-5
    assert robot.mobility(there).dof == whole.nv - 5
    v = robot.closed_velocities(there, np.ones(robot.nv))
    np.testing.assert_allclose(robot.closure_jacobian(there) @ v, 0, atol=1e-6)


def test_points_that_differ_by_more_than_digits_are_refused() -> None:
    robot = two_points(four_bar(), "coupler_end", "rocker_end", 1e-2)
    with pytest.raises(
        ModelError,
        match=r"no configuration that closes the loops was found; fix: check the frames that the loops join$",
    ):
        robot.assemble([0.5])


def test_bars_that_are_a_little_too_short_are_not_called_redundant() -> None:
    robot = torsor.library.four_bar(1.0, 0.3, 0.4, 0.3 - 1e-5)  # stretched, they do not meet
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError, match="z axes of a revolute joint point the same way"):
            robot.assemble([0.0])
