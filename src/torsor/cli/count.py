"""``torsor count``: the arithmetic operations of the algorithms of a robot."""

from argparse import Namespace

from rich.console import Console

from torsor import view
from torsor.cli.command import Command
from torsor.cli.robots import add_robot, given_robot


def _run(arguments: Namespace, console: Console) -> None:
    console.print(view.count_table(given_robot(arguments)))


COUNT = Command("count", "count the operations of a robot's algorithms", add_robot, _run)
