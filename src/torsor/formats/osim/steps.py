"""Joints of OpenSim as slides and turns one after the other, each a function of a coordinate.

A CustomJoint moves its child by three slides along axes of the parent's frame, then by three rotations, each about an
axis of the frame that the one before has turned.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import LARGEST
from torsor.base.errors import ModelError, describe, listing
from torsor.formats.osim.model import OsimAxis, OsimCoupling, OsimJoint, OsimModel
from torsor.mechanism.curves import IDENTITY, Curve, broken_line, cubic_spline
from torsor.spatial import from_rpy, make_pose

WELD, CUSTOM = "WeldJoint", "CustomJoint"
# Joints without functions: slides and turns in their order, each with its axis and the number of its coordinate.
_KINDS: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "PinJoint": (("revolute", 2, 0),),
    "SliderJoint": (("prismatic", 0, 0),),
    "UniversalJoint": (("revolute", 0, 0), ("revolute", 1, 1)),
    "GimbalJoint": (("revolute", 0, 0), ("revolute", 1, 1), ("revolute", 2, 2)),
    "BallJoint": (("revolute", 0, 0), ("revolute", 1, 1), ("revolute", 2, 2)),
    "PlanarJoint": (("prismatic", 0, 1), ("prismatic", 1, 2), ("revolute", 2, 0)),
    "FreeJoint": tuple((kind, k, k + first) for kind, first in (("prismatic", 3), ("revolute", 0)) for k in range(3)),
}


class Step(NamedTuple):
    """A slide ("prismatic") or turn ("revolute") along or about ``axis`` (3,) by a function of a coordinate."""

    kind: str
    axis: Array
    coordinate: str
    function: Curve


def pose_of(place: Array) -> Array:
    """Return the pose of a frame from its translation and its angles about x, the new y and the new z.

    Example:
        >>> pose_of(np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    return make_pose(from_rpy(-place[3:]).T, place[:3])


def steps_of(model: OsimModel, joint: OsimJoint) -> list[Step]:
    """Return the slides and turns of a joint, in their order; a constant one has the first coordinate of the joint."""
    if joint.kind == WELD:
        return []
    where = f"{model.source}: joint {joint.name!r}"
    if joint.kind in _KINDS:
        steps = _KINDS[joint.kind]
        if len(joint.coordinates) != len(steps):
            text = f"{len(joint.coordinates)} coordinates of a {joint.kind}"
            raise ModelError(describe(text, where=where, allowed=str(len(steps))))
        return [Step(kind, np.eye(3)[axis], joint.coordinates[k].name, IDENTITY) for kind, axis, k in steps]
    if joint.kind != CUSTOM:
        allowed = ", ".join([CUSTOM, WELD, *_KINDS])
        raise ModelError(describe(f"a {joint.kind}", where=where, allowed=allowed))
    found = []
    own = joint.coordinates[0].name if joint.coordinates else ""
    for kind, axes in (("prismatic", joint.axes[3:]), ("revolute", joint.axes[:3])):
        for axis in axes:
            if len(axis.coordinates) > 1:
                text = f"{axis.name} depends on {', '.join(axis.coordinates)}"
                raise ModelError(describe(text, where=where, allowed="one coordinate"))
            function = curve_of(axis)
            if not axis.coordinates:
                function = Curve((float(function(np.zeros(1))[0][0]),))
                if not function.polynomial[0]:
                    continue
            found.append(Step(kind, axis.axis, axis.coordinates[0] if axis.coordinates else own, function))
    return found


def couplings_of(model: OsimModel, names: tuple[str, ...]) -> dict[str, tuple[str, Curve]]:
    """Return the coordinates among ``names`` that follow others, each with the one that it follows, and how."""
    direct = dict[str, OsimCoupling]()
    for each in model.couplings:
        if each.dependent not in names or each.dependent in direct:
            why = "has another one" if each.dependent in direct else "is missing"
            text = f"a coupler of {each.dependent!r}, which {why}"
            raise ModelError(describe(text, where=model.source, allowed=f"one of each of {listing(names)}"))
        direct[each.dependent] = each
    found: dict[str, tuple[str, Curve]] = {}
    for name, coupling in direct.items():
        where = f"{model.source}: coordinate {name!r}"
        if coupling.independent not in names or coupling.independent in direct:
            text = f"it follows {coupling.independent!r}"
            raise ModelError(describe(text, where=where, allowed="a coordinate that follows no other"))
        found[name] = coupling.independent, curve_of(coupling)
    return found


def curve_of(given: OsimAxis | OsimCoupling) -> Curve:
    """Return the function of an axis or of a coupling."""
    numbers = given.numbers
    if given.function in ("LinearFunction", "PolynomialFunction", "Constant"):
        return Curve(tuple((given.scale * numbers).tolist()))
    x, y = numbers[::2], given.scale * numbers[1::2]
    if len(x) < 2 or (np.diff(x) < 1 / LARGEST).any():
        name = given.name if isinstance(given, OsimAxis) else given.dependent
        text = f"the points x of {name} are {x[:8].tolist()}"
        raise ModelError(describe(text, where=given.function, allowed="two or more, in increasing order"))
    return broken_line(x, y) if given.function == "PiecewiseLinearFunction" else cubic_spline(x, y)
