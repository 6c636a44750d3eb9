"""Motors with their mass agree with MuJoCo, where the rotor is a body with its own joint."""

import numpy as np
import pytest

import torsor
from torsor.spatial import make_pose

mujoco = pytest.importorskip("mujoco")


def test_an_elastic_motor_with_mass_is_a_rotor_with_a_coordinate_of_its_own_in_mujoco() -> None:
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="link1">
      <joint name="joint1" axis="0 0 1"/><inertial pos="0.1 0 0.2" mass="3" fullinertia="0.2 0.3 0.25 0.01 0.02 0.03"/>
      <body name="rotor" pos="0.1 0.2 0.3" euler="30 40 50"><joint name="spin" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="0.8" diaginertia="0.004 0.004 0.003"/></body>
      <body name="link2" pos="0.3 0.1 0.4"><joint name="joint2" axis="0 1 0"/>
        <inertial pos="0.2 0 0.1" mass="2" fullinertia="0.1 0.15 0.12 0.01 0.0 0.02"/></body>
    </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data, eta = mujoco.MjData(model), 15.0
    rng = np.random.default_rng(8)
    q, v, a = rng.normal(size=(3, 3))  # joint1, joint2, theta
    data.qpos[:], data.qvel[:], data.qacc[:] = ([x[0], eta * x[2], x[1]] for x in (q, v, a))
    mujoco.mj_inverse(model, data)
    expected = data.qfrc_inverse[[0, 2, 1]] * [1, 1, eta]
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, model.body("rotor").quat)
    at = make_pose(R.reshape(3, 3), model.body("rotor").pos)
    inertias = [
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        for xx, yy, zz, xy, xz, yz in ((0.2, 0.3, 0.25, 0.01, 0.02, 0.03), (0.1, 0.15, 0.12, 0.01, 0.0, 0.02))
    ]
    links = [torsor.Link("world"), torsor.Link("link1", 3.0, (0.1, 0, 0.2), inertias[0])]
    links.append(torsor.Link("link2", 2.0, (0.2, 0, 0.1), inertias[1]))
    second = torsor.Joint("joint2", "revolute", "link1", "link2", make_pose(p=[0.3, 0.1, 0.4]), (0, 1, 0))
    robot = torsor.build("pair", links, [torsor.Joint("joint1", "revolute", "world", "link1"), second])
    drive = {"ratio": eta, "stiffness": 40.0, "mass": 0.8, "place": at, "moments": (0.004, 0.004, 0.003)}
    robot = robot.with_motor("joint2", 0.003, carrier="link1", **drive).to(device="casadi")
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a) - robot.spring_force(q), expected, rtol=0, atol=1e-10)
