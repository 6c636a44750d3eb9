"""Input checks shared by all closed-loop algorithms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, shortened
from torsor.dynamics import ALGORITHMS, Request
from torsor.mechanism.free import OWN, Numbers
from torsor.robot.closed_loops.closure import MAX_CLOSURE_ERROR, LoopClosure
from torsor.robot.closed_loops.mobility import RANK, analyse

MIN_SINGULAR_DISTANCE = 1e-5  # distance from a singularity below which forces are mostly rounding error
MAX_RELATIVE_ERROR = 1e-3  # largest closure error over that distance squared, which is the relative error of forces
SINGULAR_MARGIN = 1e-7  # margin below which closure equations are dependent
REST_VELOCITY = 1e-6  # rad/s: floor for velocities in the check of the closure rate, which is rounding error below it
CONTRADICTION = 1e-6  # largest contradiction of the rates of redundant active coordinates, relative to the largest rate
# Algorithms that measure how open or singular a position is.
UNCHECKED_ALGORITHMS = {"closure_trial", "closure_state", "closure_margin"}


def check_inputs(closure: LoopClosure, request: Request, values: Sequence[ArrayLike]) -> None:
    """Raise ModelError if a closed-loop algorithm has no result; ``values`` are all inputs of the request."""
    algorithm = ALGORITHMS[request.name]
    if not algorithm.closed or request.name in UNCHECKED_ALGORITHMS:
        return
    arguments = dict(zip(closure.kernels.shapes(request).arguments, values, strict=True))
    q, numbers = arguments["q"], Numbers(request.free, arguments.get("p", ()))
    if not algorithm.multipliers:
        check_driven(closure, q, numbers)
        if "share" in arguments and not (request.choice and request.choice.coupled):
            _check_positive(closure, real_array(arguments["share"], closure.name, "share"))
        if len(closure.active) > len(closure.driven_choice.independent):
            _check_rates(closure, arguments, numbers)
        return
    closure.check_closed(q, numbers)
    if request.name != "closed_velocities":
        check_velocities(closure, q, arguments["v"], numbers)
    margin = closure.kernels.request("closure_margin", choice=request.choice, free=request.free)
    check_margin(closure, np.asarray(closure.kernels.compiled(margin)(q, *numbers.inputs)))


def check_velocities(closure: LoopClosure, q: ArrayLike, v: ArrayLike, numbers: Numbers = OWN) -> None:
    """Raise ModelError if velocities v (..., nv) would open the loops, that is, if A v is not 0."""
    if np.shape(v)[-1:] != (closure.mechanism.nv,):
        return  # the algorithm itself raises an error that names the input
    rate = closure.exact("closure_rate", q, numbers, v)
    gap = rate / closure.scales[0]
    gap = np.einsum("...i,...i->...", gap, gap)
    size = np.asarray(v, dtype=float) / closure.scales[2]
    size = np.einsum("...i,...i->...", size, size)
    if (gap > MAX_CLOSURE_ERROR**2 * np.maximum(size, REST_VELOCITY**2)).any():
        worst = float(np.sqrt(gap / np.where(size > 0, size, 1.0)).max())
        slip = closure.sliding(rate)
        message = f"the velocities {slip or 'open the loops'}: A v is {worst:.2g} of their size"
        fix = "v = robot.closed.velocities(q, v, coordinates='all')"
        raise ModelError(message, where=closure.name, allowed=f"{MAX_CLOSURE_ERROR:g}", fix=fix)


def check_margin(closure: LoopClosure, margin: Array) -> None:
    """Raise ModelError if the chosen closure equations are dependent; ``margin`` (...) is 0 where they are."""
    if not (margin >= SINGULAR_MARGIN).all():
        fix = "use another configuration; robot.closed.mobility(q) lists the possible motions there"
        raise ModelError("the closure equations lose rank", where=closure.name, fix=fix)


def check_driven(closure: LoopClosure, q: ArrayLike, numbers: Numbers = OWN) -> None:
    """Raise ModelError if loops are open, or if the active coordinates do not determine the others."""
    state = closure.exact("closure_state", q, numbers)
    size = float(state[..., 0].max(initial=0.0))
    if not size <= MAX_CLOSURE_ERROR:
        closure.check_error(size, closure.exact("closure_error", q, numbers))
    regular = (state[..., 1] > MIN_SINGULAR_DISTANCE) & (state[..., 0] <= MAX_RELATIVE_ERROR * state[..., 1] ** 2)
    fine = regular & (state[..., 2] < RANK)
    if fine.all():
        return
    batch, worst = state.shape[:-1], int(np.argmin(fine.ravel()))
    at = _of_one_state(q, closure.mechanism.nq, batch, worst)
    there = numbers._replace(p=_of_one_state(numbers.p, len(numbers.free), batch, worst))
    free = analyse(closure.scaled_jacobian(at, there), closure.active, closure.scales[2]).uncontrolled
    moving = free[0] if len(free) else np.zeros(0)
    names = closure.mechanism.coordinate_names
    listed = [f"{n} ({x:.3g})" for n, x in zip(names, moving, strict=False) if abs(x) > RANK]
    why = f"with the active coordinates locked, {', '.join(listed)} can move"
    if not listed:
        why = "closure equations that are redundant elsewhere are independent there, see robot.closed.mobility(q)"
    message = f"singular at q = {shortened(at.round(6) + 0.0)}: {why}"
    raise ModelError(message, where=closure.name, fix="drive other coordinates there: robot.closed.active_sets(q)")


def _of_one_state(values: ArrayLike, count: int, batch: tuple[int, ...], index: int) -> Array:
    """Return the vector (count,) of one state of a batch; ``index`` counts the states of the flattened batch."""
    spread = np.broadcast_to(np.asarray(values, dtype=float), (*batch, count))
    return np.asarray(spread[np.unravel_index(index, batch)] if batch else spread)


def _check_rates(closure: LoopClosure, arguments: dict[str, ArrayLike], numbers: Numbers) -> None:
    """Raise ModelError if the rates of redundant active coordinates contradict each other."""
    a = arguments.get("a_active", np.zeros(len(closure.active)))
    request = closure.kernels.request("constrained_accelerations", free=numbers.free)
    result = closure.kernels.compiled(request)(arguments["q"], arguments["v_active"], a, *numbers.inputs)
    for name, rates in zip(("v_active", "a_active"), result, strict=True):
        if name in arguments:
            check_agreement(closure, name, rates[..., closure.active], arguments[name])


def check_agreement(closure: LoopClosure, name: str, possible: Array, rates: ArrayLike) -> None:
    """Raise ModelError if rates (..., N) of redundant active coordinates differ from those ``possible`` (..., N)."""
    given_rates = np.asarray(rates, dtype=float)
    wrong = np.abs(possible - given_rates).max(initial=0.0)
    size = max(1.0, float(np.abs(given_rates).max(initial=0.0)))
    if not wrong <= CONTRADICTION * size:
        message = f"{name}: rates of the active coordinates contradict each other by {wrong:.2g}"
        fix = "make one coordinate active per degree of freedom, or pass consistent rates"
        raise ModelError(message, where=closure.name, fix=fix)


def weights_of(closure: LoopClosure, share: Maybe, values: Sequence[ArrayLike]) -> tuple[Array, dict[str, Any]]:
    """Return the checked weights of the drives, and the request options that they need."""
    count = len(closure.active)
    weights = np.ones(count) if share is None else _checked_share(closure, share, values)
    if count == len(closure.driven_choice.independent):  # no drive is redundant
        return np.ones(count), {}
    return weights, {"choice": closure.driven_choice._replace(coupled=True)} if _is_matrix(weights, count) else {}


def _is_matrix(share: Array, count: int) -> bool:
    """Return whether weights of ``count`` redundant drives are matrices (..., N, N)."""
    return share.ndim > 1 and share.shape[-2:] == (count, count)


def _checked_share(closure: LoopClosure, share: ArrayLike, values: Sequence[ArrayLike]) -> Array:
    """Return the weights: positive numbers (..., N), or symmetric positive definite matrices (..., N, N)."""
    count, where = len(closure.active), closure.name
    weights = real_array(share, where, "share")
    if weights.ndim == 0 or weights.shape[-1] != count:
        allowed = f"(..., {count}) or (..., {count}, {count})"
        raise ModelError(f"has shape {weights.shape}", argument="share", where=where, allowed=allowed)
    if not _is_matrix(weights, count):
        _check_positive(closure, weights)
        return weights
    batch = np.broadcast_shapes(*(np.shape(value)[:-1] for value in values))
    if weights.ndim == 2 and batch and batch[-1] == count:
        message = f"{weights.shape} for {count} states is ambiguous: one matrix, or one row per state"
        fix = "pass share[None] for one matrix, or share[:, None] * np.eye(N) for one row per state"
        raise ModelError(message, argument="share", where=where, fix=fix)
    size = np.abs(weights).max(initial=0.0)
    if not np.isfinite(weights).all() or np.abs(weights - weights.swapaxes(-1, -2)).max(initial=0.0) > 1e-12 * size:
        raise ModelError("is not symmetric", argument="share", where=where, allowed="symmetric matrices")
    if np.linalg.eigvalsh(weights).min(initial=1.0) <= 0:
        raise ModelError("is not positive definite", argument="share", where=where, allowed="eigenvalues above 0")
    return weights


def _check_positive(closure: LoopClosure, share: Array) -> None:
    if not (np.isfinite(share) & (share > 0)).all():
        raise ModelError("is not positive", argument="share", where=closure.name, allowed="numbers above 0")
