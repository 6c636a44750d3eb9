"""``torsor predict``: the optimal motion of a problem in a file, of a built-in problem, or of a human."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console

from torsor.base.archive import load_result
from torsor.base.errors import ModelError, warn
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, ONLY_AT_NODES, PREDICTED, UNFINISHED, Command
from torsor.cli.outputs import add_report, check_apart, check_output, check_plot, check_report, print_paths, write_json
from torsor.cli.predictions import NAMED
from torsor.cli.predictions.prediction import Option, Prediction, Report, plain_report
from torsor.motion import SOLVERS, MotionError, MotionProblem, MotionResult, load_problem
from torsor.motion.results.solution import BETWEEN
from torsor.simulation.movie import KINDS, movie_path

MEASURED = (".mot", ".sto")  # files of angles that a search can start from


def _add_arguments(parser: ArgumentParser) -> None:
    names = ", ".join(NAMED)
    parser.add_argument("problem", metavar="PROBLEM", help=f"a .toml file, or one of {names}")
    parser.add_argument("--csv", type=Path, help="write the trajectory, of a walk the stride, to this table (.csv)")
    save = "write the whole result to this .npz file; humans also as a movie (.mp4, .gif), walks for OpenSim (.mot, "
    save += "with ground forces and moments beside it); may be repeated"
    parser.add_argument("--save", type=Path, action="append", metavar="FILE", help=save)
    parser.add_argument("--plot", type=Path, help="write a plot to this file: .png, .pdf or .svg")
    add_report(parser)
    parser.add_argument("--solver", choices=SOLVERS, help="solver (default: that of the problem, or ipopt)")
    tolerance = "tolerance of optimality and constraints (default: 1e-6; humans: 1e-5)"
    parser.add_argument("--tolerance", type=float, help=tolerance)
    parser.add_argument("--iterations", type=int, help="most iterations (default: 500)")
    parser.add_argument("--seconds", type=float, help="time limit in seconds (default: none)")
    parser.add_argument("--refine", action="store_true", help="add nodes until the bounds also hold on a finer grid")
    start = "initial guess: an earlier result (.npz), or measured angles (.mot or .sto, of torsor measure --mot)"
    parser.add_argument("--guess", type=Path, metavar="FILE", help=start)
    times = "part of the measured angles: a step, from heel strike to heel strike (default: all of it)"
    parser.add_argument("--guess-times", type=float, nargs=2, metavar="SECONDS", help=times)
    parser.add_argument("--progress", action="store_true", help="show each iteration")
    parser.add_argument("--feasible-first", action="store_true", help="find a feasible motion first, then optimise")
    ties = "least effort among the fastest motions, for problems whose objective is the time"
    parser.add_argument("--tie-break", action="store_true", help=ties)
    groups: dict[str, Any] = {}
    for option, owners in _owners().items():
        title = f"options of {', '.join(owners)}"
        group = groups.get(title) or groups.setdefault(title, parser.add_argument_group(title))
        group.add_argument(
            option.flag, **option.settings | {"help": option.settings["help"] + _defaults(option, owners)}
        )


def _run(arguments: Namespace, console: Console) -> int:
    for path in (arguments.csv, arguments.samples):
        check_output(path, [".csv"])
    check_plot(arguments.plot)
    check_report(arguments.report)
    check_report(arguments.ergonomics)
    outputs = (arguments.csv, arguments.samples, arguments.plot, arguments.report, arguments.ergonomics, arguments.json)
    check_apart([*outputs, *(arguments.save or ())], [name for names in arguments.compare or () for name in names])
    prediction = _prediction(arguments.problem)
    for path in arguments.save or ():
        check_output(path, [".npz", *prediction.saves])
        if path.suffix.lower() in KINDS:
            movie_path(path, "predict")
    given = _options_of(prediction, arguments)
    problem = prediction.problem(given)
    try:
        limits = {name: getattr(arguments, name) for name in ("tolerance", "iterations", "seconds")}
        names = ("refine", "progress", "feasible_first", "tie_break")
        flags = {name: getattr(arguments, name) or None for name in names}
        start = _given_start(problem, arguments.guess, arguments.guess_times)
        settings = {"solver": arguments.solver, "start": start, **limits, **flags}
        result, report = prediction.solved(problem, given, settings)
    except MotionError as error:
        if error.result is not None:  # the motion with the least violation shows what is wrong
            _write(arguments, error.result, plain_report(error.result), console)
        raise
    console.print(result)
    for table in report.tables:
        console.print(table)
    _write(arguments, result, report, console)
    status = STOPPED if report.is_stopped else status_of_motion(result)
    if report.is_stopped:
        warn("stopped by Ctrl-C before all starts were searched", where=result.problem.name)
    elif status not in (DONE, ONLY_AT_NODES):  # a motion that is optimal at the nodes only has a warning of its own
        violated = "" if result.is_feasible else f", and it violates constraints by {result.max_violation:.3g}"
        warn(f"the motion is not optimal{violated}: {result.status}", where=result.problem.name)
    return status


def _given_start(problem: MotionProblem, path: Path | None, times: list[float] | None) -> Any:
    """Return the start of ``solve`` in a file, None without one."""
    if path is None:
        if times is not None:
            raise ModelError("--guess-times without --guess", where=problem.name, fix="add --guess FILE")
        return None
    if path.suffix.lower() in MEASURED:
        from torsor.human.measured import measured_start
        from torsor.human.recordings import load

        table = load(path).table
        first, last = (table.times[0], table.times[-1]) if times is None else times
        return measured_start(problem, table, float(first), float(last))
    if times is not None:
        raise ModelError("--guess-times with a result", where=path.name, allowed="for .mot and .sto files")
    found = load_result(path)
    result = getattr(found, "result", found)  # a stride has the motion as its result
    if not isinstance(result, MotionResult):
        raise ModelError(f"a {type(found).__name__}", where=path.name, allowed="a motion or a stride")
    return result


def _prediction(name: str) -> Prediction:
    """Return the prediction of a name; a file takes precedence over a built-in problem with the same name."""
    if Path(name).is_file():
        return Prediction(name, lambda given: load_problem(name))
    if name in NAMED:
        return NAMED[name]
    raise ModelError("no such file", where=name, allowed=f"a .toml file, or one of {', '.join(NAMED)}")


def _owners() -> dict[Option, list[str]]:
    """Return the options that only some predictions have, with the names of these."""
    found: dict[Option, list[str]] = {}
    for prediction in NAMED.values():
        for option in prediction.options:
            found.setdefault(option, []).append(prediction.name)
    return found


def _defaults(option: Option, owners: list[str]) -> str:
    """Return the defaults of an option for its help, where the help does not name them already."""
    found = {name: NAMED[name].defaults.get(option.name) for name in owners}
    shown: dict[str, list[str]] = {}
    for name, value in found.items():
        if value not in (None, False) and "(default" not in option.settings["help"]:
            values = value if isinstance(value, tuple) else (value,)
            text = " ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values)
            shown.setdefault(text, []).append(name)
    if list(shown.values()) == [owners]:
        return f" (default: {next(iter(shown))})"
    texts = [f"{text} of {', '.join(own)}" for text, own in shown.items()]
    return f" (default: {'; '.join(texts)})" if shown else ""


def _options_of(prediction: Prediction, arguments: Namespace) -> dict[str, Any]:
    """Return the given options of a prediction, and raise ModelError if one of another prediction is given."""
    found = {}
    for option, owners in _owners().items():
        value = getattr(arguments, option.name)
        if value is None:
            continue
        if option not in prediction.options:
            what = f"{option.flag} is an option of {', '.join(owners)}, not of {prediction.name}"
            own = ", ".join(each.flag for each in prediction.options)
            raise ModelError(what, allowed=own or "only the options that all problems have")
        found[option.name] = value
    return found


def _write(arguments: Namespace, result: MotionResult, report: Report, console: Console) -> None:
    """Write the requested files and print their paths."""
    if arguments.json is not None:
        write_json(arguments, console, {**result.to_dict(), **report.figures})
    if arguments.report is not None:
        from torsor.view.report import write_report

        write_report(arguments.report, result, tables=report.tables)
    if arguments.ergonomics is not None and not result.is_feasible:
        found = f"{arguments.ergonomics.name} is not written: the motion violates its constraints"
        warn(found, where=result.problem.name)
    elif arguments.ergonomics is not None:
        from torsor.human.ergonomics import write_ergonomic_report

        age = "young" if arguments.age is None else arguments.age
        write_ergonomic_report(arguments.ergonomics, result, age=age)
        print_paths(console, arguments.ergonomics)
    csv = report.csv or result.to_csv
    for path, write in ((arguments.csv, csv), (arguments.samples, result.to_csv), (arguments.plot, report.plot)):
        if path is not None:
            write(path)
    print_paths(console, arguments.csv, arguments.samples, arguments.plot, arguments.report)
    for path in arguments.save or ():
        _save(path, result, report, console)


def _save(path: Path, result: MotionResult, report: Report, console: Console) -> None:
    """Write a file of ``--save``; other files than .npz are of motions that satisfy their constraints."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        result.save(path)
        print_paths(console, path)
    elif suffix in report.saves:
        written = report.saves[suffix](path)
        print_paths(console, *(written if isinstance(written, tuple) else (path,)))
    else:
        found = f"{path.name} is not written: the motion violates its constraints"
        warn(found, where=result.problem.name, fix="--save result.npz keeps the motion with the least violation")


