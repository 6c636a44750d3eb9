"""Reports as a single offline HTML file with tables, lists, figures and 3D motions."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.protocol import rich_cast
from rich.table import Table
from rich.text import Text

from torsor._version import __version__
from torsor.base.errors import printable
from torsor.base.files import write_text
from torsor.base.registry import registered

WIDTH = 118  # characters per line of a table
STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.1em;margin-top:2em}pre{font-size:12px;line-height:1.25;overflow-x:auto}"
    "img{max-width:100%}footer{color:#777;margin-top:3em;font-size:85%}"
    "table{border-collapse:collapse;font-size:85%;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}"
    "th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #e4e4e4;white-space:nowrap}"
    "th{border-bottom:2px solid #bbb;font-weight:600}td:first-child,th:first-child{text-align:left;white-space:normal}"
    ".words td,.words th{text-align:left;white-space:normal}tr.marked td{background:#fff4e0}"
    ".note{color:#666;font-size:85%}h3{font-size:1em;margin:1.2em 0 .3em}"
    ".remark{border-left:4px solid #e0a030;background:#fff8ea;padding:.4em .8em;margin:.6em 0}"
    ".bar{display:inline-block;height:.6em;background:#7fa8d0;margin-right:.5em;vertical-align:baseline}"
    "details summary{cursor:pointer;margin:.6em 0}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'; frame-src 'self'"


def write_html(target: Path, name: str, parts: Iterable[str]) -> Path:
    """Write a page with a title and ``parts`` (HTML with escaped names) atomically."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    head = f'<meta charset="utf-8">{policy}<style>{STYLE}</style>'
    body = "\n".join(parts)
    html = f"<!DOCTYPE html>\n<title>{escape(name)}</title>{head}\n{body}\n<footer>Torsor {__version__}</footer>\n"
    write_text(target, html)
    return target


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool] = (), words: bool = False
) -> str:
    """Return an HTML table of numbers, or of text if ``words`` is True; cells are HTML with escaped names.

    Example:
        >>> html_table(["link", "kg"], [["arm", "2"]])
        '<div class="wide"><table><tr><th>link</th><th>kg</th></tr><tr><td>arm</td><td>2</td></tr></table></div>'
    """
    marks = marked or [False] * len(rows)
    lines = ["".join(f"<th>{html_text(cell)}</th>" for cell in head)] if head else []
    classes = [""] * len(lines) + [' class="marked"' if mark else "" for mark in marks]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr{class_}>{line}</tr>" for class_, line in zip(classes, lines, strict=True))
    kind = ' class="words"' if words else ""
    return f'<div class="wide"><table{kind}>{body}</table></div>'


def html_text(text: str) -> str:
    """Return text from a file or a user as HTML, without control characters.

    Example:
        >>> html_text("a < b")
        'a &lt; b'
    """
    return escape(printable(text).replace("\n", " "))


def html_list(lines: Iterable[str]) -> str:
    """Return lines as an HTML list with escaped names."""
    return f"<ul>{''.join(f'<li>{html_text(line)}</li>' for line in lines)}</ul>"


def terminal_table(content: RenderableType) -> str:
    """Return terminal output as HTML with all text escaped; Rich tables become tables, text becomes paragraphs.

    Example:
        >>> from rich.table import Table
        >>> table = Table("link")
        >>> table.add_row("arm")
        >>> terminal_table(table)
        '<div class="wide"><table class="words"><tr><th>link</th></tr><tr><td>arm</td></tr></table></div>'
    """
    content = rich_cast(content)
    if isinstance(content, Group):
        return "\n".join(terminal_table(part) for part in content.renderables)
    if isinstance(content, str | Text):
        return f"<p>{_html_cell(content)}</p>"
    if not isinstance(content, Table):
        console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
        console.print(content)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    heads = [_plain_text(column.header) for column in content.columns]
    cells = zip(*(column.cells for column in content.columns), strict=True)
    rows = [list(map(_html_cell, row)) for row in cells]
    words = all(column.justify == "left" for column in content.columns)
    title = f"<h3>{html_text(_plain_text(content.title))}</h3>" if content.title else ""
    return title + html_table(heads if content.show_header else [], rows, words=words)


def _plain_text(content: RenderableType | None) -> str:
    """Return the text of a cell or title without markup."""
    return content.plain if isinstance(content, Text) else Text.from_markup(str(content or "")).plain


def _html_cell(content: RenderableType) -> str:
    """Return the text of a cell as HTML, with line breaks."""
    return "<br>".join(html_text(line) for line in _plain_text(content).split("\n"))


def image(figure: Any) -> str:
    """Return a matplotlib figure as self-contained HTML."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    return f'<img alt="figure" src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'


def in_motion(what: Any, title: str, heading: str = "In motion") -> list[str]:
    """Return a 3D view of a motion or robot under a heading, or nothing if ``torsor.view`` is not installed."""
    page = registered("page", "html")
    return [] if page is None else [f"<h2>{heading}</h2>", page(what, title)]
