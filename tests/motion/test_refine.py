"""Refinement adds nodes where bounds are violated on the finer grid, and nowhere else."""

import numpy as np
import pytest

import torsor
from torsor import motion


def coarse(**phase: object) -> motion.MotionProblem:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    made = motion.Phase((0.1, 2.0), points=8, **phase)
    return motion.MotionProblem(torsor.library.two_link(), made, motion.Time(), [*ends, motion.Torques(upper=10.0)])


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_torques_hold_everywhere_after_refinement(tolerance: float) -> None:
    result = coarse(nodes=11).solve(refine=tolerance)
    tau = result.at(np.linspace(0, result.T, 5001)).tau
    assert np.abs(tau).max() <= 10 * (1 + tolerance) + 1e-4
    first, last = result.passes[0], result.passes[-1]
    assert first.violation > tolerance >= last.violation and first.nodes == 11 < last.nodes < 40
    assert last.objective > first.objective  # bounds at more moments leave fewer motions


def test_a_motion_that_holds_everywhere_is_left_as_it_is() -> None:
    result = coarse(nodes=201).solve(refine=0.5)
    assert len(result.passes) == 1 and len(result.problem.stages[0].nodes) == 201


def test_refined_nodes_are_used_without_tracing_again() -> None:
    problem = coarse(nodes=11)
    result = problem.solve(refine=1e-2)
    assert result.problem._kernels is problem._kernels and result.problem is not problem
