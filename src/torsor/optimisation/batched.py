"""The condensed interior-point method for many programs of one structure at once.

It is the method of ``condensed`` with one more axis: each case has its own barrier parameter, filter, step length and
regularisation, and the arrays of all cases are computed together. Cases that end leave the batch and new ones enter, so
that the number of cases in work is constant. A case does not depend on those beside it.

The steps for several barrier parameters and second-order corrections are combinations of three solutions of the same
linear equations, because these are linear in both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from torsor.base.arrays import Array, Flags, Indices
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
from torsor.optimisation.standard import BOUND_SIGNS, MAX_GRADIENT, MIN_BOUND_DISTANCE

WIDTH = 16  # cases in work at a time: their arrays fit into the cache of a core
REFILL_FRACTION = 0.75  # fraction of the cases in work below which new ones enter
CORRECTOR_WEIGHTS = 4  # corrector weights that are tried
FAR = 1e30  # distance of a bound that does not exist


class LinearisedBatch(Protocol):
    """First derivatives of a batch at x (B, n), and its curvature."""

    @property
    def gradient(self) -> Array:
        """Gradients (B, n) of f."""

    def times(self, change: Array) -> Array:
        """Return J times changes (B, k, n)."""

    def transposed_times(self, rows: Array) -> Array:
        """Return J^T times rows (B, k, m)."""

    def condensed(self, multipliers: Array, barrier: Array, weight: Array) -> Array:
        """Return the Hessian (B, n, n) of weight f + multipliers . rows, plus J^T diag(barrier) J."""


class BatchedPrograms(Protocol):
    """Programs of one structure: bounds (B, n) of the variables and (B, m) of the rows, which are inequalities."""

    lower: Array
    upper: Array
    row_lower: Array
    row_upper: Array

    def __len__(self) -> int: ...

    def take(self, cases: Indices) -> "BatchedPrograms":
        """Return some of the programs."""

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the rows (B, m) at x (B, n)."""

    def linearised(self, x: Array) -> LinearisedBatch:
        """Return the derivatives at x (B, n)."""


class Steps(NamedTuple):
    """Changes of w (B, k, w), of the row multipliers u (B, k, m) and of the bound multipliers z (B, k, 2, w)."""

    w: Array
    u: Array
    z: Array

    def combined(self, weights: Array) -> "Steps":
        """Return the sums (B, j, ...) of the k changes with weights (B, j, k)."""
        B, k = self.w.shape[:2]
        return Steps(*(
            (weights @ change.reshape(B, k, -1)).reshape(B, weights.shape[1], *change.shape[2:]) for change in self
        ))


@dataclass(frozen=True, eq=False)
class _Filters:
    """Pairs (violation, objective) of earlier points of each case (B, count, 2)."""

    pairs: Array

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
        if not of.any() or not self.pairs.shape[1]:
            return self
        pairs = np.where(of[:, None, None], np.inf, self.pairs)
        return _Filters(pairs[:, np.isfinite(pairs).any(axis=(0, 2))])


@dataclass(eq=False)
class _State:
    """The cases in work: their points, and the state of the search of each."""

    case: Indices
    w: Array
    u: Array
    z: Array
    bounds: Array
    inner: Array
    finite: Array
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


