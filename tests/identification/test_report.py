"""Reports state which parameters were identified, which were not and why; the command writes the robot."""

import ctypes
import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.documents import schema_of
from torsor.cli.main import main
from torsor.identification import Identified, LogMap, Measurements, write_identification_report
from torsor.identification.html_report import _parameters, _unidentified

ARM = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8).with_friction("joint2", 0.3, 0.4)
RATE, COUNT = 200.0, 1600
T = np.arange(COUNT) / RATE
W = 2 * np.pi * np.array([[0.4, 0.9], [0.7, 0.5]])
MOTION = (
    (np.sin(W * T[:, None, None]) * [0.7, 0.5]).sum(axis=1),
    (W * np.cos(W * T[:, None, None]) * [0.7, 0.5]).sum(axis=1),
    (-(W**2) * np.sin(W * T[:, None, None]) * [0.7, 0.5]).sum(axis=1),
)
HOSTILE = "</script><img src=x onerror=alert(1)>"


def measured(robot: torsor.Robot, extra: np.ndarray | float = 0.0, seed: int = 0, **more: object) -> Measurements:
    noise = 0.05 * np.random.default_rng(seed).normal(size=(COUNT, 2))
    return Measurements(*MOTION, robot.inverse_dynamics(*MOTION) + noise + extra, times=T, **more)


def table(path: Path, data: Measurements, **more: np.ndarray) -> None:
    columns = {"time": T} | {f"q {name}": x for name, x in zip(ARM.coordinate_names, data.q.T, strict=True)}
    columns |= {f"tau {name}": x for name, x in zip(ARM.coordinate_names, data.tau.T, strict=True)} | more
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")


def test_reasons_are_true_of_the_forces() -> None:
    found = torsor.identify(ARM, measured(ARM), among=["link*", "joint1.*"])
    kinds = {each.parameter: each.kind for each in found.unidentified}
    assert {kinds[name] for name in ("joint2.coulomb", "joint2.viscous")} == {"given"}
    names, pi = list(ARM.inertial.names), ARM.inertial.values
    Y = ARM.inertial.regressor(*MOTION)
    for k, name in enumerate(names):
        if kinds.get(name) == "no effect":
            assert np.abs(Y[..., k]).max() < 1e-12, name
        if kinds.get(name) == "regrouped":
            columns = Y[..., found.base.columns].reshape(-1, len(found))
            own = Y[..., k].ravel()
            left = own - columns @ np.linalg.lstsq(columns, own, rcond=None)[0]
            assert np.abs(own).max() > 1e-6 and np.abs(left).max() < 1e-9, name
    weak = [each for each in found.unidentified if each.kind in ("below noise", "not shown")]
    assert {each.parameter for each in weak} == set(found.undetermined)
    assert len(pi) == len(names) and len(kinds) < len(names)


def test_a_motion_that_hardly_shows_a_parameter_is_the_reason() -> None:
    q, v, a = (each * [1.0, 1e-4] for each in MOTION)
    tau = ARM.inverse_dynamics(q, v, a) + 0.05 * np.random.default_rng(0).normal(size=(COUNT, 2))
    found = torsor.identify(ARM, Measurements(q, v, a, tau, times=T))
    kinds = {each.parameter: each.kind for each in found.unidentified}
    assert kinds["joint2.viscous"] == "not shown" and kinds.get("joint1.viscous") is None
    assert kinds["link1.my"] == "below noise", "a symmetric link has no such moment"


def test_intervals_are_the_values_and_two_deviations() -> None:
    found = torsor.identify(ARM, measured(ARM))
    np.testing.assert_allclose(found.intervals.mean(axis=1), found.values)
    np.testing.assert_allclose(np.diff(found.intervals)[:, 0], 2 * 1.959964 * found.deviations, rtol=1e-4)


def test_held_out_samples_notes_and_laws_are_kept_in_files(tmp_path: Path) -> None:
    data = measured(ARM, extra=0.3, notes=("cutoff 8 Hz",))
    found = torsor.identify(ARM, data, friction=["offset"], held_out=0.25)
    assert found.unseen is not None and len(found.unseen.measurements) == COUNT // 4
    np.testing.assert_allclose(found.unseen.relative_residuals, found.held_out)
    found.save(tmp_path / "found.npz")
    again = Identified.load(tmp_path / "found.npz")
    assert again.unseen is not None and again.drives is not None and again.measurements.notes == ("cutoff 8 Hz",)
    np.testing.assert_array_equal(again.unseen.predicted, found.unseen.predicted)
    np.testing.assert_array_equal(again.held_out, found.held_out)
    assert again.drives.names == ("joint1.offset", "joint2.offset")
    assert again.report() == found.report()
    shown = found.to_dict()
    assert {each["parameter"] for each in shown["unidentified"]} == {each.parameter for each in found.unidentified}
    assert set(shown) <= set(schema_of("identification")["properties"])


