"""asin, acos, atan and atan2 without branches."""

from torsor.compiler.llvm.coefficients import ASIN, ATAN, HALF_PI, QUARTER_PI
from torsor.compiler.llvm.powers import scale_of
from torsor.compiler.llvm.vectors import Mask, Number, fma, polynomial, quick_two_sum, quotient, two_sum, where

_INF = float("inf")
_TAN_EIGHTH = 0.41421356237309503  # tan(pi / 8)
_FAR = 2.0**100  # atan of larger numbers is pi/2 in both types


def _arcs(x: Number) -> tuple[Mask, Number, Number]:
    """Return where |x| > 1/2, and the sine of an angle with that angle's rest: asin |x|, or half of acos |x| there."""
    size = abs(x)
    outside = size > 0.5
    square = where(outside, fma(size, -0.5, 0.5), x * x)
    sine = where(outside, square.sqrt(), size)
    return outside, sine, sine * square * polynomial(square, ASIN[x.dtype])


def asin(x: Number) -> Number:
    """Return the inverse sine: a polynomial to 1/2, and pi/2 less twice that of sqrt((1 - x) / 2) beyond."""
    outside, sine, rest = _arcs(x)
    half_pi, less = HALF_PI[x.dtype]
    total, error = quick_two_sum(half_pi, sine * -2.0)
    value = where(outside, total + (error + fma(rest, -2.0, less)), sine + rest)
    return value.with_sign_of(x)


def acos(x: Number) -> Number:
    """Return the inverse cosine: pi/2 less the inverse sine to 1/2, twice that of sqrt((1 - |x|) / 2) beyond."""
    outside, sine, rest = _arcs(x)
    half_pi, less = HALF_PI[x.dtype]
    negative = x < 0.0
    # base - sign (sine + rest), where base is 0, pi/2 or pi.
    base = where(outside, where(negative, 2.0 * half_pi, 0.0), half_pi)
    base_low = where(outside, where(negative, 2.0 * less, 0.0), less)
    minus = negative ^ ~outside
    factor = where(outside, 2.0, 1.0).flipped(minus)
    total, error = quick_two_sum(base, sine * factor)
    return total + (error + fma(rest, factor, base_low))


def _angle(y: Number, x: Number, mirrored: Mask | None = None) -> Number:
    """Return the angle of the point (x, y), neither of which is negative; where ``mirrored``, pi less that angle.

    The angle is k pi/4 plus or minus the inverse tangent t of a quotient that is at most tan(pi/8).
    """
    steep = y > x
    low, high = where(steep, x, y), where(steep, y, x)
    middle = low > high * _TAN_EIGHTH
    over, over_rest = quick_two_sum(high, where(middle, low, 0.0))
    difference, lost = two_sum(low, -high)
    over_by, lost = where(middle, difference, low), where(middle, lost, 0.0)
    t, t_low = quotient(over_by, lost, over, over_rest)
    z = t * t
    rest = fma(t * z, polynomial(z, ATAN[x.dtype]), t_low)
    k = where(middle, 1.0, 0.0)
    k = where(steep, 2.0 - k, k)
    backwards = steep
    if mirrored is not None:
        k = where(mirrored, 4.0 - k, k)
        backwards = backwards ^ mirrored
    quarter, less = QUARTER_PI[x.dtype]
    base = k * quarter
    base_low = fma(k, less, fma(k, quarter, -base))
    total, error = quick_two_sum(base, t.flipped(backwards))
    return total + (error + (base_low + rest.flipped(backwards)))


def atan(x: Number) -> Number:
    """Return the inverse tangent."""
    return _angle(abs(x).at_most(_FAR), x.like(1.0)).with_sign_of(x)


def atan2(y: Number, x: Number) -> Number:
    """Return the angle of the point (x, y), from -pi to pi, with the signs of zeros as in C."""
    a, b = abs(y), abs(x)
    down, _ = scale_of(where(a < b, b, a))
    # Two infinities make 45 degrees, one makes 0 or 90; two zeros make 0.
    infinite = a.equals(_INF) | b.equals(_INF)
    first = where(infinite, where(a.equals(_INF), 1.0, 0.0), a * down)
    second = where(infinite, where(b.equals(_INF), 1.0, 0.0), b * down)
    second = where(a.equals(0.0) & b.equals(0.0), 1.0, second)
    leftwards = x.like(1.0).with_sign_of(x) < 0.0
    value = _angle(first, second, leftwards).with_sign_of(y)
    return where(x.unordered(y), float("nan"), value)
