"""Pages in a real browser: they play, sliders move the robot, and names stay text (headless Chromium)."""

import base64
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import torsor
from chromium import WITHOUT_WEBGL, Browser, needs_chromium
from torsor.spatial import quaternion_exp
from torsor.view.pages import page
from torsor.view.scene import Scene, Timeline
from torsor.view.scene.sliders import sliders

from .test_scene import bending_arm, slide

pytestmark = [needs_chromium, pytest.mark.slow]
READY = "window.torsorPage && torsorPage.frames > 0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_fails(browser: Browser) -> Iterator[None]:
    browser.errors.clear()
    browser.requests.clear()
    yield
    assert not browser.errors
    assert all(each.startswith(("file:", "data:")) for each in browser.requests)


def swing(turns: float = 1.0) -> Timeline:
    robot = torsor.library.planar_chain(2)
    times = np.linspace(0.0, 2.0, 101)
    q = np.stack([np.sin(turns * times), 0.5 * times], axis=-1)
    v = np.stack([turns * np.cos(turns * times), 0.5 + 0 * times], axis=-1)
    a = np.stack([-(turns**2) * np.sin(turns * times), 0 * times], axis=-1)
    tau = robot.to(device="casadi").inverse_dynamics(q, v, a)
    return Timeline(robot, f"swing {turns:g}", times, q, v, a, tau, robot.coordinate_names)


def poses(browser: Browser, actor: int = 0) -> np.ndarray:
    """Return the poses (L + 1, 4, 4) of base and links that the page draws."""
    numbers = browser.value(f"torsorPage.state().actors[{actor}].poses")
    return np.reshape(numbers, (-1, 4, 4)).transpose(0, 2, 1)


