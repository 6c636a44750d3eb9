"""The condensed interior-point method for many programs of one structure at once.

It is the method of ``condensed`` with one more axis: each case has its own barrier parameter, filter, step length and
regularisation, and the arrays of all cases are computed together. Cases that end leave the batch and new ones enter, so
that the number of cases in work is constant. A case does not depend on those beside it.

The programs keep their rows: the method sees sums over them, so that slacks and multipliers need not leave compiled
code. The steps for several barrier parameters and weights of second-order terms are combinations of three solutions of
the same linear equations, because these are linear in both.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import Signature
from torsor.compiler.cache import source_hash
from torsor.motion.linear_systems import Factors, Systems
from torsor.optimisation.barrier import CORRECTORS, FAR, Bounded
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
from torsor.optimisation.program import Outcome, Settings
from torsor.optimisation.standard import MAX_GRADIENT
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

WIDTH = 64  # cases in work at a time
WARM_PUSH = 1e-3  # distance of a start with multipliers from its bounds, and least multiplier
REFILL_FRACTION = 0.75  # fraction of the cases in work below which new ones enter


class Rows(NamedTuple):
    """Slacks w, multipliers u of h - w = 0, and multipliers of the lower and upper bounds of the slacks (B, m)."""

    w: Array
    u: Array
    z_low: Array
    z_high: Array


class RowTotals(NamedTuple):
    """Sums and extremes (B,) over the rows: see ``motion.transcription.barrier``."""

    products: Array
    z: Array
    u: Array
    slope: Array
    off: Array
    dual: Array
    most: Array
    least: Array


class Prediction(NamedTuple):
    """The effect of a step without a barrier on the rows.

    ``bend`` (B, n) is J^T times the gradient of second-order products, ``along`` and ``both`` (B,) the changes of the
    products, ``primal`` and ``dual`` (B,) the largest fractions of distances and multipliers that it takes away.
    """

    bend: Array
    along: Array
    both: Array
    primal: Array
    dual: Array


class RowStep(NamedTuple):
    """Changes ds of the slacks, and those without a barrier (B, m); barrier parameters and corrector weights (B,)."""

    predictor: Array
    ds: Array
    mu: Array
    corrector: Array

    def take(self, at: Indices) -> "RowStep":
        """Return the steps of some cases."""
        return RowStep(*(values[at] for values in self))


class Trial(NamedTuple):
    """Rows and f after a step, the sums of |h - w| and of logarithms, the largest violation and relative change."""

    rows: Rows
    f: Array
    theta: Array
    logs: Array
    violation: Array
    change: Array


class RowPoint(ABC):
    """The rows at a point: derivatives (B, n) pulled back to the variables, and the entries of the condensed matrices.

    ``gradient`` is that of f, ``multiplied`` J^T u, ``pushed`` and ``repelled`` are J^T times the forces of the rows
    without a barrier and for a unit barrier parameter (``optimisation.barrier``).
    """

    entries: Array
    gradient: Array
    multiplied: Array
    pushed: Array
    repelled: Array
    totals: RowTotals

    @property
    @abstractmethod
    def systems(self) -> Systems:
        """The systems of the condensed matrices."""

    @property
    @abstractmethod
    def off(self) -> Array:
        """The residuals (B, m) of h - w = 0."""

    @abstractmethod
    def take(self, at: Indices) -> "RowPoint":
        """Return the rows of some cases, for ``correction`` and ``corrected``."""

    @abstractmethod
    def predicted(self, dx: Array) -> Prediction:
        """Return the effect of the steps (B, 2, n) without a barrier and for a unit barrier parameter."""

    @abstractmethod
    def ratios(self, dx: Array, mu: Array, correctors: Array) -> tuple[Array, Array]:
        """Return the largest fractions (B, correctors) that steps take away; dx (B, n) is the second-order part."""

    @abstractmethod
    def step(self, mu: Array, corrector: Array) -> RowStep:
        """Return the chosen step of the rows."""

    @abstractmethod
    def correction(self, step: RowStep, off: Array) -> Array:
        """Return J^T (B, n) times the rows of a step with other residuals (B, m)."""

    @abstractmethod
    def corrected(self, step: RowStep, off: Array, dx: Array) -> tuple[RowStep, Array, Array]:
        """Return the step with other residuals, given dx (B, n), and the largest fractions (B,) that it takes away."""


class BatchedPrograms(Protocol):
    """Programs of one structure: bounds (B, n) of the variables and (B, m) of the rows, which are inequalities."""

    @property
    def lower(self) -> Array:
        """Lower bounds (B, n) of the variables."""

    @property
    def upper(self) -> Array:
        """Upper bounds (B, n) of the variables."""

    @property
    def row_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (B, m) of the rows."""

    def __len__(self) -> int: ...

    def take(self, cases: Indices) -> "BatchedPrograms":
        """Return some of the programs."""

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the rows (B, m) at x (B, n)."""

    def point(self, x: Array, rows: Rows, weight: Array, curvature: Array) -> RowPoint:
        """Return the rows at x (B, n); f is multiplied by ``weight`` (B,), the curvature of rows by ``curvature``."""

    def moved(self, x: Array, rows: Rows, step: RowStep, length: Array, dual: Array) -> Trial:
        """Return the rows and f after steps of given lengths (B,) that lead to x (B, n)."""


# The bounds of the variables: the arithmetic of the rows for single entries


def _variable_point() -> ca.Function:
    at, lagrangian = Bounded(1), ca.SX.sym("lagrangian")
    total, most, least = at.products()
    outputs = at.stiffness, at.repulsion, total, most, least, ca.fabs(lagrangian - at.z_low + at.z_high)
    return ca.Function("variable_point", [*at.inputs.values(), lagrangian], list(outputs))


def _variable_prediction() -> ca.Function:
    at, dx, zero = Bounded(1), ca.SX.sym("dx"), ca.SX(0)
    outputs = at.bend(dx), *at.product_changes(dx), *at.ratios(dx, dx, zero, zero)
    return ca.Function("variable_prediction", [*at.inputs.values(), dx], list(outputs))


def _variable_ratios() -> ca.Function:
    at, symbols = Bounded(1), [ca.SX.sym(name) for name in ("dx", "predictor", "mu", "corrector")]
    return ca.Function("variable_ratios", [*at.inputs.values(), *symbols], list(at.ratios(*symbols)))


def _variable_move() -> ca.Function:
    names = "dx", "predictor", "mu", "corrector", "length", "dual"
    at, symbols = Bounded(1), [ca.SX.sym(name) for name in names]
    x, z_low, z_high = at.moved(*symbols)
    outputs = x, z_low, z_high, at.logs(x), ca.fabs(symbols[0]) / (1 + ca.fabs(at.w))
    return ca.Function("variable_move", [*at.inputs.values(), *symbols], list(outputs))


@cache
def _compiled() -> Kernels:
    return Kernels(Target(), lambda: source_hash("motion/batched.py", "optimisation/barrier.py"))


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

    x (B, n) are the variables with their bounds and the multipliers of these; ``theta`` (B,) is the sum of |h - w|,
    and ``logs`` that of the logarithms of all distances.
    """

    case: Indices
    x: Array
    z_low: Array
    z_high: Array
    low: Array
    high: Array
    rows: Rows
    count: Array
    weight: Array
    f: Array
    theta: Array
    logs: Array
    violation: Array
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

    @property
    def bounded(self) -> tuple[Array, ...]:
        """The first inputs of the kernels of the variables."""
        return self.x, self.z_low, self.z_high, self.low, self.high

    def values(self) -> dict[str, Array]:
        """Return the arrays that a step changes; those of the rows have names with a space."""
        names = ("x", "z_low", "z_high", "f", "theta", "logs", "violation")
        rows = {f"rows {name}": own for name, own in self.rows._asdict().items()}
        return {name: getattr(self, name) for name in names} | rows

    def with_values(self, values: dict[str, Array]) -> "_State":
        """Return the state with other arrays of ``values``."""
        rows = Rows(*(values[f"rows {name}"] for name in Rows._fields))
        own: dict[str, Any] = {name: array for name, array in values.items() if " " not in name}
        return replace(self, rows=rows, **own)

    def take(self, kept: Indices) -> "_State":
        """Return some of the cases."""

        def part(value: Any) -> Any:
            if isinstance(value, _Filters):
                return _Filters(value.pairs[kept])
            return Rows(*(own[kept] for own in value)) if isinstance(value, Rows) else value[kept]

        return _State(*(part(getattr(self, field.name)) for field in fields(self)))

    def joined(self, other: "_State") -> "_State":
        """Return the cases of both."""

        def both(a: Any, b: Any) -> Any:
            if isinstance(a, _Filters):
                count = max(a.pairs.shape[1], b.pairs.shape[1])
                pad = [((0, 0), (0, count - each.pairs.shape[1]), (0, 0)) for each in (a, b)]
                parts = [np.pad(each.pairs, by, constant_values=np.inf) for each, by in zip((a, b), pad, strict=True)]
                return _Filters(np.concatenate(parts))
            if isinstance(a, Rows):
                return Rows(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
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
    warm: tuple[Array, Array] | None = None,
) -> list[BatchOutcome]:
    """Solve programs of one structure from starts (B, n); ``done`` is called with each case that ends.

    ``warm`` are initial multipliers of the rows (B, m) and of the bounds of the variables (B, n).
    """
    return _Search(programs, starts, settings, done, width, warm).run()


