"""Products beside the sums that they are fused with, so that no plan of pieces and registers comes between them.

LLVM fuses a product with the sum or difference that alone uses it, the first of two such products. If the product were
stored and loaded again before the sum, it would be rounded: the last digit of a result would depend on where a function
is cut, and on how many registers a processor has.
"""

from collections import Counter

import casadi as ca

from torsor.compiler.order import arranged
from torsor.compiler.program import Program

PRODUCTS = frozenset((ca.OP_MUL, ca.OP_SQ))
_SUMS = frozenset((ca.OP_ADD, ca.OP_SUB))


def uses(program: Program) -> Counter[int]:
    """Return how many times each value is used, by operations and as a result."""
    found = Counter(index for each in program.operations if each.code != ca.OP_INPUT for index in each.arguments)
    found.update(index for result in program.results for index in result if index is not None)
    return found


def fused(program: Program) -> dict[int, int]:
    """Return the product that each sum is fused with, by the index of the sum.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 2)
        >>> program = read_program(ca.Function("f", [x], [x[0] * x[1] + x[0]]))
        >>> [[program.operations[k].code for k in pair] for pair in fused(program).items()] == [[ca.OP_ADD, ca.OP_MUL]]
        True
    """
    operations, times = program.operations, uses(program)
    found: dict[int, int] = {}
    for index, operation in enumerate(operations):
        if operation.code in _SUMS:
            for argument in operation.arguments:
                if operations[argument].code in PRODUCTS and times[argument] == 1:
                    found[index] = argument
                    break
    return found


def with_products_at_sums(program: Program) -> Program:
    """Return a program in which products that are fused come just before their sums.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 3)
        >>> program = with_products_at_sums(read_program(ca.Function("f", [x], [x[0] * x[1] + ca.sin(x[2])])))
        >>> [operation.code for operation in program.operations[-2:]] == [ca.OP_MUL, ca.OP_ADD]
        True
    """
    pairs = fused(program)
    waiting = set(pairs.values())
    order = []
    for index in range(len(program.operations)):
        if index in pairs:
            order.append(pairs[index])
        if index not in waiting:
            order.append(index)
    return arranged(program, order)
