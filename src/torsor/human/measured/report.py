"""The report of a measured gait: one HTML file that opens offline."""

from html import escape
from pathlib import Path
from typing import Any

from torsor.base.checks import instance_of
from torsor.base.html_report import image, in_motion, terminal_table, write_html
from torsor.human.measured.gait import MeasuredGait


def write_measured_report(path: str | Path, gait: Any) -> Path:
    """Write the report of a measured gait (``torsor.human.measured``): one page (HTML) that opens offline.

    It has what was measured, likely mistakes of the recording, a figure of angles, moments, powers and forces, and the
    motion in 3D.
    """
    instance_of(gait, MeasuredGait, "report", "gait", allowed="a result of torsor.human.measured.measured_gait")
    name = f"{gait.source}: {gait.mass:.4g} kg"
    parts = [f"<h1>{escape(name)}</h1>", *(f"<p>{escape(str(each))}</p>" for each in gait.findings)]
    parts += [image(gait.plot()), *(terminal_table(each) for each in gait.tables())]
    return write_html(Path(path), name, [*parts, *in_motion(gait.trajectory(), name)])
