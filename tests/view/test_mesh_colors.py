"""Meshes have the colours of their files unless the description sets others; no texture is opened."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.formats.meshes.mesh_files import read_mesh, read_painted
from torsor.view.scene import Scene

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed (extra: view)")

CORNERS = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
RED, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)


def colors(path: Path) -> list[tuple[float, ...] | None]:
    return sorted((each.color for each in read_painted(path)), key=str)


def robot(folder: Path, material: str = "") -> torsor.Robot:
    visual = f'<visual><geometry><mesh filename="part.obj"/></geometry>{material}</visual>'
    (folder / "robot.urdf").write_text(f'<robot name="r"><link name="base">{visual}</link></robot>', encoding="utf-8")
    return torsor.load(folder / "robot.urdf")


def test_faces_of_an_obj_file_have_the_colours_of_its_materials(tmp_path: Path) -> None:
    (tmp_path / "part.mtl").write_text("newmtl warm\nKd 1 0 0\nnewmtl cold\nKd 0 0 1\n", encoding="utf-8")
    text = f"mtllib part.mtl\n{CORNERS}usemtl warm\nf 1 2 3\nusemtl cold\nf 1 2 4\n"
    (tmp_path / "part.obj").write_text(text, encoding="utf-8")
    assert colors(tmp_path / "part.obj") == [BLUE, RED]
    assert len(read_mesh(tmp_path / "part.obj").faces) == 2
    shown = {each.color for each in Scene.of(robot(tmp_path)).shown}
    assert shown == {RED, BLUE}
    green = '<material name="own"><color rgba="0 1 0 1"/></material>'
    assert [each.color for each in Scene.of(robot(tmp_path, green)).shown] == [(0.0, 1.0, 0.0, 1.0)]


def test_vertices_give_faces_their_mean_colour_and_many_shades_become_few_parts(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0 1 0 0\nv 1 0 0 1 0 0\nv 0 1 0 0 0 1\nf 1 2 3\n", encoding="utf-8")
    assert np.allclose(colors(tmp_path / "a.obj")[0], (2 / 3, 0, 1 / 3, 1), atol=0.01)
    ball = trimesh.creation.icosphere(subdivisions=3)
    shades = np.column_stack([(ball.vertices + 1) * 127, np.full(len(ball.vertices), 255)]).astype(np.uint8)
    ball.visual.vertex_colors = shades
    ball.export(tmp_path / "ball.ply")
    parts = read_painted(tmp_path / "ball.ply")
    assert 4 <= len(parts) <= 24
    assert sum(len(each.surface.faces) for each in parts) == len(ball.faces)


@pytest.mark.parametrize("kind", ["dae", "glb"])
def test_materials_inside_of_a_file_give_the_colour(kind: str, tmp_path: Path) -> None:
    box = trimesh.creation.box()
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[51, 102, 204, 255])
    box.visual = trimesh.visual.TextureVisuals(material=material)
    box.export(tmp_path / f"box.{kind}")
    assert np.allclose(colors(tmp_path / f"box.{kind}"), [(0.2, 0.4, 0.8, 1.0)], atol=1e-6)


def test_materials_elsewhere_and_textures_are_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "meshes"
    folder.mkdir()
    (tmp_path / "outside.mtl").write_text("newmtl warm\nKd 1 0 0\n", encoding="utf-8")
    (folder / "link.mtl").symlink_to(tmp_path / "outside.mtl")
    for name in ("../outside.mtl", str(tmp_path / "outside.mtl"), "link.mtl", "missing.mtl"):
        text = f"mtllib {name}\n{CORNERS}usemtl warm\nf 1 2 3\n"
        path = folder / f"{abs(hash(name))}.obj"
        path.write_text(text, encoding="utf-8")
        assert colors(path) == [None]
    (folder / "own.mtl").write_text("newmtl warm\nKd 1 0 0\nmap_Kd wood.png\n", encoding="utf-8")
    (folder / "wood.png").write_bytes(b"no picture")
    (folder / "own.obj").write_text(f"mtllib own.mtl\n{CORNERS}usemtl warm\nf 1 2 3\n", encoding="utf-8")
    assert colors(folder / "own.obj") == [RED]
