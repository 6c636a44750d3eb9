"""Steps that keep hard rows while an objective is minimised: sequential quadratic programming, as a compiled kernel.

With the objective f (gradient g, Hessian H), rows c that must be zero and their Jacobian A, in coordinates scaled by D,

    [H   A^T] [step]   [-g]
    [A   -e ] [ nu ] = [-c]            e: far below the entries of A H^-1 A^T, so that dependent rows do no harm

(Nocedal and Wright 2006, section 18.1). Steps are judged by f + W |c|, with W above the multipliers nu, and shortened
where that does not fall. Damping is added to H.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.configuration import difference
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.robot.inverse_kinematics.problem import Problem
from torsor.robot.inverse_kinematics.step import HEAVIER, LIGHTER, SHORTER, limit_scaling, within

DEPENDENT = 1e-10  # e, as a fraction of the mean diagonal entry
CORRECTIONS = 3  # solutions of what e leaves of the hard rows
MIN_REFINE_DAMPING, INITIAL_REFINE_DAMPING, MAX_REFINE_DAMPING = 1e-6, 1e-3, 1e12
ROUNDING = 1e-14  # by which rounding may raise the merit
MOST_STEPS = 300
STILL = 1e-11  # rad or m: of a step, where a search has arrived

OBJECTIVES = ("misses", "posture", "manipulability")


@dataclass(frozen=True, eq=False)
class _Objective:
    value: ca.SX
    gradient: ca.SX
    hessian: ca.SX
    c: ca.SX
    A: ca.SX


def _objective(problem: Problem, name: str, x: ca.SX, data: ca.SX, wanted: ca.SX) -> _Objective:
    """Return the objective and the hard rows at positions x (nq x 1).

    "misses": the squared misses of targets that are not hard. "posture": the squared distance from ``wanted`` (nq), and
    "manipulability": minus its logarithm (Yoshikawa 1985), both while all targets are met.
    """
    free, n = problem.free, len(problem.free)
    at = problem.traced(x, data, soft=name != "misses")
    if name == "misses":
        return _Objective(ca.sumsqr(at.r) / 2, at.J.T @ at.r, symmetric(at.J.T @ at.J), at.c, at.A)
    if name == "posture":
        apart = -difference(problem.tree, x, wanted)[free]
        return _Objective(ca.sumsqr(apart) / 2, apart, ca.SX.eye(n), at.r, at.J)
    step = ca.SX.sym("step", n)
    beside = problem.traced(problem.moved(x, step), data, soft=True).J
    gram = beside @ beside.T if beside.size1() <= n else beside.T @ beside
    value = -ca.sum1(ca.log(Squares(symmetric(gram)).D)) / 2
    there = [ca.substitute(each, step, ca.SX.zeros(n, 1)) for each in (value, ca.gradient(value, step))]
    return _Objective(there[0], there[1], ca.SX.eye(n), at.r, at.J)


def kernel(problem: Problem, name: str) -> AnyKernel:
    """Return the kernel (q, dv, f, c, W, damping, data, wanted) -> the first six after a trial of the step dv.

    ``c`` is the size of the hard rows. A first call has dv = 0 and an infinite f.
    """

    def make() -> ca.Function:
        n, nq = len(problem.free), problem.robot.nq
        q, dv, data = ca.SX.sym("q", nq), ca.SX.sym("dv", n), ca.SX.sym("data", problem.data_size)
        f, c, W, damping, wanted = (*map(ca.SX.sym, ("f", "c", "W", "damping")), ca.SX.sym("wanted", nq))
        x = problem.moved(q, dv)
        at = _objective(problem, name, x, data, wanted)
        size = ca.norm_2(at.c)
        D = limit_scaling(problem, x, at.gradient)
        root = ca.SX.ones(n) if D is None else ca.sqrt(D)
        step, nu = _constrained(at, root, damping)
        before, after = f + W * c, at.value + W * size
        better = after <= before + ROUNDING * (1 + ca.fabs(before))
        good = x, within(problem, x, step), at.value, size, ca.fmax(W, 2 * ca.norm_2(nu)), LIGHTER * damping
        bad = q, SHORTER * dv, f, c, W, HEAVIER * damping
        outputs = ca.cse([ca.densify(ca.if_else(better, a, b)) for a, b in zip(good, bad, strict=True)])
        names = ["q", "dv", "f", "c", "W", "damping"]
        inputs = [q, dv, f, c, W, damping, data, wanted]
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
    S = S + (DEPENDENT * ca.trace(S) / count + 1e-300) * ca.SX.eye(at.c.numel())
    factors, nu = Squares(S), ca.SX.zeros(at.c.numel(), 1)
    u = down
    for _ in range(CORRECTIONS):
        more = factors.solve(A @ u + at.c)
        nu, u = nu + more, u - across @ more
    return root * u, nu


def refined(problem: Problem, name: str, q: Array, data: Array, wanted: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return positions (K, nq) that minimise the objective while the hard rows hold, and which searches arrived."""
    run, count = kernel(problem, name), len(q)
    best, arrived, todo = q.copy(), np.zeros(count, dtype=bool), np.arange(count)
    fill = np.full(count, np.inf), np.zeros(count), np.zeros(count), np.full(count, INITIAL_REFINE_DAMPING)
    state = [q, np.zeros((count, len(problem.free))), *fill]
    for _ in range(MOST_STEPS):
        if not len(todo):
            break
        state = list(run(*state, data[todo], wanted[todo]))
        best[todo] = state[0]
        still = (np.abs(state[1]).max(axis=1, initial=0.0) <= STILL) | ~(state[5] < MAX_REFINE_DAMPING)
        arrived[todo[still]] = True
        stay = np.flatnonzero(~still)
        todo, state = todo[stay], [each[stay] for each in state]
    return best, arrived
