"""Walking whose timing, step length, step width and sharing of forces are results of the optimisation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.contact.schedule import FOREFOOT, MEET, PRESSED, TIP, Step, Walk
from torsor.human.contact.sharing import AHEAD, APART, FRACTION, PROFILES, PUSH, SPEED, WIDTH, SharedContact, shared_data
from torsor.human.contact.support import FLAT_ENDS, FORE_ENDS, Foot, SharedSupport, Stance
from torsor.human.terms.forces import ARM, LEAST, Grounded
from torsor.motion import Node, Number
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.clock import SLOWEST
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.splines import Spline
from torsor.robot.robot import Robot

FREE = 10.0  # m: sides of the sole of a foot that carries nothing
HEEL = 0.10  # the pressure is within this fraction of the foot while only the heel is in contact
WAYS = {APART: (-0.1, 0.1), AHEAD: (-0.2, 0.2), PUSH: (-2.0, 2.0)}  # bounds of deviations (m, m, 1/m)


@dataclass(frozen=True)
class FreeWalk(Walk, SharedSupport):
    """A step whose stances are relative to the heels."""

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances, with the heels at the origin."""
        return tuple(each._replace(heel=(0.0, 0.0)) for each in self.step.stances)

    def shared(self, s: Array, body: Robot, friction: float) -> Array:
        """Return the nominal sharing and the soles at times s (K,)."""
        step, foot, count = self.step, Foot.of(body), len(s)
        long, zero = foot.length, np.zeros(count)
        ahead = PRESSED * long * np.minimum(s / step.toe_off, 1.0)
        behind = (FOREFOOT + (TIP - FOREFOOT) * np.minimum(s / step.ball_off, 1.0)) * long
        is_heel, is_flat = s < step.flat - 1e-9, s <= step.heel_off + 1e-9
        back = np.where(is_flat, 0.0, FORE_ENDS[0]) * long
        front = np.where(is_heel, HEEL, np.where(is_flat, FLAT_ENDS[1], FORE_ENDS[1])) * long
        right = np.stack([np.full(count, -foot.half), np.full(count, foot.half), back, front], axis=1)
        tip = s > step.ball_off + 1e-9
        own = np.stack([np.full(count, -foot.half), np.full(count, foot.half), np.where(tip, 0.9, FORE_ENDS[0]) * long, np.full(count, 1.0) * long], axis=1)
        left = np.where((s < step.toe_off - 1e-9)[:, None], own, [-FREE, FREE, -FREE, FREE])
        return shared_data(
            left_fraction=1 - step.leading_fraction(s),
            right=np.stack([zero, ahead], axis=1),
            left=np.stack([zero, behind], axis=1),
            push=np.full(count, step.push / (MEET * long)) * -1,
            toes=np.stack([~is_flat, np.ones(count)], axis=1).astype(float),
            right_box=right,
            left_box=left,
            weight=np.full(count, body.mass * float(np.linalg.norm(body.gravity))),
            friction=np.full(count, friction),
        )

    def splines(self, pieces: int = 5) -> dict[str, Spline]:
        """Return the splines of the sharing: their knots are in double support."""
        knots = self.step.toe_off * np.arange(1, pieces + 1) / pieces
        return {name: Spline(3, knots) for name in PROFILES}


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedBalance(Grounded, Constraint):
    """Both centres of pressure within the soles, both forces within friction cones, time that runs forward."""

    lateral: bool = True
    shared_numbers: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Mapping[str, Number]:
        """Return speed and step width."""
        return self.shared_numbers

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the profiles of the sharing."""
        return {FRACTION: (0.0, 0.0)} | dict.fromkeys(PROFILES[1:], (None, None))

    def rows(self, node: Node) -> Rows:
        """Return the rows, in units of the weight and dm."""
        contact = contact_forces(node)
        assert isinstance(contact, SharedContact)
        rows = {name: row / (ARM * contact.weight) for name, row in contact.rows.items() if self.lateral or "sole" not in name}
        rows["vertical force"] = contact.force[1] / contact.weight
        lower = dict.fromkeys(rows, 0.0) | {"vertical force": LEAST}
        for side in SIDES:
            x, y, z = ca.vertsplit(contact.directions[side] / contact.weight)
            rows[f"friction, {side}"] = (contact.friction * y) ** 2 - x**2 - z**2
        if node.clock.harmonics:
            rows["time"] = node.clock_rate
            lower["time"] = SLOWEST
        bounds = np.array([lower.get(name, 0.0) for name in rows])
        return Rows(ca.vertcat(*rows.values()), bounds, np.full(len(rows), np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class SharingBounds(Constraint):
    """Bounds of the control points of the sharing; the left foot carries nothing after ``during``."""

    ways: Mapping[str, tuple[float, float]]

    @property
    def has_rows(self) -> bool:
        """It has none."""
        return False

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return the bounds."""
        return {model.names.index(name): ends for name, ends in self.ways.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Loaded(Grounded, Constraint):
    """Both feet press on the ground in double support: the fraction of the left foot is between 0 and 1."""

    def moments(self, phase: Any) -> Array:
        """Return the nodes within double support, without its ends, where the fraction is given."""
        return np.asarray(phase.nodes[(phase.nodes > 1e-9) & (phase.nodes < self.support.step.toe_off - 1e-9)])

    def rows(self, node: Node) -> Rows:
        """Return the fraction."""
        contact = contact_forces(node)
        return Rows(contact.fraction, np.zeros(1), np.ones(1), ("left fraction",))
