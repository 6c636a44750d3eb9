"""Reports on robots and results: one offline HTML file with tables, figures and an animation."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType

from torsor.base.arrays import Array
from torsor.base.html_report import image, terminal_table, write_html
from torsor.base.result import Result
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.view.bearings import bearing_loads, bearing_table
from torsor.view.pages import page
from torsor.view.scene import home, timeline
from torsor.view.tables import drive_table, joint_table, link_table, motion_table


def write_report(
    path: str | Path,
    what: Any,
    *,
    title: str = "",
    tables: Iterable[RenderableType] = (),
    figures: Iterable[Any] = (),
    q: Array | None = None,
) -> Path:
    """Write a report on a robot or a result as one HTML file, and return its path.

    It contains tables, figures, bearing loads and the motion in 3D, and requires matplotlib (``torsor[plot]``).
    ``what`` is a robot, a trajectory, a motion or an identification. A robot has sliders, and its bearing loads are
    those at rest in the posture ``q``. ``tables`` and ``figures`` (matplotlib) precede those that every report
    contains. Bearing loads are those of the tree joints, and include ground and loop forces if the result has them.

    Example:
        >>> import tempfile
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = write_report(folder + "/fall.html", fall).read_text()
        >>> "Bearings" in text and "<iframe" in text
        True
    """
    name = title or (what.name if isinstance(what, Robot | ParallelRobot) else timeline(what).title)
    parts = [f"<h1>{escape(name)}</h1>"]
    parts += [terminal_table(each) for each in (*tables, *_tables(what, q))]
    drawn = (what.plot(),) if isinstance(what, Result) else ()
    parts += [image(each) for each in (*figures, *drawn)]
    heading = "The robot" if isinstance(what, Robot | ParallelRobot) else "In motion"
    return write_html(Path(path), name, [*parts, f"<h2>{heading}</h2>", page(what, title=name, q=q)._repr_html_()])


def _tables(what: Any, q: Array | None) -> Iterable[RenderableType]:
    if isinstance(what, Robot | ParallelRobot):
        robot = what.as_robot() if isinstance(what, ParallelRobot) else what
        yield link_table(robot)
        yield joint_table(robot)
        if (drives := drive_table(robot)) is not None:
            yield drives
        if robot.loops and not robot.active:
            return
        yield "Bearings at rest:"
        still = np.zeros(len(robot.active) if robot.loops else robot.nv)  # held by its drives
        held = (robot.closed if robot.loops else robot).joint_wrenches(home(what, q), still, still)
        yield bearing_table(robot, bearing_loads(robot, held))
        return
    if isinstance(what, Trajectory):
        yield motion_table(what)
    elif hasattr(what, "__rich__"):
        yield what
    line = timeline(what)
    yield "Bearings over the motion:"
    yield bearing_table(line.robot, bearing_loads(line.robot, line.reactions))
