"""The functions of an episode by named inputs: forces of an action, reward, end, observation and the next start."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, listing
from torsor.compiler import AnyKernel
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.mechanism.free import Free
from torsor.mechanism.mechanism import default_posture
from torsor.robot.robot import Robot
from torsor.simulation.contact import PARAMETERS, Contact, check_start
from torsor.simulation.dynamics import compiled
from torsor.simulation.fixed_step import closed_start, pulled_function
from torsor.simulation.inputs import Source, expanded
from torsor.simulation.setup import FASTEST, normalised

STATE = ("t", "q", "v", "action", "previous_action")
"""Inputs of the functions of an environment by name, in addition to data."""
CONTACT = tuple(dict.fromkeys(name for names in PARAMETERS.values() for name in names))
UNREAD_AT_ZERO = ("friction", "restitution")  # the step does not read these if they are 0, or friction is None
DRIVES, EXTERNAL, NUMBERS = ("kp", "kd", "reference"), "external", "p"
"""Data that the step reads."""
OWN = ("periods", "row", "fresh", "ended", "lost", "diverged", "observation", "reward", "terminated", "truncated")
"""Other inputs and results of the kernels."""
PULLED = ("q", "v", "action", "previous_action")
"""Inputs with gradients."""
_NAME = r"(?!bar_)[A-Za-z][A-Za-z0-9]*(_(?!next$|start$)[A-Za-z0-9]+)*"
# Episodes choose rows with a stride near the golden section, so that successive rows are far apart.
_GOLDEN = (math.sqrt(5) - 1) / 2
_MAX_ROWS = 2**23  # sums of two row numbers are exact in float32

Symbols = dict[str, ca.SX]


class Gradients(NamedTuple):
    """Gradients with respect to q (N, nq), v (N, nv) and action (N, n) before a step, and to its actions (N, n)."""

    q: Any
    v: Any
    previous_action: Any
    action: Any


class Outcome(NamedTuple):
    """The results of a step of N environments, on their device.

    ``observation`` (N, n) is that of the current state, which belongs to a new episode if the last one ended.
    ``final_observation`` (N, n) is that of the end of the step, with the same values in all other environments.
    ``reward`` (N,) is that of the step, and ``terminated`` (N,) and ``truncated`` (N,) state whether it was the last
    one of an episode. For ``vjp`` see ``Environments.step``.
    """

    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    final_observation: Any
    vjp: Callable[..., Gradients]


@dataclass(frozen=True, eq=False)
class Episodes:
    """The functions of an episode of ``periods`` actions that are ``period`` (s) apart.

    ``functions`` are "observation", "reward" and, if episodes can end early, "stop". ``drawn`` are the shapes of the
    values that a row contains, of which there are ``rows``, and ``shapes`` those of all inputs and results.
    """

    robot: Robot
    functions: Mapping[str, ca.Function]
    drawn: Mapping[str, Shape]
    shapes: Mapping[str, Shape]
    period: float
    periods: int
    rows: int

    @cached_property
    def outcome(self) -> AnyKernel:
        """The kernel of the end of a period: reward, terminated, truncated, ended, lost, and next values.

        A motion is lost if it has diverged; its state is then that at the start of the period.
        """

        def make() -> ca.Function:
            x = self._symbols("periods", "diverged", "q_start", "v_start", *STATE[1:], *self._read)
            moves = ca.logic_and(ca.sumsqr(x["q"]) < FASTEST**2, ca.sumsqr(x["v"]) < FASTEST**2)  # false for NaN
            ends = {name: ca.if_else(moves, x[name], x[f"{name}_start"]) for name in ("q", "v")}
            periods = x["periods"] + 1
            observation, reward, stop = self._values(x | ends | {"t": periods * self.period})
            lost = ca.logic_not(moves)
            terminated = ca.logic_or(lost, stop < 0)
            truncated = ca.logic_and(periods >= self.periods, ca.logic_not(terminated))
            flags = {"terminated": terminated, "truncated": truncated, "lost": lost}
            results = {"reward": reward, **flags, "ended": terminated + truncated, "observation_next": observation}
            results |= {"periods_next": periods, "diverged_next": x["diverged"] + lost}
            return _function(x, results | {f"{name}_next": value for name, value in ends.items()})

        return self._compiled("outcome", make)

    @cached_property
    def restart(self) -> AnyKernel:
        """The kernel that replaces the values of ``ended`` episodes by those of a ``fresh`` row."""

        def make() -> ca.Function:
            held = [name for name in self._read if name not in self.drawn]
            x = self._symbols("ended", "fresh", "row", "periods", "action", "observation", *self.drawn, *held)
            sizes = [math.prod(shape) for shape in self.drawn.values()]
            parts = ca.vertsplit(x["fresh"], [0, *np.cumsum(sizes).tolist()]) if sizes else []
            fresh = {name: matrix(part, shape) for (name, shape), part in zip(self.drawn.items(), parts, strict=True)}
            none = ca.SX.zeros(x["action"].shape)
            at_start = x | fresh | {"t": ca.SX(0), "action": none, "previous_action": none}
            fresh |= {"periods": ca.SX(0), "action": none, "observation": self._values(at_start)[0]}
            middle = max(1, round(_GOLDEN * self.rows))
            stride = next(k for k in range(middle, self.rows + 1) if math.gcd(k, self.rows) == 1)
            row = x["row"] + stride * x["ended"]
            results = {"row_next": ca.if_else(row >= self.rows, row - self.rows, row)}
            return _function(x, results | {f"{n}_next": ca.if_else(x["ended"], new, x[n]) for n, new in fresh.items()})

        return self._compiled("restart", make)

    @cached_property
    def pull(self) -> AnyKernel:
        """The kernel of gradients of the end of a period, with respect to ``PULLED``."""

        def make() -> ca.Function:
            x = self._symbols("periods", "ended", *STATE[1:], *self._read)
            observation, reward, _ = self._values(x | {"t": (x["periods"] + 1) * self.period})
            going = {"observation": observation} | {name: x[name] for name in ("q", "v", "action")}
            results = {"reward": reward, "final_observation": observation}
            results |= {f"{name}_next": ca.if_else(x["ended"], 0, value) for name, value in going.items()}
            return pulled_function(_function(x, results), PULLED)

        return self._compiled("pull", make)

    @cached_property
    def _read(self) -> list[str]:
        """The names of the data that the functions read."""
        return sorted({name for each in self.functions.values() for name in each.name_in()} - {*STATE})

    def _symbols(self, *names: str) -> Symbols:
        return {name: symbol(name, self.shapes[name]) for name in dict.fromkeys(names)}

    def _values(self, x: Symbols) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return observation, reward and stop for values by name; episodes that cannot end early have stop = 0."""
        found = {name: each(*(x[item] for item in each.name_in())) for name, each in self.functions.items()}
        return found["observation"], found["reward"], found.get("stop", ca.SX(0))

    def _compiled(self, name: str, make: Callable[[], ca.Function]) -> AnyKernel:
        about = [*self.functions], self.drawn, self.shapes, self.period, self.periods, self.rows
        shapes = dict(self.shapes) | {f"{each}_next": shape for each, shape in self.shapes.items()}
        return compiled(self.robot, f"episode {name} {about}", list(self.functions.values()), make, shapes=shapes)


