"""Where forces and wrenches come from: nothing, an array that holds, a Python function, or a traced CasADi function."""

import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot
from torsor.simulation.trajectory import SimulationError

__all__ = ["Ask", "Source", "casadi_function", "real_array", "traced"]

Array = NDArray[np.float64]
Shape = tuple[int, ...]
Ask = Callable[[float, Array, Array], Array]


class Source(NamedTuple):
    """A controller, or the environment. At most one of the three is there; none of them gives zeros."""

    array: Array | None = None
    call: Ask | None = None
    function: ca.Function | None = None

    @property
    def is_zero(self) -> bool:
        """Whether there is none of the three."""
        return self.array is None and self.call is None and self.function is None

    @classmethod
    def of(cls, robot: Robot, given: Any, what: str, core: Shape) -> "Source":
        """Return the source behind what a user gives; ``core`` is the shape of its value for one rollout."""
        if given is None:
            return cls()
        function = casadi_function(given)
        few = _active(robot) if what == "controller" else []
        if function is not None:
            size = (core[0], core[1] if len(core) > 1 else 1)
            if few and function.n_out() == 1 and function.size_out(0) == (len(few), 1):
                function = _spread_function(robot, function, few)
            return cls(function=traced(robot, function, what, size))
        if callable(given):
            return cls(call=_checked(given, robot, what, core, few))
        if few and np.shape(given)[-1:] == (len(few),):
            return cls(array=_spread(real_array(given, what, (len(few),)), core[0], few))
        if few and np.shape(given)[-1:] != core:
            allowed = f"(..., {core[0]}), or (..., {len(few)}) of the active coordinates"
            raise ModelError(describe(f"{what} has shape {np.shape(given)}", where=robot.name, allowed=allowed))
        return cls(array=real_array(given, what, core))


def _active(robot: Robot) -> list[int]:
    """Return where the active coordinates are, if a robot with loops has fewer of them than coordinates."""
    few = [robot.coordinate_names.index(name) for name in robot.active] if robot.loops else []
    if len(few) == robot.nv and few != sorted(few):
        text = "all coordinates are active, in an order of their own: which one forces are in is not clear"
        fix = "robot.with_active(robot.coordinate_names)"
        raise ModelError(describe(text, where=robot.name, fix=fix))
    return few if len(few) < robot.nv else []


def _spread(forces: Array, count: int, places: list[int]) -> Array:
    """Return forces on all coordinates (..., count), from those on some."""
    whole = np.zeros((*forces.shape[:-1], count))
    whole[..., places] = forces
    return whole


def _spread_function(robot: Robot, function: ca.Function, places: list[int]) -> ca.Function:
    """Return a function that gives forces on all coordinates, from one that gives those on some."""
    inputs = [ca.MX.sym(f"i{k}", *function.size_in(k)) for k in range(function.n_in())]
    whole = ca.DM.eye(robot.nv)[:, places] @ function.call(inputs)[0]
    return ca.Function(function.name(), inputs, [whole])


def casadi_function(given: Any) -> ca.Function | None:
    """Return a CasADi function, or the one that an object has as its attribute ``function``."""
    found = given if isinstance(given, ca.Function) else getattr(given, "function", None)
    return found if isinstance(found, ca.Function) else None


def traced(robot: Robot, function: ca.Function, what: str, size: tuple[int, int]) -> ca.Function:
    """Return a CasADi function of (t, q, v) over scalar symbols, or raise an error that says what does not fit."""
    inputs = [function.size_in(k) for k in range(function.n_in())]
    outputs = [function.size_out(k) for k in range(function.n_out())]
    wanted = [(1, 1), (robot.nq, 1), (robot.nv, 1)]
    if inputs != wanted or outputs != [size]:
        found = f"{what} {function.name()} takes {inputs} and gives {outputs}"
        raise ModelError(
            describe(found, where=robot.name, allowed=f"(t, q, v) of sizes {wanted} -> one of size {size}")
        )
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    try:
        scalar = function if function.is_a("SXFunction") else function.expand()
        value = ca.Function(what, [t, q, v], [ca.densify(scalar(t, q, v))], ["t", "q", "v"], [what])
    except RuntimeError:
        value = None
    # Solvers, tables and functions from outside remain as calls, which no machine code is made of.
    if value is None or any(value.instruction_id(k) == ca.OP_CALL for k in range(value.n_instructions())):
        found = f"{what} {function.name()} cannot be written in scalar operations alone"
        raise ModelError(describe(found, where=robot.name, fix="give a Python function that calls it"))
    return value


def real_array(value: ArrayLike, what: str, core: Shape) -> Array:
    """Return finite numbers (..., *core), or raise an error that says what is wrong with them."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        given = np.asarray(None)
    if given.dtype.kind not in "biuf":
        raise ModelError(describe(f"{what} is {reprlib.repr(value)}", allowed="an array of real numbers"))
    if given.shape[max(0, given.ndim - len(core)) :] != core:
        allowed = f"(..., {', '.join(map(str, core))})"
        raise ModelError(describe(f"{what} has shape {given.shape}", allowed=allowed))
    array = given.astype(float)
    if not np.isfinite(array).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(describe(f"{what}{list(at)} is {array[at]}", allowed="finite numbers"))
    return array


def _checked(call: Callable[..., Any], robot: Robot, what: str, core: Shape, few: list[int]) -> Ask:
    """Return a Python function whose result is checked each time: a wrong shape must not broadcast by accident."""

    def ask(t: float, q: Array, v: Array) -> Array:
        # The state is the simulation's own: a function that writes to it would change the motion unseen.
        q, v = q.view(), v.view()
        q.flags.writeable = v.flags.writeable = False
        given = call(t, q, v)
        try:
            result = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            found = f"{what} gave {reprlib.repr(given)} at t = {t:.6g} s"
            raise ModelError(describe(found, where=robot.name, allowed=f"numbers of shape {core}")) from None
        batch = v.shape[:-1]
        if few and result.shape in ((*batch, len(few)), (len(few),)):
            result = _spread(result, core[0], few)
        if result.shape != (*batch, *core) and result.shape != core:
            found = f"{what} gave an array of shape {result.shape} at t = {t:.6g} s"
            allowed = f"{(*batch, *core)}, or {core} for all"
            allowed += f", or {(*batch, len(few))} of the active coordinates" if few else ""
            raise ModelError(describe(found, where=robot.name, allowed=allowed))
        if not np.isfinite(result).all():
            raise SimulationError(
                describe(f"{what} gave numbers that are not finite at t = {t:.6g} s", where=robot.name)
            )
        return result

    return ask
