"""Identification recovers the parameters: exactly without noise, and within its standard deviations with noise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.dynamics import parameter_basis
from torsor.identification import Measurements

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


def motion(robot: torsor.Robot, count: int, seed: int = 1) -> Motion:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=(count, robot.nv)))
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


def arm() -> torsor.Robot:
    """The Stanford arm with friction in its joints."""
    robot = torsor.library.stanford()
    for k, name in enumerate(robot.joint_names):
        robot = robot.with_friction(name, coulomb=0.2 + 0.1 * k, viscous=0.8 - 0.1 * k)
    return robot


def guess(robot: torsor.Robot) -> torsor.Robot:
    """Prior knowledge of the robot: its geometry, and wrong parameters."""
    pi = robot.inertial.values
    return robot.inertial.replaced(np.where(np.arange(len(pi)) < 10 * len(robot.links), 1.3 * pi, 0.4 * pi))


def noisy(robot: torsor.Robot, state: Motion, share: float, seed: int = 0) -> np.ndarray:
    tau = robot.inverse_dynamics(*state)
    noise = share * np.sqrt(np.mean(tau**2, axis=0))
    return tau + noise * np.random.default_rng(100 + seed).normal(size=tau.shape)


def least_principal_value(parameters: np.ndarray, links: int) -> float:
    """Least eigenvalue of all pseudo-inertias."""
    P = np.einsum("lk,kij->lij", parameters[: 10 * links].reshape(-1, 10), np.array(parameter_basis()))
    return float(np.linalg.eigvalsh(P).min())


def test_without_noise_the_base_parameters_are_exact() -> None:
    robot = arm()
    state = motion(robot, 200)
    found = torsor.identify(guess(robot), (*state, robot.inverse_dynamics(*state)))
    true = found.base.matrix @ robot.inertial.values
    np.testing.assert_allclose(found.values, true, rtol=1e-8, atol=1e-10 * np.abs(true).max())
    assert len(found) == 49
    assert np.all(found.r_squared > 1 - 1e-12)
    assert found.rms.max() < 1e-9


@pytest.mark.slow
def test_springs_motors_and_common_coordinates() -> None:
    """A random tree with every type of joint and everything that is not among the parameters."""
    robot = torsor.library.random_tree(7, 4)
    state = motion(robot, 300)
    found = torsor.identify(robot, (*state, robot.inverse_dynamics(*state)))
    np.testing.assert_allclose(found.values, robot.inertial.base().values, rtol=0, atol=1e-9)
    unseen = motion(robot, 20, seed=9)
    np.testing.assert_allclose(found.predict(*unseen), robot.inverse_dynamics(*unseen), rtol=0, atol=1e-8)


def test_errors_agree_with_the_standard_deviations() -> None:
    """The squared errors over their covariance add up to as many as there are parameters, give or take their spread."""
    robot = arm()
    state = motion(robot, 300)
    sums = []
    for seed in range(8):
        found = torsor.identify(guess(robot), (*state, noisy(robot, state, 0.05, seed)))
        error = found.values - found.base.matrix @ robot.inertial.values
        sums.append(error @ np.linalg.solve(found.covariance, error))
        assert np.abs(error / found.deviations).max() < 5
    b = len(found)
    assert abs(np.mean(sums) - b) < 4 * np.sqrt(2 * b / len(sums))
    np.testing.assert_allclose(found.relative_residuals, 5.0, rtol=0.15)  # in percent of each coordinate's force


def test_a_coordinate_with_more_noise_has_less_weight() -> None:
    robot = arm()
    state = motion(robot, 300)
    rng = np.random.default_rng(0)
    size = np.array([50.0, 50.0, 0.01, 0.01, 0.01, 0.01])
    tau = robot.inverse_dynamics(*state) + size * rng.normal(size=(300, 6))
    with warned(what="residuals of 'joint1' are 95.9 % of the force"):
        found = torsor.identify(robot, (*state, tau))
    assert set(found.unexplained) <= {"joint1", "joint2"} and " !" in found.report()
    own = [k for k, name in enumerate(found.names) if name.startswith(("link4", "link5", "link6"))]
    error = found.values - found.base.values
    assert np.abs(error[own]).max() < 0.01  # equal weights would leave errors of the size of the noise, 50 / sqrt(N)


def test_physical_parameters_are_consistent_where_least_squares_are_not() -> None:
    """All ten parameters of a load on a known arm are identifiable, so both estimates have a pseudo-inertia."""
    robot = arm()
    state = motion(robot, 60)
    tau = noisy(robot, state, 0.1)
    load = slice(50, 60)
    plain = torsor.identify(robot, (*state, tau), among=["link6.*"])
    loose = robot.inertial.values
    loose[load] = plain.values
    assert least_principal_value(loose, 6) < -1e-3
    with refused(what="no body has"):
        robot.inertial.replaced(loose)
    found = torsor.identify(robot, (*state, tau), among=["link6.*"], physical=True)
    assert found.parameters is not None
    assert least_principal_value(found.parameters[load], 1) > 0
    kept = np.delete(found.parameters, np.arange(50, 60))
    np.testing.assert_array_equal(kept, np.delete(robot.inertial.values, np.arange(50, 60)))
    assert found.robot.links[5].mass > 0
    assert not found.robot.links[5].defect


def test_physical_parameters_explain_as_much_as_least_squares() -> None:
    robot = arm()
    state = motion(robot, 300)
    tau = noisy(robot, state, 0.02)
    plain = torsor.identify(guess(robot), (*state, tau))
    found = torsor.identify(guess(robot), (*state, tau), physical=True)
    assert found.parameters is not None
    np.testing.assert_allclose(found.rms, plain.rms, rtol=0.02)  # two of the true links are bodies without a width
    assert least_principal_value(found.parameters, 6) > 0
    assert found.parameters.min(where=np.arange(78) >= 60, initial=np.inf) >= 0
    unseen = motion(robot, 500, seed=11)
    true = robot.inverse_dynamics(*unseen)
    error = np.sqrt(np.mean((found.robot.inverse_dynamics(*unseen) - true) ** 2, axis=0))
    assert np.all(error < 0.02 * np.sqrt(np.mean(true**2, axis=0)))  # below the noise that it was found through
    np.testing.assert_allclose(found.predict(*unseen), found.robot.inverse_dynamics(*unseen), rtol=0, atol=1e-9)


def test_the_prior_determines_only_unidentifiable_combinations() -> None:
    """Ten times too light or a hundred times too heavy: Newton's method finds the same base parameters."""
    robot = arm()
    state = motion(robot, 200)
    tau = noisy(robot, state, 0.01)
    scales = [np.where(np.arange(78) < 60, scale, 1.0) for scale in (0.1, 100.0)]
    light, heavy = (
        torsor.identify(robot.inertial.replaced(scale * robot.inertial.values), (*state, tau), physical=True)
        for scale in scales
    )
    assert np.abs((light.values - heavy.values) / light.deviations).max() < 0.2
    np.testing.assert_allclose(light.rms, heavy.rms, rtol=1e-3)


