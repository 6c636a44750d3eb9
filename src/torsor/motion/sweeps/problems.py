"""Motion problems by name, with plain numbers as parameters: what a sweep, or a file, can vary."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.errors import ModelError
from torsor.human import Backpack, Box, Step, Stride, lifting, reaching, standing_up, walking
from torsor.human.body.person import described_person
from torsor.human.ergonomics import assess
from torsor.human.gait.stride import peaks
from torsor.motion import PROBLEMS as BUILT_IN
from torsor.motion import MotionProblem, MotionResult
from torsor.robot.robot import Robot

_BODY = {"height": "m", "mass": "kg", "sex": "", "age": "years", "strength": "1", "population": ""}
_BODY |= {"stature_percentile": "%", "mass_percentile": "%"}
_STEP = {"speed": "m/s", "length": "m", "width": "m"}
# Figures of a stride, and their units.
_STRIDE = {
    "cost_of_transport": "J/(kg m)",
    "positive_work": "J",
    "hip_extension": "N m/kg",
    "knee_extension": "N m/kg",
    "ankle_plantarflexion": "N m/kg",
    "vertical_peak": "weights",
    "knee_in_swing": "degrees",
}
# Figures of a lift, and their units: the largest loads of L5/S1, and the part of the people who are strong enough.
_BACK = {"lumbar_moment": "N m", "compression": "N", "shear": "N", "lifting_index": "1", "capable": "1"}


class NamedProblem(NamedTuple):
    """A motion problem with a name: the function that makes it, units by name, and figures in addition to all others.

    Keyword arguments of the function are the parameters that cases may have.
    """

    function: Callable[..., MotionProblem]
    units: Mapping[str, str]
    report: Callable[[MotionResult], dict[str, Any]] | None = None


def _body(
    height: float | None,
    mass: float | None,
    sex: str,
    age: float | None,
    stature_percentile: float | None,
    mass_percentile: float | None,
    population: str | None,
    strength: float,
) -> Robot:
    """Return the body of a person of which some things are known, with a factor of all strengths."""
    person = described_person(
        height,
        mass,
        sex,
        age=age,
        stature_percentile=stature_percentile,
        mass_percentile=mass_percentile,
        population=population,
        strength={"all": strength},
    )
    return person.body()


def walk(
    height: float | None = None,
    mass: float | None = None,
    sex: str = "male",
    *,
    age: float | None = None,
    stature_percentile: float | None = None,
    mass_percentile: float | None = None,
    population: str | None = None,
    strength: float = 1.0,
    backpack: float = 0.0,
    box: float = 0.0,
    speed: float = 1.2,
    length: float | str = 0.6,
    width: float | str = 0.1,
    slope: float = 0.0,
    friction: float = 0.8,
    steps: int = 1,
    planar: bool = False,
    version: str | None = None,
) -> MotionProblem:
    """Return ``torsor.human.walking`` of a person.

    The person is described as in ``described_person``: by height (m), mass (kg) and sex, or by percentiles (%) of a
    population and age (years); ``strength`` is a factor of all strengths.

    ``backpack`` or ``box`` is the mass (kg) of a load, 0 for none; ``speed`` (m/s), ``length`` and ``width`` (m) are
    those of the step; length and width may be "free". ``slope`` is in rad. The others are as in ``walking``.

    Example:
        >>> round(sum(each.start for name, each in walk(1.8, 80.0, backpack=5.0).numbers.items() if ".mass" in name), 9)
        85.0
    """
    if backpack and box:
        raise ModelError("and box are both given", argument="backpack", where="walk", allowed="one of them")
    load = Backpack(backpack) if backpack else Box(box) if box else None
    step = Step(length=length, width=width, speed=speed)
    body = _body(height, mass, sex, age, stature_percentile, mass_percentile, population, strength)
    return walking(body, step, version, load=load, slope=slope, steps=steps, planar=planar, friction=friction)


def lift(
    height: float | None = None,
    mass: float | None = None,
    sex: str = "male",
    *,
    age: float | None = None,
    stature_percentile: float | None = None,
    mass_percentile: float | None = None,
    population: str | None = None,
    strength: float = 1.0,
    box: float = 8.0,
    turn: float = 0.0,
    duration: float = 1.2,
    points: int = 8,
) -> MotionProblem:
    """Return ``torsor.human.lifting`` of a person, described as in ``walk``, and a box of a mass (kg).

    At the start the box is ``turn`` degrees to the left.

    Example:
        >>> lift(box=5.0).name
        'lift'
    """
    body = _body(height, mass, sex, age, stature_percentile, mass_percentile, population, strength)
    return lifting(body, Box(box), duration=duration, turn=turn, points=points)


def stand_up(
    height: float | None = None,
    mass: float | None = None,
    sex: str = "male",
    *,
    age: float | None = None,
    stature_percentile: float | None = None,
    mass_percentile: float | None = None,
    population: str | None = None,
    strength: float = 1.0,
    seat: float = 0.45,
    duration: float = 1.5,
    points: int = 12,
) -> MotionProblem:
    """Return ``torsor.human.standing_up`` of a person, described as in ``walk``, from a seat of a height (m).

    Example:
        >>> stand_up(1.6, seat=0.4).name
        'stand-up'
    """
    body = _body(height, mass, sex, age, stature_percentile, mass_percentile, population, strength)
    return standing_up(body, seat, duration, points=points)


def reach(
    height: float | None = None,
    mass: float | None = None,
    sex: str = "male",
    *,
    age: float | None = None,
    stature_percentile: float | None = None,
    mass_percentile: float | None = None,
    population: str | None = None,
    strength: float = 1.0,
    target: Sequence[float] = (-0.2, 1.1, 0.75),
    hand: str = "right",
    duration: float = 1.0,
    points: int = 8,
) -> MotionProblem:
    """Return ``torsor.human.reaching`` of a person, described as in ``walk``, for a target (x, y, z) (m).

    Example:
        >>> reach(hand="left").name
        'reach'
    """
    body = _body(height, mass, sex, age, stature_percentile, mass_percentile, population, strength)
    return reaching(body, target, hand, duration, points=points)


def stride_figures(result: MotionResult) -> dict[str, Any]:
    """Return figures of a walk: work, largest moments and forces; NaN where the walk is infeasible."""
    if not result.is_feasible:
        return dict.fromkeys(_STRIDE, np.nan)
    stride = Stride(result)
    found, energy = peaks(stride), stride.energy
    moments = {name: each["most"] for name, each in found["moments"].items() if name in _STRIDE}
    return moments | {
        "cost_of_transport": energy.cost_of_transport,
        "positive_work": energy.positive,
        "vertical_peak": max(found["vertical"]["first"], found["vertical"]["second"]),
        "knee_in_swing": found["knee_in_swing"],
    }


def back_figures(result: MotionResult) -> dict[str, Any]:
    """Return figures of a lift: loads of the back, lifting index, and who is capable; NaN where it is infeasible."""
    if not result.is_feasible:
        return dict.fromkeys(_BACK, np.nan)
    found = assess(result)
    return {
        "lumbar_moment": float(found.loads.extension.max()),
        "compression": float(found.loads.compression.max()),
        "shear": float(np.abs(found.loads.shear).max()),
        "lifting_index": np.nan if isinstance(found.niosh, str) else found.niosh.index,
        "capable": found.capable,
    }


_LOADS = {"backpack": "kg", "box": "kg"}
PROBLEMS: dict[str, NamedProblem] = {
    "walk": NamedProblem(walk, _BODY | _LOADS | _STEP | {"slope": "rad"} | _STRIDE, stride_figures),
    "lift": NamedProblem(lift, _BODY | _BACK | {"box": "kg", "turn": "degrees", "duration": "s"}, back_figures),
    "stand-up": NamedProblem(stand_up, _BODY | {"seat": "m", "duration": "s"}),
    "reach": NamedProblem(reach, _BODY | {"target": "m", "duration": "s"}),
    **{name: NamedProblem(function, {}) for name, function in BUILT_IN.items()},
}
