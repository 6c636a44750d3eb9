"""``torsor info`` shows the content of recordings: markers, gaps, plates, contacts, columns and skeleton joints."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from human.recordings import walkers
from human.recordings.test_osim import OSIM
from torsor.cli.main import main
from torsor.human.recordings import MotionTable, save


def test_info_shows_markers_gaps_and_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    markers = walkers.markers()
    positions = np.array(markers.positions)
    positions[20:30, 1] = np.nan
    save(markers.with_positions(positions).renamed({"C7": "[bold]C7"}), tmp_path / "walk.trc")
    assert main(["info", str(tmp_path / "walk.trc")]) == 0
    shown = capsys.readouterr()
    assert "11 markers, 150 frames at 100 Hz, 0 to 1.49 s, in m, axes: forward up right" in shown.out
    assert "[bold]C7" in shown.out and "21 to 30" in shown.out and "0.110" in shown.out
    assert "warning: walk.trc: markers are missing: 'R.Toe' frames 21 to 30 (0.11 s)" in shown.err


def test_info_shows_plates_with_their_contacts_as_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(walkers.forces(), tmp_path / "grf.mot")
    assert main(["info", str(tmp_path / "grf.mot"), "--json", "-"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)["forces"]
    assert "2 force plates or feet, 1500 frames at 1000 Hz" in shown.err and "0.101 to 0.799" in shown.err
    assert found["names"] == ["right", "left"] and found["plates"][0]["contacts"] == [[0.101, 0.799]]


def test_info_shows_columns_and_joints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(MotionTable(["knee_angle_r"], [0.0, 0.5], [[1.25], [-2.5]], False), tmp_path / "ik.sto")
    assert main(["info", str(tmp_path / "ik.sto")]) == 0
    shown = capsys.readouterr().out
    assert "1 columns, 2 frames at 2 Hz" in shown and "angles in radians" in shown and "-2.5" in shown
    (tmp_path / "leg.osim").write_text(OSIM)
    assert main(["info", str(tmp_path / "leg.osim")]) == 0
    shown = capsys.readouterr().out
    assert "18.5 kg, 2 bodies, 2 joints, 1 markers" in shown and "hip_flexion_r" in shown


def test_info_refuses_recordings_that_are_missing_and_options_of_robots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(tmp_path / "no.trc")]) == 1
    assert "no such file; allowed: a file: .trc, .mot" in capsys.readouterr().err
    assert main(["info", "a.trc", "--q", "1"]) == 1
    assert "--report, --q and --states apply to robots, not to recordings or results" in capsys.readouterr().err


def test_info_shows_the_summary_of_a_saved_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.01)
    fall.save(tmp_path / "fall.npz")
    assert main(["info", str(tmp_path / "fall.npz"), "--json", str(tmp_path / "fall.json")]) == 0
    assert "planar_chain" in capsys.readouterr().out
    assert json.loads((tmp_path / "fall.json").read_text("utf-8"))["q"] == fall.to_dict()["q"]
    np.savez(tmp_path / "arrays.npz", q=np.zeros(3))
    assert main(["info", str(tmp_path / "arrays.npz")]) == 1
    assert "arrays.npz" in capsys.readouterr().err
