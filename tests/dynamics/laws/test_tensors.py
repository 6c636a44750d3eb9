"""A tensor is transformed as R D R^T, for every rotation and placement, also where operations fold."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.dynamics import Tree
from torsor.dynamics.recursions.kinematics import Move
from torsor.spatial import make_pose, skew


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    K = skew(axis / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar", "spherical", "free"])
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.7, np.pi / 2, np.pi])
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 2, 3), (1, 2, 0), (0, 1, 3), (2, 0, 1)])
def test_a_tensor_is_turned_on_both_sides(axis: tuple[float, ...], angle: float, kind: str) -> None:
    rng = np.random.default_rng(2)
    placement = make_pose(turn(np.array(axis), angle), rng.normal(size=3))
    links = [torsor.Link("base"), torsor.Link("link", 1.0, np.zeros(3), np.eye(3))]
    robot = torsor.build("one", links, [torsor.Joint("joint", kind, "base", "link", placement)]).to(device="casadi")
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    move, R = Move(Tree.of(robot).bodies[0], ca.SX(q)), robot.poses(q)[0, :3, :3]
    D = rng.normal(size=(3, 3))
    for tensor in (D, D + D.T):
        found = ca.DM(move.up_tensor(ca.SX(tensor))).full()
        np.testing.assert_allclose(found, R @ tensor @ R.T, rtol=0, atol=1e-14)
