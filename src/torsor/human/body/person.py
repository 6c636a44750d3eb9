"""People: height, mass, sex, age, limb lengths and strengths, from percentiles or from a body.

A warning is issued for people outside the tables. ``age_ratio`` scales the strengths of young people to other ages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, instance_of, known_name, number, one_of, positive, table
from torsor.base.errors import ModelError, warn
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.percentiles import MAX_CHART_AGE as ADULT
from torsor.human.body.percentiles import size_of_percentile
from torsor.human.body.postures import landmark
from torsor.human.body.strength import (
    GRAVITY,
    HEIGHT,
    MASS,
    StrengthCurves,
    age_group,
    age_ratio,
    default_strengths,
    largest_torques,
    strength_factors,
    with_strength,
)
from torsor.human.body.strength import MAX_FACTOR as MAX_STRENGTH_FACTOR
from torsor.library.anthropometry import AGES as JENSEN_AGES
from torsor.library.anthropometry import BODY_TABLES, OLDEST, YOUNGEST
from torsor.library.anthropometry import Body as Segments
from torsor.library.human import human
from torsor.mechanism import Frame, Joint
from torsor.mechanism.edit import rebuilt
from torsor.robot.robot import Robot

# Segments with individual lengths, and their links.
SEGMENTS: dict[str, tuple[str, ...]] = {
    "pelvis": (), "thigh": ("thigh",), "shank": ("shank",), "foot": ("foot", "toes"),
    "trunk": ("pelvis", "spine1", "spine2", "spine3", "spine4"), "shoulders": ("clavicle",),
    "upper_arm": ("upper_arm",), "forearm": ("forearm",), "hand": ("hand",), "head": ("neck", "head"),
}  # fmt: skip
MIN_FACTOR, MAX_FACTOR = 0.4, 2.0  # range of length factors
# Limb segments, and the two points between which their length is measured.
LIMBS: dict[str, tuple[str, str]] = {
    "thigh": ("thigh", "shank"), "shank": ("shank", "foot"), "foot": ("heel", "toe"),
    "upper_arm": ("upper_arm", "forearm"), "forearm": ("forearm", "wrist"), "hand": ("wrist", "knuckles"),
}  # fmt: skip
NAMES = (*SEGMENTS, *(f"{side}_{name}" for side in SIDES for name in LIMBS))  # segments with a length


def segment_of(link: str) -> str:
    """Return the segment to which a link of ``library.human`` belongs."""
    plain = link.split("/")[0].removeprefix("right_").removeprefix("left_")
    return next((name for name, links in SEGMENTS.items() if plain in links), "")


def offset_factors(body: Robot) -> dict[str, Array]:
    """Return, for each segment, a mask (links, 3) that is 1 for the joint-origin components scaled by its factor.

    The "pelvis" factor scales the distance between the hips, and the "shoulders" factor the shoulder width. All other
    segments, such as the feet, are scaled uniformly.
    """
    masks = {name: np.zeros((len(body.joints), 3)) for name in SEGMENTS}
    for k, joint in enumerate(body.joints):
        if body.parents[k] < 0:
            continue
        if joint.name.endswith("hip_flexion"):
            masks["pelvis"][k] = 1.0
        elif joint.name.endswith("clavicle_elevation"):
            masks["shoulders"][k, [0, 2]], masks["trunk"][k, 1] = 1.0, 1.0
        else:
            masks[segment_of(joint.parent)][k] = 1.0
    return masks


def resized(body: Robot, factors: Mapping[str, float]) -> Robot:
    """Return a body (``library.human``) with longer or shorter segments, from {segment: factor}.

    Segments are pelvis (distance between the hips), thigh, shank, foot, trunk, shoulders (shoulder width), upper_arm,
    forearm, hand and head. A limb segment may be specified for one side ("left_thigh"). Masses do not change. Centres
    of mass and radii of gyration remain at the same fractions of the segment length (de Leva 1996). The longer leg
    determines the standing height.

    Example:
        >>> body = torsor.library.human()
        >>> longer = resized(body, {"thigh": 1.1})
        >>> [round(float(each.joint("right_knee_flexion").placement[1, 3]), 4) for each in (body, longer)]
        [-0.4222, -0.4644]
    """
    known = _factors(factors, "resized")
    scales = np.ones((len(body.joints), 3))
    for name, mask in offset_factors(body).items():
        factor_of_joint = np.array([known[_sided(name, joint.name)] for joint in body.joints])
        scales += (factor_of_joint[:, None] - 1.0) * mask
    joints, links, frames = list[Joint](), [body.base], list[Frame]()
    for joint, scale in zip(body.joints, scales, strict=True):
        joints.append(replace(joint, placement=_moved(joint.placement, joint.placement[:3, 3] * scale)))
    for link in body.links:
        x = known.get(_sided(segment_of(link.name), link.name), 1.0)
        links.append(link if x == 1.0 else replace(link, com=link.com * x, inertia=link.inertia * x**2))
    for frame in body.frames:
        x = known.get(_sided(segment_of(frame.link), frame.link), 1.0)
        frames.append(replace(frame, pose=_moved(frame.pose, frame.pose[:3, 3] * x)))
    # The hip height is the sum of ankle height, shank and thigh of the longer leg.
    placed, legs = {joint.name: joint.placement for joint in joints}, list[float]()
    for side in SIDES:
        bones = sum(-float(placed[f"{side}_{name}"][1, 3]) for name in ("knee_flexion", "ankle_flexion"))
        legs.append(bones - known[f"{side}_foot"] * float(body.place(f"{side}_heel").pose[1, 3]))
    x, _, z = joints[0].placement[:3, 3].tolist()
    joints[0] = replace(joints[0], placement=_moved(joints[0].placement, np.array([x, max(legs), z])))
    return rebuilt(body, links, joints, frames)


def segment_lengths(body: Robot) -> dict[str, float]:
    """Return the lengths (m) of all segments of a body (``library.human``), with limbs for both sides.

    Limbs are measured between joint centres, feet from heel to toe, and hands from the wrist to the knuckles. The
    pelvis is measured between the hip joints, the shoulders between the shoulder joints, the trunk from the midpoint of
    the hips to the neck (C7), and the head from C7 to the vertex.

    Example:
        >>> found = segment_lengths(torsor.library.human())
        >>> {name: round(found[name], 4) for name in ("thigh", "left_shank", "pelvis", "trunk")}
        {'thigh': 0.4222, 'left_shank': 0.4403, 'pelvis': 0.17, 'trunk': 0.6033}
    """
    right, left = SIDES
    hips, neck = landmark(body, "pelvis")[1], landmark(body, "neck")[1]
    lengths = {
        "pelvis": landmark(body, f"{left}_thigh")[0] - landmark(body, f"{right}_thigh")[0],
        "shoulders": landmark(body, f"{left}_upper_arm")[0] - landmark(body, f"{right}_upper_arm")[0],
        "trunk": neck - hips,
        "head": landmark(body, "vertex")[1] - neck,
    }
    for name, ends in LIMBS.items():
        for side in SIDES:
            first, last = (landmark(body, f"{side}_{place}") for place in ends)
            lengths[f"{side}_{name}"] = np.linalg.norm((last - first)[[0, 2]] if name == "foot" else last - first)
        lengths[name] = lengths[f"{right}_{name}"]
    return {name: float(lengths[name]) for name in NAMES}


def with_lengths(body: Robot, lengths: Mapping[str, float], where: str = "lengths") -> Robot:
    """Return a body with segment lengths {segment: m}, measured as in ``segment_lengths``.

    Example:
        >>> found = segment_lengths(with_lengths(torsor.library.human(), {"thigh": 0.45, "left_shank": 0.40}))
        >>> [round(found[name], 3) for name in ("left_thigh", "right_thigh", "left_shank", "right_shank")]
        [0.45, 0.45, 0.4, 0.44]
    """
    wanted_lengths = table(lengths, where, "lengths")
    _check_names(wanted_lengths, where)
    usual = segment_lengths(body)
    for name, length in wanted_lengths.items():
        factor = positive(length, where, f"length of {name} (m)") / usual[name]
        if not MIN_FACTOR <= factor <= MAX_FACTOR:
            what = f"the length of {name} is {length:.4g} m"
            least, most = MIN_FACTOR * usual[name], MAX_FACTOR * usual[name]
            allowed = f"from {least:.3g} to {most:.3g} m for a person of this height"
            raise ModelError(what, where=where, allowed=allowed, fix="give the distance between joints in m")
    return resized(body, {name: length / usual[name] for name, length in wanted_lengths.items()})


def _check_names(names: Mapping[str, float], where: str) -> None:
    """Raise ModelError for an unknown segment, or one that is specified both for both sides and for one side."""
    for name in names:
        known_name(name, NAMES, where, "segment")
        both = name.split("_", 1)[-1]
        if name.startswith(SIDES) and both in names:
            raise ModelError(f"{name} and {both} are both given", where=where, allowed="one of them")


def _factors(factors: Mapping[str, float], where: str) -> dict[str, float]:
    """Return the factors of all segments, with limbs for each side; the default is 1."""
    checked = table(factors, where, "factors")
    _check_names(checked, where)
    for name, factor in checked.items():
        number(factor, where, f"factor of {name}", least=MIN_FACTOR, most=MAX_FACTOR)
    return {name: checked.get(name, checked.get(name.split("_", 1)[-1], 1.0)) for name in NAMES} | {
        name: checked.get(name, 1.0) for name in SEGMENTS
    }


def _sided(segment: str, name: str) -> str:
    """Return a limb segment with the side of a link or joint, and other segments unchanged."""
    side = name.split("_", 1)[0]
    return f"{side}_{segment}" if segment in LIMBS and side in SIDES else segment


def _moved(pose: Array, origin: Array) -> Array:
    changed = pose.copy()
    changed[:3, 3] = origin
    return changed


# m, kg/m^2; de Leva's subjects were students of 19 to 25 years
STATURES, BODY_MASS_INDICES = (1.45, 2.00), (17.0, 35.0)
AGES = (YOUNGEST, OLDEST)  # years
RARE_PERCENTILE = 1.0  # %; the growth charts exclude children below this percentile or above its complement
HEIGHT_TOLERANCE = 0.03  # relative difference in height above which lengths contradict the height
SAME_STRENGTH_TOLERANCE = 1e-9  # relative tolerance of equal strengths


@dataclass(frozen=True)
class Person:
    """A person: ``height`` (m), ``mass`` (kg, without a load), ``sex`` ("male" or "female"), and deviations.

    ``age`` (4 to 110 years) selects segment masses of children below 18 years, and strengths of older people from 40
    years. The default is a young adult. ``lengths`` {segment: m} replaces lengths computed from the height: pelvis
    (between the hips), thigh, shank, foot, trunk, shoulders, upper_arm, forearm, hand and head. Limbs may be specified
    for one side ("left_thigh"). ``strength`` {joint: factor} and ``largest_torque`` {joint: N m} change joint
    strengths. A joint is a coordinate, a coordinate of both sides ("knee_flexion") or, for factors, "left", "right" or
    "all".

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
        """Return a person at percentiles (%) of stature and mass; 5 % of people are above the 95th percentile.

        ``population`` is "NHANES" (adults in the United States), "ANSUR II" (soldiers) or "CDC" (children from 2 to 20
        years). The default is "CDC" below 20 years, otherwise "NHANES", in which ``age`` selects the decade. The two
        percentiles are independent, so a very tall person with median mass is slim. For the other arguments, see
        ``Person``.

        Example:
            >>> tall = Person.of_percentile(stature=95, mass=50, sex="male")
            >>> round(tall.height, 3), round(tall.mass, 1)
            (1.872, 86.6)
        """
        height, kg = size_of_percentile(stature, mass, sex, age, population)
        return cls(height, kg, sex, age, lengths or {}, strength or {}, largest_torque or {})

    @property
    def weight_times_height(self) -> float:
        """Weight times height, m g h (N m), to which trunk and leg strengths are proportional."""
        return GRAVITY * self.mass * self.height

    @property
    def curves(self) -> StrengthCurves:
        """Strength curves for this sex and age, for ``walking(person.body(), curves=person.curves)``."""
        group = age_group(self.age)
        return StrengthCurves(self.sex, group, group)

    def factor(self, name: str) -> float:
        """Return the strength of a coordinate relative to the average of young people with this weight and height.

        Example:
            >>> round(Person(1.62, 58.0, "female", age=70, strength={"all": 1.1}).factor("spine1_flexion"), 3)
            0.907
        """
        usual = default_strengths()
        indices_of(name, tuple(usual)[len(GLOBAL) :], "person")
        torque = largest_torques(self.largest_torque, tuple(usual), "person").get(name)
        if torque is not None:
            return torque * MASS * HEIGHT / (usual[name] * self.mass * self.height)
        individual = strength_factors(self.strength, tuple(usual), "person").get(name, 1.0)
        return individual * age_ratio(name, self.sex, age_group(self.age))

    def body(self) -> Robot:
        """Return the body: a ``library.human`` with the lengths and strengths of the person.

        A warning is issued if the person is outside the tables, or if ``lengths`` are inconsistent with the height.

        Example:
            >>> child = Person.of_percentile(sex="female", age=8).body()
            >>> round(child.mass, 1), round(sum(link.mass for link in child.links if "head" in link.name), 1)
            (25.6, 2.9)
        """
        body = human(self.height, self.mass, self.sex, age=self.age)
        self.warn_outside_of_tables("person")
        if self.lengths:
            body = with_lengths(body, self.lengths, "person")
            height = _height(body, self.sex)
            if abs(height / self.height - 1) > HEIGHT_TOLERANCE:
                what = f"with the given lengths the body is {height:.3g} m tall, not {self.height:.4g} m"
                fix = "give the height that matches the lengths, or also the trunk length"
                warn(what, where="person", fix=fix)
        individual, group = strength_factors(self.strength, body.coordinate_names, "person"), age_group(self.age)
        joints = body.coordinate_names[len(GLOBAL) :]
        factors = {name: individual.get(name, 1.0) * age_ratio(name, self.sex, group) for name in joints}
        return with_strength(body, factors, self.largest_torque, "person")

    def warn_outside_of_tables(self, where: str) -> None:
        """Warn if the tables of segments and strengths do not cover the person.

        Example:
            >>> import warnings
            >>> with warnings.catch_warnings(record=True, action="always") as found:
            ...     Person(1.2, 30.0, "male").warn_outside_of_tables("lift")
            >>> str(found[0].message).split(";")[0]
            'lift: the height is 1.2 m'
        """
        if self.age is None or self.age >= ADULT:
            people = "adults of {}, for whom the tables were measured"
            limits = {"height": STATURES, "body mass index": BODY_MASS_INDICES}
        else:
            small, large = (
                size_of_percentile(percentile, percentile, self.sex, self.age)
                for percentile in (RARE_PERCENTILE, 100 - RARE_PERCENTILE)
            )
            limits = {"height": (small[0], large[0]), "mass": (small[1], large[1])}
            whom = "boys" if self.sex == "male" else "girls"
            people = f"{{}}, the range of {100 - 2 * RARE_PERCENTILE:g} % of {whom} aged {self.age:g} years"
        values = {"height": self.height, "body mass index": self.mass / self.height**2, "mass": self.mass}
        units = {"height": "m", "body mass index": "kg/m^2", "mass": "kg"}
        outside = [name for name, (least, most) in limits.items() if not least <= values[name] <= most]
        if outside:
            what = " and ".join(f"the {name} is {values[name]:.3g} {units[name]}" for name in outside)
            ranges = " and ".join(f"{low:.3g} to {high:.3g} {units[name]}" for name, (low, high) in limits.items())
            fix = "treat the results as a trend, or give segment lengths and strengths"
            if self.age is None and self.height < STATURES[0]:
                fix = "for a child, give the age; otherwise " + fix
            warn(what, where=where, allowed=people.format(ranges), fix=fix)


