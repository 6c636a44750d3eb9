"""Robots with closed loops in an FMU: their accelerations, reactions, and the way back to closed loops after a step.

The equations are those of ``simulate``: Lagrange multipliers of independent equations of closure, and the projection of
the state at the end of each step of co-simulation (``dynamics/loops/constrained.py``). The equations are chosen
once, at the state in the file. In model exchange, where the importer integrates, the rate ``closing`` reduces errors
of closure (Baumgarte).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.dynamics import Tree, lean
from torsor.dynamics.loops.constrained import (
    ClosureChoice,
    closed_forward_dynamics,
    closed_loop_forces,
    loop_loads,
    projected_end,
)
from torsor.dynamics.recursions.newton_euler import joint_wrenches
from torsor.dynamics.trees.imposed import impose, touched
from torsor.export.fmu.settings import Settings
from torsor.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Loops:
    """A robot with closed loops, with the equations of closure that are chosen at its start.

    Arguments over symbols are given by name: p, closing, tau, external (L x 6), q and v.
    """

    robot: Robot
    settings: Settings

    @cached_property
    def choice(self) -> ClosureChoice:
        """The independent equations of closure."""
        return self.robot.closed.closure.independent_near(np.array(self.settings.q0))

    def acceleration(self, given: Mapping[str, ca.SX]) -> ca.SX:
        """Return a (nv x 1) of all coordinates."""
        tree, (q, v, tau) = self._tree(given), (given[name] for name in ("q", "v", "tau"))
        return closed_forward_dynamics(tree, q, v, tau, self.choice, given["external"], given["closing"])

    def joint_wrenches(self, given: Mapping[str, ca.SX]) -> ca.SX:
        """Return the wrench of each parent on its link (L x 6), at the accelerations a."""
        tree, (q, v, tau) = self._tree(given, whole=True), (given[name] for name in ("q", "v", "tau"))
        multipliers = closed_loop_forces(tree, q, v, tau, self.choice, given["external"])
        return joint_wrenches(tree, q, v, given["a"], given["external"] + loop_loads(tree, q, multipliers))

    def closed(self, given: Mapping[str, ca.SX], q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the nearest closed state (nq + nv) at the end (q, v) of a step, and the margin of the equations."""
        q, v, margin = projected_end(self._tree(given), given["q"], q, v, self.choice)
        return ca.vertcat(q, v), margin

    def _tree(self, given: Mapping[str, ca.SX], whole: bool = False) -> Tree:
        """Return the tree with parameters as symbols, simplified unless it is to be ``whole``, as wrenches need it."""
        tree, free = Tree.of(self.robot), self.settings.free
        if not whole:
            tree = lean(tree, touched(self.robot, free)) if free else lean(tree)
        return impose(tree, self.robot, free, given["p"]) if free else tree
