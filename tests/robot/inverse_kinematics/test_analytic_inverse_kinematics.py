"""Closed forms: each posture has the pose, the original posture is among them, and searches find no others."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import DHLink


def link(**numbers: float) -> DHLink:
    return DHLink(mass=1.0, inertia=0.01 * np.eye(3), **numbers)


def wrist_arm(*first: DHLink) -> torsor.Robot:
    """Return an arm with three given links and a spherical wrist."""
    quarter = np.pi / 2
    wrist = link(alpha=-quarter, d=0.4), link(alpha=quarter), link(d=0.1)
    return torsor.from_dh([*first, *wrist], gravity=(0, 0, -9.81)).to(device="casadi")


ARMS = {
    "shoulder in one point": wrist_arm(link(alpha=1.5, d=0.3), link(a=0.4, alpha=0.2), link(a=0.05, alpha=1.4)),
    "skew": wrist_arm(link(alpha=1.2, a=0.1, d=0.3), link(a=0.4, alpha=0.5, d=0.1), link(a=0.1, alpha=1.4)),
    "parallel": wrist_arm(link(a=0.3), link(a=0.3, alpha=0.9), link(a=0.1, alpha=1.3, d=0.1)),
    "ur5": torsor.library.ur5().to(device="casadi"),
}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(np.exp(1j * a) - np.exp(1j * b)).max() < 1e-6)


@pytest.mark.parametrize("name", ARMS)
def test_all_postures_have_the_pose_and_the_one_that_made_it_is_among_them(name: str) -> None:
    robot = ARMS[name]
    place = "ee_link" if name == "ur5" else robot.link_names[-1]
    for q in np.random.default_rng(1).uniform(-3, 3, (5, 6)):
        pose = robot.pose(q, place)
        found = torsor.analytic_inverse_kinematics(robot, pose, place, limits=False)
        np.testing.assert_allclose(robot.pose(found, place), np.broadcast_to(pose, (len(found), 4, 4)), atol=1e-9)
        assert any(same(each, q) for each in found)
        assert len(found) % 2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ARMS)
def test_searches_from_many_starts_find_no_other_posture(name: str) -> None:
    robot, rng = ARMS[name].to(device="cpu"), np.random.default_rng(2)
    place = "ee_link" if name == "ur5" else robot.link_names[-1]
    pose = robot.pose(rng.uniform(-2, 2, 6), place)
    found = torsor.analytic_inverse_kinematics(robot, pose, place, limits=False)
    starts = rng.uniform(-np.pi, np.pi, (1000, 6))
    searched = torsor.inverse_kinematics(robot, {place: pose}, q0=starts, limits=False, restarts=0)
    kinds: list[np.ndarray] = []
    for q in searched.q[searched.solved]:
        if not any(np.abs(np.exp(1j * q) - np.exp(1j * other)).max() < 1e-4 for other in kinds):
            kinds.append(q)
    assert len(kinds) == len(found)


def test_a_wrist_at_the_base_is_seen_from_the_tool() -> None:
    quarter = np.pi / 2
    first = link(alpha=-quarter), link(alpha=quarter), link(d=0.4, alpha=0.7, a=0.1)
    robot = torsor.from_dh([*first, link(a=0.4, alpha=0.4), link(a=0.2, alpha=1.1), link(a=0.1)]).to(device="casadi")
    q = np.array([0.3, 0.8, -0.5, 0.9, -1.1, 0.4])
    pose = robot.pose(q, "link6")
    found = torsor.analytic_inverse_kinematics(robot, pose, "link6", limits=False)
    assert any(same(each, q) for each in found)
    np.testing.assert_allclose(robot.pose(found, "link6"), np.broadcast_to(pose, (len(found), 4, 4)), atol=1e-9)


def test_a_pose_out_of_reach_has_no_posture_and_limits_hold() -> None:
    robot = torsor.library.six_axis_arm().to(device="casadi")
    far = np.eye(4)
    far[:3, 3] = 50.0
    assert torsor.analytic_inverse_kinematics(robot, far, "link6").shape == (0, 6)
    q = 0.5 * (robot.lower + robot.upper) + 0.2
    all_of_them = torsor.analytic_inverse_kinematics(robot, robot.pose(q, "link6"), "link6", limits=False)
    within = torsor.analytic_inverse_kinematics(robot, robot.pose(q, "link6"), "link6")
    assert 1 <= len(within) < len(all_of_them)
    assert (within >= robot.lower - 1e-9).all() and (within <= robot.upper + 1e-9).all()


def test_a_singular_wrist_gives_postures_that_have_the_pose() -> None:
    robot = ARMS["ur5"]
    q = np.array([0.3, -1.0, 1.2, 0.4, 0.0, -0.2])
    pose = robot.pose(q, "ee_link")
    found = torsor.analytic_inverse_kinematics(robot, pose, "ee_link")
    assert len(found)
    np.testing.assert_allclose(robot.pose(found, "ee_link"), np.broadcast_to(pose, (len(found), 4, 4)), atol=1e-9)


@pytest.mark.parametrize(
    ("arm", "freedoms"),
    [
        (wrist_arm(link(a=0.4), link(a=0.4), link(a=0.3)), 5),  # the wrist stays in a plane
        (wrist_arm(link(), link(alpha=np.pi / 2), link(a=0.4)), 5),  # two axes coincide
        (torsor.library.planar_chain(6).to(device="casadi"), 3),
    ],
)
def test_arms_that_are_singular_everywhere_raise(arm: torsor.Robot, freedoms: int) -> None:
    """A pose that such an arm has, it has in infinitely many postures."""
    q, place = np.linspace(0.1, 0.6, 6), arm.link_names[-1]
    assert np.linalg.matrix_rank(arm.jacobian(q, place), tol=1e-9) == freedoms
    with refused(what=f"singular everywhere: its six axes move 'link6' in {freedoms} directions", fix="use inverse"):
        torsor.analytic_inverse_kinematics(arm, arm.pose(q, place), place)


def test_arms_without_a_closed_form_raise() -> None:
    with refused(what="7 joints move"):
        torsor.analytic_inverse_kinematics(torsor.library.panda(), np.eye(4), "panda_hand")
    general = torsor.from_dh([link(a=0.1 + 0.1 * k, alpha=0.5 + 0.1 * k, d=0.1) for k in range(6)])
    with refused(what="no closed form is known"):
        torsor.analytic_inverse_kinematics(general, np.eye(4), general.link_names[-1])
    with refused(argument="pose"):
        torsor.analytic_inverse_kinematics(ARMS["ur5"], 2 * np.eye(4), "ee_link")
    with refused(what="a position is 1e+300 m away"):
        torsor.analytic_inverse_kinematics(ARMS["ur5"], torsor.spatial.make_pose(p=[1e300, 0, 0]), "ee_link")
