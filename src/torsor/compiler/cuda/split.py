"""Large functions in parts: each part is a kernel of its own that computes some of the results.

A thread of a card has 255 registers. What is alive beyond them goes to memory and back, which costs several times the
arithmetic. Results that have most of their operations in common are computed by one part; operations that several parts
need are done again in each, which is cheaper than memory.
"""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler.order import alive, ordered
from torsor.compiler.program import Operation, Program

# Numbers that a thread keeps in its registers, by their bytes; the rest of them hold addresses.
_KEPT = {4: 230, 8: 115}
# Operations below which a function is never split: its kernel is limited by memory, and parts read the inputs again.
_MIN_SPLIT_OPERATIONS = 4000
# How much longer an operation takes for each value alive beyond the registers, relative to their number: an estimate.
_BEYOND = 1.0
_MAX_PARTS = 24  # parts

_FREE = {ca.OP_INPUT, ca.OP_CONST}


class Part(NamedTuple):
    """Some results of a program: those that it does not compute are None; ``zeros`` are those that it sets to zero."""

    program: Program
    zeros: tuple[tuple[int, int], ...]


def whole(program: Program) -> Part:
    """Return a program as one part."""
    zeros = [(k, entry) for k, result in enumerate(program.results) for entry, v in enumerate(result) if v is None]
    return Part(program, tuple(zeros))


def split(program: Program, size: int) -> list[Part]:
    """Return the parts of a program of numbers of ``size`` bytes, each in an order with few values alive.

    A part is halved, along an order of the results in which neighbours have much in common, as long as that pays.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 3)
        >>> len(split(read_program(ca.Function("f", [x], [ca.sin(x)])), 4))
        1
    """
    parts = [Part(each, ()) for each in _parts(program, size)]
    parts[0] = Part(_with_free(program, parts[0].program), whole(program).zeros)
    return parts


def _parts(program: Program, size: int) -> list[Program]:
    if len(program.operations) <= _MIN_SPLIT_OPERATIONS:
        return [ordered(program)]
    chain = _chain(program)
    bounds = np.linspace(0, len(chain), 1 + round(len(program.operations) / _MIN_SPLIT_OPERATIONS)).astype(int)
    todo = [_Candidate.of(program, chain[a:b], size) for a, b in pairwise(bounds)][::-1]
    done: list[_Candidate] = []
    while todo:
        part = todo.pop()
        middle = len(part.values) // 2
        if part.beyond and middle and len(done) + len(todo) + 2 <= _MAX_PARTS:
            halves = [_Candidate.of(program, v, size) for v in (part.values[:middle], part.values[middle:])]
            if sum(half.cost for half in halves) < part.cost:
                todo += halves[::-1]
                continue
        done.append(part)
    one = ordered(program, quick=True)
    if _Candidate([], one, _beyond(one, size)).cost <= sum(part.cost for part in done):
        return [ordered(program)]
    return [part.program for part in done]


class _Candidate(NamedTuple):
    """A part that may be halved: its results, what computes them, and the values alive beyond the registers."""

    values: list[int]
    program: Program
    beyond: float

    @classmethod
    def of(cls, program: Program, values: list[int], size: int) -> "_Candidate":
        part = ordered(_restricted(program, values), quick=True)
        return cls(values, part, _beyond(part, size))

    @property
    def cost(self) -> float:
        """The time that it takes, in operations."""
        return len(self.program.operations) * (1 + _BEYOND * self.beyond)


def _beyond(program: Program, size: int) -> float:
    """Return the values alive beyond the registers, relative to the values that registers hold."""
    return max(0, alive(program) - _KEPT[size]) / _KEPT[size]


def _chain(program: Program) -> list[int]:
    """Return the results that are computed, such that neighbours have many of their operations in common."""
    values = sorted({v for result in program.results for v in result if v is not None})
    values = [v for v in values if program.operations[v].code not in _FREE]
    reached = [0] * len(program.operations)  # which results need an operation, as bits
    for k, value in enumerate(values):
        reached[value] |= 1 << k
    for index in reversed(range(len(reached))):
        if program.operations[index].code not in _FREE:
            for each in program.operations[index].arguments:
                reached[each] |= reached[index]
    length = -(-len(values) // 8)
    packed = np.frombuffer(b"".join(bits.to_bytes(length, "little") for bits in reached), np.uint8)
    needs: NDArray[np.float32] = np.unpackbits(
        packed.reshape(len(reached), length), axis=1, count=len(values), bitorder="little"
    ).astype(np.float32)
    common = needs.T @ needs
    alone = np.diag(common)
    alike = common / (alone[:, None] + alone[None] - common)
    now = int(np.argmax(alone))
    chain, left = [now], np.ones(len(values), bool)
    left[now] = False
    while left.any():
        now = int(np.argmax(np.where(left, alike[now], -1.0)))
        chain.append(now)
        left[now] = False
    return [values[k] for k in chain]


def _restricted(program: Program, values: list[int]) -> Program:
    """Return what computes some values only; other results are None."""
    needed, stack = set[int](), list(values)
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            if program.operations[index].code not in _FREE:
                stack += program.operations[index].arguments
    place = {old: new for new, old in enumerate(sorted(needed))}
    operations = []
    for old in place:
        operation = program.operations[old]
        if operation.code not in _FREE:
            operation = Operation(operation.code, tuple(place[each] for each in operation.arguments), operation.number)
        operations.append(operation)
    own = set(values)
    results = tuple(tuple(place[v] if v in own else None for v in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)


def _with_free(program: Program, part: Program) -> Program:
    """Return a part with those results in addition that are inputs or constants."""
    operations, results = list(part.operations), [list(result) for result in part.results]
    for k, result in enumerate(program.results):
        for entry, value in enumerate(result):
            if value is not None and results[k][entry] is None and program.operations[value].code in _FREE:
                results[k][entry] = len(operations)
                operations.append(program.operations[value])
    return replace(part, operations=tuple(operations), results=tuple(map(tuple, results)))
