"""Differences of products on AArch64, whose vector units add a product to a number, but subtract no number from one.

The difference a b - c d would be three instructions beside the product c d: a change of sign and a fused product and
sum. So the sign goes to a factor: a b + (-c) d has the same bits, signs of zeros included, since a change of sign
rounds nothing. It costs nothing where c is a constant, and little where c is a factor of several such products, as the
sine of an angle is: then -c is computed once.
"""

from collections import Counter
from dataclasses import replace

import casadi as ca

from torsor.compiler.llvm.fusion import PRODUCTS, uses
from torsor.compiler.program import Operation, Program

OPPOSITE = -1
"""The code of a change of sign that LLVM must not take back, beside CasADi's codes of operations."""


def with_signs_in_factors(program: Program) -> Program:
    """Return a program in which a factor takes the sign of products that are subtracted from products.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 4)
        >>> f = ca.Function("f", [x], [x[0] * x[1] - x[2] * x[3], x[1] * x[3] - x[0] * x[2], x[1] * x[2] - 3 * x[3]])
        >>> codes = [operation.code for operation in with_signs_in_factors(read_program(f)).operations]
        >>> codes.count(OPPOSITE), codes.count(ca.OP_SUB), codes.count(ca.OP_ADD)
        (1, 0, 3)
    """
    operations, times = program.operations, uses(program)
    subtracted = {  # products, and the differences that take them
        operation.arguments[1]: index
        for index, operation in enumerate(operations)
        if operation.code == ca.OP_SUB
        and all(operations[each].code in PRODUCTS and times[each] == 1 for each in operation.arguments)
    }
    constant = [operation.code == ca.OP_CONST for operation in operations]
    shared = Counter(
        factor
        for product in subtracted
        if not any(constant[factor] for factor in operations[product].arguments)
        for factor in set(operations[product].arguments)
    )
    # The factor that takes the sign of each product: a constant, or the one that most products share.
    signed: dict[int, int] = {}
    for product in subtracted:
        factors = operations[product].arguments
        factor = max(factors, key=lambda each: len(operations) if constant[each] else shared[each])
        if constant[factor] or shared[factor] > 1:
            signed[product] = factor
    return _rewritten(program, signed, {subtracted[product] for product in signed}) if signed else program


def _rewritten(program: Program, signed: dict[int, int], sums: set[int]) -> Program:
    """Return a program with the opposites of factors, and with sums in place of differences."""
    found: list[Operation] = []
    place: list[int] = []
    opposites: dict[int, int] = {}
    for index, operation in enumerate(program.operations):
        code, arguments, number = operation
        if index in signed:
            factor = signed[index]
            if factor not in opposites:
                given = program.operations[factor]
                opposites[factor] = len(found)
                found.append(
                    Operation(ca.OP_CONST, (), -given.number)
                    if given.code == ca.OP_CONST
                    else Operation(OPPOSITE, (place[factor],))
                )
            other = arguments[-1] if arguments[0] == factor else arguments[0]
            operation = Operation(ca.OP_MUL, (place[other], opposites[factor]))
        elif code not in (ca.OP_INPUT, ca.OP_CONST):
            code = ca.OP_ADD if index in sums else code
            operation = Operation(code, tuple([place[each] for each in arguments]), number)
        place.append(len(found))
        found.append(operation)
    results = tuple(tuple(None if each is None else place[each] for each in result) for result in program.results)
    return replace(program, operations=tuple(found), results=results)
