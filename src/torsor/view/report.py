"""Reports: what a computation found as one HTML file that opens offline, with tables, figures and an animation."""

import base64
import io
from collections.abc import Iterable
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, RenderableType

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.files import replacing
from torsor.identification import FirstLook, Identified
from torsor.identification.logs.first_look import HEADS, identifiable, length_of, signal_rows
from torsor.motion import MotionResult
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.view.bearings import bearing_loads, bearing_table
from torsor.view.html_tables import html_table, html_text
from torsor.view.page import page
from torsor.view.scene import home, timeline
from torsor.view.tables import drive_table, joint_table, link_table, motion_table

WIDTH = 118  # characters of a table
STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.1em;margin-top:2em}pre{font-size:12px;line-height:1.25;overflow-x:auto}"
    "img{max-width:100%}footer{color:#777;margin-top:3em;font-size:85%}"
    "table{border-collapse:collapse;font-size:85%;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}"
    "th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #e4e4e4;white-space:nowrap}"
    "th{border-bottom:2px solid #bbb;font-weight:600}td:first-child,th:first-child{text-align:left;white-space:normal}"
    ".words td,.words th{text-align:left;white-space:normal}tr.marked td{background:#fff4e0}"
    ".note{color:#666;font-size:85%}h3{font-size:1em;margin:1.2em 0 .3em}"
    ".remark{border-left:4px solid #e0a030;background:#fff8ea;padding:.4em .8em;margin:.6em 0}"
    ".bar{display:inline-block;height:.6em;background:#7fa8d0;margin-right:.5em;vertical-align:baseline}"
    "details summary{cursor:pointer;margin:.6em 0}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'; frame-src 'self'"


def write_report(
    path: str | Path,
    what: Any,
    *,
    title: str = "",
    tables: Iterable[RenderableType] = (),
    figures: Iterable[Any] = (),
    q: Array | None = None,
) -> Path:
    """Write a report of a robot or a result: tables, figures, loads of the bearings, and the motion in 3D.

    ``what`` is a robot (shown with sliders; bearings carry it at rest in the posture ``q``), a trajectory, a motion, or
    an identification. ``tables`` and ``figures`` (matplotlib) come before those that every report has. Bearings are
    those of the tree; forces of the ground and of loops are taken into account where the result has them.

    Example:
        >>> import tempfile
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = write_report(folder + "/fall.html", fall).read_text()
        >>> "Bearings" in text and "<iframe" in text
        True
    """
    target = Path(path)
    name = title or _title(what)
    parts = [f"<h1>{escape(name)}</h1>"]
    parts += [_table(each) for each in (*tables, *_tables(what, q))]
    parts += [image(each) for each in (*figures, *_figures(what))]
    parts += ["<h2>In motion</h2>" if not isinstance(what, Robot | ParallelRobot) else "<h2>The robot</h2>"]
    parts += [page(what, title=name, q=q)._repr_html_()]
    return write(target, name, parts)


def write_ergonomic_report(path: str | Path, result: MotionResult, **settings: Any) -> Path:
    """Write the ergonomic report of a predicted motion of a human: one page (HTML) that opens offline.

    It has the loads of the lumbar spine beside their limits, the lifting equation, percent capable, the cumulative load
    of a shift, a figure and the motion in 3D. ``settings`` are those of ``torsor.human.ergonomics.assess``.

    Example:
        >>> write_ergonomic_report("lift.html", 3)
        Traceback (most recent call last):
        torsor.ModelError: ergonomics: result is 3; allowed: the result of a problem of torsor.human
    """
    from torsor.human.ergonomics import assess
    from torsor.human.terms.problem import who

    found = assess(result, **settings)
    name = f"{who(result.problem)}: {result.problem.name}"
    parts = [f"<h1>{escape(name)}</h1>", f"<p>{escape(result.status)}, {result.T:.3g} s</p>"]
    parts += [image(found.plot()), *(_table(each) for each in found.tables())]
    parts += ["<h2>In motion</h2>", page(result, title=name)._repr_html_()]
    return write(Path(path), name, parts)


def write_measured_report(path: str | Path, gait: Any) -> Path:
    """Write the report of a measured gait (``torsor.human.measured``): one page (HTML) that opens offline.

    It has what was measured, likely mistakes of the recording, a figure of angles, moments, powers and forces, and the
    motion in 3D.

    Example:
        >>> write_measured_report("walk.html", 3)
        Traceback (most recent call last):
        torsor.ModelError: report: gait is 3; allowed: a result of torsor.human.measured.measured_gait
    """
    from torsor.human.measured import MeasuredGait

    instance_of(gait, MeasuredGait, "report", "gait", allowed="a result of torsor.human.measured.measured_gait")
    name = f"{gait.source}: {gait.mass:.4g} kg"
    parts = [f"<h1>{escape(name)}</h1>", *(f"<p>{escape(str(each))}</p>" for each in gait.findings)]
    parts += [image(gait.plot()), *(_table(each) for each in gait.tables())]
    parts += ["<h2>In motion</h2>", page(gait.trajectory(), title=name)._repr_html_()]
    return write(Path(path), name, parts)


