"""``torsor predict``: solve a motion problem from a file, or a built-in problem."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from torsor import view
from torsor.base.archive import load_result
from torsor.base.errors import ModelError, warn
from torsor.base.files import check_suffix
from torsor.base.progress import working
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, ONLY_AT_NODES, PREDICTED, UNFINISHED, WIDTH, Command
from torsor.cli.options import add_option, add_output, add_plot, add_report
from torsor.cli.outputs import check_new, print_paths, write_files, write_json
from torsor.cli.predictions import NAMED
from torsor.cli.predictions.prediction import Option, Prediction, Report, plain_report
from torsor.human.gait.opensim import opensim_files
from torsor.motion import SOLVERS, MotionError, MotionProblem, MotionResult, load_problem
from torsor.motion.results.solution import BETWEEN
from torsor.simulation.movie import KINDS, movie_path

MEASURED = (".mot", ".sto")  # files of joint angles, for the initial guess
OUTPUTS = (".npz", ".csv", *KINDS, ".mot")


def _add_arguments(parser: ArgumentParser) -> None:
    names = ", ".join(NAMED)
    text = f"problem file (.toml) or built-in problem, such as walk. Built-in problems: {names}"
    parser.add_argument("problem", metavar="PROBLEM", help=text)
    details = ".npz, .csv, .mp4, .gif or .mot. Movies and OpenSim files (.mot) are for humans. A .mot file has ground "
    details += "forces, external loads and moments next to it"
    add_output(parser, details, OUTPUTS, repeat=True)
    add_plot(parser)
    add_report(parser)
    text = "solver (default: the solver of the problem, or ipopt)"
    parser.add_argument("--solver", choices=SOLVERS, metavar="NAME", help=f"{text}. Solvers: {', '.join(SOLVERS)}")
    text = "tolerance of optimality and constraints (default: 1e-6; humans: 1e-5; walks and runs: 1e-4)"
    parser.add_argument("--tolerance", type=float, metavar="X", help=text)
    add_option(parser, "--iterations", " (default: 500; runs: 600)", type=int)
    parser.add_argument("--seconds", type=float, metavar="S", help="time limit (default: none)")
    parser.add_argument("--refine", action="store_true", help="add nodes until bounds are satisfied between them too")
    text = "initial guess: a result (.npz) or joint angles (.mot, .sto)"
    parser.add_argument("--guess", type=Path, metavar="FILE", help=text)
    text = "interval of the joint angles to use: one step, from heel strike to heel strike (default: all)"
    parser.add_argument("--guess-times", type=float, nargs=2, metavar=("START", "END"), help=text)
    parser.add_argument("--progress", action="store_true", help="show each iteration")
    parser.add_argument("--feasible-first", action="store_true", help="find a feasible motion first, then optimise")
    text = "minimise the effort among the fastest motions, for minimum-time problems"
    parser.add_argument("--tie-break", action="store_true", help=text)
    groups: dict[str, Any] = {}
    for option, owners in _owners().items():
        title = fill(f"options of {', '.join(owners)}", WIDTH - 1)
        group = groups.get(title) or groups.setdefault(title, parser.add_argument_group(title))
        first, dot, rest = option.settings["help"].partition(". ")
        settings = option.settings | {"help": f"{first}{_defaults(option, owners)}{dot}{rest}"}
        group.add_argument(option.flag, **settings)


def _run(arguments: Namespace, console: Console) -> int:
    prediction = _prediction(arguments.problem)
    for path in arguments.output or ():
        check_suffix(path, (".npz", ".csv", *prediction.saves), f"--output {path}")
        if path.suffix.lower() in KINDS:
            movie_path(path, "predict")
        elif path.suffix.lower() == ".mot":
            check_new(arguments, *opensim_files(path))
    given = _options_of(prediction, arguments)
    with working(f"building the motion problem {prediction.name}"):
        problem = prediction.problem(given)
    try:
        limits = {name: getattr(arguments, name) for name in ("tolerance", "iterations", "seconds")}
        names = ("refine", "progress", "feasible_first", "tie_break")
        flags = {name: getattr(arguments, name) or None for name in names}
        start = _given_start(problem, arguments.guess, arguments.guess_times)
        settings = {"solver": arguments.solver, "start": start, **limits, **flags}
        with working(f"solving {problem.name}"):
            result, report = prediction.solved(problem, given, settings)
    except MotionError as error:
        if error.result is not None:  # the closest motion shows what is wrong
            _write(arguments, error.result, plain_report(error.result), console)
        raise
    console.print(result)
    for table in report.tables:
        console.print(table)
    _write(arguments, result, report, console)
    status = STOPPED if report.is_stopped else status_of_motion(result)
    if report.is_stopped:
        warn("stopped by Ctrl-C before all initial guesses were tried", where=result.problem.name)
    elif status not in (DONE, ONLY_AT_NODES):  # the library warns of ONLY_AT_NODES
        violated = "" if result.is_feasible else f", and it violates constraints by {result.max_violation:.3g}"
        warn(f"the motion is not optimal{violated}: {result.status}", where=result.problem.name)
    return status


def _given_start(problem: MotionProblem, path: Path | None, times: list[float] | None) -> Any:
    """Return the initial guess from a file, or None without one."""
    if path is None:
        if times is not None:
            raise ModelError("--guess-times needs --guess", where=problem.name, fix="add --guess FILE")
        return None
    if path.suffix.lower() in MEASURED:
        from torsor.human.measured import measured_start
        from torsor.human.recordings import load

        table = load(path).table
        first, last = (table.times[0], table.times[-1]) if times is None else times
        return measured_start(problem, table, float(first), float(last))
    if times is not None:
        found = "--guess-times applies to joint angles only"
        raise ModelError(found, where=path.name, allowed="a .mot or .sto file", fix="omit --guess-times")
    saved = load_result(path)
    result = getattr(saved, "result", saved)  # the motion of a stride is its ``result``
    if not isinstance(result, MotionResult):
        what = f"--guess is a {type(saved).__name__}"
        raise ModelError(what, where=path.name, allowed="a motion or a stride")
    return result


def _prediction(name: str) -> Prediction:
    """Return the named prediction. A file takes precedence over a built-in problem."""
    if Path(name).is_file():
        return Prediction(name, lambda given: load_problem(name))
    if name in NAMED:
        return NAMED[name]
    allowed = f"a .toml file, or one of {', '.join(NAMED)}"
    raise ModelError("no such file or built-in problem", where=name, allowed=allowed)


def _owners() -> dict[Option, list[str]]:
    """Return the options of predictions, each with the names of the predictions that have it."""
    owners: dict[Option, list[str]] = {}
    for prediction in NAMED.values():
        for option in prediction.options:
            owners.setdefault(option, []).append(prediction.name)
    return owners


def _defaults(option: Option, owners: list[str]) -> str:
    """Return the defaults of an option for its help, unless the help contains them."""
    values_by_owner = {name: NAMED[name].defaults.get(option.name) for name in owners}
    shown: dict[str, list[str]] = {}
    for name, value in values_by_owner.items():
        if value not in (None, False) and "(default" not in option.settings["help"]:
            values = value if isinstance(value, tuple) else (value,)
            text = " ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in values)
            shown.setdefault(text, []).append(name)
    if list(shown.values()) == [owners]:
        return f" (default: {next(iter(shown))})"
    texts = [f"{text} for {', '.join(names)}" for text, names in shown.items()]
    return f". Defaults: {'; '.join(texts)}" if shown else ""


def _options_of(prediction: Prediction, arguments: Namespace) -> dict[str, Any]:
    """Return the options of a prediction. Raise ModelError for an option of another prediction."""
    values = {}
    for option, owners in _owners().items():
        value = getattr(arguments, option.name)
        if value is None:
            continue
        if option not in prediction.options:
            what = f"{option.flag} is an option of {', '.join(owners)}, not of {prediction.name}"
            allowed = ", ".join(known.flag for known in prediction.options)
            raise ModelError(what, allowed=allowed or "only the options common to all problems", fix="omit the option")
        values[option.name] = value
    return values


def _write(arguments: Namespace, result: MotionResult, report: Report, console: Console) -> None:
    """Write the requested files and print their paths."""
    if arguments.json is not None:
        write_json(arguments, console, {**result.to_dict(), **report.figures})
    if arguments.ergonomics is not None and not result.is_feasible:
        found = f"{arguments.ergonomics.name} is not written because the motion violates its constraints"
        warn(found, where=result.problem.name)
    elif arguments.ergonomics is not None:
        from torsor.human.ergonomics import assess, write_ergonomic_report

        age = "young" if arguments.age is None else arguments.age
        write_ergonomic_report(arguments.ergonomics, report.assessment or assess(result, age=age))
        print_paths(console, arguments.ergonomics)
    page = (arguments.report, lambda path: view.write_report(path, result, tables=report.tables))
    write_files(console, (arguments.samples, result.to_csv), (arguments.plot, report.plot), page)
    for path in arguments.output or ():
        _save(path, result, report, console)


def _save(path: Path, result: MotionResult, report: Report, console: Console) -> None:
    """Write one output file. Movies and OpenSim files require a feasible motion."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        result.save(path)
        print_paths(console, path)
    elif suffix == ".csv":
        (report.csv or result.to_csv)(path)
        print_paths(console, path)
    elif suffix in report.saves:
        written = report.saves[suffix](path)
        print_paths(console, *(written if isinstance(written, tuple) else (path,)))
    else:
        found = f"{path.name} is not written because the motion violates its constraints"
        warn(found, where=result.problem.name, fix="-o result.npz writes the closest motion")


