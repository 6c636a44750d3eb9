"""The look-ahead: search for the fastest timing over a window of path samples, in small steps."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import casadi as ca
import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.linalg.lapack import dgbsv

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel, compile
from torsor.control.scaling.path_dynamics import CHECKED_FRACTIONS, loads

# The Newton system of a window is pentadiagonal. It is the sum of the systems of the intervals and is solved row by
# row.
#
# Control point i appears in the systems of intervals i - 2, i - 1 and i. With A = L D L^T, where L has ones on its
# diagonal and L1, L2 below, a forward sweep computes D, L1, L2 and z = L^-1 b for each row, and a backward sweep
# computes the solution x_i = z_i / D_i - L1_i x_i+1 - L2_i x_i+2.

SYSTEM_SIZE = 10  # numbers per interval: upper triangle of its matrix (6), right-hand side (3), and one more


def solution(count: int) -> ca.Function:
    """Return the solution (count + 2) of a window's system from the systems (count, 10) of its intervals.

    For windows of a few hundred intervals, this function takes less time than ``solve``.
    """
    systems, none = ca.SX.sym("systems", count, SYSTEM_SIZE), ca.SX.zeros(2, SYSTEM_SIZE)
    intervals = [ca.horzsplit(row) for row in ca.vertsplit(ca.vertcat(none, systems, none))]
    rows = [(ca.SX(1), ca.SX(0), ca.SX(0), ca.SX(0))] * 2  # D, L1, L2 and z
    for first, second, third in zip(intervals, intervals[1:], intervals[2:], strict=False):
        (D2, _, L22, z2), (D1, L11, L21, z1) = rows[-2:]
        diagonal = third[0] + second[3] + first[5]
        # Control points that are not variables have empty rows.
        D = ca.if_else(diagonal == 0, 1, diagonal) - L11**2 * D1 - L22**2 * D2
        below, inverse = third[1] + second[4] - L11 * D1 * L21, 1 / D
        z = third[6] + second[7] + first[8] - L11 * z1 - L22 * z2
        rows.append((D, below * inverse, third[2] * inverse, z))
    unknowns = [ca.SX(0), ca.SX(0)]
    for D, L1, L2, z in reversed(rows[2:]):
        unknowns.insert(0, z / D - L1 * unknowns[0] - L2 * unknowns[1])
    return ca.Function("solve", [systems], [ca.vertcat(*unknowns[:-2])])


def solve(systems: Array) -> Array:
    """Return the solution (count + 2,) of a long window's system from the systems (count, 10) of its intervals."""
    count, columns = len(systems), systems.T
    bands, right = np.zeros((7, count + 2)), np.zeros(count + 2)  # LAPACK stores the diagonals from row 2 on
    for k, diagonal in enumerate((0, 3, 5)):
        right[k : k + count] += columns[6 + k]
        bands[4, k : k + count] += columns[diagonal]
    bands[4, bands[4] == 0] = 1.0  # control points that are not variables have empty rows
    bands[5, :count], bands[6, :count] = columns[1], columns[2]
    bands[5, 1 : count + 1] += columns[4]
    bands[3, 1:], bands[2, 2:] = bands[5, :-1], bands[6, :-2]
    result: Array = dgbsv(2, 2, bands, right)[2]
    return result


# Kernels of the look-ahead: a primal-dual interior-point method for the shortest time over a window of the path.
#
# In a window of intervals of length h, x(s) is a quadratic spline with control points P: for interval k, with the
# triple t = (P_k, P_k+1, P_k+2),
#
#     x_k = (t0 + t1) / 2      u_k = (t1 - t0) / (2 h)      w = (t2 - 2 t1 + t0) / (2 h^2), constant in the interval
#
# so all bounds of an interval are functions of its triple. The program minimises the time, the sum of h / sqrt(x_k),
# subject to rows g <= 0: (torque / bound)^2 - 1 at the end of each interval, (rate / bound)^2 - 1 at both ends and in
# the middle, t1 / (largest x) - 1 and -t1. With slacks y and multipliers l, a Newton step solves a pentadiagonal
# system.
#
# At rest, x is not a spline. With constant jerk J, s = J t^3 / 6 and x = (6 s)^(4/3) J^(2/3) / 4. At the end of one
# interval from rest, u = 2 x / (3 h), and the slope of u is J / sqrt(x) = 2 x / (9 h^2). Both are linear in x and equal
# those of a spline with P_1 = P_2 / 5 and P_0 = -P_2 / 3, so an interval from or to rest has the triple of these
# points. The derivatives of the triple with respect to the free control points are a matrix S for each interval.

