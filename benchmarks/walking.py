"""Benchmark of walking prediction: solvers, evaluations, random initial guesses, variants, and CasADi.

The script prints Markdown tables. It uses one process on one core (set OMP_NUM_THREADS=1), a tolerance of 1e-4 and a
warm cache.

    python benchmarks/walking.py [--quick] [--starts N] [--variants] [--peer] [--cold]

``--quick`` solves the default walk once and stops after the times of evaluations. The peer (``--peer``) solves the
walk with habits of Barman 2020 (one spline basis, a given duration) by IPOPT with MUMPS in a few minutes. CasADi
differentiates the function of a node, maps it over the nodes, and evaluates it on its virtual machine. ``--cold``
measures the first walk with an empty cache.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from torsor import library
from torsor.human import Backpack, Box, Habits, Step, Stride, bent_start, walking
from torsor.human.gait.settings import WEIGHTS
from torsor.motion import MotionProblem, MotionResult
from torsor.optimisation.ipopt import ipopt_options
from torsor.reproduce.documents.printed_walk import habitual_problem, habitual_walk

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "16 control points": {"points": 16},
    "1.62 m, 58 kg, female": {"body": library.human(1.62, 58.0, "female")},
    "1.90 m, 95 kg": {"body": library.human(1.90, 95.0)},
    "0.8 m/s": {"step": Step(speed=0.8)},
    "1.6 m/s": {"step": Step(speed=1.6)},
    "given step of 0.6 m, 1.2 m/s": {"step": Step(length=0.6, width=0.1, speed=1.2, timing="given")},
    "backpack 15 kg": {"load": Backpack(15.0)},
    "box 8 kg": {"load": Box(8.0)},
    "6 degrees up": {"slope": math.radians(6)},
    "6 degrees down": {"slope": math.radians(-6)},
    "planar": {"planar": True},
    "with balance": {"objective": WEIGHTS | {"balance": 0.2}},
    "with joint loads": {"objective": WEIGHTS | {"joint loads": 0.01}},
    "with habits": {"habits": Habits()},
    "two steps": {"steps": 2},
    "two steps, right knee stiff": {"steps": 2, "frozen": {"right_knee_flexion": 0.1}},
    "two steps, right ankle weak": {"steps": 2, "strength": {"right_ankle_flexion": 0.4}},
}
_COLD = """
import time
start = time.perf_counter()
from torsor.human import walking
result = walking().solve()
print(time.perf_counter() - start)
"""


def best(function: Callable[[], object], repeats: int = 20) -> float:
    """Return the shortest time of several calls (ms)."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


SEARCHES: dict[str, dict[str, Any]] = {
    "condensed, direct": {},
    "condensed, feasible first": {"feasible_first": True},
    "IPOPT, direct": {"solver": "ipopt"},
}


def searches(problem: MotionProblem, quick: bool) -> MotionResult:
    """Print the objective, iterations and time of the default walk, and return the first result."""
    print("| search from q = 0 | objective | iterations | search (s) |\n|---|---|---|---|")
    found: MotionResult | None = None
    for title in ["condensed, direct"] if quick else SEARCHES:
        repeats = 1 if quick or "IPOPT" in title else 3
        runs = [problem.solve(**SEARCHES[title]) for _ in range(repeats)]
        least = min(runs, key=lambda run: run.solve_seconds)
        print(f"| {title} | {least.objective:.6f} | {least.iterations} | {least.solve_seconds:.2f} |", flush=True)
        found = least if found is None else found
    assert found is not None
    return found


def evaluations(problem: MotionProblem, x: Any) -> None:
    """Print the times of one evaluation of constraints, Jacobian and Hessian."""
    program, multipliers = problem.program, np.random.default_rng(0).normal(size=problem.program.m)
    points = [x + 1e-9 * k for k in range(40)]  # different points, so that no result is reused

    def rows() -> None:
        at = points.pop()
        program.value(at)
        program.jacobian(at)

    print("| one evaluation | ms |\n|---|---|")
    print(f"| all constraints and their Jacobian | {best(rows, 15):.2f} |")
    print(f"| exact Hessian | {best(lambda: program.hessian(points.pop(), multipliers, 1.0), 15):.2f} |", flush=True)


