"""Take the pictures of the viewer in docs/start, with headless Chromium.

python docs/tools/viewer_pictures.py viewer viewer_tracking viewer_platform viewer_measured

They have the shadows and smooth edges that browsers with a GPU draw.
"""

import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

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

READY = "!!document.querySelector('canvas') && document.body.innerText.includes('nergies')"
CLOSE = "document.querySelectorAll('.mantine-CloseButton-root').forEach((each) => each.click())"
PATIENCE = 8.0  # s for the browser to draw, without a GPU
SIZE, SCALE = (1100, 760), 2  # of a picture, and of its pixels in the browser
SHADES, MAX_BYTES = (3, 4, 5), 250_000  # steps of the colours, the first with a file that is small enough
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
    parser.add_argument("names", nargs="+", choices=list(SUBJECTS))
    given = parser.parse_args()
    with Browser() as browser:
        shape = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": SCALE, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **shape)
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=HIDE)
        for name in given.names:
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
            path = DOCS / "start" / f"{name}.png"
            browser.screenshot(path)
            picture = Image.open(path).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
            for step in SHADES:
                rounded = [min(step * round(value / step), 255) for value in range(256)]
                picture.point(3 * rounded).save(path, optimize=True)
                if path.stat().st_size < MAX_BYTES:
                    break
            viewer.stop()


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
