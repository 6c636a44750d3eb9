"""Meshes that MuJoCo cannot read are written as .obj copies or as a note: MuJoCo loads the file, and all read back."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.shape_copies import lost_shapes
from refusals import refused, warned
from torsor import Frame, Shape, library
from torsor.formats.meshes.mesh_files import read_mesh
from torsor.formats.meshes.triangles import Triangles, box
from torsor.mechanism import Link, Visual
from torsor.spatial import from_rpy, make_pose

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("collada")

POSE = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])
# Two pyramids, one of each colour, with their apexes at (0, 0, 1) and (3, 0, 1).
EFFECT = """<effect id="e{k}"><profile_COMMON><technique sid="c"><lambert><diffuse><color>{rgba}</color></diffuse>
</lambert></technique></profile_COMMON></effect>"""
GEOMETRY = """<geometry id="g{k}"><mesh><source id="p{k}"><float_array id="a{k}" count="12">{corners}</float_array>
<technique_common><accessor source="#a{k}" count="4" stride="3"><param name="X" type="float"/><param name="Y"
type="float"/><param name="Z" type="float"/></accessor></technique_common></source><vertices id="v{k}"><input
semantic="POSITION" source="#p{k}"/></vertices><triangles count="4" material="s"><input semantic="VERTEX"
source="#v{k}" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry>"""
NODE = """<node id="n{k}"><instance_geometry url="#g{k}"><bind_material><technique_common><instance_material symbol="s"
target="#m{k}"/></technique_common></bind_material></instance_geometry></node>"""


def dae(width: float = 1.0, height: float = 1.0) -> str:
    """Return COLLADA of two pyramids of two colours."""
    rgba = {0: "1 0 0 1", 1: "0 0 1 1"}
    corners = {k: f"{x} 0 0 {x + width} 0 0 {x} 1 0 {x} 0 {height}" for k, x in enumerate((0, 3))}
    each = {
        "effects": "".join(EFFECT.format(k=k, rgba=rgba[k]) for k in (0, 1)),
        "materials": "".join(f'<material id="m{k}"><instance_effect url="#e{k}"/></material>' for k in (0, 1)),
        "geometries": "".join(GEOMETRY.format(k=k, corners=corners[k]) for k in (0, 1)),
        "visual_scenes": f'<visual_scene id="all">{"".join(NODE.format(k=k) for k in (0, 1))}</visual_scene>',
    }
    libraries = "".join(f"<library_{name}>{text}</library_{name}>" for name, text in each.items())
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
      <asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>{libraries}
      <scene><instance_visual_scene url="#all"/></scene></COLLADA>"""


def mesh(kind: type[Visual] | type[Shape], path: Path, **settings: object) -> Visual | Shape:
    path.parent.mkdir(exist_ok=True, parents=True)
    if not path.exists():
        path.write_text(dae())
    return kind("mesh", (0.1, -0.2, 0.3), POSE, mesh=path.name, path=str(path), **settings)  # type: ignore[arg-type]


def block(*given: Visual | Shape) -> torsor.Robot:
    visuals = tuple(each for each in given if isinstance(each, Visual))
    shapes = tuple(each for each in given if isinstance(each, Shape))
    return torsor.build("block", [Link("ground", visuals=visuals, shapes=shapes)], [])


