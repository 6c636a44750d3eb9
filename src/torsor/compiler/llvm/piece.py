"""LLVM code of one piece of a program: a function without branches, with a plan of what is held in registers.

LLVM's register allocator takes most of the compile time of a long function, and stores and loads more values than it
has to. Here the whole future of a piece is known, so the best choice is simple (Belady): when the registers are full,
the value goes whose next use is farthest away. It is stored, unless memory has it already, and loaded again before
that use.
"""

from collections.abc import Sequence

import casadi as ca

from torsor.compiler.llvm.elementary import EVERY_RULE
from torsor.compiler.llvm.rules import Emitter
from torsor.compiler.llvm.signs import OPPOSITE
from torsor.compiler.program import Program

READABLE = f"dereferenceable({1 << 30})"  # lets LLVM move loads
HELD = 7 / 8  # of the registers: the others are for constants and for results on their way

Place = tuple[str, int]
"""A block in memory: the name of a pointer, and the number of the block."""


class Piece:
    """Writes operations, and knows where each value is. ``memory`` has the places of values of other pieces."""

    def __init__(self, program: Program, emitter: Emitter, memory: dict[int, Place], registers: int, spill: int):
        self.program, self.emitter = program, emitter
        self.spilled = spill  # places of scratch memory from here on are free
        self._memory, self._registers = memory, int(HELD * registers)
        self._own: dict[int, Place] = {}  # the places of values that were stored here
        self._held: dict[int, str] = {}
        self._uses: dict[int, list[int]] = {}
        self._epoch = 0
        self._pointers: dict[str, str] = {}
        self._seen: dict[Place, int] = {}
        emitter.load_flags = ", !invariant.load !0"

    def write(self, indices: Sequence[int], stores: dict[int, list[Place]]) -> None:
        """Write operations in the given order, and store their values in the given places."""
        operations = self.program.operations
        for position in reversed(range(len(indices))):
            for argument in operations[indices[position]].arguments:
                self._uses.setdefault(argument, []).append(position)
        for position, index in enumerate(indices):
            operation = operations[index]
            if operation.code == ca.OP_CONST:
                value = self.emitter.constant(operation.number)
            elif operation.code in EVERY_RULE:
                arguments = [self.value(argument, operation.code == ca.OP_MUL) for argument in operation.arguments]
                value = EVERY_RULE[operation.code](self.emitter, *arguments)
            elif operation.code == OPPOSITE:
                value = self._opposite(self.value(operation.arguments[0]))
            else:
                raise NotImplementedError(f"{self.program.name}: no rule for CasADi's operation {operation.code}")
            for place in stores.get(index, ()):
                self.store(value, place)
            for argument in operation.arguments:
                self._used(argument, position)
            if self._uses.get(index):
                self._held[index] = value
            while len(self._held) > self._registers:
                self._evict()

    def value(self, index: int, is_factor: bool = False) -> str:
        """Return the name of a value; a constant is written in place, and values in memory are loaded."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST and index not in self._held:
            return (self.emitter.factor if is_factor else self.emitter.constant)(operation.number)
        if index not in self._held:
            self._held[index] = self._load(self._own.get(index) or self._memory[index])
        return self._held[index]

    def store(self, value: str, place: Place) -> None:
        """Write a vector to a block."""
        self._seen[place] = self._epoch
        self.emitter.store(value, self._address(*place))

    def _load(self, place: Place) -> str:
        if self._seen.get(place) == self._epoch:
            # LLVM would use the value that it stored or loaded before, and keep it in a register until now.
            self._begin_epoch()
        self._seen[place] = self._epoch
        base, block = place
        if self._epoch and base not in self._pointers:
            self._pointers[base] = self._copied(base)
        return self.emitter.load(self._address(self._pointers.get(base, base), block))

    def _address(self, base: str, block: int) -> str:
        size = self.emitter.width * self.emitter.scalar.size
        return self.emitter.put(f"getelementptr i8, ptr {base}, i64 {block * size}")

    def _begin_epoch(self) -> None:
        self._epoch += 1
        self._pointers.clear()

    def _copied(self, base: str) -> str:
        # A copy of the pointer that LLVM cannot see through; what was stored before is in memory now.
        copy = f'call {READABLE} ptr asm sideeffect "", "=r,0,~{{memory}}"(ptr {base})'
        return self.emitter.put(copy)

    def _opposite(self, value: str) -> str:
        # A copy that LLVM cannot see through: it would change the sign of each product instead.
        vector, put = self.emitter.vector, self.emitter.put
        return put(f'call {vector} asm "", "=w,0"({vector} {put(f"fneg {vector} {value}")})')

    def _used(self, index: int, position: int) -> None:
        """Note that a value has been used, and forget it after the last time."""
        uses = self._uses.get(index, [])
        while uses and uses[-1] <= position:
            uses.pop()
        if not uses:
            self._held.pop(index, None)

    def _evict(self) -> None:
        """Free the register whose value is used last."""
        index = max(self._held, key=lambda index: self._uses[index][-1])
        value = self._held.pop(index)
        if index in self._own or index in self._memory:
            return
        # No place is used twice, since LLVM is told that what it loads does not change.
        self._own[index] = "%scratch", self.spilled
        self.spilled += 1
        self.store(value, self._own[index])


def write_piece(name: str, piece: Piece) -> str:
    """Return the module with a piece as a function."""
    head = f"define void @{name}(ptr noalias {READABLE} %in, ptr noalias %out, ptr {READABLE} %scratch) {{"
    e = piece.emitter
    return "\n".join([_declarations(e), e.numbers(), head, "entry:", *e.lines, "  ret void", "}", "!0 = !{}", ""])


def _declarations(e: Emitter) -> str:
    """Return the declarations of intrinsics, and the elementary functions that are called."""
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({e.vector})" for name in ("sqrt", "fabs", "floor", "ceil")]
    lines.append(f"declare {e.vector} @llvm.copysign.{e.suffix}({e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.fma.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines += e.functions.values()
    return "\n".join(lines)
