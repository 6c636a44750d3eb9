"""A measured person: a body with segment lengths from the markers of a recording."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import instance_of, number, table
from torsor.base.errors import ModelError, listing, warn
from torsor.compiler import AnyKernel
from torsor.human.body.person import SEGMENTS, offset_factors, resized, segment_of
from torsor.human.measured.fitting import Fit, fit_frames, kernels, prepared
from torsor.human.measured.inverse_kinematics import check_upright, checked_recording, fitted_recording, standing_start
from torsor.human.measured.marker_set import (
    MarkerSet,
    far_ends,
    hips_from_pelvis,
    marker_set,
    pelvis_places,
    recognised,
    spreads,
)
from torsor.human.measured.normal_equations import moved_places
from torsor.human.recordings import Markers
from torsor.human.recordings.recording import checked_markers
from torsor.library.human import human
from torsor.robot.robot import Robot

# Scaling: segment lengths and marker positions from a recording, by a least-squares fit over frames and person.
#
#     minimise  sum over frames and markers of w |x(y_k, f, m) - measured|^2 / noise^2
#             + sum of |m - m_0|^2 / spread^2 + sum of (f - f_0)^2 / doubt^2 + sum of |y_k - posture|^2 / play^2
#
# over the postures y_k of some frames, the length factors f and the marker positions m on their links. Free markers
# have no m_0. The frames are eliminated one by one (Schur complement), so the remaining system contains only f and m.
# All derivatives are exact.

# Displacement (m) of skin markers relative to the bone. It repeats in each stride, so all frames together count as at
# most this number of independent frames.
NOISE, INDEPENDENT = 0.005, 4.0
POSTURE_SPREAD = 1.0  # rad; walking postures are arbitrary, so this only keeps undetermined angles near zero
STANDING_SPREAD = 0.09  # rad (5 degrees); accuracy of the standing posture
MAX_STEPS, TOLERANCE, MAX_DAMPING = 60, 1e-6, 1e6


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Length factors (F,), marker positions (M, 3) on their links (m), postures (K, n), and residuals (K, M) (m)."""

    factors: Array
    local: Array
    y: Array
    errors: Array


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Prior knowledge of a person.

    ``spread`` (M,) is the accuracy of the marker positions on their links (m), and ``masks`` (F, links, 3) select the
    lengths scaled by each factor. ``ends`` (F, M, 3) are the derivatives of marker positions on their links with
    respect to factors, and ``factors`` (F, 2) are the expected factors and their accuracy.
    """

    spread: Array
    masks: Array
    ends: Array
    factors: Array

    @property
    def firmness(self) -> Array:
        """Weights (F + 3 M,) of the prior values of factors and positions."""
        places = np.where(np.isfinite(self.spread), 1 / self.spread**2, 1e-6 / NOISE**2)
        return np.concatenate([self.factors[:, 1] ** -2, np.repeat(places, 3)])


def calibrate(fit: Fit, y: Array, measured: Array, weights: Array, known: Knowledge, standing: int = 0) -> Calibrated:
    """Return the person that best fits frames (K, M, 3), starting from postures y (K, n).

    The last ``standing`` frames show the standing posture.
    """
    count, n = y.shape
    M, F = measured.shape[1], len(known.factors)
    play = np.full((count, n), POSTURE_SPREAD**-2)
    play[count - standing :] = STANDING_SPREAD**-2
    play[:, np.flatnonzero(~np.isfinite(fit.lower) | ~np.isfinite(fit.upper)).tolist()] = 0.0
    kernel, chains, firm = _derivatives(fit), _subtree_sums(fit), known.firmness
    w = np.repeat(weights, 3, axis=1) * min(1.0, INDEPENDENT / count) / NOISE**2
    expected = np.concatenate([known.factors[:, 0], fit.local.ravel()])

    def evaluate(y: Array, person: Array) -> tuple[float, Array, Array, Array]:
        offsets = fit.offsets * (1 + np.einsum("f,fli->li", person[:F] - 1, known.masks))
        places, by_y, turns = kernel(y, offsets, _on_links(person, known))
        off = (places - measured).reshape(count, 3 * M)
        cost = (w * off**2).sum() + (play * y**2).sum() + (firm * (person - expected) ** 2).sum()
        return float(cost), off, by_y.reshape(count, 3 * M, n), turns

    person, damping, diagonal = expected.copy(), 1e-3, np.arange(n)
    cost, off, by_y, turns = evaluate(y, person)
    for _ in range(MAX_STEPS):
        by_person = _by_person(fit, turns, known, chains)
        weighed = np.swapaxes(w[..., None] * by_y, 1, 2)
        A, B = weighed @ by_y, weighed @ by_person
        A[:, diagonal, diagonal] = A[:, diagonal, diagonal] * (1 + damping) + play + 1e-6
        flat = by_person.reshape(count * 3 * M, -1)
        C = (w.reshape(-1, 1) * flat).T @ flat
        C[np.diag_indices_from(C)] += firm + damping * np.diagonal(C)
        right = (weighed @ off[..., None])[..., 0] + play * y
        rest = flat.T @ (w * off).ravel() + firm * (person - expected)
        # The frames are eliminated by y_k = -A^-1 (right_k + B_k person).
        solved = np.linalg.solve(A, np.concatenate([B, right[..., None]], axis=2))
        across = np.swapaxes(B, 1, 2) @ solved
        step = -np.linalg.solve(C - across[..., :-1].sum(axis=0), rest - across[..., -1].sum(axis=0))
        change = -solved[..., -1] - solved[..., :-1] @ step
        trial = evaluate(y + change, person + step)
        if trial[0] <= cost * (1 + 1e-12):
            y, person, damping = y + change, person + step, damping / 10
            cost, off, by_y, turns = trial
        else:
            damping = max(10 * damping, 1e-6)
        if max(np.abs(change).max(), np.abs(step).max()) < TOLERANCE or damping > MAX_DAMPING:
            break
    errors = np.linalg.norm(off.reshape(count, M, 3), axis=2)
    return Calibrated(person[:F], _on_links(person, known), y, errors)


def _on_links(person: Array, known: Knowledge) -> Array:
    """Return the marker positions (M, 3) on their links."""
    F = len(known.factors)
    return np.asarray(person[F:].reshape(-1, 3) + np.einsum("f,fmi->mi", person[:F] - 1, known.ends))


def _derivatives(fit: Fit) -> AnyKernel:
    """Return the kernel of the marker positions (M, 3), their Jacobian (3 M, n) in y, and the link rotations."""

    def traced() -> ca.Function:
        inputs, places, turns = moved_places(fit.robot, fit.layout)
        column = ca.vertcat(*places)
        outputs = [ca.horzcat(*places).T, ca.densify(ca.jacobian(column, inputs["y"])), ca.vertcat(*turns)]
        return ca.Function("calibration", list(inputs.values()), ca.cse(outputs), list(inputs), ["x", "by_y", "R"])

    return kernels().kernel(("calibration", fit.identity), traced, quick=True)


def _subtree_sums(fit: Fit) -> Array:
    """Return a mask (M, links): 1 for the link of each marker and its ancestors, otherwise 0.

    These are the links whose joint origins displace the marker.
    """
    parents = fit.robot.parents
    moves = np.zeros((len(fit.layout.links), len(parents)))
    for m, link in enumerate(fit.layout.links):
        while link >= 0:
            moves[m, link] = 1.0
            link = parents[link]
    return moves


def _by_person(fit: Fit, turns: Array, known: Knowledge, chains: Array) -> Array:
    """Return the derivatives (K, 3 M, F + 3 M) of marker positions with respect to factors and positions on links."""
    count, M = len(turns), len(chains)
    R = turns.reshape(count, -1, 3, 3)
    parents = np.array(fit.robot.parents)
    above = np.where((parents >= 0)[None, :, None, None], R[:, parents], np.eye(3))
    ways = np.einsum("klij,flj->kfli", above, fit.offsets * known.masks)
    rotations = R[:, list(fit.layout.links)]
    by_factor = np.einsum("kfli,ml->kmif", ways, chains) + np.einsum("kmij,fmj->kmif", rotations, known.ends)
    by_place = np.zeros((count, M, 3, M, 3))
    by_place[:, np.arange(M), :, np.arange(M), :] = np.swapaxes(rotations, 0, 1)
    return np.concatenate([by_factor.reshape(count, 3 * M, -1), by_place.reshape(count, 3 * M, 3 * M)], axis=2)


WHERE = "scaled person"
MAX_FRAMES = 40  # maximum number of evenly spaced frames that are used
MEASURED = ("pelvis", "thigh", "shank", "trunk", "shoulders", "upper_arm", "forearm")
FACTOR_SPREAD = 0.10  # accuracy of factors, relative to the table lengths for the height
HIP_ERROR = 0.0035  # m; lateral error of Harrington's regression
MIN_MARKERS = 3  # minimum number of markers of a rigid body
START_TOLERANCE = 1e-4  # tolerance of the initial postures of the calibration


@dataclass(frozen=True, eq=False)
class Person:
    """A measured person: the ``body`` (``library.human``) and the ``markers`` on it.

    ``factors`` {segment: factor} are lengths relative to the tables for the height. ``residuals`` {marker: m} are the
    RMS marker distances over the frames used. ``moved`` {marker: m} are the distances by which calibration moved
    landmarks on their links. ``standing`` states whether a standing trial was used.
    """

    body: Robot
    markers: MarkerSet
    factors: dict[str, float]
    residuals: dict[str, float]
    moved: dict[str, float]
    standing: bool = False

    @property
    def lengths(self) -> dict[str, float]:
        """Lengths (m): thigh, shank, upper_arm, forearm, trunk (to the shoulders), and widths of hips and shoulders.

        Example:
            >>> person = Person(torsor.library.human(), MarkerSet({}), {}, {}, {})
            >>> round(person.lengths["thigh"], 4)
            0.4222
        """
        at = {joint.name: joint.placement[:3, 3] for joint in self.body.joints}
        trunk = sum(float(at[f"spine{k}_flexion"][1]) for k in (1, 2, 3, 4))
        return {
            "hips": 2 * float(abs(at["right_hip_flexion"][0])),
            "thigh": float(-at["right_knee_flexion"][1]),
            "shank": float(-at["right_ankle_flexion"][1]),
            "trunk": trunk + float(at["right_clavicle_elevation"][1]),
            "shoulders": 2 * float(abs(at["right_clavicle_elevation"][0]) + abs(at["right_shoulder_flexion"][0])),
            "upper_arm": float(-at["right_elbow_flexion"][1]),
            "forearm": float(-at["right_wrist_flexion"][1]),
        }

    def __str__(self) -> str:
        lengths = ", ".join(f"{name} {1000 * length:.0f}" for name, length in self.lengths.items())
        largest, worst = max(((residual, name) for name, residual in self.residuals.items()), default=(0.0, ""))
        total = np.sqrt(np.mean(np.square(list(self.residuals.values())))) if self.residuals else 0.0
        markers = f"markers: {1000 * total:.1f} mm RMS, worst {worst} {1000 * largest:.1f} mm"
        return f"{self.body.mass:.1f} kg; lengths in mm: {lengths}\n{markers}"


def scaled_person(
    recording: Markers,
    mass: float,
    height: float = 1.741,
    sex: str = "male",
    *,
    standing: Markers | None = None,
    markers: MarkerSet | None = None,
    weights: Mapping[str, float] | None = None,
) -> Person:
    """Return a person with ``mass`` (kg), and with segment lengths and marker positions from a recording.

    The recording may contain any motion. ``standing`` is a trial of the person standing upright with hanging arms, with
    prior angles of zero and a standard deviation of 5 degrees. Landmarks keep their accuracy, so the trial changes
    mainly ankle angles. The plane through ASIS and PSIS is inclined forward by 11 degrees at zero tilt. ``height`` (m)
    and ``sex`` select the tables (de Leva 1996) for initial lengths and for lengths that markers do not determine.
    ``markers`` are the marker positions, by default those for the marker names (``marker_set``). ``weights`` {marker:
    weight} are 1 by default. The hip positions are computed from the width and depth of the pelvis (Harrington et al.
    2007) if all four ASIS and PSIS markers are present; otherwise, the tables define them. Segment masses are fractions
    of the total mass; centres of mass and radii of gyration are fractions of the scaled lengths. Without a standing
    trial, ankle angles and lengths across a segment are less certain.

    Example:
        >>> body = human(1.80, 80.0)
        >>> names = ["RASI", "LASI", "RPSI", "LPSI", "RKNE", "LKNE", "RANK", "LANK", "RHEE", "LHEE", "RTOE", "LTOE"]
        >>> sites = marker_set(body, names)
        >>> poses = body.poses(np.zeros(55))[list(sites.links(body))]
        >>> places = np.einsum("mij,mj->mi", poses[:, :3, :3], sites.local) + poses[:, :3, 3]
        >>> still = Markers(names, [0.0], places[None])
        >>> round(scaled_person(still, 80.0, 1.80, standing=still).lengths["thigh"], 2)
        0.44
    """
    mass = number(mass, WHERE, "mass (kg)", above=0.0)
    checked_markers(recording, WHERE, "recording")
    body = human(height, mass, sex)
    check_upright(body, recording.axes, recording.source)
    chosen = _chosen(body, recording, markers, weights)
    used, _, positions = checked_recording(chosen, recording)
    frames = _complete(positions, MAX_FRAMES)
    if standing is not None:
        frames = np.concatenate([frames, _upright(used, standing)])
    check_pelvis(used, recording)
    used = _with_pelvis(used, frames)
    seen: Flags = np.asarray(np.isfinite(frames).all(axis=2))
    by_marker = np.where(seen, [used.weight(name) for name in used.names], 0.0)
    measured = np.where(seen[..., None], frames, 0.0)
    spread, masks = spreads(used), offset_factors(body)
    fit = prepared(body, used)
    # Free markers are not at their positions in the set, so the first postures are fitted without them.
    fixed = np.where(np.isfinite(spread), by_marker, 1e-6 * by_marker)
    y = fit_frames(fit, standing_start(fit, measured, fixed), measured, fixed, START_TOLERANCE).y
    scaled, ends = np.array([masks[name] for name in MEASURED]), _ends(body, used)
    known = Knowledge(spread, scaled, ends, _prior(body, used, frames))
    still = 0 if standing is None else 1
    calibrated = calibrate(fit, y, measured, by_marker, known, still)
    # With all markers in place, the postures are fitted again, because some were in a different minimum without the
    # clusters.
    offsets = fit.offsets * (1 + np.einsum("f,fli->li", calibrated.factors - 1, scaled))
    again = fitted_recording(
        replace(fit, offsets=offsets, local=calibrated.local), measured, by_marker, START_TOLERANCE
    )
    better = again.cost < (by_marker * calibrated.errors**2).sum(axis=1)
    if better.any():
        calibrated = calibrate(fit, np.where(better[:, None], again.y, calibrated.y), measured, by_marker, known, still)
    factors = dict.fromkeys(SEGMENTS, 1.0) | dict(zip(MEASURED, calibrated.factors.tolist(), strict=True))
    factors |= {"hand": factors["forearm"], "foot": factors["shank"]}
    factors["head"] = float(np.mean([factors[name] for name in ("thigh", "shank", "trunk")]))
    total = (np.where(seen, calibrated.errors, 0.0) ** 2).sum(axis=0)
    residuals = np.sqrt(total / np.maximum(seen.sum(axis=0), 1))
    expected = used.local + np.einsum("f,fmi->mi", calibrated.factors - 1, ends)
    moved = np.linalg.norm(calibrated.local - expected, axis=1)
    landmarks = {name: float(way) for name, way, far in zip(used.names, moved, spread, strict=True) if np.isfinite(far)}
    by_name = dict(zip(used.names, residuals.tolist(), strict=True))
    placed = used.moved(calibrated.local)
    return Person(resized(body, factors), placed, factors, by_name, landmarks, standing is not None)


def _chosen(
    body: Robot, recording: Markers, markers: MarkerSet | None, weights: Mapping[str, float] | None
) -> MarkerSet:
    """Return the markers of a recording with weights; without a set, they are recognised by name."""
    chosen = marker_set(body, recording.names, unknown="drop") if markers is None else markers
    instance_of(chosen, MarkerSet, WHERE, "markers", allowed="a MarkerSet")
    if len(chosen.names) < MIN_MARKERS:
        what = f"only {len(chosen.names)} markers are recognised by name; the recording has {listing(recording.names)}"
        fix = "rename them (recording.renamed), or pass their positions: markers=MarkerSet(...)"
        raise ModelError(what, where=recording.source, allowed=f"{MIN_MARKERS} or more", fix=fix)
    if weights is None:
        return chosen
    return MarkerSet(chosen.places, table(weights, WHERE, "weights"), chosen.free)


def check_pelvis(markers: MarkerSet, recording: Markers) -> None:
    """Warn if the markers do not determine the pelvis pose, from which the hip positions are computed."""
    on_pelvis = [name for name, (link, _) in markers.places.items() if link == "pelvis"]
    if len(on_pelvis) < MIN_MARKERS:
        listed = f": {', '.join(on_pelvis)}" if on_pelvis else ""
        noun = "marker" if len(on_pelvis) == 1 else "markers"
        what = f"the pelvis has {len(on_pelvis)} {noun}{listed}; its hips are guesses"
        fix = "add ASIS, PSIS or sacrum markers (RASI, LASI, SACR), or do not use the moments of hips and trunk"
        warn(what, where=recording.source, allowed=f"{MIN_MARKERS} or more", fix=fix)


def _upright(markers: MarkerSet, standing: Markers) -> Array:
    """Return the mean frame (1, M, 3) of a standing trial."""
    present, _, positions = checked_recording(markers, standing)
    if present.names != markers.names:
        lost = sorted(set(markers.names) - set(present.names))
        fix = "remove them from the markers, or use the same names in both recordings"
        raise ModelError(f"the standing trial does not have {', '.join(lost)}", where=standing.source, fix=fix)
    return np.asarray(np.nanmean(positions, axis=0, keepdims=True))


def _ends(body: Robot, markers: MarkerSet) -> Array:
    """Return the derivatives (F, M, 3) of marker positions on their links with respect to segment factors."""
    at = far_ends(body, markers)
    links = [segment_of(link) for link, _ in markers.places.values()]
    return np.array([np.where([[link == name] for link in links], at, 0.0) for name in MEASURED])


def _prior(body: Robot, markers: MarkerSet, frames: Array) -> Array:
    """Return the expected factors of the measured segments and their accuracy, (F, 2)."""
    prior = np.array([(1.0, FACTOR_SPREAD)] * len(MEASURED))
    size = _pelvis(markers, frames)
    if size is not None:
        half_width = abs(float(body.joint("right_hip_flexion").placement[0, 3]))
        prior[MEASURED.index("pelvis")] = hips_from_pelvis(*size)[2] / half_width, HIP_ERROR / half_width
    return prior


def _complete(positions: Array, most: int) -> Array:
    """Return up to ``most`` evenly spaced frames among those with the largest number of markers."""
    seen = np.isfinite(positions).all(axis=2).sum(axis=1)
    good = np.flatnonzero(seen >= max(int(0.9 * seen.max()), 1))
    return np.asarray(positions[good[np.unique(np.linspace(0, len(good) - 1, most).round().astype(int))]])


def _pelvis(markers: MarkerSet, frames: Array) -> tuple[float, float] | None:
    """Return the width and depth (m) of the pelvis between its four markers, or None if one is missing."""
    at = {recognised(name): k for k, name in enumerate(markers.names)}
    four = [at.get((name, side)) for name in ("asis", "psis") for side in ("right", "left")]
    if any(k is None for k in four):
        return None
    right, left, behind, beside = (frames[:, k] for k in four if k is not None)
    width = float(np.nanmean(np.linalg.norm(right - left, axis=1)))
    return width, float(np.nanmean(np.linalg.norm((right + left - behind - beside) / 2, axis=1)))


def _with_pelvis(markers: MarkerSet, frames: Array) -> MarkerSet:
    """Return the markers with pelvis markers placed according to the measured width and depth."""
    size = _pelvis(markers, frames)
    if size is None:
        return markers
    places = pelvis_places(*size)
    local = markers.local.copy()
    for k, name in enumerate(markers.names):
        known = recognised(name)
        if known is not None and known[0] in places and markers.places[name][0] == "pelvis":
            x, y, z = places[known[0]]
            local[k] = -x if known[1] == "left" else x, y, z
    return markers.moved(local)
