"""Running: one step of a human with a flight, predicted from its speed alone by least energy and effort.

The step is the stance of the right foot and a flight; the next step is its mirror image. In flight the six global
coordinates need no force (``terms.flight``). Length, width and times of the step are results, as in walking with free
steps, with the same objective (docs/running.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torsor.base.checks import instance_of, number
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.kernels import checked_body, shared_model
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.person import person_of
from torsor.human.contact.free_walk import Run, RunningStep
from torsor.human.contact.schedule import check_step
from torsor.human.gait.settings import HARMONICS, Version, WalkSettings, weighted_terms
from torsor.human.gait.walking import SWING, repetition, step_variables
from torsor.human.terms.feet import Clears, Flight, OneFootBalance, contacts
from torsor.human.terms.objectives import MetabolicEnergy, MuscleTorques, SprungEnergy, Tendons, pull_splines
from torsor.human.terms.problem import HumanProblem
from torsor.motion import MotionProblem, Phase, Positions
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint, Cost
from torsor.robot.robot import Robot

SLOWEST, FASTEST = 2.0, 4.5  # m/s: people change from walking to running at 1.9 to 2.2 m/s
OBJECTIVES = ("energy", "effort", "accelerations")
VERSION = Version(points=13, nodes=33, slack=0.002, slip=0.05, order=2, is_free=True)
FEWEST = 10  # control points: the splines have a knot at each change of contact


@dataclass(frozen=True, kw_only=True)
class RunSettings(WalkSettings):
    """The arguments of ``running`` with defaults filled in."""

    where: ClassVar[str] = "run"
    tendons: bool = False

    @property
    def run(self) -> Run:
        """The support."""
        assert isinstance(self.walk, Run)
        return self.walk

    def _warn_of_speed(self) -> None:
        """Do not warn: people run at these speeds; raise ModelError for steps that nobody can take."""
        check_step(self.walk.step, self.body, self.where, leaps=True)

    def phase(self) -> Phase:
        """Return the motion phase: the pelvis has finer splines in flight, so that no force is left over there."""
        step, points = self.run.step, self.version.points
        lengths, speed, pelvis = step.bounds("length"), step.bounds("speed")[0], self.run.pelvis(points)
        nodes = self.run.nodes(points)
        own = {name: pelvis for name in GLOBAL if name in self.moving}
        return Phase(
            (lengths[0] / speed, lengths[1] / speed),
            knots=self.run.knots(points).tolist(),
            nodes=nodes,
            own=own | (pull_splines(nodes) if self.tendons else {}),
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
    """Return the problem of one step of running at a ``speed`` (m/s), from 2 to 4.5 m/s.

    ``length`` and ``width`` (m) of the step and the ``timing`` of its contacts are results, unless lengths are given as
    numbers or as bounds (least, most), or ``timing="given"``: then the foot is on the ground for 68 % of the step.
    ``body``, ``frozen``, ``strength``, ``planar`` and ``friction`` are those of ``walking``. ``objective`` has weights
    of "energy", "effort" and "accelerations", all 1 by default, as in walking with free steps. With ``tendons``,
    muscles of ankle and knee act through springs (Geyer and Herr 2010), which store energy. ``points`` is the number of
    control points of each joint (13). Level ground and no ``load`` only: a ``slope`` other than 0 is refused.

    ``Stride(running().solve())`` has the curves.

    Example:
        >>> problem = running(3.0)
        >>> problem.program.n, problem.phases.nodes.size, problem.phases.bounds[0].__round__(3)
        (524, 33, 0.167)
    """
    number(speed, "run", "speed")
    if not SLOWEST <= speed <= FASTEST:
        fix = 'walk: torsor.human.walking(version="free")' if speed < SLOWEST else "run slower"
        allowed = f"{SLOWEST:g} to {FASTEST:g} m/s"
        raise ModelError(f"is {speed:g} m/s", argument="speed", where="run", allowed=allowed, fix=fix)
    if load is not None:
        found = f"is {load!r}: running takes no load yet"
        raise ModelError(found, value=load, argument="load", where="run", fix="leave load out, or walk with it")
    if number(slope, "run", "slope"):
        found = f"is {math.degrees(slope):.3g} degrees: running takes level ground only"
        raise ModelError(found, argument="slope", where="run", fix="leave slope out, or walk on it")
    instance_of(tendons, bool, "run", "tendons")
    settings = RunSettings(
        body=checked_body(body, "run"),
        walk=Run(RunningStep(length=length, width=width, speed=float(speed), timing=timing)),
        version=VERSION if points is None else replace(VERSION, points=points),
        frozen=frozen,
        strength=strength,
        planar=planar,
        objective=objective,
        friction=friction,
        tendons=tendons,
    )
    if settings.version.points < FEWEST:
        raise ModelError(f"is {points}", argument="points", value=points, where="run", allowed=f"{FEWEST} or more")
    settings.check(OBJECTIVES)
    model, numbers = shared_model(settings.loaded)
    return HumanProblem(
        model,
        settings.phase(),
        _objective(settings),
        _constraints(settings),
        relaxation_order=(["torques"], ["balance"]),
        frozen=settings.held,
        numbers=numbers,
        name="run",
        settings={"solver": "condensed", "tolerance": 1e-4, "iterations": 600},
    )


def _objective(settings: RunSettings) -> list[Cost]:
    """Return the objective of walking with free steps; with tendons, the energy is that of the muscles alone."""
    own: dict[str, Any] = {"moving": settings.moving, "person": person_of(settings.body), **settings.ground}
    return [
        SprungEnergy(weight=each.weight, name=each.name, **own)
        if settings.tendons and isinstance(each, MetabolicEnergy)
        else each
        for each in weighted_terms(settings)
    ]


def _constraints(settings: RunSettings) -> list[Constraint | Ends]:
    version, habits, body, run = settings.version, settings.habits, settings.loaded, settings.run
    lower, upper = habits.bounds(body, list(settings.moving), 0.0, False)
    variables = step_variables(run.step)
    swing: dict[str, Any] = {"side": "left", "height": habits.clearance, "during": (SWING, 1 - SWING)}
    found: list[Constraint | Ends] = [
        repetition(settings.moving, run, version.order),
        Positions(lower=lower, upper=upper, hull=True, name="ranges"),
        MuscleTorques(moving=settings.moving, **settings.ground, name="torques"),
        OneFootBalance(variables=variables, lateral=not settings.planar, **settings.ground, name="balance"),
        Flight(**settings.ground, at=run.flight(version.points).tolist(), name="flight"),
        *contacts(body, run, version.slack, version.slip, "yz" if settings.planar else "xyz", is_relative=True),
        *(Clears(body=body, point=each, name=f"left {each} clears", **swing) for each in ("heel", "ball", "toe")),
        *habits.constraints(body, None, clear=not settings.planar),
    ]
    if settings.tendons:
        found.append(Tendons(person=person_of(settings.body), **settings.ground, name="tendons"))
    return found
