"""Likely mistakes in recordings: what was found, where, and the fix."""

from collections.abc import Sequence
from typing import NamedTuple

from torsor.base.errors import describe

MOST = 5  # places that one finding names


class Finding(NamedTuple):
    """A likely mistake: its ``kind``, such as "swap", and the ``message`` with file, frame, marker or plate, and fix.

    Example:
        >>> print(Finding("gap", "walk.trc: marker 'toe' is missing"))
        walk.trc: marker 'toe' is missing
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return self.message


def finding(
    kind: str, places: Sequence[str], source: str, fix: str, before: str = "", after: str = ""
) -> list[Finding]:
    """Return one finding about several places, the first of them named, or none without places.

    Example:
        >>> finding("gap", ["marker 'toe'", "marker 'heel'"], "walk.trc", "fill them", after=" missing")[0].message
        "walk.trc: marker 'toe'; marker 'heel' missing; fix: fill them"
    """
    if not places:
        return []
    more = f"; ... {len(places)} in all" if len(places) > MOST else ""
    text = f"{before}{'; '.join(places[:MOST])}{more}{after}"
    return [Finding(kind, describe(text, where=source, fix=fix))]
