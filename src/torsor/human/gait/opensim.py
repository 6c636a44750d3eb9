"""A predicted walk as OpenSim files: joint angles, ground forces and joint moments.

Names and directions follow the gait model of Rajagopal et al. (2016). Its three-axis joints rotate about z, x and
y in this order, like the hips and shoulders of Torsor's body in its own axes. The spine has four joints in Torsor and
one in that model.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.base.files import replacing
from torsor.human.body.coordinates import SIDES
from torsor.human.gait.curves import StrideCurves
from torsor.human.recordings import GroundForces, MotionTable, OsimModel, save
from torsor.human.recordings.axes import HUMAN, OPENSIM, rotation
from torsor.human.terms.problem import Samples
from torsor.robot.robot import Robot

LETTERS = {"right": "r", "left": "l"}
# Hinges of a leg and an arm: coordinates with the same direction and their OpenSim names.
HINGES = {
    "knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle", "ankle_inversion": "subtalar_angle",
    "toe_extension": "mtp_angle", "elbow_flexion": "elbow_flex",
}  # fmt: skip
HIP = ("hip_flexion", "hip_adduction", "hip_rotation")
SHOULDER = ("clavicle_elevation", "clavicle_protraction", "shoulder_flexion", "shoulder_adduction", "shoulder_rotation")
SPINE = tuple(f"spine{k}_{way}" for k in range(1, 5) for way in ("flexion", "lateral", "axial"))
MIN_CENTRED_FORCE = 1.0  # N: below this force, the centre of pressure is a quotient of small numbers
# From the pelvis origin, between the anterior superior iliac spines, to the midpoint of the hips, unscaled (m).
MIDDLE_OF_HIPS = np.array([-0.056276, -0.07849, 0.0])  # Rajagopal et al. 2016


def opensim_motion(stride: StrideCurves, model: OsimModel | None = None) -> MotionTable:
    """Return the joint angles (degrees) of a stride with OpenSim names, and the pelvis position (m).

    Columns follow the model of Rajagopal et al. (2016), with x forward, y up and z right. The stride starts at a
    right heel strike. ``model``, a skeleton from ``torsor.human.recordings.read_osim``, defines the hip positions
    on the pelvis. The default is the unscaled model. Forearms, wrists and head are not included.

    Example:
        >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
        >>> opensim_motion(stride).column("knee_angle_r").shape  # doctest: +SKIP
        (401,)
    """
    at, body = _samples(stride), stride.body
    names = body.coordinate_names
    columns: dict[str, Array] = {}
    turns = _turned(body, at.q, ("yaw", "tilt", "list"))
    columns |= dict(zip(("pelvis_tilt", "pelvis_list", "pelvis_rotation"), _zxy(turns), strict=True))
    place = np.stack([at.q[:, names.index(name)] for name in ("tx", "ty", "tz")], axis=1)
    place += sum(body.joint(name).placement[:3, 3] for name in ("tx", "ty", "tz", "yaw", "tilt", "list"))
    joints = () if model is None else model.joints.values()
    hips = [joint.parent_place[:3] for joint in joints if joint.child in ("femur_r", "femur_l")] or [MIDDLE_OF_HIPS]
    place = place @ rotation(HUMAN, OPENSIM, "stride").T - turns @ np.mean(hips, axis=0)
    columns |= {f"pelvis_t{axis}": column for axis, column in zip("xyz", place.T, strict=True)}
    for side, letter in LETTERS.items():
        columns |= {f"{name}_{letter}": at.q[:, names.index(f"{side}_{name}")] for name in HIP}
        columns |= {
            f"{name_there}_{letter}": at.q[:, names.index(f"{side}_{coordinate}")]
            for coordinate, name_there in HINGES.items()
        }
        flex, add, turn = _zxy(_turned(body, at.q, [f"{side}_{name}" for name in SHOULDER]))
        sign = 1.0 if side == "right" else -1.0  # adduction and rotation are about reversed axes on the left
        columns |= {f"arm_flex_{letter}": flex, f"arm_add_{letter}": sign * add, f"arm_rot_{letter}": sign * turn}
    spine = ("lumbar_extension", "lumbar_bending", "lumbar_rotation")
    columns |= dict(zip(spine, _zxy(_turned(body, at.q, SPINE)), strict=True))
    times = stride.s * stride.duration
    table = MotionTable(tuple(columns), times, np.stack(list(columns.values()), axis=1), False, "walk")
    return table.to_degrees()


def ground_forces(stride: StrideCurves) -> GroundForces:
    """Return the ground reaction forces on the right and left foot over a stride: N, m, N m; x forward, y up, z right.

    Centres of pressure are on the ground (y = 0), and are NaN for a foot in the air.

    Example:
        >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
        >>> ground_forces(stride).forces.shape  # doctest: +SKIP
        (401, 2, 3)
    """
    at, empty = _samples(stride), np.zeros((len(stride.s), 2, 3))
    feet = GroundForces(SIDES, stride.s * stride.duration, empty, empty, empty, axes=HUMAN, source="stride")
    return feet.with_wrench(np.concatenate([at.moments, at.forces], axis=2)).in_axes(OPENSIM)


def opensim_moments(stride: StrideCurves) -> MotionTable:
    """Return the joint moments (N m) of both legs over a stride, with the names of OpenSim's inverse dynamics.

    Example:
        >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
        >>> opensim_moments(stride).column("knee_angle_r_moment").shape  # doctest: +SKIP
        (401,)
    """
    at, names = _samples(stride), stride.body.coordinate_names
    joints = {name: name for name in HIP} | {
        coordinate: name_there for coordinate, name_there in HINGES.items() if coordinate != "elbow_flexion"
    }
    columns = {
        f"{name_there}_{LETTERS[side]}_moment": at.torques[:, names.index(f"{side}_{coordinate}")]
        for side in SIDES
        for coordinate, name_there in joints.items()
    }
    values, title = np.stack(list(columns.values()), axis=1), "Inverse Dynamics Generalized Forces"
    return MotionTable(tuple(columns), stride.s * stride.duration, values, False, title)


class OpensimFiles(NamedTuple):
    """The OpenSim files of a walk: ``motion``, ground ``forces``, their ``loads`` (.xml), and joint ``moments``."""

    motion: Path
    forces: Path
    loads: Path
    moments: Path


def opensim_files(path: Path) -> OpensimFiles:
    """Return the paths of the files that ``write_opensim`` writes.

    Example:
        >>> [file.name for file in opensim_files(Path("walk.mot"))]
        ['walk.mot', 'walk_grf.mot', 'walk_grf.xml', 'walk_id.sto']
    """
    return OpensimFiles(path, *(path.with_name(f"{path.stem}_{end}") for end in ("grf.mot", "grf.xml", "id.sto")))


def write_opensim(stride: StrideCurves, path: str | Path, model: OsimModel | None = None) -> OpensimFiles:
    """Write a stride for OpenSim and return the paths: "walk.mot", "walk_grf.mot", "walk_grf.xml", "walk_id.sto".

    These contain joint angles, ground forces, the external loads that apply the forces to the bodies calcn_r and
    calcn_l, and joint moments of the legs. In OpenSim's viewer, the first two can be loaded for a gait model with "Load
    Motion" and "Associate Motion Data"; OpenSim tools read the .xml file. For ``model`` see ``opensim_motion``.

    Example:
        >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
        >>> [path.name for path in write_opensim(stride, "walk.mot")]  # doctest: +SKIP
        ['walk.mot', 'walk_grf.mot', 'walk_grf.xml', 'walk_id.sto']
    """
    files = opensim_files(Path(path))
    save(opensim_motion(stride, model), files.motion)
    feet = ground_forces(stride)
    on = feet.loaded(MIN_CENTRED_FORCE)[:, :, None]
    save(replace(feet, centers=np.where(on, feet.centers, np.nan), moments=np.where(on, feet.moments, 0)), files.forces)
    save(opensim_moments(stride), files.moments)
    with replacing(files.loads) as part:
        part.write_text(_external_loads(files.forces), encoding="utf-8")
    return files


def _external_loads(forces: Path) -> str:
    """Return the XML document that applies the columns of a ground force file to the feet of a model."""
    document = Element("OpenSimDocument", Version="40000")
    loads = SubElement(document, "ExternalLoads", name=forces.stem)
    objects = SubElement(loads, "objects")
    for side, letter in LETTERS.items():
        force = SubElement(objects, "ExternalForce", name=side)
        for tag, content in (
            ("applied_to_body", f"calcn_{letter}"),
            ("force_expressed_in_body", "ground"),
            ("point_expressed_in_body", "ground"),
            ("force_identifier", f"ground_force_{letter}_v"),
            ("point_identifier", f"ground_force_{letter}_p"),
            ("torque_identifier", f"ground_torque_{letter}_"),
        ):
            SubElement(force, tag).text = content
    SubElement(loads, "groups")
    SubElement(loads, "datafile").text = forces.name
    indent(document)
    return '<?xml version="1.0" encoding="UTF-8" ?>\n' + tostring(document, encoding="unicode") + "\n"


def _samples(stride: StrideCurves) -> Samples:
    """Return the samples of the right stride, which is not mirrored."""
    if not isinstance(stride, StrideCurves):
        allowed = "a torsor.human.Stride"
        fix = 'for a recording: measured_gait(..., model=read_osim("subject.osim")).save("angles.mot"), '
        fix += "or torsor measure --model subject.osim -o angles.mot"
        raise ModelError(argument="stride", value=stride, where="OpenSim", allowed=allowed, fix=fix)
    return stride.samples if stride.side == "right" else StrideCurves(stride.result, "right").samples


def _turned(body: Robot, q: Array, names: tuple[str, ...] | list[str]) -> Array:
    """Return the rotation (K, 3, 3) of successive revolute joints, in OpenSim axes."""
    R = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    for name in names:
        x, y, z = body.joint(name).axis
        K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        angle = q[:, body.coordinate_names.index(name), None, None]
        R = R @ (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K))
    P = rotation(HUMAN, OPENSIM, "stride")
    return np.asarray(P @ R @ P.T)


def _zxy(R: Array) -> tuple[Array, Array, Array]:
    """Return the angles (K,) of rotations (K, 3, 3) about z, the new x and the new y."""
    return (
        np.arctan2(-R[:, 0, 1], R[:, 1, 1]),
        np.arcsin(np.clip(R[:, 2, 1], -1.0, 1.0)),
        np.arctan2(-R[:, 2, 0], R[:, 2, 2]),
    )
