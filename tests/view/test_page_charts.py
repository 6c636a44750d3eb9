"""The charts of offline pages: the curves of the live viewer, as the scripts of the page read and draw them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from node import needs_node, node
from pages import decoded
from torsor.simulation import Trajectory
from torsor.view.live.chart import charts
from torsor.view.live.shots import Film
from torsor.view.pages import page
from torsor.view.scene import Scene, Timeline, timeline
from torsor.view.scene.curves import span

ASSETS = Path(torsor.__file__).parent / "view" / "pages" / "assets"
BLUE, ORANGE = (0.0, 0.0, 1.0, 1.0), (1.0, 0.5, 0.0, 1.0)


def motion(robot: torsor.Robot, scale: float = 1.0) -> Timeline:
    """Return a second in which all coordinates move, with drive forces."""
    times = np.linspace(0.0, 1.0, 11)[:, None]
    rate = scale * np.linspace(0.1, 0.2, robot.nv)
    q, v = times * rate, np.tile(rate, (11, 1))
    return timeline(Trajectory(robot, times[:, 0], q, v, 0 * v, np.sin(3 * times) * rate))


def elastic() -> torsor.Robot:
    return torsor.library.two_link().with_motor("joint2", 1e-4, 50.0, "link1", stiffness=1000.0)


def curves(data: dict[str, Any], name: str) -> dict[str, list[np.ndarray]]:
    """Return the values of the curves of a coordinate, by title."""
    each = next(each for each in data["charts"] if each["name"] == name)
    return {chart["title"]: [curve["values"] for curve in chart["curves"]] for chart in each["charts"]}


@pytest.mark.parametrize("make", [torsor.library.two_link, elastic])
def test_the_charts_of_a_page_are_those_of_the_live_viewer(make: Any) -> None:
    run, plan = motion(make()), motion(make(), 1.1)
    data, scene = decoded(page({"run": run}, reference=plan).html), Scene.of(run.robot)
    live = charts([(Film(scene, plan), ORANGE, True), (Film(scene, run), BLUE, False)])
    assert [each["name"] for each in data["charts"]] == list(live)
    for name, titles in live.items():
        shown = curves(data, name)
        assert list(shown) == list(titles)
        for title, expected in titles.items():
            for values, curve in zip(shown[title], expected, strict=True):
                np.testing.assert_allclose(values, curve.values, rtol=1e-6, atol=1e-6)
    for each in (curve for entry in data["charts"] for chart in entry["charts"] for curve in chart["curves"]):
        assert each.get("dashed", False) == (each["actor"] == 1)


def test_a_drive_of_an_elastic_joint_shows_the_charts_of_the_joint() -> None:
    data = decoded(page(motion(elastic())).html)
    assert data["actors"][0]["drives"]["charted"][-1] == "joint2"
    titles = curves(data, "joint2")
    assert list(titles)[:2] == ["position (°; pale: motor)", "deflection: motor − link (°)"]
    assert len(titles["position (°; pale: motor)"]) == 2


def test_unknown_forces_are_left_out() -> None:
    line = motion(torsor.library.two_link())
    plan = Trajectory(line.robot, line.times, line.q, line.v, line.a, np.full_like(line.v, np.nan))
    actors = decoded(page({"run": line}, reference=plan).html)["actors"]
    assert "drives" in actors[0] and "drives" not in actors[1] and "reactions" not in actors[1]


def test_residuals_are_pale_and_with_the_forces() -> None:
    line = motion(torsor.library.two_link())
    data = decoded(page(replace(line, residuals=0.1 * np.asarray(line.tau))).html)
    residual, force = curves(data, "joint1")["torque (N m; pale: residual)"]
    np.testing.assert_allclose(residual, 0.1 * force, rtol=1e-6)


def test_each_foot_has_a_chart_of_its_vertical_force() -> None:
    robot = torsor.library.quadruped()
    q = np.tile(robot.postures["home"], (2, 1))
    external = np.zeros((2, len(robot.links), 6))
    feet = [k for k, name in enumerate(robot.link_names) if name.endswith("shank")]
    external[:, feet, 3:] = np.einsum("tlji,j->tli", robot.poses(q)[:, feet, :3, :3], [1.0, 2.0, 30.0])
    external[1, feet[0]] = 0.0  # in the air
    still, times = np.zeros((2, robot.nv)), np.array([0.0, 1.0])
    settings = {"contact": {"floor": [0.0, 0.0, 1.0, 0.0]}}
    line = timeline(Trajectory(robot, times, q, still, still, still, external=external, settings=settings))
    data = decoded(page(line).html)
    names = [each["name"] for each in data["charts"] if each["name"].endswith("(ground)")]
    assert names == [f"{robot.link_names[k]} (ground)" for k in feet]
    assert [curves(data, name)["vertical ground force (N)"][0].tolist() for name in names] == [
        pytest.approx([30.0, 0.0 if k == 0 else 30.0], rel=1e-6) for k in range(4)
    ]


def test_the_range_of_a_chart_includes_near_limits() -> None:
    line = motion(torsor.library.two_link())
    (curve,) = charts([(Film(Scene.of(line.robot), line), BLUE, False)])["joint1"]["torque (N m)"]
    peak = float(np.abs(curve.values).max())
    near, far = (curve._replace(limits=(-factor * peak, factor * peak)) for factor in (1.2, 5.0))
    assert span("torque (N m)", [near]).limits == list(near.limits)
    assert span("torque (N m)", [far])[2:] == ([], list(far.limits))


# A canvas that notes what is drawn on it: lines as [colour, dashes, opacity, points] and texts.
CANVAS = """
const lines = [], texts = [], boxes = [];
let path = [];
const pen = {
    clearRect() {}, setLineDash(dashes) { this.dashes = dashes; }, beginPath() { path = []; },
    moveTo(x, y) { path.push([x, y, 0]); }, lineTo(x, y) { path.push([x, y, 1]); },
    measureText() { return { width: 10 }; },
    stroke() { lines.push([this.strokeStyle, this.dashes, this.globalAlpha, path]); },
    fillText(text) { texts.push(text); }, fillRect(...box) { boxes.push([this.fillStyle, ...box]); }, globalAlpha: 1,
};
const canvas = { getContext: () => pen, clientWidth: 300, clientHeight: 480 };
const theme = { ink: "ink", grid: "grid", faint: "faint", rule: "rule", alarm: "alarm" };
"""
DRAW = """
const html = (await import("node:fs")).readFileSync(process.argv.at(-1), "utf8");
const part = (id) => html.match(new RegExp(`id="?${id}"?[^>]*>([^<]*)<`))[1];
const data = readData({ getElementById: (id) => ({ textContent: part(id) }) });
const actors = data.actors.map((content, k) => ({ content, visible: true, color: [k, 0, 0] }));
const panel = Object.create(Panel.prototype);
panel.app = { actors, data };
const found = panel.curves(data.charts[0].name);
drawCharts(canvas, found, 1.0, theme, "");
actors[1].visible = false;
const alone = panel.curves(data.charts[0].name).charts.map((each) => each.curves.length);
const counts = found.charts.map((each) => each.curves.length);
console.log(JSON.stringify({ lines, texts, boxes, counts, alone, titles: found.charts.map((each) => each.title) }));
"""


def test_curves_are_within_a_pixel_of_every_sample_of_a_trajectory_whatever_the_rate_of_the_poses() -> None:
    robot, times = torsor.library.two_link(), np.arange(5001) / 1000
    rng = np.random.default_rng(0)
    q = np.stack([np.sin(3 * times), np.cos(times)], axis=-1)
    tau = np.stack([np.where(times == 3.457, 90.0, 0.0), 0.1 * rng.normal(size=5001)], axis=-1)  # an impact, noise
    line = timeline(Trajectory(robot, times, q, 0 * q, 0 * q, tau))
    data = decoded(page(line, rate=2.0).html)
    assert data["actors"][0]["poses"].shape[0] == 11
    shown = {each["name"]: {chart["title"]: chart["curves"][0] for chart in each["charts"]} for each in data["charts"]}
    for name, title, expected in (
        ("joint1", "position (°)", np.degrees(q[:, 0])),
        ("joint2", "position (°)", np.degrees(q[:, 1])),
        ("joint1", "torque (N m)", tau[:, 0]),
    ):
        curve = shown[name][title]
        samples = (1000 * curve["times"]).round().astype(int)
        np.testing.assert_allclose(curve["values"], expected[samples], rtol=1e-6, atol=1e-6)
        error = np.interp(times, curve["times"], curve["values"]) - expected
        assert np.abs(error).max() < 0.0021 * np.ptp(expected) and len(curve["times"]) < 200
    noise = shown["joint2"]["torque (N m)"]["values"]
    assert len(noise) == 500 and (noise.min(), noise.max()) == pytest.approx((tau[:, 1].min(), tau[:, 1].max()))


def test_the_error_of_a_motion_has_no_trace_of_the_samples_of_its_reference() -> None:
    robot = torsor.library.two_link()

    def sampled(count: int) -> Timeline:
        times = np.linspace(0.0, 2.0, count)
        q, v = (np.stack([f(3 * times), f(2 * times)], axis=-1) for f in (np.sin, np.cos))
        return timeline(Trajectory(robot, times, q, v * [3, 2], 0 * q, 0 * q))

    data = decoded(page({"run": sampled(1001)}, reference=sampled(51)).html)
    for name in robot.coordinate_names:
        (error,) = curves(data, name)["error: actual − reference (°)"]
        assert np.abs(error).max() < np.degrees(0.04**4 / 384 * 3**4)  # of cubics; 0.1 degrees between lines


@needs_node
def test_the_page_draws_every_curve_and_hides_those_of_hidden_motions(tmp_path: Path) -> None:
    run, plan = motion(elastic()), motion(elastic(), 1.1)
    run = replace(run, valid=np.arange(11) > 2)
    made = page({"run": run}, reference=plan)
    made.save(tmp_path / "run.html")
    scripts = "".join(
        (ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in ("math", "data", "chart", "panel")
    )
    found = json.loads(node(scripts + CANVAS + DRAW, str(tmp_path / "run.html")))
    assert set(found["titles"]) <= set(found["texts"]) and "NaN" not in json.dumps(found)
    drawn = [line for line in found["lines"] if line[0].startswith("rgb(")]
    assert len(drawn) == sum(found["counts"]) > sum(found["alone"])
    assert {line[2] for line in drawn} == {1, 0.4}
    assert any(line[1] for line in drawn if line[0] == "rgb(255 0 0)")  # the reference is dashed
    assert all(0 <= y <= 480 for line in drawn for _, y, _ in line[3] if y is not None)
    assert [box[0] for box in found["boxes"]] == ["grid"]  # where no forces are known
