"""Springs and motors in files and tables, and the errors for invalid ones."""

import copy
import pickle
from contextlib import nullcontext
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.spatial import from_rpy, make_pose

BODY = '<inertial><mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.4"/></inertial>'
DYNAMICS = '<dynamics damping="0.1" friction="0.2" spring_stiffness="40" spring_reference="0.3"/>'
SIMPLE = "<joint name='elbow'/><actuator name='m'>{}</actuator>"
ROTOR = "<mechanicalReduction>50</mechanicalReduction><rotorInertia>2e-4</rotorInertia>"


def load(folder: Path, inside: str, count: int = 1) -> torsor.Robot:
    path = folder / "arm.urdf"
    transmissions = f'<transmission name="t">{inside}</transmission>' * count
    hinge = f'<origin xyz="0 0 1" rpy="0.4 0 0"/><axis xyz="0 1 0"/>{DYNAMICS}'
    path.write_text(
        f'<robot name="arm"><link name="base"/><link name="arm">{BODY}</link><link name="hand">{BODY}</link>'
        f'<joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/></joint>'
        f'<joint name="elbow" type="continuous"><parent link="arm"/><child link="hand"/>{hinge}</joint>'
        f"{transmissions}</robot>"
    )
    return torsor.load(path)


def test_urdf_gives_springs_and_motors(tmp_path: Path) -> None:
    joint = load(tmp_path, SIMPLE.format(ROTOR)).joint("elbow")
    assert joint.spring == torsor.Spring(40.0, rest=0.3)
    assert joint.motor == torsor.Motor("arm", 2e-4, 50.0, joint.placement[:3, :3] @ [0, 1, 0])


def test_urdf_gives_elastic_joints_and_motors_on_other_links(tmp_path: Path) -> None:
    drake = '<drake:gear_ratio value="50"/><drake:rotor_inertia value="2e-4"/>'
    more = '<stiffness>900</stiffness><damping>0.5</damping><carrier link="base"/><axis xyz="1 0 0"/>'
    robot = load(tmp_path, SIMPLE.format(drake + more))
    assert robot.joint("elbow").motor == torsor.Motor("base", 2e-4, 50.0, np.array([1.0, 0, 0]), 900.0, 0.5)
    assert robot.coordinate_names == ("shoulder", "elbow", "elbow/motor")


def test_a_transmission_without_rotor_inertia_is_ignored(tmp_path: Path) -> None:
    assert load(tmp_path, SIMPLE.format("<mechanicalReduction>50</mechanicalReduction>")).joint("elbow").motor is None


def test_a_stiffness_without_rotor_inertia_is_ignored_with_a_warning(tmp_path: Path) -> None:
    with warned(what="a stiffness without a rotor inertia is ignored"):
        assert load(tmp_path, SIMPLE.format("<stiffness>900</stiffness>")).nv == 2


def test_a_rotor_heavier_than_its_carrier_is_a_warning() -> None:
    chain = torsor.library.planar_chain(2)
    with warned(allowed="no more than the carrier"):
        heavy = chain.with_motor("joint2", 10.0, carrier="link1")
    with warned(what="the rotor of 'joint2'"):
        torsor.build("again", [heavy.base, *heavy.links], heavy.joints)


def two_names(first: str, second: str) -> torsor.Robot:
    inertia, ahead = np.diag([0.1, 0.2, 0.3]), torsor.spatial.make_pose(p=[0.5, 0, 0])
    links = [torsor.Link("base"), torsor.Link(first, 1, (0.1, 0.2, 0.3), inertia)]
    links.append(torsor.Link(second, 2, (0.3, 0.1, 0.2), inertia))
    joints = [torsor.Joint("j1", "revolute", "base", first)]
    joints.append(torsor.Joint("j2", "revolute", first, second, ahead, np.array([0.0, 1.0, 0.0])))
    return torsor.build("r", links, joints).with_motor("j2", 0.01, 10.0, carrier="a")


def test_robots_with_different_carriers_of_a_motor_have_different_kernels() -> None:
    for robot in (two_names("a", "b"), two_names("b", "a")):
        expected = robot.to(device="casadi").mass_matrix([0.3, 0.7])
        np.testing.assert_allclose(robot.mass_matrix([0.3, 0.7]), expected, rtol=1e-14)


def test_copies_are_frozen_too() -> None:
    for copied in (
        copy.deepcopy(torsor.library.elastic_arm()),
        pickle.loads(pickle.dumps(torsor.library.elastic_arm())),
    ):
        assert copied == torsor.library.elastic_arm()
        with pytest.raises(ValueError, match="read-only"):
            copied.gravity[2] = 0.0
        with pytest.raises(ValueError, match="read-only"):
            copied.joint("joint3").motor.axis[0] = 1.0


