"""Whether what is given is what is asked for: numbers, pairs and tables, told by name where they are not."""

import math
from collections.abc import Mapping
from typing import Any

from torsor.errors import ModelError, describe

__all__ = ["number", "pair", "table"]


def number(value: object, what: str, where: str, least: float = -math.inf) -> float:
    """Return a finite number that is no less than ``least``.

    Example:
        >>> number(2, "arms", "habits")
        2.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
        allowed = "a finite number" if least == -math.inf else f"a finite number, {least:g} or more"
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed=allowed))
    return float(value)


def pair(value: object, what: str, where: str) -> tuple[float, float]:
    """Return two finite numbers that do not fall.

    Example:
        >>> pair((55, 65), "knee", "habits")
        (55.0, 65.0)
    """
    if isinstance(value, (list, tuple)) and len(value) == 2:
        first, last = (number(each, what, where) for each in value)
        if first <= last:
            return first, last
    raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="two numbers, the least and the most"))


def table(value: object, what: str, where: str) -> dict[str, Any]:
    """Return a table by names; None is one without any.

    Example:
        >>> table(None, "frozen", "walk")
        {}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="a table, {name: number}"))
    return dict(value)
