"""Torques of the spine within the strength of the trunk, which depends on its flexion."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.trunk_strength import SPINE, TrunkStrength, extension
from torsor.human.contact.of_node import contact_forces
from torsor.human.terms.forces import Grounded, Torques
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class LimbTorques(Torques):
    """Joint torques within the strengths, except for flexions of the spine, which ``TrunkTorques`` bounds."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        found = super().rows(node)
        kept = [k for k, name in enumerate(found.labels) if name not in SPINE]
        return Rows(found.expression[kept], found.lower[kept], found.upper[kept], tuple(found.labels[k] for k in kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class TrunkTorques(Grounded, Constraint):
    """Flexion torques of the spine within the strength of the trunk at its flexion.

    Rows are torques divided by the strength of their direction; the numbers of the strength are data, so that one
    kernel serves all people.
    """

    trunk: TrunkStrength

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the coefficients of the strength (K, 3)."""
        return {**super().data(s), "trunk strength": np.tile(self.trunk.coefficients, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return torques divided by the strength in extension (least -1) and in flexion (most 1)."""
        names, given = node.robot.coordinate_names, node.data("trunk strength", 3)
        torques, moving = contact_forces(node).torques, [name for name in SPINE if name in node.model.names]
        limit = extension([given[0], given[1]], sum(node.q[names.index(name)] for name in SPINE))
        rows, free = list[ca.SX](), np.full(len(moving), np.inf)
        for back in (limit, given[2]):
            rows += [torques[names.index(name) - len(GLOBAL)] / back for name in moving]
        ones = np.ones(len(moving))
        labels = (*(f"{name} extends" for name in moving), *(f"{name} flexes" for name in moving))
        return Rows(ca.vertcat(*rows), np.concatenate([-ones, -free]), np.concatenate([free, ones]), labels)
