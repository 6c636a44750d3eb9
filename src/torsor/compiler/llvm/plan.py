"""A plan of what one piece of a program holds in registers; ``piece.py`` and ``neon.py`` write code with it.

LLVM's register allocator takes most of the compile time of a long function, and stores and loads more values than it
has to. Here the whole future of a piece is known, so the best choice is simple (Belady): when the registers are full,
the value goes whose next use is farthest away. It is stored, unless memory has it already, and loaded again before
that use.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from torsor.compiler.llvm.fusion import PRODUCTS
from torsor.compiler.program import Program

HELD = 7 / 8  # of the registers: the others are for constants, for arguments and for results on their way

NEVER = 1 << 60  # when a value is used next that is not used again

Place = tuple[str, int]
"""A block in memory: the name of a pointer, and the number of the block."""

Name = TypeVar("Name", str, int)
"""What code calls a value that it holds: the name of a value, or the number of a register."""


class Plan(ABC, Generic[Name]):
    """Writes operations, and knows where each value is. ``memory`` has the places of values of other pieces."""

    def __init__(self, program: Program, memory: dict[int, Place], registers: int, spill: int):
        self.program = program
        self.spilled = spill  # places of scratch memory from here on are free
        self._memory, self._registers = memory, int(HELD * registers)
        self._own: dict[int, Place] = {}  # the places of values that were stored here
        self._held: dict[int, Name] = {}
        self._next_use: dict[int, int] = {}  # of the values that are held

    def write(self, indices: Sequence[int], stores: dict[int, list[Place]]) -> None:
        """Write operations in the given order, and store their values in the given places."""
        operations, held, next_use = self.program.operations, self._held, self._next_use
        for index, uses in zip(indices, self._uses(indices), strict=True):
            code, arguments, number = operations[index]
            is_product = code in PRODUCTS
            names = [held[each] if each in held else self.value(each, is_product) for each in arguments]
            value = self.compute(code, number, names, len(uses) > 1 and uses[-2] == NEVER)
            if index in stores:
                for place in stores[index]:
                    self.store(value, place)
            for argument, use in zip(arguments, uses, strict=False):
                if use != NEVER:
                    next_use[argument] = use
                elif argument in held:
                    name = held.pop(argument)
                    if name != value:
                        self.release(name)
            if uses[-1] != NEVER:
                held[index], next_use[index] = value, uses[-1]
            else:
                self.release(value)
            if len(held) > self._registers:
                self._evict()

    def copy(self, index: int, place: Place) -> None:
        """Store a value that is in memory in another place."""
        value = self.value(index)
        self.store(value, place)
        self._held.pop(index, None)
        self.release(value)

    @abstractmethod
    def compute(self, code: int, number: float, names: list[Name], ends: bool) -> Name:
        """Write an operation; ``ends`` is whether its last argument is not used again."""

    @abstractmethod
    def value(self, index: int, is_factor: bool = False) -> Name:
        """Return a value that is not held: values in memory are loaded; a constant may be a factor of a product."""

    @abstractmethod
    def store(self, name: Name, place: Place) -> None:
        """Write a value to a block."""

    def release(self, name: Name) -> None:
        """Note that nobody needs a value any more."""

    def _uses(self, indices: Sequence[int]) -> list[list[int]]:
        """Return for each operation when its arguments are used next, and at the end when its value is used first."""
        operations = self.program.operations
        following: dict[int, int] = {}
        found: list[list[int]] = []
        for position in range(len(indices) - 1, -1, -1):
            index = indices[position]
            arguments: tuple[int, ...] = operations[index].arguments
            found.append([following.get(value, NEVER) for value in (*arguments, index)])
            for argument in arguments:
                following[argument] = position
        return found[::-1]

    def _evict(self) -> None:
        """Free the registers whose values are used last."""
        while len(self._held) > self._registers:
            index = max(self._held, key=self._next_use.__getitem__)
            value = self._held.pop(index)
            if index not in self._own and index not in self._memory:
                # No place is used twice, since LLVM is told that what it loads does not change.
                self._own[index] = "%scratch", self.spilled
                self.spilled += 1
                self.store(value, self._own[index])
            self.release(value)
