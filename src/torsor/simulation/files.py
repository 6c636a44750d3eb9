"""Trajectories on disk: .npz with the robot in it, and .csv of one rollout for other programs."""

import csv
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe
from torsor.files import check_array, reading_npz, replacing, write_npz
from torsor.mechanism.units import FORCES, units
from torsor.robot.load import load as load_robot
from torsor.robot.robot import Robot
from torsor.simulation.samples import Crossings, Samples

SUFFIXES = (".npz", ".csv")
VERSION = 1
STATUSES = ("done", "event", "interrupted", "failed")
ARRAYS = ("times", "q", "v", "a", "tau")


def write(samples: Samples, path: Path) -> None:
    """Write a trajectory, whole or not at all: a write that fails leaves an existing file unchanged."""
    if _suffix(path) == ".npz":
        _write_npz(samples, path)
    elif samples.q.ndim == 2:
        _write_csv(samples, path)
    else:
        found = f"{samples.q.shape[:-2]} rollouts do not fit into a .csv file"
        raise ModelError(describe(found, where=path.name, fix="save trajectory[i], or a .npz file"))


def read(path: Path, robot: Robot | None) -> Samples:
    """Return the trajectory of a file, for the given robot or, in .npz, the one that the file contains."""
    if _suffix(path) == ".npz":
        return _read_npz(path, robot)
    if robot is None:
        raise ModelError(describe("a .csv file does not contain its robot", where=path.name, fix="give robot=..."))
    return _read_csv(path, robot)


def _suffix(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=", ".join(SUFFIXES)))
    return path.suffix.lower()


def _write_npz(samples: Samples, path: Path) -> None:
    arrays: dict[str, Any] = {name: getattr(samples, name) for name in ARRAYS}
    if samples.external is not None:
        arrays["external"] = samples.external
    for k, event in enumerate(samples.events):
        arrays |= {f"event{k}_{name}": value for name, value in event._asdict().items()}
    with tempfile.TemporaryDirectory() as folder:
        samples.robot.save(Path(folder, "robot.toml"))
        arrays["robot"] = np.frombuffer(Path(folder, "robot.toml").read_bytes(), dtype=np.uint8)
    arrays |= {"torsor": VERSION, "events": len(samples.events), "status": samples.status, "held": samples.held}
    write_npz(path, arrays)


def _read_npz(path: Path, robot: Robot | None) -> Samples:
    with reading_npz(path, "a trajectory") as found:
        version, count, status = int(found["torsor"]), int(found["events"]), str(found["status"])
        if version != VERSION or status not in STATUSES:
            raise ValueError(f"version {version}, status {status!r}; allowed: version {VERSION}, one of {STATUSES}")
        if not 0 <= count <= len(found):
            raise ValueError(f"{count} events")
        robot = _robot(found["robot"].astype(np.uint8).tobytes()) if robot is None else robot
        events = tuple(Crossings(*(found[f"event{k}_{name}"] for name in Crossings._fields)) for k in range(count))
        check_array(found["held"], (2,), "held", "b")
        tau_held, external_held = map(bool, found["held"])
        times, q, v, a, tau = (found[name] for name in ARRAYS)
        held = (tau_held, external_held)
        samples = Samples(robot, times, q, v, a, tau, status, events, found.get("external"), held)
        _check(samples)
        return samples


def _robot(text: bytes) -> Robot:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "robot.toml").write_bytes(text)
        return load_robot(Path(folder, "robot.toml"), strict=False)


def _check(samples: Samples) -> None:
    """Raise ValueError where the arrays of a file do not fit together."""
    robot, times = samples.robot, samples.times
    batch, count = samples.q.shape[:-2], len(np.atleast_1d(times))
    shapes: dict[str, tuple[int, ...]] = {"times": (count,), "q": (*batch, count, robot.nq)}
    shapes |= dict.fromkeys(("v", "a", "tau"), (*batch, count, robot.nv))
    if samples.external is not None:
        shapes["external"] = (*batch, count, len(robot.links), 6)
    for name, shape in shapes.items():
        check_array(getattr(samples, name), shape, name)
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise ValueError("the times do not increase")
    for k, event in enumerate(samples.events):
        seen = len(np.atleast_1d(event.times))
        allowed = ((seen,), (seen, robot.nq), (seen, robot.nv), (seen, len(batch)))
        for name, value, shape in zip(event._fields, event, allowed, strict=True):
            check_array(value, shape, f"event{k}_{name}", "iu" if name == "rollouts" else "f")
        if ((event.rollouts < 0) | (event.rollouts >= np.array(batch, dtype=int))).any():
            raise ValueError(f"event{k}_rollouts has indices outside {batch}")


def _header(robot: Robot, external: bool, held: tuple[bool, bool]) -> list[str]:
    positions, rates = units(robot)
    columns = ["time [s]", *(f"q {n} [{u}]" for n, u in zip(robot.position_names, positions, strict=True))]
    for letter, unit in (("v", "{}/s"), ("a", "{}/s^2")):
        columns += [f"{letter} {n} [{unit.format(u)}]" for n, u in zip(robot.coordinate_names, rates, strict=True)]
    pairs = zip(robot.coordinate_names, rates, strict=True)
    tau, wrench = (f"{'held ' if each else ''}{name}" for name, each in zip(("tau", "external"), held, strict=True))
    columns += [f"{tau} {n} [{FORCES[u]}]" for n, u in pairs]
    parts = [f"{letter}{axis} [{unit}]" for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz"]
    return columns + [f"{wrench} {link} {part}" for link in robot.link_names for part in parts] * external


def _write_csv(samples: Samples, path: Path) -> None:
    s = samples
    wrenches = [] if s.external is None else [s.external.reshape(len(s), -1)]
    table = np.column_stack([s.times, s.q, s.v, s.a, s.tau, *wrenches])
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_header(s.robot, s.external is not None, s.held))
        writer.writerows(map(repr, row) for row in table.tolist())  # repr reads back to the last bit


def _read_csv(path: Path, robot: Robot) -> Samples:
    layouts = [(external, (tau, wrench)) for external, tau, wrench in product((True, False), repeat=3)]
    headers = {tuple(_header(robot, *layout)): layout for layout in layouts}  # without wrenches, the last: not held
    plain = _header(robot, False, (False, False))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            first = next(rows, [])
            if tuple(first) not in headers:
                found = f"the columns are {first[:4]} ... ({len(first)}), not those of {robot.name}"
                raise ValueError(f"{found}: {plain[:4]} ... ({len(plain)})")
            table = np.array([[float(cell) for cell in row] for row in rows if row]).reshape(-1, len(first))
        ends = np.cumsum([1, robot.nq, robot.nv, robot.nv, robot.nv])
        times, q, v, a, tau, wrenches = np.split(table, ends, axis=1)
        has_external, held = headers[tuple(first)]
        external = wrenches.reshape(-1, len(robot.links), 6) if has_external else None
        samples = Samples(robot, times[:, 0], q, v, a, tau, external=external, held=held)
        _check(samples)
        return samples
    except (ValueError, csv.Error) as error:
        raise ModelError(describe(f"not a trajectory of {robot.name}: {error}", where=path.name)) from None
