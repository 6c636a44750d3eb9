"""Forces of the ground on a person, from force plates or feet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import indices_of, number, table
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.axes import checked_axes, rotation, up_axis
from torsor.human.recordings.sampled import checked_names, checked_times, checked_values, index_of, rate_of, short_text

LOADED = 20.0  # N: below it, the centre of pressure is a quotient of small numbers (the usual threshold of gait events)


@dataclass(frozen=True, eq=False, repr=False)
class GroundForces:
    """Forces of the ground on a person at P plates or feet, in the axes of the laboratory.

    ``forces`` (K, P, 3) in N at ``centers`` (K, P, 3), the centres of pressure, in m, and ``moments`` (K, P, 3), free
    moments about these centres, in N m, at K ``times`` (s). Where a plate is not loaded, its centre of pressure may
    be anything; ``without_unloaded`` removes it. ``corners`` (P, 4, 3) are those of the plates, in m, where the file
    has them. ``rate`` (Hz), ``axes`` and ``source`` are as in ``Markers``.

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

    def __post_init__(self) -> None:
        where = self.source
        names, times = checked_names(self.names, where, "plate"), checked_times(self.times, where)
        shape = (len(times), len(names), 3)
        found: dict[str, object] = {"names": names, "times": times, "axes": checked_axes(self.axes, where)}
        for name in ("forces", "centers", "moments"):
            found[name] = checked_values(getattr(self, name), shape, where, name)
        found["rate"] = number(self.rate, where, "rate (Hz)", least=0.0) or rate_of(times)
        if self.corners is not None:
            found["corners"] = checked_values(self.corners, (len(names), 4, 3), where, "corners")
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return short_text(self, "plates or feet")

    @property
    def vertical(self) -> Array:
        """The vertical force (K, P) in N, positive upward; the length of the force where the axes are not known."""
        up = up_axis(self.axes)
        return np.linalg.norm(self.forces, axis=2) if up is None else self.forces[:, :, up[0]] * up[1]

    def loaded(self, threshold: float = LOADED) -> Flags:
        """Return whether plates carry more than ``threshold`` N (K, P)."""
        return self.vertical > threshold

    def index(self, name: str) -> int:
        """Return the index of a plate or foot."""
        return index_of(name, self.names, self.source, "plate")

    def only(self, names: Sequence[str]) -> "GroundForces":
        """Return some of the plates, in the given order."""
        k = indices_of(names, self.names, self.source, "plate")
        corners = None if self.corners is None else self.corners[k]
        forces, centers, moments = (each[:, k] for each in (self.forces, self.centers, self.moments))
        chosen = tuple(self.names[each] for each in k)
        return replace(self, names=chosen, corners=corners, forces=forces, centers=centers, moments=moments)

    def renamed(self, names: Mapping[str, str]) -> "GroundForces":
        """Return the same forces with other names, {old: new}; swapped feet are {"right": "left", "left": "right"}.

        Example:
            >>> zero = np.zeros((1, 2, 3))
            >>> feet = GroundForces(["right", "left"], [0.0], zero, zero, zero)
            >>> feet.renamed({"right": "left", "left": "right"}).names
            ('left', 'right')
        """
        new = table(names, self.source, "names")
        indices_of(list(new), self.names, self.source, "plate")
        return replace(self, names=tuple(new.get(name, name) for name in self.names))

    def between(self, first: float, last: float) -> "GroundForces":
        """Return the samples from time ``first`` to time ``last``, in s."""
        kept = (self.times >= first) & (self.times <= last)
        return replace(self, times=self.times[kept], **{name: getattr(self, name)[kept] for name in ARRAYS})

    def in_axes(self, axes: str) -> "GroundForces":
        """Return the forces in other axes of the same origin, such as "left up forward", those of Torsor's human."""
        R = rotation(self.axes, axes, self.source)
        corners = None if self.corners is None else self.corners @ R.T
        return replace(self, axes=axes, corners=corners, **{name: getattr(self, name) @ R.T for name in ARRAYS})

    def without_unloaded(self, threshold: float = LOADED) -> "GroundForces":
        """Return forces and moments as 0, and centres of pressure as NaN, where no more than ``threshold`` N act.

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
        """Return the moment (N m) about a point and the force (N) of each plate, (K, P, 6); 0 where a centre is NaN.

        Example:
            >>> feet = GroundForces(["right"], [0.0], [[[0.0, 700.0, 0.0]]], [[[0.1, 0.0, 0.0]]], np.zeros((1, 1, 3)))
            >>> feet.wrench().tolist()
            [[[0.0, 0.0, 70.0, 0.0, 700.0, 0.0]]]
        """
        about = np.cross(self.centers - np.asarray(point, dtype=float), self.forces) + self.moments
        found = np.concatenate([about, self.forces], axis=2)
        return np.where(np.isnan(about).any(axis=2, keepdims=True), 0.0, found)

    def with_wrench(self, wrench: Array, times: Array | None = None) -> "GroundForces":
        """Return ground forces with other moments about the origin and forces (K, P, 6), at other ``times``.

        Centres of pressure stay at the height at which the plates have theirs; NaN without a vertical force.
        """
        vertical = up_axis(self.axes)
        if vertical is None:
            fix = 'say the axes: torsor.human.recordings.load(path, axes="forward up right")'
            raise ModelError(describe("it is not known which axis is vertical", where=self.source, fix=fix))
        up = vertical[0]
        x, y = (up + 1) % 3, (up + 2) % 3  # with up, a right-handed set
        on, force = self.loaded(), wrench[:, :, 3:]
        centers, free = np.zeros_like(force), np.zeros_like(force)
        for k in range(len(self.names)):
            own = self.centers[on[:, k] if on[:, k].any() else slice(None), k, up]
            centers[:, k, up] = np.median(own[np.isfinite(own)]) if np.isfinite(own).any() else 0.0
        moment = wrench[:, :, :3] - np.cross(centers, force)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            centers[:, :, x] = -moment[:, :, y] / force[:, :, up]
            centers[:, :, y] = moment[:, :, x] / force[:, :, up]
        centers[~np.isfinite(centers).all(axis=2)] = np.nan
        about = np.nan_to_num(centers[:, :, x] * force[:, :, y] - centers[:, :, y] * force[:, :, x])
        free[:, :, up] = moment[:, :, up] - about
        rate = self.rate if times is None else 0.0
        when = self.times if times is None else times
        return replace(self, times=when, rate=rate, forces=force, centers=centers, moments=free)

    def without_offset(self, first: float, last: float) -> "GroundForces":
        """Return forces less their means from time ``first`` to ``last`` (s), when nobody is on the plates.

        Moments about the origin lose their means too, so that centres of pressure are corrected with the forces.

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
            raise ModelError(describe(f"no sample from {first:g} to {last:g} s", where=self.source, allowed=allowed))
        wrench = self.wrench()
        return self.with_wrench(wrench - wrench[within].mean(axis=0))


ARRAYS = ("forces", "centers", "moments")
