"""Skeletons of OpenSim as trees of hinges and slides, whose positions are functions of OpenSim's coordinates.

A CustomJoint moves its child by three slides and then three rotations, each a function x = f(q) of a coordinate. In the
tree each of them is a joint of its own; with f' and f'' the functions' derivatives,

    x = f(q)      x' = f' q'      x'' = f' q'' + f'' q'^2      tau = sum of f' tau_x

and the generalised forces of the coordinates follow from those of the tree exactly: constraints do no work.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.human.measured.curves import IDENTITY, Curve, broken_line, cubic_spline
from torsor.human.measured.marker_set import MarkerSet, Place
from torsor.mechanism import Joint, Link
from torsor.recordings import OsimModel
from torsor.recordings.osim import GROUND, OsimAxis, OsimCoordinate, OsimCoupling, OsimJoint
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, inverse_pose, make_pose

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


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A skeleton: the ``tree`` (a Robot), and ``functions`` {joint of the tree: (coordinate, function)}.

    ``names`` are the coordinates, ``coordinates`` their ranges and defaults, and ``couplings`` {coordinate: (other,
    function)} those that follow others, as a kneecap does. ``markers`` are on links of the tree. ``states`` and
    ``forces`` go from coordinates to the tree and back.
    """

    tree: Robot
    names: tuple[str, ...]
    functions: dict[str, tuple[str, Curve]]
    markers: MarkerSet = field(default_factory=lambda: MarkerSet({}))
    coordinates: dict[str, OsimCoordinate] = field(default_factory=dict)
    couplings: dict[str, tuple[str, Curve]] = field(default_factory=dict)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of the coordinates, as of a Robot."""
        return self.names

    def completed(self, q: Array) -> Array:
        """Return coordinates (K, n) in which those that follow others do so."""
        found = q.copy()
        for name, (other, function) in self.couplings.items():
            found[:, self.names.index(name)] = function(q[:, self.names.index(other)])[0]
        return found

    @property
    def mass(self) -> float:
        """The mass in kg."""
        return float(self.tree.mass)

    def states(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (K, nv) of the tree from those of the coordinates (K, n)."""
        found = np.zeros((3, len(q), self.tree.nv))
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            x, slope, bend = function(q[:, at])
            found[:, :, k] = x, slope * v[:, at], slope * a[:, at] + bend * v[:, at] ** 2
        return found[0], found[1], found[2]

    def forces(self, q: Array, tau: Array) -> Array:
        """Return the generalised forces (K, n) of the coordinates from those of the tree (K, nv)."""
        found = np.zeros(q.shape)
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            found[:, at] += function(q[:, at])[1] * tau[:, k]
        return found

    def _function(self, name: str) -> tuple[int, Curve]:
        coordinate, function = self.functions[name]
        return self.names.index(coordinate), function


def skeleton(model: OsimModel) -> Skeleton:
    """Return the tree of an OpenSim skeleton (``recordings.read_osim``), with the functions of its joints.

    Joints may be custom joints, pins, slides, universal, gimbal, ball, planar and free joints, and welds. Coordinates
    that follow others (couplings) do so in inverse kinematics; in inverse dynamics each coordinate has its motion, as
    in OpenSim. The markers of the file are ``markers``. Moments of ball and free joints are those of their three
    angles; OpenSim's belong to the angular velocity.
    """
    links, joints = [Link(GROUND)], list[Joint]()
    functions: dict[str, tuple[str, Curve]] = {}
    links += [Link(body.name, body.mass, body.com, body.inertia) for body in model.bodies.values()]
    for joint in model.joints.values():
        before, after = (_pose(each) for each in (joint.parent_place, joint.child_place))
        steps = _steps(model, joint)
        if not steps:
            joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, before @ inverse_pose(after)))
            continue
        parent = joint.parent
        for k, (kind, axis, coordinate, function) in enumerate(steps):
            name, last = f"{joint.name}/{k + 1}", k == len(steps) - 1
            child = joint.child if last else f"{joint.child}/{k + 1}"
            place = before @ inverse_pose(after) if last else before
            own = after[:3, :3] @ axis if last else axis
            joints.append(Joint(name, kind, parent, child, place, own, after[:3, 3] if last else np.zeros(3)))
            if not last:
                links.append(Link(child))
            functions[name] = coordinate, function
            parent, before = child, np.eye(4)
    names = tuple(each for each in model.coordinates if any(each == used for used, _ in functions.values()))
    tree = build(model.name, links, joints, [], model.gravity)
    known = {name: model.coordinates[name] for name in names}
    return Skeleton(tree, names, functions, _markers(tree, model), known, _couplings(model, names))


def _markers(tree: Robot, model: OsimModel) -> MarkerSet:
    """Return the markers on links of the tree: those of welded bodies are on the body that carries these."""
    places = dict[str, Place]()
    for name, marker in model.markers.items():
        at = tree.place(marker.body)
        if at.link >= 0:  # a marker on the ground does not move
            x, y, z = at.pose[:3, :3] @ marker.location + at.pose[:3, 3]
            places[name] = tree.links[at.link].name, (float(x), float(y), float(z))
    return MarkerSet(places, free=frozenset(name for name in places if not model.markers[name].fixed))


def _couplings(model: OsimModel, names: tuple[str, ...]) -> dict[str, tuple[str, Curve]]:
    """Return the coordinates that follow others, each with one that follows none."""
    direct = {each.dependent: each for each in model.couplings if each.dependent in names}
    found: dict[str, tuple[str, Curve]] = {}
    for name, coupling in direct.items():
        where = f"{model.source}: coordinate {name!r}"
        if coupling.independent not in names or coupling.independent in direct:
            text = f"it follows {coupling.independent!r}"
            raise ModelError(describe(text, where=where, allowed="a coordinate that follows no other"))
        found[name] = coupling.independent, _curve(coupling)
    return found


def _pose(place: Array) -> Array:
    """Return the pose of a frame from its translation and its angles about x, the new y and the new z."""
    return make_pose(from_rpy(-place[3:]).T, place[:3])


def _steps(model: OsimModel, joint: OsimJoint) -> list[tuple[str, Array, str, Curve]]:
    """Return kind, axis, coordinate and function of the slides and rotations of a joint, in their order."""
    if joint.kind == WELD:
        return []
    where = f"{model.source}: joint {joint.name!r}"
    if joint.kind in _KINDS:
        steps = _KINDS[joint.kind]
        if len(joint.coordinates) != len(steps):
            text = f"{len(joint.coordinates)} coordinates of a {joint.kind}"
            raise ModelError(describe(text, where=where, allowed=str(len(steps))))
        return [(kind, np.eye(3)[axis], joint.coordinates[k].name, IDENTITY) for kind, axis, k in steps]
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
            function = _curve(axis)
            if not axis.coordinates:
                function = Curve((float(function(np.zeros(1))[0][0]),))
                if not function.polynomial[0]:
                    continue
            found.append((kind, axis.axis, axis.coordinates[0] if axis.coordinates else own, function))
    return found


def _curve(given: OsimAxis | OsimCoupling) -> Curve:
    """Return the function of an axis or of a coupling."""
    numbers = given.numbers
    if given.function in ("LinearFunction", "PolynomialFunction", "Constant"):
        return Curve(tuple((given.scale * numbers).tolist()))
    x, y = numbers[::2], given.scale * numbers[1::2]
    return broken_line(x, y) if given.function == "PiecewiseLinearFunction" else cubic_spline(x, y)
