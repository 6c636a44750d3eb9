"""Results files, to which rows are written as cases end, in any order; each case is stored once.

A file has columns with a role ("parameter", "result" or "own"), a kind (``cases.Kind``) and a unit. ``KINDS`` maps
suffixes to file kinds.
"""

import io
import json
import os
import secrets
import sqlite3
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, missing
from torsor.base.files import check_name, replacing
from torsor.motion.sweeps.cases import Row, kind_of, noun
from torsor.motion.sweeps.fingerprint import check_code

FORMAT = "torsor sweep 1"


@dataclass(frozen=True)
class Column:
    """A column: ``name``, ``role``, ``kind`` and ``unit``, which is empty if there is none or it is unknown."""

    name: str
    role: str
    kind: str
    unit: str = ""


# Columns of every file, before those of the study.
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

    patience = 1.0  # longest time (s) until finished cases are written
    most = 256  # number of finished cases at which they are written immediately
    most_columns = 1900  # SQLite allows 2,000

    def __init__(self, units: Mapping[str, str]) -> None:
        self.columns: dict[str, Column] = {column.name: column for column in OWN_COLUMNS}
        self._units = units
        self._writing: Writing | None = None

    @abstractmethod
    def known(self, number: int) -> str | None:
        """Return the digest of a case by number, or None if it is not stored."""

    @abstractmethod
    def _append(self, rows: Sequence[Row]) -> None:
        """Write rows with known columns, either all or none."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return the numbers of "done" and "failed" cases."""

    @abstractmethod
    def forget_failed(self) -> None:
        """Remove the rows of failed cases."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the named columns, case by case, with None for missing values."""

    def close(self) -> None:
        """Close the file."""
        if self._writing is not None:
            self._writing.end()

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, either all or none; a case fails if a value does not match the kind of its column."""
        self._append([self._fitted(row) for row in rows])

    def _fitted(self, row: Row) -> Row:
        row = row._replace(values={name: _column_value(value) for name, value in row.values.items()})
        count = len({*self.columns, *row.values, *row.results})
        if count > self.most_columns:
            error = f"there would be {count} columns; allowed: {self.most_columns}; fix: return arrays"
            row = row._replace(results={}, error=row.error or error)
        for role, values in (("parameter", row.values), ("result", row.results)):
            for name, value in values.items():
                if value is None:
                    continue
                kind = kind_of(value)
                unit = self._units.get(name) or row.units.get(name, "")
                column = self.columns.setdefault(name, Column(name, role, kind, unit))
                if column.kind != kind or column.role != role:
                    other = f"in other cases it is a {column.role} and {noun(column.kind)}"
                    error = f"{role} {name!r} is {noun(kind)}; {other}"
                    kept = {} if role == "parameter" else row.values
                    return row._replace(values=kept, results={}, error=row.error or error)
        return row


class Writing:
    """An exclusive lock for writing to a file, which a study holds until its process ends.

    It locks an empty SQLite file next to the results, because SQLite can lock files on all systems.
    """

    def __init__(self, path: Path) -> None:
        self._lock = path.with_name(f".{path.name}.lock")
        try:
            self._lock.touch()
        except OSError as error:
            message = f"it cannot be written ({error.strerror})"
            raise ModelError(message, where=str(path), fix="choose another place") from None
        before = self._lock.stat()
        self._connection = sqlite3.connect(self._lock, timeout=0.0, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode=MEMORY")
            self._connection.execute("BEGIN EXCLUSIVE")
            # The previous lock owner may have removed the file in the meantime.
            is_mine = os.path.samestat(before, self._lock.stat())
        except (sqlite3.OperationalError, FileNotFoundError):
            is_mine = False
        if not is_mine:
            self._connection.close()
            raise ModelError("another study is writing to it", where=str(path), fix="wait, or choose another file")

    def end(self) -> None:
        """Release the lock."""
        self._lock.unlink(missing_ok=True)
        self._connection.close()


def check_subject(path: Path, found: str, wanted: str | None) -> None:
    """Raise ModelError if a file contains results of a different function."""
    if wanted is not None and found != wanted:
        what = f"it contains results of {found!r}, not of {wanted!r}"
        raise ModelError(what, where=str(path), fix="choose another file")


def _column_value(value: Any) -> Any:
    """Return a list of numbers as an array, any other list as JSON text, and other values unchanged."""
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        return json.dumps(value)
    return array.astype(float) if array.dtype.kind in "fiu" else json.dumps(value)


# Results in an SQLite file with one column per parameter and result. Arrays are stored in NumPy's .npy format.

_TYPES = {"number": "REAL", "truth": "INTEGER", "text": "TEXT"}


class SqliteStore(Store):
    """An SQLite file, or a table in memory if ``path`` is None; ``subject`` is None for reading."""

    def __init__(self, path: Path | None, units: Mapping[str, str], subject: str | None, code: str = "") -> None:
        super().__init__(units)
        if path is not None and path.is_dir():
            raise ModelError("it is a folder", where=str(path), allowed="a file")
        self._path, self._writing = path, None if path is None or subject is None else Writing(path)
        # A study killed while writing leaves a journal; the next process that opens the file applies it.
        journal = None if path is None else path.with_name(f"{path.name}-journal")
        mode = "rwc" if subject is not None else "rw" if journal is not None and journal.exists() else "ro"
        place = "file::memory:" if path is None else f"{path.resolve().as_uri()}?mode={mode}"
        self._file = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False, timeout=60.0)
        try:
            self._begin(subject, code)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise ModelError(f"it is not a results file: {error}", where=str(path)) from None
            raise

    def _begin(self, subject: str | None, code: str) -> None:
        execute = self._file.execute
        if subject is not None and not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            definitions = ", ".join(f"{_quoted(column.name)} {_TYPES[column.kind]}" for column in OWN_COLUMNS[1:])
            with self._transaction():
                execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)")
                execute("CREATE TABLE columns (name TEXT PRIMARY KEY, role TEXT, kind TEXT, unit TEXT, stored TEXT)")
                execute(f'CREATE TABLE cases ("case" INTEGER PRIMARY KEY, {definitions})')
                facts = {"format": FORMAT, "subject": subject, "code": code}
                self._file.executemany("INSERT INTO about VALUES (?, ?)", facts.items())
        facts = dict(execute("SELECT key, value FROM about"))
        if facts.get("format") != FORMAT:
            raise ModelError(f"its format is {facts.get('format')!r}", where=str(self._path), allowed=FORMAT)
        check_subject(self._path or Path(), facts.get("subject", ""), subject)
        if subject is not None:
            check_code(self._path or Path(), subject, facts.get("code", ""), code)
        stored_columns = execute("SELECT name, role, kind, unit, stored FROM columns ORDER BY rowid").fetchall()
        self.columns |= {row[0]: Column(*row[:4]) for row in stored_columns}
        # Column names in the SQLite table, because SQLite does not distinguish "T" from "t".
        self._stored = {column.name: column.name for column in OWN_COLUMNS} | {
            column[0]: column[4] for column in stored_columns
        }

    def known(self, number: int) -> str | None:
        """Return the digest of a case by number, or None if it is not stored."""
        result = self._file.execute('SELECT digest FROM cases WHERE "case" = ?', (number,)).fetchone()
        return None if result is None else str(result[0])

    def _append(self, rows: Sequence[Row]) -> None:
        try:
            with self._transaction():
                for name in [column for column in self.columns if column not in self._stored]:
                    self._add(self.columns[name])
                for row in rows:
                    values = {name: value for name, value in row.cells.items() if value is not None}
                    names, marks = self._names(values), ", ".join("?" * len(values))
                    # The number is the primary key, so stored cases do not change.
                    statement = f"INSERT OR IGNORE INTO cases ({names}) VALUES ({marks})"
                    self._file.execute(statement, [_sqlite_value(value) for value in values.values()])
        except (sqlite3.Error, OverflowError) as error:
            fix = "free disk space or write elsewhere; `resume=True` continues"
            message = f"the results cannot be written: {error}"
            raise ModelError(message, where=str(self._path or "sweep"), fix=fix) from None

    def _names(self, names: Iterable[str]) -> str:
        return ", ".join(_quoted(self._stored[name]) for name in names)

    def _add(self, column: Column) -> None:
        taken, stored = {name.lower() for name in self._stored.values()}, column.name.replace("\0", "")
        while stored.lower() in taken:
            stored += "_"
        self._file.execute(f"ALTER TABLE cases ADD COLUMN {_quoted(stored)} {_TYPES.get(column.kind, 'BLOB')}")
        facts = column.name, column.role, column.kind, column.unit, stored
        self._file.execute("INSERT INTO columns VALUES (?, ?, ?, ?, ?)", facts)
        self._stored[column.name] = stored

    def counts(self) -> dict[str, int]:
        """Return the numbers of "done" and "failed" cases."""
        return {"done": 0, "failed": 0} | dict(self._file.execute("SELECT state, count(*) FROM cases GROUP BY state"))

    def forget_failed(self) -> None:
        """Remove the rows of failed cases."""
        self._file.execute("DELETE FROM cases WHERE state = 'failed'")

    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the named columns, case by case."""
        kinds = [self.columns[name].kind for name in names]
        try:
            for row in self._file.execute(f'SELECT {self._names(names)} FROM cases ORDER BY "case"'):
                yield tuple(map(_restored, row, kinds))
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            message = f"its values are damaged: {str(error).splitlines()[0]}"
            raise ModelError(message, where=str(self._path or "results")) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one atomic transaction."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._file.in_transaction:  # if the disk is full, SQLite has already rolled back
                self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")


