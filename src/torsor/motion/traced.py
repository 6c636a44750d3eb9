"""The function of a node, traced and compiled: values, first and second derivatives of all terms of a kind of node."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler import compile
from torsor.errors import ModelError, describe
from torsor.motion.node import Node
from torsor.motion.subject import ORDERS
from torsor.motion.terms import Bound, Cost, Rows

__all__ = ["Pattern", "Traced"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Call = Callable[..., tuple[Array, ...]]

SAME = 1e-9  # what numbers may differ by from bounds that they only just keep
_SINGLE = ("T", "s", "weight")


class Pattern(NamedTuple):
    """Where the entries of a matrix that are not zero by structure are."""

    rows: Indices
    columns: Indices


def _moving(term: Rows, bound: Bound) -> Bound:
    """Return the rows that are not the same at all moments: those that are hold, or never will."""
    still = np.array([bound.expression[k].is_constant() for k in range(bound.expression.numel())], dtype=bool)
    for k in np.flatnonzero(still).tolist():
        value, least, most = float(bound.expression[k]), float(bound.lower[k]), float(bound.upper[k])
        if not least - SAME <= value <= most + SAME:
            found = f"{bound.labels[k]} is {value:.6g} whatever the robot does"
            raise ModelError(describe(found, where=term.title, allowed=f"{least:.6g} to {most:.6g}"))
    kept = np.flatnonzero(~still)
    labels = tuple(bound.labels[k] for k in kept.tolist())
    return Bound(bound.expression[kept.tolist()], bound.lower[kept], bound.upper[kept], labels)


class Traced:
    """Terms at one kind of node: their rows (m), and their integrand.

    Inputs are the profiles and their rates up to the highest order that occurs (``orders`` of them), T, the shared
    numbers, s, and with closed loops the positions Q; u has the first ``orders`` x N, then T, then the numbers.
    """

    def __init__(self, node: Node, rows: Sequence[Rows], costs: Sequence[Cost]):
        self.node, self.rows, self.costs = node, tuple(rows), tuple(costs)
        self.bounds: list[Bound] = [_moving(each, each.bound(node)) for each in rows]
        expression = ca.vertcat(ca.SX(0, 1), *(bound.expression for bound in self.bounds))
        parts = [(1 if each.is_sum else node.T) * each.weight * each.integrand(node) for each in costs]
        total = sum(parts, start=ca.SX(0))
        self._rows, self._cost = ca.densify(expression), ca.densify(total)
        plain = node.value(ca.vertcat(self._rows, self._cost))
        used = [k for k in range(ORDERS) if ca.depends_on(plain, node.y[k])]
        if node.Q is not None:
            used.append(2)
        self.orders, self.count = max(used, default=0) + 1, node.y[0].numel()
        self.m = int(self._rows.numel())
        self.profiles = self.orders * self.count
        self.size = self.profiles + 1 + node.numbers.numel()

    @property
    def _inputs(self) -> dict[str, ca.SX]:
        node = self.node
        given = {f"y_{k}": node.y[k] for k in range(self.orders)} | {"T": node.T, "numbers": node.numbers, "s": node.s}
        return given if node.Q is None else given | {"Q": node.Q}

    def _kernel(self, name: str, more: dict[str, ca.SX], outputs: dict[str, ca.SX]) -> Call:
        inputs = {key: each for key, each in (self._inputs | more).items() if each.numel()}
        flat = [ca.densify(each) for each in ca.cse(list(outputs.values()))]
        kept = {key: each for key, each in zip(outputs, flat, strict=True) if each.numel()}
        function = ca.Function(name, list(inputs.values()), list(kept.values()), list(inputs), list(kept))
        shapes = [() if key in _SINGLE else (each.numel(),) for key, each in inputs.items()]
        kernel = compile(function, inputs=shapes, outputs=[(each.numel(),) for each in kept.values()])

        def call(**values: Array) -> tuple[Array, ...]:
            found = kernel(*(values[key] for key in inputs))
            results = dict(zip(kept, found if isinstance(found, tuple) else (found,), strict=True))
            batch = values["s"].shape
            return tuple(results.get(key, np.zeros((*batch, 0))) for key in outputs)

        return call

    def _u(self, matrix: ca.SX) -> ca.SX:
        """Return columns by u without the orders that do not occur."""
        kept = [*range(self.profiles), *range(ORDERS * self.count, self.node.u.numel())]
        return matrix[:, kept]

    @cached_property
    def value(self) -> Call:
        """The rows (m,), and the integrand (1,)."""
        rows, cost = (self.node.value(each) for each in (self._rows, self._cost))
        return self._kernel("value", {}, {"rows": rows, "cost": cost})

    def _cheaper(self, made: Callable[[bool], list[ca.SX]], expression: ca.SX) -> list[ca.SX]:
        """Return derivatives by recursions, or by CasADi's own rules, whichever takes fewer operations.

        Recursions win where forces of many coordinates are bounded; CasADi's reverse sweep for a cost alone, and its
        forward sweeps where few profiles move the robot, as along a path.
        """
        if not self.node.has_recursions(expression):
            return made(False)
        both = [made(direct) for direct in (False, True)]
        sizes = [ca.Function("count", [], each, {"allow_free": True}).n_instructions() for each in both]
        return both[sizes[1] < sizes[0]]

    @cached_property
    def _slopes(self) -> tuple[ca.SX, ca.SX]:
        def made(direct: bool) -> list[ca.SX]:
            return [ca.sparsify(self._u(self.node.slope(each, direct))) for each in (self._rows, self._cost)]

        rows, cost = self._cheaper(made, ca.vertcat(self._rows, self._cost))
        return rows, cost

    @cached_property
    def pattern(self) -> Pattern:
        """Where the derivatives of the rows are."""
        return Pattern(*(np.array(each, dtype=int) for each in self._slopes[0].sparsity().get_triplet()))

    @cached_property
    def slope(self) -> Call:
        """Derivatives by u: entries of those of the rows (``pattern``), and all (u,) of the integrand."""
        rows, cost = self._slopes
        return self._kernel("slope", {}, {"rows": ca.vec(rows.nz[:]), "cost": ca.densify(cost).T})

    @cached_property
    def _bend(self) -> tuple[dict[str, ca.SX], ca.SX, ca.SX]:
        weights = {"multipliers": ca.SX.sym("multipliers", self.m), "weight": ca.SX.sym("weight")}
        total = weights["weight"] * self._cost + ca.dot(weights["multipliers"], self._rows)

        def made(direct: bool) -> list[ca.SX]:
            full = self._u(self._u(self.node.bend(total, direct)).T)
            slope = ca.densify(self._u(self.node.slope(total, direct))).T
            return [ca.sparsify(ca.tril(full)), slope]

        lower, slope = self._cheaper(made, total)
        return weights, lower, slope

    @cached_property
    def bend_pattern(self) -> Pattern:
        """Where the entries of the Hessian are, its lower triangle."""
        return Pattern(*(np.array(each, dtype=int) for each in self._bend[1].sparsity().get_triplet()))

    @cached_property
    def bend(self) -> Call:
        """Of weight . integrand + multipliers . rows: the Hessian (entries of ``bend_pattern``), the gradient (u,)."""
        weights, lower, slope = self._bend
        return self._kernel("bend", weights, {"lower": ca.vec(lower.nz[:]), "slope": slope})

    def unpack(self, lower: Array) -> Array:
        """Return the Hessians (K, u, u) of entries (K, ...) that the kernel gives."""
        full = np.zeros((len(lower), self.size, self.size))
        i, j = self.bend_pattern
        full[:, i, j] = lower
        full[:, j, i] = lower
        return full

    def inputs(self, y: Array, T: float, numbers: Array, s: Array, Q: Array | None = None) -> dict[str, Any]:
        """Return the arguments of kernels, from profiles and their rates (orders, K, N)."""
        given: dict[str, Any] = {f"y_{k}": y[k] for k in range(self.orders)}
        return given | {"T": np.array(T), "numbers": numbers, "s": s} | ({} if Q is None else {"Q": Q})
