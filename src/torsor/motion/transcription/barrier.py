"""Kernels of the rows of one node for an interior-point method, which combine dynamics and barrier arithmetic.

The rows h of a node have slacks s with bounds. The method condenses its linear equations to the variables of the
motion, so it needs only sums and extremes over the rows: J^T times rows, the condensed matrix, and the largest relative
reductions of distances and multipliers by a step. The kernels compute these for a node.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Indices
from torsor.motion.transcription.node_kernels import Call, Made, NodeKernels
from torsor.optimisation.barrier import CORRECTORS, Bounded


class Expressions(NamedTuple):
    """The symbols of named inputs, and a function that returns named outputs."""

    name: str
    inputs: dict[str, ca.SX]
    make: Callable[[], dict[str, ca.SX]]

    def at(self, **values: ca.SX) -> dict[str, ca.SX]:
        """Return the outputs with some inputs replaced by expressions."""
        symbols, outputs = list(self.inputs.values()), self.make()
        function = ca.Function(self.name, symbols, list(outputs.values()))
        results = function.call([values.get(name, symbol) for name, symbol in self.inputs.items()])
        return dict(zip(outputs, results, strict=True))


class BarrierKernels:
    """The kernels of the rows of a node; ``by_T`` states whether the duration is a variable.

    "jacobian" contains the nonzero derivatives of the rows with respect to (B c, T, numbers), and "inverse" the inverse
    row scales. k changes of these variables are the arrays "changes" (orders, k, N) and "specials" (k, T and numbers).
    Derivatives pulled back to them are "pulled" and "pulled_specials", in the same order.
    """

    def __init__(self, own: NodeKernels, by_T: bool):
        self.own, self._by_T = own, by_T
        self.count = int(by_T) + int(own.node.numbers.numel())  # number of special variables
        self._has_equations = any((row.lower == row.upper).any() for row in own.rows)
        self._at = Bounded(own.m, self._has_equations)
        self._symbols = {name: ca.SX.sym(name, own.m) for name in ("u", "inverse", "off", "predictor", "ds")}
        self._symbols |= {name: ca.SX.sym(name) for name in ("mu", "corrector", "length", "dual")}

    def _some(self, *names: str) -> dict[str, ca.SX]:
        return {name: self._symbols[name] for name in names}

    @cached_property
    def _pattern(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of "jacobian"."""
        pairs, timed, entries, _ = self.own.jacobian(self._by_T)
        D, N, U = self.own.orders, self.own.count, self.own.profiles
        columns = (pairs[1] + np.arange(D)[:, None] * N).ravel(), np.full(len(timed), U), U + self._by_T + entries[1]
        return np.concatenate([np.tile(pairs[0], D), timed, entries[0]]), np.concatenate(columns)

    @property
    def entries(self) -> int:
        """Number of entries of "jacobian"."""
        return len(self._pattern[0])

    @cached_property
    def _jacobian(self) -> tuple[ca.SX, ca.SX]:
        """The symbol of "jacobian", and the matrix (m x variables) with its entries."""
        symbol = ca.SX.sym("jacobian", len(self._pattern[0]))
        return symbol, self._matrix(symbol)

    def _matrix(self, entries: ca.SX) -> ca.SX:
        (rows, columns), shape = self._pattern, (self.own.m, self.own.profiles + self.count)
        index = ca.DM.triplet(rows.tolist(), columns.tolist(), np.arange(len(rows), dtype=float), *shape)
        return ca.SX(index.sparsity(), entries[np.array(index.nonzeros(), dtype=int).tolist()])

    def _changes(self, k: int) -> tuple[dict[str, ca.SX], list[ca.SX]]:
        """Return the inputs of k changes, and each change as a column."""
        D, N = self.own.orders, self.own.count
        inputs = {"changes": ca.SX.sym("changes", D * k * N), "specials": ca.SX.sym("specials", k * self.count)}
        columns = []
        for j in range(k):
            parts = [inputs["changes"][(d * k + j) * N : (d * k + j + 1) * N] for d in range(D)]
            columns.append(ca.vertcat(*parts, inputs["specials"][j * self.count : (j + 1) * self.count]))
        return inputs, columns

    def _pulled(self, columns: Sequence[ca.SX]) -> dict[str, ca.SX]:
        """Return columns of derivatives as outputs."""
        D, N, U = self.own.orders, self.own.count, self.own.profiles
        columns = [ca.densify(column) for column in columns]
        pulled = [column[d * N : (d + 1) * N] for d in range(D) for column in columns]
        return {"pulled": ca.vertcat(*pulled), "pulled_specials": ca.vertcat(*(column[U:] for column in columns))}

    def name(self, name: str) -> str:
        """Return the name of a kernel."""
        return f"barrier_{name}{'' if self._by_T else '_given_T'}{'_equations' if self._has_equations else ''}"

    @cached_property
    def blocks(self) -> Indices:
        """The pairs (2, blocks) of profiles i >= j with nonzero blocks of the condensed matrix."""
        (blocks,) = self.own.patterns(self.name("blocks"), self._made_point)
        return blocks

    def _rows(self) -> dict[str, ca.SX]:
        own, inverse = self.own, self._symbols["inverse"]
        parts, _ = own.make_jacobian(self._by_T)
        entries = ca.vertcat(*(ca.vec(parts[name].T) for name in ("rows", "timed", "shared")))
        off = own.node.value(own.rows_expression) * inverse - self._at.w
        return {"jacobian": entries * ca.vec(inverse[self._pattern[0].tolist()]), "off": off}

    def _made_point(self) -> Made:
        at, own = self._at, self.own
        u, inverse = self._symbols["u"], self._symbols["inverse"]
        parts, _ = own.make_jacobian(self._by_T)
        if not own.m:  # the node has only costs
            blocks, specials, patterns = self._condensed(ca.SX(0, 1))
            columns = [own.weights["weight"] * parts["cost"], *[ca.SX.zeros(parts["cost"].shape)] * 3]
            return blocks | self._pulled([*columns, *specials]), patterns
        rows = self._rows()
        J, off = self._matrix(rows["jacobian"]), rows["off"]
        blocks, specials, patterns = self._condensed(at.stiffness * inverse**2)
        columns = [own.weights["weight"] * parts["cost"]]
        columns += [J.T @ values for values in (u, at.pushed(off, u), at.repulsion)]
        total, most, least = at.products()
        sums = [total, ca.sum1(at.z_low + at.z_high), ca.sum1(ca.fabs(u)), ca.dot(at.repulsion, off)]
        dual = (1 - at.is_equation) * ca.fabs(at.z_high - at.z_low - u)
        largest = [ca.mmax(ca.fabs(off)), ca.mmax(dual), most]
        outputs = rows | {"totals": ca.vertcat(*sums, *largest, least)}
        return outputs | blocks | self._pulled([*columns, *specials]), patterns

    @cached_property
    def point(self) -> Call:
        """Kernel of a point.

        It returns the "jacobian", the residuals "off" (m,) of h - s = 0, the "totals" (fields of
        ``motion.batched.RowTotals``) and the "blocks" of the condensed matrix. The pulled-back derivatives are those of
        the integral, J^T u, J^T pushed and J^T repulsion, followed by the matrix columns of T and the numbers.
        """
        return self._kernel(self.point_expressions)

    @cached_property
    def point_expressions(self) -> Expressions:
        """The inputs and outputs of ``point``."""
        inputs = self.own.weights | self._some("u", "inverse") | self._at.inputs
        return Expressions("point", self.own.inputs | inputs, lambda: self._made_point()[0])

    @cached_property
    def gradient_expressions(self) -> Expressions:
        """The "pulled" gradient of the integrand."""

        def make() -> dict[str, ca.SX]:
            return self._pulled([self.own.make_jacobian(self._by_T)[0]["cost"]])

        return Expressions("gradient", self.own.inputs, make)

    @cached_property
    def rows_expressions(self) -> Expressions:
        """The "jacobian", and the residuals "off" (m,) of h - s = 0."""
        inputs = self.own.inputs | self._some("inverse") | {"w": self._at.w}
        return Expressions("rows", inputs, self._rows)

    @cached_property
    def rows_of_step(self) -> Call:
        """The "jacobian", the residuals "off" (m,) of h - s = 0, and the "predictor" (m,) of a change of variables."""
        inputs, (change,) = self._changes(1)

        def make() -> dict[str, ca.SX]:
            rows = self._rows()
            return rows | {"predictor": self._matrix(rows["jacobian"]) @ change + rows["off"]}

        return self._kernel(Expressions("rows_of_step", self.rows_expressions.inputs | inputs, make))

    def _kernel(self, of: Expressions) -> Call:
        return self.own.kernel(self.name(of.name), of.inputs, lambda: (of.make(), []), at_node=False)[1]

    def _condensed(self, stiffness: ca.SX) -> tuple[dict[str, ca.SX], list[ca.SX], list[Indices]]:
        """Return the "blocks" of the condensed matrix, its columns of T and the numbers, and the pattern."""
        outputs, patterns = self.own.make_hessian(self._by_T, stiffness)
        mixed = ca.reshape(outputs["mixed"], self.count, self.own.profiles).T
        columns = ca.vertcat(mixed, ca.reshape(outputs["corner"], self.count, self.count))
        return {"blocks": outputs["blocks"]}, ca.horzsplit(columns) if self.count else [], patterns

    def _of_jacobian(self, name: str, more: dict[str, ca.SX], outputs: dict[str, ca.SX]) -> Expressions:
        """Return expressions of the "jacobian" that have no node inputs."""
        return Expressions(name, {"jacobian": self._jacobian[0]} | more, lambda: outputs)

    @cached_property
    def predicted(self) -> Call:
        """Changes "ds" (2, m) without a barrier and for a unit barrier, from those of the variables and "off".

        The kernel also pulls back the gradient of the second-order products, and returns "totals": the two sums of
        ``product_changes``, and the largest relative reductions of distances and multipliers by the first step.
        """
        return self._kernel(self.prediction_expressions)

    @cached_property
    def prediction_expressions(self) -> Expressions:
        """The inputs and outputs of ``predicted``."""
        at, J, zero = self._at, self._jacobian[1], ca.SX(0)
        inputs, (first, second) = self._changes(2)
        ds, unit = J @ first + self._symbols["off"], ca.densify(J @ second)
        totals = ca.vertcat(*at.product_changes(ds), *at.ratios(ds, ds, zero, zero))
        outputs = {"ds": ca.vertcat(ds, unit)} | self._pulled([J.T @ at.bend(ds)]) | {"totals": totals}
        return self._of_jacobian("prediction", self._some("off") | at.inputs | inputs, outputs)

    @cached_property
    def ratios(self) -> Call:
        """Largest relative reductions by steps, "totals" (2, correctors), and the second-order "ds" (m,)."""
        return self._kernel(self.ratio_expressions)

    @cached_property
    def ratio_expressions(self) -> Expressions:
        """The inputs and outputs of ``ratios``."""
        at, J, m, mu = self._at, self._jacobian[1], self.own.m, self._symbols["mu"]
        inputs, (change,) = self._changes(1)
        steps, correctors = ca.SX.sym("steps", 2 * m), ca.SX.sym("correctors", CORRECTORS)
        predictor, second = steps[:m], ca.densify(J @ change)
        both = [
            at.ratios(predictor + mu * steps[m:] + correctors[k] * second, predictor, mu, correctors[k])
            for k in range(CORRECTORS)
        ]
        totals = ca.vertcat(*(primal for primal, _ in both), *(dual for _, dual in both))
        more = at.inputs | inputs | {"steps": steps, "correctors": correctors} | self._some("mu")
        return self._of_jacobian("ratios", more, {"ds": second, "totals": totals})

    @cached_property
    def corrected(self) -> tuple[Call, Call]:
        """J^T times the rows of a step with residuals "off", and its "ds" with its largest relative reductions."""
        at, J, names = self._at, self._jacobian[1], ("off", "predictor", "mu", "corrector", "u")
        off, predictor, mu, corrector, u = (self._symbols[name] for name in names)
        rows = at.pushed(off, u) + mu * at.repulsion + corrector * at.bend(predictor)
        inputs, (change,) = self._changes(1)
        ds, more = J @ change + off, self._some(*names) | at.inputs
        outputs = {"ds": ds, "totals": ca.vertcat(*at.ratios(ds, predictor, mu, corrector))}
        return (
            self._kernel(self._of_jacobian("correction", more, self._pulled([J.T @ rows]))),
            self._kernel(self._of_jacobian("corrected", more | inputs, outputs)),
        )

    @cached_property
    def moved(self) -> Call:
        """Slacks "w" and multipliers after a step, the integrand "cost", and "totals".

        The totals are the sums of |h - s| and of the logarithms of the distances, the largest violation of h, and the
        largest relative change of s.
        """
        return self._kernel(self.move_expressions)

    @cached_property
    def move_expressions(self) -> Expressions:
        """The inputs and outputs of ``moved``."""
        at, own, names = self._at, self.own, ("u", "inverse", "predictor", "ds", "mu", "corrector", "length", "dual")
        u, inverse, predictor, ds, mu, corrector, length, dual = (self._symbols[name] for name in names)

        def make() -> dict[str, ca.SX]:
            w, z_low, z_high = at.moved(ds, predictor, mu, corrector, length, dual)
            h = own.node.value(own.rows_expression) * inverse
            du = at.multiplier_step(u, ds, predictor, mu, corrector)
            outside = ca.fmax(ca.fmax(at.low - h, h - at.high), 0)
            change = (1 - at.is_equation) * ca.fabs(ds) / (1 + ca.fabs(at.w))
            totals = [ca.sum1(ca.fabs(h - w)), at.logs(w), ca.mmax(outside), ca.mmax(change)]
            outputs = {"w_new": w, "u_new": u + length * du, "z_low_new": z_low, "z_high_new": z_high}
            return outputs | {"cost": own.node.value(own.cost_expression), "totals": ca.vertcat(*totals)}

        return Expressions("move", own.inputs | self._some(*names) | at.inputs, make)
