"""Compare motion prediction with the same programs in CasADi, with many starts, and with direct collocation.

The script prints Markdown tables. It uses one process on one core (set OMP_NUM_THREADS=1); times are processor times,
and the tolerance is 1e-6.

    python benchmarks/motion.py [--starts N] [--cold]

"CasADi, map" maps the function of a node over the nodes (MX), and "CasADi, SX" is the whole program as one scalar
expression; both use CasADi's derivatives and virtual machine. ``--cold`` adds the time from start-up to the first
evaluation of all functions, with an empty and with a warm cache.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import casadi as ca
import numpy as np

import torsor
from bench.prediction import Run, run_casadi, run_torsor
from torsor.motion import MotionProblem
from torsor.motion.problems import two_link_time, ur5_time

QUIET = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
_SETUP = """
import sys, time
import numpy as np
from torsor.motion.problems import PROBLEMS
start = time.process_time()
problem = PROBLEMS[sys.argv[1]]()
x, program = problem.guess(), problem.program
program.value(x), program.jacobian(x), program.hessian(x, np.zeros(program.m), 1.0)
print(time.process_time() - start)
"""


def beside_casadi(problem: MotionProblem) -> None:
    """Print the solutions of three forms of one program."""
    mine = run_torsor(problem)
    _print_run(problem, "Torsor, IPOPT", mine, mine)
    for title, whole in (("CasADi, map", False), ("CasADi, SX", True)):
        _print_run(problem, title, run_casadi(problem, whole, runs=2), mine)
    for solver in ("condensed", "sqp"):
        start = time.process_time()
        found = problem.solve(solver)
        seconds = time.process_time() - start
        print(f"| {problem.name} | Torsor, {solver} | {found.T:.6f} | {found.iterations} | {seconds:.3f} | | |")


def _print_run(problem: MotionProblem, title: str, run: Run, mine: Run) -> None:
    cells = [problem.name, title, f"{run.objective:.6f}", run.iterations, f"{run.seconds:.3f}"]
    print(
        "| " + " | ".join(map(str, [*cells, f"{run.evaluation:.4f}", f"{run.evaluation / mine.evaluation:.1f}"])) + " |"
    )
    sys.stdout.flush()


def from_many_starts(count: int) -> None:
    """Print how many random starts of the UR5 end at the same optimum."""
    problem = ur5_time(points=12)
    print("| solver | random starts | solved | within 1e-4 of the best | best (s) | iterations, median |")
    print("|---|---|---|---|---|---|")
    for solver in ("ipopt", "condensed"):
        found = [
            problem.solve(solver, start=problem.random_start(seed), tolerance=1e-6, check=False)
            for seed in range(count)
        ]
        times = np.array([each.T if each.is_solved else np.inf for each in found])
        same, solved = int((times < times.min() * (1 + 1e-4)).sum()), int(np.isfinite(times).sum())
        iterations = int(np.median([each.iterations for each in found]))
        print(f"| {solver} | {count} | {solved} | {same} | {times.min():.6f} | {iterations} |")


def collocation(intervals: int) -> tuple[float, int]:
    """Return the minimum time and iterations of the two-link arm by collocation (constant torques, three Radau points).

    States are polynomials of degree 3 in each interval that satisfy the forward dynamics at the three points.
    """
    robot, n = torsor.library.two_link(), 2
    dynamics, points = robot.function("forward_dynamics"), [0.0, *ca.collocation_points(3, "radau")]
    C, D, _ = ca.collocation_coeff(points[1:])
    T = ca.MX.sym("T")
    y = ca.MX([0.0, -2.0, 0.0, 0.0])
    x, x0, lower, upper, g = [T], [1.0], [0.1], [2.0], []
    begin, end = np.array([0.0, -2.0, 0.0, 0.0]), np.array([1.0, -1.0, 0.0, 0.0])
    for k in range(intervals):
        tau, states = ca.MX.sym(f"tau_{k}", n), ca.MX.sym(f"y_{k}", 2 * n, 3)
        x += [tau, ca.vec(states)]
        guess = [begin + (k + point) / intervals * (end - begin) for point in points[1:]]
        x0 += [0.0] * n + np.concatenate(guess).tolist()
        lower += [-10.0] * n + [-np.inf] * (6 * n)
        upper += [10.0] * n + [np.inf] * (6 * n)
        all_states = ca.horzcat(y, states)
        rates = all_states @ C
        for point in range(3):
            q, v = states[:n, point], states[n:, point]
            g.append(rates[:, point] - T / intervals * ca.vertcat(v, dynamics(q, v, tau)))
        y = all_states @ D
    g.append(y - end)
    nlp = {"x": ca.vertcat(*x), "f": T, "g": ca.vertcat(*g)}
    solver = ca.nlpsol(
        "collocation", "ipopt", nlp, {"ipopt.tol": 1e-9, "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
    )
    found = solver(x0=x0, lbx=lower, ubx=upper, lbg=0.0, ubg=0.0)
    return float(found["f"]), int(solver.stats()["iter_count"])


def setup(name: str) -> tuple[float, float]:
    """Return the times (s) until the first evaluation of a problem, with an empty and with a warm cache."""
    with tempfile.TemporaryDirectory() as folder:
        command, environment = [sys.executable, "-c", _SETUP, name], os.environ | {"TORSOR_CACHE": folder}
        cold, warm = (
            float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(2)
        )
    return cold, warm


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    print("| problem | solver | T (s) | iterations | in all (s) | functions (s) | against Torsor's |")
    print("|---|---|---|---|---|---|---|")
    for problem in (two_link_time(points=12), ur5_time(points=12)):
        beside_casadi(problem)
    print()
    if options.starts:
        from_many_starts(options.starts)
        print()
    print("| two-link arm: collocation, intervals | T (s) | iterations |")
    print("|---|---|---|")
    for intervals in (20, 40, 80):
        T, iterations = collocation(intervals)
        print(f"| {intervals} | {T:.6f} | {iterations} |")
    best = torsor.motion.switching(two_link_time())
    print(f"| switch times as variables | {best.T:.9f} | {best.iterations} |")
    if options.cold:
        print("\n| problem | setup, empty cache (s) | warm cache (s) |\n|---|---|---|")
        for name in ("two-link-time", "ur5-time", "panda-time", "stanford-rates"):
            print(f"| {name} | {' | '.join(f'{each:.2f}' for each in setup(name))} |")


if __name__ == "__main__":
    main()
