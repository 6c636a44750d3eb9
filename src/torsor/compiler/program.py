"""The operations of a CasADi function as a plain list, which every code generator reads."""

import gc
import math
import struct
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError

# Counting the operations of a CasADi function: a machine-independent measure of cost.


class OperationCount(NamedTuple):
    """The number of scalar operations of a function, by class."""

    multiplications: int
    additions: int
    trigonometric: int
    other: int

    @property
    def arithmetic(self) -> int:
        """Multiplications and additions together."""
        return self.multiplications + self.additions


FREE_OPERATIONS = {ca.OP_INPUT, ca.OP_CONST}
"""Operations that compute nothing."""

_UNCOUNTED = FREE_OPERATIONS | {ca.OP_OUTPUT, ca.OP_PARAMETER}
_CLASSES: dict[int, str] = {
    **dict.fromkeys((ca.OP_MUL, ca.OP_SQ), "multiplications"),
    **dict.fromkeys((ca.OP_ADD, ca.OP_SUB, ca.OP_TWICE), "additions"),
    **dict.fromkeys((ca.OP_SIN, ca.OP_COS, ca.OP_TAN), "trigonometric"),
    **dict.fromkeys((ca.OP_ASIN, ca.OP_ACOS, ca.OP_ATAN, ca.OP_ATAN2), "trigonometric"),
}


def count_operations(function: ca.Function) -> OperationCount:
    """Return the number of operations of a CasADi SX function; divisions, sign changes and the rest are ``other``.

    Example:
        >>> x = ca.SX.sym("x")
        >>> count_operations(ca.Function("f", [x], [ca.sin(x) * x + 1]))
        OperationCount(multiplications=1, additions=1, trigonometric=1, other=0)
    """
    result: Counter[str] = Counter()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation not in _UNCOUNTED:
            result[_CLASSES.get(operation, "other")] += 1
    return OperationCount(*(result[name] for name in OperationCount._fields))


# Operations that a target must support: a function that has all of them, and a check of a target's table against it.
#
# A target has a table with one rule per CasADi operation. ``uncovered`` returns what a table lacks. The tests of each
# target export ``every_operation`` and compare all of its outputs with CasADi's virtual machine.

_ONE = """
acos acosh asin asinh atan atanh ceil cos cosh erf erfinv exp expm1 fabs floor log log1p sign sin sinh sqrt tan tanh
"""
_TWO = "atan2 copysign fmax fmin fmod hypot remainder"


def every_operation() -> ca.Function:
    """Return a function of x and y with one output per operation, and one with numbers that are hard to print."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    results = {f"op_{name}": getattr(ca, name)(x) for name in _ONE.split()}
    results |= {f"op_{name}": getattr(ca, name)(x, y) for name in _TWO.split()}
    results |= {"op_add": x + y, "op_sub": x - y, "op_mul": x * y, "op_div": x / y, "op_neg": -x, "op_sq": x * x}
    results |= {"op_twice": 2 * x, "op_inv": 1 / x, "op_pow": x**y, "op_constpow": x**2.5}
    results |= {"op_lt": x < y, "op_le": x <= y, "op_eq": ca.eq(x, y), "op_ne": ca.ne(x, y)}
    results |= {"op_not": ca.logic_not(x), "op_and": ca.logic_and(x, y), "op_or": ca.logic_or(x, y)}
    results |= {"op_if_else_zero": ca.if_else(x, y, 0), "op_if_else": ca.if_else(x, y, x * 3)}
    numbers = [0.1, -0.1, 1e-310, 1e300, 1 / 3, 0.25, 123456789.125, math.inf, -math.inf, math.nan, -0.0, 5e-324]
    results["numbers"] = ca.vertcat(*numbers, x)
    return ca.Function("every", [x, y], list(results.values()), ["x", "y"], list(results))


def operations_of(function: ca.Function) -> set[int]:
    """Return the codes of the operations in an SX function."""
    return {function.instruction_id(k) for k in range(function.n_instructions())} - FREE_OPERATIONS - {ca.OP_OUTPUT}


def operation_name(code: int) -> str:
    """Return CasADi's name for an operation."""
    return next((item for item in dir(ca) if item.startswith("OP_") and getattr(ca, item) == code), str(code))


