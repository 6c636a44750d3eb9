"""JavaScript functions for operations that ``Math`` does not have, or defines differently from C and CasADi."""

from collections.abc import Callable, Iterable

import casadi as ca

from torsor.compiler.js.rules import JsScalar
from torsor.compiler.source import erfinv

_POW = """// Powers as in C: 1 to any power is 1, even to NaN, and so is -1 to an infinite power.
function torsor$pow(x, y) {
    return x === 1 || (x === -1 && (y === Infinity || y === -Infinity)) ? 1 : Math.pow(x, y);
}
"""

_COPYSIGN = """// The magnitude of x with the sign of y, which may be -0 or NaN: the sign of a NaN is its first bit.
const torsor$bits = new DataView(new ArrayBuffer(8));
function torsor$copysign(x, y) {
    const size = Math.abs(x);
    if (y === y) return y < 0 || (y === 0 && 1 / y < 0) ? -size : size;
    torsor$bits.setFloat64(0, y);
    return torsor$bits.getInt8(0) < 0 ? -size : size;
}
"""

# x - n y with n the integer nearest to x/y, the even one of two: exact. First the remainder by 2 y, which keeps the
# parity of n; then at most two subtractions. Halves of tiny numbers would be rounded, doubles of huge ones overflow.
_REMAINDER = """// The remainder of IEEE 754, of the division with the nearest quotient. Every step is exact.
function torsor$remainder(x, y) {
    const size = Math.abs(y), huge = size > 1e300;
    if (!(Math.abs(x) < Infinity) || size !== size || size === 0) return NaN;
    let rest = size <= Number.MAX_VALUE / 2 ? Math.abs(x) % (2 * size) : Math.abs(x);
    if (huge ? rest > size / 2 : 2 * rest > size) {
        rest -= size;
        if (huge ? rest >= size / 2 : 2 * rest >= size) rest -= size;
    }
    return x < 0 || (x === 0 && 1 / x < 0) ? -rest : rest;
}
"""

# Polynomials of least greatest error, the highest power first: erf(x)/x of x^2 in [0, 1], and erfc(x) exp(x^2) of
# (x - 2)/(x + 2) for x in [1, 6]. Beyond 6, erf is 1 to the last bit. Together within 2 ulp.
_NEAR = (
    *(5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07),
    *(1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379),
    *(0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 1.1283791670955126),
)
_FAR = (
    *(-2.22812957637235e-07, 4.146302183268488e-06, 1.859427387429402e-06, -1.4166339069117108e-05),
    *(-2.7640727821912852e-05, 2.7560352756678313e-05, 0.00017436477257256738, 4.355265359817883e-05),
    *(-0.0009819771114740715, -0.0008471431229415333, 0.006997461739200575, 0.0037328924016564484),
    *(-0.07897858101571269, 0.24165819424248763, -0.4271858474139585, 0.2553956763105057),
)


def _erf(t: JsScalar) -> str:
    near, far = erfinv.polynomial(t.literal, *_NEAR), erfinv.polynomial(t.literal, *_FAR)
    return f"""// The error function, within 2 ulp.
function torsor$erf(x) {{
    const size = Math.abs(x);
    if (size >= 6) return x > 0 ? 1 : -1;
    if (size < 1) {{
        const z = x * x;
        return x * {near};
    }}
    const z = (size - 2) / (size + 2);
    const value = 1 - Math.exp(-x * x) * {far};
    return x > 0 ? value : x < 0 ? -value : x;
}}
"""


def _erfinv(t: JsScalar) -> str:
    n = t.literal
    tail, middle = erfinv.tail(n), erfinv.middle(n)
    step = f"y -= (torsor$erf(y) - x) / ({n(erfinv.SLOPE)} * Math.exp(-y * y));"
    return f"""// The inverse of erf.
function torsor$erfinv(x) {{
    let y, z;
    if (x >= 1) return x === 1 ? Infinity : NaN;
    if (x <= -1) return x === -1 ? -Infinity : NaN;
    if (x < -{n(erfinv.BORDER)}) {{
        z = Math.sqrt(-Math.log((1 + x) / 2));
        return -{tail};
    }}
    if (x < {n(erfinv.BORDER)}) {{
        z = x * x;
        y = x * {middle};
    }} else {{
        z = Math.sqrt(-Math.log((1 - x) / 2));
        y = {tail};
    }}
    {step}
    {step}
    return y;
}}
"""


def _fixed(text: str) -> Callable[[JsScalar], str]:
    return lambda _: text


_POWERS = (ca.OP_POW, ca.OP_CONSTPOW)
# The operations that call a helper, in an order in which each is written before those that call it.
_HELPERS: list[tuple[tuple[int, ...], Callable[[JsScalar], str]]] = [
    (_POWERS, _fixed(_POW)),
    ((ca.OP_COPYSIGN,), _fixed(_COPYSIGN)),
    ((ca.OP_REMAINDER,), _fixed(_REMAINDER)),
    ((ca.OP_ERF, ca.OP_ERFINV), _erf),
    ((ca.OP_ERFINV,), _erfinv),
]


def helpers(codes: Iterable[int]) -> list[str]:
    """Return the functions that operations with these codes call. They compute in float64 for both types.

    Example:
        >>> [text.splitlines()[0] for text in helpers({ca.OP_MUL, ca.OP_ERFINV})]
        ['// The error function, within 2 ulp.', '// The inverse of erf.']
    """
    needed = set(codes)
    return [write(JsScalar("float64")) for operations, write in _HELPERS if needed & set(operations)]
