"""Sines and cosines of single precision in C: a range reduction and two short polynomials, in place of sinf and cosf.

The sinf of newlib takes some 190 cycles of a Cortex-M4F, and would be three quarters of the inverse dynamics of an arm;
this takes 70. k quarter turns are taken off in three parts of pi/2 (Cody and Waite 1980), the first two so short that
their products with k are exact; polynomials of |r| <= pi/4 are left, those of the machine code. Results are the same on
every processor that does not fuse products. Larger angles, infinities and NaN are left to the C library.
"""

from collections.abc import Callable

from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.source.erfinv import polynomial

_LARGEST = 1000.0  # rad; k has 10 bits then
_HALF_PI = (1.5703125, 0.00048375129699707031, 7.549790126404332e-08)  # 8 bits, 11 bits, the rest


def sine_function(literal: Callable[[float], str]) -> str:
    """Return the C function ``torsor_sine``: sin(x + quarter pi/2), so that a quarter of 1 makes a cosine."""
    single, (first, second, third), largest = Scalar("float32"), map(literal, _HALF_PI), literal(_LARGEST)
    sine, cosine = polynomial(literal, *single.sin_terms), polynomial(literal, *single.cos_terms, -0.5, 1.0)
    half = literal(0.5)
    return f"""/* sin(x + quarter pi/2), quarter = 0 or 1 */
static float torsor_sine(float x, int quarter)
{{
    int k;
    float turns, r, z, y;
    if (!(x > -{largest} && x < {largest})) {{
        return quarter ? cosf(x) : sinf(x);
    }}
    k = (int)(x * {literal(0.6366197723675814)} + (x < {literal(0.0)} ? -{half} : {half}));
    turns = (float)k;
    r = ((x - turns * {first}) - turns * {second}) - turns * {third};
    z = r * r;
    k += quarter;
    y = k & 1 ? {cosine} : r + r * z * {sine};
    return k & 2 ? -y : y;
}}
"""
