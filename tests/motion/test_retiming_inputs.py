"""Inputs of retiming: tables of bounds, robot limits, ROS messages, waypoints and friction."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import torsor
from refusals import refused, warned
from torsor.motion import retime
from torsor.motion.retiming.bounds import Bounds
from torsor.motion.retiming.given import read_path
from torsor.motion.retiming.path import spline

ARM = torsor.library.ur5()
WAYPOINTS = np.array([[0, -1.5, 1, 0, 0, 0], [1, -1, 0.5, 0.5, 1, 0], [1.5, -0.5, 1, 1, -0.5, 1.0]])
FOLLOWER = """<robot name="pair"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="{effort}" velocity="3"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="9" velocity="1"/><mimic joint="j1" multiplier="-2"/></joint></robot>"""


def test_a_table_leaves_the_limits_of_the_robot_to_other_joints() -> None:
    table = {"elbow_joint": 1.0, "wrist_3_joint": np.inf}
    own, k = ARM.velocity_limit.tolist(), ARM.coordinate_names.index("elbow_joint")
    found = Bounds.of(ARM, {"velocity": table, "torque": {"elbow_joint": 5.0}}).values
    assert found["velocity"][1].tolist() == [*own[:k], 1.0, *own[k + 1 : 5], np.inf]
    assert found["torque"][1].tolist() == [*ARM.effort_limit[:k], 5.0, *ARM.effort_limit[k + 1 :]]
    line = torsor.library.planar_chain(2)
    with refused(value="joint2"):
        Bounds.of(line, {"velocity": {"joint1": 1.0}, "acceleration": 1.0})


def test_a_follower_is_no_faster_than_its_limit(tmp_path: Path) -> None:
    """It turns twice as fast as its leader."""
    strong, weak = tmp_path / "strong.urdf", tmp_path / "weak.urdf"
    strong.write_text(FOLLOWER.format(effort=30), encoding="utf-8")
    weak.write_text(FOLLOWER.format(effort=0), encoding="utf-8")
    found = retime(torsor.load(strong), [[0.0], [1.0]])
    assert abs(found.v).max() == pytest.approx(0.5, rel=1e-9)
    with refused(fix="pass `torque=`"):
        retime(torsor.load(weak), [[0.0], [1.0]])


@pytest.mark.parametrize("count", [3, 4, 5, 12])
def test_splines_are_those_of_scipy(count: int) -> None:
    rng = np.random.default_rng(count)
    s, q = np.cumsum(rng.uniform(0.1, 1.0, (3, count)), axis=1), rng.normal(size=(3, count, 2))
    for own, pieces, points in zip(s, spline(s, q), q, strict=True):
        known = CubicSpline(own, points).c[::-1].swapaxes(0, 1)
        assert pieces == pytest.approx(known, rel=1e-10, abs=1e-10)


def message(stamps: list[Any]) -> dict[str, Any]:
    points = [{"positions": q.tolist(), "velocities": []} for q in WAYPOINTS]
    for point, stamp in zip(points, stamps, strict=False):
        point["time_from_start"] = stamp
    return {"joint_names": list(ARM.coordinate_names), "points": points}


def test_a_plan_without_times_is_a_path_over_its_length() -> None:
    known = read_path(ARM, WAYPOINTS, None, "test").paths[0].breaks
    zeros = message([{"sec": 0, "nanosec": 0}] * 3)
    for plan in (message([]), zeros, {"joint_trajectory": zeros}, {"trajectory": [{"joint_trajectory": zeros}]}):
        assert np.array_equal(read_path(ARM, plan, None, "test").paths[0].breaks, known)
    timed = message([{"secs": k, "nsecs": 5 * 10**8} for k in range(3)])
    assert read_path(ARM, timed, None, "test").paths[0].breaks.tolist() == [[0.0, 1.0, 2.0]]
    blended = read_path(ARM, timed, 0.1, "test").paths[0].breaks
    assert np.array_equal(blended, read_path(ARM, WAYPOINTS, 0.1, "test").paths[0].breaks)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ([[[0, 0], [1, 1]], [[0, 0], [1, 1], [2, 2]]], "same number of waypoints in each path"),
        ([[0, 0], [1, 1], [1 + 1e-9, 1], [2, 1]], "waypoints 1 and 2 are only 1e-09 apart"),
        (([0, 1, 1 + 1e-9], [[0, 0], [1, 1], [2, 1]]), "waypoints 1 and 2 are only 1e-09 apart"),
        ([[0, 0], [1e200, 1]], "waypoints[1, 0] is 1e+200"),
        ([[[0, 0], [1, 1]], [[0, 0], [0, 0]]], "waypoints 0 and 1 of path 1 are equal"),
        ({"joint_names": ["joint1", "joint2"], "points": [{"positions": [1]}]}, "point 0 has 1 positions"),
        ({"joint_names": ["joint1"], "points": []}, "joint_names are 'joint1'"),
    ],
)
def test_paths_that_are_none_are_refused_in_words(path: Any, words: str) -> None:
    with refused(words):
        read_path(torsor.library.planar_chain(2), path, None, "test")


def test_corners_that_are_too_short_for_a_jerk_bound_are_refused() -> None:
    bounds = {"velocity": 2.0, "acceleration": 10.0, "jerk": 100.0, "torque": np.inf}
    with refused(fix="use a larger tolerance"):
        retime(torsor.library.planar_chain(2), [[0, 0], [1, 0.2], [1.2, 1]], tolerance=1e-5, **bounds)


CORNER = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
BOUNDS: Any = {"velocity": 2.0, "acceleration": 10.0, "torque": np.inf, "tolerance": 0.05}


@pytest.mark.parametrize("near", [[1.0, 1e-3], [1.01, -0.01], [1.0 - 1e-6, 0.0]])
def test_waypoints_near_a_corner_do_not_slow_it_down(near: list[float]) -> None:
    """The path passes all of them within the tolerance, and is as fast as a corner with what is left of that."""
    chain, points = torsor.library.planar_chain(2), np.insert(CORNER, 2, near, axis=0)
    with warned(what="waypoints 2 within 0.025 of another one are omitted: the path"):
        found = retime(chain, points, **BOUNDS)
    left = BOUNDS["tolerance"] - np.linalg.norm(points[2] - points[1])
    assert found.duration == pytest.approx(retime(chain, CORNER, **BOUNDS | {"tolerance": left}).duration, rel=1e-3)
    q = found.at(np.linspace(0.0, found.duration, 20001)).q
    far = [np.linalg.norm(q - each, axis=1).min() for each in points]
    assert max(far) <= 0.05 + 1e-6 and max(far[0], far[-1]) < 1e-12


def test_near_waypoints_are_left_out_of_each_path_of_a_batch_and_at_ends() -> None:
    chain = torsor.library.planar_chain(2)
    near_start, near_end = ([*CORNER[:1], [0.01, 0.0], *CORNER[1:]], [*CORNER[:2], [1.0, 0.99], CORNER[2]])
    back = [[0.0, 0.0], [1.0, 0.0], [0.0, 0.01], [1.0, 0.0]]  # a waypoint near the end, but not just before it
    with warned(what="waypoints 1 of path 0, and some of 1 others, within"):
        found = retime(chain, [near_start, near_end, back], **BOUNDS)
    known = retime(chain, CORNER, **BOUNDS).duration
    assert [each.duration for each in found[:2]] == pytest.approx([known] * 2, rel=1e-12)
    assert found[2].duration == retime(chain, back, **BOUNDS).duration
    with refused(fix="use a smaller tol"):
        retime(chain, [[0.0, 0.0], [0.01, 0.0], [0.0, 0.0]], **BOUNDS)


def test_times_that_are_not_finite_are_refused_without_a_warning_of_numpy() -> None:
    with refused(argument="times"):  # a warning would be an error here
        retime(ARM, ([0.0, np.inf, np.inf], WAYPOINTS))


def test_times_of_a_clock_give_the_timing_of_times_from_zero() -> None:
    times, knots = np.arange(3) / 4, np.arange(33) / 64
    known, clock = (retime(ARM, (first + times, WAYPOINTS), knots=first + knots) for first in (0.0, 1.7e9))
    assert np.array_equal(clock.times, known.times) and np.array_equal(clock.q, known.q)
    stamps = [{"sec": 1_700_000_000 + k // 2, "nanosec": 500_000_001 * (k % 2)} for k in range(3)]
    breaks = read_path(ARM, message(stamps), None, "test").paths[0].breaks
    assert breaks[0].tolist() == pytest.approx([0.0, 0.500000001, 1.0], rel=1e-15)


def test_one_interval_cannot_leave_and_reach_rest() -> None:
    with refused(allowed="2 or more", fix="use more kn"):
        retime(torsor.library.planar_chain(1), [[0.0], [1.0]], velocity=1.0, acceleration=1.0, knots=1)


def test_samples_at_rest_have_the_friction_of_the_motion() -> None:
    rod = torsor.library.planar_chain(1, gravity=(0, 0, 0)).with_friction("joint1", coulomb=2.0)
    found = retime(rod, [[0.0], [1.0]], velocity=99.0, torque=10.0)
    tau = found.sample(0.01).tau
    assert tau[[0, -1], 0] == pytest.approx([10.0, -10.0], rel=1e-9)


def test_reactions_are_reported_and_active() -> None:
    found = retime(ARM, WAYPOINTS, reactions={"elbow_joint": {"force": 70.0, "moment": np.inf}})
    assert "reaction force elbow_joint" in found.active
    assert "reaction force elbow_joint: 70 N (" in found.report()
    with refused(what="standing still exceeds the reaction force bound at 'elbow_joint'"):
        retime(ARM, WAYPOINTS, reactions={"elbow_joint": {"force": 1.0}})


def test_waypoints_just_at_half_of_the_tolerance_are_kept() -> None:
    found = retime(
        torsor.library.two_link(), [[0, 0], [0.16, 0.12], [1, 1]], velocity=1.0, acceleration=1.0, tolerance=0.4
    )
    assert found.path.pieces.shape[1] == 3  # two lines and a blend


@pytest.mark.parametrize(
    ("path", "tolerance", "words"),
    [
        (np.eye(2), 1e-17, "tolerance"),
        (np.eye(2), 1e308, "tolerance"),
        (1e-160 * np.eye(2), None, "waypoints 0 and 1 are equal"),
    ],
)
def test_corners_and_paths_that_are_lost_in_rounding_are_refused(path: Any, tolerance: Any, words: str) -> None:
    with refused(words):
        retime(torsor.library.two_link(), path, velocity=1.0, acceleration=1.0, tolerance=tolerance)
