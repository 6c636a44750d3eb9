"""Time of one step of predictive control of the UR5: horizon 20, torque bounds, on one core.

Run: ``OMP_NUM_THREADS=1 python benchmarks/predictive_control.py [repeats]``. The same closed loop is repeated, and the
time of each of its steps is the least of all repeats, because other processes disturb individual repeats. The C code is
the export of the same controller, compiled with gcc -O2, and is called with the states of the same loop. RMS errors of
the joint positions are compared with those of computed torque with the same bandwidth and torque bounds, and a period
of 1 ms.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import casadi as ca
import numpy as np

import torsor

DT, DURATION, REPEATS = 0.02, 2.0, 20
CENTER, SIZE = np.array([0.0, -1.2, 1.3, -1.0, -1.5, 0.0]), np.array([0.8, 0.5, 0.5, 0.6, 0.6, 0.8])
GOAL = np.array([1.0, -1.0, 1.2, -0.5, 0.7, 0.3])
DRIVER = """
#include "torsor_mpc_step.h"
int size(void) { return (int)sizeof(torsor_mpc_state); }
int step(void *s, double t, const double *q, const double *v, const double *rq, const double *rv, double *tau)
{ return torsor_mpc_step((torsor_mpc_state *)s, t, q, v, rq, rv, tau); }
"""


def wave(t: ca.SX) -> list[ca.SX]:
    """Return a motion that needs more than 60 % of the torque bounds."""
    return [CENTER[i] + SIZE[i] * ca.sin(6 * t + 0.5 * i) for i in range(6)]


class Timed:
    """A controller that records the time, the passes and the state of each call."""

    def __init__(self, law: torsor.motion.PredictiveController):
        self.law, self.rows = law, []

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the torques of the controller."""
        begin = time.perf_counter()
        tau = self.law(t, q, v)
        seconds = time.perf_counter() - begin
        self.rows.append((seconds, self.law.prediction.passes, t, q.copy(), v.copy()))
        return tau


def in_c(law: torsor.motion.PredictiveController, rows: list, repeats: int) -> np.ndarray:
    """Return the times (s) of the exported code for the same calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = law.export_c(folder)
        (folder / "driver.c").write_text(DRIVER)
        flags = ["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]
        command = ["gcc", *flags, folder / "driver.c", files[1], "-o", folder / "code.so", "-lm"]
        subprocess.run(command, check=True)
        code = ctypes.CDLL(str(folder / "code.so"))
    code.step.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 5]
    seconds, tau = np.full(len(rows), np.inf), np.empty(6)
    grid = DT * np.arange(law.horizon + 1)
    for _ in range(repeats):
        state, last = ctypes.create_string_buffer(code.size()), 0.0
        for k, (_, _, t, q, v) in enumerate(rows):
            arrays = [q, v, *(np.ascontiguousarray(each) for each in law.reference(t + grid)[:2]), tau]
            places = [each.ctypes.data for each in arrays]
            begin = time.perf_counter()
            code.step(state, t - last, *places)
            seconds[k], last = min(seconds[k], time.perf_counter() - begin), t
    return seconds


def main() -> None:
    """Print one row for each motion."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    robot = torsor.library.ur5()
    limit = 0.6 * robot.effort_limit
    head = "| motion | passes: median, most | first call (us) | later calls: median, most | C: first call (us) |"
    print(f"{head} C, later calls: median, most |")
    print("|---|---|---|---|---|---|")
    cases = {
        "set point, bounds of the robot": (GOAL, CENTER, np.zeros(6), {}),
        "fast motion, 60 % of the torques": (wave, None, None, {"torque": limit, "velocity": 100.0}),
    }
    for name, (reference, q, v, bounds) in cases.items():
        law = torsor.motion.mpc(robot, reference, DT, **bounds)
        if q is None:
            q, v, _ = law.reference(0.0)
        runs = []
        for _ in range(repeats):
            timed = Timed(law)
            law.reset()
            run = torsor.simulate(robot, q, v, duration=DURATION, controller=timed, control_period=DT)
            runs.append([row[0] for row in timed.rows])
        seconds, passes = 1e6 * np.min(runs, axis=0), [row[1] for row in timed.rows]
        c = 1e6 * in_c(law, timed.rows, repeats)
        print(
            f"| {name} | {np.median(passes):.0f}, {max(passes[1:])} | {seconds[0]:.0f} | {np.median(seconds[1:]):.0f},"
            f" {max(seconds[1:]):.0f} | {c[0]:.0f} | {np.median(c[1:]):.0f}, {max(c[1:]):.0f} |"
        )
    rigid = torsor.control.computed_torque(robot, wave, bandwidth=20.0).saturated(limit)
    other = torsor.simulate(robot, q, v, duration=DURATION, controller=rigid, control_period=1e-3)
    errors = [np.sqrt(np.mean((each.q - law.reference(each.times)[0]) ** 2)) for each in (run, other)]
    print(f"RMS error of the fast motion: {errors[0]:.4f} rad; computed torque: {errors[1]:.4f} rad")


if __name__ == "__main__":
    main()
