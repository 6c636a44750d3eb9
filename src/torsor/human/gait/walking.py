"""Walking: one human step, or a stride, predicted by minimising effort (Barman 2020, chapter V).

One step is repeated with left and right exchanged; with two steps, the sides may differ. Torques include the effect
of the ground wrenches on the feet. The centre of pressure stays within a box around the support, whose four sides are
written without division, as n_z - x f_y >= 0. ``bent_start`` returns alternative initial guesses.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, whole_number
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import GLOBAL, SIDES, mirror
from torsor.human.body.kernels import checked_body, shared_model
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.person import person_of
from torsor.human.body.postures import landmark
from torsor.human.body.strength import StrengthCurves
from torsor.human.contact.contact_forces import LEFT_STEP, SPEED, WIDTH
from torsor.human.contact.schedule import FreeWalk, Run, RunningStep, Step, Walk
from torsor.human.contact.support import Rails, smoothstep
from torsor.human.gait.settings import FOOT_FORCES, HARMONICS, Mesh, WalkSettings, weighted_terms
from torsor.human.terms import places
from torsor.human.terms.forces import Strengths
from torsor.human.terms.habits import Habits
from torsor.human.terms.objectives import (
    EXTENSORS,
    FootForces,
    MetabolicEnergy,
    MuscleTorques,
    SprungEnergy,
    Tendons,
    pull,
)
from torsor.human.terms.problem import HumanProblem, walk_of
from torsor.motion import MotionProblem, Number, Periodic, Phase, Positions, Symmetric
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint
from torsor.motion.transcription.splines import Spline
from torsor.robot.robot import Robot

# Stair climbing: the initial guess is a climb, so that the solver need not find the way over the edges.

SAMPLES = 61  # of the climb, over one step
MAX_LEG_FRACTION = 0.97  # largest leg length of the guess, relative to the straight leg
EDGE_CLEARANCE = 0.08  # m: approximate clearance of the swing foot over the edges in the guess
TOE_OFF_PITCH, LANDING_PITCH = 0.6, 0.3  # rad: foot pitch of the guess at toe-off, and at landing downstairs


@dataclass(frozen=True, eq=False, repr=False)
class StairProblem(HumanProblem):
    """A walk on stairs."""

    def guess(self) -> Array:
        """Return the variables of a climb: hips move along the stairs, and legs follow the feet on level soles."""
        term, walk = walk_of(self)
        course, unknown = climb(term.body, walk.step.nominal, SAMPLES), np.full(SAMPLES, np.nan)
        return self.fitted(np.stack([course.get(name, unknown) for name in self.model.names], axis=1))


def climb(body: Robot, step: Step, count: int) -> dict[str, Array]:
    """Return {coordinate: positions (count,)} of a climb in the sagittal plane, over one step from s = 0 to 1."""
    s = np.linspace(0.0, 1.0, count)
    hip, knee, ankle, ball, heel = (landmark(body, f"right_{at}") for at in ("thigh", "shank", "foot", "ball", "heel"))
    thigh, shank = float(hip[1] - knee[1]), float(knee[1] - ankle[1])
    feet, pitches = _feet(step, s)
    hips = np.stack([step.length * (s - 0.5) + ankle[2] - heel[2], step.rise * (s - 0.5) + hip[1] - heel[1]], axis=1)
    ways = {}
    for side in SIDES:
        c, d, (y, z) = np.cos(pitches[side]), np.sin(pitches[side]), (ankle - ball)[1:]
        turned = np.stack([z * c + y * d, y * c - z * d], axis=1)
        ways[side] = feet[side] + (ball - heel)[[2, 1]] + turned - hips
    longest = MAX_LEG_FRACTION * (thigh + shank)
    lower = max(float((-way[:, 1] - np.sqrt(longest**2 - way[:, 0] ** 2)).max()) for way in ways.values())
    positions = {"tz": hips[:, 0] - float(hip[2]), "ty": hips[:, 1] - float(hip[1]) - lower}
    for side, way in ways.items():
        z, y = way[:, 0], way[:, 1] + lower
        square = z**2 + y**2
        bent = np.pi - np.arccos(np.clip((thigh**2 + shank**2 - square) / (2 * thigh * shank), -1.0, 1.0))
        inside = np.arccos(np.clip((thigh**2 + square - shank**2) / (2 * thigh * np.sqrt(square)), -1.0, 1.0))
        positions[f"{side}_knee_flexion"] = bent
        positions[f"{side}_hip_flexion"] = np.arctan2(z, -y) + inside
        positions[f"{side}_ankle_flexion"] = bent - positions[f"{side}_hip_flexion"] - pitches[side]
        positions[f"{side}_toe_extension"] = pitches[side]
    return positions


def _feet(step: Step, s: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the heel positions (z, y) (K, 2) with flat feet, and the foot pitch (rad) that raises the heels."""
    swing = np.clip((s - step.toe_off) / (1 - step.toe_off), 0.0, 1.0)
    lifted = smoothstep(swing / 0.6) if step.rise > 0 else smoothstep((swing - 0.4) / 0.6)  # up before, down after it
    left_z = step.length * (2 * smoothstep(swing) - 1)
    left_y = step.rise * (2 * lifted - 1) + EDGE_CLEARANCE * np.sin(np.pi * swing) ** 2
    feet = {"right": np.zeros((len(s), 2)), "left": np.stack([left_z, left_y], axis=1)}
    lands = 0.0 if step.rise > 0 else LANDING_PITCH
    right = lands * (1 - smoothstep(s / step.flat)) + TOE_OFF_PITCH * smoothstep(
        (s - step.heel_off) / (1 - step.heel_off)
    )
    left = TOE_OFF_PITCH * (1 - smoothstep(2 * swing)) + lands * smoothstep(2 * swing - 1)
    return feet, {"right": right, "left": left}


