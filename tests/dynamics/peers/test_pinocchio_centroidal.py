"""Centroidal momentum matrix, its rate and the Jacobian of the centre of mass against Pinocchio, floating and fixed."""

import numpy as np
import pytest

import torsor
from bench.coordinates import PinocchioCoordinates
from robots import robot_file

pin = pytest.importorskip("pinocchio")

ORDER = np.r_[3:6, 0:3]  # linear part first, and back


@pytest.mark.parametrize(
    ("name", "base"),
    [("solo12.urdf", "floating"), pytest.param("talos_reduced.urdf", "floating", marks=pytest.mark.slow)],
)
def test_centroidal_quantities_are_those_of_pinocchio(name: str, base: str) -> None:
    model = pin.buildModelFromUrdf(str(robot_file(name)), pin.JointModelFreeFlyer())
    robot, data = torsor.load(robot_file(name), base=base).to(device="casadi"), model.createData()
    peer, rng = PinocchioCoordinates(robot, model), np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    v = rng.uniform(-1, 1, robot.nv)
    G, x = peer.velocity_map(q), peer.positions(q)
    pin.dccrba(model, data, x, G @ v)  # computeCentroidalMapTimeVariation uses data.vcom, but does not compute it
    np.testing.assert_allclose(robot.centroidal.momentum_matrix(q), data.Ag[ORDER] @ G, rtol=0, atol=1e-10)
    np.testing.assert_allclose(robot.centroidal.momentum_matrix_rate(q, v), data.dAg[ORDER] @ G, rtol=0, atol=1e-10)
    inertia = data.Ig.matrix()[np.ix_(ORDER, ORDER)]
    np.testing.assert_allclose(robot.centroidal.inertia(q), inertia, rtol=0, atol=1e-10)
    J = pin.jacobianCenterOfMass(model, data, x) @ G
    np.testing.assert_allclose(robot.centroidal.jacobian(q), J, rtol=0, atol=1e-10)
