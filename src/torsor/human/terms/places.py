"""Position constraints on feet in stance and on stairs, hands, hips and a box."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Box
from torsor.human.body.postures import landmark
from torsor.human.contact.contact_forces import (
    FORWARD_OFFSET,
    FRACTION,
    LATERAL_OFFSET,
    PROFILES,
    PUSH,
    RAILS,
    OneFootContact,
    SharedContact,
    contact_as,
    heel_place,
)
from torsor.human.contact.schedule import Edge, Step, Walk, edges
from torsor.human.contact.support import FORE, WHOLE, Foot, Rails, Stance, Support
from torsor.human.terms.forces import MIN_VERTICAL_FORCE, MOMENT_ARM, Grounded, at_least
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node, Number, Phase
from torsor.motion.terms.term import TOUCHING, Constraint, Rows
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.phase import SLOWEST
from torsor.robot.robot import Robot

# Running constraints: the centre of pressure is within the sole in stance, and no force remains in flight.

WRENCH = ("force along x", "force along y", "force along z", "moment about x", "moment about y", "moment about z")


@dataclass(frozen=True, eq=False, kw_only=True)
class OneFootBalance(Grounded, Constraint):
    """Bounds that keep the centre of pressure in the sole, the force in its friction cone, and time increasing.

    In flight and at its ends, there is no force, and all rows are 1. ``variables`` are speed and step width.
    ``lateral=False`` omits the lateral edges of the sole.
    """

    lateral: bool = True
    variables: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Mapping[str, Number]:
        """Return speed and step width as variables."""
        return self.variables

    def rows(self, node: Node) -> Rows:
        """Return edge distances (dm) times the vertical force, this force, the friction cone, and the rate of time.

        Forces are divided by body weight, and squared for the cone. The rate of time is included if the phase has a
        clock.
        """
        contact = contact_as(OneFootContact, node)
        rows = {
            name: row / (MOMENT_ARM * contact.weight)
            for name, row in contact.rows.items()
            if self.lateral or "sole" not in name
        }
        x, y, z = ca.vertsplit(contact.force / contact.weight)
        rows |= {"vertical force": y, "friction, right": (contact.friction * y) ** 2 - x**2 - z**2}
        masked = [1 + contact.presses * (row - 1) for row in rows.values()]
        lower, labels = [0.0] * len(rows), tuple(rows)
        if node.clock.harmonics:
            masked, lower, labels = [*masked, node.clock_rate], [*lower, SLOWEST], (*labels, "rate of time")
        return Rows(ca.vertcat(*masked), np.array(lower), np.full(len(lower), np.inf), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Flight(Grounded, Constraint):
    """A constraint that the forces of the six global coordinates are zero, as in free fall."""

    def rows(self, node: Node) -> Rows:
        """Return the force divided by body weight, and its moment about the pelvis divided by body weight times 1 m."""
        contact = contact_as(OneFootContact, node)
        about = contact.moment - ca.cross(node.position("pelvis"), contact.force)
        return Rows(ca.vertcat(contact.force, about) / contact.weight, np.zeros(6), np.zeros(6), WRENCH)


AXES = "xyz"
POINTS = ("heel", "ball", "toe")
PARTS: dict[tuple[tuple[str, str], ...], str] = {WHOLE: "foot", FORE: "forefoot"}  # parts of a foot by their points
STANCE = VectorLayout(local=3, place=3, left_at=2)  # data of a point: positions on the link and on the ground
CLEARANCE = VectorLayout(local=3, height=1)


def _local(body: Robot, frame: str) -> tuple[str, Array]:
    """Return the link of a landmark, and the position (3,) (m) of the landmark in link axes."""
    place = body.place(frame)
    return body.link_names[place.link], place.pose[:3, 3]


@dataclass(frozen=True, eq=False, kw_only=True)
class Stands(Constraint):
    """A constraint that keeps points of a foot in place on the ground, within ``slack`` (m) and ``slip`` (m/s).

    Velocities are bounded along all axes along which a point is fixed; ``slip=None`` leaves them free. Positions are
    bounded only along those of these axes that are in ``axes``; "y" bounds only heights. A bound of 0 results in an
    equation.
    """

    body: Robot
    stance: Stance
    slack: float = 0.003
    slip: float | None = None
    axes: str = AXES
    is_relative: bool = False  # whether positions are relative to a heel whose position is a variable

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return (K, 8) for each point: position on its link, on the ground under a flat foot, and ``left_at``."""
        side, (x, z), data_by_point = self.stance.side, self.stance.heel, dict[str, Array]()
        for point, _ in self.stance.points:
            local = _local(self.body, f"{side}_{point}")[1]
            place = landmark(self.body, f"{side}_{point}") - landmark(self.body, f"{side}_heel")
            place = place + np.array([x, self.stance.height, z])
            stance = STANCE.pack(len(s), local=local, place=place, left_at=self.stance.left_at)
            data_by_point[f"{self.title}: {point}"] = stance
        return data_by_point

    def rows(self, node: Node) -> Rows:
        """Return the distances of the points from their prescribed positions, followed by their velocities."""
        rows, velocities, labels, speeds = list[ca.SX](), list[ca.SX](), list[str](), list[str]()
        for point, fixed in self.stance.points:
            link, _ = _local(self.body, f"{self.stance.side}_{point}")
            values, pose = STANCE.unpack(node.data(f"{self.title}: {point}", STANCE.size)), node.pose(link)
            held, placed = ([AXES.index(axis) for axis in fixed if axis in allowed] for allowed in (AXES, self.axes))
            place = values["place"]
            if self.is_relative:
                place = place + heel_place(node, self.stance.side, values["left_at"])
            rows.append((pose[:3, :3] @ values["local"] + pose[:3, 3] - place)[placed])
            labels += [f"{AXES[k]} of {self.stance.side} {point}" for k in placed]
            if self.slip is not None:
                V = node.velocity(link)
                velocities.append((pose[:3, :3] @ (V[3:] + ca.cross(V[:3], values["local"])))[held])
                speeds += [f"speed along {AXES[k]} of {self.stance.side} {point}" for k in held]
        bound = np.append(np.full(len(labels), self.slack), np.full(len(speeds), self.slip or 0.0))
        return Rows(ca.vertcat(*rows, *velocities), -bound, bound, (*labels, *speeds))


