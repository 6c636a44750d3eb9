"""Human motion problems by name, declared once for Python, sweeps, TOML files and the command line."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.percentiles import POPULATIONS
from torsor.human.body.person import described_person
from torsor.human.body.work_shift import COUPLINGS, DURATIONS
from torsor.human.contact.schedule import Step
from torsor.human.contact.support import Rails
from torsor.human.gait.settings import OBJECTIVES
from torsor.human.gait.stride import Stride, peaks
from torsor.human.gait.walking import running, walking
from torsor.human.tasks import lifting, pulling, pushing, reaching, sitting_down, standing_up
from torsor.library.anthropometry import BODY_TABLES
from torsor.motion import MotionProblem, MotionResult
from torsor.motion.declaration import Argument, NamedProblem, defaults_of
from torsor.motion.problems import POINTS
from torsor.robot.robot import Robot

Make = Callable[..., MotionProblem]
MAX_SLOPE = math.radians(45.0)  # range of the argument ``slope`` of ``walking``
_NAMED = "NAME=NUMBER"
_POSITIVE, _NOT_NEGATIVE = {"above": 0.0}, {"least": 0.0}

# Arguments of several problems: person, load, step and duration.
PERSON = (
    Argument("height", float, "body height (default: 1.741)", "m", "M"),
    Argument("mass", float, "body mass (default: 73)", "kg", "KG"),
    Argument("sex", str, "anthropometric table", choices=tuple(BODY_TABLES)),
    Argument("age", float, "age. Height and mass are medians if they are not given", "years", "YEARS"),
    Argument("stature_percentile", float, "percentile of the height, instead of --height", "%", "PERCENT"),
    Argument("mass_percentile", float, "percentile of the mass, instead of --mass", "%", "PERCENT"),
    Argument(
        "population",
        str,
        "population of the percentiles (default: CDC below 20 years, otherwise NHANES)",
        choices=POPULATIONS,
    ),
    Argument("lengths", dict, "segment lengths (m), such as thigh=0.45 left_shank=0.41", "m", "NAME=M"),
    Argument("strength", dict, "strength factors of joints, such as knee_flexion=0.8 left=0.5", "1", _NAMED),
    Argument("largest_torque", dict, "joint strengths (N m), such as elbow_flexion=60", "N m", "NAME=NM"),
)
BOX = Argument("box", float, "mass of a box in the hands", "kg", "KG", bounds=_NOT_NEGATIVE)
DURATION = Argument("duration", float, "duration of the motion", "s", "S")
SPEED = Argument("speed", float, "walking or running speed", "m/s", "M/S")
LENGTH = Argument("length", float, "step length (default: optimised)", "m", "M")
WIDTH = Argument("width", float, "step width (default: optimised)", "m", "M")
PLANAR = Argument("planar", bool, "freeze lateral motion")
FRICTION = Argument("friction", float, "friction coefficient of the ground", "1", "MU")
FROZEN = Argument("frozen", dict, "joints to freeze, with their angles (degrees)", "rad", _NAMED, degrees=True)

_WEIGHTS = (
    "weights of the objective (default: energy=1 effort=1 accelerations=1). Terms of a walk: "
    f"{', '.join(name.replace(' ', '_') for name in OBJECTIVES)}; of a run: energy, effort, accelerations"
)
OBJECTIVE = Argument("objective", dict, _WEIGHTS, "1", _NAMED)
_RISE = "rise of each stair, negative downstairs. The tread is --length (default: 0.29 m at 0.5 m/s)"
_SLOPE = Argument(
    "slope", float, "slope of the ground, positive uphill", "rad", "DEGREES", degrees=True,
    bounds={"above": -MAX_SLOPE, "below": MAX_SLOPE},
)  # fmt: skip
_RANGES = Argument(
    "ranges", tuple, "joint ranges (degrees; tx, ty, tz in m), such as knee_flexion=30:120",
    "rad", "NAME=MIN:MAX", option="range", degrees=True,
)  # fmt: skip
_WALK = (
    SPEED, LENGTH, WIDTH, _SLOPE, Argument("rise", float, _RISE, "m", "M"),
    Argument("backpack", float, "mass of a backpack", "kg", "KG", bounds=_NOT_NEGATIVE), BOX, FRICTION,
    Argument("steps", int, "number of steps. With 2, the left and right steps may differ", choices=(1, 2)),
    PLANAR, FROZEN, _RANGES, OBJECTIVE,
)  # fmt: skip
_TENDONS = Argument("tendons", bool, "let the muscles of ankle and knee act through tendons")
_TURN = Argument("turn", float, "initial direction of the box, positive to the left", "degrees", "DEGREES")
_PLACE: dict[str, Any] = {"unit": "m", "metavar": ("HEIGHT", "AHEAD"), "count": 2}
_FROM = Argument(
    "from_", float, "initial height (m) of the box centre and its distance ahead of the heels", **_PLACE, option="from"
)
_TO = Argument("to", float, "final height (m) of the box centre and its distance ahead of the heels", **_PLACE)
_LEAN = Argument("lean", float, "largest forward lean of the chest", "degrees", "DEGREES")
_REPEATED = (
    Argument("frequency", float, "lifts per minute (default: 0.2, or more for --repetitions)", "1/min", "LIFTS"),
    Argument("repetitions", float, "lifts per shift", "1", "LIFTS", bounds=_POSITIVE),
    Argument("coupling", str, "coupling between hands and box", choices=COUPLINGS),
    Argument("work_duration", str, "up to 1, 2 or 8 hours (default: from --repetitions)", choices=tuple(DURATIONS)),
)
_FORCE = Argument("push_force", float, "force of both hands on the handle", "N", "N", bounds=_POSITIVE)
_HANDLE = Argument("handle", float, "height of the handle", "m", "M", bounds=_POSITIVE)
_TARGET = Argument(
    "target", float, "target position (m) of the hand, relative to the midpoint between the heels", "m",
    ("LEFT", "UP", "AHEAD"), count=3,
)  # fmt: skip
_HAND = Argument("hand", str, "reaching hand", choices=SIDES)
_SEAT = Argument("seat", float, "height of the seat", "m", "M")
_ARMRESTS = Argument("armrests", float, "height of armrests that the hands push on", "m", "M")


def body_of(**person: Any) -> Robot:
    """Return the body of a person (``PERSON``); a number ``strength`` scales all strengths."""
    strength = person.get("strength")
    if strength is not None and not isinstance(strength, Mapping):
        person["strength"] = {"all": strength}
    return described_person(**person).body()


def walk(
    body: Robot,
    speed: float = Step.speed,
    length: float | str = Step.length,
    width: float | str = Step.width,
    rise: float = 0.0,
    timing: str = Step.timing,
    backpack: float = 0.0,
    box: float = 0.0,
    **settings: Any,
) -> MotionProblem:
    """Return ``torsor.human.walking`` with a load (kg; 0: none)."""
    if backpack and box:
        raise ModelError("backpack and box are both given", where="walk", allowed="one of them")
    load = Backpack(backpack) if backpack else Box(box) if box else None
    step = Step(length=length, width=width, speed=speed, rise=rise, timing=timing)
    return walking(body, step, load=load, **_spelt(settings))


def run(body: Robot, **settings: Any) -> MotionProblem:
    """Return ``torsor.human.running``."""
    return running(body=body, **_spelt(settings))


def _spelt(settings: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with spaces in the names of objectives, which a shell would split."""
    weights = settings.get("objective")
    if not isinstance(weights, Mapping):
        return settings
    return settings | {"objective": {name.replace("_", " "): weight for name, weight in weights.items()}}


