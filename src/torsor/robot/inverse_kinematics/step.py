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
from torsor.robot.inverse_kinematics.problem import Problem

MIN_STEP_DAMPING = 1e-12  # of rows in m and rad: far below the squared singular values at a useful posture
LIGHTER, HEAVIER, SHORTER = 0.3, 4.0, 0.25  # factors of damping after good and bad steps, and of bad steps
LONGEST = 1.0  # rad or m: of a step of any coordinate
STATE = ["q", "dv", "cost", "damping"]  # of a search
NEXT = [f"{name}_next" for name in STATE]
ROOM = 1.0  # rad or m from a limit from which a coordinate moves less toward it


def chase(problem: Problem) -> AnyKernel:
    """Return the kernel (q, dv, cost, damping, data) -> the same four after a trial of the step dv.

    ``q`` (nq) are the best positions so far, ``cost`` is theirs; a first call has dv = 0 and an infinite cost.
    """

    def make() -> ca.Function:
        q, dv, cost, damping, data = symbols(problem)
        x = problem.moved(q, dv)
        at = problem.traced(x, data, soft=True)
        new = ca.sumsqr(at.r)
        scaling = limit_scaling(problem, x, at.J.T @ at.r)
        step = within(problem, x, damped_step(at.r, at.J, scaling, damping * new + MIN_STEP_DAMPING))
        outputs = judged((q, dv, cost, damping), x, step, new)
        return ca.Function("chase", [q, dv, cost, damping, data], outputs, [*STATE, "data"], NEXT)

    return problem.kernel("chase", (), make)


def chase_apart(problem: Problem) -> AnyKernel:
    """Return the kernel of a step that also keeps shapes apart, whose distances are computed outside of it.

    (q, dv, cost, damping, data, x, W, b, g, M) -> the first four after a trial of the step dv, and the next trial: x
    (nq) is q after dv; the rows of the shapes have the cost b there, its halved gradient g (n) and the halved Hessian
    of Gauss and Newton M (n * n). W is the weight of hard rows.
    """

    def make() -> ca.Function:
        n = len(problem.free)
        q, dv, cost, damping, data = symbols(problem)
        x, g, M = ca.SX.sym("x", problem.robot.nq), ca.SX.sym("g", n), ca.SX.sym("M", n * n)
        W, b = ca.SX.sym("W"), ca.SX.sym("b")
        at = problem.traced(x, data, soft=False)
        new = ca.sumsqr(at.r) + W**2 * ca.sumsqr(at.c) + b
        gradient = at.J.T @ at.r + W**2 * (at.A.T @ at.c) + g
        H = symmetric(at.J.T @ at.J + W**2 * (at.A.T @ at.A) + ca.reshape(M, n, n))
        scaling = limit_scaling(problem, x, gradient)
        step = within(problem, x, normal_step(H, gradient, scaling, damping * new + MIN_STEP_DAMPING))
        outputs = judged((q, dv, cost, damping), x, step, new)
        outputs = ca.cse([*outputs, ca.densify(problem.moved(outputs[0], outputs[1]))])
        inputs = [q, dv, cost, damping, data, x, W, b, g, M]
        names = [*STATE, "data", "x", "W", "b", "g", "M"]
        return ca.Function("chase_apart", inputs, outputs, names, [*NEXT, "x_next"])

    return problem.kernel("chase apart", (), make)


def symbols(problem: Problem) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the symbols of a search: q, dv, cost and damping, and of the data of its targets."""
    q, dv = ca.SX.sym("q", problem.robot.nq), ca.SX.sym("dv", len(problem.free))
    return q, dv, ca.SX.sym("cost"), ca.SX.sym("damping"), ca.SX.sym("data", problem.data_size)


def judged(state: tuple[ca.SX, ca.SX, ca.SX, ca.SX], x: ca.SX, step: ca.SX, new: ca.SX) -> list[ca.SX]:
    """Return the next q, dv, cost and damping: those of the trial x if its cost is not above that of q."""
    q, dv, cost, damping = state
    better = new <= cost  # false for NaN
    chosen = zip((x, step, new, LIGHTER * damping), (q, SHORTER * dv, cost, HEAVIER * damping), strict=True)
    return list(ca.cse([ca.densify(ca.if_else(better, a, b)) for a, b in chosen]))


def damped_step(r: ca.SX, J: ca.SX, D: ca.SX | None, damping: ca.SX) -> ca.SX:
    """Return the damped Gauss-Newton step (n x 1) in coordinates scaled by D (n x 1)."""
    m, n = J.shape
    scaled = J if D is None else ca.horzcat(*(J[:, k] * D[k] for k in range(n)))
    if m <= n:
        return -scaled.T @ Squares(symmetric(scaled @ J.T) + damping * ca.SX.eye(m)).solve(r)
    return normal_step(symmetric(J.T @ J), J.T @ r, D, damping)


def normal_step(H: ca.SX, gradient: ca.SX, D: ca.SX | None, damping: ca.SX) -> ca.SX:
    """Return the step (n x 1) of (D H + damping) step = -D gradient, made symmetric by D^1/2 on both sides."""
    root = ca.SX.ones(H.size1()) if D is None else ca.sqrt(D)
    scaled = H if D is None else ca.diag(root) @ H @ ca.diag(root)
    return -root * Squares(symmetric(scaled) + damping * ca.SX.eye(H.size1())).solve(root * gradient)


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
