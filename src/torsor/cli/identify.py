"""``torsor identify``: the parameters of a robot from recorded motions and their forces."""

import warnings
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from torsor.base.errors import warn
from torsor.cli.command import CHECKED, DONE, NONE, Command
from torsor.cli.outputs import add_report, check_apart, check_output, check_plot, check_report, write_files, write_json
from torsor.cli.states import add_robot, as_robot, given_robot
from torsor.formats.dispatch import WRITTEN
from torsor.identification import LogMap, Measurements, first_look, write_identification_report
from torsor.identification.closed_robot import MeasuredRobot, measured_robot
from torsor.identification.drives import OFFERED
from torsor.identification.estimation import INFLUENCES
from torsor.identification.identify import SIMULATION, identify
from torsor.identification.logs.first_look import write_look_report


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    columns = "columns 'time', 'q NAME' and 'tau NAME' of all coordinates (of closed loops and parallel robots: of the "
    columns += "drives), perhaps also 'v NAME' and 'a NAME', units in [] (SI by default); other columns need --map"
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=f"recorded motions (.csv): {columns}")
    text = "what the columns of the logs are: names, units, gears, delays (.toml, .json, .yaml)"
    parser.add_argument("--map", type=Path, metavar="FILE", help=text)
    text = "a first look only: what is suspicious in the logs, and what can be identified from them"
    parser.add_argument("--check", action="store_true", help=text)
    cutoff = "Hz, of the filter that differentiates positions where velocities or accelerations are missing (default: "
    cutoff += "from their spectra, and by the model)"
    parser.add_argument("--cutoff", type=float, help=cutoff)
    text = "only masses and inertias that bodies can have; -o, --total-mass imply it"
    parser.add_argument("--physical", action="store_true", help=text)
    among = "patterns of the unknown parameters (default: all), such as 'link3.*'"
    parser.add_argument("--among", nargs="+", default=["*"], metavar="PATTERN", help=among)
    text = f"friction models beyond Coulomb and viscous: {', '.join(OFFERED)}; or auto: chosen for each joint by BIC"
    parser.add_argument("--friction", nargs="+", default=[], metavar="LAW", help=text)
    text = "leave out inertia and friction of motors that turn with several joints (drives.coupling of the map)"
    parser.add_argument("--uncoupled", action="store_true", help=text)
    text = "Hz: forces and regressor pass the same low-pass filter"
    parser.add_argument("--bandwidth", type=float, metavar="HZ", help=text)
    text = "estimate without the bias by noise of the encoders: instruments are the motion of the simulated estimate"
    parser.add_argument("--instruments", choices=(SIMULATION,), help=text)
    parser.add_argument("--robust", choices=tuple(INFLUENCES), help="bound the influence of outliers")
    parser.add_argument("--total-mass", type=float, metavar="KG", help="known mass of all moving links")
    text = "the last fraction of the samples is not used: its forces are predicted"
    parser.add_argument("--held-out", type=float, default=0.0, metavar="FRACTION", help=text)
    text = "a motion that is not used to identify: its forces are predicted"
    parser.add_argument("--validate", type=Path, metavar="LOG", help=text)
    text = "write the robot with the identified parameters: .urdf, .sdf, .xml, .toml, .usda; physically consistent"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=text)
    text = "write a plot of measured and predicted forces to this file, of --validate if it is given; with --check, of "
    text += "the signals"
    parser.add_argument("--plot", type=Path, metavar="FILE", help=text)
    text = "write a report to this .html file: predictions, intervals, what could not be identified and why; with "
    text += "--check, the signals; it opens offline"
    add_report(parser, text)


def _run(arguments: Namespace, console: Console) -> int | None:
    check_output(arguments.output, WRITTEN)
    check_plot(arguments.plot)
    check_report(arguments.report)
    outputs = (arguments.output, arguments.plot, arguments.report, arguments.json)
    check_apart(outputs, [arguments.robot, arguments.map, arguments.validate, *arguments.logs])
    given = given_robot(arguments)
    if arguments.output is not None:  # refused before anything is identified, if its format cannot express the robot
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come when the file is written
            as_robot(given).save(Path(folder, arguments.output.name))
    robot = measured_robot(given)
    if arguments.check:
        return _check(robot, arguments, console)
    load = partial(Measurements.load, robot=robot, columns=arguments.map, cutoff=arguments.cutoff)
    data, unseen = load(arguments.logs), None if arguments.validate is None else load(arguments.validate)
    couplings = {}
    if arguments.map is not None and not arguments.uncoupled:
        couplings = LogMap.of(arguments.map).couplings(robot)
    result = identify(
        robot,
        data,
        physical=arguments.physical or arguments.output is not None or arguments.total_mass is not None,
        among=arguments.among,
        friction="auto" if arguments.friction == ["auto"] else arguments.friction,
        couplings=couplings,
        bandwidth=arguments.bandwidth,
        robust=arguments.robust,
        instruments=arguments.instruments,
        mass=arguments.total_mass,
        held_out=arguments.held_out,
    )
    notes = list(data.notes)
    for motor, (*first, last) in couplings.items():
        text = "its inertia and friction are identified too (--uncoupled leaves them out)"
        notes.append(f"{motor} turns with {', '.join(first)} and {last}: {text}")
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(result.report(), markup=False, highlight=False, soft_wrap=True)
    validated = None if unseen is None else result.validate(unseen)
    if validated is not None:
        console.print(f"\n{arguments.validate.name}, which was not used:", markup=False, highlight=False)
        for name, percent in zip(robot.coordinate_names, validated.relative_residuals, strict=True):
            console.print(f"  {name}: residual {percent:.3g} % of the force", markup=False, highlight=False)
    if arguments.json is not None:
        shown = result.to_dict()
        if validated is not None:
            shown["validation"] = {"log": arguments.validate.name, "residuals": validated.to_dict()["residuals"]}
        write_json(arguments, console, shown)
    write_files(
        console,
        (arguments.output, lambda path: as_robot(result.robot).save(path)),
        (arguments.plot, (result if validated is None else validated).plot),
        (arguments.report, lambda path: write_identification_report(path, result, validated)),
    )
    if arguments.output is not None and result.drives is not None:
        fix = "keep them too: --json FILE, or in Python found.save(FILE.npz)"
        warn(result.drives.left_out, where=str(arguments.output), fix=fix)
    return None


def _check(robot: MeasuredRobot, arguments: Namespace, console: Console) -> int:
    """Show a first look at the logs, and return whether something is suspicious."""
    look = first_look(robot, arguments.logs, arguments.map, cutoff=arguments.cutoff)
    console.print(look.report(), markup=False, highlight=False, soft_wrap=True)
    write_json(arguments, console, look.to_dict())
    write_files(console, (arguments.plot, look.plot), (arguments.report, lambda path: write_look_report(path, look)))
    return NONE if look.findings else DONE


_EXAMPLES = (
    "torsor identify robot.urdf log.csv --map map.toml --check --plot signals.png",
    "torsor identify robot.urdf log.csv -o real.urdf --held-out 0.2 --report found.html",
    "torsor identify robot.urdf log.csv --friction auto --bandwidth 20 --held-out 0.2",
    "torsor identify robot.urdf run1.csv run2.csv --cutoff 20 --validate run3.csv --plot forces.png",
)
COMMAND = Command(_add_arguments, _run, statuses=CHECKED, examples=_EXAMPLES)
