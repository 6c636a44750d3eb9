"""The figure class of the library, which ``figures.new_figure`` imports: matplotlib is loaded for figures alone."""

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that a notebook shows when it is the last line of a cell.

    A bare ``Figure`` of matplotlib is shown only after pyplot was imported or ``%matplotlib inline`` was run; without
    them a notebook prints its size.

    Example:
        >>> ShownFigure(figsize=(1, 1))._repr_png_()[1:4]
        b'PNG'
    """

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()
