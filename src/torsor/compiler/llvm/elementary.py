"""Rules of the elementary functions, which call branch-free vector functions instead of the C library."""

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca

from torsor.compiler.llvm import ir
from torsor.compiler.llvm.angles import reduce_huge, sine_and_cosine
from torsor.compiler.llvm.coefficients import COEFFICIENTS
from torsor.compiler.llvm.rules import RULES, Emitter, Rule
from torsor.compiler.llvm.vectors import (
    Mask,
    Number,
    Whole,
    each_lane,
    fma,
    polynomial,
    quick_two_sum,
    quotient,
    two_product,
    two_sum,
    where,
)

# Vector functions are emitted once per module and called wherever they are used.
#
# A program with thirty calls of tanh compiles as fast as one with a single call.


def call(function: Callable[..., Number], *arguments: Number) -> Number:
    """Return the result of a vector function, which is emitted on first use."""
    e, name = arguments[0].emitter, f"@vectors.{function.__name__}"
    if name not in e.functions:
        e.functions[name] = _definition(e, name, function, len(arguments))
    typed = ", ".join(f"{e.vector} {argument.name}" for argument in arguments)
    return Number(e, e.put(f"call {e.vector} {name}({typed})"))


def _definition(e: Emitter, name: str, function: Callable[..., Number], count: int) -> str:
    body = Emitter(e.scalar, e.width, e.constants, f"{name}.numbers")
    names = [f"%x{k}" for k in range(count)]
    result = function(*(Number(body, item) for item in names))
    arguments = ", ".join(f"{e.vector} {item}" for item in names)
    head = f"define internal {e.vector} {name}({arguments}) {{\nentry:"
    e.functions |= body.functions
    return "\n".join([body.numbers(), head, *body.lines, f"  ret {e.vector} {result.name}", "}"])


# exp, expm1, sinh, cosh and tanh without branches.
#
# x = n log 2 + r with an integer n and |r| <= log(2) / 2 (Cody and Waite), and exp x = 2^n (1 + r + r^2 q(r)) with a
# polynomial q. Sums are represented by two numbers where digits would cancel, so the error is only slightly larger than
# the last rounding.

# Beyond these arguments, exp overflows or rounds to 0.
_MAX_EXPONENT = {"float64": 710.0, "float32": 89.0}
_MIN_EXPONENT = {"float64": -746.0, "float32": -104.0}
# From this exponent upwards, 2^-n is far below the last digit of 1.
_NEGLIGIBLE_EXPONENT = 60.0
# From here upwards, expm1(-x) and tanh(x / 2) round to -1 and 1.
_EXP_SATURATION = {"float64": 40.0, "float32": 20.0}


class Reduced(NamedTuple):
    """An exponential 2^n (1 + r + s) with an integer ``n``; ``bits`` is for ``scale``, and r is larger than s."""

    n: Number
    bits: Whole
    r: Number
    s: Number


def reduce(x: Number, low: Number | None = None) -> Reduced:
    """Return exp(x + low) with a reduced argument, for x within the limits of ``clamp``."""
    n, bits, exact, rest = _multiple_of_log_2(x)
    if low is None:
        r = fma(n, -rest, exact)
        left = fma(n, -rest, exact - r)
    else:
        r, left = quick_two_sum(exact, fma(n, -rest, low))
    *terms, half = COEFFICIENTS["EXP"][x.dtype]
    return Reduced(n, bits, r, fma(r * half, r, fma(r * r * r, polynomial(r, terms), left)))


def _multiple_of_log_2(x: Number) -> tuple[Number, Whole, Number, float]:
    """Return (n, its bits, x - n a, b), where n (a + b) is the multiple of log 2 nearest to x."""
    high, rest = COEFFICIENTS["LN2"][x.dtype]
    # The last bits of the sum contain n and twice the bias, as required by ``scale``.
    rounder = x.scalar.rounder + 2 * x.scalar.bias
    turned = fma(x, 1.4426950408889634, rounder)
    n = turned - rounder
    return n, turned.bits(), fma(n, -high, x), rest  # exact, because log 2 has no more fractional digits than x


