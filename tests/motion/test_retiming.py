"""Retimed paths: closed forms of the double integrator, toppra, inverse dynamics, and bounds that hold everywhere."""

from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import retime

LINE = torsor.library.planar_chain(1)
ARM = torsor.library.ur5()
INF = np.inf


def waypoints(seed: int = 0, count: int = 6) -> Any:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (count, 6))


# Closed forms


@pytest.mark.parametrize(
    ("velocity", "acceleration", "time"),
    [
        (9.0, 4.0, 1.0),
        (1.0, 2.0, 1.5),
        (0.5, 2.5, 2.2),
        (1.0, [[-1.0, 4.0]], 1.625),
        (9.0, [[-1.0, 2.0]], 1.7320508075688772),
    ],
)
def test_a_line_takes_the_time_of_bang_bang(velocity: float, acceleration: Any, time: float) -> None:
    """2 sqrt(d / a), or d / v + v / a; with a1, a2: sqrt(2 d (1 / a1 + 1 / a2)), d / v + v / 2 (1 / a1 + 1 / a2)."""
    found = retime(LINE, [[0.0], [1.0]], velocity=velocity, acceleration=acceleration, torque=INF, knots=240)
    assert found.duration == pytest.approx(time, rel=1e-10)
    assert found.excess < 1e-9


def test_the_slowest_joint_of_a_line_decides() -> None:
    arm = torsor.library.planar_chain(3)
    bounds = {"velocity": [9.0, 9.0, 1.0], "acceleration": [40.0, 8.0, 90.0], "torque": INF}
    found = retime(arm, [[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]], **bounds, knots=100)
    assert found.duration == pytest.approx(1.0, rel=1e-10)  # joint 2: 2 sqrt(2 / 8)
    assert found.active[0] == "acceleration joint2"


def test_many_joints_take_the_time_of_bang_bang() -> None:
    """More rows than fit into one function of all pairs."""
    chain = torsor.library.planar_chain(20)
    found = retime(chain, [np.zeros(20), np.ones(20)], velocity=9.0, acceleration=4.0, torque=INF, knots=20)
    assert found.duration == pytest.approx(1.0, rel=1e-10)


def test_a_hand_over_with_speed_takes_less_time() -> None:
    """From and to the speed v0 with acceleration a: v0 t + a t^2 / 4 = d."""
    found = retime(LINE, [[0.0], [1.0]], velocity=9.0, acceleration=4.0, torque=INF, start=1.0, end=1.0, knots=100)
    assert found.duration == pytest.approx((-1 + np.sqrt(1 + 4)) / 2, rel=1e-10)
    assert found.v[[0, -1], 0].tolist() == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize(
    ("velocity", "acceleration", "jerk", "time"),
    [(9.0, 9.0, 32.0, 1.0), (9.0, 2.0, 32.0, 1.4780939566132656), (1.0, 2.0, 10.0, 1.7)],
)
def test_a_line_with_a_jerk_bound_takes_the_time_of_its_phases(
    velocity: float, acceleration: float, jerk: float, time: float
) -> None:
    """Four phases of jerk, six with constant acceleration, seven with constant velocity: closed forms."""
    found = retime(LINE, [[0.0], [1.0]], velocity=velocity, acceleration=acceleration, jerk=jerk, torque=INF)
    assert time * (1 - 1e-3) < found.duration < time * (1 + 3e-3)
    now = found.at(np.linspace(0.0, found.duration, 5001))
    q, v, a = now.q[:, 0], now.v[:, 0], now.a[:, 0]
    dt = found.duration / 5000
    assert abs(v).max() <= velocity * 1.001
    assert abs(a).max() <= acceleration * 1.001
    assert abs(np.diff(a) / dt).max() <= jerk * 1.002
    assert np.gradient(q, dt)[1:-1] == pytest.approx(v[1:-1], abs=1e-5)
    assert np.gradient(v, dt)[1:-1] == pytest.approx(a[1:-1], abs=1e-2)


def test_a_joint_that_stands_still_bounds_nothing() -> None:
    """d / v + v / a of the joint that moves."""
    for count in (2, 20):  # with few rows, and with more than fit into one function of all pairs
        line = np.zeros((2, count))
        line[1, 0] = 1.0
        bounds = {"velocity": 2.0, "acceleration": 10.0, "torque": INF}
        found = retime(torsor.library.planar_chain(count), line, **bounds, knots=60)
        assert found.duration == pytest.approx(0.7, rel=1e-10)
    corner = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    found = retime(torsor.library.planar_chain(2), corner, tolerance=0.05, **bounds)
    slow = retime(torsor.library.planar_chain(2), corner, tolerance=1e-4, **bounds)
    assert 1.0 + 0.2 < found.duration < slow.duration < 2 * 0.7 * (1 + 1e-2)


