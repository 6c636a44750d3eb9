"""The viewer in a real browser: it opens, a slider moves the robot, a motion plays, and the picture changes."""

import json
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import torsor
from chromium import Browser, needs_chromium
from torsor.view.live import show

pytest.importorskip("viser", reason="viser is not installed (extra: view)")
pytestmark = [pytest.mark.slow, needs_chromium]

SLIDER = """(() => {{
  const alone = (each) => {{  // the row of a slider: the largest element that has no other one
    while (each.parentElement.querySelectorAll('[role=slider]').length === 1) each = each.parentElement;
    return each;
  }};
  const one = [...document.querySelectorAll('[role=slider]')].find((each) => alone(each).innerText.includes({0}));
  const track = one.closest('[class*=Slider-trackContainer]').getBoundingClientRect();
  const value = Number(one.getAttribute('aria-valuenow'));
  return {{ value, x: track.x, y: track.y + track.height / 2, width: track.width }};
}})()"""
BUTTON = """(() => {{
  const one = [...document.querySelectorAll('button')].find((each) => each.innerText.trim() === {0});
  if (!one) return null;
  const box = one.getBoundingClientRect();
  return {{ x: box.x + box.width / 2, y: box.y + box.height / 2 }};
}})()"""


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with Browser("--disable-gpu", "--enable-unsafe-swiftshader", width=1000, height=800) as found:
        yield found


def opened(page: Browser, viewer: Any, word: str) -> None:
    page.open("about:blank")  # the page of another test looks for its viewer, which has ended
    page.errors.clear()
    page.open(viewer.url, f"!!document.querySelector('canvas') && document.body.innerText.includes({json.dumps(word)})")


def still(page: Browser, script: str) -> dict[str, float]:
    """Return the place of a control when it no longer moves: the panel unfolds at first."""
    page.wait(script)
    before, place = None, page.value(script)
    while place != before:
        time.sleep(1)
        before, place = place, page.value(script)
    return dict(place)


def picture(page: Browser, folder: Path) -> bytes:
    page.screenshot(folder / "page.png")
    return (folder / "page.png").read_bytes()


def until(true: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def press(page: Browser, text: str) -> None:
    place = still(page, BUTTON.format(json.dumps(text)))
    at = place["x"], place["y"]
    page.drag(at, at)


def test_a_slider_in_the_page_moves_the_robot(page: Browser, tmp_path: Path) -> None:
    with show(torsor.library.six_axis_arm(), open=False, block=False, port=0) as viewer:
        opened(page, viewer, "joint1")
        slider = still(page, SLIDER.format(json.dumps("joint2")))
        before = picture(page, tmp_path)
        numbers = page.value("document.body.innerText")
        posture = viewer.stage.subjects[0].posture
        assert posture is not None
        at = slider["x"] + 0.85 * slider["width"], slider["y"]
        page.drag(at, at)
        until(lambda: abs(posture.q[1]) > 0.5)
        page.wait(f"document.body.innerText !== {json.dumps(numbers)}")
        degrees = page.value(SLIDER.format(json.dumps("joint2")))["value"]
        assert degrees == pytest.approx(np.degrees(posture.values[1]), abs=0.5)
        assert page.value("document.title") == "six_axis_arm - Torsor"
        time.sleep(2)
        assert picture(page, tmp_path) != before
        assert page.errors == [] and viewer.stage.faults == []


def test_a_motion_plays_pauses_and_can_be_scrubbed(page: Browser, tmp_path: Path) -> None:
    arm = torsor.library.six_axis_arm()
    fall = torsor.simulate(arm.to(device="casadi"), duration=1.0, step=0.01)
    with show(fall, open=False, block=False, port=0, play=False) as viewer:
        opened(page, viewer, "time (s)")
        still(page, BUTTON.format('"Play"'))
        before, clock = picture(page, tmp_path), viewer.stage.clock
        press(page, "Play")
        until(lambda: clock.playing and clock.time > 0.05)
        page.wait(f"{SLIDER.format(json.dumps('time (s)'))}.value > 0")
        press(page, "Pause")
        until(lambda: not clock.playing)
        slider = still(page, SLIDER.format(json.dumps("time (s)")))
        at = slider["x"] + 0.5 * slider["width"], slider["y"]
        page.drag(at, at)
        until(lambda: abs(clock.time - 0.5) < 0.1)
        time.sleep(2)
        assert picture(page, tmp_path) != before
        shown, sample = viewer.stage.subjects[0].shot.placed[0][1:], round(100 * clock.time)
        np.testing.assert_allclose(shown, arm.to(device="casadi").poses(fall.q)[sample, :, :3, 3], atol=0.1)
        assert page.errors == [] and viewer.stage.faults == []


def test_without_a_gpu_edges_are_not_smoothed_and_an_empty_background_is_not_drawn(page: Browser) -> None:
    samples = """[...document.querySelectorAll('canvas')].map((each) => each.getContext('webgl2'))
        .map((gl) => gl.getParameter(gl.SAMPLES))"""
    with show(torsor.library.two_link(), open=False, block=False, port=0) as viewer:
        opened(page, viewer, "joint1")
        assert set(page.value(samples)) == {0}
        page.wait("window.__viserMutable?.backgroundMaterial?.visible === false")
        viewer.server.scene.set_background_image(np.zeros((2, 2, 3), np.uint8))
        page.wait("window.__viserMutable.backgroundMaterial.visible")
        assert page.errors == []


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[str]:
    """The address of a page of another server."""
    (tmp_path / "index.html").write_text("a page of a stranger")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_page_elsewhere_cannot_reach_the_viewer(page: Browser, stranger: str) -> None:
    with show(torsor.library.two_link(), open=False, block=False, port=0) as viewer:
        page.open(stranger, "document.body !== null && document.body.innerText.includes('stranger')")
        protocol = f"viser-v{__import__('viser').__version__}"
        script = f"""new Promise((done) => {{
            const socket = new WebSocket({json.dumps(viewer.url.replace("http", "ws"))}, {json.dumps(protocol)});
            let messages = 0;
            socket.onmessage = () => messages++;
            socket.onclose = (event) => done([event.code, messages]);
        }})"""
        assert page.value(script) == [1008, 0]


def test_hostile_names_stay_text(page: Browser) -> None:
    hostile = "<img src=x onerror=document.title='broken'>"
    robot = torsor.library.two_link()
    with show(robot, names=[hostile], open=False, block=False, port=0) as viewer:
        opened(page, viewer, "onerror")
        assert page.value("document.title") != "broken"
        assert page.value("document.querySelectorAll('img[src=x]').length") == 0
