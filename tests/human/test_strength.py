"""Strength curves follow the published law and are twice differentiable; fatigue follows its closed-form solution."""

import math

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.human import (
    Backpack,
    Fatigue,
    JointLoads,
    Standing,
    StrengthCurves,
    fatigued,
    joint_loads,
    joint_strength,
    walking,
)
from torsor.human.body.strength import (
    AGES,
    BLEND_VELOCITY,
    CURVED_JOINTS,
    MAX_CURVE_FACTOR,
    MIN_CURVE_FACTOR,
    SEXES,
    TRANSITION_HALF_WIDTH,
    Curve,
)
from torsor.human.terms.forces import Strengths
from torsor.human.terms.problem import sampled

BODY = torsor.library.human()
GROUPS = [(sex, age) for sex in SEXES for age in AGES]
CURVES = [
    pytest.param(curve, id=f"{sex}-{age}-{joint}-{way}")
    for sex, age in GROUPS
    for joint in CURVED_JOINTS
    for way, curve in zip(("extend", "flex"), StrengthCurves(sex, age).of(BODY, joint), strict=True)
]


def _law(curve: Curve, q: float, v: float) -> float:
    """Return the torque of the law as published."""
    _, c2, c3, c4, c5, c6 = curve
    if v >= 0:
        factor = (2 * c4 * c5 + v * (c5 - 3 * c4)) / (2 * c4 * c5 + v * (2 * c5 - 4 * c4))
    else:
        factor = (2 * c4 * c5 - v * (c5 - 3 * c4)) / (2 * c4 * c5 - v * (2 * c5 - 4 * c4)) * (1 - c6 * v)
    return float(curve.peak * math.cos(c2 * (q - c3)) * factor)


@pytest.mark.parametrize("curve", CURVES)
def test_strength_at_rest_and_at_the_two_characteristic_velocities(curve: Curve) -> None:
    speeds = np.array([0.0, curve.slow, curve.fast])
    np.testing.assert_allclose(curve.torque(curve.angle, speeds), curve.peak * np.array([1.0, 0.75, 0.5]), rtol=1e-14)


@pytest.mark.parametrize("curve", CURVES)
def test_curves_equal_the_law_away_from_rest_and_from_the_limits(curve: Curve) -> None:
    compared = 0
    for q in np.linspace(-0.8, 2.2, 13):
        for v in np.linspace(-9.0, 9.0, 37):
            angle, speed = math.cos(curve.width * (q - curve.angle)), _law(curve, curve.angle, v) / curve.peak
            if (
                abs(v) >= BLEND_VELOCITY
                and angle > MIN_CURVE_FACTOR + TRANSITION_HALF_WIDTH
                and MIN_CURVE_FACTOR + TRANSITION_HALF_WIDTH < speed < MAX_CURVE_FACTOR - TRANSITION_HALF_WIDTH
            ):
                assert curve.torque(q, v) == pytest.approx(_law(curve, q, v), rel=1e-12)
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("curve", CURVES)
def test_curves_stay_within_their_limits_and_peak_at_their_angle(curve: Curve) -> None:
    q, v = np.meshgrid(np.linspace(-4.0, 4.0, 161), np.linspace(-60.0, 60.0, 241))
    factor = curve.torque(q, v) / curve.peak
    assert factor.min() >= MIN_CURVE_FACTOR**2 * (1 - 1e-12) and factor.max() <= MAX_CURVE_FACTOR * (1 + 1e-12)
    still = curve.torque(q[0], 0.0)
    assert still.max() <= curve.peak * (1 + 1e-12) and abs(q[0][still.argmax()] - curve.angle) <= 0.05


