"""Contact of boxes with boxes: rest at the depth of the springs, friction, towers, and the separating axes."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from refusals import refused
from torsor import Shape, simulate
from torsor.geometry.contacts import contact_points
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Contact
from torsor.spatial import from_rpy, make_pose

G, K = 9.81, 1e4


def free_box(name: str, size: tuple[float, ...]) -> Link:
    squares = np.square(size)
    return Link(name, 1.0, np.zeros(3), np.diag(squares.sum() - squares) / 12, shapes=(Shape("box", size),))


def tower(*boxes: tuple[float, ...], base: Shape) -> Any:
    """Free boxes of 1 kg above a shape that is fixed; few steps do not pay for a compilation."""
    links = [Link("base", shapes=(base,)), *(free_box(f"box{k}", size) for k, size in enumerate(boxes))]
    robot = build("tower", links, [Joint(f"free{k}", "free", "base", f"box{k}") for k in range(len(boxes))])
    return robot.to(device="casadi")


def at(robot: Any, *places: Any) -> Any:
    q = robot.neutral()
    for k, place in enumerate(places):
        q[7 * k : 7 * k + 3] = place
    return q


@pytest.mark.parametrize("size", [(0.4, 0.4, 0.2), (0.2, 1.0, 0.2)], ids=["inside", "across"])
def test_a_box_rests_on_a_box_at_the_depth_of_four_springs(size: tuple[float, ...]) -> None:
    robot = tower(size, base=Shape("box", (1.0, 0.4, 0.2)))
    contact = Contact(False, kind="hard", stiffness=K)
    rest = simulate(robot, at(robot, [0.1, 0.0, 0.201]), None, 0.5, contact=contact, step=2e-3)
    assert rest.q[-1, 2] == pytest.approx(0.2 - G / (4 * K), abs=1e-8)
    assert rest.external[-1, -1, 5] == pytest.approx(G, rel=1e-6)
    assert np.abs(rest.v[-1]).max() < 1e-7


def test_a_box_slides_on_a_tilted_box_with_g_sin_minus_mu_cos() -> None:
    angle, mu = 0.3, 0.1
    R = from_rpy([0.0, angle, 0.0])
    robot = tower((0.2, 0.2, 0.1), base=Shape("box", (4.0, 1.0, 0.2), make_pose(R)))
    q0 = at(robot, R @ [0, 0, 0.15 - G * np.cos(angle) / (4 * K)])
    q0[3:7] = [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    contact = Contact(False, kind="hard", stiffness=K, friction=mu)
    slide = simulate(robot, q0, None, 0.4, contact=contact, step=2e-3)
    assert (slide.v[-1, 3] - slide.v[100, 3]) / 0.2 == pytest.approx(G * (np.sin(angle) - mu * np.cos(angle)), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hard", "compliant"])
def test_a_tower_of_two_boxes_rests_with_both_weights_below(kind: str) -> None:
    robot = tower((0.4, 0.3, 0.2), (0.2, 0.3, 0.2), base=Shape("box", (1.0, 1.0, 0.2)))
    own: dict[str, Any] = {} if kind == "hard" else {"exponent": 1.0, "dissipation": 2.0, "slip": 0.1}
    contact = Contact(False, "box0", [("box0", "box1")], kind=kind, stiffness=K, **own)
    start = at(robot, [0, 0, 0.2], [0, 0, 0.4])
    rest = simulate(robot, start, None, 1.0, contact=contact, step=2e-3 if kind == "hard" else 2e-4, record=0.1)
    assert rest.q[-1, [2, 9]] == pytest.approx([0.2 - 2 * G / (4 * K), 0.4 - 3 * G / (4 * K)], abs=1e-6)
    assert rest.external[-1, -2:, 5] == pytest.approx([G, G], rel=1e-3)


def test_depth_and_touch_of_random_boxes_are_those_of_the_separating_axes() -> None:
    a, b = np.array([1.0, 0.6, 0.4]), np.array([0.5, 0.8, 0.3])
    A, B = ca.SX.sym("A", 4, 4), ca.SX.sym("B", 4, 4)
    points = contact_points(Shape("box", tuple(a)), A, Shape("box", tuple(b)), B)
    function = ca.Function("points", [A, B], [ca.horzcat(*(ca.vertcat(*each) for each in points))])
    rng, touched = np.random.default_rng(0), 0
    for _ in range(300):
        P, Q = (make_pose(from_rpy(rng.uniform(-3, 3, 3)), s * rng.normal(size=3)) for s in (0.1, 0.4))
        axes = [*P[:3, :3].T, *Q[:3, :3].T, *(np.cross(x, y) for x in P[:3, :3].T for y in Q[:3, :3].T)]
        gap = -np.inf
        for axis in axes:
            n = axis / np.linalg.norm(axis)
            reach = sum(np.abs(T[:3, :3].T @ n) @ size / 2 for T, size in ((P, a), (Q, b)))
            gap = max(gap, abs(n @ (Q - P)[:3, 3]) - reach)
        found = function(P, Q).full()
        if gap > 1e-4:
            assert found[0].min() > 0
        elif gap < -1e-4:
            touched += 1
            assert found[0].min() == pytest.approx(gap, abs=2e-5)
            on = found[:, found[0] < 0]
            assert np.abs(on[7:] - on[4:7] - on[0] * on[1:4]).max() < 1e-9  # second = first + distance * normal
    assert touched > 100


def test_pairs_without_points_of_contact_say_so() -> None:
    robot = tower((0.4, 0.4, 0.2), base=Shape("cylinder", (0.5, 0.2)))
    with refused(what="(cylinder) and 'box0/0' (box)"):
        simulate(robot, at(robot, [0, 0, 0.3]), contact=Contact(False, kind="hard"))


def test_points_of_nearly_parallel_boxes_are_not_far_away() -> None:
    """Distances of points that do not touch are at most those of other faces, so that they do not disturb the rest."""
    first, second, yaw = ca.SX(np.eye(4)), ca.SX.eye(4), ca.SX.sym("yaw")
    box = Shape("box", (0.2, 0.2, 0.2))
    second[:2, :2], second[:3, 3] = ca.vertcat(ca.horzcat(1, -yaw), ca.horzcat(yaw, 1)), ca.DM([0.02, 0.0, 0.2])
    distances = [point.distance for point in contact_points(box, first, box, second)]
    found = ca.Function("distances", [yaw], [ca.vertcat(*distances)]).map(81)(np.geomspace(1e-11, 1e-3, 81)).full()
    assert np.abs(found).max() < 1.0
    assert np.allclose(np.sort(found, axis=0)[:4], 0, rtol=0, atol=1e-6)
