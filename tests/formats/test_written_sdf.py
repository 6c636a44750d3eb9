"""Robots written as SDF have the same dynamics and shapes when they are read back."""

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from robots import robot_file
from torsor import ModelError, ModelWarning, library
from torsor.mechanism import Frame, Joint, Link, Motor, Shape, Spring, Visual
from torsor.spatial import from_rpy, make_pose

from .written import EARTH, LIBRARY, Copy, assert_equal, bench, expressible, human

SDF_KINDS = ("revolute", "continuous", "prismatic", "helical", "planar")
TURNED = make_pose(from_rpy([0.1, 0.2, -0.3]), [0.2, 0.1, 0.3])


def as_sdf_has_it(robot: torsor.Robot) -> torsor.Robot:
    """Return a robot without the properties that SDF cannot express."""
    joints = [replace(joint, motor=None, smooth=0.0) for joint in robot.joints]
    joints = [joint if joint.nv == 1 else replace(joint, viscous=0.0, rotor_inertia=0.0) for joint in joints]
    return replace(robot, joints=tuple(joints))


ROBOTS = {name: robot for name, robot in LIBRARY.items() if name != "six_axis_arm"} | {
    "human": human(),
    "bench": bench(),
    "chain": library.planar_chain(4),
    **{f"tree{seed}": expressible(library.random_tree(8, seed, SDF_KINDS), False) for seed in range(2)},
}


