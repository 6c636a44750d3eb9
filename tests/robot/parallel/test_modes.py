"""Legs keep the assembly mode of home, and singular configurations raise errors, for robots of any size."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.parallel import Leg, ParallelRobot
from torsor.spatial import about_z, make_pose

from .mechanisms import made, motion


def analytic_delta(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shoulders of the library's Delta with elbows outward, and whether there are any."""
    arm, rods, found, reach = 0.35, 0.8, [], np.ones(pose.shape[:-1], dtype=bool)
    for k in range(3):
        x, y, z = np.moveaxis(pose @ np.asarray(about_z(2 * np.pi / 3 * k), float) - [0.15, 0, 0], -1, 0)
        cosine = (x**2 + y**2 + z**2 + arm**2 - rods**2) / (2 * arm * np.hypot(x, z))
        reach &= np.abs(cosine) <= 1
        found.append(np.arctan2(-z, x) - np.arccos(np.clip(cosine, -1, 1)))
    return np.stack(found, axis=-1), reach


def test_every_leg_of_a_delta_keeps_the_mode_of_home() -> None:
    robot, line = torsor.library.delta(), np.linspace(-0.9, 0.9, 9)
    map_ = robot.workspace(robot.grid(x=line, y=line, z=np.linspace(-1.2, 0.5, 9)))
    expected, reach = analytic_delta(map_.poses)
    at = map_.reachable
    assert not (at & ~reach).any() and np.count_nonzero(at) > 0.8 * np.count_nonzero(reach)
    below = reach & (map_.poses[..., 2] < -0.3) & (np.hypot(map_.poses[..., 0], map_.poses[..., 1]) < 0.5)
    assert at[below].all()
    np.testing.assert_allclose(np.sin((map_.q[..., ::3] - expected)[at] / 2), 0, atol=1e-10)


@pytest.mark.parametrize("name", ["delta", "three_rrr", "SPS"])
def test_what_is_found_does_not_depend_on_the_batch(name: str) -> None:
    robot = torsor.library.gough_stewart(legs="SPS") if name == "SPS" else getattr(torsor.library, name)()
    pose, _, _ = motion(robot, 12, 0.15)
    far = np.concatenate([pose, robot.home[None] + np.eye(len(robot.home))[:1] * 5])
    map_ = robot.workspace(far)
    for k in np.flatnonzero(map_.reachable):
        np.testing.assert_allclose(robot.inverse_kinematics(far[k]), map_.q[k], rtol=0, atol=1e-10)
    assert not map_.reachable[-1] or name == "SPS"
    assert map_.reachable[:-1].sum() > 6


def test_both_searches_of_a_leg_agree() -> None:
    robot = torsor.library.delta()
    poses, _, _ = motion(robot, 40, 0.15)
    by_line = robot._kinematics._searches[0]
    assert by_line.side is not None
    (q, reached), (other, arrived) = (each.from_home(poses) for each in (by_line, replace(by_line, side=None)))
    both = reached & arrived
    assert np.count_nonzero(both) > 30
    np.testing.assert_allclose(q[both], other[both], rtol=0, atol=1e-10)


def test_forward_kinematics_does_not_pass_a_stretched_leg() -> None:
    robot = made("delta")
    with refused(what="no pose with the driven coordinates"):
        robot.forward_kinematics([2.0, 2.0, 2.0])
    pose = robot.forward_kinematics([1.2, 1.2, 1.2])
    np.testing.assert_allclose(robot.inverse_kinematics(pose)[::3], 1.2, atol=1e-9)


def test_redundant_drives_give_the_pose() -> None:
    six = made("gough_stewart")
    leg = Leg(
        "leg7", six.legs[0].robot, "rod", [0.1, 0.05, 0.02], "spherical", ("stretch",), (0.2, -0.1, -0.1), [0, 0, 0.9]
    )
    robot = replace(six, legs=(*six.legs, leg))
    pose, _, _ = motion(robot, 5, 0.1)
    driven = robot.inverse_kinematics(pose)[:, 2::3]
    np.testing.assert_allclose(robot.carriage.difference(robot.forward_kinematics(driven), pose), 0, atol=1e-8)
    with refused(what="driven coordinates disagree by"):
        robot.forward_kinematics(driven[0] + np.r_[np.zeros(6), 1e-3])


