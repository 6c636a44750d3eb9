"""Unmeasured, unknown or impossible quantities raise errors instead of giving plausible numbers."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelError
from torsor.cli.main import main
from torsor.human.measured import identify_segments
from torsor.identification import Measurements, output_error, write_identification_report
from torsor.identification.closed_robot import is_excitable
from torsor.identification.excitation.excite import check_excitable
from torsor.identification.physical import explained

ARM = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8).with_friction("joint2", 0.3, 0.4)
T = np.arange(1000) * 4e-3
W = np.array([5.0, 7.0])
MOTION = np.sin(W * T[:, None]), W * np.cos(W * T[:, None]), -(W**2) * np.sin(W * T[:, None])
TAU = ARM.inverse_dynamics(*MOTION) + 0.05 * np.random.default_rng(0).normal(size=(1000, 2))
DATA = Measurements(*MOTION, TAU, times=T)


def test_forces_that_were_not_measured_are_predicted_with_the_given_parameters() -> None:
    robot, rng = torsor.library.six_axis_arm(), np.random.default_rng(1)
    state = rng.normal(size=(3, 300, 6))
    tau = robot.inverse_dynamics(*state)
    data = Measurements.of(robot, *state, tau, measured=robot.coordinate_names[2:])
    for physical in (False, True):
        found = torsor.identify(robot, data, physical=physical)
        assert (
            np.abs(found.predict(*state) - tau).max() < (1e-3 if physical else 1e-9) * np.abs(tau).max()
        )  # the prior is a weight
        assert np.isnan(found.relative_residuals[:2]).all() and not np.isnan(found.relative_residuals[2:]).any()
    np.testing.assert_allclose(found.robot.inverse_dynamics(*state), found.predict(*state), rtol=0, atol=1e-8)


def test_forces_that_are_all_zero_are_named() -> None:
    with warned(what="the forces of joint1, joint2 are 0 in all samples", where=ARM.name):
        found = torsor.identify(ARM, (*MOTION, np.zeros((1000, 2))))
    assert repr(found) == f"<Identified {ARM.name!r}: {len(found)} base parameters, forces of 0>"
    assert "no force !" in found.report() and "inf %" not in str(found)


def test_drives_of_a_free_base_are_zero_and_get_no_laws() -> None:
    robot, rng = torsor.library.quadruped(), np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=(30, 18)))
    v, a = rng.normal(size=(2, 30, 18))
    tau = np.full((30, 18), np.nan)
    tau[:, 6:] = 1.0
    assert not Measurements.of(robot, q, v, a, tau, measured=robot.coordinate_names[6:]).tau[:, :6].any()
    with refused(allowed="zero", fix="external"):
        Measurements.of(robot, q, v, a, np.ones((30, 18)))


def test_runs_side_by_side_are_the_samples_of_all_runs() -> None:
    robot, rng = torsor.library.quadruped(), np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=(2, 5, 18)))
    v, a, tau = *rng.normal(size=(2, 2, 5, 18)), rng.normal(size=(2, 5, 12))
    wrenches = rng.normal(size=(2, 5, 6))
    made = Measurements.of(robot, q, v, a, tau, external={"fl_foot": wrenches}, times=np.arange(10).reshape(2, 5))
    flat = [x.reshape(10, -1) for x in (q, v, a, tau)]
    other = Measurements.of(robot, *flat, external={"fl_foot": wrenches.reshape(10, 6)})
    assert made.times.tolist() == list(range(10))
    for name in ("q", "v", "a", "tau", "external"):
        assert (getattr(made, name) == getattr(other, name)).all()
    batch = made.external.reshape(2, 5, *made.external.shape[1:])
    assert (Measurements.of(robot, q, v, a, tau, external=batch).external == made.external).all()


def test_identified_rotor_inertias_move_a_robot_alike_after_a_urdf(tmp_path: Path) -> None:
    arm, rng = torsor.library.ur5(), np.random.default_rng(0)
    rotors = np.array([name.endswith("rotor_inertia") for name in arm.inertial.names])
    real = arm.inertial.replaced(np.where(rotors, rng.uniform(0.1, 0.5, size=len(rotors)), arm.inertial.values))
    with warned(what="rotor inertias, written as drake:rotor_inertia"):
        real.save(tmp_path / "real.urdf")
    again = torsor.load(tmp_path / "real.urdf")
    assert all(joint.motor is not None and not joint.rotor_inertia.any() for joint in again.joints)
    q, v, a = rng.normal(size=(3, 20, 6))
    tau = real.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(again.inverse_dynamics(q, v, a), tau, rtol=1e-10, atol=1e-10 * np.abs(tau).max())
    np.testing.assert_allclose(again.forward_dynamics(q, v, tau), a, rtol=1e-8, atol=1e-8)


def test_simulated_instruments_say_where_no_controller_holds_the_estimate() -> None:
    noise = Measurements(*MOTION, np.random.default_rng(1).normal(size=TAU.shape), times=T)
    with pytest.warns(torsor.ModelWarning) as caught:
        torsor.identify(ARM, noise, instruments="simulation")
    assert "does not follow the measured motion; the instruments are filtered positions" in str(caught[0].message)


def test_excite_is_advised_for_the_robots_that_it_takes() -> None:
    elastic = torsor.library.two_link().with_motor("joint1", ratio=50.0, inertia=1e-4, stiffness=1e3)
    for robot in (ARM, elastic, torsor.library.quadruped(), torsor.library.four_bar()):
        try:
            check_excitable(robot)
        except ModelError:
            assert not is_excitable(robot)
        else:
            assert is_excitable(robot)
    assert elastic.elastic


def test_a_held_out_part_is_some_of_the_samples() -> None:
    for part in (1e-5, 0.99999):
        with refused(argument="held_out", allowed="at least one sample, but not all"):
            torsor.identify(ARM, DATA, held_out=part)


def test_output_error_forgets_what_was_held_out_and_refuses_a_bandwidth() -> None:
    found = output_error(torsor.identify(ARM, DATA, held_out=0.2), T, MOTION[0], TAU)
    assert found.unseen is None and found.method == "output error"
    with refused(allowed="no bandwidth"):
        output_error(torsor.identify(ARM, DATA, bandwidth=20.0), T, MOTION[0], TAU)


def test_forces_of_the_wrong_sign_are_named_where_no_parameters_are_physical() -> None:
    with refused(fix="-1"):
        torsor.identify(ARM, (*MOTION, TAU * [-1, 1]), physical=True)


def test_a_total_mass_that_the_forces_contradict_is_named() -> None:
    error = explained(ARM, DATA, 0.7, lambda: ARM.inertial.values)
    assert "no physical parameters with the total mass 0.7 kg, but with 2 kg; fix: correct or omit `mass`" in str(error)
    with warned(fix="correct or omit `mass`, 0.7 kg"):
        torsor.identify(ARM, DATA, physical=True, mass=0.7)


def test_settings_have_patterns_as_they_are_given() -> None:
    assert torsor.identify(ARM, DATA, among="link2.*").settings["among"] == ["link2.*"]


def test_a_covariance_that_is_singular_to_rounding_is_no_mistake_of_the_program() -> None:
    from torsor.identification.estimation import root_of

    assert np.isfinite(root_of(np.array([[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]]))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torsor.identify(ARM, DATA, couplings=[("m", 1)]), "couplings"),
        (lambda: torsor.identify(ARM, DATA, physical="no"), "physical"),
        (lambda: Measurements(*MOTION, TAU, times=np.where(T < 1, T, np.nan)), "the time of sample 250 is nan"),
        (lambda: Measurements.load("no.csv", ARM), "a log: a table"),
        (lambda: Measurements.load("no.csv", ARM, {"q": [0, 1], "tau": [2, 3]}, rate=1.0), "no such file"),
        (lambda: Measurements.load("no.npz", ARM), "no such file"),
        (lambda: Measurements.load("no.csv", ARM, "no.toml"), "the map of a log"),
        (lambda: identify_segments([]), "no gait"),
        (lambda: write_identification_report("x.html", torsor.identify(ARM, DATA), 5), "validated"),
        (lambda: write_identification_report("x.pdf", torsor.identify(ARM, DATA)), "ends with .html"),
        (lambda: torsor.identify(ARM, DATA, friction=["auto", "offset"]), "friction"),
    ],
)
def test_mistakes_are_named(call, message: str) -> None:
    with refused(message):
        call()


def test_the_command_never_writes_over_what_it_reads(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    ARM.save("arm.toml")
    heads = "time,q joint1,q joint2,tau joint1,tau joint2"
    np.savetxt("log.csv", np.column_stack([T, MOTION[0], TAU]), delimiter=",", header=heads, comments="")
    before = Path("log.csv").read_bytes()
    for options in (["--json", "log.csv"], ["-o", "arm.toml"], ["--json", "arm.toml"]):
        assert main(["identify", "arm.toml", "log.csv", *options]) == 1
        assert "the output is also an input" in capsys.readouterr().err
    assert main(["identify", "arm.toml", "log.csv", "-o", "o.toml", "--json", "o.toml"]) == 1
    assert Path("log.csv").read_bytes() == before
    torsor.library.four_bar().save("bars.toml")
    assert main(["identify", "bars.toml", "log.csv", "-o", "bars.urdf"]) == 1
    assert "bars.urdf: 'pin' closes a loop, which is not written to URDF" in capsys.readouterr().err


def test_the_identified_robot_is_the_same_in_every_format_that_is_written(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("pxr", reason="needs the extra usd")
    monkeypatch.chdir(tmp_path)
    ARM.save("arm.toml")
    heads = "time,q joint1,q joint2,tau joint1,tau joint2"
    np.savetxt("log.csv", np.column_stack([T, MOTION[0], TAU]), delimiter=",", header=heads, comments="")
    for name in ("real.sdf", "real.usda"):
        assert main(["identify", "arm.toml", "log.csv", "--cutoff", "10", "-o", name]) == 0
    forces = [torsor.load(name).inverse_dynamics(*MOTION) for name in ("real.sdf", "real.usda")]
    np.testing.assert_allclose(*forces, rtol=1e-12, atol=1e-12)
    assert 0 < np.abs(forces[0] - TAU).std() < 0.06  # the noise of the measured forces is 0.05 N m
