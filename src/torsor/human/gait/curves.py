"""Curves over a stride, from heel strike to heel strike of one side: angles, moments, powers, forces, energy.

If the walk or run is one step, the second step of the stride is its mirror image; if it is two, the sides may differ.
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
from torsor.base.time_series import Instants, SampledInstants, Series
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.comparison.given import CURVES, Given, given_references
from torsor.human.comparison.table import LikenessTable
from torsor.human.contact.schedule import RunningStep, Step, Walk, solved_step
from torsor.human.gait.references import REFERENCES, UNITS, Reference, in_words
from torsor.human.terms.problem import REACTION_JOINTS, Samples, pressure, sampled, sampled_at, walk_of
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

# Mechanical energy of a walk: the work of the joints, and of the ground at slipping or rolling feet.
#
# The power of the joints and of the ground equals the rate of kinetic and potential energy. It is smooth between knots
# of the splines and changes of contact, and is integrated there by Gauss quadrature.

PIECES, ORDER = 6, 6  # pieces of each smooth interval, since powers change sign in it, and Gauss points of each piece


class Work(NamedTuple):
    """Work of a joint (J): ``positive`` while it drives, ``negative`` while it brakes."""

    positive: float
    negative: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.positive + self.negative


@dataclass(frozen=True)
class Energy:
    """Energy over a walk of a ``distance`` (m) with a ``mass`` (kg, with the load).

    ``work`` is that of each joint, the sum over its axes; ``ground`` (J) is the work of the ground at the feet, zero
    while they neither slip nor roll; ``change`` (J) is that of kinetic and potential energy from start to end.
    """

    distance: float
    mass: float
    work: dict[str, Work]
    ground: float
    change: float

    @property
    def joints(self) -> float:
        """Work of all joints (J)."""
        return sum(each.total for each in self.work.values())

    @property
    def positive(self) -> float:
        """Positive work of all joints (J)."""
        return sum(each.positive for each in self.work.values())

    @property
    def negative(self) -> float:
        """Negative work of all joints (J)."""
        return sum(each.negative for each in self.work.values())

    @property
    def residual(self) -> float:
        """Residual of the energy balance (J): work of joints and ground minus the change of energy."""
        return self.joints + self.ground - self.change

    @property
    def cost_of_transport(self) -> float:
        """Positive work of the joints per mass and distance, J/(kg m): mechanical, not metabolic."""
        return self.positive / (self.mass * self.distance)


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
    contacts = [walk.whole_s(k, each) for k in range(walk.steps) for each in changes]
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
    length = solved_step(walk, result).length
    return Energy(walk.steps * length, term.body.mass, work, float(weights @ at.ground.sum(axis=1)), change)


COUNT = 401  # instants of a stride
TURNS = slice(3, None)  # coordinates that are angles: all but the three slides of the pelvis
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
    """The curves of ``Stride``, which adds reports and figures."""

    result: MotionResult
    side: str = "right"

    def __post_init__(self) -> None:
        allowed = "the result of torsor.human.walking().solve() or running().solve()"
        walk_of(instance_of(self.result, MotionResult, "stride", "result", allowed=allowed).problem)
        one_of(self.side, SIDES, "stride", "side")

    # The walk

    @property
    def body(self) -> Robot:
        """The body, with its load, and gravity as on the slope."""
        return walk_of(self.result.problem)[0].body

    @property
    def walk(self) -> Walk:
        """The walk as the problem has it, with what is free."""
        return walk_of(self.result.problem)[1]

    @cached_property
    def step(self) -> Step:
        """The step; what was free is a number."""
        return solved_step(walk_of(self.result.problem)[1], self.result)

    @property
    def is_run(self) -> bool:
        """Whether it is a run, with flights, and not a walk."""
        return isinstance(self.step, RunningStep)

    @property
    def weight(self) -> float:
        """Weight of the body with its load (N)."""
        return self.body.mass * float(np.linalg.norm(self.body.gravity))

    @property
    def duration(self) -> float:
        """Duration of the stride (s)."""
        return 2 * self.step.duration

    @cached_property
    def s(self) -> Array:
        """Times (401,) as fractions of the stride, from 0 to 1."""
        return np.linspace(0.0, 1.0, COUNT)

    @cached_property
    def samples(self) -> Samples:
        """All quantities at the 401 instants; the own side is the first one, and is called "right" in names."""
        body, walk = self.body, walk_of(self.result.problem)[1]
        (length, rise), half = (self.step.length, self.step.rise), COUNT // 2
        if walk.steps == 1:
            found = sampled_at(self.result, np.linspace(0.0, 1.0, half + 1))
            return found.then(found.mirrored(body, length, rise))
        found = sampled(self.result, self.s)
        if self.side == "right":
            return found
        later, first = found.part(half, COUNT - 1), found.part(0, half)
        return later.mirrored(body, -length, -rise).then(first.mirrored(body, length, rise))

    @cached_property
    def _series(self) -> Series:
        at = self.samples
        return Series.of("stride", self.s * self.duration, at.q, at.v, at.a, at.torques)

    def at(self, t: ArrayLike) -> Instants:
        """Return q, v, a and tau (..., n) of the body at times t (...) since heel strike, between the 401 instants."""
        return SampledInstants(self._series, t)

    def _place(self, name: str, other: bool = False) -> int:
        names = self.body.coordinate_names
        for each in (f"left_{name}" if other else f"right_{name}", name):
            if each in names[TURNS]:
                return names.index(each)
        own = [each.removeprefix("right_") for each in names[TURNS] if not each.startswith("left_")]
        raise ModelError(f"no {name!r}", value=name, where="stride", allowed=", ".join(own))

    # Curves

    def angle(self, name: str, *, other: bool = False) -> Array:
        """Return an angle (401,) in degrees: of the own side, the pelvis ("tilt", "list", "yaw") or the spine.

        With ``other``, it is that of the other leg or arm, at the same instants.
        """
        return np.degrees(self.samples.q[:, self._place(name, other)])

    def moment(self, name: str, *, other: bool = False) -> Array:
        """Return the internal moment (401,) of a joint in N m/kg, with the ground's wrenches on the feet.

        The name is its positive direction: "hip_extension", "hip_abduction", "knee_extension", "ankle_plantarflexion".
        """
        sign = -1.0 if name in OPPOSITE else 1.0
        return sign * self.samples.torques[:, self._place(OPPOSITE.get(name, name), other)] / self.body.mass

    def power(self, name: str, *, other: bool = False) -> Array:
        """Return the power (401,) in W/kg of a coordinate, or of a joint with all its axes, such as "hip"."""
        names, own = self.body.coordinate_names, f"left_{name}" if other else f"right_{name}"
        places = [k for k in range(len(GLOBAL), len(names)) if joint_of(names[k]) in (name, own)]
        places = places or [self._place(OPPOSITE.get(name, name), other)]
        at = self.samples
        return np.asarray((at.torques[:, places] * at.v[:, places]).sum(axis=1) / self.body.mass)

    @property
    def forces(self) -> Array:
        """The ground's forces (401, 2, 3) on the own and the other foot, in body weights."""
        return self.samples.forces / self.weight

    @property
    def force(self) -> Array:
        """The ground's force (401, 3) on the own foot, in body weights: medial, up, forward."""
        return self.forces[:, 0]

    @cached_property
    def pressure(self) -> Array:
        """Centres of pressure (401, 2, 2) of the own and the other foot: (x, z) in m, NaN for a foot without load."""
        return pressure(self.samples, self.body)[..., [0, 2]]

    def reaction(self, joint: str) -> Array:
        """Return the force (401, 3) in the own "hip", "knee" or "ankle", on the link below, in body weights.

        Components are medial, up and forward. It is the sum of the forces of the bone above and of all muscles across
        the joint; the contact force of the bones alone is larger.
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
        """Work of the joints and the energy balance over the solved walk: one step, or two."""
        return energy(self.result)

    # Comparison with people

    def curve(self, reference: Reference) -> Array:
        """Return the curve (401,) of the quantity of a reference, in its unit."""
        if reference.kind == "force":
            return 100 * self.force[:, FORCES.index(reference.name)]
        if reference.kind == "power":
            return self.power(reference.name)
        return self.angle(reference.name) if reference.kind == "angle" else self.moment(reference.name)

    def as_reference(self, label: str = "") -> list[Reference]:
        """Return the curves as references for another walk; ``label`` is for legends."""
        text = label or f"predicted, {self.step.speed:.3g} m/s"
        known = (REFERENCES[name] for name in CURVES)
        return [each._replace(source=text, mean=self.curve(each), sd=None) for each in known]

    def references(self, references: Any = None) -> Given:
        """Return the references that ``likeness`` and ``plot`` compare with, and notes about them.

        The built-in references are walks on level ground, so that a run and a climb have none by default.
        """
        if references is None and (self.is_run or self.step.rise):
            return Given([], [])
        return given_references(references, self.side, StrideCurves)

    def likeness(self, references: Any = None) -> LikenessTable:
        """Return the likeness of the curves to those of people: a table of r2 and RMSE, by the name of the curve.

        ``references`` are names of built-in ones (of ``REFERENCES``, or "Schwartz 2008"), files of recorded people
        (.mot, .sto, .csv, .npz; a tuple of files is one recording), mappings {"knee_flexion": values (K,), (mean, sd),
        or strides (N, K)}, another ``Stride``, what ``recorded_walk`` or ``torsor.human.measured`` returns, or a list
        of these; None is all built-in ones. r2 is the squared correlation; RMSE is divided by the mean of the standard
        deviations for "RMSE in SD".

        Example:
            >>> stride = torsor.human.Stride(torsor.human.walking().solve())  # doctest: +SKIP
            >>> stride.likeness(["Schwartz 2008", ("angles.mot", "forces.mot")]).means  # doctest: +SKIP
        """
        found = self.references(references)
        return LikenessTable([(each, self.curve(each)) for each in found.references], found.notes)


# How far several walks are apart: least and most of each curve at every per cent of the stride, and of the step.

PERCENTS = 101  # instants of a spread: every per cent of the stride, both ends included
PARTS = ("best", "least", "most")
WORK, ENERGY = "positive_work", "metabolic_energy"
QUANTITIES = {
    "step_length": "m", "step_width": "m", "double_support": "% of the stride", WORK: "J/(kg m)", ENERGY: "J/(kg m)",
}  # fmt: skip


class CurveSpread(NamedTuple):
    """A curve of the ``best`` of several walks, with the ``least`` and the ``most`` of all of them: each (101,).

    They are at every per cent of the stride, in the ``unit`` of the ``kind`` (angle, moment, power, force).

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
        """The curve in words."""
        return in_words(self.curve, self.kind)

    @property
    def width(self) -> Array:
        """The distance (101,) from the least to the most."""
        return self.most - self.least

    @property
    def widest(self) -> float:
        """The largest distance from the least to the most."""
        return float(self.width.max())


