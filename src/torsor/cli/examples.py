"""``torsor examples``: the examples and tutorials that come with the package, to list and to copy."""

import shutil
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import torsor
from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.outputs import check_folder, print_paths, write_json

PACKAGE = Path(torsor.__file__).parent


def folder_of_examples() -> Path:
    """Return the folder of the examples: inside of an installed package, beside the sources of a clone."""
    for place in (PACKAGE / "examples", PACKAGE.parent.parent / "examples"):
        if (place / "01_bearing_loads.py").is_file():
            return place
    raise ModelError("this installation has no examples", where=str(PACKAGE), fix="install a wheel, or use a clone")


def title_of(path: Path) -> str:
    """Return what an example is about: the heading of a tutorial, or the first sentence of its text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines[0].startswith("# %%"):
        return f"Tutorial {lines[1].removeprefix('# # ')}"
    return lines[0].strip('"') if path.suffix == ".py" else f"the template of {path.with_suffix('.py').name}"


def _add_arguments(parser: ArgumentParser) -> None:
    text = "copy them to this folder; without it, they are listed"
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help=text)


def _run(arguments: Namespace, console: Console) -> None:
    check_folder(arguments.folder)
    found = sorted(path for path in folder_of_examples().iterdir() if path.suffix in (".py", ".html"))
    if arguments.folder is None:
        width = max(len(path.name) for path in found)
        for path in found:
            console.print(escape(f"{path.name:{width}}  {title_of(path)}"), highlight=False, soft_wrap=True)
    else:
        arguments.folder.mkdir(exist_ok=True)
        for place in (arguments.folder / path.name for path in found):
            if place.exists():
                fix = "name another folder, or remove the file"
                raise ModelError("a file of this name is there", where=str(place), fix=fix)
        print_paths(console, *(Path(shutil.copy(path, arguments.folder)) for path in found))
    if find_spec("matplotlib") is None:
        console.print(escape('Most of them draw figures: pip install "torsor[plot]"'), highlight=False)
    titles = {path.name: title_of(path) for path in found}
    write_json(arguments, console, {"folder": folder_of_examples(), "examples": list(titles), "titles": titles})


_EXAMPLES = ("torsor examples", "torsor examples tutorials")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
