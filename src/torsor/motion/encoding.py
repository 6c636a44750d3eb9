"""JSON encoding of problems and other results, including objects that TOML files cannot describe.

Only registered objects are written and read (``encodable``): frozen dataclasses, named tuples, functions of a node, and
robots as TOML text. A file therefore cannot execute code of its own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import isfunction, signature
from types import ModuleType
from typing import Any

import numpy as np

from torsor.base.archive import Arrays, as_bytes, as_text
from torsor.base.errors import ModelError
from torsor.base.registry import register, registered
from torsor.motion import statement
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms import distances, ends, frames, limits, objectives, term
from torsor.motion.transcription import motion_model, phase, splines
from torsor.robot.archived import robot_of, robot_text
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

LARGEST_INTEGER = 100_000  # largest integer, which counts points or nodes
NOT_FINITE_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_OBJECT = "object"  # name of the array with the text of a packed object
_objects: dict[str, Any] = {}  # classes and functions by their names in files, such as "motion.Time"
_names: dict[Any, str] = {}


def encodable(group: str, *places: ModuleType | type) -> None:
    """Register classes, or all data classes and node functions of modules, under the file names GROUP.NAME.

    The names do not change when modules move. ``torsor/__init__.py`` states which package registers a group.
    """
    for place in places:
        members = vars(place).values() if isinstance(place, ModuleType) else [place]
        for member in members:
            if member is place or (getattr(member, "__module__", "") == place.__name__ and _is_encodable(member)):
                name = f"{group}.{member.__name__}"
                _objects[name], _names[member] = member, name
    register("encoding", group, True)


def encoded(problem: ProblemStatement) -> str:
    """Return a problem as JSON; raise ModelError if it contains other objects, such as unregistered functions."""
    writer = _Writer(problem.name)
    data = writer.encode(problem)
    return json.dumps({"robots": writer.texts, "problem": data})


def decoded(text: str) -> ProblemStatement:
    """Return the problem of a text from ``encoded``; raise ValueError if it is not a problem."""
    data = json.loads(text)
    result = _decoded(data["problem"], [robot_of(text) for text in data["robots"]])
    if not isinstance(result, ProblemStatement):
        raise ValueError(f"a {type(result).__name__} is not a motion problem")
    return result


def packed(value: Any, where: str) -> Arrays:
    """Return an object of registered classes as arrays named after their fields, such as ``motion/q``."""
    writer = _Writer(where, {})
    data = {"object": writer.encode(value), "robots": writer.texts}
    return {**(writer.arrays or {}), _OBJECT: as_bytes(json.dumps(data))}


def unpacked(arrays: Arrays) -> Any:
    """Return the object of arrays from ``packed``; its class checks the shapes."""
    data = json.loads(as_text(arrays[_OBJECT]))
    return _decoded(data["object"], [robot_of(text) for text in data["robots"]], arrays)


class _Writer:
    """An encoder of values that collects each robot once in ``texts``, and arrays in ``arrays`` if it is not None."""

    def __init__(self, where: str, arrays: Arrays | None = None) -> None:
        self.where, self.texts, self.arrays = where, list[str](), arrays
        self._places = dict[int, int]()

    def _robot(self, robot: Robot) -> int:
        if id(robot) not in self._places:
            text = robot_text(robot)
            if text not in self.texts:
                self.texts.append(text)
            self._places[id(robot)] = self.texts.index(text)
        return self._places[id(robot)]

    def encode(self, value: Any, path: str = "") -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"number": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Robot):
            return {"robot": self._robot(value)}
        if isinstance(value, Parametric):
            return {"parametric": self._robot(value.robot), "free": self.encode(value.paths)}
        if isinstance(value, np.ndarray):
            if self.arrays is None:
                return {"array": self.encode(value.tolist())}
            self.arrays[path] = value
            return {"array": path}
        if isinstance(value, Mapping):
            return {"table": [[self.encode(key), self.encode(entry)] for key, entry in value.items()]}
        if isinstance(value, frozenset):
            return {"set": sorted(value)}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple": [self.encode(entry) for entry in value]}
        if isinstance(value, list):
            return [self.encode(entry) for entry in value]
        cls = type(value)
        if isfunction(value) and value in _names:
            return {"function": _names[value]}
        if cls not in _names:
            fix = "keep the problem in Python and pass it to load(..., problem=...)"
            name = getattr(value, "__qualname__", cls.__qualname__)
            raise ModelError("cannot be written to a file", argument=name, where=self.where, fix=fix)
        names = cls._fields if hasattr(cls, "_fields") else [field.name for field in fields(value) if field.init]
        encoded_fields = {name: self.encode(getattr(value, name), f"{path}/{name}".strip("/")) for name in names}
        return {"class": _names[cls], "fields": encoded_fields}


def _decoded(data: Any, robots: list[Robot], arrays: Arrays | None = None) -> Any:
    """Return the object of data from ``_Writer.encode``."""

    def decode(entry: Any) -> Any:
        return _decoded(entry, robots, arrays)

    if isinstance(data, list):
        return [decode(entry) for entry in data]
    if not isinstance(data, dict):
        if isinstance(data, int) and not isinstance(data, bool) and abs(data) > LARGEST_INTEGER:
            raise ValueError(f"{data:.6g} is too large")
        return data
    if "number" in data:
        return NOT_FINITE_NUMBERS[data["number"]]
    if "array" in data:
        return np.array(decode(data["array"]), dtype=float) if arrays is None else arrays[data["array"]]
    if "set" in data:
        return frozenset(data["set"])
    if "tuple" in data:
        return tuple(decode(data["tuple"]))
    if "table" in data:
        return {decode(key): decode(entry) for key, entry in data["table"]}
    if "robot" in data:
        return robots[data["robot"]]
    if "parametric" in data:
        return robots[data["parametric"]].parametric(decode(data["free"]))
    what = "function" if "function" in data else "class"
    name = str(data[what])
    registered("encoding", name.partition(".")[0])  # imports the package
    result = _objects.get(name)
    if result is None or isfunction(result) is not (what == "function"):
        fix = "read it with the version of Torsor that wrote it"
        raise ValueError(f"files have no {what} {name[:60]!r}; fix: {fix}")
    if what == "function":
        return result
    return result(**{str(key): decode(entry) for key, entry in data["fields"].items()})


def _is_encodable(value: Any) -> bool:
    if isinstance(value, type):
        return is_dataclass(value) or hasattr(value, "_fields")
    return isfunction(value) and list(signature(value).parameters) == ["node"]


encodable("motion", statement, distances, ends, frames, limits, objectives, term, motion_model, phase, splines)
