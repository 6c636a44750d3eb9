"""``torsor identify``: identify the parameters of a robot from logs of motions and torques."""

import warnings
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from torsor.base.errors import warn
from torsor.base.progress import working
from torsor.cli.command import CHECKED, DONE, NONE, Command
from torsor.cli.options import add_option, add_output, add_plot, add_report
from torsor.cli.outputs import write_files, write_json
from torsor.cli.states import add_robot, as_robot, load_robot
from torsor.formats.dispatch import WRITTEN
from torsor.identification import Identified, LogMap, Measurements, first_look, write_identification_report
from torsor.identification.closed_robot import MeasuredRobot, measured_robot
from torsor.identification.drives import AUTO, OFFERED
from torsor.identification.estimation import INFLUENCES
from torsor.identification.identify import SIMULATION, identify
from torsor.identification.logs.first_look import write_look_report

NO_MODELS = "none"


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "logs (.csv) with columns 'time', 'q NAME', 'tau NAME'. Columns 'v NAME' and 'a NAME' are optional; units "
    text += "may follow in []; other columns require --map. For a robot with loops, the columns of its drives suffice"
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=text)
    add_option(parser, "--map", " (.toml, .json, .yaml). It defines names, units, gears and delays", type=Path)
    text = "only run the quality checks of the logs"
    parser.add_argument("--check", action="store_true", help=text)
    add_option(parser, "--cutoff", ". The default is chosen from the spectra", type=float)
    details = " (default: no filter). Torques and regressor are both filtered"
    add_option(parser, "--force-cutoff", details, type=float, dest="bandwidth")
    text = "identify physically consistent parameters. -o and --total-mass imply this option"
    parser.add_argument("--physical", action="store_true", help=text)
    add_option(parser, "--among", " (default: all)", nargs="+", default=["*"])
    text = "friction models in addition to Coulomb and viscous friction, none, or auto, which selects models by "
    text += "cross-validation (default: auto). Models: "
    text += ", ".join(OFFERED)
    parser.add_argument("--friction-models", nargs="+", default=[AUTO], dest="friction", metavar="MODEL", help=text)
    text = "ignore inertia and friction of motors that drive several joints (drives.coupling of the map)"
    parser.add_argument("--uncoupled", action="store_true", help=text)
    text = "use instrumental variables from a simulation to remove the bias due to encoder noise"
    parser.add_argument("--instruments", choices=(SIMULATION,), help=text)
    parser.add_argument("--robust", choices=tuple(INFLUENCES), help="limit the influence of outliers")
    parser.add_argument("--total-mass", type=float, metavar="KG", help="known mass of all moving links")
    text = "fraction of the samples, at the end, that is used only for validation (default: 0)"
    parser.add_argument("--held-out", type=float, default=0.0, metavar="FRACTION", help=text)
    parser.add_argument("--validate", type=Path, metavar="FILE", help="log that is used only for validation")
    add_output(parser, f"the identified robot. Formats: {', '.join(WRITTEN)}", WRITTEN)
    add_plot(parser, ". It shows measured and predicted torques, and with --check the signals")
    add_report(parser, ". It contains predictions, confidence intervals and unidentifiable parameters")


def _run(arguments: Namespace, console: Console) -> int | None:
    loaded = load_robot(arguments)
    if arguments.output is not None:  # fails early if the format cannot express the robot
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are repeated when the file is written
            as_robot(loaded).save(Path(folder, arguments.output.name))
    robot = measured_robot(loaded)
    if arguments.check:
        return _check(robot, arguments, console)
    load = partial(Measurements.load, robot=robot, columns=arguments.map, cutoff=arguments.cutoff)
    with working("reading the logs"):
        data, unseen = load(arguments.logs), None if arguments.validate is None else load(arguments.validate)
    couplings = {}
    if arguments.map is not None and not arguments.uncoupled:
        couplings = LogMap.of(arguments.map).couplings(robot)
    settings = {name: getattr(arguments, name) for name in ("among", "bandwidth", "robust", "instruments", "held_out")}
    is_physical = arguments.physical or arguments.output is not None or arguments.total_mass is not None
    settings |= {"physical": is_physical, "mass": arguments.total_mass, "couplings": couplings}
    run = partial(identify, robot, data, **settings)
    friction = {(AUTO,): AUTO, (NO_MODELS,): ()}.get(tuple(arguments.friction), arguments.friction)
    with working(f"identifying {robot.name}"):
        result = written = run(friction=friction)
        if arguments.output is not None and arguments.output.suffix != ".toml" and _models(result):
            # Identify again without the friction models; removing them from ``result`` would give a poorer fit.
            written = run(friction=())
            text = f"this robot is identified without {_models(result)}: only .toml files store friction models"
            warn(text, where=str(arguments.output), fix="write a .toml file, or add --json FILE")
    notes = list(data.notes)
    for motor, (*first, last) in couplings.items():
        text = "its inertia and friction are identified too (--uncoupled ignores them)"
        notes.append(f"{motor} turns with {', '.join(first)} and {last}: {text}")
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(result.report(), markup=False, highlight=False, soft_wrap=True)
    validated = None if unseen is None else result.validate(unseen)
    if validated is not None:
        console.print(f"\nValidation with {arguments.validate.name}:", markup=False, highlight=False)
        for name, percent in zip(robot.coordinate_names, validated.relative_residuals, strict=True):
            console.print(f"  {name}: residual {percent:.3g} % of the torque", markup=False, highlight=False)
    if arguments.json is not None:
        shown = result.to_dict()
        if validated is not None:
            shown["validation"] = {"log": arguments.validate.name, "residuals": validated.to_dict()["residuals"]}
        write_json(arguments, console, shown)
    write_files(
        console,
        (arguments.output, lambda path: as_robot(written.robot).save(path)),
        (arguments.plot, (result if validated is None else validated).plot),
        (arguments.report, lambda path: write_identification_report(path, result, validated)),
    )
    return None


def _models(result: Identified) -> str:
    """Return the names of the friction models in the identified robot."""
    terms = () if result.drives is None else result.drives.terms
    return ", ".join(term.name for term in terms if term.fits_robot)


def _check(robot: MeasuredRobot, arguments: Namespace, console: Console) -> int:
    """Print the quality checks of the logs, and return the exit status."""
    with working("checking the logs"):
        look = first_look(robot, arguments.logs, arguments.map, cutoff=arguments.cutoff)
    console.print(look.report(), markup=False, highlight=False, soft_wrap=True)
    write_json(arguments, console, look.to_dict())
    write_files(console, (arguments.plot, look.plot), (arguments.report, lambda path: write_look_report(path, look)))
    return NONE if look.findings else DONE


_EXAMPLES = (
    "torsor identify robot.urdf log.csv --map map.toml --check --plot signals.png",
    "torsor identify robot.urdf log.csv -o real.urdf --report identified.html",
    "torsor identify robot.urdf run1.csv run2.csv --cutoff 20 --validate run3.csv",
)
_MAIN = "--map --check --cutoff --friction-models --physical --held-out --validate --output --plot "
_MAIN += "--report --json"
COMMAND = Command(_add_arguments, _run, statuses=CHECKED, examples=_EXAMPLES, main=_MAIN)