ORDER = 2  # accelerations are continuous from step to step
SWING_MARGIN = 0.06  # of a step: the clearance holds from this time after toe-off to this time before heel strike


def walking(
    body: Robot | None = None,
    step: Step | None = None,
    *,
    load: Backpack | Box | None = None,
    slope: float = 0.0,
    steps: int = 1,
    frozen: Mapping[str, float] | None = None,
    strength: Mapping[str, float] | None = None,
    curves: StrengthCurves | None = None,
    planar: bool = False,
    objective: Mapping[str, float] | None = None,
    habits: Habits | None = None,
    friction: float = 0.8,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    rails: Rails | None = None,
    points: int = Mesh.points,
    nodes: int | Sequence[float] | None = Mesh.nodes,
    slack: float = Mesh.slack,
    slip: float = Mesh.slip,
) -> MotionProblem:
    """Return the problem of one walking step; quantities that ``step`` does not fix are optimised.

    Person: ``body`` is a ``library.human``, with a ``load``. ``frozen`` adds {coordinate: angle (rad)} to the joints
    that are frozen by default (clavicles, wrists, neck, head and the upper spine, so that 38 of the 55 coordinates
    move). ``planar`` freezes all motion out of the sagittal plane. ``strength`` is {coordinate: strength factor}.
    ``curves`` limits hip, knee and ankle torques to the strength at the current angle and velocity, times these
    factors. ``ranges`` {coordinate: (lower, upper)} (rad or m) replaces the ranges of habits, within those of the
    joints; a name without a side applies to both. {"knee_flexion": (0.5, 2.0)} results in crouched walking.

    Walk: ``step`` specifies the speed, by default 1.25 m/s, and stairs. Length, width and contact times are optimised
    unless it specifies them. ``slope`` (rad) is positive uphill. With ``steps=2``, the steps may differ in length and
    times, and so may the sides of the body: ``frozen``, ``strength`` and ``ranges`` may be one-sided, and legs may have
    different lengths. ``friction`` is the friction coefficient. The hands may hold ``rails`` in turn
    (docs/people/stairs_and_rails.md).

    Objective: ``objective`` {term: weight} contains terms per metre, by default "energy" (metabolic), "effort" and
    "accelerations" with a weight of 1 each. The other terms are "heat", "strength", "balance" (the margin of
    stability), "joint loads" (forces in hips, knees and ankles), "head stability", "passive torques" and "impact"
    (docs/people/objectives.md). By default, there are no ``habits`` except a foot clearance of 5 mm; the usual ones are
    ``Habits()``.

    Discretisation: ``points`` control points per coordinate, and ``nodes`` (their number or times s) for each step, by
    default seven intervals between two knots. Points of the feet in stance may move by up to ``slack`` (m) and at up to
    ``slip`` (m/s).

    Example:
        >>> problem = walking()
        >>> problem.program.n, len(problem.model.names)
        (420, 42)
    """
    settings = WalkSettings(
        body=checked_body(body, "walk"),
        walk=FreeWalk(Step() if step is None else step, steps, rails=rails),
        mesh=Mesh(points, nodes, slack, slip),
        load=load,
        slope=slope,
        frozen=frozen,
        strength=strength,
        curves=curves,
        planar=planar,
        objective=objective,
        given_habits=habits,
        friction=friction,
        ranges=ranges,
    )
    settings.check()
    constraints = _constraints(settings)
    model, numbers = shared_model(settings.loaded)
    # Groups of constraints in the order in which they may be relaxed.
    limits = ["torques"] if curves is None else ["torques", "strength curves"]
    feet = [term.title for term in constraints if isinstance(term, places.Stands | places.Clears)]
    kind = StairProblem if settings.walk.step.rise else HumanProblem
    return kind(
        model,
        settings.mesh.phase(settings.walk),
        weighted_terms(settings),
        constraints,
        relaxation_order=(limits, ["balance"], feet),
        frozen=settings.held,
        numbers=numbers,
        name="walk",
        settings={"solver": "condensed", "tolerance": 1e-4},
        load=settings.load,
    )


