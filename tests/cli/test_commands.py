"""The command line does what its help says, and fails with a message and status 1."""

import json
from pathlib import Path

import pytest

import torsor
from refusals import refused
from torsor.cli.main import main


def test_info_shows_links_joints_and_frames(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["info", "stanford"]) == 0
    shown = capsys.readouterr().out
    assert "6 moving links, nq = 6, nv = 6" in shown
    assert "prismatic" in shown
    scara = torsor.library.scara().with_frame(
        "[bold]gripper", "tool", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1]]
    )
    scara.save(tmp_path / "scara.toml")
    assert main(["info", str(tmp_path / "scara.toml"), "--base", "floating"]) == 0
    shown = capsys.readouterr().out
    assert "nq = 11, nv = 10" in shown
    assert "[bold]gripper" in shown


def test_count_shows_the_operations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "two_link"]) == 0
    shown = capsys.readouterr().out
    count = torsor.library.two_link().operation_count("inverse_dynamics")
    row = next(line for line in shown.splitlines() if "inverse_dynamics" in line)
    assert [int(word) for word in row.replace("│", " ").split()[1:]] == list(count)


def test_export_writes_c(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", "two_link", str(tmp_path / "c"), "--names", "inverse_dynamics", "jacobian:link2"]) == 0
    assert "void jacobian_link2(" in (tmp_path / "c" / "torsor_kernels.h").read_text()
    for name, own in (("four_bar", "constrained_inverse_dynamics"), ("three_rrr", "inverse_dynamics")):
        assert main(["export", name, str(tmp_path / name)]) == 0  # by default, the mechanism's own inverse dynamics
        assert f"void {own}(" in (tmp_path / name / "torsor_kernels.h").read_text()
    assert main(["export", "two_link", str(tmp_path / "d"), "--names", "dance"]) == 1
    assert "there is no algorithm 'dance'" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["c", "js"])
def test_export_replaces_files_with_force_only(capsys: pytest.CaptureFixture[str], tmp_path: Path, to: str) -> None:
    command, first = ["export", "two_link", str(tmp_path), "--to", to], []
    assert main(command) == 0
    for file in sorted(tmp_path.iterdir()):
        first.append(file.read_bytes())
        file.write_bytes(first[-1] + b"\n")
    assert main([*command, "--names", "mass_matrix"]) == 1
    shown = capsys.readouterr().err
    assert f"{tmp_path}/torsor_kernels." in shown and "--force" in shown
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == [each + b"\n" for each in first]
    assert main([*command, "--force"]) == 0
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == first
    with refused(allowed="a new file"):
        getattr(torsor.export, to)(torsor.library.two_link(), tmp_path, overwrite=False)


def test_a_folder_does_not_hide_a_robot_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["export", "two_link", "two_link", "--force"]) == 0


def test_export_refuses_a_prefix_that_is_no_name_and_an_fmu_as_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for prefix in ("../x", "_", "1", "é", "a-b", "*/"):
        assert main(["export", "two_link", str(tmp_path / "c"), "--prefix", prefix]) == 1
        assert "allowed: letters, digits and _, starting with a letter" in capsys.readouterr().err
    assert main(["export", "two_link", str(tmp_path / "arm.fmu")]) == 1
    assert "fix: --to fmi" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_export_says_which_targets_and_options_there_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", "three_rrr", str(tmp_path), "--to", "ros2"]) == 1
    assert "--to ros2 does not support parallel robots; allowed: --to c, --to cpp, --to js" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
FINGERS = f"""
<robot name="gripper">
  <link name="base"/>
  <link name="hand">{BODY}</link>
  <link name="left">{BODY}</link>
  <link name="right">{BODY}</link>
  <joint name="wrist" type="continuous"><parent link="base"/><child link="hand"/><axis xyz="0 0 1"/></joint>
  <joint name="finger1" type="prismatic"><parent link="hand"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
  <joint name="finger2" type="prismatic"><parent link="hand"/><child link="right"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/><mimic joint="finger1"/></joint>
</robot>
"""


