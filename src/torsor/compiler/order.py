"""Reordering of operations to reduce the number of simultaneously live values.

A processor keeps a few dozen values in registers; the others are stored in memory and reloaded. Reordering does not
change operations, so results are bitwise identical.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import replace

import casadi as ca

from torsor.compiler.program import FREE_OPERATIONS, Operation, Program

_PAIR = {ca.OP_SIN: ca.OP_COS, ca.OP_COS: ca.OP_SIN}


def ordered(program: Program, quick: bool = False) -> Program:
    """Return a program with its operations in the one of three orders that has the fewest live values.

    The orders are the original one and two greedy ones: forwards from the inputs, and backwards from the results. The
    sine and cosine of an angle are computed together, and inputs are placed just before their first use. With
    ``quick``, only the forward order is used, which is best for large functions with many results.
    """
    graph = _Graph(program)
    if quick:
        return arranged(program, graph.with_inputs(graph.onwards()))
    original = [k for k, operation in enumerate(program.operations) if operation.code not in FREE_OPERATIONS]
    candidates = [
        arranged(program, graph.with_inputs(order)) for order in (original, graph.onwards(), graph.backwards())
    ]
    return min(candidates, key=alive)


def arranged(program: Program, order: Iterable[int]) -> Program:
    """Return a program with its operations in another order; arguments must precede their uses.

    Operations that are not in ``order`` are dropped, and their results become None.
    """
    place = {old: new for new, old in enumerate(order)}
    operations = []
    for old in place:
        code, arguments, number = operation = program.operations[old]
        if code not in FREE_OPERATIONS:
            operation = Operation(code, tuple([place[argument] for argument in arguments]), number)
        operations.append(operation)
    results = tuple(tuple(None if item is None else place.get(item) for item in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)


def alive(program: Program) -> int:
    """Return the largest number of live values; inputs count from their first use, and constants do not count."""
    graph = _Graph(program)
    left, begun, now, most = list(map(len, graph.users)), set[int](), 0, 0
    for index, operation in enumerate(program.operations):
        if operation.code in FREE_OPERATIONS:
            continue
        for item in graph.taken[index]:
            left[item] -= 1
            now += item not in begun
            begun.add(item)
        most = max(most, now)
        now += bool(graph.users[index]) - sum(not left[entry] for entry in graph.taken[index])
        begun.add(index)
        most = max(most, now)
    return most


class _Ready:
    """Operations that may come next, sorted by gain and then by number."""

    def __init__(self) -> None:
        self.gains: dict[int, int] = {}
        self._by_gain: dict[int, list[tuple[int, int]]] = {}
        self._keys: dict[int, int] = {}

    def offer(self, index: int, gain: int, key: int) -> None:
        """Add an operation, or change its gain."""
        self.remove(index)
        self.gains[index], self._keys[index] = gain, key
        insort(self._by_gain.setdefault(gain, []), (key, index))

    def remove(self, index: int) -> None:
        """Remove an operation if it is present."""
        if index in self.gains:
            same = self._by_gain[self.gains.pop(index)]
            del same[bisect_left(same, (self._keys[index], index))]

    def nearest(self, key: int) -> int:
        """Return the operation with the largest gain; among equals, the one with the nearest key."""
        best = self._by_gain[max(gain for gain, same in self._by_gain.items() if same)]
        at = bisect_left(best, (key, -1))
        near = best[max(at - 1, 0) : at + 1]
        return min(near, key=lambda pair: abs(pair[0] - key))[1]


class _Graph:
    """Users and arguments of each value, except constants; ``partner`` maps sines to cosines and vice versa."""

    def __init__(self, program: Program):
        self.operations = program.operations
        constants = {k for k, entry in enumerate(self.operations) if entry.code == ca.OP_CONST}
        self.free = [entry.code in FREE_OPERATIONS for entry in self.operations]
        self.taken = [[k for k in dict.fromkeys(entry.taken) if k not in constants] for entry in self.operations]
        self.users: list[list[int]] = [[] for _ in self.operations]
        self.partner: dict[int, int] = {}
        angles: dict[tuple[int, int], int] = {}
        for index, operation in enumerate(self.operations):
            for item in self.taken[index]:
                self.users[item].append(index)
            if operation.code in _PAIR:
                other = angles.get((_PAIR[operation.code], operation.arguments[0]))
                if other is not None:
                    self.partner[index], self.partner[other] = other, index
                angles[operation.code, operation.arguments[0]] = index

    def with_inputs(self, order: list[int]) -> list[int]:
        """Return the order with inputs and constants inserted before their first use; unused ones come last."""
        result = dict[int, None]()
        for index in order:
            arguments = self.operations[index].arguments
            result |= dict.fromkeys(argument for argument in arguments if self.free[argument])
            result[index] = None
        return [*result, *(k for k in range(len(self.operations)) if k not in result)]

    def onwards(self) -> list[int]:
        """Return the order in which each operation ends the most live values and starts the fewest.

        Ties are broken by the distance from the previous operation in the old order.
        """
        taken, users, free = self.taken, self.users, self.free
        left = list(map(len, users))
        missing = [sum(not free[part] for part in some) for some in taken]
        order, done, loaded, ready = list[int](), set[int](), set[int](), _Ready()

        def offer(index: int) -> None:
            gain = -bool(users[index])
            for item in taken[index]:
                is_new = free[item] and item not in loaded  # whether it becomes live here
                gain += -(left[item] > 1) if is_new else left[item] == 1
            ready.offer(index, gain, index)

        def take(index: int) -> None:
            ready.remove(index)
            order.append(index)
            done.add(index)
            for item in taken[index]:
                left[item] -= 1
                changed = left[item] == 1 or (free[item] and item not in loaded)
                loaded.add(item)
                self._again(item, changed, ready, offer)
            for user in users[index]:
                missing[user] -= 1
                if not missing[user]:
                    offer(user)

        for index in range(len(taken)):
            if not free[index] and not missing[index]:
                offer(index)
        now = 0
        while ready.gains:
            now = ready.nearest(now)
            take(now)
            if now in self.partner and self.partner[now] not in done:
                take(self.partner[now])
        return order

    def backwards(self) -> list[int]:
        """Return the order, built from the end, in which each operation produces the most and uses the fewest values.

        Ties are broken by the most recent use.
        """
        taken, users, free = self.taken, self.users, self.free
        waiting = list(map(len, users))
        order, needed, ready = list[int](), set[int](), _Ready()
        when = [0] * len(taken)

        def group(index: int) -> list[int]:
            return [index, self.partner[index]] if index in self.partner else [index]

        def offer(index: int) -> None:
            members = group(index)
            if any(waiting[entry] for entry in members):
                return
            index = min(members)
            gain = sum(entry in needed for entry in members) - sum(entry not in needed for entry in taken[index])
            ready.offer(index, gain, max((when[user] for user in users[index]), default=0))

        for index in range(len(taken)):
            if not free[index]:
                offer(index)
        while ready.gains:
            index = ready.nearest(len(order) + 1)
            ready.remove(index)
            order += group(index)
            for item in group(index):
                needed.discard(item)
                when[item] = len(order)
            for item in taken[index]:
                changed = item not in needed
                needed.add(item)
                self._again(item, changed, ready, offer)
            for member in group(index):
                for item in taken[member]:
                    waiting[item] -= 1
                    if not free[item]:
                        offer(item)
        return order[::-1]

    def _again(self, value: int, changed: bool, ready: _Ready, offer: Callable[[int], None]) -> None:
        """Update the gain of operations that depend on a changed value."""
        if changed:
            for user in self.users[value]:
                if user in ready.gains:
                    offer(user)
