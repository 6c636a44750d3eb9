"""Assembly: computes the joint positions that close the loops for given active coordinates."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import one_of, vectors
from torsor.base.errors import ModelError, shortened
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.search import (
    CLOSURE_TOLERANCE,
    MAX_STRIDE,
    MAX_STRIDES,
    MIN_SINGULAR_DISTANCE,
    AssemblyError,
)

TRIALS = 10  # perturbed starts in the search for closed positions
AGREEMENT_TOLERANCE = 1e-9  # largest disagreement of redundant active coordinates


def assemble(closure: LoopClosure, q_active: ArrayLike, guess: Maybe, missing: str) -> Array:
    """Return positions (..., nq) that close the loops; see ``robot.closed.assemble``."""
    mechanism, where = closure.mechanism, closure.name
    one_of(missing, ("raise", "nan"), where, "missing")
    if not mechanism.active and not np.size(q_active):
        return closed_positions(closure, mechanism.neutral() if guess is None else guess)
    places, nq = closure.active_positions, mechanism.nq
    active = vectors(q_active, len(places), where, "q_active")
    start = closure.reference if guess is None else _near(closure, vectors(guess, nq, where, "guess"))
    batch = np.broadcast_shapes(active.shape[:-1], start.shape[:-1])
    begin = np.ascontiguousarray(np.broadcast_to(start, (*batch, nq)).reshape(-1, nq))
    goal = begin.copy()
    goal[:, places] = np.broadcast_to(active, (*batch, len(places))).reshape(-1, len(places))
    displacement = closure.kernels.exact.call("difference", begin, goal)
    _check_displacement(closure, displacement)
    side = np.broadcast_to(closure.closer.side(start.reshape(-1, nq)).reshape(start.shape[:-1]), batch).ravel()
    result, arrived = closure.closer.walk(begin, side, displacement)
    for k in np.flatnonzero(np.logical_not(arrived)):
        result[k] = np.nan if missing == "nan" else _search_goal(closure, begin[k], goal[k])
    if len(closure.active) > len(set(closure.active) & set(closure.assembly_choice.independent)):
        _check_agreement(closure, result, goal, missing)
    return result.reshape(*batch, nq)


def closed_positions(closure: LoopClosure, q: ArrayLike) -> Array:
    """Return positions (..., nq) with closed loops near ``q``; see ``robot.closed.positions``."""
    space, nv = closure.space, closure.mechanism.nv
    at = vectors(q, closure.mechanism.nq, closure.name, "q")
    result = np.empty_like(at)
    for index in np.ndindex(at.shape[:-1]):
        rng = np.random.default_rng(0)
        for trial in range(TRIALS):  # if bars are aligned, the Jacobian is singular: start from a perturbed position
            beside = 0.1 * trial * rng.normal(size=nv) * closure.scales[2]
            result[index], error = space.closest(space.integrate(at[index], beside))
            if error <= CLOSURE_TOLERANCE:
                break
        else:
            lifted = closure.off_ground(closure.exact("closure_error", result[index]))
            why = lifted or f"the closure error is {error:.2g}"
            message = f"no closed positions were found near {shortened(at[index].round(6))}: {why}"
            fix = f"start from other positions, and check the frames that the loops join{closure.axes}"
            raise ModelError(message, where=closure.name, fix=fix)
    return result


def _near(closure: LoopClosure, guess: Array) -> Array:
    """Return closed configurations near the guesses (..., nq), with unchanged active coordinates where possible."""
    mechanism = closure.mechanism
    flat = guess.reshape(-1, mechanism.nq)
    result, error, _ = closure.closer.close(flat, np.zeros((len(flat), mechanism.nv)))
    for k in np.flatnonzero(~(error <= CLOSURE_TOLERANCE)):
        result[k], size = closure.space.closest(flat[k])
        result[k] = result[k] if size <= CLOSURE_TOLERANCE else closure.reference
    return result.reshape(guess.shape)


def _check_displacement(closure: LoopClosure, displacement: Array) -> None:
    """Raise ModelError if a quaternion is zero or positions are too far from the guess."""
    far = float((np.abs(displacement).max(axis=0, initial=0.0) / closure.scales[2]).max(initial=0.0))
    if not np.isfinite(far):
        raise ModelError("a quaternion in the positions is zero", where=closure.name, allowed="rotations")
    if far > MAX_STRIDES * MAX_STRIDE:
        message, allowed = f"is {far:.3g} rad or mechanism sizes away from the guess", f"{MAX_STRIDES * MAX_STRIDE:g}"
        fix = "pass a closer guess, or subtract whole turns"
        raise ModelError(message, argument="q_active", where=closure.name, allowed=allowed, fix=fix)


def _check_agreement(closure: LoopClosure, positions: Array, goal: Array, missing: str) -> None:
    """Raise ModelError if active coordinates contradict each other, or set these states to NaN."""
    apart = np.abs(closure.kernels.exact.call("difference", positions, goal) / closure.scales[2])[:, closure.active]
    wrong = apart.max(axis=-1, initial=0.0) > AGREEMENT_TOLERANCE
    if missing == "nan":
        positions[wrong] = np.nan
    elif wrong.any():
        count, free = len(closure.active), len(closure.assembly_choice.independent)
        independent = f"{count} are given, but only {free} are independent"
        message = f"active coordinates disagree by {apart.max():.2g}: {independent}"
        fix = "pass consistent values, or check robot.closed.mobility() for overconstrained loops"
        raise ModelError(message, where=closure.name, allowed=f"{AGREEMENT_TOLERANCE:g}", fix=fix)


def _search_goal(closure: LoopClosure, begin: Array, goal: Array) -> Array:
    """Return the closed configuration with the goal's active coordinates, or raise AssemblyError."""
    places, space, active = closure.active_positions, closure.space, closure.active

    def missing(at: Array) -> Array:
        return np.asarray(closure.kernels.exact.call("difference", at, goal) / closure.scales[2])[active]

    q, distance = space.approach(begin, missing, active)
    trial = q.copy()
    trial[places] = goal[places]
    trial, left = space.closest(trial, [k for k in range(closure.mechanism.nv) if k not in active])
    requested = f"the active coordinates {shortened(goal[places].round(6))}"
    if distance < 1e-6 and left <= CLOSURE_TOLERANCE:
        here, there = closure.closer.side(np.stack([begin, trial]))
        if here * there > 0 and min(abs(here), abs(there)) > MIN_SINGULAR_DISTANCE:  # else rounding decides the sign
            return trial
        place = "there" if abs(there) <= MIN_SINGULAR_DISTANCE else "on the way there"
        place = "at the guess" if abs(here) <= MIN_SINGULAR_DISTANCE else place
        message = f"with {requested} the mechanism is singular {place}, where assembly modes meet"
        fix = "pass a guess in the desired assembly mode, beyond the singularity"
        singular = AssemblyError(message, where=closure.name, fix=fix)
        raise singular.but(q=trial, q_active=trial[places], closing_error=0.0)
    error = float(np.abs(closure.kernels.exact.call("closure_error", trial)).max())
    names = [closure.mechanism.position_names[k] for k in places]
    reached = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, q[places], strict=True))
    unreached = AssemblyError(
        f"no closed configuration with {requested} was reached (closure error {error:.3g})",
        where=closure.name,
        allowed=f"the closest reachable coordinates are {reached}",
        fix="pass reachable coordinates, or another guess",
    )
    raise unreached.but(q=q, q_active=q[places], closing_error=error)
