"""Dynamics with closed loops agrees with the equations with multipliers, and loop forces do no work."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.spatial import make_pose

from .loaded import driven
from .mechanisms import KINDS, four_bar, slider_crank

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())
CASES = [kind for kind in KINDS if kind != "weld"]


def with_multipliers(robot: torsor.Robot, q: np.ndarray, v: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Accelerations of all coordinates from M a + h = B tau + A^T lambda and A a = -drift, by least squares."""
    active = [robot.coordinate_names.index(name) for name in robot.active]
    A, M, h = robot.closed.jacobian(q), robot.mass_matrix(q, loops="open"), robot.bias_force(q, v, loops="open")
    _, A_rate = robot.derivatives.jvp("closure_jacobian", (q,), (v,))
    B = np.eye(robot.nv)[:, active]
    system = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    return np.linalg.lstsq(system, np.r_[B @ forces - h, -A_rate @ v], rcond=None)[0][: robot.nv]


@pytest.mark.parametrize("kind", CASES)
def test_projection_and_multipliers_agree(kind: str) -> None:
    robot, q = driven(kind)
    rng = np.random.default_rng(2)
    x, x_rate = rng.normal(size=(2, len(robot.active)))
    v, a = robot.closed.accelerations(q, x, x_rate)
    np.testing.assert_allclose(robot.closed.jacobian(q) @ v, 0, atol=1e-9)
    tau = robot.closed.inverse_dynamics(q, x, x_rate)
    np.testing.assert_allclose(with_multipliers(robot, q, v, tau), a, rtol=0, atol=1e-10 * np.abs(a).max())
    again = robot.closed.forward_dynamics(q, x, tau)
    np.testing.assert_allclose(again, x_rate, rtol=0, atol=1e-10 * max(1.0, np.abs(x_rate).max()))


@pytest.mark.parametrize("kind", CASES)
def test_the_drives_give_what_the_energy_gains(kind: str) -> None:
    robot, q = driven(kind)
    rng = np.random.default_rng(4)
    x, x_rate = rng.normal(size=(2, len(robot.active)))
    v, a = robot.closed.accelerations(q, x, x_rate)
    power = robot.closed.inverse_dynamics(q, x, x_rate) @ x
    _, kinetic = robot.derivatives.jvp("kinetic_energy", (q, v), (v, a))
    _, potential = robot.derivatives.jvp("potential_energy", (q,), (v,))
    assert power == pytest.approx(kinetic + potential, rel=1e-10)


def test_external_wrenches_are_felt_by_the_drives() -> None:
    robot, q = driven("revolute")
    external = np.random.default_rng(5).normal(size=(len(robot.links), 6))
    x, rest = np.ones(len(robot.active)), np.zeros(len(robot.active))
    more = robot.closed.inverse_dynamics(q, rest, rest, external)
    more = more - robot.closed.inverse_dynamics(q, rest, rest)
    v = robot.closed.velocities(q, x)
    assert more @ x == pytest.approx(-float((external * robot.velocities(q, v)).sum()), rel=1e-9)
    tau = robot.closed.inverse_dynamics(q, x, x, external)
    np.testing.assert_allclose(robot.closed.forward_dynamics(q, x, tau, external), x, atol=1e-10)


def test_the_five_bar_of_khalil_2010() -> None:
    data = TARGETS["003_fivebar"]
    table, rows = data["robot"], []
    for k in range(4):
        mass, J = table["M"][k], np.array(table["J"][k])
        c = np.array(table["MS"][k]) / mass
        inertia = J - mass * (c @ c * np.eye(3) - np.outer(c, c))
        link = {"mass": mass, "com": c, "inertia": inertia, "rotor_inertia": table["Ia"][k]}
        rows.append(torsor.MDHLink(parent=table["ant"][k], d=table["d"][k], **link))
    robot = torsor.from_mdh(rows, gravity=table["g"])
    for link, length in (("link2", data["L"][1]), ("link4", data["L"][3])):
        robot = robot.with_frame(f"{link}_tip", link, make_pose(p=[length, 0, 0]))
    robot = robot.with_loop("tip", "link2_tip", "link4_tip").with_active(["joint1", "joint3"])
    q, v, a = (np.array(data[name]) for name in ("q", "qd", "qdd"))
    active = [0, 2]
    np.testing.assert_allclose(robot.closed.assemble(q[active], guess=q + 0.1), q, atol=1e-12)
    found_v, found_a = robot.closed.accelerations(q, v[active], a[active])
    np.testing.assert_allclose(found_v, v, atol=1e-12)
    np.testing.assert_allclose(found_a, a, atol=1e-12)
    tau = robot.closed.inverse_dynamics(q, v[active], a[active])
    np.testing.assert_allclose(tau, data["Gamma_c"], rtol=1e-12)
    np.testing.assert_allclose(robot.closed.forward_dynamics(q, v[active], tau), a[active], rtol=1e-11)


def test_of_redundant_drives_the_forces_are_least() -> None:
    single, robot = four_bar(), four_bar().with_active(["joint1", "joint3"])
    q = single.closed.assemble([0.7], guess=[0.5, 1.0, 1.5])
    v, a = single.closed.accelerations(q, [0.8], [1.5])
    alone = single.closed.inverse_dynamics(q, [0.8], [1.5])[0]
    ratio = v[2] / v[0]
    for share in (np.ones(2), np.array([1.0, 4.0])):
        tau = robot.closed.inverse_dynamics(q, v[[0, 2]], a[[0, 2]], share=share)
        assert tau @ [1.0, ratio] == pytest.approx(alone, rel=1e-10)  # they do the same work
        assert tau[1] / share[1] == pytest.approx(ratio * tau[0] / share[0], rel=1e-10)  # and are least


def test_batches_and_elastic_joints() -> None:
    robot = slider_crank()
    angle = np.linspace(0.3, 2.5, 6)[:, None]
    q = robot.closed.assemble(angle, guess=[0.0, 0.0, 1.1])
    tau = robot.closed.inverse_dynamics(q, np.ones(1), np.zeros(1))
    assert tau.shape == (6, 1)
    np.testing.assert_allclose(robot.closed.inverse_dynamics(q[2], [1.0], [0.0]), tau[2], rtol=1e-13)
    soft = robot.with_spring("slide", 50.0, rest=0.9)
    extra = soft.closed.inverse_dynamics(q, np.ones(1), np.zeros(1)) - tau
    slope = robot.closed.velocities(q, np.ones(1))[:, 2:]
    np.testing.assert_allclose(extra, 50.0 * (q[:, 2:] - 0.9) * slope, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", CASES)
def test_what_the_loops_pass_on_is_all_that_the_drives_do_not_give(kind: str) -> None:
    robot, q = driven(kind)
    x, x_rate = np.random.default_rng(6).normal(size=(2, len(robot.active)))
    v, a = robot.closed.accelerations(q, x, x_rate)
    given = np.zeros(robot.nv)
    given[[robot.coordinate_names.index(name) for name in robot.active]] = robot.closed.inverse_dynamics(q, x, x_rate)
    passed = robot.closed.jacobian(q).T @ robot.closed.loop_forces(q, x, x_rate)
    tau = robot.inverse_dynamics(q, v, a, loops="open")
    np.testing.assert_allclose(given + passed, tau, rtol=0, atol=1e-10 * max(1.0, np.abs(tau).max()))
