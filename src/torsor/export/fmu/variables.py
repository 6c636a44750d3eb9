"""The variables of an FMU, in the order used for value references, C code and model description."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torsor.base.errors import ModelError
from torsor.export.fmu.settings import MIN_STEP, Settings
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free
from torsor.mechanism.mechanism import units
from torsor.robot.robot import Robot
from torsor.simulation.integration import STABILISATION

UNITS: dict[str, dict[str, int]] = {
    "s": {"s": 1}, "1/s": {"s": -1}, "rad": {"rad": 1}, "m": {"m": 1}, "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1}, "rad/s2": {"rad": 1, "s": -2}, "m/s2": {"m": 1, "s": -2}, "kg": {"kg": 1},
    "kg.m2": {"kg": 1, "m": 2}, "N": {"kg": 1, "m": 1, "s": -2}, "N.m": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2}, "N.m.s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1}, "N.s/m": {"kg": 1, "s": -1},
    "N.m/rad": {"kg": 1, "m": 2, "s": -2, "rad": -1}, "N/m": {"kg": 1, "s": -2},
}  # fmt: skip
"""Exponents of the base units, by unit name."""

FORCES = {"rad": "N.m", "m": "N"}
"""Force units, by coordinate unit."""

_FIELDS = {"mass": "kg", "com": "m", "inertia": "kg.m2", "origin": "m", "turn": "rad", "point": "m", "gravity": "m/s2"}
# Units of drives: for a coordinate in rad, and for one in m.
_DRIVES = {
    "rotor_inertia": ("kg.m2", "kg"),
    "coulomb": ("N.m", "N"),
    "viscous": ("N.m.s/rad", "N.s/m"),
    "stiffness": ("N.m/rad", "N/m"),
}
_POSITIVE = ("mass", *_DRIVES)


def unit_of(mechanism: Mechanism, parameter: Free) -> str:
    """Return the unit of a mechanism parameter, or "" if it affects quantities of several units."""
    found = set[str]()
    for number, _ in parameter.coefficients:
        drives = _DRIVES.get(number.field)
        slides = drives is not None and not mechanism.joints[number.index].kind.turns[number.component]
        found.add(_FIELDS[number.field] if drives is None else drives[slides])
    return found.pop() if len(found) == 1 else ""


def least_of(parameter: Free) -> float | None:
    """Return the minimum of a parameter: 0 for masses, friction and stiffness, otherwise None."""
    (number, coefficient), *others = parameter.coefficients
    direct = not others and coefficient == 1 and number.field in _POSITIVE
    return 0.0 if direct and parameter.value >= 0 else None


# Unquoted names in the grammar of structured names of the standard.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"'": "\\'", '"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True)
class Variable:
    """A variable of type Float64 (FMI 3) or Real (FMI 2).

    ``kind`` is "time", "parameter", "input", "state", "rate" or "output". ``start`` is the start value if it is not
    computed, and ``least`` is the minimum value. ``state`` is the value reference of the state whose rate it is.
    ``unit`` is one of ``UNITS``, or empty.
    """

    name: str
    kind: str
    unit: str
    description: str
    start: float | None = None
    least: float | None = None
    state: int | None = None

    @property
    def causality(self) -> str:
        """The causality. States and accelerations are also outputs."""
        if self.kind in ("rate", "state"):
            return "local" if self.name.startswith("der(") else "output"
        return {"time": "independent"}.get(self.kind, self.kind)

    @property
    def variability(self) -> str:
        """The variability. Parameters may change between steps."""
        return "tunable" if self.kind == "parameter" else "continuous"

    @property
    def initial(self) -> str | None:
        """The attribute ``initial``, which states how the initial value is determined, if the standard requires it."""
        return {"parameter": "exact", "state": "exact", "rate": "calculated", "output": "calculated"}.get(self.kind)


def structured(*parts: str) -> str:
    """Return a structured name. Parts that are not identifiers are quoted, and control characters become {number}."""

    def quoted(part: str) -> str:
        return "'" + "".join(_ESCAPES.get(c, c) if c.isprintable() else f"{{{ord(c)}}}" for c in part) + "'"

    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts if part)


def levels(name: str) -> list[str]:
    """Return the levels of a coordinate name, which are separated by slashes."""
    parts = name.split("/")
    return parts if all(parts) else [name]


STEP = "step"
"""Name of the parameter for the maximum co-simulation step."""

CLOSING = "closing"
"""Name of the parameter for the closing rate of loops in model exchange."""

_WRENCH = (("mx", "N.m"), ("my", "N.m"), ("mz", "N.m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))


def variables_of(robot: Robot, settings: Settings) -> tuple[Variable, ...]:
    """Return all variables in the order of value references. Raise ModelError for duplicate names."""
    variables = [Variable("time", "time", "s", "time")]
    if not settings.inverse:
        what = "maximum integrator step in co-simulation"
        variables.append(Variable(STEP, "parameter", "s", what, settings.step, MIN_STEP))
    if robot.loops:
        what = "decay rate of loop closure errors in model exchange"
        variables.append(Variable(CLOSING, "parameter", "1/s", what, STABILISATION, 0.0))
    for parameter in settings.free:
        name, unit = structured(*parameter.name.split(".")), unit_of(robot, parameter)
        variables.append(Variable(name, "parameter", unit, "", parameter.value, least_of(parameter)))
    variables += _inputs(robot, settings)
    if not settings.inverse:
        variables += _states(robot, settings, len(variables))
    variables += _outputs(robot, settings)
    names = [variable.name for variable in variables]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        fix = "rename the parameter: {name: path}"
        raise ModelError(f"two variables are named {double!r}", value=double, where=robot.name, fix=fix)
    return tuple(variables)


def _inputs(robot: Robot, settings: Settings) -> list[Variable]:
    if settings.inverse:
        starts = {"q": settings.q0, "v": settings.v0, "a": (0.0,) * robot.nv}
        variables = [
            each for letter, start_values in starts.items() for each in _vector(robot, letter, start_values, "input")
        ]
    else:
        variables = _vector(robot, "tau", (0.0,) * robot.nv, "input")
    for link in (robot.link_names[k] for k in settings.external):
        what = f"wrench on {link}, at its origin, in its axes"
        variables += [Variable(structured("external", link, c), "input", unit, what, 0.0) for c, unit in _WRENCH]
    return variables


def _states(robot: Robot, settings: Settings, first: int) -> list[Variable]:
    """Return the states q and v, starting at a value reference, and their rates."""
    q, v = _vector(robot, "q", settings.q0, "state"), _vector(robot, "v", settings.v0, "state")
    named = [(each.name, each.unit and f"{each.unit}/s") for each in q]
    rates = [Variable(f"der({name})", "rate", unit, f"rate of {name}") for name, unit in named]
    rates += _vector(robot, "a", (None,) * robot.nv, "rate")
    return q + v + [replace(each, state=first + k) for k, each in enumerate(rates)]


def _outputs(robot: Robot, settings: Settings) -> list[Variable]:
    variables = _vector(robot, "tau", (None,) * robot.nv, "output") if settings.inverse else []
    for output in settings.outputs:
        what = f"{output.quantity.what} {output.place}".strip()
        for component, unit in zip(output.quantity.components, output.quantity.units, strict=True):
            # A component with brackets is an array element and needs no quotes.
            name = structured(output.name, output.place) + f".{component}" * bool(component)
            variables.append(Variable(name, "output", unit, what))
    return variables


def _vector(robot: Robot, letter: str, starts: Sequence[float | None], kind: str) -> list[Variable]:
    """Return positions (q), velocities (v), accelerations (a) or forces (tau)."""
    positions, rates = units(robot)
    names = robot.position_names if letter == "q" else robot.coordinate_names
    what, descriptions = {
        "q": ("position", ["" if unit == "1" else unit for unit in positions]),  # quaternion components have no unit
        "v": ("velocity", [f"{unit}/s" for unit in rates]),
        "a": ("acceleration", [f"{unit}/s2" for unit in rates]),
        "tau": ("generalised force", [FORCES[unit] for unit in rates]),
    }[letter]
    remarks = dict[str, str]()
    if letter == "tau":
        links = {joint.name: ": torque on the link in addition to the spring, usually 0" for joint in robot.elastic}
        motors = {f"{name}/motor": " at the gear output: shaft torque x ratio" for name in links}
        remarks = links | motors
    return [
        Variable(structured(letter, *levels(name)), kind, unit, f"{what} of {name}{remarks.get(name, '')}", start)
        for name, unit, start in zip(names, descriptions, starts, strict=True)
    ]
