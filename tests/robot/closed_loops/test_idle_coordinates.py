"""Mechanisms with idle freedoms, such as floating bases, springs and spinning rods, and with their own motors only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.spatial import make_pose

from .mechanisms import four_bar, slider_crank

INERTIA = np.diag([0.02, 0.03, 0.04])
SPRING = torsor.Spring(50.0, 0.5)


def kkt(robot: torsor.Robot, q: np.ndarray, v: np.ndarray, a_active: np.ndarray) -> np.ndarray:
    """Return the forces of the active coordinates from the whole system of motion, closure and given accelerations."""
    n, index = robot.nv, [robot.coordinate_names.index(name) for name in robot.active]
    before, after = (robot.closed.jacobian(robot.integrate(q, step * v)) for step in (-1e-6, 1e-6))
    drift = (after - before) @ v / 2e-6
    B = np.vstack([robot.closed.jacobian(q), np.eye(n)[index]])
    K = np.block([[robot.mass_matrix(q, loops="open"), -B.T], [B, np.zeros((len(B), len(B)))]])
    right = np.concatenate([-robot.bias_force(q, v, loops="open"), -drift, a_active])
    return np.linalg.lstsq(K, right, rcond=1e-9)[0][-len(index) :]


def walker() -> torsor.Robot:
    """Return a floating body with a leg: a motor, a spring, and a rod on two balls, which spins about its axis."""
    masses = {"body": 5.0, "thigh": 2.0, "shin": 1.0, "foot": 0.5}
    links = [torsor.Link(name, mass, (0.05, 0.01, -0.1), INERTIA) for name, mass in masses.items()]
    links.append(torsor.Link("rod", 0.3, (0, 0, -0.15), 0.1 * INERTIA))
    joints = [
        torsor.Joint("hip", "revolute", "body", "thigh", axis=(0, 1, 0)),
        torsor.Joint("knee", "revolute", "thigh", "shin", make_pose(p=[0, 0, -0.4]), axis=(0, 1, 0)),
        torsor.Joint("ankle", "revolute", "shin", "foot", make_pose(p=[0, 0, -0.4]), axis=(0, 1, 0), spring=SPRING),
        torsor.Joint("ball", "spherical", "body", "rod", make_pose(p=[0.1, 0, 0])),
    ]
    ends = ("rod_end", "rod", [0, 0, -0.38]), ("heel", "shin", [0.12, 0, 0.02])
    frames = [torsor.Frame(name, link, make_pose(p=point)) for name, link, point in ends]
    robot = torsor.Robot.of(torsor.mechanism.build("walker", links, joints, frames, base="floating"))
    return robot.with_loop("rod_pin", "rod_end", "heel", "spherical").with_active(["hip"])


@pytest.mark.slow
def test_a_walker_with_one_motor_follows_it() -> None:
    robot = walker()
    rng = np.random.default_rng(2)
    q = robot.closed.positions(robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv)))
    v = robot.closed.velocities(q, rng.normal(size=robot.nv), coordinates="all")
    assert robot.closed.mobility(q).dof == 9  # the base, the motor, the spring, and the spin of the rod
    tau = robot.closed.inverse_dynamics(q, v, [2.0], coordinates="all")
    np.testing.assert_allclose(tau, kkt(robot, q, v, np.array([2.0])), rtol=1e-7)
    force = np.zeros(robot.nv)
    hip = robot.coordinate_names.index("hip")
    force[hip] = tau[0]
    np.testing.assert_allclose(robot.closed.forward_dynamics(q, v, force, coordinates="all")[hip], 2.0, rtol=1e-10)
    load = rng.normal(size=(len(robot.links), 6))
    force[hip] = robot.closed.inverse_dynamics(q, v, [2.0], load, coordinates="all")[0]
    np.testing.assert_allclose(
        robot.closed.forward_dynamics(q, v, force, load, coordinates="all")[hip], 2.0, rtol=1e-10
    )


def test_without_idle_coordinates_it_is_the_inverse_dynamics_of_the_drives() -> None:
    robot = four_bar()
    q = robot.closed.assemble(np.linspace(0.2, 1.5, 6)[:, None], guess=[0.5, 1.0, 1.5])
    rates = np.random.default_rng(1).normal(size=(2, 6, 1))
    v = robot.closed.velocities(q, rates[0])
    tau = robot.closed.inverse_dynamics(q, v, rates[1], coordinates="all")
    np.testing.assert_allclose(tau, robot.closed.inverse_dynamics(q, *rates), rtol=1e-10)


def test_too_few_drives_name_the_method_for_idle_coordinates() -> None:
    with refused(fix="use the methods of robot.closed"):
        walker().closed.inverse_dynamics(walker().neutral(), [0.0], [0.0])


def test_a_drive_that_the_loops_hold_is_refused() -> None:
    engine = slider_crank()
    dead = engine.closed.assemble([0.0]).round(9) + 0.0
    with refused(what="do not determine the other"):
        engine.with_active(["slide"]).closed.inverse_dynamics(dead, np.zeros(3), [1.0], coordinates="all")


def test_a_redundant_drive_at_its_dead_point_has_no_force() -> None:
    engine = slider_crank()
    dead = engine.closed.assemble([0.0]).round(9) + 0.0
    both = engine.with_active(["main", "slide"]).closed.inverse_dynamics(
        dead, np.zeros(3), [1.0, 0.0], coordinates="all"
    )
    np.testing.assert_allclose(both, [*engine.closed.inverse_dynamics(dead, [0.0], [1.0]), 0.0], atol=1e-9)


FINGER = """<body name="{0}" pos="0 {1} 0.05" quat="{2}"><joint name="{0}" axis="1 0 0" armature="0.005" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0 0.03 0" size="0.005" mass="0.01"/><body name="{0}_coupler" pos="0 0.03 0">
  <joint name="{0}_coupler" axis="1 0 0" armature="0.001"/>
  <geom type="capsule" fromto="0 0 0 0 0.01 0.04" size="0.005" mass="0.02"/></body></body>
  <body name="{0}_link" pos="0 {3} 0.06" quat="{2}">
  <joint name="{0}_link" axis="1 0 0" stiffness="0.05" springref="2.6" armature="0.001"/>
  <geom type="capsule" fromto="0 0 0 0 0.055 0.04" size="0.005" mass="0.02"/><body name="{0}_tip" pos="0 0.055 0.04">
  <joint name="{0}_tip" axis="1 0 0" pos="0 -0.02 0.005" armature="0.001"/>
  <geom type="box" size="0.01 0.004 0.02" pos="0 -0.02 0.03" mass="0.016"/></body></body>"""
# As in the Robotiq 2F-85 of MuJoCo's menagerie: an actuator pulls a tendon to both fingers, a gear couples them, and a
# spring in each finger moves it where nothing else does.
GRIPPER = f"""<mujoco><worldbody><body name="arm"><joint name="wrist" axis="0 1 0"/><geom size="0.03" mass="0.5"/>
  {FINGER.format("right", 0.03, "1 0 0 0", 0.013)}{FINGER.format("left", -0.03, "0 0 0 1", -0.013)}</body></worldbody>
  <tendon><fixed name="split"><joint joint="right" coef="0.5"/><joint joint="left" coef="0.5"/></fixed></tendon>
  <equality><connect body1="right_tip" body2="right_coupler" anchor="0 -0.02 0.005"/>
  <connect body1="left_tip" body2="left_coupler" anchor="0 -0.02 0.005"/>
  <joint joint1="right" joint2="left"/></equality>
  <actuator><motor name="wrist" joint="wrist"/><motor name="grip" tendon="split"/></actuator></mujoco>"""


def test_a_tendon_that_drives_both_fingers_balances_the_inverse_dynamics_of_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER)
    robot, model, rng = torsor.load(path), mujoco.MjModel.from_xml_path(str(path)), np.random.default_rng(3)
    q = robot.closed.positions(robot.neutral() + 0.1 * rng.normal(size=robot.nq))
    v = robot.closed.velocities(q, rng.normal(size=robot.nv), coordinates="all")
    active = [robot.coordinate_names.index(name) for name in robot.active]
    assert robot.closed.mobility(q).dof == 4 and robot.active == ("wrist", "right", "left")
    force = np.zeros(robot.nv)
    force[active] = 0.7, 0.15, 0.15  # of the wrist, and of a tendon that pulls with 0.3
    a = robot.closed.forward_dynamics(q, v, force, coordinates="all")
    tau = robot.closed.inverse_dynamics(q, v, a[active], coordinates="all")
    np.testing.assert_allclose(tau, [0.7, 0.15, 0.15], rtol=1e-9)
    data = mujoco.MjData(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    order = [model.joint(name).dofadr[0] for name in robot.coordinate_names]
    data.qpos[order], data.qvel[order], data.qacc[order] = q, v, a
    mujoco.mj_inverse(model, data)
    force[active] = tau
    rest = data.qfrc_inverse[order] - force  # what the loops exert
    loops = np.linalg.lstsq(robot.closed.jacobian(q).T, rest, rcond=None)[0]
    np.testing.assert_allclose(robot.closed.jacobian(q).T @ loops, rest, atol=1e-12)
    with refused(what="contradict each other by 0.2", fix="consistent rates"):
        robot.closed.inverse_dynamics(q, v, a[active] + [0.0, 0.2, -0.2], coordinates="all")


def test_fingers_on_a_fixed_tendon_are_driven(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    finger = '<body name="{0}" pos="0 {1} 0.1"><joint name="{0}" type="slide" axis="0 1 0"/><geom size="0.02"/></body>'
    path = tmp_path / "gripper.xml"
    path.write_text(f"""<mujoco><worldbody><body name="hand"><joint name="wrist"/><geom size="0.05"/>
      {finger.format("left", 0.05)}{finger.format("right", -0.05)}</body></worldbody>
      <tendon><fixed name="split"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed></tendon>
      <equality><joint joint1="left" joint2="right" polycoef="0 -1 0 0 0"/></equality>
      <actuator><motor joint="wrist"/><motor tendon="split"/></actuator></mujoco>""")
    robot = torsor.load(path)
    assert robot.active == ("wrist", "left", "right")
    tau = robot.closed.inverse_dynamics([0.2, 0.01, -0.01], [0.0, 0.0, 0.0], [0.0, 1.0, -1.0])
    assert np.isfinite(tau).all() and tau[1] == pytest.approx(-tau[2])
    every = robot.closed.inverse_dynamics([0.2, 0.01, -0.01], [0.0, 0.0, 0.0], [0.0, 1.0, -1.0], coordinates="all")
    np.testing.assert_allclose(every, tau, rtol=1e-12)


def test_velocities_that_open_the_loops_are_refused() -> None:
    linkage = torsor.library.four_bar()
    q = linkage.closed.assemble([0.5])
    v = linkage.closed.velocities(q, [1.0, 0.0, 0.0], coordinates="all")
    closed = linkage.closed.inverse_dynamics(q, v, [0.3], coordinates="all")
    np.testing.assert_allclose(closed, linkage.closed.inverse_dynamics(q, v[:1], [0.3]), rtol=1e-9)
    with refused(fix="robot.closed.velocities"):
        linkage.closed.inverse_dynamics(q, [1.0, 5.0, -7.0], [0.3], coordinates="all")
    with refused(fix="robot.closed.velocities"):
        linkage.closed.forward_dynamics([q, q], [v, [1.0, 0.0, 0.0]], np.zeros(3), coordinates="all")
    with refused(argument="v", where="closed_inverse_dynamics"):
        linkage.closed.inverse_dynamics(q, [1.0], [0.3], coordinates="all")


def test_velocities_of_a_mechanism_that_cannot_move_are_rounding() -> None:
    stuck = torsor.library.caster().to(device="casadi")  # on a base at rest: it can neither roll nor swivel
    q = stuck.closed.positions(stuck.neutral())
    v = stuck.closed.velocities(q, [0.5, -0.2], coordinates="all")
    assert np.abs(v).max() < 1e-15
    assert np.abs(stuck.closed.forward_dynamics(q, v, [0.1, 0.2], coordinates="all")).max() < 1e-12
    with refused(allowed="1e-06"):
        stuck.closed.forward_dynamics(q, [1e-3, 0.0], [0.1, 0.2], coordinates="all")


def test_where_the_base_has_its_origin_does_not_matter() -> None:
    linkage = torsor.library.four_bar()
    far = np.array([1e5, -2e5, 3e4])
    moved = [
        replace(each, placement=make_pose(p=far) @ each.placement) if each.parent == linkage.base.name else each
        for each in linkage.joints
    ]
    frames = [
        replace(each, pose=make_pose(p=far) @ each.pose) if each.link == linkage.base.name else each
        for each in linkage.frames
    ]
    there = replace(linkage, joints=tuple(moved), frames=tuple(frames))
    assert np.isclose(there.closed.closure.length, linkage.closed.closure.length, rtol=1e-9)
    q = linkage.closed.assemble([0.5])
    near = linkage.closed.inverse_dynamics(q, [1.0], [0.3])
    np.testing.assert_allclose(
        there.closed.inverse_dynamics(there.closed.assemble([0.5], guess=q), [1.0], [0.3]), near, rtol=1e-6
    )
    with refused(what="the loops are not closed"):
        there.closed.inverse_dynamics(q + np.array([0.0, 0.01, 0.0]), [1.0], [0.3])