def lift(body: Robot, box: float = 10.0, **settings: Any) -> MotionProblem:
    """Return ``torsor.human.lifting`` for a ``box`` mass (kg)."""
    return lifting(body, Box(box), **settings)


def exert(
    function: Make, body: Robot, push_force: float = 100.0, handle: float = 1.0, **settings: Any
) -> MotionProblem:
    """Return ``torsor.human.pushing`` or ``pulling`` for a handle height (m) and a force (N)."""
    return function(body, push_force, handle, **settings)


def use_seat(function: Make, body: Robot, armrests: float | None = None, **settings: Any) -> MotionProblem:
    """Return ``torsor.human.standing_up`` or ``sitting_down``, optionally with ``armrests`` at a height (m)."""
    return function(body, rails=None if armrests is None else Rails(height=armrests), **settings)


# Key figures of a stride, and their units.
_STRIDE = {
    "cost_of_transport": "J/(kg m)", "mechanical_work": "J/(kg m)", "positive_work": "J", "hip_extension": "N m/kg",
    "knee_extension": "N m/kg", "ankle_plantarflexion": "N m/kg", "vertical_peak": "weights",
    "knee_in_swing": "degrees",
}  # fmt: skip
# Key figures of a lift, and their units: largest loads on L5/S1, and the fraction of people who are strong enough.
_BACK = {"lumbar_moment": "N m", "compression": "N", "shear": "N", "lifting_index": "1", "capable": "1"}


