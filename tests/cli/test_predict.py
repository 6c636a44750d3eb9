"""``torsor predict`` solves, shows and writes a problem from a file or a built-in problem."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import torsor
from human import walks
from torsor import motion
from torsor.cli.main import main
from torsor.cli.predictions import NAMED
from torsor.cli.predictions.prediction import Prediction
from torsor.human import Stride, recorded_walk, recordings

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
    swing = Prediction("swing", lambda given: motion.load_problem(tmp_path / "reach.toml"))
    monkeypatch.setattr("torsor.cli.predict.NAMED", {"swing": swing} | NAMED)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["swing", "reach.toml"])
def test_a_problem_is_solved_and_written(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", name, "--json", "out.json", "-o", "out.csv", "-o", "out.npz"]) == 0
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
    assert main(["predict", "swing", "--json", "out.json", *given]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["passes"][0]["violation"] > 1e-4 >= found["max_violation_fine"] and found["solver"] == "ipopt"


def test_an_infeasible_problem_writes_the_nearest_motion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hard.toml").write_text(REACH.replace("[0.1, 2.0]", "[0.1, 0.2]"))
    assert main(["predict", "hard.toml", "--json", "out.json", "-o", "out.csv"]) == 3
    shown = capsys.readouterr()
    assert "Torques" in shown.err and "out.json" in shown.out
    found = json.loads((tmp_path / "out.json").read_text())
    assert not found["is_solved"] and found["max_violation"] > 1e-3 and len(found["trajectory"]["q"]) > 1


def test_a_search_that_is_stopped_by_a_limit_is_told_by_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torsor.motion.solve.GRACE_SECONDS", 600.0)  # however long compiling takes
    assert main(["predict", "swing", "--iterations", "6"]) == 4
    shown = capsys.readouterr()
    assert "warning: reach: the motion is not optimal" in shown.err and "stopped at the iteration limit" in shown.err
    assert main(["predict", "swing", "--seconds", "1e-9"]) == 4
    assert "stopped at the time limit" in capsys.readouterr().err


def test_a_motion_that_is_optimal_at_the_nodes_only_is_told_by_its_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "coarse.toml").write_text(REACH.replace("points = 6", "points = 8, nodes = 9"))
    assert main(["predict", "coarse.toml"]) == 5
    shown = capsys.readouterr()
    assert "optimal at the nodes only" in shown.out and "Torques is violated by" in shown.err
    # The report says what is accepted at the nodes and between them, so that the size that decides is seen.
    assert re.search(r"violation at the nodes \(accepted\).* \(1e-05\)", shown.out)
    assert re.search(r"violation between the nodes \(accepted\).* \(5e-02\)", shown.out)


@pytest.mark.parametrize("command", [[], ["predict"]])
def test_the_help_lists_the_exit_statuses(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--help-all"])
    shown = re.sub(r"\n {7}", " ", capsys.readouterr().out)
    for words in (
        "0    success",
        "3    the motion problem is infeasible" if command else "3    infeasible problem",
        "4    the solver did not reach an optimum",
        "5    the motion is optimal at the nodes",
        "violates a constraint between them" + (" by more than 0.05 of its scale" if command else ""),
    ):
        assert words in shown


def test_a_problem_may_be_called_walk(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(REACH.replace("torsor = 1", 'torsor = 1\nname = "walk"'))
    assert main(["predict", "mine.toml", "--json", "out.json"]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["name"] == "walk"


def test_invalid_input_gives_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text(REACH.replace('"torques"', '"torqes"'))
    for arguments, words in (
        (["nothing"], "nothing: no such file or built-in problem; allowed: a .toml file, or one of swing"),
        (["bad.toml"], "did you mean 'torques'?"),
        (["swing", "-o", "out.txt"], "the suffix is '.txt'"),
        (["swing", "--tolerance", "-1"], "tolerance is -1.0"),
        (["swing", "--json", "no/such/folder.json"], "its folder does not exist"),
        (["swing", "-o", "no/such/folder.csv"], "its folder does not exist"),
        (["swing", "--json", "."], "it is a folder"),
        (["swing", "--tolerance", "inf"], "tolerance is inf"),
    ):
        assert main(["predict", *arguments]) == 1
        shown = capsys.readouterr().err
        assert words in shown and len(shown.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["walk", "--seat", "0.4"],
            "--seat is an option of stand-up, sit-down, not of walk; allowed: --height, --mass, --sex",
        ),
        (["lift", "--speed", "1"], "not of lift; allowed: --height, --mass, --sex, --age, --stature-percentile"),
        (["swing", "--ergonomics", "x.html"], "--ergonomics is an option of walk, lift, push, pull, reach"),
        (["lift", "--ergonomics", "x.txt"], "x.txt: the suffix is '.txt'; allowed: .html"),
        (
            ["swing", "--planar"],
            "--planar is an option of walk, run, not of swing; allowed: only the options common to all",
        ),
        (["reach.toml", "--box", "3"], "--box is an option of walk, lift, not of reach.toml"),
        (["walk", "--backpack", "3", "--box", "3"], "--backpack and --box are both given; allowed: one of them"),
    ],
)
def test_options_of_another_problem_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", *arguments]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and words in shown and len(shown.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["walk", "--frozen", "right_knee_flexion=6"], "fix: use --steps 2"),
        (["walk", "--frozen", "right_knee_flexion=600"], "--frozen right_knee_flexion=600; allowed: degrees, from"),
        (["walk", "--slope", "-60"], "--slope is -60; allowed: degrees, between -45 and 45"),
        (["walk", "--slope", "nan"], "--slope is nan"),
        (["walk", "--strength", "wing=2"], "'wing'"),
        (["walk", "--objective", "joy=1"], "joy"),
        (["walk", "--speed", "-1"], "--speed is -1.0"),
        (["walk", "--compare", "nobody.mot"], "nobody.mot: no such file"),
        (["walk", "--compare", "nobody"], "no reference 'nobody'; allowed: a file, OpenSim tutorial, Schwartz 2008"),
        (["walk", "--compare", "reach.toml"], "reach.toml: unknown file type '.toml'; allowed: a recording: .mot"),
        (["walk", "--compare-mass", "70"], "--compare-mass needs a recording; fix: add --compare with a recording"),
        (["walk", "--compare", "Schwartz 2008", "--compare-mass", "70"], "--compare-mass needs a recording"),
        (
            ["walk", "--compare", "a.npz", "b.npz"],
            "a.npz: it cannot be one of several files; allowed: a recording: .mot, .sto, .csv",
        ),
        (["walk", "-o", "walk.avi"], "the suffix is '.avi'; allowed: .npz, .csv"),
        (["walk", "--samples", "walk.txt"], "the suffix is '.txt'; allowed: .csv"),
        (["swing", "-o", "swing.mot"], "the suffix is '.mot'; allowed: .npz, .csv"),
        (["walk", "--height", "9"], "--height is 9.0"),
        (["walk", "--height", "1.8", "--stature-percentile", "95"], "is 95.0; allowed: one of them"),
        (["lift", "--age", "3"], "age (years) is 3.0; allowed: a finite number, 4 or more and 110 or less"),
        (["reach", "--stature-percentile", "99"], "the stature percentile is 99 %; allowed: 5 to 95"),
        (["walk", "--lengths", "thigh=45"], "length of thigh is 45 m; allowed: from 0.169 to 0.844 m"),
        (["walk", "--strength", "left=0.5"], "fix: use --steps 2"),
        (["walk", "--backpack", "-1"], "--backpack is -1.0"),
        (["walk", "--box", "nan"], "--box is nan"),
        (["lift", "--box", "-1"], "--box is -1.0"),
        (["elastic-arm", "--torque", "0"], "--torque is 0.0; allowed: a finite number, above 0"),
        (["stanford-rates", "--torque", "-1"], "--torque is -1.0; allowed: a finite number, above 0"),
        (["stanford-rates", "--torque-rate", "nan"], "--torque-rate is nan"),
        (["ur5-time", "--torque-rate", "-5"], "--torque-rate is -5.0; allowed: positive numbers"),
        (["panda-time", "--torque-rate", "1", "nan"], "--torque-rate is [1.0, nan]; allowed: positive numbers"),
        (["path-time", "--torque-rate", "0"], "--torque-rate is 0.0; allowed: positive numbers"),
        (["stand-up", "--seat", "3"], "--seat is 3.0"),
        (["push", "--push-force", "-5"], "--push-force is -5.0; allowed: a finite number, above 0"),
        (["pull", "--handle", "nan"], "--handle is nan"),
        (["lift", "--turn", "120"], "--turn is 120.0; allowed: a finite number, -90 or more and 90 or less"),
        (["lift", "--box", "400"], "mass of the box is 400.0; allowed: a finite number, 300 or less"),
        (["reach", "--target", "nan", "0", "0"], "target"),
        (["swing", "--iterations", "0"], "--iterations is 0"),
    ],
)
def test_messages_speak_the_words_of_the_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", *arguments]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and words in shown and len(shown.splitlines()) == 1


def test_pairs_are_names_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["predict", "walk", "--frozen", "right_knee_flexion"])
    assert stopped.value.code == 2
    assert "allowed: NAME=NUMBER, such as right_knee_flexion=10" in capsys.readouterr().err


def test_options_of_humans_reach_their_problems() -> None:
    walk = NAMED["walk"].problem({"backpack": 15.0, "slope": 6.0, "steps": 2, "frozen": [("right_knee_flexion", 6.0)]})
    assert walk.frozen["right_knee_flexion"] == np.radians(6.0) and "left step length" in walk.shared
    lift, plain = NAMED["lift"].problem({"box": 15.0, "mass": 80.0}), NAMED["lift"].problem({})
    assert lift.held["links.left_hand.mass"] > plain.held["links.left_hand.mass"] + 2.4
    reach = NAMED["reach"].problem({"target": [0.3, 0.6, 0.5], "hand": "left"})
    assert reach.conditions[-1].title == "left hand at the target"
    assert NAMED["stand-up"].problem({"seat": 0.5}).name == "stand-up"
    girl = NAMED["reach"].problem(
        {"age": 8.0, "sex": "female", "lengths": [("thigh", 0.3)], "strength": [("all", 0.9)]}
    )
    assert girl.held["joints.right_knee_flexion.origin.y"] == pytest.approx(-0.3)
    assert girl.held["links.head.mass"] == pytest.approx(2.9, abs=0.05)


def test_a_movie_without_ffmpeg_is_told_before_the_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("torsor.simulation.movie.shutil.which", lambda name: None)
    assert main(["predict", "walk", "-o", "walk.mp4"]) == 1
    assert "walk.mp4: the program ffmpeg is not found; fix: install ffmpeg, or write a .gif" in capsys.readouterr().err


def test_a_recording_of_a_wrong_mass_is_told_before_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    recordings.save(walks.forces(walks.times()), "forces.mot")
    assert main(["predict", "walk", "--compare", "forces.mot", "--compare-mass", "50"]) == 1
    assert "the mass is 50.0 kg, but the ground carries 70.9 kg" in capsys.readouterr().err


@pytest.mark.slow
def test_a_walk_is_compared_and_written_in_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t = walks.times()
    recordings.save(walks.angles(t), "angles.mot")
    recordings.save(walks.moments(t), "moments.sto")
    recordings.save(walks.forces(t), "forces.mot")
    files = ["--json", "out.json", "-o", "out.csv", "--samples", "raw.csv", "--plot", "out.png"]
    files += ["-o", "out.npz", "-o", "out.mot", "-o", "out.gif"]
    compared = ["--compare", "angles.mot", "moments.sto", "forces.mot", "--compare", "schwartz 2008"]
    assert main(["predict", "walk", *compared, *files]) in (0, 5)
    shown = capsys.readouterr().out
    assert "mean of 11 sagittal" in shown and "angles.mot: right side, 3 strides of 1.1 s" in shown
    for name in ("out.csv", "raw.csv", "out.png", "out.npz", "out.mot", "out_grf.mot", "out_grf.xml", "out_id.sto"):
        assert (tmp_path / name).stat().st_size > 500 and name in shown
    assert (tmp_path / "out.gif").read_bytes().startswith(b"GIF89a")
    found = json.loads((tmp_path / "out.json").read_text())["comparison"]
    assert found["means"]["angles.mot"]["curves"] == 11
    # How much the walk is like people depends on the objective and on which optimum is found: what is written is that
    # of the walk that is saved, which is feasible.
    result = motion.MotionResult.load("out.npz")
    assert result.is_feasible
    stride = Stride(result)
    recorded = stride.likeness(recorded_walk("angles.mot", "moments.sto", "forces.mot"))
    for name, row in recorded.items():
        assert found["curves"][name]["r2"] == pytest.approx(row.r2, rel=1e-9, abs=1e-9), name
    # The table is the whole stride, and reads back as the walk itself; the samples are those of one step.
    again = stride.likeness("out.csv")
    assert again.mean.curves == 11 and max(row.rms for row in again.values()) < 1e-6
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 402
    assert float((tmp_path / "raw.csv").read_text().splitlines()[-1].split(",")[0]) == pytest.approx(result.T)
