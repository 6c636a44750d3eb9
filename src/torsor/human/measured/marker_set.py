"""Markers on a body: the link of each marker, and its position on the link."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, number, one_of, table
from torsor.base.errors import ModelError, listing
from torsor.base.files import data_of
from torsor.library.human import ANKLE
from torsor.mechanism import Mechanism
from torsor.robot.robot import Robot

Place = tuple[str, tuple[float, float, float]]


@dataclass(frozen=True)
class MarkerSet:
    """Markers by name: ``places`` {marker: (link, (x, y, z))}, with positions in m in link axes.

    ``weights`` {marker: weight} are 1 by default. Markers in ``free``, such as clusters on thigh and shank, are not at
    skeletal landmarks; calibration determines their positions.

    Example:
        >>> markers = MarkerSet({"R.Heel": ("right_foot", (0.0, -0.05, -0.06))}, weights={"R.Heel": 2.0})
        >>> markers.names, markers.weight("R.Heel")
        (('R.Heel',), 2.0)
    """

    places: Mapping[str, Place]
    weights: Mapping[str, float] = field(default_factory=dict)
    free: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        places, where = dict[str, Place](), "marker set"
        for name, place in table(self.places, where, "places").items():
            pair = place if isinstance(place, (tuple, list)) and len(place) == 2 else ("", ())
            at = finite_vector(pair[1])
            if not isinstance(pair[0], str) or not pair[0] or at is None or at.shape != (3,):
                what = f"marker {name!r} is at {place!r}"
                raise ModelError(what, where=where, allowed="(link, (x, y, z)) in m in link axes")
            places[name] = pair[0], (float(at[0]), float(at[1]), float(at[2]))
        weights = table(self.weights, where, "weights")
        self._known(weights, places, "weights")
        checked = {name: number(weight, where, f"weight of {name}", least=0.0) for name, weight in weights.items()}
        self._known(self.free, places, "free")
        for name, value in (("places", places), ("weights", checked), ("free", frozenset(self.free))):
            object.__setattr__(self, name, value)

    @staticmethod
    def _known(names: Iterable[str], places: Mapping[str, Place], what: str) -> None:
        for name in names:
            if name not in places:
                allowed = listing(places, like=str(name))
                raise ModelError(f"names {name!r}", value=name, argument=what, where="marker set", allowed=allowed)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the markers."""
        return tuple(self.places)

    def weight(self, name: str) -> float:
        """Return the weight of a marker."""
        return float(self.weights.get(name, 1.0))

    def links(self, body: Mechanism) -> tuple[int, ...]:
        """Return the link index of each marker; raise ModelError if the body does not have the link."""
        known = {link.name: k for k, link in enumerate(body.links)}
        for name, (link, _) in self.places.items():
            if link not in known:
                allowed = listing((known_link for known_link in known if "/" not in known_link), like=link)
                where = f"marker {name!r} on {body.name!r}"
                raise ModelError(f"there is no link {link!r}", value=link, where=where, allowed=allowed)
        return tuple(known[link] for link, _ in self.places.values())

    @property
    def local(self) -> Array:
        """The marker positions (M, 3) in link axes, in m."""
        return np.array([at for _, at in self.places.values()]).reshape(-1, 3)

    def only(self, names: Iterable[str]) -> "MarkerSet":
        """Return a subset of the markers, in the order of ``names``.

        Example:
            >>> MarkerSet({"a": ("foot", (0, 0, 0)), "b": ("foot", (0, 1, 0))}).only(["b"]).names
            ('b',)
        """
        chosen = list(names)
        self._known(chosen, self.places, "only")
        weights = {name: self.weights[name] for name in chosen if name in self.weights}
        return MarkerSet({name: self.places[name] for name in chosen}, weights, self.free & set(chosen))

    def moved(self, local: Array) -> "MarkerSet":
        """Return the set with new positions (M, 3) (m) on the same links."""
        places = {name: (link, tuple(at)) for (name, (link, _)), at in zip(self.places.items(), local, strict=True)}
        return MarkerSet(places, self.weights, self.free)


