"""Bounds of a retimed motion, which default to the robot's limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import by_name, number, real_array, table
from torsor.base.errors import ModelError, listing
from torsor.compiler import AnyKernel, Kernel
from torsor.compiler.cache import source_hash
from torsor.robot.robot import Robot

KINDS = ("velocity", "acceleration", "jerk", "torque", "torque_rate")
RATE_KINDS = ("jerk", "torque_rate")
SOURCES = SOURCE_GIVEN, SOURCE_ROBOT, SOURCE_NONE = "given", "of the robot", "none"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper bounds (2, n) of each kind, infinite where there is none, and their sources.

    ``reactions`` are tuples (joint, index of its link, "force" or "moment", bound in N or N m).
    """

    values: Mapping[str, Array]
    sources: Mapping[str, str]
    reactions: tuple[tuple[str, int, str, float], ...] = ()

    @classmethod
    def of(cls, robot: Robot, given: Mapping[str, Any], reactions: Any = None) -> "Bounds":
        """Return the bounds; velocity and torque bounds default to the limits of the robot."""
        where, names = f"{robot.name}: retime", robot.coordinate_names
        indices = {"velocity": robot.velocity_limit.copy(), "torque": robot.effort_limit}
        for joint in robot.joints:
            if joint.follows and joint.coordinate in names and joint.ratio:
                k, most = names.index(joint.coordinate), float(np.min(joint.velocity_limit)) / abs(joint.ratio)
                indices["velocity"][k] = min(indices["velocity"][k], most)
        values, sources = dict[str, Array](), dict[str, str]()
        for kind in KINDS:
            value = given.get(kind)
            sources[kind] = SOURCE_GIVEN if value is not None else SOURCE_ROBOT if kind in indices else SOURCE_NONE
            if sources[kind] == SOURCE_NONE:
                values[kind] = np.array([[-np.inf], [np.inf]]).repeat(len(names), axis=1)
                continue
            values[kind] = _ends(indices.get(kind), value, names, where, kind)
            if np.isinf(values[kind]).all():
                sources[kind] = SOURCE_NONE
            if kind in RATE_KINDS and (values[kind][0] != -values[kind][1]).any():
                raise ModelError(f"lower and upper bounds of {kind} differ", where=where, allowed="one number for both")
        _check_bounded(names, values, given, where)
        return cls(values, sources, _reactions(robot, reactions, where))

    def has(self, kind: str) -> bool:
        """Return whether any coordinate has a bound of the kind ``kind``."""
        return self.sources[kind] != SOURCE_NONE

    @cached_property
    def smooth(self) -> bool:
        """Whether jerks or torque rates are bounded, which requires a timing with continuous s''."""
        return any(self.has(kind) for kind in RATE_KINDS)

    def text(self, kind: str, k: int) -> str:
        """Return the bound of coordinate k as text."""
        low, high = self.values[kind][:, k]
        if np.isinf(low) and np.isinf(high):
            return SOURCE_NONE
        return f"{high:g}" if low == -high else f"{low:g} to {high:g}"

    def used(self) -> str:
        """Return the active bounds and their sources in one line."""
        kinds = {source: [one.replace("_", " ") for one in KINDS if self.sources[one] == source] for source in SOURCES}
        kinds[SOURCE_GIVEN] += [f"reaction {kind} of {joint}" for joint, _, kind, _ in self.reactions]
        parts = [f"{', '.join(kinds[source])} {source}" for source in (SOURCE_ROBOT, SOURCE_GIVEN) if kinds[source]]
        return "; ".join([*parts, *([f"none of {', '.join(kinds[SOURCE_NONE])}"] if kinds[SOURCE_NONE] else [])])


