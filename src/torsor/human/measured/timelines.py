"""A measured gait for viewers: the motion of the scaled body, the ground forces, and measured and model markers."""

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


@timeline_of.register
def _(gait: MeasuredGait) -> Timeline:
    run, title, moments, ground = gait.trajectory(), f"{gait.source}: {gait.mass:.4g} kg", None, None
    joints = run.robot.coordinate_names[len(GLOBAL) :] if isinstance(gait.motion.body, Robot) else ()
    if gait.dynamics is not None:  # residuals are no joint moments, and skeletons have coordinates of their own
        moments = run.tau[:, len(GLOBAL) : len(GLOBAL) + len(joints)]
    if gait.ground is not None:
        feet = gait.ground.without_unloaded()
        points = np.concatenate([feet.centers, feet.forces], axis=-1)
        ground = at_times(run.times, feet.times, points)
    states = (run.times, run.q, run.v, run.a, moments, joints, run.external, ground)
    seen = None if gait.recording is None else at_times(run.times, gait.recording.times, gait.recording.positions)
    things = _markers(gait.motion.markers, run.robot)
    return Timeline(run.robot, title, *states, valid=gait.valid, markers=seen, things=things)


def _markers(markers: MarkerSet, tree: Robot) -> tuple[Thing, ...]:
    """Return the markers of each link as balls that move with it."""
    on, things = np.array(markers.links(tree)), list[Thing]()
    for link in np.unique(on).tolist():
        places, name = markers.local[on == link], f"markers of {tree.links[link].name}"
        balls = tuple(Solid("ball", make_pose(p=at), np.full(3, MARKER_RADIUS)) for at in places)
        things.append(Thing(name, (name, places.tobytes()), MARKER_COLOR, balls, partial(_pose, link=link)))
    return tuple(things)


def _pose(poses: Array, link: int) -> Array:
    return poses[..., link, :, :]
