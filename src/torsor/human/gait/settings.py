"""Settings of a walk: the checked arguments of ``walking``, and quantities derived from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, instance_of, interval, number, one_of, positive, table, whole_number
from torsor.base.errors import ModelError, gathered_warnings, shortened, warn
from torsor.human.body.coordinates import FLIP, GLOBAL, frozen_joints, mirror, other_side
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.postures import landmark
from torsor.human.body.strength import StrengthCurves
from torsor.human.contact.contact_forces import LEGS, SPEED
from torsor.human.contact.schedule import FreeWalk, check_stairs, check_step, warn_of_running
from torsor.human.contact.support import Rails
from torsor.human.terms.forces import Driven, JointReactions
from torsor.human.terms.habits import Habits, Posture
from torsor.human.terms.objectives import (
    ACTIVATION,
    Accelerations,
    HeadStability,
    Heat,
    Instability,
    MetabolicEnergy,
    MuscleEffort,
    PassiveTorques,
    RelativeStrength,
    pendulum_rate,
)
from torsor.human.terms.places import check_reach
from torsor.motion import Phase
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Cost
from torsor.robot.robot import Robot

SIDEWAYS = ("tx", "yaw", "list", "adduction", "rotation", "inversion", "lateral", "axial", "pronation")
WEIGHTS = {"energy": 1.0, "effort": 1.0, "accelerations": 1.0}  # default weights of objectives: no preference
CLEARANCE = 0.005  # m: minimum ground clearance of the swing foot without habits
MAX_POINTS = 100  # control points of a step: a search takes minutes with 30
MIN_POINTS = 8  # control points of a step, which has a knot at each contact change
NODE_INTERVALS = 7  # between two knots: with six, the feet of some walks exceed their tolerances between the nodes
LANDING_GAP = 0.0015  # in s: from the last node of a forefoot landing to its end
HARMONICS = 2  # of the clock: four variables, as many as events between heel strikes
SECOND_STEP_START = 1e-6  # s of a second step at its first node, which differs from the last node of the first step


@dataclass(frozen=True)
class Mesh:
    """Discretisation and tolerances of a walk.

    ``points`` is the number of control points per coordinate and step. ``nodes`` is the number of nodes per step, which
    divide all knot intervals equally, or their times s. By default there are seven node intervals in each knot
    interval, and a further node at the end of a forefoot landing. ``slack`` (m) is the position tolerance and ``slip``
    (m/s) the velocity tolerance of points in stance.
    """

    points: int = 10
    nodes: int | Sequence[float] | None = None
    slack: float = 0.002
    slip: float = 0.05

    def __post_init__(self) -> None:
        for name in ("slack", "slip"):
            positive(getattr(self, name), "walk", name)
        whole_number(self.points, "walk", "points", least=MIN_POINTS, most=MAX_POINTS)
        if self.nodes is not None and not isinstance(self.nodes, (list, tuple, np.ndarray)):
            whole_number(self.nodes, "walk", "nodes", least=2, most=10 * MAX_POINTS)

    def nodes_of(self, walk: FreeWalk) -> Array:
        """Return the times s of the nodes of one step."""
        if self.nodes is not None and np.ndim(self.nodes):
            return np.asarray(self.nodes, dtype=float)
        knots = np.array([0.0, *walk.step_knots(self.points), 1.0])
        intervals = len(knots) - 1
        count: Any = NODE_INTERVALS * intervals + 1 if self.nodes is None else self.nodes
        s: Array = np.interp(np.linspace(0, intervals, count), np.arange(intervals + 1), knots)
        if self.nodes is not None or walk.step.first_contact == "heel":
            return s
        # A forefoot landing ends with the pressure at the ball, where both soles meet.
        return np.union1d(s, [walk.step.flat - LANDING_GAP])

    def phase(self, walk: FreeWalk) -> Phase:
        """Return the motion phase of a walk; each step has nodes at its own start and end."""
        s, step = self.nodes_of(walk), walk.step
        nodes = [(k + np.maximum(s, SECOND_STEP_START if k else 0.0)) / walk.steps for k in range(walk.steps)]
        lengths, speeds = step.bounds("length"), step.bounds("speed")
        return Phase(
            (walk.steps * lengths[0] / speeds[1], walk.steps * lengths[1] / speeds[0]),
            knots=walk.knots(self.points).tolist(),
            nodes=np.concatenate(nodes),
            own=walk.splines(),
            quadrature="trapezoid",
            clock=walk.steps * HARMONICS if step.timing == "free" else 0,
        )


@dataclass(frozen=True, kw_only=True)
class WalkSettings:
    """The arguments of ``walking`` with defaults filled in; ``where`` is the prefix of error messages."""

    where: ClassVar[str] = "walk"

    body: Robot
    walk: FreeWalk
    mesh: Mesh
    load: Backpack | Box | None = None
    slope: float = 0.0
    frozen: Mapping[str, float] | None
    strength: Mapping[str, float] | None
    curves: StrengthCurves | None = None
    planar: bool
    objective: Mapping[str, float] | None
    given_habits: Habits | None = None
    friction: float
    ranges: Mapping[str, tuple[float, float]] | None = None

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives that may have weights."""
        return tuple(OBJECTIVES)

    def check(self) -> None:
        """Raise ModelError for invalid settings, with a suggested fix."""
        instance_of(self.habits, Habits, self.where, "habits")
        self._check_walk()
        instance_of(self.planar, bool, self.where, "planar")
        if self.curves is not None:
            instance_of(self.curves, StrengthCurves, self.where, "curves", allowed="a torsor.human.StrengthCurves")
        if self.load is not None and not isinstance(self.load, Backpack | Box):
            raise ModelError(argument="load", value=self.load, where=self.where, allowed="a Backpack or a Box")
        number(self.slope, self.where, "slope", above=-math.pi / 4, below=math.pi / 4)
        positive(self.friction, self.where, "friction")
        if self.body.gravity[0] or self.body.gravity[2] or not self.body.gravity[1] < 0:
            what, allowed = f"gravity is {shortened(self.body.gravity)}", "(0, -g, 0), because y points up"
            raise ModelError(what, where=self.where, allowed=allowed, fix="use `slope=...`")
        joints = self.body.coordinate_names[len(GLOBAL) :]
        factors = table(self.strength, self.where, "strength")
        indices_of(list(factors), joints, "walk: strength")
        for name, factor in factors.items():
            positive(factor, self.where, f"strength of {name}")
        for name, weight in self.weights.items():
            one_of(name, self.objectives, self.where, "objective")
            number(weight, self.where, f"weight of {name!r}", least=0.0)
        if not any(self.weights.values()):
            raise ModelError("no weight is above 0", where=self.where, allowed="a positive weight of an objective")
        held, _ = self.held, self.narrowed  # these raise for invalid angles and ranges
        if self.walk.steps == 1:
            strengths = dict(zip(joints, self.body.effort_limit[len(GLOBAL) :].tolist(), strict=True))
            tables = {"frozen": held, "strength": factors, "effort_limit": strengths, "ranges": self.narrowed}
            self._check_symmetry(tables)
        check_step(self.walk.step, self.body, self.where, leaps=self.where == "run")
        if self.where == "walk":
            warn_of_running(self.body, self.walk.step.bounds("speed")[0])

    def _check_walk(self) -> None:
        """Raise ModelError for combinations of settings that a walk does not support."""
        step = self.walk.step
        if step.rise and self.slope:
            what = f"rise is {step.rise:g} m and slope is {self.slope:g} rad"
            raise ModelError(what, where="walk", allowed="one of them")
        if step.rise:
            check_stairs(step, self.body)
        if self.walk.rails is not None:
            self._check_rails(self.walk.rails)
        used = {
            "`steps=2` on stairs or with rails": self.walk.steps == 2 and bool(step.rise or self.walk.rails),
            "the objective 'balance', a lateral margin, and `planar=True`": self.planar and self.weights.get("balance"),
            "a free speed and a given length": np.ptp(step.bounds("speed")) > 0 and step.length != "free",
        }
        for name, is_used in used.items():
            if is_used:
                raise ModelError(f"{name} cannot be used", where=self.where, fix="omit one of them")

    def _check_rails(self, rails: Rails) -> None:
        """Raise ModelError for rails that the hands cannot hold."""
        instance_of(rails, Rails, "walk", "rails", allowed="a torsor.human.Rails")
        if self.habits.arms is not None:
            what = "cannot be used with habits of the arms"
            raise ModelError(what, argument="rails", where="walk", fix="use `habits=None`, or habits with `arms=None`")
        if self.box is not None:
            raise ModelError("and a box are both given", argument="rails", where="walk", allowed="one of them")
        x, y, _ = landmark(self.body, "right_upper_arm").tolist()
        check_reach(self.body, rails, (x, y, rails.ahead), "walk")

    @cached_property
    def habits(self) -> Habits:
        """The given habits, by default none."""
        return (
            replace(Habits.none(), knee=None, clearance=CLEARANCE) if self.given_habits is None else self.given_habits
        )

    def _check_symmetry(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise ModelError if the sides differ, because the second step is the mirror image of the first."""
        links, joints = self.loaded.links, self.body.joints
        bodies = np.array([[*link.com, *link.inertia.ravel(), link.mass] for link in links])
        mirrored = np.concatenate([FLIP, np.outer(FLIP, FLIP).ravel(), [1.0]])
        for name, other in _unlike(self.loaded.link_names, bodies, mirrored):
            raise self._one_sided(f"link {name} is not the mirror image of {other}")
        places = np.array([joint.placement[:3, 3] for joint in joints])
        for name, other in _unlike(self.body.joint_names, places, FLIP):
            raise self._one_sided(f"the origin of joint {name} is not the mirror image of the origin of {other}")
        for what, values in tables.items():
            for name in values:
                if values.get(name) != values.get(other_side(name)):
                    raise self._one_sided(f"{what}: {name} differs from {other_side(name)}")

    def _one_sided(self, what: str) -> ModelError:
        return ModelError(what, where=self.where, fix="use `steps=2`, or the same value on the other side")

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weights of the objectives."""
        if self.objective is None:
            return dict(WEIGHTS)
        return table(self.objective, self.where, "objective")

    @cached_property
    def loaded(self) -> Robot:
        """The body with its load; base axes are aligned with the ground, so a slope rotates gravity."""
        loaded = self.body if self.load is None else self.load.on(self.body)
        size = -float(self.body.gravity[1])
        return loaded.with_gravity([0.0, -size * math.cos(self.slope), -size * math.sin(self.slope)])

    @property
    def box(self) -> Box | None:
        """The box in the hands."""
        return self.load if isinstance(self.load, Box) else None

    @cached_property
    def held(self) -> dict[str, float]:
        """The frozen coordinates with their positions."""
        names = self.body.coordinate_names if self.planar else ()
        sideways = {name: 0.0 for name in names if any(part in name for part in SIDEWAYS)}
        return sideways | frozen_joints(self.body, self.frozen, self.where)

    @cached_property
    def narrowed(self) -> dict[str, tuple[float, float]]:
        """The coordinates with given ranges (rad or m), whose names end with a key of ``ranges``."""
        narrowed_ranges, names = dict[str, tuple[float, float]](), self.body.coordinate_names
        for key, bounds in table(self.ranges, "walk", "ranges").items():
            low, high = interval(bounds, "walk", f"the range of {key}")
            matching = [name for name in names if name == key or name.endswith(f"_{key}")]
            if not matching:
                what, allowed = f"has the unknown coordinate {key!r}", ", ".join(names)
                raise ModelError(what, argument="ranges", value=key, where="walk", allowed=allowed)
            with gathered_warnings():  # one for both sides
                narrowed_ranges |= {name: self._within_joint(name, low, high) for name in matching}
        return narrowed_ranges

    def _within_joint(self, name: str, low: float, high: float) -> tuple[float, float]:
        """Return the part of a given range that is within the range of its joint; warn if this is not all of it."""
        k = self.body.coordinate_names.index(name)
        ends = max(low, float(self.body.lower[k])), min(high, float(self.body.upper[k]))
        span = f"{self.body.lower[k]:.4g} to {self.body.upper[k]:.4g}"
        if name in self.held or ends[0] > ends[1]:
            allowed = "it is frozen" if name in self.held else f"its range is {span}"
            fix = "omit it, or choose other numbers (rad; m)"
            raise ModelError(f"the range of {name} is {low:g} to {high:g}", where="walk", allowed=allowed, fix=fix)
        if ends != (low, high):
            what = f"the range of {name!r} is {low:g} to {high:g}; only the part within the range of the joint is used"
            warn(what, where="walk", allowed=f"{span} (rad; m)")
        return ends

    def bounds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return lower and upper bounds of the moving coordinates: given ranges, or the ranges of habits and joints."""
        lower, upper = self.habits.bounds(self.loaded, list(self.moving), self.slope, self.box is not None)
        for name, (low, high) in self.narrowed.items():
            lower[name], upper[name] = low, high
        return lower, upper

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The moving coordinates."""
        return tuple(name for name in self.body.coordinate_names if name not in self.held)

    @cached_property
    def ground(self) -> dict[str, Any]:
        """Arguments of all terms with contact forces."""
        strength = dict(self.strength or {})
        return {"body": self.loaded, "support": self.walk, "friction": self.friction, "strength": strength}


def _unlike(names: tuple[str, ...], values: Array, signs: Array) -> list[tuple[str, str]]:
    """Return the pairs of parts whose values (parts, n) are not mirror images of each other."""
    order, _ = mirror(names)
    is_like = np.isclose(values[order] * signs, values, rtol=1e-6, atol=1e-9).all(axis=1)
    return [(names[k], names[order[k]]) for k in np.flatnonzero(~is_like).tolist()]


# The walking objectives by name, and the terms of their weighted sum.
#
# One rule makes them comparable before any weight is chosen: each is made dimensionless by quantities of the body alone
# (torques by strengths, forces by the weight, energies by the mass, lengths by the sole width), and is taken per metre
# walked. Equal weights of 1 express no preference.

OBJECTIVES: Mapping[str, Any] = {
    "energy": MetabolicEnergy, "effort": MuscleEffort, "accelerations": Accelerations, "heat": Heat,
    "strength": RelativeStrength, "balance": Instability, "joint loads": JointReactions,
    "head stability": HeadStability, "passive torques": PassiveTorques, "impact": Rates,
}  # fmt: skip
FOOT_FORCES = "foot forces"  # title of the rows whose rates are the impact
ACTIVE = (*LEGS, "spine1_flexion", "spine1_lateral", "spine1_axial")  # joints whose excitation counts


def weighted_terms(settings: WalkSettings) -> list[Cost]:
    """Return the objective terms in table order; additional effort terms come last."""
    costs, weights = list[Cost](), settings.weights
    for name, kind in OBJECTIVES.items():
        if weights.get(name) and kind is Rates:  # the time is that of the standing body as a pendulum
            weight = weights[name] / pendulum_rate(settings.loaded) ** 2
            costs.append(Rates(of=FOOT_FORCES, per=SPEED, weight=weight, name=name))
        elif weights.get(name):
            more: dict[str, Any] = {"moving": settings.moving} if issubclass(kind, Driven) else {}
            if kind is RelativeStrength:
                more["curves"] = settings.curves or StrengthCurves()
            costs.append(kind(weight=weights[name], **settings.ground, **more, name=name))
    effort, posture = weights.get("effort", 0.0), settings.habits.posture
    if effort:
        # With a = torque / strength and first-order activation dynamics, the excitation is u = a + t_a da/dt. Over a
        # periodic motion the mean of u^2 is that of a^2 plus t_a^2 times that of (da/dt)^2, the two parts of the
        # effort.
        weight = effort * ACTIVATION**2
        costs.append(Rates(of="torques", only=ACTIVE, per=SPEED, weight=weight, name="effort of activation"))
    if effort and posture:
        body, moving = settings.loaded, settings.moving
        costs.append(Posture(weight=effort, body=body, moving=moving, scale=posture, name="posture"))
    return costs
