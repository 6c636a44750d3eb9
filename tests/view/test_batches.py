"""Batches of motions in pages and in the viewer: poses are those of the robots, and nodes do not grow with them."""

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from PIL import Image

import torsor
from chromium import Browser, needs_chromium
from gpu_on_cpu import StrictDevice
from node import needs_node, node
from pages import Scripts, decoded
from refusals import refused
from torsor.base.errors import ModelError
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.simulation import Contact, Rollout, rollout, rough_ground, steps
from torsor.simulation.timeline import batch, timeline
from torsor.view.pages import page
from torsor.view.scene import Scene
from torsor.view.scene.batches import arranged, extent, ground_grid

ASSETS = Path(__file__).parents[2] / "src" / "torsor" / "view" / "pages" / "assets"
SINGLE = 2e-6  # rounding to float32, for numbers of some metres


def moving(count: int, samples: int = 5, robot: torsor.Robot | None = None, apart: float = 3.0) -> Rollout:
    """Return motions that start in places of their own and turn by large angles."""
    robot, rng = robot or torsor.library.quadruped(), np.random.default_rng(count)
    v = rng.normal(size=(count, robot.nv))
    times = np.linspace(0.0, 2.0, samples)
    start = np.tile(robot.neutral(), (count, 1))
    start[:, 0] += apart * np.arange(count)
    q = robot.to(device="casadi").integrate(start[:, None], times[:, None] * v[:, None])
    q[..., 3:7] *= rng.choice([-1.0, 1.0], size=(count, samples, 1)) if robot.nq != robot.nv else 1.0
    return Rollout(times, q, np.repeat(v[:, None], samples, axis=1), None, robot)


def positions(actor: dict[str, Any]) -> np.ndarray:
    """Return the positions (N, T, nq) in a page."""
    codes = actor["q"].transpose(1, 0, 2).astype(float)
    return actor["low"].astype(float)[:, None] + codes * actor["step"].astype(float)[:, None]


def test_a_page_contains_the_positions_of_a_batch_within_their_rounding() -> None:
    run = moving(7)
    actor = decoded(page(run).html)["actors"][0]
    found, step = positions(actor), actor["step"].astype(float)[:, None]
    span = np.ptp(found, axis=1)
    assert (step[:, 0] <= span / 65535 * (1 + 1e-6) + 1e-12).all()
    assert actor["turns"] == [3]
    same = np.sign((found[..., 3:7] * run.q[..., 3:7]).sum(axis=-1, keepdims=True))  # quaternions of either sign
    wanted = run.q.copy()
    wanted[..., 3:7] *= same
    assert np.abs(found - wanted).max() <= 0.51 * step.max() + SINGLE
    assert ((found[:, 1:, 3:7] * found[:, :-1, 3:7]).sum(axis=-1) > 0).all()  # so that they can be interpolated
    assert np.abs(actor["times"] - run.times).max() < SINGLE and not actor["offsets"].any()


def test_a_page_of_a_thousand_robots_stays_small() -> None:
    sizes = [len(page(moving(count, 21)).html) for count in (50, 150)]
    each = (sizes[1] - sizes[0]) / 100 / 21  # bytes of a robot in a sample, with the ranges
    assert each < 19 * 3.5
    assert 1000 * 150 * each < 12e6  # 5 s at 30 samples a second


SHOW = """
const [folder, time] = process.argv.slice(1);
const text = (name) => readFileSync(`${folder}/${name}`, "utf8");
const data = resolved(JSON.parse(text("content")), bytesOf(text("numbers")));
const module = await import(`${folder}/robot.mjs`);
const actor = new Batch(data.actors[0], data.robots[0]);
actor.connect(module);
actor.show(+time);
console.log(JSON.stringify([actor.count, Array.from(actor.instances.data)]));
"""


@needs_node
@pytest.mark.parametrize("time", [1.0, 1.3])
def test_the_page_places_each_link_of_each_robot(time: float, tmp_path: Path) -> None:
    html = page(moving(6, apart=0.0)).html  # in a grid
    for attributes, text in Scripts(html).scripts:
        name = attributes.get("id") or {"module": "robot.mjs"}.get(attributes.get("type") or "")
        if name:
            (tmp_path / name).write_text(text.partition("\ntorsorKinematics")[0])
    parts = [(ASSETS / f"{name}.js").read_text() for name in ("math", "data", "beams", "actors")]
    script = "import { readFileSync } from 'node:fs';\n" + "".join(parts) + SHOW
    count, numbers = json.loads(node(script, str(tmp_path), str(time)))
    found = np.reshape(numbers, (-1, count, 4, 4)).transpose(1, 0, 3, 2)
    actor = decoded(html)["actors"][0]
    q, times = positions(actor), actor["times"]
    part = (time / times[1]) % 1.0
    q = q[:, int(time / times[1])] * (1 - part) + q[:, int(np.ceil(time / times[1]))] * part
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    wanted = torsor.library.quadruped().to(device="casadi").poses(q)
    wanted[..., :3, 3] += actor["offsets"][:, None]
    assert np.abs(found[:, 1:] - wanted).max() < SINGLE
    assert np.abs(found[:, 0, :3, 3] - actor["offsets"]).max() < SINGLE
    assert len(np.unique(actor["offsets"].round(6), axis=0)) == count


