"""Parametric robots: masses, centres of mass, inertias, lengths, gravity or friction as inputs of every algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array
from torsor.base.errors import ModelError, listing
from torsor.compiler import OperationCount, count_operations
from torsor.dynamics import ALGORITHMS, Request
from torsor.dynamics.algorithms import WITH_MARGIN
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free, Number, Numbers, paths_of, read_number, with_numbers
from torsor.mechanism.loops import Closure
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.constrained import weights_of
from torsor.robot.closed_loops.inputs import check_inputs
from torsor.robot.closed_loops.multipliers import by_multipliers
from torsor.robot.derivatives import Loads, Sparse, check_count, jvp, sparse, vjp
from torsor.robot.export import export_c, export_cpp, export_js
from torsor.robot.kernels import Out

R = TypeVar("R", bound=Mechanism)


class Parametric(Generic[R]):
    """A robot whose methods take some of its numbers, p (..., k), as their last argument. See ``Robot.parametric``.

    ``names`` are those of the numbers, ``values`` (k,) their values for the robot itself. Every algorithm of a robot is
    a method: ``inverse_dynamics(q, v, a, p)``, ``jacobian(q, p, place="hand")``, with ``external``, ``external_rate``,
    ``fixed_in``, ``points``, ``share``, ``higher`` and ``out`` as there, and ``place``, ``forced`` and ``order`` as in
    ``Robot.function``.

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
        self.robot, self._closure, self._free = state["robot"], state["robot"].closure, state["free"]

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self.robot.name

    @property
    def loops(self) -> tuple[Closure, ...]:
        """The loops of the robot."""
        return self.robot.loops

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of p."""
        return tuple(each.name for each in self._free)

    @property
    def paths(self) -> dict[str, str | dict[str, float]]:
        """The argument of ``Robot.parametric``: {name: path, or {path: coefficient}}."""
        return paths_of(self.robot, self._free)

    @property
    def values(self) -> Array:
        """The values (k,) of the numbers in the original robot."""
        return np.array([each.value for each in self._free])

    def __repr__(self) -> str:
        return f"<Parametric {self.robot.name!r}: {len(self._free)} numbers, nq={self.robot.nq}, nv={self.robot.nv}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *ALGORITHMS]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ALGORITHMS:
            own = "names, paths, values, at, function, operation_count, derivatives, jvp, vjp, robot"
            allowed = f"{own}, export_c, export_cpp, export_js, and the robot's algorithms"
            raise AttributeError(f"Parametric has no {name!r}; allowed: {allowed}")

        def method(*values: ArrayLike, out: Out = None, **options: Any) -> Any:
            request, given = self._request(name, values, options, "value")
            if name + WITH_MARGIN in ALGORITHMS:
                numbers = Numbers(self._free, given[-1])
                return by_multipliers(self._closure, name, *given[:-1], numbers=numbers, out=out)
            check_inputs(self._closure, request, given)
            return self._closure.kernels.compiled(request)(*given, out=out)

        method.__name__ = name
        return method

    def _request(
        self, name: str, values: Sequence[ArrayLike], options: dict[str, Any], form: str
    ) -> tuple[Request, list[Any]]:
        """Return the request of a call and all its arrays, loads before p."""
        options = dict(options)
        higher = list(options.pop("higher", ()))
        if higher:
            options["order"] = 1 + len(higher)
        arrays = {each: options.pop(each, None) for each in ("external", "external_rate", "points")}
        keeps, loads = Loads(fixed_in=options.pop("fixed_in", "link"), **arrays).given(self.robot, name)
        by, kernels = ("p",) if form == "jacobian" else (), self._closure.kernels
        share, inputs = list[ArrayLike](), ALGORITHMS[name].inputs if name in ALGORITHMS else ()
        if "share" in inputs and ("share" in options or len(values) == len(inputs)):  # p stands in the place of share
            weights, choice = weights_of(self._closure, options.pop("share", None), values[:-1])
            share, options = [weights], options | choice
        request = kernels.request(name, external=keeps, **options, free=self._free, form=form, by=by)
        given = [*values[:-1], *share, *higher, *loads, *values[-1:]]
        check_count(self.robot, name, "inputs", given, kernels.shapes(request).arguments)
        self._check_inputs(given)
        return request, given

    def _check_inputs(self, inputs: Sequence[ArrayLike]) -> None:
        """Raise ModelError if p, the last input, has not one number for each of the names."""
        count, shape = len(self._free), np.shape(inputs[-1]) if isinstance(inputs, Sequence) and inputs else (0,)
        if shape[-1:] != (count,):
            allowed = f"(..., {count}), one for each of {listing(self.names, most=4)}"
            raise ModelError(f"p has shape {shape}", where=self.robot.name, allowed=allowed)

    def derivatives(self, name: str, *values: ArrayLike, **options: Any) -> Any:
        """Return the derivative by p of the method ``name``: the shape of its result with a last axis (k) for p.

        Arguments are those of the method, p the last. Methods with several results give a tuple.

        Example:
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> arm.derivatives("gravity_force", [0.0], [3.0]).round(9).tolist()  # g times 1 m
            [[9.81]]
        """
        request, given = self._request(name, values, options, "jacobian")
        check_inputs(self._closure, request, given)
        return self._closure.kernels.compiled(request)(*given)

    def jvp(self, name: str, inputs: Sequence[ArrayLike], tangents: Sequence[Any], **options: Any) -> Any:
        """Return (value, derivative along the tangents) as ``Robot.jvp``, with p as last input and its tangent last.

        Example:
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> tau, change = arm.jvp("gravity_force", ([0.0], [3.0]), (None, [1.0]))
            >>> change.round(9).tolist()
            [9.81]
        """
        self._check_inputs(inputs)
        components, out = options.pop("components", False), options.pop("out", None)
        return jvp(self._closure, name, inputs, tangents, components, options | {"free": self._free}, out)

    def vjp(self, name: str, inputs: Sequence[ArrayLike], cotangents: Any, **options: Any) -> Any:
        """Return (value, gradients) as ``Robot.vjp``, with p as the last input and its gradient last.

        Example:
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> tau, (dq, dp) = arm.vjp("gravity_force", ([0.0], [3.0]), [1.0])
            >>> dp.round(9).tolist()
            [9.81]
        """
        self._check_inputs(inputs)
        components, out = options.pop("components", False), options.pop("out", None)
        return vjp(self._closure, name, inputs, cotangents, components, options | {"free": self._free}, out)

    def sparse(self, name: str, *inputs: ArrayLike, **options: Any) -> Sparse | tuple[Sparse, ...]:
        """Return the result of a method without its structural zeros, as ``Robot.sparse``, with p as the last input.

        Example:
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> arm.sparse("mass_matrix", [0.0], [6.0]).values.round(9).tolist()  # m l^2 / 12 stays as it was: 1
            [7.0]
        """
        self._check_inputs(inputs)
        return sparse(self._closure, name, inputs, options | {"free": self._free})

    def function(self, name: str, place: str | int | None = None, **options: Any) -> ca.Function:
        """Return the CasADi function behind a method, p being its last input; arguments as in ``Robot.function``.

        Example:
            >>> torsor.library.two_link().parametric(["gravity"]).function("gravity_force")
            Function(gravity_force:(q[2],p[3])->(gravity_force[2]) SXFunction)
        """
        return self._closure.kernels.traced(self._closure.kernels.request(name, place, **options, free=self._free))

    def operation_count(self, name: str, place: str | int | None = None, **options: Any) -> OperationCount:
        """Return the scalar operations that a method takes for one state and one p; arguments as in ``function``.

        Example:
            >>> torsor.library.two_link().parametric(["links.link2.mass"]).operation_count("mass_matrix").trigonometric
            2
        """
        return count_operations(self.function(name, place, **options))

    def export_c(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as C99 into a folder, as ``Robot.export_c``; p is the last input of each C function.

        The header has the names of the numbers in the order of p, and their values for the robot itself.

        Example:
            >>> import tempfile
            >>> arm = torsor.library.two_link().parametric(["links.link2.mass"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     header, *_ = arm.export_c(folder, ["mass_matrix"])
            ...     [line for line in header.read_text().splitlines() if "mass_matrix(" in line]
            ['void mass_matrix(const double q[2], const double p[1], double out[4]);']
        """
        return export_c(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def export_cpp(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as C99 with a header of C++17, as ``Robot.export_cpp``; p is the last input of a function.

        Example:
            >>> import tempfile
            >>> arm = torsor.library.two_link().parametric(["links.link2.mass"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in arm.export_cpp(folder, ["mass_matrix"], name="arm")]
            ['arm.hpp', 'arm.h', 'arm.c', 'CMakeLists.txt']
        """
        return export_cpp(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def export_js(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as an ES module into a folder, as ``Robot.export_js``; p is the last input of each function.

        The constant ``robot`` has the names of the numbers and their values.

        Example:
            >>> import tempfile
            >>> arm = torsor.library.two_link().parametric(["links.link2.mass"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in arm.export_js(folder, ["mass_matrix"], name="arm")]
            ['arm.js', 'arm.d.ts', 'package.json']
        """
        return export_js(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def at(self, p: ArrayLike) -> R:
        """Return an ordinary robot with the numbers p (k,), which can be saved and edited.

        Example:
            >>> torsor.library.two_link().parametric(["links.link2.mass"]).at([2.5]).links[1].mass
            2.5
        """
        numbers = frozen_array(p, (len(self._free),), self.robot.name, "p")
        changed: dict[Number, float] = {}
        for value, each in zip(numbers.tolist(), self._free, strict=True):
            for number, coefficient in each.coefficients:
                before = changed.get(number, read_number(self.robot, number))
                # A number with one path becomes its value exactly, without rounding.
                alone = coefficient == 1 and each.value == before
                changed[number] = value if alone else before + coefficient * (value - each.value)
        return replace(self.robot, **with_numbers(self.robot, changed))
