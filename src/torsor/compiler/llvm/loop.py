"""LLVM code of the loop called by NumPy, which packs W states into blocks, computes them and unpacks the results.

For each array, NumPy passes a pointer and arbitrary strides in bytes between states, rows and columns. If the entries
of a state are contiguous, several entries of W states are loaded together and transposed in registers, inline for small
arrays and in a loop over tiles for large ones. Otherwise, entries are loaded one by one.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from torsor.compiler.llvm import ir
from torsor.compiler.llvm.rules import Scalar

# LLVM code that moves the entries of W states between rows (one per state) and blocks (one per entry).
#
# Rows are loaded in parts of a few entries, and parts of several rows are combined in one vector, which x86-64 does
# during the load. Then pairs of vectors are interleaved, within 128 bits if possible, with log2(c) shuffles per entry
# for parts of c entries. Unpacking uses the reverse order. Each vector records the row and entry of each of its
# numbers, so that incorrect shuffles are detected.

UNIT = 16  # bytes; all processors interleave vectors within units of this length in one instruction


class _Vector(NamedTuple):
    """The name of a vector, and the row and entry of each of its numbers."""

    name: str
    labels: tuple[tuple[int, int], ...]


class Transposer:
    """Writer of code that transposes W ``rows`` to or from a ``block`` (addresses); names begin with ``prefix``."""

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
            blocks = []
            for entry in range(length):
                loaded = self._load(self._at_block(first + entry), self._width, aligned=True)
                blocks.append(_Vector(loaded, tuple((row, entry) for row in range(self._width))))
            for vector in self._rows_of(blocks):
                for start in range(0, self._width, length):
                    labels = vector.labels[start : start + length]
                    assert labels == tuple((labels[0][0], entry) for entry in range(length))
                    part = self._shuffle(vector.name, "poison", self._width, range(start, start + length))
                    self._store(part, length, self._at(self._rows[labels[0][0]], first))

    def _columns(self, parts: list[str], length: int) -> list[_Vector]:
        """Return blocks from rows that were loaded in parts."""
        unit = self._unit
        # Rows are combined that the shuffles below do not bring together.
        if length <= unit:
            groups = [range(k, self._width, length) for k in range(length)]
        else:
            groups = [range(base + k, base + k + unit + 1, unit) for base in (0, 2 * unit) for k in range(unit)]
        vectors = []
        for rows in groups:
            labels = tuple((row, entry) for row in rows for entry in range(length))
            vectors.append(_Vector(self._side_by_side([parts[row] for row in rows], length), labels))
        step = 1
        while step < min(length, unit):
            vectors = self._stage(vectors, step, step)
            step *= 2
        return vectors if length <= unit else self._stage(vectors, unit, unit, gather=True)

    def _rows_of(self, blocks: list[_Vector]) -> list[_Vector]:
        vectors, step = blocks, 1
        while step < len(blocks):
            gather = self._is_long and step >= self._unit and len(blocks) == self._width
            vectors = self._stage(vectors, step, self._unit if gather else step, gather)
            step *= 2
        return vectors

    def _stage(self, vectors: list[_Vector], distance: int, unit: int, gather: bool = False) -> list[_Vector]:
        """Interleave pairs of vectors whose list indices differ by ``distance``."""
        result = list(vectors)
        for k in range(len(vectors)):
            if not k & distance:
                result[k], result[k + distance] = self._interleaved(vectors[k], vectors[k + distance], unit, gather)
        return result

    def _interleaved(self, a: _Vector, b: _Vector, unit: int, gather: bool) -> tuple[_Vector, _Vector]:
        """Return the even and the odd units of two vectors: alternating, or with ``gather``, first those of ``a``."""
        length, result = self._width, []
        for odd in (0, 1):
            starts = range(odd * unit, length, 2 * unit)
            sources = [0, length]
            pairs = product(sources, starts) if gather else product(starts, sources)
            picks = [first + second + k for first, second in pairs for k in range(unit)]
            both = a.labels + b.labels
            result.append(_Vector(self._shuffle(a.name, b.name, length, picks), tuple(both[k] for k in picks)))
        return result[0], result[1]

    def _side_by_side(self, parts: list[str], length: int) -> str:
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._shuffle(a, b, length, range(2 * length)) for a, b in pairs]
            length *= 2
        return parts[0]

    def _pack_one(self) -> None:
        value = "poison"
        for lane, row in enumerate(self._rows):
            number = self._put(f"load {self._scalar.name}, ptr {row}, align {self._scalar.size}")
            typed = f"{self._scalar.name} {number}"
            value = self._put(f"insertelement {self._vector(self._width)} {value}, {typed}, i64 {lane}")
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
        """Return the shuffle of numbers of a (indices from 0) and b (indices from ``length``)."""
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        kind = self._vector(length)
        return self._put(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")


def _parts(count: int, longest: int) -> list[tuple[int, int]]:
    """Return the first entry and length (a power of 2) of each part; a single last entry joins the previous part."""
    result, first = [], 0
    while first < count:
        length = 1 << (min(longest, count - first).bit_length() - 1)
        if length == 1 and first:
            first, length = first - 1, 2
        result.append((first, length))
        first += length
    return result


TILE = 4  # minimum number of entries that are transposed together
INLINE = 16  # maximum number of entries of a tile, and of an array moved without a loop
STACK = 65536  # bytes; larger buffers are allocated with malloc, because thread stacks are small


def write_loop(
    inputs: tuple[tuple[int, int], ...],
    outputs: tuple[tuple[int, int], ...],
    axes: tuple[int, ...],
    scalar: Scalar,
    width: int,
    pieces: int,
    calls: list[str],
    scratch: int,
) -> str:
    """Return the module with the functions ``loop``, called by NumPy, and ``run``, called by ``loop``.

    ``axes`` is the number of axes of each array for one state, inputs first; NumPy passes one stride per axis.
    ``calls`` computes a block of W states and needs ``scratch`` blocks of scratch memory. Threads that share a batch
    call the parts of ``run``: each prepares ``memory`` bytes once and computes its ``blocks`` there.
    """
    block = width * scalar.size
    declarations = "\n".join(f"declare void @piece.{k}(ptr, ptr, ptr)" for k in range(pieces))
    sizes = [*inputs, *outputs]
    count_in = sum(rows * columns for rows, columns in inputs)
    count_out = sum(rows * columns for rows, columns in outputs)
    heads: list[str] = []
    moves: dict[str, list[str]] = {"pack": [], "unpack": []}
    first_step, first_entry = len(sizes), 0
    for k, (rows, columns) in enumerate(sizes):
        if k == len(inputs):
            first_entry = 0
        heads.append(_array(k, rows, columns, axes[k], first_step, scalar))
        first_step += axes[k]
        buffer, move = ("%in", "pack") if k < len(inputs) else ("%out", "unpack")
        dense = _move_dense(k, move, rows * columns, scalar, width)
        moves[move].append(_move(k, move, dense, buffer, first_entry * block, rows, columns))
        first_entry += rows * columns
    moved = "".join(moves["pack"] + moves["unpack"])
    tiles = "".join(_tiles(move, scalar, width) for move in moves if f"@{move}.tiles(" in moved)
    align = max(64, block)
    sizes_of = [-(-count * block // align) * align for count in (count_in, count_out, scratch)]
    take, give = _memory(sum(sizes_of), align)
    code = {"take": take, "give": give, "calls": "\n".join(calls), "heads": "".join(heads), "tiles": tiles}
    code |= {move: "".join(lines) for move, lines in moves.items()}
    code |= {"pack_singles": _pack_one_by_one(scalar, width), "unpack_singles": _unpack_one_by_one(scalar, width)}
    sizes_in_bytes = {"memory": sum(sizes_of), "in_bytes": sizes_of[0], "out_bytes": sizes_of[1]}
    return ir("loop", declarations=declarations, width=width, **code, **sizes_in_bytes)


def _memory(size: int, align: int) -> tuple[str, str]:
    """Return the code that allocates the memory of all blocks (on the stack if small), and the code that frees it."""
    if size <= STACK:
        return f"  %in = alloca i8, i64 {max(size, 1)}, align {align}\n  br label %ready\nready:", ""
    take = f"""  %taken = call ptr @malloc(i64 {size + align})
  %exhausted = icmp eq ptr %taken, null
  br i1 %exhausted, label %abort, label %ready
