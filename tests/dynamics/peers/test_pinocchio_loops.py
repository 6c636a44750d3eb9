"""Loops on top of robots from files, against Pinocchio's constrained dynamics; and the leg of a real biped."""

import xml.etree.ElementTree as ET
from importlib.metadata import files

import numpy as np
import pytest

import torsor
from robot.closed_loops.test_dynamics import with_multipliers
from robots import robot_file
from torsor.spatial import from_rpy, inverse_pose, make_pose

pin = pytest.importorskip("pinocchio")
from .test_pinocchio import Peer

KINDS = {"spherical": pin.ContactType.CONTACT_3D, "weld": pin.ContactType.CONTACT_6D}


def constraint(robot: torsor.Robot, model: pin.Model, loop: torsor.Loop) -> pin.RigidConstraintModel:
    """Return Pinocchio's constraint for a ball joint or a weld between two frames."""
    ends = []
    for name in (loop.a, loop.b):
        link, pose = robot.place(name)
        joint = model.getJointId(robot.joints[link].name) if link >= 0 else 0
        ends += [joint, pin.SE3(pose)]
    return pin.RigidConstraintModel(KINDS[loop.kind], model, *ends, pin.ReferenceFrame.LOCAL)


def accelerations(robot: torsor.Robot, model: pin.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return Pinocchio's accelerations with the loops of a robot closed."""
    models = pin.StdVec_RigidConstraintModel()
    models.extend([constraint(robot, model, loop) for loop in robot.loops])
    datas = pin.StdVec_RigidConstraintData()
    datas.extend([each.createData() for each in models])
    data, settings = model.createData(), pin.ProximalSettings(1e-14, 1e-14, 1e-12, 100)
    pin.initConstraintDynamics(model, data, models, datas)
    return np.array(pin.constraintDynamics(model, data, q, v, tau, models, datas, settings))


def assert_constrained_motion_agrees(robot: torsor.Robot, model: pin.Model, q: np.ndarray, qp: np.ndarray) -> None:
    rng, active = np.random.default_rng(1), [robot.coordinate_names.index(name) for name in robot.active]
    x, tau = rng.normal(size=(2, len(active)))
    given = np.zeros(robot.nv)
    given[active] = tau
    v = robot.closed.velocities(q, x)
    theirs = accelerations(robot, model, qp, v, given)
    ours = robot.closed.accelerations(q, x, robot.closed.forward_dynamics(q, x, tau))[1]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


def joined(robot: torsor.Robot, kind: str, a: str, b: str, q: np.ndarray) -> torsor.Robot:
    """Return the robot with two of its links or frames held together as they are at q."""
    link, _ = robot.place(b)
    at = robot.link_names[link] if link >= 0 else robot.base.name
    here = inverse_pose(robot.pose(q, at)) @ robot.pose(q, a)
    return robot.with_frame(f"{a} on {b}", at, here).with_loop("hold", a, f"{a} on {b}", kind)


@pytest.mark.parametrize(
    ("file", "kind", "ends", "passive"),
    [
        ("ur5_robot.urdf", "spherical", ("ee_link", "base_link"), [0, 1, 2]),
        ("solo12.urdf", "spherical", ("FL_FOOT", "FR_FOOT"), [3, 4, 5]),
        ("xarm7.urdf", "weld", ("link7", "link_base"), [0, 1, 3, 4, 5, 6]),
        ("g1_29dof_rev_1_0.urdf", "weld", ("left_wrist_yaw_link", "right_wrist_yaw_link"), [22, 23, 24, 25, 26, 27]),
    ],
)
def test_a_loop_on_a_urdf_moves_as_pinocchio_says(
    file: str, kind: str, ends: tuple[str, str], passive: list[int]
) -> None:
    peer = Peer(robot_file(file), "fixed")
    q = peer.robot.integrate(peer.robot.neutral(), np.random.default_rng(2).uniform(-0.5, 0.5, peer.robot.nv))
    robot = joined(peer.robot, kind, *ends, q)
    robot = robot.with_active([name for k, name in enumerate(robot.coordinate_names) if k not in passive])
    assert_constrained_motion_agrees(robot, peer.model, q, peer.positions(q))


@pytest.mark.parametrize("file", ["panda.urdf", "talos_full_v2.urdf"])
def test_a_rod_to_a_joint_that_mimics_another_is_as_long_as_pinocchio_says(file: str) -> None:
    peer = Peer(robot_file(file), "fixed")
    robot, model, data = peer.robot, peer.model, peer.model.createData()
    follower = next(joint for joint in robot.joints if joint.follows)
    ends = follower.child, robot.links[0].name
    robot = robot.with_loop("rod", *ends, "rod", length=0.1)
    q, v = np.random.default_rng(3).uniform(-0.5, 0.5, (2, robot.nv))
    pin.computeJointJacobians(model, data, peer.positions(q))
    one, other = (model.getJointId(joint) for joint in (follower.name, robot.joints[0].name))
    away = data.oMi[one].translation - data.oMi[other].translation
    np.testing.assert_allclose(robot.closed.error(q), [np.linalg.norm(away) - 0.1], rtol=0, atol=1e-12)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pin.getJointJacobian(model, data, one, axes)[:3] - pin.getJointJacobian(model, data, other, axes)[:3]
    rate = away / np.linalg.norm(away) @ J @ peer.G @ v
    np.testing.assert_allclose(robot.closed.jacobian(q) @ v, [rate], rtol=0, atol=1e-12)


CASSIE = [each for each in files("example-robot-data") or [] if each.name == "cassie_v2.sdf"]
PLANTAR, ROD = "left-plantar-foot-joint", "left-achilles-rod"


def numbers(text: str | None) -> np.ndarray:
    return np.array((text or "").split(), dtype=float)


def at(text: str | None) -> np.ndarray:
    """Return the pose of SDF's x y z roll pitch yaw."""
    x = numbers(text or "0 0 0 0 0 0")
    return make_pose(from_rpy(x[3:]), x[:3])


def cassie_leg() -> torsor.Robot:
    """The left leg of the published file, whose poses are those of links at rest.

    Of the two joints that close loops there, one is a ball; the other ends the long rod, which has balls at both ends
    in the robot itself.
    """
    model = ET.parse(str(CASSIE[0].locate())).getroot().find("model")
    assert model is not None
    pose = {each.get("name", ""): at(each.findtext("pose")) for each in model.iter("link")}
    links, joints, frames = [], [], []
    for each in model.iter("link"):
        solid, name = each.find("inertial"), each.get("name", "")
        if solid is not None and (name == "pelvis" or name.startswith("left")) and name != ROD:
            entries = (float(solid.findtext(f"inertia/i{k}", "0")) for k in ("xx", "yy", "zz", "xy", "xz", "yz"))
            xx, yy, zz, xy, xz, yz = entries
            com, inertia = numbers(solid.findtext("pose"))[:3], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
            links.append(torsor.Link(name, float(solid.findtext("mass", "0")), com, inertia))
    for each in model.iter("joint"):
        name, parent, child = each.get("name", ""), each.findtext("parent", ""), each.findtext("child", "")
        if not name.startswith("left"):
            continue
        where = pose[child] @ at(each.findtext("pose"))
        if ROD in (parent, child) or name == PLANTAR:
            ends = [end for end in (parent, child) if end != ROD]
            frames += [torsor.Frame(f"{name}/{end}", end, inverse_pose(pose[end]) @ where) for end in ends]
            continue
        stiffness = each.findtext("axis/dynamics/spring_stiffness")
        spring = torsor.Spring(float(stiffness)) if stiffness else None
        rest, axis = inverse_pose(pose[parent]) @ pose[child], numbers(each.findtext("axis/xyz"))
        joints.append(torsor.Joint(name, "revolute", parent, child, rest, axis, spring=spring))
    robot = torsor.build("leg", links, joints, frames).to(device="casadi")
    hip, heel, rod, foot = (frame.name for frame in frames)
    ends = [robot.pose(robot.neutral(), name)[:3, 3] for name in (hip, heel)]
    length = float(np.linalg.norm(ends[1] - ends[0]))
    return robot.with_loop("achilles", hip, heel, "rod", length).with_loop("plantar", rod, foot, "spherical")


@pytest.mark.skipif(not CASSIE, reason="this version of example-robot-data has no Cassie")
def test_a_leg_of_cassie_has_five_motors_and_two_springs() -> None:
    robot = cassie_leg()
    assert robot.loops[0].length == pytest.approx(0.5012, abs=2e-4)  # as its maker says
    assert (robot.closed.mobility(robot.neutral()).dof, robot.closed.mobility(robot.neutral()).redundant) == (7, 1)
    motors = ["left-roll-op", "left-yaw-op", "left-pitch-op", "left-knee-op", "left-foot-op"]
    robot = robot.with_active([*motors, "left-knee-shin-joint", "left-tarsus-spring-joint"])
    q = robot.closed.assemble([0.1, -0.2, 0.3, 0.4, 0.2, 0.01, 0.02], guess=robot.neutral())
    assert np.abs(robot.closed.error(q)).max() < 1e-11
    x, tau = np.random.default_rng(4).normal(size=(2, 7))
    tau[5:] = 0.0  # but for springs, nothing drives these two
    v = robot.closed.velocities(q, x)
    a = robot.closed.accelerations(q, x, robot.closed.forward_dynamics(q, x, tau))[1]
    np.testing.assert_allclose(a, with_multipliers(robot, q, v, tau), rtol=0, atol=1e-9 * np.abs(a).max())