def _ends(own: Array | None, given: Any, names: Sequence[str], where: str, kind: str) -> Array:
    """Return lower and upper bounds (2, n), from one number, n numbers, {name: number}, or (n, 2).

    ``own`` are the robot's bounds, the defaults for missing bounds and for names that a table omits.
    """
    n = len(names)
    value: Any = own if given is None else given
    if not isinstance(value, Mapping) and np.ndim(value) == 2:
        ends = real_array(value, where, kind).T
        if ends.shape != (2, n):
            raise ModelError(f"{kind} has shape {ends.T.shape}", where=where, allowed=f"({n},) or ({n}, 2)")
    else:
        upper = by_name(value, names, np.inf, f"{where}: {kind}")
        if isinstance(value, Mapping) and own is not None:
            upper = np.where([name in value for name in names], upper, own)
        ends = np.stack([0.0 - upper, upper])
    if not (ends[0] < 0).all() or not (ends[1] > 0).all():  # NaN too
        wrong = int(np.flatnonzero(~((ends[0] < 0) & (ends[1] > 0)))[0])
        if given is None:
            message = f"the {kind} limit of {names[wrong]!r} is {ends[1, wrong]:g}"
            raise ModelError(message, where=where, fix=f"pass `{kind}=`")
        message = f"the {kind} bounds of {names[wrong]!r} are {ends[0, wrong]:g} to {ends[1, wrong]:g}"
        raise ModelError(message, where=where, allowed="negative lower bounds and positive upper bounds")
    return ends


def _check_bounded(names: Sequence[str], values: Mapping[str, Array], given: Mapping[str, Any], where: str) -> None:
    """Raise ModelError if a coordinate has no bound and is not explicitly unbounded."""
    finite = {kind: np.isfinite(values[kind]).all(axis=0) for kind in ("velocity", "acceleration", "torque")}
    velocity = given.get("velocity")
    said = velocity if isinstance(velocity, Mapping) else () if velocity is None else names
    for name, is_bounded in zip(names, np.asarray(finite["velocity"]), strict=True):
        if not is_bounded and name not in said:
            fix = "pass `velocity=`"
            raise ModelError(f"coordinate {name!r} has no velocity limit", value=name, where=where, fix=fix)
    driven = finite["acceleration"] | finite["torque"]
    meant = given.get("acceleration") is not None and given.get("torque") is not None
    if not driven.any() or (not meant and not driven.all()):
        fix = "pass `acceleration=` or `torque=`"
        message = f"coordinate {names[int(np.argmin(driven))]!r} has neither an effort limit nor an acceleration bound"
        raise ModelError(message, where=where, fix=fix)


def _reactions(robot: Robot, given: Any, where: str) -> tuple[tuple[str, int, str, float], ...]:
    """Return the reaction bounds from {joint: {"force": N, "moment": N m}}."""
    moving = {joint.name: joint.child for joint in robot.joints if joint.child in robot.link_names}
    limits = []
    for joint, sizes in table(given, where, "reactions").items():
        if joint not in moving:
            message = f"reactions names {joint!r}, which is not the joint of a moving link"
            raise ModelError(message, value=joint, where=where, allowed=listing(moving, like=str(joint)))
        for kind, size in table(sizes, where, f"reactions of {joint!r}").items():
            if kind not in ("force", "moment"):
                allowed = "'force' (N), 'moment' (N m)"
                raise ModelError(f"the reactions of {joint!r} have a key {kind!r}", where=where, allowed=allowed)
            bound = number(size, where, f"{kind} of {joint!r} in reactions", above=0.0, finite=False)
            if bound < np.inf:
                limits.append((joint, robot.link_names.index(moving[joint]), kind, bound))
    return tuple(limits)


# Bounds along a path: rows low <= a u + b x <= high of u = s'' and x = s'^2 (time derivatives).
#
# Accelerations are q' u + q'' x, where primes denote d/ds. Forces come from inverse dynamics, which is linear in the
# acceleration and quadratic in the velocity: tau = M q' u + (M q'' + C q') x + g (Bobrow, Dubowsky and Gibson 1985).
# Joint reactions have the same form. Friction depends on the velocity q' sqrt(x); its tangent at a known x is included
# in b and in the bounds.

