"""Kernels of the look-ahead: a primal-dual interior-point method for the least time over a window of the path.

In a window of intervals of length h, x(s) is a quadratic spline with control points P: for interval k, with the triple
t = (P_k, P_k+1, P_k+2),

    x_k = (t0 + t1) / 2      u_k = (t1 - t0) / (2 h)      w = (t2 - 2 t1 + t0) / (2 h^2), constant in the interval

so all bounds of an interval are functions of its triple. The program is to minimise the time, sum of h / sqrt(x_k),
subject to rows g <= 0: (torque / bound)^2 - 1 at the end of each interval, (rate / bound)^2 - 1 at both ends and in
the middle, t1 / (largest x) - 1 and -t1. With slacks y and multipliers l, a Newton step solves a system with five
diagonals.

At rest x is no spline: with constant jerk J, s = J t^3 / 6, and x = (6 s)^(4/3) J^(2/3) / 4. At the end of one
interval from rest that is u = 2 x / (3 h), and the slope of u is J / sqrt(x) = 2 x / (9 h^2). Both are linear in x, and
equal to those of a spline with P_1 = P_2 / 5 and P_0 = -P_2 / 3. So an interval from or to rest has the triple of these
points. The derivatives of the triple by the free control points are a matrix S for each interval.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.compiler import AnyKernel, compile
from torsor.control.scaling.path_dynamics import inside, loads

FROM_REST = (-1 / 3, 1 / 5, 1.0)  # the triple of an interval from rest, relative to its last point
CHECKED = 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875  # parts of an interval at which loads are checked
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Kernels:
    """The compiled functions of the look-ahead for one number of joints and of intervals.

    ``system`` makes the Newton system of each interval, ``solve`` solves that of the window, ``step`` returns the
    steps of slacks and multipliers, ``rows`` the rows, and ``use`` the largest use of a bound in each interval: at its
    ends and at seven points between them, 1 at the bound.
    """

    rows_count: int
    system: AnyKernel
    solve: AnyKernel
    step: AnyKernel
    rows: AnyKernel
    use: AnyKernel


def row_size(n: int, parts: int) -> int:
    """Return the numbers of an interval: coefficients at both ends, the largest x, a factor, the places of x, and S."""
    return 2 * parts * n + 1 + 1 + 6 + 9


class _Interval:
    """The symbols of one interval, its rows, and their derivatives."""

    def __init__(self, n: int, parts: int):
        self.n, self.m = n, 4 * n + 2
        # Few arrays, since each costs time in every call: numbers of the window, of the interval, and of the search.
        # The loads are multiplied by ``tight``, so that they keep a margin.
        self.common, self.own = ca.SX.sym("common", 3 + n), ca.SX.sym("own", row_size(n, parts))
        self.t, self.slacks = ca.SX.sym("t", 3), ca.SX.sym("slacks", 2 * self.m)
        self.h, self.aim, self.scale, self.ratio = ca.vertsplit(self.common, [0, 1, 2, 3, 3 + n])
        size = parts * n
        split = ca.vertsplit(self.own, [0, size, 2 * size, 2 * size + 1, 2 * size + 2, 2 * size + 8, 2 * size + 17])
        self.before, self.after, self.fastest, self.tight, places, S = split
        self.places, self.S = ca.reshape(places, 3, 2).T, ca.reshape(S, 3, 3).T
        self.y, self.l = ca.vertsplit(self.slacks, self.m)
        h, t = self.h, self.t
        self.parts = ca.vertsplit(self.before, n), ca.vertsplit(self.after, n)
        # 0 at an end at rest, where only the inertia matters, else 1.
        self.moves = 2 * self.places[0, 0], 2 * self.places[1, 2]
        self.is_spline = self.moves[0] * self.moves[1]
        self.by_w = ca.horzcat(1, -2, 1) / (2 * h**2)
        self.by_u = ca.horzcat(-1, 1, 0) / (2 * h), ca.horzcat(0, -1, 1) / (2 * h)
        self.w, self.u = self.by_w @ t, [each @ t for each in self.by_u]
        self.x = [self.places[k, :] @ t for k in (0, 1)]
        at_ends = [[self.parts[k][0], *(self.moves[k] * each for each in self.parts[k][1:])] for k in (0, 1)]
        ends = [loads(at_ends[k], self.tight * self.ratio, self.w, self.u[k], self.x[k]) for k in (0, 1)]
        # Each group: values relative to bounds, their derivatives by (w, u, x), and of these by the triple.
        maps = [ca.vertcat(self.by_w, self.by_u[k], self.places[k, :]) for k in (0, 1)]
        between = self._map(0.5)
        middle = loads(inside(*self.parts, h, 0.5), self.tight * self.ratio, *ca.vertsplit(between @ t))
        self.groups = [
            (self.tight * ends[1][0], [self.tight * slope for slope in ends[1][2]], maps[1]),
            (ends[0][1], ends[0][3], maps[0]),
            (ends[1][1], ends[1][3], maps[1]),
            (self.is_spline * middle[1], [self.is_spline * slope for slope in middle[3]], between),
        ]
        # x is between the control points, so that bounds of these hold everywhere.
        self.plain = ca.vertcat(t[1] / self.fastest - 1, -t[1] / self.fastest)
        self.by_plain = ca.vertcat(ca.horzcat(0, 1, 0), ca.horzcat(0, -1, 0)) / self.fastest
        self.g = ca.vertcat(*(value**2 - 1 for value, _, _ in self.groups), self.plain)

    def _map(self, part: float) -> ca.SX:
        """Return the derivatives (3 x 3) of w, u and x at a part of the interval by its triple."""
        by_x = ca.horzcat((1 - part) ** 2, 1 + 2 * part * (1 - part), part**2) / 2
        return ca.vertcat(self.by_w, (1 - part) * self.by_u[0] + part * self.by_u[1], by_x)

    def _state(self, part: float) -> list[ca.SX]:
        """Return w, u and x at a part of the interval, which may be one from or to rest, with constant jerk."""
        rest, x = 1 - part, self.x[0]  # x at the end that moves; at rest it is the same number
        from_rest = 2 / 9 * part ** (-2 / 3) * x / self.h**2, 2 / 3 * part ** (1 / 3) * x / self.h, part ** (4 / 3) * x
        to_rest = 2 / 9 * rest ** (-2 / 3) * x / self.h**2, -2 / 3 * rest ** (1 / 3) * x / self.h, rest ** (4 / 3) * x
        jerks = [ca.if_else(self.moves[0] == 0, *each) for each in zip(from_rest, to_rest, strict=True)]
        spline = ca.vertsplit(self._map(part) @ self.t)
        return [ca.if_else(self.is_spline > 0, *each) for each in zip(spline, jerks, strict=True)]

    def system(self) -> ca.Function:
        """Return the upper triangle of the Newton matrix (6), the right-hand side (3) and the largest row, in one."""
        H, r = ca.SX.zeros(3, 3), ca.SX.zeros(3, 1)
        stiff = self.l / self.y
        push = self.l + stiff * self.g + self.aim / self.y
        for k, (value, slopes, map_) in enumerate(self.groups):
            part = slice(k * self.n, (k + 1) * self.n)
            weight, force = 4 * stiff[part] * value**2 + 2 * self.l[part], 2 * value * push[part]
            local = ca.SX.zeros(3, 3)
            for i, j in _PAIRS:
                local[i, j] = local[j, i] = ca.dot(weight * slopes[i], slopes[j])
            if k == 0:  # the time, which depends on x at the end of the interval
                local[2, 2] += 0.75 * self.scale * self.h * self.x[1] ** -2.5
            H += map_.T @ local @ map_
            pull = ca.vertcat(*(ca.dot(force, slope) for slope in slopes))
            if k == 0:
                pull[2] -= 0.5 * self.scale * self.h * self.x[1] ** -1.5
            r -= map_.T @ pull
        last = slice(4 * self.n, self.m)
        H += self.by_plain.T @ ca.diag(stiff[last]) @ self.by_plain
        r -= self.by_plain.T @ push[last]
        H, r = self.S.T @ H @ self.S, self.S.T @ r
        found = ca.vertcat(*(H[i, j] for i, j in _PAIRS), r, ca.mmax(self.g))
        return self._function("system", [self.slacks], found)

    def step(self) -> ca.Function:
        """Return the steps of y and l, and the largest of -dy / y and of -dl / l, in one."""
        z = ca.SX.sym("z", 3)
        d = self.S @ z
        changes = []
        for value, slopes, map_ in self.groups:
            local = map_ @ d
            changes.append(2 * value * sum((slopes[i] * local[i] for i in range(3)), start=ca.SX(0)))
        dy = -(self.g + self.y) - ca.vertcat(*changes, self.by_plain @ d)
        dl = (self.aim - self.l * dy) / self.y - self.l
        return self._function(
            "step", [self.slacks, z], ca.vertcat(dy, dl, ca.mmax(-dy / self.y), ca.mmax(-dl / self.l))
        )

    def rows(self) -> ca.Function:
        return self._function("rows", [], self.g)

    def use(self) -> ca.Function:
        """Return the largest relative torque, rate and speed at both ends and between; infinite where x < 0."""
        worst = [ca.fabs(value) for value, _, _ in self.groups]
        for part in CHECKED:
            found = loads(inside(*self.parts, self.h, part), self.ratio, *self._state(part))[:2]
            worst += [self.tight * ca.fabs(value) for value in found]
        most = ca.fmax(ca.mmax(ca.vertcat(*worst)), ca.sqrt(ca.fmax(self.t[1] / self.fastest, 0)))
        return self._function("use", [], ca.if_else(ca.fmin(*self.x) > 0, most, np.inf))

    def _function(self, name: str, more: list[ca.SX], result: ca.SX) -> ca.Function:
        return ca.Function(name, [self.common, self.own, self.t, *more], [ca.densify(ca.cse(result))])


def _solve(count: int) -> ca.Function:
    """Return the solution (count + 2) of the system of a window, made of the systems of its intervals (count, 10)."""
    systems = ca.SX.sym("systems", count, 10)
    size = count + 2
    band = [[ca.SX(0)] * size for _ in range(3)]  # the diagonals
    right = [ca.SX(0)] * size
    for k in range(count):
        for entry, (i, j) in enumerate(_PAIRS):
            band[j - i][k + i] += systems[k, entry]
        for i in range(3):
            right[k + i] += systems[k, 6 + i]
    D, inverse, L1, L2, z = ([ca.SX(0)] * size for _ in range(5))
    for i in range(size):
        # Control points that are no variables have empty rows.
        D[i] = ca.if_else(band[0][i] == 0, 1, band[0][i])
        z[i], below = right[i], band[1][i]
        if i > 0:
            D[i] -= L1[i - 1] ** 2 * D[i - 1]
            z[i] -= L1[i - 1] * z[i - 1]
            below -= L1[i - 1] * D[i - 1] * L2[i - 1]
        if i > 1:
            D[i] -= L2[i - 2] ** 2 * D[i - 2]
            z[i] -= L2[i - 2] * z[i - 2]
        inverse[i] = 1 / D[i]
        L1[i], L2[i] = below * inverse[i], band[2][i] * inverse[i]
    for i in reversed(range(size)):
        z[i] = z[i] * inverse[i]
        if i < size - 1:
            z[i] -= L1[i] * z[i + 1]
        if i < size - 2:
            z[i] -= L2[i] * z[i + 2]
    return ca.Function("solve", [systems], [ca.vertcat(*z)])


def kernels(n: int, parts: int, count: int) -> Kernels:
    """Return the kernels for n joints, so many parts of their coefficients, and windows of ``count`` intervals."""
    interval = _Interval(n, parts)
    functions = interval.system(), _solve(count), interval.step(), interval.rows(), interval.use()
    return Kernels(interval.m, *(compile(each) for each in functions))


def free_points(count: int, start: str, end: str) -> Array:
    """Return, for each interval, the places of x in its triple (2 x 3) and S (3 x 3), as rows (count, 15).

    ``start`` is "rest", "given" (the first two control points are) or "free" (any x, with u = 0); ``end`` is "rest"
    or "free".
    """
    S, places = np.tile(np.eye(3), (count, 1, 1)), np.tile([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], (count, 1, 1))
    if start == "given":
        S[0, :2], S[1, 0] = 0.0, 0.0
    elif start == "rest":
        S[0], S[1, 0] = 0.0, 0.0
        S[0, :, 2], S[1, 0, 1] = FROM_REST, FROM_REST[1]
        places[0, 0] = places[0, 1]
    else:
        S[0, 0] = S[0, 1]
    if end == "rest":
        S[-1], S[-2, 2] = 0.0, 0.0
        S[-1, :, 0], S[-2, 2, 1] = FROM_REST[::-1], FROM_REST[1]
        places[-1, 1] = places[-1, 0]
    else:
        S[-1, 2] = S[-1, 1]
    return np.hstack([places.reshape(count, 6), S.reshape(count, 9)])
