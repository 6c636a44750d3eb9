"""Links without shapes, drawn from their numbers: rods between joints, marks of joints, ellipsoids of inertia."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Solid
from torsor.formats.meshes.triangles import Triangles
from torsor.mechanism import Link, Mechanism
from torsor.mechanism.flexible import Modes
from torsor.spatial import make_pose
from torsor.view.scene.solids import ball, rod, surface_of

THIN = 0.014  # radius of a bone, as a fraction of the size of the robot
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
    carried = [k for k, joint in enumerate(robot.joints) if joint.parent == link.name]
    if index < 0:  # no rod to a body that moves freely by joints one after the other
        carried = [k for k in carried if not (robot.joints[k].type == "prismatic" and _is_step(robot, k))]
    stiff = [k for k in carried if not isinstance(robot.joints[k].flexible, Modes)]  # beams are drawn bent
    ends = [(robot.joints[k].placement @ robot.joints[k].frame)[:3, 3] for k in stiff]
    if index >= 0 and not carried:
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.link == link.name]
        ends = ends or [np.zeros(3), link.com + (link.com - start)]
    return start, ends


def bones(robot: Mechanism, index: int, radius: float) -> tuple[Solid, ...]:
    """Return rods (in the link's axes) from the joint of a link (-1: from the origin of the base) to those it carries.

    A link at the end of the tree has rods to its frames or, without any, through its centre of mass.
    """
    start, ends = _ends(robot, index)
    return tuple(rod(start, end, radius) for end in ends if np.linalg.norm(end - start) > radius)


def joint_mark(robot: Mechanism, index: int, radius: float) -> Solid | None:
    """Return a mark of a joint in the child's axes: a cylinder along its axis, a box if it slides, else a ball.

    Joints through one point with massless links between them are one joint for the eye: a ball on the last link.
    """
    joint = robot.joints[index]
    if joint.type in ("free", "planar", "fixed") or joint.flexible is not None or _is_step(robot, index):
        return None
    if robot.parents[index] >= 0 and _is_step(robot, robot.parents[index]):
        return ball(1.6 * radius, joint.frame)
    if joint.type in ("revolute", "continuous", "helical"):
        return Solid("cylinder", joint.frame, np.array([1.6, 1.6, 4.0]) * radius)
    return (
        Solid("box", joint.frame, np.full(3, 3 * radius))
        if joint.type == "prismatic"
        else ball(1.6 * radius, joint.frame)
    )


def _is_step(robot: Mechanism, index: int) -> bool:
    """Return whether a link is only the way from one joint to another at the same point: it has no mass."""
    carried = [joint for joint in robot.joints if joint.parent == robot.links[index].name]
    if robot.links[index].mass > 0 or len(carried) != 1:
        return False
    here, there = robot.joints[index].frame[:3, 3], (carried[0].placement @ carried[0].frame)[:3, 3]
    return bool(np.allclose(here, there, atol=1e-9))


def ellipsoid_solid(link: Link) -> Solid | None:
    """Return the solid ellipsoid with the mass and inertia of a link, in the link's axes; None if there is none to see.

    Its semi-axes a, b, c follow from the principal moments: Ix = m (b² + c²) / 5 and so on.

    Example:
        >>> ball = Link("ball", 1.0, inertia=0.4 * 0.3**2 * np.eye(3))
        >>> ellipsoid_solid(ball).size.round(9).tolist()
        [0.3, 0.3, 0.3]
    """
    if not link.mass > 0:
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    squares = 2.5 * (moments.sum() - 2 * moments) / link.mass
    if squares.max() <= 0 or squares.min() < (SLENDER**2) * squares.max():
        return None
    axes = axes if np.linalg.det(axes) > 0 else -axes
    return Solid("ball", make_pose(axes, link.com), np.sqrt(squares))


def ellipsoid(link: Link) -> Triangles | None:
    """Return the surface of ``ellipsoid_solid``, or None."""
    solid = ellipsoid_solid(link)
    return None if solid is None else surface_of(solid)
