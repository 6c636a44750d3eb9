"""Free parameters of a mechanism: reading and replacing numbers named by paths such as "links.hand.mass".

A path is "links.LINK.FIELD", "joints.JOINT.FIELD" or "gravity". LINK and JOINT are names or indices. A suffix ".x",
".yz" or ".0" selects one component of the field.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import number as checked_number
from torsor.base.errors import ModelError
from torsor.mechanism.mechanism import Mechanism, carrier
from torsor.mechanism.parts import Joint, Link
from torsor.spatial import from_quaternion, make_pose, quaternion_exp

PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Rows and columns of the six components of an inertia."""

_XYZ, _SIX = ("x", "y", "z"), ("xx", "xy", "xz", "yy", "yz", "zz")
_LINK = {"mass": ("",), "com": _XYZ, "inertia": _SIX}
_JOINT = {"origin": _XYZ, "turn": _XYZ, "point": _XYZ}
_ALLOWED_PATHS = "each number once, at least one"
_DRIVES = ("rotor_inertia", "coulomb", "viscous")  # fields with one number per velocity


@dataclass(frozen=True)
class Number:
    """One number: ``part`` is "links", "joints" or "gravity"; ``index`` is the link or joint (-1 for gravity)."""

    part: str
    index: int
    field: str
    component: int


@dataclass(frozen=True)
class Free:
    """A free parameter p: each number that it controls changes by coefficient * (p - ``value``)."""

    name: str
    value: float
    coefficients: tuple[tuple[Number, float], ...]

    def __hash__(self) -> int:
        return hash(self.name)  # fast, because parameters are hashed in every call


class Numbers(NamedTuple):
    """Values p (..., k) of free parameters, or none if the mechanism keeps its own numbers."""

    free: tuple[Free, ...] = ()
    p: ArrayLike = ()

    @property
    def move_loops(self) -> bool:
        """Whether some parameters move joints or rotate axes, which affects loop closure."""
        return any(number.field in _JOINT for parameter in self.free for number, _ in parameter.coefficients)

    @property
    def inputs(self) -> tuple[ArrayLike, ...]:
        """Additional inputs of an algorithm: (p,), or () if there are no parameters."""
        return (self.p,) if self.free else ()


OWN = Numbers()
"""The mechanism's own numbers."""


def free_numbers(mechanism: Mechanism, paths: Sequence[str] | Mapping[str, Any]) -> tuple[Free, ...]:
    """Return the free parameters at the given paths, with their current values.

    A mapping {name: path} renames them. A mapping {name: {path: coefficient}} is one parameter that changes several
    numbers in proportion to their coefficients; its current value is 0.
    """
    if isinstance(paths, str) or not isinstance(paths, (Sequence, Mapping)):
        allowed = "a list of paths such as 'links.hand.mass', or a mapping from names to paths"
        raise ModelError(argument="paths", value=paths, where=mechanism.name, allowed=allowed)
    result: list[Free] = []
    owners: dict[Number, str] = {}  # parameters that set a number directly; coefficients may add up in one number
    for item in paths:
        path = paths[item] if isinstance(paths, Mapping) else item
        if isinstance(path, Mapping):
            where = mechanism.name
            checked = {p: checked_number(c, where, f"coefficient of {p!r}") for p, c in path.items()}
            moved = tuple((_single(mechanism, p), c) for p, c in checked.items())
            if len(dict(moved)) < max(len(moved), 1):
                what = f"{item!r} changes {'one number by two paths' if moved else 'no number'}"
                raise ModelError(what, value=item, where=mechanism.name, allowed=_ALLOWED_PATHS)
            result.append(Free(str(item), 0.0, moved))
        else:
            named = item if isinstance(paths, Mapping) else path
            for suffix, number in _numbers(mechanism, path):
                name = f"{named}{suffix}"
                if owners.setdefault(number, name) != name:
                    what = f"{owners[number]!r} and {name!r} are the same number"
                    raise ModelError(what, where=mechanism.name, allowed=_ALLOWED_PATHS)
                result.append(Free(name, read_number(mechanism, number), ((number, 1.0),)))
    double = next((name for name, count in Counter(entry.name for entry in result).items() if count > 1), None)
    if double is not None or not result:
        what = f"{double!r} is named twice" if result else "no number is named"
        raise ModelError(what, where=mechanism.name, allowed=_ALLOWED_PATHS)
    return tuple(result)


