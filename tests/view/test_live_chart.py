"""The chart of the viewer: torques against their limits, and the coordinates of a motion and its reference together."""

import numpy as np

import torsor
from torsor.simulation import Trajectory
from torsor.view.live.chart import drawing, quantities
from torsor.view.live.shots import Film
from torsor.view.scene import Scene, timeline

BLUE, ORANGE = (0.0, 0.0, 1.0, 1.0), (1.0, 0.5, 0.0, 1.0)
ARM = torsor.library.ur5()  # limits: three of 150 N m, three of 28 N m


def film(tau: float, q: float = 0.0) -> Film:
    """Return a second at rest whose last wrist torque is ``tau`` and whose others are 1 N m."""
    still, torques = np.zeros((3, 6)), np.ones((3, 6))
    torques[:, 5] = tau
    motion = timeline(Trajectory(ARM, np.array([0.0, 0.5, 1.0]), still + q, still, still, torques))
    return Film(Scene.of(ARM), motion)


def test_the_drive_nearest_to_its_limit_comes_first_with_its_limits() -> None:
    charts = quantities([(film(30.0), BLUE)])
    title, curves = next(iter(charts.items()))
    assert title == "wrist_3_joint (N m)"
    assert curves[0].limits == (-28.0, 28.0)
    assert drawing(curves, 0.5, 1.0).count("stroke-dasharray") == 2


def test_limits_far_above_the_torque_are_not_drawn() -> None:
    curves = quantities([(film(30.0), BLUE)])["elbow_joint (N m)"]
    assert "stroke-dasharray" not in drawing(curves, 0.5, 1.0)


def test_a_motion_and_its_reference_share_a_chart_in_degrees() -> None:
    curves = quantities([(film(1.0), BLUE), (film(1.0, q=0.1), ORANGE)])["elbow_joint (°)"]
    np.testing.assert_allclose([curve.values[0] for curve in curves], [0.0, np.degrees(0.1)])
    shown = drawing(curves, 0.5, 1.0)
    assert shown.count("<polyline") == 2 and "rgb(0,0,255)" in shown and "rgb(255,128,0)" in shown


def test_missing_torques_leave_an_empty_chart() -> None:
    curves = quantities([(film(np.nan), BLUE)])["wrist_3_joint (N m)"]
    assert "nan" not in drawing(curves, 0.0, 1.0)


def test_velocities_have_their_own_limits_and_errors_are_differences_from_the_first_motion() -> None:
    one, other = film(1.0), film(1.0, q=0.1)
    charts = quantities([(one, BLUE), (other, ORANGE)])
    (velocity, _), (error,) = charts["velocity of elbow_joint (°/s)"], charts["error of elbow_joint (°)"]
    np.testing.assert_allclose(velocity.limits[1], np.degrees(ARM.velocity_limit[2]))
    np.testing.assert_allclose(error.values, np.degrees(0.1))
    assert error.color == "rgb(255,128,0)"
    assert not any(title.startswith("error") for title in quantities([(one, BLUE)]))
