"""Closed-loop algorithms with checked inputs, in the active coordinates or (by multipliers) in all coordinates.

The set of independent closure equations may differ between states. Multipliers are first computed with one choice of
equations for the whole batch. States where that choice nearly loses rank are then recomputed with a better choice.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import vectors
from torsor.base.errors import ModelError
from torsor.compiler.kernel import check_result_array
from torsor.dynamics import ALGORITHMS
from torsor.dynamics.algorithms import WITH_MARGIN
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.mechanism.free import OWN, Numbers
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.inputs import (
    SINGULAR_MARGIN,
    check_agreement,
    check_inputs,
    check_margin,
    check_velocities,
    weights_of,
)
from torsor.robot.derivatives import Loads, Three
from torsor.robot.kernels import Out, Values

# Below this margin another choice of equations is tried; below SINGULAR_MARGIN the equations are dependent.
MIN_MARGIN = 0.02
MAX_CHOICES = 8  # maximum number of choices per call
NO_LOADS = Loads()


def constrained(
    closure: LoopClosure, name: str, values: Values, share: Maybe = None, loads: Loads = NO_LOADS, out: Out = None
) -> Array:
    """Return the result of an algorithm that depends on q and on the rates or forces of the active coordinates.

    ``share`` (..., N) or (..., N, N) contains the weights of redundant drives, for algorithms that take them; the
    default is 1. Algorithms with several results return a tuple, although the type annotation does not state this.
    """
    options: dict[str, Any] = {}
    if "share" in ALGORITHMS[name].inputs:
        weights, options = weights_of(closure, share, values)
        values = *values, weights
    keeps, loads_given = loads.given(closure.mechanism, name)
    request = closure.kernels.request(name, external=keeps, **options)
    check_inputs(closure, request, [*values, *loads_given])
    result: Array = closure.kernels.compiled(request)(*values, *loads_given, out=out)
    return result


def triple(
    closure: LoopClosure, name: str, values: Values, share: Maybe = None, loads: Loads = NO_LOADS, out: Out = None
) -> Three:
    """Return the three results of a derivative algorithm; see ``constrained`` for the arguments."""
    result: Any = constrained(closure, name, values, share, loads, out)
    return result[0], result[1], result[2]


def written(result: Array, out: Out, name: str) -> Array:
    """Copy a result that was computed in parts into the ``out`` array, or return it if ``out`` is None."""
    if out is None:
        return result
    array = out[0] if isinstance(out, (tuple, list)) and len(out) == 1 else out
    if array is None:
        return result
    check_result_array(array, result.shape, result.dtype.name, name)
    np.copyto(array, result, casting="same_kind")  # type: ignore[arg-type]
    return array  # type: ignore[return-value]


def active_accelerations(
    closure: LoopClosure, q: ArrayLike, v_active: ArrayLike, tau_active: ArrayLike, external: Maybe
) -> Array:
    """Return the accelerations (..., N) of the active coordinates due to forces (..., N) on them."""
    mechanism, active = closure.mechanism, closure.active
    forces = vectors(tau_active, len(active), mechanism.name, "tau_active")
    tau = np.zeros((*forces.shape[:-1], mechanism.nv))
    tau[..., active] = forces
    v = constrained(closure, "constrained_velocities", (q, v_active))
    return by_multipliers(closure, "closed_forward_dynamics", q, v, tau, external)[..., active]


def by_multipliers(
    closure: LoopClosure, name: str, q: ArrayLike, *inputs: Maybe, numbers: Numbers = OWN, out: Out = None
) -> Array:
    """Return an algorithm's result (..., n), using closure equations that are independent at each position q."""
    return written(_chosen(closure, name, q, *inputs, numbers=numbers), out, name)


