"""The constraint that joint torques stay within strength curves."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.strength import JOINTS, Curve, JointStrength, StrengthCurves
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.terms.forces import Grounded
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows

NAMES = tuple(f"{side}_{joint}" for side in SIDES for joint in JOINTS)
CURVES = VectorLayout({f"{name} {way}": len(Curve._fields) for name in NAMES for way in JointStrength._fields})


@dataclass(frozen=True, eq=False, kw_only=True)
class Strengths(Grounded, Constraint):
    """Torques of hips, knees and ankles within strength curves, times the factors of ``strength``.

    Rows are the margins to the limits, divided by the peak torque of the direction. The curves are data, so that one
    kernel serves all people. The constraint ``Torques`` holds as well.
    """

    curves: StrengthCurves

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the curves of both legs (K, 72)."""
        parts = dict[str, Array]()
        for name in NAMES:
            for way, curve in self.curves.of(self.body, name)._asdict().items():
                scaled = curve._replace(peak=self.strength.get(name, 1.0) * curve.peak)
                parts[f"{name} {way}"] = np.array(scaled)
        return {**super().data(s), "strength curves": CURVES.pack(len(s), **parts)}

    def rows(self, node: Node) -> Rows:
        """Return the margins of the joints that move, in both directions."""
        given, torques = CURVES.unpack(node.data("strength curves", CURVES.size)), contact_forces(node).torques
        rows, labels = list[ca.SX](), list[str]()
        for name in NAMES:
            if name not in node.model.names:
                continue
            k = node.robot.coordinate_names.index(name)
            joint = JointStrength(*(Curve(*ca.vertsplit(given[f"{name} {way}"])) for way in JointStrength._fields))
            lower, upper = joint.limits(node.q[k], node.v[k])
            torque = torques[k - len(GLOBAL)]
            rows += [(torque - lower) / joint.extend.peak, (upper - torque) / joint.flex.peak]
            labels += [f"{name} extends", f"{name} flexes"]
        return Rows(ca.vertcat(ca.SX(0, 1), *rows), np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))
