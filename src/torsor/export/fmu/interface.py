"""The variables of the FMU of a robot: time and step, parameters, inputs, states, their rates, outputs."""

from collections.abc import Sequence
from dataclasses import replace

from torsor.base.errors import ModelError
from torsor.export.fmu.settings import SHORTEST, Settings
from torsor.export.fmu.units import FORCES, least_of, unit_of
from torsor.export.fmu.variables import Variable, levels, structured
from torsor.mechanism.mechanism import units
from torsor.robot.robot import Robot
from torsor.simulation.integration import STABILISATION

STEP = "step"
"""The name of the parameter that is the longest step of co-simulation."""

CLOSING = "closing"
"""The name of the parameter that is the rate at which loops are closed in model exchange."""

_WRENCH = (("mx", "N.m"), ("my", "N.m"), ("mz", "N.m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))


def variables_of(robot: Robot, settings: Settings) -> tuple[Variable, ...]:
    """Return all variables in the order of value references; raise ModelError where two have one name.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> settings = Settings.of(robot, (), (), (), False, None, None, 1e-3)
        >>> [each.name for each in variables_of(robot, settings)]
        ['time', 'step', 'tau.joint1', 'q.joint1', 'v.joint1', 'der(q.joint1)', 'a.joint1']
    """
    found = [Variable("time", "time", "s", "time")]
    if not settings.inverse:
        what = "longest step of the integrator in co-simulation"
        found.append(Variable(STEP, "parameter", "s", what, settings.step, SHORTEST))
    if robot.loops:
        what = "rate at which errors of closure of the loops decrease in model exchange"
        found.append(Variable(CLOSING, "parameter", "1/s", what, STABILISATION, 0.0))
    found += _parameters(robot, settings) + _inputs(robot, settings)
    if not settings.inverse:
        found += _states(robot, settings, len(found))
    found += _outputs(robot, settings)
    names = [each.name for each in found]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        fix = "give the parameter another name: {name: path}"
        raise ModelError(f"two variables are named {double!r}", value=double, where=robot.name, fix=fix)
    return tuple(found)


def _parameters(robot: Robot, settings: Settings) -> list[Variable]:
    return [
        Variable(structured(*each.name.split(".")), "parameter", unit_of(robot, each), "", each.value, least_of(each))
        for each in settings.free
    ]


def _inputs(robot: Robot, settings: Settings) -> list[Variable]:
    if settings.inverse:
        found = _positions(robot, settings.q0, "input")
        found += _coordinates(robot, "v", settings.v0, "input") + _coordinates(robot, "a", (0.0,) * robot.nv, "input")
    else:
        found = _forces(robot, "input", 0.0)
    for link in (robot.link_names[k] for k in settings.external):
        what = f"wrench on {link}, at its origin, in its axes"
        found += [Variable(structured("external", link, c), "input", unit, what, 0.0) for c, unit in _WRENCH]
    return found


def _states(robot: Robot, settings: Settings, first: int) -> list[Variable]:
    """Return the states q and v, of which the first has that value reference, and their rates."""
    q, v = _positions(robot, settings.q0, "state"), _coordinates(robot, "v", settings.v0, "state")
    rates = [
        Variable(f"der({each.name})", "rate", each.unit and f"{each.unit}/s", f"rate of {each.name}") for each in q
    ]
    rates += _coordinates(robot, "a", (None,) * robot.nv, "rate")
    return q + v + [replace(each, state=first + k) for k, each in enumerate(rates)]


def _outputs(robot: Robot, settings: Settings) -> list[Variable]:
    found = _forces(robot, "output", None) if settings.inverse else []
    for each in settings.outputs:
        what = f"{each.quantity.what} {each.place}".strip()
        for component, unit in zip(each.quantity.components, each.quantity.units, strict=True):
            # A component with brackets is an element of an array, and needs no quotes.
            name = structured(each.name, each.place) + f".{component}" * bool(component)
            found.append(Variable(name, "output", unit, what))
    return found


def _positions(robot: Robot, starts: Sequence[float], kind: str) -> list[Variable]:
    own = ("" if unit == "1" else unit for unit in units(robot)[0])  # components of quaternions
    return [
        Variable(structured("q", *levels(name)), kind, unit, f"position of {name}", start)
        for name, unit, start in zip(robot.position_names, own, starts, strict=True)
    ]


def _coordinates(robot: Robot, letter: str, starts: Sequence[float | None], kind: str) -> list[Variable]:
    """Return velocities (v) or accelerations (a)."""
    what, per = {"v": ("velocity", "/s"), "a": ("acceleration", "/s2")}[letter]
    return [
        Variable(structured(letter, *levels(name)), kind, unit + per, f"{what} of {name}", start)
        for name, unit, start in zip(robot.coordinate_names, units(robot)[1], starts, strict=True)
    ]


def _forces(robot: Robot, kind: str, start: float | None) -> list[Variable]:
    return [
        Variable(structured("tau", *levels(name)), kind, FORCES[unit], f"generalised force of {name}", start)
        for name, unit in zip(robot.coordinate_names, units(robot)[1], strict=True)
    ]
