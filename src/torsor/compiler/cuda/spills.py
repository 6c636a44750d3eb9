"""Which values of a large function wait in shared memory, because the registers of a thread do not hold them all.

The compiler of the driver would put them into local memory, which is cached together with everything else: the threads
of an SM need more of it than the cache holds. Shared memory is as fast as the cache and is not shared with anything.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from torsor.compiler.program import Program

_FREE = {ca.OP_INPUT, ca.OP_CONST}
_NEVER = 1 << 60


@dataclass(frozen=True)
class Spills:
    """The moves of values between registers and slots of shared memory.

    ``loads``: before an operation, pairs (value, slot). ``stores``: after an operation, the same. ``dropped``: the values
    that no register holds after an operation; inputs among them are read again when they are needed. ``slots``: how many
    there are; ``first`` are those of values that wait in them from the start.
    """

    loads: dict[int, list[tuple[int, int]]]
    stores: dict[int, list[tuple[int, int]]]
    dropped: dict[int, list[int]]
    first: dict[int, int]
    slots: int


class _Slots:
    """Slots of shared memory: a free one is used again."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.count = 0
        self._free: list[int] = []

    def fill(self, values: Sequence[int | None]) -> dict[int, int]:
        """Give the first slots to some values."""
        self.of = {value: slot for slot, value in enumerate(values) if value is not None}
        self._free = [slot for slot, value in enumerate(values) if value is None]
        self.count = len(values)
        return dict(self.of)

    def take(self, value: int) -> int:
        """Return the slot of a value, which it has until it is freed."""
        if not self._free:
            self._free.append(self.count)
            self.count += 1
        self.of[value] = self._free.pop()
        return self.of[value]

    def free(self, value: int) -> None:
        """Free the slot of a value, if it has one."""
        if value in self.of:
            self._free.append(self.of.pop(value))


def plan_spills(program: Program, registers: int, waiting: Sequence[int | None] = ()) -> Spills:
    """Return the moves with which at most ``registers`` values are in registers at the same time.

    The value that leaves the registers is the one whose next use is furthest (Belady 1966). ``waiting`` are values that
    are in the first slots before the first operation; a slot of None is free.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 8)
        >>> y = ca.sqrt(x)
        >>> program = read_program(ca.Function("f", [x], [ca.dot(y, y[::-1])]))
        >>> plan_spills(program, 4).slots, plan_spills(program, 20).slots
        (6, 0)
    """
    operations = program.operations
    uses: dict[int, list[int]] = defaultdict(list)
    for index in reversed(range(len(operations))):
        if operations[index].code not in _FREE:
            for each in operations[index].arguments:
                if operations[each].code != ca.OP_CONST:
                    uses[each].append(index)  # the next use is the last one of the list
    slots, alive = _Slots(), dict[int, None]()
    loads, stores, dropped = (defaultdict[int, list[tuple[int, int]]](list) for _ in range(3))
    gone: dict[int, list[int]] = defaultdict(list)
    first = slots.fill(waiting)
    for index, operation in enumerate(operations):
        if operation.code in _FREE or index in first:
            continue
        taken = dict.fromkeys(each for each in operation.arguments if operations[each].code != ca.OP_CONST)
        for each in taken:
            if each not in alive:
                if each in slots.of:
                    loads[index].append((each, slots.of[each]))
                alive[each] = None
            while uses[each] and uses[each][-1] <= index:
                uses[each].pop()
        for each in taken:
            if not uses[each]:
                del alive[each]
                slots.free(each)
        if uses[index]:
            alive[index] = None
        while len(alive) > registers:
            value = max(alive, key=lambda each: uses[each][-1])
            del alive[value]
            gone[index].append(value)
            if operations[value].code != ca.OP_INPUT and value not in slots.of:
                stores[index].append((value, slots.take(value)))
    return Spills(dict(loads), dict(stores), dict(gone), first, slots.count)
