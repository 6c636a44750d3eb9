"""The condensed interior-point method for many programs of one structure at once.

It is the method of ``condensed`` with one more axis: each case has its own barrier parameter, filter, step length and
regularisation, and the arrays of all cases are computed together. Cases that end leave the batch and new ones enter, so
that the number of cases in work is constant. A case does not depend on those beside it.

The steps for several barrier parameters and second-order corrections are combinations of three solutions of the same
linear equations, because these are linear in both. The arithmetic of bounds and slacks, which would take most of the
time as array operations, is compiled to four kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import Signature
from torsor.compiler.cache import source_hash
from torsor.optimisation.condensed import (
    CLOSE_RESIDUAL,
    FIRST_GAP_SHARE,
    GAP_FACTOR,
    LOOSER_FACTOR,
    MAX_BOUND_FRACTION,
    MAX_CORRECTIONS,
    MAX_MEAN_RESIDUAL,
    MAX_RESIDUAL_GROWTH,
    MAX_SHORT_STEPS,
    MAX_STILL_STEPS,
    MIN_STEP_FRACTION,
    SETTLED_DECREASE,
    SHORT_STEP,
    SOFT_ERROR_FACTOR,
    START_PUSH,
    STILL_STEP,
)
from torsor.optimisation.newton import Regularisation
from torsor.optimisation.program import Outcome, Settings
from torsor.optimisation.standard import MAX_GRADIENT, MIN_BOUND_DISTANCE
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

WIDTH = 16  # cases in work at a time: their arrays fit into the cache of a core
REFILL_FRACTION = 0.75  # fraction of the cases in work below which new ones enter
CORRECTOR_WEIGHTS = 4  # corrector weights that are tried
FAR = 1e30  # distance of a bound that does not exist


class LinearisedBatch(Protocol):
    """First derivatives of a batch at x (B, n), and its curvature."""

    @property
    def gradient(self) -> Array:
        """Gradients (B, n) of f."""

    def take(self, cases: Indices) -> "LinearisedBatch":
        """Return the derivatives of some cases."""

    def times(self, change: Array) -> Array:
        """Return J times changes (B, k, n)."""

    def transposed_times(self, rows: Array) -> Array:
        """Return J^T times rows (B, k, m)."""

    def condensed(self, multipliers: Array, barrier: Array, weight: Array) -> Array:
        """Return the Hessian (B, n, n) of weight f + multipliers . rows, plus J^T diag(barrier) J."""


class BatchedPrograms(Protocol):
    """Programs of one structure: bounds (B, n) of the variables and (B, m) of the rows, which are inequalities."""

    @property
    def lower(self) -> Array:
        """Lower bounds (B, n) of the variables."""

    @property
    def upper(self) -> Array:
        """Upper bounds (B, n) of the variables."""

    @property
    def row_lower(self) -> Array:
        """Lower bounds (B, m) of the rows."""

    @property
    def row_upper(self) -> Array:
        """Upper bounds (B, m) of the rows."""

    def __len__(self) -> int: ...

    def take(self, cases: Indices) -> "BatchedPrograms":
        """Return some of the programs."""

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the rows (B, m) at x (B, n)."""

    def linearised(self, x: Array) -> LinearisedBatch:
        """Return the derivatives at x (B, n)."""


# The kernels of bounds and slacks. Each works on one entry of w = (x, s), with its multipliers z of the lower and upper
# bound; a bound that does not exist is FAR away, and its multiplier is 0.


