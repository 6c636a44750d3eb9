"""Distances between the shapes of robots: gradients against differences, Pinocchio, batches, pairs and bad input."""

from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import nnls

import torsor
from refusals import refused, warned
from robots import robot_file
from torsor import Shape
from torsor.geometry import (
    DistanceModel,
    distance_model,
    enclosing_capsule,
    overlapping,
    placed_shapes,
    refuse_overlap,
)
from torsor.geometry.convex import hull_of_points
from torsor.library.trees import random_tree
from torsor.spatial import make_pose

BALL, ROD = Shape("sphere", (0.05,)), Shape("capsule", (0.03, 0.2))


def everywhere(robot: torsor.Robot, *shapes: Shape) -> torsor.Robot:
    for name in (robot.base.name, *robot.link_names):
        robot = robot.with_shapes(name, shapes)
    return robot


def all_pairs(robot: torsor.Robot) -> DistanceModel:
    shapes = placed_shapes(robot)
    pairs = [(i, j) for i in range(len(shapes)) for j in range(i) if shapes[i].link != shapes[j].link]
    return DistanceModel(robot, shapes, pairs)


def differences(robot: torsor.Robot, model: DistanceModel, q: np.ndarray, h: float = 1e-6) -> np.ndarray:
    steps = h * np.eye(robot.nv)
    ends = [model(robot.integrate(q, side * steps)).distance for side in (1, -1)]
    return ((ends[0] - ends[1]) / (2 * h)).T


@pytest.mark.parametrize("seed", range(3))
def test_gradients_agree_with_differences_on_random_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = everywhere(random_tree(6, seed), BALL, ROD).to(device="casadi")
    model = all_pairs(robot)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    found = model(q, gradient=True)
    apart = np.abs(found.distance) > 1e-3
    assert found.gradient is not None
    assert np.abs(found.gradient - differences(robot, model, q))[apart].max() < 1e-7


def test_gradients_follow_mimic_joints() -> None:
    links = [torsor.Link("base"), torsor.Link("a", 1.0), torsor.Link("b", 1.0)]
    turn = {"axis": (0.0, 1.0, 0.0)}
    joints = [
        torsor.Joint("j1", "revolute", "base", "a", make_pose(p=[0.1, 0.0, 0.0]), **turn),
        torsor.Joint("j2", "revolute", "a", "b", make_pose(p=[0.5, 0.0, 0.2]), coordinate="j1", ratio=-2.0, **turn),
    ]
    robot = everywhere(torsor.build("gear", links, joints), Shape("sphere", (0.05,), make_pose(p=[0.2, 0.0, 0.1])))
    model, q = all_pairs(robot.to(device="casadi")), np.array([0.4])
    gradient = model(q, gradient=True).gradient
    assert gradient is not None
    assert np.abs(gradient - differences(robot, model, q)).max() < 1e-8


def test_distances_of_a_quadruped_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    file = robot_file("a1.urdf")
    robot = torsor.load(file).to(device="casadi")
    model = pin.buildModelFromUrdf(str(file))
    geometry = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.COLLISION)
    names = {f"{each.part}_{each.name.rsplit('/', 1)[1]}": each for each in placed_shapes(robot)}
    objects = list(geometry.geometryObjects)
    assert {each.name for each in objects} == set(names)
    pairs = [(a, b) for a in range(len(objects)) for b in range(a) if (a + b) % 5 == 0]
    pairs = [(a, b) for a, b in pairs if names[objects[a].name].link != names[objects[b].name].link]
    for a, b in pairs:
        geometry.addCollisionPair(pin.CollisionPair(a, b))
    data, found = geometry.createData(), np.random.default_rng(0).normal(size=(3, robot.nq))
    ours = robot.shapes.distances(found, [(names[objects[a].name].name, names[objects[b].name].name) for a, b in pairs])
    order = [robot.position_names.index(name) for name in model.names[1:]]
    for k, q in enumerate(found):
        pin.computeDistances(model, model.createData(), geometry, data, q[order])
        theirs = np.array([each.min_distance for each in data.distanceResults])
        assert np.abs(ours.distance[k] - theirs).max() < 2e-6  # where Pinocchio's GJK ends


def test_gradients_of_meshes_agree_with_differences() -> None:
    with warned(what="not read"):
        robot = torsor.load(robot_file("panda.urdf")).to(device="casadi")
    pairs = [("panda_link1", "panda_link5"), ("panda_hand", "panda_link2"), ("panda_leftfinger", "panda_link0")]
    q = np.array([0.3, -0.6, 0.2, -1.9, 0.4, 1.7, 0.3, 0.02])[: robot.nq]
    gradient = robot.shapes.distances(q, pairs, gradient=True).gradient
    assert gradient is not None
    assert np.abs(gradient - differences(robot, distance_model(robot, pairs), q)).max() < 1e-7


