"""Percentiles reproduce the published columns: growth charts of children, surveys of adults."""

import numpy as np
import pytest

from refusals import refused
from torsor.human import Person, size_of_percentile
from torsor.human.body.percentiles import growth_curves

# Rows of the tables of the CDC: months, then the 5th, 50th and 95th percentile of the stature (cm) of boys.
BOYS = (
    (24.0, 80.72977321, 86.45220101, 92.19687928),
    (37.5, 89.77301106, 95.91474929, 102.5930445),
    (60.5, 101.4523027, 109.1751441, 116.7549954),
    (75.5, 108.7873391, 117.2677879, 125.7167992),
    (96.5, 118.8052553, 128.1237104, 137.8267001),
    (120.5, 128.1624542, 138.8234114, 149.9053151),
)


@pytest.mark.parametrize("row", BOYS, ids=lambda row: f"{row[0]:g} months")
def test_statures_of_boys_are_those_of_the_growth_charts(row: tuple[float, ...]) -> None:
    stature, _ = growth_curves(row[0] / 12, "male")
    assert [stature.at(z) for z in (-1.6448536, 0.0, 1.6448536)] == pytest.approx(row[1:], abs=0.05)


@pytest.mark.parametrize(
    ("age", "sex", "statures", "masses"),
    [  # 5 to 95 % of the charts at half years, rounded
        (12.04, "male", (137.3, 149.3, 161.9), (30.6, 40.7, 59.3)),
        (15.04, "male", (156.7, 170.1, 182.4), (43.0, 56.5, 78.8)),
        (12.04, "female", (139.2, 151.5, 163.5), (31.2, 41.8, 61.6)),
        (18.04, "female", (152.5, 163.1, 173.8), (45.4, 56.2, 80.8)),
        (20.0, "female", (152.7, 163.3, 174.0), (46.3, 58.2, 83.0)),
    ],
)
def test_percentiles_of_youths_are_those_of_the_growth_charts(
    age: float, sex: str, statures: tuple[float, ...], masses: tuple[float, ...]
) -> None:
    found = [size_of_percentile(each, each, sex, age, "CDC") for each in (5, 50, 95)]
    assert [100 * height for height, _ in found] == pytest.approx(statures, abs=0.1)
    assert [mass for _, mass in found] == pytest.approx(masses, abs=0.1)


@pytest.mark.parametrize(
    ("sex", "age", "population", "tall", "heavy"),
    [
        ("male", None, "NHANES", (1.622, 1.752, 1.872), (60.9, 86.6, 131.8)),
        ("female", 75.0, "NHANES", (1.486, 1.579, 1.682), (49.8, 71.7, 103.5)),
        ("female", 20.0, None, (1.532, 1.633, 1.746), (47.6, 68.9, 121.3)),
        ("male", 30.0, "ANSUR II", (1.648, 1.755, 1.870), (64.4, 84.6, 110.7)),
    ],
)
def test_percentiles_of_adults_are_those_of_the_surveys(
    sex: str, age: float | None, population: str | None, tall: tuple[float, ...], heavy: tuple[float, ...]
) -> None:
    found = np.array([size_of_percentile(each, each, sex, age, population) for each in (5, 50, 95)])
    np.testing.assert_allclose(found, np.transpose([tall, heavy]), rtol=1e-12)


def test_sizes_rise_with_the_percentile_and_with_the_age_of_children() -> None:
    for population, age in (("NHANES", None), ("ANSUR II", None), ("CDC", 9.3)):
        sizes = np.array([size_of_percentile(p, p, "female", age, population) for p in np.linspace(5, 95, 61)])
        assert (np.diff(sizes, axis=0) > 0).all()
    ages = np.array([size_of_percentile(50, 50, "male", age) for age in np.linspace(4.0, 19.9, 200)])
    assert (np.diff(ages, axis=0) > 0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stature": 99}, "the stature percentile is 99 %"),
        ({"mass": 0}, "percentile of the mass (%)"),
        ({"stature": 95, "age": 85}, "the stature percentile is 95 %"),
        ({"age": 1.0}, "age (years)"),
        ({"age": 8, "population": "NHANES"}, "NHANES"),
        ({"age": 70, "population": "ANSUR II"}, "ANSUR II"),
        ({"population": "CDC"}, "age"),
        ({"population": "Mars"}, "population"),
        ({"sex": "x"}, "sex"),
    ],
)
def test_what_the_tables_do_not_have_is_named(given: dict[str, object], message: str) -> None:
    with refused(message):
        Person.of_percentile(**given)  # type: ignore[arg-type]
