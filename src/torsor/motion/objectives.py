"""Parts of an objective."""

from dataclasses import dataclass

import casadi as ca

from torsor.motion.node import Node
from torsor.motion.terms import Cost, spread

__all__ = ["Effort", "Time"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Time(Cost):
    """The duration of the motion (s).

    Example:
        >>> Time(weight=0.5).weight
        0.5
    """

    is_even = True

    def integrand(self, node: Node) -> ca.SX:
        """Return 1."""
        return ca.SX(1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Cost):
    """The integral of squared forces, each divided by its entry of ``scale`` (a number, or one for each force).

    Example:
        >>> Effort(scale=10.0).scale
        10.0
    """

    scale: object = 1.0

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of (tau / scale)^2."""
        tau = node.tau
        return ca.sumsqr(tau / ca.SX(spread(self.scale, tau.numel(), self.title)))
