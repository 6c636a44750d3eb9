"""USD stages are read as UsdPhysics defines them: closed forms, and stages that are not robots."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelError, ModelWarning
from torsor.formats.meshes.mesh_files import read_mesh

pxr = pytest.importorskip("pxr", reason='USD needs usd-core: pip install "torsor[usd]"')
from pxr import Gf, Usd, UsdPhysics  # noqa: E402

HEAD = '#usda 1.0\n(\n    metersPerUnit = {m}\n    kilogramsPerUnit = {kg}\n    upAxis = "{up}"\n)\n'
BODY = 'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"{more}]'


def body(name: str, inside: str = "", mass: str = "2", more: str = "") -> str:
    given = f"float physics:mass = {mass}\n point3f physics:centerOfMass = (0.5, 0, 0)\n" if mass else ""
    given += "float3 physics:diagonalInertia = (0.1, 0.2, 0.3)\n" if mass else ""
    return f'def Xform "{name}" ({BODY.format(more=more)}) {{\n{given}{inside}\n}}\n'


def joint(kind: str, ends: str, inside: str = "", apis: str = "", name: str = "pin") -> str:
    a, b = (f"rel physics:body{k} = </{each}>\n" if each else "" for k, each in enumerate(ends.split("-")))
    apis = f"prepend apiSchemas = [{apis}]" if apis else ""
    return f'def Physics{kind}Joint "{name}" ({apis}) {{\n{a}{b}{inside}\n}}\n'


def load(tmp_path: Path, *parts: str, m: float = 1, kg: float = 1, up: str = "Z", **settings: object) -> torsor.Robot:
    path = tmp_path / "stage.usda"
    path.write_text(HEAD.format(m=m, kg=kg, up=up) + "".join(parts))
    return torsor.load(path, **settings).to(device="casadi")  # type: ignore[arg-type]


HINGE = 'uniform token physics:axis = "Y"\n'


def test_a_pendulum_has_the_closed_form(tmp_path: Path) -> None:
    limits = "float physics:lowerLimit = -90\n float physics:upperLimit = 45\n"
    robot = load(tmp_path, body("rod"), joint("Revolute", "-rod", HINGE + limits))
    assert robot.coordinate_names == ("pin",)
    q, a = 0.3, 1.7
    expected = (0.2 + 2 * 0.25) * a - 2 * 9.81 * 0.5 * np.cos(q)  # about y: a positive angle lowers the rod
    assert robot.inverse_dynamics([q], [0.5], [a])[0] == pytest.approx(expected, rel=1e-12)
    assert [float(np.ravel(each)[0]) for each in (robot.joints[0].lower, robot.joints[0].upper)] == pytest.approx(
        [-np.pi / 2, np.pi / 4], rel=1e-15
    )


def test_units_and_the_axis_that_is_up(tmp_path: Path) -> None:
    """In centimetres, grams and y up: the same pendulum about z."""
    rod = """float physics:mass = 2000
        point3f physics:centerOfMass = (50, 0, 0)
        float3 physics:diagonalInertia = (1e6, 3e6, 2e6)"""
    drive = "float drive:angular:physics:maxForce = 1e7\n float physxJoint:armature = 5e6\n"
    drive += "float physxJoint:jointFriction = 3e7\n float physxJoint:maxJointVelocity = 180\n"
    scene = 'def PhysicsScene "scene" {\n float physics:gravityMagnitude = 981\n}\n'
    pin = joint("Revolute", "-rod", 'uniform token physics:axis = "Z"\n' + drive, '"PhysicsDriveAPI:angular"')
    robot = load(tmp_path, scene, body("rod", rod, mass=""), pin, m=0.01, kg=0.001, up="Y")
    expected = (0.2 + 2 * 0.25 + 0.5) * 1.7 + 2 * 9.81 * 0.5 * np.cos(0.3) + 3.0
    assert robot.inverse_dynamics([0.3], [0.5], [1.7])[0] == pytest.approx(expected, rel=1e-12)
    assert float(np.ravel(robot.joints[0].effort_limit)[0]) == pytest.approx(1.0, rel=1e-12)
    assert float(np.ravel(robot.joints[0].velocity_limit)[0]) == pytest.approx(np.pi, rel=1e-12)


def test_the_frames_of_joints_count_and_not_where_bodies_stand(tmp_path: Path) -> None:
    """Two rods that stand bent in the stage; body1 of the second joint is the one nearer to the world."""
    first = joint("Revolute", "-a", "quatf physics:localRot0 = (0.70710678, 0, 0.70710678, 0)\n" + HINGE, name="j1")
    ends = "point3f physics:localPos1 = (1, 0, 0)\n point3f physics:localPos0 = (0, 0.2, 0)\n"
    second = joint("Revolute", "b-a", ends + HINGE, name="j2")
    moved = "double3 xformOp:translate = (7, 8, 9)\n"
    moved += 'uniform token[] xformOpOrder = ["xformOp:translate"]'
    robot = load(tmp_path, body("a"), body("b", moved), first, second)

    def turn(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])

    q1, q2 = 0.4, 0.7
    R1 = turn(np.pi / 2 + q1)
    R2 = R1 @ turn(q2).T  # of b in the world: the joint turns a relative to b
    found = robot.pose([q1, q2], "b")
    np.testing.assert_allclose(found[:3, :3], R2, atol=1e-8)  # the quaternion has eight digits
    np.testing.assert_allclose(found[:3, 3], R1 @ [1, 0, 0] - R2 @ [0, 0.2, 0], atol=1e-8)


def test_masses_from_densities_are_those_of_the_standard(tmp_path: Path) -> None:
    """UsdPhysics computes them too, from the volumes of the shapes, in single precision."""
    box = 'def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n double size = 0.2\n'
    box += "double3 xformOp:translate = (0.1, 0, 0)\n double3 xformOp:scale = (1, 2, 3)\n"
    box += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]\n}\n'
    ball = (
        'def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"]) {\n double radius = 0.1\n'
    )
    ball += "float physics:density = 500\n double3 xformOp:translate = (0, 0, 1)\n"
    ball += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    robot = load(
        tmp_path, body("part", "float physics:density = 2000\n" + box + ball, mass=""), joint("Revolute", "-part")
    )
    link, m1, m2 = robot.links[0], 2000 * 0.2 * 0.4 * 0.6, 500 * 4 / 3 * np.pi * 0.001
    assert link.mass == pytest.approx(m1 + m2, rel=1e-12)
    np.testing.assert_allclose(
        link.com, (m1 * np.array([0.1, 0, 0]) + m2 * np.array([0, 0, 1])) / (m1 + m2), rtol=1e-12
    )
    stage = Usd.Stage.Open(str(tmp_path / "stage.usda"))

    def information(part: Usd.Prim) -> object:
        found, is_box = UsdPhysics.RigidBodyAPI.MassInformation(), part.GetName() == "box"
        found.volume = 0.048 if is_box else 4 / 3 * np.pi * 0.001
        moments = 0.048 / 12 * np.array([0.52, 0.40, 0.20]) if is_box else np.full(3, found.volume * 0.4 * 0.01)
        found.inertia = Gf.Matrix3f(*np.diag(moments).ravel().tolist())
        found.centerOfMass, found.localRot = Gf.Vec3f(0), Gf.Quatf(1)
        found.localPos = Gf.Vec3f(0.1, 0, 0) if is_box else Gf.Vec3f(0, 0, 1)
        return found

    mass, inertia, com, _ = UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath("/part")).ComputeMassProperties(information)
    assert link.mass == pytest.approx(mass, rel=1e-6)
    np.testing.assert_allclose(link.com, com, atol=1e-6)
    np.testing.assert_allclose(np.linalg.eigvalsh(link.inertia), sorted(inertia), rtol=1e-5)


def test_a_body_without_mass_properties_is_of_water_and_roots_may_be_marked_twice(tmp_path: Path) -> None:
    ball = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n double radius = 0.1\n}\n'
    bare = body("a", ball, mass="", more=', "PhysicsArticulationRootAPI"').replace(', "PhysicsMassAPI"', "")
    with warned(what="no mass is given for /a:"):
        robot = load(tmp_path, bare, joint("Revolute", "-a", HINGE, '"PhysicsArticulationRootAPI"'))
    mass = 1000 * 4 / 3 * np.pi * 0.001
    assert robot.links[0].mass == pytest.approx(mass, rel=1e-12)
    assert robot.mass_matrix([0.0])[0, 0] == pytest.approx(0.4 * mass * 0.01, rel=1e-12)


def test_a_closed_mesh_has_the_inertia_of_its_inside(tmp_path: Path) -> None:
    corners = [(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)]
    faces = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    mesh = f'def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\n point3f[] points = {corners}\n'
    mesh += f"int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]\n int[] faceVertexIndices = {faces}\n}}\n"
    given = "float physics:density = 1000\n"
    link = load(tmp_path, body("part", given + mesh, mass=""), joint("Revolute", "-part")).links[0]
    assert link.mass == pytest.approx(6000.0, rel=1e-12)
    np.testing.assert_allclose(link.com, [0.5, 1, 1.5], rtol=1e-12)
    np.testing.assert_allclose(np.diag(link.inertia), 500 * np.array([13, 10, 5]), rtol=1e-12)


def test_a_mirrored_mesh_is_kept_with_its_mirrored_solid(tmp_path: Path) -> None:
    """The tetrahedron of the corners (0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3), mirrored in y."""
    mesh = 'def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n'
    mesh += "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]\n int[] faceVertexCounts = [3, 3, 3, 3]\n"
    mesh += "int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]\n double3 xformOp:scale = (1, -1, 1)\n"
    mesh += 'uniform token[] xformOpOrder = ["xformOp:scale"]\n}\n'
    robot = load(tmp_path, body("a", "float physics:density = 1000\n" + mesh, mass=""), joint("Revolute", "-a"))
    link = robot.links[0]
    assert link.mass == pytest.approx(1000.0, rel=1e-12)
    np.testing.assert_allclose(link.com, [0.25, -0.5, 0.75], rtol=1e-12)
    (shape,) = link.shapes
    corners = read_mesh(str(shape.path)).scaled(shape.size).at(shape.pose).vertices
    np.testing.assert_allclose(
        sorted(corners.tolist()), sorted([[0, 0, 0], [1, 0, 0], [0, -2, 0], [0, 0, 3]]), atol=1e-15
    )


def test_scales_apply_to_frames_centres_of_mass_and_shapes(tmp_path: Path) -> None:
    scaled = "double3 xformOp:scale = (2, 3, 4)\n"
    scaled += 'uniform token[] xformOpOrder = ["xformOp:scale"]\n'
    box = 'def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n double size = 1\n}\n'
    end = "point3f physics:localPos0 = (1, 1, 1)\n"
    robot = load(
        tmp_path, body("a", scaled + box), body("b"), joint("Revolute", "-a", name="j1"), joint("Revolute", "a-b", end)
    )
    assert robot.links[0].com.tolist() == [1.0, 0.0, 0.0]
    assert robot.links[0].shapes[0].size == (2.0, 3.0, 4.0)
    assert robot.joints[1].placement[:3, 3].tolist() == [2.0, 3.0, 4.0]


def lock(*axes: str) -> tuple[str, str]:
    apis = ", ".join(f'"PhysicsLimitAPI:{axis}"' for axis in axes)
    return "".join(f"float limit:{a}:physics:low = 1\n float limit:{a}:physics:high = -1\n" for a in axes), apis


@pytest.mark.parametrize(
    ("locked", "kinds"),
    [
        (("transX", "transY", "transZ", "rotX", "rotZ"), ["continuous"]),
        (("transX", "transY", "transZ"), ["spherical"]),
        (("transZ", "rotX", "rotY"), ["prismatic", "prismatic", "continuous"]),
        (("transX", "transY", "rotX", "rotY", "rotZ"), ["prismatic"]),
        ((), ["free"]),
    ],
)
def test_the_axes_that_no_limit_locks_are_joints(locked: tuple[str, ...], kinds: list[str], tmp_path: Path) -> None:
    robot = load(tmp_path, body("a"), joint("", "-a", *lock(*locked)))
    assert [each.type for each in robot.joints] == kinds


def test_a_robot_that_nothing_holds_floats_and_one_that_is_held_can_be_released(tmp_path: Path) -> None:
    pair = body("a"), body("b"), joint("Revolute", "a-b", HINGE)
    assert load(tmp_path, *pair).nv == 7
    held = *pair, joint("Fixed", "-a", name="weld")
    assert load(tmp_path, *held).nv == 1
    assert load(tmp_path, *held).base.name == "a"
    floating = load(tmp_path, *held, base="floating")
    assert [each.type for each in floating.joints] == ["free", "continuous"]
    assert not floating.loops


def test_of_several_articulations_the_one_that_moves_is_read(tmp_path: Path) -> None:
    """Converters weld each part of a base that is no body to the world, and mark it as an articulation."""
    root = ', "PhysicsArticulationRootAPI"'
    parts = body("cover", more=root), body("arm", more=root), joint("Fixed", "-cover", name="weld")
    with warned(what="bodies outside the articulation (/cover)"):
        robot = load(tmp_path, *parts, joint("Revolute", "-arm", HINGE))
    assert robot.link_names == ("arm",)


def test_joints_beside_the_articulation_close_loops(tmp_path: Path) -> None:
    """A rhombus of four bars: two hinges on the world, one between the bars that is cut."""
    far = "point3f physics:localPos0 = (1, 0, 0)\n"
    cut = "bool physics:excludeFromArticulation = 1\n point3f physics:localPos0 = (1, 0, 0)\n"
    robot = load(
        tmp_path,
        *(body(name) for name in "abc"),
        joint("Revolute", "-a", HINGE, name="j1"),
        joint("Revolute", "a-b", HINGE + far, name="j2"),
        joint("Revolute", "-c", HINGE + far.replace("(1", "(2"), name="j3"),
        joint("Revolute", "b-c", HINGE + cut + "point3f physics:localPos1 = (1, 0, 0)\n", name="cut"),
    )
    assert [(loop.name, loop.kind) for loop in robot.loops] == [("cut", "revolute")]  # type: ignore[union-attr]
    assert robot.closed.mobility().dof == 1


def test_followers_of_physx_follow(tmp_path: Path) -> None:
    mimic = "rel physxMimicJoint:rotY:referenceJoint = </j1>\n float physxMimicJoint:rotY:gearing = -2\n"
    mimic += "float physxMimicJoint:rotY:offset = 90\n"
    second = joint("Revolute", "a-b", HINGE + mimic, '"PhysxMimicJointAPI:rotY"', name="j2")
    robot = load(tmp_path, body("a"), body("b"), joint("Revolute", "-a", HINGE, name="j1"), second)
    follower = robot.joints[1]
    assert (follower.coordinate, follower.ratio) == ("j1", 2.0)
    assert follower.offset == pytest.approx(-np.pi / 2, rel=1e-15)


def test_followers_of_newton_follow_where_they_are_enabled(tmp_path: Path) -> None:
    """q = coef1 q(other) + coef0, the offset in degrees."""
    mimic = "rel newton:mimicJoint = </j1>\n float newton:mimicCoef1 = -2\n float newton:mimicCoef0 = 90\n"
    first = body("a"), body("b"), joint("Revolute", "-a", HINGE, name="j1")
    robot = load(tmp_path, *first, joint("Revolute", "a-b", HINGE + mimic, '"NewtonMimicAPI"', name="j2"))
    follower = robot.joints[1]
    assert (follower.coordinate, follower.ratio) == ("j1", -2.0)
    assert follower.offset == pytest.approx(np.pi / 2, rel=1e-15)
    off = "bool newton:mimicEnabled = false\n"
    assert load(tmp_path, *first, joint("Revolute", "a-b", HINGE + mimic + off, name="j2")).nv == 2


def test_friction_rotor_inertia_and_inertia_of_newton_have_the_closed_form(tmp_path: Path) -> None:
    """In centimetres and grams, with damping for each degree a second; newton:inertia counts before the diagonal."""
    numbers = {"armature": 5e6, "friction": 3e7, "damping": 4e7 * np.pi / 180, "velocityLimit": 180}
    own = "".join(f"float newton:{key} = {value}\n" for key, value in numbers.items())
    rod = "float physics:mass = 2000\n point3f physics:centerOfMass = (50, 0, 0)\n"
    rod += "float3 physics:diagonalInertia = (1, 1, 1)\n double[] newton:inertia = [1e6, 2e6, 3e6, 1e5, 0, 0]\n"
    pin = joint("Revolute", "-rod", HINGE + own, '"NewtonJointAPI"')
    robot = load(tmp_path, body("rod", rod, mass=""), pin, m=0.01, kg=0.001)
    q, v, a = 0.3, 0.5, 1.7
    expected = (0.2 + 2 * 0.25 + 0.5) * a - 2 * 9.81 * 0.5 * np.cos(q) + 3.0 + 4.0 * v
    assert robot.inverse_dynamics([q], [v], [a])[0] == pytest.approx(expected, rel=1e-7)  # numbers are single
    assert robot.links[0].inertia[0, 1] == pytest.approx(0.01, rel=1e-12)
    assert float(np.ravel(robot.joints[0].velocity_limit)[0]) == pytest.approx(np.pi, rel=1e-12)
    with refused(allowed="6 finite numbers"):
        load(tmp_path, body("rod", rod.replace("1e5, 0, 0", "1e5"), mass=""), pin)


def test_names_that_usd_does_not_allow_are_those_that_are_displayed(tmp_path: Path) -> None:
    named = 'displayName = "joint_0.0"\n prepend apiSchemas = ["NewtonJointAPI"]'
    pin = joint("Revolute", "-a", HINGE, "?").replace("prepend apiSchemas = [?]", named)
    assert load(tmp_path, body("a"), pin).coordinate_names == ("joint_0.0",)


def test_numbers_of_newton_on_a_ball_are_named_as_left_out(tmp_path: Path) -> None:
    with warned(what="newton:friction of joints with several axes"):
        load(tmp_path, body("a"), joint("Spherical", "-a", "float newton:friction = 2\n"))


def test_an_axis_that_is_up_other_than_y_and_z_is_an_error(tmp_path: Path) -> None:
    with refused(allowed="Y, Z"):
        load(tmp_path, body("a"), joint("Revolute", "-a", HINGE), up="Q")


def test_a_second_scene_is_named_as_left_out(tmp_path: Path) -> None:
    scenes = "".join(f'def PhysicsScene "s{k}" {{\n float physics:gravityMagnitude = {k}\n}}\n' for k in (1, 2))
    with warned(what="physics scenes other than the first (/s2)"):
        robot = load(tmp_path, scenes, body("a"), joint("Revolute", "-a", HINGE))
    assert robot.gravity.tolist() == [0, 0, -1]


def test_gravity_that_newton_switches_off(tmp_path: Path) -> None:
    scene = 'def PhysicsScene "scene" {\n bool newton:gravityEnabled = false\n}\n'
    assert load(tmp_path, scene, body("a"), joint("Revolute", "-a", HINGE)).gravity.tolist() == [0, 0, 0]


STACKED = """<mujoco><worldbody><body name="a" pos="1 2 3">
<inertial pos="0.5 0 0" mass="2" diaginertia="0.1 0.2 0.3"/><joint name="slide" type="slide" axis="0 0 1"/>
<joint name="roll" axis="1 0 0"/><joint name="pitch" axis="0 1 0" pos="0.1 0.2 0.3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("ends", [("-a",) * 3, ("a-",) * 3, ("-a", "a-", "-a"), ("-a", "a-", "a-")])
def test_stacked_joints_of_newton_are_the_joints_of_a_body_of_mujoco(ends: tuple[str, ...], tmp_path: Path) -> None:
    """With jointsAddMobility; where the body is the first end, the others of each joint are the world's."""
    (tmp_path / "stacked.xml").write_text(STACKED)
    mjcf = torsor.load(tmp_path / "stacked.xml").to(device="casadi")
    root = ', "PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"'
    kinds = ("slide", "Prismatic", "Z", 0), ("roll", "Revolute", "X", 0), ("pitch", "Revolute", "Y", 1)
    joints = []
    for end, (name, kind, axis, at) in zip(ends, kinds, strict=True):
        own = end.index("a")
        world, anchor = 1 - own, at * np.array([0.1, 0.2, 0.3])
        places = {own: anchor, world: anchor + np.array([1, 2, 3])}
        inside = f'uniform token physics:axis = "{axis}"\n'
        inside += "".join(f"point3f physics:localPos{k} = {tuple(p.tolist())}\n" for k, p in places.items())
        joints.append(joint(kind, end, inside, name=name))
    part = body("a", "uniform bool newton:jointsAddMobility = true", more=root)
    robot = load(tmp_path, part, *(joints if ends[0] == "-a" else joints[::-1]))
    sign = np.array([1.0 if end == "-a" else -1.0 for end in ends])
    q, v = np.array([0.3, 0.4, 0.5]), np.array([0.7, -0.6, 0.2])
    order = [robot.coordinate_names.index(name) for name in mjcf.coordinate_names]
    assert robot.nv == 3
    assert not robot.loops
    back = np.argsort(order)
    M = np.outer(sign, sign) * robot.mass_matrix((sign * q)[back])[np.ix_(order, order)]
    np.testing.assert_allclose(M, mjcf.mass_matrix(q), rtol=1e-12, atol=1e-14)
    there = robot.inverse_dynamics((sign * q)[back], (sign * v)[back], np.zeros(3))[order]
    np.testing.assert_allclose(sign * there, mjcf.inverse_dynamics(q, v, np.zeros(3)), rtol=1e-12, atol=1e-13)


