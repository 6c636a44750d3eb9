"""A compiled Levenberg-Marquardt step: evaluate a trial, accept or shorten it, and propose the next one.

The sum of the squared rows is minimised. With residuals r, their Jacobian J and the diagonal scaling D of coordinates,

    step = -D J^T (J D J^T + l 1)^-1 r        l = m |r|^2 + smallest damping

(Levenberg 1944, Marquardt 1963; damping by the error itself: Sugihara 2011), or the equivalent with the n x n matrix,
whichever is smaller. If the gradient drives a coordinate towards its limit, D is the remaining range (Coleman and Li
1996), which is zero at the limit, so that a redundant robot moves other joints. Steps end at limits. If a step does not
reduce the cost, it is shortened and damping increases.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.searches import Indices, State, advance
from torsor.compiler import AnyKernel
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.configuration import difference
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.robot.inverse_kinematics.problem import Problem

MIN_STEP_DAMPING = 1e-12  # for rows in m and rad: far below the squared singular values at a useful posture
# Damping factors after good and bad steps, and the length factor after a bad step.
DAMPING_DECREASE, DAMPING_INCREASE, STEP_DECREASE = 0.3, 4.0, 0.25
MAX_STEP = 1.0  # rad or m: maximum step of any coordinate
STATE = ["q", "dv", "cost", "damping"]  # state of a search
NEXT = [f"{name}_next" for name in STATE]
ROOM = 1.0  # rad or m: distance from a limit within which motion towards it is scaled down


def chase(problem: Problem) -> AnyKernel:
    """Return the kernel that maps (q, dv, cost, damping, data) to the first four after trying the step dv."""

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
    """Return the kernel of a step that also keeps shapes apart; the caller computes their distances.

    It maps (q, dv, cost, damping, data, x, W, b, g, M) to the first four after trying the step dv, and to the next x,
    where x (nq) is q after dv. At x, the rows of the shapes have the cost b, half its gradient is g (n), and half its
    Gauss-Newton Hessian is M (n * n). W is the weight of hard rows.
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
    """Return the symbols of a search: q, dv, cost, damping and target data."""
    q, dv = ca.SX.sym("q", problem.robot.nq), ca.SX.sym("dv", len(problem.free))
    return q, dv, ca.SX.sym("cost"), ca.SX.sym("damping"), ca.SX.sym("data", problem.data_size)


def judged(state: tuple[ca.SX, ca.SX, ca.SX, ca.SX], x: ca.SX, step: ca.SX, new: ca.SX) -> list[ca.SX]:
    """Return the next q, dv, cost and damping, taken from the trial x if its cost does not exceed the cost at q."""
    q, dv, cost, damping = state
    good, bad = (x, step, new, DAMPING_DECREASE * damping), (q, STEP_DECREASE * dv, cost, DAMPING_INCREASE * damping)
    return chosen(new <= cost, good, bad)  # false for NaN


def chosen(better: ca.SX, good: Sequence[ca.SX], bad: Sequence[ca.SX]) -> list[ca.SX]:
    """Return the state after a good or a bad step."""
    return list(ca.cse([ca.densify(ca.if_else(better, a, b)) for a, b in zip(good, bad, strict=True)]))


def damped_step(r: ca.SX, J: ca.SX, D: ca.SX | None, damping: ca.SX) -> ca.SX:
    """Return the damped Gauss-Newton step (n x 1) in coordinates scaled by D (n x 1)."""
    m, n = J.shape
    scaled = J if D is None else ca.horzcat(*(J[:, k] * D[k] for k in range(n)))
    if m <= n:
        return -scaled.T @ Squares(symmetric(scaled @ J.T) + damping * ca.SX.eye(m)).solve(r)
    return normal_step(symmetric(J.T @ J), J.T @ r, D, damping)


