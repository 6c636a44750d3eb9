"""``torsor examples``: list or copy the examples and tutorials of the package."""

import shutil
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import torsor
from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.options import OutputFile
from torsor.cli.outputs import check_new, print_paths, write_json

PACKAGE = Path(torsor.__file__).parent


def folder_of_examples() -> Path:
    """Return the folder of the examples: inside an installed package, or next to the sources of a clone."""
    for place in (PACKAGE / "examples", PACKAGE.parent.parent / "examples"):
        if (place / "01_first_robot.py").is_file():
            return place
    raise ModelError("this installation has no examples", where=str(PACKAGE), fix="install a wheel or clone Torsor")


def title_of(path: Path) -> str:
    """Return the title of an example: the heading of a tutorial, or its first line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines[0].startswith("# %%"):
        return f"Tutorial {lines[1].removeprefix('# # ')}"
    return lines[0].strip('"') if path.suffix == ".py" else f"template for {path.with_suffix('.py').name}"


def _add_arguments(parser: ArgumentParser) -> None:
    text = "copy the examples to this folder (default: list them)"
    parser.add_argument("folder", nargs="?", action=OutputFile, kind="folder", metavar="FOLDER", help=text)


def _run(arguments: Namespace, console: Console) -> None:
    examples = sorted(path for path in folder_of_examples().iterdir() if path.suffix in (".py", ".html"))
    if arguments.folder is None:
        width = max(len(path.name) for path in examples)
        for path in examples:
            console.print(escape(f"{path.name:{width}}  {title_of(path)}"), highlight=False, soft_wrap=True)
    else:
        arguments.folder.mkdir(exist_ok=True)
        check_new(arguments, *(arguments.folder / path.name for path in examples))
        print_paths(console, *(Path(shutil.copy(path, arguments.folder)) for path in examples))
    if find_spec("matplotlib") is None:
        console.print(escape('Most of them need matplotlib: pip install "torsor[plot]"'), highlight=False)
    titles = {path.name: title_of(path) for path in examples}
    write_json(arguments, console, {"folder": folder_of_examples(), "examples": list(titles), "titles": titles})


_EXAMPLES = ("torsor examples", "torsor examples tutorials")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
