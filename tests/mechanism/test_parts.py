"""Robots made in Python: invalid links, joints, tables and screws raise an error that names the part."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor import DHLink, Frame, Joint, Link, MDHLink, ModelError, ModelWarning
from torsor.spatial import from_rpy, make_pose

GROUND = Link("ground")
ROD = Link("rod", 1.0, (0.5, 0.0, 0.0), np.diag([0.1, 0.2, 0.2]))
PIN = Joint("pin", "revolute", "ground", "rod")
NO_BODY = [np.diag([1.0, 1.0, 3.0]), np.diag([1.0, 1.0, -0.5]), -np.eye(3), [[1, 2, 0], [2, 1, 0], [0, 0, 1]]]

# Each: arguments, and the error message.
WRONG_LINKS: dict[str, tuple[dict, str]] = {
    "negative mass": ({"mass": -1.0}, r"mass is -1.0; allowed: a finite number, 0 or more"),
    "mass nan": ({"mass": np.nan}, r"mass is nan; allowed: a finite number"),
    "mass infinite": ({"mass": np.inf}, r"mass is inf; allowed: a finite number"),
    "mass none": ({"mass": None}, r"mass is .*allowed: "),
    "mass text": ({"mass": "1.0"}, r"mass is '1.0'.*allowed: "),
    "mass row": ({"mass": [1.0]}, r"mass is \[1.0\]; allowed: a finite number"),
    "mass complex": ({"mass": 1 + 2j}, r"mass is .*j.*allowed: "),
    "mass complex of numpy": ({"mass": np.complex128(1 + 2j)}, r"mass .*allowed: "),
    "mass beyond floating point": ({"mass": 10**400}, r"mass .*allowed: "),
    "com short": ({"com": (0, 0)}, r"centre of mass has shape \(2,\).*allowed: .*\(3,\)"),
    "com nan": ({"com": (0, 0, np.nan)}, r"centre of mass is .*nan.*allowed: finite"),
    "com text": ({"com": "abc"}, r"centre of mass is 'abc'.*allowed: real numbers"),
    "com ragged": ({"com": [0, [0], 0]}, r"centre of mass is .*allowed: real numbers"),
    "com complex": ({"com": np.array([1j, 0, 0])}, r"centre of mass .*allowed: "),
    "inertia row": ({"inertia": [1, 1, 1]}, r"inertia has shape \(3,\).*allowed: .*\(3, 3\)"),
    "inertia asymmetric": ({"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, r"inertia .* is not symmetric"),
    "inertia infinite": ({"inertia": np.diag([1, 1, np.inf])}, r"inertia is .*inf.*allowed: finite"),
    "inertia triangle": ({"inertia": NO_BODY[0]}, r"no body has .*\[1.0, 1.0, 3.0\].*allowed: .*fix: "),
    "inertia negative": ({"inertia": NO_BODY[1]}, r"no body has .*-0.5.*allowed: .*fix: "),
    "inertia complex": ({"inertia": np.eye(3) * 1j}, r"inertia .*allowed: "),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # an error must be raised anyway
@pytest.mark.parametrize("case", WRONG_LINKS)
def test_a_wrong_link_is_refused_by_name(case: str) -> None:
    given, message = WRONG_LINKS[case]
    with pytest.raises(ModelError, match=f"(?s)^link 'hand': {message}"):
        Link("hand", **given)


WRONG_JOINTS: dict[str, tuple[dict, str]] = {
    "zero axis": ({"axis": (0, 0, 0)}, r"axis is .*allowed: a direction.*fix: "),
    "axis short": ({"axis": (0, 1)}, r"axis has shape \(2,\).*allowed: .*\(3,\)"),
    "axis nan": ({"axis": (0, np.nan, 1)}, r"axis is .*nan.*allowed: finite"),
    "axis letter": ({"axis": "z"}, r"axis is 'z'.*allowed: real numbers"),
    "axis text": ({"axis": ["0", "0", "1"]}, r"axis is .*allowed: real numbers"),
    "axis complex": ({"axis": np.array([1j, 0, 1])}, r"axis .*allowed: "),
    "placement 3 x 3": ({"placement": np.eye(3)}, r"placement has shape \(3, 3\).*allowed: .*\(4, 4\)"),
    "placement scaled": ({"placement": np.diag([2, 2, 2, 1])}, r"placement is not a pose.*allowed: "),
    "placement mirrored": ({"placement": np.diag([1, 1, -1, 1])}, r"placement is not a pose.*allowed: "),
    "placement sheared": ({"placement": np.eye(4) + np.eye(4, k=1) * [0, 0.1, 0, 0]}, r"placement is not a pose"),
    "placement without its last row": ({"placement": np.diag([1, 1, 1, 0])}, r"placement is not a pose"),
    "placement nan": ({"placement": np.full((4, 4), np.nan)}, r"placement is .*nan.*allowed: finite"),
    "point short": ({"point": 0.0}, r"point has shape \(\).*allowed: .*\(3,\)"),
    "ratio zero": ({"ratio": 0}, r"ratio is 0.*fix: "),
    "ratio nan": ({"ratio": np.nan}, r"ratio is nan"),
    "pitch infinite": ({"pitch": np.inf}, r"pitch is inf"),
    "limits the wrong way round": ({"lower": 1, "upper": -1}, r"lower limit .*above"),
    "lower nan": ({"lower": np.nan}, r"lower is .*nan"),
    "lower text": ({"lower": "low"}, r"lower is .*low.*allowed: real numbers"),
    "lower two numbers": ({"lower": [-1, -1]}, r"lower has shape \(2,\).*allowed: .*\(1,\)"),
    "lower ragged": ({"lower": [1, [2, 3]]}, r"lower is .*allowed: real numbers"),
    "lower complex": ({"lower": np.array([1j])}, r"lower .*allowed: "),
    "velocity limit negative": ({"velocity_limit": -1}, r"velocity_limit is .*allowed: 0 or more"),
    "effort limit nan": ({"effort_limit": np.nan}, r"effort_limit is .*nan"),
    "coulomb negative": ({"coulomb": -1}, r"coulomb is .*allowed: 0 or more"),
    "viscous infinite": ({"viscous": np.inf}, r"viscous is .*inf.*allowed: finite"),
    "rotor negative": ({"rotor_inertia": -1}, r"rotor_inertia is .*allowed: 0 or more"),
    "smooth negative": ({"smooth": -1}, r"smooth is -1; allowed: a finite number, 0 or more"),
    "unknown type": ({"type": "hinge"}, r"joint type is 'hinge'; allowed: 'revolute', "),
    "type none": ({"type": None}, r"joint type is None; allowed: 'revolute', "),
    "type list": ({"type": ["revolute"]}, r"joint type is \['revolute'\]; allowed: 'revolute', "),
    "spherical follower": (
        {"type": "spherical", "coordinate": "other"},
        r"a spherical joint cannot follow 'other'.*allowed: ",
    ),
    "spherical with an offset": ({"type": "spherical", "offset": 1.0}, r"offset"),
    "free with an offset": ({"type": "free", "offset": 1.0}, r"offset"),
    "spherical with a ratio": ({"type": "spherical", "ratio": 2.0}, r"offset 0.0 and ratio 2.0"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_JOINTS)
def test_a_wrong_joint_is_refused_by_name(case: str) -> None:
    given, message = WRONG_JOINTS[case]
    with pytest.raises(ModelError, match=f"(?s)^joint 'elbow': {message}"):
        Joint(**({"name": "elbow", "type": "revolute", "parent": "a", "child": "b"} | given))


def test_an_axis_of_any_length_is_a_direction() -> None:
    for length in (1e-5, 1.0, 1e5, 1e200):
        np.testing.assert_allclose(
            Joint("j", "revolute", "a", "b", axis=(0, length, length)).axis, [0, 0.5**0.5, 0.5**0.5]
        )
        robot = torsor.library.two_link().with_motor("joint1", 1e-4, axis=(0, 0, length))
        assert robot.joints[0].motor.axis.tolist() == [0, 0, 1]
        with np.errstate(all="raise"):
            looped = robot.with_loop("pin", "base", "link2", axis=(0, length, 0))
        np.testing.assert_array_equal(looped.frames[-1].pose[:3, 2], [0, 1, 0])


def test_a_frame_with_an_invalid_pose_is_refused_by_name() -> None:
    for pose in (np.eye(3), 2 * np.eye(4), np.full((4, 4), np.nan), "here"):
        with pytest.raises(ModelError, match=r"^frame 'tip': pose "):
            Frame("tip", "rod", pose)


def swing(links: list[Link] | None = None, joints: list[Joint] | None = None, **settings) -> torsor.Robot:
    return torsor.build(
        "swing", [GROUND, ROD] if links is None else links, [PIN] if joints is None else joints, **settings
    )


def revolute(name: str, parent: str, child: str, **settings) -> Joint:
    return Joint(name, "revolute", parent, child, **settings)


def body(name: str) -> Link:
    return Link(name, 1.0, inertia=np.eye(3))


WRONG_TREES: dict[str, tuple[Callable[[], torsor.Robot], str]] = {
    "nothing": (lambda: swing([], []), r"no link"),
    "two links of one name": (lambda: swing([GROUND, ROD, ROD]), r"two links are named 'rod'.*fix: "),
    "two joints of one name": (
        lambda: swing([GROUND, ROD, body("b")], [PIN, revolute("pin", "rod", "b")]),
        r"two joints are named 'pin'.*fix: ",
    ),
    "a missing parent": (
        lambda: swing(joints=[revolute("p", "sky", "rod")]),
        r"'p'.*parent 'sky'.*does not exist.*fix: ",
    ),
    "a missing child": (
        lambda: swing(joints=[revolute("p", "rod", "sky")]),
        r"'p'.*child 'sky'.*does not exist.*fix: ",
    ),
    "two parents": (
        lambda: swing(joints=[PIN, revolute("second", "ground", "rod")]),
        r"'rod' has two parents.*'second'",
    ),
    "a cycle": (lambda: swing(joints=[PIN, revolute("back", "rod", "ground")]), r"cycle"),
    "a joint from a link to itself": (lambda: swing([ROD], [revolute("p", "rod", "rod")]), r"cycle"),
    "two roots": (lambda: swing([GROUND, ROD, body("b")]), r"2 links have no parent: 'ground', 'b'.*fix: "),
    "a frame on a missing link": (lambda: swing(frames=[Frame("tip", "sky")]), r"frame 'tip'.*missing link 'sky'"),
    "a frame named as a link": (lambda: swing(frames=[Frame("rod", "ground")]), r"frame 'rod' has the name of another"),
    "two frames of one name": (lambda: swing(frames=[Frame("t", "rod"), Frame("t", "rod")]), r"frame 't' has the name"),
    "gravity is one number": (lambda: swing(gravity=9.81), r"gravity has shape \(\).*allowed: .*\(3,\)"),
    "gravity is nan": (lambda: swing(gravity=(0, 0, np.nan)), r"gravity is .*nan.*allowed: finite"),
    "gravity is text": (lambda: swing(gravity="down"), r"gravity is 'down'.*allowed: real numbers"),
    "gravity is complex": (lambda: swing(gravity=np.array([0, 0, 1j])), r"gravity .*allowed: "),
    "an unknown base": (lambda: swing(base="flying"), r"base is 'flying'.*allowed: 'fixed', 'floating'"),
    "follows a missing joint": (
        lambda: swing(joints=[revolute("pin", "ground", "rod", coordinate="lost")]),
        r"'pin' follows 'lost', which does not exist.*fix: ",
    ),
    "follow in a cycle": (
        lambda: swing(
            [GROUND, ROD, body("b")],
            [revolute("i", "ground", "rod", coordinate="j"), revolute("j", "rod", "b", coordinate="i")],
        ),
        r"i, j follow each other in a cycle",
    ),
    "follows a ball": (
        lambda: swing(
            [GROUND, ROD, body("b")],
            [Joint("i", "spherical", "ground", "rod"), revolute("j", "rod", "b", coordinate="i")],
        ),
        r"'j' follows the spherical joint 'i'.*allowed: ",
    ),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_TREES)
def test_parts_that_make_no_tree_are_refused(case: str) -> None:
    make, message = WRONG_TREES[case]
    with pytest.raises(ModelError, match=f"(?s)^swing: .*{message}"):
        make()


@pytest.mark.parametrize("make", [lambda: Link(""), lambda: revolute("", "ground", "rod")])
def test_parts_without_a_name_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ModelError, match=r"the name of a (link|joint) is ''"):
        make()


def test_a_mechanism_made_without_build_is_checked_too() -> None:
    with pytest.raises(ModelError, match=r"r: joint 'pin' is out of order"):
        torsor.Robot("r", GROUND, (ROD,), (revolute("pin", "sky", "rod"),))
    with pytest.raises(ModelError, match=r"r: 1 moving links need as many joints, not 0"):
        torsor.Robot("r", GROUND, (ROD,), ())
    with pytest.raises(ModelError, match=r"r: frame 'tip' is on the missing link 'sky'"):
        torsor.Robot("r", GROUND, (ROD,), (PIN,), (Frame("tip", "sky"),))
    with pytest.raises(ModelError, match=r"r: .*'pin'.*'lost'"):
        torsor.Robot("r", GROUND, (ROD,), (revolute("pin", "ground", "rod", coordinate="lost"),))
    with pytest.raises(ModelError, match=r"r: .*'rod'"):
        torsor.Robot("r", GROUND, (ROD, ROD), (PIN, revolute("two", "ground", "rod")))


def test_a_moving_tip_link_without_inertia_is_a_warning() -> None:
    with pytest.warns(ModelWarning, match=r"^swing: link 'rod' moves, .*singular; fix: .*'pin'"):
        swing([GROUND, Link("rod")])
    with pytest.warns(ModelWarning, match=r"link 'link2' moves"):
        torsor.from_dh([DHLink(mass=1.0), DHLink()])
    assert swing([GROUND, Link("rod")], [revolute("pin", "ground", "rod", rotor_inertia=0.1)]).nv == 1


def test_a_massless_link_between_two_slides_is_one_slide_of_their_sum() -> None:
    links = [GROUND, Link("between"), ROD]
    joints = [
        Joint("x", "prismatic", "ground", "between", axis=(1, 0, 0)),
        Joint("y", "prismatic", "between", "rod", axis=(0, 1, 0)),
    ]
    made = swing(links, joints, gravity=(1.0, -2.0, 0.0))
    np.testing.assert_allclose(made.inverse_dynamics([0.3, 0.4], [1.0, 2.0], [5.0, 7.0]), [5.0 - 1.0, 7.0 + 2.0])
    np.testing.assert_allclose(made.mass_matrix([0.3, 0.4]), np.eye(2))


@pytest.mark.parametrize("seed", range(5))
def test_massless_links_between_two_links_do_not_change_the_dynamics(seed: int) -> None:
    """A chain with a massless link at rest between two of its links is the chain without that link."""
    rng = np.random.default_rng(seed)
    poses = [make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3)) for _ in range(3)]
    axes = rng.normal(size=(3, 3))
    first, last = Link("first", 2.0, rng.normal(size=3), np.eye(3)), Link("last", 1.5, rng.normal(size=3), np.eye(3))
    long = torsor.build(
        "long",
        [GROUND, first, Link("between"), last],
        [
            revolute("a", "ground", "first", placement=poses[0], axis=axes[0]),
            revolute("b", "first", "between", placement=poses[1], axis=axes[1]),
            revolute("c", "between", "last", placement=poses[2], axis=axes[2]),
        ],
    )
    short = torsor.build(
        "short",
        [GROUND, first, last],
        [
            revolute("a", "ground", "first", placement=poses[0], axis=axes[0]),
            revolute("c", "first", "last", placement=poses[1] @ poses[2], axis=axes[2]),
        ],
    )
    q, v, a = rng.normal(size=(3, 2))
    spread = [np.insert(each, 1, 0.0) for each in (q, v, a)]
    np.testing.assert_allclose(long.inverse_dynamics(*spread)[[0, 2]], short.inverse_dynamics(q, v, a), rtol=1e-10)


@pytest.mark.parametrize("inertia", NO_BODY)
def test_an_inertia_that_no_body_has_is_an_error_unless_it_is_allowed(inertia: np.ndarray) -> None:
    message = "link 'link1': no body has .*allowed: .*fix: "
    spatial = np.zeros((6, 6))
    spatial[:3, :3], spatial[3:, 3:] = inertia, np.eye(3)
    makers: list[Callable[[bool], torsor.Robot]] = [
        lambda strict: torsor.from_dh([DHLink(mass=1.0, inertia=inertia)], strict=strict),
        lambda strict: torsor.from_mdh([MDHLink(-1, mass=1.0, inertia=inertia)], strict=strict),
        lambda strict: torsor.from_screws([np.eye(4)], [[0, 0, 1, 0, 0, 0]], [spatial], strict=strict),
    ]
    for make in makers:
        with pytest.raises(ModelError, match=message):
            make(True)
        assert make(False).mass_matrix([0.0])[0, 0] == pytest.approx(np.asarray(inertia)[2][2])


def test_rounded_inertias_of_data_sheets_pass() -> None:
    assert Link("plate", 1.0, inertia=np.diag([0.05, 0.05, 0.10003])).mass == 1.0


def dh(**row) -> torsor.Robot:
    return torsor.from_dh([DHLink(mass=1.0), DHLink(**({"mass": 1.0} | row))])


def mdh(parent: object = 0, **row) -> torsor.Robot:
    return torsor.from_mdh([MDHLink(-1, mass=1.0), MDHLink(parent, **({"mass": 1.0} | row))])


WRONG_ROWS: dict[str, tuple[Callable[[], torsor.Robot], str]] = {
    "dh mass": (lambda: dh(mass=-1.0), r"link 'link2': mass is -1.0; allowed: a finite number, 0 or more"),
    "dh mass true": (lambda: dh(mass=True), r"link 'link2': mass is True; allowed: a finite number, 0 or more"),
    "dh com true": (lambda: dh(com=(True, False, False)), r"centre of mass is \(True, False, False\); allowed: real"),
    "dh joint true": (lambda: dh(joint=True), r"row 1: joint is True; allowed: 'revolute', 'prismatic'"),
    "mdh parent true": (lambda: mdh(False), r"row 1: parent is False; allowed: -1 to 0"),
    "dh com": (lambda: dh(com=(0, 0)), r"link 'link2': centre of mass has shape \(2,\)"),
    "dh com ragged": (lambda: dh(com=(0, [0], 0)), r"link 'link2': centre of mass"),
    "dh inertia": (lambda: dh(inertia=np.eye(2)), r"link 'link2': inertia has shape \(2, 2\)"),
    "dh joint": (lambda: dh(joint="hinge"), r"row 1: joint is 'hinge'; allowed: 'revolute', 'prismatic'"),
    "dh fixed": (lambda: dh(joint="fixed"), r"row 1: joint is 'fixed'; allowed: 'revolute', 'prismatic'"),
    "dh sigma": (lambda: dh(joint=3), r"row 1: joint is 3"),
    "dh names": (lambda: dh(name="link1"), r"two links are named 'link1'"),
    "dh name of the base": (lambda: dh(name="base"), r"two links are named 'base'"),
    "dh limits": (lambda: dh(lower=1.0, upper=0.0), r"joint 'joint2': lower limit"),
    "dh rotor": (lambda: dh(rotor_inertia=-1.0), r"joint 'joint2': rotor_inertia"),
    "dh length text": (lambda: dh(a="long"), r"(row 1|link2|joint2).*'long'"),
    "dh length none": (lambda: dh(d=None), r"(row 1|link2|joint2)"),
    "dh length nan": (lambda: dh(a=np.nan), r"(row 1|link2|joint2).*nan"),
    "dh angle nan": (lambda: dh(theta=np.nan), r"(row 1|link2|joint2).*nan"),
    "dh angle infinite": (lambda: dh(alpha=np.inf), r"(row 1|link2|joint2).*inf"),
    "dh angle none": (lambda: dh(theta=None), r"(row 1|link2|joint2)"),
    "dh angle text": (lambda: dh(theta="90"), r"(row 1|link2|joint2).*90"),
    "dh angle complex": (lambda: dh(theta=np.complex128(1 + 2j)), r"(row 1|link2|joint2)"),
    "dh length complex": (lambda: dh(a=1 + 2j), r"(row 1|link2|joint2)"),
    "dh row is no row": (lambda: torsor.from_dh([1.0]), r"row 0.*DHLink"),
    "dh row of the other table": (lambda: torsor.from_dh([MDHLink(-1, mass=1.0)]), r"row 0.*DHLink"),
    "mdh row of the other table": (lambda: torsor.from_mdh([DHLink(mass=1.0)]), r"row 0.*MDHLink"),
    "mdh parent too large": (lambda: mdh(7), r"row 1: parent is 7.*allowed: -1 to 0.*fix: "),
    "mdh parent itself": (lambda: mdh(1), r"row 1: parent is 1.*allowed: -1 to 0.*fix: "),
    "mdh parent too small": (lambda: mdh(-2), r"row 1: parent is -2.*allowed: -1 to 0"),
    "mdh parent none": (lambda: mdh(None), r"row 1: parent is None"),
    "mdh parent name": (lambda: mdh("link1"), r"row 1: parent is 'link1'"),
    "mdh parent real": (lambda: mdh(0.0), r"row 1: parent is 0.0"),
    "mdh out of order": (
        lambda: torsor.from_mdh([MDHLink(1, mass=1.0), MDHLink(-1, mass=1.0)]),
        r"row 0: parent is 1.*fix: number the links",
    ),
    "mdh joint": (lambda: mdh(joint="ball"), r"row 1: joint is 'ball'; allowed: 'revolute', 'prismatic', 'fixed'"),
    "mdh angle nan": (lambda: mdh(gamma=np.nan), r"(row 1|link2|joint2).*nan"),
    "mdh length nan": (lambda: mdh(b=np.nan), r"(row 1|link2|joint2).*nan"),
    "dh gravity": (lambda: torsor.from_dh([DHLink(mass=1.0)], gravity=-9.81), r"gravity has shape \(\)"),
    "dh gravity text": (lambda: torsor.from_dh([DHLink(mass=1.0)], gravity="down"), r"gravity is 'down'"),
    "mdh gravity complex": (lambda: torsor.from_mdh([MDHLink(-1, mass=1.0)], gravity=np.array([0, 0, 1j])), r"gravity"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_ROWS)
def test_a_wrong_row_of_a_table_is_refused(case: str) -> None:
    make, message = WRONG_ROWS[case]
    with pytest.raises(ModelError, match=f"(?s){message}"):
        make()


def test_sigma_may_be_any_integer_type() -> None:
    for sigma in (1, np.int64(1), np.int8(1)):
        assert mdh(joint=sigma).joints[1].type == "prismatic"


def test_tables_without_rows_are_robots_without_joints() -> None:
    assert torsor.from_dh([]).nv == torsor.from_mdh([]).nv == torsor.from_screws([], [], []).nv == 0


BALL = np.diag([0.1, 0.1, 0.1, 2.0, 2.0, 2.0])
TURN = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def screws(home=None, axes=None, inertias=None, **settings) -> torsor.Robot:
    home = [np.eye(4)] * 2 if home is None else home
    return torsor.from_screws(
        home, [TURN] * 2 if axes is None else axes, [BALL] * 2 if inertias is None else inertias, **settings
    )


def spatial(**entries: float) -> list[np.ndarray]:
    changed = BALL.copy()
    for name, value in entries.items():
        changed[int(name[1]), int(name[2])] = value
    return [BALL, changed]


WRONG_SCREWS: dict[str, tuple[Callable[[], torsor.Robot], str]] = {
    "counts of poses": (lambda: screws(home=[np.eye(4)]), r"1 home poses, 2 screws and 2 inertias"),
    "counts of axes": (lambda: screws(axes=[TURN]), r"2 home poses, 1 screws and 2 inertias"),
    "counts of inertias": (lambda: screws(inertias=[BALL] * 3), r"2 home poses, 2 screws and 3 inertias"),
    "too few parents": (lambda: screws(parents=[-1]), r"parents"),
    "too many parents": (lambda: screws(parents=[-1, 0, 1]), r"parents"),
    "parent too large": (lambda: screws(parents=[-1, 1]), r"link 1: parent is 1; allowed: a whole number from -1 to 0"),
    "parent too small": (lambda: screws(parents=[-2, 0]), r"link 0: parent is -2"),
    "parent real": (lambda: screws(parents=[-1, -0.5]), r"link 1: parent is -0.5"),
    "parent text": (lambda: screws(parents=[-1, "link1"]), r"link 1: parent is 'link1'"),
    "parent none": (lambda: screws(parents=[-1, None]), r"link 1: parent is None"),
    "an unknown frame": (lambda: screws(frame="world"), r"frame is 'world'.*allowed: .*space.*body"),
    "axis of length 2": (
        lambda: screws(axes=[TURN, [0, 0, 2, 0, 0, 0]]),
        r"link 1: screw axis .*= 2.*allowed: 1.*fix: ",
    ),
    "axis of length 0": (lambda: screws(axes=[TURN, [0] * 6]), r"link 1: screw axis .*allowed: 1.*fix: "),
    "slide of length 2": (lambda: screws(axes=[TURN, [0, 0, 0, 2, 0, 0]]), r"link 1: screw axis .*allowed: 1"),
    "axis of five": (lambda: screws(axes=[TURN, TURN[:5]]), r"link 1: screw axis has shape \(5,\)"),
    "axis nan": (lambda: screws(axes=[TURN, [0, 0, 1, np.nan, 0, 0]]), r"link 1: screw axis is .*nan"),
    "pose 3 x 3": (lambda: screws(home=[np.eye(4), np.eye(3)]), r"link 1: home pose has shape \(3, 3\)"),
    "pose scaled": (lambda: screws(home=[np.eye(4), np.diag([2, 2, 2, 1])]), r"link 1: home pose"),
    "pose mirrored": (lambda: screws(home=[np.diag([1, 1, -1, 1])] * 2), r"link 0: home pose"),
    "inertia row": (lambda: screws(inertias=[BALL, np.ones(6)]), r"link 1: spatial inertia has shape \(6,\)"),
    "first moments not skew": (
        lambda: screws(inertias=spatial(e04=0.3, e40=0.3)),
        r"link 1: spatial inertia is not that of a rigid body; allowed: \[\[J, \[m c\]\]",
    ),
    "first moments in one half": (
        lambda: screws(inertias=spatial(e04=-0.3, e13=0.3)),
        r"link 1: spatial inertia is not that of a rigid body",
    ),
    "first moments without mass": (
        lambda: screws(inertias=[BALL, np.pad([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]], ((0, 3), (3, 0)))]),
        r"link 1: spatial inertia has the first moments .* and no mass; .*fix: ",
    ),
    "an unknown base": (lambda: screws(base="flying"), r"base is 'flying'; allowed: .*fixed.*floating"),
    "two masses": (lambda: screws(inertias=spatial(e44=1.0)), r"link 1: spatial inertia .*allowed: "),
    "linear part first": (
        lambda: screws(inertias=[BALL, np.diag([2, 2, 2, 0.1, 0.2, 0.3])]),
        r"link 1: spatial inertia",
    ),
    "mass negative": (
        lambda: screws(inertias=spatial(e33=-2, e44=-2, e55=-2)),
        r"link 'link2': mass is -2.0; allowed: a finite number, 0 or more",
    ),
    "inertia nan": (lambda: screws(inertias=spatial(e00=np.nan)), r"link 1: spatial inertia is .*nan"),
    "inertia asymmetric": (lambda: screws(inertias=spatial(e01=0.05)), r"link 'link2': inertia .*not symmetric"),
    "inertia complex": (lambda: screws(inertias=[BALL, BALL * (1 + 0j)]), r"link 1: spatial inertia"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_SCREWS)
def test_wrong_screws_are_refused(case: str) -> None:
    make, message = WRONG_SCREWS[case]
    with pytest.raises(ModelError, match=f"(?s){message}"):
        make()


def test_a_chain_longer_than_the_recursion_limit_is_made_and_edited() -> None:
    chain = torsor.library.planar_chain(1500)
    assert chain.nv == 1500
    assert chain.fix("joint1500", 0.1).nv == 1499
    assert chain.subtree("link1499").nv == 2
    assert chain.place("link1500").link == 1499


def test_names_may_be_any_text(tmp_path: Path) -> None:
    for name in ("a/b", "two words", "关节", "[bold]", "%s {}", "\n", "é🤖", "0"):
        made = swing([Link(name + "0"), Link(name, 1.0)], [revolute(name, name + "0", name)])
        assert made.link_names == made.joint_names == made.coordinate_names == (name,)
        assert made.fix(name).nv == 0
        made.save(tmp_path / "odd.toml")
        assert torsor.load(tmp_path / "odd.toml") == made
        with pytest.raises(ModelError, match=re.escape(repr(name + "?"))):
            made.jacobian([0.0], name + "?")


@pytest.mark.parametrize("name", [3, None, b"rod", ("rod",)])
def test_names_that_are_not_text_are_refused(name: object) -> None:
    with pytest.raises(ModelError, match="name"):
        swing([GROUND, Link(name, 1.0)], [revolute("pin", "ground", name)])
    with pytest.raises(ModelError, match="name"):
        swing(joints=[revolute(name, "ground", "rod")])
    with pytest.raises(ModelError, match="name"):
        torsor.build(name, [GROUND, ROD], [PIN])
