"""A motion that was found, as a trajectory, and replayed: its forces over time through direct dynamics."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.results.samples import Moments
from torsor.motion.terms.limits import Unactuated
from torsor.simulation import Trajectory, simulate

if TYPE_CHECKING:
    from torsor.motion.results.result import MotionResult

__all__ = ["Replay", "replay", "trajectory"]

Array = NDArray[np.float64]


class Replay(NamedTuple):
    """A motion as direct dynamics reproduces it, and the largest deviations of positions and velocities from it."""

    trajectory: Trajectory
    q_error: float
    v_error: float


def _forces(result: "MotionResult", tau: Array) -> Array:
    """Return forces (..., nv) of all coordinates; those that are not active have none."""
    robot = result.robot
    if not robot.loops:
        return tau
    found = np.zeros((*tau.shape[:-1], robot.nv))
    found[..., [robot.coordinate_names.index(name) for name in result.force_names]] = tau
    return found


def trajectory(result: "MotionResult") -> Trajectory:
    """Return the motion on its grid as a trajectory."""
    at = result.moments
    return Trajectory(result.robot, at.times, at.q, at.v, at.a, _forces(result, at.tau))


def replay(result: "MotionResult", steps: int) -> Replay:
    """Return the motion that the forces make from the start state, phase after phase.

    Coordinates without a drive have no force, whatever little the splines leave there. Forces are functions of time
    alone, held during each step at their value in its middle, so that the error is one of second order in the step.
    """
    if type(steps) is not int or steps < 1:
        where = result.problem.name
        raise ModelError(describe(f"steps is {steps!r}", where=where, allowed="a whole number above 0"))
    robot, shares = result.robot, np.linspace(0.0, 1.0, steps + 1)
    wanted = Moments.of_shares(result.problem, result.x, [shares] * len(result.durations))
    q, v, begun, parts = wanted.q[0], wanted.v[0], 0.0, list[Trajectory]()
    for phase, T in enumerate(result.durations):
        h = T / steps
        middles = begun + (np.arange(steps) + 0.5) * h
        tau = _forces(result, result.at(middles).tau)
        tau[:, _unactuated(result)] = 0.0

        def held(t: float, q: Array, v: Array, tau: Array = tau, h: float = h) -> Array:
            return np.asarray(tau[min(round(t / h), len(tau) - 1)])

        made = simulate(robot, q, v, T, controller=held, step=h * (1 + 1e-9), progress=False)
        q, v, begun = made.q[-1], made.v[-1], begun + T
        parts.append(_shifted(made, begun - T, phase > 0))
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("times", "q", "v", "a", "tau")
    }
    found = replace(parts[0], **whole)
    off_q = np.abs(robot.difference(wanted.q, found.q)).max()
    return Replay(found, float(off_q), float(np.abs(found.v - wanted.v).max()))


def _unactuated(result: "MotionResult") -> list[int]:
    """Return the coordinates that a term says to have no drive."""
    names = {
        label
        for batch in result.program.batches
        for term, bound in zip(batch.traced.rows, batch.traced.bounds, strict=True)
        for label in bound.labels
        if isinstance(term, Unactuated)
    }
    return [k for k, name in enumerate(result.robot.coordinate_names) if name in names]


def _shifted(part: Trajectory, begun: float, later: bool) -> Trajectory:
    """Return a phase at its place in time; a later one without its first sample, which the earlier one has."""
    kept = slice(int(later), None)
    return replace(
        part, times=part.times[kept] + begun, q=part.q[kept], v=part.v[kept], a=part.a[kept], tau=part.tau[kept]
    )
