"""A four-bar with a coupler that bends: closed loops of flexible links."""

import numpy as np
import pytest

import torsor
from torsor import library
from torsor.mechanism import flexible_links


@pytest.mark.slow
def test_a_four_bar_with_a_flexible_coupler() -> None:
    modes = flexible_links.beam(length=0.9, mass=0.5, bending=30.0, modes=(2, 0), coordinates="tip")
    robot = flexible_links.with_flexible_link(library.four_bar(), "coupler", modes)
    robot = robot.with_active(["crank_joint", "coupler/modes/1", "coupler/modes/2"])
    at, v, a, h = np.array([0.5, 0.01, 0.02]), np.array([1.0, 0.2, -0.3]), np.array([0.3, -0.2, 0.1]), 1e-6
    q = robot.closed.assemble(at)
    steps = np.eye(5) * h
    numerical = np.array([(robot.closed.error(q + e) - robot.closed.error(q - e)) / (2 * h) for e in steps]).T
    assert robot.closed.jacobian(q) == pytest.approx(numerical, abs=1e-9)
    tau = robot.closed.inverse_dynamics(q, v, a)
    assert robot.closed.forward_dynamics(q, v, tau) == pytest.approx(a, abs=1e-12)

    def forces(t: float, u: np.ndarray) -> np.ndarray:
        near = robot.closed.assemble(at + t * u, guess=q)
        return np.asarray(robot.closed.inverse_dynamics(near, v + t * u, a - t * u))

    u = np.array([0.4, -0.7, 0.9])
    dq, dv, da = robot.closed.derivatives.inverse_dynamics(q, v, a)
    change = (forces(h, u) - forces(-h, u)) / (2 * h)
    assert (dq + dv - da) @ u == pytest.approx(change, rel=1e-6, abs=1e-6)
    run = torsor.simulate(robot, q, robot.closed.velocities(q, v), duration=0.05, step=1e-4)
    energy = robot.kinetic_energy(run.q, run.v) + robot.potential_energy(run.q)
    assert energy == pytest.approx(np.full(len(energy), energy[0]), rel=1e-9)
    assert np.abs(robot.closed.error(run.q[-1])).max() < 1e-12
