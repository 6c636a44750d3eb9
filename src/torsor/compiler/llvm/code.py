"""LLVM code of an operation list: functions that compute W states together, and the loop called by NumPy.

The operations are divided into pieces, one LLVM function each, because LLVM's compile time grows more than linearly
with the length of a function. Values used by later pieces are stored in scratch memory. Inputs, outputs and scratch
memory are arranged in blocks of W numbers, one block per entry, so every load and store is a full aligned vector. The
loop packs W states into such blocks, calls the pieces and unpacks the results. If fewer than W states remain at the
end, the last one is repeated, so that each state is computed by the same instructions regardless of its position in the
batch.

Large sparse outputs have thousands of zeros. As single instructions, these would dominate LLVM's compile time. The
constant entries of outputs are therefore stored in a table of runs of equal neighbours, and a function loops over it
once per call.
"""

from itertools import accumulate, groupby, zip_longest
from typing import NamedTuple

import casadi as ca

from torsor.compiler.llvm import ir
from torsor.compiler.llvm.angles import TRIGONOMETRIC, Stage, call_angles, loops_called, passes, stages, write_places
from torsor.compiler.llvm.fusion import fused
from torsor.compiler.llvm.loop import write_loop
from torsor.compiler.llvm.piece import (
    BLOCK,
    MAX_REACH,
    NeonPiece,
    Piece,
    can_encode,
    write_encoded,
    write_piece,
    write_table,
)
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.target import ENCODED_MARK, Target, host
from torsor.compiler.program import Program, uncollected

PIECE = 1200  # maximum number of operations in a piece

_ZERO = -1  # index of a structural zero


@uncollected()
def write_llvm(
    program: Program,
    axes: tuple[int, ...],
    dtype: str,
    width: int,
    call: str = "",
    target: Target | None = None,
    encode: bool = True,
) -> list[str]:
    """Return the LLVM modules of a program for vectors of ``width`` numbers; ``axes`` as in ``write_loop``.

    The code is correct on every processor and tuned for ``target``, which is this machine by default. ``encode`` allows
    machine code instead of LLVM code where possible (only on AArch64).

    The first module contains the loop and the text ``call``. The second contains all pieces in machine code, if any,
    and each of the others one piece or one table. All modules are compiled separately. If the program has sines or
    cosines, the module that ``write_angles`` returns for ``loops_called`` of the first module is also needed.
    """
    scalar = Scalar(dtype)
    body = write_body(program, scalar, width, target, encode)
    states = write_loop(program.inputs, program.outputs, axes, scalar, width, body.number, body.calls, body.scratch)
    return [states + call + body.tables, *body.pieces]


class Body(NamedTuple):
    """The code that computes W states in blocks of memory.

    ``calls`` are its instructions, which need ``scratch`` blocks. They call ``number`` pieces, whose modules are
    ``pieces`` (as are those of the tables of the program), and use ``tables``.
    """

    calls: list[str]
    number: int
    scratch: int
    tables: str
    pieces: list[str]


def write_body(program: Program, scalar: Scalar, width: int, target: Target | None, encode: bool) -> Body:
    """Return the code that computes W states from inputs in ``%in`` to outputs in ``%out``."""
    target, program = target or host(), fused(program)
    whole = target.width(scalar.dtype)
    registers = target.registers * whole // max(width, whole)  # registers for full blocks
    parts = _parts(program)
    slots, count = _slots(program, parts)
    starts, ends = _offsets(program.inputs), _offsets(program.outputs)
    memory = {index: ("%scratch", slot) for index, slot in slots.items()} | {
        index: ("%in", starts[operation.arguments[0]] + operation.arguments[1])
        for index, operation in enumerate(program.operations)
        if operation.code == ca.OP_INPUT
    }
    entries = ((index, [ends[k] + entry for k, entry in places]) for index, places in program.targets.items())
    targets = {_ZERO if index is None else index: result for index, result in entries}
    stores = {index: [("%out", entry) for entry in result] for index, result in targets.items()}
    for index in slots:
        stores.setdefault(index, []).append(memory[index])
    angles: list[int] = []  # locations of angles
    calls: list[str] = []
    pieces: list[str] = []
    encoded: list[str] = []
    encode = encode and target.is_arm and width * scalar.size == BLOCK and 2 * max(count, *starts, *ends) < MAX_REACH
    scratch, number = count, 0
    for part in parts:
        if part.trigonometric:
            by_memory = _pairs(program, part.indices)
            _, sin, cos = next(iter(by_memory.values()))[0]
            first = slots[sin] if sin is not None else slots[cos or 0] - 1
            for source, pairs in by_memory.items():
                for loop in passes(len(pairs), target.registers):
                    calls.append(call_angles(source, first * width * scalar.size, len(angles), loop))
                    some = pairs[: loop.together * loop.times]
                    angles += [memory[angle][1] for angle, _, _ in some]
                    first += 2 * len(some)
                    del pairs[: len(some)]
            continue
        number, name = number + 1, f"piece.{number}"
        calls.append(f"  call void @{name}(ptr %in, ptr %out, ptr %scratch)")
        piece: Piece | NeonPiece
        copies = _copies(program, targets) if part is parts[-1] else []
        if encode and can_encode(program, part):
            piece = NeonPiece(program, scalar, memory, count)
        else:
            piece = Piece(program, Emitter(scalar, width, target.constants), memory, registers, count)
        piece.write(part.indices, stores)
        for index, entry in copies:
            piece.copy(index, ("%out", entry))
        if isinstance(piece, NeonPiece):
            encoded.append(write_encoded(name, piece.encode()))
        else:
            pieces.append(write_piece(name, piece))
        scratch = max(scratch, piece.spilled)
    fixed = _write_constants(_constants(program, targets), scalar, width)
    places = write_places(angles, scalar, width, loops_called("\n".join(calls)))
    if encoded:
        pieces.insert(0, ENCODED_MARK + "".join(encoded))
    pieces += [write_table(number, table, scalar) for number, table in enumerate(program.tables)]
    return Body(calls, number, scratch, fixed + places, pieces)


