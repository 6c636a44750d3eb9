"""Viewer, pages and pictures of unusual robots and results: empty, failed, huge, massless."""

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from node import needs_node, node
from pages import decoded
from refusals import refused, warned
from torsor.base.errors import ModelError, ModelWarning
from torsor.robot.closed_loops.closed import Closed
from torsor.view.live.controls import readout
from torsor.view.live.postures import Posture
from torsor.view.live.stage import Subject
from torsor.view.pages import page
from torsor.view.pictures import _frames, animate, draw
from torsor.view.scene import Scene, timeline

ARM = torsor.library.two_link()
NAN, INF = np.nan, np.inf


def motion(count: int = 20, **changed: np.ndarray) -> torsor.Trajectory:
    times = np.linspace(0.0, 1.0, count)
    parts = {"q": np.stack([np.sin(times), times], axis=-1)} | {name: np.ones((count, 2)) for name in ("v", "a", "tau")}
    parts |= {name: np.where(values, parts.get(name, 0.0), NAN) for name, values in changed.items() if name != "times"}
    return torsor.Trajectory(ARM, changed.get("times", times), parts["q"], parts["v"], parts["a"], parts["tau"])


def until(count: int, of: int = 20) -> np.ndarray:
    return (np.arange(of) < count)[:, None]


def urdf(folder: Path, inertial: str = "", visual: str = "", joint: str = "continuous") -> torsor.Robot:
    text = (
        f'<robot name="odd"><link name="base"/><link name="arm">{inertial}{visual}</link>'
        f'<joint name="j" type="{joint}">'
        '<parent link="base"/><child link="arm"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint></robot>'
    )
    (folder / "odd.urdf").write_text(text, encoding="utf-8")
    return torsor.load(folder / "odd.urdf")


def test_a_motion_that_failed_is_shown_up_to_its_last_finite_sample() -> None:
    failed = motion(q=until(12))
    assert len(timeline(failed)) == 12
    assert Subject(failed, "").film is not None and np.isfinite(Subject(failed, "").corners()).all()
    assert len(decoded(page(failed).html)["actors"][0]["times"]) == 12
    assert draw(failed).axes
    stopped = motion(times=np.where(np.arange(20) < 5, np.linspace(0, 1, 20), NAN))
    assert len(timeline(stopped)) == 5


@pytest.mark.parametrize("show", [page, draw, lambda each: animate(each, "x.gif"), lambda each: Subject(each, "")])
@pytest.mark.parametrize("result", [motion(0), motion(q=until(0))], ids=["empty", "never finite"])
def test_a_motion_without_samples_raises(show: object, result: torsor.Trajectory) -> None:
    with refused(what="two_link has no samples to show"):
        show(result)  # type: ignore[operator]


def test_a_motion_whose_time_goes_back_is_refused() -> None:
    with refused(what="time goes back from 1 s to 0.5 s (sample 1)"):
        page(motion(2, times=np.array([1.0, 0.5])))


def test_forces_that_are_not_finite_leave_the_rest_of_a_page() -> None:
    drives = decoded(page(motion(tau=until(5))).html)["actors"][0]["drives"]
    assert drives["peak"] == 1.0 and drives["names"] == ["joint1", "joint2"]
    assert np.isfinite(drives["tau"][:5]).all() and np.isnan(drives["tau"][-1]).all()
    endless = torsor.Trajectory(ARM, np.arange(3.0), *np.zeros((3, 3, 2)), np.full((3, 2), INF))
    assert decoded(page(endless).html)["forceScale"] > 0


def test_one_sample_is_a_motion_that_stands() -> None:
    assert decoded(page(motion(1)).html)["actors"][0]["times"].shape == (1,)
    times, samples = _frames(timeline(motion(1)), 25.0)
    assert len(samples) == len(times) and (samples == 0).all()


def test_pictures_of_a_long_motion_are_those_of_the_nearest_samples() -> None:
    line = timeline(motion(20_001))
    times, samples = _frames(line, 50.0)
    assert np.abs(line.q[samples, 1] - times).max() <= 0.5 / 20_000 + 1e-12


