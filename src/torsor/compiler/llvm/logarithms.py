"""log, log1p, asinh, acosh and atanh without branches.

x = 2^k m with m between the square roots of 1/2 and 2, f = m - 1, s = f / (2 + f), and log m = 2 atanh s with a
polynomial in s^2. The inverse hyperbolic functions are logarithms of sums and quotients, which are kept as two numbers:
near 1 the second one holds the digits that the result is made of.
"""

from torsor.compiler.llvm.coefficients import LN2_SHORT, LOG, TWO_THIRDS
from torsor.compiler.llvm.vectors import (
    Mask,
    Number,
    fma,
    polynomial,
    quick_two_sum,
    quotient,
    two_product,
    two_sum,
    where,
)

# Beyond this x^2 + 1 is x^2, and its square root x.
_HUGE = {"float64": 2.0**60, "float32": 2.0**30}
# Below this asinh x and atanh x round to x.
_TINY = {"float64": 2.0**-28, "float32": 2.0**-13}


def split(x: Number, scaled: Mask | None = None) -> tuple[Number, Number]:
    """Return (k, m) with x = 2^k m for positive normal numbers, and for those that ``normal`` has ``scaled``."""
    digits, bias = x.format.digits, x.format.bias
    root = x.format.bits(0.5**0.5)
    shifted = x.bits() + ((bias << digits) - root)
    m = ((shifted & ((1 << digits) - 1)) + root).as_bits()
    # The exponent, with its bias, as the last digits of a number near 2^digits: conversions of integers are slow.
    near = 2.0**digits
    surplus = near + bias
    k = ((shifted >> digits) | x.format.bits(near)).as_bits()
    return k - (surplus if scaled is None else where(scaled, surplus + _by(x), surplus)), m


def _by(x: Number) -> float:
    """Return the exponent by which subnormal numbers are scaled."""
    return x.format.digits + 2.0


def normal(x: Number) -> tuple[Number, Mask]:
    """Return subnormal numbers scaled to normal ones, and which they were."""
    few = x < x.format.smallest
    return where(few, x * 2.0 ** _by(x), x), few


def log_of_sum(x: Number, low: Number | None = None, more: Number | None = None) -> Number:
    """Return log(x + low) + more log 2 for positive normal x and much smaller ``low``."""
    k, m = split(x)
    return _log(k if more is None else k + more, m, None if low is None else low * _power_below(k))


def _power_below(k: Number) -> Number:
    return (-k.at_most(k.format.bias - 1.0)).power_of_two()


def _log(k: Number, m: Number, low: Number | None = None) -> Number:
    """Return k log 2 + log(m + low)."""
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    half_square = (f * 0.5) * f
    series = z * fma(z, polynomial(z, LOG[m.dtype]), TWO_THIRDS[m.dtype][0])
    small = fma(s, half_square + series, -half_square)
    if low is not None:
        # log(m + c) - log m = c / m, and 1 / m is (1 - s)^2 to 3 percent: c is less than the last digit of m.
        rest = 1.0 - s
        small = fma(low, rest * rest, small)
    high, less = LN2_SHORT[m.dtype]
    total, error = quick_two_sum(k * high, f)
    return total + (error + fma(k, less, small))


def _at_edges(x: Number, inside: Number, zero: float = 0.0) -> Number:
    """Return what is given for positive numbers, and the limits: -inf at ``zero``, inf at inf, NaN below ``zero``."""
    outside = where(x < zero, float("nan"), where(x.equals(zero), -float("inf"), x))
    return where((x > zero) & (x < float("inf")), inside, outside)


def log(x: Number) -> Number:
    """Return the natural logarithm."""
    scaled, few = normal(x)
    return _at_edges(x, _log(*split(scaled, few)))


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