def scaled(factor: float) -> ParallelRobot:
    """The three arms, larger."""
    sizes = {"base_radius": 0.5, "platform_radius": 0.1, "upper": 0.3, "lower": 0.3}
    return torsor.library.three_rrr(**{name: factor * size for name, size in sizes.items()}).to(device="casadi")


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_what_is_closed_does_not_depend_on_the_size(factor: float) -> None:
    small, robot = made("three_rrr"), scaled(factor)
    pose = np.array([[0.05, -0.03, 0.2], [-0.1, 0.04, -0.3], [0.02, 0.2, 0.0]])
    q = small.inverse_kinematics(pose)
    found = robot.inverse_kinematics(pose * [factor, factor, 1])
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-9)
    back = robot.forward_kinematics(found[:, ::2]) / [factor, factor, 1]
    np.testing.assert_allclose(back, pose, rtol=0, atol=1e-9)


def test_singular_poses_are_refused_with_what_moves() -> None:
    robot, still = made("gough_stewart"), np.zeros(6)
    quarter = robot.grid(turn_z=[np.pi / 2])[0]
    with refused(what="do not control the platform at pose [0.0,"):
        robot.inverse_dynamics(quarter, still, still)
    with refused(what="the drives do not control the platform"):
        robot.jacobian(np.stack([robot.home, quarter]))
    assert np.isfinite(robot.forward_dynamics(quarter, still, still)).all()  # nothing is divided by there
    flat = made("three_rrr")
    stretched, u = np.array([-0.2, 0.0, 0.0]), np.ones(3)
    for call in (flat.leg_velocities, flat.kinetic_energy):
        with refused(what="leg 'leg1' is singular at pose"):
            call(stretched, u)
    for call in (flat.leg_accelerations, flat.inverse_dynamics, flat.forward_dynamics):
        with refused(what="leg 'leg1' is singular"):
            call(stretched, u, u)
    assert flat.potential_energy(stretched) == 0.0


def test_singular_homes_are_refused_with_what_moves() -> None:
    with refused(what="the drives do not control the platform at home:"):
        torsor.library.gough_stewart(spread=np.pi / 3)
    flat = made("three_rrr")
    with refused(where="leg 'leg1'", what="blocks motions"):
        replace(flat, home=np.array([-0.2, 0.0, 0.0]))
    six, plate = made("gough_stewart"), made("gough_stewart").platform
    full = [replace(leg, driven=("swing", "tilt", "stretch") if k < 2 else ()) for k, leg in enumerate(six.legs)]
    with refused(what="the drives do not control the platform at home"):
        replace(six, legs=full)
    car, bob = (
        torsor.Link("car", 1.0, (0, 0, 0), 0.01 * np.eye(3)),
        torsor.Link("bob", 1.0, (0.1, 0, 0), 0.01 * np.eye(3)),
    )
    joints = [
        torsor.Joint("z", "prismatic", "ground", "car", make_pose(p=[0, 0, 0.8])),
        torsor.Joint("sway", "revolute", "car", "bob", axis=(0, 1, 0)),
        torsor.Joint("turn", "revolute", "car", "platform"),
    ]
    chain = torsor.build("chain", [torsor.Link("ground"), car, bob, plate], joints)
    with refused(what="at home"):
        replace(six, platform=chain, home=np.zeros(3))


def table(*joints: torsor.Joint) -> torsor.Robot:
    links = [torsor.Link("ground"), torsor.Link("slide", 1.0, (0, 0, 0), 0.01 * np.eye(3))]
    names = {joint.child for joint in joints}
    links += [torsor.Link("car")] if "car" in names else []
    links += [torsor.Link("deck", 1.5, (0, 0, 0), np.eye(3) * 0.01)]
    return torsor.build("table", links, [torsor.Joint("x", "prismatic", "ground", "slide", axis=(1, 0, 0)), *joints])


