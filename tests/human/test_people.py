"""People of other ages, lengths and strengths: masses sum up, laws of scale hold, strengths are the published ones."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.human import (
    Box,
    Person,
    Step,
    StrengthCurves,
    Stride,
    TrunkStrength,
    described_person,
    froude_number,
    joint_strength,
    joint_torques,
    largest_lift,
    lifting,
    person_of,
    segment_lengths,
    similar_step,
    walking,
    walking_limit,
    weaknesses,
    with_lengths,
    with_strength,
)
from torsor.human.body.strength import AGES, CURVED_JOINTS, SEXES, age_group, age_ratio
from torsor.human.contact.schedule import warn_of_running
from torsor.library.anthropometry import JENSEN, Body
from torsor.motion import sweeps

MAN = Person(1.75, 75.0, "male")
SEGMENTS = {"head": 1, "upper trunk": 1, "middle trunk": 1, "lower trunk": 1} | dict.fromkeys(
    ("upper arm", "forearm", "hand", "thigh", "shank", "foot"), 2
)


def _limit(body: Any, name: str) -> float:
    return float(body.effort_limit[body.coordinate_names.index(name)])


# Children


def test_segments_of_all_ages_sum_to_the_mass_of_the_body() -> None:
    for age in (4.0, 6.0, 9.5, 12.0, 17.9, None):
        for sex in SEXES:
            segments = Body(1.3, 30.0, sex, age)
            whole = sum(count * segments[name].mass for name, count in SEGMENTS.items())
            assert whole == pytest.approx(30.0, rel=1e-14)
    assert torsor.library.human(1.3, 30.0, "male", age=9.5).mass == pytest.approx(30.0, rel=1e-14)


def test_masses_of_children_grow_as_published() -> None:
    """Between 6 and 18 years, the ratio of two segments changes as that of Jensen's fractions."""
    for age, column in ((6.0, 0), (12.0, 1), (18.0, 2)):
        child, adult = Body(1.2, 22.0, "male", age), Body(1.2, 22.0, "male")
        for name in ("upper arm", "forearm", "hand", "thigh", "shank", "foot"):
            ratio = (child["head"].mass / child[name].mass) / (adult["head"].mass / adult[name].mass)
            (head, *_, last), row = JENSEN["head"], JENSEN[name]
            head = JENSEN["head"][column]
            assert ratio == pytest.approx(head / last / (row[column] / row[2]), rel=1e-12)
    assert sum(row[0] * (1 if name in ("head", "trunk") else 2) for name, row in JENSEN.items()) == pytest.approx(100.2)


def test_inertia_scales_with_mass_and_squared_length() -> None:
    small, large = Body(1.2, 20.0, "female", 9.0), Body(1.8, 60.0, "female", 9.0)
    for name in SEGMENTS:
        assert large[name].sideways / small[name].sideways == pytest.approx(3 * 1.5**2, rel=1e-12)
        assert large[name].centre / small[name].centre == pytest.approx(1.5, rel=1e-12)


@pytest.mark.parametrize("age", [6.0, 15.0])
def test_a_body_of_a_child_knows_its_age(age: float) -> None:
    child = Person.of_percentile(30, 60, "female", age)
    found = person_of(Box(2.0).on(child.body()), 2.0)
    assert (found.height, found.mass, found.age) == pytest.approx((child.height, child.mass, age), rel=1e-6)
    assert found.sex == "female" and not found.strength


def test_a_child_within_the_growth_charts_does_not_warn_and_one_outside_of_them_does() -> None:
    Person.of_percentile(age=7).warn_outside_of_tables("lift")
    with warned(allowed="the range of 98 % of boys aged 7 years"):
        Person(1.22, 50.0, "male", age=7).body()
    with warned(fix="for a child, give the age"):
        Person(1.2, 25.0, "male").body()


# Older people


def test_ages_belong_to_the_nearer_group() -> None:
    assert [age_group(each) for each in (None, 20, 39, 41, 60, 65.5, 90)] == [
        *["young"] * 3,
        "middle",
        "middle",
        *["old"] * 2,
    ]


