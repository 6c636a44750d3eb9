"""``torsor bench``: times of Torsor and of other libraries."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor.bench import run_benchmarks
from torsor.cli.command import Command
from torsor.cli.outputs import check_output


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, help="also write the figures to this file")


def _run(arguments: Namespace, console: Console) -> None:
    check_output(arguments.json)
    run_benchmarks(arguments.json, console)


_EXAMPLES = ("torsor bench", "torsor bench --json bench.json")
BENCH = Command("bench", "compare the speed of Torsor with other libraries", _add_arguments, _run, examples=_EXAMPLES)
