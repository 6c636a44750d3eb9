"""Friction beyond Coulomb and viscous: laws are recovered from forces that have them, and chosen where they act."""

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.cli.main import main
from torsor.identification import Measurements
from torsor.identification.drives import OFFERED, TEMPERATURE_LAWS

ROBOT = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8).with_friction("joint2", 0.3, 0.4)
COUNT = 600
TEMPERATURE = np.linspace(20.0, 60.0, COUNT)


def motion(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(COUNT, 2)), 2 * rng.normal(size=(COUNT, 2)), 3 * rng.normal(size=(COUNT, 2))


def law_force(law: str, v: np.ndarray, load: np.ndarray, shape: float) -> np.ndarray:
    """The force of a law for one joint, written again."""
    warm = TEMPERATURE - TEMPERATURE.mean()
    return {
        "offset": np.ones(COUNT),
        "asymmetric": np.abs(v),
        "cubic": v**3,
        "power": np.sign(v) * np.abs(v) ** shape,
        "stribeck": np.sign(v) * np.exp(-((v / (shape or 1.0)) ** 2)),
        "load": np.sign(v) * np.abs(load),
        "viscous_temperature": warm * v,
        "coulomb_temperature": warm * np.sign(v),
    }[law]


@pytest.mark.parametrize("law", OFFERED)
def test_each_law_is_recovered_from_forces_without_noise(law: str) -> None:
    state = motion()
    shape = {"power": 1.6, "stribeck": 0.37}.get(law, 0.0)
    rigid = ROBOT.without_friction().inverse_dynamics(*state)
    tau = ROBOT.inverse_dynamics(*state)
    tau[:, 1] += 0.25 * law_force(law, state[1][:, 1], rigid[:, 1], shape)
    given = {"temperature": TEMPERATURE} if law in TEMPERATURE_LAWS else {}
    found = torsor.identify(ROBOT, (*state, tau), friction={"joint2": [law]}, **given)
    assert found.drives is not None
    assert found.drives.names == (f"joint2.{law}",)
    exact = 1e-4 if shape else 1e-3 if law == "load" else 1e-8  # shapes are searched, loads iterated
    assert found.drives.values[0] == pytest.approx(0.25, rel=20 * exact)
    assert found.drives.terms[0].shape == pytest.approx(shape, rel=20 * exact)
    np.testing.assert_allclose(found.values, found.base.matrix @ ROBOT.inertial.values, rtol=0, atol=20 * exact)
    np.testing.assert_allclose(found.predict(*state, **given), tau, rtol=0, atol=0.02 if exact > 1e-8 else 1e-8)


def test_the_laws_that_act_are_chosen_and_no_others() -> None:
    state, rng = motion(), np.random.default_rng(0)
    v = state[1]
    tau = ROBOT.inverse_dynamics(*state) + 0.02 * rng.normal(size=(COUNT, 2))
    tau[:, 0] += 0.2 + 0.4 * np.sign(v[:, 0]) * np.exp(-((v[:, 0] / 0.7) ** 2))
    tau[:, 1] += 0.03 * v[:, 1] ** 3
    for criterion in ("bic", "aicc"):
        found = torsor.identify(ROBOT, (*state, tau), friction="auto", criterion=criterion)
        assert found.drives is not None
        assert {"joint1.offset", "joint1.stribeck", "joint2.cubic"} <= set(found.drives.names)
        assert len(found.drives) <= (3 if criterion == "bic" else 5)
        true = {"joint1.offset": 0.2, "joint1.stribeck": 0.4, "joint2.cubic": 0.03}
        for name, value, deviation in zip(
            found.drives.names, found.drives.values, found.drives.deviations, strict=True
        ):
            assert abs(value - true.get(name, 0.0)) < 4 * deviation + 0.02 * abs(value)
        worth = found.drives.changes
        assert min(worth["joint1"]["offset"], worth["joint1"]["stribeck"], worth["joint2"]["cubic"]) > 10
        assert min(change for laws in worth.values() for change in laws.values()) > 0
    assert "were not selected; closest: " in found.report() and "AICC increase if absent" in found.report()


