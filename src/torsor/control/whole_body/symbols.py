"""A robot's kinematics over symbols (t, q, v), for the tasks and contacts of a whole-body controller."""

import casadi as ca

from torsor.robot.robot import Robot


class Symbols:
    """A robot at symbols of the time t, positions q and velocities v; angular parts come first, in base axes."""

    def __init__(self, robot: Robot):
        self.robot = robot
        self.t, self.q, self.v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)

    def pose(self, place: str) -> ca.SX:
        """Return the pose (4 x 4) of a link or frame."""
        return self.robot.function("pose", place)(self.q)

    def jacobian(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the Jacobian (6 x nv) of the origin of a link or frame."""
        return self.robot.function("jacobian", place, axes=axes)(self.q)

    def velocity(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the twist (6 x 1) of a link or frame."""
        return self.robot.function("velocity", place, axes=axes)(self.q, self.v)

    def drift(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the acceleration (6 x 1) of a link or frame when all coordinates have none."""
        still = ca.SX.zeros(self.robot.nv, 1)
        return self.robot.function("acceleration", place, axes=axes)(self.q, self.v, still)

    def of(self, name: str, *more: ca.SX) -> ca.SX:
        """Return another function of q and ``more``."""
        return self.robot.function(name)(self.q, *more)
