"""Inverse kinematics with a clearance: distances of the postures found, by Pinocchio, samples and closed forms."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from robots import robot_file
from torsor import Shape
from torsor.robot.inverse_kinematics import Position
from torsor.spatial import make_pose

ROD = Shape("capsule", (0.05, 0.9), make_pose(torsor.spatial.exp_so3([0, np.pi / 2, 0]), [0.5, 0.0, 0.0]))


def chain(count: int, *obstacles: Shape) -> torsor.Robot:
    """A planar chain with rods of 1 m as shapes, and obstacles on its base."""
    robot = torsor.library.planar_chain(count).to(device="casadi")
    for name in robot.link_names:
        robot = robot.with_shapes(name, [ROD])
    robot = robot.with_frame("tip", robot.link_names[-1], make_pose(p=[1.0, 0, 0]))
    return robot.with_shapes("base", obstacles)


def ball(at: np.ndarray, radius: float, name: str) -> Shape:
    return Shape("sphere", (radius,), make_pose(p=at), name=name)


def sampled(robot: torsor.Robot, q: np.ndarray, center: np.ndarray, radius: float) -> float:
    """The least distance of the rods from a ball, by 20,001 points of each axis."""
    along = np.linspace(0.05, 0.95, 20_001)
    least = np.inf
    for name in robot.link_names:
        T = robot.pose(q, name)
        points = T[:3, 3] + along[:, None] * T[:3, 0]
        least = min(least, float(np.linalg.norm(points - center, axis=1).min()) - 0.05 - radius)
    return least


def test_a_redundant_chain_goes_around_a_ball() -> None:
    free = chain(4)
    q = np.array([0.3, 0.5, 0.4, 0.3])
    there = free.pose(q, "tip")[:3, 3]
    center = free.pose(q, "link3")[:3, 3]
    robot = chain(4, ball(center, 0.1, "ball"))
    pairs = [(name, "ball") for name in robot.link_names]
    found = torsor.inverse_kinematics(robot, {"tip": there}, q0=q, clearance=0.05, pairs=pairs)
    assert found.solved and found.status == "solved" and found.cause() == "" and found.blocking() == []
    assert sampled(robot, found.q, center, 0.1) >= 0.05 - 1e-8
    assert sampled(robot, q, center, 0.1) < 0
    np.testing.assert_allclose(robot.pose(found.q, "tip")[:3, 3], there, atol=1e-9)
    np.testing.assert_allclose(found.clearance, robot.shapes.distances(found.q, pairs).distance.min(), atol=1e-12)


def test_the_other_elbow_is_found_and_two_obstacles_are_the_cause() -> None:
    free = chain(2)
    up, down = np.array([0.4, 1.2]), np.array([1.6, -1.2])
    there = free.pose(up, "tip")[:3, 3]
    np.testing.assert_allclose(free.pose(down, "tip")[:3, 3], there, atol=1e-12)
    elbows = [free.pose(q, "link2")[:3, 3] for q in (up, down)]
    one = chain(2, ball(elbows[0], 0.1, "ball"))
    np.testing.assert_allclose(torsor.inverse_kinematics(one, {"tip": there}, q0=up, clearance=0.01).q, down, atol=1e-8)
    both = chain(2, ball(elbows[0], 0.1, "one"), ball(elbows[1], 0.1, "two"))
    stuck = torsor.inverse_kinematics(both, {"tip": there}, q0=up, clearance=0.01, restarts=4)
    assert not stuck.solved and stuck.status == "clearance" and stuck.clearance >= 0.01
    assert {name for pair in stuck.blocking() for name in pair} & {"one", "two"}
    stuck = pickle.loads(pickle.dumps(stuck))
    assert "the position of 'tip' is missed by" in stuck.cause() and "with a clearance of 0.01 m" in stuck.cause()


def test_a_slider_stops_at_the_clearance_of_a_wall() -> None:
    cart = torsor.Joint("x", "prismatic", "rail", "cart", axis=np.array([1.0, 0, 0]))
    wall = Shape("plane", pose=make_pose(torsor.spatial.exp_so3([0, -np.pi / 2, 0]), [1.0, 0, 0]), name="wall")
    links = [torsor.Link("rail", shapes=(wall,)), torsor.Link("cart", 1.0, shapes=(Shape("sphere", (0.1,)),))]
    robot = torsor.Robot.of(torsor.build("slider", links, [cart])).to(device="casadi")
    goals = np.array([[0.5, 0, 0], [0.88, 0, 0], [2.0, 0, 0]])
    found = torsor.inverse_kinematics(robot, {"cart": goals}, clearance=0.02)
    assert found.solved.tolist() == [True, True, False]
    np.testing.assert_allclose(found.q[:, 0], [0.5, 0.88, 0.8799], atol=1e-6)  # 1 - 0.1 - 0.02 - the margin
    np.testing.assert_allclose(found.error[2], 2 - 0.8799, atol=1e-6)
    assert found.blocking(2) == [("wall", "cart/0")] and found.blocking(0) == []
    empty = torsor.inverse_kinematics(robot, {"cart": np.zeros((0, 3))}, clearance=0.02)
    assert empty.solved.shape == (0,) and empty.clearance.shape == (0,)


def test_a_pair_that_no_target_moves_is_named() -> None:
    robot = chain(3, ball(np.array([2.5, 0.2, 0.0]), 0.2, "post"))
    robot = robot.with_shapes("link2", [ball(np.array([1.2, 0.0, 0.0]), 0.1, "hub")])
    there = make_pose(p=[1.0, 0, 0])
    aside = torsor.inverse_kinematics(robot, {"link2": there}, clearance=0.01, pairs=[("link3", "post")])
    assert not aside.solved and aside.blocking() == [("link3/0", "post")]
    assert aside.clearance >= 0.01  # joints 1 and 2 turned link3 away, which joint 3 would do better
    stiff = torsor.inverse_kinematics(robot, {"link2": there}, clearance=0.01, pairs=[("hub", "link3")])
    assert not stiff.solved and stiff.error < 1e-9 and stiff.status == "clearance"
    assert "and no joint that moves a target moves one of them" in stiff.cause()


def test_loops_stay_closed_beside_an_obstacle() -> None:
    robot = torsor.library.five_bar().to(device="casadi")
    q = robot.closed.closure.reference
    there = robot.pose(q, "link2_tip")[:3, 3]
    robot = robot.with_shapes("link2_tip", [Shape("sphere", (0.02,), name="tip")])
    robot = robot.with_shapes("base", [ball(there, 0.05, "ball")])
    near = torsor.inverse_kinematics(robot, [Position("link2_tip", there)], clearance=0.01, q0=q, restarts=2)
    assert not near.solved and near.status == "clearance"
    np.testing.assert_allclose(near.error, 0.0801, atol=1e-5)
    assert np.abs(robot.closed.error(near.q)).max() < 1e-8
    assert torsor.inverse_kinematics(
        robot, {"link2_tip": robot.pose(near.q, "link2_tip")[:3, 3]}, clearance=0.01
    ).solved


def test_the_posture_nearest_to_a_wish_keeps_the_clearance() -> None:
    free = chain(4)
    q, wanted = np.array([0.3, 0.5, 0.4, 0.3]), np.array([0.9, -0.2, 0.5, 0.3])
    there = free.pose(q, "tip")[:3, 3]
    bare = torsor.inverse_kinematics(free, {"tip": there}, q0=q, posture=wanted)
    center = free.pose(bare.q, "link3")[:3, 3]
    robot = chain(4, ball(center, 0.05, "ball"))
    pairs = [(name, "ball") for name in robot.link_names]
    found = torsor.inverse_kinematics(robot, {"tip": there}, q0=q, posture=wanted, clearance=0.02, pairs=pairs)
    assert found.solved and sampled(robot, found.q, center, 0.05) >= 0.02 - 1e-8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clearance": -0.1}, "clearance"),
        ({"clearance": float("nan")}, "clearance"),
        ({"clearance": "wide"}, "clearance"),
        ({"pairs": [("link1", "link3")]}, "pairs"),
        ({"clearance": 0.1, "pairs": [("link1", "nothing")]}, "nothing"),
        ({"clearance": 0.1, "pairs": "link1"}, "pairs"),
    ],
)
def test_invalid_clearances_raise(options: dict[str, Any], words: str) -> None:
    with refused(words):
        torsor.inverse_kinematics(chain(3), {"tip": [1.0, 1.0, 0.0]}, **options)
    with refused(what="no link has a collision shape"):
        torsor.inverse_kinematics(torsor.library.planar_chain(2), {"link2": [1.0, 0, 0]}, clearance=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), [("panda.urdf", "panda_hand"), ("ur5_robot.urdf", "ee_link")])
def test_postures_of_real_arms_are_clear_by_pinocchio(name: str, place: str) -> None:
    file, clearance = robot_file(name), 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = torsor.load(file)
    start = np.where(np.arange(robot.nq) == 7, 0.03, 0.0)  # the fingers of the Panda are open
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (400, robot.nq))
    q[:, 7:] = start[7:]
    q = q[robot.shapes.distances(q).distance.min(axis=1) > clearance][:60]
    found = torsor.inverse_kinematics(robot, {place: robot.pose(q, place)}, q0=start, clearance=clearance)
    assert found.solved.mean() >= 0.95
    plain = torsor.inverse_kinematics(robot, {place: robot.pose(q, place)}, q0=start)
    assert (robot.shapes.distances(plain.q).distance.min(axis=1) < clearance).sum() >= 4  # without it, some collide
    least = pinocchio_distances(robot, file, found.q[found.solved])
    assert least.min() >= clearance - 1e-6


def pinocchio_distances(robot: torsor.Robot, file: Path, postures: np.ndarray) -> np.ndarray:
    """The least distance of the checked pairs at postures, of convex hulls of the meshes, by Pinocchio and coal."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(file))
    folders = [str(folder) for folder in file.parents]
    geometry = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.COLLISION, package_dirs=folders)
    for each in geometry.geometryObjects:
        if hasattr(each.geometry, "buildConvexHull"):
            each.geometry.buildConvexHull(True, "Qt")
            each.geometry = each.geometry.convex
    matrix, parts = robot.shapes.allowed(), robot.shapes.allowed().parts
    objects = list(geometry.geometryObjects)
    for a in range(len(objects)):
        for b in range(a + 1, len(objects)):
            first, second = (objects[k].name.rsplit("_", 1)[0] for k in (a, b))
            together = objects[a].parentJoint == objects[b].parentJoint
            if not together and first in parts and second in parts and matrix.reason(first, second) is None:
                geometry.addCollisionPair(pin.CollisionPair(a, b))
    data, found = model.createData(), []
    distances = geometry.createData()
    for q in postures:
        full = np.append(q, q[-1]) if model.nq == robot.nq + 1 else q  # the second finger follows the first
        pin.computeDistances(model, data, geometry, distances, full)
        found.append(min(each.min_distance for each in distances.distanceResults))
    return np.array(found)
