"""Jacobians and motions of frames in own, aligned and world axes against Pinocchio."""

import numpy as np
import pytest

import torsor
from bench.coordinates import PinocchioCoordinates
from robots import robot_file

pin = pytest.importorskip("pinocchio")

ORDER = np.r_[3:6, 0:3]  # linear part first, and back
THEIRS = {
    "local": pin.ReferenceFrame.LOCAL,
    "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    "world": pin.ReferenceFrame.WORLD,
}


class Case:
    """One state of a robot, in both libraries."""

    def __init__(self, name: str, base: str, frame: str):
        root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
        self.model, self.frame = pin.buildModelFromUrdf(str(robot_file(name)), *root), frame
        self.robot, self.data = torsor.load(robot_file(name), base=base).to(device="casadi"), self.model.createData()
        robot, rng = self.robot, np.random.default_rng(3)
        peer = PinocchioCoordinates(robot, self.model)
        self.q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
        self.v, self.a = rng.uniform(-1, 1, (2, robot.nv))
        q, self.G = peer.positions(self.q), peer.velocity_map(self.q)
        v, a = self.G @ self.v, peer.accelerations(self.q, self.v, self.a)
        pin.forwardKinematics(self.model, self.data, q, v, a)
        pin.computeJointJacobians(self.model, self.data, q)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, q, v)
        pin.updateFramePlacements(self.model, self.data)
        self.at = self.model, self.data, self.model.getFrameId(frame)


@pytest.fixture(scope="module", params=[("ur5_robot.urdf", "fixed", "ee_link"), ("solo12.urdf", "floating", "FL_FOOT")])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)


@pytest.mark.parametrize("axes", THEIRS)
def test_jacobian_and_its_rate_are_those_of_pinocchio(case: Case, axes: str) -> None:
    J = pin.getFrameJacobian(*case.at, THEIRS[axes])[ORDER] @ case.G
    np.testing.assert_allclose(case.robot.jacobian(case.q, case.frame, axes), J, rtol=0, atol=1e-10)
    found = case.robot.task.jacobian_rate(case.q, case.v, case.frame, axes)
    rate = pin.getFrameJacobianTimeVariation(*case.at, THEIRS[axes])[ORDER] @ case.G
    np.testing.assert_allclose(found, rate, rtol=0, atol=1e-10)


@pytest.mark.parametrize("axes", THEIRS)
def test_velocity_and_acceleration_are_those_of_pinocchio(case: Case, axes: str) -> None:
    theirs = pin.getFrameVelocity(*case.at, THEIRS[axes]).vector[ORDER]
    np.testing.assert_allclose(case.robot.velocity(case.q, case.v, case.frame, axes), theirs, rtol=0, atol=1e-10)
    acceleration = pin.getFrameAcceleration if axes == "world" else pin.getFrameClassicalAcceleration
    theirs = acceleration(*case.at, THEIRS[axes]).vector[ORDER]
    found = case.robot.acceleration(case.q, case.v, case.a, case.frame, axes)
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-10)
