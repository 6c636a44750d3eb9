"""Invalid edits raise an error that names the mistake, and do not change the robot."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import Joint, Link, ModelError

EYE = np.eye(4)
Edit = Callable[[torsor.Robot], object]


def sample() -> torsor.Robot:
    """Return a robot with a hinge, a ball, a follower of the hinge, a frame on a link and one on the base."""
    links = [Link("ground"), *(Link(name, 1.0, (0.1, 0.2, 0.3), np.eye(3)) for name in ("arm", "head", "geared"))]
    joints = [
        Joint("hinge", "revolute", "ground", "arm"),
        Joint("neck", "spherical", "arm", "head"),
        Joint("gear", "revolute", "arm", "geared", coordinate="hinge", ratio=2.0),
    ]
    made = torsor.build("tested", links, joints)
    return made.with_frame("tip", "arm", EYE).with_frame("corner", "ground", EYE)


def other(base: str = "floor", link: str = "hand", joint: str = "wrist") -> torsor.Robot:
    return torsor.build("other", [Link(base), Link(link, 1.0)], [Joint(joint, "revolute", base, link)])


REFUSED: dict[str, tuple[Edit, str]] = {
    "gravity of one number": (lambda r: r.with_gravity(-9.81), "gravity"),
    "gravity of four": (lambda r: r.with_gravity([0, 0, 0, 1]), "gravity"),
    "gravity nan": (lambda r: r.with_gravity([0, 0, np.nan]), "gravity"),
    "gravity text": (lambda r: r.with_gravity("down"), "gravity"),
    "gravity in quotes": (lambda r: r.with_gravity(["0", "0", "-9.81"]), "gravity"),
    "gravity ragged": (lambda r: r.with_gravity([0, [0], 1]), "gravity"),
    "gravity none": (lambda r: r.with_gravity(None), "gravity"),
    "gravity complex": (lambda r: r.with_gravity(np.array([0, 0, 1j])), "gravity"),
    "frame on nothing": (lambda r: r.with_frame("a", "sky", EYE), "sky"),
    "frame on a list": (lambda r: r.with_frame("a", ["arm"], EYE), "no link or frame ['arm']"),
    "frame named as a link": (
        lambda r: r.with_frame("arm", "head", EYE),
        "arm",
    ),
    "frame named as the base": (lambda r: r.with_frame("ground", "head", EYE), "ground"),
    "frame twice": (lambda r: r.with_frame("tip", "head", EYE), "tip"),
    "frame without a name": (lambda r: r.with_frame("", "head", EYE), "a non-empty string"),
    "frame named None": (lambda r: r.with_frame(None, "head", EYE), "a non-empty string"),
    "frame 3 x 3": (lambda r: r.with_frame("a", "arm", np.eye(3)), "pose"),
    "frame scaled": (lambda r: r.with_frame("a", "arm", 2 * EYE), "pose"),
    "frame nan": (lambda r: r.with_frame("a", "arm", EYE * np.nan), "pose"),
    "frame complex": (lambda r: r.with_frame("a", "arm", EYE + 0j), "pose"),
    "friction of nothing": (lambda r: r.with_friction("knee", 1.0), "knee"),
    "friction of a link": (lambda r: r.with_friction("arm", 1.0), "arm"),
    "friction negative": (lambda r: r.with_friction("hinge", -1.0), "coulomb"),
    "friction infinite": (lambda r: r.with_friction("hinge", viscous=np.inf), "viscous"),
    "friction count": (lambda r: r.with_friction("hinge", [1, 2]), "coulomb"),
    "friction count of a ball": (lambda r: r.with_friction("neck", [1, 2]), "coulomb"),
    "friction text": (lambda r: r.with_friction("hinge", "much"), "coulomb"),
    "friction in quotes": (
        lambda r: r.with_friction("hinge", "1.0"),
        "coulomb",
    ),
    "friction ragged": (lambda r: r.with_friction("neck", [1, [2, 3]]), "coulomb"),
    "friction complex": (lambda r: r.with_friction("hinge", np.array([1j])), "coulomb"),
    "smooth negative": (
        lambda r: r.with_friction("hinge", smooth=-1),
        "smooth",
    ),
    "payload on nothing": (lambda r: r.with_payload("sky", 1.0), "sky"),
    "payload on a joint": (lambda r: r.with_payload("hinge", 1.0), "hinge"),
    "payload on a list": (lambda r: r.with_payload(["arm"], 1.0), "no link or frame ['arm']"),
    "payload beyond the links": (lambda r: r.with_payload(3, 1.0), "no link 3"),
    "payload negative": (
        lambda r: r.with_payload("arm", -1.0),
        "mass",
    ),
    "payload infinite": (lambda r: r.with_payload("arm", np.inf), "mass"),
    "payload nan": (lambda r: r.with_payload("arm", np.nan), "mass"),
    "payload none": (lambda r: r.with_payload("arm", None), "mass"),
    "payload com": (lambda r: r.with_payload("arm", 1.0, (0, 0)), "centre of mass"),
    "payload com ragged": (lambda r: r.with_payload("arm", 1.0, (0, [0], 0)), "centre of mass"),
    "payload com complex": (lambda r: r.with_payload("arm", 1.0, np.array([1j, 0, 0])), "centre of mass"),
    "payload inertia": (
        lambda r: r.with_payload("arm", 1.0, inertia=[1, 1, 1]),
        "inertia",
    ),
    "payload of no body": (
        lambda r: r.with_payload("arm", 1.0, inertia=np.diag([1, 1, 3])),
        "no body has",
    ),
    "fix of nothing": (lambda r: r.fix("knee"), "knee"),
    "fix of a link": (lambda r: r.fix("arm"), "arm"),
    "fix of None": (lambda r: r.fix(None), "no joint None"),
    "fix of a follower": (lambda r: r.fix("gear"), "joint"),
    "fix with two": (
        lambda r: r.fix("hinge", [0, 0]),
        "value",
    ),
    "fix with none": (lambda r: r.fix("hinge", []), "value"),
    "fix of a ball with one": (lambda r: r.fix("neck", 0.0), "value"),
    "fix of a ball with three": (
        lambda r: r.fix("neck", [0, 0, 0]),
        "value",
    ),
    "fix of a ball at no quaternion": (lambda r: r.fix("neck", [0, 0, 0, 0]), "a nonzero quaternion"),
    "fix at nan": (lambda r: r.fix("hinge", np.nan), "value"),
    "fix at infinity": (lambda r: r.fix("hinge", np.inf), "value"),
    "fix at text": (lambda r: r.fix("hinge", "0.5"), "value"),
    "fix at a complex": (lambda r: r.fix("hinge", 1j), "value"),
    "attach at nothing": (lambda r: r.attach(other(), "sky"), "sky"),
    "attach itself": (lambda r: r.attach(r, "arm"), "both robots have 'arm'"),
    "attach a clashing link": (lambda r: r.attach(other(link="arm"), "arm"), "both robots have 'arm'"),
    "attach a clashing joint": (lambda r: r.attach(other(joint="neck"), "arm"), "both robots have 'neck'"),
    "attach a clashing frame": (lambda r: r.attach(other(link="tip"), "arm"), "both robots have 'tip'"),
    "attach a clashing base": (lambda r: r.attach(other(base="head"), "arm"), "both robots have 'head'"),
    "attach a clashing prefix": (
        lambda r: r.attach(other(), "arm", "x/").attach(other(), "arm", "x/"),
        "both robots have 'x/floor', 'x/hand', 'x/wrist'",
    ),
    "attach what is no robot": (lambda r: r.attach("hand", "arm"), "a robot"),
    "attach None": (lambda r: r.attach(None, "arm"), "a robot"),
    "subtree of nothing": (lambda r: r.subtree("sky"), "sky"),
    "subtree of a joint": (lambda r: r.subtree("hinge"), "hinge"),
    "subtree of a frame": (lambda r: r.subtree("tip"), "tip"),
    "subtree of a frame on the base": (lambda r: r.subtree("corner"), "corner"),
    "subtree whose leader stays": (
        lambda r: r.subtree("geared"),
        "joint 'gear' follows 'hinge'",
    ),
    "place of nothing": (lambda r: r.place("sky"), "sky"),
    "place of a list": (lambda r: r.place(["arm"]), "no link or frame ['arm']"),
    "place beyond the links": (lambda r: r.place(3), "no link 3"),
    "joint of nothing": (lambda r: r.joint("knee"), "knee"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # a warning instead of an error must fail too
@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_edit_is_refused_and_changes_nothing(case: str) -> None:
    edit, message = REFUSED[case]
    robot = sample()
    with refused(message):
        edit(robot)
    assert robot == sample()


def test_a_subtree_may_be_named_by_its_index() -> None:
    robot = sample()
    assert robot.subtree(1) == robot.subtree("head")


def test_a_joint_may_be_fixed_by_one_number_or_one_row() -> None:
    robot = sample()
    assert robot.fix("hinge", 0.5) == robot.fix("hinge", [0.5]) == robot.fix("hinge", np.float32(0.5))
    assert robot.fix("hinge", 1) == robot.fix("hinge", 1.0)


def test_all_methods_work_on_a_robot_whose_joints_are_all_fixed() -> None:
    robot = sample().fix("hinge", 0.3).fix("neck", [0, 0, 0, 2.0])
    assert (robot.nq, robot.nv, robot.links) == (0, 0, ())
    assert {frame.name for frame in robot.frames} == {"arm", "head", "geared", "tip", "corner"}
    assert robot.base.mass == 3.0
    np.testing.assert_allclose(robot.pose([], "arm")[0, 0], np.cos(0.3))
    np.testing.assert_allclose(robot.pose([], "geared")[0, 0], np.cos(0.9))
    with refused(where="tested", what="no link 0"):
        robot.pose([], 0)


def test_a_robot_may_carry_one_whose_joint_has_the_name_of_the_weld() -> None:
    carried = other(base="floor", joint="floor/weld")
    assert sample().attach(carried, "arm").joint_names[-1] == "floor/weld"


def test_saving_with_an_unknown_suffix_is_an_error(tmp_path: Path) -> None:
    with refused(value=".obj", where="robot.obj", allowed=".toml, .urdf, .sdf, .xml (MJCF)"):
        sample().save(tmp_path / "robot.obj")
    assert list(tmp_path.iterdir()) == []


def test_saving_over_a_folder_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "robot.toml").mkdir()
    with pytest.raises((ModelError, OSError)):
        sample().save(tmp_path / "robot.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["robot.toml"]


@pytest.mark.parametrize("links", ["ab", [1.0], 3, None, [[torsor.Link("a")]]])
def test_robots_are_built_of_links(links: object) -> None:
    with refused(allowed="a list of Link"):
        torsor.build("arm", links, [])  # type: ignore[arg-type]


def test_chains_have_a_whole_number_of_rods() -> None:
    with refused(argument="n", allowed="a whole number from 0"):
        torsor.library.planar_chain(True)
