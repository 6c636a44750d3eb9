"""Robots with free bases and known wrenches: parameters from joint torques, from the base alone, and from parts."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import Measurements
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.differentiation import motion_of

FEET = ("fl_foot", "fr_foot", "hl_foot", "hr_foot")


def _walk(robot, count, seed=0):
    """Return random states q, v, a and random wrenches on the feet of a quadruped, which its base balances."""
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=(count, robot.nv)))
    v, a = rng.normal(size=(2, count, robot.nv))
    wrenches = {foot: 20 * rng.normal(size=(count, 6)) for foot in FEET}
    external = sum(robot.wrench_at(q, k, w[:, :3], w[:, 3:], axes="local") for k, w in wrenches.items())
    # The base has no drive: the wrench on the trunk is what the motion still needs.
    need = robot.inverse_dynamics(q, v, a, external)[:, :6]
    wrenches["trunk"] = need
    external = external + robot.wrench_at(q, "trunk", need[:, :3], need[:, 3:], axes="local")
    tau = robot.inverse_dynamics(q, v, a, external)
    assert np.abs(tau[:, :6]).max() < 1e-9
    return (q, v, a), wrenches, external, tau


@pytest.fixture(scope="module")
def quadruped():
    rng = np.random.default_rng(5)
    robot = torsor.library.quadruped()
    for joint in robot.joints[1:]:
        robot = robot.with_friction(joint.name, *rng.uniform(0.1, 0.5, 2))
    return robot


@pytest.fixture(scope="module")
def walk(quadruped):
    return _walk(quadruped, 400)


def test_exact_torques_and_wrenches_give_the_base_parameters(quadruped, walk):
    state, wrenches, _, tau = walk
    data = Measurements.of(quadruped, *state, tau, external=wrenches)
    found = torsor.identify(quadruped.inertial.replaced(0.7 * quadruped.inertial.values), data)
    true = quadruped.inertial.base()
    assert found.names == true.names
    assert np.abs(found.values - true.values).max() < 1e-9 * np.abs(true.values).max()
    assert data.weights is None
    assert found.unexplained == ()


def test_the_base_alone_shows_all_parameters_of_links_as_ayusawa_proved(quadruped, walk):
    """Ayusawa, Venture and Nakamura 2014: the six equations of the base determine what the joint torques determine."""
    state, wrenches, _, _ = walk
    data = Measurements.of(quadruped, *state, external=wrenches)
    found = torsor.identify(quadruped.inertial.replaced(0.7 * quadruped.inertial.values), data)
    everything = quadruped.inertial.base()
    of_links = everything.columns < 10 * len(quadruped.links)
    assert np.array_equal(found.base.columns, everything.columns[of_links])
    assert found.base.by_rule
    true = everything.values[of_links]
    assert np.abs(found.values - true).max() < 1e-9 * np.abs(true).max()
    assert "fl_knee" in found.report()
    assert np.isnan(found.rms[6:]).all() and np.isfinite(found.rms[:6]).all()


def test_the_rank_of_the_base_rows_is_that_of_all_rows(quadruped):
    """The same claim without the library's rules: ranks of the regressor of the links over random motions."""
    rng = np.random.default_rng(1)
    for robot in (quadruped, torsor.library.free_flying_arm().without_friction()):
        q = robot.integrate(robot.neutral(), rng.normal(size=(80, robot.nv)))
        Y = robot.inertial.regressor(q, *rng.normal(size=(2, 80, robot.nv)))[..., : 10 * len(robot.links)]
        whole, base = (
            np.linalg.matrix_rank(Y[:, rows].reshape(-1, Y.shape[-1]), tol=1e-7) for rows in (range(robot.nv), range(6))
        )
        assert whole == base


def test_unmeasured_joints_of_an_arm_reduce_the_base_parameters():
    arm = torsor.library.planar_chain(3)
    q, v, a = np.random.default_rng(0).normal(size=(3, 100, 3))
    tau = arm.inverse_dynamics(q, v, a)
    tau[:, 0] = np.nan
    data = Measurements.of(arm, q, v, a, tau, measured=["joint2", "joint3"])
    found = torsor.identify(arm, data)
    # Torques of joints 2 and 3 do not show the inertia of link 1: the rank of their rows alone.
    Y = arm.inertial.regressor(q, v, a)[:, 1:].reshape(-1, len(arm.inertial.values))
    assert len(found) == np.linalg.matrix_rank(Y) < len(arm.inertial.base())
    assert np.abs(found.values - found.base.values).max() < 1e-9
    with refused(argument="tau"):
        Measurements.of(arm, q, v, a, tau)


@pytest.mark.slow
def test_a_physical_estimate_of_a_free_base_finds_the_robot(quadruped, walk):
    state, _, external, tau = walk
    given = quadruped.inertial.replaced(0.8 * quadruped.inertial.values)
    noisy = tau + 1e-3 * np.random.default_rng(0).normal(size=tau.shape)
    data = Measurements(*state, noisy, external=external)
    found = torsor.identify(given, data, physical=True, mass=quadruped.mass, held_out=0.25)
    q, v, a = (each[:5] for each in state)
    M = quadruped.mass_matrix(q)
    assert np.abs(found.robot.mass_matrix(q) - M).max() < 1e-3 * np.abs(M).max()
    assert abs(found.robot.mass - quadruped.mass) < 1e-3
    assert found.held_out.max() < 0.5
    assert np.abs(found.predict(q, v, a, external=external[:5]) - tau[:5]).max() < 1e-2
    other = _walk(quadruped, 30, seed=9)
    assert found.validate(Measurements(*other[0], other[3], external=other[2])).relative_residuals.max() < 0.5


