"""The part of a recording in which the person stands still, for scaling."""

import numpy as np

from torsor.base.checks import instance_of, positive
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.markers import Markers

STILL = 0.05  # m/s: sway of quiet standing is below it, the slowest walk far above
WITHIN = 0.1  # s: the time over which speeds are taken, so that noise of single frames does not count


def standing(markers: Markers, shortest: float = 0.5, *, still: float = STILL) -> Markers:
    """Return the longest part in which no marker is faster than ``still`` m/s, at least ``shortest`` s long.

    Without such a part, as in most recordings of walking, an error says so: scaling needs a standing trial.

    Example:
        >>> t = np.arange(300) / 100
        >>> x = np.where(t < 1.0, 0.0, t - 1.0)
        >>> len(standing(Markers(["toe"], t, np.stack([x, x, x], axis=1)[:, None])))
        101
    """
    instance_of(markers, Markers, "standing", "markers")
    if not markers.seen.any():
        raise ModelError(describe("no marker is ever seen", where=markers.source, fix="export the markers again"))
    shortest, still = positive(shortest, markers.source, "shortest (s)"), positive(still, markers.source, "still (m/s)")
    span = max(1, round(WITHIN * markers.rate))
    if len(markers) <= span:
        text = f"{len(markers)} frames, {markers.times[-1] - markers.times[0]:g} s"
        raise ModelError(describe(text, where=markers.source, allowed=f"{shortest:g} s of standing"))
    moved = np.linalg.norm(markers.positions[span:] - markers.positions[:-span], axis=2)
    took = markers.times[span:] - markers.times[:-span]
    speeds = np.nanmax(np.where(np.isnan(moved), -np.inf, moved), axis=1) / took
    best, start = (0, 0), 0
    for k, fast in enumerate([*(speeds > still), True]):
        if fast:
            best = max(best, (k - start, -start))
            start = k + 1
    count, first = best[0], -best[1]
    last = first + count - 1 + span
    if not count or markers.times[min(last, len(markers) - 1)] - markers.times[first] < shortest:
        k = int(np.argmin(speeds))
        text = f"no standing of {shortest:g} s: the slowest moment, {markers.times[k]:g} s, has {speeds[k]:.2g} m/s"
        fix = "load the standing trial of this person, or give lengths of limbs"
        raise ModelError(describe(text, where=markers.source, allowed=f"{still:g} m/s or less", fix=fix))
    return markers.between(float(markers.times[first]), float(markers.times[last]))
