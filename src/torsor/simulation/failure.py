"""States that no motion has, and the error that says so."""

import numpy as np
from numpy.typing import NDArray

from torsor.errors import describe
from torsor.simulation.setup import Setup
from torsor.simulation.trajectory import SimulationError, forward

__all__ = ["FASTEST", "refuse_singular", "too_fast"]

Array = NDArray[np.float64]

# Nothing moves faster than light (m/s): a speed beyond it, of angles too, is a failure of the method.
FASTEST = 3e8
# Below this share of the largest, an eigenvalue of the mass matrix is rounding.
SINGULAR = 1e-14


def too_fast(setup: Setup, t: float, v: Array) -> SimulationError | None:
    """Return the error of a state that no motion has, or None if it is sound."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(v) < FASTEST)
    if not bad.any():
        return None
    *rollout, k = (int(each) for each in np.argwhere(bad)[0])
    where = f"{setup.robot.name}, rollout {rollout}" if rollout else setup.robot.name
    found = f"the speed of {setup.robot.coordinate_names[k]} is {v[(*rollout, k)]:.3g} at t = {t:.6g} s"
    if setup.method == "implicit" and np.isnan(v[(*rollout, k)]):
        found = f"the equations of the step to t = {t:.6g} s could not be solved"
    elif setup.robot.loops and np.isnan(v[(*rollout, k)]):
        found = f"the loops could not be closed after the step to t = {t:.6g} s"
    others = {"rk4": 'method="implicit" or "adaptive"', "implicit": 'method="adaptive"'}.get(setup.method)
    finer = "" if others is None else f"a step below {setup.step:g} s, or {others}; or "
    if setup.controller.call is not None and others is not None:
        finer += "a controller in CasADi, since one in Python is held for the whole step; or "
    return SimulationError(describe(found, where=where, fix=f"{finer}check forces, gains and inertias"))


def refuse_singular(setup: Setup) -> None:
    """Raise an error if some force at the start moves nothing: then no acceleration follows from it."""
    robot = setup.robot
    with np.errstate(all="ignore"):
        a = forward(robot)(setup.q, setup.v, np.zeros(robot.nv))
        bad = np.argwhere(~np.isfinite(a))
        if not bad.size:
            return
        moments, directions = np.linalg.eigh(robot.mass_matrix(setup.q[tuple(bad[0, :-1])]))
    if moments[0] <= SINGULAR * moments[-1]:
        name = robot.coordinate_names[int(np.argmax(np.abs(directions[:, 0])))]
        found = f"nothing resists the force of {name} at the start: the mass matrix is singular"
        raise SimulationError(describe(found, where=robot.name, fix="give what it moves an inertia, or hold the joint"))