def scale(x: Number, bits: Whole) -> Number:
    """Return x 2^n in two steps with representable powers of two; ``bits`` ends with n and twice the bias."""
    half, digits = bits >> 1, x.scalar.digits
    return x * (half << digits).as_bits() * ((bits - half) << digits).as_bits()


def exp_of_sum(x: Number, low: Number) -> Number:
    """Return exp(x + low) for x within the limits of ``clamp``; infinite or 0 beyond the range of the type."""
    e = reduce(x, low)
    total, error = quick_two_sum(1.0, e.r)
    return scale(total + (error + e.s), e.bits)


def exp_within(x: Number) -> Number:
    """Return e^x for x within the limits of ``clamp``."""
    n, bits, exact, rest = _multiple_of_log_2(x)
    r = fma(n, -rest, exact)
    return scale(1.0 + fma(r * r, polynomial(r, COEFFICIENTS["EXP"][x.dtype]), r), bits)


def clamp(x: Number) -> Number:
    """Return x within limits beyond which exp is infinite or 0."""
    return x.between(_MIN_EXPONENT[x.dtype], _MAX_EXPONENT[x.dtype])


def exp(x: Number) -> Number:
    """Return e^x."""
    return exp_within(clamp(x))


def expm1(x: Number) -> Number:
    """Return e^x - 1 = 2^n (1 - 2^-n + r + s), accurate near 0."""
    n, bits, r, s = reduce(x.between(-_EXP_SATURATION[x.dtype], _MAX_EXPONENT[x.dtype]))
    power = (-n.at_most(_NEGLIGIBLE_EXPONENT)).power_of_two()
    base = 1.0 - power
    lost = (1.0 - base) - power
    total, error = two_sum(base, r)
    return scale(total + (error + (s + lost)), bits).with_sign_of(x)


def tanh(x: Number) -> Number:
    """Return the hyperbolic tangent -E / (E + 2), with E = expm1(-2 |x|) as a sum of two numbers."""
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
    n, bits, r, s = reduce(abs(x).at_most(_MAX_EXPONENT[x.dtype] + 1.0))
    high, error = quick_two_sum(1.0, r)
    high, low = quick_two_sum(high, error + s)
    power = (n.at_most(_NEGLIGIBLE_EXPONENT) * -2.0).power_of_two()
    return bits - 1, high, low, *quotient(power, x.like(0.0), high, low)


def sinh(x: Number) -> Number:
    """Return the hyperbolic sine: a polynomial up to 1, and (e^x - e^-x) / 2 beyond."""
    bits, a, b, c, d = _both(x)
    total, error = quick_two_sum(a, -c)
    large = scale(total + ((error + b) - d), bits)
    square = x * x
    small = fma(x * square, polynomial(square, COEFFICIENTS["SINH"][x.dtype]), x)
    return where(abs(x) < 1.0, small, large.with_sign_of(x))


def cosh(x: Number) -> Number:
    """Return the hyperbolic cosine (e^x + e^-x) / 2."""
    bits, a, b, c, d = _both(x)
    total, error = two_sum(a, c)
    return scale(total + ((error + b) + d), bits)


# log, log1p, asinh, acosh and atanh without branches.
#
# x = 2^k m with m between the square roots of 1/2 and 2, f = m - 1, s = f / (2 + f), and log m = 2 atanh s with a
# polynomial in s^2. The inverse hyperbolic functions are logarithms of sums and quotients, which are represented by two
# numbers; near 1, the second number contains the digits of the result.

# Beyond this, x^2 + 1 rounds to x^2, and its square root is x.
_SQUARE_LIMIT = {"float64": 2.0**60, "float32": 2.0**30}
# Below this, asinh x and atanh x round to x.
_LINEAR_LIMIT = {"float64": 2.0**-28, "float32": 2.0**-13}


