"""LLVM code that moves the entries of W states between rows, one for each state, and blocks, one for each entry.

Rows are loaded in parts of a few entries, and parts of several rows are put side by side in one vector, which x86-64
does while it loads. Then pairs of vectors are interleaved, within 128 bits as far as possible: in parts of c entries,
log2(c) shuffles for each entry. The way back does the same in the other order. Each vector knows which entry of which
row its numbers are, so that a wrong shuffle cannot go unnoticed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torsor.compiler.llvm.rules import Scalar

UNIT = 16  # bytes: every processor interleaves vectors within units of this length in one instruction


class _Vector(NamedTuple):
    """The name of a vector, and the row and the entry of each of its numbers."""

    name: str
    labels: tuple[tuple[int, int], ...]


class Transposer:
    """Writes the code for W ``rows`` and a ``block``, given by their addresses; names in it begin with ``prefix``."""

    def __init__(self, scalar: Scalar, rows: Sequence[str], block: str, prefix: str = ""):
        self.lines: list[str] = []
        self._scalar, self._rows, self._block = scalar, rows, block
        self._width, self._prefix, self._next = len(rows), prefix, 0
        self._unit = min(UNIT // scalar.size, self._width)
        self._is_long = self._width == 4 * self._unit  # vectors of 512 bits

    def pack(self, count: int) -> None:
        """Copy the first ``count`` entries of all rows to blocks."""
        if count == 1:
            self._pack_one()
            return
        for first, length in _parts(count, 2 * self._unit if self._is_long else self._unit):
            parts = [self._load(self._at(row, first), length) for row in self._rows]
            for vector in self._columns(parts, length):
                row, entry = vector.labels[0]
                assert vector.labels == tuple((k, entry) for k in range(self._width)) and row == 0
                self._store(vector.name, self._width, self._at_block(first + entry), aligned=True)

    def unpack(self, count: int) -> None:
        """Copy blocks to the first ``count`` entries of all rows."""
        for first, length in _parts(count, min(self._width, 4 * self._unit)):
            blocks = [
                _Vector(
                    self._load(self._at_block(first + entry), self._width, aligned=True),
                    tuple((row, entry) for row in range(self._width)),
                )
                for entry in range(length)
            ]
            for vector in self._rows_of(blocks):
                for start in range(0, self._width, length):
                    labels = vector.labels[start : start + length]
                    assert labels == tuple((labels[0][0], entry) for entry in range(length))
                    part = self._shuffle(vector.name, "poison", self._width, range(start, start + length))
                    self._store(part, length, self._at(self._rows[labels[0][0]], first))

    def _columns(self, parts: list[str], length: int) -> list[_Vector]:
        """Return blocks for rows that were loaded in parts."""
        unit = self._unit
        # Rows side by side are those that the shuffles below do not bring together.
        if length <= unit:
            groups = [range(k, self._width, length) for k in range(length)]
        else:
            groups = [range(base + k, base + k + unit + 1, unit) for base in (0, 2 * unit) for k in range(unit)]
        vectors = [
            _Vector(
                self._side_by_side([parts[row] for row in rows], length),
                tuple((row, entry) for row in rows for entry in range(length)),
            )
            for rows in groups
        ]
        step = 1
        while step < min(length, unit):
            vectors = self._stage(vectors, step, step)
            step *= 2
        return vectors if length <= unit else self._stage(vectors, unit, unit, gather=True)

    def _rows_of(self, blocks: list[_Vector]) -> list[_Vector]:
        """Return vectors of parts of rows."""
        vectors, step = blocks, 1
        while step < len(blocks):
            gather = self._is_long and step >= self._unit and len(blocks) == self._width
            vectors = self._stage(vectors, step, self._unit if gather else step, gather)
            step *= 2
        return vectors

    def _stage(self, vectors: list[_Vector], distance: int, unit: int, gather: bool = False) -> list[_Vector]:
        """Interleave pairs of vectors whose numbers in the list differ by ``distance``."""
        found = list(vectors)
        for k in range(len(vectors)):
            if not k & distance:
                found[k], found[k + distance] = self._interleaved(vectors[k], vectors[k + distance], unit, gather)
        return found

    def _interleaved(self, a: _Vector, b: _Vector, unit: int, gather: bool) -> tuple[_Vector, _Vector]:
        """Return the even and the odd units of two vectors: unit by unit from both, or those of the first first."""
        length, found = self._width, []
        for odd in (0, 1):
            starts = range(odd * unit, length, 2 * unit)
            pairs = (
                [(source, start) for source in (0, length) for start in starts]
                if gather
                else [(source, start) for start in starts for source in (0, length)]
            )
            picks = [source + start + k for source, start in pairs for k in range(unit)]
            both = a.labels + b.labels
            found.append(_Vector(self._shuffle(a.name, b.name, length, picks), tuple(both[k] for k in picks)))
        return found[0], found[1]

    def _side_by_side(self, parts: list[str], length: int) -> str:
        while len(parts) > 1:
            parts = [
                self._shuffle(a, b, length, range(2 * length)) for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            length *= 2
        return parts[0]

    def _pack_one(self) -> None:
        value = "poison"
        for lane, row in enumerate(self._rows):
            number = self._put(f"load {self._scalar.name}, ptr {row}, align {self._scalar.size}")
            value = self._put(
                f"insertelement {self._vector(self._width)} {value}, {self._scalar.name} {number}, i64 {lane}"
            )
        self._store(value, self._width, self._at_block(0), aligned=True)

    def _at_block(self, entry: int) -> str:
        return self._at(self._block, entry * self._width)

    def _at(self, address: str, number: int) -> str:
        return self._put(f"getelementptr {self._scalar.name}, ptr {address}, i64 {number}") if number else address

    def _vector(self, length: int) -> str:
        return f"<{length} x {self._scalar.name}>"

    def _put(self, instruction: str) -> str:
        self._next += 1
        self.lines.append(f"  %{self._prefix}t{self._next} = {instruction}")
        return f"%{self._prefix}t{self._next}"

    def _load(self, address: str, length: int, aligned: bool = False) -> str:
        align = self._scalar.size * (length if aligned else 1)
        return self._put(f"load {self._vector(length)}, ptr {address}, align {align}")

    def _store(self, value: str, length: int, address: str, aligned: bool = False) -> None:
        align = self._scalar.size * (length if aligned else 1)
        self.lines.append(f"  store {self._vector(length)} {value}, ptr {address}, align {align}")

    def _shuffle(self, a: str, b: str, length: int, picks: Sequence[int]) -> str:
        """Return numbers of a, counted from 0, and of b, counted from ``length``."""
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        kind = self._vector(length)
        return self._put(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")


def _parts(count: int, longest: int) -> list[tuple[int, int]]:
    """Return the first entry and the length of parts, powers of 2 of at least 2 where ``count`` allows it.

    A single last entry is moved with the one before it.

    Example:
        >>> _parts(11, 4)
        [(0, 4), (4, 4), (8, 2), (9, 2)]
    """
    found, first = [], 0
    while first < count:
        length = 1 << (min(longest, count - first).bit_length() - 1)
        if length == 1 and first:
            first, length = first - 1, 2
        found.append((first, length))
        first += length
    return found
