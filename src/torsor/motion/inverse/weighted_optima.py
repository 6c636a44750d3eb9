"""Optima of a program with variable objective weights, and their sensitivities to the weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.checks import several, table
from torsor.base.errors import ModelError
from torsor.motion.results.solution import Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node_kernels import grouped
from torsor.motion.transcription.program import Program
from torsor.motion.transcription.variables import Linear
from torsor.optimisation import SOLVERS, Iteration, Outcome, Settings, StoppedError, Watch
from torsor.optimisation.optimum import Optimum, estimated, polished


class WeightedProgram:
    """The program that minimises sum_k w_k f_k(x) under the constraints of a problem, with the same row order.

    ``groups`` contains the terms of each f_k with their weights. ``weights`` (k,) may be replaced at any time.
    """

    def __init__(self, problem: ProblemStatement, groups: Mapping[str, Sequence[Cost]], weights: Array):
        whole = problem.program
        self.problem, self.weights = problem, weights
        constrained = [batch for batch in whole.batches if batch.kernels.m]
        batches = [replace(batch, kernels=problem.kernels_of(batch.kernels.constraints)) for batch in constrained]
        self._rows = replace(whole, batches=tuple(batches), rates=())
        self._costs = [self._cost(group) for group in groups.values()]
        self.n, self.m = whole.n, whole.m
        self.lower, self.upper = whole.lower, whole.upper
        self.row_lower, self.row_upper, self.scales = whole.row_lower, whole.row_upper, whole.scales
        self.structure = self._rows.structure

    def _cost(self, terms: Sequence[Cost]) -> Program:
        """Return the program of the objective ``terms``; its only rows are those of rates."""
        problem, layout = self.problem, self._rows.layout
        batches = [
            Batch(problem.kernels_of(group), layout, phase, np.array(moments), np.array(weights))
            for (phase, moments, weights, _), group in grouped(problem.stages, terms, problem.model).items()
        ]
        rates = tuple(problem.rates_of(term, self._rows.batches) for term in terms if isinstance(term, Rates))
        batches += list({id(rate.batch): rate.batch for rate in rates}.values())
        return replace(self._rows, batches=tuple(batches), linear=Linear((), layout), rates=rates)

    @cached_property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the upper triangle of the Hessian, in column-major order."""
        pattern = np.zeros((self.n, self.n), dtype=bool)
        for cost in (self._rows, *self._costs):
            pattern[cost.hessian_structure] = True
        columns, rows = np.nonzero(pattern.T)
        return rows, columns

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective and the rows (m,)."""
        return float(self.weights @ self.parts(x)), self._rows.value(x)[1]

    def parts(self, x: Array) -> Array:
        """Return the values f_k (k,)."""
        return np.array([cost.value(x)[0] for cost in self._costs])

    def gradients(self, x: Array) -> Array:
        """Return the gradients (n, k) of f_k."""
        return np.stack([cost.jacobian(x)[0] for cost in self._costs], axis=1)

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of the objective and the entries of the row Jacobian."""
        return np.asarray(self.gradients(x) @ self.weights), self._rows.jacobian(x)[1]

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight . objective + multipliers . rows."""
        result = self._rows.hessian(x, multipliers, 0.0)
        for factor, cost in zip(weight * self.weights, self._costs, strict=True):
            if factor:
                result = result + cost.hessian(x, np.zeros(cost.m), factor)
        return result


def cost_groups(problem: ProblemStatement, groups: Mapping[str, Sequence[str]] | None) -> dict[str, list[Cost]]:
    """Return the objective terms that share a weight, by weight name.

    ``groups`` is {weight name: titles of its terms}. By default, each term has a separate weight. ModelError is raised
    if a term is not in exactly one group, or if the problem has fewer than two weights.
    """
    where, titles = f"{problem.name}: weights", [cost.title for cost in problem.costs]
    for title in titles:
        if titles.count(title) > 1:
            fix = "give each term a different name (name=...)"
            raise ModelError(f"two objective terms are named {title!r}", value=title, where=where, fix=fix)
    group_titles = {title: [title] for title in titles} if groups is None else table(groups, where, "groups")
    result, left = dict[str, list[Cost]](), dict(zip(titles, problem.costs, strict=True))
    for name, members in group_titles.items():
        result[name] = []
        for title in several(members):
            if title not in left:
                allowed = f"each of {', '.join(titles)} once"
                raise ModelError(f"group {name!r} contains {title!r}", where=where, allowed=allowed)
            result[name].append(left.pop(title))
        if not result[name] or not all(term.weight > 0 for term in result[name]):
            allowed = "at least one term, each with a positive weight"
            empty = f"group {name!r} is empty or has a term with weight 0"
            raise ModelError(empty, value=name, where=where, allowed=allowed)
    if left:
        fix = f"add {next(iter(left))!r} to a group"
        raise ModelError("omit a term of the objective", argument="groups", where=where, fix=fix)
    if len(result) < 2:
        fix = "give the objective at least two terms, because only the ratios of weights matter"
        raise ModelError(f"there is {len(result)} weight", where=where, fix=fix)
    return result


SOLVER_TOLERANCE = 1e-7  # tolerance of the solver; Newton steps then refine the optimum to machine precision


class Solved(NamedTuple):
    """An optimum and its weights; ``is_exact`` is False if Newton steps on its active set did not converge."""

    weights: Array
    optimum: Optimum
    is_exact: bool

    @property
    def outcome(self) -> Outcome:
        """The optimum as a solver outcome, for warm starts."""
        optimum = self.optimum
        return Outcome(optimum.x, optimum.multipliers, optimum.bound_multipliers, np.nan, 0, "optimal", True)


@dataclass(frozen=True, eq=False)
class Optima:
    """Solver of a weighted program for changing weights; Ctrl-C and the time limit ``until`` stop it."""

    program: WeightedProgram
    solver: str
    iterations: int
    watch: Watch
    until: float = np.inf

    def check(self, iteration: Iteration, x: Array) -> None:
        """Stop the solver after Ctrl-C or at the time limit."""
        if self.watch.interrupted or perf_counter() > self.until:
            raise StoppedError

    def is_over(self, iteration: Iteration) -> bool:
        """Show an iteration of the weight search; return whether Ctrl-C or the time limit ended the search."""
        try:
            self.watch(iteration, self.program.weights)
            self.check(iteration, self.program.weights)
        except StoppedError:
            return True
        return False

    def solved(self, weights: Array, start: Array) -> Solved | None:
        """Return the optimum for weights (k,) near variables (n,), or None if the solver finds none.

        The solver starts with zero multipliers, so that an interior-point method stays near its start instead of moving
        away from bounds. If there are several local optima, the one near the data is needed.
        """
        n, m = self.program.n, self.program.m
        still = Outcome(start, np.zeros(m), np.zeros(n), np.nan, 0, "", True)
        return self._search(weights, start, still) or self._search(weights, start, None)

    def moved(self, before: Solved, weights: Array) -> Solved | None:
        """Return the optimum for changed weights, by Newton steps from the predicted point or by the solver."""
        x = before.optimum.x + self.by_weights(before) @ (weights - before.weights)
        x = np.clip(x, self.program.lower, self.program.upper)
        self.program.weights = weights
        guess = before.outcome
        near = replace(guess, x=x)
        with np.errstate(all="ignore"):
            result = polished(self.program, near) if np.isfinite(self.program.value(x)[0]) else None
        if result is not None:
            return Solved(weights, result, True)
        return self._search(weights, before.optimum.x, guess) or self._search(weights, before.optimum.x, None)

    def _search(self, weights: Array, start: Array, warm: Outcome | None) -> Solved | None:
        self.program.weights = weights
        settings = Settings(SOLVER_TOLERANCE, self.iterations, watch=self.check)
        if warm is not None:
            settings = replace(settings, multipliers=warm.multipliers, bound_multipliers=warm.bound_multipliers)
        outcome = SOLVERS[self.solver](self.program, start, settings)
        if not outcome.is_solved:
            return None
        result = polished(self.program, outcome)
        return Solved(weights, result or estimated(self.program, outcome), result is not None)

    def by_weights(self, at: Solved) -> Array:
        """Return the derivatives (n, k) of the variables with respect to the weights."""
        return at.optimum.moved_by(self.program.gradients(at.optimum.x))


class WeightSensitivities(NamedTuple):
    """Sensitivities of an optimum to the weights of its objective.

    ``names`` are the names of the k weights. ``x`` (n, k) are the derivatives of the problem's variables with respect
    to a factor on each weight (1 for the weights of the problem). ``flat`` is the number of directions in which the
    optimum is not unique. ``weak`` is the number of active inequalities with multipliers near 0, for which derivatives
    are one-sided.
    """

    names: tuple[str, ...]
    x: Array
    flat: int
    weak: int


def weight_sensitivities(result: Solution) -> WeightSensitivities:
    """Return the exact derivatives of a solved motion with respect to the weights of its objective terms.

    They follow from the implicit function theorem applied to the active constraints. Multiplying all weights by the
    same factor does not change the motion, so the columns sum to 0.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
        >>> aims = [motion.Effort(weight=0.01), motion.Jerk(weight=1e-5)]
        >>> robot, phase = torsor.library.planar_chain(1), motion.Phase(1.0, points=7)
        >>> moved = motion.weight_sensitivities(motion.MotionProblem(robot, phase, aims, ends).solve())
        >>> moved.names, moved.x.shape, bool(abs(moved.x.sum(axis=1)).max() < 1e-9)
        (('Effort', 'Jerk'), (3, 2), True)
    """
    problem = result.problem
    if not result.is_solved or not result.is_feasible:
        message = f"the result of {problem.name!r} is {result.status}"
        allowed = "an optimal and feasible result"
        raise ModelError(message, value=problem.name, where="weight sensitivities", allowed=allowed)
    groups = cost_groups(problem, None)
    program = WeightedProgram(problem, groups, np.ones(len(groups)))
    optimum = polished(program, result.outcome) or estimated(program, result.outcome)
    moved = optimum.moved_by(program.gradients(optimum.x))
    return WeightSensitivities(tuple(groups), moved, optimum.flat, optimum.weak)
