"""Initial guesses: earlier solutions are transferred exactly, seeds repeat, processes agree, sweeps continue."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.motion import many, processes
from torsor.motion.solve import CTRL_C
from torsor.motion.starts import from_profiles, from_result


@cache
def robot() -> torsor.Robot:
    return torsor.library.two_link()


def problem(*phases: motion.Phase, limit: float = 10.0) -> motion.MotionProblem:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    return motion.MotionProblem(robot(), phases, motion.Time(), [*ends, motion.Torques(upper=limit)])


@cache
def found() -> motion.MotionResult:
    return problem(motion.Phase((0.1, 2.0), points=7)).solve()


def moved(other: motion.MotionProblem, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return np.concatenate([each.profiles(x, shares, 1)[0] for each in other.program.layout.phases])


def test_a_spline_with_more_knots_takes_an_earlier_motion_over_exactly() -> None:
    finer = problem(motion.Phase((0.1, 2.0), knots=np.linspace(0, 1, 9)[1:-1]))
    x, s = from_result(finer, found()), np.linspace(0, 1, 50)
    assert np.allclose(moved(finer, x, s), moved(found().problem, found().x, s), rtol=0, atol=1e-12)
    assert x[finer.program.layout.phases[0].duration] == found().T


def test_a_motion_is_carried_over_to_other_phases() -> None:
    halves = problem(motion.Phase((0.05, 1.0), points=9), motion.Phase((0.05, 1.0), points=9))
    x, s = from_result(halves, found()), np.linspace(0, 1, 21)
    wanted = moved(found().problem, found().x, np.concatenate([s / 2, (1 + s) / 2]))
    assert np.abs(moved(halves, x, s) - wanted).max() < 1e-2
    again = halves.solve(start=found())
    assert again.is_solved and again.T < found().T


def test_a_solved_problem_needs_no_search() -> None:
    again = found().problem.solve(start=found())
    assert again.iterations <= 3 and pytest.approx(found().T, rel=1e-6) == again.T


def test_given_profiles_are_started_from() -> None:
    s = np.linspace(0, 1, 400)[:, None]
    wanted = np.array([0.0, -2.0]) + (3 * s**2 - 2 * s**3)  # what a cubic spline can be, at rest at both ends
    x = from_profiles(found().problem, wanted)
    assert np.abs(moved(found().problem, x, s[:, 0]) - wanted).max() < 1e-4
    assert pytest.approx(found().T, rel=1e-5) == found().problem.solve(start=wanted).T


def test_random_starts_repeat_with_their_seeds() -> None:
    p = found().problem
    assert (p.random_start(3) == p.random_start(3)).all() and (p.random_start(3) != p.random_start(4)).any()
    assert np.array_equal(p.random_start(3, spread=0.0), p.guess())
    assert (p.random_start(5, 20.0) <= p.program.upper).all() and (p.random_start(5, 20.0) >= p.program.lower).all()
    with refused(argument="spread"):
        p.random_start(0, -1)


def test_many_starts_give_the_same_in_one_process_or_two() -> None:
    p = found().problem
    one, two = p.multistart(4, seed=7), p.multistart(4, seed=7, workers=2)
    assert [each.objective for each in one] == [each.objective for each in two] and one.seeds == two.seeds
    assert sorted(one.seeds) == [7, 8, 9, 10] and pytest.approx(found().T, rel=1e-4) == one.best.T
    assert one.reached == sum(each.T < one.best.T * 1.0001 for each in one) and len(one) == 4
    assert [each.objective for each in one] == sorted(each.objective for each in one)
    with refused(argument="workers"):
        p.multistart(4, workers=0)


def test_starts_may_be_an_iterator() -> None:
    p = found().problem
    assert p.multistart(starts=iter([p.guess()])).best.T == p.multistart(starts=[p.guess()]).best.T


def test_spawned_processes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    p = found().problem
    forked = p.multistart(3, seed=7, workers=2)
    monkeypatch.setattr("torsor.motion.processes.START_METHOD", "spawn")
    spawned = p.multistart(3, seed=7, workers=2, refine=False)
    assert [each.objective for each in forked] == [each.objective for each in spawned] and forked.seeds == spawned.seeds
    assert all((a.x == b.x).all() and a.problem is p for a, b in zip(spawned, forked, strict=True))


def test_problems_that_cannot_be_pickled_are_solved_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = motion.ExpressionConstraint(function=lambda node: node.v, upper=50.0)
    p = problem(motion.Phase((0.1, 2.0), points=6))
    p = motion.MotionProblem(robot(), p.phases, motion.Time(), [*p.constraints, speed])
    monkeypatch.setattr("torsor.motion.processes.START_METHOD", "spawn")
    assert p.multistart(2, workers=2).reached == p.multistart(2).reached


def test_given_starts_replace_random_ones() -> None:
    p = found().problem
    random, given = p.multistart(2, seed=3), p.multistart(starts=[p.random_start(3), p.random_start(4)], solver=None)
    assert [each.objective for each in given] == [each.objective for each in random]
    assert [each + 3 for each in given.seeds] == list(random.seeds)
    with refused(argument="count"):
        p.multistart(starts=[])


def test_ctrl_c_keeps_what_several_starts_found(monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]) -> None:
    p, solve_one = found().problem, many._solve_one

    def pressed(searches: Any, index: int, monitor: Any) -> Any:
        if index == 1:
            ctrl_c()
        return solve_one(searches, index, monitor)

    monkeypatch.setattr(many, "_solve_one", pressed)
    kept = p.multistart(3, solver="ipopt")
    assert kept.seeds == (0, 1) and kept[0].is_solved and kept[1].status == CTRL_C


def test_ctrl_c_during_a_batch_of_starts_keeps_those_that_are_solved(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    p = found().problem
    whole = p.multistart(3)
    monkeypatch.setattr(processes.Here, "end", lambda here: here.is_stopped or ctrl_c())  # of the first
    kept = p.multistart(3)
    assert kept[0].is_solved and kept[-1].status == CTRL_C and kept[-1].iterations > 0
    assert kept.best.objective == whole[whole.seeds.index(kept.seeds[0])].objective
    monkeypatch.setattr(many, "solve_group", lambda *_: ctrl_c() or [None] * 3)
    with pytest.raises(KeyboardInterrupt):
        p.multistart(3)


def test_motions_under_rising_limits_are_similar() -> None:
    """Without gravity T is as one over the root of the torque limit, for every spline."""
    limits = [10.0, 14.0, 20.0]
    results = motion.continuation(lambda limit: problem(motion.Phase((0.1, 2.0), points=6), limit=limit), limits)
    times = np.array([each.T for each in results])
    assert np.allclose(times * np.sqrt(limits), times[0] * np.sqrt(limits[0]), rtol=1e-5)


def test_a_pareto_front_trades_one_objective_for_the_other() -> None:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    costs = motion.Time(), motion.Effort(weight=0.1)
    whole = motion.MotionProblem(robot(), motion.Phase((0.1, 4.0), points=6), costs, ends)
    front = motion.pareto(whole, [0.9, 0.6, 0.3])
    time, effort = np.array([[part.value for part in each.parts] for each in front]).T
    assert (np.diff(time) > 0).all() and (np.diff(effort) < 0).all()
    jacobians = -np.diff(time) / np.diff(effort)  # between the ratios of weights at both ends: the front is convex
    ratios = np.array([0.1 * (1 - u) / u for u in (0.9, 0.6, 0.3)])
    assert (jacobians > ratios[:-1]).all() and (jacobians < ratios[1:]).all()
    with refused(allowed="two"):
        motion.pareto(found().problem, [0.5])
