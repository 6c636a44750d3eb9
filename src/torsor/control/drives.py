"""Which coordinates are joints and which are motors of elastic joints, and the dynamics of the load alone.

The load is the robot with its elastic joints cut free of their motors, which stand still: springs at rest,
theta = ratio q + offset, theta' = theta'' = 0. What is left is M(q) q'' + C(q, q') q' + g(q) + the joints' own springs
and friction, of the joints only.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot

__all__ = ["Drives", "is_robot", "plain", "rigid"]


def is_robot(robot: object, name: str) -> None:
    """Refuse what is no robot."""
    if not isinstance(robot, Robot):
        found = f"{name} for {reprlib.repr(robot)}"
        raise ModelError(describe(found, allowed="a torsor.Robot", fix="torsor.load(path)"))
    if robot.loops:  # laws of the cut tree would drive joints that have no drive
        fix = "a function (t, q, v) of robot.constrained_inverse_dynamics, given to simulate as the controller"
        raise ModelError(describe(f"{name} for a robot with loops", where=robot.name, allowed="trees", fix=fix))


def plain(robot: Robot, name: str) -> None:
    """Refuse a robot whose positions are not plain numbers with the velocities as their rates."""
    is_robot(robot, name)
    if robot.nq != robot.nv:
        odd = [joint.name for joint in robot.joints if joint.nq != joint.nv]
        found = f"{name} for a robot with the joints {', '.join(map(repr, odd[:5]))}, whose positions are quaternions"
        fix = "hold a floating base with fix, or use gravity_pd or MomentumObserver"
        raise ModelError(describe(found, where=robot.name, allowed="robots with nq = nv", fix=fix))


def rigid(robot: Robot, name: str, fix: str) -> None:
    """Refuse a robot with elastic joints."""
    if robot.elastic:
        elastic = ", ".join(repr(joint.name) for joint in robot.elastic[:5])
        raise ModelError(describe(f"{name} for the elastic joints {elastic}", where=robot.name, fix=fix))


@dataclass(frozen=True, eq=False)
class Drives:
    """How q splits into joints (n) and motors of elastic joints, and the springs F = K (theta - ratio q - offset).

    ``elastic`` are the places of the elastic joints among the joints; ``K``, ``ratio`` and ``offset`` are theirs. The
    joint feels ratio F, the motor -F.
    """

    robot: Robot
    n: int
    elastic: list[int]
    K: ca.DM
    ratio: ca.DM
    offset: ca.DM

    @classmethod
    def of(cls, robot: Robot, name: str, *, damped: bool = False) -> "Drives":
        """Return the drives of a robot, or refuse springs that are no number or (unless ``damped``) have damping."""
        plain(robot, name)
        places = {joint.name: slices.v.start for joint, slices in zip(robot.joints, robot.coordinates, strict=True)}
        stiffness = []
        for joint in robot.elastic:
            assert joint.motor is not None
            found = ""
            if isinstance(joint.motor.stiffness, str):
                found = f"the stiffness of {joint.name!r} is the law {joint.motor.stiffness!r}"
            elif joint.motor.damping and not damped:
                found = f"the spring of {joint.name!r} has the damping {joint.motor.damping}"
            if found:
                allowed = "springs with a constant stiffness" + ("" if damped else " and no damping")
                fix = f"give {name} a robot with such a motor: with_motor({joint.name!r}, ..., stiffness=K)"
                raise ModelError(describe(found, where=f"{robot.name}: {name}", allowed=allowed, fix=fix))
            stiffness.append(float(joint.motor.stiffness))  # type: ignore[arg-type]
        return cls(
            robot,
            robot.nv - len(robot.elastic),
            [places[joint.name] for joint in robot.elastic],
            ca.DM(stiffness),
            ca.DM([joint.ratio for joint in robot.elastic]),
            ca.DM([joint.offset for joint in robot.elastic]),
        )

    def split(self, values: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return those of the joints (n) and those of the motors."""
        return values[: self.n], values[self.n :]

    def of_elastic(self, values: ca.SX) -> ca.SX:
        """Return those of the elastic joints, from values of all joints (n)."""
        return ca.vertcat(ca.SX.zeros(0, 1), *(values[k] for k in self.elastic))

    def unloaded(self, q: ca.SX) -> ca.SX:
        """Return the motor angles at which the springs are at rest, for the joints at q (n)."""
        return self.ratio * self.of_elastic(q) + self.offset

    def _complete(self, q: ca.SX) -> ca.SX:
        return ca.vertcat(q, self.unloaded(q))

    def _still(self, values: ca.SX) -> ca.SX:
        return ca.vertcat(values, ca.SX.zeros(len(self.elastic), 1))

    def static(self, q: ca.SX) -> ca.SX:
        """Return what holds the load still (n): g(q) and the joints' own springs."""
        q = self._complete(q)
        return (self.robot.function("gravity_force")(q) + self.robot.function("spring_force")(q))[: self.n]

    def inverse(self, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
        """Return the forces (n) of a motion of the load: M a + C v + g + springs and friction of the joints."""
        return self.robot.function("inverse_dynamics")(self._complete(q), self._still(v), self._still(a))[: self.n]

    def forward(self, q: ca.SX, v: ca.SX, tau: ca.SX) -> ca.SX:
        """Return the accelerations (n) of the load under forces (n): the inverse of ``inverse``."""
        hybrid = self.robot.function("hybrid_dynamics", forced=self.robot.coordinate_names[: self.n])
        still = ca.SX.zeros(self.robot.nv, 1)
        return hybrid(self._complete(q), self._still(v), still, self._still(tau))[0][: self.n]

    def coriolis(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Return C(q, v) (n x n) of the load: the rate of its M minus 2 C is skew-symmetric."""
        return self.robot.function("coriolis_matrix")(self._complete(q), self._still(v))[: self.n, : self.n]

    def mass(self, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the blocks M (n x n), S (joints x motors) and B (motors) of the mass matrix."""
        M, n = self.robot.function("mass_matrix")(self._complete(q)), self.n
        return M[:n, :n], M[:n, n:], M[n:, n:]

    def bias(self, q: ca.SX, v: ca.SX, motor_rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return bias forces with the springs of the motors left out, of the joints and of the motors."""
        bias = self.robot.function("bias_force")(self._complete(q), ca.vertcat(v, motor_rates))
        return self.split(bias)

    def coupled(self, rows: Sequence[int]) -> list[str]:
        """Return the elastic joints whose rotor's spin the joints ``rows`` feel, by its rate or as a gyroscope."""
        q, v, w = (ca.SX.sym(name, size) for name, size in (("q", self.n), ("v", self.n), ("w", len(self.elastic))))
        felt = ca.horzcat(self.mass(q)[1], ca.jacobian(self.bias(q, v, w)[0], w))[list(rows), :]
        count = len(self.elastic)
        names = enumerate(joint.name for joint in self.robot.elastic)
        return [name for k, name in names if not (felt[:, k].is_zero() and felt[:, count + k].is_zero())]
