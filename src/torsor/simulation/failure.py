"""States that no motion has, and the error that says so."""

import numpy as np
from numpy.typing import NDArray

from torsor.errors import describe
from torsor.simulation.methods import METHODS
from torsor.simulation.setup import Setup
from torsor.simulation.trajectory import SimulationError

__all__ = ["FASTEST", "too_fast"]

Array = NDArray[np.float64]

# Nothing moves faster than light (m/s): a speed beyond it, of angles too, is a failure of the method.
FASTEST = 3e8


def too_fast(setup: Setup, t: float, v: Array) -> SimulationError | None:
    """Return the error of a state that no motion has, or None if it is sound."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(v) < FASTEST)
    if not bad.any():
        return None
    *rollout, k = (int(each) for each in np.argwhere(bad)[0])
    where = f"{setup.robot.name}, rollout {rollout}" if rollout else setup.robot.name
    found = f"the speed of {setup.robot.coordinate_names[k]} is {v[(*rollout, k)]:.3g} at t = {t:.6g} s"
    others = ", ".join(f'method="{name}"' for name in METHODS if name != setup.method)
    finer = "" if setup.method == "adaptive" else f"a step below {setup.step:g} s, or {others}; or "
    return SimulationError(describe(found, where=where, fix=f"{finer}check forces, gains and inertias"))
