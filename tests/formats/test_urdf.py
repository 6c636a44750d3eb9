"""URDF files that are wrong, odd or hostile: one error, a warning where published files need it, or a robot."""

import io
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from counting import grows_linearly
from refusals import refused, warned
from torsor.cli.main import main
from torsor.formats import xml

from .urdf_text import SOUND, arm, inertial, joint, link, load, mimic, pair, robot

# Each: the file, and what its error says.
WRONG = {
    "negative mass": (arm(inertial("-2")), "mass"),
    "mass is nan": (arm(inertial("nan")), "nan"),
    "mass is infinite": (arm(inertial("inf")), "inf"),
    "mass overflows": (arm(inertial("1e400")), "1e400"),
    "mass is a word": (arm(inertial("heavy")), "heavy"),
    "mass is empty": (arm(inertial("")), "a number"),
    "mass is in digits that only Python reads": (
        arm(inertial("1_0")),
        "1_0",
    ),
    "mass is two numbers": (arm(inertial("1 2")), "1 2"),
    "mass with a decimal comma": (arm(inertial("1,5")), "1,5"),
    "mass without a value": (arm("<inertial><mass/></inertial>"), "<mass> has no value"),
    "mass is a xacro expression": (arm(inertial("${m}")), "${m}"),
    "inertia is a word": (arm(inertial(inertia='ixx="x"')), "a number"),
    "inertia is nan": (arm(inertial(inertia='ixx="nan"')), "nan"),
    "inertia is infinite": (arm(inertial(inertia='ixx="inf" iyy="1" izz="1"')), "inf"),
    "centre of mass is infinite": (
        arm(inertial(origin='<origin xyz="inf 0 0"/>')),
        "inf 0 0",
    ),
    "inertia turned infinitely": (arm(inertial(origin='<origin rpy="inf 0 0"/>')), "inf 0 0"),
    "inertia at two numbers": (
        arm(inertial(origin='<origin xyz="0 0"/>')),
        "0 0",
    ),
    "axis is zero": (arm(elbow='<axis xyz="0 0 0"/>'), "axis"),
    "axis has two numbers": (
        arm(elbow='<axis xyz="0 1"/>'),
        "0 1",
    ),
    "axis has four numbers": (arm(elbow='<axis xyz="0 1 0 2"/>'), "0 1 0 2"),
    "axis has words": (arm(elbow='<axis xyz="x y z"/>'), "x y z"),
    "axis is nan": (arm(elbow='<axis xyz="0 0 nan"/>'), "0 0 nan"),
    "axis is infinite": (arm(elbow='<axis xyz="0 0 inf"/>'), "0 0 inf"),
    "origin has two numbers": (arm(elbow='<origin xyz="0 1"/>'), "0 1"),
    "origin is infinite": (arm(elbow='<origin xyz="0 1 inf"/>'), "0 1 inf"),
    "origin turned infinitely": (arm(elbow='<origin rpy="0 inf 0"/>'), "0 inf 0"),
    "limit is a word": (arm(elbow='<limit lower="low"/>', kind="revolute"), "low"),
    "limit is nan": (arm(elbow='<limit lower="nan" upper="1"/>', kind="revolute"), "nan"),
    "damping is negative": (arm(elbow='<dynamics damping="-1"/>'), "viscous"),
    "friction is infinite": (arm(elbow='<dynamics friction="inf"/>'), "inf"),
    "type is unknown": (arm(kind="ball"), "ball"),
    "type is missing": (robot('<joint name="elbow"/>'), "joint type"),
    "joint without a name": (robot('<joint type="fixed"/>'), "a <joint> has no name"),
    "link without a name": (robot("<link/>"), "a <link> has no name"),
    "link with an empty name": (robot('<link name=""/>'), "a <link> has no name"),
    "parent is missing": (
        robot('<joint name="elbow" type="fixed"><child link="a"/></joint>'),
        "no parent link",
    ),
    "child is missing": (
        robot('<joint name="elbow" type="fixed"><parent link="a"/></joint>'),
        "no child link",
    ),
    "child without its link": (
        robot('<joint name="elbow" type="fixed"><parent link="a"/><child/></joint>'),
        "no child link",
    ),
    "parent does not exist": (
        robot(link("a"), joint("elbow", "b", "a")),
        "does not exist",
    ),
    "child does not exist": (
        robot(link("a"), joint("elbow", "a", "b")),
        "does not exist",
    ),
    "two links of one name": (robot(link("a"), link("a")), "two links are named 'a'"),
    "two joints of one name": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "a", "c")),
        "two joints are named 'j'",
    ),
    "two parents": (
        robot(link("a"), link("b"), link("c"), joint("i", "a", "b"), joint("j", "a", "c"), joint("k", "b", "c")),
        "'c' has two parents",
    ),
    "a cycle of all": (robot(link("a"), link("b"), joint("i", "a", "b"), joint("j", "b", "a")), "cycle"),
    "a cycle beside the tree": (
        robot(link("o"), link("a"), link("b"), joint("i", "a", "b"), joint("j", "b", "a")),
        "joints",
    ),
    "a joint from a link to itself": (robot(link("o"), link("a"), joint("i", "a", "a")), "joints"),
    "two roots": (robot(link("a"), link("b")), "2 links have no parent: 'a', 'b'"),
    "no link": (robot(), "no link"),
    "mimic of nothing": (arm(elbow="<mimic/>"), "<mimic> without a joint"),
    "mimic in a cycle": (pair('<mimic joint="elbow"/>', '<mimic joint="shoulder"/>'), "joints"),
    "mimic of itself": (arm(elbow='<mimic joint="elbow" multiplier="2" offset="1"/>'), "itself"),
    "mimic of a floating joint": (
        pair("", '<mimic joint="shoulder"/>', ("floating", "continuous")),
        "'elbow' follows the free joint 'shoulder'",
    ),
    "mimic of a planar joint": (
        pair("", '<mimic joint="shoulder"/>', ("planar", "continuous")),
        "'elbow' follows the planar joint 'shoulder'",
    ),
    "mimic by a planar joint": (
        pair("", '<mimic joint="shoulder"/>', ("continuous", "planar")),
        "shoulder",
    ),
    "mimic by nothing": (pair("", '<mimic joint="shoulder" multiplier="0"/>'), "ratio"),
    "mimic by nan": (pair("", '<mimic joint="shoulder" multiplier="nan"/>'), "nan"),
    "mimic by a word": (pair("", '<mimic joint="shoulder" offset="far"/>'), "far"),
    "a xacro macro": (
        '<robot xmlns:xacro="http://ros.org/wiki/xacro" name="r">\n<xacro:macro name="x"/></robot>',
        "expand it first",
    ),
    "an undefined entity": (robot("&lol;"), "not well-formed XML"),
    "an open element": ("<robot>\n<link>\n</robot>", "not well-formed XML"),
    "a file cut short": (arm()[:-9], "not well-formed XML"),
    "two root elements": (arm() + "<robot/>", "not well-formed XML"),
    "an attribute twice": ('<robot name="a" name="b"/>', "not well-formed XML"),
    "an empty file": ("", "not well-formed XML"),
    "a blank file": ("\n \n", "not well-formed XML"),
    "a binary file": (bytes(range(256)) * 8, "not well-formed XML"),
    "a file of zeros": (bytes(4096), "not well-formed XML"),
    "no UTF-8": (b'<robot name="\xe9\xff"><link name="a"/></robot>', "not well-formed XML"),
    "an unknown encoding": ('<?xml version="1.0" encoding="klingon"?>' + arm(), "encoding"),
    "an encoding of many bytes": ('<?xml version="1.0" encoding="shift_jis"?>' + arm(), "encoding"),
    "an encoding that is no text": ('<?xml version="1.0" encoding="hex"?>' + arm(), "encoding"),
    "another root element": ("<sdfx/>", "the root element is <sdfx>"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_gets_one_error_that_names_file_and_element(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    with refused(message, where="arm.urdf"):
        load(tmp_path, text)


@pytest.mark.parametrize("strict", [None, False, True])
@pytest.mark.parametrize(
    "moments", ['ixx="1" iyy="1" izz="3"', 'ixx="1" iyy="1" izz="-1"', 'ixx="1" iyy="1" izz="1" ixy="2"']
)
def test_an_inertia_that_no_body_has_is_a_warning_unless_strict(
    tmp_path: Path, moments: str, strict: bool | None
) -> None:
    if strict:
        with refused(where="arm.urdf: line 3: link 'hand'", what="no body has"):
            load(tmp_path, arm(inertial(inertia=moments)), strict=True)
        return
    with warned(where="arm.urdf: line 3: link 'hand'", what="no body has"):
        made = load(tmp_path, arm(inertial(inertia=moments)), strict=strict)
    expected = re.search('izz="(.*?)"', moments)
    assert made.mass_matrix([0.0])[0, 0] == pytest.approx(float(expected[1]) if expected else 0.0)


def test_a_moving_tip_link_without_inertia_is_a_warning(tmp_path: Path) -> None:
    with warned(where="arm.urdf", fix="'elbow'"):
        made = load(tmp_path, arm(""))
    assert made.inverse_dynamics([0.1], [0.2], [0.3]).tolist() == [0.0]


def test_a_massless_link_gives_the_dynamics_of_two_coincident_joints(tmp_path: Path) -> None:
    text = robot(
        '<link name="base"/>',
        '<link name="cross"/>',
        link("hand", inertial(origin='<origin xyz="0.3 0.1 0.2"/>')),
        joint("x", "base", "cross", '<axis xyz="1 0 0"/>'),
        joint("y", "cross", "hand", '<axis xyz="0 1 0"/>'),
    )
    made = load(tmp_path, text)  # without a warning: they are errors here
    twin = torsor.build(
        "twin",
        [
            torsor.Link("base"),
            torsor.Link("dust", 1e-14),
            torsor.Link("hand", 2.0, (0.3, 0.1, 0.2), np.diag([0.3, 0.2, 0.4])),
        ],
        [
            torsor.Joint("x", "revolute", "base", "dust", axis=(1, 0, 0)),
            torsor.Joint("y", "revolute", "dust", "hand", axis=(0, 1, 0)),
        ],
    )
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_allclose(made.inverse_dynamics(q, v, a), twin.inverse_dynamics(q, v, a), rtol=1e-12)
    # Euler's equation, by hand, at rest: the first joint feels the whole moment about x.
    com = made.pose(q, "hand")[:3, :3] @ [0.3, 0.1, 0.2]
    assert made.gravity_force(q)[0] == pytest.approx(np.cross(com, [0, 0, 2 * 9.81])[0])


def test_massless_links_of_fixed_joints_are_legal(tmp_path: Path) -> None:
    flange = '<link name="flange"/>' + joint("weld", "hand", "flange", '<origin xyz="1 0 0"/>', "fixed")
    made = load(tmp_path, arm(extra=flange))
    assert made.links[0] == load(tmp_path, arm()).links[0]
    np.testing.assert_allclose(made.pose([0.0], "flange")[:3, 3], [1, 0, 0])


LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{10 * f"&{chr(97 + i)};"}">' for i in range(9))
BOMB = f'<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]><robot name="&j;"/>'


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xml"])
@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "secret.txt">]><robot name="r"><link name="a">&x;</link></robot>',
        '<!DOCTYPE robot [<!ENTITY % x SYSTEM "secret.txt">%x;]><robot name="r"><link name="a"/></robot>',
        '<!DOCTYPE robot SYSTEM "secret.txt"><robot name="r"><link name="a"/></robot>',
    ],
    ids=["billion laughs", "external entity", "parameter entity", "external document type"],
)
def test_entities_are_refused_before_anything_is_expanded_or_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    opened, made, really_open = set[str](), list[str](), io.open

    def watched_open(file: Path, *how: Any, **more: Any) -> Any:
        opened.add(Path(file).name)
        return really_open(file, *how, **more)

    monkeypatch.setattr(io, "open", watched_open)
    monkeypatch.setattr(xml, "Element", lambda tag, attributes: made.append(tag))
    with refused(where=f"{name}: line 1", fix="remove") as caught:
        load(tmp_path, text, name)
    assert opened == {name}
    assert made == []  # an element would have needed its entities
    assert "aaaaaaaaaa" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xml"])