def _constraints(settings: WalkSettings) -> list[Constraint | Ends]:
    mesh, walk, ground, moving = settings.mesh, settings.walk, settings.ground, settings.moving
    (lower, upper), lateral, rails = settings.bounds(), not settings.planar, walk.rails
    strengths = [] if settings.curves is None else [Strengths(curves=settings.curves, **ground, name="strength curves")]
    # The lowest ground: the left foot swings from one tread to another.
    floor = {"left": -abs(walk.step.rise)}
    return [
        repetition(moving, walk),
        Positions(lower=lower, upper=upper, hull=True, name="ranges"),
        MuscleTorques(moving=moving, **ground, name="torques"),
        *strengths,
        places.SharedBalance(variables=step_variables(walk), lateral=lateral, **ground, name="balance"),
        places.BothPress(**ground, name="both feet press"),
        *places.sharing_bounds(walk),
        *([FootForces(**ground, name=FOOT_FORCES)] if settings.weights.get("impact") else []),
        *places.contacts(
            settings.loaded, walk, mesh.slack, mesh.slip, "xyz" if lateral else "yz", is_relative=True, floor=floor
        ),
        *swing(settings.loaded, walk, settings.habits, moving, mesh.slack),
        # The hand on the side of the swing leg is on its rail.
        *([] if rails is None else places.rail_constraints(ground, rails, sides=("left",), is_released=True)),
        *settings.habits.constraints(settings.loaded, settings.box, clear=lateral),
    ]


def step_variables(walk: Walk) -> dict[str, Number]:
    """Return the speed and width of the steps, and the length of the left one of two, as problem variables."""
    step, nominal, names = walk.step, walk.step.nominal, {SPEED: "speed", WIDTH: "width"}
    names |= {LEFT_STEP: "length"} if walk.steps == 2 else {}
    return {name: Number(getattr(nominal, which), *step.bounds(which)) for name, which in names.items()}


def repetition(names: tuple[str, ...], walk: FreeWalk) -> Ends:
    """Return the constraint that the walk ends in its initial state: mirrored after one step, identical after two."""
    least, most = walk.step.bounds("speed")
    ends: dict[str, Any] = {"order": ORDER, "shifts": {"ty": walk.step.rise} if walk.step.rise else {}}
    ends |= {"paces": {"tz": least}} if least == most else {"paces": {"tz": 1.0}, "paced_by": SPEED}
    if walk.steps == 2:
        return Periodic(name="the next stride is the same", **ends)
    others, signs = mirror(names)
    partners = {name: names[k] for name, k in zip(names, others, strict=True)}
    turned = dict(zip(names, signs.tolist(), strict=True))
    return Symmetric(partners=partners, signs=turned, name="symmetry", **ends)


