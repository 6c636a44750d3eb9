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
from torsor.compiler.llvm.rules import Emitter, Rule
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


def _called(function: Callable[..., Number]) -> Rule:
    """Return the rule that calls a function of vectors, which is written once for each emitter."""

    def rule(e: Emitter, *arguments: str) -> str:
        name = f"@vectors.{function.__name__}"
        if name not in e.functions:
            e.functions[name] = _definition(e, name, function, len(arguments))
        typed = ", ".join(f"{e.vector} {argument}" for argument in arguments)
        return e.put(f"call {e.vector} {name}({typed})")

    return rule


def _definition(e: Emitter, name: str, function: Callable[..., Number], count: int) -> str:
    body = Emitter(e.scalar, e.width, e.constants, f"{name}.numbers")
    names = [f"%x{k}" for k in range(count)]
    result = function(*(Number(body, each) for each in names))
    arguments = ", ".join(f"{e.vector} {each}" for each in names)
    head = f"define internal {e.vector} {name}({arguments}) {{\nentry:"
    e.functions |= body.functions
    return "\n".join([body.numbers(), head, *body.lines, f"  ret {e.vector} {result.name}", "}"])


ELEMENTARY: dict[int, Rule] = {code: _called(function) for code, function in FUNCTIONS.items()}
"""The rule of each elementary function."""