def test_motions_that_diverged_are_left_out_and_counted() -> None:
    run = moving(5)
    run.v[3, 2:] = np.nan
    data = decoded(page(run).html)
    assert data["actors"][0]["low"].shape == (4, 19) and data["notes"][0].startswith("1 of 5 motions diverged")
    lowest = run.q[4].min(axis=0)
    assert np.abs(data["actors"][0]["low"][3] - lowest)[[0, 1, 2, *range(7, 19)]].max() < SINGLE
    run.v[:] = np.nan
    with refused("all 5 motions diverged"):
        page(run)


def test_robots_at_one_place_stand_in_a_grid_and_others_where_they_are() -> None:
    scene = Scene.of(torsor.library.quadruped())
    alone, spread = (batch(moving(9, apart=apart)) for apart in (0.0, 3.0))
    assert alone is not None and spread is not None
    assert not arranged(spread, scene, None)[1].any() and not arranged(alone, scene, 0.0)[1].any()
    offsets = arranged(alone, scene, None)[1]
    gaps = np.linalg.norm(offsets[:, None] - offsets, axis=-1)[~np.eye(9, dtype=bool)]
    assert gaps.min() > scene.size and not offsets[:, 2].any() and np.abs(offsets.sum(axis=0)).max() < 1e-12
    wide = arranged(alone, scene, 5.0)[1]
    assert np.ptp(wide, axis=0).tolist() == [10.0, 10.0, 0.0]
    with refused(argument="spacing", value=-1.0):
        page(moving(3), spacing=-1.0)


def test_one_robot_far_away_does_not_set_the_size_of_the_picture() -> None:
    run = moving(20)
    run.q[7, :, :3] += 1e4
    motions = batch(run)
    assert motions is not None
    low, high = extent(motions, Scene.of(run.robot), np.zeros((20, 3)))
    assert np.abs([low, high]).max() < 100.0


@pytest.mark.parametrize(
    "height",
    [rough_ground(0.05), steps(0.1, 0.3), ca.Function("hill", [x := ca.SX.sym("x"), y := ca.SX.sym("y")], [x * y])],
)
def test_a_drawn_terrain_has_the_heights_of_its_function(height: ca.Function) -> None:
    x, y, z = ground_grid(height, np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 1e-3)
    assert len(x) <= 120 and len(y) <= 120
    points = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    i, j = (
        np.clip(np.searchsorted(line, each) - 1, 0, len(line) - 2) for line, each in zip((x, y), points.T, strict=True)
    )
    s, t = (points[:, 0] - x[i]) / np.diff(x)[i], (points[:, 1] - y[j]) / np.diff(y)[j]
    bilinear = (1 - s) * ((1 - t) * z[i, j] + t * z[i, j + 1]) + s * ((1 - t) * z[i + 1, j] + t * z[i + 1, j + 1])
    errors = np.abs(bilinear - np.array(height(points[:, 0][None], points[:, 1][None])).ravel())
    assert np.quantile(errors, 0.95) < 1e-3 and errors.max() < 0.01  # ramps begin between two computed heights


def test_the_terrain_of_a_rollout_is_in_its_page_but_not_below_robots_that_are_moved_apart() -> None:
    robot = torsor.library.quadruped()
    q0 = np.tile(robot.postures["home"], (3, 1))
    q0[:, 0], q0[:, 2] = [0.0, 2.0, 4.0], 0.4
    contact = Contact(rough_ground(0.05), stiffness=4e4, exponent=1.0)
    law = torsor.control.drives(robot, q0[0], kp=60.0, kd=2.0)
    run = rollout(robot, q0, np.zeros(robot.nv), 0.1, controller=law, contact=contact, step=2e-3, record=10)
    for shown in (run, run[1]):
        terrain = decoded(page(shown).html)["terrain"]
        assert terrain["z"].shape == (len(terrain["x"]), len(terrain["y"])) and 0.04 < terrain["z"].max() < 0.0501
    moved = decoded(page(run, spacing=2.0).html)
    assert "terrain" not in moved and any("terrain is not drawn" in note for note in moved["notes"])