def test_strength_of_an_older_woman_at_an_angle_and_a_velocity_by_hand() -> None:
    """Knee extension of women above 65 years: C1 to C6 = 0.124, 1.347, 1.140, 1.066, 2.855, 0.464; m g h = 981 N m."""
    woman = Person(1.6, 62.5, "female", age=70)
    lower, _ = joint_strength(woman.body(), "left_knee_flexion", 1.5, -1.0, woman.curves)
    slow, fast = 1.066, 2.855
    speed = (2 * slow * fast + fast - 3 * slow) / (2 * slow * fast + 2 * fast - 4 * slow)
    assert float(-lower) == pytest.approx(0.124 * 981.0 * math.cos(1.347 * (1.5 - 1.140)) * speed, rel=1e-12)


@pytest.mark.parametrize(("sex", "age"), [("male", 60.0), ("female", 80.0)])
def test_curves_of_a_person_are_the_published_ones_at_every_age(sex: str, age: float) -> None:
    person = Person(1.7, 70.0, sex, age=age)
    body, group = person.body(), age_group(age)
    for joint in CURVED_JOINTS:
        found = person.curves.of(body, f"right_{joint}")
        usual = StrengthCurves(sex, group).of(torsor.library.human(1.7, 70.0, sex), joint)
        np.testing.assert_allclose(np.array(found), np.array(usual), rtol=1e-12)


def test_the_limits_of_older_people_are_those_of_the_young_times_the_ratio() -> None:
    young, old = (Person(1.62, 60.0, "female", age=age).body() for age in (25, 80))
    for name in ("right_knee_flexion", "left_shoulder_flexion", "spine2_lateral"):
        assert _limit(old, name) == pytest.approx(age_ratio(name, "female", "old") * _limit(young, name), rel=1e-12)
    assert age_ratio("knee_flexion", "female", "old") == pytest.approx((0.124 / 0.159 + 0.060 / 0.080) / 2)
    assert all(age_ratio(joint, sex, "young") == 1.0 for joint in (*CURVED_JOINTS, "elbow") for sex in SEXES)


def test_older_people_are_weaker_but_at_the_ankles() -> None:
    for sex in SEXES:
        for age in AGES[1:]:
            assert age_ratio("neck_flexion", sex, age) < 1
    assert age_ratio("ankle_flexion", "female", "old") > 1  # as in the table: 0.125 against 0.104 in plantarflexion


def test_the_back_of_an_older_person_is_weaker_in_tasks_too() -> None:
    old = Person(1.75, 75.0, "male", age=70)
    ratio = age_ratio("spine1_flexion", "male", "old")
    by_person, by_body = TrunkStrength(old), TrunkStrength(person_of(old.body()))
    assert by_person.extend(0.5) == pytest.approx(ratio * TrunkStrength(MAN).extend(0.5), rel=1e-12)
    assert by_body.extend(0.5) == pytest.approx(by_person.extend(0.5), rel=1e-9)


# Lengths


def test_given_lengths_are_those_of_the_body_and_masses_stay() -> None:
    wanted = {
        "thigh": 0.44,
        "right_shank": 0.45,
        "left_shank": 0.44,
        "foot": 0.27,
        "upper_arm": 0.30,
        "left_hand": 0.08,
    }
    wanted |= {"forearm": 0.25, "trunk": 0.58, "pelvis": 0.18, "shoulders": 0.36, "head": 0.25}
    usual = torsor.library.human(1.75, 75.0)
    body = with_lengths(usual, wanted)
    found = segment_lengths(body)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-12)
    assert body.mass == pytest.approx(75.0, rel=1e-14)
    thigh = body.link_names.index("left_thigh")
    scale = 0.44 / segment_lengths(usual)["thigh"]
    np.testing.assert_allclose(body.links[thigh].inertia, scale**2 * usual.links[thigh].inertia, rtol=1e-12)


def test_the_longer_leg_stands_on_the_ground() -> None:
    body = with_lengths(torsor.library.human(), {"left_shank": 0.40})
    heights = [body.pose(body.neutral(), f"{side}_heel")[1, 3] for side in ("right", "left")]
    assert heights[0] == pytest.approx(0.0, abs=1e-12) and heights[1] == pytest.approx(0.4403 - 0.40, abs=1e-9)


def test_other_proportions_do_not_change_the_sex() -> None:
    for sex, factor in (("male", 0.85), ("female", 1.15)):
        usual = torsor.library.human(1.7, 70.0, sex)
        length = factor * segment_lengths(usual)["shank"]
        assert person_of(with_lengths(usual, {"shank": length})).sex == sex


