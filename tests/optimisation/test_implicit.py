"""Optima as functions of data: derivatives of held rows and variables, and optima that have none."""

import casadi as ca
import numpy as np
import pytest

from torsor.optimisation import Outcome, Settings, solve_condensed
from torsor.optimisation.implicit import Changes, ImplicitOptimum
from torsor.optimisation.program import Formula


def _optimum(program: Formula, start: list[float]) -> ImplicitOptimum:
    return ImplicitOptimum.of(program, solve_condensed(program, np.array(start), Settings()))


def _program(p: float) -> Formula:
    """A program whose objective, rows, row bound and variable bound depend on p, with a row that is not held."""
    return Formula(
        lambda x: (x[0] - 1) ** 4 + (x[1] - 2) ** 2 + x[2] ** 2 + ca.exp(x[3]) + p * x[0] * x[1],
        lambda x: ca.vertcat(x[0] ** 2 + x[1] ** 2, x[0] + x[2] + 0.1 * x[3] + p**2 * x[1], x[0] * x[1]),
        n=4,
        lower=[-np.inf, -np.inf, -np.inf, -0.5 + p],
        row_lower=[-np.inf, 0.1, -5.0],
        row_upper=[2.0 + p, 0.1, 5.0],
    )


def test_derivatives_are_those_of_optima_solved_again() -> None:
    p, h, start = 0.3, 1e-4, [0.5, 0.5, 0.5, 0.0]
    here = _optimum(_program(p), start)
    x, y = here.x, here.multipliers
    changes = Changes(
        np.array([x[0] * x[1]]),
        np.array([[x[1]], [x[0] + y[1] * 2 * p], [0.0], [0.0]]),
        np.array([[-1.0], [2 * p * x[1]], [0.0]]),
        np.array([[0.0], [0.0], [0.0], [1.0]]),
    )
    ends = [_optimum(_program(p + by), start) for by in (h, -h)]
    moved, residual = here.moved(changes)
    assert residual.max() < 1e-12 and not here.weak.size and not here.flat.size
    np.testing.assert_allclose(moved[:, 0], (ends[0].x - ends[1].x) / (2 * h), atol=1e-7)
    f = [_program(p + by).value(end.x)[0] for by, end in zip((h, -h), ends, strict=True)]
    assert here.objective(changes)[0] == pytest.approx((f[0] - f[1]) / (2 * h), abs=1e-7)


def test_dependent_rows_are_moved_together_but_not_apart() -> None:
    twice = Formula(
        lambda x: ca.sumsqr(x), lambda x: ca.vertcat(x[0] + x[1], 2 * x[0] + 2 * x[1]), n=2, row_lower=[2, 4]
    )
    best, zero = _optimum(twice, [3.0, 0.0]), np.zeros((2, 2))
    rows = np.array([[-1.0, -1.0], [-2.0, 0.0]])  # both bounds, and only the first
    moved, residual = best.moved(Changes(np.zeros(2), zero, rows, zero))
    assert residual[0] < 1e-12 and residual[1] == pytest.approx(0.8)  # the nearest point satisfies neither
    np.testing.assert_allclose(moved[:, 0], [0.5, 0.5], atol=1e-12)


def test_rows_without_multipliers_and_directions_without_curvature_are_found() -> None:
    touching = Formula(lambda x: ca.sumsqr(x - 1), lambda x: x[0], n=2, row_upper=1.0)
    assert _optimum(touching, [0.0, 0.0]).weak.tolist() == [0]
    valley = _optimum(Formula(lambda x: (x[0] + x[1] - 1) ** 2, n=2), [0.0, 0.0])
    np.testing.assert_allclose(np.abs(valley.flat[:, 0]), np.sqrt(0.5), atol=1e-12)


def test_a_saddle_has_no_point() -> None:
    saddle = Formula(lambda x: x[0] ** 2 - x[1] ** 2, n=2, lower=-1.0, upper=1.0)
    flat = Outcome(np.zeros(2), np.zeros(0), np.zeros(2), 0.0, 0, "optimal", True)
    assert ImplicitOptimum.of(saddle, flat).point is None