def test_a_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    parsed, expat = [], torsor.formats.xml.expat
    create = expat.ParserCreate
    monkeypatch.setattr(expat, "ParserCreate", lambda: parsed.append(name) or create())
    load(tmp_path, arm(), name)
    assert parsed == [name]


def test_other_encodings_are_read_by_byte_order_mark_or_declaration(tmp_path: Path) -> None:
    expected = load(tmp_path, arm())
    assert load(tmp_path, arm().encode("utf-16")) == expected
    assert load(tmp_path, ('<?xml version="1.0" encoding="utf-16"?>' + arm()).encode("utf-16")) == expected
    assert load(tmp_path, b"\xef\xbb\xbf" + arm().encode()) == expected
    latin = '<?xml version="1.0" encoding="iso-8859-1"?>' + arm().replace("tested", "é")
    assert load(tmp_path, latin.encode("latin-1")).name == "é"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arm.txt", ".txt"),
        ("arm", "unknown file type ''"),
    ],
)
def test_an_unknown_suffix_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with refused(message):
        load(tmp_path, arm(), name)


def test_the_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    assert load(tmp_path, arm(), "ARM.URDF").nv == 1


def test_a_folder_or_a_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder.urdf").mkdir()
    for path in (tmp_path, tmp_path / "folder.urdf"):
        with refused(allowed=".urdf"):
            torsor.load(path)
    for path in (tmp_path / "none.urdf", str(tmp_path / "none.urdf"), "a\0b.urdf"):
        with refused(allowed=".urdf, .xml"):
            torsor.load(path)


