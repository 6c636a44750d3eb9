"""exp, expm1, sinh, cosh and tanh without branches.

x = n log 2 + r with a whole n and |r| <= log(2) / 2 (Cody and Waite), and exp x = 2^n (1 + r + r^2 q(r)) with a
polynomial q. Sums are kept as two numbers where digits would cancel, so that little more than the last rounding shows.
"""

from typing import NamedTuple

from torsor.compiler.llvm.coefficients import EXP, LN2, SINH
from torsor.compiler.llvm.vectors import Number, Whole, fma, polynomial, quick_two_sum, quotient, two_sum, where

# Beyond these arguments exp overflows or rounds to 0.
_LARGEST = {"float64": 710.0, "float32": 89.0}
_LOWEST = {"float64": -746.0, "float32": -104.0}
# From this exponent on, 2^-n is far below the last digit of 1.
_NEGLIGIBLE = 60.0
# expm1(-x), and tanh(x / 2), round to -1 and 1 from here.
_EXP_SATURATION = {"float64": 40.0, "float32": 20.0}


class Reduced(NamedTuple):
    """An exponential 2^n (1 + r + s): ``n`` is whole, ``bits`` are those of ``scale``, r is the larger part."""

    n: Number
    bits: Whole
    r: Number
    s: Number


def reduce(x: Number, low: Number | None = None) -> Reduced:
    """Return exp(x + low), for x within the limits of ``clamp``."""
    n, bits, exact, rest = _multiple_of_log_2(x)
    if low is None:
        r = fma(n, -rest, exact)
        left = fma(n, -rest, exact - r)
    else:
        r, left = quick_two_sum(exact, fma(n, -rest, low))
    *terms, half = EXP[x.dtype]
    return Reduced(n, bits, r, fma(r * half, r, fma(r * r * r, polynomial(r, terms), left)))


def _multiple_of_log_2(x: Number) -> tuple[Number, Whole, Number, float]:
    """Return (n, its bits, x - n a, b) with the nearest multiple n (a + b) of log 2."""
    high, rest = LN2[x.dtype]
    # The last bits of the sum are n and twice the bias, which ``scale`` needs.
    rounder = x.emitter.scalar.rounder + 2 * x.format.bias
    turned = fma(x, 1.4426950408889634, rounder)
    n = turned - rounder
    return n, turned.bits(), fma(n, -high, x), rest  # exact: log 2 has no more digits than x after its point


def scale(x: Number, bits: Whole) -> Number:
    """Return x 2^n: in two steps, each with a power of two of the type. ``bits`` ends with n and twice the bias."""
    half, digits = bits >> 1, x.format.digits
    return x * (half << digits).as_bits() * ((bits - half) << digits).as_bits()


def exp_of_sum(x: Number, low: Number) -> Number:
    """Return exp(x + low), infinite or 0 beyond the range of the type, for x within the limits of ``clamp``."""
    e = reduce(x, low)
    total, error = quick_two_sum(1.0, e.r)
    return scale(total + (error + e.s), e.bits)


def exp_within(x: Number) -> Number:
    """Return e^x for x within the limits of ``clamp``."""
    n, bits, exact, rest = _multiple_of_log_2(x)
    r = fma(n, -rest, exact)
    return scale(1.0 + fma(r * r, polynomial(r, EXP[x.dtype]), r), bits)


def clamp(x: Number) -> Number:
    """Return x within limits beyond which exp is infinite or 0."""
    return x.between(_LOWEST[x.dtype], _LARGEST[x.dtype])


def exp(x: Number) -> Number:
    """Return e^x."""
    return exp_within(clamp(x))


def expm1(x: Number) -> Number:
    """Return e^x - 1 = 2^n (1 - 2^-n + r + s), accurate near 0."""
    n, bits, r, s = reduce(x.between(-_EXP_SATURATION[x.dtype], _LARGEST[x.dtype]))
    power = (-n.at_most(_NEGLIGIBLE)).power_of_two()
    base = 1.0 - power
    lost = (1.0 - base) - power
    total, error = two_sum(base, r)
    return scale(total + (error + (s + lost)), bits).with_sign_of(x)


def tanh(x: Number) -> Number:
    """Return the hyperbolic tangent: -E / (E + 2) with E = expm1(-2 |x|) as a sum of two numbers."""
    n, _, r, s = reduce((abs(x) * -2.0).at_least(-_EXP_SATURATION[x.dtype]))
    power = n.power_of_two()
    base, lost = quick_two_sum(-1.0, power)
    high, error = quick_two_sum(base, power * r)
    high, low = quick_two_sum(high, fma(power, s, error + lost))
    over, lost = quick_two_sum(2.0, high)
    first, second = quotient(high, low, over, lost + low)
    return (first + second).with_sign_of(x)


def _both(x: Number) -> tuple[Whole, Number, Number, Number, Number]:
    """Return (bits of n - 1, a, b, c, d) with e^|x| = 2^n (a + b) and e^-|x| = 2^n (c + d)."""
    n, bits, r, s = reduce(abs(x).at_most(_LARGEST[x.dtype] + 1.0))
    high, error = quick_two_sum(1.0, r)
    high, low = quick_two_sum(high, error + s)
    power = (n.at_most(_NEGLIGIBLE) * -2.0).power_of_two()
    return bits - 1, high, low, *quotient(power, x.like(0.0), high, low)


def sinh(x: Number) -> Number:
    """Return the hyperbolic sine: a polynomial to 1, and half of e^x - e^-x beyond."""
    bits, a, b, c, d = _both(x)
    total, error = quick_two_sum(a, -c)
    large = scale(total + ((error + b) - d), bits)
    square = x * x
    small = fma(x * square, polynomial(square, SINH[x.dtype]), x)
    return where(abs(x) < 1.0, small, large.with_sign_of(x))


def cosh(x: Number) -> Number:
    """Return the hyperbolic cosine, half of e^x + e^-x."""
    bits, a, b, c, d = _both(x)
    total, error = two_sum(a, c)
    return scale(total + ((error + b) + d), bits)
