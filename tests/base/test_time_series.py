"""``result.at(t)`` has one contract for every result with a time axis: values, shapes, and rejected times."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.human.measured import MeasuredDynamics, MeasuredMotion
from torsor.human.measured.gait import MeasuredGait
from torsor.identification import Excitation
from torsor.simulation import rollout

ARM = torsor.library.two_link().to(device="casadi")
ALL = ("q", "v", "a", "tau")


def simulated(**more: Any) -> torsor.Trajectory:
    return torsor.simulate(ARM, [0.3, -0.2], [1.0, 0.5], 0.1, step=0.01, **more)


def floating() -> torsor.Trajectory:
    body = torsor.library.quadruped().to(device="casadi")
    return torsor.simulate(body, v0=np.linspace(-1.0, 1.0, body.nv), duration=0.02, step=0.005)


def closed() -> torsor.Trajectory:
    robot = torsor.library.four_bar().to(device="casadi")
    return torsor.simulate(robot, robot.closed.assemble(np.full(len(robot.active), 0.6)), duration=0.05, step=0.01)


def solved(*phases: motion.Phase) -> motion.MotionResult:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    return motion.MotionProblem(torsor.library.two_link(), list(phases), motion.Effort(), ends).solve()


def measured(dynamics: bool) -> MeasuredGait:
    t = np.linspace(1.0, 2.0, 11)
    q, v, a = (np.stack([np.sin(t + k), np.cos(t)], axis=1) for k in range(3))
    found = MeasuredMotion(ARM, None, t, q, np.zeros((11, 1)), np.ones(11, bool), np.ones(11, bool))  # type: ignore[arg-type]
    own = MeasuredDynamics(ARM.coordinate_names, t, q, v, a, q + v, v, a, 700.0) if dynamics else None
    return MeasuredGait(found, 70.0, own)


class Periodic(Excitation):
    """An excitation with the sampled quantities of other results."""

    times = np.linspace(-1.0, 3.0, 9)

    def __getattr__(self, name: str) -> Any:
        return self.robot.inverse_dynamics(*self(self.times)) if name == "tau" else self(self.times)["qva".index(name)]


def states(gait: MeasuredGait) -> dict[str, np.ndarray]:
    found = gait.dynamics
    return {"q": gait.motion.q} if found is None else {"q": found.q, "v": found.v, "a": found.a, "tau": found.forces}


LINE = {"velocity": 1.0, "acceleration": 2.0}
KINDS: dict[str, Callable[[], Any]] = {
    "trajectory": simulated,
    "trajectory under held forces": lambda: simulated(
        controller=lambda t, q, v: -q - np.sin(40 * t), control_period=0.02
    ),
    "trajectories": lambda: torsor.simulate(ARM, np.zeros((3, 4, 2)), np.ones(2), 0.1, step=0.01),
    "trajectory of a floating base": floating,
    "trajectory with loops": closed,
    "rollouts": lambda: rollout(torsor.library.two_link(), np.zeros((5, 2)), np.ones(2), 0.01),
    "motion": lambda: solved(motion.Phase(1.0, points=8)),
    "motion of two phases": lambda: solved(motion.Phase(0.5, points=6), motion.Phase((0.2, 0.8), points=6)),
    "retimed": lambda: motion.retime(ARM, [[0.0, 0.0], [1.0, 0.5], [0.0, 1.0]], **LINE),
    "retimed with bounded jerk": lambda: motion.retime(ARM, [[0.0, 0.0], [1.0, 0.5]], **LINE, jerk=20.0),
    "excitation": lambda: Periodic(ARM, 2.0, 0.1 * np.arange(10.0).reshape(5, 2), 1.0, 1.0),
    "measured angles": lambda: measured(False),
    "measured gait": lambda: measured(True),
}


@cache
def result(kind: str) -> Any:
    return KINDS[kind]()


def sampled(kind: str) -> dict[str, np.ndarray]:
    """The quantities of a result at its own times."""
    found = result(kind)
    if isinstance(found, MeasuredGait):
        return states(found)
    return {name: getattr(found, name) for name in ALL if name in "qv" or kind != "rollouts"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_has_its_samples_at_their_times(kind: str) -> None:
    found = result(kind)
    own, now = sampled(kind), found.at(found.times)
    for name, values in own.items():
        if kind == "motion of two phases" and name in ("a", "tau"):
            continue  # accelerations jump where phases meet
        np.testing.assert_allclose(getattr(now, name), values, rtol=0, atol=1e-9 * (1 + np.abs(values).max()))
    assert [name for name in ALL if hasattr(now, name)] == list(own)


@pytest.mark.parametrize("kind", KINDS)
def test_one_time_and_times_of_any_shape_give_the_same(kind: str) -> None:
    found, own = result(kind), sampled(kind)
    first, last = float(found.times[0]), float(found.times[-1])
    times = first + (last - first) * np.array([[0.0, 0.31, 0.5], [0.77, 0.999, 1.0]])
    now, flat, batch = found.at(times), found.at(times[1, ::-1].tolist()), own["q"].shape[:-2]
    for name, samples in own.items():
        values = getattr(now, name)
        assert values.shape == (*batch, 2, 3, samples.shape[-1])
        near = {"rtol": 0, "atol": 1e-12 * (1 + np.abs(values).max())}
        np.testing.assert_allclose(getattr(flat, name), values[..., 1, ::-1, :], **near)
        for t in (float(times[0, 1]), times[0, 1], np.array(times[0, 1])):
            np.testing.assert_allclose(getattr(found.at(t), name), values[..., 0, 1, :], **near)
        assert getattr(found.at([]), name).shape == (*batch, 0, samples.shape[-1])
    after = last + 1e-10 * (last - first)  # rounding
    assert np.allclose(found.at(after).q, found.at(last).q, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_times_outside_of_the_motion_are_refused(kind: str) -> None:
    found = result(kind)
    outside = [] if kind == "excitation" else [found.times[0] - 0.01, float(found.times[-1]) + 0.01]
    for t in (*outside, *([0.0, each] for each in outside), np.nan, [found.times[0], np.nan], np.inf, "soon", True):
        with refused(argument="t"):
            found.at(t)
    if outside:
        with refused(allowed=f"times from {found.times[0]:.6g} to {found.times[-1]:.6g} s", value=99.0):
            found.at(99.0)


@pytest.mark.parametrize("kind", ["trajectory", "trajectory of a floating base", "motion", "retimed with bounded jerk"])
def test_velocities_are_rates_of_positions(kind: str) -> None:
    found, h = result(kind), 1e-6
    t = found.times[1:-1] + 0.3 * np.diff(found.times[1:])
    rate = found.robot.difference(found.at(t - h).q, found.at(t + h).q) / (2 * h)
    np.testing.assert_allclose(rate, found.at(t).v, rtol=0, atol=2e-3 * (1 + np.abs(rate).max()))
    np.testing.assert_allclose((found.at(t + h).v - found.at(t - h).v) / (2 * h), found.at(t).a, rtol=0, atol=1e-3)
