"""LLVM code of one piece of a program: a function without branches, with a plan of what is held in registers."""

import casadi as ca

from torsor.compiler.coverage import no_rule
from torsor.compiler.llvm.fusion import FUSED_RULES
from torsor.compiler.llvm.plan import Place, Plan
from torsor.compiler.llvm.rules import Emitter, Rule
from torsor.compiler.llvm.target import PLANNED
from torsor.compiler.program import Program

READABLE = f"dereferenceable({1 << 30})"  # lets LLVM move loads


class Piece(Plan[str]):
    """Writes operations as LLVM code; what is held are its values."""

    def __init__(self, program: Program, emitter: Emitter, memory: dict[int, Place], registers: int, spill: int):
        super().__init__(program, memory, registers, spill)
        self.emitter = emitter
        self._epoch = 0
        self._pointers: dict[str, str] = {}
        self._seen: dict[Place, int] = {}
        emitter.load_flags = ", !invariant.load !0"
        emitter.may_fuse = False  # ``fusion.py`` has decided

    def compute(self, code: int, number: float, names: list[str], ends: bool) -> str:
        """Write an operation by its rule."""
        if code == ca.OP_CONST:
            return self.emitter.constant(number)
        return (FUSED_RULES.get(code) or self._elementary(code))(self.emitter, *names)

    def _elementary(self, code: int) -> Rule:
        # Few functions need them, and they are ten files.
        from torsor.compiler.llvm.elementary import ELEMENTARY

        if code not in ELEMENTARY:
            raise NotImplementedError(no_rule(self.program.name, code))
        return ELEMENTARY[code]

    def value(self, index: int, is_factor: bool = False) -> str:
        """Load a value from memory; a constant is written in place, and not held."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST:
            return (self.emitter.factor if is_factor else self.emitter.constant)(operation.number)
        self._held[index] = self._load(self._own.get(index) or self._memory[index])
        return self._held[index]

    def store(self, name: str, place: Place) -> None:
        """Write a vector to a block."""
        self._seen[place] = self._epoch
        self.emitter.store(name, self._address(*place))

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
