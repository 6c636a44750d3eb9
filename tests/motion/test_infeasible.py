"""An infeasible problem raises an error with the conflicting constraints and the least violation."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.motion.problems import two_link_time
from torsor.motion.solve import STRATEGIES, SolveSettings, solve
from torsor.optimisation import row_violations


@cache
def robot() -> torsor.Robot:
    return torsor.library.two_link()


def reach(duration: object, *more: object, torques: float = 10.0) -> motion.MotionProblem:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    phase, limits = motion.Phase(duration, points=8, nodes=41), motion.Torques(upper=torques)
    return motion.MotionProblem(robot(), phase, motion.Time(), [*ends, limits, *more], name="reach")


def test_torques_conflict_with_a_duration_that_is_too_short() -> None:
    with refused(where="reach", what="no motion near the start satisfies Torques", error=motion.MotionError) as caught:
        reach((0.1, 0.3)).solve()
    error = caught.value
    assert error.conflict == ("Torques", "Duration") and "phase 0 (upper 0.3)" in str(error)
    assert error.result is not None and pytest.approx(0.3, rel=1e-6) == error.result.T
    assert error.violation == pytest.approx(np.abs(error.result.at(0.3 * np.linspace(0, 1, 41)).tau).max() / 10 - 1)
    assert "given Start, End" in str(error) and "the nearest motion found violates a constraint by" in str(error)


def test_the_least_violation_is_what_bounds_must_give_way_by() -> None:
    with pytest.raises(motion.MotionError) as caught:
        reach(0.3).solve()
    more = caught.value.violation

    def wider(share: float) -> motion.MotionProblem:
        return reach(0.3, torques=10.0 * (1 + share * more))

    assert wider(1.001).solve().is_solved
    with pytest.raises(motion.MotionError):
        wider(0.99).solve()


def test_a_bound_that_a_given_end_breaks_is_named_before_the_search() -> None:
    within = motion.Positions(lower=-1.5, upper=1.5, name="within")
    with refused(
        what="within cannot be satisfied: joint2 is below its lower bound -1.5 by 0.5 at 0 s", error=motion.MotionError
    ) as caught:
        reach((0.1, 2.0), within).solve()
    assert caught.value.conflict == ("within", "Start", "End")


def test_only_what_conflicts_is_named() -> None:
    """Two velocities that contradict each other by 0.2 rad/s at one moment, beside limits that do not matter."""
    back = motion.Velocities(lower=-20.0, upper=-0.1, at=[0.5], name="backwards")
    on = motion.Velocities(lower=0.1, upper=20.0, at=[0.5], name="forwards")
    with pytest.raises(motion.MotionError) as caught:
        reach((0.1, 2.0), back, on).solve()
    assert set(caught.value.conflict) == {"backwards", "forwards"}
    scale = (20.0 - 0.1) / 2
    assert 0.1 / scale - 1e-6 < caught.value.violation < 0.2 / scale + 1e-6
    result = caught.value.result
    assert result is not None  # each joint misses 0.2 rad/s, whichever of the two bounds it is
    assert row_violations(result.program, result.x).sum() == pytest.approx(2 * 0.2 / scale, rel=1e-4)


def test_without_the_check_the_nearest_motion_is_the_result() -> None:
    nearest = reach(0.3).solve(check=False)
    assert nearest.status == "infeasible: Torques conflict" and not nearest.is_solved and not nearest.is_feasible
    assert nearest.constraints["Torques"].violation == pytest.approx(10 * nearest.max_violation, rel=1e-9)


def test_a_limit_on_iterations_is_no_conflict() -> None:
    with refused(what="no motion was found: stopped at the iteration limit", error=motion.MotionError) as caught:
        replace(reach((0.1, 2.0)), settings={"iterations": 1}).solve(start=np.zeros((5, 2)))
    assert caught.value.conflict == () and caught.value.result is not None


def test_the_strategies_of_a_solve_run_in_order() -> None:
    names = [strategy.__name__ for strategy in STRATEGIES]
    assert names == [
        "reject_constant_violations",
        "scale_smoothing",
        "find_feasible_first",
        "solve_smoother_first",
        "solve_from_start",
        "rescale_smoothing",
        "relax_groups",
        "minimise_violations",
        "retry_from_nearest",
        "diagnose",
        "leave_saddle",
        "refine_points",
        "refine_nodes",
        "break_ties",
        "mark_between_nodes",
    ]


@pytest.mark.parametrize("settings", [{}, {"feasible_first": True}, {"refine": True}])
def test_a_feasible_problem_needs_no_rescue(settings: dict[str, bool]) -> None:
    problem = two_link_time(points=6, nodes=13)
    state = solve(problem, None, SolveSettings.of("reach", **settings))
    assert state.result is not None and state.result.is_feasible
    assert state.nearest is None and state.diagnosis is None and not state.is_open


def test_a_state_that_is_infeasible_is_passed_from_strategy_to_strategy() -> None:
    problem = replace(two_link_time(points=6), phases=motion.Phase(0.2, points=6))
    state = solve(problem, None, SolveSettings.of("reach", check=False))
    assert state.nearest is not None and state.nearest.is_solved
    assert state.diagnosis is not None and state.diagnosis.conflict == ("Torques",)
    assert state.result is not None and state.result.status == "infeasible: Torques conflict"
    assert state.diagnosis.violation == pytest.approx(state.result.max_violation, rel=1e-6)
