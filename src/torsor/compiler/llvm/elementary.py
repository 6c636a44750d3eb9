"""The rules of the elementary functions, as functions of vectors without branches and without a C library.

A function that is used in a piece is written once there, as an internal LLVM function of vectors, and called wherever
it is used: a program with thirty tanh is compiled as fast as one with one.
"""

from collections.abc import Callable

import casadi as ca

from torsor.compiler.llvm import (
    error_function,
    exponentials,
    inverse_trigonometry,
    logarithms,
    powers,
    remainders,
    tangent,
)
from torsor.compiler.llvm.rules import Emitter, Rule, Scalar
from torsor.compiler.llvm.vectors import Number

FUNCTIONS: dict[int, Callable[..., Number]] = {
    ca.OP_POW: powers.pow,
    ca.OP_CONSTPOW: powers.pow,
    ca.OP_HYPOT: powers.hypot,
    ca.OP_FMOD: remainders.fmod,
    ca.OP_REMAINDER: remainders.remainder,
    ca.OP_TAN: tangent.tan,
    ca.OP_EXP: exponentials.exp,
    ca.OP_EXPM1: exponentials.expm1,
    ca.OP_SINH: exponentials.sinh,
    ca.OP_COSH: exponentials.cosh,
    ca.OP_TANH: exponentials.tanh,
    ca.OP_LOG: logarithms.log,
    ca.OP_LOG1P: logarithms.log1p,
    ca.OP_ASINH: logarithms.asinh,
    ca.OP_ACOSH: logarithms.acosh,
    ca.OP_ATANH: logarithms.atanh,
    ca.OP_ASIN: inverse_trigonometry.asin,
    ca.OP_ACOS: inverse_trigonometry.acos,
    ca.OP_ATAN: inverse_trigonometry.atan,
    ca.OP_ATAN2: inverse_trigonometry.atan2,
    ca.OP_ERF: error_function.erf,
    ca.OP_ERFINV: error_function.erfinv,
}
"""The function of each CasADi operation."""


_TABLE_BYTES = 16  # of a vector register of AArch64


def _called(function: Callable[..., Number]) -> Rule:
    """Return the rule that calls a function of vectors, which is written once for each emitter."""

    def rule(e: Emitter, *arguments: str) -> str:
        name = f"@vectors.{function.__name__}"
        if name not in e.functions:
            e.functions[name] = _definition(e, name, function, len(arguments))
        typed = ", ".join(f"{e.vector} {argument}" for argument in arguments)
        return e.put(f"call {e.vector} {name}({typed})")

    return rule


class _Body(Emitter):
    """Writes a function. In vectors of 16 bytes its constants are loaded from a table.

    Those are the vectors of AArch64, where a constant of eight bytes takes five instructions, and a load one. Other
    processors take constants from memory anyway, or have them in their instructions.
    """

    def __init__(self, scalar: Scalar, width: int, table: str):
        super().__init__(scalar, width)
        self._table, self._numbers = table, dict[str, int]()

    def constant(self, number: float) -> str:
        """Return a vector with the same number in all lanes."""
        if self.width * self.scalar.size != _TABLE_BYTES or number == 0:
            return super().constant(number)
        place = self._numbers.setdefault(self.scalar.literal(number), len(self._numbers))
        pointer = self.put(f"getelementptr {self.vector}, ptr {self._table}, i64 {place}")
        return self.put(f"load {self.vector}, ptr {pointer}, align {_TABLE_BYTES}")

    def table(self) -> list[str]:
        """Return the definition of the table, if there is one."""
        rows = ", ".join(f"{self.vector} splat ({self.scalar.name} {literal})" for literal in self._numbers)
        size = f"[{len(self._numbers)} x {self.vector}]"
        return [f"{self._table} = internal constant {size} [{rows}], align {_TABLE_BYTES}"] if rows else []


def _definition(e: Emitter, name: str, function: Callable[..., Number], count: int) -> str:
    body = _Body(e.scalar, e.width, f"{name}.numbers")
    names = [f"%x{k}" for k in range(count)]
    result = function(*(Number(body, each) for each in names))
    arguments = ", ".join(f"{e.vector} {each}" for each in names)
    head = f"define internal {e.vector} {name}({arguments}) {{\nentry:"
    e.functions |= body.functions
    return "\n".join([*body.table(), head, *body.lines, f"  ret {e.vector} {result.name}", "}"])


ELEMENTARY: dict[int, Rule] = {code: _called(function) for code, function in FUNCTIONS.items()}
"""The rule of each elementary function."""