def normal_step(H: ca.SX, gradient: ca.SX, D: ca.SX | None, damping: ca.SX) -> ca.SX:
    """Return the step (n x 1) with (D H + damping) step = -D gradient; D^1/2 on both sides makes it symmetric."""
    root = ca.SX.ones(H.size1()) if D is None else ca.sqrt(D)
    scaled = H if D is None else ca.diag(root) @ H @ ca.diag(root)
    return -root * Squares(symmetric(scaled) + damping * ca.SX.eye(H.size1())).solve(root * gradient)


def limit_scaling(problem: Problem, x: ca.SX, gradient: ca.SX) -> ca.SX | None:
    """Return D (n x 1), which decreases to 0 at a limit towards which a descent step moves; None without limits."""
    if not any(np.isfinite(bound).any() for bound in problem.bounds):
        return None
    D = ca.SX.ones(len(problem.free))
    for k, (at, low, high) in enumerate(zip(problem.places_in_q, *problem.bounds, strict=True)):
        if np.isfinite([low, high]).any():
            room = ca.if_else(gradient[k] > 0, x[at] - low, high - x[at])
            D[k] = ca.fmax(ca.fmin(room / ROOM, 1), 0)
    return D


def within(problem: Problem, x: ca.SX, step: ca.SX) -> ca.SX:
    """Return a step (n x 1) with entries of at most MAX_STEP that ends within the limits."""
    step = step * ca.fmin(1, MAX_STEP / (ca.mmax(ca.fabs(step)) + 1e-300))
    for k, (at, low, high) in enumerate(zip(problem.places_in_q, *problem.bounds, strict=True)):
        if np.isfinite(low):
            step[k] = ca.fmax(step[k], low - x[at])
        if np.isfinite(high):
            step[k] = ca.fmin(step[k], high - x[at])
    return step


# Steps that minimise an objective subject to hard rows: sequential quadratic programming as a compiled kernel.
#
# With the objective f (gradient g, Hessian H), rows c that must be zero and their Jacobian A, in coordinates scaled by
# D,
#
#     [H   A^T] [step]   [-g]
#     [A   -e ] [ nu ] = [-c]            e: far below the entries of A H^-1 A^T; it allows dependent rows
#
# (Nocedal and Wright 2006, section 18.1). The merit of a step is f + W |c|, with W above the multipliers nu. If the
# merit does not decrease, the step is shortened. Damping is added to H.

REGULARISATION = 1e-10  # e, as a fraction of the mean diagonal entry
CORRECTIONS = 3  # iterations that remove the residual of the hard rows due to e
MIN_REFINE_DAMPING, INITIAL_REFINE_DAMPING, MAX_REFINE_DAMPING = 1e-6, 1e-3, 1e12
ROUNDING = 1e-14  # relative increase of the merit that is attributed to rounding
MAX_STEPS = 300
CONVERGED_STEP = 1e-11  # rad or m: step size at which a search has converged

OBJECTIVES = ("misses", "posture", "manipulability")


@dataclass(frozen=True, eq=False)
class _Objective:
    value: ca.SX
    gradient: ca.SX
    hessian: ca.SX
    c: ca.SX
    A: ca.SX


def _objective(problem: Problem, name: str, x: ca.SX, data: ca.SX, preferred: ca.SX) -> _Objective:
    """Return the objective and the hard rows at positions x (nq x 1).

    "misses" is the sum of squared errors of the soft targets. "posture" is the squared distance from ``preferred``
    (nq), and "manipulability" is the negative logarithm of the manipulability (Yoshikawa 1985). For these two, all
    targets are hard.
    """
    free, n = problem.free, len(problem.free)
    at = problem.traced(x, data, soft=name != "misses")
    if name == "misses":
        return _Objective(ca.sumsqr(at.r) / 2, at.J.T @ at.r, symmetric(at.J.T @ at.J), at.c, at.A)
    if name == "posture":
        apart = -difference(problem.tree, x, preferred)[free]
        return _Objective(ca.sumsqr(apart) / 2, apart, ca.SX.eye(n), at.r, at.J)
    step = ca.SX.sym("step", n)
    beside = problem.traced(problem.moved(x, step), data, soft=True).J
    gram = beside @ beside.T if beside.size1() <= n else beside.T @ beside
    value = -ca.sum1(ca.log(Squares(symmetric(gram)).D)) / 2
    there = [ca.substitute(item, step, ca.SX.zeros(n, 1)) for item in (value, ca.gradient(value, step))]
    return _Objective(there[0], there[1], ca.SX.eye(n), at.r, at.J)


