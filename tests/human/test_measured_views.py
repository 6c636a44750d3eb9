"""A measured gait in viewers: the scaled body, the measured ground forces and the markers."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.base.archive import as_bytes
from torsor.base.documents import schema_of
from torsor.base.progress import Bar
from torsor.human.measured import MeasuredGait, marker_paths, marker_set, measured_gait
from torsor.human.measured.gait import write_measured_report
from torsor.human.recordings import GroundForces
from torsor.simulation.timeline import timeline
from torsor.view import page
from torsor.view.live import show
from torsor.view.live.chart import charts, drawing
from torsor.view.live.shots import Film
from torsor.view.pages.content import content
from torsor.view.scene import Scene

from ..base.schemas import faults

PARTS = ("ASI", "PSI", "TH1", "KNE", "SH1", "ANK", "HEE", "TOE")
FEET = np.array([[-0.09, 0.0, 0.05], [0.09, 0.0, 0.05]])
LIFTED = 60  # frame from which the left foot carries nothing


@pytest.fixture(scope="module")
def gait() -> MeasuredGait:
    """A synthetic recording of 80 kg that stands still; in the end its right foot carries all."""
    body, t = torsor.library.human(1.80, 80.0), np.arange(100) / 100
    markers = marker_set(body, [side + part for part in PARTS for side in "RL"])
    forces = np.zeros((100, 2, 3))
    forces[:, :, 1] = 80.0 * 9.81 / 2
    forces[LIFTED:, :, 1] = 80.0 * 9.81, 0.0
    zero = np.zeros_like(forces)
    ground = GroundForces(("right", "left"), t, forces, zero + FEET, zero, axes="left up forward")
    return measured_gait(marker_paths(body, markers, t, np.zeros((100, 55))), ground, mass=80.0, height=1.80)


def test_measured_forces_are_drawn_where_they_were_measured(gait: MeasuredGait) -> None:
    line = timeline(gait)
    assert line.ground is not None and line.tau is not None
    np.testing.assert_allclose(line.ground[10, :, :3], FEET, atol=1e-12)
    np.testing.assert_allclose(line.ground[10, :, 4], 80.0 * 9.81 / 2)
    assert np.isnan(line.ground[LIFTED + 1 :, 1, :3]).all()  # no arrow of the lifted foot
    ankle = line.driven.index("right_ankle_flexion")
    np.testing.assert_allclose(line.tau[:, ankle], 80.0 * gait.moment("right", "ankle_flexion"))
    assert "ty" not in line.driven  # a residual is no joint moment


def test_markers_are_drawn_where_the_fit_puts_them(gait: MeasuredGait) -> None:
    line, motion = timeline(gait), gait.motion
    scene = Scene.of(line.robot, things=line.things)
    poses = scene.poses(line.q[50])
    balls = [part for part in scene.shown if part.name.startswith("markers of")]
    drawn = [poses[part.link + 1] @ solid.pose[:, 3] for part in balls for solid in part.solids]
    wanted = marker_paths(motion.body, motion.markers, line.times, line.q).positions[50]
    assert len(drawn) == len(wanted) == 16
    for place in wanted:
        assert min(np.linalg.norm(ball[:3] - place) for ball in drawn) < 1e-9


def test_measured_markers_and_times_without_forces_are_part_of_the_view(gait: MeasuredGait) -> None:
    line = timeline(gait)
    assert gait.recording is not None and line.markers is not None and line.valid is not None
    np.testing.assert_allclose(line.markers, gait.recording.positions)
    np.testing.assert_array_equal(line.valid, gait.valid)


def test_views_start_with_known_forces(gait: MeasuredGait) -> None:
    line = replace(timeline(gait), valid=np.arange(100) >= 7)
    assert line.start == pytest.approx(0.08)  # one sample after the first: just before it, forces are unknown
    viewer = show(line, open=False, block=False, port=0, play=False)
    assert viewer.stage.clock.time == pytest.approx(0.08)
    viewer.stop()
    assert content(line, None, 100.0, 1000, None, False, Bar(1, False)).data["start"] == pytest.approx(0.08)
    assert timeline(gait).start == 0.0


def test_residuals_of_a_floating_base_are_the_last_drives(gait: MeasuredGait) -> None:
    line = timeline(replace(gait.trajectory(), tau=np.ones((100, 55))))
    assert [line.driven[k] for k in line.drives[-6:]] == list(line.robot.coordinate_names[:6])


def test_stances_are_shaded_for_the_side_of_the_coordinate(gait: MeasuredGait) -> None:
    line = timeline(gait)
    film = Film(Scene.of(line.robot), line)
    assert film.stances("right_knee_flexion") == [(0.0, pytest.approx(0.99))]
    assert film.stances("left_knee_flexion") == [(0.0, pytest.approx(LIFTED / 100))] and film.stances("tilt") == []
    shown = drawing({}, 0.0, 1.0, stances=film.stances("left_knee_flexion"))
    assert shown.count("<title>stance</title>") == 1


def test_charts_of_people_show_angles(gait: MeasuredGait) -> None:
    line = timeline(gait)
    found = charts([(Film(Scene.of(line.robot), line), (0.0, 0.0, 1.0, 1.0), False)])
    titles = ["angle (°)", "velocity (°/s)", "moment (N m/kg; signed as the angle)"]
    assert list(found["right_knee_flexion"]) == titles
    (moment,) = found["right_knee_flexion"][titles[-1]]  # tables and CSV files have this sign, too
    np.testing.assert_allclose(moment.values[[0, -1]], gait.moment("right", "knee_flexion")[[0, -1]])
    assert "position (mm)" in found["ty"]


def test_pages_omit_moments_outside_the_valid_interval(gait: MeasuredGait) -> None:
    line = replace(timeline(gait), valid=np.arange(100) >= 7)
    packed = content(line, None, 100.0, 1000, None, False, Bar(1, False))
    drives = packed.data["actors"][0]["drives"]
    assert drives["gaps"] == [(0.0, pytest.approx(0.07))] and set(drives["units"]) == {"N m/kg"}
    tau, known = packed.numbers.read(drives["tau"]), line.drives.tolist()
    assert np.isnan(tau[:7]).all()
    np.testing.assert_allclose(tau[7:], np.asarray(line.tau)[7:, known] / 80.0, atol=1e-6)
    assert np.isfinite(drives["peak"])


def test_pages_show_bones_and_measured_markers(gait: MeasuredGait) -> None:
    line = timeline(gait)
    packed = content(line, None, 100.0, 1000, None, False, Bar(1, False))
    np.testing.assert_allclose(packed.numbers.read(packed.data["actors"][0]["markers"]), line.markers, atol=1e-6)
    shown = packed.data["robots"][0]["shown"]
    links = [part for part in shown if part["link"] < len(line.robot.links)]
    assert {part["color"][3] < 1 for part in links if part["kind"] == "visual"} == {True}
    assert {part["color"][3] for part in links if part["kind"] == "inner"} == {1.0}
    markers = [part for part in shown if part["link"] >= len(line.robot.links)]
    assert markers and {part["color"][3] for part in markers} == {1.0}


def test_reports_contain_the_residual_warning(gait: MeasuredGait, tmp_path: Path) -> None:
    recording, forces = gait.recording, gait.ground
    assert recording is not None and forces is not None and not gait.findings
    light = replace(forces, forces=np.where(np.arange(100)[:, None, None] < 40, 0.0, forces.forces))
    with warned(what="the residual force is up to 106 % of the weight"):
        missed = measured_gait(recording, light, mass=80.0, height=1.80)
    assert [finding.kind for finding in missed.findings] == ["residual"]
    report = write_measured_report(tmp_path / "walk.html", missed, notes=["no <stride>"]).read_text()
    assert report.count('<p class="remark">') == 3 and "residual force is up to 106 % of the weight" in report
    assert "no &lt;stride&gt;" in report and "there is no standing trial" in report


def test_markers_with_unknown_names_are_listed(gait: MeasuredGait) -> None:
    assert gait.recording is not None and "ignored markers" not in gait.facts
    odd = measured_gait(gait.recording.renamed({"RTH1": "RFEO"}), mass=80.0, height=1.80)
    assert odd.facts["ignored markers"] == "RFEO"


def test_pages_show_a_measured_gait(gait: MeasuredGait) -> None:
    assert page(gait).title == f"{gait.source}: 80 kg"


def same(one: Any, other: Any) -> None:
    """Assert that two timelines are equal, apart from functions."""
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(other, name), value, name)
        else:
            assert getattr(other, name) == value, name


def test_files_show_the_same_as_the_gait(gait: MeasuredGait, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # missing markers are no failed computation
        gait.save(tmp_path / "gait.npz")
        again = torsor.load_result(tmp_path / "gait.npz")
    same(timeline(gait), timeline(again))
    assert again.facts == gait.facts and again.motion.markers.free == gait.motion.markers.free
    np.testing.assert_array_equal(again.moment("left", "knee_flexion"), gait.moment("left", "knee_flexion"))
    gait.save(tmp_path / "gait.json")
    assert faults(json.loads((tmp_path / "gait.json").read_text()), schema_of("measured_gait")) == []
    assert "marker error" in gait._repr_html_()


def test_damaged_files_are_refused(gait: MeasuredGait, tmp_path: Path) -> None:
    gait.save(tmp_path / "gait.npz")
    with np.load(tmp_path / "gait.npz") as found:
        content = dict(found)
    for name, value in (("motion/q", np.zeros((3, 3))), ("dynamics/external", np.zeros(2)), ("motion/converged", 1.0)):
        np.savez(tmp_path / "damaged.npz", **{**content, name: value})
        with refused(where="damaged.npz"):
            torsor.load_result(tmp_path / "damaged.npz")
    text = content["object"].tobytes().decode()
    for change in (("measured.MeasuredGait", "measured.Finding"), ('"array": "motion/q"', '"array": "no"')):
        np.savez(tmp_path / "damaged.npz", **{**content, "object": as_bytes(text.replace(*change, 1))})
        with refused(where="damaged.npz"):
            torsor.load_result(tmp_path / "damaged.npz")


def test_velocities_without_ground_forces_are_those_of_the_motion() -> None:
    body, t = torsor.library.human(1.80, 80.0), np.arange(30) / 100
    markers, q = marker_set(body, [side + part for part in PARTS for side in "RL"]), np.zeros((30, 55))
    knee = body.coordinate_names.index("right_knee_flexion")
    q[:, knee] = 0.4 + t  # 1 rad/s
    line = timeline(measured_gait(marker_paths(body, markers, t, q), mass=80.0, height=1.80))
    assert line.tau is None and line.ground is None
    np.testing.assert_allclose(line.v[5:-5, knee], 1.0, atol=0.05)
