"""Many searches at once: steps of all that are not done, in chunks that fit the cache; the best of each is kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.robot.inverse_kinematics.problem import Problem, fast
from torsor.robot.inverse_kinematics.starts import CANDIDATES, PoseTable, nearest, postures
from torsor.robot.inverse_kinematics.step import chase

CHUNK = 2048  # states whose arrays fit the second cache of a core
FIRST_DAMPING = 0.01  # times the squared error, at the start
SURE = 4  # steps that every search takes: none is done before
WINDOW, PROGRESS = 6, 0.25  # a search whose cost is above this fraction of that some steps before is stuck
MAX_PARALLEL_SEARCHES = (
    256  # searches that restarts of few states make at once: one call of a kernel takes as long for one
)
AT_FIRST, RESTARTS = 8, 32  # searches for one state that begin together: at first, and later
FEW = 24  # postures of which a restart takes the nearest
EAGER = 8  # restarts that give up soon; later ones are for slow searches, as near singular postures
MOST_STEPS = 60  # of one search from one start
LAST_STEPS = 400  # of the search for the nearest posture, where none meets the targets
STILL = 1e-13  # rad or m: of a step, below which a search has arrived
LEAVING = 0.2  # fraction of searches that are done from which the others are gathered
TABLE_FROM = 2000  # targets from which a table of postures by poses is worth its time
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Found:
    """The best positions (K, nq), their cost (K,), and the number of starts (K,) that were searched from."""

    q: Array
    cost: Array
    starts: Indices

    def keep(self, of: Indices, tried: "Found") -> None:
        """Take over what is better of other searches, for the states ``of``, each maybe several times."""
        order = np.argsort(-tried.cost, kind="stable")  # the best of a state comes last
        order = order[tried.cost[order] < self.cost[of[order]]]
        self.q[of[order]], self.cost[of[order]] = tried.q[order], tried.cost[order]


def chased(
    problem: Problem,
    q: Array,
    data: Array,
    enough: float,
    most: int,
    patient: bool = False,
    rivals: Indices | None = None,
) -> Found:
    """Return the ends of searches from positions q (K, nq); a search is done at a cost of ``enough``.

    Searches that are stuck end early, unless ``patient``: then they end where they stand still. Of searches with the
    same number in ``rivals`` (K,), all end when one is done.
    """
    best, cost = np.empty_like(q), np.full(len(q), np.inf)
    for first in range(0, len(q), CHUNK):
        some = slice(first, first + CHUNK)
        own = None if rivals is None else rivals[some]
        _chase_chunk(problem, q[some], data[some], enough, most, patient, own, best[some], cost[some])
    return Found(best, cost, np.ones(len(q), dtype=np.intp))


def _chase_chunk(
    problem: Problem,
    q: Array,
    data: Array,
    enough: float,
    most: int,
    patient: bool,
    rivals: Indices | None,
    best: Array,
    cost: Array,
) -> None:
    """Write the ends of searches to ``best`` and ``cost``."""
    kernel, count = fast(chase(problem)), len(q)
    todo, before = np.arange(count), np.full(count, np.inf)
    state = [q, np.zeros((count, len(problem.free))), np.full(count, np.inf), np.full(count, FIRST_DAMPING)]
    for k in range(1, most + 1):
        state = list(kernel(*state, data))
        if k < SURE and k < most:
            continue
        out = state[2] <= enough
        if patient:
            out |= (np.abs(state[1]).max(axis=1, initial=0.0) <= STILL) | ~(state[3] < 1e30)
        elif k % WINDOW == 0:
            out |= ~(state[2] <= PROGRESS * before)
            before = np.where(out, before, state[2])
        if rivals is not None and out.any():
            done = np.zeros(rivals.max() + 1, dtype=bool)
            done[rivals[todo[state[2] <= enough]]] = True
            out |= done[rivals[todo]]
        gone = np.count_nonzero(out)
        if k == most or gone == len(todo):
            best[todo], cost[todo] = state[0], state[2]
            return
        if gone > LEAVING * len(todo):
            best[todo[out]], cost[todo[out]] = state[0][out], state[2][out]
            stay = np.flatnonzero(~out)
            todo, data, before, state = todo[stay], data[stay], before[stay], [each[stay] for each in state]


class Runner:
    """Searches of a problem from given positions; a search is done at a cost of ``enough``."""

    def __init__(self, problem: Problem, enough: float):
        self.problem, self.enough = problem, enough

    def ends(self, q: Array, data: Array, patient: bool = False, rivals: Indices | None = None) -> Found:
        """Return the ends of searches from positions q (K, nq) for a posture that meets the targets."""
        return chased(self.problem, q, data, self.enough, MOST_STEPS, patient, rivals)

    def nearest(self, q: Array, data: Array) -> Found:
        """Return the ends of long searches from positions q (K, nq) for the posture that misses least."""
        return chased(self.problem, q, data, self.enough, LAST_STEPS, patient=True)


def search(run: Runner, q0: Array | None, data: Array, restarts: int) -> Found:
    """Return the best end of searches for each state, from q0 (K, nq) or from a start that is chosen, and restarts."""
    problem, enough, count = run.problem, run.enough, len(data)
    base = np.repeat(problem.neutral[None], count, axis=0) if q0 is None else q0
    few = q0 is None and 2 * count <= MAX_PARALLEL_SEARCHES  # several searches at once take no longer
    several = min(AT_FIRST, restarts + 1, MAX_PARALLEL_SEARCHES // max(1, count)) if few else 1
    start = chosen_starts(problem, base, data, several) if q0 is None else problem.clipped(q0)
    if several == 1:
        found = run.ends(start, data)
    else:
        of = np.repeat(np.arange(count), several)
        found = Found(base.copy(), np.full(count, np.inf), np.full(count, several))
        found.keep(of, run.ends(start, data[of], rivals=of))
    used = several - 1
    while used < restarts:
        todo = np.flatnonzero(~(found.cost <= enough))
        if not len(todo):
            break
        again = min(
            restarts - used, RESTARTS, max(1, MAX_PARALLEL_SEARCHES // len(todo))
        )  # several at once where few are left
        _restart(run, found, todo, again, base, data, used)
        found.starts[todo] += again
        used += again
    todo = np.flatnonzero(~(found.cost <= enough))
    if len(todo):  # to the nearest posture, from the best one
        last = run.nearest(found.q[todo], data[todo])
        found.q[todo], found.cost[todo] = last.q, last.cost
    return found


def _restart(run: Runner, found: Found, todo: Indices, again: int, base: Array, data: Array, used: int) -> None:
    """Search from ``again`` other postures for each of the states ``todo``, and keep what is better."""
    todo = np.tile(todo, again)
    problem, few, rivals = run.problem, base[todo], todo if again > 1 else None
    if used % 2 == 0 and len(todo) > MAX_PARALLEL_SEARCHES:
        begin = nearest(problem, few, data[todo], CANDIDATES + FEW * used, FEW)
    else:
        begin = postures(problem, few, 1 + used * (len(base) + 1), margin=0.0)  # solutions may be at the very limits
    found.keep(todo, run.ends(problem.clipped(begin), data[todo], patient=used >= EAGER, rivals=rivals))


def chosen_starts(problem: Problem, base: Array, data: Array, several: int = 1) -> Array:
    """Return starts (K * several, nq): from a table for many poses of one place, else the nearest of some postures."""
    if len(data) >= TABLE_FROM and PoseTable.serves(problem):
        table = problem.once("table", lambda: PoseTable(problem))
        found = base.copy()
        at = list(problem.places_in_q)
        for first in range(0, len(data), CHUNK):
            some = slice(first, first + CHUNK)
            found[some, at] = table.near(data[some])[:, at]
        return found
    return problem.clipped(nearest(problem, base, data, 0, several=several))
