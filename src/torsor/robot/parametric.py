"""Parametric robots: masses, centres of mass, inertias, lengths, gravity or friction as inputs of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, one_of
from torsor.base.errors import ModelError
from torsor.compiler import OperationCount, count_operations
from torsor.dynamics import ALGORITHMS, Request
from torsor.dynamics.algorithms import WITH_MARGIN
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free, Number, Numbers, paths_of, read_number, with_numbers
from torsor.mechanism.loops import Closure
from torsor.robot.accessors import ON_ROBOT
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.constrained import by_multipliers
from torsor.robot.closed_loops.inputs import check_inputs, weights_of
from torsor.robot.derivatives import Derivatives, Loads, Results, check_count, check_numbers
from torsor.robot.kernels import Out
from torsor.robot.method_names import ACCESSORS, OF_ALL

R = TypeVar("R", bound=Mechanism)


class Parametric(Generic[R]):
    """A robot whose methods take selected parameters p (..., k) as their last argument. See ``Robot.parametric``.

    ``names`` are the parameter names, and ``values`` (k,) their values in the original robot. Every algorithm of a
    robot is a method, in the same accessors: ``inverse_dynamics(q, v, a, p)``, ``jacobian(q, p, place="hand")``,
    ``derivatives.inverse_dynamics(q, v, a, p)``. ``external``, ``external_rate``, ``fixed_in``, ``points``, ``share``,
    ``coordinates``, ``higher`` and ``out`` have the same meaning as in the robot's methods. For other options see
    ``Robot.function``. ``simulation.rollout`` and ``simulation.Environments`` take such robots too.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
        >>> arm.names, arm.values.tolist()
        (('links.0.mass',), [3.0])
        >>> arm.gravity_force([0.0], [[3.0], [6.0]]).round(9).tolist()
        [[29.43], [58.86]]
    """

    def __init__(self, robot: R, closure: LoopClosure, free: tuple[Free, ...]):
        self.robot, self._closure, self._free = robot, closure, free

    def __getstate__(self) -> dict[str, Any]:
        return {"robot": self.robot, "free": self._free}  # compiled functions belong to one process

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.robot, self._closure, self._free = state["robot"], state["robot"].closed.closure, state["free"]

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self.robot.name

    @property
    def loops(self) -> tuple[Closure, ...]:
        """The loops of the robot."""
        return self.robot.loops

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of p."""
        return tuple(parameter.name for parameter in self._free)

    @cached_property
    def paths(self) -> dict[str, str | dict[str, float]]:
        """The argument of ``Robot.parametric``: {name: path, or {path: coefficient}}."""
        return paths_of(self.robot, self._free)

    @property
    def values(self) -> Array:
        """Values (k,) of the parameters in the original robot."""
        return np.array([parameter.value for parameter in self._free])

    def __repr__(self) -> str:
        return f"<Parametric {self.robot.name!r}: {len(self._free)} parameters, nq={self.robot.nq}, nv={self.robot.nv}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_BELOW, *ON_ROBOT]

    def __getattr__(self, name: str) -> Any:
        if name in _BELOW:
            return ParametricAccessor(self, name)
        if name not in ON_ROBOT:
            members = "names, paths, values, at, function, operation_count, by_parameters, robot"
            allowed = f"{members}, {', '.join(_BELOW)}, and the robot's algorithms"
            raise AttributeError(f"Parametric has no {name!r}; allowed: {allowed}")
        return partial(self._evaluate, name)

    def _evaluate(
        self, name: str, *values: ArrayLike, coordinates: str = "active", out: Out = None, **options: Any
    ) -> Results:
        if one_of(coordinates, ("active", "all"), self.name, "coordinates") == "all":
            if name not in OF_ALL:
                raise ModelError(f'{name} is not available with coordinates="all"', where=self.name)
            name = OF_ALL[name]
        request, inputs = self._request(name, values, options, "value")
        if name + WITH_MARGIN in ALGORITHMS:
            numbers = Numbers(self._free, inputs[-1])
            return by_multipliers(self._closure, name, *inputs[:-1], numbers=numbers, out=out)
        check_inputs(self._closure, request, inputs)
        result: Results = self._closure.kernels.compiled(request)(*inputs, out=out)
        return result

    def _request(
        self, name: str, values: Sequence[ArrayLike], options: dict[str, Any], form: str
    ) -> tuple[Request, list[Any]]:
        """Return the request of a call and all its arrays; external loads come before p."""
        options = dict(options)
        higher = list(options.pop("higher", ()))
        if higher:
            options["order"] = 1 + len(higher)
        arrays = {item: options.pop(item, None) for item in ("external", "external_rate", "points")}
        keeps, loads = Loads(fixed_in=options.pop("fixed_in", "link"), **arrays).given(self.robot, name)
        by, kernels = ("p",) if form == "jacobian" else (), self._closure.kernels
        share, inputs = list[ArrayLike](), ALGORITHMS[name].inputs if name in ALGORITHMS else ()
        if "share" in inputs and ("share" in options or len(values) == len(inputs)):  # p takes the place of share
            weights, choice = weights_of(self._closure, options.pop("share", None), values[:-1])
            share, options = [weights], options | choice
        request = kernels.request(name, external=keeps, **options, free=self._free, form=form, by=by)
        given = [*values[:-1], *share, *higher, *loads, *values[-1:]]
        check_count(self.robot, name, "inputs", given, kernels.shapes(request).arguments)
        check_numbers(self.robot, self._free, given)
        return request, given

    def by_parameters(self, name: str, *values: ArrayLike, **options: Any) -> Results:
        """Return the derivative of the result of the algorithm ``name`` with respect to p, along a new last axis (k,).

        The arguments are the same as for the method, with p last. Methods with several results return a tuple.

        Example:
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> arm.by_parameters("gravity_force", [0.0], [3.0]).round(9).tolist()  # g times the arm of 1 m
            [[9.81]]
        """
        request, inputs = self._request(name, values, options, "jacobian")
        check_inputs(self._closure, request, inputs)
        result: Results = self._closure.kernels.compiled(request)(*inputs)
        return result

    def function(self, name: str, place: str | int | None = None, **options: Any) -> ca.Function:
        """Return the CasADi function of a method, with p as its last input; see ``Robot.function`` for the arguments.

        Example:
            >>> torsor.library.two_link().parametric(["gravity"]).function("gravity_force")
            Function(gravity_force:(q[2],p[3])->(gravity_force[2]) SXFunction)
        """
        return self._closure.kernels.traced(self._closure.kernels.request(name, place, **options, free=self._free))

    def operation_count(self, name: str, place: str | int | None = None, **options: Any) -> OperationCount:
        """Return the number of scalar operations of a method for one state and one p; see ``function`` for arguments.

        Example:
            >>> torsor.library.two_link().parametric(["links.link2.mass"]).operation_count("mass_matrix").trigonometric
            2
        """
        return count_operations(self.function(name, place, **options))

    def at(self, p: ArrayLike) -> R:
        """Return an ordinary robot, which can be saved and edited, with the parameters p (k,).

        Example:
            >>> torsor.library.two_link().parametric(["links.link2.mass"]).at([2.5]).links[1].mass
            2.5
        """
        numbers = frozen_array(p, (len(self._free),), self.robot.name, "p")
        changed: dict[Number, float] = {}
        for value, item in zip(numbers.tolist(), self._free, strict=True):
            for number, coefficient in item.coefficients:
                before = changed.get(number, read_number(self.robot, number))
                # A parameter with one path is set exactly, without rounding.
                alone = coefficient == 1 and item.value == before
                changed[number] = value if alone else before + coefficient * (value - item.value)
        return replace(self.robot, **with_numbers(self.robot, changed))