def _function(inputs: Symbols, results: Symbols) -> ca.Function:
    values = [ca.densify(each) for each in results.values()]
    return ca.Function("episode", list(inputs.values()), ca.cse(values), list(inputs), list(results))


def symbol(name: str, shape: Shape) -> ca.SX:
    """Return a symbol for an array of a shape."""
    return ca.SX.sym(name, *shape)


def matrix(column: ca.SX, shape: Shape) -> ca.SX:
    """Return the entries of an array in row-major order (n x 1) as a matrix of its shape."""
    rows, columns = (*shape, 1, 1)[:2]
    return ca.reshape(column, columns, rows).T


def traced_by_name(
    robot: Robot, function: Any, what: str, shapes: Mapping[str, Shape], rows: int | None = None
) -> ca.Function:
    """Return a function of named inputs with these ``shapes`` as scalar operations, with one column as result."""
    where = robot.name
    if not isinstance(function, ca.Function):
        allowed = "a casadi.Function of named inputs"
        raise ModelError(argument=what, value=function, where=where, allowed=allowed)
    for name in function.name_in():
        if name not in shapes:
            fix = 'name the inputs: casadi.Function("name", [q, v], [result], ["q", "v"], ["result"])'
            found = f"{function.name()} has an input {name!r}"
            raise ModelError(found, argument=what, value=name, where=where, allowed=listing(shapes), fix=fix)
        size, wanted = function.size_in(name), symbol(name, shapes[name]).shape
        if size != wanted:
            found = f"{function.name()} has an input {name!r} of size {size}"
            raise ModelError(found, argument=what, where=where, allowed=f"{wanted}")
    sizes = [function.size_out(k) for k in range(function.n_out())]
    if len(sizes) != 1 or sizes[0][1] != 1 or sizes[0][0] != (rows or sizes[0][0]):
        allowed = "one vector" if rows is None else f"one result of size {(rows, 1)}"
        raise ModelError(f"{function.name()} returns {sizes}", argument=what, where=where, allowed=allowed)
    scalar = expanded(function, what, function.name_in())
    if scalar is None:
        text = f"{function.name()} cannot be expanded into scalar operations"
        raise ModelError(text, argument=what, where=where, fix="replace solvers, tables and external functions")
    return scalar


