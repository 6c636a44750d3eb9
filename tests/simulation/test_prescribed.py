"""Prescribed motion: given coordinates follow their functions of time, and the dynamics finds all others."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.simulation.signals import Signal
from torsor.spatial import make_pose

TIME = ca.SX.sym("t")
JOINTS = ("joint1", "joint2", "joint3")


def wave(t):
    """Joint angles of an eel that begins at rest."""
    return np.stack([0.5 * (1 - np.cos(2 * t)) * np.sin(3 * t + k) for k in range(3)], axis=-1)


def traced_wave() -> ca.Function:
    angles = [0.5 * (1 - ca.cos(2 * TIME)) * ca.sin(3 * TIME + k) for k in range(3)]
    return ca.Function("wave", [TIME], [ca.vertcat(*angles)])


@pytest.mark.parametrize("method", ["rk4", pytest.param("adaptive", marks=pytest.mark.slow)])
def test_a_floating_eel_turns_by_its_joints_and_keeps_its_momentum(method: str) -> None:
    eel = torsor.library.eel(4).to(device="casadi")
    motion = torsor.simulate(eel, duration=1.2, step=4e-3, method=method, prescribed={JOINTS: traced_wave()})
    np.testing.assert_allclose(motion.q[:, 7:], wave(motion.times), rtol=0, atol=1e-14)
    tolerance = {"rk4": 1e-9, "adaptive": 1e-8}[method]
    assert np.abs(eel.momentum(motion.q, motion.v)).max() < tolerance
    assert np.ptp(eel.center_of_mass(motion.q), axis=0).max() < tolerance
    assert np.abs(motion.q[-1, 5]) > 0.05  # although it has turned
    # The forces that were found cause this motion, and the base has none.
    assert not motion.tau[:, :6].any()
    np.testing.assert_allclose(eel.forward_dynamics(motion.q, motion.v, motion.tau), motion.a, rtol=0, atol=1e-10)
    by_joints = np.sum(motion.tau * motion.v, axis=-1)
    given = np.sum(np.diff(motion.times) * (by_joints[1:] + by_joints[:-1]) / 2)
    assert motion.energy[-1] - motion.energy[0] == pytest.approx(given, rel=1e-4)


def test_samples_python_functions_and_casadi_functions_are_the_same_motion() -> None:
    eel, duration = torsor.library.eel(4).to(device="casadi"), 0.2
    best = torsor.simulate(eel, duration=duration, step=2.5e-3, prescribed={JOINTS: traced_wave()}).q[-1]
    angles = traced_wave()(TIME)
    rates = ca.jacobian(angles, TIME)
    three = ca.Function("three", [TIME], [angles, rates, ca.jacobian(rates, TIME)])
    times = np.linspace(0.0, duration, 201)
    q, v, a = (np.transpose([row.full().ravel() for row in rows]).T for rows in zip(*map(three, times), strict=True))
    motions = {
        "function of q, v, a": ({JOINTS: three}, 1e-14),
        "Python": ({JOINTS: lambda t: [each.full().ravel() for each in three(t)]}, 1e-14),
        "samples of q, v, a": ({JOINTS: (times, q, v, a)}, 1e-9),
        "samples of q": ({JOINTS: (times, q)}, 1e-6),
        "one by one": ({name: (times, q[:, k], v[:, k], a[:, k]) for k, name in enumerate(JOINTS)}, 1e-9),
    }
    for name, (prescribed, tolerance) in motions.items():
        found = torsor.simulate(eel, duration=duration, step=2.5e-3, prescribed=prescribed).q[-1]
        np.testing.assert_allclose(found, best, rtol=0, atol=tolerance, err_msg=name)


def test_a_prescribed_pivot_drives_a_pendulum() -> None:
    """A cart moves as x(t), the rod on it swings: l a + g cos(q) = sin(q) x'', with q from the horizontal."""
    length = 0.7
    links = [torsor.Link("ground"), torsor.Link("cart"), torsor.Link("rod", 1.0, (length, 0, 0))]
    joints = [
        torsor.Joint("rail", "prismatic", "ground", "cart", axis=(1, 0, 0)),
        torsor.Joint("swing", "revolute", "cart", "rod"),
    ]
    robot = torsor.build("cart", links, joints, gravity=(0, -9.81, 0)).to(device="casadi")
    x = ca.Function("x", [TIME], [0.3 * ca.sin(4 * TIME)])
    motion = torsor.simulate(robot, [0.0, -1.2], duration=0.5, prescribed={"rail": x})
    assert motion.q[0, 0] == 0.0 and motion.v[0, 0] == pytest.approx(1.2)
    q, t = motion.q[:, 1], motion.times
    expected = (-9.81 * np.cos(q) - np.sin(q) * 0.3 * 16 * np.sin(4 * t)) / length
    np.testing.assert_allclose(motion.a[:, 1], expected, rtol=0, atol=1e-11)
    coarse = torsor.simulate(robot, [0.0, -1.2], duration=0.5, step=5e-3, prescribed={"rail": x})
    coarser = torsor.simulate(robot, [0.0, -1.2], duration=0.5, step=0.01, prescribed={"rail": x})
    errors = [abs(each.q[-1, 1] - q[-1]) for each in (coarser, coarse)]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.1)  # order 4 is kept


def test_a_held_joint_is_a_fixed_joint() -> None:
    arm = torsor.library.two_link().to(device="casadi")
    held = torsor.simulate(arm, [0.3, 0.0], duration=0.3, step=5e-3, prescribed={"joint2": 0.8})
    fixed = torsor.simulate(arm.fix("joint2", 0.8), [0.3], duration=0.3, step=5e-3)
    np.testing.assert_allclose(held.q[:, 0], fixed.q[:, 0], rtol=0, atol=1e-13)
    assert (held.q[:, 1] == 0.8).all() and not held.v[:, 1].any()


def test_the_drive_of_a_four_bar_is_found_from_its_crank() -> None:
    robot = torsor.library.four_bar().to(device="casadi")
    start = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    crank = ca.Function("crank", [TIME], [0.5 + 3 * TIME + 0.2 * ca.sin(5 * TIME)])
    motion = torsor.simulate(robot, start, duration=0.5, step=2.5e-3, prescribed={robot.active[0]: crank})
    k, t = robot.coordinate_names.index(robot.active[0]), motion.times
    rates = (3 + np.cos(5 * t))[:, None], (-5 * np.sin(5 * t))[:, None]
    assert np.abs(motion.closure_error).max() < 1e-12
    np.testing.assert_allclose(motion.v, robot.closed.velocities(motion.q, rates[0]), rtol=0, atol=1e-12)
    tau = robot.closed.inverse_dynamics(motion.q, *rates)[:, 0]
    np.testing.assert_allclose(motion.tau[:, k], tau, rtol=0, atol=1e-11)


def snake(edges: int) -> torsor.Robot:
    links = [torsor.Link(f"link{k}", 1.0, inertia=0.01 * np.eye(3)) for k in range(4)]
    joints = [torsor.Joint("planar", "planar", "ground", "link0")]
    joints += [
        torsor.Joint(f"joint{k}", "revolute", f"link{k - 1}", f"link{k}", make_pose(p=[-0.3, 0, 0])) for k in (1, 2, 3)
    ]
    robot = torsor.build("snake", [torsor.Link("ground"), *links], joints).to(device="casadi")
    for k in range(edges):
        robot = robot.with_wheel(f"edge{k}", f"link{k}", kind="edge", axis=(0, 1, 0))
    return robot


def test_the_joints_of_a_snake_on_knife_edges_carry_it() -> None:
    """Three edges leave the base no freedom: its motion follows from the joints by kinematics alone."""
    robot = snake(3)
    angles = [0.6 + 0.2 * ca.sin(3 * TIME), -0.5 + 0.2 * ca.cos(3 * TIME), 0.3 * ca.sin(2 * TIME)]
    given = {JOINTS: ca.Function("angles", [TIME], [ca.vertcat(*angles)])}
    motion = torsor.simulate(robot, duration=0.6, step=4e-3, prescribed=given)
    A = robot.closed.jacobian(motion.q)
    assert np.abs(A @ motion.v[..., None]).max() < 1e-12
    open_rows = robot.closed.closure.velocity_rows
    base = np.linalg.solve(A[:, open_rows, :3], -A[:, open_rows, 3:] @ motion.v[:, 3:, None])[..., 0]
    np.testing.assert_allclose(motion.v[:, :3], base, rtol=0, atol=1e-11)
    mean = np.diff(motion.times)[:, None] * (motion.v[1:, :3] + motion.v[:-1, :3]) / 2
    np.testing.assert_allclose(np.diff(motion.q[:, :3], axis=0), mean, rtol=0, atol=1e-5)
    assert np.ptp(motion.q[:, 0]) > 0.03  # it gets somewhere
    with refused(what="the loops determine 1 of the 3 prescribed coordinates"):
        torsor.simulate(snake(4), duration=1.0, prescribed=given)


def test_wheels_with_given_rates_drive_a_circle() -> None:
    drive = torsor.library.differential_drive(0.1, 0.5).to(device="casadi")
    given = {side: ca.Function("turn", [TIME], [rate * TIME]) for side, rate in (("left", 2.0), ("right", 3.0))}
    motion = torsor.simulate(drive, duration=1.0, step=5e-3, prescribed=given)
    np.testing.assert_allclose(motion.q[:, 0], 0.25 / 0.2 * np.sin(0.2 * motion.times), rtol=0, atol=1e-12)
    tau = drive.closed.inverse_dynamics(motion.q, [2.0, 3.0], [0.0, 0.0])
    np.testing.assert_allclose(motion.tau[:, 3:5], tau, rtol=0, atol=1e-12)


def test_rollouts_share_the_motion_and_have_their_own_bases() -> None:
    eel = torsor.library.eel(4).to(device="casadi")
    v0 = np.zeros((3, eel.nv))
    v0[:, 3] = [0.0, 0.5, 1.0]
    motion = torsor.simulate(eel, v0=v0, duration=0.2, step=5e-3, prescribed={JOINTS: traced_wave()})
    for k in range(3):
        alone = torsor.simulate(eel, v0=v0[k], duration=0.2, step=5e-3, prescribed={JOINTS: traced_wave()})
        np.testing.assert_allclose(motion.q[k], alone.q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(motion.tau[k], alone.tau, rtol=0, atol=1e-13)


def test_a_spline_is_exact_for_cubics_and_smooth() -> None:
    times = np.array([0.0, 0.3, 0.5, 1.1, 1.2, 2.0])
    curve = Signal.through(times, np.stack([times**3 - 2 * times, 1 + times**2], axis=-1))
    for t in (0.0, 0.21, 0.9, 1.15, 2.0):
        q, v, a = curve.at(t)
        np.testing.assert_allclose(q, [t**3 - 2 * t, 1 + t**2], rtol=0, atol=1e-13)
        np.testing.assert_allclose(v, [3 * t**2 - 2, 2 * t], rtol=0, atol=1e-12)
        np.testing.assert_allclose(a, [6 * t, 2.0], rtol=0, atol=1e-11)
    rough = Signal.through(times, np.sin(7 * times)[:, None])
    for t in times[1:-1]:
        for before, after in zip(rough.at(t - 1e-12), rough.at(t), strict=True):
            np.testing.assert_allclose(before, after, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("prescribed", "message"),
    [
        ([0.3], "{coordinate: motion}"),
        ({"root/x": 0.3}, "root/x"),
        ({"joint9": 0.3}, "joint9"),
        ({("joint1", "joint2"): 0.0, "joint1": 1.0}, "joint1"),
        ({(): 0.3}, "`prescribed` is empty"),
        ({"joint1": "fast"}, "position"),
        ({"joint1": np.nan}, "positions are nan"),
        ({("joint1", "joint2"): [0.0, np.inf]}, "finite numbers"),
        (
            {"joint1": (np.linspace(0, 0.5, 5), np.zeros(5))},
            "samples from 0 s to 0.5 s",
        ),
        ({"joint1": ([0.0, 1.0, 0.5], np.zeros(3))}, "increasing times"),
        ({"joint1": ([0.0, 1.0], np.zeros((2, 2)))}, "samples of shape (2, 2)"),
        ({"joint1": ([0.0, 1.0], [0.0, np.nan])}, "not finite"),
        ({"joint1": ([0.0, 1.0], [0.0, 1.0], [1.0, 1.0])}, "3 arrays"),
        ({"joint1": lambda t: t}, "does not return numbers at t = 0 s"),
        ({"joint1": ca.Function("f", [TIME], [TIME, TIME])}, "t -> q or t ->"),
        ({("joint1", "joint2"): ca.Function("f", [TIME], [TIME])}, "each of size"),
    ],
)
def test_a_motion_that_cannot_be_is_refused(prescribed, message: str) -> None:
    with refused(message):
        torsor.simulate(torsor.library.eel(3).to(device="casadi"), duration=1.0, prescribed=prescribed)


@pytest.mark.parametrize("method", ["implicit", "sdirk"])
def test_methods_without_prescribed_motion_say_so(method: str) -> None:
    with refused(argument="method", value=method):
        torsor.simulate(
            torsor.library.eel(3).to(device="casadi"), duration=0.1, method=method, prescribed={"joint1": 0.3}
        )


JUMPS = {
    "position changes by 1 from t = 0.1 s to 0.105 s": lambda t: (float(t > 0.101), 0.0, 0.0),
    "position changes by 0.01 from": lambda t: (2 * t, 1.0, 0.0),  # the velocity of another motion
    "velocity changes by 0.5 from t = 0.1 s to 0.105 s": lambda t: (max(0.0, 0.5 * (t - 0.1)), 0.5 * (t > 0.1), 0.0),
    "velocity changes by": lambda t: (np.sin(t), np.cos(t), 0.0),  # no acceleration
}


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
@pytest.mark.parametrize("message", JUMPS)
def test_a_motion_that_jumps_or_contradicts_itself_gets_one_warning(message: str, method: str) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    with warned(where="joint1", what=message) as found:
        torsor.simulate(arm, duration=0.2, step=5e-3, method=method, prescribed={"joint1": JUMPS[message]})
    assert len(found) == 1


def test_accelerations_may_jump_and_steps_may_be_long() -> None:
    """A trapezium of velocities, and a sine of four steps a period, are no jumps; warnings are errors here."""
    arm = torsor.library.planar_chain(2).to(device="casadi")

    def trapezium(t):
        rising = min(t, 0.083)
        return 40 * rising**2 / 2 + 40 * rising * max(0.0, t - 0.083), 40 * rising, 40.0 * (t < 0.083)

    torsor.simulate(arm, duration=0.2, step=5e-3, prescribed={"joint1": trapezium})
    fast = ca.Function("fast", [TIME], [1e-3 * ca.sin(2 * np.pi * TIME / 0.02)])
    torsor.simulate(arm, duration=0.2, step=5e-3, prescribed={"joint1": fast})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("rk4", "the prescribed motion may be out of their reach"),
        pytest.param("adaptive", "do not determine a motion with 'rocker_joint' as prescribed", marks=pytest.mark.slow),
    ],
)
def test_a_motion_beyond_the_reach_of_the_loops_ends_there(method: str, message: str) -> None:
    robot = torsor.library.four_bar().to(device="casadi")
    start = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    away = {"rocker_joint": ca.Function("away", [TIME], [start[2] + 3 * TIME])}
    with refused(what=message, error=torsor.SimulationError) as found:
        torsor.simulate(robot, start, duration=1.0, step=2e-3, method=method, prescribed=away)
    assert 0.33 < found.value.trajectory.times[-1] < 0.36
    with refused(what="q0 does not close the loops with the prescribed positions at t = 0"):
        torsor.simulate(robot, start, duration=1.0, prescribed={"rocker_joint": start[2] + 0.1})
