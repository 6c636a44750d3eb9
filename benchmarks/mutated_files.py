"""Mutate files of every format and reference arrays, use them, and count crashes, hangs and foreign tracebacks.

    python benchmarks/mutated_files.py [--count 10000] [--seed 0] [--seconds 600] [--kinds urdf,mjcf,...] [--jobs 2]

Loading a file may succeed, or raise a ``ModelError`` (or ``MotionError``, ``SimulationError``). A hang is a file that
takes more than 5 s of processor time, or more than a minute. A process has 2 GiB of memory: a file that needs more
raises a foreign ``MemoryError``. Files are loaded in ``--jobs`` processes, so that a crash is counted and the run
continues with the next file. The seeds of all failures are printed: ``--seed S --count 1 --kinds K`` repeats one.

Besides the formats, the kinds are scenes (MJCF that is loaded and simulated with contact), logs for identification,
references (samples and files for controllers, forces and prescribed motion), motion problems and studies. The usd,
xacro and MJCF kinds need the extras ``usd``, ``xacro`` and ``mjcf``; all others need only NumPy, CasADi, llvmlite and
rich.
"""

import argparse
import csv
import io
import math
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np

import torsor
from bench.originals import LOG_MAP, MJCF, PROBLEM, SCENE, SDF, STUDY, URDF, USD, XACRO
from torsor.base.errors import ModelError
from torsor.identification import Measurements, first_look
from torsor.motion import PROBLEMS, MotionError, MotionResult, load_problem
from torsor.motion.sweeps import load_study
from torsor.motion.sweeps.cases import numbered
from torsor.motion.sweeps.subjects import subject_of
from torsor.simulation import Contact, SimulationError

LIMIT, WAITING = 5.0, 60.0  # seconds of processor time, and of waiting
MEMORY = 2 * 2**30  # bytes
FAMILY = (ModelError, MotionError, SimulationError)

ODD = "nan inf -inf 0 -0 -1 1e-320 1e308 1e400 1e200 1e9999 9999999999999999999999 0x10 1_000 ١ true"
ODD += " '' \" < > & ]]> -- . , ; # = [ ] { }"
ODD_NUMBERS = ["0", "-0.5", "0.001", "1e-9", "1e-300", "3", "45", "1e9", "1e30", "1e300", "-1e9", "nan", "inf", "-2"]
ODD_WORDS = [
    *ODD.split(),
    "\0",
    "\x1b[2J",
    "\u202e",
    "é",
    "\ud800",
    " " * 99,
    "a" * 5000,
    "a." * 300,
    "[" * 300,
    "<a>" * 300,
]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return content with one or two changes of bytes, slices, numbers, words or lines.

    In half of the files, only numbers are changed, so that the parser does not reject all of them.
    """
    only_numbers = rng.random() < 0.5
    for _ in range(rng.choice((1, 1, 1, 2))):
        if not content:
            return content
        kind, at = 4 if only_numbers else rng.randrange(8), rng.randrange(len(content))
        end = min(len(content), at + rng.choice((1, 2, 8, 64, 512)))
        if kind == 0:
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + content[end:]
        elif kind == 2:
            content = content[:end] + content[at:end] * rng.choice((1, 2, 20)) + content[end:]
        elif kind == 3:
            content = content[:at]
        else:
            pattern = (rb"-?\d+\.?\d*", rb"\w+", rb"[\"'][^\"'\n]*[\"']", rb"[^\n]*\n")[kind - 4]
            found = list(re.finditer(pattern, content))
            if found:
                one, other = rng.choice(found), rng.choice(found)
                odd = ODD_NUMBERS if only_numbers else ODD_WORDS
                new = rng.choice(odd).encode("utf-8", "surrogatepass") if rng.random() < 0.6 else other[0]
                content = content[: one.start()] + new + content[one.end() :]
    return content


def mutated_member(content: bytes, rng: random.Random) -> bytes:
    """Return a .npz file with one of its arrays mutated, and correct checksums, so that the array itself is read."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, mutated(data[:256], rng) + data[256:] if name == chosen else data)
    return made.getvalue()