def kernel(problem: Problem, name: str) -> AnyKernel:
    """Return the kernel that maps (q, dv, f, c, W, damping, data, preferred) to the first six after trying dv."""

    def make() -> ca.Function:
        n, nq = len(problem.free), problem.robot.nq
        q, dv, data = ca.SX.sym("q", nq), ca.SX.sym("dv", n), ca.SX.sym("data", problem.data_size)
        f, c, W, damping, preferred = (*map(ca.SX.sym, ("f", "c", "W", "damping")), ca.SX.sym("wanted", nq))
        x = problem.moved(q, dv)
        at = _objective(problem, name, x, data, preferred)
        size = ca.norm_2(at.c)
        D = limit_scaling(problem, x, at.gradient)
        root = ca.SX.ones(n) if D is None else ca.sqrt(D)
        step, nu = _constrained(at, root, damping)
        before, after = f + W * c, at.value + W * size
        better = after <= before + ROUNDING * (1 + ca.fabs(before))
        good = x, within(problem, x, step), at.value, size, ca.fmax(W, 2 * ca.norm_2(nu)), DAMPING_DECREASE * damping
        bad = q, STEP_DECREASE * dv, f, c, W, DAMPING_INCREASE * damping
        names = ["q", "dv", "f", "c", "W", "damping"]
        inputs, outputs = [q, dv, f, c, W, damping, data, preferred], chosen(better, good, bad)
        return ca.Function("refine", inputs, outputs, [*names, "data", "wanted"], [f"{x}_next" for x in names])

    return problem.kernel("refine", name, make)


def _constrained(at: _Objective, root: ca.SX, damping: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the step (n x 1) and the multipliers of the hard rows."""
    scale = ca.diag(root)
    H = Squares(symmetric(scale @ at.hessian @ scale) + (damping + MIN_REFINE_DAMPING) * ca.SX.eye(root.numel()))
    A, g = at.A @ scale, root * at.gradient
    down, across = H.solve(-g), H.solve(A.T)
    S = symmetric(A @ across)
    count = max(1, at.c.numel())
    S = S + (REGULARISATION * ca.trace(S) / count + 1e-300) * ca.SX.eye(at.c.numel())
    factors, nu = Squares(S), ca.SX.zeros(at.c.numel(), 1)
    u = down
    for _ in range(CORRECTIONS):
        more = factors.solve(A @ u + at.c)
        nu, u = nu + more, u - across @ more
    return root * u, nu


def refined(problem: Problem, name: str, q: Array, data: Array, preferred: Array) -> tuple[Array, Flags]:
    """Return positions (K, nq) that minimise the objective subject to the hard rows, and convergence flags."""
    run, count = kernel(problem, name), len(q)

    def finished(_k: int, state: State, _: Indices) -> Flags:
        still = np.abs(state[1]).max(axis=1, initial=0.0) <= CONVERGED_STEP
        return np.asarray(still | ~(state[5] < MAX_REFINE_DAMPING))

    fill = np.full(count, np.inf), np.zeros(count), np.zeros(count), np.full(count, INITIAL_REFINE_DAMPING)
    state = [q, np.zeros((count, len(problem.free))), *fill, data, preferred]
    best = np.empty_like(q)
    return best, advance(state, lambda s, _: [*run(*s), *s[6:]], finished, MAX_STEPS, {0: best})
