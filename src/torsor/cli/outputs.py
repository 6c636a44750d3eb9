"""The console and output files; paths are checked before a long computation and printed after writing."""

import csv
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from torsor.base.arrays import Array
from torsor.base.documents import STANDARD_OUTPUT, write_document
from torsor.base.errors import ModelError, missing, printable
from torsor.base.files import check_opened, check_suffix, check_target, replacing, write_npz
from torsor.base.progress import working
from torsor.base.tables import POINT_SUFFIXES
from torsor.cli.options import OutputFile, add_option, add_output, add_plot

DIGITS, FEW_DIGITS = 9, 4  # significant digits in tables that fit in the terminal, and in wider ones
EDGES = 3  # characters around each column of a table
NAMES = 14  # characters for the names of rows in tables that are wider than the terminal


class PlainConsole(Console):
    """A console that shows control characters as escapes, so that a name in a file cannot control the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text as rendered by Rich, with control characters escaped."""
        return super().render_str(printable(text), **options)


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity with ``values`` (..., *axes).

    ``axes`` contains the names of the entries along each axis of one state's values. ``units`` contains one unit for
    all entries or one for each entry of the first axis. It is empty if units are mixed in any other way.
    """

    name: str
    values: Array
    axes: tuple[tuple[str, ...], ...]
    units: Sequence[str] = ()

    def columns(self) -> list[str]:
        """Return a heading for each entry of one state, in memory order."""
        entries = [" ".join([self.name, *labels]) for labels in product(*self.axes)]
        units = np.repeat(self.units or [""], len(entries) // max(1, len(self.units)))
        return [f"{entry} [{unit}]" if unit else entry for entry, unit in zip(entries, units, strict=True)]

    def rows(self) -> Array:
        """Return the entries as (states, entries)."""
        return self.values.reshape(-1, int(np.prod([len(names) for names in self.axes], dtype=int)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"values": self.values.tolist(), "axes": [list(names) for names in self.axes], "units": list(self.units)}


def print_quantity(console: Console, quantity: Quantity) -> None:
    """Print a quantity of one state: a number, a list with names, or a matrix with names of rows and columns."""
    values, unit = quantity.values, quantity.units
    title = f"{quantity.name} ({unit[0]})" if len(unit) == 1 else quantity.name
    if values.ndim == 0:
        console.print(f"{title}: {_number(values)}", highlight=False, markup=False)
        return
    flat = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
    columns = quantity.axes[-1] if values.ndim > 1 else ("value",)
    rows = [" ".join(labels) for labels in product(*quantity.axes[:-1])] if values.ndim > 1 else list(quantity.axes[0])
    units = list(unit) if len(unit) == len(rows) > 1 else []
    natural = sum(max(len(name), DIGITS + 4) + EDGES for name in [max(rows, key=len, default=""), *columns])
    digits = DIGITS if natural <= console.width else FEW_DIGITS
    texts = [[_number(value, digits) for value in numbers] for numbers in flat]
    widest = max((len(text) for line in texts for text in line), default=1)
    count = max(1, (console.width - NAMES) // (widest + EDGES)) if digits == FEW_DIGITS else len(columns)
    for first in range(0, len(columns), count):  # as many columns as fit, so that no number is cut off
        table = Table(title=escape(title), title_justify="left", title_style="bold", header_style="bold")
        table.add_column("", overflow="fold")
        for column in columns[first : first + count]:
            table.add_column(escape(column), justify="right", overflow="fold", min_width=widest)
        if units:
            table.add_column("unit", justify="right")
        for k, (row, line) in enumerate(zip(rows, texts, strict=True)):
            table.add_row(escape(row), *line[first : first + count], *units[k : k + 1])
        console.print(table)


def _number(value: Any, digits: int = DIGITS) -> str:
    return f"{float(value) + 0.0:.{digits}g}"  # adding 0.0 turns -0 into 0


def write_quantities(
    arguments: Namespace, console: Console, robot: str, quantities: Sequence[Quantity], times: Array | None
) -> None:
    """Write the quantities of a robot to its outputs: ``--json``, and a table (.csv) or arrays by name (.npz)."""
    write_json(arguments, console, {"robot": robot, **{quantity.name: quantity.as_dict() for quantity in quantities}})
    columns = [*([] if times is None else [Quantity("time", times, (), ["s"])]), *quantities]
    write_files(console, (arguments.output, lambda path: _write_columns(path, columns)))


def _write_columns(path: Path, quantities: Sequence[Quantity]) -> None:
    """Write quantities as a table with a row for each state (.csv), or as arrays by name (.npz)."""
    if path.suffix.lower() == ".npz":
        write_npz(path, {quantity.name: quantity.values for quantity in quantities})
        return
    table = np.hstack([quantity.rows() for quantity in quantities])
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(name for quantity in quantities for name in quantity.columns())
        writer.writerows(map(repr, row) for row in table.tolist())


def check_outputs(arguments: Namespace) -> None:
    """Raise ModelError if an output of a command cannot be written, exists without ``--force``, or is also read."""
    outputs, files = list[Path](), list[Path]()
    for action in arguments.outputs:
        paths = getattr(arguments, action.dest)
        for path in paths if isinstance(paths, list) else [paths]:
            if path is not None and (path != STANDARD_OUTPUT or action.dest != "json"):
                _check_output(path, action)
                outputs.append(path)
                files += [path] if action.kind in ("file", "figure", "report") else []
    read = [getattr(arguments, name) for name in arguments.inputs]
    inputs = [Path(str(name).partition("#")[0]) for name in _flat(read)]
    _check_apart(outputs, {path.resolve() for path in inputs if path.is_file()})
    check_new(arguments, *files)


def _check_output(path: Path, action: OutputFile) -> None:
    flag = action.option_strings[-1] if action.option_strings else str(action.metavar)
    if path == STANDARD_OUTPUT:
        fix = "only --json writes to standard output"
        raise ModelError("a file name is needed", where=f"{flag} -", allowed="a file", fix=fix)
    if action.kind in ("folder", "target"):  # the exporters check the files of a target
        if action.kind == "folder":
            check_folder(path)
        return
    figures = [] if action.kind == "file" else ["", *_figure_suffixes()]  # a report has figures too
    suffixes = action.suffixes or figures
    if suffixes:
        check_suffix(path, suffixes, f"{flag} {path}")
    check_target(path)


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        elif value is not None:
            yield value


def check_new(arguments: Namespace, *paths: Path) -> None:
    """Raise ModelError if a file exists and ``--force`` is not given. Empty files, devices and pipes are allowed."""
    for path in paths:
        if path.is_file() and path.stat().st_size and not arguments.force:
            raise ModelError("the file exists", where=str(path), fix="--force replaces it")


def check_folder(folder: Path) -> None:
    """Raise ModelError if files cannot be written to a folder. Its parent must exist, but the folder need not."""
    if folder.is_dir():
        check_opened(folder / f".{secrets.token_hex(4)}.part", str(folder))
    elif folder.exists():
        raise ModelError("this is a file", where=str(folder), allowed="a folder")
    else:
        check_target(folder)


def _check_apart(outputs: Iterable[Path], inputs: set[Path]) -> None:
    """Raise ModelError if two outputs are the same file, or if an output would replace an input file."""
    written = set[Path]()
    for path in outputs:
        if path.resolve() in inputs:
            raise ModelError("the output is also an input", where=str(path), fix="choose another name for the output")
        if path.resolve() in written:
            raise ModelError("two outputs have this name", where=str(path), allowed="one name for each output")
        written.add(path.resolve())


def _figure_suffixes() -> list[str]:
    """Return the suffixes of figures. If there is no suffix, matplotlib adds .png."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise missing("figures need matplotlib", "plot") from None
    return [f".{suffix}" for suffix in sorted(FigureCanvasBase.get_supported_filetypes())]


