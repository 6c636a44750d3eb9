"""Constant rows at their bounds, and tiny objectives, do not mislead a solver."""

import warnings

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.optimisation import SOLVERS, Settings
from torsor.optimisation.program import Formula

EVERY = pytest.mark.parametrize("solver", sorted(SOLVERS))
ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]


def reach(*limits: object, cost: object = None, duration: object = (0.1, 2.0)) -> motion.MotionProblem:
    phase = motion.Phase(duration, points=8)
    torques = motion.Torques(upper=10.0)
    return motion.MotionProblem(torsor.library.two_link(), phase, cost or motion.Time(), [*ENDS, torques, *limits])


@EVERY
def test_a_motion_may_end_at_a_limit_of_positions(solver: str) -> None:
    def limited(most: float) -> motion.MotionResult:
        return reach(motion.Positions(lower=-10.0, upper=[most, 0.0])).solve(solver, tolerance=1e-8)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = limited(1.0)
    assert result.status == "optimal"
    (sensitivity,) = result.constraints["Positions"].sensitivity.values()
    wider = (limited(1.0 + 1e-4).objective - result.objective) / 1e-4  # a narrower one has no motion at all
    assert sensitivity == pytest.approx(wider, rel=0.05)


@EVERY
@pytest.mark.parametrize("weight", [1e-12, 1e-6])
def test_the_unit_of_the_objective_does_not_matter(solver: str, weight: float) -> None:
    large, small = (reach(cost=motion.Effort(weight=each), duration=0.6).solve(solver) for each in (1.0, weight))
    assert small.objective / weight == pytest.approx(large.objective, rel=1e-6)
    assert small.log[-1].objective == pytest.approx(small.objective)
    for one, other in zip(small.active, large.active, strict=True):
        assert one.sensitivity / weight == pytest.approx(other.sensitivity, rel=1e-3, abs=1e-4)
    again = reach(cost=motion.Effort(weight=weight), duration=0.6).solve(solver, start=small)
    assert again.iterations <= 1 + small.iterations // 2


@EVERY
def test_an_objective_that_is_zero_at_the_start_is_optimal_there(solver: str) -> None:
    bowl = Formula(lambda x: x[0] ** 2 + 1e-3 * x[1] ** 2, n=2)
    outcome = SOLVERS[solver](bowl, np.full(2, 1e-13), Settings())
    assert outcome.is_solved
    assert outcome.iterations <= 1


@pytest.mark.parametrize("solver", ["condensed", "ipopt"])
def test_what_has_no_least_value_is_said_to_grow_without_bound(solver: str) -> None:
    jacobian = Formula(lambda x: x[1] - x[0] ** 2, lambda x: x[1], n=2, row_lower=0.0)
    assert SOLVERS[solver](jacobian, np.ones(2), Settings()).status == "stopped: variables grow without bound"


@EVERY
def test_bounds_may_be_as_near_to_each_other_as_rounding(solver: str) -> None:
    upper = 1 + 1e-15
    narrow = Formula(lambda x: (x[0] - 2) ** 2, lambda x: x[0], n=1, row_lower=1.0, row_upper=upper, upper=5.0)
    outcome = SOLVERS[solver](narrow, np.zeros(1), Settings())
    assert outcome.is_solved
    assert outcome.multipliers == pytest.approx(2.0, rel=1e-5)


def test_rows_without_bounds_are_no_matter_for_sqp(capfd: pytest.CaptureFixture[str]) -> None:
    free = [np.inf, 1.0]
    program = Formula(lambda x: (x[0] - 2) ** 2, lambda x: ca.vertcat(x[0], x[0] ** 2), n=1, row_upper=free)
    outcome = SOLVERS["sqp"](program, np.zeros(1), Settings())
    assert outcome.multipliers == pytest.approx([0.0, 1.0], abs=1e-5)
    assert not any(capfd.readouterr())


def test_more_equations_than_variables_are_taken_where_they_agree() -> None:
    rows = [2.0, 0.0, 1.0]
    program = Formula(
        lambda x: ca.sumsqr(x),
        lambda x: ca.vertcat(x[0] + x[1], x[0] - x[1], x[0] * x[1]),
        n=2,
        row_lower=rows,
        row_upper=rows,
    )
    outcome = SOLVERS["condensed"](program, np.array([0.3, 5.0]), Settings())
    assert outcome.is_solved
    assert outcome.x == pytest.approx([1.0, 1.0], abs=1e-6)
    assert "more equations than variables" in SOLVERS["ipopt"](program, np.array([0.3, 5.0]), Settings()).status
