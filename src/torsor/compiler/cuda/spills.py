"""Which values of a large function wait in shared memory, because the registers of a thread do not hold them all.

Left alone, the compiler of the driver puts them into local memory, and the threads of an SM need more of it than its
cache holds. Shared memory is as fast as the cache, and nothing else drives values out of it. The plan also says when a
value is read: so long before its use that memory has answered by then.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from torsor.compiler.order import alive
from torsor.compiler.program import Program

_FREE = {ca.OP_INPUT, ca.OP_CONST}
_LOAD_LEAD = 20  # operations between reading shared memory and the use of what was read


class Budget(NamedTuple):
    """What a thread may use: its registers (None: the compiler's choice), and the values that they hold.

    ``ahead``: how many operations before its first use an input is read.
    """

    registers: int | None
    kept: int
    ahead: int


_SMALL_BUDGET = Budget(None, 1 << 30, 600)
# Functions of medium size wait for memory: with 168 registers three warps fit where two would.
_MEDIUM_BUDGETS = {4: Budget(168, 120, 600), 8: Budget(None, 100, 600)}
_LARGE = {4: Budget(None, 200, 2500), 8: Budget(None, 100, 800)}


def budget(program: Program, size: int) -> Budget:
    """Return the fastest budget that was found on an H200 for functions of this size, of numbers of ``size`` bytes.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 2)
        >>> budget(read_program(ca.Function("f", [x], [x[0] * x[1]])), 4).registers is None
        True
    """
    many = len(program.operations)
    if many <= 2000 or alive(program) <= _MEDIUM_BUDGETS[size].kept:
        return _SMALL_BUDGET
    return (_MEDIUM_BUDGETS if many <= 4000 else _LARGE)[size]


@dataclass(frozen=True)
class Spills:
    """The moves of values between memory, registers and slots of shared memory.

    ``loads``: before an operation, pairs (value, its slot), or (input, None). ``stores``: after an operation, pairs
    (value, slot). ``dropped``: the values that leave the registers after an operation. ``first``: the slots of values
    that wait in them from the start. ``slots``: how many there are.
    """

    loads: dict[int, list[tuple[int, int | None]]]
    stores: dict[int, list[tuple[int, int]]]
    dropped: dict[int, list[int]]
    first: dict[int, int]
    slots: int


class _Slots:
    """Slots of shared memory: a free one is used again."""

    def __init__(self, values: Sequence[int | None], most: int):
        self.of = {value: slot for slot, value in enumerate(values) if value is not None}
        self._free = [slot for slot, value in enumerate(values) if value is None]
        self.count, self._most = len(values), most

    @property
    def full(self) -> bool:
        """Whether all slots are taken."""
        return not self._free and self.count >= self._most

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


def plan_spills(
    program: Program, budget: Budget, slots: int, waiting: Sequence[int | None] = (), near: Sequence[bool] = ()
) -> Spills:
    """Return the moves that keep to a budget as long as there are ``slots``; what is beyond both is left alone.

    The value that leaves the registers is the one whose next use is furthest (Belady 1966). ``waiting`` are the values
    that are in the first slots before the first operation; a slot of None is free. Inputs that are in shared memory, as
    ``near`` says, are read just before their use.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 8)
        >>> y = ca.sqrt(x)
        >>> program = read_program(ca.Function("f", [x], [ca.dot(y, y[::-1])]))
        >>> [plan_spills(program, Budget(None, kept, 0), 99).slots for kept in (4, 20)]
        [6, 0]
    """
    operations, places = program.operations, _Slots(waiting, slots)
    first, uses = dict(places.of), _uses(program)
    held = dict[int, None]()
    left: dict[int, int] = {}  # the operation after which a value left the registers
    loads: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    stores: dict[int, list[tuple[int, int]]] = defaultdict(list)
    dropped: dict[int, list[int]] = defaultdict(list)
    for index, operation in enumerate(operations):
        if operation.code in _FREE or index in first:
            continue
        taken = dict.fromkeys(each for each in operation.arguments if operations[each].code != ca.OP_CONST)
        for each in taken:
            if each not in held:
                far = operations[each].code == ca.OP_INPUT and not (near and near[operations[each].arguments[0]])
                early = index - (budget.ahead if far else _LOAD_LEAD)
                loads[max(left.get(each, 0), early)].append((each, places.of.get(each)))
                held[each] = None
            while uses[each] and uses[each][-1] <= index:
                uses[each].pop()
        for each in taken:
            if not uses[each]:
                del held[each]
                places.free(each)
        if uses[index]:
            held[index] = None
        while len(held) > budget.kept:
            value = max(held, key=lambda each: uses[each][-1])
            if operations[value].code != ca.OP_INPUT and value not in places.of:
                if places.full:
                    break
                stores[index].append((value, places.take(value)))
            del held[value]
            left[value] = index + 1
            dropped[index].append(value)
    return Spills(dict(loads), dict(stores), dict(dropped), first, places.count)


def _uses(program: Program) -> dict[int, list[int]]:
    """Return the operations that use each value, the next one last."""
    uses: dict[int, list[int]] = defaultdict(list)
    for index in reversed(range(len(program.operations))):
        operation = program.operations[index]
        if operation.code not in _FREE:
            for each in dict.fromkeys(operation.arguments):
                uses[each].append(index)
    return uses
