"""``torsor count``: count the arithmetic operations of a robot's algorithms."""

from argparse import Namespace

from rich.console import Console

from torsor import view
from torsor.cli.command import Command
from torsor.cli.outputs import write_json
from torsor.cli.states import add_robot, load_robot


def _run(arguments: Namespace, console: Console) -> None:
    robot = load_robot(arguments)
    console.print(view.count_table(robot))
    counts = {name: robot.operation_count(name)._asdict() for name in view.counted(robot)}
    write_json(arguments, console, {"robot": robot.name, "operations": counts})


_EXAMPLES = ("torsor count stanford", "torsor count two_link --json -")
COMMAND = Command(add_robot, _run, examples=_EXAMPLES)
