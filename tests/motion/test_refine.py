"""Refinement adds nodes where bounds are violated on the finer grid, and control points where they save time."""

from dataclasses import replace
from pathlib import Path

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


# Control points of phases that do not give their number.


def quickest(robot: torsor.Robot, start: list[float], end: list[float], **phase: object) -> motion.MotionProblem:
    ends = [motion.Start(q=start, v=0.0), motion.End(q=end, v=0.0)]
    limits = [motion.Torques(), motion.Velocities()]
    return motion.MotionProblem(robot, motion.Phase((0.1, 5.0), **phase), motion.Time(), [*ends, *limits])


LONG_MOVE = [-1.5, -2.0, 0.5, -1.0, -1.5, -1.0], [1.8, -0.6, 1.8, -2.0, 1.0, 2.0]  # of a UR5, within velocity limits


def test_the_quickest_motion_is_no_slower_than_the_straight_line() -> None:
    robot = torsor.library.ur5()
    line = motion.retime(robot, np.linspace(*LONG_MOVE, 3)).duration
    result, fixed = quickest(robot, *LONG_MOVE).solve(), quickest(robot, *LONG_MOVE, points=12).solve()
    assert 1.03 * line < fixed.T  # 12 control points are too few
    assert result.status == "optimal" and line > result.T and result.T < 1.005 * 1.0682  # s, with 56 control points
    assert np.abs(result.at(np.linspace(0, result.T, 2001)).v).max() < 1.02 * robot.velocity_limit.max()
    assert result.distance < 0.005 and f"{100 * result.distance:.2g} %" in result.report()
    assert result.to_dict()["distance"] == result.distance


def test_the_time_of_a_double_integrator_is_that_of_bang_bang_within_the_stated_distance() -> None:
    robot = torsor.library.planar_chain(1).with_gravity([0.0, 0.0, 0.0])
    inertia = float(robot.mass_matrix([0.0])[0, 0])
    ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
    limits = [*ends, motion.Torques(upper=inertia), motion.Velocities(upper=0.2)]  # accelerations up to 1 rad/s^2
    result = motion.MotionProblem(robot, motion.Phase((0.1, 20.0)), motion.Time(), limits).solve()
    exact = 1.0 / 0.2 + 0.2 / 1.0  # s, a trapezoidal velocity profile
    assert result.passes[0].objective > 1.01 * exact
    assert exact - 1e-6 < result.T < 1.005 * exact
    assert result.T - exact < 2 * result.distance * exact


def test_control_points_that_are_given_are_kept() -> None:
    given = [{"points": 12}, {"knots": [0.3, 0.6]}, {"nodes": 61}, {"own": {"joint1": motion.Spline.uniform(9)}}]
    for phase in given:
        problem = coarse().with_phases(motion.Phase((0.1, 2.0), **phase))  # type: ignore[arg-type]
        result = problem.solve()
        assert result.problem is problem and result.passes == () and np.isnan(result.distance)
    free = coarse().with_phases(motion.Phase((0.1, 2.0)))
    assert free.solve(refine=False).problem is free
    assert free.solve().passes[-1].points > 12
    assert free.multistart(2).best.problem is free


def test_a_refined_motion_is_a_warm_start_with_its_own_control_points() -> None:
    problem = coarse().with_phases(motion.Phase((0.1, 2.0)))
    first = problem.solve()
    again = problem.solve(start=first)
    assert again.program.n == first.program.n and again.iterations <= first.passes[-1].iterations
    assert pytest.approx(first.T, rel=1e-5) == again.T


def test_a_refined_motion_of_a_python_function_is_saved_and_loaded(tmp_path: Path) -> None:
    power = motion.ExpressionConstraint(function=lambda node: node.tau.T @ node.v, upper=60.0, name="supply")
    free = coarse().with_phases(motion.Phase((0.1, 2.0)))
    problem = replace(free, constraints=[*free.constraints, power])
    result = problem.solve()
    result.save(tmp_path / "motion.npz")
    loaded = motion.MotionResult.load(tmp_path / "motion.npz", problem)
    assert np.array_equal(loaded.q, result.q) and loaded.passes == result.passes
