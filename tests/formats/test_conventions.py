"""Coordinates of other programs, against MuJoCo, Pinocchio and closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from bench.twins import mujoco_mass_matrix
from refusals import refused
from robots import robot_file
from torsor.formats import Convention
from torsor.formats.conventions import PROGRAMS
from torsor.mechanism import Frame, Joint, Link
from torsor.spatial import from_quaternion, make_pose

TOLERANCE = 1e-10
FILES = Path(__file__).parents[1] / "data" / "mjcf"
WORLD = ("isaaclab", "isaaclab3", "newton")
SOLID = (2.0, (0.3, -0.2, 0.1), np.array([[0.5, 0.1, 0.0], [0.1, 0.6, 0.05], [0.0, 0.05, 0.7]]))


def body() -> torsor.Robot:
    """Return a rigid body that floats."""
    links = [Link("world"), Link("body", *SOLID)]
    return torsor.build("body", links, [Joint("root", "free", "world", "body")]).to(device="casadi")


def limbs(*kinds: str) -> torsor.Robot:
    """Return a floating body with two limbs, each of which has one joint of every kind."""
    links, joints = [Link("world"), Link("body", *SOLID)], [Joint("root", "free", "world", "body")]
    for side in ("right", "left"):
        parent = "body"
        for k, kind in enumerate(kinds):
            name = f"{side}_{k}"
            at = make_pose(from_quaternion(np.array([0.1, 0.2, -0.3, 0.9])), [0.1, 0.2 * k, 0.3])
            links.append(Link(name, *SOLID))
            joints.append(Joint(name, kind, parent, name, at, axis=np.array([1.0, 2.0, 3.0])))
            parent = name
    return torsor.build("limbs", links, joints).to(device="casadi")


def states(robot: torsor.Robot, count: int = 3) -> tuple[Any, Any, Any]:
    """Return random states (count, ...)."""
    rng = np.random.default_rng(7)
    q = [robot.integrate(robot.neutral(), rng.uniform(-2, 2, robot.nv)) for _ in range(count)]
    return np.array(q), *rng.normal(size=(2, count, robot.nv))


def assert_equal(found: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["balls.xml", "swarm.xml", "satellite.xml", "walker.xml"])
def test_numbers_in_coordinates_of_mujoco_are_those_of_mujoco(name: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(FILES / name))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_frictionloss[:] = 0.0  # a constraint in MuJoCo
    data, robot = mujoco.MjData(model), torsor.load(model).to(device="casadi")
    their, (q, v, _) = Convention(robot, "mujoco"), states(robot)
    at, rates = their.theirs(q, v)
    own = their.ours(at, rates, np.zeros_like(rates))
    bias = their.forces(q, robot.inverse_dynamics(*own))
    masses = their.mass_matrix(q, robot.mass_matrix(q))
    place, body_id = robot.link_names[-1], mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, robot.link_names[-1])
    J = their.jacobian(q, robot.jacobian(q, place, axes="aligned"))
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = at[k], rates[k]
        mujoco.mj_forward(model, data)
        rows = np.zeros((2, 3, model.nv))
        mujoco.mj_jacBody(model, data, *rows, body_id)
        assert_equal(masses[k], mujoco_mass_matrix(model, data))
        assert_equal(bias[k], data.qfrc_bias - data.qfrc_passive)
        assert_equal(J[k], np.vstack(rows))


def test_a_file_has_the_coordinates_of_pinocchio_if_the_names_of_its_joints_are_given() -> None:
    pin = pytest.importorskip("pinocchio")
    path = robot_file("talos_reduced.urdf")
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    robot = torsor.load(path, base="floating").without_friction().to(device="casadi")
    with refused(what="depends on fixed joints", fix="joints=model.names"):
        Convention(torsor.load(path), "pinocchio")
    their, (q, v, a) = Convention(robot, "pinocchio", model.names), states(robot, 1)
    assert list(their.joint_names[1:]) == list(model.names)[2:]
    at = [x[0] for x in their.theirs(q, v, a)]
    M = np.triu(pin.crba(model, model.createData(), at[0]))
    assert_equal(their.mass_matrix(q, robot.mass_matrix(q))[0], M + np.triu(M, 1).T)
    force = pin.rnea(model, model.createData(), *at)
    assert_equal(their.forces(q, robot.inverse_dynamics(q, v, a))[0], force)


def test_joints_of_pinocchio_are_sorted_by_name() -> None:
    pin = pytest.importorskip("pinocchio")
    path = robot_file("solo12.urdf")
    model, robot = pin.buildModelFromUrdf(str(path)), torsor.load(path)
    bare = torsor.build(robot.name, [robot.base, *robot.links], robot.joints)  # without frames of fixed joints
    assert list(Convention(bare, "pinocchio").joint_names) == list(model.names)[1:]


@pytest.mark.parametrize("program", WORLD)
def test_a_rigid_body_has_the_equations_of_newton_and_euler_in_world_axes(program: str) -> None:
    robot = body()
    (mass, com, inertia), their, (q, v, _) = SOLID, Convention(robot, program), states(robot)
    at, rates = their.theirs(q, v)
    place = [3, 4, 5, 6] if program != "isaaclab" else [4, 5, 6, 3]
    np.testing.assert_array_equal(at[:, :3], q[:, :3])
    np.testing.assert_array_equal(at[:, place], q[:, 3:])
    masses = their.mass_matrix(q, robot.mass_matrix(q))
    forces = their.forces(q, robot.inverse_dynamics(*their.ours(at, rates, np.zeros_like(rates))))
    for k in range(len(q)):
        R = from_quaternion(q[k, 3:])
        omega, world = R @ v[k, :3], R @ inertia @ R.T
        assert_equal(rates[k], np.r_[R @ (v[k, 3:] + np.cross(v[k, :3], com)), omega])
        assert_equal(masses[k], np.block([[mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), world]]))
        assert_equal(forces[k], np.r_[0, 0, 9.81 * mass, np.cross(omega, world @ omega)])


@pytest.mark.parametrize("program", WORLD)
def test_velocities_and_accelerations_are_rates_of_the_pose_of_the_base(program: str) -> None:
    robot = limbs("revolute", "prismatic")
    com, h = (0.2, 0.1, -0.3), 1e-4
    their, (q, v, a) = Convention(robot, program, com=com), (x[0] for x in states(robot, 1))
    _, rates, accelerations = their.theirs(q, v, a)

    def pose(t: float) -> Any:
        return robot.pose(robot.integrate(q, t * v), "body")

    rate = (8 * (pose(h) - pose(-h)) - (pose(2 * h) - pose(-2 * h))) / (12 * h)
    assert_equal(rates[:3], (rate @ [*com, 1.0])[:3])
    spin = rate[:3, :3] @ pose(0.0)[:3, :3].T
    assert_equal(rates[3:6], [spin[2, 1], spin[0, 2], spin[1, 0]])

    def velocity(t: float) -> Any:
        return their.theirs(robot.integrate(q, t * v + t * t / 2 * a), v + t * a)[1]

    # The position is exact to t^2 only if v is constant in body axes; the error of the rates is odd in t.
    assert_equal(accelerations, (velocity(h) - velocity(-h)) / (2 * h), 1e-6)


def test_velocities_of_ball_joints_are_in_the_axes_before_the_joint_in_newton() -> None:
    links = [Link("world"), Link("arm", *SOLID)]
    robot = torsor.build("ball", links, [Joint("ball", "spherical", "world", "arm")]).to(device="casadi")
    q = states(robot, 1)[0][0]
    J = robot.jacobian(q, "arm", axes="aligned")
    assert_equal(Convention(robot, "newton").jacobian(q, J)[3:], np.eye(3))


@pytest.mark.parametrize("program", PROGRAMS)
def test_states_and_forces_come_back_and_batches_are_single_states(program: str) -> None:
    kinds = ("revolute", "spherical", "continuous", "planar")
    robot = limbs(*(kind for kind in kinds if kind not in PROGRAMS[program].excluded))
    their, (q, v, a) = Convention(robot, program), states(robot)
    found = their.theirs(q, v, a)
    for back, expected in zip(their.ours(*found), (q, v, a), strict=True):
        turns = [k for k, name in enumerate(robot.position_names) if back is not q and back.shape == q.shape]
        difference = back - expected
        if turns:  # angles, which Pinocchio has as (cos, sin)
            difference = (difference + np.pi) % (2 * np.pi) - np.pi
        assert_equal(difference, np.zeros_like(difference), 1e-14)
    tau = robot.inverse_dynamics(q, v, a)
    forces = their.forces(q, tau)
    assert_equal(their.own_forces(q, forces), tau, 1e-14)
    assert_equal((forces * found[1]).sum(axis=-1), (tau * v).sum(axis=-1), 1e-14)  # power
    J, M = robot.jacobian(q, robot.link_names[-1]), robot.mass_matrix(q)
    for k in range(len(q)):
        for batch, single in zip(found, their.theirs(q[k], v[k], a[k]), strict=True):
            np.testing.assert_array_equal(batch[k], single)
        np.testing.assert_array_equal(their.jacobian(q, J)[k], their.jacobian(q[k], J[k]))
        np.testing.assert_array_equal(their.mass_matrix(q, M)[k], their.mass_matrix(q[k], M[k]))


def test_joints_are_in_the_order_of_the_program() -> None:
    robot = limbs("revolute", "prismatic")
    orders = {
        "mujoco": ["right_0", "right_1", "left_0", "left_1"],
        "pinocchio": ["left_0", "left_1", "right_0", "right_1"],
        "isaaclab": ["right_0", "left_0", "right_1", "left_1"],
        "newton": ["right_0", "right_1", "left_0", "left_1"],
    }
    q = np.arange(robot.nq)
    for program, names in orders.items():
        their = Convention(robot, program)
        assert list(their.joint_names) == ["root", *names]
        assert their.theirs(q)[7:].tolist() == [robot.position_names.index(name) for name in names]
    names = ["left_0", "right_0", "left_1", "right_1"]
    for root in ([], ["root"], ["universe", "root_joint"]):
        assert list(Convention(robot, "newton", [*root, *names]).joint_names) == ["root", *names]


def test_what_a_program_cannot_express_is_refused() -> None:
    robot = limbs("revolute")
    with refused("program", allowed="newton"):
        Convention(robot, "bullet")
    with refused(what="no joint 'left'", allowed="left_0"):
        Convention(robot, "mujoco", ["left", "right_0"])
    with refused("joints", what="right_0"):
        Convention(robot, "mujoco", ["left_0"])
    with refused("com", fix="omit"):
        Convention(robot, "mujoco", com=np.zeros(3))
    with refused(what="is spherical"):
        Convention(limbs("spherical"), "isaaclab")
    with refused("v", allowed="8"):
        Convention(robot, "mujoco").theirs(robot.neutral(), np.zeros(7))
    with refused(what="'tip' follows 'left_0'"):
        tip = Joint("tip", "revolute", "left_0", "tip", coordinate="left_0")
        links, joints = [robot.base, *robot.links, Link("tip")], [*robot.joints, tip]
        Convention(torsor.build("follower", links, joints, [Frame("end", "tip")]), "mujoco")
    with refused(what="not at the origin of the base"):
        moved = Joint("root", "free", "world", "body", make_pose(p=[1, 0, 0]))
        Convention(torsor.build("moved", [Link("world"), Link("body", *SOLID)], [moved]), "isaaclab")