def _chosen(closure: LoopClosure, name: str, q: ArrayLike, *inputs: Maybe, numbers: Numbers) -> Array:
    values = [value for value in inputs if value is not None]
    closure.check_closed(q, numbers)
    if name == "closed_inverse_dynamics":
        return _driven(closure, np.asarray(q, dtype=float), *values, numbers=numbers)
    at, nq = np.asarray(q, dtype=float), closure.mechanism.nq

    def evaluate(choice: ClosureChoice) -> tuple[Array, Array]:
        return _with_margin(closure, name, choice, numbers, at, *values)

    choice = closure.independent_near(at.reshape(-1, nq)[0]) if at.size else closure.independent_equations
    result, margin = evaluate(choice)
    if name != "closed_velocities":
        check_velocities(closure, q, values[0], numbers)
    if at.ndim > 1 and closure.ranks_differ(at, choice):
        for index, item, there in _states(closure, name, result.shape[:-1], numbers, at, *values):
            result[index] = _chosen(closure, name, *item, numbers=there)
        return result
    for _ in range(MAX_CHOICES):
        poor = np.nan_to_num(margin) < MIN_MARGIN
        if not poor.any():
            return result
        worst = np.unravel_index(int(np.argmin(np.where(poor, np.nan_to_num(margin), np.inf))), margin.shape)
        other = closure.independent_at(np.broadcast_to(at, (*margin.shape, nq))[worst])
        if len(other.rows) < len(choice.rows):
            break
        again, new = evaluate(other)
        better = np.nan_to_num(new) > 2 * np.nan_to_num(margin)
        if not better[worst]:
            break
        result = np.where(better[..., None], again, result)
        margin = np.where(better, new, margin)
    check_margin(closure, margin)
    return result


def _driven(closure: LoopClosure, at: Array, *values: ArrayLike, numbers: Numbers) -> Array:
    """Return the forces (..., N) of the active coordinates; the others have no drive."""
    name, choice = "closed_inverse_dynamics", closure.driven_equations
    result, margin = _with_margin(closure, name, choice, numbers, at, *values)
    check_velocities(closure, at, values[0], numbers)
    poor = np.nan_to_num(margin) < MIN_MARGIN
    for index, item, there in _states(closure, name, margin.shape, numbers, at, *values) if poor.any() else ():
        if not poor[index]:
            continue
        other = closure.driven_equations_at(item[0])
        result[index], left = _with_margin(closure, name, other, there, *item)
        if len(other.rows) < len(choice.rows) or not left >= SINGULAR_MARGIN:
            message = "the active coordinates do not determine the other coordinates of their loops"
            ways = "robot.closed.active_sets(q) and robot.closed.mobility(q).uncontrolled"
            raise ModelError(message, where=closure.name, fix=f"choose other active coordinates: see {ways}")
    if choice.between:
        tau = np.zeros((*result.shape[:-1], closure.mechanism.nv))
        tau[..., closure.active] = result
        a = _chosen(closure, "closed_forward_dynamics", at, values[0], tau, *values[2:], numbers=numbers)
        check_agreement(closure, "a_active", a[..., closure.active], values[1])
    return result


def _with_margin(
    closure: LoopClosure, name: str, choice: ClosureChoice, numbers: Numbers, *values: ArrayLike
) -> tuple[Array, Array]:
    """Return an algorithm's result (..., n) and the margin (...) of the choice of equations, from one function."""
    loaded = len(values) > 3
    request = closure.kernels.request(name + WITH_MARGIN, external=loaded, choice=choice, free=numbers.free)
    both = np.asarray(closure.kernels.compiled(request)(*values, *numbers.inputs))
    return both[..., :-1].copy(), both[..., -1]


def _states(
    closure: LoopClosure, name: str, batch: tuple[int, ...], numbers: Numbers, *values: ArrayLike
) -> Iterator[tuple[tuple[int, ...], list[Array], Numbers]]:
    """Yield each state of a batch: its index, its arrays without leading axes, and its numbers."""
    request = closure.kernels.request(name, external=len(values) > 3, free=numbers.free)
    arrays = zip((*values, *numbers.inputs), request.arguments(closure.mechanism).values(), strict=True)
    spread = [np.broadcast_to(np.asarray(item, dtype=float), (*batch, *core)) for item, core in arrays]
    for index in np.ndindex(batch):
        one = [item[index] for item in spread]
        yield index, one[: len(values)], Numbers(numbers.free, one[-1]) if numbers.free else OWN
