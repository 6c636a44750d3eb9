"""Evaluation of algorithms in the active coordinates of a closed mechanism: positions, rates and loads checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import real_array
from torsor.dynamics import ALGORITHMS
from torsor.errors import ModelError, describe
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.derivatives import Loads
from torsor.robot.kernels import Out

CONTRADICTION = 1e-6  # largest contradiction of rates of too many active coordinates, relative to the largest rate


def constrained(
    closure: LoopClosure,
    name: str,
    *values: ArrayLike,
    loads: Loads = Loads(),  # noqa: B008
    out: Out = None,
    **options: Any,
) -> Any:
    """Return the results of an algorithm of (q, rates of the active coordinates, ...)."""
    closure.check_driven(values[0])
    if len(closure.active) > len(closure.driven_choice.independent):
        _check_rates(closure, dict(zip(ALGORITHMS[name].inputs, values, strict=True)))
    keeps, given = loads.given(closure.mechanism, name)
    request = closure.kernels.request(name, external=keeps, **options)
    return closure.kernels.compiled(request)(*values, *given, out=out)


def driven(
    closure: LoopClosure,
    name: str,
    values: tuple[ArrayLike, ...],
    share: ArrayLike | None,
    loads: Loads,
    out: Out = None,
) -> Any:
    """Return the results of an algorithm of (q, v_active, a_active) whose drives may be redundant.

    ``share`` (..., N) or (..., N, N) are the weights of redundant drives; 1 by default.
    """
    count = len(closure.active)
    weights = np.ones(count) if share is None else _checked_share(closure, share, values)
    if count == len(closure.driven_choice.independent):  # no drive is redundant
        return constrained(closure, name, *values, np.ones(count), loads=loads, out=out)
    coupled = {"choice": closure.driven_choice._replace(coupled=True)} if _is_matrix(weights, count) else {}
    return constrained(closure, name, *values, weights, loads=loads, out=out, **coupled)


def _check_rates(closure: LoopClosure, given: dict[str, ArrayLike]) -> None:
    """Raise ModelError for rates of redundant active coordinates that contradict each other."""
    q, v = given["q"], given["v_active"]
    a = given.get("a_active", np.zeros(len(closure.active)))
    found = closure.kernels.call("constrained_accelerations", q, v, a)
    for name, rates in zip(("v_active", "a_active"), found, strict=True):
        if name in given:
            wanted = np.asarray(given[name], dtype=float)
            wrong = np.abs(rates[..., closure.active] - wanted).max(initial=0.0)
            size = max(1.0, float(np.abs(wanted).max(initial=0.0)))
            if not wrong <= CONTRADICTION * size:
                text = f"{name}: rates of the active coordinates contradict each other by {wrong:.2g}"
                fix = "make only as many coordinates active as there are degrees of freedom, or give consistent rates"
                raise ModelError(describe(text, where=closure.name, fix=fix))


def _is_matrix(share: Array, count: int) -> bool:
    return share.ndim > 1 and share.shape[-2:] == (count, count)


def _checked_share(closure: LoopClosure, share: ArrayLike, values: tuple[ArrayLike, ...]) -> Array:
    """Return the weights: positive numbers (..., N), or symmetric positive definite matrices (..., N, N)."""
    count, where = len(closure.active), closure.name
    given = real_array(share, where, "share")
    if given.ndim == 0 or given.shape[-1] != count:
        allowed = f"(..., {count}) or (..., {count}, {count})"
        raise ModelError(describe(f"share has shape {given.shape}", where=where, allowed=allowed))
    if not _is_matrix(given, count):
        if not (np.isfinite(given) & (given > 0)).all():
            raise ModelError(describe("share is not positive", where=where, allowed="numbers above 0"))
        return given
    batch = np.broadcast_shapes(*(np.shape(value)[:-1] for value in values))
    if given.ndim == 2 and batch and batch[-1] == count:
        found = f"share {given.shape} of {count} states is ambiguous: one matrix, or a row for each state"
        fix = "share[None] is one matrix, share[:, None] * np.eye(N) has a row for each"
        raise ModelError(describe(found, where=where, fix=fix))
    size = np.abs(given).max(initial=0.0)
    if not np.isfinite(given).all() or np.abs(given - given.swapaxes(-1, -2)).max(initial=0.0) > 1e-12 * size:
        raise ModelError(describe("share is not symmetric", where=where, allowed="symmetric matrices"))
    if np.linalg.eigvalsh(given).min(initial=1.0) <= 0:
        raise ModelError(describe("share is not positive definite", where=where, allowed="eigenvalues above 0"))
    return given
