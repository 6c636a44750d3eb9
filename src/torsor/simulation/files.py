"""Trajectories on disk: .npz with the robot in it, and .csv of one rollout for other programs."""

import csv
import secrets
import tempfile
import zipfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.robot.load import load as load_robot
from torsor.robot.robot import Robot
from torsor.simulation.trajectory import Crossings, Trajectory

__all__ = ["SUFFIXES", "load", "save", "units"]

Array = NDArray[np.float64]

SUFFIXES = (".npz", ".csv")
VERSION = 1
# What reading a file from anywhere may raise.
_NUMBERS = (ValueError, TypeError, ArithmeticError, MemoryError)
_BROKEN = (*_NUMBERS, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile)
STATUSES = ("done", "event", "interrupted", "failed")


def save(trajectory: Trajectory, path: Path) -> None:
    """Write a trajectory, all at once: a write that fails leaves what was there before."""
    writers = dict(zip(SUFFIXES, (_write_npz, _write_csv), strict=True))
    if path.suffix.lower() not in writers:
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=", ".join(SUFFIXES)))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # in the same folder: replacing is then one step
    try:
        if path.suffix.lower() == ".csv" and trajectory.q.ndim != 2:
            found = f"{trajectory.q.shape[:-2]} rollouts do not fit into a .csv file"
            raise ModelError(describe(found, where=path.name, fix="save trajectory[i], or a .npz file"))
        writers[path.suffix.lower()](trajectory, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path, robot: Robot | None) -> Trajectory:
    """Return the trajectory in a file."""
    if path.suffix.lower() == ".npz":
        return _read_npz(path, robot)
    if path.suffix.lower() == ".csv":
        if robot is None:
            raise ModelError(describe("a .csv file does not hold its robot", where=path.name, fix="give robot=..."))
        return _read_csv(path, robot)
    raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=".npz, .csv"))


def _write_npz(trajectory: Trajectory, path: Path) -> None:
    arrays: dict[str, Any] = {name: getattr(trajectory, name) for name in ("times", "q", "v", "a", "tau")}
    if trajectory.external is not None:
        arrays["external"] = trajectory.external
    for k, event in enumerate(trajectory.events):
        arrays |= {f"event{k}_{name}": value for name, value in event._asdict().items()}
    with tempfile.TemporaryDirectory() as folder:
        trajectory.robot.save(Path(folder, "robot.toml"))
        text = Path(folder, "robot.toml").read_bytes()
    arrays |= {"torsor": VERSION, "events": len(trajectory.events), "status": trajectory.status}
    arrays["held"] = np.array(trajectory.held)
    with path.open("wb") as file:
        np.savez(file, robot=np.frombuffer(text, dtype=np.uint8), **arrays)


def _read_npz(path: Path, robot: Robot | None) -> Trajectory:
    try:
        with zipfile.ZipFile(path) as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise ValueError("its parts are compressed, which Torsor's never are")  # some unpack to terabytes
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        version, count, status = int(found["torsor"]), int(found["events"]), str(found["status"])
        if version != VERSION or status not in STATUSES:
            raise ValueError(f"version {version}, status {status!r}; allowed: version {VERSION}, one of {STATUSES}")
        if not 0 <= count <= len(found):
            raise ValueError(f"{count} events")
        robot = _robot(found["robot"].astype(np.uint8).tobytes()) if robot is None else robot
        events = tuple(Crossings(*(found[f"event{k}_{name}"] for name in Crossings._fields)) for k in range(count))
        arrays = {name: found[name] for name in ("times", "q", "v", "a", "tau")}
        _fits("held", found["held"], (2,), "b")
        rest: dict[str, Any] = {"external": found.get("external"), "held": tuple(map(bool, found["held"]))}
        return _checked(Trajectory(robot, **arrays, status=status, events=events, **rest))
    except KeyError as error:
        raise ModelError(describe(f"there is no {error}", where=path.name, fix="was it written by save?")) from None
    except _BROKEN as error:
        raise ModelError(describe(f"not a trajectory: {error}", where=path.name)) from None


def _robot(text: bytes) -> Robot:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "robot.toml").write_bytes(text)
        return load_robot(Path(folder, "robot.toml"), strict=False)


