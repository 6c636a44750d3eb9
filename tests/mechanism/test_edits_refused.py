"""Invalid edits raise an error that names the mistake, and do not change the robot."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torsor
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
    "gravity of one number": (lambda r: r.with_gravity(-9.81), r"tested: gravity has shape \(\).*allowed: .*\(3,\)"),
    "gravity of four": (lambda r: r.with_gravity([0, 0, 0, 1]), r"tested: gravity has shape \(4,\)"),
    "gravity nan": (lambda r: r.with_gravity([0, 0, np.nan]), r"tested: gravity is .*nan.*allowed: finite"),
    "gravity text": (lambda r: r.with_gravity("down"), r"tested: gravity is 'down'"),
    "gravity in quotes": (lambda r: r.with_gravity(["0", "0", "-9.81"]), r"tested: gravity .*allowed: real numbers"),
    "gravity ragged": (lambda r: r.with_gravity([0, [0], 1]), r"tested: gravity is"),
    "gravity none": (lambda r: r.with_gravity(None), r"tested: gravity"),
    "gravity complex": (lambda r: r.with_gravity(np.array([0, 0, 1j])), r"tested: gravity"),
    "frame on nothing": (lambda r: r.with_frame("a", "sky", EYE), r"tested: no link or frame 'sky'.*allowed: .*'arm'"),
    "frame on a list": (lambda r: r.with_frame("a", ["arm"], EYE), r"tested: no link or frame \['arm'\]"),
    "frame named as a link": (
        lambda r: r.with_frame("arm", "head", EYE),
        r"tested: there is a link or frame 'arm' already",
    ),
    "frame named as the base": (lambda r: r.with_frame("ground", "head", EYE), r"tested: there is .*'ground' already"),
    "frame twice": (lambda r: r.with_frame("tip", "head", EYE), r"tested: there is a link or frame 'tip' already"),
    "frame without a name": (lambda r: r.with_frame("", "head", EYE), r"tested: .*name"),
    "frame named None": (lambda r: r.with_frame(None, "head", EYE), r"tested: .*name"),
    "frame 3 x 3": (lambda r: r.with_frame("a", "arm", np.eye(3)), r"tested: frame 'a': pose has shape \(3, 3\)"),
    "frame scaled": (lambda r: r.with_frame("a", "arm", 2 * EYE), r"frame 'a': pose is not a pose.*allowed: "),
    "frame nan": (lambda r: r.with_frame("a", "arm", EYE * np.nan), r"frame 'a': pose is .*nan"),
    "frame complex": (lambda r: r.with_frame("a", "arm", EYE + 0j), r"frame 'a': pose"),
    "friction of nothing": (lambda r: r.with_friction("knee", 1.0), r"tested: no joint 'knee'.*allowed: .*'hinge'"),
    "friction of a link": (lambda r: r.with_friction("arm", 1.0), r"tested: no joint 'arm'.*allowed: .*'hinge'"),
    "friction negative": (lambda r: r.with_friction("hinge", -1.0), r"joint 'hinge': coulomb is .*allowed: 0 or more"),
    "friction infinite": (lambda r: r.with_friction("hinge", viscous=np.inf), r"joint 'hinge': viscous is .*finite"),
    "friction count": (lambda r: r.with_friction("hinge", [1, 2]), r"joint 'hinge': coulomb has shape \(2,\)"),
    "friction count of a ball": (lambda r: r.with_friction("neck", [1, 2]), r"joint 'neck': coulomb has shape \(2,\)"),
    "friction text": (lambda r: r.with_friction("hinge", "much"), r"joint 'hinge': coulomb is .*much"),
    "friction in quotes": (
        lambda r: r.with_friction("hinge", "1.0"),
        r"joint 'hinge': coulomb is .*1.0.*allowed: real numbers",
    ),
    "friction ragged": (lambda r: r.with_friction("neck", [1, [2, 3]]), r"joint 'neck': coulomb is"),
    "friction complex": (lambda r: r.with_friction("hinge", np.array([1j])), r"joint 'hinge': coulomb"),
    "smooth negative": (
        lambda r: r.with_friction("hinge", smooth=-1),
        r"joint 'hinge': smooth is -1; allowed: a finite number, 0 or more",
    ),
    "payload on nothing": (lambda r: r.with_payload("sky", 1.0), r"tested: no link or frame 'sky'.*allowed: .*'arm'"),
    "payload on a joint": (lambda r: r.with_payload("hinge", 1.0), r"tested: no link or frame 'hinge'"),
    "payload on a list": (lambda r: r.with_payload(["arm"], 1.0), r"tested: no link or frame \['arm'\]"),
    "payload beyond the links": (lambda r: r.with_payload(3, 1.0), r"tested: no link 3; allowed: 0 to 2"),
    "payload negative": (
        lambda r: r.with_payload("arm", -1.0),
        r"'payload': mass is -1.0; allowed: a finite number, 0 or more",
    ),
    "payload infinite": (lambda r: r.with_payload("arm", np.inf), r"'payload': mass is inf"),
    "payload nan": (lambda r: r.with_payload("arm", np.nan), r"'payload': mass is nan"),
    "payload none": (lambda r: r.with_payload("arm", None), r"'payload': mass is"),
    "payload com": (lambda r: r.with_payload("arm", 1.0, (0, 0)), r"'payload': centre of mass has shape \(2,\)"),
    "payload com ragged": (lambda r: r.with_payload("arm", 1.0, (0, [0], 0)), r"'payload': centre of mass is"),
    "payload com complex": (lambda r: r.with_payload("arm", 1.0, np.array([1j, 0, 0])), r"'payload': centre of mass"),
    "payload inertia": (
        lambda r: r.with_payload("arm", 1.0, inertia=[1, 1, 1]),
        r"'payload': inertia has shape \(3,\)",
    ),
    "payload of no body": (
        lambda r: r.with_payload("arm", 1.0, inertia=np.diag([1, 1, 3])),
        r"'payload': no body has .*allowed: .*fix: ",
    ),
    "fix of nothing": (lambda r: r.fix("knee"), r"tested: no joint 'knee'.*allowed: .*'hinge', 'neck', 'gear'"),
    "fix of a link": (lambda r: r.fix("arm"), r"tested: no joint 'arm'"),
    "fix of None": (lambda r: r.fix(None), r"tested: no joint None"),
    "fix of a follower": (lambda r: r.fix("gear"), r"tested: joint 'gear' follows 'hinge'.*fix: fix that one"),
    "fix with two": (
        lambda r: r.fix("hinge", [0, 0]),
        r"tested: joint 'hinge': value has shape \(2,\).*allowed: .*\(1,\)",
    ),
    "fix with none": (lambda r: r.fix("hinge", []), r"tested: joint 'hinge': value has shape \(0,\)"),
    "fix of a ball with one": (lambda r: r.fix("neck", 0.0), r"tested: joint 'neck': value has shape \(\).*\(4,\)"),
    "fix of a ball with three": (
        lambda r: r.fix("neck", [0, 0, 0]),
        r"tested: joint 'neck': value has shape \(3,\).*\(4,\)",
    ),
    "fix of a ball at no quaternion": (lambda r: r.fix("neck", [0, 0, 0, 0]), r"'neck'"),
    "fix at nan": (lambda r: r.fix("hinge", np.nan), r"tested: joint 'hinge': value is .*nan"),
    "fix at infinity": (lambda r: r.fix("hinge", np.inf), r"tested: joint 'hinge': value is .*inf"),
    "fix at text": (lambda r: r.fix("hinge", "0.5"), r"tested: joint 'hinge': value is .*0.5.*allowed: real numbers"),
    "fix at a complex": (lambda r: r.fix("hinge", 1j), r"tested: joint 'hinge': value"),
    "attach at nothing": (lambda r: r.attach(other(), "sky"), r"tested: no link or frame 'sky'"),
    "attach itself": (lambda r: r.attach(r, "arm"), r"tested: both robots have 'arm'.*fix: give a prefix"),
    "attach a clashing link": (lambda r: r.attach(other(link="arm"), "arm"), r"tested: both robots have 'arm'.*fix: "),
    "attach a clashing joint": (lambda r: r.attach(other(joint="neck"), "arm"), r"both robots have 'neck'.*fix: "),
    "attach a clashing frame": (lambda r: r.attach(other(link="tip"), "arm"), r"both robots have 'tip'.*fix: "),
    "attach a clashing base": (lambda r: r.attach(other(base="head"), "arm"), r"both robots have 'head'.*fix: "),
    "attach a clashing prefix": (
        lambda r: r.attach(other(), "arm", "x/").attach(other(), "arm", "x/"),
        r"both robots have 'x/floor', 'x/hand', 'x/wrist'",
    ),
    "attach what is no robot": (lambda r: r.attach("hand", "arm"), r"^tested: "),
    "attach None": (lambda r: r.attach(None, "arm"), r"^tested: "),
    "subtree of nothing": (lambda r: r.subtree("sky"), r"tested: no link or frame 'sky'.*allowed: .*'arm'"),
    "subtree of a joint": (lambda r: r.subtree("hinge"), r"tested: no link or frame 'hinge'"),
    "subtree of a frame": (lambda r: r.subtree("tip"), r"tested: 'tip' is a frame, not a moving link; fix: .*'arm'"),
    "subtree of a frame on the base": (lambda r: r.subtree("corner"), r"tested: 'corner' is a frame"),
    "subtree whose leader stays": (
        lambda r: r.subtree("geared"),
        r"tested: joint 'gear' follows 'hinge'.*not in the subtree",
    ),
    "place of nothing": (lambda r: r.place("sky"), r"tested: no link or frame 'sky'.*allowed: .*'ground'"),
    "place of a list": (lambda r: r.place(["arm"]), r"tested: no link or frame \['arm'\]"),
    "place beyond the links": (lambda r: r.place(3), r"tested: no link 3; allowed: 0 to 2"),
    "joint of nothing": (lambda r: r.joint("knee"), r"tested: no joint 'knee'.*allowed: "),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # a warning instead of an error must fail too
@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_edit_is_refused_and_changes_nothing(case: str) -> None:
    edit, message = REFUSED[case]
    robot = sample()
    with pytest.raises(ModelError, match=f"(?s){message}"):
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
    with pytest.raises(ModelError, match="tested: no link 0"):
        robot.pose([], 0)


def test_a_robot_may_carry_one_whose_joint_has_the_name_of_the_weld() -> None:
    carried = other(base="floor", joint="floor/weld")
    assert sample().attach(carried, "arm").joint_names[-1] == "floor/weld"


def test_saving_with_an_unknown_suffix_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"robot.obj: the suffix is '.obj'; allowed: \.toml, \.urdf, \.sdf, \.xml \(MJCF\)"
    ):
        sample().save(tmp_path / "robot.obj")
    assert list(tmp_path.iterdir()) == []


def test_saving_over_a_folder_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "robot.toml").mkdir()
    with pytest.raises((ModelError, OSError)):
        sample().save(tmp_path / "robot.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["robot.toml"]


@pytest.mark.parametrize("links", ["ab", [1.0], 3, None, [[torsor.Link("a")]]])
def test_robots_are_built_of_links(links: object) -> None:
    with pytest.raises(torsor.ModelError, match="among the links; allowed: a list of Link"):
        torsor.build("arm", links, [])  # type: ignore[arg-type]


def test_chains_have_a_whole_number_of_rods() -> None:
    with pytest.raises(torsor.ModelError, match="n is True; allowed: a whole number from 0"):
        torsor.library.planar_chain(True)
