"""The model in an FMU: a robot as functions of one vector x, whose components are variables.

    x = (parameters, inputs, states)        z = (rates of the states, outputs)

Of the forward dynamics, inputs are forces and wrenches, and the states q and v; the rates of q are those of its
components, also of quaternions. The inverse dynamics has no states: q, v and a are inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.checks import arrays, indices_of, positive
from torsor.dynamics import ALGORITHMS
from torsor.dynamics.requests.forms import pulled, pushed
from torsor.errors import ModelError, describe
from torsor.export.fmi.quantities import Chosen, chosen
from torsor.export.fmi.units import FORCES, least_of, unit_of
from torsor.export.fmi.variables import Variable, levels, structured
from torsor.mechanism.free import Free, free_numbers
from torsor.mechanism.units import units
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import position_rate
from torsor.simulation.setup import normalised

STEP = "step"
_SHORTEST = 1e-9  # s, of the step
_WRENCH = (("mx", "N.m"), ("my", "N.m"), ("mz", "N.m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))


@dataclass(frozen=True)
class Settings:
    """What an FMU has; ``Robot.export_fmi`` describes the fields."""

    outputs: tuple[Chosen, ...]
    free: tuple[Free, ...]
    paths: Sequence[str] | Mapping[str, Any]
    external: tuple[int, ...]
    inverse: bool
    q0: tuple[float, ...]
    v0: tuple[float, ...]
    step: float

    @classmethod
    def of(
        cls,
        robot: Robot,
        names: Sequence[str],
        parameters: Sequence[str] | Mapping[str, Any],
        external: Sequence[str],
        inverse: bool,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        step: float,
    ) -> "Settings":
        """Return the settings; raise ModelError where one is not allowed, or the robot has no such model."""
        where = robot.name
        if robot.loops:
            fix = "robot.open_tree(), or export_c with constrained_inverse_dynamics"
            raise ModelError(describe("a robot with closed loops as an FMU", where=where, allowed="trees", fix=fix))
        if not robot.nv:
            raise ModelError(describe("the robot has no coordinate", where=where, allowed="one or more joints"))
        links = indices_of(external, robot.link_names, where, "moving link")
        if len(set(links)) < len(links):
            raise ModelError(describe("external names a link twice", where=where, allowed="each once"))
        q = arrays(robot.neutral() if q0 is None else q0, (robot.nq,), where, "q0")
        v = arrays(np.zeros(robot.nv) if v0 is None else v0, (robot.nv,), where, "v0")
        for array, name in ((q, "q0"), (v, "v0")):
            if array.ndim > 1:
                raise ModelError(describe(f"{name} has shape {array.shape}", where=where, allowed="one state"))
        length = positive(step, where, STEP)
        if length < _SHORTEST:
            raise ModelError(describe(f"step is {length:g} s", where=where, allowed=f"{_SHORTEST:g} s or more"))
        free = free_numbers(robot, parameters) if parameters else ()
        start = tuple(normalised(robot, q).tolist()), tuple(v.tolist())
        return cls(tuple(chosen(robot, names)), free, parameters, tuple(links), inverse, *start, length)


@dataclass(frozen=True, eq=False)
class Model:
    """A robot with settings as variables, and as functions over them."""

    robot: Robot
    settings: Settings

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, by value reference; raise ModelError where two have one name."""
        settings = self.settings
        found = [Variable("time", "time", "s", "time")]
        if not settings.inverse:
            what = "longest step of the integrator in co-simulation"
            found.append(Variable(STEP, "parameter", "s", what, settings.step, _SHORTEST))
        found += self._parameters() + self._inputs()
        if not settings.inverse:
            found += self._states(len(found))
        found += self._outputs()
        names = [each.name for each in found]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            fix = "give the parameter another name: {name: path}"
            raise ModelError(describe(f"two variables are named {double!r}", where=self.robot.name, fix=fix))
        return tuple(found)

    def first(self, *kinds: str) -> int:
        """Return the value reference of the first variable of these kinds; the number of variables if there is none."""
        at = (k for k, each in enumerate(self.variables) if each.kind in kinds and each.name != STEP)
        return next(at, len(self.variables))

    @property
    def x(self) -> int:
        """The value reference where x begins."""
        return self.first("parameter", "input")

    @property
    def z(self) -> int:
        """The value reference where z begins."""
        return self.first("rate", "output")

    def _coordinates(self, letter: str, power: int, starts: Sequence[float], kind: str, what: str) -> list[Variable]:
        """Return the variables of velocities (power 1) or accelerations (2)."""
        own, suffix = units(self.robot)[1], {1: "/s", 2: "/s2"}[power]
        return [
            Variable(structured(letter, *levels(name)), kind, unit + suffix, f"{what} of {name}", start)
            for name, unit, start in zip(self.robot.coordinate_names, own, starts, strict=True)
        ]

    def _positions(self, kind: str) -> list[Variable]:
        own = ("" if unit == "1" else unit for unit in units(self.robot)[0])
        return [
            Variable(structured("q", *levels(name)), kind, unit, f"position of {name}", start)
            for name, unit, start in zip(self.robot.position_names, own, self.settings.q0, strict=True)
        ]

    def _forces(self, kind: str, start: float | None) -> list[Variable]:
        return [
            Variable(structured("tau", *levels(name)), kind, FORCES[unit], f"generalised force of {name}", start)
            for name, unit in zip(self.robot.coordinate_names, units(self.robot)[1], strict=True)
        ]

    def _parameters(self) -> list[Variable]:
        robot = self.robot
        return [
            Variable(
                structured(*each.name.split(".")), "parameter", unit_of(robot, each), "", each.value, least_of(each)
            )
            for each in self.settings.free
        ]

    def _inputs(self) -> list[Variable]:
        still = (0.0,) * self.robot.nv
        if self.settings.inverse:
            found = self._positions("input")
            found += self._coordinates("v", 1, self.settings.v0, "input", "velocity")
            found += self._coordinates("a", 2, still, "input", "acceleration")
        else:
            found = self._forces("input", 0.0)
        for link in (self.robot.link_names[k] for k in self.settings.external):
            what = f"wrench on {link}, at its origin, in its axes"
            found += [Variable(structured("external", link, c), "input", unit, what, 0.0) for c, unit in _WRENCH]
        return found

    def _states(self, first: int) -> list[Variable]:
        states = self._positions("state")
        states += self._coordinates("v", 1, self.settings.v0, "state", "velocity")
        nq = self.robot.nq
        units_of_rates = [each.unit and f"{each.unit}/s" for each in states[:nq]]
        rates = [
            Variable(f"der({each.name})", "rate", unit, f"rate of {each.name}", state=first + k)
            for k, (each, unit) in enumerate(zip(states, units_of_rates, strict=False))
        ]
        found = self._coordinates("a", 2, (0.0,) * self.robot.nv, "rate", "acceleration")
        rates += [
            Variable(each.name, "rate", each.unit, each.description, state=first + nq + k)
            for k, each in enumerate(found)
        ]
        return states + rates

    def _outputs(self) -> list[Variable]:
        found = self._forces("output", None) if self.settings.inverse else []
        for each in self.settings.outputs:
            what = f"{each.quantity.what} {each.place}".strip()
            for component, unit in zip(each.quantity.components, each.quantity.units, strict=True):
                # A component with brackets is an element of an array, and needs no quotes.
                name = structured(each.name, each.place) + f".{component}" * bool(component)
                found.append(Variable(name, "output", unit, what))
        return found

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """The functions in C: rates(x), outputs(x, rates), tangent(x, d_x), adjoint(x, bar_z) and the charts of q."""
        x = ca.SX.sym("x", self.z - self.x)
        rates = self._rates(x)
        given = ca.SX.sym("rates", rates.size1())
        outputs, found = self._extras(x, given), dict[str, ca.Function]()
        if not self.settings.inverse:
            found |= {name: self.robot.function(name) for name in ("chart", "chart_rate")}
            found["rates"] = _function("rates", {"x": x}, {"rates": rates})
        if outputs.size1():
            found["outputs"] = _function("outputs", {"x": x, "rates": given}, {"outputs": outputs})
        z = ca.vertcat(rates, ca.substitute(outputs, given, rates))
        tangents, changes = pushed({"x": x}, {"z": z}, {})
        found["tangent"] = _function("tangent", {"x": x} | tangents, changes)
        weights, gradients = pulled({"x": x}, {"z": z}, {})
        found["adjoint"] = _function("adjoint", {"x": x} | weights, gradients)
        return found

    @cached_property
    def pattern(self) -> list[list[int]]:
        """For each component of z, the value references of the variables of x that it depends on."""
        x = ca.SX.sym("x", self.z - self.x)
        rates = self._rates(x)
        z = ca.Function("z", [x], [ca.vertcat(rates, self._extras(x, rates))])
        rows, columns = z.jac_sparsity(0, 0).get_triplet()
        found: list[list[int]] = [[] for _ in range(z.size1_out(0))]
        for row, column in zip(rows, columns, strict=True):
            found[row].append(self.x + column)
        return [sorted(each) for each in found]

    def _given(self, x: ca.SX) -> dict[str, ca.SX]:
        """Return the arguments of algorithms that are parts of x, by name."""
        robot, settings = self.robot, self.settings
        sizes = {"p": len(settings.free)}
        wrenches = 6 * len(settings.external)
        if settings.inverse:
            sizes |= {"q": robot.nq, "v": robot.nv, "a": robot.nv, "external": wrenches}
        else:
            sizes |= {"tau": robot.nv, "external": wrenches, "q": robot.nq, "v": robot.nv}
        ends = np.cumsum([0, *sizes.values()])
        found = {name: x[int(ends[k]) : int(ends[k + 1])] for k, name in enumerate(sizes)}
        loads = ca.SX.zeros(len(robot.links), 6)
        for k, link in enumerate(settings.external):
            loads[link, :] = found["external"][6 * k : 6 * k + 6].T
        return found | {"external": loads}

    def _call(self, given: Mapping[str, ca.SX], name: str, place: str | None = None) -> ca.SX:
        """Return the result of an algorithm."""
        robot = self.robot.parametric(self.settings.paths) if self.settings.free else self.robot
        loaded = bool(self.settings.external) and ALGORITHMS[name].external
        function = robot.function(name, place, external=loaded)
        return function(*(given[each] for each in function.name_in()))

    def _rates(self, x: ca.SX) -> ca.SX:
        """Return the rates of q and v."""
        if self.settings.inverse:
            return ca.SX(0, 1)
        given = self._given(x)
        return ca.vertcat(
            ca.densify(position_rate(self.robot, given["q"], given["v"])), self._call(given, "forward_dynamics")
        )

    def _extras(self, x: ca.SX, rates: ca.SX) -> ca.SX:
        """Return the outputs that are no states or rates."""
        given = self._given(x)
        parts = []
        if self.settings.inverse:
            parts.append(self._call(given, "inverse_dynamics"))
        else:
            given["a"] = rates[self.robot.nq :]
        for each in self.settings.outputs:
            place = each.place if each.quantity.at == "place" else None
            parts.append(each.row(self.robot, self._call(given, each.name, place)))
        return ca.densify(ca.vertcat(ca.SX(0, 1), *parts))


def _function(name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> ca.Function:
    results = ca.cse([ca.densify(each) for each in outputs.values()])
    return ca.Function(name, list(inputs.values()), results, list(inputs), list(outputs))
