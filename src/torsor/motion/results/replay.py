"""The trajectory of a solution, and its replay by forward dynamics with the forces of the solution."""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.base.errors import ModelWarning
from torsor.motion.results.solution import Solution
from torsor.motion.terms.limits import Unactuated
from torsor.simulation import Trajectory, simulate


class Replay(NamedTuple):
    """A motion replayed by forward dynamics, and its largest errors: ``q_error`` (rad, m), ``v_error`` (rad/s, m/s)."""

    trajectory: Trajectory
    q_error: float
    v_error: float


def _forces(result: Solution, tau: Array) -> Array:
    """Return the forces (..., nv) of all coordinates, which are 0 for inactive ones."""
    robot = result.robot
    if not robot.loops:
        return tau
    forces = np.zeros((*tau.shape[:-1], robot.nv))
    forces[..., [robot.coordinate_names.index(name) for name in result.force_names]] = tau
    return forces


def trajectory(result: Solution) -> Trajectory:
    """Return the motion on its grid as a trajectory, with contact wrenches and the corresponding forces."""
    at, contact = result.moments, result.problem.contact(result)
    tau, external = (_forces(result, at.tau), None) if contact is None else contact
    made = {"made": f"{result.problem.name}, found by {result.solver}"}
    return Trajectory(result.robot, at.times, at.q, at.v, at.a, tau, external=external, settings=made)


def replay(result: Solution, steps: int) -> Replay:
    """Return the motion that the forces produce from the initial state, through all phases.

    The forces of unactuated coordinates are exactly 0, without the small residual of the splines. In each step, forces
    are constant at their midpoint value, so the error is of second order in the step length.
    """
    whole_number(steps, result.problem.name, "steps")
    robot, s = result.robot, np.linspace(0.0, 1.0, steps + 1)
    kernels = [batch.kernels for batch in result.program.batches]
    pairs = [pair for kernel in kernels for pair in zip(kernel.constraints, kernel.rows, strict=True)]
    names = {label for term, rows in pairs if isinstance(term, Unactuated) for label in rows.labels}
    unactuated = [k for k, name in enumerate(robot.coordinate_names) if name in names]
    planned = result.course.at_fractions([s] * len(result.durations))
    q, v, begun, parts = planned.q[0], planned.v[0], 0.0, list[Trajectory]()
    for T in result.durations:
        h = T / steps
        middles = begun + (np.arange(steps) + 0.5) * h
        tau = _forces(result, result.at(middles).tau)
        tau[:, unactuated] = 0.0

        def piecewise_constant(t: float, q: Array, v: Array, tau: Array = tau, h: float = h) -> Array:
            return np.asarray(tau[min(round(t / h), len(tau) - 1)])

        with warnings.catch_warnings():  # the result reports how far forces exceed limits between nodes
            warnings.simplefilter("ignore", ModelWarning)
            made = simulate(robot, q, v, T, controller=piecewise_constant, step=h * (1 + 1e-9), progress=False)
        parts.append(replace(made, times=made.times + begun))
        q, v, begun = made.q[-1], made.v[-1], begun + T
    # The first sample of a later phase is the last sample of the previous phase.
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name)[k > 0 :] for k, part in enumerate(parts)])
        for name in ("times", "q", "v", "a", "tau")
    }
    replayed = replace(parts[0], **whole)
    off_q = np.abs(robot.difference(planned.q, replayed.q)).max()
    return Replay(replayed, float(off_q), float(np.abs(replayed.v - planned.v).max()))
