"""What an FMU may give besides positions, velocities, accelerations and forces: reactions, poses, twists, energies."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from torsor.base.checks import several
from torsor.base.errors import ModelError, listing
from torsor.mechanism import Mechanism

_XYZ = ("x", "y", "z")


class Quantity(NamedTuple):
    """A quantity: names and units of its components; ``at`` is "link", "place" (a link or frame) or nothing."""

    at: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    what: str


def _six(angular: str, linear: str) -> tuple[str, ...]:
    return tuple(letter + axis for letter in (angular, linear) for axis in _XYZ)


def _units(angular: str, linear: str) -> tuple[str, ...]:
    return (angular,) * 3 + (linear,) * 3


_ROTATION = tuple(f"R[{row},{column}]" for row in (1, 2, 3) for column in (1, 2, 3))
QUANTITIES = {
    "joint_wrenches": Quantity("link", _six("m", "f"), _units("N.m", "N"), "reaction of the joint of"),
    "pose": Quantity("place", (*_XYZ, *_ROTATION), ("m",) * 3 + ("",) * 9, "pose, in base axes, of"),
    "velocity": Quantity("place", _six("w", "v"), _units("rad/s", "m/s"), "twist, in its own axes, of"),
    "acceleration": Quantity("place", _six("w", "v"), _units("rad/s2", "m/s2"), "acceleration, in its own axes, of"),
    "center_of_mass": Quantity("", _XYZ, ("m",) * 3, "centre of mass, in base axes"),
    "kinetic_energy": Quantity("", ("",), ("J",), "kinetic energy"),
    "potential_energy": Quantity("", ("",), ("J",), "potential energy of gravity and springs"),
}
"""The quantities, by the names of the methods of a robot."""


class Chosen(NamedTuple):
    """A quantity that was chosen, at a link or frame if it is one of them."""

    name: str
    place: str

    @property
    def quantity(self) -> Quantity:
        """What it is."""
        return QUANTITIES[self.name]

    def row(self, mechanism: Mechanism, result: ca.SX) -> ca.SX:
        """Return the components, as a column, from the result of the algorithm."""
        if self.quantity.at == "link":
            return result[mechanism.link_names.index(self.place), :].T
        if self.name == "pose":
            return ca.vertcat(result[:3, 3], ca.vec(result[:3, :3].T))
        return ca.vec(result)


def chosen(mechanism: Mechanism, names: Sequence[str]) -> list[Chosen]:
    """Return the quantities that are named, "pose:hand" or "kinetic_energy"; "joint_wrenches" is that of all links.

    Example:
        >>> [each.place for each in chosen(torsor.library.two_link(), ["joint_wrenches", "pose:link2"])]
        ['link1', 'link2', 'link2']
    """
    found: list[Chosen] = []
    for given in several(names):
        name, colon, place = given.partition(":") if isinstance(given, str) else ("", "", "")
        if name not in QUANTITIES:
            allowed = ", ".join(each + f":{own.at.upper()}" * bool(own.at) for each, own in QUANTITIES.items())
            raise ModelError(f"output {given!r}", value=given, where=mechanism.name, allowed=allowed)
        at = QUANTITIES[name].at
        if bool(colon) > bool(at) or (not colon and at == "place"):
            fix = f"write '{name}:LINK'" if at else f"write {name!r}"
            raise ModelError(f"output {given!r}", value=given, where=mechanism.name, fix=fix)
        if at == "link" and colon and place not in mechanism.link_names:
            allowed = listing(map(repr, mechanism.link_names), like=repr(place))
            found_text = f"output {given!r}: no moving link {place!r}"
            raise ModelError(found_text, value=place, where=mechanism.name, allowed=allowed)
        if at == "place":
            mechanism.place(place)  # an error for a name that does not exist
        found += [Chosen(name, each) for each in mechanism.link_names] if at and not colon else [Chosen(name, place)]
    if len(set(found)) < len(found):
        raise ModelError("an output is named twice", where=mechanism.name, allowed="each once")
    return found
