"""Constraints of feet that share the ground's force: pressure within the soles, friction, and bounds of the sharing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.schedule import Walk
from torsor.human.contact.sharing import AHEAD, APART, FRACTION, PROFILES, PUSH, SharedContact
from torsor.human.terms.forces import ARM, LEAST, Grounded
from torsor.motion import Node, Number, Phase
from torsor.motion.terms.term import TOUCHING, Constraint, Rows
from torsor.motion.transcription.clock import SLOWEST
from torsor.motion.transcription.motion_model import MotionModel

# Bounds of the deviations from the nominal sharing (m, m, 1/m): wide, so that they are never active.
DEVIATIONS = {APART: (-0.1, 0.1), AHEAD: (-0.2, 0.2), PUSH: (-2.0, 2.0)}


def shared_contact(node: Node) -> SharedContact:
    """Return the contact of a node whose feet share the force."""
    contact = contact_forces(node)
    assert isinstance(contact, SharedContact)
    return contact


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedBalance(Grounded, Constraint):
    """Each centre of pressure stays within its sole, each force within its friction cone, and time runs forward.

    ``variables`` are speed and step width. ``lateral=False`` leaves out the lateral sides of the soles.
    """

    lateral: bool = True
    variables: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Mapping[str, Number]:
        """Return speed and step width."""
        return self.variables

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the profiles of the sharing; the fraction is given at both ends."""
        return {FRACTION: (0.0, 0.0)} | dict.fromkeys(PROFILES[1:], (None, None))

    def rows(self, node: Node) -> Rows:
        """Return distances (dm) times the vertical force, and forces, all divided by the weight."""
        contact = shared_contact(node)
        moment = ARM * contact.weight
        rows = {name: row / moment for name, row in contact.rows.items() if self.lateral or "sole" not in name}
        rows["vertical force"] = contact.force[1] / contact.weight
        for side in SIDES:
            x, y, z = ca.vertsplit(contact.directions[side] / contact.weight)
            rows[f"friction, {side}"] = (contact.friction * y) ** 2 - x**2 - z**2
        lower = dict.fromkeys(rows, 0.0) | {"vertical force": LEAST}
        if node.clock.harmonics:
            rows["rate of time"], lower["rate of time"] = node.clock_rate, SLOWEST
        bounds = np.array(list(lower.values()))
        return Rows(ca.vertcat(*rows.values()), bounds, np.full(len(rows), np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class BothPress(Grounded, Constraint):
    """Both feet press on the ground in double support: the fraction of the left foot is between 0 and 1."""

    def moments(self, phase: Phase) -> Array:
        """Return the nodes within double support, without its ends, where the fraction is given."""
        assert isinstance(self.support, Walk)
        inside = (phase.nodes > TOUCHING) & (phase.nodes < self.support.step.toe_off - TOUCHING)
        return np.asarray(phase.nodes[inside])

    def rows(self, node: Node) -> Rows:
        """Return the fraction."""
        return Rows(shared_contact(node).fraction, np.zeros(1), np.ones(1), (FRACTION,))


@dataclass(frozen=True, eq=False, kw_only=True)
class SharingBounds(Constraint):
    """Bounds of the control points of the sharing, by the name of the profile."""

    ways: Mapping[str, tuple[float, float]]

    @property
    def has_rows(self) -> bool:
        """Whether it is evaluated at nodes."""
        return False

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return the bounds by the index of the profile."""
        return {model.names.index(name): ends for name, ends in self.ways.items()}

    def rows(self, node: Node) -> Rows:
        """Return none."""
        return Rows(ca.SX(0, 1), np.zeros(0), np.zeros(0), ())


def sharing_bounds(toe_off: float) -> list[SharingBounds]:
    """Return the bounds of the sharing; after toe-off it is the nominal one, by which the left foot carries nothing."""
    nothing = dict.fromkeys(PROFILES, (0.0, 0.0))
    return [
        SharingBounds(ways=DEVIATIONS, name="sharing"),
        SharingBounds(ways=nothing, during=(toe_off, 1.0), name="trailing foot is off"),
    ]
