"""Links without shapes: rods between joints, joint marks, and inertia ellipsoids."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.scenes import Solid
from torsor.formats.meshes.triangles import Triangles, box, cylinder, joined, sphere
from torsor.mechanism import Link, Mechanism
from torsor.mechanism.flexible import Modes
from torsor.spatial import axis_frame, make_pose

MAX_NODES = 150  # finite-element nodes that are drawn
STRAIGHT_TOLERANCE = 1e-6  # largest distance of nodes from the line to the tip of a beam, in lengths of it
ROD_OVERLAP = 1.03  # length of a rod in distances of its nodes, so that a bent beam has no gaps


@dataclass(frozen=True, eq=False)
class Beam:
    """Rods between pairs (E, 2) of the P points of a flexible link, in the axes of the ``link`` that carries it.

    ``points`` (P, 3) are the points at rest. With the coordinates eta = q[..., ``at``], they move to points +
    ``shapes`` eta + eta^T ``second`` eta / 2, where shapes is (P, 3, n) and second is (P, 3, n, n).
    """

    link: int
    at: slice
    points: Array
    shapes: Array
    second: Array
    pairs: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of rods."""
        return len(self.pairs)

    def bent(self, q: Array) -> Array:
        """Return the points (..., P, 3) at positions q (..., nq), in the axes of the link."""
        eta = q[..., self.at]
        moved = np.einsum("pxk,...k->...px", self.shapes, eta)
        return np.asarray(self.points + moved + 0.5 * np.einsum("pxkl,...k,...l->...px", self.second, eta, eta))

    def poses(self, links: Array, q: Array) -> Array:
        """Return the rod poses (..., E, 4, 4) in base axes, with z along the rods. ``links`` is (..., L + 1, 4, 4)."""
        points = self.bent(q)
        start, end = points[..., self.pairs[:, 0], :], points[..., self.pairs[:, 1], :]
        frames = np.zeros((*start.shape[:-1], 4, 4))
        frames[..., :3, :3], frames[..., :3, 3], frames[..., 3, 3] = _frames_along(end - start), (start + end) / 2, 1.0
        return links[..., self.link + 1, None, :, :] @ frames

    def solids(self, radius: float) -> tuple[Solid, ...]:
        """Return the rods, each in the axes of the rod."""
        lengths = np.linalg.norm(np.diff(self.points[self.pairs], axis=1)[:, 0], axis=-1)
        return tuple(
            Solid("cylinder", np.eye(4), np.array([radius, radius, ROD_OVERLAP * length])) for length in lengths
        )


def beams(robot: Mechanism) -> Iterator[Beam]:
    """Return the flexible links of a robot that have modes. Strain-based rods are chains of links instead."""
    for index, joint in enumerate(robot.joints):
        if isinstance(joint.flexible, Modes):
            modes = joint.flexible
            R, shift = joint.placement[:3, :3], joint.placement[:3, 3] - joint.placement[:3, :3] @ modes.positions[-1]
            kept = np.unique(np.linspace(0, len(modes.positions) - 1, MAX_NODES).round().astype(int))
            at_rest = np.concatenate([np.zeros((1, 3)), modes.positions[kept]])
            first, second = (
                np.concatenate([np.zeros((1, *shapes.shape[1:])), shapes[kept]])
                for shapes in (modes.shapes, np.asarray(modes.second))
            )
            turned = np.einsum("xy,pyk->pxk", R, first), np.einsum("xy,pykl->pxkl", R, second)
            link, at = robot.parents[index], robot.coordinates[index].q
            yield Beam(link, at, at_rest @ R.T + shift, *turned, _pairs(at_rest))


def is_beam(robot: Mechanism, link: Link) -> bool:
    """Return whether all the mass of a link belongs to its modes; then it is drawn bent."""
    carried = [joint.flexible for joint in robot.joints if joint.parent == link.name]
    modes = [flexible for flexible in carried if isinstance(flexible, Modes)]
    return bool(modes) and link.mass <= sum(each.body[0] for each in modes) * (1 + 1e-9)