abort:
  call void @llvm.trap() ; out of memory: a gufunc loop cannot raise an error
  unreachable
ready:
  %beyond = getelementptr i8, ptr %taken, i64 {align - 1}
  %in = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 {-align})"""
    return take, "  call void @free(ptr %taken)\n"


def _array(k: int, rows: int, columns: int, axes: int, first_step: int, scalar: Scalar) -> str:
    """Return the code that reads the pointer and strides of an array and checks whether its entries are contiguous."""

    def step(index: int, name: str) -> str:
        return f"""  %{name}p.{k} = getelementptr i64, ptr %steps, i64 {index}
  %{name}.{k} = load i64, ptr %{name}p.{k}
"""

    text = f"""  %base.p.{k} = getelementptr ptr, ptr %arrays, i64 {k}
  %base.{k} = load ptr, ptr %base.p.{k}
""" + step(k, "state")
    # A scalar has no stride and a vector has one; the values of missing strides are irrelevant.
    text += step(first_step, "row") if axes >= 1 else f"  %row.{k} = add i64 0, {scalar.size * columns}\n"
    text += step(first_step + 1, "column") if axes >= 2 else f"  %column.{k} = add i64 0, {scalar.size}\n"
    result, expected = (f"%column.{k}", scalar.size) if columns > 1 else ("0", 0)
    return f"""{text}  %dense.row.{k} = icmp eq i64 %row.{k}, {scalar.size * columns}
  %dense.column.{k} = icmp eq i64 {result}, {expected}
  %dense.{k} = and i1 %dense.row.{k}, %dense.column.{k}
