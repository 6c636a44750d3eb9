"""Settings of an FMU, which are checked before anything is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import arrays, indices_of, number, several
from torsor.base.errors import ModelError, listing
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free, free_numbers
from torsor.mechanism.mechanism import default_posture
from torsor.robot.robot import Robot
from torsor.simulation.loop_projection import Choices, project_start
from torsor.simulation.setup import check_springs, normalised

_XYZ = ("x", "y", "z")


class Quantity(NamedTuple):
    """A quantity with the names and units of its components. ``at`` is "link", "place" (a link or frame) or empty."""

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
    "joint_wrenches": Quantity("link", _six("m", "f"), _units("N.m", "N"), "joint reaction of"),
    "pose": Quantity("place", (*_XYZ, *_ROTATION), ("m",) * 3 + ("",) * 9, "pose, in base axes, of"),
    "velocity": Quantity("place", _six("w", "v"), _units("rad/s", "m/s"), "twist, in its own axes, of"),
    "acceleration": Quantity("place", _six("w", "v"), _units("rad/s2", "m/s2"), "acceleration, in its own axes, of"),
    "center_of_mass": Quantity("", _XYZ, ("m",) * 3, "centre of mass, in base axes"),
    "kinetic_energy": Quantity("", ("",), ("J",), "kinetic energy"),
    "potential_energy": Quantity("", ("",), ("J",), "potential energy of gravity and springs"),
}
"""The quantities, by the names of the robot methods."""


class Chosen(NamedTuple):
    """A selected quantity and, if it needs one, its link or frame."""

    name: str
    place: str

    @property
    def quantity(self) -> Quantity:
        """The definition of the quantity."""
        return QUANTITIES[self.name]

    def row(self, mechanism: Mechanism, result: ca.SX) -> ca.SX:
        """Return the components as a column, from the result of the algorithm."""
        if self.quantity.at == "link":
            return result[mechanism.link_names.index(self.place), :].T
        if self.name == "pose":
            return ca.vertcat(result[:3, 3], ca.vec(result[:3, :3].T))
        return ca.vec(result)


def chosen(mechanism: Mechanism, names: Sequence[str]) -> list[Chosen]:
    """Return the named quantities, such as "pose:hand". "joint_wrenches" without a link selects all links."""
    quantities: list[Chosen] = []
    for output in several(names):
        name, colon, place = output.partition(":") if isinstance(output, str) else ("", "", "")
        if name not in QUANTITIES:
            allowed = ", ".join(each + f":{own.at.upper()}" * bool(own.at) for each, own in QUANTITIES.items())
            raise ModelError(f"there is no output {output!r}", value=output, where=mechanism.name, allowed=allowed)
        at = QUANTITIES[name].at
        if bool(colon) > bool(at) or (not colon and at == "place"):
            fix = f"write '{name}:LINK'" if at else f"write {name!r}"
            raise ModelError(f"output {output!r}", value=output, where=mechanism.name, fix=fix)
        if at == "link" and colon and place not in mechanism.link_names:
            allowed = listing(map(repr, mechanism.link_names), like=repr(place))
            found_text = f"output {output!r}: there is no moving link {place!r}"
            raise ModelError(found_text, value=place, where=mechanism.name, allowed=allowed)
        if at == "place":
            mechanism.place(place)  # raises for an unknown name
        places = mechanism.link_names if at and not colon else (place,)
        quantities += [Chosen(name, each) for each in places]
    if len(set(quantities)) < len(quantities):
        raise ModelError("an output is named twice", where=mechanism.name, allowed="each once")
    return quantities


MIN_STEP = 1e-9
"""Minimum co-simulation step (s)."""


@dataclass(frozen=True)
class Settings:
    """The settings of an FMU; see ``torsor.export.fmi``.

    ``outputs`` contains the quantities other than q, v, a and tau. ``free`` contains the parameters, and ``paths``
    their names. ``external`` contains the indices of the links whose external wrench is an input.
    """

    outputs: tuple[Chosen, ...]
    free: tuple[Free, ...]
    paths: Sequence[str] | Mapping[str, Any]
    external: tuple[int, ...]
    inverse: bool
    q0: tuple[float, ...]
    v0: tuple[float, ...]
    step: float

    @classmethod
    def of(
        cls,
        robot: Robot,
        names: Sequence[str],
        parameters: Sequence[str] | Mapping[str, Any],
        external: Sequence[str],
        inverse: bool,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        step: float,
    ) -> "Settings":
        """Return the settings. Raise ModelError if one is invalid or the robot is not supported."""
        where = robot.name
        if robot.loops and inverse:
            message = "`inverse=True` is not supported with closed loops"
            fix = 'use torsor.export.c with `names=["closed.inverse_dynamics"]`'
            raise ModelError(message, where=where, allowed="forward dynamics", fix=fix)
        if not robot.nv:
            raise ModelError("the robot has no coordinates", where=where, allowed="one or more joints")
        links = indices_of(external, robot.link_names, where, "moving link")
        if len(set(links)) < len(links):
            raise ModelError("names a link twice", argument="external", where=where, allowed="each once")
        if q0 is None:
            q0 = robot.closed.positions(default_posture(robot)) if robot.loops else default_posture(robot)
        q = arrays(q0, (robot.nq,), where, "q0")
        v = arrays(np.zeros(robot.nv) if v0 is None else v0, (robot.nv,), where, "v0")
        for array, name in ((q, "q0"), (v, "v0")):
            if array.ndim > 1:
                raise ModelError(f"has shape {array.shape}", argument=name, where=where, allowed="one state")
        length = number(step, where, "step", least=MIN_STEP)
        free = free_numbers(robot, parameters) if parameters else ()
        q = normalised(robot, q)
        if robot.loops:
            q, v = project_start(robot, Choices(robot), q, v)
        elif not inverse:
            check_springs(robot, q, length)
        start = tuple(q.tolist()), tuple(v.tolist())
        return cls(tuple(chosen(robot, names)), free, parameters, tuple(links), inverse, *start, length)
