"""Intervals have the coverage that they claim, outliers do not move robust estimates, instruments remove bias."""

from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import Measurements

ROBOT = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8).with_friction("joint2", 0.3, 0.4)
TRUE = ROBOT.inertial.base().matrix @ ROBOT.inertial.values
T = np.arange(8000) * 1e-3
TORQUE = 0.1  # noise of the torque sensors, N m


def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A motion of three harmonics in each joint, with its rates in closed form."""
    w, phase = 2 * np.pi * np.array([0.25, 0.625, 1.0]), np.random.default_rng(3).uniform(0, 6, size=(3, 2))
    size, angle = np.array([0.8, 0.5, 0.3])[:, None], w[:, None] * T[:, None, None] + phase
    q = (size * np.sin(angle)).sum(axis=1)
    v = (w[:, None] * size * np.cos(angle)).sum(axis=1)
    return q, v, -((w**2)[:, None] * size * np.sin(angle)).sum(axis=1)


MOTION = motion()
TAU = ROBOT.inverse_dynamics(*MOTION)


def measured(rng: np.random.Generator, encoder: float, cutoff: float) -> Measurements:
    q = MOTION[0] + encoder * rng.normal(size=TAU.shape)
    return Measurements.from_positions(T, q, TAU + TORQUE * rng.normal(size=TAU.shape), cutoff)


CASES = {
    "torque noise alone": (0.0, 10.0, None),
    "torque noise alone, filtered": (0.0, 10.0, 20.0),
    "encoders of 2e-5 rad, filtered": (2e-5, 30.0, 20.0),
    "encoders of 1e-4 rad, filtered": (1e-4, 10.0, 20.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_95_percent_intervals_cover_the_truth_in_93_to_97_percent_of_200_repeats(case: str) -> None:
    encoder, cutoff, bandwidth = CASES[case]
    rng, inside = np.random.default_rng(12), []
    for _ in range(200):
        found = torsor.identify(ROBOT, measured(rng, encoder, cutoff), bandwidth=bandwidth)
        inside.append(np.abs(found.values - TRUE) < 1.96 * found.deviations)
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(inside, axis=0).min() > 0.88  # of the 200 of each parameter


CROSSED = np.array([[1.0, 0.7], [0.7, 1.0]]) * TORQUE**2  # covariance of the noise of both joints


def test_deviations_for_noise_of_both_joints_are_those_of_its_covariance() -> None:
    """Least squares with white noise of covariance C in each sample has B^-1 (sum of Z^T C Z) B^-1 (Zellner 1962)."""
    rng, few = np.random.default_rng(5), slice(0, None, 4)
    motion, tau = [each[few] for each in MOTION], TAU[few]
    found = torsor.identify(ROBOT, (*motion, tau + rng.multivariate_normal([0, 0], CROSSED, size=len(tau))))
    counted = found.measurements.weights > 0
    Z = ROBOT.inertial.regressor(*motion)[..., found.base.columns] * counted[..., None]
    back = np.linalg.inv(np.einsum("tjb,tjc->bc", Z, Z))
    exact = back @ np.einsum("tjb,jk,tkc->bc", Z, CROSSED, Z, optimize=True) @ back
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diagonal(exact)), rtol=0.06)
    white = np.sqrt(np.diagonal(back)) * TORQUE  # as if the joints had noise of their own
    assert np.abs(white / np.sqrt(np.diagonal(exact)) - 1).max() > 0.1


@pytest.mark.slow
def test_intervals_cover_the_truth_for_noise_of_both_joints() -> None:
    rng, few, inside = np.random.default_rng(5), slice(0, None, 4), []
    motion, tau = [each[few] for each in MOTION], TAU[few]
    for _ in range(200):
        found = torsor.identify(ROBOT, (*motion, tau + rng.multivariate_normal([0, 0], CROSSED, size=len(tau))))
        inside.append(np.abs(found.values - TRUE) < 1.96 * found.deviations)
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(inside, axis=0).min() > 0.9


def drift(rng: np.random.Generator, count: int, correlation: float) -> np.ndarray:
    """Noise of both torque sensors with e_t = correlation e_(t-1) + white noise, from its stationary state."""
    noise = rng.normal(size=(count, 2)) * np.sqrt(1 - correlation**2)
    noise[0] /= np.sqrt(1 - correlation**2)
    for k in range(1, count):
        noise[k] += correlation * noise[k - 1]
    return TORQUE * noise


DRIFTS = [(0.0, 1000, 8, 60), (0.95, 1000, 8, 60)]
SLOW_DRIFTS = [(0.5, 1000, 4, 200), (0.9, 2000, 1, 200), (0.95, 1000, 4, 200), (0.95, 2000, 1, 200)]
SLOW_DRIFTS += [(0.98, 1000, 4, 200), (0.98, 2000, 1, 200), (0.95, 8000, 1, 200)]


@pytest.mark.parametrize(
    ("correlation", "count", "every", "repeats"),
    [*DRIFTS, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW_DRIFTS)],
)
def test_intervals_cover_the_truth_for_noise_that_drifts(
    correlation: float, count: int, every: int, repeats: int
) -> None:
    rng, few, inside = np.random.default_rng(12), slice(0, count * every, every), []
    motion, tau = [each[few] for each in MOTION], TAU[few]
    for _ in range(repeats):
        found = torsor.identify(ROBOT, (*motion, tau + drift(rng, len(tau), correlation)), friction=())
        inside.append(np.abs(found.values - TRUE) < 1.96 * found.deviations)
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(inside, axis=0).min() > 0.85


def test_deviations_for_noise_that_drifts_are_those_of_its_covariance() -> None:
    """Least squares with noise of covariance C in time has the covariance B^-1 Z^T C Z B^-1."""
    rng, few = np.random.default_rng(5), slice(0, None, 4)
    motion, tau = [each[few] for each in MOTION], TAU[few]
    found = torsor.identify(ROBOT, (*motion, tau + drift(rng, len(tau), 0.95)), friction=())
    Z = ROBOT.inertial.regressor(*motion)[..., found.base.columns] * (found.measurements.weights > 0)[..., None]
    back = np.linalg.inv(np.einsum("tjb,tjc->bc", Z, Z))
    steps = np.arange(len(tau))
    C = TORQUE**2 * 0.95 ** np.abs(steps[:, None] - steps)
    exact = back @ sum(Z[:, j].T @ C @ Z[:, j] for j in range(2)) @ back
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diagonal(exact)), rtol=0.35)
    assert found.deviations.sum() == pytest.approx(np.sqrt(np.diagonal(exact)).sum(), rel=0.2)
    assert 30 < found.lag < 120  # 0.95^58 is 0.05


def test_the_report_states_correlation_that_is_too_long_for_the_log() -> None:
    rng = np.random.default_rng(0)
    noise = np.convolve(rng.normal(size=2400), np.hanning(400), "valid")[:2000, None] * [0.01, 0.01]
    found = torsor.identify(ROBOT, (*(each[:2000] for each in MOTION), TAU[:2000] + noise), friction=())
    assert found.lag == 25 and "they may be too small" in found.report()


def test_white_noise_is_recognised_and_coloured_noise_is_too() -> None:
    rng = np.random.default_rng(0)
    assert torsor.identify(ROBOT, measured(rng, 0.0, 10.0)).lag == 0
    coloured = torsor.identify(ROBOT, measured(rng, 1e-4, 30.0))
    assert coloured.lag > 0
    assert "residuals are correlated over" in coloured.report()
    white = torsor.identify(ROBOT, measured(np.random.default_rng(0), 1e-4, 30.0), noise="white")
    assert white.lag == 0


def test_the_filter_leaves_noise_white_and_equations_true() -> None:
    rng = np.random.default_rng(0)
    data = Measurements(*MOTION, TAU, times=T)
    found = torsor.identify(ROBOT, data, bandwidth=20.0)
    np.testing.assert_allclose(found.values, TRUE, rtol=0, atol=1e-9)
    assert len(found.measurements) == 8000 // 25 - 7
    noisy = torsor.identify(
        ROBOT, Measurements(*MOTION, TAU + TORQUE * rng.normal(size=TAU.shape), times=T), bandwidth=20.0
    )
    assert noisy.lag == 0
    np.testing.assert_allclose(noisy.rms, TORQUE / 5, rtol=0.15)  # one in 25 samples is left
    assert noisy.validate(Measurements(*MOTION, TAU, times=T)).rms.max() < 0.02


def test_a_gap_in_the_times_divides_the_filter() -> None:
    times = T + np.where(np.arange(8000) >= 4000, 3.0, 0.0)
    found = torsor.identify(ROBOT, Measurements(*MOTION, TAU, times=times), bandwidth=20.0)
    assert len(found.measurements) == 2 * (4000 // 25 - 7)
    np.testing.assert_allclose(found.values, TRUE, rtol=0, atol=1e-9)


@pytest.mark.parametrize("robust", ["huber", "bisquare"])
def test_outliers_hardly_move_robust_estimates(robust: str) -> None:
    rng = np.random.default_rng(4)
    tau = TAU + TORQUE * rng.normal(size=TAU.shape)
    clean = torsor.identify(ROBOT, (*MOTION, tau))
    same = torsor.identify(ROBOT, (*MOTION, tau), robust=robust)
    np.testing.assert_allclose(same.deviations, clean.deviations, rtol=0.1)  # 95 % efficient: 2.6 % wider
    outliers = rng.uniform(size=TAU.shape) < 0.03
    struck = tau + outliers * rng.uniform(5.0, 20.0, size=TAU.shape)
    plain = torsor.identify(ROBOT, (*MOTION, struck))
    found = torsor.identify(ROBOT, (*MOTION, struck), robust=robust)
    miss = np.abs(found.values - TRUE) / clean.deviations
    assert miss.max() < (6.0 if robust == "huber" else 4.0)
    assert np.linalg.norm(miss) < 0.3 * np.linalg.norm((plain.values - TRUE) / clean.deviations)
    assert (found.deviations < 0.5 * plain.deviations).all()


SEEDS = [pytest.param(1, id="1 seed"), pytest.param(6, id="6 seeds", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("given", [MOTION, "simulation"], ids=["reference", "simulation"])
def test_instruments_remove_the_bias_of_noise_in_the_motion(given: Any, seeds: int) -> None:
    """Positions with 0.5 mrad and a high cutoff: noise in accelerations makes inertias too small in least squares."""
    biases = []
    for instruments in (None, given):
        errors = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            q = MOTION[0] + 5e-4 * rng.normal(size=TAU.shape)
            data = Measurements.from_positions(T, q, TAU + TORQUE * rng.normal(size=TAU.shape), 30.0, trim=False)
            found = torsor.identify(ROBOT, data, instruments=instruments)
            errors.append(found.values - TRUE)
        biases.append(np.linalg.norm(np.mean(errors, axis=0)[:2]))  # of the inertias of both links
    assert biases[1] < (0.1 if seeds > 1 else 0.25) * biases[0]
    assert np.abs(errors[0] / found.deviations).max() < 5


def test_without_noise_instruments_change_nothing() -> None:
    found = torsor.identify(ROBOT, (*MOTION, TAU), instruments=tuple(1.01 * each for each in MOTION))
    np.testing.assert_allclose(found.values, TRUE, rtol=0, atol=1e-8)


REFUSED = [
    (
        lambda: torsor.identify(ROBOT, (*MOTION, TAU), robust="median"),
        "robust",
    ),
    (lambda: torsor.identify(ROBOT, (*MOTION, TAU), noise="pink"), "noise"),
    (lambda: torsor.identify(ROBOT, (*MOTION, TAU), instruments="reference"), "instruments"),
    (
        lambda: torsor.identify(ROBOT, (*MOTION, TAU), instruments="simulation"),
        "simulated instruments need the times of the samples",
    ),
    (lambda: torsor.identify(ROBOT, (*MOTION, TAU), instruments=MOTION[0]), "instruments"),
    (lambda: torsor.identify(ROBOT, (*MOTION, TAU), instruments=[x[1:] for x in MOTION]), "numbers of samples are"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()