@dataclass(frozen=True, eq=False, kw_only=True)
class Clears(Constraint):
    """A constraint that keeps a ``point`` of the foot on a ``side`` at least ``height`` (m) above the ground."""

    body: Robot
    side: str
    point: str
    height: float = 0.0

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the point on its link and the height, (K, 4)."""
        local = _local(self.body, f"{self.side}_{self.point}")[1]
        return {self.title: CLEARANCE.pack(len(s), local=local, height=self.height)}

    def rows(self, node: Node) -> Rows:
        """Return the distance (dm) of the point above ``height``."""
        values = CLEARANCE.unpack(node.data(self.title, CLEARANCE.size))
        pose = node.pose(_local(self.body, f"{self.side}_{self.point}")[0])
        row = 10 * (pose[1, :3] @ values["local"] + pose[1, 3] - values["height"])
        return at_least(0.0, {f"height of {self.side} {self.point}": row})


def contacts(
    body: Robot,
    support: Support,
    slack: float,
    slip: float | None,
    axes: str = AXES,
    *,
    placed: str = AXES,
    below: float | None = None,
    prefix: str = "",
    is_relative: bool = False,
    floor: Mapping[str, float] | None = None,
) -> list[Constraint]:
    """Return the constraints of all stances, and those that keep free heels, balls and toes above the ground.

    Points are fixed only along ``axes``, and their positions are bounded along the axes in ``placed``. Free points are
    at most ``below`` (m) below the ground, by default ``slack``. ``floor`` is {side: ground height (m)}, 0 by default.
    Names begin with ``prefix``.
    """
    constraints, counts = list[Constraint](), Counter[str]()
    bands: dict[str, Any] = {"slack": slack, "slip": slip, "axes": placed, "is_relative": is_relative}
    for stance in support.stances:
        name = f"{prefix}{stance.side} {PARTS.get(stance.points, stance.points[0][0])} stands"
        counts[name] += 1
        name += f", {counts[name]}" if counts[name] > 1 else ""
        held = [(point, "".join(axis for axis in fixed if axis in axes)) for point, fixed in stance.points]
        limited = stance._replace(points=tuple((point, fixed) for point, fixed in held if fixed))
        constraints.append(Stands(body=body, stance=limited, during=(stance.first, stance.last), name=name, **bands))
    for side in SIDES:
        height = (-slack if below is None else -below) + (floor or {}).get(side, 0.0)
        for point in POINTS:
            for k, during in enumerate(support.free(side, point)):
                name = f"{prefix}{side} {point} above the ground" + (f", {k + 1}" if k else "")
                constraints.append(Clears(body=body, side=side, point=point, height=height, during=during, name=name))
    return constraints


SOLE_SEGMENTS = (("heel", "ball"), ("ball", "toe"))  # segments of the sole in side view
EDGE_ROUNDING = 0.01  # m; rounding of the smooth maximum, which exceeds two equal distances by half of this
EDGE_CHECKS_PER_NODE = 3  # number of instants per node at which edges are checked
EDGE = VectorLayout({f"{point} local": 3 for point in POINTS} | {"edge": 2, "clear": 1, "round": 1})


@dataclass(frozen=True, eq=False, kw_only=True)
class ClearsEdge(Constraint):
    """A constraint that keeps the foot of one ``side`` at least ``clear`` (m) away from a tread and its ``edge``.

    Distances are those in side view. Each point of the sole is clear of the riser or above the tread: the smooth
    maximum of the two distances is at least ``clear``. Exactly at an edge, the clearance is smaller by
    ``EDGE_ROUNDING`` / 2, so a foot never penetrates an edge if ``clear`` is at least ``EDGE_ROUNDING`` / 2, as is the
    default of ``Habits.clearance``. An edge between the ends of a segment of the sole must be below the segment.
    """

    body: Robot
    side: str
    edge: Edge
    clear: float

    def moments(self, phase: Phase) -> Array:
        """Return three times s per node, because toes move by about 15 mm past an edge between two nodes."""
        nodes = super().moments(phase)
        between = [nodes[:-1] + k / EDGE_CHECKS_PER_NODE * np.diff(nodes) for k in range(1, EDGE_CHECKS_PER_NODE)]
        return np.unique(np.concatenate([nodes, *between]))

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the positions of the points on their links, the edge (z, y) and the distance, (K, 13)."""
        local = {f"{point} local": _local(self.body, f"{self.side}_{point}")[1] for point in POINTS}
        edge = np.array([self.edge.z, self.edge.y])
        return {self.title: EDGE.pack(len(s), **local, edge=edge, clear=self.clear, round=EDGE_ROUNDING)}

    def rows(self, node: Node) -> Rows:
        """Return the distances (dm) above the allowed minimum of the sole points, followed by those of the segments."""
        values = EDGE.unpack(node.data(self.title, EDGE.size))
        rounding, at, rows = values["round"], dict[str, ca.SX](), dict[str, ca.SX]()
        for point in POINTS:
            pose = node.pose(_local(self.body, f"{self.side}_{point}")[0])
            whole = pose[:3, :3] @ values[f"{point} local"] + pose[:3, 3]
            at[point] = ca.vertcat(whole[2], whole[1]) - values["edge"]
        for point, place in at.items():
            rows[f"{self.side} {point}"] = _larger(-self.edge.ahead * place[0], place[1], rounding)
        for back, front in SOLE_SEGMENTS:
            a, b = at[back], at[front]
            way = b - a
            below = (a[1] * way[0] - a[0] * way[1]) / ca.norm_2(way)
            row = _larger(_larger(a[0], -b[0], rounding), below, rounding)
            rows[f"sole of {self.side} {back} to {front}"] = row
        return at_least(0.0, {name: 10 * (row - values["clear"]) for name, row in rows.items()})