def print_paths(console: Console, *paths: Path | None) -> None:
    """Print the paths of the files that were written, one per line."""
    for path in paths:
        if path is not None:
            console.print(escape(str(path)), highlight=False, soft_wrap=True)


def write_files(console: Console, *files: tuple[Path | None, Callable[[Path], object]]) -> None:
    """Write each file whose path is not None with its function, and print the paths."""
    for path, write in files:
        if path is not None:
            with working(f"writing {path.name}"):
                write(path)
    print_paths(console, *(path for path, _ in files))


def write_json(arguments: Namespace, console: Console, content: Mapping[str, Any]) -> None:
    """Write a result to the path of ``--json`` (- is standard output), if given; NaN becomes null."""
    path: Path | None = arguments.json
    if path is None:
        return
    write_document(path, content)
    if path != STANDARD_OUTPUT:
        print_paths(console, path)


def add_motion(parser: Any, columns: str, limits: str) -> None:
    """Declare the outputs of a motion: a table with ``columns``, a ROS message, and a figure with the ``limits``."""
    add_output(parser, f"a table (.csv) or everything (.npz). The table has the columns {columns}", (".csv", ".npz"))
    add_option(parser, "--joint-trajectory", action=OutputFile, suffixes=POINT_SUFFIXES)
    add_option(parser, "--rate", " (default: 100)", type=float, default=100.0)
    add_plot(parser, f". It shows the motion and its {limits}")


def write_motion(arguments: Namespace, console: Console, motion: Any) -> None:
    """Write a motion to its outputs and print their paths; tables have ``--rate`` rows per second."""
    write_json(arguments, console, motion.to_dict())
    rate = arguments.rate if is_table(arguments.output) else None
    table = (arguments.output, lambda path: motion.save(path, rate))
    points = (arguments.joint_trajectory, lambda path: motion.save_points(path, arguments.rate))
    write_files(console, table, points, (arguments.plot, motion.plot))


def is_table(file: Path | None) -> bool:
    """Return whether an output is a table with one row per sample."""
    return file is not None and file.suffix.lower() == ".csv"
