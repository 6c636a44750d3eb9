"""Curves over a stride, from heel strike to heel strike of one side: angles, moments, powers, forces, energy.

If the walk or run is one step, the second step of the stride is its mirror image. If it is two steps, the sides may
differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, one_of
from torsor.base.errors import ModelError
from torsor.base.registry import register
from torsor.base.time_series import Instants, SampledInstants, Series
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.strength import passive_torques
from torsor.human.comparison.given import CURVES, Given, given_references
from torsor.human.comparison.table import LikenessTable
from torsor.human.contact.schedule import RunningStep, Step, Walk, solved_steps
from torsor.human.contact.support import SharedSupport
from torsor.human.gait.references import REFERENCES, UNITS, Reference, in_words
from torsor.human.terms.objectives import BASAL, BRAKING, DRIVING, SprungEnergy
from torsor.human.terms.problem import REACTION_JOINTS, Samples, grounded_term, pressure, sampled, sampled_at, walk_of
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

# Mechanical energy of a walk: the work of the joints, and of the ground at slipping or rolling feet.
#
# The power of joints and ground equals the rate of change of kinetic and potential energy. It is smooth between spline
# knots and contact changes, and is integrated there by Gauss quadrature.

PIECES, ORDER = 6, 6  # pieces per smooth interval, because powers change sign in it, and Gauss points per piece


class Work(NamedTuple):
    """Work of a joint (J): ``positive`` for generated and ``negative`` for absorbed power."""

    positive: float
    negative: float

    @property
    def total(self) -> float:
        """The sum of positive and negative work (J)."""
        return self.positive + self.negative


@dataclass(frozen=True)
class Energy:
    """Energy of a walk of a person of ``mass`` (kg, including the load) over a ``distance`` (m).

    ``work`` is that of the power of each joint, summed over its axes first. ``ground`` (J) is the work of the ground on
    the feet, which is zero while they neither slip nor roll. ``change`` (J) is the change in kinetic and potential
    energy from start to end. ``metabolic`` (J) is the metabolic energy: positive and negative work of muscles at each
    axis of each joint, each divided by its efficiency, plus the energy consumed at rest. Except for runs with tendons,
    it is not smoothed, unlike the objective of walks, whose value is lower (3.56 instead of 4.04 J/(kg m) at 1.25 m/s).
    """

    distance: float
    mass: float
    work: dict[str, Work]
    ground: float
    change: float
    metabolic: float

    @property
    def joints(self) -> float:
        """Work of all joints (J)."""
        return sum(work.total for work in self.work.values())

    @property
    def positive(self) -> float:
        """Positive work of all joints (J)."""
        return sum(work.positive for work in self.work.values())

    @property
    def negative(self) -> float:
        """Negative work of all joints (J)."""
        return sum(work.negative for work in self.work.values())

    @property
    def residual(self) -> float:
        """Residual of the energy balance (J): work of joints and ground minus the energy change."""
        return self.joints + self.ground - self.change

    @property
    def mechanical_work(self) -> float:
        """Positive joint work per mass and distance, J/(kg m)."""
        return self.positive / (self.mass * self.distance)

    @property
    def cost_of_transport(self) -> float:
        """Metabolic energy per mass and distance, J/(kg m)."""
        return self.metabolic / (self.mass * self.distance)


def joint_of(name: str) -> str:
    """Return the joint of a coordinate."""
    before, _, last = name.rpartition("_")
    return f"{before}_elbow" if last == "pronation" else before


def energy(result: MotionResult) -> Energy:
    """Return the energy over all steps of a walk."""
    term, walk = walk_of(result.problem)
    phase_layout = result.program.layout.phases[0]
    step, T = walk.step, phase_layout.seconds(result.x)
    changes = (0.0, step.ball_off, step.flat, step.toe_off, step.heel_off)
    contacts = [walk.whole_s(k, change) for k in range(walk.steps) for change in changes]
    knots = np.concatenate([spline.inner for spline in phase_layout.splines])
    ends = np.unique(np.concatenate([contacts, knots, [1.0]]).round(12))
    x, w = np.polynomial.legendre.leggauss(ORDER)
    grid = np.concatenate([np.linspace(a, b, PIECES + 1)[:-1] for a, b in pairwise(ends)] + [[1.0]])
    half, clock = np.diff(grid) / 2, phase_layout.phase.timing
    s = (((grid[:-1] + grid[1:]) / 2)[:, None] + half[:, None] * x).ravel()
    weights = T * (half[:, None] * w).ravel() * clock.numeric(s, result.x[list(phase_layout.ticks)], 1)
    at, borders = sampled(result, s), sampled(result, np.array([0.0, 1.0]))
    names = term.body.coordinate_names
    powers: dict[str, Array] = {}
    for k, name in list(enumerate(names))[len(GLOBAL) :]:
        powers[joint_of(name)] = powers.get(joint_of(name), 0.0) + at.torques[:, k] * at.v[:, k]
    work = {
        joint: Work(float(weights @ np.maximum(power, 0.0)), float(weights @ np.minimum(power, 0.0)))
        for joint, power in powers.items()
        if power.any()
    }
    change = float(np.diff(borders.kinetic + borders.potential)[0])
    ground = float(weights @ at.ground.sum(axis=1))
    distance = sum(float(step.length) for step in solved_steps(walk, result))
    metabolic = _metabolic(result, at, weights, distance)
    return Energy(distance, term.body.mass, work, ground, change, metabolic)


def _metabolic(result: MotionResult, at: Samples, weights: Array, distance: float) -> float:
    """Return the metabolic energy (J) of a motion with quadrature ``weights`` (s) at its samples."""
    term = grounded_term(result.problem)
    sprung = [cost.title for cost in result.problem.costs if isinstance(cost, SprungEnergy)]
    if sprung:  # muscles that act through tendons have other velocities than the joints
        value = next(part.value for part in result.parts if part.title == sprung[0])
        return float(value * term.body.mass * distance)
    torques, joints = at.torques, slice(len(GLOBAL), None)
    if isinstance(term.support, SharedSupport):  # passive torques, which muscles do not exert
        torques = torques - passive_torques(term.body, at.q, at.v)
    powers = (torques * at.v)[:, joints]
    muscles = np.maximum(powers, 0.0).sum(axis=1) / DRIVING - np.minimum(powers, 0.0).sum(axis=1) / BRAKING
    return float(weights @ (muscles + BASAL * term.body.mass))


COUNT = 401  # instants of a stride
TURNS = slice(3, None)  # angular coordinates: all but the three translations of the pelvis
FORCES = ("medial", "vertical", "forward")

# Names of moments in the negative direction of a coordinate.
OPPOSITE = {
    "hip_extension": "hip_flexion", "hip_abduction": "hip_adduction", "knee_extension": "knee_flexion",
    "ankle_plantarflexion": "ankle_flexion", "ankle_eversion": "ankle_inversion", "toe_flexion": "toe_extension",
    "shoulder_extension": "shoulder_flexion", "shoulder_abduction": "shoulder_adduction",
    "elbow_extension": "elbow_flexion",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class StrideCurves:
    """The curves of a stride; the subclass ``Stride`` adds reports and figures."""

    result: MotionResult
    side: str = "right"

    def __post_init__(self) -> None:
        allowed = "the result of torsor.human.walking().solve() or running().solve()"
        walk_of(instance_of(self.result, MotionResult, "stride", "result", allowed=allowed).problem)
        one_of(self.side, SIDES, "stride", "side")

    # The walk

    @property
    def body(self) -> Robot:
        """The body with its load; gravity is inclined on a slope."""
        return walk_of(self.result.problem)[0].body

    @property
    def walk(self) -> Walk:
        """The walk as defined in the problem, including free quantities."""
        return walk_of(self.result.problem)[1]

    @cached_property
    def steps(self) -> tuple[Step, Step]:
        """Both steps, with the optimised values of free quantities; the first begins with the heel strike."""
        solved = solved_steps(walk_of(self.result.problem)[1], self.result)
        first, second = solved if len(solved) == 2 else 2 * solved
        return (first, second) if self.side == "right" else (second, first)

    @property
    def step(self) -> Step:
        """The step that begins with the heel strike of this side, with the optimised values of free quantities."""
        return self.steps[0]

    @property
    def is_run(self) -> bool:
        """Whether the motion is a run, with flight phases, rather than a walk."""
        return isinstance(self.step, RunningStep)

    @property
    def weight(self) -> float:
        """Weight of the body with its load (N)."""
        return self.body.mass * float(np.linalg.norm(self.body.gravity))

    @property
    def duration(self) -> float:
        """Duration of the stride (s)."""
        return sum(step.duration for step in self.steps)

    @property
    def stance(self) -> float:
        """Fraction of the stride during which the foot of this side is on the ground."""
        first, second = self.steps
        if self.is_run:
            return first.duty_factor
        return (first.duration + second.toe_off * second.duration) / self.duration

    @property
    def double_support(self) -> float:
        """Fraction of the stride during which both feet of a walk are on the ground."""
        return sum(step.toe_off * step.duration for step in self.steps) / self.duration

    @cached_property
    def s(self) -> Array:
        """Times (401,) as fractions of the stride, from 0 to 1."""
        return np.linspace(0.0, 1.0, COUNT)

    @cached_property
    def samples(self) -> Samples:
        """All quantities at the 401 samples; the side of the stride comes first and is called "right" in names."""
        body, walk = self.body, walk_of(self.result.problem)[1]
        if walk.steps == 1:
            solved = sampled_at(self.result, np.linspace(0.0, 1.0, COUNT // 2 + 1))
            return solved.then(solved.mirrored(body, self.step.length, self.step.rise))
        if self.side == "right":
            return sampled_at(self.result, self.s)
        # The left stride begins with the second step; the first step follows, one stride further.
        own, other = self.steps
        moments = self.s + other.duration / self.duration
        is_later = moments <= 1.0
        second = sampled_at(self.result, moments[is_later]).mirrored(body, -other.length, -other.rise)
        first = sampled_at(self.result, np.append(0.0, moments[~is_later] - 1.0))
        return second.then(first.mirrored(body, own.length, own.rise))

    @cached_property
    def _series(self) -> Series:
        at = self.samples
        return Series.of("stride", self.s * self.duration, at.q, at.v, at.a, at.torques)

    def at(self, t: ArrayLike) -> Instants:
        """Return q, v, a and tau (..., n) of the body at times t (...) (s) after heel strike, interpolated."""
        return SampledInstants(self._series, t)

    def _place(self, name: str, other: bool = False) -> int:
        names = self.body.coordinate_names
        for candidate in (f"left_{name}" if other else f"right_{name}", name):
            if candidate in names[TURNS]:
                return names.index(candidate)
        known = [candidate.removeprefix("right_") for candidate in names[TURNS] if not candidate.startswith("left_")]
        raise ModelError(f"there is no coordinate {name!r}", value=name, where="stride", allowed=", ".join(known))

    # Curves

    def angle(self, name: str, *, other: bool = False) -> Array:
        """Return an angle (401,) in degrees, of a limb on this side, the pelvis ("tilt", "list", "yaw") or the spine.

        With ``other``, return the angle of the other leg or arm at the same samples.
        """
        return np.degrees(self.samples.q[:, self._place(name, other)])

    def moment(self, name: str, *, other: bool = False) -> Array:
        """Return the internal joint moment (401,) in N m/kg, including the effect of the ground wrenches on the feet.

        The name is the positive direction: "hip_extension", "hip_abduction", "knee_extension", "ankle_plantarflexion".
        For ``other`` see ``angle``.
        """
        sign = -1.0 if name in OPPOSITE else 1.0
        return sign * self.samples.torques[:, self._place(OPPOSITE.get(name, name), other)] / self.body.mass

    def power(self, name: str, *, other: bool = False) -> Array:
        """Return the power (401,) in W/kg of a coordinate, or of a joint with all its axes, such as "hip".

        For ``other`` see ``angle``.
        """
        names, sided = self.body.coordinate_names, f"left_{name}" if other else f"right_{name}"
        places = [k for k in range(len(GLOBAL), len(names)) if joint_of(names[k]) in (name, sided)]
        places = places or [self._place(OPPOSITE.get(name, name), other)]
        at = self.samples
        return np.asarray((at.torques[:, places] * at.v[:, places]).sum(axis=1) / self.body.mass)

    @property
    def forces(self) -> Array:
        """Ground reaction forces (401, 2, 3) on the foot on this side and on the other foot, divided by body weight."""
        return self.samples.forces / self.weight

    @property
    def force(self) -> Array:
        """Ground reaction force (401, 3) on the foot on this side, divided by body weight: medial, up, forward."""
        return self.forces[:, 0]

    @cached_property
    def pressure(self) -> Array:
        """Centres of pressure (401, 2, 2) of the foot on this side and the other foot: (x, z) in m, NaN if unloaded."""
        return pressure(self.samples, self.body)[..., [0, 2]]

    def reaction(self, joint: str) -> Array:
        """Return the force (401, 3) on the link below "hip", "knee" or "ankle", divided by body weight.

        Components are medial, up and forward. The force is the sum of the forces exerted by the bone above and by all
        muscles across the joint. The contact force between the bones alone is larger.
        """
        one_of(joint, REACTION_JOINTS, "stride", "joint")
        return self.samples.reactions[:, 0, REACTION_JOINTS.index(joint)] / self.weight

    @property
    def kinetic(self) -> Array:
        """Kinetic energy (401,) of the body (J)."""
        return self.samples.kinetic

    @property
    def potential(self) -> Array:
        """Potential energy (401,) of the body (J)."""
        return self.samples.potential

    @cached_property
    def energy(self) -> Energy:
        """Joint work and energy balance over the solved walk of one or two steps."""
        return energy(self.result)

    # Comparison with people

    def curve(self, reference: Reference) -> Array:
        """Return the curve (401,) for the quantity of a reference, in its unit."""
        if reference.kind == "force":
            return 100 * self.force[:, FORCES.index(reference.name)]
        if reference.kind == "power":
            return self.power(reference.name)
        return self.angle(reference.name) if reference.kind == "angle" else self.moment(reference.name)

    def as_reference(self, label: str = "") -> list[Reference]:
        """Return the curves as references for another walk; ``label`` is used in legends."""
        source = label or f"predicted, {self.step.speed:.3g} m/s"
        known = (REFERENCES[name] for name in CURVES)
        return [reference._replace(source=source, mean=self.curve(reference), sd=None) for reference in known]

    def references(self, references: Any = None) -> Given:
        """Return the references used by ``likeness`` and ``plot``, and notes about them.

        The built-in references are walks on level ground. A run or a stair climb has none by default.
        """
        if references is None and (self.is_run or self.step.rise):
            return Given([], [])
        return given_references(references, self.side, StrideCurves)

    def likeness(self, references: Any = None) -> LikenessTable:
        """Return the similarity to measured curves: a table of correlations r and RMSE, by curve name.

        ``references`` are names of built-in references (from ``REFERENCES``, or "Schwartz 2008"), recording files
        (.mot, .sto, .csv, .npz; a tuple of files is one recording), mappings {"knee_flexion": values (K,), (mean, sd),
        or strides (N, K)}, another ``Stride``, a result of ``recorded_walk`` or ``torsor.human.measured``, or a list of
        these. None selects all built-in references. "RMSE in SD" is the RMSE divided by the mean standard deviation.

        Example:
            >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
            >>> stride.likeness(["Schwartz 2008", ("angles.mot", "forces.mot")]).means  # doctest: +SKIP
        """
        compared = self.references(references)
        return LikenessTable([(reference, self.curve(reference)) for reference in compared.references], compared.notes)


# Spread of several walks: minimum and maximum of each curve at every percent of the stride, and of step quantities.

PERCENTS = 101  # instants of a spread: every percent of the stride, including both ends
PARTS = ("best", "least", "most")
WORK, ENERGY = "positive_work", "metabolic_energy"
QUANTITIES = {
    "step_length": "m", "step_width": "m", "double_support": "% of the stride", WORK: "J/(kg m)", ENERGY: "J/(kg m)",
}  # fmt: skip


class CurveSpread(NamedTuple):
    """A curve of the ``best`` of several walks, with the minimum ``least`` and maximum ``most`` of all: (101,) each.

    They are sampled at every percent of the stride, in the ``unit`` of the ``kind`` (angle, moment, power, force).

    Example:
        >>> knee = CurveSpread("knee_flexion", "angle", np.zeros(101), np.full(101, -2.0), np.full(101, 1.0))
        >>> knee.widest, knee.unit, knee.title
        (3.0, 'degrees', 'knee flexion')
    """

    curve: str
    kind: str
    best: Array
    least: Array
    most: Array

    @property
    def unit(self) -> str:
        """The unit of the curve."""
        return UNITS[self.kind]

    @property
    def title(self) -> str:
        """The curve name as text."""
        return in_words(self.curve, self.kind)

    @property
    def width(self) -> Array:
        """The difference (101,) between maximum and minimum."""
        return self.most - self.least

    @property
    def widest(self) -> float:
        """The largest difference between maximum and minimum."""
        return float(self.width.max())


class QuantitySpread(NamedTuple):
    """A quantity of the ``best`` of several walks, with the minimum ``least`` and maximum ``most`` over all of them."""

    name: str
    best: float
    least: float
    most: float

    @property
    def unit(self) -> str:
        """The unit of the quantity."""
        return QUANTITIES[self.name]


def curve_spreads(strides: Sequence[StrideCurves]) -> dict[str, CurveSpread]:
    """Return the spread of each curve in ``Stride.likeness``, by name; the first stride is the best."""
    spreads, at = dict[str, CurveSpread](), np.linspace(0.0, 1.0, PERCENTS)
    for curves in zip(*(stride.as_reference() for stride in strides), strict=True):
        values, name = np.array([curve.at(at) for curve in curves]), curves[0].curve
        spreads[name] = CurveSpread(name, curves[0].kind, values[0], values.min(axis=0), values.max(axis=0))
    return spreads


def quantities(stride: StrideCurves) -> dict[str, float]:
    """Return step length and width (m), double support (% of a walking stride), and energies (J/(kg m)).

    Joint work is the positive mechanical work. Metabolic energy is computed as in the objective of walks.
    """
    step = stride.step
    values = {
        "step_length": float(step.nominal.length),
        "step_width": float(step.nominal.width),
        **({} if stride.is_run else {"double_support": 100 * stride.double_support}),
        WORK: stride.energy.mechanical_work,
    }
    energy = [part.value for part in stride.result.parts if part.title == "energy"]
    return values | ({ENERGY: energy[0]} if energy else {})


def quantity_spreads(strides: Sequence[StrideCurves]) -> dict[str, QuantitySpread]:
    """Return the spread of each of the ``quantities``, by name.

    The first stride must be the best one; its values are ``best``.
    """
    rows = [quantities(stride) for stride in strides]
    every = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: QuantitySpread(name, values[0], min(values), max(values)) for name, values in every.items()}


def _of_any_form(references: Any, side: str) -> list[Reference]:
    return given_references(references, side, StrideCurves).references


register("walk references", "of any form", _of_any_form)  # for figures of recorded walks, which are in a lower layer
