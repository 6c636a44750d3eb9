"""Compute the coefficients in ``torsor/compiler/llvm/coefficients.toml``, and print that file.

The polynomials interpolate at Chebyshev nodes with many digits, and are within one bit of the best fit. Their degree is
the smallest whose error is below the precision of the type. Constants are sums of two numbers of the type. The words of
2 / pi are used to reduce huge angles.

    python benchmarks/coefficients.py > src/torsor/compiler/llvm/coefficients.toml
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp

DIGITS = 120  # decimal ones: the quotients below lose many where their argument is almost 0
DTYPES = {"float64": np.float64, "float32": np.float32}
_NEAR = mp.mpf(10) ** -25
Number = Any  # mpmath has no types


class Fit(NamedTuple):
    """A function on an interval, and the largest error of its polynomial in units of 2^-53 or 2^-24."""

    name: str
    what: str
    function: Callable[[Number], Number]
    interval: tuple[Number, Number]
    error: float


def _over(function: Callable[[Number], Number], z: Number) -> Number:
    """Return (function(r) / r - 1) / z with r the root of z, which must not be 0."""
    root = mp.sqrt(z)
    return (function(root) / root - 1) / z


def _logarithm(z: Number) -> Number:
    return (_over(mp.atanh, z) * 2 - mp.mpf(2) / 3) / z


def _erf(z: Number) -> Number:
    root = mp.sqrt(z)
    return (mp.erf(root) / root - 2 / mp.sqrt(mp.pi)) / z


def _erfc(u: Number) -> Number:
    a = 2 * (1 + u) / (1 - u)
    return mp.erfc(a) * mp.exp(a * a)


FITS = (
    Fit(
        "EXP", "(exp r - 1 - r) / r^2, |r| <= log(2) / 2", lambda r: (mp.exp(r) - 1 - r) / r**2, (-0.3467, 0.3467), 0.25
    ),
    Fit("LOG", "(2 atanh(s) / s - 2 - 2 s^2 / 3) / s^4 in s^2, |s| <= 3 - 2 sqrt(2)", _logarithm, (0, 0.02945), 0.15),
    Fit("SINH", "(sinh(x) / x - 1) / x^2 in x^2, |x| <= 1", lambda z: _over(mp.sinh, z), (0, 1), 0.25),
    Fit("ASIN", "(asin(x) / x - 1) / x^2 in x^2, |x| <= 1/2", lambda z: _over(mp.asin, z), (0, 0.25), 0.25),
    Fit("ATAN", "(atan(x) / x - 1) / x^2 in x^2, |x| <= tan(pi/8)", lambda z: _over(mp.atan, z), (0, 0.1716), 0.25),
    Fit("ERF", "(erf(x) / x - 2 / sqrt(pi)) / x^2 in x^2, |x| <= 1", _erf, (0, 1), 0.25),
    Fit("ERFC", "erfc(x) exp(x^2) in (x - 2) / (x + 2), 1 <= x <= 6", _erfc, (-0.3333334, 0.5), 0.25),
)


def polynomial(fit: Fit, dtype: str) -> tuple[float, ...]:
    """Return the coefficients of a fit, highest power first, rounded to the type."""
    unit = mp.mpf(2) ** (-53 if dtype == "float64" else -24)
    for count in range(2, 30):
        terms, error = interpolated(fit, count)
        if error < fit.error * unit:
            return tuple(_rounded(term, dtype) for term in terms)
    raise ArithmeticError(f"{fit.name}: no polynomial with fewer than 30 terms")


def interpolated(fit: Fit, count: int) -> tuple[list[Number], Number]:
    """Return the polynomial through the values at ``count`` Chebyshev nodes, and its largest error between them."""
    low, high = map(mp.mpf, fit.interval)

    def point(turn: Number) -> Number:
        x = (low + high) / 2 + (high - low) / 2 * mp.cospi(turn)
        return x if abs(x) > _NEAR else _NEAR  # the quotients have no value at 0

    nodes = [point(mp.mpf(2 * k + 1) / (2 * count)) for k in range(count)]
    powers = mp.matrix([[node**k for k in range(count - 1, -1, -1)] for node in nodes])
    terms = list(mp.lu_solve(powers, mp.matrix([fit.function(node) for node in nodes])))
    between = [point(mp.mpf(k) / count) for k in range(count + 1)]
    errors = (sum(term * x**k for k, term in enumerate(reversed(terms))) - fit.function(x) for x in between)
    return terms, max(map(abs, errors))


def _rounded(number: Number, dtype: str) -> float:
    return float(DTYPES[dtype](float(number)))


def split(number: Number, dtype: str, short: int = 0) -> tuple[float, ...]:
    """Return a number as a sum of two numbers of the type; the last ``short`` bits of the first are 0."""
    parts: list[float] = []
    for _ in range(2):
        part = _rounded(number, dtype)
        if not parts and short:
            unit = mp.mpf(2) ** (mp.floor(mp.log(abs(number), 2)) + 1 - (53 if dtype == "float64" else 24) + short)
            part = float(mp.nint(number / unit) * unit)
        parts.append(part)
        number = number - mp.mpf(part)
    return tuple(parts)


CONSTANTS: tuple[tuple[str, str, Callable[[], Number], dict[str, int]], ...] = (
    ("LN2", "log 2", lambda: mp.log(2), {}),
    (
        "LN2_SHORT",
        "log 2, whose first part times an exponent is exact",
        lambda: mp.log(2),
        {"float64": 12, "float32": 9},
    ),
    ("TWO_THIRDS", "2 / 3", lambda: mp.mpf(2) / 3, {}),
    ("QUARTER_PI", "pi / 4", lambda: mp.pi / 4, {}),
    ("HALF_PI", "pi / 2", lambda: mp.pi / 2, {}),
    ("TWO_OVER_ROOT_PI", "2 / sqrt(pi)", lambda: 2 / mp.sqrt(mp.pi), {}),
)


def two_over_pi() -> tuple[int, ...]:
    """Return the bits of 2/pi as 64-bit words after one zero word: enough for the largest float64."""
    with mp.workprec(1500):
        return tuple(int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * k))) % 2**64 for k in range(20))


def fours(numbers: Sequence[str]) -> list[str]:
    """Return lines of four numbers each."""
    rows = [numbers[k : k + 4] for k in range(0, len(numbers), 4)]
    return [f"    {', '.join(row)}," for row in rows]


def table(name: str, what: str, rows: dict[str, tuple[float, ...]]) -> str:
    """Return one table of the file."""
    lines = [f"# {what}", f"[{name}]"]
    for dtype, numbers in rows.items():
        texts = [repr(number) for number in numbers]
        short = f"{dtype} = [{', '.join(texts)}]"
        lines += [short] if len(short) <= 120 else [f"{dtype} = [", *fours(texts), "]"]
    return "\n".join(lines)


@mp.workdps(DIGITS)
def text() -> str:
    """Return the whole file."""
    head = "# Coefficients of the elementary functions for each type; benchmarks/coefficients.py computes them."
    parts = [head, "# Polynomials, highest power first."]
    parts += [table(fit.name, fit.what, {dtype: polynomial(fit, dtype) for dtype in DTYPES}) for fit in FITS]
    parts.append("# Constants as sums of numbers of the type.")
    for name, what, number, short in CONSTANTS:
        rows = {dtype: split(number(), dtype, short.get(dtype, 0)) for dtype in DTYPES}
        parts.append(table(name, what, rows))
    words = "\n".join(fours([f"0x{word:016X}" for word in two_over_pi()]))
    parts.append(f"# The bits of 2/pi as 64-bit words, after one zero word.\n[TWO_OVER_PI]\nwords = [\n{words}\n]")
    return "\n\n".join(parts).replace("the type.\n\n#", "the type.\n#").replace("first.\n\n#", "first.\n#") + "\n"


if __name__ == "__main__":
    print(text(), end="")
