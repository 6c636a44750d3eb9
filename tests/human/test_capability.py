"""Percent capable and cumulative loads: normal distributions of published strengths, integrals over a shift."""

import math

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import Person
from torsor.human.ergonomics import Capability, capabilities, capable, cumulative_dose
from torsor.human.ergonomics.capability import limb_strengths

BODY = torsor.library.human()
MAN, WOMAN = Person(1.741, 73.0, "male"), Person(1.735, 61.9, "female")


def _of(name: str, torque: float, person: Person = MAN, age: str = "young", q: float = 0.0) -> list[Capability]:
    postures, torques = np.zeros((2, BODY.nv)), np.zeros((2, BODY.nv))
    k = BODY.coordinate_names.index(name)
    postures[:, k], torques[1, k] = q, torque
    return capabilities(BODY, person, postures, torques, np.zeros(2), age)


def test_half_of_the_people_have_the_mean_strength() -> None:
    assert capable(100.0, 100.0, 20.0) == 0.5
    assert capable(80.0, 100.0, 20.0) == pytest.approx(0.841344746, abs=1e-9)
    assert capable(0.0, 100.0, 10.0) == pytest.approx(1.0)


def test_legs_have_the_means_and_deviations_of_the_published_table() -> None:
    """Knee extension of young men: C1 = 0.163, deviation 0.040, times m g h = 1246.8 N m, at the best angle."""
    (hardest, *_) = _of("right_knee_flexion", -150.0, q=1.133)
    assert hardest.name == "right knee extension" and hardest.instant == 1
    assert (hardest.mean, hardest.deviation) == pytest.approx((0.163 * 1246.8, 0.040 * 1246.8), rel=1e-3)
    assert hardest.capable == pytest.approx(capable(150.0, 0.163 * 1246.8, 0.040 * 1246.8), abs=1e-3)


def test_fewer_women_and_fewer_old_people_are_strong_enough() -> None:
    young, old = (_of("left_knee_flexion", -175.0, age=age, q=1.2)[0].capable for age in ("young", "old"))
    women = _of("left_elbow_flexion", 45.0, WOMAN)[0].capable
    assert old < young and women < 0.5 < _of("left_elbow_flexion", 45.0)[0].capable


def test_deep_flexion_has_the_strength_of_the_deepest_measured_one() -> None:
    deep, deeper = (_of("right_knee_flexion", -50.0, q=np.radians(angle))[0].mean for angle in (100.0, 130.0))
    assert deep == pytest.approx(deeper)


def test_the_back_is_weaker_than_its_moment_for_half_of_the_people_at_the_mean() -> None:
    still = np.zeros((1, BODY.nv))
    (hardest,) = capabilities(BODY, MAN, still, still, np.array([0.16 * MAN.weight_times_height]))
    assert hardest.name == "trunk extension" and hardest.capable == pytest.approx(0.5, abs=1e-9)


def test_joints_without_moments_are_not_listed() -> None:
    still = np.zeros((1, BODY.nv))
    assert capabilities(BODY, MAN, still, still, np.zeros(1)) == []


def test_doses_are_integrals_over_all_repetitions() -> None:
    t = np.linspace(0.0, 2.0, 2001)
    dose = cumulative_dose(t, 1000.0 * t, 100.0, "female")
    assert dose.linear == pytest.approx(100 * 2000.0, rel=1e-9) and dose.limit == 3500.0
    assert dose.squared == pytest.approx(np.sqrt(100 * 1e6 * 8 / 3 / 3600 * 8), rel=1e-6)
    assert cumulative_dose([0, 3600.0], [3000.0] * 2, 8.0).squared == pytest.approx(24000.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repetitions": 0.0}, "repetitions"),
        ({"repetitions": 1e5}, "100000 repetitions of 1 s take 27.8 hours"),
        ({"sex": "none"}, "sex"),
        ({"times": [1.0, 0.0]}, "times"),
        ({"compression": [1.0, np.nan]}, "compression"),
    ],
)
def test_impossible_shifts_raise(settings: dict[str, object], message: str) -> None:
    given = {"times": [0.0, 1.0], "compression": [1.0, 1.0]} | settings
    with refused(message):
        cumulative_dose(**given)


def test_unknown_ages_raise() -> None:
    with refused(argument="age", allowed="'young', 'middle', 'old'"):
        _of("right_knee_flexion", -10.0, age="teen")


def test_moments_beyond_measured_angles_are_marked() -> None:
    inside, beyond = (_of("right_knee_flexion", -50.0, q=np.radians(angle))[0] for angle in (99.0, 101.0))
    assert not inside.extrapolated and beyond.extrapolated


def test_strengths_of_the_population_are_those_of_the_rows() -> None:
    """The weakest person who can exert a moment is as many deviations from the mean as the row states."""
    for joint, torque in (("left_hip_flexion", -120.0), ("right_shoulder_flexion", 60.0), ("left_ankle_flexion", 30.0)):
        (row, *_) = _of(joint, torque, q=0.4)
        strengths = (one for one in limb_strengths(MAN, "young") if one.coordinate == joint)
        strength = next(one for one in strengths if one.sign == np.sign(torque))
        mean = float(strength.at(np.array([0.4]))[0])
        z = (abs(torque) - mean) / (strength.variation * mean)
        assert row.capable == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), rel=1e-12)
