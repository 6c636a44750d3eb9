"""Proven ranges of constraint rows over time intervals, from enclosures of the profiles.

Between two knots, a profile is a polynomial in time. Over an interval with the midpoint m and the half-width h, its
Taylor coefficients at m yield the enclosure c0 + c1 u + c2 u^2 +- r of each time derivative, with t = m + h u. r
includes the higher coefficients and bounds on all rounding errors. ``compiler.enclosures`` computes the ranges of the
rows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.compiler import Signature
from torsor.compiler.cache import source_hash
from torsor.compiler.enclosures import COLUMNS, RULES, enclose
from torsor.compiler.program import operation_name, operations_of
from torsor.dynamics import fingerprint
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.motion_model import PathPiece
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.splines import Spline
from torsor.motion.transcription.variables import PhaseLayout
from torsor.robot.kernels import Kernels
from torsor.robot.robot import Robot
from torsor.robot.target import Target

# Bound on the rounding of coefficients, relative to the sum of the magnitudes of their terms: 128 roundings. There are
# at most 4 per degree for the differences of control points, and as many for the basis functions, with degrees up to 7.
ROUNDING = 2.0**-46
WIDENING = 2.0**-50  # bound on the rounding of s and of midpoints, both of which are at most 1


def _taylor(spline: Spline, s: Array, points: Array) -> tuple[Array, Array]:
    """Return ``spline.taylor`` (K, degree + 1, n), and bounds on its rounding."""
    sizes, p, knots = np.abs(points), spline.degree, spline.knots
    values, errors = list[Array](), list[Array]()
    bases, first = spline.bases(s, p)
    for order in range(spline.degree + 1):
        window = first[:, None] + np.arange(p + 1)
        values.append((bases[p][:, None] @ points[window])[:, 0] / math.factorial(order))
        errors.append(ROUNDING * sizes[window].max(axis=1) / math.factorial(order))
        if p:
            factors = (p / (knots[p + 1 : -1] - knots[1 : -p - 1]))[:, None]
            points, sizes = factors * np.diff(points, axis=0), factors * (sizes[1:] + sizes[:-1])
            knots, p = knots[1:-1], p - 1
    return np.stack(values, axis=1), np.stack(errors, axis=1)


class Pieces:
    """The polynomials of the profiles of a phase between successive knots, at ``starts`` (S,)."""

    def __init__(self, layout: PhaseLayout, x: Array):
        splines: dict[tuple[int, bytes], list[int]] = {}
        for k, spline in enumerate(layout.splines):
            splines.setdefault((spline.degree, spline.inner.tobytes()), []).append(k)
        self.starts = np.unique(np.concatenate([[0.0], *(layout.splines[k[0]].inner for k in splines.values())]))
        points = layout.points(x)
        self.powers = 1 + max(spline.degree for spline in layout.splines)
        self._values = np.zeros((len(self.starts), self.powers, 2 * len(points)))  # coefficients, then their errors
        for profiles in splines.values():
            spline, N = layout.splines[profiles[0]], len(points)
            values, errors = _taylor(spline, self.starts, points[profiles, : spline.count].T)
            used = slice(spline.degree + 1)
            self._values[:, used, profiles] = values
            self._values[:, used, [N + k for k in profiles]] = errors + ROUNDING * np.abs(values)

    def enclosures(self, lower: Array, upper: Array, T: float, orders: int) -> dict[str, Array]:
        """Return enclosures (K, N, 4) of profiles and their derivatives with respect to s T, and of s (K, 1, 4).

        Each interval, from ``lower`` to ``upper`` (K,), is within one piece.
        """
        middle, half = lower + (upper - lower) / 2, (upper - lower) / 2 + WIDENING
        piece = np.searchsorted(self.starts, middle, side="right") - 1
        P, N = self.powers, self._values.shape[2] // 2
        power = np.arange(P)
        # The coefficients at the midpoint are sums of binomial(k, j) (m - start)^(k - j) times those at the start.
        shifts = (middle - self.starts[piece])[:, None] ** power
        exponents = np.maximum(power - power[:, None], 0)
        shifted = (_BINOMIALS[:P, :P].T * shifts[:, exponents]) @ self._values[piece]
        widths = half[:, None] ** power
        result = {"moment": np.stack([middle, half, 0 * half, 0 * half + WIDENING], axis=1)[:, None]}
        for order in range(orders):
            count = P - order
            factors = np.array([math.perm(k + order, order) for k in range(count)]) / T**order
            terms = shifted[:, order:] * (factors * widths[:, :count])[..., None]
            values, errors = terms[..., :N], terms[..., N:]
            r = np.abs(values[:, 3:]).sum(axis=1) + errors.sum(axis=1) + ROUNDING * np.abs(values).sum(axis=1)
            c = np.zeros((len(middle), 3, N))
            c[:, :count] = values[:, :3]
            result[f"y_{order}"] = np.concatenate([c, r[:, None]], axis=1).swapaxes(1, 2)
        return result


class CheckedRows(NamedTuple):
    """The inequalities of a constraint: their bounds, and the slice of their rows among all rows."""

    term: Constraint
    rows: Rows
    columns: slice


class RowRanges:
    """Ranges of the inequality rows of constraints over time intervals.

    ``checked`` contains the constraints with their inequality rows. ``unchecked`` {title: reason} lists those that are
    not, or not fully, checked because they contain equations or have no enclosure.
    """

    def __init__(self, node: Node, constraints: Sequence[Constraint], of_problem: Array):
        self.node = _in_pieces(node)
        self.node.all_given.clear()
        self.checked: list[CheckedRows] = []
        self.unchecked: dict[str, str] = {}
        self.m = 0
        for term in constraints:
            rows = term.rows(self.node)
            kept = np.flatnonzero(rows.lower < rows.upper)
            if len(kept) < len(rows.labels):
                self.unchecked[term.title] = "its equations hold only at the nodes"
            reason = self._unsupported(rows.expression[kept.tolist()])
            if reason:
                self.unchecked[term.title] = reason
            elif len(kept):
                labels = tuple(rows.labels[k] for k in kept)
                chosen = Rows(rows.expression[kept.tolist()], rows.lower[kept], rows.upper[kept], labels)
                self.checked.append(CheckedRows(term, chosen, slice(self.m, self.m + len(kept))))
                self.m += len(kept)
        self._expression = ca.densify(ca.vertcat(ca.SX(0, 1), *(each.rows.expression for each in self.checked)))
        self.orders = self.node.orders(self._expression)
        numbers, values = self.node.given_numbers()
        self._given, self.given = ca.vertcat(self.node.problem_numbers, numbers), np.concatenate([of_problem, values])
        pieces = [symbol for (name, _), symbol in self.node.all_data.items() if name == PATH]
        self._piece = pieces[0] if pieces else ca.SX(0, 1)

    def _unsupported(self, expression: ca.SX) -> str:
        """Return the reason why an expression has no enclosure, or an empty string."""
        if self.node.Q is not None:
            return "there is no enclosure of the positions of closed loops"
        for (name, _), symbol in self.node.all_data.items():
            if name != PATH and ca.depends_on(expression, symbol):
                return f"{name} is given at the nodes only"
        value = self.node.value(expression)
        missing = operations_of(ca.Function("rows", [ca.vertcat(*ca.symvar(value))], [value])) - set(RULES)
        names = ", ".join(sorted(map(operation_name, missing)))
        return f"there is no enclosure of the operation {names}" if names else ""

    @property
    def _inputs(self) -> dict[str, ca.SX]:
        node = self.node
        inputs = {f"y_{k}": node.y[k] for k in range(self.orders)} | {"moment": node.s, "T": node.T}
        inputs |= {"numbers": node.numbers, "given": self._given, PATH: self._piece}
        return {name: symbol for name, symbol in inputs.items() if symbol.numel()}

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(Target(), lambda: self.identity)

    @property
    def identity(self) -> str:
        """A hash of everything on which the kernel depends, computed without tracing the robot."""
        node, model = self.node, self.node.model.source
        outputs = [self._expression, node.q, node.v, node.a, node.j]
        quantities = sorted((quantity.symbol for quantity in node.quantities_in(self._expression)), key=str)
        inputs = [*node.y, node.T, node.s, node.numbers, self._given, self._piece, *quantities]
        terms = ca.Function("terms", inputs, outputs).serialize()
        free = () if isinstance(model, Robot) else model.paths
        return fingerprint(node.robot, free, terms, self.orders, source_hash("motion/transcription"))

    def _trace(self) -> ca.Function:
        inputs = self._inputs
        rows = ca.Function("rows", [*inputs.values()], [self.node.value(self._expression)], [*inputs], ["rows"])
        return enclose(rows, [name for name in inputs if name == "moment" or name.startswith("y_")])

    def __call__(
        self, pieces: Pieces, lower: Array, upper: Array, T: float, shared: Array
    ) -> tuple[Array, Array, Array]:
        """Return lower and upper bounds (K, m) of all rows over intervals of s (K,), and remainders (K, m).

        T is the duration of the phase, and ``shared`` are the shared numbers. The returned upper bound of a row exceeds
        its supremum by at most 2 remainders.
        """
        inputs = pieces.enclosures(lower, upper, T, self.orders) | {"T": np.asarray(T)}
        inputs |= {"numbers": shared, "given": self.given}
        kernel = self._kernels.kernel("ranges", self._trace, _shapes, quick=True)
        path = self.node.model.path
        if path is None:
            result: tuple[Array, Array, Array] = kernel(*(inputs[name] for name in kernel.signature.names_in))
            return result
        # An interval may extend over several spans of the path. Each of their polynomials is bounded over the full
        # interval, which can prove a bound but not a violation.
        progress = inputs["y_0"][:, 0]
        reach = np.abs(progress[:, 1:]).sum(axis=1) * (1 + ROUNDING) + WIDENING
        first, last = (
            np.searchsorted(path.spline.inner, progress[:, 0] + side * reach, side="right") for side in (-1, 1)
        )
        counts = last - first + 1
        begins = np.cumsum(counts) - counts
        spans = np.repeat(first - begins, counts) + np.arange(counts.sum())
        starts = np.concatenate([[0.0], path.spline.inner])
        data = np.concatenate([path.pieces.reshape(len(starts), -1), starts[:, None]], axis=1)
        inputs = {name: np.repeat(v, counts, axis=0) if len(v.shape) == 3 else v for name, v in inputs.items()}
        inputs[PATH] = data[spans]
        below, above, remainders = kernel(*(inputs[name] for name in kernel.signature.names_in))
        return (
            np.minimum.reduceat(below, begins),
            np.maximum.reduceat(above, begins),
            np.where(counts[:, None] > 1, np.inf, remainders[begins]),
        )


PATH = "path_piece"  # input with the coefficients of a path span, row by row, and its start


def _in_pieces(node: Node) -> Node:
    """Return a node for one span of its path, whose polynomial is an input; without a path, return the node."""
    path = node.model.path
    if path is None:
        return node
    powers, count = path.pieces.shape[1:]
    symbol = ca.SX.sym(PATH, powers * count + 1)
    piece = PathPiece(path.spline, path.points, ca.reshape(symbol[:-1], count, powers).T, symbol[-1])
    shared = [name for name in node.shared if name not in node.model.parameters]
    result = Node(replace(node.model, path=piece), shared, node.held, node.clock)
    result.all_data[PATH, symbol.numel()] = symbol
    return result


def _shapes(of: Signature) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the shapes of the arrays of one interval."""
    sizes = zip(of.names_in, of.sizes_in, strict=True)
    return [() if name == "T" else (a, b) if b == COLUMNS else (a,) for name, (a, b) in sizes], [
        (a,) for a, _ in of.sizes_out
    ]


_BINOMIALS = np.array([[math.comb(k, j) for j in range(8)] for k in range(8)], dtype=float)
