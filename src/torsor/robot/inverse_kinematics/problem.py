"""The inverse-kinematics problem: targets, loops and limits of a robot as data, and its compiled functions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.base.checks import common_shape
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, Kernel, Signature
from torsor.compiler.cache import source_hash
from torsor.dynamics import Tree, lean
from torsor.dynamics.loops.closure import closure_error, closure_jacobian, velocity_rows
from torsor.dynamics.recursions.configuration import integrate
from torsor.mechanism import Coupling, ends_of
from torsor.mechanism.mechanism import places_in_q
from torsor.robot.inverse_kinematics.targets import WHERE, CenterOfMass, Posture, Target, coordinates_of
from torsor.robot.robot import Robot

T = TypeVar("T")
MAX_RATIO = 1e6  # ratio of two weights above which errors with the smaller weight are lost in rounding
# Kernel inputs and outputs that are scalars; all others are vectors.
SCALARS = ("cost", "damping", "f", "b", "c", "W")


@dataclass(frozen=True, eq=False)
class Traced:
    """Symbolic residuals at the positions ``x`` (nq x 1): weighted rows r (Jacobian J), and rows c = 0 (Jacobian A).

    Columns are the free coordinates. ``plain`` contains the unweighted residuals of all targets and of loop closure.
    """

    x: ca.SX
    r: ca.SX
    J: ca.SX
    c: ca.SX
    A: ca.SX
    plain: ca.SX


class Problem:
    """An inverse-kinematics problem: targets (without values), the robot's loops and, if ``limited``, its joint limits.

    ``free`` are the indices in v of the coordinates that move a target or occur in a loop; all others keep their
    positions. ``weighted`` is True if the weights differ. ``of`` creates each problem only once per robot and form of
    targets, and then reuses it.
    """

    def __init__(self, robot: Robot, targets: tuple[Target, ...], limited: bool, weighted: bool):
        self.robot, self.targets, self.limited, self.weighted = robot, targets, limited, weighted
        moving = set[int]()
        for target in targets:
            coordinates = target.coordinates(robot)
            if not coordinates:
                message, fix = f"no joint moves {target.where!r}", "name a place that moves"
                raise ModelError(message, value=target.where, where=f"{robot.name}: {WHERE}", fix=fix)
            moving |= coordinates
        self.free = sorted(moving | self._in_loops())
        self.has_hard = bool(self._closures) or any(item.hard for item in targets)
        self._made = dict[Any, Any]()

    @classmethod
    def of(cls, robot: Robot, targets: tuple[Target, ...], limited: bool) -> "Problem":
        """Return the problem for checked targets."""
        for target in targets:
            target.check(robot)
        weighted = len({weight for item in targets for weight in item.weights().tolist()}) > 1
        key = "kinematics", tuple((item.form, item.hard) for item in targets), limited, weighted

        def make() -> Problem:
            return cls(robot, tuple(item.bare() for item in targets), limited, weighted)

        return robot.kernels.exact.once(key, make)

    @cached_property
    def tree(self) -> Tree:
        """The tree for tracing the targets."""
        tree = Tree.of(self.robot)
        whole = any(isinstance(target, CenterOfMass) for target in self.targets)
        return tree if whole else lean(tree)  # a lean tree has merged inertias

    @cached_property
    def _closures(self) -> list[int]:
        """Rows of loop closure without wheel slip, which does not constrain positions."""
        if not self.robot.loops:
            return []
        tree = Tree.of(self.robot)
        count = closure_error(tree, ca.SX.sym("q", tree.nq)).numel()
        return [k for k in range(count) if k not in velocity_rows(tree)]

    def _in_loops(self) -> set[int]:
        """Return the coordinates that the loops depend on."""
        robot, result = self.robot, set[int]()
        for loop in robot.loops:
            if isinstance(loop, Coupling):
                result |= {robot.coordinate_names.index(name) for name in loop.polynomials}
            else:
                result = result.union(*(coordinates_of(robot, robot.place(end)) for end in ends_of(robot, loop)))
        return result

    @cached_property
    def places_in_q(self) -> list[int]:
        """Index in q of each free coordinate, or -1 for quaternion rotations."""
        places = places_in_q(self.robot.joints, self.robot.coordinates)
        return [places.get(k, -1) for k in self.free]

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper limits (n) of the free coordinates, infinite if there is none."""
        at = np.array(self.places_in_q, dtype=int)
        lower, upper = (np.append(item, 0.0)[at] for item in (self.robot.lower, self.robot.upper))
        has = (at >= 0) & self.limited
        return np.where(has, lower, -np.inf), np.where(has, upper, np.inf)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """The bounds in terms of positions (nq); infinite for positions that do not belong to one free coordinate."""
        ends = tuple(np.full(self.robot.nq + 1, sign * np.inf) for sign in (-1, 1))
        for end, bound in zip(ends, self.bounds, strict=True):
            end[self.places_in_q] = bound
        return ends[0][:-1], ends[1][:-1]

    def clipped(self, q: Array) -> Array:
        """Return positions (..., nq) clipped to the limits of the free coordinates."""
        low, high = self.box
        return np.asarray(np.minimum(np.maximum(q, low), high))

    @cached_property
    def data_size(self) -> int:
        """Number of values per state: the target values, and their weights if not all are 1."""
        return sum(target.count + self.weighted * len(target.kinds) for target in self.targets)

    def data(self, targets: tuple[Target, ...]) -> Array:
        """Return the values of targets (..., data_size), with their leading axes broadcast."""
        parts = []
        weights = relative_weights(targets) if self.weighted else []
        for k, item in enumerate(targets):
            numbers = item.given()
            parts.append(numbers)
            if self.weighted:
                parts.append(np.broadcast_to(weights[k], (*numbers.shape[:-1], len(weights[k]))))
        if len(parts) == 1:
            return parts[0]
        labels = [target.label for target in targets for _ in range(1 + self.weighted)]
        batches = {f"{k}: {label}": part.shape[:-1] for k, (label, part) in enumerate(zip(labels, parts, strict=True))}
        shape = common_shape(self.robot.name, **batches)
        return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)

    def traced(self, x: ca.SX, data: ca.SX, soft: bool) -> Traced:
        """Return the residuals at positions x; if ``soft``, all rows belong to r and none to c."""
        tree, posture, first = self.tree, Posture(self.tree, x), 0
        rows: dict[bool, list[tuple[ca.SX, ca.SX]]] = {False: [], True: []}
        plain = [ca.SX(0, 1)]
        for target in self.targets:
            r, J = target.rows(self.robot, posture, data[first : first + target.count])
            first += target.count
            J, hard = J[:, self.free], target.hard and not soft
            plain.append(r)
            if self.weighted:
                scale = ca.vertcat(*(ca.repmat(data[first + k], 3, 1) for k in range(len(target.kinds))))
                first += len(target.kinds)
                r, J = (r, J) if hard else (scale * r, ca.diag(scale) @ J)
            rows[hard].append((r, J))
        if self._closures:
            kept = self._closures
            error, A = closure_error(tree, x)[kept], closure_jacobian(tree, x)[kept, self.free]
            rows[not soft].append((error, A))
            plain.append(error)
        (r, J), (c, A) = (self._stacked(rows[kind]) for kind in (False, True))
        return Traced(x, r, J, c, A, ca.vertcat(*plain))

    def _stacked(self, rows: list[tuple[ca.SX, ca.SX]]) -> tuple[ca.SX, ca.SX]:
        values = ca.vertcat(ca.SX(0, 1), *(row[0] for row in rows))
        return values, ca.vertcat(ca.SX(0, len(self.free)), *(row[1] for row in rows))

    def moved(self, q: ca.SX, step: ca.SX) -> ca.SX:
        """Return the positions (nq x 1) after a step (n x 1) of the free coordinates."""
        whole = ca.SX.zeros(self.robot.nv, 1)
        whole[self.free] = step
        return integrate(self.tree, q, whole)

    def kernel(self, name: str, options: Any, make: Callable[[], ca.Function]) -> AnyKernel:
        """Return a compiled function of the problem."""

        def shapes(signature: Signature) -> tuple[list[Shape], list[Shape]]:
            inputs = map(_shape, signature.names_in, signature.sizes_in)
            return list(inputs), list(map(_shape, signature.names_out, signature.sizes_out))

        def compiled() -> AnyKernel:
            forms = tuple((target.form, target.hard) for target in self.targets)
            bounds = tuple(map(tuple, (bound.tolist() for bound in self.bounds)))
            key = "kinematics", name, options, forms, bounds, self.weighted, source_hash("robot/inverse_kinematics")
            return self.robot.kernels.exact.kernel(key, make, shapes)

        return self.once((name, options), compiled)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """Return a value that is computed once for the problem."""
        if key not in self._made:
            self._made[key] = make()
        result: T = self._made[key]
        return result

    @cached_property
    def check(self) -> Callable[..., tuple[Array, Array]]:
        """Kernel that maps (q, data) to the unweighted residuals of targets and closure, and the gradient (n)."""

        def make() -> ca.Function:
            q, data = ca.SX.sym("q", self.robot.nq), ca.SX.sym("data", self.data_size)
            at = self.traced(q, data, soft=True)
            outputs = ca.cse([ca.densify(at.plain), ca.densify(at.J.T @ at.r)])
            return ca.Function("check", [q, data], outputs, ["q", "data"], ["plain", "gradient"])

        return fast(self.kernel("check", (), make))


def fast(kernel: AnyKernel) -> Callable[..., Any]:
    """Return a function that evaluates a kernel, without checks, for valid arrays with one leading axis."""
    return kernel.unchecked if isinstance(kernel, Kernel) else kernel


def relative_weights(targets: tuple[Target, ...]) -> list[Array]:
    """Return the weights of targets, relative to the largest one."""
    weights = [target.weights() for target in targets]
    least, largest = min(map(min, weights)), max(map(max, weights))
    if largest > MAX_RATIO * least:
        message = f"weights range from {least:g} to {largest:g}"
        fix = "make the target with the larger weight hard"
        raise ModelError(message, where=WHERE, allowed=f"a ratio up to {MAX_RATIO:g}", fix=fix)
    return [value / largest for value in weights]


def _shape(name: str, size: tuple[int, int]) -> Shape:
    """Return the shape of an input or output; vectors with one entry remain vectors."""
    return () if name.removesuffix("_next") in SCALARS else (size[0],)