def test_friction_is_never_negative_in_a_physical_estimate() -> None:
    robot = torsor.library.stanford()  # without friction: least squares find some on either side of 0
    state = motion(robot, 100)
    tau = noisy(robot, state, 0.05)
    plain, found = (torsor.identify(robot, (*state, tau), physical=each) for each in (False, True))
    friction = [k for k, name in enumerate(plain.names) if name.endswith(("coulomb", "viscous"))]
    assert plain.values[friction].min() < 0
    assert found.values[friction].min() >= 0


@pytest.mark.parametrize("make", [torsor.library.six_axis_arm, lambda: torsor.library.planar_chain(2)])
def test_an_inconsistent_prior_gives_consistent_parameters(make) -> None:
    """The PUMA's first link has no mass, and thin rods have no width."""
    robot = make()
    state = motion(robot, 200)
    found = torsor.identify(robot, (*state, robot.inverse_dynamics(*state)), physical=True)
    assert found.parameters is not None
    assert least_principal_value(found.parameters, len(robot.links)) > 0
    np.testing.assert_allclose(found.robot.mass_matrix(state[0]), robot.mass_matrix(state[0]), rtol=0, atol=1e-6)


def test_a_robot_is_identified_from_its_simulation() -> None:
    robot = torsor.library.planar_chain(2).with_friction("joint1", viscous=0.3).with_friction("joint2", viscous=0.2)
    law = torsor.control.gravity_pd(robot, [0.5, -0.5], kp=60.0, kd=1.0)
    swing = torsor.simulate(robot, [[0.3, 1.0], [1.0, -2.0]], duration=2.0, controller=law)
    found = torsor.identify(guess(robot), swing, among=["link*", "*.viscous"])
    np.testing.assert_allclose(found.values, found.base.matrix @ robot.inertial.values, rtol=0, atol=1e-6)
    assert len(found.measurements) == 2 * len(swing)


