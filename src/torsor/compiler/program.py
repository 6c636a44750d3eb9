"""The operations of a CasADi function as a plain list, the input of all code generators."""

import gc
import math
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError
from torsor.compiler.tables import tables_of

# Operation counts of a CasADi function, a machine-independent measure of cost.


class OperationCount(NamedTuple):
    """The number of scalar operations of a function, by class."""

    multiplications: int
    additions: int
    trigonometric: int
    other: int

    @property
    def arithmetic(self) -> int:
        """Number of multiplications and additions."""
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
    """Return the operation counts of a CasADi SX function; ``other`` includes divisions and sign changes.

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


# Operations that a target must support: a function with all operations, and a check of a target's table.
#
# A target has a table with one rule per CasADi operation. ``uncovered`` returns the operations that a table lacks. The
# tests of each target export ``every_operation`` and compare all outputs with CasADi's virtual machine.

_ONE = """
acos acosh asin asinh atan atanh ceil cos cosh erf erfinv exp expm1 fabs floor log log1p sign sin sinh sqrt tan tanh
"""
_TWO = "atan2 copysign fmax fmin fmod hypot remainder"


def every_operation() -> ca.Function:
    """Return a function of x and y with one output per operation, and one of numbers that are difficult to print."""
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
    fix = "remove printme" if code == ca.OP_PRINTME else "add a rule for it, or rewrite the function without it"
    if code == ca.OP_CALL:
        fix = "create the called function without never_inline, so that its operations are copied into this one; "
        fix += "tables, such as height fields, are supported by torsor.compile only"
    return f"{title}: {message}; allowed: {allowed}; fix: {fix}"


def uncovered(rules: Collection[int]) -> list[str]:
    """Return the names of the operations that have no rule in a table, in alphabetical order.

    CasADi removes ``OP_ASSIGN`` and ``OP_LIFT`` from SX functions, but other code may keep them, so they are included.
    """
    needed = operations_of(every_operation()) | {ca.OP_ASSIGN, ca.OP_LIFT}
    return sorted(map(operation_name, needed - set(rules)))


def in_scalars(title: str, function: ca.Function, rules: Collection[int]) -> ca.Function:
    """Return a function expanded to scalar operations; raise ModelError if an operation has no rule in the table."""
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
    """One scalar operation, whose result is the value with the index of the operation.

    ``code`` is CasADi's code (such as ``casadi.OP_MUL``), and ``arguments`` are indices of earlier values. An input
    (``OP_INPUT``) has the arguments (input index, entry index), and a constant (``OP_CONST``) has the value ``number``.
    The entry of a table (``OP_CALL``) has one argument, its index, and ``number`` is that of the table in the program.
    """

    code: int
    arguments: tuple[int, ...]
    number: float = 0.0

    @property
    def taken(self) -> tuple[int, ...]:
        """Indices of the values that the operation uses."""
        return () if self.code in FREE_OPERATIONS else self.arguments


@dataclass(frozen=True)
class Program:
    """A function as a list of scalar operations in which each value is assigned once.

    ``inputs`` and ``outputs`` are the sizes (rows, columns) of the matrices. Entries are numbered in row-major order.
    For each output, ``results`` contains the value index of each entry, or None for structural zeros. ``tables`` are
    the tables that operations read, as bytes of float64 numbers.
    """

    name: str
    operations: tuple[Operation, ...]
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    results: tuple[tuple[int | None, ...], ...]
    tables: tuple[bytes, ...] = ()

    @cached_property
    def targets(self) -> dict[int | None, list[tuple[int, int]]]:
        """Pairs (output, entry) to which each value is stored; the key None contains structural zeros."""
        result: dict[int | None, list[tuple[int, int]]] = {}
        for k, indices in enumerate(self.results):
            for entry, index in enumerate(indices):
                result.setdefault(index, []).append((k, entry))
        return result


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector, which would repeatedly search operation lists although they have no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _entries(sparsity: ca.Sparsity) -> list[int]:
    """Return the row-major position of each nonzero of a matrix."""
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
    made = np.flatnonzero(~is_output)  # instruction of each value
    # The arguments of an instruction are the values last written to their places, because CasADi's work vector has few
    # places, which are reused.
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
    operations, sizes_in = list(map(Operation._make, everything)), map(function.size_in, range(function.n_in()))
    calls = np.flatnonzero(code[made] == ca.OP_CALL).tolist()
    tables = _read_tables(function, operations, calls) if calls else ()
    signature = tuple(sizes_in), tuple(sizes_out)
    return Program(function.name(), tuple(operations), *signature, tuple(map(tuple, results)), tables)


def _read_tables(function: ca.Function, operations: list[Operation], calls: Sequence[int]) -> tuple[bytes, ...]:
    """Return the tables that a function calls, and replace its ``calls`` (indices of operations) by table entries."""
    tables = tables_of(function)
    places = {number: place for place, number in enumerate(tables)}
    for index in calls:
        _, arguments, count = operations[index]
        which = operations[arguments[1]] if count == 2 else None
        if which is None or which.code != ca.OP_CONST or which.number not in places:
            raise NotImplementedError(no_rule(function.name(), ca.OP_CALL))
        operations[index] = Operation(ca.OP_CALL, arguments[:1], places[int(which.number)])
    return tuple(tables.values())


_RECORD = np.dtype([("code", "<i4"), ("places", "<i4", 3)])
_TABLE = np.dtype([("code", np.int64), ("places", np.int64, 3), ("number", np.float64)])


def _table(function: ca.Function) -> NDArray[Any]:
    """Return the instructions of a function: code, places of result and arguments, and constant.

    An input has the places (result, input, nonzero), and an output has (output, argument, nonzero). A call has the
    places of its first two arguments, and their total number as its constant.
    """
    count = function.n_instructions()
    records = _stored(function, count)
    if records is None:
        return np.array([_instruction(function, k) for k in range(count)], _TABLE)
    table = np.zeros(count, _TABLE)
    table["code"], table["places"] = records["code"], records["places"]
    constants = records["code"] == ca.OP_CONST
    numbers = np.ascontiguousarray(records["places"][:, 1:]).view("<f8")[:, 0]  # stored in the bytes of the arguments
    table["number"][constants] = numbers[constants]
    table["places"][constants, 1:] = 0
    for k in np.flatnonzero(records["code"] == ca.OP_CALL).tolist():
        table[k] = _instruction(function, k)
    return table


def _stored(function: ca.Function, count: int) -> NDArray[Any] | None:
    """Return CasADi's table of instructions, or None if this version stores them differently.

    Querying each instruction would take four times as long. The table is located by its first entries, and compared
    with CasADi's results for some instructions, except calls, whose arguments are stored elsewhere.
    """
    text = np.frombuffer(function.serialize().encode(), np.uint8)
    half = text[: len(text) // 2 * 2] - ord("a")  # each letter is half a byte
    stored = (half[::2] | half[1::2] << 4).tobytes()
    some = sorted({*range(min(count, 4)), *range(0, count, 1 + count // 50), *range(max(count - 4, 0), count)})
    some = [k for k in some if k < 4 or function.instruction_id(k) != ca.OP_CALL]
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
    if code == ca.OP_CALL:
        first, second, *_ = *taken, 0, 0
        return code, (into[0], first, second), float(len(taken))
    return code, (into[0], taken[0], taken[-1]), 0.0


def _record(code: int, places: tuple[int, int, int], number: float) -> bytes:
    """Return an instruction as CasADi stores it."""
    return struct.pack("<iid", code, places[0], number) if code == ca.OP_CONST else struct.pack("<4i", code, *places)


def _counts(function: ca.Function, code: NDArray[Any]) -> dict[int, int]:
    """Return the number of arguments of each operation in a function."""
    codes, first = np.unique(code, return_index=True)
    pairs = zip(codes.tolist(), first.tolist(), strict=True)
    return {item: len(function.instruction_input(k)) for item, k in pairs if item not in (ca.OP_INPUT, ca.OP_OUTPUT)}
