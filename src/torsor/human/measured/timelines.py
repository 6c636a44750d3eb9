"""Measured gaits for viewers: motion of the scaled body, ground forces, and measured and model markers."""

from dataclasses import replace
from functools import partial

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Solid, Thing
from torsor.human.body.coordinates import GLOBAL
from torsor.human.measured.gait import MeasuredGait
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.recordings.recording import at_times
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Timeline, timeline_of
from torsor.spatial import make_pose

MARKER_COLOR = (0.96, 0.58, 0.11, 1.0)
MARKER_RADIUS = 0.012  # m
TORSO, HEAD_HEIGHT = "torso", 1.46  # height of the middle of the head, relative to the height of the shoulders
HEAD_SIZE, HEAD_COLOR = np.array([0.1, 0.13, 0.085]), (0.86, 0.67, 0.56, 0.35)


@timeline_of.register
def _(gait: MeasuredGait) -> Timeline:
    run, title, moments, ground = gait.trajectory(), f"{gait.source}: {gait.mass:.4g} kg", None, None
    names = gait.motion.body.coordinate_names
    # Residuals are not joint moments, and some coordinates of a skeleton move several joints of its tree.
    kept = [k for k, name in enumerate(names) if name in run.robot.coordinate_names[len(GLOBAL) :]]
    if gait.dynamics is not None:
        moments = gait.dynamics.forces[:, kept]
    joints = tuple(names[k] for k in kept)
    names_of_feet = () if gait.ground is None else gait.ground.names
    if gait.ground is not None:
        feet = gait.ground.without_unloaded()
        points = np.concatenate([feet.centers, feet.forces], axis=-1)
        ground = at_times(run.times, feet.times, points)
    states = (run.times, run.q, run.v, run.a, moments, joints, run.external, ground, names_of_feet)
    seen = None if gait.recording is None else at_times(run.times, gait.recording.times, gait.recording.positions)
    things = (*_markers(gait.motion.markers, run.robot), *_head(run.robot))
    line = Timeline(run.robot, title, *states, valid=gait.valid, markers=seen, things=things)
    return replace(line, rotation_title="angle")


def _markers(markers: MarkerSet, tree: Robot) -> tuple[Thing, ...]:
    """Return the markers of each link as balls that move with the link."""
    on, things = np.array(markers.links(tree)), list[Thing]()
    for link in np.unique(on).tolist():
        places, name = markers.local[on == link], f"markers of {tree.links[link].name}"
        balls = tuple(Solid("ball", make_pose(p=at), np.full(3, MARKER_RADIUS)) for at in places)
        things.append(Thing(name, (name, places.tobytes()), MARKER_COLOR, balls, partial(_pose, link=link)))
    return tuple(things)


def _head(tree: Robot) -> tuple[Thing, ...]:
    """Return a head above the shoulders of an OpenSim skeleton, whose torso includes the head."""
    arms = [joint.placement[:3, 3] for joint in tree.joints if joint.parent == TORSO]
    if not arms:
        return ()
    at = np.mean(arms, axis=0) * [1.0, HEAD_HEIGHT, 1.0]
    name, solid = "head", Solid("ball", make_pose(p=at), HEAD_SIZE)
    return (Thing(name, (name, at.tobytes()), HEAD_COLOR, (solid,), partial(_pose, link=tree.link_names.index(TORSO))),)


def _pose(poses: Array, link: int) -> Array:
    return poses[..., link, :, :]
