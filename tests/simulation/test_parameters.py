"""Masses and other parameters as data of rollouts and environments: the motions of robots with these parameters."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.special import ellipj

import torsor
from gpu_on_cpu import ProcessorDevice
from refusals import refused
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.control import drives
from torsor.simulation import Contact, Environments, compliant, rollout

G = 9.81
ROD = torsor.library.planar_chain(1)
ARM = torsor.library.two_link().with_friction("joint1", coulomb=2.0, viscous=0.3).with_spring("joint2", stiffness=5.0)
OF_LINK = ("links.link2.mass", "links.link2.com.x", "links.link2.inertia.zz", "joints.joint2.rotor_inertia")
FRICTION = ("joints.joint1.coulomb", "joints.joint1.viscous", "joints.joint2.coulomb")
ARM_PATHS = [*OF_LINK, *FRICTION, "joints.joint2.stiffness", "gravity.y"]
ARM_ROWS = np.array([
    [2.0, 0.1, 0.03, 0.02, 0.5, 0.1, 0.4, 1.0, -9.0],
    [0.5, 0.3, 0.01, 0.01, 3.0, 0.6, 0.1, 40.0, -3.0],
    [1.2, 0.2, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0],
])  # fmt: skip
FIELDS = ("links.trunk.mass", "links.trunk.com.x", "links.trunk.inertia.yy", "links.fl_thigh.mass")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    processor = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: processor)
    return str(request.param)


def test_pendulums_with_other_masses_swing_as_the_elliptic_functions_say(device: str) -> None:
    """sin(q/2) = k cd(w t, k), with the angle q from the lowest position and k = sin(q0/2)."""
    model = ROD.to(device=device).parametric(["links.0.mass", "links.0.com.x", "links.0.inertia.zz"])
    m, c, inertia = p = np.array([[1.0, 3.0, 0.2], [0.5, 0.2, 1.0], [0.1, 0.5, 0.02]])
    start = 2.0
    run = rollout(model, [start - np.pi / 2], [0.0], 1.0, p.T)
    w = np.sqrt(m * G * c / (inertia + m * c**2))[:, None]
    k = np.sin(start / 2)
    _, cn, dn, _ = ellipj(w * run.times, k**2)
    np.testing.assert_allclose(np.sin((run.q[..., 0] + np.pi / 2) / 2), k * cn / dn, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", ["rk4", "linearly_implicit"])
def test_each_motion_is_that_of_the_robot_with_its_parameters(device: str, method: str) -> None:
    model, settings = ARM.parametric(ARM_PATHS), {"method": method, "step": 5e-3}
    q0, v0 = np.random.default_rng(0).normal(size=(2, 3, 2))
    run = rollout(ARM.to(device=device).parametric(ARM_PATHS), q0, v0, 0.2, ARM_ROWS, **settings)
    assert run.settings["p"] == ARM_PATHS
    for k, p in enumerate(ARM_ROWS):
        alone = rollout(model.at(p).to(device="casadi"), q0[k], v0[k], 0.2, **settings)
        np.testing.assert_allclose(run.q[k], alone.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.v[k], alone.v, rtol=0, atol=1e-11)
        same = rollout(ARM.to(device=device).parametric(ARM_PATHS), q0[k], v0[k], 0.2, p, **settings)
        np.testing.assert_array_equal(run.q[k], same.q)
    nominal = rollout(model, q0, v0, 0.01, **settings)
    np.testing.assert_allclose(nominal.q, rollout(ARM, q0, v0, 0.01, **settings).q, rtol=0, atol=1e-13)


def test_lengths_are_parameters_of_robots_without_contact() -> None:
    model = torsor.library.two_link().to(device="casadi").parametric(["joints.joint2.origin.x", "joints.joint2.turn.z"])
    lengths, start = np.array([[0.3, 0.0], [0.7, 0.4]]), np.array([[0.3, 0.8], [-1.0, 2.0]])
    run = rollout(model, start, [1.0, -2.0], 0.1, lengths)
    for k, p in enumerate(lengths):
        alone = rollout(model.at(p), start[k], [1.0, -2.0], 0.1)
        np.testing.assert_allclose(run.q[k], alone.q, rtol=0, atol=1e-12)


GROUNDS = {
    "hard": {"contact": Contact(kind="hard", stiffness=4e4, friction=0.7)},
    "implicit": {"contact": Contact(stiffness=4e4, friction=0.7)},
    "explicit": {"contact": Contact(stiffness=4e4, friction=0.7), "step": 5e-4},
}


@pytest.mark.parametrize("ground", GROUNDS)
def test_each_quadruped_is_that_with_its_masses(ground: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dog = torsor.library.quadruped().to(device="casadi")  # which stores no kernels with the mobilities below
    model, home = dog.parametric(FIELDS), dog.postures["home"]
    p = model.values * [[1.0, 1.0, 1.0, 1.0], [1.5, 1.0, 1.3, 0.5], [0.6, 1.0, 0.9, 2.0]] + [0.0, 0.02, 0.0, 0.0]
    v0 = np.zeros(18)
    v0[3:6] = 0.4, 0.2, -0.5  # it lands and slides
    settings: dict[str, Any] = {"step": 2e-3} | GROUNDS[ground]
    law = {} if ground == "explicit" else {"controller": drives(dog, home, kp=60.0, kd=2.0)}
    run = rollout(model, home, v0, 20 * settings["step"], p, **law, **settings)
    mobilities = compliant._mobilities(dog, settings["contact"])  # of the robot's own masses, in both
    monkeypatch.setattr(compliant, "_mobilities", lambda robot, contact: mobilities)
    for k, each in enumerate(p):
        alone = rollout(model.at(each), home, v0, 20 * settings["step"], **law, **settings)
        np.testing.assert_allclose(run.q[k], alone.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.v[k], alone.v, rtol=0, atol=1e-11)
    assert abs(run.v[0] - run.v[1:]).max() > 0.05


def test_impacts_of_other_masses_depend_little_on_the_mobility_of_the_own_ones() -> None:
    dog = torsor.library.quadruped().to(device="casadi")
    model, home = dog.parametric(["links.trunk.mass"]), dog.postures["home"] + 0.02 * (np.arange(19) == 2)
    settings: dict[str, Any] = {"contact": Contact(), "controller": drives(dog, home, kp=60.0, kd=2.0), "step": 2e-3}
    for mass in (3.0, 12.0):
        run = rollout(model, home, np.zeros(18), 0.2, [mass], **settings)
        alone = rollout(model.at([mass]), home, np.zeros(18), 0.2, **settings)
        assert abs(run.q - alone.q).max() < 1e-5 < abs(run.q[-1, 2] - run.q[0, 2])


def test_a_robot_with_loops_keeps_them_closed_with_any_masses() -> None:
    robot = torsor.library.four_bar().to(device="casadi")
    start = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    model = robot.parametric(["links.0.mass", "links.1.com.x"])
    p = model.values + np.array([[0.0, 0.0], [2.0, 0.1]])
    for method in ("rk4", "linearly_implicit"):
        run = rollout(model, start, np.zeros(3), 0.1, p, method=method)
        for k, each in enumerate(p):
            alone = rollout(model.at(each), start, np.zeros(3), 0.1, method=method)
            np.testing.assert_allclose(run.q[k], alone.q, rtol=0, atol=1e-12)
            assert abs(robot.closed.error(run.q[k])).max() < 1e-12


@pytest.mark.parametrize("method", ["rk4", "linearly_implicit"])
def test_gradients_with_respect_to_parameters_are_those_of_differences(device: str, method: str) -> None:
    names, rng = OF_LINK, np.random.default_rng(1)
    law, settings = drives(ARM, [0.5, -0.5], kp=30.0, kd=1.0), {"method": method, "step": 1e-2}
    (q0, v0), weights = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 11, 2))
    p, tau = ARM_ROWS[:, :4], {"controller": law} if method == "linearly_implicit" else {"controller": np.ones(2)}
    run = rollout(ARM.to(device=device).parametric(names), q0, v0, 0.1, p, **tau, **settings)
    *_, gradient = run.vjp(*weights)
    for j in range(4):
        step = 1e-6 * (np.arange(4) == j)
        both = [rollout(ARM.parametric(names), q0, v0, 0.1, p + s * step, **tau, **settings) for s in (1, -1)]
        costs = [(weights[0] * each.q + weights[1] * each.v).sum((1, 2)) for each in both]
        np.testing.assert_allclose(gradient[:, j], (costs[0] - costs[1]) / 2e-6, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["hard", "compliant"])
def test_gradients_with_respect_to_masses_pass_through_contact(kind: str) -> None:
    dog = torsor.library.quadruped().to(device="casadi")
    model, home = dog.parametric(["links.trunk.mass"]), dog.postures["home"]
    law = drives(dog, home, kp=60.0, kd=2.0)
    settings: dict[str, Any] = {"controller": law, "contact": Contact(kind=kind, stiffness=4e4), "step": 2e-3}
    run = rollout(model, home, np.zeros(18), 0.02, **settings)
    bar = np.zeros_like(run.v)
    bar[-1, 5] = 1.0
    *_, gradient = run.vjp(v_bar=bar)
    ends = [rollout(model, home, np.zeros(18), 0.02, model.values + s, **settings).v[-1, 5] for s in (1e-5, -1e-5)]
    assert abs(gradient[0]) > 1e-5
    assert gradient[0] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


# Environments.


def function(name: str, call: Any, **sizes: int) -> ca.Function:
    symbols = {each: ca.SX.sym(each, *np.atleast_1d(size)) for each, size in sizes.items()}
    return ca.Function(name, list(symbols.values()), [call(*symbols.values())], list(symbols), [name])


HEIGHT = function("reward", lambda q: q[0], q=2)
SEEN = function("observation", ca.vertcat, q=2, v=2, p=2)
LAW = drives(ARM, [0.1, -0.2], kp=300.0, kd=[2.0, 1.0])
SHORT: dict[str, Any] = {"step": 5e-3, "period": 0.01, "duration": 0.02}


def test_environments_step_with_the_parameters_of_their_rows(device: str) -> None:
    model = ARM.to(device=device).parametric(["links.link2.mass", "joints.joint1.coulomb"])
    rows = np.array([[0.5, 0.0], [2.0, 1.0], [4.0, 3.0]])
    own = Environments(model, 3, LAW, observation=SEEN, reward=HEIGHT, starts={"p": rows}, **SHORT)
    q, v = np.array(own.q), np.array(own.v)
    own.step(np.zeros((3, 2)))
    run = rollout(model, q, v, SHORT["period"], rows, controller=LAW, step=SHORT["step"])
    np.testing.assert_array_equal(own.q, run.q[:, -1])
    np.testing.assert_array_equal(own.observation[:, 4:], rows)
    result = own.step(np.zeros((3, 2)))
    assert result.truncated.all()  # new episodes have other rows
    assert (own.data["p"] != rows).all() and sorted(own.data["p"].tolist()) == rows.tolist()
    own.data["p"][...] = model.values
    plain = Environments(model, 3, LAW, observation=SEEN, reward=HEIGHT, **SHORT)
    own.reset(), plain.reset()
    own.data["p"][...] = model.values
    for each in (own, plain):
        each.step(np.ones((3, 2)))
    np.testing.assert_array_equal(own.q, plain.q)


def test_gradients_of_environments_are_those_with_the_parameters_of_each(device: str) -> None:
    model = ARM.to(device=device).parametric(["links.link2.mass"])
    seen, starts = function("observation", ca.vertcat, q=2, v=2), {"p": np.array([[0.5], [4.0]])}
    both, changed = np.random.default_rng(0).normal(size=(2, 2)), []
    own = Environments(model, 2, LAW, observation=seen, reward=HEIGHT, starts=starts, **SHORT)
    gradient = own.step(both).vjp(reward=np.ones(2)).action
    for j in range(2):
        for s in (1e-6, -1e-6):
            own.reset()
            changed.append(own.step(both + s * (np.arange(2) == j)).reward)
        np.testing.assert_allclose(gradient[:, j], (changed[-2] - changed[-1]) / 2e-6, rtol=1e-5)


def test_delays_of_actions_are_data() -> None:
    """Actions wait in data ``queue`` (N, K, n), from which each environment takes the one of its delay."""
    starts = {"queue": np.zeros((1, 3, 2)), "delay": np.array([0.0, 1.0, 2.0])}
    seen, given = function("observation", ca.vertcat, q=2, v=2), np.random.default_rng(0).normal(size=(6, 3, 2))
    settings = {"observation": seen, "reward": HEIGHT} | SHORT | {"duration": 0.04}
    own, late = (Environments(ARM, 3, LAW, starts=each, **settings) for each in (starts, {}))
    for k, action in enumerate(given):
        queue = own.data["queue"]
        queue[...] = np.concatenate([action[:, None], queue[:, :-1]], axis=1)
        delay = own.data["delay"].astype(int)
        own.step(queue[np.arange(3), delay])
        begun = 4 * (k // 4)  # episodes last 4 steps, and begin without actions
        late.step([given[k - d, i] if k - d >= begun else [0.0, 0.0] for i, d in enumerate(delay)])
        np.testing.assert_array_equal(own.q, late.q)


def test_wrong_input_is_refused() -> None:
    start, mass = (np.zeros(2), np.zeros(2), 0.1), ARM.parametric(["links.link2.mass"])
    dog, four_bar = torsor.library.quadruped(), torsor.library.four_bar()
    closed = four_bar.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    with refused(argument="p", fix="robot.parametric(paths)"):
        rollout(ARM, *start, [1.0])
    with refused(what="p has shape (2,)", allowed="(..., 1), one for each of links.link2.mass"):
        rollout(mass, *start, [1.0, 2.0])
    with refused(what="q0 (2,), v0 (), p (3,)", allowed="equal lengths, or 1"):
        rollout(mass, np.zeros((2, 2)), np.zeros(2), 0.1, np.ones((3, 1)))
    with refused(argument="method", value="implicit", fix="linearly_implicit"):
        rollout(mass, *start, method="implicit")
    with refused(what="contact cannot read", allowed="masses"):
        rollout(dog.parametric(["joints.fl_knee.origin"]), dog.neutral(), np.zeros(18), 0.1, contact=Contact())
    with refused(what="closed loops cannot read", allowed="masses"):
        rollout(four_bar.parametric(["joints.1.origin.x"]), closed, np.zeros(3), 0.1)
    with refused(fix="robot.at(p)", allowed="torsor.Robot"):
        torsor.simulate(mass)
    settings: dict[str, Any] = {"observation": HEIGHT, "reward": HEIGHT}
    with refused(argument="starts", value="p", fix="robot.parametric(paths)"):
        Environments(ARM, 1, LAW, starts={"p": np.ones((1, 1))}, **settings)
    with refused(argument="starts['p']", allowed="(rows, 1)"):
        Environments(mass, 1, LAW, starts={"p": np.ones((1, 2))}, **settings)
