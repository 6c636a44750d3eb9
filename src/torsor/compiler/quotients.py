"""Divisions by the same number: it is inverted once, and each of them becomes a product.

A division takes as long as ten products or more, and on a card it has a branch. The quotient of x and d is then within
1.5 units of the last place, not 0.5; it is infinite where d is so small that 1 / d is beyond the largest number.
"""

from collections import Counter
from dataclasses import replace

import casadi as ca

from torsor.compiler.program import Operation, Program

_LEAST = 2  # divisions by a number for which it is inverted


def with_reciprocals(program: Program) -> Program:
    """Return a program in which numbers that divide several others are inverted once.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 4)
        >>> program = with_reciprocals(read_program(ca.Function("f", [x], [x[:3] / x[3]])))
        >>> [sum(each.code == code for each in program.operations) for code in (ca.OP_DIV, ca.OP_INV, ca.OP_MUL)]
        [0, 1, 3]
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
            operation = Operation(ca.OP_MUL, (x, inverse[d]))
        else:
            operation = Operation(operation.code, arguments, operation.number)
        place.append(len(operations))
        operations.append(operation)
    results = tuple(tuple(None if each is None else place[each] for each in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)