def paths_of(mechanism: Mechanism, free: Sequence[Free]) -> dict[str, str | dict[str, float]]:
    """Return the mapping from which ``free_numbers`` creates these parameters."""
    result: dict[str, str | dict[str, float]] = {}
    for item in free:
        number, coefficient = item.coefficients[0]
        direct = len(item.coefficients) == 1 and coefficient == 1 and item.value == read_number(mechanism, number)
        coefficients = {_path(mechanism, number): c for number, c in item.coefficients}
        result[item.name] = _path(mechanism, number) if direct else coefficients
    return result


def _path(mechanism: Mechanism, number: Number) -> str:
    if number.part == "gravity":
        return f"gravity.{_XYZ[number.component]}"
    owner = getattr(mechanism, number.part)[number.index]
    component = _fields(owner)[number.field][number.component]
    return ".".join(filter(None, (number.part, owner.name, number.field, component)))


def _single(mechanism: Mechanism, path: str) -> Number:
    """Return the single number that a path names; raise ModelError if there are several."""
    numbers = _numbers(mechanism, path)
    if len(numbers) != 1:
        fix = f"name one, as in {path + numbers[0][0]!r}"
        raise ModelError(f"{path!r} is {len(numbers)} numbers", value=path, where=mechanism.name, fix=fix)
    return numbers[0][1]


def _numbers(mechanism: Mechanism, path: Any) -> list[tuple[str, Number]]:
    """Return the numbers that a path names, each with the suffix that completes the path."""
    part, _, rest = path.partition(".") if isinstance(path, str) else ("", "", "")
    if isinstance(path, str) and path.endswith("."):
        fix = f"write {path.rstrip('.')!r}"
        raise ModelError(f"path {path!r} ends with a dot", value=path, where=mechanism.name, fix=fix)
    if part == "gravity":
        return _components(mechanism, path, ("gravity", -1, "gravity"), _XYZ, rest)
    if part not in ("links", "joints"):
        allowed = "links.LINK.FIELD, joints.JOINT.FIELD or gravity"
        raise ModelError(f"path {path!r} is not valid", value=path, where=mechanism.name, allowed=allowed)
    owners: Sequence[Link | Joint] = getattr(mechanism, part)
    names = [item.name for item in owners]
    # Names may contain dots, so the longest matching name is selected.
    fits = [name for name in names if rest.startswith(f"{name}.")]
    owner = max(fits, key=len) if fits else rest.partition(".")[0]
    index = names.index(owner) if fits else int(owner) if owner.isdecimal() else -1
    if not 0 <= index < len(owners):
        allowed = ", ".join(map(repr, names[:12])) + f", or 0 to {len(owners) - 1}" if names else "there is none"
        place = mechanism.places.get(owner) if part == "links" else None
        merged = "" if place is None else f": {owner!r} is part of {carrier(mechanism, place).name!r}"
        message = f"path {path!r}: no such {part[:-1]}{merged}"
        raise ModelError(message, value=path, where=mechanism.name, allowed=allowed)
    fields = _fields(owners[index])
    field, _, component = rest[len(owner) + 1 :].partition(".")
    if field not in fields:
        raise ModelError(f"path {path!r}: no field {field!r}", where=mechanism.name, allowed=", ".join(fields))
    return _components(mechanism, path, (part, index, field), fields[field], component)


