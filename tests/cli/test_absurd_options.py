"""Contradictory options of human tasks, and options that would overwrite a file, are rejected before any search."""

from pathlib import Path

import pytest

from torsor.base.interrupts import _is_deleting
from torsor.cli.main import main


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "same.csv", "--samples", "same.csv"], "two outputs have this name"),
        (["--compare", "forces.mot", "-o", "forces.mot"], "the output is also an input"),
        (["--rise", "0"], "--rise is 0"),
        (["--starts", "100000"], "--starts is 100000"),
        (["--objective", "effort=1", "effort=2"], "--objective: effort is given twice"),
        (["--strength", "left=0.5", "left=0.6"], "--strength: left is given twice"),
        (["--speed", "1e9"], "the speed is 1e+09 m/s"),
    ],
)
def test_options_of_a_walk_are_refused_at_once(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forces.mot").write_text("kept")
    assert main(["predict", "walk", *options]) == 1
    assert words in capsys.readouterr().err
    assert Path("forces.mot").read_text() == "kept"


def test_a_range_is_told_in_degrees(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict", "walk", "--range", "knee_flexion=30:20"])
    assert "knee_flexion=30:20" in capsys.readouterr().err


def test_measured_angles_do_not_replace_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forces.mot").write_text("kept")
    assert main(["measure", "walk.trc", "forces.mot", "--mass", "70", "-o", "forces.mot"]) == 1
    assert "the output is also an input" in capsys.readouterr().err


def test_an_interrupt_waits_for_the_end_of_a_finaliser() -> None:
    import sys

    found = []

    class Deleted:
        def __del__(self) -> None:
            found.append(_is_deleting(sys._getframe()))

    Deleted().__del__()
    assert found[0]
    assert not _is_deleting(sys._getframe())
