"""Joints of SDF files have the motion of the same joints built in Python, and of Pinocchio's copy of the robot."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from robots import robot_file
from torsor import ModelWarning, library
from torsor.mechanism import Joint, Link, Spring
from torsor.spatial import from_rpy, inverse_pose, make_pose, to_rpy

from .sdf_text import BODY, joint, link, model, read

PARENT, CHILD = (
    make_pose(from_rpy([0.1, -0.2, 0.3]), [0.2, 0.1, 0.3]),
    make_pose(from_rpy([0.4, 0.5, -0.6]), [0.7, 0, 1]),
)
POINT, TURN = np.array([0.1, -0.2, 0.3]), from_rpy([0.3, 0.2, -0.1])
POSE = "<pose>0.1 -0.2 0.3 0.3 0.2 -0.1</pose>"
AXES = "<axis><xyz>0.6 0 0.8</xyz></axis>", "<axis2><xyz>0 1 0</xyz></axis2>"
AXIS, AXIS2 = TURN @ [0.6, 0, 0.8], TURN @ [0, 1, 0]
AT = {"placement": inverse_pose(PARENT) @ CHILD, "point": POINT}


def two(kind: str, more: str) -> str:
    """Return a file with two links at general poses, the first of them welded to the world."""
    held = joint("fixed", "world", "p", name="held")
    ends = link("p", "0.2 0.1 0.3 0.1 -0.2 0.3"), link("c", "0.7 0 1 0.4 0.5 -0.6")
    return model(*ends, held, joint(kind, "p", "c", POSE + more), version="1.10")


def built(*joints: Joint, middle: str = "") -> torsor.Robot:
    """Return the same robot, built in Python."""
    links = [Link("world"), Link("p", *BODY), Link("c", *BODY)] + ([Link(middle)] if middle else [])  # type: ignore[arg-type]
    return torsor.build("m", links, [Joint("held", "fixed", "world", "p", PARENT), *joints]).to(device="casadi")


def one(kind: str, **more: object) -> torsor.Robot:
    return built(Joint("j", kind, "p", "c", **AT, **more))  # type: ignore[arg-type]


def chained() -> torsor.Robot:
    first = Joint("j/axis", "revolute", "p", "j/axis", AT["placement"], AXIS, POINT)
    return built(first, Joint("j/axis2", "revolute", "j/axis", "c", axis=AXIS2, point=POINT), middle="j/axis")


MORE = """<limit><lower>-1</lower><upper>2</upper><effort>5</effort><velocity>3</velocity></limit>
<dynamics><damping>0.3</damping><friction>0.2</friction><spring_stiffness>4</spring_stiffness>
<spring_reference>0.5</spring_reference></dynamics></axis>"""
SETTINGS = {"lower": -1.0, "upper": 2.0, "effort_limit": 5.0, "velocity_limit": 3.0, "viscous": 0.3, "coulomb": 0.2}
KINDS = {
    "revolute": (AXES[0], one("revolute", axis=AXIS)),
    "continuous": (
        AXES[0].replace("</axis>", MORE),
        one(
            "continuous", axis=AXIS, **{**SETTINGS, "lower": -np.inf, "upper": np.inf, "spring": Spring(4.0, rest=0.5)}
        ),
    ),
    "prismatic": (
        AXES[0].replace("</axis>", MORE),
        one("prismatic", axis=AXIS, **SETTINGS, spring=Spring(4.0, rest=0.5)),
    ),
    "ball": ("", one("spherical")),
    "universal": ("".join(AXES), chained()),
    "revolute2": ("".join(AXES), chained()),
    "screw": (
        AXES[0] + "<screw_thread_pitch>0.05</screw_thread_pitch>",
        one("helical", axis=AXIS, pitch=0.05 / 2 / math.pi),
    ),
}


def assert_same_motion(found: torsor.Robot, expected: torsor.Robot) -> None:
    """Compare forces, pose of the last link and limits, by the names of the coordinates."""
    assert found.coordinate_names == expected.coordinate_names
    rng = np.random.default_rng(1)
    q = expected.integrate(expected.neutral(), rng.uniform(-1, 1, expected.nv))
    v, a = rng.normal(size=(2, expected.nv))
    np.testing.assert_allclose(found.inverse_dynamics(q, v, a), expected.inverse_dynamics(q, v, a), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.pose(q, "c"), expected.pose(q, "c"), rtol=0, atol=1e-14)
    for ours, theirs in zip(found.joints, expected.joints, strict=True):
        for key in ("lower", "upper", "velocity_limit", "effort_limit"):
            np.testing.assert_array_equal(getattr(ours, key), getattr(theirs, key))


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_moves_as_the_one_built_in_python(tmp_path: Path, kind: str) -> None:
    more, expected = KINDS[kind]
    assert_same_motion(read(tmp_path, two(kind, more)), expected)


def test_a_fixed_joint_welds_its_links(tmp_path: Path) -> None:
    robot = read(tmp_path, two("fixed", ""))
    assert robot.nv == 0 and robot.base.mass == 4.0
    np.testing.assert_allclose(robot.places["c"].pose, CHILD, rtol=0, atol=1e-15)


def test_thread_pitch_is_radians_per_metre_of_a_left_handed_thread(tmp_path: Path) -> None:
    """Gazebo Classic's <thread_pitch> 125 is -1/125 m/rad; since 1.10, <screw_thread_pitch> is m per turn."""
    robot = read(tmp_path, two("screw", "<thread_pitch>125</thread_pitch>"))
    assert robot.joints[0].pitch == -1 / 125
    both = "<thread_pitch>125</thread_pitch><screw_thread_pitch>0.25</screw_thread_pitch>"
    assert read(tmp_path, two("screw", both)).joints[0].pitch == 0.25 / (2 * math.pi)
    assert read(tmp_path, two("screw", "")).joints[0].pitch == 1 / (2 * math.pi)  # the default is 1 m per turn