def swing(body: Robot, walk: Walk, habits: Habits, moving: Sequence[str], slack: float) -> list[Constraint]:
    """Return the constraints of each swing phase: knee flexion, foot clearance, pelvic drop."""
    constraints, step = list[Constraint](), walk.step
    for index in range(walk.steps):
        side, which = SIDES[1 - index], "" if walk.steps == 1 else f", step {index + 1}"
        knee = f"{side}_knee_flexion"
        if habits.knee is not None and knee in moving:
            low, high = (math.radians(degrees) for degrees in habits.knee)
            at = walk.whole_s(index, step.knee)
            constraints.append(Positions(only=[knee], lower=low, upper=high, at=at, name=f"knee bent in swing{which}"))
        if step.rise:
            constraints += places.stair_clearance(body, step, side, habits.clearance, slack, SWING_MARGIN)
        elif habits.clearance:
            during = walk.whole_s(index, step.toe_off + SWING_MARGIN), walk.whole_s(index, 1.0 - SWING_MARGIN)
            clear: dict[str, Any] = {"body": body, "side": side, "height": habits.clearance}
            for point in ("heel", "ball", "toe"):
                name = f"{side} {point} clears in swing{which}"
                constraints.append(places.Clears(**clear, point=point, during=during, name=name))
        if habits.drop is not None and "list" in moving:
            angle, name = math.radians(habits.drop), f"hip drops in swing{which}"
            during = walk.whole_s(index, step.toe_off), walk.whole_s(index, step.heel_off)
            lower, upper = (-np.inf, -angle) if side == "left" else (angle, np.inf)
            constraints.append(Positions(only=["list"], lower=lower, upper=upper, during=during, name=name))
    return constraints


def bent_start(problem: MotionProblem, seed: int, offset: float = 0.2) -> Array:
    """Return variables (n,) for a constant posture whose joints deviate from the initial guess by random angles.

    The angles are normally distributed with the standard deviation ``offset`` (rad), and are reproducible for a given
    ``seed``. Bounds are respected. The six global coordinates are taken from ``problem.guess()``.

    Example:
        >>> problem = walking()
        >>> x = bent_start(problem, 0)
        >>> bool((x == bent_start(problem, 0)).all()), bool((x <= problem.program.upper).all())
        (True, True)
    """
    seed = whole_number(seed, problem.name, "seed", least=0)
    offset = number(offset, problem.name, "offset", least=0.0)
    rng, x, program = np.random.default_rng(seed), problem.guess(), problem.program
    for phase_layout in program.layout.phases:
        for name, columns in zip(problem.model.names, phase_layout.columns, strict=True):
            if name not in GLOBAL:
                x[columns[columns >= 0]] += offset * rng.normal()
    return np.clip(x, program.lower, program.upper)


# Running: one human step with a flight phase, predicted from its speed alone by minimum energy and effort.
#
# The step is the stance of the right foot and a flight phase; the next step is its mirror image. In flight the six
# global coordinates need no force (``Flight``). Length, width and times of the step are results, as in walking, with
# the same objective (docs/people/running.md).

MIN_RUNNING_SPEED, MAX_RUNNING_SPEED = 2.0, 4.5  # m/s: people change from walking to running at 1.9 to 2.2 m/s
RUN_MESH = Mesh(points=13, nodes=33)
MIN_RUNNING_POINTS = 10  # control points: the splines have a knot at each contact change


