"""Enclosures of functions over an interval by quadratic polynomials with remainders, which prove bounds.

The inputs of a function depend on one variable u from -1 to 1, the time within a short interval. Each value x of the
trace is replaced by four numbers such that for all u

    |x(u) - (c0 + c1 u + c2 u^2)| <= r

These are Taylor models of order two in one variable (Makino and Berz 2003). The remainder r decreases with the third
power of the interval length, whereas bounds by interval arithmetic decrease with the first. There is one rule per
CasADi operation. The result is a CasADi function, which can be compiled for every target.

The remainder includes rounding. Each rule adds ``ROUNDING`` times the magnitude of its result. This covers its
arithmetic if sums and products are rounded once, and quotients and elementary functions have relative errors below
2^-50 (the tests of the compiler assert 2^-51). The factor ``GROWTH`` covers the arithmetic of remainders, which are
sums of positive numbers, and ``UNDERFLOW`` covers underflow for coefficients below 2^500. Where a function is undefined
or a value overflows, bounds are infinite or NaN.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import casadi as ca

from torsor.compiler.program import Operation, in_scalars, read_program

ROUNDING, GROWTH, UNDERFLOW = 2.0**-48, 1 + 2.0**-40, 2.0**-500
COLUMNS = 4  # c0, c1, c2 and r


class Enclosure(NamedTuple):
    """The polynomial c0 + c1 u + c2 u^2 and the remainder r, as scalar expressions."""

    c0: ca.SX
    c1: ca.SX = ca.SX(0)
    c2: ca.SX = ca.SX(0)
    r: ca.SX = ca.SX(0)

    @property
    def size(self) -> ca.SX:
        """Upper bound on the magnitude of the polynomial."""
        return abs(self.c0) + abs(self.c1) + abs(self.c2)

    @property
    def reach(self) -> ca.SX:
        """Upper bound on the distance from c0."""
        return GROWTH * (abs(self.c1) + abs(self.c2) + self.r)

    @property
    def is_away(self) -> ca.SX:
        """Whether the value is never 0; false for NaN."""
        return abs(self.c0) > self.reach

    def scaled(self, factor: ca.SX | float) -> "Enclosure":
        """Return the product with 0, -1, 1 or a power of two, which is exact."""
        size = abs(ca.SX(factor))
        return Enclosure(self.c0 * factor, self.c1 * factor, self.c2 * factor, self.r * size)


def _add(a: Enclosure, b: Enclosure) -> Enclosure:
    pairs = list(zip(a[:3], b[:3], strict=True))
    rounded = sum((abs(x + y) for x, y in pairs if not (x.is_zero() or y.is_zero())), start=ca.SX(0))
    return Enclosure(a.c0 + b.c0, a.c1 + b.c1, a.c2 + b.c2, GROWTH * (a.r + b.r + ROUNDING * rounded))


def _subtract(a: Enclosure, b: Enclosure) -> Enclosure:
    return _add(a, b.scaled(-1))


def _multiply(a: Enclosure, b: Enclosure) -> Enclosure:
    cubic, quartic = abs(a.c1 * b.c2 + a.c2 * b.c1), abs(a.c2 * b.c2)
    r = a.r * (b.size + b.r) + b.r * a.size + cubic + quartic + ROUNDING * (a.size * b.size)
    c2 = a.c0 * b.c2 + a.c1 * b.c1 + a.c2 * b.c0
    return Enclosure(a.c0 * b.c0, a.c0 * b.c1 + a.c1 * b.c0, c2, _grown(r))


def _grown(r: ca.SX) -> ca.SX:
    return GROWTH * r + UNDERFLOW


def _expanded(a: Enclosure, f0: ca.SX, f1: ca.SX, f2: ca.SX, third: ca.SX | float, cancelled: float = 0.0) -> Enclosure:
    """Return f(a) by Taylor's theorem from f, f' and f''/2 at c0 and a bound on |f'''|/6 within ``reach``.

    ``cancelled`` is the magnitude of the terms whose differences are f' and f''/2, if cancellation occurs.
    """
    slope, square = abs(a.c1) + abs(a.c2), a.c1 * a.c1
    beyond = 2 * abs(a.c1 * a.c2) + a.c2 * a.c2 + a.r * (2 * slope + a.r)  # terms of (c1 u + c2 u^2 +- r)^2
    rounded = abs(f0) + abs(f1) * slope + abs(f2) * square + cancelled * (slope + a.r + square + beyond)
    r = abs(f1) * a.r + abs(f2) * beyond + third * (a.reach * a.reach * a.reach) + ROUNDING * rounded
    return Enclosure(f0, f1 * a.c1, f1 * a.c2 + f2 * square, _grown(r))


def _within(condition: ca.SX, bound: ca.SX) -> ca.SX:
    """Return a bound if a condition is true, otherwise infinity."""
    return ca.if_else(condition, bound, ca.inf)


def _sine(a: Enclosure) -> Enclosure:
    sine, cosine = ca.sin(a.c0), ca.cos(a.c0)
    return _expanded(a, sine, cosine, -0.5 * sine, 1 / 6)


def _cosine(a: Enclosure) -> Enclosure:
    sine, cosine = ca.sin(a.c0), ca.cos(a.c0)
    return _expanded(a, cosine, -sine, -0.5 * cosine, 1 / 6)


def _inverse(a: Enclosure) -> Enclosure:
    f0, least = 1 / a.c0, abs(a.c0) * (1 - ROUNDING) - a.reach
    return _expanded(a, f0, -(f0 * f0), f0 * f0 * f0, _within(least > 0, 1 / (least * least) ** 2))


def _least(a: Enclosure) -> ca.SX:
    return a.c0 - ROUNDING * abs(a.c0) - a.reach


def _root(a: Enclosure) -> Enclosure:
    f0, least = ca.sqrt(a.c0), _least(a)
    f1 = 0.5 / f0
    return _expanded(a, f0, f1, -0.25 * f1 / a.c0, _within(least > 0, 0.0625 / (least * least * ca.sqrt(least))))


def _exponential(a: Enclosure) -> Enclosure:
    f0 = ca.exp(a.c0)
    return _expanded(a, f0, f0, 0.5 * f0, ca.exp(a.c0 + a.reach) / 6)


def _logarithm(a: Enclosure) -> Enclosure:
    f1, least = 1 / a.c0, _least(a)
    return _expanded(a, ca.log(a.c0), f1, -0.5 * f1 * f1, _within(least > 0, 1 / (3 * least * least * least)))


def _arctangent(a: Enclosure) -> Enclosure:
    f1 = 1 / (1 + a.c0 * a.c0)
    return _expanded(a, ca.atan(a.c0), f1, -a.c0 * f1 * f1, 1 / 3)


def _hyperbolic_tangent(a: Enclosure) -> Enclosure:
    f0 = ca.tanh(a.c0)
    f1 = (1 - f0) * (1 + f0)
    return _expanded(a, f0, f1, -f0 * f1, 1 / 3, cancelled=1.0)


def _arcsine(a: Enclosure, sign: float = 1.0) -> Enclosure:
    x, function = a.c0, ca.asin if sign > 0 else ca.acos
    f1, least = 1 / ca.sqrt((1 - x) * (1 + x)), 1 - ROUNDING - abs(x) - a.reach
    third = _within(least > 0, 0.5 / (least * least * ca.sqrt(least)))  # (1 + 2 x^2) / 6 <= 1/2
    return _expanded(a, function(x), sign * f1, sign * 0.5 * x * f1 * f1 * f1, third)


def _sign(a: Enclosure) -> Enclosure:
    unknown = ca.logic_not(a.is_away)
    is_finite = a.size + a.r < ca.inf
    return Enclosure(ca.if_else(a.is_away, ca.sign(a.c0), 0), r=ca.if_else(is_finite, unknown, ca.inf))


def _magnitude(a: Enclosure) -> Enclosure:
    half = GROWTH * (abs(a.c0) + a.reach) / 2
    return _chosen(a.is_away, a.scaled(ca.sign(a.c0)), Enclosure(half, r=half))


def _chosen(condition: ca.SX, a: Enclosure, b: Enclosure) -> Enclosure:
    """Return a if the condition is 1, or b if it is 0."""
    return Enclosure(*(ca.if_else(condition, x, y) for x, y in zip(a, b, strict=True)))


def _maximum(a: Enclosure, b: Enclosure) -> Enclosure:
    difference = _subtract(a, b)
    half = GROWTH * (difference.c0 + difference.reach) / 2  # between 0 and twice this if the sign is unknown
    linear = _add(b, Enclosure(half, r=abs(half)))
    low, high = ca.fmax(a.c0 - a.reach, b.c0 - b.reach), ca.fmax(a.c0 + a.reach, b.c0 + b.reach)
    constant = Enclosure((low + high) / 2, r=_grown((high - low) / 2 + ROUNDING * (abs(low) + abs(high))))
    either = _chosen(constant.r < linear.r, constant, linear)  # false for NaN, which the linear enclosure then contains
    return _chosen(difference.is_away, _chosen(difference.c0 > 0, a, b), either)


def _minimum(a: Enclosure, b: Enclosure) -> Enclosure:
    return _maximum(a.scaled(-1), b.scaled(-1)).scaled(-1)


# Truth values are 0, 1, or 0.5 +- 0.5 (unknown).


def _truth(is_true: ca.SX, may_be_true: ca.SX) -> Enclosure:
    return Enclosure(0.5 * (is_true + may_be_true), r=0.5 * (may_be_true - is_true))


def _limits(a: Enclosure) -> tuple[ca.SX, ca.SX]:
    """Return whether a value is nonzero for all u, and whether it may be nonzero."""
    return a.is_away, ca.logic_not(ca.eq(abs(a.c0) + a.reach, 0))


def _less(a: Enclosure, b: Enclosure) -> Enclosure:
    difference = _subtract(b, a)
    return _truth(difference.c0 > difference.reach, ca.logic_not(difference.c0 < -difference.reach))


def _unequal(a: Enclosure, b: Enclosure) -> Enclosure:
    return _truth(*_limits(_subtract(a, b)))


def _not(a: Enclosure) -> Enclosure:
    is_true, may_be = _limits(a)
    return _truth(ca.logic_not(may_be), ca.logic_not(is_true))


def _and(a: Enclosure, b: Enclosure) -> Enclosure:
    return _truth(*(ca.logic_and(x, y) for x, y in zip(_limits(a), _limits(b), strict=True)))


def _if_else(condition: Enclosure, a: Enclosure, b: Enclosure) -> Enclosure:
    is_true, may_be = _limits(condition)
    middle, apart = _add(a.scaled(0.5), b.scaled(0.5)), _subtract(a, b)
    either = middle._replace(r=_grown(middle.r + 0.5 * (apart.size + apart.r)))
    return _chosen(is_true, a, _chosen(may_be, either, b))


_ZERO = Enclosure(ca.SX(0))

RULES: dict[int, Callable[..., Enclosure]] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_ADD: _add,
    ca.OP_SUB: _subtract,
    ca.OP_MUL: _multiply,
    ca.OP_DIV: lambda a, b: _multiply(a, _inverse(b)),
    ca.OP_NEG: lambda a: a.scaled(-1),
    ca.OP_TWICE: lambda a: a.scaled(2),
    ca.OP_SQ: lambda a: _multiply(a, a),
    ca.OP_INV: _inverse,
    ca.OP_SQRT: _root,
    ca.OP_SIN: _sine,
    ca.OP_COS: _cosine,
    ca.OP_TAN: lambda a: _multiply(_sine(a), _inverse(_cosine(a))),
    ca.OP_ASIN: _arcsine,
    ca.OP_ACOS: lambda a: _arcsine(a, -1.0),
    ca.OP_ATAN: _arctangent,
    ca.OP_EXP: _exponential,
    ca.OP_LOG: _logarithm,
    ca.OP_TANH: _hyperbolic_tangent,
    ca.OP_POW: lambda a, b: _exponential(_multiply(b, _logarithm(a))),
    ca.OP_CONSTPOW: lambda a, b: _exponential(_multiply(b, _logarithm(a))),
    ca.OP_SIGN: _sign,
    ca.OP_FABS: _magnitude,
    ca.OP_FMIN: _minimum,
    ca.OP_FMAX: _maximum,
    ca.OP_LT: _less,
    ca.OP_LE: _less,
    ca.OP_NE: _unequal,
    ca.OP_EQ: lambda a, b: _not(_unequal(a, b)),
    ca.OP_NOT: _not,
    ca.OP_AND: _and,
    ca.OP_OR: lambda a, b: _not(_and(_not(a), _not(b))),
    ca.OP_IF_ELSE_ZERO: lambda condition, a: _if_else(condition, a, _ZERO),
}
"""The rule of each CasADi operation."""


def enclose(function: ca.Function, moving: Collection[str]) -> ca.Function:
    """Return a function that bounds the outputs (m x 1) of a function over an interval.

    The inputs named in ``moving`` (n x 1) become n x 4: c0, c1, c2 and r of each entry. The other inputs are constant.
    The outputs are lower and upper bounds (m x 1) of all outputs as a column, and the remainders r (m x 1). Apart from
    rounding, the upper bound exceeds the supremum by at most 2 r.

    Example:
        >>> x = ca.SX.sym("x")
        >>> bounds = enclose(ca.Function("f", [x], [x * x], ["x"], ["y"]), ["x"])
        >>> lower, upper, _ = bounds(np.array([[1.5, 0.5, 0.0, 0.0]]))  # x from 1 to 2
        >>> round(float(lower), 9), round(float(upper), 9)
        (1.0, 4.0)
    """
    program = read_program(in_scalars(function.name(), function, RULES))
    inputs = [
        ca.SX.sym(name, rows * columns, COLUMNS) if name in moving else ca.SX.sym(name, rows, columns)
        for name, (rows, columns) in zip(function.name_in(), program.inputs, strict=True)
    ]
    values: list[Enclosure] = []
    for operation in program.operations:
        if operation.code == ca.OP_INPUT:
            which, entry = operation.arguments
            symbol, (_, columns) = inputs[which], program.inputs[which]
            is_moving = function.name_in(which) in moving
            row = ca.vertsplit(symbol[entry, :].T) if is_moving else [symbol[entry // columns, entry % columns]]
            values.append(Enclosure(*row))
        elif operation.code == ca.OP_CONST:
            values.append(Enclosure(ca.SX(operation.number)))
        else:
            value = _ruled(operation, values)
            values.append(_pattern(program.operations, operation, values, value) or value)
    rows = [_ZERO if index is None else values[index] for indices in program.results for index in indices]
    outputs = ca.cse([ca.vertcat(*column) for column in zip(*map(_range, rows), strict=True)])
    return ca.Function(f"{function.name()}_range", inputs, outputs, function.name_in(), ["lower", "upper", "remainder"])


def _ruled(operation: Operation, values: list[Enclosure]) -> Enclosure:
    rule = RULES[operation.code]
    return rule(*(values[k] for k in operation.arguments))


def _pattern(
    operations: tuple[Operation, ...], outer: Operation, values: list[Enclosure], value: Enclosure
) -> Enclosure | None:
    """Return an enclosure of two combined operations, which is tighter than the successive one ``value``, or None.

    CasADi writes if_else(c, a, b) as if_else_zero(c, a) + if_else_zero(not c, b). If c is unknown, the sum of two
    enclosures would also contain 0 and a + b. Similarly, max(low, min(high, x)) is between low and high for every x.
    """
    pairs = (outer.arguments, outer.arguments[::-1])
    if outer.code == ca.OP_ADD and all(operations[k].code == ca.OP_IF_ELSE_ZERO for k in outer.arguments):
        for (condition, a), (other, b) in ((operations[k].arguments, operations[n].arguments) for k, n in pairs):
            if operations[other].code == ca.OP_NOT and operations[other].arguments == (condition,):
                return _if_else(values[condition], values[a], values[b])
    if outer.code == ca.OP_FMAX:
        for low, inner in pairs:
            limits = [low, *(k for k in operations[inner].taken if operations[k].code == ca.OP_CONST)]
            if operations[inner].code == ca.OP_FMIN and operations[low].code == ca.OP_CONST and len(limits) == 2:
                least, most = (operations[k].number for k in limits)
                half = GROWTH * abs(most - least) / 2 + ROUNDING * (abs(least) + abs(most))
                return _chosen(value.r < half, value, Enclosure(ca.SX((least + most) / 2), r=ca.SX(half)))
    return None


def _range(a: Enclosure) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return lower and upper bounds of a value, and its remainder."""
    vertex = abs(a.c1) * (abs(a.c1) / (4 * abs(a.c2)))
    is_inside = abs(a.c1) < 2 * abs(a.c2)  # the extremum of the polynomial is inside the interval
    above = ca.if_else(ca.logic_and(is_inside, a.c2 < 0), vertex, abs(a.c1) + a.c2)
    below = ca.if_else(ca.logic_and(is_inside, a.c2 > 0), vertex, abs(a.c1) - a.c2)
    margin = _grown(a.r) + ROUNDING * a.size
    return a.c0 - below - margin, a.c0 + above + margin, margin
