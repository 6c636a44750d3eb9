"""``torsor retime``: tables, points and documents contain the motion of ``motion.retime``; errors name the mistake."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.cli.main import main
from torsor.motion import retime

ARM = torsor.library.ur5()
WAYPOINTS = np.array([[0, -1.5, 1, 0, 0, 0], [1, -1, 0.5, 0.5, 1, 0], [1.5, -0.5, 1, 1, -0.5, 1]], dtype=float)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "waypoints.csv"
    head = ",".join(f"q {name} [rad]" for name in ARM.coordinate_names)
    np.savetxt(file, WAYPOINTS, delimiter=",", header=head, comments="")
    return file


def test_files_have_the_motion_of_retime(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, points, document = (table.with_name(name) for name in ("motion.csv", "points.json", "motion.json"))
    files = ["-o", str(out), "--joint-trajectory", str(points), "--json", str(document), "--rate", "50"]
    assert main(["retime", "ur5", str(table), "--payload", "ee_link", "2", "--corner-tolerance", "0.1", *files]) == 0
    found = retime(ARM.with_payload("ee_link", 2.0), WAYPOINTS, tolerance=0.1)
    assert f"duration: {found.duration:.6g} s" in capsys.readouterr().out
    rows = np.loadtxt(out, delimiter=",", skiprows=1)
    assert rows[-1, 0] == pytest.approx(found.duration, abs=1e-12)
    assert rows[:, 1:7] == pytest.approx(found.at(rows[:, 0]).q, abs=1e-12)
    shown = json.loads(document.read_text())
    assert shown["torsor"]["kind"] == "retimed" and shown["duration"] == pytest.approx(found.duration)
    assert shown["bounds"]["torque"]["source"] == "of the robot"
    again = retime(ARM, json.loads(points.read_text()))
    assert again.q[-1] == pytest.approx(WAYPOINTS[-1], abs=1e-8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--torque", "1"], "standing still needs"),
        (["--payload", "ee_link", "heavy"], "'heavy'"),
        (["--reaction", "knee", "1", "1"], "'knee'"),
        (["--corner-tolerance", "-1"], "--corner-tolerance is -1"),
        (["--velocity", "1", "2"], "6 of them"),
        (
            ["--reaction", "elbow_joint", "9", "9", "--reaction", "elbow_joint", "9", "inf"],
            "a joint is given twice",
        ),
        (["-o", "motion.txt"], "the suffix is '.txt'"),
    ],
)
def test_mistakes_are_named(table: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retime", "ur5", str(table), *options]) == 1
    assert words in capsys.readouterr().err


def test_a_robot_without_limits_asks_for_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "line.csv"
    file.write_text("q joint1,q joint2\n0,0\n1,1\n", encoding="utf-8")
    assert main(["retime", "two_link", str(file)]) == 1
    assert "has no velocity limit; fix: pass --velocity" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "paths.json",
            json.dumps([WAYPOINTS.tolist()] * 2),
            "the file contains 2 paths; allowed: one path",
        ),
        ("points.yaml", "joint_names: []", "the suffix is '.yaml'; allowed: .csv, .npz, .json"),
    ],
)
def test_files_without_one_path_are_refused(
    tmp_path: Path, name: str, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert main(["retime", "ur5", str(file)]) == 1
    assert words in capsys.readouterr().err


def test_own_files_are_paths_again(table: Path) -> None:
    names = ("motion.npz", "table.csv", "points.json", "motion.json")
    npz, rows, points, document = (table.with_name(name) for name in names)
    grid = ["--knots", "30", "--rate", "20"]
    assert main(["retime", "ur5", str(table), "-o", str(npz), "--joint-trajectory", str(points), *grid]) == 0
    assert main(["retime", "ur5", str(table), "-o", str(rows), "--json", str(document), *grid]) == 0
    known = retime(ARM, WAYPOINTS).duration
    for file, error in ((npz, 1e-12), (rows, 0.02), (points, 0.02), (document, 0.02)):
        assert main(["retime", "ur5", str(file), "--json", str(table.with_name("again.json")), "--force"]) == 0
        found = json.loads(table.with_name("again.json").read_text())["duration"]
        assert found == pytest.approx(known, rel=error)


def test_grids_and_rates_that_are_too_coarse_are_told(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retime", "ur5", str(table), "--knots", "2"]) == 0
    err = capsys.readouterr().err
    assert "warning: waypoints.csv: between knots, " in err and "fix: increase --knots, or omit it" in err
    assert "on a grid of 4 intervals, the motion is not the fastest" in err
    assert main(["retime", "ur5", str(table), "--rate", "0.5", "-o", str(table.with_name("motion.csv"))]) == 0
    words = "motion.csv: --rate 0.5 results in only 2 rows for 0.8977 s; fix: --rate 112 or more"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("words", [["ur5", ""], ["", "waypoints.csv"], ["ur5", "waypoints.csv", "-o", ""]])
def test_empty_names_are_no_files(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["retime", *words])
    assert "the name is empty; fix: give a name, or omit the option" in capsys.readouterr().err
