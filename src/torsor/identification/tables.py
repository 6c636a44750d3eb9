"""The report of an identification as tables (rich)."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from torsor.identification.result import Identified

__all__ = ["tables"]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return table


def _number(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:.5g}"


def tables(found: "Identified") -> list[Table]:
    """Return the table of the base parameters and that of the residuals."""
    how = "physical" if found.parameters is not None else "least squares"
    title = f"{escape(found.prior.name)}: {len(found)} base parameters ({how}), condition number {found.condition:.4g}"
    parameters = _table(title, "parameter (SI units)", "as given", "identified", "deviation", "%")
    rows = zip(found.names, found.base.values, found.values, found.deviations, found.relative_deviations, strict=True)
    for name, given, value, deviation, percent in rows:
        share = f"{percent:.3g}" if percent < 1e4 else "> 10000"
        parameters.add_row(escape(name), _number(given), _number(value), f"{deviation:.2g}", share)
    residuals = _table(
        f"Residuals of {len(found.measurements)} samples (N m and N)", "coordinate", "RMS", "% of force", "R²"
    )
    for name, rms, percent, share in zip(
        found.prior.coordinate_names, found.rms, found.relative_residuals, found.r_squared, strict=True
    ):
        residuals.add_row(escape(name), f"{rms:.4g}", f"{percent:.3g}", f"{share:.6f}")
    return [parameters, residuals]