def solve_batch(
    programs: BatchedPrograms,
    starts: Array,
    settings: Settings,
    done: Callable[[int, Outcome], None] | None = None,
    width: int = WIDTH,
) -> list[Outcome]:
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
        self.outcomes: list[Outcome | None] = [None] * len(programs)
        self.waiting = np.arange(len(programs))
        self.n = starts.shape[1]

    def run(self) -> list[Outcome]:
        """Solve all cases."""
        state = self._enter()
        while len(state.case):
            state = self._iterate(state)
            if len(state.case) <= REFILL_FRACTION * self.width and len(self.waiting):
                state = state.joined(self._enter(self.width - len(state.case)))
                self._active = self.programs.take(state.case)
        return [outcome for outcome in self.outcomes if outcome is not None]

    # Entering and leaving the batch

    def _enter(self, count: int | None = None) -> _State:
        """Return the first points of the next waiting cases."""
        count = self.width if count is None else count
        cases, self.waiting = self.waiting[:count], self.waiting[count:]
        programs = self.programs.take(cases)
        self._active = programs
        n, B = self.n, len(cases)
        bounds = np.stack([
            np.concatenate([programs.lower, programs.row_lower], axis=1),
            np.concatenate([programs.upper, programs.row_upper], axis=1),
        ], axis=1)
        finite = np.isfinite(bounds)
        size = np.where(finite, np.maximum(1.0, np.abs(bounds)), 0.0)
        bounds = np.where(finite, bounds, -BOUND_SIGNS * FAR)
        quarter = (bounds[:, 1] - bounds[:, 0])[:, None] / 4
        inner = bounds + BOUND_SIGNS * np.minimum(MIN_BOUND_DISTANCE * size, quarter)
        x = _inside(self.starts[cases], bounds[:, :, :n], finite[:, :, :n])
        f, rows = programs.value(x)
        lin = programs.linearised(x)
        steep = np.abs(lin.gradient).max(axis=1, initial=0.0)
        largest = np.maximum(np.abs(f), steep)
        weight = np.where(steep > MAX_GRADIENT, MAX_GRADIENT / np.maximum(steep, 1e-300), 1.0)
        weight = np.where((largest < 1) & (largest > 1e-100), 1 / np.maximum(largest, 1e-100), weight)
        w = np.concatenate([x, _inside(rows, bounds[:, :, n:], finite[:, :, n:])], axis=1)
        z = finite.astype(float)
        u = self._multipliers(lin, weight, z)
        count_ = np.maximum(finite.sum(axis=(1, 2)), 1).astype(float)
        mu = ((bounds_gap(w, bounds) * z).sum(axis=(1, 2))) / count_
        f = weight * f
        theta = np.abs(rows - w[:, n:]).sum(axis=1)
        share = np.minimum(FIRST_GAP_SHARE, mu * count_ / np.maximum(np.abs(f), 1e-300))
        zeros = np.zeros(B, dtype=int)
        return _State(
            cases, w, u, z, bounds, inner, finite.astype(float), count_, weight, f, rows, mu.copy(),
            np.ones(B, dtype=bool), np.ones(B, dtype=bool), theta, share, 1e3 * np.maximum(mu, 1e-8),
            1e-4 * np.maximum(1.0, theta), np.zeros(B), zeros, zeros.copy(), zeros.copy(),
            _Filters.empty(B), _Filters.empty(B),
        )  # fmt: skip

    def _multipliers(self, lin: LinearisedBatch, weight: Array, z: Array) -> Array:
        """Return least-squares estimates of the row multipliers (B, m), given bound multipliers z (B, 2, w)."""
        n, pairs = self.n, z[:, 1] - z[:, 0]
        u = pairs[:, n:]
        matrix = lin.condensed(np.zeros_like(u), np.ones_like(u), np.zeros(len(u)))
        matrix[:, np.arange(n), np.arange(n)] += 1.0
        right = -(weight[:, None] * lin.gradient + pairs[:, :n] + lin.transposed_times(u))
        dx = np.linalg.solve(matrix, right[..., None])[..., 0]
        u = u + lin.times(dx)
        return np.where(np.abs(u).max(axis=1, initial=0.0)[:, None] > 1e3, 0.0, u)

    def _leave(self, state: _State, ended: dict[int, tuple[str, bool]], violation: Array) -> _State:
        """Record the outcomes of cases that ended (by place in the batch), and return the others."""
        for k, (status, is_solved) in ended.items():
            case, weight = int(state.case[k]), state.weight[k]
            z = (state.z[k, 1] - state.z[k, 0])[: self.n]
            outcome = Outcome(
                state.w[k, : self.n].copy(), state.u[k] / weight, z / weight, float(state.f[k] / weight),
                int(state.iterations[k]), status, is_solved,
                violation=float(violation[k]), seconds=perf_counter() - self.began,
            )  # fmt: skip
            self.outcomes[case] = outcome
            if self.done is not None:
                self.done(case, outcome)
        kept = np.array([k for k in range(len(state.case)) if k not in ended], dtype=int)
        return state.take(kept)

    # One iteration

    def _iterate(self, state: _State) -> _State:
        n, tolerance, programs = self.n, self.settings.tolerance, self._active
        x = np.ascontiguousarray(state.w[:, :n])
        lin = programs.linearised(x)
        point = _Point.of(state, lin, n)
        violation = np.maximum(
            np.maximum(programs.row_lower - state.rows, state.rows - programs.row_upper).max(axis=1, initial=0.0), 0.0
        )
        gap = point.products.sum(axis=(1, 2)) / np.maximum(1.0, np.abs(state.f))
        error = np.maximum(np.maximum(point.error(np.zeros(len(x))), gap), violation)
        is_bad = ~np.isfinite(error)
        is_over = state.iterations >= self.settings.iterations
        ended: dict[int, tuple[str, bool]] = {}
        for k in np.flatnonzero((error <= tolerance) | is_bad | is_over).tolist():
            is_solved = bool(error[k] <= tolerance)
            limit = "stopped at the iteration limit"
            ended[k] = ("optimal" if is_solved else "values are not finite" if is_bad[k] else limit), is_solved
        if ended:
            state = self._leave(state, ended, violation)
            if len(state.case):
                self._active = self.programs.take(state.case)
            return state
        ok, after = self._advance(state, point, lin)
        stuck = ~ok | (after.shorts >= MAX_SHORT_STEPS)
        if stuck.any():
            ended = {}
            for k in np.flatnonzero(stuck).tolist():
                if error[k] <= LOOSER_FACTOR * tolerance:
                    ended[k] = "optimal to a looser tolerance", True
                else:
                    is_feasible = violation[k] <= tolerance
                    ended[k] = ("no better step was found" if is_feasible else "no feasible point was found nearby"), False
            after = self._leave(after, ended, violation)
            if len(after.case):
                self._active = self.programs.take(after.case)
        return after

    def _advance(self, state: _State, point: "_Point", lin: LinearisedBatch) -> tuple[Flags, _State]:
        """Return which cases took a step, and the new state."""
        n, m = self.n, state.u.shape[1]
        is_flat = state.is_flat & (point.theta <= state.first)
        ratio = CLOSE_RESIDUAL * m / np.maximum(point.theta, 1e-300)
        curvature = np.where(is_flat, np.minimum(1.0, ratio), 1.0)
        S = (state.z / point.gaps).sum(axis=1)
        matrix = lin.condensed(curvature[:, None] * state.u, S[:, n:], state.weight)
        matrix[:, np.arange(n), np.arange(n)] += S[:, :n]
        factors, shift, is_factorised = _factorised(matrix, state.shift)
        state = replace(state, is_flat=is_flat, shift=shift)
        equations = _Newton(point, lin, S, factors, matrix)
        state, step, second = self._choose(state, point, equations, curvature)
        ok, state = self._search(state, point, equations, step, second)
        return ok & is_factorised, state

    def _choose(
        self, state: _State, point: "_Point", equations: "_Newton", curvature: Array
    ) -> tuple[_State, Steps, Array]:
        """Choose barrier parameters, and return the steps (B, 1, ...) and the second-order products (B, 2, w)."""
        objective = state.f
        progresses = state.past.accepts(point.theta, objective)
        stops, starts = state.is_free & ~progresses, ~state.is_free & progresses
        least = np.maximum(0.1 * self.settings.tolerance / state.count, 1e-14)
        mu = np.where(stops, np.maximum(0.8 * point.mu, least), state.mu)
        is_free = (state.is_free & ~stops) | starts
        filters, past = state.filter.cleared(stops), state.past.added(point.theta, objective, is_free)
        share = state.share.copy()
        first = equations.first()  # without a barrier, and with a unit one
        primal, dual = point.lengths(Steps(*(change[:, :1] for change in first)), np.ones(len(mu)))
        change = BOUND_SIGNS * first.w[:, 0, None]
        gaps = point.gaps + primal[:, :1, None] * change
        z = state.z + dual[:, :1, None] * first.z[:, 0]
        average = (gaps * z * state.finite).sum(axis=(1, 2)) / state.count
        products = change * first.z[:, 0] * state.finite
        with np.errstate(all="ignore"):
            wanted = np.where(point.mu > 0, (average / np.maximum(point.mu, 1e-300)) ** 3 * point.mu, 0.0)
        third = equations.second(products)
        both = Steps(*(np.concatenate([a, b], axis=1) for a, b in zip(first, third, strict=True)))
        weights = (primal * dual) + (1 - primal * dual) * np.linspace(0.0, 1.0, CORRECTOR_WEIGHTS)
        merit_slopes = point.merit_slopes(both.w)  # of the objective and of the logarithms
        monotone = mu.copy()
        slot = np.zeros(len(mu), dtype=int)
        open_ = np.ones(len(mu), dtype=bool)
        for _ in range(40):
            floor = np.maximum(least, share * np.abs(objective) / state.count)
            adaptive = np.clip(wanted, floor, np.maximum(floor, state.most))
            lower_mu = monotone
            while True:
                can = ~is_free & (point.error(lower_mu) <= 10 * lower_mu) & (lower_mu > floor)
                if not can.any():
                    break
                lower_mu = np.where(can, np.maximum(floor, np.minimum(0.2 * lower_mu, lower_mu**1.5)), lower_mu)
            filters = filters.cleared((lower_mu != monotone) & open_)
            monotone = np.where(open_, lower_mu, monotone)
            new_mu = np.where(is_free, adaptive, monotone)
            mu = np.where(open_, new_mu, mu)
            # (B, weights, 3): the step without a barrier, with a unit one, and of the second-order products
            ways = np.stack([np.ones_like(weights), np.broadcast_to(mu[:, None], weights.shape), weights], axis=2)
            ways[~is_free, :, 2] = 0.0
            lengths = point.lengths(both.combined(ways), np.full(len(mu), MAX_BOUND_FRACTION))
            slot = np.where(open_, np.argmax(lengths[0] * lengths[1], axis=1), slot)
            chosen = ways[np.arange(len(mu)), slot]
            slopes = (chosen[:, None] @ (merit_slopes[0] + mu[:, None] * merit_slopes[1])[..., None])[:, 0, 0]
            settled = (curvature >= 1.0) & (np.abs(slopes) <= SETTLED_DECREASE * share * np.abs(objective))
            open_ &= settled & (floor > least)
            if not open_.any():
                break
            share = np.where(open_, share * GAP_FACTOR, share)
        filters = filters.cleared(is_free)
        step = both.combined(chosen[:, None])
        second = chosen[:, 2, None, None] * products
        return replace(state, mu=mu, is_free=is_free, share=share, filter=filters, past=past), step, second

    def _search(
        self, state: _State, point: "_Point", equations: "_Newton", step: Steps, second: Array
    ) -> tuple[Flags, _State]:
        """Shorten each step until its filter accepts it."""
        n, mu, B = self.n, state.mu, len(state.case)
        nearest = np.maximum(0.99, 1 - mu)
        primal, dual = (length[:, 0] for length in point.lengths(step, nearest))
        dw, du, dz = step.w[:, 0], step.u[:, 0], step.z[:, 0]
        slope = point.slope(dw, mu)
        here = point.theta, point.merit(mu)
        is_still = (np.abs(dw) / (1 + np.abs(state.w))).max(axis=1, initial=0.0) < STILL_STEP
        stills = np.where(is_still, state.stills + 1, 0)
        length, todo, ok = primal.copy(), np.ones(B, dtype=bool), np.zeros(B, dtype=bool)
        new = {name: getattr(state, name).copy() for name in ("w", "u", "z", "f", "rows")}
        final, filters = primal.copy(), state.filter
        is_first = True
        while todo.any():
            at = np.flatnonzero(todo)
            trial = self._trial(state, at, dw[at], du[at], dz[at], length[at], dual[at])
            theta = np.abs(trial["rows"] - trial["w"][:, n:]).sum(axis=1)
            accepted, extends = self._accepts(state, filters, at, trial, theta, here, slope, length)
            accepted |= is_still[at]
            extends &= ~is_still[at]
            flags = np.zeros(B, dtype=bool)
            flags[at[extends]] = True
            filters = filters.added(*here, flags)
            for name, values in trial.items():
                new[name][at[accepted]] = values[accepted]
            final[at[accepted]] = length[at[accepted]]
            ok[at[accepted]] = True
            todo[at[accepted]] = False
            rest = ~accepted
            if is_first and rest.any():
                tried = rest & ~(theta < here[0][at])
                if tried.any():
                    filters = self._correct(state, point, equations, second, at[tried],
                                            {k: v[tried] for k, v in trial.items()}, filters, here, slope, length, new, ok)
                    todo &= ~ok
            is_first = False
            length[todo] /= 2
            given_up = todo & (length <= MIN_STEP_FRACTION * primal)
            if given_up.any():
                at = np.flatnonzero(given_up)
                both = np.minimum(primal, dual)[at]
                trial = self._trial(state, at, dw[at], du[at], dz[at], both, both)
                error = self._error_at(state, at, trial)
                taken = np.isfinite(trial["f"]) & (error <= SOFT_ERROR_FACTOR * point.error(mu)[at])
                for name, values in trial.items():
                    new[name][at[taken]] = values[taken]
                ok[at[taken]] = True
                todo[at] = False
        ok &= stills < MAX_STILL_STEPS
        shorts = np.where(final < SHORT_STEP, state.shorts + 1, 0)
        return ok, replace(state, **new, filter=filters, shorts=shorts, stills=stills, iterations=state.iterations + 1)

    def _trial(
        self, state: _State, at: Indices, dw: Array, du: Array, dz: Array, length: Array, dual: Array
    ) -> dict[str, Array]:
        """Return the points of some cases after their steps."""
        w = np.clip(state.w[at] + length[:, None] * dw, state.inner[at, 0], state.inner[at, 1])
        centre = state.mu[at, None, None] * state.finite[at] / bounds_gap(w, state.bounds[at])
        z = np.clip(state.z[at] + dual[:, None, None] * dz, centre * 1e-10, centre * 1e10)
        programs = self._active if len(at) == len(state.case) else self._active.take(at)
        f, rows = programs.value(np.ascontiguousarray(w[:, : self.n]))
        return {"w": w, "u": state.u[at] + length[:, None] * du, "z": z, "f": state.weight[at] * f, "rows": rows}

    def _accepts(
        self,
        state: _State,
        filters: _Filters,
        at: Indices,
        trial: dict[str, Array],
        theta: Array,
        here: tuple[Array, Array],
        slope: Array,
        length: Array,
    ) -> tuple[Flags, Flags]:
        """Return which trials are accepted, and which of them extend the filter."""
        before, merit_before, slope, length = here[0][at], here[1][at], slope[at], length[at]
        gaps = bounds_gap(trial["w"], state.bounds[at])
        with np.errstate(all="ignore"):
            merit = trial["f"] - state.mu[at] * (np.log(gaps) * state.finite[at]).sum(axis=(1, 2))
            far = theta > np.maximum(MAX_RESIDUAL_GROWTH * before, MAX_MEAN_RESIDUAL * state.u.shape[1])
            is_new = _Filters(filters.pairs[at]).accepts(theta, merit)
            possible = ~far & np.isfinite(merit) & np.isfinite(theta) & is_new
            slack = 1e-13 * np.abs(merit_before)
            descends = (slope < 0) & (length * np.maximum(-slope, 0.0) ** 2.3 > before**1.1)
            armijo = descends & (before <= state.small[at])
            falls = merit <= merit_before + 1e-8 * length * slope + slack
            progresses = (theta <= (1 - 1e-5) * before) | (merit <= merit_before - 1e-8 * before + slack)
        accepted = possible & np.where(armijo, falls, progresses)
        return np.asarray(accepted), np.asarray(accepted & ~armijo)

    def _correct(
        self,
        state: _State,
        point: "_Point",
        equations: "_Newton",
        second: Array,
        at: Indices,
        trial: dict[str, Array],
        filters: _Filters,
        here: tuple[Array, Array],
        slope: Array,
        length: Array,
        new: dict[str, Array],
        ok: Flags,
    ) -> _Filters:
        """Try second-order corrections of the full steps of some cases."""
        n, mu = self.n, state.mu
        off = np.zeros_like(state.u)
        off[:] = state.rows - state.w[:, n:]
        residual = length[at, None] * off[at] + trial["rows"] - trial["w"][:, n:]
        before = np.abs(trial["rows"] - trial["w"][:, n:]).sum(axis=1)
        active = np.ones(len(at), dtype=bool)
        for _ in range(MAX_CORRECTIONS):
            off[at] = residual
            step = equations.corrected(mu, second, off)
            primal, dual = (lengths[:, 0] for lengths in point.lengths(step, np.maximum(0.99, 1 - mu)))
            trial = self._trial(state, at, step.w[at, 0], step.u[at, 0], step.z[at, 0], primal[at], dual[at])
            theta = np.abs(trial["rows"] - trial["w"][:, n:]).sum(axis=1)
            accepted, extends = self._accepts(state, filters, at, trial, theta, here, slope, length)
            accepted &= active
            flags = np.zeros(len(ok), dtype=bool)
            flags[at[accepted & extends]] = True
            filters = filters.added(*here, flags)
            for name, values in trial.items():
                new[name][at[accepted]] = values[accepted]
            ok[at[accepted]] = True
            active &= ~accepted & (theta <= 0.99 * before)
            if not active.any():
                break
            residual = primal[at, None] * residual + trial["rows"] - trial["w"][:, n:]
            before = theta
        return filters

    def _error_at(self, state: _State, at: Indices, trial: dict[str, Array]) -> Array:
        programs = self._active.take(at)
        lin = programs.linearised(np.ascontiguousarray(trial["w"][:, : self.n]))
        return _Point.of(replace(state.take(at), **trial), lin, self.n).error(state.mu[at])