def set_input(browser: Browser, name: str, value: float) -> None:
    browser.value(
        f"(() => {{ const input = document.getElementById('{name}'); input.value = {value};"
        " input.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


def test_without_a_gpu_motion_is_drawn_coarse_and_rest_fine(browser: Browser, tmp_path: Path) -> None:
    page(swing(), tmp_path / "swing.html")
    browser.open(tmp_path / "swing.html", READY)
    assert browser.value("torsorPage.stage.renderer.software")
    assert not browser.value("torsorPage.stage.renderer.gl.getContextAttributes().antialias")
    assert not browser.value("getComputedStyle(torsorPage.stage.labels).visibility === 'visible'")
    browser.wait("torsorPage.stage.quality === 1.5")  # edges are smooth at rest
    browser.value("torsorPage.play()")
    browser.wait("torsorPage.stage.quality < 1")
    browser.value("torsorPage.pause()")
    browser.wait("torsorPage.stage.quality === 1.5")


def test_a_motion_plays_pauses_and_is_scrubbed(browser: Browser, tmp_path: Path) -> None:
    line = swing()
    page(line, tmp_path / "swing.html")
    browser.open(tmp_path / "swing.html", READY)
    before = browser.value("torsorPage.image()")
    browser.click("#play")
    browser.wait("torsorPage.time > 0.2")
    assert browser.value("torsorPage.playing")
    browser.click("#play")
    assert not browser.value("torsorPage.playing")
    assert browser.value("torsorPage.image()") != before
    set_input(browser, "scrub", 1.3)
    assert browser.value("torsorPage.time") == 1.3
    expected = line.robot.to(device="casadi").poses(line.q[65])
    assert np.abs(poses(browser)[1:] - expected).max() < 1e-6
    browser.wait("document.getElementById('clock').textContent.startsWith('1.30 / 2.00')")
    drives = browser.value("torsorPage.state().actors[0].drives")
    assert line.tau is not None
    assert np.allclose([each["value"] for each in drives], line.tau[65], rtol=1e-5)


def test_it_loops_or_stops_at_the_end(browser: Browser, tmp_path: Path) -> None:
    page(swing(), tmp_path / "swing.html")
    browser.open(tmp_path / "swing.html", READY)
    browser.value("document.getElementById('speed').value = '5'; speed.dispatchEvent(new Event('change'))")
    browser.click("#loop")
    browser.click("#play")
    browser.wait("!torsorPage.playing && torsorPage.time === 2")
    browser.click("#loop")
    browser.value("torsorPage.seek(1.9); torsorPage.play()")
    browser.wait("torsorPage.time < 1.9")


def test_space_plays_after_a_click_on_a_check_box(browser: Browser, tmp_path: Path) -> None:
    page(swing(), tmp_path / "swing.html")
    browser.open(tmp_path / "swing.html", READY)
    for selector in ("#layer-links", "#loop"):
        checked = f"document.querySelector({selector!r}).checked"
        before = browser.value(checked)
        browser.click(selector)
        browser.wait("document.activeElement === document.body")
        for kind in ("keyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", text=" ")
        assert browser.value(checked) != before
    assert not browser.value("torsorPage.playing")
    browser.send("Input.dispatchKeyEvent", type="keyDown", key=" ", code="Space", text=" ")
    assert browser.value("torsorPage.playing")


def test_a_slider_moves_the_robot_to_its_poses(browser: Browser, tmp_path: Path) -> None:
    robot = torsor.library.ur5()
    page(robot, tmp_path / "arm.html")
    browser.open(tmp_path / "arm.html", f"{READY} && torsorPage.actors[0].own")
    before = browser.value("torsorPage.image()")
    set_input(browser, "slider1", -1.1)
    set_input(browser, "slider2", 0.7)
    light, q = robot.to(device="casadi"), robot.postures["home"].copy()
    q[1:3] = -1.1, 0.7
    assert np.abs(poses(browser)[1:] - light.poses(q)).max() < 1e-6
    assert browser.value("torsorPage.image()") != before
    holding = [each["value"] for each in browser.value("torsorPage.state().actors[0].drives")]
    assert np.allclose(holding, light.gravity_force(q), atol=1e-9)
    com = browser.value("torsorPage.state().actors[0].com")
    assert np.allclose(com, light.center_of_mass(q), atol=1e-12)


def test_a_free_joint_turns_by_sliders(browser: Browser, tmp_path: Path) -> None:
    robot = torsor.library.free_flying_arm()
    page(robot, tmp_path / "free.html")
    browser.open(tmp_path / "free.html", f"{READY} && torsorPage.actors[0].own")
    names = [slide.name for slide in sliders(robot, robot.neutral(), 1.0)]
    vector = np.array([0.4, -0.2, 0.7])
    values = {"root/y": 0.3, robot.coordinate_names[-1]: 0.5}
    values |= {f"root rotation {axis}": part for axis, part in zip("xyz", vector, strict=True)}
    q = robot.neutral()
    for name, value in values.items():
        set_input(browser, f"slider{names.index(name)}", value)
        if name in robot.position_names:
            q[robot.position_names.index(name)] = value
    q[3:7] = quaternion_exp(vector)
    light = robot.to(device="casadi")
    assert np.abs(poses(browser)[1:] - light.poses(q)).max() < 1e-6
    shown = "[...document.querySelectorAll('.slider .number')].map((each) => each.textContent)"
    browser.wait(f"{shown}[{names.index('root/y')}] === '300.0 mm'")
    assert browser.value(shown)[names.index("root rotation x")] == "22.9°"


def test_loops_follow_a_slider_or_stay(browser: Browser, tmp_path: Path) -> None:
    robot = torsor.library.four_bar()
    page(robot, tmp_path / "loop.html")
    browser.open(tmp_path / "loop.html", f"{READY} && torsorPage.actors[0].own")
    set_input(browser, "slider0", 1.2)
    q = np.array(browser.value("torsorPage.state().actors[0].q"))
    assert abs(q[0] - 1.2) < 1e-9
    assert np.abs(robot.to(device="casadi").closed.error(q)).max() < 1e-7


def test_motions_are_compared_and_hidden(browser: Browser, tmp_path: Path) -> None:
    page({"slow": swing(1.0), "fast": swing(2.0)}, tmp_path / "both.html")
    browser.open(tmp_path / "both.html", READY)
    browser.value("torsorPage.seek(0.8)")
    assert np.abs(poses(browser, 0) - poses(browser, 1)).max() > 0.1
    before = browser.value("torsorPage.image()")
    browser.click("#motion1")
    assert browser.value("torsorPage.image()") != before


def test_a_robot_in_the_same_posture_hides_its_reference_except_for_edges(browser: Browser, tmp_path: Path) -> None:
    robot = torsor.library.ur5()
    q, still = np.tile(robot.postures["home"], (2, 1)), np.zeros((2, robot.nv))
    held = Timeline(robot, "held", np.arange(2.0), q, still, still)
    page({"run": held}, tmp_path / "run.html", reference=held)
    browser.open(tmp_path / "run.html", READY)

    def pixels(body: bool, reference: bool) -> np.ndarray:
        shown = f"torsorPage.actors.forEach((each, k) => (each.visible = k ? {int(reference)} : {int(body)}))"
        url = browser.value(f"(torsorPage.layers.grid = false, {shown}, torsorPage.image())")
        return np.asarray(Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))).astype(int)

    empty, body, outline, both = (pixels(*each) for each in ((0, 0), (1, 0), (0, 1), (1, 1)))
    outside = np.abs(outline - empty).max(axis=-1) > 8
    edges = np.abs(both - body).max(axis=-1) > 8
    assert outside.sum() > 5000 and 0.005 < edges.sum() / outside.sum() < 0.15


