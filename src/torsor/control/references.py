"""References of controllers: desired values as functions of time, with exact derivatives."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array
from torsor.base.errors import ModelError, describe
from torsor.compiler import AnyKernel, compile
from torsor.robot.robot import Robot

Law = Callable[[ca.SX], Any] | ArrayLike


@dataclass(frozen=True, eq=False)
class Reference:
    """Desired values over time: ``function`` is a ``casadi.Function`` t -> values."""

    function: ca.Function

    def rates(self, t: ca.SX, order: int) -> list[ca.SX]:
        """Return the values and their derivatives up to an order, as expressions of t.

        Example:
            >>> law = torsor.control.reference(torsor.library.planar_chain(1), lambda t: [t**2])
            >>> law.rates(ca.SX.sym("t"), 2)
            [SX(sq(t)), SX((2.*t)), SX(2)]
        """
        time = ca.SX.sym("t")
        values = [self.function(time)]
        for _ in range(order):
            values.append(ca.jtimes(values[-1], time, ca.SX(1)))
        found = ca.Function("rates", [time], values)(t)
        return [found] if order == 0 else list(found)

    @cached_property
    def _kernel(self) -> AnyKernel:
        t = ca.SX.sym("t")
        return compile(ca.Function("reference", [t], [ca.densify(each) for each in self.rates(t, 2)]))

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return (values, rates, second rates) at times t (...): for positions q_d, v_d, a_d, each (..., n)."""
        values: tuple[Array, Array, Array] = self._kernel(t)
        return values


def reference(robot: Robot, law: Law | Reference) -> Reference:
    """Return the reference of a robot's joints: desired positions over time.

    ``law`` is a function of a CasADi time t (s) that returns the desired positions of the joints in the order of q,
    without the motors of elastic joints (a list or SX, rad or m), or an array of constants. v_d, a_d and higher
    derivatives follow by differentiation with respect to t.

    Example:
        >>> law = reference(torsor.library.elastic_arm(), lambda t: [0.5 * ca.sin(2 * t), t, 0.1])
        >>> q_d, v_d, a_d = law(0.0)
        >>> v_d.tolist()
        [1.0, 1.0, 0.0]
    """
    if isinstance(law, Reference):
        law = law.function
    n = robot.nq - len(robot.elastic)
    return Reference(law_function(law, (n,), f"{robot.name}: reference"))


def law_function(law: Law, shape: tuple[int, ...], where: str) -> ca.Function:
    """Return a law of time, or constants, of the given shape as a CasADi function of t."""
    t = ca.SX.sym("t")
    rows, columns = (*shape, 1)[:2]
    if not callable(law):
        value = ca.SX(ca.DM(frozen_array(law, shape, where, "a constant law")))
        return ca.Function("law", [t], [value])
    try:
        value = _as_sx(law(t), where)
    except ModelError:
        raise
    except Exception as error:
        found = f"the law cannot be evaluated on symbols ({type(error).__name__}: {error})"
        fix = "use casadi's functions, and casadi.if_else in place of if"
        raise ModelError(describe(found, where=where, fix=fix)) from error
    if columns == 1 and value.shape == (1, rows):
        value = value.T
    if value.shape != (rows, columns):
        found = f"the law returns a matrix {value.shape[0]} x {value.shape[1]}"
        raise ModelError(describe(found, where=where, allowed=f"{rows} x {columns}"))
    foreign = [str(each) for each in ca.symvar(value) if not ca.is_equal(each, t)]
    if foreign:
        found = f"the law depends on the symbols {', '.join(foreign[:5])} besides the time"
        raise ModelError(describe(found, where=where, allowed="expressions of the t that it is called with"))
    return ca.Function("law", [t], [ca.densify(value)])


def _as_sx(value: Any, where: str) -> ca.SX:
    """Return the result of a law as SX; rows of a matrix may be lists."""
    try:
        if isinstance(value, Sequence | np.ndarray):
            rows = [ca.horzcat(*each) if isinstance(each, Sequence | np.ndarray) else each for each in value]
            return ca.SX(ca.vertcat(*rows))
        return ca.SX(value)
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        found = f"the law returns {reprlib.repr(value)}"
        raise ModelError(describe(found, where=where, allowed="numbers and expressions of the time")) from None
