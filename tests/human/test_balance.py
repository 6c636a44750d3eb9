"""The ground reaction satisfies equilibrium, and it is distributed to the feet exactly."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import Backpack, Box, Foot, Step, ground_reaction
from torsor.reproduce.documents.printed_walk import STEP, habitual_problem
from torsor.spatial import inverse_pose


def _motion(seed: int, count: int = 3) -> tuple[torsor.Robot, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return torsor.library.human().to(device="casadi"), [0.2 * rng.normal(size=(count, 55)) for _ in range(3)]


def _at_link(body: torsor.Robot, q: np.ndarray, link: str, force: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Return a wrench about the world's origin as external wrenches (L, 6) with one on a link."""
    pose = inverse_pose(body.pose(q, link))
    R, p = pose[:3, :3], -pose[:3, :3].T @ pose[:3, 3]
    external = np.zeros((len(body.links), 6))
    external[body.link_names.index(link)] = [*R @ (moment - np.cross(p, force)), *R @ force]
    return external


def test_the_ground_reaction_on_a_foot_cancels_the_global_forces() -> None:
    body, (q, v, a) = _motion(0)
    ground = ground_reaction(body, q, v, a)
    for k in range(len(q)):
        external = _at_link(body, q[k], "right_foot", ground.force[k], ground.moment[k])
        assert np.abs(body.inverse_dynamics(q[k], v[k], a[k], external)[:6]).max() < 1e-9


def test_the_moment_about_the_zero_moment_point_is_vertical() -> None:
    body, (q, v, a) = _motion(1)
    ground = ground_reaction(body, q, v, a)
    at = np.stack([ground.zmp[:, 0], np.zeros(len(q)), ground.zmp[:, 1]], axis=-1)
    left = ground.moment - np.cross(at, ground.force)
    np.testing.assert_allclose(left[:, [0, 2]], 0.0, atol=1e-9)
    np.testing.assert_allclose(left[:, 1], ground.twist, atol=1e-9)


def test_the_force_accelerates_the_centre_of_mass() -> None:
    body, (q, v, a) = _motion(2, 1)
    step = 1e-4

    def centre(t: float) -> np.ndarray:
        return body.center_of_mass(q[0] + t * v[0] + t**2 / 2 * a[0])

    acceleration = (centre(step) - 2 * centre(0.0) + centre(-step)) / step**2
    force = body.mass * (acceleration - body.gravity)
    np.testing.assert_allclose(ground_reaction(body, q, v, a).force[0], force, atol=1e-3)


def test_a_robot_without_global_coordinates_raises() -> None:
    arm = torsor.library.six_axis_arm()
    with refused(argument="body", allowed="a body whose first coordinates are tx"):
        ground_reaction(arm, np.zeros(6), np.zeros(6), np.zeros(6))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 0.0}, "length"),
        ({"flat": 0.5}, "flat"),
        ({"knee": 0.1}, "knee"),
        ({"toe_off": "early"}, "toe_off"),
        ({"speed": True}, "speed"),
        ({"ball_off": 0.3}, "ball_off"),
        ({"push": -1.0}, "push"),
    ],
)
def test_invalid_steps_raise(settings: dict[str, float], message: str) -> None:
    with refused(message):
        Step(**settings)


@pytest.mark.parametrize("push", [1.0, 0.5])
def test_lines_of_force_of_both_feet_meet_that_of_their_sum(push: float) -> None:
    step, foot = replace(STEP, push=push), Foot.of(torsor.library.human())
    at, f = step.carried(np.linspace(0.01, step.toe_off - 0.01, 7), foot), np.array([20.0, 800.0, -60.0])
    height = 4 * foot.length / push
    slope = f[[0, 2]] / f[1]
    right = at.right_fraction
    whole = right[:, None] * at.right + (1 - right)[:, None] * at.left + height * slope
    for feet, fraction, sign in ((at.right, right, 1.0), (at.left, 1 - right, -1.0)):
        meets = feet + height * (slope + sign * at.across / fraction[:, None])
        np.testing.assert_allclose(meets, whole, atol=1e-12)
    # Along the line through the feet: it has no moment.
    along = at.right - at.left
    np.testing.assert_allclose(at.across[:, 0] * along[:, 1], at.across[:, 1] * along[:, 0], atol=1e-15)
    assert (at.across[:, 1] < 0).all()  # the leading foot brakes
    assert not replace(STEP, push=0.0).carried(np.array([0.1]), foot).across.any()


@pytest.mark.slow
def test_a_step_solved_from_standing_is_in_equilibrium_with_the_ground() -> None:
    problem = habitual_problem()
    result = problem.solve("condensed", tolerance=1e-5)
    assert result.is_solved and result.objective < 0.26
    body, q = result.robot, result.q
    ground = ground_reaction(body, q, result.v, result.a)
    weight = 9.81 * body.mass
    assert ground.force[:, 1].min() > 0.5 * weight and 0.95 < ground.force[:, 1].mean() / weight < 1.1
    knee = np.degrees(q[:, body.coordinate_names.index("left_knee_flexion")])
    assert 50 < knee.max() < 76
    # The step ends as it began, mirrored and one step length ahead.
    for name in ("heel", "toe", "wrist"):
        first, last = body.pose(q[0], f"right_{name}")[:3, 3], body.pose(q[-1], f"left_{name}")[:3, 3]
        np.testing.assert_allclose(last, first * [-1, 1, 1] + [0, 0, STEP.length], atol=1e-6)


