"""``torsor retime``: find the fastest timing of a joint path within limits."""

import json
from argparse import ArgumentParser, Namespace
from math import ceil
from pathlib import Path
from typing import Any

from rich.console import Console

from torsor.base.archive import load_result
from torsor.base.errors import ModelError, warn
from torsor.base.files import check_file
from torsor.base.progress import working
from torsor.base.tables import check_rate, instants
from torsor.cli.command import DONE, Command
from torsor.cli.options import SHARED, add_option
from torsor.cli.outputs import add_motion, is_table, write_motion
from torsor.cli.states import add_robot, as_robot, load_robot, number_or_list
from torsor.motion import Retimed, retime
from torsor.motion.retiming.bounds import KINDS
from torsor.robot.robot import Robot
from torsor.robot.state_tables import read_states

UNITS = {
    "velocity": "rad/s, m/s; default: the robot's limits",
    "acceleration": "rad/s^2, m/s^2; default: none",
    "jerk": "rad/s^3, m/s^3; default: none",
    "torque": "N m, N; default: the robot's limits",
    "torque_rate": "N m/s, N/s; default: none",
}

MAX_EXCESS = 0.01  # fraction of a limit that may be exceeded between knots
MIN_INTERVALS = 50  # of a grid; with fewer, the duration is wrong by several percent
FINER = "increase --knots, or omit it to refine the grid automatically"
MIN_SAMPLES = 10  # of a motion in a file


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "joint path: a table (.csv) or a trajectory (.npz, .json). A table has columns 'q NAME' and optionally "
    text += "'time'. A .json file is a ROS JointTrajectory, a retimed motion or a list of waypoints"
    parser.add_argument("path", type=Path, metavar="PATH", help=text)
    for kind in KINDS:
        flag = f"--{kind.replace('_', '-')}"
        details = f" ({UNITS[kind]}). One number, or one for each coordinate; inf means no limit"
        if flag in SHARED:
            add_option(parser, flag, details, type=float, nargs="+")
        else:
            parser.add_argument(flag, type=float, nargs="+", metavar="NUMBER", help=f"{kind} limits{details}")
    text = "reaction force (N) and moment (N m) limits of a joint. The option may be repeated; inf means no limit"
    parser.add_argument("--reaction", nargs=3, action="append", default=[], metavar=("JOINT", "N", "NM"), help=text)
    text = "point mass at the origin of a link or frame"
    parser.add_argument("--payload", nargs=2, metavar=("PLACE", "KG"), help=text)
    text = "use straight segments with corners rounded within this distance (rad, m). The default path is one spline"
    parser.add_argument("--corner-tolerance", dest="tolerance", type=float, metavar="Q", help=text)
    for name in ("start", "end"):
        text = f"speed at the {name}: norm of the joint velocities (default: 0)"
        parser.add_argument(f"--{name}-speed", dest=name, type=float, default=0.0, metavar="V", help=text)
    text = "grid intervals in each path segment (default: refined automatically)"
    parser.add_argument("--knots", type=int, metavar="N", help=text)
    add_motion(parser, "time, q, v, a, tau", "limits")


def _run(arguments: Namespace, console: Console) -> int:
    check_rate(arguments.rate, 1.0, "--rate")
    robot = as_robot(load_robot(arguments))
    if arguments.payload is not None:
        place, mass = arguments.payload
        robot = robot.with_payload(place, _number(mass, "--payload"))
    limits: dict[str, Any] = {kind: number_or_list(getattr(arguments, kind)) for kind in KINDS}
    reactions = {
        joint: {"force": _number(force, "--reaction"), "moment": _number(moment, "--reaction")}
        for joint, force, moment in arguments.reaction
    }
    if len(reactions) < len(arguments.reaction):
        raise ModelError("a joint is given twice", where="--reaction", allowed="each joint once")
    settings = {name: getattr(arguments, name) for name in ("tolerance", "start", "end", "knots")}
    path = _path(arguments.path, robot)
    with working("retiming the path"):
        motion: Retimed | tuple[Retimed, ...] = retime(robot, path, **limits, reactions=reactions, **settings)
    if isinstance(motion, tuple):
        found, fix = f"the file contains {len(motion)} paths", "write one file for each path"
        raise ModelError(found, where=arguments.path.name, allowed="one path", fix=fix)
    console.print(motion.report(), markup=False, highlight=False, soft_wrap=True)
    _warn(motion, arguments)
    write_motion(arguments, console, motion)
    return DONE


def _warn(motion: Retimed, arguments: Namespace) -> None:
    """Warn if limits are exceeded between knots, the grid is coarse, or a file has few rows."""
    if motion.excess > MAX_EXCESS:
        found, name = max((use, name) for name, use in motion.largest.items())
        text = f"between knots, the motion reaches {100 * found:.1f} % of the {name} limit"
        warn(text, where=arguments.path.name, fix=FINER)
    if arguments.knots and len(motion.times) <= MIN_INTERVALS:
        text = f"on a grid of {len(motion.times) - 1} intervals, the motion is not the fastest"
        warn(text, where=arguments.path.name, fix=FINER)
    sampled = [arguments.joint_trajectory, arguments.output if is_table(arguments.output) else None]
    if any(sampled) and arguments.rate * motion.duration < MIN_SAMPLES:
        rows = len(instants(motion.duration, arguments.rate))
        text = f"--rate {arguments.rate:g} results in only {rows} rows for {motion.duration:.4g} s"
        fix = f"--rate {ceil(10 * MIN_SAMPLES / motion.duration)} or more"
        warn(text, where=" and ".join(path.name for path in sampled if path), fix=fix)


def _path(file: Path, robot: Robot) -> Any:
    """Return the path in a file, and its times if the file contains them."""
    check_file(file, "a table of waypoints (.csv), a trajectory (.npz, .json)")
    if file.suffix.lower() == ".json":
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the file is not valid JSON: {error}", where=file.name) from None
    if file.suffix.lower() in (".yaml", ".yml"):
        raise ModelError(f"the suffix is {file.suffix!r}", where=file.name, allowed=".csv, .npz, .json")
    if file.suffix.lower() == ".npz" and isinstance(saved := load_result(file), Retimed):
        return saved
    states = read_states(file, robot)
    return (states["time"], states["q"]) if "time" in states else states["q"]


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{text!r} is not a number", value=text, where=where, allowed="a number") from None


_EXAMPLES = (
    "torsor retime ur5 waypoints.csv -o motion.csv --plot motion.png",
    "torsor retime robot.urdf path.csv --jerk 100 --joint-trajectory motion.json",
    "torsor retime ur5 waypoints.csv --payload ee_link 3 --corner-tolerance 0.05",
)
_MAIN = "--velocity --acceleration --jerk --torque --payload --corner-tolerance --output "
_MAIN += "--joint-trajectory --rate --plot --json"
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, main=_MAIN)
