"""A robot changed by an edit equals the robot that is described that way from the beginning.

Each is called once or twice, and in CasADi's virtual machine: machine code is tested elsewhere.
"""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.spatial import from_rpy, inverse_pose, make_pose

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]


def random_state(robot: torsor.Robot, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    return q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(initial=0), 1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fixed_joint_gives_the_dynamics_of_a_joint_that_does_not_move(seed: int) -> None:
    robot = torsor.library.random_tree(9, seed).to(device="casadi")
    free = robot.without_friction()
    for i, joint in enumerate(robot.joints):
        if joint.follows:
            continue
        q, v, a = random_state(robot, seed)
        slices = robot.coordinates[i]
        held = robot.fix(joint.name, q[slices.q])
        motor = robot.motor_coordinates.get(joint.name, slices)  # held too
        rest = np.setdiff1d(np.arange(robot.nv), np.r_[slices.v, motor.v])
        v[slices.v] = a[slices.v] = v[motor.v] = a[motor.v] = 0
        tau = free.inverse_dynamics(q, v, a)
        fewer = np.delete(q, np.r_[slices.q, motor.q])
        assert_close(held.without_friction().inverse_dynamics(fewer, v[rest], a[rest]), tau[rest])
        assert_close(held.pose(fewer, joint.child), robot.pose(q, joint.child))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_payload_acts_as_the_external_wrench_of_its_inertia(seed: int) -> None:
    robot = torsor.library.random_tree(7, seed).to(device="casadi")
    q, v, a = random_state(robot, seed)
    frame = make_pose(from_rpy([0.3, 0.2, -0.8]), [0.1, -0.2, 0.3])
    robot = robot.with_frame("grip", robot.link_names[-1], frame)
    mass, com, inertia = 2.5, np.array([0.05, 0.1, -0.02]), np.diag([0.02, 0.03, 0.04])
    acceleration, (w, _) = robot.acceleration(q, v, a, "grip"), np.split(robot.velocity(q, v, "grip"), 2)
    wd, point = np.split(acceleration, 2)
    R = robot.pose(q, "grip")[:3, :3]
    force = mass * (point + np.cross(wd, com) + np.cross(w, np.cross(w, com)) - R.T @ robot.gravity)
    moment = inertia @ wd + np.cross(w, inertia @ w) + np.cross(com, force)
    extra = robot.jacobian(q, "grip").T @ np.r_[moment, force]
    loaded = robot.with_payload("grip", mass, com, inertia)
    assert_close(loaded.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a) + extra)
    assert robot.mass + mass == pytest.approx(loaded.mass)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_attached_robot_moves_with_the_frame_that_carries_it(seed: int) -> None:
    arm, tool = (torsor.library.random_tree(*each).to(device="casadi") for each in ((5, seed), (4, seed + 10)))
    pose = make_pose(from_rpy([0.5, -0.1, 0.2]), [0.2, 0.0, 0.1])
    both = arm.with_frame("flange", arm.link_names[-1], pose).attach(tool, at="flange", prefix="tool/")
    assert both.nv == arm.nv + tool.nv
    assert both.joint_names == (*arm.joint_names, *(f"tool/{name}" for name in tool.joint_names))
    q, v, a = random_state(both, seed)
    mine = np.isin(both.coordinate_names, arm.coordinate_names)
    v[mine] = a[mine] = 0  # with the arm at rest, the tool stands on a tilted base
    its = np.isin(both.position_names, arm.position_names)
    q_arm, q_tool = q[its], q[~its]
    T = arm.pose(q_arm, arm.link_names[-1]) @ pose
    tilted = tool.with_gravity(T[:3, :3].T @ arm.gravity)
    assert_close(both.inverse_dynamics(q, v, a)[~mine], tilted.inverse_dynamics(q_tool, v[~mine], a[~mine]))
    assert_close(both.pose(q, f"tool/{tool.link_names[-1]}"), T @ tool.pose(q_tool, tool.link_names[-1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_subtree_moves_as_it_does_on_the_robot_at_rest(seed: int) -> None:
    robot = torsor.library.random_tree(10, seed, branching=0.5, extras=False).to(device="casadi")
    q, v, a = random_state(robot, seed)
    for link in robot.link_names[::3]:
        part = robot.subtree(link)
        index = [robot.joint_names.index(name) for name in part.joint_names]
        rows = np.concatenate([np.r_[robot.coordinates[i].v] for i in index])
        positions = np.concatenate([np.r_[robot.coordinates[i].q] for i in index])
        vp, ap = np.zeros(robot.nv), np.zeros(robot.nv)
        vp[rows], ap[rows] = v[rows], a[rows]
        parent = robot.joint(part.joint_names[0]).parent
        R = robot.pose(q, parent)[:3, :3]
        tilted = part.with_gravity(R.T @ robot.gravity)
        expected = robot.inverse_dynamics(q, vp, ap)[rows]
        assert_close(tilted.inverse_dynamics(q[positions], v[rows], a[rows]), expected)


@pytest.mark.filterwarnings("ignore:the rotor of")  # the base has no inertia of its own, and carries motors
@pytest.mark.parametrize("seed", SEEDS)
def test_a_floating_base_at_rest_is_a_fixed_one(seed: int, tmp_path) -> None:
    robot = torsor.library.random_tree(6, seed).to(device="casadi")
    robot.save(tmp_path / "robot.toml")
    floating = torsor.load(tmp_path / "robot.toml", base="floating").to(device="casadi")
    assert floating.nv == robot.nv + 6
    assert floating.coordinate_names[:6] == ("root/wx", "root/wy", "root/wz", "root/vx", "root/vy", "root/vz")
    q, v, a = random_state(robot, seed)
    still = np.zeros(6)
    tau = floating.inverse_dynamics(np.r_[[0.3, -2.0, 1.0, 0, 0, 0, 1], q], np.r_[still, v], np.r_[still, a])
    assert_close(tau[6:], robot.inverse_dynamics(q, v, a))


@pytest.mark.filterwarnings("ignore:.*URDF cannot express rotor inertias", "ignore:.*SDF cannot express a free base")
@pytest.mark.parametrize("suffix", [".toml", ".urdf", ".xml", ".sdf", ".usda"])
def test_a_robot_never_gets_two_floating_bases(suffix: str, tmp_path) -> None:
    pytest.importorskip({".xml": "mujoco", ".usda": "pxr"}.get(suffix, "numpy"))
    robot, path = torsor.library.quadruped(), tmp_path / f"dog{suffix}"
    robot.save(path)
    if suffix in (".sdf", ".usda"):  # a free base is implicit in SDF; a free articulation in USD stays free
        assert torsor.load(path, base="floating").nv == robot.nv
        return
    assert torsor.load(path).nv == robot.nv
    fields = {"allowed": "one body without joints"} if suffix == ".xml" else {"argument": "base", "fix": "omit `base`"}
    with refused(where=path.name, **fields):
        torsor.load(path, base="floating")


def test_a_frame_on_a_frame_is_their_product() -> None:
    robot = torsor.library.stanford().to(device="casadi")
    A, B = make_pose(from_rpy([0.1, 0, 0]), [1, 2, 3]), make_pose(from_rpy([0, 0.2, 0]), [3, 2, 1])
    robot = robot.with_frame("a", "link6", A).with_frame("b", "a", B)
    q = np.linspace(0, 1, 6)
    assert_close(robot.pose(q, "b"), robot.pose(q, "link6") @ A @ B)
    assert_close(robot.with_frame("floor", "base", B).pose(q, "floor"), B)


def test_fixing_a_leader_fixes_what_follows_it() -> None:
    finger = torsor.Link("finger", mass=0.1, com=(0, 0, 0.05), inertia=1e-4 * np.eye(3))
    twin = torsor.Link("twin", mass=0.1, com=(0, 0, 0.05), inertia=1e-4 * np.eye(3))
    joints = [
        torsor.Joint("open", "prismatic", "palm", "finger", axis=(1, 0, 0)),
        torsor.Joint("mirror", "prismatic", "palm", "twin", axis=(1, 0, 0), coordinate="open", ratio=-2.0, offset=0.5),
    ]
    hand = torsor.build("hand", [torsor.Link("palm"), finger, twin], joints)
    assert hand.nv == 1
    held = hand.fix("open", 0.1)
    assert held.nv == 0
    assert_close(held.pose(np.zeros(0), "twin")[:3, 3], np.array([0.3, 0, 0]))
    assert_close(held.pose(np.zeros(0), "finger")[:3, 3], np.array([0.1, 0, 0]))


def test_edits_do_not_change_the_robot() -> None:
    robot = torsor.library.six_axis_arm()
    copy = torsor.library.six_axis_arm()
    robot.fix("joint3", 0.2)
    robot.with_payload("link6", 1.0)
    robot.with_gravity((0, 0, 0))
    robot.with_friction("joint1", coulomb=9.0)
    robot.attach(copy, at="link6", prefix="x/")
    robot.subtree("link4")
    assert robot == copy


def test_inverse_pose_is_the_inverse() -> None:
    T = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])
    assert_close(inverse_pose(T) @ T, np.eye(4))
