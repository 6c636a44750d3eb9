"""``torsor retime``: the fastest timing of a path of the joints within bounds."""

import json
from argparse import ArgumentParser, Namespace
from math import ceil
from pathlib import Path
from typing import Any

from rich.console import Console

from torsor.base.archive import load_result
from torsor.base.errors import ModelError, warn
from torsor.base.files import check_file
from torsor.base.tables import check_rate, instants
from torsor.cli.command import DONE, Command
from torsor.cli.outputs import add_motion, check_motion, is_table, write_motion
from torsor.cli.states import add_robot, as_robot, given_robot, number_or_list, states_of
from torsor.motion import Retimed, retime
from torsor.motion.retiming.bounds import KINDS
from torsor.robot.robot import Robot

UNITS = {
    "velocity": "rad/s, m/s; default: of the robot",
    "acceleration": "rad/s^2, m/s^2; default: none",
    "jerk": "rad/s^3, m/s^3; default: none",
    "torque": "N m, N; default: of the robot",
    "torque_rate": "N m/s, N/s; default: none",
}

MUCH = 0.01  # of a bound: exceeded by more between knots, a motion is of little use
COARSE = 50  # intervals of a grid: with fewer, the time of a motion is wrong by percents
FINER = "more --knots, or none: the grid is then refined"
FEWEST = 10  # steps of a motion in a file


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "a table of waypoints with columns 'q NAME' and perhaps 'time' (.csv), a trajectory or a retimed motion "
    text += "(.npz, .json), or a JointTrajectory of ROS (.json)"
    parser.add_argument("path", type=Path, metavar="PATH", help=text)
    for kind in KINDS:
        text = f"({UNITS[kind]}): one number, or one for each coordinate; inf for none"
        text = f"greatest {kind.replace('_', ' ')} {text}"
        parser.add_argument(f"--{kind.replace('_', '-')}", type=float, nargs="+", metavar="NUMBER", help=text)
    text = "greatest force (N) and moment (N m) that a joint transmits, inf for none; may be given several times"
    parser.add_argument("--reaction", nargs=3, action="append", default=[], metavar=("JOINT", "N", "NM"), help=text)
    text = "a load (kg) at a link or frame"
    parser.add_argument("--payload", nargs=2, metavar=("PLACE", "KG"), help=text)
    text = "go straight between waypoints, with corners blended at this distance (rad, m; default: a spline "
    text += "through all)"
    parser.add_argument("--tolerance", type=float, metavar="NUMBER", help=text)
    for name in ("start", "end"):
        text = f"speed at the {name}, the norm of the joint velocities (default: 0)"
        parser.add_argument(f"--{name}", type=float, default=0.0, metavar="NUMBER", help=text)
    text = "intervals of the grid in each piece of the path (default: refined where it is needed)"
    parser.add_argument("--knots", type=int, metavar="N", help=text)
    add_motion(parser, "time, q, v, a, tau", "bounds")


def _run(arguments: Namespace, console: Console) -> int:
    check_motion(arguments, arguments.robot, arguments.path)
    check_rate(arguments.rate, 1.0, "--rate")
    robot = as_robot(given_robot(arguments))
    if arguments.payload is not None:
        place, mass = arguments.payload
        robot = robot.with_payload(place, _number(mass, "--payload"))
    given: dict[str, Any] = {kind: number_or_list(getattr(arguments, kind)) for kind in KINDS}
    reactions = {
        joint: {"force": _number(force, "--reaction"), "moment": _number(moment, "--reaction")}
        for joint, force, moment in arguments.reaction
    }
    if len(reactions) < len(arguments.reaction):
        raise ModelError("a joint twice", where="--reaction", allowed="each joint once")
    own = {name: getattr(arguments, name) for name in ("tolerance", "start", "end", "knots")}
    path = _path(arguments.path, robot)
    motion: Retimed | tuple[Retimed, ...] = retime(robot, path, **given, reactions=reactions, **own)
    if isinstance(motion, tuple):
        found, fix = f"{len(motion)} paths", "one file for each of them, or motion.retime in Python"
        raise ModelError(found, where=arguments.path.name, allowed="one path", fix=fix)
    console.print(motion.report(), markup=False, highlight=False, soft_wrap=True)
    _warn(motion, arguments)
    write_motion(arguments, console, motion)
    return DONE


def _warn(motion: Retimed, arguments: Namespace) -> None:
    """Warn of bounds that are far exceeded between knots, and of files with hardly a row."""
    if motion.excess > MUCH:
        found, name = max((use, name) for name, use in motion.largest.items())
        text = f"between knots, {100 * found:.1f} % of the bound of {name} are used"
        warn(text, where=arguments.path.name, fix=FINER)
    if arguments.knots and len(motion.times) <= COARSE:
        text = f"on a grid of {len(motion.times) - 1} intervals, the motion is slower than it could be"
        warn(text, where=arguments.path.name, fix=FINER)
    sampled = [arguments.points, arguments.output if is_table(arguments.output) else None]
    if any(sampled) and arguments.rate * motion.duration < FEWEST:
        rows = len(instants(motion.duration, arguments.rate))
        text = f"--rate {arguments.rate:g} gives {rows} rows for {motion.duration:.4g} s, which lose the motion"
        fix = f"--rate {ceil(10 * FEWEST / motion.duration)} or more"
        warn(text, where=" and ".join(each.name for each in sampled if each), fix=fix)


def _path(file: Path, robot: Robot) -> Any:
    """Return the path in a file, with its times where it has some."""
    check_file(file, "a table of waypoints (.csv), a trajectory (.npz, .json)")
    if file.suffix.lower() == ".json":
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"no JSON: {error}", where=file.name) from None
    if file.suffix.lower() in (".yaml", ".yml"):
        raise ModelError(f"suffix {file.suffix}", where=file.name, allowed=".csv, .npz, .json")
    if file.suffix.lower() == ".npz" and isinstance(saved := load_result(file), Retimed):
        return saved
    found = states_of(file, robot)
    return (found["time"], found["q"]) if "time" in found else found["q"]


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{text!r}", value=text, where=where, allowed="a number") from None


_EXAMPLES = (
    "torsor retime ur5 waypoints.csv -o motion.csv --plot motion.png",
    "torsor retime robot.urdf waypoints.csv --acceleration 10 --jerk 100 --tolerance 0.05 --points motion.json",
    "torsor retime ur5 waypoints.csv --payload ee_link 3 --torque-rate 1000 --reaction elbow_joint 300 200",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