def test_viscous_friction_and_torque_give_a_terminal_velocity() -> None:
    """J v' + d v = tau: the way until the speed v is J / d (v_t log(1 / (1 - v / v_t)) - v) with v_t = tau / d."""
    rod = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0)).with_friction("joint1", viscous=8.0)
    inertia = float(rod.mass_matrix([0.0])[0, 0])
    found = retime(rod, [[0.0], [3.0]], velocity=99.0, torque=10.0, knots=400)
    assert abs(found.tau).max() <= 10.0 * (1 + 1e-9)
    terminal, speeds = 10.0 / 8.0, np.linspace(0.0, 1.24, 2000)
    ways = inertia / 8.0 * (terminal * np.log(1 / (1 - speeds / terminal)) - speeds)
    assert found.v[50:150, 0] == pytest.approx(np.interp(found.q[50:150, 0], ways, speeds), rel=5e-3)
    assert 0.95 * terminal < found.v.max() < terminal


@pytest.mark.parametrize("way", [[[0.0], [1.0], [0.0]], [[1.0], [0.0], [1.0]]])
def test_dry_friction_keeps_torques_within_bounds_where_a_joint_turns_back(way: list[list[float]]) -> None:
    """The turn is a knot, at which q' = 0: friction acts in one direction before it and in the other one after it."""
    rod = torsor.library.planar_chain(1).with_friction("joint1", coulomb=1.5)
    found = retime(rod, way, velocity=10.0, torque=10.0, knots=50)
    t = np.linspace(0, found.duration, 20001)[1:-1]
    tau = found.at(t).tau
    assert np.abs(tau).max() <= 10.0 * (1 + found.excess + 1e-4)
    assert found.excess < 0.005


def test_the_paths_of_a_batch_are_those_of_single_calls() -> None:
    paths = np.random.default_rng(3).uniform(-2, 2, (3, 4, 6))
    batch = retime(ARM, paths, acceleration=8.0)
    for path, found in zip(paths, batch, strict=True):
        assert np.array_equal(found.times, retime(ARM, path, acceleration=8.0).times)


def test_dry_friction_acts_along_the_path_also_at_rest() -> None:
    rod = torsor.library.planar_chain(1, gravity=(0, 0, 0)).with_friction("joint1", coulomb=2.0)
    free = torsor.library.planar_chain(1, gravity=(0, 0, 0))
    found = retime(rod, [[0.0], [1.0]], velocity=99.0, torque=10.0, knots=100)
    known = retime(free, [[0.0], [1.0]], velocity=99.0, torque=[[-12.0, 8.0]], knots=100)
    assert found.duration == pytest.approx(known.duration, rel=1e-12)


# Other programs, and laws


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["acceleration", "torque"])
def test_durations_are_those_of_toppra(seed: int, kind: str) -> None:
    toppra = pytest.importorskip("toppra", reason="needs the package toppra")
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    q, s, grid = waypoints(seed), np.linspace(0.0, 1.0, 6), np.linspace(0.0, 1.0, 101)
    velocity = constraint.JointVelocityConstraint(np.stack([-ARM.velocity_limit, ARM.velocity_limit], axis=1))
    if kind == "acceleration":
        given = {"acceleration": 10.0, "torque": INF}
        other = constraint.JointAccelerationConstraint(np.tile([-10.0, 10.0], (6, 1)))
    else:
        given = {}
        limits = np.stack([-ARM.effort_limit, ARM.effort_limit], axis=1)
        both = constraint.DiscretizationType.Interpolation
        other = constraint.JointTorqueConstraint(ARM.inverse_dynamics, limits, np.zeros(6), both)
    path = toppra.SplineInterpolator(s, q)
    peer = algorithm.TOPPRA([velocity, other], path, gridpoints=grid, parametrizer="ParametrizeConstAccel")
    found = retime(ARM, (s, q), knots=grid, **given)
    assert found.duration == pytest.approx(peer.compute_trajectory(0, 0).duration, rel=1e-5)


def test_forces_of_inverse_dynamics_are_within_bounds_on_both_sides_of_knots() -> None:
    found = retime(ARM, waypoints())
    limit = ARM.effort_limit
    tau = ARM.inverse_dynamics(found.q, found.v, found.a)
    assert (abs(tau) <= limit * (1 + 1e-9)).all()
    assert (abs(found.v) <= ARM.velocity_limit * (1 + 1e-9)).all()
    before = found.at(found.times[1:] * (1 - 1e-12)).tau
    assert (abs(before) <= limit * (1 + 1e-6)).all()
    assert (
        1 - 1e-9 <= max(found.largest.values()) <= 1 + 2.5e-3
    )  # at a bound, and refined until it is one between knots
    assert sum(name != "" for name in found.active) > 0.9 * len(found.active)


