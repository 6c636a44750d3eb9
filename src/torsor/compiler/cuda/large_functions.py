"""Division of large functions into parts, which are separate kernels that compute some of the results.

A GPU thread has 255 registers. Additional live values are stored in memory and reloaded, which takes several times as
long as the arithmetic. Results that share most of their operations are computed by one part. Operations needed by
several parts are repeated in each, which is faster than memory accesses.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler.order import alive, arranged, ordered
from torsor.compiler.program import FREE_OPERATIONS, Program

# Selection of the values of a large function that are kept in shared memory, for lack of registers.
#
# The driver's compiler would place them in local memory, of which the threads of an SM need more than its cache can
# hold. Shared memory is as fast as the cache, and values are not evicted from it. The plan also determines when a value
# is read: early enough to hide the memory latency.

_LOAD_LEAD = 20  # number of operations between reading a value from shared memory and using it


class Budget(NamedTuple):
    """The resources of a thread: number of registers (None: set by the compiler), and the number of values in them.

    Inputs are read ``ahead`` operations before their first use.
    """

    registers: int | None
    kept: int
    ahead: int


_SMALL_BUDGET = Budget(None, 1 << 30, 600)
# Medium-sized functions are limited by memory latency; with 168 registers, three warps fit instead of two.
_MEDIUM_BUDGETS = {4: Budget(168, 120, 600), 8: Budget(None, 100, 600)}
_LARGE = {4: Budget(None, 200, 2500), 8: Budget(None, 100, 800)}


def budget(program: Program, size: int) -> Budget:
    """Return the budget that was fastest on an H200 for functions of this length, with numbers of ``size`` bytes."""
    many = len(program.operations)
    if many <= 2000 or alive(program) <= _MEDIUM_BUDGETS[size].kept:
        return _SMALL_BUDGET
    return (_MEDIUM_BUDGETS if many <= 4000 else _LARGE)[size]


@dataclass(frozen=True)
class Spills:
    """The moves of values between memory, registers and slots of shared memory.

    - ``loads``: before an operation, pairs (value, slot) or (input, None).
    - ``stores``: after an operation, pairs (value, slot).
    - ``dropped``: values that leave the registers after an operation.
    - ``first``: slots of values that are in slots initially.
    - ``slots``: the number of slots.
    """

    loads: dict[int, list[tuple[int, int | None]]]
    stores: dict[int, list[tuple[int, int]]]
    dropped: dict[int, list[int]]
    first: dict[int, int]
    slots: int


class _Slots:
    """Slots of shared memory; free ones are reused."""

    def __init__(self, values: Sequence[int | None], most: int):
        self.of = {value: slot for slot, value in enumerate(values) if value is not None}
        self._free = [slot for slot, value in enumerate(values) if value is None]
        self.count, self._most = len(values), most

    def take(self, value: int) -> int | None:
        """Reserve a slot for a value and return it, or None if all slots are in use."""
        if not self._free:
            if self.count >= self._most:
                return None
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
    """Return the moves that keep values within a budget and ``slots``; excess values stay in registers.

    The value with the most distant next use leaves the registers first (Belady 1966). ``waiting`` contains the values
    that are initially in the first slots (None: free). Inputs in shared memory, marked by ``near``, are read just
    before their use.
    """
    operations, places = program.operations, _Slots(waiting, slots)
    first, uses = dict(places.of), _uses(program)
    held = dict[int, None]()
    left: dict[int, int] = {}  # the operation after which a value left the registers
    loads: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    stores: dict[int, list[tuple[int, int]]] = defaultdict(list)
    dropped: dict[int, list[int]] = defaultdict(list)
    for index, operation in enumerate(operations):
        if operation.code in FREE_OPERATIONS or index in first:
            continue
        taken = dict.fromkeys(argument for argument in operation.arguments if operations[argument].code != ca.OP_CONST)
        for item in taken:
            if item not in held:
                far = operations[item].code == ca.OP_INPUT and not (near and near[operations[item].arguments[0]])
                early = index - (budget.ahead if far else _LOAD_LEAD)
                loads[max(left.get(item, 0), early)].append((item, places.of.get(item)))
                held[item] = None
            while uses[item] and uses[item][-1] <= index:
                uses[item].pop()
        for item in taken:
            if not uses[item]:
                del held[item]
                places.free(item)
        if uses[index]:
            held[index] = None
        while len(held) > budget.kept:
            value = max(held, key=lambda each: uses[each][-1])
            if operations[value].code != ca.OP_INPUT and value not in places.of:
                if (slot := places.take(value)) is None:
                    break
                stores[index].append((value, slot))
            del held[value]
            left[value] = index + 1
            dropped[index].append(value)
    return Spills(dict(loads), dict(stores), dict(dropped), first, places.count)


def _uses(program: Program) -> dict[int, list[int]]:
    """Return the operations that use each value, in reverse order."""
    uses: dict[int, list[int]] = defaultdict(list)
    for index in reversed(range(len(program.operations))):
        for argument in dict.fromkeys(program.operations[index].taken):
            uses[argument].append(index)
    return uses


# Number of values in the registers of a thread, by their size in bytes; other registers contain addresses.
_KEPT = {4: 230, 8: 115}
# Minimum number of operations for a split: smaller kernels are limited by memory, and parts would have to read the
# inputs again.
_MIN_SPLIT_OPERATIONS = 4000
# Estimated slowdown per live value in excess of the registers, relative to their number.
_BEYOND = 1.0
_MAX_PARTS = 24  # maximum number of parts


class Part(NamedTuple):
    """A part of a program that computes some results; the others are None. ``zeros`` are results set to zero."""

    program: Program
    zeros: tuple[tuple[int, int], ...]


def whole(program: Program) -> Part:
    """Return a program as a single part."""
    return Part(program, tuple(program.targets.get(None, ())))


def split(program: Program, size: int) -> list[Part]:
    """Return the parts of a program with numbers of ``size`` bytes, ordered for few live values.

    Results are sorted so that neighbours share many operations. Parts are halved while this reduces the cost.
    """
    parts = [Part(part, ()) for part in _parts(program, size)]
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
    """A part that may be halved: results, operations, and live values in excess of the registers."""

    values: list[int]
    program: Program
    beyond: float

    @classmethod
    def of(cls, program: Program, values: list[int], size: int) -> "_Candidate":
        part = ordered(_restricted(program, values), quick=True)
        return cls(values, part, _beyond(part, size))

    @property
    def cost(self) -> float:
        """Estimated time, in units of one operation."""
        return len(self.program.operations) * (1 + _BEYOND * self.beyond)


def _beyond(program: Program, size: int) -> float:
    """Return the number of live values in excess of the registers, relative to the capacity of the registers."""
    return max(0, alive(program) - _KEPT[size]) / _KEPT[size]


def _chain(program: Program) -> list[int]:
    """Return the computed results, ordered so that neighbours share many operations."""
    values = sorted(v for v in program.targets if v is not None and program.operations[v].code not in FREE_OPERATIONS)
    reached = [0] * len(program.operations)  # bits of the results that need each operation
    for k, value in enumerate(values):
        reached[value] |= 1 << k
    for index in reversed(range(len(reached))):
        for item in program.operations[index].taken:
            reached[item] |= reached[index]
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
    """Return the program restricted to the operations for ``values``; other results are None."""
    needed, stack = set[int](), list(values)
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            stack += program.operations[index].taken
    required = set(values)
    results = tuple(tuple(v if v in required else None for v in result) for result in program.results)
    return arranged(replace(program, results=results), sorted(needed))


def _with_free(program: Program, part: Program) -> Program:
    """Return a part extended by results that are inputs or constants."""
    operations, results = list(part.operations), [list(result) for result in part.results]
    for k, result in enumerate(program.results):
        for entry, value in enumerate(result):
            if value is not None and results[k][entry] is None and program.operations[value].code in FREE_OPERATIONS:
                results[k][entry] = len(operations)
                operations.append(program.operations[value])
    return replace(part, operations=tuple(operations), results=tuple(map(tuple, results)))
