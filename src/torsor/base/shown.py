"""The figure class of the library: a figure that notebooks show, made when the first figure is."""

import io
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@cache
def shown_figure() -> "type[Figure]":
    """Return the class of figures that a notebook shows when they are the last line of a cell.

    A bare ``Figure`` of matplotlib is shown only after pyplot was imported or ``%matplotlib inline`` was run; without
    them a notebook prints its size. Needs matplotlib: ``torsor[plot]``.

    Example:
        >>> shown_figure()(figsize=(1, 1))._repr_png_()[1:4]
        b'PNG'
    """
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure with a picture of itself."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return ShownFigure
