"""The output-error method recovers parameters from positions and forces alone, with exact derivatives."""

from contextlib import nullcontext

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.errors import ModelWarning
from torsor.identification import Measurements, output_error
from torsor.identification.output_error import _Problem

ROBOT = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8, smooth=0.05)
ROBOT = ROBOT.with_friction("joint2", 0.3, 0.4, smooth=0.05)
T = np.arange(4000) * 1e-3


def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w, phase = 2 * np.pi * np.array([0.25, 0.75, 1.25]), np.random.default_rng(3).uniform(0, 6, size=(3, 2))
    size, angle = np.array([0.8, 0.5, 0.3])[:, None], w[:, None] * T[:, None, None] + phase
    q = (size * np.sin(angle)).sum(axis=1)
    v = (w[:, None] * size * np.cos(angle)).sum(axis=1)
    return q, v, -((w**2)[:, None] * size * np.sin(angle)).sum(axis=1)


MOTION = motion()
TAU = ROBOT.inverse_dynamics(*MOTION)
TRUE = ROBOT.inertial.base().values


def test_derivatives_of_windows_are_those_of_finite_differences() -> None:
    found = torsor.identify(ROBOT, (*MOTION, TAU))
    at = 20 * np.arange(3)[:, None] + np.arange(21)
    problem = _Problem(ROBOT, found, MOTION[0][at], TAU[at], 1e-3)
    states, beta = problem.first_states(), found.values
    x, D = states, np.zeros((3, 4, 4 + len(beta)))
    D[:, :, :4] = np.eye(4)
    d = 0.1 * np.ones(len(beta))

    def end(states: np.ndarray, d: np.ndarray) -> np.ndarray:
        return problem._stepped(states, D, TAU[at[:, 0]], TAU[at[:, 1]], d)[0]

    _, exact = problem._stepped(x, D, TAU[at[:, 0]], TAU[at[:, 1]], d)
    h = 1e-6
    for k in range(4):
        change = h * np.eye(4)[k]
        np.testing.assert_allclose(exact[..., k], (end(x + change, d) - end(x - change, d)) / (2 * h), atol=1e-8)
    for k in range(len(beta)):
        change = h * np.eye(len(beta))[k]
        np.testing.assert_allclose(exact[..., 4 + k], (end(x, d + change) - end(x, d - change)) / (2 * h), atol=1e-8)
    assert problem.rows(states, beta).shape == (3, 21, 2, 16)


@pytest.mark.parametrize(
    ("every", "part", "most"), [(4, 0.3, 0.2), pytest.param(1, 0.15, 0.05, marks=pytest.mark.slow)]
)
def test_bias_by_noise_of_encoders_falls_far_below_that_of_least_squares(every: int, part: float, most: float) -> None:
    rng = np.random.default_rng(1)
    t, shape = T[::every], TAU[::every].shape
    q, tau = MOTION[0][::every] + 5e-4 * rng.normal(size=shape), TAU[::every] + 0.05 * rng.normal(size=shape)
    first = torsor.identify(ROBOT, Measurements.from_positions(t, q, tau, cutoff=30.0))
    found = output_error(first, t, q, tau, window=100 // every)
    assert np.linalg.norm(found.values - TRUE) < part * np.linalg.norm(first.values - TRUE)
    assert np.abs((found.values - TRUE) / found.deviations).max() < 4
    assert np.abs(found.values - TRUE).max() < most
    np.testing.assert_allclose(found.settings["encoder_noise"], 5e-4, rtol=0.1)
    assert found.settings["estimator"] == "output error"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_arms_of_six_and_seven_joints_with_friction_lose_the_bias_by_noise(name: str) -> None:
    """Of predicted forces. Least squares of a Panda have mass matrices that are not positive definite, so that the
    better estimate cannot be simulated with a controller by them: a warning says so.
    """
    arm = getattr(torsor.library, name)()
    for joint, size in zip(arm.joints, (8, 8, 5, 2, 2, 1, 1), strict=False):
        arm = arm.with_friction(joint.name, coulomb=0.3 * size, viscous=0.5 * size, smooth=0.05)
    t, rng = np.arange(2000) * 2e-3, np.random.default_rng(5)
    low, high = (np.clip(x, -2.0, 2.0) for x in (arm.lower, arm.upper))
    w = 2 * np.pi * np.array([0.2, 0.5, 0.9, 1.3])[:, None] * rng.uniform(0.8, 1.2, size=(4, arm.nv))
    angle = w * t[:, None, None] + rng.uniform(0, 6, size=w.shape)
    far = (high - low) / 2 * np.array([0.4, 0.25, 0.15, 0.1])[:, None]
    exact = (low + high) / 2 + (far * np.sin(angle)).sum(axis=1), (far * w * np.cos(angle)).sum(axis=1)
    exact = *exact, -(far * w**2 * np.sin(angle)).sum(axis=1)
    forces = arm.inverse_dynamics(*exact)
    size = np.sqrt(np.mean(forces**2, axis=0))
    q, tau = exact[0] + 3.5e-4 * rng.normal(size=forces.shape), forces + 0.01 * size * rng.normal(size=forces.shape)
    data = Measurements.from_positions(t, q, tau, 30.0)
    first = torsor.identify(arm, data)
    warned = pytest.warns(ModelWarning, match="are filtered positions") if name == "panda" else nullcontext()
    with warned:
        without_bias = torsor.identify(arm, data, instruments="simulation")
    estimates = first, without_bias, output_error(first, t, q, tau)
    squares, instruments, likely = (
        float((np.sqrt(np.mean((each.predict(*exact) - forces) ** 2, axis=0)) / size).max()) for each in estimates
    )
    assert instruments < 0.4 * squares and likely < 0.4 * squares


FIRST = torsor.identify(ROBOT, (*MOTION, TAU))
REFUSED = [
    (lambda: output_error(ROBOT, T, MOTION[0], TAU), "start"),
    (lambda: output_error(FIRST, T**2, MOTION[0], TAU), "times are not equally spaced"),
    (lambda: output_error(FIRST, T, MOTION[0][:, :1], TAU), "q"),
    (lambda: output_error(FIRST, T[:60], MOTION[0][:60], TAU[:60]), "1 windows of 50 steps"),
    (lambda: output_error(FIRST, T, MOTION[0], TAU, window=2), "window"),
    (
        lambda: output_error(torsor.identify(ROBOT, (*MOTION, TAU + 0.1), friction=["offset"]), T, MOTION[0], TAU),
        "output error does not support this model",
    ),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()