def mutated_rows(rng: random.Random) -> list[Any]:
    """Return a Denavit-Hartenberg table with a few values replaced by unusual ones."""
    odd = [
        math.nan,
        math.inf,
        -1,
        0,
        1e308,
        10**400,
        "1",
        "",
        None,
        True,
        [],
        [1],
        (1, 2, 3),
        {},
        np.eye(3),
        np.zeros(0),
        b"x",
        7,
    ]
    odd += [
        1j,
        np.float32(2),
        np.array(None),
        "fixed",
        "spherical",
        "rod",
        2,
        lambda x: x,
        np.ma.masked,
        torsor.Spring(3.0),
    ]
    kind = rng.choice((torsor.DHLink, torsor.MDHLink))
    rows: list[Any] = []
    for index in range(rng.randrange(1, 5)):
        values: dict[str, Any] = {"d": 0.3, "alpha": 0.5, "mass": 1.0, "com": (0.1, 0, 0), "inertia": np.eye(3) * 0.1}
        if kind is torsor.MDHLink:
            values["parent"] = index - 1
        for _ in range(rng.choice((0, 1, 1, 3))):
            values[rng.choice(list(kind.__dataclass_fields__))] = rng.choice(odd)
        rows.append(rng.choice(odd) if rng.random() < 0.02 else kind(**values))
    return rows


def mutated_rows_of_log(content: str, rng: random.Random) -> str:
    """Return a log with mistakes that loggers make: wrong units, gaps, and repeated, swapped and missing samples."""
    heads, *rows = csv.reader(io.StringIO(content))
    table = np.array(rows, dtype=float)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, column = rng.randrange(len(table)), rng.randrange(table.shape[1])
        end = min(len(table), at + rng.choice((1, 3, 20, 200)))
        mistake = rng.randrange(9)
        if mistake == 0:
            table[:, column] *= rng.choice((1e3, 1e-3, 57.3, 0.0, -1.0, 1e9, 1e300, 1e-300, 1e308))
        elif mistake == 1 and end - at < len(table):
            table = np.delete(table, slice(at, end), axis=0)
        elif mistake == 2:
            table[at:end, column] = rng.choice((np.nan, np.inf, -np.inf, 0.0, 1e308, table[at, column]))
        elif mistake == 3:
            table[at:end] = table[at]
        elif mistake == 4:
            table[[at, -1]] = table[[-1, at]]
        elif mistake == 5:
            table[at:, 0] += rng.choice((10.0, -0.5, 1e9, 1e-12))
        elif mistake == 6:
            table = table[: rng.choice((1, 2, 3, 5, 20))]
        elif mistake == 7:
            table[:, column] = table[:, rng.randrange(table.shape[1])]
        else:
            heads[column] = rng.choice(
                (*heads, "time [ms]", "q joint1 [deg]", "v joint1", "a joint2", "temperature", "")
            )
    made = io.StringIO()
    csv.writer(made).writerows([heads, *table.tolist()])
    return made.getvalue()


def mutated_samples(arrays: list[Any], rng: random.Random) -> tuple[Any, ...]:
    """Return arrays over time with unusual numbers, shapes and types in a few of them."""
    odd: list[Any] = [None, "x", [], {}, [[1.0], [2.0, 3.0]], np.array(None), 1j, np.zeros(0), np.ma.masked, math.nan]
    odd += [np.zeros((2, 0)), np.zeros((0, 2)), np.array(["a"]), [None, 1.0], lambda t: t, torsor.library, b"x", 7]
    arrays = [each.copy() for each in arrays]
    for _ in range(rng.choice((0, 1, 1, 2))):
        k = rng.choice((0, rng.randrange(len(arrays))))
        each = arrays[k]
        if not isinstance(each, np.ndarray) or not each.ndim or not each.size or each.dtype.kind != "f":
            continue
        change, at = rng.randrange(9), rng.randrange(each.size)
        if change == 0:
            each.flat[at] = rng.choice((np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 1e9, -1.0, 0.0))
        elif change == 1:
            arrays[k] = each * rng.choice((1e3, -1.0, 0.0, 1e-320, 1e300, 57.3))
        elif change == 2:
            arrays[k] = each[: rng.choice((0, 1, 2, len(each) - 1))]
        elif change == 3:
            arrays[k] = each[::-1] if rng.random() < 0.5 else np.repeat(each, 2, axis=0)
        elif change == 4:
            arrays[k] = each[..., : rng.randrange(each.shape[-1] + 1)]
        elif change == 5:
            arrays[k] = rng.choice((each[None], each[..., None], each.T, np.stack([each, each]), each.ravel()))
        elif change == 6:
            arrays[k] = rng.choice((each.tolist(), each.astype(int), each.astype(object), each.astype(str), each > 0))
        elif change == 7:
            arrays[k] = rng.choice(odd)
        else:
            arrays = arrays[:k] if rng.random() < 0.5 else [*arrays, arrays[k]]
            break
        if not arrays:
            break
    return tuple(arrays)