def bounds_gap(w: Array, bounds: Array) -> Array:
    """Return the distances (B, 2, w) of w (B, w) from its bounds."""
    return np.asarray(BOUND_SIGNS * (w[:, None] - bounds))


def _inside(w: Array, bounds: Array, finite: Flags) -> Array:
    """Return w (B, w) moved inside its bounds (B, 2, w)."""
    span = START_PUSH * (bounds[:, 1] - bounds[:, 0])
    push = np.minimum(START_PUSH * np.maximum(1.0, np.abs(bounds)), span[:, None])
    low, high = np.where(finite, bounds + BOUND_SIGNS * push, bounds).swapaxes(0, 1)
    return np.asarray(np.clip(w, low, high))


def _factorised(matrix: Array, last: Array) -> tuple[list[Array], Array, Flags]:
    """Return Cholesky factors, the shift of the diagonal that each needed, and which were found.

    ``matrix`` (B, n, n) is changed: the shift is added.
    """
    factors, shifts, ok = list[Array](), last.copy(), np.ones(len(matrix), dtype=bool)
    for k, own in enumerate(matrix):
        diagonal = np.einsum("ii->i", own)
        before = diagonal.copy()
        regularisation = Regularisation()
        regularisation.last = float(last[k])
        for shift in regularisation.values(float(np.abs(before).max(initial=0.0))):
            if shift:
                diagonal[:] = before + shift
            factor, info = dpotrf(own, lower=1, clean=0)
            if not info and np.isfinite(factor[-1, -1]):
                shifts[k] = shift or last[k]
                factors.append(factor)
                break
        else:
            ok[k] = False
            factors.append(np.eye(len(own)))
    return factors, shifts, ok