FROM_REST = (-1 / 3, 1 / 5, 1.0)  # the triple of an interval from rest, relative to its last point
FIRST_SLACK = 0.2  # smallest initial slack of rows that the initial guess violates, or nearly
FIRST_DISTANCE = 1e-3  # the same for the bounds of x itself
COMMON_SIZE = 5  # numbers of a search before the bound ratios: h, aim, time scale, primal and dual step
INTERVAL_SIZE = 17  # numbers of an interval: the largest x, a load factor, the places of x (6) and S (9)
ENDING_SIZE = 6  # numbers at the end of an interval's step
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Kernels:
    """The compiled functions of the look-ahead for one number of joints.

    ``start`` computes the initial slacks and multipliers. ``system`` applies the last step and computes the Newton
    system of each interval, ``solve`` solves the system of the window, and ``step`` returns the steps of slacks and
    multipliers. ``use`` returns the largest ratio to a bound in each interval, at its ends and between them. The data
    that ``system`` passes to ``step`` and to the next ``system`` are one row of ``size`` numbers per interval.
    """

    rows_count: int
    size: int
    start: AnyKernel
    system: AnyKernel
    solve: Callable[[Array], Array]
    step: AnyKernel
    use: AnyKernel


class _Interval:
    """The symbols of one interval, its rows, and their derivatives."""

    def __init__(self, n: int, parts: int):
        self.n, self.m, self.size = n, 4 * n + 2, parts * n
        # Few arrays, because each takes time in every call: data of the search, of the samples and of the interval.
        # Loads are multiplied by ``tight`` to keep a margin.
        self.common, self.own, self.t = (
            ca.SX.sym("common", COMMON_SIZE + n),
            ca.SX.sym("own", INTERVAL_SIZE),
            ca.SX.sym("t", 3),
        )
        self.near = ca.SX.sym("near", 3 * self.size)
        self.h, self.aim, self.scale, self.primal, self.dual, self.ratio = ca.vertsplit(
            self.common, [0, 1, 2, 3, 4, COMMON_SIZE, COMMON_SIZE + n]
        )
        self.fastest, self.tight, places, S = ca.vertsplit(self.own, [0, 1, 2, 8, INTERVAL_SIZE])
        self.places, self.S = ca.reshape(places, 3, 2).T, ca.reshape(S, 3, 3).T
        before, middle, after = (ca.vertsplit(block, n) for block in ca.vertsplit(self.near, self.size))
        h, t = self.h, self.t
        # 0 at an end at rest, where only inertia has an effect, otherwise 1.
        self.moves = 2 * self.places[0, 0], 2 * self.places[1, 2]
        self.is_spline = self.moves[0] * self.moves[1]
        self.by_w = ca.horzcat(1, -2, 1) / (2 * h**2)
        self.by_u = ca.horzcat(-1, 1, 0) / (2 * h), ca.horzcat(0, -1, 1) / (2 * h)
        self.w, self.u = self.by_w @ t, [gradient @ t for gradient in self.by_u]
        self.x = [self.places[k, :] @ t for k in (0, 1)]
        ends = zip(self.moves, (before, after), strict=True)
        at_ends = [[loads_at_end[0], *(moves * part for part in loads_at_end[1:])] for moves, loads_at_end in ends]
        self.ends = [loads(at_ends[k], self.ratio, self.w, self.u[k], self.x[k]) for k in (0, 1)]
        # Each group: relative values, their Jacobian in (w, u, x), and the Jacobian of (w, u, x) in the triple.
        maps = [ca.vertcat(self.by_w, self.by_u[k], self.places[k, :]) for k in (0, 1)]
        between = self._map(0.5)
        _, rate, _, by_rate = loads(middle, self.ratio, *ca.vertsplit(between @ t))
        first, last = self.ends
        self.groups = [
            (last[0], last[2], maps[1]),
            (first[1], first[3], maps[0]),
            (last[1], last[3], maps[1]),
            (self.is_spline * rate, [self.is_spline * slope for slope in by_rate], between),
        ]
        # x is between the control points, so bounds on these apply everywhere.
        self.by_plain = ca.vertcat(ca.horzcat(0, 1, 0), ca.horzcat(0, -1, 0)) / self.fastest
        plain = ca.vertcat(t[1] / self.fastest - 1, -t[1] / self.fastest)
        self.g = ca.vertcat(*((self.tight * value) ** 2 - 1 for value, _, _ in self.groups), plain)
        # Between ``system`` and ``step``: the Newton system, g, its Jacobian in (w, u, x), slacks and multipliers.
        sizes = SYSTEM_SIZE, self.m, 12 * n, self.m, self.m
        self.kept = ca.SX.sym("kept", sum(sizes))
        self.split = [0, *np.cumsum(sizes).tolist()]
        self.changes = ca.SX.sym("changes", 2 * self.m + ENDING_SIZE)

    def _map(self, part: float) -> ca.SX:
        """Return the Jacobian (3 x 3) of w, u and x with respect to the triple, at a fraction of the interval."""
        by_x = ca.horzcat((1 - part) ** 2, 1 + 2 * part * (1 - part), part**2) / 2
        return ca.vertcat(self.by_w, (1 - part) * self.by_u[0] + part * self.by_u[1], by_x)

    def _state(self, part: float) -> list[ca.SX]:
        """Return w, u and x at a fraction of the interval, which may start or end at rest, with constant jerk."""
        rest, x = 1 - part, self.x[0]  # x at the end that moves; the end at rest has the same value
        from_rest = 2 / 9 * part ** (-2 / 3) * x / self.h**2, 2 / 3 * part ** (1 / 3) * x / self.h, part ** (4 / 3) * x
        to_rest = 2 / 9 * rest ** (-2 / 3) * x / self.h**2, -2 / 3 * rest ** (1 / 3) * x / self.h, rest ** (4 / 3) * x
        jerks = [ca.if_else(self.moves[0] == 0, *pair) for pair in zip(from_rest, to_rest, strict=True)]
        spline = ca.vertsplit(self._map(part) @ self.t)
        return [ca.if_else(self.is_spline > 0, *pair) for pair in zip(spline, jerks, strict=True)]

    def start(self) -> ca.Function:
        """Return the initial row of an interval, in which only slacks and multipliers are nonzero."""
        least = ca.vertcat(ca.repmat(ca.SX(FIRST_SLACK), self.m - 2, 1), ca.repmat(ca.SX(FIRST_DISTANCE), 2, 1))
        y = ca.fmax(-self.g, least)
        return self._function("start", [self.near], ca.vertcat(ca.SX.zeros(self.split[3]), y, self.aim / y))

    def system(self) -> ca.Function:
        """Return the row of an interval after a step, with the Newton system of the next step.

        The system consists of the upper triangle of its matrix (6), the right-hand side (3) and the largest row of g.
        """
        *_, y, multipliers = ca.vertsplit(self.kept, self.split)
        dy, dl, _ = ca.vertsplit(self.changes, [0, self.m, 2 * self.m, 2 * self.m + ENDING_SIZE])
        y, multipliers = y + self.primal * dy, multipliers + self.dual * dl
        stiff = multipliers / y
        push = multipliers + stiff * self.g + self.aim / y
        H, r, rows = ca.SX.zeros(3, 3), ca.SX.zeros(3, 1), []
        square = self.tight**2
        for k, (value, slopes, map_) in enumerate(self.groups):
            part = slice(k * self.n, (k + 1) * self.n)
            weight = square * (4 * square * stiff[part] * value**2 + 2 * multipliers[part])
            force, local = 2 * square * value * push[part], ca.SX.zeros(3, 3)
            for i, j in _PAIRS:
                local[i, j] = local[j, i] = ca.dot(weight * slopes[i], slopes[j])
            if k == 0:  # the time, which depends on x at the end of the interval
                local[2, 2] += 0.75 * self.scale * self.h * self.x[1] ** -2.5
            H += map_.T @ local @ map_
            pull = ca.vertcat(*(ca.dot(force, slope) for slope in slopes))
            if k == 0:
                pull[2] -= 0.5 * self.scale * self.h * self.x[1] ** -1.5
            r -= map_.T @ pull
            rows.append(2 * square * ca.repmat(value, 1, 3) * ca.horzcat(*slopes))
        last = slice(4 * self.n, self.m)
        H += self.by_plain.T @ ca.diag(stiff[last]) @ self.by_plain
        r -= self.by_plain.T @ push[last]
        H, r = self.S.T @ H @ self.S, self.S.T @ r
        system = ca.vertcat(*(H[i, j] for i, j in _PAIRS), r, ca.mmax(self.g))
        result = ca.vertcat(system, self.g, ca.vec(ca.vertcat(*rows)), y, multipliers)
        return self._function("system", [self.near, self.kept, self.changes], result)

    def step(self) -> ca.Function:
        """Return the steps of y and l, the largest values of -dy / y and -dl / l, and sums of products.

        The sums of y l, l dy, y dl and dy dl determine the gap after a step of any length.
        """
        z = ca.SX.sym("z", 3)
        _, g, rows, y, multipliers = ca.vertsplit(self.kept, self.split)
        d = self.S @ z
        by_state = ca.vertsplit(ca.reshape(rows, 4 * self.n, 3), self.n)
        changes = [derivative @ (map_ @ d) for derivative, (_, _, map_) in zip(by_state, self.groups, strict=True)]
        dy = -(g + y) - ca.vertcat(*changes, self.by_plain @ d)
        inverse = 1 / y
        dl = (self.aim - multipliers * dy) * inverse - multipliers
        ending = [ca.mmax(-dy * inverse), ca.mmax(-dl / multipliers)]
        ending += [ca.dot(*pair) for pair in ((y, multipliers), (multipliers, dy), (y, dl), (dy, dl))]
        result = ca.densify(ca.cse(ca.vertcat(dy, dl, *ending)))
        return ca.Function("step", [self.common, self.own, self.kept, z], [result])

    def use(self) -> ca.Function:
        """Return the largest relative torque, rate and speed in the interval; infinite if x < 0.

        Between two checked points, a load exceeds its values there by at most an eighth of its second difference.
        """
        each = self.size + 2  # coefficients, the x at the velocity bound, and an unused number
        inner = ca.SX.sym("inner", (len(CHECKED_FRACTIONS) + 1) * each)  # the last block belongs to the next sample
        checked, least = [self._end(0)], ca.fmin(*self.x)
        faster = ca.SX(0)
        for part, at in zip(CHECKED_FRACTIONS, ca.vertsplit(inner, each), strict=False):
            state = self._state(part)
            checked.append(ca.vertcat(*loads(ca.vertsplit(at[:-2], self.n), self.ratio, *state)[:2]))
            least, faster = ca.fmin(least, state[2]), ca.fmax(faster, state[2] / at[-2])
        checked.append(self._end(1))
        worst = [ca.fabs(checked[0]), ca.fabs(checked[-1])]
        for before, at, after in zip(checked, checked[1:], checked[2:], strict=False):
            bulge = (2 * at - before - after) / 8
            worst += [at + ca.fmax(bulge, 0), ca.fmax(-bulge, 0) - at]
        # The largest x includes a margin for velocities, but not for the desired speed, which may be reached.
        speed = ca.sqrt(ca.fmax(self.t[1] / self.fastest, 0))
        largest = ca.fmax(self.tight * ca.mmax(ca.vertcat(*worst, ca.sqrt(faster))), speed)
        return self._function("use", [self.near, inner], ca.if_else(least > 0, largest, np.inf))

    def _end(self, k: int) -> ca.SX:
        """Return torques and rates at an end of the interval; at rest, the torque balances gravity and springs."""
        torque, rate, *_ = self.ends[k]
        hold = ca.vertsplit(self.near, self.n)[2 if k == 0 else 2 * self.size // self.n + 2]
        return ca.vertcat(self.moves[k] * torque + (1 - self.moves[k]) * hold, rate)

    def _function(self, name: str, more: list[ca.SX], result: ca.SX) -> ca.Function:
        return ca.Function(name, [self.common, self.own, self.t, *more], [ca.densify(ca.cse(result))])


def kernels(n: int, parts: int, solve: Callable[[Array], Array]) -> Kernels:
    """Return the kernels for n joints and a number of coefficient parts; ``solve`` solves the window's system."""
    interval = _Interval(n, parts)
    start, system, step, use = map(compile, (interval.start(), interval.system(), interval.step(), interval.use()))
    return Kernels(interval.m, interval.split[-1], start, system, solve, step, use)


def free_points(count: int, start: str, end: str) -> Array:
    """Return, for each interval, the places of x in its triple (2 x 3) and S (3 x 3), as rows (count, 15).

    ``start`` is "rest", "given" (the first two control points are given) or "free" (any x, with u = 0). ``end`` is
    "rest" or "free".
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


MIN_INTERVALS = 4  # smallest number of intervals of a window
GAP_TOLERANCE = 3e-3  # duality gap, relative to the duration of a window
STATIONARITY_TOLERANCE = 1e-2  # remaining gradient residual, relative to the initial one
# Violation of the squared loads beyond bounds minus margin: the loads are checked afterwards.
FEASIBILITY_TOLERANCE = 3e-3
# Factors of the products of slacks and multipliers after long, short and very short steps.
CENTERING_FACTORS = 0.1, 0.3, 0.6
LONG_STEP, SHORT_STEP = 0.5, 0.2  # fractions of a Newton step that separate these
BOUNDARY_FRACTION = 0.97  # fraction of the distance to the nearest bound that a step takes
# Factor of tighter bounds, relative to the ratio by which they were exceeded, and the largest factor.
TIGHTENING_FACTOR, MAX_TIGHTENING = 1.02, 2.0
MAX_HALVINGS = 60  # largest number of times that x is halved
# Number of pieces whose steps form one piece of work, because a step takes less than half the time of a system.
PIECES_PER_STEP = 2
PARTS_PER_CHECK = 2  # parts into which the check of a piece is divided, because it takes about twice as long
# Smallest initial control point relative to the largest, because the time goes to infinity as x goes to zero.
MIN_POINT_FRACTION = 1e-3


class Sampled(Protocol):
    """Path samples: see ``path_dynamics.Samples``."""

    capacity: int
    spacing: float
    near: Array
    inner: Array
    fastest: Array
    tight: Array


class _Piece(NamedTuple):
    """The arrays of some intervals of a window."""

    systems: Array
    endings: Array
    steps: Array
    own: Array
    triples: Array
    near: Array
    inner: Array


class Window:
    """A window of at most ``count`` intervals.

    ``fill`` loads the samples. ``improve`` is a generator; each ``next`` makes at most one kernel call for ``piece``
    intervals. ``points`` are the control points of x. ``uses`` checks whether the loads are within the bounds. Loads
    are multiplied by ``spare``, because they may be slightly larger between two checked points.
    """

    def __init__(self, kernels: Kernels, samples: Sampled, ratio: Array, count: int, piece: int, spare: float):
        self.kernels, self.count, self.piece = kernels, count, piece
        self._samples, self._spare = samples, spare
        self._common = np.array([samples.spacing, *(COMMON_SIZE - 1) * [0.0], *ratio])
        self._own = np.zeros((count, INTERVAL_SIZE))
        self._all, self._steps = np.zeros(count + 2), np.zeros(count + 2)
        self._triples, self._step_triples = (
            as_strided(array, (count, 3), (8, 8), writeable=False) for array in (self._all, self._steps)
        )
        self._systems, self._endings = np.zeros((count, SYSTEM_SIZE)), np.zeros((ENDING_SIZE, count))
        self._unchanged = np.zeros(2 * kernels.rows_count + ENDING_SIZE)
        ends = [(start, end) for start in ("rest", "given", "free") for end in ("rest", "free")]
        self._maps = {end: free_points(count, *end) for end in ends}
        self.n, self.start, self.end, self.tight = 0, "rest", "rest", np.zeros(0)
        self.iterations = 0
        self.feasible: Array | None = None  # the last points within the tightened bounds
        self.pieces: list[_Piece] = []

    @property
    def points(self) -> Array:
        """The control points (n + 2) of x."""
        return self._all[: self.n + 2]

    def fill(self, m: int, n: int, start: str, end: str) -> Iterator[None]:
        """Load n intervals from sample m onwards, and yield after every third piece. Call ``begin`` next."""
        samples, row = self._samples, m % self._samples.capacity
        self.n, self.start, self.end = n, start, end
        self.tight = samples.tight[row : row + n]
        numbers, maps = self._own[:n], self._maps[start, end]
        numbers[:, 0] = samples.fastest[row : row + n]
        numbers[:-2, 2:], numbers[-2:, 2:] = maps[: n - 2], maps[-2:]
        self._systems[n:] = 0.0
        yield
        self.pieces = []
        arrays = self._systems, self._endings.T, self._step_triples, self._own, self._triples
        size = -(-n // -(-n // self.piece))  # as equal as possible
        for first in range(0, n, size):
            last = min(first + size, n)
            parts = [array[first:last] for array in arrays]
            parts += [array[row + first : row + last] for array in (samples.near, samples.inner)]
            self.pieces.append(_Piece(*parts))
            if len(self.pieces) % 3 == 0:
                yield

    def begin(self, points: Array) -> None:
        """Set the initial guess of the control points (n + 2)."""
        self._all[: self.n + 2] = points
        self._constrain(self._all)

    def take(self, points: Array) -> None:
        """Set the control points (n + 2); fixed and dependent points remain fixed and dependent."""
        fixed = 2 if self.start == "given" else 0
        self._all[fixed : self.n + 2] = points[fixed:]
        self._constrain(self._all)

    def clipped(self) -> Array:
        """Return the control points (n + 2) clipped to the largest x, which a search may slightly exceed."""
        result = self.points.copy()
        np.minimum(result[1:-1], self._own[: self.n, 0], out=result[1:-1])
        return result

    def _constrain(self, points: Array) -> None:
        """Compute the control points that depend on others."""
        n = self.n
        if self.start == "rest":
            points[0], points[1] = FROM_REST[0] * points[2], FROM_REST[1] * points[2]
        elif self.start == "free":
            points[0] = points[1]
        if self.end == "rest":
            points[n], points[n + 1] = FROM_REST[1] * points[n - 1], FROM_REST[0] * points[n - 1]
        else:
            points[n + 1] = points[n]

    def slow_down(self, use: float = 1.0) -> Generator[None, None, Array]:
        """Halve x until the largest ratio to a bound is at most ``use``, and return the ratio in each interval (n)."""
        for _ in range(MAX_HALVINGS):
            uses = yield from self.uses()
            if uses.max() <= use:
                break
            self.take(self.points / 2)
        return uses

    def uses(self) -> Generator[None, None, Array]:
        """Return the largest ratio of a quantity to its bound in each interval (n,); yield after each kernel call."""
        self._own[: self.n, 1] = self._spare
        uses_of_pieces = []
        for piece in self.pieces:
            size = -(-len(piece.own) // PARTS_PER_CHECK)
            for first in range(0, len(piece.own), size):
                part = slice(first, first + size)
                uses_of_pieces.append(self.kernels.use(self._common, *(array[part] for array in piece[-4:])))
                yield
        return np.concatenate(uses_of_pieces)

    def tighten(self, uses: Array) -> None:
        """Tighten the bounds for the next search in intervals where they were exceeded."""
        self.tight = self.tight * np.where(uses > 1, np.minimum(TIGHTENING_FACTOR * uses, MAX_TIGHTENING), 1.0)

    def improve(
        self,
        iterations: int,
        least_gap: float = GAP_TOLERANCE,
        centering: tuple[float, float, float] = CENTERING_FACTORS,
    ) -> Iterator[None]:
        """Search for the shortest time within the tightened bounds; yield after each step of the search.

        The search ends after a number of iterations, or when at most a fraction ``least_gap`` of the time can be
        gained. For ``centering`` see ``CENTERING_FACTORS``. If the search is stopped early, ``feasible`` contains the
        last points that satisfy these bounds at the samples.
        """
        n, kernels, common, pieces = self.n, self.kernels, self._common, self.pieces
        self._own[:n, 1], self.feasible = self.tight, None
        self.take(np.maximum(self.points, MIN_POINT_FRACTION * self.points.max()))
        yield
        size, taken, residual, gap = n * kernels.rows_count, 1.0, 1.0, 1.0
        # Target product of slacks and multipliers, time scale, primal and dual steps
        time = common[0] * (1 / np.sqrt(self._all[2:n])).sum()
        common[1:COMMON_SIZE] = gap / size, 1 / time, 0.0, 0.0
        states, changes = [], len(pieces) * [self._unchanged]
        yield
        for piece in pieces:
            states.append(kernels.start(common, piece.own, piece.triples, piece.near))
            yield
        for self.iterations in range(iterations):
            common[1] = centering[(taken < LONG_STEP) + (taken < SHORT_STEP)] * gap / size
            for k, piece in enumerate(pieces):
                states[k] = kernels.system(common, piece.own, piece.triples, piece.near, states[k], changes[k])
                piece.systems[:] = states[k][:, :SYSTEM_SIZE]
                yield
            if self._systems[:n, -1].max() < FEASIBILITY_TOLERANCE:
                self.feasible = self.points.copy()
                if gap < least_gap and residual < STATIONARITY_TOLERANCE:
                    break
            self._steps[:] = kernels.solve(self._systems)
            yield
            for k, piece in enumerate(pieces):
                changes[k] = kernels.step(common, piece.own, states[k], piece.steps)
                piece.endings[:] = changes[k][:, -ENDING_SIZE:]
                if k % PIECES_PER_STEP == PIECES_PER_STEP - 1:
                    yield
            gap, taken = self._move()
            residual *= 1 - taken
            yield

    def _move(self) -> tuple[float, float]:
        """Take a step that keeps slacks and multipliers positive; return the next gap and the fraction taken."""
        n, endings = self.n, self._endings[:, : self.n]
        least_y, least_l = np.maximum.reduce(endings[:2], axis=1).tolist()
        primal = BOUNDARY_FRACTION / max(least_y, BOUNDARY_FRACTION)
        dual = BOUNDARY_FRACTION / max(least_l, BOUNDARY_FRACTION)
        now, by_primal, by_dual, by_both = np.add.reduce(endings[2:], axis=1).tolist()
        self._common[3], self._common[4] = primal, dual
        self._constrain(self._steps)
        if self.start == "given":
            self._steps[:2] = 0.0
        self._all[: n + 2] += primal * self._steps[: n + 2]
        return now + primal * by_primal + dual * by_dual + primal * dual * by_both, min(primal, dual)
