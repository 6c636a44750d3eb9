"""The condensed interior-point method for a batch of programs with the same structure.

This is the method of ``condensed`` with a batch axis: each case has its own barrier parameter, filter, step length and
regularisation, and the arrays of all cases are computed together. When cases end, they leave the batch and new ones
enter, which keeps the number of active cases constant. Cases do not affect each other. The arrays are NumPy arrays, or
CuPy arrays on a GPU (see ``motion.transcription.cases``).

The method uses only sums over the rows, so that slacks and multipliers need not leave compiled code. The linear
equations of a step are linear in the barrier parameter and in the weight of the second-order terms. Steps for several
values of both are therefore combinations of three solutions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, reduce
from time import perf_counter
from typing import Any, NamedTuple, Protocol, cast

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import Signature, on_host
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
    MAX_RESTARTS,
    MAX_SHORT_STEPS,
    MAX_STILL_STEPS,
    MIN_STEP_FRACTION,
    SETTLED_DECREASE,
    SHIFTED_GAP_FACTOR,
    SHIFTED_SETTLED_DECREASE,
    SHORT_STEP,
    SOFT_ERROR_FACTOR,
    START_PUSH,
    STILL_STEP,
    WARM_PUSH,
)
from torsor.optimisation.program import Outcome, Settings
from torsor.optimisation.standard import MAX_GRADIENT
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

WIDTHS = {"cpu": 256, "cuda": 65536}  # number of active cases
LAST = 48  # number of remaining cases of a GPU batch at which the CPU takes over, because it solves few cases faster
HALVINGS = {"cpu": 1, "cuda": 8}  # step lengths that a line search tries simultaneously
# Barrier parameter of a warm start: the factor of the squared largest violation (which measures the change of the
# data), and bounds.
WARM_MU_FACTOR, MIN_WARM_MU, MAX_WARM_MU = 0.1, 1e-9, 1e-3
MAX_RESTORING = 60  # largest number of iterations of a search for a feasible point
RESTART_MU = 1e-3  # smallest barrier parameter after a restart; smaller ones more often lead to worse optima
REFILL_FRACTION = 0.75  # fraction of active cases below which new ones enter


class Rows(NamedTuple):
    """Slacks w, multipliers u of h - w = 0, and multipliers of the lower and upper bounds of the slacks (B, m)."""

    w: Array
    u: Array
    z_low: Array
    z_high: Array


class RowTotals(NamedTuple):
    """Sums and extremes (B,) over the rows; see ``motion.transcription.barrier``."""

    products: Array
    z: Array
    u: Array
    slope: Array
    off: Array
    dual: Array
    most: Array
    least: Array


class Prediction(NamedTuple):
    """Effect on the rows of a step without a barrier.

    ``bend`` (B, n) is J^T times the gradient of the second-order products, and ``along`` and ``both`` (B,) are the
    changes of the products. ``primal`` and ``dual`` (B,) are the largest fractions by which the step reduces a distance
    and a multiplier.
    """

    bend: Array
    along: Array
    both: Array
    primal: Array
    dual: Array


class RowStep(NamedTuple):
    """Changes ``ds`` (B, m) of the slacks, those without a barrier, barrier parameters and corrector weights (B,)."""

    predictor: Array
    ds: Array
    mu: Array
    corrector: Array

    def take(self, at: Indices) -> "RowStep":
        """Return the steps of the cases ``at``."""
        return RowStep(*(values[at] for values in self))


class PathStep(NamedTuple):
    """Steps dx (B, n) from x, those without a barrier, barrier parameters and corrector weights (B,).

    Programs use it if they recompute the changes of the slacks instead of storing them.
    """

    x: Array
    dx: Array
    predictor: Array
    mu: Array
    corrector: Array

    def take(self, at: Indices) -> "PathStep":
        """Return the steps of the cases ``at``."""
        return PathStep(*(values[at] for values in self))


class Trial(NamedTuple):
    """Rows and f after a step, the sums of |h - w| and logarithms, and the largest violation and relative change."""

    rows: Rows
    f: Array
    theta: Array
    logs: Array
    violation: Array
    change: Array


class RowPoint(ABC):
    """The rows at a point: derivatives (B, n) pulled back to the variables, and the entries of the condensed matrices.

    ``gradient`` is the gradient of f, and ``multiplied`` is J^T u. ``pushed`` and ``repelled`` are J^T times the forces
    of the rows without a barrier and for a unit barrier parameter (``optimisation.barrier``).
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
        """The linear systems of the condensed matrices."""

    @abstractmethod
    def take(self, at: Indices, step: RowStep | PathStep) -> "tuple[RowCorrections, RowStep]":
        """Return the cases ``at`` for second-order corrections, and their steps in terms of the rows."""

    @abstractmethod
    def predicted(self, dx: Array) -> Prediction:
        """Return the effect of the steps (B, 2, n) without a barrier and for a unit barrier parameter."""

    @abstractmethod
    def ratios(self, dx: Array, mu: Array, correctors: Array) -> tuple[Array, Array]:
        """Return the largest relative reductions (B, correctors) by the steps; dx (B, n) is the second-order part."""

    @abstractmethod
    def step(self, mu: Array, corrector: Array) -> RowStep | PathStep:
        """Return the chosen step of the rows."""


class RowCorrections(ABC):
    """The rows at a point, for second-order corrections of their steps."""

    @property
    @abstractmethod
    def off(self) -> Array:
        """Residuals (B, m) of h - w = 0."""

    @abstractmethod
    def correction(self, step: RowStep, off: Array) -> Array:
        """Return J^T (B, n) times the rows of the step with the residuals ``off`` (B, m)."""

    @abstractmethod
    def corrected(self, step: RowStep, off: Array, dx: Array) -> tuple[RowStep, Array, Array]:
        """Return the step dx (B, n) with the residuals ``off``, and its largest relative reductions (B,)."""