@pytest.mark.parametrize("base", ["flying", "", None, True])
def test_an_unknown_base_is_an_error(tmp_path: Path, base: object) -> None:
    with refused(argument="base", where="arm.urdf", allowed="'fixed', 'floating'"):
        load(tmp_path, arm(), base=base)


def test_deep_nesting_does_not_exceed_the_recursion_limit(tmp_path: Path) -> None:
    depth = 50_000
    assert load(tmp_path, robot(link("a"), "<gazebo>" * depth + "</gazebo>" * depth)).nv == 0


@pytest.mark.parametrize(("kind", "moving"), [("continuous", 1500), ("fixed", 0)])
def test_a_chain_longer_than_the_recursion_limit_is_read(tmp_path: Path, kind: str, moving: int) -> None:
    count = 1500
    parts = [
        part for i in range(count) for part in (link(f"l{i + 1}"), joint(f"j{i}", f"l{i}", f"l{i + 1}", kind=kind))
    ]
    made = load(tmp_path, robot('<link name="l0"/>', *reversed(parts)))
    assert made.nv == moving
    assert made.mass == 2.0 * moving
    assert made.place(f"l{count}").link == moving - 1


def test_work_to_read_a_chain_of_mimics_grows_linearly(tmp_path: Path) -> None:
    def read(count: int) -> None:
        parts = ['<link name="l0"/>']
        for i in range(1, count + 1):
            leader = f'<mimic joint="j{i - 1}"/>' if i > 1 else ""
            parts += [link(f"l{i}"), joint(f"j{i}", f"l{i - 1}", f"l{i}", mimic(leader))]
        assert load(tmp_path, robot(*parts)).nv == 1

    read(3)  # one-time work is not counted
    assert grows_linearly(read, (50, 150, 250))


