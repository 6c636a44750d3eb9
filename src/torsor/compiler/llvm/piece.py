"""LLVM code of one piece of a program: a function without branches, with a plan of what is held in registers.

LLVM's register allocator takes most of the compile time of a long function, and stores and loads more values than it
has to. Here the whole future of a piece is known, so the best choice is simple (Belady): when the registers are full,
the value goes whose next use is farthest away. It is stored, unless memory has it already, and loaded again before
that use.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import casadi as ca

from torsor.compiler.llvm.elementary import EVERY_RULE
from torsor.compiler.llvm.rules import Emitter, Rule
from torsor.compiler.llvm.target import PLANNED
from torsor.compiler.program import Program

READABLE = f"dereferenceable({1 << 30})"  # lets LLVM move loads
HELD = 7 / 8  # of the registers: the others are for constants and for results on their way

Place = tuple[str, int]
"""A block in memory: the name of a pointer, and the number of the block."""


class _Step(NamedTuple):
    """What is written at a time: the index of the value, its rule and arguments, and whether the first is a factor."""

    index: int
    rule: Rule
    arguments: tuple[int, ...]
    is_product: bool


def _constant(number: float, e: Emitter) -> str:
    return e.constant(number)


def _fused(e: Emitter, a: str, b: str, c: str) -> str:
    """Return a b + c, in one instruction where the processor has one."""
    return e.call("fmuladd", a, b, c)


def _fused_minus(e: Emitter, a: str, b: str, c: str) -> str:
    """Return a b - c."""
    return e.call("fmuladd", a, b, e.put(f"fneg {e.vector} {c}"))


def _minus_fused(e: Emitter, a: str, b: str, c: str) -> str:
    """Return c - a b."""
    return e.call("fmuladd", a, e.put(f"fneg {e.vector} {b}"), c)


_PRODUCTS = {ca.OP_MUL, ca.OP_SQ}
_SUMS: dict[int, tuple[Rule, Rule]] = {ca.OP_ADD: (_fused, _fused), ca.OP_SUB: (_fused_minus, _minus_fused)}
"""The rules of sums whose first or second argument is a product."""


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
        emitter, held, uses = self.emitter, self._held, self._uses
        steps = list(self._steps(indices, stores))
        for position in range(len(steps) - 1, -1, -1):
            for argument in steps[position].arguments:
                uses.setdefault(argument, []).append(position)
        for position, (index, rule, arguments, is_product) in enumerate(steps):
            names = [held.get(argument) or self.value(argument, is_product) for argument in arguments]
            value = rule(emitter, *names)
            if index in stores:
                for place in stores[index]:
                    self.store(value, place)
            for argument in arguments:
                later = uses[argument]
                if later and later[-1] == position:
                    later.pop()
                    if not later:
                        held.pop(argument, None)
            if index in uses:
                held[index] = value
                while len(held) > self._registers:
                    self._evict()

    def _steps(self, indices: Sequence[int], stores: dict[int, list[Place]]) -> Iterator["_Step"]:
        """Yield what is written: operations, where a product that only one sum takes is part of that sum."""
        operations = self.program.operations
        taken = Counter(argument for index in indices for argument in operations[index].arguments)
        products = {
            index
            for index in indices
            if operations[index].code in _PRODUCTS and taken[index] == 1 and index not in stores
        }
        fused: set[int] = set()
        place = {index: position for position, index in enumerate(indices)}
        for index in indices:
            code, arguments, _ = operations[index]
            if code in _SUMS:
                found = [each for each in arguments if each in products]
                if found:
                    fused.add(max(found, key=place.__getitem__) if code == ca.OP_ADD else found[-1])
        for index in indices:
            code, arguments, number = operations[index]
            if index in fused:
                continue
            if code == ca.OP_CONST:
                yield _Step(index, partial(_constant, number), (), False)
            elif code in _SUMS and not fused.isdisjoint(arguments):
                k = int(arguments[1] in fused)
                factors = operations[arguments[k]].arguments
                if len(factors) == 1:
                    factors *= 2
                elif operations[factors[1]].code == ca.OP_CONST:
                    factors = factors[::-1]
                yield _Step(index, _SUMS[code][k], (*factors, arguments[1 - k]), True)
            elif code in EVERY_RULE:
                yield _Step(index, EVERY_RULE[code], arguments, code == ca.OP_MUL)
            else:
                raise NotImplementedError(f"{self.program.name}: no rule for CasADi's operation {code}")

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
