"""Problems as JSON, with everything that TOML files do not describe: bodies, supports and terms of the human.

Only data of Torsor's own classes are written and read: frozen dataclasses and named tuples of ``torsor.motion`` and
``torsor.human``, robots as the text of TOML files, and the functions of a node that these packages define. A file can
therefore name nothing that runs code of its own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isfunction, signature
from typing import Any

import numpy as np

from torsor.base.archive import robot_of, robot_text
from torsor.base.errors import ModelError
from torsor.motion.statement import ProblemStatement
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

PACKAGES = ("torsor.motion.", "torsor.human.")
LARGEST = 100_000  # of whole numbers: counts of points and nodes
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def encoded(problem: ProblemStatement) -> str:
    """Return a problem as JSON; raise ModelError if it has objects that cannot be written, such as functions.

    Example:
        >>> again = decoded(encoded(torsor.human.walking()))
        >>> again.program.n, type(again).__name__
        (304, 'HumanProblem')
    """
    writer = _Writer(problem.name)
    data = writer.encode(problem)
    return json.dumps({"robots": writer.texts, "problem": data})


def decoded(text: str) -> ProblemStatement:
    """Return the problem of ``encoded``; raise ValueError if the text is not one."""
    data = json.loads(text)
    found = _Reader([robot_of(each) for each in data["robots"]]).decode(data["problem"])
    if not isinstance(found, ProblemStatement):
        raise ValueError(f"a {type(found).__name__} is no motion problem")
    return found


class _Writer:
    """Encodes values; robots are collected in ``texts``, each once."""

    def __init__(self, where: str) -> None:
        self.where, self.texts = where, list[str]()
        self._places = dict[int, int]()

    def _robot(self, robot: Robot) -> int:
        if id(robot) not in self._places:
            text = robot_text(robot)
            if text not in self.texts:
                self.texts.append(text)
            self._places[id(robot)] = self.texts.index(text)
        return self._places[id(robot)]

    def encode(self, value: Any) -> Any:
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
            return {"array": self.encode(value.tolist())}
        if isinstance(value, Mapping):
            return {"table": [[self.encode(key), self.encode(each)] for key, each in value.items()]}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple": [self.encode(each) for each in value]}
        if isinstance(value, list):
            return [self.encode(each) for each in value]
        return self._object(value)

    def _object(self, value: Any) -> dict[str, Any]:
        cls = type(value)
        if isfunction(value) and _is_own_function(value):
            return {"function": value.__name__, "module": value.__module__}
        if not _is_own_class(cls):
            fix = "keep the problem in Python, and give it to load: problem=..."
            name = getattr(value, "__qualname__", cls.__qualname__)
            raise ModelError("cannot be written to a file", argument=name, where=self.where, fix=fix)
        names = cls._fields if hasattr(cls, "_fields") else [each.name for each in fields(value) if each.init]
        own = {name: self.encode(getattr(value, name)) for name in names}
        return {"class": cls.__name__, "module": cls.__module__, "fields": own}


class _Reader:
    def __init__(self, robots: list[Robot]) -> None:
        self.robots = robots

    def decode(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self.decode(each) for each in data]
        if not isinstance(data, dict):
            if isinstance(data, int) and not isinstance(data, bool) and abs(data) > LARGEST:
                raise ValueError(f"{data:.6g} is too large")
            return data
        if "number" in data:
            return NOT_FINITE[data["number"]]
        if "array" in data:
            return np.array(self.decode(data["array"]), dtype=float)
        if "tuple" in data:
            return tuple(self.decode(each) for each in data["tuple"])
        if "table" in data:
            return {self.decode(key): self.decode(each) for key, each in data["table"]}
        if "robot" in data:
            return self.robots[data["robot"]]
        if "parametric" in data:
            return self.robots[data["parametric"]].parametric(self.decode(data["free"]))
        return self._object(data)

    def _object(self, data: dict[str, Any]) -> Any:
        module = data["module"]
        if not (isinstance(module, str) and module.startswith(PACKAGES) and module.replace(".", "").isidentifier()):
            raise ValueError(f"module {str(module)[:60]!r}; allowed: modules of {' and '.join(PACKAGES)}")
        try:
            home = import_module(module)
        except ImportError:
            raise ValueError(f"there is no module {module[:60]!r}; fix: read it with a newer Torsor") from None
        found = getattr(home, data["function"] if "function" in data else data["class"], None)
        if "function" in data:
            if not isfunction(found) or not _is_own_function(found):
                raise ValueError(f"{module} has no function {str(data['function'])[:60]!r} of a node")
            return found
        if not isinstance(found, type) or not _is_own_class(found):
            raise ValueError(f"{module} has no class {str(data['class'])[:60]!r} of data")
        return found(**{str(name): self.decode(each) for name, each in data["fields"].items()})


def _is_own_class(cls: type) -> bool:
    return cls.__module__.startswith(PACKAGES) and (is_dataclass(cls) or hasattr(cls, "_fields"))


def _is_own_function(function: Any) -> bool:
    """Whether a function of one node is defined at the top of a module of Torsor."""
    home, name = function.__module__, function.__qualname__
    return home.startswith(PACKAGES) and name.isidentifier() and list(signature(function).parameters) == ["node"]
