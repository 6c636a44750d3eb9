"""Take the pictures of the viewer in docs/start, with headless Chromium.

python docs/tools/viewer_pictures.py viewer viewer_tracking viewer_walk viewer_platform
python docs/tools/viewer_pictures.py viewer_measured --walk FOLDER    # OpenSim Moco's example3DWalking
"""

import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from facts import DOCS, ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "examples"))

import torsor
from chromium import Browser
from pages import platform_motion
from torsor.human import Stride, recordings, walking
from torsor.human.measured import measured_gait

READY = "!!document.querySelector('canvas') && document.body.innerText.includes('nergies')"
CLOSE = "document.querySelectorAll('.mantine-CloseButton-root').forEach((each) => each.click())"
PATIENCE = 8.0  # s for the browser to draw, without a GPU
Eye = tuple[tuple[float, ...], tuple[float, ...]]


def main() -> None:
    """Take the named pictures."""
    parser = ArgumentParser()
    parser.add_argument("names", nargs="+", choices=list(SUBJECTS))
    parser.add_argument("--walk", type=Path)
    given = parser.parse_args()
    with Browser(width=1100, height=760) as browser:
        for name in given.names:
            what, options, steps, eye = SUBJECTS[name](given.walk)
            viewer = torsor.show(*what, open=False, block=False, port=0, play=False, **options)
            browser.open("about:blank")
            browser.open(viewer.url, READY)
            time.sleep(PATIENCE)
            browser.value(CLOSE)
            for step, *arguments in steps:
                if step == "trail":
                    viewer.stage.trail(viewer.stage.subjects[0], *arguments)
                else:
                    getattr(viewer, step)(*arguments)
            for client in viewer.server.get_clients().values() if eye else ():
                client.camera.position, client.camera.look_at = eye
            time.sleep(PATIENCE)
            viewer.stage.sway(0, False)
            time.sleep(PATIENCE / 4)
            path = DOCS / "start" / f"{name}.png"
            browser.screenshot(path)
            Image.open(path).convert("RGB").save(path, optimize=True)
            viewer.stop()


def _swing(_: Path | None) -> Any:
    return (torsor.load("ur5"),), {"swing": True}, [("trail", "ee_link")], None


def _tracking(_: Path | None) -> Any:
    page = (DOCS / "start" / "viewer.md").read_text("utf-8")
    code = next(block for block in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "reference=" in block)
    names: dict[str, Any] = {}
    exec(code.replace("torsor.show(arm)", "").partition("with torsor.show")[0], names)
    steps = [("chart", "elbow_joint"), ("seek", 1.2)]
    return (names["run"],), {"reference": names["plan"]}, steps, ((1.17, 1.17, 0.85), (0.07, -0.12, 0.28))


def _walk(_: Path | None) -> Any:
    steps = [("chart", "right_knee_flexion"), ("seek", 0.48)]
    return (Stride(walking().solve()),), {}, steps, ((-3.3, 1.2, 1.1), (0.0, 0.88, 0.45))


def _platform(_: Path | None) -> Any:
    return (platform_motion(),), {}, [("show", "reactions"), ("seek", 1.2)], None


def _measured(folder: Path | None) -> Any:
    assert folder is not None, "--walk is missing"
    markers, forces = (recordings.load(folder / name, check=False) for name in ("markers_walk.trc", "grf_walk.mot"))
    model = recordings.read_osim(folder / "subject_walk_scaled.osim")
    gait = measured_gait(markers.markers, forces.forces, model=model)
    x, _, z = gait.trajectory().at(0.9).q[:3]
    eye = (x + 0.9, 1.2, z + 3.2), (x + 0.4, 0.88, z)
    return (gait,), {}, [("chart", "ankle_angle_r"), ("seek", 0.9)], eye


SUBJECTS: dict[str, Callable[[Path | None], tuple[tuple[Any, ...], dict[str, Any], list[Any], Eye | None]]] = {
    "viewer": _swing,
    "viewer_tracking": _tracking,
    "viewer_walk": _walk,
    "viewer_platform": _platform,
    "viewer_measured": _measured,
}


if __name__ == "__main__":
    main()
