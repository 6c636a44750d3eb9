"""Solvers find known optima with their Lagrange multipliers; logs and statuses agree with recomputed values."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.optimisation import (
    SOLVERS,
    Iteration,
    MinSumViolation,
    NonlinearProgram,
    Outcome,
    Settings,
    StoppedError,
    largest_violation,
)
from torsor.optimisation.feasibility import min_sum_violation
from torsor.optimisation.program import Formula

EVERY = pytest.mark.parametrize("solver", sorted(SOLVERS))
TIGHT = Settings(tolerance=1e-9)


def jacobian(program: NonlinearProgram, x: np.ndarray) -> np.ndarray:
    found = np.zeros((program.m, program.n))
    found[program.structure] = program.jacobian(x)[1]
    return found


def check(program: NonlinearProgram, outcome: Outcome, tolerance: float) -> None:
    """Compute the conditions of an optimum again: nothing pulls, signs are right, and what is not held has no force."""
    x, y, z = outcome.x, outcome.multipliers, outcome.bound_multipliers
    f, rows = program.value(x)
    assert outcome.is_solved, outcome.status
    assert outcome.objective == f
    assert outcome.violation == largest_violation(program, x, rows) <= tolerance
    size = max(1.0, np.abs(y).max(initial=0.0), np.abs(z).max(initial=0.0))
    assert np.abs(program.jacobian(x)[0] + y @ jacobian(program, x) + z).max() <= 10 * tolerance * size
    for at, lower, upper, force in (
        (rows, program.row_lower, program.row_upper, y),
        (x, program.lower, program.upper, z),
    ):
        with np.errstate(invalid="ignore"):
            products = np.where(force > 0, np.minimum(upper - at, 1e3), np.minimum(at - lower, 1e3)) * force
        assert np.abs(products[lower < upper]).max(initial=0.0) <= 10 * tolerance * size


def hs71() -> Formula:
    return Formula(
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        lambda x: ca.vertcat(ca.sumsqr(x), x[0] * x[1] * x[2] * x[3]),
        n=4,
        lower=1.0,
        upper=5.0,
        row_lower=[40.0, 25.0],
        row_upper=[40.0, np.inf],
    )


PROBLEMS: dict[str, tuple[Callable[[], Formula], list[float], list[float], dict[str, Any]]] = {
    "HS71": (
        hs71,
        [1.0, 5.0, 5.0, 1.0],
        [1.0, 4.7429996, 3.8211500, 1.3794083],
        {"multipliers": [0.16146857, -0.55229366], "bound_multipliers": [-1.08787121, 0.0, 0.0, 0.0]},
    ),
    "HS6, equality alone": (
        lambda: Formula(lambda x: (1 - x[0]) ** 2, lambda x: 10 * (x[1] - x[0] ** 2), n=2, row_lower=0, row_upper=0),
        [-1.2, 1.0],
        [1.0, 1.0],
        {"multipliers": [0.0]},
    ),
    "HS35, convex and quadratic": (
        lambda: Formula(
            lambda x: (
                9
                - 8 * x[0]
                - 6 * x[1]
                - 4 * x[2]
                + 2 * x[0] ** 2
                + 2 * x[1] ** 2
                + x[2] ** 2
                + 2 * x[0] * x[1]
                + 2 * x[0] * x[2]
            ),
            lambda x: x[0] + x[1] + 2 * x[2],
            n=3,
            lower=0.0,
            row_upper=3.0,
        ),
        [0.5, 0.5, 0.5],
        [4 / 3, 7 / 9, 4 / 9],
        {"multipliers": [2 / 9]},
    ),
    "HS5, bounds alone": (
        lambda: Formula(
            lambda x: ca.sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1,
            n=2,
            lower=[-1.5, -3.0],
            upper=[4.0, 3.0],
        ),
        [0.0, 0.0],
        [0.5 - np.pi / 3, -0.5 - np.pi / 3],
        {},
    ),
    "one variable at its bound": (
        lambda: Formula(lambda x: (x[0] - 3) ** 2, n=1, upper=1.0),
        [-4.0],
        [1.0],
        {"bound_multipliers": [4.0]},
    ),
    "a variable that is given": (
        lambda: Formula(
            lambda x: x[0] ** 2 + x[0] * x[1], lambda x: x[0] - x[1], n=2, lower=[-9, 2], upper=[9, 2], row_lower=-2.5
        ),
        [5.0, 0.0],
        [-0.5, 2.0],
        {"multipliers": [-1.0], "bound_multipliers": [0.0, -0.5]},
    ),
    "the same equation twice": (
        lambda: Formula(
            lambda x: ca.sumsqr(x),
            lambda x: ca.vertcat(x[0] + x[1], 2 * x[0] + 2 * x[1]),
            n=2,
            row_lower=[1.0, 2.0],
            row_upper=[1.0, 2.0],
        ),
        [3.0, -1.0],
        [0.5, 0.5],
        {},
    ),
    "three bounds through one point": (
        lambda: Formula(
            lambda x: x[0] + x[1],
            lambda x: ca.vertcat(x[0] + 2 * x[1], 2 * x[0] + x[1], x[0] + x[1]),
            n=2,
            row_lower=0.0,
        ),
        [2.0, 3.0],
        [0.0, 0.0],
        {},
    ),
    "a row without bounds": (
        lambda: Formula(
            lambda x: (x[0] - 1) ** 2 + x[1] ** 2,
            lambda x: ca.vertcat(ca.exp(x[0]), x[0] - x[1]),
            n=2,
            row_upper=[np.inf, -1.0],
        ),
        [0.0, 0.0],
        [0.0, 1.0],
        {"multipliers": [0.0, 2.0]},
    ),
    "curved valley in a disc": (
        lambda: Formula(
            lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, lambda x: ca.sumsqr(x), n=2, row_upper=2.0
        ),
        [-1.2, 1.0],
        [1.0, 1.0],
        {},
    ),
}


@EVERY
@pytest.mark.parametrize("name", PROBLEMS)
def test_known_optima_are_found_with_their_multipliers(name: str, solver: str) -> None:
    make, start, x, known = PROBLEMS[name]
    program = make()
    outcome = SOLVERS[solver](program, np.array(start), TIGHT)
    check(program, outcome, 1e-8)
    loose = 1e-3 if name == "curved valley in a disc" else 2e-5 if "equality" in name else 1e-6
    np.testing.assert_allclose(outcome.x, x, atol=loose)
    for key, value in known.items():
        np.testing.assert_allclose(getattr(outcome, key), value, atol=1e-6)


@EVERY
def test_multipliers_say_what_the_optimum_gains_by_a_bound(solver: str) -> None:
    def optimum(bound: float) -> Outcome:
        program = hs71()
        program.row_lower[1] = bound
        return SOLVERS[solver](program, np.array([1.0, 5.0, 5.0, 1.0]), TIGHT)

    h = 1e-3
    jacobian = (optimum(25 + h).objective - optimum(25 - h).objective) / (2 * h)
    assert jacobian == pytest.approx(-optimum(25.0).multipliers[1], rel=1e-6)


@EVERY
def test_steps_into_where_nothing_is_defined_are_shortened(solver: str) -> None:
    # log and sqrt have no values below 0, where the first full step leads
    program = Formula(
        lambda x: x[0] - 1e-2 * ca.log(x[0]) + x[1], lambda x: ca.sqrt(x[1]) - x[0] / 4, n=2, row_lower=0.1
    )
    outcome = SOLVERS[solver](program, np.array([3.0, 4.0]), TIGHT)
    check(program, outcome, 1e-8)


@EVERY
def test_a_start_where_nothing_is_defined_is_said_so(solver: str) -> None:
    program = Formula(lambda x: ca.log(x[0]) ** 2, n=1)
    outcome = SOLVERS[solver](program, np.array([-1.0]), Settings())
    assert (outcome.is_solved, outcome.status) == (False, "the start has values that are not finite")


@EVERY
def test_what_cannot_be_is_not_called_solved(solver: str) -> None:
    program = Formula(
        lambda x: x[0], lambda x: ca.vertcat(ca.sumsqr(x), x[0]), n=2, row_lower=[-9, 3], row_upper=[1, 9]
    )
    outcome = SOLVERS[solver](program, np.array([0.3, 0.2]), Settings(iterations=200))
    assert not outcome.is_solved
    assert outcome.status == "no feasible point was found nearby"
    assert outcome.violation > 0.1


@EVERY
def test_the_least_violation_is_found_with_the_rows_that_are_in_the_way(solver: str) -> None:
    # x must be within 1 and beyond 3; what is asked of y can be had
    program = Formula(
        lambda x: x[0], lambda x: ca.vertcat(x[0], x[0], x[1]), n=2, row_lower=[-1, 3, 2], row_upper=[1, np.inf, 2]
    )
    program.scales = np.array([10.0, 10.0, 1.0])
    short = min_sum_violation(program, np.zeros(2), Settings(), SOLVERS[solver])
    assert short.total == pytest.approx(2.0, abs=1e-4)
    assert set(short.rows.tolist()) <= {0, 1}
    assert np.abs(short.amounts).sum() == pytest.approx(20.0, abs=1e-3)
    assert all(amount > 0 if row == 0 else amount < 0 for row, amount in zip(short.rows, short.amounts, strict=True))


def test_elastic_programs_have_the_derivatives_that_they_say() -> None:
    elastic = MinSumViolation(hs71(), np.array([1.0, 5.0, 5.0, 1.0]))
    x, h = elastic.start + 0.1, 1e-6
    step = h * np.eye(elastic.n)
    differences = [np.subtract(*(elastic.value(x + sign * each)[1] for sign in (1, -1))) / (2 * h) for each in step]
    np.testing.assert_allclose(jacobian(elastic, x), np.transpose(differences), atol=1e-7)
    jacobians = [np.subtract(*(elastic.value(x + sign * each)[0] for sign in (1, -1))) / (2 * h) for each in step]
    np.testing.assert_allclose(elastic.jacobian(x)[0], jacobians, atol=1e-8)


# Motions


@cache
def motions(name: str) -> tuple[NonlinearProgram, np.ndarray]:
    two = torsor.library.two_link() if name == "two-link-time" else torsor.library.slide_link()
    starts, ends = ([0, -2.0], [1.0, -1.0]) if name == "two-link-time" else ([0.1, 0.6], [np.pi / 4, -np.pi / 4])
    objective = motion.Time() if name == "two-link-time" else [motion.Time(weight=0.99), motion.Effort(weight=0.01)]
    conditions = [motion.Start(q=starts, v=0.0), motion.End(q=ends, v=0.0), motion.Torques(upper=10.0)]
    problem = motion.MotionProblem(two, motion.Phase((0.1, 2.0), points=8), objective, conditions)
    return problem.program, problem.guess()


@pytest.mark.parametrize(("name", "optimum"), [("two-link-time", 0.40541661947), ("slide-link", 0.85307530958)])
def test_all_solvers_find_the_same_motion(name: str, optimum: float) -> None:
    program, start = motions(name)
    for solve in SOLVERS.values():
        outcome = solve(program, start, Settings())
        check(program, outcome, 1e-6)
        assert outcome.objective == pytest.approx(optimum, abs=1e-6)


@EVERY
def test_a_warm_start_takes_fewer_iterations(solver: str) -> None:
    program, start = motions("two-link-time")
    cold = SOLVERS[solver](program, start, Settings())
    known = Settings(multipliers=cold.multipliers, bound_multipliers=cold.bound_multipliers)
    warm = SOLVERS[solver](program, cold.x, known)
    check(program, warm, 1e-6)
    assert warm.iterations < cold.iterations
    assert warm.objective == pytest.approx(cold.objective, abs=1e-6)


@EVERY
def test_every_iteration_is_seen_and_logged(solver: str) -> None:
    program, start = motions("two-link-time")
    seen = list[tuple[Iteration, np.ndarray]]()
    outcome = SOLVERS[solver](program, start, Settings(watch=lambda iteration, x: seen.append((iteration, x.copy()))))
    assert [each for each, _ in seen] == outcome.log
    assert [each.number for each in outcome.log] == list(range(outcome.iterations + 1))
    for (iteration, x), (_, before) in zip(seen[1:], seen, strict=False):
        f, rows = program.value(x)
        assert (iteration.objective, iteration.violation) == (f, largest_violation(program, x, rows))
        assert iteration.step == np.abs(x - before).max()


@EVERY
@pytest.mark.parametrize("by", ["Ctrl-C", "an error"])
def test_a_stopped_search_gives_the_best_so_far(by: str, solver: str, ctrl_c: Callable[[], None]) -> None:
    program, start = motions("two-link-time")
    seen = list[tuple[float, float, np.ndarray]]()

    def watch(iteration: Iteration, x: np.ndarray) -> None:
        seen.append((max(iteration.violation - 1e-6, 0.0), iteration.objective, x.copy()))
        if iteration.number == 5:
            if by == "Ctrl-C":
                ctrl_c()
            else:
                raise StoppedError

    outcome = SOLVERS[solver](program, start, Settings(watch=watch))
    best = min(seen, key=lambda each: each[:2])
    assert (outcome.status, outcome.is_solved, len(seen)) == ("stopped", False, 6)
    assert outcome.objective == best[1]
    assert np.array_equal(outcome.x, best[2])


class Interrupted:
    """A program during whose evaluation Ctrl-C is pressed."""

    def __init__(self, program: NonlinearProgram, calls: int, ctrl_c: Callable[[], None]):
        self._program, self._calls, self._ctrl_c = program, calls, ctrl_c

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._calls -= 1
        if self._calls == 0:
            self._ctrl_c()
        return self._program.jacobian(x)


@EVERY
def test_ctrl_c_within_an_evaluation_loses_nothing(solver: str, ctrl_c: Callable[[], None]) -> None:
    program, start = motions("two-link-time")
    outcome = SOLVERS[solver](Interrupted(program, 6, ctrl_c), start, Settings())
    assert outcome.status == "stopped"
    assert len(outcome.log) >= 2
    held = [each.objective for each in outcome.log if each.violation <= 1e-6]
    assert outcome.objective == min(held) if held else outcome.violation == min(each.violation for each in outcome.log)


@EVERY
def test_an_error_of_who_watches_is_not_swallowed(solver: str) -> None:
    def watch(iteration: Iteration, x: np.ndarray) -> None:
        raise RuntimeError("no room left")

    with pytest.raises(RuntimeError, match="no room left"):
        SOLVERS[solver](hs71(), np.array([1.0, 5.0, 5.0, 1.0]), Settings(watch=watch))


@EVERY
def test_limits_of_time_and_iterations_end_the_search(solver: str) -> None:
    program, start = motions("two-link-time")
    outcome = SOLVERS[solver](program, start, Settings(iterations=3))
    assert (outcome.status, outcome.iterations) == ("stopped at the iteration limit", 3)
    outcome = SOLVERS[solver](program, start, Settings(seconds=0.0))
    assert (outcome.status, len(outcome.log)) == ("stopped at the time limit", 1)


@EVERY
def test_bad_starts_and_bounds_are_refused(solver: str) -> None:
    with refused(argument="start", allowed="4 finite numbers"):
        SOLVERS[solver](hs71(), np.zeros(3), Settings())
    with refused(argument="start", what="not finite"):
        SOLVERS[solver](hs71(), np.full(4, np.nan), Settings())
    program = hs71()
    program.lower[2] = 9.0
    with refused(what="variable 2", allowed="lower <= upper"):
        SOLVERS[solver](program, np.ones(4), Settings())


class Counted:
    """A program that counts its evaluations."""

    def __init__(self, program: NonlinearProgram):
        self._program = program
        self.points = {"value": list[bytes](), "jacobian": list[bytes]()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def value(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.points["value"].append(x.tobytes())
        return self._program.value(x)

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.points["jacobian"].append(x.tobytes())
        return self._program.jacobian(x)


@EVERY
def test_what_is_known_at_a_point_is_not_computed_again(solver: str) -> None:
    program, start = motions("two-link-time")
    counted = Counted(program)
    outcome = SOLVERS[solver](counted, start, Settings())
    assert outcome.is_solved
    for points in counted.points.values():
        assert all(before != after for before, after in pairwise(points))
        assert len(points) <= 2 * outcome.iterations + 10


@EVERY
def test_more_equations_than_variables_print_nothing(solver: str, capfd: pytest.CaptureFixture[str]) -> None:
    both = Formula(lambda x: x[0] ** 2, lambda x: ca.vertcat(x[0], 2 * x[0]), n=1, row_lower=1.0, row_upper=1.0)
    assert not SOLVERS[solver](both, np.zeros(1), Settings()).is_solved
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@EVERY
def test_random_starts_lead_to_the_same_optimum(solver: str) -> None:
    program, start = motions("two-link-time")
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = start + rng.normal(scale=0.5, size=start.shape)
        x[-1] = rng.uniform(0.5, 2.0)
        assert SOLVERS[solver](program, x, Settings()).objective == pytest.approx(0.40541661947, abs=1e-5)
