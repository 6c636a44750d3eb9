"""Optima to rounding, and their exact sensitivity to the objective."""

import casadi as ca
import numpy as np
import pytest

from torsor.optimisation import Outcome, Settings, solve_condensed
from torsor.optimisation.optimum import Optimum, curvature_at, estimated, free_directions, polished
from torsor.optimisation.program import Formula


def _program(e: float = 0.0) -> Formula:
    """An equation, an inequality that is active, one that is not, and a variable at its bound."""
    return Formula(
        lambda x: (x[0] - 1) ** 4 + (x[1] - 2) ** 2 + x[2] ** 2 + ca.exp(x[3]) + 0.3 * x[0] * x[2] + e * x[0] * x[1],
        lambda x: ca.vertcat(x[0] ** 2 + x[1] ** 2, x[0] + x[2] + 0.1 * x[3], x[0] * x[1]),
        n=4,
        lower=[-np.inf, -np.inf, -np.inf, -0.5],
        row_lower=[-np.inf, 0.1, -5.0],
        row_upper=[2.0, 0.1, 5.0],
    )


def _optimum(program: Formula) -> Optimum:
    found = polished(program, solve_condensed(program, np.array([0.5, 0.5, 0.5, 0.0]), Settings(tolerance=1e-6)))
    assert found is not None
    return found


def test_an_optimum_satisfies_its_conditions_to_rounding() -> None:
    program = _program()
    found = _optimum(program)
    gradient, entries = program.jacobian(found.x)
    J = np.zeros((program.m, program.n))
    J[program.structure] = entries
    assert np.abs(gradient + found.multipliers @ J + found.bound_multipliers).max() < 1e-13
    rows = program.value(found.x)[1]
    assert rows[0] == pytest.approx(2.0, abs=1e-13) and rows[1] == pytest.approx(0.1, abs=1e-14)
    assert found.x[3] == -0.5 and found.multipliers[0] > 0 and found.bound_multipliers[3] < 0
    assert found.multipliers[2] == 0 and (found.flat, found.weak) == (0, 0)


def test_the_sensitivity_is_that_of_optima_solved_again() -> None:
    found, h = _optimum(_program()), 1e-4
    moved = found.moved_by(np.array([[found.x[1]], [found.x[0]], [0.0], [0.0]]))[:, 0]
    differences = (_optimum(_program(h)).x - _optimum(_program(-h)).x) / (2 * h)
    np.testing.assert_allclose(moved, differences, atol=1e-8)
    assert np.abs(moved).max() > 0.05


def test_a_wrong_active_set_is_corrected() -> None:
    square = Formula(lambda x: ca.sumsqr(x - ca.DM([1.1, 0.9])), n=2, lower=-1.0, upper=1.0)
    start = solve_condensed(square, np.array([0.0, 0.0]), Settings())
    for x in ([0.95, 1.0], [0.97, 0.85]):  # held where it is free, and free where it is held
        wrong = type(start)(np.array(x), np.zeros(0), np.zeros(2), 0.0, 0, "", True)
        found = polished(square, wrong)
        assert found is not None
        np.testing.assert_allclose(found.x, [1.0, 0.9], atol=1e-14)


def test_optima_that_are_not_unique_or_degenerate_are_counted() -> None:
    valley = Formula(lambda x: (x[0] + x[1] - 1) ** 2, n=2)
    found = polished(valley, solve_condensed(valley, np.zeros(2), Settings()))
    assert found is not None and found.flat == 1
    np.testing.assert_allclose(found.moved_by(np.array([[1.0], [1.0]]))[:, 0], [-0.25, -0.25], atol=1e-12)
    touching = Formula(lambda x: ca.sumsqr(x - 1), lambda x: x[0], n=2, row_upper=1.0)
    at = solve_condensed(touching, np.zeros(2), Settings(tolerance=1e-10))
    held = type(at)(np.ones(2), np.zeros(1), np.zeros(2), 0.0, 0, "", True)
    assert estimated(touching, held).weak == 1


def test_a_saddle_is_no_optimum() -> None:
    saddle = Formula(lambda x: x[0] ** 2 - x[1] ** 2, n=2)
    at = solve_condensed(Formula(lambda x: ca.sumsqr(x), n=2), np.ones(2), Settings())
    assert polished(saddle, at) is None


def test_directions_of_a_corner_are_none() -> None:
    corner = Formula(lambda x: x[0], lambda x: ca.vertcat(x[0], x[0] + x[1]), n=2, row_lower=0.0)
    assert free_directions(corner, np.zeros(2), 1e-6).shape == (2, 0)


@pytest.mark.parametrize(("side", "room", "least"), [(1.0, np.inf, -1.0), (-1.0, np.inf, 0.0), (1.0, 1e-4, 0.0)])
def test_the_curvature_of_a_line_on_a_circle_is_that_of_its_extrema(side: float, room: float, least: float) -> None:
    # x is largest or smallest on the unit circle at (side, 0), with the multiplier -side / 2. The largest is a minimum
    # if y has no room to move.
    circle = Formula(lambda x: x[0], ca.sumsqr, n=2, lower=-room, upper=room, row_lower=1.0, row_upper=1.0)
    circle.lower[0], circle.upper[0] = -np.inf, np.inf
    outcome = Outcome(np.array([side, 0.0]), np.array([-side / 2]), np.zeros(2), side, 0, "optimal", True)
    found = curvature_at(circle, outcome)
    assert found.least == pytest.approx(least, abs=1e-12) and (found.variables, found.active) == (2, 1)
    assert found.is_minimum is (least == 0)
    if found.direction is not None:
        assert np.abs(found.direction).round(12).tolist() == [0.0, 1.0]
