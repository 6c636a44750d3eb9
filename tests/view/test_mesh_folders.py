"""An untrusted robot file cannot make the viewer read a file outside its own folders."""

import struct
from pathlib import Path

import pytest

import torsor
from refusals import refused, warned
from torsor.formats.meshes.mesh_files import read_mesh
from torsor.view.scene import Scene

URDF = """<robot name="arm"><link name="base"/><link name="hand">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="hand"/></joint></robot>"""
TOML = """torsor = 1
units.angle = "rad"
[[links]]
name = "base"
visuals = [{{ shape = "mesh", mesh = "x.stl", path = "{}" }}]
"""


def stl(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    triangle = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
    path.write_bytes(bytes(80) + struct.pack("<I", 1) + triangle)
    return path


def urdf(folder: Path, mesh: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "arm.urdf"
    file.write_text(URDF.format(mesh))
    return file


def drawn(file: Path) -> set[str]:
    pytest.importorskip("trimesh")
    return {each.kind for each in Scene.of(torsor.load(file)).shown if each.link == 0}


def test_meshes_beside_a_description_and_in_its_package_are_drawn(tmp_path: Path) -> None:
    stl(tmp_path / "alone" / "hand.stl")
    assert drawn(urdf(tmp_path / "alone", "hand.stl")) == {"visual"}
    stl(tmp_path / "arm_description" / "meshes" / "hand.stl")
    for name in ("../meshes/hand.stl", "package://arm_description/meshes/hand.stl"):
        assert drawn(urdf(tmp_path / "arm_description" / "urdf", name)) == {"visual"}
    stl(tmp_path / "hands" / "hand.stl")
    (tmp_path / "hands" / "package.xml").write_text("<package/>")
    assert drawn(urdf(tmp_path / "arm_description" / "urdf", "package://hands/hand.stl")) == {"visual"}


@pytest.mark.parametrize("kind", ["../../secret/hand.stl", "file://{}", "{}", "package://secret/hand.stl", "link"])
def test_a_mesh_elsewhere_is_left_out_with_a_warning(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, folder = stl(tmp_path / "secret" / "hand.stl"), tmp_path / "a" / "download"
    folder.mkdir(parents=True)
    if kind == "link":
        (folder / "linked.stl").symlink_to(secret)
    file = urdf(folder, "linked.stl" if kind == "link" else kind.format(secret))
    with warned(what="outside the folder"):
        scene = Scene.of(torsor.load(file))
    assert "visual" not in {each.kind for each in scene.shown}
    monkeypatch.setenv("TORSOR_MESHES", str(secret.parent))
    assert drawn(file) == {"visual"}


def test_a_toml_file_cannot_name_any_mesh(tmp_path: Path) -> None:
    secret = stl(tmp_path / "secret" / "hand.stl")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "robot.toml").write_text(TOML.format(secret))
    with warned(what="outside"):
        Scene.of(torsor.load(tmp_path / "own" / "robot.toml"))


def test_devices_other_files_and_huge_ones_are_refused(tmp_path: Path) -> None:
    for path in ("/dev/zero", "/etc/passwd", str(tmp_path)):
        with refused(value="", allowed=".stl"):
            read_mesh(path)
    (tmp_path / "zero.stl").symlink_to("/dev/zero")
    with refused(what="no such file"):
        read_mesh(tmp_path / "zero.stl")
    with (tmp_path / "huge.stl").open("wb") as file:
        file.truncate(10 * 2**30)  # of no blocks on the disk
    with refused(allowed="MiB"):
        read_mesh(tmp_path / "huge.stl")


def test_what_a_mesh_names_is_not_opened(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    (tmp_path / "a.obj").write_text("mtllib /dev/zero\nusemtl x\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert len(read_mesh(tmp_path / "a.obj").faces) == 1
    (tmp_path / "bomb.dae").write_text('<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><COLLADA>&b;</COLLADA>')
    with refused(what="document type"):
        read_mesh(tmp_path / "bomb.dae")
    (tmp_path / "wrong.glb").write_bytes(b"glTF" + bytes(100))
    with refused(what="cannot be read"):
        read_mesh(tmp_path / "wrong.glb")
