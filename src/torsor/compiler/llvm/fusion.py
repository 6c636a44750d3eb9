"""Faster forms of operations: products are fused with sums, and one division replaces several.

The products to fuse are selected here instead of in LLVM. The same products are therefore fused on every processor that
supports fusion, with or without LLVM's optimisation, and the register plan includes instruction costs.

A division takes at least as long as ten products, and needs a branch on a GPU. A number that divides several others is
therefore inverted once; CasADi itself simplifies x (1 / d) to x / d. The quotient then has an error of at most 1.5
units in the last place instead of 0.5, and is infinite if d is so small that 1 / d overflows.
"""

from collections import Counter
from dataclasses import replace

import casadi as ca

from torsor.compiler.llvm.rules import RULES, Emitter, Rule
from torsor.compiler.program import Operation, Program

MAX_FUSION_DISTANCE = 200  # operations between a product and its sum: two factors stay live instead of one product

# Codes of a b + c, a b - c and c - a b with the arguments (a, b, c), which CasADi does not have.
PLUS, MINUS, FROM = 1001, 1002, 1003

PRODUCTS = {ca.OP_MUL, PLUS, MINUS, FROM}
"""Operations whose first or second argument may be a constant factor."""

_NOTHING = Operation(ca.OP_CONST, ())  # replaces a fused product by an unused constant
_MIN_DIVISIONS = 2  # minimum number of divisions by a number that is inverted
_JUMPS = {ca.OP_FLOOR, ca.OP_CEIL, ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_FMOD, ca.OP_REMAINDER}


def _plus(e: Emitter, a: str, b: str, c: str) -> str:
    vector = e.vector
    return e.put(f"call {vector} @llvm.fmuladd.{e.suffix}({vector} {a}, {vector} {b}, {vector} {c})")


FUSED_RULES: dict[int, Rule] = RULES | {
    PLUS: _plus,
    MINUS: lambda e, a, b, c: _plus(e, a, b, e.put(f"fneg {e.vector} {c}")),
    FROM: lambda e, a, b, c: _plus(e, a, e.put(f"fneg {e.vector} {b}"), c),
}
"""The rules of ``rules.py`` and those of fused products; processors without fusion multiply, then add."""


def fused(program: Program) -> Program:
    """Return a program in which each product used by a single sum is fused into it; value indices are unchanged.

    If a sum has two products, the second is fused, because the first is available earlier or would have to be negated.
    """
    operations = list(program.operations)
    users = _users(program)
    for index, (code, arguments, _) in enumerate(program.operations):
        if code != ca.OP_ADD and code != ca.OP_SUB:
            continue
        first, second = arguments
        if (
            users[second] == 1
            and index - second < MAX_FUSION_DISTANCE
            and operations[second].code in (ca.OP_MUL, ca.OP_SQ)
        ):
            product, other, kind = second, first, PLUS if code == ca.OP_ADD else FROM
        elif (
            users[first] == 1
            and index - first < MAX_FUSION_DISTANCE
            and operations[first].code in (ca.OP_MUL, ca.OP_SQ)
        ):
            product, other, kind = first, second, PLUS if code == ca.OP_ADD else MINUS
        else:
            continue
        factors = operations[product].arguments
        a, b = factors if len(factors) == 2 else factors * 2
        if operations[b].code == ca.OP_CONST:
            a, b = b, a  # the second product may be negated
        operations[index] = Operation(kind, (a, b, other))
        operations[product] = _NOTHING
    return replace(program, operations=tuple(operations))


def _users(program: Program) -> list[int]:
    """Return the number of operations and results that use each value."""
    users = [0] * len(program.operations)
    for code, arguments, _ in program.operations:
        if code != ca.OP_INPUT:
            for argument in arguments:
                users[argument] += 1
    for index, places in program.targets.items():
        if index is not None:
            users[index] += len(places)
    return users


def with_reciprocals(program: Program) -> Program:
    """Return a program in which numbers that divide several others are inverted once."""
    divisors = Counter(item.arguments[1] for item in program.operations if item.code == ca.OP_DIV)
    # In discontinuous functions, the last place matters: floor(49 / 49) is 1.
    exact = {argument for item in program.operations if item.code in _JUMPS for argument in item.arguments}
    operations: list[Operation] = []
    place: list[int] = []
    inverse: dict[int, int] = {}
    for index, operation in enumerate(program.operations):
        arguments = tuple(place[item] for item in operation.taken) or operation.arguments
        if operation.code == ca.OP_DIV and divisors[operation.arguments[1]] >= _MIN_DIVISIONS and index not in exact:
            x, d = arguments
            if d not in inverse:
                inverse[d] = len(operations)
                operations.append(Operation(ca.OP_INV, (d,)))
            operation = Operation(ca.OP_MUL, (x, inverse[d]))
        else:
            operation = Operation(operation.code, arguments, operation.number)
        place.append(len(operations))
        operations.append(operation)
    results = tuple(tuple(None if item is None else place[item] for item in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)