@pytest.mark.slow
def test_torques_of_the_walking_problem_include_the_wrenches_on_the_feet() -> None:
    problem, rng = habitual_problem(), np.random.default_rng(0)
    program, step, foot = problem.program, STEP, Foot.of(torsor.library.human())
    x = np.clip(problem.guess() + 0.05 * rng.normal(size=program.n), program.lower, program.upper)
    batch = next(each for each in program.batches if any(rows.title == "torques" for rows in each.kernels.constraints))
    names = [label for bound in batch.kernels.rows for label in bound.labels]
    rows = batch.value(x)[0].reshape(len(batch.s), -1)
    phase_layout, body = program.layout.phases[0], torsor.library.human()
    y = phase_layout.profiles(x, batch.s, 3)
    q, v, a = problem.model.positions(y[0]), np.zeros((len(batch.s), 55)), np.zeros((len(batch.s), 55))
    v[:, problem.model.places], a[:, problem.model.places] = y[1], y[2]
    ground = ground_reaction(body, q, v, a)
    for k in (3, 12, 20):  # both feet, the flat foot, the forefoot
        at = step.carried(batch.s[k : k + 1], foot)
        fraction, (x, z), (aside, ahead) = at.right_fraction[0], at.right[0], at.across[0]
        front, rear = np.array([x, 0.0, z]), np.array([at.left[0, 0], 0.0, at.left[0, 1]])
        f, n = ground.force[k], ground.moment[k]
        own = fraction * f + f[1] * np.array([aside, 0.0, ahead])
        n_front = fraction * (n + (1 - fraction) * np.cross(front - rear, f)) + np.cross(front, own - fraction * f)
        on = "right_toes" if batch.s[k] > step.heel_off else "right_foot"
        external = _at_link(body, q[k], on, own, n_front) + _at_link(body, q[k], "left_toes", f - own, n - n_front)
        tau = body.inverse_dynamics(q[k], v[k], a[k], external)
        assert np.abs(tau[:6]).max() < 1e-9
        for name in ("right_hip_flexion", "right_ankle_inversion", "left_knee_flexion", "left_toe_extension"):
            j = body.coordinate_names.index(name)
            assert rows[k, names.index(name)] == pytest.approx(tau[j] / body.effort_limit[j], abs=1e-10)


def test_free_fall_has_no_zero_moment_point() -> None:
    body, still = torsor.library.human(), np.zeros(55)
    ground = ground_reaction(body, still, still, np.r_[0.0, -9.81, np.zeros(53)])
    assert abs(ground.force).max() < 1e-9
    with refused(argument="v"):
        ground_reaction(body, still, np.zeros(54), still)


def test_bodies_whose_pelvis_is_elsewhere_have_other_ground_reactions() -> None:
    """Equal numbers, another place named pelvis: the compiled function must not be that of the other body."""
    kinds, axes = ["prismatic"] * 3 + ["revolute"] * 3, [*np.eye(3), *np.eye(3)[[1, 0, 2]]]
    names = ["ground", "a", "b", "c", "d", "e", "trunk"]
    links = [torsor.Link(name) for name in names[:-1]] + [torsor.Link("trunk", 2.0, (0.1, 0.2, 0.3), np.eye(3))]
    coordinates = ["tx", "ty", "tz", "yaw", "tilt", "list"]
    joints = [
        torsor.Joint(name, kind, names[k], names[k + 1], axis=axis)
        for k, (name, kind, axis) in enumerate(zip(coordinates, kinds, axes, strict=True))
    ]
    trunk = torsor.build("trunk", links, joints, gravity=(0.0, -9.81, 0.0))
    place, still = np.eye(4), np.zeros(6)
    moments = []
    for x in (0.0, 0.5):
        place[0, 3] = x
        body = trunk.with_frame("pelvis", "trunk", place)
        ground = ground_reaction(body, still, still, still)
        tau = body.inverse_dynamics(still, still, still)
        np.testing.assert_allclose(ground.moment[2], tau[5] + x * tau[1], atol=1e-12)
        moments.append(ground.moment)
    assert abs(moments[0][2] - moments[1][2]) > 1.0


def test_a_load_weighs_on_the_ground() -> None:
    body, still = torsor.library.human(), np.zeros(55)
    for load in (Box(10.0), Backpack(10.0)):
        ground = ground_reaction(body, still, still, still, load=load)
        np.testing.assert_allclose(ground.force, [0.0, 9.81 * (body.mass + 10.0), 0.0], atol=1e-9)
        np.testing.assert_array_equal(ground.zmp, ground_reaction(load.on(body), still, still, still).zmp)
    with refused(argument="load", allowed="a Backpack or a Box"):
        ground_reaction(body, still, still, still, load=10.0)  # type: ignore[arg-type]
