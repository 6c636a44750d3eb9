"""Tasks of a human on flat feet, predicted by least effort: the parts that lifting, standing up and reaching share.

They use the body, ground, strengths and compiled kernels of walking. The ground is at y = 0; the heels are at z = 0 and
their midpoint at x = 0; x points to the left, z forward. Clavicles, wrists, neck, head and the upper spine are frozen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, positive
from torsor.human.body.coordinates import frozen_joints, is_odd
from torsor.human.body.kernels import shared_model
from torsor.human.body.loads import Box, HandForces
from torsor.human.body.person import person_of
from torsor.human.body.trunk_strength import SPINE, TrunkStrength
from torsor.human.contact.support import Standing
from torsor.human.terms.feet import contacts
from torsor.human.terms.forces import Balance, Effort, LegPeaks, LimbTorques, Torques, TrunkTorques
from torsor.human.terms.habits import Habits, Posture
from torsor.human.terms.places import rail_constraints
from torsor.human.terms.problem import HumanProblem
from torsor.motion import MotionError, MotionProblem, MotionResult, Phase, Positions
from torsor.motion.results.solution import time_of
from torsor.motion.starts import fit
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint
from torsor.robot.robot import Robot

NAMED = 4  # joints that a message names at most
SLIGHT = 1e-3  # relative excess of a strength that is no weakness
FIX = "a smaller load, nearer to the body, more time, or a stronger person"


class Weakness(NamedTuple):
    """A joint whose strength is exceeded most at a ``time`` (s): its ``torque`` (N m) and its ``strength`` (N m)."""

    joint: str
    torque: float
    strength: float
    time: float

    @property
    def ratio(self) -> float:
        """The torque divided by the strength."""
        return self.torque / self.strength

    def __str__(self) -> str:
        have = f"and has {self.strength:.0f} N m ({self.ratio:.2f} times its strength)"
        return f"{self.joint} needs {self.torque:.0f} N m at {self.time:.2f} s {have}"


def weaknesses(result: MotionResult) -> list[Weakness]:
    """Return the joints that are too weak for a motion of a task, the weakest first; none for a feasible motion.

    Torques that exceed a strength are those of ``problem.solve(check=False)`` or of ``MotionError.result``.

    Example:
        >>> weaknesses(3)
        Traceback (most recent call last):
        torsor.ModelError: weaknesses: result is 3; allowed: the result of a task of torsor.human
    """
    instance_of(result, MotionResult, "weaknesses", "result", allowed="the result of a task of torsor.human")
    program, x = result.problem.program, result.x
    terms, values = _strengths(result), program.value(x)[1]
    outside = np.maximum(program.row_lower - values, values - program.row_upper) * program.scales
    names, found = result.robot.coordinate_names, dict[str, Weakness]()
    for row, relative, excess in zip(program.rows, values * program.scales, outside, strict=True):
        term = terms.get(row.title)
        if term is None or excess <= SLIGHT:
            continue
        joint, time = row.label.split()[0], time_of(program, x, row) or 0.0
        if isinstance(term, TrunkTorques):
            flexion = sum(float(np.interp(time, result.times, result.q[:, names.index(name)])) for name in SPINE)
            strength = float(term.trunk.extend(flexion) if relative < 0 else term.trunk.flex(flexion))
        else:
            own = term.body.effort_limit[term.body.coordinate_names.index(joint)]
            strength = float(own) * term.strength.get(joint, 1.0)
        each = Weakness(joint, abs(float(relative)) * strength, strength, time)
        found[joint] = max(found.get(joint, each), each, key=lambda one: one.ratio)
    return sorted(found.values(), key=lambda each: -each.ratio)


def explained(error: MotionError) -> MotionError | None:
    """Return the error of a task for which joints are too weak, in words; None if that is not the reason."""
    result = error.result
    weak = [] if result is None else weaknesses(result)
    if result is None or not weak or not set(error.conflict) <= _strengths(result).keys():
        return None
    more = f"; {len(weak) - NAMED} more joints are too weak" if len(weak) > NAMED else ""
    near = f"in the nearest one that was found {', '.join(map(str, weak[:NAMED]))}{more}"
    name = result.problem.name
    fix = f"{FIX}; human.largest_lift finds the largest load" if name == "lift" else FIX
    made = MotionError(f"no motion near the start satisfies {', '.join(error.conflict)}: {near}", where=name, fix=fix)
    made.result, made.conflict, made.violation = result, error.conflict, error.violation
    return made


def _strengths(result: MotionResult) -> dict[str, Torques | TrunkTorques]:
    """Return the terms of a problem that bound torques, by title."""
    return {term.title: term for term in result.problem.terms if isinstance(term, Torques | TrunkTorques)}


Ranges = Mapping[str, tuple[float, float]]

# Ranges of the joints in these tasks (degrees; m): joints that cost no torque would be undetermined without them.
RANGES: Ranges = {
    "tx": (-0.2, 0.2), "ty": (-0.8, 0.02), "tz": (-0.6, 0.4), "yaw": (-20, 20), "tilt": (-15, 90), "list": (-10, 10),
    "hip_adduction": (-25, 15), "hip_rotation": (-25, 25), "ankle_inversion": (-15, 15), "toe_extension": (-5, 5),
    **{f"spine{k}_flexion": (-2, 25) for k in (1, 2, 3)}, "lateral": (-5, 5), "axial": (-10, 10),
    "shoulder_flexion": (-40, 150), "shoulder_adduction": (-60, 30), "shoulder_rotation": (-60, 60),
    "elbow_flexion": (0, 130), "pronation": (-80, 80),
}  # fmt: skip
# The same for arms that are not used.
IDLE: Ranges = {
    "shoulder_flexion": (-5, 60), "shoulder_adduction": (-15, -5), "shoulder_rotation": (-10, 10),
    "elbow_flexion": (5, 75), "pronation": (-10, 10),
}  # fmt: skip
SLACK, SLIP, FRICTION = 0.003, 0.1, 0.8
POSTURE = 0.02  # weight of squared deviations from the relaxed posture


@dataclass(frozen=True, eq=False, repr=False)
class Task(HumanProblem):
    """A motion problem whose initial guess is a straight line between two postures, ``first`` and ``last``.

    Both are {coordinate: position}, 0 for all others; start and end constraints of the problem take precedence.
    """

    first: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)

    def guess(self) -> Array:
        """Return the variables of the straight line between the postures."""
        x, program = super().guess(), self.program
        ends = np.array([[each.get(name, 0.0) for name in self.model.names] for each in (self.first, self.last)])
        s = np.linspace(0.0, 1.0, 41)
        for phase_layout in program.layout.phases:
            fit(phase_layout, x, s, (1 - s)[:, None] * ends[0] + s[:, None] * ends[1])
        return np.clip(x, program.lower, program.upper)

    def solve(self, solver: str | None = None, **settings: Any) -> MotionResult:
        """Return the motion that a solver finds, as ``MotionProblem.solve`` does.

        If nobody of this strength can do the task, the ``MotionError`` names the joints that are too weak.
        """
        try:
            return super().solve(solver, **settings)
        except MotionError as error:
            raise explained(error) or error from None


@dataclass(frozen=True)
class TaskSettings:
    """Arguments that all tasks have, checked; ``name`` is that of the task, and appears in errors.

    ``duration`` (s), ``points`` and ``nodes`` discretise the motion; ``symmetric`` keeps trunk and pelvis in the
    sagittal plane; ``frozen`` adds {coordinate: angle (rad)} to the joints that are frozen by default.
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
        """The coordinates that move."""
        return tuple(name for name in self.body.coordinate_names if name not in self.held)

    @property
    def mean_trunk(self) -> TrunkStrength:
        """The mean strength of the trunk of people like this body; there is a warning if the tables have none."""
        person = person_of(self.body)
        person.warn_outside_of_tables(self.name)
        return TrunkStrength(person)

    def posture(self, angles: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of all coordinates that move: those given, and 0."""
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
        trunk: TrunkStrength | None = None,
        hands: HandForces | None = None,
        peak: float = 0.0,
        ranges: Ranges = RANGES,
        posture: float = POSTURE,
        on_rails: tuple[float, float] = (0.0, 1.0),
        relax_aims_first: bool = False,
    ) -> MotionProblem:
        """Return the problem of least effort on flat feet, within ranges and strengths, in balance.

        ``aims`` are the constraints of the task itself, ``body`` is that with the ``load``, and ``guess`` are the first
        and last posture of the initial guess. ``trunk`` replaces the strengths of the spine's flexions, ``hands`` are
        forces on the hands, ``peak`` is the weight of the peaks of hip and knee moments. The hands hold the support's
        rails within the times ``on_rails``. If the problem is infeasible, torques are relaxed before balance and aims,
        or after the aims.
        """
        body = self.body if body is None else body
        ground: dict[str, Any] = {"body": body, "support": support, "friction": FRICTION}
        driven = ground | {"moving": self.moving}
        if hands is not None:
            ground, driven = (each | {"hands": hands, "seconds": self.duration} for each in (ground, driven))
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
        titles, forces = [each.title for each in aims], ([each.title for each in torques], ["balance"])
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
            relaxation_order=(titles, *forces) if relax_aims_first else (*forces, titles),
            first=guess[0],
            last=guess[1],
        )
