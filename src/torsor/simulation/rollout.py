"""Many motions in fixed steps whose states stay where they are computed: on a card, no number leaves it."""

import math
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import one_of, positive, whole_number
from torsor.base.errors import ModelError, describe
from torsor.dynamics.requests.forms import pulled
from torsor.robot.robot import Robot
from torsor.simulation.compliant import added_contact
from torsor.simulation.contact import Contact
from torsor.simulation.contact_start import check_start
from torsor.simulation.dynamics import compiled, forces, symbols
from torsor.simulation.hard import contact_step
from torsor.simulation.methods import STEPS
from torsor.simulation.rollouts import Rollout
from torsor.simulation.setup import WHOLE
from torsor.simulation.sources import Source, casadi_function, traced, words


def rollout(
    robot: Robot,
    q0: Any,
    v0: Any,
    duration: float,
    *,
    controller: Any = None,
    external: Any = None,
    stop: ca.Function | None = None,
    contact: Contact | None = None,
    method: str = "rk4",
    step: float = 1e-3,
    record: int = 1,
) -> Rollout:
    """Return motions in fixed steps, from ``q0`` (..., nq) and ``v0`` (..., nv), which broadcast.

    Unlike ``simulate`` it neither checks nor copies what it computes: on a card (``robot.to(device="cuda")``) all
    states stay there, and no step waits for the one before. ``controller`` gives the generalised forces (nv) and
    ``external`` the wrenches (L, 6): a constant array (..., nv) or (..., L, 6), or a ``casadi.Function`` of (t, q, v),
    which is compiled into the step. ``contact`` is that of ``simulate``; gradients go through it. Shapes that overlap
    at the start are an error, but not on a card. ``stop`` is a ``casadi.Function`` of (t, q, v) with one number: a
    rollout stays where it is once that number is negative. ``method`` is "rk4", "implicit" or "sdirk" as in
    ``simulate``; steps are no longer than ``step`` (s). Every ``record``-th state is returned, and the last one. Robots
    with loops are refused.

    Example:
        >>> arm = torsor.library.two_link()
        >>> run = rollout(arm, np.zeros((100, 2)), np.ones(2), 0.1, record=50)
        >>> run.q.shape, run.times.round(3).tolist()
        ((100, 3, 2), [0.0, 0.05, 0.1])
    """
    where = robot.name
    if robot.loops:
        raise ModelError(describe("a rollout with closed loops", where=where, fix="torsor.simulate closes them"))
    one_of(method, tuple(STEPS), where, "method")
    duration, step = positive(duration, where, "duration"), positive(step, where, "step")
    record = whole_number(record, where, "record")
    law, tau = _source(robot, controller, "controller", (robot.nv,))
    wrenches, loads = _source(robot, external, "external", (len(robot.links), 6))
    halt = None if stop is None else traced(robot, stop, "stop", (1, 1))
    wrenches = wrenches._replace(added=added_contact(robot, contact))
    acting = [each for each in (law.function, wrenches.function, wrenches.added, halt) if each is not None]
    given = (tau, loads, law.function, wrenches.function, wrenches.added, halt)
    label = f"rollout {method} {[each is not None for each in given]}"

    if contact is not None and contact.kind == "hard":
        label += f" hard {contact.key(robot)}"

    def make() -> ca.Function:
        function = contact_step(robot, method, forces(robot, law, wrenches, False), contact)
        return function if halt is None else _halting(function, halt)

    kernel = compiled(robot, label, acting, make)
    xp, dtype = getattr(kernel, "xp", np), robot.target.dtype
    count = max(1, math.ceil(duration / step - WHOLE))
    instants = np.arange(count + 1) * (duration / count)
    t, h = xp.asarray(instants.astype(dtype)), xp.asarray(np.array(duration / count, dtype))
    held = [xp.asarray(each, dtype) for each in (tau, loads) if each is not None]
    q, v = xp.asarray(q0, dtype), xp.asarray(v0, dtype)
    for name, array, size in (("q0", q, robot.nq), ("v0", v, robot.nv)):
        if array.shape[-1:] != (size,):
            raise ModelError(describe(f"{name} has shape {array.shape}", where=where, allowed=f"(..., {size})"))
    if contact is not None and xp is np:
        check_start(robot, contact, np.asarray(q, dtype=float), None)
    cores = [1, 1, *([1] if tau is not None else []), *([2] if loads is not None else [])]
    batch = np.broadcast_shapes(*(each.shape[:-core] for each, core in zip((q, v, *held), cores, strict=True)))
    samples = [k for k in range(count + 1) if k % record == 0 or k == count]
    states = [xp.empty((len(samples), *batch, size), dtype) for size in (robot.nq, robot.nv)]
    for whole, start in zip(states, (q, v), strict=True):
        whole[0] = start
    spare = [[xp.empty_like(whole[0]) for whole in states] for _ in range(2)]
    here, at = [whole[0] for whole in states], {k: j for j, k in enumerate(samples)}
    for k in range(count):
        there = [whole[at[k + 1]] for whole in states] if k + 1 in at else spare[k % 2]
        kernel(t[k], *here, *held, h, out=tuple(there))
        here = there

    def pull(q_bar: Any, v_bar: Any) -> tuple[Any, ...]:
        if record != 1:
            raise ModelError(describe(f"gradients of a rollout with record={record}", where=where, allowed="record=1"))
        back = compiled(robot, f"{label} pull", acting, lambda: _pulled(make()))
        given = [_bars(xp, each, whole) for each, whole in zip((q_bar, v_bar), states, strict=True)]
        bars = [each[-1] for each in given]
        total = [
            xp.zeros((*batch, *each.shape[each.ndim - core :]), dtype)
            for each, core in zip(held, cores[2:], strict=True)
        ]
        for k in reversed(range(count)):
            _, *found, _ = back(t[k], *(whole[k] for whole in states), *held, h, *bars)
            bars = [each + bar[k] for each, bar in zip(found[:2], given, strict=True)]
            total = [each + more for each, more in zip(total, found[2:], strict=True)]
        return (*bars, *total)

    times: Array = np.array(instants[samples], dtype=float)
    q, v = (xp.moveaxis(whole, 0, -2) for whole in states)
    settings = {"method": method, "step": step, "duration": duration, "record": record}
    settings["controller"] = words(controller, "controller", "force")
    settings["external"] = words(external, "wrenches", "wrenches")
    return Rollout(times, q, v, pull, robot, settings)