def test_torque_rates_and_jerks_are_within_bounds() -> None:
    bounds = {"acceleration": 8.0, "jerk": 80.0, "torque_rate": 500.0}
    found = retime(ARM, waypoints(), **bounds)
    now = found.at(np.linspace(0.0, found.duration, 4001))
    q, v, a = now.q, now.v, now.a
    tau = ARM.inverse_dynamics(q, v, a)
    dt = found.duration / 4000
    assert (abs(np.diff(a, axis=0)) / dt <= 80.0 * 1.005).all()
    assert (abs(np.diff(tau, axis=0)) / dt <= 500.0 * 1.005).all()
    assert found.excess < 2e-3
    assert found.duration > retime(ARM, waypoints(), acceleration=8.0).duration


@pytest.mark.parametrize("tolerance", [None, 2e-3])
def test_jerks_and_accelerations_are_within_bounds_at_breaks_and_corners(tolerance: float | None) -> None:
    """The path bends most there, in places that a grid of equal intervals does not have."""
    chain, points = torsor.library.planar_chain(2), [[0.0, 0.0], [1.0, 0.2], [1.2, 1.0], [2.0, 1.3]]
    bounds = {"velocity": 2.0, "acceleration": 10.0, "jerk": 100.0, "torque": INF}
    found = retime(chain, points, tolerance=tolerance, **bounds)
    a = found.at(np.linspace(0.0, found.duration, 40001)).a
    assert abs(a).max() <= 10.0 * 1.002
    assert abs(np.diff(a, axis=0)).max() <= 100.0 * 1.003 * found.duration / 40000


def test_reactions_are_below_their_bounds() -> None:
    found = retime(ARM, waypoints(), reactions={"elbow_joint": {"force": 70.0, "moment": 40.0}})
    link = [joint.child for joint in ARM.joints if joint.name == "elbow_joint"]
    wrench = ARM.joint_wrenches(found.q, found.v, found.a)[:, ARM.link_names.index(link[0])]
    force, moment = (np.linalg.norm(each, axis=1) for each in (wrench[:, 3:], wrench[:, :3]))
    assert force.max() <= 70.0 * (1 + 1e-9)
    assert moment.max() <= 40.0 * (1 + 1e-9)
    assert max(force.max() / 70.0, moment.max() / 40.0) > 0.98
    assert found.duration > retime(ARM, waypoints()).duration


def test_a_payload_takes_longer() -> None:
    weak = 0.6 * ARM.effort_limit
    loaded = retime(ARM.with_payload("ee_link", 4.0), waypoints(), torque=weak)
    assert loaded.duration > 1.01 * retime(ARM, waypoints(), torque=weak).duration


def test_a_batch_is_what_single_calls_are() -> None:
    paths = np.stack([waypoints(seed) for seed in range(4)])
    for bounds in ({"knots": 12}, {"knots": 12, "acceleration": 10.0, "torque": INF}):
        batch = retime(ARM, paths, **bounds)
        for found, path in zip(batch, paths, strict=True):
            single = retime(ARM, path, **bounds)
            assert found.duration == pytest.approx(single.duration, rel=1e-12)
            assert found.q == pytest.approx(single.q, abs=1e-12)
    times, knots = np.linspace(0.0, 1.0, 6), np.linspace(0.0, 1.0, 41)
    rubbing = ARM.with_friction("elbow_joint", coulomb=2.0, viscous=3.0)
    for found, path in zip(retime(rubbing, (times, paths), knots=knots, start=0.1), paths, strict=True):
        single = retime(rubbing, (times, path), knots=knots, start=0.1)
        assert found.duration == pytest.approx(single.duration, rel=1e-9)


# Paths


def test_splines_go_through_waypoints_and_blends_stay_near_corners() -> None:
    points = waypoints()
    through = retime(ARM, points)
    assert all(np.abs(through.q - each).max(axis=1).min() < 1e-12 for each in points)
    near = retime(ARM, points, tolerance=0.05)
    q = near.at(np.linspace(0.0, near.duration, 20001)).q
    far = [np.linalg.norm(q - each, axis=1).min() for each in points[1:-1]]
    assert max(far) <= 0.05 + 1e-5 and min(far) > 0.04
    assert np.allclose(q[[0, -1]], points[[0, -1]], rtol=0, atol=1e-12)