Try = Callable[[random.Random, Path], Any]


def _file(suffix: str, content: bytes, load: Callable[[Path], Any]) -> Try:
    def run(rng: random.Random, folder: Path) -> None:
        path = folder / f"mutated{suffix}"
        inside = suffix == ".npz" and rng.random() < 0.8
        path.write_bytes((mutated_member if inside else mutated)(content, rng))
        load(path)

    return run


def _table(rng: random.Random, folder: Path) -> None:
    rows = mutated_rows(rng)
    gravity: Any = rng.choice([5, "x", None]) if rng.random() < 0.1 else (0, 0, -9.81)
    (torsor.from_dh if rng.random() < 0.5 else torsor.from_mdh)(rows, gravity)


def _scene(rng: random.Random, folder: Path) -> None:
    """Load a scene and take two steps with contact: with the floor and the wall, or also between the bodies."""
    path = folder / "scene.xml"
    path.write_bytes(mutated(SCENE.encode(), rng))
    pairs: Any = rng.choice(((), "all", [("ball", "foot")]))
    # CasADi's virtual machine compiles nothing: tracing takes 0.1 s, machine code seconds.
    robot = torsor.load(path).to(device="casadi")
    start = robot.postures.get("home", robot.neutral())
    contact = Contact(kind="hard", pairs=pairs, sweeps=2) if rng.random() < 0.3 else Contact(pairs=pairs)
    torsor.simulate(robot, start, duration=2e-3, contact=contact)


def _identification() -> Try:
    """Check a log, as ``torsor identify --check`` does, or load it; now and then with a mutated map."""
    arm = torsor.library.planar_chain(2)
    t = np.arange(0.0, 3.0, 0.01)[:, None]
    w = 2 * np.pi * np.array([0.5, 0.75])
    q, v, a = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    log = io.StringIO()
    csv.writer(log).writerow(["time", "q joint1", "q joint2", "tau joint1", "tau joint2"])
    csv.writer(log).writerows(np.hstack([t, q, arm.inverse_dynamics(q, v, a)]).round(6).tolist())
    named, plain = log.getvalue(), log.getvalue().replace("time,q joint1,q joint2,tau joint1,tau joint2", "t,a,b,c,d")

    def run(rng: random.Random, folder: Path) -> None:
        path, map_path, has_map = folder / "log.csv", folder / "map.toml", rng.random() < 0.25
        content = plain if has_map else named
        content = mutated_rows_of_log(content, rng) if rng.random() < 0.7 else content
        path.write_bytes(mutated(content.encode(), rng) if rng.random() < 0.5 else content.encode())
        map_path.write_bytes(mutated(LOG_MAP.encode(), rng))
        log_map = map_path if has_map else None
        if rng.random() < 0.5:
            look = first_look(arm, path, log_map, cutoff=rng.choice((None, 5.0)))
            look.report()
            look.to_dict()
        else:
            Measurements.load(path, arm, log_map)

    return run


