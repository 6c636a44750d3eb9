"""Quantities with the names and units of their entries: as tables of the terminal, as .csv, .npz and JSON."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.files import replacing, write_npz

DIGITS, FEW_DIGITS = 9, 4  # of numbers in tables that fit into the terminal, and of those in wider ones
EDGES = 3  # characters around each column of a table
NAMES = 14  # characters for the names of rows in tables that are wider than the terminal


@dataclass(frozen=True, eq=False)
class Quantity:
    """Numbers ``values`` (..., *axes): ``axes`` has the names along each axis of one state.

    ``units`` is one unit for all entries, one for each entry of the first axis, or empty where they differ otherwise.

    Example:
        >>> Quantity("energy", np.array([1.0, 2.0]), (), ["J"]).columns()
        ['energy [J]']
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
        count = int(np.prod([len(each) for each in self.axes], dtype=int))
        return self.values.reshape(-1, count)

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
