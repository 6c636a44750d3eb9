"""Skeletons compared with OpenSim itself: its numbers are in osim/references.json (benchmarks/osim_reference.py)."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelWarning, Robot
from torsor.formats.meshes.mesh_files import read_mesh

from .written import assert_equal

FOLDER = Path(__file__).parent / "osim"
REFERENCES = json.loads((FOLDER / "references.json").read_text())["files"]


@pytest.fixture(scope="module", params=sorted(REFERENCES))
def compared(request: pytest.FixtureRequest) -> tuple[Robot, dict[str, Any], list[int]]:
    """Return a robot, OpenSim's numbers, and where each coordinate of the robot is among those of OpenSim."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of joints with the same name
        robot = torsor.load(FOLDER / request.param).to(device="casadi")
    reference = REFERENCES[request.param]
    assert sorted(robot.coordinate_names) == sorted(reference["coordinates"])
    return robot, reference, [reference["coordinates"].index(name) for name in robot.coordinate_names]


def test_masses_and_poses_are_those_of_opensim(compared: tuple[Robot, dict[str, Any], list[int]]) -> None:
    robot, reference, order = compared
    assert sum(link.mass for link in robot.links) == pytest.approx(reference["mass"], rel=1e-14)
    state = reference["states"][0]
    for body, pose in state["poses"].items():
        assert_equal(robot.pose(np.array(state["q"])[order], body), np.array(pose), 1e-13)


def test_dynamics_is_that_of_opensim(compared: tuple[Robot, dict[str, Any], list[int]]) -> None:
    """Its couplers and locks are constraints there; accelerations that they leave free need no forces here."""
    robot, reference, order = compared
    for state in reference["states"]:
        q, v, a, tau, free = (
            np.array(state[key])[order] for key in ("q", "v", "a", "inverse_dynamics", "forward_dynamics")
        )
        assert_equal(robot.mass_matrix(q), np.array(state["mass_matrix"])[np.ix_(order, order)], 1e-12)
        assert_equal(robot.inverse_dynamics(q, v, a), tau, 1e-12)
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, free), 0.0, atol=1e-11 * np.abs(tau).max())


def test_surfaces_of_bodies_are_visuals_at_the_places_of_their_frames() -> None:
    robot = torsor.load(FOLDER / "joints.osim")
    visuals = [visual for link in robot.links for visual in link.visuals]
    mesh, box, ball, tube = (visual for visual in visuals if visual.shape != "ellipsoid")
    assert [(each.name, each.size) for each in visuals if each.shape == "ellipsoid"] == [("egg", (0.03, 0.05, 0.04))]
    assert (mesh.mesh, mesh.size, mesh.color) == ("block.vtp", (1.1, 0.9, 1.0), (0.2, 0.4, 0.6, 0.5))
    assert (box.shape, box.size) == ("box", (0.1, 0.16, 0.06))
    assert (ball.shape, ball.size) == ("sphere", (0.03,))
    assert (tube.shape, tube.size) == ("cylinder", (0.02, 0.14))
    assert_equal(tube.pose[:3, 2], np.array([-1.0, 0.0, 0.0]))  # y of a frame that is turned about z
    assert_equal(tube.pose[:3, 3], np.array([0.1, 0.0, 0.0]))
    surface = read_mesh(mesh.path or "", mesh.folders)
    assert surface.faces.shape == (6, 3)
    sides = surface.vertices[surface.faces]
    assert np.linalg.det(sides).sum() / 6 == pytest.approx(2.0, rel=1e-12)  # of a pyramid: 2 * 2 * 1.5 / 3


def test_meshes_are_found_in_the_folder_geometry_and_in_folders_to_search(tmp_path: Path) -> None:
    text = (FOLDER / "functions.osim").read_text()
    (tmp_path / "model").mkdir()
    (tmp_path / "bones" / "Geometry").mkdir(parents=True)
    (tmp_path / "bones" / "Geometry" / "thigh.vtp").write_text((FOLDER / "block.vtp").read_text())
    path = tmp_path / "model" / "leg.osim"
    path.write_text(text)
    with warned(what="two joints are named 'cap'; the later one is now 'cap_0'"):
        robot = torsor.load(path, search=[tmp_path / "bones"])
    (visual,) = (visual for link in robot.links for visual in link.visuals)
    assert visual.size == (1.1, 1.2, 0.9)  # scales of the body and of its surface
    assert read_mesh(visual.path or "", visual.folders).faces.shape == (6, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('format="ascii">3 2', 'format="binary">3 2'), "Polys as binary; save it as ASCII"),
        (("3 2 1 0  0", "3 2 1 9  0"), "16 corners of 5 faces do not fit 5 points"),
        (("</VTKFile>", ""), "cannot be read: no element found"),
        (("<VTKFile", "<!DOCTYPE a><VTKFile"), "it has a document type"),
    ],
)
def test_wrong_files_of_polygons_are_errors_with_words(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    (tmp_path / "block.vtp").write_text((FOLDER / "block.vtp").read_text().replace(*change))
    with refused(message):
        read_mesh(tmp_path / "block.vtp")


def test_two_coordinates_of_one_name_are_an_error(tmp_path: Path) -> None:
    text = (FOLDER / "joints.osim").read_text().replace('Coordinate name="angle"', 'Coordinate name="sx"')
    (tmp_path / "joints.osim").write_text(text)
    with refused(argument="joints"):
        torsor.load(tmp_path / "joints.osim")
