"""The rules of the elementary functions: calls of functions of vectors without branches and without a C library."""

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
from torsor.compiler.llvm.calls import call
from torsor.compiler.llvm.rules import RULES, Rule
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
    return lambda e, *arguments: call(function, *(Number(e, each) for each in arguments)).name


ELEMENTARY: dict[int, Rule] = {code: _called(function) for code, function in FUNCTIONS.items()}
"""The rule of each elementary function."""

EVERY_RULE = RULES | ELEMENTARY
"""The rule of each CasADi operation but sin and cos."""
