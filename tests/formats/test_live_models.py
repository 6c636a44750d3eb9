"""Models of MuJoCo and Pinocchio in memory load as their files do, and Pinocchio's compute the same numbers there."""

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from robots import robot_file
from torsor.formats import Convention

from .written import MJCF, poses

mujoco = pytest.importorskip("mujoco")
pin = pytest.importorskip("pinocchio")

MENAGERIE = Path(__file__).parents[1] / "data" / "mjcf"
TOLERANCE = 1e-10
AXIS = np.array([1.0, -2.0, 3.0]) / np.sqrt(14)
# A wedge whose principal axes are turned.
WEDGE = "v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 0.5\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def loaded(source: Any, **settings: Any) -> torsor.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torsor.ModelWarning)
        return torsor.load(source, **settings)


# MuJoCo


@pytest.mark.parametrize("name", sorted(path.name for path in MENAGERIE.glob("*.xml")))
def test_a_model_of_mujoco_loads_as_its_file(name: str) -> None:
    path = MENAGERIE / name
    expected = loaded(path)
    models = mujoco.MjModel.from_xml_path(str(path)), mujoco.MjSpec.from_file(str(path))
    for robot in (loaded(model) for model in models):
        assert replace(robot, name=expected.name) == expected


@pytest.mark.parametrize("name", list(MJCF))
def test_a_written_robot_loads_from_the_model_as_from_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "robot.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torsor.ModelWarning)
        MJCF[name].save(path)
    expected, robot = loaded(path), loaded(mujoco.MjModel.from_xml_path(str(path)))
    assert replace(robot, name=expected.name) == expected


def test_a_change_of_the_model_is_loaded() -> None:
    model = mujoco.MjModel.from_xml_path(str(MENAGERIE / "pendulum.xml"))
    model.body_mass[1] *= 3
    model.opt.gravity[:] = 0, 0, -1.62
    robot = torsor.load(model)
    assert robot.links[0].mass == model.body_mass[1]
    assert robot.gravity.tolist() == [0, 0, -1.62]


def test_a_spec_is_not_changed() -> None:
    spec = mujoco.MjSpec.from_file(str(MENAGERIE / "tool.xml"))
    before = [mesh.file for mesh in spec.meshes]
    loaded(spec)
    assert [mesh.file for mesh in spec.meshes] == before


def test_meshes_without_files_come_from_the_model(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    text = """<mujoco><asset><mesh name="wedge" file="wedge.obj" scale="0.1 -0.2 0.3"/></asset><worldbody>
      <body name="arm"><joint axis="0 1 0"/><geom type="mesh" mesh="wedge" pos="0.1 0.2 0.3" euler="10 20 30"/>
      <geom size="0.1" pos="3 0 0"/></body><geom type="sphere" size="0.1" pos="0 0 2"/></worldbody></mujoco>"""
    for name, content in (("arm.xml", text), ("wedge.obj", WEDGE)):
        (tmp_path / name).write_text(content)
    expected = loaded(tmp_path / "arm.xml")
    robot = loaded(mujoco.MjModel.from_xml_string(text, {"wedge.obj": WEDGE.encode()}))
    shapes = [each.links[0].shapes[0] for each in (robot, expected)]
    corners = []
    for shape in shapes:
        vertices = trimesh.load(shape.path, process=False).vertices * shape.size
        moved = vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3]
        corners.append(moved[np.lexsort(moved.round(5).T)])
    np.testing.assert_allclose(*corners, rtol=0, atol=1e-7)  # MuJoCo keeps meshes in single precision
    np.testing.assert_allclose(robot.links[0].inertia, expected.links[0].inertia, rtol=0, atol=1e-15)


def test_files_have_arguments_that_models_have_not() -> None:
    model = mujoco.MjModel.from_xml_path(str(MENAGERIE / "pendulum.xml"))
    with refused("search", where="MjModel"):
        torsor.load(model, search=["/"])


