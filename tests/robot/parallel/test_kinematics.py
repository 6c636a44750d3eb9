"""Kinematics: closed forms, finite differences, inverse and forward, joint limits and singular poses."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.trees.tree import Tree
from torsor.spatial import about_z, make_pose

from .mechanisms import made, motion, target_robot

ROBOTS = ["gough_stewart", "delta", "three_rrr"]


def test_legs_of_a_gough_stewart_platform_are_where_geometry_puts_them() -> None:
    robot = made("gough_stewart")
    pose, _, _ = motion(robot, 20, 0.15)
    q = robot.inverse_kinematics(pose).reshape(-1, 6, 3)
    T = robot.carriage.pose(pose, "platform")
    for k, leg in enumerate(robot.legs):
        w = (T @ leg.at)[:, :3, 3] - leg.base[:3, 3]
        np.testing.assert_allclose(q[:, k, 2], np.linalg.norm(w, axis=-1), rtol=1e-13)
        tip = leg.base @ leg.robot.pose(q[:, k], "rod")
        np.testing.assert_allclose(tip[:, :3, 3], (T @ leg.at)[:, :3, 3], atol=1e-13)


def test_both_assembly_modes_of_a_leg_are_found_by_the_guess() -> None:
    robot = target_robot().to(device="casadi")
    one = robot.inverse_kinematics(robot.home)
    guess = one.copy().reshape(6, 3)
    guess[:, 0] += np.pi
    guess[:, 1] *= -1
    other = robot.inverse_kinematics(robot.home, guess=guess.ravel())
    assert np.abs(one - other).max() > 1
    errors = robot.function("leg_errors", positions=True)
    assert all(np.abs(errors(robot.home, q).full()).max() < 1e-12 for q in (one, other))
    turned = one + np.tile([2 * np.pi, 0.0, 0.0], 6)
    np.testing.assert_allclose(robot.inverse_kinematics(robot.home, guess=turned), turned, atol=1e-12)


def test_delta_is_where_geometry_puts_it() -> None:
    robot = made("delta")
    rng = np.random.default_rng(0)
    pose = rng.uniform([-0.25, -0.25, -0.95], [0.25, 0.25, -0.6], size=(40, 3))
    q = robot.inverse_kinematics(pose).reshape(-1, 3, 3)
    arm, rods, base, top = 0.35, 0.8, 0.2, 0.05
    for k in range(3):
        # In the plane of the arm: a circle of the elbow, and the sphere of the rods cut by that plane.
        local = pose @ np.asarray(about_z(2 * np.pi / 3 * k), float) + [top - base, 0, 0]
        x, y, z = local.T
        reach = (x**2 + y**2 + z**2 + arm**2 - rods**2) / (2 * arm)
        # x cos(angle) - z sin(angle) = reach, outward elbow
        expected = np.arctan2(-z, x) - np.arccos(reach / np.hypot(x, z))
        np.testing.assert_allclose(q[:, k, 0], expected, atol=1e-11)


def test_three_rrr_is_where_geometry_puts_it() -> None:
    robot = made("three_rrr")
    rng = np.random.default_rng(1)
    pose = rng.uniform([-0.08, -0.08, -0.3], [0.08, 0.08, 0.3], size=(40, 3))
    q = robot.inverse_kinematics(pose).reshape(-1, 3, 2)
    for k in range(3):
        phi = 2 * np.pi / 3 * k
        tip = pose[:, :2] + 0.1 * np.stack([np.cos(pose[:, 2] + phi), np.sin(pose[:, 2] + phi)], -1)
        w = (tip - 0.5 * np.array([np.cos(phi), np.sin(phi)])) @ np.asarray(about_z(phi + np.pi), float)[:2, :2]
        d = np.linalg.norm(w, axis=-1)
        inner = np.arccos(d / 0.6)  # bars of 0.3 and 0.3
        np.testing.assert_allclose(q[:, k, 0], np.arctan2(w[:, 1], w[:, 0]) + inner, atol=1e-11)
        np.testing.assert_allclose(q[:, k, 1], -2 * inner, atol=1e-11)


def test_the_jacobian_is_the_rate_of_the_closed_form() -> None:
    robot = made("gough_stewart")
    pose, *_ = motion(robot, 3, 0.1)
    x = ca.SX.sym("x", 7)
    lengths = robot.function("closed_positions")(x, robot.leg_home)[2::3]
    rates = ca.Function("rates", [x], [ca.jacobian(lengths, x) @ steps(Tree.of(robot.carriage), x)])
    for k in range(3):
        np.testing.assert_allclose(robot.inverse_jacobian(pose[k]), rates(pose[k]).full(), rtol=0, atol=1e-12)
    product = robot.jacobian(pose) @ robot.inverse_jacobian(pose)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(6), product.shape), atol=1e-10)


@pytest.mark.parametrize("name", [ROBOTS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in ROBOTS[1:])])
def test_rates_of_legs_are_those_of_their_positions(name: str) -> None:
    robot, h = made(name), 1e-4
    pose, u, a = motion(robot, 3, 0.04)
    v, rates = robot.leg_accelerations(pose, u, a)
    # Along the motion with these rates, to the second order, by differences of the fourth.
    shift = [-2, -1, 1, 2]
    ahead = [robot.carriage.integrate(pose, k * h * u) for k in shift]
    q = [robot.inverse_kinematics(each) for each in ahead]
    np.testing.assert_allclose((q[0] - 8 * q[1] + 8 * q[2] - q[3]) / (12 * h), v, rtol=0, atol=1e-9)
    there = [robot.leg_velocities(x, u + k * h * a) for x, k in zip(ahead, shift, strict=True)]
    np.testing.assert_allclose((there[0] - 8 * there[1] + 8 * there[2] - there[3]) / (12 * h), rates, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", [*ROBOTS, pytest.param("SPS", marks=pytest.mark.slow)])
def test_forward_kinematics_returns_to_the_pose(name: str) -> None:
    robot = made("gough_stewart", legs="SPS") if name == "SPS" else made(name)
    pose, _, _ = motion(robot, 6, 0.08)
    q = robot.inverse_kinematics(pose)
    driven = [robot.position_names.index(each) for each in robot.driven_names]
    found = robot.forward_kinematics(q[:, driven])
    np.testing.assert_allclose(robot.carriage.difference(found, pose), 0, atol=1e-10)


def test_poses_may_be_matrices() -> None:
    for name in ROBOTS:
        robot = made(name)
        pose, u, a = motion(robot, 2)
        T = robot.carriage.pose(pose, "platform")
        np.testing.assert_allclose(
            robot.inverse_dynamics(T, u, a), robot.inverse_dynamics(pose, u, a), rtol=0, atol=1e-10
        )
    half = make_pose(np.diag([1.0, -1.0, -1.0]), [0, 0, 0.5])  # half a turn has a quaternion with w = 0
    np.testing.assert_allclose(made("gough_stewart")._coordinates(half), [0, 0, 0.5, 1, 0, 0, 0], atol=1e-15)


def test_a_quarter_turn_of_a_gough_stewart_platform_is_singular() -> None:
    robot = made("gough_stewart")
    turns = np.array([-np.pi / 2, -0.7, 0.0, 0.7, np.pi / 2])
    map_ = robot.workspace(robot.grid(turn_z=turns, z=[0.7, 0.9]))
    assert map_.parallel.tolist() == [[True] * 2, [False] * 2, [False] * 2, [False] * 2, [True] * 2]
    assert not map_.serial.any()
    assert np.abs(map_.determinant[[0, 4]]).max() < 1e-12 < np.abs(map_.determinant[1:4]).min()
    for pose, motion_ in zip(map_.poses[0], map_.platform_motion[0], strict=True):
        rates = robot.leg_velocities(pose, motion_)[2::3]
        assert np.abs(rates).max() < 1e-9 and np.linalg.norm(motion_) == pytest.approx(1.0)  # moves, drives held


def test_bars_that_meet_in_the_middle_leave_a_turn_free() -> None:
    robot = made("three_rrr")
    angle = np.arccos(0.8)  # the elbow is then on the line from the middle to the platform's hinge
    map_ = robot.workspace(robot.grid(angle=[-angle, 0.0, angle]))
    assert map_.parallel.tolist() in ([True, False, False], [False, False, True])
    (found,) = map_.platform_motion[map_.parallel]
    np.testing.assert_allclose(np.abs(found), [0, 0, 1], atol=1e-6)


def test_a_stretched_leg_is_singular_of_the_first_kind() -> None:
    robot = made("three_rrr")
    map_ = robot.workspace(robot.grid(x=[-0.2, 0.0]))  # 0.5 + 0.2 - 0.1 = 0.6, the length of both bars
    assert map_.reachable.all() and map_.serial.tolist() == [[True, False, False], [False] * 3]
    found = map_.leg_motion[0]
    assert np.abs(found[2:]).max() == 0 and np.linalg.norm(found) == pytest.approx(1.0)
    assert found[1] / found[0] == pytest.approx(-2.0, rel=1e-3)  # the knee gives


def test_maps_know_reach_and_limits() -> None:
    robot = torsor.library.three_rrr()
    line = np.linspace(-0.4, 0.4, 17)
    map_ = robot.workspace(robot.grid(x=line, y=line))
    phi = 2 * np.pi / 3 * np.arange(3)
    tips = map_.poses[..., None, :2] + 0.1 * np.stack([np.cos(phi), np.sin(phi)], -1)
    far = np.linalg.norm(tips - 0.5 * np.stack([np.cos(phi), np.sin(phi)], -1), axis=-1).max(axis=-1)
    sure = np.abs(far - 0.6) > 1e-6
    np.testing.assert_array_equal(map_.reachable[sure], far[sure] < 0.6)
    assert np.isnan(map_.q[~map_.reachable]).all() and np.isnan(map_.condition[~map_.reachable]).all()
    assert np.array_equal(map_.within_limits, map_.reachable)  # it has no limits
    six = made("gough_stewart")
    stretched = six.workspace(six.grid(z=[0.8, 1.6]))
    assert stretched.reachable.tolist() == [True, True] and stretched.within_limits.tolist() == [True, False]


def test_a_mixed_robot_has_both_kinds_of_legs() -> None:
    whole = made("gough_stewart")
    other = made("gough_stewart", legs="SPS")
    robot = replace(whole, legs=[*whole.legs[:3], *other.legs[3:]])
    assert not robot.has_closed_form
    pose, u, a = motion(robot)
    lengths = [robot.position_names.index(name) for name in robot.driven_names]
    np.testing.assert_allclose(
        robot.inverse_kinematics(pose)[:, lengths], whole.inverse_kinematics(pose)[:, 2::3], rtol=1e-12
    )
    np.testing.assert_allclose(robot.forward_dynamics(pose, u, robot.inverse_dynamics(pose, u, a)), a, atol=1e-10)


def test_a_platform_may_hang_on_a_chain() -> None:
    links = [torsor.Link("ground"), torsor.Link("slide"), torsor.Link("deck", 1.5, (0, 0, 0), np.eye(3) * 0.01)]
    joints = [
        torsor.Joint("along", "prismatic", "ground", "slide", axis=(1, 0, 0)),
        torsor.Joint("aside", "prismatic", "slide", "deck", axis=(0, 1, 0)),
    ]
    chain, single = torsor.build("table", links, joints), made("three_rrr")
    robot = torsor.ParallelRobot(chain, single.legs[:2], np.zeros(2)).to(device="casadi")
    assert robot.dof == 2
    pose, u, a = motion(robot)
    np.testing.assert_allclose(robot.forward_dynamics(pose, u, robot.inverse_dynamics(pose, u, a)), a, atol=1e-10)


@pytest.mark.parametrize("make", [torsor.library.gough_stewart, torsor.library.delta, torsor.library.three_rrr])
def test_kinematics_is_in_double_precision_for_float32_robots(make) -> None:
    robot = make()
    single, q = robot.to(dtype="float32"), robot.inverse_kinematics(robot.home)
    np.testing.assert_allclose(single.inverse_kinematics(robot.home), q, rtol=0, atol=1e-12)
    driven = q[[robot.position_names.index(name) for name in robot.driven_names]] + 0.01
    np.testing.assert_allclose(single.forward_kinematics(driven), robot.forward_kinematics(driven), rtol=0, atol=1e-12)
