"""The inverse of erf as CasADi computes it, for languages that have none: a rational function, then two Newton steps.

For abs(x) < ``BORDER`` the rational function is x times ``middle`` of z = x^2; beyond, it is ``tail`` of
z = sqrt(-log((1 - abs(x)) / 2)), and for x < -``BORDER`` CasADi takes no Newton step. The slope of erf at y is
``SLOPE`` exp(-y^2).
"""

import math
from collections.abc import Callable

BORDER = 0.7
SLOPE = 2.0 / math.sqrt(math.pi)


def polynomial(literal: Callable[[float], str], *terms: float) -> str:
    """Return a polynomial of z by Horner's scheme, the highest power first."""
    text = literal(terms[0])
    for term in terms[1:]:
        text = f"({text} * z + {literal(term)})" if term >= 0 else f"({text} * z - {literal(-term)})"
    return text


def tail(literal: Callable[[float], str]) -> str:
    """Return the rational function for arguments near 1."""
    upper = polynomial(literal, 1.641345311, 3.429567803, -1.624906493, -1.970840454)
    return f"{upper} / {polynomial(literal, 1.637067800, 3.543889200, 1.0)}"


def middle(literal: Callable[[float], str]) -> str:
    """Return the rational function for arguments near 0, which is to be multiplied by x."""
    upper = polynomial(literal, -0.140543331, 0.914624893, -1.645349621, 0.886226899)
    return f"{upper} / {polynomial(literal, -0.329097515, 0.012229801, 1.442710462, -2.118377725, 1.0)}"
