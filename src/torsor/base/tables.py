"""Results as CSV tables: one column for each quantity, with its name and unit in the header."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.files import check_target, replacing


class Column(NamedTuple):
    """A column of a table: its name, its unit (1 for numbers, "" for words), and its values (N,).

    Example:
        >>> Column("q elbow", "rad", np.zeros(3)).head
        'q elbow [rad]'
    """

    name: str
    unit: str
    values: Any

    @property
    def head(self) -> str:
        """The head of the column."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def columns_of(letter: str, names: Sequence[str], units: Sequence[str], values: Any) -> list[Column]:
    """Return the columns of an array (N, names).

    Example:
        >>> [each.head for each in columns_of("q", ["a", "b"], ["rad", "m"], np.zeros((3, 2)))]
        ['q a [rad]', 'q b [m]']
    """
    rows = np.asarray(values).reshape(-1, len(names)).T
    return [Column(f"{letter} {name}", unit, row) for name, unit, row in zip(names, units, rows, strict=True)]


def write_table(path: Path, columns: Sequence[Column]) -> None:
    """Write a table, whole or not at all; numbers have the digits that read back to the last bit.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_table(Path(folder, "x.csv"), [Column("time", "s", np.array([0.0, 0.1]))])
        ...     Path(folder, "x.csv").read_text().split()
        ['time', '[s]', '0.0', '0.1']
    """
    check_target(path)
    values = [each.values.tolist() if isinstance(each.values, np.ndarray) else each.values for each in columns]
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([each.head for each in columns])
        writer.writerows([x if isinstance(x, str) else repr(x) for x in row] for row in zip(*values, strict=True))
