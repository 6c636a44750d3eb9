"""Batched searches: all unfinished searches step together, in chunks that fit the cache, and keep the best results."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.searches import Indices, State, advance
from torsor.robot.inverse_kinematics.problem import Problem, fast
from torsor.robot.inverse_kinematics.step import chase
from torsor.robot.inverse_kinematics.targets import Pose
from torsor.spatial import to_quaternion

# Starts of searches: postures spread evenly within the limits and, if the only target is a pose, a table of postures.

# Fraction of a joint's range that separates starts from its limits: searches that start at limits get stuck more often.
MARGIN = 0.1
TURN, SLIDE = np.pi, 1.0  # rad, m: half range of coordinates without limits
POSTURES = 1 << 17  # number of postures in a pose table
CANDIDATE_CHUNK = 32  # states whose candidates are evaluated in one call
CANDIDATES = 256  # candidates from which a search selects its start, if there is no table
# Cells of a table, fine to coarse: divisions of each side of the position box, and of the three quaternion ratios.
LEVELS = (10, 3), (6, 2), (3, 1)


def spread(count: int, first: int, dimension: int) -> Array:
    """Return points (count, dimension) of a sequence that fills the unit cube evenly, starting at number ``first``.

    The sequence is the additive recurrence with powers of the root of x^(d+1) = x + 1 (Roberts 2018), which is the
    golden ratio for d = 1.

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
    """Return postures (K, nq) within the limits; unlimited coordinates keep their values, and floating bases rotate."""
    robot, free = problem.robot, set(problem.free)
    result, unit = q.copy(), spread(len(q), first, max(1, robot.nv))
    lower, upper = (item if problem.limited else np.full(robot.nq, np.nan) for item in (robot.lower, robot.upper))
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if joint.follows or at.v.start not in free:
            continue
        if joint.kind.nq != joint.kind.nv:
            result[:, at.q.stop - 4 : at.q.stop] = _rotations(unit[:, at.v.start : at.v.start + 3])
            continue
        for c, turns in enumerate(joint.kind.turns):
            i, k = at.q.start + c, at.v.start + c
            half = TURN if turns else SLIDE
            low = lower[i] if np.isfinite(lower[i]) else (upper[i] - 2 * half if np.isfinite(upper[i]) else -half)
            high = upper[i] if np.isfinite(upper[i]) else low + 2 * half
            result[:, i] = low + (high - low) * (margin + (1 - 2 * margin) * unit[:, k])
    return result


def _rotations(unit: Array) -> Array:
    """Return uniformly distributed quaternions (K, 4) from points of the unit cube (Shoemake 1992)."""
    near, far = np.sqrt(1 - unit[:, :1]), np.sqrt(unit[:, :1])
    a, b = 2 * np.pi * unit[:, 1:2], 2 * np.pi * unit[:, 2:3]
    return np.concatenate([near * np.sin(a), near * np.cos(a), far * np.sin(b), far * np.cos(b)], axis=1)


def nearest(problem: Problem, q: Array, data: Array, first: int, count: int = CANDIDATES, several: int = 1) -> Array:
    """Return, for each state, the ``several`` postures (K * several, nq) of lowest cost among ``count`` postures."""
    result = np.empty((len(q), several, q.shape[1]))

    def made() -> tuple[Array, Indices]:
        tried = postures(problem, np.tile(problem.robot.neutral(), (count, 1)), first)
        return tried, np.flatnonzero((tried == tried[:1]).all(axis=0))  # and the indices of constant positions

    candidates, fixed = problem.once(("starts", first, count), made)
    for k in range(0, len(q), CANDIDATE_CHUNK):
        some = slice(k, k + CANDIDATE_CHUNK)
        tried = np.repeat(candidates[None], len(q[some]), axis=0)
        if len(fixed):
            tried[:, :, fixed] = q[some, None][:, :, fixed]
        plain, _ = problem.check(tried.reshape(-1, q.shape[1]), np.repeat(data[some], count, axis=0))
        costs = np.einsum("ik,ik->i", plain, plain).reshape(-1, count)
        best = costs.argmin(axis=1)[:, None] if several == 1 else costs.argpartition(several, axis=1)[:, :several]
        result[some] = tried[np.arange(len(best))[:, None], best]
    return result.reshape(-1, q.shape[1])


