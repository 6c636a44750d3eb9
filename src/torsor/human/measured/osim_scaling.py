"""Scaling of OpenSim skeletons to a person: body factors from marker distances, masses, and marker positions.

A measurement compares the mean distance between marker pairs in a standing trial with the distance on the skeleton.
With the diagonal matrix S of the factors of a body, its points, joints and centre of mass move from x to S x. With the
mass ratio m'/m, its second moment of mass E = trace(I)/2 - I becomes

    E' = m'/m S E S        I' = trace(E') - E'
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, instance_of, known_name, number, table
from torsor.base.errors import ModelError, listing
from torsor.formats.osim.model import OsimBody, OsimJoint, OsimShape, pose_of
from torsor.human.measured.inverse_kinematics import inverse_kinematics
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.skeleton import Skeleton, skeleton
from torsor.human.recordings import Markers, OsimModel
from torsor.human.recordings.recording import checked_markers
from torsor.spatial import inverse_pose

WHERE = "scaled skeleton"
MIN_FACTOR, MAX_FACTOR = 0.3, 3.0  # plausible factors, from a small child to a giant relative to an adult skeleton
ANCHORS = 1000.0  # weight of fixed markers relative to movable ones during placement of the latter


@dataclass(frozen=True)
class Measurement:
    """A length that determines scale factors, the mean distance of ``pairs`` of markers.

    The ratio of measured to model length scales the ``bodies``, {body: axes}, along their axes "x", "y", "z".

    Example:
        >>> Measurement([("R.Knee", "R.Ankle")], {"tibia_r": "xyz"}).bodies
        {'tibia_r': 'xyz'}
    """

    pairs: Sequence[tuple[str, str]]
    bodies: Mapping[str, str]


def scale_factors(model: OsimModel, standing: Markers, measurements: Sequence[Measurement]) -> dict[str, Array]:
    """Return the factors (3,) along x, y and z of the bodies scaled by measurements.

    Each factor is the mean over the pairs of the ratio of the measured distance (mean over the frames) to the distance
    on the skeleton in its default posture.
    """
    body, factors = skeleton(model), dict[str, Array]()
    places = _places(body)
    for measurement in measurements:
        ratios = []
        for pair in measurement.pairs:
            for name in pair:
                if name not in places or name not in standing.names:
                    where = f"{WHERE}: the pair {pair[0]!r}, {pair[1]!r}"
                    place, names = ("skeleton", places) if name not in places else ("standing trial", standing.names)
                    allowed = listing(names, like=name)
                    raise ModelError(f"the {place} has no marker {name!r}", value=name, where=where, allowed=allowed)
            apart = np.linalg.norm(standing.position(pair[0]) - standing.position(pair[1]), axis=1)
            modelled = float(np.linalg.norm(places[pair[0]] - places[pair[1]]))
            if not np.isfinite(apart).any() or modelled == 0.0:
                what = f"{pair[0]!r} and {pair[1]!r} are never seen together, or coincide on the skeleton"
                raise ModelError(what, where=standing.source, fix="choose another pair")
            ratios.append(float(np.nanmean(apart)) / modelled)
        for name, axes in measurement.bodies.items():
            if set(axes) - set("xyz") or not axes:
                raise ModelError(f"axes of {name} are {axes!r}", value=axes, where=WHERE, allowed='"x", "xy", "xyz"')
            factors.setdefault(name, np.ones(3))[["xyz".index(axis) for axis in axes]] = np.mean(ratios)
    return factors


def scaled_model(model: OsimModel, factors: Mapping[str, ArrayLike], mass: float | None = None) -> OsimModel:
    """Return a skeleton with bodies scaled by ``factors`` {body: factor or (x, y, z)}, and with a ``mass`` (kg).

    Joints, centres of mass, inertias and markers are scaled accordingly. Bodies keep their fractions of the total mass.

    Example:
        >>> origin, one = np.zeros(6), np.ones(3)
        >>> bodies = {"foot": OsimBody("foot", 1.0, 0.1 * one, np.eye(3), one)}
        >>> model = OsimModel("block", bodies, {}, {}, np.zeros(3))
        >>> scaled_model(model, {"foot": 2.0}, 3.0).bodies["foot"].inertia[0, 0]
        np.float64(12.0)
    """
    instance_of(model, OsimModel, WHERE, "model", allowed="a skeleton of torsor.human.recordings.read_osim")
    by_body = {name: np.ones(3) for name in model.bodies}
    for name, value in table(factors, WHERE, "factors").items():
        known_name(name, by_body, f"{model.source}: factors", "body")
        vector = finite_vector(np.broadcast_to(np.asarray(value, dtype=float), (3,)) if np.ndim(value) == 0 else value)
        if vector is None or vector.shape != (3,) or vector.min() < MIN_FACTOR or vector.max() > MAX_FACTOR:
            what = f"the value of {name} is {value}"
            fix = "check the marker pairs and their unit"
            raise ModelError(what, where=WHERE, allowed=f"{MIN_FACTOR:g} to {MAX_FACTOR:g}, or three of them", fix=fix)
        by_body[name] = vector
    ratio = 1.0 if mass is None else number(mass, WHERE, "mass (kg)", above=0.0) / model.mass
    bodies = {name: _scaled_body(body, by_body[name], ratio) for name, body in model.bodies.items()}
    by_name = defaultdict(lambda: np.ones(3), by_body)  # the ground has factors of 1
    markers = {name: m._replace(location=by_name[m.body] * m.location) for name, m in model.markers.items()}
    shapes = tuple(_scaled_shape(shape, by_name[shape.body]) for shape in model.shapes)
    joints = {name: _scaled_joint(j, by_name[j.parent], by_name[j.child]) for name, j in model.joints.items()}
    return replace(model, bodies=bodies, joints=joints, markers=markers, shapes=shapes)


def scaled_skeleton(
    model: OsimModel, standing: Markers, measurements: Sequence[Measurement], mass: float | None = None
) -> OsimModel:
    """Return a skeleton scaled to a standing person: sizes, ``mass`` (kg), and positions of movable markers.

    For ``measurements`` see ``scale_factors``. Without ``mass``, the skeleton keeps its own. The posture of the
    skeleton is fitted to its fixed markers. Markers declared movable in the file (clusters on thighs and shanks) are
    then moved to their measured positions.
    """
    checked_markers(standing, WHERE, "standing")
    scaled = scaled_model(model, scale_factors(model, standing, measurements), mass)
    body = skeleton(scaled)
    known = [name for name in body.markers.names if name in standing.names]
    movable = [name for name in known if name in body.markers.free]
    mean = standing.only(known).with_positions(np.nanmean(standing.only(known).positions, axis=0)[None], [0.0])
    weights = {name: 1.0 if name in movable else ANCHORS for name in known}
    used = MarkerSet(body.markers.only(known).places, weights, body.markers.free & set(known))
    q = inverse_kinematics(body, used, mean).q
    x = body.states(q, 0 * q, 0 * q)[0][0]
    markers = dict(scaled.markers)
    for name in movable:
        pose = body.tree.pose(x, markers[name].body)
        place = mean.position(name)[0]
        if np.isfinite(place).all():
            back = inverse_pose(pose)
            markers[name] = markers[name]._replace(location=back[:3, :3] @ place + back[:3, 3])
    return replace(scaled, markers=markers)


def _places(body: Skeleton) -> dict[str, Array]:
    """Return the marker positions (3,) of a skeleton in its default posture."""
    q = body.completed(np.array([[body.coordinates[name].default for name in body.names]]))
    poses = body.tree.poses(body.states(q, 0 * q, 0 * q)[0][0])
    local = zip(body.markers.names, body.markers.links(body.tree), body.markers.local, strict=True)
    return {name: poses[link, :3, :3] @ at + poses[link, :3, 3] for name, link, at in local}


def _scaled_body(body: OsimBody, factors: Array, ratio: float) -> OsimBody:
    second = np.trace(body.inertia) / 2 * np.eye(3) - body.inertia
    second = ratio * factors[:, None] * second * factors
    inertia = np.trace(second) * np.eye(3) - second
    return OsimBody(body.name, ratio * body.mass, factors * body.com, inertia, factors * body.scale)


def _scaled_shape(shape: OsimShape, factors: Array) -> OsimShape:
    """Return a surface scaled with its body; the factors of a rotated surface are means along its axes."""
    along = pose_of(shape.place)[:3, :3].T ** 2 @ factors
    return shape._replace(scale=along * shape.scale, place=_moved(shape.place, factors))


def _scaled_joint(joint: OsimJoint, parent: Array, child: Array) -> OsimJoint:
    """Return a joint with its frames, and its translations on the parent, scaled by the factors of the bodies."""
    axes = tuple(
        axis._replace(scale=axis.scale * float(axis.axis @ (parent * axis.axis) / (axis.axis @ axis.axis)))
        if axis.name.startswith("translation")
        else axis
        for axis in joint.axes
    )
    before, after = _moved(joint.parent_place, parent), _moved(joint.child_place, child)
    return joint._replace(parent_place=before, child_place=after, axes=axes)


def _moved(place: Array, factors: Array) -> Array:
    return np.concatenate([factors * place[:3], place[3:]])
