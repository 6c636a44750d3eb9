"""Computed torque and PD with gravity: errors obey their equations, and the robot rests at the reference."""

import warnings
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from control.closed_loop import random_states, run, sines
from refusals import refused, warned
from torsor import control, motion
from torsor.mechanism.edit import _with_joint

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_of_computed_torque_obeys_its_linear_equation(seed: int) -> None:
    robot = torsor.library.random_tree(6, seed, ("revolute", "prismatic", "helical", "planar"))
    for joint in robot.elastic:
        robot = robot.without_motor(joint.name)
    kp, kd = np.linspace(50, 100, robot.nv), np.linspace(10, 30, robot.nv)
    law = control.computed_torque(robot, sines(robot.nv), kp, kd)
    for t, q, v in random_states(robot, 5, seed):
        q_d, v_d, a_d = law.reference(t)
        a = robot.forward_dynamics(q, v, law(t, q, v))
        error = (a_d - a) + kd * (v_d - v) + kp * (q_d - q)
        assert np.abs(error).max() < 1e-9 * max(1.0, np.abs(a).max())


def test_a_bandwidth_gives_a_critically_damped_error() -> None:
    robot = torsor.library.two_link()
    law = control.computed_torque(robot, sines(2), bandwidth=8.0)
    q_d, v_d, _ = law.reference(0.0)
    e = np.array([0.3, -0.2])
    for t, q, _ in run(law, q_d - e, v_d, 1.0):
        expected = e * (1 + 8.0 * t) * np.exp(-8.0 * t)
        np.testing.assert_allclose(law.reference(t)[0] - q, expected, atol=1e-9)


def test_a_reference_has_exact_rates() -> None:
    robot = torsor.library.two_link()
    law = control.reference(robot, lambda t: ca.vertcat(ca.exp(2 * t), t**3))
    t = np.array([0.0, 0.7])
    q_d, v_d, a_d = law(t)
    np.testing.assert_allclose(q_d, np.stack([np.exp(2 * t), t**3], -1), rtol=1e-14)
    np.testing.assert_allclose(v_d, np.stack([2 * np.exp(2 * t), 3 * t**2], -1), rtol=1e-14)
    np.testing.assert_allclose(a_d, np.stack([4 * np.exp(2 * t), 6 * t], -1), rtol=1e-14)
    symbol = ca.SX.sym("t")
    fourth = ca.Function("f", [symbol], [law.rates(symbol, 4)[4]])
    assert float(fourth(0.7)[0]) == pytest.approx(16 * np.exp(1.4), rel=1e-13)
    assert control.reference(robot, law)(0.3)[0].tolist() == law(0.3)[0].tolist()


def test_a_sampled_motion_is_the_function_of_time_that_it_samples() -> None:
    robot, times = torsor.library.planar_chain(2), np.array([0.0, 0.3, 0.5, 1.1, 1.2, 2.0])

    def cubic(t):
        return [t**3 - 2 * t, 1 + t**2]

    def quintic(t):
        return [t**5 - t, 1 + 0.1 * t**4]

    samples = np.stack([times**5 - times, 1 + 0.1 * times**4], -1)
    v = np.stack([5 * times**4 - 1, 0.4 * times**3], -1)
    a = np.stack([20 * times**3, 1.2 * times**2], -1)
    cubes = np.stack(cubic(times), -1)
    for given, law in (((times, cubes), cubic), ((times, samples, v, a), quintic)):
        sampled, exact = (control.computed_torque(robot, each, bandwidth=10.0) for each in (given, law))
        t = np.random.default_rng(0).uniform(0, 2, 50)
        for found, expected in zip(sampled.reference(t), exact.reference(t), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        q, v_now = np.random.default_rng(1).normal(size=(2, 50, 2))
        np.testing.assert_allclose(sampled(t, q, v_now), exact(t, q, v_now), rtol=1e-9, atol=1e-9)
        runs = [torsor.simulate(robot, [0.1, 0.9], duration=2.0, controller=each) for each in (sampled, exact)]
        np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(runs[0].tau, runs[1].tau, rtol=0, atol=1e-6)
        limited = [each.saturated(5.0)(0.7, [0.0, 0.5], [0.0, 0.0]) for each in (sampled, exact)]
        np.testing.assert_allclose(*limited, rtol=0, atol=1e-9)
        parts = sampled.reference.window(0.7)
        held = float(np.array(sampled.sampled(0.1)(7, [0, 0.5], [0, 0], parts))[0, 0])
        assert held == pytest.approx(sampled(0.7, [0.0, 0.5], [0.0, 0.0])[0], rel=1e-12)
    before, after = sampled.reference(-1.0), sampled.reference(3.0)
    assert before[0].tolist() == samples[0].tolist() and after[0] == pytest.approx(samples[-1], abs=1e-12)
    assert not np.any([before[1:], after[1:]])


def test_every_result_and_its_file_is_a_reference(tmp_path: Path) -> None:
    arm = torsor.library.two_link()
    retimed = torsor.motion.retime(arm, [[0.0, -2.0], [0.5, -1.2], [1.0, -1.0]], velocity=2.0, acceleration=10.0)
    phase, ends = (
        motion.Phase(duration=(0.1, 2.0)),
        [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)],
    )
    planned = torsor.MotionProblem(arm, phase, motion.Time(), [*ends, motion.Torques(upper=10.0)]).solve()
    swing = torsor.simulate(arm, v0=[1.0, -0.5], duration=0.3, step=0.01)
    for result in (retimed, planned, swing):
        law = control.computed_torque(arm, result, bandwidth=30.0)
        t = np.linspace(*result.times[[0, -1]], 1000)
        np.testing.assert_allclose(law.reference(t)[0], result.at(t).q, rtol=0, atol=1e-6)
        start = result.at(0.0)
        found = torsor.simulate(arm, start.q, start.v, result.times[-1], controller=law)
        assert np.sqrt(np.mean((found.q - result.at(found.times).q) ** 2)) < 1e-6
        result.save(tmp_path / "motion.npz")
        read = control.reference(arm, tmp_path / "motion.npz")
        np.testing.assert_allclose(read(t)[0], law.reference(t)[0], rtol=0, atol=1e-12)
    swing.save(tmp_path / "swing.csv")
    np.testing.assert_allclose(
        control.reference(arm, str(tmp_path / "swing.csv"))(0.123)[0], swing.at(0.123).q, atol=1e-8
    )