def _larger(a: ca.SX, b: ca.SX, rounding: ca.SX) -> ca.SX:
    """Return the smooth maximum of two numbers, which exceeds equal numbers by half of ``rounding``."""
    return (a + b + ca.sqrt((a - b) ** 2 + rounding**2)) / 2


def stair_clearance(body: Robot, step: Step, side: str, clear: float, slack: float, swing: float) -> list[Constraint]:
    """Return the constraints for a foot that swings over the edges of stairs.

    They apply from ``swing`` (a fraction of the step) after toe-off until the same time before landing. Afterwards, the
    foot is above its tread, or at most ``slack`` (m) below it.
    """
    foot: dict[str, Any] = {"body": body, "side": side}
    passed = foot | {"clear": clear, "during": (step.toe_off + swing, 1.0 - swing)}
    landed = foot | {"height": step.rise - slack, "during": (1.0 - swing, 1.0)}
    return [
        *(
            ClearsEdge(**passed, edge=edge, name=f"{side} foot, edge {k}")
            for k, edge in enumerate(edges(step, Foot.of(body)), 1)
        ),
        *(Clears(**landed, point=point, name=f"{side} {point} over its tread") for point in POINTS),
    ]


# Constraints on feet that share the ground force: pressure within the soles, friction, and bounds on the sharing.

