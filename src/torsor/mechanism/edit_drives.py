"""Making another mechanism with other springs, motors and friction."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.errors import ModelError, describe
from torsor.mechanism.drives import Motor, Spring
from torsor.mechanism.laws import stiffness_at
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Joint
from torsor.mechanism.values import frozen_array

__all__ = ["DriveEdits"]


class DriveEdits(Mechanism):
    """A mechanism with the methods that make another with other drives."""

    def _with_joint(self, name: str, change: Callable[[Joint], Joint]) -> Self:
        self.joint(name)
        joints = tuple(change(joint) if joint.name == name else joint for joint in self.joints)
        return replace(self, joints=joints)

    def with_friction(
        self,
        joint: str,
        coulomb: ArrayLike | None = None,
        viscous: ArrayLike | None = None,
        smooth: float | None = None,
    ) -> Self:
        """Return the robot with friction at a joint: Coulomb (N m or N), viscous (N m s/rad or N s/m).

        What is not given stays. ``smooth`` (rad/s or m/s) replaces sign(v) by tanh(v / smooth); 0 is Coulomb's own law.
        The friction of a joint's motor, as the gear's output feels it, is that of "joint/motor".

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_friction("joint1", coulomb=2.0, viscous=0.5)
            >>> robot.friction_force([3.0, 0.0]).tolist()
            [3.5, 0.0]
        """
        given = {"coulomb": coulomb, "viscous": viscous, "smooth": smooth}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        motors = {f"{each.name}/motor": (each.name, each.motor) for each in self.joints if each.motor is not None}
        if joint in motors:
            name, motor = motors[joint]
            return self._with_joint(name, lambda old: replace(old, motor=replace(motor, **changes)))
        return self._with_joint(joint, lambda old: replace(old, **changes))

    def without_friction(self) -> Self:
        """Return the robot with no friction anywhere, as libraries have it that leave friction out.

        Springs keep their damping.

        Example:
            >>> import torsor
            >>> bool(torsor.library.six_axis_arm().without_friction().friction_force(np.ones(6)).any())
            False
        """
        none: dict[str, Any] = {"coulomb": 0.0, "viscous": 0.0}
        joints = (replace(each, motor=each.motor and replace(each.motor, **none), **none) for each in self.joints)
        return replace(self, joints=tuple(joints))

    def with_spring(self, joint: str, stiffness: Any, damping: float = 0.0, rest: float = 0.0) -> Self:
        """Return the robot with a spring on a joint: it pulls it back with K(x) x + D x', where x = q - rest.

        ``stiffness`` K (N m/rad or N/m) is a number, or a law: a CasADi expression of one symbol, the deflection, or
        the same as text in x. ``damping`` D is in N m s/rad or N s/m, ``rest`` in rad or m. A stiffness and a damping
        of 0 take the spring away. Khalil 2010, section 6, has such joints.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_spring("joint2", 100.0, rest=0.1)
            >>> robot.spring_force([0.0, 0.3]).round(12).tolist()
            [0.0, 20.0]
            >>> import casadi
            >>> x = casadi.SX.sym("x")
            >>> robot.with_spring("joint2", 100 + 500 * x**2).spring_force([0.0, 0.1]).round(12).tolist()
            [0.0, 10.5]
        """
        if joint in (f"{each.name}/motor" for each in self.joints if each.motor is not None):
            fix = f"put it on {joint.removesuffix('/motor')!r}, or give the motor a stiffness: with_motor(...)"
            raise ModelError(describe(f"a spring on the driven coordinate {joint!r}", where=self.name, fix=fix))
        spring = Spring(stiffness, damping, rest)
        kept = spring if spring.stiffness or spring.damping else None
        return self._with_joint(joint, lambda old: replace(old, spring=kept))

    def with_motor(
        self,
        joint: str,
        inertia: float,
        ratio: float = 1.0,
        carrier: str | None = None,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        stiffness: Any = None,
        damping: float = 0.0,
    ) -> Self:
        """Return the robot with a motor that drives a joint: a rotor that spins ``ratio`` times as fast as the joint.

        ``inertia`` (kg m^2) is the rotor's about its spin axis; its mass, and its inertia when it does not spin, belong
        to the link that carries it. ``carrier`` is that link (or a frame on it, or the base); by default the link that
        the joint sits on. ``axis`` is the spin axis in the carrier's axes. All gyroscopic terms are exact (document
        004). A ``stiffness`` (a number or a law as for ``with_spring``) makes the joint elastic: the motor gets a
        coordinate of its own, "joint/motor", its angle theta after the gear, and pulls the joint with K(x) x + D x',
        where x = theta - q.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_motor("joint2", 1e-4, ratio=50, carrier="link1", stiffness=1e3)
            >>> robot.coordinate_names
            ('joint1', 'joint2', 'joint2/motor')
            >>> robot.forward_dynamics(np.zeros(3), np.zeros(3), [0, 0, 1.0]).round(4).tolist()
            [-0.1072, 0.1429, 4.0021]
        """
        place = self.place(self.joint(joint).parent if carrier is None else carrier)
        owner = self.base.name if place.link < 0 else self.links[place.link].name
        direction = place.pose[:3, :3] @ frozen_array(axis, (3,), f"{self.name}: motor of {joint!r}", "axis")
        motor = Motor(owner, inertia, ratio, direction, stiffness, damping)
        if place.link >= 0:
            motor.warn_if_too_heavy(joint, self.links[place.link].inertia)
        return self._with_joint(joint, lambda old: replace(old, motor=motor))

    def without_motor(self, joint: str) -> Self:
        """Return the robot without the motor of a joint, which is then driven directly; the carrier keeps its mass.

        Example:
            >>> import torsor
            >>> arm = torsor.library.two_link()
            >>> arm.with_motor("joint2", 1e-4, stiffness=1e3).without_motor("joint2") == arm
            True
        """
        return self._with_joint(joint, lambda old: replace(old, motor=None))

    def _with_motor_held(self, name: str, value: ArrayLike) -> Self:
        """Return the robot with the motor of an elastic joint at an angle: its spring is then the joint's alone."""
        joint = self.joint(name.removesuffix("/motor"))
        motor = joint.motor
        if motor is None or motor.stiffness is None or joint.spring is not None:
            found = f"joint {joint.name!r} has a spring of its own beside that of its motor"
            raise ModelError(describe(found, where=self.name, fix="hold the joint itself"))
        at = np.asarray(value, dtype=object)
        angle = float(frozen_array(at.item() if at.size == 1 else value, (), f"{self.name}: {name!r}", "value"))
        # The law of a motor is in theta - q, that of a joint's spring in q - rest.
        spring = Spring(stiffness_at(motor.stiffness, -ca.SX.sym("x")), motor.damping, angle)
        return self._with_joint(joint.name, lambda old: replace(old, motor=None, spring=spring))
