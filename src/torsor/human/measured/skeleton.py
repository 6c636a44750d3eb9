"""OpenSim skeletons as trees of revolute and prismatic joints, with positions as functions of OpenSim's coordinates.

A CustomJoint moves its child by three translations and three rotations, each of which is a function x = f(q) of a
coordinate. In the tree, each is a separate joint, with the name of its coordinate if f(q) = q. With the derivatives f'
and f'',

    x = f(q)      x' = f' q'      x'' = f' q'' + f'' q'^2      tau = sum of f' tau_x

so the generalised forces of the coordinates follow exactly from the tree forces, because constraints do no work.
"""

from dataclasses import dataclass, field

import numpy as np

from torsor.base.arrays import Array
from torsor.formats.joint_decomposition import joint_chain
from torsor.formats.osim.model import GROUND, OsimCoordinate, couplings_of, pose_of, steps_of
from torsor.human.measured.marker_set import MarkerSet, Place
from torsor.human.recordings import OsimModel
from torsor.mechanism import Joint, Link
from torsor.mechanism.curves import IDENTITY, Curve
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import inverse_pose


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A skeleton: the ``tree`` (a Robot), and ``functions`` {joint of the tree: (coordinate, function)}.

    ``names`` are the coordinate names, and ``coordinates`` contains ranges and defaults. ``couplings`` {coordinate:
    (other, function)} contains coordinates that follow others, such as that of a kneecap. ``markers`` are on links of
    the tree. ``states`` and ``forces`` convert between coordinates and the tree.
    """

    tree: Robot
    names: tuple[str, ...]
    functions: dict[str, tuple[str, Curve]]
    markers: MarkerSet = field(default_factory=lambda: MarkerSet({}))
    coordinates: dict[str, OsimCoordinate] = field(default_factory=dict)
    couplings: dict[str, tuple[str, Curve]] = field(default_factory=dict)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Coordinate names, as in ``Robot.coordinate_names``."""
        return self.names

    def completed(self, q: Array) -> Array:
        """Return coordinates (K, n) with coupled coordinates computed from the others."""
        completed_q = q.copy()
        for name, (other, function) in self.couplings.items():
            completed_q[:, self.names.index(name)] = function(q[:, self.names.index(other)])[0]
        return completed_q

    @property
    def mass(self) -> float:
        """Total mass (kg)."""
        return float(self.tree.mass)

    def states(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities, accelerations (K, nv) of the tree from a motion of the coordinates (K, n)."""
        result = np.zeros((3, len(q), self.tree.nv))
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            x, slope, bend = function(q[:, at])
            result[:, :, k] = x, slope * v[:, at], slope * a[:, at] + bend * v[:, at] ** 2
        return result[0], result[1], result[2]

    def forces(self, q: Array, tau: Array) -> Array:
        """Return the generalised forces (K, n) of the coordinates from the forces of the tree (K, nv)."""
        result = np.zeros(q.shape)
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            result[:, at] += function(q[:, at])[1] * tau[:, k]
        return result

    def _function(self, name: str) -> tuple[int, Curve]:
        coordinate, function = self.functions[name]
        return self.names.index(coordinate), function


def tree_of(body: Robot | Skeleton) -> Robot:
    """Return a robot unchanged, or the tree of a skeleton."""
    return body.tree if isinstance(body, Skeleton) else body


def skeleton(model: OsimModel) -> Skeleton:
    """Return the tree of an OpenSim skeleton (``recordings.read_osim``), with the functions of its joints.

    Custom, pin, slider, universal, gimbal, ball, planar, free and weld joints are supported. Coupled coordinates follow
    others in inverse kinematics, but are independent in inverse dynamics, as in OpenSim. The markers of the file become
    ``markers``. Moments of ball and free joints are conjugate to their three angles, whereas OpenSim's moments are
    conjugate to the angular velocity.
    """
    links, joints = [Link(GROUND)], list[Joint]()
    functions: dict[str, tuple[str, Curve]] = {}
    links += [Link(body.name, body.mass, body.com, body.inertia) for body in model.bodies.values()]
    for joint in model.joints.values():
        before, after = (pose_of(place) for place in (joint.parent_place, joint.child_place))
        steps = steps_of(model, joint)
        if not steps:
            joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, before @ inverse_pose(after)))
            continue
        own = [step.coordinate if step.function == IDENTITY else "" for step in steps]
        names = [
            name if own.count(name) == 1 and name not in {"", *model.joints} else f"{joint.name}/{k + 1}"
            for k, name in enumerate(own)
        ]
        turns = [Joint(name, step.kind, "", "", axis=step.axis) for name, step in zip(names, steps, strict=True)]
        between, chain = joint_chain(turns, joint.parent, joint.child, before, after, str)
        links, joints = links + between, joints + chain
        functions |= {turn.name: (step.coordinate, step.function) for turn, step in zip(turns, steps, strict=True)}
    used = tuple(name for name in model.coordinates if any(name == each for each, _ in functions.values()))
    tree = build(model.name, links, joints, [], model.gravity)
    known = {name: model.coordinates[name] for name in used}
    return Skeleton(tree, used, functions, _markers(tree, model), known, couplings_of(model, used))


def _markers(tree: Robot, model: OsimModel) -> MarkerSet:
    """Return the markers on links of the tree; markers of welded bodies are on their carrier."""
    places = dict[str, Place]()
    for name, marker in model.markers.items():
        at = tree.place(marker.body)
        if at.link >= 0:  # markers on the ground do not move
            x, y, z = at.pose[:3, :3] @ marker.location + at.pose[:3, 3]
            places[name] = tree.links[at.link].name, (float(x), float(y), float(z))
    return MarkerSet(places, free=frozenset(name for name in places if not model.markers[name].fixed))