def test_a_mimic_of_a_missing_joint_is_a_warning_unless_strict(tmp_path: Path) -> None:
    text = arm(elbow=mimic('<mimic joint="wrist" multiplier="3" offset="1"/>'))
    with refused(
        value="wrist", where="arm.urdf: line 4: joint 'elbow'", allowed="another joint of the file", fix="correct"
    ):
        load(tmp_path, text, strict=True)
    with warned(value="wrist", where="arm.urdf: line 4: joint 'elbow'"):
        made = load(tmp_path, text)
    assert made == load(tmp_path, arm())


def test_strict_is_true_or_false(tmp_path: Path) -> None:
    for odd in ("x", 1, "False"):
        with refused(argument="strict", allowed="True or False"):
            load(tmp_path, arm(), strict=odd)
    with refused(argument="strict", where="link 'hand'", allowed="True or False"):
        torsor.Link("hand", strict="no")  # type: ignore[arg-type]


def test_a_mimic_of_a_mimic_multiplies(tmp_path: Path) -> None:
    text = robot(
        '<link name="base"/>',
        link("a"),
        link("b"),
        link("c"),
        joint("i", "base", "a", mimic('<mimic joint="j" multiplier="2" offset="1"/>')),
        joint("j", "a", "b", mimic('<mimic joint="k" multiplier="3" offset="-2"/>')),
        joint("k", "b", "c"),
    )
    made = load(tmp_path, text)
    assert made.coordinate_names == ("k",)
    k = 0.7
    j = 3 * k - 2
    i = 2 * j + 1
    angle = i + j + k
    expected = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    np.testing.assert_allclose(made.pose([k], "c")[:2, :2], expected, atol=1e-14)


def test_a_mimic_of_a_fixed_joint_is_fixed_at_its_offset(tmp_path: Path) -> None:
    made = load(tmp_path, pair("", '<mimic joint="shoulder" multiplier="5" offset="0.3"/>', ("fixed", "continuous")))
    assert made.nv == 0
    assert made.pose([], "lower")[1, 0] == pytest.approx(np.sin(0.3))