def write_look_report(path: str | Path, look: FirstLook) -> Path:
    """Write the report of a first look at a log: one page (HTML) that opens offline, with all signals and findings.

    Example:
        >>> import tempfile
        >>> robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
        >>> q = np.sin(2 * np.pi * t)[:, None]
        >>> look = torsor.identification.first_look(robot, (t, q, 0 * q), cutoff=20.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = write_look_report(folder + "/look.html", look).read_text()
        >>> "1 suspicious" in text and "data:image/png" in text
        True
    """
    instance_of(look, FirstLook, "report", "look", allowed="a result of torsor.identification.first_look")
    name = f"First look: {', '.join(log.source for log in look.logs)}"
    parts = [
        f"<h1>{html_text(name)}</h1>",
        f"<p>{html_text(look.robot.name)}: {length_of(look)}</p>",
        _list(look.notes),
    ]
    parts += [f"<h2>{len(look.findings)} suspicious</h2>" if look.findings else "<p>Nothing suspicious.</p>"]
    if look.findings:
        rows = [[html_text(x) for x in (each.kind, each.place, each.found, each.fix)] for each in look.findings]
        parts.append(html_table(["kind", "where", "found", "fix"], rows, words=True))
    if look.signals:
        rows = [[html_text(cell) for cell in row] for row in signal_rows(look)]
        parts += ["<h2>Signals (SI units)</h2>", html_table(HEADS, rows)]
    parts += ["<h2>What can be identified</h2>", _list(_joined(identifiable(look)))]
    return write(Path(path), name, [*parts, image(look.plot())])


def write(target: Path, name: str, parts: Iterable[str]) -> Path:
    """Write a page with a title and its parts (HTML, in which names are escaped), whole or not at all."""
    version = import_module("torsor").__version__
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    head = f'<meta charset="utf-8">{policy}<style>{STYLE}</style>'
    body = "\n".join(parts)
    text = f"<!DOCTYPE html>\n<title>{escape(name)}</title>{head}\n{body}\n<footer>Torsor {version}</footer>\n"
    with replacing(target) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return target


def _joined(lines: Iterable[str]) -> list[str]:
    """Return lines without dashes, and those that are indented, names of parameters, after the line before."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += f". {line.strip()}"
        else:
            found.append(line.removeprefix("- "))
    return found


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html_text(each)}</li>' for each in lines)}</ul>"


def _title(what: Any) -> str:
    if isinstance(what, Robot | ParallelRobot):
        return what.name
    return timeline(what).title


def _tables(what: Any, q: Array | None) -> Iterable[RenderableType]:
    if isinstance(what, Robot | ParallelRobot):
        robot = what.as_robot() if isinstance(what, ParallelRobot) else what
        yield link_table(robot)
        yield joint_table(robot)
        drives = drive_table(robot)
        if drives is not None:
            yield drives
        if robot.loops and not robot.active:
            return
        yield "Bearings at rest:"
        yield bearing_table(robot, bearing_loads(robot, _at_rest(robot, home(what, q))))
        return
    if isinstance(what, Trajectory):
        yield motion_table(what)
    if isinstance(what, MotionResult):
        yield what
    line = timeline(what)
    yield "Bearings over the motion:"
    yield bearing_table(line.robot, bearing_loads(line.robot, line.reactions))


def _at_rest(robot: Robot, q: Array) -> Array:
    """Return the joint wrenches (L, 6) of a robot that does not move, held by its drives."""
    if robot.loops:
        still = np.zeros(len(robot.active))
        return robot.closed.joint_wrenches(q, still, still)
    still = np.zeros(robot.nv)
    return robot.joint_wrenches(q, still, still)


def _figures(what: Any) -> Iterable[Any]:
    if isinstance(what, Trajectory | MotionResult | Identified):
        yield what.plot()


def _table(table: RenderableType) -> str:
    """Return a table of the terminal as HTML; every text in it is escaped by Rich."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    console.print(table)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def image(figure: Any) -> str:
    """Return a figure of matplotlib as HTML that needs no other file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    return f'<img alt="figure" src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'
