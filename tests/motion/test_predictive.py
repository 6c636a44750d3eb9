"""Predictive control solves its program exactly within torque bounds, and its C code gives the same torques."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import horizon, mpc
from torsor.motion.predictive import LIMIT_WEIGHT, WEIGHTS, PredictiveController

DT = 0.02
START = np.array([0.0, -1.5, 1.0, -1.0, -1.5, 0.0])
GOAL = np.array([1.0, -1.0, 1.2, -0.5, 0.7, 0.3])
CENTER, SIZE = np.array([0.0, -1.2, 1.3, -1.0, -1.5, 0.0]), np.array([0.8, 0.5, 0.5, 0.6, 0.6, 0.8])


@pytest.fixture(scope="module")
def arm() -> torsor.Robot:
    return torsor.library.ur5()


def wave(t: ca.SX) -> list[ca.SX]:
    """A motion of the UR5 that needs more than 60 % of its torques."""
    return [CENTER[i] + SIZE[i] * ca.sin(6 * t + 0.5 * i) for i in range(6)]


def lqr() -> tuple[np.ndarray, np.ndarray]:
    """P (2 x 2) and the gains (2,) of one coordinate over a long horizon, by the plain Riccati recursion."""
    A, B = np.array([[1.0, DT], [0.0, 1.0]]), np.array([DT**2 / 2, DT])
    P = Q = np.diag(WEIGHTS[:2])
    for _ in range(5000):
        K = B @ P @ A / (WEIGHTS[2] + B @ P @ B)
        P = Q + A.T @ P @ (A - np.outer(B, K))
    return P, K


def test_without_active_bounds_the_motion_is_that_of_the_infinite_horizon_lqr(arm: torsor.Robot) -> None:
    random, (_, K) = np.random.default_rng(0), lqr()
    law = mpc(arm, GOAL, torque=1e6, velocity=1e6)
    for _ in range(3):
        q, v = GOAL + random.uniform(-1, 1, 6), random.uniform(-1, 1, 6)
        law(0.0, q, v)
        law(0.0, q, v)  # linearised about its own plan
        plan = law.prediction
        assert plan.status == "solved" and plan.passes == 1 and plan.residual < 1e-9
        a = np.diff(plan.v, axis=0) / DT
        expected = -(plan.q[:-1] - GOAL) * K[0] - plan.v[:-1] * K[1]
        assert np.abs(a - expected).max() < 1e-8 * np.abs(a).max()


def kkt_errors(law: PredictiveController) -> tuple[float, float, float, float]:
    """Errors of the optimality conditions at the goal, by adjoints: feasibility, signs, complementarity, residual.

    Each is relative to its bound or to the largest multiplier. The conditions are those of the nonlinear program.
    """
    arm, plan, n = law.robot, law.prediction, law.robot.nv
    P, _ = lqr()
    q, v, tau = plan.q, plan.v, plan.tau
    a = np.diff(v, axis=0) / DT
    D_q, D_v, M = arm.derivatives.inverse_dynamics((q[1:] + q[:-1]) / 2, (v[1:] + v[:-1]) / 2, a)
    excess_q = q - np.clip(q, arm.lower, arm.upper)
    excess_v = v - np.clip(v, -arm.velocity_limit, arm.velocity_limit)
    pull_q, pull_v = LIMIT_WEIGHT * excess_q, LIMIT_WEIGHT * np.sqrt(WEIGHTS[0] * WEIGHTS[2]) * excess_v
    p_q = P[0, 0] * (q[-1] - GOAL) + P[0, 1] * v[-1] + pull_q[-1]
    p_v = P[1, 0] * (q[-1] - GOAL) + P[1, 1] * v[-1] + pull_v[-1]
    multipliers = np.empty((len(a), n))
    for k in reversed(range(len(a))):
        by_a = M[k] + DT / 2 * D_v[k] + DT**2 / 4 * D_q[k]
        multipliers[k] = -np.linalg.solve(by_a.T, WEIGHTS[2] * a[k] + DT**2 / 2 * p_q + DT * p_v)
        p_v = DT * p_q + p_v + (DT / 2 * D_q[k] + D_v[k]).T @ multipliers[k] + WEIGHTS[1] * v[k] + pull_v[k]
        p_q = p_q + D_q[k].T @ multipliers[k] + WEIGHTS[0] * (q[k] - GOAL) + pull_q[k]
    scaled, use = multipliers / np.abs(multipliers).max(), tau / arm.effort_limit
    assert np.abs(scaled).max() == 1 and (excess_v[1:] != 0).any()  # bounds of torques and velocities are active
    wrong = np.where(np.abs(use) > 1 - 1e-7, np.maximum(0, -np.sign(use) * scaled), 0).max()
    idle = np.abs(np.where(np.abs(use) > 1 - 1e-7, 0, scaled)).max()
    return float(np.abs(use).max() - 1), float(wrong), float(idle), plan.residual


@pytest.mark.parametrize("seed", range(4))
def test_repeated_calls_converge_to_the_optimality_conditions(arm: torsor.Robot, seed: int) -> None:
    random = np.random.default_rng(seed)
    law, q, v = mpc(arm, GOAL), GOAL + random.uniform(-1.5, 1.5, 6), random.uniform(-2, 2, 6)
    for _ in range(12):
        law(0.0, q, v)
    assert law.prediction.status == "solved"
    assert max(kkt_errors(law)) < 1e-8


def test_torques_stay_within_their_bounds_and_reach_the_goal(arm: torsor.Robot) -> None:
    limit = 0.5 * arm.effort_limit
    law = mpc(arm, GOAL, torque=limit)
    run = torsor.simulate(arm, START, duration=2.0, controller=law, control_period=DT)
    use = np.abs(run.tau) / limit
    assert use.max() == 1 and np.mean(use.max(axis=1) == 1) > 0.1
    assert np.abs(run.q[-1] - GOAL).max() < 1e-6


def test_a_fast_reference_is_tracked_better_than_by_saturated_computed_torque(arm: torsor.Robot) -> None:
    limit = 0.6 * arm.effort_limit
    law = mpc(arm, wave, DT, torque=limit, velocity=100.0)
    rigid = torsor.control.computed_torque(arm, wave, bandwidth=20.0).saturated(limit)
    q, v, _ = law.reference(0.0)
    errors = []
    for controller, period in ((law, DT), (rigid, 1e-3)):
        run = torsor.simulate(arm, q, v, duration=2.0, controller=controller, control_period=period)
        assert np.mean((np.abs(run.tau) >= limit).any(axis=1)) > 0.2 and (np.abs(run.tau) <= limit).all()
        errors.append(np.sqrt(np.mean((run.q - law.reference(run.times)[0]) ** 2)))
    assert errors[0] < 0.05 * errors[1]


def test_a_simulation_calls_the_controller_once_per_period(arm: torsor.Robot) -> None:
    runs = []
    for options in ({}, {"control_period": DT}, {"control_period": 2 * DT}):
        law = mpc(arm, GOAL, DT)
        runs.append(torsor.simulate(arm, START, duration=0.2, controller=law, **options))
    assert runs[0].settings["control_period"] == law.control_period == DT
    assert np.array_equal(runs[0].q, runs[1].q) and len(np.unique(runs[0].tau[:-1, 1])) <= 10
    assert runs[2].settings["control_period"] == 2 * DT and not np.array_equal(runs[0].q, runs[2].q)


@pytest.mark.parametrize(
    ("delay", "payload", "least", "most"),
    [(0.0, 0.0, 0.0, 1e-4), (DT, 0.0, 1e-3, 3e-3), (2 * DT, 0.0, 0.1, np.inf), (0.0, 1.0, 5e-3, 2e-2)],
)
def test_a_delay_and_an_unknown_payload_increase_the_tracking_error(
    arm: torsor.Robot, delay: float, payload: float, least: float, most: float
) -> None:
    """The prediction has no delay and no disturbance: two periods of delay lead to an unstable loop."""
    centers = (0.0, -1.2, 1.3, -1.0, -1.5, 0.0)
    law = mpc(arm, lambda t: [x + 0.3 * ca.sin(2 * t) for x in centers], DT, torque=0.6 * arm.effort_limit)
    robot = arm.with_payload("wrist_3_link", mass=payload) if payload else arm
    start = law.reference(0.0)[:2]
    run = torsor.simulate(robot, *start, duration=2.0, controller=law, control_period=DT, delay=delay)
    assert least <= np.sqrt(np.mean((law.reference(run.times)[0] - run.q) ** 2)) < most


def test_the_plan_brakes_before_a_position_bound(arm: torsor.Robot) -> None:
    upper, v = GOAL + 0.005, np.array([0.0, 0.0, 0.0, 0.0, 2.0, 2.0])
    free, bounded = mpc(arm, GOAL), mpc(arm, GOAL, upper=upper)
    for law in (free, bounded):
        law(0.0, GOAL - 0.03, v)
        law(0.0, GOAL - 0.03, v)
    assert ((free.prediction.q - upper).max(axis=0)[4:] > 5e-3).all()
    assert bounded.prediction.status == "solved" and (bounded.prediction.q - upper).max() < 1e-5


def test_a_goal_beyond_a_position_bound_leads_to_the_bound(arm: torsor.Robot) -> None:
    upper = START + 0.3
    law = mpc(arm, GOAL, upper=upper, lower={"elbow_joint": 0.9})
    run = torsor.simulate(arm, START, duration=2.0, controller=law, control_period=DT)
    assert (run.q <= upper + 1e-4).all() and np.abs(run.q[-1] - np.minimum(GOAL, upper)).max() < 1e-4
    assert (np.abs(run.v) <= 1.05 * arm.velocity_limit).all()


def test_a_warm_start_needs_fewer_passes(arm: torsor.Robot) -> None:
    limit, passes = 0.6 * arm.effort_limit, []
    for keeps in (True, False):
        law = mpc(arm, wave, DT, torque=limit, velocity=100.0)
        q, v, _ = law.reference(0.0)
        count = 0
        for k in range(50):
            if not keeps:
                law.reset()
            tau = law(k * DT, q, v)
            count += law.prediction.passes
            run = torsor.simulate(arm, q, v, duration=DT, controller=tau)
            q, v = run.q[-1], run.v[-1]
        passes.append(count)
    assert passes[0] < 1.5 * 50 and 2 * passes[0] < passes[1]


def test_equal_calls_give_equal_bits_and_an_earlier_time_starts_anew(arm: torsor.Robot) -> None:
    law, other = mpc(arm, GOAL), mpc(arm, GOAL)
    times = (0.0, 0.02, 0.05, 0.3)
    taus = [law(t, START, np.zeros(6)) for t in times]
    assert np.array_equal(taus, [other(t, START, np.zeros(6)) for t in times])
    assert np.array_equal(law(0.0, START, np.zeros(6)), taus[0])


def test_a_target_of_one_call_replaces_the_reference(arm: torsor.Robot) -> None:
    law, other, still = mpc(arm, START), mpc(arm, GOAL), np.zeros(6)
    expected = other(0.0, START, still)
    for target in (GOAL, np.tile(GOAL, (21, 1))):
        law.reset()
        assert np.abs(law(0.0, START, still, target) - expected).max() < 1e-9


def test_an_unfinished_plan_is_near_the_optimum(arm: torsor.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    law, other, still = mpc(arm, GOAL), mpc(arm, GOAL), np.zeros(6)
    expected = other(0.0, START, still)
    monkeypatch.setattr(horizon, "MU_ENDS", (1e-6,))
    monkeypatch.setattr(horizon, "PATIENCE", -1)  # the barrier method alone
    tau = law(0.0, START, still)
    assert law.prediction.status == "inexact" and other.prediction.status == "solved"
    assert (np.abs(tau) <= arm.effort_limit).all()
    assert np.abs(tau - expected).max() < 1e-2 * arm.effort_limit.max()


WRAPPER = """
#include "torsor_mpc_step.h"
int step(void *s, double elapsed, const double *q, const double *v, const double *rq, const double *rv, double *tau);
int size(void);
int passes(void *s);
int step(void *s, double elapsed, const double *q, const double *v, const double *rq, const double *rv, double *tau)
{ return torsor_mpc_step((torsor_mpc_state *)s, elapsed, q, v, rq, rv, tau); }
int size(void) { return (int)sizeof(torsor_mpc_state); }
int passes(void *s) { return ((torsor_mpc_state *)s)->passes; }
"""


def compiled_step(folder: Path) -> Any:
    """Compile the exported controller in a folder, with all warnings as errors, and load it."""
    (folder / "all.c").write_text(WRAPPER)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-ffp-contract=off"]
    sources = [folder / "all.c", folder / "torsor_mpc.c"]
    subprocess.run(["gcc", *strict, "-fPIC", "-shared", *sources, "-o", folder / "all.so", "-lm"], check=True)
    lib = ctypes.CDLL(str(folder / "all.so"))
    lib.step.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 5]
    lib.passes.argtypes = [ctypes.c_void_p]
    return lib


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_the_exported_c_code_gives_the_same_torques(arm: torsor.Robot, tmp_path: Path) -> None:
    law = mpc(arm, wave, DT, torque=0.6 * arm.effort_limit)
    files = law.export_c(tmp_path)
    header, lib = files[-1].read_text(), compiled_step(tmp_path)
    joints = ", ".join(f"{name} (N m)" for name in arm.coordinate_names)
    for line in (
        "Predictive controller of robot ur5",
        f"Forces tau: {joints}.",
        "Sampling period: 0.02 s. Horizon: 20 steps of this length.",
        "Return 1 if the plan is an optimum, or 0 if it is only near one",
        "double precision (64 bits)",
    ):
        assert line in header, line
    state = ctypes.create_string_buffer(lib.size())
    assert f"Memory: {lib.size()} bytes for the struct torsor_mpc_state" in header
    q, v, _ = law.reference(0.3)  # far from the reference at 0, so that the barrier method is needed
    last, passes = 0.0, list[int]()
    for t in (0.0, 0.02, 0.04, 0.05, 0.075, 0.2, 0.1):
        expected, passes = law(t, q, v), [*passes, law.prediction.passes]
        rq, rv, _ = law.reference(t + DT * np.arange(21))
        arrays, tau = [np.ascontiguousarray(each) for each in (q, v, rq, rv)], np.empty(6)
        solved = lib.step(state, t - last, *(each.ctypes.data for each in (*arrays, tau)))
        last = t
        assert solved == (law.prediction.status == "solved") and lib.passes(state) == passes[-1]
        assert np.abs(tau - expected).max() < 1e-12 * np.abs(expected).max()
        q, v = q + DT * v, v + 0.1
    assert passes[0] > 10 > min(passes)


# What the main loop of the documentation calls; the sixth measurement ends the program.
CALLED = """
#include <stdio.h>
#include <stdlib.h>
static int calls;
static void read_sensors(double *q, double *v) { (void)v; if (calls++ == 5) exit(0); q[0] = 0.01 * calls; }
static void read_reference(double *q, double *v) { (void)q; (void)v; }
static void report_inexact_plan(void) { exit(1); }
static void apply_torques(const double *tau) { printf("%.17g\\n", tau[0]); }
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_the_main_loop_of_the_documentation_compiles_and_runs(arm: torsor.Robot, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate" / "predictive_control.md").read_text("utf-8")
    (code,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    law, name = mpc(arm, np.zeros(6), DT), tmp_path / "main"
    files = law.export_c(tmp_path)
    name.with_suffix(".c").write_text(CALLED + code)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off"]
    subprocess.run(["gcc", *strict, name.with_suffix(".c"), files[1], "-o", name, "-lm"], check=True)
    output = subprocess.run([name], check=True, capture_output=True, text=True).stdout.split()
    expected = [law(DT * k, [0.01 * (k + 1), *np.zeros(5)], np.zeros(6))[0] for k in range(5)]
    np.testing.assert_allclose(np.array(output, dtype=float), expected, rtol=1e-9)


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_exported_c_code_recovers_from_a_measurement_that_is_no_number(arm: torsor.Robot, tmp_path: Path) -> None:
    law = mpc(arm, wave, DT)
    files, lib = law.export_c(tmp_path), compiled_step(tmp_path)
    assert "If q, v or the\n * reference are not finite, tau is not finite either" in files[-1].read_text()
    q, v, _ = law.reference(0.0)
    rq, rv, _ = law.reference(DT * np.arange(21))
    arrays, tau = [np.ascontiguousarray(each) for each in (np.full(6, np.nan), v, rq, rv)], np.empty(6)
    lib.step(ctypes.create_string_buffer(lib.size()), 0.0, *(each.ctypes.data for each in (*arrays, tau)))
    assert not np.isfinite(tau).any()
    arrays[0][:] = q
    assert lib.step(ctypes.create_string_buffer(lib.size()), 0.0, *(each.ctypes.data for each in (*arrays, tau))) == 1
    assert np.abs(tau - law(0.0, q, v)).max() < 1e-12 * np.abs(tau).max()


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"dt": 0.0}, "dt"),
        ({"dt": np.nan}, "dt"),
        ({"weights": (1.0, 0.1)}, "weights"),
        ({"weights": (1.0, 0.1, 0.0)}, "weights"),
        ({"weights": (1.0, -0.1, 1.0)}, "weights"),
        ({"torque": -1.0}, "torque"),
        ({"torque": [1.0, 2.0, 3.0]}, "a number, or 2 of them"),
        ({"velocity": 0.0}, "velocity"),
        ({"upper": {"joint1": -1.0}, "lower": 0.0}, "lower and upper"),
        ({"reference": [0.0]}, "(2,)"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], about: str) -> None:
    given = {"reference": [0.0, 0.0], **arguments}
    with refused(about):
        mpc(torsor.library.two_link(), **given)


def test_wrong_states_and_robots_are_refused() -> None:
    law, still = mpc(torsor.library.two_link(), [0.0, 0.0]), np.zeros(2)
    with refused(fix="call the controller first"):
        _ = law.prediction
    for arguments, about in (
        ((0.0, [0.0], still), "q"),
        ((0.0, still, [np.nan, 0.0]), "v"),
        ((np.inf, still, still), "t"),
        ((0.0, np.zeros((3, 2)), still), "one controller for each state"),
        ((0.0, still, still, np.zeros((5, 2))), "target"),
    ):
        with refused(about):
            law(*arguments)
    never = mpc(torsor.library.two_link(), lambda t: [ca.log(-1 - t), t])
    with refused(fix="check the reference"):
        never(0.0, still, still)
    with refused("quaternions"):
        mpc(torsor.library.quadruped(), np.zeros(19))
    with refused("elastic joints"):
        mpc(torsor.library.elastic_arm(), np.zeros(3))
