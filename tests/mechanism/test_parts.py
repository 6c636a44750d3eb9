"""Robots made in Python: invalid links, joints, tables and screws raise an error that names the part."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import DHLink, Frame, Joint, Link, MDHLink
from torsor.spatial import from_rpy, make_pose

GROUND = Link("ground")
ROD = Link("rod", 1.0, (0.5, 0.0, 0.0), np.diag([0.1, 0.2, 0.2]))
PIN = Joint("pin", "revolute", "ground", "rod")
NO_BODY = [np.diag([1.0, 1.0, 3.0]), np.diag([1.0, 1.0, -0.5]), -np.eye(3), [[1, 2, 0], [2, 1, 0], [0, 0, 1]]]

# Each: arguments, and the error message.
WRONG_LINKS: dict[str, tuple[dict, str]] = {
    "negative mass": ({"mass": -1.0}, "mass"),
    "mass nan": ({"mass": np.nan}, "mass"),
    "mass infinite": ({"mass": np.inf}, "mass"),
    "mass none": ({"mass": None}, "mass"),
    "mass text": ({"mass": "1.0"}, "mass"),
    "mass row": ({"mass": [1.0]}, "mass"),
    "mass complex": ({"mass": 1 + 2j}, "mass"),
    "mass complex of numpy": ({"mass": np.complex128(1 + 2j)}, "mass"),
    "mass beyond floating point": ({"mass": 10**400}, "mass"),
    "com short": ({"com": (0, 0)}, "centre of mass"),
    "com nan": ({"com": (0, 0, np.nan)}, "centre of mass"),
    "com text": ({"com": "abc"}, "centre of mass"),
    "com ragged": ({"com": [0, [0], 0]}, "centre of mass"),
    "com complex": ({"com": np.array([1j, 0, 0])}, "centre of mass"),
    "inertia row": ({"inertia": [1, 1, 1]}, "inertia"),
    "inertia asymmetric": ({"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, "inertia"),
    "inertia infinite": ({"inertia": np.diag([1, 1, np.inf])}, "inertia"),
    "inertia triangle": ({"inertia": NO_BODY[0]}, "[1.0, 1.0, 3.0]"),
    "inertia negative": ({"inertia": NO_BODY[1]}, "no body has"),
    "inertia complex": ({"inertia": np.eye(3) * 1j}, "inertia"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # an error must be raised anyway
@pytest.mark.parametrize("case", WRONG_LINKS)
def test_a_wrong_link_is_refused_by_name(case: str) -> None:
    given, message = WRONG_LINKS[case]
    with refused(message, where="link 'hand'"):
        Link("hand", **given)


WRONG_JOINTS: dict[str, tuple[dict, str]] = {
    "zero axis": ({"axis": (0, 0, 0)}, "axis"),
    "axis short": ({"axis": (0, 1)}, "axis"),
    "axis nan": ({"axis": (0, np.nan, 1)}, "axis"),
    "axis letter": ({"axis": "z"}, "axis"),
    "axis text": ({"axis": ["0", "0", "1"]}, "axis"),
    "axis complex": ({"axis": np.array([1j, 0, 1])}, "axis"),
    "placement 3 x 3": ({"placement": np.eye(3)}, "placement"),
    "placement scaled": ({"placement": np.diag([2, 2, 2, 1])}, "placement"),
    "placement mirrored": ({"placement": np.diag([1, 1, -1, 1])}, "placement"),
    "placement sheared": ({"placement": np.eye(4) + np.eye(4, k=1) * [0, 0.1, 0, 0]}, "placement"),
    "placement without its last row": ({"placement": np.diag([1, 1, 1, 0])}, "placement"),
    "placement nan": ({"placement": np.full((4, 4), np.nan)}, "placement"),
    "point short": ({"point": 0.0}, "point"),
    "ratio zero": ({"ratio": 0}, "ratio"),
    "ratio nan": ({"ratio": np.nan}, "ratio"),
    "pitch infinite": ({"pitch": np.inf}, "pitch"),
    "limits the wrong way round": ({"lower": 1, "upper": -1}, "lower"),
    "lower nan": ({"lower": np.nan}, "lower"),
    "lower text": ({"lower": "low"}, "lower"),
    "lower two numbers": ({"lower": [-1, -1]}, "lower"),
    "lower ragged": ({"lower": [1, [2, 3]]}, "lower"),
    "lower complex": ({"lower": np.array([1j])}, "lower"),
    "velocity limit negative": ({"velocity_limit": -1}, "velocity_limit"),
    "effort limit nan": ({"effort_limit": np.nan}, "effort_limit"),
    "coulomb negative": ({"coulomb": -1}, "coulomb"),
    "viscous infinite": ({"viscous": np.inf}, "viscous"),
    "rotor negative": ({"rotor_inertia": -1}, "rotor_inertia"),
    "smooth negative": ({"smooth": -1}, "smooth"),
    "unknown type": ({"type": "hinge"}, "joint type"),
    "type none": ({"type": None}, "joint type"),
    "type list": ({"type": ["revolute"]}, "joint type"),
    "spherical follower": (
        {"type": "spherical", "coordinate": "other"},
        "other",
    ),
    "spherical with an offset": ({"type": "spherical", "offset": 1.0}, "offset"),
    "free with an offset": ({"type": "free", "offset": 1.0}, "offset"),
    "spherical with a ratio": ({"type": "spherical", "ratio": 2.0}, "offset"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_JOINTS)
def test_a_wrong_joint_is_refused_by_name(case: str) -> None:
    given, message = WRONG_JOINTS[case]
    with refused(message, where="joint 'elbow'"):
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
        with refused(argument="pose", where="frame 'tip'"):
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
    "nothing": (lambda: swing([], []), "no link"),
    "two links of one name": (lambda: swing([GROUND, ROD, ROD]), "rod"),
    "two joints of one name": (
        lambda: swing([GROUND, ROD, body("b")], [PIN, revolute("pin", "rod", "b")]),
        "pin",
    ),
    "a missing parent": (
        lambda: swing(joints=[revolute("p", "sky", "rod")]),
        "does not exist",
    ),
    "a missing child": (
        lambda: swing(joints=[revolute("p", "rod", "sky")]),
        "does not exist",
    ),
    "two parents": (
        lambda: swing(joints=[PIN, revolute("second", "ground", "rod")]),
        "'rod' has two parents",
    ),
    "a cycle": (lambda: swing(joints=[PIN, revolute("back", "rod", "ground")]), "cycle"),
    "a joint from a link to itself": (lambda: swing([ROD], [revolute("p", "rod", "rod")]), "cycle"),
    "two roots": (lambda: swing([GROUND, ROD, body("b")]), "2 links have no parent: 'ground', 'b'"),
    "a frame on a missing link": (lambda: swing(frames=[Frame("tip", "sky")]), "missing link 'sky'"),
    "a frame named as a link": (lambda: swing(frames=[Frame("rod", "ground")]), "rod"),
    "two frames of one name": (lambda: swing(frames=[Frame("t", "rod"), Frame("t", "rod")]), "frame 't' has the name"),
    "gravity is one number": (lambda: swing(gravity=9.81), "gravity"),
    "gravity is nan": (lambda: swing(gravity=(0, 0, np.nan)), "gravity"),
    "gravity is text": (lambda: swing(gravity="down"), "gravity"),
    "gravity is complex": (lambda: swing(gravity=np.array([0, 0, 1j])), "gravity"),
    "an unknown base": (lambda: swing(base="flying"), "base"),
    "follows a missing joint": (
        lambda: swing(joints=[revolute("pin", "ground", "rod", coordinate="lost")]),
        "'pin' follows 'lost', which does not exist",
    ),
    "follow in a cycle": (
        lambda: swing(
            [GROUND, ROD, body("b")],
            [revolute("i", "ground", "rod", coordinate="j"), revolute("j", "rod", "b", coordinate="i")],
        ),
        "joints",
    ),
    "follows a ball": (
        lambda: swing(
            [GROUND, ROD, body("b")],
            [Joint("i", "spherical", "ground", "rod"), revolute("j", "rod", "b", coordinate="i")],
        ),
        "'j' follows the spherical joint 'i'",
    ),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_TREES)
def test_parts_that_make_no_tree_are_refused(case: str) -> None:
    make, message = WRONG_TREES[case]
    with refused(message, where="swing"):
        make()


@pytest.mark.parametrize("make", [lambda: Link(""), lambda: revolute("", "ground", "rod")])
def test_parts_without_a_name_are_refused(make: Callable[[], object]) -> None:
    with refused(value=""):
        make()


def test_a_mechanism_made_without_build_is_checked_too() -> None:
    with refused(value="pin"):
        torsor.Robot("r", GROUND, (ROD,), (revolute("pin", "sky", "rod"),))
    with refused(what="1 moving links need the same number of joints, not 0"):
        torsor.Robot("r", GROUND, (ROD,), ())
    with refused(value="sky"):
        torsor.Robot("r", GROUND, (ROD,), (PIN,), (Frame("tip", "sky"),))
    with refused(what="'lost'"):
        torsor.Robot("r", GROUND, (ROD,), (revolute("pin", "ground", "rod", coordinate="lost"),))
    with refused(value="rod"):
        torsor.Robot("r", GROUND, (ROD, ROD), (PIN, revolute("two", "ground", "rod")))


def test_a_moving_tip_link_without_inertia_is_a_warning() -> None:
    with warned(where="swing", fix="'pin'"):
        swing([GROUND, Link("rod")])
    with warned(what="link 'link2' moves"):
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
    spatial = np.zeros((6, 6))
    spatial[:3, :3], spatial[3:, 3:] = inertia, np.eye(3)
    makers: list[Callable[[bool], torsor.Robot]] = [
        lambda strict: torsor.from_dh([DHLink(mass=1.0, inertia=inertia)], strict=strict),
        lambda strict: torsor.from_mdh([MDHLink(-1, mass=1.0, inertia=inertia)], strict=strict),
        lambda strict: torsor.from_screws([np.eye(4)], [[0, 0, 1, 0, 0, 0]], [spatial], strict=strict),
    ]
    for make in makers:
        with refused(where="link 'link1'", what="no body has"):
            make(True)
        assert make(False).mass_matrix([0.0])[0, 0] == pytest.approx(np.asarray(inertia)[2][2])


def test_rounding_errors_of_principal_moments_are_printed_as_zero() -> None:
    turn = from_rpy([0.3, 0.5, 0.7])
    with refused(what="[0.0, 0.0, 3e-06] kg m^2"):
        Link("plate", 1.0, inertia=turn @ np.diag([0.0, 0.0, 3e-6]) @ turn.T)


def test_rounded_inertias_of_data_sheets_pass() -> None:
    assert Link("plate", 1.0, inertia=np.diag([0.05, 0.05, 0.10003])).mass == 1.0


def dh(**row) -> torsor.Robot:
    return torsor.from_dh([DHLink(mass=1.0), DHLink(**({"mass": 1.0} | row))])


def mdh(parent: object = 0, **row) -> torsor.Robot:
    return torsor.from_mdh([MDHLink(-1, mass=1.0), MDHLink(parent, **({"mass": 1.0} | row))])


WRONG_ROWS: dict[str, tuple[Callable[[], torsor.Robot], str]] = {
    "dh mass": (lambda: dh(mass=-1.0), "mass"),
    "dh mass true": (lambda: dh(mass=True), "mass"),
    "dh com true": (lambda: dh(com=(True, False, False)), "centre of mass"),
    "dh joint true": (lambda: dh(joint=True), "'revolute', 'prismatic'"),
    "mdh parent true": (lambda: mdh(False), "parent"),
    "dh com": (lambda: dh(com=(0, 0)), "centre of mass"),
    "dh com ragged": (lambda: dh(com=(0, [0], 0)), "centre of mass"),
    "dh inertia": (lambda: dh(inertia=np.eye(2)), "inertia"),
    "dh joint": (lambda: dh(joint="hinge"), "hinge"),
    "dh fixed": (lambda: dh(joint="fixed"), "fixed"),
    "dh sigma": (lambda: dh(joint=3), "joint"),
    "dh names": (lambda: dh(name="link1"), "link1"),
    "dh name of the base": (lambda: dh(name="base"), "base"),
    "dh limits": (lambda: dh(lower=1.0, upper=0.0), "lower"),
    "dh rotor": (lambda: dh(rotor_inertia=-1.0), "rotor_inertia"),
    "dh length text": (lambda: dh(a="long"), "a"),
    "dh length none": (lambda: dh(d=None), "d"),
    "dh length nan": (lambda: dh(a=np.nan), "a"),
    "dh angle nan": (lambda: dh(theta=np.nan), "theta"),
    "dh angle infinite": (lambda: dh(alpha=np.inf), "alpha"),
    "dh angle none": (lambda: dh(theta=None), "theta"),
    "dh angle text": (lambda: dh(theta="90"), "theta"),
    "dh angle complex": (lambda: dh(theta=np.complex128(1 + 2j)), "theta"),
    "dh length complex": (lambda: dh(a=1 + 2j), "a"),
    "dh row is no row": (lambda: torsor.from_dh([1.0]), "DHLink"),
    "dh row of the other table": (lambda: torsor.from_dh([MDHLink(-1, mass=1.0)]), "DHLink"),
    "mdh row of the other table": (lambda: torsor.from_mdh([DHLink(mass=1.0)]), "MDHLink"),
    "mdh parent too large": (lambda: mdh(7), "parent"),
    "mdh parent itself": (lambda: mdh(1), "parent"),
    "mdh parent too small": (lambda: mdh(-2), "parent"),
    "mdh parent none": (lambda: mdh(None), "parent"),
    "mdh parent name": (lambda: mdh("link1"), "link1"),
    "mdh parent real": (lambda: mdh(0.0), "parent"),
    "mdh out of order": (
        lambda: torsor.from_mdh([MDHLink(1, mass=1.0), MDHLink(-1, mass=1.0)]),
        "number the links",
    ),
    "mdh joint": (lambda: mdh(joint="ball"), "ball"),
    "mdh angle nan": (lambda: mdh(gamma=np.nan), "gamma"),
    "mdh length nan": (lambda: mdh(b=np.nan), "b"),
    "dh gravity": (lambda: torsor.from_dh([DHLink(mass=1.0)], gravity=-9.81), "gravity"),
    "dh gravity text": (lambda: torsor.from_dh([DHLink(mass=1.0)], gravity="down"), "gravity"),
    "mdh gravity complex": (lambda: torsor.from_mdh([MDHLink(-1, mass=1.0)], gravity=np.array([0, 0, 1j])), "gravity"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_ROWS)
def test_a_wrong_row_of_a_table_is_refused(case: str) -> None:
    make, about = WRONG_ROWS[case]
    with refused(about):
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
    "counts of poses": (lambda: screws(home=[np.eye(4)]), "1 home poses, 2 screws and 2 inertias"),
    "counts of axes": (lambda: screws(axes=[TURN]), "2 home poses, 1 screws and 2 inertias"),
    "counts of inertias": (lambda: screws(inertias=[BALL] * 3), "2 home poses, 2 screws and 3 inertias"),
    "too few parents": (lambda: screws(parents=[-1]), "parents"),
    "too many parents": (lambda: screws(parents=[-1, 0, 1]), "parents"),
    "parent too large": (lambda: screws(parents=[-1, 1]), "parent"),
    "parent too small": (lambda: screws(parents=[-2, 0]), "parent"),
    "parent real": (lambda: screws(parents=[-1, -0.5]), "parent"),
    "parent text": (lambda: screws(parents=[-1, "link1"]), "parent"),
    "parent none": (lambda: screws(parents=[-1, None]), "parent"),
    "an unknown frame": (lambda: screws(frame="world"), "frame"),
    "axis of length 2": (
        lambda: screws(axes=[TURN, [0, 0, 2, 0, 0, 0]]),
        "screw axis",
    ),
    "axis of length 0": (lambda: screws(axes=[TURN, [0] * 6]), "screw axis"),
    "slide of length 2": (lambda: screws(axes=[TURN, [0, 0, 0, 2, 0, 0]]), "screw axis"),
    "axis of five": (lambda: screws(axes=[TURN, TURN[:5]]), "screw axis"),
    "axis nan": (lambda: screws(axes=[TURN, [0, 0, 1, np.nan, 0, 0]]), "screw axis"),
    "pose 3 x 3": (lambda: screws(home=[np.eye(4), np.eye(3)]), "home pose"),
    "pose scaled": (lambda: screws(home=[np.eye(4), np.diag([2, 2, 2, 1])]), "home pose"),
    "pose mirrored": (lambda: screws(home=[np.diag([1, 1, -1, 1])] * 2), "home pose"),
    "inertia row": (lambda: screws(inertias=[BALL, np.ones(6)]), "spatial inertia"),
    "first moments not skew": (
        lambda: screws(inertias=spatial(e04=0.3, e40=0.3)),
        "spatial inertia",
    ),
    "first moments in one half": (
        lambda: screws(inertias=spatial(e04=-0.3, e13=0.3)),
        "spatial inertia",
    ),
    "first moments without mass": (
        lambda: screws(inertias=[BALL, np.pad([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]], ((0, 3), (3, 0)))]),
        "spatial inertia",
    ),
    "an unknown base": (lambda: screws(base="flying"), "base"),
    "two masses": (lambda: screws(inertias=spatial(e44=1.0)), "spatial inertia"),
    "linear part first": (
        lambda: screws(inertias=[BALL, np.diag([2, 2, 2, 0.1, 0.2, 0.3])]),
        "spatial inertia",
    ),
    "mass negative": (
        lambda: screws(inertias=spatial(e33=-2, e44=-2, e55=-2)),
        "mass",
    ),
    "inertia nan": (lambda: screws(inertias=spatial(e00=np.nan)), "spatial inertia"),
    "inertia asymmetric": (lambda: screws(inertias=spatial(e01=0.05)), "inertia"),
    "inertia complex": (lambda: screws(inertias=[BALL, BALL * (1 + 0j)]), "spatial inertia"),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("case", WRONG_SCREWS)
def test_wrong_screws_are_refused(case: str) -> None:
    make, message = WRONG_SCREWS[case]
    with refused(message):
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
        with refused(what="no link or frame '"):
            made.jacobian([0.0], name + "?")


@pytest.mark.parametrize("name", [3, None, b"rod", ("rod",)])
def test_names_that_are_not_text_are_refused(name: object) -> None:
    with refused(allowed="a non-empty string"):
        swing([GROUND, Link(name, 1.0)], [revolute("pin", "ground", name)])
    with refused(allowed="a non-empty string"):
        swing(joints=[revolute(name, "ground", "rod")])
    with refused(allowed="a non-empty string"):
        torsor.build(name, [GROUND, ROD], [PIN])
