"""Sums of products in one instruction: which product belongs to which sum is decided here, not by LLVM.

So the same products are fused on every processor that can, whether LLVM optimises or not, and the plan of registers
knows what each instruction takes.
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from torsor.compiler.llvm.rules import RULES, Emitter, Rule
from torsor.compiler.program import Operation, Program

NEAR = 200  # operations between a product and its sum: two factors would wait in place of one product

# The codes of a b + c, a b - c and c - a b, with the arguments (a, b, c). CasADi has no such operations.
PLUS, MINUS, FROM = 1001, 1002, 1003

PRODUCTS = {ca.OP_MUL, PLUS, MINUS, FROM}
"""Operations whose first or second argument may be a constant factor."""

_NOTHING = Operation(ca.OP_CONST, ())  # what remains of a product, a constant that nobody uses


def _plus(e: Emitter, a: str, b: str, c: str) -> str:
    vector = e.vector
    return e.put(f"call {vector} @llvm.fmuladd.{e.suffix}({vector} {a}, {vector} {b}, {vector} {c})")


def _minus(e: Emitter, a: str, b: str, c: str) -> str:
    return _plus(e, a, b, e.put(f"fneg {e.vector} {c}"))


def _from(e: Emitter, a: str, b: str, c: str) -> str:
    return _plus(e, a, e.put(f"fneg {e.vector} {b}"), c)


FUSED_RULES: dict[int, Rule] = RULES | {PLUS: _plus, MINUS: _minus, FROM: _from}
"""The rules of ``rules.py`` and those of fused products; processors that have none multiply, then add."""


def fused(program: Program) -> Program:
    """Return a program whose sums take products that nobody else uses as factors; indices of values remain.

    Of two products the second is fused: the first is known earlier, or would have to be negated.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 4)
        >>> program = fused(read_program(ca.Function("f", [x], [x[0] * x[1] - x[2] * x[3]])))
        >>> [operation.code == FROM for operation in program.operations].count(True)
        1
    """
    operations = list(program.operations)
    users = _users(program)
    for index, (code, arguments, _) in enumerate(program.operations):
        if code != ca.OP_ADD and code != ca.OP_SUB:
            continue
        first, second = arguments
        if users[second] == 1 and index - second < NEAR and operations[second].code in (ca.OP_MUL, ca.OP_SQ):
            product, other, kind = second, first, PLUS if code == ca.OP_ADD else FROM
        elif users[first] == 1 and index - first < NEAR and operations[first].code in (ca.OP_MUL, ca.OP_SQ):
            product, other, kind = first, second, PLUS if code == ca.OP_ADD else MINUS
        else:
            continue
        factors = operations[product].arguments
        a, b = factors if len(factors) == 2 else factors * 2
        if operations[b].code == ca.OP_CONST:
            a, b = b, a  # the second may be negated
        operations[index] = Operation(kind, (a, b, other))
        operations[product] = _NOTHING
    return replace(program, operations=tuple(operations))


def _users(program: Program) -> Sequence[int]:
    """Return how many operations and results take each value."""
    users = [0] * len(program.operations)
    for code, arguments, _ in program.operations:
        if code != ca.OP_INPUT:
            for argument in arguments:
                users[argument] += 1
    for result in program.results:
        for index in result:
            if index is not None:
                users[index] += 1
    return users
