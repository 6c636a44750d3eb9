"""Many minimum-time motions at once, beside loops of IPOPT and of the condensed method with the same functions.

    python benchmarks/many_motions.py --count 256 --single 32

Random ends of the UR5 with 12 control points (49 variables, 1,452 rows). Times are processor times of one core.
"""

import argparse
from time import process_time

import numpy as np

from torsor.motion import PROBLEMS, MotionError


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=256, help="cases of the batch")
    parser.add_argument("--single", type=int, default=32, help="cases that are also solved one by one")
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
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
