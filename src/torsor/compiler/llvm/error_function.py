"""erf and its inverse without branches."""

from torsor.compiler.llvm.calls import call
from torsor.compiler.llvm.coefficients import ERF, ERFC, TWO_OVER_ROOT_PI
from torsor.compiler.llvm.exponentials import exp, exp_within
from torsor.compiler.llvm.logarithms import log
from torsor.compiler.llvm.vectors import Number, fma, polynomial, where

_ERF_SATURATION = 6.0  # erf rounds to 1 from here, in both types


def erf(x: Number) -> Number:
    """Return the error function: a polynomial to 1, and 1 - exp(-x^2) p((x - 2) / (x + 2)) beyond."""
    square = x * x
    factor, less = TWO_OVER_ROOT_PI[x.dtype]
    small = fma(x, factor, x * fma(square, polynomial(square, ERF[x.dtype]), less))
    size = abs(x).at_most(_ERF_SATURATION)
    tail = exp_within(-(size * size)) * polynomial((size - 2.0) / (size + 2.0), ERFC[x.dtype])
    return where(abs(x) < 1.0, small, 1.0 - tail).with_sign_of(x)


def erfinv(x: Number) -> Number:
    """Return the inverse of erf as CasADi computes it: a rational approximation, then two Newton steps."""

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
