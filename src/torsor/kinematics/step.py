"""One step of Levenberg-Marquardt as a compiled kernel: a trial is evaluated, accepted or shortened; then the next one.

All rows are squares to minimise. With residuals r, their Jacobian J and the diagonal scaling D of the coordinates,

    step = -D J^T (J D J^T + l 1)^-1 r        l = m |r|^2 + smallest damping

(Levenberg 1944, Marquardt 1963; damping by the error itself: Sugihara 2011), or its equal in the n x n matrix,
whichever is smaller. Where the gradient drives a coordinate to its limit, D is the room that is left (Coleman and Li
1996), so that a redundant robot turns other joints; at the limit it is zero. Steps end at limits. A step that does not
reduce the cost is shortened, and damping grows.
"""

import casadi as ca
import numpy as np

from torsor.compiler import AnyKernel
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.kinematics.problem import Problem

LEAST_DAMPING = 1e-12  # of rows in m and rad: far below the squared singular values at a useful posture
LIGHTER, HEAVIER, SHORTER = 0.3, 4.0, 0.25  # factors of damping after good and bad steps, and of bad steps
LONGEST = 1.0  # rad or m: of a step of any coordinate
ROOM = 1.0  # rad or m from a limit from which a coordinate moves less toward it


def chase(problem: Problem) -> AnyKernel:
    """Return the kernel (q, dv, cost, damping, data) -> the same four after a trial of the step dv.

    ``q`` (nq) are the best positions so far, ``cost`` is theirs; a first call has dv = 0 and an infinite cost.
    """

    def make() -> ca.Function:
        n = len(problem.free)
        q, dv, data = ca.SX.sym("q", problem.robot.nq), ca.SX.sym("dv", n), ca.SX.sym("data", problem.data_size)
        cost, damping = ca.SX.sym("cost"), ca.SX.sym("damping")
        x = problem.moved(q, dv)
        at = problem.traced(x, data, soft=True)
        new = ca.sumsqr(at.r)
        scaling = limit_scaling(problem, x, at.J.T @ at.r)
        step = damped_step(at.r, at.J, scaling, damping * new + LEAST_DAMPING)
        step = within(problem, x, step)
        better = new <= cost  # false for NaN
        chosen = zip((x, step, new, LIGHTER * damping), (q, SHORTER * dv, cost, HEAVIER * damping), strict=True)
        outputs = ca.cse([ca.densify(ca.if_else(better, a, b)) for a, b in chosen])
        names = ["q", "dv", "cost", "damping"]
        return ca.Function(
            "chase", [q, dv, cost, damping, data], outputs, [*names, "data"], [f"{x}_next" for x in names]
        )

    return problem.kernel("chase", (), make)


def damped_step(r: ca.SX, J: ca.SX, D: ca.SX | None, damping: ca.SX) -> ca.SX:
    """Return the damped Gauss-Newton step (n x 1) in coordinates scaled by D (n x 1)."""
    m, n = J.shape
    scaled = J if D is None else ca.horzcat(*(J[:, k] * D[k] for k in range(n)))
    if m <= n:
        return -scaled.T @ Squares(symmetric(scaled @ J.T) + damping * ca.SX.eye(m)).solve(r)
    # (D J^T J + l) u = -D J^T r, made symmetric by D^1/2 on both sides.
    root = ca.SX.ones(n) if D is None else ca.sqrt(D)
    half = ca.horzcat(*(J[:, k] * root[k] for k in range(n)))
    normal = symmetric(half.T @ half) + damping * ca.SX.eye(n)
    return -root * Squares(normal).solve(half.T @ r)


def limit_scaling(problem: Problem, x: ca.SX, gradient: ca.SX) -> ca.SX | None:
    """Return D (n x 1), from 1 to 0 at a limit that the gradient drives a coordinate to; None without limits."""
    if not any(np.isfinite(each).any() for each in problem.bounds):
        return None
    D = ca.SX.ones(len(problem.free))
    for k, (at, low, high) in enumerate(zip(problem.places_in_q, *problem.bounds, strict=True)):
        if np.isfinite([low, high]).any():
            room = ca.if_else(gradient[k] > 0, x[at] - low, high - x[at])
            D[k] = ca.fmax(ca.fmin(room / ROOM, 1), 0)
    return D


def within(problem: Problem, x: ca.SX, step: ca.SX) -> ca.SX:
    """Return a step (n x 1) that is no longer than LONGEST and ends within the limits."""
    step = step * ca.fmin(1, LONGEST / (ca.mmax(ca.fabs(step)) + 1e-300))
    for k, (at, low, high) in enumerate(zip(problem.places_in_q, *problem.bounds, strict=True)):
        if np.isfinite(low):
            step[k] = ca.fmax(step[k], low - x[at])
        if np.isfinite(high):
            step[k] = ca.fmin(step[k], high - x[at])
    return step
