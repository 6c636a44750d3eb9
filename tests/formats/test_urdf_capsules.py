"""A capsule is a cylinder and two spheres in URDF, for every reader, and a capsule again here."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.shape_copies import lost_shapes
from torsor import Shape
from torsor.mechanism import Joint, Link, Visual
from torsor.spatial import from_rpy, make_pose

POSE = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])


def arm() -> torsor.Robot:
    """An arm with capsules, named and not, among other shapes."""
    capsule = Shape("capsule", (0.04, 0.5), POSE)
    shapes = capsule, Shape("sphere", (0.1,)), replace(capsule, name="fore/arm"), replace(capsule, size=(0.1, 0.2))
    visuals = Visual("capsule", (0.04, 0.5), POSE, (0.1, 0.2, 0.3, 1.0)), Visual("capsule", (0.1, 0.5), name="skin")
    link = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]), visuals, shapes=shapes)
    return torsor.build("arm", [Link("ground"), link], [Joint("pin", "continuous", "ground", "arm")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    arm().save(tmp_path / "arm.urdf")
    return tmp_path / "arm.urdf"


def test_capsules_come_back_with_their_names(path: Path) -> None:
    robot, again = arm(), torsor.load(path)
    assert [(each.shape, each.name) for each in again.links[0].shapes] == [
        ("capsule", ""),
        ("sphere", ""),
        ("capsule", "fore/arm"),
        ("capsule", ""),
    ]
    assert [(each.shape, each.name) for each in again.links[0].visuals] == [("capsule", ""), ("capsule", "skin")]
    assert not lost_shapes(robot, again)
    again.save(path.with_name("again.urdf"))
    assert path.with_name("again.urdf").read_text() == path.read_text()


def test_shapes_go_from_mjcf_to_urdf_and_back(path: Path) -> None:
    pytest.importorskip("mujoco")
    robot = arm()
    robot.save(path.with_suffix(".xml"))
    torsor.load(path.with_suffix(".xml")).save(path)
    torsor.load(path).save(path.with_suffix(".xml"))
    assert not lost_shapes(robot, torsor.load(path.with_suffix(".xml")))


def test_pinocchio_and_mujoco_have_the_three_parts_of_a_capsule(path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    mujoco = pytest.importorskip("mujoco")
    model = pin.buildModelFromUrdf(str(path))
    geometry = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION)
    assert [type(each.geometry).__name__ for each in geometry.geometryObjects].count("Sphere") == 7
    ends = [each.placement.translation for each in geometry.geometryObjects[1:3]]
    np.testing.assert_allclose(ends, [(POSE @ [0, 0, side, 1])[:3] for side in (-0.25, 0.25)], atol=1e-12)
    assert mujoco.MjModel.from_xml_path(str(path)).ngeom == 10


def test_parts_that_are_no_capsule_any_more_stay_three_shapes(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace('radius="0.1" length="0.2"', 'radius="0.2" length="0.2"'))
    kinds = [shape.shape for shape in torsor.load(path).links[0].shapes]
    assert kinds == ["capsule", "sphere", "capsule", "cylinder", "sphere", "sphere"]


def test_a_capsule_without_length_is_a_sphere(tmp_path: Path) -> None:
    link = Link("ground", shapes=(Shape("capsule", (0.1, 0.0), POSE),))
    torsor.build("ball", [link], []).save(tmp_path / "ball.urdf")
    (ball,) = torsor.load(tmp_path / "ball.urdf").base.shapes
    assert (ball.shape, ball.size) == ("sphere", (0.1,))