def split(x: Number, scaled: Mask | None = None) -> tuple[Number, Number]:
    """Return (k, m) with x = 2^k m, for positive normal numbers and for numbers ``scaled`` by ``normal``."""
    digits, bias = x.scalar.digits, x.scalar.bias
    root = x.scalar.bits(0.5**0.5)
    shifted = x.bits() + ((bias << digits) - root)
    m = ((shifted & ((1 << digits) - 1)) + root).as_bits()
    # The biased exponent is read as the last digits of a number near 2^digits, because integer conversions are slow.
    near = 2.0**digits
    surplus = near + bias
    k = ((shifted >> digits) | x.scalar.bits(near)).as_bits()
    return k - (surplus if scaled is None else where(scaled, surplus + _by(x), surplus)), m


def _by(x: Number) -> float:
    """Return the exponent by which subnormal numbers are scaled."""
    return x.scalar.digits + 2.0


def normal(x: Number) -> tuple[Number, Mask]:
    """Return the numbers with subnormal ones scaled to normal ones, and a mask of the scaled numbers."""
    few = x < x.scalar.smallest
    return where(few, x * 2.0 ** _by(x), x), few


def log_of_sum(x: Number, low: Number | None = None, more: Number | None = None) -> Number:
    """Return log(x + low) + more log 2 for positive normal x and a much smaller ``low``."""
    k, m = split(x)
    below = None if low is None else low * (-k.at_most(k.scalar.bias - 1.0)).power_of_two()
    return _log(k if more is None else k + more, m, below)


def _log(k: Number, m: Number, low: Number | None = None) -> Number:
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    half_square = (f * 0.5) * f
    series = z * fma(z, polynomial(z, COEFFICIENTS["LOG"][m.dtype]), COEFFICIENTS["TWO_THIRDS"][m.dtype][0])
    small = fma(s, half_square + series, -half_square)
    if low is not None:
        # log(m + c) - log m = c / m, with 1 / m = (1 - s)^2 to 3 %, which is sufficient because c is below the last
        # digit of m.
        rest = 1.0 - s
        small = fma(low, rest * rest, small)
    high, less = COEFFICIENTS["LN2_SHORT"][m.dtype]
    total, error = quick_two_sum(k * high, f)
    return total + (error + fma(k, less, small))


def _at_edges(x: Number, inside: Number, zero: float = 0.0) -> Number:
    """Return ``inside`` for positive finite x, otherwise limits: -inf at ``zero``, inf at inf, NaN below ``zero``."""
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
    root = x.sqrt()
    rest = fma(-root, root, x) + low
    return root, rest / (root + root).at_least(x.scalar.smallest)


def asinh(x: Number) -> Number:
    """Return the inverse hyperbolic sine, log(x + sqrt(x^2 + 1)); for huge x, log x + log 2."""
    size = abs(x)
    huge = size > _SQUARE_LIMIT[x.dtype]
    a = where(huge, 1.0, size)
    square, error = two_product(a, a)
    total, lost = two_sum(square, x.like(1.0))
    root, rest = _sqrt_of_sum(total, lost + error)
    high, low = two_sum(root, a)
    high, low = where(huge, size, high), where(huge, 0.0, low + rest)
    value = log_of_sum(high, low, where(huge, 1.0, 0.0))
    value = where(size < float("inf"), value, size)
    return where(size < _LINEAR_LIMIT[x.dtype], x, value.with_sign_of(x))


def acosh(x: Number) -> Number:
    """Return the inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); for huge x, log x + log 2."""
    huge = x > _SQUARE_LIMIT[x.dtype]
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
    """Return the inverse hyperbolic tangent log((1 + x) / (1 - x)) / 2."""
    size = abs(x)
    over, under = quick_two_sum(1.0, size), quick_two_sum(1.0, -size)
    high, low = quotient(*over, *under)
    value = log_of_sum(*quick_two_sum(high, low)) * 0.5
    edge = where(size.equals(1.0), float("inf"), float("nan"))
    return where(size < _LINEAR_LIMIT[x.dtype], x, where(size < 1.0, value, edge).with_sign_of(x))


_ERF_SATURATION = 6.0  # from here upwards, erf rounds to 1 in both types