def _reference(folder: Path) -> Try:
    """Use samples or a file as the reference of a controller, as forces, wrenches or prescribed motion."""
    arm = torsor.library.two_link().to(device="casadi")
    problem = PROBLEMS["two-link-time"](points=6)
    times, end = np.linspace(0.0, 0.01, 6), 0.002
    q = np.sin(times)[:, None] * [1.0, 2.0]
    swing = torsor.simulate(arm, duration=0.01)
    solved = problem.solve(check=False)
    timed = torsor.motion.retime(arm, solved, velocity=5.0)
    results: dict[str, Any] = {"swing": swing, "motion": solved, "timed": timed}
    files = {}
    for name, result in results.items():
        result.save(folder / f"{name}.npz")
        files[f"{name}.npz"] = (folder / f"{name}.npz").read_bytes()
    swing.save(folder / "swing.csv")
    files["swing.csv"] = (folder / "swing.csv").read_bytes()
    motion = [times, q, np.gradient(q, times, axis=0), np.zeros_like(q)]

    def read(law: torsor.control.Reference) -> None:
        law(np.array([-1.0, 0.0, 0.005, 9.0]))

    def run(rng: random.Random, folder: Path) -> None:
        use = rng.randrange(10)
        if use < 5:
            name = rng.choice(list(files))
            path, is_archive = folder / name, name.endswith(".npz") and rng.random() < 0.8
            path.write_bytes((mutated_member if is_archive else mutated)(files[name], rng))
            read(torsor.control.reference(arm, path))
        elif use < 8:
            read(torsor.control.reference(arm, mutated_samples(motion[: rng.choice((2, 4))], rng)))
        elif use == 8:
            torsor.simulate(arm, duration=end, controller=mutated_samples(motion[:2], rng))
        elif rng.random() < 0.5:
            torsor.simulate(arm, duration=end, external=mutated_samples([times, np.zeros((6, 2, 6))], rng))
        else:
            torsor.simulate(arm, duration=end, prescribed={("joint1", "joint2"): mutated_samples(motion, rng)})

    return run


def _problem(rng: random.Random, folder: Path) -> None:
    """Load a motion problem and build its statement, or load a study of one and the problems of its first cases."""
    problem, study, is_study = folder / "p.toml", folder / "study.toml", rng.random() < 0.4
    problem.write_bytes(PROBLEM.encode() if is_study else mutated(PROBLEM.encode(), rng))
    if not is_study:
        load_problem(problem)
        return
    study.write_bytes(mutated(STUDY.encode(), rng))
    loaded = load_study(study)
    subject = subject_of(loaded.problem, keep=loaded.options["keep"], settings=loaded.options["settings"])
    for case in islice(numbered(loaded.cases, loaded.options["fixed"]), 3):
        subject.check(case.values, "study")
        subject.function(**case.values)


def _result(folder: Path) -> Try:
    problem = PROBLEMS["slide-link"]()
    problem.solve().save(folder / "r.npz")
    return _file(".npz", (folder / "r.npz").read_bytes(), lambda path: MotionResult.load(path, problem))


def _trajectory(folder: Path, suffix: str) -> Try:
    arm = torsor.library.two_link()
    torsor.simulate(arm, duration=0.02).save(folder / f"a{suffix}")
    content = (folder / f"a{suffix}").read_bytes()
    if suffix == ".csv":
        return _file(suffix, content, lambda path: torsor.Trajectory.load(path, robot=arm))
    return _file(suffix, content, torsor.Trajectory.load)


def _toml(folder: Path) -> Try:
    torsor.library.four_bar().save(folder / "b.toml")
    return _file(".toml", (folder / "b.toml").read_bytes(), torsor.load)


# The function that mutates one file of each kind and uses it, made in a folder with the files that it needs.
KINDS: dict[str, Callable[[Path], Try]] = {
    "urdf": lambda folder: _file(".urdf", URDF.encode(), torsor.load),
    "sdf": lambda folder: _file(".sdf", SDF.encode(), torsor.load),
    "mjcf": lambda folder: _file(".xml", MJCF.encode(), torsor.load),
    "usd": lambda folder: _file(".usda", USD.encode(), torsor.load),
    "xacro": lambda folder: _file(".xacro", XACRO.encode(), torsor.load),
    "toml": _toml,
    "table": lambda folder: _table,
    "trajectory": lambda folder: _trajectory(folder, ".npz"),
    "log": lambda folder: _trajectory(folder, ".csv"),
    "result": _result,
    "scene": lambda folder: _scene,
    "identification": lambda folder: _identification(),
    "reference": _reference,
    "problem": lambda folder: _problem,
}


