"""Signed distances between the shapes of a robot, with nearest points, normals and gradients, for batches of postures.

Compiled functions evaluate pairs with a closed form for all postures at once; coal computes all others. The gradient
follows from the nearest points, which are on a line along the unit normal n from the first shape to the second. The
derivative for a joint is its twist times the line's Plücker coordinates (p x n, n). It is positive if the joint carries
the second shape, negative if it carries the first, and zero if it carries both.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import number, vectors
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.geometry.closed_forms import CLOSED_FORMS, closest, is_closed
from torsor.geometry.convex import ConvexPairs, radius_about_origin
from torsor.geometry.placed import Movement, Placed
from torsor.mechanism import Mechanism
from torsor.mechanism.parts import SHAPE_SIZES

# Closed forms as compiled functions: one per pair of shape kinds, for all robots and states.


@lru_cache
def pair_kernel(a: str, b: str) -> Any:
    """Return the compiled distance function for shapes of kinds a and b, from poses (..., 3, 4) and sizes.

    The function returns distances (...), unit normals (..., 3) from the first to the second, the nearest points (...,
    2, 3) and the moment (..., 3) of the normal at these points about the origin.
    """
    poses = [ca.SX.sym(name, 3, 4) for name in ("A", "B")]
    sizes = [ca.SX.sym(name, SHAPE_SIZES[kind]) for name, kind in zip(("a", "b"), (a, b), strict=True)]
    arrays = [item for item in (poses[0], sizes[0], poses[1], sizes[1]) if item.numel()]  # a plane has no size
    result = closest(a, poses[0], sizes[0], b, poses[1], sizes[1])
    points, moment = ca.vertcat(result.first.T, result.second.T), ca.cross(result.first, result.normal)
    function = ca.Function(f"{a}_{b}", arrays, ca.cse([result.distance, result.normal, points, moment]))
    inputs = [(3, 4) if value.shape == (3, 4) else (value.numel(),) for value in arrays]
    return compile(function, inputs=inputs, outputs=[(), (3,), (2, 3), (3,)])


Indices = NDArray[np.int64]
PAIRS_PER_CALL = 4096  # maximum number of pairs, over all postures, per call: their poses fit the cache of a core


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between P pairs of shapes; arrays have the leading axes of q.

    ``distance`` (..., P), in m, is negative if shapes overlap. ``normal`` (..., P, 3) is the unit vector from the first
    shape to the second, and ``points`` (..., P, 2, 3), in m, are the nearest points of both, in base axes. ``gradient``
    (..., P, nv) is the derivative with respect to the coordinates, where gradient @ v is the rate of the distance; it
    is None if not requested. ``pairs`` are the names of the shapes.
    """

    pairs: tuple[tuple[str, str], ...]
    distance: Array
    normal: Array
    points: Array
    gradient: Array | None = None

    def overlapping(self) -> list[tuple[str, str, float]]:
        """Return (shape, shape, depth in m) for the pairs that overlap in any posture, deepest first.

        Example:
            >>> found = Distances((("hand", "table"),), np.array([-0.02]), np.zeros((1, 3)), np.zeros((1, 2, 3)))
            >>> found.overlapping()
            [('hand', 'table', 0.02)]
        """
        least = self.distance.min(axis=tuple(range(self.distance.ndim - 1)), initial=np.inf)
        order = np.argsort(least, kind="stable")
        return [(*self.pairs[k], -float(least[k])) for k in order.tolist() if least[k] < 0]


class _Group(NamedTuple):
    """Pairs of the same two kinds: their columns, shapes and sizes, and whether the two shapes are exchanged."""

    kernel: Any
    columns: Indices | slice
    a: Indices
    b: Indices
    sizes_a: Array
    sizes_b: Array
    flipped: bool