# Anatomical markers by their names in common marker sets, and their positions on ``library.human``.
#
# The regression of Harrington et al. (2007) yields the distances of the hips behind, below and beside the midpoint of
# the two ASIS, from the pelvis width between the ASIS and the depth between ASIS and PSIS:
#
#     back 0.24 depth + 9.9 mm      down 0.30 width + 10.9 mm      aside 0.33 width + 7.3 mm
#
# Its errors are 3 mm to 5 mm. All other positions are initial guesses from the skeleton, half-widths of joints and a
# marker radius of 7 mm, for a man with a height of 1.741 m; calibration adjusts them.

# Distance between the ASIS, and between the midpoints of ASIS and PSIS, of a man with a height of 1.741 m (m). The
# forward inclination (rad) of the plane through these four points when standing only affects the zero of tilt and hip
# flexion.
WIDTH, DEPTH, LEAN = 0.24, 0.155, math.radians(11.0)
LOOSE_SPREAD = 0.015  # m; accuracy of a position on the skeleton


@dataclass(frozen=True)
class Landmark:
    """A position on a link: ``at`` (m) on the right side, with x to the left, and its accuracy ``spread`` (m).

    ``names`` are name patterns without a side; midline positions have no ``side``.
    """

    names: str
    link: str
    at: Sequence[float]
    spread: float = LOOSE_SPREAD
    side: bool = True
    free: bool = False


def hips_from_pelvis(width: float, depth: float) -> tuple[float, float, float]:
    """Return the hip distances (m) behind, below and beside the midpoint of the ASIS (Harrington et al. 2007).

    They follow from the pelvis ``width`` (m) and ``depth`` (m).
    """
    return 0.24 * depth + 0.0099, 0.30 * width + 0.0109, 0.33 * width + 0.0073


def pelvis_places(width: float, depth: float) -> dict[str, tuple[float, float, float]]:
    """Return the positions of right ASIS, right PSIS and sacrum in pelvis axes, with the origin between the hips."""
    back, down, _ = hips_from_pelvis(width, depth)
    c, s = math.cos(LEAN), math.sin(LEAN)
    # The distance between the PSIS is approximately 90 mm. A marker on the second sacral vertebra is 20 mm below their
    # midpoint.
    flat = {
        "asis": (-width / 2, down, back),
        "psis": (-0.045, down, back - depth),
        "sacrum": (0.0, down - 0.02, back - depth),
    }
    return {name: (x, c * y - s * z, s * y + c * z) for name, (x, y, z) in flat.items()}


_PELVIS = pelvis_places(WIDTH, DEPTH)
LANDMARKS = {key: Landmark(**{"at": _PELVIS.get(key), **row}) for key, row in data_of(__name__).items()}
# Joints of the model are at the proximal end of their link. Landmarks at the distal end are lower by this distance (de
# Leva's length in m, for a height of 1.741 m), with the name of the joint there.
_LOWER_END = {"knee": "knee_flexion", "ankle": "ankle_flexion", "elbow": "elbow_flexion", "wrist": "wrist_flexion"}

_SIDES = {"r": "right", "l": "left", "right": "right", "left": "left"}


