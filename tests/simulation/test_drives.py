"""Implicit springs, friction and PD drives: closed forms, energy, saturation, MuJoCo, batches and gradients."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice, StrictDevice
from refusals import refused, warned
from robots import robot_file
from torsor import Shape, simulate
from torsor.base.errors import ModelWarning
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.control import drives
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Contact, Limits, rollout
from torsor.spatial import make_pose

H = 2e-3
IMPLICIT = "linearly_implicit"


def carts(count: int, gravity: float = 0.0) -> Any:
    """Return carts that are coupled by prismatic joints along x: their mass matrix is constant."""
    links = [Link(f"cart{k}", 1.0 + k, np.zeros(3), 1e-3 * np.eye(3)) for k in range(count)]
    parents = ["base", *(link.name for link in links)]
    joints = [
        Joint(f"rail{k}", "prismatic", parents[k], f"cart{k}", axis=np.array([1.0, 0.0, 0.0])) for k in range(count)
    ]
    return build("carts", [Link("base"), *links], joints, gravity=(gravity, 0.0, 0.0))


def blend(h: float, K: Any, D: Any) -> Any:
    """Return the part of h^2 K in the impedance: 0 where the damping D suffices, 1 for implicit Euler."""
    return np.clip(2 - D / (h * K), 0, 1)


@pytest.mark.parametrize("d", [3.0, 0.02])
def test_a_damped_oscillator_has_the_closed_form_of_order_1(d: float) -> None:
    """With d >= 2 h k, the spring acts from the start position; with d <= h k, the method is implicit Euler."""
    robot, k = carts(1), 90.0
    sprung = robot.with_spring("rail0", k, damping=d)
    rate, frequency = d / 2, np.sqrt(k - d**2 / 4)
    exact = np.exp(-rate) * (np.cos(frequency) + rate / frequency * np.sin(frequency))
    errors = []
    for h in (H, H / 2, H / 4):
        run = rollout(sprung, np.ones(1), np.zeros(1), 1.0, method=IMPLICIT, step=h)
        driven = rollout(robot, np.ones(1), np.zeros(1), 1.0, controller=drives(robot, [0.0], k, d), step=h)
        np.testing.assert_allclose(driven.q, run.q, rtol=0, atol=1e-13)
        step = np.linalg.inv([[1.0, -h], [h * k, 1.0 + h * d]])
        if d >= 2 * h * k:
            step = np.linalg.inv([[1.0, -h], [0.0, 1.0 + h * d]]) @ [[1.0, 0.0], [-h * k, 1.0]]
        closed = np.linalg.matrix_power(step, len(run) - 1) @ [1.0, 0.0]
        np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], closed, rtol=0, atol=1e-11)
        errors.append(run.q[-1, 0] - exact)
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05) and errors[1] / errors[2] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("kd", [0.0, 1e-2, 1e6])
def test_drives_of_any_stiffness_are_stable(kd: float) -> None:
    robot = carts(3)
    kp = np.logspace(0, 12, 13)[:, None] * [1.0, 1e-3, 10.0]
    run = rollout(robot, np.ones(3), np.zeros((13, 3)), 2.0, controller=drives(robot, np.zeros(3), kp, kd), step=H)
    M = robot.mass_matrix(np.zeros(3))
    energy = (np.einsum("bti,ij,btj->bt", run.v, M, run.v) + np.einsum("bi,bti->bt", kp, run.q**2)) / 2
    assert (np.diff(energy, axis=1) <= 1e-12 * energy[:, :1]).all()
    assert not run.diverged.any()


def test_an_arm_with_a_stiffness_of_1e6_holds_its_posture_at_2_ms() -> None:
    arm = torsor.library.planar_chain(4)
    goal = np.array([0.4, -0.8, 0.6, 0.2])
    run = rollout(arm, np.zeros(4), np.zeros(4), 1.0, controller=drives(arm, goal, kp=1e6, kd=10.0), step=H)
    sag = arm.gravity_force(goal) / 1e6
    np.testing.assert_allclose(run.q[-1], goal - sag, rtol=0, atol=1e-8)


def test_energy_falls_by_damping_and_the_known_error_of_each_step() -> None:
    h, robot = H, carts(3)
    K, D = np.array([1e2, 1e5, 1e7]), np.array([1.0, 0.0, 1e3])
    for name, k, d in zip(robot.joint_names, K, D, strict=True):
        robot = robot.with_spring(name, k, damping=d)
    q0, v0 = np.random.default_rng(0).normal(size=(2, 5, 3))
    run = rollout(robot, q0, v0, 0.1, method=IMPLICIT, step=h)
    M, v, w = robot.mass_matrix(np.zeros(3)), run.v[:, 1:], np.diff(run.v, axis=1)
    energy = (np.einsum("bti,ij,btj->bt", run.v, M, run.v) + (K * run.q**2).sum(-1)) / 2
    damping = D + (blend(h, K, D) - 0.5) * h * K
    lost = h * (v**2 @ damping) + np.einsum("bti,ij,btj->bt", w, M, w) / 2
    np.testing.assert_allclose(np.diff(energy, axis=1), -lost, rtol=0, atol=1e-12 * energy.max())


@pytest.mark.parametrize("smooth", [0.0, 1e-4])
def test_friction_sticks_slides_and_never_reverses_a_joint(smooth: float) -> None:
    robot = carts(1).with_friction("rail0", coulomb=2.0, smooth=smooth)
    force = np.array([[1.5], [2.5], [0.0]])
    run = rollout(robot, np.zeros(1), np.array([[0.0], [0.0], [1.0]]), 1.0, controller=force, method=IMPLICIT, step=H)
    creep = smooth * np.arctanh(0.75) if smooth else 1e-6
    assert np.abs(run.v[0]).max() < 1.1 * creep
    assert run.v[1, -1, 0] == pytest.approx(0.5, abs=0.02)  # (2.5 - 2) / 1 kg
    assert run.v[2, 200, 0] == pytest.approx(1.0 - 2.0 * 0.4, abs=0.02) and (run.v[2] > -1e-6).all()
    assert run.v[2, -1, 0] < 1e-6


def applied(robot: Any, run: Any, h: float) -> Any:
    """Return the drive forces (..., T, n) in each step of a robot with a constant mass matrix and no other force."""
    return np.diff(run.v, axis=-2) @ robot.mass_matrix(np.zeros(robot.nv)) / h


@pytest.mark.parametrize("kp", [1e2, 1e4, 1e6])
def test_the_force_of_a_step_is_that_of_the_saturated_law(kp: float) -> None:
    robot, h, kd, most = carts(3), H, 10.0, np.array([5.0, np.inf, 20.0])
    q0, v0 = np.random.default_rng(1).normal(size=(2, 8, 3))
    controller = drives(robot, np.zeros(3), kp, kd).saturated(most)
    run = rollout(robot, q0, v0, 1.0, controller=controller, step=h)
    force = applied(robot, run, h)
    law = -kp * (run.q[:, :-1] + blend(h, kp, kd) * h * run.v[:, 1:]) - kd * run.v[:, 1:]
    law = np.clip(law, -most, most)
    differs = np.abs(force - law).max(-1) > 1e-6 * kp * h
    assert differs.mean() < 0.02  # steps in which other loads change what is saturated
    saturated = np.abs(law) == most
    assert saturated.any() and not saturated.all()
    exact = np.where(saturated & ~differs[..., None], np.abs(force) - most, 0.0)
    assert np.abs(np.nan_to_num(exact)).max() < 1e-9 * kp


def test_limits_of_a_simulation_are_those_of_saturated_drives() -> None:
    arm = torsor.library.two_link()  # 10 N m
    law = drives(arm, [0.5, -0.5], kp=1e4, kd=50.0)
    limited = simulate(arm, duration=0.2, controller=law, limits=Limits(stops=False), step=H)
    saturated = simulate(arm, duration=0.2, controller=law.saturated(), step=H)
    np.testing.assert_array_equal(limited.q, saturated.q)
    assert np.abs(limited.tau).max() == 10.0 and limited.saturated.any()


def leg(weight: float = 10.0) -> Any:
    """Return a body on a leg with a ball foot: a vertical rail, a drive, and a foot."""
    up = np.array([0.0, 0.0, 1.0])
    body = Link("body", weight, np.zeros(3), np.eye(3) * 0.1)
    foot = Link("foot", 1.0, np.zeros(3), np.eye(3) * 1e-3, shapes=(Shape("sphere", (0.1,)),))
    joints = [
        Joint("rail", "prismatic", "base", "body", axis=up),
        Joint("leg", "prismatic", "body", "foot", axis=-up),
    ]
    return build("leg", [Link("base"), body, foot], joints, gravity=(0.0, 0.0, -9.81))


def test_a_stiff_leg_on_hard_contact_carries_its_weight_and_a_weak_one_yields_at_its_limit() -> None:
    robot, contact = leg(), Contact(kind="hard", stiffness=1e6)
    q0 = np.array([0.5, 0.4])
    law = drives(robot, [0.0, 0.4], kp=np.array([[0.0, 1e6], [0.0, 500.0], [0.0, 1e6]]), kd=np.array([0.0, 140.0]))
    run = rollout(robot, q0, np.zeros((3, 2)), 3.0, controller=law, contact=contact, step=H)
    np.testing.assert_allclose(run.q[:, -1, 1], 0.4 - 10 * 9.81 / np.array([1e6, 500.0, 1e6]), rtol=0, atol=1e-6)
    soft = drives(robot, [0.0, 0.4], [0.0, 1e6], [0.0, 20.0]).saturated(60.0)
    weak = rollout(robot, q0, np.zeros(2), 0.2, controller=soft, contact=contact, step=H)
    fall = np.diff(weak.v[5:, 0]) / H
    np.testing.assert_allclose(fall, 60.0 / 10.0 - 9.81, rtol=0, atol=1e-6)


def arm_of_mujoco(actuators: str = "") -> str:
    text = '<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/><worldbody>'
    for k in range(3):
        text += f'<body name="b{k}" pos="{0.4 * (k > 0)} 0 0"><joint name="j{k}" axis="0 1 0" damping="0.2" '
        text += f'armature="0.01"/><inertial pos="0.2 0 0" mass="{2 - 0.5 * k}" diaginertia="0.01 0.02 0.02"/>'
    return f"{text}{'</body>' * 3}</worldbody>{actuators}</mujoco>"


def test_the_error_at_2_ms_is_that_of_implicitfast_of_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    kp, kd, errors = 200.0, 5.0, list[list[float]]()
    motors = "".join(f'<position joint="j{k}" kp="{kp}" kv="{kd}"/>' for k in range(3))
    model = mujoco.MjModel.from_xml_string(arm_of_mujoco(f"<actuator>{motors}</actuator>"))
    (tmp_path / "arm.xml").write_text(arm_of_mujoco())
    robot = torsor.load(tmp_path / "arm.xml")
    for q0, v0, goal in np.random.default_rng(0).normal(size=(6, 3, 3)):
        data, peer = mujoco.MjData(model), []
        data.qpos[:], data.qvel[:], data.ctrl[:] = q0, v0, goal
        for _ in range(150):
            mujoco.mj_step(model, data)
            peer.append(data.qpos.copy())
        law = drives(robot, goal, kp, kd)
        run = simulate(robot, q0, v0, duration=0.3, controller=law, step=H)
        truth = simulate(robot, q0, v0, duration=0.3, controller=law.function, step=1e-4, record=H).q[1:]
        errors.append([float(np.sqrt(((q - truth) ** 2).mean())) for q in (run.q[1:], np.array(peer))])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < 1.1 * theirs < 0.01


def test_small_steps_converge_to_explicit_ones() -> None:
    robot = torsor.library.planar_chain(3).with_friction("joint2", viscous=0.3, coulomb=0.4, smooth=0.05)
    robot = robot.with_spring("joint3", "20 + 30 * x**2", damping=0.2)
    law = drives(robot, lambda t: [ca.sin(3 * t), t, 0.2], kp=[80.0, 40.0, 0.0], kd=[4.0, 2.0, 0.0])
    start: dict[str, Any] = {"q0": [0.3, 0.1, -0.4], "v0": [1.0, 0.0, 2.0], "duration": 0.5}
    truth = simulate(robot, **start, controller=law.function, step=1e-4).q[-1]
    errors = [np.abs(simulate(robot, **start, controller=law, step=h).q[-1] - truth).max() for h in (H, H / 2, H / 4)]
    assert errors[0] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1) and errors[1] / errors[2] == pytest.approx(2, rel=0.1)
    adaptive = simulate(robot, **start, controller=law, method="adaptive")
    np.testing.assert_allclose(adaptive.q[-1], truth, rtol=0, atol=1e-6)


def test_without_springs_friction_and_drives_the_step_is_of_order_2() -> None:
    robot = torsor.library.planar_chain(3)
    start: dict[str, Any] = {"q0": [0.3, 0.1, -0.4], "v0": [1.0, 0.0, 2.0], "duration": 0.5}
    truth = simulate(robot, **start, step=1e-3).q[-1]
    errors = [np.abs(simulate(robot, **start, step=h, method=IMPLICIT).q[-1] - truth).max() for h in (H, H / 2)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def quadruped() -> Any:
    robot = torsor.library.quadruped()
    for name in ("fl", "fr", "hl", "hr"):
        robot = robot.with_shapes(f"{name}_foot", [Shape("sphere", (0.02,))])
    q0 = robot.neutral()
    q0[2], q0[7:] = 0.33, np.tile([0.0, 0.7, -1.4], 4)
    return robot, q0


def test_a_quadruped_stands_with_gains_of_any_size_which_need_no_other_code() -> None:
    robot, q0 = quadruped()
    joints = np.repeat([0.0, 1.0], [6, 12])
    kp, kd = (np.array(gains)[:, None] * joints for gains in ([60.0, 1e3, 1e6], [2.0, 10.0, 10.0]))
    contact = Contact(kind="hard", stiffness=4e4)
    run = rollout(robot, q0, np.zeros((3, 18)), 1.0, controller=drives(robot, q0, kp, kd), contact=contact, step=H)
    assert (run.q[:, -1, 2] > 0.25).all() and np.abs(run.v[:, -1]).max() < 0.02
    kernels = len(robot.kernels._kernels)
    alone = rollout(robot, q0, np.zeros(18), 1.0, controller=drives(robot, q0, kp[1], kd[1]), contact=contact, step=H)
    np.testing.assert_array_equal(alone.q, run.q[1])
    assert len(robot.kernels._kernels) == kernels and alone.settings["method"] == "hard"


@pytest.mark.slow
def test_talos_stands_at_2_ms() -> None:
    """With kp = 200 N m/rad in the ankles, it falls as slowly as with a quarter of the step; with 2000 it stands."""
    robot = torsor.load(robot_file("talos_reduced.urdf"), base="floating")
    feet = [f"leg_{side}_6_link" for side in ("left", "right")]
    for name in feet:
        corners = ([x, y, -0.097] for x in (-0.08, 0.1) for y in (-0.05, 0.05))
        robot = robot.with_shapes(name, [Shape("sphere", (0.01,), make_pose(p=corner)) for corner in corners])
    q0 = robot.neutral()
    q0[2] = 0.107 - robot.pose(q0, feet[0])[2, 3]
    contact, ends = Contact(kind="hard", stiffness=1e5, shapes=feet), []
    for h in (H, H / 4):
        law = drives(robot, q0, np.array([[200.0], [2000.0], [1e6]]) * np.repeat([0.0, 1.0], [6, 32]), kd=5.0)
        run = rollout(robot, q0, np.zeros((3, 38)), 2.0, controller=law, contact=contact, step=h, record=round(0.5 / h))
        assert not run.diverged.any()
        ends.append(run.q[..., 2])
    np.testing.assert_allclose(ends[0][1:, -1], q0[2], rtol=0, atol=5e-3)
    np.testing.assert_allclose(ends[0][0, :4], ends[1][0, :4], rtol=0, atol=5e-3)


@pytest.fixture(params=["cpu", "cuda"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    emulated = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    name: str = request.param
    return name


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_drives_on_a_gpu_and_in_float32_move_as_in_simulate(device: str, dtype: str) -> None:
    arm = torsor.library.two_link().with_friction("joint1", coulomb=0.3, viscous=0.1).with_spring("joint2", 30.0)
    q0 = np.random.default_rng(2).normal(size=(4, 2))
    law = drives(arm, [0.2, -0.1], kp=[1e6, 50.0], kd=3.0).saturated(8.0)
    truth = simulate(arm, q0, duration=0.1, controller=law, step=H)
    target = arm.to(device=device, dtype=dtype)
    run = rollout(target, q0, np.zeros(2), 0.1, controller=law, step=H)
    tolerance = 1e-12 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(run.q, truth.q, rtol=0, atol=tolerance)
    assert run.q.dtype == dtype and not run.diverged.any()


def test_arrays_of_drives_stay_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = StrictDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    arm = torsor.library.two_link()
    law = drives(arm, np.zeros((3, 2)), kp=np.array([[10.0], [3e3], [1e6]]) * [1.0, 0.5], kd=2.0)
    run = rollout(arm.to(device="cuda"), np.ones(2), np.zeros((3, 2)), 0.02, controller=law, step=H)
    truth = rollout(arm, np.ones(2), np.zeros((3, 2)), 0.02, controller=law, step=H)
    np.testing.assert_allclose(run.q.get(), truth.q, rtol=0, atol=1e-12)
    assert run.diverged.get().tolist() == [False] * 3
    gradients = zip(run.vjp(run.q), truth.vjp(truth.q), strict=True)
    assert all(np.allclose(found.get(), expected, rtol=0, atol=1e-8) for found, expected in gradients)


def test_gradients_go_through_drives_and_reach_their_gains(device: str) -> None:
    arm = torsor.library.two_link()
    q0, v0 = np.array([[0.3, -0.2], [0.1, 0.4]]), np.array([0.5, 0.0])
    gains = np.array([[30.0, 20.0], [300.0, 200.0]]), np.array([1.0, 0.5])
    weights = np.random.default_rng(3).normal(size=(2, 21, 2))

    def cost(q: Any, v: Any, kp: Any, kd: Any, goal: Any) -> Any:
        law = drives(arm, goal, kp, kd).saturated(8.0)
        return (weights * rollout(arm, q, v, 0.04, controller=law, step=H).q).sum((1, 2))

    given = [q0, np.broadcast_to(v0, (2, 2)), gains[0], np.broadcast_to(gains[1], (2, 2)), np.zeros((2, 2))]
    law = drives(arm, given[4], *gains).saturated(8.0)
    run = rollout(arm.to(device=device), q0, v0, 0.04, controller=law, step=H)
    dq, dv, dgains = run.vjp(weights)
    for place, found in enumerate((dq, dv, *np.split(dgains, 3, axis=-1))):
        for k in range(2):
            change = 1e-6 * np.eye(2)[k]
            above, below = (cost(*(x + s * change * (i == place) for i, x in enumerate(given))) for s in (1, -1))
            np.testing.assert_allclose(found[:, k], (above - below) / 2e-6, rtol=1e-5, atol=1e-6)


def test_motions_that_diverge_are_marked_and_counted(device: str, tmp_path: Path) -> None:
    arm = torsor.library.two_link().to(device=device)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    stiff = ca.Function("stiff", [t, q, v], [-1e7 * q])
    q0 = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.0], [np.nan, 0.0]])
    still = arm.with_gravity((0.0, 0.0, 0.0))
    with pytest.warns(ModelWarning, match="2 of 4 motions diverged"):
        run = rollout(still, q0, np.zeros(2), 0.2, controller=stiff, step=H, record=10)
    assert run.diverged.tolist() == [False, True, False, True]
    assert "2 diverged" in repr(run) and np.isnan(run.v[1, -1]).all() and (run.q[0] == 0).all()
    begin = int(np.argmax(np.isnan(run.v[1, :, 0])))
    assert begin > 0 and np.isnan(run.v[1, begin:]).all() and (np.abs(run.v[1, :begin]) < 3e8).all()
    run.save(tmp_path / "run.npz")
    with warned(what="NaN"):
        again = torsor.load_result(tmp_path / "run.npz")
    assert again.diverged.tolist() == [False, True, False, True]


def test_a_floating_base_and_references_of_every_kind() -> None:
    robot, q0 = quadruped()
    times = np.linspace(0.0, 0.1, 6)
    samples = times, np.broadcast_to(q0, (6, 19))
    fixed = drives(robot, q0, 60.0, 2.0)
    for law in (fixed, drives(robot, samples, 60.0, 2.0), drives(robot, lambda t: ca.DM(q0) + 0 * t, 60.0, 2.0)):
        run = rollout(robot, q0, np.ones(18), 0.02, controller=law, step=H)
        np.testing.assert_allclose(run.q, rollout(robot, q0, np.ones(18), 0.02, controller=fixed, step=H).q, atol=1e-12)
    tau = fixed(0.0, q0, np.ones(18))
    np.testing.assert_allclose(tau, [0.0] * 6 + [-2.0] * 12, atol=1e-12)


def test_sampled_drives_are_held_and_not_implicit() -> None:
    arm = torsor.library.two_link()
    law = drives(arm, [0.1, 0.2], 20.0, 1.0)
    held = simulate(arm, duration=0.1, controller=law, control_period=0.01, step=5e-3)
    assert held.settings["method"] == "rk4"
    explicit = simulate(arm, duration=0.1, controller=law.function, control_period=0.01, step=5e-3)
    np.testing.assert_array_equal(held.q, explicit.q)


def test_wrong_drives_are_refused() -> None:
    arm, (robot, q0) = torsor.library.two_link(), quadruped()
    for name in ("kp", "kd"):
        for value in (-1.0, np.nan, [1.0, 2.0, 3.0]):
            with refused(argument=name, where="two_link", allowed="0 or more"):
                drives(arm, [0.0, 0.0], **({"kp": 1.0, "kd": 1.0} | {name: value}))  # type: ignore[arg-type]
    with refused(argument="kp", what="which has no drive"):
        drives(robot, q0, np.ones(18), 1.0)
    with refused(argument="reference", what="(3,)", allowed="(..., 2)"):
        drives(arm, np.zeros(3), 1.0, 1.0)
    with refused(what="kp (3,), kd (2,), reference ()"):
        drives(arm, [0.0, 0.0], np.ones((3, 2)), np.ones((2, 2)))
    with refused(what="empty"):
        drives(arm, [0.0, 0.0], np.ones((0, 2)), 1.0)
    with refused(argument="controller", what="'two_link'", fix="this robot"):
        simulate(carts(2), controller=drives(arm, [0.0, 0.0], 1.0, 1.0))
    with refused(what="drives does not support the elastic joints"):
        drives(torsor.library.elastic_arm(), np.zeros(6), 1.0, 1.0)
    many = drives(arm, [0.0, 0.0], np.ones((3, 2)), 1.0)
    with refused(argument="controller", fix="rollout"):
        simulate(arm, np.zeros((3, 2)), controller=many)
    with refused(argument="controller", what="(3, 6)"):
        rollout(arm, np.zeros(2), np.zeros(2), 0.1, controller=drives(arm, np.ones(2), np.ones((3, 2)), 0.0))
    with refused(argument="method", what="prescribed motion"):
        simulate(arm, prescribed={arm.coordinate_names[0]: 0.0}, method=IMPLICIT)


def test_drives_of_closed_loops_are_implicit_and_of_order_1() -> None:
    bars = torsor.library.four_bar(gravity=(0, -9.81, 0))
    q0 = bars.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    goal = bars.closed.assemble([0.8], guess=q0)
    soft, stiff = drives(bars, goal, 100.0, 5.0), drives(bars, q0, 1e8, 1.0)
    truth = simulate(bars, q0, duration=0.5, controller=soft, method="adaptive", rtol=1e-9, atol=1e-10).q[-1]
    runs = [simulate(bars, q0, duration=0.5, controller=soft, step=h) for h in (4e-3, 2e-3)]
    errors = [np.abs(run.q[-1] - truth).max() for run in runs]
    assert runs[0].settings["method"] == IMPLICIT and errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    held = simulate(bars, q0, duration=0.5, controller=stiff, step=2e-3)
    np.testing.assert_allclose(held.q, np.broadcast_to(q0, held.q.shape), atol=1e-6)
    assert not soft(0.0, q0, np.zeros(3))[1:].any()  # coupler and rocker have no drive


def test_gains_of_a_batch_are_the_last_input_of_the_sampled_law() -> None:
    law = drives(torsor.library.two_link(), [0.5, -0.5], np.array([[1.0, 2.0], [3.0, 4.0]]), 0.0)
    assert np.array(law.sampled(0.1)(0, [0.0, 0.0], [0.0, 0.0], law.gains[1])).ravel().tolist() == [1.5, -2.0]


@pytest.mark.parametrize("kind", ["friction model", "hard contact"])
def test_friction_that_jumps_breaks_away_at_its_limit(kind: str) -> None:
    """A load F above the friction Fs moves 1 kg by (F - Fs) t^2 / 2."""
    robot = carts(1)
    friction: dict[str, Any] = {"friction_model": "2*sign(v)"} if kind == "friction model" else {"coulomb": 2.0}
    robot = replace(robot, joints=tuple(replace(joint, **friction) for joint in robot.joints))
    given: dict[str, Any] = {"method": IMPLICIT}
    if kind == "hard contact":
        robot = robot.with_shapes("cart0", [Shape("sphere", (0.1,))])
        given = {"contact": Contact(kind="hard", ground=Shape("plane", (), make_pose(p=[0.0, 0.0, -5.0])))}
    run = simulate(robot, duration=0.5, controller=np.array([2.1]), step=H, **given)
    assert run.q[-1, 0] == pytest.approx(0.1 * 0.5**2 / 2, rel=0.01)


def test_gains_of_zero_are_no_drive() -> None:
    arm = torsor.library.planar_chain(2)
    start: dict[str, Any] = {"q0": [0.3, 0.1], "v0": [1.0, -2.0], "duration": 0.5, "step": H}
    none = simulate(arm, **start, method=IMPLICIT)
    zero = simulate(arm, **start, controller=drives(arm, [0.0, 0.0], 0.0, 0.0))
    np.testing.assert_allclose(zero.q, none.q, rtol=0, atol=1e-12)


def test_limits_that_print_alike_are_different() -> None:
    cart = carts(1)
    with np.printoptions(precision=1):
        for limit in (5.02, 5.04):
            law = drives(cart, [0.0], 1e4, 0.0).saturated(limit)
            run = rollout(cart, np.ones(1), np.zeros(1), 0.01, controller=law, step=1e-3)
            assert -run.v[1, 0] / 1e-3 == pytest.approx(limit, rel=1e-12)


def test_a_trajectory_is_a_reference() -> None:
    arm = torsor.library.two_link()
    path = simulate(arm, [0.1, 0.2], [1.0, 0.0], duration=0.2)
    law = drives(arm, path, 100.0, 1.0)
    np.testing.assert_allclose(law(0.1, path.at(0.1).q, path.at(0.1).v), 0.0, atol=1e-9)


def test_the_gains_of_the_model_are_the_defaults() -> None:
    cart = carts(2)
    with refused("no gains", fix="pass `kp=` and `kd=`"):
        drives(cart, [0.0, 0.0])
    cart = replace(cart, joints=tuple(replace(joint, kp=9.0, kd=[2.0]) for joint in cart.joints))
    state = 0.0, [0.1, -0.2], [1.0, 2.0]
    np.testing.assert_array_equal(drives(cart, [0.0, 0.0])(*state), drives(cart, [0.0, 0.0], 9.0, 2.0)(*state))
    np.testing.assert_array_equal(drives(cart, [0.0, 0.0], kd=0.0)(*state), drives(cart, [0.0, 0.0], 9.0, 0.0)(*state))
