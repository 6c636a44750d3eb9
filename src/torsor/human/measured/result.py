"""What inverse kinematics found: the motion, how far the markers are from it, and what is wrong with the recording."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import listing
from torsor.human.measured.fitting import Fit, Fitted, Mask
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.skeleton import Skeleton
from torsor.human.recordings.markers import runs
from torsor.robot.robot import Robot

FAR = 0.04  # m: a marker that is further away is worth a look (people are fitted to 10 to 20 mm, see the page)
SWAPPED = 0.25  # two markers are swapped if exchanging them leaves this fraction of their squared distances


@dataclass(frozen=True, eq=False)
class MeasuredMotion:
    """A measured motion of K frames.

    ``q`` (K, nq) of the ``body``, at ``times`` (K,) (s); ``errors`` (K, M), the distances (m) of the ``markers`` from
    where they were measured, NaN where they were not seen; ``converged`` and ``determined`` (K,): a frame is not
    determined if its markers leave a coordinate open, which then comes from the frames around it. ``swapped`` are
    (first frame, last frame, marker, marker) whose names were exchanged.
    """

    body: Robot | Skeleton
    markers: MarkerSet
    times: Array
    q: Array
    errors: Array
    converged: Mask
    determined: Mask
    swapped: tuple[tuple[int, int, str, str], ...] = ()

    @cached_property
    def rms(self) -> Array:
        """The root mean square distance (K,) of the markers of each frame, in m; NaN for a frame without markers."""
        seen = np.isfinite(self.errors)
        total = np.where(seen, self.errors, 0.0) ** 2
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(total.sum(axis=1) / seen.sum(axis=1)))

    @property
    def marker_rms(self) -> dict[str, float]:
        """The root mean square distance of each marker over all frames, in m."""
        seen = np.isfinite(self.errors)
        total = (np.where(seen, self.errors, 0.0) ** 2).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return dict(zip(self.markers.names, np.sqrt(total).tolist(), strict=True))

    @property
    def worst(self) -> tuple[int, str, float]:
        """The frame, the name and the distance (m) of the marker that is furthest from where it was measured."""
        frame, marker = np.unravel_index(int(np.nanargmax(self.errors)), self.errors.shape)
        return int(frame), self.markers.names[marker], float(self.errors[frame, marker])

    def coordinate(self, name: str) -> Array:
        """Return one coordinate (K,) by name."""
        return self.q[:, self.body.coordinate_names.index(name)]

    @property
    def warnings(self) -> list[str]:
        """What a user should know, in sentences: swapped markers, frames that are not determined or converged.

        Frames count from 1 there, as in files.
        """
        found = [
            f"markers {a!r} and {b!r} look swapped in frames {first + 1} to {last + 1}; fix: exchange their names there"
            for first, last, a, b in self.swapped
        ]
        for what, good in (("did not converge", self.converged), ("are not determined by markers", self.determined)):
            if not good.all():
                bad = np.flatnonzero(~good)
                found.append(f"{len(bad)} of {len(good)} frames {what}: {listing(map(str, bad + 1))}")
        return found

    def __str__(self) -> str:
        frame, name, distance = self.worst
        whole = np.sqrt(np.nanmean(self.errors**2))
        lines = [
            f"{len(self.q)} frames, {self.errors.shape[1]} markers: {1000 * whole:.1f} mm RMS, "
            f"worst {1000 * distance:.1f} mm ({name}, frame {frame + 1})"
        ]
        return "\n".join(lines + self.warnings)


def swapped_pairs(
    fit: Fit, found: Fitted, measured: Array, seen: Mask, names: tuple[str, ...]
) -> tuple[tuple[int, int, str, str], ...]:
    """Return (first frame, last frame, marker, marker) where two markers fit much better with exchanged names.

    The places of the markers in a doubtful frame are taken from the nearest frames that fit well, where there are any.
    """
    places = fit.places(found.y)
    errors = np.where(seen, np.linalg.norm(places - measured, axis=2), 0.0)
    doubtful = errors.max(axis=1) > FAR
    if not doubtful.any():
        return ()
    if not doubtful.all():
        frames, good = np.arange(len(places)), np.flatnonzero(~doubtful)
        y = np.stack([np.interp(frames, good, column) for column in found.y[good].T], axis=1)
        places = fit.places(y)
        errors = np.where(seen, np.linalg.norm(places - measured, axis=2), 0.0)
    found_in: dict[tuple[str, str], Mask] = {}
    for k in np.flatnonzero(doubtful).tolist():
        far = np.flatnonzero(errors[k] > FAR).tolist()
        for i, one in enumerate(far):
            for two in far[i + 1 :]:
                now = errors[k, one] ** 2 + errors[k, two] ** 2
                crossed = places[k, [one, two]] - measured[k, [two, one]]
                if np.sum(crossed**2) < SWAPPED * now:
                    found_in.setdefault((names[one], names[two]), np.zeros(len(places), dtype=bool))[k] = True
    listed = [(first, last, a, b) for (a, b), flags in found_in.items() for first, last in runs(flags)]
    return tuple(sorted(listed))
