"""Unused names."""

from collections.abc import Iterable


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name, with underscores appended until it is unused."""
    taken = set(taken)
    while wanted in taken:
        wanted += "_"
    return wanted


def claim_name(wanted: str, taken: set[str]) -> str:
    """Return an unused name, and add it to the used ones."""
    name = unused_name(wanted, taken)
    taken.add(name)
    return name