def test_other_objects_are_refused() -> None:
    model = mujoco.MjModel.from_xml_path(str(MENAGERIE / "pendulum.xml"))
    with refused("path", what="is a MjData", allowed="mujoco.MjModel"):
        torsor.load(mujoco.MjData(model))


# Pinocchio


def joints() -> dict[str, Any]:
    """Return joints of every type that a mechanism supports, by name."""
    plain = *(f"{kind}{axis}" for kind in ("R", "P", "RUB") for axis in "XYZ"), "FreeFlyer", "Translation"
    made = {name: getattr(pin, f"JointModel{name}")() for name in (*plain, "Spherical", "SphericalZYX", "Planar")}
    parts = pin.JointModelComposite(pin.JointModelRX(), pin.SE3.Random())
    for part in (pin.JointModelSpherical(), pin.JointModelTranslation(), pin.JointModelRUBZ()):
        parts.addJoint(part, pin.SE3.Random())
    made |= {name: getattr(pin, f"JointModel{name}Unaligned")(AXIS) for name in ("Revolute", "Prismatic")}
    made |= {"HY": pin.JointModelHY(0.3), "HelicalUnaligned": pin.JointModelHelicalUnaligned(AXIS, -0.2)}
    return made | {"Universal": pin.JointModelUniversal(*np.eye(3)[:2]), "Composite": parts}


def tree() -> Any:
    """Return a tree of all joints, with armature where the axes of the joint do not move."""
    pin.seed(1)
    model = pin.Model()
    for k, (name, joint) in enumerate(joints().items()):
        number = model.addJoint(max(0, model.njoints - 1 - k % 3), joint, pin.SE3.Random(), name)
        solid = pin.Inertia(1.0 + k, np.array([0.1, -0.2, 0.3]), np.diag([1.0, 2.0, 2.5]))
        model.appendBodyToJoint(number, solid, pin.SE3.Random())
        model.addFrame(pin.Frame(f"{name}/tip", number, 0, pin.SE3.Random(), pin.FrameType.OP_FRAME))
    model.armature = np.arange(model.nv) / 50.0
    planar = model.joints[model.getJointId("Planar")].idx_v
    model.armature[planar : planar + 2] = 0
    return model


MODELS = {
    "all joints": tree,
    "humanoid": lambda: pin.buildSampleModelHumanoidRandom(True),
    "manipulator": pin.buildSampleModelManipulator,
    "talos": lambda: pin.buildModelFromUrdf(str(robot_file("talos_reduced.urdf")), pin.JointModelFreeFlyer()),
}


@pytest.mark.parametrize("name", ["all joints", "humanoid", "manipulator", "talos"])
def test_a_model_of_pinocchio_computes_the_same_numbers(name: str) -> None:
    model = MODELS[name]()
    robot = loaded(model).without_friction().to(device="casadi")
    their, data, rng = Convention(robot, "pinocchio", robot.joint_names), model.createData(), np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    state = their.theirs(q, *rng.normal(size=(2, robot.nv)))

    def assert_same(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * max(1.0, np.abs(expected).max()))

    _, v, a = their.ours(*state)
    assert_same(their.forces(q, robot.inverse_dynamics(q, v, a)), pin.rnea(model, data, *state))
    bias = robot.inverse_dynamics(*their.ours(*state[:2], np.zeros(model.nv)))
    assert_same(their.forces(q, bias), pin.nonLinearEffects(model, data, *state[:2]))
    M = np.triu(pin.crba(model, data, state[0]))
    assert_same(their.mass_matrix(q, robot.mass_matrix(q)), M + np.triu(M, 1).T)
    pin.computeJointJacobians(model, data, state[0])
    pin.updateFramePlacements(model, data)
    found = poses(robot, q)
    known = [k for k, frame in enumerate(model.frames) if frame.name in found and str(frame.type) != "JOINT"]
    assert known
    for k in known:
        assert_same(found[model.frames[k].name], data.oMf[k].homogeneous)
    for k in known[-3:]:
        J = pin.getFrameJacobian(model, data, k, pin.LOCAL)
        assert_same(their.jacobian(q, robot.jacobian(q, model.frames[k].name)), J)


