"""What bounds mean along a path: rows low <= a u + b x <= high of u = s'' and x = s'^2 (rates by time).

Accelerations are q' u + q'' x, where primes of q are derivatives by s. Forces are those of inverse dynamics, which are
linear in the acceleration and quadratic in the velocity: tau = M q' u + (M q'' + C q') x + g (Bobrow, Dubowsky and
Gibson 1985). Joint reactions have the same form. Friction depends on the velocity q' sqrt(x): its tangent at a known x
is a part of b and of the bounds.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.compiler import AnyKernel, Kernel
from torsor.compiler.cache import source_hash
from torsor.motion.retiming.bounds import Bounds
from torsor.robot.robot import Robot

SIDES = 16  # of the polygon within the circle of a reaction's magnitude: at most 1 - cos(pi / 16) = 1.9 % is given away
WITHIN = float(np.cos(np.pi / SIDES))  # of the circle, that the polygon reaches everywhere
LARGEST = 1e15  # a bound where there is none
SLOWEST = 1e-12  # s' of a motion that just begins, where friction has a direction
TINY = 1e-300


class Motion(NamedTuple):
    """The rows of bounds that a robot has, as they are traced: coordinates of accelerations and forces, reactions."""

    accelerations: tuple[int, ...]
    torques: tuple[int, ...]
    reactions: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, bounds: Bounds) -> "Motion":
        """Return the rows of some bounds: values or rates of them that are finite."""
        own = [
            tuple(np.flatnonzero(np.isfinite([bounds.values[kind] for kind in kinds]).any(axis=(0, 1))).tolist())
            for kinds in (("acceleration", "jerk"), ("torque", "torque_rate"))
        ]
        return cls(own[0], own[1], tuple((link, kind) for _, link, kind, _ in bounds.reactions))


@dataclass(frozen=True, eq=False)
class RowKernel:
    """The compiled rows of a robot along a path: ``at`` gives (a, b, low, high) and the largest x at places of it.

    ``names`` are (kind, coordinate or joint) of each row.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> kernel = RowKernel.of(robot, Bounds.of(robot, {"velocity": 2.0, "acceleration": 5.0}))
        >>> rows, most = kernel.at(np.array([[[[0.0], [1.0], [0.5]]]]), np.zeros((1, 1)))  # q = s + s^2 / 2
        >>> rows[0, 0].tolist(), most.tolist(), kernel.names
        ([[1.0], [1.0], [-5.0], [5.0]], [[4.0]], (('acceleration', 'joint1'),))
    """

    robot: Robot
    motion: Motion
    names: tuple[tuple[str, str], ...]
    numbers: Array

    @classmethod
    def of(cls, robot: Robot, bounds: Bounds) -> "RowKernel":
        """Return the rows of some bounds."""
        motion = Motion.of(bounds)
        coordinates, names = robot.coordinate_names, list[tuple[str, str]]()
        names += [("acceleration", coordinates[k]) for k in motion.accelerations]
        names += [("torque", coordinates[k]) for k in motion.torques]
        names += [(f"reaction {kind}", joint) for joint, _, kind, _ in bounds.reactions for _ in range(SIDES // 2)]
        kinds = ("acceleration", motion.accelerations), ("torque", motion.torques), ("velocity", slice(None))
        ends = [bounds.values[kind][:, own].ravel() for kind, own in kinds]
        numbers = np.concatenate([*ends, [each[-1] for each in bounds.reactions]])
        return cls(robot, motion, tuple(names), np.minimum(np.maximum(numbers, -LARGEST), LARGEST))

    def at(self, pieces: Array, way: Array) -> tuple[Array, Array]:
        """Return rows (..., 4, r) and the largest x (...) in pieces (..., powers, n), ways (...) from their starts."""
        powers = pieces.shape[-2]
        kernel = self._kernels.get(powers)
        if kernel is None:
            key = "retiming", powers, tuple(self.motion), source_hash("motion/retiming/rows.py")
            shapes = [(powers, self.robot.nv), (), self.numbers.shape], [(4, len(self.names)), ()]
            kernel = self.robot.kernels.kernel(key, lambda: self.trace(powers), lambda _: shapes)
            self._kernels[powers] = kernel
        # The arrays are those that the kernel takes; only several paths are shared by threads.
        call = kernel.unchecked if isinstance(kernel, Kernel) and len(way) == 1 else kernel
        found: tuple[Array, Array] = call(pieces, way, self.numbers)
        return found

    @cached_property
    def _kernels(self) -> dict[int, AnyKernel]:
        """The compiled rows for pieces with so many coefficients."""
        return {}

    def trace(self, powers: int) -> ca.Function:
        """Return the function (piece, way, numbers) -> (rows (4, r), largest x), without friction."""
        robot, n = self.robot, self.robot.nv
        piece, way, numbers = ca.SX.sym("piece", powers, n), ca.SX.sym("way"), ca.SX.sym("numbers", len(self.numbers))
        counts = len(self.motion.accelerations), len(self.motion.torques), n
        places = np.cumsum([0, *np.repeat(counts, 2), len(self.motion.reactions)]).tolist()
        *ends, slowest, speed, sizes = (numbers[i:j] for i, j in pairwise(places))
        low, high = ca.vertcat(*ends[::2]), ca.vertcat(*ends[1::2])
        q, d1, d2 = on_path(piece, way, 3)
        parts = [ca.horzcat(d1, d2, ca.SX.zeros(n, 1))[list(self.motion.accelerations), :]]
        if self.motion.torques:
            forces, none = robot.without_friction().function("inverse_dynamics"), ca.SX.zeros(n, 1)
            still = forces(q, none, none)
            table = ca.horzcat(forces(q, none, d1) - still, forces(q, d1, d2) - still, still)
            parts.append(table[list(self.motion.torques), :])
        a, b, c = ca.horzsplit(ca.vertcat(*parts))
        rows = [ca.horzcat(a, b, low - c, high - c)]
        if self.motion.reactions:
            wrenches, none = robot.function("joint_wrenches"), ca.SX.zeros(n, 1)
            loads = [wrenches(q, *each) for each in ((none, none), (none, d1), (d1, d2))]
            for k, (link, kind) in enumerate(self.motion.reactions):
                part = slice(3, 6) if kind == "force" else slice(0, 3)
                still, by_u, by_x = (each[link, part].T for each in loads)
                rows.append(_polygon(by_u - still, by_x - still, still, sizes[k]))
        rate = ca.if_else(d1 > 0, speed, -slowest) / ca.fmax(ca.fabs(d1), TINY)
        most = ca.fmin(ca.mmin(rate), LARGEST) ** 2
        results = [ca.densify(ca.cse(ca.vertcat(*rows).T)), most]
        return ca.Function("retiming", [piece, way, numbers], results)

    def with_friction(self, rows: Array, d1: Array, x: Array, turning: Flags | None = None) -> Array:
        """Return rows (..., 4, r) with friction at x (...): its value there, and its slope by x.

        Dry friction acts against the motion along the path, with q' = d1 (..., n), also where that just begins; of
        coordinates that turn back (..., n) in both directions.

        Example:
            >>> arm = torsor.library.planar_chain(1).with_friction("joint1", coulomb=2.0, viscous=3.0)
            >>> kernel = RowKernel.of(arm, Bounds.of(arm, {"velocity": 1.0, "torque": 50.0}))
            >>> rows = kernel.with_friction(np.zeros((1, 4, 1)), np.ones((1, 1)), np.array([4.0]))
            >>> rows[0, :, 0].round(9).tolist()  # 3 / (2 sqrt(4)), and 2 + 3 sqrt(4) - 3 / 4 * 4 less
            [0.0, 0.75, -5.0, -5.0]
        """
        first, coordinates = len(self.motion.accelerations), list(self.motion.torques)
        own = slice(first, first + len(coordinates))
        known, rate = x[..., None], np.maximum(np.sqrt(x), SLOWEST)[..., None]
        by_x = np.where(known > 0, d1 / (2 * rate), 0.0)
        force, slope = (
            np.asarray(each)[..., coordinates] for each in self.robot.jvp("friction_force", (d1 * rate,), (by_x,))
        )
        found = rows.copy()
        found[..., 1, own] += slope
        found[..., 2:, own] -= (force - slope * known)[..., None, :]
        if turning is not None:
            dry = np.abs(self.robot.friction_force(np.full(self.robot.nv, SLOWEST)))
            back = (2 * dry * turning)[..., coordinates]
            share = (1 + np.sign(d1[..., coordinates])) / 2  # half where the turn is just here, and the force 0
            found[..., 2, own] += share * back
            found[..., 3, own] -= (1 - share) * back
        return found

    @cached_property
    def has_friction(self) -> bool:
        """Whether torques are bounded and have a part from friction or dampers."""
        return bool(self.motion.torques) and bool(np.any(self.robot.friction_force(np.ones(self.robot.nv))))


def on_path(piece: ca.SX, way: ca.SX, orders: int) -> list[ca.SX]:
    """Return q and its derivatives (n x 1 each) at a way along a polynomial piece (powers, n)."""
    powers, found = piece.size1(), []
    for order in range(orders):
        value = ca.SX.zeros(1, piece.size2())
        for power in reversed(range(order, powers)):
            value = value * way + float(np.prod(np.arange(power - order + 1, power + 1))) * piece[power, :]
        found.append(value.T)
    return found


def _polygon(a: ca.SX, b: ca.SX, c: ca.SX, bound: ca.SX) -> ca.SX:
    """Return rows (SIDES / 2, 4) that keep a u + b x + c (3 x 1) shorter than a bound.

    In the plane of a and b the vector must be in a disc, whose inscribed polygon has these rows.
    """
    first = a / ca.fmax(ca.norm_2(a), TINY)
    rest = b - ca.dot(b, first) * first
    second = rest / ca.fmax(ca.norm_2(rest), TINY)
    across = c - ca.dot(c, first) * first - ca.dot(c, second) * second
    radius = ca.sqrt(ca.fmax(bound**2 - ca.sumsqr(across), 0)) * WITHIN
    rows = []
    for angle in 2 * np.pi * np.arange(SIDES // 2) / SIDES:
        normal = np.cos(angle) * first + np.sin(angle) * second
        far = ca.dot(normal, c)
        rows.append(ca.horzcat(ca.dot(normal, a), ca.dot(normal, b), -radius - far, radius - far))
    return ca.vertcat(*rows)
