"""Masses of known shapes, payloads of two runs, the direction of gravity and springs are recovered through noise."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import identify_elasticity, identify_gravity, identify_masses, identify_payload

ARM = torsor.library.ur5()
MASSES = np.array([link.mass for link in ARM.links])


def motion(seed: int = 0, count: int = 400) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, count, 6))


def noisy(robot: torsor.Robot, state: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    tau = robot.inverse_dynamics(*state)
    return tau + share * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(100 + seed).normal(size=tau.shape)


def of_other_density(factors: np.ndarray) -> torsor.Robot:
    scale = np.ones(len(ARM.inertial.values))
    scale[:60] = np.repeat(factors, 10)
    return ARM.inertial.replaced(scale * ARM.inertial.values)


def test_masses_are_recovered_from_any_density() -> None:
    guess = of_other_density(np.array([0.5, 2.0, 1.3, 0.8, 1.5, 0.7]))
    state = motion()
    exact = identify_masses(guess, (*state, ARM.inverse_dynamics(*state)))
    np.testing.assert_allclose(exact.values, MASSES, rtol=1e-8)
    np.testing.assert_allclose(exact.robot.inertial.values[:60], ARM.inertial.values[:60], rtol=1e-7, atol=1e-9)
    found = identify_masses(guess, (*state, noisy(ARM, state, 0.05)))
    assert np.abs((found.values - MASSES) / found.deviations).max() < 4
    held = identify_masses(guess, (*state, noisy(ARM, state, 0.05)), total=MASSES.sum())
    assert held.values.sum() == pytest.approx(MASSES.sum(), rel=1e-12)
    assert (held.deviations <= found.deviations * (1 + 1e-9)).all()
    assert np.abs((held.values - MASSES) / held.deviations).max() < 4


def test_a_payload_is_the_difference_of_two_runs_of_an_unknown_robot() -> None:
    inertia = np.diag([0.02, 0.03, 0.015])
    heavy = ARM.with_payload(ARM.links[-1].name, 3.0, [0.02, 0.05, 0.1], inertia)
    guess = of_other_density(np.full(6, 1.4))
    runs = [(*motion(k), noisy(robot, motion(k), 0.01, k)) for k, robot in ((1, ARM), (2, heavy))]
    found = identify_payload(guess, *runs)
    true = heavy.inertial.values[50:60] - ARM.inertial.values[50:60]
    assert found.link == ARM.links[-1].name
    assert np.abs((found.parameters - true) / found.deviations).max() < 4
    assert found.mass == pytest.approx(3.0, rel=0.02)
    np.testing.assert_allclose(found.com, [0.02, 0.05, 0.1], rtol=0, atol=0.003)
    np.testing.assert_allclose(found.inertia, inertia, rtol=0, atol=0.01)
    assert np.linalg.eigvalsh(found.inertia).min() > 0


def test_the_direction_of_gravity_with_all_base_parameters_unknown() -> None:
    g = 9.81 * np.array([0.2, -0.1, -1.0]) / np.linalg.norm([0.2, -0.1, -1.0])
    state = motion()
    tau = noisy(ARM.with_gravity(g), state, 0.02)
    found = identify_gravity(ARM, (*state, tau))
    assert np.abs(found.axes @ (found.vector - g) / 9.81 / found.deviations).max() < 4
    assert np.linalg.norm(found.vector) == pytest.approx(9.81)
    fitted = torsor.identify(found.robot, (*state, tau))
    np.testing.assert_allclose(fitted.relative_residuals, 2.0, rtol=0.15)


def test_springs_from_two_encoders() -> None:
    rng, t = np.random.default_rng(0), np.linspace(0, 10, 4000)[:, None]
    q, v = np.sin(t * [1.0, 1.7]), [1.0, 1.7] * np.cos(t * [1.0, 1.7])
    bent, rate = 0.01 * np.sin(t * [5.0, 3.0]), 0.01 * np.array([5.0, 3.0]) * np.cos(t * [5.0, 3.0])
    k, d = np.array([8000.0, 3000.0]), np.array([5.0, 2.0])
    force = k * bent + d * rate + 0.5 * rng.normal(size=q.shape)
    found = identify_elasticity(q + bent + 0.001, v + rate, q, v, force)
    for values, true, column in ((found.stiffness, k, 0), (found.damping, d, 1), (found.offset, -0.001 * k, 2)):
        assert np.abs((values - true) / found.deviations[:, column]).max() < 4
    np.testing.assert_allclose(found.rms, 0.5, rtol=0.05)
    with refused(argument="shapes", allowed="finite numbers, all of shape"):
        identify_elasticity(q, v, q, v, force[:, :1])


def test_errors_name_the_mistake() -> None:
    state = motion()
    run = (*state, ARM.inverse_dynamics(*state))
    with refused(argument="link"):
        identify_payload(ARM, run, run, link="hand")
    with refused(what="gravity is zero"):
        identify_gravity(ARM.with_gravity([0, 0, 0]), run)
    with refused(argument="total"):
        identify_masses(ARM, run, total=-1)
