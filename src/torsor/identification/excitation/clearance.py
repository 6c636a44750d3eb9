"""Clearances of a motion: collision shapes stay a distance apart, by a barrier that ends where they are far away.

With the distance d of a pair, the least one c, and y = 1 - (d - c) / REACH where it is positive, the barrier of a pair
is -log(1 - y^3): it and its first two derivatives are zero from the distance c + REACH on.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import number
from torsor.geometry.distances import DistanceModel
from torsor.geometry.pairs import Pairs, distance_model
from torsor.robot.robot import Robot

REACH = 0.1  # m beyond the least distance, from which on pairs do not matter
MARGIN = 1e-3  # m by which the search stays farther away, since it looks at fewer instants than the last check


@dataclass(frozen=True, eq=False)
class Clearance:
    """The prepared distances of a robot (``within`` the least distance and ``REACH``), and the ``least`` one, m."""

    model: DistanceModel
    least: float

    @classmethod
    def of(cls, robot: Robot, least: float, pairs: Pairs, where: str) -> "Clearance":
        """Return the clearance of a robot; ``pairs`` as in ``Robot.distances``."""
        least = number(least, where, "clearance", least=0.0)
        return cls(distance_model(robot, pairs, within=least + MARGIN + REACH), least)

    def barrier(self, q: Array) -> tuple[float, Array]:
        """Return the mean barrier of postures q (T, n) and its gradient (T, n); infinite where shapes are too near."""
        if not self.model.pairs:
            return 0.0, np.zeros_like(q)
        found = self.model(q, True)
        y = np.maximum(1 - (found.distance[:, self._moving] - self.least - MARGIN) / REACH, 0.0)
        if y.max(initial=0.0) >= 1:
            return np.inf, np.zeros_like(q)
        assert found.gradient is not None
        by_distance = -3 * y**2 / (1 - y**3) / REACH
        value = -np.log(1 - y**3).sum() / len(q)
        return float(value), np.einsum("tp,tpj->tj", by_distance, found.gradient[:, self._moving]) / len(q)

    def distances(self, q: Array) -> Array:
        """Return the least distance (T,) in m of postures q (T, n): infinite without pairs, a lower bound if far."""
        if not self.model.pairs:
            return np.full(len(q), np.inf)
        return np.asarray(self.model(q).distance[:, self._moving].min(axis=1, initial=np.inf))

    @cached_property
    def _moving(self) -> Flags:
        """Which pairs (P,) have a distance that changes."""
        return np.asarray(self.model.depends.any(axis=1))
