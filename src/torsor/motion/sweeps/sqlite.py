"""Results in an SQLite file, with a column for each parameter and result; arrays are in NumPy's format (.npy)."""

import io
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.errors import ModelError
from torsor.motion.sweeps.store import FORMAT, OWN_COLUMNS, Column, Store, Writing, check_subject
from torsor.motion.sweeps.values import Row

_TYPES = {"number": "REAL", "truth": "INTEGER", "text": "TEXT"}


class SqliteStore(Store):
    """An SQLite file, or a table in memory if ``path`` is None; ``subject`` is None for reading."""

    def __init__(self, path: Path | None, units: Mapping[str, str], subject: str | None) -> None:
        super().__init__(units)
        if path is not None and path.is_dir():
            raise ModelError("it is a folder", where=str(path), allowed="a file")
        self._path, self._writing = path, None if path is None or subject is None else Writing(path)
        # A study that was killed while it wrote leaves a journal, which the next one who opens the file works off.
        journal = None if path is None else path.with_name(f"{path.name}-journal")
        mode = "rwc" if subject is not None else "rw" if journal is not None and journal.exists() else "ro"
        place = "file::memory:" if path is None else f"{path.resolve().as_uri()}?mode={mode}"
        self._file = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False, timeout=60.0)
        try:
            self._begin(subject)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise ModelError(f"no results of a sweep: {error}", where=str(path)) from None
            raise

    def _begin(self, subject: str | None) -> None:
        execute = self._file.execute
        if subject is not None and not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            own = ", ".join(f"{_quoted(each.name)} {_TYPES[each.kind]}" for each in OWN_COLUMNS[1:])
            with self._transaction():
                execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)")
                execute("CREATE TABLE columns (name TEXT PRIMARY KEY, role TEXT, kind TEXT, unit TEXT, stored TEXT)")
                execute(f'CREATE TABLE cases ("case" INTEGER PRIMARY KEY, {own})')
                facts = {"format": FORMAT, "subject": subject}
                self._file.executemany("INSERT INTO about VALUES (?, ?)", facts.items())
        facts = dict(execute("SELECT key, value FROM about"))
        if facts.get("format") != FORMAT:
            raise ModelError(f"its format is {facts.get('format')!r}", where=str(self._path), allowed=FORMAT)
        check_subject(self._path or Path(), facts.get("subject", ""), subject)
        found = execute("SELECT name, role, kind, unit, stored FROM columns ORDER BY rowid").fetchall()
        self.columns |= {each[0]: Column(*each[:4]) for each in found}
        # The names in the table: SQLite takes "T" and "t" for the same.
        self._stored = {each.name: each.name for each in OWN_COLUMNS} | {each[0]: each[4] for each in found}

    def known(self, number: int) -> str | None:
        """Return the digest of the case of a number, or None if it is not there."""
        found = self._file.execute('SELECT digest FROM cases WHERE "case" = ?', (number,)).fetchone()
        return None if found is None else str(found[0])

    def _append(self, rows: Sequence[Row]) -> None:
        try:
            self._insert(rows)
        except (sqlite3.Error, OverflowError) as error:
            fix = "free space on the disk, or write elsewhere; `resume=True` goes on"
            found = f"the results cannot be written: {error}"
            raise ModelError(found, where=str(self._path or "sweep"), fix=fix) from None

    def _insert(self, rows: Sequence[Row]) -> None:
        with self._transaction():
            for name in [each for each in self.columns if each not in self._stored]:
                self._add(self.columns[name])
            for row in rows:
                own = (row.number, row.digest, row.state, row.error, row.warning, row.elapsed)
                values = dict(zip((each.name for each in OWN_COLUMNS), own, strict=True)) | row.values | row.results
                values = {name: value for name, value in values.items() if value is not None}
                names, marks = self._names(values), ", ".join("?" * len(values))
                # The number is the primary key: a case that is there already stays as it is.
                text = f"INSERT OR IGNORE INTO cases ({names}) VALUES ({marks})"
                self._file.execute(text, [_sqlite_value(each) for each in values.values()])

    def _names(self, names: Iterable[str]) -> str:
        return ", ".join(_quoted(self._stored[each]) for each in names)

    def _add(self, column: Column) -> None:
        taken, stored = {each.lower() for each in self._stored.values()}, column.name.replace("\0", "")
        while stored.lower() in taken:
            stored += "_"
        self._file.execute(f"ALTER TABLE cases ADD COLUMN {_quoted(stored)} {_TYPES.get(column.kind, 'BLOB')}")
        facts = column.name, column.role, column.kind, column.unit, stored
        self._file.execute("INSERT INTO columns VALUES (?, ?, ?, ?, ?)", facts)
        self._stored[column.name] = stored

    def counts(self) -> dict[str, int]:
        """Return how many cases are "done" and how many "failed"."""
        return {"done": 0, "failed": 0} | dict(self._file.execute("SELECT state, count(*) FROM cases GROUP BY state"))

    def forget_failed(self) -> None:
        """Remove the rows of failed cases."""
        self._file.execute("DELETE FROM cases WHERE state = 'failed'")

    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, case by case."""
        kinds = [self.columns[name].kind for name in names]
        try:
            for row in self._file.execute(f'SELECT {self._names(names)} FROM cases ORDER BY "case"'):
                yield tuple(_value_from_sqlite(value, kind) for value, kind in zip(row, kinds, strict=True))
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            found = f"its values are damaged: {str(error).splitlines()[0]}"
            raise ModelError(found, where=str(self._path or "results")) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._writing is not None:
            self._writing.end()

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._file)


class _Transaction:
    """A block that is written as a whole or not at all."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._file.execute("COMMIT")
        elif self._file.in_transaction:  # where the disk is full, SQLite has rolled it back
            self._file.execute("ROLLBACK")


def _quoted(name: str) -> str:
    """Return a name as SQL has it, whatever is in it.

    Example:
        >>> _quoted("left knee")
        '"left knee"'
    """
    return '"' + name.replace('"', '""') + '"'


def _sqlite_value(value: Any) -> Any:
    """Return a value as SQLite takes it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (np.ndarray, list)):
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(value, dtype=float), allow_pickle=False)
        return buffer.getvalue()
    return value


def _value_from_sqlite(value: Any, kind: str) -> Any:
    """Return a value of SQLite as it was."""
    if value is None:
        return None
    if kind == "truth":
        return bool(value)
    if kind.startswith("array"):
        return np.load(io.BytesIO(value), allow_pickle=False)
    return float(value) if kind == "number" else value
