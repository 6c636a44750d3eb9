"""Machine code of one piece of a program for AArch64, written without LLVM.

With a plan of registers, arithmetic on vectors is a few words of 32 bits for each operation: LLVM, which reads and
checks a text and goes through it some sixty times, takes thirty times as long to make the same ones. Pieces with other
operations (comparisons, elementary functions) are left to LLVM.
"""

import casadi as ca
import numpy as np

from torsor.compiler.llvm.angles import Stage
from torsor.compiler.llvm.fusion import FROM, MINUS, PLUS
from torsor.compiler.llvm.plan import Place, Plan
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.program import Program

REGISTERS = 32
BLOCK = 16  # bytes of a register, and of a block of memory
_NEAR = 4096  # blocks that an instruction reaches from a pointer
REACH = _NEAR * 256  # blocks that are reached at all, with another instruction
_LONG = 1 << 17  # words of code, behind which lies the table of constants: one instruction reaches twice as far

# Instructions on four float32; with _DOUBLE on two float64. The fields are rd, rn << 5, rm << 16.
_DOUBLE = 1 << 22
_FADD, _FSUB, _FMUL, _FDIV = 0x4E20D400, 0x4EA0D400, 0x6E20DC00, 0x6E20FC00
_FMLA, _FMLS, _FNEG = 0x4E20CC00, 0x4EA0CC00, 0x6EA0F800
_FCMGT_0, _FCMLT_0 = 0x4EA0C800, 0x4EA0E800  # all bits of a lane are set where it is above or below zero
# On all bits. _BSL takes those of rn where those of rd are set, and of rm elsewhere.
_ORR, _BSL = 0x4EA01C00, 0x6E601C00
# rt, rn << 5, offset in blocks << 10; an addition has its offset in pages of 4096 bytes.
_LDR, _STR, _ADD_PAGES = 0x3DC00000, 0x3D800000, 0x91400000
_PAGE = 4096 // BLOCK
_ADR, _RET = 0x10000000, 0xD65F03C0
_SAVE = (0x6DBC27E8, 0x6D012FEA, 0x6D0237EC, 0x6D033FEE)  # d8 to d15 belong to the caller
_RESTORE = (0x6D412FEA, 0x6D4237EC, 0x6D433FEE, 0x6CC427E8)

_BINARY: dict[int, int] = {ca.OP_ADD: _FADD, ca.OP_SUB: _FSUB, ca.OP_MUL: _FMUL, ca.OP_DIV: _FDIV}
_TWO_TIMES_ONE: dict[int, int] = {ca.OP_SQ: _FMUL, ca.OP_TWICE: _FADD}
_UNARY: dict[int, int] = {
    ca.OP_NEG: _FNEG,
    ca.OP_FABS: 0x4EA0F800,
    ca.OP_SQRT: 0x6EA1F800,
    ca.OP_FLOOR: 0x4E219800,
    ca.OP_CEIL: 0x4EA18800,
}
_KNOWN = {*_BINARY, *_TWO_TIMES_ONE, *_UNARY, PLUS, MINUS, FROM, ca.OP_INV, ca.OP_SIGN, ca.OP_CONST}

_POINTERS = {"%in": 0, "%out": 1, "%scratch": 2, "%numbers": 8}  # the registers x0, ...
_FAR_POINTERS = range(9, 16)


def can_encode(program: Program, part: Stage) -> bool:
    """Return whether machine code of a piece can be written here."""
    return all(program.operations[index].code in _KNOWN for index in part.indices)


class NeonPiece(Plan[int]):
    """Writes operations as machine code; values are held in the registers v0 to v31."""

    def __init__(self, program: Program, scalar: Scalar, memory: dict[int, Place], spill: int):
        super().__init__(program, memory, REGISTERS, spill)
        self._scalar, self._type = scalar, _DOUBLE if scalar.size == 8 else 0
        self._free: list[int] = [*range(15, 7, -1), *range(31, 15, -1), *range(7, -1, -1)]  # the last is taken first
        self._words: list[int] = []
        self._numbers: dict[int, int] = {}  # the row of each constant, by its bits
        self._far: dict[Place, int] = {}  # the registers of pointers to blocks far from the beginning

    def compute(self, code: int, number: float, names: list[int], ends: bool) -> int:
        """Write an operation, and return the register of its value: the last argument's if a sum may end it."""
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
        """Write -1 or 1 with the sign of a number; zeros and NaN remain."""
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
        """Load a value from memory, or a constant from the table behind the code."""
        if index not in self._own and self.program.operations[index].code == ca.OP_CONST:
            self._own[index] = self._number(self.program.operations[index].number)
        self._held[index] = self._load(self._own.get(index) or self._memory[index])
        return self._held[index]

    def store(self, name: int, place: Place) -> None:
        """Write a register to a block."""
        self._words.append(_STR | self._address(place) | name)

    def release(self, name: int) -> None:
        """Note that a register is free."""
        self._free.append(name)

    def _load(self, place: Place) -> int:
        name = self._free.pop()
        self._words.append(_LDR | self._address(place) | name)
        return name

    def _number(self, number: float) -> Place:
        """Return the place of a constant in the table behind the code."""
        return self._bits(self._scalar.bits(number))

    def _bits(self, bits: int) -> Place:
        return "%numbers", self._numbers.setdefault(bits, len(self._numbers))

    def _address(self, place: Place) -> int:
        """Return the fields of an instruction with the address of a block."""
        base, block = place
        if block < _NEAR:
            return block << 10 | _POINTERS[base] << 5
        begin = base, block // _NEAR * _NEAR
        if begin not in self._far:
            if len(self._far) == len(_FAR_POINTERS):
                self._far.clear()
            self._far[begin] = _FAR_POINTERS[len(self._far)]
            pages = begin[1] // _PAGE
            self._words.append(_ADD_PAGES | pages << 10 | _POINTERS[base] << 5 | self._far[begin])
        return (block - begin[1]) << 10 | self._far[begin] << 5

    def encode(self) -> bytes:
        """Return the function: its instructions, and the table of its constants."""
        body = np.array(self._words, "<u4")
        named = body[body >> 24 != _ADD_PAGES >> 24] & 31
        saves = bool(np.any((named >= 8) & (named < 16)))
        head, end = (list(_SAVE), [*_RESTORE, _RET]) if saves else ([], [_RET])
        # A value that is a result many times makes code so long that the address takes a second instruction.
        is_long = len(body) > _LONG
        length = len(head) + 1 + is_long + len(body) + len(end)
        distance = length + -length % 4 - len(head)  # in words, from the instruction that computes the address
        pages, near = divmod(distance, 4096 // 4) if is_long else (0, distance)
        address = [_ADR | near << 5 | 8, _ADD_PAGES | pages << 10 | 8 << 5 | 8][: 1 + is_long]
        words = np.concatenate([np.array([*head, *address], "<u4"), body, np.array(end, "<u4")])
        lanes = BLOCK // self._scalar.size
        rows = np.repeat(np.array(list(self._numbers), f"<u{self._scalar.size}"), lanes)
        return words.tobytes() + bytes(4 * (-length % 4)) + rows.tobytes()


def write_encoded(name: str, code: bytes) -> str:
    """Return LLVM code of a function that consists of machine code, which lies before its empty body."""
    data = f'[{len(code)} x i8] c"\\{code.hex(chr(92))}"'
    return f"define void @{name}(ptr %in, ptr %out, ptr %scratch) align {BLOCK} prologue {data} {{\n  unreachable\n}}\n"
