"""Inverse kinematics: the motion of a body from the places of markers, all frames at once."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, instance_of, number
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.human.measured.fitting import LEAST_DAMPING, Fit, Fitted, Mask, fit_frames
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.posing import standing_start
from torsor.human.measured.preparing import coordinates_of, prepared
from torsor.human.measured.result import MeasuredMotion, swapped_pairs
from torsor.human.measured.skeleton import Skeleton
from torsor.human.measured.smoothing import fit_smoothly
from torsor.human.recordings import Markers
from torsor.human.recordings.axes import up_axis
from torsor.mechanism import Mechanism
from torsor.robot.robot import Robot

WHERE = "inverse kinematics"
STRIDE = 16  # frames between those that are fitted first, from the standing posture; others start between them
# A frame is doubtful if its RMS is this many times the median, plus a bit of rounding (m); a cost is better below this
# fraction; better frames start others, for so many waves.
WORSE, TINY, BETTER, MOST_WAVES = 1.5, 1e-6, 0.95, 8
JUMP = 1.2  # rad, m: second differences of coordinates above it are looked at again
SPAN = 10.0  # m: markers of one frame that are further apart are not in m


def inverse_kinematics(
    body: Robot | Skeleton,
    markers: MarkerSet,
    recording: Markers,
    *,
    frozen: Mapping[str, float] | None = None,
    tied: Mapping[str, str] | None = None,
    ranges: bool = True,
    smooth: float = 0.0,
    tolerance: float = 1e-6,
    start: ArrayLike | None = None,
) -> MeasuredMotion:
    """Return the motion that brings the markers of a body closest to a recording.

    Minimises the sum of weight * distance^2 (m^2) over markers and frames, with ``smooth`` (m^2/rad^2) times the
    squared second differences of the coordinates added. Derivatives are exact; coordinates stay within ``lower`` and
    ``upper`` of the body, unless ``ranges`` is False. A marker that a frame does not have (NaN) is left out there.
    Markers of the recording that the set does not have are not used.

    Coordinates that no marker depends on keep their value in ``start`` (nq; 0 by default), as do those in ``frozen``
    {coordinate: value}. ``tied`` {coordinate: other} are equal to the other one; by default the four joints of the
    spine of ``library.human`` bend alike. Of an OpenSim skeleton (``skeleton``, with its own ``markers``), coordinates
    start at their defaults, locked ones stay there, and those that follow others do so.

    Frames converge when no coordinate changes by more than ``tolerance`` (rad, m). The result names frames that did not
    converge or are not determined, and pairs of swapped markers.

    Example:
        >>> arm = torsor.library.planar_chain(2, length=1.0)
        >>> places = {"elbow": (arm.links[0].name, (1, 0, 0)), "hand": (arm.links[1].name, (1, 0, 0))}
        >>> seen = Markers(["elbow", "hand"], [0.0], [[[0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]]])
        >>> inverse_kinematics(arm, MarkerSet(places), seen).q.round(6).tolist()
        [[1.570796, 1.570796]]
    """
    tree = body.tree if isinstance(body, Skeleton) else body
    instance_of(tree, Robot, WHERE, "body", allowed="a Robot, such as torsor.library.human(), or a Skeleton")
    used, times, positions = checked_recording(markers, recording)
    check_upright(tree, recording.axes, recording.source)
    markers.links(tree)
    smooth, tolerance = number(smooth, WHERE, "smooth", least=0.0), number(tolerance, WHERE, "tolerance", above=0.0)
    count = len(body.coordinate_names)
    posture = None if start is None else frozen_array(start, (count,), WHERE, "start")
    fit = prepared(body, used, posture, frozen, tied, ranges=ranges)
    seen: Mask = np.asarray(np.isfinite(positions).all(axis=2))
    weights = np.where(seen, [used.weight(name) for name in used.names], 0.0)
    measured = np.where(seen[..., None], positions, 0.0)
    found = fitted_recording(fit, measured, weights, tolerance)
    if smooth > 0:
        found = fit_smoothly(fit, found, measured, weights, smooth, tolerance)
    errors = np.where(seen, np.linalg.norm(fit.places(found.y) - measured, axis=2), np.nan)
    swaps = swapped_pairs(fit, found, measured, seen, used.names)
    q = coordinates_of(body, fit, found.y, posture, frozen)
    result = MeasuredMotion(body, used, times, q, errors, found.converged, found.determined, swaps)
    for line in result.warnings:
        warn(f"{WHERE}: {line}")
    return result


def checked_recording(markers: MarkerSet, recording: Markers) -> tuple[MarkerSet, Array, Array]:
    """Return the markers that a recording has, its times (K,) and their positions (K, M, 3) in m."""
    instance_of(markers, MarkerSet, WHERE, "markers", allowed="a MarkerSet")
    instance_of(
        recording, Markers, WHERE, "recording", allowed="Markers, such as torsor.human.recordings.load(path).markers"
    )
    names, times, positions = list(recording.names), recording.times, recording.positions
    if not len(times):
        raise ModelError(describe("the recording has no frame", where=recording.source))
    known = [name for name in markers.names if name in names]
    if len(known) < 3 and len(known) < len(markers.names):
        found = f"the recording has {len(known)} of the markers of the set ({listing(markers.names)})"
        fix = "name the markers as in the recording: it has " + listing(names)
        raise ModelError(describe(found, where=WHERE, allowed="3 or more", fix=fix))
    chosen = positions[:, [names.index(name) for name in known]]
    if not np.isfinite(chosen).all():
        chosen = np.where(np.isfinite(chosen).all(axis=2, keepdims=True), chosen, np.nan)
    gone = np.asarray(np.isnan(chosen[..., 0]).all(axis=0))
    never = [name for name, lost in zip(known, gone, strict=True) if lost]
    if len(never) == len(known):
        raise ModelError(describe("no frame has any marker", where=WHERE, fix="check the names and the file"))
    some = chosen[np.isfinite(chosen).any(axis=(1, 2))][::STRIDE]
    span = float(np.median((np.nanmax(some, axis=1) - np.nanmin(some, axis=1)).max(axis=1)))
    if span > SPAN:
        found, fix = f"markers of one frame are {span:.0f} m apart", "give positions in m: those in mm divided by 1000"
        raise ModelError(describe(found, where=recording.source, allowed=f"up to {SPAN:.0f} m", fix=fix))
    return markers.only(name for name in known if name not in never), times, chosen[:, [n not in never for n in known]]


def check_upright(body: Mechanism, axes: str, source: str) -> None:
    """Raise ModelError if the vertical axis of a recording is not that of a body's gravity.

    Example:
        >>> check_upright(torsor.library.human(), "forward left up", "walk.trc")
        Traceback (most recent call last):
        torsor.ModelError: walk.trc: up is z, and gravity of the body is [0.0, -9.81, 0.0]; fix: turn the \
