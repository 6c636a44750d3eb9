"""Nonlinear stiffness: a function of the deflection x, stored as text so that it can be compared and saved.

``"100 + 500 * x**2"`` is such a stiffness law; a CasADi expression of one symbol is converted to text. The parser
allows arithmetic and the named functions only, never other Python code, so files from unknown sources are safe.
"""

import ast
import math
import operator
from collections.abc import Callable
from reprlib import repr as short
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import LARGEST, number
from torsor.base.errors import ModelError, describe

PANELS = 12  # of the quadrature in energy_at
LONGEST = 2000  # characters of a law; it also limits the nesting, and with it the recursion of the parser

_NAMES = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")  # as in CasADi
_UNARY: dict[str, Callable[[Any], Any]] = {name: getattr(ca, name) for name in _NAMES} | {"abs": ca.fabs}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {"fmin": ca.fmin, "fmax": ca.fmax}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_ALLOWED = f"numbers, x, + - * / **, {', '.join([*_UNARY, *_BINARY])}"
# The text of each CasADi operation.
_TEXTS: dict[int, str] = {
    ca.OP_ADD: "({} + {})",
    ca.OP_SUB: "({} - {})",
    ca.OP_MUL: "({} * {})",
    ca.OP_DIV: "({} / {})",
    ca.OP_POW: "({} ** {})",
    ca.OP_CONSTPOW: "({} ** {})",
    ca.OP_NEG: "(-{})",
    ca.OP_SQ: "({} ** 2)",
    ca.OP_TWICE: "(2 * {})",
    ca.OP_INV: "(1 / {})",
    ca.OP_FABS: "abs({})",
    **{getattr(ca, f"OP_{name.upper()}"): f"{name}({{}})" for name in _NAMES},
    **{getattr(ca, f"OP_{name.upper()}"): f"{name}({{}}, {{}})" for name in _BINARY},
}


def checked_stiffness(value: Any, where: str) -> float | str:
    """Return a stiffness as a number of 0 or more, or as the text of a law in the deflection x.

    Example:
        >>> x = ca.SX.sym("deflection")
        >>> checked_stiffness(100 + 500 * x**2, "spring")
        '(100 + (500 * (x ** 2)))'
    """
    if isinstance(value, (ca.SX, str)):
        text = value if isinstance(value, str) else _as_text(value, where)
        if len(text) > LONGEST:
            raise ModelError(describe(f"stiffness has {len(text)} characters", where=where, allowed=f"{LONGEST}"))
        at_rest = float(ca.evalf(stiffness_at(text, ca.SX(0), where)))
        if not (math.isfinite(at_rest) and at_rest >= 0):
            found = f"stiffness {short(text)} is {at_rest} at the deflection 0"
            raise ModelError(describe(found, where=where, allowed="a finite number, 0 or more"))
        return text
    return number(value, where, "stiffness", least=0, most=LARGEST)


def stiffness_at(stiffness: float | str | ca.SX, x: ca.SX, where: str = "spring") -> Any:
    """Return the stiffness at a deflection x: a number as it is, a law as a CasADi expression.

    Example:
        >>> float(ca.evalf(stiffness_at("100 + 500 * x**2", ca.SX(0.1))))
        105.0
    """
    if not isinstance(stiffness, str):
        return stiffness
    try:
        return _evaluate(ast.parse(stiffness.strip(), mode="eval").body, x)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, ZeroDivisionError, TypeError) as error:
        found = f"stiffness {short(stiffness)} cannot be read ({error})"
        raise ModelError(describe(found, where=where, allowed=_ALLOWED)) from None


def _evaluate(node: ast.expr, x: ca.SX) -> Any:
    """Return the value of a syntax tree at x; any syntax that is not listed here is an error."""
    match node:
        case ast.Constant(value=float() | int() as constant) if not isinstance(constant, bool):
            return ca.SX(float(constant))
        case ast.Name(id="x"):
            return x
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, x)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left, x), _evaluate(right, x))
        case ast.Call(func=ast.Name(id=name), args=[one], keywords=[]) if name in _UNARY:
            return _UNARY[name](_evaluate(one, x))
        case ast.Call(func=ast.Name(id=name), args=[one, two], keywords=[]) if name in _BINARY:
            return _BINARY[name](_evaluate(one, x), _evaluate(two, x))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed")


def _as_text(expression: ca.SX, where: str) -> str:
    """Return a CasADi expression of one symbol as text in x."""
    symbols = ca.symvar(expression)
    if expression.shape != (1, 1) or len(symbols) > 1:
        found = f"stiffness has the shape {expression.shape} and the symbols {symbols}"
        raise ModelError(describe(found, where=where, allowed="one expression of one symbol, the deflection"))
    function = ca.Function("law", symbols or [ca.SX.sym("x")], [expression])
    texts: dict[int, str] = {}
    result = "0"
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        arguments = [texts.get(i, "") for i in function.instruction_input(k)]
        if code == ca.OP_OUTPUT:
            result = arguments[0]
            continue
        if code == ca.OP_CONST:
            text = repr(float(function.instruction_constant(k))).removesuffix(".0")
        elif code == ca.OP_INPUT:
            text = "x"
        elif code in _TEXTS:
            text = _TEXTS[code].format(*arguments)
        else:
            raise ModelError(describe(f"stiffness {expression} has another operation", where=where, allowed=_ALLOWED))
        texts[function.instruction_output(k)[0]] = text
        if len(text) > LONGEST:
            raise ModelError(describe("stiffness is too long", where=where, allowed=f"{LONGEST} characters"))
    return result


def energy_at(stiffness: float | str | ca.SX, x: ca.SX) -> Any:
    """Return the energy of a spring at the deflection x: the integral of K(s) s from 0 to x.

    A law is integrated numerically: exact where K is a polynomial up to degree 10; error about 1e-4 where K has kinks.

    Example:
        >>> round(float(ca.evalf(energy_at("12 * x**2", ca.SX(2.0)))), 9)  # 12 * 2**4 / 4
        48.0
    """
    if not isinstance(stiffness, str):
        return 0.5 * stiffness * x**2
    # Gauss-Legendre with 6 nodes in each panel integrates K(s) s exactly for K up to degree 10; panels are for kinks.
    nodes, weights = np.polynomial.legendre.leggauss(6)
    points = (np.arange(PANELS)[:, None] + (nodes + 1) / 2) / PANELS
    weights = np.broadcast_to(weights / 2 / PANELS, points.shape)
    pairs = zip(points.ravel().tolist(), weights.ravel().tolist(), strict=True)
    return x**2 * sum(w * s * stiffness_at(stiffness, s * x) for s, w in pairs)
