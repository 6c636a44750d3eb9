"""The command ``torsor predict``: an optimal motion of a ready-made problem, of a file, or of a human."""

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor import library
from torsor.errors import ModelError
from torsor.human import TASKS, Backpack, Box, Step, Stride, Walk, joint_torques, plot_task, walking
from torsor.human.contact.support import SIDES
from torsor.human.gait.walking import OBJECTIVES, VERSIONS
from torsor.human.tasks.task import Task
from torsor.library.anthropometry import SEXES
from torsor.motion import SOLVERS, MotionError, MotionProblem, MotionResult, load_problem
from torsor.motion.problems import PROBLEMS

__all__ = ["add_prediction"]

BODY = ("height", "mass", "sex")
STEP = ("length", "width", "speed")
WALK = ("slope", "backpack", "box", "version", "steps", "planar", "frozen", "strength", "objective")
OWN = {"lift": ("box",), "stand-up": ("seat",), "reach": ("target", "hand")}
HUMAN: dict[str, Callable[..., MotionProblem]] = {"walk": walking, **TASKS}


def _human(name: str, given: dict[str, Any]) -> MotionProblem:
    """Return a problem of a human, with what the options say."""
    options: dict[str, Any] = {}
    body = {key: given.pop(key) for key in BODY if key in given}
    if body:
        options["body"] = library.human(**body)
    if name == "walk":
        step = {key: given.pop(key) for key in STEP if key in given}
        if step:
            options["step"] = Step(**step)
        loads = [kind(given.pop(key)) for key, kind in (("backpack", Backpack), ("box", Box)) if key in given]
        if len(loads) > 1:
            raise ModelError("--backpack and --box; allowed: one of them")
        if loads:
            options["load"] = loads[0]
        if "slope" in given:
            options["slope"] = math.radians(given.pop("slope"))
        for key in ("frozen", "strength", "objective"):
            if key in given:
                options[key] = _table(given.pop(key), key)
        options["frozen"] = {key: math.radians(value) for key, value in options.get("frozen", {}).items()}
        options |= {key: given.pop(key) for key in ("version", "steps", "planar") if key in given}
    options |= {key: given.pop(key) for key in OWN.get(name, ()) if key in given}
    if name == "lift" and "box" in options:
        options["box"] = Box(options["box"])
    if given:
        raise ModelError(f"--{next(iter(given))} is no option of {name}")
    return HUMAN[name](**options)


def _table(words: Sequence[str], option: str) -> dict[str, float]:
    """Return {name: number} from words NAME=NUMBER."""
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise ModelError(f"--{option} {word}; allowed: NAME=NUMBER, as in right_knee_flexion=10") from None
    return found


def _problem(arguments: argparse.Namespace) -> MotionProblem:
    """Return the motion problem in a TOML file, or the built-in one that has that name."""
    name = arguments.problem
    values = {key: getattr(arguments, key) for key in (*BODY, *STEP, *WALK, "seat", "target", "hand")}
    given = {key: value for key, value in values.items() if value is not None and value is not False}
    is_file = Path(name).exists()
    if name in HUMAN and not is_file:
        return _human(name, given)
    if given:
        raise ModelError(f"--{next(iter(given))} is an option of {', '.join(HUMAN)}, not of {name}")
    if name in PROBLEMS and not is_file:
        return PROBLEMS[name]()
    if not Path(name).is_file():
        raise ModelError(f"{name}: no such file; allowed: a .toml file, or one of {', '.join((*PROBLEMS, *HUMAN))}")
    return load_problem(name)


def _predict(arguments: argparse.Namespace, console: Console) -> None:
    for path, suffixes in ((arguments.csv, (".csv",)), (arguments.save, (".npz",))):
        if path is not None and path.suffix.lower() not in suffixes:
            raise ModelError(f"{path}: the suffix is {path.suffix!r}; allowed: {', '.join(suffixes)}")
    for path in filter(None, (arguments.json, arguments.csv, arguments.save, arguments.plot)):  # before the search
        if path.is_dir() or not path.parent.is_dir():
            wrong = "it is a folder" if path.is_dir() else "its folder does not exist; fix: make the folder first"
            raise ModelError(f"{path}: {wrong}")
    problem = _problem(arguments)
    try:
        result = problem.solve(
            arguments.solver,
            tolerance=arguments.tolerance,
            iterations=arguments.iterations,
            seconds=arguments.seconds,
            refine=arguments.refine or None,
            progress=arguments.progress or None,
            feasible_first=arguments.feasible_first or None,
        )
    except MotionError as error:
        if error.result is not None:  # the nearest motion is worth a look
            _write(arguments, error.result, error.result.plot, console)
        raise
    console.print(result)
    plot: Callable[..., Any] = result.plot
    more: dict[str, Any] = {}
    if isinstance(problem, Task):
        plot, more = partial(plot_task, result), {"joint_torques": joint_torques(result).tolist()}
    elif result.is_feasible and any(isinstance(getattr(term, "support", None), Walk) for term in problem.terms):
        stride = Stride(result)
        console.print(stride)
        plot, more = stride.plot, {"stride": stride.to_dict()}
    _write(arguments, result, plot, console, more)


