"""Markers on a body: on which link each one is, and where."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, number, table
from torsor.base.errors import ModelError, describe, listing
from torsor.mechanism import Mechanism

Place = tuple[str, tuple[float, float, float]]


@dataclass(frozen=True)
class MarkerSet:
    """Markers by name: ``places`` {marker: (link, (x, y, z))}, in m in the axes of the link.

    ``weights`` {marker: weight} are 1 where they are not given. The markers in ``free`` are those that no landmark of
    the skeleton defines, such as clusters on thigh and shank: calibration puts them where they were measured.

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
                found = f"marker {name!r} is at {place!r}"
                raise ModelError(describe(found, where=where, allowed="(link, (x, y, z)) with m in the link's axes"))
            places[name] = pair[0], (float(at[0]), float(at[1]), float(at[2]))
        weights = table(self.weights, where, "weights")
        self._known(weights, places, "weights")
        checked = {name: number(each, where, f"weight of {name}", least=0.0) for name, each in weights.items()}
        self._known(self.free, places, "free")
        for name, value in (("places", places), ("weights", checked), ("free", frozenset(self.free))):
            object.__setattr__(self, name, value)

    @staticmethod
    def _known(names: Iterable[str], places: Mapping[str, Place], what: str) -> None:
        for name in names:
            if name not in places:
                allowed = listing(places, like=str(name))
                raise ModelError(describe(f"{what} names {name!r}", where="marker set", allowed=allowed))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the markers."""
        return tuple(self.places)

    def weight(self, name: str) -> float:
        """Return the weight of a marker."""
        return float(self.weights.get(name, 1.0))

    def links(self, body: Mechanism) -> tuple[int, ...]:
        """Return the index of the link of each marker, and raise ModelError for a link that the body does not have."""
        known = {link.name: k for k, link in enumerate(body.links)}
        for name, (link, _) in self.places.items():
            if link not in known:
                allowed = listing((each for each in known if "/" not in each), like=link)
                where = f"marker {name!r} on {body.name!r}"
                raise ModelError(describe(f"no link {link!r}", where=where, allowed=allowed))
        return tuple(known[link] for link, _ in self.places.values())

    @property
    def local(self) -> Array:
        """The places (M, 3) of the markers in the axes of their links, in m."""
        return np.array([at for _, at in self.places.values()]).reshape(-1, 3)

    def only(self, names: Iterable[str]) -> "MarkerSet":
        """Return the set of some of the markers, in the order of ``names``.

        Example:
            >>> MarkerSet({"a": ("foot", (0, 0, 0)), "b": ("foot", (0, 1, 0))}).only(["b"]).names
            ('b',)
        """
        chosen = list(names)
        self._known(chosen, self.places, "only")
        weights = {name: self.weights[name] for name in chosen if name in self.weights}
        return MarkerSet({name: self.places[name] for name in chosen}, weights, self.free & set(chosen))

    def moved(self, local: Array) -> "MarkerSet":
        """Return the set with other places (M, 3) on the same links."""
        places = {name: (link, tuple(at)) for (name, (link, _)), at in zip(self.places.items(), local, strict=True)}
        return MarkerSet(places, self.weights, self.free)