def person_of(body: Robot, carried: float = 0.0) -> Person:
    """Return the person that a body (``library.human``) represents; the body may include a carried mass (kg).

    The sex is inferred from the relative position of the thigh's centre of mass, and the height from the position of
    the vertex. ``strength`` contains the factors of all strengths that differ from those of young people with the same
    weight and height. For children from 6 years, ``age`` is inferred from the masses of the head and thighs.

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
    sex = min(BODY_TABLES, key=lambda sex: abs(BODY_TABLES[sex].rows["thigh"].centre / 100 - centre))
    height, mass = _height(body, sex), body.mass - carried
    if not mass > 0:
        what = f"the body has a mass of {body.mass:.4g} kg, of which the load is {carried:.4g} kg"
        raise ModelError(what, where="person", allowed="a load that is part of the body mass")
    age = _age((masses["neck"] + masses["head"]) / mass, masses[f"{side}_thigh"] / mass, sex)
    unit = mass * height / (MASS * HEIGHT)
    limits = dict(zip(body.coordinate_names, body.effort_limit.tolist(), strict=True))
    factors = {name: limits[name] / (unit * usual) for name, usual in default_strengths().items() if name not in GLOBAL}
    strength = {
        name: x for name, x in factors.items() if abs(x - 1) > SAME_STRENGTH_TOLERANCE and 0 < x <= MAX_STRENGTH_FACTOR
    }  # other joints are unlimited
    return Person(height, mass, sex, age, strength=strength)


def _age(head: float, thigh: float, sex: str) -> float | None:
    """Return the age (years) of children from the mass fractions of head and thigh, or None for adults."""

    def part(segment: str, age: float | None) -> float:
        return Segments(1.0, MASS, sex, age)[segment].mass / MASS

    low, high = JENSEN_AGES[0], JENSEN_AGES[-1]
    if part("head", None) > head / (1 + SAME_STRENGTH_TOLERANCE):
        return None
    while high - low > 1e-9:  # the mass fraction of the head decreases with age
        middle = (low + high) / 2
        low, high = (middle, high) if part("head", middle) > head else (low, middle)
    is_child = high < JENSEN_AGES[-1] - 1e-6 and abs(part("thigh", high) / thigh - 1) < 1e-6
    return high if is_child else None


def _height(body: Robot, sex: str) -> float:
    """Return the stature (m), which has the same ratio to the height of the summed segments for everyone."""
    soles = min(landmark(body, f"{side}_heel")[1] for side in SIDES)
    return float(landmark(body, "vertex")[1] - soles) / _vertex(sex)


@cache
def _vertex(sex: str) -> float:
    """Return the vertex height of a body divided by its stature."""
    return float(landmark(human(1.0, MASS, sex), "vertex")[1])


MEDIAN = 50.0  # %


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
    """Return a person from partial data.

    A missing height (m) or mass (kg) is computed from its percentile (%). Without a percentile, it is the median of the
    ``population`` and ``age`` (years) if one of these or the other percentile is specified; otherwise, it is 1.741 m or
    73 kg. Specifying a size and its percentile raises ModelError. For the other arguments, see ``Person``.

    Example:
        >>> person = described_person(sex="female", age=10, mass=40.0)
        >>> round(person.height, 2), person.mass
        (1.38, 40.0)
        >>> described_person(1.80, stature_percentile=95)
        Traceback (most recent call last):
        torsor.ModelError: person: height is 1.8 and stature_percentile is 95; allowed: one of them
    """
    sizes = {"height": height, "mass": mass}
    percentiles = {"height": ("stature_percentile", stature_percentile), "mass": ("mass_percentile", mass_percentile)}
    for name, (other, percentile) in percentiles.items():
        if sizes[name] is not None and percentile is not None:
            what = f"{name} is {sizes[name]!r} and {other} is {percentile!r}"
            raise ModelError(what, where="person", allowed="one of them")
    if population is not None and height is not None and mass is not None:
        what, allowed = f"is {population!r}, but height and mass are given", "a population together with percentiles"
        raise ModelError(what, value=population, argument="population", where="person", allowed=allowed)
    usual = HEIGHT, MASS
    is_known = any(value is not None for value in (age, population, stature_percentile, mass_percentile))
    if is_known and (height is None or mass is None):
        tall, heavy = (MEDIAN if value is None else value for value in (stature_percentile, mass_percentile))
        usual = size_of_percentile(tall, heavy, sex, age, population)
    size = (usual[0] if height is None else height), (usual[1] if mass is None else mass)
    return Person(*size, sex, age, *({} if value is None else value for value in (lengths, strength, largest_torque)))