def _checked(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose arrays fit together, or raise an error that says which does not."""
    robot, times = trajectory.robot, trajectory.times
    batch, count = trajectory.q.shape[:-2], len(np.atleast_1d(times))
    one = (count,), (count, robot.nq), (count, robot.nv)
    shapes: dict[str, tuple[int, ...]] = {"times": one[0], "q": (*batch, *one[1])}
    shapes |= dict.fromkeys(("v", "a", "tau"), (*batch, *one[2]))
    if trajectory.external is not None:
        shapes["external"] = (*batch, count, len(robot.links), 6)
    for name, shape in shapes.items():
        _fits(name, getattr(trajectory, name), shape)
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise ValueError("the times do not increase")
    for k, event in enumerate(trajectory.events):
        seen = len(np.atleast_1d(event.times))
        wanted = ((seen,), (seen, robot.nq), (seen, robot.nv), (seen, len(batch)))
        for name, value, shape in zip(event._fields, event, wanted, strict=True):
            _fits(f"event{k}_{name}", value, shape, "iu" if name == "rollouts" else "f")
        if ((event.rollouts < 0) | (event.rollouts >= np.array(batch, dtype=int))).any():
            raise ValueError(f"event{k}_rollouts has indices outside {batch}")
    return trajectory


def _fits(name: str, array: NDArray[Any], shape: tuple[int, ...], kinds: str = "f") -> None:
    if array.shape != shape or array.dtype.kind not in kinds:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}; allowed: {shape}, real numbers")


def units(robot: Robot) -> tuple[list[str], list[str]]:
    """Return the unit of each position and of each velocity times s: rad, m, or 1 for quaternions.

    A motor's angle is taken after the gear, so that it has the unit of its joint.
    """
    positions: list[str] = []
    rates: list[str] = []
    for joint in robot.joints:
        if not joint.follows:
            own = ["rad" if turns else "m" for turns in joint.kind.turns]
            rates += own
            positions += own if joint.nq == joint.nv else [*["m"] * (joint.nq - 4), *["1"] * 4]
    motors = ["rad" if joint.kind.turns[0] else "m" for joint in robot.elastic]
    return positions + motors, rates + motors


def _header(robot: Robot, external: bool, held: tuple[bool, bool]) -> list[str]:
    positions, rates = units(robot)
    force = {"rad": "N m", "m": "N"}
    columns = ["time [s]", *(f"q {n} [{u}]" for n, u in zip(robot.position_names, positions, strict=True))]
    for letter, unit in (("v", "{}/s"), ("a", "{}/s^2")):
        columns += [f"{letter} {n} [{unit.format(u)}]" for n, u in zip(robot.coordinate_names, rates, strict=True)]
    pairs = zip(robot.coordinate_names, rates, strict=True)
    tau, wrench = (f"{'held ' if each else ''}{name}" for name, each in zip(("tau", "external"), held, strict=True))
    columns += [f"{tau} {n} [{force[u]}]" for n, u in pairs]
    parts = [f"{letter}{axis} [{unit}]" for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz"]
    return columns + [f"{wrench} {link} {part}" for link in robot.link_names for part in parts] * external


def _write_csv(trajectory: Trajectory, path: Path) -> None:
    t = trajectory
    wrenches = [] if t.external is None else [t.external.reshape(len(t), -1)]
    table = np.column_stack([t.times, t.q, t.v, t.a, t.tau, *wrenches])
    rows: Iterable[list[str]] = (list(map(repr, row)) for row in table.tolist())  # repr reads back to the last bit
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_header(trajectory.robot, trajectory.external is not None, trajectory.held))
        writer.writerows(rows)


def _read_csv(path: Path, robot: Robot) -> Trajectory:
    forms = [(external, (tau, wrench)) for external, tau, wrench in product((True, False), repeat=3)]
    headers = {tuple(_header(robot, *form)): form for form in forms}  # without wrenches, theirs do not hold
    plain = _header(robot, False, (False, False))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            first = next(rows, [])
            if tuple(first) not in headers:
                found = f"the columns are {first[:4]} ... ({len(first)}), not those of {robot.name}"
                raise ValueError(f"{found}: {plain[:4]} ... ({len(plain)})")
            table = np.array([[float(cell) for cell in row] for row in rows if row]).reshape(-1, len(first))
    except (ValueError, csv.Error) as error:
        raise ModelError(describe(f"not a trajectory of {robot.name}: {error}", where=path.name)) from None
    ends = np.cumsum([1, robot.nq, robot.nv, robot.nv, robot.nv])
    times, q, v, a, tau, wrenches = np.split(table, ends, axis=1)
    has_external, held = headers[tuple(first)]
    external = wrenches.reshape(-1, len(robot.links), 6) if has_external else None
    try:
        return _checked(Trajectory(robot, times[:, 0], q, v, a, tau, external=external, held=held))
    except ValueError as error:
        raise ModelError(describe(f"not a trajectory: {error}", where=path.name)) from None