_BELOW = tuple(name for name in ACCESSORS if "." not in name)
_OF_INPUTS = ("jvp", "vjp", "sparse")  # methods of ``derivatives`` that take the name and all inputs of an algorithm


@dataclass(frozen=True, eq=False, repr=False)
class ParametricAccessor:
    """An accessor of a parametric robot: the methods of the robot's accessor, with p as the last argument.

    ``jvp``, ``vjp`` and ``sparse`` of ``derivatives`` have p as the last input, and its tangent or gradient last.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
        >>> arm.centroidal.inertia([0.0], [6.0])[3, 3].round(9).tolist()
        6.0
        >>> tau, change = arm.derivatives.jvp("gravity_force", ([0.0], [3.0]), (None, [1.0]))
        >>> tau, (dq, dp) = arm.derivatives.vjp("gravity_force", ([0.0], [3.0]), [1.0])
        >>> change.round(9).tolist(), dp.round(9).tolist()
        ([9.81], [9.81])
    """

    _parametric: Parametric[Any]
    _accessor: str

    def __dir__(self) -> list[str]:
        methods = _OF_INPUTS if self._accessor == "derivatives" else ()
        return [*super().__dir__(), *ACCESSORS[self._accessor], *methods]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle look these names up before the fields are set
            raise AttributeError(name)
        if self._accessor == "derivatives" and name in _OF_INPUTS:
            return getattr(Derivatives(self._parametric._closure, self._parametric._free), name)
        below = f"{self._accessor}.{name}"
        if below in ACCESSORS:
            return ParametricAccessor(self._parametric, below)
        if name not in ACCESSORS[self._accessor]:
            allowed = ", ".join(ACCESSORS[self._accessor])
            raise AttributeError(f"{self._accessor} of Parametric has no {name!r}; allowed: {allowed}")
        return partial(self._parametric._evaluate, ACCESSORS[self._accessor][name])