def _frames_along(ways: Array) -> Array:
    """Return rotations (..., 3, 3) whose z axes are along vectors (..., 3)."""
    z = ways / np.linalg.norm(ways, axis=-1, keepdims=True)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z), axis=-1)], z)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def _pairs(points: Array) -> NDArray[np.int64]:
    """Return the pairs of points that rods connect: along a beam, or the minimum spanning tree of the points."""
    tip = points[-1]
    length = float(np.linalg.norm(tip))
    along = points @ tip / length if length > 0 else np.zeros(len(points))
    aside = points - np.outer(along, tip / length) if length > 0 else points
    if np.linalg.norm(aside, axis=1).max() <= STRAIGHT_TOLERANCE * length:
        order = np.argsort(along, kind="stable")
        pairs = np.stack([order[:-1], order[1:]], axis=1)
    else:
        pairs = _shortest_tree(points)
    return np.asarray(pairs[np.linalg.norm(np.diff(points[pairs], axis=1)[:, 0], axis=-1) > 0], dtype=np.int64)


def _shortest_tree(points: Array) -> NDArray[np.int64]:
    """Return the edges (P - 1, 2) of the minimum spanning tree of points, by Prim's algorithm."""
    apart = np.linalg.norm(points[:, None] - points, axis=-1)
    nearest, best, out = np.zeros(len(points), dtype=np.int64), apart[0].copy(), np.ones(len(points), dtype=bool)
    out[0], pairs = False, []
    for _ in range(len(points) - 1):
        new = int(np.argmin(np.where(out, best, np.inf)))
        pairs.append((int(nearest[new]), new))
        out[new] = False
        closer = apart[new] < best
        nearest[closer], best[closer] = new, apart[new][closer]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


UNIT_SURFACES = {"box": box([1.0, 1.0, 1.0]), "ball": sphere(1.0), "cylinder": cylinder(1.0, 1.0)}
"""Surfaces of unit solids: edges of a box, radius of a ball, radius and length of a cylinder along z."""


def surface_of(*solids: Solid) -> Triangles:
    """Return the surface of several solids."""
    return joined([UNIT_SURFACES[solid.shape].scaled(solid.size).at(solid.pose) for solid in solids])


def ball(radius: float, pose: Array) -> Solid:
    """Return a ball."""
    return Solid("ball", pose, np.full(3, radius))


def rod(start: Array, end: Array, radius: float) -> Solid:
    """Return a cylinder between two points."""
    length = float(np.linalg.norm(end - start))
    return Solid("cylinder", make_pose(axis_frame(end - start), (start + end) / 2), np.array([radius, radius, length]))


BONE_RADIUS = 0.014  # radius of a rod, in sizes of the robot
MIN_AXIS_RATIO = 0.02  # smallest semi-axis of a visible ellipsoid, as a fraction of its largest


def size_of(robot: Mechanism) -> float:
    """Return the size (m) of a robot: the longest path from the base to a joint or centre of mass, or 1 if it is 0."""
    reach, places = {robot.base.name: 0.0}, []
    for joint, link in zip(robot.joints, robot.links, strict=True):
        reach[link.name] = reach[joint.parent] + float(np.linalg.norm(joint.placement[:3, 3]))
        places.append(reach[link.name] + float(np.linalg.norm(link.com)))
    return max([*places, *reach.values()]) or 1.0


def _ends(robot: Mechanism, index: int) -> tuple[Array, list[Array]]:
    """Return the position of a link's joint, and the ends of its rods, which are at the joints that it carries."""
    link, start = (robot.base, np.zeros(3)) if index < 0 else (robot.links[index], robot.joints[index].frame[:3, 3])
    carried = [k for k, joint in enumerate(robot.joints) if joint.parent == link.name]
    if index < 0:  # no rod to a body that moves freely by successive joints
        carried = [k for k in carried if not (robot.joints[k].type == "prismatic" and _is_step(robot, k))]
    stiff = [k for k in carried if not isinstance(robot.joints[k].flexible, Modes)]  # beams are drawn bent
    ends = [(robot.joints[k].placement @ robot.joints[k].frame)[:3, 3] for k in stiff]
    if index >= 0 and not carried:
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.link == link.name]
        ends = ends or [np.zeros(3), link.com + (link.com - start)]
    return start, ends


