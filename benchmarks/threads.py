"""Measure inverse dynamics of large batches with 1 to 16 threads and "auto": ns per state, and speedup.

    python benchmarks/threads.py [--states 16384 131072 1000000] [--threads 1 2 4 8 16 auto] [--pause MS]

The script prints Markdown tables. Each time is the best of nine calls with ``out=``, or of fewer calls on slow
machines; a run takes about 40 s. Numbers of threads alternate, so that other load on the machine affects all of them.
With ``--pause``, the threads are asleep when a call begins, and the call takes longer by the time that the system needs
to wake them. UR5 and Talos are those of the package example-robot-data, or files in the folder ``--robots``; a random
tree with as many joints replaces a missing robot.
"""

import argparse
import os
import platform
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

import torsor
from torsor.compiler.threads import available_cores

ROBOTS = {"UR5": ("ur5_robot.urdf", 6), "Talos": ("talos_reduced.urdf", 32)}
ROUNDS, CALLS = 3, 3


def robot(title: str, folder: Path | None) -> tuple[str, torsor.Robot]:
    """Return a robot and its title: from the folder, from the package, or a random tree of the same size."""
    name, joints = ROBOTS[title]
    try:
        listed = [Path(str(each.locate())) for each in files("example-robot-data") or []]
    except PackageNotFoundError:
        listed = []
    found = [each for each in (*([] if folder is None else folder.rglob(name)), *listed) if each.name == name]
    if not found:
        return f"tree of {joints}", torsor.library.random_tree(joints, seed=1, types=("revolute",), extras=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return title, torsor.load(found[0]).without_friction()


def times(one: torsor.Robot, states: int, threads: Sequence[int | str], pause: float, seconds: float) -> list[float]:
    """Return the shortest time (s) of a call for each number of threads; the results must have the same bits."""
    rng = np.random.default_rng(0)
    inputs = [np.resize(rng.uniform(-1, 1, (4096, one.nv)), (states, one.nv)) for _ in range(3)]
    out, wanted = np.empty((states, one.nv)), one.inverse_dynamics(*inputs)
    robots = [one.to(threads=count) for count in threads]
    best, end = [np.inf] * len(robots), time.perf_counter() + seconds
    for round_ in range(ROUNDS):
        for k, each in enumerate(robots):
            out[:] = 0.0
            for _ in range(CALLS):  # the threads of a number are there from its second call on
                if pause:
                    time.sleep(pause)
                start = time.perf_counter()
                each.inverse_dynamics(*inputs, out=out)
                best[k] = min(best[k], time.perf_counter() - start)
            assert np.array_equal(out, wanted), f"{each.target.threads} threads: other results"
        if round_ and time.perf_counter() > end:
            break
    return best


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="+", default=[16_384, 131_072, 1_000_000])
    parser.add_argument("--threads", nargs="+", default=["1", "2", "4", "8", "16", "auto"])
    parser.add_argument("--pause", type=float, default=0.0, metavar="MS", help="milliseconds of sleep before each call")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long to measure, about")
    parser.add_argument("--robots", type=Path, metavar="FOLDER", help="folder with ur5_robot.urdf, talos_reduced.urdf")
    given = parser.parse_args()
    threads = [count if count == "auto" else int(count) for count in given.threads]
    cores = f"{available_cores()} of {os.cpu_count()} cores"
    print(f"{platform.machine()}, {cores}, Python {platform.python_version()}, NumPy {np.__version__}\n")
    head = f"| inverse dynamics | {' | '.join(map(str, threads))} |\n|---|{'---|' * len(threads)}"
    print(f"ns a state, by number of threads\n\n{head}", flush=True)
    rows, share = [], len(ROBOTS) * len(given.states)
    for title in ROBOTS:
        name, one = robot(title, given.robots)
        for states in given.states:
            found = times(one, states, threads, given.pause / 1000, given.seconds / share)
            rows.append((f"{name}, {states:,}", [1e9 * each / states for each in found]))
            print(f"| {rows[-1][0]} | {' | '.join(f'{each:.1f}' for each in rows[-1][1])} |", flush=True)
    print(f"\nspeedup to the first column\n\n{head}")
    for name, found in rows:
        print(f"| {name} | {' | '.join(f'{found[0] / each:.2f}x' for each in found)} |")


if __name__ == "__main__":
    main()
