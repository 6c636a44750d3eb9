"""Loops whose frames are half a turn apart, and dead points up to rounding: finite numbers, no warnings of NumPy."""

import warnings

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.spatial import skew

AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.0, -0.8), (-0.36, 0.48, 0.8)]
ANGLES = [0.0, 1e-9, 1.0, 2.0, 2.2, 3.0, np.pi - 1e-9, np.pi]


def ball(kind: str) -> torsor.Robot:
    """Return a body on a ball joint whose frame is joined with that of the base."""
    links = [torsor.Link("base"), torsor.Link("body", 1.0, (0, 0, 0.1), np.diag([0.1, 0.1, 0.1]))]
    robot = torsor.build("ball", links, [torsor.Joint("ball", "spherical", "base", "body")])
    return torsor.Robot.of(robot).with_loop("loop", "base", "body", kind)


def quaternion(axis: tuple[float, ...], angle: float) -> np.ndarray:
    return np.append(np.sin(angle / 2) * np.array(axis), np.cos(angle / 2))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", ANGLES)
def test_a_weld_is_twice_the_sine_of_half_the_angle_open(axis: tuple[float, ...], angle: float) -> None:
    robot, q = ball("weld"), quaternion(axis, angle)
    error = robot.closed.error(q)[3:]
    assert np.linalg.norm(error) == pytest.approx(2 * np.sin(angle / 2), rel=1e-14)
    sign = np.sign(error @ axis) or 1.0  # at half a turn both axes are right
    np.testing.assert_allclose(error, sign * 2 * q[:3], rtol=0, atol=1e-14)
    # The rate of a unit quaternion (x, w) at the angular velocity v in axes of the body: x' = (w v + x cross v) / 2.
    rate = sign * (q[3] * np.eye(3) + skew(q[:3]))
    np.testing.assert_allclose(robot.closed.jacobian(q)[3:], rate, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "planar"])
@pytest.mark.parametrize("angle", ANGLES)
def test_axes_that_point_in_opposite_directions_are_two_apart(kind: str, angle: float) -> None:
    robot, q = ball(kind), quaternion((0.6, 0.8, 0.0), angle)
    error, A = robot.closed.error(q)[-2:], robot.closed.jacobian(q)[-2:]
    assert np.linalg.norm(error) == pytest.approx(2 * np.sin(angle / 2), rel=1e-14)
    assert np.isfinite(A).all()
    if 0 < angle < 3.1:  # about this axis, in axes of the body, the error grows by cos(angle / 2)
        np.testing.assert_allclose(A @ [0.6, 0.8, 0], np.cos(angle / 2) * error / np.linalg.norm(error), atol=1e-14)


@pytest.mark.parametrize("kind", ["weld", "revolute", "prismatic"])
def test_loops_half_a_turn_apart_are_closed(kind: str) -> None:
    robot = ball(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = robot.closed.positions([1.0, 0.0, 0.0, 0.0])
    assert np.abs(robot.closed.error(q)).max() < 1e-11


@pytest.mark.parametrize("aside", [0.0, 1e-16, -1e-12, 1e-9, -1e-8, 1e-7, 1e-6, -2e-6])
def test_a_dead_point_up_to_rounding_is_refused(aside: float) -> None:
    engine = torsor.library.slider_crank()
    guess, piston = engine.closed.assemble([aside]), engine.with_active(["slide"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for goal in (guess[2], 0.99 * guess[2]):
            with refused(what="singular at the guess", error=torsor.AssemblyError):
                piston.closed.assemble([goal], guess=guess)
        assert np.isnan(piston.closed.assemble([0.99 * guess[2]], guess=guess, missing="nan")).all()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_guess_beside_a_dead_point_chooses_its_side(side: float) -> None:
    engine = torsor.library.slider_crank()
    guess, piston = engine.closed.assemble([side * 1e-4]), engine.with_active(["slide"])
    assert piston.closed.assemble([0.99 * guess[2]], guess=guess)[0] * side > 0.2
