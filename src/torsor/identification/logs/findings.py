"""What is suspicious in a log: the kind, the coordinate, the evidence as a number and in words, and the fix."""

from typing import NamedTuple

from torsor.base.errors import describe


class LogFinding(NamedTuple):
    """A likely mistake of a log: its ``kind``, the ``place`` (a coordinate or a file), ``found``, ``fix``, a ``value``.

    ``value`` is the number that the finding rests on, in the units that ``found`` names. Kinds are "missing", "time",
    "gap", "constant", "still", "stuck", "spike", "saturation", "quantisation", "limit", "degrees", "rate", "delay",
    "sign", "swapped", "offset", "scale", "unexplained", "closure" (loops that cannot be closed) and "short".

    Example:
        >>> print(LogFinding("constant", "log.csv: tau 'elbow'", "all 900 samples are 0", "check the column", 0.0))
        log.csv: tau 'elbow': all 900 samples are 0; fix: check the column
    """

    kind: str
    place: str
    found: str
    fix: str
    value: float

    def __str__(self) -> str:
        return describe(self.found, where=self.place, fix=self.fix)