# Sides of the polygon inscribed in the circle of a reaction's magnitude, which loses 1 - cos(pi / 16) = 1.9 %.
POLYGON_SIDES = 16
POLYGON_FRACTION = float(np.cos(np.pi / POLYGON_SIDES))  # radius of the polygon's incircle relative to the circle
LARGEST_BOUND = 1e15  # represents an infinite bound
MIN_SPEED = 1e-12  # s' that determines the direction of friction when a motion starts
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class RowKernel:
    """The compiled rows of a robot along a path; ``at`` returns (a, b, low, high) and the largest x.

    There are rows for bounded ``accelerations`` and ``torques`` (coordinate indices) and ``reactions`` (link and kind).
    ``names`` contains (kind, coordinate or joint) for each row.
    """

    robot: Robot
    accelerations: tuple[int, ...]
    torques: tuple[int, ...]
    reactions: tuple[tuple[int, str], ...]
    names: tuple[tuple[str, str], ...]
    numbers: Array
    _kernels: dict[int, AnyKernel] = field(default_factory=dict)  # by the number of coefficients of a piece

    @classmethod
    def of(cls, robot: Robot, bounds: Bounds) -> "RowKernel":
        """Return the rows of a robot for bounds."""
        accelerations, torques = (
            tuple(np.flatnonzero(np.isfinite([bounds.values[kind] for kind in kinds]).any(axis=(0, 1))).tolist())
            for kinds in (("acceleration", "jerk"), ("torque", "torque_rate"))
        )
        reactions = tuple((link, kind) for _, link, kind, _ in bounds.reactions)
        names = [("acceleration", robot.coordinate_names[k]) for k in accelerations]
        names += [("torque", robot.coordinate_names[k]) for k in torques]
        names += [
            (f"reaction {kind}", joint) for joint, _, kind, _ in bounds.reactions for _ in range(POLYGON_SIDES // 2)
        ]
        kinds = ("acceleration", accelerations), ("torque", torques), ("velocity", slice(None))
        ends = [bounds.values[kind][:, indices].ravel() for kind, indices in kinds]
        numbers = np.concatenate([*ends, [reaction[-1] for reaction in bounds.reactions]])
        limited = np.minimum(np.maximum(numbers, -LARGEST_BOUND), LARGEST_BOUND)
        return cls(robot, accelerations, torques, reactions, tuple(names), limited)

    def at(self, pieces: Array, way: Array) -> tuple[Array, Array]:
        """Return rows (..., 4, r) and the largest x (...) in pieces (..., powers, n), at distances (...)."""
        powers = pieces.shape[-2]
        kernel = self._kernels.get(powers)
        if kernel is None:
            key = "retiming", powers, self.key, source_hash("motion/retiming/bounds.py")
            shapes = [(powers, self.robot.nv), (), self.numbers.shape], [(4, len(self.names)), ()]
            kernel = self.robot.kernels.kernel(key, lambda: self.trace(powers), lambda _: shapes)
            self._kernels[powers] = kernel
        # The arrays already have the layout of the kernel. Threads are used only for several paths.
        call = kernel.unchecked if isinstance(kernel, Kernel) and len(way) == 1 else kernel
        result: tuple[Array, Array] = call(pieces, way, self.numbers)
        return result

    @property
    def key(self) -> tuple[Any, ...]:
        """The kinds of rows, which determine the kernels."""
        return self.accelerations, self.torques, self.reactions

    def trace(self, powers: int) -> ca.Function:
        """Return the function (piece, way, numbers) -> (rows (4, r), largest x), without friction."""
        robot, n = self.robot, self.robot.nv
        piece, way, numbers = ca.SX.sym("piece", powers, n), ca.SX.sym("way"), ca.SX.sym("numbers", len(self.numbers))
        counts = len(self.accelerations), len(self.torques), n
        places = np.cumsum([0, *np.repeat(counts, 2), len(self.reactions)]).tolist()
        *ends, slowest, speed, sizes = (numbers[i:j] for i, j in pairwise(places))
        low, high = ca.vertcat(*ends[::2]), ca.vertcat(*ends[1::2])
        q, d1, d2 = on_path(piece, way, 3)
        parts = [ca.horzcat(d1, d2, ca.SX.zeros(n, 1))[list(self.accelerations), :]]
        if self.torques:
            forces, none = robot.without_friction().function("inverse_dynamics"), ca.SX.zeros(n, 1)
            still = forces(q, none, none)
            table = ca.horzcat(forces(q, none, d1) - still, forces(q, d1, d2) - still, still)
            parts.append(table[list(self.torques), :])
        a, b, c = ca.horzsplit(ca.vertcat(*parts))
        rows = [ca.horzcat(a, b, low - c, high - c)]
        if self.reactions:
            wrenches, none = robot.function("joint_wrenches"), ca.SX.zeros(n, 1)
            loads = [wrenches(q, *state) for state in ((none, none), (none, d1), (d1, d2))]
            for k, (link, kind) in enumerate(self.reactions):
                part = slice(3, 6) if kind == "force" else slice(0, 3)
                still, by_u, by_x = (load[link, part].T for load in loads)
                rows.append(_polygon(by_u - still, by_x - still, still, sizes[k]))
        rate = ca.if_else(d1 > 0, speed, -slowest) / ca.fmax(ca.fabs(d1), TINY)
        most = ca.fmin(ca.mmin(rate), LARGEST_BOUND) ** 2
        results = [ca.densify(ca.cse(ca.vertcat(*rows).T)), most]
        return ca.Function("retiming", [piece, way, numbers], results)

    def with_friction(self, rows: Array, d1: Array, x: Array, turning: Flags | None = None) -> Array:
        """Return rows (..., 4, r) with friction at x (...): its value there and its slope in x.

        Dry friction opposes the motion along the path, with q' = d1 (..., n), even at the start of the motion. For
        coordinates that reverse (``turning``, (..., n)), it acts in both directions.
        """
        first, coordinates = len(self.accelerations), list(self.torques)
        torque_rows = slice(first, first + len(coordinates))
        known, rate = x[..., None], np.maximum(np.sqrt(x), MIN_SPEED)[..., None]
        by_x = np.where(known > 0, d1 / (2 * rate), 0.0)
        both = self.robot.derivatives.jvp("friction_force", (d1 * rate,), (by_x,))
        force, slope = (np.asarray(array)[..., coordinates] for array in both)
        result = rows.copy()
        result[..., 1, torque_rows] += slope
        result[..., 2:, torque_rows] -= (force - slope * known)[..., None, :]
        if turning is not None:
            sides = (self.robot.friction_force(np.full(self.robot.nv, speed)) for speed in (MIN_SPEED, -MIN_SPEED))
            dry = np.abs(np.subtract(*sides)) / 2
            back = (2 * dry * turning)[..., coordinates]
            share = (1 + np.sign(d1[..., coordinates])) / 2  # one half where the joint reverses and the force is 0
            result[..., 2, torque_rows] += share * back
            result[..., 3, torque_rows] -= (1 - share) * back
        return result

    @cached_property
    def has_friction(self) -> bool:
        """Whether torques are bounded and include friction or dampers."""
        return bool(self.torques) and bool(np.any(self.robot.friction_force(np.ones(self.robot.nv))))


def on_path(piece: ca.SX, way: ca.SX, orders: int) -> list[ca.SX]:
    """Return q and its derivatives (n x 1 each) at the distance ``way`` along a polynomial piece (powers, n)."""
    powers, result = piece.size1(), []
    for order in range(orders):
        value = ca.SX.zeros(1, piece.size2())
        for power in reversed(range(order, powers)):
            value = value * way + float(np.prod(np.arange(power - order + 1, power + 1))) * piece[power, :]
        result.append(value.T)
    return result


def _polygon(a: ca.SX, b: ca.SX, c: ca.SX, bound: ca.SX) -> ca.SX:
    """Return rows (POLYGON_SIDES / 2, 4) that keep the norm of a u + b x + c (3 x 1) below a bound.

    In the plane of a and b, the vector is restricted to a disc; the rows describe the inscribed polygon.
    """
    first = a / ca.fmax(ca.norm_2(a), TINY)
    rest = b - ca.dot(b, first) * first
    second = rest / ca.fmax(ca.norm_2(rest), TINY)
    across = c - ca.dot(c, first) * first - ca.dot(c, second) * second
    radius = ca.sqrt(ca.fmax(bound**2 - ca.sumsqr(across), 0)) * POLYGON_FRACTION
    rows = []
    for angle in 2 * np.pi * np.arange(POLYGON_SIDES // 2) / POLYGON_SIDES:
        normal = np.cos(angle) * first + np.sin(angle) * second
        far = ca.dot(normal, c)
        rows.append(ca.horzcat(ca.dot(normal, a), ca.dot(normal, b), -radius - far, radius - far))
    return ca.vertcat(*rows)
