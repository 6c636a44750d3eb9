"""Conversion of traced operations to SymPy expressions: one rule per CasADi operation."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import casadi as ca
import sympy as sp

Expression = Any  # SymPy has no types
ROUNDING = 4e-16  # relative distance within which a float is taken to be a short number with rounding error


def exact(number: float) -> Fraction:
    """Return the fraction that a float represents up to rounding, such as 1/12 or 0.07."""
    whole = Fraction(number)
    near = (whole.limit_denominator(360), Fraction(f"{number:.13g}"), Fraction(repr(number)), whole)
    return next(item for item in near if abs(item - whole) <= ROUNDING * abs(whole))


def is_true(condition: Expression) -> Expression:
    """Return 1 if a condition is true and 0 otherwise, like CasADi's comparisons."""
    return sp.Piecewise((1, condition), (0, True))


def _power(a: Expression, b: Expression) -> Expression:
    return a ** (sp.Integer(int(b)) if b.is_number and b == int(b) else b)


_SAME_NAMES = "sign sqrt floor exp log sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfinv"
RULES: dict[int, Callable[..., Expression]] = {
    **{getattr(ca, f"OP_{name.upper()}"): getattr(sp, name) for name in _SAME_NAMES.split()},
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_LIFT: lambda a, b: a,
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: lambda a, b: a / b,
    ca.OP_NEG: lambda a: -a,
    ca.OP_SQ: lambda a: a**2,
    ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_INV: lambda a: 1 / a,
    ca.OP_LT: lambda a, b: is_true(sp.Lt(a, b)),
    ca.OP_LE: lambda a, b: is_true(sp.Le(a, b)),
    ca.OP_EQ: lambda a, b: is_true(sp.Eq(a, b)),
    ca.OP_NE: lambda a, b: is_true(sp.Ne(a, b)),
    ca.OP_NOT: lambda a: is_true(sp.Eq(a, 0)),
    ca.OP_AND: lambda a, b: is_true(sp.And(sp.Ne(a, 0), sp.Ne(b, 0))),
    ca.OP_OR: lambda a, b: is_true(sp.Or(sp.Ne(a, 0), sp.Ne(b, 0))),
    ca.OP_IF_ELSE_ZERO: lambda a, b: sp.Piecewise((b, sp.Ne(a, 0)), (0, True)),
    ca.OP_POW: _power,
    ca.OP_CONSTPOW: _power,
    ca.OP_FABS: sp.Abs,
    ca.OP_CEIL: sp.ceiling,
    ca.OP_COPYSIGN: lambda a, b: sp.Piecewise((sp.Abs(a), sp.Ge(b, 0)), (-sp.Abs(a), True)),
    ca.OP_FMIN: sp.Min,
    ca.OP_FMAX: sp.Max,
    ca.OP_FMOD: lambda a, b: sp.sign(a) * sp.Mod(sp.Abs(a), sp.Abs(b)),
    ca.OP_REMAINDER: lambda a, b: a - b * sp.floor(a / b + sp.Rational(1, 2)),
    ca.OP_HYPOT: lambda a, b: sp.sqrt(a**2 + b**2),
    ca.OP_EXPM1: lambda a: sp.exp(a) - 1,
    ca.OP_LOG1P: lambda a: sp.log(1 + a),
}


def number(value: float | Fraction, fractions: bool = False) -> Expression:
    """Return a SymPy number: an integer, a fraction such as 1/12 if ``fractions`` is True, or a float."""
    if isinstance(value, float) and not math.isfinite(value):
        return sp.nan if math.isnan(value) else sp.oo if value > 0 else -sp.oo
    result = exact(value) if isinstance(value, float) else value
    if result.denominator == 1 or (fractions and result.denominator in (2, 3, 4, 6, 8, 12, 24)):
        return sp.Rational(result.numerator, result.denominator)
    return sp.Float(float(result))
