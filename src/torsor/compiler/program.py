"""The operations of a CasADi function as a plain list, which every code generator reads."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca


class Operation(NamedTuple):
    """One scalar operation. Its result is the value with the operation's own index in the list.

    ``code`` is CasADi's (``casadi.OP_MUL``, ...), ``arguments`` are indices of earlier values. An input (``OP_INPUT``)
    has the arguments (which input, which of its entries), a constant (``OP_CONST``) has its ``number``.
    """

    code: int
    arguments: tuple[int, ...]
    number: float = 0.0


@dataclass(frozen=True)
class Program:
    """A function as a list of scalar operations in which no value is assigned twice.

    ``inputs`` and ``outputs`` are the sizes (rows, columns) of the matrices. Entries count row by row. ``results``
    has, for each output, the index of the value of each of its entries, or None where the entry is a structural zero.
    """

    name: str
    operations: tuple[Operation, ...]
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    results: tuple[tuple[int | None, ...], ...]


def _entries(sparsity: ca.Sparsity) -> list[int]:
    """Return where each nonzero of a matrix is, counted row by row."""
    rows, columns = sparsity.get_triplet()
    return [row * sparsity.size2() + column for row, column in zip(rows, columns, strict=True)]


def read_program(function: ca.Function) -> Program:
    """Return the operations of a CasADi function of SX.

    Example:
        >>> x = ca.SX.sym("x", 2)
        >>> program = read_program(ca.Function("f", [x], [x[0] * x[1] + 2]))
        >>> [operation.code == ca.OP_MUL for operation in program.operations].count(True)
        1
        >>> program.results
        ((4,),)
    """
    if not function.is_a("SXFunction"):
        try:
            function = function.expand()
        except RuntimeError as error:
            found = "it does not expand to scalar operations"
            raise ValueError(f"{function.name()}: {found}; allowed: functions of SX, or that expand to SX") from error
    where_in = [_entries(function.sparsity_in(k)) for k in range(function.n_in())]
    where_out = [_entries(function.sparsity_out(k)) for k in range(function.n_out())]
    sizes_out = [function.size_out(k) for k in range(function.n_out())]
    results: list[list[int | None]] = [[None] * (rows * columns) for rows, columns in sizes_out]
    operations: list[Operation] = []
    held: dict[int, int] = {}  # the value in each place of CasADi's work vector, whose places are reused
    code_of, into_of, taken_of = function.instruction_id, function.instruction_output, function.instruction_input
    for k in range(function.n_instructions()):
        code, into, taken = code_of(k), into_of(k), taken_of(k)
        if code == ca.OP_OUTPUT:
            results[into[0]][where_out[into[0]][into[1]]] = held[taken[0]]
            continue
        if code == ca.OP_INPUT:
            operation = Operation(code, (taken[0], where_in[taken[0]][taken[1]]))
        elif code == ca.OP_CONST:
            operation = Operation(code, (), function.instruction_constant(k))
        else:
            operation = Operation(code, tuple(held[place] for place in taken))
        held[into[0]] = len(operations)
        operations.append(operation)
    return Program(
        function.name(),
        tuple(operations),
        tuple(function.size_in(k) for k in range(function.n_in())),
        tuple(sizes_out),
        tuple(map(tuple, results)),
    )
