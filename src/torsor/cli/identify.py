"""``torsor identify``: the parameters of a robot from recorded motions and their forces."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from torsor.cli.command import Command
from torsor.cli.outputs import (
    add_json,
    add_report,
    check_output,
    check_plot,
    check_report,
    print_paths,
    write_json,
)
from torsor.cli.robots import add_robot, as_robot, given_robot
from torsor.cli.states import states_of
from torsor.errors import ModelError, describe
from torsor.identification import Measurements
from torsor.identification.identify import identify
from torsor.robot.robot import Robot


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    columns = (
        "columns 'time', 'q NAME' and 'tau NAME' of all coordinates, perhaps also 'v NAME' and 'a NAME', in SI units"
    )
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=f"recorded motions (.csv): {columns}")
    cutoff = "Hz, of the filter that differentiates positions where velocities or accelerations are missing"
    parser.add_argument("--cutoff", type=float, help=cutoff)
    parser.add_argument("--physical", action="store_true", help="only masses and inertias that bodies can have")
    among = "patterns of the unknown parameters (default: all), such as 'link3.*'"
    parser.add_argument("--among", nargs="+", default=["*"], metavar="PATTERN", help=among)
    text = "a motion that is not used to identify: its forces are predicted"
    parser.add_argument("--validate", type=Path, metavar="LOG", help=text)
    text = "write the robot with the identified parameters: .urdf, .xml, .toml; needs --physical"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=text)
    text = "write a plot of measured and predicted forces to this file; of --validate, if it is given"
    parser.add_argument("--plot", type=Path, metavar="FILE", help=text)
    add_report(parser)
    add_json(parser)


def _run(arguments: Namespace, console: Console) -> None:
    check_output(arguments.output, [".urdf", ".xml", ".mjcf", ".toml"])
    check_plot(arguments.plot)
    check_report(arguments.report)
    robot = as_robot(given_robot(arguments))
    if arguments.output is not None and not arguments.physical:
        found = "base parameters alone make no robot to write"
        raise ModelError(describe(found, where=str(arguments.output), fix="add --physical"))
    parts = [_measured(path, robot, arguments.cutoff) for path in arguments.logs]
    data = Measurements(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("q", "v", "a", "tau")))
    unseen = None if arguments.validate is None else _measured(arguments.validate, robot, arguments.cutoff)
    result = identify(robot, data, physical=arguments.physical, among=arguments.among)
    console.print(result.report(), markup=False, highlight=False, soft_wrap=True)
    validated = None if unseen is None else result.validate(unseen)
    if validated is not None:
        console.print(f"\n{arguments.validate.name}, which was not used:", markup=False, highlight=False)
        for name, percent in zip(robot.coordinate_names, validated.relative_residuals, strict=True):
            console.print(f"  {name}: residual {percent:.3g} % of the force", markup=False, highlight=False)
    if arguments.output is not None:
        result.robot.save(arguments.output)
    if arguments.plot is not None:
        (result if validated is None else validated).plot(arguments.plot)
    if arguments.json is not None:
        shown = result.to_dict()
        if validated is not None:
            shown["validation"] = {"log": arguments.validate.name, "residuals": validated.to_dict()["residuals"]}
        write_json(arguments, console, shown)
    if arguments.report is not None:
        from torsor.view.report import write_report

        write_report(arguments.report, result if validated is None else validated, tables=[Text(result.report())])
    print_paths(console, arguments.output, arguments.plot, arguments.report)


def _measured(path: Path, robot: Robot, cutoff: float | None) -> Measurements:
    table = states_of(path, robot)
    if "tau" not in table:
        raise ModelError(describe("no columns of forces", where=path.name, fix="add columns 'tau NAME'"))
    if "v" in table and "a" in table:
        return Measurements(table["q"], table["v"], table["a"], table["tau"], times=table.get("time"))
    if cutoff is None or "time" not in table:
        missing = "velocities or accelerations are missing"
        fix = "add a column 'time', and give --cutoff HZ: they are then computed from the positions"
        raise ModelError(describe(missing, where=path.name, fix=fix))
    return Measurements.from_positions(table["time"], table["q"], table["tau"], cutoff)


_SUMMARY = "identify masses, inertias and friction of a robot from recorded motions and forces"
_EXAMPLES = (
    "torsor identify robot.urdf log.csv --physical -o real.urdf",
    "torsor identify robot.urdf run1.csv run2.csv --cutoff 20 --validate run3.csv --plot forces.png",
)
IDENTIFY = Command("identify", _SUMMARY, _add_arguments, _run, examples=_EXAMPLES)
