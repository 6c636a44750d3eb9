"""Compare robot files with Pinocchio (URDF, fixed and floating) and MuJoCo (MJCF) at random states.

    python benchmarks/robot_files.py [FOLDER ...] [--states 2] [--seconds 120]

Every .urdf file of the folders, and every .xml file whose root is <mujoco>, is loaded here and by the peer; mass
matrix, inverse dynamics and forward dynamics are compared. If no folders are given, the files of the package
example-robot-data are used. The script prints a table with one line for each folder, format and base, and then every
file that was not compared, with the reason. A separate process loads the files, so that a crash of a library affects
only one file and does not end the run. The exit code is 1 if a difference is above 1e-9, or if a file is missing
without a reason.
"""

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import files
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import torsor
from bench.twins import Differences, MujocoTwin, PinocchioTwin, Twin

TOLERANCE = 1e-9
OUTCOMES = ("compared", "nothing moves", "refused here", "refused by the peer", "refused by both", "not compared")
ROOT = re.compile(rb"<\s*(mujoco|robot|mujocoinclude)[\s>/]")


class Job(NamedTuple):
    """A file to compare."""

    folder: Path
    path: Path
    base: str

    @property
    def format(self) -> str:
        """The name of the format."""
        return "URDF" if self.path.suffix == ".urdf" else "MJCF"


class Outcome(NamedTuple):
    """The outcome for a file: one of ``OUTCOMES``, the reason if it was not compared, and omitted parts."""

    what: str
    reason: str = ""
    differences: Differences | None = None
    omitted: bool = False


def jobs(folders: list[Path]) -> Iterator[Job]:
    """Yield the files of the folders; a file with several paths is yielded once."""
    seen: set[Path] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix not in (".urdf", ".xml") or not path.is_file() or path.resolve() in seen:
                continue
            seen.add(path.resolve())
            if path.suffix == ".urdf":
                yield from (Job(folder, path, base) for base in ("fixed", "floating"))
            elif (root := ROOT.search(path.read_bytes())) and root[1] == b"mujoco":
                yield Job(folder, path, "fixed")


def installed() -> Path:
    """Return the folder of the package example-robot-data."""
    paths = [Path(str(each.locate())).resolve() for each in files("example-robot-data") or [] if each.suffix == ".urdf"]
    if not paths:
        sys.exit("the package example-robot-data is not installed; fix: give the folders to compare")
    return Path(os.path.commonpath(paths))


def in_pinocchio(job: Job) -> Any:
    """Return Pinocchio's model."""
    import pinocchio

    root = (pinocchio.JointModelFreeFlyer(),) if job.base == "floating" else ()
    return pinocchio.buildModelFromUrdf(str(job.path), *root)


def in_mujoco(job: Job) -> Any:
    """Return MuJoCo's model."""
    import mujoco

    return mujoco.MjModel.from_xml_path(str(job.path))


def compared(job: Job, states: int) -> Outcome:
    """Load a file in both libraries and compare."""
    refused: dict[str, str] = {}
    robot = model = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            robot = torsor.load(job.path, base=job.base).to(device="casadi")
        except torsor.ModelError as error:
            refused["refused here"] = str(error)
    omitted = any("omitted, because mechanisms do not support it" in str(each.message) for each in caught)
    try:
        model = in_pinocchio(job) if job.format == "URDF" else in_mujoco(job)
    except Exception as error:  # each library has errors of its own
        refused["refused by the peer"] = " ".join(str(error).split()) or type(error).__name__
    if refused:
        what = "refused by both" if len(refused) == 2 else next(iter(refused))
        return Outcome(what, " | ".join(refused.values()))
    assert robot is not None
    if not robot.nv:
        return Outcome("nothing moves", "no joint moves")
    twin: Twin = PinocchioTwin(robot, model) if job.format == "URDF" else MujocoTwin(robot, model)
    differences = twin.differences(states)
    if not np.isfinite(differences.largest):
        return Outcome("not compared", "the numbers are not finite", differences)
    return Outcome("compared", "", differences, omitted)


def work(pipe: Connection, states: int) -> None:
    """Compare the files that are received through a pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the parsers of the peers write there
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # MuJoCo writes its log where the process is
        while (job := pipe.recv()) is not None:
            try:
                pipe.send(compared(job, states))
            except Exception as error:
                pipe.send(Outcome("not compared", f"{type(error).__name__}: {' '.join(str(error).split())}"))
        os.chdir("/")


class Worker:
    """A process that compares files, and is replaced if a library crashes it or a file takes too long."""

    def __init__(self, states: int, seconds: float):
        self.states, self.seconds = states, seconds
        self.start()

    def start(self) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.states), daemon=True)
        self.process.start()
        theirs.close()

    def compare(self, job: Job) -> Outcome:
        """Return the outcome of a file, even if the process crashes."""
        try:
            self.pipe.send(job)
            if self.pipe.poll(self.seconds):
                found: Outcome = self.pipe.recv()
                return found
            reason = f"it takes more than {self.seconds:g} s"
        except (EOFError, ConnectionError):
            self.process.join()
            reason = f"the process ended with exit code {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self.start()
        return Outcome("not compared", reason)


def table(found: dict[Job, Outcome]) -> Iterator[str]:
    """Yield the lines of the table, and of the files that were not compared."""
    heads = ("M", "inverse dynamics", "forward dynamics", "no forward dynamics: M is singular")
    columns = ["folder", "format", "base", "files", "read by both", *OUTCOMES, "with omissions in a warning", *heads]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    groups = dict.fromkeys((job.folder, job.format, job.base) for job in found)
    for group in groups:
        own = [each for job, each in found.items() if (job.folder, job.format, job.base) == group]
        counts = [sum(each.what == what for each in own) for what in OUTCOMES]
        refusals = sum(each.what.startswith("refused") for each in own)
        rows = [each.differences for each in own if each.what == "compared" and each.differences]
        forward = [row.forward_dynamics for row in rows if row.forward_dynamics is not None]
        largest = [[row.mass_matrix for row in rows], [row.inverse_dynamics for row in rows], forward]
        cells = [group[0].name, *group[1:], len(own), len(own) - refusals, *counts, sum(each.omitted for each in own)]
        cells += [f"{max(each):.1e}" if each else "-" for each in largest]
        yield f"| {' | '.join(map(str, [*cells, len(rows) - len(forward)]))} |"
    for what in OUTCOMES[2:]:
        for job, each in found.items():
            if each.what == what:
                yield f"{what}: {job.path.relative_to(job.folder)} ({job.base}): {each.reason}"
    still = [job for job, each in found.items() if each.what == "nothing moves"]
    for job in still:
        yield f"nothing moves: {job.path.relative_to(job.folder)} ({job.base})"


def main() -> int:
    """Compare, print, and return 1 if a difference has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--states", type=int, default=2, help="random states of each file")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit for each file")
    arguments = parser.parse_args()
    worker = Worker(arguments.states, arguments.seconds)
    folders = [folder.resolve() for folder in arguments.folders] or [installed()]
    found = {job: worker.compare(job) for job in jobs(folders)}
    worker.pipe.send(None)
    print("\n".join(table(found)))
    sizes = {job: each.differences.largest for job, each in found.items() if each.differences}
    different = {job: size for job, size in sizes.items() if not size <= TOLERANCE}
    for job, size in different.items():
        print(f"DIFFERENT by {size:.1e}: {job.path} ({job.base})")
    return 1 if different or any(each.what == "not compared" for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