@pytest.mark.parametrize("layer", ["bodies", "grid", "links", "com", "trails", "reactions"])
def test_each_check_box_changes_the_picture(layer: str, browser: Browser, tmp_path: Path) -> None:
    page(swing(), tmp_path / "swing.html")
    browser.open(tmp_path / "swing.html", READY)
    browser.value("torsorPage.seek(1.0)")
    before = browser.value("torsorPage.image()")
    browser.click(f"#layer-{layer}")
    assert browser.value("torsorPage.image()") != before
    browser.click(f"#layer-{layer}")
    assert browser.value("torsorPage.image()") == before


def test_arrows_are_seen_through_bodies(browser: Browser, tmp_path: Path) -> None:
    robot = torsor.library.ur5()
    q, still = np.tile(robot.postures["home"], (2, 1)), np.zeros((2, robot.nv))
    tau = robot.to(device="casadi").inverse_dynamics(q, still, still)
    page(Timeline(robot, "held", np.arange(2.0), q, still, still, tau, robot.coordinate_names), tmp_path / "held.html")
    browser.open(tmp_path / "held.html", READY)

    def pixels(**layers: bool) -> np.ndarray:
        chosen = "{" + ", ".join(f"{name}: {str(on).lower()}" for name, on in layers.items()) + "}"
        url = browser.value(f"(Object.assign(torsorPage.layers, {chosen}), torsorPage.image())")
        return np.asarray(Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))).astype(int)

    def arrows(bodies: bool) -> np.ndarray:
        with_, without = (pixels(bodies=bodies, grid=False, reactions=on) for on in (True, False))
        return np.abs(with_ - without).max(axis=-1) > 8

    alone, covered = arrows(bodies=False), arrows(bodies=True)
    assert alone.sum() > 500 and (alone & covered).sum() > 0.95 * alone.sum()


def test_the_mouse_turns_the_view(browser: Browser, tmp_path: Path) -> None:
    page(torsor.library.two_link(), tmp_path / "arm.html")
    browser.open(tmp_path / "arm.html", READY)
    before = browser.value("[torsorPage.stage.camera.azimuth, torsorPage.stage.camera.elevation]")
    browser.drag((300, 300), (380, 340))
    after = browser.value("[torsorPage.stage.camera.azimuth, torsorPage.stage.camera.elevation]")
    assert after[0] < before[0] and after[1] > before[1]


