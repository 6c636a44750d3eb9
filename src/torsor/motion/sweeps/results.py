"""The results of a study as a table with one row per case, and columns of parameters and results with units."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.checks import known_name
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import colours_of, label, label_of_title, new_figure, saved, styled
from torsor.base.files import replacing
from torsor.motion.sweeps.store import Column, Store, open_store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The figure of a study: each result over each varying parameter (matplotlib, the extra ``plot``).

MAX_ROWS, MAX_COLUMNS = 8, 4
MANY_CASES = 200  # smallest number of cases that are drawn as small, transparent points


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values[np.isfinite(values)])


def _named(name: str, column: Column) -> str:
    return label(name) + (f" ({column.unit})" if column.unit else "")


COMPLETE, STOPPED = "complete", "stopped by Ctrl-C"
_EMPTY_VALUES: dict[str, Any] = {"number": np.nan, "truth": False, "text": ""}


class Results:
    """The table of a study, read from its file on access.

    ``results["T"]`` is a column in the order of the cases: an array of numbers (NaN for failed cases), booleans or
    text. Arrays of equal shape are stacked. ``units`` maps names to units. ``status`` states whether the study
    is complete.

    Example:
        >>> cases = torsor.motion.sweeps.grid(a=[1, 2], b=[10, 20])
        >>> results = torsor.sweep(lambda a, b: {"sum": a + b}, cases, workers=0)
        >>> results["sum"].tolist(), results.done, results.failed, results.status
        ([11.0, 21.0, 12.0, 22.0], 4, 0, 'complete')
    """

    def __init__(self, path: Path | None, store: Store | None = None, status: str = COMPLETE) -> None:
        self.path, self.status, self._store = path, status, store

    @contextmanager
    def _open(self) -> Iterator[Store]:
        if self._store is not None:
            yield self._store
            return
        assert self.path is not None
        store = open_store(self.path)
        try:
            yield store
        finally:
            store.close()

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name: role, kind and unit."""
        with self._open() as store:
            return {name: column for name, column in store.columns.items() if name != "digest"}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(name for name, column in self.columns.items() if column.role == "parameter")

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one, by name."""
        return {name: column.unit for name, column in self.columns.items() if column.unit}

    @property
    def done(self) -> int:
        """The number of completed cases."""
        with self._open() as store:
            return store.counts()["done"]

    @property
    def failed(self) -> int:
        """The number of failed cases."""
        with self._open() as store:
            return store.counts()["failed"]

    def __len__(self) -> int:
        with self._open() as store:
            return sum(store.counts().values())

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        return f"<Results {place}: {self.done} cases done, {self.failed} failed, {self.status}>"

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.table([name])[name]

    def rows(self, names: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the cases one by one as {column: value}, with None for missing values."""
        chosen = self._chosen(names)
        with self._open() as store:
            for row in store.read(chosen):
                yield dict(zip(chosen, row, strict=True))

    def table(self, names: list[str] | None = None) -> dict[str, NDArray[Any]]:
        """Return columns (by default all), each with one entry per case."""
        chosen, columns = self._chosen(names), self.columns
        with self._open() as store:
            rows = list(store.read(chosen))
        result = {name: [row[k] for row in rows] for k, name in enumerate(chosen)}
        return {name: _array(values, columns[name].kind) for name, values in result.items()}

    def to_numpy(self, names: list[str] | None = None) -> NDArray[Any]:
        """Return a structured array (cases,) with one field per column."""
        columns = self.table(names)
        fields = [(name, column.dtype, column.shape[1:]) for name, column in columns.items()]
        result = np.empty(len(self), dtype=fields)
        for name, column in columns.items():
            result[name] = column
        return result

    def errors(self) -> dict[int, str]:
        """Return the errors of failed cases by case number."""
        with self._open() as store:
            return {int(number): error for number, error in store.read(["case", "error"]) if error}

    def to_csv(self, path: str | Path) -> None:
        """Write all columns of numbers, booleans and text as a .csv file with units in the header, such as "T (s)".

        Array columns are omitted.
        """
        columns = {name: column for name, column in self.columns.items() if not column.kind.startswith("array")}
        header = [f"{name} ({column.unit})" if column.unit else name for name, column in columns.items()]
        with replacing(Path(path)) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            for row in self.rows(list(columns)):
                writer.writerow(["" if cell is None else cell for cell in row.values()])

    def plot(
        self,
        path: str | Path | None = None,
        results: Sequence[str] | None = None,
        parameters: Sequence[str] | None = None,
    ) -> "Figure":
        """Plot one panel per result (rows) and varying parameter (columns), with one point per case; return the figure.

        By default, the first eight numeric results and four numeric parameters are drawn. With ``path``, the figure is
        also saved.
        """
        columns = self.columns
        numbers = [name for name, column in columns.items() if column.kind == "number"]
        table = self.table(numbers)
        of_role = {role: [name for name in numbers if columns[name].role == role] for role in ("parameter", "result")}
        varied = [name for name in of_role["parameter"] if np.unique(_finite(table[name])).size > 1]
        numeric_results = [name for name in of_role["result"] if _finite(table[name]).size]
        across = varied[:MAX_COLUMNS] if parameters is None else list(parameters)
        up = numeric_results[:MAX_ROWS] if results is None else list(results)
        for names, what in ((across, "varying parameter"), (up, "numeric result")):
            wrong = [name for name in names if name not in numbers]
            if wrong or not names:
                message = f"column {wrong[0]!r} has no numbers" if wrong else f"there is no {what}"
                raise ModelError(message, where="results", allowed=", ".join(numbers) or "columns of numbers")
        figure = new_figure(3.6 * len(across) + 0.8, 2.3 * len(up) + 0.7)
        grid = figure.subplots(len(up), len(across), squeeze=False, sharex="col", sharey="row")
        colours, (size, alpha) = colours_of(up), (18.0, 0.9) if len(table[up[0]]) < MANY_CASES else (6.0, 0.4)
        for row, name in zip(grid, up, strict=True):
            for axes, parameter in zip(row, across, strict=True):
                axes.scatter(table[parameter], table[name], s=size, alpha=alpha, color=colours[name], linewidths=0)
                styled(axes, "", _named(name, columns[name]) if parameter == across[0] else "")
                axes.set_xlabel(_named(parameter, columns[parameter]) if name == up[-1] else "")
        where = "in memory" if self.path is None else self.path.name
        figure.suptitle(label_of_title(f"study {where}: {self.done} cases done, {self.failed} failed"))
        return saved(figure, path)

    def to_dict(self) -> dict[str, Any]:
        """Return key figures, columns and rows as plain values for JSON, with None for missing or infinite numbers."""
        counts = {"status": self.status, "done": self.done, "failed": self.failed}
        columns = [vars(column) for column in self.columns.values()]
        return {**counts, "columns": columns, "rows": [plain(row) for row in self.rows()]}

    def _chosen(self, names: list[str] | None) -> list[str]:
        known = self.columns
        if names is None:
            return list(known)
        for name in names:
            known_name(name, known, "results", "column")
        return list(names)


def read(path: str | Path) -> Results:
    """Open the results file of ``torsor.sweep``, even while a study is writing to it."""
    results = Results(Path(path))
    results._chosen(None)  # raises if the file is invalid
    return results


def _array(values: list[Any], kind: str) -> NDArray[Any]:
    if kind in _EMPTY_VALUES:
        types = {"number": np.float64, "truth": np.bool_, "text": np.str_}
        return np.array([_EMPTY_VALUES[kind] if value is None else value for value in values], dtype=types[kind])
    shapes = {value.shape for value in values if value is not None}
    if len(shapes) == 1:
        missing = np.full(shapes.pop(), np.nan)
        return np.array([missing if value is None else value for value in values])
    result = np.empty(len(values), dtype=object)  # the arrays have different shapes
    for index, value in enumerate(values):
        result[index] = value
    return result