def test_export_holds_fingers_that_a_ros2_package_cannot_have(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "gripper.urdf").write_text(FINGERS)
    command = ["export", str(tmp_path / "gripper.urdf"), str(tmp_path / "package"), "--to", "ros2"]
    assert main(command) == 1
    assert "fix: hold the joint: --fix finger1=0\n" in capsys.readouterr().err
    assert main([*command, "--fix", "finger1=0.02"]) == 0
    assert "finger" not in (tmp_path / "package" / "config" / "controllers.yaml").read_text()


def test_info_and_print_list_the_motors_of_elastic_joints(capsys: pytest.CaptureFixture[str]) -> None:
    assert "joint3/motor  elastic motor         link1" in str(torsor.library.elastic_arm())
    assert main(["info", "elastic_arm", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["elastic_motors"] == ["joint3/motor"]


def test_cache_is_shown_and_cleared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path / "cache"))
    torsor.library.two_link().mass_matrix([0.1, 0.2])
    assert main(["cache"]) == 0
    assert "1 kernels" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert "0 kernels" in capsys.readouterr().out


def test_demo_prints_tables_and_saves_a_plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--output", str(tmp_path / "demo.png")]) == 0
    shown = capsys.readouterr().out
    for title in ("Links", "Joints", "Inverse dynamics and joint reactions", "Operations for one state"):
        assert title in shown
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nothing"], "no such file or library robot; allowed: a robot file, or one of"),
        (["info", "two_link", "--base", "floating"], "load that file with --base floating"),
        (["info", "quadruped", "--base", "floating"], "floats already; allowed: 'fixed'; fix: omit --base"),
        (["demo", "--output", "no/such/folder/demo.png"], "its folder does not exist"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.startswith("error: ")


def test_robots_with_loops_move_from_their_active_coordinates(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "four_bar.toml")
    torsor.library.four_bar().save(path)
    assert main(["info", path]) == 0
    shown = capsys.readouterr().out
    assert "Loops: pin (revolute)\nDegrees of freedom: 1; redundant equations: 3 of 5\nActive: crank_joint" in shown
    assert main(["simulate", path, "--duration", "0.01"]) == 0  # from a closed start near zero
    assert "largest error of closure" in capsys.readouterr().out
    start = ["--q0", "0.5", "0.2", "1.5", "--v0", "2", "--tau", "3"]
    output = tmp_path / "swing.npz"
    assert main(["simulate", path, "--duration", "0.01", *start, "--output", str(output)]) == 0
    assert "largest error of closure" in capsys.readouterr().out
    swing = torsor.Trajectory.load(output)
    assert swing.q[0].round(3).tolist() == [0.5, 0.242, 1.553] and swing.v[0, 0] == pytest.approx(2)
    assert swing.tau[0].tolist() == [3, 0, 0]
    assert main(["simulate", path, "--duration", "0.01", "--q0", "0.5"]) == 0
    assert main(["simulate", path, "--q0", "0.5", "--tau", "1", "2"]) == 1
    assert "--tau has 2 numbers; allowed: 3, or 1 of the active coordinates" in capsys.readouterr().err


@pytest.mark.slow
def test_parallel_robots_are_shown_counted_and_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "delta"]) == 0
    assert "3 degrees of freedom; legs and their drives: leg1 (shoulder)" in capsys.readouterr().out
    assert main(["count", "three_rrr"]) == 0
    assert main(["simulate", "three_rrr", "--duration", "0.01"]) == 0
    assert "done" in capsys.readouterr().out


def test_convert_writes_another_format_and_replaces_a_file_with_force_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, written = tmp_path / "arm.urdf", tmp_path / "said.json"
    assert main(["convert", "two_link", str(path), "--json", str(written)]) == 0
    assert torsor.load(path).joint_names == torsor.library.two_link().joint_names
    assert json.loads(written.read_text())["file"] == str(path)
    assert main(["convert", "two_link", str(path)]) == 1
    assert main(["convert", str(path), str(path), "--force"]) == 1
    assert main(["convert", str(path), str(tmp_path / "arm.step")]) == 1
    assert main(["convert", "two_link", str(tmp_path / ("a" * 300 + ".urdf"))]) == 1
    shown = capsys.readouterr().err
    assert (
        "--force" in shown
        and "the output is also an input" in shown
        and "the suffix is '.step'" in shown
        and "too long" in shown
    )
    assert main(["convert", "two_link", str(path), "--force"]) == 0
