"""Closed forms of distances agree with coal and MuJoCo; their normals and points match the surfaces."""

import itertools

import casadi as ca
import numpy as np
import pytest

from torsor.geometry.closed_forms import CLOSED_FORMS, Closest, closest, nearest_points
from torsor.geometry.contacts import contact_points
from torsor.mechanism import Shape
from torsor.spatial import from_rpy, make_pose

SIZES = {"sphere": (0.2,), "capsule": (0.1, 0.6), "cylinder": (0.2, 0.5), "box": (0.3, 0.5, 0.7)}
SIZES |= {"ellipsoid": (0.2, 0.3, 0.4), "plane": ()}


def random_pose(rng: np.random.Generator, far: float = 0.4) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return np.hstack([Q * np.sign(np.linalg.det(Q)), far * rng.normal(size=(3, 1))])


def function(a: str, b: str) -> ca.Function:
    A, B = ca.SX.sym("A", 3, 4), ca.SX.sym("B", 3, 4)
    return ca.Function("f", [A, B], list(closest(a, A, SIZES[a], b, B, SIZES[b])))


def evaluated(f: ca.Function, A: np.ndarray, B: np.ndarray) -> Closest:
    return Closest(*(np.array(each).squeeze() for each in f(A, B)))


def geometry(kind: str) -> object:
    coal = pytest.importorskip("coal")
    if kind == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    return getattr(coal, kind.capitalize())(*SIZES[kind])


@pytest.mark.parametrize("kinds", CLOSED_FORMS, ids="-".join)
def test_distances_and_normals_are_those_of_coal(kinds: tuple[str, str]) -> None:
    coal = pytest.importorskip("coal")
    rng, f, shapes = np.random.default_rng(1), function(*kinds), [geometry(kind) for kind in kinds]
    call, request = coal.ComputeDistance(*shapes), coal.DistanceRequest()
    for _ in range(60):
        A, B = random_pose(rng), random_pose(rng)
        ours, result = evaluated(f, A, B), coal.DistanceResult()
        theirs = call(coal.Transform3s(A[:, :3], A[:, 3]), coal.Transform3s(B[:, :3], B[:, 3]), request, result)
        if kinds == ("sphere", "cylinder") and ours.distance < -SIZES["sphere"][0]:
            assert theirs <= ours.distance + 1e-12  # of a centre inside, coal does not find the least depth
            continue
        assert abs(ours.distance - theirs) < 1e-12
        assert np.abs(ours.normal - result.normal).max() < 1e-9
        assert np.abs(ours.second - ours.first - ours.distance * ours.normal).max() < 1e-12


def test_distances_are_those_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(2)
    for a, b in (("capsule", "capsule"), ("sphere", "box"), ("sphere", "cylinder")):
        geoms = []
        for kind in (a, b):
            halves = [2, 2, 2] if kind == "box" else [1, 2][: len(SIZES[kind])]
            size = np.array(SIZES[kind]) / halves
            geoms.append(f'<body mocap="true"><geom type="{kind}" size="{" ".join(map(str, size))}"/></body>')
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(geoms)}</worldbody></mujoco>")
        data, f = mujoco.MjData(model), function(a, b)
        for _ in range(20):
            poses = [random_pose(rng), random_pose(rng, 1.0)]
            for k, pose in enumerate(poses):
                data.mocap_pos[k] = pose[:, 3]
                mujoco.mju_mat2Quat(data.mocap_quat[k], pose[:, :3].ravel())
            mujoco.mj_kinematics(model, data)
            ours = evaluated(f, *poses)
            if ours.distance > 1e-3:  # MuJoCo's own iterations end at 1e-6
                assert abs(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None) - ours.distance) < 2e-6