def status_of_motion(result: MotionResult) -> int:
    """Return the exit status of a predicted motion."""
    if result.status.startswith("stopped by Ctrl-C"):
        return STOPPED
    if not result.is_solved or not result.is_feasible:
        return UNFINISHED
    return ONLY_AT_NODES if result.is_only_at_nodes else DONE


_STATUSES = PREDICTED | {
    DONE: f"{PREDICTED[DONE]}, to {BETWEEN:g} of their scales",
    ONLY_AT_NODES: f"{PREDICTED[ONLY_AT_NODES]} by more than {BETWEEN:g} of its scale",
}
_EXAMPLES = (
    "torsor predict two-link-time --plot motion.png",
    "torsor predict walk --speed 1.3 -o walk.csv -o walk.mp4 --plot walk.png",
    "torsor predict lift --box 15 --from 0.3 0.45 --to 1.0 0.4",
    "torsor predict problem.toml -o result.npz",
)
_MAIN = "--output --plot --report --json --guess --iterations --seconds --progress --speed --length "
_MAIN += "--slope --mass --height --starts --compare --box --from --to"
_OPTIONS = {"force": "--torque", "rate": "--torque-rate", "torque_rates": "--torque-rate"}
_OPTIONS |= {"u": "--weight", "ranges": "--range", "from_": "--from"}
COMMAND = Command(_add_arguments, _run, _STATUSES, _EXAMPLES, _OPTIONS, _MAIN)