def law_of(robot: Robot, controller: Any, shapes: Mapping[str, Shape]) -> tuple[Source, dict[str, Shape], bool]:
    """Return the forces of an action, the shapes of the numbers that they read, and whether they depend on time.

    The numbers, of which the action is the first, are the ``gains`` of the source.
    """
    t, q, v, limit = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), None
    if hasattr(controller, "gains"):
        law, limit = controller.law, controller.limit
        read = {"action": shapes["reference"]} | {name: shapes[name] for name in DRIVES}
    else:
        size = (1, 1)
        if isinstance(controller, ca.Function) and "action" in controller.name_in():
            size = controller.size_in("action")
        law = traced_by_name(robot, controller, "controller", {**shapes, "action": size[:1]}, robot.nv)
        read = {name: {**shapes, "action": size[:1]}[name] for name in law.name_in() if name not in ("t", "q", "v")}
        if "action" not in read:
            found = f"{law.name()} has no input 'action'"
            raise ModelError(found, argument="controller", where=robot.name, allowed="a function of the action")
        read = {"action": read["action"]} | read
    sizes = [math.prod(shape) for shape in read.values()]
    gains = ca.SX.sym("gains", sum(sizes))
    parts = ca.vertsplit(gains, [0, *np.cumsum(sizes).tolist()])
    x = {name: matrix(part, shape) for (name, shape), part in zip(read.items(), parts, strict=True)}
    if hasattr(controller, "gains"):
        tau = law(t, q, v, ca.vertcat(x["kp"], x["kd"], x["reference"] + x["action"]))
    else:
        x |= {"t": t, "q": q, "v": v}
        tau = law(*(x[name] for name in law.name_in()))
    function = ca.Function("controller", [t, q, v, gains], [ca.densify(tau)], ["t", "q", "v", "gains"], ["controller"])
    return Source(function=function, parameters=np.zeros(sum(sizes)), limit=limit), read, "t" in law.name_in()


