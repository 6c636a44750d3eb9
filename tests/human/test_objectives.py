"""Objectives of walking: values computed by hand, exact derivatives, names, and rejected input."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from references.complex_steps import slopes_along
from refusals import refused
from torsor.cli.predictions.walk import WALK
from torsor.human import Habits, Step, StrengthCurves, joint_strength, passive_torques, walking
from torsor.human.body.coordinates import GLOBAL
from torsor.human.contact.contact_forces import SharedContact, contact_as, contact_forces
from torsor.human.gait.settings import OBJECTIVES
from torsor.human.terms.forces import metres
from torsor.human.terms.objectives import (
    BASAL,
    DRIVING,
    POWER_SMOOTHING,
    SLIPPING_POWER,
    joint_rates,
    margins,
    pendulum_rate,
)
from torsor.human.terms.problem import sampled
from torsor.motion import MotionProblem
from torsor.motion.encoding import decoded, encoded
from torsor.motion.terms.term import Cost

BODY = torsor.library.human()
STIFF = ("spine", "shoulder", "elbow", "pronation", "rotation", "inversion")  # little is traced
FROZEN = {name: 0.0 for name in BODY.coordinate_names if any(part in name for part in STIFF)}
NEW = ("heat", "strength", "balance", "joint loads")


@pytest.fixture(scope="module")
def problem() -> MotionProblem:
    return walking(BODY, frozen=FROZEN, objective=dict.fromkeys(OBJECTIVES, 1.0))


def _term(problem: MotionProblem, name: str) -> Cost:
    return next(each for each in problem.costs if each.title == name)


def _values(problem: MotionProblem, terms: list[Cost], s: float = 0.4) -> np.ndarray:
    """Return values of all symbols of the node: a random motion, and the data of terms at a moment."""
    node, rng = problem.node, np.random.default_rng(5)
    for each in terms:
        each.integrand(node), each.squares(node)  # the data that they use become symbols
    found = 0.2 * rng.normal(size=node.symbols.numel())
    places = {name: at for at, name in enumerate(str(each) for each in ca.vertsplit(node.symbols))}
    given: dict[str, np.ndarray] = {"T": np.array([0.55]), "s": np.array([s])}
    for each in terms:
        given |= {name: values[0] for name, values in each.data(np.array([s])).items()}
    for name, values in given.items():
        for k, value in enumerate(values):
            place = places.get(name if len(values) == 1 else f"{name}_{k}")
            if place is not None:  # the term does not use the data otherwise
                found[place] = value
    for name, value in ({"step width": 0.1} | problem.held).items():  # the speed, and the numbers of the body
        found[places[name]] = value
    return found


def _numbers(problem: MotionProblem, at: np.ndarray, *expressions: ca.SX) -> list[np.ndarray]:
    made = ca.Function("numbers", [problem.node.symbols], [ca.densify(each) for each in expressions], {"cse": True})
    return [np.array(each).ravel() for each in made.call([at])]


def _expression(node: object, term: Cost) -> ca.SX:
    return term.integrand(node) + ca.sumsqr(term.squares(node))  # type: ignore[arg-type]


def test_derivatives_by_motion_and_torques_are_those_of_complex_steps(problem: MotionProblem) -> None:
    """Forces of inverse dynamics are inputs of their own here, whose derivatives have tests elsewhere."""
    node, terms, rng = problem.node, [_term(problem, name) for name in ("heat", "strength")], np.random.default_rng(6)
    at, symbols = _values(problem, terms), node.symbols
    values = ca.vertcat(*(_expression(node, each) for each in terms))
    way = rng.normal(size=symbols.numel())
    gradients = ca.horzcat(*(ca.gradient(each, symbols) for each in ca.vertsplit(values)))
    bent = ca.jtimes(ca.vec(gradients), symbols, way)
    whole = ca.Function("f", [symbols], [values, ca.densify(ca.vec(gradients))], {"cse": True})
    by_value, by_gradient = slopes_along(whole, [at], [way[:, None]])
    J = np.array(whole(at)[1]).reshape(len(terms), -1)
    np.testing.assert_allclose(J @ way, by_value[:, 0], rtol=1e-8)
    found = np.array(ca.Function("b", [symbols], [bent], {"cse": True})(at))[:, 0]
    np.testing.assert_allclose(found, by_gradient[:, 0], rtol=1e-8, atol=1e-8 * np.abs(found).max())


def test_values_are_those_of_the_formulas(problem: MotionProblem) -> None:
    node, terms = problem.node, [_term(problem, name) for name in NEW[:3]]
    at, contact = _values(problem, terms), contact_forces(node)
    slip = ca.vertcat(*(contact.ground_power(side) for side in ("right", "left")))
    values = [ca.vertcat(*(_expression(node, each) for each in terms)), contact.muscle_torques[contact.moving]]
    values += [node.q, node.v, slip, metres(node), margins(node, ca.SX(pendulum_rate(BODY)))]
    found, torques, q, v, ground, (way,), margin = _numbers(problem, at, *values)
    names = [BODY.coordinate_names[k + len(GLOBAL)] for k in contact.moving]
    places = [BODY.coordinate_names.index(name) for name in names]
    rates = joint_rates(BODY)

    def size(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(x**2 + POWER_SMOOTHING**2) - POWER_SMOOTHING)

    P, slips = torques * v[places] / BODY.mass, ground / BODY.mass
    heat = 0.283 * (size(P) + P) / 2 + 1.423 * (size(P) - P) / 2
    held = size(torques * [rates[name] for name in names] / BODY.mass)
    power = (P + heat).sum() + 0.058 * held.sum() + (slips**2).sum() / (2 * SLIPPING_POWER * DRIVING) + BASAL
    assert found[0] == pytest.approx(power / way, rel=1e-12)
    relative = 0.0
    for name, k, torque in zip(names, places, torques, strict=True):
        lower, upper = joint_strength(BODY, name, q[k], v[k], StrengthCurves())
        relative += (torque / (upper if torque > 0 else lower)) ** 2
    assert found[1] == pytest.approx(relative / way, rel=1e-3)  # torques are smoothed near 0
    assert found[2] == pytest.approx((np.log1p(np.exp(-margin / 0.045)) ** 2).sum() / way, rel=1e-6)
    aside = BODY.center_of_mass(q)[0] + BODY.momentum(q, v)[3] / BODY.mass / pendulum_rate(BODY)
    assert margin[0] == pytest.approx(aside + 0.05 + 0.045, abs=1e-12)  # the right side of the right sole
    assert margin[1] > 9  # the left foot carries nothing


def test_head_stability_passive_torques_and_foot_forces_are_those_of_the_body(problem: MotionProblem) -> None:
    node, terms = problem.node, [_term(problem, name) for name in ("head stability", "passive torques")]
    (feet,) = (each for each in problem.conditions if each.title == "foot forces")
    at, contact = _values(problem, terms), contact_forces(node)
    values = [ca.vertcat(*(_expression(node, each) for each in terms)), node.q, node.v, metres(node)]
    values += [feet.rows(node).expression, contact_as(SharedContact, node).force]  # type: ignore[union-attr]
    (head, passive), q, v, (way,), forces, total = _numbers(problem, at, *values)
    turning = BODY.velocity(q, v, "head")[:3]
    assert head == pytest.approx(turning @ turning / way, rel=1e-12)
    relative = (passive_torques(BODY, q, v)[len(GLOBAL) :] / BODY.effort_limit[len(GLOBAL) :])[contact.moving]
    assert passive == pytest.approx(relative @ relative / way, rel=1e-12)
    weight = BODY.mass * float(np.linalg.norm(BODY.gravity))
    np.testing.assert_allclose(forces[:3] + forces[3:], total / weight, rtol=1e-9)
    assert _term(problem, "impact").weight == pytest.approx(1 / pendulum_rate(BODY) ** 2)


@pytest.mark.slow
def test_derivatives_of_whole_nodes_are_those_of_complex_steps(problem: MotionProblem) -> None:
    node, terms, rng = problem.node, [_term(problem, name) for name in NEW], np.random.default_rng(6)
    at = _values(problem, terms)
    expression, symbols = sum(_expression(node, each) for each in terms), node.symbols
    jacobian = node.derivatives(expression)
    hessian = node.second_derivatives(expression)
    whole = ca.Function("f", [symbols], [ca.densify(each) for each in (node.value(expression), jacobian, hessian)])
    u = [k for k, each in enumerate(ca.vertsplit(symbols)) if k < node.u.numel()]
    way = np.zeros((symbols.numel(), 2))
    way[u] = rng.normal(size=(len(u), 2))
    by_value, by_jacobian, _ = slopes_along(whole, [at], [way])
    _, J, H = (np.array(each) for each in whole(at))
    np.testing.assert_allclose(J @ way[u], by_value, rtol=1e-8)
    np.testing.assert_allclose(H @ way[u], by_jacobian, rtol=1e-8, atol=1e-8 * np.abs(H).max())


@pytest.mark.slow
def test_all_objectives_survive_a_file(problem: MotionProblem) -> None:
    again = decoded(encoded(problem))
    assert [each.title for each in again.costs] == [each.title for each in problem.costs]
    s, same = np.linspace(0.0, 1.0, 3), zip(again.costs, problem.costs, strict=True)
    for one, other in same:
        for name, values in other.data(s).items():
            np.testing.assert_allclose(one.data(s)[name], values, rtol=1e-12)


def test_all_objectives_are_terms_of_the_problem(problem: MotionProblem) -> None:
    assert [each.title for each in problem.costs] == [*OBJECTIVES, "effort of activation"]
    habitual = walking(objective=dict.fromkeys(OBJECTIVES, 0.5), habits=Habits())
    assert [each.title for each in habitual.costs] == [*OBJECTIVES, "effort of activation", "posture"]
    loads, *_ = WALK.problem({"objective": [("joint_loads", 0.1)]}).costs  # a word of the command line
    assert (loads.title, loads.weight) == ("joint loads", 0.1)


def test_strength_curves_limit_free_steps_and_divide_the_effort() -> None:
    women = StrengthCurves("female", "old")
    problem = walking(objective={"strength": 2.0}, curves=women)
    (term,) = problem.costs
    limits = next(each for each in problem.conditions if each.title == "strength curves")
    assert term.curves is women and limits.curves is women  # type: ignore[attr-defined,union-attr]


def test_invalid_objectives_are_refused(problem: MotionProblem) -> None:
    with refused(argument="objective", allowed="'joint loads'"):
        walking(objective={"speed": 1.0})
    with refused(argument="weight of 'heat'", allowed="a finite number, 0 or more"):
        walking(objective={"heat": -1})
    with refused(what="no weight is above 0"):
        walking(objective={"heat": 0.0, "balance": 0.0})
    with refused(fix="omit one of them"):
        walking(objective={"energy": 1.0, "balance": 1.0}, planar=True)
    heat = _term(problem, "heat")
    for wrong, words in (
        ({"shortening": -0.1}, "shortening"),
        ({"rates": {"tail": 3.0}}, "tail"),
        ({"rates": {"left_knee_flexion": 0.0}}, "rate of left_knee_flexion"),
    ):
        with refused(words):
            replace(heat, **wrong).check()  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_a_free_walk_weighs_heat_strength_and_joint_loads_within_strength_curves() -> None:
    stiff = {name: 0.0 for name in BODY.coordinate_names if any(part in name for part in (*STIFF, "adduction"))}
    step, weights = Step(), {"heat": 1.0, "strength": 1.0, "joint loads": 0.1}
    given: dict[str, Any] = {"step": step, "planar": True, "frozen": stiff, "objective": weights}
    result = walking(BODY, curves=StrengthCurves(), **given).solve(tolerance=1e-5)
    assert result.is_solved and result.is_feasible
    assert {part.title: part.weight for part in result.parts} == weights
    assert sum(part.weighted for part in result.parts) == pytest.approx(result.objective, rel=1e-9)
    # Torques of the muscles are within the strength at their angle and velocity at all nodes. The times of the nodes
    # are free, so that s T is not the time of a node; the rows are divided by the peak torques.
    at = sampled(result, result.program.batches[0].s)
    own = at.torques - passive_torques(BODY, at.q, at.v)
    for name in (f"{side}_{joint}_flexion" for side in ("right", "left") for joint in ("hip", "knee", "ankle")):
        k = BODY.coordinate_names.index(name)
        lower, upper = joint_strength(BODY, name, at.q[:, k], at.v[:, k], StrengthCurves())
        extend, flex = ((result.max_violation + 1e-9) * curve.peak for curve in StrengthCurves().of(BODY, name))
        assert (own[:, k] >= lower - extend).all() and (own[:, k] <= upper + flex).all()
