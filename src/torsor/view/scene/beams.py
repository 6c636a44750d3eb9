"""Flexible links as they bend: rods between the nodes of their modes, which move with the modal coordinates."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.scenes import Solid
from torsor.mechanism import Link, Mechanism
from torsor.mechanism.flexible import Modes

MOST = 150  # nodes of finite elements that are drawn
STRAIGHT = 1e-6  # distance of nodes from the line to the tip, in lengths of it, up to which a link is a beam
LAP = 1.03  # length of a rod in distances of its nodes: no gaps where the beam bends


@dataclass(frozen=True, eq=False)
class Beam:
    """Rods between pairs (E, 2) of P points of a flexible link, in the axes of the ``link`` that it is clamped to.

    ``points`` (P, 3) are at rest; with the coordinates eta = q[..., ``at``] they move to points + ``shapes`` eta +
    eta^T ``second`` eta / 2, where shapes is (P, 3, n) and second (P, 3, n, n).
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
        """Return the poses (..., E, 4, 4) of the rods in base axes, z along them; ``links`` (..., L + 1, 4, 4)."""
        points = self.bent(q)
        start, end = points[..., self.pairs[:, 0], :], points[..., self.pairs[:, 1], :]
        frames = np.zeros((*start.shape[:-1], 4, 4))
        frames[..., :3, :3], frames[..., :3, 3], frames[..., 3, 3] = _frames_along(end - start), (start + end) / 2, 1.0
        return links[..., self.link + 1, None, :, :] @ frames

    def solids(self, radius: float) -> tuple[Solid, ...]:
        """Return the rods, each in its own axes."""
        lengths = np.linalg.norm(np.diff(self.points[self.pairs], axis=1)[:, 0], axis=-1)
        return tuple(Solid("cylinder", np.eye(4), np.array([radius, radius, LAP * each])) for each in lengths)


def beams(robot: Mechanism) -> Iterator[Beam]:
    """Return the flexible links of a robot that have modes. Rods by strains are chains of links already.

    Example:
        >>> modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=9.0, modes=(1, 0))
        >>> robot = torsor.mechanism.flexible_links.with_beam(torsor.library.planar_chain(1), "link1", modes)
        >>> beam = next(beams(robot))
        >>> tip = beam.bent(np.array([0.0, 0.1]))[-1]  # it bends, and becomes no longer
        >>> round(float(tip[1]), 6), bool(tip[0] < 1.0)
        (0.1, True)
    """
    for index, joint in enumerate(robot.joints):
        if isinstance(joint.flexible, Modes):
            modes = joint.flexible
            R, shift = joint.placement[:3, :3], joint.placement[:3, 3] - joint.placement[:3, :3] @ modes.positions[-1]
            kept = np.unique(np.linspace(0, len(modes.positions) - 1, MOST).round().astype(int))
            at_rest = np.concatenate([np.zeros((1, 3)), modes.positions[kept]])
            first, second = (
                np.concatenate([np.zeros((1, *each.shape[1:])), each[kept]])
                for each in (modes.shapes, np.asarray(modes.second))
            )
            turned = np.einsum("xy,pyk->pxk", R, first), np.einsum("xy,pykl->pxkl", R, second)
            link, at = robot.parents[index], robot.coordinates[index].q
            yield Beam(link, at, at_rest @ R.T + shift, *turned, _pairs(at_rest))


def is_beam(robot: Mechanism, link: Link) -> bool:
    """Return whether all the mass of a link is that of modes: what is drawn of it bends."""
    own = [joint.flexible for joint in robot.joints if joint.parent == link.name and isinstance(joint.flexible, Modes)]
    return bool(own) and link.mass <= sum(modes.body[0] for modes in own) * (1 + 1e-9)


def _frames_along(ways: Array) -> Array:
    """Return rotations (..., 3, 3) whose z axes are along vectors (..., 3)."""
    z = ways / np.linalg.norm(ways, axis=-1, keepdims=True)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z), axis=-1)], z)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def _pairs(points: Array) -> NDArray[np.int64]:
    """Return pairs of points to draw rods between: along a beam, or else the shortest tree through all of them."""
    tip = points[-1]
    length = float(np.linalg.norm(tip))
    along = points @ tip / length if length > 0 else np.zeros(len(points))
    aside = points - np.outer(along, tip / length) if length > 0 else points
    if np.linalg.norm(aside, axis=1).max() <= STRAIGHT * length:
        order = np.argsort(along, kind="stable")
        pairs = np.stack([order[:-1], order[1:]], axis=1)
    else:
        pairs = _shortest_tree(points)
    apart = np.linalg.norm(np.diff(points[pairs], axis=1)[:, 0], axis=-1)
    return np.asarray(pairs[apart > 0], dtype=np.int64)


def _shortest_tree(points: Array) -> NDArray[np.int64]:
    """Return the edges (P - 1, 2) of the minimum spanning tree of points; it grows by the nearest point."""
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