def _quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _sqlite_value(value: Any) -> Any:
    """Return a value in a type that SQLite accepts."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (np.ndarray, list)):
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(value, dtype=float), allow_pickle=False)
        return buffer.getvalue()
    return value


def _restored(value: Any, kind: str) -> Any:
    """Return the original of a stored value; arrays are bytes in SQLite and lists in Parquet."""
    if value is None or kind == "text":
        return value
    if kind.startswith("array"):
        return np.array(value, dtype=float) if isinstance(value, list) else np.load(io.BytesIO(value))
    return float(value) if kind == "number" else bool(value)


# Results in Parquet: a data set, which is a folder of files that are each written atomically.

# # A Parquet file cannot be appended to. Finished cases are therefore written to a new file in the folder every half
# minute, or earlier if there are many. If a study is killed, unwritten cases are computed again. Parquet readers treat
# the folder as one table.

_ABOUT = b"torsor"  # metadata key of the format, function and columns


class ParquetStore(Store):
    """A folder of Parquet files; ``subject`` is None for reading."""

    patience = 30.0
    most = 2000

    def __init__(self, path: Path, units: Mapping[str, str], subject: str | None, code: str = "") -> None:
        super().__init__(units)
        _pyarrow()
        if path.exists() and not path.is_dir():
            raise ModelError("it is a file", where=str(path), allowed="a folder of Parquet files")
        self._path, self._subject, self._code = path, subject, code
        self._codes = set[str]()  # fingerprints of the parts
        self._writing = None if subject is None else Writing(path)
        try:
            if subject is not None:
                path.mkdir(exist_ok=True)
            self._known, self._states = self._scan()
            if subject is not None:
                others = sorted(self._codes - {code}, reverse=True)  # older parts have none ("", sorted last)
                check_code(path, subject, others[0] if others else code, code)
        except BaseException:
            self.close()
            raise

    def _parts(self) -> list[Path]:
        return sorted(file for file in self._path.glob("*.parquet") if not file.name.startswith("."))

    def _scan(self) -> tuple["_Digests", dict[str, int]]:
        """Return the digests of all stored cases and the counts of done and failed ones; update the columns."""
        known, states = _Digests(), {"done": 0, "failed": 0}
        for part in self._parts():
            about = _about(part)
            check_subject(self._path, about["subject"], self._subject)
            self._codes.add(about.get("code", ""))
            for fields in about["columns"]:
                self.columns.setdefault(fields["name"], Column(**fields))
            lists = _parquet_columns(part, ["case", "digest", "state"])
            for number, digest, state in zip(*lists, strict=True):
                known.add(int(number), digest)
                states[state] += 1
        return known, states

    def known(self, number: int) -> str | None:
        """Return the digest of a case by number, or None if it is not stored."""
        return self._known.get(number)

    def _append(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if self._known.get(row.number) is None]
        if not new:
            return
        values: dict[str, list[Any]] = {name: [] for name in self.columns}
        for row in new:
            cells = row.cells
            for name, column in values.items():
                column.append(cells.get(name))
        name = f"part-{sum(self._states.values()):09d}-{secrets.token_hex(3)}.parquet"
        self._write(values, self._path / name, self._code)
        for row in new:
            self._known.add(row.number, row.digest)
            self._states[row.state] += 1

    def _write(self, values: Mapping[str, list[Any]], path: Path, code: str) -> None:
        pyarrow, parquet = _pyarrow()
        columns = [self.columns[name] for name in values]
        about = {"format": FORMAT, "subject": self._subject, "columns": [vars(column) for column in columns]}
        about["code"] = code
        fields = [
            pyarrow.field(column.name, _type(pyarrow, column), metadata={"unit": column.unit} if column.unit else None)
            for column in columns
        ]
        schema = pyarrow.schema(fields, metadata={_ABOUT: json.dumps(about)})
        arrays = [
            pyarrow.array([entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in column], field.type)
            for column, field in zip(values.values(), fields, strict=True)
        ]
        with replacing(path) as part:
            parquet.write_table(pyarrow.table(arrays, schema=schema), part)

    def counts(self) -> dict[str, int]:
        """Return the numbers of "done" and "failed" cases."""
        return dict(self._states)

    def forget_failed(self) -> None:
        """Remove the rows of failed cases by rewriting the files that contain them."""
        for part in self._parts():
            about = _about(part)
            names = [fields["name"] for fields in about["columns"]]
            columns = dict(zip(names, _parquet_columns(part, names), strict=True))
            done = [index for index, state in enumerate(columns["state"]) if state == "done"]
            if len(done) == len(columns["state"]):
                continue
            if done:
                kept = {name: [column[index] for index in done] for name, column in columns.items()}
                self._write(kept, part, about.get("code", ""))
            else:
                part.unlink()
        self._known, self._states = self._scan()

    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the named columns, case by case."""
        numbered_rows = list[tuple[Any, ...]]()
        kinds = [self.columns[name].kind for name in names]
        for part in self._parts():
            there = sorted({fields["name"] for fields in _about(part)["columns"]} & {*names, "case"})
            columns = dict(zip(there, _parquet_columns(part, there), strict=True))
            count = len(columns["case"])
            rows = zip(*(columns.get(name, [None] * count) for name in names), strict=True)
            numbered_rows += zip(columns["case"], rows, strict=True)
        for _, row in sorted(numbered_rows, key=lambda each: int(each[0])):
            yield tuple(map(_restored, row, kinds))