def test_a_free_fall_does_not_excite_masses() -> None:
    """Without drive forces, all masses could be twice as large."""
    robot = torsor.library.planar_chain(2)
    with refused(what="the motion does not excite link1.Jzz"):
        torsor.identify(robot, torsor.simulate(robot, [0.3, 1.0], duration=2.0), among=["link*"])


def test_positions_alone_are_enough() -> None:
    """Encoders of 10 microrad at 1 kHz; velocities and accelerations by the filter without phase."""
    robot = torsor.library.planar_chain(2).with_friction("joint1", 0.2, 0.3).with_friction("joint2", 0.1, 0.2)
    rng, t = np.random.default_rng(3), np.arange(8000) * 1e-3
    w, phase = 2 * np.pi * np.array([0.25, 0.625, 1.0]), rng.uniform(0, 6, size=(3, 2))
    size = np.array([0.8, 0.5, 0.3])[:, None]
    angle = w[:, None] * t[:, None, None] + phase
    q = (size * np.sin(angle)).sum(axis=1)
    v = (w[:, None] * size * np.cos(angle)).sum(axis=1)
    a = -((w**2)[:, None] * size * np.sin(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, v, a) + 0.1 * rng.normal(size=q.shape)
    data = Measurements.from_positions(t, q + 1e-5 * rng.normal(size=q.shape), tau, cutoff=10.0)
    np.testing.assert_allclose(data.a, a[100:-100], rtol=0, atol=0.2)
    found = torsor.identify(robot, data)
    error = found.values - found.base.matrix @ robot.inertial.values
    assert np.abs(error / found.deviations).max() < 5
    whole = Measurements.from_positions(t, q, tau, cutoff=20.0, periodic=True)  # 8 s are whole periods
    np.testing.assert_allclose(whole.a, a, rtol=0, atol=1e-9)


def test_a_weight_of_zero_excludes_a_sample() -> None:
    robot = torsor.library.planar_chain(2)
    state = motion(robot, 60)
    tau = robot.inverse_dynamics(*state)
    limited = np.clip(tau, -10.0, 10.0)
    weights = (np.abs(tau) < 10.0).astype(float)
    found = torsor.identify(robot, Measurements(*state, limited, weights=weights))
    np.testing.assert_allclose(found.values, found.base.values, rtol=0, atol=1e-9)
    assert found.rms.max() < 1e-9


def test_report_and_figure(tmp_path) -> None:
    robot = torsor.library.planar_chain(2)
    state = motion(robot, 60)
    found = torsor.identify(robot, (*state, noisy(robot, state, 0.01)))
    text = found.report()
    assert "2: 11 base parameters" not in text
    assert f"{len(found)} base parameters (least squares)" in text
    assert all(name.split()[0] in text for name in (*found.names, *robot.coordinate_names))
    assert len(found.plot(tmp_path / "forces.png").axes) == 2
    assert (tmp_path / "forces.png").stat().st_size > 10_000
    assert "base parameters" in repr(found)


@pytest.mark.slow
def test_the_example_predicts_a_new_motion_to_the_noise_of_the_sensors(tmp_path, monkeypatch, capsys) -> None:
    path = Path(__file__).parents[2] / "examples" / "identify_stanford.py"
    spec = importlib.util.spec_from_file_location("identify_stanford", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr("sys.argv", ["identify_stanford.py", str(tmp_path / "arm.png")])
    example.main()
    *_, identified, noise = capsys.readouterr().out.splitlines()
    rms = np.array(identified.split()[1:], dtype=float)
    np.testing.assert_allclose(rms, np.array(noise.removeprefix("sensor noise").split(), dtype=float), rtol=0.05)
    assert (tmp_path / "arm.png").stat().st_size > 10_000


def test_forces_fully_explained_by_known_parameters() -> None:
    robot = torsor.library.planar_chain(2)
    state = motion(robot, 40)
    found = torsor.identify(robot, (*state, robot.inverse_dynamics(*state)), among=["*.viscous", "*.coulomb"])
    np.testing.assert_array_equal(found.values, np.zeros(4))


ROBOT = torsor.library.planar_chain(2)
STATE = motion(ROBOT, 40)
TAU = ROBOT.inverse_dynamics(*STATE)
REFUSED = [
    (lambda: torsor.identify(None, (*STATE, TAU)), "robot"),
    (lambda: torsor.identify(ROBOT, TAU), "Measurements, a Trajectory"),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU[:, :1])), "tau"),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU[1:])), "numbers of samples are"),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU * np.nan)), "tau"),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU[0])), "tau"),
    (lambda: torsor.identify(ROBOT, (*STATE, "none")), "tau"),
    (lambda: torsor.identify(ROBOT, [x[:3] for x in (*STATE, TAU)]), "6 measured forces for 11 base parameters"),
    (
        lambda: torsor.identify(ROBOT, (STATE[0], 0 * STATE[1], 0 * STATE[2], TAU)),
        "the motion does not excite link1.Jzz",
    ),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU), among=["foot.*"]), "foot.*"),
    (
        lambda: torsor.identify(ROBOT, (*STATE, TAU), regularisation=0.0),
        "regularisation",
    ),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU)).robot, "identify(..., physical=True)"),
    (lambda: Measurements(*STATE, TAU, weights=[1.0, 2.0, 3.0]), "weights"),
    (lambda: Measurements(*STATE, TAU, weights=-1.0), "weights"),
    (lambda: Measurements(*STATE, TAU, times=[0.0]), "one for each of 40 samples"),
    (
        lambda: Measurements.from_positions(np.arange(40), TAU, TAU, cutoff=3.0),
        "cutoff (Hz, up to half the sampling rate)",
    ),
    (lambda: Measurements.from_positions(np.arange(40) ** 2, TAU, TAU, cutoff=0.2), "times are not equally spaced"),
    (lambda: Measurements.from_positions(np.arange(30), TAU, TAU, cutoff=0.2), "samples have shape (40, 2)"),
    (lambda: Measurements.from_positions(np.arange(40), TAU, TAU[:, :1], cutoff=0.2), "velocities have shape"),
    (lambda: torsor.identify(ROBOT, (*STATE, 1e200 * TAU)), "check the units"),
    (lambda: torsor.identify(ROBOT, (STATE[0], 1e200 * STATE[1], STATE[2], TAU)), "forces"),
    (
        lambda: torsor.identify(ROBOT, (*STATE, 1e12 * TAU), physical=True),
        "found no physical",
    ),
    (lambda: torsor.identify(ROBOT, (*STATE, TAU + 0j)), "tau"),
    (lambda: Measurements(*STATE, TAU, weights="all"), "weights"),
    (
        lambda: Measurements.from_positions(np.arange(40), TAU, TAU, cutoff=None),
        "cutoff (Hz, up to half the sampling rate)",
    ),
    (lambda: Measurements.from_positions(np.arange(40), TAU, TAU, cutoff=0.05), "all 40 samples are within"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()


def test_noise_near_rest_does_not_bias_coulomb_friction() -> None:
    robot, rng, times = arm(), np.random.default_rng(3), np.linspace(0, 10, 2000)
    phases = rng.uniform(0, 6, size=(3, 1, 6))
    q = sum(0.4 / (k + 1) * np.sin((k + 1) * 1.3 * times[:, None] + phases[k]) for k in range(3))
    v = sum(0.4 * 1.3 * np.cos((k + 1) * 1.3 * times[:, None] + phases[k]) for k in range(3))
    a = sum(-0.4 * 1.69 * (k + 1) * np.sin((k + 1) * 1.3 * times[:, None] + phases[k]) for k in range(3))
    tau = robot.inverse_dynamics(q, v, a) + 1e-3 * rng.normal(size=v.shape)
    measured = v + 3e-3 * rng.normal(size=v.shape)
    friction = [name.endswith(".coulomb") for name in robot.inertial.base().names]
    errors = []
    for still in (0.0, 0.02):
        found = torsor.identify(guess(robot), (q, measured, a, tau), still=still)
        errors.append(np.abs(found.values - found.base.matrix @ robot.inertial.values)[friction].max())
    assert errors[1] < errors[0] / 4
    for wrong in (-1.0, 1.0, None, np.nan):
        with refused(argument="still"):
            torsor.identify(robot, (q, v, a, tau), still=wrong)


def swinging(robot: torsor.Robot, count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a of a motion within half of the limits of the joints."""
    t = np.linspace(0.0, 2.0, count)[:, None]
    size = 0.5 * np.minimum(np.where(np.isfinite(robot.upper), robot.upper, 2.0), 2.0)
    w = 2 * np.pi * (0.2 + 0.05 * np.arange(robot.nv))
    return size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)


def test_measurements_in_degrees_are_refused() -> None:
    robot = torsor.library.ur5()
    q, v, a = swinging(robot)
    tau = robot.inverse_dynamics(q, v, a)
    torsor.identify(robot, (q, v, a, tau))
    degrees = tuple(map(np.degrees, (q, v, a)))
    with refused(allowed="rad", fix="np.radians(q)"):
        torsor.identify(robot, (*degrees, tau))
    with refused(allowed="rad/s"):
        torsor.identify(robot, (q, degrees[1], a, tau))
    with refused(allowed="rad"):
        torsor.identify(robot, (q, v, a, tau)).validate((*degrees, tau))


def test_many_turns_of_a_joint_without_limits_are_doubtful() -> None:
    robot = torsor.library.planar_chain(1)
    assert np.isinf(robot.upper).all()
    q, v, a = swinging(robot)
    tau = robot.inverse_dynamics(q, v, a)
    with pytest.warns(torsor.ModelWarning) as caught:
        torsor.identify(robot, (*map(np.degrees, (q, v, a)), tau))
    assert any("turns: are the numbers degrees?" in str(each.message) for each in caught)
    wheel = np.linspace(0.0, 4000.0, 400)[:, None]  # more than a turn in degrees too: it turns
    torsor.identify(robot, (wheel, v, a, robot.inverse_dynamics(wheel, v, a)))


def test_parameters_that_the_measurements_do_not_show_are_marked() -> None:
    robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
    q, v, a = 0.01 * rng.normal(size=(3, 50, 1))
    tau = robot.inverse_dynamics(q, v, a) + 0.1 * rng.normal(size=(50, 1))
    found = torsor.identify(robot, (q, v, a, tau))
    assert found.undetermined and all(name in found.names for name in found.undetermined)
    report = found.report()
    assert " !" in report and "! deviation above 100 % of the value" in report