class QuantitySpread(NamedTuple):
    """A number of the ``best`` of several walks, with the ``least`` and the ``most`` of all of them."""

    name: str
    best: float
    least: float
    most: float

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return QUANTITIES[self.name]


def curve_spreads(strides: Sequence[StrideCurves]) -> dict[str, CurveSpread]:
    """Return the spread of each curve that ``Stride.likeness`` knows, by name; the first stride is the best."""
    found, at = dict[str, CurveSpread](), np.linspace(0.0, 1.0, PERCENTS)
    for own in zip(*(stride.as_reference() for stride in strides), strict=True):
        values, name = np.array([each.at(at) for each in own]), own[0].curve
        found[name] = CurveSpread(name, own[0].kind, values[0], values.min(axis=0), values.max(axis=0))
    return found


def quantities(stride: StrideCurves) -> dict[str, float]:
    """Return length and width of the step (m), double support (% of a walking stride), and energies (J/(kg m)).

    The positive work of the joints is mechanical; the metabolic energy is that of the objective of free steps.
    """
    step = stride.step
    found = {
        "step_length": float(step.nominal.length),
        "step_width": float(step.nominal.width),
        **({} if stride.is_run else {"double_support": 100 * step.toe_off}),
        WORK: stride.energy.cost_of_transport,
    }
    energy = [part.value for part in stride.result.parts if part.title == "energy"]
    return found | ({ENERGY: energy[0]} if energy else {})


def quantity_spreads(strides: Sequence[StrideCurves]) -> dict[str, QuantitySpread]:
    """Return the spread of each number of ``quantities``, by name; the first stride is the best."""
    found = [quantities(stride) for stride in strides]
    every = {name: [each[name] for each in found] for name in found[0]}
    return {name: QuantitySpread(name, own[0], min(own), max(own)) for name, own in every.items()}
