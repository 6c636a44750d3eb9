"""The kernels of ``barrier`` for all nodes of a case: sums for an interior-point method, without a stored Jacobian.

The derivatives of the rows are recomputed when needed, which is faster than storing and loading them. All profiles have
the same spline, and each node depends on P control points per profile.

Inputs whose names begin with "new" are values after a step. k changes of the variables are the arrays "change_points"
(points, k, N) and "specials" (k, T and numbers). The "pulled" derivatives have the axes (points, columns, N). Totals
are divided into "sums" and "largest" over the nodes; minima are maxima with the opposite sign.
"""

from collections.abc import Callable
from functools import cached_property

import casadi as ca

from torsor.compiler.fold import Fold
from torsor.compiler.llvm.fold import Kind
from torsor.motion.transcription.barrier import BarrierKernels

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("points", "new_points", "change_points"), "window"),
    **dict.fromkeys(("basis", "s", "node_weight", "required"), "node"),
    **dict.fromkeys(("data", "u", "w", "z_low", "z_high", "w_new", "u_new", "z_low_new", "z_high_new"), "rows"),
    "blocks": "second",
    "pulled": "first",
    "largest": "largest",
}

_Values = dict[str, ca.SX]


class BarrierFolds:
    """The folds of the rows of a node whose profiles depend on ``points`` control points each."""

    def __init__(self, kernels: BarrierKernels, points: int):
        self._kernels, self._own, self._points = kernels, kernels.own, points
        self._basis = ca.SX.sym("basis", self._own.orders * points)

    def _fold(self, name: str, make: Callable[[_Values], _Values]) -> Fold:
        """Return the fold of the outputs of ``make``, which adds the input symbols to a dictionary."""

        def made() -> tuple[_Values, _Values]:
            kernels = self._kernels
            symbols = {"basis": self._basis}
            for part in (kernels.point_expressions, kernels.ratio_expressions, kernels.move_expressions):
                symbols |= part.inputs
            outputs = make(symbols)
            used = {entry.__hash__() for entry in ca.symvar(ca.veccat(*outputs.values()))}
            kept = {key: all_ for key, all_ in symbols.items() if any(e.__hash__() in used for e in ca.symvar(all_))}
            return kept, outputs

        return self._own.fold(self._kernels.name(f"{name}_of_{self._points}_points"), made, _KINDS, self._points)

    def _profiles(self, points: ca.SX, columns: int) -> list[ca.SX]:
        """Return all derivatives (columns,) of splines with respect to s, from their control points."""
        P = self._points
        table = ca.reshape(points, columns, P)
        return [table @ self._basis[d * P : (d + 1) * P] for d in range(self._own.orders)]

    def _node(self, symbols: _Values, prefix: str = "") -> _Values:
        """Return the inputs of the node that depend on the variables."""
        new = {f"{prefix}points": ca.SX.sym("points", self._points * self._own.count)}
        if prefix:
            new |= {f"{prefix}{key}": ca.SX.sym(key, symbols[key].numel()) for key in ("T", "numbers")}
        symbols |= new
        T, profiles = symbols[f"{prefix}T"], self._profiles(new[f"{prefix}points"], self._own.count)
        values = {f"y_{d}": profile * (1 / T) ** d for d, profile in enumerate(profiles)}
        return values | {"T": T, "numbers": symbols[f"{prefix}numbers"]}

    def _changes(self, symbols: _Values, k: int) -> list[_Values]:
        """Return the inputs of each of k changes of the variables."""
        N, count = self._own.count, self._kernels.count
        symbols |= {"change_points": ca.SX.sym("change_points", self._points * k * N)}
        symbols |= {"specials": ca.SX.sym("specials", k * count)}
        profiles, specials = self._profiles(symbols["change_points"], k * N), symbols["specials"]
        return [
            {
                "changes": ca.vertcat(*(profile[j * N : (j + 1) * N] for profile in profiles)),
                "specials": specials[j * count : (j + 1) * count],
            }
            for j in range(k)
        ]

    def _steps(self, node: _Values, first: _Values, second: _Values) -> tuple[_Values, _Values]:
        """Return the rows and the outputs of ``predicted`` for two changes of the variables."""
        rows = self._kernels.rows_expressions.at(**node)
        N, D = self._own.count, self._own.orders
        both = [change["changes"][d * N : (d + 1) * N] for d in range(D) for change in (first, second)]
        specials = ca.vertcat(first["specials"], second["specials"])
        steps = self._kernels.prediction_expressions.at(**rows, changes=ca.vertcat(*both), specials=specials)
        return rows, steps

    @cached_property
    def gradient(self) -> Fold:
        """Gradient of the integral."""

        def make(symbols: _Values) -> _Values:
            symbols["node_weight"] = ca.SX.sym("node_weight")
            outputs = self._kernels.gradient_expressions.at(**self._node(symbols))
            return {name: symbols["node_weight"] * output for name, output in outputs.items()}

        return self._fold("gradient", make)

    @cached_property
    def point(self) -> Fold:
        """Sums of a point: "totals" as in ``barrier``, and "blocks" (spans, blocks, P P).

        The integral is weighted by "weight" times "node_weight", and the curvature of the rows by "curvature".
        """

        def make(symbols: _Values) -> _Values:
            symbols |= {name: ca.SX.sym(name) for name in ("node_weight", "curvature")}
            values = self._node(symbols) | {"weight": symbols["weight"] * symbols["node_weight"]}
            values["multipliers"] = symbols["curvature"] * symbols["u"] * symbols["inverse"]
            outputs = self._kernels.point_expressions.at(**values)
            blocks = ca.reshape(outputs["blocks"], -1, self._own.orders**2)
            result = {"blocks": ca.vec(blocks.T)} | {name: outputs[name] for name in ("pulled", "pulled_specials")}
            if not self._own.m:
                return result
            totals = outputs["totals"]
            return result | {"sums": totals[:4], "largest": ca.vertcat(totals[4:7], -totals[7])}

        return self._fold("point", make)

    @cached_property
    def predicted(self) -> Fold:
        """Sums of a step without a barrier and of a step for a unit barrier parameter."""

        def make(symbols: _Values) -> _Values:
            _, outputs = self._steps(self._node(symbols), *self._changes(symbols, 2))
            totals = outputs["totals"]
            result = {name: outputs[name] for name in ("pulled", "pulled_specials")}
            return result | {"sums": totals[:2], "largest": totals[2:]}

        return self._fold("prediction", make)

    @cached_property
    def ratios(self) -> Fold:
        """Largest relative reductions by steps, from those of ``predicted`` and the second-order change."""

        def make(symbols: _Values) -> _Values:
            first, unit, second = self._changes(symbols, 3)
            rows, steps = self._steps(self._node(symbols), first, unit)
            values = {"jacobian": rows["jacobian"], "steps": steps["ds"]} | second
            return {"largest": self._kernels.ratio_expressions.at(**values)["totals"]}

        return self._fold("ratios", make)

    @cached_property
    def moved(self) -> Fold:
        """Rows and sums after a step, from its change of the variables and the change without a barrier.

        "sums" ends with the integral.
        """

        def make(symbols: _Values) -> _Values:
            symbols["node_weight"] = ca.SX.sym("node_weight")
            rows, steps = self._steps(self._node(symbols), *self._changes(symbols, 2))
            ds, predictor = ca.vertsplit(steps["ds"], self._own.m)
            values = self._node(symbols, "new_") | {"ds": ds, "predictor": predictor + rows["off"]}
            outputs = self._kernels.move_expressions.at(**values)
            totals, cost = outputs.pop("totals"), symbols["node_weight"] * outputs.pop("cost")
            return outputs | {"sums": ca.vertcat(totals[:2], cost), "largest": totals[2:]}

        return self._fold("move", make)

    @cached_property
    def outside(self) -> Fold:
        """Largest bound violation of "required" rows, and their sum, which detects NaN."""

        def make(symbols: _Values) -> _Values:
            symbols["required"] = ca.SX.sym("required", self._own.m)
            h = self._kernels.rows_expressions.at(**self._node(symbols), w=ca.SX.zeros(self._own.m))["off"]
            kept = ca.if_else(symbols["required"], h, 0)
            beyond = ca.fmax(symbols["low"] - h, h - symbols["high"])
            return {"sums": ca.sum1(kept), "largest": ca.mmax(ca.fmax(ca.if_else(symbols["required"], beyond, 0), 0))}

        return self._fold("outside", make)