def test_segments_agree_with_a_fine_grid() -> None:
    rng, ends = np.random.default_rng(3), [ca.SX.sym(f"p{k}", 3) for k in range(4)]
    f = ca.Function("f", ends, nearest_points(ends[:2], ends[2:]))
    shares = np.linspace(0, 1, 201)[:, None]
    for _ in range(20):
        p = rng.normal(size=(4, 3))
        x, y = (np.array(each).ravel() for each in f(*p))
        first, second = p[0] + shares * (p[1] - p[0]), p[2] + shares * (p[3] - p[2])
        grid = np.linalg.norm(first[:, None] - second[None], axis=-1).min()
        assert grid - 0.02 < np.linalg.norm(x - y) < grid + 1e-12


def test_meeting_centres_and_crossing_axes_have_a_unit_normal() -> None:
    at = np.eye(4)[:3]
    for a, b in itertools.combinations_with_replacement(("sphere", "capsule"), 2):
        found = evaluated(function(a, b), at, at)
        assert found.distance == -(SIZES[a][0] + SIZES[b][0])
        assert abs(np.linalg.norm(found.normal) - 1) < 1e-12


@pytest.mark.parametrize(("kind", "count"), [("sphere", 1), ("capsule", 2), ("cylinder", 6), ("box", 8)])
def test_points_of_contact_are_on_the_shape_and_one_is_the_lowest(kind: str, count: int) -> None:
    rng, link = np.random.default_rng(4), ca.SX.sym("T", 4, 4)
    ground = Shape("plane", pose=make_pose(p=[0.0, 0.0, 0.3]))
    points = contact_points(ground, ca.SX(np.eye(4)), Shape(kind, SIZES[kind]), link)
    f = ca.Function("f", [link], [ca.vertcat(*(each.distance for each in points))])
    g = function("plane", kind)
    assert len(points) == count
    for _ in range(10):
        B = random_pose(rng)
        heights = np.array(f(np.vstack([B, [0, 0, 0, 1]]))).ravel()
        assert abs(heights.min() - evaluated(g, ground.pose[:3], B).distance) < 1e-12


def test_a_box_touches_another_at_the_corners_of_its_face_or_where_edges_cross() -> None:
    table, box, still = Shape("box", (1.0, 1.0, 0.2)), Shape("box", (0.4, 0.2, 0.2)), ca.SX(np.eye(4))
    points = contact_points(table, still, box, ca.SX(make_pose(p=[0.1, 0.0, 0.19])))
    deep = [np.array(ca.DM(each.second)).ravel() for each in points if float(each.distance) < 0]
    assert len(points) == 12 and sorted(np.round(deep, 9).tolist()) == [
        [x, y, 0.09] for x in (-0.1, 0.3) for y in (-0.1, 0.1)
    ]
    roof = Shape("box", (1.0, 0.2, 0.2), pose=make_pose(from_rpy([np.pi / 4, 0, 0])))  # an edge up, along x
    beam = Shape("box", (0.2, 1.0, 0.2), pose=make_pose(from_rpy([0, np.pi / 4, 0])))  # an edge down, along y
    edge, *others = contact_points(roof, still, beam, ca.SX(make_pose(p=[0.0, 0.0, 0.2 * np.sqrt(2) - 0.01])))
    assert float(edge.distance) == pytest.approx(-0.01) and min(float(each.distance) for each in others) > 0
    np.testing.assert_allclose(np.array(ca.DM(edge.normal)).ravel(), [0, 0, 1], atol=1e-12)


def test_symbolic_gradients_are_those_of_the_witness_points() -> None:
    rng, T = np.random.default_rng(5), ca.SX.sym("T", 3, 4)
    for a, b in CLOSED_FORMS:
        A, B = random_pose(rng, 0.5), random_pose(rng, 1.0)
        found = closest(a, ca.SX(A), SIZES[a], b, T, SIZES[b])
        slope = ca.Function("s", [T], [ca.jacobian(found.distance, T[:, 3])])
        assert np.abs(np.array(slope(B)).ravel() - evaluated(function(a, b), A, B).normal).max() < 1e-12