def _write(
    arguments: argparse.Namespace,
    result: MotionResult,
    plot: Callable[..., Any],
    console: Console,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the files that are asked for, and say which; ``more`` goes into JSON beside the result."""
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({**result.to_dict(), **more}, allow_nan=False) + "\n", encoding="utf-8")
    writers = ((arguments.csv, result.to_csv), (arguments.save, result.save), (arguments.plot, plot))
    for path, write in writers:
        if path is not None:
            write(path)
    for path in filter(None, (arguments.json, arguments.csv, arguments.save, arguments.plot)):
        console.print(escape(str(path)), highlight=False, soft_wrap=True)


def add_prediction(command: argparse.ArgumentParser) -> None:
    """Give a parser the options of the command."""
    built_in = ", ".join((*PROBLEMS, *HUMAN))
    command.add_argument("problem", metavar="PROBLEM", help=f"a .toml file, or one of {built_in}")
    command.add_argument("--json", type=Path, help="where figures and trajectory go, as JSON")
    command.add_argument("--csv", type=Path, help="where the trajectory goes, as a table")
    command.add_argument("--save", type=Path, help="where the whole result goes: a .npz file")
    command.add_argument("--plot", type=Path, help="where a plot goes: .png, .pdf or .svg")
    command.add_argument("--solver", choices=SOLVERS, help="how to search (default: what the problem says, or ipopt)")
    command.add_argument(
        "--tolerance", type=float, help="of optimality and constraints (default: 1e-6; of humans 1e-5)"
    )
    command.add_argument("--iterations", type=int, help="most iterations (default: 500)")
    command.add_argument("--seconds", type=float, help="most seconds (default: no limit)")
    command.add_argument("--refine", action="store_true", help="add nodes until bounds hold between them too")
    command.add_argument("--progress", action="store_true", help="show iterations while they come")
    command.add_argument("--feasible-first", action="store_true", help="search for any motion first, then for the best")
    body = command.add_argument_group(f"options of humans ({', '.join(HUMAN)})")
    body.add_argument("--height", type=float, metavar="M", help="of the body (default: 1.741)")
    body.add_argument("--mass", type=float, metavar="KG", help="of the body (default: 73)")
    body.add_argument("--sex", choices=tuple(SEXES), help="which table of segments (default: male)")
    walk = command.add_argument_group("options of walk")
    walk.add_argument(
        "--speed", type=float, metavar="M/S", help="of walking (default: 1.2); the length of a step stays"
    )
    walk.add_argument("--length", type=float, metavar="M", help="of a step (default: 0.6)")
    walk.add_argument("--width", type=float, metavar="M", help="of a step (default: 0.1)")
    walk.add_argument("--slope", type=float, metavar="DEGREES", help="upwards; below 0: downwards (default: 0)")
    walk.add_argument("--backpack", type=float, metavar="KG", help="a pack on the back")
    walk.add_argument("--box", type=float, metavar="KG", help="a box in the hands (also of lift)")
    walk.add_argument("--version", choices=tuple(VERSIONS), help="6 control points, or 8 and clean contacts")
    walk.add_argument("--steps", type=int, choices=(1, 2), help="2: left and right may differ")
    walk.add_argument("--planar", action="store_true", help="freeze what moves or turns to the sides")
    pairs: dict[str, Any] = {"nargs": "+", "metavar": "NAME=NUMBER"}
    walk.add_argument("--frozen", **pairs, help="joints that do not move, with their angles in degrees")
    walk.add_argument("--strength", **pairs, help="joints that are weaker, with factors of their strengths")
    walk.add_argument("--objective", **pairs, help=f"weights of {', '.join(OBJECTIVES)} (default: effort=1)")
    tasks = command.add_argument_group("options of stand-up and reach; lift has --box")
    tasks.add_argument("--seat", type=float, metavar="M", help="height of the seat (default: 0.45)")
    tasks.add_argument(
        "--target",
        type=float,
        nargs=3,
        metavar=("LEFT", "UP", "AHEAD"),
        help="from between the heels (m; default: -0.2 1.1 0.75)",
    )
    tasks.add_argument("--hand", choices=SIDES, help="which hand reaches (default: right)")
    command.set_defaults(run=_predict)
