"""Poses of SDF by version, with numbers computed by hand; scopes, nested and included models; hostile files."""

import math
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelError, ModelWarning
from torsor.spatial import from_rpy, make_pose

from .sdf_text import joint, link, model, read

QUARTER = repr(math.pi / 2)


def axis_in_world(robot: torsor.Robot, name: str = "j") -> tuple[list[float], list[float]]:
    """Return the axis of a joint and a point on it, in the world where all positions are zero."""
    pin = robot.joints[robot.joint_names.index(name)]
    T = robot.pose(robot.neutral(), pin.child)
    return (T[:3, :3] @ pin.axis).round(12).tolist(), (T[:3, :3] @ pin.point + T[:3, 3]).round(12).tolist()


def test_in_version_1_6_links_are_in_the_model_and_joints_in_their_child(tmp_path: Path) -> None:
    """The child is turned by 90 degrees about z at (1, 0, 0); its joint is at (0.5, 0, 0) there, turned about x.

    The origin of the joint is (1, 0, 0) + Rz (0.5, 0, 0) = (1, 0.5, 0), its axis Rz Rx (0, 0, 1) = (1, 0, 0).
    """
    ends = link("a"), link("b", f"1 0 0 0 0 {QUARTER}")
    at = f"<pose>0.5 0 0 {QUARTER} 0 0</pose>"
    assert axis_in_world(read(tmp_path, model(*ends, joint("revolute", "a", "b", at), version="1.6"))) == (
        [1.0, 0.0, 0.0],
        [1.0, 0.5, 0.0],
    )
    in_model = at + "<axis><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>"
    robot = read(tmp_path, model(*ends, joint("revolute", "a", "b", in_model), version="1.6"))
    assert axis_in_world(robot)[0] == [0.0, 1.0, 0.0]
    plain = at + "<axis><xyz>0 1 0</xyz></axis>"  # before version 1.5, axes are in the model
    assert axis_in_world(read(tmp_path, model(*ends, joint("revolute", "a", "b", plain), version="1.4")))[0] == [
        0,
        1,
        0,
    ]


def test_since_version_1_7_poses_are_relative_to_any_frame(tmp_path: Path) -> None:
    """f is on a at (0, 0, 2), turned by 90 degrees about z; b is at (1, 0, 0) in f: at (0, 1, 2) in the world.

    The joint is at (0, 0, 3) of the model, its axis x of f: y of the world.
    """
    frame = f'<frame name="f" attached_to="a"><pose>0 0 2 0 0 {QUARTER}</pose></frame>'
    pin = '<pose relative_to="__model__">0 0 3 0 0 0</pose><axis><xyz expressed_in="f">1 0 0</xyz></axis>'
    robot = read(tmp_path, model(frame, link("a"), link("b", "1 0 0 0 0 0", "", "f"), joint("revolute", "a", "b", pin)))
    np.testing.assert_allclose(robot.pose([0.0], "b"), make_pose(from_rpy([0, 0, math.pi / 2]), [0, 1, 2]), atol=1e-15)
    assert axis_in_world(robot) == ([0.0, 1.0, 0.0], [0.0, 0.0, 3.0])
    assert [(each.name, each.link) for each in robot.frames] == [("f", "a")]


def test_a_link_may_be_relative_to_its_own_joint_and_a_joint_end_may_be_a_frame(tmp_path: Path) -> None:
    """The usual way of URDF: the joint is placed in the parent, the child in the joint."""
    pin = '<pose relative_to="a">0 0 1 0 0 0</pose>'
    parts = link("a"), link("b", "0 0 0 0 0 0", "", "j"), joint("revolute", "a", "b", pin)
    np.testing.assert_allclose(read(tmp_path, model(*parts)).joints[0].placement, make_pose(p=[0, 0, 1]))
    frame = '<frame name="tip" attached_to="b"><pose>0.2 0 0 0 0 0</pose></frame>'
    robot = read(tmp_path, model(link("a"), link("b"), frame, joint("revolute", "a", "tip")))
    assert robot.joints[0].child == "b" and robot.joints[0].point.tolist() == [0.2, 0.0, 0.0]