@dataclass(frozen=True, kw_only=True)
class RunSettings(WalkSettings):
    """The arguments of ``running`` with defaults filled in."""

    where: ClassVar[str] = "run"
    tendons: bool = False

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives that may have weights."""
        return ("energy", "effort", "accelerations")

    @property
    def run(self) -> Run:
        """The contact schedule."""
        assert isinstance(self.walk, Run)
        return self.walk

    def phase(self) -> Phase:
        """Return the motion phase; the pelvis has finer splines in flight, so that no residual force remains there."""
        step, points = self.run.step, self.mesh.points
        lengths, speed, pelvis = step.bounds("length"), step.bounds("speed")[0], self.run.pelvis(points)
        nodes = self.run.nodes(points)
        splines = {name: pelvis for name in GLOBAL if name in self.moving}
        if self.tendons:
            splines |= {pull(name): Spline(3, nodes[2:-2]) for name in EXTENSORS}
        return Phase(
            (lengths[0] / speed, lengths[1] / speed),
            knots=self.run.knots(points).tolist(),
            nodes=nodes,
            own=splines,
            quadrature="trapezoid",
            clock=HARMONICS if step.timing == "free" else 0,
        )


def running(
    speed: float = 3.0,
    body: Robot | None = None,
    *,
    length: Any = "free",
    width: Any = "free",
    timing: str = "free",
    load: Backpack | Box | None = None,
    slope: float = 0.0,
    frozen: Mapping[str, float] | None = None,
    strength: Mapping[str, float] | None = None,
    planar: bool = False,
    objective: Mapping[str, float] | None = None,
    friction: float = 0.8,
    tendons: bool = False,
    points: int | None = None,
) -> MotionProblem:
    """Return the problem of one running step at a ``speed`` (m/s) from 2 to 4.5 m/s.

    By default, the ``length`` and ``width`` (m) of the step and the ``timing`` of its contacts are optimised. Length
    and width may also be numbers or bounds (lower, upper). With ``timing="given"``, the foot is on the ground for 68 %
    of the step. For ``body``, ``frozen``, ``strength``, ``planar`` and ``friction`` see ``walking``. ``objective``
    {term: weight} may contain "energy", "effort" and "accelerations", by default all with a weight of 1. With
    ``tendons``, ankle and knee muscles act through springs (Geyer and Herr 2010), which store energy. ``points`` is the
    number of control points per coordinate (default 13). Only level ground is supported: a ``load``, or a ``slope``
    other than 0, raises ModelError.

    ``Stride(running().solve())`` returns the curves.

    Example:
        >>> problem = running(3.0)
        >>> problem.program.n, problem.phases.nodes.size, problem.phases.bounds[0].__round__(3)
        (524, 33, 0.167)
    """
    number(speed, "run", "speed")
    if not MIN_RUNNING_SPEED <= speed <= MAX_RUNNING_SPEED:
        fix = "use torsor.human.walking" if speed < MIN_RUNNING_SPEED else "use a lower speed"
        allowed = f"{MIN_RUNNING_SPEED:g} to {MAX_RUNNING_SPEED:g} m/s"
        raise ModelError(f"is {speed:g} m/s", argument="speed", where="run", allowed=allowed, fix=fix)
    if load is not None:
        what = f"is {load!r}, but running does not support loads"
        raise ModelError(what, value=load, argument="load", where="run", fix="omit load, or use walking")
    if number(slope, "run", "slope"):
        what = f"is {math.degrees(slope):.3g} degrees, but running supports only level ground"
        raise ModelError(what, argument="slope", where="run", fix="omit slope, or use walking")
    instance_of(tendons, bool, "run", "tendons")
    settings = RunSettings(
        body=checked_body(body, "run"),
        walk=Run(RunningStep(length=length, width=width, speed=float(speed), timing=timing)),
        mesh=RUN_MESH if points is None else replace(RUN_MESH, points=points),
        frozen=frozen,
        strength=strength,
        planar=planar,
        objective=objective,
        friction=friction,
        tendons=tendons,
    )
    if settings.mesh.points < MIN_RUNNING_POINTS:
        raise ModelError(
            f"is {points}", argument="points", value=points, where="run", allowed=f"{MIN_RUNNING_POINTS} or more"
        )
    settings.check()
    costs, (model, numbers) = weighted_terms(settings), shared_model(settings.loaded)
    if tendons:  # the energy is that of the muscles alone
        shared: dict[str, Any] = {"moving": settings.moving, "person": person_of(settings.body), **settings.ground}
        for k, cost in enumerate(costs):
            if isinstance(cost, MetabolicEnergy):
                costs[k] = SprungEnergy(weight=cost.weight, name=cost.name, **shared)
    return HumanProblem(
        model,
        settings.phase(),
        costs,
        _run_constraints(settings),
        relaxation_order=(["torques"], ["balance"]),
        frozen=settings.held,
        numbers=numbers,
        name="run",
        settings={"solver": "condensed", "tolerance": 1e-4, "iterations": 600},
    )


def _run_constraints(settings: RunSettings) -> list[Constraint | Ends]:
    mesh, habits, body, run = settings.mesh, settings.habits, settings.loaded, settings.run
    lower, upper = habits.bounds(body, list(settings.moving), 0.0, False)
    variables = step_variables(run)
    clear: dict[str, Any] = {"side": "left", "height": habits.clearance, "during": (SWING_MARGIN, 1 - SWING_MARGIN)}
    constraints: list[Constraint | Ends] = [
        repetition(settings.moving, run),
        Positions(lower=lower, upper=upper, hull=True, name="ranges"),
        MuscleTorques(moving=settings.moving, **settings.ground, name="torques"),
        places.OneFootBalance(variables=variables, lateral=not settings.planar, **settings.ground, name="balance"),
        places.Flight(**settings.ground, at=run.flight(mesh.points).tolist(), name="flight"),
        *places.contacts(body, run, mesh.slack, mesh.slip, "yz" if settings.planar else "xyz", is_relative=True),
        *(
            places.Clears(body=body, point=point, name=f"left {point} clears", **clear)
            for point in ("heel", "ball", "toe")
        ),
        *habits.constraints(body, None, clear=not settings.planar),
    ]
    if settings.tendons:
        constraints.append(Tendons(person=person_of(settings.body), **settings.ground, name="tendons"))
    return constraints
