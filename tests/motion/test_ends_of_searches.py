"""Solvers that are stopped, infeasible starts, and errors of results and settings."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.motion.problems import two_link_time
from torsor.motion.refine import refined


@cache
def found() -> motion.MotionResult:
    return two_link_time(points=8, nodes=41).solve()


def ending(result: motion.MotionResult, status: str) -> motion.MotionResult:
    return replace(result, outcome=replace(result.outcome, status=status, is_solved=False))


def test_refinement_ends_with_ctrl_c_and_says_so() -> None:
    calls = []

    def stopped(problem: motion.MotionProblem, before: motion.MotionResult, iterations: int) -> motion.MotionResult:
        calls.append(problem)
        return ending(before, "stopped by Ctrl-C")

    result = refined(found(), 1e-4, 500, stopped)
    assert len(calls) == 1
    assert result.status.startswith("stopped by Ctrl-C; rows hold to ")
    assert result.is_stopped


def test_refinement_that_leads_nowhere_ends_and_says_so() -> None:
    result = refined(found(), 1e-4, 500, lambda problem, before, iterations: before)
    assert len(result.passes) == 4
    assert result.status.startswith("optimal; rows hold to ")
    grown = r"refinement ended (from 41 to 41 nodes in 3 rounds): no progress in 3 rounds"
    assert result.status.endswith(f"on a grid ten times finer, where {grown}")


def test_refinement_takes_no_more_iterations_than_allowed() -> None:
    given = []

    def slow(problem: motion.MotionProblem, before: motion.MotionResult, iterations: int) -> motion.MotionResult:
        given.append(iterations)
        return replace(before, outcome=replace(before.outcome, iterations=iterations))

    result = refined(found(), 1e-4, 30, slow)
    assert given == [30] and result.status.endswith("at the iteration limit")


def test_refinement_ends_after_eight_rounds() -> None:
    problem = two_link_time(points=6, nodes=2)

    def solved(problem: motion.MotionProblem, before: motion.MotionResult, iterations: int) -> motion.MotionResult:
        return problem.solve(start=before, check=False, tolerance=1e-4)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = refined(problem.solve(), 1e-12, 10**6, solved)
    assert len(result.passes) == 9 and result.status.endswith("nodes in 8 rounds): after 8 rounds")


def test_no_moments_have_shapes_too() -> None:
    none = found().at([])
    assert (none.q.shape, none.tau_rate.shape, none.reactions.shape) == ((0, 2), (0, 2), (0, 2, 6))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: found().at("soon"), "soon"),
        (lambda: found().problem.random_start(-1), "seed"),
        (lambda: found().problem.multistart(2, seed="one"), "seed"),
        (
            lambda: found().problem.random_start(1, spread="wide"),
            "spread",
        ),
        (lambda: found().simulate(0), "steps"),
        (
            lambda: found().problem.solve(iterations=2**70),
            "iterations",
        ),
        (
            lambda: found().problem.solve(tolerance=1e-16),
            "tolerance",
        ),
        (lambda: found().problem.solve(check="no"), "check"),
        (lambda: found().problem.solve(solver=["ipopt"]), "solver"),
        (lambda: motion.switching(3), "a MotionProblem or its MotionResult"),
        (lambda: motion.switching(found(), tolerance=0), "tolerance"),
        (lambda: motion.switching(found(), iterations=-1), "iterations"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Callable[[], object], message: str) -> None:
    with refused(message):
        asked()


def test_switching_needs_torque_bounds_all_the_time() -> None:
    problem = two_link_time(points=8)
    limits = motion.Torques(upper=10.0, during=(0.0, 0.5))
    part = replace(problem, constraints=[*problem.constraints[:2], limits])
    with refused(allowed="bounds at all times"):
        motion.switching(part)


def test_switching_of_a_problem_without_a_motion_names_the_conflict() -> None:
    short = two_link_time(points=8).with_phases(motion.Phase((0.1, 0.2), points=8))
    with refused(what="together with Duration of phase 0", error=motion.MotionError):
        motion.switching(short)


def test_several_processes_show_one_bar_and_no_iterations(capfd: pytest.CaptureFixture[str]) -> None:
    problem = two_link_time(points=6)
    problem.multistart(2, workers=2, iterations=1)
    assert not any(capfd.readouterr())
    problem.multistart(2, workers=2, progress=True, iterations=1)
    shown = capfd.readouterr()
    assert not shown.out and "solving from starts" in shown.err and "objective" not in shown.err
    problem.solve(progress=True, iterations=1, check=False)
    assert capfd.readouterr().err.endswith("\n")


def test_loops_that_cannot_be_closed_at_the_start_are_said_so() -> None:
    five = torsor.library.five_bar()
    first, last = ({"joint1": a, "joint3": b} for a, b in ((1.9, 1.2), (3.1, 0.0)))
    ends = motion.Start(q=first, v=0.0), motion.End(q=last, v=0.0)
    problem = motion.MotionProblem(
        five, motion.Phase((0.1, 3.0), points=6), motion.Time(), [*ends, motion.Torques(upper=5)]
    )
    with refused(what="the loops may not close"):
        problem.solve()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("status", np.array("\x1b[2J"), "not printable"),
        ("solver", np.array("other"), "condensed, ipopt, sqp"),
        ("figures", np.array([1.0, 1e300, 1.0, 1e-6]), "iterations"),
        ("figures", np.array([1.0, 1.0, 1.0, 0.0]), "tolerance of 0"),
        ("log", np.array([[1e300, 1.0, 1.0, 1.0]]), "the log"),
        ("passes", np.full((1, 4), np.inf), "the log"),
        ("x", np.full(9, -5.0), "variables are outside their bounds"),
    ],
)
def test_numbers_of_a_file_that_no_search_gives_are_refused(
    tmp_path: Path, name: str, value: np.ndarray, message: str
) -> None:
    path = tmp_path / "found.npz"
    found().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {name: value})
    with refused(message):
        motion.MotionResult.load(path, problem=found().problem)


def test_a_violation_is_read_back(tmp_path: Path) -> None:
    short = two_link_time(points=8).with_phases(motion.Phase((0.1, 0.2), points=8)).solve(check=False)
    short.save(tmp_path / "short.npz")
    again = motion.MotionResult.load(tmp_path / "short.npz", problem=short.problem)
    assert again.outcome.violation == pytest.approx(short.max_violation)
    assert again.outcome.violation > 1
