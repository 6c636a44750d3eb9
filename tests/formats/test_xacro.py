"""xacro files are expanded with their arguments, and unsafe expressions are rejected."""

from pathlib import Path

import pytest

import torsor
from refusals import refused, warned
from torsor.cli import main

pytest.importorskip("xacro", reason="needs the extra xacro")

ARM = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="2"/>
<xacro:arg name="two" default="false"/>
<xacro:property name="m" value="$(arg mass)"/>
<xacro:macro name="rod" params="name parent">
  <link name="${name}"><inertial><mass value="${2 * m}"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="${name}_pin" type="continuous"><parent link="${parent}"/><child link="${name}"/>
    <axis xyz="0 ${cos(0)} 0"/></joint>
</xacro:macro>
<link name="base"/>
<xacro:rod name="upper" parent="base"/>
<xacro:if value="$(arg two)"><xacro:rod name="lower" parent="upper"/></xacro:if>
</robot>"""


def write(tmp_path: Path, text: str, name: str = "arm.urdf.xacro") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_macros_properties_and_arguments_give_the_urdf_that_they_stand_for(tmp_path: Path) -> None:
    path = write(tmp_path, ARM)
    assert torsor.load(path).links[0].mass == 4.0
    robot = torsor.load(path, xacro={"mass": 1.5, "two": True})
    assert robot.joint_names == ("upper_pin", "lower_pin") and robot.links[1].mass == 3.0
    assert robot.joints[0].axis.tolist() == [0.0, 1.0, 0.0]
    assert torsor.load(path, base="floating").nv == 7


def test_an_argument_that_the_file_does_not_use_is_named(tmp_path: Path) -> None:
    with warned(allowed="mass, two"):
        robot = torsor.load(write(tmp_path, ARM), xacro={"maas": 1.5})
    assert robot.links[0].mass == 4.0


def test_a_xacro_file_may_become_sdf(tmp_path: Path) -> None:
    text = """<sdf version="1.7" xmlns:xacro="http://www.ros.org/wiki/xacro"><model name="m"><link name="${'a' + 'b'}">
    <inertial><mass>1</mass><inertia><ixx>${1/4}</ixx></inertia></inertial></link></model></sdf>"""
    assert torsor.load(write(tmp_path, text, "m.sdf.xacro")).base.inertia[0, 0] == 0.25


def test_find_searches_the_search_path(tmp_path: Path) -> None:
    package = tmp_path / "ws" / "parts"
    package.mkdir(parents=True)
    write(package, '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="base"/></robot>', "base.xacro")
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    path = write(tmp_path, f'{head}<xacro:include filename="$(find parts)/base.xacro"/></robot>')
    assert torsor.load(path, search=[tmp_path / "ws"]).base.name == "base"
    with refused(fix="pass its folder"):
        torsor.load(path)


REFUSED = {
    "an unknown name": ('<link name="${x}"/>', "'x' is not defined"),
    "a missing argument": ('<link name="$(arg none)"/>', "xacro rejects it:"),
    "a name with underscores": ('<link name="${().__class__}"/>', "uses '__class__'"),
    "a frame that called it": ("""<link name="${(x for x in [1]).gi_frame.f_back}"/>""", "uses 'f_back'"),
    "names as text": ("""<link name="${python.vars(python.type)['__subclasses__']}"/>""", "uses 'vars'"),
    "inside of a list": ('<link name="${[x.__class__ for x in [1]]}"/>', "uses '__class__'"),
    "a built-in function": ("""<link name="${open('/etc/passwd').read()}"/>""", "xacro rejects it"),
    "eval": ("""<link name="$(eval open('/etc/passwd').read())"/>""", "any Python function"),
    "a macro that calls itself": (
        '<xacro:macro name="m" params="n"><xacro:if value="${n > 0}">'
        + 20 * '<xacro:m n="${n - 1}"/>'
        + '</xacro:if></xacro:macro><xacro:m n="9"/>',
        "more than 5,000 macro calls",
    ),
    "a macro of itself": (
        '<xacro:macro name="a"><xacro:a/></xacro:macro><xacro:a/>',
        "xacro rejects it:",
    ),
    "no XML": ("<link>", "not well-formed XML"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_or_hostile_file_is_refused(tmp_path: Path, case: str) -> None:
    text, message = REFUSED[case]
    path = write(tmp_path, f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{text}</robot>')
    with refused(message):
        torsor.load(path)


def test_arguments_of_other_files_and_of_other_kinds_are_refused(tmp_path: Path) -> None:
    plain = write(tmp_path, '<robot name="r"><link name="base"/></robot>', "r.urdf")
    with refused(argument="xacro", where="r.urdf", allowed="a .xacro file"):
        torsor.load(plain, xacro={"mass": 1})
    with refused(argument="xacro", allowed="{name: text, number, True or False}"):
        torsor.load(write(tmp_path, ARM), xacro={"mass": [1]})


def test_the_command_line_takes_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, ARM))
    assert main(["info", path, "--xacro", "two=true", "--xacro", "mass=1"]) == 0
    assert "lower_pin" in capsys.readouterr().out
    assert main(["info", path, "--xacro", "two"]) == 1
    assert "--xacro NAME=VALUE" in capsys.readouterr().err


def test_a_package_is_found_by_its_name_in_a_clone_of_another_name(tmp_path: Path) -> None:
    clone = tmp_path / "Robots_ROS2_Description"
    (clone / "urdf").mkdir(parents=True)
    (clone / "package.xml").write_text("<package><name>robots_description</name></package>")
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    write(clone / "urdf", f'{head}<link name="base"/></robot>', "base.xacro")
    include = '<xacro:include filename="$(find robots_description)/urdf/base.xacro"/>'
    assert torsor.load(write(clone / "urdf", f"{head}{include}</robot>")).base.name == "base"