@pytest.mark.parametrize("curve", CURVES)
def test_first_and_second_derivatives_agree_with_differences_and_are_continuous(curve: Curve) -> None:
    x = ca.SX.sym("x", 2)
    torque = curve.torque(x[0], x[1]) / curve.peak
    hessian, gradient = ca.hessian(torque, x)
    made = ca.Function("made", [x], [ca.densify(ca.vertcat(torque, gradient, ca.vec(hessian)))])

    def at(q: float, v: float) -> np.ndarray:
        return np.asarray(made([q, v])).ravel()

    # Transitions between formulas: ends of the blend, of the lower limits and of the upper limit.
    speeds = np.linspace(-20.0, 20.0, 40001)
    levels = (MIN_CURVE_FACTOR + TRANSITION_HALF_WIDTH, MAX_CURVE_FACTOR - TRANSITION_HALF_WIDTH)
    seams = [
        -BLEND_VELOCITY,
        BLEND_VELOCITY,
        *(speeds[k] for level in levels for k in _crossings(curve.at_speed(speeds), level)),
    ]
    turns = [curve.angle + sign * math.acos(MIN_CURVE_FACTOR + TRANSITION_HALF_WIDTH) / curve.width for sign in (-1, 1)]
    for q, v in [*((curve.angle + 0.3, v) for v in seams), *((q, 1.0) for q in turns), (0.4, 2.0), (0.1, -3.0)]:
        for k, (dq, dv) in enumerate(((1e-5, 0.0), (0.0, 1e-5))):
            after, before = at(q + dq, v + dv), at(q - dq, v - dv)
            slopes = (after - before) / 2e-5
            np.testing.assert_allclose(slopes[0], at(q, v)[1 + k], atol=1e-7)
            np.testing.assert_allclose(slopes[1:3], at(q, v)[3 + 2 * k : 5 + 2 * k], atol=0.01)
            near = at(q + dq / 100, v + dv / 100) - at(q - dq / 100, v - dv / 100)
            assert np.abs(near[3:]).max() < 1e-3  # a kink of the gradient would give far more


def _crossings(values: np.ndarray, level: float) -> np.ndarray:
    return np.flatnonzero(np.diff(np.sign(values - level)))


def test_numbers_and_symbols_agree() -> None:
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    joint = StrengthCurves("female", "middle").of(torsor.library.human(1.65, 62.0, "female"), "knee_flexion")
    limits = ca.Function("limits", [q, v], list(joint.limits(q, v)))
    for angle, speed in [(0.0, 0.0), (1.2, -0.1), (2.3, 8.0), (0.5, -12.0)]:
        np.testing.assert_allclose(
            [float(each) for each in limits(angle, speed)], joint.limits(angle, speed), rtol=1e-13
        )


@pytest.mark.parametrize("joint", CURVED_JOINTS)
def test_strength_is_proportional_to_mass_times_height_without_the_load(joint: str) -> None:
    q, v = np.linspace(-0.3, 0.5, 5), np.linspace(-3.0, 3.0, 5)
    usual = np.array(joint_strength(torsor.library.human(), f"left_{joint}", q, v))
    body = torsor.library.human(1.9, 95.0)
    other = np.array(joint_strength(body, f"left_{joint}", q, v))
    np.testing.assert_allclose(other, usual * 1.9 * 95.0 / (1.741 * 73.0), rtol=1e-13)
    loaded = np.array(joint_strength(Backpack(20.0).on(body), f"left_{joint}", q, v))
    np.testing.assert_array_equal(loaded, other)
    assert (other[0] < 0).all() and (other[1] > 0).all()


def test_peaks_of_young_men_are_those_of_the_table() -> None:
    found = [curve.peak for joint in CURVED_JOINTS for curve in StrengthCurves().of(torsor.library.human(), joint)]
    np.testing.assert_allclose(
        found, np.array([0.161, 0.113, 0.163, 0.087, 0.095, 0.033]) * 73.0 * 9.81 * 1.741, rtol=1e-14
    )


def test_extension_is_negative_and_weaker_at_higher_velocity() -> None:
    body = torsor.library.human()
    least, most = joint_strength(body, "right_knee_flexion", 1.0, [-4.0, 0.0, 4.0])
    assert least[0] > least[1]  # extends fast: less
    assert most[2] < most[1]  # flexes fast: less
    assert most[0] > most[1]  # eccentric flexion is stronger


