"""Reports are one file that opens offline: tables, figures, bearing loads and the motion."""

import re
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.cli.main import main
from torsor.simulation import Trajectory
from torsor.view.bearings import bearing_loads


def report(folder: Path, *arguments: str) -> str:
    """The text of the report that a command writes; tags of the page inside are escaped."""
    path = folder / "report.html"
    assert main([*arguments, "--report", str(path), "--force"]) == 0
    return path.read_text(encoding="utf-8")


def test_a_simulation_is_reported(tmp_path: Path) -> None:
    text = report(tmp_path, "simulate", "two_link", "--q0", "0.3", "-1.2", "--v0", "1", "0", "--duration", "0.05")
    assert "<h3>Motion of two_link</h3>" in text and "Bearings over the motion" in text
    assert "<td>samples</td>" in text and "<pre" not in text
    assert text.count("<iframe") == 1 and text.count('src="data:image/png;base64,') == 1
    assert not re.search(r'(src|href)="(?!data:)', text), "nothing is loaded from elsewhere"


def test_the_report_of_a_table_has_the_loads_of_its_motion(tmp_path: Path) -> None:
    robot, rng = torsor.library.two_link(), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 5, 2))
    Trajectory(robot, np.arange(5.0), q, v, a, np.zeros((5, 2))).save(tmp_path / "log.csv")
    text = report(tmp_path, "info", "two_link", "--states", str(tmp_path / "log.csv"))
    peak = bearing_loads(robot, robot.joint_wrenches(q, v, a)).peak()
    assert f"{peak[0, 1]:.4g}" in text and f"{peak[1, 1]:.4g}" in text


def test_a_parallel_robot_is_reported_with_its_bearings_at_rest(tmp_path: Path) -> None:
    assert "Bearings at rest" in report(tmp_path, "info", "three_rrr")


@pytest.mark.slow
def test_motions_and_identifications_are_reported(tmp_path: Path) -> None:
    assert "Bearings over the motion" in report(tmp_path, "predict", "two-link-time")
    robot, t = torsor.library.two_link(), np.arange(0.0, 3.0, 0.01)
    rates, turns = np.array([2.0, 3.0]), t[:, None] * [2.0, 3.0]
    q, v, a = np.sin(turns), rates * np.cos(turns), -(rates**2) * np.sin(turns)
    Trajectory(robot, t, q, v, a, robot.inverse_dynamics(q, v, a)).save(tmp_path / "log.csv")
    assert "base parameters" in report(tmp_path, "identify", "two_link", str(tmp_path / "log.csv"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("info two_link --q 0 0", "add --report FILE"),
        ("info two_link --report out.txt", "the suffix is '.txt'; allowed: .html"),
        ("simulate two_link --report -", "--report -: a file name is needed"),
    ],
)
def test_mistakes_are_named(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 1
    assert message in capsys.readouterr().err
