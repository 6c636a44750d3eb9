"""Stepwise selection of friction models by cross-validation or an information criterion.

Terms are added and removed one by one while the criterion decreases. Coordinate j has n_j effective samples (number of
samples divided by their correlation time), n in total. With k unknowns,

    criterion = sum of n_j log(S_j / n_j) + penalty,       S_j: sum of squared residuals
    bic   penalty = k log n                                (Schwarz 1978)
    aicc  penalty = 2 k + 2 k (k + 1) / (n - k - 1)        (Hurvich and Tsai 1989)
    cv    two criteria: one with penalty = k log n + 2 c log m, with c terms chosen among m (extended bic, Chen and Chen
          2008), and one without a penalty, where S_j are the residuals of ten parts of the motion, each predicted with
          parameters from the other nine (Stone 1974). A term is added if both criteria decrease, and removed if either
          decreases

Prediction of unused data determines which terms are worth adding. The penalty excludes terms that reduce the prediction
error by chance, as many of a hundred candidates do: without 2 c log m, one in seven fits of a robot with only Coulomb
and viscous friction contains an additional term.

All quantities are computed from G_j = [Y C tau]^T [Y C tau] of each coordinate, with the columns C of all candidates.
Shape parameters, such as the Stribeck velocity, are searched in one dimension: first on a grid, then by Brent's method.
All other unknowns are solved exactly (variable projection, Golub and Pereyra 1973).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from torsor.base.arrays import Array
from torsor.identification.drives import COUPLING_LAWS, LAWS, Motion, Term, spread, tried
from torsor.identification.estimation import (
    BLOCK_SIZE,
    Equations,
    Fit,
    Method,
    correlation_time,
    estimate,
    without_outliers,
)
from torsor.identification.model import Filter, Model

CRITERIA = ("cv", "bic", "aicc")
FOLDS = 10  # number of motion parts in cross-validation
MAX_TRIALS = 24  # number of terms tried in each step: those that reduce the squared residuals most
MAX_STEPS = 100  # maximum number of terms added and removed, because two criteria might alternate
SHAPE_TOLERANCE = 1 / 40_000  # accuracy of a shape, as a fraction of the search interval
MIN_NOISE_RATIO = 1e-6  # fraction of the forces below which residuals are rounding errors
MIN_LEFT_PART = 1e-6  # fraction of the squared forces below which residuals are not computed as a difference
MIN_INDEPENDENT_PART = 1e-8  # minimum fraction of a squared column norm that is independent of the other columns

Columns = Callable[[Sequence[Term]], Array]
"""Map from terms to their columns phi (N, k) at the samples of the equations."""


def choose(
    equations: Equations, fitted: Fit, columns: Columns, options: Sequence[Term], criterion: str
) -> tuple[list[Term], dict[str, dict[str, float]]]:
    """Return the terms among ``options`` that reduce the criterion, and its changes {drive: {model: change}}.

    For a selected friction model, the change is the increase in the criterion if the model is removed. For any other
    model, it is the increase if the model is added. ``equations`` contains the columns that are always present, and
    ``fitted`` is their solution. Options may include one model with several shapes, of which at most one is selected.
    """
    residuals = equations.residuals(fitted.values)
    # If samples are correlated over m lags, the effective number is smaller by the factor 1 + m.
    lags = np.array([correlation_time(residual[:, None], equations.parts) for residual in residuals.T])
    search = _Search.of(equations, fitted.noise, lags, columns, options, criterion)
    chosen: list[int] = []
    for _ in range(MAX_STEPS):
        taken = {options[k].name for k in chosen}
        gains = search.gains(chosen)
        likely = sorted((k for k, term in enumerate(options) if term.name not in taken), key=lambda k: -gains[k])
        trials = [[*chosen, k] for k in likely[:MAX_TRIALS]]
        trials += [[each for each in chosen if each != k] for k in chosen]
        better = search.first_better(chosen, trials)
        if better is None:
            break
        chosen = better
        search = search.reweighted(chosen)
    changes: dict[str, dict[str, float]] = {}
    gains = search.gains(chosen)
    best = {term.name: k for k, term in sorted(enumerate(options), key=lambda each: gains[each[0]])}
    for k, term in enumerate(options):
        if k not in chosen and (term.name in taken or best[term.name] != k):
            continue
        other = [each for each in chosen if each != k] if k in chosen else [*chosen, k]
        change = search.change(chosen, other)
        drive_changes = changes.setdefault(term.drive, {})
        drive_changes[term.law] = min(change, drive_changes.get(term.law, np.inf))
    return [options[k] for k in chosen], changes


def shaped(equations: Equations, noise: Array, columns: Columns, term: Term, shapes: Sequence[float]) -> Term:
    """Return a term with the shape that minimises the squared residuals relative to the ``noise`` (n,).

    The best of ``shapes`` is refined by Brent's method. ``equations`` contains all other columns.
    """
    search = _Search.of(equations, noise, np.zeros_like(noise), columns, [], "bic")

    def squares(shape: float) -> float:
        return search.squares_with(equations, columns([replace(term, shape=shape)])[..., 0], np.array(term.direction))

    at = int(np.argmin([squares(shape) for shape in shapes]))
    low, high = shapes[max(at - 1, 0)], shapes[min(at + 1, len(shapes) - 1)]
    options = {"xatol": SHAPE_TOLERANCE * (high - low)}
    return replace(term, shape=float(minimize_scalar(squares, bounds=(low, high), options=options).x))


@dataclass(frozen=True, eq=False)
class _Search:
    """Normal matrices ``G`` (n, b + m + 1, b + m + 1) of b columns, m options and tau, with the ``noise`` (n,).

    ``counts`` (n,) are the effective numbers of ``samples`` (n,). ``folds`` are the contributions to G of each part of
    the motion (one part without cross-validation): for each coordinate, an array (F, s, s) over its columns. ``local``
    (n, b + m + 1) contains the indices of these columns, and -1 for the others.
    """

    G: Array
    size: int
    noise: Array
    samples: Array
    counts: Array
    criterion: str
    folds: tuple[Array, ...]
    local: NDArray[np.intp]

    @classmethod
    def of(
        cls, equations: Equations, noise: Array, lags: Array, columns: Columns, options: Sequence[Term], criterion: str
    ) -> "_Search":
        n, b, m = equations.tau.shape[1], equations.Y.shape[-1], len(options)
        phi = columns(options)
        G, folds, local = np.zeros((n, b + m + 1, b + m + 1)), [], np.full((n, b + m + 1), -1)
        ends = np.linspace(0, len(phi), (FOLDS if criterion == "cv" else 1) + 1).astype(int)
        directions = np.array([term.direction for term in options]).reshape(m, n)
        for j in range(n):
            present = np.flatnonzero(directions[:, j])
            at = np.concatenate([np.arange(b), b + present, [b + m]])
            local[j, at] = np.arange(len(at))
            folds.append(np.zeros((len(ends) - 1, len(at), len(at))))
            for fold, first, last in zip(folds[j], ends[:-1], ends[1:], strict=True):
                for k in range(first, last, BLOCK_SIZE):
                    block = slice(k, min(k + BLOCK_SIZE, last))
                    extra = phi[block][:, present] * directions[present, j]
                    parts = [equations.Y[block, j], extra, equations.tau[block, j, None]]
                    rows = np.concatenate(parts, axis=1) * equations.weights[block, j, None]
                    fold += rows.T @ rows
            G[j][np.ix_(at, at)] = folds[j].sum(axis=0)
        samples = np.count_nonzero(equations.weights, axis=0)
        least = MIN_NOISE_RATIO * np.sqrt(G[:, -1, -1].max() / np.maximum(samples, 1))
        return cls(G, b, np.maximum(noise, least), samples, samples / (1 + lags), criterion, tuple(folds), local)

    @property
    def options(self) -> int:
        """The number of options."""
        return len(self.G[0]) - self.size - 1

    def _solved(self, chosen: Sequence[int]) -> Array | None:
        """Return the squared residuals (n,) with the options ``chosen``, or None if columns are linearly dependent."""
        at = [*range(self.size), *(self.size + k for k in chosen), -1]
        x = _solution(self._weighted[np.ix_(at, at)])
        if x is None:
            return None
        whole, G = np.append(x, -1.0), self.G[:, at][:, :, at]
        return np.asarray(np.maximum(np.einsum("a,jab,b->j", whole, G, whole), 1e-300))

    def value(self, chosen: Sequence[int]) -> float:
        """Return the criterion with the options ``chosen``; infinite if their columns are linearly dependent."""
        squares = self._solved(chosen)
        if squares is None:
            return np.inf
        k, n, likelihood = self.size + len(chosen), float(self.counts.sum()), self._likelihood(squares)
        if self.criterion != "aicc":
            searched = 2 * len(chosen) * np.log(self.options) if self.criterion == "cv" else 0.0
            return float(likelihood + k * np.log(n) + searched)
        return likelihood + 2 * k + 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else np.inf

    def _likelihood(self, squares: Array) -> float:
        """Return the sum of n_j log(S_j / n_j), which is twice the negative log-likelihood."""
        some, least = self.counts > 0, MIN_NOISE_RATIO**2 * self.G[:, -1, -1].max()
        return float(np.sum(self.counts[some] * np.log(np.maximum(squares, least)[some] / self.counts[some])))

    def _predicted(self, chosen: Sequence[int], folds: Sequence[int]) -> float:
        """Return ``_likelihood`` of folds with parameters from the others; infinite if these are underdetermined."""
        at = [*range(self.size), *(self.size + k for k in chosen), -1]
        whole, squares = self.G[:, at][:, :, at], np.zeros(len(self.G))
        for k in folds:
            fold = np.zeros_like(whole)
            for j, own in enumerate(self.folds):
                present = np.flatnonzero(self.local[j, at] >= 0)
                columns = self.local[j, at][present]
                fold[j][np.ix_(present, present)] = own[k][np.ix_(columns, columns)]
            x = _solution(np.einsum("jab,j->ab", whole - fold, 1 / self.noise**2))
            if x is None:
                return np.inf
            row = np.append(x, -1.0)
            squares += np.einsum("a,jab,b->j", row, fold, row)
        return self._likelihood(squares) if folds else np.inf

    @cached_property
    def _usable(self) -> list[int]:
        """The folds without which the parameters remain determined."""
        return [k for k in range(len(self.folds[0])) if np.isfinite(self._predicted((), (k,)))]

    @cached_property
    def _weighted(self) -> Array:
        return np.asarray(np.einsum("jab,j->ab", self.G, 1 / self.noise**2))

    def gains(self, chosen: Sequence[int]) -> Array:
        """Return by how much each option (m,), added to the chosen ones, reduces the weighted squared residuals."""
        A, at = self._weighted, [*range(self.size), *(self.size + k for k in chosen)]
        options = slice(self.size, len(A) - 1)
        lengths = np.sqrt(np.maximum(np.diagonal(A)[at], 1e-300))
        N = A[np.ix_(at, at)] / np.outer(lengths, lengths) + 1e-14 * np.eye(len(at))
        across = A[at, options] / lengths[:, None]
        back = np.linalg.solve(N, np.column_stack([across, A[at, -1] / lengths]))
        own = np.diagonal(A)[options]
        free = own - np.sum(across * back[:, :-1], axis=0)
        slopes = A[options, -1] - across.T @ back[:, -1]
        return np.where(free > MIN_INDEPENDENT_PART * own, slopes**2 / np.maximum(free, 1e-300), 0.0)

    def change(self, chosen: Sequence[int], other: Sequence[int]) -> float:
        """Return the change in the criterion from ``chosen`` to ``other`` options.

        With cross-validation, it is the larger change of both criteria if an option is added, and the smaller one if an
        option is removed.
        """
        change, added = self.value(other) - self.value(chosen), len(other) > len(chosen)
        if self.criterion != "cv" or (change < 0) != added:
            return change
        before, after = (self._predicted(each, self._usable) for each in (chosen, other))
        predicted = after - before if np.isfinite(after) and np.isfinite(before) else np.inf if added else -np.inf
        return max(change, predicted) if added else min(change, predicted)

    def first_better(self, chosen: Sequence[int], trials: Sequence[list[int]]) -> list[int] | None:
        """Return the trial with the lowest criterion, or None if no trial reduces it."""
        value, values = self.value(chosen), [self.value(trial) for trial in trials]
        for own, trial in sorted(zip(values, trials, strict=True)):
            if (own < value or len(trial) <= len(chosen)) and self.change(chosen, trial) < 0:
                return trial
        return None

    def reweighted(self, chosen: Sequence[int]) -> "_Search":
        """Return the search with the noise re-estimated from the residuals with the options ``chosen``."""
        squares = self._solved(chosen)
        assert squares is not None
        least = MIN_NOISE_RATIO**2 * self.G[:, -1, -1].max()
        return replace(self, noise=np.sqrt(np.maximum(squares, least) / np.maximum(self.samples, 1)))

    def squares_with(self, equations: Equations, column: Array, direction: Array) -> float:
        """Return the weighted squared residuals with an additional column phi (N,) along a direction (n,)."""
        A = self._weighted
        across, own = np.zeros(self.size + 1), 0.0
        for j in np.flatnonzero(direction).tolist():  # coordinates on which it acts
            scaled = column * direction[j] * (equations.weights[:, j] / self.noise[j]) ** 2
            across += np.append(scaled @ equations.Y[:, j], scaled @ equations.tau[:, j])
            own += float(scaled @ column) * direction[j]
        whole = np.insert(np.insert(A, self.size, across, axis=0), self.size, 0.0, axis=1)
        whole[:, self.size] = np.insert(across, self.size, own)
        x = _solution(whole)
        if x is None:
            return np.inf
        left = float(whole[-1, -1] - whole[-1, :-1] @ x)
        if left > MIN_LEFT_PART * whole[-1, -1]:
            return left
        rest = equations.tau - equations.Y @ x[:-1] - x[-1] * column[:, None] * direction
        return float(np.sum((rest * equations.weights / self.noise) ** 2))


def _solution(A: Array) -> Array | None:
    """Return x (b,) of the normal equations in A (b + 1, b + 1), or None if columns are linearly dependent."""
    lengths = np.sqrt(np.diagonal(A)[:-1])
    if not (lengths > 0).all():
        return None
    N = A[:-1, :-1] / np.outer(lengths, lengths)
    try:
        L = np.linalg.cholesky(N)
    except np.linalg.LinAlgError:
        return None
    if np.diagonal(L).min() ** 2 < MIN_INDEPENDENT_PART:
        return None
    return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, A[:-1, -1] / lengths)) / lengths)


LOAD_ITERATIONS = 4  # number of alternating fits of the transmitted forces and of load-dependent friction


@dataclass(frozen=True, eq=False)
class Wanted:
    """Requested friction models: the direction (nv,) of each drive, the ``motors``, and the ``laws`` of each drive.

    For the drives in ``chosen``, the ``criterion`` selects among the models ``offered``.
    """

    directions: Mapping[str, Array]
    motors: tuple[str, ...]
    laws: Mapping[str, tuple[str, ...]]
    chosen: tuple[str, ...]
    criterion: str
    offered: tuple[str, ...]

    def term(self, drive: str, law: str) -> Term:
        """Return the friction term of a drive."""
        return Term(drive, law, tuple(self.directions[drive].tolist()))


def extended(
    model: Model, reference: Model | None, equations: Equations, through: Filter, wanted: Wanted, method: Method
) -> tuple[Equations, tuple[Term, ...], dict[str, dict[str, float]]]:
    """Return the equations with all terms, the terms, and the criterion changes by drive (see ``choose``).

    ``reference`` is the model along the motion of the instruments, if there are any.
    """
    terms = [wanted.term(motor, law) for motor in wanted.motors for law in COUPLING_LAWS]
    fixed = [wanted.term(drive, law) for drive, laws in wanted.laws.items() for law in laws]
    if not terms and not fixed and not wanted.chosen:
        return equations, (), {}
    builder = _Builder(model, reference, equations, through)
    plain = Method(method.robust, "ignored")
    fitted = estimate(builder.whole(terms), plain)
    builder = builder.at(fitted)
    for term in fixed:
        terms = builder.added(terms, term)
    changes: dict[str, dict[str, float]] = {}
    if wanted.chosen:
        offered = [wanted.term(drive, law) for drive in wanted.chosen for law in wanted.offered]
        options = [each for term in offered for each in tried(term, builder.motion)]
        whole = builder.whole(terms)
        fitted = estimate(whole, plain) if fixed else fitted
        counted = without_outliers(whole, fitted, method)
        selected, changes = choose(counted, fitted, builder.columns, options, wanted.criterion)
        terms += selected
        shaped_terms = [term for term in selected if LAWS[term.law].shapes]
        fitted = estimate(builder.whole(terms), plain) if shaped_terms else fitted
        for term in shaped_terms:
            terms = builder.added([each for each in terms if each is not term], term, fitted.noise)
    if any(term.law == "load" for term in terms):
        for _ in range(LOAD_ITERATIONS):
            builder = builder.at(estimate(builder.whole(terms), plain))
    return builder.whole(terms), tuple(terms), changes


@dataclass(frozen=True, eq=False)
class _Builder:
    """Builder of term columns; the load is computed with the base parameters ``values`` (b,)."""

    model: Model
    reference: Model | None
    equations: Equations
    through: Filter
    values: Array | None = None

    def at(self, found: Fit) -> "_Builder":
        return replace(self, values=found.values[: len(self.model.base)])

    def _motion(self, model: Model) -> Motion:
        return model.motion(model.base.values if self.values is None else self.values)

    @cached_property
    def motion(self) -> Motion:
        return self._motion(self.model)

    def columns(self, terms: Sequence[Term]) -> Array:
        return self.through(self.motion.columns(terms))

    def whole(self, terms: Sequence[Term]) -> Equations:
        """Return the equations, including the columns of the terms."""
        if not terms:
            return self.equations
        equations, Z = self.equations, self.equations.Z
        if Z is not None and self.reference is not None:
            instruments = self.through(self._motion(self.reference).columns(terms))
            Z = np.concatenate([Z, spread(instruments, terms)], axis=-1)
        Y = np.concatenate([equations.Y, spread(self.columns(terms), terms)], axis=-1)
        return replace(equations, Y=Y, Z=Z, names=(*equations.names, *(term.name for term in terms)))

    def added(self, terms: Sequence[Term], term: Term, noise: Array | None = None) -> list[Term]:
        """Return the terms and an additional term with its best shape for the coordinate ``noise`` (n,)."""
        if not LAWS[term.law].shapes:
            return [*terms, term]
        whole = self.whole(terms)
        shapes = [candidate.shape for candidate in tried(term, self.motion)]
        noise = estimate(whole, Method(noise="ignored")).noise if noise is None else noise
        return [*terms, shaped(whole, noise, self.columns, term, shapes)]
