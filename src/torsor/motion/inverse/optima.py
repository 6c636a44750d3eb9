"""Optima of a weighted program along a change of its weights, and how they move with the weights."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.motion.inverse.weighted import WeightedProgram, cost_groups
from torsor.motion.results.solution import Solution
from torsor.optimisation import SOLVERS, Iteration, Outcome, Settings, StoppedError, Watch
from torsor.optimisation.optimum import Optimum, estimated, polished

TOLERANCE = 1e-7  # of the solver, whose optimum Newton steps then make exact


class Solved(NamedTuple):
    """The optimum for some weights; ``is_exact`` unless Newton steps on its active set did not converge."""

    weights: Array
    optimum: Optimum
    is_exact: bool

    @property
    def outcome(self) -> Outcome:
        """The optimum in the form of a solver's outcome, for warm starts."""
        own = self.optimum
        return Outcome(own.x, own.multipliers, own.bound_multipliers, np.nan, 0, "optimal", True)


@dataclass(frozen=True, eq=False)
class Optima:
    """Solves a weighted program for other weights; Ctrl-C stops the solver, and so does the time ``until``."""

    program: WeightedProgram
    solver: str
    iterations: int
    watch: Watch
    until: float = np.inf

    def check(self, iteration: Iteration, x: Array) -> None:
        """Stop the solver after Ctrl-C, or when the time is over."""
        if self.watch.interrupted or perf_counter() > self.until:
            raise StoppedError

    def is_over(self, iteration: Iteration) -> bool:
        """Show an iteration of the search for weights; return whether Ctrl-C or the time has ended it."""
        try:
            self.watch(iteration, self.program.weights)
            self.check(iteration, self.program.weights)
        except StoppedError:
            return True
        return False

    def solved(self, weights: Array, start: Array) -> Solved | None:
        """Return the optimum for weights (k,) near variables (n,); None if the solver finds none.

        With multipliers of 0 an interior-point method stays near its start, which it otherwise moves away from bounds:
        of several local optima, that near the data is wanted.
        """
        n, m = self.program.n, self.program.m
        still = Outcome(start, np.zeros(m), np.zeros(n), np.nan, 0, "", True)
        return self._search(weights, start, still) or self._search(weights, start, None)

    def moved(self, before: Solved, weights: Array) -> Solved | None:
        """Return the optimum for other weights: by Newton steps from where the sensitivities say, or by the solver."""
        x = before.optimum.x + self.by_weights(before) @ (weights - before.weights)
        x = np.clip(x, self.program.lower, self.program.upper)
        self.program.weights = weights
        guess = before.outcome
        near = Outcome(x, guess.multipliers, guess.bound_multipliers, np.nan, 0, "", True)
        with np.errstate(all="ignore"):
            found = polished(self.program, near) if np.isfinite(self.program.value(x)[0]) else None
        if found is not None:
            return Solved(weights, found, True)
        return self._search(weights, before.optimum.x, guess) or self._search(weights, before.optimum.x, None)

    def _search(self, weights: Array, start: Array, warm: Outcome | None) -> Solved | None:
        self.program.weights = weights
        settings = Settings(TOLERANCE, self.iterations, watch=self.check)
        if warm is not None:
            settings = replace(settings, multipliers=warm.multipliers, bound_multipliers=warm.bound_multipliers)
        outcome = SOLVERS[self.solver](self.program, start, settings)
        if not outcome.is_solved:
            return None
        found = polished(self.program, outcome)
        return Solved(weights, found or estimated(self.program, outcome), found is not None)

    def by_weights(self, at: Solved) -> Array:
        """Return the derivatives (n, k) of the variables by the weights."""
        return at.optimum.moved_by(self.program.gradients(at.optimum.x))


class WeightSensitivities(NamedTuple):
    """How an optimum moves with the weights of its objective.

    ``names`` of the k weights; ``x`` (n, k) are the derivatives of the variables of the problem by the factor of each
    weight (1 for the weights that the problem has). ``flat`` counts directions in which the optimum is not unique, and
    ``weak`` active inequalities with multipliers near 0, for which the derivatives hold to one side only.
    """

    names: tuple[str, ...]
    x: Array
    flat: int
    weak: int


def weight_sensitivities(result: Solution) -> WeightSensitivities:
    """Return the exact derivatives of a solved motion by the weights of the terms of its objective.

    They are those of the implicit function theorem on the active constraints. If all weights grow by the same factor,
    the motion does not change: the columns times the weights sum to 0.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
        >>> aims = [motion.Effort(weight=0.01), motion.Jerk(weight=1e-5)]
        >>> robot, phase = torsor.library.planar_chain(1), motion.Phase(1.0, points=7)
        >>> found = motion.weight_sensitivities(motion.MotionProblem(robot, phase, aims, ends).solve())
        >>> found.names, found.x.shape, bool(abs(found.x.sum(axis=1)).max() < 1e-9)
        (('Effort', 'Jerk'), (3, 2), True)
    """
    problem = result.problem
    if not result.is_solved or not result.is_feasible:
        found = f"the result of {problem.name!r}: {result.status}"
        raise ModelError(describe(found, where="weight sensitivities", allowed="one that is optimal and feasible"))
    groups = cost_groups(problem, None)
    program = WeightedProgram(problem, groups, np.ones(len(groups)))
    optimum = polished(program, result.outcome) or estimated(program, result.outcome)
    moved = optimum.moved_by(program.gradients(optimum.x))
    return WeightSensitivities(tuple(groups), moved, optimum.flat, optimum.weak)