"""


def _move_dense(k: int, move: str, count: int, scalar: Scalar, width: int) -> str:
    """Return the code that packs or unpacks an array in which the entries of a state are contiguous."""
    if count > INLINE:
        return f"  call void @{move}.tiles(ptr %from.{k}, i64 %state.{k}, i64 {count}, ptr %block.{k})"
    names = f"%from.{k}", f"%state.{k}", f"%block.{k}", f"row.{k}", f"move.{k}."
    return _transposed(move, count, scalar, width, *names)


def _transposed(
    move: str, count: int, scalar: Scalar, width: int, first: str, step: str, block: str, prefix: str, address: str
) -> str:
    """Return code that packs or unpacks ``count`` entries of W rows that are ``step`` bytes apart.

    Addresses are computed relative to every fourth row, because of the address modes of x86-64.
    """
    rows, lines = [first], []
    for row in range(1, width):
        base, steps = (rows[row - 4], 4) if row % 4 == 0 else (rows[row - row % 4], row % 4)
        lines.append(f"  %{prefix}.o{row} = mul i64 {step}, {steps}")
        lines.append(f"  %{prefix}.{row} = getelementptr i8, ptr {base}, i64 %{prefix}.o{row}")
        rows.append(f"%{prefix}.{row}")
    t = Transposer(scalar, rows, block, address)
    (t.pack if move == "pack" else t.unpack)(count)
    return "\n".join(lines + t.lines)


def _move(k: int, move: str, dense: str, buffer: str, offset: int, rows: int, columns: int) -> str:
    """Return the code that packs or unpacks an array; an input that does not vary between states is packed once."""
    once = (
        f"""  %fixed.{k} = icmp eq i64 %state.{k}, 0
  %later.{k} = icmp ne i64 %i, 0
  %skip.{k} = and i1 %fixed.{k}, %later.{k}
