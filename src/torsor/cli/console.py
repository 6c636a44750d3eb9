"""The console of the command line: names from files are shown, and cannot command the terminal."""

from typing import Any

from rich.console import Console
from rich.text import Text

from torsor.base.errors import printable


class PlainConsole(Console):
    r"""A console that shows control characters as escapes, in text and in the cells of tables.

    Example:
        >>> PlainConsole().print("arm\x1b[2J", markup=False)
        arm\x1b[2J
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text as Rich shows it, its control characters as escapes."""
        return super().render_str(printable(text), **options)
