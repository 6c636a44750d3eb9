"""Limits of the joints: forces, velocities and their like stay between bounds."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from torsor.errors import ModelError, describe
from torsor.motion.node import Node
from torsor.motion.terms import Bound, Rows, spread

__all__ = ["Torques", "Velocities"]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Limits(Rows):
    """A quantity of every coordinate between ``lower`` and ``upper``: a number, one for each, or None: the robot's."""

    lower: Any = None
    upper: Any = None
    quantity: ClassVar[str] = ""
    limit: ClassVar[str] = ""

    def bound(self, node: Node) -> Bound:
        """Return the coordinates whose limits are finite."""
        values = getattr(node, self.quantity)
        names = (
            node.robot.active
            if node.subject.is_closed and values.numel() < node.robot.nv
            else node.robot.coordinate_names
        )
        count = values.numel()
        most = getattr(node.robot, self.limit) if self.upper is None else spread(self.upper, count, self.title)
        least = -most if self.lower is None else spread(self.lower, count, self.title)
        kept = np.flatnonzero(np.isfinite(most) | np.isfinite(least))
        if not kept.size:
            fix = f"give {self.title} bounds, or the robot limits"
            raise ModelError(describe(f"no {self.quantity} has a limit", where=node.robot.name, fix=fix))
        if not (least[kept] <= most[kept]).all():
            raise ModelError(describe("a lower bound is above the upper", where=self.title))
        return Bound(values[kept.tolist()], least[kept], most[kept], tuple(names[k] for k in kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(_Limits):
    """Forces of the coordinates (N m, N) between bounds, by default the robot's ``effort_limit``.

    Example:
        >>> Torques(upper=10.0).title
        'Torques'
    """

    quantity = "tau"
    limit = "effort_limit"


@dataclass(frozen=True, eq=False, kw_only=True)
class Velocities(_Limits):
    """Velocities of the coordinates between bounds, by default the robot's ``velocity_limit``.

    Example:
        >>> Velocities(upper=1.0).title
        'Velocities'
    """

    quantity = "v"
    limit = "velocity_limit"