@pytest.mark.slow
def test_the_report_has_all_of_it_and_escapes_names(tmp_path: Path) -> None:
    robot = torsor.load(_renamed(tmp_path))
    assert HOSTILE in robot.link_names
    v = MOTION[1][:, 0]
    drag = np.stack([0.8 * np.sign(v) * np.exp(-((v / 0.7) ** 2)), 0 * v], axis=1)
    data = measured(robot, extra=drag, notes=(f"log {HOSTILE}",))
    found = torsor.identify(robot, data, physical=True, friction="auto", held_out=0.25)
    validated = found.validate(measured(robot, extra=drag, seed=3))
    text = write_identification_report(tmp_path / "found.html", found, validated).read_text()
    head = text.split("<iframe")[0]
    for words in ("Force prediction", "95 % interval", "could not be identified", "In motion", "stribeck"):
        assert words in text
    assert "% of force, held out" in head and f"{found.held_out[0]:.3g} %" in head
    assert "given mass, kg" in head and "log &lt;/script&gt;" in head
    assert any(joint.friction_model for joint in found.robot.joints)  # the robot carries the selected model
    for name, (low, high) in zip(found.names, found.intervals, strict=True):
        assert f"<td>{low:.4g} to {high:.4g}</td>" in head, name
    assert "<img src=x" not in text and HOSTILE not in text
    assert not re.search(r'(src|href)="(?!data:)', head), "nothing is loaded from elsewhere"
    assert head.count("data:image/png;base64,") == 2


@pytest.mark.slow
def test_several_logs_whose_times_begin_again_are_reported(tmp_path: Path) -> None:
    ARM.save(tmp_path / "arm.toml")
    for k in (1, 2):
        table(tmp_path / f"log{k}.csv", measured(ARM, seed=k))
    names = [str(tmp_path / name) for name in ("arm.toml", "log1.csv", "log2.csv")]
    options = ["--cutoff", "10", "--held-out", "0.2", "--report", str(tmp_path / "found.html")]
    assert main(["identify", *names, *options]) == 0
    assert "from 2496 samples over 12.5 s" in (tmp_path / "found.html").read_text()  # 0.8 of 2 (1600 - 2 * 20)


def test_tables_of_a_report_escape_names(tmp_path: Path) -> None:
    robot = torsor.load(_renamed(tmp_path))
    found = torsor.identify(robot, measured(robot))
    text = "".join([*_unidentified(found), _parameters(found)])
    assert HOSTILE not in text and escape(HOSTILE) in text


def _renamed(folder: Path) -> Path:
    """A robot file whose second link has a hostile name."""
    ARM.save(folder / "arm.toml")
    text = (folder / "arm.toml").read_text(encoding="utf-8").replace('"link2"', json.dumps(HOSTILE))
    (folder / "arm.toml").write_text(text, encoding="utf-8")
    return folder / "arm.toml"


NO_MODELS = ("--friction-models", "none")


