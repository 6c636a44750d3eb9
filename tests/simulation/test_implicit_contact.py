"""Compliant contact in linearly implicit steps: its recursion, closed forms, the limit of small steps, and any step."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from torsor import Shape, simulate
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.dynamics import Tree, lean
from torsor.dynamics.recursions.hybrid import forward_dynamics
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Contact, rollout
from torsor.simulation.free_motion import _dynamics
from torsor.spatial import make_pose

G = 9.81
BALL = Shape("sphere", (0.1,))
STEP: dict[str, Any] = {"method": "linearly_implicit", "step": 2e-3}


def body(shape: Shape = BALL, inertia: float = 4e-3, gravity: float = G) -> torsor.Robot:
    link = Link("body", 1.0, np.zeros(3), inertia * np.eye(3), shapes=(shape,))
    return build("body", [link], [], base="floating", gravity=(0, 0, -gravity))


def at(robot: torsor.Robot, height: float) -> Any:
    q = robot.neutral()
    q[2] = height
    return q


def slope(angle: float) -> Shape:
    c, s = np.cos(angle), np.sin(angle)
    return Shape("plane", pose=make_pose(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])))  # descends along x


def on_slope(robot: torsor.Robot, angle: float, height: float) -> Any:
    q = robot.neutral()
    q[:3] = slope(angle).pose[:3, :3] @ [0, 0, height]
    q[3:7] = [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    return q


def test_impedances_on_links_add_their_projections_to_the_mass_matrix() -> None:
    """M + J^T Z J with every joint type, from the mass matrix and Jacobians of the robot."""
    for seed in range(6):
        robot = torsor.library.random_tree(6, seed).to(device="casadi")
        tree, rng, links = lean(Tree.of(robot)), np.random.default_rng(seed), (1, len(robot.links) - 1)
        q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
        v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        roots = [rng.normal(size=(6, 3)) for _ in links]
        on_links = {link: ca.SX(ca.DM(root @ root.T)) for link, root in zip(links, roots, strict=True)}
        a = forward_dynamics(tree, ca.SX(q), ca.SX(v), ca.SX(tau), None, None, on_links)
        M = robot.mass_matrix(q)
        for link, root in zip(links, roots, strict=True):
            J = robot.jacobian(q, robot.links[link].name)
            M = M + J.T @ root @ root.T @ J
        expected = np.linalg.solve(M, tau - robot.bias_force(q, v))
        np.testing.assert_allclose(ca.DM(a).full().ravel(), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_impedances_between_links_add_their_projections_to_the_mass_matrix() -> None:
    """M + J^T Z J for the relative twist of two links, in the axes of the second one, by dense linear algebra."""
    for seed in range(4):
        robot = torsor.library.random_tree(7, seed).to(device="casadi")
        rng, count = np.random.default_rng(seed), len(robot.links)
        bodies = [(1,), (1, count - 1), (count - 2, 2)]
        q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
        v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        roots = rng.normal(size=(len(bodies), 6, 3))
        inputs = [ca.SX.sym(*each) for each in (("t",), ("q", robot.nq), ("v", robot.nv))]
        acting = ca.Function("acting", inputs, [ca.SX(robot.nv, 1)], ["t", "q", "v"], ["acting_tau"])
        dynamics, _ = _dynamics(lean(Tree.of(robot)), [], acting, {}, bodies, None)
        a = dynamics(q, v, tau, np.zeros((count, 6)), *(root @ root.T for root in roots)).full().ravel()
        M = robot.mass_matrix(q)
        for (*others, link), root in zip(bodies, roots, strict=True):
            J, pose = robot.jacobian(q, robot.links[link].name), robot.pose(q, robot.links[link].name)
            for other in others:
                seen = np.linalg.inv(pose) @ robot.pose(q, robot.links[other].name)
                by_first = robot.jacobian(q, robot.links[other].name)
                omega, linear = seen[:3, :3] @ by_first[:3], seen[:3, :3] @ by_first[3:]
                lever = -seen[:3, 3]  # from the first origin to the second one
                J = J - np.vstack([omega, linear + np.cross(omega, lever, axisa=0, axisb=0, axisc=0)])
            M = M + J.T @ root @ root.T @ J
        expected = np.linalg.solve(M, tau - robot.bias_force(q, v))
        np.testing.assert_allclose(a, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("exponent", [1.0, 1.5])
@pytest.mark.parametrize("stiffness", [1e4, 1e7, 1e10])
def test_a_body_rests_at_the_depth_of_its_weight_for_any_stiffness(stiffness: float, exponent: float) -> None:
    robot, contact = body(), Contact(stiffness=stiffness, exponent=exponent, dissipation=5.0)
    rest = simulate(robot, at(robot, 0.15), None, 2.0, contact=contact, **STEP)
    assert rest.q[-1, 2] == pytest.approx(0.1 - (G / stiffness) ** (1 / exponent), abs=1e-8)
    assert rest.external[-1, 0, 5] == pytest.approx(G, rel=1e-4)


def test_other_numbers_of_contact_need_no_other_code() -> None:
    robot, kernels = body(inertia=1e9), []
    for mu, k, slip in ((0.2, 1e6, 1e-3), (0.4, 1e6, 1e-3), (0.4, 1e4, 1e-2)):
        contact = Contact(friction=mu, stiffness=k, slip=slip, exponent=1.0)
        start, v0 = at(robot, 0.1 - G / k), [0, 0, 0, 2.0, 0, 0]
        end = rollout(robot, start, v0, 0.2, contact=contact, **STEP)
        assert end.v[-1, 3] == pytest.approx(2.0 - mu * G * 0.2, rel=1e-4)  # it slides with mu g
        kernels.append(len(robot.kernels._kernels))
    assert kernels[0] == kernels[1] == kernels[2]


@pytest.mark.parametrize("shape", [BALL, Shape("box", (0.4, 0.4, 0.1))], ids=["ball", "box"])
def test_a_block_slides_with_g_sin_minus_mu_cos_and_creeps_within_the_bound(shape: Shape) -> None:
    angle, slip = 0.4, 1e-3
    robot = body(shape, 1e9 if shape is BALL else 0.02)
    q0 = on_slope(robot, angle, 0.1 if shape is BALL else 0.05)
    for mu in (0.2, 0.8):
        contact = Contact(slope(angle), stiffness=1e6, exponent=1.0, friction=mu, slip=slip)
        run = simulate(robot, q0, None, 0.5, contact=contact, **STEP)
        r = np.tan(angle) / mu
        if mu < np.tan(angle):
            rate = (run.v[-1, 3] - run.v[-51, 3]) / 0.1
            assert rate == pytest.approx(G * (np.sin(angle) - mu * np.cos(angle)), rel=1e-3)
        else:
            assert run.v[-1, 3] == pytest.approx(slip * r / np.sqrt(1 - r**2), rel=1e-3)


def test_a_sliding_ball_keeps_5_of_7_of_its_speed_also_far_away_in_float32() -> None:
    for dtype, x, tolerance in (("float64", 0.0, 1e-3), ("float32", 1e3, 1e-2)):
        robot = body().to(dtype=dtype)
        q0 = at(robot, 0.1 - G / 1e6)
        q0[0] = x
        contact = Contact(friction=0.3, stiffness=1e6, exponent=1.0, slip=1e-3)
        roll = rollout(robot, q0, [0, 0, 0, 0.7, 0, 0], 0.3, contact=contact, **STEP)
        velocity = robot.velocity(roll.q[-1], roll.v[-1], "body", axes="aligned")
        assert velocity[3] == pytest.approx(0.5, rel=tolerance)
        assert velocity[1] * 0.1 == pytest.approx(velocity[3], rel=tolerance)


@pytest.mark.parametrize("stiffness", [1e5, 1e9])
def test_friction_of_an_impact_is_mu_times_its_normal_impulse_or_slightly_less(stiffness: float) -> None:
    robot, mu = body(inertia=1e9, gravity=0.0), 0.3
    contact = Contact(friction=mu, stiffness=stiffness, exponent=1.0, slip=1e-4)
    v0, shares = np.array([0, 0, 0, 3.0, 0, -1.0]), []
    for step in (2e-3, 2.5e-4):
        end = simulate(robot, at(robot, 0.101), v0, 0.05, contact=contact, method="linearly_implicit", step=step)
        normal, tangential = end.v[-1, 5] - v0[5], v0[3] - end.v[-1, 3]
        assert normal > 1.0
        shares.append(tangential / normal / mu)
    assert all(0.85 < share <= 1.0 for share in shares)


def test_small_steps_approach_hunt_and_crossley() -> None:
    """The error of a step is of order 1: a bouncing, sliding and spinning box on its eight corners."""
    robot = body(Shape("box", (0.2, 0.3, 0.1)), 5e-3)
    contact = Contact(stiffness=2e3, exponent=1.5, friction=0.5, slip=0.1)
    q0, v0 = at(robot, 0.2), np.array([0.5, 1.0, 0.2, 1.0, 0.3, 0.0])
    truth = simulate(robot, q0, v0, 0.4, contact=contact, step=2e-5, record=0.4).q[-1]
    errors = []
    for step in (2e-4, 1e-4, 5e-5):
        end = rollout(robot, q0, v0, 0.4, contact=contact, method="linearly_implicit", step=step, record=10**6)
        errors.append(np.abs(end.q[-1] - truth).max())
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.2) and errors[1] / errors[2] == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("stiffness", [1e4, 1e8])
def test_energy_never_grows_and_a_batch_is_its_rollouts(stiffness: float) -> None:
    robot, rng = body(), np.random.default_rng(0)
    contact = Contact(stiffness=stiffness, exponent=1.0, friction=0.5)
    v0 = 2 * rng.normal(size=(5, 6))
    fall = simulate(robot, at(robot, 0.3), v0, 1.0, contact=contact, **STEP)
    total = fall.energy + 0.5 * stiffness * np.maximum(0.1 - fall.q[..., 2], 0) ** 2
    assert (np.diff(total, axis=-1) < 1e-12 * total[:, :1]).all()
    alone = simulate(robot, at(robot, 0.3), v0[3], 1.0, contact=contact, **STEP)
    assert (alone.q == fall.q[3]).all()


def test_deep_shapes_are_pushed_out() -> None:
    """The elastic force alone would push the ball faster than 1 / dissipation after one step, where damping ends."""
    robot, contact = body(), Contact(stiffness=4e5, dissipation=5.0)
    out = rollout(robot, at(robot, 0.092), np.zeros(6), 0.1, contact=contact, **STEP)
    assert out.q[:, 2].max() > 0.099
    assert 0.05 < out.v[:, 5].max() < 0.3  # 1 / dissipation is 0.2


def test_free_flight_is_of_order_2() -> None:
    links = [Link(name, 1.0, [x, 0, 0], 8e-3 * np.eye(3), shapes=(BALL,)) for name, x in (("a", -0.2), ("b", 0.2))]
    hinge = Joint("hinge", "revolute", "a", "b", axis=np.array([0.0, 1.0, 0.0]))
    robot, v0 = build("hinged", links, [hinge], base="floating"), 3 * np.random.default_rng(2).normal(size=7)
    truth = simulate(robot, at(robot, 5.0), v0, 0.2, step=1e-3).q[-1]
    errors = [
        np.abs(
            simulate(robot, at(robot, 5.0), v0, 0.2, contact=Contact(), method="linearly_implicit", step=h).q[-1]
            - truth
        ).max()
        for h in (1e-2, 5e-3, 2.5e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_stiff_drives_hold_a_robot_on_stiff_ground() -> None:
    robot = torsor.library.quadruped()
    home = robot.postures["home"]
    drives = torsor.control.drives(robot, home, kp=1e5, kd=100.0)
    rest = simulate(robot, home, None, 1.0, controller=drives, contact=Contact(stiffness=1e9), **STEP)
    up = robot.poses(rest.q[-1])[:, 2, :3] * rest.external[-1, :, 3:]
    assert up.sum() == pytest.approx(robot.mass * G, rel=1e-4)
    assert np.abs(rest.v[-1]).max() < 1e-3


def test_linkages_on_the_ground_move_as_with_hard_contact() -> None:
    robot = torsor.library.four_bar(gravity=(0, -G, 0))
    robot = robot.with_shapes("coupler", [Shape("sphere", (0.05,), make_pose(p=[0.45, -0.2, 0]))])
    q0 = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    pose = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0.2], [0, -1, 0, 0], [0, 0, 0, 1]])  # the linkage falls along -y
    ground = Shape("plane", pose=pose)
    hard = simulate(robot, q0, duration=0.6, contact=Contact(ground, kind="hard", friction=0.5), step=2e-3)
    soft = Contact(ground, stiffness=1e8, exponent=1.0, dissipation=100.0, friction=0.5, slip=1e-3)
    run = simulate(robot, q0, None, 0.6, contact=soft, **STEP)
    assert np.abs(run.external).max() > 50.0
    assert np.abs(run.q - hard.q).max() < 2e-3 * np.ptp(hard.q)
    assert np.abs(robot.closed.error(run.q)).max() < 1e-6


@pytest.mark.parametrize("points", [None, 3, 4, 8])
def test_a_plate_on_many_balls_rests_on_few_of_them_with_its_weight(points: int | None) -> None:
    row, weight = np.linspace(-0.2, 0.2, 6), [0, 0, G]
    balls = tuple(Shape("sphere", (0.02,), make_pose(p=[x, y, -0.05])) for x in row for y in row)
    link = Link("plate", 1.0, np.zeros(3), 0.02 * np.eye(3), shapes=balls)
    robot, contact = build("plate", [link], [], base="floating"), Contact(stiffness=1e5, points=points)
    q0 = np.append([0, 0, 0.25], np.array([0.2, 0.1, 0, 1]) / np.sqrt(1.05))
    rest = simulate(robot, q0, None, 1.5, contact=contact, **STEP)
    if points == 3:  # too few for the four corners: it rocks
        assert np.abs(rest.v[-1]).max() < 0.1
        return
    assert np.abs(rest.v[-1]).max() < 1e-4
    force = robot.poses(rest.q[-1])[0, :3, :3] @ rest.external[-1, 0, 3:]
    np.testing.assert_allclose(force, weight, rtol=0, atol=1e-2)


def test_chosen_points_push_shapes_apart_in_either_order_of_a_pair() -> None:
    left, right = (
        Shape("box", (0.4, 0.2, 0.1), make_pose(p=[x, 0, 0]), name=n) for x, n in ((-0.3, "left"), (0.3, "right"))
    )
    body = Link("body", 1.0, np.zeros(3), 0.05 * np.eye(3), shapes=(left, right))
    table = Link("base", shapes=(Shape("box", (4.0, 4.0, 1.0), make_pose(p=[0, 0, -0.5]), name="table"),))
    robot = build("pair", [table, body], [Joint("free", "free", "base", "body")])
    given: dict[str, Any] = {"shapes": ["left"], "pairs": [("right", "table")], "stiffness": 1e5, "exponent": 1.0}
    ends = [
        rollout(robot, at(robot, 0.06), np.zeros(6), 0.5, contact=Contact(False, points=most, **given), **STEP).q[-1]
        for most in (4, None)
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-6)


# Contact of two moving links.

SMALL, CUBE = Shape("sphere", (0.05,)), Shape("box", (0.1, 0.1, 0.1))


def bodies(shape: Shape, count: int = 2, gravity: float = G) -> torsor.Robot:
    """Return free bodies of 1 kg; two of them touch if they are 0.1 m apart along an axis."""
    links = [Link(f"body{k}", 1.0, np.zeros(3), 4e-3 * np.eye(3), shapes=(shape,)) for k in range(count)]
    joints = [Joint(each.name, "free", "base", each.name) for each in links]
    return build("bodies", [Link("base"), *links], joints, gravity=(0, 0, -gravity))


def stacked(robot: torsor.Robot) -> Any:
    """Return a stack of bodies with gaps of 2 mm."""
    q = robot.neutral()
    q[2::7] = 0.05 + 0.102 * np.arange(len(q) // 7)
    return q


@pytest.mark.parametrize("stiffness", [1e6, 1e9])
@pytest.mark.parametrize(("shape", "count", "points"), [(SMALL, 3, None), (CUBE, 2, None), (CUBE, 2, 4)])
def test_stacked_bodies_rest_at_the_depths_of_their_weights(
    stiffness: float, shape: Shape, count: int, points: int | None
) -> None:
    robot, each = bodies(shape, count).to(device="casadi"), 4 if shape is CUBE else 1
    contact = Contact(pairs="all", points=points, stiffness=stiffness, exponent=1.0)
    rest = simulate(robot, stacked(robot), None, 0.5, contact=contact, **STEP)
    depths = np.cumsum(np.arange(count, 0, -1) * G / each / stiffness)
    heights = 0.05 + 0.1 * np.arange(count) - depths
    np.testing.assert_allclose(rest.q[-1, 2::7], heights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest.external[-1, :, 5], G, rtol=1e-6)
    assert np.abs(rest.v[-1]).max() < 1e-9


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_colliding_bodies_keep_their_momentum_and_gain_no_energy(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    robot, rng, k = bodies(SMALL, gravity=0.0), np.random.default_rng(0), 1e6
    q0, v0 = robot.neutral(), rng.normal(size=(3, 12))
    q0[7:9], v0[:, 3], v0[:, 9] = (0.13, 0.02), 3.0, -1.0
    contact = Contact(False, pairs="all", stiffness=k, exponent=1.0, friction=0.5)
    run = rollout(robot.to(device=device), q0, v0, 0.1, contact=contact, **STEP)
    turns = robot.poses(run.q)[..., :3, :3]
    linear = np.einsum("...kij,...kj->...ki", turns, run.v.reshape(*run.v.shape[:-1], 2, 6)[..., 3:])
    assert (np.abs(np.diff(linear, axis=1)).max(axis=(1, 2, 3)) > 0.1).all()  # they do collide
    assert np.ptp(linear.sum(axis=2), axis=1).max() < 1e-12
    apart = np.linalg.norm(run.q[..., 7:10] - run.q[..., :3], axis=-1)
    total = robot.kinetic_energy(run.q, run.v) + 0.5 * k * np.maximum(0.1 - apart, 0) ** 2
    assert (np.diff(total, axis=-1) < 1e-12 * total[:, :1]).all()
    one = simulate(robot, q0, v0[1], 0.1, contact=contact, **STEP)
    np.testing.assert_allclose(run.q[1], one.q, rtol=0, atol=1e-12)


def test_small_steps_of_colliding_bodies_approach_hunt_and_crossley() -> None:
    robot, v0 = bodies(CUBE), np.zeros(12)
    q0 = robot.integrate(stacked(robot), np.array([0.1, 0.05, 0.2, 0, 0, 0.01, -0.1, 0.1, 0.3, 0.01, 0.02, 0.028]))
    v0[[0, 6, 9]] = 0.5, -0.4, 0.3
    contact = Contact(pairs="all", stiffness=2e3, friction=0.5, slip=0.1)
    truth = rollout(robot, q0, v0, 0.3, contact=contact, step=2e-5, record=10**6).q[-1]
    errors = []
    for step in (4e-4, 2e-4, 1e-4):
        end = rollout(robot, q0, v0, 0.3, contact=contact, method="linearly_implicit", step=step, record=10**6)
        errors.append(np.abs(end.q[-1] - truth).max())
    assert errors[0] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.2) and errors[1] / errors[2] == pytest.approx(2, rel=0.2)
