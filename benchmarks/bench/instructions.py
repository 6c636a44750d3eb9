"""Count the instructions of a function for any processor, independently of the load on the machine.

The code of a function has no loops over its operations, except for those that compute sines and cosines. The
instructions executed for one block of W states are therefore those in its text, and those of these loops multiplied by
their number of passes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import casadi as ca

from torsor.compiler.llvm.angles import loops_called, write_angles
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.llvm.target import Target
from torsor.compiler.program import read_program


@dataclass(frozen=True)
class InstructionCount:
    """Instructions for a block of ``width`` states, by class; each instruction is in one class.

    ``arithmetic``: floating-point sums, products, quotients, square roots, and fused products and sums; ``fused`` is
    the number of the latter. ``memory``: loads and stores of values. ``constants``: instructions that load or build a
    constant. ``other``: everything else, such as comparisons, moves between registers, and calls. On x86-64, arithmetic
    with an operand in memory counts as arithmetic. ``bits`` is the length of the shortest vector in arithmetic
    instructions.
    """

    width: int
    arithmetic: int
    fused: int
    memory: int
    constants: int
    other: int
    bits: int

    @property
    def total(self) -> int:
        """All instructions."""
        return self.arithmetic + self.memory + self.constants + self.other

    @property
    def operations(self) -> int:
        """Floating-point operations; a fused product and sum counts as two."""
        return self.arithmetic + self.fused


def count_instructions(function: ca.Function, target: Target, dtype: str = "float64") -> InstructionCount:
    """Return the instructions of a CasADi function for one block of states, which is as wide as the vectors."""
    program, width = read_program(function), target.width(dtype)
    axes = tuple(1 if columns == 1 else 2 for _, columns in (*program.inputs, *program.outputs))
    states, *pieces = write_llvm(program, axes, dtype, width, target=target, encode=False)
    loops = target.assembly([write_angles(Scalar(dtype), width, target.constants, loops_called(states))])
    angles = [each for together, count in _passes(states) for each in _loop(loops, together) * count]
    return _counted([*_instructions(target.assembly(pieces)), *angles], target, width)


def _passes(module: str) -> list[tuple[int, int]]:
    """Return which loops over angles run for a block of states, by their angles at a time, and how many times."""
    first, last = (
        {int(begin): int(number) for begin, number in re.findall(rf"%{name}\.(\d+) = .*@places, i64 (\d+)", module)}
        for name in ("start", "last")
    )
    calls = re.findall(r"%some\.(\d+) = call i1 @angles\.(\d+)\(", module)
    return [(int(k), (last[int(begin)] - first[int(begin)]) // int(k)) for begin, k in calls]


def _loop(assembly: str, together: int) -> list[tuple[str, str]]:
    """Return the instructions of a loop over angles: from the label to which it jumps back, to that jump."""
    lines = iter(assembly.partition(f"angles.{together}:")[2].splitlines())
    found: list[str] = []
    starts: dict[str, int] = {}
    for line in lines:
        label = re.match(r"([.\w]+):", line)
        if label:
            starts[label[1]] = len(found)
        target = re.match(r"\t[a-z.]+\s+([.\w]+)$", line)
        found.append(line)
        if target and target[1] in starts:
            return list(_instructions("\n".join(found[starts[target[1]] :])))
    raise AssertionError("the loop over angles has no jump back")


_ARITHMETIC_X86 = re.compile(r"v?(add|sub|mul|div|sqrt)[ps][sd]|(?P<fused>vfn?m(add|sub)\d{3}[ps][sd])")
_ARITHMETIC_ARM = re.compile(r"f(add|sub|mul|nmul|div|sqrt)|(?P<fused>fml[as]|fn?m(add|sub))")
_MOVE_X86 = re.compile(r"v?mov|v?p?broadcast|push|pop")
_MEMORY_ARM = re.compile(r"(ld|st)[rpu\d]")
# Numbers too long for an instruction are built in an integer register and copied to all lanes.
_CONSTANT_ARM = re.compile(r"movi|mvni|movk|movz|movn|dup|adrp|ld1r")


def _counted(instructions: Iterable[tuple[str, str]], target: Target, width: int) -> InstructionCount:
    kinds = {"arithmetic": 0, "memory": 0, "constants": 0, "other": 0}
    fused, bits, pattern = 0, 512, _ARITHMETIC_ARM if target.is_arm else _ARITHMETIC_X86
    for mnemonic, operands in instructions:
        name = mnemonic.split(".")[0]  # Apple writes the kind of vector there: fmla.2d
        found = pattern.fullmatch(name)
        if found:
            kinds["arithmetic"] += 1
            fused += found["fused"] is not None
            bits = min(bits, _vector_bits(mnemonic, operands))
        else:
            kinds[_kind_arm(name, operands) if target.is_arm else _kind_x86(name, operands)] += 1
    return InstructionCount(width, **kinds, fused=fused, bits=bits)


def _instructions(assembly: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the operands of each instruction; labels and directives are none."""
    for line in assembly.splitlines():
        if re.match(r"\t[a-z]", line):
            name, _, operands = line.strip().partition("\t")
            yield name, operands


def _kind_x86(name: str, operands: str) -> str:
    if not _MOVE_X86.match(name):
        return "other"
    if "CPI" in operands or operands.startswith("$"):  # from the constant pool, or in the instruction
        return "constants"
    return "memory" if "(" in operands or name.startswith(("push", "pop")) else "other"


def _kind_arm(name: str, operands: str) -> str:
    if _CONSTANT_ARM.fullmatch(name) or "CPI" in operands or (name in ("mov", "fmov") and "#" in operands):
        return "constants"
    return "memory" if _MEMORY_ARM.match(name) else "other"


def _vector_bits(mnemonic: str, operands: str) -> int:
    """Return the length of the vector that an arithmetic instruction works on; a single number has its own length."""
    register = re.search(r"%([xyz])mm", operands)
    if register and not mnemonic.endswith(("sd", "ss")):
        return {"x": 128, "y": 256, "z": 512}[register[1]]
    return 128 if re.search(r"\.(2d|4s)", f"{mnemonic} {operands}") else 64
