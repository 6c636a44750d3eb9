"""Inverse kinematics: the motion of a body from marker positions, for all frames together."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, instance_of, number
from torsor.base.errors import ModelError, listing, warn
from torsor.human.measured.fitting import (
    MIN_DAMPING,
    Fit,
    Fitted,
    coordinates_of,
    fit_frames,
    fit_smoothly,
    prepared,
)
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.skeleton import Skeleton
from torsor.human.recordings import Markers
from torsor.human.recordings.axes import HUMAN, OPENSIM, up_axis
from torsor.human.recordings.recording import at_times, checked_markers, runs
from torsor.mechanism import Mechanism
from torsor.robot.robot import Robot


def rigid_fit(model: Array, measured: Array, weights: Array) -> tuple[Array, Array]:
    """Return the rotations (K, 3, 3) and translations (K, 3) that best map points (M, 3) to points (K, M, 3).

    ``weights`` has shape (K, M). The method (Kabsch 1976) uses a singular value decomposition.
    """
    total = np.maximum(weights.sum(axis=1), 1e-30)[:, None]
    middle = weights @ model / total
    centre = np.einsum("km,kmi->ki", weights, measured) / total
    spread = np.einsum("km,kmi,kmj->kij", weights, measured - centre[:, None], model[None] - middle[:, None])
    U, _, Vt = np.linalg.svd(spread)
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    R = U @ Vt
    return R, centre - np.einsum("kij,kj->ki", R, middle)


def standing_start(fit: Fit, measured: Array, weights: Array) -> Array:
    """Return the variables (K, n) of the standing posture, moved to the markers of each frame.

    The body is moved only if its first six joints are three prismatic and three revolute joints at right angles.
    """
    body, layout = fit.robot, fit.layout
    y = np.tile(fit.standing, (len(measured), 1))
    ways = _free_root(body)
    if ways is None or min(layout.variables[:6]) < 0:
        return y
    upright = layout.positions(fit.standing)
    upright[:6] = 0.0
    poses = body.poses(upright)
    link_poses = poses[list(layout.links)]
    model = np.einsum("mij,mj->mi", link_poses[:, :3, :3], fit.local) + link_poses[:, :3, 3]
    R, t = rigid_fit(model, measured, weights)
    x = np.tile(upright, (len(measured), 1))
    x[:, 3:6] = _angles(R, ways[3:])
    x[:, :3] = (R @ poses[5, :3, 3] + t - body.poses(x)[:, 5, :3, 3]) @ np.linalg.inv(ways[:3])
    for k in range(6):
        slope, constant = 1.0, 0.0  # coefficients of the position as a linear function of its variable
        for curve in layout.curves[k] if layout.curves else ():
            by, at = curve.line or (1.0, 0.0)
            slope, constant = by * slope, by * constant + at
        y[:, layout.variables[k]] = (x[:, k] - constant) / slope
    return y


def _free_root(body: Robot) -> Array | None:
    """Return the axes (6, 3) of the three prismatic and three revolute base joints in the zero posture.

    The result is None if there are no such joints or if the axes of either three are not orthogonal.
    """
    kinds = [joint.type for joint in body.joints[:6]]
    if kinds != ["prismatic"] * 3 + ["revolute"] * 3 or list(body.parents[:6]) != [-1, 0, 1, 2, 3, 4]:
        return None
    turns = body.poses(np.zeros(body.nq))[:6, :3, :3]
    ways = np.einsum("kij,kj->ki", turns, np.array([joint.axis for joint in body.joints[:6]]))
    square = all(np.allclose(axes @ axes.T, np.eye(3), atol=1e-9) for axes in (ways[:3], ways[3:]))
    return ways if square else None


def _angles(R: Array, axes: Array) -> Array:
    """Return the angles (K, 3) of rotations R about three successive perpendicular axes."""
    turned = axes @ R @ axes.T
    first = np.arctan2(-turned[:, 1, 2], turned[:, 2, 2])
    third = np.arctan2(-turned[:, 0, 1], turned[:, 0, 0])
    second = np.arcsin(np.clip(turned[:, 0, 2], -1, 1))
    return float(np.sign(np.linalg.det(axes))) * np.stack([np.unwrap(first), second, np.unwrap(third)], axis=1)


# m; larger errors of one marker, and of all markers (RMS), should be checked; the values are those of OpenSim's
# guidelines.
LARGE_MARKER_ERROR, LARGE_RMS = 0.04, 0.02
SWAP_FRACTION = 0.25  # two markers are swapped if exchanging them reduces their squared distances to this fraction


@dataclass(frozen=True, eq=False)
class MeasuredMotion:
    """A measured motion of K frames.

    It contains ``q`` (K, nq) of the ``body`` at ``times`` (K,) (s). ``errors`` (K, M) are the distances (m) of the
    ``markers`` from their measured positions, NaN for missing markers. ``converged`` and ``determined`` (K,) are flags:
    a frame is not determined if its markers leave a coordinate undefined, which is then interpolated from neighbouring
    frames. ``swapped`` lists (first frame, last frame, marker, marker) for exchanged names, with frames from 0.
    """

    body: Robot | Skeleton
    markers: MarkerSet
    times: Array
    q: Array
    errors: Array
    converged: Flags
    determined: Flags
    swapped: tuple[tuple[int, int, str, str], ...] = ()

    @cached_property
    def rms(self) -> Array:
        """The root mean square marker distance (K,) (m) of each frame; NaN for frames without markers."""
        seen = np.isfinite(self.errors)
        total = np.where(seen, self.errors, 0.0) ** 2
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(total.sum(axis=1) / seen.sum(axis=1)))

    @property
    def total_rms(self) -> float:
        """The root mean square distance (m) of all markers in all frames."""
        return float(np.sqrt(np.nanmean(self.errors**2)))

    @property
    def worst(self) -> tuple[int, str, float]:
        """The frame (from 0), name and distance (m) of the marker farthest from its measured position."""
        frame, marker = np.unravel_index(int(np.nanargmax(self.errors)), self.errors.shape)
        return int(frame), self.markers.names[marker], float(self.errors[frame, marker])

    def coordinate(self, name: str) -> Array:
        """Return one coordinate (K,) by name."""
        return self.q[:, self.body.coordinate_names.index(name)]

    @property
    def warnings(self) -> list[str]:
        """Warnings about swapped markers, a poor fit, and undetermined or unconverged frames.

        Frames are counted from 1, as in files.
        """
        lines = [
            f"markers {a!r} and {b!r} look swapped in frames {first + 1} to {last + 1}; fix: exchange their names there"
            for first, last, a, b in self.swapped
        ]
        frame, name, worst = self.worst
        if not self.swapped and (self.total_rms > LARGE_RMS or worst > LARGE_MARKER_ERROR):
            found = f"{1000 * self.total_rms:.0f} mm RMS, at most {1000 * worst:.0f} mm ({name}, frame {frame + 1})"
            allowed = f"up to {1000 * LARGE_RMS:.0f} mm RMS and {1000 * LARGE_MARKER_ERROR:.0f} mm"
            fix = "check the names and places of the markers, and the scaling"
            lines.append(f"the marker error is {found}; allowed: {allowed}; fix: {fix}")
        for what, good in (("did not converge", self.converged), ("are not determined by markers", self.determined)):
            if not good.all():
                bad = np.flatnonzero(~good)
                lines.append(f"{len(bad)} of {len(good)} frames {what}: {listing(map(str, bad + 1))}")
        return lines

    def __str__(self) -> str:
        frame, name, distance = self.worst
        worst = f"worst {1000 * distance:.1f} mm ({name}, frame {frame + 1})"
        line = f"{len(self.q)} frames, {self.errors.shape[1]} markers: {1000 * self.total_rms:.1f} mm RMS, {worst}"
        return "\n".join([line, *self.warnings])


def swapped_pairs(
    fit: Fit, fitted: Fitted, measured: Array, seen: Flags, names: tuple[str, ...]
) -> tuple[tuple[int, int, str, str], ...]:
    """Return (first, last, marker, marker) of runs of frames in which swapping two names greatly improves the fit.

    Frames are counted from 0, and the last one is included.
    """
    places = fit.places(fitted.y)
    errors = np.where(seen, np.linalg.norm(places - measured, axis=2), 0.0)
    doubtful = errors.max(axis=1) > LARGE_MARKER_ERROR
    if not doubtful.any():
        return ()
    if not doubtful.all():  # positions in doubtful frames are interpolated from neighbouring good frames
        frames, good = np.arange(len(places)), np.flatnonzero(~doubtful)
        places = fit.places(at_times(frames, good, fitted.y[good]))
        errors = np.where(seen, np.linalg.norm(places - measured, axis=2), 0.0)
    found_in: dict[tuple[str, str], Flags] = {}
    for k in np.flatnonzero(doubtful).tolist():
        far = np.flatnonzero(errors[k] > LARGE_MARKER_ERROR).tolist()
        for i, one in enumerate(far):
            for two in far[i + 1 :]:
                now = errors[k, one] ** 2 + errors[k, two] ** 2
                crossed = places[k, [one, two]] - measured[k, [two, one]]
                if np.sum(crossed**2) < SWAP_FRACTION * now:
                    found_in.setdefault((names[one], names[two]), np.zeros(len(places), dtype=bool))[k] = True
    listed = [(first, last, a, b) for (a, b), flags in found_in.items() for first, last in runs(flags)]
    return tuple(sorted(listed))


WHERE_PATHS = "marker paths"


def marker_paths(
    body: Robot | Skeleton, markers: MarkerSet, times: ArrayLike, q: ArrayLike, axes: str | None = None
) -> Markers:
    """Return the recording (K, M, 3) of markers on a body in a motion q (K, n) at times (K,) (s).

    ``axes`` are the axes of the motion: "left up forward" for a Robot, as in ``library.human``, and OpenSim's axes for
    a skeleton. Use this function to verify the analysis of a known motion, or to write a predicted motion as a .trc
    file.

    Example:
        >>> body = torsor.library.human()
        >>> heel = MarkerSet({"R.Heel": ("right_foot", (0.0, -0.05, -0.06))})
        >>> marker_paths(body, heel, [0.0], np.zeros((1, 55))).positions.round(3).tolist()
        [[[-0.085, 0.03, -0.06]]]
    """
    instance_of(markers, MarkerSet, WHERE_PATHS, "markers", allowed="a MarkerSet")
    when = frozen_array(times, (np.size(times),), WHERE_PATHS, "times")
    at = frozen_array(q, (len(when), len(body.coordinate_names)), WHERE_PATHS, "q")
    tree, x = (body.tree, body.states(at, 0 * at, 0 * at)[0]) if isinstance(body, Skeleton) else (body, at)
    link_poses = tree.poses(x)[:, list(markers.links(tree))]
    places = np.einsum("kmij,mj->kmi", link_poses[..., :3, :3], markers.local) + link_poses[..., :3, 3]
    chosen = axes if axes is not None else OPENSIM if isinstance(body, Skeleton) else HUMAN
    return Markers(markers.names, when, places, axes=chosen, source=tree.name)


WHERE = "inverse kinematics"
STRIDE = 16  # stride of the frames that are fitted first, from the standing posture; the others start from these
# A frame is doubtful if its RMS exceeds this multiple of the median plus a rounding tolerance (m). A fit is better if
# its cost is below this fraction. Improved frames are starting points for others, for this many waves.
DOUBTFUL_RATIO, ROUNDING, IMPROVEMENT_RATIO, MAX_WAVES = 1.5, 1e-6, 0.95, 8
JUMP_THRESHOLD = 1.2  # rad, m; frames with larger second differences are fitted again
MAX_MARKER_EXTENT = 10.0  # m; if markers of one frame are farther apart, the unit is not m


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
    """Return the motion of a body that best fits a recording of markers.

    The motion minimises the sum of weight * distance^2 (m^2) over markers and frames, plus ``smooth`` (m^2/rad^2) times
    the squared second differences of the coordinates. Derivatives are exact. Coordinates stay within ``lower`` and
    ``upper`` of the body, unless ``ranges`` is False. Missing markers (NaN), and markers of the recording that are not
    in the set, are ignored.

    Coordinates that do not move markers keep their value in ``start`` (nq; by default 0). Coordinates in ``frozen``
    {coordinate: value} are fixed. ``tied`` {coordinate: other} makes coordinates equal; by default, the four spine
    joints of ``library.human`` bend equally. In an OpenSim skeleton (``skeleton``, whose ``markers`` are included),
    coordinates start at their defaults; locked coordinates stay there, and coupled coordinates follow the others.

    Frames converge when no coordinate changes by more than ``tolerance`` (rad, m). The result lists unconverged and
    undetermined frames, and pairs of swapped markers.

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
    posture = None if start is None else frozen_array(start, (len(body.coordinate_names),), WHERE, "start")
    fit = prepared(body, used, posture, frozen, tied, ranges=ranges)
    seen: Flags = np.asarray(np.isfinite(positions).all(axis=2))
    weights = np.where(seen, [used.weight(name) for name in used.names], 0.0)
    measured = np.where(seen[..., None], positions, 0.0)
    fitted = fitted_recording(fit, measured, weights, tolerance)
    if smooth > 0:
        fitted = fit_smoothly(fit, fitted, measured, weights, smooth, tolerance)
    errors = np.where(seen, np.linalg.norm(fit.places(fitted.y) - measured, axis=2), np.nan)
    swaps = swapped_pairs(fit, fitted, measured, seen, used.names)
    q = coordinates_of(body, fit, fitted.y, posture, frozen)
    result = MeasuredMotion(body, used, times, q, errors, fitted.converged, fitted.determined, swaps)
    for line in result.warnings:
        warn(f"{WHERE}: {line}")
    return result