def test_platforms_on_chains_are_what_they_say() -> None:
    legs, y = made("three_rrr").legs, {"axis": (0, 1, 0)}
    welded = table(
        torsor.Joint("y", "prismatic", "slide", "car", **y),
        torsor.Joint("weld", "fixed", "car", "deck", make_pose(p=[0, 0.1, 0])),
    )
    with refused(value="car"):
        ParallelRobot(welded, legs[:2], np.zeros(2))
    plain = table(torsor.Joint("y", "prismatic", "slide", "deck", **y))
    soft = plain.with_motor("y", carrier="slide", inertia=1e-4, ratio=100.0, stiffness=1e4)
    with refused(what="the drives do not control the platform at home:"):
        ParallelRobot(soft, legs, np.zeros(3))
    double = torsor.build(
        "double",
        [torsor.Link("ground"), torsor.Link("slide"), torsor.Link("deck", 1.5, (0, 0, 0), np.eye(3) * 0.01)],
        [
            torsor.Joint("a/x", "prismatic", "ground", "slide", axis=(1, 0, 0)),
            torsor.Joint("b/x", "prismatic", "slide", "deck", axis=(0, 1, 0)),
        ],
    )
    robot = ParallelRobot(double, legs[:2], np.zeros(2)).to(device="casadi")
    with refused(value="x", allowed="a/x, b/x"):
        robot.grid(x=[0.1])
    assert robot.grid(**{"b/x": [0.1]}).tolist() == [[0.0, 0.1]]


@pytest.mark.slow
def test_energy_is_that_of_the_tree_with_loops() -> None:
    for name in ("gough_stewart", "delta"):
        robot = made(name)
        pose, u, _ = (each[0] for each in motion(robot, 1))
        tree, q = robot.as_robot(), np.r_[pose, robot.inverse_kinematics(pose)]
        assert robot.potential_energy(pose) == pytest.approx(float(tree.potential_energy(q)), rel=1e-12)
        v = np.r_[u, robot.leg_velocities(pose, u)]
        assert robot.kinetic_energy(pose, u) == pytest.approx(float(tree.kinetic_energy(q, v)), rel=1e-12)


def test_a_guess_of_negative_length_is_kept() -> None:
    robot = made("gough_stewart")
    guess = robot.leg_home.reshape(6, 3).copy()
    guess[:, 1] += np.pi
    guess[:, 2] *= -1
    pose, _, _ = motion(robot, 1, 0.02)
    found = robot.inverse_kinematics(pose[0], guess=guess.ravel())
    assert (found[2::3] < 0).all() and np.abs(found - guess.ravel()).max() < 0.3
    assert np.abs(robot.function("leg_errors", positions=True)(pose[0], found).full()).max() < 1e-12
    forces = robot.inverse_dynamics(pose[0], np.zeros(6), np.zeros(6), q=found)
    assert np.isfinite(forces).all()


def test_a_guess_selects_the_assembly_mode() -> None:
    robot = made("three_rrr")
    q = robot.leg_home.reshape(3, 2)
    other = np.stack([q[:, 0] + q[:, 1], -q[:, 1]], axis=-1).ravel()  # both bars are alike: the knee on the other side
    np.testing.assert_allclose(robot.inverse_kinematics(robot.home, guess=other + 0.05), other, atol=1e-10)


@pytest.mark.slow
def test_the_library_has_robots_of_other_sizes() -> None:
    for sizes in ({"arm": 0.2, "rods": 0.5}, {"rods": 1.2}, {"base_radius": 0.4, "arm": 0.6, "rods": 1.5}):
        robot = torsor.library.delta(**sizes).to(device="casadi")
        assert robot.workspace(robot.home).within_limits
    assert torsor.library.three_rrr(upper=0.5, lower=0.2).to(device="casadi").workspace(np.zeros(3)).reachable


def test_maps_are_drawn_over_what_varies() -> None:
    robot = made("gough_stewart")
    map_ = robot.workspace(robot.grid(x=np.linspace(-0.4, 0.4, 5), z=np.linspace(0.4, 1.2, 5)))
    assert repr(map_).startswith("<Workspace of 25 poses: 25 reachable, ")
    figure = map_.plot()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("x (m)", "z (m)")
    assert "beyond joint limits" in [text.get_text() for text in figure.legends[0].get_texts()]