ODD = ["a/b", "two words", "per%cent {brace}", "关节", "é🤖", "[bold]", "[/red]", "'", "&quot;", "-1", "0", "$x", ".."]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_kept_everywhere(tmp_path: Path, name: str) -> None:
    plain = name.replace("&quot;", '"')
    text = robot(link("base"), link(name), joint(f"{name}_joint", "base", name)).replace("tested", name)
    made = load(tmp_path, text)
    assert made.name == plain
    assert made.link_names == (plain,)
    assert made.joint_names == (f"{plain}_joint",)
    assert made.jacobian([0.0], plain).shape == (6, 1)
    made.save(tmp_path / "odd.toml")
    assert torsor.load(tmp_path / "odd.toml") == made
    with refused(value=plain):
        made.joint(plain)


@pytest.mark.parametrize("name", ["[/red]", "[bold]", "[link=x]"])
def test_the_command_line_shows_odd_names_and_errors_as_they_are(tmp_path: Path, capsys, name: str) -> None:
    (tmp_path / "good.urdf").write_text(
        robot(link("base"), link(name), joint("j", "base", name)).replace("tested", name)
    )
    assert main(["info", str(tmp_path / "good.urdf")]) == 0
    assert name in capsys.readouterr().out
    (tmp_path / "bad.urdf").write_text(robot(link("base"), link(name)))
    assert main(["info", str(tmp_path / "bad.urdf")]) == 1
    assert name in capsys.readouterr().err


def test_the_command_line_reports_a_wrong_file_in_one_line(tmp_path: Path, capsys) -> None:
    (tmp_path / "bad.urdf").write_text(arm(inertial("-2")))
    assert main(["info", str(tmp_path / "bad.urdf")]) == 1
    shown = capsys.readouterr().err.strip().splitlines()
    assert len(shown) == 1
    assert shown[0].startswith(
        "error: bad.urdf: line 3: link 'hand': mass is -2.0; allowed: a finite number, 0 or more"
    )


def test_a_robot_without_joints_is_a_robot(tmp_path: Path) -> None:
    made = load(tmp_path, robot(link("block")))
    assert (made.nq, made.nv, made.links, made.neutral().shape) == (0, 0, (), (0,))
    assert made.inverse_dynamics([], [], []).shape == (0,)
    assert made.mass_matrix(np.zeros((4, 0))).shape == (4, 0, 0)
    assert made.poses([]).shape == (0, 4, 4)
    assert made.pose([], "block").tolist() == np.eye(4).tolist()
    floating = load(tmp_path, robot(link("block")), base="floating")
    force = floating.gravity_force(floating.neutral())
    np.testing.assert_allclose(force, [0, 0, 0, 0, 0, 2 * 9.81], atol=1e-14)


def test_elements_without_influence_on_the_motion_are_ignored(tmp_path: Path) -> None:
    extra = """<!-- a comment --><gazebo reference="hand"><mass value="x"/></gazebo>
    <transmission name="t"><joint name="elbow"/><link name="hand"/></transmission><![CDATA[ text ]]>"""
    assert load(tmp_path, '<?xml version="1.0"?><?any thing?>' + arm(extra=extra)) == load(tmp_path, arm())


@pytest.mark.parametrize(
    "mesh", ["x" * 5000, "package://" + "x" * 5000 + "/a.stl", "package://", "file:///", "..", "a.stl"]
)
def test_a_mesh_that_cannot_be_found_does_not_matter(tmp_path: Path, mesh: str) -> None:
    made = load(tmp_path, arm(f'{SOUND}<visual><geometry><mesh filename="{mesh}"/></geometry></visual>'))
    assert [visual.path for visual in made.links[0].visuals] == [None]
    assert made.links[0].mass == 2.0


@pytest.mark.parametrize("axis", ["1e200 1e200 0", "1e-5 1e-5 0", "3 3 0"])
def test_an_axis_of_any_length_is_a_direction(tmp_path: Path, axis: str) -> None:
    made = load(tmp_path, arm(elbow=f'<axis xyz="{axis}"/>'))
    np.testing.assert_allclose(made.joints[0].axis, [0.5**0.5, 0.5**0.5, 0], rtol=1e-12)


def test_a_file_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    expected = load(tmp_path, pair())
    for text, _ in WRONG.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                load(tmp_path, text, "other.urdf")
            except Exception:  # what it is, is tested above
                continue
    assert load(tmp_path, pair()) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arm.urdf", "other.urdf"]
