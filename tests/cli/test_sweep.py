"""``torsor sweep``: a study file is computed, written and resumed, and sets the exit status."""

import json
from pathlib import Path

import pytest

from refusals import refused
from torsor.cli.main import main
from torsor.motion import sweeps
from torsor.motion.sweeps.store import KINDS

STUDY = """
torsor = 1
problem = "two-link-time"
workers = 0
keep = ["durations"]
grid.points = [6, 8]
fixed.nodes = 41
solver.tolerance = 1e-5
units.points = "control points"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_is_computed_once_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "study.toml"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["2 cases: 2 done, 0 failed", "study.sqlite"]
    assert main(["sweep", "study.toml"]) == 1
    assert "the file exists; fix: --resume continues it, --force replaces it" in capsys.readouterr().err
    (folder / "study.toml").write_text(STUDY.replace("[6, 8]", "[6, 8, -3]"))
    assert main(["sweep", "study.toml", "--resume", "--csv", "table.csv"]) == 3
    shown = capsys.readouterr().out
    assert "3 cases: 2 done, 1 failed" in shown and "case 2: " in shown and "table.csv" in shown
    (folder / "study.toml").write_text(STUDY.replace("[6, 8]", "[6]"))
    assert main(["sweep", "study.toml", "--resume"]) == 3
    shown = capsys.readouterr()
    assert "1 cases: 2 done, 1 failed\n" in shown.out and "the file has 3 cases, and 1 are given" in shown.err
    found = sweeps.read("study.sqlite")
    assert found["T"].round(3).tolist()[:2] == [0.421, 0.405] and found["durations"].shape == (3, 1)
    assert found["nodes"].tolist() == [41, 41, 41] and found.units["points"] == "control points"


@pytest.mark.parametrize("suffix", [name for name in KINDS if name != ".parquet"])
def test_an_output_file_may_have_every_suffix_of_sqlite(suffix: str) -> None:
    assert main(["sweep", "study.toml", "--output", f"out{suffix}"]) == 0
    assert sweeps.read(f"out{suffix}").done == 2


def test_results_go_to_standard_output_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "study.toml", "--output", "out.db", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "complete" and [row["points"] for row in found["rows"]] == [6, 8]
    assert {"name": "T", "role": "result", "kind": "number", "unit": "s"} in found["columns"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no format version"),
        ("torsor = 1", "add problem"),
        ('torsor = 1\nproblem = "walk"', "one of grid, cases, random"),
        ('torsor = 1\nproblem = "walk"\ngrid = {}\nrandom = {}', "grid and random"),
        ('torsor = 1\nproblem = "wlak"\ngrid.mass = [1]', "there is no problem 'wlak'"),
        ('torsor = 1\nproblem = "walk"\ngrid.mass = 3', "a list of values"),
        (f'torsor = 1\nproblem = "{300 * "<"}"\ngrid.mass = [1]', "there is no problem"),
        ('torsor = 1\nproblem = "walk"\ngrid.mass = { from = 1, to = 1e308, count = 3 }', "up to 1e+300"),
        ('torsor = 1\nproblem = "walk"\ngrids.mass = 3', "unknown key 'grids'"),
        ('torsor = 1\nproblem = "walk"\nworkers = "2"\ngrid.mass = [1]', "a whole number"),
        ('torsor = 1\nproblem = "walk"\nrandom.count = 3', "add ranges"),
        ('torsor = 1\nproblem = "walk"\n[random]\ncount = 0\nranges.mass = [1, 2]', "count"),
        ('torsor = 1\nproblem = "walk"\nsolver.speed = 3\ngrid.mass = [1]', "unknown key 'speed'"),
    ],
)
def test_mistakes_of_a_file_are_told(folder: Path, text: str, words: str) -> None:
    (folder / "study.toml").write_text(text)
    with refused(words):
        sweeps.load_study("study.toml")


def test_cases_are_written_in_three_ways(folder: Path) -> None:
    head = 'torsor = 1\nproblem = "walk"\n'
    (folder / "a.toml").write_text(head + "[grid]\nmass = [60, 70]\nmotors.upper = { from = 1, to = 2, count = 3 }")
    assert list(sweeps.load_study("a.toml").cases)[1] == {"mass": 60, "motors.upper": 1.5}
    (folder / "b.toml").write_text(head + '[[cases]]\nmass = 60\n[[cases]]\nsex = "female"\n"motors.upper" = 2')
    assert list(sweeps.load_study("b.toml").cases) == [{"mass": 60}, {"sex": "female", "motors.upper": 2}]
    (folder / "c.toml").write_text(head + "[random]\ncount = 4\nseed = 1\nranges.mass = [50, 100]")
    assert list(sweeps.load_study("c.toml").cases) == list(sweeps.samples(4, mass=(50, 100), seed=1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--workers", "1", "--cluster", "tcp://x"], "--workers and --cluster are both given"),
        (["--retry-failed"], "--retry-failed needs --resume"),
        (["--output", "x.txt"], "the suffix is '.txt'"),
        (["--csv", "x.txt"], "the suffix is '.txt'"),
    ],
)
def test_wrong_options_are_told(given: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "study.toml", *given]) == 1
    assert words in capsys.readouterr().err
