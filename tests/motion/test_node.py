"""Poses and velocities at a node agree with the robot's methods."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.spatial import from_rpy, make_pose

TURNED = make_pose(from_rpy([0.3, -0.7, 1.1]), [0.1, -0.2, 0.3])


@pytest.mark.parametrize("place", ["base", "link2", "tip", "bench"])
def test_places_are_where_the_robot_has_them_and_as_fast(place: str) -> None:
    robot = torsor.library.two_link().with_frame("tip", "link2", TURNED).with_frame("bench", "base", TURNED)
    robot = robot.to(device="casadi")
    node, rng = Node(MotionModel(robot)), np.random.default_rng(3)
    q, v = rng.normal(size=2), rng.normal(size=2)
    values = ca.Function("values", [node.y[0], node.y[1]], [node.pose(place), node.velocity(place)])(q, v)
    np.testing.assert_allclose(values[0].full(), robot.pose(q, place), atol=1e-14)
    np.testing.assert_allclose(values[1].full().ravel(), robot.velocity(q, v, place), atol=1e-14)
    np.testing.assert_array_equal(
        ca.DM(ca.evalf(ca.substitute(node.position(place), node.y[0], q))).full().ravel(), values[0].full()[:3, 3]
    )


def test_one_trace_serves_all_places() -> None:
    robot = torsor.library.two_link()
    node = Node(MotionModel(robot))
    for name in robot.link_names:
        node.pose(name), node.velocity(name)
    assert [request.name for request in robot.kernels._functions] == ["poses", "velocities"]
