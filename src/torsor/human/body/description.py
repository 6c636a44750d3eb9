"""A person described by what is known: sizes, percentiles or the age, as on a command line or in a table of cases."""

from collections.abc import Mapping
from typing import Any

from torsor.base.errors import ModelError, describe
from torsor.human.body.percentiles import size_of_percentile
from torsor.human.body.person import Person
from torsor.human.body.strength import HEIGHT, MASS

MEDIAN = 50.0


def described_person(
    height: float | None = None,
    mass: float | None = None,
    sex: str = "male",
    *,
    age: float | None = None,
    stature_percentile: float | None = None,
    mass_percentile: float | None = None,
    population: str | None = None,
    lengths: Mapping[str, float] | None = None,
    strength: Mapping[str, float] | None = None,
    largest_torque: Mapping[str, float] | None = None,
) -> Person:
    """Return the person of which some things are known.

    A height (m) or mass (kg) that is not given is that of its percentile (%). Without a percentile it is the median of
    the ``population`` and ``age`` (years), if one of these or the other percentile is given, else 1.741 m or 73 kg.
    Lengths and strengths are those of ``Person``.

    Example:
        >>> person = described_person(sex="female", age=10, mass=40.0)
        >>> round(person.height, 2), person.mass
        (1.38, 40.0)
        >>> described_person(1.80, stature_percentile=95)
        Traceback (most recent call last):
        torsor.ModelError: person: height is 1.8 and stature_percentile is 95; allowed: one of them
    """
    for own, percentile, names in (
        (height, stature_percentile, ("height", "stature_percentile")),
        (mass, mass_percentile, ("mass", "mass_percentile")),
    ):
        if own is not None and percentile is not None:
            found = f"{names[0]} is {own!r} and {names[1]} is {percentile!r}"
            raise ModelError(describe(found, where="person", allowed="one of them"))
    if population is not None and height is not None and mass is not None:
        found = f"population is {population!r}, and height and mass are given"
        raise ModelError(describe(found, where="person", allowed="a population with percentiles"))
    usual = HEIGHT, MASS
    if any(each is not None for each in (age, population, stature_percentile, mass_percentile)):
        tall, heavy = (MEDIAN if each is None else each for each in (stature_percentile, mass_percentile))
        if height is None or mass is None:
            usual = size_of_percentile(tall, heavy, sex, age, population)
    given: dict[str, Any] = {"lengths": lengths, "strength": strength, "largest_torque": largest_torque}
    size = (usual[0] if height is None else height), (usual[1] if mass is None else mass)
    return Person(*size, sex, age, **{name: value for name, value in given.items() if value is not None})
