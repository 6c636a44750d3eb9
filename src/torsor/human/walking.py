"""Walking: one step of a human, predicted by the least effort (document 001, chapter V).

One step is repeated with left and right exchanged. Torques are those with the ground's wrenches on the feet; its point
of pressure stays within what stands, written without divisions:

    n_z - x f_y >= 0 and the like, for the four sides of a box about the support

All terms with forces are one kind of node: which foot carries what is a function of the share of the step that has
passed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor import library
from torsor.human.balance import Wrench, felt, required
from torsor.human.schedule import Stance, Step
from torsor.model import Robot
from torsor.motion import ExpressionRows, FramePosition, MotionProblem, Node, Phase, Positions, Symmetric
from torsor.motion.ends import Ends
from torsor.motion.terms import Bound, Cost, Rows

__all__ = ["FROZEN", "RANGES", "walking"]

Array = NDArray[np.float64]

FROZEN = ("clavicle", "wrist", "neck", "head", "spine4", "spine3_axial")
LEGS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "ankle_inversion")
TOES = "toe_extension"

# What walking uses of the joints' ranges (degrees; m for tx and ty): narrower than what bodies can, as people walk.
RANGES: Mapping[str, tuple[float, float]] = {
    "tilt": (-3, 6),
    "list": (-4, 4),
    "yaw": (-8, 8),
    "hip_flexion": (-25, 45),
    "hip_adduction": (-12, 12),
    "hip_rotation": (-12, 12),
    "knee_flexion": (0, 75),
    "ankle_flexion": (-22, 20),
    "ankle_inversion": (-12, 12),
    "toe_extension": (-5, 45),
    "flexion": (-5, 8),
    "lateral": (-3, 3),
    "axial": (-10, 10),
    "shoulder_flexion": (-40, 40),
    "shoulder_adduction": (-15, 0),
    "shoulder_rotation": (-15, 15),
    "elbow_flexion": (5, 60),
    "pronation": (-10, 10),
}
# Where feet push (shares of the foot's length from heel to toes): the one in front at toe-off, the one behind.
PRESSED, FOREFOOT, TIP = 0.275, 0.853, 0.98
WIDE, LONG = 0.03, 0.0375  # half the box about the point of pressure while both feet stand (m)
SOLE, REAR, FRONT = 0.045, (0.005, 0.175), (0.185, 0.25)  # half its width on one foot, and its ends: flat, forefoot (m)
CHEAP = ("adduction", "rotation", "inversion", "toe_extension", "spine", "pronation")
BENT = 0.35  # of the elbow at ease (rad)


def _range(name: str) -> tuple[float, float]:
    """Return the range of a coordinate (degrees): that of the longest name which its own ends with."""
    return next((RANGES[key] for key in sorted(RANGES, key=len, reverse=True) if name.endswith(key)), (-180.0, 180.0))


class _Gait:
    """A moment of a step: the wrenches on the feet, and the torques of the joints with them."""

    def __init__(self, node: Node, step: Step):
        self.node, self.step, robot = node, step, node.robot
        self.names = robot.coordinate_names
        self.wrench = required(node.tau, node.q, robot.joints[0].placement[:3, 3])
        self.foot = float(np.diff([robot.pose(robot.neutral(), f"right_{end}")[2, 3] for end in ("heel", "toe")])[0])
        s, share = node.s, step.share(node.s)
        behind = step.length  # of the left heel, at the start
        way = FOREFOOT + (TIP - FOREFOOT) * ca.fmin(s / step.flat, 1)
        self.rear = ca.vertcat(step.width / 2, 0, way * self.foot - behind)
        self.front = ca.vertcat(-step.width / 2, 0, PRESSED * self.foot * ca.fmin(s / step.toe_off, 1))
        self.middle = share * self.front + (1 - share) * self.rear
        f, n = self.wrench
        front = Wrench(share * f, share * (n + ca.cross(self.front - self.middle, f)))
        self.feet = {"right": front, "left": Wrench(f - front.f, n - front.n)}

    @property
    def torques(self) -> ca.SX:
        """Forces of all coordinates with the ground's: those of the whole body are then zero."""
        node, found = self.node, [self.node.tau[k] for k in range(self.node.tau.numel())]
        for side, wrench in self.feet.items():
            on_toes = ca.SX(1) if side == "left" else ca.if_else(node.s > self.step.heel_off, 1, 0)
            for name in (*LEGS, TOES):
                joint = node.robot.joints[node.robot.joint_names.index(f"{side}_{name}")]
                pose = node.pose(joint.child)
                taken = felt(wrench, pose[:3, :3] @ ca.SX(joint.axis), pose[:3, 3])
                k = self.names.index(joint.name)
                found[k] = found[k] - (on_toes * taken if name == TOES else taken)
        return ca.vertcat(*found[6:])

    @property
    def box(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """The box (least and most x, least and most z) within which the point of pressure stays."""
        step, s = self.step, self.node.s
        both, flat = s <= step.toe_off, s <= step.heel_off
        x = ca.if_else(both, self.middle[0], -step.width / 2)
        wide = ca.if_else(both, WIDE, SOLE)
        ends = [
            ca.if_else(both, self.middle[2] + sign * LONG, ca.if_else(flat, REAR[k], FRONT[k]))
            for k, sign in enumerate((-1, 1))
        ]
        return x - wide, x + wide, ends[0], ends[1]


@lru_cache(maxsize=8)
def _gait(node: Node, step: Step) -> _Gait:
    return _Gait(node, step)


def _moving(node: Node) -> tuple[list[int], Array]:
    """Return which of the joints' torques belong to profiles, and their limits."""
    names, profiles = node.robot.coordinate_names[6:], node.subject.names
    kept = [k for k, name in enumerate(names) if name in profiles]
    return kept, node.robot.effort_limit[6:][kept]


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Cost):
    """The integral of squared torques over their limits, the ground's wrenches on the feet, and of cheap postures.

    ``posture`` weighs squares of angles that cost next to no torque (rad^2): without it, they wander.
    """

    step: Step
    posture: float = 0.02

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squares."""
        kept, limits = _moving(node)
        total = ca.sumsqr(_gait(node, self.step).torques[kept] / ca.SX(limits))
        for name in node.subject.names:
            if "elbow" in name or any(word in name for word in CHEAP):
                total += self.posture * (node.profile(name) - (BENT if "elbow" in name else 0.0)) ** 2
        return total


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(Rows):
    """Torques of the joints, with the ground's wrenches on the feet, within their limits."""

    step: Step

    def bound(self, node: Node) -> Bound:
        """Return torques over their limits."""
        kept, limits = _moving(node)
        ones, names = np.ones(len(kept)), node.robot.coordinate_names[6:]
        rows = _gait(node, self.step).torques[kept] / ca.SX(limits)
        return Bound(rows, -ones, ones, tuple(names[k] for k in kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance(Rows):
    """The point of pressure stays within the support, and the ground never pulls."""

    step: Step

    def bound(self, node: Node) -> Bound:
        """Return the four sides of the box, and the vertical force; all over the weight, lengths in dm."""
        gait = _gait(node, self.step)
        (f, n), (left, right, back, front) = gait.wrench, gait.box
        weight = node.robot.mass * float(np.linalg.norm(node.robot.gravity))
        sides = ca.vertcat(n[2] - left * f[1], right * f[1] - n[2], -n[0] - back * f[1], front * f[1] + n[0])
        rows = ca.vertcat(sides / (0.1 * weight), f[1] / weight)
        labels = ("right side", "left side", "back", "front", "vertical force")
        return Bound(rows, np.array([0.0, 0.0, 0.0, 0.0, 0.05]), np.full(5, np.inf), labels)


def _contacts(stance: Stance, step: Step, body: Robot, slack: float) -> list[Rows]:
    """Return where the points of a foot stand, each within ``slack`` (m)."""
    q, side = body.neutral(), stance.side
    x = -step.width / 2 if side == "right" else step.width / 2
    back = 0.0 if side == "right" else -step.length
    heel = body.pose(q, f"{side}_heel")[2, 3]
    found: list[Rows] = []
    for point, axes in stance.points:
        place = np.array([x, 0.0, body.pose(q, f"{side}_{point}")[2, 3] - heel + back])
        near = np.array([slack if axis in axes else np.inf for axis in "xyz"])
        found.append(
            FramePosition(
                frame=f"{side}_{point}",
                position=place,
                tolerance=near,
                during=(stance.first, stance.last),
                name=f"{side} {point} stands",
            )
        )
    return found


def _posture(step: Step) -> list[Rows]:
    """Return what keeps a step like that of people: clearances, an upright chest, arms that swing against the legs."""
    swing = (step.toe_off + 0.04, 1.0)
    lifted = [
        FramePosition(frame=f"left_{point}", lower=[-np.inf, 0.0, -np.inf], during=swing, name=f"left {point} clears")
        for point in ("heel", "ball", "toe")
    ]

    def chest(node: Node) -> ca.SX:
        up = node.pose("spine4")[:3, 1]
        return ca.vertcat(up[0], up[2])

    def apart(node: Node) -> ca.SX:
        ways = [node.position(f"{side}_wrist") - node.position(f"{side}_thigh") for side in ("right", "left")]
        return ca.vertcat(*(ca.sumsqr(way) for way in ways)) / 0.17**2

    def coupled(node: Node) -> ca.SX:
        rows = []
        for arm, leg in (("right", "left"), ("left", "right")):
            hand = (node.position(f"{arm}_wrist") - node.position(f"{arm}_upper_arm"))[2]
            foot = (node.position(f"{leg}_foot") - node.position(f"{leg}_thigh"))[2]
            rows.append(hand - 0.5 * foot)
        return ca.vertcat(*rows)

    least, most = math.radians(55), math.radians(65)
    bent = Positions(only=["left_knee_flexion"], lower=least, upper=most, at=step.knee, name="knee bent in swing")
    return [
        *lifted,
        ExpressionRows(function=chest, lower=[-0.02, -0.03], upper=[0.02, 0.10], name="upright chest"),
        ExpressionRows(function=apart, lower=1.0, name="hands clear of hips"),
        ExpressionRows(function=coupled, lower=-0.12, upper=0.12, name="arms swing against legs"),
        bent,
    ]


def walking(
    body: Robot | None = None, step: Step | None = None, points: int = 6, nodes: int = 26, slack: float = 0.003
) -> MotionProblem:
    """Return the problem of one step of walking with the least effort.

    ``body`` is a ``library.human``, ``step`` what it walks; profiles are cubic splines with that many control
    ``points``, looked at in ``nodes``; points of the feet stand within ``slack`` (m). Clavicles, wrists, neck, head and
    the upper spine are frozen, so that 38 of the 55 coordinates move.

    Example:
        >>> problem = walking()
        >>> problem.program.n, len(problem.subject.names)
        (228, 38)
    """
    body, step = library.human() if body is None else body, Step() if step is None else step
    frozen = {name: 0.0 for name in body.coordinate_names if any(word in name for word in FROZEN)}
    names = [name for name in body.coordinate_names if name not in frozen]
    partners = {name: _other(name) for name in names if _other(name) != name}
    odd = [name for name in names if name in ("tx", "yaw", "list") or name.endswith(("lateral", "axial"))]
    mirror = Symmetric(partners=partners, signs=dict.fromkeys(odd, -1.0), shifts={"tz": step.length}, name="symmetry")
    ranges = {name: _range(name) for name in names[3:]}
    lower, upper = ({name: math.radians(ends[k]) for name, ends in ranges.items()} for k in range(2))
    within = Positions(
        lower={"tx": -0.06, "ty": -0.07} | lower, upper={"tx": 0.06, "ty": -0.002} | upper, hull=True, name="ranges"
    )
    contacts = [each for stance in step.stances for each in _contacts(stance, step, body, slack)]
    constraints: list[Rows | Ends] = [
        mirror,
        within,
        Torques(step=step),
        Balance(step=step),
        *contacts,
        *_posture(step),
    ]
    phase = Phase(step.duration, points=points, nodes=nodes, quadrature="trapezoid")
    settings = {"solver": "condensed", "tolerance": 1e-5}
    return MotionProblem(body, phase, Effort(step=step), constraints, frozen=frozen, name="walk", settings=settings)


def _other(name: str) -> str:
    """Return the name of the same coordinate of the other side."""
    if name.startswith("right_"):
        return "left_" + name[6:]
    return "right_" + name[5:] if name.startswith("left_") else name
