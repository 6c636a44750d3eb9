"""Force rates and sensitivities reproduce the reference numbers of Barman 2020 and Guarino Lo Bianco 2009."""

import json
from pathlib import Path

import numpy as np
import pytest

from .test_targets import assert_same, dh_robot, mdh_robot

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())


def test_modified_dh_has_the_published_force_rates():
    data = TARGETS["002_general"]
    robot, state = mdh_robot(data["robot"]), [data[key] for key in ("q", "qd", "qdd", "qddd")]
    tau, rate = robot.force_rate(*state)
    assert_same(tau, data["tau"])
    assert_same(rate, data["taudot"])


def test_modified_dh_has_the_published_rates_of_reactions():
    data = TARGETS["002_general"]
    robot, state = mdh_robot(data["robot"]), [data[key] for key in ("q", "qd", "qdd", "qddd")]
    wrench, rate = robot.joint_wrench_rates(*state)
    # The paper has rates as an observer at rest sees them.
    w = robot.velocities(data["q"], data["qd"])[:, :3]
    assert_same(rate[:, 3:] + np.cross(w, wrench[:, 3:]), data["fdot"])
    origin = robot.velocities(data["q"], data["qd"])[:, 3:]
    assert origin.shape == w.shape
    assert_same(rate[:, :3] + np.cross(w, wrench[:, :3]), data["ndot"])


def quintic(t, duration=2.0):
    s = t / duration
    return (
        10 * s**3 - 15 * s**4 + 6 * s**5,
        (30 * s**2 - 60 * s**3 + 30 * s**4) / duration,
        (60 * s - 180 * s**2 + 120 * s**3) / duration**2,
        (60 - 360 * s + 360 * s**2) / duration**3,
    )


@pytest.mark.parametrize("step", ["0.001", "0.01"])
def test_stanford_arm_differs_from_backward_differences_as_published(step):
    data, h = TARGETS["002_stanford"], float(step)
    robot, start = mdh_robot(data["robot"]), np.array(data["Q0"])
    t = np.arange(0, round(2.0 / h) + 1)[:, None] * h
    s, *rates = quintic(t)
    way = np.array(data["Q1"]) - start
    tau, rate = robot.force_rate(start + way * s, *(way * each for each in rates))
    difference = np.abs(rate[1:] - np.diff(tau, axis=0) / h).max(axis=0)
    np.testing.assert_allclose(difference, data["max_abs_dtaudot"]["quintic"][step], rtol=1e-5)


def test_stanford_arm_has_the_published_force_rates_along_its_move():
    data = TARGETS["002_stanford"]
    robot = mdh_robot(data["robot"])
    for sample in data["samples"]:
        _, rate = robot.force_rate(*(sample[key] for key in ("q", "qd", "qdd", "qddd")))
        np.testing.assert_allclose(rate, sample["taudot"], rtol=0, atol=1e-11)


def test_standard_dh_has_the_published_sensitivities():
    """The paper's load is fixed in the world; the effect of its rotation enters through the Jacobians here."""
    data, load = TARGETS["001_general"], TARGETS["001_general"]["ext"]
    robot, state = dh_robot(data["robot"]), (data["q"], data["qd"], data["qdd"])
    k = load["k"] - 1
    R = robot.poses(data["q"])[k, :3, :3]
    force, torque = R.T @ load["F0"], R.T @ load["tau0"]
    lever = np.array(load["r_k"])
    external = np.zeros((robot.nv, 6))
    external[k] = -np.concatenate([torque + np.cross(lever, force), force])
    dq, dv, da = robot.derivatives.inverse_dynamics(*state, external=external)
    J = robot.jacobian(data["q"], k)
    turning = np.zeros((6, robot.nv))
    for i in range(robot.nv):  # the components of what is fixed in the world turn back as the link turns
        moment_rate, force_rate = (-np.cross(J[:3, i], x) for x in (torque, force))
        turning[:, i] = np.concatenate([moment_rate + np.cross(lever, force_rate), force_rate])
    assert_same(dq + J.T @ turning, data["dtau_dq"], 1e-11)
    assert_same(dv, data["dtau_dqd"], 1e-11)
    assert_same(da, data["dtau_dqdd"], 1e-11)
