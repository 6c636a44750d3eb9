"""Pairs of links that may touch, each with the reason: the part of an allowed collision matrix that a file gives."""

from collections.abc import Collection, Iterable
from typing import Any

from torsor.base.errors import ModelError, describe, listing

Allowed = tuple[str, str, str]


def checked_allowed(given: Iterable[Any], places: Collection[str], where: str) -> tuple[Allowed, ...]:
    """Return pairs of links or frames with their reasons, sorted and each once; the first reason of a pair is kept.

    Example:
        >>> checked_allowed([("hand", "arm", "user"), ("arm", "hand", "never")], ("arm", "hand"), "robot")
        (('arm', 'hand', 'user'),)
    """
    found = dict[tuple[str, str], str]()
    for each in given:
        words = tuple(each) if isinstance(each, Iterable) and not isinstance(each, str) else ()
        if len(words) != 3 or not all(isinstance(word, str) for word in words):
            text = "(link, link, reason), three strings"
            raise ModelError(describe(f"allowed collision {each!r}", where=where, allowed=text))
        a, b, reason = words
        for name in (a, b):
            if name not in places:
                allowed = listing(map(repr, places), like=repr(name))
                found_here = f"allowed collision of {name!r}, which is no link or frame"
                raise ModelError(describe(found_here, where=where, allowed=allowed))
        if a == b:
            raise ModelError(describe(f"allowed collision of {a!r} with itself", where=where, allowed="two links"))
        found.setdefault((min(a, b), max(a, b)), reason)
    return tuple((a, b, reason) for (a, b), reason in sorted(found.items()))