def test_trajectories_are_retimed_as_their_positions() -> None:
    points = waypoints()
    times = np.linspace(0.0, 5.0, len(points))
    first = retime(ARM, (times, points))
    names = list(ARM.coordinate_names)
    stamps = [{"sec": int(t), "nanosec": round(t % 1 * 1e9)} for t in times]
    message = {
        "joint_names": names[::-1],
        "points": [{"positions": q[::-1], "time_from_start": t} for q, t in zip(points, stamps, strict=True)],
    }
    assert retime(ARM, message).duration == pytest.approx(first.duration, rel=1e-9)
    again = retime(ARM, first.sample(0.01), knots=2)
    assert again.duration == pytest.approx(first.duration, rel=0.005)


def test_files_have_the_motion(tmp_path: Any) -> None:
    for bounds in ({}, {"torque_rate": 500.0}, {"reactions": {"elbow_joint": {"force": 200.0}}}):
        found = retime(ARM, waypoints(), **bounds)
        found.save(tmp_path / "motion.npz")
        again = torsor.load_result(tmp_path / "motion.npz")
        assert again.at(0.7).q.tolist() == found.at(0.7).q.tolist()
        assert again.report() == found.report()
    found.save(tmp_path / "motion.csv", rate=50.0)
    table = np.loadtxt(tmp_path / "motion.csv", delimiter=",", skiprows=1)
    assert table[:, 1:7] == pytest.approx(found.at(table[:, 0]).q, abs=1e-12)


# What is refused


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ([[0.0], [np.nan]], {}, "waypoints[1, 0] is nan"),
        ([[0.0], [1.0], [1.0]], {}, "waypoints 1 and 2 are equal"),
        ([[0.0, 1.0]], {}, "shape (1, 2)"),
        ([[0.0]], {}, "at least 2 rows"),
        ("line", {}, "real numbers"),
        ([[0.0], [1.0]], {"velocity": 0.0}, "velocity bounds of 'joint1' are 0 to 0"),
        ([[0.0], [1.0]], {"acceleration": [[2.0, -2.0]]}, "negative lower bounds"),
        ([[0.0], [1.0]], {"velocity": None}, "joint1"),
        ([[0.0], [1.0]], {"acceleration": None}, "neither an effort limit nor"),
        ([[0.0], [1.0]], {"acceleration": INF}, "neither an effort limit nor"),
        ([[0.0], [1.0]], {"velocity": [1.0, 2.0]}, "a number, or 1 of them"),
        ([[0.0], [1.0]], {"tolerance": 0.0}, "tolerance"),
        ([[0.0], [1.0]], {"knots": 0}, "knots"),
        ([[0.0], [1.0]], {"knots": [0.0, 0.5]}, "to the last, 1 apart"),
        ([[0.0], [1.0]], {"start": 3.0}, "start"),
        ([[0.0], [1.0]], {"end": 30.0}, "end"),
        ([[0.0], [1.0]], {"jerk": 10.0, "start": 0.1}, "from rest to rest"),
        ([[0.0], [1.0]], {"reactions": {"elbow": {"force": 1.0}}}, "elbow"),
        (([0.0, 0.0], [[0.0], [1.0]]), {}, "times"),
        ({"joint_names": ["joint1"]}, {}, "not a JointTrajectory"),
    ],
)
def test_what_has_no_timing_is_refused_in_words(path: Any, options: Any, words: str) -> None:
    with refused(words):
        retime(LINE, path, **{"velocity": 9.0, "acceleration": 2.0} | options)


def test_gravity_beyond_the_torque_bounds_is_named_with_its_place() -> None:
    rod = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
    with refused(allowed="20 N m"):
        retime(rod, [[0.0], [0.5]], velocity=9.0, torque=20.0)


def test_a_swing_passes_where_gravity_is_beyond_the_torque_bounds() -> None:
    """Energy: from hanging at rest, the work of the torque over a half turn must be that of gravity, 2 m g l."""
    rod = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
    least = 2 * 3.0 * 9.81 / np.pi
    found = retime(rod, [[-np.pi / 2], [np.pi / 2]], velocity=99.0, torque=1.3 * least)
    assert 1.3 * least < rod.gravity_force([0.0])[0]
    assert abs(rod.inverse_dynamics(found.q, found.v, found.a)).max() <= 1.3 * least * (1 + 1e-9)
    with refused(what="standing still needs"):
        retime(rod, [[-np.pi / 2], [np.pi / 2]], velocity=99.0, torque=0.95 * least)


def test_robots_without_a_path_of_joints_are_refused() -> None:
    for robot in (torsor.library.four_bar(), torsor.library.quadruped(), 3):
        with refused(where="retime"):
            retime(robot, [[0.0], [1.0]], velocity=9.0)  # type: ignore[arg-type]