def status_of_motion(result: MotionResult) -> int:
    """Return the exit status of a predicted motion."""
    if result.status.startswith("stopped by Ctrl-C"):
        return STOPPED
    if not result.is_solved or not result.is_feasible:
        return UNFINISHED
    return ONLY_AT_NODES if result.is_only_at_nodes else DONE


_STATUSES = PREDICTED | {
    DONE: f"{PREDICTED[DONE]} (to {BETWEEN:g}, see {ONLY_AT_NODES})",
    ONLY_AT_NODES: f"{PREDICTED[ONLY_AT_NODES]} by more than {BETWEEN:g} of its scale",
}
_EXAMPLES = (
    "torsor predict two-link-time --plot motion.png",
    "torsor predict walk --json walk.json --csv walk.csv",
    "torsor predict walk --save walk.mot --save walk.mp4",
    "torsor predict walk --version free --starts 4 --plot walk.png",
    "torsor predict walk --compare angles.mot moments.sto forces.mot --plot walk.png",
    "torsor predict run --speed 3 --plot run.png",
    "torsor predict lift --box 15 --ergonomics lift.html",
    "torsor predict problem.toml --save result.npz",
    "torsor predict walk --version free --guess angles.mot --guess-times 0.93 1.50",
)
COMMAND = Command(_add_arguments, _run, _STATUSES, _EXAMPLES)
