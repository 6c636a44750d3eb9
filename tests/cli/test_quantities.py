"""``torsor dynamics``, ``kinematics``, ``identify``, ``warm`` and ``doctor`` print the same numbers as the library."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from human.recordings import walkers
from torsor.cli.main import COMMANDS, command, main
from torsor.human.recordings import save
from torsor.simulation import Trajectory

Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *arguments: str) -> Any:
    """The JSON that a command prints."""
    assert main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)  # tables are on standard error


def test_dynamics_at_a_state_is_that_of_the_robot(capsys: Captured) -> None:
    robot, q, v = torsor.library.two_link(), [0.3, -1.2], [1.0, 0.5]
    state = ["--q", "0.3", "-1.2", "--v", "1", "0.5"]
    found = printed(capsys, "dynamics", "two_link", "bias_force", "mass_matrix", "jacobian:link2", *state)
    np.testing.assert_allclose(found["bias_force"]["values"], robot.bias_force(q, v), rtol=1e-14)
    np.testing.assert_allclose(found["mass_matrix"]["values"], robot.mass_matrix(q), rtol=1e-14)
    np.testing.assert_allclose(found["jacobian:link2"]["values"], robot.jacobian(q, "link2"), atol=1e-15)
    assert found["bias_force"]["units"] == ["N m", "N m"] and found["bias_force"]["axes"] == [["joint1", "joint2"]]


def test_dynamics_over_a_table_has_a_row_for_each_state(capsys: Captured, tmp_path: Path) -> None:
    robot, rng = torsor.library.two_link(), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 4, 2))
    Trajectory(robot, np.arange(4.0), q, v, a, np.zeros((4, 2))).save(tmp_path / "states.csv")
    table = str(tmp_path / "out.csv")
    assert main(["dynamics", "two_link", "--states", str(tmp_path / "states.csv"), "--output", table]) == 0
    written = np.genfromtxt(table, delimiter=",", names=True, deletechars="")
    assert written.dtype.names == ("time_[s]", "inverse_dynamics_joint1_[N_m]", "inverse_dynamics_joint2_[N_m]")
    true = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(written["inverse_dynamics_joint2_[N_m]"], true[:, 1], rtol=1e-12)


def test_closed_loops_are_computed_closed(capsys: Captured) -> None:
    robot = torsor.library.four_bar()
    q = robot.closed.assemble([0.6])
    found = printed(capsys, "dynamics", "four_bar", "--q", "0.6")["constrained_inverse_dynamics"]
    np.testing.assert_allclose(found["values"], robot.closed.inverse_dynamics(q, [0.0], [0.0]), rtol=1e-9)


def test_kinematics_gives_poses_and_twists(capsys: Captured) -> None:
    robot, q, v = torsor.library.two_link(), [0.3, -1.2], [1.0, 0.5]
    found = printed(capsys, "kinematics", "two_link", "link2", "--q", "0.3", "-1.2", "--v", "1", "0.5")
    np.testing.assert_allclose(found["position"]["values"], [robot.pose(q, "link2")[:3, 3]], atol=1e-15)
    np.testing.assert_allclose(found["angles"]["values"], [[0.0, 0.0, -0.9]], atol=1e-15)
    np.testing.assert_allclose(found["twist"]["values"], [robot.velocity(q, v, "link2")], atol=1e-15)
    home = printed(capsys, "kinematics", "gough_stewart", "platform")
    np.testing.assert_allclose(home["position"]["values"], [[0.0, 0.0, 0.8]], atol=1e-12)


def test_identify_finds_the_robot_of_a_log(capsys: Captured, tmp_path: Path) -> None:
    robot, t = torsor.library.planar_chain(1), np.arange(0.0, 3.0, 0.01)
    robot.save(tmp_path / "chain.toml")
    q, v, a = np.sin(3 * t)[:, None], 3 * np.cos(3 * t)[:, None], -9 * np.sin(3 * t)[:, None]
    log = tmp_path / "log.csv"
    Trajectory(robot, t, q, v, a, robot.inverse_dynamics(q, v, a)).save(log)
    names = ["--output", str(tmp_path / "real.toml"), "--validate", str(log)]
    found = printed(
        capsys, "identify", str(tmp_path / "chain.toml"), str(log), "--among", "link1.*", "--physical", *names
    )
    values = [each["value"] for each in found["base_parameters"]]
    np.testing.assert_allclose(values, robot.inertial.base(among=["link1.*"]).values, atol=1e-6)
    assert max(each["percent"] for each in found["validation"]["residuals"]) < 1e-4
    np.testing.assert_allclose(torsor.load(tmp_path / "real.toml").mass_matrix([0.3]), robot.mass_matrix([0.3]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("dynamics two_link dance", "no quantity 'dance'; allowed:"),
        ("dynamics two_link jacobian", "fix: write jacobian:LINK"),
        ("dynamics two_link mass_matrix:link1", "fix: write mass_matrix"),
        ("dynamics two_link --q 1", "--q has 1 number; allowed: 2: joint1, joint2"),
        ("dynamics two_link --q nan 1", "--q contains NaN or infinity"),
        ("dynamics two_link --states states.csv --q 1 1", "--states and --q are both given"),
        ("dynamics two_link --states words.csv", "is not a number; allowed: a finite number"),
        ("dynamics two_link --states short.csv", "no column 'q joint2'"),
        ("dynamics two_link --states twice.csv", "'q joint1 [rad]' appears twice"),
        ("dynamics two_link --states empty.csv", "the table has no rows"),
        ("kinematics two_link nowhere", "'nowhere'"),
        ("identify two_link short.csv", "column 'q joint2' is missing"),
        ("identify two_link positions.csv", "the force columns are missing"),
        ("identify two_link forces.csv", "fix: add a column 'time', or set the rate in a map"),
    ],
)
def test_mistakes_are_named(
    arguments: str, message: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tables = {
        "words": "q joint1,q joint2\none,two\n",
        "short": "q joint1\n1\n",
        "twice": "q joint1,q joint1 [rad]\n1,1\n",
        "empty": "q joint1,q joint2\n",
        "positions": "q joint1,q joint2\n1,1\n",
        "forces": "q joint1,q joint2,tau joint1,tau joint2\n1,1,0,0\n",
    }
    for name, text in tables.items():
        Path(f"{name}.csv").write_text(text)
    assert main(arguments.split()) == 1
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_warm_fills_the_cache(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path / "cache"))
    found = printed(capsys, "warm", "two_link", "--names", "gravity_force", "jacobian:link2")
    assert list(found["seconds"]) == ["gravity_force", "jacobian:link2"]
    assert printed(capsys, "cache")["kernels"] == 2
    monkeypatch.setenv("TORSOR_CACHE", "off")
    assert main(["warm", "two_link"]) == 1
    assert "fix: unset TORSOR_CACHE" in capsys.readouterr().err


def test_doctor_tests_the_installation(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    from torsor.cli import doctor

    found = printed(capsys, "doctor")
    assert (
        all(check["good"] for check in found["checks"].values()) and found["versions"]["torsor"] == torsor.__version__
    )
    monkeypatch.setitem(doctor.CHECKS, "a simulation conserves energy", lambda: 0.5)
    assert main(["doctor"]) == 3
    assert "Please report this" in capsys.readouterr().out


def test_debug_shows_the_traceback(capsys: Captured) -> None:
    assert main(["info", "nothing", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert main(["info", "nothing"]) == 1
    assert "Traceback" not in capsys.readouterr().err


QUICK = {"examples", "info", "dynamics", "kinematics", "count", "cache", "export"}


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_help_run(name: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = command(name).examples
    assert examples
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path / "cache"))
    save(walkers.markers(), tmp_path / "walk.trc")
    for example in examples:
        words = example.split()
        assert example in command_help(name, capsys)
        if name in QUICK and "robot.urdf" not in words:
            assert words[0] == "torsor" and main(words[1:]) == 0


def command_help(name: str, capsys: Captured) -> str:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    return capsys.readouterr().out


def test_wide_matrices_show_every_number_on_a_narrow_terminal(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["dynamics", "quadruped", "gravity_force", "mass_matrix"]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed and max(map(len, printed.splitlines())) <= 80
    assert printed.count("mass_matrix") == 4 and printed.count(" -0 ") == 0  # 18 columns, in four parts


def test_columns_with_plain_names_are_positions(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "states.csv"
    found = []
    for heads in ("joint2 [rad],joint1", "q joint2,q joint1", "q joint2,joint1"):
        path.write_text(f"{heads}\n0.2,0.1\n")
        arguments = ("dynamics", "two_link", "gravity_force", "--states", str(path))
        found.append(printed(capsys, *arguments) if "q joint1" in heads or "[" in heads else main(list(arguments)))
    assert found[0]["gravity_force"] == found[1]["gravity_force"]
    assert found[2] == 1 and "no column 'q joint1'" in capsys.readouterr().err  # half of them are 'q NAME'


def test_motion_that_a_table_does_not_have_is_said(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,q joint1,q joint2\n0,0.1,0.2\n")
    assert main(["dynamics", "two_link", "inverse_dynamics", "--states", str(path)]) == 0
    assert (
        "log.csv: the columns 'v NAME' and 'a NAME' are missing and are assumed to be zero" in capsys.readouterr().err
    )
    assert main(["dynamics", "two_link", "gravity_force", "--states", str(path)]) == 0
    assert not capsys.readouterr().err


def test_without_a_command_the_commands_are_listed(capsys: Captured) -> None:
    assert main([]) == 2
    listed = capsys.readouterr().err
    assert all(re.search(rf"^ +{name}\b", listed, re.MULTILINE) for name in COMMANDS)


def test_ik_gives_postures(capsys: Captured) -> None:
    arm = torsor.library.six_axis_arm()
    found = printed(capsys, "ik", "six_axis_arm", "--target", "link6", "0.5", "0.2", "0.6")
    assert found["solved"]
    np.testing.assert_allclose(arm.pose(found["q"][0], "link6")[:3, 3], [0.5, 0.2, 0.6], atol=1e-9)
    assert main(["ik", "panda", "--target", "panda_hand", "0.4", "0.2", "0.4", "0", "0", "0", "--all"]) == 1
    assert "fix: omit --all" in capsys.readouterr().err
    everyone = printed(capsys, "ik", "ur5", "--target", "ee_link", "0.4", "0.2", "0.4", "0", "1.5", "0", "--all")
    assert len(everyone["q"]) == 8
    assert main(["ik", "two_link", "--target", "link2", "4", "0", "0"]) == 1
    assert "out of reach" in capsys.readouterr().err
    for wrong in (["4"], ["4", "0", "nan"], ["0.1", "0", "0", "0", "nan", "0"], ["0.1", "0", "0", "0", "0", "inf"]):
        assert main(["ik", "two_link", "--target", "link2", *wrong]) == 1
        assert "x y z [roll pitch yaw]" in capsys.readouterr().err


def test_ik_keeps_shapes_apart(capsys: Captured, tmp_path: Path) -> None:
    arm, ball = torsor.library.ur5(), torsor.Shape("sphere", (0.05,))
    arm = arm.with_shapes("wrist_3_link", [ball]).with_shapes("upper_arm_link", [torsor.Shape("capsule", (0.06, 0.5))])
    arm.save(tmp_path / "arm.toml")
    given = ["ik", str(tmp_path / "arm.toml"), "--target", "ee_link", "0.4", "0.2", "0.4", "0", "1.5", "0"]
    near = arm.shapes.distances(np.array(printed(capsys, *given, "--all")["q"])).distance.min(axis=1)
    few = printed(capsys, *given, "--all", "--clearance", "0.3")
    assert 0 < len(few["q"]) == (near >= 0.3).sum() < len(near)
    found = printed(capsys, *given, "--clearance", "0.3")
    assert found["solved"] and found["clearance"] >= 0.3 and found["blocking"] == []
    assert arm.shapes.distances(found["q"][0]).distance.min() >= 0.3
    for wrong, words in (("--allowed=x.srdf", "--allowed needs --clearance"), ("--clearance=nan", "is nan")):
        assert main([*given, wrong]) == 1
        assert words in capsys.readouterr().err
