"""The library's mechanisms with loops against geometry, Khalil 2010 and the conservation of energy."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import library

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())

# Where each is closed: active coordinates, and a guess.
CLOSED = {
    "four_bar": ([0.5], [0.5, 1.0, 1.5]),
    "slider_crank": ([0.5], [0.5, -0.6, 0.18]),
    "five_bar": ([2.0, 1.1], [2.0, -1.3, 1.1, 1.3]),
    "palletiser": ([0.1, 0.3, 0.2, 0.4], None),
    "closed_leg": ([0.1, -0.4, 0.3], None),
}
FREEDOMS = {"four_bar": 1, "slider_crank": 1, "five_bar": 2, "palletiser": 4, "closed_leg": 9}


def closed(name: str) -> tuple[torsor.Robot, np.ndarray]:
    robot = getattr(library, name)(**({"legs": 1} if name == "closed_leg" else {}))
    active, guess = CLOSED[name]
    return robot, robot.closed.assemble(active, robot.neutral() if guess is None else guess)


@pytest.mark.parametrize("name", CLOSED)
def test_each_moves_freely_with_its_energy(name: str) -> None:
    robot, q = closed(name)
    mobility = robot.closed.mobility(q)
    assert mobility.dof == FREEDOMS[name]
    motion = np.linalg.svd(robot.closed.jacobian(q))[2][-mobility.dof :]
    v = motion.T @ np.random.default_rng(1).normal(size=mobility.dof)
    swing = torsor.simulate(robot, q, v, 0.1, step=5e-4)
    assert np.abs(swing.closure_error).max() < 1e-13
    moved = np.ptp(swing.kinetic_energy) + np.ptp(swing.potential_energy)
    assert moved > 1e-3 and np.ptp(swing.energy) < 1e-8 * moved


@pytest.mark.parametrize("lengths", [(1.0, 0.4, 0.9, 0.8), (0.3, 0.9, 0.8, 0.7)])
def test_the_crank_of_a_grashof_linkage_turns_round(lengths: tuple[float, ...]) -> None:
    robot = library.four_bar(*lengths)
    start = robot.closed.assemble([1.0], guess=[1.0, 0.5, 2.0])
    q = robot.closed.assemble(np.linspace(1.0, 1.0 + 2 * np.pi, 37)[:, None], guess=start)
    assert np.abs(robot.closed.error(q)).max() < 1e-11
    turned = robot.poses(q[[0, -1]])
    np.testing.assert_allclose(turned[0], turned[1], atol=1e-9)  # the same assembly mode
    spin = torsor.simulate(robot.with_gravity([0, 0, 0]), start, robot.closed.velocities(start, [20.0]), 1.0)
    assert np.abs(spin.q[-1, 0] - start[0]) > 2 * np.pi


def test_other_linkages_swing_between_their_dead_points() -> None:
    ground, crank, coupler, rocker = 1.0, 0.9, 0.4, 0.4  # the crank reaches where the others are stretched
    robot = library.four_bar(ground, crank, coupler, rocker).with_gravity([0, 0, 0])
    end = np.arccos((ground**2 + crank**2 - (coupler + rocker) ** 2) / (2 * ground * crank))
    q = robot.closed.assemble([0.3], guess=[0.3, 1.0, 2.0])
    with refused(what="no closed configuration"):
        robot.closed.assemble([end + 0.01], guess=q)
    swing = torsor.simulate(robot, q, robot.closed.velocities(q, [2.0]), 3.0)
    assert np.ptp(swing.energy) < 1e-8 * swing.energy[0]
    assert -end - 1e-9 < swing.q[:, 0].min() and swing.q[:, 0].max() < end + 1e-9
    assert (
        swing.q[:, 0].max() > end - 1e-3 and (np.diff(np.sign(swing.v[:, 0])) != 0).sum() >= 2
    )  # and turns back there


def test_a_dead_point_leaves_the_crank_free_when_the_rocker_is_held() -> None:
    ground, crank, coupler, rocker = 1.0, 0.4, 0.9, 0.8
    robot = library.four_bar(ground, crank, coupler, rocker).with_active(["rocker_joint"])
    reach = crank + coupler  # crank and coupler in one line
    angle = np.arccos((ground**2 + reach**2 - rocker**2) / (2 * ground * reach))
    at = reach * np.array([np.cos(angle), np.sin(angle)]) - [ground, 0]
    q = np.array([angle, 0.0, np.arctan2(at[1], at[0])])
    mobility = robot.closed.mobility(q)
    assert mobility.is_singular
    (motion,) = mobility.uncontrolled
    # The pin stands still: the crank's end turns about it.
    np.testing.assert_allclose(motion / motion[0], [1.0, -reach / coupler, 0.0], atol=1e-9)
    assert not library.four_bar().closed.mobility(q).is_singular  # the crank's drive still moves it


def test_a_slider_crank_follows_its_closed_form() -> None:
    crank, rod, offset = 0.05, 0.16, 0.02
    robot = library.slider_crank(crank, rod, offset)
    angle, rate = np.linspace(-3, 3, 25), 7.0
    q = robot.closed.assemble(angle[:, None], guess=[0.0, 0.1, 0.2])
    side = crank * np.sin(angle) - offset
    root, side_rate = np.sqrt(rod**2 - side**2), crank * np.cos(angle)
    np.testing.assert_allclose(q[:, 2], crank * np.cos(angle) + root, atol=1e-11)
    slope = -crank * np.sin(angle) - side * side_rate / root
    v, a = robot.closed.accelerations(q, [rate], [0.0])
    np.testing.assert_allclose(v[:, 2], slope * rate, atol=1e-11)
    bend = (
        -crank * np.cos(angle)
        - (side_rate**2 - side * crank * np.sin(angle)) / root
        - (side * side_rate) ** 2 / root**3
    )
    np.testing.assert_allclose(a[:, 2], bend * rate**2, atol=1e-10)


def test_the_five_bar_is_that_of_khalil_2010() -> None:
    data, robot = TARGETS["003_fivebar"], library.five_bar()
    q, v, a = (np.array(data[name]) for name in ("q", "qd", "qdd"))
    tau = robot.closed.inverse_dynamics(q, v[[0, 2]], a[[0, 2]])
    np.testing.assert_allclose(tau, data["Gamma_c"], rtol=1e-12)
    double = library.five_bar(0.7, 0.6, 0.8, (9.6, 6.4, 8.8, 7.2), (0.32, 0.64))  # twice as large, of the same stuff
    heavier = double.closed.inverse_dynamics(q, [0.0, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(heavier, 16 * robot.closed.inverse_dynamics(q, [0.0, 0.0], [0.0, 0.0]), rtol=1e-12)


def test_parallelograms_keep_the_wrist_of_a_palletiser_level() -> None:
    robot = library.palletiser(payload=50.0)
    rng = np.random.default_rng(3)
    active = rng.uniform([-3, -0.6, -0.3, -3], [3, 1.2, 0.8, 3], size=(40, 4))
    q = robot.closed.assemble(active, guess=robot.neutral())
    poses = robot.pose(q, "wrist")
    np.testing.assert_allclose(poses[:, 2, :3], [[0, 0, 1]] * 40, atol=1e-11)
    np.testing.assert_allclose(poses[:, 0, 0], np.cos(active[:, 0]), atol=1e-11)
    reach, height = 0.26 + 0.95 * np.sin(active[:, 1]) + 1.05 * np.cos(active[:, 2]), 0.0
    np.testing.assert_allclose(np.hypot(poses[:, 0, 3], poses[:, 1, 3]), np.abs(reach), atol=1e-10)
    height = 0.74 + 0.95 * np.cos(active[:, 1]) - 1.05 * np.sin(active[:, 2])
    np.testing.assert_allclose(poses[:, 2, 3], height, atol=1e-10)
    v = robot.closed.velocities(q, rng.normal(size=(40, 4)))
    level = robot.velocity(q, v, "wrist")[:, :2]
    np.testing.assert_allclose(level, 0, atol=1e-9)


def test_the_drive_at_the_hip_turns_the_shank_whatever_the_thigh_does() -> None:
    robot, q = closed("closed_leg")
    at = {name: robot.position_names.index(f"leg_{name}") for name in ("hip", "knee", "drive", "rod")}
    assert q[at["hip"]] + q[at["knee"]] == pytest.approx(q[at["drive"]], abs=1e-11)
    assert q[at["drive"]] + q[at["rod"]] == pytest.approx(q[at["hip"]], abs=1e-11)
    both = library.closed_leg()
    assert both.nv == 16 and both.closed.mobility().dof == 12


def test_legs_in_flight_keep_their_momentum() -> None:
    robot = library.closed_leg(legs=1).with_gravity([0, 0, 0])
    q = robot.closed.assemble([0.1, -0.4, 0.3], robot.neutral())
    tau = 2 * np.random.default_rng(2).normal(size=3)
    jump = torsor.simulate(robot, q, duration=0.1, controller=tau, step=2.5e-4)
    momentum = robot.momentum(jump.q, jump.v)
    assert np.abs(momentum).max() < 1e-9 < np.abs(jump.v).max()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: library.four_bar(crank=0), "crank"),
        (lambda: library.four_bar(masses=(1, 2)), "the masses of crank, coupler, rocker"),
        (lambda: library.slider_crank(masses=(1, -1, 1)), "mass of the rod"),
        (lambda: library.palletiser(payload=-1), "payload"),
        (lambda: library.closed_leg(legs=3), "legs"),
    ],
)
def test_mistakes_are_named(make, message: str) -> None:
    with refused(message):
        make()


def test_the_example_of_closed_loops_keeps_what_it_should() -> None:
    path = Path(__file__).parents[3] / "examples" / "closed_loops.py"
    spec = importlib.util.spec_from_file_location("closed_loops", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    run = example.engine()
    assert np.ptp(run.energy) < 1e-4 and np.abs(run.closure_error).max() < 1e-12
    assert run.q[-1, 0] - run.q[0, 0] > 2 * np.pi  # through both dead points
    moment, _ = example.bearings(np.linspace(0, 2 * np.pi, 361)[:-1])
    assert abs(moment.mean()) < 1e-8 * np.abs(moment).max()  # nothing does work in a whole turn
