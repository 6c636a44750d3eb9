"""Write docs/pages/gait.html, the report of the example walk, and docs/people/gait_report.png, its gait cycles.

python docs/tools/gait_report.py
"""

import base64
import io
import re

from facts import DOCS
from PIL import Image

from torsor.cli.main import main

SHADES = 5
COLORS = 64


def fewer(png: re.Match[str]) -> str:
    """Return a picture of the report with fewer colours than matplotlib draws."""
    data = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(png[1]))).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(data, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def write() -> None:
    """Write the report and the figure, with fewer shades of grey than matplotlib draws."""
    report, path = DOCS / "pages" / "gait.html", DOCS / "people" / "gait_report.png"
    outputs = ["--force", "--report", str(report), "--cycle", str(path)]
    assert main(["measure", "--example", "--strikes", "left", "0.84", "1.98", *outputs]) == 0
    html = report.read_text(encoding="utf-8")
    report.write_text(re.sub(r"data:image/png;base64,([^\"]+)", fewer, html), encoding="utf-8")
    rounded = [min(SHADES * round(value / SHADES), 255) for value in range(256)]
    Image.open(path).convert("RGB").point(3 * rounded).save(path, optimize=True)


if __name__ == "__main__":
    write()
