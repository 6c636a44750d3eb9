"""Markers on a person: their places over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.base.checks import indices_of, number, one_of, table
from torsor.human.recordings.axes import checked_axes, rotation
from torsor.human.recordings.sampled import checked_names, checked_times, checked_values, index_of, rate_of, short_text

UNITS = ("m", "cm", "mm")


class Gap(NamedTuple):
    """Frames ``first`` to ``last`` (from 0, both missing) in which a marker was not seen, and the ``duration`` in s."""

    marker: str
    first: int
    last: int
    duration: float


@dataclass(frozen=True, eq=False, repr=False)
class Markers:
    """Markers over time: ``positions`` (K, M, 3) in m of M ``names`` at K ``times`` (s); NaN where one was not seen.

    ``rate`` is in Hz (0: that of the times). ``axes`` say where x, y and z point for the person, such as "forward up
    right", or are empty where that is not known. ``unit`` is the unit of the file that it was read from, which
    ``save`` writes again; positions are in m all the same. ``source`` is the name of the file, for messages.

    Example:
        >>> markers = Markers(["heel", "toe"], [0.0, 0.01], np.zeros((2, 2, 3)))
        >>> len(markers), markers.rate, markers.position("toe").shape
        (2, 100.0, (2, 3))
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    rate: float = 0.0
    axes: str = ""
    unit: str = "m"
    source: str = "markers"

    def __post_init__(self) -> None:
        names = checked_names(self.names, self.source, "marker")
        times = checked_times(self.times, self.source)
        positions = checked_values(self.positions, (len(times), len(names), 3), self.source, "positions")
        rate = number(self.rate, self.source, "rate (Hz)", least=0.0) or rate_of(times)
        one_of(self.unit, UNITS, self.source, "unit")
        found = {"names": names, "times": times, "positions": positions, "rate": rate}
        for name, value in (found | {"axes": checked_axes(self.axes, self.source)}).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return short_text(self, "markers")

    @property
    def seen(self) -> Flags:
        """Whether a marker was seen in a frame (K, M)."""
        return np.asarray(~np.isnan(self.positions).any(axis=2))

    def position(self, name: str) -> Array:
        """Return the places (K, 3) of a marker, in m."""
        return self.positions[:, index_of(name, self.names, self.source, "marker")]

    def only(self, names: Sequence[str]) -> "Markers":
        """Return some of the markers, in the given order.

        Example:
            >>> Markers(["heel", "toe"], [0.0], np.zeros((1, 2, 3))).only(["toe"]).names
            ('toe',)
        """
        chosen = indices_of(names, self.names, self.source, "marker")
        return replace(self, names=tuple(self.names[k] for k in chosen), positions=self.positions[:, chosen])

    def renamed(self, names: Mapping[str, str]) -> "Markers":
        """Return the markers with other names, {old: new}; a pair that was swapped in all frames is {a: b, b: a}.

        Example:
            >>> Markers(["heel", "toe"], [0.0], np.zeros((1, 2, 3))).renamed({"toe": "R.Toe"}).names
            ('heel', 'R.Toe')
        """
        new = table(names, self.source, "names")
        indices_of(list(new), self.names, self.source, "marker")
        return replace(self, names=tuple(new.get(name, name) for name in self.names))

    def between(self, first: float, last: float) -> "Markers":
        """Return the frames from time ``first`` to time ``last``, in s."""
        kept = (self.times >= first) & (self.times <= last)
        return replace(self, times=self.times[kept], positions=self.positions[kept])

    def in_axes(self, axes: str) -> "Markers":
        """Return the markers in other axes of the same origin, such as "left up forward", those of Torsor's human.

        Example:
            >>> markers = Markers(["toe"], [0.0], [[[1.0, 2.0, 3.0]]], axes="forward up right")
            >>> markers.in_axes("left up forward").positions.tolist()
            [[[-3.0, 2.0, 1.0]]]
        """
        R = rotation(self.axes, axes, self.source)
        return replace(self, positions=self.positions @ R.T, axes=axes)

    def with_positions(self, positions: ArrayLike, times: ArrayLike | None = None) -> "Markers":
        """Return the same markers at other places (K, M, 3), in m, and other ``times`` (K,), in s."""
        if times is None:
            return replace(self, positions=np.asarray(positions))
        return replace(self, positions=np.asarray(positions), times=np.asarray(times), rate=0.0)

    def gaps(self) -> list[Gap]:
        """Return where markers were not seen, marker by marker.

        The duration is from the last frame in which the marker was seen to the next one, or to an end of the recording.

        Example:
            >>> positions = np.zeros((5, 1, 3))
            >>> positions[1:3] = np.nan
            >>> Markers(["toe"], np.arange(5) * 0.01, positions).gaps()
            [Gap(marker='toe', first=1, last=2, duration=0.03)]
        """
        found, final = [], len(self) - 1
        for name, missing in zip(self.names, ~self.seen.T, strict=True):
            for first, last in runs(missing):
                ends = self.times[min(last + 1, final)], self.times[max(first - 1, 0)]
                found.append(Gap(name, first, last, round(float(ends[0] - ends[1]), 9)))
        return found


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True.

    Example:
        >>> runs(np.array([True, False, True, True]))
        [(0, 0), (2, 3)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]
