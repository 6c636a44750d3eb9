"""Least effort among the fastest: joints that do not limit the time are determined, and the time stays."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion

ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]


def reach(limits: dict[str, float]) -> motion.MotionProblem:
    phase = motion.Phase((0.1, 2.0), points=8)
    return motion.MotionProblem(
        torsor.library.two_link(), phase, motion.Time(), [*ENDS, motion.Torques(upper=limits)], name="reach"
    )


def effort(result: motion.MotionResult, limits: list[float]) -> float:
    """Return the integral of squared torques relative to their limits, by trapezoids."""
    return float(np.trapezoid(((result.tau / limits) ** 2).sum(axis=1), result.times))


def test_joints_that_do_not_limit_the_time_move_with_least_effort() -> None:
    """The speed of the first joint limits the time; torques are those of least effort in the same time."""
    limits = [2.0, 100.0]
    rows = [*ENDS, motion.Torques(upper=limits), motion.Velocities(upper=[1.0, 50.0])]
    robot, phase = torsor.library.two_link(), motion.Phase((0.1, 3.0), points=10)
    problem = motion.MotionProblem(robot, phase, motion.Time(), rows)
    fast, calm = problem.solve(), problem.solve(tie_break=True)
    assert fast.T < calm.T <= fast.T * (1 + 1.01e-4) and calm.status == "optimal"
    assert calm.is_feasible and calm.objective == pytest.approx(calm.T, rel=1e-14)
    assert effort(calm, limits) < 0.95 * effort(fast, limits)
    given = motion.Phase(fast.T * (1 + 1e-4), points=10)
    least = motion.MotionProblem(robot, given, motion.Effort(scale=limits), rows).solve()
    assert effort(calm, limits) == pytest.approx(least.objective, rel=1e-4)


def test_a_motion_that_is_unique_stays() -> None:
    problem = reach({"joint1": 10.0, "joint2": 10.0})
    fast, calm = problem.solve(), problem.solve(tie_break=True)
    np.testing.assert_allclose(calm.at(0.5 * calm.T).q, fast.at(0.5 * fast.T).q, atol=5e-3)


def test_sensitivities_stay_those_of_the_time() -> None:
    problem = reach({"joint1": 10.0, "joint2": 10.0})
    fast, calm = problem.solve(), problem.solve(tie_break=True)
    assert calm.constraints["Torques"].sensitivity == pytest.approx(fast.constraints["Torques"].sensitivity)


def test_a_tie_break_needs_an_objective_of_time_and_a_free_duration() -> None:
    robot, limits = torsor.library.two_link(), motion.Torques(upper=10.0)
    for phase, objective, words in (
        (motion.Phase((0.1, 2.0)), motion.Effort(), "tie_break"),
        (motion.Phase(1.0), motion.Time(), "tie_break"),
    ):
        problem = motion.MotionProblem(robot, phase, objective, [*ENDS, limits])
        with refused(words):
            problem.solve(tie_break=True)
    with refused(argument="tie_break", allowed="True or False"):
        problem.solve(tie_break=1)  # type: ignore[arg-type]
