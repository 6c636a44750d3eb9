"""Inverse kinematics: forward kinematics of the result is the target, for every kind of target, joint and loop."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.inverse_kinematics import CenterOfMass, Direction, LookAt, Orientation, Pose, Position, Target
from torsor.spatial import exp_so3, make_pose

ARM = torsor.library.six_axis_arm()
TRACED = ARM.to(device="casadi")  # not compiled: for targets that are solved once
HAND = "link6"


def random_postures(robot: torsor.Robot, count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(robot.lower, robot.upper, (count, robot.nq))


def test_random_poses_are_solved_within_limits() -> None:
    poses = ARM.pose(random_postures(ARM, 12).reshape(3, 4, 6), HAND)
    found = torsor.inverse_kinematics(ARM, {HAND: poses})
    assert found.q.shape == (3, 4, 6)
    assert found.error.shape == found.solved.shape == (3, 4)
    assert found.solved.all()
    np.testing.assert_allclose(ARM.pose(found.q, HAND), poses, atol=1e-9)
    assert (found.q >= ARM.lower).all() and (found.q <= ARM.upper).all()
    assert (found.status == "solved").all() and found.cause((0, 1)) == ""


def test_a_batch_of_starts_and_an_empty_batch() -> None:
    q = random_postures(ARM, 5)
    there = ARM.pose(q[0], HAND)
    found = torsor.inverse_kinematics(ARM, {HAND: there}, q0=q)
    assert found.q.shape == (5, 6) and found.solved.all()
    np.testing.assert_array_equal(found.q[0], q[0])  # a start that is a solution stays
    empty = torsor.inverse_kinematics(ARM, {HAND: np.zeros((0, 3))})
    assert empty.q.shape == (0, 6) and empty.solved.shape == (0,)


def test_other_targets_are_met() -> None:
    R = exp_so3([0.3, -0.8, 0.5])
    turned = torsor.inverse_kinematics(TRACED, [Orientation(HAND, R)])
    np.testing.assert_allclose(ARM.pose(turned.q, HAND)[:3, :3], R, atol=1e-8)
    p = ARM.pose(random_postures(ARM, 1)[0], HAND)[:3, 3]
    both = torsor.inverse_kinematics(
        TRACED, [Position(HAND, p, point=(0.0, 0.1, 0.0)), Direction(HAND, (0, 0, 2), (0, 1, -1))]
    )
    T = ARM.pose(both.q, HAND)
    assert both.solved
    np.testing.assert_allclose(T[:3, :3] @ [0, 0.1, 0] + T[:3, 3], p, atol=1e-8)
    np.testing.assert_allclose(T[:3, 2], np.array([0, 1, -1]) / np.sqrt(2), atol=1e-8)
    point = np.array([0.4, 1.0, 0.3])
    look = ARM.pose(torsor.inverse_kinematics(TRACED, [LookAt(HAND, point, axis=(1, 0, 0))]).q, HAND)
    toward = (point - look[:3, 3]) / np.linalg.norm(point - look[:3, 3])
    np.testing.assert_allclose(look[:3, 0], toward, atol=1e-8)


def test_every_kind_of_joint_and_floating_bases() -> None:
    tree = torsor.library.random_tree(7, seed=1).to(device="casadi")
    q = tree.integrate(tree.neutral(), np.random.default_rng(0).uniform(-1, 1, (3, tree.nv)))
    last = tree.link_names[-1]
    found = torsor.inverse_kinematics(tree, {last: tree.pose(q, last)}, limits=False)
    assert found.solved.all()
    np.testing.assert_allclose(tree.pose(found.q, last), tree.pose(q, last), atol=1e-8)


def test_loops_stay_closed_where_a_target_is_out_of_reach() -> None:
    robot = torsor.library.five_bar().to(device="casadi")
    there = robot.pose(robot.closed.closure.reference, "link2_tip")[:3, 3]
    near = torsor.inverse_kinematics(robot, {"link2_tip": there})
    assert near.solved and np.abs(robot.closed.error(near.q)).max() < 1e-9
    far = torsor.inverse_kinematics(robot, {"link2_tip": there + np.array([3.0, 0, 0])}, restarts=2)
    assert not far.solved and np.abs(robot.closed.error(far.q)).max() < 1e-9
    assert "the loops do not allow a closer posture" in far.cause()


def test_unreachable_targets_give_the_nearest_posture_and_say_so() -> None:
    arm = torsor.library.planar_chain(2).to(device="casadi")
    tip = arm.link_names[-1]
    reach = np.linalg.norm(arm.pose(arm.neutral(), tip)[:3, 3])
    plane = arm.pose(np.array([0.3, 0.4]), tip)[:3, 3] - arm.pose(np.array([0.3, 0.4]), arm.link_names[0])[:3, 3]
    goal = 5 * plane / np.linalg.norm(plane)
    far = torsor.inverse_kinematics(arm, {tip: goal}, restarts=3)
    assert not far.solved
    np.testing.assert_allclose(far.error, 5 - reach, atol=1e-9)
    assert far.cause() == f"the position of '{tip}' is missed by {5 - reach:.3g} m: it is out of reach"


def test_the_limit_that_holds_a_posture_back_is_named() -> None:
    arm = torsor.library.panda(hand=False).to(device="casadi")
    q = arm.neutral() + 0.0
    q[3] = -1.5
    q[0] = arm.upper[0] + 0.2
    found = torsor.inverse_kinematics(arm, {"panda_link1": arm.pose(q, "panda_link1")})
    assert not found.solved and found.status == "limits"
    np.testing.assert_allclose(found.error, 0.2, atol=1e-9)
    assert found.limits.tolist() == [True] + [False] * 6
    assert "joint limits block it: panda_joint1 at 2.8" in found.cause()


def test_hard_targets_hold_and_contradictions_are_named() -> None:
    arm = torsor.library.planar_chain(3).to(device="casadi")
    hand, elbow = arm.link_names[-1], arm.link_names[-2]
    goal, other = (arm.pose(q, place)[:3, 3] for q, place in (([0.3, 0.5, 0.4], hand), ([2.0, 0.2, 0.1], elbow)))
    found = torsor.inverse_kinematics(arm, [Position(hand, goal, hard=True), Position(elbow, other)], restarts=3)
    assert not found.solved
    np.testing.assert_allclose(arm.pose(found.q, hand)[:3, 3], goal, atol=1e-9)
    assert "each target can be met alone, so they contradict each other" in found.cause()


def test_weights_decide_between_targets_that_contradict() -> None:
    arm = torsor.library.planar_chain(1).to(device="casadi")
    tip = arm.link_names[-1]
    T = arm.pose([[0.3], [0.9]], tip)
    both = [Orientation(tip, T[0, :3, :3], weight=2.0), Orientation(tip, T[1, :3, :3])]
    found = torsor.inverse_kinematics(arm, both, restarts=0, q0=[0.5])
    np.testing.assert_allclose(found.q, [(4 * 0.3 + 0.9) / 5], atol=1e-9)


def test_only_ratios_of_weights_and_no_lengths_of_directions_matter() -> None:
    arm = torsor.library.planar_chain(2).to(device="casadi")
    there = arm.pose([0.4, 0.9], "link2")
    plain = torsor.inverse_kinematics(arm, [Pose("link2", there)])
    for weight in (1e-200, 1e200):
        np.testing.assert_array_equal(torsor.inverse_kinematics(arm, [Pose("link2", there, weight=weight)]).q, plain.q)
    far = torsor.inverse_kinematics(arm, [Direction("link2", (1, 0, 0), 1e300 * there[:3, 0])])
    assert far.solved
    np.testing.assert_allclose(arm.pose(far.q, "link2")[:3, 0], there[:3, 0], atol=1e-8)


def test_the_posture_is_a_stationary_point_of_the_distance() -> None:
    robot = torsor.library.planar_chain(4).to(device="casadi")
    place = robot.link_names[-1]
    q = np.array([0.3, 0.5, -0.7, 0.4])
    wanted = q + np.array([0.2, -0.1, 0.2, 0.3])
    found = torsor.inverse_kinematics(robot, {place: robot.pose(q, place)}, q0=q, posture=wanted)
    assert found.solved
    assert np.linalg.norm(found.q - wanted) < np.linalg.norm(q - wanted)
    still = np.linalg.svd(robot.jacobian(found.q, place))[2][-1]  # the motion that keeps the pose
    assert abs(still @ (found.q - wanted)) < 1e-6


def test_a_search_that_stands_at_the_opposite_direction_does_not_claim_to_know() -> None:
    opposite = Direction(HAND, (0, 0, 1), -ARM.pose(np.zeros(6), HAND)[:3, 2])
    stuck = torsor.inverse_kinematics(TRACED, [opposite], q0=np.zeros(6), restarts=0)
    assert not stuck.solved and "try restarts" in stuck.cause()
    assert torsor.inverse_kinematics(TRACED, [opposite], q0=np.zeros(6)).solved


def test_center_of_mass() -> None:
    arm = torsor.library.planar_chain(3).to(device="casadi")
    q = np.array([0.2, 0.5, -0.4])
    found = torsor.inverse_kinematics(arm, [CenterOfMass(arm.center_of_mass(q))], q0=[0.0, 0.1, 0.1])
    np.testing.assert_allclose(arm.center_of_mass(found.q), arm.center_of_mass(q), atol=1e-9)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ({"nowhere": np.eye(4)}, "nowhere"),
        ({HAND: 2 * np.eye(4)}, "is not a rotation: orthonormality error"),
        ({HAND: np.full(3, np.nan)}, "position"),
        ({HAND: np.eye(3)}, "link6"),
        ({HAND: np.zeros(4)}, "link6"),
        ({HAND: [1e200, 0, 0]}, "a position is 1e+200 m away"),
        ({"base": np.eye(4)}, "base"),
        ({}, "targets"),
        ([Pose(HAND, np.eye(4), weight=-1)], "weight"),
        ([Direction(HAND, (0, 0, 0), (0, 0, 1))], "axis"),
        ([Direction(HAND, (0, 0, 1), (0, 0, 0))], "along"),
        ([Pose(HAND, np.eye(4), weight=(1e8, 1e-8))], "weights range from 1e-08 to 1e+08"),
        ([Position(HAND, (0, 0, 1), point=(1e9, 0, 0))], "a position is 1e+09 m away"),
        ([Target()], "a target has type Target"),
        ({HAND: np.zeros((2, 3)), "link5": np.zeros((3, 3)) + 0.1}, "do not broadcast"),
    ],
)
def test_invalid_targets_raise(targets: object, words: str) -> None:
    with refused(words):
        torsor.inverse_kinematics(ARM, targets)


def test_links_that_are_named_by_numbers_are_not_mistaken_for_indices() -> None:
    links = [torsor.Link("base"), torsor.Link("1", 1.0), torsor.Link("0", 1.0)]
    axis, there = np.array([0.0, 0, 1]), make_pose(p=[1.0, 0, 0])
    joints = [
        torsor.Joint("a", "revolute", "base", "1", axis=axis),
        torsor.Joint("b", "revolute", "1", "0", there, axis=axis),
    ]
    robot = torsor.Robot.of(torsor.build("numbers", links, joints)).to(device="casadi")
    for place in ("1", 1):  # the first link, and the second
        pose = robot.pose([0.3, 0.4], place)
        np.testing.assert_allclose(
            robot.pose(torsor.inverse_kinematics(robot, {place: pose}).q, place), pose, atol=1e-8
        )


def test_invalid_options_raise() -> None:
    goal = {HAND: make_pose(p=[0.5, 0, 0.5])}
    with refused(argument="q0"):
        torsor.inverse_kinematics(ARM, goal, q0=[0.0] * 5)
    with refused(argument="tolerance"):
        torsor.inverse_kinematics(ARM, goal, tolerance=0.0)
    with refused(argument="posture"):
        torsor.inverse_kinematics(ARM, goal, posture=np.zeros(6), manipulability=True)
    flying = torsor.library.free_flying_arm()
    with refused(value="root"):
        torsor.inverse_kinematics(flying, {"link7": np.zeros(3)}, q0=np.zeros(flying.nq))


@pytest.mark.slow
def test_the_panda_solves_nearly_all_reachable_poses() -> None:
    robot = torsor.library.panda()
    place = "panda_hand_tcp"
    poses = robot.pose(random_postures(robot, 20_000, 1), place)
    assert torsor.inverse_kinematics(robot, {place: poses}, restarts=0).solved.mean() > 0.85
    found = torsor.inverse_kinematics(robot, {place: poses})
    assert found.solved.mean() >= 0.999
    np.testing.assert_allclose(robot.pose(found.q, place)[found.solved], poses[found.solved], atol=2e-9)


@pytest.mark.slow
def test_manipulability_does_not_fall() -> None:
    robot = torsor.library.seven_axis_arm()
    place = robot.link_names[-1]
    poses = robot.pose(0.5 * random_postures(robot, 10), place)
    plain, more = (torsor.inverse_kinematics(robot, {place: poses}, manipulability=wish) for wish in (False, True))

    def measure(q: np.ndarray) -> np.ndarray:
        J = robot.jacobian(q, place)
        return np.sqrt(np.linalg.det(J @ J.swapaxes(-1, -2)))

    assert more.solved.all()
    assert (measure(more.q) >= measure(plain.q) * (1 - 1e-8)).all()  # both meet the poses to 1e-9
    assert (measure(more.q) > 1.01 * measure(plain.q)).sum() >= 5


def test_a_subclass_of_a_target_is_a_target_of_its_kind() -> None:
    class Grasp(Pose):
        """A pose with a name of its own."""

    grasp = Grasp("link2", np.eye(4))
    assert (grasp.label, grasp.kinds, grasp.count) == ("pose of 'link2'", "ap", 12)


def test_a_parallel_robot_is_refused_with_its_own_way() -> None:
    for solve in (torsor.inverse_kinematics, torsor.analytic_inverse_kinematics):
        with refused(allowed="a torsor.Robot", fix="robot.as_robot()"):
            solve(torsor.library.gough_stewart(), np.eye(4), "platform")
