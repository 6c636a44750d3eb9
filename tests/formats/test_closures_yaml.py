"""Closed loops in a YAML file next to a URDF file, joints as ends of loops, and joints of another type."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.spatial import exp_so3

INERTIA = '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>'
LINK = '<link name="{0}"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>' + INERTIA + "</inertial></link>"
TIP = '<link name="{0}"/>'
FRICTION = '<dynamics damping="5" friction="2"/>'
ENDS = '<parent link="{2}"/><child link="{3}"/>'
JOINT = '<joint name="{0}" type="{1}">' + ENDS + '<origin xyz="{4} 0 0"/><axis xyz="0 0 1"/></joint>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a five-bar linkage whose loop is open: two arms, each with a tip on a fixed joint."""
    links = [*map(LINK.format, ("a1", "a2", "b1", "b2")), *map(TIP.format, ("ground", "tip_a", "tip_b"))]
    joints = [
        JOINT.format("mot_a", "continuous", "ground", "a1", 0),
        JOINT.format("elbow_a", "continuous", "a1", "a2", 0.5),
        JOINT.format("end_a", "fixed", "a2", "tip_a", 0.5),
        JOINT.format("mot_b", "continuous", "ground", "b1", 0.4),
        JOINT.format("elbow_b", "continuous", "b1", "b2", 0.5),
        JOINT.format("end_b", "fixed", "b2", "tip_b", 0.5),
    ]
    (tmp_path / "robot.urdf").write_text(f'<robot name="five_bar">{"".join(links + joints)}</robot>')
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "robot.yaml"
    path.write_text(text)
    return path


def load(folder: Path, text: str) -> torsor.Robot:
    pytest.importorskip("yaml")
    return torsor.load(write(folder, text))


@pytest.mark.parametrize("ends", ["['tip_a', 'tip_b']", "['end_a', 'end_b']"])
@pytest.mark.parametrize("motors", ["['mot_a', 'mot_b']", "mot"])
def test_frames_and_fixed_joints_end_loops(folder: Path, ends: str, motors: str) -> None:
    robot = load(folder, f"closed_loop: [{ends}]\ntype: ['3d']\nname_mot: {motors}\n")
    (loop,) = robot.loops
    assert (loop.a, loop.b, loop.kind) == ("tip_a", "tip_b", "spherical")
    assert robot.active == ("mot_a", "mot_b")
    q = robot.closed.assemble([2.0, 1.0], guess=[2.0, -1.0, 1.0, 1.0])
    ends_there = [robot.pose(q, tip)[:3, 3] for tip in ("tip_a", "tip_b")]
    np.testing.assert_allclose(*ends_there, rtol=0, atol=1e-11)


def test_merge_keys_add_what_the_table_itself_does_not_have(folder: Path) -> None:
    robot = load(folder, "<<: {type: ['6d'], name_mot: mot}\nclosed_loop: [['tip_a', 'tip_b']]\ntype: ['3d']\n")
    assert robot.loops[0].kind == "spherical" and robot.active == ("mot_a", "mot_b")
    both = "<<: [{type: ['3d'], name_mot: mot}, {type: ['6d'], closed_loop: [['tip_a', 'tip_b']]}]\n"
    assert load(folder, both) == robot  # of several tables, the first counts
    with refused(value="type", allowed="each key once"):
        load(folder, "type: ['6d']\ntype: ['3d']\n<<: {name_mot: mot}\n")


def test_joints_get_the_types_of_the_file(folder: Path) -> None:
    types = "joint_name: ['elbow_a', 'elbow_b', 'mot_b']\njoint_type: ['SPHERICAL', 'CARDAN', 'FIXED']\n"
    robot = load(folder, f"closed_loop: [['tip_a', 'tip_b']]\ntype: ['6d']\nname_mot: ['mot_a']\n{types}")
    assert [(joint.name, joint.type) for joint in robot.joints] == [
        ("mot_a", "continuous"),
        ("elbow_a", "spherical"),
        ("elbow_b_X", "continuous"),
        ("elbow_b_Y", "continuous"),
    ]
    assert robot.loops[0].kind == "weld" and robot.joint("elbow_b_Y").axis.tolist() == [0, 1, 0]


@pytest.mark.parametrize("axes", ["XY", "YX", "XZ", "ZX", "YZ", "ZY"])
def test_a_universal_joint_turns_about_its_first_axis_and_then_about_its_second(folder: Path, axes: str) -> None:
    robot = load(folder, f"joint_name: ['elbow_a']\njoint_type: ['UJOINT_{axes}']\n")
    turns = {axis: np.array(row) for axis, row in zip("XYZ", np.eye(3), strict=True)}
    q = np.zeros(robot.nq)
    q[[robot.coordinate_names.index(f"elbow_a_{axis}") for axis in axes]] = angles = 0.3, -0.7
    first, second = (exp_so3(turns[axis] * angle) for axis, angle in zip(axes, angles, strict=True))
    np.testing.assert_allclose(robot.pose(q, "a2")[:3, :3], first @ second, rtol=0, atol=1e-15)


