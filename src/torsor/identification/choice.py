"""Stepwise selection of friction models by an information criterion.

Terms are added and removed one by one while the criterion decreases. Coordinate j has n_j effective samples (samples
over their correlation time), n in total. With k unknowns,

    criterion = sum of n_j log(S_j / n_j) + penalty,       S_j: sum of squared residuals
    bic   penalty = k log n                                (Schwarz 1978)
    aicc  penalty = 2 k + 2 k (k + 1) / (n - k - 1)        (Hurvich and Tsai 1989)

Everything is computed from G_j = [Y C tau]^T [Y C tau] of each coordinate, with the columns C of all candidates. Shape
parameters, such as the Stribeck velocity, are searched in one dimension: first on a grid, then by golden section. All
other unknowns are solved exactly (variable projection, Golub and Pereyra 1973).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.drives import (
    COUPLING_LAWS,
    LAWS,
    OFFERED,
    TEMPERATURE_LAWS,
    Motion,
    Term,
    spread,
    tried,
)
from torsor.identification.estimation import BLOCK_SIZE, Equations, Fit, Method, correlation_time, estimate
from torsor.identification.model import Filter, Model

CRITERIA = ("bic", "aicc")
GOLDEN = (np.sqrt(5) - 1) / 2
GOLDEN_STEPS = 22  # golden-section steps, which reduce the interval to 1/40,000
MIN_NOISE_RATIO = 1e-6  # fraction of the forces below which residuals are rounding errors
MIN_INDEPENDENT_PART = 1e-8  # minimum fraction of a squared column norm that is independent of the other columns

Columns = Callable[[Sequence[Term]], Array]
"""Map from terms to their columns phi (N, k) at the samples of the equations."""


def choose(
    equations: Equations, fitted: Fit, columns: Columns, options: Sequence[Term], criterion: str
) -> tuple[list[Term], dict[str, dict[str, float]]]:
    """Return the terms among ``options`` that lower the criterion, and its changes {drive: {model: change}}.

    For a chosen friction model, the change is the rise of the criterion if the model is removed. For any other model,
    it is the rise if the model is added. ``equations`` contain the columns that are always present, and ``fitted`` is
    their solution. Several options may be the same model with different shapes, of which at most one is chosen.
    """
    search = _Search.of(equations, fitted, columns, options, criterion)
    chosen: list[int] = []
    value = search.value(chosen)
    while True:
        taken = {options[k].name for k in chosen}
        trials = [[*chosen, k] for k, term in enumerate(options) if term.name not in taken]
        trials += [[each for each in chosen if each != k] for k in chosen]
        values = [search.value(trial) for trial in trials]
        best = int(np.argmin(values)) if values else 0
        if not values or not values[best] < value:
            break
        chosen = trials[best]
        search = search.reweighted(chosen)
        value = search.value(chosen)
    changes: dict[str, dict[str, float]] = {}
    for k, term in enumerate(options):
        if k not in chosen and term.name in taken:
            continue
        other = [each for each in chosen if each != k] if k in chosen else [*chosen, k]
        change = search.value(other) - value
        drive_changes = changes.setdefault(term.drive, {})
        drive_changes[term.law] = min(change, drive_changes.get(term.law, np.inf))
    return [options[k] for k in chosen], changes


def shaped(equations: Equations, fitted: Fit, columns: Columns, term: Term, shapes: Sequence[float]) -> Term:
    """Return a term with the shape that minimises the squared residuals.

    The best of ``shapes`` is refined by golden section. ``equations`` contain all other columns.
    """
    search = _Search.of(equations, fitted, columns, [], "bic")

    def squares(shape: float) -> float:
        tried = replace(term, shape=shape)
        return search.squares_with(equations, spread(columns([tried]), [tried])[..., 0])

    at = int(np.argmin([squares(shape) for shape in shapes]))
    low, high = shapes[max(at - 1, 0)], shapes[min(at + 1, len(shapes) - 1)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    sizes = squares(left), squares(right)
    for _ in range(GOLDEN_STEPS):
        if sizes[0] < sizes[1]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            sizes = squares(left), sizes[0]
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            sizes = sizes[1], squares(right)
    return replace(term, shape=float((low + high) / 2))


@dataclass(frozen=True, eq=False)
class _Search:
    """Normal matrices ``G`` (n, b + m + 1, b + m + 1) of b columns, m options and tau, with the ``noise`` (n,).

    ``counts`` (n,) are the effective numbers of ``samples`` (n,).
    """

    G: Array
    size: int
    noise: Array
    samples: Array
    counts: Array
    criterion: str

    @classmethod
    def of(
        cls, equations: Equations, fitted: Fit, columns: Columns, options: Sequence[Term], criterion: str
    ) -> "_Search":
        n, b, m = equations.tau.shape[1], equations.Y.shape[-1], len(options)
        G = np.zeros((n, b + m + 1, b + m + 1))
        phi = columns(options)
        directions = np.array([term.direction for term in options]).reshape(m, n)
        for j in range(n):
            present = np.flatnonzero(directions[:, j])
            at = np.concatenate([np.arange(b), b + present, [b + m]])
            for k in range(0, len(phi), BLOCK_SIZE):
                block = slice(k, k + BLOCK_SIZE)
                extra = phi[block][:, present] * directions[present, j]
                parts = [equations.Y[block, j], extra, equations.tau[block, j, None]]
                rows = np.concatenate(parts, axis=1) * equations.weights[block, j, None]
                G[j][np.ix_(at, at)] += rows.T @ rows
        residuals = equations.residuals(fitted.values)
        # Samples that are correlated over m lags count as one in 1 + m.
        together = [1 + correlation_time(residual[:, None], equations.parts) for residual in residuals.T]
        samples = np.count_nonzero(equations.weights, axis=0)
        least = MIN_NOISE_RATIO * np.sqrt(G[:, -1, -1].max() / np.maximum(samples, 1))
        return cls(G, b, np.maximum(fitted.noise, least), samples, samples / np.array(together), criterion)

    def _solved(self, chosen: Sequence[int]) -> Array | None:
        """Return the squared residuals (n,) with some options, or None if the columns are linearly dependent."""
        at = [*range(self.size), *(self.size + k for k in chosen), -1]
        G = self.G[:, at][:, :, at]
        x = _solution(np.einsum("jab,j->ab", G, 1 / self.noise**2))
        if x is None:
            return None
        whole = np.append(x, -1.0)
        return np.asarray(np.maximum(np.einsum("a,jab,b->j", whole, G, whole), 1e-300))

    def value(self, chosen: Sequence[int]) -> float:
        """Return the criterion with some options; infinite if their columns are linearly dependent."""
        squares = self._solved(chosen)
        if squares is None:
            return np.inf
        k, n, some = self.size + len(chosen), float(self.counts.sum()), self.counts > 0
        likelihood = float(np.sum(self.counts[some] * np.log(squares[some] / self.counts[some])))
        if self.criterion == "bic":
            return float(likelihood + k * np.log(n))
        return likelihood + 2 * k + 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else np.inf

    def reweighted(self, chosen: Sequence[int]) -> "_Search":
        """Return the search with the noise re-estimated from the residuals of some options."""
        squares = self._solved(chosen)
        assert squares is not None
        least = MIN_NOISE_RATIO**2 * self.G[:, -1, -1].max()
        return replace(self, noise=np.sqrt(np.maximum(squares, least) / np.maximum(self.samples, 1)))

    def squares_with(self, equations: Equations, column: Array) -> float:
        """Return the weighted squared residuals with one more column (N, n)."""
        scaled = column * (equations.weights / self.noise) ** 2
        A = np.einsum("jab,j->ab", self.G, 1 / self.noise**2)
        across = np.append(np.einsum("tj,tjb->b", scaled, equations.Y, optimize=True), np.sum(scaled * equations.tau))
        whole = np.insert(np.insert(A, self.size, across, axis=0), self.size, 0.0, axis=1)
        whole[:, self.size] = np.insert(across, self.size, np.sum(scaled * column))
        x = _solution(whole)
        if x is None:
            return np.inf
        rest = equations.tau - equations.Y @ x[:-1] - column * x[-1]
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


LOAD_ITERATIONS = 4  # alternating fits of the transmitted forces and of the friction that depends on them


@dataclass(frozen=True, eq=False)
class Wanted:
    """Requested friction models: the direction (nv,) of each drive, the ``motors``, and the ``laws`` of each drive.

    The ``criterion`` selects the models of the drives in ``chosen``. Temperature models need ``warm``.
    """

    directions: Mapping[str, Array]
    motors: tuple[str, ...]
    laws: Mapping[str, tuple[str, ...]]
    chosen: tuple[str, ...]
    criterion: str
    warm: bool

    def term(self, drive: str, law: str) -> Term:
        """Return a term of a drive."""
        return Term(drive, law, tuple(self.directions[drive].tolist()))


def extended(
    model: Model, reference: Model | None, equations: Equations, through: Filter, wanted: Wanted, method: Method
) -> tuple[Equations, tuple[Term, ...], dict[str, dict[str, float]]]:
    """Return the equations with all terms, the terms, and the criterion changes of the drives (see ``choose``).

    ``reference`` is the model along the instruments' motion, if there are instruments.
    """
    terms = [wanted.term(motor, law) for motor in wanted.motors for law in COUPLING_LAWS]
    fixed = [wanted.term(drive, law) for drive, laws in wanted.laws.items() for law in laws]
    if not terms and not fixed and not wanted.chosen:
        return equations, (), {}
    builder = _Builder(model, reference, equations, through)
    plain = Method(method.robust, "white")
    builder = builder.at(estimate(builder.whole(terms), plain))
    for term in fixed:
        terms = builder.added(terms, term)
    changes: dict[str, dict[str, float]] = {}
    if wanted.chosen:
        laws = [law for law in OFFERED if wanted.warm or law not in TEMPERATURE_LAWS]
        offered = [wanted.term(drive, law) for drive in wanted.chosen for law in laws]
        options = [each for term in offered for each in tried(term, builder.motion)]
        whole = builder.whole(terms)
        selected, changes = choose(whole, estimate(whole, plain), builder.columns, options, wanted.criterion)
        terms += selected
        for term in selected:
            if LAWS[term.law].shapes:
                terms = builder.added([each for each in terms if each is not term], term)
    if any(term.law == "load" for term in terms):
        for _ in range(LOAD_ITERATIONS):
            builder = builder.at(estimate(builder.whole(terms), plain))
    return builder.whole(terms), tuple(terms), changes


@dataclass(frozen=True, eq=False)
class _Builder:
    """Builder of term columns; the load is that of base parameters ``values`` (b,), initially of the given robot."""

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
        """Return the equations with the columns of the terms."""
        if not terms:
            return self.equations
        equations, Z = self.equations, self.equations.Z
        if Z is not None and self.reference is not None:
            instruments = self.through(self._motion(self.reference).columns(terms))
            Z = np.concatenate([Z, spread(instruments, terms)], axis=-1)
        Y = np.concatenate([equations.Y, spread(self.columns(terms), terms)], axis=-1)
        return replace(equations, Y=Y, Z=Z, names=(*equations.names, *(term.name for term in terms)))

    def added(self, terms: Sequence[Term], term: Term) -> list[Term]:
        """Return the terms and one additional term with its best shape."""
        if not LAWS[term.law].shapes:
            return [*terms, term]
        whole = self.whole(terms)
        shapes = [candidate.shape for candidate in tried(term, self.motion)]
        return [*terms, shaped(whole, estimate(whole, Method(noise="white")), self.columns, term, shapes)]