def _source(robot: Robot, given: Any, what: str, core: tuple[int, ...]) -> tuple[Source, Any]:
    """Return a source, and the array if it is one; the source of an array holds its place only."""
    if given is None:
        return Source(), None
    function = casadi_function(given)
    if function is not None:
        return Source.of(robot, function, what, core), None
    if callable(given):
        allowed, fix = "an array, or a casadi.Function of (t, q, v)", "torsor.simulate calls functions of Python"
        raise ModelError(describe(f"{what} is a Python function", where=robot.name, allowed=allowed, fix=fix))
    array = given if hasattr(given, "shape") else np.asarray(given, dtype=float)
    if tuple(array.shape[array.ndim - len(core) :]) != core:
        allowed = f"(..., {', '.join(map(str, core))})"
        raise ModelError(describe(f"{what} has shape {tuple(array.shape)}", where=robot.name, allowed=allowed))
    return Source(array=np.zeros(core)), array


def _halting(step: ca.Function, halt: ca.Function) -> ca.Function:
    """Return a step that leaves states as they are where ``halt`` of (t, q, v) is negative."""
    inputs = symbols(step)
    going = halt(*inputs[:3]) >= 0
    ends = [ca.if_else(going, end, start) for end, start in zip(step.call(inputs), inputs[1:3], strict=True)]
    return ca.Function(step.name(), inputs, ends, step.name_in(), step.name_out())


def _pulled(step: ca.Function) -> ca.Function:
    """Return the gradients of a step by all its inputs, from those by its results."""
    inputs = dict(zip(step.name_in(), symbols(step), strict=True))
    results = dict(zip(step.name_out(), step.call(list(inputs.values())), strict=True))
    weights, gradients = pulled(inputs, results, {})
    names = [*inputs, *weights]
    return ca.Function(
        "pull", [*inputs.values(), *weights.values()], ca.cse(list(gradients.values())), names, list(gradients)
    )


def _bars(xp: Any, given: Any, states: Any) -> Any:
    """Return derivatives of a cost by the samples, sample by sample; zero where none are given."""
    return xp.zeros_like(states) if given is None else xp.moveaxis(xp.asarray(given, states.dtype), -2, 0)
