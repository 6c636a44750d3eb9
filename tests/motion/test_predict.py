"""``torsor predict``: a problem in a file, or a built-in one, is solved, shown and written."""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.cli import main

REACH = """
torsor = 1
robot = "two_link"
phases = [{ duration = [0.1, 2.0], points = 6 }]
objectives = [{ kind = "time" }]
constraints = [
  { kind = "start", q = [0, -2], v = 0 },
  { kind = "end", q = [1, -1], v = 0 },
  { kind = "torques", upper = 10 },
]
"""


@pytest.fixture(autouse=True)
def built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reach.toml").write_text(REACH)
    made = ModuleType("torsor.motion.problems")
    made.PROBLEMS = {"reach": lambda: motion.load_problem(tmp_path / "reach.toml")}
    monkeypatch.setitem(sys.modules, "torsor.motion.problems", made)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["reach", "reach.toml"])
def test_a_problem_is_solved_and_written(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", name, "--json", "out.json", "--csv", "out.csv", "--save", "out.npz"]) == 0
    shown = capsys.readouterr().out
    assert "optimal" in shown and "Torques" in shown and "out.json" in shown
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["T"] == pytest.approx(0.42117, abs=1e-4) and found["status"] == "optimal"
    for key in ("objective", "iterations", "solve_seconds", "max_violation", "variables", "constraints"):
        assert isinstance(found[key], (int, float)), key
    path = found["trajectory"]
    robot = torsor.library.two_link()
    assert np.allclose(path["tau"], robot.inverse_dynamics(path["q"], path["v"], path["a"]), atol=1e-9)
    assert path["coordinates"] == list(robot.coordinate_names) and len(path["t"]) == len(path["q"])
    assert found["T"] == motion.MotionResult.load("out.npz").T
    assert len(torsor.Trajectory.load("out.csv", robot=robot)) == len(path["t"])


def test_options_reach_the_search(tmp_path: Path) -> None:
    given = ["--refine", "--solver", "ipopt", "--seconds", "60", "--iterations", "200", "--tolerance", "1e-7"]
    assert main(["predict", "reach", "--json", "out.json", *given]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["passes"][0]["violation"] > 1e-4 >= found["max_violation_fine"] and found["solver"] == "ipopt"


def test_what_is_wrong_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text(REACH.replace('"torques"', '"torqes"'))
    for arguments, words in (
        (["nothing"], "nothing: no such file; allowed: a .toml file, or one of reach"),
        (["bad.toml"], "did you mean 'torques'?"),
        (["reach", "--csv", "out.txt"], "the suffix is '.txt'"),
        (["reach", "--tolerance", "-1"], "tolerance is -1.0"),
        (["reach", "--json", "no/such/folder.json"], "its folder does not exist"),
        (["reach", "--csv", "no/such/folder.csv"], "its folder does not exist"),
        (["reach", "--json", "."], "it is a folder"),
        (["reach", "--tolerance", "inf"], "tolerance is inf"),
    ):
        assert main(["predict", *arguments]) == 1
        shown = capsys.readouterr().err
        assert words in shown and len(shown.strip().splitlines()) == 1
