"""Least squares of violations of some rows, subject to the others."""

import casadi as ca
import numpy as np

from torsor.optimisation.feasibility import SquaredPenalty, min_squared_violation
from torsor.optimisation.program import Formula, Settings


def _arm():
    """Return an arm of two links of 1 m whose hand is to be at (3, 0), its elbow bent by 0.5 rad or more."""

    def rows(x):
        hand = ca.vertcat(ca.cos(x[0]) + ca.cos(x[0] + x[1]), ca.sin(x[0]) + ca.sin(x[0] + x[1]))
        return ca.vertcat(hand, x[1])

    lower, upper = np.array([3.0, 0.0, 0.5]), np.array([3.0, 0.0, 2.0])
    program = Formula(lambda x: x[0] ** 2, rows, n=2, row_lower=lower, row_upper=upper)
    return program, np.array([True, True, False]), np.ones(3, dtype=bool)


def test_an_arm_comes_as_near_as_it_can():
    program, soft, kept = _arm()
    found = min_squared_violation(program, np.array([0.3, 1.0]), Settings(), soft, kept)
    hand = program.value(found.x)[1][:2] * program.scales[:2]
    assert found.is_solved
    assert abs(found.x[1] - 0.5) < 1e-5
    assert abs(np.hypot(*hand) - 2 * np.cos(0.25)) < 1e-5
    assert abs(hand[1]) < 0.01


def test_its_derivatives_are_those_of_its_values():
    program, soft, kept = _arm()
    soften, x, h, multipliers = (
        SquaredPenalty(program, soft, kept),
        np.array([0.4, 0.7]),
        1e-5,
        np.array([0.0, 0.0, 2.0]),
    )
    rows, columns = soften.structure

    def lagrangian_slope(x):
        gradient, entries = soften.jacobian(x)
        return gradient + np.bincount(columns, entries * multipliers[rows], minlength=2)

    for way in np.eye(2):
        ahead, behind = x + h * way, x - h * way
        assert abs(soften.jacobian(x)[0] @ way - (soften.value(ahead)[0] - soften.value(behind)[0]) / (2 * h)) < 1e-7
        change = (lagrangian_slope(ahead) - lagrangian_slope(behind)) / (2 * h)
        np.testing.assert_allclose(soften.hessian(x, multipliers, 1.0) @ way, change, atol=1e-7)
