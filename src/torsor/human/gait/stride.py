"""A whole stride of a walk, from heel strike to heel strike of one side: angles, moments, powers, forces, energy.

Where one step was found, the other is its mirror image; where two were, both are there, and sides may differ.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.human.contact.ground_contact import JOINTS, Samples, sampled, walked
from torsor.human.contact.schedule import Step
from torsor.human.contact.support import SIDES
from torsor.human.gait.energy import Energy, energy, joint_of
from torsor.human.gait.references import REFERENCES, Likeness, Reference, likeness
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

__all__ = ["OPPOSITE", "Stride"]

Array = NDArray[np.float64]

COUNT = 401  # moments of a stride
CARRIES = 1e-6  # of the weight: a foot that takes less has no centre of pressure
FORCES = ("medial", "vertical", "forward")

# What coordinates do when they fall, by names.
OPPOSITE = {
    "hip_extension": "hip_flexion",
    "hip_abduction": "hip_adduction",
    "knee_extension": "knee_flexion",
    "ankle_plantarflexion": "ankle_flexion",
    "ankle_eversion": "ankle_inversion",
    "toe_flexion": "toe_extension",
    "shoulder_extension": "shoulder_flexion",
    "shoulder_abduction": "shoulder_adduction",
    "elbow_extension": "elbow_flexion",
}


@dataclass(frozen=True, eq=False)
class Stride:
    """The stride of one ``side`` ("right" or "left") in the result of a problem of ``torsor.human.walking``.

    All curves are at 401 moments at equal steps, from heel strike to heel strike of that side. Names are those of the
    body's coordinates without the side ("hip_flexion", "list"); moments also have those that go the other way
    ("hip_extension"). Forces are in parts of the weight, moments and powers for each kg, of the body with its load.
    A left stride is seen in a mirror: vectors are (medial, up, forward) for either side, which for the right are the
    base axes. ``likeness`` says how near it comes to people, ``report()`` prints figures, ``plot`` draws.
    """

    result: MotionResult
    side: str = "right"

    def __post_init__(self) -> None:
        if not isinstance(self.result, MotionResult):
            allowed = "what solve() of torsor.human.walking() returns"
            raise ModelError(describe(f"result is {self.result!r}", where="stride", allowed=allowed))
        walked(self.result.problem)
        if self.side not in SIDES:
            raise ModelError(describe(f"side is {self.side!r}", where="stride", allowed=", ".join(map(repr, SIDES))))

    # What walks

    @property
    def body(self) -> Robot:
        """The body, with its load, and gravity as on the slope."""
        return walked(self.result.problem)[0].body

    @property
    def step(self) -> Step:
        """The step that it walks."""
        return walked(self.result.problem)[1].step

    @property
    def weight(self) -> float:
        """Weight of the body with its load (N)."""
        return self.body.mass * float(np.linalg.norm(self.body.gravity))

    @property
    def duration(self) -> float:
        """Time of the stride (s)."""
        return 2 * self.step.duration

    @cached_property
    def share(self) -> Array:
        """Shares (401,) of the stride, from 0 to 1."""
        return np.linspace(0.0, 1.0, COUNT)

    @cached_property
    def samples(self) -> Samples:
        """All of it at the 401 moments; the own side is the first of sides, and "right" among names."""
        body, walk = self.body, walked(self.result.problem)[1]
        length, half = walk.step.length, COUNT // 2
        if walk.steps == 1:
            found = sampled(self.result, np.linspace(0.0, 1.0, half + 1))
            return found.then(found.mirrored(body, length))
        found = sampled(self.result, self.share)
        if self.side == "right":
            return found
        later, first = found.part(half, COUNT - 1), found.part(0, half)
        return later.mirrored(body, -length).then(first.mirrored(body, length))

    def _place(self, name: str) -> int:
        names = self.body.coordinate_names
        for each in (f"right_{name}", name):
            if each in names[3:]:
                return names.index(each)
        own = [each.removeprefix("right_") for each in names[3:] if not each.startswith("left_")]
        raise ModelError(describe(f"no {name!r}", where="stride", allowed=", ".join(own)))

    # Curves

    def angle(self, name: str) -> Array:
        """Return an angle (401,) in degrees: of the own side, of pelvis ("tilt", "list", "yaw") or spine."""
        return np.degrees(self.samples.q[:, self._place(name)])

    def moment(self, name: str) -> Array:
        """Return the inner moment (401,) of a joint in N m/kg, the ground's wrenches on the feet.

        Its name says what it drives: "hip_extension", "hip_abduction", "knee_extension", "ankle_plantarflexion".
        """
        sign = -1.0 if name in OPPOSITE else 1.0
        return sign * self.samples.torques[:, self._place(OPPOSITE.get(name, name))] / self.body.mass

    def power(self, name: str) -> Array:
        """Return the power (401,) in W/kg of a coordinate, or of a joint with all its axes, such as "hip"."""
        names = self.body.coordinate_names
        places = [k for k in range(6, len(names)) if joint_of(names[k]) in (name, f"right_{name}")]
        places = places or [self._place(OPPOSITE.get(name, name))]
        at = self.samples
        return np.asarray((at.torques[:, places] * at.v[:, places]).sum(axis=1) / self.body.mass)

    @property
    def forces(self) -> Array:
        """The ground's forces (401, 2, 3) on the own foot and on the other, in parts of the weight."""
        return self.samples.forces / self.weight

    @property
    def force(self) -> Array:
        """The ground's force (401, 3) on the own foot, in parts of the weight: medial, up, forward."""
        return self.forces[:, 0]

    @cached_property
    def pressure(self) -> Array:
        """Centres of pressure (401, 2, 2) of the own foot and the other: (x, z) in m, NaN where one does not carry."""
        forces, moments = self.samples.forces, self.samples.moments
        up = np.where(forces[..., 1] > CARRIES * self.weight, forces[..., 1], np.nan)
        return np.stack([moments[..., 2] / up, -moments[..., 0] / up], axis=-1)

    def reaction(self, joint: str) -> Array:
        """Return the force (401, 3) in the own "hip", "knee" or "ankle", on the part below, in parts of the weight.

        Components are medial, up and forward. It is what the part above and all that spans the joint exert together;
        muscles press joints together by more.
        """
        if joint not in JOINTS:
            raise ModelError(describe(f"no joint {joint!r}", where="stride", allowed=", ".join(map(repr, JOINTS))))
        return self.samples.reactions[:, 0, JOINTS.index(joint)] / self.weight

    @property
    def kinetic(self) -> Array:
        """Kinetic energy (401,) of the body (J)."""
        return self.samples.kinetic

    @property
    def potential(self) -> Array:
        """Potential energy (401,) of the body (J)."""
        return self.samples.potential

    @cached_property
    def energy(self) -> Energy:
        """Work of the joints and its balance over the walk that was found: one step, or two."""
        return energy(self.result)

    # People

    def curve(self, reference: Reference) -> Array:
        """Return the curve (401,) that a reference is about, in its unit."""
        if reference.kind == "force":
            return 100 * self.force[:, FORCES.index(reference.name)]
        return self.angle(reference.name) if reference.kind == "angle" else self.moment(reference.name)

    def likeness(self) -> dict[str, Likeness]:
        """Return how like curves are to those of people, by the names of ``references.REFERENCES``."""
        return {name: likeness(self.curve(each), each.mean) for name, each in REFERENCES.items()}

    # Figures

    def to_dict(self) -> dict[str, Any]:
        """Return peaks, likeness, energy and curves as plain numbers, lists and strings, as for JSON."""
        from torsor.human.gait.report import plain

        return plain(self)

    def report(self, width: int = 110) -> str:
        """Return tables as text: peaks, energy, and how like the stride is to that of people."""
        from torsor.human.gait.report import text

        return text(self, width)

    def __rich__(self) -> Any:
        from torsor.human.gait.report import tables

        return tables(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure (matplotlib, the extra ``plot``) of curves beside those of people; ``path`` saves it."""
        from torsor.human.gait.figures import plot

        return plot(self, path)