class _Digests:
    """Compact table of case digests by number, with eight bytes per case.

    Example:
        >>> digests = _Digests()
        >>> digests.add(2, "00000000000000ff")
        >>> digests.get(2), digests.get(1), digests.get(9)
        ('00000000000000ff', None, None)
    """

    def __init__(self) -> None:
        self._values = array("Q")

    def add(self, number: int, digest: str) -> None:
        """Store the digest of a case."""
        missing = number + 1 - len(self._values)
        if missing > 0:
            self._values.frombytes(bytes(missing * self._values.itemsize))
        self._values[number] = int(digest, 16)

    def get(self, number: int) -> str | None:
        """Return the digest of a case, or None."""
        result = self._values[number] if number < len(self._values) else 0
        return f"{result:016x}" if result else None


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing("Parquet files need pyarrow", "parquet", instead="write .sqlite") from None
    return pyarrow, parquet


def _about(part: Path) -> Any:
    """Return the format, the function and the columns of a file."""
    pyarrow, parquet = _pyarrow()
    try:
        about = json.loads((parquet.read_schema(part).metadata or {})[_ABOUT])
    except (KeyError, ValueError, pyarrow.ArrowException) as error:
        raise ModelError(f"it is not a results file: {error}", where=str(part)) from None
    if about.get("format") != FORMAT:
        raise ModelError(f"its format is {about.get('format')!r}", where=str(part), allowed=FORMAT)
    return about


