"""The quadratic program of a receding horizon, solved by compiled functions of one step.

With z = (q, h v) and b = h^2 a, the motion of n coordinates in a step of length h with the acceleration a is

    z_next = A z + G b,    A = [1 1; 0 1],    G = [1/2; 1],    tau = D x + M b + e

x and b are errors from a target, so x_next = A x + G b + (d, 0), and the objective is a weighted sum of their squares.
A step has 3 n bounded values: n torques, and z at its end. Torque bounds are hard, and violated bounds of z are
penalised.

A Riccati recursion eliminates the steps, from the last to the first. A torque at its bound is an equation with a
multiplier. Bounds join or leave the active set until all signs are correct. The initial set is that of the previous
program: one pass is sufficient if it is correct, and a few passes if it is nearly correct. Otherwise, a primal-dual
barrier method approaches the optimum and determines a new set.
"""

from functools import cache
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from torsor.compiler import compile
from torsor.compiler.repeat import SHORT, Call, Chain

NO_BOUND = 1e9  # represents an infinite bound
TOLERANCE = 1e-10  # absolute and relative tolerance of bounds, so that rounding does not change the active set
PATIENCE = 2  # passes of the active-set method that may fail to reduce the number of wrong signs
MU_RATIO, MU_ENDS = 0.1, (1e-6, 1e-9, 1e-12, 1e-15)  # complementarity: factor per pass, and value after each attempt
BARRIER_PASSES = 20  # largest number of barrier passes per attempt; ten are typical
MAX_WIDTH = 10.0  # largest distance from a bound of z at the start of the barrier method
MAX_FRACTION = 0.99  # largest fraction of the way to a bound in one pass of the barrier method

# Functions of one step. ``rows`` describes the bounds of its values: an ``active`` torque satisfies tau - goal = soft *
# multiplier, and x_next has the cost stiff (x_next - goal)^2 / 2. ``limits`` are the bounds low and high (3 n each),
# the weights of b (n) and x (2 n), and the penalties of z (2 n).


def backward(n: int) -> ca.Function:
    """Return the cost from a step onwards, as a function of its initial state, and the factors of the step.

    The cost is x^T P x / 2 + p^T x, with the lower triangle of P and p packed; the weight of x itself is not included.
    """
    inputs = symbols(n, "cost_next", "model", "rows", "limits")
    cost_next, packed, rows, limits = inputs.values()
    D, M, e, d = _model_parts(packed, n)
    _, _, weight, state_weight, _ = _limits_parts(limits, n)
    active, soft, goal, stiff, state_goal = ca.vertsplit(rows, [0, n, 2 * n, 3 * n, 5 * n, 7 * n])
    P = ca.tril2symm(ca.SX(ca.Sparsity.lower(2 * n), cost_next[: -2 * n])) + ca.diag(state_weight + stiff)
    Pq, Pv, Pvv = P[:n, :n], P[:n, n:], P[n:, n:]
    g = P[:, :n] @ d + cost_next[-2 * n :] - stiff * state_goal
    # Over b: b^T S b / 2 + b^T (L x + l), with tau = D x + M b + e.
    S = ca.diag(weight) + Pq / 4 + (Pv + Pv.T) / 2 + Pvv
    Ll = ca.horzcat(Pq / 2 + Pv.T, Pq / 2 + Pv / 2 + Pv.T + Pvv, g[:n] / 2 + g[n:])
    K, pivots = _factorised(S)
    Y, Ym = _lower_solved(K, Ll), _lower_solved(K, M.T)
    Yr = pivots * Y
    T = active * (Ym.T @ (pivots * Ym)) * ca.repmat(active.T, n, 1) + ca.diag(soft)
    Kt, pivots_t = _factorised(T)
    X = _lower_solved(Kt, active * (ca.horzcat(D, e - goal) - Ym.T @ Yr))
    Xr = pivots_t * X
    change = X.T @ Xr - Y.T @ Yr
    before = ca.vertcat(ca.horzcat(Pq, Pq + Pv), ca.horzcat(Pq + Pv.T, Pq + Pv + Pv.T + Pvv)) + change[:-1, :-1]
    lower = ca.project(before, ca.Sparsity.lower(2 * n)).nz[:]
    cost = ca.vertcat(lower, ca.vertcat(g[:n], g[:n] + g[n:]) + change[:-1, -1])
    factors = ca.veccat(_below(K), pivots, Ym, Y, _below(Kt), pivots_t, X)
    return packed_function("backward", inputs, {"cost": cost, "factors": factors})