def erf(x: Number) -> Number:
    """Return the error function: a polynomial up to 1, and 1 - exp(-x^2) p((x - 2) / (x + 2)) beyond."""
    square = x * x
    factor, less = COEFFICIENTS["TWO_OVER_ROOT_PI"][x.dtype]
    small = fma(x, factor, x * fma(square, polynomial(square, COEFFICIENTS["ERF"][x.dtype]), less))
    size = abs(x).at_most(_ERF_SATURATION)
    tail = exp_within(-(size * size)) * polynomial((size - 2.0) / (size + 2.0), COEFFICIENTS["ERFC"][x.dtype])
    return where(abs(x) < 1.0, small, 1.0 - tail).with_sign_of(x)


def erfinv(x: Number) -> Number:
    """Return the inverse of erf as in CasADi: a rational approximation and two Newton steps."""

    def rational(z: Number, above: tuple[float, ...], below: tuple[float, ...]) -> Number:
        def horner(terms: tuple[float, ...]) -> Number:
            value = z.like(terms[0])
            for term in terms[1:]:
                value = value * z + term
            return value

        return horner(above) / horner(below)

    def tail(sum_with_one: Number) -> Number:
        z = (-call(log, sum_with_one / 2.0)).sqrt()
        return rational(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.637067800, 3.543889200, 1.0))

    above = (-0.140543331, 0.914624893, -1.645349621, 0.886226899)
    below = (-0.329097515, 0.012229801, 1.442710462, -2.118377725, 1.0)
    middle = x * rational(x * x, above, below)
    y = where(x < 0.7, middle, tail(1.0 - x))
    for _ in range(2):
        slope = 1.1283791670955126 * call(exp, -y * y)
        y = y - (call(erf, y) - x) / slope
    y = where(x < -0.7, -tail(1.0 + x), y)
    size = abs(x)
    y = where(size.equals(1.0), x.like(float("inf")).with_sign_of(x), y)
    return where(size > 1.0, float("nan"), y)


# pow and hypot without branches.
#
# x^y = exp(y log |x|). An error of the logarithm grows with the exponent of the result, so log |x| is a sum of two
# numbers with about twelve bits more than the type.

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
    two_thirds, less = COEFFICIENTS["TWO_THIRDS"][x.dtype]
    factor, factor_low = quick_two_sum(two_thirds, z * polynomial(z, COEFFICIENTS["LOG"][x.dtype]))
    factor_low = factor_low + less
    cube, cube_low = two_product(s, z)
    cube_low = fma(s, z_low, fma(s_low, z, cube_low))
    term, term_low = two_product(cube, factor)
    term_low = fma(cube, factor_low, fma(cube_low, factor, term_low))
    high, rest = COEFFICIENTS["LN2_SHORT"][x.dtype]
    total, error = quick_two_sum(k * high, s + s)
    total, lost = quick_two_sum(total, term)
    low = (error + lost) + (fma(k, rest, s_low + s_low) + term_low)
    return quick_two_sum(total, low)


def pow(x: Number, y: Number) -> Number:
    """Return x^y with all special cases of C's pow."""
    size = abs(x)
    high, low = _accurate_log(size)
    # log is -inf at 0 and inf at inf, so that the product has the correct sign.
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
    """Return a power of two that scales a positive normal number to approximately 1, and its inverse."""
    digits, bias = x.scalar.digits, x.scalar.bias
    exponent = ((x.bits() >> digits) | x.like(2.0**digits).bits()).as_bits() - 2.0**digits
    exponent = exponent.between(1.0, 2.0 * bias - 1.0)
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
    value = (root + left / (root + root).at_least(x.scalar.smallest)) * up
    return where(x.equals(_INF) | y.equals(_INF), _INF, value)


_TAN_EIGHTH = 0.41421356237309503  # tan(pi / 8)
_MAX_TANGENT = 2.0**100  # atan of larger numbers rounds to pi/2 in both types


def _arcs(x: Number) -> tuple[Mask, Number, Number]:
    """Return a mask of |x| > 1/2, and the sine and remainder of an angle: asin |x|, or acos(|x|) / 2 in the mask."""
    size = abs(x)
    outside = size > 0.5
    square = where(outside, fma(size, -0.5, 0.5), x * x)
    sine = where(outside, square.sqrt(), size)
    return outside, sine, sine * square * polynomial(square, COEFFICIENTS["ASIN"][x.dtype])


