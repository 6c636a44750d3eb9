"""Compiled kernels of a node: values, Jacobian and Hessian of all terms that are evaluated at the same times."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from hashlib import sha256
from itertools import compress, pairwise
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.errors import ModelError
from torsor.base.progress import working
from torsor.compiler import Kernel, Signature
from torsor.compiler.cache import source_hash
from torsor.compiler.fold import Fold
from torsor.compiler.llvm.fold import Kind
from torsor.motion.terms.term import Constraint, Cost, Rows, Term
from torsor.motion.transcription.motion_model import ORDERS, MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

Key = tuple[int, tuple[float, ...], tuple[float, ...], str]  # phase, times, integration weights, `together`


def grouped(phases: Sequence[Phase], terms: Sequence[Term], model: MotionModel) -> dict[Key, list[Term]]:
    """Return terms grouped by phase, times, integration weights and ``together``."""
    groups: dict[Key, list[Term]] = {}
    for index, phase in enumerate(phases):
        for term in terms:
            if term.has_rows and term.holds_in(index, phase):
                moments, weights = moments_of(term, phase, model)
                key = index, tuple(moments.tolist()), tuple(weights.tolist()), term.together
                groups.setdefault(key, []).append(term)
    # Constraints are merged into integrals at the same times.
    integrals = {(index, at, word): parts for index, at, parts, word in groups if any(parts)}
    merged: dict[Key, list[Term]] = {}
    for (index, at, parts, word), members in groups.items():
        new = parts if any(parts) else integrals.get((index, at, word), parts)
        merged.setdefault((index, at, new, word), []).extend(members)
    # Constant integrands, such as that of the duration, are evaluated at the times of constraints.
    for (index, at, parts, word), members in list(merged.items()):
        if all(isinstance(term, Cost) and term.is_even and not term.is_sum for term in members):
            rows = next((key for key in merged if key[0] == index and not any(key[2])), None)
            if rows is not None:
                del merged[index, at, parts, word]
                merged[index, rows[1], (sum(parts), *rows[2][1:]), rows[3]] = [*merged.pop(rows), *members]
    return merged


def moments_of(term: Term, phase: Phase, model: MotionModel) -> tuple[Array, Array]:
    """Return the times s (K,) of a term, and the weights (K,) of its integral or sum (0 for constraints)."""
    if isinstance(term, Cost) and not term.is_sum:
        return phase.integral(*term.during, term.fewest(model))
    moments = term.moments(phase)
    return moments, np.full(len(moments), float(isinstance(term, Cost)))


Call = Callable[..., dict[str, Array]]
Made = tuple[dict[str, ca.SX], list[Indices]]  # outputs by name, and their sparsity patterns

BOUND_TOLERANCE = 1e-9  # tolerance of the bounds of constant rows
_COMPILED = WeakValueDictionary[str, Kernels]()  # by device and identity, shared by problems of one structure
_SCALARS = ("T", "s", "weight", "mu", "corrector", "length", "dual")


class NodeJacobian(NamedTuple):
    """First derivatives of a node: their sparsity pattern, and the kernel that computes them.

    The variables are B_d c = T^d w_d, the derivatives of profiles with respect to s; T at constant control points; and
    the numbers. ``pairs`` (2, pairs) are rows with the profiles on which they depend, ``timed`` are the rows that
    depend on T, and ``entries`` (2, entries) are rows with the numbers on which they depend. The kernel returns "rows"
    (orders x pairs), "timed", "shared", and "cost" (orders x N, T, numbers), which is the dense gradient of the
    integrand. Derivatives with respect to T are omitted if T is fixed.
    """

    pairs: Indices
    timed: Indices
    entries: Indices
    call: Call


class NodeHessian(NamedTuple):
    """Second derivatives of a node with respect to the variables of ``NodeJacobian``.

    The special variables ("specials") are T, unless it is fixed, and the numbers. ``blocks`` (2, blocks) are the pairs
    of profiles i >= j with nonzero second derivatives. The kernel returns "blocks" (orders of i x orders of j x
    blocks), "mixed" (orders x N x specials) with respect to a profile and a special, and "corner" (specials x
    specials). Squares are included without the products of their first derivatives, which are "squares" (orders x
    pairs, then squares x specials). ``pairs`` (2, pairs) are squares with the profiles on which they depend.
    """

    blocks: Indices
    pairs: Indices
    call: Call


def _moving(term: Constraint, node: Node) -> Rows:
    """Return the rows that are not constant; raise ModelError if a constant row is outside its bounds."""
    first = len(node.all_given)
    bound = term.rows(node)
    expression = ca.densify(bound.expression)
    numbers, values = node.given_numbers(first)
    rows: list[Any] = expression.elements()
    still = np.array([row.is_constant() for row in rows])
    if values.size:  # rows of only these numbers are constant
        own = {symbol.__hash__() for symbol in ca.symvar(numbers)}
        others = [symbol for symbol in ca.symvar(expression) if symbol.__hash__() not in own]
        still = np.logical_not(ca.which_depends(expression, ca.vertcat(ca.SX(0, 1), *others), 1, True))
    if not still.any():
        return bound._replace(expression=expression)
    for k in np.flatnonzero(still).tolist():
        value = float(ca.substitute(expression[k], numbers, ca.DM(values)))
        least, most = float(bound.lower[k]), float(bound.upper[k])
        if not least - BOUND_TOLERANCE <= value <= most + BOUND_TOLERANCE:
            message = f"{bound.labels[k]} is {value:.6g} for every motion"
            raise ModelError(message, where=term.title, allowed=f"{least:.6g} to {most:.6g}")
    kept = np.flatnonzero(~still)
    labels = tuple(bound.labels[k] for k in kept.tolist())
    return Rows(expression[kept.tolist(), :], bound.lower[kept], bound.upper[kept], labels)


class NodeKernels:
    """Terms at one kind of node: their rows (m) and their integrand.

    Inputs are the profiles and their time derivatives up to the highest order used (``orders`` arrays), T, the shared
    numbers, s, the data at the node, the ``given`` numbers, which are the same at all nodes, and with closed loops the
    positions Q. u contains ``orders`` x N profile entries, T and the numbers, in this order. The ``given`` numbers of
    the problem (``of_problem``) precede those of the terms. The code does not depend on their values.
    """

    def __init__(
        self, node: Node, constraints: Sequence[Constraint], costs: Sequence[Cost], of_problem: Array | None = None
    ):
        self.node, self.constraints, self.costs = node, tuple(constraints), tuple(costs)
        node.all_given.clear()
        self.rows: list[Rows] = [_moving(constraint, node) for constraint in constraints]
        expression = ca.vertcat(ca.SX(0, 1), *(row.expression for row in self.rows))
        parts, squares = list[ca.SX](), list[ca.SX]()
        for cost in costs:
            # An integrand is multiplied by dt/ds, or by its mean T if the integrand is constant.
            is_uneven = node.clock.harmonics and not cost.is_even
            factor = ca.SX(1) if cost.is_sum else node.T * node.clock_rate if is_uneven else node.T
            weight = factor * node.given(cost.weight, keep_zeros=True)
            column = cost.squares(node)
            parts.append(weight * cost.integrand(node))
            if cost.weight < 0:  # a negative weight has no real square root
                parts.append(weight * ca.sumsqr(column))
            else:
                squares.append(ca.sqrt(weight) * column)
        self._plain_cost, self._squares = sum(parts, start=ca.SX(0)), ca.densify(ca.vertcat(ca.SX(0, 1), *squares))
        self.rows_expression, self.cost_expression = (
            ca.densify(expression),
            ca.densify(self._plain_cost + ca.sumsqr(self._squares)),
        )
        self.orders, self.count = node.orders(ca.vertcat(self.rows_expression, self.cost_expression)), node.y[0].numel()
        self.m = int(self.rows_expression.numel())
        both = ca.vertcat(self.rows_expression, self.cost_expression)
        # The order does not depend on other kernels of the node.
        are_used = node.uses(both, list(node.all_data.values()))
        used = sorted(compress(node.all_data, are_used))
        for (name, count), (other, most) in pairwise(used):
            if name == other:
                what, allowed = f"data {name!r} has {most} numbers", f"{count}, as in another term"
                raise ModelError(what, value=name, where="node", allowed=allowed)
        self._data = {name: node.all_data[name, count] for name, count in used}
        numbers, values = node.given_numbers()
        self._given = ca.vertcat(node.problem_numbers, numbers)
        self.of_problem = np.zeros(0) if of_problem is None else of_problem
        self.given = np.concatenate([self.of_problem, values])
        self._calls: dict[str, tuple[list[Indices], Call]] = {}
        self.profiles = self.orders * self.count
        self.size = self.profiles + 1 + node.numbers.numel()
        self._target = Target()

    def on(self, device: str) -> "NodeKernels":
        """Return the same kernels on another device."""
        if device == self._target.device:
            return self
        other = copy(self)
        other._target, other._calls = Target(device=device), {}
        for name in ("_kernels", "value"):
            other.__dict__.pop(name, None)
        return other

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The title of the term and the label of each row (m)."""
        pairs = zip(self.constraints, self.rows, strict=True)
        return [(term.title, label) for term, bound in pairs for label in bound.labels]

    @property
    def square_count(self) -> int:
        """Number of squares in the integrand."""
        return int(self._squares.numel())

    @property
    def inputs(self) -> dict[str, ca.SX]:
        """The symbols of the inputs."""
        node = self.node
        inputs = {f"y_{k}": node.y[k] for k in range(self.orders)} | {"T": node.T, "numbers": node.numbers, "s": node.s}
        inputs |= {"given": self._given, "data": ca.vertcat(ca.SX(0, 1), *self._data.values())}
        return inputs if node.Q is None else inputs | {"Q": node.Q}

    @cached_property
    def _kernels(self) -> Kernels:
        identity, target = self.identity, self._target
        return _COMPILED.setdefault(f"{target.device} {identity}", Kernels(target, lambda: identity))

    @cached_property
    def identity(self) -> str:
        """A hash of everything on which the kernels depend, computed without tracing the robot."""
        node = self.node
        outputs = [self.rows_expression, self._plain_cost, self._squares]
        quantities = sorted((quantity.symbol for quantity in node.quantities_in(ca.vertcat(*outputs))), key=str)
        inputs = [*node.y, node.T, node.s, node.numbers, self._given, *self._data.values(), *quantities]
        inputs += [] if node.Q is None else [node.Q]
        terms = ca.Function("terms", inputs, outputs).serialize()
        sources = source_hash("motion/transcription", "optimisation/barrier.py")
        return sha256(f"{node.identity} {self.orders} {sources} {terms}".encode()).hexdigest()

    def kernel(
        self, name: str, more: Mapping[str, ca.SX], make: Callable[[], Made], at_node: bool = True
    ) -> tuple[list[Indices], Call]:
        """Return the sparsity patterns and the kernel of named outputs, which are cached.

        Its inputs are ``more`` and, unless ``at_node`` is False, those of the node.
        """
        if name in self._calls:
            return self._calls[name]
        made = cache(make)

        def trace() -> ca.Function:
            return _traced(name, (self.inputs if at_node else {}) | dict(more), made()[0])

        result = self.patterns(name, made)
        kernel = self._kernels.kernel(name, trace, _vectors, quick=True)
        names = kernel.signature.names_in, kernel.signature.names_out
        unchecked = kernel.unchecked if isinstance(kernel, Kernel) else kernel

        def call(out: Mapping[str, Array] | None = None, **values: Array) -> dict[str, Array]:
            inputs = [values[key] for key in names[0]]
            if out is None:
                results = kernel(*inputs) if names[1] else ()
            else:  # arrays created by the library need no checks
                results = unchecked(*inputs, out=tuple(map(out.get, names[1])))
            return dict(zip(names[1], results if isinstance(results, tuple) else (results,), strict=True))

        self._calls[name] = result, call
        return result, call

    def patterns(self, name: str, make: Callable[[], Made]) -> list[Indices]:
        """Return the sparsity patterns of named outputs, which are cached."""
        with working(f"building {name} of the motion problem"):
            return self._kernels.patterns(name, lambda: make()[1])

    def fold(
        self,
        name: str,
        make: Callable[[], tuple[dict[str, ca.SX], dict[str, ca.SX]]],
        kinds: Mapping[str, Kind],
        points: int,
    ) -> Fold:
        """Return the fold of named inputs and outputs, whose profiles depend on ``points`` control points each."""
        return self._kernels.fold(name, lambda: _traced(name, *make()), kinds, self.orders, points)

    @cached_property
    def weights(self) -> dict[str, ca.SX]:
        """The symbols of row multipliers and integrand weight in second derivatives."""
        return {"multipliers": ca.SX.sym("multipliers", self.m), "weight": ca.SX.sym("weight")}

    def _u(self, matrix: ca.SX) -> ca.SX:
        """Return the columns of derivatives with respect to u, except those of unused orders."""
        kept = [*range(self.profiles), *range(ORDERS * self.count, self.node.u.numel())]
        return matrix[:, kept]

    @cached_property
    def value(self) -> Call:
        """The "rows" (m,) and the integrand, "cost" (1,)."""

        def make() -> Made:
            return {"rows": self.node.value(self.rows_expression), "cost": self.node.value(self.cost_expression)}, []

        return self.kernel("value", {}, make)[1]

    def _cheaper(self, made: Callable[[bool], list[ca.SX]], expression: ca.SX) -> list[ca.SX]:
        """Return derivatives by recursions or by CasADi's rules, whichever need fewer operations.

        Recursions need the fewest operations if forces of many coordinates are bounded. CasADi's reverse mode does for
        a single cost, and its forward mode if few profiles move the robot, as along a path.
        """
        if not self.node.quantities_in(expression):
            return made(False)
        both = [made(direct) for direct in (False, True)]
        sizes = [ca.Function("count", [], derivatives, {"allow_free": True}).n_instructions() for derivatives in both]
        return both[sizes[1] < sizes[0]]

    @cached_property
    def _jacobians(self) -> tuple[ca.SX, ca.SX]:
        def made(direct: bool) -> list[ca.SX]:
            return [
                ca.sparsify(self._u(self.node.derivatives(expression, direct)))
                for expression in (self.rows_expression, self.cost_expression)
            ]

        rows, cost = self._cheaper(made, ca.vertcat(self.rows_expression, self.cost_expression))
        return rows, cost

    def jacobian(self, by_T: bool) -> NodeJacobian:
        """Return derivatives with respect to (B c, T, numbers); T is omitted if it is fixed."""
        name = "jacobian" if by_T else "jacobian_given_T"
        (pairs, timed, entries), call = self.kernel(name, {}, lambda: self.make_jacobian(by_T))
        return NodeJacobian(pairs, timed, entries, call)

    def make_jacobian(self, by_T: bool) -> Made:
        """Return the outputs of ``jacobian``, and their sparsity patterns."""
        rows, cost = self._jacobians
        N, D, T = self.count, self.orders, self.node.T
        i, j = _triplet(rows)
        is_profile = j < self.profiles
        pairs = np.unique(np.stack([i[is_profile], j[is_profile] % N]), axis=1)
        timed = np.unique(i[(j >= N) & (j <= self.profiles)]) if by_T else np.zeros(0, dtype=int)
        entries = np.stack([i, j - self.profiles - 1])[:, j > self.profiles]
        full, rates, inverse = ca.densify(rows), self._rates, 1 / T  # products take less time than quotients
        by_time = cost @ rates if by_T else ca.SX(0, 1)
        outputs = {
            "rows": ca.vertcat(*(_entries_of(full, pairs[0], pairs[1] + d * N) * inverse**d for d in range(D))),
            "timed": (full @ rates)[timed.tolist()] if by_T else ca.SX(0, 1),
            "shared": _entries_of(full, entries[0], entries[1] + self.profiles + 1),
            "cost": ca.vertcat(self._unscaled(cost.T), by_time, cost[self.profiles + 1 :].T),
        }
        return outputs, [pairs, timed, entries]

    @cached_property
    def _rates(self) -> ca.SX:
        """Derivatives of profiles, their time derivatives, T and the numbers by T, at constant control points."""
        y, T = self.node.y, self.node.T
        parts = [-d * (1 / T) * y[d] for d in range(self.orders)]
        return ca.vertcat(*parts, 1, ca.SX(self.size - self.profiles - 1, 1))

    def _unscaled(self, column: ca.SX) -> ca.SX:
        """Return derivatives with respect to B c, by order, from those with respect to time derivatives."""
        N, inverse = self.count, 1 / self.node.T
        return ca.vertcat(*(column[d * N : (d + 1) * N] * inverse**d for d in range(self.orders)))

    @cached_property
    def _hessian_parts(self) -> tuple[ca.SX, ca.SX]:
        weights, here = self.weights, ca.SX.sym("here", self._squares.numel())
        cost = self._plain_cost + 2 * ca.dot(here, self._squares)
        total = weights["weight"] * cost + ca.dot(weights["multipliers"], self.rows_expression)

        def made(direct: bool) -> list[ca.SX]:
            full = self._u(self._u(self.node.second_derivatives(total, direct)).T)
            jacobian = ca.densify(self._u(self.node.derivatives(total, direct))).T
            return [ca.sparsify(ca.tril(full)), jacobian]

        at = self.node.value(self._squares)
        lower, jacobian = (ca.substitute(matrix, here, at) for matrix in self._cheaper(made, total))
        return lower, jacobian

    def hessian(self, by_T: bool) -> NodeHessian:
        """Return second derivatives of weight . integrand + multipliers . rows with respect to (B c, T, numbers)."""
        name = "hessian" if by_T else "hessian_given_T"
        (blocks, pairs), call = self.kernel(name, self.weights, lambda: self.make_hessian(by_T))
        return NodeHessian(blocks, pairs, call)

    def make_hessian(self, by_T: bool, stiffness: ca.SX | None = None) -> Made:
        """Return the outputs of ``hessian`` or, with ``stiffness`` (m x 1), those of the condensed matrix.

        The condensed matrix includes J^T diag(stiffness) J of the rows, and the squares.
        """
        lower, jacobian = self._hessian_parts
        N, D, y, T, U = self.count, self.orders, self.node.y, self.node.T, self.profiles
        inverse = 1 / T
        i, j = _triplet(lower)
        is_profile = i < U  # and therefore j < U
        touched = np.zeros((N, N), dtype=bool)
        touched[i[is_profile] % N, j[is_profile] % N] = touched[j[is_profile] % N, i[is_profile] % N] = True
        jacobians = ca.sparsify(self._u(self.node.derivatives(self._squares)))
        products = jacobians if stiffness is None else ca.vertcat(self._jacobians[0], jacobians)
        k, at = _triplet(products)
        depends = np.zeros((products.shape[0], N), dtype=bool)
        depends[k[at < U], at[at < U] % N] = True
        touched |= depends.T @ depends
        blocks = np.stack(np.nonzero(np.tril(touched)))
        full = ca.densify(ca.tril2symm(lower))
        mixed, corner = full[:U, U + 1 :], full[U + 1 :, U + 1 :]
        if by_T:
            pulled = full @ self._rates
            parts = (d * (d + 1) * ca.dot(y[d], jacobian[d * N : (d + 1) * N]) for d in range(1, D))
            second = sum(parts, start=ca.SX(0))
            mixed = ca.horzcat(pulled[:U] - ca.DM(np.repeat(np.arange(D), N)) * inverse * jacobian[:U], mixed)
            top = ca.horzcat(ca.dot(self._rates, pulled) + second / T**2, pulled[U + 1 :].T)
            corner = ca.vertcat(top, ca.horzcat(pulled[U + 1 :], corner))
        by_profiles = full[:U, :U]
        timed = products @ self._rates if by_T else ca.SX(products.shape[0], 0)
        others = ca.horzcat(timed, products[:, U + 1 :])
        if stiffness is not None:
            weights = ca.vertcat(stiffness, ca.repmat(2 * self.weights["weight"], jacobians.shape[0]))
            weighted = ca.diag(weights) @ ca.horzcat(products[:, :U], others)
            by_profiles += products[:, :U].T @ weighted[:, :U]
            mixed += products[:, :U].T @ weighted[:, U:]
            corner += others.T @ weighted[:, U:]
        scaled = ca.horzcat(ca.SX(U, 0), *(self._unscaled(mixed[:, k]) for k in range(mixed.shape[1])))
        by_orders = [
            _entries_of(ca.densify(by_profiles), blocks[0] + d * N, blocks[1] + e * N) * inverse ** (d + e)
            for d in range(D)
            for e in range(D)
        ]
        outputs = {"blocks": ca.vertcat(*by_orders), "mixed": ca.vec(scaled.T), "corner": ca.vec(corner)}
        if stiffness is not None:
            return outputs, [blocks]
        pairs = np.unique(np.stack([k, at % N])[:, at < U], axis=1)
        squares = [_entries_of(ca.densify(jacobians), pairs[0], pairs[1] + d * N) * inverse**d for d in range(D)]
        outputs["squares"] = ca.vertcat(*squares, ca.vec(others.T))
        return outputs, [blocks, pairs]

    def data(self, s: Array) -> Array:
        """Return the data (K, count) of the terms at times s (K,)."""
        result: dict[str, Array] = {}
        for term in (*self.constraints, *self.costs):
            for name, provided in term.data(s).items():
                if name in self._data:
                    shape = len(s), self._data[name].numel()
                    try:
                        values = np.asarray(provided, dtype=float)
                    except (TypeError, ValueError):
                        values = np.array(np.nan)
                    if values.shape != shape:
                        message = f"the data have shape {values.shape}" if values.ndim else f"the data are {provided!r}"
                        where, allowed = f"{term.title}: data {name!r}", f"numbers {shape}, one row per moment"
                        raise ModelError(message, where=where, allowed=allowed)
                    if not np.array_equal(result.setdefault(name, values), values, equal_nan=True):
                        what, fix = f"data {name!r} differ from those of another term", "rename them"
                        raise ModelError(what, value=name, where=term.title, fix=fix)
        missing = next((name for name in self._data if name not in result), None)
        if missing is not None:
            titles = ", ".join(term.title for term in (*self.constraints, *self.costs))
            what, fix = f"node.data needs {missing!r}, which no term provides", "return it from Term.data"
            raise ModelError(what, value=missing, where=titles, fix=fix)
        return np.hstack([np.zeros((len(s), 0)), *(result[name] for name in self._data)])


def _traced(name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> ca.Function:
    """Return the function of named inputs and outputs, except empty ones."""
    used = {key: symbol for key, symbol in inputs.items() if symbol.numel()}
    flat = [ca.densify(output) for output in ca.cse(list(outputs.values()))]
    results = {key: output for key, output in zip(outputs, flat, strict=True) if output.numel()}
    return ca.Function(name, list(used.values()), list(results.values()), list(used), list(results))


def _vectors(of: Signature) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the shapes of the arrays of one node: scalars and vectors."""
    sizes = zip(of.names_in, of.sizes_in, strict=True)
    return [() if key in _SCALARS else (a * b,) for key, (a, b) in sizes], [(a * b,) for a, b in of.sizes_out]


def _triplet(matrix: ca.SX) -> tuple[Indices, Indices]:
    rows, columns = matrix.sparsity().get_triplet()
    return np.array(rows, dtype=int), np.array(columns, dtype=int)


def _entries_of(matrix: ca.SX, rows: Indices, columns: Indices) -> ca.SX:
    """Return entries of a dense matrix as a column."""
    return matrix[(rows + columns * matrix.shape[0]).tolist()] if rows.size else ca.SX(0, 1)