def checked_recording(markers: MarkerSet, recording: Markers) -> tuple[MarkerSet, Array, Array]:
    """Return the markers that are in a recording, with its times (K,) (s) and their positions (K, M, 3) (m)."""
    instance_of(markers, MarkerSet, WHERE, "markers", allowed="a MarkerSet")
    checked_markers(recording, WHERE, "recording")
    names, times, positions = list(recording.names), recording.times, recording.positions
    known = [name for name in markers.names if name in names]
    if len(known) < 3 and len(known) < len(markers.names):
        what = f"the recording has {len(known)} of the markers of the set ({listing(markers.names)})"
        fix = "name the markers as in the recording, which has " + listing(names)
        raise ModelError(what, where=WHERE, allowed="3 or more", fix=fix)
    chosen = positions[:, [names.index(name) for name in known]]
    if not np.isfinite(chosen).all():
        chosen = np.where(np.isfinite(chosen).all(axis=2, keepdims=True), chosen, np.nan)
    gone = np.asarray(np.isnan(chosen[..., 0]).all(axis=0))
    never = [name for name, lost in zip(known, gone, strict=True) if lost]
    if len(never) == len(known):
        raise ModelError("no frame has any marker", where=WHERE, fix="check the names and the file")
    some = chosen[np.isfinite(chosen).any(axis=(1, 2))][::STRIDE]
    span = float(np.median((np.nanmax(some, axis=1) - np.nanmin(some, axis=1)).max(axis=1)))
    if span > MAX_MARKER_EXTENT:
        what, fix = f"of one frame are {span:.0f} m apart", "give positions in m; divide those in mm by 1000"
        raise ModelError(
            what, argument="markers", where=recording.source, allowed=f"up to {MAX_MARKER_EXTENT:.0f} m", fix=fix
        )
    return markers.only(name for name in known if name not in never), times, chosen[:, [n not in never for n in known]]