def test_a_selected_motion_of_a_rollout_is_played_like_a_trajectory() -> None:
    arm = torsor.library.two_link()
    v0 = np.random.default_rng(0).normal(size=(4, 2))
    run = rollout(arm, np.zeros(2), v0, 0.2)
    single, line = torsor.simulate(arm, np.zeros(2), v0[2], duration=0.2, step=1e-3), timeline(run[2])
    assert np.abs(line.q - single.q).max() < 1e-12 and np.abs(line.v - single.v).max() < 1e-12
    assert run[1:3].q.shape == (2, 201, 2) and batch(run[2]) is None
    with pytest.raises(IndexError, match="single rollout"):
        run[2][0]
    with pytest.raises(ModelError, match="no gradients"):
        run[2].vjp()
    with refused("4 rollouts at once"):
        timeline(run)


def test_rollouts_on_the_gpu_are_played_like_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = StrictDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    arm, v0 = torsor.library.two_link(), np.linspace(0.0, 1.0, 6).reshape(3, 2)
    own, other = (rollout(each, np.zeros(2), v0, 0.02) for each in (arm.to(device="cuda"), arm))
    found, wanted = batch(own), batch(other)
    assert found is not None and wanted is not None
    assert np.abs(found.q - wanted.q).max() < 1e-12
    assert np.abs(timeline(own[1]).q - wanted.q[1]).max() < 1e-12
    assert decoded(page(own).html)["actors"][0]["q"].shape == (3, 3, 2)


def test_the_viewer_draws_batches_with_nodes_that_do_not_grow() -> None:
    pytest.importorskip("viser", reason="viser is not installed (extra: view)")
    nodes = []
    for count in (2, 30):
        run = moving(count)
        with torsor.show(run, open=False, block=False, port=0, play=False) as viewer:
            viewer.player.close()
            nodes.append(len(viewer.server.scene._handle_from_node_name))
            viewer.stage.clock.seek(1.0)
            viewer.stage.draw()
            (subject,) = viewer.stage.subjects
            assert subject.crowd is not None
            found = subject.crowd.placed(1.0)[0].reshape(count, -1, 3)[:, 1:]
            assert np.abs(found - run.robot.to(device="casadi").poses(run.q[:, 2])[..., :3, 3]).max() < 1e-9
            drawn = [each for each in subject.figure.batches if len(each.links) == each.links.size]
            assert {len(each.node.batched_positions) % count for each in drawn} == {0}
            viewer.player.closed = False
    assert nodes[0] == nodes[1]


@needs_chromium
@pytest.mark.slow
def test_a_page_draws_many_robots_with_as_many_calls_as_few(tmp_path: Path) -> None:
    calls = []
    with Browser() as browser:
        for count in (3, 60):
            page(moving(count, apart=0.6), tmp_path / "batch.html")
            browser.open(tmp_path / "batch.html", "window.torsorPage && torsorPage.actors[0].own")
            browser.value("torsorPage.seek(1.0)")
            browser.value("torsorPage.image()")
            calls.append(browser.value("torsorPage.stage.renderer.calls"))
        there = pixels(browser)
        poses = np.reshape(browser.value("torsorPage.state().actors[0].poses"), (-1, 60, 16))
        found = browser.value(f"{poses[1, :, 12:15].tolist()}.map((each) => torsorPage.stage.onScreen(each))")
        room = browser.value("[torsorPage.stage.labels.width, torsorPage.stage.labels.height]")
        browser.click("#layer-bodies")
        changed = np.abs(there - pixels(browser)).max(axis=-1) > 8
        column, row = (np.array(found) / room * changed.shape[::-1]).astype(int).T
        inside = (column >= 0) & (column < changed.shape[1]) & (row >= 0) & (row < changed.shape[0])
        browser.click("#play")
        browser.wait("torsorPage.time !== 1.0")
        assert not browser.errors
    assert calls[0] == calls[1] < 60
    assert inside.sum() >= 55 and changed[row[inside], column[inside]].all()  # each trunk is seen


def pixels(browser: Browser) -> np.ndarray:
    """Return the picture (height, width, 4)."""
    data = browser.value("torsorPage.image()").partition(",")[2]
    return np.asarray(Image.open(BytesIO(base64.b64decode(data)))).astype(int)
