"""Short tables that describe an object, as text for ``print`` and as HTML for notebooks, with escaped names."""

import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from torsor.base.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

MAX_ROWS, FIRST, LAST = 16, 10, 3  # longer tables show only their first and last rows
STYLE = "border-collapse:collapse;margin:.4em 0"
CELL = "padding:.15em .7em;text-align:left;border-bottom:1px solid #ddd"


def as_text(*tables: Any, width: int, separator: str = " ") -> str:
    """Return Rich tables as text, even in a notebook, where Rich would otherwise display them.

    Example:
        >>> as_text("one", "two", width=20).strip()
        'one two'
    """
    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=width, color_system=None, force_jupyter=False).print(*tables, sep=separator)
    return file.getvalue()


def titled_table(title: str, *columns: str, overflow: Any = "ellipsis", words: bool = False) -> "Table":
    """Return an empty Rich table with a left-aligned first column; ``words`` also left-aligns the others.

    Long names in the first column are wrapped, because truncated names could be ambiguous. ``overflow`` applies to the
    other columns.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if words or not k else "right", overflow=overflow if k else "fold")
    return table


class Summary(NamedTuple):
    """A ``title``, ``facts`` about an object, and a table with a ``head`` and ``rows``, all as text.

    Example:
        >>> print(Summary("arm", {"mass": "2 kg"}, ("joint", "type"), [("elbow", "revolute")]).text())
        arm
        mass: 2 kg
        joint  type
        elbow  revolute
    """

    title: str
    facts: Mapping[str, str]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    @property
    def _shown(self) -> list[Sequence[str]]:
        if len(self.rows) <= MAX_ROWS:
            return list(self.rows)
        left_out = f"... {len(self.rows) - FIRST - LAST} more"
        return [*self.rows[:FIRST], (left_out, *[""] * (len(self.head) - 1)), *self.rows[-LAST:]]

    def text(self) -> str:
        """Return the table as lines of text, without control characters."""
        lines = [self.title, *(f"{name}: {value}" for name, value in self.facts.items())]
        table = [self.head, *self._shown] if self.rows else []
        clean = [[printable(cell).replace("\n", " ") for cell in row] for row in table]
        widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
        aligned = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in clean)
        lines += ["  ".join(row).rstrip() for row in aligned]
        return "\n".join(printable(line).replace("\n", " ") for line in lines)

    def html(self) -> str:
        """Return the table as HTML with all text escaped.

        Example:
            >>> Summary("<b>arm</b>", {}).html()
            '<div><b>&lt;b&gt;arm&lt;/b&gt;</b></div>'
        """
        parts = [f"<b>{_escaped(self.title)}</b>"]
        if self.facts:
            cells = (f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in self.facts.items())
            parts.append(f'<table style="{STYLE}">{"".join(cells)}</table>')
        if self.rows:
            head = "".join(_cell("th", cell) for cell in self.head)
            body = "".join(f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>" for row in self._shown)
            parts.append(f'<table style="{STYLE}"><tr>{head}</tr>{body}</table>')
        return f"<div>{''.join(parts)}</div>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="{CELL}">{_escaped(text)}</{tag}>'


def _escaped(text: str) -> str:
    return escape(printable(text))
