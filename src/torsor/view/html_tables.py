"""Tables and names in HTML, for reports."""

from collections.abc import Sequence
from html import escape

from torsor.base.errors import printable


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool] = (), words: bool = False
) -> str:
    """Return a table of numbers, or of ``words``; cells are HTML, in which names were escaped.

    Example:
        >>> html_table(["link", "kg"], [["arm", "2"]])
        '<div class="wide"><table><tr><th>link</th><th>kg</th></tr><tr><td>arm</td><td>2</td></tr></table></div>'
    """
    marks = marked or [False] * len(rows)
    lines = ["".join(f"<th>{html_text(each)}</th>" for each in head)]
    classes = [""] + [' class="marked"' if each else "" for each in marks]
    lines += ["".join(f"<td>{each}</td>" for each in row) for row in rows]
    body = "".join(f"<tr{own}>{line}</tr>" for own, line in zip(classes, lines, strict=True))
    kind = ' class="words"' if words else ""
    return f'<div class="wide"><table{kind}>{body}</table></div>'


def html_text(text: str) -> str:
    """Return text of a file or of a user as HTML, without control characters.

    Example:
        >>> html_text("a < b")
        'a &lt; b'
    """
    return escape(printable(text).replace("\n", " "))