def test_plain_friction_stays_plain() -> None:
    state, rng = motion(3), np.random.default_rng(1)
    tau = ROBOT.inverse_dynamics(*state) + 0.05 * rng.normal(size=(COUNT, 2))
    assert torsor.identify(ROBOT, (*state, tau), friction="auto").drives is None


def test_a_motor_that_turns_with_two_joints() -> None:
    """Its inertia and friction act on the sum of both joints, as kinetic energy I (v1 + 2 v2)^2 / 2 demands."""
    state = motion()
    _, v, a = state
    c = np.array([1.0, 2.0])
    own = 0.02 * a @ c + 0.3 * np.sign(v @ c) + 0.1 * v @ c
    tau = ROBOT.inverse_dynamics(*state) + own[:, None] * c
    couplings = {"motor2": {"joint1": 1.0, "joint2": 2.0}}
    among = ["link*", "*.coulomb", "*.viscous"]  # rotor inertias of both joints would not be told from it
    found = torsor.identify(ROBOT, (*state, tau), couplings=couplings, among=among)
    assert found.drives is not None
    assert found.drives.names == ("motor2.inertia", "motor2.coulomb", "motor2.viscous")
    np.testing.assert_allclose(found.drives.values, [0.02, 0.3, 0.1], rtol=0, atol=1e-9)
    unseen = torsor.identify(ROBOT, (*state, tau), couplings=couplings, among=among, held_out=0.25)
    assert unseen.held_out is not None and unseen.held_out.max() < 1e-8
    assert len(unseen.measurements) == 450


def test_physical_parameters_beside_laws() -> None:
    state, rng = motion(), np.random.default_rng(2)
    tau = ROBOT.inverse_dynamics(*state) + 0.05 * rng.normal(size=(COUNT, 2)) + [0.3, -0.2]
    plain = torsor.identify(ROBOT, (*state, tau), friction=["offset"])
    found = torsor.identify(ROBOT, (*state, tau), friction=["offset"], physical=True)
    assert found.drives is not None and plain.drives is not None
    np.testing.assert_allclose(found.drives.values, [0.3, -0.2], rtol=0, atol=0.02)
    np.testing.assert_allclose(found.rms, plain.rms, rtol=1e-3)
    assert found.robot.mass_matrix([0, 1]) == pytest.approx(ROBOT.mass_matrix([0, 1]), abs=0.02)


def test_a_known_total_mass_holds_and_changes_no_force() -> None:
    state = motion()
    tau = ROBOT.inverse_dynamics(*state) + 0.02 * np.random.default_rng(0).normal(size=(COUNT, 2))
    guess = ROBOT.inertial.replaced(1.3 * ROBOT.inertial.values)
    total = sum(link.mass for link in ROBOT.links)
    free = torsor.identify(guess, (*state, tau), physical=True)
    held = torsor.identify(guess, (*state, tau), physical=True, mass=total)
    assert abs(sum(link.mass for link in free.robot.links) / total - 1) > 0.01
    assert sum(link.mass for link in held.robot.links) == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(held.rms, free.rms, rtol=1e-3)


def test_drives_survive_a_file(tmp_path) -> None:
    state = motion()
    tau = ROBOT.inverse_dynamics(*state) + 0.2 + 1e-3 * np.random.default_rng(0).normal(size=(COUNT, 2))
    found = torsor.identify(ROBOT, (*state, tau), friction={"joint1": "auto"}, held_out=0.2)
    found.save(tmp_path / "arm.npz")
    again = torsor.load_result(tmp_path / "arm.npz")
    assert again.drives.names == found.drives.names
    np.testing.assert_array_equal(again.drives.values, found.drives.values)
    np.testing.assert_array_equal(again.held_out, found.held_out)
    np.testing.assert_array_equal(again.predict(*state), found.predict(*state))
    assert again.drives.changes == found.drives.changes
    assert found.to_dict()["drives"]["terms"][0]["law"] == found.drives.terms[0].law


