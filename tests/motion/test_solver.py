"""Neighbouring cases, one after the other: each solution is that of the case alone, in fewer iterations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from motion.interpreted import interpreted
from torsor import library, motion
from torsor.motion.many import with_case

ENDS = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)


def _reach(points: int | None = 8) -> motion.MotionProblem:
    phase, limits = motion.Phase((0.1, 2.0), points=points), motion.Torques(upper=10.0)
    costs = motion.Time(), motion.Effort(weight=1e-3)
    return motion.MotionProblem(library.two_link(), phase, costs, [*ENDS, limits])


CHANGES: dict[str, Callable[[float], dict[str, Any]]] = {
    "end": lambda k: {"End.q": [1.0 + 0.01 * k, -1.0]},
    "bound": lambda k: {"Torques.upper": 10.0 + 0.1 * k},
    "weight": lambda k: {"Effort.weight": 1e-3 * (1 + 0.1 * k)},
    "payload": lambda k: {"robot": library.two_link().with_payload("link2", 0.1 + 0.01 * k)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_neighbouring_motions_are_those_of_single_solves_in_fewer_iterations(name: str) -> None:
    problem = _reach()
    solver = motion.Solver(problem, tolerance=1e-8)
    first = solver.solve(CHANGES[name](0))
    for k in range(1, 5):
        case = CHANGES[name](k)
        result = solver.solve(case)
        with interpreted():
            alone = with_case(problem, case, 0).solve("condensed", tolerance=1e-8)
        assert result.status == alone.status == "optimal" and result.max_violation <= 1e-8
        assert result.objective == pytest.approx(alone.objective, rel=1e-6)
        np.testing.assert_allclose(result.outcome.multipliers, alone.outcome.multipliers, atol=1e-4)
        assert result.iterations < 0.7 * first.iterations


def test_a_solved_case_is_solved_again_in_few_iterations() -> None:
    solver = motion.Solver(_reach())
    first = solver.solve()
    assert (
        solver.solve().iterations < first.iterations / 3 and first.objective == _reach().solve_many([{}])[0].objective
    )


def test_the_next_case_after_an_infeasible_one_starts_from_the_last_solution() -> None:
    solver = motion.Solver(_reach())
    first = solver.solve()
    with pytest.raises(motion.MotionError) as error:
        solver.solve({"phase.duration": (0.1, 0.2)})
    assert error.value.conflict
    assert solver.solve({"End.q": [1.01, -1.0]}).iterations < first.iterations


def test_a_far_case_is_solved_from_straight_lines_if_the_last_solution_does_not_help() -> None:
    solver = motion.Solver(_reach())
    solver.solve()
    case = {"End.q": [-1.5, 2.0], "Torques.upper": 3.0}
    with interpreted():
        alone = with_case(_reach(), case, 0).solve("condensed")
    assert pytest.approx(alone.T, rel=1e-5) == solver.solve(case).T


def test_added_control_points_are_kept() -> None:
    solver = motion.Solver(_reach(points=None))
    first, second = solver.solve(), solver.solve({"End.q": [1.001, -1.0]})
    assert second.program.n == first.program.n > _reach(points=None).program.n
    assert second.is_solved and second.iterations < first.iterations


def test_other_solvers_start_from_the_last_solution_too() -> None:
    solver = motion.Solver(_reach(), solver="sqp")
    first, second = solver.solve(), solver.solve({"End.q": [1.001, -1.0]})
    assert second.solver == "sqp" and second.is_solved and second.iterations < first.iterations


def test_a_given_start_replaces_the_last_solution() -> None:
    solver, problem = motion.Solver(_reach()), _reach()
    first = solver.solve()
    case = {"End.q": [1.001, -1.0]}
    from_lines = solver.solve(case, start=with_case(problem, case, 0).guess())
    assert from_lines.iterations > first.iterations / 2