class _Search:
    def __init__(
        self,
        programs: BatchedPrograms,
        starts: Array,
        settings: Settings,
        done: Callable[[int, Outcome], None] | None,
        width: int,
        warm: tuple[Array, Array] | None,
    ):
        self.programs, self.starts, self.settings, self.warm = programs, starts, settings, warm
        self.done, self.width, self.began = done, width, perf_counter()
        self.outcomes: list[BatchOutcome | None] = [None] * len(programs)
        self.waiting = np.arange(len(programs))
        self.n = starts.shape[1]

    def run(self) -> list[BatchOutcome]:
        """Solve all cases."""
        state = self._enter(self.width)
        self._active = self.programs.take(state.case)
        while len(state.case):
            after = self._iterate(state)
            is_changed = len(after.case) < len(state.case)
            state = after
            if len(state.case) <= REFILL_FRACTION * self.width and len(self.waiting):
                state, is_changed = state.joined(self._enter(self.width - len(state.case))), True
            if is_changed and len(state.case):
                self._active = self.programs.take(state.case)
        return [outcome for outcome in self.outcomes if outcome is not None]

    # Entering and leaving the batch

    def _enter(self, count: int) -> _State:
        """Return the first points of the next waiting cases."""
        cases, self.waiting = self.waiting[:count], self.waiting[count:]
        programs, B = self.programs.take(cases), len(cases)
        low, high = np.maximum(programs.lower, -FAR), np.minimum(programs.upper, FAR)
        push = START_PUSH if self.warm is None else WARM_PUSH
        x = _inside(self.starts[cases], low, high, push)
        low, high = np.where(low < high, low, -FAR), np.where(low < high, high, FAR)  # fixed variables do not move
        f, h = programs.value(x)
        row_low, row_high = programs.row_bounds
        w = _inside(h, row_low, row_high, push)
        is_open = row_low < row_high  # an equation has no multipliers of bounds
        z_low, z_high = (is_open & (row_low > -FAR)).astype(float), (is_open & (row_high < FAR)).astype(float)
        own_low, own_high = (low > -FAR).astype(float), (high < FAR).astype(float)
        rows = Rows(w, np.zeros_like(w), z_low, z_high)
        bounds = np.maximum(sum(z.sum(axis=1) for z in (z_low, z_high, own_low, own_high)), 1.0)
        steep = np.abs(programs.point(x, rows, np.ones(B), np.ones(B)).gradient).max(axis=1, initial=0.0)
        largest = np.maximum(np.abs(f), steep)
        weight = np.where(steep > MAX_GRADIENT, MAX_GRADIENT / np.maximum(steep, 1e-300), 1.0)
        weight = np.where((largest < 1) & (largest > 1e-100), 1 / np.maximum(largest, 1e-100), weight)
        if self.warm is not None:
            u, z = (weight[:, None] * values[cases] for values in self.warm)
            z_low, z_high = z_low * np.maximum(-u, WARM_PUSH), z_high * np.maximum(u, WARM_PUSH)
            own_low, own_high = own_low * np.maximum(-z, WARM_PUSH), own_high * np.maximum(z, WARM_PUSH)
            rows = Rows(w, u, z_low, z_high)
        gaps = (w - row_low, z_low), (row_high - w, z_high), (x - low, own_low), (high - x, own_high)
        mu = np.asarray(sum((gap * z).sum(axis=1) for gap, z in gaps) / bounds)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(np.where(z > 0, np.log(gap), 0.0).sum(axis=1) for gap, z in gaps)
        f, theta = weight * f, np.abs(h - w).sum(axis=1)
        violation = np.maximum(np.maximum(row_low - h, h - row_high).max(axis=1, initial=0.0), 0.0)
        share = np.minimum(FIRST_GAP_SHARE, mu * bounds / np.maximum(np.abs(f), 1e-300))
        zeros, ones = np.zeros(B, dtype=int), np.ones(B, dtype=bool)
        return _State(
            cases, x, own_low, own_high, low, high, rows, bounds, weight, f, theta, np.asarray(logs), violation,
            mu.copy(), ones, ones.copy(), theta.copy(), share, 1e3 * np.maximum(mu, 1e-8),
            1e-4 * np.maximum(1.0, theta), np.zeros(B), ~ones, zeros, zeros.copy(), zeros.copy(),
            _Filters.empty(B), _Filters.empty(B),
        )  # fmt: skip

    def _left(self, point: "_Point", ended: dict[int, tuple[str, bool]]) -> _State:
        """Record the outcomes of cases that ended (by place in the batch), and return the others."""
        state, all_z = point.state, point.bound_multipliers
        for k, (status, is_solved) in ended.items():
            case, weight, z = int(state.case[k]), state.weight[k], all_z[k]
            outcome = Outcome(
                state.x[k].copy(), state.rows.u[k] / weight, z / weight, float(state.f[k] / weight),
                int(state.iterations[k]), status, is_solved,
                violation=float(state.violation[k]), seconds=perf_counter() - self.began,
            )  # fmt: skip
            self.outcomes[case] = BatchOutcome(outcome, bool(state.is_convex[k]))
            if self.done is not None:
                self.done(case, outcome)
        return state.take(np.array([k for k in range(len(state.case)) if k not in ended], dtype=int))

    # One iteration

    def _iterate(self, state: _State) -> _State:
        """Return the cases after a step, without those that ended."""
        tolerance = self.settings.tolerance
        is_flat = state.is_flat & (state.theta <= state.first)
        ratio = CLOSE_RESIDUAL * state.rows.w.shape[1] / np.maximum(state.theta, 1e-300)
        curvature = np.where(is_flat, np.minimum(1.0, ratio), 1.0)
        point = _Point(replace(state, is_flat=is_flat), self._active, curvature)
        gap = point.mu * state.count / np.maximum(1.0, np.abs(state.f))
        error = np.maximum(np.maximum(point.error(np.zeros(len(gap))), gap), state.violation)
        is_bad, is_over = ~np.isfinite(error), state.iterations >= self.settings.iterations
        factors = point.rows.systems.factorised(point.entries, state.shift)
        is_convex = factors.is_convex & (curvature == 1.0)
        state = point.state = replace(point.state, shift=factors.shift, is_convex=is_convex)
        ended: dict[int, tuple[str, bool]] = {}
        for k in np.flatnonzero((error <= tolerance) | is_bad | is_over).tolist():
            is_solved, limit = bool(error[k] <= tolerance), "stopped at the iteration limit"
            ended[k] = ("optimal" if is_solved else "values are not finite" if is_bad[k] else limit), is_solved
        if len(ended) == len(state.case):
            return self._left(point, ended)
        with np.errstate(all="ignore"):
            equations = _Newton(point, factors)
            ok, after = self._search(point, equations, *self._choose(point, equations))
        for k in np.flatnonzero(~(ok & factors.is_factorised) | (after.shorts >= MAX_SHORT_STEPS)).tolist():
            if k not in ended:
                is_feasible, is_close = state.violation[k] <= tolerance, bool(error[k] <= LOOSER_FACTOR * tolerance)
                unsolved = "no better step was found" if is_feasible else "no feasible point was found nearby"
                ended[k] = ("optimal to a looser tolerance" if is_close else unsolved), is_close
        if not ended:
            return after
        self._left(point, ended)  # with the points before this step
        return after.take(np.array([k for k in range(len(state.case)) if k not in ended], dtype=int))

    def _choose(self, point: "_Point", equations: "_Newton") -> tuple["_Step", tuple[Array, Array]]:
        """Choose barrier parameters, and return the steps with the largest fractions (B,) that they take away."""
        state, objective, B = point.state, point.state.f, len(point.state.case)
        progresses = state.past.accepts(state.theta, objective)
        stops, starts = state.is_free & ~progresses, ~state.is_free & progresses
        least = np.maximum(0.1 * self.settings.tolerance / state.count, 1e-14)
        monotone = np.where(stops, np.maximum(0.8 * point.mu, least), state.mu)
        is_free = (state.is_free & ~stops) | starts
        filters, past = state.filter.cleared(stops), state.past.added(state.theta, objective, is_free)
        first = equations.first()  # without a barrier, and the change for a unit barrier parameter
        predictor = first[:, 0]
        rows = point.rows.predicted(first)
        bend, *parts = _kernel(_variable_prediction)(*state.bounded, predictor)
        along, both = rows.along + parts[0].sum(axis=1), rows.both + parts[1].sum(axis=1)
        p = _length(np.maximum(rows.primal, parts[2].max(axis=1)), 1.0)
        d = _length(np.maximum(rows.dual, parts[3].max(axis=1)), 1.0)
        # gap dz = -gap z - z d(gap), so the products fall by themselves and by the change along the gaps
        size = point.mu * state.count
        total = size + p * along - d * (size + along) + p * d * both
        wanted = (total / state.count / np.maximum(point.mu, 1e-300)) ** 3 * point.mu
        second = equations.factors.solved(-(bend + rows.bend)[:, None])[:, 0]
        correctors = (p * d)[:, None] + (1 - p * d)[:, None] * np.linspace(0.0, 1.0, CORRECTORS)
        correctors[~is_free] = 0.0
        dx = np.concatenate([first, second[:, None]], axis=1)
        slopes = point.slopes(dx)
        slopes[1][:, 0] += point.rows.totals.slope
        corrector = is_free.astype(float)  # near 1 where the step is long, which is where the gap shrinks
        share, mu, is_open = state.share, monotone, np.ones(B, dtype=bool)
        while is_open.any():
            floor = np.maximum(least, share * np.abs(objective) / state.count)
            lowered = self._lowered(point, monotone, floor, ~is_free & is_open)
            filters = filters.cleared(lowered != monotone)
            monotone = lowered
            adaptive = np.clip(wanted, floor, np.maximum(floor, state.most))
            mu = np.where(is_open, np.where(is_free, adaptive, monotone), mu)
            ways = np.stack([np.ones(B), mu, corrector], axis=1)
            decrease = np.abs((ways * (slopes[0] + mu[:, None] * slopes[1])).sum(axis=1))
            is_settled = (point.curvature >= 1.0) & (decrease <= SETTLED_DECREASE * share * np.abs(objective))
            is_open &= is_settled & (floor > least)
            share = np.where(is_open, share * GAP_FACTOR, share)
        # (B, correctors, 3): the step without a barrier, with a unit one, and of the second-order products
        ways = np.stack([np.ones_like(correctors), np.broadcast_to(mu[:, None], correctors.shape), correctors], axis=2)
        ratios = point.rows.ratios(second, mu, correctors)
        own = _kernel(_variable_ratios)(
            *(values[:, None] for values in state.bounded), ways @ dx, predictor[:, None], mu[:, None, None],
            correctors[..., None],
        )  # fmt: skip
        primal, dual = (np.maximum(row, entry.max(axis=-1)) for row, entry in zip(ratios, own, strict=True))
        slot = np.argmax(_length(primal, MAX_BOUND_FRACTION) * _length(dual, MAX_BOUND_FRACTION), axis=1)
        chosen = ways[np.arange(B), slot]
        filters = filters.cleared(is_free)
        point.state = replace(state, mu=mu, is_free=is_free, share=share, filter=filters, past=past)
        step = _Step((chosen[:, None] @ dx)[:, 0], predictor, bend, point.rows.step(mu, chosen[:, 2]))
        return step, (primal[np.arange(B), slot], dual[np.arange(B), slot])

    @staticmethod
    def _lowered(point: "_Point", mu: Array, floor: Array, of: Flags) -> Array:
        """Return the barrier parameters of the monotone strategy, lowered while their problems are solved."""
        while of.any():
            of = of & (point.error(mu) <= 10 * mu) & (mu > floor)
            mu = np.where(of, np.maximum(floor, np.minimum(0.2 * mu, mu**1.5)), mu)
        return mu

    def _search(
        self, point: "_Point", equations: "_Newton", step: "_Step", ratios: tuple[Array, Array]
    ) -> tuple[Flags, _State]:
        """Shorten each step until its filter accepts it."""
        state, mu, B = point.state, step.rows.mu, len(point.state.case)
        nearest = np.maximum(0.99, 1 - mu)
        slope = point.slopes(step.dx[:, None])
        total = slope[0][:, 0] + mu * (slope[1][:, 0] + point.rows.totals.slope)
        start = _Start(state.theta, state.f - mu * state.logs, total)
        primal, dual = (_length(ratio, nearest) for ratio in ratios)
        new = {name: values.copy() for name, values in state.values().items()}
        length, filters, ok = primal.copy(), state.filter, np.zeros(B, dtype=bool)
        todo, stills, is_first = np.ones(B, dtype=bool), state.stills, True
        final = primal.copy()

        def take(at: Indices, trial: "_Moved", taken: Flags) -> None:
            for name, values in trial.values.items():
                new[name][at[taken]] = values[taken]
            ok[at[taken]] = True
            todo[at[taken]] = False

        while todo.any():
            at = np.flatnonzero(todo)
            trial = self._moved(state, step, at, length[at], dual[at])
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
                    filters = self._correct(point, equations, step, at[tried], filters, start, length, take)
                is_first = False
            length[todo] /= 2
            at = np.flatnonzero(todo & (length <= MIN_STEP_FRACTION * primal))
            if at.size:  # take the full step although the filter rejects it, if it reduces the error
                shorter = np.minimum(primal, dual)[at]
                trial = self._moved(state, step, at, shorter, shorter)
                before = point.error(mu)[at]
                take(at, trial, np.isfinite(trial.f) & (self._error_at(state, at, trial) <= SOFT_ERROR_FACTOR * before))
                todo[at] = False
        ok &= stills < MAX_STILL_STEPS
        shorts = np.where(final < SHORT_STEP, state.shorts + 1, 0)
        state = replace(state, filter=filters, shorts=shorts, stills=stills, iterations=state.iterations + 1)
        return ok, state.with_values(new)

    def _moved(self, state: _State, step: "_Step", at: Indices, length: Array, dual: Array) -> "_Moved":
        """Return the points of some cases after their steps."""
        programs, bounded, rows = self._active, state.bounded, state.rows
        if len(step.dx) > len(at):
            step = step.take(at)
        if len(at) < len(state.case):
            programs = programs.take(at)
            bounded, rows = tuple(values[at] for values in bounded), Rows(*(values[at] for values in rows))
        scalars = step.rows.mu, step.rows.corrector, length, dual
        x, z_low, z_high, logs, change = _kernel(_variable_move)(
            *bounded, step.dx, step.predictor, *(values[:, None] for values in scalars)
        )
        trial = programs.moved(x, rows, step.rows, length, dual)
        values = {"x": x, "z_low": z_low, "z_high": z_high, "f": state.weight[at] * trial.f, "theta": trial.theta}
        values |= {"logs": trial.logs + logs.sum(axis=1), "violation": trial.violation}
        values |= {f"rows {name}": own for name, own in trial.rows._asdict().items()}
        return _Moved(values, np.maximum(trial.change, change.max(axis=1, initial=0.0)), step.rows.mu)

    def _accepts(
        self, state: _State, filters: _Filters, at: Indices, trial: "_Moved", start: "_Start", length: Array
    ) -> tuple[Flags, Flags]:
        """Return which trials are accepted, and which of them extend the filter."""
        before, merit, slope = (values[at] for values in start)
        far = trial.theta > np.maximum(MAX_RESIDUAL_GROWTH * before, MAX_MEAN_RESIDUAL * state.rows.w.shape[1])
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
        point: "_Point",
        equations: "_Newton",
        step: "_Step",
        at: Indices,
        filters: _Filters,
        start: "_Start",
        length: Array,
        take: Callable[[Indices, "_Moved", Flags], None],
    ) -> _Filters:
        """Try second-order corrections of the full steps of some cases."""
        state, own, nearest = point.state, step.take(at), np.maximum(0.99, 1 - step.rows.mu[at])
        off, corrector, programs = point.rows.off[at], equations.corrector(at), self._active.take(at)
        trial = self._moved(state, step, at, length[at], length[at])
        before, is_active, own_length = trial.theta, np.ones(len(at), dtype=bool), length[at]
        bounded = tuple(values[at] for values in state.bounded)
        for _ in range(MAX_CORRECTIONS):
            x, w = trial.values["x"], trial.values["rows w"]
            off = own_length[:, None] * off + programs.value(x)[1] - w
            corrected, ratios = corrector(own, off)
            primal, dual = _lengths(bounded, corrected, ratios, nearest)
            trial = self._moved(state, corrected, at, primal, dual)
            accepted, extends = self._accepts(state, filters, at, trial, start, length[at])
            accepted &= is_active
            filters = filters.added(start.theta, start.merit, _flags(at[accepted & extends], len(state.case)))
            take(at, trial, accepted)
            is_active &= ~accepted & (trial.theta <= 0.99 * before)
            if not is_active.any():
                break
            own_length, before = primal, trial.theta
        return filters

    def _error_at(self, state: _State, at: Indices, trial: "_Moved") -> Array:
        """Return the errors of the barrier problems of some cases at their trial points."""
        state = state.take(at).with_values(trial.values)
        return _Point(state, self._active.take(at), np.ones(len(at))).error(state.mu)


