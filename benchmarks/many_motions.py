"""Many minimum-time motions at once, beside loops of IPOPT and of the condensed method with the same functions.

    python benchmarks/many_motions.py --count 256 --single 32

Random ends of the UR5 with 12 control points (49 variables, 1,452 rows). Times are processor times of one core.
``--walks 8`` solves free walks of people with random heights, masses and speeds instead (420 variables, 3,459 rows).
"""

import argparse
from time import process_time
from typing import Any

import numpy as np

from torsor.human import Step, cohort, walking
from torsor.library import human
from torsor.motion import PROBLEMS, MotionError, MotionProblem


def walks(count: int, seed: int) -> None:
    """Print the table of free walks."""
    sizes = np.random.default_rng(seed).uniform([1.6, 60.0, 1.0], [1.9, 85.0, 1.5], (count, 3))

    def made() -> list[MotionProblem]:
        free: dict[str, Any] = {"length": "free", "width": "free", "timing": "free"}
        return [walking(human(height, mass), Step(speed=v, **free), "free") for height, mass, v in sizes.tolist()]

    made()[0].solve(check=False, iterations=2)  # compiles
    begun = process_time()
    together = cohort(made()).results
    seconds, begun = process_time() - begun, process_time()
    alone = [problem.solve(check=False) for problem in made()]
    single = process_time() - begun
    print(
        "| method | walks a second | ms an iteration | solved | the batch is as good or better |\n|---|---|---|---|---|"
    )
    for method, results, took in (("cohort", together, seconds), ("loop of solve", alone, single)):
        cost = 1e3 * took / sum(result.iterations for result in results)
        solved = np.mean([result.is_solved for result in results])
        print(f"| {method}, {count} walks | {count / took:.3f} | {cost:.1f} | {solved:.1%} | |")
    pairs = list(zip(together, alone, strict=True))
    print(f"as good or better: {np.mean([one.objective <= other.objective * (1 + 1e-4) for one, other in pairs]):.1%}")
    for one, other in pairs:
        print(f"{one.objective:.5f} in {one.iterations}, alone {other.objective:.5f} in {other.iterations} iterations")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=256, help="cases of the batch")
    parser.add_argument("--single", type=int, default=32, help="cases that are also solved one by one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walks", type=int, default=0, help="free walks to be solved instead")
    settings = parser.parse_args()
    if settings.walks:
        walks(settings.walks, settings.seed)
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


if __name__ == "__main__":
    main()
