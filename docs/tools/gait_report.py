"""Write docs/pages/gait.html, the report of the example walk, and docs/people/gait_report.png, its gait cycles.

python docs/tools/gait_report.py
"""

from facts import DOCS
from PIL import Image

from torsor.cli.main import main

SHADES = 5


def write() -> None:
    """Write the report and the figure, with fewer shades of grey than matplotlib draws."""
    report, path = DOCS / "pages" / "gait.html", DOCS / "people" / "gait_report.png"
    outputs = ["--force", "--report", str(report), "--cycle", str(path)]
    assert main(["measure", "--example", "--strikes", "left", "0.84", "1.98", *outputs]) == 0
    rounded = [min(SHADES * round(value / SHADES), 255) for value in range(256)]
    Image.open(path).convert("RGB").point(3 * rounded).save(path, optimize=True)


if __name__ == "__main__":
    write()
