"""Take the pictures of the viewer and of a page in docs/start, with headless Chromium.

python docs/tools/viewer_pictures.py viewer viewer_tracking viewer_platform viewer_measured page_batch

They have the shadows and smooth edges that browsers with a GPU draw.
"""

import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import casadi as ca
import numpy as np
from facts import DOCS, ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "examples"))

import torsor
from chromium import Browser
from pages import platform_motion
from torsor.human import recordings
from torsor.human.measured import measured_gait
from torsor.human.recordings.loading import EXAMPLE_MASS
from torsor.simulation import Contact, rollout, rough_ground

READY = "!!document.querySelector('canvas') && document.body.innerText.includes('nergies')"
CLOSE = "document.querySelectorAll('.mantine-CloseButton-root').forEach((each) => each.click())"
PATIENCE = 8.0  # s for the browser to draw, without a GPU
SIZE, SCALE = (1100, 760), 2  # of a picture, and of its pixels in the browser
SHADES, MAX_BYTES = (3, 4, 5), 250_000  # steps of the colours, the first with a file that is small enough
FEW = 64  # colours of other pictures
# Hides from the page that there is no GPU.
HIDE = """
const plain = WebGL2RenderingContext.prototype.getExtension;
WebGL2RenderingContext.prototype.getExtension = function (name) {
    return name === "WEBGL_debug_renderer_info" ? null : plain.call(this, name);
};"""
Eye = tuple[tuple[float, ...], tuple[float, ...]]


def main() -> None:
    """Take the named pictures."""
    parser = ArgumentParser()
    parser.add_argument("names", nargs="+", choices=[*SUBJECTS, "page_batch"])
    given = parser.parse_args()
    with Browser() as browser:
        shape = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": SCALE, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **shape)
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=HIDE)
        for name in given.names:
            path = DOCS / "start" / f"{name}.png"
            if name == "page_batch":
                _take_page(browser, path)
                continue
            what, options, steps, eye = SUBJECTS[name]()
            viewer = torsor.show(*what, open=False, block=False, port=0, play=False, **options)
            browser.open("about:blank")
            browser.open(viewer.url, READY)
            time.sleep(PATIENCE)
            browser.value(CLOSE)
            for step, *arguments in steps:
                getattr(viewer, step)(*arguments)
            for client in viewer.server.get_clients().values() if eye else ():
                client.camera.position, client.camera.look_at = eye
            time.sleep(PATIENCE)
            viewer.stage.sway(0, False)
            time.sleep(PATIENCE / 4)
            _save(browser, path)
            viewer.stop()


def _save(browser: Browser, path: Path) -> None:
    """Save the picture in the browser with as many colours as the largest file allows, or with few."""
    browser.screenshot(path)
    picture = Image.open(path).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
    for step in SHADES:
        rounded = [min(step * round(value / step), 255) for value in range(256)]
        picture.point(3 * rounded).save(path, optimize=True)
        if path.stat().st_size < MAX_BYTES:
            return
    picture.quantize(FEW, dither=Image.Dither.NONE).save(path, optimize=True)


def _take_page(browser: Browser, path: Path) -> None:
    """Take the picture of the page of 1000 quadrupeds that trot on blocks."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        torsor.view.page(_trot(1000), file, rate=10.0, title="Quadrupeds on rough ground")
        browser.open(file, "window.torsorPage && torsorPage.actors[0].own")
        camera = "Object.assign(torsorPage.stage.camera, {elevation: 0.34, distance: 20})"
        browser.value(f"document.body.classList.add('folded'); {camera}; torsorPage.seek(1.7)")
        time.sleep(PATIENCE)
        browser.value("torsorPage.image()")
        _save(browser, path)


def _trot(count: int) -> Any:
    """Return a rollout of quadrupeds that trot on blocks, in directions of their own, without feedback."""
    robot, rng = torsor.library.quadruped(), np.random.default_rng(0)
    home = robot.postures["home"]

    def reference(t: Any) -> Any:
        q, phase = ca.SX(home), 4 * ca.pi * t
        for leg, sign in (("fl", 1), ("hr", 1), ("fr", -1), ("hl", -1)):
            hip, knee = (robot.position_names.index(f"{leg}_{joint}") for joint in ("hip", "knee"))
            lift = ca.fmax(sign * ca.sin(phase), 0)
            q[hip] += 0.2 * (sign * ca.cos(phase) + lift)
            q[knee] -= 0.4 * lift
        return q

    cells = np.stack(np.divmod(np.arange(count), round(np.sqrt(count))), axis=-1)
    starts, half = np.tile(home, (count, 1)), rng.uniform(-np.pi / 2, np.pi / 2, count)
    starts[:, :2], starts[:, 2] = cells - cells.mean(axis=0) + rng.uniform(-0.2, 0.2, (count, 2)), 0.42
    starts[:, 5], starts[:, 6] = np.sin(half), np.cos(half)
    law = torsor.control.drives(robot, reference, kp=100.0, kd=2.0)
    contact = Contact(rough_ground(0.04), stiffness=4e4, exponent=1.0)
    still = np.zeros(robot.nv)
    return rollout(robot, starts, still, 2.0, controller=law, contact=contact, step=2e-3, record=50)


def _swing() -> Any:
    return (torsor.load("ur5"),), {"swing": True}, [], None


def _tracking() -> Any:
    page = (DOCS / "start" / "viewer.md").read_text("utf-8")
    code = next(block for block in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "reference=" in block)
    names: dict[str, Any] = {}
    exec(code.replace("torsor.show(arm)", "").partition("with torsor.show")[0], names)
    steps = [("chart", "elbow_joint"), ("seek", 1.2)]
    return (names["run"],), {"reference": names["plan"]}, steps, ((1.17, 1.17, 0.85), (0.07, -0.12, 0.28))


def _platform() -> Any:
    return (platform_motion(),), {}, [("show", "reactions"), ("seek", 1.2)], None


def _measured() -> Any:
    walk = recordings.example()
    gait = measured_gait(walk.markers, walk.forces, mass=EXAMPLE_MASS, height=1.8)
    x, _, z = gait.trajectory().at(0.92).q[:3]
    eye = (x + 3.2, 1.2, z + 0.9), (x, 0.88, z - 0.45)
    return (gait,), {}, [("chart", "left_ankle_flexion"), ("seek", 0.92)], eye


SUBJECTS: dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any], list[Any], Eye | None]]] = {
    "viewer": _swing,
    "viewer_tracking": _tracking,
    "viewer_platform": _platform,
    "viewer_measured": _measured,
}


if __name__ == "__main__":
    main()
