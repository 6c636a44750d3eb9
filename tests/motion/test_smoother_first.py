"""Costs with kinks: the search starts from the optimum of a smoother cost, and ends at the optimum of the cost."""

from dataclasses import dataclass, replace
from typing import Self

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.motion import Node
from torsor.motion.terms.term import Cost


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundedWork(Cost):
    """The work of both joints, positive or negative, rounded at 0."""

    rounding: float = 1e-3
    is_smoothed: bool = True

    def data(self, s: np.ndarray) -> dict[str, np.ndarray]:
        return {"rounding": np.full((len(s), 1), self.rounding)}

    def smoother(self) -> Self:
        return replace(self, rounding=1.0) if self.is_smoothed else self

    def integrand(self, node: Node) -> ca.SX:
        P = node.tau * node.v
        return ca.sum1(ca.sqrt(P**2 + node.data("rounding", 1) ** 2)) + 1e-3 * ca.sumsqr(node.tau)


def _lift(cost: Cost) -> motion.MotionProblem:
    ends = motion.Start(q=0.0, v=0.0), motion.End(q=[1.0, 0.5], v=0.0)
    return motion.MotionProblem(torsor.library.two_link(), motion.Phase(1.0, points=7), cost, ends, name="lift")


def test_the_optimum_is_that_of_the_cost_itself() -> None:
    direct, smoothed = (_lift(RoundedWork(is_smoothed=each)).solve("condensed") for each in (False, True))
    assert direct.is_solved and smoothed.is_solved
    assert smoothed.objective == pytest.approx(direct.objective, rel=1e-5)
    assert smoothed.problem.costs[0].rounding == 1e-3
    assert len(smoothed.outcome.log) > smoothed.iterations  # of both searches


def test_a_search_that_is_stopped_has_the_objective_of_the_cost_itself() -> None:
    problem = _lift(RoundedWork())
    found = problem.solve("condensed", iterations=2)
    assert not found.is_solved and found.objective == pytest.approx(problem.program.value(found.x)[0], rel=1e-12)