def peer(problem: MotionProblem) -> None:
    """Print the times of IPOPT for a program with CasADi's derivatives."""
    program = problem.program
    (phase,) = program.layout.phases
    x, T = ca.MX.sym("x", program.n), phase.seconds(np.zeros(0))
    points = ca.horzcat(*(ca.vertcat(*(x[int(k)] for k in columns)) for columns in phase.columns))
    rows, f = list[Any](), ca.MX(0)
    for batch in program.batches:
        traced, node = batch.kernels, batch.kernels.node
        data = ca.vertcat(ca.SX(0, 1), *traced._data.values())
        inputs = [*node.y[:3], node.T, node.s, traced._given, data]
        values = ca.Function("node", inputs, [node.value(traced.rows_expression), node.value(traced.cost_expression)])
        motion = [(ca.DM(phase.splines[0].matrix(batch.s, d)) @ points).T / T**d for d in range(3)]
        count = len(batch.s)
        given = [*motion, T, ca.DM(batch.s).T, ca.repmat(ca.DM(traced.given), 1, count), ca.DM(traced.data(batch.s)).T]
        found, cost = values.map(count)(*given)
        rows.append(ca.vec(found))
        f += ca.dot(ca.DM(batch.weights).T, cost)
    for equation in program.linear.equations:
        row = ca.MX(0)
        for part in equation.parts:
            basis = phase.splines[part.profile].matrix([part.s], part.order) / T**part.order
            row += part.coefficient * (ca.DM(basis) @ points[:, part.profile])
        rows.append(row)
    begin = time.perf_counter()
    nlp = {"x": x, "f": f, "g": ca.vertcat(*rows) / ca.DM(program.scales)}
    solver = ca.nlpsol("peer", "ipopt", nlp, ipopt_options(program, 1e-5))
    made = time.perf_counter() - begin
    begin = time.perf_counter()
    bounds = {"lbx": program.lower, "ubx": program.upper, "lbg": program.row_lower, "ubg": program.row_upper}
    found = solver(x0=problem.guess(), **bounds)
    seconds, stats = time.perf_counter() - begin, solver.stats()
    print("| CasADi, map; IPOPT | |\n|---|---|")
    print(
        f"| setup (s) | {made:.1f} |\n| objective | {float(found['f']):.6f} |\n| iterations | {stats['iter_count']} |"
    )
    print(f"| search (s) | {seconds:.1f} |")
    for title, part in (("constraints and Jacobian", "nlp_jac_g"), ("Hessian", "nlp_hess_l")):
        print(f"| {title} (ms) | {1e3 * stats[f't_wall_{part}'] / stats[f'n_call_{part}']:.1f} |", flush=True)


def starts(problem: MotionProblem, count: int) -> None:
    """Print how many random initial guesses are solved, and how many of these end at the best objective."""
    print("| from bent joints (0.2 rad) | solved | within 1e-3 of the best | best | worst | iterations, median |")
    print("|---|---|---|---|---|---|")
    for title, first in (("direct", False), ("feasible first", True)):
        found = [
            problem.solve(start=bent_start(problem, seed), check=False, feasible_first=first) for seed in range(count)
        ]
        solved = [each for each in found if each.is_solved]
        values = np.array([each.objective for each in solved])
        same, median = int((values < 1.001 * values.min()).sum()), int(np.median([each.iterations for each in solved]))
        cells = [title, f"{len(solved)} of {count}", same, f"{values.min():.6f}", f"{values.max():.6f}", median]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def variants() -> None:
    """Print walks of different people, speeds, loads and slopes."""
    columns = ("walk", "variables", "constraints", "objective", "effort", "iterations", "setup (s)", "search (s)")
    print("| " + " | ".join((*columns, "vertical peak (weights)")) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for title, options in VARIANTS.items():
        problem = walking(**options)
        result = problem.solve(check=False)
        peak = Stride(result).force[:, 1].max()
        counts = problem.program.n, problem.program.m
        effort = next(part.weighted for part in result.parts if part.title == "effort")
        cells = [title, *counts, f"{result.objective:.4f}", f"{effort:.4f}", result.iterations]
        cells += [f"{result.setup_seconds:.1f}", f"{result.solve_seconds:.1f}", f"{peak:.2f}"]
        print("| " + " | ".join(map(str, cells)) + f" |{'' if result.is_solved else ' ' + result.status}", flush=True)


def likeness(titles: dict[str, MotionResult]) -> None:
    """Print correlation and RMS difference between predicted and measured curves."""
    found = {title: Stride(result).likeness() for title, result in titles.items()}
    print("| curve | " + " | ".join(f"{title}: correlation, RMS" for title in found) + " |")
    print("|---|" + "---|" * len(found))
    for name in next(iter(found.values())):
        cells = [f"{each[name].correlation:.2f}, {each[name].rms:.2g}" for each in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=0)
    for name in ("quick", "variants", "peer", "cold"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    problem = walking()
    result = searches(problem, options.quick)
    print()
    evaluations(problem, result.x)
    if options.quick:
        return
    print(f"\ncounts: {result.counts}\n")
    refined = problem.solve(start=result, refine=True)
    print("| nodes | largest violation on a grid ten times finer (relative to the bounds) | objective |\n|---|---|---|")
    for each in (result, refined):
        print(
            f"| {each.problem.stages[0].nodes.size} | {each.max_violation_fine:.2e} | {each.objective:.6f} |",
            flush=True,
        )
    print()
    likeness({"default": result, "Barman 2020 with habits": habitual_walk().result})
    if options.peer:
        print()
        peer(habitual_problem())
    if options.starts:
        print()
        starts(problem, options.starts)
    if options.variants:
        print()
        variants()
    if options.cold:
        with tempfile.TemporaryDirectory() as folder:
            command, environment = [sys.executable, "-c", _COLD], os.environ | {"TORSOR_CACHE": folder}
            for title in ("an empty", "a warm"):
                run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                print(f"\nprocess with {title} cache: {float(run.stdout):.1f} s")


if __name__ == "__main__":
    main()