def _fields(owner: Link | Joint) -> dict[str, tuple[str, ...]]:
    if isinstance(owner, Link):
        return _LINK
    drives = ("",) if owner.nv == 1 else tuple(map(str, range(owner.nv)))
    stiffness: dict[str, tuple[str, ...]] = {} if _stiffness(owner) is None else {"stiffness": ("",)}
    poses = {name: names for name, names in _JOINT.items() if name != "point" or owner.type != "free"}
    placed = poses if owner.flexible is None else {}  # modes are in the frame where they are clamped
    return placed | dict.fromkeys(_DRIVES, drives) | stiffness


def _components(
    mechanism: Mechanism, path: str, key: tuple[str, int, str], names: tuple[str, ...], suffix: str
) -> list[tuple[str, Number]]:
    if not suffix:
        return [(f".{name}" if name else "", Number(*key, k)) for k, name in enumerate(names)]
    if suffix not in names:
        message = f"path {path!r}: no component {suffix!r}"
        raise ModelError(message, where=mechanism.name, allowed=", ".join(filter(None, names)) or "none")
    return [("", Number(*key, names.index(suffix)))]


def _stiffness(joint: Joint) -> float | None:
    """Return the stiffness of a joint's linear spring, or of the spring between the joint and its motor."""
    laws = [item.stiffness for item in (joint.spring, joint.motor) if item is not None and item.stiffness is not None]
    return laws[0] if len(laws) == 1 and isinstance(laws[0], float) else None


def read_number(mechanism: Mechanism, number: Number) -> float:
    """Return the current value of a number."""
    if number.part == "gravity":
        return float(mechanism.gravity[number.component])
    owner = getattr(mechanism, number.part)[number.index]
    if number.field == "inertia":
        return float(owner.inertia[PAIRS[number.component]])
    if number.field == "origin":
        return float(owner.placement[number.component, 3])
    if number.field == "turn":
        return 0.0
    value: Any = _stiffness(owner) if number.field == "stiffness" else getattr(owner, number.field)
    return float(np.atleast_1d(value)[number.component])


def with_numbers(mechanism: Mechanism, values: Mapping[Number, float]) -> dict[str, Any]:
    """Return the gravity, links and joints of a mechanism after changing some of its numbers."""
    gravity = np.array(mechanism.gravity)
    owners: dict[str, list[Any]] = {"links": list(mechanism.links), "joints": list(mechanism.joints)}
    changes: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    for number, value in values.items():
        if number.part == "gravity":
            gravity[number.component] = value
        else:
            owner = changes.setdefault((number.part, number.index), {})
            owner.setdefault(number.field, {})[number.component] = value
    for (part, index), fields in changes.items():  # all changes of a part together: some may be impossible alone
        old = owners[part][index]
        new: dict[str, Any] = {"source": f"{mechanism.name} with these numbers"}  # errors must not name the file
        for field, components in fields.items():
            new |= _with_components(old, new, field, components)
        owners[part][index] = replace(old, **new)
    return {"gravity": gravity, "links": tuple(owners["links"]), "joints": tuple(owners["joints"])}


def _with_components(owner: Any, new: Mapping[str, Any], field: str, values: dict[int, float]) -> dict[str, Any]:
    """Return ``new`` {attribute: value} for a link or joint, updated with the changed components of a field."""
    if field == "inertia":
        inertia = np.array(owner.inertia)
        for k, value in values.items():
            inertia[PAIRS[k]] = inertia[PAIRS[k][::-1]] = value
        return {"inertia": inertia}
    if field in ("origin", "turn"):
        placement = np.array(new.get("placement", owner.placement))
        if field == "origin":
            placement[list(values), 3] = list(values.values())
        else:
            turn = np.array([values.get(k, 0.0) for k in range(3)])
            placement = placement @ make_pose(np.asarray(from_quaternion(quaternion_exp(turn)), dtype=float))
        return {"placement": placement}
    if field == "stiffness":
        name = "spring" if owner.spring is not None else "motor"
        return {name: replace(getattr(owner, name), stiffness=values[0])}
    numbers = np.array(np.atleast_1d(getattr(owner, field)))
    numbers[list(values)] = list(values.values())
    return {field: numbers if np.ndim(getattr(owner, field)) else float(numbers[0])}