def bones(robot: Mechanism, index: int, radius: float) -> tuple[Solid, ...]:
    """Return rods, in a link's axes, from its joint (-1: the base origin) to the joints that it carries.

    A link at the end of the tree has rods to its frames or, without frames, through its centre of mass.
    """
    start, ends = _ends(robot, index)
    return tuple(rod(start, end, radius) for end in ends if np.linalg.norm(end - start) > radius)


DENSITY = 1000.0  # of flesh, kg/m3


def flesh(rods: tuple[Solid, ...], mass: float) -> tuple[Solid, ...]:
    """Return ellipsoids along the rods of a link, whose volumes correspond to the mass (kg) of the link."""
    halves = [0.5 * rod.size[2] for rod in rods]
    widths = [np.sqrt(mass / len(rods) / (4 / 3 * np.pi * DENSITY * half)) for half in halves]
    sizes = (np.array([width, width, half]) for width, half in zip(widths, halves, strict=True))
    return tuple(Solid("ball", rod.pose, size) for rod, size in zip(rods, sizes, strict=True))


def joint_mark(robot: Mechanism, index: int, radius: float) -> Solid | None:
    """Return a joint mark in the child's axes: a cylinder (revolute), a box (prismatic) or a ball (others).

    Joints at the same point with massless links between them share one mark, a ball on the last link.
    """
    joint = robot.joints[index]
    if joint.type in ("free", "planar", "fixed") or joint.flexible is not None or _is_step(robot, index):
        return None
    if robot.parents[index] >= 0 and _is_step(robot, robot.parents[index]):
        return ball(1.6 * radius, joint.frame)
    if joint.type in ("revolute", "continuous", "helical"):
        return Solid("cylinder", joint.frame, np.array([1.6, 1.6, 4.0]) * radius)
    box = Solid("box", joint.frame, np.full(3, 3 * radius))
    return box if joint.type == "prismatic" else ball(1.6 * radius, joint.frame)


def _is_step(robot: Mechanism, index: int) -> bool:
    """Return whether a massless link connects two joints at the same point."""
    carried = [joint for joint in robot.joints if joint.parent == robot.links[index].name]
    if robot.links[index].mass > 0 or len(carried) != 1:
        return False
    here, there = robot.joints[index].frame[:3, 3], (carried[0].placement @ carried[0].frame)[:3, 3]
    return bool(np.allclose(here, there, atol=1e-9))


def ellipsoid_solid(link: Link) -> Solid | None:
    """Return the solid ellipsoid with the mass and inertia of a link, in link axes, or None if it is not visible.

    Its semi-axes a, b, c follow from the principal moments: Ix = m (b² + c²) / 5 and so on.
    """
    if not link.mass > 0:
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    squares = 2.5 * (moments.sum() - 2 * moments) / link.mass
    if squares.max() <= 0 or squares.min() < (MIN_AXIS_RATIO**2) * squares.max():
        return None
    axes = axes if np.linalg.det(axes) > 0 else -axes
    return Solid("ball", make_pose(axes, link.com), np.sqrt(squares))


BONE_SLENDERNESS = 0.07  # largest radius of a rod, in root-mean-square distances between joints


def bone_radius(robot: Mechanism) -> float:
    """Return the radius (m) of the rods of a robot."""
    carried = [joint for joint in robot.joints if joint.parent != robot.base.name]
    lengths = [float(np.linalg.norm(joint.placement[:3, 3])) for joint in carried]
    long = [length for length in lengths if length > 0]
    usual = float(np.sqrt(np.mean(np.square(long)))) if long else np.inf
    return min(BONE_RADIUS * size_of(robot), BONE_SLENDERNESS * usual)
