"""Trajectories on disk: writing of .npz and .csv files, and reading with checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.archive import Archive, as_bytes, reading_archive
from torsor.base.arrays import Array
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.files import check_array, check_suffix
from torsor.base.number_tables import read_table
from torsor.base.result import Result
from torsor.base.tables import Column, columns_of
from torsor.mechanism.mechanism import FORCES, robot_facts, state_units, units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.robot import Robot

SUFFIXES = Result.suffixes
STATUSES = ("done", "event", "interrupted", "failed")
ARRAYS = ("times", "q", "v", "a", "tau")
WRENCHES = "N m, N: moment and force on each link, at its origin in its axes"
COMPONENTS = tuple((f"{letter}{axis}", unit) for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz")


class Crossings(NamedTuple):
    """The sign changes of an event: ``times`` (K,) in s, states ``q`` (K, nq) and ``v`` (K, nv), and rollout indices.

    ``rollouts`` (K, B) are the rollout indices along the B leading axes of the simulation; B is 0 for a single rollout.
    """

    times: Array
    q: Array
    v: Array
    rollouts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Samples(Result):
    """The fields of a ``Trajectory`` that its files contain; ``Trajectory`` describes them."""

    kind = "trajectory"

    robot: Robot
    times: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    status: str = "done"
    events: tuple[Crossings, ...] = ()
    external: Array | None = None
    held: tuple[bool, bool] = (False, False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    def _archive(self) -> Archive:
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        if self.external is not None:
            arrays["external"] = self.external
        for k, event in enumerate(self.events):
            arrays |= {f"event{k}_{name}": value for name, value in event._asdict().items()}
        arrays |= {"events": len(self.events), "status": self.status, "held": self.held}
        arrays["robot"] = as_bytes(robot_text(self.robot))
        known = {"times": "s", "external": WRENCHES, **state_units(self.robot)}
        return Archive(self.kind, arrays, plain(self.settings), known)

    def _content(self) -> dict[str, Any]:
        """Return the plain values of the document; rollouts are leading axes of the arrays."""
        return {
            "units": {"times": "s", "external": WRENCHES},
            "robot": robot_facts(self.robot),
            "settings": plain(self.settings),
            "status": self.status,
            **{name: plain(getattr(self, name)) for name in ARRAYS},
            "external": None if self.external is None else plain(self.external),
            "held": dict(zip(("tau", "external"), self.held, strict=True)),
            "events": [plain(event._asdict()) for event in self.events],
        }

    def _columns(self) -> list[Column]:
        return columns(self)


def read(path: Path, robot: Robot | None) -> Samples:
    """Return the trajectory in a file, for the given robot or, from .npz, the robot in the file."""
    check_suffix(path, (".npz", ".csv"))
    if path.suffix.lower() == ".npz":
        with reading_archive(path, Samples.kind) as found:
            return _of_archive(found, robot)
    if robot is None:
        raise ModelError("a .csv file does not contain its robot", where=path.name, fix="pass `robot=`")
    return _read_csv(path, robot)


def _of_archive(archive: Archive, robot: Robot | None) -> Samples:
    """Return the trajectory in an archive; raise ValueError or KeyError if it is not a trajectory."""
    found = archive.arrays
    count, status = int(found["events"]), str(found["status"])
    if status not in STATUSES:
        raise ValueError(f"status {status[:40]!r}; allowed: one of {STATUSES}")
    if not 0 <= count <= len(found):
        raise ValueError(f"{count} events")
    robot = archived_robot(archive) if robot is None else robot
    events = tuple(Crossings(*(found[f"event{k}_{name}"] for name in Crossings._fields)) for k in range(count))
    check_array(found["held"], (2,), "held", "b")
    held = bool(found["held"][0]), bool(found["held"][1])
    times, q, v, a, tau = (found[name] for name in ARRAYS)
    external = found.get("external")
    return check(Samples(robot, times, q, v, a, tau, status, events, external, held, archive.settings))


def check(samples: Samples) -> Samples:
    """Return samples from a file; raise ValueError if the arrays are inconsistent."""
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
            raise ValueError(f"event{k}_rollouts contains indices outside {batch}")
    return samples


def columns(samples: Samples, fix: str = "save one of them (trajectory[i]), or a .npz file") -> list[Column]:
    """Return the table columns of a rollout: times, positions, velocities, accelerations, forces and any wrenches."""
    if samples.q.ndim != 2:
        found = f"{samples.q.shape[:-2]} rollouts do not fit in a .csv file"
        raise ModelError(found, where=samples.robot.name, fix=fix)
    robot, (positions, rates) = samples.robot, units(samples.robot)
    names = robot.coordinate_names
    pairs = zip(("tau", "external"), samples.held, strict=True)
    tau, wrench = (f"{'held ' if held else ''}{name}" for name, held in pairs)
    table = [
        Column("time", "s", samples.times),
        *columns_of("q", robot.position_names, positions, samples.q),
        *columns_of("v", names, [f"{unit}/s" for unit in rates], samples.v),
        *columns_of("a", names, [f"{unit}/s^2" for unit in rates], samples.a),
        *columns_of(tau, names, [FORCES[unit] for unit in rates], samples.tau),
    ]
    if samples.external is None:
        return table
    parts = [f"{link} {part}" for link in robot.link_names for part, _ in COMPONENTS]
    wrench_units = [unit for _, unit in COMPONENTS] * len(robot.links)
    return [*table, *columns_of(wrench, parts, wrench_units, samples.external)]


def _header(robot: Robot, external: bool, held: tuple[bool, bool]) -> list[str]:
    empty = np.zeros((0, robot.nv))
    wrenches = np.zeros((0, len(robot.links), 6)) if external else None
    samples = Samples(robot, np.zeros(0), np.zeros((0, robot.nq)), empty, empty, empty, external=wrenches, held=held)
    return [column.head for column in columns(samples)]


def _read_csv(path: Path, robot: Robot) -> Samples:
    layouts = [(external, (tau, wrench)) for external, tau, wrench in product((True, False), repeat=3)]
    headers = {tuple(_header(robot, *layout)): layout for layout in layouts}  # the last layout of equal headers wins
    plain = _header(robot, False, (False, False))
    try:
        table = read_table(path, ",")
        first = tuple(table.heads)
        if first not in headers:
            found = f"the columns are {list(first[:4])} ... ({len(first)}), not those of {robot.name}"
            raise ValueError(f"{found}: {plain[:4]} ... ({len(plain)})")
        ends = np.cumsum([1, robot.nq, robot.nv, robot.nv, robot.nv])
        times, q, v, a, tau, wrenches = np.split(table.numbers(missing=True), ends, axis=1)
        has_external, held = headers[first]
        external = wrenches.reshape(-1, len(robot.links), 6) if has_external else None
        return check(Samples(robot, times[:, 0], q, v, a, tau, external=external, held=held))
    except ValueError as error:
        raise ModelError(f"not a trajectory of {robot.name}: {error}", where=path.name) from None
