"""Elastic arms with damped springs and motors on links: exact feed-forward, stable loops, tracking, limits, C code."""

import subprocess
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import torsor
from control.closed_loop import run, sines
from refusals import refused
from torsor import control


def arm(damping: float = 0.0, gear: float = 30.0) -> torsor.Robot:
    """Two links in a vertical plane; the second motor sits on the first link."""
    robot = torsor.library.planar_chain(2)
    for joint, carrier in (("joint1", "base"), ("joint2", "link1")):
        robot = robot.with_motor(joint, 1e-3, gear, carrier, stiffness=300.0, damping=damping)
    return robot


def residual(robot: torsor.Robot, passes: int) -> float:
    forward = control.elastic_feed_forward(robot, sines(2), passes)
    return max(float(forward(t)[4]) for t in (0.1, 0.7, 1.9))


def eigenvalues(law: control.Controller, q: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of the closed loop, linearised at rest at q."""
    robot = law.robot
    x = ca.SX.sym("x", robot.nq + robot.nv)
    at, rates = x[: robot.nq], x[robot.nq :]
    flow = ca.vertcat(rates, robot.function("forward_dynamics")(at, rates, law.function(0, at, rates)))
    A = ca.Function("A", [x], [ca.jacobian(flow, x)])(np.concatenate([q, np.zeros(robot.nv)])).full()
    return np.linalg.eigvals(A)


def test_feed_forward_is_exact_without_damping_and_after_two_passes_with_a_motor_on_a_link() -> None:
    assert residual(arm(), 1) > 1e-4  # the rotor of joint 2 turns with link 1
    assert residual(arm(), 2) < 1e-13


def test_damping_leaves_a_residual_that_shrinks_with_each_pass() -> None:
    found = [residual(arm(damping=1.0), passes) for passes in (1, 2, 3, 4)]
    assert all(after < 0.05 * before for before, after in pairwise(found))
    assert found[-1] < 1e-7


def test_feed_forward_solves_the_equations_of_motion() -> None:
    """The motor rates are derivatives of the motor angles, and tau produces the desired motion of the whole robot."""
    robot, h = arm(damping=0.2), 1e-4
    forward = control.elastic_feed_forward(robot, sines(2), 4)
    q, v, a, tau, left = (each.full().ravel() for each in forward(0.4))
    ahead, behind = (forward(0.4 + step)[0].full().ravel() for step in (h, -h))
    assert np.abs((ahead - behind) / (2 * h) - v).max() < 1e-7
    assert np.abs(robot.forward_dynamics(q, v, tau) - a).max() < 1e-6
    assert left[0] < 1e-9


@pytest.mark.parametrize("damping", [0.0, 0.5, 2.0])
def test_the_closed_loop_is_stable_at_many_postures(damping: float) -> None:
    robot = arm(damping)
    slowest = []
    for q in ([0.0, 0.0], [1.2, -0.8], [np.pi / 2, 0.0], [-2.0, 1.0], [np.pi, 3.0]):
        law = control.elastic_tracking(robot, q, kp=400.0, kd=40.0)
        slowest.append(eigenvalues(law, control.motor_equilibrium(robot, q)).real.max())
    assert max(slowest) < -0.5


def test_tracking_is_exact_where_pd_with_gravity_is_not() -> None:
    robot = arm(damping=0.5)
    forward = control.elastic_feed_forward(robot, sines(2), 4)
    start = [each.full().ravel() for each in forward(0)[:2]]
    worst = {}
    for law in (
        control.elastic_tracking(robot, sines(2), kp=400.0, kd=40.0, passes=4),
        control.gravity_pd(robot, sines(2), kp=400.0, kd=40.0),
    ):
        errors = [np.abs(q[:2] - law.reference(t)[0]).max() for t, q, _ in run(law, *start, seconds=0.3)]
        worst[law.function.name()] = max(errors)
    assert worst["elastic_tracking"] < 1e-8
    assert worst["gravity_pd"] > 1e-3


@pytest.mark.parametrize(
    ("name", "gains"),
    [
        ("elastic_tracking", {"kp": 400.0, "kd": 40.0}),
        ("mixed", {"K_D": 30.0, "Lambda": 8.0, "K_D_motor": 20.0, "Lambda_motor": 40.0}),
        ("feedback_linearization", {"poles": 20.0}),
    ],
)
def test_a_sampled_motion_is_tracked_through_elastic_joints(name: str, gains: dict[str, float]) -> None:
    robot = torsor.library.planar_chain(2)
    for joint in ("joint1", "joint2"):
        robot = robot.with_motor(joint, 1e-3, 30.0, "base", stiffness=300.0)
    exact, times = control.reference(robot, sines(2)), np.linspace(0.0, 0.3, 61)
    forward = control.elastic_feed_forward(robot, sines(2))
    q0, v0 = (each.full().ravel() for each in forward(0)[:2])
    law = getattr(control, name)(robot, (times, *exact(times)), **gains)
    found = torsor.simulate(robot, q0, v0, 0.3, controller=law)
    assert np.abs(found.q[:, :2] - exact(found.times)[0]).max() < 1e-6  # four rates, of samples 5 ms apart


def test_errors_at_the_start_vanish() -> None:
    robot = arm(damping=2.0)
    law = control.elastic_tracking(robot, sines(2), kp=400.0, kd=40.0)
    forward = control.elastic_feed_forward(robot, sines(2))
    q, v = (each.full().ravel() for each in forward(0)[:2])
    *_, (t, q, v) = run(law, q + 0.05, v, seconds=4.0, step=2e-3)
    assert np.abs(q[:2] - law.reference(t)[0]).max() < 2e-3


def test_motors_at_equilibrium_do_not_move() -> None:
    robot = arm(damping=1.0)
    q = control.motor_equilibrium(robot, [0.3, -0.7])
    tau = robot.inverse_dynamics(q, np.zeros(4), np.zeros(4))
    assert np.abs(tau[:2]).max() < 1e-12  # no drive acts on the joints themselves
    law = control.elastic_tracking(robot, [0.3, -0.7], kp=300.0, kd=10.0)
    assert np.abs(law(0.0, q, np.zeros(4)) - tau).max() < 1e-12


def test_saturation_clips_and_keeps_the_law_within_limits() -> None:
    law = control.computed_torque(torsor.library.six_axis_arm(), np.zeros(6), bandwidth=30.0)
    q = np.random.default_rng(0).uniform(-1, 1, (20, 6))
    free, bound = law(0.0, q, np.zeros(6)), law.saturated()(0.0, q, np.zeros(6))
    limit = law.robot.effort_limit
    assert np.array_equal(bound, np.clip(free, -limit, limit)) and (np.abs(free) > limit).any()
    with refused(fix="give limit="):
        control.gravity_compensation(torsor.library.planar_chain(1)).saturated()
    for limit in (0.0, -1.0, [1.0], float("nan")):
        with refused(argument="limit"):
            law.saturated(limit)


def test_a_force_that_is_no_number_is_not_saturated_to_a_full_one() -> None:
    law = control.computed_torque(torsor.library.two_link(), np.zeros(2), bandwidth=30.0).saturated(3.0)
    assert np.isnan(law(0.0, [np.nan, 0.0], np.zeros(2))).all()


def test_forces_are_written_to_a_given_array() -> None:
    law, tau = control.gravity_compensation(torsor.library.planar_chain(2)), np.full((3, 2), np.nan)
    assert law(0.0, np.zeros((3, 2)), np.zeros(2), out=tau) is tau
    assert np.array_equal(tau, law(0.0, np.zeros((3, 2)), np.zeros(2)))


def test_c_code_of_a_controller_in_discrete_time(tmp_path) -> None:
    law = control.computed_torque(torsor.library.two_link(), lambda t: [ca.sin(t), 0.1], bandwidth=10.0).saturated(8.0)
    paths = law.export_c(tmp_path, period=1e-3, name="law", prefix="arm_")
    assert [path.name for path in paths] == ["law.h", "law.c", "CMakeLists.txt"]
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include "law.h"\nint main(void) {\n'
        "    uint32_t k[1] = {700}; double q[2] = {0.3, -0.2}, v[2] = {0.5, 0.1}, tau[2];\n"
        '    arm_computed_torque(k, q, v, tau);\n    printf("%.17g %.17g", tau[0], tau[1]);\n    return 0;\n}\n'
    )
    program = tmp_path / "main"
    subprocess.run(["cc", "-std=c99", "-O1", str(main), str(paths[1]), "-lm", "-o", str(program)], check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    expected = law(0.7, [0.3, -0.2], [0.5, 0.1])
    assert np.allclose(np.array(output.split(), dtype=float), expected, rtol=1e-13)
    with refused(argument="period"):
        law.sampled(0.0)


@pytest.mark.parametrize(("dtype", "kind", "tolerance"), [("float64", "double", 1e-12), ("float32", "float", 2e-3)])
def test_the_sample_number_of_a_c_controller_counts_beyond_the_24_bits_of_a_float(
    tmp_path, dtype: str, kind: str, tolerance: float
) -> None:
    law = control.computed_torque(torsor.library.two_link(), lambda t: [0.1 * t, 0.2], bandwidth=1.0)
    _, source, _ = law.export_c(tmp_path, dtype, period=1e-3, name="law")
    main, program, k = tmp_path / "main.c", tmp_path / "main", [2**24 - 1, 2**24 + 999, 2**24 + 1999, 2**32 - 1]
    main.write_text(
        '#include <stdio.h>\n#include "law.h"\nint main(void) {\n'
        f"    const uint32_t k[4] = {{{', '.join(f'{each}u' for each in k)}}};\n"
        f"    {kind} q[2] = {{1677, {'0.2f' if kind == 'float' else '0.2'}}}, v[2] = {{0, 0}}, tau[2];\n    int i;\n"
        "    for (i = 0; i < 4; i++) {\n"
        '        computed_torque(k + i, q, v, tau);\n        printf("%.17g ", (double)tau[0]);\n    }\n'
        "    return 0;\n}\n"
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-O1"]
    subprocess.run(["cc", *strict, str(main), str(source), "-lm", "-o", str(program)], check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    tau, expected = np.array(output.split(), dtype=float), law(1e-3 * np.array(k), [1677.0, 0.2], [0.0, 0.0])[:, 0]
    assert (np.diff(expected) > 0.03).all()
    np.testing.assert_allclose(tau, expected, rtol=1e-6 if kind == "float" else 1e-12, atol=tolerance)


def test_the_header_of_a_controller_states_the_robot_the_order_the_units_the_period_and_the_precision(tmp_path) -> None:
    robot = torsor.library.two_link().with_motor("joint2", inertia=1e-4, ratio=50.0, carrier="link1", stiffness=1e3)
    law = control.elastic_tracking(robot, [0.1, 0.2], kp=400.0, kd=40.0)
    header, source, _ = law.export_c(tmp_path, period=2e-3)
    text = header.read_text()
    for line in (
        "Controller elastic_tracking of robot two_link",
        "Positions q: joint1 (rad), joint2 (rad), joint2/motor (rad).",
        "Velocities v: joint1 (rad/s), joint2 (rad/s), joint2/motor (rad/s).",
        "Forces tau: joint1 (N m), joint2 (N m), joint2/motor (N m).",
        "Positions, velocities and forces refer to the output side of the gears.",
        "Ratios: joint2 50. The torque of the rotor is tau / ratio.",
        "Entries of tau that are always 0, because a spring drives the joint: joint2.",
        "Inputs that are not read: q of joint2, v of joint2.",
        "Sampling period: 0.002 s. Sample k is at the time k x 0.002 s.",
        "No state; memory: the stack.",
        "double precision (64 bits)",
        "Compute tau at sample k; hold it for one period. There is no return value.",
        "k, 1 x 1, in: number of the sample",
        "q, 3 x 1, in: measured positions, rad and m",
        "v, 3 x 1, in: measured velocities, rad/s and m/s",
        "tau, 3 x 1, out: forces to apply, N m and N",
    ):
        assert line in text, line
    assert law(0.0, [0.3, 0.1, 0.2], np.ones(3))[1] == 0
    main, strict = tmp_path / "main.c", ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    main.write_text(f'#include "{header.name}"\nint main(void) {{ return 0; }}\n')
    subprocess.run(["cc", *strict, str(main), str(source), "-lm", "-o", str(tmp_path / "main")], check=True)


def test_the_header_of_a_sampled_motion_explains_its_window(tmp_path) -> None:
    law = control.computed_torque(torsor.library.two_link(), ([0.0, 1.0], [[0.0, 0.0], [1.0, 2.0]]), bandwidth=9.0)
    text = law.export_c(tmp_path, dtype="float32")[0].read_text()
    assert "window, 7 x 2, in: law.reference.window(t) in Python" in text
    assert "Constants of the code: the model, gains and limits" in text
    assert "t, 1 x 1, in: time, s" in text and "No sampling period" in text and "single precision (32 bits)" in text
    assert "output side of the gears, whose ratios the robot does not contain" in text
    assert "not read" not in text


@pytest.mark.parametrize(
    ("robot", "options", "words"),
    [
        (arm(), {"kp": -1.0}, "kp"),
        (arm(), {"kd": [1.0]}, "kd"),
        (arm(), {"passes": 0}, "passes"),
        (arm(), {"passes": 2.5}, "passes"),
        (torsor.library.planar_chain(1).with_motor("joint1", 1e-3, stiffness="3 + x**2"), {}, "is the expression"),
        (torsor.library.four_bar(), {}, "trees"),
    ],
)
def test_wrong_input(robot, options, words) -> None:
    with refused(words):
        control.elastic_tracking(robot, np.zeros(robot.nv - len(robot.elastic)), **({"kp": 9.0, "kd": 1.0} | options))