def asin(x: Number) -> Number:
    """Return the inverse sine: a polynomial up to 1/2, and beyond, a formula with the inverse sine of a square root."""
    outside, sine, rest = _arcs(x)
    half_pi, less = COEFFICIENTS["HALF_PI"][x.dtype]
    total, error = quick_two_sum(half_pi, sine * -2.0)
    value = where(outside, total + (error + fma(rest, -2.0, less)), sine + rest)
    return value.with_sign_of(x)


def acos(x: Number) -> Number:
    """Return the inverse cosine: pi/2 - asin(x) up to 1/2, and 2 asin(sqrt((1 - |x|) / 2)) beyond."""
    outside, sine, rest = _arcs(x)
    half_pi, less = COEFFICIENTS["HALF_PI"][x.dtype]
    negative = x < 0.0
    # The result is base - sign (sine + rest), where base is 0, pi/2 or pi.
    base = where(outside, where(negative, 2.0 * half_pi, 0.0), half_pi)
    base_low = where(outside, where(negative, 2.0 * less, 0.0), less)
    minus = negative ^ ~outside
    factor = where(outside, 2.0, 1.0).flipped(minus)
    total, error = quick_two_sum(base, sine * factor)
    return total + (error + fma(rest, factor, base_low))


def _angle(y: Number, x: Number, mirrored: Mask | None = None) -> Number:
    """Return the angle of the point (x, y) with nonnegative x and y, or pi minus the angle where ``mirrored``.

    The angle is k pi/4 plus or minus the inverse tangent t of a quotient of at most tan(pi/8).
    """
    steep = y > x
    low, high = where(steep, x, y), where(steep, y, x)
    middle = low > high * _TAN_EIGHTH
    over, over_rest = quick_two_sum(high, where(middle, low, 0.0))
    difference, lost = two_sum(low, -high)
    over_by, lost = where(middle, difference, low), where(middle, lost, 0.0)
    t, t_low = quotient(over_by, lost, over, over_rest)
    z = t * t
    rest = fma(t * z, polynomial(z, COEFFICIENTS["ATAN"][x.dtype]), t_low)
    k = where(middle, 1.0, 0.0)
    k = where(steep, 2.0 - k, k)
    backwards = steep
    if mirrored is not None:
        k = where(mirrored, 4.0 - k, k)
        backwards = backwards ^ mirrored
    quarter, less = COEFFICIENTS["QUARTER_PI"][x.dtype]
    base = k * quarter
    base_low = fma(k, less, fma(k, quarter, -base))
    total, error = quick_two_sum(base, t.flipped(backwards))
    return total + (error + (base_low + rest.flipped(backwards)))


def atan(x: Number) -> Number:
    """Return the inverse tangent."""
    return _angle(abs(x).at_most(_MAX_TANGENT), x.like(1.0)).with_sign_of(x)


def atan2(y: Number, x: Number) -> Number:
    """Return the angle of the point (x, y), from -pi to pi, with the signs of zeros as in C."""
    a, b = abs(y), abs(x)
    down, _ = scale_of(where(a < b, b, a))
    # Two infinities yield 45 degrees, one infinity yields 0 or 90 degrees, and two zeros yield 0.
    infinite = a.equals(_INF) | b.equals(_INF)
    first = where(infinite, where(a.equals(_INF), 1.0, 0.0), a * down)
    second = where(infinite, where(b.equals(_INF), 1.0, 0.0), b * down)
    second = where(a.equals(0.0) & b.equals(0.0), 1.0, second)
    leftwards = x.like(1.0).with_sign_of(x) < 0.0
    value = _angle(first, second, leftwards).with_sign_of(y)
    return where(x.unordered(y), float("nan"), value)


# fmod and remainder, exact for all numbers, by long division of integers in each lane.
#
# The quotient may have a thousand binary digits, of which eleven are computed per step. Without a loop, no formula is
# exact.

_NAME = "@exact.remainder"


