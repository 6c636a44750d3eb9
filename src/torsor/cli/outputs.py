"""Output files: their paths are checked before a long computation starts, and printed when they are written."""

import csv
import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.documents import STANDARD_OUTPUT, write_document
from torsor.base.errors import ModelError, missing
from torsor.base.files import check_opened, check_suffix, check_target, replacing, write_npz
from torsor.base.tables import POINT_SUFFIXES

DIGITS, FEW_DIGITS = 9, 4  # of numbers in tables that fit into the terminal, and of those in wider ones
EDGES = 3  # characters around each column of a table
NAMES = 14  # characters for the names of rows in tables that are wider than the terminal


@dataclass(frozen=True, eq=False)
class Quantity:
    """Numbers ``values`` (..., *axes): ``axes`` has the names along each axis of one state.

    ``units`` is one unit for all entries, one for each entry of the first axis, or empty where they differ otherwise.
    """

    name: str
    values: Array
    axes: tuple[tuple[str, ...], ...]
    units: Sequence[str] = ()

    def columns(self) -> list[str]:
        """Return a heading for each entry of one state, in the order of its memory."""
        found = []
        for k, labels in enumerate(product(*self.axes)):
            first = k * len(self.axes[0]) // max(1, int(np.prod([len(each) for each in self.axes]))) if self.axes else 0
            unit = self.units[first if len(self.units) > 1 else 0] if self.units else ""
            found.append(" ".join([self.name, *labels]) + (f" [{unit}]" if unit else ""))
        return found

    def rows(self) -> Array:
        """Return the entries as (states, entries)."""
        return self.values.reshape(-1, int(np.prod([len(each) for each in self.axes], dtype=int)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"values": self.values.tolist(), "axes": [list(each) for each in self.axes], "units": list(self.units)}


def print_quantity(console: Console, quantity: Quantity) -> None:
    """Print a quantity of one state: a number, a list with names, or a matrix with the names of rows and columns."""
    values, unit = quantity.values, quantity.units
    title = f"{quantity.name} ({unit[0]})" if len(unit) == 1 else quantity.name
    if values.ndim == 0:
        console.print(f"{title}: {_number(values)}", highlight=False, markup=False)
        return
    flat = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
    columns = quantity.axes[-1] if values.ndim > 1 else ("value",)
    rows = [" ".join(labels) for labels in product(*quantity.axes[:-1])] if values.ndim > 1 else list(quantity.axes[0])
    units = list(unit) if len(unit) == len(rows) > 1 else []
    natural = sum(max(len(each), DIGITS + 4) + EDGES for each in [max(rows, key=len, default=""), *columns])
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
    return f"{float(value) + 0.0:.{digits}g}"  # 0.0 makes a zero of -0


def write_quantities(path: Path, quantities: Sequence[Quantity], times: Array | None) -> None:
    """Write quantities as a table with a row for each state (.csv), or as arrays by name (.npz)."""
    if path.suffix.lower() == ".npz":
        write_npz(path, {each.name: each.values for each in quantities} | ({} if times is None else {"time": times}))
        return
    header = [*([] if times is None else ["time [s]"]), *(name for each in quantities for name in each.columns())]
    table = np.hstack([*([] if times is None else [times[:, None]]), *(each.rows() for each in quantities)])
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(map(repr, row) for row in table.tolist())


def check_output(path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Raise ModelError if a file cannot be written there: no folder, no permission, or a suffix that is not allowed."""
    if path is None or path == STANDARD_OUTPUT:
        return
    allowed = list(suffixes)
    if allowed:
        check_suffix(path, allowed, str(path))
    check_target(path)


def check_folder(folder: Path | None) -> None:
    """Raise ModelError if files cannot be written to a folder; it need not exist, but the folder that it is in must."""
    if folder is None:
        return
    if folder.is_dir():
        check_opened(folder / f".{secrets.token_hex(4)}.part", str(folder))
    elif folder.exists():
        raise ModelError("it is a file", where=str(folder), allowed="a folder")
    else:
        check_output(folder)


def check_apart(outputs: Iterable[Path | None], inputs: Iterable[Any] = ()) -> None:
    """Raise ModelError if two outputs are the same file, or if an output would replace a file that is read."""
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
    """Raise ModelError if matplotlib is missing or cannot write a figure there; without a suffix it adds .png."""
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


def write_files(console: Console, *files: tuple[Path | None, Callable[[Path], object]]) -> None:
    """Write the files whose paths are not None, each with its function, and print the paths."""
    for path, write in files:
        if path is not None:
            write(path)
    print_paths(console, *(path for path, _ in files))


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
    """Declare the outputs of a motion, a table of ``columns`` and a plot with its ``limits``."""
    text = f"write the motion: a table of {columns} (.csv), or all of it (.npz)"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=text)
    text = "write points for a controller, a JointTrajectory of ROS (.json, .yaml)"
    parser.add_argument("--points", type=Path, metavar="FILE", help=text)
    text = "rows and points a second (default: 100)"
    parser.add_argument("--rate", type=float, default=100.0, metavar="HZ", help=text)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"write a plot of the motion and its {limits}")


def write_motion(arguments: Namespace, console: Console, motion: Any) -> None:
    """Write a motion to the given outputs, tables at the rate of ``--rate``, and print their paths."""
    write_json(arguments, console, motion.to_dict())
    rate = arguments.rate if is_table(arguments.output) else None
    table = (arguments.output, lambda path: motion.save(path, rate))
    points = (arguments.points, lambda path: motion.save_points(path, arguments.rate))
    write_files(console, table, points, (arguments.plot, motion.plot))


def is_table(file: Path | None) -> bool:
    """Whether an output is a table with a row for each instant."""
    return file is not None and file.suffix.lower() == ".csv"


def check_motion(arguments: Namespace, *inputs: str | Path | None) -> None:
    """Raise ModelError for outputs of a motion that cannot be written, or that are one of the ``inputs``."""
    check_output(arguments.output, [".csv", ".npz"])
    check_output(arguments.points, POINT_SUFFIXES)
    check_plot(arguments.plot)
    check_apart((arguments.output, arguments.points, arguments.plot, arguments.json), list(inputs))
