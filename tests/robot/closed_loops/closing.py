"""A closing of loops that is independent of the library: Gauss-Newton with minimum-norm steps."""

import numpy as np

import torsor


def closed_near(robot: torsor.Robot, q: np.ndarray, trials: int = 20) -> np.ndarray:
    """Return positions (nq,) that close the loops, from q or from somewhere around it."""
    rng, start = np.random.default_rng(0), q
    for _ in range(trials):
        for _ in range(60):
            error = robot.closed.error(q)
            if np.abs(error).max(initial=0.0) < 1e-13:
                return q
            step = -np.linalg.lstsq(robot.closed.jacobian(q), error, rcond=1e-9)[0]
            q = robot.integrate(q, step / max(1.0, np.abs(step).max() / 0.3))
        q = robot.integrate(start, rng.normal(size=robot.nv))
    raise AssertionError("it does not close")
