"""Hints about suspicious inertias: uniform bodies against sums of points, MuJoCo and coal; ``torsor info``."""

import numpy as np
import pytest

from torsor import Link, Shape
from torsor.cli.main import main
from torsor.geometry.convex import hull_of_points
from torsor.geometry.uniform import _of_hull, inertia_hint, uniform_body
from torsor.spatial import make_pose

SIZES = {"sphere": (0.2,), "capsule": (0.1, 0.6), "cylinder": (0.2, 0.5), "box": (0.3, 0.5, 0.7)}


@pytest.mark.parametrize("kind", SIZES)
def test_uniform_bodies_are_those_of_coal(kind: str) -> None:
    coal = pytest.importorskip("coal")
    body = uniform_body(Shape(kind, SIZES[kind], make_pose(p=[0.1, 0.2, 0.3])), "link")
    assert body is not None
    theirs = getattr(coal, kind.capitalize())(*SIZES[kind])
    assert abs(body[0] - theirs.computeVolume()) < 1e-12
    assert np.allclose(body[1], [0.1, 0.2, 0.3])
    assert np.abs(body[2] - theirs.computeMomentofInertia()).max() < 1e-12


def test_the_inertia_of_a_hull_is_that_of_the_box_that_it_is() -> None:
    corners = np.array(np.meshgrid([-0.15, 0.15], [-0.25, 0.25], [-0.35, 0.35])).reshape(3, -1).T
    volume, center, inertia = _of_hull(hull_of_points(corners + np.array([1.0, 2.0, 3.0]), "mesh"))
    box = uniform_body(Shape("box", SIZES["box"]), "link")
    assert box is not None
    assert abs(volume - box[0]) < 1e-12
    assert np.abs(center - [1.0, 2.0, 3.0]).max() < 1e-12
    assert np.abs(inertia - box[2]).max() < 1e-12


def test_inertias_far_from_the_shape_or_not_physical_are_named() -> None:
    box = (Shape("box", (0.1, 0.1, 0.5)),)
    fair = np.diag([0.0217, 0.0217, 0.00167])
    assert inertia_hint(Link("arm", 1.0, inertia=3 * fair, shapes=box)) == ""
    assert "up to 12 times" in inertia_hint(Link("arm", 1.0, inertia=12 * fair, shapes=box))
    assert "down to 1/" in inertia_hint(Link("arm", 1.0, inertia=fair / 12, shapes=box))
    assert "no inertia" in inertia_hint(Link("arm", 1.0, shapes=box))
    wrong = Link("arm", 1.0, inertia=np.diag([1.0, 1.0, 3.0]), strict=False)
    assert "no body has the principal moments" in inertia_hint(wrong)
    assert inertia_hint(Link("arm", 1.0, inertia=np.eye(3))) == ""  # no shape to compare with


def test_info_names_shapes_missing_meshes_and_suspicious_inertias(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    text = """<robot name="arm"><link name="base"/><link name="hand">
      <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
      <collision><geometry><sphere radius="0.05"/></geometry></collision>
      <visual><geometry><mesh filename="package://lost/hand.stl"/></geometry></visual></link>
      <joint name="turn" type="continuous"><parent link="base"/><child link="hand"/></joint></robot>"""
    (tmp_path / "arm.urdf").write_text(text)
    main(["info", str(tmp_path / "arm.urdf")])
    said = capsys.readouterr().out
    assert "Collision shapes: 1 sphere" in said
    assert "package://lost/hand.stl" in said
    assert "link 'hand': moments of inertia 1, 1, 1 kg m^2 are up to 1e+03 times" in said