def test_lengths_that_contradict_the_height_warn() -> None:
    with warned(fix="give the height"):
        Person(1.75, 75.0, "male", lengths={"thigh": 0.48, "shank": 0.50}).body()


# Strengths


def test_stronger_people_have_exactly_stronger_limits_curves_and_backs() -> None:
    strong, usual = Person(1.75, 75.0, "male", strength={"all": 1.25}), MAN
    bodies = strong.body(), usual.body()
    np.testing.assert_allclose(bodies[0].effort_limit[6:], 1.25 * bodies[1].effort_limit[6:], rtol=1e-14)
    for name in ("right_hip_flexion", "left_elbow_flexion"):
        np.testing.assert_allclose(
            joint_strength(bodies[0], name, 0.4, -1.0),
            1.25 * np.array(joint_strength(bodies[1], name, 0.4, -1.0)),
            rtol=1e-12,
        )
    assert TrunkStrength(strong).extend(0.3) == pytest.approx(1.25 * TrunkStrength(usual).extend(0.3), rel=1e-12)
    assert person_of(bodies[0]).factor("neck_axial") == pytest.approx(1.25, rel=1e-9)


def test_strengths_of_one_side_and_of_one_joint() -> None:
    person = Person(
        1.741, 73.0, "male", strength={"left": 0.5, "knee_flexion": 0.8}, largest_torque={"elbow_flexion": 60}
    )
    body = person.body()
    names = ("right_knee_flexion", "left_knee_flexion", "right_hip_flexion", "left_hip_flexion", "left_elbow_flexion")
    assert [_limit(body, name) for name in names] == pytest.approx([160.0, 80.0, 200.0, 100.0, 60.0])
    assert person.factor("left_elbow_flexion") == pytest.approx(0.75)


def test_a_body_without_limits_has_the_usual_back() -> None:
    usual = MAN.body()
    free = replace(usual, joints=tuple(replace(joint, effort_limit=np.inf) for joint in usual.joints))
    assert TrunkStrength(person_of(free)).extend(0.0) == pytest.approx(TrunkStrength(MAN).extend(0.0), rel=1e-9)


def test_one_sided_people_need_two_steps() -> None:
    weak = with_strength(torsor.library.human(), {"left_ankle_flexion": 0.2})
    with refused(what="effort_limit: right_ankle_flexion differs from left_ankle_flexion"):
        walking(weak)
    assert walking(weak, steps=2).name == "walk"
    short = with_lengths(torsor.library.human(), {"left_shank": 0.42})
    with refused(what="not the mirror image"):
        walking(short)


# Speeds


def test_people_of_all_sizes_walk_alike_at_the_same_froude_number() -> None:
    child = Person.of_percentile(age=6).body()
    step = similar_step(child, Step(length=0.7, speed=1.4))
    assert froude_number(child, step.speed) == pytest.approx(froude_number(torsor.library.human(), 1.4), rel=1e-12)
    assert froude_number(child, walking_limit(child)) == pytest.approx(0.5, rel=1e-12)


def test_speeds_at_which_people_run_warn_and_two_metres_a_second_do_not() -> None:
    warn_of_running(torsor.library.human(), 2.0)
    with warned(what="Froude number of 0.66: people of this size run above 2.15 m/s"):
        walking(step=Step(speed=2.47, length=0.9))
    with warned(what="run above 1."):
        warn_of_running(Person.of_percentile(age=6).body(), 2.0)