@dataclass(frozen=True, eq=False)
class _Point:
    """The points of all cases, with what their step needs."""

    state: _State
    gaps: Array
    stationarity: Array
    gradient: Array
    products: Array
    theta: Array
    mu: Array
    n: int

    @classmethod
    def of(cls, state: _State, lin: LinearisedBatch, n: int) -> "_Point":
        gaps = bounds_gap(state.w, state.bounds)
        gradient = state.weight[:, None] * lin.gradient
        stationarity = np.concatenate([gradient + lin.transposed_times(state.u), -state.u], axis=1)
        products = gaps * state.z * state.finite
        theta = np.abs(state.rows - state.w[:, n:]).sum(axis=1)
        return cls(state, gaps, stationarity, gradient, products, theta, products.sum(axis=(1, 2)) / state.count, n)

    @property
    def off(self) -> Array:
        """The residuals (B, m) of the slack equations."""
        return self.state.rows - self.state.w[:, self.n :]

    def error(self, mu: Array) -> Array:
        """Return the largest scaled optimality residual (B,) of the barrier problems."""
        if not hasattr(self, "_parts"):
            state = self.state
            z = state.z.sum(axis=(1, 2))
            every = np.abs(state.u).sum(axis=1) + z
            by_dual = np.maximum(100.0, every / (state.u.shape[1] + state.count)) / 100
            by_gap = np.maximum(100.0, z / state.count) / 100
            dual = np.abs(self.stationarity - state.z[:, 0] + state.z[:, 1]).max(axis=1, initial=0.0)
            infinite = state.finite == 0
            most = np.where(infinite, -np.inf, self.products).max(axis=(1, 2), initial=-np.inf)
            least = np.where(infinite, np.inf, self.products).min(axis=(1, 2), initial=np.inf)
            off = np.abs(self.off).max(axis=1, initial=0.0)
            object.__setattr__(self, "_parts", (np.maximum(dual / by_dual, off), most, least, by_gap))
        first, most, least, by_gap = self._parts  # type: ignore[attr-defined]
        return np.asarray(np.maximum(first, np.maximum(most - mu, mu - least) / by_gap))

    def lengths(self, step: Steps, nearest: Array) -> tuple[Array, Array]:
        """Return the longest steps (B, k) of the variables and of the bound multipliers."""
        with np.errstate(divide="ignore", invalid="ignore"):
            change = BOUND_SIGNS * step.w[:, :, None] / self.gaps[:, None]
            worst = change.min(axis=(-2, -1), initial=0.0)
            z = self.state.z[:, None]
            other = np.where(z > 0, step.z / np.where(z > 0, z, 1.0), 0.0).min(axis=(-2, -1), initial=0.0)
        both = (np.minimum(1.0, nearest[:, None] / np.maximum(-value, 1e-300)) for value in (worst, other))
        primal, dual = both
        return primal, dual

    def merit(self, mu: Array) -> Array:
        """Return f - mu sum log gaps (B,)."""
        return np.asarray(self.state.f - mu * (np.log(self.gaps) * self.state.finite).sum(axis=(1, 2)))

    def slope(self, dw: Array, mu: Array) -> Array:
        """Return the derivative (B,) of the merit function along dw (B, w)."""
        objective, logs = self.merit_slopes(dw[:, None])
        return np.asarray(objective[:, 0] + mu * logs[:, 0])

    def merit_slopes(self, dw: Array) -> tuple[Array, Array]:
        """Return the derivatives (B, k) along dw (B, k, w) of the objective and of minus the sum of logarithms."""
        finite = self.state.finite
        by_gap = (finite / self.gaps)[:, 1] - (finite / self.gaps)[:, 0]
        return (dw[..., : self.n] @ self.gradient[..., None])[..., 0], (dw @ by_gap[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class _Newton:
    """The factorised Newton equations of all cases."""

    point: _Point
    lin: LinearisedBatch
    S: Array
    factors: Sequence[Array]
    matrix: Array

    def _solved(self, right: Array) -> Array:
        """Return the solutions (B, k, n) for right-hand sides (B, k, n), refined once."""
        def solve(rights: Array) -> Array:
            return np.stack([dpotrs(L, r.T, lower=1)[0].T for L, r in zip(self.factors, rights, strict=True)])

        result = solve(right)
        return np.asarray(result + solve(right - result @ self.matrix))

    def _steps(self, r: Array, off: Array | None, centre: Array, without_z: Array | None) -> Steps:
        """Return the steps (B, k, ...): gradients r (B, k, w), residuals off (B, m), centres (B, k, 2, w)."""
        n, point = self.point.n, self.point
        S = self.S[:, None, n:]
        rows = r[..., n:] if off is None else r[..., n:] + S * off
        dx = self._solved(-r[..., :n] - self.lin.transposed_times(rows))
        ds = self.lin.times(dx)
        if off is not None:
            ds = ds + off
        dw = np.concatenate([dx, ds], axis=-1)
        dz = centre - BOUND_SIGNS * (point.state.z / point.gaps)[:, None] * dw[:, :, None]
        return Steps(dw, S * ds + r[..., n:], dz if without_z is None else dz - without_z)

    def first(self) -> Steps:
        """Return the step without a barrier, and the change that a unit barrier parameter adds."""
        point, state = self.point, self.point.state
        inverse = state.finite / point.gaps
        r = np.stack([point.stationarity, inverse[:, 1] - inverse[:, 0]], axis=1)
        off = np.stack([point.off, np.zeros_like(point.off)], axis=1)
        centre = np.stack([np.zeros_like(inverse), inverse], axis=1)
        z = np.stack([state.z, np.zeros_like(state.z)], axis=1)
        return self._steps(r, off, centre, z)

    def second(self, products: Array) -> Steps:
        """Return the change that second-order products (B, 2, w) of gaps and multipliers add."""
        centre = -products / self.point.gaps
        return self._steps((centre[:, 1] - centre[:, 0])[:, None], None, centre[:, None], None)

    def corrected(self, mu: Array, products: Array, off: Array) -> Steps:
        """Return the steps with other residuals (B, m) of the slack equations."""
        point, state = self.point, self.point.state
        centre = (mu[:, None, None] * state.finite - products) / point.gaps
        r = point.stationarity - (centre[:, 0] - centre[:, 1])
        return self._steps(r[:, None], off[:, None], centre[:, None], state.z[:, None])
