"""Write docs/pages/gait.html, the report of the example walk, and take docs/people/gait_report.png, its beginning.

The picture is taken with headless Chromium.

python docs/tools/gait_report.py
"""

import sys
import time

from facts import DOCS, ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "tests"))

from chromium import Browser
from torsor.cli.main import main

SIZE, SHADES = (1150, 1320), 5


def take() -> None:
    """Write the report, open it, and take its upper part."""
    with Browser() as browser:
        report, path = DOCS / "pages" / "gait.html", DOCS / "people" / "gait_report.png"
        assert main(["measure", "--example", "--force", "--report", str(report)]) == 0
        shape = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **shape)
        browser.open(report.as_uri(), "document.readyState === 'complete'")
        browser.value("document.documentElement.style.overflow = 'hidden'")
        time.sleep(3.0)
        browser.screenshot(path)
        rounded = [min(SHADES * round(value / SHADES), 255) for value in range(256)]
        Image.open(path).convert("RGB").point(3 * rounded).save(path, optimize=True)


if __name__ == "__main__":
    take()
