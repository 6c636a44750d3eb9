"""Names that are not taken."""

from collections.abc import Iterable


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """Return the wanted name, with underscores appended until it is not taken."""
    taken = set(taken)
    while wanted in taken:
        wanted += "_"
    return wanted


def claim_name(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and add it to those that are."""
    name = unused_name(wanted, taken)
    taken.add(name)
    return name
