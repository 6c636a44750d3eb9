"""The content of a recording: markers, ground forces and tables over time, with their names, times and rate."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import indices_of, instance_of, name_of, number, one_of, real_array, rows, table
from torsor.base.errors import ModelError, warn
from torsor.human.recordings.axes import checked_axes, rotation, up_axis

MAX_BYTES = 200_000_000  # bytes; size limit of a recording, twice that of ten minutes of two plates at 1 kHz
UNITS = ("m", "cm", "mm")
LOAD_THRESHOLD = 20.0  # N; usual threshold of gait events, below which the centre of pressure is inaccurate
Held = TypeVar("Held")


def unique_names(names: Iterable[str], path: Path, what: str) -> tuple[str, ...]:
    """Return unique names, and warn about duplicates; the second "heel" becomes "heel_2"."""
    all_names = list(names)
    taken, unique = set(all_names), list[str]()
    for name in all_names:
        if name not in unique:
            unique.append(name)
            continue
        k = 2
        while f"{name}_{k}" in taken or f"{name}_{k}" in unique:
            k += 1
        unique.append(f"{name}_{k}")
        note = f"two {what}s are named {name!r}; the later one is now {unique[-1]!r}"
        warn(note, where=path.name, fix="rename it in the file if it is different")
    return tuple(unique)


def checked_names(names: object, where: str, what: str) -> tuple[str, ...]:
    """Return the names of markers, plates or columns, which must be non-empty and unique."""
    checked = tuple(name_of(entry, what, where) for entry in rows(names, where, f"names of {what}s"))
    seen: dict[str, int] = {}
    for k, name in enumerate(checked, start=1):
        if name in seen:
            duplicate = f"two {what}s are named {name!r}: numbers {seen[name]} and {k}"
            raise ModelError(duplicate, value=name, where=where, fix="rename one of them")
        seen[name] = k
    return checked


def checked_times(times: ArrayLike, where: str) -> Array:
    """Return times (K,) (s), which must be finite and increasing."""
    checked = real_array(times, where, "times")
    if checked.ndim != 1 or not len(checked):
        allowed = "one time for each frame, 1 frame or more"
        raise ModelError(f"have shape {checked.shape}", argument="times", where=where, allowed=allowed)
    if not np.isfinite(checked).all():
        frame = int(np.argmin(np.isfinite(checked)))
        raise ModelError(f"frame {frame + 1}: the time is {checked[frame]}", where=where, allowed="finite numbers")
    falls = np.diff(checked) <= 0
    if falls.any():
        k = int(np.argmax(falls)) + 1
        what = f"frame {k + 1}: time {checked[k]:g} s follows {checked[k - 1]:g} s"
        fix = "sort the frames, or remove repeated ones"
        raise ModelError(what, where=where, allowed="increasing times", fix=fix)
    checked.setflags(write=False)
    return checked


def rate_of(times: Array) -> float:
    """Return the rate (Hz) of times (K,), from the mean of equal steps or the median of others; 0 for a single time."""
    if len(times) < 2:
        return 0.0
    steps = np.diff(times)
    alike = np.abs(steps - steps.mean()).max() < 0.5 * steps.mean()  # rounded steps differ by a fraction of a step
    return float(1 / (steps.mean() if alike else np.median(steps)))


def checked_values(values: ArrayLike, shape: tuple[int, ...], where: str, what: str) -> Array:
    """Return a read-only array with the shape ``shape``; NaN marks missing values, and infinity raises ModelError."""
    array = real_array(values, where, what)
    if array.shape != shape:
        raise ModelError(f"have shape {array.shape}", argument=what, where=where, allowed=str(shape))
    if np.isinf(array).any():
        at = [int(k) for k in np.argwhere(np.isinf(array))[0]]
        raise ModelError(f"{what}{at} is infinite", where=where, allowed="finite numbers, NaN where missing")
    array.setflags(write=False)
    return array


class TimedData:
    """Base class of markers, ground forces and tables: unique ``names``, increasing ``times`` (K,), and a rate."""

    names: tuple[str, ...]
    times: Array
    source: str
    _noun: ClassVar[str] = "marker"  # noun for the named items
    _arrays: ClassVar[tuple[str, ...]] = ("positions",)  # (K, names, 3)

    def _store(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check(self, *shape: int) -> None:
        """Check the names, times and arrays (K, names, *shape)."""
        names, times = checked_names(self.names, self.source, self._noun), checked_times(self.times, self.source)
        full = (len(times), len(names), *shape)
        self._store(names=names, times=times)
        self._store(**{field: checked_values(getattr(self, field), full, self.source, field) for field in self._arrays})

    def changed(self, change: Callable[[Array], Array], **others: Any) -> Self:
        """Return the data with ``change`` applied to the arrays (K, names, ...)."""
        found: Self = replace(self, **others, **{each: change(getattr(self, each)) for each in self._arrays})  # type: ignore[type-var]
        return found

    @property
    def rate(self) -> float:
        """The rate (Hz), from the mean of equal time steps or the median of others; 0 for a single row."""
        return rate_of(self.times)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        times = f"{len(self)} frames at {self.rate:g} Hz, {self.times[0]:g} to {self.times[-1]:g} s"
        return f"<{type(self).__name__}: {len(self.names)} {self._noun}s, {times}, of {self.source!r}>"

    def index(self, name: str) -> int:
        """Return the index of a name; raise ModelError with similar names if it is unknown."""
        return indices_of([str(name)], self.names, self.source, self._noun)[0]

    def only(self, names: Sequence[str]) -> Self:
        """Return the named markers, plates or columns, in the order of ``names``.

        Example:
            >>> Markers(["heel", "toe"], [0.0], np.zeros((1, 2, 3))).only(["toe"]).names
            ('toe',)
        """
        chosen = indices_of(names, self.names, self.source, self._noun)
        corners = getattr(self, "corners", None)
        others = {} if corners is None else {"corners": corners[chosen]}
        return self.changed(lambda x: x[:, chosen], names=tuple(self.names[k] for k in chosen), **others)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the data with new names {old: new}; for a pair swapped in all frames, use {a: b, b: a}.

        Example:
            >>> Markers(["heel", "toe"], [0.0], np.zeros((1, 2, 3))).renamed({"toe": "R.Toe"}).names
            ('heel', 'R.Toe')
        """
        new = table(names, self.source, "names")
        indices_of(list(new), self.names, self.source, self._noun)
        return self.changed(np.asarray, names=tuple(new.get(name, name) for name in self.names))

    def between(self, first: float, last: float) -> Self:
        """Return the frames from time ``first`` to time ``last`` (s)."""
        kept = (self.times >= first) & (self.times <= last)
        return self.changed(lambda x: x[kept], times=self.times[kept])


