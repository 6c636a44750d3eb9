"""Inverse optimal control: weights are found again from motions that were made with them, with exact sensitivities."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.motion import Measured, MotionProblem, fit_weights
from torsor.motion.inverse.single_level import balancing_weights
from torsor.motion.inverse.weighted import WeightedProgram, cost_groups
from torsor.motion.results.samples import Moments
from torsor.optimisation import Settings, solve_condensed

NAMES = ("effort", "jerk", "energy")
TRUTH = np.array([0.5, 0.2, 0.3])
SHARES = np.linspace(0.0, 1.0, 12)


def _arm(links: int) -> MotionProblem:
    """Return an arm that reaches; its torque limits are active."""
    aims = [
        motion.Effort(scale=[60.0, 25.0, 10.0][-links:], name="effort"),
        motion.Jerk(weight=1e-4, name="jerk"),
        motion.MechanicalEnergy(weight=0.01, width=1.0, name="energy"),
    ]
    limits = motion.Torques(upper=[[7.5], [27.0, 9.0], [70.0, 25.0, 8.0]][links - 1])
    ends = motion.Start(q=[0.0, 0.5, 0.5][:links], v=0.0), motion.End(q=[1.2, -0.5, 1.0][:links], v=0.0)
    robot, phase = torsor.library.planar_chain(links), motion.Phase(1.0, points=8, nodes=9)
    return MotionProblem(robot, phase, aims, [*ends, limits], name="arm")


@pytest.fixture(scope="module", params=[1, pytest.param(3, marks=pytest.mark.slow)])
def arm(request: pytest.FixtureRequest) -> MotionProblem:
    return _arm(request.param)


@pytest.fixture(scope="module")
def program(arm: MotionProblem) -> WeightedProgram:
    return WeightedProgram(arm, cost_groups(arm, None), TRUTH)


def _solved(program: WeightedProgram, weights: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the optimum for weights, by the solver alone."""
    program.weights = weights
    found = solve_condensed(program, start, Settings(1e-11))
    assert found.is_solved
    return found.x


@pytest.fixture(scope="module")
def truth(arm: MotionProblem, program: WeightedProgram) -> np.ndarray:
    return _solved(program, TRUTH, arm.guess())


@pytest.fixture(scope="module")
def data(arm: MotionProblem, truth: np.ndarray) -> Measured:
    seen = Moments(arm, truth, SHARES).q
    return Measured(name="made with known weights", values=seen, shares=SHARES, scale=0.01)


@pytest.fixture(scope="module")
def found(arm: MotionProblem, data: Measured) -> motion.WeightFit:
    return fit_weights(arm, data, weights={"effort": 0.1, "jerk": 0.8, "energy": 0.1})


@pytest.mark.slow
def test_weights_are_inputs_of_the_same_program(program: WeightedProgram, truth: np.ndarray) -> None:
    own = program.problem
    aims = [replace(each, weight=w * each.weight) for each, w in zip(own.costs, TRUTH, strict=True)]
    whole, program.weights = replace(own, objective=aims).program, TRUTH
    x, y = truth + 0.01, np.linspace(-1.0, 1.0, whole.m)
    for one, other in zip(program.value(x), whole.value(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    for one, other in zip(program.jacobian(x), whole.jacobian(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(program.hessian(x, y, 0.7), whole.hessian(x, y, 0.7), rtol=1e-10, atol=1e-10)
    for one, other in zip(program.structure, whole.structure, strict=True):
        np.testing.assert_array_equal(one, other)


def test_known_weights_are_found_again(arm: MotionProblem, found: motion.WeightFit) -> None:
    assert found.is_solved and found.explained > 1 - 1e-10 and not found.unclear
    assert np.abs(found.motion.outcome.multipliers).max() > 1e-4  # torque limits are active
    np.testing.assert_allclose(found.values, TRUTH, atol=1e-6)
    assert (np.diff(found.history[:, 0]) < 0).all()
    wanted = [w * each.weight for w, each in zip(TRUTH, arm.costs, strict=True)]
    assert [each.weight for each in found.problem.costs] == pytest.approx(wanted, rel=1e-5)


def test_a_search_without_given_weights_starts_near_the_truth(arm: MotionProblem, data: Measured) -> None:
    again = fit_weights(arm, data)
    np.testing.assert_allclose(again.values, TRUTH, atol=1e-6)
    np.testing.assert_allclose(again.history[0, 1:], TRUTH, atol=0.02)  # the single-level start


def test_at_an_exact_optimum_the_gradients_balance_with_the_true_weights(
    program: WeightedProgram, truth: np.ndarray
) -> None:
    np.testing.assert_allclose(balancing_weights(program, truth), TRUTH, atol=1e-6)


def test_sensitivities_are_those_of_optima_solved_again(
    program: WeightedProgram, truth: np.ndarray, found: motion.WeightFit
) -> None:
    exact, h = found.x_by_weights, 1e-4
    assert np.abs(exact @ TRUTH).max() < 1e-9  # a common factor changes nothing
    for k, way in enumerate(np.eye(len(TRUTH))):
        ends = [_solved(program, TRUTH * (1 + sign * h * way), truth) for sign in (-1.0, 1.0)]
        differences = (ends[1] - ends[0]) / (2 * h * TRUTH[k])
        np.testing.assert_allclose(exact[:, k], differences, atol=1e-5 * np.abs(exact).max())
