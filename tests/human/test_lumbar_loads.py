"""Loads on L5/S1 agree with statics and with Newton's law for the body above the disc, with stated moment arms."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import hand_wrenches
from torsor.human.ergonomics import LumbarModel, compression_tolerance, lumbar_loads

BODY = torsor.library.human()
LOWER = ("pelvis", "thigh", "shank", "foot", "toes")
UP = np.array([0.0, 1.0, 0.0])


def _posture(seed: int) -> np.ndarray:
    return 0.3 * np.random.default_rng(seed).normal(size=BODY.nv)


def _disc(q: np.ndarray) -> np.ndarray:
    return np.asarray((BODY.pose(q, "pelvis") @ [0.0, LumbarModel().height, 0.0, 1.0])[:3])


def _parts_above(q: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Return masses and places of all that is above the disc; the pelvis has a slice there, as a point."""
    found, poses = [], BODY.poses(q)
    for link, pose in zip(BODY.links, poses, strict=True):
        if link.mass and not link.name.endswith(LOWER):
            found.append((link.mass, (pose @ [*link.com, 1.0])[:3]))
    navel, disc = 0.1457, LumbarModel().height
    slice_ = 0.1117 * BODY.mass * (navel - disc) / navel
    pelvis = poses[BODY.link_names.index("pelvis")]
    return [*found, (slice_, (pelvis @ [0.0, (navel + disc) / 2, 0.0, 1.0])[:3])]


def test_moments_and_forces_at_rest_are_those_of_the_weights_above_the_disc() -> None:
    q = _posture(1)
    found, parts, at = lumbar_loads(BODY, q), _parts_above(q), _disc(q)
    moment = sum(np.cross(place - at, 9.81 * mass * UP) for mass, place in parts)
    force = sum(9.81 * mass for mass, _ in parts) * UP
    x, y, z = BODY.pose(q, "pelvis")[:3, :3].T
    assert found.extension == pytest.approx(-moment @ x, abs=2e-3)
    assert found.lateral == pytest.approx(moment @ z, abs=2e-3)
    assert found.axial == pytest.approx(moment @ y, abs=2e-3)
    normal, ahead = (np.cos(np.radians(40)) * a + np.sin(np.radians(40)) * b for a, b in ((y, z), (z, -y)))
    assert found.compression - found.muscles == pytest.approx(force @ normal, abs=1e-2)
    assert found.shear == pytest.approx(-force @ ahead, abs=1e-2)


def test_loads_of_a_motion_follow_from_the_momentum_of_the_body_above() -> None:
    q, v, h = _posture(2), _posture(3), 1e-5
    a = 3 * _posture(4)

    def momentum(t: float) -> np.ndarray:
        at, rate = q + t * v + t * t / 2 * a, v + t * a
        ahead, behind = (_parts_above(at + sign * h * rate) for sign in (1.0, -1.0))
        pairs = zip(ahead, behind, strict=True)
        return np.sum([mass * (after - before) / (2 * h) for (mass, after), (_, before) in pairs], axis=0)

    step = 1e-3
    rate = (momentum(step) - momentum(-step)) / (2 * step)
    force = rate + sum(mass for mass, _ in _parts_above(q)) * 9.81 * UP
    found, R = lumbar_loads(BODY, q, v, a), BODY.pose(q, "pelvis")[:3, :3]
    ahead = np.cos(np.radians(40)) * R[:, 2] - np.sin(np.radians(40)) * R[:, 1]
    assert found.shear == pytest.approx(-force @ ahead, abs=0.1)
    assert found.side_shear == pytest.approx(-force @ R[:, 0], abs=0.1)


@pytest.mark.slow  # another body compiles functions of its own
def test_a_weight_in_the_hands_loads_the_back_as_the_same_mass_does() -> None:
    q = _posture(5)
    carried = torsor.human.Box(12.0).on(BODY)
    pull = hand_wrenches(BODY, q, np.tile([0.0, -6.0 * 9.81, 0.0], (2, 1)))
    one, other = lumbar_loads(carried, q, carried=12.0), lumbar_loads(BODY, q, external=pull)
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_compression_is_muscle_force_with_the_stated_moment_arms() -> None:
    bent, arched = np.zeros((2, BODY.nv))
    bent[BODY.coordinate_names.index("tilt")], arched[BODY.coordinate_names.index("tilt")] = 0.8, -0.3
    back, belly = lumbar_loads(BODY, bent), lumbar_loads(BODY, arched)
    assert back.extension > 0 and back.muscles == pytest.approx(back.extension / 0.05)
    assert belly.extension < 0 and belly.muscles == pytest.approx(-belly.extension / 0.10)
    longer = lumbar_loads(BODY, bent, model=LumbarModel(erector=0.06))
    assert longer.muscles == pytest.approx(back.muscles * 5 / 6)


def test_postures_of_any_leading_shape_give_loads_of_that_shape() -> None:
    q = np.stack([_posture(k) for k in range(6)]).reshape(2, 3, -1)
    found = lumbar_loads(BODY, q)
    assert all(each.shape == (2, 3) for each in found)
    assert found.compression[1, 2] == pytest.approx(float(lumbar_loads(BODY, q[1, 2]).compression))


def test_discs_of_older_people_bear_less() -> None:
    assert compression_tolerance(60, "female") < compression_tolerance(20, "female") < compression_tolerance(20, "male")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"erector": 0.0}, "erector"),
        ({"slope": 95.0}, "slope"),
        ({"behind": 0.5}, "behind"),
    ],
)
def test_impossible_models_raise(settings: dict[str, float], message: str) -> None:
    with refused(message):
        LumbarModel(**settings)


def test_a_robot_that_is_no_human_raises() -> None:
    with refused(argument="body", where="lumbar loads", fix="torsor.library.human"):
        lumbar_loads(torsor.library.two_link(), [0.0, 0.0])
