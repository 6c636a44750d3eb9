"""The order of operations: another order of the same list, in which fewer values are needed at the same time.

A processor keeps a few dozen values in registers; the others go to memory and back. The order does not change any
operation, so it changes no bit of any result.
"""

from bisect import bisect_left, insort
from dataclasses import replace

import casadi as ca

from torsor.compiler.program import Operation, Program

_FREE = {ca.OP_INPUT, ca.OP_CONST}
_PAIR = {ca.OP_SIN: ca.OP_COS, ca.OP_COS: ca.OP_SIN}


def ordered(program: Program) -> Program:
    """Return a program with its operations in an order with few values alive.

    It is greedy: of the operations whose arguments are known, the next one is that which ends most values and begins
    least, and among equals the one that was nearest to the last one in the old order. Sine and cosine of an angle are
    computed together. Inputs come just before their first use.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 8)
        >>> program = read_program(ca.Function("f", [x], [ca.sum1(ca.sin(x))]))
        >>> alive(ordered(program)) <= alive(program)
        True
    """
    return arranged(program, _greedy(program))


def arranged(program: Program, order: list[int]) -> Program:
    """Return a program with its operations in another order; each comes after those that it takes values of."""
    place = {old: new for new, old in enumerate(order)}
    operations = []
    for old in order:
        operation = program.operations[old]
        if operation.code not in _FREE:
            operation = Operation(operation.code, tuple(place[each] for each in operation.arguments), operation.number)
        operations.append(operation)
    results = tuple(tuple(None if each is None else place[each] for each in result) for result in program.results)
    return replace(program, operations=tuple(operations), results=results)


def alive(program: Program) -> int:
    """Return the largest number of values that are needed at the same time; constants need no place.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 2)
        >>> alive(read_program(ca.Function("f", [x], [x[0] * x[1] + 2])))
        2
    """
    last = dict[int, int]()
    for index, operation in enumerate(program.operations):
        if operation.code not in _FREE:
            last |= dict.fromkeys(operation.arguments, index)
    ending = dict[int, int]()
    for index in last.values():
        ending[index] = ending.get(index, 0) + 1
    now = most = 0
    begun = set[int]()
    constants = {k for k, each in enumerate(program.operations) if each.code == ca.OP_CONST}
    for index, operation in enumerate(program.operations):
        if operation.code in _FREE:
            continue
        now += sum(each in last for each in set(operation.arguments) - begun - constants)
        begun |= set(operation.arguments)
        most = max(most, now)
        now -= len({each for each in operation.arguments if last[each] == index} - constants)
        if index in last:
            now += 1
            begun.add(index)
        most = max(most, now)
    return most


def _greedy(program: Program) -> list[int]:
    operations = program.operations
    users: list[list[int]] = [[] for _ in operations]
    missing = [0] * len(operations)  # arguments that are not known yet
    partner = dict[int, int]()  # the cosine of each sine, and back
    angles = dict[tuple[int, int], int]()
    for index, operation in enumerate(operations):
        if operation.code in _FREE:
            continue
        for each in set(operation.arguments):
            users[each].append(index)
            missing[index] += operations[each].code not in _FREE
        if operation.code in _PAIR:
            other = angles.get((_PAIR[operation.code], operation.arguments[0]))
            if other is not None:
                partner[index], partner[other] = other, index
            angles[operation.code, operation.arguments[0]] = index
    left = [len(each) for each in users]
    counted = [operation.code != ca.OP_CONST for operation in operations]

    def gain(index: int) -> int:
        ended = sum(left[each] == 1 and counted[each] for each in set(operations[index].arguments))
        return ended - bool(users[index])

    ready: dict[int, list[int]] = {}  # by gain: the operations whose arguments are known, sorted
    gains = dict[int, int]()

    def offer(index: int) -> None:
        if index in gains:
            old = ready[gains[index]]
            del old[bisect_left(old, index)]
        gains[index] = gain(index)
        insort(ready.setdefault(gains[index], []), index)

    def take(index: int) -> None:
        if index in gains:
            old = ready[gains.pop(index)]
            del old[bisect_left(old, index)]
        for each in operations[index].arguments:
            if operations[each].code in _FREE and each not in done:
                done.add(each)
                order.append(each)
        done.add(index)
        order.append(index)
        for each in set(operations[index].arguments):
            left[each] -= 1
            if left[each] == 1:
                for user in users[each]:
                    if user in gains:
                        offer(user)
        for user in users[index]:
            missing[user] -= 1
            if not missing[user]:
                offer(user)

    order: list[int] = []
    done = set[int]()
    for index, operation in enumerate(operations):
        if operation.code not in _FREE and not missing[index]:
            offer(index)
    now = 0
    while gains:
        best = ready[max(key for key, each in ready.items() if each)]
        at = bisect_left(best, now)
        near = [best[k] for k in (at - 1, at) if 0 <= k < len(best)]
        now = min(near, key=lambda index: abs(index - now))
        take(now)
        if now in partner and partner[now] not in done:
            take(partner[now])
    # Inputs and constants that are results themselves.
    return order + [index for index, operation in enumerate(operations) if index not in done]
