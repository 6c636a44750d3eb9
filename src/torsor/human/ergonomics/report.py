"""The ergonomic report of a predicted motion: one HTML file that opens offline."""

from html import escape
from pathlib import Path
from typing import Any

from torsor.base.html_report import image, in_motion, terminal_table, write_html
from torsor.human.ergonomics.assessment import assess
from torsor.human.terms.problem import who
from torsor.motion import MotionResult


def write_ergonomic_report(path: str | Path, result: MotionResult, **settings: Any) -> Path:
    """Write the ergonomic report of a predicted motion of a human: one page (HTML) that opens offline.

    It has the loads of the lumbar spine beside their limits, the lifting equation, percent capable, the cumulative load
    of a shift, a figure and the motion in 3D. ``settings`` are those of ``torsor.human.ergonomics.assess``.

    Example:
        >>> write_ergonomic_report("lift.html", 3)
        Traceback (most recent call last):
        torsor.ModelError: ergonomics: result is 3; allowed: the result of a problem of torsor.human
    """
    found = assess(result, **settings)
    name = f"{who(result.problem)}: {result.problem.name}"
    parts = [f"<h1>{escape(name)}</h1>", f"<p>{escape(result.status)}, {result.T:.3g} s</p>"]
    parts += [image(found.plot()), *(terminal_table(each) for each in found.tables())]
    return write_html(Path(path), name, [*parts, *in_motion(result, name)])
