"""The figure of a study: each result over each parameter that varies (matplotlib, the extra ``plot``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError
from torsor.base.figures import colours_of, label, label_of_title, new_figure, saved, styled
from torsor.motion.sweeps.store import Column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS, MOST_COLUMNS = 8, 4
MANY = 200  # cases from which on points are small and see-through


def plot(
    table: Mapping[str, NDArray[Any]],
    columns: Mapping[str, Column],
    title: str,
    path: str | Path | None,
    results: Sequence[str] | None,
    parameters: Sequence[str] | None,
) -> "Figure":
    """Return a figure of numbers in a table, a row for each of ``results`` and a column for each of ``parameters``."""
    numbers = [name for name, each in columns.items() if each.kind == "number"]
    varied = [
        name for name in numbers if columns[name].role == "parameter" and np.unique(_finite(table[name])).size > 1
    ]
    across = list(parameters) if parameters is not None else varied[:MOST_COLUMNS]
    found = [name for name in numbers if columns[name].role == "result" and _finite(table[name]).size]
    up = list(results) if results is not None else found[:MOST_ROWS]
    for names, what in ((across, "a parameter that varies"), (up, "a result that is a number")):
        wrong = [name for name in names if name not in numbers]
        if wrong or not names:
            what_is = f"column {wrong[0]!r} has no numbers" if wrong else f"there is not {what}"
            raise ModelError(what_is, where="results", allowed=", ".join(numbers) or "columns of numbers")
    figure = new_figure(3.6 * len(across) + 0.8, 2.3 * len(up) + 0.7)
    grid = figure.subplots(len(up), len(across), squeeze=False, sharex="col", sharey="row")
    colours, few = colours_of(up), len(table[up[0]]) < MANY
    for row, name in zip(grid, up, strict=True):
        for axes, parameter in zip(row, across, strict=True):
            size, alpha = (18.0, 0.9) if few else (6.0, 0.4)
            axes.scatter(table[parameter], table[name], s=size, alpha=alpha, color=colours[name], linewidths=0)
            styled(axes, "", _named(name, columns[name]) if parameter == across[0] else "")
            axes.set_xlabel(_named(parameter, columns[parameter]) if name == up[-1] else "")
    figure.suptitle(label_of_title(title))
    return saved(figure, path)


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values[np.isfinite(values)])


def _named(name: str, column: Column) -> str:
    return label(name) + (f" ({column.unit})" if column.unit else "")