class Hang(BaseException):
    """A file that takes longer than the limit."""


def _alarm(*_: object) -> None:
    raise Hang


def _place(error: Exception) -> str:
    """Return the last line of the library in the traceback of an error."""
    lines = [each for each in traceback.extract_tb(error.__traceback__) if "torsor" in each.filename]
    return f"{Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""


def work(kind: str, seeds: range, until: float, at: Any, outcome: Any) -> None:
    """Load mutated files of one kind; ``at`` holds the seed of the current file."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _alarm)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        run = KINDS[kind](Path(name))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os.chdir(name)  # MuJoCo writes its log where the process is
        for seed in seeds:
            if time.monotonic() > until:
                break
            at.value = seed
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            try:
                run(random.Random(f"{kind} {seed}"), Path(name))
                counts["loaded"] += 1
            except FAMILY:
                counts["refused"] += 1
            except Hang:
                counts["hang"] += 1
                outcome.put((seed, "hang"))
            except Exception as error:
                counts["foreign"] += 1
                outcome.put((seed, f"foreign {type(error).__name__} at {_place(error)}: {str(error)[:100]}"))
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        os.chdir("/")
    at.value = -1
    outcome.put((0, dict(counts)))


def supervise(kind: str, seeds: range, seconds: float) -> tuple[str, Counter[str], list[tuple[int, str]]]:
    """Run one kind in a process, and in another one after each crash; return the counts and the failing seeds."""
    context, total, failures = multiprocessing.get_context("spawn"), Counter[str](), list[tuple[int, str]]()
    start, until = seeds.start, time.monotonic() + seconds
    while start < seeds.stop:
        at, outcome = context.Value("q", -2), context.Queue()
        process = context.Process(target=work, args=(kind, range(start, seeds.stop), until, at, outcome))
        process.start()
        seen, since, stuck = -2, time.monotonic(), False
        while process.is_alive() or not outcome.empty():
            if at.value != seen:
                seen, since = at.value, time.monotonic()
            elif seen >= 0 and time.monotonic() - since > WAITING:  # in machine code, which no signal interrupts
                process.kill()
                stuck = True
            try:
                seed, what = outcome.get(timeout=0.5)
            except Empty:
                continue
            if isinstance(what, dict):
                total.update(what)
            else:
                failures.append((seed, what))
                print(f"{kind} {seed}: {what}", file=sys.stderr, flush=True)
        process.join()
        if at.value == -1:
            break
        if at.value == -2:
            sys.exit(f"{kind}: it could not begin")
        total["hang" if stuck else "crash"] += 1
        total["loaded or refused before it"] += at.value - start
        what = "hang in machine code" if stuck else f"crash, exit code {process.exitcode}"
        failures.append((at.value, what))
        start = at.value + 1
    return kind, total, failures


def main() -> int:
    """Run, print a table, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="limit for each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    kinds, jobs = arguments.kinds.split(","), min(arguments.jobs, arguments.count)
    total: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    examples: dict[str, list[int]] = {}
    edges = [arguments.seed + arguments.count * k // jobs for k in range(jobs + 1)]
    parts = [(kind, range(*edge)) for kind in kinds for edge in pairwise(edges)]
    with ThreadPoolExecutor(jobs) as pool:
        for kind, counts, failures in pool.map(lambda part: supervise(part[0], part[1], arguments.seconds), parts):
            total[kind].update(counts)
            for seed, what in failures:
                examples.setdefault(f"{kind}: {what}", []).append(seed)
    print("| kind | files | loaded | refused | foreign | hang | crash |\n|---|---|---|---|---|---|---|")
    for kind, counts in total.items():
        cells = [str(counts[key]) for key in ("loaded", "refused", "foreign", "hang", "crash")]
        print(f"| {kind} | {sum(counts.values())} | {' | '.join(cells)} |")
    for text, seeds in sorted(examples.items(), key=lambda each: -len(each[1])):
        print(f"{len(seeds):6d}  {text}  (seeds {', '.join(map(str, seeds[:3]))})")
    return 1 if examples else 0


if __name__ == "__main__":
    sys.exit(main())
