"""Motions against closed forms, laws of mechanics, and the order of the method."""

import zipfile
from pathlib import Path
from typing import Any

import casadi as ca
import mpmath
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.mechanism import Joint, Link

GRAVITY = 9.81


def pendulum(start: float, times: np.ndarray) -> np.ndarray:
    """Angle from the bottom of a thin rod of 1 m, let go at ``start``: 2 asin(k sn(K - w t, k))."""
    w, m = mpmath.sqrt(1.5 * GRAVITY), mpmath.sin(start / 2) ** 2
    quarter = mpmath.ellipk(m)
    sines = [mpmath.sqrt(m) * mpmath.ellipfun("sn", quarter - w * t, m=m) for t in times]
    return np.array([float(2 * mpmath.asin(s)) for s in sines])


def body(gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> torsor.Robot:
    link = Link("body", mass=2.0, com=(0.1, -0.05, 0.2), inertia=np.diag([0.02, 0.05, 0.06]))
    return torsor.build("body", [Link("ground"), link], [Joint("free", "free", "ground", "body")], gravity=gravity)


def states(robot: torsor.Robot, seed: int = 3, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=(*batch, robot.nv)))
    return q, rng.normal(size=(*batch, robot.nv))


ROBOTS = {
    "chain": lambda: torsor.library.planar_chain(3),
    "free body": lambda: body((0.0, 0.0, -9.81)),
    "ball joints": lambda: torsor.library.random_tree(3, 2, types=("spherical", "revolute")).without_friction(),
    "every joint": lambda: torsor.library.random_tree(7, 1, extras=False).without_friction(),
}


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    return ROBOTS[request.param]()


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-11), ("adaptive", 3e-7)])
def test_a_pendulum_agrees_with_its_closed_form(method: str, tolerance: float) -> None:
    rod = torsor.library.planar_chain(1, gravity=(0, -GRAVITY, 0))
    swing = torsor.simulate(rod, [2.0 - np.pi / 2], duration=2.0, method=method, record=0.05)
    expected = pendulum(2.0, swing.times)
    assert np.abs(swing.q[:, 0] + np.pi / 2 - expected).max() < tolerance


