"""Robots by name: modules as robot_descriptions has them, without a download."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import torsor
from torsor import ModelError
from torsor.cli import main

ARM = """<robot name="arm"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry><mesh filename="package://arm_description/hand.stl"/>
</geometry></visual></link></robot>"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with the name and the layout of robot_descriptions, in place of the installed one."""
    folder, robots = tmp_path / "robot_descriptions", tmp_path / "cache" / "arm_description"
    folder.mkdir()
    robots.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (robots / "arm.urdf").write_text(ARM)
    (robots / "hand.stl").write_text("")
    head = f"REPOSITORY_PATH = {str(robots.parent)!r}\nPACKAGE_PATH = {str(robots)!r}\n"
    (folder / "arm_description.py").write_text(f"{head}URDF_PATH = PACKAGE_PATH + '/arm.urdf'\n")
    (folder / "bare_description.py").write_text(head)
    (folder / "lost_description.py").write_text("raise RuntimeError('git: could not resolve host')\n")
    (folder / "needs_description.py").write_text("import no_such_package\n")
    macro = f"{head}XACRO_PATH = PACKAGE_PATH + '/arm.urdf.xacro'\nXACRO_ARGS = {{'name': 'hand'}}\n"
    (folder / "macro_description.py").write_text(macro)
    text = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="name" default="x"/>
        <link name="$(arg name)"/></robot>"""
    (robots / "arm.urdf.xacro").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [each for each in sys.modules if each.split(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    yield robots
    for name in [each for each in sys.modules if each.split(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


def test_a_robot_is_loaded_by_name_and_its_package_is_found(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = torsor.load("robot_descriptions:arm_description", base="floating")
    assert robot.nv == 6
    assert robot.links[0].visuals[0].path == str(package / "hand.stl")
    assert main(["info", "robot_descriptions:arm_description"]) == 0
    assert "arm" in capsys.readouterr().out


def test_xacro_arguments_of_the_description_are_defaults(package: Path) -> None:
    pytest.importorskip("xacro", reason="needs the extra xacro")
    assert torsor.load("robot_descriptions:macro_description").base.name == "hand"
    assert torsor.load("robot_descriptions:macro_description", xacro={"name": "foot"}).base.name == "foot"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arm", "no description 'arm'; fix: write robot_descriptions:arm_description"),
        ("arm_descriptio", "fix: write robot_descriptions:arm_description"),
        ("os.path", "no description 'os.path'; allowed: a name such as panda_description"),
        ("", "no description ''"),
        ("lost_description", "the download failed: git: could not resolve host; fix: check the connection"),
        ("needs_description", "it needs the package 'no_such_package'"),
        ("bare_description", "it has no robot file; allowed: URDF_PATH, MJCF_PATH, XACRO_PATH"),
    ],
)
def test_an_unknown_name_or_a_failed_download_is_an_error(package: Path, name: str, message: str) -> None:
    with pytest.raises(ModelError, match=f"^robot_descriptions:{name}: .*{message}"):
        torsor.load(f"robot_descriptions:{name}")


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(ImportError, match=r'pip install "torsor\[robots\]"'):
        torsor.load("robot_descriptions:arm_description")


def test_the_names_of_the_installed_package_have_the_attributes_that_are_read() -> None:
    described = pytest.importorskip("robot_descriptions", reason="needs the extra robots")
    text = (Path(described.__path__[0]) / "panda_description.py").read_text()
    assert "URDF_PATH" in text and "PACKAGE_PATH" in text