@pytest.mark.parametrize("name", ["ur5_robot.urdf", "talos_reduced.urdf", "panda.urdf"])
def test_a_model_of_a_urdf_has_the_limits_and_frames_of_the_file(name: str) -> None:
    sources = robot_file(name), pin.buildModelFromUrdf(str(robot_file(name)), mimic=True)
    expected, robot = (loaded(source).to(device="casadi") for source in sources)
    assert set(robot.joint_names) == set(expected.joint_names)
    assert set(robot.places) == set(expected.places)
    for joint in robot.joints:
        other = expected.joint(joint.name)
        assert (joint.type, joint.parent, joint.child) == (other.type, other.parent, other.child)
        assert (joint.coordinate, joint.ratio, joint.offset) == (other.coordinate, other.ratio, other.offset)
        # A model has no limits of mimic joints.
        for field in (
            () if joint.follows else ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous")
        ):
            np.testing.assert_array_equal(getattr(joint, field), getattr(other, field))
    order = [expected.position_names.index(key) for key in robot.position_names]
    q = np.random.default_rng(0).uniform(-1, 1, expected.nq)
    found, truth = poses(robot, q[order]), poses(expected, q)
    for place, pose in truth.items():
        np.testing.assert_allclose(found[place], pose, rtol=0, atol=TOLERANCE)


def test_mimic_joints_follow_their_leaders() -> None:
    text = """<robot name="gripper"><link name="hand"/>{}{}<joint name="left" type="revolute"><parent link="hand"/>
      <child link="a"/><axis xyz="0 0.6 0.8"/><limit lower="-1" upper="2" effort="3" velocity="4"/></joint>
      <joint name="right" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/><origin xyz="1 2 3"/>
      <limit lower="-1" upper="2" effort="3" velocity="4"/><mimic joint="left" multiplier="-2" offset="0.3"/>
      </joint></robot>"""
    solid = '<link name="{}"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    model = pin.buildModelFromXML(text.format(solid.format("a"), solid.format("b")), mimic=True)
    robot, data = torsor.load(model), model.createData()
    q, v, a = np.random.default_rng(0).normal(size=(3, 1))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), pin.rnea(model, data, q, v, a), rtol=TOLERANCE)


def test_reference_configurations_are_postures() -> None:
    model = pin.Model()
    model.addJoint(0, pin.JointModelRUBX(), pin.SE3.Identity(), "wheel")
    model.appendBodyToJoint(1, pin.Inertia(1.0, np.ones(3), np.eye(3)), pin.SE3.Identity())
    model.referenceConfigurations["turned"] = np.array([np.cos(2.0), np.sin(2.0)])
    np.testing.assert_allclose(torsor.load(model).postures["turned"], [2.0], rtol=1e-15)


def test_what_a_mechanism_cannot_represent_is_named() -> None:
    model = pin.Model()
    model.addJoint(0, pin.JointModelEllipsoid(1.0, 2.0, 3.0), pin.SE3.Identity(), "shoulder")
    with refused(what="'shoulder' has the type Ellipsoid", allowed="Composite"):
        torsor.load(model)
    model = pin.buildSampleModelManipulator()
    model.rotorInertia = np.ones(model.nv)
    with warned(what="rotor inertias without armature"):
        torsor.load(model)
    with refused(what="rotor inertias without armature"):
        torsor.load(model, strict=True)


def test_a_floating_base_is_added_to_a_model() -> None:
    robot = torsor.load(pin.buildSampleModelManipulator(), base="floating")
    assert (robot.nv, robot.joint_names[0]) == (12, "root")
    with refused("base"):
        loaded(MODELS["humanoid"](), base="floating")


def test_neither_program_is_imported_for_other_sources() -> None:
    code = "import sys, torsor; torsor.load('ur5'); print({'mujoco', 'pinocchio'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