class _Bounded:
    """The symbols of one entry of w at a point: its multipliers, and the inverses of its distances from its bounds.

    An inverse distance is 0 if there is no bound. ``low_ratio`` and ``high_ratio`` are inverse distances divided by the
    multipliers, so that no kernel of a step divides.
    """

    def __init__(self) -> None:
        names = ["z_low", "z_high", "by_low", "by_high", "low_ratio", "high_ratio"]
        self.inputs = [ca.SX.sym(name) for name in names]
        self.z_low, self.z_high, self.by_low, self.by_high, self.low_ratio, self.high_ratio = self.inputs

    def taken(self, dw: ca.SX, predictor: ca.SX, mu: ca.SX, weight: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the fractions of the multipliers that a step takes away.

        dz = (mu - weight second - z dw) / gap - z, where second = predictor (-z - z predictor / gap).
        """
        low = 1 + self.by_low * (dw - weight * predictor * (1 + predictor * self.by_low)) - mu * self.low_ratio
        high = 1 - self.by_high * (dw - weight * predictor * (1 - predictor * self.by_high)) - mu * self.high_ratio
        return ca.if_else(self.by_low > 0, low, 0), ca.if_else(self.by_high > 0, high, 0)


def _point() -> ca.Function:
    """Return what an iteration needs of a point, given the gradient of the Lagrangian without bound multipliers."""
    w, z_low, z_high, low, high, gradient = (ca.SX.sym(name) for name in ("w", "a", "b", "l", "h", "gradient"))
    below, above, has_low, has_high = w - low, high - w, low > -FAR / 2, high < FAR / 2
    by_low, by_high = has_low / below, has_high / above
    product_low, product_high = below * z_low, above * z_high
    ratios = [ca.if_else(z > 0, by / z, 0) for z, by in ((z_low, by_low), (z_high, by_high))]
    results = [
        by_low, by_high, *ratios,
        z_low * by_low + z_high * by_high,
        by_high - by_low,
        product_low + product_high,
        ca.fmax(product_low, product_high),
        ca.fmin(ca.if_else(has_low, product_low, FAR), ca.if_else(has_high, product_high, FAR)),
        has_low * ca.log(below) + has_high * ca.log(above),
        ca.fabs(gradient - z_low + z_high),
    ]  # fmt: skip
    return ca.Function("point", [w, z_low, z_high, low, high, gradient], results)


def _predicted() -> ca.Function:
    """Return the second-order gradient of a step without a barrier, and the changes of the products along it."""
    at, dw = _Bounded(), ca.SX.sym("dw")
    low, high = -at.z_low * (1 + dw * at.by_low), -at.z_high * (1 - dw * at.by_high)  # changes of the multipliers
    # The product of gap and multiplier changes by z d(gap), by gap dz = -z (gap + d(gap)), and by both changes.
    results = [
        dw * (low * at.by_low + high * at.by_high),
        dw * (at.z_low - at.z_high),
        dw * (low - high),
    ]
    return ca.Function("predicted", [*at.inputs, dw], results)


def _ratios() -> ca.Function:
    """Return the fractions of the gap, and of the multipliers, that a step takes away."""
    at, (dw, predictor, mu, weight) = _Bounded(), (ca.SX.sym(name) for name in ("dw", "predictor", "mu", "weight"))
    primal = ca.fmax(-dw * at.by_low, dw * at.by_high)
    dual = ca.fmax(*at.taken(dw, predictor, mu, weight))
    return ca.Function("ratios", [*at.inputs, dw, predictor, mu, weight], [primal, dual])


def _moved() -> ca.Function:
    """Return w, u and z after a step, the logarithms of the gaps, and the relative change of w."""
    at, (dw, predictor, mu, weight) = _Bounded(), (ca.SX.sym(name) for name in ("dw", "predictor", "mu", "weight"))
    w, low, high, u = (ca.SX.sym(name) for name in ("w", "low", "high", "u"))
    stiffness, repulsion, bend = (ca.SX.sym(name) for name in ("stiffness", "repulsion", "bend"))
    length, dual = ca.SX.sym("length"), ca.SX.sym("dual")
    quarter = (high - low) / 4
    least, most = (
        side + sign * ca.fmin(MIN_BOUND_DISTANCE * ca.fmax(1, ca.fabs(side)), quarter)
        for side, sign in ((low, 1), (high, -1))
    )
    new = ca.fmin(ca.fmax(w + length * dw, least), most)
    gaps, has = (new - low, high - new), (low > -FAR / 2, high < FAR / 2)
    z = [
        ca.fmin(ca.fmax(z - dual * taken * z, 1e-10 * is_bound * mu / gap), 1e10 * is_bound * mu / gap)
        for z, taken, is_bound, gap in zip(
            (at.z_low, at.z_high), at.taken(dw, predictor, mu, weight), has, gaps, strict=True
        )
    ]
    du = stiffness * dw - u + mu * repulsion + weight * bend
    logs = has[0] * ca.log(gaps[0]) + has[1] * ca.log(gaps[1])
    inputs = [*at.inputs, dw, predictor, mu, weight, w, low, high, u, stiffness, repulsion, bend, length, dual]
    return ca.Function("moved", inputs, [new, u + length * du, *z, logs, ca.fabs(dw) / (1 + ca.fabs(w))])


@cache
def _compiled() -> Kernels:
    return Kernels(Target(), lambda: source_hash("optimisation"))


def _kernel(make: Callable[[], ca.Function]) -> Any:
    return _compiled().kernel(make.__name__, make, _scalars).direct


def _scalars(of: Signature) -> tuple[list[tuple[()]], list[tuple[()]]]:
    return [()] * len(of.sizes_in), [()] * len(of.sizes_out)


class _Filters:
    """Pairs (violation, objective) of earlier points of each case (B, count, 2)."""

    def __init__(self, pairs: Array):
        self.pairs = pairs

    @classmethod
    def empty(cls, count: int) -> "_Filters":
        return cls(np.full((count, 0, 2), np.inf))

    def accepts(self, theta: Array, merit: Array) -> Flags:
        """Return which pairs are better than each earlier one in violation or objective."""
        better = (theta[:, None] < self.pairs[..., 0]) | (merit[:, None] < self.pairs[..., 1])
        return np.asarray(better.all(axis=1))

    def added(self, theta: Array, merit: Array, to: Flags) -> "_Filters":
        """Return the filters with one more pair for some cases."""
        if not to.any():
            return self
        least = 1e-5 * theta
        pair = np.where(to[:, None], np.stack([theta - least, merit - least], axis=1), np.inf)
        return _Filters(np.concatenate([self.pairs, pair[:, None]], axis=1))

    def cleared(self, of: Flags) -> "_Filters":
        """Return the filters without the pairs of some cases."""
        if not self.pairs.shape[1] or not of.any():
            return self
        pairs = np.where(of[:, None, None], np.inf, self.pairs)
        return _Filters(pairs[:, np.isfinite(pairs).any(axis=(0, 2))])


@dataclass(eq=False)
class _State:
    """The cases in work: their points, and the state of the search of each.

    w (B, w) are variables and slacks, u (B, w) the multipliers of h - s = 0 (the entries of the variables have no
    meaning), ``z_low`` and ``z_high`` (B, w) those of the bounds, and ``rows`` h (B, m).
    """

    case: Indices
    w: Array
    u: Array
    z_low: Array
    z_high: Array
    low: Array
    high: Array
    count: Array
    weight: Array
    f: Array
    rows: Array
    mu: Array
    is_free: Flags
    is_flat: Flags
    first: Array
    share: Array
    most: Array
    small: Array
    shift: Array
    is_convex: Flags
    shorts: Indices
    stills: Indices
    iterations: Indices
    filter: _Filters
    past: _Filters

    def take(self, kept: Indices) -> "_State":
        """Return some of the cases."""

        def part(value: Any) -> Any:
            return _Filters(value.pairs[kept]) if isinstance(value, _Filters) else value[kept]

        return _State(*(part(getattr(self, field.name)) for field in fields(self)))

    def joined(self, other: "_State") -> "_State":
        """Return the cases of both."""

        def both(a: Any, b: Any) -> Any:
            if isinstance(a, _Filters):
                count = max(a.pairs.shape[1], b.pairs.shape[1])
                pad = [((0, 0), (0, count - each.pairs.shape[1]), (0, 0)) for each in (a, b)]
                parts = [np.pad(each.pairs, by, constant_values=np.inf) for each, by in zip((a, b), pad, strict=True)]
                return _Filters(np.concatenate(parts))
            return np.concatenate([a, b])

        names = (field.name for field in fields(self))
        return _State(*(both(getattr(self, name), getattr(other, name)) for name in names))


class BatchOutcome(NamedTuple):
    """The outcome of a case; ``is_convex`` is true if the last Newton matrix was positive definite without a shift."""

    outcome: Outcome
    is_convex: bool


def solve_batch(
    programs: BatchedPrograms,
    starts: Array,
    settings: Settings,
    done: Callable[[int, Outcome], None] | None = None,
    width: int = WIDTH,
) -> list[BatchOutcome]:
    """Solve programs of one structure from starts (B, n); ``done`` is called with each case that ends."""
    return _Search(programs, starts, settings, done, width).run()


class _Search:
    def __init__(
        self,
        programs: BatchedPrograms,
        starts: Array,
        settings: Settings,
        done: Callable[[int, Outcome], None] | None,
        width: int,
    ):
        self.programs, self.starts, self.settings = programs, starts, settings
        self.done, self.width, self.began = done, width, perf_counter()
        self.outcomes: list[BatchOutcome | None] = [None] * len(programs)
        self.waiting = np.arange(len(programs))
        self.n = starts.shape[1]

    def run(self) -> list[BatchOutcome]:
        """Solve all cases."""
        state = self._enter(self.width)
        self._active = self.programs.take(state.case)
        while len(state.case):
            if len(self._active) != len(state.case):
                self._active = self.programs.take(state.case)
            state = self._iterate(state)
            if len(state.case) <= REFILL_FRACTION * self.width and len(self.waiting):
                state = state.joined(self._enter(self.width - len(state.case)))
                self._active = self.programs.take(state.case)
        return [outcome for outcome in self.outcomes if outcome is not None]

    # Entering and leaving the batch

    def _enter(self, count: int) -> _State:
        """Return the first points of the next waiting cases."""
        cases, self.waiting = self.waiting[:count], self.waiting[count:]
        programs, n, B = self.programs.take(cases), self.n, len(cases)
        low = np.maximum(np.concatenate([programs.lower, programs.row_lower], axis=1), -FAR)
        high = np.minimum(np.concatenate([programs.upper, programs.row_upper], axis=1), FAR)
        x = _inside(self.starts[cases], low[:, :n], high[:, :n])
        f, rows = programs.value(x)
        lin = programs.linearised(x)
        steep = np.abs(lin.gradient).max(axis=1, initial=0.0)
        largest = np.maximum(np.abs(f), steep)
        weight = np.where(steep > MAX_GRADIENT, MAX_GRADIENT / np.maximum(steep, 1e-300), 1.0)
        weight = np.where((largest < 1) & (largest > 1e-100), 1 / np.maximum(largest, 1e-100), weight)
        w = np.concatenate([x, _inside(rows, low[:, n:], high[:, n:])], axis=1)
        z_low, z_high = (low > -FAR).astype(float), (high < FAR).astype(float)
        u = self._multipliers(lin, weight, z_high - z_low)
        bounds = np.maximum((z_low + z_high).sum(axis=1), 1.0)
        mu = ((w - low) * z_low + (high - w) * z_high).sum(axis=1) / bounds
        f = weight * f
        theta = np.abs(rows - w[:, n:]).sum(axis=1)
        share = np.minimum(FIRST_GAP_SHARE, mu * bounds / np.maximum(np.abs(f), 1e-300))
        zeros = np.zeros(B, dtype=int)
        return _State(
            cases, w, u, z_low, z_high, low, high, bounds, weight, f, rows, mu.copy(),
            np.ones(B, dtype=bool), np.ones(B, dtype=bool), theta, share, 1e3 * np.maximum(mu, 1e-8),
            1e-4 * np.maximum(1.0, theta), np.zeros(B), np.zeros(B, dtype=bool), zeros, zeros.copy(), zeros.copy(),
            _Filters.empty(B), _Filters.empty(B),
        )  # fmt: skip

    def _multipliers(self, lin: LinearisedBatch, weight: Array, pairs: Array) -> Array:
        """Return least-squares estimates of the row multipliers (B, w), given bound multipliers (B, w)."""
        n, u = self.n, pairs[:, self.n :]
        matrix = lin.condensed(np.zeros_like(u), np.ones_like(u), np.zeros(len(u)))
        matrix[:, np.arange(n), np.arange(n)] += 1.0
        right = -(weight[:, None] * lin.gradient + pairs[:, :n] + lin.transposed_times(u))
        change = np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], dtype=float)
        u = np.asarray(u + lin.times(change))
        u = np.where(np.abs(u).max(axis=1, initial=0.0)[:, None] > 1e3, 0.0, u)
        return np.concatenate([np.zeros((len(u), n)), u], axis=1)

    def _left(self, state: _State, ended: dict[int, tuple[str, bool]], violation: Array) -> _State:
        """Record the outcomes of cases that ended (by place in the batch), and return the others."""
        for k, (status, is_solved) in ended.items():
            case, weight, n = int(state.case[k]), state.weight[k], self.n
            z = (state.z_high[k] - state.z_low[k])[:n]
            outcome = Outcome(
                state.w[k, :n].copy(), state.u[k, n:] / weight, z / weight, float(state.f[k] / weight),
                int(state.iterations[k]), status, is_solved,
                violation=float(violation[k]), seconds=perf_counter() - self.began,
            )  # fmt: skip
            self.outcomes[case] = BatchOutcome(outcome, bool(state.is_convex[k]))
            if self.done is not None:
                self.done(case, outcome)
        return state.take(np.array([k for k in range(len(state.case)) if k not in ended], dtype=int))

    # One iteration

    def _iterate(self, state: _State) -> _State:
        """Return the cases after a step, without those that ended."""
        tolerance, programs = self.settings.tolerance, self._active
        lin = programs.linearised(np.ascontiguousarray(state.w[:, : self.n]))
        point = _Point(state, lin, self.n)
        outside = np.maximum(programs.row_lower - state.rows, state.rows - programs.row_upper)
        violation = np.maximum(outside.max(axis=1, initial=0.0), 0.0)
        gap = point.mu * state.count / np.maximum(1.0, np.abs(state.f))
        error = np.maximum(np.maximum(point.error(np.zeros(len(gap))), gap), violation)
        is_bad, is_over = ~np.isfinite(error), state.iterations >= self.settings.iterations
        ended: dict[int, tuple[str, bool]] = {}
        for k in np.flatnonzero((error <= tolerance) | is_bad | is_over).tolist():
            is_solved, limit = bool(error[k] <= tolerance), "stopped at the iteration limit"
            ended[k] = ("optimal" if is_solved else "values are not finite" if is_bad[k] else limit), is_solved
        if ended:
            kept = np.array([k for k in range(len(state.case)) if k not in ended], dtype=int)
            state, violation, error = self._left(state, ended, violation), violation[kept], error[kept]
            if not len(kept):
                return state
            self._active, lin, ended = self._active.take(kept), lin.take(kept), {}
            point = _Point(state, lin, self.n)
        ok, after = self._advance(state, point, lin)
        for k in np.flatnonzero(~ok | (after.shorts >= MAX_SHORT_STEPS)).tolist():
            unsolved = "no better step was found" if violation[k] <= tolerance else "no feasible point was found nearby"
            is_close = bool(error[k] <= LOOSER_FACTOR * tolerance)
            ended[k] = ("optimal to a looser tolerance" if is_close else unsolved), is_close
        return self._left(after, ended, violation) if ended else after

    def _advance(self, state: _State, point: "_Point", lin: LinearisedBatch) -> tuple[Flags, _State]:
        """Return which cases took a step, and the new state."""
        n, m = self.n, state.rows.shape[1]
        is_flat = state.is_flat & (point.theta <= state.first)
        ratio = CLOSE_RESIDUAL * m / np.maximum(point.theta, 1e-300)
        curvature = np.where(is_flat, np.minimum(1.0, ratio), 1.0)
        S = point.stiffness
        matrix = lin.condensed(curvature[:, None] * state.u[:, n:], S[:, n:], state.weight)
        matrix[:, np.arange(n), np.arange(n)] += S[:, :n]
        factors, shift, is_convex, is_factorised = _factorised(matrix, state.shift)
        state = replace(state, is_flat=is_flat, shift=shift, is_convex=is_convex & (curvature == 1.0))
        equations = _Newton(point, lin, factors, matrix)
        state, step = self._choose(state, point, equations, curvature)
        ok, state = self._search(state, point, equations, step)
        return ok & is_factorised, state

    def _choose(self, state: _State, point: "_Point", equations: "_Newton", curvature: Array) -> tuple[_State, "_Step"]:
        """Choose barrier parameters, and return the steps."""
        objective, B = state.f, len(state.case)
        progresses = state.past.accepts(point.theta, objective)
        stops, starts = state.is_free & ~progresses, ~state.is_free & progresses
        least = np.maximum(0.1 * self.settings.tolerance / state.count, 1e-14)
        monotone = np.where(stops, np.maximum(0.8 * point.mu, least), state.mu)
        is_free = (state.is_free & ~stops) | starts
        filters, past = state.filter.cleared(stops), state.past.added(point.theta, objective, is_free)
        first = equations.first()  # without a barrier, and the change for a unit barrier parameter
        predictor = first[:, 0]
        bend, *changes = _kernel(_predicted)(*point.bounded, predictor)
        primal, dual = point.lengths(predictor[:, None], predictor, np.zeros((B, 1)), np.zeros((B, 1)), np.ones(B))
        along, both = (change.sum(axis=1) for change in changes)
        # gap dz = -gap z - z d(gap), so the products fall by themselves and by the change along the gaps
        p, d, size = primal[:, 0], dual[:, 0], point.mu * state.count
        total = size + p * along - d * (size + along) + p * d * both
        with np.errstate(all="ignore"):
            wanted = (total / state.count / np.maximum(point.mu, 1e-300)) ** 3 * point.mu
        parts = np.concatenate([first, equations.second(bend)], axis=1)
        weights = primal * dual + (1 - primal * dual) * np.linspace(0.0, 1.0, CORRECTOR_WEIGHTS)
        weights[~is_free] = 0.0
        slopes = point.slopes(parts)
        share, mu, slot, is_open = state.share, monotone, np.zeros(B, dtype=int), np.ones(B, dtype=bool)
        while True:
            floor = np.maximum(least, share * np.abs(objective) / state.count)
            lowered = self._lowered(point, monotone, floor, ~is_free & is_open)
            filters = filters.cleared(lowered != monotone)
            monotone = lowered
            adaptive = np.clip(wanted, floor, np.maximum(floor, state.most))
            mu = np.where(is_open, np.where(is_free, adaptive, monotone), mu)
            # (B, weights, 3): the step without a barrier, with a unit one, and of the second-order products
            ways = np.stack([np.ones_like(weights), np.broadcast_to(mu[:, None], weights.shape), weights], axis=2)
            lengths = point.lengths(ways @ parts, predictor, mu[:, None], weights, np.full(B, MAX_BOUND_FRACTION))
            slot = np.where(is_open, np.argmax(lengths[0] * lengths[1], axis=1), slot)
            chosen = ways[np.arange(B), slot]
            decrease = np.abs((chosen * (slopes[0] + mu[:, None] * slopes[1])).sum(axis=1))
            is_settled = (curvature >= 1.0) & (decrease <= SETTLED_DECREASE * share * np.abs(objective))
            is_open &= is_settled & (floor > least)
            if not is_open.any():
                break
            share = np.where(is_open, share * GAP_FACTOR, share)
        filters = filters.cleared(is_free)
        step = _Step((chosen[:, None] @ parts)[:, 0], predictor, mu, chosen[:, 2], bend)
        return replace(state, mu=mu, is_free=is_free, share=share, filter=filters, past=past), step

    @staticmethod
    def _lowered(point: "_Point", mu: Array, floor: Array, of: Flags) -> Array:
        """Return the barrier parameters of the monotone strategy, lowered while their problems are solved."""
        while of.any():
            of = of & (point.error(mu) <= 10 * mu) & (mu > floor)
            mu = np.where(of, np.maximum(floor, np.minimum(0.2 * mu, mu**1.5)), mu)
        return mu

    def _search(self, state: _State, point: "_Point", equations: "_Newton", step: "_Step") -> tuple[Flags, _State]:
        """Shorten each step until its filter accepts it."""
        mu, B = state.mu, len(state.case)
        primal, dual = point.lengths_of(step)
        slopes = point.slopes(step.dw[:, None])
        start = _Start(point.theta, state.f - mu * point.logs, slopes[0][:, 0] + mu * slopes[1][:, 0])
        new = {name: getattr(state, name).copy() for name in ("w", "u", "z_low", "z_high", "f", "rows")}
        length, filters, ok = primal.copy(), state.filter, np.zeros(B, dtype=bool)
        todo, stills, is_first = np.ones(B, dtype=bool), state.stills, True
        final = primal.copy()

        def take(at: Indices, trial: "_Trial", taken: Flags) -> None:
            for name, values in new.items():
                values[at[taken]] = getattr(trial, name)[taken]
            ok[at[taken]] = True
            todo[at[taken]] = False

        while todo.any():
            at = np.flatnonzero(todo)
            trial = self._trial(state, point, step, at, length[at], dual[at])
            accepted, extends = self._accepts(state, filters, at, trial, start, length[at])
            if is_first:  # steps that change only multipliers are taken as they are
                is_still = trial.change < STILL_STEP
                stills = np.where(is_still, state.stills + 1, 0)
                accepted, extends = accepted | is_still, extends & ~is_still
            filters = filters.added(start.theta, start.merit, _flags(at[extends], B))
            final[at[accepted]] = length[at[accepted]]
            take(at, trial, accepted)
            if is_first:
                tried = ~accepted & ~(trial.theta < start.theta)
                if tried.any():
                    some = at[tried]
                    filters = self._correct(
                        state, point, equations, step, some, trial.rows[tried] - trial.w[tried, self.n :],
                        filters, start, length[some], take,
                    )  # fmt: skip
                is_first = False
            length[todo] /= 2
            at = np.flatnonzero(todo & (length <= MIN_STEP_FRACTION * primal))
            if at.size:  # take the full step although the filter rejects it, if it reduces the error
                both = np.minimum(primal, dual)[at]
                trial = self._trial(state, point, step, at, both, both)
                taken = np.isfinite(trial.f)
                taken &= self._error_at(state, at, trial) <= SOFT_ERROR_FACTOR * point.error(mu)[at]
                take(at, trial, taken)
                todo[at] = False
        ok &= stills < MAX_STILL_STEPS
        shorts = np.where(final < SHORT_STEP, state.shorts + 1, 0)
        return ok, replace(state, **new, filter=filters, shorts=shorts, stills=stills, iterations=state.iterations + 1)

    def _trial(
        self, state: _State, point: "_Point", step: "_Step", at: Indices, length: Array, dual: Array
    ) -> "_Trial":
        """Return the points of some cases after their steps."""
        if len(at) == len(state.case):
            programs, own, bounded, parts = self._active, step, point.bounded, point.parts
        else:
            programs, own = self._active.take(at), step.take(at)
            bounded, parts = (tuple(array[at] for array in arrays) for arrays in (point.bounded, point.parts))
        w, u, z_low, z_high, logs, change = _kernel(_moved)(
            *bounded, own.dw, own.predictor, own.mu[:, None], own.weight[:, None], *parts, own.bend,
            length[:, None], dual[:, None],
        )  # fmt: skip
        f, rows = programs.value(np.ascontiguousarray(w[:, : self.n]))
        f = state.weight[at] * f
        theta = np.abs(rows - w[:, self.n :]).sum(axis=1)
        merit = f - own.mu * logs.sum(axis=1)
        return _Trial(w, u, z_low, z_high, f, rows, theta, merit, change.max(axis=1, initial=0.0))

    def _accepts(
        self, state: _State, filters: _Filters, at: Indices, trial: "_Trial", start: "_Start", length: Array
    ) -> tuple[Flags, Flags]:
        """Return which trials are accepted, and which of them extend the filter."""
        before, merit, slope = (values[at] for values in start)
        with np.errstate(all="ignore"):
            far = trial.theta > np.maximum(MAX_RESIDUAL_GROWTH * before, MAX_MEAN_RESIDUAL * state.rows.shape[1])
            is_new = _Filters(filters.pairs[at]).accepts(trial.theta, trial.merit)
            possible = ~far & np.isfinite(trial.merit) & np.isfinite(trial.theta) & is_new
            slack = 1e-13 * np.abs(merit)
            descends = (slope < 0) & (length * np.maximum(-slope, 0.0) ** 2.3 > before**1.1)
            armijo = descends & (before <= state.small[at])
            falls = trial.merit <= merit + 1e-8 * length * slope + slack
            progresses = (trial.theta <= (1 - 1e-5) * before) | (trial.merit <= merit - 1e-8 * before + slack)
        accepted = possible & np.where(armijo, falls, progresses)
        return np.asarray(accepted), np.asarray(accepted & ~armijo)

    def _correct(
        self,
        state: _State,
        point: "_Point",
        equations: "_Newton",
        step: "_Step",
        at: Indices,
        residual: Array,
        filters: _Filters,
        start: "_Start",
        length: Array,
        take: Callable[[Indices, "_Trial", Flags], None],
    ) -> _Filters:
        """Try second-order corrections of the full steps of some cases, whose residuals are (cases, m)."""
        off = point.off.copy()
        before = np.abs(residual).sum(axis=1)
        total, is_active, first_length = length[:, None] * off[at] + residual, np.ones(len(at), dtype=bool), length
        for _ in range(MAX_CORRECTIONS):
            off[at] = total
            corrected = step._replace(dw=equations.corrected(step, off))
            primal, dual = (values[at] for values in point.lengths_of(corrected))
            trial = self._trial(state, point, corrected, at, primal, dual)
            accepted, extends = self._accepts(state, filters, at, trial, start, first_length)
            accepted &= is_active
            filters = filters.added(start.theta, start.merit, _flags(at[accepted & extends], len(off)))
            take(at, trial, accepted)
            is_active &= ~accepted & (trial.theta <= 0.99 * before)
            if not is_active.any():
                break
            total = primal[:, None] * total + trial.rows - trial.w[:, self.n :]
            before = trial.theta
        return filters

    def _error_at(self, state: _State, at: Indices, trial: "_Trial") -> Array:
        """Return the errors of the barrier problems of some cases at their trial points."""
        names = ("w", "u", "z_low", "z_high", "f", "rows")
        moved = replace(state.take(at), **{name: getattr(trial, name) for name in names})
        lin = self._active.take(at).linearised(np.ascontiguousarray(trial.w[:, : self.n]))
        return _Point(moved, lin, self.n).error(state.mu[at])


def _flags(at: Indices, count: int) -> Flags:
    result = np.zeros(count, dtype=bool)
    result[at] = True
    return result


def _inside(w: Array, low: Array, high: Array) -> Array:
    """Return w (B, w) moved inside its bounds (B, w)."""
    span = START_PUSH * (high - low)
    least = low + np.minimum(START_PUSH * np.maximum(1.0, np.abs(low)), span)
    most = high - np.minimum(START_PUSH * np.maximum(1.0, np.abs(high)), span)
    return np.clip(w, np.where(low > -FAR, least, -FAR), np.where(high < FAR, most, FAR))


def _factorised(matrix: Array, last: Array) -> tuple[list[Array], Array, Flags, Flags]:
    """Return Cholesky factors, the last shift of the diagonal of each, which needed none, and which were found.

    ``matrix`` (B, n, n) is changed: the shift is added.
    """
    factors, shifts, ok, is_convex = list[Array](), last.copy(), *(np.ones(len(matrix), dtype=bool) for _ in range(2))
    for k, own in enumerate(matrix):
        factor, info = dpotrf(own, lower=1, clean=0)
        if info or not np.isfinite(factor[-1, -1]):
            diagonal = np.einsum("ii->i", own)
            before, regularisation = diagonal.copy(), Regularisation()
            regularisation.last = float(last[k])
            ok[k] = is_convex[k] = False
            for shift in regularisation.values(float(np.abs(before).max(initial=0.0)))[1:]:
                diagonal[:] = before + shift
                factor, info = dpotrf(own, lower=1, clean=0)
                if not info and np.isfinite(factor[-1, -1]):
                    shifts[k], ok[k] = shift, True
                    break
            else:
                factor = np.eye(len(own))
        factors.append(factor)
    return factors, shifts, is_convex, ok


class _Step(NamedTuple):
    """Steps dw (B, w) with barrier parameters mu (B,), the step without a barrier, and second-order terms.

    ``weight`` (B,) is that of the second-order terms, and ``bend`` (B, w) their gradient.
    """

    dw: Array
    predictor: Array
    mu: Array
    weight: Array
    bend: Array

    def take(self, at: Indices) -> "_Step":
        return _Step(*(values[at] for values in self))


class _Start(NamedTuple):
    """The violation, the merit function and its slope (B,) where a line search starts."""

    theta: Array
    merit: Array
    slope: Array


class _Trial(NamedTuple):
    """The points of some cases after a step; ``change`` is the largest relative change of w."""

    w: Array
    u: Array
    z_low: Array
    z_high: Array
    f: Array
    rows: Array
    theta: Array
    merit: Array
    change: Array


class _Point:
    """The points of all cases, with what their step needs."""

    def __init__(self, state: _State, lin: LinearisedBatch, n: int):
        self.state, self.n = state, n
        self.gradient = state.weight[:, None] * lin.gradient
        u = state.u[:, n:]
        self.lagrangian = np.concatenate([self.gradient + lin.transposed_times(u), -u], axis=1)
        self.off = state.rows - state.w[:, n:]
        *inverses, self.stiffness, self.repulsion, products, most, least, logs, dual = _kernel(_point)(
            state.w, state.z_low, state.z_high, state.low, state.high, self.lagrangian
        )
        self.bounded = state.z_low, state.z_high, *inverses
        self.parts = state.w, state.low, state.high, state.u, self.stiffness, self.repulsion
        self.theta = np.abs(self.off).sum(axis=1)
        self.mu = products.sum(axis=1) / state.count
        self.logs = logs.sum(axis=1)
        z = state.z_low.sum(axis=1) + state.z_high.sum(axis=1)
        every = np.abs(u).sum(axis=1) + z
        by_dual = np.maximum(100.0, every / (u.shape[1] + state.count)) / 100
        worst = np.maximum(dual.max(axis=1, initial=0.0) / by_dual, np.abs(self.off).max(axis=1, initial=0.0))
        by_gap = np.maximum(100.0, z / state.count) / 100
        self._error = worst, most.max(axis=1, initial=0.0), least.min(axis=1, initial=FAR), by_gap

    def error(self, mu: Array) -> Array:
        """Return the largest scaled optimality residual (B,) of the barrier problems."""
        worst, most, least, by_gap = self._error
        return np.asarray(np.maximum(worst, np.maximum(most - mu, np.minimum(mu - least, mu)) / by_gap))

    def lengths(self, dw: Array, predictor: Array, mu: Array, weight: Array, nearest: Array) -> tuple[Array, Array]:
        """Return the longest steps (B, k) of the variables and of the bound multipliers along dw (B, k, w)."""
        bounded = (array[:, None] for array in self.bounded)
        ratios = _kernel(_ratios)(*bounded, dw, predictor[:, None], mu[..., None], weight[..., None])
        worst = (ratio.max(axis=-1, initial=0.0) for ratio in ratios)
        primal, dual = (np.minimum(1.0, nearest[:, None] / np.maximum(ratio, 1e-300)) for ratio in worst)
        return primal, dual

    def lengths_of(self, step: _Step) -> tuple[Array, Array]:
        """Return the longest steps (B,) of the variables and of the bound multipliers."""
        nearest = np.maximum(0.99, 1 - step.mu)
        both = self.lengths(step.dw[:, None], step.predictor, step.mu[:, None], step.weight[:, None], nearest)
        return both[0][:, 0], both[1][:, 0]

    def slopes(self, dw: Array) -> tuple[Array, Array]:
        """Return the derivatives (B, k) along dw (B, k, w) of the objective and of minus the sum of logarithms."""
        objective = (dw[..., : self.n] @ self.gradient[..., None])[..., 0]
        return objective, (dw @ self.repulsion[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class _Newton:
    """The factorised Newton equations of all cases."""

    point: _Point
    lin: LinearisedBatch
    factors: Sequence[Array]
    matrix: Array

    def _solved(self, right: Array) -> Array:
        """Return the solutions (B, k, n) for right-hand sides (B, k, n), refined once."""

        def solve(rights: Array) -> Array:
            return np.stack([dpotrs(L, r.T, lower=1)[0].T for L, r in zip(self.factors, rights, strict=True)])

        result = solve(right)
        return np.asarray(result + solve(right - result @ self.matrix))

    def _steps(self, gradient: Array, off: Array | None = None) -> Array:
        """Return dw (B, k, w) for gradients (B, k, w) and residuals (B, k, m) of the slack equations."""
        n = self.point.n
        rows = gradient[..., n:]
        if off is not None:
            rows = rows + self.point.stiffness[:, None, n:] * off
        dx = self._solved(-gradient[..., :n] - self.lin.transposed_times(rows))
        ds = self.lin.times(dx)
        return np.concatenate([dx, ds if off is None else ds + off], axis=-1)

    def first(self) -> Array:
        """Return the step without a barrier, and the change that a unit barrier parameter adds (B, 2, w)."""
        point = self.point
        off = np.stack([point.off, np.zeros_like(point.off)], axis=1)
        return self._steps(np.stack([point.lagrangian, point.repulsion], axis=1), off)

    def second(self, bend: Array) -> Array:
        """Return the change (B, 1, w) that second-order terms add, given their gradient (B, w)."""
        return self._steps(bend[:, None])

    def corrected(self, step: _Step, off: Array) -> Array:
        """Return dw (B, w) with other residuals (B, m) of the slack equations."""
        point = self.point
        gradient = point.lagrangian + step.mu[:, None] * point.repulsion + step.weight[:, None] * step.bend
        return self._steps(gradient[:, None], off[:, None])[:, 0]