def written(robot: torsor.Robot, path: Path, base: str = "fixed") -> torsor.Robot:
    """Return the robot read back from a file; nothing that acts on the motion may be left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        harmless = "links without mass|joints with the name of a link|a free base|postures"
        warnings.filterwarnings("ignore", message=f".*cannot express (({harmless})[^;]*(; |$))+$")
        robot.save(path)
        return torsor.load(path, base=base)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_comes_back_with_the_same_forces_masses_and_places(tmp_path: Path, name: str) -> None:
    robot = as_sdf_has_it(ROBOTS[name])
    floating = bool(robot.joints) and robot.joints[0].type == "free"
    again = written(robot, tmp_path / "robot.sdf", "floating" if floating else "fixed")
    np.testing.assert_array_equal(again.gravity, robot.gravity)
    Copy(robot, again).check(set(robot.places) - {robot.base.name})
    for joint, copy in zip(robot.joints, again.joints, strict=False):
        if joint.type == copy.type != "planar":
            np.testing.assert_array_equal(copy.lower, joint.lower)
            np.testing.assert_array_equal(copy.velocity_limit, joint.velocity_limit)


def test_a_motor_on_the_base_comes_back_as_its_inertia_after_the_gear(tmp_path: Path) -> None:
    robot = one(motor=Motor("ground", 0.1, ratio=3.0), rotor_inertia=0.02)
    again = written(robot, tmp_path / "one.sdf")
    assert again.joints[0].rotor_inertia == pytest.approx(0.1 * 9 + 0.02, rel=1e-15)
    np.testing.assert_allclose(again.mass_matrix([0.3]), robot.mass_matrix([0.3]), rtol=1e-14)


def test_the_lowest_version_that_has_all_parts_is_written(tmp_path: Path) -> None:
    def version(robot: torsor.Robot) -> str | None:
        written(robot, tmp_path / "robot.sdf")
        return ET.parse(tmp_path / "robot.sdf").getroot().get("version")

    assert version(one()) == "1.7"
    assert version(one(link=replace(ARM, shapes=(Shape("capsule", (0.1, 0.2)),)))) == "1.8"
    assert version(one("helical", pitch=0.1)) == "1.10"
    assert version(as_sdf_has_it(bench())) == "1.11"


def test_a_spherical_joint_and_a_screw_keep_their_kind(tmp_path: Path) -> None:
    for kind, settings in (("spherical", {}), ("helical", {"pitch": -0.03})):
        robot = one(kind, point=(0.1, 0.2, 0.3), **settings)
        again = written(robot, tmp_path / "one.sdf")
        assert again.joints[0].type == kind
        Copy(robot, again).check({"arm"})


SHAPES = (
    Shape("box", (0.1, 0.2, 0.3), TURNED, "b"),
    Shape("cylinder", (0.1, 0.2), contype=2, conaffinity=2),
    Shape("capsule", (0.1, 0.2), name="c"),
    Shape("sphere", (0.1,), contype=-(2**31), conaffinity=-(2**31)),
    Shape("ellipsoid", (0.1, 0.2, 0.3), TURNED),
    Shape("plane", (), TURNED),
    Shape("mesh", (1.0, 2.0, 0.5), mesh="package://nowhere/hand.stl"),
)
VISUALS = (
    Visual("box", (0.1, 0.2, 0.3), TURNED, (0.1, 0.2, 0.3, 0.4), name="v"),
    Visual("cylinder", (0.1, 0.2)),
    Visual("capsule", (0.1, 0.2)),
    Visual("sphere", (0.1,), make_pose(p=[1, 2, 3]), (1.0, 0.0, 0.0)),
    Visual("mesh", (1.0, 1.0, 1.0), mesh="hand.stl"),
)


def assert_same_shapes(found: torsor.Robot, expected: torsor.Robot, names: bool = True) -> None:
    """Compare shapes and visuals of all links: kind, size, pose, masks, mesh, colour and the link that was welded."""
    for ours, theirs in zip((found.base, *found.links), (expected.base, *expected.links), strict=True):
        assert len(ours.shapes) == len(theirs.shapes) and len(ours.visuals) == len(theirs.visuals)
        for a, b in zip((*ours.shapes, *ours.visuals), (*theirs.shapes, *theirs.visuals), strict=True):
            assert_equal(a.pose, b.pose)
            plain = {"pose": np.eye(4), "name": "", "mesh": None}
            color = {"color": None} if isinstance(a, Visual) else {}
            assert replace(a, **plain, **color) == replace(b, **plain, **color)
            if isinstance(a, Visual) and isinstance(b, Visual) and b.color is not None:
                assert a.color == (*b.color, 1.0)[:4]
            assert not (names and b.name) or a.name == b.name


def shaped() -> torsor.Robot:
    """A robot with all shapes on its base, its arm and a tool that is welded to the arm."""
    tool = Link("tool", shapes=(Shape("box", (0.1, 0.1, 0.1), TURNED), Shape("sphere", (0.2,), name="s")))
    base = Link("ground", 1.0, inertia=np.eye(3), shapes=(SHAPES[0], SHAPES[5]))
    arm = replace(ARM, shapes=SHAPES, visuals=VISUALS)
    weld = Joint("weld", "fixed", "arm", "tool", make_pose(from_rpy([0.5, 0, 0]), [0, 0, 1]))
    return torsor.build("shaped", [base, arm, tool], [Joint("pin", "revolute", "ground", "arm"), weld])


def test_shapes_masks_colours_and_welded_links_come_back(tmp_path: Path) -> None:
    robot = shaped()
    assert [shape.link for shape in robot.links[0].shapes][-2:] == ["tool", "tool"]
    again = written(robot, tmp_path / "robot.sdf")
    assert_same_shapes(again, robot)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_shapes_of_welded_links_come_back_from_other_formats(tmp_path: Path, suffix: str) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    robot = shaped()
    link = replace(robot.links[0], shapes=tuple(s for s in robot.links[0].shapes if s.link), visuals=())
    robot = replace(robot, base=replace(robot.base, shapes=(SHAPES[0],)), links=(link,))
    robot.save(tmp_path / f"robot{suffix}")
    again = torsor.load(tmp_path / f"robot{suffix}")
    assert [shape.link for shape in again.links[0].shapes] == ["tool", "tool"]
    for a, b in zip(again.links[0].shapes, link.shapes, strict=True):
        assert_equal(a.pose, b.pose)
        assert (a.shape, a.size, a.name) == (b.shape, b.size, b.name)


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml"])
def test_meshes_of_packages_are_found_from_another_folder(tmp_path: Path, suffix: str) -> None:
    """A package:// name that leads nowhere from the new file becomes that of a copy."""
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    robot = torsor.load(robot_file("double_pendulum.urdf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot.save(tmp_path / f"robot{suffix}")
        again = torsor.load(tmp_path / f"robot{suffix}")
    before, after = (
        [Path(shape.path or "").read_bytes() for link in each.links for shape in (*link.shapes, *link.visuals)]
        for each in (robot, again)
    )
    assert len(before) == 4 and after == before


ARM = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.1, 0.2, 0.25]))


def one(kind: str = "continuous", link: Link = ARM, **settings: object) -> torsor.Robot:
    return torsor.build(
        "one", [Link("ground", 1.0, inertia=np.eye(3)), link], [Joint("pin", kind, "ground", link.name, **settings)]
    )  # type: ignore[arg-type]


OMITTED = {
    r"a free base, which .*: load it with `base='floating'` \(pin\)": torsor.build(
        "one", [Link("world"), ARM], [Joint("pin", "free", "world", "arm")]
    ),
    r"friction of shapes \(arm\)": one(link=replace(ARM, shapes=(Shape("sphere", (1.0,), priority=1),))),
    r"gains of drives \(pin\)": one(kp=1.0),
    r"rotor inertia \(pin\)": one("spherical", rotor_inertia=0.1),
    r"gyroscopic moments of rotors in moving links \(.*\) \(pin\)": one(motor=Motor("arm", 0.1)),
    r"smooth Coulomb friction, written as sign\(v\) \(pin\)": one(coulomb=1.0, smooth=0.1),
    r"nonlinear stiffness \(pin\)": one(spring=Spring("2 + x**2")),
    r"limits and friction of spherical joints \(pin\)": one("spherical", viscous=1.0),
    r"contype and conaffinity that differ \(arm\)": one(link=replace(ARM, shapes=(Shape("plane", contype=2),))),
    r"joints with the name of a link, which are renamed \(pin\)": one(link=replace(ARM, name="pin")),
    r"a moving link 'world', written as 'world_' \(world\)": one(link=replace(ARM, name="world")),
    r"links without mass or inertia, which Gazebo does not accept \(tip\)": one(
        link=Link("tip", 1.0), rotor_inertia=1.0
    ),
}


