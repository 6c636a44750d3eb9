"""Every command writes JSON, to a path that is checked before it starts; tables of states have the right units."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.documents import schema_of
from torsor.cli.main import COMMANDS, main

from ..base.schemas import faults

ARM = torsor.library.two_link()
HEAD = "time [s],q joint1 [rad],q joint2 [rad]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON that a command prints."""
    assert main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=lambda each: pytest.fail(f"{each} in JSON"))


def test_every_command_has_json_and_refuses_a_place_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = {"predict": "walk", "sweep": "x.toml", "completion": "bash"}
    needed |= dict.fromkeys(("identify", "retime"), "two_link x.csv")
    needed |= {
        "convert": "two_link x.urdf",
        "export": "two_link x",
        "ik": "two_link --target link2 0.5 0 0",
        "equations": "two_link mass_matrix",
    } | dict.fromkeys(("reproduce", "cache", "doctor", "demo", "examples"), "")
    for name in COMMANDS:
        given = [name, *needed.get(name, "two_link").split()]
        for place, words in (
            ("no/x.json", "its folder does not exist"),
            (".", "it is a folder"),
            ("a\0", "a null char"),
        ):
            assert main([*given, "--json", place]) == 1, name
            assert words in capsys.readouterr().err


def log(name: str) -> None:
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 40, 2))
    tau = ARM.to(device="casadi").inverse_dynamics(q, v, a)
    head = ",".join(f"{letter} joint{k}" for letter in ("q", "v", "a", "tau") for k in (1, 2))
    np.savetxt(name, np.hstack([q, v, a, tau]), delimiter=",", header=head, comments="")


def test_identify_writes_the_document_of_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    log("run.csv")
    found = printed(capsys, "identify", "two_link", "run.csv", "--validate", "run.csv")
    assert faults(found, schema_of("identification")) == []
    assert found["torsor"]["kind"] == "identification" and found["samples"] == 40
    assert found["validation"]["log"] == "run.csv"
    assert [each["coordinate"] for each in found["validation"]["residuals"]] == ["joint1", "joint2"]
    assert math.isclose(found["validation"]["residuals"][0]["rms"], 0.0, abs_tol=1e-9)


def test_view_says_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    torsor.simulate(ARM.to(device="casadi"), duration=0.002).save("fall.npz")
    found = printed(capsys, "view", "two_link", "fall.npz", "-o", "page.html")
    assert found["page"] == "page.html" and found["url"] is None
    assert found["shows"] == [{"name": "two_link", "kind": "robot"}, {"name": "fall.npz", "kind": "trajectory"}]


@pytest.mark.slow
def test_demo_writes_the_numbers_of_its_move(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "demo")
    assert found["plot"] == "demo.png" and np.shape(found["tau"]) == np.shape(found["q"]) == (151, 6)
    assert found["operations"]["inverse_dynamics"] and found["units"]["tau"] == ["N m"] * 6


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_completion_scripts_are_scripts_of_their_shells(
    shell: str, check: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    found = printed(capsys, "completion", shell)
    assert found["shell"] == shell and "simulate" in found["script"] and found["place"]
    Path("script").write_text(found["script"], encoding="utf-8")
    if shutil.which(shell):
        assert subprocess.run([shell, check, "script"], capture_output=True, check=False).returncode == 0


def test_a_name_that_is_nearly_one_of_the_library_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "two_lnk"]) == 1
    assert capsys.readouterr().err.endswith("; fix: did you mean two_link?\n")


# Tables of states


@pytest.mark.parametrize(
    ("head", "row", "words"),
    [
        (
            HEAD.replace("q joint1 [rad]", "q joint1 [deg]"),
            "0,90,0",
            "'q joint1 [deg]' has another unit; allowed: rad;",
        ),
        (HEAD.replace("[s]", "[ms]"), "0,1,0", "the column 'time [ms]' has another unit; allowed: s; fix: convert"),
        (HEAD, "0,1", "line 2 has 2 columns, but none for 'q joint2 [rad]'; allowed: 3"),
    ],
)
def test_other_units_and_short_lines_are_refused(
    head: str, row: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("states.csv").write_text(f"{head}\n{row}\n")
    assert main(["kinematics", "two_link", "--states", "states.csv"]) == 1
    assert words in capsys.readouterr().err


def test_units_may_be_written_in_other_ways(capsys: pytest.CaptureFixture[str]) -> None:
    Path("states.csv").write_text(
        f"{HEAD},a joint1 [rad/s²],a joint2 [rad/s^2],tau joint1 [N·m],tau joint2 [Nm]\n0,1,0,0,0,0,0\n", "utf-8"
    )
    assert len(printed(capsys, "kinematics", "two_link", "--states", "states.csv")["position"]["values"]) == 1


def test_a_saved_trajectory_is_a_table_of_states(capsys: pytest.CaptureFixture[str]) -> None:
    torsor.simulate(ARM.to(device="casadi"), v0=[1.0, 0.0], duration=0.002).save("fall.npz")
    assert len(printed(capsys, "kinematics", "two_link", "--states", "fall.npz")["twist"]["values"]) == 3
    assert main(["kinematics", "scara", "--states", "fall.npz"]) == 1
    assert "a trajectory of two_link" in capsys.readouterr().err


def test_a_figure_is_not_written_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "two_link", "--plot", "-"]) == 1
    assert "--plot -: a file name is needed" in capsys.readouterr().err


def test_a_host_that_is_not_of_this_machine_is_refused() -> None:
    pytest.importorskip("viser")
    from torsor.view.live.server import start

    with refused(value="256.0.0.1", fix="use localhost"):
        start("256.0.0.1", 8080, "arm")
