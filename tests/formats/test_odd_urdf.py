"""URDF files that other programs read: odd limits, visuals, tags and transmissions are warnings, errors if strict."""

import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from refusals import refused, warned
from torsor import ModelError, ModelWarning

from . import urdf_text
from .urdf_text import SOUND, arm, inertial, joint, link, load, robot

UNLIMITED = '<axis xyz="0 0 1"/><limit lower="-1.7976931348623157e308" upper="1.7976931348623157e308"/>'
XACRO = '<robot xmlns:xacro="http://ros.org/wiki/xacro" name="tested">'
ROTOR = "<drake:rotor_inertia value='0.001'/>"


def drawn(inside: str) -> str:
    return arm(f"{SOUND}<visual>{inside}</visual>")


def driven(inside: str, name: str = "elbow") -> str:
    """Return an arm with a transmission; its carrier is heavy enough for the rotors of these tests."""
    actuator = f'<transmission name="t"><joint name="{name}"/><actuator name="a">{inside}</actuator></transmission>'
    base, hand = link("base"), link("hand")
    elbow = '<axis xyz="0 0 1"/>'
    return robot(base, hand, joint("elbow", "base", "hand", elbow), actuator)


# Each: the file, what the warning says, and the same robot without what is odd.
ODD = {
    "limits of Bullet's kind": (
        arm(elbow='<axis xyz="0 0 1"/><limit lower="1" upper="-1"/>', kind="revolute"),
        "lower limit 1 is above upper limit -1",
        arm(elbow=UNLIMITED, kind="revolute"),
    ),
    "a revolute joint without limits": (
        arm(kind="revolute"),
        "a revolute joint without lower and upper limit",
        arm(elbow=UNLIMITED, kind="revolute"),
    ),
    "a slide with an effort limit alone": (
        arm(elbow='<axis xyz="0 0 1"/><limit effort="7"/>', kind="prismatic"),
        "a prismatic joint without lower and upper limit",
        arm(elbow=UNLIMITED.replace("limit", 'limit effort="7"'), kind="prismatic"),
    ),
    "a negative effort limit": (
        arm(elbow='<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="-5"/>', kind="revolute"),
        "the effort limit is -5",
        arm(elbow='<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5"/>', kind="revolute"),
    ),
    "a surplus point": (
        arm(elbow='<axis xyz="0 0 1"/><limit lower="-1.57." upper="1"/>', kind="revolute"),
        "<limit lower='-1.57.'>",
        arm(elbow='<axis xyz="0 0 1"/><limit lower="-1.57" upper="1"/>', kind="revolute"),
    ),
    "a surplus zero": (
        arm(elbow='<axis xyz="0 0 1"/><origin rpy="-3.14159 1.57079 0 0"/>'),
        "<origin rpy='-3.14159 1.57079 0 0'>",
        arm(elbow='<axis xyz="0 0 1"/><origin rpy="-3.14159 1.57079 0"/>'),
    ),
    "a visual of size 0": (
        drawn('<geometry><box size="0 0 0"/></geometry>'),
        "size",
        arm(),
    ),
    "a mesh of scale 0": (
        drawn('<geometry><mesh filename="a.stl" scale="0 0 0"/></geometry>'),
        "size",
        arm(),
    ),
    "a macro of a sensor": (
        arm(extra='<xacro:sensor_imu name="imu" parent="hand"/>').replace('<robot name="tested">', XACRO),
        "<xacro:sensor_imu>, which xacro should have replaced, is ignored (1 in all), and so are the links",
        arm(),
    ),
    "a macro that is defined": (
        arm(extra='<xacro:macro name="m"><link name="x"/></xacro:macro>').replace('<robot name="tested">', XACRO),
        "<xacro:macro>, which xacro should have replaced",
        arm(),
    ),
    "limits of a spherical joint": (
        arm(elbow='<limit lower="0" upper="1"/>', kind="spherical"),
        "not read: <limit lower=> (1, line 4), <limit upper=>",
        arm(elbow="", kind="spherical"),
    ),
    "a shape without a size": (drawn("<geometry><box/></geometry>"), "<box> has no size", arm()),
    "a shape with a wrong count": (
        drawn('<geometry><box size="1 2"/></geometry>'),
        "1 2",
        arm(),
    ),
    "a shape turned infinitely": (
        drawn('<origin rpy="inf 0 0"/><geometry><sphere radius="1"/></geometry>'),
        "inf 0 0",
        arm(),
    ),
    "a mesh with one scale": (
        drawn('<geometry><mesh filename="a.stl" scale="0.001"/></geometry>'),
        "0.001",
        arm(),
    ),
    "a colour of two numbers": (
        arm(extra='<material name="m"><color rgba="1 0"/></material>'),
        "1 0",
        arm(),
    ),
    "a xacro tag in a visual": (
        drawn("<xacro:insert_block/>").replace('<robot name="tested">', XACRO),
        "<xacro:insert_block>, which xacro should have replaced",
        arm(),
    ),
    "a xacro tag in a sensor": (
        arm(extra="<sensor><xacro:camera/><xacro:camera/></sensor>"),
        "<xacro:camera>,",
        arm(),
    ),
    "a xacro property that is left over": (
        arm(extra='<xacro:property name="pi" value="3.14"/>'),
        "<xacro:property>",
        arm(),
    ),
    "a motor of an unknown joint": (
        driven(ROTOR, "wrist"),
        "its joint 'wrist' does not exist",
        driven(""),
    ),
    "a motor of a fixed joint": (
        driven(ROTOR).replace("continuous", "fixed"),
        "its joint 'elbow' is fixed",
        driven("").replace("continuous", "fixed"),
    ),
    "blanks before the declaration": ('\n  <?xml version="1.0"?>' + arm(), "blanks before <?xml", arm()),
    "zeros at the end": (arm() + "\n \0\0", "zeros at the end", arm()),
    "dashes in a comment": (arm(extra="<!-- a -- b\n -->"), "'--' or bytes of another encoding in a comment", arm()),
    "another encoding in a comment": (
        arm(extra="<!-- caf\xe9 -->").encode("latin-1"),
        "'--' or bytes of another encoding in a comment",
        arm(),
    ),
    "a force element": (
        arm(extra='<force_element name="f"/><force_element name="g"/><cable/>'),
        "elements that are not read: <force_element> (2, line 5), <cable> (1, line 5)",
        arm(),
    ),
    "an included file": (arm(extra='<xi:include href="other.urdf"/>'), "not read: <xi:include> (1, line 5)", arm()),
    "old names of friction": (
        arm(elbow='<axis xyz="0 0 1"/><joint_properties damping="1"/>'),
        "not read: <joint_properties> (1, line 4)",
        arm(),
    ),
    "an unknown property of dynamics": (
        arm(elbow='<axis xyz="0 0 1"/><dynamics armature="1"/>'),
        "not read: <dynamics armature=>",
        arm(),
    ),
    "a link without gravity": (arm(SOUND + "<gravity>0</gravity>"), "not read: <gravity>", arm()),
    "a frame of Drake on a missing link": (
        arm(extra='<frame name="f" link="foot"/>'),
        "foot",
        arm(),
    ),
    "a frame of Drake with the name of a link": (
        arm(extra='<frame name="hand" link="base"/>'),
        "it has the name of another link",
        arm(),
    ),
    "a loop joint of another type": (
        arm(extra='<loop_joint name="l" type="ball"/>'),
        "revolute, continuous",
        arm(),
    ),
    "a loop joint with one end": (
        arm(extra='<loop_joint name="l"><link1 link="base"/></loop_joint>'),
        "no <link2>",
        arm(),
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_odd_is_a_warning_and_an_error_if_strict(tmp_path: Path, case: str) -> None:
    text, message, plain = ODD[case]
    with warned(message, where="arm.urdf") as caught:
        made = load(tmp_path, text)
    assert len(caught) == 1
    assert made == load(tmp_path, plain)
    if not text[0:1].isspace() and "\0" not in str(text) and "comment" not in case:
        with refused(message, where="arm.urdf"):
            load(tmp_path, text, strict=True)
    else:
        with refused(where="arm.urdf", what="not well-formed XML"):
            load(tmp_path, text, strict=True)


@pytest.mark.parametrize("kind", ["harmless", "other"])
def test_tags_of_simulators_and_controllers_need_no_warning(tmp_path: Path, kind: str) -> None:
    extra = {
        "harmless": "<gazebo/><sensor/><ros2_control/><transmission><type>${x}</type></transmission>",
        "other": '<transmission><joint name="x"/><mechanicalReduction>odd</mechanicalReduction></transmission>',
    }
    assert load(tmp_path, arm(SOUND + "<gravity>true</gravity><contact/>", extra=extra[kind]), strict=True) == load(
        tmp_path, arm()
    )


def test_the_gear_ratio_of_drake_belongs_to_its_rotor_inertia(tmp_path: Path) -> None:
    gear = '<drake:gear_ratio value="100"/>'
    both = load(tmp_path, driven(ROTOR + gear + "<mechanicalReduction>1</mechanicalReduction>"))
    assert both == load(tmp_path, driven(ROTOR + gear))
    motor = both.joint("elbow").motor
    assert motor is not None and motor.ratio == 100.0
    assert both.mass_matrix([0.3])[0, 0] == pytest.approx(0.4 + 100**2 * 0.001, rel=1e-14)
    own = load(tmp_path, driven("<rotorInertia>0.001</rotorInertia><mechanicalReduction>7</mechanicalReduction>"))
    assert own.mass_matrix([0.3])[0, 0] == pytest.approx(0.4 + 7**2 * 0.001, rel=1e-14)


def test_gear_ratios_that_differ_are_a_warning(tmp_path: Path) -> None:
    text = driven(ROTOR + '<drake:gear_ratio value="100"/><mechanicalReduction>7</mechanicalReduction>')
    with warned(where="'t'", what="<drake:gear_ratio> is 100 and <mechanicalReduction> 7; the first"):
        assert load(tmp_path, text).joint("elbow").motor.ratio == 100.0
    with warned(where="'t'", fix="add"):
        assert (
            load(tmp_path, driven(ROTOR + "<mechanicalReduction>7</mechanicalReduction>")).joint("elbow").motor.ratio
            == 7
        )


def test_a_file_without_any_mass_gets_one_warning(tmp_path: Path) -> None:
    tree = [part for i in "bcd" for part in (f'<link name="{i}"/>', joint(f"j{i}", "a", i))]
    with warned(where="arm.urdf", what="no moving link has mass or inertia") as caught:
        load(tmp_path, robot('<link name="a"/>', *tree))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path, robot('<link name="a"/>', '<link name="b"/>', joint("jb", "a", "b", kind="fixed")))


@pytest.mark.parametrize(
    ("inside", "missing"),
    [
        ('<mass value="2"/>', "<inertia>"),
        ('<inertia ixx="0.3" iyy="0.2" izz="0.4"/>', "<mass>"),
        ('<mass value="2"/><inertia ixx="0.3" iyy="0.3"/>', "izz"),
        ("<mass value='2'/><inertia/>", "ixx, iyy, izz"),
        ("", "<mass>, <inertia>"),
    ],
)
def test_a_mass_or_a_moment_that_is_missing_is_named_and_read_as_0(tmp_path: Path, inside: str, missing: str) -> None:
    text, where = arm(f"<inertial>{inside}</inertial>"), "arm.urdf: line 3: link 'hand'"
    with warned(where=where, what=f"<inertial> has no {missing}; read as 0", fix="add the missing elements"):
        load(tmp_path, text)
    with warnings.catch_warnings(), refused(what=f"<inertial> has no {missing}", fix="add the missing elements"):
        warnings.simplefilter("ignore")  # a hand without mass or inertia has a warning of its own
        load(tmp_path, text, strict=True)


def test_products_of_inertia_may_be_left_out(tmp_path: Path) -> None:
    made = load(tmp_path, arm(inertial(inertia='ixx="0.3" iyy="0.2" izz="0.4"')))
    np.testing.assert_array_equal(made.links[0].inertia, np.diag([0.3, 0.2, 0.4]))


def test_frames_of_drake_are_frames(tmp_path: Path) -> None:
    made = load(tmp_path, arm(extra='<frame name="tool" link="hand" xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/>'))
    pose = made.pose([0.0], "tool")
    np.testing.assert_allclose(pose[:3, 3], [0.1, 0.2, 0.3], rtol=1e-15)
    np.testing.assert_allclose(pose[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_a_loop_joint_closes_a_loop_by_a_hinge(tmp_path: Path) -> None:
    """A parallelogram in the x-z plane: rods of 1 m at x = 0 and x = 1, and a coupler between their ends."""
    rod = inertial(inertia='ixx="0.1" iyy="0.1" izz="0.1"')
    about_y = '<axis xyz="0 1 0"/>'
    text = robot(
        '<link name="base"/>',
        *(link(name, rod) for name in ("left", "top", "right")),
        joint("a", "base", "left", about_y),
        joint("b", "left", "top", f'<origin xyz="0 0 1"/>{about_y}'),
        joint("c", "base", "right", f'<origin xyz="1 0 0"/>{about_y}'),
        '<loop_joint name="pin" type="continuous"><link1 link="top" xyz="1 0 0"/><link2 link="right" xyz="0 0 1"/>',
        f"{about_y}</loop_joint>",
        '<transmission name="t"><joint name="a"/></transmission>',
    )
    made = load(tmp_path, text)
    assert [loop.kind for loop in made.loops] == ["revolute"]
    assert made.active == ("a",)
    assert made.closed.mobility([0.3, -0.3, 0.3]).dof == 1
    np.testing.assert_allclose(made.closed.error([0.3, -0.3, 0.3]), 0.0, atol=1e-15)
    np.testing.assert_allclose(made.closed.assemble([0.3], guess=[0.2, -0.2, 0.2]), [0.3, -0.3, 0.3], atol=1e-9)


def test_strict_reading_names_all_faults_of_a_file(tmp_path: Path) -> None:
    link = '<link name="{0}"><inertial><mass value="1"/><inertia ixx="{1}" iyy="1" izz="1"/></inertial></link>'
    joint = '<joint name="{0}" type="revolute"><parent link="a"/><child link="{0}"/><limit {1}/></joint>'
    parts = [
        link.format("a", 1),
        link.format("b", -5),
        link.format("c", 9),
        *map(joint.format, "bc", ["lower='2'", "upper='2'"]),
    ]
    with pytest.raises(ModelError) as found:
        load(tmp_path, f"<robot name='r'>{''.join(parts)}<cable/></robot>", strict=True)
    lines = str(found.value).splitlines()
    assert lines[0] == "4 faults:" and all(line.startswith("arm.urdf: ") for line in lines[1:])
    for line, words in zip(
        lines[1:], ("link 'b': no body", "link 'c': no body", "joint 'b': lower", "<cable>"), strict=True
    ):
        assert words in line


def test_an_element_that_cannot_be_read_ends_strict_reading_after_all_elements(tmp_path: Path) -> None:
    joints = "<joint name='j' type='odd'/><joint name='k' type='worse'/>"
    text = f"<robot name='r'><link name='a'/><link name='b'/>{joints}</robot>"
    with refused(what="2 faults:"):
        load(tmp_path, text, strict=True)
    with refused(value="odd", where="arm.urdf: line 1: joint 'j'"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    "macro",
    [
        "<xacro:arm parent='hand'/><link name='alone'/>",  # the rest is not one tree
        "<xacro:if value='1'><link name='x'/></xacro:if>",  # around a link
    ],
)
def test_macros_in_place_of_the_tree_are_errors(tmp_path: Path, macro: str) -> None:
    text = arm(extra=macro).replace('<robot name="tested">', XACRO)
    with pytest.warns(ModelWarning) if "alone" in macro else nullcontext(), refused(fix="expand it first"):
        load(tmp_path, text)


def test_a_spherical_joint_of_bullet_is_a_ball(tmp_path: Path) -> None:
    """About the origin of the joint, a sphere has the same inertia in all directions."""
    ball = load(tmp_path, arm(inertial("2", 'ixx="0.3" iyy="0.3" izz="0.3"'), "", "spherical")).to(device="casadi")
    assert (ball.nq, ball.nv) == (4, 3)
    np.testing.assert_allclose(ball.mass_matrix([0.1, 0.2, 0.3, 0.9]), 0.3 * np.eye(3), rtol=0, atol=1e-15)


def test_the_world_of_drake_needs_no_link(tmp_path: Path) -> None:
    parts = link("base"), link("hand"), joint("elbow", "base", "hand"), joint("weld", "world", "base", kind="fixed")
    found = load(tmp_path, robot(*parts))
    assert found.base.name == "world" and found.joint_names == ("elbow",)


def test_warnings_of_one_kind_are_one_that_names_all_places(tmp_path: Path) -> None:
    hand = inertial("1", 'ixx="1" iyy="1" izz="5"')
    parts = [link("base"), *(link(name, hand) for name in "abc"), link("d", inertial("1", 'ixx="1" iyy="1"'))]
    joints = [joint(f"j{name}", "base", name, kind="revolute") for name in "abcd"]
    with pytest.warns(ModelWarning) as caught:
        load(tmp_path, robot(*parts, *joints))
    texts = [str(item.message) for item in caught]
    assert len(texts) == 3 and {item.filename for item in caught} == {urdf_text.__file__}
    words = "no body", "<inertial> has no", "limit"
    impossible, missing, limits = (next(text for text in texts if word in text) for word in words)
    assert "link 'a': no body has" in impossible and "(3 in all, also line 4: link 'b', line 5: link 'c')" in impossible
    assert "in all" not in missing
    assert "(4 in all, also line 8: joint 'jb', line 9: joint 'jc', line 10: joint 'jd')" in limits