"""
        if move == "pack"
        else f"  %skip.{k} = icmp ne i64 0, 0\n"
    )
    distances = f"ptr %from.{k}, i64 %state.{k}, i64 {rows}, i64 %row.{k}, i64 {columns}, i64 %column.{k}"
    return f"""{once}  br i1 %skip.{k}, label %moved.{k}, label %move.{k}
move.{k}:
  %at.{k} = mul i64 %i, %state.{k}
  %from.{k} = getelementptr i8, ptr %base.{k}, i64 %at.{k}
  %block.{k} = getelementptr i8, ptr {buffer}, i64 {offset}
  %fast.{k} = and i1 %dense.{k}, %whole
  br i1 %fast.{k}, label %tiles.{k}, label %singles.{k}
tiles.{k}:
{dense}
  br label %moved.{k}
singles.{k}:
  call void @{move}.singles({distances}, ptr %block.{k}, i64 %lanes)
  br label %moved.{k}
moved.{k}:
"""


def write_movers(scalar: Scalar, width: int) -> str:
    """Return the functions that pack and unpack arrays by tile or by entry."""
    tiles = (_tiles(move, scalar, width) for move in ("pack", "unpack"))
    return "".join([_pack_one_by_one(scalar, width), _unpack_one_by_one(scalar, width), *tiles])


_SINGLES = "(ptr %array, i64 %state, i64 %rows, i64 %row, i64 %columns, i64 %column, ptr %block, i64 %lanes)"


def _pack_one_by_one(scalar: Scalar, width: int) -> str:
    vector = f"<{width} x {scalar.name}>"
    before = "  %count = mul i64 %rows, %columns\n  %top = sub i64 %lanes, 1\n"
    for lane in range(width):
        # Lanes beyond the last state repeat the last state.
        before += f"  %in.{lane} = icmp slt i64 {lane}, %lanes\n"
        before += f"  %l.{lane} = select i1 %in.{lane}, i64 {lane}, i64 %top\n"
        before += f"  %o.{lane} = mul i64 %l.{lane}, %state\n"
    body, value = "", "poison"
    for lane in range(width):
        body += f"  %p.{lane} = getelementptr i8, ptr %p, i64 %o.{lane}\n"
        body += f"  %x.{lane} = load {scalar.name}, ptr %p.{lane}, align 1\n"
        body += f"  %v.{lane} = insertelement {vector} {value}, {scalar.name} %x.{lane}, i64 {lane}\n"
        value = f"%v.{lane}"
    body += f"  store {vector} {value}, ptr %b, align {width * scalar.size}\n  br label %after"
    text = ir("entries", before=before, block=width * scalar.size, body=body)
    return f"define internal void @pack.singles{_SINGLES} noinline {{\n{text}}}"


def _unpack_one_by_one(scalar: Scalar, width: int) -> str:
    body = f"""  br label %lane
lane:
  %l = phi i64 [ 0, %body ], [ %l.next, %lane ]
  %o = mul i64 %l, %state
  %q = getelementptr i8, ptr %p, i64 %o
  %s = getelementptr {scalar.name}, ptr %b, i64 %l
  %x = load {scalar.name}, ptr %s
  store {scalar.name} %x, ptr %q, align 1
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %lanes
  br i1 %l.more, label %lane, label %after"""
    before = "  %count = mul i64 %rows, %columns\n"
    text = ir("entries", before=before, block=width * scalar.size, body=body)
    return f"define internal void @unpack.singles{_SINGLES} noinline {{\n{text}}}"


def _tiles(move: str, scalar: Scalar, width: int) -> str:
    """Return the function that packs or unpacks large arrays by tile."""
    # Results are written in runs with the length of a vector, which is a full cache line with AVX-512.
    tile = TILE if move == "pack" else max(width, TILE)
    body = _transposed(move, tile, scalar, width, "%p", "%state", "%b", "row", "")
    text = ir("tiles", tile=tile, size=scalar.size, block=width * scalar.size, body=body)
    return f"define internal void @{move}.tiles(ptr %array, i64 %state, i64 %count, ptr %block) noinline {{\n{text}}}"
