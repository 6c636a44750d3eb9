"""A function as statements of a language: one for each operation, in pieces if there are many.

A long function is divided into pieces, because the compile time of C compilers and of JavaScript engines grows faster
than the length of a function; values that a later piece uses are stored in a scratch array, whose places are reused.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import casadi as ca

from torsor.compiler.count import count_operations
from torsor.compiler.program import Operation, Program, read_program

_FREE = {ca.OP_INPUT, ca.OP_CONST}
SCRATCH = "s"
"""The name of the scratch array; local variables are w0, w1, ... No argument may have these names."""


class Language(Protocol):
    """What statements need to know of a language."""

    @property
    def local(self) -> str:
        """The text before a local variable where it is first assigned, with a blank."""

    def literal(self, number: float) -> str:
        """Return a number that needs no brackets and is read back to the last bit."""

    def expression(self, code: int, *arguments: str) -> str:
        """Return the operation with that code, of texts that need no brackets."""

    def element(self, array: str, entry: int) -> str:
        """Return the element of an argument, or of the scratch array."""


class ArrayArgument(NamedTuple):
    """An argument: its name in the language, its original name, its size, and whether it is an output."""

    name: str
    title: str
    size: tuple[int, int]
    output: bool

    @property
    def length(self) -> int:
        """The number of its entries."""
        return self.size[0] * self.size[1]


def _arguments_of(operation: Operation) -> tuple[int, ...]:
    """Return the values that an operation needs."""
    return () if operation.code in _FREE else operation.arguments


def _pieces(program: Program, longest: int) -> list[list[int]]:
    """Return the operations that are needed, cut into pieces of about equal length."""
    needed = {index for output in program.results for index in output if index is not None}
    for index in range(len(program.operations) - 1, -1, -1):
        if index in needed:
            needed.update(_arguments_of(program.operations[index]))
    order = [index for index in sorted(needed) if program.operations[index].code not in _FREE]
    count = max(1, -(-len(order) // longest))
    return [order[len(order) * k // count : len(order) * (k + 1) // count] for k in range(count)]


def _places(born: Iterable[tuple[int, int]], ends: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return a place for each value, and the number of places, given the times of its creation and of its end.

    From the time of its end on, the place may be reused.
    """
    places, free, busy, count = dict[int, int](), list[int](), list[tuple[int, int]](), 0
    for value, time in born:
        while busy and busy[0][0] <= time:
            free.append(heapq.heappop(busy)[1])
        places[value] = free.pop() if free else count
        count = max(count, places[value] + 1)
        heapq.heappush(busy, (ends[value], places[value]))
    return places, count


class Piece(NamedTuple):
    """Statements of a function, and the names of the arrays that they read or write."""

    lines: list[str]
    touched: set[str]


class SourceKernel:
    """A function (of SX, see ``in_scalars``) in a language, whose pieces have at most ``longest`` operations.

    ``arguments`` are the names of its inputs and outputs. ``arrays`` are these arguments, outputs last, and ``scratch``
    is the length of the scratch array.
    """

    def __init__(
        self,
        name: str,
        title: str,
        function: ca.Function,
        language: Language,
        arguments: Sequence[str],
        longest: int,
    ):
        self.name, self.title, self.language = name, title, language
        self.program = program = read_program(function)
        self.counts = ", ".join(f"{count} {kind}" for kind, count in count_operations(function)._asdict().items())
        titles, sizes = [*function.name_in(), *function.name_out()], [*program.inputs, *program.outputs]
        self.arrays = [
            ArrayArgument(each, titles[k], sizes[k], k >= function.n_in()) for k, each in enumerate(arguments)
        ]
        self.inputs, self.outputs = self.arrays[: function.n_in()], self.arrays[function.n_in() :]
        self._targets: dict[int | None, list[tuple[str, int]]] = {}  # the output elements where a value is stored
        for array, entries in zip(self.outputs, program.results, strict=True):
            for entry, index in enumerate(entries):
                self._targets.setdefault(index, []).append((array.name, entry))
        self._orders = _pieces(program, longest)
        home = {index: number for number, piece in enumerate(self._orders) for index in piece}
        # Values that a later piece uses have a place in the scratch array, until the piece after their last use.
        ends = {a: n + 1 for i, n in home.items() for a in _arguments_of(program.operations[i]) if home.get(a, n) < n}
        self._slots, self.scratch = _places(((index, home[index]) for index in home if index in ends), ends)

    @property
    def operations(self) -> set[int]:
        """The codes of its operations."""
        return {operation.code for operation in self.program.operations}

    def constants(self) -> list[tuple[str, int, float]]:
        """Return the output entries that do not depend on inputs: array, entry, number."""
        found = []
        for index, targets in self._targets.items():
            if index is None or self.program.operations[index].code == ca.OP_CONST:
                number = 0.0 if index is None else self.program.operations[index].number
                found += [(array, entry, number) for array, entry in targets]
        return found

    def constant_lines(self, constants: Iterable[tuple[str, int, float]]) -> list[str]:
        """Return the statements that store numbers in outputs."""
        element, literal = self.language.element, self.language.literal
        return [f"    {element(array, entry)} = {literal(number)};" for array, entry, number in constants]

    def copies(self) -> Piece:
        """Return the statements for outputs that are inputs."""
        lines, touched = [], set[str]()
        for index, targets in self._targets.items():
            if index is not None and self.program.operations[index].code == ca.OP_INPUT:
                text = self._value(index, touched)
                touched |= {array for array, _ in targets}
                lines += [f"    {self.language.element(*target)} = {text};" for target in targets]
        return Piece(lines, touched)

    def pieces(self) -> list[Piece]:
        """Return the statements of the operations; local variables are reused."""
        return [self._piece(order) for order in self._orders]

    def _value(self, index: int, touched: set[str]) -> str:
        """Return the text of a value that is not in a local variable: a literal, an input or an element of scratch."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST:
            return self.language.literal(operation.number)
        place = (SCRATCH, self._slots[index]) if operation.code != ca.OP_INPUT else self._entry(operation)
        touched.add(place[0])
        return self.language.element(*place)

    def _entry(self, operation: Operation) -> tuple[str, int]:
        return self.arrays[operation.arguments[0]].name, operation.arguments[1]

    def _piece(self, order: list[int]) -> Piece:
        last = {argument: index for index in order for argument in _arguments_of(self.program.operations[index])}
        targets = {index: list(self._targets.get(index, [])) for index in order}
        for index in order:
            targets[index] += [(SCRATCH, self._slots[index])] if index in self._slots else []
        local = [index for index in order if index in last or len(targets[index]) > 1]
        places, _ = _places(((index, index) for index in local), {index: last.get(index, index + 1) for index in local})
        lines, declared, touched = list[str](), set[int](), set[str]()
        for index in order:
            operation = self.program.operations[index]
            arguments = [f"w{places[a]}" if a in places else self._value(a, touched) for a in _arguments_of(operation)]
            expression = self.language.expression(operation.code, *arguments)
            if index in places:
                kind = "" if places[index] in declared else self.language.local
                lines.append(f"    {kind}w{places[index]} = {expression};")
                declared.add(places[index])
                expression = f"w{places[index]}"
            touched |= {array for array, _ in targets[index]}
            lines += [f"    {self.language.element(*target)} = {expression};" for target in targets[index]]
        return Piece(lines, touched)
