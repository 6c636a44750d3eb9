"""Divisions by the same number: it is inverted once, and each quotient takes four short operations instead.

A division takes as long as ten multiplications or more. The quotient x / d is found from r = 1 / d by one step of
Newton's method, q = x r, q + (x - q d) r, with fused products, and is the correctly rounded one (Markstein 1990), unless
1 / d is beyond the largest number or below the smallest normal one.
"""

from collections import Counter
from dataclasses import replace

import casadi as ca

from torsor.compiler.program import Operation, Program

QUOTIENT = -1
"""The code of the operation with the arguments (x, d, r): x / d, where r is 1 / d. CasADi has no such operation."""

_LEAST = 2  # divisions by a number for which it is inverted


def with_reciprocals(program: Program) -> Program:
    """Return a program in which numbers that divide several others are inverted once.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 4)
        >>> program = with_reciprocals(read_program(ca.Function("f", [x], [x[:3] / x[3]])))
        >>> sum(each.code == QUOTIENT for each in program.operations)
        3
        >>> sum(each.code == ca.OP_INV for each in program.operations)
        1
    """
    divisors = Counter(each.arguments[1] for each in program.operations if each.code == ca.OP_DIV)
    operations: list[Operation] = []
    place: list[int] = []
    inverse: dict[int, int] = {}
    for operation in program.operations:
        if operation.code in (ca.OP_INPUT, ca.OP_CONST):
            arguments = operation.arguments
        else:
            arguments = tuple(place[each] for each in operation.arguments)
        if operation.code == ca.OP_DIV and divisors[operation.arguments[1]] >= _LEAST:
            x, d = arguments
            if d not in inverse:
                inverse[d] = len(operations)
                operations.append(Operation(ca.OP_INV, (d,)))
            operation = Operation(QUOTIENT, (x, d, inverse[d]))
        else:
            operation = replace_arguments(operation, arguments)
        place.append(len(operations))
        operations.append(operation)
    results = tuple(tuple(None if each is None else place[each] for each in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)


def replace_arguments(operation: Operation, arguments: tuple[int, ...]) -> Operation:
    """Return an operation with other arguments."""
    return Operation(operation.code, arguments, operation.number)
