"""Segments of people: masses from motion and ground forces, for simulated people whose masses are known."""

import numpy as np
import pytest

import torsor
from torsor.errors import ModelError
from torsor.human.measured import MarkerSet, MeasuredDynamics, MeasuredGait, MeasuredMotion, Segments, identify_segments
from torsor.human.measured.inverse_dynamics import residual_wrench

RATE, SECONDS = 50, 8.0


def _altered(body, seed, size=0.15):
    """Return a body of the same mass with segments of other masses, alike on both sides."""
    rng, pi = np.random.default_rng(seed), body.parameters()
    factors = {}
    for k, link in enumerate(body.links):
        name = link.name.removeprefix("left_").removeprefix("right_")
        factors.setdefault(name, 1 + size * rng.uniform(-1, 1))
        pi[10 * k : 10 * k + 10] *= factors[name]
    pi[: 10 * len(body.links)] *= body.mass / pi[: 10 * len(body.links) : 10].sum()
    return body.with_parameters(pi)


def _exercise(body, true, noise=0.0, seed=0):
    """Return a gait of the given body: gymnastics of all joints, with the ground forces that the true body needs."""
    rng, t = np.random.default_rng(seed), np.arange(0, SECONDS, 1 / RATE)
    q, v, a = np.zeros((3, len(t), body.nv))
    middle, half = (np.clip(each, -1.0, 1.0) for each in ((body.lower + body.upper) / 2, (body.upper - body.lower) / 2))
    middle[:6], half[:6] = 0.0, 0.3
    for _ in range(3):
        w, phase = rng.uniform(1.0, 7.0, body.nv), rng.uniform(0, 6, body.nv)
        size = half / 3
        angle = np.outer(t, w) + phase
        q += size * np.sin(angle)
        v += size * w * np.cos(angle)
        a -= size * w**2 * np.sin(angle)
    q += middle
    need = true.inverse_dynamics(q, v, a)[:, :6]
    J = true.jacobian(q, "right_foot")[:, :, :6]
    wrench = np.linalg.solve(np.swapaxes(J, 1, 2), need[..., None])[..., 0]
    wrench += noise * rng.normal(size=wrench.shape) * [0.1, 0.1, 0.1, 1.0, 1.0, 1.0]
    external = body.wrench_at(q, "right_foot", wrench[:, :3], wrench[:, 3:], axes="local")
    tau = body.inverse_dynamics(q, v, a, external)
    motion = MeasuredMotion(body, MarkerSet({}), t, q, np.zeros((len(t), 0)), t >= 0, t >= 0)
    residual = residual_wrench(body, q, tau)
    weight = body.mass * 9.81
    dynamics = MeasuredDynamics(body.coordinate_names, t, q, v, a, tau, *residual, weight, None, external)
    gait = MeasuredGait(motion, body.mass, dynamics)
    gait.__dict__["valid"] = np.ones(len(t), dtype=bool)
    return gait


@pytest.fixture(scope="module")
def body():
    return torsor.library.human(1.80, 80.0)


@pytest.mark.slow
def test_masses_of_a_simulated_person_are_found_within_their_intervals(body):
    true = _altered(body, 3)
    found = identify_segments(_exercise(body, true, noise=5.0))
    assert isinstance(found, Segments)
    errors, before = [], []
    for name in found.names:
        own = true.link(name).mass
        given, value, deviation = found.masses[name]
        errors.append((value - own) / deviation)
        before.append(abs(given - own) > 3 * abs(value - own))
    assert np.sqrt(np.mean(np.square(errors))) < 2.0
    assert found.after[0] < 0.2 * found.before[0]
    assert abs(found.body.mass - body.mass) < 1e-2
    assert found.mass("right_thigh")[0] == pytest.approx(found.mass("left_thigh")[0], rel=1e-2)


@pytest.mark.slow
def test_exact_forces_of_the_tables_change_nothing(body):
    found = identify_segments(_exercise(body, body, noise=0.01), symmetric=False)
    for given, value, _ in found.masses.values():
        assert value == pytest.approx(given, rel=2e-2)


def test_mistakes_are_named(body):
    t = np.arange(5) / 100
    motion = MeasuredMotion(body, MarkerSet({}), t, np.zeros((5, 55)), np.zeros((5, 0)), t >= 0, t >= 0)
    with pytest.raises(ModelError, match="no ground forces"):
        identify_segments(MeasuredGait(motion, 80.0))
    with pytest.raises(ModelError, match="measured_gait"):
        identify_segments(body)
    with pytest.raises(ModelError, match="spread"):
        identify_segments(MeasuredGait(motion, 80.0), spread=0.0)