def test_a_transmission_of_several_joints_is_ignored_with_a_warning(tmp_path: Path) -> None:
    with warned(where="arm.urdf: line 1: transmission 't'", what="it drives 2 joints"):
        robot = load(tmp_path, "<joint name='shoulder'/>" + SIMPLE.format(ROTOR))
    assert all(joint.motor is None for joint in robot.joints)


@pytest.mark.parametrize(
    ("inside", "count", "message"),
    [
        (SIMPLE.format(ROTOR + "<carrier link='base'/>"), 1, "the motor on 'base' has no axis"),
        (SIMPLE.format("<rotorInertia>heavy</rotorInertia>"), 1, "heavy"),
        (SIMPLE.format(ROTOR + "<axis xyz='1 0'/>"), 1, "1 0"),
        (
            SIMPLE.format("<rotorInertia>-1</rotorInertia>"),
            1,
            "inertia",
        ),
        (
            SIMPLE.format(ROTOR + "<carrier link='foot'/><axis xyz='1 0 0'/>"),
            1,
            "motor of joint 'elbow' is on 'foot', which does not exist",
        ),
        (SIMPLE.format(ROTOR), 2, "elbow"),
    ],
)
def test_urdf_with_a_wrong_transmission_is_refused(tmp_path: Path, inside: str, count: int, message: str) -> None:
    with refused(message, where="arm.urdf"):
        load(tmp_path, inside, count)


def test_tables_take_springs_and_motors() -> None:
    motor = torsor.Motor("base", 1e-3, 10.0, stiffness=50.0)
    rows = [torsor.MDHLink(-1, mass=1.0, spring=torsor.Spring(3.0)), torsor.MDHLink(0, d=0.3, mass=1.0, motor=motor)]
    robot = torsor.from_mdh(rows)
    assert robot.coordinate_names == ("joint1", "joint2", "joint2/motor")
    assert robot.spring_force([0.1, 0.0, 0.1]).round(12).tolist() == [0.3, -5.0, 5.0]
    assert torsor.from_dh([torsor.DHLink(a=1.0, mass=1.0, motor=torsor.Motor("base", 1e-3))]).joints[0].motor.ratio == 1


x, y = ca.SX.sym("x"), ca.SX.sym("y")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r.with_spring("elbow", 1.0), "elbow"),
        (
            lambda r: r.with_spring("joint3/motor", 1.0),
            "joint3/motor",
        ),
        (lambda r: r.with_spring("joint1", np.nan), "stiffness"),
        (lambda r: r.with_spring("joint1", [1, 2]), "stiffness"),
        (lambda r: r.with_spring("joint1", -1.0), "stiffness"),
        (lambda r: r.with_spring("joint1", x * y), "the symbols [SX(x), SX(y)]"),
        (lambda r: r.with_spring("joint1", ca.atan2(x, 2)), "contains an unsupported operation"),
        (lambda r: r.with_spring("joint1", "1; 2"), "stiffness"),
        (lambda r: r.with_spring("joint1", 1.0, damping=-1), "damping"),
        (lambda r: r.with_motor("joint1", 1e-3, carrier="foot"), "foot"),
        (lambda r: r.with_motor("joint1", -1e-3), "inertia"),
        (lambda r: r.with_motor("joint1", 1e-3, axis=(0, 0, 0)), "axis"),
        (lambda r: r.with_motor("joint1", 0.0, stiffness=10), "an elastic joint has"),
        (lambda r: r.with_motor("joint1", 1e-3, damping=10), "damping"),
        (
            lambda r: r.with_motor("joint1", 1e-3, ratio=0),
            "ratio",
        ),
        (
            lambda r: r.without_motor("joint1").with_motor("joint1", 1e-3, mass=1).with_motor("joint1", 2e-3, mass=1),
            "the joint already has a motor, whose mass would remain",
        ),
        (lambda r: r.with_motor("joint1", 1e-3, mass=-1.0), "mass"),
        (lambda r: r.with_motor("joint1", 1e-3, place=(0, 0, 1)), "a motor with a place needs a mass"),
        (lambda r: r.with_motor("joint1", 1e-3, moments=(1, 1, 1)), "a motor with moments needs a mass"),
        (lambda r: r.with_motor("joint1", 1e-3, mass=1, place=(0, 0)), "place"),
        (lambda r: r.with_motor("joint1", 1e-3, mass=1, place=2 * np.eye(4)), "place"),
        (
            lambda r: r.with_motor("joint1", 1e-3, mass=1, moments=(1, 1)),
            "moments",
        ),
        (
            lambda r: r.with_motor("joint1", 1e-3, mass=1, moments=(1, 2, 2)),
            "normal to the spin axis differ",
        ),
        (lambda r: r.with_motor("joint1", 1e-3, mass=1, axis=(1, 0, 0), place=np.eye(4)), "axis and a pose as place"),
        (lambda r: r.with_motor("joint1", 1e-3, mass=1, moments=(1, 1, 3)), "no body has"),
        (
            lambda r: r.with_motor("joint1", 2e-3, mass=1, moments=(1e-3, 1e-3, 1e-3)),
            "the motor has 0.001 kg m^2 about its spin axis, but its rotor alone has 0.002",
        ),
        (lambda r: r.with_motor("joint1", "heavy"), "inertia"),
        (lambda r: r.subtree("link2"), "which is not in the subtree"),
        (lambda r: r.with_spring("joint3", 1.0).fix("joint3/motor"), "joint3"),
        (lambda r: r.fix("joint3/motor", [0.1, 0.2]), "value"),
    ],
)
def test_wrong_drives_are_refused(edit, message: str) -> None:
    robot = torsor.library.elastic_arm().without_motor("joint3")
    robot = robot.with_motor("joint3", 0.004, 10, carrier="base", stiffness=100)
    with refused(message):
        edit(robot)


