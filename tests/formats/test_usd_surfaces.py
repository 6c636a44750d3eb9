"""Mesh surfaces in USD stages: surfaces from other programs are kept, and other programs can read ours."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import Robot
from torsor.formats.meshes.mesh_files import read_mesh, read_painted
from torsor.formats.meshes.triangles import box
from torsor.mechanism import Joint, Link, Shape, Visual, build

from .test_usd import body, joint, load

pxr = pytest.importorskip("pxr", reason='USD needs usd-core: pip install "torsor[usd]"')
from pxr import Usd, UsdGeom, UsdPhysics  # noqa: E402

CORNERS = [(x, y, z) for x in (0, 100) for y in (0, 200) for z in (0, 300)]
FACES = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
SETTINGS = "float3 xformOp:scale = (2, 1, 1)\nuniform token[] xformOpOrder = ['xformOp:scale']\n"


def mesh(inside: str = "", corners: object = CORNERS, apis: str = '"PhysicsCollisionAPI"') -> str:
    head = f'def Mesh "hull" (prepend apiSchemas = [{apis}]) {{\n point3f[] points = {corners}\n'
    return head + f"int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]\n int[] faceVertexIndices = {FACES}\n{inside}}}\n"


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    return float(np.linalg.det(vertices[faces]).sum() / 6)


def test_a_mesh_of_a_foreign_stage_is_kept_with_its_colour_and_scale(tmp_path: Path) -> None:
    """In centimetres, scaled along x: a box of 2, 2 and 3 m."""
    color = "color3f[] primvars:displayColor = [(0.5, 0.25, 1)]\n"
    robot = load(tmp_path, body("part", mesh(SETTINGS + color)), joint("Revolute", "-part"), m=0.01)
    (visual,), (shape,) = robot.links[0].visuals, robot.links[0].shapes
    assert visual.color == (0.5, 0.25, 1.0, 1.0)
    assert visual.mesh == shape.mesh == "stage.usda#/part/hull"
    for each in (visual, shape):
        surface = read_mesh(each.path or "", each.folders).scaled(each.size)
        np.testing.assert_allclose(np.ptp(surface.vertices, axis=0), [2, 2, 3], rtol=1e-12)
        assert volume(*surface) == pytest.approx(12.0, rel=1e-12)


def test_faces_of_other_hands_and_colours_of_faces_are_understood(tmp_path: Path) -> None:
    colors = ", ".join(["(1, 0, 0)"] * 2 + ["(0, 0, 1)"] * 4)
    inside = f'uniform token orientation = "leftHanded"\n color3f[] primvars:displayColor = [{colors}] (\n'
    inside += ' interpolation = "uniform"\n)\n'
    robot = load(tmp_path, body("part", mesh(inside)), joint("Revolute", "-part"), m=0.01)
    (visual,) = robot.links[0].visuals
    assert visual.color is None
    parts = {each.color: each.surface for each in read_painted(visual.path or "", visual.folders)}
    assert {color: len(surface.faces) for color, surface in parts.items()} == {(1, 0, 0, 1): 4, (0, 0, 1, 1): 8}
    assert sum(volume(*surface) for surface in parts.values()) == pytest.approx(-6e6, rel=1e-12)


def test_meshes_that_are_none_are_left_out_with_words(tmp_path: Path) -> None:
    with warned(what="with inconsistent points and faces (hull)"):
        robot = load(tmp_path, body("part", mesh(corners=CORNERS[:5])), joint("Revolute", "-part"))
    assert not robot.links[0].shapes
    with refused(what="no mesh at /part/hole"):
        read_mesh(f"{tmp_path / 'stage.usda'}#/part/hole")


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    """Return a hinge whose link has a mesh, mirrored, as visual and as collision shape."""
    surface, file = box([0.1, 0.2, 0.3]), tmp_path / "shell.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in surface.vertices]
    faces = ["f {} {} {}".format(*each) for each in surface.faces + 1]
    (tmp_path / "shell.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    file.write_text("\n".join(["mtllib shell.mtl", *lines, "usemtl red", *faces[:4], "usemtl blue", *faces[4:]]))
    given = {"size": (1.0, -2.0, 1.0), "mesh": "shell.obj", "path": str(file), "name": "shell"}
    visual, shape = Visual("mesh", **given), Shape("mesh", **given)  # type: ignore[arg-type]
    link = Link("arm", 1.0, np.array([0.1, 0, 0]), 0.01 * np.eye(3), (visual,), shapes=(shape,))
    return Robot.of(build("hinge", [Link("base"), link], [Joint("pin", "revolute", "base", "arm")]))


def test_other_programs_find_the_surface_of_a_mesh_and_we_its_file(robot: Robot, tmp_path: Path) -> None:
    robot.save(tmp_path / "hinge.usda")
    stage = Usd.Stage.Open(str(tmp_path / "hinge.usda"))
    visual, shape = (stage.GetPrimAtPath(f"/hinge/arm/{folder}/shell") for folder in ("visuals", "collisions"))
    for prim in (visual, shape):
        points = np.array(UsdGeom.Mesh(prim).GetPointsAttr().Get())
        corners = np.array(UsdGeom.Mesh(prim).GetFaceVertexIndicesAttr().Get()).reshape(-1, 3)
        assert volume(points.astype(float), corners) == pytest.approx(0.1 * 0.4 * 0.3, rel=1e-6)
        assert UsdGeom.Mesh(prim).GetSubdivisionSchemeAttr().Get() == "none"
    assert UsdPhysics.MeshCollisionAPI(shape).GetApproximationAttr().Get() == "convexHull"
    colors = UsdGeom.Mesh(visual).GetDisplayColorPrimvar()
    assert (colors.GetInterpolation(), {tuple(each) for each in colors.Get()}) == ("uniform", {(1, 0, 0), (0, 0, 1)})
    assert torsor.load(tmp_path / "hinge.usda") == robot


def test_meshes_of_packages_keep_their_names_where_these_are_found(robot: Robot, tmp_path: Path) -> None:
    (link,) = (link for link in robot.links if link.visuals)
    named = tuple(replace(each, mesh=f"package://{tmp_path.name}/shell.obj") for each in link.visuals)
    link = replace(link, visuals=named, shapes=())
    packaged = Robot.of(build("hinge", [Link("base"), link], [Joint("pin", "revolute", "base", "arm")]))
    packaged.save(tmp_path / "hinge.usda")
    assert torsor.load(tmp_path / "hinge.usda") == packaged


def test_without_its_file_a_mesh_is_the_surface_in_the_stage(robot: Robot, tmp_path: Path) -> None:
    robot.save(tmp_path / "hinge.usdc")
    before = read_mesh(tmp_path / "shell.obj").scaled((1.0, -2.0, 1.0))
    (tmp_path / "shell.obj").unlink()
    (visual,) = torsor.load(tmp_path / "hinge.usdc").links[-1].visuals
    parts = read_painted(visual.path or "", visual.folders)
    assert {each.color for each in parts} == {(1, 0, 0, 1), (0, 0, 1, 1)}
    after = read_mesh(visual.path or "", visual.folders).scaled(visual.size)
    assert volume(*after) == pytest.approx(volume(*before), rel=1e-6)


def test_a_mesh_in_a_stage_goes_into_another_stage(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    robot = load(tmp_path, body("part", mesh(SETTINGS)), joint("Revolute", "-part"), m=0.01)
    robot.save(tmp_path / "copies" / "copy.usda")
    copy = torsor.load(tmp_path / "copies" / "copy.usda", search=[tmp_path])
    (shape,) = copy.links[-1].shapes
    assert shape.mesh == "../stage.usda#/part/hull"
    (tmp_path / "stage.usda").unlink()
    (shape,) = torsor.load(tmp_path / "copies" / "copy.usda").links[-1].shapes
    surface = read_mesh(shape.path or "", shape.folders).scaled(shape.size)
    assert volume(*surface) == pytest.approx(12.0, rel=1e-6)


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml", ".toml"])
def test_other_descriptions_have_copies_of_the_surface_or_name_it(suffix: str, tmp_path: Path) -> None:
    """TOML names the surface in the stage; formats that others read get an .obj file, which needs no stage."""
    robot = load(tmp_path, body("part", mesh()), joint("Revolute", "-part"))
    robot.save(tmp_path / f"robot{suffix}")
    if suffix != ".toml":
        (tmp_path / "stage.usda").unlink()
    (shape,) = torsor.load(tmp_path / f"robot{suffix}").links[-1].shapes
    assert Path(shape.path or "").suffix == (".obj" if suffix != ".toml" else "")
    assert volume(*read_mesh(shape.path or "", shape.folders)) == pytest.approx(6e6, rel=1e-7)


def test_meshes_that_cannot_be_read_are_named_in_the_warning(robot: Robot, tmp_path: Path) -> None:
    (tmp_path / "shell.stl").write_text("no mesh")
    (link,) = (link for link in robot.links if link.visuals)
    broken = replace(link, visuals=(replace(link.visuals[0], path=str(tmp_path / "shell.stl")),), shapes=())
    again = Robot.of(build("hinge", [Link("base"), broken], [Joint("pin", "revolute", "base", "arm")]))
    with warned(what="cannot be read, and are only named (shell.stl: mesh"):
        again.save(tmp_path / "hinge.usda")


def test_references_are_found_in_folders_to_search(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "own").mkdir()
    load(tmp_path / "assets", body("part", mesh()), joint("Revolute", "-part"))
    text = "#usda 1.0\n(\n subLayers = [@stage.usda@]\n)\n"
    (tmp_path / "own" / "robot.usda").write_text(text)
    with refused(value="stage.usda", fix="search="):
        torsor.load(tmp_path / "own" / "robot.usda")
    robot = torsor.load(tmp_path / "own" / "robot.usda", search=[tmp_path / "assets"])
    (shape,) = robot.links[0].shapes
    assert volume(*read_mesh(shape.path or "", shape.folders)) == pytest.approx(6e6, rel=1e-12)
