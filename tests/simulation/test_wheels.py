"""Wheels in simulation: they stay on the ground and do not slip, to rounding; energy and known motions."""

import numpy as np
import pytest

import torsor
from refusals import refused

FINEST = 1e-12  # m and m/s: heights and slips in a simulation


def slip(motion: torsor.Trajectory) -> float:
    """Return the largest height and slip along a motion."""
    return max(float(np.abs(each).max()) for each in (motion.closure_error, motion.closure_rate))


@pytest.mark.parametrize(
    "method", ["rk4", *(pytest.param(each, marks=pytest.mark.slow) for each in ("implicit", "adaptive"))]
)
def test_a_disc_wobbles_without_slipping_and_keeps_its_energy(method: str) -> None:
    disc = torsor.library.rolling_disc().to(device="casadi")
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.2, 0, 0, 0, 0, 0]))
    v = disc.closed.velocities(q, [0.1, 8.0, 0.5, 0, 0, 0], coordinates="all")
    motion = torsor.simulate(disc, q, v, 2.0, method=method, step=2e-3)
    assert np.ptp(motion.q[:, 2]) > 0.02  # it leans over, and comes up again
    assert slip(motion) < FINEST
    scale = np.abs(motion.energy).max()
    assert np.ptp(motion.energy) < {"rk4": 1e-6, "implicit": 5e-4, "adaptive": 1e-5}[method] * scale


@pytest.mark.slow
def test_wheels_roll_for_a_minute_without_slipping() -> None:
    disc = torsor.library.rolling_disc()
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.2, 0, 0, 0, 0, 0]))
    motion = torsor.simulate(
        disc, q, disc.closed.velocities(q, [0.1, 8.0, 0.5, 0, 0, 0], coordinates="all"), 60.0, record=0.01
    )
    assert slip(motion) < FINEST
    assert np.ptp(motion.energy) < 1e-6 * np.abs(motion.energy).max()
    drive = torsor.library.differential_drive()

    def torque(t, q, v):
        return np.array([0.3 * np.sin(t), 0.2 * np.cos(0.7 * t)]) - 0.1 * v[..., 3:5]

    motion = torsor.simulate(drive, duration=60.0, controller=torque, step=2e-3, record=0.01)
    assert slip(motion) < FINEST


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-11), ("implicit", 1e-5)])
def test_chaplygins_sleigh_turns_as_its_solution_does(method: str, tolerance: float) -> None:
    """With the speed v and the rate w, v = V tanh(k t + d) and w = V sqrt(m/J) sech(k t + d), k = a V m / J."""
    m, moment, ahead = 2.0, 0.3, 0.4
    runner = torsor.Link("sleigh", m, (ahead, 0, 0), moment * np.eye(3))
    planar = torsor.Joint("planar", "planar", "ground", "sleigh")
    sleigh = torsor.build("sleigh", [torsor.Link("ground"), runner], [planar])
    sleigh = sleigh.with_wheel("edge", "sleigh", kind="edge", axis=(0, 1, 0)).to(device="casadi")
    motion = torsor.simulate(sleigh, v0=[-0.5, 0.0, 2.0], duration=1.0, method=method, step=2e-3)
    about = moment + m * ahead**2
    most = np.hypot(0.5, np.sqrt(about / m) * 2.0)
    phase = ahead * most * m / about * motion.times + np.arctanh(-0.5 / most)
    np.testing.assert_allclose(motion.v[:, 2], most * np.sqrt(m / about) / np.cosh(phase), rtol=0, atol=tolerance)
    speed = np.cos(motion.q[:, 2]) * motion.v[:, 0] + np.sin(motion.q[:, 2]) * motion.v[:, 1]
    np.testing.assert_allclose(speed, most * np.tanh(phase), rtol=0, atol=tolerance)
    assert slip(motion) < FINEST


def test_a_ball_comes_down_a_slope_as_galileo_says() -> None:
    m, r, angle = 1.0, 0.1, 0.2
    ball = torsor.Link("ball", m, np.zeros(3), 0.4 * m * r**2 * np.eye(3))
    robot = torsor.build(
        "ball", [ball], [], base="floating", gravity=9.81 * np.array([np.sin(angle), 0, -np.cos(angle)])
    )
    robot = robot.with_wheel("contact", "ball", r, "ball").to(device="casadi")
    start = np.r_[0.0, 0.0, r, robot.neutral()[3:]]
    motion = torsor.simulate(robot, start, duration=1.0)
    np.testing.assert_allclose(motion.q[:, 0], 5 / 14 * 9.81 * np.sin(angle) * motion.times**2, rtol=0, atol=1e-9)
    assert slip(motion) < FINEST


def test_rollouts_and_events_of_a_car() -> None:
    car = torsor.library.bicycle_car().to(device="casadi")
    q = car.closed.assemble([[0.0, 0.1], [0.0, -0.1]])
    v = car.closed.velocities(q, [10.0, 0.0])
    motion = torsor.simulate(car, q, v, 0.5, controller=[50.0, 0.0], step=5e-3)
    np.testing.assert_allclose(motion.q[0, :, 1], -motion.q[1, :, 1], rtol=0, atol=1e-12)  # left and right
    assert slip(motion) < FINEST
    given = np.trapezoid(50.0 * motion.v[..., 3], motion.times, axis=-1)
    np.testing.assert_allclose(motion.energy[:, -1] - motion.energy[:, 0], given, rtol=1e-5)


def test_the_implicit_method_is_of_order_two_with_wheels() -> None:
    disc = torsor.library.rolling_disc().to(device="casadi")
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.3, 0, 0, 0, 0, 0]))
    v = disc.closed.velocities(q, [0.1, 6.0, 0.5, 0, 0, 0], coordinates="all")
    best = torsor.simulate(disc, q, v, 0.2, step=1e-3).q[-1]
    errors = [
        np.abs(torsor.simulate(disc, q, v, 0.2, method="implicit", step=h).q[-1] - best).max() for h in (4e-3, 2e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


def test_between_coarse_samples_wheels_do_not_slip_either() -> None:
    disc = torsor.library.rolling_disc().to(device="casadi")
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.3, 0, 0, 0, 0, 0]))
    v = disc.closed.velocities(q, [0.0, 0.5, 20.0, 0, 0, 0], coordinates="all")
    now = torsor.simulate(disc, q, v, 0.2, step=2e-3, record=0.1).at(np.linspace(0.0, 0.2, 30))
    assert np.abs(disc.closed.error(now.q)).max() < FINEST
    assert np.abs(disc.closed.jacobian(now.q) @ now.v[..., None]).max() < FINEST


def test_a_disc_that_falls_flat_ends_with_an_error_and_does_not_slip_before() -> None:
    disc = torsor.library.rolling_disc().to(device="casadi")
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.3, 0, 0, 0, 0, 0]))
    for rate in (0.0, 3.0):  # the second passes 0.2 degrees above the ground, in steps that are too long for it
        v = disc.closed.velocities(q, [0, rate, rate / 3, 0, 0, 0], coordinates="all")
        with refused(what="the wheels not kept from slipping,", error=torsor.SimulationError) as found:
            torsor.simulate(disc, q, v, 0.4)
        speed = np.linalg.norm(found.value.trajectory.v, axis=-1).max()
        assert slip(found.value.trajectory) < 1e-10 * 0.3 * speed  # the bound of a step, of the disc's size


def test_sdirk_refuses_wheels() -> None:
    with refused(argument="method", value="sdirk"):
        torsor.simulate(torsor.library.bicycle_car().to(device="casadi"), duration=0.1, method="sdirk")
