"""Lookup of an algorithm's robot method, for parametric robots, messages and exported source code."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from torsor.dynamics import ALGORITHMS
from torsor.robot.centroidal import Centroidal
from torsor.robot.closed_loops.closed import Closed, ClosedDerivatives
from torsor.robot.derivatives import Derivatives
from torsor.robot.inertial import Inertial
from torsor.robot.method_names import OF_ALL, PATHS
from torsor.robot.task import Task

CLASSES: dict[str, type] = {
    "derivatives": Derivatives,
    "closed": Closed,
    "closed.derivatives": ClosedDerivatives,
    "inertial": Inertial,
    "centroidal": Centroidal,
    "task": Task,
}

ON_ROBOT = tuple(name for name in ALGORITHMS if name not in PATHS)
"""Algorithms without an accessor."""


def summary_of(owner: type, algorithm: str) -> str:
    """Return the first line of the docstring of an algorithm's method, or "" if it has none."""
    accessor, _, name = PATHS.get(algorithm, algorithm).rpartition(".")
    method = getattr(CLASSES[accessor] if accessor else owner, name, None)
    return (getattr(method, "__doc__", None) or "").strip().split("\n")[0]


def method_of(robot: object, algorithm: str) -> Callable[..., Any]:
    """Return the method of a robot that evaluates an algorithm."""
    result: Callable[..., Any] = attrgetter(PATHS.get(algorithm, algorithm))(robot)
    return partial(result, coordinates="all") if algorithm in OF_ALL.values() else result
