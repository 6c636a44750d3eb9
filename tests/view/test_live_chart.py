"""The charts of the viewer: a coordinate of a motion and its reference, the error, and the torque with its limits."""

from dataclasses import replace

import numpy as np

import torsor
from torsor.simulation import Trajectory
from torsor.view.live.chart import Curve, charts, drawing, ticks
from torsor.view.live.controls import bars
from torsor.view.live.shots import Drives, Film
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
    name, found = next(iter(charts([(film(30.0), BLUE, False)]).items()))
    assert name == "wrist_3_joint" and list(found) == ["position (°)", "velocity (°/s)", "torque (N m)"]
    assert found["torque (N m)"][0].limits == (-28.0, 28.0)
    assert drawing({"torque (N m)": found["torque (N m)"]}, 0.5, 1.0).count("stroke-dasharray") == 2


def test_limits_far_above_the_torque_are_not_drawn() -> None:
    assert "stroke-dasharray" not in drawing(charts([(film(30.0), BLUE, False)])["elbow_joint"], 0.5, 1.0)


def test_a_motion_its_dashed_reference_and_the_error_are_below_each_other_in_degrees() -> None:
    found = charts([(film(1.0), BLUE, True), (film(1.0, q=0.1), ORANGE, False)])["elbow_joint"]
    assert list(found) == ["position (°)", "error: actual − reference (°)", "velocity (°/s)", "torque (N m)"]
    np.testing.assert_allclose([curve.values[0] for curve in found["position (°)"]], [0.0, np.degrees(0.1)])
    (error,) = found["error: actual − reference (°)"]
    np.testing.assert_allclose(error.values, np.degrees(0.1))
    assert error.color == "rgb(255,128,0)"
    shown = drawing(found, 0.5, 1.0)
    assert (
        shown.count("<polyline") == 7 and shown.count("stroke='rgb(0,0,255)' stroke-width='1.6' stroke-dasharray") == 3
    )
    np.testing.assert_allclose(found["velocity (°/s)"][0].limits[1], np.degrees(ARM.velocity_limit[2]))


def test_a_limit_outside_a_chart_is_named() -> None:
    curve = Curve(np.array([0.0, 1.0]), np.array([1.0, 3.0]), (-330.0, 330.0), "red")
    shown = drawing({"torque (N m)": [curve]}, 0.0, 1.0)
    assert ">limit ±330<" in shown and ">3<" in shown and "stroke-dasharray" not in shown
    assert ">limits −400 and 90<" in drawing({"velocity": [curve._replace(limits=(-400.0, 90.0))]}, 0.0, 1.0)
    assert "limit" not in drawing({"torque (N m)": [curve._replace(limits=(-4.0, 4.0))]}, 0.0, 1.0)


def test_the_charts_of_an_elastic_joint_include_its_motor() -> None:
    arm = torsor.library.two_link().with_motor("joint2", 1e-4, 50.0, "link1", stiffness=1000.0)
    q, still, times = np.array([0.1, 0.2, 0.25]), np.zeros((2, 3)), np.array([0.0, 1.0])
    line = timeline(Trajectory(arm, times, still + q, still, still, np.tile([1.0, 0.0, 5.0], (2, 1))))
    found = charts([(Film(Scene.of(arm), line), BLUE, False)])
    assert set(found) == {"joint1", "joint2"} and len(found["joint1"]) == 3
    position, deflection, velocity, torque = found["joint2"]
    assert [curve.pale for curve in found["joint2"][position]] == [False, True]
    assert (position, velocity) == ("position (°; pale: motor)", "velocity (°/s; pale: motor)")
    np.testing.assert_allclose(found["joint2"][deflection][0].values, np.degrees(0.05))
    (curve,) = found["joint2"][torque]
    assert curve.values.tolist() == [5.0, 5.0] and not curve.pale
    both = charts([(Film(Scene.of(arm), line), BLUE, True), (Film(Scene.of(arm), line), ORANGE, False)])["joint2"]
    assert [len(curves) for curves in both.values()] == [4, 1, 2, 4, 2]  # the error is that of the link


