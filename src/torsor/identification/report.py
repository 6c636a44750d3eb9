"""The report of an identification: two tables as text (rich)."""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def report(
    parameters: tuple[str, Iterable[tuple[str, float, float, float, float]]],
    residuals: tuple[str, Iterable[tuple[str, float, float, float]]],
) -> str:
    """Return the tables of base parameters and of residuals, each given by its title and its rows.

    Rows are (name, given, identified, deviation, percent) and (coordinate, RMS, percent of the force, R^2).
    """
    first = _table(parameters[0], "parameter (SI units)", "as given", "identified", "deviation", "%")
    for name, given, value, deviation, percent in parameters[1]:
        relative = f"{percent:.3g}" if percent < 1e4 else "> 10000"
        first.add_row(escape(name), _number(given), _number(value), f"{deviation:.2g}", relative)
    second = _table(residuals[0], "coordinate", "RMS", "% of force", "R²")
    for name, rms, percent, r_squared in residuals[1]:
        second.add_row(escape(name), f"{rms:.4g}", f"{percent:.3g}", f"{r_squared:.6f}")
    text = io.StringIO()
    console = Console(file=text, width=120, color_system=None)
    console.print(first)
    console.print(second)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _table(title: str, *columns: str) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return table


def _number(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:.5g}"
