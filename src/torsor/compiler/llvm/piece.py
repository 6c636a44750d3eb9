"""LLVM code of one piece of a program: a function without branches, with a plan of what is held in registers.

LLVM's register allocator takes most of the compile time of a long function, and stores and loads more values than it
has to. Here the whole future of a piece is known, so the best choice is simple (Belady): when the registers are full,
the value goes whose next use is farthest away. It is stored, unless memory has it already, and loaded again before
that use.
"""

from collections.abc import Sequence

import casadi as ca

from torsor.compiler.llvm.fusion import FUSED_RULES, PRODUCTS
from torsor.compiler.llvm.rules import Emitter, Rule
from torsor.compiler.llvm.target import PLANNED
from torsor.compiler.program import Program

READABLE = f"dereferenceable({1 << 30})"  # lets LLVM move loads
HELD = 7 / 8  # of the registers: the others are for constants and for results on their way

_NEVER = 1 << 60

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
        self._next_use: dict[int, int] = {}  # of the values that are held
        self._epoch = 0
        self._pointers: dict[str, str] = {}
        self._seen: dict[Place, int] = {}
        emitter.load_flags = ", !invariant.load !0"

    def write(self, indices: Sequence[int], stores: dict[int, list[Place]]) -> None:
        """Write operations in the given order, and store their values in the given places."""
        operations, emitter, held, next_use = self.program.operations, self.emitter, self._held, self._next_use
        for index, uses in zip(indices, self._uses(indices), strict=True):
            code, arguments, number = operations[index]
            if code == ca.OP_CONST:
                value = emitter.constant(number)
            else:
                rule, is_product = FUSED_RULES.get(code) or self._elementary(code), code in PRODUCTS
                names = [held.get(argument) or self.value(argument, is_product) for argument in arguments]
                value = rule(emitter, *names)
            if index in stores:
                for place in stores[index]:
                    self.store(value, place)
            for argument, use in zip(arguments, uses, strict=False):
                if use == _NEVER:
                    held.pop(argument, None)
                else:
                    next_use[argument] = use
            if uses[-1] != _NEVER:
                held[index], next_use[index] = value, uses[-1]
            while len(held) > self._registers:
                self._evict()

    def _uses(self, indices: Sequence[int]) -> list[list[int]]:
        """Return for each operation when its arguments are used next, and at the end when its value is used first."""
        operations, following, found = self.program.operations, dict[int, int](), list[list[int]]()
        for position in range(len(indices) - 1, -1, -1):
            index = indices[position]
            arguments = operations[index].arguments
            found.append([following.get(value, _NEVER) for value in (*arguments, index)])
            for argument in arguments:
                following[argument] = position
        return found[::-1]

    def _elementary(self, code: int) -> Rule:
        # Few functions need them, and they are ten files.
        from torsor.compiler.llvm.elementary import ELEMENTARY

        if code not in ELEMENTARY:
            raise NotImplementedError(f"{self.program.name}: no rule for CasADi's operation {code}")
        return ELEMENTARY[code]

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

    def _evict(self) -> None:
        """Free the register whose value is used last."""
        index = max(self._held, key=self._next_use.__getitem__)
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
    body = "\n".join([_declarations(e), e.numbers(), head, "entry:", *e.lines, "  ret void", "}", "!0 = !{}", ""])
    return body if e.functions else PLANNED + body  # elementary functions gain much by optimisation


def _declarations(e: Emitter) -> str:
    """Return the declarations of intrinsics, and the elementary functions that are called."""
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({e.vector})" for name in ("sqrt", "fabs", "floor", "ceil")]
    lines.append(f"declare {e.vector} @llvm.fmuladd.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.copysign.{e.suffix}({e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.fma.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines += e.functions.values()
    return "\n".join(lines)
