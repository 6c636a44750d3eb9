"""Output files: their paths are checked before a long computation starts, and printed when they are written."""

import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor.base.documents import STANDARD_OUTPUT, write_document
from torsor.base.errors import ModelError, missing
from torsor.base.files import check_opened, check_target
from torsor.base.points import SUFFIXES


def check_output(path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Raise ModelError if a file cannot be written there: no folder, no permission, or a suffix that is not allowed.

    Example:
        >>> check_output(Path("out.txt"), [".npz", ".csv"])
        Traceback (most recent call last):
        torsor.ModelError: out.txt: the suffix is '.txt'; allowed: .npz, .csv
    """
    if path is None or path == STANDARD_OUTPUT:
        return
    allowed = list(suffixes)
    if allowed and path.suffix.lower() not in allowed:
        found = f"the suffix is {path.suffix!r}"
        raise ModelError(found, value=path.suffix, where=str(path), allowed=", ".join(filter(None, allowed)))
    check_target(path)


def check_folder(folder: Path | None) -> None:
    """Raise ModelError if files cannot be written to a folder; it need not exist, but the folder that it is in must.

    Example:
        >>> check_folder(Path("no", "such"))
        Traceback (most recent call last):
        torsor.ModelError: no/such: its folder does not exist; fix: make the folder first
    """
    if folder is None:
        return
    if folder.is_dir():
        check_opened(folder / f".{secrets.token_hex(4)}.part", str(folder))
    elif folder.exists():
        raise ModelError("it is a file", where=str(folder), allowed="a folder")
    else:
        check_output(folder)


def check_apart(outputs: Iterable[Path | None], inputs: Iterable[Any] = ()) -> None:
    """Raise ModelError if two outputs are the same file, or if an output would replace a file that is read.

    Example:
        >>> check_apart([Path("walk.csv"), None, Path("./walk.csv")])
        Traceback (most recent call last):
        torsor.ModelError: walk.csv: two outputs have this name; allowed: a file for each
    """
    read, written = {Path(each).resolve() for each in inputs if each is not None}, set[Path]()
    for path in outputs:
        if path is None or path == STANDARD_OUTPUT:
            continue
        if path.resolve() in read:
            raise ModelError("it is also read", where=str(path), fix="choose another name for the output")
        if path.resolve() in written:
            raise ModelError("two outputs have this name", where=str(path), allowed="a file for each")
        written.add(path.resolve())


def check_plot(path: Path | None) -> None:
    """Raise ModelError if matplotlib is missing or cannot write a figure to that path; without a suffix it adds .png.

    Example:
        >>> check_plot(Path("walk.png"))
    """
    if path is None:
        return
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise missing("figures need matplotlib", "plot") from None
    if path == STANDARD_OUTPUT:
        raise ModelError("a figure on standard output", where="-", allowed="a file, such as figure.png")
    check_output(path, ["", *(f".{each}" for each in sorted(FigureCanvasBase.get_supported_filetypes()))])


REPORT = "write a report to this .html file: tables, figures, loads of the bearings, the motion in 3D; it opens offline"


def add_report(parser: ArgumentParser, text: str = REPORT) -> None:
    """Declare the option ``--report FILE``, with its help."""
    parser.add_argument("--report", type=Path, metavar="FILE", help=text)


def check_report(path: Path | None) -> None:
    """Raise ModelError if a report cannot be written to that path."""
    if path == STANDARD_OUTPUT:
        raise ModelError("a report on standard output", where="--report", allowed="a file that ends with .html")
    check_output(path, [".html"])
    if path is not None:
        check_plot(path.with_suffix(".png"))


def print_paths(console: Console, *paths: Path | None) -> None:
    """Print the paths of the files that were written, one per line."""
    for path in paths:
        if path is not None:
            console.print(escape(str(path)), highlight=False, soft_wrap=True)


def add_json(parser: ArgumentParser) -> None:
    """Declare the option ``--json FILE``."""
    text = "write the result as JSON to this file; - for standard output, tables then go to standard error"
    parser.add_argument("--json", type=Path, metavar="FILE", help=text)


def write_json(arguments: Namespace, console: Console, content: Mapping[str, Any]) -> None:
    """Write a result to the file of ``--json``, or to standard output, if it is given; NaN becomes null."""
    path: Path | None = arguments.json
    if path is None:
        return
    write_document(path, content)
    if path != STANDARD_OUTPUT:
        print_paths(console, path)


def add_motion(parser: ArgumentParser, columns: str, limits: str) -> None:
    """Declare the outputs of a motion, a table of ``columns`` and a plot with its ``limits``, and ``--json``."""
    text = f"write the motion: a table of {columns} (.csv), or all of it (.npz)"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=text)
    text = "write points for a controller, a JointTrajectory of ROS (.json, .yaml)"
    parser.add_argument("--points", type=Path, metavar="FILE", help=text)
    text = "rows and points a second (default: 100)"
    parser.add_argument("--rate", type=float, default=100.0, metavar="HZ", help=text)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"write a plot of the motion and its {limits}")
    add_json(parser)


def check_motion(arguments: Namespace, *inputs: str | Path | None) -> None:
    """Raise ModelError for outputs of a motion that cannot be written, or that are one of the ``inputs``."""
    check_output(arguments.output, [".csv", ".npz"])
    check_output(arguments.points, SUFFIXES)
    check_plot(arguments.plot)
    check_apart((arguments.output, arguments.points, arguments.plot, arguments.json), list(inputs))