def check_upright(body: Mechanism, axes: str, source: str) -> None:
    """Raise ModelError if the vertical axis of a recording is not parallel to the body's gravity."""
    up = up_axis(axes)
    if up is None or not body.gravity.any():
        return
    if -up[1] * body.gravity[up[0]] < 0.7 * np.linalg.norm(body.gravity):
        what = f"up is {'-' if up[1] < 0 else ''}{'xyz'[up[0]]}, but gravity of the body is {body.gravity.tolist()}"
        raise ModelError(what, where=source, fix='turn the recording with in_axes("left up forward")')


def fitted_recording(fit: Fit, measured: Array, weights: Array, tolerance: float) -> Fitted:
    """Return the fit of all frames: some start from the standing posture, and the others from interpolated fits."""
    count = len(measured)
    first: NDArray[np.intp] = np.unique(np.append(np.arange(0, count, STRIDE), count - 1))
    y = standing_start(fit, measured[first], weights[first])
    coarse = fit_frames(fit, y, measured[first], weights[first], tolerance)
    good = coarse.converged & coarse.determined
    if good.any():
        y = at_times(np.arange(count), first[good], coarse.y[good])
    else:
        y = standing_start(fit, measured, weights)
    fitted = fit_frames(fit, y, measured, weights, tolerance, MIN_DAMPING)
    for _ in range(MAX_WAVES):
        following = _from_neighbours(fit, fitted, measured, weights, tolerance)
        if following is None:
            break
        fitted = following
    return _between_determined(fit, fitted, measured, weights, tolerance)


