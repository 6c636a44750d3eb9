"""A measured person: a body with the lengths that the markers of a recording show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, table
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.human.body.resizing import SEGMENTS, offset_factors, resized, segment_of
from torsor.human.measured.calibration import Knowledge, calibrate
from torsor.human.measured.fitting import Mask, fit_frames
from torsor.human.measured.inverse_kinematics import check_upright, checked_recording, fitted_recording
from torsor.human.measured.landmarks import far_ends, hips_from_pelvis, marker_set, pelvis_places, recognised, spreads
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.posing import standing_start
from torsor.human.measured.preparing import prepared
from torsor.human.recordings import Markers
from torsor.library.human import human
from torsor.robot.robot import Robot

WHERE = "scaled person"
FRAMES = 40  # of the recording that are used, evenly spread
MEASURED = ("pelvis", "thigh", "shank", "trunk", "shoulders", "upper_arm", "forearm")
DOUBT = 0.10  # of factors, beside the lengths in the tables for the height
HIP_ERROR = 0.0035  # m, of Harrington's regression, sideways
FEWEST = 3  # markers of a rigid body
START = 1e-4  # tolerance of the postures that calibration starts from


@dataclass(frozen=True, eq=False)
class Person:
    """A measured person: the ``body`` (``library.human``) and the ``markers`` on it.

    ``factors`` {segment: factor} are lengths by those of the tables for the height; ``residuals`` {marker: m} are the
    RMS distances of markers of the frames that were used; ``moved`` {marker: m}, how far calibration moved a landmark
    on its link from where the tables have it.
    """

    body: Robot
    markers: MarkerSet
    factors: dict[str, float]
    residuals: dict[str, float]
    moved: dict[str, float]

    @property
    def lengths(self) -> dict[str, float]:
        """Lengths in m: between the hips, of thigh, shank, upper arm and forearm, and of the trunk to the shoulders.

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
        lengths = ", ".join(f"{name} {1000 * each:.0f}" for name, each in self.lengths.items())
        worst = max(self.residuals, key=lambda name: self.residuals[name], default="")
        total = np.sqrt(np.mean(np.square(list(self.residuals.values())))) if self.residuals else 0.0
        return (
            f"{self.body.mass:.1f} kg; lengths in mm: {lengths}\n"
            f"markers: {1000 * total:.1f} mm RMS, worst {worst} {1000 * self.residuals.get(worst, 0.0):.1f} mm"
        )


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
    """Return a person of a mass (kg) with the lengths and the places of markers that a recording shows.

    The recording may be of any motion; ``standing`` is one of the person standing upright with hanging arms, which also
    sets the zero of all angles. ``height`` (m) and ``sex`` choose the tables (de Leva 1996) that lengths start from
    and that give those which no marker shows. ``markers`` says where they sit; by default their names do
    (``marker_set``). The hips follow from the width and depth of the pelvis (Harrington et al. 2007). Masses of
    segments are fractions of the mass, centres of mass and radii of gyration fractions of the lengths found. Without a
    standing trial, angles have the zero of the tables, and lengths across a segment are less certain.

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
    instance_of(
        recording, Markers, WHERE, "recording", allowed="Markers, such as torsor.human.recordings.load(path).markers"
    )
    body = human(height, mass, sex)
    check_upright(body, recording.axes, recording.source)
    chosen = _chosen(body, recording, markers, weights)
    used, _, positions = checked_recording(chosen, recording)
    frames = _complete(positions, FRAMES)
    if standing is not None:
        frames = np.concatenate([frames, _upright(used, standing)])
    check_pelvis(used, recording)
    used = _with_pelvis(used, frames)
    seen: Mask = np.asarray(np.isfinite(frames).all(axis=2))
    given = np.where(seen, [used.weight(name) for name in used.names], 0.0)
    measured = np.where(seen[..., None], frames, 0.0)
    spread, masks = spreads(used), offset_factors(body)
    fit = prepared(body, used)
    # Free markers are not where the set has them: the first postures are found without them.
    fixed = np.where(np.isfinite(spread), given, 1e-6 * given)
    y = fit_frames(fit, standing_start(fit, measured, fixed), measured, fixed, START).y
    scaled, ends = np.array([masks[name] for name in MEASURED]), _ends(body, used)
    known = Knowledge(spread, scaled, ends, _prior(body, used, frames))
    still = 0 if standing is None else 1
    found = calibrate(fit, y, measured, given, known, still)
    # With all markers in place the postures are found again: some were in another minimum without the clusters.
    offsets = fit.offsets * (1 + np.einsum("f,fli->li", found.factors - 1, scaled))
    again = fitted_recording(replace(fit, offsets=offsets, local=found.local), measured, given, START)
    better = again.cost < (given * found.errors**2).sum(axis=1)
    if better.any():
        found = calibrate(fit, np.where(better[:, None], again.y, found.y), measured, given, known, still)
    factors = dict.fromkeys(SEGMENTS, 1.0) | dict(zip(MEASURED, found.factors.tolist(), strict=True))
    factors |= {"hand": factors["forearm"], "foot": factors["shank"]}
    factors["head"] = float(np.mean([factors[name] for name in ("thigh", "shank", "trunk")]))
    total = (np.where(seen, found.errors, 0.0) ** 2).sum(axis=0)
    residuals = np.sqrt(total / np.maximum(seen.sum(axis=0), 1))
    expected = used.local + np.einsum("f,fmi->mi", found.factors - 1, ends)
    moved = np.linalg.norm(found.local - expected, axis=1)
    landmarks = {name: float(way) for name, way, far in zip(used.names, moved, spread, strict=True) if np.isfinite(far)}
    by_name = dict(zip(used.names, residuals.tolist(), strict=True))
    return Person(resized(body, factors), used.moved(found.local), factors, by_name, landmarks)


def _chosen(
    body: Robot, recording: Markers, markers: MarkerSet | None, weights: Mapping[str, float] | None
) -> MarkerSet:
    """Return the markers of a recording, by their names if no set is given, with weights."""
    chosen = marker_set(body, recording.names, unknown="drop") if markers is None else markers
    instance_of(chosen, MarkerSet, WHERE, "markers", allowed="a MarkerSet")
    if len(chosen.names) < FEWEST:
        found = f"{len(chosen.names)} markers are known by their names: the recording has {listing(recording.names)}"
        fix = "rename them (recording.renamed), or say where they sit: markers=MarkerSet(...)"
        raise ModelError(describe(found, where=recording.source, allowed=f"{FEWEST} or more", fix=fix))
    if weights is None:
        return chosen
    return MarkerSet(chosen.places, table(weights, WHERE, "weights"), chosen.free)


def check_pelvis(markers: MarkerSet, recording: Markers) -> None:
    """Warn if the markers of the pelvis do not say where it is and how it is turned: the hips follow from them."""
    own = [name for name, (link, _) in markers.places.items() if link == "pelvis"]
    if len(own) < FEWEST:
        found = f"{len(own)} markers on the pelvis{': ' if own else ''}{', '.join(own)}; its hips are guesses"
        fix = "add markers of ASIS, PSIS or sacrum (RASI, LASI, SACR), or leave the moments of hips and trunk out"
        warn(describe(found, where=recording.source, allowed=f"{FEWEST} or more", fix=fix))


def _upright(markers: MarkerSet, standing: Markers) -> Array:
    """Return the mean frame (1, M, 3) of a standing trial."""
    own, _, positions = checked_recording(markers, standing)
    if own.names != markers.names:
        lost = sorted(set(markers.names) - set(own.names))
        fix = "leave them out of the markers, or name them alike in both recordings"
        raise ModelError(describe(f"the standing trial has no {', '.join(lost)}", where=standing.source, fix=fix))
    return np.asarray(np.nanmean(positions, axis=0, keepdims=True))


def _ends(body: Robot, markers: MarkerSet) -> Array:
    """Return how far the factors of the measured segments move markers on their links (F, M, 3)."""
    at = far_ends(body, markers)
    links = [segment_of(link) for link, _ in markers.places.values()]
    return np.array([np.where([[link == name] for link in links], at, 0.0) for name in MEASURED])


def _prior(body: Robot, markers: MarkerSet, frames: Array) -> Array:
    """Return the expected factors of the measured segments, and how well they are known (F, 2)."""
    prior = np.array([(1.0, DOUBT)] * len(MEASURED))
    size = _pelvis(markers, frames)
    if size is not None:
        own = abs(float(body.joint("right_hip_flexion").placement[0, 3]))
        prior[MEASURED.index("pelvis")] = hips_from_pelvis(*size)[2] / own, HIP_ERROR / own
    return prior


def _complete(positions: Array, most: int) -> Array:
    """Return up to ``most`` evenly spread frames, of those with the most markers."""
    seen = np.isfinite(positions).all(axis=2).sum(axis=1)
    good = np.flatnonzero(seen >= max(int(0.9 * seen.max()), 1))
    return np.asarray(positions[good[np.unique(np.linspace(0, len(good) - 1, most).round().astype(int))]])


def _pelvis(markers: MarkerSet, frames: Array) -> tuple[float, float] | None:
    """Return width and depth (m) of the pelvis between its markers, None if it does not have all four."""
    at = {recognised(name): k for k, name in enumerate(markers.names)}
    four = [at.get((name, side)) for name in ("asis", "psis") for side in ("right", "left")]
    if any(k is None for k in four):
        return None
    right, left, behind, beside = (frames[:, k] for k in four if k is not None)
    width = float(np.nanmean(np.linalg.norm(right - left, axis=1)))
    return width, float(np.nanmean(np.linalg.norm((right + left - behind - beside) / 2, axis=1)))


def _with_pelvis(markers: MarkerSet, frames: Array) -> MarkerSet:
    """Return the markers with those of the pelvis where its measured width and depth put them."""
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
