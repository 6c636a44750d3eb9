"""The library reproduces reference numbers of the published forms: forces, reactions, motions, A and H, to 1e-12."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())
JOINT = {"R": "revolute", "P": "prismatic", 0: "revolute", 1: "prismatic"}


def assert_same(actual, expected, tolerance=1e-12):
    """Assert agreement relative to the largest component."""
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def pose(R, p):
    return np.block([[np.asarray(R), np.reshape(p, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])


def spatial_inertia(inertia, mass):
    return np.block([[np.asarray(inertia), np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])


# Lie algebra: screws and home poses


@pytest.fixture(scope="module")
def screws():
    data = TARGETS["000"]
    home = [pose(M["R"], M["p"]) for M in data["M0"]]
    inertias = [spatial_inertia(J, m) for J, m in zip(data["I_com"], data["mass"], strict=True)]
    robot = torsor.from_screws(home, data["S"], inertias, gravity=data["gravity"])
    return robot, data, (data["theta"], data["dtheta"], data["ddtheta"])


def test_screws_have_the_published_forces(screws):
    robot, data, state = screws
    assert_same(robot.inverse_dynamics(*state), data["tau"])


def test_screws_have_the_published_wrenches(screws):
    robot, data, state = screws
    assert_same(robot.joint_wrenches(*state), data["F"])


def test_screws_have_the_published_twists(screws):
    robot, data, (q, v, _) = screws
    assert_same(robot.velocities(q, v), data["V"])


def test_screws_have_the_published_twist_rates(screws):
    """V' is the rate of components and starts from -g; the library's acceleration is that of the point, without g."""
    robot, data, (q, v, a) = screws
    rate = robot.accelerations(q, v, a)
    R, V = robot.poses(q)[:, :3, :3], robot.velocities(q, v)
    rate[:, 3:] -= np.cross(V[:, :3], V[:, 3:]) + np.asarray(data["gravity"]) @ R
    assert_same(rate, data["Vdot"])


def test_screws_have_the_published_transforms(screws):
    robot, data, (q, _, _) = screws
    T = np.concatenate([np.eye(4)[None], robot.poses(q)])
    assert_same(np.linalg.inv(T[1:]) @ T[:-1], [pose(each["R"], each["p"]) for each in data["T_i_im1"]])


def test_planar_screws_have_the_published_forces():
    data = TARGETS["000_planar2R"]
    home = [pose(np.eye(3), [0.5, 0, 0]), pose(np.eye(3), [1.5, 0, 0])]
    axes = [[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]]
    inertia = spatial_inertia(np.diag([0.01, 0.08, 0.08]), 1.0)
    robot = torsor.from_screws(home, axes, [inertia, inertia], gravity=(0, -9.81, 0))
    assert_same(robot.inverse_dynamics(data["theta"], data["dtheta"], data["ddtheta"]), data["tau"])


# Standard Denavit-Hartenberg


def dh_robot(data):
    rows = zip(*(data[key] for key in ("theta", "d", "a", "alpha", "type", "m", "r", "I")), strict=True)
    links = [
        torsor.DHLink(theta=theta, d=d, a=a, alpha=alpha, joint=JOINT[kind], mass=m, com=r, inertia=J)
        for theta, d, a, alpha, kind, m, r, J in rows
    ]
    return torsor.from_dh(links, gravity=-np.asarray(data["up"]))


def proximal(robot_data, q, wrenches):
    """Forces and moments at O_{j-1} from wrenches at O_j, in frame j, where O_j is (a, d sin, d cos) from O_{j-1}."""
    d = np.asarray(robot_data["d"]) + np.where(np.array(robot_data["type"]) == "P", q, 0.0)
    alpha = np.asarray(robot_data["alpha"])
    lever = np.stack([robot_data["a"], d * np.sin(alpha), d * np.cos(alpha)], axis=-1)
    return wrenches[:, 3:], wrenches[:, :3] + np.cross(lever, wrenches[:, 3:])


def test_standard_dh_has_the_published_forces_and_reactions_under_load():
    data, load = TARGETS["001_general"], TARGETS["001_general"]["ext"]
    robot, state = dh_robot(data["robot"]), (data["q"], data["qd"], data["qdd"])
    R = robot.poses(data["q"])[load["k"] - 1, :3, :3]
    force = R.T @ load["F0"]
    external = np.zeros((robot.nv, 6))  # the target's load is what the robot does to the environment
    external[load["k"] - 1] = -np.concatenate([R.T @ load["tau0"] + np.cross(load["r_k"], force), force])
    assert_same(robot.inverse_dynamics(*state, external=external), data["tau"])
    Fp, Tp = proximal(data["robot"], data["q"], robot.joint_wrenches(*state, external=external))
    assert_same(Fp, data["Fp"])
    assert_same(Tp, data["Tp"])


@pytest.mark.parametrize("example", ["twoR", "PR"])
def test_examples_have_the_published_forces_and_reactions(example):
    data = TARGETS["001_examples"][example]
    robot, state = dh_robot(data["robot"]), (data["q"], data["qd"], data["qdd"])
    assert_same(robot.inverse_dynamics(*state), data["tau"])
    Fp, Tp = proximal(data["robot"], data["q"], robot.joint_wrenches(*state))
    assert_same(Fp, data["Fp"])
    assert_same(Tp, data["Tp"])


# Modified Denavit-Hartenberg


def mdh_robot(data):
    rows = zip(*(data[key] for key in ("alpha", "a", "theta", "d", "type", "m", "c", "I")), strict=True)
    links = [
        torsor.MDHLink(i - 1, alpha=alpha, d=a, theta=theta, r=d, joint=JOINT[kind], mass=m, com=c, inertia=J)
        for i, (alpha, a, theta, d, kind, m, c, J) in enumerate(rows)
    ]
    return torsor.from_mdh(links, gravity=data["g"])


def test_modified_dh_has_the_published_forces_and_reactions():
    data = TARGETS["002_general"]
    robot, state = mdh_robot(data["robot"]), (data["q"], data["qd"], data["qdd"])
    assert_same(robot.inverse_dynamics(*state), data["tau"])
    wrenches = robot.joint_wrenches(*state)
    assert_same(wrenches[:, 3:], data["f"])
    assert_same(wrenches[:, :3], data["n"])


def test_modified_dh_has_the_published_forces_under_a_load_at_the_tip():
    data, tip = TARGETS["002_general"], TARGETS["002_general"]["tip"]
    robot, state = mdh_robot(data["robot"]), (data["q"], data["qd"], data["qdd"])
    force = np.asarray(tip["R"]) @ tip["f"]
    external = np.zeros((robot.nv, 6))
    external[-1] = -np.concatenate([np.asarray(tip["R"]) @ tip["n"] + np.cross(tip["p"], force), force])
    assert_same(robot.inverse_dynamics(*state, external=external), tip["tau"])


def test_stanford_arm_has_the_published_forces_along_its_move():
    data = TARGETS["002_stanford"]
    q, v, a, tau = (np.array([sample[key] for sample in data["samples"]]) for key in ("q", "qd", "qdd", "tau"))
    assert_same(mdh_robot(data["robot"]).inverse_dynamics(q, v, a), tau)


# Trees of six parameters


@pytest.fixture(scope="module")
def tree():
    data = TARGETS["003_tree"]
    robot = data["robot"]
    links = []
    for j in range(robot["n"]):
        m, c = robot["M"][j], np.array(robot["MS"][j]) / robot["M"][j]
        links.append(
            torsor.MDHLink(
                robot["ant"][j],
                **{key: robot[key][j] for key in ("gamma", "b", "alpha", "d", "theta", "r")},
                joint=JOINT[robot["sigma"][j]],
                mass=m,
                com=c,
                inertia=robot["J"][j] - m * (c @ c * np.eye(3) - np.outer(c, c)),
                rotor_inertia=robot["Ia"][j],
                coulomb=robot["Fs"][j],
                viscous=robot["Fv"][j],
            )
        )
    external = -np.concatenate([data["me"], data["fe"]], axis=1)
    return torsor.from_mdh(links, gravity=robot["g"]), data, external


def test_tree_has_the_published_forces(tree):
    robot, data, external = tree
    assert_same(robot.inverse_dynamics(data["q"], data["qd"], data["qdd"], external=external), data["Gamma"])


def test_tree_has_the_published_reactions(tree):
    robot, data, external = tree
    wrenches = robot.joint_wrenches(data["q"], data["qd"], data["qdd"], external=external)
    assert_same(wrenches[:, 3:], data["f"])
    assert_same(wrenches[:, :3], data["m"])


def test_tree_has_the_published_inertia_matrix(tree):
    robot, data, _ = tree
    assert_same(robot.mass_matrix(data["q"]), data["A"])


def test_tree_has_the_published_bias(tree):
    """H holds friction, as the library's bias force does, and the loads, which here enter through the Jacobians."""
    robot, data, external = tree
    loads = sum(robot.jacobian(data["q"], link).T @ w for link, w in zip(robot.link_names, external, strict=True))
    assert_same(robot.bias_force(data["q"], data["qd"]) - loads, data["H"])
    assert_same(robot.inverse_dynamics(data["q"], data["qd"], np.zeros(robot.nv), external=external), data["H"])
