"""Hard contact: rest, slope, rolling, impacts, energy, batches, gradients, MuJoCo, and rejected input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from refusals import refused, warned
from torsor import Shape, simulate
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Contact, rollout
from torsor.spatial import make_pose

G = 9.81
BALL = Shape("sphere", (0.1,))
RIGID = Contact(kind="hard", stiffness=1e7, friction=0.3, relaxation=0.0)
SOFT = Contact(kind="hard", stiffness=1e5)


def body(shape: Shape = BALL, inertia: float = 4e-3) -> Any:
    link = Link("body", 1.0, np.zeros(3), inertia * np.eye(3), shapes=(shape,))
    return build("body", [link], [], base="floating")


def at(robot: Any, height: float) -> Any:
    q = robot.neutral()
    q[2] = height
    return q


def slope(angle: float) -> Shape:
    c, s = np.cos(angle), np.sin(angle)
    pose = np.eye(4)
    pose[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]  # descends along x
    return Shape("plane", pose=pose)


def on_slope(robot: Any, angle: float, height: float) -> Any:
    q = robot.neutral()
    q[:3] = slope(angle).pose[:3, :3] @ [0, 0, height]
    q[3:7] = [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    return q


def test_a_body_rests_at_the_depth_of_the_spring_and_feels_its_weight() -> None:
    robot, contact = body(), Contact(kind="hard", stiffness=1e4)
    rest = simulate(robot, at(robot, 0.12), None, 1.0, contact=contact, step=2e-3)
    assert rest.q[-1, 2] == pytest.approx(0.1 - G / 1e4, abs=1e-9)
    assert rest.external[-1, 0, 5] == pytest.approx(G, rel=1e-6)
    assert np.abs(np.diff(rest.v, axis=0) / 2e-3 - rest.a[:-1]).max() < 1e-9  # the recorded force is that of the step


@pytest.mark.parametrize("shape", [BALL, pytest.param(Shape("box", (0.4, 0.4, 0.1)), marks=pytest.mark.slow)])
def test_a_block_sticks_without_creep_below_the_friction_angle_and_slides_above(shape: Shape) -> None:
    angle, height = 0.4, 0.1 if shape is BALL else 0.05
    robot = body(shape, 1e9 if shape is BALL else 0.02)
    for mu, expected in ((0.2, G * (np.sin(angle) - 0.2 * np.cos(angle))), (0.6, 0.0)):
        contact = Contact(slope(angle), kind="hard", stiffness=1e6, friction=mu)
        run = simulate(robot, on_slope(robot, angle, height), None, 0.5, contact=contact)
        assert (run.v[-1, 3] - run.v[-101, 3]) / 0.1 == pytest.approx(expected, abs=1e-6)
        assert abs(run.v[-1, 3]) < 1e-9 or mu < np.tan(angle)  # no creep


def on_edge(duration: float, friction: float, sweeps: int) -> tuple[Any, float]:
    """Return the motion of a box that nearly tips over on a slope, and how far its corners moved at most (m).

    The box of 0.2 x 0.2 x 0.6 m tips where the slope is 1 / 3.
    """
    angle, size = np.arctan(0.95 / 3), np.array([0.2, 0.2, 0.6])
    inertia = np.diag((size**2).sum() - size**2) / 12
    robot = build(
        "box", [Link("body", 1.0, np.zeros(3), inertia, shapes=(Shape("box", tuple(size)),))], [], base="floating"
    )
    contact = Contact(slope(angle), kind="hard", stiffness=1e6, friction=friction, sweeps=sweeps)
    run = simulate(robot, on_slope(robot, angle, 0.3), None, duration, contact=contact, record=duration / 10)
    corners = np.array([[x, y, z, 1.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.3, 0.3)])
    places = robot.pose(run.q, "body") @ corners.T
    return run, float(np.abs(places - places[1])[1:].max())  # it settles into its springs first


def test_other_numbers_of_contact_need_no_other_code() -> None:
    """A sliding ball decelerates at mu g, and rests at m g / k, with the kernels of the first simulation."""
    robot, ends = body(inertia=1e9), []
    for mu, k in ((0.2, 1e6), (0.4, 1e6), (0.4, 1e4)):
        contact = Contact(kind="hard", friction=mu, stiffness=k)
        start, v0 = at(robot, 0.1 - G / k), [0, 0, 0, 2.0, 0, 0]
        end = simulate(robot, start, v0, 0.2, contact=contact)
        np.testing.assert_allclose(end.v[-1, 3], 2.0 - mu * G * 0.2, rtol=0, atol=1e-6)
        np.testing.assert_allclose(end.q[-1, 2], 0.1 - G / k, rtol=0, atol=1e-9)
        np.testing.assert_allclose(rollout(robot, start, v0, 0.2, contact=contact).q[-1], end.q[-1], rtol=0, atol=1e-12)
        ends.append(len(robot.kernels._kernels))
    assert ends[0] == ends[1] == ends[2]


def test_a_box_that_nearly_tips_over_does_not_creep() -> None:
    run, creep = on_edge(5.0, 0.8, 10)
    assert creep < 1e-6
    assert run.settings["contact"]["residual"] < 1e-6


def test_sweeps_that_do_not_converge_are_reported() -> None:
    with warned(what="hard contact has not converged", fix="`sweeps=10`"):
        run, _ = on_edge(0.2, 0.2, 0)
    assert run.settings["contact"]["mean_residual"] > 1e-3


def test_chosen_points_move_hinged_bodies_as_the_points_that_touch_do() -> None:
    robot = hinged()
    high = [Shape("sphere", (0.02,), make_pose(p=[0.0, 0.01 * k, 0.2])) for k in range(16)]
    many = robot.with_shapes("left", [*robot.links[0].shapes, *high]).with_shapes(
        "right", [*robot.links[1].shapes, *high]
    )
    q, v = at(robot, 0.06), np.array([0.2, 0.3, 0.5, 0.4, 0.1, 0.0, 1.0])
    contact = Contact(kind="hard", stiffness=1e4, friction=0.5)
    alone, chosen = (
        simulate(each.to(device="casadi"), q, v, 0.15, contact=contact, step=2e-3) for each in (robot, many)
    )
    assert alone.settings["contact"]["points"] == 2 and chosen.settings["contact"]["points"] == 8
    assert np.abs(alone.external[:, :, 5]).max(axis=0).min() > 1.0  # both bodies touch
    assert np.allclose(chosen.q, alone.q, rtol=0, atol=1e-8)
    assert np.allclose(chosen.external, alone.external, rtol=0, atol=1e-5)


def test_the_deepest_point_of_a_link_is_chosen_even_between_its_corners() -> None:
    corners = [(x, y, 0.0) for x in (-0.5, 0.0, 0.5) for y in (-0.5, 0.5)]
    balls = [Shape("sphere", (0.05,), make_pose(p=p)) for p in (*corners, (0.0, 0.0, -0.005))]
    robot = body().with_shapes("body", balls).to(device="casadi")
    contact = Contact(kind="hard", stiffness=1e5, points=6)
    rest = simulate(robot, at(robot, 0.0551), None, 0.2, contact=contact, step=2e-3)
    assert rest.q[-1, 2] == pytest.approx(0.055 - G / 1e5, abs=1e-5)


def test_meshes_of_one_link_have_kernels_of_their_own(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    paths = [tmp_path / f"{height}.stl" for height in (0.2, 0.4)]
    for path, height in zip(paths, (0.2, 0.4), strict=True):
        trimesh.creation.box((1.0, 1.0, height)).export(path)
    meshes = [Shape("mesh", (1.0, 1.0, 1.0), name=path.stem, mesh=path.name, path=str(path)) for path in paths]
    robot = body().with_shapes("body", meshes).to(device="casadi")
    for height in (0.2, 0.4):
        contact = Contact(kind="hard", shapes=[str(height)])
        assert simulate(robot, at(robot, height / 2), None, 0.02, contact=contact).q[-1, 2] == pytest.approx(
            height / 2, abs=1e-4
        )


def test_a_box_rests_on_four_chosen_corners_and_three_are_reported() -> None:
    robot = body(Shape("box", (0.3, 0.2, 0.1))).to(device="casadi")
    four, three = (Contact(kind="hard", stiffness=1e4, points=points) for points in (4, 3))
    q, v = at(robot, 0.06), np.array([0.5, 0.3, 0.8, 0.5, 0.0, 0.0])
    rest = simulate(robot, q, v, 0.6, contact=four, step=2e-3)
    assert rest.q[-1, 2] == pytest.approx(0.05 - G / 4e4, abs=1e-6)
    with warned(what="after 10 sweeps with 3 points", fix="more `points=`"):
        simulate(robot, q, v, 0.6, contact=three, step=2e-3)


def test_a_sliding_ball_keeps_5_of_7_of_its_speed() -> None:
    robot = body()
    roll = simulate(robot, at(robot, 0.1), [0, 0, 0, 0.7, 0, 0], 0.3, contact=RIGID)
    velocity = robot.velocity(roll.q[-1], roll.v[-1], "body", axes="aligned")
    assert velocity[3] == pytest.approx(0.5, rel=1e-4)
    assert velocity[1] * 0.1 == pytest.approx(0.5, rel=1e-4)


def test_balls_that_meet_on_a_rail_go_on_together_since_nothing_rebounds() -> None:
    ball, axis = Shape("sphere", (0.05,)), np.array([1.0, 0.0, 0.0])
    links = [Link(f"ball{k}", 1.0, np.zeros(3), 1e-3 * np.eye(3), shapes=(ball,)) for k in range(2)]
    joints = [Joint(f"rail{k}", "prismatic", "base", f"ball{k}", axis=axis) for k in range(2)]
    robot = build("carts", [Link("base"), *links], joints, gravity=(0.0, 0.0, 0.0))
    contact = Contact(False, pairs=[("ball0", "ball1")], kind="hard", stiffness=1e9, friction=0.0)
    run = simulate(robot, [0.0, 0.15], [1.0, 0.0], 0.1, contact=contact)
    assert run.v[-1] == pytest.approx([0.5, 0.5], abs=1e-4)
    assert np.abs(run.v.sum(axis=1) - 1).max() < 1e-12


def bounced(drop: float, restitution: float, times: Any) -> Any:
    """Return the heights of a ball that falls from the height ``drop`` and bounces."""
    heights, start, speed = [], np.sqrt(2 * drop / G), restitution * np.sqrt(2 * drop * G)
    for t in times:
        while t > start + 2 * speed / G:
            start, speed = start + 2 * speed / G, restitution * speed
        since = t - start
        heights.append(drop - G * t**2 / 2 if since < 0 else speed * since - G * since**2 / 2)
    return np.array(heights)


def test_a_ball_bounces_as_in_the_closed_form_with_errors_of_order_2() -> None:
    robot, kernels = body(), []
    for restitution in (0.6, 0.8, 1.0):
        contact = Contact(kind="hard", restitution=restitution)
        for step in (4e-3, 2e-3, 1e-3):
            run = simulate(robot, at(robot, 1.1), None, 1.5, contact=contact, step=step)
            truth = bounced(1.0, restitution, run.times)
            np.testing.assert_allclose(run.q[:, 2] - 0.1, truth, rtol=0, atol=20 * step**2)  # 0.08 mm for 2 ms
            assert np.diff(run.energy).max() < 1e-13
        assert run.energy[-1] == pytest.approx(run.energy[0], abs=1e-10) or restitution < 1
        kernels.append(len(robot.kernels._kernels))
    assert kernels[0] == kernels[1] == kernels[2]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_bounces_of_a_batch_are_single_motions_on_any_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    robot, contact = body(), Contact(kind="hard", restitution=0.7, friction=0.4)
    v0 = np.random.default_rng(3).normal(size=(3, 6))
    run = rollout(robot.to(device=device), at(robot, 0.3), v0, 0.6, contact=contact)
    for k, start in enumerate(v0):
        one = simulate(robot, at(robot, 0.3), start, 0.6, contact=contact)
        np.testing.assert_allclose(run.q[k], one.q, rtol=0, atol=1e-12)


def test_boxes_that_bounce_on_many_corners_gain_no_energy() -> None:
    """Energy rises by at most 1e-4 of the initial energy, as without restitution, and corners do not penetrate."""
    size, rng = np.array([0.1, 0.2, 0.3]), np.random.default_rng(0)
    robot = body(Shape("box", tuple(size))).to(device="casadi")
    starts = np.tile(robot.neutral(), (12, 1))
    starts[:, 2], starts[:, 3:] = 0.4, rng.normal(size=(12, 4))
    starts[:, 3:] /= np.linalg.norm(starts[:, 3:], axis=1, keepdims=True)
    contact = Contact(kind="hard", restitution=0.7, friction=0.5)
    run = simulate(robot, starts, rng.normal(size=(12, 6)), 0.6, contact=contact, step=2e-3)
    rise = run.energy - np.minimum.accumulate(run.energy, axis=-1)
    assert (rise < 1e-4 * run.energy[:, :1]).all()
    corners = np.array([[x, y, z, 1.0] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    corners[:, :3] *= size
    assert (robot.pose(run.q, "body") @ corners.T)[..., 2, :].min() > -1e-4
    assert (np.abs(run.external).max(axis=(-2, -1)) > 0).any(axis=-1).all()  # all of them hit the ground


def test_a_box_with_restitution_stays_at_rest() -> None:
    robot = body(Shape("box", (0.3, 0.2, 0.1))).to(device="casadi")
    contact = Contact(kind="hard", restitution=0.8, stiffness=1e4)
    rest = simulate(robot, at(robot, 0.05 - G / 4e4), None, 0.5, contact=contact, step=2e-3)
    assert np.abs(rest.v).max() < 1e-9
    falls = simulate(robot, at(robot, 0.06), None, 1.5, contact=contact, step=2e-3)
    assert np.abs(falls.v[-1]).max() < 1e-9
    assert falls.q[-1, 2] == pytest.approx(0.05 - G / 4e4, abs=1e-9)


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_balls_on_a_rail_exchange_the_velocities_of_newton(restitution: float) -> None:
    """The second of three balls is hit by the first, and hits the third."""
    ball, axis = Shape("sphere", (0.05,)), np.array([1.0, 0.0, 0.0])
    links = [Link(f"ball{k}", 1.0, np.zeros(3), 1e-3 * np.eye(3), shapes=(ball,)) for k in range(3)]
    joints = [Joint(f"rail{k}", "prismatic", "base", f"ball{k}", axis=axis) for k in range(3)]
    robot = build("carts", [Link("base"), *links], joints, gravity=(0.0, 0.0, 0.0)).to(device="casadi")
    contact = Contact(False, pairs=[("ball0", "ball1"), ("ball1", "ball2")], kind="hard", restitution=restitution)
    run = simulate(robot, [0.0, 0.15, 0.26], [1.0, 0.0, 0.0], 0.15, contact=contact)
    keeps, gives = (1 - restitution) / 2, (1 + restitution) / 2
    assert run.v[-1] == pytest.approx([keeps, gives * keeps, gives**2], abs=1e-11)
    first, second = 0.05, 0.05 + 0.01 / gives  # s
    after = 0.15 - second
    ends = [0.05 + keeps * (0.15 - first), 0.16 + gives * keeps * after, 0.26 + gives**2 * after]
    assert run.q[-1] == pytest.approx(ends, abs=1e-9)


def test_energy_never_grows_and_a_batch_is_its_rollouts() -> None:
    robot = body()
    rng = np.random.default_rng(0)
    v0 = 2 * rng.normal(size=(5, 6))
    fall = simulate(robot, at(robot, 0.3), v0, 1.0, contact=RIGID, step=2e-3)
    elastic = 0.5 * RIGID.stiffness * np.maximum(0.1 - fall.q[..., 2], 0) ** 2
    total = fall.energy + elastic
    assert (np.diff(total, axis=-1) < 1e-12 * total[:, :1]).all()
    alone = simulate(robot, at(robot, 0.3), v0[3], 1.0, contact=RIGID, step=2e-3)
    assert np.abs(alone.q - fall.q[3]).max() < 1e-12


def hinged() -> Any:
    """Two free bars on a hinge, with a ball at each of the far ends."""
    ends = np.array([[-0.3, 0.0, 0.0], [0.3, 0.0, 0.0]])
    links = [
        Link(name, 1.0, end / 2, 8e-3 * np.eye(3), shapes=(Shape("sphere", (0.05,), make_pose(p=end)),))
        for name, end in zip(("left", "right"), ends, strict=True)
    ]
    hinge = Joint("hinge", "revolute", "left", "right", axis=np.array([0.0, 1.0, 0.0]))
    return build("hinged", links, [hinge], base="floating")


def test_energy_of_bodies_on_a_hinge_grows_by_small_errors_that_vanish_with_the_step() -> None:
    robot, k = hinged(), SOFT.stiffness
    v0 = 2 * np.random.default_rng(1).normal(size=(20, 7))
    q0, v0[:, 5] = at(robot, 0.3), -np.abs(v0[:, 5])
    rises = []
    for step in (2e-3, 5e-4):
        fall = simulate(robot, q0, v0, 0.6, contact=SOFT, step=step)
        poses = [robot.pose(fall.q, name) @ make_pose(p=[x, 0, 0]) for name, x in (("left", -0.3), ("right", 0.3))]
        depth = np.maximum(0.05 - np.stack([pose[..., 2, 3] for pose in poses]), 0)
        total = fall.energy + (0.5 * k * depth**2).sum(axis=0)
        assert (np.abs(fall.external).max(axis=(1, 2, 3)) > 10.0).mean() > 0.8  # they do hit the ground
        rises.append((total - np.minimum.accumulate(total, axis=-1)).max() / total[:, 0].mean())
    assert rises[0] < 3e-4 and rises[1] < rises[0] / 3


def test_free_flight_is_of_order_2() -> None:
    robot, v0 = hinged(), 3 * np.random.default_rng(2).normal(size=7)
    truth = simulate(robot, at(robot, 5.0), v0, 0.2, step=1e-3).q[-1]
    errors = [
        np.abs(simulate(robot, at(robot, 5.0), v0, 0.2, contact=SOFT, step=step).q[-1] - truth).max()
        for step in (1e-2, 5e-3, 2.5e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("kind", ["hard", "compliant"])
def test_gradients_go_through_contact_in_the_step(kind: str) -> None:
    robot, v0 = body(), np.array([0.3, 0.1, 0.2, 1.5, -0.2, -1.0])
    contact = Contact(kind=kind, stiffness=1e4 if kind == "hard" else 1e6, friction=0.2)
    method = "rk4" if kind == "hard" else "linearly_implicit"
    settings: dict[str, Any] = {"contact": contact, "method": method, "step": 5e-3}

    def end(v: Any) -> float:
        return float(rollout(robot, at(robot, 0.11), v, 0.05, **settings).q[-1, 0])

    run = rollout(robot, at(robot, 0.11), v0, 0.05, **settings)
    bars = np.zeros_like(run.q)
    bars[-1, 0] = 1.0
    slopes = [(end(v0 + 1e-6 * e) - end(v0 - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert run.vjp(bars)[1] == pytest.approx(slopes, abs=1e-8)


def test_gradients_go_through_bounces_as_in_the_closed_form() -> None:
    """A ball that starts higher hits later and is lower afterwards."""
    robot, v0, H, e = body(), np.zeros(6), 0.3, 0.8
    settings: dict[str, Any] = {"contact": Contact(kind="hard", restitution=e, friction=0.3), "step": 2e-3}

    def end(height: float) -> float:
        return float(rollout(robot, at(robot, 0.1 + height), v0, 0.3, **settings).q[-1, 2])

    run = rollout(robot, at(robot, 0.1 + H), v0, 0.3, **settings)
    bars = np.zeros_like(run.q)
    bars[-1, 2] = 1.0
    slope = run.vjp(bars)[0][2]
    assert slope == pytest.approx((end(H + 1e-6) - end(H - 1e-6)) / 2e-6, rel=1e-6)
    speed = np.sqrt(2 * G * H)
    since = 0.3 - speed / G
    assert slope == pytest.approx(e * G / speed * since - (e * speed - G * since) / speed, rel=5e-3)


def test_a_ball_slides_and_rolls_as_in_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    ground = '<geom type="plane" size="0 0 1" friction="0.3 0 0"/>'
    ball = '<body pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1" friction="0.3 0 0"/></body>'
    option = '<option timestep="0.001" cone="elliptic" impratio="100"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{ground}{ball}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    data.qvel[0] = 0.7
    mujoco.mj_step(model, data, 300)
    robot = body()
    roll = simulate(robot, at(robot, 0.1), [0, 0, 0, 0.7, 0, 0], 0.3, contact=RIGID)
    velocity = robot.velocity(roll.q[-1], roll.v[-1], "body", axes="aligned")
    assert velocity[3] == pytest.approx(data.qvel[0], rel=5e-3)
    assert roll.q[-1, 0] == pytest.approx(data.qpos[0], rel=5e-3)


def test_other_methods_prescribed_motion_and_bad_numbers_are_refused() -> None:
    robot = body()
    bad = ("sweeps", -1), ("sweeps", 2.5), ("relaxation", -1.0), ("relaxation", np.nan), ("restitution", 1.1)
    for name, value in bad:
        with refused(argument=name):
            Contact(kind="hard", **{name: value})  # type: ignore[arg-type]
    for kind, other, name in (("hard", "compliant", "slip"), ("compliant", "hard", "sweeps")):
        with refused(what=f"{name} is not a parameter of {kind} contact", fix=f'`kind="{other}"`'):
            Contact(kind=kind, **{name: 1})  # type: ignore[arg-type]
    with refused(what='hard contact does not support method "implicit"'):
        simulate(robot, at(robot, 0.2), contact=RIGID, method="implicit")
    with refused(what='hard contact does not support method "sdirk"'):
        rollout(robot, at(robot, 0.2), np.zeros(6), 0.1, contact=RIGID, method="sdirk")
    bars, q0 = four_bar()
    with refused(what="hard contact does not support prescribed motion"):
        simulate(bars, q0, contact=ABOVE, prescribed={"crank_joint": 0.5})


# Closed loops: a four-bar whose coupler has a ball falls on a plane, or nothing is in its way.


def level(height: float) -> Shape:
    """Return a plane across y, which is up for the four-bar."""
    pose = np.array([[1.0, 0, 0, 0], [0, 0, 1, height], [0, -1, 0, 0], [0, 0, 0, 1]])
    return Shape("plane", pose=pose)


ABOVE = Contact(level(0.2), kind="hard", friction=0.5)


def four_bar() -> tuple[torsor.Robot, Any]:
    robot = torsor.library.four_bar(gravity=(0, -G, 0))
    robot = robot.with_shapes("coupler", [Shape("sphere", (0.05,), make_pose(p=[0.45, -0.2, 0]))])
    return robot, robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])


def test_loops_without_contact_move_with_order_2() -> None:
    robot, q0 = four_bar()
    truth = simulate(robot, q0, duration=1.0, step=1e-3).q[-1]
    runs = [simulate(robot, q0, duration=1.0, step=h, contact=Contact(level(-5.0), kind="hard")) for h in (8e-3, 4e-3)]
    errors = [np.abs(run.q[-1] - truth).max() for run in runs]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert np.ptp(runs[1].energy) < 1e-3 * np.ptp(runs[1].kinetic_energy)


def test_a_four_bar_falls_on_the_ground_as_in_mujoco(tmp_path: Any) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot, q0 = four_bar()
    robot.save(tmp_path / "bars.xml")
    spec = mujoco.MjSpec.from_file(str(tmp_path / "bars.xml"))
    half = np.sqrt(0.5)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1], pos=[0, 0.2, 0], quat=[half, -half, 0, 0])
    spec.option.timestep, spec.option.cone, spec.option.impratio = 1e-4, mujoco.mjtCone.mjCONE_ELLIPTIC, 100
    model = spec.compile()
    # overdamped contact does not rebound
    model.geom_friction[:, 0], model.geom_solref[:], model.eq_solref[:] = 0.5, [1e-3, 3], [2e-4, 1]
    data, own, step = mujoco.MjData(model), [], 2e-3
    data.qpos[:] = q0
    run = simulate(robot, q0, duration=0.6, contact=ABOVE, step=step)
    for _ in run.times:
        own.append(data.qpos.copy())
        mujoco.mj_step(model, data, 20)
    assert np.abs(run.q - own).max() < 2e-3 * np.ptp(run.q)
    assert (run.external[-1, 1, 3:] != 0).any() and np.abs(run.v[-1]).max() < 1e-4  # friction holds it
    assert run.settings["contact"]["closure_error"] < 1e-9


def standing() -> tuple[torsor.Robot, Any]:
    """Return a torso on two legs with knees driven by rods, each on two balls at the same height."""
    robot, tilt = torsor.library.closed_leg(), 0.4
    places = [make_pose(p=[x * np.cos(tilt), 0, x * np.sin(tilt) - 0.25]) for x in (-0.1, 0.1)]
    for side in ("left", "right"):
        robot = robot.with_shapes(f"{side}_shank", [Shape("sphere", (0.02,), place) for place in places])
    bent = {"hip": -tilt, "drive": tilt, "knee": 2 * tilt, "rod": -2 * tilt}
    q = robot.neutral()
    for k, name in enumerate(robot.position_names):
        q[k] = bent.get(name.rpartition("_")[2], q[k])
    q[2] = 0.02 + 0.5 * np.cos(tilt)
    return robot.to(device="casadi"), q


@pytest.mark.slow
def test_legs_with_loops_stand_at_rest_and_carry_their_weight() -> None:
    robot, q0 = standing()
    drives = torsor.control.drives(robot, q0, kp=2000.0, kd=40.0)
    rest = simulate(robot, q0, duration=1.0, controller=drives, contact=Contact(kind="hard"), step=4e-3)
    names = [link.name for link in robot.links]
    up = sum(robot.pose(rest.q[-1], name)[2, :3] @ rest.external[-1, k, 3:] for k, name in enumerate(names))
    assert up == pytest.approx(robot.mass * G, rel=1e-4)
    assert np.abs(rest.v[-1]).max() < 1e-6
    assert rest.settings["contact"]["closure_error"] < 1e-9


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_rollouts_with_loops_are_motions_of_simulate(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    robot, q0 = four_bar()
    starts, settings = robot.closed.assemble([[0.2], [0.5]], guess=q0), {"contact": ABOVE, "step": 2e-3}
    run = rollout(robot.to(device=device), starts, np.zeros(3), 0.3, **settings)
    for k, start in enumerate(starts):
        one = simulate(robot, start, duration=0.3, **settings)
        assert np.abs(one.external).max() > 100.0
        np.testing.assert_allclose(run.q[k], one.q, rtol=0, atol=1e-10)
    single = rollout(robot.to(device=device, dtype="float32"), starts, np.zeros(3), 0.3, **settings)
    np.testing.assert_allclose(single.q, run.q, rtol=0, atol=1e-4)
    with refused(what='method "rk4" does not support closed loops in float32'):
        rollout(robot.to(dtype="float32"), starts, np.zeros(3), 0.3)


def test_gradients_go_through_impulses_of_loops() -> None:
    robot, q0 = four_bar()
    fall = simulate(robot, q0, duration=0.3, contact=ABOVE, step=2e-3)
    k = int(np.argmax(np.abs(fall.external).max(axis=(1, 2)) > 0))  # the step of the impact
    free = np.linalg.svd(robot.closed.jacobian(fall.q[k]))[2][-1]
    weights = np.array([0.3, -0.7, 0.2])

    def end(v: Any, tau: Any) -> Any:
        return rollout(robot, fall.q[k], v, 2e-3, contact=ABOVE, step=2e-3, controller=tau)

    tau, run = np.array([1.0, 0, 0]), end(fall.v[k], np.array([1.0, 0, 0]))
    bars = np.zeros_like(run.v)
    bars[-1] = weights
    _, by_v, by_tau = run.vjp(None, bars)
    changes = [(end(fall.v[k] + e * free, tau).v[-1] @ weights) for e in (1e-5, -1e-5)]
    assert by_v @ free == pytest.approx((changes[0] - changes[1]) / 2e-5, rel=1e-6)
    changes = [end(fall.v[k], tau + np.array([e, 0, 0])).v[-1] @ weights for e in (1e-3, -1e-3)]
    assert by_tau[0] == pytest.approx((changes[0] - changes[1]) / 2e-3, rel=1e-6)


def test_a_body_rests_whatever_the_step() -> None:
    robot, contact = body().to(device="casadi"), Contact(kind="hard", stiffness=1e6)
    for step in (1.0, 0.1, 5e-3):
        rest = simulate(robot, at(robot, 0.1), None, max(40 * step, 0.5), contact=contact, step=step)
        assert rest.q[-1, 2] == pytest.approx(0.1 - G / 1e6, abs=1e-9)


def test_errors_and_advice_fit_hard_contact() -> None:
    robot = body().to(device="casadi")
    with refused(fix="a step below 0.001 s, or weaker gains", error=torsor.SimulationError) as error:
        simulate(robot, at(robot, 0.2), contact=RIGID, controller=[0, 0, 0, 0, 0, 1e12])
    assert "implicit" not in str(error.value) and len(error.value.trajectory) == 1
    for pairs in (None, 5):
        with refused(argument="pairs", where="contact", allowed="pairs of names of links, frames or shapes"):
            Contact(pairs=pairs)  # type: ignore[arg-type]
    with refused(what="no link, frame or shape None"):
        simulate(robot, at(robot, 0.2), contact=Contact(shapes=[None]))  # type: ignore[list-item]
    with refused(what="shapes overlap at the start"):
        rollout(robot, at(robot, -1.0), np.zeros(6), 0.1, contact=RIGID)
    with refused(argument="q0", allowed="(..., 7)"):
        rollout(robot, np.zeros(5), np.zeros(6), 0.1, contact=RIGID)


def test_shapes_slide_with_their_own_friction() -> None:
    """Two balls on one rigid body: the normal force on each is half the weight."""
    balls = [Shape("sphere", (0.1,), make_pose(p=[0.0, y, 0.0]), friction=mu) for y, mu in ((0.5, 0.2), (-0.5, 0.4))]
    robot = body(inertia=1e9).with_shapes("body", balls)
    for friction, mu in ((None, 0.3), (0.6, 0.6)):
        contact = Contact(kind="hard", stiffness=1e6, friction=friction)
        end = simulate(robot, at(robot, 0.1 - G / 2e6), [0, 0, 0, 2.0, 0, 0], 0.2, contact=contact)
        np.testing.assert_allclose(end.v[-1, 3], 2.0 - mu * G * 0.2, rtol=0, atol=1e-6)
