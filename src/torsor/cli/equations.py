"""``torsor equations``: print an algorithm of a robot as LaTeX or SymPy."""

from argparse import ArgumentParser, Namespace
from typing import Any

from rich.console import Console

from torsor.base.files import write_text
from torsor.base.progress import working
from torsor.cli.command import Command
from torsor.cli.options import add_output
from torsor.cli.outputs import print_paths, write_json
from torsor.cli.states import add_robot, as_robot, load_robot
from torsor.dynamics.recursions.places import AXES

_FORMS = ("latex", "sympy")


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("name", metavar="NAME", help="algorithm, such as mass_matrix or jacobian:LINK")
    parser.add_argument("--form", choices=_FORMS, default="latex", help="output language (default: latex)")
    text = "use symbols for all parameters of the robot, or for those named, such as links.link2.mass"
    parser.add_argument("--symbols", metavar="PATH", nargs="*", default=None, help=text)
    text = "omit the simplification of expressions, which is slow for large robots"
    parser.add_argument("--no-simplify", action="store_true", help=text)
    parser.add_argument("--digits", type=int, default=6, metavar="N", help="digits of numbers in LaTeX (default: 6)")
    text = f"axes of Jacobians: {', '.join(AXES)} (default: local)"
    parser.add_argument("--axes", choices=AXES, default="local", metavar="AXES", help=text)
    add_output(parser, "text (default: standard output)")


def _run(arguments: Namespace, console: Console) -> None:
    robot = as_robot(load_robot(arguments))
    settings = {name: getattr(arguments, name) for name in ("form", "digits", "axes")}
    symbols = False if arguments.symbols is None else arguments.symbols or True
    with working(f"deriving {arguments.name}"):
        equations = robot.equations(arguments.name, symbols=symbols, simplify=not arguments.no_simplify, **settings)
    text = equations if isinstance(equations, str) else _script(equations)
    if arguments.output is None:
        console.out(text, highlight=False)
    else:
        write_text(arguments.output, f"{text}\n")
        print_paths(console, arguments.output)
    write_json(arguments, console, {"robot": robot.name, "name": arguments.name, "form": arguments.form, "text": text})


def _script(found: Any) -> str:
    """Return SymPy expressions as a Python script that imports SymPy and defines the input symbols."""
    names = [str(symbol) for symbols in found.inputs.values() for symbol in symbols]
    declared = [f"{', '.join(names)} = symbols({' '.join(names)!r})"] if names else []
    return "\n".join(["from sympy import *", "", *declared, found.code()])


_EXAMPLES = (
    "torsor equations two_link mass_matrix --symbols",
    "torsor equations scara jacobian:tool --axes aligned",
    "torsor equations stanford gravity_force --form sympy -o gravity.py",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, options={"simplify": "--no-simplify"})
