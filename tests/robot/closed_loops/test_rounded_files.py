"""Loops that are redundant up to the digits of a file: hinges that are made of two points on their axis."""

import warnings

import numpy as np
import pytest

import torsor
from refusals import refused, warned
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
    with warned(what="are redundant up to rounding"):
        q = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        np.testing.assert_allclose(q, whole.closed.assemble([0.5], guess=[0.5, 1.0, 1.5]), rtol=0, atol=1e-11)
        assert robot.closed.mobility(q).dof == 1
        tau = robot.closed.inverse_dynamics(q, [1.0], [0.3])
        np.testing.assert_allclose(tau, whole.closed.inverse_dynamics(q, [1.0], [0.3]), rtol=1e-10)
        v = robot.closed.velocities(q, [1.0])
        a = [each.closed.forward_dynamics(q, v, [1.0, 0.0, 0.0], coordinates="all") for each in (robot, whole)]
        np.testing.assert_allclose(*a, rtol=1e-9)


def test_a_hinge_of_two_rounded_points_in_space_is_a_hinge() -> None:
    whole, q = closed_chain("revolute")
    robot = two_points(whole, "anchor", "end", 3e-7)
    with warned(what="1 of 6 closure equations"):
        there = robot.closed.positions(q)
    assert np.abs(there - q).max() < 1e-5
    assert robot.closed.mobility(there).dof == whole.nv - 5
    v = robot.closed.velocities(there, np.ones(robot.nv), coordinates="all")
    np.testing.assert_allclose(robot.closed.jacobian(there) @ v, 0, atol=1e-6)


def test_points_that_differ_by_more_than_digits_are_refused() -> None:
    robot = two_points(four_bar(), "coupler_end", "rocker_end", 1e-2)
    with refused(fix="check the frames that the loops join"):
        robot.closed.assemble([0.5])


def test_bars_that_are_a_little_too_short_are_not_called_redundant() -> None:
    robot = torsor.library.four_bar(1.0, 0.3, 0.4, 0.3 - 1e-5)  # stretched, they do not meet
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with refused(fix="z axes of a revolute joint must have the same direction"):
            robot.closed.assemble([0.0])


def belts(*ratios: float, offset: float = 0.0) -> torsor.Robot:
    """Return a two-link arm whose elbow is coupled several times, with these ratios."""
    robot = torsor.library.two_link().to(device="casadi").with_active(["joint2"])
    for k, ratio in enumerate(ratios):
        robot = robot.with_coupling(f"belt{k}", {"joint1": 1.0, "joint2": -ratio}, offset=k * offset)
    return robot


@pytest.mark.parametrize("difference", [2e-5, 1e-6, 1e-9])
def test_couplings_with_nearly_equal_ratios_are_one_and_warn(difference: float) -> None:
    robot = belts(2.0, 2.0 + 2 * difference)
    with warned(what=f"repeats 'belt0' up to {difference:.2g} of its") as found:
        q = robot.closed.assemble([0.5])
    assert found[0].filename == __file__
    np.testing.assert_allclose(q, [1.0, 0.5], rtol=0, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        assert robot.closed.mobility(q).dof == 1
        tau = robot.closed.inverse_dynamics(q, [1.0], [0.0])
    np.testing.assert_allclose(tau, belts(2.0).closed.inverse_dynamics(q, [1.0], [0.0]), rtol=1e-12)


def test_a_coupling_that_two_others_nearly_contain_warns_with_both_names() -> None:
    robot = torsor.library.planar_chain(3).to(device="casadi")
    for name, a, b, ratio in (("first", 1, 2, 2.0), ("second", 2, 3, 3.0), ("third", 1, 3, 6.00006)):
        robot = robot.with_coupling(name, {f"joint{a}": 1.0, f"joint{b}": -ratio})
    with warned(what="coupling 'third' repeats 'first', 'second' up to 4.5e-06"):
        assert robot.closed.mobility().dof == 1


def test_couplings_that_are_equal_or_clearly_different_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert belts(2.0, 2.0).closed.mobility().dof == 1
        assert belts(2.0, 2.1).closed.mobility().dof == 0  # locked


def test_couplings_with_equal_ratios_and_other_offsets_contradict_each_other() -> None:
    with refused(value="belt1"):
        belts(2.0, 2.0, offset=0.1).closed.mobility()


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
def test_a_contradiction_of_couplings_does_not_depend_on_their_units(size: float) -> None:
    robot = torsor.library.planar_chain(3).with_coupling("belt", {"joint1": 1.0, "joint2": -1.0})
    robot = robot.with_coupling("screw", {"joint1": size, "joint2": -size}, 0.5 * size)
    with refused(value="screw"):
        robot.closed.mobility()


def test_a_small_term_of_a_coupling_counts_whatever_others_there_are() -> None:
    robot = torsor.library.planar_chain(4).with_coupling("c0", {"joint1": 1.0, "joint2": -1.0})
    robot = robot.with_coupling("c1", {"joint1": 1.0, "joint2": -1.0, "joint3": 5e-5})
    assert robot.closed.mobility().dof == 2
    assert robot.with_coupling("c2", {"joint3": 1.0, "joint4": -1.0}).closed.mobility().dof == 1


def test_couplings_with_huge_coefficients_are_refused() -> None:
    with refused(argument="coefficient of 'joint2'", where="coupling 'a'", allowed="a finite number, -1e+50 or more"):
        torsor.library.planar_chain(4).with_coupling("a", {"joint1": 1.0, "joint2": -1e300})
