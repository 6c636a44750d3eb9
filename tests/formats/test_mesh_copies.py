"""Meshes outside the folder of a written file are copied next to it, so that it can be moved and drawn."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.cli import main
from torsor.formats.meshes.mesh_files import obj_content, read_painted
from torsor.formats.meshes.triangles import box
from torsor.mechanism import Link, Visual

pytest.importorskip("trimesh")

OBJ = obj_content(box((1.0, 2.0, 3.0)))
BODY = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
SUFFIXES = ".urdf", ".sdf", ".xml"


def arm(folder: Path, *visuals: str) -> torsor.Robot:
    """Return a robot that is read from a folder, with meshes that its file names."""
    shown = "".join(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in visuals)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "arm.urdf"
    file.write_text(f"""<robot name="arm"><link name="base">{BODY}</link><link name="hand">{BODY}{shown}</link>
      <joint name="j" type="continuous"><parent link="base"/><child link="hand"/></joint></robot>""")
    return torsor.load(file)


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def loaded(path: Path) -> torsor.Robot:
    if path.suffix == ".xml":
        pytest.importorskip("mujoco")
    return torsor.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_robot_that_is_saved_elsewhere_and_moved_has_its_meshes(tmp_path: Path, suffix: str) -> None:
    for name, width in (("left/hand.obj", 1.0), ("right/hand.obj", 2.0)):  # two meshes of the same name
        written(tmp_path / "robots" / name, obj_content(box((width, 1.0, 1.0))))
    robot = arm(tmp_path / "robots", "left/hand.obj", "right/hand.obj")
    robot.save(written(tmp_path / "out" / "arm.txt", b"").with_suffix(suffix))
    shutil.move(tmp_path / "out", tmp_path / "moved")
    shutil.rmtree(tmp_path / "robots")
    visuals = loaded(tmp_path / "moved" / f"arm{suffix}").links[0].visuals
    areas = [sum(each.surface.area for each in read_painted(v.path or "", v.folders)) for v in visuals]
    assert areas == pytest.approx([6.0, 10.0])
    assert {Path(v.path or "").parent.name for v in visuals} == {"arm_meshes"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_meshes_in_reach_of_the_file_are_not_copied(tmp_path: Path, suffix: str) -> None:
    written(tmp_path / "arm" / "meshes" / "hand.obj", OBJ)
    robot = arm(tmp_path / "arm", "meshes/hand.obj")
    robot.save(tmp_path / "arm" / f"copy{suffix}")
    assert sorted(each.name for each in (tmp_path / "arm").iterdir()) == sorted(["arm.urdf", f"copy{suffix}", "meshes"])
    (visual,) = loaded(tmp_path / "arm" / f"copy{suffix}").links[0].visuals
    assert Path(visual.path or "").resolve() == (tmp_path / "arm" / "meshes" / "hand.obj").resolve()


def test_materials_are_copied_with_their_mesh_and_textures_are_named(tmp_path: Path) -> None:
    written(tmp_path / "arm" / "hand.obj", b"mtllib hand.mtl\nusemtl red\n" + OBJ)
    written(tmp_path / "arm" / "hand.mtl", b"newmtl red\nKd 1 0 0\nmap_Kd wood.png\n")
    robot = arm(tmp_path / "arm", "hand.obj")
    (tmp_path / "out").mkdir()
    with warned(what="textures of meshes"):
        robot.save(tmp_path / "out" / "arm.urdf")
    shutil.rmtree(tmp_path / "arm")
    (visual,) = torsor.load(tmp_path / "out" / "arm.urdf").links[0].visuals
    (found,) = read_painted(visual.path or "", visual.folders)
    np.testing.assert_allclose(found.color or (), (1.0, 0.0, 0.0, 1.0))


@pytest.mark.parametrize("name", ["../secret/hand.obj", "../secret/secret.txt"])
def test_what_a_file_may_not_read_is_not_copied(tmp_path: Path, name: str) -> None:
    written(tmp_path / "secret" / "hand.obj", OBJ)
    written(tmp_path / "secret" / "secret.txt", b"password")
    robot = arm(tmp_path / "download", name)
    (tmp_path / "out").mkdir()
    for suffix in (".urdf", ".sdf"):
        with warned(what="meshes that are not copied,"):
            robot.save(tmp_path / "out" / f"arm{suffix}")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["arm.sdf", "arm.urdf"]


def test_other_kinds_of_files_are_not_copied_for_a_robot_made_in_python(tmp_path: Path) -> None:
    secret = written(tmp_path / "secret" / "secret.txt", b"password")
    visual = Visual("mesh", (1.0, 1.0, 1.0), np.eye(4), mesh="secret.txt", path=str(secret))
    robot = torsor.build("arm", [Link("base", visuals=(visual,))], [])
    (tmp_path / "out").mkdir()
    with warned(what="are not meshes"):
        robot.save(tmp_path / "out" / "arm.urdf")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["arm.urdf"]


def test_a_file_where_the_folder_of_copies_should_be_is_an_error(tmp_path: Path) -> None:
    written(tmp_path / "arm" / "hand.obj", OBJ)
    robot = arm(tmp_path / "arm", "hand.obj")
    written(tmp_path / "out" / "arm_meshes", b"")
    with refused(what="has the name of the folder for mesh copies"):
        robot.save(tmp_path / "out" / "arm.urdf")
    assert not (tmp_path / "out" / "arm.urdf").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_robot_that_cannot_be_written_leaves_no_copies(tmp_path: Path, suffix: str) -> None:
    mesh = written(tmp_path / "arm" / "hand.obj", OBJ)
    visual = Visual("mesh", (1.0, 1.0, 1.0), np.eye(4), mesh="hand.obj", path=str(mesh))
    robot = torsor.build("arm", [Link("base\x01", 1.0, inertia=np.eye(3), visuals=(visual,))], [])
    (tmp_path / "out").mkdir()
    with refused(value="base\u0001", allowed="characters that XML allows"):
        robot.save(tmp_path / "out" / f"arm{suffix}")
    assert not list((tmp_path / "out").iterdir())


def test_convert_names_the_folder_of_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "arm" / "hand.obj", OBJ)
    arm(tmp_path / "arm", "hand.obj")
    (tmp_path / "out").mkdir()
    assert main(["convert", str(tmp_path / "arm" / "arm.urdf"), str(tmp_path / "out" / "new.urdf")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "out" / name) for name in ("new.urdf", "new_meshes")]
    assert main(["convert", "two_link", str(tmp_path / "out" / "new.urdf"), "--force"]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "out" / "new.urdf")]


def test_files_that_together_have_the_same_bytes_are_two_copies(tmp_path: Path) -> None:
    parts = [OBJ + b"mtllib hand.mtl\n", b"newmtl red\nKd 1 0 0\n", b"newmtl blue\nKd 0 0 1\n"]
    for side, cut in (("left", 1), ("right", 2)):
        written(tmp_path / "robots" / side / "hand.obj", b"".join(parts[:cut]))
        written(tmp_path / "robots" / side / "hand.mtl", b"".join(parts[cut:]))
    (tmp_path / "out").mkdir()
    arm(tmp_path / "robots", "left/hand.obj", "right/hand.obj").save(tmp_path / "out" / "arm.urdf")
    visuals = torsor.load(tmp_path / "out" / "arm.urdf").links[0].visuals
    assert len({Path(visual.path or "").read_bytes() for visual in visuals}) == 2


@pytest.mark.parametrize("name", [b"\0.mtl", b"a" * 300 + b".mtl", b"../../secret.mtl"])
def test_materials_with_impossible_names_are_not_looked_for(tmp_path: Path, name: bytes) -> None:
    written(tmp_path / "secret.mtl", b"newmtl secret\n")
    written(tmp_path / "robots" / "arm" / "hand.obj", b"mtllib " + name + b"\n" + OBJ)
    (tmp_path / "out").mkdir()
    arm(tmp_path / "robots" / "arm", "hand.obj").save(tmp_path / "out" / "arm.urdf")
    (copy,) = (tmp_path / "out" / "arm_meshes").iterdir()
    assert copy.is_file()


def test_a_mesh_beside_a_file_in_a_linked_folder_has_its_own_name(tmp_path: Path) -> None:
    written(tmp_path / "real" / "deep" / "hand.obj", OBJ)
    arm(tmp_path / "real" / "deep", "hand.obj")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    torsor.load(tmp_path / "link" / "arm.urdf").save(tmp_path / "link" / "copy.urdf")
    assert '"hand.obj"' in (tmp_path / "link" / "copy.urdf").read_text()


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    written(tmp_path / "arm" / "hand.obj", OBJ)
    robot = arm(tmp_path / "arm", "hand.obj")
    (tmp_path / "out").mkdir()
    robot.save(tmp_path / "out" / "arm.urdf")
    (copy,) = (tmp_path / "out" / "arm_meshes").iterdir()
    other = written(tmp_path / "other.obj", b"mine")
    copy.unlink()
    copy.symlink_to(other)
    with refused(what="has the name of the folder for mesh copies"):
        robot.save(tmp_path / "out" / "arm.urdf")
    assert other.read_bytes() == b"mine"


def test_copies_do_not_depend_on_folders_that_this_machine_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "arm" / "hand.obj", OBJ)
    robot = arm(tmp_path / "arm", "hand.obj")
    monkeypatch.setenv("TORSOR_MESHES", str(tmp_path))
    (tmp_path / "out").mkdir()
    robot.save(tmp_path / "out" / "arm.urdf")
    assert (tmp_path / "out" / "arm_meshes").is_dir()
    with warned(what="meshes outside its folder, which Torsor does not read: hand.obj"):
        robot.save(tmp_path / "out" / "arm.toml")