def test_batches_give_what_single_postures_give() -> None:
    robot = everywhere(torsor.library.ur5(), ROD, Shape("box", (0.05, 0.06, 0.07))).to(device="casadi")
    q = np.random.default_rng(0).normal(size=(2, 3, 6))
    pairs = [("upper_arm_link", "wrist_3_link"), ("base_link", "wrist_2_link")]
    found = robot.shapes.distances(q, pairs, gradient=True)
    assert found.gradient is not None
    assert found.distance.shape == (2, 3, 8)
    one = robot.shapes.distances(q[1, 2], pairs, gradient=True)
    assert np.array_equal(one.distance, found.distance[1, 2])
    assert np.abs(found.gradient[1, 2] - one.gradient).max() < 1e-12
    assert robot.shapes.distances(np.zeros((0, 6)), pairs, gradient=True).gradient.shape == (0, 8, 6)  # type: ignore[union-attr]
    assert robot.shapes.distances(q.astype(np.float32), pairs).distance.dtype == np.float64


def test_a_robot_without_pairs_has_no_distances() -> None:
    robot = everywhere(torsor.library.planar_chain(1), BALL)
    found = robot.shapes.distances(np.zeros((4, 1)), gradient=True)
    assert (found.distance.shape, found.points.shape, found.overlapping()) == ((4, 0), (4, 0, 2, 3), [])
    assert robot.shapes.distances(np.zeros(1), []).pairs == ()


def test_far_pairs_get_lower_bounds_within_a_distance() -> None:
    robot = everywhere(torsor.library.ur5(), Shape("box", (0.1, 0.1, 0.1))).to(device="casadi")
    pairs = [("base_link", name) for name in robot.link_names[2:]]
    exact, bounded = robot.shapes.distances(np.ones(6), pairs), robot.shapes.distances(np.ones(6), pairs, within=0.3)
    near = bounded.distance <= 0.3
    assert (bounded.distance <= exact.distance + 1e-12).all()
    assert (bounded.distance == exact.distance)[near].all()
    assert (exact.distance[~near] > 0.3).all()
    assert (~near).any()


def test_an_enclosing_capsule_contains_its_shape() -> None:
    rng = np.random.default_rng(0)
    for shape in (Shape("box", (0.3, 0.5, 0.7)), Shape("ellipsoid", (0.2, 0.5, 0.3)), Shape("cylinder", (0.2, 0.6))):
        shape = torsor.Shape(shape.shape, shape.size, make_pose(p=rng.normal(size=3)))
        capsule = enclosing_capsule(shape)
        half = np.array({"cylinder": (0.2, 0.2, 0.3), "box": (0.15, 0.25, 0.35)}.get(shape.shape, shape.size))
        points = rng.normal(size=(400, 3))
        points *= half / np.linalg.norm(points, axis=1, keepdims=True)  # of the ellipsoid inside
        points = np.vstack([points, half * np.sign(rng.normal(size=(99, 3)))]) if shape.shape == "box" else points
        local = (points + shape.pose[:3, 3] - capsule.pose[:3, 3]) @ capsule.pose[:3, :3]
        beyond = np.maximum(np.abs(local[:, 2]) - capsule.size[1] / 2, 0)
        assert np.hypot(np.linalg.norm(local[:, :2], axis=1), beyond).max() <= capsule.size[0] + 1e-12


def test_shapes_do_not_change_what_is_compiled() -> None:
    from torsor.dynamics import fingerprint

    plain = torsor.library.ur5()
    assert fingerprint(everywhere(plain, BALL)) == fingerprint(plain)


def test_overlapping_shapes_are_named() -> None:
    robot = everywhere(torsor.library.planar_chain(3), Shape("sphere", (0.6,))).to(device="casadi")
    (first, second, depth), *_ = overlapping(robot, np.zeros(3), [("base", "link2")])
    assert (first, second, round(depth, 9)) == ("base/0", "link2/0", 0.2)
    with refused(fix="start apart"):
        refuse_overlap(robot, np.zeros(3), [("base", "link2")])


