"""exp, expm1, sinh, cosh and tanh without branches.

x = n log 2 + r with a whole n and |r| <= log(2) / 2 (Cody and Waite), and exp x = 2^n (1 + r + r^2 q(r)) with a
polynomial q. Sums are kept as two numbers where digits would cancel, so that little more than the last rounding shows.
"""

from torsor.compiler.llvm.coefficients import EXP, LN2, SINH
from torsor.compiler.llvm.vectors import Number, fma, polynomial, quick_two_sum, quotient, two_sum, where

# Beyond these arguments exp overflows or rounds to 0.
_LARGEST = {"float64": 710.0, "float32": 89.0}
_LOWEST = {"float64": -746.0, "float32": -104.0}
# From this exponent on, 2^-n is far below the last digit of 1.
_NEGLIGIBLE = 60.0
# expm1(-x), and tanh(x / 2), round to -1 and 1 from here.
_SATURATED = {"float64": 40.0, "float32": 20.0}


def reduce(x: Number, low: Number | None = None) -> tuple[Number, Number, Number]:
    """Return (n, r, s) with exp(x + low) = 2^n (1 + r + s): n is whole, r the larger part."""
    high, rest = LN2[x.dtype]
    rounder = x.emitter.scalar.rounder
    n = fma(x, 1.4426950408889634, rounder) - rounder
    exact = fma(n, -high, x)  # exact, since log 2 has no more digits than x after its point
    if low is None:
        r = fma(n, -rest, exact)
        left = fma(n, -rest, exact - r)
    else:
        r, left = quick_two_sum(exact, fma(n, -rest, low))
    *terms, half = EXP[x.dtype]
    return n, r, fma(r * half, r, fma(r * r * r, polynomial(r, terms), left))


def scale(x: Number, n: Number) -> Number:
    """Return x 2^n for any n that an exponential has: in two steps, each with a power of two of the type."""
    half = (n * 0.5).rounded()
    return x * half.power_of_two() * (n - half).power_of_two()


def exp_of_sum(x: Number, low: Number | None = None) -> Number:
    """Return exp(x + low), infinite or 0 beyond the range of the type, for x within the limits of ``clamp``."""
    n, r, s = reduce(x, low)
    total, error = quick_two_sum(1.0, r)
    return scale(total + (error + s), n)


def clamp(x: Number) -> Number:
    """Return x within limits beyond which exp is infinite or 0."""
    return x.between(_LOWEST[x.dtype], _LARGEST[x.dtype])


def exp(x: Number) -> Number:
    """Return e^x."""
    return exp_of_sum(clamp(x))


def expm1(x: Number) -> Number:
    """Return e^x - 1 = 2^n (1 - 2^-n + r + s), accurate near 0."""
    n, r, s = reduce(x.between(-_SATURATED[x.dtype], _LARGEST[x.dtype]))
    power = (-n.at_most(_NEGLIGIBLE)).power_of_two()
    base = 1.0 - power
    lost = (1.0 - base) - power
    total, error = two_sum(base, r)
    return scale(total + (error + (s + lost)), n).with_sign_of(x)


def tanh(x: Number) -> Number:
    """Return the hyperbolic tangent: -E / (E + 2) with E = expm1(-2 |x|) as a sum of two numbers."""
    n, r, s = reduce((abs(x) * -2.0).at_least(-_SATURATED[x.dtype]))
    power = n.power_of_two()
    base, lost = quick_two_sum(-1.0, power)
    high, error = quick_two_sum(base, power * r)
    high, low = quick_two_sum(high, fma(power, s, error + lost))
    over, lost = quick_two_sum(2.0, high)
    first, second = quotient(high, low, over, lost + low)
    return (first + second).with_sign_of(x)


def _both(x: Number) -> tuple[Number, Number, Number, Number, Number]:
    """Return (n, a, b, c, d) with e^|x| = 2^n (a + b) and e^-|x| = 2^n (c + d)."""
    n, r, s = reduce(abs(x).at_most(_LARGEST[x.dtype] + 1.0))
    high, error = quick_two_sum(1.0, r)
    high, low = quick_two_sum(high, error + s)
    power = (n.at_most(_NEGLIGIBLE) * -2.0).power_of_two()
    return n, high, low, *quotient(power, x.like(0.0), high, low)


def sinh(x: Number) -> Number:
    """Return the hyperbolic sine: a polynomial to 1, and half of e^x - e^-x beyond."""
    n, a, b, c, d = _both(x)
    total, error = quick_two_sum(a, -c)
    large = scale(total + ((error + b) - d), n - 1.0)
    square = x * x
    small = fma(x * square, polynomial(square, SINH[x.dtype]), x)
    return where(abs(x) < 1.0, small, large.with_sign_of(x))


def cosh(x: Number) -> Number:
    """Return the hyperbolic cosine, half of e^x + e^-x."""
    n, a, b, c, d = _both(x)
    total, error = two_sum(a, c)
    return scale(total + ((error + b) + d), n - 1.0)