class DistanceModel:
    """Distances between given pairs of shapes, prepared once; ``model(q)`` accepts any number of postures.

    ``pairs`` are pairs of indices into ``shapes``. If the bounding spheres of a pair without a closed form are farther
    apart than ``within`` (m), its result is the distance between these spheres. This lower bound is much faster to
    compute. Normal, points and gradient then refer to the spheres.
    """

    def __init__(
        self, robot: Mechanism, shapes: Sequence[Placed], pairs: Sequence[tuple[int, int]], within: float | None = None
    ):
        self.robot, self.within = robot, None if within is None else number(within, robot.name, "within", least=0.0)
        kept = sorted({index for pair in pairs for index in pair})
        number_of = {index: k for k, index in enumerate(kept)}
        self.shapes = tuple(shapes[index] for index in kept)
        self.pairs = tuple((number_of[a], number_of[b]) for a, b in pairs)
        self.names = tuple((self.shapes[a].name, self.shapes[b].name) for a, b in self.pairs)
        if not self.pairs:  # an arm of two links connected by a joint has no pairs left
            return
        self._movement = Movement.of(robot, self.shapes)
        self._chunk = max(1, PAIRS_PER_CALL // max(len(self.pairs), 1))
        kinds, open_columns = defaultdict[tuple[str, str], list[int]](list), list[int]()
        for column, (a, b) in enumerate(self.pairs):
            kind = self.shapes[a].shape.shape, self.shapes[b].shape.shape
            if kind == ("plane", "plane"):
                message = f"the shapes {self.names[column][0]!r} and {self.names[column][1]!r} are both planes"
                raise ModelError(message, where=self.robot.name, allowed="one plane in a pair")
            if is_closed(*kind):
                kinds[kind].append(column)
            else:
                open_columns.append(column)
        self._groups = [self._group(kind, columns) for kind, columns in kinds.items()]
        self._open = np.array(open_columns, dtype=np.int64)
        where = self.robot.name
        self._convex = ConvexPairs(self.shapes, [self.pairs[k] for k in open_columns], where) if open_columns else None
        movement, ends = self._movement, np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        self._signs = movement.carries[ends[:, 1]].astype(float) - movement.carries[ends[:, 0]]
        plain = np.array_equal(movement.gather, np.eye(self.robot.nv))  # no followers or motor coordinates
        self._gather = None if plain else movement.gather
        if self.within is not None and self._convex is not None:
            radii = [radius_about_origin(shape.shape, f"{where}: shape {shape.name!r}") for shape in self.shapes]
            self._radii = np.array(radii)[ends[self._open]]

    @property
    def depends(self) -> NDArray[np.bool_]:
        """Mask (P, nv) of the coordinates that change the distance of each pair: those of joints between the shapes."""
        if not self.pairs:
            return np.zeros((0, self.robot.nv), dtype=bool)
        return np.asarray(np.abs(self._signs) @ np.abs(self._movement.gather) > 0)

    def _group(self, kind: tuple[str, str], columns: list[int]) -> _Group:
        flipped = kind not in CLOSED_FORMS
        ends = np.array([self.pairs[column] for column in columns], dtype=np.int64)
        first, second = ends[:, 1 if flipped else 0], ends[:, 0 if flipped else 1]
        sizes_a, sizes_b = (np.array([self.shapes[index].shape.size for index in side]) for side in (first, second))
        kernel = pair_kernel(*(kind[::-1] if flipped else kind))
        neighbours = columns == list(range(columns[0], columns[0] + len(columns)))
        where = slice(columns[0], columns[-1] + 1) if neighbours else np.array(columns, dtype=np.int64)
        return _Group(kernel, where, first, second, sizes_a, sizes_b, flipped)

    def __call__(self, q: ArrayLike, gradient: bool = False, among: NDArray[np.bool_] | None = None) -> Distances:
        """Return the distances at the postures q (..., nq).

        ``among`` (P,) selects the pairs of interest; for other pairs without a closed form, lower bounds are returned.
        """
        if not self.pairs:
            lead = vectors(q, self.robot.nq, self.robot.name, "q").shape[:-1]
            empty = (np.zeros((*lead, 0, *shape)) for shape in ((), (3,), (2, 3), (self.robot.nv,)))
            return Distances((), *empty)
        poses, twists = self._movement.at(q)
        lead, count = poses.shape[:-3], len(self.pairs)
        poses = poses.reshape(-1, *poses.shape[-3:])
        states = len(poses)
        result = Lines(*(np.empty((states, count, *shape)) for shape in ((), (3,), (2, 3), (3,))))
        for start in range(0, states, self._chunk):
            part = slice(start, start + self._chunk)
            for group in self._groups:
                _closed(group, poses[part], Lines(*(item[part] for item in result)))
        if self._convex is not None:
            self._by_coal(poses, result, among)
        slopes = None
        if gradient:
            lines = np.concatenate([result.moment, result.normal], axis=-1)
            slopes = lines @ twists.reshape(states, *twists.shape[-2:]).swapaxes(-1, -2)
            slopes *= self._signs
            slopes = slopes if self._gather is None else slopes @ self._gather
            slopes = slopes.reshape(*lead, count, self.robot.nv)
            slopes += 0.0  # no negative zeros
        distance, normal, points = (item.reshape(*lead, *item.shape[1:]) for item in result[:3])
        return Distances(self.names, distance, normal, points, slopes)

    def _by_coal(self, poses: Array, found: "Lines", among: NDArray[np.bool_] | None) -> None:
        assert self._convex is not None
        states, count = len(poses), len(self._open)
        distance, n, first = np.empty((states, count)), np.empty((states, count, 3)), np.empty((states, count, 3))
        selected = None
        if self.within is not None:
            ends = np.array(self._convex.pairs, dtype=np.int64)
            origins = poses[..., 3]
            apart = origins[:, ends[:, 1]] - origins[:, ends[:, 0]]
            length = np.linalg.norm(apart, axis=-1)
            bound = length - self._radii.sum(axis=-1)
            selected = ~(bound > self.within)  # always True for planes, which have an infinite radius
            selected = selected if among is None else selected & among[self._open]
            n[:] = apart / np.where(length > 0, length, 1.0)[..., None]
            radii = np.where(np.isfinite(self._radii[:, :1]), self._radii[:, :1], 0.0)
            distance[:], first[:] = bound, origins[:, ends[:, 0]] + radii * n
        self._convex(poses, distance, n, first, selected)
        found.distance[:, self._open], found.normal[:, self._open] = distance, n
        found.points[:, self._open] = np.stack([first, first + distance[..., None] * n], axis=-2)
        found.moment[:, self._open] = np.cross(first, n)


class Lines(NamedTuple):
    """Distances (states, pairs), normals, nearest points (2 x 3), and the moments of the normals about the origin."""

    distance: Array
    normal: Array
    points: Array
    moment: Array


def _closed(group: _Group, poses: Array, found: Lines) -> None:
    """Write the results of a group of pairs with a closed form."""
    sides = ((poses[:, group.a], group.sizes_a), (poses[:, group.b], group.sizes_b))
    inputs = [entry for side in sides for entry in side if entry.shape[-1]]
    if isinstance(group.columns, slice):  # columns are adjacent, so results are written in place
        group.kernel(*inputs, out=tuple(result[:, group.columns] for result in found))
    else:
        for mine, item in zip(found, group.kernel(*inputs), strict=True):
            mine[:, group.columns] = item
    if group.flipped:
        found.normal[:, group.columns] *= -1
        found.moment[:, group.columns] *= -1
        found.points[:, group.columns] = found.points[:, group.columns, ::-1]
