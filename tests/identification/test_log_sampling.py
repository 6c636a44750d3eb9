"""Unequal steps, gaps, rounded time stamps, quantised encoders and delays do not change the results."""

import re
from dataclasses import replace

import numpy as np
import pytest

import torsor
from identification.made_logs import noisy, truth
from torsor.identification import LogMap, Measurements, differentiate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.log import of_arrays
from torsor.identification.logs.preparing import choose, estimate, prepare
from torsor.identification.logs.sampling import sampling_of

ARM = torsor.library.planar_chain(2)
MADE = truth(ARM)
FINE = truth(ARM, rate=5000.0)
NONE = LogMap({}, cutoff=8.0)


def prepared(t, q, tau, given=NONE, v=None, a=None):
    return prepare(ARM, [of_arrays("log", t, q, tau, v, a, ARM)], given)


def at(times, exact):
    """Values of a motion that is sampled much more often, at other times."""
    return np.stack([np.interp(times, FINE.t, x) for x in getattr(FINE, exact).T], axis=1)


def assert_motion(found, part):
    """Velocities and accelerations are those of the sum of sines, to a part of their size."""
    inside = (found.samples.times > 1.0) & (found.samples.times < 7.0)
    for name in ("q", "v", "a"):
        exact = at(found.samples.times[inside], name)
        assert np.abs(getattr(found.samples, name)[inside] - exact).max() < part * np.abs(exact).max(), name


def test_equal_steps_are_used_as_they_are():
    found = prepared(MADE.t, MADE.q, MADE.tau)
    truth_there = Measurements.from_positions(MADE.t, MADE.q, MADE.tau, 8.0)
    assert len(found.notes) == 1 and "64 of 2000 samples are within 1 / cutoff = 0.125 s of an end" in found.notes[0]
    assert np.abs(found.samples.a - truth_there.a).max() < 1e-9
    assert_motion(found, 1e-3)


def test_unequal_steps_are_resampled():
    rng = np.random.default_rng(0)
    t = MADE.t + 0.3 * 0.004 * rng.uniform(-1, 1, len(MADE.t))
    found = prepared(t, at(t, "q"), at(t, "tau"))
    assert "resampled at" in found.notes[0] and "cubic and forces by linear interpolation" in found.notes[0]
    assert_motion(found, 2e-3)


def test_stamps_of_few_digits_are_equal_steps():
    t = np.arange(2400) / 300.0
    found = prepared(np.round(t, 3), at(t, "q"), at(t, "tau"))
    assert re.match("log: time stamps are rounded equal steps of (300|299\\.9).* Hz", found.notes[0])
    assert_motion(found, 2e-3)


def test_gaps_separate_segments_that_are_differentiated_alone():
    kept = np.r_[0:700, 900:2000]
    found = prepared(MADE.t[kept], MADE.q[kept], MADE.tau[kept])
    first, second = (prepared(MADE.t[part], MADE.q[part], MADE.tau[part]) for part in (kept[:700], kept[700:]))
    assert "1 gaps, the first before sample 700: 2 segments" in found.notes[0]
    both = np.concatenate([first.samples.a, second.samples.a])
    assert np.abs(found.samples.a - both).max() < 1e-9 * np.abs(both).max()
    assert_motion(found, 0.02)


def test_rows_without_numbers_are_left_out_only_when_asked(tmp_path):
    q = MADE.q.astype(object)
    q[500:503, 0] = "nan"
    rows = [f"{t},{a},{b},{c},{d}" for t, (a, b), (c, d) in zip(MADE.t, q, MADE.tau, strict=True)]
    log = tmp_path / "log.csv"
    log.write_text("time,q joint1,q joint2,tau joint1,tau joint2\n" + "\n".join(rows))
    columns = {"time": 0, "q": [1, 2], "tau": [3, 4]}
    data = Measurements.load(log, ARM, LogMap(columns, missing="skip", cutoff=8.0))
    assert data.notes[0] == "log.csv: 3 rows lack a signal (first: line 502) and are omitted"
    whole = Measurements.from_positions(MADE.t, MADE.q, MADE.tau, 8.0)
    assert np.abs(data.a - whole.a).max() < 1e-3 * np.abs(whole.a).max()  # the hole is bridged by a cubic


def test_accelerations_come_from_measured_velocities():
    found = prepared(MADE.t, MADE.q, MADE.tau, v=MADE.v)
    assert_motion(found, 1e-3)
    given = prepared(MADE.t, MADE.q, MADE.tau, v=MADE.v, a=MADE.a)
    assert np.array_equal(given.samples.a, MADE.a) and given.cutoff is None


@pytest.mark.parametrize(
    ("noise", "step"), [(1e-3, 0.0), (1e-5, 0.0), (0.0, 2 * np.pi / 1000), (0.0, 2 * np.pi / 65536)]
)
def test_the_chosen_cutoff_is_nearly_the_best(noise, step):
    """The error of the accelerations is at most twice that of the best of all cutoffs, or 0.1 % of them."""
    rng = np.random.default_rng(0)
    q = MADE.q + noise * rng.normal(size=MADE.q.shape)
    q = np.round(q / step) * step if step else q

    def error(cutoff):
        a = differentiate(MADE.t, q, cutoff)[2]
        return np.sqrt(np.mean(((a - MADE.a) / MADE.a.std(axis=0))[300:-300] ** 2))

    best = min(error(cutoff) for cutoff in np.geomspace(1.0, 50.0, 30))
    found = choose([(q, 0.004)])
    assert error(found.value) < max(2 * best, 1e-3)
    if noise:
        assert found.noise == pytest.approx(noise, rel=0.1)
    else:
        assert found.noise == pytest.approx(step / np.sqrt(12), rel=0.3)


