"""``torsor info``: the links, joints, drives, loops and frames of a robot."""

from argparse import Namespace

from rich.console import Console
from rich.markup import escape

from torsor import view
from torsor.cli.command import Command
from torsor.cli.robots import add_robot, as_robot, given_robot
from torsor.mechanism import Loop
from torsor.parallel import ParallelRobot


def _run(arguments: Namespace, console: Console) -> None:
    given = given_robot(arguments)
    robot = as_robot(given)
    size = f"{len(robot.links)} moving links, nq = {robot.nq}, nv = {robot.nv}"
    console.print(f"[bold]{escape(robot.name)}[/bold]: {size}")
    console.print(view.link_table(robot))
    console.print(view.joint_table(robot))
    drives = view.drive_table(robot)
    if drives is not None:
        console.print(drives)
    if robot.loops:
        kinds = (f"{loop.name} ({loop.kind if isinstance(loop, Loop) else 'coupling'})" for loop in robot.loops)
        console.print("Loops: " + ", ".join(kinds), highlight=False, markup=False)
        found = robot.mobility()
        equations = f"redundant equations: {found.redundant} of {found.equations}"
        console.print(f"Freedoms: {found.dof}; {equations}", highlight=False)
        console.print("Active: " + (", ".join(robot.active) or "none"), highlight=False, markup=False)
    if isinstance(given, ParallelRobot):
        legs = (f"{leg.name} ({', '.join(leg.driven) or 'no drive'})" for leg in given.legs)
        console.print(f"Platform: {given.dof} freedoms; legs and their drives: {', '.join(legs)}", highlight=False)
    if robot.frames:
        console.print("Frames: " + ", ".join(frame.name for frame in robot.frames), highlight=False, markup=False)


INFO = Command("info", "show the links, joints and frames of a robot", add_robot, _run)
