"""Elastic joints, geared motors and moving bases reproduce the reference numbers of Khalil 2010 and Hua et al. 2022."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.spatial import make_pose

from .test_targets import assert_same, tree  # noqa: F401  # the tree of Khalil 2010

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())


# Khalil 2010, section 6: joints that are springs


def test_khalils_elastic_inverse_model_is_hybrid_dynamics_with_springs(tree):  # noqa: F811
    robot, data, external = tree
    elastic, q = data["elastic"], np.array(data["q"])
    names = []
    robot = robot.without_friction()
    for joint, is_elastic, K, deflection, at, Ia in zip(
        robot.joints, elastic["mask"], elastic["K"], elastic["dq"], q, elastic["Ia"], strict=True
    ):
        if is_elastic:
            names.append(joint.name)
            robot = robot.with_spring(joint.name, K, rest=at - deflection)
        joints = [replace(each, rotor_inertia=Ia) if each.name == joint.name else each for each in robot.joints]
        robot = replace(robot, joints=tuple(joints))
    zero = np.zeros(robot.nv)
    a, tau = robot.hybrid_dynamics(q, data["qd"], data["qdd"], zero, forced=names, external=external)
    assert_same(a, elastic["qdd_result"], 1e-11)
    assert_same(tau, elastic["Gamma_rigid"], 1e-11)


# Khalil 2010, section 7: a base that moves


@pytest.fixture(scope="module")
def moving(tree, tmp_path_factory):  # noqa: F811
    """Return the tree on a base that is free, its state and loads. The numbers are friction-free, with Ia."""
    robot, data, external = tree
    base = data["moving_base"]
    m, c = base["M0"], np.array(base["MS0"]) / base["M0"]
    inertia = base["J0"] - m * (c @ c * np.eye(3) - np.outer(c, c))
    path = tmp_path_factory.mktemp("moving") / "robot.toml"
    replace(robot, base=torsor.Link("base", m, c, inertia, strict=False)).save(path)
    floating = torsor.load(path, base="floating", strict=False)
    loads = np.vstack([-np.r_[base["me0"], base["fe0"]], external])
    q = np.r_[0, 0, 0, 0, 0, 0, 1, data["q"]]
    v = np.r_[base["w0"], 0, 0, 0, data["qd"]]
    return floating, data, q, v, loads


def base_acceleration(robot, q, v, a):
    """Return (classical acceleration of the base's origin minus gravity, rate of omega), as in the paper."""
    moved = robot.accelerations(q, v, a)[0]
    return np.r_[moved[3:] - robot.gravity, moved[:3]]


def test_moving_base_inverse_model_is_hybrid_dynamics_with_a_free_base(moving):
    robot, data, q, v, loads = moving
    zero = np.zeros(robot.nv)
    a, tau = robot.hybrid_dynamics(q, v, np.r_[np.zeros(6), data["qdd"]], zero, forced=["root"], external=loads)
    assert_same(base_acceleration(robot, q, v, a), data["moving_base"]["V0dot_minus_g"], 1e-11)
    assert_same(tau[6:], data["moving_base"]["Gamma"], 1e-11)


def test_moving_base_direct_model_is_direct_dynamics(moving):
    robot, data, q, v, loads = moving
    tau = np.r_[np.zeros(6), data["moving_base"]["Gamma"]]
    a = robot.forward_dynamics(q, v, tau, external=loads)
    assert_same(base_acceleration(robot, q, v, a), data["moving_base"]["V0dot_minus_g"], 1e-10)
    assert_same(a[6:], data["qdd"], 1e-10)


# Hua et al. 2022: motors on any link


@pytest.fixture(scope="module")
def mixed():
    data = TARGETS["004_general"]
    made, unified = data["robot_separate"], data["unified"]
    links, joints = [torsor.Link("base")], []
    for i in range(made["N"]):
        bodies = (unified[key][i] for key in ("m", "rc", "I"))
        links.append(torsor.Link(f"link{i + 1}", *(np.asarray(each) for each in bodies), strict=False))
        R = np.asarray(made["Rfix"][i])
        joints.append(
            torsor.Joint(
                f"joint{i + 1}", "revolute", links[i].name, links[i + 1].name, make_pose(R, made["r"][i]), R.T[:, 2]
            )
        )
    tip = torsor.Frame("tip", links[-1].name, make_pose(p=made["r_tip"]))
    robot = torsor.build("mixed", links, joints, [tip], gravity=made["g"])
    for i in range(made["N"]):
        k = made["elastic"][i]
        stiffness = None if k < 0 else made["K"][k]
        motor = unified["Iz"][i], made["eta"][i], links[made["lm"][i]].name, unified["zm"][i]
        robot = robot.with_motor(f"joint{i + 1}", *motor, stiffness=stiffness)
    q, v, a = (np.r_[data[x], data[y]] for x, y in (("q", "theta"), ("qd", "thetad"), ("qdd", "thetadd")))
    return robot, data, q, v, a


def rows(robot, q, tau):
    """Return the paper's rows: without the springs on the load side, with them on the motors' side."""
    spring = robot.spring_force(q)
    return tau - np.where(np.arange(robot.nv) < 4, spring, 0.0)


def test_mixed_joints_have_the_published_forces(mixed):
    robot, data, q, v, a = mixed
    assert robot.coordinate_names == ("joint1", "joint2", "joint3", "joint4", "joint2/motor", "joint4/motor")
    assert_same(rows(robot, q, robot.inverse_dynamics(q, v, a)), data["load_and_motor_rows"])
    assert_same(rows(robot, q, robot.bias_force(q, v)), data["zeta"])


def test_mixed_joints_have_the_published_inertia_matrix(mixed):
    robot, data, q, _, _ = mixed
    assert_same(robot.mass_matrix(q), data["A"])


def test_mixed_joints_have_the_published_reactions(mixed):
    robot, data, q, v, a = mixed
    wrenches = robot.joint_wrenches(q, v, a)
    assert_same(wrenches[:, 3:], data["f_b"])
    assert_same(wrenches[:, :3], data["tau_b"])


def test_mixed_joints_have_the_published_forces_under_a_load_at_the_tip(mixed):
    robot, data, q, v, a = mixed
    force, moment = -np.array(data["tip"]["f"]), -np.array(data["tip"]["t"])
    external = np.zeros((4, 6))
    external[-1] = np.r_[moment + np.cross(robot.places["tip"].pose[:3, 3], force), force]
    tau = robot.inverse_dynamics(q, v, a, external)
    assert_same(rows(robot, q, tau), data["tip"]["load_and_motor_rows"])


def test_mixed_joints_have_the_published_direct_dynamics(mixed):
    robot, data, q, v, _ = mixed
    # The paper hands the spring's force to the load side; here it is the model's own.
    tau = np.r_[data["forward"]["tau_q"], data["forward"]["tau_me"]] - rows(robot, q, np.zeros(6))
    assert_same(robot.forward_dynamics(q, v, tau), data["forward"]["acc"], 1e-10)
