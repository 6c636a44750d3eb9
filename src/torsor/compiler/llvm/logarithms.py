"""log, log1p, asinh, acosh and atanh without branches.

x = 2^k m with m between the square roots of 1/2 and 2, f = m - 1, s = f / (2 + f), and log m = 2 atanh s with a
polynomial in s^2. The inverse hyperbolic functions are logarithms of sums and quotients, which are kept as two numbers:
near 1 the second one holds the digits that the result is made of.
"""

from torsor.compiler.llvm.coefficients import LN2_SHORT, LOG, TWO_THIRDS
from torsor.compiler.llvm.vectors import Number, fma, polynomial, quick_two_sum, quotient, two_product, two_sum, where

# Beyond this x^2 + 1 is x^2, and its square root x.
_HUGE = {"float64": 2.0**60, "float32": 2.0**30}
# Below this asinh x and atanh x round to x.
_TINY = {"float64": 2.0**-28, "float32": 2.0**-13}


def split(x: Number) -> tuple[Number, Number]:
    """Return (k, m) with x = 2^k m for positive normal numbers."""
    digits, bias = x.format.digits, x.format.bias
    root = x.like(0.5**0.5).bits()
    shifted = (x.bits() - root) + (bias << digits)
    m = ((shifted & ((1 << digits) - 1)) + root).as_bits()
    # The exponent, with its bias, as the last digits of a number near 2^digits: conversions of integers are slow.
    near = 2.0**digits
    k = ((shifted >> digits) | x.like(near).bits()).as_bits() - (near + bias)
    return k, m


def normal(x: Number) -> tuple[Number, Number]:
    """Return a number scaled to a normal one, and the exponent to subtract from its own: 0 if it was normal."""
    few = x < x.format.smallest
    by = x.format.digits + 2.0
    return where(few, x * 2.0**by, x), where(few, by, 0.0)


def log_of_sum(x: Number, low: Number | None = None, more: Number | None = None) -> Number:
    """Return log(x + low) + more log 2 for positive normal x and much smaller ``low``."""
    k, m = split(x)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = (f * 0.5) * f
    series = z * fma(z, polynomial(z, LOG[x.dtype]), TWO_THIRDS[x.dtype][0])
    small = fma(s, half_square + series, -half_square)
    if low is not None:
        # log(m + c) - log m = c / m, and 1 / m is (1 - s)^2 to 3 percent: c is less than the last digit of m.
        rest = 1.0 - s
        scale = (-k.at_most(x.format.bias - 1.0)).power_of_two()
        small = fma(low * scale, rest * rest, small)
    k = k if more is None else k + more
    high, less = LN2_SHORT[x.dtype]
    total, error = quick_two_sum(k * high, f)
    return total + (error + fma(k, less, small))


def _at_edges(x: Number, inside: Number, zero: float = 0.0) -> Number:
    """Return what is given for positive numbers, and the limits: -inf at ``zero``, inf at inf, NaN below ``zero``."""
    value = where(x > zero, inside, where(x.equals(zero), -float("inf"), float("nan")))
    return where(x.equals(float("inf")), x, value)


def log(x: Number) -> Number:
    """Return the natural logarithm."""
    scaled, by = normal(x)
    return _at_edges(x, log_of_sum(scaled, None, -by))


def log1p(x: Number) -> Number:
    """Return log(1 + x), accurate near 0."""
    total, error = two_sum(x.like(1.0), x)
    return where(x.equals(0.0), x, _at_edges(x, log_of_sum(total, error), -1.0))


def _sqrt_of_sum(x: Number, low: Number) -> tuple[Number, Number]:
    """Return the square root of x + low as a sum of two numbers."""
    root = x.sqrt()
    rest = fma(-root, root, x) + low
    return root, rest / (root + root).at_least(x.format.smallest)


def asinh(x: Number) -> Number:
    """Return the inverse hyperbolic sine, log(x + sqrt(x^2 + 1)); for huge x log x + log 2."""
    size = abs(x)
    huge = size > _HUGE[x.dtype]
    a = where(huge, 1.0, size)
    square, error = two_product(a, a)
    total, lost = two_sum(square, x.like(1.0))
    root, rest = _sqrt_of_sum(total, lost + error)
    high, low = two_sum(root, a)
    high, low = where(huge, size, high), where(huge, 0.0, low + rest)
    value = log_of_sum(high, low, where(huge, 1.0, 0.0))
    value = where(size < float("inf"), value, size)
    return where(size < _TINY[x.dtype], x, value.with_sign_of(x))


def acosh(x: Number) -> Number:
    """Return the inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); for huge x log x + log 2."""
    huge = x > _HUGE[x.dtype]
    a = where(huge, 1.0, x)
    square, error = two_product(a, a)
    total, lost = two_sum(square, x.like(-1.0))
    total, lost = quick_two_sum(total, lost + error)
    root, rest = _sqrt_of_sum(total, lost)
    high, low = two_sum(a, root)
    high, low = where(huge, x, high), where(huge, 0.0, low + rest)
    value = log_of_sum(high, low, where(huge, 1.0, 0.0))
    return where(x < float("inf"), where(x >= 1.0, value, float("nan")), x)


def atanh(x: Number) -> Number:
    """Return the inverse hyperbolic tangent, half of log((1 + x) / (1 - x))."""
    size = abs(x)
    over, under = quick_two_sum(1.0, size), quick_two_sum(1.0, -size)
    high, low = quotient(*over, *under)
    value = log_of_sum(*quick_two_sum(high, low)) * 0.5
    edge = where(size.equals(1.0), float("inf"), float("nan"))
    return where(size < _TINY[x.dtype], x, where(size < 1.0, value, edge).with_sign_of(x))