def test_stacked_joints_that_close_a_loop_are_refused(tmp_path: Path) -> None:
    root = ', "PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"'
    a = body("a", "uniform bool newton:jointsAddMobility = true", more=root)
    pins = [joint("Revolute", ends, HINGE, name=name) for ends, name in (("-a", "j1"), ("a-b", "j2"), ("a-c", "j3"))]
    closing = [joint("Revolute", "b-c", HINGE, name=name) for name in ("j4", "j5")]
    with refused(where="/j", what="it and 1 more between the same bodies close a loop"):
        load(tmp_path, a, body("b"), body("c"), *pins, *closing)


def test_what_is_left_out_is_named_in_one_warning(tmp_path: Path) -> None:
    drive = "float drive:angular:physics:stiffness = 100\n float drive:angular:physics:damping = 1\n"
    pin = joint("Revolute", "-a", HINGE + drive, '"PhysicsDriveAPI:angular"')
    rope = joint("Distance", "a-b", "float physics:maxDistance = 2\n", name="rope")
    cone = 'def Cone "hat" {}\n'
    parts = (
        body("a", cone),
        body("b"),
        pin,
        joint("Spherical", "a-b", "float physics:coneAngle0Limit = 30\n", name="ball"),
        rope,
    )
    with pytest.warns(ModelWarning) as record:
        robot = load(tmp_path, *parts)
    assert len(record) == 1
    for word in ("gains and targets of drives (pin)", "PhysicsDistanceJoint (rope)", "Cone (hat)", "cone limits"):
        assert word in str(record[0].message)
    assert robot.joints[0].spring is None
    with refused(what="gains and targets"):
        load(tmp_path, *parts, strict=True)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            (body("a"), joint("", "-a", "float limit:rotX:physics:high = 30\n", '"PhysicsLimitAPI:rotX"')),
            "limits of ball joints (pin)",
        ),
        (
            (
                body("a"),
                joint("Revolute", "-a", HINGE),
                joint("Revolute", "-a", HINGE + "float physics:upperLimit = 30\n", name="second"),
            ),
            "limits of joints that close loops (second)",
        ),
        (
            (
                body("a", 'def Sphere "s" {\ncolor3f[] primvars:displayColor = [(nan, 0, 0)]\n}'),
                joint("Revolute", "-a"),
            ),
            "colours that are not finite (s)",
        ),
    ],
)
def test_limits_and_colours_without_a_place_are_named_as_left_out(
    parts: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with warned(message):
        robot = load(tmp_path, *parts)
    assert all(visual.color is None for link in robot.links for visual in link.visuals)


def test_of_several_articulations_one_is_named(tmp_path: Path) -> None:
    root = ', "PhysicsArticulationRootAPI"'
    parts = [body(f"{k}1", more=root) + body(f"{k}2") + joint("Revolute", f"{k}1-{k}2", name=f"j{k}") for k in "ab"]
    with refused(fix="stage.usda#/a1"):
        load(tmp_path, *parts)
    with warned(what="bodies outside the articulation"):
        robot = torsor.load(f"{tmp_path / 'stage.usda'}#/b1")
    assert "jb" in robot.coordinate_names


def test_two_robots_of_one_scene_may_have_the_same_names(tmp_path: Path) -> None:
    root = ', "PhysicsArticulationRootAPI"'
    inside = [
        body("a", more=root)
        + body("b")
        + joint("Revolute", f"{k}/a-{k}/b", HINGE)
        + joint("Fixed", f"-{k}/a", name="weld")
        for k in "LR"
    ]
    both = [f'def Xform "{k}" {{\n{each}}}\n' for k, each in zip("LR", inside, strict=True)]
    with refused(what="2 articulations: /L/a, /R/a"):
        load(tmp_path, *both)
    for side in "LR":
        with warned(what="outside the articulation"):
            robot = torsor.load(f"{tmp_path / 'stage.usda'}#/{side}")
        assert (robot.coordinate_names, robot.base.name, robot.link_names) == (("pin",), "a", ("b",))


WRONG = {
    "no rigid body": ('def Xform "a" {}\n',),
    "physics:mass is 'nan'": (body("a", mass="nan"), joint("Revolute", "-a")),
    "limit:rotX:physics:high is 'nan'": (
        body("a"),
        joint("", "-a", "float limit:rotX:physics:high = nan\n", '"PhysicsLimitAPI:rotX"'),
    ),
    "mass": (body("a", mass="-1"), joint("Revolute", "-a")),
    "both ends are on /a": (body("a"), joint("Revolute", "a-a")),
    "is missing": (body("a"), joint("Revolute", "-b")),
    "quaternion other than 0": (body("a"), joint("Revolute", "-a", "quatf physics:localRot0 = (0, 0, 0, 0)")),
    "lower": (
        body("a"),
        joint("Revolute", "-a", "float physics:lowerLimit = 9\n float physics:upperLimit = 1\n"),
    ),
    "a number": (body("a"), joint("Revolute", "-a", "float physics:upperLimit = nan")),
    "its axis is 'W'": (body("a"), joint("Revolute", "-a", HINGE.replace("Y", "W"))),
    "USD rejects it": ("def {",),
    "Invalid xform": (body("a", 'uniform token[] xformOpOrder = ["xformOp:%"]'), joint("Revolute", "-a")),
    "newton:damping is 'abc'": (
        body("a"),
        joint("Revolute", "-a", 'string newton:damping = "abc"\n'),
    ),
    "physics:localRot0 is 'x'": (
        body("a"),
        joint("Revolute", "-a", 'string physics:localRot0 = "x"\n'),
    ),
    "excludeFromArticulation is 'no'": (
        body("a"),
        joint("Revolute", "-a", 'string physics:excludeFromArticulation = "no"\n'),
    ),
    "it mimics /pin, itself": (body("a"), joint("Revolute", "-a", "rel newton:mimicJoint = </pin>\n")),
    "mimics /pin, /q, which are several": (
        body("a"),
        joint("Revolute", "-a", "rel newton:mimicJoint = [</pin>, </q>]\n"),
    ),
    "principalAxes is": (
        body("a", "quatf physics:principalAxes = (nan, 0, 0, 0)\n"),
        joint("Revolute", "-a"),
    ),
    "mirrors": (
        body("a", 'double3 xformOp:scale = (1, -1, 1)\n uniform token[] xformOpOrder = ["xformOp:scale"]'),
        joint("Revolute", "-a"),
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_stages_are_errors_with_words(message: str, tmp_path: Path) -> None:
    with refused(message):
        load(tmp_path, *WRONG[message])


@pytest.mark.parametrize(
    "data", ['double mass = 2\n string inertia = "x"', "dictionary motor = {}", "string[] placement = []"]
)
def test_hostile_data_beside_the_schema_is_refused_or_not_used(data: str, tmp_path: Path) -> None:
    more = f"customData = {{ dictionary torsor = {{\n double armature = 0\n {data}\n }} }}"
    part = body("a").replace("(prepend", f"(\n{more}\n prepend")
    pin = joint("Revolute", "-a", HINGE).replace('"pin" (', f'"pin" (\n{more}\n')
    try:
        load(tmp_path, part, pin)
    except ModelError as error:
        assert "customData" in str(error)


@pytest.mark.parametrize("asset", ["/etc/passwd", "../secret.usda", "https://example.org/a.usda", "missing.usda"])
@pytest.mark.parametrize("arc", ["references", "payload"])
def test_stages_may_only_refer_to_files_beside_them(asset: str, arc: str, tmp_path: Path) -> None:
    (tmp_path / "secret.usda").write_text("#usda 1.0\n")
    folder = tmp_path / "mine"
    folder.mkdir()
    with refused(what="it refers to"):
        load(folder, f'def "a" (prepend {arc} = @{asset}@) {{}}\n')


def test_instances_of_prims_of_the_same_stage_have_the_shapes_of_these(tmp_path: Path) -> None:
    instance = 'def Xform "collisions" (\n instanceable = true\n prepend references = </box>\n) {\n}\n'
    cube = 'def Cube "cube" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n double size = 20\n}\n'
    parts = body("rod", instance), joint("Revolute", "-rod", HINGE), f'over "box" {{\n{cube}}}\n'
    robot = load(tmp_path, *parts, m=0.01)
    assert [(each.shape, *each.size) for each in robot.links[0].shapes] == [("box", 0.2, 0.2, 0.2)]
    assert torsor.load(f"{tmp_path}/stage.usda#rod").links[0].mass == 2.0  # the first / may be left out


def test_files_beside_a_stage_are_composed_and_cycles_are_errors(tmp_path: Path) -> None:
    part = HEAD.format(m=1, kg=1, up="Z").replace("(\n", '(\n    defaultPrim = "arm"\n')
    (tmp_path / "part.usda").write_text(part + body("arm").replace('def Xform "arm"', 'def Xform "arm"'))
    robot = load(tmp_path, 'def "rod" (prepend references = @./part.usda@) {}\n', joint("Revolute", "-rod", HINGE))
    assert robot.links[0].mass == 2.0
    (tmp_path / "part.usda").write_text(part + 'def "arm" (prepend references = @./stage.usda@</rod>) {}\n')
    with refused(what="cannot be composed"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(tmp_path, 'def "rod" (prepend references = @./part.usda@) {}\n', joint("Revolute", "-rod", HINGE))


def test_attributes_of_mujoco_give_rotor_inertia_friction_and_spring(tmp_path: Path) -> None:
    numbers = {"armature": 0.4, "damping": 0.7, "frictionloss": 0.2, "stiffness": 3, "springref": 30, "ref": 10}
    inside = "".join(f"double mjc:{key} = {value}\n" for key, value in numbers.items())
    robot = load(tmp_path, body("rod"), joint("Revolute", "-rod", HINGE + inside, '"MjcJointAPI"'))
    q, v, a = 0.3, 0.5, 1.7
    rod = (0.2 + 2 * 0.25 + 0.4) * a - 2 * 9.81 * 0.5 * np.cos(q)
    expected = rod + 0.7 * v + 0.2 + 3 * (q + np.radians(10) - np.radians(30))  # per rad; its angles are in degrees
    assert robot.inverse_dynamics([q], [v], [a])[0] == pytest.approx(expected, rel=1e-12)


def test_a_slide_with_attributes_of_mujoco_is_in_stage_units(tmp_path: Path) -> None:
    """In centimetres: forces over lengths are in kg/s^2 and forces over velocities in kg/s, whatever the unit is."""
    inside = "double mjc:damping = 7\n double mjc:stiffness = 3\n double mjc:springref = 50\n double mjc:armature = 2\n"
    slide = joint("Prismatic", "-rod", 'uniform token physics:axis = "X"\n' + inside)
    robot = load(tmp_path, body("rod"), slide, m=0.01)
    q, v, a = 0.3, 0.5, 1.7
    assert robot.inverse_dynamics([q], [v], [a])[0] == pytest.approx((2 + 2) * a + 7 * v + 3 * (q - 0.5), rel=1e-12)


GEAR = 'def {} "gear" {{\n rel physics:body0 = </rod>\n rel physics:body1 = </tip>\n float physics:gearRatio = 2\n}}\n'
FEATURES = {
    "a gear": (GEAR.format("PhysxPhysicsGearJoint"), "joints of the kind PhysxPhysicsGearJoint (gear)"),
    "a rack": (GEAR.format("PhysxPhysicsRackAndPinionJoint"), "PhysxPhysicsRackAndPinionJoint (gear)"),
    "a tendon of MuJoCo": ('def MjcTendon "cable" {\n double mjc:stiffness = 5\n}\n', "tendons (cable)"),
    "no gravity": ("bool physxRigidBody:disableGravity = 1", "physxRigidBody:disableGravity (rod)"),
    "linear damping": ("float physxRigidBody:linearDamping = 0.1", "physxRigidBody:linearDamping (rod)"),
    "angular damping": ("float physxRigidBody:angularDamping = 0.1", "physxRigidBody:angularDamping (rod)"),
    "gravity compensation": ("double mjc:gravcomp = 1", "mjc:gravcomp (rod)"),
    "a force": ("vector3f physxForce:force = (1, 0, 0)", "forces of PhysxForceAPI (rod)"),
    "a tendon": ("float physxTendon:t0:stiffness = 5", "tendons (rod)"),
}


@pytest.mark.parametrize(("text", "named"), FEATURES.values(), ids=FEATURES)
def test_forces_of_engines_that_are_not_read_are_named(tmp_path: Path, text: str, named: str) -> None:
    prim = text.startswith("def ")
    parts = body("rod", "" if prim else text), joint("Revolute", "-rod", HINGE), text if prim else ""
    with warned(what=named):
        load(tmp_path, *parts)
    with refused(what=named):
        load(tmp_path, *parts, strict=True)


UNREAD_DRIVES = {
    "without a schema": ("Revolute", HINGE, "", "angular"),
    "of another axis": ("Revolute", HINGE, '"PhysicsDriveAPI:linear"', "linear"),
    "of a ball": ("Spherical", "", '"PhysicsDriveAPI:rotX"', "rotX"),
}


@pytest.mark.parametrize(("kind", "inside", "api", "drive"), UNREAD_DRIVES.values(), ids=UNREAD_DRIVES)
def test_drives_that_are_not_read_are_named(tmp_path: Path, kind: str, inside: str, api: str, drive: str) -> None:
    force = f"float drive:{drive}:physics:maxForce = -5\n"
    with warned(what="drives without PhysicsDriveAPI, or of axes that have none (pin)"):
        load(tmp_path, body("rod"), joint(kind, "-rod", inside + force, api))


def test_a_negative_limit_of_a_drive_is_refused(tmp_path: Path) -> None:
    force = "float drive:angular:physics:maxForce = -5\n"
    with refused(argument="effort_limit", where="pin", allowed="0 or more"):
        load(tmp_path, body("rod"), joint("Revolute", "-rod", HINGE + force, '"PhysicsDriveAPI:angular"'))


def test_what_has_no_effect_is_not_named(tmp_path: Path) -> None:
    inside = (
        "bool physxRigidBody:disableGravity = 0\n float physxRigidBody:angularDamping = 0\n double mjc:gravcomp = 0"
    )
    assert load(tmp_path, body("rod", inside), joint("Revolute", "-rod", HINGE)).nv == 1


def test_a_shape_of_size_0_is_left_out_and_named(tmp_path: Path) -> None:
    shape = 'def Sphere "dot" {\n double radius = 0\n}\n'
    with warned(what="shapes of size 0 (dot)"):
        robot = load(tmp_path, body("rod", shape), joint("Revolute", "-rod", HINGE))
    assert not robot.links[0].visuals
