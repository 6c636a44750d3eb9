"""``torsor demo``: tables and a plot of an industrial arm during a motion."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor import library, view
from torsor.base.progress import working
from torsor.cli.command import Command
from torsor.cli.options import OutputFile, add_option
from torsor.cli.outputs import write_json
from torsor.mechanism.mechanism import state_units


def _add_arguments(parser: ArgumentParser) -> None:
    details = ": a figure (default: demo.png)"
    add_option(parser, "--output", details, action=OutputFile, kind="figure", default=Path("demo.png"))


def _run(arguments: Namespace, console: Console) -> None:
    robot = library.ur5()
    start, end, duration = np.array([-0.6, -1.1, 1.4, -0.8, -1.5, 0]), np.array([1.0, -1.9, 0.9, -0.4, -1.2, 1]), 1.5
    s = np.linspace(0, 1, 151)[:, None]
    # A quintic: velocity and acceleration are zero at both ends.
    q = start + (end - start) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = (end - start) * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    a = (end - start) * (60 * s - 180 * s**2 + 120 * s**3) / duration**2
    console.print("A UR5 arm 0.5 s after the start of a 1.5 s motion\n")
    console.print(view.link_table(robot))
    console.print(view.joint_table(robot))
    console.print(view.state_table(robot, q[50], v[50], a[50]))
    console.print(view.count_table(robot))
    with working(f"drawing {arguments.output.name}"):
        view.plot_motion(robot, s[:, 0] * duration, q, v, a, arguments.output)
    console.print(f"\nThe plot of the whole motion is in [bold]{escape(str(arguments.output))}[/bold].")
    if arguments.json is not None:
        counts = {name: robot.operation_count(name)._asdict() for name in view.counted(robot)}
        states = {"q": q, "v": v, "a": a, "tau": robot.inverse_dynamics(q, v, a)}
        about = {"robot": robot.name, "units": {"times": "s", **state_units(robot)}, "operations": counts}
        write_json(arguments, console, about | {"times": s[:, 0] * duration, **states, "plot": arguments.output})


COMMAND = Command(_add_arguments, _run, examples=("torsor demo -o demo.png",))