recording, in_axes("left up forward")
    """
    up = up_axis(axes)
    if up is None or not body.gravity.any():
        return
    if -up[1] * body.gravity[up[0]] < 0.7 * np.linalg.norm(body.gravity):
        found = f"up is {'-' if up[1] < 0 else ''}{'xyz'[up[0]]}, and gravity of the body is {body.gravity.tolist()}"
        raise ModelError(describe(found, where=source, fix='turn the recording, in_axes("left up forward")'))


def fitted_recording(fit: Fit, measured: Array, weights: Array, tolerance: float) -> Fitted:
    """Return the fit of all frames: some from the posture, all others from what lies between those."""
    count = len(measured)
    first: NDArray[np.intp] = np.unique(np.append(np.arange(0, count, STRIDE), count - 1))
    y = standing_start(fit, measured[first], weights[first])
    coarse = fit_frames(fit, y, measured[first], weights[first], tolerance)
    good = coarse.converged & coarse.determined
    if good.any():
        known, values = first[good], coarse.y[good]
        y = np.stack([np.interp(np.arange(count), known, column) for column in values.T], axis=1)
    else:
        y = standing_start(fit, measured, weights)
    found = fit_frames(fit, y, measured, weights, tolerance, LEAST_DAMPING)
    for _ in range(MOST_WAVES):
        following = _from_neighbours(fit, found, measured, weights, tolerance)
        if following is None:
            break
        found = following
    return _between_determined(fit, found, measured, weights, tolerance)


def _between_determined(fit: Fit, found: Fitted, measured: Array, weights: Array, tolerance: float) -> Fitted:
    """Return the fit with frames that are not determined, or jump, as near as possible to the frames around them.

    A frame with few markers may have two solutions that fit as well, such as a forearm that is turned the other way.
    """
    jumps = np.zeros(len(found.y), dtype=bool)
    jumps[1:-1] = np.abs(np.diff(found.y, 2, axis=0)).max(axis=1) > JUMP
    good = np.flatnonzero(found.determined & found.converged & ~jumps)
    open_ = np.flatnonzero(~found.determined | jumps)
    if not len(good) or not len(open_):
        return found
    start = np.stack([np.interp(open_, good, column) for column in found.y[good].T], axis=1)
    again = fit_frames(fit, start, measured[open_], weights[open_], tolerance)
    fits = again.cost <= found.cost[open_] / BETTER
    y, cost, converged, determined = (each.copy() for each in vars(found).values())
    chosen = open_[fits]
    y[chosen], cost[chosen], converged[chosen] = again.y[fits], again.cost[fits], again.converged[fits]
    determined[chosen] = again.determined[fits]
    return Fitted(y, cost, converged, determined)


def _from_neighbours(fit: Fit, found: Fitted, measured: Array, weights: Array, tolerance: float) -> Fitted | None:
    """Return a better fit of doubtful frames, from the nearest frames that are good; None if there is none.

    A frame in another minimum than its neighbours, with an elbow bent the other way, fits much worse than they do.
    """
    rms = np.sqrt(found.cost / np.maximum(weights.sum(axis=1), 1e-30))
    doubtful = ~found.converged | (rms > WORSE * np.median(rms) + TINY)
    good, bad = np.flatnonzero(~doubtful), np.flatnonzero(doubtful)
    if not len(good) or not len(bad):
        return None
    y, cost, converged, determined = (each.copy() for each in vars(found).values())
    after = np.searchsorted(good, bad)
    improved = False
    for nearest in (good[np.minimum(after, len(good) - 1)], good[np.maximum(after - 1, 0)]):
        again = fit_frames(fit, found.y[nearest], measured[bad], weights[bad], tolerance)
        better = again.cost < cost[bad] * BETTER
        improved |= bool(better.any())
        chosen = bad[better]
        y[chosen], cost[chosen] = again.y[better], again.cost[better]
        converged[chosen], determined[chosen] = again.converged[better], again.determined[better]
    return Fitted(y, cost, converged, determined) if improved else None
