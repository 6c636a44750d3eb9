"""``torsor ik``: inverse kinematics for positions or poses of links and frames."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.base.progress import working
from torsor.base.summary import titled_table
from torsor.cli.command import Command
from torsor.cli.options import add_option
from torsor.cli.outputs import write_json
from torsor.cli.states import add_robot, as_robot, load_robot
from torsor.mechanism.mechanism import units
from torsor.robot.inverse_kinematics import analytic_inverse_kinematics, inverse_kinematics
from torsor.spatial import from_rpy, make_pose


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    details = " of a link or frame, x y z, or its pose, x y z roll pitch yaw (m, rad). The option may be repeated"
    metavar = ("PLACE", "X")
    add_option(parser, "--target", details, nargs="+", action="append", required=True, metavar=metavar)
    add_option(parser, "--q0", " (rad, m; default: automatic)", nargs="+", type=float)
    parser.add_argument("--no-limits", action="store_true", help="ignore joint limits")
    add_option(parser, "--all", " postures of a six-axis arm for one pose", action="store_true")
    add_option(parser, "--clearance", " (default: collisions are allowed)", type=float)
    text = ".srdf file with pairs of links that may touch (requires --clearance)"
    parser.add_argument("--allowed", metavar="FILE", help=text)


def _run(arguments: Namespace, console: Console) -> None:
    robot = as_robot(load_robot(arguments))
    targets = dict(_target(robot.name, *words) for words in arguments.target)
    if len(targets) < len(arguments.target):
        raise ModelError("a link or frame has two targets", where=robot.name, allowed="one --target for each")
    within, clearance = not arguments.no_limits, arguments.clearance
    if arguments.allowed is not None:
        if clearance is None:
            raise ModelError("--allowed needs --clearance", where=robot.name, fix="add --clearance M")
        robot = robot.with_allowed_collisions(arguments.allowed)
    shapes: dict[str, Any] = {}
    if arguments.all:
        (place, pose), *more = targets.items()
        if more or np.shape(pose) != (4, 4) or arguments.q0 is not None:
            allowed = "one --target with six numbers, without --q0"
            raise ModelError("--all needs the pose of one link or frame", where=robot.name, allowed=allowed)
        try:
            q, error = analytic_inverse_kinematics(robot, pose, place, limits=within), 0.0
        except ModelError as wrong:
            raise wrong.but(fix="omit --all") from None
        cause = "" if len(q) else "the pose is out of reach"
        if clearance is not None and len(q):
            number(clearance, robot.name, "--clearance", least=0.0)
            q = q[(robot.shapes.distances(q, within=clearance).distance >= clearance).all(axis=1)]
            cause = "" if len(q) else f"no posture with this pose has a clearance of {clearance:g} m"
    else:
        with working("solving inverse kinematics"):
            solution = inverse_kinematics(robot, targets, q0=arguments.q0, limits=within, clearance=clearance)
        q, error, cause = solution.q[None], float(solution.error), solution.cause()
        if solution.clearance is not None:
            shapes = {"clearance": float(solution.clearance), "blocking": solution.blocking()}
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
    document = {"robot": robot.name, "names": list(robot.position_names), "q": q.tolist(), "error": error}
    write_json(arguments, console, {**document, "solved": not cause, "cause": cause, **shapes})
    if cause:
        raise ModelError(cause, where=f"{robot.name}: closest posture" if len(q) else robot.name)


def _target(robot: str, place: str, *words: str) -> tuple[str, Any]:
    """Return the link or frame and its position (3,) or pose (4, 4)."""
    try:
        numbers = [float(text) for text in words]
    except ValueError:
        numbers = []
    if len(numbers) not in (3, 6) or not np.isfinite(numbers).all():
        option = f"--target {place} {' '.join(words)}".rstrip()
        allowed = "a link or frame and 3 or 6 finite numbers: x y z [roll pitch yaw]"
        raise ModelError(f"{option} is not a target", where=robot, allowed=allowed)
    return place, numbers if len(numbers) == 3 else make_pose(from_rpy(numbers[3:]), numbers[:3])


_EXAMPLES = (
    "torsor ik six_axis_arm --target link6 0.5 0.2 0.6",
    "torsor ik ur5 --target ee_link 0.4 0.2 0.4 0 1.5 0 --all",
    "torsor ik robot.urdf --target hand 0.4 0.2 0.4 --clearance 0.02",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
