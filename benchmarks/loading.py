"""Time to load URDF files, compared with Pinocchio's parser in the same process.

    python benchmarks/loading.py [--repeats 40]

The files are those of the package example-robot-data. The table has the shortest processor time of each call in
milliseconds, and the limit; the calls of both libraries alternate. Here, Pinocchio reads neither visuals nor collision
shapes, whereas ``torsor.load`` reads both. The exit code is 1 if a file takes longer than its limit.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pinocchio

import torsor
from bench.measure import robot_file

LIMITS = {"ur5_robot.urdf": 8.0, "panda.urdf": 12.0, "solo12.urdf": 15.0, "talos_full_v2.urdf": 40.0}  # ms


def milliseconds(call: Callable[[str], Any], path: str) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    call(path)
    return 1e3 * (time.process_time() - start)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    slow = False
    print("| file | torsor (ms) | Pinocchio (ms) | limit (ms) |\n|---|---|---|---|")
    for name, limit in LIMITS.items():
        path, calls = str(robot_file(name)), (torsor.load, pinocchio.buildModelFromUrdf)
        times = [[milliseconds(call, path) for call in calls] for _ in range(repeats)]
        own, peer = (min(column) for column in zip(*times, strict=True))
        slow |= own > limit
        print(f"| {name} | {own:.1f} | {peer:.1f} | {limit:g} |", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
