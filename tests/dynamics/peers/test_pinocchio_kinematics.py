"""Derivatives of velocities and accelerations of frames against Pinocchio, fixed and floating."""

import numpy as np
import pytest

import torsor
from bench.coordinates import PinocchioCoordinates
from robots import robot_file

pin = pytest.importorskip("pinocchio")

ORDER = np.r_[3:6, 0:3]  # linear part first, and back
CASES = [("ur5_robot.urdf", "fixed", "ee_link"), ("solo12.urdf", "floating", "FL_FOOT")]


@pytest.mark.parametrize(("name", "base", "frame"), CASES)
def test_derivatives_of_velocity_and_acceleration_are_those_of_pinocchio(name: str, base: str, frame: str) -> None:
    path = robot_file(name)
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    robot, data = torsor.load(path, base=base).to(device="casadi"), model.createData()
    peer, rng = PinocchioCoordinates(robot, model), np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    v, a = rng.uniform(-1, 1, (2, robot.nv))
    G = peer.velocity_map(q)
    pin.computeForwardKinematicsDerivatives(model, data, peer.positions(q), G @ v, peer.accelerations(q, v, a))
    place, axes = model.getFrameId(frame), pin.ReferenceFrame.LOCAL
    by_q, by_v = (each[ORDER] @ G for each in pin.getFrameVelocityDerivatives(model, data, place, axes))
    dq, dv = robot.derivatives.velocity(q, v, frame)
    np.testing.assert_allclose(dq, by_q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(dv, by_v, rtol=0, atol=1e-10)
    # Theirs is the rate of the twist: the acceleration of the origin has w x v in addition.
    theirs = [each[ORDER] @ G for each in pin.getFrameAccelerationDerivatives(model, data, place, axes)[1:]]
    w, u = np.split(robot.velocity(q, v, frame), 2)

    def turning(change: np.ndarray) -> np.ndarray:
        return np.vstack([np.zeros((3, robot.nv)), np.cross(change[:3].T, u).T + np.cross(w, change[3:].T).T])

    expected = theirs[0] + turning(by_q), theirs[1] + turning(by_v), theirs[2]
    for found, wanted in zip(robot.derivatives.acceleration(q, v, a, frame), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
