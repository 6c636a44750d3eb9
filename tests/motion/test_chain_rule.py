"""The chain rule from nodes to variables for several kinds of splines, and kernels from the cache."""

import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.compiler import cache
from torsor.motion.transcription import node_kernels
from torsor.motion.transcription.program import Program

ENDS = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
PHASES = {
    "alike": motion.Phase((0.1, 2.0), points=7),
    "own splines": motion.Phase((0.1, 2.0), points=8, degree=5, own={"joint1": motion.Spline.uniform(6, 3)}, nodes=23),
    "known duration": motion.Phase(0.6, knots=[0.2, 0.3, 0.8], degree=4),
    "two phases": [motion.Phase((0.1, 0.7), points=6), motion.Phase((0.1, 1.0), knots=[0.1, 0.8])],
}


def program(phases: object, robot: torsor.Robot | None = None) -> motion.MotionProblem:
    costs = [motion.Time(weight=2.0), motion.Effort(weight=0.3)]
    robot = robot or torsor.library.two_link()
    return motion.MotionProblem(robot, phases, costs, [*ENDS, motion.Torques(upper=10.0)])


def dense(made: Program, x: np.ndarray) -> np.ndarray:
    """Return the gradient of f and the derivatives of all rows, (1 + m, x)."""
    gradient, entries = made.jacobian(x)
    J = np.zeros((made.m, made.n))
    np.add.at(J, made.structure, entries)
    return np.vstack([gradient, J])


@pytest.mark.parametrize("phases", PHASES.values(), ids=PHASES)
def test_derivatives_are_those_of_values(phases):
    problem = program(phases)
    made, rng = problem.program, np.random.default_rng(1)
    x = np.clip(problem.guess() + 0.05 * rng.normal(size=made.n), made.lower, made.upper)
    multipliers, step = rng.normal(size=made.m), 1e-5

    def values(x: np.ndarray) -> np.ndarray:
        f, rows = made.value(x)
        return np.array([f, *rows])

    def central(function, eye):
        # Fourth order: the error is that of rounding, 1e-11 of the values.
        ahead, behind, far, farther = (function(x + k * step * eye) for k in (1, -1, 2, -2))
        return (8 * (ahead - behind) - (far - farther)) / (12 * step)

    J = dense(made, x)
    by_differences = np.stack([central(values, each) for each in np.eye(made.n)], axis=1)
    np.testing.assert_allclose(J, by_differences, atol=1e-8 * np.abs(J).max())
    weights = np.array([0.7, *multipliers])
    H = made.hessian(x, multipliers, 0.7)
    by_differences = np.stack([central(lambda x: weights @ dense(made, x), each) for each in np.eye(made.n)])
    np.testing.assert_allclose(H, by_differences, atol=1e-8 * np.abs(H).max())
    assert (H == H.T).all() or np.abs(H - H.T).max() < 1e-14 * np.abs(H).max()
    touched = np.zeros((made.n, made.n), dtype=bool)
    touched[made.hessian_structure] = True
    assert not H[~(touched | touched.T)].any()


def test_a_hessian_is_linear_in_its_weight_also_below_zero():
    problem = program(PHASES["own splines"])
    made, rng = problem.program, np.random.default_rng(2)
    x, multipliers = problem.guess() + 0.05 * rng.normal(size=made.n), rng.normal(size=made.m)
    one, other = made.hessian(x, multipliers, 0.7), made.hessian(x, -multipliers, -0.7)
    np.testing.assert_allclose(one, -other, atol=1e-13 * np.abs(one).max())


def test_kernels_that_are_kept_give_the_same_bits_and_trace_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))

    def found(robot):
        monkeypatch.setattr(node_kernels, "_COMPILED", {})  # as in another process
        problem = program(PHASES["own splines"], robot)
        made, x = problem.program, problem.guess()
        return [*made.value(x), *made.jacobian(x), made.hessian(x, np.ones(made.m), 1.0)], problem

    first, problem = found(torsor.library.two_link())
    assert cache.info().kernels == 12  # three kernels with their patterns, of rows and of integrals
    assert "derivatives" in vars(problem.node._quantities["tau"])
    again, problem = found(torsor.library.two_link())
    assert "derivatives" not in vars(problem.node._quantities["tau"])
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    other, _ = found(torsor.library.slide_link())  # the same terms of another robot
    assert np.abs(other[1] - first[1]).max() > 1e-3


def test_values_of_one_place_are_computed_once():
    made = program(PHASES["alike"]).program
    x = program(PHASES["alike"]).guess()
    assert made.value(x)[1] is made.value(x.copy())[1]
    assert made.jacobian(x)[1] is made.jacobian(x.copy())[1]
    with pytest.raises(ValueError, match="read-only"):
        made.value(x)[1][0] = 1.0
    assert made.value(x + 1e-3)[1] is not made.value(x)[1]