@pytest.mark.parametrize("suffix", ["urdf", "xml", "toml"])
def test_the_command_writes_the_identified_robot(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ARM.inertial.replaced(0.7 * ARM.inertial.values).save(tmp_path / "arm.toml")
    table(tmp_path / "log.csv", measured(ARM, extra=0.2))
    call = ["identify", *(str(tmp_path / name) for name in ("arm.toml", "log.csv")), "--cutoff", "10"]
    call += [
        "--friction-models",
        "offset",
        "-o",
        str(tmp_path / f"real.{suffix}"),
        "--json",
        str(tmp_path / "found.json"),
    ]
    assert main(call) == 0
    printed = capsys.readouterr()
    assert "physical" in printed.out
    said = printed.err.replace("\n", " ")
    only = "this robot is identified without joint1.offset, joint2.offset: only .toml files"
    assert (only in said) == (suffix != "toml")
    shown = json.loads((tmp_path / "found.json").read_text())
    assert shown["method"] == "physically consistent" and len(shown["drives"]["values"]) == 2
    real = torsor.load(tmp_path / f"real.{suffix}").with_gravity(ARM.gravity)  # which a URDF does not have
    if suffix == "toml":
        expected = ARM.inertial.replaced(shown["parameters"])
        for name, value in zip(ARM.joint_names, shown["drives"]["values"], strict=True):
            expected = expected.with_friction(name, friction_model=repr(value))
    else:  # identified without the offsets
        assert main([*call[:6], "none", "--physical", "--json", str(tmp_path / "plain.json")]) == 0
        expected = ARM.inertial.replaced(json.loads((tmp_path / "plain.json").read_text())["parameters"])
    state = np.random.default_rng(0).normal(size=(3, 9, 2))
    np.testing.assert_allclose(real.inverse_dynamics(*state), expected.inverse_dynamics(*state), rtol=1e-8, atol=1e-8)
    offset = 0.2 if suffix == "toml" else 0.0
    assert np.abs(real.inverse_dynamics(*state) - ARM.inverse_dynamics(*state) - offset).max() < 0.4 - offset


def test_motors_that_turn_with_two_joints_come_from_the_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inertia, coulomb, viscous = 0.3, 0.6, 0.4  # of the second motor, at its joint: it turns with both joints
    rate, acceleration = MOTION[1].sum(axis=1), MOTION[2].sum(axis=1)
    force = inertia * acceleration + coulomb * np.sign(rate) + viscous * rate
    body = {"mass": 2.0, "com": (0.1, 0.05, 0.02), "inertia": np.diag([0.02, 0.03, 0.04])}
    pan = torsor.from_dh([torsor.DHLink(d=0.3, alpha=np.pi / 2, **body), torsor.DHLink(a=0.4, **body)])
    data = measured(pan, extra=force[:, None])
    R = np.array([[50.0, 0.0], [40.0, 40.0]])
    motors = np.column_stack([T, data.q @ R.T, data.tau @ np.linalg.inv(R)])
    np.savetxt(tmp_path / "log.csv", motors, delimiter=",", header="t,a,b,c,d", comments="")
    (tmp_path / "map.toml").write_text(
        'cutoff = 20.0\n[columns]\ntime = "t"\nq = ["a", "b"]\ntau = ["c", "d"]\n'
        '[drives]\nside = "motor"\nratios = [50, 40]\ncoupling = [["joint2", "joint1", 40]]\n'
    )
    pan.save(tmp_path / "arm.toml")
    assert LogMap.load(tmp_path / "map.toml").couplings(pan) == {"motor of joint2": {"joint1": 1.0, "joint2": 1.0}}
    names = [str(tmp_path / name) for name in ("arm.toml", "log.csv", "map.toml")]
    assert main(["identify", names[0], names[1], "--map", names[2], "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert "motor of joint2 turns with joint1 and joint2" in printed.err.replace("\n", " ")
    shown = json.loads(printed.out)["drives"]
    assert [each["law"] for each in shown["terms"]] == ["inertia", "coulomb", "viscous"]
    np.testing.assert_allclose(shown["values"], [inertia, coulomb, viscous], atol=0.05)
    assert main(["identify", names[0], names[1], "--map", names[2], "--uncoupled", *NO_MODELS, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["drives"] is None


@pytest.mark.parametrize("form", ["heads", "map"])
def test_friction_that_falls_as_the_drive_warms_is_found_from_a_column(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warm = 20.0 + 30.0 * T / T[-1]
    extra = -0.02 * (warm - warm.mean())[:, None] * MOTION[1] * [1.0, 0.0]
    table(tmp_path / "log.csv", measured(ARM, extra=extra), temperature=warm)
    ARM.save(tmp_path / "arm.toml")
    (tmp_path / "map.toml").write_text(
        '[columns]\ntime = "time"\nq = ["q joint1", "q joint2"]\ntau = ["tau joint1", "tau joint2"]\n'
        'temperature = "temperature"\n'
    )
    more = ["--map", str(tmp_path / "map.toml")] if form == "map" else []
    call = ["identify", str(tmp_path / "arm.toml"), str(tmp_path / "log.csv"), *more, "--cutoff", "10"]
    assert main([*call, "--friction-models", "viscous_temperature", "--held-out", "0.2", "--json", "-"]) == 0
    shown = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(shown["drives"]["values"], [-0.02, 0.0], atol=2e-3)
    assert max(shown["held_out"]) < 5.0


def test_temperatures_are_checked_and_follow_their_samples() -> None:
    data = measured(ARM, temperature=np.arange(COUNT))
    np.testing.assert_array_equal(data.part(slice(3, 6)).temperature, [3, 4, 5])
    assert measured(ARM, temperature=np.zeros((COUNT, 2))).temperature.shape == (COUNT, 2)
    with refused(what="temperature has shape (5,)"):
        measured(ARM, temperature=np.zeros(5))
    with refused(what="temperature is not finite"):
        measured(ARM, temperature=np.full(COUNT, np.nan))


@pytest.mark.slow
def test_the_code_in_c_of_the_written_robot_has_its_forces(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    ARM.inertial.replaced(0.7 * ARM.inertial.values).save(tmp_path / "arm.toml")
    table(tmp_path / "log.csv", measured(ARM))
    real, code = str(tmp_path / "real.toml"), str(tmp_path / "code")
    assert main(["identify", str(tmp_path / "arm.toml"), str(tmp_path / "log.csv"), "--cutoff", "10", "-o", real]) == 0
    assert main(["export", real, code]) == 0
    library = tmp_path / "arm.so"
    call = [compiler, "-O2", "-shared", "-fPIC", f"{code}/torsor_kernels.c", "-o", str(library), "-lm"]
    subprocess.run(call, check=True)
    function = ctypes.CDLL(str(library)).inverse_dynamics
    state = np.random.default_rng(0).normal(size=(9, 3, 2))
    forces = np.zeros((9, 2))
    for row, out in zip(state, forces, strict=True):
        function(*(each.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for each in (*row, out)))
    expected = torsor.load(real).inverse_dynamics(*state.transpose(1, 0, 2))
    np.testing.assert_allclose(forces, expected, rtol=1e-12, atol=1e-12)
