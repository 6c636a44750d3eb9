"""Results in Parquet: a folder of files, each of which is written whole, as data sets of Parquet are.

A Parquet file cannot be continued. So finished cases become a file of the folder every half minute, or when there are
many; what was not written when a study is killed is computed again. Readers of Parquet take the folder as one table.
"""

import json
import secrets
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, missing
from torsor.base.files import replacing
from torsor.motion.sweeps.store import FORMAT, Column, Store, Writing, check_subject
from torsor.motion.sweeps.values import Row

_ABOUT = b"torsor"  # the key of the columns and of the function in the metadata of a file


class ParquetStore(Store):
    """A folder of Parquet files; ``subject`` is None for reading."""

    patience = 30.0
    most = 2000

    def __init__(self, path: Path, units: Mapping[str, str], subject: str | None) -> None:
        super().__init__(units)
        _pyarrow()
        if path.exists() and not path.is_dir():
            raise ModelError("it is a file", where=str(path), allowed="a folder of Parquet files")
        self._path, self._subject = path, subject
        self._writing = None if subject is None else Writing(path)
        try:
            if subject is not None:
                path.mkdir(exist_ok=True)
            self._known, self._states = self._scan()
        except BaseException:
            self.close()
            raise

    def _parts(self) -> list[Path]:
        return sorted(each for each in self._path.glob("*.parquet") if not each.name.startswith("."))

    def _scan(self) -> tuple["_Digests", dict[str, int]]:
        """Return the digests of all cases that are there, and how many are done and failed; learn the columns."""
        known, states = _Digests(), {"done": 0, "failed": 0}
        for part in self._parts():
            about = _about(part)
            check_subject(self._path, about["subject"], self._subject)
            for each in about["columns"]:
                self.columns.setdefault(each["name"], Column(**each))
            found = _parquet_columns(part, ["case", "digest", "state"])
            for number, digest, state in zip(*found, strict=True):
                known.add(int(number), digest)
                states[state] += 1
        return known, states

    def known(self, number: int) -> str | None:
        """Return the digest of the case of a number, or None if it is not there."""
        return self._known.get(number)

    def _append(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if self._known.get(row.number) is None]
        if not new:
            return
        values: dict[str, list[Any]] = {name: [] for name in self.columns}
        for row in new:
            own = {"case": row.number, "digest": row.digest, "state": row.state, "error": row.error}
            own |= {"warning": row.warning, "elapsed": row.elapsed}
            all_values = own | row.values | row.results
            for name, column in values.items():
                column.append(all_values.get(name))
        self._write(values, self._path / f"part-{sum(self._states.values()):09d}-{secrets.token_hex(3)}.parquet")
        for row in new:
            self._known.add(row.number, row.digest)
            self._states[row.state] += 1

    def _write(self, values: Mapping[str, list[Any]], path: Path) -> None:
        pyarrow, parquet = _pyarrow()
        columns = [self.columns[name] for name in values]
        about = {"format": FORMAT, "subject": self._subject, "columns": [vars(each) for each in columns]}
        fields = [
            pyarrow.field(each.name, _type(pyarrow, each), metadata={"unit": each.unit} if each.unit else None)
            for each in columns
        ]
        schema = pyarrow.schema(fields, metadata={_ABOUT: json.dumps(about)})
        arrays = [
            pyarrow.array([_parquet_value(each) for each in column], type=field.type)
            for column, field in zip(values.values(), fields, strict=True)
        ]
        with replacing(path) as part:
            parquet.write_table(pyarrow.table(arrays, schema=schema), part)

    def counts(self) -> dict[str, int]:
        """Return how many cases are "done" and how many "failed"."""
        return dict(self._states)

    def forget_failed(self) -> None:
        """Remove the rows of failed cases: files that have some are written again without them."""
        for part in self._parts():
            names = [each["name"] for each in _about(part)["columns"]]
            columns = dict(zip(names, _parquet_columns(part, names), strict=True))
            done = [index for index, state in enumerate(columns["state"]) if state == "done"]
            if len(done) == len(columns["state"]):
                continue
            if done:
                self._write({name: [column[index] for index in done] for name, column in columns.items()}, part)
            else:
                part.unlink()
        self._known, self._states = self._scan()

    def read(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, case by case."""
        found = list[tuple[Any, ...]]()
        kinds = [self.columns[name].kind for name in names]
        for part in self._parts():
            there = sorted({each["name"] for each in _about(part)["columns"]} & {*names, "case"})
            columns = dict(zip(there, _parquet_columns(part, there), strict=True))
            count = len(columns["case"])
            rows = zip(*(columns.get(name, [None] * count) for name in names), strict=True)
            found += zip(columns["case"], rows, strict=True)
        for _, row in sorted(found, key=lambda each: int(each[0])):
            yield tuple(_value(value, kind) for value, kind in zip(row, kinds, strict=True))

    def close(self) -> None:
        """Close the folder."""
        if self._writing is not None:
            self._writing.end()


class _Digests:
    """The digests of cases by their numbers, in eight bytes each: there may be very many.

    Example:
        >>> found = _Digests()
        >>> found.add(2, "00000000000000ff")
        >>> found.get(2), found.get(1), found.get(9)
        ('00000000000000ff', None, None)
    """

    def __init__(self) -> None:
        self._values = array("Q")

    def add(self, number: int, digest: str) -> None:
        """Keep the digest of a case."""
        missing = number + 1 - len(self._values)
        if missing > 0:
            self._values.frombytes(bytes(missing * self._values.itemsize))
        self._values[number] = int(digest, 16)

    def get(self, number: int) -> str | None:
        """Return the digest of a case, or None."""
        found = self._values[number] if number < len(self._values) else 0
        return f"{found:016x}" if found else None


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
        raise ModelError(f"no results of a sweep: {error}", where=str(part)) from None
    if about.get("format") != FORMAT:
        raise ModelError(f"its format is {about.get('format')!r}", where=str(part), allowed=FORMAT)
    return about


def _parquet_columns(part: Path, names: Sequence[str]) -> list[list[Any]]:
    """Return columns of a file as lists."""
    found = _pyarrow()[1].read_table(part, columns=list(names), partitioning=None)
    return [found.column(name).to_pylist() for name in names]


def _type(pyarrow: Any, column: Column) -> Any:
    if column.kind.startswith("array"):
        kind = pyarrow.float64()
        for _ in range(int(column.kind.removeprefix("array"))):
            kind = pyarrow.list_(kind)
        return kind
    if column.name == "case":
        return pyarrow.int64()
    return {"number": pyarrow.float64(), "truth": pyarrow.bool_(), "text": pyarrow.string()}[column.kind]


def _parquet_value(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _value(value: Any, kind: str) -> Any:
    """Return a value of Parquet as it was."""
    if value is None:
        return None
    if kind.startswith("array"):
        return np.array(value, dtype=float)
    return float(value) if kind == "number" else value
