"""Units as FMI writes them: names in the style of Modelica, and exponents of the base units."""

from collections.abc import Iterable

from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free, Number

UNITS: dict[str, dict[str, int]] = {
    "s": {"s": 1},
    "1/s": {"s": -1},
    "rad": {"rad": 1},
    "m": {"m": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m/s2": {"m": 1, "s": -2},
    "kg": {"kg": 1},
    "kg.m2": {"kg": 1, "m": 2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "N.m.s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1},
    "N.s/m": {"kg": 1, "s": -1},
    "N.m/rad": {"kg": 1, "m": 2, "s": -2, "rad": -1},
    "N/m": {"kg": 1, "s": -2},
}
"""Exponents of the base units of each unit, by its name."""

FORCES = {"rad": "N.m", "m": "N"}
"""The unit of a force, by that of its coordinate."""

_FIELDS = {"mass": "kg", "com": "m", "inertia": "kg.m2", "origin": "m", "turn": "rad", "point": "m", "gravity": "m/s2"}
# Of drives: for a coordinate in rad, and for one in m.
_DRIVES = {
    "rotor_inertia": ("kg.m2", "kg"),
    "coulomb": ("N.m", "N"),
    "viscous": ("N.m.s/rad", "N.s/m"),
    "stiffness": ("N.m/rad", "N/m"),
}
_POSITIVE = ("mass", *_DRIVES)


def unit_of(mechanism: Mechanism, parameter: Free) -> str:
    """Return the unit of a number of a mechanism; none where it changes numbers of several units.

    Example:
        >>> from torsor.mechanism.free import free_numbers
        >>> robot = torsor.library.stanford()
        >>> [unit_of(robot, each) for each in free_numbers(robot, ["links.0.mass", "joints.joint3.viscous"])]
        ['kg', 'N.s/m']
    """
    found = {_unit(mechanism, number) for number, _ in parameter.coefficients}
    return found.pop() if len(found) == 1 else ""


def _unit(mechanism: Mechanism, number: Number) -> str:
    if number.field in _FIELDS:
        return _FIELDS[number.field]
    turns = mechanism.joints[number.index].kind.turns
    return _DRIVES[number.field][not turns[number.component]]


def least_of(parameter: Free) -> float | None:
    """Return the least value of a number: 0 of masses, friction and stiffness, none of the others.

    Example:
        >>> from torsor.mechanism.free import free_numbers
        >>> [least_of(each) for each in free_numbers(torsor.library.two_link(), ["links.0.mass", "gravity.y"])]
        [0.0, None]
    """
    (number, coefficient), *others = parameter.coefficients
    direct = not others and coefficient == 1 and number.field in _POSITIVE
    return 0.0 if direct and parameter.value >= 0 else None


def used(names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return those units that are named.

    Example:
        >>> used(["m", "", "s", "m"])
        {'s': {'s': 1}, 'm': {'m': 1}}
    """
    wanted = set(names)
    return {name: exponents for name, exponents in UNITS.items() if name in wanted}
