"""Flat-footed human tasks, predicted by minimising effort: lifting, pushing, pulling, reaching, and use of a seat.

Tasks use the body, ground, strengths and compiled kernels of walking. The ground is at y = 0. The heels are at z = 0,
with their midpoint at x = 0. x points to the left, y up and z forward. Clavicles, wrists, neck, head and the upper
spine are frozen.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, instance_of, number, one_of, positive
from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.human.body.coordinates import SIDES, frozen_joints, is_odd
from torsor.human.body.kernels import checked_body, shared_model
from torsor.human.body.loads import MAX_HAND_FORCE, Box, HandForces
from torsor.human.body.person import person_of
from torsor.human.body.postures import HIP_HEIGHT_ON_SEAT, both, crouching, hips_apart, landmark, sitting, standing
from torsor.human.body.trunk_strength import SPINE, TrunkStrength
from torsor.human.body.work_shift import WorkShift
from torsor.human.contact.support import Rails, Seat, Sitting, Standing, smoothstep
from torsor.human.terms.forces import Balance, Effort, LegPeaks, LimbTorques, Torques, TrunkTorques
from torsor.human.terms.habits import Habits, Posture
from torsor.human.terms.places import (
    BoxAt,
    BoxClears,
    BoxFacing,
    BoxGripped,
    BoxLevel,
    ChestLean,
    Placed,
    check_reach,
    contacts,
    rail_constraints,
)
from torsor.human.terms.problem import HumanProblem
from torsor.motion import End, MotionError, MotionProblem, MotionResult, Phase, Positions, Start
from torsor.motion.results.solution import time_of
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint
from torsor.robot.robot import Robot

MAX_JOINTS_NAMED = 4  # largest number of joints named in a message
STRENGTH_TOLERANCE = 1e-3  # tolerated relative excess of strength
FIX = "use a smaller load, closer to the body, more time, or a stronger person"


class Weakness(NamedTuple):
    """A joint that is too weak: ``torque`` (N m) and ``strength`` (N m) at the ``time`` (s) of the largest excess."""

    joint: str
    torque: float
    strength: float
    time: float

    @property
    def ratio(self) -> float:
        """Torque divided by strength."""
        return self.torque / self.strength

    def __str__(self) -> str:
        strength = f"{self.ratio:.2f} times its strength of {self.strength:.0f} N m"
        return f"{self.joint} needs {self.torque:.0f} N m at {self.time:.2f} s, {strength}"


def weaknesses(result: MotionResult) -> list[Weakness]:
    """Return the joints that are too weak for a motion, weakest first; the list is empty for a feasible motion.

    Torques exceed strengths in infeasible results, such as those of ``problem.solve(check=False)`` and
    ``MotionError.result``.

    Example:
        >>> weaknesses(3)
        Traceback (most recent call last):
        torsor.ModelError: weaknesses: result is 3; allowed: the result of a task of torsor.human
    """
    instance_of(result, MotionResult, "weaknesses", "result", allowed="the result of a task of torsor.human")
    program, x = result.problem.program, result.x
    terms, values = _strengths(result), program.value(x)[1]
    outside = np.maximum(program.row_lower - values, values - program.row_upper) * program.scales
    names, weakest = result.robot.coordinate_names, dict[str, Weakness]()
    for row, relative, excess in zip(program.rows, values * program.scales, outside, strict=True):
        term = terms.get(row.title)
        if term is None or excess <= STRENGTH_TOLERANCE:
            continue
        joint, time = row.label.split()[0], time_of(program, x, row) or 0.0
        if isinstance(term, TrunkTorques):
            flexion = sum(float(np.interp(time, result.times, result.q[:, names.index(name)])) for name in SPINE)
            strength = float(term.trunk.extend(flexion) if relative < 0 else term.trunk.flex(flexion))
        else:
            limit = term.body.effort_limit[term.body.coordinate_names.index(joint)]
            strength = float(limit) * term.strength.get(joint, 1.0)
        weakness = Weakness(joint, abs(float(relative)) * strength, strength, time)
        weakest[joint] = max(weakest.get(joint, weakness), weakness, key=lambda one: one.ratio)
    return sorted(weakest.values(), key=lambda weakness: -weakness.ratio)


def explained(error: MotionError) -> MotionError | None:
    """Return an error that names the joints that are too weak for a task, or None if there are none."""
    result = error.result
    weak = [] if result is None else weaknesses(result)
    if result is None or not weak or not set(error.conflict) <= _strengths(result).keys():
        return None
    more = f"; {len(weak) - MAX_JOINTS_NAMED} more joints are too weak" if len(weak) > MAX_JOINTS_NAMED else ""
    near = f"in the closest motion, {', '.join(map(str, weak[:MAX_JOINTS_NAMED]))}{more}"
    name = result.problem.name
    fix = f"{FIX}; human.largest_lift finds the largest load" if name == "lift" else FIX
    explained = MotionError(
        f"no motion near the start satisfies {', '.join(error.conflict)}: {near}", where=name, fix=fix
    )
    explained.result, explained.conflict, explained.violation = result, error.conflict, error.violation
    return explained


def _strengths(result: MotionResult) -> dict[str, Torques | TrunkTorques]:
    """Return the terms of a problem that bound torques, by title."""
    return {term.title: term for term in result.problem.terms if isinstance(term, Torques | TrunkTorques)}


Ranges = Mapping[str, tuple[float, float]]

# Joint ranges in these tasks, and of idle arms (degrees, m).
RANGES, IDLE_ARM_RANGES = (
    {name: (low, high) for name, (low, high) in data_of(__name__)[table].items()} for table in ("ranges", "idle_arms")
)
SLACK, SLIP, FRICTION = 0.003, 0.1, 0.8  # tolerances of standing feet (m, m/s), and friction coefficient
POSTURE = 0.02  # weight of squared deviations from the relaxed posture


@dataclass(frozen=True, eq=False, repr=False)
class Task(HumanProblem):
    """A motion problem whose initial guess is a straight line between two postures, ``first`` and ``last``.

    Both are {coordinate: position}; other coordinates are 0. Start and end constraints of the problem take precedence.
    """

    first: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)

    def guess(self) -> Array:
        """Return the variables (n,) of a straight-line motion between the postures."""
        ends = np.array([[posture.get(name, 0.0) for name in self.model.names] for posture in (self.first, self.last)])
        s = np.linspace(0.0, 1.0, 41)[:, None]
        return self.fitted((1 - s) * ends[0] + s * ends[1])

    def solve(self, solver: str | None = None, **settings: Any) -> MotionResult:
        """Solve the problem, as in ``MotionProblem.solve``, and return the motion.

        If the person is too weak for the task, ``MotionError`` names the weak joints.
        """
        try:
            return super().solve(solver, **settings)
        except MotionError as error:
            raise explained(error) or error from None


@dataclass(frozen=True)
class TaskSettings:
    """Validated arguments of all tasks; ``name`` is the task name in error messages.

    ``duration`` is in s. ``points`` and ``nodes`` define the discretisation of the motion. ``symmetric`` keeps trunk
    and pelvis in the sagittal plane. ``frozen`` adds {coordinate: angle (rad)} to the joints that are frozen by
    default.
    """

    name: str
    body: Robot
    duration: float
    points: int
    nodes: int
    symmetric: bool = False
    frozen: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        positive(self.duration, self.name, "duration")
        instance_of(self.symmetric, bool, self.name, "symmetric")

    @cached_property
    def held(self) -> dict[str, float]:
        """The frozen coordinates with their positions."""
        names = self.body.coordinate_names if self.symmetric else ()
        return {name: 0.0 for name in names if is_odd(name)} | frozen_joints(self.body, self.frozen, self.name)

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The moving coordinates."""
        return tuple(name for name in self.body.coordinate_names if name not in self.held)

    @property
    def mean_trunk(self) -> TrunkStrength:
        """Mean trunk strength of people like this body; a warning is issued if the tables do not cover the person."""
        person = person_of(self.body)
        person.warn_outside_of_tables(self.name)
        return TrunkStrength(person)

    def posture(self, angles: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of all moving coordinates: those in ``angles``, and 0 for all others."""
        return {name: angles.get(name, 0.0) for name in self.moving}

    def problem(
        self,
        support: Standing,
        aims: Sequence[Constraint],
        ends: Sequence[Ends],
        guess: tuple[Mapping[str, float], Mapping[str, float]],
        *,
        body: Robot | None = None,
        load: Box | None = None,
        shift: WorkShift | None = None,
        trunk: TrunkStrength | None = None,
        hands: HandForces | None = None,
        peak: float = 0.0,
        ranges: Ranges = RANGES,
        posture: float = POSTURE,
        on_rails: tuple[float, float] = (0.0, 1.0),
        relax_aims_first: bool = False,
    ) -> MotionProblem:
        """Return the minimum-effort problem with flat feet, joint ranges, strengths and balance.

        ``aims`` are the constraints of the task, ``body`` includes the ``load``, and ``guess`` contains the first and
        last postures of the initial guess. ``trunk`` replaces the strengths of spine flexion, ``hands`` are hand
        forces, and ``peak`` is the weight of the peak hip and knee moments. The hands hold the rails of the support
        within the times ``on_rails``. If the problem is infeasible, torques, balance and aims are relaxed, in this
        order; with ``relax_aims_first``, the order is aims, torques and balance.
        """
        body = self.body if body is None else body
        ground: dict[str, Any] = {"body": body, "support": support, "friction": FRICTION}
        driven = ground | {"moving": self.moving}
        if hands is not None:
            ground, driven = (term | {"hands": hands, "seconds": self.duration} for term in (ground, driven))
            trunk = self.mean_trunk if trunk is None else trunk
        torques: list[Constraint] = [(Torques if trunk is None else LimbTorques)(**driven, name="torques")]
        if trunk is not None:
            torques.append(TrunkTorques(trunk=trunk, **ground, name="trunk strength"))
        model, numbers = shared_model(body)
        lower, upper = Habits(ranges).bounds(body, list(self.moving), 0.0, False)
        constraints: list[Constraint | Ends] = [
            *ends,
            Positions(lower=lower, upper=upper, hull=True, name="ranges"),
            *torques,
            Balance(**ground, name="balance"),
            *contacts(body, support, SLACK, SLIP),
            *([] if support.rails is None else rail_constraints(ground, support.rails, on_rails)),
            *aims,
        ]
        titles, forces = [term.title for term in aims], ([term.title for term in torques], ["balance"])
        return Task(
            model,
            Phase(self.duration, points=self.points, nodes=self.nodes, quadrature="trapezoid"),
            [
                Effort(**driven, name="effort"),
                Posture(body=body, moving=self.moving, scale=posture, name="posture"),
                *([LegPeaks(**ground, weight=peak, name="peak moments")] if peak else []),
            ],
            constraints,
            frozen=self.held,
            numbers=numbers,
            name=self.name,
            settings={"solver": "condensed", "tolerance": 1e-5},
            load=load,
            shift=shift or WorkShift(),
            relaxation_order=(titles, *forces) if relax_aims_first else (*forces, titles),
            first=guess[0],
            last=guess[1],
        )


# Hand tasks: lifting a box, the largest lift, pushing and pulling a handle, and reaching a point.

MAX_TURN = 90.0  # largest angle of a box beside the body (degrees)
MAX_LIFTED_MASS = 300.0  # kg; more than people can lift


def lifting(
    body: Robot | None = None,
    box: Box | None = None,
    from_: tuple[float, float] = (0.3, 0.45),
    to: tuple[float, float] = (1.0, 0.4),
    duration: float = 1.2,
    *,
    depth: float = 0.3,
    lean: float = 50.0,
    width: float | None = None,
    turn: float = 0.0,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    trunk: TrunkStrength | None = None,
    frequency: float | None = None,
    repetitions: float = 1.0,
    coupling: str = "fair",
    work_duration: str | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of lifting a box (10 kg by default) with both hands, from rest to rest.

    ``body`` is a ``library.human``. ``from_`` and ``to`` contain the height of the box centre, where the hands hold it,
    and its distance in front of the heels (m). ``duration`` is in s. The box stays level, and its centre stays half its
    ``depth`` (m) away from shanks, thighs and trunk. ``lean`` (degrees) is the largest forward lean of the chest: a
    small value results in bent legs, and a large value in a bent back. The hands carry the weight of the box from start
    to end; lift-off from the ground is not modelled. The start posture is free. ``width`` (m) is the distance between
    the heels, by default the distance between the hips. ``symmetric`` keeps trunk and pelvis in the sagittal plane.
    ``frozen`` is {coordinate: angle (rad)} for joints that do not move. ``turn`` (degrees) is the initial direction of
    the box, measured to the left from the forward direction; the trunk then twists, and ``symmetric`` does not apply.
    ``points`` is the number of control points per coordinate, and ``nodes`` is the number of nodes.

    ``trunk`` is the strength of the back as a function of spine flexion, by default the mean of people with the same
    height, mass and sex. It replaces the ``effort_limit`` of spine flexion. If the person is too weak for the lift,
    ``solve`` raises a ``MotionError`` that names the weak joints.

    ``frequency`` (lifts per minute), ``repetitions`` per shift, ``coupling`` ("good", "fair", "poor") and
    ``work_duration`` ("short", "moderate", "long") do not affect the motion, but are used by
    ``torsor.human.ergonomics.assess`` (see ``torsor.human.WorkShift``).

    Example:
        >>> problem = lifting(box=Box(15.0), from_=(0.4, 0.45))
        >>> problem.name, len(problem.model.names), round(problem.held["links.left_hand.mass"], 3)
        ('lift', 30, 7.945)
    """
    angle = math.radians(number(turn, "lift", "turn", least=-MAX_TURN, most=MAX_TURN))
    symmetric = instance_of(symmetric, bool, "lift", "symmetric") and not angle
    task = TaskSettings("lift", checked_body(body, "lift"), duration, points, nodes, symmetric, frozen)
    box = instance_of(Box(10.0) if box is None else box, Box, "lift", "box", allowed="a torsor.human.Box")
    number(box.mass, "lift", "mass of the box", most=MAX_LIFTED_MASS)
    places = [frozen_array(place, (2,), "lift", what).tolist() for place, what in ((from_, "from_"), (to, "to"))]
    lean = math.radians(number(lean, "lift", "lean", above=0.0, most=90.0))
    trunk = task.mean_trunk if trunk is None else trunk
    instance_of(trunk, TrunkStrength, "lift", "trunk", allowed="a torsor.human.TrunkStrength")
    shift = WorkShift(repetitions, frequency, coupling, work_duration)
    loaded = box.on(task.body)
    held: dict[str, Any] = {"body": loaded, "box": box}
    (low, near), (high, far) = places
    first, last = held | {"at": 0.0, "name": "box at the start"}, held | {"at": 1.0, "name": "box at the end"}
    aims: list[Constraint] = [BoxAt(**first, height=low, ahead=near), BoxAt(**last, height=high, ahead=far)]
    if angle:
        start = (near * math.sin(angle), low, near * math.cos(angle))
        aims = [BoxFacing(**first, place=start, turn=angle), BoxFacing(**last, place=(0.0, high, far))]
    aims += [
        (BoxGripped if angle else BoxLevel)(**held, name="box level"),
        BoxClears(**held, depth=positive(depth, "lift", "depth"), name="box clear of the body"),
        ChestLean(most=lean, name="lean of the chest"),
    ]
    guess = crouching(task.body, low, near, lean), crouching(task.body, high, far, lean)
    support = Standing(hips_apart(task.body) if width is None else width)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(support, aims, ends, guess, body=loaded, load=box, shift=shift, trunk=trunk)


ITERATIONS = 120  # iterations per lift, sufficient for feasible motions


class LargestLift(NamedTuple):
    """The largest liftable ``mass`` (kg), its motion, and the smallest mass (kg) found to be ``too_heavy``."""

    mass: float
    result: MotionResult
    too_heavy: float


def largest_lift(body: Robot | None = None, *, within: float = 1.0, first: float = 10.0, **lift: Any) -> LargestLift:
    """Return the mass of the heaviest box that a person can lift, to within ``within`` (kg), and the motion.

    ``first`` (kg) is the first trial mass. Additional arguments are passed to ``lifting``; the box is not allowed. For
    each mass, a separate motion problem is solved for a feasible motion, which takes a few seconds, or longer if there
    is none. A heavier box may be possible with a very different motion. If not even a box of ``within`` can be lifted,
    ModelError is raised.

    Example:
        >>> largest_lift(within=-1.0)
        Traceback (most recent call last):
        torsor.ModelError: largest lift: within (kg) is -1.0; allowed: a finite number, above 0
    """
    within = positive(within, "largest lift", "within (kg)")
    mass, least, most, best = positive(first, "largest lift", "first (kg)"), 0.0, MAX_LIFTED_MASS, None
    if "box" in lift:
        raise ModelError("box is given", where="largest lift", allowed="arguments of lifting without the box")
    while best is None or most - least > within:
        problem = lifting(body, Box(mass), **lift)
        result = problem.solve(start=best, check=False, iterations=ITERATIONS)
        if best is not None and not result.is_feasible:  # the motion of a lighter lift may be a poor initial guess
            result = problem.solve(check=False, iterations=ITERATIONS)
        if result.is_feasible:
            best, least = result, mass
        else:
            most = mass
        if best is None and most < within:
            fix = "use another box position, more time, or a stronger person"
            raise ModelError(f"even {most:.3g} kg cannot be lifted", where="largest lift", fix=fix)
        mass = min(2 * mass, (least + MAX_LIFTED_MASS) / 2) if most == MAX_LIFTED_MASS else (least + most) / 2
    return LargestLift(least, best, most)


GUESS_LEAN = 0.5  # forward lean of the chest in the initial guess, for hips at half their height (rad)
FORCE_RISE_FRACTION = 0.7  # fraction of the duration during which the force rises


def pushing(
    body: Robot | None = None,
    force: float | HandForces = 100.0,
    height: float = 1.0,
    ahead: float = 0.55,
    duration: float = 1.5,
    *,
    grip: float = 0.4,
    trunk: TrunkStrength | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of pushing a handle forward with both hands and flat feet side by side, from rest to rest.

    The force of both hands together rises from 0 to ``force`` (N) within 70 % of the ``duration`` (s) and is then
    constant; pass ``HandForces``, which must be mirror images, for other time courses and directions. The hands hold
    the handle for the full duration, at ``height`` (m), ``ahead`` (m) of the heels and ``grip`` (m) apart, and the body
    leans towards it. People who push harder place one foot ahead, which is not modelled. For ``trunk``, ``frozen``,
    ``points`` and ``nodes``, see ``lifting``.

    Example:
        >>> problem = pushing(force=80.0)
        >>> problem.name, [each.title for each in problem.conditions][-1]
        ('push', 'left hand at the handle')
    """
    task = TaskSettings("push", checked_body(body, "push"), duration, points, nodes, True, frozen)
    return _exerting(task, -1.0, force, height, ahead, grip, trunk)


def pulling(
    body: Robot | None = None,
    force: float | HandForces = 100.0,
    height: float = 1.0,
    ahead: float = 0.55,
    duration: float = 1.5,
    *,
    grip: float = 0.4,
    trunk: TrunkStrength | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of pulling a handle backward with both hands; the arguments are those of ``pushing``.

    Example:
        >>> pulling(force=80.0).name
        'pull'
    """
    task = TaskSettings("pull", checked_body(body, "pull"), duration, points, nodes, True, frozen)
    return _exerting(task, 1.0, force, height, ahead, grip, trunk)


def _exerting(
    task: TaskSettings,
    sign: float,
    force: float | HandForces,
    height: float,
    ahead: float,
    grip: float,
    trunk: TrunkStrength | None,
) -> MotionProblem:
    """Return the problem of exerting a force; ``sign`` is that of the forward force of the handle on the hands."""
    name, body = task.name, task.body
    y, z = positive(height, name, "height"), number(ahead, name, "ahead", least=0.0)
    half = positive(grip, name, "grip") / 2
    shoulder, knuckles, heel = (landmark(body, f"left_{place}")[1] for place in ("upper_arm", "knuckles", "heel"))
    reach = float(2 * shoulder - knuckles - heel)
    if math.hypot(y, z) > reach or half > reach:
        what = f"the handle is at a height of {y:.3g} m, {z:.3g} m ahead and {2 * half:.3g} m wide"
        allowed = f"within {reach:.3g} m of the heels, up to the height of the raised hands"
        raise ModelError(what, where=name, allowed=allowed, fix="give its position in metres")
    if isinstance(force, HandForces):
        hands = force
        if not np.allclose(hands.right * [-1, 1, 1], hands.left):
            allowed, fix = "forces that are mirror images", "for other forces use reaching(hands=...)"
            raise ModelError("the forces on both hands differ", where=name, allowed=allowed, fix=fix)
    else:
        size = number(force, name, "force", above=0.0, most=MAX_HAND_FORCE)
        hands = HandForces.ramp((0.0, 0.0, sign * size), FORCE_RISE_FRACTION * task.duration)
    if trunk is not None:
        instance_of(trunk, TrunkStrength, name, "trunk", allowed="a torsor.human.TrunkStrength")
    aims = [
        Placed(body=body, frame=f"{side}_knuckles", place=(x, y, z), near=0.005, name=f"{side} hand at the handle")
        for side, x in zip(SIDES, (-half, half), strict=True)
    ]
    guess, ends = crouching(body, y, z, GUESS_LEAN), [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(Standing(hips_apart(body)), aims, ends, (guess, guess), hands=hands, trunk=trunk)


REACHING_POSTURE = 0.1  # weight of squared deviations from the relaxed posture; reaching needs little torque


def reaching(
    body: Robot | None = None,
    target: Sequence[float] = (-0.2, 1.1, 0.75),
    hand: str = "right",
    duration: float = 1.0,
    *,
    hands: HandForces | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of reaching a point (x, y, z) (m) with the knuckles of a hand, from standing to rest.

    ``duration`` is in s. ``hands`` are hand forces (``HandForces``), for example from a tool. Both feet stay flat; the
    body bends, squats and turns as needed. ``frozen`` is {coordinate: angle (rad)} for joints that do not move. If the
    target is out of reach, ``solve`` raises a ``MotionError`` whose ``result`` is the closest motion. For ``points``
    and ``nodes``, see ``lifting``.

    Example:
        >>> problem = reaching(target=(0.3, 0.6, 0.5), hand="left")
        >>> [each.title for each in problem.conditions][-1]
        'left hand at the target'
    """
    task = TaskSettings("reach", checked_body(body, "reach"), duration, points, nodes, frozen=frozen)
    if hands is not None:
        instance_of(hands, HandForces, "reach", "hands", allowed="torsor.human.HandForces")
    one_of(hand, SIDES, "reach", "hand")
    x, y, z = frozen_array(target, (3,), "reach", "target").tolist()
    frame, name = f"{hand}_knuckles", f"{hand} hand at the target"
    aims = [Placed(body=task.body, frame=frame, place=(x, y, z), at=1.0, name=name)]
    first = task.posture(standing(task.body))
    ends = [Start(q=first, v=0.0, a=0.0), End(v=0.0, a=0.0)]
    other = SIDES[1 - SIDES.index(hand)]
    ranges = {**RANGES, **{f"{other}_{joint}": range_ for joint, range_ in IDLE_ARM_RANGES.items()}}
    more: dict[str, Any] = {"posture": REACHING_POSTURE, "relax_aims_first": True, "hands": hands}
    return task.problem(Standing(hips_apart(task.body)), aims, ends, (first, first), ranges=ranges, **more)


# Standing up from a seat, and sitting down.

ARM = ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation", "elbow_flexion", "pronation")
LAP = {"shoulder_adduction": -0.15, "shoulder_flexion": 0.5, "elbow_flexion": 1.0}  # hands above the thighs (rad)


def standing_up(
    body: Robot | None = None,
    seat: float = 0.45,
    duration: float = 1.5,
    *,
    off: float = 0.4,
    share: float = 0.8,
    peak: float = 1.0,
    rails: Rails | None = None,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    points: int = 12,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of standing up from a seat of height ``seat`` (m), from rest to rest, with swinging arms.

    Initially, the body sits upright with its shanks inclined forward by 18 degrees. At the end, it stands upright. The
    hips stay on the seat until the fraction ``off`` of the duration. The seat initially carries the fraction ``share``
    of the total force, which decreases smoothly to zero at ``off``. Its force acts on the pelvis (see ``Sitting``).
    ``peak`` is the weight of the sum of the peak hip and knee extension moments (N m/kg of one leg) relative to the
    effort. With ``peak=10`` and a duration of 2.5 s, leg moments are only slightly higher than a quasi-static
    motion requires. With ``peak=0``, only the effort counts, which permits high, short peaks. ``rails`` (``Rails``) are
    armrests: the hands are initially on them, and their forces are results of the optimisation. For ``symmetric``,
    ``frozen``, ``points`` and ``nodes``, see ``lifting``.

    Example:
        >>> problem = standing_up(seat=0.5)
        >>> problem.name, problem.stages[0].duration
        ('stand-up', 1.5)
    """
    task = TaskSettings("stand-up", checked_body(body, "stand-up"), duration, points, nodes, symmetric, frozen)
    return _seat_task(task, Sitting, seat, off, share, peak, rails)


def _seat_task(
    task: TaskSettings, kind: type[Sitting], seat: float, off: float, share: float, peak: float, rails: Rails | None
) -> MotionProblem:
    """Return the problem of standing up or sitting down; the hips are on the seat for the fraction ``off``."""
    weight = number(peak, task.name, "peak", least=0.0)
    legs = sitting(task.body, positive(seat, task.name, "seat"), task.name)
    seated, upright = task.posture(both(LAP) | legs), task.posture(standing(task.body))
    support = kind(hips_apart(task.body), height=seat, back=-legs["tz"], share=share, off=off, rails=rails)
    place, fixed, ranges, held = (
        (0.0, seat + HIP_HEIGHT_ON_SEAT, legs["tz"]),
        seated,
        {**RANGES, **IDLE_ARM_RANGES},
        1.0,
    )
    if rails is not None:
        instance_of(rails, Rails, task.name, "rails", allowed="a torsor.human.Rails")
        shoulder = landmark(task.body, "right_upper_arm") - landmark(task.body, "pelvis") + np.array(place)
        check_reach(task.body, rails, tuple(shoulder.tolist()), task.name)
        fixed = {name: at for name, at in seated.items() if not name.endswith(ARM)}
        ranges, held = dict(RANGES), rails.until
    still: dict[str, Any] = {"v": 0.0, "a": 0.0}
    if kind is Sitting:
        during, on_rails, guess = (0.0, off), (0.0, held), (seated, upright)
        ends = [Start(q=fixed, **still), End(q=upright, **still)]
    else:
        during, on_rails, guess = (1.0 - off, 1.0), (1.0 - held, 1.0), (upright, seated)
        ends = [Start(q=upright, **still), End(q=fixed, **still)]
    aims = [Placed(body=task.body, frame="pelvis", place=place, near=0.015, during=during, name="hips on the seat")]
    return task.problem(support, aims, ends, guess, ranges=ranges, peak=weight, on_rails=on_rails)


@dataclass(frozen=True)
class SittingDown(Sitting):
    """Like ``Sitting`` in reverse: the seat force is zero until 1 - ``off`` and then increases smoothly."""

    def seated(self, s: Array) -> Seat:
        """Return the fraction of the total force on the seat, and its point of application."""
        fraction = self.share * smoothstep((s - 1 + self.off) / self.off)
        return super().seated(s)._replace(fraction=np.asarray(fraction))


def sitting_down(
    body: Robot | None = None,
    seat: float = 0.45,
    duration: float = 1.5,
    *,
    on: float = 0.6,
    share: float = 0.8,
    peak: float = 1.0,
    rails: Rails | None = None,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    points: int = 12,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of sitting down on a seat of height ``seat`` (m), from standing to sitting upright at rest.

    From the fraction ``on`` of the duration onwards, the hips are on the seat, whose force increases smoothly to the
    fraction ``share`` of the total force at the end. The hands are on ``rails`` at the end. For ``peak`` and the other
    arguments, see ``standing_up``.

    Example:
        >>> sitting_down(seat=0.5).name
        'sit-down'
    """
    task = TaskSettings("sit-down", checked_body(body, "sit-down"), duration, points, nodes, symmetric, frozen)
    touch = number(on, "sit-down", "on", above=0.0, below=1.0)
    return _seat_task(task, SittingDown, seat, 1 - touch, share, peak, rails)
