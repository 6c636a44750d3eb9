"""The least largest violation: with bounds relaxed that much there is a motion, with less there is none."""

import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.optimisation.feasibility import MinMaxViolation, min_max_violation
from torsor.optimisation.program import Settings


def _reach(torque: float) -> motion.MotionProblem:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    limits = motion.Torques(upper=torque)
    return torsor.MotionProblem(
        torsor.library.two_link(), motion.Phase(0.3, points=8), motion.Effort(), [*ends, limits]
    )


def test_bounds_that_give_way_by_the_least_are_just_wide_enough() -> None:
    problem = _reach(10.0)
    _, most, outcome = min_max_violation(problem.program, problem.guess(), Settings())
    assert outcome.status == "optimal" and most > 0.1
    assert _reach(10.0 * (1 + 1.001 * most)).solve().is_solved
    with pytest.raises(motion.MotionError):
        _reach(10.0 * (1 + 0.99 * most)).solve()


def test_derivatives_of_the_widened_program_are_those_of_differences() -> None:
    problem = _reach(10.0)
    wide, rng = MinMaxViolation(problem.program, problem.guess()), np.random.default_rng(0)
    x, step, felt = wide.start + 0.1 * rng.normal(size=wide.n), 1e-6, rng.normal(size=wide.m)
    gradient, entries = wide.jacobian(x)
    dense = np.zeros((wide.m, wide.n))
    dense[wide.structure] = entries
    steps = step * np.eye(wide.n)
    rows = np.stack([(wide.value(x + each)[1] - wide.value(x - each)[1]) / (2 * step) for each in steps], axis=1)
    np.testing.assert_allclose(dense, rows, atol=1e-6)
    np.testing.assert_array_equal(gradient, np.eye(wide.n)[-1])

    def pull(at: np.ndarray) -> np.ndarray:
        found = np.zeros((wide.m, wide.n))
        found[wide.structure] = wide.jacobian(at)[1]
        return felt @ found

    hessians = np.stack([(pull(x + each) - pull(x - each)) / (2 * step) for each in steps], axis=1)[:-1, :-1]
    np.testing.assert_allclose(wide.hessian(x, felt, 1.0), hessians, atol=1e-4)