def recognised(name: str) -> tuple[str, str] | None:
    """Return the landmark and the side ("" on the midline) of a marker name, or None if it is unknown."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower().rsplit(":", 1)[-1])
    by_certainty = sorted(LANDMARKS.items(), key=lambda item: item[1].free)  # RSHO is a shoulder, not a shank
    for key, landmark in by_certainty:
        if not landmark.side and re.fullmatch(landmark.names, plain):
            return key, ""
    for pattern in (r"(right|left)(.+)", r"(.+)(right|left)", r"(r|l)(.+)", r"(.+)(r|l)"):
        match = re.fullmatch(pattern, plain)
        if match is None:
            continue
        side, rest = (match[1], match[2]) if match[1] in _SIDES else (match[2], match[1])
        for key, landmark in by_certainty:
            if landmark.side and re.fullmatch(landmark.names, rest):
                return key, _SIDES[side]
    return None


def marker_set(body: Robot, names: Iterable[str], unknown: str = "raise") -> MarkerSet:
    """Return the positions of markers on a body (``library.human``), from their names in common marker sets.

    Known names are ASIS, PSIS, sacrum, clusters of thigh, shank, upper arm and forearm, knee, ankle, heel, toe, MT5,
    MT1, shoulder, clavicle, C7, sternum, elbow, wrist, hand and head, with their common abbreviations, and the prefixes
    or suffixes "R", "L", "right" and "left". Cluster markers are ``free``, so calibration determines their positions.
    ``unknown`` ("raise" or "drop") determines the treatment of unknown names; to use such markers, create a MarkerSet
    with links and positions.

    Example:
        >>> markers = marker_set(torsor.library.human(), ["R.ASIS", "L.ASIS", "R.TH1", "RKNE"])
        >>> markers.places["RKNE"][0], sorted(markers.free)
        ('right_thigh', ['R.TH1'])
    """
    one_of(unknown, ("raise", "drop"), "marker set", "unknown")
    places, free, strange = {}, set[str](), list[str]()
    for name in names:
        landmark_and_side = recognised(name)
        if landmark_and_side is None:
            strange.append(name)
            continue
        (key, side), landmark = landmark_and_side, LANDMARKS[landmark_and_side[0]]
        link = landmark.link if landmark.link in body.link_names else f"{side}_{landmark.link}"
        places[name] = link, _place(body, key, side)
        free |= {name} if landmark.free else set()
    if strange and unknown == "raise":
        allowed = f"names of {', '.join(LANDMARKS)}, with a side"
        fix = 'use unknown="drop", or a MarkerSet with their links'
        raise ModelError(f"the markers {listing(strange)} are unknown", where="marker set", allowed=allowed, fix=fix)
    return MarkerSet(places, free=frozenset(free))


def spreads(markers: MarkerSet) -> Array:
    """Return the accuracy (M,) (m) of the marker positions on their links; infinite for free and unknown markers."""
    known = {name: recognised(name) for name in markers.names if name not in markers.free}
    spread = {name: LANDMARKS[landmark[0]].spread for name, landmark in known.items() if landmark is not None}
    return np.array([spread.get(name, np.inf) for name in markers.names])


def far_ends(body: Robot, markers: MarkerSet) -> Array:
    """Return the joint origins (M, 3) at the distal ends of links for markers at these ends, and 0 for the others.

    The positions of such markers depend on the length of the link.
    """
    origins = np.zeros((len(markers.names), 3))
    for k, name in enumerate(markers.names):
        key, side = recognised(name) or ("", "")
        joint = _LOWER_END.get(key.split("_")[0]) or ("shoulder_flexion" if key == "shoulder" else None)
        if joint is not None and body.joint(f"{side}_{joint}").parent == markers.places[name][0].split("/")[0]:
            origins[k] = body.joint(f"{side}_{joint}").placement[:3, 3]
    return origins


def _place(body: Robot, key: str, side: str) -> tuple[float, float, float]:
    """Return the position of a landmark on a body of any size, in link axes."""
    landmark = LANDMARKS[key]
    scale = float(body.place("right_heel").pose[1, 3]) / -ANKLE
    x, y, z = (scale * value for value in landmark.at)
    joint = _LOWER_END.get(key.split("_")[0])
    if joint is not None:
        y += float(body.joint(f"{side}_{joint}").placement[1, 3])
    if key == "shoulder":
        x += float(body.joint(f"{side}_shoulder_flexion").placement[0, 3]) * (-1.0 if side == "left" else 1.0)
    return (-x if side == "left" else x), y, z
