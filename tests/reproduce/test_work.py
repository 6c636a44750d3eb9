"""The recursive Lagrangian formulation agrees with the library, and operation counts of the equations are correct."""

import numpy as np
import pytest

from torsor import library
from torsor.reproduce.documents import guarino, work
from torsor.reproduce.equations import lagrange
from torsor.reproduce.equations.counted import count_as_written


@pytest.mark.parametrize("seed", range(4))
def test_lagrangian_forces_and_sensitivities_of_a_random_tree_are_those_of_the_library(seed: int) -> None:
    robot = library.random_tree(7, seed, ("revolute", "prismatic"), extras=False).to(device="casadi")
    q, v, a = np.random.default_rng(seed).normal(size=(3, robot.nv))
    data = lagrange.from_library(robot)
    found = lagrange.sensitivities(data, lagrange.steps(data, q), v, a)
    expected = robot.inverse_dynamics(q, v, a), *robot.derivatives.inverse_dynamics(q, v, a)
    for ours, other in zip(found, expected, strict=True):
        assert np.abs(ours.astype(float) - other).max() < 1e-10 * np.abs(other).max()


def test_a_matrix_product_has_as_many_operations_as_its_nonzero_entries_need() -> None:
    full, sparse = np.full((3, 3), 0.5), np.array([[0.5, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, -1.0]])
    vector = np.full(3, 0.5)
    assert count_as_written(lambda A, x: A @ x, full, vector)[:2] == (9, 6)
    assert count_as_written(lambda A, x: A @ x, sparse, vector)[:2] == (3, 2)
    assert count_as_written(lambda A, x: A @ x - 2 * x**2, full, vector)[:2] == (15, 9)


@pytest.mark.parametrize("name", [work.FORCES, work.SENSITIVITIES])
def test_newton_euler_needs_fewer_operations_than_the_lagrangian_as_written(name: str) -> None:
    for n in (2, 6):
        newton, lagrangian = work.as_written(name, n)
        assert newton.multiplications < lagrangian.multiplications and newton.additions < lagrangian.additions


@pytest.mark.parametrize("n", [2, 7, 30])
def test_the_recursion_of_guarino_has_the_printed_number_of_operations(n: int) -> None:
    assert guarino.as_written(n)[:2] == (309 * n - 162, 268 * n - 138)