STATE = motion()
TAU = ROBOT.inverse_dynamics(*STATE)
DATA = (*STATE, TAU)
REFUSED = [
    (lambda: torsor.identify(ROBOT, DATA, friction="stribek"), "friction"),
    (lambda: torsor.identify(ROBOT, DATA, friction=["viscous"]), "friction"),
    (lambda: torsor.identify(ROBOT, DATA, friction={"joint9": "auto"}), "friction"),
    (lambda: torsor.identify(ROBOT, DATA, friction=["viscous_temperature"]), "friction"),
    (lambda: torsor.identify(ROBOT, DATA, temperature=[1.0]), "temperature"),
    (lambda: torsor.identify(ROBOT, DATA, couplings={"m": {"joint1": 1.0}}), "couplings"),
    (lambda: torsor.identify(ROBOT, DATA, couplings={"m": {"joint1": 1.0, "j": 1.0}}), "'m' turns with 'j'"),
    (lambda: torsor.identify(ROBOT, DATA, criterion="best"), "criterion"),
    (lambda: torsor.identify(ROBOT, DATA, physical=True, mass=-1.0), "mass"),
    (
        lambda: torsor.identify(ROBOT, DATA, physical=True, mass=0.5, among=["link2.*"]),
        "mass",
    ),
    (lambda: torsor.identify(ROBOT, DATA, held_out=1.0), "held_out"),
    (lambda: torsor.identify(ROBOT, DATA, bandwidth=5.0), "`bandwidth` needs the times of the samples"),
    (
        lambda: torsor.identify(ROBOT, Measurements(*DATA, times=1e-3 * np.arange(COUNT)), bandwidth=1.0),
        "600 samples are too few for a bandwidth of 1 Hz",
    ),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()


def test_the_motor_of_joints_with_parallel_axes_is_named_with_the_way_out() -> None:
    state = motion()
    with refused(fix="omit `couplings` (--uncoupled)"):
        torsor.identify(
            ROBOT, (*state, ROBOT.inverse_dynamics(*state)), couplings={"motor2": {"joint1": 1.0, "joint2": 1.0}}
        )


def swing(count: int = 3000, seed: int = 2) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Times, and a motion of four sines in each joint."""
    rng, t = np.random.default_rng(seed), np.arange(count) * 4e-3
    w, phase = 2 * np.pi * rng.uniform(0.1, 0.9, size=(4, 2)), rng.uniform(0, 6, size=(4, 2))
    angle = w * t[:, None, None] + phase
    q, v, a = np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)
    return t, (0.4 * q.sum(axis=1), 0.4 * v.sum(axis=1), 0.4 * a.sum(axis=1))


def stiction(v: np.ndarray) -> np.ndarray:
    """Friction of joint 1 that falls as the motion begins, and of joint 2 that grows with the cube of the speed."""
    return np.stack([0.8 * np.sign(v[:, 0]) * np.exp(-((v[:, 0] / 0.3) ** 2)), 0.15 + 0.03 * v[:, 1] ** 3], axis=1)


def rubbed(seed: int = 0) -> Measurements:
    t, state = swing()
    noise = 0.05 * np.random.default_rng(seed).normal(size=(len(t), 2))
    return Measurements(*state, ROBOT.inverse_dynamics(*state) + stiction(state[1]) + noise, times=t)


def test_the_models_that_act_are_chosen_by_default_and_predict_other_motion_better() -> None:
    found = torsor.identify(ROBOT, rubbed())
    assert found.drives is not None and found.drives.criterion == "cv"
    assert sorted(found.drives.names) == ["joint1.stribeck", "joint2.cubic", "joint2.offset"]
    plain = torsor.identify(ROBOT, rubbed(), friction=())
    _, other = swing(seed=5)
    tau = ROBOT.inverse_dynamics(*other) + stiction(other[1])
    errors = [np.sqrt(np.mean((each.predict(*other) - tau) ** 2, axis=0)) for each in (found, plain)]
    assert (errors[0] < 0.1 * errors[1]).all()


def test_the_identified_robot_has_the_chosen_models(tmp_path) -> None:
    guess = ROBOT.inertial.replaced(0.8 * ROBOT.inertial.values)
    found = torsor.identify(guess, rubbed(), physical=True)
    _, other = swing(seed=5)
    speed = np.abs(found.measurements.v).max(axis=0)
    slow = (np.abs(other[1]) < speed).all(axis=1)
    np.testing.assert_allclose(found.robot.inverse_dynamics(*other)[slow], found.predict(*other)[slow], atol=1e-9)
    found.robot.save(tmp_path / "real.toml")
    assert torsor.load(tmp_path / "real.toml") == found.robot
    # Beyond the measured speed, friction stays dissipative: polynomials keep their value.
    fast = found.robot.friction_force(np.array([[1.0], [3.0], [30.0]]) * speed)
    np.testing.assert_allclose(np.diff(fast[:, 1]) / np.diff([1, 3, 30]) / speed[1], found.robot.joints[1].viscous[0])


def test_friction_models_of_the_given_robot_are_identified_anew() -> None:
    first = torsor.identify(ROBOT, rubbed(), physical=True)
    again = torsor.identify(first.robot, rubbed(), physical=True)
    np.testing.assert_allclose(again.values, first.values, rtol=1e-3, atol=1e-3)
    assert again.drives is not None and again.drives.names == first.drives.names
    known = torsor.identify(first.robot, rubbed(), among=["link*"])
    assert known.drives is None and known.rms.max() < 0.06  # the models are known and subtracted


def test_an_offset_of_one_part_of_the_motion_is_not_chosen_by_cross_validation() -> None:
    """It lowers the residuals of the motion used, and raises those of each part with the parameters of the others."""
    rng = np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, 3000, 2))
    tau = ROBOT.inverse_dynamics(q, v, a) + 0.05 * rng.normal(size=(3000, 2))
    tau[-600:, 0] += 0.03
    state = q, v, a, tau
    assert torsor.identify(ROBOT, state, friction="auto", criterion="bic").drives is not None
    assert torsor.identify(ROBOT, state).drives is None


def test_terms_that_a_robot_cannot_have_are_named() -> None:
    found = torsor.identify(ROBOT, rubbed(), friction=["load"], physical=True)
    with warned(what="joint1.load, joint2.load", fix="predict"):
        _ = found.robot


def test_the_command_writes_the_models_to_toml_and_the_best_parameters_without_them_to_mjcf(tmp_path, capsys) -> None:
    arm = ROBOT
    arm.save(tmp_path / "arm.toml")
    data = rubbed()
    heads = ["time", *(f"{letter} {name}" for letter in ("q", "tau") for name in arm.coordinate_names)]
    table = np.column_stack([data.times, data.q, data.tau])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(heads), comments="")
    call = ["identify", str(tmp_path / "arm.toml"), str(tmp_path / "log.csv"), "--cutoff", "20"]
    assert main([*call, "-o", str(tmp_path / "real.toml")]) == 0
    real = torsor.load(tmp_path / "real.toml")
    assert "exp" in real.joints[0].friction_model and "**3" in real.joints[1].friction_model
    capsys.readouterr()
    assert main([*call, "-o", str(tmp_path / "real.xml")]) == 0
    assert "this robot is identified without joint2.offset" in capsys.readouterr().err
    loaded = torsor.load(tmp_path / "real.xml")
    plain = torsor.identify(arm, Measurements.load(tmp_path / "log.csv", arm, cutoff=20.0), friction=(), physical=True)
    for own, want in zip(loaded.joints, plain.robot.joints, strict=True):
        np.testing.assert_allclose([own.coulomb, own.viscous], [want.coulomb, want.viscous], rtol=1e-6)
