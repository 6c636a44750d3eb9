"""LLVM code of an operation list: functions that compute W states at a time, and the loop that NumPy calls.

The operations are divided into pieces, one LLVM function each, because LLVM's compile time grows faster than the length
of a function; values that a later piece uses are stored in scratch memory. Inputs, outputs and scratch memory are
arranged in blocks of W numbers, one block for each entry, so that every load and store is a whole aligned vector. The
loop packs W states into such blocks, calls the pieces and unpacks the results. If fewer than W states are left at the
end, the last one is repeated, so that the same instructions compute each state wherever it is in the batch.

Large sparse outputs have thousands of zeros. As single instructions they would dominate LLVM's compile time, so the
constant entries of outputs are a table of runs of equal neighbours, and a function that loops over it, once in a call.
"""

from itertools import groupby, pairwise

import casadi as ca

from torsor.compiler.llvm.elementary import ELEMENTARY
from torsor.compiler.llvm.loop import write_loop
from torsor.compiler.llvm.rules import RULES, Emitter, Scalar
from torsor.compiler.program import Operation, Program

PIECE = 1200  # operations in the longest piece

EVERY_RULE = RULES | ELEMENTARY
_FREE = {ca.OP_INPUT, ca.OP_CONST}
_ZERO = -1  # the index of a structural zero


def write_llvm(program: Program, axes: tuple[int, ...], dtype: str, width: int, call: str = "") -> list[str]:
    """Return the LLVM modules of a program for vectors of ``width`` numbers; ``axes`` as in ``write_loop``.

    The first module has the loop and the text ``call``, each of the others one piece; all are compiled separately.
    """
    scalar = Scalar(dtype)
    pieces = _cut(program)
    slots, count = _slots(program, pieces)
    wanted = _result_entries(program)
    modules = [_piece(program, scalar, width, number, piece, slots, wanted) for number, piece in enumerate(pieces)]
    loop = write_loop(program.inputs, program.outputs, axes, scalar, width, len(pieces), count)
    return [loop + call + _write_constants(_constants(program, wanted), scalar, width), *modules]


def _cut(program: Program) -> list[range]:
    """Return the pieces, as ranges of operations."""
    cuts, length = [0], 0
    for index, operation in enumerate(program.operations):
        # Sine and cosine of an angle together are some forty instructions.
        length += 0 if operation.code in _FREE else 20 if operation.code in (ca.OP_SIN, ca.OP_COS) else 1
        if length >= PIECE:
            cuts.append(index + 1)
            length = 0
    cuts.append(len(program.operations))
    return [range(a, b) for a, b in pairwise(cuts) if b > a or b == 0] or [range(0)]


def _slots(program: Program, pieces: list[range]) -> tuple[dict[int, int], int]:
    """Return the place in scratch memory of each value that a later piece uses, and the number of places."""
    home = {index: number for number, piece in enumerate(pieces) for index in piece}
    last: dict[int, int] = {}
    for number, piece in enumerate(pieces):
        for index in piece:
            if program.operations[index].code not in _FREE:
                for argument in program.operations[index].arguments:
                    if home[argument] < number and program.operations[argument].code not in _FREE:
                        last[argument] = number
    slots: dict[int, int] = {}
    free: list[int] = []
    ending: dict[int, list[int]] = {}
    count = 0
    for number, piece in enumerate(pieces):
        free += ending.pop(number, [])
        for index in piece:
            if index in last:
                slots[index] = free.pop() if free else count
                count = max(count, slots[index] + 1)
                ending.setdefault(last[index] + 1, []).append(slots[index])
    return slots, count


def _offsets(sizes: tuple[tuple[int, int], ...]) -> list[int]:
    """Return the index of the first entry of each matrix among the entries of all, and the number of all entries."""
    offsets = [0]
    for rows, columns in sizes:
        offsets.append(offsets[-1] + rows * columns)
    return offsets