class BatchedPrograms(Protocol):
    """Programs with the same structure, with bounds (B, n) of the variables and (B, m) of the rows."""

    @property
    def device(self) -> str:
        """Device of the arrays: "cpu" or "cuda"."""

    @property
    def width(self) -> int:
        """Number of active cases."""

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
        """Return the programs of ``cases``."""

    def on_cpu(self) -> "BatchedPrograms":
        """Return the programs with arrays on the CPU."""

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the rows (B, m) at x (B, n)."""

    def gradient(self, x: Array, rows: Rows) -> Array:
        """Return the gradient (B, n) of f at x (B, n)."""

    def point(self, x: Array, rows: Rows, weight: Array, curvature: Array) -> RowPoint:
        """Return the rows at x (B, n); f is scaled by ``weight`` (B,), the curvature of rows by ``curvature``."""

    def moved(self, x: Array, rows: Rows, step: RowStep | PathStep, length: Array, dual: Array) -> Trial:
        """Return the rows and f after steps of the relative lengths ``length`` (B,) to x (B, n)."""


# Bounds of the variables, with the same arithmetic as the rows, one entry at a time


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
def _compiled(device: str) -> Kernels:
    return Kernels(Target(device=device), lambda: source_hash("motion/batched.py", "optimisation/barrier.py"))


def _kernel(make: Callable[[], ca.Function], programs: "BatchedPrograms") -> Any:
    return _compiled(programs.device).kernel(make.__name__, make, _scalars).direct


def _scalars(of: Signature) -> tuple[list[tuple[()]], list[tuple[()]]]:
    return [()] * len(of.sizes_in), [()] * len(of.sizes_out)


class _Filters:
    """Pairs (violation, objective) of the earlier points of each case, (B, count, 2)."""

    def __init__(self, pairs: Array):
        self.pairs = pairs

    @classmethod
    def empty(cls, like: Array) -> "_Filters":
        return cls(np.zeros((len(like), 0, 2), like=like))

    def accepts(self, theta: Array, merit: Array) -> Flags:
        """Return flags (B,) of pairs that improve on every earlier pair in violation or objective."""
        better: Flags = (theta[:, None] < self.pairs[..., 0]) | (merit[:, None] < self.pairs[..., 1])
        return cast(Flags, better.all(axis=1))

    def added(self, theta: Array, merit: Array, to: Flags) -> "_Filters":
        """Return the filters with one more pair for the flagged cases."""
        if not to.any():
            return self
        least = 1e-5 * theta
        pair = np.where(to[:, None], np.stack([theta - least, merit - least], axis=1), np.inf)
        return _Filters(np.concatenate([self.pairs, pair[:, None]], axis=1))

    def cleared(self, of: Flags) -> "_Filters":
        """Return the filters without the pairs of the flagged cases."""
        if not self.pairs.shape[1] or not of.any():
            return self
        pairs = np.where(of[:, None, None], np.inf, self.pairs)
        return _Filters(pairs[:, np.isfinite(pairs).any(axis=(0, 2))])


@dataclass(eq=False)
class _State:
    """The active cases: their points and the states of their searches.

    ``x`` (B, n) are the variables; their bounds and bound multipliers have the same shape. ``theta`` (B,) is the sum of
    |h - w|, and ``logs`` (B,) is the sum of the logarithms of all distances.
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
    restarts: Indices
    filter: _Filters
    past: _Filters

    @property
    def bounded(self) -> tuple[Array, ...]:
        """The first inputs of the variable kernels."""
        return self.x, self.z_low, self.z_high, self.low, self.high

    def values(self) -> dict[str, Array]:
        """Return the arrays that a step changes by name; names of row arrays begin with "rows "."""
        names = ("x", "z_low", "z_high", "f", "theta", "logs", "violation")
        rows = {f"rows {name}": own for name, own in self.rows._asdict().items()}
        return {name: getattr(self, name) for name in names} | rows

    def with_values(self, values: dict[str, Array]) -> "_State":
        """Return the state with its arrays replaced by ``values``."""
        rows = Rows(*(values[f"rows {name}"] for name in Rows._fields))
        own: dict[str, Any] = {name: array for name, array in values.items() if " " not in name}
        return replace(self, rows=rows, **own)

    def take(self, kept: Indices) -> "_State":
        """Return the cases ``kept``."""
        return self.mapped(lambda values: values[kept])

    def mapped(self, function: Callable[[Any], Any]) -> "_State":
        """Return the state with a function applied to each of its arrays."""

        def part(value: Any) -> Any:
            if isinstance(value, _Filters):
                return _Filters(function(value.pairs))
            return Rows(*map(function, value)) if isinstance(value, Rows) else function(value)

        return _State(*(part(getattr(self, field.name)) for field in fields(self)))

    def joined(self, other: "_State") -> "_State":
        """Return the cases of both states."""

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
    """The outcome of a case; ``is_convex`` is True if the last Newton matrix was positive definite without a shift."""

    outcome: Outcome
    is_convex: bool


class Warm(NamedTuple):
    """Multipliers of the rows (B, m) and of the bounds of the variables (B, n) near the solution.

    ``mu`` is the smallest initial barrier parameter.
    """

    rows: Array
    bounds: Array
    mu: float = MIN_WARM_MU


