"""Sources of forces and wrenches: zero, a constant array, a Python function, or a traced CasADi function."""

import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.base.checks import arrays
from torsor.base.errors import ModelError, SimulationError, describe
from torsor.robot.robot import Robot

Law = Callable[[float, Array, Array], Array]


class Source(NamedTuple):
    """The forces of a controller, or the wrenches of the environment: at most one of array, call and function.

    ``added`` is a function of (t, q, v) whose forces act as well: those of contact, or of stops. ``limit`` are the
    largest forces (nv,) that the controller's drives give.
    """

    array: Array | None = None
    call: Law | None = None
    function: ca.Function | None = None
    added: ca.Function | None = None
    limit: Array | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing is given but what is added."""
        return self.array is None and self.call is None and self.function is None

    @classmethod
    def of(cls, robot: Robot, given: Any, what: str, core: Shape) -> "Source":
        """Return the source for an argument of ``simulate``; ``core`` is the shape of its value for one rollout."""
        if given is None:
            return cls()
        function = casadi_function(given)
        active = _active(robot) if what == "controller" else []
        if function is not None:
            size = (core[0], core[1] if len(core) > 1 else 1)
            if active and function.n_out() == 1 and function.size_out(0) == (len(active), 1):
                function = _expand_function(robot, function, active)
            return cls(function=traced(robot, function, what, size))
        if callable(given):
            return cls(call=_checked(given, robot, what, core, active))
        if active and np.shape(given)[-1:] == (len(active),):
            return cls(array=_expand(arrays(given, (len(active),), robot.name, what), core[0], active))
        if active and np.shape(given)[-1:] != core:
            allowed = f"(..., {core[0]}), or (..., {len(active)}) of the active coordinates"
            raise ModelError(describe(f"{what} has shape {np.shape(given)}", where=robot.name, allowed=allowed))
        return cls(array=arrays(given, core, robot.name, what))


def _active(robot: Robot) -> list[int]:
    """Return the indices of the active coordinates of a robot with loops; none if all coordinates are active."""
    active = [robot.coordinate_names.index(name) for name in robot.active] if robot.loops else []
    if len(active) == robot.nv and active != sorted(active):
        text = "all coordinates are active, but in another order: the order of the forces is ambiguous"
        fix = "robot.with_active(robot.coordinate_names)"
        raise ModelError(describe(text, where=robot.name, fix=fix))
    return active if len(active) < robot.nv else []


def _expand(forces: Array, count: int, places: list[int]) -> Array:
    """Return forces on all coordinates (..., count) from those on the coordinates at ``places``; zero elsewhere."""
    whole = np.zeros((*forces.shape[:-1], count))
    whole[..., places] = forces
    return whole


def _expand_function(robot: Robot, function: ca.Function, places: list[int]) -> ca.Function:
    """Return a CasADi function of the forces on all coordinates, from one of those at ``places``."""
    inputs = [ca.MX.sym(f"i{k}", *function.size_in(k)) for k in range(function.n_in())]
    whole = ca.DM.eye(robot.nv)[:, places] @ function.call(inputs)[0]
    return ca.Function(function.name(), inputs, [whole])


def casadi_function(given: Any) -> ca.Function | None:
    """Return a CasADi function, or that in the attribute ``function`` of an object; None for anything else."""
    found = given if isinstance(given, ca.Function) else getattr(given, "function", None)
    return found if isinstance(found, ca.Function) else None


def traced(robot: Robot, function: ca.Function, what: str, size: tuple[int, int]) -> ca.Function:
    """Return a CasADi function of (t, q, v) as one of scalar operations; raise ModelError for other sizes."""
    inputs = [function.size_in(k) for k in range(function.n_in())]
    outputs = [function.size_out(k) for k in range(function.n_out())]
    wanted = [(1, 1), (robot.nq, 1), (robot.nv, 1)]
    if inputs != wanted or outputs != [size]:
        found = f"{what} {function.name()} takes {inputs} and gives {outputs}"
        allowed = f"(t, q, v) of sizes {wanted} -> one of size {size}"
        raise ModelError(describe(found, where=robot.name, allowed=allowed))
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    try:
        scalar = function if function.is_a("SXFunction") else function.expand()
        value = ca.Function(what, [t, q, v], [ca.densify(scalar(t, q, v))], ["t", "q", "v"], [what])
    except RuntimeError:
        value = None
    # Solvers, interpolation tables and external functions remain calls, which the compiler cannot translate.
    if value is None or any(value.instruction_id(k) == ca.OP_CALL for k in range(value.n_instructions())):
        found = f"{what} {function.name()} cannot be expanded into scalar operations"
        raise ModelError(describe(found, where=robot.name, fix="give a Python function that calls it"))
    return value


def _checked(call: Callable[..., Any], robot: Robot, what: str, core: Shape, active: list[int]) -> Law:
    """Return a Python function whose result is checked at each call: a wrong shape must not broadcast by accident."""

    def law(t: float, q: Array, v: Array) -> Array:
        # Read-only views: a function that writes to the state would change the motion without notice.
        q, v = q.view(), v.view()
        q.flags.writeable = v.flags.writeable = False
        given = call(t, q, v)
        try:
            result = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            found = f"{what} gave {reprlib.repr(given)} at t = {t:.6g} s"
            raise ModelError(describe(found, where=robot.name, allowed=f"numbers of shape {core}")) from None
        batch = v.shape[:-1]
        if active and result.shape in ((*batch, len(active)), (len(active),)):
            result = _expand(result, core[0], active)
        if result.shape != (*batch, *core) and result.shape != core:
            found = f"{what} gave an array of shape {result.shape} at t = {t:.6g} s"
            allowed = f"{(*batch, *core)}, or {core} for all"
            allowed += f", or {(*batch, len(active))} of the active coordinates" if active else ""
            raise ModelError(describe(found, where=robot.name, allowed=allowed))
        if not np.isfinite(result).all():
            raise SimulationError(
                describe(f"{what} gave numbers that are not finite at t = {t:.6g} s", where=robot.name)
            )
        return result

    return law


def words(given: Any, what: str, constant: str) -> str:
    """Return in words what was given as a controller or as wrenches: what it is, not what it computes.

    Example:
        >>> words(None, "controller", "force"), words([1.0], "controller", "force")
        ('no controller', 'constant force')
        >>> words(torsor.control.gravity_compensation(torsor.library.two_link()), "controller", "force")
        'controller gravity_compensation'
    """
    if given is None:
        return f"no {what}"
    function = casadi_function(given)
    if function is not None:
        return f"{what} {function.name()}"
    return f"{what} {getattr(given, '__name__', type(given).__name__)}" if callable(given) else f"constant {constant}"
