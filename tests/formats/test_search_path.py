"""package:// and model:// are resolved in given folders, in environment folders, and in the folder of the file."""

from pathlib import Path

import pytest

import torsor
from refusals import refused
from torsor.cli import main
from torsor.formats.meshes.mesh_files import SEARCH_VARIABLES, read_mesh

from .sdf_text import link, model

URDF = """<robot name="arm"><link name="base"><collision><geometry><mesh filename="{}"/></geometry></collision></link>
</robot>"""
SHAPE = "<collision name='c'><geometry><mesh><uri>{}</uri></mesh></geometry></collision>"
TRIANGLE = (
    "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"
)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SEARCH_VARIABLES, "TORSOR_MESHES"):
        monkeypatch.delenv(name, raising=False)


def mesh(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hand.stl").write_text(TRIANGLE)
    return folder / "hand.stl"


def described(tmp_path: Path, name: str, suffix: str) -> Path:
    file = tmp_path / "elsewhere" / f"arm{suffix}"
    file.parent.mkdir(exist_ok=True)
    text = URDF.format(name) if suffix == ".urdf" else model(link("base", more=SHAPE.format(name)))
    file.write_text(text)
    return file


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
@pytest.mark.parametrize("scheme", ["package://", "model://"])
def test_a_mesh_is_found_in_a_folder_that_is_given_and_may_be_read(tmp_path: Path, suffix: str, scheme: str) -> None:
    file, found = described(tmp_path, f"{scheme}hands/hand.stl", suffix), mesh(tmp_path / "ws" / "src" / "hands")
    assert torsor.load(file).base.shapes[0].path is None  # named, and not found
    for search in ([tmp_path / "ws" / "src"], str(found.parent), [tmp_path, found.parent]):
        shape = torsor.load(file, search=search).base.shapes[0]  # type: ignore[arg-type]
        assert shape.path == str(found)
        pytest.importorskip("trimesh")
        assert len(read_mesh(shape.path, shape.folders).faces) == 1


def test_a_third_slash_before_the_package_is_ignored(tmp_path: Path) -> None:
    found = mesh(tmp_path / "ws" / "hands")
    file = described(tmp_path, "package:///hands/hand.stl", ".urdf")
    assert torsor.load(file, search=[tmp_path / "ws"]).base.shapes[0].path == str(found)


@pytest.mark.parametrize("variable", SEARCH_VARIABLES)
def test_a_mesh_is_found_in_the_folders_of_the_environment(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = "ws/share" if variable == "AMENT_PREFIX_PATH" else "ws"
    found, file = mesh(tmp_path / inside / "hands"), described(tmp_path, "package://hands/hand.stl", ".urdf")
    monkeypatch.setenv(variable, str(tmp_path / "ws"))
    shape = torsor.load(file).base.shapes[0]
    assert shape.path == str(found)
    pytest.importorskip("trimesh")
    assert len(read_mesh(shape.path, shape.folders).faces) == 1


def test_what_is_given_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh(tmp_path / "old" / "hands")
    new = mesh(tmp_path / "new" / "hands")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "old"))
    file = described(tmp_path, "package://hands/hand.stl", ".urdf")
    assert torsor.load(file, search=[tmp_path / "new"]).base.shapes[0].path == str(new)


def test_a_name_that_leads_out_of_its_package_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    mesh(tmp_path / "secret")
    (tmp_path / "ws" / "hands").mkdir(parents=True)
    file = described(tmp_path, "package://hands/../../secret/hand.stl", ".urdf")
    shape = torsor.load(file, search=[tmp_path / "ws"]).base.shapes[0]
    with refused(what="outside the folder of the description"):
        read_mesh(shape.path or "", shape.folders)
    for name in ("package://../secret/hand.stl", "package://./../secret/hand.stl", "package:///../secret/hand.stl"):
        shape = torsor.load(described(tmp_path, name, ".urdf"), search=[tmp_path / "ws"]).base.shapes[0]
        assert shape.path is None


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    file = described(tmp_path, "hand.stl", ".urdf")
    with refused(allowed="folders that exist"):
        torsor.load(file, search=[tmp_path / "nowhere"])


def test_the_command_line_names_missing_meshes_and_takes_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = described(tmp_path, "model://hands/hand.stl", ".sdf")
    mesh(tmp_path / "ws" / "hands")
    assert main(["info", str(file)]) == 0
    assert "--search FOLDER" in (said := capsys.readouterr().out) and "model://hands/hand.stl" in said
    assert main(["info", str(file), "--search", str(tmp_path / "ws")]) == 0
    assert "not found" not in capsys.readouterr().out


PACKAGE = "<package format='3'><name>hands</name><version>1.0.0</version></package>"


def test_a_clone_is_found_by_the_name_in_its_package_file(tmp_path: Path) -> None:
    """The folder of a clone often has another name than its ROS package."""
    clone = tmp_path / "ROS2_Hands_Description"
    found = mesh(clone / "meshes")
    (clone / "package.xml").write_text(PACKAGE)
    (clone / "urdf").mkdir()
    file = clone / "urdf" / "arm.urdf"
    file.write_text(URDF.format("package://hands/meshes/hand.stl"))
    shape = torsor.load(file).base.shapes[0]
    assert shape.path == str(found) and str(clone) in (shape.folders or ())
    beside = described(tmp_path, "package://hands/meshes/hand.stl", ".urdf")  # in a folder next to the clone
    (beside.parent / "package.xml").write_text(PACKAGE.replace("hands", "arms"))
    assert torsor.load(beside).base.shapes[0].path == str(found)


@pytest.mark.parametrize("search", [".", "..", "../..", "../../.."])
def test_packages_are_found_by_name_below_a_folder_that_is_given(tmp_path: Path, search: str) -> None:
    clone = tmp_path / "ws" / "src" / "repository" / "clone"
    found = mesh(clone / "meshes")
    (clone / "package.xml").write_text(PACKAGE)
    file = described(tmp_path, "package://hands/meshes/hand.stl", ".urdf")
    assert torsor.load(file).base.shapes[0].path is None
    assert torsor.load(file, search=[(clone / search).resolve()]).base.shapes[0].path == str(found)


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    found = mesh(tmp_path / "ws" / "clone")
    (found.parent / "package.xml").write_text("<package><name>hands</name></package>")
    (tmp_path / "ws" / "back").symlink_to(tmp_path / "ws")
    file = described(tmp_path, "package://hands/hand.stl", ".urdf")
    assert torsor.load(file, search=[tmp_path / "ws"]).base.shapes[0].path == str(found)


def test_a_package_file_that_is_not_xml_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "package.xml").write_text("<package")
    file = described(tmp_path, "package://hands/hand.stl", ".urdf")
    assert torsor.load(file).base.shapes[0].path is None


def test_a_mesh_without_scheme_is_next_to_the_file_or_on_the_search_path(tmp_path: Path) -> None:
    file, found = described(tmp_path, "hands/hand.stl", ".urdf"), mesh(tmp_path / "models" / "hands")
    assert torsor.load(file, search=[tmp_path / "models"]).base.shapes[0].path == str(found)
    near = mesh(file.parent / "hands")
    assert torsor.load(file, search=[tmp_path / "models"]).base.shapes[0].path == str(near)
