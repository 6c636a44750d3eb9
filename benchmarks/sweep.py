"""Benchmark of sweeps: cases per second with two processes and in batches, killed workers, memory, and case time.

The script prints Markdown tables.

    python benchmarks/sweep.py [--walks N] [--repeats N] [--motions N] [--kills N] [--cases N] [--skip-walks]

``--walks`` is the number of walks in each run. Runs with one process and with two alternate, ``--repeats`` times, and
the best times count. ``--motions`` is the number of arm motions that are solved in batches and one by one, ``--kills``
is how often a worker is killed with SIGKILL, and ``--cases`` is the number of cases of the run that measures memory.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torsor
from torsor import motion
from torsor.motion import sweeps
from torsor.motion.sweeps.executors import Processes
from torsor.motion.sweeps.subjects import Variation


def pause(number: int, folder: str) -> float:
    """Return the square of a number after 50 ms; a file in a folder shows which process computes."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(0.05)
    return float(number * number)


def square(number: int) -> float:
    """Return the square of a number."""
    return float(number * number)


def bodies(count: int) -> list[dict[str, Any]]:
    """Return bodies that all take about the same time to solve, so that the last case does not decide."""
    return [{"height": 1.70 + 0.002 * (k % 8), "mass": 70.0 + 0.2 * (k % 8)} for k in range(count)]


def walks(count: int, repeats: int) -> None:
    """Print walks per second with one and two processes, which are started and warm before the measurement begins."""
    print(f"| {count} walks | walks a second | to one process | time in which processes compute |\n|---|---|---|---|")
    best = dict.fromkeys((1, 2), (0.0, 0.0))
    with Processes(1) as one, Processes(2) as two:
        pools = {1: one, 2: two}
        for workers, pool in pools.items():
            torsor.sweep("walk", bodies(workers), executor=pool)  # starts and warms them
        for workers, pool in [*pools.items()] * repeats:
            start = time.perf_counter()
            found = torsor.sweep("walk", bodies(count), executor=pool)
            seconds = time.perf_counter() - start
            busy = found["elapsed"].sum() / (workers * seconds)
            best[workers] = max(best[workers], (found.done / seconds, busy))
    for workers, (rate, busy) in best.items():
        print(f"| {workers} processes | {rate:.3f} | {rate / best[1][0]:.2f}x | {100 * busy:.1f} % |", flush=True)


def batches(count: int, repeats: int) -> None:
    """Print motions per second of processor time: a sweep of a problem in batches, and of a function one by one."""
    problem = motion.PROBLEMS["ur5-time"](points=12)
    cases = [{"links.forearm_link.mass": 2.0 + 4.0 * k / count} for k in range(count)]
    ways = {
        "in batches": (problem, {}),
        "one by one, same solver": (Variation(problem).__call__, {"solver": "condensed"}),
        "one by one, default solver": (Variation(problem).__call__, {}),
    }
    best = dict.fromkeys(ways, 0.0)
    for way, (subject, settings) in [*ways.items()] * (repeats + 1):  # the first run also compiles
        start = time.process_time()
        found = torsor.sweep(subject, cases, settings=settings, workers=0)
        assert found.done == count
        best[way] = max(best[way], count / (time.process_time() - start))
    print(f"| {count} motions of a UR5 | motions a second of processor time | batches, compared |\n|---|---|---|")
    for way, rate in best.items():
        print(f"| {way} | {rate:.2f} | {best['in batches'] / rate:.2f}x |", flush=True)


def kills(count: int) -> None:
    """Print how many cases are lost or duplicated while workers are killed repeatedly."""
    done = threading.Event()

    def cases() -> Iterator[dict[str, Any]]:
        number = 0
        while number < 100 or not done.is_set():
            yield {"number": number}
            number += 1

    with tempfile.TemporaryDirectory() as folder, Processes(2) as pool:

        def kill() -> None:
            left = count
            while left:
                time.sleep(0.01)
                for pid in [each for each in pool.pids if Path(folder, str(each)).exists()][:1]:
                    time.sleep(0.2)  # in the midst of a case
                    os.kill(pid, signal.SIGKILL)
                    Path(folder, str(pid)).unlink()
                    left -= 1
            done.set()

        killer = threading.Thread(target=kill)
        killer.start()
        found = torsor.sweep(
            pause, cases(), fixed={"folder": folder}, executor=pool, output=Path(folder, "kills.sqlite")
        )
        killer.join()
        numbers = found["number"].astype(int).tolist()
        wrong = sum(value != number**2 for value, number in zip(found["value"], numbers, strict=True))
        failed = found.failed + wrong
        lost, doubled = len(set(range(max(numbers) + 1)) - set(numbers)), len(numbers) - len(set(numbers))
    print("| workers killed | cases | lost | doubled | failed or wrong |\n|---|---|---|---|---|")
    print(f"| {count} | {len(numbers)} | {lost} | {doubled} | {failed} |", flush=True)


def resident() -> float:
    """Return the memory of this process (MB)."""
    text = Path("/proc/self/statm")
    return int(text.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if text.exists() else float("nan")


def memory(count: int) -> None:
    """Print the memory of this process during a study of many cases, and the time of an empty case."""
    print("| cases | file | ms a case | memory after a tenth (MB) | at the end (MB) |\n|---|---|---|---|---|")
    for suffix in ("sqlite", "parquet"):
        marks = list[float]()

        def cases(marks: list[float] = marks) -> Iterator[dict[str, Any]]:
            for number in range(count):
                if number == count // 10:
                    marks.append(resident())
                yield {"number": number}
            marks.append(resident())

        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            try:
                found = torsor.sweep(square, cases(), workers=0, output=Path(folder, f"many.{suffix}"))
            except ImportError:
                continue
            seconds = time.perf_counter() - start
            assert found.done == count == len(sweeps.read(Path(folder, f"many.{suffix}")))
        print(f"| {count} | .{suffix} | {1e3 * seconds / count:.2f} | {marks[0]:.1f} | {marks[1]:.1f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("walks", 24), ("repeats", 2), ("motions", 32), ("kills", 20), ("cases", 100_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--skip-walks", action="store_true")
    options = parser.parse_args()
    if not options.skip_walks:
        walks(options.walks, options.repeats)
    if options.motions:
        batches(options.motions, options.repeats)
    if options.kills:
        kills(options.kills)
    if options.cases:
        memory(options.cases)


if __name__ == "__main__":
    main()