def test_the_order_is_four(robot: torsor.Robot) -> None:
    q, v = states(robot)
    duration = 0.32
    ends = [torsor.simulate(robot, q, v, duration, step=duration / n, record=duration) for n in (20, 40, 80, 1280)]
    exact = ends[-1]
    errors = [
        np.linalg.norm([*robot.difference(exact.q[-1], each.q[-1]), *(each.v[-1] - exact.v[-1])]) for each in ends[:-1]
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all(np.abs(orders - 4) < 0.4), (orders, errors)


def test_both_methods_agree(robot: torsor.Robot) -> None:
    q, v = states(robot)
    fixed = torsor.simulate(robot, q, v, 0.5, step=2e-3)
    adaptive = torsor.simulate(robot, q, v, 0.5, step=2e-3, method="adaptive", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fixed.times, adaptive.times, rtol=0, atol=1e-12)
    assert np.abs(robot.difference(fixed.q, adaptive.q)).max() < 1e-6
    assert np.abs(fixed.v - adaptive.v).max() < 1e-6 * max(1, np.abs(fixed.v).max())


def test_a_free_body_conserves_momentum_and_the_length_of_its_quaternion() -> None:
    robot = body()
    q, v = states(robot)
    spin = torsor.simulate(robot, q, 3 * v, 10.0, record=0.1)
    momentum = robot.momentum(spin.q, spin.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-8 * np.abs(momentum).max()
    assert np.abs(np.linalg.norm(spin.q[:, 3:], axis=-1) - 1).max() < 4e-16
    assert np.ptp(spin.energy) < 1e-10 * spin.energy[0]


def test_energy_of_a_frictionless_chain_is_conserved_to_the_order_of_the_method() -> None:
    chain = torsor.library.planar_chain(2)
    drifts = [
        np.ptp(torsor.simulate(chain, [0.3, 0.4], duration=20.0, step=h, record=0.02).energy) for h in (2e-3, 1e-3)
    ]
    assert drifts[0] < 1e-5
    assert drifts[0] / drifts[1] > 12  # order 4 or better: the drift of RK4 is of order 5


def test_a_batch_equals_its_rollouts_bit_for_bit(robot: torsor.Robot) -> None:
    q, v = states(robot, batch=(5,))
    together = torsor.simulate(robot, q, v, 0.05)
    for i in range(5):
        alone = torsor.simulate(robot, q[i], v[i], 0.05)
        for name in ("q", "v", "a", "tau"):
            assert np.array_equal(getattr(together[i], name), getattr(alone, name)), name


def test_adaptive_integrates_rollouts_one_by_one() -> None:
    robot = torsor.library.two_link()
    q, v = states(robot, batch=(2, 2))
    together = torsor.simulate(robot, q, v, 0.1, method="adaptive", record=0.05)
    assert together.q.shape == (2, 2, 3, 2)
    assert np.array_equal(
        together.q[1, 0], torsor.simulate(robot, q[1, 0], v[1, 0], 0.1, method="adaptive", record=0.05).q
    )


def test_adaptive_solves_stiff_friction_and_springs() -> None:
    arm = torsor.library.two_link()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    stiff = ca.Function("stiff", [t, q, v], [1e7 * (0.5 - q) - 1e5 * v])
    with refused(fix="adaptive", error=torsor.SimulationError):
        torsor.simulate(arm, controller=stiff, duration=0.5)
    with warned(what="the drive of joint1 needs 5e+06 N m at t = 0 s, which exceeds its limit of 10 N m"):
        held = torsor.simulate(arm, controller=stiff, duration=0.5, method="adaptive", record=0.1)
    assert np.abs(held.q[-1] - 0.5).max() < 1e-5
    assert np.abs(arm.inverse_dynamics(held.q, held.v, held.a) - held.tau).max() < 1e-6 * np.abs(held.tau).max()


def test_adaptive_rejects_discontinuous_friction_but_not_smooth_friction() -> None:
    rod = torsor.library.planar_chain(1).with_friction("joint1", coulomb=8.0)
    with refused(fix="smooth=", error=torsor.SimulationError):
        torsor.simulate(rod, duration=2.0, method="adaptive")
    rod = rod.with_friction("joint1", smooth=1e-3)
    still = torsor.simulate(rod, [-0.5], duration=2.0, method="adaptive", record=0.1)
    assert np.abs(still.v[-1]).max() < 1e-3
    assert np.ptp(still.q) < 2e-3


def test_energy_of_elastic_joints_is_conserved(tmp_path: Path) -> None:
    arm = torsor.library.elastic_arm().without_friction()
    q, v = states(arm)
    swing = torsor.simulate(arm, 0.1 * q, v, 0.5, step=2e-4, record=0.01)
    assert swing.q.shape == (51, arm.nq)
    assert np.ptp(swing.energy) < 1e-6 * np.abs(swing.energy).max()
    swing.save(tmp_path / "arm.csv")
    assert "/motor [rad]" in (tmp_path / "arm.csv").read_text().splitlines()[0]
    swing.save(tmp_path / "arm.npz")
    assert torsor.Trajectory.load(tmp_path / "arm.npz").robot == arm


def test_recorded_accelerations_reactions_and_energies_agree_with_the_robot() -> None:
    robot = torsor.library.random_tree(3, 3, types=("spherical", "revolute", "prismatic"))
    q, v = states(robot)
    force = np.linspace(-1, 1, robot.nv)
    wrenches = np.random.default_rng(0).normal(size=(3, 6))
    motion = torsor.simulate(robot, q, v, 0.02, controller=force, external=wrenches)
    assert np.allclose(robot.inverse_dynamics(motion.q, motion.v, motion.a, wrenches), force, atol=1e-9)
    assert np.array_equal(motion.reactions, robot.joint_wrenches(motion.q, motion.v, motion.a, wrenches))
    assert np.array_equal(motion.energy, motion.kinetic_energy + robot.potential_energy(motion.q))


def test_states_between_samples(robot: torsor.Robot) -> None:
    q, v = states(robot)
    fine = torsor.simulate(robot, q, v, 0.2, step=1e-3)
    coarse = torsor.simulate(robot, q, v, 0.2, step=1e-3, record=0.01)
    now = coarse.at(fine.times)
    assert np.abs(robot.difference(fine.q, now.q)).max() < 1e-5
    assert np.abs(fine.v - now.v).max() < 3e-5 * np.abs(fine.v).max()
    assert np.allclose(coarse.at(0.1).q, coarse.q[10], atol=1e-12)


def test_float32_and_casadi_robots_simulate_too() -> None:
    chain = torsor.library.planar_chain(2)
    exact = torsor.simulate(chain, duration=0.2)
    assert np.abs(torsor.simulate(chain.to(dtype="float32"), duration=0.2).q - exact.q).max() < 1e-4
    assert np.abs(torsor.simulate(chain.to(dtype="float32"), duration=0.2, method="adaptive").q - exact.q).max() < 1e-6
    slow = torsor.simulate(chain.to(device="casadi"), duration=0.02)
    assert np.abs(slow.q - exact.q[:21]).max() < 1e-12
    shared = torsor.simulate(chain.to(threads=2), q0=np.zeros((600, 2)), duration=0.02)
    assert np.array_equal(shared.q[7], exact.q[:21])


def test_a_robot_that_does_not_move() -> None:
    block = torsor.build("block", [Link("ground", mass=1.0)], [])
    assert torsor.simulate(block, duration=0.01).q.shape == (11, 0)


def test_steps_in_one_call_are_those_that_are_taken_one_by_one() -> None:
    robot, v0 = torsor.library.two_link(), [[1.0, 2.0], [-1.0, 0.5]]

    def never(t: float, q: Any, v: Any) -> Any:  # an event has every step looked at
        return np.ones(q.shape[:-1])

    for start in (v0, v0[0]):
        settings: dict[str, Any] = {"duration": 3.0, "record": 0.007, "controller": [0.1, -0.2]}
        together = torsor.simulate(robot, v0=start, **settings)
        single = torsor.simulate(robot, v0=start, events=never, **settings)
        assert all(
            np.array_equal(getattr(together, name), getattr(single, name)) for name in ("times", "q", "v", "tau")
        )


def test_steps_that_are_too_long_for_springs_are_named_by_simulate_and_the_fmu(tmp_path) -> None:
    arm, q = torsor.library.elastic_seven_axis_arm(), 1e-3 * np.eye(14)[6]
    with pytest.warns(torsor.ModelWarning, match=r"too long for the springs: the largest stable step is about 0.0007"):
        assert np.abs(torsor.simulate(arm, q, duration=0.01).v).max() > 1e3
    with pytest.warns(torsor.ModelWarning, match="too long for the springs"):
        torsor.export.fmi(arm, tmp_path / "arm.fmu", binary=False)
    torsor.export.fmi(arm, tmp_path / "arm.fmu", step=7e-4, binary=False)
    text = zipfile.ZipFile(tmp_path / "arm.fmu").read("modelDescription.xml").decode()
    assert "generalised force of joint7/motor at the gear output: shaft torque x ratio" in text
    assert "generalised force of joint7: torque on the link in addition to the spring, usually 0" in text
    assert np.abs(torsor.simulate(arm, q, duration=0.1, step=7e-4).v).max() < 5
    assert np.abs(torsor.simulate(arm, q, duration=0.01, method="implicit").v).max() < 5
