"""Measured gait curves over a stride, from heel strike to heel strike of one foot, and the similarity of curves.

Angles are in degrees (flexion, adduction, internal rotation and dorsiflexion positive; pelvis ``list`` is positive if
the side of the stride is low, ``yaw`` if it is in front). Moments are in N m/kg (internal: from muscles and ligaments),
joint powers (over all axes) in W/kg, and forces on one foot in % of body weight. Band widths are standard deviations
between people. No source for standard deviations of forces was found, so forces have no band.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.files import data_of

_DATA = data_of(__name__)
SOURCES: dict[str, str] = _DATA["sources"]
LABELS: dict[str, str] = _DATA["labels"]
UNITS = {"angle": "degrees", "moment": "N m/kg", "power": "W/kg", "force": "% of weight"}
PELVIS = ("tilt", "list", "yaw")


def in_words(curve: str, kind: str) -> str:
    """Return the name of a curve as text: "hip extension moment", "vertical force", "ankle dorsiflexion"."""
    words = curve.replace("_", " ").replace("ankle flexion", "ankle dorsiflexion")
    return f"{words} {kind}" if kind in ("moment", "force") else f"pelvis {words}" if words in PELVIS else words


class Reference(NamedTuple):
    """A measured curve: its ``kind`` (angle, moment, power, force), its ``name`` in ``Stride``, and its ``source``.

    ``mean`` (K,) is equally spaced over the stride. ``sd`` (K,) is the standard deviation, or None if it is unknown.
    The source is a key of ``SOURCES``, or free text such as a file name. ``tilt`` is the mean pelvic tilt (degrees)
    that was subtracted from hip flexion. ``sd_source`` is the source of ``sd`` if it describes other people than the
    mean ("" otherwise); such an ``sd`` scales differences, but is no band about this mean.
    """

    kind: str
    name: str
    source: str
    mean: Array
    sd: Array | None = None
    tilt: float = 0.0
    sd_source: str = ""

    @property
    def unit(self) -> str:
        """The unit of the curve."""
        return UNITS[self.kind]

    @property
    def curve(self) -> str:
        """The curve name in comparisons: the name in ``Stride``, or "hip_power" for hip power."""
        return f"{self.name}_power" if self.kind == "power" else self.name

    @property
    def label(self) -> str:
        """The source in a legend: author and year."""
        return LABELS.get(self.source, self.source)

    def at(self, s: ArrayLike) -> Array:
        """Return the mean at times s (...), as fractions of the stride.

        Example:
            >>> REFERENCES["knee_flexion"].at([0.0, 0.7]).round(9).tolist()
            [3.9, 57.8]
        """
        at = np.linspace(0.0, 1.0, len(self.mean))
        return np.asarray(np.interp(np.asarray(s, dtype=float), at, self.mean))


def _reference(
    kind: str,
    name: str,
    source: str,
    mean: list[float],
    sd: ArrayLike = 0.0,
    tilt: float = 0.0,
    sd_source: str = "",
) -> Reference:
    """Return a reference; a width of 0 means unknown, and ``tilt`` is subtracted."""
    width = np.broadcast_to(np.asarray(sd, dtype=float), len(mean))
    return Reference(kind, name, source, np.array(mean) - tilt, width if width.any() else None, tilt, sd_source)


# The key of the first reference of a curve is the curve name; others add their source.
REFERENCES: dict[str, Reference] = {}
for _curve in _DATA["curves"]:
    _each = _reference(**_curve)
    REFERENCES[_each.curve if _each.curve not in REFERENCES else f"{_each.curve}, {_each.source}"] = _each


class Likeness(NamedTuple):
    """Similarity of a curve to a reference: ``correlation``, and root mean square difference ``rms`` in their unit."""

    correlation: float
    rms: float


def likeness(curve: ArrayLike, reference: ArrayLike) -> Likeness:
    """Return the similarity of a curve (K,) over a whole stride to a reference, both equally spaced from start to end.

    The correlation of a constant curve is zero.

    Example:
        >>> knee = REFERENCES["knee_flexion"].mean
        >>> round(likeness(2 * knee, knee).correlation, 9), round(likeness(knee + 3, knee).rms, 9)
        (1.0, 3.0)
    """
    expected = np.asarray(reference, dtype=float)
    values = np.asarray(curve, dtype=float)
    resampled = np.interp(np.linspace(0.0, 1.0, len(expected)), np.linspace(0.0, 1.0, len(values)), values)
    rms = float(np.sqrt(np.mean((resampled - expected) ** 2)))
    still = min(np.ptp(resampled), np.ptp(expected)) == 0
    return Likeness(0.0 if still else float(np.corrcoef(resampled, expected)[0, 1]), rms)