def test_degrees_and_quaternions_of_version_1_9(tmp_path: Path) -> None:
    poses = {
        '<pose degrees="true">1 2 3 0 0 90</pose>',
        f'<pose rotation_format="quat_xyzw">1 2 3  0 0 {math.sqrt(0.5)} {math.sqrt(0.5)}</pose>',
        f'<pose rotation_format="euler_rpy">1 2 3 0 0 {QUARTER}</pose>',
    }
    for pose in poses:
        frame = f'<frame name="f">{pose}</frame>'
        T = read(tmp_path, model(link("a"), frame, version="1.9")).places["f"].pose
        np.testing.assert_allclose(T, [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-15)


def test_the_inertia_of_a_turned_inertial_frame(tmp_path: Path) -> None:
    """Turned by 90 degrees about z, the moments about x and y change places."""
    body = f"""<link name="a"><inertial><pose>0 0 0.5 0 0 {QUARTER}</pose><mass>2</mass>
        <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia></inertial></link>"""
    base = read(tmp_path, model(body)).base
    np.testing.assert_allclose(base.inertia, np.diag([0.2, 0.1, 0.25]), atol=1e-15)
    assert (base.mass, base.com.tolist()) == (2.0, [0.0, 0.0, 0.5])


ARM = model(link("upper"), link("lower", "0 0 1 0 0 0"), joint("revolute", "upper", "lower"), name="arm")


def test_parts_of_nested_models_have_scoped_names(tmp_path: Path) -> None:
    inner = ARM.partition(">")[2].removesuffix("</sdf>").replace("<model", "<model", 1)
    inner = inner.replace('name="arm">', 'name="arm"><pose>1 0 0 0 0 0</pose>')
    weld = joint("fixed", "base", "arm::upper", name="weld")
    for version in ("1.7", "1.8"):
        robot = read(tmp_path, model(link("base"), inner, weld, version=version))
        assert robot.joint_names == ("arm::j",) and robot.link_names == ("arm::lower",)
        assert robot.pose([0.0], "arm::lower")[:3, 3].tolist() == [1.0, 0.0, 1.0]


def included(tmp_path: Path, include: str, *more: str) -> torsor.Robot:
    folder = tmp_path / "models" / "arm"
    folder.mkdir(parents=True, exist_ok=True)
    old = "<sdf version='1.5'>old.sdf</sdf>"
    (folder / "model.config").write_text(f"<model>{old}<sdf version='1.7'>model.sdf</sdf></model>")
    (folder / "model.sdf").write_text(ARM)
    text = model(link("base"), include, *more, version="1.9")
    return read(tmp_path, text, "robots/robot.sdf", search=[tmp_path / "models"])


def test_an_included_model_is_found_on_the_search_path_and_placed(tmp_path: Path) -> None:
    """The placement frame 'lower' is 1 m above the model: at (0, 0, 5), the model is at (0, 0, 4)."""
    uri, weld = "<uri>model://arm</uri>", joint("fixed", "base", "other::upper", name="weld")
    robot = included(tmp_path, f"<include>{uri}<name>other</name><pose>1 2 3 0 0 0</pose></include>", weld)
    assert robot.pose([0.0], "other::lower")[:3, 3].tolist() == [1.0, 2.0, 4.0]
    placed = f"{uri}<name>other</name><pose>0 0 5 0 0 0</pose><placement_frame>lower</placement_frame>"
    robot = included(tmp_path, f"<include>{placed}</include>", weld)
    assert robot.pose([0.0], "other::upper")[:3, 3].tolist() == [0.0, 0.0, 4.0]
    assert robot.pose([0.0], "other::lower")[:3, 3].tolist() == [0.0, 0.0, 5.0]


def test_a_merged_include_has_the_names_of_its_surroundings(tmp_path: Path) -> None:
    merged = '<include merge="true"><uri>model://arm</uri><pose>0 0 2 0 0 0</pose></include>'
    robot = included(tmp_path, merged, joint("fixed", "base", "upper", name="weld"))
    assert robot.joint_names == ("j",) and robot.pose([0.0], "lower")[:3, 3].tolist() == [0.0, 0.0, 3.0]


def test_the_world_gives_gravity_and_a_file_may_have_several_models(tmp_path: Path) -> None:
    both = ARM.replace("</model>", '</model><model name="box">' + link("box") + "</model>")
    with warned(where="robot.sdf", fix="name one: robot.sdf#arm"):
        assert read(tmp_path, both).joint_names == ("j",)
    assert torsor.load(tmp_path / "robot.sdf#box").base.name == "box"
    with refused(value="bx", allowed="arm, box"):
        torsor.load(str(tmp_path / "robot.sdf#bx"))
    world = '<world name="w"><gravity>0 0 -1.62</gravity>{}</world>'
    assert read(tmp_path, model(link("a"), around=world)).gravity.tolist() == [0, 0, -1.62]
    world = '<world name="w">{}</world>'  # SDF's default
    assert read(tmp_path, model(link("a"), around=world)).gravity.tolist() == [0, 0, -9.8]
    assert read(tmp_path, model(link("a"))).gravity.tolist() == [0, 0, -9.81]  # no world at all


def test_the_base_is_where_the_file_puts_it(tmp_path: Path) -> None:
    """A model that is turned by 90 degrees about x has its weight along its own -y, not -z."""
    parts = link("a"), link("b"), joint("prismatic", "a", "b", "<axis><xyz>0 1 0</xyz></axis>")
    upright = read(tmp_path, model(*parts))
    assert upright.base.name == "a" and upright.gravity_force([0.0]).tolist() == [0.0]
    turned = read(tmp_path, model(f"<pose>0 0 1 {QUARTER} 0 0</pose>", *parts))
    assert turned.base.name == "world" and turned.frames[0].name == "a"
    np.testing.assert_allclose(turned.gravity_force([0.0]), [2 * 9.81], rtol=1e-14)
    free = read(tmp_path, model(f"<pose>0 0 1 {QUARTER} 0 0</pose>", *parts), base="floating")
    assert free.joint_names == ("root", "j") and free.joints[0].child == "a"


def test_a_weld_to_the_world_does_not_keep_the_base_from_floating_but_other_joints_do(tmp_path: Path) -> None:
    parts = link("a"), link("b"), joint("revolute", "a", "b")
    welded = model(*parts, joint("fixed", "world", "a", name="weld"))
    assert read(tmp_path, welded).base.name == "a"
    assert read(tmp_path, welded, base="floating").nv == 7
    sliding = model(*parts, joint("prismatic", "world", "a", name="slide"))
    assert read(tmp_path, sliding).joint_names == ("slide", "j")
    with refused(what="the base cannot float, because 1 joints attach the model to the world"):
        read(tmp_path, sliding, base="floating")


def test_the_ground_and_the_sun_that_a_world_includes_are_not_the_robot(tmp_path: Path) -> None:
    ground = model("<static>true</static>", link("plate"), name="ground")
    read(tmp_path, ground, "ground/model.sdf")
    (tmp_path / "ground" / "model.config").write_text("<model><sdf version='1.7'>model.sdf</sdf></model>")
    sun, plane = (f"<include><uri>model://{name}</uri></include>" for name in ("sun", "ground"))
    text = model(link("a"), name="robot", around=f"<world name='w'>{sun}{plane}{{}}</world>")
    with warned(what="3 models; 'robot' is read, not 'sun', 'ground'"):
        assert read(tmp_path, text, search=[tmp_path]).name == "robot"


def test_nothing_of_a_static_model_moves(tmp_path: Path) -> None:
    robot = read(
        tmp_path, model("<static>true</static>", link("a", "0 0 1 0 0 0"), link("b"), joint("revolute", "a", "b"))
    )
    assert robot.nv == 0 and robot.base.name == "world" and robot.base.mass == 4.0


def test_what_is_left_out_is_named_in_one_warning_and_refused_only_if_it_may_act(tmp_path: Path) -> None:
    sensor, light = "<sensor name='s' type='imu'/>", "<light type='point' name='l'/>"
    harmless = model(link("a", more=sensor), "<plugin name='p' filename='x'/>", light)
    with pytest.warns(ModelWarning) as caught:
        read(tmp_path, harmless, strict=True)
    assert len(caught) == 1
    assert "not read: <plugin> (1, line 4), <light> (1, line 4), <sensor> (1, line 3)" in str(caught[0].message)
    resting = '<model name="n"><static>1</static>' + link("b") + "</model>" + joint("fixed", "a", "n::b")
    for text, found in (
        (link("a") + resting, "<static> of a nested model"),
        (link("a", more="<gravity>false</gravity>"), "<gravity> that is off for a link"),
        (link("a", more="<kinematic>1</kinematic>"), "<kinematic>"),
        (link("a", more="<velocity_decay><linear>1</linear></velocity_decay>"), "<velocity_decay>"),
        (link("a", more="<cable/>"), "<cable>"),
        ('<link name="a"/>', "SDF defaults are used for links without <inertial>, 1 kg and 1 kg m^2 (1, line 2)"),
    ):
        with pytest.warns(ModelWarning) as caught:
            read(tmp_path, model(text))
        assert len(caught) == 1 and found in str(caught[0].message)
        with refused(where="robot.sdf", what=found):
            read(tmp_path, model(text), strict=True)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_versions_1_2_and_1_3_mean_what_version_1_4_means(tmp_path: Path, version: str) -> None:
    """Axes are in the axes of the model, as libsdformat and Drake read all three."""
    hinge = joint("revolute", "a", "b", "<pose>0.1 0 0 0.2 0 0</pose>")
    parts = link("a", "0 0 1 0 0 0.3"), link("b", "0.5 0 1 0.4 0 0"), hinge
    old, known = (read(tmp_path, model(*parts, version=each)) for each in (version, "1.4"))
    assert old == known and axis_in_world(old)[0] == [0.0, 0.0, 1.0]
    mesh = "<visual name='v'><geometry><mesh><filename>a.stl</filename></mesh></geometry></visual>"
    assert read(tmp_path, model(link("a", more=mesh), version=version)).base.visuals[0].mesh == "a.stl"


def test_roots_of_a_model_are_fixed_to_the_world_or_free_bodies(tmp_path: Path) -> None:
    """As in Gazebo and Drake: the mass matrix of free roots has a block for each, as if they were alone."""
    one = link("a", "0 0 1 0 0 0.3") + link("b", "1 0 1 0 0 0") + joint("revolute", "a", "b")
    other = link("c", "0 2 0 0.1 0 0")
    with warned(what="2 links have no parent joint and are fixed to the world: 'a', 'c'", fix="base='floating'"):
        fixed = read(tmp_path, model(one, other))
    assert fixed.base.name == "world" and fixed.joint_names == ("j",)
    assert fixed.pose([0.0], "c")[:3, 3].tolist() == [0.0, 2.0, 0.0]
    free = read(tmp_path, model(one, other), base="floating")
    assert free.nv == 13 and free.pose(free.neutral(), "c")[:3, 3].tolist() == [0.0, 2.0, 0.0]
    alone = [read(tmp_path, model(part), base="floating") for part in (one, other)]
    M, names = free.mass_matrix(free.neutral()), list(free.coordinate_names)
    for robot, root in zip(alone, "ac", strict=True):
        rows = [names.index(name.replace("root/", f"{root}/free/")) for name in robot.coordinate_names]
        np.testing.assert_allclose(M[np.ix_(rows, rows)], robot.mass_matrix(robot.neutral()), rtol=0, atol=1e-14)
        M[np.ix_(rows, rows)] = 0.0
    assert not M.any()


def test_a_root_beside_one_that_a_joint_holds_may_float(tmp_path: Path) -> None:
    parts = link("a"), link("b", "0 0 3 0 0 0"), joint("prismatic", "world", "a")
    assert read(tmp_path, model(*parts)).nv == 1
    assert read(tmp_path, model(*parts), base="floating").nv == 7


def test_a_link_named_world_is_a_link_with_a_warning(tmp_path: Path) -> None:
    """As Bullet reads it, although SDF reserves the name."""
    with warned(what="the name 'world' is reserved; it is read as 'world_link'"):
        robot = read(tmp_path, model(link("world"), link("a"), joint("prismatic", "world", "a"), version="1.6"))
    assert robot.base.name == "world_link" and robot.joint_names == ("j",)


def test_a_nested_model_is_named_by_its_path(tmp_path: Path) -> None:
    parts = link("upper"), link("lower", "0 0 1 0 0 0"), joint("revolute", "upper", "lower")
    inner = model(*parts, "<pose>0 0 3 0 0 0</pose>", name="arm").partition(">")[2].removesuffix("</sdf>")
    weld = joint("fixed", "table", "arm::upper", name="weld")
    cell = model(link("table"), inner, weld, "<pose>1 0 0 0 0 0</pose>", name="cell")
    read(tmp_path, cell, "world.sdf")
    for name in ("cell/arm", "cell::arm"):
        robot = torsor.load(f"{tmp_path}/world.sdf#{name}")
        assert robot.name == "arm" and robot.joint_names == ("j",) and robot.link_names == ("lower",)
        assert robot.to(device="casadi").pose([0.0], "lower")[:3, 3].tolist() == [1.0, 0.0, 4.0]
    with refused(value="leg", what="no nested model 'leg'", allowed="arm"):
        torsor.load(tmp_path / "world.sdf#cell/leg")


def test_a_nested_model_of_an_included_file_is_found(tmp_path: Path) -> None:
    included(tmp_path, "<include><uri>model://arm</uri></include>", joint("fixed", "base", "arm::upper", name="weld"))
    robot = torsor.load(f"{tmp_path}/robots/robot.sdf#m/arm", search=[tmp_path / "models"])
    assert robot.joint_names == ("j",) and robot.link_names == ("lower",)


@pytest.mark.parametrize("uri", ["arm", "arm/model.sdf"])
def test_an_include_without_scheme_follows_the_search_path(tmp_path: Path, uri: str) -> None:
    weld = joint("fixed", "base", "arm::upper", name="weld")
    assert included(tmp_path, f"<include><uri>{uri}</uri></include>", weld).joint_names == ("arm::j",)


REFUSED = {
    "no version": ("<sdf/>", r"<sdf version=''>; allowed: a version"),
    "too old": ('<sdf version="1.0"><model name="m"/></sdf>', "the SDF version is 1.0; allowed: 1.2 and later"),
    "no model": ('<sdf version="1.7"><world name="w"/></sdf>', "no model; allowed: <model>"),
    "no link": (model(), "there is no link"),
    "a link without a name": (model("<link/>"), "<link name=''>; allowed: a unique name"),
    "a link named as its model": (model(link("__model__")), "<link name='__model__'>"),
    "two of one name": (model(link("a"), joint("fixed", "world", "a", name="a")), "are both named 'a'"),
    "relative to itself": (
        model(link("a", "0 0 0 0 0 0", "", "b"), link("b", "1 0 0 0 0 0", "", "a"), joint("fixed", "a", "b")),
        "is relative to itself",
    ),
    "attached to itself": (
        model(link("a"), '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
        "'f' is attached to itself",
    ),
    "relative to nothing": (model(link("a", "1 0 0 0 0 0", "", "x")), r"line 2: link 'a': no frame 'x'"),
    "five numbers": (model(link("a", "1 0 0 0 0")), "<pose> is '1 0 0 0 0'; allowed: 6 finite numbers"),
    "nan": (model(link("a", "nan 0 0 0 0 0")), "allowed: 6 finite numbers"),
    "digits that only Python reads": (model(link("a", "1_0 0 0 0 0 0")), "allowed: 6 finite numbers"),
    "a zero quaternion": (
        model(link("a").replace("<inertial>", '<pose rotation_format="quat_xyzw">1 0 0 0 0 0 0</pose><inertial>', 1)),
        "the quaternion is zero",
    ),
    "automatic inertia": (model(link("a").replace("<inertial>", '<inertial auto="true">')), "computed from shapes"),
    "a file of the net": (model("<include><uri>https://fuel/x</uri></include>"), "allowed: files on this"),
    "a missing file": (model("<include><uri>model://x</uri></include>"), "'model://x', which was not found; fix: pass"),
    "a file elsewhere": (model("<include><uri>../../../secret.sdf</uri></include>"), "which was not found"),
    "itself": (model("<include><uri>robot.sdf</uri></include>"), "models are nested too deeply"),
    "many of itself": (model("<include><uri>robot.sdf</uri></include>" * 3), "too deeply|too many <include>"),
    "deep": (
        f'<sdf version="1.7">{"".join(f"""<model name="m{k}">""" for k in range(60))}{"</model>" * 60}</sdf>',
        "models are nested too deeply; allowed: 40",
    ),
    "an entity": ('<!DOCTYPE sdf [<!ENTITY a "b">]><sdf version="1.7"/>', "a document type or entity declaration"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_or_hostile_file_is_refused(tmp_path: Path, case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(ModelError, match=message):
        read(tmp_path, text)


def test_an_include_outside_of_the_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "arm.sdf").write_text(ARM)
    text = model("<include><uri>../secret/arm.sdf</uri></include>")
    with refused(fix="pass its folder"):
        read(tmp_path, text, "download/robot.sdf")


@pytest.mark.parametrize("mask", ["x", "-1", "4294967296", "1" * 5000])
def test_a_mask_that_is_none_leaves_the_shape_out(tmp_path: Path, mask: str) -> None:
    contact = f"<surface><contact><collide_bitmask>{mask}</collide_bitmask></contact></surface>"
    shape = f"<collision name='c'><geometry><sphere><radius>1</radius></sphere></geometry>{contact}</collision>"
    with warned(what="collide_bitmask is"):
        assert not read(tmp_path, model(link("a", more=shape))).base.shapes
