"""Inverse optimal control: weights are found again from motions that were made with them, with exact sensitivities."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from base.schemas import faults
from refusals import refused
from torsor import motion
from torsor.base.documents import schema_of
from torsor.motion import Measured, MotionProblem, fit_weights
from torsor.motion.inverse.fitting import balancing_weights
from torsor.motion.inverse.measured import Residuals
from torsor.motion.inverse.weighted_optima import WeightedProgram, cost_groups
from torsor.motion.results.samples import Course
from torsor.optimisation import Iteration, Outcome, Settings, StoppedError, Watch, solve_condensed

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
    seen = Course(arm, truth).at(SHARES).q
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


@pytest.mark.slow
def test_weights_of_many_starts_are_the_same(arm: MotionProblem, data: Measured) -> None:
    rng = np.random.default_rng(4)
    for _ in range(4):
        first = dict(zip(NAMES, rng.dirichlet(np.ones(3)) + 1e-3, strict=True))
        again = fit_weights(arm, data, weights=first)
        assert again.values.sum() == pytest.approx(sum(first.values()), rel=1e-12)
        np.testing.assert_allclose(again.values / again.values.sum(), TRUTH, atol=1e-6)


@pytest.mark.slow
def test_what_the_data_cannot_tell_is_named(arm: MotionProblem, data: Measured) -> None:
    twin = replace(arm.costs[0], weight=2.0, name="twin")  # the same term again
    found = fit_weights(replace(arm, objective=[*arm.costs, twin]), data)
    (unclear,) = found.unclear
    assert unclear.deviation == np.inf and np.isinf(found.deviations["effort"])
    assert "effort^" in str(unclear) and "twin^" in str(unclear)
    together = found.weights["effort"] + 2 * found.weights["twin"]
    assert found.weights["jerk"] / together == pytest.approx(0.4, rel=1e-6)


@pytest.mark.slow
def test_data_that_no_weights_explain_are_reported(arm: MotionProblem) -> None:
    wild = Measured(name="wild", values=np.cos(9 * SHARES)[:, None], shares=SHARES, names=["joint1"])
    with pytest.warns(torsor.ModelWarning, match="the best weights explain only 0 % of the data"):
        found = fit_weights(arm, [wild])
    assert found.explained < 0.1 and found.distances[0] > found.nearest > 0.1
    assert "explained: " in found.report()


def test_a_fit_is_saved_and_read_again(found: motion.WeightFit, tmp_path: Path) -> None:
    for name in ("fit.npz", "fit.json", "fit.csv"):
        found.save(tmp_path / name)
    again = torsor.load_result(tmp_path / "fit.npz")
    assert isinstance(again, motion.WeightFit) and repr(again) == repr(found)
    np.testing.assert_array_equal(again.data_by_weights, found.data_by_weights)
    np.testing.assert_array_equal(again.motion.x, found.motion.x)
    assert again.to_dict() == found.to_dict()
    assert faults(json.loads((tmp_path / "fit.json").read_text()), schema_of("weights")) == []


def test_a_search_is_stopped_by_time_and_by_ctrl_c(
    arm: MotionProblem, data: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dict(zip(NAMES, (0.05, 0.05, 0.9), strict=True))
    assert fit_weights(arm, data, first, iterations=1).status == "stopped at the iteration limit"

    def pressed(self: Watch, iteration: Iteration, x: np.ndarray) -> None:
        self.interrupted = iteration.number == 1
        if self.interrupted:
            raise StoppedError

    monkeypatch.setattr(Watch, "__call__", pressed)
    found = fit_weights(arm, data, first)
    assert found.status == "stopped by Ctrl-C" and found.iterations == 1 and not found.is_solved


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": {"effort": 1.0, "speed": 1.0}}, "weights"),
        ({"weights": {"effort": 1.0}}, "effort, jerk, energy"),
        ({"weights": {"effort": 1.0, "jerk": -1.0, "energy": 1.0}}, "weight of 'jerk'"),
        ({"weights": dict.fromkeys(NAMES, 0.0)}, "weight of 'effort'"),
        ({"groups": {"all": NAMES}}, "give the objective at least two terms"),
        ({"groups": {"one": ["effort"], "two": ["jerk"]}}, "groups"),
        ({"groups": {"one": ["effort"], "two": ["effort", "jerk"]}}, "group 'two' contains 'effort'"),
        ({"solver": "magic"}, "solver"),
        ({"data": []}, "motion.Measured"),
        ({"data": [np.zeros((3, 2))]}, "the data contain array"),
        ({"data": Measured(name="x", values=np.zeros((4, 3)))}, "the values have 3 columns"),
        ({"data": Measured(name="x", values=np.zeros((4, 1)), names=["tail"])}, "tail"),
        ({"data": Measured(name="x", values=np.zeros((4, 1)), phase=1)}, "the data belong to phase 1"),
        ({"data": Measured(name="x", values=np.zeros((4, 1)), scale=0.0)}, "scale"),
    ],
)
def test_invalid_fits_are_refused(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"data": Measured(name="x", values=np.zeros((4, 1)))} | change
    with refused(words):
        fit_weights(_arm(1), **given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "name"),
        ({"of": "heat"}, "of"),
        ({"values": [1.0, 2.0]}, "values"),
        ({"values": [[np.nan], [1.0]]}, "values"),
        ({"shares": [0.0, 0.5, 1.0]}, "shares"),
        ({"shares": [1.0, 0.0]}, "shares"),
        ({"shares": "all"}, "shares"),
    ],
)
def test_invalid_data_are_refused(change: dict[str, Any], words: str) -> None:
    with refused(words):
        Measured(**({"name": "x", "values": np.zeros((2, 1))} | change))


def test_equal_names_uneven_clocks_and_unsolved_results_are_refused() -> None:
    arm = _arm(1)
    both = replace(arm, objective=[arm.costs[0], replace(arm.costs[1], name="effort")])
    with refused(value="effort"):
        fit_weights(both, Measured(name="x", values=np.zeros((4, 1))))
    uneven = replace(arm, phases=motion.Phase(1.0, points=8, nodes=9, clock=1))
    with refused(what="a phase with a clock"):
        fit_weights(uneven, Measured(name="x", values=np.zeros((4, 1))))
    nothing = Outcome(arm.guess(), np.zeros(arm.program.m), np.zeros(arm.program.n), 0.0, 0, "stopped", False)
    with refused(value="arm", allowed="an optimal and feasible result"):
        motion.weight_sensitivities(motion.MotionResult(arm, nothing, "ipopt"))


@pytest.mark.slow
def test_relative_errors_are_those_of_repeated_noisy_data(arm: MotionProblem, data: Measured) -> None:
    rng, noise = np.random.default_rng(8), 0.002  # of the scale: errors of weights are then linear in it
    fits = [
        fit_weights(
            arm,
            replace(data, values=data.values + noise * data.scale * rng.normal(size=data.values.shape)),
            weights=dict(zip(NAMES, TRUTH, strict=True)),
        )
        for _ in range(30)
    ]
    spread = np.std([np.log(each.values) for each in fits], axis=0)
    predicted = np.median([list(each.deviations.values()) for each in fits], axis=0)
    np.testing.assert_allclose(predicted, spread, rtol=0.4)  # thirty fits tell a standard deviation to 13 %
    assert np.median([each.noise for each in fits]) == pytest.approx(noise, rel=0.15)


@pytest.mark.slow
def test_a_weight_that_the_data_want_to_be_zero_ends_at_a_millionth(
    arm: MotionProblem, program: WeightedProgram, truth: np.ndarray
) -> None:
    x = _solved(program, np.array([0.5, 0.5, 0.0]), truth)
    found = fit_weights(arm, Measured(name="no energy", values=Course(arm, x).at(SHARES).q, shares=SHARES, scale=0.01))
    assert found.weights["energy"] < 1e-4
    assert found.weights["effort"] == pytest.approx(found.weights["jerk"], rel=1e-3)


@pytest.mark.slow
def test_references_and_functions_of_nodes_are_data(arm: MotionProblem, program: WeightedProgram) -> None:
    x, values = arm.guess(), np.ones((5, arm.model.robot.nv))
    sets = [motion.Reference(values=values, name="angles", scale=2.0), Measured(name="time", of=_time, values=[[0.4]])]
    residuals = Residuals(arm, sets)
    assert residuals.names == ("angles", "time")
    r, h, way = residuals.value(x), 1e-6, np.linspace(-1.0, 1.0, len(x))
    np.testing.assert_allclose(r[:-1].reshape(5, -1), (Course(arm, x).at(np.linspace(0, 1, 5)).q - 1) / 2, atol=1e-14)
    assert r[-1] == pytest.approx(0.6, abs=1e-15)
    slope = (residuals.value(x + h * way) - residuals.value(x - h * way)) / (2 * h)
    np.testing.assert_allclose(residuals.jacobian(x) @ way, slope, atol=1e-9)


def _time(node: motion.Node) -> Any:
    return node.T


@pytest.mark.slow
def test_angles_alone_cannot_tell_time_from_effort_and_the_duration_can() -> None:
    """Without gravity a slower motion along the same path is optimal for other weights."""
    aims = [motion.Time(weight=0.7), motion.Effort(weight=0.003)]
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    phase = motion.Phase((0.1, 3.0), points=8)
    problem = MotionProblem(torsor.library.two_link(), phase, aims, ends)
    made = problem.solve("condensed", tolerance=1e-9)
    even = replace(problem, objective=[motion.Time(), motion.Effort(weight=0.01)])
    angles = Measured(name="angles", values=made.at(np.linspace(0.0, made.T, 9)).q)
    (unclear,) = fit_weights(even, angles).unclear
    assert unclear.deviation == np.inf and set(unclear.exponents) == {"Time", "Effort"}
    found = fit_weights(even, [angles, Measured(name="duration", of=_time, values=[[made.T]])])
    assert found.weights == pytest.approx({"Time": 0.7, "Effort": 0.3}, abs=1e-6) and not found.unclear