def test_a_position_far_from_zero_fills_its_chart() -> None:
    curve = Curve(np.array([0.0, 1.0]), np.array([80.0, 90.0]), (-95.0, 95.0), "red")
    shown = drawing({"position (°)": [curve]}, 0.0, 1.0)
    assert ">80<" in shown and ">95<" in shown and shown.count(">0<") == 1  # at the start of the time axis


def test_numbers_of_axes_are_round() -> None:
    assert list(ticks(43.8, 112.7, 4).values()) == ["60", "80", "100"]
    assert list(ticks(-45.0, 45.0, 4)) == [-40.0, -20.0, 0.0, 20.0, 40.0]  # not 0 alone
    assert list(ticks(-0.0026, 0.0031, 4).values()) == ["−0.002", "0", "0.002"]
    assert list(ticks(0.0, 5.034, 5)) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    curve = Curve(np.array([0.0, 1.0]), np.array([-26.3, -3.0]), (-np.inf, np.inf), "red")
    shown = drawing({"torque (N m)": [curve]}, 0.0, 5.034)
    assert ">−20<" in shown and "26.3" not in shown and ">5 s<" in shown


def test_missing_torques_leave_an_empty_chart() -> None:
    assert "nan" not in drawing(charts([(film(np.nan), BLUE, False)])["wrist_3_joint"], 0.0, 1.0)


def test_intervals_without_forces_are_grey_and_have_no_force() -> None:
    still, times = np.zeros((9, 6)), np.linspace(0.0, 1.0, 9)
    line = timeline(Trajectory(ARM, times, still, still, still, np.ones((9, 6))))
    line = replace(line, valid=np.array([False, True, True, True, False, False, True, True, False]))
    shown = Film(Scene.of(ARM), line)
    assert line.gaps == [(0.0, 0.125), (0.5, 0.75), (1.0, 1.0)]
    found = charts([(shown, BLUE, False)])["elbow_joint"]
    (curve,) = found["torque (N m)"]
    np.testing.assert_array_equal(np.isnan(curve.values), np.isin(curve.times, times[~line.valid]))
    picture = drawing({"torque (N m)": found["torque (N m)"]}, 0.0, 1.0, line.gaps)
    assert picture.count("<rect") == 3 and picture.count("<polyline") == 2  # the curve has two pieces


def test_moments_of_people_are_divided_by_the_mass() -> None:
    still = np.zeros((2, 6))
    line = timeline(Trajectory(ARM, np.array([0.0, 1.0]), still, still, still, still + 2 * ARM.mass))
    shown = Film(Scene.of(ARM), replace(line, ground=np.full((2, 1, 6), np.nan)))
    found = charts([(shown, BLUE, False)])["elbow_joint"]
    (curve,) = found["moment (N m/kg; signed as the angle)"]
    np.testing.assert_allclose(curve.values, 2.0)
    np.testing.assert_allclose(curve.limits[1], 150.0 / ARM.mass)
    drives = shown.at(0.5).drives
    assert drives is not None and drives.units[0] == "N m/kg"
    np.testing.assert_allclose(drives.forces, 2.0)


def test_the_time_of_a_stride_is_in_percent() -> None:
    shown = drawing(charts([(film(1.0), BLUE, False)])["elbow_joint"], 0.5, 1.1, stride="right")
    assert ">100<" in shown and ">gait cycle (%) from right heel strike<" in shown and " s<" not in shown


def test_unknown_torques_are_no_numbers() -> None:
    row = bars(Drives(("knee",), ("N m/kg",), np.array([np.nan]), np.array([2.0])), "Joint moments")
    assert ">unknown / 2 N m/kg<" in row and "width:0.0%" in row and "nan" not in row
