"""LLVM code of one piece of a program, as a branch-free function with a register plan."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import casadi as ca
import numpy as np

from torsor.compiler.llvm.angles import Stage
from torsor.compiler.llvm.fusion import FROM, FUSED_RULES, MINUS, PLUS, PRODUCTS
from torsor.compiler.llvm.rules import Emitter, Rule, Scalar
from torsor.compiler.llvm.target import ENCODED_MARK, PLANNED_MARK
from torsor.compiler.program import Program, no_rule

# The register plan of one piece of a program, from which ``Piece`` and ``NeonPiece`` write code.
#
# LLVM's register allocator takes most of the compile time of a long function, and stores and loads more values than
# necessary. All uses in a piece are known in advance, so the best choice is simple (Belady): if the registers are full,
# the value with the farthest next use is evicted. It is stored, unless it is already in memory, and reloaded before
# that use.

HELD_FRACTION = 7 / 8  # fraction of the registers for values; others are for constants and intermediate results

NEVER_USED = 1 << 60  # next use of a value that is not used again

Place = tuple[str, int]
"""A block in memory: the name of a pointer, and the number of the block."""

Name = TypeVar("Name", str, int)
"""How code refers to a value that it holds: by the name of a value, or the number of a register."""


class Plan(ABC, Generic[Name]):
    """Writer of operations that tracks the location of each value; ``memory`` has those of values from other pieces."""

    def __init__(self, program: Program, memory: dict[int, Place], registers: int, spill: int):
        self.program = program
        self.spilled = spill  # first free location of scratch memory
        self._memory, self._registers = memory, int(HELD_FRACTION * registers)
        self._own: dict[int, Place] = {}  # locations of values stored by this piece
        self._held: dict[int, Name] = {}
        self._next_use: dict[int, int] = {}  # next use of each value in a register

    def write(self, indices: Sequence[int], stores: dict[int, list[Place]]) -> None:
        """Write operations in the order of ``indices``, and store values as listed in ``stores``."""
        operations, held, next_use = self.program.operations, self._held, self._next_use
        for index, uses in zip(indices, self._uses(indices), strict=True):
            code, arguments, number = operations[index]
            is_product = code in PRODUCTS
            names = [held[item] if item in held else self.value(item, is_product) for item in arguments]
            value = self.compute(code, number, names, len(uses) > 1 and uses[-2] == NEVER_USED)
            if index in stores:
                for place in stores[index]:
                    self.store(value, place)
            for argument, use in zip(arguments, uses, strict=False):
                if use != NEVER_USED:
                    next_use[argument] = use
                elif argument in held:
                    name = held.pop(argument)
                    if name != value:
                        self.release(name)
            if uses[-1] != NEVER_USED:
                held[index], next_use[index] = value, uses[-1]
            else:
                self.release(value)
            if len(held) > self._registers:
                self._evict()

    def copy(self, index: int, place: Place) -> None:
        """Copy a value in memory to another location."""
        value = self.value(index)
        self.store(value, place)
        self._held.pop(index, None)
        self.release(value)

    @abstractmethod
    def compute(self, code: int, number: float, names: list[Name], ends: bool) -> Name:
        """Write an operation; ``ends`` states whether this is the last use of its last argument."""

    @abstractmethod
    def value(self, index: int, is_factor: bool = False) -> Name:
        """Load a value that is not in a register, and return its name.

        ``is_factor`` states that it is used as a factor of a product, so a constant may be written in a cheaper form.
        """

    @abstractmethod
    def store(self, name: Name, place: Place) -> None:
        """Write a value to a block."""

    def release(self, name: Name) -> None:
        """Record that a value is no longer needed."""

    def _uses(self, indices: Sequence[int]) -> list[list[int]]:
        """Return, for each operation, the next uses of its arguments, followed by the first use of its value."""
        operations = self.program.operations
        following: dict[int, int] = {}
        result: list[list[int]] = []
        for position in range(len(indices) - 1, -1, -1):
            index = indices[position]
            arguments: tuple[int, ...] = operations[index].arguments
            result.append([following.get(value, NEVER_USED) for value in (*arguments, index)])
            for argument in arguments:
                following[argument] = position
        return result[::-1]

    def _evict(self) -> None:
        """Free the registers of the values with the farthest next use."""
        while len(self._held) > self._registers:
            index = max(self._held, key=self._next_use.__getitem__)
            value = self._held.pop(index)
            if index not in self._own and index not in self._memory:
                # Each location is used only once, because LLVM is told that loaded values do not change.
                self._own[index] = "%scratch", self.spilled
                self.spilled += 1
                self.store(value, self._own[index])
            self.release(value)


# Machine code of one piece of a program for AArch64, generated without LLVM.
#
# With a register plan, vector arithmetic takes a few 32-bit words per operation. LLVM, which parses and checks text and
# makes about sixty passes over it, takes thirty times as long to generate the same words. LLVM compiles pieces with
# other operations (comparisons, elementary functions).

REGISTERS = 32
BLOCK = 16  # bytes of a register, and of a block of memory
_SHORT_REACH = 4096  # number of blocks that an instruction can address from a pointer
MAX_REACH = _SHORT_REACH * 256  # number of blocks that can be addressed with an additional instruction
_LONG = 1 << 17  # words of code after which the table of constants may start; one instruction reaches twice as far

# Instructions on four float32, or with _DOUBLE, on two float64. The fields are rd, rn << 5, rm << 16.
_DOUBLE = 1 << 22
_FADD, _FSUB, _FMUL, _FDIV = 0x4E20D400, 0x4EA0D400, 0x6E20DC00, 0x6E20FC00
_FMLA, _FMLS, _FNEG = 0x4E20CC00, 0x4EA0CC00, 0x6EA0F800
_FCMGT_0, _FCMLT_0 = 0x4EA0C800, 0x4EA0E800  # set all bits of lanes above or below zero
# Bitwise instructions. _BSL selects bits of rn where bits of rd are set, and of rm elsewhere.
_ORR, _BSL = 0x4EA01C00, 0x6E601C00
# The fields are rt, rn << 5, offset in blocks << 10; the offset of an addition is in pages of 4096 bytes.
_LDR, _STR, _ADD_PAGES = 0x3DC00000, 0x3D800000, 0x91400000
_PAGE = 4096 // BLOCK
_ADR, _RET = 0x10000000, 0xD65F03C0
_SAVE = (0x6DBC27E8, 0x6D012FEA, 0x6D0237EC, 0x6D033FEE)  # save d8 to d15, which belong to the caller
_RESTORE = (0x6D412FEA, 0x6D4237EC, 0x6D433FEE, 0x6CC427E8)

_BINARY: dict[int, int] = {ca.OP_ADD: _FADD, ca.OP_SUB: _FSUB, ca.OP_MUL: _FMUL, ca.OP_DIV: _FDIV}
_TWO_TIMES_ONE: dict[int, int] = {ca.OP_SQ: _FMUL, ca.OP_TWICE: _FADD}
_UNARY: dict[int, int] = {ca.OP_NEG: _FNEG, ca.OP_FABS: 0x4EA0F800, ca.OP_SQRT: 0x6EA1F800}
_UNARY |= {ca.OP_FLOOR: 0x4E219800, ca.OP_CEIL: 0x4EA18800}
_KNOWN = {*_BINARY, *_TWO_TIMES_ONE, *_UNARY, PLUS, MINUS, FROM, ca.OP_INV, ca.OP_SIGN, ca.OP_CONST}

_POINTERS = {"%in": 0, "%out": 1, "%scratch": 2, "%numbers": 8}  # pointer registers x0, ...
_FAR_POINTERS = range(9, 16)


def can_encode(program: Program, part: Stage) -> bool:
    """Return whether a piece can be encoded as machine code on this machine."""
    return all(program.operations[index].code in _KNOWN for index in part.indices)


class NeonPiece(Plan[int]):
    """Writer of operations as machine code; values are in the registers v0 to v31."""

    def __init__(self, program: Program, scalar: Scalar, memory: dict[int, Place], spill: int):
        super().__init__(program, memory, REGISTERS, spill)
        self._scalar, self._type = scalar, _DOUBLE if scalar.size == 8 else 0
        self._free: list[int] = [*range(15, 7, -1), *range(31, 15, -1), *range(7, -1, -1)]  # taken from the end
        self._words: list[int] = []
        self._numbers: dict[int, int] = {}  # table row of each constant by its bits
        self._far: dict[Place, int] = {}  # registers of pointers to distant blocks

    def compute(self, code: int, number: float, names: list[int], ends: bool) -> int:
        """Write an operation and return the register of its value; a sum may overwrite its last argument."""
        words, kind = self._words, self._type
        if code in (PLUS, FROM):
            a, b, total = names
            if not ends:
                to = self._free.pop()
                words.append(_ORR | total << 16 | total << 5 | to)
                total = to
            words.append((_FMLA if code == PLUS else _FMLS) | kind | b << 16 | a << 5 | total)
            return total
        if code == ca.OP_CONST:
            return self._load(self._number(number))
        to = self._free.pop()
        if code in _BINARY:
            a, b = names
            words.append(_BINARY[code] | kind | b << 16 | a << 5 | to)
        elif code in _TWO_TIMES_ONE:
            a = names[0]
            words.append(_TWO_TIMES_ONE[code] | kind | a << 16 | a << 5 | to)
        elif code == MINUS:
            a, b, c = names
            words.append(_FNEG | kind | c << 5 | to)
            words.append(_FMLA | kind | b << 16 | a << 5 | to)
        elif code == ca.OP_INV:
            one = self._load(self._number(1.0))
            words.append(_FDIV | kind | names[0] << 16 | one << 5 | to)
            self._free.append(one)
        elif code == ca.OP_SIGN:
            self._sign(names[0], to)
        else:
            words.append(_UNARY[code] | kind | names[0] << 5 | to)
        return to

    def _sign(self, a: int, to: int) -> None:
        """Write -1 or 1 with the sign of a number; zeros and NaN are copied."""
        signed = self._load(self._bits(1 << (8 * self._scalar.size - 1)))
        one = self._load(self._number(1.0))
        self._words += [
            _BSL | one << 16 | a << 5 | signed,
            _FCMGT_0 | self._type | a << 5 | to,
            _FCMLT_0 | self._type | a << 5 | one,
            _ORR | one << 16 | to << 5 | to,
            _BSL | a << 16 | signed << 5 | to,
        ]
        self._free += [signed, one]

    def value(self, index: int, is_factor: bool = False) -> int:
        """Load a value from memory, or a constant from the table after the code."""
        if index not in self._own and self.program.operations[index].code == ca.OP_CONST:
            self._own[index] = self._number(self.program.operations[index].number)
        self._held[index] = self._load(self._own.get(index) or self._memory[index])
        return self._held[index]

    def store(self, name: int, place: Place) -> None:
        """Write a register to a block."""
        self._words.append(_STR | self._address(place) | name)

    def release(self, name: int) -> None:
        """Record that a register is free."""
        self._free.append(name)

    def _load(self, place: Place) -> int:
        name = self._free.pop()
        self._words.append(_LDR | self._address(place) | name)
        return name

    def _number(self, number: float) -> Place:
        """Return the location of a constant in the table after the code."""
        return self._bits(self._scalar.bits(number))

    def _bits(self, bits: int) -> Place:
        return "%numbers", self._numbers.setdefault(bits, len(self._numbers))

    def _address(self, place: Place) -> int:
        """Return the instruction fields with the address of a block."""
        base, block = place
        if block < _SHORT_REACH:
            return block << 10 | _POINTERS[base] << 5
        begin = base, block // _SHORT_REACH * _SHORT_REACH
        if begin not in self._far:
            if len(self._far) == len(_FAR_POINTERS):
                self._far.clear()
            self._far[begin] = _FAR_POINTERS[len(self._far)]
            pages = begin[1] // _PAGE
            self._words.append(_ADD_PAGES | pages << 10 | _POINTERS[base] << 5 | self._far[begin])
        return (block - begin[1]) << 10 | self._far[begin] << 5

    def encode(self) -> bytes:
        """Return the instructions of the function, followed by the table of its constants."""
        body = np.array(self._words, "<u4")
        named = body[body >> 24 != _ADD_PAGES >> 24] & 31
        saves = bool(np.any((named >= 8) & (named < 16)))
        head, end = (list(_SAVE), [*_RESTORE, _RET]) if saves else ([], [_RET])
        # If a value is stored to many results, the code is so long that the address takes a second instruction.
        is_long = len(body) > _LONG
        length = len(head) + 1 + is_long + len(body) + len(end)
        distance = length + -length % 4 - len(head)  # in words, relative to the instruction that computes the address
        pages, near = divmod(distance, 4096 // 4) if is_long else (0, distance)
        address = [_ADR | near << 5 | 8, _ADD_PAGES | pages << 10 | 8 << 5 | 8][: 1 + is_long]
        words = np.concatenate([np.array([*head, *address], "<u4"), body, np.array(end, "<u4")])
        lanes = BLOCK // self._scalar.size
        rows = np.repeat(np.array(list(self._numbers), f"<u{self._scalar.size}"), lanes)
        return words.tobytes() + bytes(4 * (-length % 4)) + rows.tobytes()


def write_encoded(name: str, code: bytes) -> str:
    """Return the LLVM code of a function whose machine code precedes its empty body."""
    data = f'[{len(code)} x i8] c"\\{code.hex(chr(92))}"'
    return f"define void @{name}(ptr %in, ptr %out, ptr %scratch) align {BLOCK} prologue {data} {{\n  unreachable\n}}\n"


READABLE = f"dereferenceable({1 << 30})"  # allows LLVM to move loads


class Piece(Plan[str]):
    """Writer of operations as LLVM code; values in registers are LLVM values."""

    def __init__(self, program: Program, emitter: Emitter, memory: dict[int, Place], registers: int, spill: int):
        super().__init__(program, memory, registers, spill)
        self.emitter = emitter
        self._epoch = 0
        self._pointers: dict[str, str] = {}
        self._seen: dict[Place, int] = {}
        emitter.load_flags = ", !invariant.load !0"
        emitter.may_fuse = False  # ``fusion.py`` has selected the fused operations

    def compute(self, code: int, number: float, names: list[str], ends: bool) -> str:
        """Write an operation using its rule."""
        if code == ca.OP_CONST:
            return self.emitter.constant(number)
        if code == ca.OP_CALL:
            return self._entry(int(number), *names)
        return (FUSED_RULES.get(code) or self._elementary(code))(self.emitter, *names)

    def _entry(self, number: int, index: str) -> str:
        """Write instructions that load an entry of a table."""
        e, name = self.emitter, f"@table.{number}"
        e.functions[name] = f"{name} = external constant i8"
        return e.entry(f"ptr {name}", len(self.program.tables[number]) // 8, index)

    def _elementary(self, code: int) -> Rule:
        # Imported on demand, because few functions need this long module.
        from torsor.compiler.llvm.elementary import ELEMENTARY

        if code not in ELEMENTARY:
            raise NotImplementedError(no_rule(self.program.name, code))
        return ELEMENTARY[code]

    def value(self, index: int, is_factor: bool = False) -> str:
        """Load a value from memory, or write a constant inline."""
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
            # Otherwise, LLVM would reuse the value that it stored or loaded before, and keep it in a register until
            # now.
            self._epoch += 1
            self._pointers.clear()
        self._seen[place] = self._epoch
        base, block = place
        if self._epoch and base not in self._pointers:
            # An opaque copy of the pointer, after which earlier stores are in memory.
            copy = f'call {READABLE} ptr asm sideeffect "", "=r,0,~{{memory}}"(ptr {base})'
            self._pointers[base] = self.emitter.put(copy)
        return self.emitter.load(self._address(self._pointers.get(base, base), block))

    def _address(self, base: str, block: int) -> str:
        size = self.emitter.width * self.emitter.scalar.size
        return self.emitter.put(f"getelementptr i8, ptr {base}, i64 {block * size}")


def write_piece(name: str, piece: Piece) -> str:
    """Return the module with a piece as a function."""
    head = f"define void @{name}(ptr noalias {READABLE} %in, ptr noalias %out, ptr {READABLE} %scratch) {{"
    e = piece.emitter
    body = "\n".join([_declarations(e), e.numbers(), head, "entry:", *e.lines, "  ret void", "}", "!0 = !{}", ""])
    return body if e.functions else PLANNED_MARK + body  # elementary functions benefit from optimisation


def write_table(number: int, table: bytes, scalar: Scalar) -> str:
    """Return the module with the entries of a table, which are converted from float64."""
    data = np.frombuffer(table).astype(scalar.dtype).tobytes()
    text = f'[{len(data)} x i8] c"\\{data.hex(chr(92))}"'
    return f"{ENCODED_MARK}@table.{number} = constant {text}, align {BLOCK}\n"


def _declarations(e: Emitter) -> str:
    """Return the declarations of intrinsics, and the elementary functions in use."""
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({e.vector})" for name in ("sqrt", "fabs", "floor", "ceil")]
    lines.append(f"declare {e.vector} @llvm.fmuladd.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.copysign.{e.suffix}({e.vector}, {e.vector})")
    lines.append(f"declare {e.vector} @llvm.fma.{e.suffix}({e.vector}, {e.vector}, {e.vector})")
    lines += e.functions.values()
    return "\n".join(lines)