def _length(ratio: Array, nearest: Array | float) -> Array:
    """Return the longest step up to 1 that takes away at most ``nearest`` of the distances."""
    return np.asarray(np.minimum(1.0, nearest / np.maximum(ratio, 1e-300)))


def _lengths(
    bounded: tuple[Array, ...], step: "_Step", ratios: tuple[Array, Array], nearest: Array
) -> tuple[Array, Array]:
    """Return the longest steps (B,) of the variables and of the multipliers, given the ratios of the rows."""
    scalars = step.rows.mu[:, None], step.rows.corrector[:, None]
    own = _kernel(_variable_ratios)(*bounded, step.dx, step.predictor, *scalars)
    primal, dual = (np.maximum(row, part.max(axis=1)) for row, part in zip(ratios, own, strict=True))
    return _length(primal, nearest), _length(dual, nearest)


def _flags(at: Indices, count: int) -> Flags:
    result = np.zeros(count, dtype=bool)
    result[at] = True
    return result


def _inside(w: Array, low: Array, high: Array, push: float) -> Array:
    """Return w (B, w) moved inside its bounds (B, w) by ``push`` times their size, or times their distance."""
    span = push * (high - low)
    least = low + np.minimum(push * np.maximum(1.0, np.abs(low)), span)
    most = high - np.minimum(push * np.maximum(1.0, np.abs(high)), span)
    return np.clip(w, np.where(low > -FAR, least, -FAR), np.where(high < FAR, most, FAR))