def _parquet_columns(part: Path, names: Sequence[str]) -> list[list[Any]]:
    """Return columns of a file as lists."""
    result = _pyarrow()[1].read_table(part, columns=list(names), partitioning=None)
    return [result.column(name).to_pylist() for name in names]


def _type(pyarrow: Any, column: Column) -> Any:
    if column.kind.startswith("array"):
        kind = pyarrow.float64()
        for _ in range(int(column.kind.removeprefix("array"))):
            kind = pyarrow.list_(kind)
        return kind
    if column.name == "case":
        return pyarrow.int64()
    return {"number": pyarrow.float64(), "truth": pyarrow.bool_(), "text": pyarrow.string()}[column.kind]


# Kinds of results files by suffix.

_Kind = Callable[[Path, Mapping[str, str], str | None, str], Store]
KINDS: dict[str, _Kind] = dict.fromkeys((".sqlite", ".sqlite3", ".db"), SqliteStore) | {".parquet": ParquetStore}


def new_store(path: Path | None, subject: str, units: Mapping[str, str], resume: bool, code: str) -> Store:
    """Open a results file for writing (None: a table in memory). With ``resume``, continue an existing file.

    ``code`` is the fingerprint of the function or problem, which a continued file should match.
    """
    if path is None:
        return SqliteStore(None, units, subject)
    kind = _kind(path)
    check_name(path)
    if path.exists() and not resume:
        fix = "use `resume=True` to continue it, or choose another file"
        raise ModelError("the file already has results", where=str(path), fix=fix)
    if not path.parent.is_dir():
        raise ModelError("its folder does not exist", where=str(path), fix="create the folder first")
    return kind(path, units, subject, code)


def open_store(path: Path) -> Store:
    """Open a results file for reading, even while it is being written."""
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return kind(path, {}, None, "")


def _kind(path: Path) -> _Kind:
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=str(path), allowed=", ".join(KINDS))
    return KINDS[path.suffix.lower()]
