"""The strength of the trunk rises with flexion, is smooth, and is proportional to weight times height."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.human import Person, TrunkStrength, person_of
from torsor.human.body.trunk_strength import MAX_FLEXION, MIN_FLEXION, extension

MAN, WOMAN = Person(1.741, 73.0, "male"), Person(1.62, 58.0, "female")


def test_extension_rises_with_flexion_within_the_published_ranges() -> None:
    angles = np.radians(np.linspace(-30, 90, 200))
    for person, upright, flexed in ((MAN, (175, 290), (330, 350)), (WOMAN, (110, 180), (190, 215))):
        strength = TrunkStrength(person)
        assert (np.diff(strength.extend(angles)) >= -1e-9).all()
        assert upright[0] < strength.extend(0.0) < upright[1]
        assert flexed[0] < strength.extend(MAX_FLEXION + 0.1) < flexed[1]
        assert strength.flex(0.3) < strength.extend(0.0)


def test_the_mean_of_both_sexes_agrees_with_forces_at_the_upper_back() -> None:
    """504 N standing and 911 N sitting of 24 men and 36 women, 72.7 kg, 1.70 m, about 0.375 m above L5/S1."""
    for force, angle, nearness in ((504.0, 0.0, 0.10), (911.0, MAX_FLEXION, 0.17)):
        men, women = (TrunkStrength(Person(1.70, 72.7, sex)).extend(angle) for sex in ("male", "female"))
        assert (24 * men + 36 * women) / 60 == pytest.approx(0.375 * force, rel=nearness)


def test_the_curve_is_twice_differentiable_where_it_becomes_constant() -> None:
    x = ca.SX.sym("x")
    curve = extension([200.0, 100.0], x)
    second = ca.Function("f", [x], [ca.hessian(curve, x)[0]])
    for end in (MIN_FLEXION, MAX_FLEXION):
        values = [float(second(end + each)) for each in np.linspace(-0.1, 0.1, 401)]
        assert np.abs(np.diff(values)).max() < 0.02 * np.abs(values).max()
    assert float(ca.evalf(ca.substitute(curve, x, 0.4))) == pytest.approx(240.0)


def test_strong_and_weak_people_are_standard_deviations_apart() -> None:
    weak, mean, strong = (TrunkStrength(MAN, each).extend(0.5) for each in (-1.0, 0.0, 1.0))
    assert strong - mean == pytest.approx(mean - weak) and strong == pytest.approx(1.25 * mean)


@pytest.mark.parametrize(("height", "mass", "sex"), [(1.5, 50.0, "female"), (1.95, 110.0, "male"), (1.7, 70.0, "male")])
def test_a_body_knows_who_it_is(height: float, mass: float, sex: str) -> None:
    body = torsor.library.human(height, mass, sex)
    found = person_of(torsor.human.Box(9.0).on(body), 9.0)
    assert (found.height, found.mass) == pytest.approx((height, mass), rel=1e-12) and found.sex == sex


@pytest.mark.parametrize(
    ("person", "word"),
    [(Person(1.3, 30.0, "female"), "height is 1.3 m"), (Person(1.7, 130.0, "male"), "body mass index is 45")],
)
def test_people_outside_of_the_tables_are_named(person: Person, word: str) -> None:
    with warned(word):
        person.warn_outside_of_tables("lift")


def test_a_lift_by_somebody_outside_of_the_tables_warns() -> None:
    with warned(where="lift", what="the height is 1.2 m"):
        torsor.human.lifting(torsor.library.human(1.2, 35.0))


def test_invalid_strengths_raise() -> None:
    with refused(argument="deviations"):
        TrunkStrength(MAN, 9)
    with refused(argument="trunk", where="lift", allowed="a torsor.human.TrunkStrength"):
        torsor.human.lifting(trunk=200)
