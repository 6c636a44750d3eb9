"""Agreement between batches and single searches: optima of every built-in arm problem with random data.

    python benchmarks/agreement.py --count 1000 --workers 16

Each case is solved three times from the same start: in a batch (``solve_many``), alone by the condensed method, and
alone by IPOPT. Two optima are the same if their objectives agree to 1e-6.
"""

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from torsor.motion import PROBLEMS, MotionError
from torsor.motion.many import with_case

Rng = np.random.Generator
SAME, CHUNK = 1e-6, 25
UR5_TORQUES = np.array([150.0, 150.0, 150.0, 28.0, 28.0, 28.0])


def _near(rng: Rng, end: Any, by: float) -> Any:
    return (np.array(end) + rng.uniform(-by, by, len(end))).tolist()


# Settings of the problem, and its random data.
ARMS: dict[str, tuple[dict[str, Any], Callable[[Rng], dict[str, Any]]]] = {
    "two-link-time": (
        {"points": 8},
        lambda rng: {"End.q": _near(rng, [1.0, -1.0], 0.5), "Torques.upper": rng.uniform(8, 20)},
    ),
    "slide-link": ({"points": 8}, lambda rng: {"Torques.upper": rng.uniform(8, 20)}),
    "stanford-rates": (
        {},
        lambda rng: {"Torques.upper": rng.uniform(150, 300), "TorqueRates.upper": rng.uniform(800, 2000)},
    ),
    "ur5-time": ({"points": 12}, lambda rng: {"End.q": rng.uniform(-1.5, 1.5, 6).tolist()}),
    "panda-time": (
        {"points": 12},
        lambda rng: {"End.q": _near(rng, [1.2, 0.3, -0.3, -1.5, 0.4, 1.9, 0.2], 0.4)},
    ),
    "path-time": ({}, lambda rng: {"Torques.upper": (UR5_TORQUES * rng.uniform(0.6, 1.0, 6)).tolist()}),
    "elastic-arm": (
        {},
        lambda rng: {
            "End.q": dict(zip(("joint1", "joint2", "joint3"), _near(rng, [1.0, 0.9, -0.4], 0.3), strict=True))
        },
    ),
}


def compared(name: str, seed: int, count: int) -> tuple[list[tuple[float, float, float]], list[str]]:
    """Return the objectives of cases in a batch, by the condensed method and by IPOPT; NaN if not solved."""
    warnings.simplefilter("ignore")
    settings, data = ARMS[name]
    problem, rng = replace(PROBLEMS[name](**settings)), np.random.default_rng(seed)  # a copy takes named data
    cases = [data(rng) for _ in range(count)]
    rows, reasons = [], list[str]()
    for case, result in zip(cases, problem.solve_many(cases, refine=False), strict=True):
        if not result.is_solved:
            reasons.append(result.status)
        row = [result.objective if result.is_solved else np.nan]
        for solver in ("condensed", "ipopt"):
            try:
                alone = with_case(problem, case, 0).solve(solver, refine=False)
                row.append(alone.objective if alone.is_solved else np.nan)
            except MotionError:
                row.append(np.nan)
        rows.append((row[0], row[1], row[2]))
    return rows, reasons


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="cases of each problem")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--problems", nargs="+", choices=ARMS, default=list(ARMS))
    settings = parser.parse_args()
    print("| problem | cases | solved: batch, condensed, IPOPT | same, better, worse than condensed | than IPOPT |")
    print("|---|---|---|---|---|")
    with ProcessPoolExecutor(settings.workers, mp_context=get_context("spawn")) as pool:
        for name in settings.problems:
            compared_with, chunks = [], range(0, settings.count, CHUNK)
            jobs = [pool.submit(compared, name, first, min(CHUNK, settings.count - first)) for first in chunks]
            reasons = list[str]()
            for job in jobs:
                rows, failed = job.result()
                compared_with += rows
                reasons += failed
            batch, *others = np.array(compared_with).T
            solved = ", ".join(f"{np.isfinite(values).mean():.1%}" for values in (batch, *others))
            columns = [_shares(batch, other) for other in others]
            print(f"| `{name}` | {settings.count} | {solved} | {' | '.join(columns)} |", flush=True)
            for reason in sorted(set(reasons)):
                print(f"    {reasons.count(reason)} not solved in the batch: {reason}")


def _shares(batch: np.ndarray, other: np.ndarray) -> str:
    both = np.isfinite(batch) & np.isfinite(other)
    change = (batch[both] - other[both]) / np.abs(other[both])
    shares = (np.abs(change) <= SAME).mean(), (change < -SAME).mean(), (change > SAME).mean()
    return ", ".join(f"{share:.1%}" for share in shares)


if __name__ == "__main__":
    main()
