"""What exported source says about itself in comments and, where the language has it, as data."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MARK = "Written by Torsor"
"""Begins every exported file: a file without it was not written by Torsor and is not replaced."""


class About(NamedTuple):
    """What the reader of exported source is told. The compiler knows nothing of robots: the caller gives all of it.

    ``lines`` are about the whole (robot, order of the coordinates, units, axes, version, licence). ``facts`` are the
    same as data, of texts, numbers, lists and mappings. ``results`` says what each function returns, by its name, and
    ``arguments`` what an argument is, by its name in CasADi.
    """

    lines: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    results: Mapping[str, str] = {}
    arguments: Mapping[str, str] = {}


def plain(text: str) -> str:
    """Return a text in which nothing can end a comment, or is not ASCII: such characters become underscores.

    A slash stays between letters, digits and blanks only (m/s), so that neither ``*/`` nor ``</script>`` is left.

    Example:
        >>> plain("rad/s */ </script> größe")
        'rad/s __ <_script> gr__e'
    """
    text = re.sub(r"[^A-Za-z0-9_ .,:;()<>^=+/-]", "_", text)
    return re.sub(r"(?<![A-Za-z0-9 ])/|/(?![A-Za-z0-9 ])", "_", text)


def comment(*lines: str, begin: str = "/*") -> str:
    """Return a block comment of C and JavaScript.

    Example:
        >>> print(comment("one", "two"), end="")
        /* one
         * two */
    """
    return f"{begin} " + "\n * ".join(map(plain, lines)) + " */\n"
