"""Files of results: rows come in as cases end, in any order, and each case is in a file once.

A file holds columns, each with its role ("parameter", "result" or "own"), its kind (``values.Kind``) and its unit.
``opening`` has the kinds of files by their suffix.
"""

import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.errors import ModelError
from torsor.motion.sweeps.values import Row, kind_of, noun

FORMAT = "torsor sweep 1"


@dataclass(frozen=True)
class Column:
    """A column: its ``name``, ``role``, ``kind`` and ``unit``; the unit is empty if there is none or it is unknown."""

    name: str
    role: str
    kind: str
    unit: str = ""


# The columns of every file, before those of the study.
OWN_COLUMNS = (
    Column("case", "own", "number"),
    Column("digest", "own", "text"),
    Column("state", "own", "text"),
    Column("error", "own", "text"),
    Column("warning", "own", "text"),
    Column("elapsed", "own", "number", "s"),
)


class Store(ABC):
    """The file of a study, open for writing or for reading."""

    patience = 1.0  # s after which finished cases are written at the latest
    most = 256  # finished cases that are written at once
    most_columns = 1900  # SQLite allows 2,000, and no reader likes more

    def __init__(self, units: Mapping[str, str]) -> None:
        self.columns: dict[str, Column] = {each.name: each for each in OWN_COLUMNS}
        self._units = units

    @abstractmethod
    def known(self, number: int) -> str | None:
        """Return the digest of the case of a number, or None if it is not there."""

    @abstractmethod
    def _append(self, rows: Sequence[Row]) -> None:
        """Write rows, all or none, whose columns are known."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return how many cases are "done" and how many "failed"."""

    @abstractmethod
    def forget_failed(self) -> None:
        """Remove the rows of failed cases."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, case by case, None where there is none."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, all or none; a value of another kind than its column makes its case a failed one."""
        self._append([self._fitted(row) for row in rows])

    def _fitted(self, row: Row) -> Row:
        row = row._replace(values={name: _column_value(each) for name, each in row.values.items()})
        count = len({*self.columns, *row.values, *row.results})
        if count > self.most_columns:
            error = f"there would be {count} columns; allowed: {self.most_columns}; fix: return arrays"
            row = row._replace(results={}, error=row.error or error)
        for role, values in (("parameter", row.values), ("result", row.results)):
            for name, value in values.items():
                if value is None:
                    continue
                kind = kind_of(value)
                column = self.columns.setdefault(name, Column(name, role, kind, self._unit(name, row)))
                if column.kind != kind or column.role != role:
                    error = (
                        f"{role} {name!r} is {noun(kind)}; in other cases it is a {column.role}: {noun(column.kind)}"
                    )
                    kept = {} if role == "parameter" else row.values
                    return row._replace(values=kept, results={}, error=row.error or error)
        return row

    def _unit(self, name: str, row: Row) -> str:
        return self._units.get(name) or row.units.get(name, "")


class Writing:
    """The right to write to a file: one study at a time has it, and loses it when its process ends.

    It is a lock on an empty SQLite file beside the results, since SQLite knows how to lock files everywhere.
    """

    def __init__(self, path: Path) -> None:
        self._lock = path.with_name(f".{path.name}.lock")
        try:
            self._lock.touch()
        except OSError as error:
            found = f"it cannot be written ({error.strerror})"
            raise ModelError(found, where=str(path), fix="choose another place") from None
        before = self._lock.stat()
        self._connection = sqlite3.connect(self._lock, timeout=0.0, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode=MEMORY")
            self._connection.execute("BEGIN EXCLUSIVE")
            # Whoever had the lock may have removed the file since.
            is_mine = os.path.samestat(before, self._lock.stat())
        except (sqlite3.OperationalError, FileNotFoundError):
            is_mine = False
        if not is_mine:
            self._connection.close()
            raise ModelError("another study writes to it", where=str(path), fix="wait for it, or give another file")

    def end(self) -> None:
        """Give the right up."""
        self._lock.unlink(missing_ok=True)
        self._connection.close()


def check_subject(path: Path, found: str, wanted: str | None) -> None:
    """Raise ModelError if a file holds results of another function."""
    if wanted is not None and found != wanted:
        raise ModelError(f"it holds results of {found!r}, not of {wanted!r}", where=str(path), fix="give another file")


def _column_value(value: Any) -> Any:
    """Return a list of numbers as an array, and any other list as the text of a list.

    Example:
        >>> _column_value([1, 2]), _column_value(["left", "right"]), _column_value(3)
        (array([1., 2.]), '["left", "right"]', 3)
    """
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # rows of several lengths
        return json.dumps(value)
    return array.astype(float) if array.dtype.kind in "fiu" else json.dumps(value)
