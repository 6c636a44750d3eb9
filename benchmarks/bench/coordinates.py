"""Conversion from Torsor coordinates to Pinocchio and MuJoCo coordinates.

Peer velocities are A(q) v, where v are the velocities in Torsor, and A^T maps generalised forces back. If the peer has
more coordinates, A has more rows than columns; for example, mimic joints move freely in Pinocchio.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.formats import Convention
from torsor.mechanism import Joint, Mechanism
from torsor.robot.robot import Robot
from torsor.spatial import about_z

_SWAPPED = np.roll(np.eye(6), 3, axis=0)  # (angular, linear) to (linear, angular)


def quaternions(robot: Mechanism) -> Iterator[slice]:
    """Yield the slices of quaternions in q."""
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if joint.type in ("free", "spherical"):
            yield slice(at.q.stop - 4, at.q.stop)


class Coordinates(ABC):
    """Conversion of robot coordinates to the coordinates of a peer."""

    def __init__(self, robot: Robot):
        self.robot = robot

    @abstractmethod
    def positions(self, q: Array) -> Array:
        """Return Torsor positions in peer coordinates."""

    @abstractmethod
    def velocity_map(self, q: Array) -> Array:
        """Return A (peer nv, Torsor nv): peer velocities are A v."""

    @abstractmethod
    def convective(self, q: Array, v: Array) -> Array:
        """Return the rate of A times v: peer accelerations are A a plus this term."""

    def accelerations(self, q: Array, v: Array, a: Array) -> Array:
        """Return Torsor accelerations in peer coordinates."""
        return self.velocity_map(q) @ a + self.convective(q, v)


class PinocchioCoordinates(Coordinates):
    """Conversion to the coordinates of Pinocchio's model of the same URDF file.

    All joints move freely in Pinocchio. The velocity of a free joint is (linear, angular), a planar joint has
    velocities in moved axes, and a revolute joint without limits has the positions (cos, sin).
    """

    def __init__(self, robot: Robot, model: Any):
        super().__init__(robot)
        self.model = model
        self._pairs = [self._pair(number) for number in range(1, model.njoints)]

    def _pair(self, number: int) -> tuple[Any, Joint, slice, slice]:
        """Return a joint of Pinocchio, the same joint here, and where our q and v of it are."""
        robot, name, theirs = self.robot, self.model.names[number], self.model.joints[number]
        # Pinocchio calls the joint of a floating base root_joint, and puts it first.
        is_base = number == 1 and name == "root_joint" and robot.joints[0].type == "free"
        ours = robot.joints[0] if is_base else robot.joint(name)
        at = robot.coordinates[robot.joints.index(ours)]
        return theirs, ours, at.q, at.v

    def positions(self, q: Array) -> Array:
        """Return Torsor positions as Pinocchio's."""
        result = np.zeros(self.model.nq)
        for theirs, ours, at, _ in self._pairs:
            value = q[at] * ours.ratio + ours.offset
            if theirs.nq == theirs.nv + 1 and ours.type in ("revolute", "continuous", "planar"):
                value = np.r_[value[:-1], np.cos(value[-1]), np.sin(value[-1])]
            result[theirs.idx_q : theirs.idx_q + theirs.nq] = value
        return result

    def velocity_map(self, q: Array) -> Array:
        """Return A: Pinocchio's velocities are A v."""
        A = np.zeros((self.model.nv, self.robot.nv))
        for theirs, ours, places, at in self._pairs:
            own = _SWAPPED if ours.type == "free" else np.eye(ours.nv)
            own = about_z(q[places][2]).T if ours.type == "planar" else own
            A[theirs.idx_v : theirs.idx_v + theirs.nv, at] = ours.ratio * own
        return A

    def convective(self, q: Array, v: Array) -> Array:
        """Return the rate of A times v: the axes of planar joints rotate."""
        rates = np.zeros(self.model.nv)
        for theirs, ours, places, at in self._pairs:
            if ours.type == "planar":
                x, y, turning = v[at]
                rates[theirs.idx_v : theirs.idx_v + 3] = about_z(q[places][2]).T @ [turning * y, -turning * x, 0.0]
        return rates


class MujocoCoordinates(Coordinates):
    """Conversion to the coordinates of MuJoCo's model of the same MJCF file, by ``Convention``."""

    def __init__(self, robot: Robot):
        super().__init__(robot)
        self._their = Convention(robot, "mujoco")

    def positions(self, q: Array) -> Array:
        """Return Torsor positions as MuJoCo's ``qpos``."""
        return np.asarray(self._their.theirs(q))

    def velocity_map(self, q: Array) -> Array:
        """Return A: MuJoCo's ``qvel`` is A v."""
        units = np.eye(self.robot.nv)
        return np.asarray(self._their.theirs(np.tile(q, (len(units), 1)), units)[1]).T

    def convective(self, q: Array, v: Array) -> Array:
        """Return the rate of A times v: world axes are fixed, so the origin velocity rotates with omega."""
        return np.asarray(self._their.theirs(q, v, np.zeros_like(v))[2])
