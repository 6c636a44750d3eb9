"""``torsor measure``: angles, moments and powers of a recorded person, in one command."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from human.recordings.c3d_samples import Sample
from human.recordings.damage import MASS, clean, on_plates
from human.recordings.test_osim import OSIM
from torsor.cli.main import main
from torsor.human import RecordedWalk
from torsor.human.recordings import MotionTable, load, save


def written(folder: Path) -> list[str]:
    """Write the predicted walk as files of a laboratory, and return their names."""
    markers, forces = clean()
    save(markers, folder / "walk.trc", unit="mm")
    save(forces, folder / "walk.mot")
    return [str(folder / "walk.trc"), str(folder / "walk.mot")]


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trc, mot = written(tmp_path)
    save(MotionTable(["knee_angle_r"], [0.0, 1.0], [[1.0], [2.0]], False), tmp_path / "angles.mot")
    (tmp_path / "leg.osim").write_text(OSIM)
    angles, osim = str(tmp_path / "angles.mot"), str(tmp_path / "leg.osim")
    for given, words in (
        ([mot, "--mass", "80"], "0 files contain markers and 1 contain ground forces; allowed: one with markers"),
        ([trc, trc, "--mass", "80"], "2 files contain markers"),
        ([], "no file is given;"),
        ([trc, "--example"], "--example cannot be combined with files; fix: omit --example or the files"),
        (
            [trc, angles, "--mass", "80"],
            "angles.mot: the file contains neither markers nor ground forces;",
        ),
        ([trc, mot], "the mass is missing; fix: pass it in kg, as in --mass 80, or pass a model"),
        ([trc, "--model", osim, "--mass", "80"], "mass cannot be combined with a model; fix: omit mass"),
        ([trc, mot, "--mass", "80", "-o", "x.txt"], "the suffix is '.txt'; allowed: .csv, .mot, .sto"),
    ):
        assert main(["measure", *given]) == 1
        assert words in capsys.readouterr().err


def test_the_example_that_ships_is_a_walk_with_ground_forces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "--example", "--json", str(tmp_path / "walk.json")]) == 0
    found = json.loads((tmp_path / "walk.json").read_text("utf-8"))
    assert found["mass"] == pytest.approx(85.3) and found["facts"]["marker error, RMS"] == "5.5 mm (41 markers)"
    assert max(found["curves"]["q right_knee_flexion [deg]"]) == pytest.approx(67.1, abs=0.5)
    shown = capsys.readouterr()
    assert "a foot misses the plates" in shown.err and "height" not in shown.err  # before and after the two plates
    assert "too short for one stride" not in shown.err and "there is no standing trial" in shown.err
    assert found["facts"]["heel strikes, s"] == "right 0.27, 1.41 (plates); left 0.84, 1.98 (given)"
    assert "walking speed, m/s" in shown.out and found["facts"]["low-pass filters"] == "motion 6 Hz, forces 6 Hz"
    assert found["steps"]["right"]["stride_time"] == pytest.approx(1.144, abs=0.001)
    assert found["steps"]["left"]["stride_time"] == pytest.approx(1.14)


def test_a_leg_without_a_whole_stride_is_left_out_of_the_gait_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = list[tuple[str, ...]]()
    plot = RecordedWalk.plot

    def noted(walk: RecordedWalk, path: Path | None, *more: RecordedWalk, planes: str) -> Figure:
        drawn.append((walk.side, planes, *(each.side for each in more)))
        # The parts of the report are those of the whole figure, which take as long to draw.
        return plot(walk, path, *more, planes=planes) if planes == "all" else Figure()

    monkeypatch.setattr(RecordedWalk, "plot", noted)
    trc, mot = written(tmp_path)
    files = ["--cycle", str(tmp_path / "cycle.png"), "--report", str(tmp_path / "walk.html")]
    assert main(["measure", trc, mot, "--mass", str(MASS), *files]) == 0
    missing = "too short for one stride of the left foot"
    assert drawn == [("right", "all"), ("right", "sagittal"), ("right", "other")]
    errors, report = capsys.readouterr().err, (tmp_path / "walk.html").read_text("utf-8")
    assert errors.count(missing) == report.count(missing) == 1
    assert "lowered by 11.6 degrees" in report
    assert "the height is not given: 1.741 m" in errors and "the height is not given: 1.741 m" in report
    assert "Right gait cycle: " in report and "Spatio-temporal parameters (1 right, 0 left strides)" in report


def test_events_and_norms_of_files_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The right foot strikes at 0.29 and 1.35 s, the left foot at 0.82 s; the C3D file marks a later left strike."""
    markers, forces = clean()
    points = 1000 * markers.positions @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # z up
    sample = Sample(list(markers.names), points)
    names, times = ["Left Foot Strike", "Left Foot Strike", "Right Foot Strike", "Right Foot Strike"], [0.82, 1.7]
    sample.parameters |= {
        "EVENT:USED": 4,
        "EVENT:LABELS": [name.partition(" ")[2] for name in names],
        "EVENT:CONTEXTS": [name.partition(" ")[0] for name in names],
        "EVENT:TIMES": np.array([[0.0, t] for t in (*times, 0.5, 1.5)]),
    }
    save(forces, tmp_path / "walk.mot")
    percent = np.linspace(0.0, 100.0, 11)
    head = "percent,knee_flexion [deg],knee_flexion_sd [deg],hip_flexion_deg,hip_flexion_sd_deg"
    np.savetxt(tmp_path / "norms.csv", np.stack([percent] * 5, axis=1), "%g", ",", header=head, comments="")
    files = [str(sample.write(tmp_path / "walk.c3d")), str(tmp_path / "walk.mot"), "--mass", str(MASS)]
    drawn, plot = list[Figure](), RecordedWalk.plot
    monkeypatch.setattr(RecordedWalk, "plot", lambda *given, **more: drawn.append(plot(*given, **more)))
    more = ["--norms", str(tmp_path / "norms.csv"), "--cycle", str(tmp_path / "a.png"), "--json", str(tmp_path / "a")]
    assert main(["measure", *files, *more]) == 0
    facts = json.loads((tmp_path / "a").read_text("utf-8"))["facts"]
    assert facts["heel strikes, s"] == "right 0.50, 1.50 (events); left 0.82, 1.70 (events)"
    labels = {text.get_text() for text in drawn[0].legends[0].texts}
    assert {"walk.c3d, left", "walk.c3d, right", "mean ± SD (norms.csv)"} < labels
    assert not any("norms.csv (2)" in label for label in labels)
    errors = capsys.readouterr().err
    assert "the right foot loads the plates from" in errors and "which are used, are strikes at 0.5, 1.5 s" in errors
    assert "correct the events, or give --strikes" in errors and "the left foot loads" not in errors


