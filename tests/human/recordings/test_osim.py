"""OpenSim skeletons are read with bodies, joints, coordinates and markers; errors name the line."""

from pathlib import Path

import numpy as np
import pytest

from refusals import refused
from torsor.human.recordings import read_osim

OSIM = """<?xml version="1.0" encoding="UTF-8" ?>
<OpenSimDocument Version="40500">
<Model name="leg">
<gravity>0 -9.81 0</gravity>
<BodySet><objects>
<Body name="pelvis"><mass>10.5</mass><mass_center>-0.07 0 0</mass_center>
<inertia>0.1 0.2 0.3 0.01 0.02 0.03</inertia></Body>
<Body name="femur_r"><attached_geometry><Mesh name="bone"><scale_factors>1.1 0.9 1.2</scale_factors></Mesh>
</attached_geometry><mass>8</mass></Body>
</objects></BodySet>
<JointSet><objects>
<CustomJoint name="hip_r">
<socket_parent_frame>pelvis_offset</socket_parent_frame>
<socket_child_frame>/jointset/hip_r/femur_r_offset</socket_child_frame>
<coordinates><Coordinate name="hip_flexion_r"><default_value>0.1</default_value>
<range>-0.5 2</range><locked>true</locked>
</Coordinate></coordinates>
<frames><PhysicalOffsetFrame name="pelvis_offset"><socket_parent>/bodyset/pelvis</socket_parent>
<translation>-0.06 -0.08 0.07</translation><orientation>0.1 0 0</orientation></PhysicalOffsetFrame>
<PhysicalOffsetFrame name="femur_r_offset"><socket_parent>/bodyset/femur_r</socket_parent></PhysicalOffsetFrame>
</frames>
<SpatialTransform>
<TransformAxis name="rotation1"><coordinates>hip_flexion_r</coordinates><axis>0 0 1</axis>
<LinearFunction name="function"><coefficients> 1 0</coefficients></LinearFunction></TransformAxis>
<TransformAxis name="translation1"><coordinates>hip_flexion_r</coordinates><axis>1 0 0</axis>
<MultiplierFunction><function><SimmSpline><x>0 1 2</x><y>0 0.1 0.3</y></SimmSpline></function><scale>1.1</scale>
</MultiplierFunction></TransformAxis>
<TransformAxis name="translation2"><coordinates></coordinates><axis>0 1 0</axis></TransformAxis>
</SpatialTransform>
</CustomJoint>
<WeldJoint name="base"><socket_parent_frame>/ground</socket_parent_frame>
<socket_child_frame>/bodyset/pelvis</socket_child_frame>
</WeldJoint>
</objects></JointSet>
<MarkerSet><objects>
<Marker name="R.ASIS"><socket_parent_frame>/bodyset/pelvis</socket_parent_frame>
<location>0.01 0.02 0.13</location>
<fixed>true</fixed></Marker>
</objects></MarkerSet>
<ConstraintSet><objects><CoordinateCouplerConstraint name="kneecap"><coupled_coordinates_function><LinearFunction>
<coefficients>1 0</coefficients></LinearFunction></coupled_coordinates_function>
<independent_coordinate_names>knee</independent_coordinate_names>
<dependent_coordinate_name>beta</dependent_coordinate_name><scale_factor>0.5</scale_factor>
</CoordinateCouplerConstraint></objects></ConstraintSet>
</Model>
</OpenSimDocument>
"""


def _read(folder: Path, text: str) -> object:
    (folder / "leg.osim").write_text(text)
    return read_osim(folder / "leg.osim")


def test_a_skeleton_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "leg.osim").write_text(OSIM)
    model = read_osim(tmp_path / "leg.osim")
    assert model.name == "leg" and model.mass == 18.5 and model.gravity.tolist() == [0.0, -9.81, 0.0]
    pelvis, femur = model.bodies.values()
    assert pelvis.inertia.tolist() == [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.3]]
    assert pelvis.scale.tolist() == [1.0] * 3 and femur.scale.tolist() == [1.1, 0.9, 1.2]
    hip, base = model.joints.values()
    assert (hip.kind, hip.parent, hip.child) == ("CustomJoint", "pelvis", "femur_r")
    assert hip.parent_place.tolist() == [-0.06, -0.08, 0.07, 0.1, 0.0, 0.0] and not hip.child_place.any()
    assert (base.parent, base.child) == ("ground", "pelvis")
    assert model.coordinates["hip_flexion_r"] == ("hip_flexion_r", 0.1, -0.5, 2.0, True, False)
    turn, slide, still = hip.axes
    assert turn.function == "LinearFunction" and turn.numbers.tolist() == [1.0, 0.0] and turn.scale == 1.0
    assert slide.function == "SimmSpline" and slide.numbers.tolist() == [0, 0, 1, 0.1, 2, 0.3] and slide.scale == 1.1
    assert still.coordinates == () and still.function == "Constant" and still.numbers.tolist() == [0.0]
    (kneecap,) = model.couplings
    assert kneecap[:3] == ("beta", "knee", "LinearFunction") and kneecap.scale == 0.5
    marker = model.markers["R.ASIS"]
    assert marker.body == "pelvis" and marker.fixed and np.abs(marker.location - [0.01, 0.02, 0.13]).max() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("40500", "10500"), "open it in OpenSim and save it"),
        (("OpenSimDocument", "robot"), "the root element is <robot>"),
        (("<Model name", "<Tool name"), "not well-formed XML"),
        (("pelvis</socket_parent_frame>\n<loc", "x</socket_parent_frame><loc"), "ground, pelvis, femur_r"),
        (("<mass>8</mass>", ""), "<mass> has 0 numbers"),
        (("<mass>8</mass>", "<mass>-8</mass>"), "mass"),
        (("<mass>8</mass>", "<mass>8 kg</mass>"), "<mass>: 'kg' is not a number"),
        (('"femur_r"><att', '"pelvis"><att'), "pelvis"),
        (("<y>0 0.1 0.3", "<y>0 0.1"), "a SimmSpline has 3 x and 2 y"),
        (("SimmSpline", "StrangeFunction"), "'translation1' has a StrangeFunction"),
        (('Body name="pelvis"', "Body"), "it has no name"),
        (("_names>knee", "_names>knee hip"), "it depends on 2 coordinates"),
        (("0.02 0.13<", "0.02<"), "<location> has 2 numbers"),
        (("<OpenSim", '<!DOCTYPE a [<!ENTITY b "c">]><OpenSim'), "a document type or entity declaration"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_skeleton_is_named(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    text = OSIM.replace(*change, *([] if change[0] in ("OpenSimDocument", "SimmSpline") else [1]))
    with refused(words):
        _read(tmp_path, text)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with refused(allowed="an .osim file of OpenSim 3 or 4"):
        read_osim(tmp_path / "no.osim")
