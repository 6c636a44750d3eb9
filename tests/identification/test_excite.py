"""Excitations are better than random motions, stay within limits, and are equal for equal seeds."""

import sys

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import excite
from torsor.identification.excitation.design import CRITERIA

CHAIN = torsor.library.planar_chain(2)
LIMITS = {"lower": [-1.5, -1.0], "upper": [1.5, 2.0], "velocity": [3.0, 4.0], "acceleration": 15.0}


def conditions_of_random_motions(
    robot: torsor.Robot, lower: np.ndarray, upper: np.ndarray, speed: np.ndarray
) -> np.ndarray:
    """Condition numbers of random series of five harmonics, each as large as range and speed allow."""
    rng, base, t = np.random.default_rng(5), robot.inertial.base(), np.arange(200) * 0.05
    found = []
    for _ in range(20):
        C = rng.normal(size=(11, robot.nv))
        C[0] = 0.0
        q, v, _ = torsor.identification.Excitation(robot, 10.0, C, 1.0, 1.0)(t)
        C *= np.minimum((upper - lower) / 2 / np.abs(q).max(axis=0), speed / np.abs(v).max(axis=0))
        C[0] = (lower + upper) / 2
        random = torsor.identification.Excitation(robot, 10.0, C, 1.0, 1.0)
        found.append(np.linalg.cond(robot.inertial.regressor(*random(t))[..., base.columns].reshape(-1, len(base))))
    return np.array(found)


def test_the_condition_number_of_the_stanford_arm_improves_several_times() -> None:
    robot = torsor.library.stanford()
    lower, upper = np.array([-2, -2, 0.2, -2, -2, -2]), np.array([2, 2, 1.0, 2, 2, 2])
    speed = np.array([2, 2, 1, 3, 3, 3])
    motion = excite(robot, 10.0, 5, lower=lower, upper=upper, velocity=speed, iterations=90)
    assert motion.condition < 0.5 * motion.start_condition
    assert motion.condition < 0.5 * np.median(conditions_of_random_motions(robot, lower, upper, speed))
    q, v, a = motion(np.linspace(0, 10, 40001))
    assert np.all(q >= lower)
    assert np.all(q <= upper)
    assert np.all(np.abs(v) <= speed)
    rows = robot.inertial.regressor(*motion(np.arange(100) * 0.1))[..., robot.inertial.base().columns].reshape(600, -1)
    assert np.linalg.cond(rows) == pytest.approx(motion.condition, rel=0.1)
    for each in (v, a):  # it starts and ends at rest
        assert np.abs(each[[0, -1]]).max() < 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_all_limits_hold_between_the_samples_too(criterion: str) -> None:
    effort = np.array([45.0, 15.0])
    motion = excite(CHAIN, 3.0, 4, criterion=criterion, effort=effort, iterations=60, **LIMITS)
    q, v, a = motion(np.linspace(0, 3, 30001))
    assert np.all(q >= LIMITS["lower"])
    assert np.all(q <= LIMITS["upper"])
    assert np.all(np.abs(v) <= LIMITS["velocity"])
    assert np.all(np.abs(a) <= LIMITS["acceleration"])
    assert np.all(np.abs(CHAIN.inverse_dynamics(q, v, a)) <= effort * (1 + 1e-4))


def test_velocities_and_accelerations_are_derivatives_of_positions() -> None:
    motion = excite(CHAIN, 3.0, 3, iterations=3, **LIMITS)
    h, t = 1e-4, np.linspace(0, 3, 50)
    np.testing.assert_allclose((motion.at(t + h).q - motion.at(t - h).q) / (2 * h), motion.at(t).v, atol=1e-5)
    np.testing.assert_allclose((motion.at(t + h).v - motion.at(t - h).v) / (2 * h), motion.at(t).a, atol=1e-4)
    reference = torsor.control.reference(CHAIN, motion.law)
    for found, expected in zip(reference(t), motion(t), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_equal_seeds_give_equal_motions() -> None:
    first, again, other = (excite(CHAIN, 3.0, 3, iterations=5, seed=seed, **LIMITS) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coefficients, again.coefficients)
    assert not np.array_equal(first.coefficients, other.coefficients)


def test_the_determinant_criterion_lowers_the_volume_of_uncertainty() -> None:
    base, t = CHAIN.inertial.base(), np.arange(60) * 0.05

    def volume(motion: torsor.identification.Excitation) -> float:
        rows = CHAIN.inertial.regressor(*motion(t))[..., base.columns].reshape(-1, len(base))
        return -float(np.linalg.slogdet(rows.T @ rows)[1])

    still, moved = (excite(CHAIN, 3.0, 4, criterion="determinant", iterations=k, **LIMITS) for k in (0, 60))
    assert volume(moved) < volume(still) - 1.0


def test_an_interrupted_search_returns_the_best_motion_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["torsor.identification.excitation.excite"]
    step, count = module.Descent.step, iter(range(100))

    def interrupted(self) -> bool:
        if next(count) == 5:
            raise KeyboardInterrupt
        return bool(step(self))

    monkeypatch.setattr(module.Descent, "step", interrupted)
    motion = excite(CHAIN, 3.0, 3, **LIMITS)
    assert motion.status == "interrupted"
    assert np.isfinite(motion.condition)


def test_one_joint_is_enough() -> None:
    robot = torsor.library.planar_chain(1)
    motion = excite(robot, 2.0, 3, lower=-1.0, upper=1.0, effort=20.0, iterations=30)
    assert motion.condition <= motion.start_condition
    assert np.abs(robot.inverse_dynamics(*motion(np.linspace(0, 2, 5000)))).max() <= 20.0


def test_known_parameters_need_no_excitation() -> None:
    motion = excite(CHAIN, 3.0, 3, among=["link2.*"], iterations=20, **LIMITS)
    assert motion.condition < excite(CHAIN, 3.0, 3, iterations=20, **LIMITS).condition


ELASTIC = CHAIN.with_motor("joint2", 1e-3, carrier="link1", stiffness=100.0)
REFUSED = [
    (lambda: excite(None), "robot"),
    (
        lambda: excite(CHAIN),
        "joint1",
    ),
    (lambda: excite(CHAIN, **{**LIMITS, "lower": 2.5}), "joint1"),
    (lambda: excite(CHAIN, **{**LIMITS, "upper": [1.0]}), "upper"),
    (lambda: excite(CHAIN, **{**LIMITS, "velocity": 0.0}), "velocity"),
    (lambda: excite(CHAIN, 0.0, **LIMITS), "period"),
    (lambda: excite(CHAIN, None, **LIMITS), "period"),
    (lambda: excite(CHAIN, seed=-1, **LIMITS), "seed"),
    (lambda: excite(CHAIN, 1.0, 1, **LIMITS), "harmonics"),
    (lambda: excite(CHAIN, criterion="trace", **LIMITS), "criterion"),
    (lambda: excite(CHAIN, iterations=-1, **LIMITS), "iterations"),
    (lambda: excite(CHAIN, effort=1e-3, **LIMITS), "none of 30 random motions is within the limits"),
    (
        lambda: excite(torsor.library.two_link(), among=["link1.Jxx"], **LIMITS),
        "no motion excites any of the unknown parameters",
    ),
    (lambda: excite(torsor.library.quadruped()), "positions with quaternions are not supported"),
    (lambda: excite(ELASTIC, lower=-1.0, upper=1.0), "joint 'joint2' is elastic"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()