def _divided(x: Number, y: Number) -> tuple[Number, Mask]:
    e = x.emitter
    e.functions.setdefault(_NAME, ir("remainder"))
    rest, odd = each_lane(_NAME, ("double", "i1"), x, y)
    if x.dtype == "float32":  # exact, because the remainder has no more digits than x and y
        rest = e.put(f"fptrunc <{e.width} x double> {rest} to {e.vector}")
    return Number(e, rest), Mask(e, odd)


def fmod(x: Number, y: Number) -> Number:
    """Return x minus the multiple of y nearest to x towards 0, with the sign of x."""
    return _divided(x, y)[0].with_sign_of(x)


def remainder(x: Number, y: Number) -> Number:
    """Return x minus the nearest multiple of y; ties use the even multiple."""
    rest, odd = _divided(x, y)
    size = abs(y)
    left = size - rest
    down = (rest > left) | (rest.equals(left) & odd)
    value = where(down, rest - size, rest)
    return value.flipped(x.like(1.0).with_sign_of(x) < 0.0)


def tan(x: Number) -> Number:
    """Return the tangent; the branch for huge angles must be the first branch of the function."""
    e = x.emitter
    huge = abs(x) > e.scalar.largest_angle
    usual = _reduce(x)
    any_huge = e.put(f"call i1 @llvm.vector.reduce.or.v{e.width}i1({e.bits} {huge.name})")
    e.lines += [f"  br i1 {any_huge}, label %huge, label %reduced", "huge:"]
    far = reduce_huge(x)
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
    chosen = where(huge, far[0], usual[0]), where(huge, far[1], usual[1])
    quarter = e.put(f"select {e.bits} {huge.name}, {e.integers} {far[2].name}, {e.integers} {usual[2].name}")
    e.lines += ["  br label %reduced", "reduced:"]
    r, low = (
        Number(e, e.put(f"phi {e.vector} [ {a.name}, %entry ], [ {b.name}, %huge ]"))
        for a, b in zip(usual[:2], chosen, strict=True)
    )
    turns = Whole(e, e.put(f"phi {e.integers} [ {usual[2].name}, %entry ], [ {quarter}, %huge ]"))
    return where(abs(x) < _LINEAR_LIMIT[x.dtype], x, _tangent(r, low, turns))


def _reduce(x: Number) -> tuple[Number, Number, Whole]:
    """Return (r, low, quarter) with x = r + low + quarter pi/2, up to the largest angle of the type."""
    s = x.emitter.scalar
    turned = fma(x, 0.6366197723675814, s.rounder)
    n = turned - s.rounder
    first, second, third = s.half_pi
    exact = fma(n, -first, x)
    product, error = two_product(n, x.like(-second))
    total, lost = two_sum(exact, product)
    return *quick_two_sum(total, lost + fma(n, -third, error)), turned.bits()


def _tangent(r: Number, low: Number, quarter: Whole) -> Number:
    sine, cosine = sine_and_cosine(r, low)
    odd = quarter.is_odd()
    over = [where(odd, b, a) for a, b in zip(sine, cosine, strict=True)]
    under = [where(odd, -a, b) for a, b in zip(sine, cosine, strict=True)]
    first, second = quotient(over[0], over[1], under[0], under[1])
    return first + second


FUNCTIONS: dict[int, Callable[..., Number]] = {
    getattr(ca, f"OP_{function.__name__.upper()}"): function
    for function in (
        *(pow, hypot, fmod, remainder, tan, exp, expm1, sinh, cosh, tanh, log, log1p, asinh, acosh, atanh),
        *(asin, acos, atan, atan2, erf, erfinv),
    )
} | {ca.OP_CONSTPOW: pow}
"""The function of each CasADi operation."""


def _called(function: Callable[..., Number]) -> Rule:
    return lambda e, *arguments: call(function, *(Number(e, argument) for argument in arguments)).name


ELEMENTARY: dict[int, Rule] = {code: _called(function) for code, function in FUNCTIONS.items()}
"""The rule of each elementary function."""

EVERY_RULE = RULES | ELEMENTARY
"""The rule of each CasADi operation but sin and cos."""