class PoseTable:
    """A table of postures, indexed by the pose of one place; for many targets, two lookups replace a search.

    A cell is a part of the position box and of the set of rotations. Rotations are classified by the largest quaternion
    component and the ratios of the others to it. The posture of a cell is the one farthest from limits and
    singularities.
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
            cells[self._cells(p[order], turns[order], parts)] = order  # the last posture of a cell, the best, remains
            self._levels.append(cells)

    def _quality(self, problem: Problem, place: str | int) -> Array:
        """Return manipulability times the distance from limits as a fraction of the range (K,)."""
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
        result = np.full(len(data), -1)
        for parts, cells in zip(LEVELS, self._levels, strict=True):
            todo = np.flatnonzero(result < 0)
            result[todo] = cells[self._cells(data[todo, 9:12], turns[todo], parts)]
        return np.asarray(self.postures[result])  # -1, for an empty cell, selects an arbitrary posture


_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])

CHUNK = 2048  # number of states whose arrays fit the L2 cache of a core
FIRST_DAMPING = 0.01  # initial damping, relative to the squared error
MIN_STEPS = 4  # minimum number of steps of every search
WINDOW, PROGRESS_RATIO = 6, 0.25  # a search is stuck if its cost is above this fraction of the cost WINDOW steps ago
# Number of concurrent searches in restarts of few states: a kernel call takes the same time for a single search.
MAX_PARALLEL_SEARCHES = 256
AT_FIRST, RESTARTS = 8, 32  # concurrent searches per state: initially, and later
RESTART_CANDIDATES = 24  # postures from which a restart selects the nearest
EAGER_RESTARTS = 8  # restarts that give up early; later ones are for slow searches, such as those near singularities
MAX_STEPS = 60  # maximum number of steps from one start
LAST_STEPS = 400  # maximum number of steps to the closest posture, if none meets the targets
CONVERGED_STEP = 1e-13  # rad or m: step size below which a search has converged
LEAVING_FRACTION = 0.2  # fraction of finished searches at which the others are gathered
TABLE_FROM = 2000  # number of targets from which computing a pose table saves time
Mask = NDArray[np.bool_]
Rivals = Indices | None  # (K,): searches with the same number end together


@dataclass(frozen=True, eq=False)
class Found:
    """The best positions (K, nq), their costs (K,), and the numbers of starts (K,) tried."""

    q: Array
    cost: Array
    starts: Indices

    def keep(self, of: Indices, tried: "Found") -> None:
        """Keep better results from other searches for the states ``of``, which may contain repetitions."""
        order = np.argsort(-tried.cost, kind="stable")  # the best result of a state comes last
        order = order[tried.cost[order] < self.cost[of[order]]]
        self.q[of[order]], self.cost[of[order]] = tried.q[order], tried.cost[order]


def chased(
    problem: Problem, q: Array, data: Array, enough: float, most: int, patient: bool = False, rivals: Rivals = None
) -> Found:
    """Return the end points of searches from q (K, nq), of at most ``most`` steps.

    A search is finished when its cost is at most ``enough``. Stuck searches end early; if ``patient`` is True,
    they end only when they no longer move. Searches with the same number in ``rivals`` (K,) end as soon as one of them
    is finished.
    """
    kernel, best, cost = fast(chase(problem)), np.empty_like(q), np.full(len(q), np.inf)

    def finished(rivals_of: Indices | None, k: int, state: State, todo: Indices) -> Flags | None:
        if k < MIN_STEPS:
            return None
        _, dv, cost, damping, _, before = state
        out = cost <= enough
        if patient:
            out |= (np.abs(dv).max(axis=1, initial=0.0) <= CONVERGED_STEP) | ~(damping < 1e30)
        elif k % WINDOW == 0:
            out |= ~(cost <= PROGRESS_RATIO * before)
            state[5] = np.where(out, before, cost)
        if rivals_of is not None and out.any():
            done = np.zeros(rivals_of.max() + 1, dtype=bool)
            done[rivals_of[todo[cost <= enough]]] = True
            out |= done[rivals_of[todo]]
        return np.asarray(out)

    for first in range(0, len(q), CHUNK):
        some = slice(first, first + CHUNK)
        still, infinite = np.zeros((len(q[some]), len(problem.free))), np.full(len(q[some]), np.inf)
        state = [q[some], still, infinite, np.full(len(still), FIRST_DAMPING), data[some], infinite]
        over, kept = partial(finished, None if rivals is None else rivals[some]), {0: best[some], 2: cost[some]}
        advance(state, lambda s, _: [*kernel(*s[:5]), *s[4:]], over, most, kept, LEAVING_FRACTION)
    return Found(best, cost, np.ones(len(q), dtype=np.intp))


class Runner:
    """Searches for the solution of a problem; a search is finished when its cost is at most ``enough``."""

    def __init__(self, problem: Problem, enough: float):
        self.problem, self.enough = problem, enough

    def ends(self, q: Array, data: Array, patient: bool = False, rivals: Rivals = None) -> Found:
        """Return the end points of searches from q (K, nq) for a posture that meets the targets."""
        return chased(self.problem, q, data, self.enough, MAX_STEPS, patient, rivals)

    def nearest(self, q: Array, data: Array) -> Found:
        """Return the end points of long searches from q (K, nq) for the posture with the smallest error."""
        return chased(self.problem, q, data, self.enough, LAST_STEPS, patient=True)


def search(run: Runner, q0: Array | None, data: Array, restarts: int) -> Found:
    """Return the best result for each state.

    It is from searches that begin at q0 (K, nq), or at chosen starts if q0 is None, and from up to ``restarts`` further
    searches.
    """
    problem, enough, count = run.problem, run.enough, len(data)
    base = np.repeat(problem.robot.neutral()[None], count, axis=0) if q0 is None else q0
    few = q0 is None and 2 * count <= MAX_PARALLEL_SEARCHES  # several concurrent searches take no longer
    several = min(AT_FIRST, restarts + 1, MAX_PARALLEL_SEARCHES // max(1, count)) if few else 1
    start = chosen_starts(problem, base, data, several) if q0 is None else problem.clipped(q0)
    if several == 1:
        result = run.ends(start, data)
    else:
        of = np.repeat(np.arange(count), several)
        result = Found(base.copy(), np.full(count, np.inf), np.full(count, several))
        result.keep(of, run.ends(start, data[of], rivals=of))
    used = several - 1
    while used < restarts:
        todo = np.flatnonzero(~(result.cost <= enough))
        if not len(todo):
            break
        # Several concurrent searches when few states are left.
        again = min(restarts - used, RESTARTS, max(1, MAX_PARALLEL_SEARCHES // len(todo)))
        _restart(run, result, todo, again, base, data, used)
        result.starts[todo] += again
        used += again
    todo = np.flatnonzero(~(result.cost <= enough))
    if len(todo):  # search for the closest posture, starting at the best one
        last = run.nearest(result.q[todo], data[todo])
        result.q[todo], result.cost[todo] = last.q, last.cost
    return result


def _restart(run: Runner, best: Found, todo: Indices, again: int, base: Array, data: Array, used: int) -> None:
    """Search from ``again`` other postures for each of the states ``todo``, and keep better results."""
    todo = np.tile(todo, again)
    problem, few, rivals = run.problem, base[todo], todo if again > 1 else None
    if used % 2 == 0 and len(todo) > MAX_PARALLEL_SEARCHES:
        begin = nearest(problem, few, data[todo], CANDIDATES + RESTART_CANDIDATES * used, RESTART_CANDIDATES)
    else:
        begin = postures(problem, few, 1 + used * (len(base) + 1), margin=0.0)  # solutions may be at limits
    best.keep(todo, run.ends(problem.clipped(begin), data[todo], patient=used >= EAGER_RESTARTS, rivals=rivals))


def chosen_starts(problem: Problem, base: Array, data: Array, several: int = 1) -> Array:
    """Return starts (K * several, nq), from a pose table if there are many poses, otherwise the nearest candidates."""
    one_pose = len(problem.targets) == 1 and isinstance(problem.targets[0], Pose)
    if len(data) >= TABLE_FROM and one_pose and not problem.robot.loops and min(problem.places_in_q) >= 0:
        table = problem.once("table", lambda: PoseTable(problem))
        result = base.copy()
        at = list(problem.places_in_q)
        for first in range(0, len(data), CHUNK):
            some = slice(first, first + CHUNK)
            result[some, at] = table.near(data[some])[:, at]
        return result
    return problem.clipped(nearest(problem, base, data, 0, several=several))