def test_other_coordinates_have_their_effort_limits_and_unknown_names_raise() -> None:
    body = torsor.library.human()
    least, most = joint_strength(body, "right_shoulder_flexion", np.zeros((2, 3)), 1.0)
    assert least.shape == (2, 3) and (most == 100.0).all() and (least == -100.0).all()
    with refused(value="tail", allowed="tx"):
        joint_strength(body, "tail", 0.0, 0.0)
    with refused(value="elbow_flexion", allowed="right_hip_flexion"):
        StrengthCurves().of(body, "elbow_flexion")
    with refused(argument="age", allowed="'young', 'middle', 'old'"):
        StrengthCurves(age="ripe")
    with refused(argument="curves", allowed="a torsor"):
        walking(curves=True)  # type: ignore[arg-type]


def test_curves_and_factors_are_data_of_the_constraint() -> None:
    body, factors = torsor.library.human(1.7, 70.0), {"left_knee_flexion": 0.5}
    term = Strengths(body=body, support=Standing(), curves=StrengthCurves("female"), strength=factors)
    table = term.data(np.zeros(2))["strength curves"].reshape(2, 2, 3, 2, 6)
    for side, whole in enumerate((1.0, 0.5)):
        knee = np.array(StrengthCurves("female").of(body, "knee_flexion"))
        np.testing.assert_allclose(table[0, side, 1], knee * [whole, 1, 1, 1, 1, 1], rtol=1e-14)
    np.testing.assert_array_equal(table[0], table[1])


# Fatigue

LAWS = [Fatigue(), Fatigue.of("left_knee_flexion"), Fatigue(0.05, 0.01, 3.0)]


@pytest.mark.parametrize("law", LAWS)
def test_endurance_equals_the_closed_form(law: Fatigue) -> None:
    for load in (0.3, 0.5, 0.9):
        F, R, seconds = law.tiring, law.recovery, law.endurance(load)
        assert seconds == pytest.approx(-math.log(1 - R * (1 - load) / (F * load)) / R, rel=1e-12)
        assert law.after([load] * 7, seconds / 7)[-1] == pytest.approx(load, rel=1e-12)
    threshold = law.recovery / (law.tiring + law.recovery)
    assert law.endurance(0.999 * threshold) == math.inf and law.endurance(1.001 * threshold) < math.inf
    assert law.endurance(1.0) == 0.0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("load", "capacity"), [(0.4, 1.0), (0.8, 0.9), (0.9, 0.5), (0.05, 0.03), (0.0, 0.4)])
def test_capacity_solves_the_law_for_steps_of_any_length(law: Fatigue, load: float, capacity: float) -> None:
    seconds, count = 400.0, 40000
    rate, left = law.recovery * (law.rest if load == 0 else 1.0), capacity

    def slope(c: float) -> float:
        return rate * (1 - c) - law.tiring * min(load, c)

    for _ in range(count):  # midpoint rule
        h = seconds / count
        left += h * slope(left + h / 2 * slope(left))
    once, often = law.after([load], seconds, capacity)[-1], law.after([load] * 64, seconds / 64, capacity)[-1]
    assert once == pytest.approx(often, rel=1e-12) and once == pytest.approx(left, abs=1e-7)


def test_capacity_falls_under_load_and_recovers_at_rest() -> None:
    law = Fatigue.of("right_ankle_flexion")
    left = law.after(np.full(50, 0.4), 4.0)
    assert (np.diff(left) < 0).all() and (law.after(np.full(50, 0.5), 4.0) < left).all() and left.min() > 0
    rests = [law.rested(seconds, left[-1]) for seconds in (0.0, 60.0, 600.0, 6000.0)]
    assert rests[0] == left[-1] and (np.diff(rests) > 0).all() and rests[-1] == pytest.approx(1.0, abs=1e-12)
    assert law.after([0.0], 60.0, left[-1])[0] == pytest.approx(rests[1], rel=1e-14)


