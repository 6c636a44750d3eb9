"""Functions without sines and cosines of known angles: those of a UPS leg are entries of its direction."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca


class Known(NamedTuple):
    """The cosine and sine of the angle ratio x[place] + offset, where x is one input."""

    place: int
    ratio: float
    offset: float
    cosine: ca.SX
    sine: ca.SX


class _Line(NamedTuple):
    """A value ratio x[place] + offset, or the constant offset if place is None."""

    place: int | None
    ratio: float
    offset: float


def without_trigonometry(
    function: ca.Function, inputs: Sequence[ca.SX], which: int, known: Sequence[Known]
) -> list[ca.SX]:
    """Return the outputs of a function at ``inputs``, with known sines and cosines inserted; ``which`` input is x.

    Example:
        >>> x, c, s = ca.SX.sym("x"), ca.SX.sym("c"), ca.SX.sym("s")
        >>> f = ca.Function("f", [x], [2 * ca.cos(x + 1)])
        >>> without_trigonometry(f, [x], 0, [Known(0, 1.0, 1.0, c, s)])
        [SX((2.*c))]
    """
    work: dict[int, ca.SX] = {}
    lines: dict[int, _Line | None] = {}
    outputs = [ca.SX.zeros(function.sparsity_out(k)) for k in range(function.n_out())]
    table = {(each.place, each.ratio): each for each in known}
    given = [ca.densify(each) for each in inputs]
    for k in range(function.n_instructions()):
        code, ins, outs = function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_OUTPUT:
            outputs[outs[0]].nz[outs[1]] = work[ins[0]]
            continue
        line: _Line | None
        if code == ca.OP_INPUT:
            value = given[ins[0]].nz[ins[1]]
            line = _Line(ins[1], 1.0, 0.0) if ins[0] == which else None
        elif code == ca.OP_CONST:
            number = function.instruction_constant(k)
            value, line = ca.SX(number), _Line(None, 0.0, number)
        else:
            arguments = [work[i] for i in ins]
            line = _linear_form(code, [lines[i] for i in ins])
            known_value = _lookup(code, lines[ins[0]], table)
            if known_value is not None:
                value = known_value
            else:
                value = ca.SX.unary(code, *arguments) if len(arguments) == 1 else ca.SX.binary(code, *arguments)
        work[outs[0]], lines[outs[0]] = value, line
    return outputs


def _linear_form(code: int, lines: list[_Line | None]) -> _Line | None:
    """Return the result of an operation on such values, or None if it is not of that form."""
    given = [line for line in lines if line is not None]
    if len(given) < len(lines):
        return None
    first = given[0]
    if code == ca.OP_NEG:
        return _Line(first.place, -first.ratio, -first.offset)
    if len(given) < 2:
        return None
    second = given[1]
    if first.place is not None and second.place is not None:
        return None
    place = second.place if first.place is None else first.place
    if code in (ca.OP_ADD, ca.OP_SUB):
        sign = 1.0 if code == ca.OP_ADD else -1.0
        return _Line(place, first.ratio + sign * second.ratio, first.offset + sign * second.offset)
    if code == ca.OP_MUL:
        number, other = (first, second) if first.place is None else (second, first)
        return _Line(place, number.offset * other.ratio, number.offset * other.offset)
    return None


def _lookup(code: int, line: _Line | None, table: dict[tuple[int, float], Known]) -> ca.SX | None:
    if code not in (ca.OP_SIN, ca.OP_COS) or line is None or line.place is None:
        return None
    known = table.get((line.place, line.ratio))
    if known is None or abs(known.offset - line.offset) > 1e-14:
        return None
    return known.sine if code == ca.OP_SIN else known.cosine
