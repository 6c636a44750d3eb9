"""Measure inverse dynamics of large batches with 1, 2, 4, 8, 16 threads and "auto": ns a state, and speedup.

    python benchmarks/threads.py [--states 16384 131072 1000000] [--threads 1 2 4 8 16 auto] [--pause MS]

Prints Markdown tables: the best of nine calls each, with ``out=``, in about a minute. Numbers of threads alternate, so
that other load on the machine affects all. With ``--pause`` the threads are asleep when a call begins: it lasts longer
by the time that the system takes to wake them. UR5 and Talos are those of the wheel example-robot-data; without it, a
random tree with as many joints takes the place of each.
"""

import argparse
import os
import platform
import time
import warnings
from collections.abc import Sequence

import numpy as np

import torsor
from torsor.bench.measure import robot_file
from torsor.compiler.threads import available_cores

ROBOTS = {"UR5": ("ur5_robot.urdf", 6), "Talos": ("talos_reduced.urdf", 32)}
REPEATS = 9
SECONDS = 4.0  # for one row: slow machines repeat less often, but at least three times


def robot(title: str) -> tuple[str, torsor.Robot]:
    """Return a robot of the wheel, or a random tree of the same size, and its title."""
    name, joints = ROBOTS[title]
    path = robot_file(name)
    if path is None:
        return f"tree of {joints}", torsor.library.random_tree(joints, seed=1, types=("revolute",), extras=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return title, torsor.load(path).without_friction()


def times(one: torsor.Robot, states: int, threads: Sequence[int | str], pause: float) -> list[float]:
    """Return the shortest time (s) of a call for each number of threads; the results must have the same bits."""
    rng = np.random.default_rng(0)
    inputs = [np.resize(rng.uniform(-1, 1, (4096, one.nv)), (states, one.nv)) for _ in range(3)]
    out, wanted = np.empty((states, one.nv)), one.inverse_dynamics(*inputs)
    robots = [one.to(threads=count) for count in threads]
    for each in robots:
        out[:] = np.nan
        each.inverse_dynamics(*inputs, out=out)
        assert out.tobytes() == wanted.tobytes(), f"{each.target.threads} threads: other bits"
    best, end = [np.inf] * len(robots), time.perf_counter() + SECONDS
    for repeat in range(REPEATS):
        for k, each in enumerate(robots):
            each.inverse_dynamics(*inputs, out=out)  # threads of the same number come from a call just before
            if pause:
                time.sleep(pause)
            start = time.perf_counter()
            each.inverse_dynamics(*inputs, out=out)
            best[k] = min(best[k], time.perf_counter() - start)
        if repeat >= 2 and time.perf_counter() > end:
            break
    return best


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="+", default=[16_384, 131_072, 1_000_000])
    parser.add_argument("--threads", nargs="+", default=["1", "2", "4", "8", "16", "auto"])
    parser.add_argument("--pause", type=float, default=0.0, metavar="MS", help="milliseconds of sleep before each call")
    given = parser.parse_args()
    threads = [count if count == "auto" else int(count) for count in given.threads]
    cores = f"{available_cores()} of {os.cpu_count()} cores"
    print(f"{platform.machine()}, {cores}, Python {platform.python_version()}, NumPy {np.__version__}\n")
    rows = []
    for title in ROBOTS:
        name, one = robot(title)
        for states in given.states:
            found = times(one, states, threads, given.pause / 1000)
            rows.append((f"{name}, {states:,}", [1e9 * each / states for each in found]))
    head = f"| inverse dynamics | {' | '.join(map(str, threads))} |\n|---|{'---|' * len(threads)}"
    print(f"ns a state, by number of threads\n\n{head}")
    for name, found in rows:
        print(f"| {name} | {' | '.join(f'{each:.1f}' for each in found)} |")
    print(f"\nspeedup to the first column\n\n{head}")
    for name, found in rows:
        print(f"| {name} | {' | '.join(f'{found[0] / each:.2f}x' for each in found)} |")


if __name__ == "__main__":
    main()
