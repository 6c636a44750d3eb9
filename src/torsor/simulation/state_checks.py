"""Checks of the state: divergence of the integration, and a singular mass matrix at the start."""

import numpy as np

from torsor.arrays import Array
from torsor.errors import describe
from torsor.simulation.errors import SimulationError
from torsor.simulation.setup import Setup
from torsor.simulation.trajectory import forward_dynamics

# A speed above that of light (m/s; for angles, rad/s) means that the integration has diverged.
FASTEST = 3e8
# An eigenvalue of the mass matrix below this fraction of the largest is rounding.
SINGULAR = 1e-14


def divergence(setup: Setup, t: float, v: Array) -> SimulationError | None:
    """Return the error of a diverged state, or None if all velocities v (..., nv) are plausible."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(v) < FASTEST)
    if not bad.any():
        return None
    method = setup.settings.method
    *rollout, k = (int(each) for each in np.argwhere(bad)[0])
    where = f"{setup.robot.name}, rollout {rollout}" if rollout else setup.robot.name
    found = f"the speed of {setup.robot.coordinate_names[k]} is {v[(*rollout, k)]:.3g} at t = {t:.6g} s"
    if method == "implicit" and np.isnan(v[(*rollout, k)]):
        found = f"the equations of the step to t = {t:.6g} s could not be solved"
    elif setup.robot.loops and np.isnan(v[(*rollout, k)]):
        found = f"the loops could not be closed after the step to t = {t:.6g} s"
    others = {"rk4": 'method="implicit" or "adaptive"', "implicit": 'method="adaptive"'}.get(method)
    finer = "" if others is None else f"a step below {setup.settings.step:g} s, or {others}; or "
    if setup.controller.call is not None and others is not None:
        finer += "a controller in CasADi, since the force of one in Python is constant during the step; or "
    return SimulationError(describe(found, where=where, fix=f"{finer}check forces, gains and inertias"))


def check_mass_matrix(setup: Setup) -> None:
    """Raise SimulationError if the mass matrix at the start is singular: the acceleration is then not defined."""
    robot = setup.robot
    with np.errstate(all="ignore"):
        a = forward_dynamics(robot)(setup.q, setup.v, np.zeros(robot.nv))
        bad = np.argwhere(~np.isfinite(a))
        if not bad.size:
            return
        moments, directions = np.linalg.eigh(robot.mass_matrix(setup.q[tuple(bad[0, :-1])]))
    if moments[0] <= SINGULAR * moments[-1]:
        name = robot.coordinate_names[int(np.argmax(np.abs(directions[:, 0])))]
        found = f"the mass matrix is singular at the start: {name} moves no inertia"
        raise SimulationError(describe(found, where=robot.name, fix="give its links an inertia, or fix the joint"))
