"""Links without shapes, drawn from their numbers: rods between joints, marks of joints, ellipsoids of inertia."""

import numpy as np

from torsor.arrays import Array
from torsor.mechanism import Joint, Link, Mechanism
from torsor.spatial import axis_frame, make_pose
from torsor.view.scene.triangles import Triangles, box, capsule, cylinder, sphere

THIN = 0.02  # radius of a bone, as a fraction of the size of the robot
SLENDER = 0.02  # an ellipsoid with a semi-axis below this fraction of its largest is no body that one could see


def size_of(robot: Mechanism) -> float:
    """Return a length (m) typical of a robot: the longest way from the base to a joint or centre of mass, 1 if it is 0.

    Example:
        >>> size_of(torsor.library.planar_chain(3))
        2.5
    """
    reach, places = {robot.base.name: 0.0}, []
    for joint, link in zip(robot.joints, robot.links, strict=True):
        reach[link.name] = reach[joint.parent] + float(np.linalg.norm(joint.placement[:3, 3]))
        places.append(reach[link.name] + float(np.linalg.norm(link.com)))
    return max([*places, *reach.values()]) or 1.0


def _ends(robot: Mechanism, index: int) -> tuple[Array, list[Array]]:
    """Return where a link's own joint is, and the points that its bones end at: the joints that it carries."""
    link, start = (robot.base, np.zeros(3)) if index < 0 else (robot.links[index], robot.joints[index].frame[:3, 3])
    ends = [(joint.placement @ joint.frame)[:3, 3] for joint in robot.joints if joint.parent == link.name]
    if index >= 0 and not ends:
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.link == link.name]
        ends = ends or [np.zeros(3), link.com + (link.com - start)]
    return start, ends


def bones(robot: Mechanism, index: int, radius: float) -> list[Triangles]:
    """Return rods (in the link's axes) from the joint of a link (-1: from the origin of the base) to those it carries.

    A link at the end of the tree has rods to its frames or, without any, through its centre of mass.
    """
    start, ends = _ends(robot, index)
    found = []
    for end in ends:
        length = float(np.linalg.norm(end - start))
        if length > radius:
            pose = make_pose(axis_frame((end - start) / length), (start + end) / 2)
            found.append(capsule(radius, length).at(pose))
    return found


def joint_mark(joint: Joint, radius: float) -> Triangles | None:
    """Return a mark of a joint in the child's axes: a cylinder along its axis, a box if it slides, else a ball."""
    if joint.type in ("free", "planar", "fixed") or joint.flexible is not None:
        return None
    if joint.type in ("revolute", "continuous", "helical"):
        return cylinder(1.6 * radius, 4 * radius).at(joint.frame)
    return (box([3 * radius] * 3) if joint.type == "prismatic" else sphere(1.6 * radius)).at(joint.frame)


def ellipsoid(link: Link) -> Triangles | None:
    """Return the solid ellipsoid with the mass and inertia of a link, in the link's axes; None if there is none to see.

    Its semi-axes a, b, c follow from the principal moments: Ix = m (b² + c²) / 5 and so on.

    Example:
        >>> ball = Link("ball", 1.0, inertia=0.4 * 0.3**2 * np.eye(3))
        >>> ellipsoid(ball).vertices.max(axis=0).round(9).tolist()
        [0.3, 0.3, 0.3]
    """
    if not link.mass > 0:
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    squares = 2.5 * (moments.sum() - 2 * moments) / link.mass
    if squares.max() <= 0 or squares.min() < (SLENDER**2) * squares.max():
        return None
    axes = axes if np.linalg.det(axes) > 0 else -axes
    return sphere(1.0).scaled(np.sqrt(squares)).at(make_pose(axes, link.com))