def stride_figures(result: MotionResult) -> dict[str, Any]:
    """Return the key figures of a walk: work, largest moments and forces; NaN if the walk is infeasible."""
    if not result.is_feasible:
        return dict.fromkeys(_STRIDE, np.nan)
    stride = Stride(result)
    values, energy = peaks(stride), stride.energy
    moments = {name: moment["most"] for name, moment in values["moments"].items() if name in _STRIDE}
    return moments | {
        "cost_of_transport": energy.cost_of_transport,
        "mechanical_work": energy.mechanical_work,
        "positive_work": energy.positive,
        "vertical_peak": max(values["vertical"]["first"], values["vertical"]["second"]),
        "knee_in_swing": values["knee_in_swing"],
    }


def back_figures(result: MotionResult) -> dict[str, Any]:
    """Return the key figures of a lift: back loads, lifting index and percent capable; NaN if it is infeasible."""
    if not result.is_feasible:
        return dict.fromkeys(_BACK, np.nan)
    from torsor.human.ergonomics import assess

    assessment = assess(result)
    return {
        "lumbar_moment": float(assessment.loads.extension.max()),
        "compression": float(assessment.loads.compression.max()),
        "shear": float(np.abs(assessment.loads.shear).max()),
        "lifting_index": np.nan if isinstance(assessment.niosh, str) else assessment.niosh.index,
        "capable": assessment.capable,
    }


def _of_person(make: Make, body: Robot | None = None, **settings: Any) -> MotionProblem:
    """Return the problem for a body or a described person."""
    person = {argument.name: settings.pop(argument.name) for argument in PERSON if argument.name in settings}
    return make(body_of(**person) if body is None else body, **settings)


def _named(name: str, make: Make, function: Make, *arguments: Argument, **report: Any) -> NamedProblem:
    """Return a declared problem with the defaults of ``make``, of the person, and of the Python function."""
    defaults = defaults_of(function) | defaults_of(described_person) | defaults_of(make)
    return NamedProblem(name, partial(_of_person, make), PERSON + arguments, defaults=defaults, **report)


_LIFT = (_FROM, _TO, DURATION, _LEAN, _TURN, *_REPEATED)
_SEATED, _HANDLED = (_SEAT, _ARMRESTS, DURATION, POINTS), (_FORCE, _HANDLE, DURATION, POINTS)
PROBLEMS: dict[str, NamedProblem] = {
    problem.name: problem
    for problem in (
        _named("walk", walk, walking, *_WALK, figures=_STRIDE, report=stride_figures),
        _named("run", run, running, SPEED, LENGTH, WIDTH, FRICTION, PLANAR, FROZEN, OBJECTIVE, _TENDONS),
        _named("lift", lift, lifting, BOX, *_LIFT, POINTS, figures=_BACK, report=back_figures),
        _named("push", partial(exert, pushing), pushing, *_HANDLED),
        _named("pull", partial(exert, pulling), pulling, *_HANDLED),
        _named("reach", reaching, reaching, _TARGET, _HAND, DURATION, POINTS),
        _named("stand-up", partial(use_seat, standing_up), standing_up, *_SEATED),
        _named("sit-down", partial(use_seat, sitting_down), sitting_down, *_SEATED),
    )
}