def test_bad_input_is_named() -> None:
    robot = torsor.library.planar_chain(3).with_shapes("link1", [BALL]).with_shapes("link3", [BALL, ROD])
    robot = robot.to(device="casadi")
    wrong = {
        "hand": [("link1", "hand")],
        "link2": [("link1", "link2")],
        "move together": [("link3/0", "link3/1")],
        "pairs": ["link1", "link3"],
    }
    for found, pairs in wrong.items():
        with refused(found):
            robot.shapes.distances(np.zeros(3), pairs)  # type: ignore[arg-type]
    for q, found in ((np.full(3, np.nan), "q"), (np.zeros(4), "q")):
        with refused(found):
            robot.shapes.distances(q, [("link1", "link3")])
    with refused(what="no link has a collision shape"):
        torsor.library.planar_chain(2).shapes.distances(np.zeros(2))
    with refused(what="both planes"):
        planes = robot.with_shapes("link1", [Shape("plane")]).with_shapes("link3", [Shape("plane")])
        planes.shapes.distances(np.zeros(3), [("link1", "link3")])
    with refused(argument="size", allowed="a positive radius"):
        Shape("sphere", (-1.0,))
    with refused(argument="size", allowed="a scale without 0"):
        Shape("mesh", (1.0, 0.0, 1.0))
    with refused(argument="size of a box"):
        Shape("box", (1.0, np.nan, 1.0))


def test_unusable_meshes_are_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    flat = tmp_path / "flat.obj"
    flat.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n")
    empty = tmp_path / "empty.obj"
    empty.write_text("v 0 0 0\n")
    cases = {"its convex hull is flat": flat, "0 triangles": empty, "not found": None}
    for found, path in cases.items():
        mesh = Shape("mesh", (1, 1, 1), name="hull", mesh="hull.obj", path=None if path is None else str(path))
        robot = torsor.library.planar_chain(2).with_shapes("base", [mesh]).with_shapes("link2", [BALL])
        with refused(found) as error:
            robot.shapes.distances(np.zeros(2), [("base", "link2")])
        assert "'hull'" in str(error.value)


def test_a_negative_scale_mirrors_a_mesh(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "corner.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    found = []
    for sign in (1.0, -1.0):
        mesh = Shape("mesh", (sign, 1.0, 1.0), mesh="corner.obj", path=str(path))
        ball = Shape("sphere", (0.1,), make_pose(p=[sign * 3.0 - 1.0, 0.0, 0.0]))
        robot = torsor.library.planar_chain(2).with_shapes("base", [mesh]).with_shapes("link2", [ball])
        found.append(robot.to(device="casadi").shapes.distances(np.zeros(2), [("base", "link2")]).distance.item())
    assert np.abs(np.array(found) - 1.9).max() < 1e-9


def test_loading_reads_no_mesh() -> None:
    with patch("torsor.formats.meshes.mesh_files._read", side_effect=AssertionError):
        robot = torsor.load(robot_file("ur5_robot.urdf"))
    shapes = placed_shapes(robot)
    assert {each.shape.shape for each in shapes} == {"mesh", "box"}
    assert {each.part for each in shapes} >= {"base_link", "forearm_link", "wrist_3_link", "ee_link"}


@pytest.mark.parametrize("kind", ["sphere", "box", "ellipsoid", "plate", "random"])
def test_the_error_of_a_reduced_hull_is_the_largest_gap_of_all_its_supporting_planes(kind: str) -> None:
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    corners = np.array(np.meshgrid([-0.1, 0.1], [-0.2, 0.2], [-0.3, 0.3])).reshape(3, -1).T
    on_faces = [rng.uniform(-1, 1, (100, 3)) * np.where(np.arange(3) == k, 0, 1) + np.eye(3)[k] for k in range(3)]
    points = {
        "sphere": 0.1 * directions[:400],
        "box": np.vstack([corners, *(face * corners.max(axis=0) for face in on_faces)]),
        "ellipsoid": directions[:500] * [0.3, 0.1, 0.02] + 1.0,
        "plate": np.array([[0.1 * np.cos(k), 0.1 * np.sin(k), 5e-7 * (-1) ** (k // 3)] for k in range(200)]),
        "random": rng.normal(size=(5000, 3)),
    }[kind]
    hull = hull_of_points(points, kind)
    kept, error = hull.reduced.vertices, hull.reduced.error
    vertices = set(map(tuple, hull.vertices.tolist()))
    assert set(map(tuple, kept.tolist())) <= vertices
    gap = ((directions @ hull.vertices.T).max(axis=1) - (directions @ kept.T).max(axis=1)).max()
    assert 0 <= gap <= error + 1e-15
    again = hull_of_points(points.copy(), kind).reduced
    assert (again.vertices == kept).all() and again.error == error
    if kind == "box":
        assert len(kept) == 8 and error < 1e-15
    else:
        weights, unit = np.vstack([kept.T, np.full(32, 1e3)]), 1e3  # convex combinations of the kept vertices
        assert len(kept) == 32
        np.testing.assert_allclose(max(nnls(weights, [*x, unit])[1] for x in hull.vertices), error, rtol=1e-5)
