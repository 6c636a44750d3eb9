"""A table over time: joint angles, joint moments or other columns, as .mot and .sto files hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, table
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.sampled import checked_names, checked_times, checked_values, index_of, rate_of, short_text

# Columns of these endings are no angles: translations, forces, moments, places, and speeds of translations.
_NO_ANGLES = ("_tx", "_ty", "_tz", "_vx", "_vy", "_vz", "_px", "_py", "_pz", "_force", "_moment")


@dataclass(frozen=True, eq=False, repr=False)
class MotionTable:
    """Columns over time: ``values`` (K, N) of N ``names`` at K ``times`` (s), as a .mot or .sto file has them.

    ``in_degrees`` is what the file says of its angles, or None where it says nothing. Values are kept as they are
    written, since a file does not say which of its columns are angles; ``to_radians`` converts. ``title`` is the first
    line of the file, ``source`` its name.

    Example:
        >>> motion = MotionTable(["knee_angle_r", "pelvis_tx"], [0.0], [[90.0, 0.5]], in_degrees=True)
        >>> motion.to_radians().values.round(4).tolist()
        [[1.5708, 0.5]]
    """

    names: tuple[str, ...]
    times: Array
    values: Array
    in_degrees: bool | None = None
    title: str = ""
    source: str = "table"

    def __post_init__(self) -> None:
        names, times = checked_names(self.names, self.source, "column"), checked_times(self.times, self.source)
        values = checked_values(self.values, (len(times), len(names)), self.source, "values")
        for name, value in (("names", names), ("times", times), ("values", values)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return short_text(self, "columns")

    @property
    def rate(self) -> float:
        """The rate in Hz, by the median step of the times; 0 for a single row."""
        return rate_of(self.times)

    def column(self, name: str) -> Array:
        """Return a column (K,); a coordinate may be named without its path, "knee_angle_r".

        Example:
            >>> motion = MotionTable(["/jointset/knee_r/knee_angle_r/value"], [0.0], [[0.5]])
            >>> motion.column("knee_angle_r").tolist()
            [0.5]
        """
        if name not in self.names:
            short = self.short_names
            if short.count(name) == 1:
                return self.values[:, short.index(name)]
        return self.values[:, index_of(name, self.names, self.source, "column")]

    @property
    def short_names(self) -> list[str]:
        """The names without paths: /jointset/knee_r/knee_angle_r/value is knee_angle_r; speeds end with /speed."""
        return [_short(name) for name in self.names]

    def only(self, names: Sequence[str]) -> "MotionTable":
        """Return some of the columns, in the given order."""
        chosen = indices_of(names, self.names, self.source, "column")
        return replace(self, names=tuple(names), values=self.values[:, chosen])

    def renamed(self, names: Mapping[str, str]) -> "MotionTable":
        """Return the same columns with other names, {old: new}."""
        new = table(names, self.source, "names")
        indices_of(list(new), self.names, self.source, "column")
        return replace(self, names=tuple(new.get(name, name) for name in self.names))

    def between(self, first: float, last: float) -> "MotionTable":
        """Return the rows from time ``first`` to time ``last``, in s."""
        kept = (self.times >= first) & (self.times <= last)
        return replace(self, times=self.times[kept], values=self.values[kept])

    def to_radians(self, angles: Sequence[str] | None = None) -> "MotionTable":
        """Return the table with its ``angles`` in radians; a table whose angles are in radians is returned as it is.

        ``angles`` are the columns to convert. By default these are all but translations, forces and moments, by their
        names: those that end with _tx, _ty, _tz, _vx, _px, _force, _moment and the like.
        """
        return self._converted(False, angles)

    def to_degrees(self, angles: Sequence[str] | None = None) -> "MotionTable":
        """Return the table with its ``angles`` in degrees, the inverse of ``to_radians``."""
        return self._converted(True, angles)

    def _converted(self, degrees: bool, angles: Sequence[str] | None) -> "MotionTable":
        if self.in_degrees is None:
            fix = "say it: dataclasses.replace(table, in_degrees=True), or False"
            raise ModelError(
                describe("the file does not say whether angles are in degrees", where=self.source, fix=fix)
            )
        if self.in_degrees == degrees:
            return self
        chosen = (
            [k for k, name in enumerate(self.short_names) if not is_no_angle(name)]
            if angles is None
            else indices_of(angles, self.names, self.source, "column")
        )
        values = np.array(self.values)
        values[:, chosen] = np.rad2deg(values[:, chosen]) if degrees else np.deg2rad(values[:, chosen])
        return replace(self, values=values, in_degrees=degrees)


def is_no_angle(name: str) -> bool:
    """Whether a column is a translation, a force, a moment or a place, by its name.

    Example:
        >>> is_no_angle("pelvis_tx"), is_no_angle("ground_torque_r_x"), is_no_angle("knee_angle_r")
        (True, True, False)
    """
    bare = name.removesuffix("/speed")
    return bare.endswith(_NO_ANGLES) or "ground_force" in bare or "ground_torque" in bare or "ground_moment" in bare


def _short(name: str) -> str:
    if not name.startswith("/"):
        return name
    *_, last = parts = name.split("/")
    if len(parts) < 3:
        return name
    return parts[-2] if last == "value" else f"{parts[-2]}/{last}"
