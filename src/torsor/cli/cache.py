"""``torsor cache``: the compiled kernels on disk."""

from argparse import ArgumentParser, Namespace

from rich.console import Console
from rich.markup import escape

from torsor.cli.command import Command
from torsor.cli.outputs import write_json
from torsor.compiler import cache


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all kernels")


def _run(arguments: Namespace, console: Console) -> None:
    removed = cache.clear() if arguments.clear else None
    if removed is not None:
        console.print(f"{removed} kernels removed")
    info = cache.info()
    why = cache.refused()
    place = "off" if info.path is None or why else escape(str(info.path))
    text = f"cache: {place}, {info.kernels} kernels, {info.bytes / 1e6:.1f} MB"
    console.print(text, highlight=False, soft_wrap=True)
    if why:
        console.print(escape(why), highlight=False, soft_wrap=True)
    write_json(arguments, console, info._asdict() | {"refused": why, "removed": removed})


_EXAMPLES = ("torsor cache", "torsor cache --clear")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
