"""People: height, mass, sex, age, limb lengths and strengths, by percentiles or as read from a body.

Who is outside of the tables is named. Strengths of other ages than young are ``age_ratio`` of those of the young.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from torsor.base.checks import indices_of, instance_of, number, one_of, positive, table
from torsor.base.errors import ModelError, describe, warn
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.growth_charts import OLDEST as ADULT
from torsor.human.body.percentiles import size_of_percentile
from torsor.human.body.postures import landmark
from torsor.human.body.resizing import with_lengths
from torsor.human.body.strength import HEIGHT, MASS, StrengthCurves, age_group, age_ratio, default_strengths
from torsor.human.body.strength_inputs import MOST as STRONGEST
from torsor.human.body.strength_inputs import largest_torques, strength_factors, with_strength
from torsor.library.anthropometry import BODY_TABLES
from torsor.library.anthropometry import Body as Segments
from torsor.library.growth import AGES as JENSEN_AGES
from torsor.library.growth import OLDEST, YOUNGEST
from torsor.library.human import human
from torsor.robot.robot import Robot

GRAVITY = 9.81  # m/s^2, of the products m g h by which strengths are scaled
STATURES, BODY_MASS_INDICES = (
    (1.45, 2.00),
    (17.0, 35.0),
)  # m, kg/m^2: de Leva's subjects were students of 19 to 25 years
AGES = (YOUNGEST, OLDEST)  # years
RARE = 1.0  # %: a child that is smaller or larger than this part of all children is outside of the growth charts
TALLER = 0.03  # of the height: lengths that change it by more contradict it
SAME = 1e-9  # relative difference of strengths that are equal


@dataclass(frozen=True)
class Person:
    """A person: ``height`` (m), ``mass`` (kg, without a load), ``sex``, and what differs from the usual.

    ``age`` (years): below 18, masses of segments are those of children; from 40, strengths those of older people; by
    default people are young adults. ``lengths`` {segment: m} replace those that follow from the height: pelvis (between
    the hips), thigh, shank, foot, trunk, shoulders, upper_arm, forearm, hand, head, limbs also of one side
    ("left_thigh"). ``strength`` {joint: factor} and ``largest_torque`` {joint: N m} change strengths: a joint is a
    coordinate, one of both sides ("knee_flexion"), or, for factors, "left", "right" or "all".

    Example:
        >>> Person(1.75, 80.0, "male").weight_times_height.__round__(1)
        1373.4
        >>> hemiparetic = Person(1.68, 70.0, "female", age=70, strength={"left": 0.5})
        >>> round(hemiparetic.body().mass, 9), hemiparetic.curves.age
        (70.0, 'old')
    """

    height: float
    mass: float
    sex: str
    age: float | None = None
    lengths: Mapping[str, float] = field(default_factory=dict, hash=False)
    strength: Mapping[str, float] = field(default_factory=dict, hash=False)
    largest_torque: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        positive(self.height, "person", "height (m)")
        positive(self.mass, "person", "mass (kg)")
        one_of(self.sex, tuple(BODY_TABLES), "person", "sex")
        if self.age is not None:
            number(self.age, "person", "age (years)", least=AGES[0], most=AGES[1])
        for name in ("lengths", "strength", "largest_torque"):
            table(getattr(self, name), "person", name)

    @classmethod
    def of_percentile(
        cls,
        stature: float = 50.0,
        mass: float = 50.0,
        sex: str = "male",
        age: float | None = None,
        population: str | None = None,
        *,
        lengths: Mapping[str, float] | None = None,
        strength: Mapping[str, float] | None = None,
        largest_torque: Mapping[str, float] | None = None,
    ) -> "Person":
        """Return a person of percentiles (%) of stature and mass: 95 is taller or heavier than 95 % of the people.

        ``population`` is "NHANES" (adults of the United States), "ANSUR II" (soldiers) or "CDC" (children of 2 to 20
        years); by default "CDC" below 20 years, else "NHANES", with ``age`` those of the same decade. The two
        percentiles are independent: a very tall person of median mass is slim.

        Example:
            >>> tall = Person.of_percentile(stature=95, mass=50, sex="male")
            >>> round(tall.height, 3), round(tall.mass, 1)
            (1.872, 86.6)
        """
        height, kg = size_of_percentile(stature, mass, sex, age, population)
        return cls(height, kg, sex, age, lengths or {}, strength or {}, largest_torque or {})

    @property
    def weight_times_height(self) -> float:
        """Weight times height, m g h (N m): strengths of the trunk and of the legs are proportional to it."""
        return GRAVITY * self.mass * self.height

    @property
    def curves(self) -> StrengthCurves:
        """The strength curves of people of this sex and age, for ``walking(person.body(), curves=person.curves)``."""
        group = age_group(self.age)
        return StrengthCurves(self.sex, group, group)

    def factor(self, name: str) -> float:
        """Return the strength of a coordinate divided by the usual one of young people of this weight and height.

        Example:
            >>> round(Person(1.62, 58.0, "female", age=70, strength={"all": 1.1}).factor("spine1_flexion"), 3)
            0.907
        """
        usual = default_strengths()
        indices_of(name, tuple(usual)[len(GLOBAL) :], "person")
        torque = largest_torques(self.largest_torque, tuple(usual), "person").get(name)
        if torque is not None:
            return torque * MASS * HEIGHT / (usual[name] * self.mass * self.height)
        own = strength_factors(self.strength, tuple(usual), "person").get(name, 1.0)
        return own * age_ratio(name, self.sex, age_group(self.age))

    def body(self) -> Robot:
        """Return the body, a ``library.human`` with the lengths and strengths of the person.

        There is a warning for a person outside of the tables, and for lengths that contradict the height.

        Example:
            >>> child = Person.of_percentile(sex="female", age=8).body()
            >>> round(child.mass, 1), round(sum(each.mass for each in child.links if "head" in each.name), 1)
            (25.6, 2.9)
        """
        body = human(self.height, self.mass, self.sex, age=self.age)
        self.warn_outside_of_tables("person")
        if self.lengths:
            body = with_lengths(body, self.lengths, "person")
            self._warn_of_other_height(body)
        own, group = strength_factors(self.strength, body.coordinate_names, "person"), age_group(self.age)
        joints = body.coordinate_names[len(GLOBAL) :]
        factors = {name: own.get(name, 1.0) * age_ratio(name, self.sex, group) for name in joints}
        return with_strength(body, factors, self.largest_torque, "person")

    def _warn_of_other_height(self, body: Robot) -> None:
        height = _height(body, self.sex)
        if abs(height / self.height - 1) > TALLER:
            found = f"with the given lengths the body is {height:.3g} m tall, not {self.height:.4g} m"
            fix = "give the height that belongs to the lengths, or the length of the trunk as well"
            warn(describe(found, where="person", fix=fix))

    def warn_outside_of_tables(self, where: str) -> None:
        """Warn of a person for whom the tables of segments and strengths were not made.

        Example:
            >>> import warnings
            >>> with warnings.catch_warnings(record=True, action="always") as found:
            ...     Person(1.2, 30.0, "male").warn_outside_of_tables("lift")
            >>> str(found[0].message).split(";")[0]
            'lift: the height is 1.2 m'
        """
        limits, people = self._limits()
        values = {"height": (self.height, "m"), "body mass index": (self.mass / self.height**2, "kg/m^2")}
        values["mass"] = self.mass, "kg"
        found = [
            f"the {name} is {values[name][0]:.3g} {values[name][1]}"
            for name, (least, most) in limits.items()
            if not least <= values[name][0] <= most
        ]
        if found:
            ranges = " and ".join(
                f"{least:.3g} to {most:.3g} {values[name][1]}" for name, (least, most) in limits.items()
            )
            fix = "take the results as a trend, or give segments and strengths of your own"
            if self.age is None and self.height < STATURES[0]:
                fix = "of a child, give the age; otherwise " + fix
            warn(describe(" and ".join(found), where=where, allowed=people.format(ranges), fix=fix))

    def _limits(self) -> tuple[dict[str, tuple[float, float]], str]:
        """Return the ranges in which the tables were measured, and of whom."""
        if self.age is None or self.age >= ADULT:
            people = "adults of {}, for whom the tables were measured"
            return {"height": STATURES, "body mass index": BODY_MASS_INDICES}, people
        small, large = (size_of_percentile(each, each, self.sex, self.age) for each in (RARE, 100 - RARE))
        limits = {"height": (small[0], large[0]), "mass": (small[1], large[1])}
        whom = "boys" if self.sex == "male" else "girls"
        return limits, f"{{}}, as {100 - 2 * RARE:g} % of the {whom} of {self.age:g} years"


def person_of(body: Robot, carried: float = 0.0) -> Person:
    """Return who a body (``library.human``) is, if it carries a mass (kg) in addition to its own.

    The sex is that of the table whose thighs have their centre of mass at the same part of the length. The height is
    that of the table scaled to the height of the vertex. ``strength`` has the factors of all strengths that differ from
    those of young people of the same weight and height. The ``age`` is known of children from 6 years, by the masses of
    head and thighs.

    Example:
        >>> person = person_of(torsor.library.human(1.62, 58.0, "female"))
        >>> round(person.height, 9), round(person.mass, 9), person.sex, person.strength
        (1.62, 58.0, 'female', {})
    """
    instance_of(body, Robot, "person", "body", allowed="a torsor.library.human()")
    carried = number(carried, "person", "carried (kg)", least=0.0)
    side, masses = SIDES[0], {link.name: link.mass for link in body.links}
    thigh = float(landmark(body, f"{side}_thigh")[1] - landmark(body, f"{side}_shank")[1])
    centre = -float(body.links[body.link_names.index(f"{side}_thigh")].com[1]) / thigh
    sex = min(BODY_TABLES, key=lambda each: abs(BODY_TABLES[each].rows["thigh"].centre / 100 - centre))
    height, mass = _height(body, sex), body.mass - carried
    if not mass > 0:
        found = f"the body has {body.mass:.4g} kg and carries {carried:.4g} kg"
        raise ModelError(describe(found, where="person", allowed="a load that is part of the mass of the body"))
    age = _age((masses["neck"] + masses["head"]) / mass, masses[f"{side}_thigh"] / mass, sex)
    unit = mass * height / (MASS * HEIGHT)
    limits = dict(zip(body.coordinate_names, body.effort_limit.tolist(), strict=True))
    factors = {name: limits[name] / (unit * usual) for name, usual in default_strengths().items() if name not in GLOBAL}
    own = {name: x for name, x in factors.items() if abs(x - 1) > SAME and 0 < x <= STRONGEST}  # others: no limit
    return Person(height, mass, sex, age, strength=own)


def _age(head: float, thigh: float, sex: str) -> float | None:
    """Return the age (years) at which head and thigh have such parts of the mass of children, None for adults."""

    def part(segment: str, age: float | None) -> float:
        return Segments(1.0, MASS, sex, age)[segment].mass / MASS

    low, high = JENSEN_AGES[0], JENSEN_AGES[-1]
    if part("head", None) > head / (1 + SAME):
        return None
    while high - low > 1e-9:  # heads take up a smaller part of the mass with age
        middle = (low + high) / 2
        low, high = (middle, high) if part("head", middle) > head else (low, middle)
    is_child = high < JENSEN_AGES[-1] - 1e-6 and abs(part("thigh", high) / thigh - 1) < 1e-6
    return high if is_child else None


def _height(body: Robot, sex: str) -> float:
    """Return the stature (m): the segments of the tables sum to another height, in the same proportion for all."""
    soles = min(landmark(body, f"{side}_heel")[1] for side in SIDES)
    return float(landmark(body, "vertex")[1] - soles) / _vertex(sex)


@cache
def _vertex(sex: str) -> float:
    """Return the height of the vertex of a body, divided by its stature."""
    return float(landmark(human(1.0, MASS, sex), "vertex")[1])
