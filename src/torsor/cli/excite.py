"""``torsor excite``: design an excitation trajectory for the parameters of a robot."""

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
from torsor.cli.options import add_option
from torsor.cli.outputs import add_motion, write_motion
from torsor.cli.states import add_robot, as_robot, load_robot, number_or_list
from torsor.identification import Excitation, Measurements, excite
from torsor.identification.excitation.design import CRITERIA
from torsor.identification.excitation.excite import check_excitable

LIMITS = {
    "lower": "(rad, m; default: the robot's limits)",
    "upper": "(rad, m; default: the robot's limits)",
    "velocity": "(rad/s, m/s; default: the robot's limits)",
    "acceleration": "(rad/s^2, m/s^2; default: none)",
    "effort": "(N m, N; default: none)",
}
_EACH = ". One number, or one for each coordinate"
MAX_PARAMETERS_SHOWN = 12  # in the table of expected standard deviations


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--period", type=float, default=10.0, metavar="S", help="period of the motion (default: 10)")
    text = "number of harmonics in the Fourier series (default: 5)"
    parser.add_argument("--harmonics", type=int, default=5, metavar="N", help=text)
    for name in ("lower", "upper"):
        text = f"{name} position limits {LIMITS[name]}{_EACH}"
        parser.add_argument(f"--{name}", type=float, nargs="+", metavar="Q", help=text)
    add_option(parser, "--velocity", f" {LIMITS['velocity']}{_EACH}", type=float, nargs="+")
    add_option(parser, "--acceleration", f" {LIMITS['acceleration']}{_EACH}", type=float, nargs="+")
    add_option(parser, "--torque", f" {LIMITS['effort']}{_EACH}", type=float, nargs="+", dest="effort")
    add_option(parser, "--clearance", type=float)
    text = "logs of earlier motions. The new motion targets parameters that are still poorly known"
    parser.add_argument("--measured", type=Path, nargs="+", default=[], metavar="FILE", help=text)
    add_option(parser, "--map", " (.toml, .json, .yaml)", type=Path)
    add_option(parser, "--cutoff", " in the logs, as for torsor identify", type=float)
    text = "optimality criterion (default: determinant with --measured, otherwise condition)"
    parser.add_argument("--criterion", choices=CRITERIA, help=text)
    text = f"standard deviation of the torques (N m, N; default: estimated from the logs, or 1){_EACH}"
    parser.add_argument("--noise", type=float, nargs="+", metavar="TAU", help=text)
    add_option(parser, "--among", " (default: all)", nargs="+", default=["*"])
    add_option(parser, "--iterations", " (default: 200)", type=int, default=200)
    text = "seed of the random initial motions (default: 0)"
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=text)
    add_motion(parser, "time, q, v, a", "limits")


def _run(arguments: Namespace, console: Console) -> int:
    for path in (arguments.output, arguments.joint_trajectory):
        if path is not None and path.suffix.lower() != ".npz":
            check_rate(arguments.rate, arguments.period, path.name)
    robot = as_robot(load_robot(arguments))
    check_excitable(robot)
    logs = [Measurements.load(log, robot, arguments.map, cutoff=arguments.cutoff) for log in arguments.measured]
    names = ("period", "harmonics", "criterion", "clearance", "among", "iterations", "seed")
    settings: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    settings |= {name: number_or_list(getattr(arguments, name)) for name in (*LIMITS, "noise")}
    motion = excite(robot, measured=logs, **settings)
    console.print(motion.report(), markup=False, highlight=False, soft_wrap=True)
    if "expected" in motion.settings:
        console.print(_expected(motion))
    write_motion(arguments, console, motion)
    return DONE if motion.status == "done" else STOPPED


def _expected(motion: Excitation) -> Table:
    """Return the table of the parameters whose standard deviation decreases most."""
    expected = motion.settings["expected"]
    rows = zip(expected["parameters"], expected["before"], expected["after"], strict=True)
    gains = sorted(rows, key=lambda row: float("inf") if row[1] is None else row[1] / row[2], reverse=True)
    heads = ("parameter (SI units)", "measured so far", "with the new motion")
    table = titled_table("Expected standard deviations, largest reductions first", *heads, overflow="fold")
    for name, before, after in gains[:MAX_PARAMETERS_SHOWN]:
        texts = ("not determined" if deviation is None else f"{deviation:.2g}" for deviation in (before, after))
        table.add_row(escape(name), *texts)
    return table


_EXAMPLES = (
    "torsor excite robot.urdf -o motion.csv --plot motion.png",
    "torsor excite robot.urdf --measured log.csv --joint-trajectory motion.yaml",
    "torsor excite robot.urdf --clearance 0.05 --acceleration 5 --rate 500 -o motion.csv",
)
_MAIN = "--period --velocity --acceleration --torque --clearance --measured --map --output "
_MAIN += "--joint-trajectory --rate --plot --json"
COMMAND = Command(_add_arguments, _run, statuses=EXCITED, examples=_EXAMPLES, main=_MAIN)