def solve_batch(
    programs: BatchedPrograms,
    starts: Array,
    settings: Settings,
    done: Callable[[int, Outcome], None] | None = None,
    width: int | None = None,
    stops: Callable[[], bool] | None = None,
    warm: Warm | None = None,
) -> list[BatchOutcome | None]:
    """Solve programs with the same structure from starts (B, n); ``done`` is called when a case ends.

    ``width`` is the number of active cases, and ``warm`` contains initial multipliers. If ``stops`` returns True before
    an iteration, the active cases end unsolved, and waiting cases have no outcome.
    """
    if width is None:
        width = programs.width
    return _Search(programs, starts, settings, done, width, stops, warm).run()


class _Search:
    def __init__(
        self,
        programs: BatchedPrograms,
        starts: Array,
        settings: Settings,
        done: Callable[[int, Outcome], None] | None,
        width: int,
        stops: Callable[[], bool] | None,
        warm: Warm | None,
    ):
        self.programs, self.starts, self.settings, self.warm = programs, starts, settings, warm
        self.done, self.width, self.stops, self.began = done, width, stops, perf_counter()
        self.outcomes: list[BatchOutcome | None] = [None] * len(programs)
        self.waiting = np.arange(len(programs))
        self.stuck = list[_State]()  # stuck cases, which restart together

    def run(self) -> list[BatchOutcome | None]:
        """Solve all cases."""
        return self._run(self._enter(self.width))

    def _run(self, state: _State) -> list[BatchOutcome | None]:
        """Solve all cases, starting with the active ones."""
        self._active = self.programs.take(state.case)
        while len(state.case) or self.stuck:
            if self.programs.device != "cpu" and not len(self.waiting) and len(state.case) <= LAST:
                self._finish(state)
                break
            if not len(state.case):
                state = self._restarted()
                self._active = self.programs.take(state.case)
                continue
            if self.stops is not None and self.stops():
                for part in (state, *self.stuck):
                    self._record(part, dict.fromkeys(range(len(part.case)), ("stopped", False)))
                break
            after = self._iterate(state)
            is_changed = len(after.case) < len(state.case)
            state = after
            if len(state.case) <= REFILL_FRACTION * self.width:
                if len(self.waiting):
                    state, is_changed = state.joined(self._enter(self.width - len(state.case))), True
                elif self.stuck:
                    state, is_changed = state.joined(self._restarted()), True
            if is_changed and len(state.case):
                self._active = self.programs.take(state.case)
        return self.outcomes

    def _finish(self, state: _State) -> None:
        """Solve the last cases of a batch on the CPU."""
        state = reduce(_State.joined, [state, *self.stuck])
        cases, own = on_host(state.case), state.mapped(on_host)
        is_stuck = np.arange(len(cases)) >= len(cases) - sum(len(part.case) for part in self.stuck)

        def done(k: int, outcome: Outcome) -> None:
            if self.done is not None:
                self.done(int(cases[k]), outcome)

        programs = self.programs.take(state.case).on_cpu()
        search = _Search(programs, own.x, self.settings, done, WIDTHS["cpu"], self.stops, None)
        search.waiting, own = search.waiting[:0], replace(own, case=np.arange(len(cases)))
        search.stuck = [own.take(np.flatnonzero(is_stuck))] if is_stuck.any() else []
        for case, outcome in zip(cases.tolist(), search._run(own.take(np.flatnonzero(~is_stuck))), strict=True):
            self.outcomes[case] = outcome

    # Entering and leaving the batch

    def _enter(self, count: int) -> _State:
        """Return the initial points of the next waiting cases."""
        first, self.waiting = self.waiting[:count], self.waiting[count:]
        cases = np.asarray(first, like=self.starts)
        return self._begun(cases, self.starts[cases], self.warm)

    def _begun(self, cases: Indices, start: Array, warm: Warm | None = None, centre: Array | None = None) -> _State:
        """Return cases at start variables (B, n); ``centre`` (B,) are initial products of distances and multipliers."""
        programs, ones = self.programs.take(cases), np.ones_like(cases, dtype=float)
        low, high = np.maximum(programs.lower, -FAR), np.minimum(programs.upper, FAR)
        push = START_PUSH if warm is None else WARM_PUSH
        x = _inside(start, low, high, push)
        low, high = np.where(low < high, low, -FAR), np.where(low < high, high, FAR)  # fixed variables do not move
        f, h = programs.value(x)
        row_low, row_high = programs.row_bounds
        w = _inside(h, row_low, row_high, push)
        is_open = row_low < row_high  # equations have no bound multipliers
        z_low, z_high = (is_open & (row_low > -FAR)).astype(float), (is_open & (row_high < FAR)).astype(float)
        own_low, own_high = (low > -FAR).astype(float), (high < FAR).astype(float)
        rows = Rows(w, np.zeros_like(w), z_low, z_high)
        bounds = np.maximum(sum(z.sum(axis=1) for z in (z_low, z_high, own_low, own_high)), 1.0)
        steep = np.abs(programs.gradient(x, rows)).max(axis=1)
        largest = np.maximum(np.abs(f), steep)
        weight = np.where(steep > MAX_GRADIENT, MAX_GRADIENT / np.maximum(steep, 1e-300), 1.0)
        weight = np.where((largest < 1) & (largest > 1e-100), 1 / np.maximum(largest, 1e-100), weight)
        if warm is not None:
            u, z = (weight[:, None] * values[cases] for values in warm[:2])
            off = np.maximum(row_low - h, h - row_high).max(axis=1)
            mu = np.clip(WARM_MU_FACTOR * np.maximum(off, 0.0) ** 2, warm.mu, MAX_WARM_MU)[:, None]
            w, z_low, z_high = _centred(h, u, row_low, row_high, mu)
            x, own_low, own_high = _centred(x, z, low, high, mu)
            f, h = programs.value(x)
            rows = Rows(w, np.where(is_open, z_high - z_low, u), z_low, z_high)
        gaps = (w - row_low, z_low), (row_high - w, z_high), (x - low, own_low), (high - x, own_high)
        if centre is not None:
            with np.errstate(divide="ignore"):
                z_low, z_high, own_low, own_high = (np.where(z > 0, centre[:, None] / gap, 0.0) for gap, z in gaps)
            rows = Rows(w, z_high - z_low, z_low, z_high)
            gaps = (w - row_low, z_low), (row_high - w, z_high), (x - low, own_low), (high - x, own_high)
        mu = sum((gap * z).sum(axis=1) for gap, z in gaps) / bounds
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(np.where(z > 0, np.log(gap), 0.0).sum(axis=1) for gap, z in gaps)
        f, theta = weight * f, np.abs(h - w).sum(axis=1)
        violation = np.maximum(np.maximum(row_low - h, h - row_high).max(axis=1), 0.0)
        share = np.minimum(FIRST_GAP_SHARE, mu * bounds / np.maximum(np.abs(f), 1e-300))
        zeros, yes = np.zeros_like(cases), ones > 0
        return _State(
            cases, x, own_low, own_high, low, high, rows, bounds, weight, f, theta, logs, violation,
            mu.copy(), yes, yes.copy(), theta.copy(), share, 1e3 * np.maximum(mu, 1e-8),
            1e-4 * np.maximum(1.0, theta), 0.0 * ones, ~yes, zeros, zeros.copy(), zeros.copy(),
            zeros.copy(), _Filters.empty(x), _Filters.empty(x),
        )  # fmt: skip

    def _record(self, state: _State, ended: dict[int, tuple[str, bool]], z: Array | None = None) -> None:
        """Record the outcomes of finished cases {index in the batch: status}; z (B, n) are bound multipliers."""
        at = np.asarray(np.array(list(ended)), like=state.case)
        z, weight = state.z_high - state.z_low if z is None else z, state.weight[at]
        parts = (
            state.case[at], state.x[at], state.rows.u[at] / weight[:, None], z[at] / weight[:, None],
            state.f[at] / weight, state.iterations[at], state.violation[at], state.is_convex[at],
        )  # fmt: skip
        seconds = perf_counter() - self.began
        for (status, is_solved), case, x, u, z, f, iterations, violation, is_convex in zip(
            ended.values(), *map(on_host, parts), strict=True
        ):
            outcome = Outcome(
                x, u, z, float(f), int(iterations), status, is_solved, violation=float(violation), seconds=seconds
            )
            self.outcomes[case] = BatchOutcome(outcome, bool(is_convex))
            if self.done is not None:
                self.done(int(case), outcome)

    def _restarted(self) -> _State:
        """Return the stuck cases, moved to points inside their bounds; cases without such a point nearby end."""
        state = reduce(_State.joined, self.stuck)
        self.stuck = []
        is_feasible = state.violation <= self.settings.tolerance
        x, is_restored, count = self._restored(state, ~is_feasible)
        state = replace(state, iterations=state.iterations + count)
        is_good = on_host(is_feasible | is_restored)
        ended = {int(k): ("no feasible point was found nearby", False) for k in np.flatnonzero(~is_good)}
        if ended:
            self._record(state, ended)
        at = np.asarray(np.flatnonzero(is_good), like=state.case)
        if not len(at):
            return state.take(at)
        begun = self._begun(state.case[at], x[at], centre=np.maximum(state.mu[at], RESTART_MU))
        return replace(begun, iterations=state.iterations[at], restarts=state.restarts[at] + 1)

    def _restored(self, state: _State, of: Flags) -> tuple[Array, Flags, Indices]:
        """Return variables (B, n) at which the residuals of flagged cases are at most a tenth of the current ones.

        The method is damped least squares on the rows outside their bounds. Also return flags of the cases that reached
        such a point, and the numbers of iterations.
        """
        programs, x, target = self.programs.take(state.case), state.x, 0.1 * state.theta
        low, high = programs.row_bounds
        is_open_row = low < high
        zero, damping, count = np.zeros_like(state.theta), np.full_like(state.theta, 1e-4), np.zeros_like(state.case)

        def residuals(x: Array) -> tuple[Array, Array]:
            h = programs.value(x)[1]
            w = _inside(h, low, high, START_PUSH)
            return w, h - w

        w, off = residuals(x)
        is_open, size = of & (np.abs(off).sum(axis=1) > target), (off**2).sum(axis=1)
        for _ in range(MAX_RESTORING):
            if not is_open.any():
                break
            # With these multipliers, rows that have to move have a stiffness of 1, and the others of 0.
            z_low, z_high = (w - low) * (is_open_row & (off < 0)), (high - w) * (is_open_row & (off > 0))
            point = programs.point(x, Rows(w, np.zeros_like(w), z_low, z_high), zero, zero)
            point.entries[:, point.systems.diagonal] += damping[:, None]
            factors = point.systems.factorised(point.entries, zero)
            step = factors.solved(-point.pushed[:, None])[:, 0]
            trial = np.clip(x + step, programs.lower, programs.upper)
            new_w, new_off = residuals(trial)
            new_size = (new_off**2).sum(axis=1)
            is_better = is_open & (new_size < size * (1 - 1e-8))
            x, w, off = (
                np.where(is_better[:, None], new, old) for new, old in ((trial, x), (new_w, w), (new_off, off))
            )
            size, count = np.where(is_better, new_size, size), count + is_open
            damping = np.where(is_better, np.maximum(damping / 10, 1e-12), damping * 10)
            is_open &= (np.abs(off).sum(axis=1) > target) & (damping < 1e8)
        return x, np.abs(off).sum(axis=1) <= target, count

    # One iteration

    def _iterate(self, state: _State) -> _State:
        """Return the cases after one iteration, without finished ones."""
        tolerance = self.settings.tolerance
        is_flat = state.is_flat & (state.theta <= state.first)
        ratio = CLOSE_RESIDUAL * state.rows.w.shape[1] / np.maximum(state.theta, 1e-300)
        curvature = np.where(is_flat, np.minimum(1.0, ratio), 1.0)
        point = _Point(replace(state, is_flat=is_flat), self._active, curvature)
        gap = point.mu * state.count / np.maximum(1.0, np.abs(state.f))
        error = on_host(np.maximum(np.maximum(point.error(0.0), gap), state.violation))
        is_bad, is_over = ~np.isfinite(error), on_host(state.iterations) >= self.settings.iterations
        factors = point.rows.systems.factorised(point.entries, state.shift)
        is_convex = factors.is_convex & (curvature == 1.0)
        state = point.state = replace(point.state, shift=factors.shift, is_convex=is_convex)
        ended: dict[int, tuple[str, bool]] = {}
        for k in np.flatnonzero((error <= tolerance) | is_bad | is_over).tolist():
            is_solved, limit = bool(error[k] <= tolerance), "stopped at the iteration limit"
            ended[k] = ("optimal" if is_solved else "values are not finite" if is_bad[k] else limit), is_solved
        if len(ended) == len(state.case):
            self._record(state, ended, point.bound_multipliers)
            return state.take(state.case[:0])
        with np.errstate(all="ignore"):
            equations = _Newton(point, factors)
            ok, after = self._search(point, equations, *self._choose(point, equations))
        is_stuck = ~(ok & factors.is_factorised) | (after.shorts >= MAX_SHORT_STEPS)
        is_feasible, restarts, stuck = on_host(state.violation <= tolerance), on_host(state.restarts), list[int]()
        for k in np.flatnonzero(on_host(is_stuck)).tolist():
            if k not in ended:
                is_close = bool(error[k] <= LOOSER_FACTOR * tolerance)
                if not is_close and restarts[k] < MAX_RESTARTS:
                    stuck.append(k)
                    continue
                unsolved = "no better step was found" if is_feasible[k] else "no feasible point was found nearby"
                ended[k] = ("optimal to a looser tolerance" if is_close else unsolved), is_close
        if not ended and not stuck:
            return after
        if ended:
            self._record(state, ended, point.bound_multipliers)  # at the points before this step
        if stuck:
            self.stuck.append(state.take(np.asarray(np.array(stuck), like=state.case)))
        others = np.setdiff1d(np.arange(len(state.case)), [*ended, *stuck])
        return after.take(np.asarray(others, like=state.case))

    def _choose(self, point: "_Point", equations: "_Newton") -> tuple["_Step", tuple[Array, Array]]:
        """Choose barrier parameters, and return the steps and their largest relative reductions (B,)."""
        state, objective, ones = point.state, point.state.f, np.ones_like(point.state.f)
        progresses = state.past.accepts(state.theta, objective)
        if self.warm is not None:
            progresses = progresses | (state.theta <= CLOSE_RESIDUAL * state.rows.w.shape[1])
        stops, starts = state.is_free & ~progresses, ~state.is_free & progresses
        least = np.maximum(0.1 * self.settings.tolerance / state.count, 1e-14)
        monotone = np.where(stops, np.maximum(0.8 * point.mu, least), state.mu)
        is_free = (state.is_free & ~stops) | starts
        filters, past = state.filter.cleared(stops), state.past.added(state.theta, objective, is_free)
        first = equations.first()  # the step without a barrier, and its change for a unit barrier parameter
        predictor = first[:, 0]
        rows = point.rows.predicted(first)
        bend, *parts = _kernel(_variable_prediction, self.programs)(*state.bounded, predictor)
        along, both = rows.along + parts[0].sum(axis=1), rows.both + parts[1].sum(axis=1)
        p = _length(np.maximum(rows.primal, parts[2].max(axis=1)), 1.0)
        d = _length(np.maximum(rows.dual, parts[3].max(axis=1)), 1.0)
        # gap dz = -gap z - z d(gap), so each product decreases by itself and by its change along the gap
        size = point.mu * state.count
        total = size + p * along - d * (size + along) + p * d * both
        wanted = (total / state.count / np.maximum(point.mu, 1e-300)) ** 3 * point.mu
        second = equations.factors.solved(-(bend + rows.bend)[:, None])[:, 0]
        weights = np.asarray(np.linspace(0.0, 1.0, CORRECTORS), like=p)
        correctors = (p * d)[:, None] + (1 - p * d)[:, None] * weights
        correctors[~is_free] = 0.0
        dx = np.concatenate([first, second[:, None]], axis=1)
        slopes = point.slopes(dx)
        slopes[1][:, 0] += point.rows.totals.slope
        corrector = is_free.astype(float)  # near 1 for long steps, which shrink the gap
        share, mu, is_open = state.share, monotone, ones > 0
        is_shifted = ~equations.factors.is_convex
        settled = np.where(is_shifted, SHIFTED_SETTLED_DECREASE, SETTLED_DECREASE)
        factor = np.where(is_shifted, SHIFTED_GAP_FACTOR, GAP_FACTOR)
        while is_open.any():
            floor = np.maximum(least, share * np.abs(objective) / state.count)
            lowered = self._lowered(point, monotone, floor, ~is_free & is_open)
            filters = filters.cleared(lowered != monotone)
            monotone = lowered
            adaptive = np.clip(wanted, floor, np.maximum(floor, state.most))
            mu = np.where(is_open, np.where(is_free, adaptive, monotone), mu)
            ways = np.stack([ones, mu, corrector], axis=1)
            decrease = np.abs((ways * (slopes[0] + mu[:, None] * slopes[1])).sum(axis=1))
            is_settled = (point.curvature >= 1.0) & (decrease <= settled * share * np.abs(objective))
            is_open &= is_settled & (floor > least)
            share = np.where(is_open, share * factor, share)
        # (B, correctors, 3): weights of the barrier-free step, the unit-barrier step and the second-order step
        ways = np.stack([np.ones_like(correctors), np.broadcast_to(mu[:, None], correctors.shape), correctors], axis=2)
        ratios = point.rows.ratios(second, mu, correctors)
        own = _kernel(_variable_ratios, self.programs)(
            *(values[:, None] for values in state.bounded), ways @ dx, predictor[:, None], mu[:, None, None],
            correctors[..., None],
        )  # fmt: skip
        primal, dual = (np.maximum(row, entry.max(axis=-1)) for row, entry in zip(ratios, own, strict=True))
        slot = np.argmax(_length(primal, MAX_BOUND_FRACTION) * _length(dual, MAX_BOUND_FRACTION), axis=1)
        every = np.arange(len(slot), like=slot)
        chosen = ways[every, slot]
        filters = filters.cleared(is_free)
        point.state = replace(state, mu=mu, is_free=is_free, share=share, filter=filters, past=past)
        step = _Step((chosen[:, None] @ dx)[:, 0], predictor, bend, point.rows.step(mu, chosen[:, 2]))
        return step, (primal[every, slot], dual[every, slot])

    @staticmethod
    def _lowered(point: "_Point", mu: Array, floor: Array, of: Flags) -> Array:
        """Return the barrier parameters of the monotone strategy, reduced while their barrier problems are solved."""
        while of.any():
            of = of & (point.error(mu) <= 10 * mu) & (mu > floor)
            mu = np.where(of, np.maximum(floor, np.minimum(0.2 * mu, mu**1.5)), mu)
        return mu

    def _search(
        self, point: "_Point", equations: "_Newton", step: "_Step", ratios: tuple[Array, Array]
    ) -> tuple[Flags, _State]:
        """Shorten each step until its filter accepts it."""
        state, mu = point.state, step.rows.mu
        nearest = np.maximum(0.99, 1 - mu)
        slope = point.slopes(step.dx[:, None])
        total = slope[0][:, 0] + mu * (slope[1][:, 0] + point.rows.totals.slope)
        start = _Start(state.theta, state.f - mu * state.logs, total)
        primal, dual = (_length(ratio, nearest) for ratio in ratios)
        new, is_shared = state.values(), True
        length, filters, ok = primal.copy(), state.filter, np.zeros_like(state.is_flat)
        todo, final = ~ok, primal.copy()

        def take(at: Indices, trial: "_Moved", taken: Flags) -> None:
            nonlocal new, is_shared
            if len(at) == len(ok) and taken.all():  # all cases
                new, is_shared = trial.values, False
                ok[:], todo[:] = True, False
                return
            if len(at) == len(ok) and is_shared:  # the first trial
                rejected, before = ~taken, new
                new = trial.values | {"x": trial.values["x"].copy()}  # programs may cache inputs that belong to x
                for name, own in new.items():
                    own[rejected] = before[name][rejected]
                is_shared = False
                ok[:], todo[:] = taken, ~taken
                return
            if is_shared:
                new, is_shared = {name: values.copy() for name, values in new.items()}, False
            chosen = at[taken]
            for name, values in trial.values.items():
                new[name][chosen] = values[taken]
            ok[chosen], todo[chosen] = True, False

        at = np.flatnonzero(todo)
        trial = self._moved(self._part(state), step, length, dual)
        accepted, extends = self._accepts(state, filters, at, trial, start, length)
        is_still = trial.change < STILL_STEP  # steps that change only multipliers are accepted in full
        stills = np.where(is_still, state.stills + 1, 0)
        accepted, extends = accepted | is_still, extends & ~is_still
        filters = filters.added(start.theta, start.merit, extends)
        tried = ~accepted & ~(trial.theta < start.theta)
        full = _Full(*(trial.values[name][tried] for name in ("x", "rows w", "theta")))
        take(at, trial, accepted)
        if tried.any():
            filters = self._correct(point, equations, step, at[tried], full, filters, start, length, take)
        length[todo] /= 2
        while todo.any():
            at = np.flatnonzero(todo & (length > MIN_STEP_FRACTION * primal))
            if not at.size:
                break
            count = min(HALVINGS[self.programs.device], max(1, len(todo) // len(at)))
            every, factors = np.repeat(at, count), np.asarray(0.5 ** np.arange(count), like=primal)
            lengths = (length[at][:, None] * factors).ravel()
            trial = self._moved(self._part(state, every), step.take(every), lengths, dual[every])
            accepted, extends = self._accepts(state, filters, every, trial, start, lengths)
            accepted &= lengths > MIN_STEP_FRACTION * primal[every]
            is_accepted = accepted.reshape(-1, count)
            longest = np.argmax(is_accepted, axis=1) + count * np.arange(len(at), like=at)
            longest = longest[is_accepted.any(axis=1)]
            chosen = _flags(longest, accepted)
            filters = filters.added(start.theta, start.merit, _flags(every[chosen & extends], ok))
            final[every[chosen]] = lengths[chosen]
            take(every, trial, chosen)
            length[todo] *= 0.5**count
        at = np.flatnonzero(todo)
        if at.size:  # take the full step although the filter rejects it, if it reduces the error
            shorter = np.minimum(primal, dual)[at]
            trial = self._moved(self._part(state, at), step.take(at), shorter, shorter)
            before = point.error(mu)[at]
            take(at, trial, np.isfinite(trial.f) & (self._error_at(state, at, trial) <= SOFT_ERROR_FACTOR * before))
        ok &= stills < MAX_STILL_STEPS
        shorts = np.where(final < SHORT_STEP, state.shorts + 1, 0)
        state = replace(state, filter=filters, shorts=shorts, stills=stills, iterations=state.iterations + 1)
        return ok, state.with_values(new)

    def _part(self, state: _State, at: Indices | None = None) -> "_Part":
        """Return the points of the cases ``at``, by default all."""
        if at is None:
            return _Part(self._active, state.bounded, state.rows, state.weight)
        rows = Rows(*(values[at] for values in state.rows))
        return _Part(self._active.take(at), tuple(values[at] for values in state.bounded), rows, state.weight[at])

    def _moved(self, part: "_Part", step: "_Step", length: Array, dual: Array) -> "_Moved":
        """Return the points after steps of the relative lengths ``length`` and ``dual`` (multipliers)."""
        scalars = step.rows.mu, step.rows.corrector, length, dual
        x, z_low, z_high, logs, change = _kernel(_variable_move, self.programs)(
            *part.bounded, step.dx, step.predictor, *(values[:, None] for values in scalars)
        )
        trial = part.programs.moved(x, part.rows, step.rows, length, dual)
        values = {"x": x, "z_low": z_low, "z_high": z_high, "f": part.weight * trial.f, "theta": trial.theta}
        values |= {"logs": trial.logs + logs.sum(axis=1), "violation": trial.violation}
        values |= {f"rows {name}": own for name, own in trial.rows._asdict().items()}
        return _Moved(values, np.maximum(trial.change, change.max(axis=1)), step.rows.mu)

    def _accepts(
        self, state: _State, filters: _Filters, at: Indices, trial: "_Moved", start: "_Start", length: Array
    ) -> tuple[Flags, Flags]:
        """Return flags of the accepted trials, and of those that extend the filter."""
        before, merit, slope = (values[at] for values in start)
        far = trial.theta > np.maximum(MAX_RESIDUAL_GROWTH * before, MAX_MEAN_RESIDUAL * state.rows.w.shape[1])
        is_new = _Filters(filters.pairs[at]).accepts(trial.theta, trial.merit)
        possible = ~far & np.isfinite(trial.merit) & np.isfinite(trial.theta) & is_new
        slack = 1e-13 * np.abs(merit)
        descends = (slope < 0) & (length * np.maximum(-slope, 0.0) ** 2.3 > before**1.1)
        armijo = descends & (before <= state.small[at])
        falls = trial.merit <= merit + 1e-8 * length * slope + slack
        progresses = (trial.theta <= (1 - 1e-5) * before) | (trial.merit <= merit - 1e-8 * before + slack)
        accepted: Flags = possible & np.where(armijo, falls, progresses)
        return accepted, accepted & ~armijo

    def _correct(
        self,
        point: "_Point",
        equations: "_Newton",
        step: "_Step",
        at: Indices,
        full: "_Full",
        filters: _Filters,
        start: "_Start",
        length: Array,
        take: Callable[[Indices, "_Moved", Flags], None],
    ) -> _Filters:
        """Try second-order corrections of the full steps of the cases ``at``."""
        state, own, nearest = point.state, step.take(at), np.maximum(0.99, 1 - step.rows.mu[at])
        rows, row_step = point.rows.take(at, own.rows)
        off, corrector, part = rows.off, equations.corrector(at, rows, row_step), self._part(state, at)
        (x, w, before), is_active, own_length = full, at >= 0, length[at]
        for _ in range(MAX_CORRECTIONS):
            off = own_length[:, None] * off + part.programs.value(x)[1] - w
            corrected, ratios = corrector(own, off)
            primal, dual = self._lengths(part.bounded, corrected, ratios, nearest)
            trial = self._moved(part, corrected, primal, dual)
            accepted, extends = self._accepts(state, filters, at, trial, start, length[at])
            accepted &= is_active
            filters = filters.added(start.theta, start.merit, _flags(at[accepted & extends], state.is_flat))
            take(at, trial, accepted)
            is_active &= ~accepted & (trial.theta <= 0.99 * before)
            if not is_active.any():
                break
            own_length, x, w, before = primal, trial.values["x"], trial.values["rows w"], trial.theta
        return filters

    def _error_at(self, state: _State, at: Indices, trial: "_Moved") -> Array:
        """Return the barrier-problem errors of the cases ``at`` at their trial points."""
        state = state.take(at).with_values(trial.values)
        return _Point(state, self._active.take(at), np.ones_like(state.mu)).error(state.mu)

    def _lengths(
        self, bounded: tuple[Array, ...], step: "_Step", ratios: tuple[Array, Array], nearest: Array
    ) -> tuple[Array, Array]:
        """Return the longest relative steps (B,) of the variables and multipliers, given the ``ratios`` of the rows."""
        scalars = step.rows.mu[:, None], step.rows.corrector[:, None]
        own = _kernel(_variable_ratios, self.programs)(*bounded, step.dx, step.predictor, *scalars)
        primal, dual = (np.maximum(row, part.max(axis=1)) for row, part in zip(ratios, own, strict=True))
        return _length(primal, nearest), _length(dual, nearest)


def _length(ratio: Array, nearest: Array | float) -> Array:
    """Return the longest relative step, up to 1, that reduces distances by at most the fraction ``nearest``."""
    return np.minimum(1.0, nearest / np.maximum(ratio, 1e-300))


def _flags(at: Indices, like: Flags) -> Flags:
    """Return flags with the shape of ``like`` that are True at the indices ``at``."""
    result = np.zeros_like(like)
    result[at] = True
    return result


def _inside(w: Array, low: Array, high: Array, push: float) -> Array:
    """Return w (B, w) moved inside its bounds (B, w) by at least ``push`` times their magnitude or distance."""
    span = push * (high - low)
    least = low + np.minimum(push * np.maximum(1.0, np.abs(low)), span)
    most = high - np.minimum(push * np.maximum(1.0, np.abs(high)), span)
    return np.clip(w, np.where(low > -FAR, least, -FAR), np.where(high < FAR, most, FAR))


def _centred(w: Array, u: Array, low: Array, high: Array, mu: Array) -> tuple[Array, Array, Array]:
    """Return values near w (B, w) and bound multipliers whose products with the distances are mu (B, 1).

    ``u`` are multipliers of a nearby solution, positive at upper bounds. The larger of a distance and its multiplier
    changes little.
    """
    is_open = low < high
    has_low, has_high = is_open & (low > -FAR), is_open & (high < FAR)
    above, below = (
        (gap - z + np.sqrt((gap - z) ** 2 + 4 * mu)) / 2
        for gap, z in ((w - low, np.maximum(-u, 0.0)), (high - w, np.maximum(u, 0.0)))
    )
    is_low = has_low & (~has_high | (w - low < high - w))
    new = np.where(is_low, low + above, np.where(has_high, high - below, w))
    span = START_PUSH * (high - low)
    least, most = low + np.minimum(span, above), high - np.minimum(span, below)
    new = np.clip(new, np.where(has_low, least, -FAR), np.where(has_high, most, FAR))
    new = np.where(is_open, new, w)
    with np.errstate(divide="ignore"):
        return new, np.where(has_low, mu / (new - low), 0.0), np.where(has_high, mu / (high - new), 0.0)


class _Step(NamedTuple):
    """Steps dx (B, n), steps without a barrier, second-order gradients of the bounds, and the steps of the rows."""

    dx: Array
    predictor: Array
    bend: Array
    rows: RowStep | PathStep

    def take(self, at: Indices) -> "_Step":
        return _Step(self.dx[at], self.predictor[at], self.bend[at], self.rows.take(at))


class _Part(NamedTuple):
    """The points of selected cases: programs, variables with their bounds, rows, and weights of f."""

    programs: BatchedPrograms
    bounded: tuple[Array, ...]
    rows: Rows
    weight: Array


class _Full(NamedTuple):
    """The variables, the slacks and the sum of |h - w| after full steps."""

    x: Array
    w: Array
    theta: Array


class _Start(NamedTuple):
    """Violation, merit function and its slope (B,) at the start of a line search."""

    theta: Array
    merit: Array
    slope: Array


class _Moved(NamedTuple):
    """The points of selected cases after a step; ``change`` is the largest relative change of an entry."""

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
        return self.values["f"] - self.mu * self.values["logs"]


class _Point:
    """The points of all cases, with the data for their steps."""

    def __init__(self, state: _State, programs: BatchedPrograms, curvature: Array):
        self.state, self.curvature = state, curvature
        rows = self.rows = programs.point(state.x, state.rows, state.weight, curvature)
        self.gradient, lagrangian = rows.gradient, rows.gradient + rows.multiplied
        stiffness, self.repulsion, products, most, least, dual = _kernel(_variable_point, programs)(
            *state.bounded, lagrangian
        )
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

    def error(self, mu: Array | float) -> Array:
        """Return the largest scaled optimality residual (B,) of the barrier problems."""
        worst, most, least, by_gap = self._error
        result: Array = np.maximum(worst, np.maximum(most - mu, np.minimum(mu - least, mu)) / by_gap)
        return result

    def slopes(self, dx: Array) -> tuple[Array, Array]:
        """Return the derivatives (B, k) of f and of minus the sum of logarithms along dx (B, k, n).

        The part of the slacks is pulled back; the part of the residuals of h - w = 0 (``RowTotals.slope``) is not
        included.
        """
        objective = (dx @ self.gradient[..., None])[..., 0]
        return objective, (dx @ (self.repulsion + self.rows.repelled)[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class _Newton:
    """The factorised Newton equations of all cases."""

    point: _Point
    factors: Factors

    def first(self) -> Array:
        """Return the steps (B, 2, n): without a barrier, and the change due to a unit barrier parameter."""
        point = self.point
        return self.factors.solved(
            -np.stack([point.gradient + point.rows.pushed, point.repulsion + point.rows.repelled], axis=1)
        )

    def corrector(
        self, at: Indices, rows: RowCorrections, row_step: RowStep
    ) -> Callable[[_Step, Array], tuple[_Step, tuple[Array, Array]]]:
        """Return a function that maps steps of the cases ``at`` and residuals (B, m) to new steps and row ratios."""
        point, factors = self.point, self.factors.take(at)
        gradient, repulsion = point.gradient[at], point.repulsion[at]

        def corrected(step: _Step, off: Array) -> tuple[_Step, tuple[Array, Array]]:
            right = gradient + row_step.mu[:, None] * repulsion + row_step.corrector[:, None] * step.bend
            dx = factors.solved(-(right + rows.correction(row_step, off))[:, None])[:, 0]
            new, *ratios = rows.corrected(row_step, off, dx)
            return step._replace(dx=dx, rows=new), (ratios[0], ratios[1])

        return corrected
