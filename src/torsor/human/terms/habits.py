"""Walking habits that mechanics and strength do not determine: joint ranges, upright chest and arm swing.

With only anatomical joint ranges, minimum-effort walks differ from human walks, because elbows and hips move too far
sideways.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import interval, number, table
from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Box
from torsor.human.terms.forces import metres
from torsor.human.terms.places import Held
from torsor.human.vector_layout import VectorLayout
from torsor.motion import ExpressionConstraint, Node
from torsor.motion.terms.term import Constraint, Cost, Rows
from torsor.robot.robot import Robot

Entry = TypeVar("Entry")

_DATA = data_of(__name__)
# Joint ranges in walking, and of arms that hold a box (degrees; m for tx and ty).
RANGES, HOLDING = ({name: (low, high) for name, (low, high) in _DATA[table].items()} for table in ("ranges", "holding"))


class Relaxed(NamedTuple):
    """The ``angle`` (degrees) of a coordinate in the relaxed posture, and the ``weight`` of the squared deviation.

    The deviation is in rad. ``drag`` is the weight of the squared rate (rad/s), which represents tissue resistance to
    motion. Relaxed elbows follow shoulder flexion, and axial rotations of the spine follow pelvis yaw: ``follows``
    times the other angle is added.
    """

    angle: float
    weight: float
    drag: float = 0.0
    follows: float = 0.0


RELAXED: Mapping[str, Relaxed] = {name: Relaxed(*row) for name, row in _DATA["relaxed"].items()}
METRES = ("tx", "ty", "tz")
MIN_HAND_DISTANCE = 0.17  # smallest distance between wrists and hips (m)
SLOPE_COORDINATES = ("tilt", "hip_flexion", "ankle_flexion")  # coordinates whose ranges widen on a slope


def _of_ending(name: str, table: Mapping[str, Entry]) -> Entry | None:
    """Return the entry of a coordinate, whose key is the longest suffix of its name."""
    keys = [key for key in table if name.endswith(key)]
    return table[max(keys, key=len)] if keys else None


def relaxed(name: str) -> Relaxed:
    """Return the entry of ``RELAXED`` for a coordinate."""
    return _of_ending(name, RELAXED) or Relaxed(0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Posture(Cost):
    """The integral of squared deviations from the relaxed posture (rad^2), weighted by ``RELAXED`` and ``scale``.

    In walks, it is per metre.

    Without this term, angles that need almost no torque would be undetermined. Relaxed elbows flex as the arms swing
    forward. ``moving`` contains the coordinates that are not frozen.
    """

    body: Robot
    moving: tuple[str, ...]
    scale: float = 0.03
    together = "forces"

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the relaxed angles and weights (K, 4 N) of the moving coordinates."""
        entries = [relaxed(name) for name in self.body.coordinate_names if name in self.moving]
        angles, weights, drags, follows = np.array(entries).T
        parts = {"angle": np.radians(angles), "weight": self.scale * weights, "drag": self.scale * drags}
        layout = VectorLayout(dict.fromkeys(Relaxed._fields, len(entries)))
        return {"posture": layout.pack(len(s), **parts, follows=follows)}

    def integrand(self, node: Node) -> ca.SX:
        """Return the weighted sum of squared deviations from the relaxed posture."""
        names, total = node.model.names[: node.model.names.moving], ca.SX(0)
        layout = VectorLayout(dict.fromkeys(Relaxed._fields, len(names)))
        entries = layout.unpack(node.data("posture", layout.size))
        for k, name in enumerate(names):
            rest, leader = entries["angle"][k], "yaw" if name.endswith("axial") else name.replace("elbow", "shoulder")
            if leader != name and leader in names:
                rest = rest + entries["follows"][k] * node.profile(leader)
            deviation, rate = node.profile(name) - rest, node.profile(name, 1)
            total += entries["weight"][k] * deviation**2 + entries["drag"][k] * rate**2
        return total / metres(node)


