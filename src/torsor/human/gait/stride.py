"""A whole stride of a walk: its curves, with reports and figures."""

from pathlib import Path
from typing import Any

from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.figures import plot
from torsor.human.gait.report import plain, tables, text


class Stride(StrideCurves):
    """The stride of one ``side`` ("right" or "left") in the result of a problem of ``torsor.human.walking``.

    All curves have 401 equally spaced instants, from heel strike to heel strike of that side. Names are those of the
    body's coordinates without the side ("hip_flexion", "list"); moments may also be named after the opposite direction
    ("hip_extension"). Forces are in body weights, moments and powers are divided by the mass, of the body with its
    load. A left stride is mirrored: vectors are (medial, up, forward) for either side, which for the right side are the
    base axes. ``likeness`` compares with people, ``report()`` returns tables, ``plot`` draws.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return peaks, likeness, energy and curves as plain numbers, lists and strings, as for JSON."""
        return plain(self)

    def report(self, width: int = 110) -> str:
        """Return tables as text: peaks, energy, and the likeness to people."""
        return text(self, width)

    def __rich__(self) -> Any:
        return tables(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure (matplotlib, the extra ``plot``) of curves and those of people; ``path`` saves it."""
        return plot(self, path)