def no_rule(title: str, code: int) -> str:
    """Return the message for an operation that a target does not support, with the fix."""
    message, allowed = (
        f"CasADi's operation {operation_name(code)} has no rule",
        "the operations in the table of rules",
    )
    fix = "remove printme" if code == ca.OP_PRINTME else "write a rule for it, or the function without it"
    if code == ca.OP_CALL:
        fix = "create the called function without never_inline, so that its operations are copied into this one"
    return f"{title}: {message}; allowed: {allowed}; fix: {fix}"


def uncovered(rules: Collection[int]) -> list[str]:
    """Return the names of the operations that have no rule in a table, in alphabetical order.

    CasADi drops ``OP_ASSIGN`` and ``OP_LIFT`` from SX functions, but other code may keep them, so they are included.
    """
    needed = operations_of(every_operation()) | {ca.OP_ASSIGN, ca.OP_LIFT}
    return sorted(map(operation_name, needed - set(rules)))


def in_scalars(title: str, function: ca.Function, rules: Collection[int]) -> ca.Function:
    """Return a function expanded to scalar operations; raise an error if one of them has no rule in the table."""
    if function.has_free():
        result = ", ".join(map(str, function.get_free()))
        raise ModelError(
            f"it has the free variables {result}", where=title, allowed="none", fix="make them inputs of the function"
        )
    try:
        function = function if function.is_a("SXFunction") else function.expand()
    except RuntimeError as error:
        result, allowed = "it does not expand to scalar operations", "SX functions, or functions that expand to SX"
        raise ModelError(result, where=title, allowed=allowed, fix="build it from SX") from error
    for code in sorted(operations_of(function) - set(rules)):
        raise ValueError(no_rule(title, code))
    return function


class Operation(NamedTuple):
    """One scalar operation. Its result is the value with the operation's own index in the list.

    ``code`` is CasADi's (``casadi.OP_MUL``, ...), and ``arguments`` are indices of earlier values. An input
    (``OP_INPUT``) has the arguments (index of the input, index of its entry), and a constant (``OP_CONST``) has its
    ``number``.
    """

    code: int
    arguments: tuple[int, ...]
    number: float = 0.0

    @property
    def taken(self) -> tuple[int, ...]:
        """The values that the operation takes."""
        return () if self.code in FREE_OPERATIONS else self.arguments


@dataclass(frozen=True)
class Program:
    """A function as a list of scalar operations in which no value is assigned twice.

    ``inputs`` and ``outputs`` are the sizes (rows, columns) of the matrices. Entries are numbered row by row.
    ``results`` has, for each output, the index of the value of each of its entries, or None for structural zeros.
    """

    name: str
    operations: tuple[Operation, ...]
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    results: tuple[tuple[int | None, ...], ...]

    @cached_property
    def targets(self) -> dict[int | None, list[tuple[int, int]]]:
        """Places (output, entry) of each value that is a result; the key None has the structural zeros."""
        result: dict[int | None, list[tuple[int, int]]] = {}
        for k, indices in enumerate(self.results):
            for entry, index in enumerate(indices):
                result.setdefault(index, []).append((k, entry))
        return result


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector: operation lists have no cycles and would be searched repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _entries(sparsity: ca.Sparsity) -> list[int]:
    """Return the position of each nonzero of a matrix, counted row by row."""
    rows, columns = sparsity.get_triplet()
    return [row * sparsity.size2() + column for row, column in zip(rows, columns, strict=True)]


