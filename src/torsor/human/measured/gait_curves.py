"""Curves of a measured gait: angles, moments, powers and ground forces over time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import one_of
from torsor.base.errors import ModelError, describe, listing
from torsor.human.body.coordinates import SIDES
from torsor.human.measured.inverse_dynamics import LARGE, MeasuredDynamics
from torsor.human.measured.person import Person
from torsor.human.measured.result import MeasuredMotion
from torsor.human.recordings import Finding, GroundForces
from torsor.human.recordings.axes import HUMAN

WHERE = "measured gait"
# Joints of a leg: the coordinate of ``library.human`` without its side, and that of OpenSim's gait models.
JOINTS = {
    "hip_flexion": "hip_flexion",
    "hip_adduction": "hip_adduction",
    "hip_rotation": "hip_rotation",
    "knee_flexion": "knee_angle",
    "ankle_flexion": "ankle_angle",
}


@dataclass(frozen=True, eq=False)
class GaitCurves:
    """The curves of ``MeasuredGait``, which adds tables, figures and files.

    ``motion`` is the result of inverse kinematics, ``dynamics`` that of inverse dynamics and ``ground`` the forces on
    the feet (both None without ground forces), ``person`` the scaled body (None with a skeleton of OpenSim),
    ``findings`` are likely mistakes of the recording. Angles are in degrees, moments and powers are divided by the mass
    (kg). Moments are those of the muscles, positive as the angles are: hip and knee flexion, ankle dorsiflexion.
    """

    motion: MeasuredMotion
    mass: float
    dynamics: MeasuredDynamics | None = None
    ground: GroundForces | None = None
    person: Person | None = None
    findings: tuple[Finding, ...] = ()
    source: str = "recording"

    @property
    def times(self) -> Array:
        """Times (K,) in s: those of the dynamics, or of the motion without them."""
        return self.motion.times if self.dynamics is None else self.dynamics.times

    def coordinate(self, side: str, joint: str) -> str:
        """Return the name of the coordinate of a joint of the "right" or "left" leg, such as "knee_flexion"."""
        one_of(side, SIDES, WHERE, "side")
        one_of(joint, tuple(JOINTS), WHERE, "joint")
        own, other = f"{side}_{joint}", f"{JOINTS[joint]}_{side[0]}"
        names = self.motion.body.coordinate_names
        if own not in names and other not in names:
            allowed = listing(names, like=other)
            raise ModelError(describe(f"no coordinate {own!r} or {other!r}", where=self.source, allowed=allowed))
        return own if own in names else other

    def angle(self, side: str, joint: str) -> Array:
        """Return an angle (K,) in degrees."""
        at = self.motion.body.coordinate_names.index(self.coordinate(side, joint))
        q = self.motion.q if self.dynamics is None else self.dynamics.q
        return np.degrees(q[:, at])

    def moment(self, side: str, joint: str) -> Array:
        """Return a joint moment (K,) in N m/kg."""
        return self._dynamics.moment(self.coordinate(side, joint)) / self.mass

    def power(self, side: str, joint: str) -> Array:
        """Return the power (K,) of a joint moment in W/kg."""
        at = self.motion.body.coordinate_names.index(self.coordinate(side, joint))
        return self.moment(side, joint) * self._dynamics.v[:, at]

    def force(self, side: str) -> Array:
        """Return the ground's force (K, 3) on a foot in body weights: to the right, up, forward."""
        ground = self._ground.in_axes(HUMAN).without_unloaded()
        own = ground.forces[:, ground.index(side)] * [-1.0, 1.0, 1.0]
        found = np.stack([np.interp(self.times, ground.times, column) for column in own.T], axis=1)
        return np.asarray(found / self._dynamics.weight)

    @cached_property
    def valid(self) -> Flags:
        """Whether (K,) motion and ground forces agree: the residual force is below a quarter of the weight."""
        if self.dynamics is None:
            return np.ones(len(self.times), dtype=bool)
        return np.asarray(np.linalg.norm(self.dynamics.residual_force, axis=1) < LARGE * self.dynamics.weight)

    @property
    def _dynamics(self) -> MeasuredDynamics:
        if self.dynamics is None:
            fix = "give the ground forces too"
            raise ModelError(describe("it has no moments", where=self.source, fix=fix))
        return self.dynamics

    @property
    def _ground(self) -> GroundForces:
        if self.ground is None:
            raise ModelError(describe("it has no ground forces", where=self.source, fix="give the ground forces too"))
        return self.ground