def test_limits_without_end_and_negative_efforts_are_no_limits(tmp_path: Path) -> None:
    limit = (
        "<axis><limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort><velocity>-1</velocity></limit></axis>"
    )
    pin = read(tmp_path, two("revolute", limit)).joints[0]
    assert [float(np.ravel(each)[0]) for each in (pin.lower, pin.upper)] == [-np.inf, np.inf]
    assert np.isinf(pin.effort_limit).all() and np.isinf(pin.velocity_limit).all()


def test_a_mimic_follows_with_multiplier_offset_and_reference(tmp_path: Path) -> None:
    """follower = multiplier (leader - reference) + offset = 2 (q - 0.5) + 0.1 = 2 q - 0.9."""
    mimic = """<axis><xyz>0 0 1</xyz><mimic joint="j" axis="axis"><multiplier>2</multiplier><offset>0.1</offset>
        <reference>0.5</reference></mimic></axis>"""
    parts = link("a"), link("b"), link("c"), joint("revolute", "a", "b"), joint("prismatic", "b", "c", mimic, "k")
    robot = read(tmp_path, model(*parts, version="1.11"))
    assert robot.coordinate_names == ("j",)
    follower = robot.joints[1]
    assert (follower.coordinate, follower.ratio, follower.offset) == ("j", 2.0, -0.9)


def gears(axis2: str, child: str = "b") -> str:
    hinges = joint("revolute", "r", "a", name="ja"), joint("revolute", "r", child, name="jb")
    box = """<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>r</gearbox_reference_body>
        <axis><xyz>0 0 1</xyz></axis><axis2><xyz>{}</xyz></axis2>"""
    return model(
        link("r"), link("a"), link("b", "1 0 0 0 0 0"), *hinges, joint("gearbox", "a", "b", box.format(axis2), "g")
    )


def test_a_gearbox_couples_its_hinges_by_minus_its_ratio(tmp_path: Path) -> None:
    """theta of the child = -3 theta of the parent; about the opposite axis it is 3 theta."""
    for axis2, factor in (("0 0 1", 1.0), ("0 0 -1", -1.0)):
        robot = read(tmp_path, gears(axis2))
        (coupling,) = robot.loops
        assert dict(coupling.coefficients) == {"ja": 3.0, "jb": factor}  # type: ignore[union-attr]
    with refused(value="jb", where="joint 'g'"):
        read(tmp_path, gears("1 0 0"))