class _Body:
    """The LLVM code of one piece while it is written, with the names of the values in it."""

    def __init__(self, program: Program, scalar: Scalar, width: int, slots: dict[int, int]):
        self.program, self.slots = program, slots
        self.emitter = Emitter(scalar, width)
        self.align = width * scalar.size
        self.names: dict[int, str] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.starts = _offsets(program.inputs)

    def address(self, base: str, entry: int) -> str:
        """Return a pointer to a block."""
        return self.emitter.put(f"getelementptr i8, ptr {base}, i64 {entry * self.align}")

    def load(self, base: str, entry: int) -> str:
        """Return the vector in a block."""
        e = self.emitter
        return e.put(f"load {e.vector}, ptr {self.address(base, entry)}, align {self.align}")

    def store(self, value: str, base: str, entry: int) -> None:
        """Write a vector to a block."""
        pointer = self.address(base, entry)
        self.emitter.lines.append(f"  store {self.emitter.vector} {value}, ptr {pointer}, align {self.align}")

    def value(self, index: int) -> str:
        """Return the name of a value; a constant is written in place, and other values are loaded on first use."""
        if index not in self.names:
            operation = self.program.operations[index]
            if operation.code == ca.OP_CONST:
                return self.emitter.constant(operation.number)
            if operation.code == ca.OP_INPUT:
                which, entry = operation.arguments
                self.names[index] = self.load("%in", self.starts[which] + entry)
            else:
                self.names[index] = self.load("%scratch", self.slots[index])
        return self.names[index]

    def compute(self, index: int, operation: Operation) -> None:
        """Write one operation."""
        if operation.code in _FREE:
            return
        if operation.code in (ca.OP_SIN, ca.OP_COS):
            argument = operation.arguments[0]
            if argument not in self.pairs:
                self.pairs[argument] = self.emitter.sin_cos(self.value(argument))
            self.names[index] = self.pairs[argument][operation.code == ca.OP_COS]
        elif operation.code in EVERY_RULE:
            arguments = [self.value(argument) for argument in operation.arguments]
            self.names[index] = EVERY_RULE[operation.code](self.emitter, *arguments)
        else:
            raise NotImplementedError(f"{self.program.name}: no rule for CasADi's operation {operation.code}")
        if index in self.slots:
            self.store(self.names[index], "%scratch", self.slots[index])


def _piece(
    program: Program,
    scalar: Scalar,
    width: int,
    number: int,
    piece: range,
    slots: dict[int, int],
    wanted: dict[int, list[int]],
) -> str:
    body = _Body(program, scalar, width, slots)
    for index in piece:
        body.compute(index, program.operations[index])
        if program.operations[index].code not in _FREE:
            for entry in wanted.get(index, ()):
                body.store(body.names[index], "%out", entry)
    if number == 0:  # outputs that are inputs belong to no operation
        for index, entries in wanted.items():
            if index != _ZERO and program.operations[index].code == ca.OP_INPUT:
                for entry in entries:
                    body.store(body.value(index), "%out", entry)
    head = [f"define void @piece.{number}(ptr noalias %in, ptr noalias %out, ptr noalias %scratch) {{", "entry:"]
    weights = '!0 = !{!"branch_weights", i32 1, i32 100000}'
    return "\n".join([_declarations(body.emitter), *head, *body.emitter.lines, "  ret void", "}", weights, ""])


def _constants(program: Program, wanted: dict[int, list[int]]) -> dict[int, float]:
    """Return the entries of the outputs that are constants, mostly structural zeros, with their values."""
    found: dict[int, float] = {}
    for index, entries in wanted.items():
        if index == _ZERO or program.operations[index].code == ca.OP_CONST:
            found |= dict.fromkeys(entries, 0.0 if index == _ZERO else program.operations[index].number)
    return found


def _result_entries(program: Program) -> dict[int, list[int]]:
    """Return, for each value that is a result, the entries of the outputs where it is stored."""
    wanted: dict[int, list[int]] = {}
    for start, indices in zip(_offsets(program.outputs), program.results, strict=False):
        for entry, index in enumerate(indices):
            wanted.setdefault(_ZERO if index is None else index, []).append(start + entry)
    return wanted


