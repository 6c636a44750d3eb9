"""Collision avoidance in inverse kinematics: residuals max(0, aim - distance) in addition to those of the targets.

Their squares are minimised together with those of the targets. They are all zero if the clearance is kept with a small
margin. ``torsor.geometry`` computes distances and their gradients, so shapes may be of any kind. If no posture meets
the targets, these residuals get a large weight, so that the posture keeps the clearance and misses the targets.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import number
from torsor.base.searches import Indices, State, advance
from torsor.geometry import DistanceModel, distance_model
from torsor.geometry.pairs import Pairs
from torsor.robot.inverse_kinematics import search
from torsor.robot.inverse_kinematics.problem import Problem
from torsor.robot.inverse_kinematics.step import chase_apart

MARGIN = 1e-4  # m: distance that searches add to the clearance
SHAPE_WEIGHTS = (10.0, 1e3, 1e5)  # successive weights of shapes and hard rows if targets cannot be met
STALL_CRITERION = 12, 1 - 1e-3  # a search has stalled if the cost ratio over this many steps is above this value
DISTANCES_PER_CALL = 1 << 16  # maximum number of distances (pairs times states) per call
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Apart:
    """Pairs of shapes kept apart by ``clearance`` (m); ``moving`` (P,) marks pairs that free coordinates move."""

    problem: Problem
    model: DistanceModel
    clearance: float
    moving: Mask

    @classmethod
    def of(cls, problem: Problem, clearance: float, pairs: Pairs, where: str) -> "Apart":
        """Return the pairs for a problem, from names or an allowed collision matrix; None selects all checked pairs."""
        clearance = number(clearance, where, "clearance", least=0.0)
        model = distance_model(problem.robot, pairs, within=clearance + 2 * MARGIN)
        moving = np.asarray(model.depends[:, problem.free].any(axis=1))
        return cls(problem, model, clearance, moving)

    def chunks(self, count: int) -> list[slice]:
        """Return slices of ``count`` states, each of which is computed in one call."""
        size = max(1, DISTANCES_PER_CALL // max(1, len(self.model.pairs)))
        return [slice(first, min(first + size, count)) for first in range(0, count, size)]

    def rows(self, q: Array) -> tuple[Array, Array, Array]:
        """Return the cost (K,) of the rows at q (K, nq), half its gradient (K, n) and half its Hessian (K, n * n)."""
        n = len(self.problem.free)
        cost, g, M = np.zeros(len(q)), np.zeros((len(q), n)), np.zeros((len(q), n * n))
        for some in self.chunks(len(q)):
            result = self.model(q[some], gradient=True)
            assert result.gradient is not None
            lacking = np.where(self.moving, np.maximum(self.clearance + MARGIN - result.distance, 0.0), 0.0)
            slopes = (lacking > 0)[..., None] * result.gradient[..., self.problem.free]
            cost[some] = np.einsum("kp,kp->k", lacking, lacking)
            g[some] = -np.einsum("kp,kpn->kn", lacking, slopes)
            M[some] = (slopes.swapaxes(1, 2) @ slopes).reshape(-1, n * n)
        return cost, g, M

    def broken(self, q: Array) -> Mask:
        """Return a mask (K,) of the states q (K, nq) at which movable pairs are closer than the clearance."""
        near = [(self.model(q[some]).distance < self.clearance)[:, self.moving] for some in self.chunks(len(q))]
        return np.concatenate([np.zeros(0, dtype=bool), *(item.any(axis=1) for item in near)])

    def judged(self, q: Array, gradient: Array) -> tuple[Array, Mask]:
        """Return the smallest distance (K,) at q (K, nq), and a mask (K, P) of pairs that are too close or block q.

        ``gradient`` (K, n) is that of the squared target errors with respect to the free coordinates.
        """
        least, holding = np.full(len(q), np.inf), np.zeros((len(q), len(self.model.pairs)), dtype=bool)
        for some in self.chunks(len(q)):
            result = self.model(q[some], gradient=True)
            assert result.gradient is not None
            toward = np.einsum("kpn,kn->kp", result.gradient[..., self.problem.free], gradient[some])
            # A pair at the clearance blocks a posture if decreasing the squared errors would bring it closer.
            at = (result.distance <= self.clearance + 2 * MARGIN) & (toward > 0)
            holding[some] = at | (result.distance < self.clearance)
            least[some] = result.distance.min(axis=1, initial=np.inf)
        return least, holding


class ApartRunner(search.Runner):
    """Searches for postures that meet the targets and keep shapes apart."""

    def __init__(self, problem: Problem, enough: float, apart: Apart):
        super().__init__(problem, enough)
        self.apart = apart

    def ends(self, q: Array, data: Array, patient: bool = False, rivals: search.Rivals = None) -> search.Found:
        """Return the end points of searches, which begin without shapes and continue with them after a collision."""
        result = super().ends(q, data, patient)  # no rivals, because the first that finishes may be in collision
        close = self.apart.broken(result.q)
        todo = np.flatnonzero(close & (result.cost <= self.enough))
        result.cost[close] = np.inf
        if len(todo):
            limits = search.MAX_STEPS, search.WINDOW, search.PROGRESS_RATIO
            again = self._chased(result.q[todo], data[todo], 1.0, *limits)
            result.q[todo], result.cost[todo] = again.q, again.cost
        return result

    def nearest(self, q: Array, data: Array) -> search.Found:
        """Return the end points of long searches for collision-free postures with the smallest target errors."""
        result = search.Found(q, np.full(len(q), np.inf), np.ones(len(q), dtype=np.intp))
        for weight in SHAPE_WEIGHTS:
            result = self._chased(result.q, data, weight, search.LAST_STEPS, *STALL_CRITERION)
        return result

    def _chased(self, q: Array, data: Array, weight: float, most: int, window: int, progress: float) -> search.Found:
        """Return the end points of searches with shapes; a search stops if its cost falls too slowly (``progress``)."""
        kernel, count = chase_apart(self.problem), len(q)

        def step(state: State, _: Indices) -> State:
            *searched, data, x, before = state
            rows = (weight**2 * row for row in self.apart.rows(x))
            *searched, x = kernel(*searched, data, x, np.full(len(x), weight), *rows)
            return [*searched, data, x, before]

        def finished(k: int, state: State, _: Indices) -> Mask:
            dv, cost, before = state[1], state[2], state[-1]
            out = (cost <= self.enough) | (np.abs(dv).max(axis=1, initial=0.0) <= search.CONVERGED_STEP)
            if k % window == 0:
                out |= ~(cost <= progress * before)
                state[-1] = cost
            return np.asarray(out)

        still, infinite = np.zeros((count, len(self.problem.free))), np.full(count, np.inf)
        state = [q, still, infinite, np.full(count, search.FIRST_DAMPING), data, q, infinite]
        best, cost = np.empty_like(q), np.empty(count)
        advance(state, step, finished, most, {0: best, 2: cost})
        return search.Found(best, cost, np.ones(count, dtype=np.intp))
