"""Frames per second of the viewer and of an offline page: a walking human in headless Chromium.

Run: python benchmarks/viewer.py [WIDTHxHEIGHT ...]. It needs the extra ``view`` and Chromium.

The frames are counted in the page by requestAnimationFrame while the motion plays. Headless Chromium on a machine
without a GPU renders in software (SwiftShader). With a GPU, the display rate is the limit. viser reduces the resolution
by up to a quarter per side if frames take long; the final resolution is printed.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torsor
from torsor.view.live import show
from torsor.view.scene import timeline

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chromium import Browser

PAGE = Path(__file__).parents[1] / "docs" / "pages" / "walking.html"
SECONDS = 5.0
WARM = 8.0  # s, in which the page compiles its shaders
COUNT = f"""new Promise((done) => {{
    let count = 0;
    const start = performance.now();
    function next() {{
        const now = performance.now() - start;
        if (now > {1000 * SECONDS}) done(1000 * count / now);
        else {{ count++; requestAnimationFrame(next); }}
    }}
    requestAnimationFrame(next);
}})"""
RENDERER = """(() => {
    const gl = document.createElement('canvas').getContext('webgl2');
    return gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL);
})()"""

DRAWN = "[...document.querySelectorAll('canvas')].map((each) => `${each.width}x${each.height}`).at(-1)"


@contextmanager
def opened(address: str | Path, width: int, height: int) -> Iterator[Browser]:
    """Open a page in a window of a given size, rendered in software."""
    with Browser("--disable-gpu", "--enable-unsafe-swiftshader", width=width, height=height) as page:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.send("Emulation.setDeviceMetricsOverride", **shape)
        page.open(address, "document.querySelector('canvas') !== null")
        yield page


def main() -> None:
    """Print the frames per second for each window size."""
    sizes = sys.argv[1:] or ["1280x720", "960x540", "640x480"]
    walk = timeline(torsor.human.walking().solve(), "walking")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {len(walk.robot.links)} links, {len(walk)} samples")
    with show(walk, open=False, block=False, port=0) as viewer:
        for size in sizes:
            width, height = map(int, size.split("x"))
            with opened(viewer.url, width, height) as page:
                time.sleep(WARM)
                used, start = time.process_time(), time.perf_counter()
                rates = sorted(page.value(COUNT) for _ in range(3))
                share = (time.process_time() - used) / (time.perf_counter() - start)
                if size == sizes[0]:
                    print(page.value(RENDERER))
                rate = f"{rates[1]:.1f} frames/s ({rates[0]:.1f} to {rates[2]:.1f})"
                busy = f"the server takes {100 * share:.0f} % of a core; load {os.getloadavg()[0]:.1f}"
                print(f"{size}, {page.value(DRAWN)} drawn: {rate}; {busy}")
            with opened(PAGE, width, height) as page:
                page.value("document.getElementById('play').click()")
                time.sleep(WARM)
                rates = sorted(page.value(COUNT) for _ in range(3))
                print(f"{size}, offline page: {rates[1]:.1f} frames/s ({rates[0]:.1f} to {rates[2]:.1f})")


if __name__ == "__main__":
    main()
