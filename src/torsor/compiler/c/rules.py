"""C99 expressions: literals, identifiers, and one rule for each CasADi operation.

A rule is a function of the ``CScalar`` and the texts of the arguments (a name, an element of an array or a literal, so
that none needs brackets); it returns an expression. The CasADi virtual machine defines every operation.
"""

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal

import casadi as ca
import numpy as np

from torsor.compiler.c.sines import sine_function
from torsor.compiler.source import erfinv
from torsor.compiler.source.names import Names, words

# Numbers with an exact decimal form of at most this many characters are written so, all others in base 16.
_FEW_DIGITS = 12


class CScalar:
    """A floating-point type of C: its name, its literals, and the functions of libm for it.

    Example:
        >>> CScalar("float64").literal(0.25), CScalar("float32").literal(0.1), CScalar("float32").call("sin", "x")
        ('0.25', '0x1.99999ap-4f', 'sinf(x)')
    """

    def __init__(self, dtype: str):
        self.double = dtype == "float64"
        self.name, self.suffix = ("double", "") if self.double else ("float", "f")
        self.local = f"{self.name} "

    def literal(self, number: float) -> str:
        """Return the text of a number, in brackets if it has a sign.

        C99 guarantees that a number in base 16 is read exactly; a decimal number may be rounded to a neighbour.
        """
        if not self.double:
            with np.errstate(over="ignore"):  # numbers too large for a float become infinite
                number = float(np.float32(number))
        if math.copysign(1.0, number) < 0:
            return f"(-{self.literal(-number)})"
        if math.isnan(number):
            return "NAN"
        if math.isinf(number):
            return "INFINITY"
        digits = repr(number)
        exact = len(digits) <= _FEW_DIGITS and Decimal(digits) == Decimal(number)
        return (digits if exact else _base_16(number)) + self.suffix

    def call(self, function: str, *arguments: str) -> str:
        """Return the call of a function of libm."""
        return f"{function}{self.suffix}({', '.join(arguments)})"

    def expression(self, code: int, *arguments: str) -> str:
        """Return an operation, by its rule."""
        return C_RULES[code](self, *arguments)

    def element(self, array: str, entry: int) -> str:
        """Return the element of an array."""
        return f"{array}[{entry}]"


def _base_16(number: float) -> str:
    """Return a positive number in base 16, without zeros at its end."""
    digits, exponent = number.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


Rule = Callable[..., str]


def _infix(operator: str) -> Rule:
    return lambda t, a, b: f"{a} {operator} {b}"


def _library(name: str) -> Rule:
    return lambda t, *arguments: t.call(name, *arguments)


def _logic(operator: str) -> Rule:
    # NaN counts as true, since it is not equal to 0.
    return lambda t, a, b: f"{a} != {t.literal(0.0)} {operator} {b} != {t.literal(0.0)}"


def _sign(t: CScalar, a: str) -> str:
    # Zeros and NaN are returned unchanged.
    zero, one = t.literal(0.0), t.literal(1.0)
    return f"{a} < {zero} ? -{one} : ({a} > {zero} ? {one} : {a})"


C_RULES: dict[int, Rule] = {
    ca.OP_ASSIGN: lambda t, a: a,
    ca.OP_LIFT: lambda t, a, b: a,
    ca.OP_ADD: _infix("+"),
    ca.OP_SUB: _infix("-"),
    ca.OP_MUL: _infix("*"),
    ca.OP_DIV: _infix("/"),
    ca.OP_NEG: lambda t, a: f"-{a}",
    ca.OP_SQ: lambda t, a: f"{a} * {a}",
    ca.OP_TWICE: lambda t, a: f"{t.literal(2.0)} * {a}",
    ca.OP_INV: lambda t, a: f"{t.literal(1.0)} / {a}",
    ca.OP_SIGN: _sign,
    ca.OP_LT: _infix("<"),
    ca.OP_LE: _infix("<="),
    ca.OP_EQ: _infix("=="),
    ca.OP_NE: _infix("!="),
    ca.OP_NOT: lambda t, a: f"{a} == {t.literal(0.0)}",
    ca.OP_AND: _logic("&&"),
    ca.OP_OR: _logic("||"),
    ca.OP_IF_ELSE_ZERO: lambda t, a, b: f"{a} == {t.literal(0.0)} ? {t.literal(0.0)} : {b}",
    ca.OP_POW: _library("pow"),
    ca.OP_CONSTPOW: _library("pow"),
    ca.OP_SQRT: _library("sqrt"),
    ca.OP_FABS: _library("fabs"),
    ca.OP_FLOOR: _library("floor"),
    ca.OP_CEIL: _library("ceil"),
    ca.OP_COPYSIGN: _library("copysign"),
    # The first of equal numbers, as in the LLVM rules; of 0.0 and -0.0 CasADi returns what the C library returns.
    ca.OP_FMIN: lambda t, a, b: f"{b} < {a} || {a} != {a} ? {b} : {a}",
    ca.OP_FMAX: lambda t, a, b: f"{b} > {a} || {a} != {a} ? {b} : {a}",
    ca.OP_FMOD: _library("fmod"),
    ca.OP_REMAINDER: _library("remainder"),
    ca.OP_HYPOT: _library("hypot"),
    ca.OP_EXP: _library("exp"),
    ca.OP_EXPM1: _library("expm1"),
    ca.OP_LOG: _library("log"),
    ca.OP_LOG1P: _library("log1p"),
    ca.OP_SIN: lambda t, a: t.call("sin", a) if t.double else f"torsor_sine({a}, 0)",
    ca.OP_COS: lambda t, a: t.call("cos", a) if t.double else f"torsor_sine({a}, 1)",
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
    ca.OP_ERF: _library("erf"),
    ca.OP_ERFINV: lambda t, a: f"torsor_erfinv({a})",
}
"""The rule of each CasADi operation."""