@pytest.mark.parametrize("what", OMITTED)
def test_what_sdf_cannot_express_is_named_in_a_warning(tmp_path: Path, what: str) -> None:
    with pytest.warns(ModelWarning, match=f"^one.sdf: SDF cannot express (.*; )?{what.strip()}") as caught:
        OMITTED[what].save(tmp_path / "one.sdf")
    assert len(caught) == 1
    base = "floating" if "floating" in what else "fixed"
    assert torsor.load(tmp_path / "one.sdf", base=base).nv == OMITTED[what].nv


SUM = library.planar_chain(3).with_coupling("sum", {"joint1": 1.0, "joint2": 1.0, "joint3": 1.0})
REFUSED = {
    r"joint 'pin' is elastic": one(motor=Motor("ground", 1.0, stiffness=1.0)),
    r"joint 'pin' has the position 2.0 q \+ 0.0 for its own coordinate": one(ratio=2.0),
    r"loop '.*' is open with all joints at zero": library.four_bar(),
    r"the coupling 'sum' cannot be a joint that follows another, as SDF requires": SUM,
}


@pytest.mark.parametrize("found", REFUSED)
def test_a_mechanism_that_sdf_cannot_describe_is_an_error_and_no_file_is_written(tmp_path: Path, found: str) -> None:
    with pytest.raises(ModelError, match=f"^one.sdf: {found}"):
        REFUSED[found].save(tmp_path / "one.sdf")
    assert not list(tmp_path.iterdir())


def parallelogram(kind: str) -> torsor.Robot:
    """Four bars of which one pin is a loop, closed at zero."""
    links = [
        Link("ground", 1.0, inertia=np.eye(3)),
        *(replace(ARM, name=name) for name in ("crank", "rocker", "coupler")),
    ]
    at = make_pose(p=[0, 1, 0])
    joints = [
        Joint("a", "revolute", "ground", "crank"),
        Joint("b", "revolute", "ground", "rocker", make_pose(p=[2, 0, 0])),
        Joint("c", "revolute", "crank", "coupler", at),
    ]
    turned = make_pose(from_rpy([0, 0, 0.4]))
    frames = [Frame("tip", "rocker", at), Frame("eye", "coupler", make_pose(p=[2, 0, 0]) @ turned)]
    if kind == "universal":
        frames[1] = Frame("eye", "coupler", make_pose(from_rpy([np.pi / 2, 0, 0]), [2, 0, 0]))
    if kind == "weld":
        frames[1] = Frame("eye", "coupler", make_pose(p=[2, 0, 0]))
    return torsor.build("bars", links, joints, frames).with_loop("d", "tip", "eye", kind).to(device="casadi")


@pytest.mark.parametrize("kind", ["revolute", "spherical", "universal", "weld"])
def test_a_loop_comes_back_with_the_same_closure(tmp_path: Path, kind: str) -> None:
    robot = parallelogram(kind)
    again = written(robot, tmp_path / "bars.sdf").to(device="casadi")
    assert [(loop.name, loop.kind) for loop in again.loops] == [("d", kind)]  # type: ignore[union-attr]
    q = np.random.default_rng(1).uniform(-0.3, 0.3, 3)
    J, mine = again.closed.jacobian(robot.neutral()), robot.closed.jacobian(robot.neutral())
    assert np.linalg.matrix_rank(np.vstack([J, mine]), tol=1e-9) == np.linalg.matrix_rank(mine, tol=1e-9)
    assert_equal(np.linalg.norm(again.closed.error(q)), np.linalg.norm(robot.closed.error(q)), 1e-10)


def test_a_coupling_of_two_joints_is_a_mimic(tmp_path: Path) -> None:
    """q1 - 2 q3 = 0.5 is q3 = 0.5 q1 - 0.25."""
    robot = library.planar_chain(3).with_coupling("belt", {"joint1": 1.0, "joint3": -2.0}, 0.5)
    again = written(robot, tmp_path / "chain.sdf")
    assert again.coordinate_names == ("joint1", "joint2")
    assert (again.joints[2].ratio, again.joints[2].offset) == (0.5, -0.25)


def test_gravity_of_the_earth_needs_no_world(tmp_path: Path) -> None:
    written(one().with_gravity(EARTH), tmp_path / "one.sdf")
    assert "<world" not in (tmp_path / "one.sdf").read_text()
    written(one().with_gravity((0, 0, -1.62)), tmp_path / "one.sdf")
    assert "<gravity>0 0 -1.62</gravity>" in (tmp_path / "one.sdf").read_text()
