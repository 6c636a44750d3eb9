"""A predicted stride in OpenSim's names is the same posture, and its ground forces keep their wrenches."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from human.test_stride import _moved
from refusals import refused
from torsor import library
from torsor.human import Stride, ground_forces, opensim_motion, recordings, write_opensim

# x forward, y up, z right, from x left, y up, z forward
TURN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])


@pytest.fixture(scope="module")
def stride() -> Stride:
    return Stride(_moved(2, 3))


def _about(axis: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    x, y = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[x, x], R[x, y], R[y, x], R[y, y] = c, -s, s, c
    return R


def _zxy(motion: recordings.MotionTable, k: int, names: str, sign: float = 1.0) -> np.ndarray:
    z, x, y = (motion.column(name)[k] for name in names.split())
    return _about("z", z) @ _about("x", sign * x) @ _about("y", sign * y)


def test_angles_of_a_written_walk_turn_segments_as_the_body_does(stride: Stride) -> None:
    motion = opensim_motion(stride)
    body = library.human().to(device="casadi")  # nothing is compiled
    for k in (0, 137):
        poses = dict(zip(body.link_names, body.poses(stride.samples.q[k]), strict=True))
        turned = {name: TURN @ pose[:3, :3] @ TURN.T for name, pose in poses.items()}
        pelvis = _zxy(motion, k, "pelvis_tilt pelvis_list pelvis_rotation")
        assert np.abs(pelvis - turned["pelvis"]).max() < 1e-12
        torso = pelvis @ _zxy(motion, k, "lumbar_extension lumbar_bending lumbar_rotation")
        assert np.abs(torso - turned["spine4"]).max() < 1e-12
        for side, letter, sign in (("right", "r", 1.0), ("left", "l", -1.0)):
            names = " ".join(f"{name}_{letter}" for name in ("hip_flexion", "hip_adduction", "hip_rotation"))
            thigh = pelvis @ _zxy(motion, k, names, sign)
            assert np.abs(thigh - turned[f"{side}_thigh"]).max() < 1e-12
            shank = thigh @ _about("z", -motion.column(f"knee_angle_{letter}")[k])  # flexion is positive
            assert np.abs(shank - turned[f"{side}_shank"]).max() < 1e-12
            arm = torso @ _zxy(motion, k, f"arm_flex_{letter} arm_add_{letter} arm_rot_{letter}", sign)
            assert np.abs(arm - turned[f"{side}_upper_arm"]).max() < 1e-12
        place = np.array([motion.column(f"pelvis_t{axis}")[k] for axis in "xyz"])
        hips = place + pelvis @ [-0.056276, -0.07849, 0.0]
        assert np.abs(hips - TURN @ poses["pelvis"][:3, 3]).max() < 1e-12


def test_ground_forces_of_a_walk_keep_force_and_moment_about_the_origin(stride: Stride) -> None:
    feet, at = ground_forces(stride), stride.samples
    wrench = feet.wrench()
    loaded = np.isfinite(feet.centers).all(axis=2)
    assert loaded.any() and feet.names == ("right", "left") and feet.axes == "forward up right"
    expected = np.concatenate([at.moments @ TURN.T, at.forces @ TURN.T], axis=2)
    scale = np.abs(expected).max()
    assert np.abs((wrench - expected)[loaded]).max() < 1e-9 * scale
    assert np.abs(feet.centers[loaded][:, 1]).max() == 0


def test_a_walk_is_written_as_files_that_read_back(stride: Stride, tmp_path: Path) -> None:
    files = write_opensim(Stride(stride.result, "left"), tmp_path / "walk.mot")
    motion, forces = recordings.load(files.motion).table, recordings.load(files.forces, check=False).forces
    moments = recordings.load(files.moments, check=False).table
    knee = stride.body.coordinate_names.index("left_knee_flexion")
    assert (moments.column("knee_angle_l_moment") == stride.samples.torques[:, knee]).all()
    assert (motion.values == opensim_motion(stride).values).all() and motion.in_degrees
    assert len(forces) == 401 and forces.names == ("right", "left")
    assert np.isfinite(forces.centers).all()  # OpenSim reads no NaN
    # The external loads name a file that is there, and columns that it has.
    loads = ElementTree.parse(files.loads).getroot()
    names = recordings.load(files.forces, check=False).table.names
    assert loads.findtext(".//datafile") == files.forces.name == "walk_grf.mot"
    assert [each.text for each in loads.iter("applied_to_body")] == ["calcn_r", "calcn_l"]
    for tag in ("force_identifier", "point_identifier", "torque_identifier"):
        for each in loads.iter(tag):
            assert {f"{each.text}{axis}" for axis in "xyz"} <= set(names)
    with refused(argument="stride", where="OpenSim", allowed="a torsor.human.Stride", fix="torsor measure --model"):
        opensim_motion(3)  # type: ignore[arg-type]


def test_the_pelvis_of_another_model_has_its_hips_elsewhere(stride: Stride, tmp_path: Path) -> None:
    joints = "".join(
        f'<CustomJoint name="hip_{side}"><socket_parent_frame>a</socket_parent_frame><socket_child_frame>femur_{side}'
        f'</socket_child_frame><frames><PhysicalOffsetFrame name="a"><socket_parent>/bodyset/pelvis</socket_parent>'
        f"<translation>-0.07 -0.09 {z}</translation></PhysicalOffsetFrame></frames></CustomJoint>"
        for side, z in (("r", 0.08), ("l", -0.08))
    )
    bodies = "".join(f'<Body name="{each}"><mass>1</mass></Body>' for each in ("pelvis", "femur_r", "femur_l"))
    (tmp_path / "a.osim").write_text(
        f'<OpenSimDocument Version="40500"><Model><BodySet><objects>{bodies}</objects></BodySet><JointSet><objects>'
        f"{joints}</objects></JointSet></Model></OpenSimDocument>"
    )
    model = recordings.read_osim(tmp_path / "a.osim")
    own, other = opensim_motion(stride), opensim_motion(stride, model)
    moved = [np.abs(own.column(f"pelvis_t{axis}") - other.column(f"pelvis_t{axis}")).max() for axis in "xyz"]
    assert 0.001 < np.linalg.norm(moved) < 0.05
