"""Terrains: planes as functions, heights of steps and blocks, rest and energy on curved ground, and rejected input."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import Shape, simulate
from torsor.mechanism import Link
from torsor.robot.load import build
from torsor.simulation import Contact, rollout, rough_ground, steps
from torsor.spatial import make_pose

G = 9.81
SHAPES = (
    Shape("sphere", (0.1,)),
    Shape("capsule", (0.05, 0.3)),
    Shape("box", (0.2, 0.3, 0.1)),
    Shape("cylinder", (0.1, 0.2)),
    Shape("ellipsoid", (0.1, 0.2, 0.15)),
)
KINDS: dict[str, dict[str, Any]] = {
    "hard": {"kind": "hard", "stiffness": 1e5},
    "compliant": {"stiffness": 1e5, "exponent": 1.0, "slip": 1e-3},
}
METHODS = {"hard": "rk4", "compliant": "linearly_implicit"}


def body(shape: Shape) -> torsor.Robot:
    link = Link("body", 1.0, np.zeros(3), np.diag([4e-3, 5e-3, 3e-3]), shapes=(shape,))
    return build("body", [link], [], base="floating").to(device="casadi")


def terrain(height: Any) -> ca.Function:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    return ca.Function("height", [x, y], [height(x, y)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.shape)
def test_a_linear_height_is_a_plane(shape: Shape, kind: str) -> None:
    angle = 0.3
    c, s = np.cos(angle), np.sin(angle)
    plane = Shape("plane", pose=make_pose(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), [0, 0, 0.1]))
    robot, rng = body(shape), np.random.default_rng(1)
    q0, v0 = np.append([0.1, 0.2, 0.4], rng.normal(size=4)), rng.normal(size=6)
    runs = [
        rollout(robot, q0, v0, 0.3, contact=Contact(ground, **KINDS[kind]), method=METHODS[kind], step=2e-3)
        for ground in (plane, terrain(lambda x, y: 0.1 - np.tan(angle) * x))
    ]
    assert np.abs(runs[0].v[-1] - v0).max() > 1.0
    np.testing.assert_allclose(runs[1].q, runs[0].q, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_comes_to_rest_at_the_bottom_of_a_bowl(kind: str) -> None:
    """A frictionless ball swings in the bowl, and rests at its bottom at the depth of a spring."""
    robot = body(SHAPES[0])
    contact = Contact(terrain(lambda x, y: x**2 + y**2), friction=0.0, **KINDS[kind])
    rest = rollout(robot, [0.1, 0.05, 0.13, 0, 0, 0, 1], np.zeros(6), 1.0, contact=contact, method=METHODS[kind])
    assert np.abs(rest.q[:, :2]).max() < 0.12  # it stays in the bowl
    level = rollout(robot, [0, 0, 0.1, 0, 0, 0, 1], np.zeros(6), 1.0, contact=contact, method=METHODS[kind])
    np.testing.assert_allclose(level.q[-1, :3], [0, 0, 0.1 - G / 1e5], rtol=0, atol=1e-6)


def test_a_ball_lies_on_each_step_of_stairs() -> None:
    robot = body(SHAPES[0])
    contact = Contact(steps(0.1, 0.3, count=3), **KINDS["compliant"])
    for x, height in ((-0.2, 0.0), (0.15, 0.1), (0.45, 0.2), (0.75, 0.3), (5.0, 0.3)):
        start = [x, 0, height + 0.1, 0, 0, 0, 1]
        rest = simulate(robot, start, None, 0.3, contact=contact, method="linearly_implicit", step=2e-3)
        assert rest.q[-1, 2] == pytest.approx(height + 0.1 - G / 1e5, abs=1e-6)


def test_heights_of_blocks_are_uniform_continuous_and_the_same_in_float32() -> None:
    ground, rng = rough_ground(0.05, seed=3), np.random.default_rng(0)
    cells = rng.integers(-5000, 5000, size=(4000, 2)) * 0.3 + 0.1
    kernel, coarse = (torsor.compile(ground, dtype=dtype) for dtype in ("float64", "float32"))
    z = kernel(cells[:, 0], cells[:, 1])
    assert abs(z.mean() - 0.025) < 1e-3 and abs(z.std() - 0.05 / np.sqrt(12)) < 1e-3
    assert z.min() >= 0 and z.max() <= 0.05 and len(np.unique(z.round(9))) > 300
    near = cells[np.abs(cells).max(axis=1) < 100]
    single = coarse(near[:, 0].astype(np.float32), near[:, 1].astype(np.float32))
    np.testing.assert_allclose(single, kernel(near[:, 0], near[:, 1]), rtol=0, atol=1e-6)
    x = np.linspace(-1, 1, 200_001)
    assert np.abs(np.diff(kernel(x, 0.7 * x))).max() < 1e-5 * 0.05 / 0.04 * 2  # ramps are the steepest parts


def test_gradients_go_through_terrain() -> None:
    robot, v0 = body(SHAPES[0]), np.array([0.3, 0.1, 0.2, 0.5, -0.2, -1.0])
    contact = Contact(terrain(lambda x, y: 0.1 * ca.sin(3 * x) * ca.cos(2 * y)), stiffness=1e4)
    settings: dict[str, Any] = {"contact": contact, "method": "linearly_implicit", "step": 5e-3}

    def end(v: Any) -> float:
        return float(rollout(robot, [0, 0, 0.11, 0, 0, 0, 1], v, 0.05, **settings).q[-1, 0])

    run = rollout(robot, [0, 0, 0.11, 0, 0, 0, 1], v0, 0.05, **settings)
    bars = np.zeros_like(run.q)
    bars[-1, 0] = 1.0
    slopes = [(end(v0 + 1e-6 * e) - end(v0 - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert run.vjp(bars)[1] == pytest.approx(slopes, abs=1e-8)


def test_other_shapes_may_be_called_ground() -> None:
    table = Shape("box", (1.0, 1.0, 0.5), make_pose(p=[0, 0, 0.25]), name="ground")
    links = [Link("base", shapes=(table,)), Link("ball", 1.0, inertia=4e-3 * np.eye(3), shapes=(SHAPES[0],))]
    robot = build("scene", links, [torsor.mechanism.Joint("free", "free", "base", "ball")])
    contact = Contact(terrain(lambda x, y: 0.1 * x), **KINDS["compliant"])
    rest = rollout(robot, [0, 0, 0.6, 0, 0, 0, 1], np.zeros(6), 0.3, contact=contact, method="linearly_implicit")
    assert rest.q[-1, 2] == pytest.approx(0.6 - G / 1e5, abs=1e-6)


def test_wrong_terrains_are_refused() -> None:
    x = ca.SX.sym("x")
    with refused(argument="ground", what="takes [(1, 1)]", allowed="x and y"):
        Contact(ca.Function("line", [x], [x]))
    X, Y = ca.MX.sym("X"), ca.MX.sym("Y")
    table = ca.interpolant("table", "linear", [[0.0, 1.0], [0.0, 1.0]], [0.0, 1.0, 2.0, 3.0])
    with refused(argument="ground", what="cannot be expanded", fix="CasADi operations"):
        Contact(ca.Function("table", [X, Y], [table(ca.vertcat(X, Y))]))
    floor = [Link("base", shapes=(Shape("plane", name="floor"),)), Link("ball", 1.0, shapes=(SHAPES[0],))]
    up = torsor.mechanism.Joint("up", "prismatic", "base", "ball", axis=np.array([0.0, 0, 1]))
    with refused(what="two grounds"):
        simulate(build("scene", floor, [up]), contact=Contact(steps(0.1, 0.3)))
    for call in (lambda: steps(0.1, 0.3, ramp=0.2), lambda: rough_ground(0.05, ramp=0.0)):
        with refused(argument="ramp"):
            call()
