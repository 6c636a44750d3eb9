"""LLVM code of a loop over spline nodes that computes W cases together.

Each case is one lane of the vectors, so sums over the nodes need no operations between lanes, and only the sums leave
the loop. At a node, each profile depends on P control points with the weights B (D, P) of its value and derivatives.
Sums over nodes of B^T times derivatives are contracted for several nodes together, so that they stay in registers.

The inputs and outputs of the function have these kinds:

| kind | array | content |
|---|---|---|
| case | (B, count) | equal at all nodes |
| node | (K, count) | equal for all cases |
| rows | (B, K count) | input or output at each node |
| window | (B, points count) | control points, of which each node uses P |
| sums, largest | (B, count) | sums and largest values over the nodes |
| first | (points, count) | sums of B^T g for derivatives g (D, count) |
| second | (spans, count, P, P) | sums of B^T H B for derivatives H (count, D, D), for the nodes of each span |

Entries of the last two kinds are added to an array (B, results) at their target indices, if they have any.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from torsor.compiler.llvm import ir
from torsor.compiler.llvm.code import write_body
from torsor.compiler.llvm.loop import TILE, Transposer, write_movers
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.target import Target
from torsor.compiler.program import Program

Kind = Literal["case", "node", "rows", "window", "sums", "largest", "first", "second"]

SLOTS = 4  # number of nodes contracted together, whose derivatives remain in the cache
_AHEAD = 2  # number of nodes by which rows are prefetched into the cache
_LINE = 64  # bytes of a cache line

# The table of a call, in 8-byte words: a fixed header, then the words of each array. ``PLACE`` is the offset in
# bytes of an array in the memory of the call, and ``COUNT`` is its number of entries. For the kinds "first" and
# "second", ``TARGETS`` is the address of the target indices of the entries in the ``RESULTS``; an entry without a
# target has the index ``RESULTS``.
HEAD = CASES, NODES, PLACES, BASIS = range(4)
WORDS = ADDRESS, CASE_STEP, NODE_STEP, COUNT, PLACE, RESULTS, TARGETS = range(7)
# The words of each node: first control point, span, slot, and the number of nodes to contract after it.
NODE = FIRST, SPAN, SLOT, CONTRACTED = range(4)


class _Array(NamedTuple):
    """An input or output: kind, number of entries at a node, first block, and words in the table."""

    kind: Kind
    size: int
    block: int
    words: list[str]


class _Writer(Emitter):
    """Writer of instructions, addresses and branches; names are a letter and a number."""

    def __init__(self, scalar: Scalar, width: int):
        super().__init__(scalar, width)
        self.prefix, self.size = "f", width * scalar.size

    def name(self, letter: str) -> str:
        """Return an unused name that begins with ``letter``."""
        self._next += 1
        return f"{letter}{self._next}"

    def add(self, *instructions: str) -> None:
        """Write instructions without results."""
        self.lines += [f"  {instruction}" for instruction in instructions]

    def begin(self, label: str) -> None:
        """Begin a block that follows the previous one."""
        if not (self.lines and self.lines[-1].startswith("  br ")):
            self.add(f"br label %{label}")
        self.lines.append(f"{label}:")

    def choose(self, condition: str, yes: Callable[[], None], no: Callable[[], None]) -> None:
        """Write a branch for a true condition and one for a false condition."""
        first, second, after = (self.name("l") for _ in range(3))
        self.add(f"br i1 {condition}, label %{first}, label %{second}")
        self.begin(first)
        yes()
        self.add(f"br label %{after}")
        self.begin(second)
        no()
        self.begin(after)

    def at(self, base: str, number: str | int, size: int = 1) -> str:
        """Return the address ``number`` times ``size`` bytes after ``base``."""
        if isinstance(number, str) and size != 1:
            number, size = self.put(f"mul i64 {number}, {size}"), 1
        offset = number if isinstance(number, str) else number * size
        return self.put(f"getelementptr i8, ptr {base}, i64 {offset}")

    def word(self, base: str, index: int, kind: str = "i64") -> str:
        """Load a word of a table."""
        return self.put(f"load {kind}, ptr {self.at(base, index, 8)}")

    def broadcast(self, address: str) -> str:
        """Load a number into all lanes."""
        number = self.put(f"load {self.scalar.name}, ptr {address}")
        one = self.put(f"insertelement {self.vector} poison, {self.scalar.name} {number}, i64 0")
        lanes = f"<{self.width} x i32> zeroinitializer"
        return self.put(f"shufflevector {self.vector} {one}, {self.vector} poison, {lanes}")


def write_fold(
    program: Program,
    kinds: Sequence[Kind],
    orders: int,
    points: int,
    dtype: str,
    width: int,
    target: Target | None = None,
    encode: bool = True,
) -> list[str]:
    """Return the LLVM modules of a fold of a program, for the kinds of its inputs and outputs.

    There are weights of ``points`` control points for ``orders`` derivatives. The first module contains ``fold``, which
    takes a table (``HEAD``) and memory; ``fixed`` is the number of bytes of this memory in addition to the arrays. The
    other modules are those of ``write_llvm``.
    """
    scalar = Scalar(dtype)
    w, body = _Writer(scalar, width), write_body(program, scalar, width, target, encode)
    sizes = [[rows * columns for rows, columns in part] for part in (program.inputs, program.outputs)]
    align = max(_LINE, w.size)
    in_bytes, out_bytes = (-(-sum(part) * w.size // align) * align for part in sizes)
    scratch_bytes = -(-body.scratch * w.size // align) * align
    w.add("%in = getelementptr i8, ptr %memory, i64 0")
    outs, scratch = w.at("%memory", in_bytes), in_bytes + SLOTS * out_bytes
    w.add(f"%scratch = getelementptr i8, ptr %memory, i64 {scratch}")
    for slot in range(SLOTS):
        w.add(f"call void @constants(ptr {w.at(outs, slot, out_bytes)})")
    head = [w.word("%table", k, "ptr" if k in (PLACES, BASIS) else "i64") for k in HEAD]
    arrays = list[_Array]()
    for part in sizes:
        for k, size in enumerate(part):
            first = len(HEAD) + len(WORDS) * len(arrays)
            words = [w.word("%table", first + j, "ptr" if j == ADDRESS else "i64") for j in WORDS]
            arrays.append(_Array(kinds[len(arrays)], size, sum(part[:k]), words))
    inputs, outputs = arrays[: len(program.inputs)], arrays[len(program.inputs) :]
    w.begin("group")
    w.add("%i = phi i64 [ 0, %entry ], [ %i.next, %unpacked ]")
    left = w.put(f"sub i64 {head[CASES]}, %i")
    is_whole = w.put(f"icmp sge i64 {left}, {width}")
    lanes = w.put(f"select i1 {is_whole}, i64 {width}, i64 {left}")
    states = _States(w, is_whole, lanes)
    for array in inputs:
        if array.kind in ("case", "window"):
            to = w.at("%in", array.block, w.size) if array.kind == "case" else states.region(array)
            states.move("pack", array, to, array.words[COUNT])
    for array in outputs:
        if array.kind != "rows":
            start = scalar.literal(float("-inf") if array.kind == "largest" else 0.0)
            region = states.region(array)
            w.add(f"call void @fill(ptr {region}, i64 {array.words[COUNT]}, {scalar.name} {start})")
    w.begin("packed")
    w.begin("node")
    w.add("%k = phi i64 [ 0, %packed ], [ %k.next, %node.done ]")
    here = w.at(head[PLACES], "%k", 8 * len(NODE))
    node = [w.word(here, k) for k in NODE]
    w.add(f"%out = getelementptr i8, ptr {outs}, i64 {w.put(f'mul i64 {node[SLOT]}, {out_bytes}')}")
    for array in inputs:
        to = w.at("%in", array.block, w.size)
        if array.kind == "rows":
            states.rows("pack", array, to)
        elif array.kind == "node":
            source = w.at(array.words[ADDRESS], w.put(f"mul i64 %k, {array.words[NODE_STEP]}"))
            for j in range(array.size):
                w.store(w.broadcast(w.at(source, j, scalar.size)), w.at(to, j, w.size))
        elif array.kind == "window":
            source = w.at(states.region(array), node[FIRST], array.size // points * w.size)
            for j in range(array.size):
                w.store(w.load(w.at(source, j, w.size)), w.at(to, j, w.size))
    w.lines += body.calls
    for array in outputs:
        source = w.at("%out", array.block, w.size)
        if array.kind == "rows":
            states.rows("unpack", array, source)
        elif array.kind in ("sums", "largest"):
            for j in range(array.size):
                total = w.at(states.region(array), j, w.size)
                both = w.load(total), w.load(w.at(source, j, w.size))
                is_sum = array.kind == "sums"
                w.store(w.put(f"fadd {w.vector} {', '.join(both)}") if is_sum else w.call("maximum", *both), total)
    w.add(f"br i1 {w.put(f'icmp eq i64 {node[CONTRACTED]}, 0')}, label %node.done, label %contracted")
    w.begin("contracted")
    begin = w.put(f"add i64 {w.put(f'sub i64 %k, {node[CONTRACTED]}')}, 1")
    basis = w.at(head[BASIS], begin, orders * points * scalar.size)
    for array in outputs:
        if array.kind in ("first", "second"):
            is_first = array.kind == "first"
            count = array.size // orders if is_first else array.size // orders**2
            steps = (node[FIRST], count) if is_first else (node[SPAN], count * points**2)
            total = w.at(states.region(array), steps[0], steps[1] * w.size)
            arguments = f"ptr {w.at(outs, array.block, w.size)}, i64 {count}, i64 {node[CONTRACTED]}"
            w.add(f"call void @{array.kind}({arguments}, ptr {basis}, ptr {total})")
    w.begin("node.done")
    w.add("%k.next = add i64 %k, 1")
    w.add(f"br i1 {w.put(f'icmp slt i64 %k.next, {head[NODES]}')}, label %node, label %after")
    w.begin("after")
    for array in outputs:
        if array.kind in ("first", "second"):
            states.scatter(array)
        elif array.kind != "rows":
            states.move("unpack", array, states.region(array), array.words[COUNT])
    w.begin("unpacked")
    w.add(f"%i.next = add i64 %i, {width}")
    w.add(f"br i1 {w.put(f'icmp slt i64 %i.next, {head[CASES]}')}, label %group, label %end")
    contractions = (_contraction(kind, scalar, width, orders, points, out_bytes) for kind in ("first", "second"))
    text = ir(
        "fold",
        declarations="\n".join(f"declare void @piece.{k}(ptr, ptr, ptr)" for k in range(body.number)),
        movers=write_movers(scalar, width),
        contractions="\n".join(contractions),
        vector=w.vector,
        suffix=w.suffix,
        scalar=scalar.name,
        width=width,
        block=w.size,
        fixed=scratch + scratch_bytes,
        body="\n".join(w.lines),
    )
    return [text + body.tables, *body.pieces]


class _States:
    """Writer of the instructions that move arrays of W cases, starting with case ``%i``."""

    def __init__(self, writer: _Writer, is_whole: str, lanes: str):
        self._w, self._is_whole, self._lanes = writer, is_whole, lanes

    def region(self, array: _Array) -> str:
        """Return the address of the blocks of an array in the memory of the call."""
        return self._w.at("%memory", array.words[PLACE])

    def _first(self, array: _Array) -> str:
        return self._w.at(array.words[ADDRESS], self._w.put(f"mul i64 %i, {array.words[CASE_STEP]}"))

    def scatter(self, array: _Array) -> None:
        """Add the entries of an array to its results, and unpack the results."""
        w, count, results = self._w, array.words[COUNT], array.words[RESULTS]
        region, zero = self.region(array), self._w.scalar.literal(0.0)
        to = w.at(region, count, w.size)
        w.add(f"call void @fill(ptr {to}, i64 {w.put(f'add i64 {results}, 1')}, {w.scalar.name} {zero})")
        targets = w.put(f"inttoptr i64 {array.words[TARGETS]} to ptr")
        w.add(f"call void @scatter(ptr {region}, i64 {count}, ptr {targets}, ptr {to})")
        self.move("unpack", array, to, results)

    def move(self, way: str, array: _Array, block: str, count: str) -> None:
        """Pack or unpack an array with one row per case."""
        w, step = self._w, array.words[CASE_STEP]
        first = self._first(array)
        is_long = w.put(f"icmp sge i64 {count}, {TILE if way == 'pack' else max(w.width, TILE)}")
        w.choose(
            w.put(f"and i1 {self._is_whole}, {is_long}"),
            lambda: w.add(f"call void @{way}.tiles(ptr {first}, i64 {step}, i64 {count}, ptr {block})"),
            lambda: self._singles(way, first, array, count, block),
        )

    def rows(self, way: str, array: _Array, block: str) -> None:
        """Pack or unpack the rows of node ``%k``."""
        w = self._w
        node = w.put(f"mul i64 %k, {array.words[NODE_STEP]}")
        first, ahead = w.at(self._first(array), node), w.put(f"mul i64 {array.words[NODE_STEP]}, {_AHEAD}")

        def whole() -> None:
            rows = [first]
            for _ in range(1, w.width):
                rows.append(w.at(rows[-1], array.words[CASE_STEP]))
            for row in rows:
                for offset in range(0, array.size * w.scalar.size, _LINE):
                    line = w.at(w.at(row, ahead), offset)
                    w.add(f"call void @llvm.prefetch.p0(ptr {line}, i32 {int(way == 'unpack')}, i32 3, i32 1)")
            transposer = Transposer(w.scalar, rows, block, w.name("t"))
            (transposer.pack if way == "pack" else transposer.unpack)(array.size)
            w.lines += transposer.lines

        w.choose(self._is_whole, whole, lambda: self._singles(way, first, array, array.size, block))

    def _singles(self, way: str, first: str, array: _Array, count: str | int, block: str) -> None:
        shape = f"i64 1, i64 0, i64 {count}, i64 {self._w.scalar.size}"
        arguments = f"ptr {first}, i64 {array.words[CASE_STEP]}, {shape}, ptr {block}, i64 {self._lanes}"
        self._w.add(f"call void @{way}.singles({arguments})")


def _contraction(kind: str, scalar: Scalar, width: int, orders: int, points: int, step: int) -> str:
    """Return the function that adds B^T g or B^T H B of several nodes to sums in registers.

    Values of successive nodes are ``step`` bytes apart.
    """
    w, is_first = _Writer(scalar, width), kind == "first"
    inputs, sums = (orders, points) if is_first else (orders**2, points**2)
    w.begin("column")
    w.add("%c = phi i64 [ 0, %entry ], [ %c.next, %stored ]")
    gap = w.put(f"mul i64 %count, {w.size}") if is_first else ""  # the columns of B^T g are adjacent

    def entry(base: str, k: int) -> str:
        return w.at(base, w.put(f"mul i64 {gap}, {k}")) if is_first else w.at(base, k, w.size)

    source, total = (
        w.at(base, "%c", w.size if is_first else size * w.size)
        for base, size in (("%values", inputs), ("%totals", sums))
    )
    start = [w.load(entry(total, k)) for k in range(sums)]
    w.add("br label %node")
    w.begin("node")
    w.add("%k = phi i64 [ 0, %column ], [ %k.next, %node ]")
    new = [f"%sum{k}" for k in range(sums)]
    result = [w.put(f"phi {w.vector} [ {start[k]}, %column ], [ {new[k]}, %node ]") for k in range(sums)]
    here, weights = w.at(source, "%k", step), w.at("%basis", "%k", orders * points * scalar.size)
    values = [w.load(entry(here, k)) for k in range(inputs)]
    B = [[w.broadcast(w.at(weights, d * points + p, scalar.size)) for p in range(points)] for d in range(orders)]
    every = range(orders)

    def last(name: str, a: str, b: str, c: str) -> None:
        w.add(f"{name} = call {w.vector} @llvm.fmuladd.{w.suffix}({w.vector} {a}, {w.vector} {b}, {w.vector} {c})")

    def added(place: int, p: int, column: list[str]) -> None:
        for d in every[:-1]:
            result[place] = w.call("fmuladd", column[d], B[d][p], result[place])
        last(new[place], column[-1], B[-1][p], result[place])

    for q in range(1 if is_first else points):
        column = values
        if not is_first:
            column = [w.put(f"fmul {w.vector} {values[d * orders]}, {B[0][q]}") for d in every]
            for e in every[1:]:
                column = [w.call("fmuladd", values[d * orders + e], B[e][q], column[d]) for d in every]
        for p in range(points):
            added(p if is_first else p * points + q, p, column)
    w.add("%k.next = add i64 %k, 1", "%k.more = icmp slt i64 %k.next, %nodes")
    w.add("br i1 %k.more, label %node, label %stored")
    w.begin("stored")
    for k in range(sums):
        w.store(new[k], entry(total, k))
    w.add("%c.next = add i64 %c, 1", "%c.more = icmp slt i64 %c.next, %count")
    w.add("br i1 %c.more, label %column, label %end")
    w.begin("end")
    arguments = "ptr noalias %values, i64 %count, i64 %nodes, ptr noalias %basis, ptr noalias %totals"
    return "\n".join([f"define internal void @{kind}({arguments}) noinline {{", "entry:", *w.lines, "  ret void", "}"])
