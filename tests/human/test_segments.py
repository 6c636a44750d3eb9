"""Segments of people: masses from motion and ground forces, for simulated people whose masses are known."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import inertial, parameter_basis
from torsor.human.measured import MarkerSet, MeasuredDynamics, MeasuredGait, MeasuredMotion, identify_segments
from torsor.human.measured.inverse_dynamics import residual_wrench
from torsor.human.measured.segments import CAVEAT, Segments

RATE, SECONDS = 50, 8.0


def _altered(body, seed, spread=0.1):
    """Return a body of the same mass whose segments deviate from the tables as the prior says: P = L (1 + E) L^T."""
    rng, pi, units = np.random.default_rng(seed), body.inertial.values, np.array(parameter_basis())
    for k, link in enumerate(body.links):
        if link.mass > 0:
            L = np.linalg.cholesky(np.einsum("k,kij->ij", pi[10 * k : 10 * k + 10], units))
            E = spread * rng.normal(size=(4, 4))
            pi[10 * k : 10 * k + 10] = inertial(L @ (np.eye(4) + (E + E.T) / 2) @ L.T)
    pi[: 10 * len(body.links)] *= body.mass / pi[: 10 * len(body.links) : 10].sum()
    return body.inertial.replaced(pi)


def _exercise(body, true, noise=0.0, seed=0):
    """Return a gait of the given body: gymnastics of all joints, with the ground forces that the true body needs."""
    rng, t = np.random.default_rng(seed), np.arange(0, SECONDS, 1 / RATE)
    q, v, a = np.zeros((3, len(t), body.nv))
    lower, upper = np.clip(body.lower, -0.6, 0.6), np.clip(body.upper, -0.6, 0.6)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
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
def test_intervals_of_people_drawn_from_the_prior_contain_their_masses(body):
    """People deviate from the tables as the prior says, so that errors over deviations are standard normal."""
    errors, tables, found = [], [], None
    for seed in range(4):
        true = _altered(body, seed)
        masses = {link.name: link.mass for link in true.links}
        found = identify_segments(_exercise(body, true, noise=2.0, seed=seed), symmetric=False)
        for name, (given, value, deviation) in found.masses.items():
            errors.append((value - masses[name]) / deviation)
            tables.append((given - masses[name]) / deviation)
        assert found.after[1] < 0.6 * found.before[1]
    assert 0.8 < np.sqrt(np.mean(np.square(errors))) < 1.2
    assert np.mean(np.abs(errors) < 1.96) > 0.9
    assert np.sqrt(np.mean(np.square(tables))) > 1.4
    assert abs(found.body.mass - body.mass) < 1e-2


@pytest.mark.slow
def test_a_symmetric_person_has_the_same_segments_on_both_sides(body):
    pi = body.inertial.values
    for k, link in enumerate(body.links):
        pi[10 * k : 10 * k + 10] *= {"thigh": 1.1, "shank": 0.9}.get(link.name.partition("_")[2], 1.0)
    true = body.inertial.replaced(pi * np.where(np.arange(len(pi)) < 550, body.mass / pi[:550:10].sum(), 1.0))
    found = identify_segments(_exercise(body, true, noise=2.0))
    for name in ("thigh", "shank", "upper_arm"):
        right, left = (found.mass(f"{side}_{name}")[0] for side in ("right", "left"))
        assert right == pytest.approx(left, rel=1e-2)
    given, value, _ = found.masses["right_thigh"]
    assert value > 1.04 * given
    legs = [f"{side}_{name}" for side in ("right", "left") for name in ("thigh", "shank")]
    assert found.mass(*legs)[1] < sum(found.mass(name)[1] for name in legs)


@pytest.mark.slow
def test_forces_of_a_body_of_the_tables_keep_it_within_its_deviations(body):
    """The truth is the prior: the error of the estimate is smaller than its deviation, which has the prior's too."""
    found = identify_segments(_exercise(body, body, noise=0.01), symmetric=False)
    errors = [(value - given) / deviation for given, value, deviation in found.masses.values()]
    assert np.sqrt(np.mean(np.square(errors))) < 0.8
    assert abs(found.mass("right_thigh")[0] / body.links[8].mass - 1) < 1e-2


def test_masses_with_intervals_say_which_errors_the_intervals_do_not_know(body):
    columns = np.arange(550)
    own = body.inertial.values, columns, 1e-4 * np.eye(550), (1.0, 1.0), (1.0, 1.0), (9, 0), np.ones(6), 1.0
    assert str(Segments(body, body, *own)).splitlines()[-1] == CAVEAT
    assert "systematic errors: acceleration noise" in CAVEAT and "upper arms" in CAVEAT


def test_mistakes_are_named(body):
    t = np.arange(5) / 100
    motion = MeasuredMotion(body, MarkerSet({}), t, np.zeros((5, 55)), np.zeros((5, 0)), t >= 0, t >= 0)
    with refused(what="no ground forces"):
        identify_segments(MeasuredGait(motion, 80.0))
    with refused(argument="gait", allowed="measured_gait"):
        identify_segments(body)
    with refused(argument="spread"):
        identify_segments(MeasuredGait(motion, 80.0), spread=0.0)