# Invalid people


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"height": -1.7}, "height (m)"),
        ({"height": 3.0}, "height"),
        ({"mass": float("nan")}, "mass (kg)"),
        ({"age": 2}, "age (years)"),
        ({"age": "young"}, "age (years)"),
        ({"sex": "M"}, "sex"),
        ({"lengths": {"leg": 0.9}}, "leg"),
        ({"lengths": {"thigh": -0.4}}, "length of thigh (m)"),
        ({"lengths": {"thigh": 44}}, "length of thigh is 44 m"),
        ({"lengths": {"thigh": 0.4, "left_thigh": 0.41}}, "left_thigh and thigh are both given"),
        ({"lengths": 0.4}, "lengths"),
        ({"strength": {"knee": 0.5}}, "knee"),
        ({"strength": {"all": 0}}, "strength of all"),
        ({"strength": {"all": 80}}, "strength of all"),
        ({"largest_torque": {"elbow_flexion": -3}}, "largest torque of elbow_flexion (N m)"),
        ({"largest_torque": {"elbow_flexion": 3, "left": 5}}, "left_elbow_flexion has two largest torques"),
    ],
)
def test_invalid_people_are_named(given: dict[str, Any], message: str) -> None:
    with refused(message):
        Person(**({"height": 1.75, "mass": 75.0, "sex": "male"} | given)).body()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"height": 1.8, "stature_percentile": 95}, "height is 1.8 and stature_percentile is 95"),
        ({"mass": 80, "mass_percentile": 5}, "mass is 80 and mass_percentile is 5"),
        ({"height": 1.8, "mass": 80, "population": "NHANES"}, "population"),
    ],
)
def test_contradictory_people_are_named(given: dict[str, Any], message: str) -> None:
    with refused(message):
        described_person(**given)


def test_what_is_not_known_of_a_person_is_the_median() -> None:
    woman = described_person(mass_percentile=95, sex="female", age=45)
    assert (woman.height, woman.mass) == pytest.approx((1.62, 123.7), rel=1e-12)
    assert (described_person().height, described_person().mass) == (1.741, 73.0)
    assert described_person(1.9, age=30).mass == pytest.approx(87.1, rel=1e-12)


# Motions


@pytest.mark.slow
def test_children_and_older_people_walk() -> None:
    """People use 0.15 ml of oxygen per metre and kg as adults, 0.22 from 6 to 12 years, 0.16 from 60 (Waters 1988)."""
    costs = []
    people = [Person(1.741, 73.0, "male"), Person.of_percentile(age=6), Person.of_percentile(sex="female", age=75)]
    for person in people:
        body = person.body()
        curves = person.curves if person.age == 75 else None
        found = walking(body, similar_step(body), curves=curves).solve()
        costs.append(Stride(found).energy.cost_of_transport)
    adult, child, older = costs
    assert 1.1 * adult < child < 1.5 * adult and older == pytest.approx(adult, rel=0.25)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_somebody_weak_on_one_side_walks_with_two_steps() -> None:
    body = Person(1.68, 70.0, "female", age=70, strength={"left": 0.7}).body()
    assert walking(body, steps=2).solve().is_feasible


@pytest.mark.slow
def test_a_cohort_is_a_sweep() -> None:
    people = sweeps.samples(3, stature_percentile=(5, 95), mass_percentile=(25, 75), strength=(0.9, 1.1), seed=1)
    found = torsor.sweep("walk", people, fixed={"sex": "female", "age": 70, "speed": 1.1}, workers=0)
    assert found.done == 3 and (found["cost_of_transport"] > 0.5).all()
    assert found.units["stature_percentile"] == "%"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_a_load_that_nobody_lifts_names_the_joints_that_are_too_weak() -> None:
    with pytest.raises(
        torsor.motion.MotionError, match=r"spine1_flexion needs \d+ N m at .* fix: use a smaller load"
    ) as error:
        lifting(box=Box(60.0)).solve()
    assert error.value.result is not None
    worst, names = weaknesses(error.value.result)[0], error.value.result.robot.coordinate_names
    torques = joint_torques(error.value.result)[:, names.index(worst.joint)]
    found = abs(float(np.interp(worst.time, error.value.result.times, torques)))
    assert found == pytest.approx(worst.torque, rel=0.01) and worst.ratio > 1.1
    assert not weaknesses(lifting(box=Box(5.0)).solve())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_the_largest_lift_is_between_what_goes_and_what_does_not() -> None:
    found = largest_lift(within=5.0, first=20.0)
    assert found.result.is_feasible and 0 < found.too_heavy - found.mass <= 5.0 and 25.0 < found.mass < 50.0
    weak = largest_lift(with_strength(torsor.library.human(), {"all": 0.5}), within=5.0)
    assert weak.mass < found.mass


@pytest.mark.slow
def test_the_example_draws_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    path = Path(__file__).parents[2] / "examples" / "people.py"
    specification = importlib.util.spec_from_file_location("people_example", path)
    assert specification is not None and specification.loader is not None
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    example.main(tmp_path / "people.png")
    assert len(capsys.readouterr().out.splitlines()) == 6 and (tmp_path / "people.png").stat().st_size > 10_000