def defaults_of(
    robot: Robot, controller: Any, contact: Contact | None, method: str, free: tuple[Free, ...]
) -> dict[str, Array]:
    """Return the numbers that a step of ``method`` reads: those of drives (..., n), contact and ``free`` (k)."""
    numbers: dict[str, Array] = {}
    if hasattr(controller, "gains"):
        if controller.robot.coordinate_names != robot.coordinate_names:
            found = f"are drives of {controller.robot.name!r}, whose coordinates are different"
            raise ModelError(found, argument="controller", where=robot.name, fix="make drives for this robot")
        if controller.reference is not None:
            found, allowed = "are drives whose reference moves", "drives with a constant reference"
            raise ModelError(found, argument="controller", where=robot.name, allowed=allowed)
        numbers = dict(zip(DRIVES, np.split(controller.gains, len(DRIVES), axis=-1), strict=True))
    if contact is not None:
        numbers |= {name: np.array(value) for name, value in contact.parameters(method).items()}
    return numbers | ({NUMBERS: np.array([each.value for each in free])} if free else {})


def rows_of(
    robot: Robot, starts: Mapping[str, Any], defaults: Mapping[str, Array], contact: Contact | None
) -> tuple[dict[str, Array], ClosureChoice | None]:
    """Return the rows (rows, ...) of ``starts`` with q and v, and the equations that keep loops closed."""
    where, host = robot.name, robot.to(device="cpu", dtype="float64")
    if not isinstance(starts, Mapping):
        raise ModelError(argument="starts", value=starts, where=where, allowed="{name: array (rows, ...)}")
    known: dict[str, Shape] = {"q": (robot.nq,), "v": (robot.nv,), EXTERNAL: (len(robot.links), 6)}
    known |= {name: () if name in CONTACT else array.shape[-1:] for name, array in defaults.items()}
    found = {"q": default_posture(robot)[None], "v": np.zeros((1, robot.nv))}
    for name, given in starts.items():
        at = f"starts[{name!r}]"
        free = isinstance(name, str) and name not in (*STATE, *OWN) and bool(re.fullmatch(_NAME, name))
        if name not in known and (not free or name in (*CONTACT, *DRIVES, NUMBERS)):
            fix = "use drives, or contact of a kind that has this number" if free else "choose another name"
            fix = "robot.parametric(paths), or choose another name" if name == NUMBERS else fix
            raise ModelError(f"has {name!r}", value=name, argument="starts", where=where, fix=fix)
        array = real_array(given, where, at)
        core = known.get(name, array.shape[1:])
        if array.shape[1:] != core or not array.ndim or not len(array) or len(core) > 2 or not np.isfinite(array).all():
            allowed = f"finite numbers (rows{''.join(f', {n}' for n in core)})"
            raise ModelError(f"has shape {array.shape}", argument=at, where=where, allowed=allowed)
        found[name] = array
    for name in UNREAD_AT_ZERO:
        if contact is not None and name in starts and not getattr(contact, name):
            text = "0" if getattr(contact, name) == 0 else "the one of each shape"
            text, fix = f"has {name}, but that of contact is {text}", f"give `Contact({name}=...)` above 0"
            raise ModelError(text, argument="starts", value=name, where=where, fix=fix)
    lengths = {name: len(array) for name, array in found.items()}
    count = max(lengths.values())
    if set(lengths.values()) - {1, count} or count > _MAX_ROWS:
        allowed = f"the same number of rows (at most {_MAX_ROWS}), or 1"
        raise ModelError(f"has rows {lengths}", argument="starts", where=where, allowed=allowed)
    q, v, choice = closed_start(host, found["q"], found["v"])
    found |= {"q": normalised(host, np.asarray(q, dtype=float)), "v": np.asarray(v, dtype=float)}
    if contact is not None:
        check_start(host, contact, found["q"], None)
    return {name: np.broadcast_to(array, (count, *array.shape[1:])) for name, array in found.items()}, choice
