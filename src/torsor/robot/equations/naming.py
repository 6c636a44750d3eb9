"""Common subexpressions: which of them get a name, and the order in which they are evaluated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import casadi as ca
import sympy as sp

from torsor.compiler.program import Program
from torsor.robot.equations.rules import RULES, Expression, number

Definitions = dict[Any, Expression]
WORTH = 4  # operations of a subexpression that gets a name; shorter ones are easier to read where they are used
LONGEST = 14  # operations of one line of an equation that is not simplified


def direct(
    program: Program, leaves: Sequence[Sequence[Expression]], wave: Callable[[str, Any], Any | None]
) -> tuple[list[list[Expression]], Definitions]:
    """Return the entries of each output as they are computed, and the definitions of what is used more than once.

    ``wave`` gives the symbol of the cosine ("c") or sine of an input, or None for other arguments.
    """
    uses = [0] * len(program.operations)
    for code, arguments, _ in program.operations:
        for each in () if code in (ca.OP_INPUT, ca.OP_CONST) else arguments:
            uses[each] += 1
    for entries in program.results:
        for entry in entries:
            if entry is not None:
                uses[entry] += 1
    values: list[Expression] = []
    lengths: list[int] = []
    made: Definitions = {}
    for index, (code, arguments, constant) in enumerate(program.operations):
        length = 0
        if code == ca.OP_INPUT:
            value = leaves[arguments[0]][arguments[1]]
        elif code == ca.OP_CONST:
            value = number(constant)
        else:
            given = [values[k] for k in arguments]
            value, length = RULES[code](*given), 1 + sum(lengths[k] for k in arguments)
            symbol = wave("c" if code == ca.OP_COS else "s", given[0]) if code in (ca.OP_SIN, ca.OP_COS) else None
            shared = uses[index] > 1 and length > 1 and not value.is_Symbol and not (-value).is_Symbol
            if symbol is None and (shared or length > LONGEST):
                symbol = sp.Symbol(f"w_{len(made) + 1}")
            if symbol is not None:
                made[symbol], value, length = value, symbol, 0
        values.append(value)
        lengths.append(length)
    zero = sp.Integer(0)
    return [[zero if k is None else values[k] for k in entries] for entries in program.results], made


def shared(expressions: Sequence[Expression], made: Definitions) -> tuple[list[Expression], Definitions]:
    """Return expressions and definitions with names for what several of them have in common."""
    different = list(dict.fromkeys([*expressions, *made.values()]))
    found, short = sp.cse(different, symbols=sp.numbered_symbols("w_", start=1), order="none")
    names: Definitions = {}
    inline: dict[Any, Expression] = {}
    for symbol, value in found:
        value = value.xreplace(inline)
        if value.count_ops() < WORTH:
            inline[symbol] = value
        else:
            names[symbol] = value
    number_of = {old: sp.Symbol(f"w_{k + 1}") for k, old in enumerate(names)}
    renamed = {old: new for old, new in number_of.items() if old != new}

    def final(value: Expression) -> Expression:
        return value.xreplace(inline).xreplace(renamed)

    new = dict(zip(different, map(final, short), strict=True))
    names = {number_of[symbol]: value.xreplace(renamed) for symbol, value in names.items()}
    return [new[each] for each in expressions], {symbol: new[value] for symbol, value in made.items()} | names


def inserted(expressions: Sequence[Expression], made: Definitions, most: int) -> tuple[list[Expression], Definitions]:
    """Return expressions and definitions without the definitions of at most so many operations."""
    kept: Definitions = {}
    inline: dict[Any, Expression] = {}
    for symbol, value in ordered(made, made):
        value = value.xreplace(inline)
        (inline if value.count_ops() <= most else kept)[symbol] = value
    return [each.xreplace(inline) for each in expressions], kept


def ordered(made: Mapping[Any, Expression], wanted: Iterable[Any]) -> list[tuple[Any, Expression]]:
    """Return the definitions that symbols need, each after those that it uses itself."""
    found: dict[Any, Expression] = {}
    waiting = [(symbol, False) for symbol in reversed(list(wanted)) if symbol in made]
    while waiting:
        symbol, ready = waiting.pop()
        if symbol in found:
            continue
        if ready:
            found[symbol] = made[symbol]
            continue
        waiting.append((symbol, True))
        used = sorted((each for each in made[symbol].free_symbols if each in made), key=str, reverse=True)
        waiting += [(each, False) for each in used if each not in found]
    return list(found.items())
