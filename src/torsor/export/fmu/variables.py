"""The variables of an FMU. Their order is that of value references, of the C code and of the model description."""

import re
from dataclasses import dataclass

# Names that need no quotes, by the grammar of structured names of the standard.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"'": "\\'", '"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True)
class Variable:
    """A variable of type Float64 (FMI 3) or Real (FMI 2).

    ``kind`` is "time", "parameter", "input", "state", "rate" or "output". ``start`` is its value at the start where it
    is not computed, ``least`` the smallest value allowed. ``state`` is the value reference of the state whose rate it
    is. ``unit`` is one of ``UNITS``, or empty.
    """

    name: str
    kind: str
    unit: str
    description: str
    start: float | None = None
    least: float | None = None
    state: int | None = None

    @property
    def causality(self) -> str:
        """Its causality; states and accelerations are outputs too."""
        if self.kind in ("rate", "state"):
            return "local" if self.name.startswith("der(") else "output"
        return {"time": "independent"}.get(self.kind, self.kind)

    @property
    def variability(self) -> str:
        """Its variability: parameters may change between steps."""
        return "tunable" if self.kind == "parameter" else "continuous"

    @property
    def initial(self) -> str | None:
        """How its first value is found, where the standard wants it said."""
        return {"parameter": "exact", "state": "exact", "rate": "calculated", "output": "calculated"}.get(self.kind)


def structured(*parts: str) -> str:
    r"""Return a name with levels; parts that are no identifiers are in quotes.

    A control character becomes its number in braces.

    Example:
        >>> structured("q", "base", "qx"), structured("tau", "left-hip"), structured("q", "a\tb")
        ('q.base.qx', "tau.'left-hip'", "q.'a{9}b'")
    """
    return ".".join(part if _PLAIN.fullmatch(part) else _quoted(part) for part in parts if part)


def levels(name: str) -> list[str]:
    """Return the levels of the name of a coordinate, which slashes separate.

    Example:
        >>> levels("base/qx"), levels("/odd")
        (['base', 'qx'], ['/odd'])
    """
    parts = name.split("/")
    return parts if all(parts) else [name]


def _quoted(part: str) -> str:
    return "'" + "".join(_ESCAPES.get(c, c) if c.isprintable() else f"{{{ord(c)}}}" for c in part) + "'"


def is_structured(name: str) -> bool:
    """Return whether a name is within the grammar of structured names, which knows ASCII only.

    Example:
        >>> is_structured("q.'left-hip'"), is_structured("q.'größe'")
        (True, False)
    """
    return name.isascii() and "`" not in name
