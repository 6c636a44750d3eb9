"""Partition of the coordinates into joints and motors of elastic joints, and the dynamics of the load.

The load is the robot with unloaded springs in its elastic joints, theta = ratio q + offset, and with motors at rest,
theta' = theta'' = 0. Its dynamics are the joint rows M(q) q'' + C(q, q') q' + g(q) + joint springs and friction.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.mechanism.curves import Cam
from torsor.robot.robot import Robot


def check_tree(robot: object, name: str, *, flexible: bool = False, loops: bool = False) -> None:
    """Raise ModelError unless the robot is a tree without flexible links; ``flexible`` and ``loops`` allow these."""
    if not isinstance(robot, Robot):
        raise ModelError(f"{name} got {reprlib.repr(robot)}", allowed="a torsor.Robot", fix="use torsor.load(path)")
    if robot.loops and not loops:  # the laws would also drive joints without a drive
        fix = "pass simulate a controller function (t, q, v) based on robot.closed.inverse_dynamics"
        raise ModelError(f"{name} does not support robots with loops", where=robot.name, allowed="trees", fix=fix)
    bent = [joint.name for joint in robot.joints if joint.flexible is not None and not isinstance(joint.flexible, Cam)]
    if bent and not flexible:
        message = f"{name} does not support the flexible links {', '.join(map(repr, bent[:5]))}: modes have no drive"
        fix = "pass simulate a controller function (t, q, v) that returns 0 for the modes"
        raise ModelError(message, where=robot.name, allowed="rigid links", fix=fix)


def check_vector_space(robot: Robot, name: str) -> None:
    """Raise ModelError if a robot has flexible links, or quaternions (whose rates are not the velocities)."""
    check_tree(robot, name)
    if robot.nq != robot.nv:
        odd = [joint.name for joint in robot.joints if joint.nq != joint.nv]
        message = f"{name} does not support the joints {', '.join(map(repr, odd[:5]))}, whose positions are quaternions"
        fix = "fix a floating base (robot.fix), or use gravity_pd or MomentumObserver"
        raise ModelError(message, where=robot.name, allowed="robots with nq = nv", fix=fix)


def check_quaternions(robot: Robot, q: Array, where: str, what: str) -> None:
    """Raise ModelError if positions q (nq) contain a quaternion of length 0."""
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq > joint.nv and not q[slices.q][-4:].any():
            message = f"has a quaternion of length 0 at {joint.name!r}"
            raise ModelError(message, value=joint.name, argument=what, where=where, fix="start from robot.neutral()")


def check_rigid(robot: Robot, name: str, fix: str) -> None:
    """Raise ModelError if a robot has elastic joints."""
    if robot.elastic:
        elastic = ", ".join(repr(joint.name) for joint in robot.elastic[:5])
        raise ModelError(f"{name} does not support the elastic joints {elastic}", where=robot.name, fix=fix)


@dataclass(frozen=True, eq=False)
class Partition:
    """The partition of q into joints (n) and motors of elastic joints, with springs F = K (theta - ratio q - offset).

    ``elastic`` contains the indices of the elastic joints; ``K``, ``ratio`` and ``offset`` are their parameters. The
    spring exerts ratio F on the joint and -F on the motor.
    """

    robot: Robot
    n: int
    elastic: list[int]
    K: ca.DM
    ratio: ca.DM
    offset: ca.DM

    @classmethod
    def of(cls, robot: Robot, name: str, *, damped: bool = False) -> "Partition":
        """Return the partition of a robot; raise ModelError for nonlinear and, unless ``damped``, damped springs."""
        check_vector_space(robot, name)
        stiffness = []
        for joint in robot.elastic:
            message, motor = "", joint.motor
            assert motor is not None
            if isinstance(motor.stiffness, str):
                message = f"the stiffness of {joint.name!r} is the expression {motor.stiffness!r}"
            elif motor.damping and not damped:
                message = f"the spring of {joint.name!r} has damping {motor.damping}"
            if message:
                allowed = "springs with a constant stiffness" + ("" if damped else " and no damping")
                fix = f"replace the motor: with_motor({joint.name!r}, ..., stiffness=K)"
                raise ModelError(message, where=f"{robot.name}: {name}", allowed=allowed, fix=fix)
            stiffness.append(float(motor.stiffness))  # type: ignore[arg-type]
        places = {joint.name: slices.v.start for joint, slices in zip(robot.joints, robot.coordinates, strict=True)}
        elastic, rigid = [places[joint.name] for joint in robot.elastic], robot.nv - len(robot.elastic)
        ratios, offsets = (ca.DM([getattr(joint, k) for joint in robot.elastic]) for k in ("ratio", "offset"))
        return cls(robot, rigid, elastic, ca.DM(stiffness), ratios, offsets)

    @property
    def driven(self) -> list[int]:
        """Index of the coordinate that drives each joint (n): the motor of an elastic joint, otherwise the joint."""
        motors = {joint: self.n + k for k, joint in enumerate(self.elastic)}
        return [motors.get(k, k) for k in range(self.n)]

    def split(self, values: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the joint values (n) and the motor values."""
        return values[: self.n], values[self.n :]

    def of_elastic(self, values: ca.SX) -> ca.SX:
        """Return the values of the elastic joints from the values of all joints (n)."""
        return ca.vertcat(ca.SX.zeros(0, 1), *(values[k] for k in self.elastic))

    def unloaded(self, q: ca.SX) -> ca.SX:
        """Return the motor angles at which the springs are unloaded, for joint positions q (n)."""
        return self.ratio * self.of_elastic(q) + self.offset

    def _complete(self, q: ca.SX) -> ca.SX:
        return ca.vertcat(q, self.unloaded(q))

    def _still(self, values: ca.SX) -> ca.SX:
        return ca.vertcat(values, ca.SX.zeros(len(self.elastic), 1))

    def static(self, q: ca.SX) -> ca.SX:
        """Return the static load forces (n): g(q) and the joint springs."""
        q = self._complete(q)
        return (self.robot.function("gravity_force")(q) + self.robot.function("spring_force")(q))[: self.n]

    def inverse(self, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
        """Return the inverse dynamics (n) of the load: M a + C v + g + joint springs and friction."""
        return self.robot.function("inverse_dynamics")(self._complete(q), self._still(v), self._still(a))[: self.n]

    def forward(self, q: ca.SX, v: ca.SX, tau: ca.SX) -> ca.SX:
        """Return the forward dynamics of the load: its accelerations (n) for forces (n)."""
        hybrid = self.robot.function("hybrid_dynamics", forced=self.robot.coordinate_names[: self.n])
        still = ca.SX.zeros(self.robot.nv, 1)
        return hybrid(self._complete(q), self._still(v), still, self._still(tau))[0][: self.n]

    def coriolis(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Return C(q, v) (n x n) of the load, where M' - 2 C is skew-symmetric."""
        return self.robot.function("coriolis_matrix")(self._complete(q), self._still(v))[: self.n, : self.n]

    def mass(self, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the blocks M (n x n), S (joints x motors) and B (motors) of the mass matrix."""
        M, n = self.robot.function("mass_matrix")(self._complete(q)), self.n
        return M[:n, :n], M[:n, n:], M[n:, n:]

    def bias(self, q: ca.SX, v: ca.SX, motor_rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the bias forces of joints and motors, without the springs of the elastic joints."""
        bias = self.robot.function("bias_force")(self._complete(q), ca.vertcat(v, motor_rates))
        return self.split(bias)

    def coupled(self, rows: Sequence[int]) -> list[str]:
        """Return the elastic joints whose rotors are coupled to the joints ``rows`` by inertia or gyroscopic forces."""
        q, v, w = (ca.SX.sym(name, size) for name, size in (("q", self.n), ("v", self.n), ("w", len(self.elastic))))
        coupling = ca.horzcat(self.mass(q)[1], ca.jacobian(self.bias(q, v, w)[0], w))[list(rows), :]
        count = len(self.elastic)
        names = enumerate(joint.name for joint in self.robot.elastic)
        return [name for k, name in names if not (coupling[:, k].is_zero() and coupling[:, count + k].is_zero())]