@dataclass(frozen=True)
class Habits:
    """Constraints and weights that keep a predicted walk human-like; None, or a ``posture`` of 0, disables a habit.

    ``ranges`` contains coordinate ranges (degrees or m) of all coordinates whose names end with a key. The chest stays
    within ``sway`` laterally and within ``lean`` forward (sines of angles from the vertical). The pelvis is at least
    ``drop`` (degrees) lower on the swing side. Arms swing opposite to the legs: the forward distance of the wrist from
    the shoulder is within ``arms`` (m) of half the forward distance of the opposite ankle from its hip. ``posture`` is
    the weight of squared deviations from the relaxed posture. In swing, the foot is at least ``clearance`` (m) above
    the ground, and at the time ``Step.knee``, knee flexion is within ``knee`` (degrees).

    Example:
        >>> Habits.none().ranges is None, Habits().range("left_knee_flexion")
        (True, (0.0, 75.0))
    """

    ranges: Mapping[str, tuple[float, float]] | None = field(default_factory=lambda: dict(RANGES))
    sway: float | None = 0.02
    lean: tuple[float, float] | None = (-0.03, 0.10)
    drop: float | None = 2.0
    arms: float | None = 0.12
    posture: float = 0.03
    clearance: float = 0.005
    knee: tuple[float, float] | None = (55.0, 65.0)

    def __post_init__(self) -> None:
        for name in ("posture", "clearance"):
            number(getattr(self, name), "habits", name, least=0.0)
        for name in ("sway", "drop", "arms"):
            if getattr(self, name) is not None:
                number(getattr(self, name), "habits", name, least=-math.inf if name == "drop" else 0.0)
        for name in ("lean", "knee"):
            if getattr(self, name) is not None:
                interval(getattr(self, name), "habits", name)
        for name, bounds in table(self.ranges, "habits", "ranges").items():
            interval(bounds, "habits", f"the range of {name}")

    @classmethod
    def none(cls) -> "Habits":
        """Return habits with only the knee flexion in swing of Barman 2020, and the ranges of the joints."""
        return cls(None, None, None, None, None, 0.0, 0.0)

    def range(self, name: str) -> tuple[float, float] | None:
        """Return the range (degrees or m) of a coordinate, whose key is the longest suffix of its name."""
        bounds = _of_ending(name, self.ranges or {})
        return None if bounds is None else (float(bounds[0]), float(bounds[1]))

    def bounds(
        self, body: Robot, names: list[str], slope: float, holding: bool
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return lower and upper bounds of coordinates (rad or m).

        A ``slope`` (rad) widens the ranges of tilt, hips and ankles. With ``holding``, the arms hold a box.
        """
        for key in self.ranges or {}:
            if not any(name.endswith(key) for name in body.coordinate_names):
                allowed = "coordinate names, or their suffixes"
                what = f"has the unknown name {key!r}"
                raise ModelError(what, argument="ranges", value=key, where="habits", allowed=allowed)
        lower, upper = dict[str, float](), dict[str, float]()
        ranges_of_joints = zip(body.lower.tolist(), body.upper.tolist(), strict=True)
        joint_ranges = dict(zip(body.coordinate_names, ranges_of_joints, strict=True))
        for name in names:
            (low, high), limits = joint_ranges[name], self.range(name)
            if holding and self.ranges is not None:
                limits = _of_ending(name, HOLDING) or limits
            if limits is not None:
                ends = limits if name in METRES else (math.radians(limits[0]), math.radians(limits[1]))
                more = slope if name.endswith(SLOPE_COORDINATES) else 0.0
                # Bounds never exceed the range of the joint.
                low, high = max(low, ends[0] + min(more, 0.0)), min(high, ends[1] + max(more, 0.0))
            lower[name], upper[name] = low, high
        return lower, upper

    def constraints(self, body: Robot, box: Box | None, clear: bool = True) -> list[Constraint]:
        """Return the constraints on the chest, and on arms that swing or hold a box.

        With ``clear``, the hands stay clear of the hips.
        """
        rules: list[Constraint] = []
        if self.sway is not None or self.lean is not None:
            lean = (-np.inf, np.inf) if self.lean is None else self.lean
            sway = np.inf if self.sway is None else self.sway
            rules.append(Upright(body=body, sway=sway, lean=lean, name="upright chest"))
        if box is not None:
            return [*rules, Holds(body=body, box=box, name="hands hold the box")]
        if clear:
            name = "hands clear of hips"
            rules.append(ExpressionConstraint(function=hand_clearance, lower=1.0, labels=SIDES, name=name))
        if self.arms is not None:
            name, most = "arms swing against legs", self.arms
            rules.append(ExpressionConstraint(function=_coupling, lower=-most, upper=most, labels=SIDES, name=name))
        return rules


def hand_clearance(node: Node) -> ca.SX:
    """Return the squared distances between wrists and hips, divided by the smallest allowed value."""
    ways = [node.position(f"{side}_hand") - node.position(f"{side}_thigh") for side in SIDES]
    return ca.vertcat(*(ca.sumsqr(way) for way in ways)) / MIN_HAND_DISTANCE**2


def _coupling(node: Node) -> ca.SX:
    """Return the forward distance (m) of each wrist from its shoulder, minus half the opposite ankle-hip distance."""
    rows = []
    for arm, leg in (SIDES, SIDES[::-1]):
        hand = (node.position(f"{arm}_hand") - node.position(f"{arm}_upper_arm"))[2]
        foot = (node.position(f"{leg}_foot") - node.position(f"{leg}_thigh"))[2]
        rows.append(hand - 0.5 * foot)
    return ca.vertcat(*rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Upright(Constraint):
    """Bounds on the sines of the lateral and forward angles of the upper trunk from the vertical."""

    body: Robot
    sway: float
    lean: tuple[float, float]

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the horizontal forward direction (K, 3)."""
        up = -self.body.gravity / np.linalg.norm(self.body.gravity)
        return {self.title: np.tile(np.cross([1.0, 0.0, 0.0], up), (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the sines of the lateral and forward angles."""
        up = node.pose("spine4")[:3, 1]
        rows = ca.vertcat(up[0], ca.dot(node.data(self.title, 3), up))
        ends = np.array([[-self.sway, self.sway], self.lean], dtype=float)
        kept = np.flatnonzero(np.isfinite(ends).any(axis=1))
        labels = ("to the left", "forward")
        return Rows(rows[kept.tolist()], ends[kept, 0], ends[kept, 1], tuple(labels[k] for k in kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class Holds(Held):
    """A constraint that both hands hold a box in front of the trunk.

    The hands are one box width apart, and at the same height to within ``level`` (m).
    """

    level: float = 0.01

    def rows(self, node: Node) -> Rows:
        """Return the vector from the right to the left hand, and their midpoint, in upper-trunk axes."""
        trunk, (right, left) = node.pose("spine4"), self.hands(node)
        turned = trunk[:3, :3].T
        rows = ca.vertcat(turned @ (left - right), turned @ ((right + left) / 2 - trunk[:3, 3]))
        box, near = self.box, self.level
        lower = [box.width - near, -near, -near, -0.05, box.low, box.near]
        upper = [box.width + near, near, near, 0.05, box.high, box.far]
        labels = ("width", "level", "skew", "middle aside", "height", "distance")
        return Rows(rows, np.array(lower), np.array(upper), labels)