@uncollected()
def read_program(function: ca.Function) -> Program:
    """Return the operations of a CasADi SX function.

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
            message = "it does not expand to scalar operations"
            raise ModelError(
                message, where=function.name(), allowed="SX functions, or functions that expand to SX"
            ) from error
    if function.has_free():
        message = f"it depends on symbols that are not among its inputs: {', '.join(map(str, function.get_free()))}"
        raise ModelError(message, where=function.name(), fix="make them inputs of the function")
    table = _table(function)
    code, places = table["code"], table["places"]
    is_output = code == ca.OP_OUTPUT
    made = np.flatnonzero(~is_output)  # the instruction of each value
    # What an instruction takes: for its first and second argument, the value that was last written to that place.
    # CasADi's work vector has few places, which are reused.
    time = np.arange(len(table))
    written = places[made, 0] * len(table) + made
    order = np.argsort(written)
    read = places[:, 1:] * len(table) + time[:, None]
    taken = order[np.searchsorted(written[order], read) - 1]

    where_out = [_entries(function.sparsity_out(k)) for k in range(function.n_out())]
    sizes_out = [function.size_out(k) for k in range(function.n_out())]
    results: list[list[int | None]] = [[None] * (rows * columns) for rows, columns in sizes_out]
    for (which, _, entry), index in zip(places[is_output].tolist(), taken[is_output, 0].tolist(), strict=True):
        results[which][where_out[which][entry]] = index

    arguments: list[tuple[int, ...]] = list(zip(*taken[made].T.tolist(), strict=True))
    for item, count in _counts(function, code).items():
        if count < 2:
            for index in np.flatnonzero(code[made] == item).tolist():
                arguments[index] = arguments[index][:count]
    inputs = np.flatnonzero(code[made] == ca.OP_INPUT)
    where_in = [_entries(function.sparsity_in(k)) for k in range(function.n_in())]
    for index, (_, which, entry) in zip(inputs.tolist(), places[made[inputs]].tolist(), strict=True):
        arguments[index] = which, where_in[which][entry]
    everything = zip(code[made].tolist(), arguments, table["number"][made].tolist(), strict=True)
    operations, sizes_in = tuple(map(Operation._make, everything)), map(function.size_in, range(function.n_in()))
    return Program(function.name(), operations, tuple(sizes_in), tuple(sizes_out), tuple(map(tuple, results)))


_RECORD = np.dtype([("code", "<i4"), ("places", "<i4", 3)])
_TABLE = np.dtype([("code", np.int64), ("places", np.int64, 3), ("number", np.float64)])


def _table(function: ca.Function) -> NDArray[Any]:
    """Return the instructions of a function: code, places of the result and of two arguments, and constant.

    An input has the places (result, which input, which nonzero), an output (which output, argument, which nonzero).
    """
    count = function.n_instructions()
    records = _stored(function, count)
    if records is None:
        return np.array([_instruction(function, k) for k in range(count)], _TABLE)
    table = np.zeros(count, _TABLE)
    table["code"], table["places"] = records["code"], records["places"]
    constants = records["code"] == ca.OP_CONST
    numbers = np.ascontiguousarray(records["places"][:, 1:]).view("<f8")[:, 0]  # in place of the arguments
    table["number"][constants] = numbers[constants]
    table["places"][constants, 1:] = 0
    return table


def _stored(function: ca.Function, count: int) -> NDArray[Any] | None:
    """Return the instructions as CasADi stores them, in one table; None if this version stores them differently.

    Querying each of them takes four times as long. The table is located by its first entries, and compared with those
    that CasADi returns for some instructions.
    """
    text = np.frombuffer(function.serialize().encode(), np.uint8)
    half = text[: len(text) // 2 * 2] - ord("a")  # one letter per half byte
    stored = (half[::2] | half[1::2] << 4).tobytes()
    some = sorted({*range(min(count, 4)), *range(0, count, 1 + count // 50), *range(max(count - 4, 0), count)})
    expected = [_record(*_instruction(function, k)) for k in some]
    first = b"".join(item for item, _ in zip(expected, range(min(count, 4)), strict=False))
    at = stored.find(first)
    while at >= 0:
        if all(stored.startswith(item, at + k * _RECORD.itemsize) for k, item in zip(some, expected, strict=True)):
            return np.frombuffer(stored, _RECORD, count, at)
        at = stored.find(first, at + 1)
    return None


def _instruction(function: ca.Function, k: int) -> tuple[int, tuple[int, int, int], float]:
    """Return the entry of ``_table`` for one instruction."""
    code, into, taken = function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)
    if code == ca.OP_CONST:
        return code, (into[0], 0, 0), function.instruction_constant(k)
    if code == ca.OP_OUTPUT:
        return code, (into[0], taken[0], into[1]), 0.0
    return code, (into[0], taken[0], taken[-1]), 0.0


def _record(code: int, places: tuple[int, int, int], number: float) -> bytes:
    """Return an instruction as CasADi stores it."""
    return struct.pack("<iid", code, places[0], number) if code == ca.OP_CONST else struct.pack("<4i", code, *places)


def _counts(function: ca.Function, code: NDArray[Any]) -> dict[int, int]:
    """Return the number of arguments of each operation that a function has."""
    codes, first = np.unique(code, return_index=True)
    pairs = zip(codes.tolist(), first.tolist(), strict=True)
    return {item: len(function.instruction_input(k)) for item, k in pairs if item not in (ca.OP_INPUT, ca.OP_OUTPUT)}