def test_hostile_names_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    link = torsor.Link(name, 1.0, (0.1, 0, 0))
    robot = torsor.build(name, [torsor.Link("base"), link], [torsor.Joint(name, "revolute", "base", name)])
    page(robot, tmp_path / "hostile.html")
    browser.open(tmp_path / "hostile.html", f"{READY} && torsorPage.actors[0].own")
    assert browser.value("document.querySelector('h1').textContent") == name
    assert browser.value("document.querySelector('.slider .name').textContent") == name
    assert browser.value("window.broken === undefined && document.images.length === 0")


def test_the_policy_stops_what_is_not_of_the_page(browser: Browser, tmp_path: Path) -> None:
    page(torsor.library.two_link(), tmp_path / "arm.html")
    browser.open(tmp_path / "arm.html", READY)
    added = "const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s)"
    browser.value(f"(() => {{ {added} }})()")
    assert browser.value("window.broken === undefined")
    browser.errors.clear()  # the browser reports what it stopped


def test_a_notebook_shows_it_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    frame = page(swing())._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frame}", encoding="utf-8")
    browser.open(tmp_path / "notebook.html")
    browser.wait("document.querySelector('iframe').clientHeight === 600")


def test_without_webgl_the_page_shows_a_message(tmp_path: Path) -> None:
    page(torsor.library.two_link(), tmp_path / "arm.html")
    with Browser(*WITHOUT_WEBGL) as plain:
        plain.open(tmp_path / "arm.html")
        text = plain.value("document.getElementById('failure').textContent")
        assert "WebGL is missing in this browser" in text and not plain.value(
            "document.getElementById('failure').hidden"
        )


@pytest.mark.parametrize("name", ["walking", "platform"])
def test_the_pages_of_the_documents_play(name: str, browser: Browser) -> None:
    browser.open(Path(__file__).parents[2] / "docs" / "pages" / f"{name}.html", READY)
    browser.click("#play")
    browser.wait("torsorPage.time > 0.1")
    assert browser.value("torsorPage.stage.follow") is (name == "walking")


def test_a_walk_goes_on_in_the_next_round_and_the_camera_with_it(browser: Browser, tmp_path: Path) -> None:
    line = slide()
    page(line, tmp_path / "slide.html")
    browser.open(tmp_path / "slide.html", READY)
    way, starts = np.asarray(line.ahead), []
    for rounds in range(3):
        browser.value(f"torsorPage.seek(0.25, {rounds})")
        starts.append(poses(browser)[1, :3, 3])
    assert np.allclose(np.diff(starts, axis=0), way, atol=1e-5)
    browser.value("(torsorPage.seek(0.9), torsorPage.play())")
    browser.wait("torsorPage.rounds > 1")
    browser.value("torsorPage.pause()")
    assert poses(browser)[1, :3, 3] @ way >= 2 * way @ way - 1e-5  # the second round, or later


def test_a_flexible_link_bends_with_its_sliders(browser: Browser, tmp_path: Path) -> None:
    robot = bending_arm()
    page(robot, tmp_path / "beam.html")
    browser.open(tmp_path / "beam.html", f"{READY} && torsorPage.actors[0].own")
    before = browser.value("torsorPage.image()")
    q = np.array([0.4, 0.1, -0.03, 0.08, 0.7])
    browser.value(f"torsorPage.actors[0].take({q.tolist()})")
    assert browser.value("torsorPage.image()") != before
    expected = Scene.of(robot).poses(q)
    assert np.abs(poses(browser)[:, :3, 2:] - expected[:, :3, 2:]).max() < 1e-5  # where rods are, and along which line
