"""Trajectories on disk: what their files hold, and how .npz and .csv files are read back and checked."""

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
from torsor.base.files import check_array
from torsor.base.number_tables import read_table
from torsor.base.result import Result
from torsor.base.tables import Column, columns_of
from torsor.mechanism.mechanism import FORCES, robot_facts, state_units, units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.robot import Robot


class Crossings(NamedTuple):
    """The sign changes of an event: ``times`` (K,) in s, states ``q`` (K, nq) and ``v`` (K, nv), and their rollouts.

    ``rollouts`` (K, B) has the index of the rollout in the B leading axes of the simulation; B is 0 for a single one.
    """

    times: Array
    q: Array
    v: Array
    rollouts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Samples:
    """The fields of a ``Trajectory``, which describes them."""

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


SUFFIXES = Result.suffixes
STATUSES = ("done", "event", "interrupted", "failed")
ARRAYS = ("times", "q", "v", "a", "tau")
WRENCHES = "N m, N: moment and force on each link, at its origin in its axes"
COMPONENTS = tuple((f"{letter}{axis}", unit) for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz")


def archive(samples: Samples) -> Archive:
    """Return all that a .npz file of a trajectory holds."""
    arrays: dict[str, Any] = {name: getattr(samples, name) for name in ARRAYS}
    if samples.external is not None:
        arrays["external"] = samples.external
    for k, event in enumerate(samples.events):
        arrays |= {f"event{k}_{name}": value for name, value in event._asdict().items()}
    arrays |= {"events": len(samples.events), "status": samples.status, "held": samples.held}
    units_ = {"times": "s", "external": WRENCHES, **state_units(samples.robot)}
    arrays["robot"] = as_bytes(robot_text(samples.robot))
    return Archive("trajectory", arrays, plain(samples.settings), units_)


def content(samples: Samples) -> dict[str, Any]:
    """Return a trajectory as plain values; rollouts are leading axes of the arrays."""
    held = dict(zip(("tau", "external"), samples.held, strict=True))
    external = None if samples.external is None else plain(samples.external)
    return {
        "units": {"times": "s", "external": WRENCHES},
        "robot": robot_facts(samples.robot),
        "settings": plain(samples.settings),
        "status": samples.status,
        **{name: plain(getattr(samples, name)) for name in ARRAYS},
        "external": external,
        "held": held,
        "events": [plain(event._asdict()) for event in samples.events],
    }


def read(path: Path, robot: Robot | None) -> Samples:
    """Return the trajectory of a file, for the given robot or, in .npz, the one that the file contains."""
    suffix, readable = path.suffix.lower(), (".npz", ".csv")
    if suffix not in readable:
        text, allowed = f"the suffix is {path.suffix!r}", ", ".join(readable)
        raise ModelError(text, value=path.suffix, where=path.name, allowed=allowed)
    if suffix == ".npz":
        with reading_archive(path, "trajectory") as found:
            return of_archive(found, robot)
    if robot is None:
        raise ModelError("a .csv file does not contain its robot", where=path.name, fix="give robot=...")
    return _read_csv(path, robot)


def of_archive(archive: Archive, robot: Robot | None) -> Samples:
    """Return the trajectory of an archive; raise ValueError or KeyError where it is no trajectory."""
    found = archive.arrays
    count, status = int(found["events"]), str(found["status"])
    if status not in STATUSES:
        raise ValueError(f"status {status[:40]!r}; allowed: one of {STATUSES}")
    if not 0 <= count <= len(found):
        raise ValueError(f"{count} events")
    robot = archived_robot(archive) if robot is None else robot
    events = tuple(Crossings(*(found[f"event{k}_{name}"] for name in Crossings._fields)) for k in range(count))
    check_array(found["held"], (2,), "held", "b")
    tau_held, external_held = map(bool, found["held"])
    times, q, v, a, tau = (found[name] for name in ARRAYS)
    held = (tau_held, external_held)
    samples = Samples(robot, times, q, v, a, tau, status, events, found.get("external"), held, archive.settings)
    _check(samples)
    return samples


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


def columns(samples: Samples) -> list[Column]:
    """Return the table of one rollout: times, positions, velocities, accelerations, forces, and wrenches if any act."""
    if samples.q.ndim != 2:
        found = f"{samples.q.shape[:-2]} rollouts do not fit into a .csv file"
        raise ModelError(found, where=samples.robot.name, fix="save trajectory[i], or a .npz file")
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
    parts = [(f"{link} {part}", unit) for link in robot.link_names for part, unit in COMPONENTS]
    links = [name for name, _ in parts]
    return [*table, *columns_of(wrench, links, [unit for _, unit in parts], samples.external)]


def _header(robot: Robot, external: bool, held: tuple[bool, bool]) -> list[str]:
    empty = np.zeros((0, robot.nv))
    wrenches = np.zeros((0, len(robot.links), 6)) if external else None
    samples = Samples(robot, np.zeros(0), np.zeros((0, robot.nq)), empty, empty, empty, external=wrenches, held=held)
    return [column.head for column in columns(samples)]


def _read_csv(path: Path, robot: Robot) -> Samples:
    layouts = [(external, (tau, wrench)) for external, tau, wrench in product((True, False), repeat=3)]
    headers = {tuple(_header(robot, *layout)): layout for layout in layouts}  # without wrenches, the last: not held
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
        samples = Samples(robot, times[:, 0], q, v, a, tau, external=external, held=held)
        _check(samples)
        return samples
    except ValueError as error:
        raise ModelError(f"not a trajectory of {robot.name}: {error}", where=path.name) from None
