"""Bodies that are added to the links of a mechanism: payloads, and motors with their mass."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, real_numbers
from torsor.base.checks import frozen_array, frozen_pose, number
from torsor.base.errors import ModelError, describe, shortened
from torsor.mechanism.drives import Motor
from torsor.mechanism.mechanism import Mechanism, Place, carrier
from torsor.mechanism.parts import Link
from torsor.spatial import axis_frame, composite, make_pose, move_inertia

M = TypeVar("M", bound=Mechanism)
ROUNDING = 1e-9  # relative: inertias of a motor and of its rotor that are equal but for it are equal


def with_payload(robot: M, link: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: ArrayLike | None = None) -> M:
    """Return the robot with a load on a link or frame: mass (kg), centre of mass (m), inertia about it (kg m^2)."""
    load = Link("payload", mass, com, np.zeros((3, 3)) if inertia is None else inertia)  # type: ignore[arg-type]
    place = robot.place(link)
    return _with_body(robot, place.link, move_inertia(place.pose, *load.body))


def _with_body(robot: M, link: int, body: tuple[float, Array, Array]) -> M:
    """Return the robot with a body (mass, centre of mass, inertia about it) welded to a link (-1: the base)."""
    owner = carrier(robot, Place(link, np.eye(4)))
    mass, com, inertia = composite(owner.body, body)
    loaded = replace(owner, mass=mass, com=com, inertia=inertia, source="")
    if link < 0:
        return replace(robot, base=loaded)
    return replace(robot, links=(*robot.links[:link], loaded, *robot.links[link + 1 :]))


class MotorBody:
    """The body of a motor when its rotor does not spin, as arguments of ``with_motor`` describe it, checked.

    ``mass`` is that of stator and rotor, ``place`` the centre of mass (3,) or the pose (4 x 4) of the motor's frame,
    whose z is the spin axis, in the axes of the carrier; ``moments`` the inertia about the centre of mass, 3 principal
    moments in the motor's frame, or 3 x 3 in that frame (in the axes of the carrier where ``place`` is a point).
    """

    def __init__(self, where: str, mass: float, place: ArrayLike | None, moments: ArrayLike | None):
        self.where, self.mass = where, number(mass, where, "mass", least=0)
        if not self.mass and not (place is None and moments is None):
            found = f"{'place' if moments is None else 'moments'} of a motor without a mass"
            raise ModelError(describe(found, where=where, fix="give mass=, that of stator and rotor together"))
        given = real_numbers(() if place is None else place)
        self.has_axis = given is not None and given.ndim == 2
        if self.has_axis:
            self.pose = frozen_pose(place, where, "place")  # type: ignore[arg-type]
        else:
            centre: Any = (0.0, 0.0, 0.0) if place is None else place
            self.pose = make_pose(p=frozen_array(centre, (3,), where, "place"))
        given = real_numbers(() if moments is None else moments)
        principal = given is not None and given.ndim == 1 and given.size > 0
        self.moments = (
            None if moments is None else frozen_array(moments, (3,) if principal else (3, 3), where, "moments")
        )

    def added_to(self, robot: M, place: Place, motor: Motor) -> M:
        """Return the robot with the body on the carrier of its motor, whose axes are those of ``place``."""
        if not self.mass:
            return robot
        at, inertia = place.pose @ self.pose, self._inertia(motor)
        if self.moments is None or (self.moments.ndim == 1 and not self.has_axis):  # in axes whose z is the spin axis
            at = make_pose(axis_frame(motor.axis), at[:3, 3])
        body = Link("motor", self.mass, np.zeros(3), inertia, source=self.where)
        axis = at[:3, :3].T @ motor.axis  # which is in the axes of the link
        whole = float(axis @ inertia @ axis)
        if motor.inertia > whole * (1 + ROUNDING):
            found = f"the motor has {whole:.6g} kg m^2 about its spin axis, its rotor alone {motor.inertia:.6g}"
            fix = "give the moments of stator and rotor together"
            raise ModelError(describe(found, where=self.where, allowed="moments of at least the rotor", fix=fix))
        return _with_body(robot, place.link, move_inertia(at, *body.body))

    def _inertia(self, motor: Motor) -> Array:
        """Return the inertia (3 x 3) about the centre of mass; by default the rotor is a disc, the rest a point."""
        if self.moments is None:
            return motor.inertia * np.diag([0.5, 0.5, 1.0])
        if self.moments.ndim == 2:
            return self.moments
        x, y, _ = self.moments
        if not self.has_axis and abs(x - y) > ROUNDING * max(x, y):
            found = f"the moments {shortened(self.moments)} about two axes across the spin axis differ"
            fix = "give place as a pose (4 x 4) with these axes, its z the spin axis; or moments as 3 x 3"
            raise ModelError(describe(found, where=self.where, allowed="equal ones where place is a point", fix=fix))
        return np.diag(self.moments)