def test_intervals_of_a_free_base_have_the_size_of_the_errors(quadruped):
    state, wrenches, _, _ = _walk(quadruped, 1500, seed=3)
    rng = np.random.default_rng(0)
    noisy = {name: each + 0.1 * rng.normal(size=each.shape) for name, each in wrenches.items()}
    found = torsor.identify(quadruped, Measurements.of(quadruped, *state, external=noisy))
    errors = (found.values - found.base.values) / found.deviations
    assert 0.7 < np.sqrt(np.mean(errors**2)) < 1.4
    assert np.mean(np.abs(errors) < 1.96) > 0.85


def test_a_simulated_push_is_part_of_the_trajectory():
    arm = torsor.library.planar_chain(2)
    push = lambda t, q, v: arm.wrench_at(q, "link2", force=[3.0 * np.sin(5 * t), 2.0, 0.0])  # noqa: E731
    run = torsor.simulate(arm, [0.4, -0.3], duration=1.0, external=push)
    data = Measurements.from_trajectory(run)
    found = torsor.identify(arm, data, among=["*.m*", "*.J*"])
    assert data.external is not None
    assert np.abs(found.values - found.base.values).max() < 1e-6


def test_forces_of_the_environment_are_those_of_the_jacobian(quadruped, walk):
    (q, _, _), wrenches, _, _ = walk
    only = {"hr_foot": wrenches["hr_foot"]}
    data = Measurements.of(quadruped, q, *np.zeros((2, len(q), 18)), external=only)
    J = quadruped.jacobian(q, "hr_foot")
    expected = np.einsum("tij,ti->tj", J, only["hr_foot"])
    assert np.abs(environment_forces(quadruped, q, data.external) - expected).max() < 1e-10


def test_rates_of_a_turning_base_are_those_of_its_motion():
    """Positions are integrated from known rates in fine steps; motion_of recovers these rates."""
    robot = torsor.library.quadruped()
    step, count = 1e-3, 4000
    t = np.arange(count) * step
    w = 2 * np.pi * np.linspace(0.3, 1.2, 18)
    half = t + step / 2
    v = 0.5 * np.sin(np.outer(half, w))
    q = np.empty((count, robot.nq))
    q[0] = robot.neutral()
    for k in range(count - 1):
        q[k + 1] = robot.integrate(q[k], step * v[k])
    q[1000:2000, 3:7] *= -1  # the same rotations
    _, found, rates = motion_of(robot, t, q, cutoff=40.0)
    inside = slice(200, -200)
    assert np.abs(found - 0.5 * np.sin(np.outer(t, w)))[inside].max() < 1e-4
    assert np.abs(rates - 0.5 * w * np.cos(np.outer(t, w)))[inside].max() < 1e-2
    data = Measurements.from_positions(t, q, np.zeros((count, 18)), 40.0, robot=robot)
    assert np.abs(data.v - found[25:-25]).max() < 1e-12


def test_free_coordinates_are_those_without_drives():
    assert free_coordinates(torsor.library.free_flying_arm()) == [0, 1, 2, 3, 4, 5]
    assert free_coordinates(torsor.library.planar_chain(7)) == []


def test_a_saved_identification_keeps_its_wrenches(tmp_path, quadruped, walk):
    state, wrenches, external, _ = walk
    found = torsor.identify(quadruped, Measurements.of(quadruped, *state, external=wrenches))
    found.save(tmp_path / "found.npz")
    again = torsor.identification.Identified.load(tmp_path / "found.npz")
    assert np.array_equal(again.measurements.external, found.measurements.external)
    assert np.abs(again.measurements.external - external).max() < 1e-12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"external": {"left_hand": np.zeros((5, 6))}}, "left_hand"),
        ({"external": {"fl_foot": np.zeros((4, 6))}}, "shape"),
        ({"external": {"fl_foot": np.full((5, 6), np.nan)}}, "not finite in 5 samples"),
        ({"external": np.zeros((5, 3, 6))}, "links, 6"),
        ({"tau": np.zeros((5, 7))}, "tau"),
        ({"tau": np.zeros((5, 18)), "measured": ["knee"]}, "knee"),
        ({"measured": ["fl_knee"]}, "tau is missing"),
    ],
)
def test_mistakes_in_wrenches_and_forces_are_named(options, words):
    robot = torsor.library.quadruped()
    q = np.tile(robot.neutral(), (5, 1))
    with refused(words):
        Measurements.of(robot, q, np.zeros((5, 18)), np.zeros((5, 18)), **options)


def test_wrenches_by_name_need_the_robot_and_arms_need_forces():
    arm = torsor.library.planar_chain(2)
    with refused(fix="Measurements.of"):
        Measurements(*np.zeros((4, 5, 2)), external={"link2": np.zeros((5, 6))})
    with refused(what="no floating base"):
        Measurements.of(arm, *np.zeros((3, 5, 2)))
