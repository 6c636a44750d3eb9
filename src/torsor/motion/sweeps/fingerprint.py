"""Fingerprints of the functions and problems of a sweep, by which a resumed study detects changed code.

A fingerprint covers the bytecode of a function, the functions of the study that it calls, and the constants, robots and
motion problems that it uses. Comments and other code in its file have no effect. The fingerprint includes the versions
of Torsor, on which all results depend, and of Python, on which bytecode depends.
"""

import hashlib
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from torsor._version import __version__
from torsor.base.errors import ModelError, warn
from torsor.motion import MotionProblem
from torsor.motion.encoding import encoded
from torsor.robot.archived import robot_text
from torsor.robot.robot import Robot

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Code in these folders does not belong to a study. The version of Torsor represents Torsor's code.
_LIBRARIES = (str(Path(__file__).parents[2]), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...))


def fingerprint(function: Any, settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of a function or problem and of the ``solve`` settings, as JSON.

    Example:
        >>> one, other = (fingerprint(abs, {"tolerance": tolerance}) for tolerance in (1e-6, 1e-9))
        >>> one == other, json.loads(one)["torsor"] == torsor.__version__
        (False, True)
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts((function, dict(settings)), {}):
        digest.update(part.encode(errors="replace") + b"\0")
    return json.dumps({"torsor": __version__, "python": PYTHON, "code": digest.hexdigest()})


def check_code(path: Path, subject: str, found: str, now: str) -> None:
    """Warn if the results in a file have a different fingerprint; older files have none."""
    if not found or found == now:
        return
    after = json.loads(now)
    try:
        before = {key: str(json.loads(found)[key]) for key in after}
    except (ValueError, KeyError, TypeError):
        raise ModelError("its fingerprint of the code is damaged", where=str(path), fix="choose another file") from None
    changes = [f"by Torsor {before['torsor']} (this is {after['torsor']})"] * (before["torsor"] != after["torsor"])
    if before["python"] == after["python"] and before["code"] != after["code"]:
        changes.append(f"before the code, data or settings of {subject!r} changed")
    if changes:
        fix = "choose another file, so that all results are computed in the same way"
        warn(f"it contains results that were computed {' and '.join(changes)}", where=str(path), fix=fix)


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Yield the parts of a value as text; ``seen`` maps ids to objects that may contain themselves."""
    yield type(value).__name__
    if isinstance(value, _CONSTANTS):
        yield repr(value)
    elif isinstance(value, (tuple, frozenset)):
        texts = ("\0".join(_parts(item, seen)) for item in value)
        yield from texts if isinstance(value, tuple) else sorted(texts)
    elif id(value) not in seen:
        seen[id(value)] = value
        yield from _parts_of_object(value, seen)


def _parts_of_object(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    if isinstance(value, (Robot, MotionProblem)):
        yield _written(value)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.blake2b(value.tobytes()).hexdigest()}"
    elif isinstance(value, FunctionType):
        yield value.__name__
        yield from _parts(_used(value) if _is_own(value) else (), seen)
    elif isinstance(value, CodeType):
        yield from _parts((value.co_code, value.co_varnames, value.co_names, value.co_consts), seen)
    elif isinstance(value, MethodType):
        yield from _parts((value.__func__, value.__self__), seen)
    elif isinstance(value, partial):
        yield from _parts((value.func, value.args, value.keywords), seen)
    elif isinstance(value, Mapping):
        pairs = [(repr(key), item) for key, item in value.items()]
        yield from _parts(tuple(sorted(pairs, key=lambda pair: pair[0])), seen)
    elif isinstance(value, (list, set)):
        yield from _parts(tuple(value) if isinstance(value, list) else frozenset(value), seen)
    elif isinstance(value, type):
        members = {name: item for name, item in vars(value).items() if not name.startswith("__") or callable(item)}
        yield from _parts(members if _is_own(value) else (), seen)
    elif isinstance(value, (property, staticmethod, classmethod)):
        yield from _parts(value.fget if isinstance(value, property) else value.__func__, seen)
    elif _is_own(type(value)):
        yield from _parts((getattr(value, "__dict__", {}), type(value)), seen)


def _used(function: FunctionType) -> tuple[Any, ...]:
    """Return the parts of a function: code, defaults, constants in closure cells, and the globals that it uses."""
    code, cells, names = function.__code__, list[Any](), list(_names(function.__code__))
    for cell in function.__closure__ or ():
        try:  # a cell may be empty, and lists in cells are often used to collect results
            cells += [cell.cell_contents] if not isinstance(cell.cell_contents, (list, dict, set)) else []
        except ValueError:
            continue
    constants = code.co_consts[1:] if code.co_consts[:1] == (function.__doc__,) else code.co_consts
    variables = list[Any]()
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):  # only attributes that the code accesses
            variables += [vars(value)[key] for key in names if key in vars(value)] if _is_own(value) else []
        else:
            variables.append(value)
    kept = code.co_code, code.co_varnames, code.co_names, constants, function.__defaults__, function.__kwdefaults__
    return *kept, *cells, *variables


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in a function and its nested functions."""
    yield from code.co_names
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _names(item)


def _is_own(value: Callable[..., Any] | ModuleType) -> bool:
    """Return whether a function, class or module belongs to the study, not to a library."""
    module = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if file is None:  # built-in or entered interactively
        return getattr(module, "__name__", "") == "__main__"
    return not str(file).startswith(_LIBRARIES)


def _written(value: Robot | MotionProblem) -> str:
    """Return a robot or a problem as text, or its repr if it contains Python functions."""
    try:
        return robot_text(value) if isinstance(value, Robot) else encoded(value)
    except ModelError:
        return repr(value)
