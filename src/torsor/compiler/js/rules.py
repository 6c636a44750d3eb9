"""JavaScript expressions: literals, identifiers, and one rule for each CasADi operation.

A rule is a function of the texts of the arguments (a name, an element of an array or a literal, so that none needs
brackets); it returns an expression. The CasADi virtual machine defines every operation. ECMAScript promises the bits of
+ - * / %, comparisons, floor, ceil, abs, sqrt and fround; the other functions of ``Math`` are approximations of the
engine's own, and ``js/helpers.py`` has what ``Math`` lacks.
"""

import math
import re
from collections.abc import Callable, Iterable

import casadi as ca
import numpy as np

from torsor.compiler.source.kernel import SCRATCH
from torsor.compiler.source.names import Names, camel

Rule = Callable[..., str]


class JsScalar:
    """The numbers of an exported module: float64, or float32 by rounding each result.

    An operation + - * / or sqrt of two float32 numbers in float64, rounded to float32, is the operation in float32.

    Example:
        >>> JsScalar("float64").literal(0.1), JsScalar("float32").literal(0.1), JsScalar("float64").literal(-0.0)
        ('0.1', '0.10000000149011612', '(-0)')
        >>> JsScalar("float32").expression(ca.OP_ADD, "a", "b")
        'Math.fround(a + b)'
    """

    local = "let "

    def __init__(self, dtype: str):
        self.double = dtype == "float64"
        self.array = "Float64Array" if self.double else "Float32Array"

    def literal(self, number: float) -> str:
        """Return the text of a number, in brackets if it has a sign.

        Python writes at most 17 digits, the fewest that are read back to the same number; ECMAScript reads up to 20
        exactly.
        """
        if not self.double:
            with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
                number = float(np.float32(number))
        if math.copysign(1.0, number) < 0:
            return f"(-{self.literal(-number)})"
        if math.isnan(number):
            return "NaN"
        return "Infinity" if math.isinf(number) else repr(number).removesuffix(".0")

    def expression(self, code: int, *arguments: str) -> str:
        """Return an operation, by its rule."""
        text = JS_RULES[code](*arguments)
        return text if self.double else f"Math.fround({text})"

    def element(self, array: str, entry: int) -> str:
        """Return the element of an array; arguments are read from an offset on, the scratch array is not."""
        if array == SCRATCH:
            return f"{array}[{entry}]"
        return f"{array}[{array}$ + {entry}]" if entry else f"{array}[{array}$]"


def _infix(operator: str) -> Rule:
    return lambda a, b: f"{a} {operator} {b}"


def _truth(operator: str) -> Rule:
    return lambda a, b: f"{a} {operator} {b} ? 1 : 0"


def _logic(operator: str) -> Rule:
    # NaN counts as true, since it is not equal to 0.
    return lambda a, b: f"{a} !== 0 {operator} {b} !== 0 ? 1 : 0"


def _library(name: str) -> Rule:
    return lambda *arguments: f"Math.{name}({', '.join(arguments)})"


def _helper(name: str) -> Rule:
    return lambda *arguments: f"torsor${name}({', '.join(arguments)})"


JS_RULES: dict[int, Rule] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_LIFT: lambda a, b: a,
    ca.OP_ADD: _infix("+"),
    ca.OP_SUB: _infix("-"),
    ca.OP_MUL: _infix("*"),
    ca.OP_DIV: _infix("/"),
    ca.OP_NEG: lambda a: f"-{a}",
    ca.OP_SQ: lambda a: f"{a} * {a}",
    ca.OP_TWICE: lambda a: f"2 * {a}",
    ca.OP_INV: lambda a: f"1 / {a}",
    ca.OP_SIGN: _library("sign"),
    ca.OP_LT: _truth("<"),
    ca.OP_LE: _truth("<="),
    ca.OP_EQ: _truth("==="),
    ca.OP_NE: _truth("!=="),
    ca.OP_NOT: lambda a: f"{a} === 0 ? 1 : 0",
    ca.OP_AND: _logic("&&"),
    ca.OP_OR: _logic("||"),
    ca.OP_IF_ELSE_ZERO: lambda a, b: f"{a} === 0 ? 0 : {b}",
    ca.OP_POW: _helper("pow"),
    ca.OP_CONSTPOW: _helper("pow"),
    ca.OP_SQRT: _library("sqrt"),
    ca.OP_FABS: _library("abs"),
    ca.OP_FLOOR: _library("floor"),
    ca.OP_CEIL: _library("ceil"),
    ca.OP_COPYSIGN: _helper("copysign"),
    # The first of equal numbers, as in the other targets; of 0 and -0 CasADi returns what the C library returns.
    ca.OP_FMIN: lambda a, b: f"{b} < {a} || {a} !== {a} ? {b} : {a}",
    ca.OP_FMAX: lambda a, b: f"{b} > {a} || {a} !== {a} ? {b} : {a}",
    ca.OP_FMOD: _infix("%"),
    ca.OP_REMAINDER: _helper("remainder"),
    ca.OP_HYPOT: _library("hypot"),
    ca.OP_EXP: _library("exp"),
    ca.OP_EXPM1: _library("expm1"),
    ca.OP_LOG: _library("log"),
    ca.OP_LOG1P: _library("log1p"),
    ca.OP_SIN: _library("sin"),
    ca.OP_COS: _library("cos"),
    ca.OP_TAN: _library("tan"),
    ca.OP_ASIN: _library("asin"),
    ca.OP_ACOS: _library("acos"),
    ca.OP_ATAN: _library("atan"),
    ca.OP_ATAN2: _library("atan2"),
    ca.OP_SINH: _library("sinh"),
    ca.OP_COSH: _library("cosh"),
    ca.OP_TANH: _library("tanh"),
    ca.OP_ASINH: _library("asinh"),
    ca.OP_ACOSH: _library("acosh"),
    ca.OP_ATANH: _library("atanh"),
    ca.OP_ERF: _helper("erf"),
    ca.OP_ERFINV: _helper("erfinv"),
}
"""The rule of each CasADi operation."""


# Keywords, names that modules may not bind, globals that the module uses, and properties that every object has. A
# module that exports ``then`` would be called by ``await import(...)``.
_WORDS = """
arguments as async await break case catch class const continue debugger default delete do else enum eval export extends
false finally for from function get if implements import in instanceof interface let new null of package private
protected public return set static super switch this throw true try typeof undefined var void while with yield
Array ArrayBuffer Float32Array Float64Array Infinity JSON Math NaN Number Object RangeError String TypeError globalThis
constructor hasOwnProperty isPrototypeOf propertyIsEnumerable prototype then toLocaleString toString valueOf
functions out robot s
"""
_RESERVED = frozenset(_WORDS.split())


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or re.fullmatch(r"w\d+", name) is not None


def js_names(taken: Iterable[str] = ()) -> Names:
    """Return a maker of unique identifiers in camel case that are not reserved. No name has a dollar sign.

    Example:
        >>> names = js_names()
        >>> names.new("mass_matrix"), names.new("mass matrix"), names.new("delete"), names.new("2-x")
        ('massMatrix', 'massMatrix_2', 'delete_', 'x2X')
    """
    return Names(camel, _is_reserved, "_", taken)
