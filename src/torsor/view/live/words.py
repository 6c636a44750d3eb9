"""Names from files as parts of node paths and of HTML: they can contain anything, and must command nothing."""

from html import escape
from urllib.parse import quote

from torsor.base.errors import printable


def node(*names: object) -> str:
    """Return the path of a node of the scene; a name is one level of it, whatever it contains.

    Example:
        >>> node("arm", 0, "a/b <i>")
        '/arm/0/a%2Fb%20%3Ci%3E'
    """
    return "".join(f"/{quote(str(name), safe='') or '_'}" for name in names)


def words(text: object) -> str:
    """Return text as HTML shows it.

    Example:
        >>> words("<script>")
        '&lt;script&gt;'
    """
    return escape(printable(str(text)))


def label(text: str, longest: int = 48) -> str:
    """Return a name as a label of a control, which is plain text: without control characters, and not too long.

    Example:
        >>> label("x" * 60, longest=5)
        'xxxx…'
    """
    shown = printable(text).replace("\\n", " ")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"