def test_repetitions_converge_to_the_fixed_point_of_work_and_rest() -> None:
    loads = JointLoads(0.5, {"right_hip_flexion": np.array([-0.5, 0.3, 0.0]), "spine1_flexion": np.zeros(3)})
    law, found = Fatigue(), fatigued(loads, 400, rest=1.0)
    factors = np.array([each["right_hip_flexion"] for each in found])
    assert (np.diff(factors) < 0).all() and all(each["spine1_flexion"] == 1.0 for each in found)
    # One repetition maps c to a c + b, with the fixed point b / (1 - a).
    fast, slow = (math.exp(-rate * law.recovery) for rate in (law.rest * 2.0, 0.5))
    work = (1 - law.tiring * 0.5 / law.recovery) * (1 - slow)
    a, b = fast * slow, fast * work + 1 - fast
    assert factors[0] == pytest.approx(a + b, rel=1e-13)
    assert factors[399] == pytest.approx(b / (1 - a) + (1 - b / (1 - a)) * a**400, rel=1e-12)
    assert fatigued(loads, 5, laws={"right_hip_flexion": Fatigue(0.1)})[-1]["right_hip_flexion"] < factors[4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Fatigue(recovery=0.0), "recovery"),
        (lambda: Fatigue().after([-0.1], 1.0), "load"),
        (lambda: Fatigue().after([0.1], 1.0, 1.2), "capacity"),
        (lambda: Fatigue().rested(-1.0, 0.5), "rest"),
        (lambda: fatigued(JointLoads(1.0, {}), 0), "repetitions"),
    ],
)
def test_invalid_fatigue_raises(call: object, message: str) -> None:
    with refused(message):
        call()  # type: ignore[operator]


def test_joint_loads_need_a_walk() -> None:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    arm = motion.MotionProblem(
        torsor.library.two_link(), motion.Phase(1.0), motion.Effort(), ends, name="reach"
    ).solve()
    with refused(value="reach", allowed="a result of torsor"):
        joint_loads(arm)


@pytest.mark.slow
def test_a_walk_stays_within_the_curves_and_costs_more_when_fatigued() -> None:
    rested = walking(curves=StrengthCurves()).solve()
    assert rested.is_solved
    loads = joint_loads(rested)
    batch = next(
        each for each in rested.program.batches if any(isinstance(rows, Strengths) for rows in each.kernels.constraints)
    )
    labels = [label for bound in batch.kernels.rows for label in bound.labels]
    rows, body = batch.value(rested.x)[0].reshape(len(batch.s), -1), torsor.library.human()
    at = sampled(rested, batch.s)
    for name in (f"{side}_{joint}" for side in ("right", "left") for joint in CURVED_JOINTS):
        k = body.coordinate_names.index(name)
        torque = rows[:, labels.index(name)] * body.effort_limit[k]
        least, most = joint_strength(body, name, at.q[:, k], at.v[:, k])
        assert (torque > least - 1e-3).all() and (torque < most + 1e-3).all()
        extend, flex = StrengthCurves().of(body, name)
        np.testing.assert_allclose(rows[:, labels.index(f"{name} extends")] * extend.peak, torque - least, atol=1e-9)
        np.testing.assert_allclose(rows[:, labels.index(f"{name} flexes")] * flex.peak, most - torque, atol=1e-9)
        assert np.abs(loads.fractions[name]).max() <= 1 + 1e-4
        assert loads.fractions[name].shape == (2 * (len(batch.s) - 1),)
    factors = fatigued(rested, 300)[-1]
    assert factors["right_ankle_flexion"] == factors["left_ankle_flexion"] < 0.95
    tired = walking(curves=StrengthCurves(), strength=factors).solve()
    assert tired.is_solved and tired.objective > rested.objective
