"""Generation of unused names."""

from collections.abc import Iterable


def unused_name(name: str, taken: Iterable[str]) -> str:
    """Return ``name`` with underscores appended until it is unused."""
    taken = set(taken)
    while name in taken:
        name += "_"
    return name


def claim_name(wanted: str, taken: set[str]) -> str:
    """Return an unused name similar to ``wanted``, and add it to ``taken``."""
    name = unused_name(wanted, taken)
    taken.add(name)
    return name
