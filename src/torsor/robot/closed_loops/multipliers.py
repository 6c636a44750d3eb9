"""Dynamics of all coordinates while loops are closed, by Lagrange multipliers of the closure equations.

Which equations are independent may differ between states. Results are first computed with one choice of equations for
the whole batch; states at which that choice is close to losing rank are computed again with a better one.
"""

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.requests.algorithms import WITH_MARGIN
from torsor.errors import ModelError, describe
from torsor.robot.closed_loops.closure import LoopClosure

# Below the first margin another choice of equations is tried; below the second the equations are singular.
POOR, SINGULAR = 0.02, 1e-7
MOST = 8  # choices that are tried in one call


def by_multipliers(closure: LoopClosure, name: str, q: ArrayLike, *values: ArrayLike) -> Array:
    """Return an algorithm's result (..., n), with closure equations that are independent at each of the positions."""
    closure.check_closed(q)
    at, loaded, nq = np.asarray(q, dtype=float), len(values) > 2, closure.mechanism.nq

    def evaluate(choice: ClosureChoice) -> tuple[Array, Array]:
        return _with_margin(closure, name, choice, loaded, at, *values)

    choice = closure.independent_near(at.reshape(-1, nq)[0]) if at.size else closure.independent_equations
    found, margin = evaluate(choice)
    if name != "closed_velocities":
        closure.check_velocities(q, values[0])
    if at.ndim > 1 and closure.ranks_differ(at, choice):
        return _one_by_one(closure, name, at, found.shape, values)
    for _ in range(MOST):
        poor = np.nan_to_num(margin) < POOR
        if not poor.any():
            return found
        worst = np.unravel_index(int(np.argmin(np.where(poor, np.nan_to_num(margin), np.inf))), margin.shape)
        other = closure.independent_at(np.broadcast_to(at, (*margin.shape, nq))[worst])
        if len(other.rows) < len(choice.rows):
            break
        again, new = evaluate(other)
        better = np.nan_to_num(new) > 2 * np.nan_to_num(margin)
        if not better[worst]:
            break
        found = np.where(better[..., None], again, found)
        margin = np.where(better, new, margin)
    if not (margin >= SINGULAR).all():
        fix = "another configuration; robot.mobility(q) lists the motions that are possible there"
        raise ModelError(describe("the closure equations lose rank", where=closure.name, fix=fix))
    return found


def driven_by_multipliers(closure: LoopClosure, q: ArrayLike, *values: ArrayLike) -> Array:
    """Return the forces (..., N) of the active coordinates, with all others free of force.

    ``values`` are v, a_active and perhaps external wrenches.
    """
    closure.check_closed(q)
    name, at, loaded = "closed_inverse_dynamics", np.asarray(q, dtype=float), len(values) > 2
    choice = closure.driven_equations
    found, margin = _with_margin(closure, name, choice, loaded, at, *values)
    closure.check_velocities(q, values[0])
    cores = closure.kernels.request(name, external=loaded).arguments(closure.mechanism).values()
    for index in np.argwhere(np.nan_to_num(margin) < POOR):
        each = tuple(
            np.broadcast_to(np.asarray(value, dtype=float), (*margin.shape, *core))[tuple(index)]
            for value, core in zip((at, *values), cores, strict=True)
        )
        other = closure.driven_equations_at(each[0])
        found[tuple(index)], left = _with_margin(closure, name, other, loaded, *each)
        if len(other.rows) < len(choice.rows) or not left >= SINGULAR:
            fix = "other active coordinates: robot.active_sets(q); robot.mobility(q).uncontrolled is the motion"
            text = "the active coordinates do not determine the others that the loops connect them with"
            raise ModelError(describe(text, where=closure.name, fix=fix))
    return found


def _with_margin(
    closure: LoopClosure, name: str, choice: ClosureChoice, external: bool, *values: ArrayLike
) -> tuple[Array, Array]:
    """Return an algorithm's result (..., n) and the margin (...) of the choice of equations, from one function."""
    request = closure.kernels.request(name + WITH_MARGIN, external=external, choice=choice)
    both = np.asarray(closure.kernels.compiled(request)(*values))
    return both[..., :-1].copy(), both[..., -1]


def _one_by_one(
    closure: LoopClosure, name: str, q: Array, shape: tuple[int, ...], values: tuple[ArrayLike, ...]
) -> Array:
    """Return an algorithm's result where each state has its own choice of equations."""
    request = closure.kernels.request(name, external=len(values) > 2)
    cores = request.arguments(closure.mechanism).values()
    batch, found = shape[:-1], np.empty(shape)
    given = zip((q, *values), cores, strict=True)
    spread = [np.broadcast_to(np.asarray(each, dtype=float), (*batch, *core)) for each, core in given]
    for index in np.ndindex(batch):
        found[index] = by_multipliers(closure, name, *(each[index] for each in spread))
    return found
