"""Skeletons of OpenSim as trees of hinges and slides, whose positions are functions of OpenSim's coordinates.

A CustomJoint moves its child by three slides and then three rotations, each a function x = f(q) of a coordinate. In the
tree each of them is a joint of its own; with f' and f'' the functions' derivatives,

    x = f(q)      x' = f' q'      x'' = f' q'' + f'' q'^2      tau = sum of f' tau_x

and the generalised forces of the coordinates follow from those of the tree exactly: constraints do no work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.mechanism import Joint, Link
from torsor.recordings import OsimModel
from torsor.recordings.osim import GROUND, OsimAxis, OsimJoint
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, inverse_pose, make_pose

Function = Callable[[Array], tuple[Array, Array, Array]]
PIN, WELD, CUSTOM = "PinJoint", "WeldJoint", "CustomJoint"


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A skeleton: the ``tree`` (a Robot), and ``functions`` {joint of the tree: (coordinate, function)}.

    ``names`` are the coordinates. ``states`` and ``forces`` go from coordinates to the tree and back.
    """

    tree: Robot
    names: tuple[str, ...]
    functions: dict[str, tuple[str, Function]]

    @property
    def mass(self) -> float:
        """The mass in kg."""
        return float(self.tree.mass)

    def states(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (K, nv) of the tree from those of the coordinates (K, n)."""
        found = np.zeros((3, len(q), self.tree.nv))
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            x, slope, bend = function(q[:, at])
            found[:, :, k] = x, slope * v[:, at], slope * a[:, at] + bend * v[:, at] ** 2
        return found[0], found[1], found[2]

    def forces(self, q: Array, tau: Array) -> Array:
        """Return the generalised forces (K, n) of the coordinates from those of the tree (K, nv)."""
        found = np.zeros(q.shape)
        for k, name in enumerate(self.tree.coordinate_names):
            at, function = self._function(name)
            found[:, at] += function(q[:, at])[1] * tau[:, k]
        return found

    def _function(self, name: str) -> tuple[int, Function]:
        coordinate, function = self.functions[name]
        return self.names.index(coordinate), function


def skeleton(model: OsimModel) -> Skeleton:
    """Return the tree of an OpenSim skeleton (``recordings.read_osim``), with the functions of its custom joints.

    Joints may be pins, welds and custom joints. Couplings between coordinates are not part of the tree: give each
    coordinate its motion, as OpenSim's inverse dynamics does.
    """
    links, joints = [Link(GROUND)], list[Joint]()
    functions: dict[str, tuple[str, Function]] = {}
    links += [Link(body.name, body.mass, body.com, body.inertia) for body in model.bodies.values()]
    for joint in model.joints.values():
        before, after = (_pose(each) for each in (joint.parent_place, joint.child_place))
        steps = _steps(model, joint)
        if not steps:
            joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, before @ inverse_pose(after)))
            continue
        parent = joint.parent
        for k, (kind, axis, coordinate, function) in enumerate(steps):
            name, last = f"{joint.name}/{k + 1}", k == len(steps) - 1
            child = joint.child if last else f"{joint.child}/{k + 1}"
            place = before @ inverse_pose(after) if last else before
            own = after[:3, :3] @ axis if last else axis
            joints.append(Joint(name, kind, parent, child, place, own, after[:3, 3] if last else np.zeros(3)))
            if not last:
                links.append(Link(child))
            functions[name] = coordinate, function
            parent, before = child, np.eye(4)
    names = tuple(each for each in model.coordinates if any(each == used for used, _ in functions.values()))
    return Skeleton(build(model.name, links, joints, [], model.gravity), names, functions)


def _pose(place: Array) -> Array:
    """Return the pose of a frame from its translation and its angles about x, the new y and the new z."""
    return make_pose(from_rpy(-place[3:]).T, place[:3])


def _steps(model: OsimModel, joint: OsimJoint) -> list[tuple[str, Array, str, Function]]:
    """Return kind, axis, coordinate and function of the slides and rotations of a joint, in their order."""
    if joint.kind == WELD:
        return []
    if joint.kind == PIN:
        return [("revolute", np.array([0.0, 0.0, 1.0]), joint.coordinates[0].name, _polynomial(np.array([1.0, 0.0])))]
    where = f"{model.source}: joint {joint.name!r}"
    if joint.kind != CUSTOM:
        allowed = f"{PIN}, {WELD} or {CUSTOM}"
        raise ModelError(describe(f"a {joint.kind}", where=where, allowed=allowed))
    found = []
    own = joint.coordinates[0].name if joint.coordinates else ""
    for kind, axes in (("prismatic", joint.axes[3:]), ("revolute", joint.axes[:3])):
        for axis in axes:
            function = _function(axis, where)
            constant = not axis.coordinates
            if constant and not any(each.any() for each in function(np.zeros(1))):
                continue
            found.append((kind, axis.axis, own if constant else axis.coordinates[0], function))
    return found


def _function(axis: OsimAxis, where: str) -> Function:
    numbers = axis.numbers
    if len(axis.coordinates) > 1:
        found = f"{axis.name} depends on {', '.join(axis.coordinates)}"
        raise ModelError(describe(found, where=where, allowed="one coordinate"))
    if axis.function in ("LinearFunction", "PolynomialFunction", "Constant"):
        return _polynomial(axis.scale * numbers)
    x, y = numbers[::2], axis.scale * numbers[1::2]
    return _piecewise(x, y, np.zeros(len(x)) if axis.function == "PiecewiseLinearFunction" else _curvatures(x, y))


def _polynomial(coefficients: Array) -> Function:
    """Return a polynomial, highest power first, with its two derivatives."""
    first = np.polyder(coefficients)
    second = np.polyder(first)

    def function(x: Array) -> tuple[Array, Array, Array]:
        value, slope, bend = (np.asarray(np.polyval(each, x), dtype=float) for each in (coefficients, first, second))
        return value, slope, bend

    return function


def _curvatures(x: Array, y: Array) -> Array:
    """Return the second derivatives at the points of the cubic spline that has none at its ends."""
    n, step = len(x), np.diff(x)
    A, right = np.eye(n), np.zeros(n)
    for k in range(1, n - 1):
        A[k, k - 1 : k + 2] = step[k - 1], 2 * (step[k - 1] + step[k]), step[k]
        right[k] = 6 * ((y[k + 1] - y[k]) / step[k] - (y[k] - y[k - 1]) / step[k - 1])
    return np.asarray(np.linalg.solve(A, right))


def _piecewise(x: Array, y: Array, bend: Array) -> Function:
    """Return the cubic spline with second derivatives ``bend`` at its points, straight beyond its ends."""

    def function(at: Array) -> tuple[Array, Array, Array]:
        inside = np.clip(at, x[0], x[-1])
        k = np.clip(np.searchsorted(x, inside) - 1, 0, len(x) - 2)
        h = x[k + 1] - x[k]
        a, b = (x[k + 1] - inside) / h, (inside - x[k]) / h
        value = a * y[k] + b * y[k + 1] + ((a**3 - a) * bend[k] + (b**3 - b) * bend[k + 1]) * h**2 / 6
        slope = (y[k + 1] - y[k]) / h + ((3 * b**2 - 1) * bend[k + 1] - (3 * a**2 - 1) * bend[k]) * h / 6
        return value + slope * (at - inside), slope, np.where(at == inside, a * bend[k] + b * bend[k + 1], 0.0)

    return function
