"""``torsor ik``: a posture that brings links and frames to given places."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.base.summary import titled_table
from torsor.cli.command import Command
from torsor.cli.outputs import write_json
from torsor.cli.states import add_robot, as_robot, given_robot
from torsor.mechanism.mechanism import units
from torsor.robot.inverse_kinematics import analytic_inverse_kinematics, inverse_kinematics
from torsor.spatial import from_rpy, make_pose


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "where a link or frame shall be: x y z (m) and, for its orientation, roll pitch yaw (rad); may be repeated"
    parser.add_argument("--target", nargs="+", action="append", required=True, metavar=("PLACE", "NUMBER"), help=text)
    parser.add_argument("--q0", nargs="+", type=float, metavar="Q", help="posture that the search starts from")
    parser.add_argument("--no-limits", action="store_true", help="joints may go beyond their limits")
    parser.add_argument("--all", action="store_true", help="all postures of a six-axis arm, for one pose")
    text = "collision shapes stay this far apart; which of them: docs/compute/shapes.md"
    parser.add_argument("--clearance", type=float, metavar="M", help=text)
    parser.add_argument("--allowed", metavar="FILE", help="an .srdf file with the pairs of links that may touch")


def _run(arguments: Namespace, console: Console) -> None:
    robot = as_robot(given_robot(arguments))
    targets = dict(_target(robot.name, *given) for given in arguments.target)
    if len(targets) < len(arguments.target):
        raise ModelError("a place has two targets", where=robot.name, allowed="one --target for each place")
    within, clearance = not arguments.no_limits, arguments.clearance
    if arguments.allowed is not None:
        if clearance is None:
            raise ModelError("--allowed without --clearance", where=robot.name, fix="give --clearance M")
        robot = robot.with_allowed_collisions(arguments.allowed)
    shapes: dict[str, Any] = {}
    if arguments.all:
        (place, pose), *more = targets.items()
        if more or np.shape(pose) != (4, 4) or arguments.q0 is not None:
            raise ModelError("--all", where=robot.name, allowed="one --target with position and angles, without --q0")
        try:
            q, error = analytic_inverse_kinematics(robot, pose, place, limits=within), 0.0
        except ModelError as wrong:
            raise wrong.but(fix="leave --all out") from None
        cause = "" if len(q) else "no posture has this pose"
        if clearance is not None and len(q):
            number(clearance, robot.name, "--clearance", least=0.0)
            q = q[(robot.shapes.distances(q, within=clearance).distance >= clearance).all(axis=1)]
            cause = "" if len(q) else f"no posture with this pose has a clearance of {clearance:g} m"
    else:
        found = inverse_kinematics(robot, targets, q0=arguments.q0, limits=within, clearance=clearance)
        q, error, cause = found.q[None], float(found.error), found.cause()
        if found.clearance is not None:
            shapes = {"clearance": float(found.clearance), "blocking": found.blocking()}
    names = [escape(f"{name} ({unit})") for name, unit in zip(robot.position_names, units(robot)[0], strict=True)]
    shown = [[f"{value + 0.0:.{4 if arguments.all else 6}f}" for value in row.round(9)] for row in q]
    if arguments.all:  # a row for each posture
        table = titled_table("Postures", *names, overflow="fold")
        table.columns[0].justify = "right"
        for row in shown:
            table.add_row(*row)
    else:  # a row for each position
        table = titled_table("Posture", "position", "value")
        for name, value in zip(names, shown[0], strict=True):
            table.add_row(name, value)
    if len(q):
        console.print(table)
    solved = not cause
    document = {"robot": robot.name, "names": list(robot.position_names), "q": q.tolist(), "error": error}
    write_json(arguments, console, {**document, "solved": solved, "cause": cause, **shapes})
    if not solved:
        raise ModelError(cause, where=f"{robot.name}: nearest posture" if len(q) else robot.name)


def _target(robot: str, place: str, *given: str) -> tuple[str, Any]:
    """Return the place and its position (3,) or pose (4, 4)."""
    try:
        numbers = [float(each) for each in given]
    except ValueError:
        numbers = []
    if len(numbers) not in (3, 6) or not np.isfinite(numbers).all():
        found = f"--target {place} {' '.join(given)}".rstrip()
        raise ModelError(found, where=robot, allowed="a place and 3 or 6 finite numbers: x y z [roll pitch yaw]")
    return place, numbers if len(numbers) == 3 else make_pose(from_rpy(numbers[3:]), numbers[:3])


_EXAMPLES = (
    "torsor ik six_axis_arm --target link6 0.5 0.2 0.6",
    "torsor ik ur5 --target ee_link 0.4 0.2 0.4 0 1.5 0 --all",
    "torsor ik panda.urdf --target panda_hand 0.4 0.2 0.4 --clearance 0.02 --allowed panda.srdf",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