def test_noise_of_the_forces_does_not_lower_the_cutoff():
    """A lower one explains them better by chance (1.65 Hz, 2e-3 of the variance), and accelerations half as well."""
    arm, t = torsor.library.planar_chain(1), np.arange(5000) * 2e-3
    q, v, a = (x[:, None] for x in (t + np.sin(3 * t), 1 + 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    tau = arm.inverse_dynamics(q, v, a)
    noisy_tau = tau + 0.02 * tau.std() * np.random.default_rng(4).normal(size=tau.shape)
    log = of_arrays("log", t, np.round(q / 2e-5) * 2e-5, noisy_tau, None, None, arm)
    found = prepare(arm, [log], LogMap({"q": [0]}))
    assert found.notes[0].endswith("from the spectrum")
    assert np.abs(found.samples.a[:, 0] + 9 * np.sin(3 * found.samples.times)).max() < 0.06


def test_the_noise_of_encoders_does_not_bias_the_parameters():
    """With the cutoff that is chosen, parameters from noisy positions are those of the robot, to 1 %."""
    real = ARM
    made = truth(real, rate=500.0)
    tau = real.inverse_dynamics(made.q, made.v, made.a)
    q = np.round(made.q / 1e-3) * 1e-3
    found = prepare(real, [of_arrays("log", made.t, q, tau, None, None, real)], LogMap({}))
    assert found.notes[-2].startswith("cutoff ")
    result = torsor.identify(real, tuple(found.samples[:4]), among=["link*"])
    exact = real.inertial.base(among=["link*"]).values
    assert np.abs(result.values - exact).max() < 0.01 * np.abs(exact).max()


@pytest.mark.parametrize("delay", [-0.012, 0.0, 0.0023, 0.03])
def test_a_delay_of_the_forces_is_estimated_and_corrected(delay):
    t, q, tau = noisy(MADE)
    late = np.stack([np.interp(t - delay, t, x) for x in tau.T], axis=1)
    found = prepared(t, q, late, LogMap({}, cutoff=8.0, delay="estimate"))
    assert abs(found.delay[0] - delay) < 5e-4  # an eighth of a step
    given = prepared(t, q, late, LogMap({}, cutoff=8.0, delay=delay))
    inside = (given.samples.times > 0.5) & (given.samples.times < 7.5)
    rest = given.samples.tau[inside] - at(given.samples.times[inside], "tau")
    assert np.sqrt(np.mean(rest**2, axis=0)).max() < 0.05 * np.abs(tau).max()


@pytest.mark.slow
def test_the_interval_of_a_delay_covers_it():
    """200 repeats, encoders of 1e-5 rad: noise that the filters leave is correlated in time."""
    robot, delay, inside = ARM.with_friction(coulomb=0.5, viscous=0.5), 0.0023, []
    model, late = ForceModel(robot), truth(robot, rate=5000.0)
    kept = slice(20 * 10, None, 20)
    t, q = late.t[kept], late.q[kept]
    exact = np.stack([np.interp(t - delay, late.t, x) for x in robot.inverse_dynamics(*late[1:4]).T], axis=1)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        motion = differentiate(t, q + 1e-5 * rng.normal(size=q.shape), 8.0)
        found = estimate(model, motion, exact + 0.02 * exact.std(axis=0) * rng.normal(size=q.shape), t)
        inside.append(abs(found.value - delay) < 1.96 * found.deviation)
    assert 0.9 <= np.mean(inside) <= 0.98


def test_forces_at_saturation_have_no_weight():
    full = np.quantile(np.abs(MADE.tau[:, 1]), 0.9)
    tau = np.column_stack([MADE.tau[:, 0], np.clip(MADE.tau[:, 1], -full, full)])
    log = of_arrays("log", MADE.t, MADE.q, tau, None, None, ARM)
    marked = replace(log, saturated=np.abs(tau) >= np.array([np.inf, full]))
    weights = prepare(ARM, [marked], NONE).samples.weights
    assert weights is not None and weights[:, 0].all() and 0.05 < np.mean(weights[:, 1] == 0) < 0.15


def test_several_logs_are_the_samples_of_each(tmp_path):
    head = "time,q joint1,q joint2,tau joint1,tau joint2"
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path, part in zip(paths, (slice(0, 900), slice(900, 2000)), strict=True):
        table = np.column_stack([MADE.t[part], MADE.q[part], MADE.tau[part]])
        np.savetxt(path, table, fmt="%.17g", delimiter=",", header=head, comments="")
    both = Measurements.load(paths, ARM, cutoff=8.0)
    each = [Measurements.load(path, ARM, cutoff=8.0) for path in paths]
    assert np.array_equal(both.a, np.concatenate([each[0].a, each[1].a]))


def test_sampling_names_steps_gaps_and_stamps():
    t = np.arange(100) * 0.01
    assert sampling_of(t).how == "equal" and not sampling_of(t).gaps.size
    late = np.where(t > 0.5, t + 0.2, t)
    assert sampling_of(late).gaps.tolist() == [51] and sampling_of(late, gap=0.5).how == "unequal"
    assert sampling_of(np.where(t > 0.5, t - 0.3, t)).gaps.tolist() == [51]