def _between_determined(fit: Fit, fitted: Fitted, measured: Array, weights: Array, tolerance: float) -> Fitted:
    """Return the fit with undetermined or discontinuous frames refitted as close as possible to their neighbours.

    A frame with few markers may have two equally good solutions, such as a forearm rotated in either direction.
    """
    jumps = np.zeros(len(fitted.y), dtype=bool)
    jumps[1:-1] = np.abs(np.diff(fitted.y, 2, axis=0)).max(axis=1) > JUMP_THRESHOLD
    good = np.flatnonzero(fitted.determined & fitted.converged & ~jumps)
    undetermined = np.flatnonzero(~fitted.determined | jumps)
    if not len(good) or not len(undetermined):
        return fitted
    start = at_times(undetermined, good, fitted.y[good])
    again = fit_frames(fit, start, measured[undetermined], weights[undetermined], tolerance)
    return fitted.replaced(undetermined, again, again.cost <= fitted.cost[undetermined] / IMPROVEMENT_RATIO)


def _from_neighbours(fit: Fit, fitted: Fitted, measured: Array, weights: Array, tolerance: float) -> Fitted | None:
    """Return a better fit of doubtful frames from the nearest good frames, or None if there is none.

    A frame in a different minimum than its neighbours, for example with a hyperextended elbow, has a much larger error.
    """
    rms = np.sqrt(fitted.cost / np.maximum(weights.sum(axis=1), 1e-30))
    doubtful = ~fitted.converged | (rms > DOUBTFUL_RATIO * np.median(rms) + ROUNDING)
    good, bad = np.flatnonzero(~doubtful), np.flatnonzero(doubtful)
    if not len(good) or not len(bad):
        return None
    after, best = np.searchsorted(good, bad), fitted
    for nearest in (good[np.minimum(after, len(good) - 1)], good[np.maximum(after - 1, 0)]):
        again = fit_frames(fit, fitted.y[nearest], measured[bad], weights[bad], tolerance)
        better = again.cost < best.cost[bad] * IMPROVEMENT_RATIO
        if better.any():
            best = best.replaced(bad, again, better)
    return None if best is fitted else best
