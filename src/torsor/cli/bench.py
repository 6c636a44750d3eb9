"""``torsor bench``: times of Torsor and of other libraries."""

from argparse import ArgumentParser, Namespace

from rich.console import Console

from bench import run_benchmarks
from torsor.cli.command import Command
from torsor.cli.outputs import add_json


def _add_arguments(parser: ArgumentParser) -> None:
    add_json(parser)


def _run(arguments: Namespace, console: Console) -> None:
    run_benchmarks(arguments.json, console)


_EXAMPLES = ("torsor bench", "torsor bench --json bench.json")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
