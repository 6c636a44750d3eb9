"""pow and hypot without branches.

x^y = exp(y log |x|). An error of the logarithm grows with the result's exponent, so log |x| is a sum of two numbers
with some twelve digits (in bits) more than the type has.
"""

from torsor.compiler.llvm.coefficients import LN2_SHORT, LOG, TWO_THIRDS
from torsor.compiler.llvm.exponentials import clamp, exp_of_sum
from torsor.compiler.llvm.logarithms import normal, split
from torsor.compiler.llvm.vectors import Number, fma, polynomial, quick_two_sum, quotient, two_product, where

_INF = float("inf")


def _accurate_log(x: Number) -> tuple[Number, Number]:
    """Return the logarithm of a positive finite number as a sum of two numbers."""
    k, m = split(*normal(x))
    f = m - 1.0
    over, lost = quick_two_sum(2.0, f)
    s, s_low = quotient(f, x.like(0.0), over, lost)
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    # log m = 2 s + s z (2/3 + z p(z))
    two_thirds, less = TWO_THIRDS[x.dtype]
    factor, factor_low = quick_two_sum(two_thirds, z * polynomial(z, LOG[x.dtype]))
    factor_low = factor_low + less
    cube, cube_low = two_product(s, z)
    cube_low = fma(s, z_low, fma(s_low, z, cube_low))
    term, term_low = two_product(cube, factor)
    term_low = fma(cube, factor_low, fma(cube_low, factor, term_low))
    high, rest = LN2_SHORT[x.dtype]
    total, error = quick_two_sum(k * high, s + s)
    total, lost = quick_two_sum(total, term)
    low = (error + lost) + (fma(k, rest, s_low + s_low) + term_low)
    return quick_two_sum(total, low)


def pow(x: Number, y: Number) -> Number:
    """Return x^y with all special cases of C's pow."""
    size = abs(x)
    high, low = _accurate_log(size)
    # Limits of log: -inf at 0 and inf at inf, so that the product has the right sign.
    high = where(size.equals(0.0), -_INF, where(size.equals(_INF), _INF, high))
    product = y * high
    ordinary = abs(product) < 2.0**12
    error = where(ordinary, fma(y, high, -product) + y * low, 0.0)
    one = size.equals(1.0)
    value = where(one, 1.0, exp_of_sum(clamp(product), error))
    whole = y.floor().equals(y)
    half = y * 0.5
    odd = whole & ~half.floor().equals(half)
    value = value.with_sign_of(where(odd, x, 1.0))
    value = where((x < 0.0) & ~whole & (size < _INF), float("nan"), value)
    value = where(x.unordered(y), float("nan"), value)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, value)


def scale_of(x: Number) -> tuple[Number, Number]:
    """Return a power of two that brings a positive number near 1 (subnormal ones less so), and its inverse."""
    digits, bias = x.format.digits, x.format.bias
    exponent = (((x.bits() >> digits) | x.like(2.0**digits).bits()).as_bits() - 2.0**digits).between(
        1.0, 2.0 * bias - 1.0
    )
    return (bias - exponent).power_of_two(), (exponent - bias).power_of_two()


def hypot(x: Number, y: Number) -> Number:
    """Return sqrt(x^2 + y^2) without overflow or underflow of the squares."""
    x, y = abs(x), abs(y)
    swap = x < y
    a, b = where(swap, y, x), where(swap, x, y)
    down, up = scale_of(a)
    a, b = a * down, b * down
    square, error = two_product(b, b)
    high, lost = two_product(a, a)
    total, rest = quick_two_sum(high, square)
    root = total.sqrt()
    left = fma(-root, root, total) + (rest + (lost + error))
    value = (root + left / (root + root).at_least(x.format.smallest)) * up
    return where(x.equals(_INF) | y.equals(_INF), _INF, value)