def _parts(program: Program) -> list[Stage]:
    """Return the stages of a program with arithmetic stages split into pieces; the last stage is a piece."""
    parts: list[Stage] = []
    for stage in stages(program):
        step = len(stage.indices) if stage.trigonometric else PIECE
        parts += [Stage(stage.trigonometric, stage.indices[k : k + step]) for k in range(0, len(stage.indices), step)]
    # The last piece also writes outputs that are inputs, sines or cosines.
    return parts if parts and not parts[-1].trigonometric else [*parts, Stage(False, [])]


def _slots(program: Program, parts: list[Stage]) -> tuple[dict[int, int], int]:
    """Return the scratch-memory locations of values used by later parts, and the number of locations.

    Sines and cosines have two locations per angle, in the order in which ``angles`` writes them.
    """
    operations = program.operations
    home = [len(parts)] * len(operations)  # the part that computes a value; inputs and most constants have none
    for number, part in enumerate(parts):
        for index in part.indices:
            home[index] = number
    last: dict[int, int] = {}  # the last part that uses a value of an earlier part
    for number, part in enumerate(parts):
        for index in part.indices:
            for argument in operations[index].arguments:
                if home[argument] < number:
                    last[argument] = number
    for result in program.targets:
        if result is not None and operations[result].code in TRIGONOMETRIC:
            last[result] = len(parts) - 1
    slots: dict[int, int] = {}
    free: dict[int, list[int]] = {}  # free locations by the length of their range
    ending: dict[int, list[tuple[int, int]]] = {}
    count = 0
    for number, part in enumerate(parts):
        for length, place in ending.pop(number, []):
            free.setdefault(length, []).append(place)
        if part.trigonometric:
            pairs = [pair for item in _pairs(program, part.indices).values() for pair in item]
            ranges: list[list[int | None]] = [[index for _, *both in pairs for index in both]]
        else:
            ranges = [[index] for index in part.indices if index in last]
        for indices in ranges:
            if free.get(len(indices)):
                first = free[len(indices)].pop()
            else:
                first, count = count, count + len(indices)
            slots |= {index: first + k for k, index in enumerate(indices) if index is not None}
            end = max(last.get(index, number) for index in indices if index is not None)
            ending.setdefault(end + 1, []).append((len(indices), first))
    return slots, count


Pair = tuple[int, int | None, int | None]
"""An angle with its sine and cosine, as indices of values; None if the program does not use it."""


def _pairs(program: Program, indices: list[int]) -> dict[str, list[Pair]]:
    """Return the angles of sines and cosines by the memory that contains them."""
    by_angle: dict[int, tuple[list[int], list[int]]] = {}
    for index in indices:
        operation = program.operations[index]
        by_angle.setdefault(operation.arguments[0], ([], []))[operation.code == ca.OP_COS].append(index)
    result: dict[str, list[Pair]] = {}
    for angle, both in by_angle.items():
        memory = "%in" if program.operations[angle].code == ca.OP_INPUT else "%scratch"
        result.setdefault(memory, []).extend((angle, sin, cos) for sin, cos in zip_longest(*both))
    return result


def _offsets(sizes: tuple[tuple[int, int], ...]) -> list[int]:
    """Return the index of the first entry of each matrix among all entries, and the total number of entries."""
    return list(accumulate((rows * columns for rows, columns in sizes), initial=0))


def _constants(program: Program, targets: dict[int, list[int]]) -> dict[int, float]:
    """Return the constant entries of the outputs, mostly structural zeros, with their values."""
    result: dict[int, float] = {}
    for index, entries in targets.items():
        if index == _ZERO or program.operations[index].code == ca.OP_CONST:
            result |= dict.fromkeys(entries, 0.0 if index == _ZERO else program.operations[index].number)
    return result


def _copies(program: Program, targets: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Return the values and entries of outputs that are not computed by pieces: inputs, sines and cosines."""
    copied = (ca.OP_INPUT, *TRIGONOMETRIC)
    result = [index for index in targets if index != _ZERO and program.operations[index].code in copied]
    return [(index, entry) for index in result for entry in targets[index]]


def _write_constants(numbers: dict[int, float], scalar: Scalar, width: int) -> str:
    """Return the function ``constants``, which writes the numbers to all lanes of their output entries."""
    if not numbers:
        return "define void @constants(ptr %out) {\n  ret void\n}\n"
    runs = _runs({entry: scalar.literal(number) for entry, number in numbers.items()})
    vector, block = f"<{width} x {scalar.name}>", width * scalar.size
    first, last = (", ".join(f"i64 {run[k]}" for run in runs) for k in (0, 1))
    values = ", ".join(f"{scalar.name} {run[2]}" for run in runs)
    sizes = {"count": len(runs), "width": width, "block": block}
    return ir("constants", **sizes, first=first, last=last, values=values, scalar=scalar.name, vector=vector)


def _runs(texts: dict[int, str]) -> list[tuple[int, int, str]]:
    """Return (first entry, last entry, number) for each run of adjacent entries with equal numbers."""
    numbered = enumerate(sorted(texts))  # entry minus position is constant within a run
    groups = groupby(numbered, key=lambda pair: (pair[1] - pair[0], texts[pair[1]]))
    runs = ([entry for _, entry in group] for _, group in groups)
    return [(run[0], run[-1], texts[run[0]]) for run in runs]
