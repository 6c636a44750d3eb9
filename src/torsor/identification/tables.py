"""The tables of the report of an identification."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.markup import escape
from rich.table import Table

from torsor.identification.drives import Drives

MARK = " !"
CLOSEST = 3  # laws that were not chosen, which the report names


def parameter_table(title: str, rows: Iterable[tuple[str, float, float, float, float]], marked: Sequence[str]) -> Table:
    """Return the table of base parameters: rows of name, value as given, value, deviation, deviation in percent."""
    table = _table(title, "parameter (SI units)", "as given", "identified", "deviation", "%")
    for name, given, value, deviation, percent in rows:
        table.add_row(
            escape(name),
            short(given),
            short(value),
            f"{deviation:.2g}",
            percent_text(percent) + MARK * (name in marked),
        )
    return table


def drive_table(drives: Drives) -> Table:
    """Return the table of the terms of drives; the last column is the rise of the criterion without the law."""
    head = f"rise of {drives.criterion.upper()} without it"
    columns = ("identified", "deviation", "%", "shape", head)
    table = _table("Drives: friction beyond Coulomb and viscous, offsets, coupled motors", "term (SI units)", *columns)
    for term, value, deviation in zip(drives.terms, drives.values, drives.deviations, strict=True):
        worth = drives.changes.get(term.drive, {}).get(term.law)
        percent = percent_text(float(100 * deviation / abs(value)) if value else np.inf)
        shape = f"{term.shape:.3g}" if term.shape else ""
        row = (short(value), f"{deviation:.2g}", percent, shape, "" if worth is None else f"{worth:.3g}")
        table.add_row(escape(term.name), *row)
    return table


def others_note(drives: Drives) -> str:
    """Return how many laws were tried and not chosen, and which of them came closest; "" for none.

    Example:
        >>> others_note(Drives((), np.empty(0), np.empty((0, 0)), {"arm": {"cubic": 7.0, "load": 2.5}}))
        '2 laws were not chosen; closest: arm.load (BIC would rise by 2.5), arm.cubic (7); all: JSON and HTML report'
    """
    rises = {
        f"{drive}.{law}": rise
        for drive, laws in drives.changes.items()
        for law, rise in laws.items()
        if law not in drives.chosen(drive)
    }
    if not rises:
        return ""
    first, *more = sorted(rises, key=lambda name: rises[name])[:CLOSEST]
    closest = f"{first} ({drives.criterion.upper()} would rise by {rises[first]:.3g})"
    closest += "".join(f", {name} ({rises[name]:.3g})" for name in more)
    count = f"{len(rises)} laws were" if len(rises) > 1 else "1 law was"
    return f"{count} not chosen; closest: {closest}; all: JSON and HTML report"


def residual_table(
    samples: int, rows: Iterable[tuple[str, float, float, float]], marked: Sequence[str], unseen: Sequence[float] | None
) -> Table:
    """Return the table of residuals: rows of coordinate, RMS, percent of the force, R²; ``unseen`` percents (nv)."""
    extra = () if unseen is None else ("% held out",)
    table = _table(f"Residuals of {samples} samples (N m and N)", "coordinate", "RMS", "% of force", "R²", *extra)
    for k, (name, rms, percent, r_squared) in enumerate(rows):
        last = () if unseen is None else (f"{unseen[k]:.3g}",)
        table.add_row(escape(name), f"{rms:.4g}", f"{percent:.3g}" + MARK * (name in marked), f"{r_squared:.6f}", *last)
    return table


def short(value: float) -> str:
    """Return a number with five digits; "0" for rounding.

    Example:
        >>> short(1e-13), short(1.234567)
        ('0', '1.2346')
    """
    return "0" if abs(value) < 1e-12 else f"{value:.5g}"


def percent_text(value: float) -> str:
    """Return a percentage with three digits.

    Example:
        >>> percent_text(12.345), percent_text(np.inf)
        ('12.3', '> 10000')
    """
    return f"{value:.3g}" if value < 1e4 else "> 10000"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return table
