"""Evaluation of algorithms in the active coordinates of a closed mechanism: positions, rates and loads checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.compiler.kernel import check_result_array
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.inputs import check_inputs, checked_share, is_matrix
from torsor.robot.derivatives import Loads
from torsor.robot.kernels import Out


def constrained(
    closure: LoopClosure,
    name: str,
    *values: ArrayLike,
    loads: Loads = Loads(),  # noqa: B008
    out: Out = None,
    **options: Any,
) -> Array:
    """Return the result of an algorithm of (q, rates of the active coordinates, ...).

    Algorithms with several results return a tuple, although the type does not show it.
    """
    keeps, given = loads.given(closure.mechanism, name)
    request = closure.kernels.request(name, external=keeps, **options)
    check_inputs(closure, request, [*values, *given])
    found: Array = closure.kernels.compiled(request)(*values, *given, out=out)
    return found


def driven(
    closure: LoopClosure, name: str, values: tuple[ArrayLike, ...], share: Maybe, loads: Loads, out: Out = None
) -> Array:
    """Return the result of an algorithm of (q, v_active, a_active) whose drives may be redundant.

    ``share`` (..., N) or (..., N, N) are the weights of redundant drives; 1 by default.
    """
    weights, choice = weights_of(closure, share, values)
    return constrained(closure, name, *values, weights, loads=loads, out=out, **choice)


def weights_of(
    closure: LoopClosure, share: Maybe, values: Sequence[ArrayLike]
) -> tuple[Array, dict[str, ClosureChoice]]:
    """Return the checked weights of the drives, and the options of the request that they need.

    ``values`` are the other inputs: a matrix of weights must not be mistaken for those of several states.
    """
    count = len(closure.active)
    weights = np.ones(count) if share is None else checked_share(closure, share, values)
    if count == len(closure.driven_choice.independent):  # no drive is redundant
        return np.ones(count), {}
    return weights, {"choice": closure.driven_choice._replace(coupled=True)} if is_matrix(weights, count) else {}


def driven_derivatives(
    closure: LoopClosure, name: str, values: tuple[ArrayLike, ...], share: Maybe, loads: Loads, out: Out = None
) -> tuple[Array, Array, Array]:
    """Return the three results of an algorithm of derivatives; arguments as in ``driven``."""
    found: Any = driven(closure, name, values, share, loads, out)
    return found[0], found[1], found[2]


def written(found: Array, out: Out, name: str) -> Array:
    """Return a result that is computed in several parts in the array of ``out=``, or as it is without one."""
    if out is None:
        return found
    given = out[0] if isinstance(out, (tuple, list)) and len(out) == 1 else out
    if given is None:
        return found
    check_result_array(given, found.shape, found.dtype.name, name)
    np.copyto(given, found, casting="same_kind")  # type: ignore[arg-type]
    return given  # type: ignore[return-value]