def test_a_panda_tracks_what_it_planned_and_retimed_below_1_mrad() -> None:
    arm, away = torsor.library.panda(), [1.2, -0.3, -0.4, -1.8, 0.5, 2.0, 1.2]
    home = [0.0, -0.5, 0.0, -2.2, 0.0, 1.7, 0.8]
    ends = [motion.Start(q=home, v=0.0), motion.End(q=away, v=0.0)]
    plan = torsor.MotionProblem(arm, motion.Phase(1.0), motion.Jerk(), ends).solve()
    timed = torsor.motion.retime(arm, plan)
    law = control.computed_torque(arm, timed, bandwidth=30.0)
    found = torsor.simulate(arm, timed.q[0], duration=timed.duration, controller=law)
    assert np.sqrt(np.mean((found.q - timed.at(found.times).q) ** 2)) < 1e-3
    assert not found.overloads


def test_motions_that_are_no_reference_are_refused(tmp_path: Path) -> None:
    arm = torsor.library.two_link()
    many = torsor.simulate(arm, np.zeros((3, 2)), duration=0.01)
    cases = (
        (many, {"what": "3 motions", "fix": "result[0]"}),
        (([1.0, 2.0], np.zeros((2, 2))), {"what": "1 s", "fix": "times - times[0]"}),
        (([0.0, 1.0], np.zeros((2, 3))), {"allowed": "(2, 2), a row for each time"}),
        (([0.0, 0.0], np.zeros((2, 2))), {"allowed": "increasing times"}),
        (([0.0, 1.0, np.nan], np.zeros((3, 2))), {"what": "times[1] is 1 s, and the next one is nan"}),
        (([0.0, 1e-300], np.eye(2)), {"what": "too steep"}),
        (([0.0, 1e-200], np.eye(2), np.eye(2), np.eye(2)), {"what": "too steep"}),
        (None, {"allowed": "(times, q), or a file"}),
        (([0.0, 1.0], [[0.0, 0.0], [0.0, np.nan]]), {"allowed": "finite"}),
        (([0.0, 1.0], np.zeros((2, 2)), np.zeros((2, 2))), {"allowed": "(times, q, v, a)"}),
        ("motion.txt", {"allowed": ".npz, .csv"}),
    )
    (tmp_path / "motion.txt").write_text("1")
    for law, fields in cases:
        law = tmp_path / law if isinstance(law, str) else law
        with refused(**fields):
            control.computed_torque(arm, law, bandwidth=10.0)
    quadruped = torsor.library.quadruped()
    with refused(what="quaternions", allowed="constant"):
        control.gravity_pd(quadruped, ([0.0, 1.0], np.zeros((2, quadruped.nq))), 1.0, 1.0)
    law = control.computed_torque(arm, ([0.0, 1.0], np.zeros((2, 2))), bandwidth=10.0)
    with refused(fix="pass the controller itself"):
        torsor.simulate(arm, controller=law.function)
    with refused(what="computed_torque takes") as caught:  # the law itself, of another robot
        torsor.simulate(torsor.library.planar_chain(3), controller=law)
    assert not caught.value.fix