def test_a_link_with_two_parents_closes_a_loop(tmp_path: Path) -> None:
    """A parallelogram of sides 1 and 2: the coupler stays parallel to the ground, the rocker turns as the crank."""
    links = link("ground"), link("crank"), link("rocker", "2 0 0 0 0 0"), link("coupler", "0 0 0 0 0 0")
    pins = (
        joint("revolute", "ground", "crank", name="a"),
        joint("revolute", "ground", "rocker", name="b"),
        joint("revolute", "crank", "coupler", "<pose>0 1 0 0 0 0</pose>", name="c"),
        joint("revolute", "rocker", "coupler", "<pose>2 1 0 0 0 0</pose>", name="d"),
    )
    robot = read(tmp_path, model(*links, *pins)).with_active(["a"])
    assert [(loop.name, loop.kind) for loop in robot.loops] == [("d", "revolute")]  # type: ignore[union-attr]
    np.testing.assert_allclose(robot.closed.error([0.3, 0.3, -0.3]), 0, atol=1e-15)
    np.testing.assert_allclose(robot.closed.assemble([0.3], guess=[0.3, 0.2, -0.2]), [0.3, 0.3, -0.3], atol=1e-10)
    damped = joint("revolute", "rocker", "coupler", "<axis><dynamics><damping>1</damping></dynamics></axis>", "d")
    with warned(what="not read: limits, friction, springs and <mimic> of joints that close loops"):
        read(tmp_path, model(*links, *pins[:3], damped))


def test_cassie_has_four_closed_loops_and_the_poses_of_its_file(tmp_path: Path) -> None:
    path = robot_file("talos_reduced.urdf").parents[2] / "cassie_description/robots/cassie_v2.sdf"
    if not path.is_file():
        pytest.skip("this version of example-robot-data has no Cassie")
    with warned(where="cassie_v2.sdf", what="not read: <plugin> (1, line 1071)"):
        robot = torsor.load(path, base="floating").to(device="casadi")
    assert (robot.nv, len(robot.loops)) == (28, 4)
    left = robot.pose(robot.neutral(), "left-hip-yaw")[:3, 3] - robot.pose(robot.neutral(), "pelvis")[:3, 3]
    np.testing.assert_allclose(left, [-0.049, 0.135, 0.0], atol=1e-15)
    assert np.abs(robot.closed.error(robot.neutral())).max() < 1e-15