class Gap(NamedTuple):
    """Frames ``first`` to ``last`` (from 0, inclusive) in which a marker is missing, and the ``duration`` (s)."""

    marker: str
    first: int
    last: int
    duration: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class Markers(TimedData):
    """Markers over time: ``positions`` (K, M, 3) (m) of M ``names`` at K ``times`` (s); NaN if missing.

    ``rate`` is in Hz (0: computed from the times). ``axes`` are the directions of x, y and z relative to the person,
    such as "forward up right", or "" if unknown. ``unit`` is the unit of the source file, which ``save`` uses too;
    positions are always in m. ``source`` is the file name in messages.

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
        self._check(3)
        rate = number(self.rate, self.source, "rate (Hz)", least=0.0) or rate_of(self.times)
        one_of(self.unit, UNITS, self.source, "unit")
        self._store(rate=rate, axes=checked_axes(self.axes, self.source))

    @property
    def seen(self) -> Flags:
        """Flags (K, M) of the visible markers in each frame."""
        return np.asarray(~np.isnan(self.positions).any(axis=2))

    def position(self, name: str) -> Array:
        """Return the positions (K, 3) (m) of a marker."""
        return self.positions[:, self.index(name)]

    def in_axes(self, axes: str) -> "Markers":
        """Return the markers in different axes with the same origin, such as "left up forward" (Torsor's human).

        Example:
            >>> markers = Markers(["toe"], [0.0], [[[1.0, 2.0, 3.0]]], axes="forward up right")
            >>> markers.in_axes("left up forward").positions.tolist()
            [[[-3.0, 2.0, 1.0]]]
        """
        R = rotation(self.axes, axes, self.source)
        return replace(self, positions=self.positions @ R.T, axes=axes)

    def with_positions(self, positions: ArrayLike, times: ArrayLike | None = None) -> "Markers":
        """Return the markers with new positions (K, M, 3) (m) and new ``times`` (K,) (s)."""
        when: dict[str, Any] = {} if times is None else {"times": np.asarray(times), "rate": 0.0}
        return replace(self, positions=np.asarray(positions), **when)

    def gaps(self) -> list[Gap]:
        """Return the gaps of all markers, marker by marker.

        The duration is measured from the last frame before the gap to the first frame after it, or to an end of the
        recording.

        Example:
            >>> positions = np.zeros((5, 1, 3))
            >>> positions[1:3] = np.nan
            >>> Markers(["toe"], np.arange(5) * 0.01, positions).gaps()
            [Gap(marker='toe', first=1, last=2, duration=0.03)]
        """
        gap_list, final = list[Gap](), len(self) - 1
        for name, missing in zip(self.names, ~self.seen.T, strict=True):
            for first, last in runs(missing):
                ends = self.times[min(last + 1, final)], self.times[max(first - 1, 0)]
                gap_list.append(Gap(name, first, last, round(float(ends[0] - ends[1]), 9)))
        return gap_list


def checked_markers(value: object, where: str, what: str) -> Markers:
    """Return ``value``; raise ModelError unless it is ``Markers``."""
    allowed = "Markers, such as torsor.human.recordings.load(path).markers"
    return instance_of(value, Markers, where, what, allowed=allowed)


def at_times(t: NDArray[Any], times: NDArray[Any], values: Array, outside: float | None = None) -> Array:
    """Return samples (K, ...) at different times t, by linear interpolation.

    Before the first and after the last sample, the result is this sample, or ``outside`` if it is not None.
    """
    columns = values.reshape(len(values), -1).T
    sampled = np.stack([np.interp(t, times, column, outside, outside) for column in columns], axis=1)
    return sampled.reshape(len(t), *values.shape[1:])


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]


@final
@dataclass(frozen=True, eq=False, repr=False)
class GroundForces(TimedData):
    """Ground forces on a person at P plates or feet, in laboratory axes.

    It contains ``forces`` (K, P, 3) (N) at the centres of pressure ``centers`` (K, P, 3) (m), and free ``moments`` (K,
    P, 3) (N m) about these centres, at K ``times`` (s). The centre of pressure of an unloaded plate is arbitrary;
    ``without_unloaded`` removes it. ``corners`` (P, 4, 3) are the plate corners (m), if the file contains them. For
    ``rate`` (Hz), ``axes`` and ``source``, see ``Markers``.

    Example:
        >>> zero = np.zeros((1, 1, 3))
        >>> feet = GroundForces(["right"], [0.0], zero + [0.0, 700.0, 0.0], zero, zero, axes="forward up right")
        >>> feet.loaded()
        array([[ True]])
    """

    names: tuple[str, ...]
    times: Array
    forces: Array
    centers: Array
    moments: Array
    rate: float = 0.0
    axes: str = ""
    corners: Array | None = None
    source: str = "ground forces"
    _noun: ClassVar[str] = "plate"
    _arrays: ClassVar[tuple[str, ...]] = ("forces", "centers", "moments")

    def __post_init__(self) -> None:
        self._check(3)
        rate = number(self.rate, self.source, "rate (Hz)", least=0.0) or rate_of(self.times)
        self._store(rate=rate, axes=checked_axes(self.axes, self.source))
        if self.corners is not None:
            shape = (len(self.names), 4, 3)
            self._store(corners=checked_values(self.corners, shape, self.source, "corners"))

    @property
    def vertical(self) -> Array:
        """The upward vertical force (K, P) (N), or the magnitude of the force if the axes are unknown."""
        up = up_axis(self.axes)
        return np.linalg.norm(self.forces, axis=2) if up is None else self.forces[:, :, up[0]] * up[1]

    def loaded(self, threshold: float = LOAD_THRESHOLD) -> Flags:
        """Return a mask (K, P) of the plates with a load above ``threshold`` (N)."""
        return self.vertical > threshold

    def in_axes(self, axes: str) -> "GroundForces":
        """Return the forces in different axes with the same origin, such as "left up forward" (Torsor's human)."""
        R = rotation(self.axes, axes, self.source)
        corners = None if self.corners is None else self.corners @ R.T
        return self.changed(lambda x: x @ R.T, axes=axes, corners=corners)

    def without_unloaded(self, threshold: float = LOAD_THRESHOLD) -> "GroundForces":
        """Return the data without unloaded samples, where the load is at most ``threshold`` (N).

        Forces and moments are 0 there, and centres of pressure are NaN.

        Example:
            >>> zero = np.zeros((1, 1, 3))
            >>> GroundForces(["right"], [0.0], zero, zero + 331.7, zero).without_unloaded().centers
            array([[[nan, nan, nan]]])
        """
        least = number(threshold, self.source, "threshold (N)", least=0.0)
        on = self.loaded(least)[:, :, None]
        forces, moments = np.where(on, self.forces, 0.0), np.where(on, self.moments, 0.0)
        return replace(self, forces=forces, centers=np.where(on, self.centers, np.nan), moments=moments)

    def wrench(self, point: object = (0.0, 0.0, 0.0)) -> Array:
        """Return the wrenches (K, P, 6), moment (N m) about a point and force (N), which are 0 if the centre is NaN.

        Example:
            >>> feet = GroundForces(["right"], [0.0], [[[0.0, 700.0, 0.0]]], [[[0.1, 0.0, 0.0]]], np.zeros((1, 1, 3)))
            >>> feet.wrench().tolist()
            [[[0.0, 0.0, 70.0, 0.0, 700.0, 0.0]]]
        """
        about = np.cross(self.centers - np.asarray(point, dtype=float), self.forces) + self.moments
        both = np.concatenate([about, self.forces], axis=2)
        return np.where(np.isnan(about).any(axis=2, keepdims=True), 0.0, both)

    def with_wrench(self, wrench: Array, times: Array | None = None) -> "GroundForces":
        """Return ground forces with new wrenches (K, P, 6) (moment about the origin, and force), at new ``times``.

        Centres of pressure are at the height of the plates, and are NaN without a vertical force.
        """
        vertical = up_axis(self.axes)
        if vertical is None:
            fix = 'pass the axes: torsor.human.recordings.load(path, axes="forward up right")'
            raise ModelError("the vertical axis is unknown", where=self.source, fix=fix)
        up = vertical[0]
        x, y = (up + 1) % 3, (up + 2) % 3  # right-handed with up
        on, force = self.loaded(), wrench[:, :, 3:]
        centers, free = np.zeros_like(force), np.zeros_like(force)
        for k in range(len(self.names)):
            heights = self.centers[on[:, k] if on[:, k].any() else slice(None), k, up]
            centers[:, k, up] = np.median(heights[np.isfinite(heights)]) if np.isfinite(heights).any() else 0.0
        moment = wrench[:, :, :3] - np.cross(centers, force)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            centers[:, :, x] = -moment[:, :, y] / force[:, :, up]
            centers[:, :, y] = moment[:, :, x] / force[:, :, up]
        centers[~np.isfinite(centers).all(axis=2)] = np.nan
        about = np.nan_to_num(centers[:, :, x] * force[:, :, y] - centers[:, :, y] * force[:, :, x])
        free[:, :, up] = moment[:, :, up] - about
        when: dict[str, Any] = {} if times is None else {"times": times, "rate": 0.0}
        return replace(self, forces=force, centers=centers, moments=free, **when)

    def without_offset(self, first: float, last: float) -> "GroundForces":
        """Return forces minus their means from time ``first`` to ``last`` (s), when the plates are empty.

        The means of the moments about the origin are also subtracted, which corrects the centres of pressure.

        Example:
            >>> force = np.array([[[0.0, 10.0, 0.0]], [[0.0, 710.0, 0.0]]])
            >>> zero = np.zeros((2, 1, 3))
            >>> plate = GroundForces(["right"], [0.0, 1.0], force, zero, zero, axes="forward up right")
            >>> plate.without_offset(0.0, 0.5).forces[:, 0, 1].tolist()
            [0.0, 700.0]
        """
        within = (self.times >= first) & (self.times <= last)
        if not within.any():
            allowed = f"within the recording, {self.times[0]:g} to {self.times[-1]:g} s"
            raise ModelError(f"there is no sample from {first:g} to {last:g} s", where=self.source, allowed=allowed)
        wrench = self.wrench()
        return self.with_wrench(wrench - wrench[within].mean(axis=0))


# Columns with these endings are not angles, but translations, forces, moments, positions and translational speeds.
_GROUND = re.compile("ground_(force|torque|moment)")
_NO_ANGLES = ("_tx", "_ty", "_tz", "_vx", "_vy", "_vz", "_px", "_py", "_pz", "_force", "_moment")


@final
@dataclass(frozen=True, eq=False, repr=False)
class MotionTable(TimedData):
    """Columns over time: ``values`` (K, N) of N ``names`` at K ``times`` (s), as in a .mot or .sto file.

    ``in_degrees`` is True or False if the file states the angle unit, otherwise None. Values are not converted, because
    files do not state which columns are angles; ``to_radians`` converts them. ``title`` is the first line of the file,
    and ``source`` is its name.

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
    _noun: ClassVar[str] = "column"
    _arrays: ClassVar[tuple[str, ...]] = ("values",)

    def __post_init__(self) -> None:
        self._check()

    def column(self, name: str) -> Array:
        """Return a column (K,); the path of a coordinate may be omitted, as in "knee_angle_r".

        Example:
            >>> motion = MotionTable(["/jointset/knee_r/knee_angle_r/value"], [0.0], [[0.5]])
            >>> motion.column("knee_angle_r").tolist()
            [0.5]
        """
        if name not in self.names and (short := self.short_names).count(name) == 1:
            return self.values[:, short.index(name)]
        return self.values[:, self.index(name)]

    @property
    def short_names(self) -> list[str]:
        """Names without paths: /jointset/knee_r/knee_angle_r/value becomes knee_angle_r, and speeds end with /speed."""
        return [_short(name) for name in self.names]

    @property
    def angles(self) -> list[int]:
        """Columns whose names indicate angles instead of translations, forces, moments or positions."""
        bare = [name.removesuffix("/speed") for name in self.short_names]
        return [k for k, name in enumerate(bare) if not name.endswith(_NO_ANGLES) and not _GROUND.search(name)]

    def to_radians(self, angles: Sequence[str] | None = None) -> "MotionTable":
        """Return the table with ``angles`` in radians; a table in radians is returned unchanged.

        ``angles`` are the columns to convert, by default all except translations, forces and moments, which are
        recognised by endings such as _tx, _ty, _tz, _vx, _px, _force and _moment.
        """
        return self._converted(False, angles)

    def to_degrees(self, angles: Sequence[str] | None = None) -> "MotionTable":
        """Return the table with ``angles`` in degrees; this is the inverse of ``to_radians``."""
        return self._converted(True, angles)

    def _converted(self, degrees: bool, angles: Sequence[str] | None) -> "MotionTable":
        if self.in_degrees is None:
            fix = "set it: dataclasses.replace(table, in_degrees=True), or False"
            raise ModelError("the file does not state whether angles are in degrees", where=self.source, fix=fix)
        if self.in_degrees == degrees:
            return self
        chosen = self.angles if angles is None else indices_of(angles, self.names, self.source, "column")
        values = np.array(self.values)
        values[:, chosen] = np.rad2deg(values[:, chosen]) if degrees else np.deg2rad(values[:, chosen])
        return replace(self, values=values, in_degrees=degrees)


def _short(name: str) -> str:
    if not name.startswith("/"):
        return name
    *_, last = parts = name.split("/")
    if len(parts) < 3:
        return name
    return parts[-2] if last == "value" else f"{parts[-2]}/{last}"


class Event(NamedTuple):
    """An event at a ``time`` (s), such as "Right Foot Strike"."""

    time: float
    name: str


@dataclass(frozen=True, eq=False)
class Recording:
    """The content of a file: ``markers``, ground ``forces``, a ``table`` over time, and ``events``.

    Access to missing content raises ModelError; ``has`` tests for it.

    Example:
        >>> markers = Markers(["toe"], [0.0], np.zeros((1, 1, 3)))
        >>> recording = Recording("walk.trc", markers)
        >>> recording.has("markers"), recording.has("forces")
        (True, False)
        >>> recording.forces
        Traceback (most recent call last):
        torsor.ModelError: walk.trc: the recording has no ground forces; fix: load the file that has them, often a \
.mot or a .c3d file
    """

    source: str
    found_markers: Markers | None = None
    found_forces: GroundForces | None = None
    found_table: MotionTable | None = None
    events: tuple[Event, ...] = ()

    def has(self, what: str) -> bool:
        """Return whether the file contains "markers", "forces" or a "table"."""
        return getattr(self, f"found_{what}", None) is not None

    @property
    def markers(self) -> Markers:
        """The markers."""
        return self._held(self.found_markers, "markers", "a .trc or a .c3d file")

    @property
    def forces(self) -> GroundForces:
        """The ground forces."""
        return self._held(self.found_forces, "ground forces", "a .mot or a .c3d file")

    @property
    def table(self) -> MotionTable:
        """The columns of a .mot, .sto or .csv file."""
        return self._held(self.found_table, "table of columns", "a .mot or a .sto file")

    def _held(self, content: Held | None, what: str, files: str) -> Held:
        if content is None:
            fix = f"load the file that has them, often {files}"
            raise ModelError(f"the recording has no {what}", where=self.source, fix=fix)
        return content
