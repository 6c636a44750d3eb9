"""Where searches start: postures that fill the limits evenly, and for one pose a table of postures by their pose."""

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.robot.inverse_kinematics.problem import Problem
from torsor.robot.inverse_kinematics.targets import Pose
from torsor.spatial import to_quaternion

MARGIN = (
    0.1  # of the range of a joint that postures keep from its limits: searches that start there get stuck less often
)
TURN, SLIDE = np.pi, 1.0  # rad, m: range to either side of coordinates without limits
POSTURES = 1 << 17  # in a table by poses
CANDIDATE_CHUNK = 32  # states whose candidates are judged in one call
CANDIDATES = 256  # postures of which a search takes the nearest, where there is no table
# Cells of a table, fine to coarse: parts of each side of the box of positions, and of the three ratios of quaternions.
LEVELS = (10, 3), (6, 2), (3, 1)
Indices = NDArray[np.intp]


def spread(count: int, first: int, dimension: int) -> Array:
    """Return points (count, dimension) that fill the unit cube evenly, from number ``first`` of the sequence on.

    The additive recurrence with powers of the root of x^(d+1) = x + 1 (Roberts 2018), which for d = 1 is the golden
    ratio.

    Example:
        >>> spread(3, 0, 1).ravel().round(3).tolist()
        [0.5, 0.118, 0.736]
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimension + 1))
    powers = root ** -np.arange(1.0, dimension + 1)
    return np.asarray((0.5 + np.outer(np.arange(first, first + count), powers)) % 1.0)


def postures(problem: Problem, q: Array, first: int, margin: float = MARGIN) -> Array:
    """Return other postures (K, nq) than q (K, nq): free coordinates anywhere within the limits, all others as in q.

    Floating bases stay where they are, and turn.
    """
    robot, free = problem.robot, set(problem.free)
    found, unit = q.copy(), spread(len(q), first, max(1, robot.nv))
    lower, upper = (each if problem.limited else np.full(robot.nq, np.nan) for each in (robot.lower, robot.upper))
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if joint.follows or at.v.start not in free:
            continue
        if joint.kind.nq != joint.kind.nv:
            found[:, at.q.stop - 4 : at.q.stop] = _rotations(unit[:, at.v.start : at.v.start + 3])
            continue
        for i, k, turns in zip(
            range(at.q.start, at.q.stop), range(at.v.start, at.v.stop), joint.kind.turns, strict=True
        ):
            half = TURN if turns else SLIDE
            low = lower[i] if np.isfinite(lower[i]) else (upper[i] - 2 * half if np.isfinite(upper[i]) else -half)
            high = upper[i] if np.isfinite(upper[i]) else low + 2 * half
            found[:, i] = low + (high - low) * (margin + (1 - 2 * margin) * unit[:, k])
    return found


def _rotations(unit: Array) -> Array:
    """Return quaternions (K, 4), even over all rotations, from points of the unit cube (Shoemake 1992)."""
    near, far = np.sqrt(1 - unit[:, :1]), np.sqrt(unit[:, :1])
    a, b = 2 * np.pi * unit[:, 1:2], 2 * np.pi * unit[:, 2:3]
    return np.concatenate([near * np.sin(a), near * np.cos(a), far * np.sin(b), far * np.cos(b)], axis=1)


def nearest(problem: Problem, q: Array, data: Array, first: int, count: int = CANDIDATES, several: int = 1) -> Array:
    """Return for each state the ``several`` postures of least cost among ``count`` of them (K * several, nq)."""
    found = np.empty((len(q), several, q.shape[1]))
    candidates, fixed = problem.once(("starts", first, count), lambda: _candidates(problem, first, count))
    for k in range(0, len(q), CANDIDATE_CHUNK):
        some = slice(k, k + CANDIDATE_CHUNK)
        tried = np.repeat(candidates[None], len(q[some]), axis=0)
        if len(fixed):
            tried[:, :, fixed] = q[some, None][:, :, fixed]
        plain, _ = problem.check(tried.reshape(-1, q.shape[1]), np.repeat(data[some], count, axis=0))
        costs = np.einsum("ik,ik->i", plain, plain).reshape(-1, count)
        best = costs.argmin(axis=1)[:, None] if several == 1 else costs.argpartition(several, axis=1)[:, :several]
        found[some] = tried[np.arange(len(best))[:, None], best]
    return found.reshape(-1, q.shape[1])


def _candidates(problem: Problem, first: int, count: int) -> tuple[Array, Indices]:
    """Return postures (count, nq), and the positions that are the same in all of them."""
    found = postures(problem, np.tile(problem.robot.neutral(), (count, 1)), first)
    return found, np.flatnonzero((found == found[:1]).all(axis=0))


class PoseTable:
    """Postures of a robot by the pose of one place, for many targets: two lookups instead of a search.

    A cell is a part of the box of positions and a part of all rotations: the largest component of the quaternion, and
    the ratios of the others to it. Of the postures in a cell it has the one farthest from limits and singularities.
    """

    def __init__(self, problem: Problem):
        robot, place = problem.robot, problem.targets[0].place  # type: ignore[attr-defined]
        self.postures = postures(problem, np.tile(robot.neutral(), (POSTURES, 1)), 0)
        poses = robot.kernels.exact.call("pose", self.postures, place=place)
        p, turns = poses[:, :3, 3], to_quaternion(poses[:, :3, :3])
        low, high = p.min(axis=0), p.max(axis=0)
        self._low, self._size = low, np.maximum(high - low, 1e-9)
        order = np.argsort(self._quality(problem, place))
        self._levels = []
        for parts in LEVELS:
            cells = np.full(parts[0] ** 3 * 4 * parts[1] ** 3, -1)
            cells[self._cells(p[order], turns[order], parts)] = order  # the last one of a cell stays: the best
            self._levels.append(cells)

    def _quality(self, problem: Problem, place: str | int) -> Array:
        """Return manipulability times the distance from limits (K,), as a fraction of the range."""
        q = self.postures
        J = problem.robot.kernels.exact.call("jacobian", q, place=place)[..., problem.free]
        gram = J @ J.swapaxes(1, 2) if J.shape[2] >= 6 else J.swapaxes(1, 2) @ J
        low, high = problem.bounds
        at = np.array(problem.places_in_q)
        with np.errstate(invalid="ignore"):
            apart = np.minimum(q[:, at] - low, high - q[:, at]) / (high - low)
        room = np.where(np.isfinite(apart), apart, 0.5).min(axis=1)
        return np.asarray(np.sqrt(np.maximum(np.linalg.det(gram), 0)) * room)

    def _cells(self, p: Array, turns: Array, parts: tuple[int, int]) -> Indices:
        grid, ratios = parts
        box = np.clip(((p - self._low) * (grid / self._size)).astype(np.intp), 0, grid - 1)
        largest = np.argmax(np.abs(turns), axis=1)
        rest = turns[np.arange(len(turns))[:, None], _OTHERS[largest]] / turns[np.arange(len(turns)), largest][:, None]
        part = np.minimum(((rest + 1) * (ratios / 2)).astype(np.intp), ratios - 1)
        cell = (box[:, 0] * grid + box[:, 1]) * grid + box[:, 2]
        return np.asarray((((cell * 4 + largest) * ratios + part[:, 0]) * ratios + part[:, 1]) * ratios + part[:, 2])

    def near(self, data: Array) -> Array:
        """Return postures (K, nq) near the poses of targets, given by their data (K, 12)."""
        turns = to_quaternion(data[:, :9].reshape(-1, 3, 3).swapaxes(1, 2))
        found = np.full(len(data), -1)
        for parts, cells in zip(LEVELS, self._levels, strict=True):
            todo = np.flatnonzero(found < 0)
            found[todo] = cells[self._cells(data[todo, 9:12], turns[todo], parts)]
        return np.asarray(self.postures[found])  # -1, of an empty cell, is any posture

    @staticmethod
    def serves(problem: Problem) -> bool:
        """Whether the problem is one pose of a robot without loops and quaternions."""
        one = len(problem.targets) == 1 and isinstance(problem.targets[0], Pose)
        return one and not problem.robot.loops and min(problem.places_in_q) >= 0


_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