def test_strikes_and_norms_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [*written(tmp_path), "--mass", str(MASS)]
    (tmp_path / "norms.csv").write_text("percent,knee [deg]\n0,1\n50,2\n100,1\n")
    norms = ["--norms", str(tmp_path / "norms.csv")]
    for options, words in (
        (["--strikes", "both", "0.8", "1.9"], "side of strikes is 'both'; allowed: 'right', 'left'"),
        (["--strikes", "left", "0.8"], "--strikes is [0.8]; allowed: two or more increasing times (s)"),
        (["--strikes", "left", "now"], "--strikes is 'left now'; allowed: right or left, and two or more times"),
        (["--per-kg"], "--per-kg needs a table; fix: add -o walk.csv"),
        (norms, "--norms needs a figure; fix: add --cycle or --report"),
        ([*norms, "--cycle", str(tmp_path / "cycle.png")], "norms.csv: no column is a known curve"),
    ):
        assert main(["measure", *files, *options]) == 1
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_recording_gives_tables_figures_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {name: str(tmp_path / f"out.{name}") for name in ("csv", "mot", "json")}
    flags = ["-o", outputs["csv"], "-o", outputs["mot"], "--json", outputs["json"], "--height", "1.741"]
    pages = ["--plot", str(tmp_path / "out.png"), "--report", str(tmp_path / "out.html")]
    assert main(["measure", *written(tmp_path), "--mass", str(MASS), "--segments", *flags, *pages]) == 0
    shown = capsys.readouterr()
    assert "right knee flexion" in shown.out and "marker error, RMS" in shown.out and "out.html" in shown.out
    rows = list(csv.DictReader(Path(outputs["csv"]).read_text().splitlines()))
    assert len(rows) == 181 and {"time [s]", "tau right_knee_flexion [N m]", "force left foot up [N]"} <= set(rows[0])
    assert {row["valid [1]"] for row in rows} <= {"0", "1"}
    angles = load(outputs["mot"]).table
    assert angles.in_degrees and angles.column("right_knee_flexion").max() > 40
    content = json.loads(Path(outputs["json"]).read_text())
    # The walk was predicted with the masses of the tables: nothing else is found.
    assert all(abs(each["mass"] / each["tables"] - 1) < 0.15 for each in content["segments"].values())
    assert content["caveat"].startswith("Confidence intervals cover random noise only") and "upper arms" in shown.out
    assert content["findings"] == [] and len(content["curves"]["time [s]"]) == 181
    assert "<iframe" in (tmp_path / "out.html").read_text() and (tmp_path / "out.png").stat().st_size > 20_000


@pytest.mark.slow
def test_mistakes_of_a_recording_are_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    markers, plates = on_plates(clean())
    save(markers.renamed({"RASI": "LASI", "LASI": "RASI"}), tmp_path / "walk.trc")
    save(plates, tmp_path / "plates.mot")
    assert main(["measure", str(tmp_path / "walk.trc"), str(tmp_path / "plates.mot"), "--mass", str(MASS)]) == 0
    shown = capsys.readouterr()
    assert "right and left markers are on opposite sides compared with others: 'RASI' and 'LASI'" in shown.err
    assert "valid interval, s" in shown.out
