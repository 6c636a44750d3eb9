"""Proofs of the bounds of minimum-time motions: the time of a proof, and the increase in duration.

    OMP_NUM_THREADS=1 python benchmarks/certificates.py

Each motion is solved with the default settings and with ``refine=True``, and is then slowed down until all bounds are
proven. The increase is relative to the default motion. The time of a proof is that of ``certify`` for the slower motion
with warm kernels: the least processor time of 50 runs on one core.
"""

import argparse
from time import process_time

from torsor.motion import PROBLEMS, MotionResult

NAMES = ("ur5-time", "panda-time", "two-link-time", "slide-link", "path-time")


def milliseconds(result: MotionResult, runs: int) -> float:
    """Return the processor time of a proof."""
    times = []
    for _ in range(runs):
        begun = process_time()
        assert result.certify().is_proven
        times.append(process_time() - begun)
    return 1e3 * min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, help="built-in problems")
    parser.add_argument("--runs", type=int, default=50, help="runs of each proof")
    settings = parser.parse_args()
    print("| motion | rows | T (s) | loss | loss, refined | proof (ms) |\n|---|---|---|---|---|---|")
    for name in settings.names:
        default = PROBLEMS[name]().solve()
        proven = default.certified()
        refined = PROBLEMS[name]().solve(refine=True).certified()
        losses = (f"{100 * (result.T / default.T - 1):.3f} %" for result in (proven, refined))
        rows, time = len(proven.certify().bounds), milliseconds(proven, settings.runs)
        print(f"| {name} | {rows} | {default.T:.4f} | {' | '.join(losses)} | {time:.2f} |", flush=True)


if __name__ == "__main__":
    main()
