"""Many minimum-time motions at once, compared with loops of IPOPT and of the condensed method over the same functions.

A second table is for 100 neighbouring motions that are solved in sequence; their goals move by 1 mrad each
(``--step``).

    python benchmarks/many_motions.py --count 256 --single 32
    python benchmarks/many_motions.py --workers 16 --gpu 65536

The UR5 moves between random ends, with 12 control points (49 variables, 1,452 rows). Times are processor times of one
core; those of several processes (``--workers``, 512 cases each) and of a GPU (``--gpu``, its number of cases) are
wall-clock times of a second call, after compilation. ``--walks 24`` solves walks of people with random heights,
masses and speeds instead (420 variables, 3,417 rows), as a cohort and one by one.
"""

import argparse
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human import Step, cohort, walking
from torsor.library import human
from torsor.motion import PROBLEMS, MotionError, MotionProblem, MotionResult, Solver


def walks(count: int, seed: int, workers: int) -> None:
    """Print the table of walks; times of several processes are wall-clock times."""
    sizes = np.random.default_rng(seed).uniform([1.6, 60.0, 1.0], [1.9, 85.0, 1.5], (count, 3))

    walk(*sizes[0]).solve(check=False, iterations=2)  # compiles
    clock = perf_counter if workers else process_time
    if workers:
        cohort([walk(*size) for size in sizes[:3]], workers=workers)  # compiles
    problems, begun = [walk(*size) for size in sizes], clock()
    found = cohort(problems, workers=max(1, workers)).results
    together, seconds = [_Walk.of(result) for result in found], clock() - begun
    begun = clock()
    if workers:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            alone = list(pool.map(solved_walk, sizes))
    else:
        alone = [solved_walk(size) for size in sizes]
    where = f", {workers} processes" if workers else ""
    _walk_rows([(f"cohort{where}", together, seconds), (f"loop of solve{where}", alone, clock() - begun)])
    pairs = [(one.objective, other.objective) for one, other in zip(together, alone, strict=True)]
    for words, tolerance in (("the same optimum or a better one", 1e-4), ("the same to 1e-6, or better", 1e-6)):
        print(f"{words}: {np.mean([one <= other * (1 + tolerance) for one, other in pairs]):.1%}")
    for one, other in zip(together, alone, strict=True):
        print(f"{one.objective:.6f} in {one.iterations}, alone {other.objective:.6f} in {other.iterations} iterations")


class _Walk(NamedTuple):
    objective: float
    iterations: int
    is_solved: bool

    @classmethod
    def of(cls, result: MotionResult) -> "_Walk":
        return cls(result.objective, result.iterations, result.is_solved)


def walk(height: float, mass: float, speed: float) -> MotionProblem:
    """Return the problem of a walk."""
    return walking(human(float(height), float(mass)), Step(speed=float(speed)))


def solved_walk(size: Array) -> _Walk:
    """Solve a walk alone, from its own start."""
    warnings.simplefilter("ignore")
    return _Walk.of(walk(*size).solve(check=False))