class _Step(NamedTuple):
    """Steps dx (B, n), those without a barrier, the second-order gradient of the bounds, and the steps of the rows."""

    dx: Array
    predictor: Array
    bend: Array
    rows: RowStep

    def take(self, at: Indices) -> "_Step":
        return _Step(self.dx[at], self.predictor[at], self.bend[at], self.rows.take(at))


class _Start(NamedTuple):
    """The violation, the merit function and its slope (B,) where a line search starts."""

    theta: Array
    merit: Array
    slope: Array


class _Moved(NamedTuple):
    """The points of some cases after a step; ``change`` is the largest relative change of an entry."""

    values: dict[str, Array]
    change: Array
    mu: Array

    @property
    def f(self) -> Array:
        return self.values["f"]

    @property
    def theta(self) -> Array:
        return self.values["theta"]

    @property
    def merit(self) -> Array:
        return np.asarray(self.values["f"] - self.mu * self.values["logs"])


class _Point:
    """The points of all cases, with what their step needs."""

    def __init__(self, state: _State, programs: BatchedPrograms, curvature: Array):
        self.state, self.curvature = state, curvature
        rows = self.rows = programs.point(state.x, state.rows, state.weight, curvature)
        self.gradient, lagrangian = rows.gradient, rows.gradient + rows.multiplied
        stiffness, self.repulsion, products, most, least, dual = _kernel(_variable_point)(*state.bounded, lagrangian)
        self.bound_multipliers, fixed = state.z_high - state.z_low, rows.systems.fixed
        self.bound_multipliers[:, fixed], dual[:, fixed] = -lagrangian[:, fixed], 0.0
        self.entries = rows.entries
        self.entries[:, rows.systems.diagonal] += stiffness
        totals = rows.totals
        self.mu = (totals.products + products.sum(axis=1)) / state.count
        z = totals.z + state.z_low.sum(axis=1) + state.z_high.sum(axis=1)
        by_dual = np.maximum(100.0, (totals.u + z) / (state.rows.w.shape[1] + state.count)) / 100
        by_gap = np.maximum(100.0, z / state.count) / 100
        worst = np.maximum(np.maximum(totals.dual, dual.max(axis=1)) / by_dual, totals.off)
        extremes = np.maximum(totals.most, most.max(axis=1)), np.minimum(totals.least, least.min(axis=1))
        self._error = worst, *extremes, by_gap

    def error(self, mu: Array) -> Array:
        """Return the largest scaled optimality residual (B,) of the barrier problems."""
        worst, most, least, by_gap = self._error
        return np.asarray(np.maximum(worst, np.maximum(most - mu, np.minimum(mu - least, mu)) / by_gap))

    def slopes(self, dx: Array) -> tuple[Array, Array]:
        """Return the derivatives (B, k) along dx (B, k, n) of f and of minus the sum of logarithms.

        The part of the slacks is pulled back, without that of the residuals of h - w = 0 (``RowTotals.slope``).
        """
        objective = (dx @ self.gradient[..., None])[..., 0]
        return objective, (dx @ (self.repulsion + self.rows.repelled)[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class _Newton:
    """The factorised Newton equations of all cases."""

    point: _Point
    factors: Factors

    def first(self) -> Array:
        """Return dx (B, 2, n) without a barrier, and the change that a unit barrier parameter adds."""
        point = self.point
        return self.factors.solved(
            -np.stack([point.gradient + point.rows.pushed, point.repulsion + point.rows.repelled], axis=1)
        )

    def corrector(self, at: Indices) -> Callable[[_Step, Array], tuple[_Step, tuple[Array, Array]]]:
        """Return a function of steps of some cases and other residuals (B, m): new steps, and ratios of their rows."""
        point, rows, factors = self.point, self.point.rows.take(at), self.factors.take(at)
        gradient, repulsion = point.gradient[at], point.repulsion[at]

        def corrected(step: _Step, off: Array) -> tuple[_Step, tuple[Array, Array]]:
            right = gradient + step.rows.mu[:, None] * repulsion + step.rows.corrector[:, None] * step.bend
            dx = factors.solved(-(right + rows.correction(step.rows, off))[:, None])[:, 0]
            new, *ratios = rows.corrected(step.rows, off, dx)
            return step._replace(dx=dx, rows=new), (ratios[0], ratios[1])

        return corrected