@pytest.mark.parametrize("joint", ["continuous", "fixed"])
def test_a_robot_without_mass_has_a_page_and_no_centre_of_mass(tmp_path: Path, joint: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = urdf(tmp_path, joint=joint)
    data = decoded(page(robot).html)
    assert data["robots"][0]["mass"] == 0 and data["actors"][0]["com"] == [0.0, 0.0, 0.0]
    assert np.isfinite(Subject(robot, "").shot.center).all()


@pytest.mark.parametrize("scale", ["1e300 1 1", "3e38 3e38 3e38"])
def test_a_shape_too_large_to_draw_is_left_out(tmp_path: Path, scale: str) -> None:
    pytest.importorskip("trimesh")
    corners = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
    (tmp_path / "a.stl").write_bytes(bytes(80) + struct.pack("<I", 1) + corners)
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    visual = f'<visual><geometry><mesh filename="a.stl" scale="{scale}"/></geometry></visual>'
    robot = urdf(tmp_path, inertial, visual)
    with warned(what="link 'arm': a mesh of size"):
        scene = Scene.of(robot)
    assert all(each.kind != "visual" for each in scene.shown)


def test_a_robot_whose_drives_cannot_hold_it_is_shown_without_forces() -> None:
    leg = Posture(torsor.library.closed_leg())
    assert leg.shot.drives is None and leg.shot.reactions is None
    assert "energy" in readout(leg.shot)


def test_loops_that_cannot_be_closed_are_shown_open_with_all_sliders(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ModelError("four_bar: the loops cannot be closed")

    monkeypatch.setattr(Closed, "positions", fail)
    gaping = Posture(torsor.library.four_bar())
    assert gaping.note.startswith("Loops are open: four_bar")
    assert len(gaping.slides) == 3 and gaping.shot.closing is None
    assert np.allclose(gaping.move([0.1, 0.2, 0.3]).q, [0.1, 0.2, 0.3]) and gaping.shot.drives is not None


def test_pictures_are_written_to_files_of_their_kinds(tmp_path: Path) -> None:
    draw(ARM, path=tmp_path / "arm")
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")
    with refused(value=".foo", allowed=".png"):
        draw(ARM, path=tmp_path / "arm.foo")
    with refused(allowed="a file"):
        draw(ARM, path=tmp_path)
    with refused(argument="elevation", allowed="a finite number"):
        draw(ARM, elevation=NAN)


def test_a_name_between_dollars_is_no_formula(tmp_path: Path) -> None:
    (tmp_path / "odd.urdf").write_text('<robot name="$x_$"><link name="base"/></robot>', encoding="utf-8")
    draw(torsor.load(tmp_path / "odd.urdf"), path=tmp_path / "odd.svg")
    assert (tmp_path / "odd.svg").stat().st_size > 0


CHART = """
const { readFileSync } = await import("node:fs");
const [folder] = process.argv.slice(-1), names = ["math", "ground", "chart"];
const text = names.map((name) => readFileSync(`${folder}/${name}.js`, "utf8")).join("\\n");
const own = new Function(`${text}; return { Ground, drawCharts, short };`)();
const pen = new Proxy({ texts: [] }, { get: (at, name) => (name === "fillText" ? (each) => at.texts.push(each) :
    name in at ? at[name] : () => ({ width: 20 })), set: () => true });
const canvas = { clientWidth: 300, clientHeight: 120, getContext: () => pen };
const times = Array.from({ length: 2000 }, (_, k) => k / 1000);
const curve = (_, n) => ({ times, values: times.map((t) => n * t), color: "red" });
const curves = Array.from({ length: 200 }, curve);
curves[0].values[7] = NaN;
const charts = [{ title: "velocity", low: -400, high: 400, limits: [], far: [320], curves }];
const theme = { rule: "", grid: "", faint: "", alarm: "", ink: "" };
own.drawCharts(canvas, { charts, gaps: [], stances: [] }, 2, theme, "");
const cells = [1e-6, 0.3, 1, 7.7, 2e4].map((reach) => [reach / own.Ground.cell(reach), own.Ground.cell(reach)]);
console.log(JSON.stringify({ texts: pen.texts, cells }));
"""


@needs_node
def test_charts_take_any_number_of_motions_and_the_ground_any_size() -> None:
    folder = Path(__file__).parents[2] / "src" / "torsor" / "view" / "pages" / "assets"
    found = json.loads(node(CHART, str(folder)))
    assert found["texts"][:2] == ["velocity", "limit 320"]
    assert found["texts"][2:7] == ["\u2212400", "\u2212200", "0", "200", "400"]
    assert found["texts"][7:] == ["0", "0.5", "1.0", "1.5", "2.0 s"]
    for squares, cell in found["cells"]:
        assert 15 < squares <= 45.1  # lines to each side up to where the ground fades
        assert round(cell / 10 ** np.floor(np.log10(cell) + 1e-9), 6) in (1, 2, 5)
