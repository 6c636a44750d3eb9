"""The ground gives what equilibrium asks for, and the feet share it exactly."""

import numpy as np
import pytest

import torsor
from torsor.human import Step, ground_reaction
from torsor.spatial import inverse_pose


def _motion(seed: int, count: int = 3) -> tuple[torsor.Robot, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return torsor.library.human(), [0.2 * rng.normal(size=(count, 55)) for _ in range(3)]


def _at_link(body: torsor.Robot, q: np.ndarray, link: str, force: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Return a wrench about the world's origin as one (L, 6) on a link, at its origin in its axes."""
    pose = inverse_pose(body.pose(q, link))
    R, p = pose[:3, :3], -pose[:3, :3].T @ pose[:3, 3]
    external = np.zeros((len(body.links), 6))
    external[body.link_names.index(link)] = [*R @ (moment - np.cross(p, force)), *R @ force]
    return external


def test_with_the_ground_on_a_foot_nothing_is_left_of_the_global_forces() -> None:
    body, (q, v, a) = _motion(0)
    ground = ground_reaction(body, q, v, a)
    for k in range(len(q)):
        external = _at_link(body, q[k], "right_foot", ground.force[k], ground.moment[k])
        assert np.abs(body.inverse_dynamics(q[k], v[k], a[k], external)[:6]).max() < 1e-9


def test_about_the_zero_moment_point_only_a_twist_is_left() -> None:
    body, (q, v, a) = _motion(1)
    ground = ground_reaction(body, q, v, a)
    at = np.stack([ground.zmp[:, 0], np.zeros(len(q)), ground.zmp[:, 1]], axis=-1)
    left = ground.moment - np.cross(at, ground.force)
    np.testing.assert_allclose(left[:, [0, 2]], 0.0, atol=1e-9)
    np.testing.assert_allclose(left[:, 1], ground.twist, atol=1e-9)


def test_the_force_is_that_of_the_centre_of_mass() -> None:
    body, (q, v, a) = _motion(2, 1)
    step = 1e-4

    def centre(t: float) -> np.ndarray:
        return body.center_of_mass(q[0] + t * v[0] + t**2 / 2 * a[0])

    acceleration = (centre(step) - 2 * centre(0.0) + centre(-step)) / step**2
    force = body.mass * (acceleration - body.gravity)
    np.testing.assert_allclose(ground_reaction(body, q, v, a).force[0], force, atol=1e-3)


def test_a_robot_without_global_coordinates_is_refused() -> None:
    arm = torsor.library.six_axis_arm()
    with pytest.raises(torsor.ModelError, match="a body whose first coordinates are tx"):
        ground_reaction(arm, np.zeros(6), np.zeros(6), np.zeros(6))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 0.0}, "length is 0.0; allowed: a finite number above 0"),
        ({"flat": 0.5}, "allowed: shares that rise from 0 to 1"),
        ({"knee": 0.1}, "knee is 0.1; allowed: a share between toe_off"),
        ({"toe_off": "early"}, "allowed: numbers"),
        ({"speed": True}, "speed is True; allowed: a finite number above 0"),
    ],
)
def test_steps_that_cannot_be_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(torsor.ModelError, match=message):
        Step(**settings)