def _walk_rows(rows: list[tuple[str, Sequence[_Walk], float]]) -> None:
    print("| method | walks a second | iterations | ms an iteration | solved |\n|---|---|---|---|---|")
    for method, results, took in rows:
        iterations, solved = [result.iterations for result in results], np.mean([one.is_solved for one in results])
        cost = f"{len(results) / took:.3f} | {np.mean(iterations):.1f} | {1e3 * took / sum(iterations):.1f}"
        print(f"| {method}, {len(results)} walks | {cost} | {solved:.1%} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=256, help="cases of the batch")
    parser.add_argument("--single", type=int, default=32, help="cases that are also solved one by one")
    parser.add_argument("--step", type=float, default=1e-3, help="change of the goal (rad) from one motion to the next")
    parser.add_argument("--workers", type=int, default=0, help="processes of a further batch")
    parser.add_argument("--gpu", type=int, default=0, help="cases of a batch on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walks", type=int, default=0, help="walks to be solved instead")
    settings = parser.parse_args()
    warnings.filterwarnings("ignore", "ur5-time")  # a few motions violate bounds between the nodes
    if settings.walks:
        walks(settings.walks, settings.seed, settings.workers)
        return
    make = PROBLEMS["ur5-time"]
    ends = np.random.default_rng(settings.seed).uniform(-1.5, 1.5, (settings.count, 6))
    cases = [{"end": end} for end in ends]
    problem = make(points=12)
    problem.solve_many(cases[:2])  # compiles
    problem.solve()
    begun = process_time()
    batch = problem.solve_many(cases)
    rate, solved = settings.count / (process_time() - begun), np.mean([result.is_solved for result in batch])
    print("| method | solved a second | solved | the batch is as good or better |\n|---|---|---|---|")
    print(f"| solve_many, {settings.count} cases | {rate:.1f} | {solved:.1%} | |")
    more: list[tuple[str, int, dict[str, Any]]] = []
    if settings.workers:
        many = 512 * settings.workers
        more.append((f"solve_many, {many} cases, {settings.workers} processes", many, {"workers": settings.workers}))
    if settings.gpu:
        more.append((f"solve_many, {settings.gpu} cases, GPU", settings.gpu, {"device": "cuda"}))
    for words, count, where in more:
        ends = np.random.default_rng(settings.seed).uniform(-1.5, 1.5, (count, 6))
        cases_there = [{"end": end} for end in ends]
        problem.solve_many(cases_there, **where)  # compiles, and allocates memory
        begun = perf_counter()
        results = problem.solve_many(cases_there, **where)
        rate, solved = count / (perf_counter() - begun), np.mean([result.is_solved for result in results])
        pairs = zip(results, batch, strict=False)  # the first cases are the same
        share = np.mean([one.objective <= other.objective * (1 + 1e-6) for one, other in pairs])
        print(f"| {words} | {rate:.1f} | {solved:.2%} | {share:.1%} as good as that of one core |")
    for solver in ("condensed", "ipopt"):
        begun, alone = process_time(), list[float]()
        for case in cases[: settings.single]:
            try:
                alone.append(make(points=12, **case).solve(solver).objective)
            except MotionError:
                alone.append(np.inf)
        rate = settings.single / (process_time() - begun)
        pairs = zip(batch, alone, strict=False)
        share = np.mean([one.objective <= other * (1 + 1e-6) for one, other in pairs if np.isfinite(other)])
        solved = np.isfinite(alone).mean()
        print(f"| loop of {solver}, {settings.single} cases | {rate:.1f} | {solved:.1%} | {share:.1%} |")
    continued(settings.step, settings.seed)


def continued(step: float, seed: int, count: int = 100) -> None:
    """Print iterations and times of neighbouring motions, started from the last solution and from straight lines."""
    problem, direction = PROBLEMS["ur5-time"](points=12), np.random.default_rng(seed).normal(size=6)
    direction /= np.abs(direction).max()
    cases = [{"end": [1.5, -0.5, 0.5, -1.5, -1.0, 1.0] + k * step * direction} for k in range(count + 1)]
    solver = Solver(problem)
    print(f"\n| {count} goals, {1e3 * step:g} mrad apart | iterations | ms | objective, compared |\n|---|---|---|---|")
    cold = list[float]()
    for words, is_cold in (("Solver, from straight lines", True), ("Solver, from the last solution", False)):
        iterations, objectives = list[int](), list[float]()
        solver.solve(cases[0])
        begun = process_time()
        for case in cases[1:]:
            result = solver.solve(case, problem.guess() if is_cold else None)
            iterations.append(result.iterations)
            objectives.append(result.objective)
        ms = 1e3 * (process_time() - begun) / count
        cold = cold or objectives
        change = np.abs(np.array(objectives) / cold - 1).max()
        print(f"| {words} | {np.mean(iterations):.1f} | {ms:.1f} | {change:.1e} |")


if __name__ == "__main__":
    main()