def _declarations(e: Emitter) -> str:
    """Return the declarations of intrinsics, and a wrapper for each C library function that calls it for every lane."""
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({e.vector})" for name in ("sqrt", "fabs", "floor", "ceil")]
    lines.append(f"declare {e.vector} @llvm.copysign.{e.suffix}({e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.fma.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines.append(f"declare i1 @llvm.vector.reduce.or.v{e.width}i1(<{e.width} x i1>)")
    for name, count in sorted(e.called):
        lines += _lanes(e, name, count)
    lines += e.functions.values()
    return "\n".join(lines)


def _lanes(e: Emitter, name: str, count: int) -> list[str]:
    """Return a function that calls a C library function on each lane, in double precision."""
    arguments = ", ".join(f"{e.vector} %x{k}" for k in range(count))
    lines = [f"declare double @{name}({', '.join(['double'] * count)})"]
    lines += [f"define internal {e.vector} @lanes.{name}({arguments}) noinline {{"]
    single = e.scalar.name == "float"
    result = "poison"
    for lane in range(e.width):
        passed = []
        for k in range(count):
            lines.append(f"  %a{lane}.{k} = extractelement {e.vector} %x{k}, i64 {lane}")
            if single:
                lines.append(f"  %d{lane}.{k} = fpext float %a{lane}.{k} to double")
            passed.append(f"double %{'d' if single else 'a'}{lane}.{k}")
        lines.append(f"  %y{lane} = call double @{name}({', '.join(passed)})")
        if single:
            lines.append(f"  %f{lane} = fptrunc double %y{lane} to float")
        value = f"{e.scalar.name} %{'f' if single else 'y'}{lane}"
        lines.append(f"  %r{lane} = insertelement {e.vector} {result}, {value}, i64 {lane}")
        result = f"%r{lane}"
    return [*lines, f"  ret {e.vector} {result}", "}"]


def _write_constants(numbers: dict[int, float], scalar: Scalar, width: int) -> str:
    """Return the function ``constants``, which writes a number to all lanes of each of the given output entries."""
    if not numbers:
        return "define void @constants(ptr %out) {\n  ret void\n}\n"
    runs = _runs({entry: scalar.literal(number) for entry, number in numbers.items()})
    vector, block = f"<{width} x {scalar.name}>", width * scalar.size
    first, last = (", ".join(f"i64 {run[k]}" for run in runs) for k in (0, 1))
    values = ", ".join(f"{scalar.name} {run[2]}" for run in runs)
    return f"""
@runs.first = internal constant [{len(runs)} x i64] [{first}]
@runs.last = internal constant [{len(runs)} x i64] [{last}]
@runs.value = internal constant [{len(runs)} x {scalar.name}] [{values}]
define void @constants(ptr %out) {{
entry:
  br label %run
run:
  %k = phi i64 [ 0, %entry ], [ %k.next, %after ]
  %first.p = getelementptr i64, ptr @runs.first, i64 %k
  %first = load i64, ptr %first.p
  %last.p = getelementptr i64, ptr @runs.last, i64 %k
  %last = load i64, ptr %last.p
  %value.p = getelementptr {scalar.name}, ptr @runs.value, i64 %k
  %value = load {scalar.name}, ptr %value.p
  %one = insertelement {vector} poison, {scalar.name} %value, i64 0
  %all = shufflevector {vector} %one, {vector} poison, <{width} x i32> zeroinitializer
  br label %body
body:
  %e = phi i64 [ %first, %run ], [ %e.next, %body ]
  %offset = mul i64 %e, {block}
  %p = getelementptr i8, ptr %out, i64 %offset
  store {vector} %all, ptr %p, align {block}
  %e.next = add i64 %e, 1
  %more = icmp sle i64 %e.next, %last
  br i1 %more, label %body, label %after
after:
  %k.next = add i64 %k, 1
  %over = icmp eq i64 %k.next, {len(runs)}
  br i1 %over, label %end, label %run
end:
  ret void
}}
"""


def _runs(texts: dict[int, str]) -> list[tuple[int, int, str]]:
    """Return (first entry, last entry, number) for each run of neighbouring entries with the same number.

    Example:
        >>> _runs({7: "0", 5: "0", 6: "0", 8: "1"})
        [(5, 7, '0'), (8, 8, '1')]
    """
    numbered = enumerate(sorted(texts))  # within a run, entry minus position is constant
    groups = groupby(numbered, key=lambda pair: (pair[1] - pair[0], texts[pair[1]]))
    runs = ([entry for _, entry in group] for _, group in groups)
    return [(run[0], run[-1], texts[run[0]]) for run in runs]