def _erfinv(t: CScalar) -> str:
    """Return the C function for the inverse of erf as CasADi computes it: rational, then two Newton steps."""
    real, n = t.name, t.literal
    tail, middle = erfinv.tail(n), erfinv.middle(n)
    one, two, slope = n(1.0), n(2.0), n(erfinv.SLOPE)
    step = f"y = y - ({t.call('erf', 'y')} - x) / ({slope} * {t.call('exp', '-y * y')});"
    return f"""/* The inverse of erf. */
static {real} torsor_erfinv({real} x)
{{
    {real} y, z;
    if (x >= {one}) return x == {one} ? INFINITY : NAN;
    if (x <= -{one}) return x == -{one} ? -INFINITY : NAN;
    if (x < -{n(erfinv.BORDER)}) {{
        z = {t.call("sqrt", f"-{t.call('log', f'({one} + x) / {two}')}")};
        return -{tail};
    }}
    if (x < {n(erfinv.BORDER)}) {{
        z = x * x;
        y = x * {middle};
    }} else {{
        z = {t.call("sqrt", f"-{t.call('log', f'({one} - x) / {two}')}")};
        y = {tail};
    }}
    {step}
    {step}
    return y;
}}
"""


def _sine(t: CScalar) -> str:
    return "" if t.double else sine_function(t.literal)


HELPERS: dict[int, Callable[[CScalar], str]] = {ca.OP_ERFINV: _erfinv, ca.OP_SIN: _sine, ca.OP_COS: _sine}
"""The C functions that libm does not have, or has slower ones for, by the operation that calls them."""


# Reserved names: keywords of C and C++, and names of the C library, of compilers and of the exported source.
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma
fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma
trunc cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin
csinh csqrt ctan ctanh j0 j1 jn y0 y1 yn drem exp10 gamma pow10 scalb significand sincos
"""
_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_WORDS = """
alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return
co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export
false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename
typeof using virtual wchar_t xor xor_eq main abort abs alloca assert atof bcmp bcopy bzero calloc clock div
errno exit ffs free gets index isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace
isupper isxdigit labs ldiv llabs malloc memchr memcmp memcpy memmove memset printf putchar puts raise rand
realloc remove rename rindex scanf signal snprintf sprintf sscanf strcat strchr strcmp strcpy strlen strstr
system time tolower toupper unix linux vprintf fpclassify isfinite isgreater isinf isless isnan isnormal
isunordered signbit signgam EOF NULL NAN INFINITY HUGE_VAL I s torsor_erfinv torsor_sine TORSOR_PIECE
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_RESERVED = {*KEYWORDS, *_WORDS.split(), *(name + suffix for name in _MATH.split() for suffix in ("", "f", "l"))}


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or re.fullmatch(r"w\d+", name) is not None


def c_names(taken: Iterable[str] = ()) -> Names:
    """Return a maker of unique identifiers that are not reserved in C, C++ or the C library.

    Example:
        >>> names = c_names()
        >>> names.new("tau"), names.new("tau"), names.new("double"), names.new("2-x")
        ('tau', 'tau_2', 'double_', 'x2_x')
    """
    return Names(words, _is_reserved, "_", taken)