def test_a_robot_saved_as_sdf_has_the_forces_that_pinocchio_finds_for_its_urdf(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    path = robot_file("ur5_robot.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        torsor.load(path).save(tmp_path / "ur5.sdf")
        robot = torsor.load(tmp_path / "ur5.sdf").to(device="casadi")
    peer = pin.buildModelFromUrdf(str(path))
    q, v, a = np.random.default_rng(2).uniform(-1, 1, (3, 6))
    expected = pin.rnea(peer, peer.createData(), q, v, a)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, rtol=0, atol=1e-10)


def placed(T: np.ndarray) -> str:
    return " ".join(map(repr, [*T[:3, 3].tolist(), *to_rpy(T[:3, :3]).tolist()]))


def printed(robot: torsor.Robot, version: str) -> str:
    """Return a robot as SDF in other frames than our writer has: poses in the model (1.6), or in other links (1.7)."""
    rng, kinds = np.random.default_rng(7), {"helical": "screw", "spherical": "ball"}
    poses = dict(zip(robot.link_names, robot.poses(robot.neutral()), strict=True))
    parts = [joint("fixed", "world", "ground", name="weld"), link("ground")]
    for body, pin in zip(robot.links, robot.joints, strict=True):
        others = [name for name in robot.link_names if name > body.name] if version == "1.7" else []
        near = str(rng.choice(others)) if others else ""  # a link that comes later in the file
        at = inverse_pose(poses[near]) @ poses[body.name] if near else poses[body.name]
        entries = (float(body.inertia["xyz".index(a), "xyz".index(b)]) for a, b in PAIRS)
        numbers = "".join(f"<i{pair}>{entry!r}</i{pair}>" for pair, entry in zip(PAIRS, entries, strict=True))
        solid = f"<mass>{body.mass!r}</mass><inertia>{numbers}</inertia>"
        com = " ".join(map(repr, body.com.tolist()))
        to = f' relative_to="{near}"' if near else ""
        inertial = f"<inertial><pose>{com} 0 0 0</pose>{solid}</inertial>"
        parts.append(f'<link name="{body.name}"><pose{to}>{placed(at)}</pose>{inertial}</link>')
        turn = from_rpy(rng.normal(size=3))
        axis = " ".join(map(repr, (turn.T @ pin.axis).tolist()))
        more = f"<pose>{placed(make_pose(turn, pin.point))}</pose>"
        if pin.type != "spherical":
            more += f"<axis><xyz>{axis}</xyz><dynamics><damping>{float(pin.viscous[0])!r}</damping></dynamics></axis>"
        if pin.type == "helical":
            more += f"<screw_thread_pitch>{2 * math.pi * pin.pitch!r}</screw_thread_pitch>"
        parent = "ground" if pin.parent == robot.base.name else pin.parent
        parts.append(joint(kinds.get(pin.type, pin.type), parent, body.name, more, pin.name))
    return model(*parts, version=version)


PAIRS = ("xx", "yy", "zz", "xy", "xz", "yz")


@pytest.mark.parametrize("version", ["1.6", "1.7"])
def test_a_random_tree_with_poses_in_other_frames_has_the_same_dynamics(tmp_path: Path, version: str) -> None:
    kinds = ("revolute", "continuous", "prismatic", "helical", "spherical")
    tree = library.random_tree(6, 3, kinds)
    joints = [
        Joint(pin.name, pin.type, pin.parent, pin.child, pin.placement, pin.axis, pin.point, pin.pitch,
              viscous=0.0 if pin.type == "spherical" else pin.viscous)
        for pin in tree.joints
    ]  # fmt: skip
    robot = torsor.build("tree", [Link(tree.base.name), *tree.links], joints).to(device="casadi")
    again = read(tmp_path, printed(robot, version))
    assert again.coordinate_names == robot.coordinate_names
    rng = np.random.default_rng(1)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    v, a = rng.normal(size=(2, robot.nv))
    expected = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(again.inverse_dynamics(q, v, a), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


WRONG = {
    "unknown type": (joint("wheel", "a", "b"), "wheel"),
    "no child": ("<joint name='j' type='fixed'><parent>a</parent></joint>", "add <child>"),
    "unknown link": (joint("fixed", "a", "x"), "no frame 'x'"),
    "child is the world": (joint("fixed", "a", "world"), "the child is the world"),
    "itself": (joint("revolute", "a", "a"), "both ends are parts of 'a'"),
    "axis of zeros": (joint("revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>"), "axis"),
    "no number": (joint("revolute", "a", "b", "<axis><limit><lower>x</lower></limit></axis>"), "<lower> is 'x'"),
    "no axis2": (joint("universal", "a", "b"), "no <axis2>"),
    "thread pitch 0": (joint("screw", "a", "b", "<thread_pitch>0</thread_pitch>"), "thread_pitch"),
    "mimic of a link": (joint("revolute", "a", "b", "<axis><mimic joint='a'/></axis>"), "<mimic> of 'a'"),
    "a screw in a loop": (
        joint("revolute", "a", "b") + joint("screw", "a", "b", name="k"),
        "a screw joint closes a loop at 'b'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_joint_is_an_error_that_names_it(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    with refused(message, where="robot.sdf"):
        read(tmp_path, model(link("a"), link("b"), text))


def test_rotors_of_drake_add_their_inertia_times_the_square_of_the_gear(tmp_path: Path) -> None:
    rotor = "<drake:rotor_inertia>0.002</drake:rotor_inertia><drake:gear_ratio>10</drake:gear_ratio>"
    parts = link("a"), link("b")
    bare, geared = (read(tmp_path, model(*parts, joint("revolute", "a", "b", more))) for more in ("", rotor))
    added = geared.mass_matrix([0.3]) - bare.mass_matrix([0.3])
    np.testing.assert_allclose(added, [[0.002 * 10**2]], rtol=1e-12)
    with warned(what="not read: <drake:rotor_inertia> of a joint that"):
        read(tmp_path, model(*parts, joint("ball", "a", "b", rotor)))
    with refused(allowed="a number up to 1e+50"):
        read(tmp_path, model(*parts, joint("revolute", "a", "b", rotor.replace("10<", "1e200<"))))
