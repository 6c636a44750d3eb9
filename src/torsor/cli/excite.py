"""``torsor excite``: a motion within limits that shows the parameters of a robot, or what logs leave uncertain."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.startup import STOPPED
from torsor.base.summary import titled_table
from torsor.base.tables import check_rate
from torsor.cli.command import DONE, EXCITED, Command
from torsor.cli.outputs import add_motion, check_motion, write_motion
from torsor.cli.states import add_robot, as_robot, given_robot, number_or_list
from torsor.identification import Excitation, Measurements, excite
from torsor.identification.excitation.design import CRITERIA
from torsor.identification.excitation.excite import check_excitable

LIMITS = {
    "lower": "lowest positions (rad, m)",
    "upper": "highest positions (rad, m)",
    "velocity": "greatest speeds (rad/s, m/s)",
    "acceleration": "greatest accelerations (rad/s^2, m/s^2)",
    "effort": "greatest forces (N m, N), with the parameters of ROBOT",
}
SHOWN = 12  # parameters in the table of expected deviations


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--period", type=float, default=10.0, metavar="S", help="duration of the motion (default: 10)")
    parser.add_argument("--harmonics", type=int, default=5, metavar="N", help="of the Fourier series (default: 5)")
    for name, what in LIMITS.items():
        text = f"{what}: one number, or one for each coordinate"
        text += " (default: of the robot)" if name in ("lower", "upper", "velocity") else " (default: none)"
        parser.add_argument(f"--{name}", type=float, nargs="+", metavar="NUMBER", help=text)
    text = "m: collision shapes stay at least that far apart"
    parser.add_argument("--clearance", type=float, metavar="M", help=text)
    text = "logs of earlier motions, as of torsor identify: the new motion aims at what they leave uncertain"
    parser.add_argument("--measured", type=Path, nargs="+", default=[], metavar="LOG", help=text)
    text = "what the columns of the logs are, as of torsor identify (.toml, .json, .yaml)"
    parser.add_argument("--map", type=Path, metavar="FILE", help=text)
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="of the logs, as of torsor identify")
    text = "default: determinant with --measured, else condition"
    parser.add_argument("--criterion", choices=CRITERIA, help=text)
    text = "noise of the forces (N m, N): one number, or one for each coordinate (default: of the logs, or 1)"
    parser.add_argument("--noise", type=float, nargs="+", metavar="NUMBER", help=text)
    among = "patterns of the unknown parameters (default: all), such as 'link3.*'"
    parser.add_argument("--among", nargs="+", default=["*"], metavar="PATTERN", help=among)
    parser.add_argument("--iterations", type=int, default=200, help="steps of the search at most (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the random motions at the start (default: 0)")
    add_motion(parser, "time, q, v, a", "limits")


def _run(arguments: Namespace, console: Console) -> int:
    check_motion(arguments, arguments.robot, arguments.map, *arguments.measured)
    for each in (arguments.output, arguments.points):
        if each is not None and each.suffix.lower() != ".npz":
            check_rate(arguments.rate, arguments.period, each.name)
    robot = as_robot(given_robot(arguments))
    check_excitable(robot)
    logs = [Measurements.load(each, robot, arguments.map, cutoff=arguments.cutoff) for each in arguments.measured]
    given: dict[str, Any] = {name: number_or_list(getattr(arguments, name)) for name in (*LIMITS, "noise")}
    motion = excite(
        robot,
        arguments.period,
        arguments.harmonics,
        **given,
        criterion=arguments.criterion,
        clearance=arguments.clearance,
        measured=logs,
        among=arguments.among,
        iterations=arguments.iterations,
        seed=arguments.seed,
    )
    console.print(motion.report(), markup=False, highlight=False, soft_wrap=True)
    if "expected" in motion.settings:
        console.print(_expected(motion))
    write_motion(arguments, console, motion)
    return DONE if motion.status == "done" else STOPPED


def _expected(motion: Excitation) -> Table:
    """Return the table of the parameters whose deviation falls most."""
    found = motion.settings["expected"]
    rows = zip(found["parameters"], found["before"], found["after"], strict=True)
    gains = sorted(rows, key=lambda row: float("inf") if row[1] is None else row[1] / row[2], reverse=True)
    heads = ("parameter (SI units)", "measured so far", "with the new motion")
    table = titled_table("Expected deviations: parameters that gain most", *heads, overflow="fold")
    for name, before, after in gains[:SHOWN]:
        known = "not determined" if before is None else f"{before:.2g}"
        table.add_row(escape(name), known, "not determined" if after is None else f"{after:.2g}")
    return table


_EXAMPLES = (
    "torsor excite robot.urdf -o motion.csv --plot motion.png",
    "torsor excite robot.urdf --measured log.csv --map map.toml --period 20 --points motion.yaml",
    "torsor excite robot.urdf --clearance 0.05 --acceleration 5 --rate 500 -o motion.csv",
)
COMMAND = Command(_add_arguments, _run, statuses=EXCITED, examples=_EXAMPLES)