def surfaces(path: Path) -> Iterator[tuple[Triangles, list[float]]]:
    """Yield the surface of each geom that is a mesh, as MuJoCo places it in the world, and its colour."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for g in range(model.ngeom):
        k = model.geom_dataid[g]
        vertices = model.mesh_vert[model.mesh_vertadr[k] :][: model.mesh_vertnum[k]].astype(float)
        faces = model.mesh_face[model.mesh_faceadr[k] :][: model.mesh_facenum[k]].astype(int)
        pose = make_pose(data.geom_xmat[g].reshape(3, 3), data.geom_xpos[g])
        yield Triangles(vertices, faces).at(pose), model.geom_rgba[g].tolist()


def test_mujoco_shows_a_dae_in_its_colours_where_the_urdf_has_it(tmp_path: Path) -> None:
    given = mesh(Visual, tmp_path / "hand.dae"), mesh(Shape, tmp_path / "hand.dae")
    robot = block(*given)
    robot.save(tmp_path / "block.xml")
    red, blue, hull = surfaces(tmp_path / "block.xml")
    assert red[1] == [1, 0, 0, 1] and blue[1] == [0, 0, 1, 1]
    ours = read_mesh(tmp_path / "hand.dae").scaled((0.1, -0.2, 0.3)).at(POSE)
    for theirs in (np.vstack([red[0].vertices, blue[0].vertices]), hull[0].vertices):
        np.testing.assert_allclose([theirs.min(0), theirs.max(0)], [ours.vertices.min(0), ours.vertices.max(0)], 1e-6)
    assert red[0].area + blue[0].area == pytest.approx(ours.area, rel=1e-6)
    again = torsor.load(tmp_path / "block.xml")
    assert not lost_shapes(robot, again)
    assert [visual.color for visual in again.base.visuals] == [(1, 0, 0, 1), (0, 0, 1, 1)]
    np.testing.assert_allclose(again.base.shapes[0].pose, POSE, rtol=0, atol=1e-15)
    again.save(tmp_path / "again.urdf")  # with the copies
    assert not lost_shapes(again, torsor.load(tmp_path / "again.urdf"))


OBJ = """mtllib hand.mtl
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1
usemtl red\nf 1 3 2\nf 1 2 4\nusemtl blue\nf 1 4 3\nf 2 3 4\n"""


def test_mujoco_shows_an_obj_in_the_colours_of_its_materials(tmp_path: Path) -> None:
    (tmp_path / "hand.obj").write_text(OBJ)
    (tmp_path / "hand.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    path = tmp_path / "hand.obj"
    robot = block(mesh(Visual, path), mesh(Visual, path, color=(0.1, 0.2, 0.3, 0.5)), mesh(Shape, path))
    robot.save(tmp_path / "block.xml")
    one, other, own, _ = (color for _, color in surfaces(tmp_path / "block.xml"))
    assert sorted([one, other]) == [[0, 0, 1, 1], [1, 0, 0, 1]]
    np.testing.assert_allclose(own, [0.1, 0.2, 0.3, 0.5], rtol=1e-6)
    text = (tmp_path / "block.xml").read_text()
    assert text.count('file="hand.obj"') == 1 and text.count('file="block_meshes/') == 2
    assert not lost_shapes(robot, torsor.load(tmp_path / "block.xml"))


def test_colours_come_back_and_no_colour_stays_none(tmp_path: Path) -> None:
    ball, hand = Visual("sphere", (0.1,)), mesh(Visual, tmp_path / "hand.dae", color=(0.1, 0.2, 0.3, 0.4))
    visuals = ball, replace(ball, color=(0.9, 0.8, 0.7)), replace(ball, color=(0.3, 0.2, 0.1, 0.0)), hand
    robot = block(*visuals)
    robot.save(tmp_path / "block.xml")
    again = torsor.load(tmp_path / "block.xml")
    colors = [visual.color for visual in again.base.visuals]
    assert colors == [None, (0.9, 0.8, 0.7, 1.0), (0.3, 0.2, 0.1, 0.0), (0.1, 0.2, 0.3, 0.4)]
    assert not lost_shapes(robot, again)


LOST = {
    "missing": (None, "meshes that are not found, which MuJoCo does not read; a note for Torsor keeps them"),
    "broken": ("<COLLADA><mesh", "cannot be converted to .obj"),
    "flat": (dae(height=0.0), "hand.dae': its convex hull is flat"),
    "empty": ("", "hand.dae': it cannot be read"),
    "entities": ('<!DOCTYPE x [<!ENTITY a "b">]>' + dae(), "hand.dae': it has a document type"),
}


@pytest.mark.parametrize("why", LOST)
def test_what_cannot_be_converted_comes_back_and_mujoco_loads_the_rest(tmp_path: Path, why: str) -> None:
    text, about = LOST[why]
    if text is not None:
        (tmp_path / "hand.dae").write_text(text)
    path = str(tmp_path / "hand.dae") if text is not None else None
    name = "hand.dae" if text is not None else "package://nowhere/hand.dae"
    shape = Shape("mesh", (1, 2, -3), POSE, "palm", name, path, contype=2, conaffinity=5, friction=0.2)
    visual = Visual("mesh", (1, 2, 3), POSE, (0.1, 0.2, 0.3, 1.0), name, path, "skin")
    robot = block(shape, Shape("sphere", (0.1,)), *(() if why == "flat" else (visual,)))
    with warned(about) as caught:
        robot.save(tmp_path / "block.xml")
    assert len(caught) == 1
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "block.xml")).ngeom == 1
    again = torsor.load(tmp_path / "block.xml")
    assert set(map(repr, again.base.shapes)) == set(map(repr, robot.base.shapes))
    assert repr(again.base.visuals) == repr(robot.base.visuals)


def test_a_mesh_outside_of_the_folders_of_its_description_is_not_read(tmp_path: Path) -> None:
    secret = mesh(Visual, tmp_path / "secret" / "hand.dae", folders=(str(tmp_path / "robot"),))
    (tmp_path / "out").mkdir()
    with warned(what="outside the folder of the description"):
        block(secret).save(tmp_path / "out" / "block.xml")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["block.xml"]


def test_meshes_of_one_name_robots_of_one_folder_and_read_only_files_do_not_disturb_each_other(tmp_path: Path) -> None:
    first = mesh(Visual, tmp_path / "one" / "my hand.dae")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "my hand.dae").write_text(dae(width=2.0))
    second = mesh(Visual, tmp_path / "two" / "my hand.dae")
    for file in tmp_path.glob("*/*.dae"):
        file.chmod(0o444)
    robots = {"a": block(first, second), "b": block(second)}
    for _ in range(2):
        for name, robot in robots.items():
            robot.save(tmp_path / f"{name}.xml")
    copies = sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.glob("*/*.obj"))
    assert [re.sub("-.*", "", copy) for copy in copies] == ["a_meshes/my hand"] * 4 + ["b_meshes/my hand"] * 2
    for name, robot in robots.items():
        assert len(list(surfaces(tmp_path / f"{name}.xml"))) == 2 * len(robot.base.visuals)
        assert not lost_shapes(robot, torsor.load(tmp_path / f"{name}.xml"))
    (tmp_path / "c_meshes").write_text("a file")
    with refused(where="c_meshes", what="has the name of the folder for mesh copies"):
        robots["b"].save(tmp_path / "c.xml")
    assert not (tmp_path / "c.xml").exists()


def test_text_stl_is_converted_since_mujoco_reads_binary_files_only(tmp_path: Path) -> None:
    solid = box([0.1, 0.2, 0.3])
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in solid.vertices[face])
        + "endloop\nendfacet\n"
        for face in solid.faces
    )
    (tmp_path / "box.stl").write_text(f"solid box\n{facets}endsolid box\n")
    block(mesh(Shape, tmp_path / "box.stl")).save(tmp_path / "block.xml")
    ((found, _),) = surfaces(tmp_path / "block.xml")
    assert found.area == pytest.approx(solid.scaled((0.1, -0.2, 0.3)).area, rel=1e-6)


def test_base_links_and_frames_come_back_under_their_names(tmp_path: Path) -> None:
    arm = library.seven_axis_arm().with_frame("camera", "link3", POSE)
    arm = arm.with_frame("foot", arm.base.name, POSE)
    arm.save(tmp_path / "arm.xml")
    again = torsor.load(tmp_path / "arm.xml")
    assert arm.base.name != "world" and again.base.name == arm.base.name
    assert again.link_names == arm.link_names and again.places.keys() == arm.places.keys()
    assert {(each.name, each.link) for each in again.frames} == {(each.name, each.link) for each in arm.frames}
    floating = torsor.load(tmp_path / "arm.xml", base="floating")
    assert floating.base.name == "world" and floating.nv == arm.nv + 6
    floor = '<mujoco><include file="arm.xml"/><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>'
    (tmp_path / "scene.xml").write_text(floor)  # with more in the world, the world is the base
    scene = torsor.load(tmp_path / "scene.xml")
    assert scene.base.name == "world" and Frame(arm.base.name, "world") in scene.frames


@pytest.mark.parametrize("data", ["no JSON", "[1]", '{"meshes": 3}', '{"meshes": [{"mesh": "a.dae"}]}', "[" * 10000])
def test_a_note_of_somebody_else_is_ignored_with_a_warning(tmp_path: Path, data: str) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(f"<mujoco><custom><text name='torsor' data='{data}'/></custom></mujoco>")
    with warned(where="arm.xml", what="<text name='torsor'> cannot be read"):
        assert torsor.load(path).base.name == "world"


def test_a_note_of_a_body_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    note = json.dumps({"base": "gone", "meshes": []})
    (tmp_path / "arm.xml").write_text(f"<mujoco><custom><text name='torsor' data='{note}'/></custom></mujoco>")
    assert torsor.load(tmp_path / "arm.xml").base.name == "world"


@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf", ".toml"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, suffix: str) -> None:
    with refused(where="aaa...", what="its name is too long"):
        library.two_link().save(tmp_path / f"{'a' * 300}{suffix}")