def test_a_motor_replaces_the_rotor_inertia_of_its_joint() -> None:
    arm = torsor.library.six_axis_arm()  # joint3: 0.83 kg m^2
    same = arm.with_motor("joint3", inertia=0.83 / 50**2, ratio=50.0, carrier="base")  # the same number: no warning
    assert same.joint("joint3").rotor_inertia.tolist() == [0.0]
    with warned(
        where="six_axis_arm: joint 'joint3'",
        fix="pass inertia=0.000332 to keep it, or define the joint without rotor_inertia",
    ):
        other = arm.with_motor("joint3", inertia=2e-4, ratio=50.0, carrier="base")
    assert other.joint("joint3").rotor_inertia.tolist() == [0.0]


def test_a_motor_that_replaces_another_one_is_a_warning() -> None:
    arm = torsor.library.elastic_arm()
    with warned(where="joint 'joint1'", fix="remove it first: robot.without_motor('joint1')"):
        new = arm.with_motor("joint1", 1e-3)
    assert new == arm.without_motor("joint1").with_motor("joint1", 1e-3)


@pytest.mark.parametrize("part", [{"spring": torsor.Spring(1.0)}, {"motor": torsor.Motor("base", 1e-3)}])
def test_joints_of_several_coordinates_have_no_springs_and_motors(part) -> None:
    with refused(allowed="1-dof joints"):
        torsor.Joint("ball", "spherical", "base", "arm", **part)


def test_a_joint_that_follows_has_no_elastic_motor() -> None:
    motor = torsor.Motor("base", 1e-3, stiffness=10.0)
    with refused(value="lead", allowed="a rigid motor"):
        torsor.Joint("j", "revolute", "base", "arm", coordinate="lead", motor=motor)


def geared(follows: bool) -> torsor.Robot:
    """Two links whose second joint, with a motor on the first link, turns -1.5 times as far as the first."""
    links = [torsor.Link("base"), *(torsor.Link(name, 1.0, (0.2, 0.1, 0), 0.02 * np.eye(3)) for name in "ab")]
    shared = {"coordinate": "first", "ratio": -1.5, "offset": 0.2} if follows else {}
    motor = torsor.Motor("a", 3e-4, 20.0, (0.6, 0, 0.8), viscous=0.1, coulomb=0.05)
    place = make_pose(from_rpy([0.3, 0.2, 0]), [0.5, 0, 0])
    joints = [
        torsor.Joint("first", "revolute", "base", "a", axis=(0, 1, 0)),
        torsor.Joint("second", "revolute", "a", "b", place, motor=motor, **shared),
    ]
    robot = torsor.build("pair", links, joints).to(device="casadi")
    if follows:
        return robot
    return robot.with_coupling("gear", {"second": 1.0, "first": 1.5}, offset=0.2).with_active(["first"])


def test_the_motor_of_a_joint_that_follows_is_that_of_a_coupled_joint() -> None:
    robot, coupled, q, v, a = geared(True), geared(False), 0.4, 1.3, -0.7
    tau = coupled.closed.inverse_dynamics([q, 0.2 - 1.5 * q], [v], [a])
    np.testing.assert_allclose(robot.inverse_dynamics([q], [v], [a]), tau, rtol=1e-12)
    np.testing.assert_allclose(robot.forward_dynamics([q], [v], tau), [a], rtol=1e-11)


@pytest.mark.parametrize("suffix", [".toml", ".urdf"])
def test_files_keep_the_motor_of_a_joint_that_follows(suffix: str, tmp_path: Path) -> None:
    robot = geared(True)
    with warned(what="rotor inertias, written as drake:rotor_inertia") if suffix == ".urdf" else nullcontext():
        robot.save(tmp_path / f"pair{suffix}")
    again = torsor.load(tmp_path / f"pair{suffix}").to(device="casadi").with_gravity(robot.gravity)
    state = [0.4], [1.3], [-0.7]
    np.testing.assert_allclose(again.inverse_dynamics(*state), robot.inverse_dynamics(*state), rtol=1e-9)
    assert again.joints[1].follows and again.joints[1].motor is not None
