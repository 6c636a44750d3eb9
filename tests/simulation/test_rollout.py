"""Rollouts with fixed steps: the motions of ``simulate``, their gradients, and rollouts on a GPU."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from refusals import refused
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.robot.target import Target
from torsor.simulation import rollout

ARM = torsor.library.two_link()


def damper() -> ca.Function:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return ca.Function("damper", [t, q, v], [-0.1 * v + ca.sin(t)])


@pytest.fixture(params=["cpu", "cuda"])
def arm(request: Any, monkeypatch: pytest.MonkeyPatch) -> torsor.Robot:
    device = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: device)
    return ARM.to(device=request.param)


@pytest.mark.parametrize("method", ["rk4", "implicit", "sdirk"])
def test_a_rollout_is_the_motion_of_simulate(arm: torsor.Robot, method: str) -> None:
    start = np.random.default_rng(0).normal(size=(2, 3, 2))
    settings: dict[str, Any] = {"controller": damper(), "method": method, "step": 1e-2}
    run = rollout(arm, *start, 0.1, **settings)
    truth = torsor.simulate(ARM, *start, 0.1, **settings)
    np.testing.assert_allclose(run.times, truth.times, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.q, truth.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.v, truth.v, rtol=0, atol=1e-12)


def test_constant_forces_and_thinned_samples(arm: torsor.Robot) -> None:
    tau, loads = np.array([0.1, -0.2]), np.zeros((4, 1, 2, 6))
    run = rollout(arm, np.zeros(2), np.ones((4, 3, 2)), 0.1, controller=tau, external=loads, step=1e-2, record=4)
    truth = torsor.simulate(ARM, np.zeros(2), np.ones((3, 2)), 0.1, controller=tau, step=1e-2)
    assert run.q.shape == (4, 3, 4, 2)
    np.testing.assert_allclose(run.q[0], truth.q[:, [0, 4, 8, 10]], rtol=0, atol=1e-13)


def test_sampled_forces_are_those_of_simulate(arm: torsor.Robot) -> None:
    times = np.linspace(0.0, 0.1, 8)
    signal = times, np.stack([np.sin(30 * times), times], axis=-1)
    starts = np.random.default_rng(0).normal(size=(3, 2))
    run = rollout(arm, starts, np.zeros(2), 0.1, controller=signal, step=1e-2)
    truth = torsor.simulate(ARM, starts, duration=0.1, controller=signal, step=1e-2)
    np.testing.assert_allclose(run.q, truth.q, rtol=0, atol=1e-13)


def test_a_rollout_stops_where_its_event_is_negative(arm: torsor.Robot) -> None:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    run = rollout(arm, np.zeros(2), np.array([[1.0, 0.0], [0.01, 0.0]]), 0.2, step=1e-2,
                  stop=ca.Function("stop", [t, q, v], [0.05 - q[0]]))  # fmt: skip
    free = rollout(arm, np.zeros(2), np.array([[1.0, 0.0], [0.01, 0.0]]), 0.2, step=1e-2)
    past = int(np.argmax(free.q[0, :, 0] > 0.05))
    assert (run.q[0, past:] == run.q[0, past]).all() and run.q[0, past, 0] > 0.05
    np.testing.assert_array_equal(run.q[1], free.q[1])


def test_gradients_are_those_of_differences(arm: torsor.Robot) -> None:
    rng = np.random.default_rng(1)
    q0, v0, tau = rng.normal(size=(3, 5, 2))
    weights = rng.normal(size=(2, 5, 11, 2))

    def cost(q0: Any, v0: Any, tau: Any) -> Any:
        run = rollout(ARM, q0, v0, 0.1, controller=tau, step=1e-2)
        return (weights[0] * run.q).sum((1, 2)) + (weights[1] * run.v).sum((1, 2))

    run = rollout(arm, q0, v0, 0.1, controller=tau, step=1e-2)
    gradients = run.vjp(*weights)
    for k, gradient in enumerate(gradients):
        for j in range(2):
            change = [np.zeros((5, 2)) for _ in range(3)]
            change[k][:, j] = 1e-6
            above, below = (cost(*(x + s * c for x, c in zip((q0, v0, tau), change, strict=True))) for s in (1, -1))
            np.testing.assert_allclose(gradient[:, j], (above - below) / 2e-6, rtol=1e-6, atol=1e-6)


def test_wrong_input_is_refused() -> None:
    with refused(argument="controller", where="two_link", allowed="an array, samples"):
        rollout(ARM, np.zeros(2), np.zeros(2), 0.1, controller=lambda t, q, v: -v)
    with refused(argument="controller", allowed="(..., 2)"):
        rollout(ARM, np.zeros(2), np.zeros(2), 0.1, controller=np.zeros(3))
    with refused(argument="controller", what="(3, 2)", fix="(times, values)"):
        rollout(ARM, np.zeros(2), np.zeros(2), 0.1, controller=np.zeros((3, 2)))
    with refused(allowed="record=1"):
        rollout(ARM, np.zeros(2), np.zeros(2), 0.01, record=2).vjp()
    with refused(fix="torsor.simulation.r"):
        torsor.simulate(replace(ARM, target=Target(device="cuda")))


def test_a_rollout_is_saved_drawn_and_pickled_without_its_gradients(tmp_path: Path) -> None:
    run = rollout(ARM.to(device="casadi"), np.zeros((3, 2)), np.ones(2), 0.01, step=5e-3)
    run.save(tmp_path / "run.npz")
    for again in (torsor.load_result(tmp_path / "run.npz"), pickle.loads(pickle.dumps(run))):
        assert repr(again) == repr(run) == "<Rollout of 'two_link': 3 x 3 samples, 0.01 s>"
        assert again.robot == ARM and again.q.tobytes() == np.ascontiguousarray(run.q).tobytes()
        assert again.settings["method"] == "rk4"
        with refused(fix="compute"):
            again.vjp()
    assert [axes.get_title() for axes in run.plot().axes] == ["Positions", "Velocities"]
    with refused(value="tau", allowed="q, v"):
        run.plot(what="tau")
    with refused(what="(3,) rollouts do not fit in a .csv file", fix="save a .npz file"):
        run.save(tmp_path / "run.csv")