def test_friction_of_a_joint_of_another_type_is_named(folder: Path) -> None:
    urdf = folder / "robot.urdf"
    urdf.write_text(
        urdf.read_text().replace('name="elbow_a" type="continuous">', 'name="elbow_a" type="continuous">' + FRICTION)
    )
    for kind in ("SPHERICAL", "CARDAN"):
        with warned(what="does not keep coulomb, viscous"):
            load(folder, f"closed_loop: []\ntype: []\njoint_name: ['elbow_a']\njoint_type: ['{kind}']\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name_mot: 'zzz'", "name_mot"),
        ("name_mot: ''", "name_mot"),
        ("type: [2020-99-99]", "not valid YAML"),
        ("closed_loop: [['tip_a']]", "closed_loop"),
        ("closed_loop: [['tip_a', 'tip_b']]", "closed_loop has 1 entries and type has 0"),
        ("closed_loop: [['tip_a', 'tip_c']]\ntype: ['3d']", "ends at 'tip_c', which does not exist"),
        ("closed_loop: [['tip_a', 'tip_b']]\ntype: ['4d']", "4d"),
        ("joint_name: ['mot_a']\njoint_type: ['ODD']", "joint_type 'ODD' of 'mot_a'"),
        ("name_mot: ['mot_c']", "active"),
        ("name_mot: [1]", "name_mot"),
        ("loops: []", "unknown key 'loops'"),
        ("closed_loop: [", "not valid YAML"),
        ("3", "a table"),
    ],
)
def test_mistakes_are_named(folder: Path, text: str, message: str) -> None:
    with refused(message):
        load(folder, text)


def test_the_urdf_file_is_found_or_asked_for(folder: Path) -> None:
    pytest.importorskip("yaml")
    path = write(folder, "closed_loop: []")
    (folder / "robot.urdf").rename(folder / "other.urdf")
    assert torsor.load(path).name == "five_bar"
    (folder / "more.urdf").write_text("<robot/>")
    with refused(what="2 URDF files are in its folder, none of them robot.urdf"):
        torsor.load(path)


def test_without_the_package_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(ImportError, match=r'fix: pip install "torsor\[yaml\]"'):
        torsor.load(write(folder, "closed_loop: []"))


def test_the_name_of_a_joint_stands_for_the_frame_of_its_link(tmp_path: Path) -> None:
    rows = [torsor.Link("base"), torsor.Link("one", 1.0, inertia=np.eye(3)), torsor.Link("two", 1.0, inertia=np.eye(3))]
    pin = torsor.Joint("pin", "revolute", "one", "two", point=(0.1, 0.2, 0.3))
    robot = torsor.build("arm", rows, [torsor.Joint("root", "revolute", "base", "one"), pin])
    loop = robot.with_loop("held", "pin", "root", "rod", 0.5).loops[0]
    assert (loop.a, loop.b) == ("held/a", "one")
    assert robot.with_loop("held", "pin", "root", "rod", 0.5).places["held/a"].pose[:3, 3].tolist() == [0.1, 0.2, 0.3]
    path = tmp_path / "arm.toml"
    robot.with_loop("held", "two", "base", "rod", 0.5).save(path)
    path.write_text(path.read_text().replace('a = "two"', 'a = "pin"'))
    assert torsor.load(path).loops[0].a == "held/a"


def test_a_joint_gets_another_type() -> None:
    robot = torsor.library.planar_chain(2).with_active(["joint1", "joint2"])
    ball = robot.with_joint_type("joint2", "spherical")
    assert ball.nv == 4 and ball.active == ("joint1", "joint2/wx", "joint2/wy", "joint2/wz")
    q = np.append(0.3, [0, 0, np.sin(0.2), np.cos(0.2)])
    np.testing.assert_allclose(ball.pose(q, "link2"), robot.pose([0.3, 0.4], "link2"), rtol=0, atol=1e-14)
    assert robot.with_joint_type("joint1", robot.joint("joint1").type) is robot


def test_what_a_joint_of_another_type_loses_is_named() -> None:
    robot = torsor.library.two_link().with_friction("joint2", 0.1, 0.2)
    with warned(what="a spherical joint does not keep"):
        robot.with_joint_type("joint2", "spherical")
    plain = torsor.library.two_link()
    with refused(argument="joint type"):
        plain.with_joint_type("joint2", "ball")
    with refused(value="belt"):
        plain.with_coupling("belt", {"joint1": 1.0, "joint2": 1.0}).with_joint_type("joint2", "spherical")
    with refused(what="it has a spring"):
        plain.with_spring("joint2", 3.0).with_joint_type("joint2", "spherical")


def test_a_key_that_is_given_twice_is_refused_with_both_lines(folder: Path) -> None:
    text = "closed_loop: [['tip_a', 'tip_b']]\ntype: ['6d']\nname_mot: mot\ntype: ['3d']\n"
    with refused(value="type", where="robot.yaml", allowed="each key once"):
        load(folder, text)


def test_many_pairs_are_refused_before_they_are_read(folder: Path) -> None:
    with refused(where="robot.yaml", allowed="0.1 MB"):
        load(folder, "closed_loop:\n" + "- [tip_a, tip_b]\n" * 60_000)


def test_pairs_are_joined_in_one_edit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One edit for each pair takes a time that grows with the square of their number."""
    pairs, count = ", ".join(["[tip_a, tip_b]", "[tip_b, tip_a]", "[a2, tip_b]", "[tip_a, b2]"]), []
    monkeypatch.setattr(torsor.mechanism.Mechanism, "_check_names", lambda self: count.append(len(self.loops)))
    robot = load(folder, f"closed_loop: [{pairs}]\ntype: [6d, 6d, 6d, 6d]\n")
    assert len(robot.loops) == 4 and set(count) == {0, 4}
