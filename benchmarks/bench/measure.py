"""Measurement utilities: the best of several repeats, random states, and robots of example-robot-data."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

import numpy as np

import torsor

STATES = 4096


@dataclass(frozen=True)
class Row:
    """One measurement: its title, the times of Torsor and of a peer (s), and their ratio (larger is better)."""

    figure: str
    torsor: float
    peer: float | None = None
    peer_name: str = ""

    @property
    def ratio(self) -> float | None:
        """Speed of Torsor relative to the peer."""
        return None if self.peer is None else self.peer / self.torsor


def best(call: Callable[[], Any], seconds: float = 1.0, least: int = 5) -> float:
    """Return the shortest time of a call, over repeats that together take about the given time."""
    call()
    shortest, repeats, stop = np.inf, 0, time.perf_counter() + seconds
    while repeats < least or time.perf_counter() < stop:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
        repeats += 1
    return shortest


def best_small(call: Callable[[], Any], calls: int = 2000) -> float:
    """Return the shortest mean time of a call that takes microseconds."""

    def many() -> None:
        for _ in range(calls):
            call()

    return best(many) / calls


def robot_file(name: str) -> Path | None:
    """Return the path of a robot in the package example-robot-data, or None if the package is not installed."""
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        return None
    return next((Path(str(each.locate())) for each in listed if each.name == name), None)


def states(robot: torsor.Robot, count: int = STATES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random positions, velocities and accelerations."""
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, (count, robot.nv)))
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


def has(package: str) -> bool:
    """Return whether a package is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def robots() -> list[tuple[str, Path | str, str]]:
    """Return the robots that are measured: title, file and base.

    If example-robot-data is not installed, the library's UR5 and Panda replace the files.
    """
    named = [
        ("UR5", robot_file("ur5_robot.urdf") or "ur5", "fixed"),
        ("Panda", robot_file("panda.urdf") or "panda", "fixed"),
        ("Talos, 32 dof", robot_file("talos_reduced.urdf"), "fixed"),
        ("Solo12 floating", robot_file("solo12.urdf"), "floating"),
        ("Talos floating", robot_file("talos_reduced.urdf"), "floating"),
    ]
    return [(title, source, base) for title, source, base in named if source is not None]


def best_batch(kernel: Any, inputs: tuple[np.ndarray, ...], out: np.ndarray | tuple[np.ndarray, ...]) -> float:
    """Return the shortest time of a kernel over a batch."""
    return best(lambda: kernel(*inputs, out=out))
