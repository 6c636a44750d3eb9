"""Collision shapes as what is drawn: a robot whose visuals are its shapes."""

from dataclasses import replace

from torsor.base.errors import ModelError
from torsor.mechanism import Link, Shape, Visual
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

COLOR = (0.85, 0.45, 0.2, 0.55)  # shapes shine through: they overlap at joints
GROUND = (0.6, 0.62, 0.65, 0.4)
SIDE, THICK = 2.0, 0.002  # m: a plane without end is drawn as a plate


def showing_shapes(robot: Robot) -> Robot:
    """Return the robot with its collision shapes as visuals.

    A mesh is drawn as it is, not as its convex hull.

    Example:
        >>> arm = torsor.library.two_link().with_shapes("link2", [torsor.Shape("capsule", (0.05, 0.4))])
        >>> [visual.shape for visual in showing_shapes(arm).links[1].visuals]
        ['capsule']
    """
    if not any(link.shapes for link in (robot.base, *robot.links)):
        fix = "load a file with collision geometry, or leave --collision out"
        raise ModelError("no link has a collision shape", where=robot.name, fix=fix)
    return replace(robot, base=_shapes_shown(robot.base), links=tuple(map(_shapes_shown, robot.links)))


def _shapes_shown(link: Link) -> Link:
    return replace(link, visuals=tuple(map(_visual, link.shapes)))


def _visual(shape: Shape) -> Visual:
    if shape.shape == "plane":
        pose = shape.pose @ make_pose(p=[0, 0, -THICK / 2])
        return Visual("box", (SIDE, SIDE, THICK), pose, GROUND, name=shape.name)
    return Visual(shape.shape, shape.size, shape.pose, COLOR, shape.mesh, shape.path, shape.name, shape.folders)