# Bounds on the deviations from nominal sharing (m, m, 1/m), which are so wide that they are never active.
DEVIATIONS = {LATERAL_OFFSET: (-0.1, 0.1), FORWARD_OFFSET: (-0.2, 0.2), PUSH: (-2.0, 2.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedBalance(Grounded, Constraint):
    """Bounds that keep centres of pressure in their soles, forces in their friction cones, and time increasing.

    ``variables`` are speed and step width. ``lateral=False`` omits the lateral edges of the soles.
    """

    lateral: bool = True
    variables: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Mapping[str, Number]:
        """Return speed and step width as variables."""
        return self.variables

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the profiles of the force sharing; the fraction is fixed at both ends."""
        return {FRACTION: (0.0, 0.0)} | dict.fromkeys(PROFILES[1:], (None, None))

    def rows(self, node: Node) -> Rows:
        """Return the margins of the centres of pressure, the vertical force, the friction cones, and the rate of time.

        The margins are distances from the sole edges times the vertical force, divided by body weight and
        ``MOMENT_ARM``. Forces are divided by body weight, and squared for friction cones. The rate of time is included
        if the phase has a clock.
        """
        contact = contact_as(SharedContact, node)
        moment = MOMENT_ARM * contact.weight
        rows = {name: row / moment for name, row in contact.rows.items() if self.lateral or "sole" not in name}
        rows["vertical force"] = contact.force[1] / contact.weight
        for side in SIDES:
            x, y, z = ca.vertsplit(contact.directions[side] / contact.weight)
            rows[f"friction, {side}"] = (contact.friction * y) ** 2 - x**2 - z**2
        lower = dict.fromkeys(rows, 0.0) | {"vertical force": MIN_VERTICAL_FORCE}
        if node.clock.harmonics:
            rows["rate of time"], lower["rate of time"] = node.clock_rate, SLOWEST
        bounds = np.array(list(lower.values()))
        return Rows(ca.vertcat(*rows.values()), bounds, np.full(len(rows), np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class BothPress(Grounded, Constraint):
    """A constraint that both feet press on the ground in double support, with a left fraction between 0 and 1."""

    def moments(self, phase: Phase) -> Array:
        """Return the nodes in double support, except its ends, where the fraction is fixed."""
        assert isinstance(self.support, Walk)
        within, _ = self.support.within(phase.nodes)
        inside = (within > TOUCHING) & (within < self.support.step.toe_off - TOUCHING)
        return np.asarray(phase.nodes[inside])

    def rows(self, node: Node) -> Rows:
        """Return the fraction of the left foot, with bounds 0 and 1."""
        return Rows(contact_as(SharedContact, node).fraction, np.zeros(1), np.ones(1), (FRACTION,))


@dataclass(frozen=True, eq=False, kw_only=True)
class SharingBounds(Constraint):
    """Bounds on the control points of the force sharing, by profile name."""

    ways: Mapping[str, tuple[float, float]]

    @property
    def has_rows(self) -> bool:
        """Whether the term is evaluated at nodes."""
        return False

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return the bounds by profile index."""
        return {model.names.index(name): ends for name, ends in self.ways.items()}

    def rows(self, node: Node) -> Rows:
        """Return no rows."""
        return Rows(ca.SX(0, 1), np.zeros(0), np.zeros(0), ())


def sharing_bounds(walk: Walk) -> list[SharingBounds]:
    """Return the bounds on the force sharing, which is nominal after toe-off, with an unloaded trailing foot.

    Before a second step, the centres of pressure leave their nominal positions, because they are free at heel strike.
    """
    bounds, nothing = [SharingBounds(ways=DEVIATIONS, name="sharing")], (0.0, 0.0)
    for k in range(walk.steps):
        off, end, which = walk.whole_s(k, walk.step.toe_off), walk.whole_s(k, 1.0), f"step {k + 1}"
        unloaded, rest = {FRACTION: nothing}, dict.fromkeys(PROFILES[1:], nothing)
        bounds.append(SharingBounds(ways=unloaded, during=(off, end), name=f"trailing foot is off, {which}"))
        bounds.append(SharingBounds(ways=rest, during=(off, off if end < 1 else end), name=f"sharing ends, {which}"))
    return bounds


# Positions of hands, hips and a box in lifting, reaching and standing up.

# Discs in side view that represent body parts for box clearance, centred between two links, with a radius (m).
SHIN, THIGH, BELLY, CHEST = 0.06, 0.08, 0.10, 0.12
LEG = (("foot", "shank", SHIN), ("shank", "shank", SHIN), ("shank", "thigh", THIGH))
TRUNK = (
    ("pelvis", "pelvis", BELLY),
    ("spine1", "spine1", BELLY),
    ("spine2", "spine3", BELLY),
    ("spine4", "spine4", CHEST),
)
DISCS = (*((f"{side}_{a}", f"{side}_{b}", r) for side in SIDES for a, b, r in LEG), *TRUNK)


@dataclass(frozen=True, eq=False, kw_only=True)
class Placed(Constraint):
    """A constraint that keeps a ``frame`` or link of a body at ``place`` (3,) (m, base axes), within ``near`` (m).

    It applies along ``axes``.

    Example:
        >>> Placed(body=torsor.library.human(), frame="right_knuckles", place=(-0.2, 1.0, 0.5), at=1.0).near
        0.0
    """

    body: Robot
    frame: str
    place: tuple[float, float, float]
    near: float = 0.0
    axes: str = AXES

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position (K, 3) of the frame on its link."""
        return {self.title: np.tile(self.body.place(self.frame).pose[:3, 3], (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the coordinates of the frame."""
        link = self.body.link_names[self.body.place(self.frame).link]
        pose, held = node.pose(link), [AXES.index(axis) for axis in self.axes]
        rows = (pose[:3, :3] @ node.data(self.title, 3) + pose[:3, 3])[held]
        aim = np.array([self.place[k] for k in held], dtype=float)
        labels = tuple(f"{axis} of {self.frame}" for axis in self.axes)
        return Rows(rows, aim - self.near, aim + self.near, labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChestLean(Constraint):
    """An upper bound ``most`` (rad) on the forward lean of the chest, which also excludes upside-down postures."""

    most: float

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the cosine and sine of the largest lean (K, 2)."""
        return {self.title: np.tile([np.cos(self.most), np.sin(self.most)], (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the sine of the lean in excess of the largest lean."""
        up, (cosine, sine) = node.pose("spine4")[:3, 1], ca.vertsplit(node.data(self.title, 2))
        return Rows(up[2] * cosine - up[1] * sine, np.array([-np.inf]), np.zeros(1), ("forward",))


@dataclass(frozen=True, eq=False, kw_only=True)
class Held(Constraint):
    """Base class of constraints on a ``box`` that a ``body`` holds in both hands."""

    body: Robot
    box: Box

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position (K, 3) of the knuckles on the hands."""
        return {"knuckles": np.tile(self.body.place("left_knuckles").pose[:3, 3], (len(s), 1))}

    def hands(self, node: Node) -> list[ca.SX]:
        """Return the positions (3 x 1) of the right and left knuckles."""
        poses = [node.pose(f"{side}_hand") for side in SIDES]
        return [pose[:3, :3] @ node.data("knuckles", 3) + pose[:3, 3] for pose in poses]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxLevel(Held):
    """A constraint that keeps the box level and centred in front of the body, within ``near`` (m)."""

    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the vector from the right to the left hand, and the lateral position of their midpoint."""
        right, left = self.hands(node)
        near = np.array([self.near] * 3 + [2 * self.near])
        aim = np.array([self.box.width, 0.0, 0.0, 0.0])
        rows = ca.vertcat(left - right, (right[0] + left[0]) / 2)
        return Rows(rows, aim - near, aim + near, ("width", "level", "skew", "middle aside"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxAt(Held):
    """A constraint that places the box centre at ``height`` (m), and ``ahead`` (m) of the heels."""

    height: float
    ahead: float

    def rows(self, node: Node) -> Rows:
        """Return the height and the forward distance."""
        right, left = self.hands(node)
        aim = np.array([self.height, self.ahead])
        return Rows(((right + left) / 2)[1:], aim, aim, ("height", "ahead"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxGripped(Held):
    """A constraint that keeps the box level and the hands one box width apart, within ``near`` (m).

    The box may rotate about the vertical and move sideways.
    """

    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the squared distance between the hands divided by the width, and their height difference."""
        right, left = self.hands(node)
        across, width = left - right, self.box.width
        rows = ca.vertcat(ca.sumsqr(across) / width, across[1])
        aim, near = np.array([width, 0.0]), self.near * np.array([2.0, 1.0])
        return Rows(rows, aim - near, aim + near, ("width", "level"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxFacing(Held):
    """A constraint that centres the box at ``place`` (3,) (m), rotated left by ``turn`` (rad).

    The hands are one box width apart along its direction, within ``near`` (m).
    """

    place: tuple[float, float, float]
    turn: float = 0.0
    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the centre of the box, and the horizontal vector between the hands."""
        right, left = self.hands(node)
        across = self.box.width * np.array([np.cos(self.turn), -np.sin(self.turn)])
        aim, near = np.concatenate([self.place, across]), self.near * np.array([0.0, 0.0, 0.0, 1.0, 1.0])
        rows = ca.vertcat((right + left) / 2, (left - right)[0], (left - right)[2])
        return Rows(rows, aim - near, aim + near, ("aside", "height", "ahead", "turned", "skew"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxClears(Held):
    """A constraint that keeps the box clear of shanks, knees, thighs and trunk, which are discs in side view.

    The radius of the box is half of its ``depth`` (m). The box is assumed to be too wide to fit between the legs.
    """

    depth: float = 0.3

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the knuckles on the hands, and the squared sums (K, discs) of radii."""
        squares = np.array([(self.depth / 2 + radius) ** 2 for *_, radius in DISCS])
        return {**super().data(s), self.title: np.tile(squares, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return squared distances divided by their lower bounds."""
        right, left = self.hands(node)
        box, squares, rows = (right + left) / 2, node.data(self.title, len(DISCS)), dict[str, ca.SX]()
        for k, (a, b, _) in enumerate(DISCS):
            way = (box - (node.position(a) + node.position(b)) / 2)[1:]
            rows[a if a == b else f"middle of {b} and {a}"] = ca.sumsqr(way) / squares[k]
        return at_least(1.0, rows)


HAND_TOLERANCE = 0.005  # m; tolerance of hand positions


@dataclass(frozen=True, eq=False, kw_only=True)
class RailForces(Grounded, Constraint):
    """Bounds on rail forces by a share of body weight and, for hands that rest on the rail, by the friction cone.

    ``sides`` are the hands that hold rails. With ``is_released``, forces are zero at both ends of the motion.
    """

    rails: Rails
    sides: tuple[str, ...] = SIDES
    is_released: bool = False
    together = ""

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the forces on both hands, divided by body weight."""
        return dict.fromkeys(RAILS, (0.0, 0.0) if self.is_released else (None, None))

    def rows(self, node: Node) -> Rows:
        """Return, for each hand, the margin of the squared force and the upward force, relative to body weight."""
        rows = dict[str, ca.SX]()
        for side in self.sides:
            k = 3 * SIDES.index(side)
            x, y, z = (node.profile(name) for name in RAILS[k : k + 3])
            rows[f"share of {side} hand"] = self.rails.share**2 - (x**2 + y**2 + z**2)
            if self.rails.friction is not None:
                cone = (self.rails.friction * y) ** 2 - x**2 - z**2
                rows |= {f"{side} hand rests": y, f"friction of {side} hand": cone}
        return at_least(0.0, rows)


def _bounds(rails: Rails, sides: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the force bounds, which are zero for free hands."""
    names = [f"rail on {side} hand" for side in sides]
    return {name: (-rails.share, rails.share) if name.startswith(tuple(names)) else (0.0, 0.0) for name in RAILS}


def rail_constraints(
    ground: Mapping[str, Any],
    rails: Rails,
    during: tuple[float, float] = (0.0, 1.0),
    *,
    sides: tuple[str, ...] = SIDES,
    is_released: bool = False,
) -> list[Constraint]:
    """Return the constraints on hands that hold rails between two values of s, and are free at other times.

    In a walk, the left hand holds its rail for one step and is then released (``is_released``).
    """
    hold: dict[str, Any] = {"body": ground["body"], "near": HAND_TOLERANCE, "during": during}
    forces: dict[str, Any] = {"rails": rails, "sides": sides, "is_released": is_released, "during": during}
    constraints: list[Constraint] = [
        Placed(**hold, frame=f"{side}_knuckles", place=rails.place(side), name=f"{side} hand on the rail")
        for side in sides
    ]
    constraints.append(RailForces(**ground, **forces, name="rail forces"))
    constraints.append(SharingBounds(ways=_bounds(rails, sides), name="bounds of rail forces"))
    before, after = (0.0, during[0]), (during[1], 1.0)
    for free, name in ((before, "hands before the rails"), (after, "hands off the rails")):
        if free[0] < free[1]:
            constraints.append(SharingBounds(ways=_bounds(rails, ()), during=free, name=name))
    return constraints


def check_reach(body: Robot, rails: Rails, shoulder: tuple[float, float, float], where: str) -> None:
    """Raise ModelError if the rails are farther than the arm length from a right ``shoulder`` (m)."""
    arm = float(landmark(body, "right_upper_arm")[1] - landmark(body, "right_knuckles")[1])
    way = math.dist(shoulder, rails.place("right"))
    if way > arm:
        what = f"the rails are {way:.2f} m from the shoulders"
        fix = "move the rails closer: change height, ahead or apart"
        raise ModelError(what, where=where, allowed=f"within {arm:.2f} m, the arm length", fix=fix)