def forward(n: int) -> ca.Function:
    """Return the state at the end of a step, and its torques with their multipliers, divided by the pivots.

    A multiplier divided by its pivot is approximately the torque by which the bound would otherwise be exceeded.
    """
    inputs = symbols(n, "z", "model", "factors", "target", "target_next")
    z, packed, factors, target, target_next = inputs.values()
    D, M, e, d = _model_parts(packed, n)
    sizes = np.cumsum([0, n * (n - 1) // 2, n, n * n, n * (2 * n + 1), n * (n - 1) // 2, n, n * (2 * n + 1)]).tolist()
    below, pivots, Ym, Y, below_t, pivots_t, X = ca.vertsplit(factors, sizes)
    Ym, Y, X = ca.reshape(Ym, n, n), ca.reshape(Y, n, -1), ca.reshape(X, n, -1)
    x = z - target
    multiplier = _upper_solved(below_t, pivots_t * (X @ ca.vertcat(x, 1)))
    b = -_upper_solved(below, pivots * (Y @ ca.vertcat(x, 1) + Ym @ multiplier))
    z_next = target_next + ca.vertcat(x[:n] + x[n:] + b / 2 + d, x[n:] + b)
    return packed_function(
        "forward", inputs, {"z_next": z_next, "tau": M @ b + D @ x + e, "excess": multiplier / pivots_t}
    )


def pinned(n: int) -> ca.Function:
    """Return the rows of an active set. ``flags`` (3 n) are 1 at upper bounds, -1 at lower ones, and otherwise 0."""
    inputs = symbols(n, "flags", "target_next", "limits")
    flags, target_next, limits = inputs.values()
    low, high, _, _, penalty = _limits_parts(limits, n)
    active = ca.fabs(flags)
    goal = active * (ca.if_else(flags > 0, high, low) - ca.vertcat(ca.SX.zeros(n, 1), target_next))
    rows = ca.vertcat(active[:n], 1 - active[:n], goal[:n], penalty * active[n:], goal[n:])
    return packed_function("pinned", inputs, {"rows": rows})


def signs(n: int) -> ca.Function:
    """Return the active set with all wrong signs corrected, from the solution for an active set."""
    inputs = symbols(n, "flags", "z_next", "tau", "excess", "limits")
    flags, z_next, tau, excess, limits = inputs.values()
    low, high, *_ = _limits_parts(limits, n)
    value = ca.vertcat(tau, z_next)
    over, under = (TOLERANCE * (1 + ca.fabs(bound)) for bound in (high, low))
    above, below = flags > 0, flags < 0  # the tolerance favours the current set
    beyond = (value > high + ca.if_else(above, -over, over)) - (value < low - ca.if_else(below, -under, under))
    kept = flags[:n] * (flags[:n] * excess > -ca.if_else(above, over, under)[:n])
    new = ca.vertcat(ca.if_else(flags[:n] == 0, beyond[:n], kept), beyond[n:])
    return packed_function("signs", inputs, {"new": new})


def barrier(n: int) -> ca.Function:
    """Return the rows of a pass of the barrier method with the target complementarity ``mu``.

    ``inner`` contains the distances t from the upper and lower bounds, followed by their multipliers m. With the
    compliance c of a penalty, t = high - value + c m, and Newton's method for t m = mu gives m_next = (value_next -
    high + (mu + t m) / m) / (t / m + c). Both sides of a row together act as one condition with a goal and a softness.
    """
    inputs = symbols(n, "inner", "mu", "target_next", "limits")
    inner, mu, target_next, limits = inputs.values()
    goals, softness = _barrier_sides(inner, mu, limits, n)
    soft = 1 / (1 / softness[0] + 1 / softness[1])
    goal = soft * (goals[0] / softness[0] + goals[1] / softness[1])
    one = ca.SX.ones(n, 1)
    return packed_function(
        "barrier", inputs, {"rows": ca.vertcat(one, soft[:n], goal[:n], 1 / soft[n:], goal[n:] - target_next)}
    )


def advance(n: int) -> ca.Function:
    """Return the Newton step of ``inner``, and the largest fraction that keeps distances and multipliers positive."""
    inputs = symbols(n, "inner", "mu", "z_next", "tau", "limits")
    inner, mu, z_next, tau, limits = inputs.values()
    low, high, _, _, penalty = _limits_parts(limits, n)
    (upper, lower), softness = _barrier_sides(inner, mu, limits, n)
    value, compliance = ca.vertcat(tau, z_next), ca.vertcat(ca.SX.zeros(n, 1), 1 / penalty)
    m = ca.vertcat((value - upper) / softness[0], (lower - value) / softness[1])
    t = ca.vertcat(high - value, value - low) + ca.repmat(compliance, 2, 1) * m
    step = ca.vertcat(t, m) - inner
    reach = ca.mmin(ca.if_else(step < 0, -MAX_FRACTION * inner / step, 1))
    return packed_function("advance", inputs, {"step": step, "reach": ca.fmin(1, reach)})


def _barrier_sides(inner: ca.SX, mu: ca.SX, limits: ca.SX, n: int) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return goals and softness of the upper and lower sides."""
    low, high, _, _, penalty = _limits_parts(limits, n)
    compliance = ca.vertcat(ca.SX.zeros(n, 1), 1 / penalty)
    t_high, t_low, m_high, m_low = ca.vertsplit(inner, 3 * n)
    goals = [high - t_high - mu / m_high, low + t_low + mu / m_low]
    return goals, [t_high / m_high + compliance, t_low / m_low + compliance]


def sizes(n: int) -> dict[str, int]:
    """Return the lengths of the arrays of a step."""
    result = {"cost": n * (2 * n + 3), "model": 3 * n * n + 2 * n, "factors": n * (6 * n + 3), "limits": 11 * n}
    result |= {
        "flags": 3 * n,
        "new": 3 * n,
        "rows": 7 * n,
        "inner": 12 * n,
        "step": 12 * n,
        "z": 2 * n,
        "target": 2 * n,
    }
    return result | {"tau": n, "excess": n, "mu": 1, "reach": 1}


def symbols(n: int, *names: str) -> dict[str, ca.SX]:
    """Return symbols of arrays by name; NAME_next is the array of the next step."""
    lengths = sizes(n)
    return {name: ca.SX.sym(name, lengths[name.removesuffix("_next")]) for name in names}


def packed_function(name: str, inputs: dict[str, ca.SX], outputs: dict[str, ca.SX]) -> ca.Function:
    """Return a function of dense arrays, with common subexpressions computed once."""
    results = ca.cse([ca.densify(each) for each in outputs.values()])
    return ca.Function(name, list(inputs.values()), results, list(inputs), list(outputs))


def _model_parts(packed: ca.SX, n: int) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    D, M, e, d = ca.vertsplit(packed, [0, 2 * n * n, 3 * n * n, 3 * n * n + n, 3 * n * n + 2 * n])
    return ca.reshape(D, n, 2 * n), ca.reshape(M, n, n), e, d


def _limits_parts(limits: ca.SX, n: int) -> list[ca.SX]:
    """Return the bounds low and high (3 n), the weights of b (n) and z (2 n), and the penalties of z (2 n)."""
    parts: list[ca.SX] = ca.vertsplit(limits, [0, 3 * n, 6 * n, 7 * n, 9 * n, 11 * n])
    return parts


def _factorised(A: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return K (unit lower triangular) and the inverse pivots of A = K diag(pivots)^-1 K^T, from its lower triangle."""
    n, A, K, pivots = A.shape[0], ca.SX(A), ca.SX.eye(A.shape[0]), ca.SX(A.shape[0], 1)
    for j in range(n):
        pivots[j] = 1 / A[j, j]
        for i in range(j + 1, n):
            K[i, j] = A[i, j] * pivots[j]
            for k in range(j + 1, i + 1):
                A[i, k] -= A[i, j] * K[k, j]
    return K, pivots


def _lower_solved(K: ca.SX, B: ca.SX) -> ca.SX:
    """Return K^-1 B for a unit lower triangular K."""
    result: list[ca.SX] = []
    for i, row in enumerate(ca.vertsplit(B)):
        result.append(row - sum((K[i, j] * each for j, each in enumerate(result)), ca.SX.zeros(1, row.shape[1])))
    return ca.vertcat(*result)


def _upper_solved(below: ca.SX, y: ca.SX) -> ca.SX:
    """Return K^-T y for a unit lower triangular K; ``below`` contains its columns below the diagonal."""
    n, result, end = y.shape[0], ca.SX(y), below.shape[0]
    for i in range(n - 2, -1, -1):
        column, end = below[end - (n - 1 - i) : end], end - (n - 1 - i)
        result[i] -= ca.dot(column, result[i + 1 :])
    return result


def _below(K: ca.SX) -> ca.SX:
    return ca.vertcat(*(K[j + 1 :, j] for j in range(K.shape[0] - 1)), ca.SX(0, 1))


@cache
def functions(n: int) -> dict[str, ca.Function]:
    """Return the functions of a step for n coordinates, by name."""
    return {each.__name__: each(n) for each in (backward, forward, pinned, signs, barrier, advance)}


@cache
def _kernels(n: int) -> dict[str, Any]:
    one_by_one = ("backward", "forward")
    return {name: compile(each, width=SHORT if name in one_by_one else None) for name, each in functions(n).items()}


class HorizonProgram:
    """Quadratic programs over N steps of n coordinates; ``arrays`` contains their data and solution.

    The data are ``limits``, ``model`` (D, M, e and d, packed), ``target``, the first row of ``z``, and the last row of
    ``cost``. The solution is ``z`` (N + 1, 2 n) and ``tau`` (N, n). ``flags`` (N, 3 n) is the active set: 1 at upper
    bounds, -1 at lower ones, and otherwise 0. The next program starts from it.
    """

    def __init__(self, n: int, N: int):
        shared, nodes = ("limits", "mu"), ("z", "target", "cost")
        self._sizes, self._steps = sizes(n), N
        lengths = {name: 1 if name in shared else N + (name in nodes) for name in self._sizes}
        ends = np.cumsum([0, *(lengths[name] * self._sizes[name] for name in lengths)]).tolist()
        self._block = np.zeros(ends[-1])
        parts = zip(lengths.items(), pairwise(ends), strict=True)
        self.arrays = {name: self._block[slice(*place)].reshape(count, -1) for (name, count), place in parts}
        kernels = _kernels(n)
        backwards, forwards = self._call(kernels["backward"], True), self._call(kernels["forward"], True)
        backwards = Call(backwards.kernel, *([each[::-1] for each in arrays] for arrays in backwards[1:]))
        before, after = (self._call(kernels[name]) for name in ("pinned", "signs"))
        self._pinned = Chain(self._block, [before, backwards, forwards, after])
        before, after = (self._call(kernels[name]) for name in ("barrier", "advance"))
        self._barrier = Chain(self._block, [before, backwards, forwards, after])

    def _call(self, kernel: Any, in_turn: bool = False) -> Call:
        """Return a call of a function for all steps, in parallel or one after another."""
        found = []
        for title in (*kernel.signature.names_in, *kernel.signature.names_out):
            name = title.removesuffix("_next")
            array = self.arrays[name] if self._sizes[name] > 1 else self.arrays[name][:, 0]
            if len(array) == 1:
                array = np.broadcast_to(array, (self._steps, *array.shape[1:]))
            array = array[: self._steps] if name == title else array[1:]
            found.append(array[:, None] if in_turn else array[None])
        return Call(kernel, found[: len(kernel.inputs)], found[len(kernel.inputs) :])

    def solve(self) -> tuple[bool, int]:
        """Solve the program; return whether all signs are correct, and the number of passes.

        If a sign is wrong, the solution comes from the barrier method and is near the optimum.
        """
        flags, new, passes, start = self.arrays["flags"], self.arrays["new"], 0, 0.0
        for end in MU_ENDS:
            fewest, patience = flags.size + 1, PATIENCE
            while patience >= 0:
                self._pinned(self._block)
                passes += 1
                wrong = int(np.count_nonzero(new != flags))
                if not wrong:
                    return True, passes
                patience -= int(wrong >= fewest)
                fewest = min(wrong, fewest)
                flags[:] = new
            start, more = self._approach(start, end)
            passes += more
        return False, passes

    def _approach(self, start: float, end: float) -> tuple[float, int]:
        """Decrease the relative complementarity from ``start`` to ``end``, and set the flags to the active set there.

        Restart the barrier method if ``start`` is 0. Return the final value and the number of passes.
        """
        arrays = self.arrays
        inner, n = arrays["inner"], arrays["tau"].shape[1]
        low, high, _, weight, penalty = np.split(arrays["limits"][0], np.cumsum([3 * n, 3 * n, n, 2 * n]))
        t, m = inner[:, : 6 * n], inner[:, 6 * n :]
        width = (high - low) / 2
        width[n:] = np.minimum(width[n:], MAX_WIDTH)
        if start == 0:
            start = float(((arrays["z"][0] - arrays["target"]) ** 2 @ weight).mean() + MU_ENDS[0] * weight.sum())
            t[:], m[:] = np.tile(width, 2), start / np.tile(width, 2)
        for passes in range(BARRIER_PASSES + 1):
            mu = float((t * m).mean())
            if mu <= end * start or passes == BARRIER_PASSES:
                break
            arrays["mu"][:] = MU_RATIO * mu
            self._barrier(self._block)
            inner += arrays["reach"].min() * arrays["step"]
        # Multipliers of active bounds grow as their distances shrink. With a penalty, t = m / penalty at the bound.
        ratio = np.concatenate([start / width[:n] ** 2, penalty])
        is_active = (m > np.tile(ratio, 2) * t).reshape(len(t), 2, 3 * n)
        arrays["flags"][:] = np.subtract(*is_active.swapaxes(0, 1), dtype=float)
        return start, passes