def test_a_motion_of_other_joints_is_named(tmp_path: Path) -> None:
    arm, other = torsor.library.six_axis_arm(), torsor.library.ur5()
    motion_of_other = torsor.simulate(other.to(device="casadi"), duration=0.01)
    motion_of_other.save(tmp_path / "other.npz")
    for law in (motion_of_other, tmp_path / "other.npz"):
        with warned(what=f"in the place of {arm.position_names[0]}", fix="plan the motion with this robot"):
            control.reference(arm, law)


def test_velocities_in_degrees_are_named() -> None:
    arm, t = torsor.library.two_link(), np.linspace(0.0, 1.0, 21)[:, None]
    w = np.array([3.0, 0.0])  # the second joint rests
    q, v, a = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    for wrong, name in (((q, np.degrees(v), a), "v"), ((q, v, np.zeros_like(a)), "a")):
        with warned(what=f"{name} is not the derivative", where="two_link: reference", fix="units"):
            control.reference(arm, (t[:, 0], *wrong))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        control.reference(arm, (t[:, 0], q, v, a))


def test_samples_in_a_list_are_samples() -> None:
    arm, times, q = torsor.library.two_link(), np.array([0.0, 0.5, 1.0]), np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    for law in ((times, q), [times, q], [times.tolist(), q.tolist()]):
        assert np.allclose(control.reference(arm, law)(0.25)[0], [0.5, 2.0], rtol=1e-12)
    assert control.reference(arm, [0.5, 2.0])(9.0)[0].tolist() == [0.5, 2.0]


def test_arrays_have_leading_axes_and_the_target_is_the_robots() -> None:
    robot = torsor.library.six_axis_arm()
    law = control.gravity_pd(robot, np.zeros(6), 100.0, 20.0)
    states = list(random_states(robot, 4))
    t, q, v = (np.stack(each) for each in zip(*states, strict=True))
    single = np.stack([law(*state) for state in states])
    np.testing.assert_allclose(law(t, q, v), single, rtol=1e-14)
    low = control.gravity_pd(robot.to(dtype="float32"), np.zeros(6), 100.0, 20.0)
    assert low(t, q, v).dtype == np.float32


def test_pd_with_gravity_dissipates_only_by_its_damping() -> None:
    """The energy of motion, and of the virtual springs kp, falls by v . kd v and friction."""
    robot = torsor.library.six_axis_arm().without_friction().with_spring("joint2", 50.0, rest=0.3)
    law = control.gravity_pd(robot, np.full(6, 0.2), 100.0, 20.0)
    for t, q, v in random_states(robot, 4):
        tau = law(t, q, v) - robot.gravity_force(q) - robot.spring_force(q)
        np.testing.assert_allclose(tau, 100 * (0.2 - q) - 20 * v, atol=1e-11)
    np.testing.assert_allclose(
        robot.forward_dynamics(np.full(6, 0.2), np.zeros(6), law(0.0, np.full(6, 0.2), np.zeros(6))), 0, atol=1e-9
    )


def test_pd_holds_a_floating_base() -> None:
    robot = torsor.library.random_tree(5, 3, ("free", "spherical", "revolute", "prismatic", "revolute"))
    for joint in robot.elastic:
        robot = robot.without_motor(joint.name)
    rng = np.random.default_rng(0)
    q_d = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    law = control.gravity_pd(robot, q_d, 100.0, 20.0)
    still = np.zeros(robot.nv)
    np.testing.assert_allclose(robot.forward_dynamics(q_d, still, law(0.0, q_d, still)), 0, atol=1e-9)
    v, q = rng.normal(size=robot.nv), robot.integrate(q_d, 0.1 * rng.normal(size=robot.nv))
    expected = 100 * robot.difference(q, q_d) - 20 * v + robot.gravity_force(q) + robot.spring_force(q)
    np.testing.assert_allclose(law(0.0, q, v), expected, atol=1e-10)


def test_pd_of_motors_brings_elastic_joints_to_the_reference() -> None:
    robot = torsor.library.elastic_arm().with_spring("joint3", 15.0, rest=0.1).with_friction("joint3", viscous=2.0)
    robot = robot.without_motor("joint3").with_motor("joint3", 0.004, 10.0, "link1", stiffness=100.0, damping=0.5)
    robot = _with_joint(robot, "joint3", lambda joint: replace(joint, ratio=-1.5, offset=0.2))
    q_d = np.array([0.2, 0.4, -0.3])
    law = control.gravity_pd(robot, q_d, 60.0, 15.0)
    *_, (_, q, v) = run(law, np.zeros(4), np.zeros(4), 10.0, 4e-3)
    np.testing.assert_allclose(q[:3], q_d, atol=1e-5)
    assert np.abs(v).max() < 1e-4
    assert law(0.0, np.zeros(4), np.zeros(4))[2] == 0.0
