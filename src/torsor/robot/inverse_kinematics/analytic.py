"""Closed-form inverse kinematics of six-axis arms with three axes that meet at one end, or three parallel axes.

With the axes in the zero posture, T(q) M^-1 = G = e1 e2 e3 e4 e5 e6 (product of exponentials; M is the pose at zero).
If the last three axes meet at a point c, e1 e2 e3 moves c to G c, which determines three angles. The other three follow
from the remaining rotation (Pieper 1968). If axes 2, 3 and 4 are parallel and the last two meet at c, the height of c
along the parallel axes determines the first angle. The direction of these axes determines the last two angles, and a
triangle determines the rest. If the first axes have these properties instead, the arm is solved from its tool: G^-1 =
e6^-1 ... e1^-1.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import flag, frozen_pose
from torsor.base.errors import ModelError
from torsor.mechanism.mechanism import lineage
from torsor.robot.inverse_kinematics.problem import Problem
from torsor.robot.inverse_kinematics.search import chased
from torsor.robot.inverse_kinematics.targets import Pose, coordinates_of, near_enough
from torsor.robot.robot import Robot, checked_robot
from torsor.spatial import exp_so3, inverse_pose

# Rotations about given axes that move given points or vectors to given places.
#
# These building blocks of closed-form solutions are the Paden-Kahan subproblems (Murray, Li and Sastry 1994, section
# 3.3), generalised to axes in any position.

# Fractions of the arm's size below which numbers are rounding errors.
ZERO_TOLERANCE, MISS_TOLERANCE = 1e-9, 1e-6


class Axis(NamedTuple):
    """A joint axis: a unit vector ``w`` (3) and a point ``o`` (3) on it, in base axes."""

    w: Array
    o: Array

    def turned(self, x: Array, angle: float) -> Array:
        """Return the point x (3) after a rotation about the axis."""
        return self.o + rotated(self.w, x - self.o, angle)

    def angle(self, start: Array, end: Array) -> float:
        """Return the angle about the axis that rotates ``start`` to ``end``; 0 for points on the axis."""
        return angle_between(self.w, start - self.o, end - self.o)


def rotated(w: Array, x: Array, angle: float) -> Array:
    """Return the vector x (3) after a rotation about the unit vector w (Rodrigues' formula)."""
    c, s = math.cos(angle), math.sin(angle)
    return np.asarray(c * x + s * np.cross(w, x) + (1 - c) * (w @ x) * w)


def angle_between(w: Array, start: Array, end: Array) -> float:
    """Return the angle about w from the normal component of ``start`` to that of ``end``; 0 if a component is zero."""
    u, v = start - (w @ start) * w, end - (w @ end) * w
    if min(float(np.linalg.norm(u)), float(np.linalg.norm(v))) < ZERO_TOLERANCE:
        return 0.0
    return math.atan2(float(w @ np.cross(u, v)), float(u @ v))


def sinusoid(a: float, b: float, c: float) -> list[float]:
    """Return the solutions x (two, one or none) of a cos x + b sin x = c; if rounding removes both, the nearest x."""
    size = math.hypot(a, b)
    if size < ZERO_TOLERANCE or abs(c) > size * (1 + MISS_TOLERANCE):
        return []
    middle, half = math.atan2(b, a), math.acos(max(-1.0, min(1.0, c / size)))
    return [middle] if half == 0 else [middle + half, middle - half]


def with_two_products(w: Array, a: float, v: Array, b: float, length: float) -> list[Array]:
    """Return the vectors y with w . y = a, v . y = b and the given length, where w and v are distinct unit vectors."""
    cosine = float(w @ v)
    across = np.cross(w, v)
    square = float(across @ across)
    flat = ((a - b * cosine) * w + (b - a * cosine) * v) / square
    rest = length**2 - float(flat @ flat)
    if rest < -MISS_TOLERANCE * max(length**2, ZERO_TOLERANCE):
        return []
    high = math.sqrt(max(rest, 0.0) / square)
    return [flat + high * across, flat - high * across] if high > 0 else [flat]


def closest_points(one: Axis, other: Axis) -> tuple[Axis, Axis]:
    """Return both axes with their points of closest approach."""
    across = np.cross(one.w, other.w)
    if float(across @ across) < ZERO_TOLERANCE**2:
        return one, Axis(other.w, other.o + ((one.o - other.o) @ other.w) * other.w)
    columns = np.stack([one.w, -other.w, across], axis=1)
    s, t, _ = np.linalg.solve(columns, other.o - one.o)
    return Axis(one.w, one.o + s * one.w), Axis(other.w, other.o + t * other.w)


def are_parallel(one: Axis, other: Axis) -> bool:
    """Return whether two axes are parallel up to rounding."""
    return bool(np.linalg.norm(np.cross(one.w, other.w)) < ZERO_TOLERANCE)


def meeting_point(axes: list[Axis], size: float) -> Array | None:
    """Return the point where all axes meet, or None."""
    first, second = closest_points(axes[0], axes[1])
    if are_parallel(first, second) or np.linalg.norm(first.o - second.o) > ZERO_TOLERANCE * size:
        return None
    point = first.o
    for axis in axes[2:]:
        away = point - axis.o
        if np.linalg.norm(away - (away @ axis.w) * axis.w) > ZERO_TOLERANCE * size:
            return None
    return point


def three_turns(axes: list[Axis], x: Array, p: Array) -> Iterator[tuple[float, float, float]]:
    """Yield the angles about three axes that move the point x to p, last axis first (Pieper 1968)."""
    first, second = closest_points(axes[0], axes[1])
    third = axes[2]
    offset = x - third.o
    middle = third.o + (offset @ third.w) * third.w
    u, v = x - middle, np.cross(third.w, x - middle)  # x after a rotation: middle + u cos + v sin
    apart = second.o - first.o
    reach = float((p - first.o) @ (p - first.o))
    for angle in _third(first, second, middle, u, v, p, apart, reach):
        moved = third.turned(x, angle)
        for y in _between(first, second, moved, p, apart):
            yield first.angle(y, p), second.angle(moved, y), angle


def _third(
    first: Axis, second: Axis, middle: Array, u: Array, v: Array, p: Array, apart: Array, reach: float
) -> list[float]:
    """Return the angles of the third axis."""
    if are_parallel(first, second):  # rotations preserve the height along the axes, so it equals that of p
        return sinusoid(float(first.w @ u), float(first.w @ v), float(first.w @ (p - middle)))
    m = middle - second.o
    size = float(m @ m + u @ u), 2 * float(m @ u), 2 * float(m @ v)  # |x - o2|^2 = size . (1, cos, sin)
    if np.linalg.norm(apart) < ZERO_TOLERANCE:  # the axes meet, and p has the distance from the meeting point
        return sinusoid(size[1], size[2], reach - size[0])
    # Skew axes: y - o1 is linear in (1, cos, sin) and has the length of p - o1.
    rows = np.stack([first.w, second.w, 2 * apart])
    right = np.zeros((3, 3))
    right[0, 0] = first.w @ (p - first.o)
    right[1] = second.w @ (middle - first.o), second.w @ u, second.w @ v
    right[2] = reach + apart @ apart - size[0], -size[1], -size[2]
    a, b, c = np.linalg.solve(rows, right).T
    products = a @ a - reach, 2 * a @ b, 2 * a @ c, b @ b, 2 * b @ c, c @ c
    return _quadric(*map(float, products))


def _quadric(k: float, c1: float, s1: float, cc: float, cs: float, ss: float) -> list[float]:
    """Return the angles with k + c1 cos + s1 sin + cc cos^2 + cs cos sin + ss sin^2 = 0, from a quartic in exp(ix)."""
    # With cos = (z + 1/z) / 2 and sin = (z - 1/z) / 2i, this is a polynomial in z. Roots with |z| = 1 are the angles.
    second, first = (cc - ss) / 4 - 0.25j * cs, c1 / 2 - 0.5j * s1
    roots = np.roots([second, first, k + (cc + ss) / 2, np.conj(first), np.conj(second)])
    return [float(np.angle(z)) for z in roots if abs(abs(z) - 1) < 1e-4]


def _between(first: Axis, second: Axis, moved: Array, p: Array, apart: Array) -> list[Array]:
    """Return the points to which the second axis moves ``moved`` and which the first axis moves to p."""
    length = float(np.linalg.norm(p - first.o))
    if not are_parallel(first, second):
        a, b = float(first.w @ (p - first.o)), float(second.w @ (moved - first.o))
        result = with_two_products(first.w, a, second.w, b, length)
        far = float(np.linalg.norm(moved - second.o))
        if np.linalg.norm(apart) >= ZERO_TOLERANCE:  # one point has the right distance from the second axis
            result = sorted(result, key=lambda y: abs(float(np.linalg.norm(first.o + y - second.o)) - far))[:1]
        return [first.o + y for y in result]
    distance = float(np.linalg.norm(apart))
    if distance < ZERO_TOLERANCE:
        return []
    across = p - first.o
    flat = across - (across @ first.w) * first.w
    radius, other = float(np.linalg.norm(flat)), moved - second.o
    other = other - (other @ first.w) * first.w
    along = (radius**2 + distance**2 - float(other @ other)) / (2 * distance)
    rest = radius**2 - along**2
    if rest < -MISS_TOLERANCE * max(radius**2, ZERO_TOLERANCE):
        return []
    foot = first.o + (across @ first.w) * first.w + along * apart / distance
    side = math.sqrt(max(rest, 0.0)) * np.cross(first.w, apart / distance)
    return [foot + side, foot - side]


POSE_TOLERANCE = 1e-9  # m, rad: largest pose error of a returned posture, by forward kinematics
POLISH_STEPS = 20  # Newton steps that remove rounding errors, enough even near singular postures
POSTURE_TOLERANCE = 1e-6  # rad: postures closer than this are the same

SINGULAR_TRIALS = 3  # random postures; they are singular only if the arm is singular everywhere

Angles = tuple[float, ...]


def analytic_inverse_kinematics(robot: Robot, pose: ArrayLike, place: str | int, limits: bool = True) -> Array:
    """Return all postures (K, nq) of a six-axis arm in which a link or frame has a given pose, in closed form.

    ``pose`` (4 x 4) is the pose of the link or frame ``place`` in base axes. The arm must have six revolute joints.
    Either its first or last three axes must meet (a spherical wrist), or, counted from either end, axes 2, 3 and 4 must
    be parallel and axes 5 and 6 must meet. ModelError is raised for other arms, and for arms that are singular
    everywhere, such as planar arms; they have either no posture or infinitely many for a pose. Postures that differ by
    whole turns are returned once. Postures outside the joint limits are omitted, unless ``limits`` is False. If the
    wrist is singular, one posture represents the infinitely many that reach the pose. Other coordinates are neutral.

    Example:
        >>> arm = torsor.library.ur5()
        >>> there = arm.pose([0.3, -1.0, 1.2, 0.4, 0.9, -0.2], "ee_link")
        >>> torsor.analytic_inverse_kinematics(arm, there, "ee_link").shape
        (8, 6)
    """
    where = f"{checked_robot(robot).name}: analytic_inverse_kinematics"
    T = frozen_pose(pose, where, "pose")
    near_enough(T[:3, 3], where)
    flag(limits, where, "limits")
    at, axes, M = _arm(robot, place, where)
    size = max(1e-3, float(np.ptp([axis.o for axis in axes], axis=0).max()))
    freedoms = _freedoms(axes, size)
    if freedoms < 6:
        message = f"the arm is singular everywhere: its six axes move {place!r} in {freedoms} directions"
        allowed = "an arm that can move in six, so that a pose has finitely many postures"
        raise ModelError(message, where=where, allowed=allowed, fix="use inverse_kinematics")
    result = _solutions(axes, T @ inverse_pose(M), size)
    if result is None:
        message = "no closed form is known for its axes"
        allowed = "three axes that meet at an end of the arm, or parallel axes 2, 3, 4 and axes 5, 6 that meet, "
        allowed += "counted from either end"
        raise ModelError(message, where=where, allowed=allowed, fix="use inverse_kinematics")
    q = np.tile(robot.neutral(), (len(result), 1))
    q[:, at] = np.reshape(result, (-1, 6))
    return _distinct(robot, _polished(robot, q, T, place), at, limits)


def _arm(robot: Robot, place: str | int, where: str) -> tuple[list[int], list[Axis], Array]:
    """Return the indices in q of the six angles, and the axes and the pose of the place at zero angles.

    ModelError is raised unless exactly six revolute joints, each with its own angle, move the place, without loops.
    """
    spot = robot.place(place)
    chain = lineage(robot, spot.link)[::-1]
    joints = [robot.joints[k] for k in chain]
    turning = all(joint.type in ("revolute", "continuous") and abs(joint.ratio) == 1 for joint in joints)
    if robot.loops or not turning or len(joints) != 6 or len(coordinates_of(robot, spot)) != 6:
        types = f"{len(joints)} joints move {place!r}: {', '.join(joint.type for joint in joints)}"
        message, fix = "the robot has loops" if robot.loops else types, "use inverse_kinematics"
        raise ModelError(message, where=where, allowed="six revolute joints, each with its own angle", fix=fix)
    zero, exact = robot.neutral(), robot.kernels.exact
    poses = exact.call("poses", zero)
    axes = []
    for k, joint in zip(chain, joints, strict=True):
        frame = poses[k] @ joint.frame
        axes.append(Axis(frame[:3, 2] * np.sign(joint.ratio), frame[:3, 3]))
    return [robot.coordinates[k].q.start for k in chain], axes, exact.call("pose", zero, place=place)


def _freedoms(axes: list[Axis], size: float) -> int:
    """Return the largest rank of the Jacobian at random angles; it is below 6 if the arm is singular everywhere."""
    ranks = []
    for angles in np.random.default_rng(0).uniform(-np.pi, np.pi, (SINGULAR_TRIALS, len(axes))):
        R, p, columns = np.eye(3), np.zeros(3), []
        for axis, angle in zip(axes, angles, strict=True):
            w, o = R @ axis.w, R @ axis.o + p
            columns.append([*w, *np.cross(o - axes[0].o, w) / size])
            turn = exp_so3(angle * w)
            R, p = turn @ R, turn @ (p - o) + o
        values = np.linalg.svd(np.array(columns), compute_uv=False)
        ranks.append(int((values > ZERO_TOLERANCE * values[0]).sum()))
    return max(ranks)


def _solutions(axes: list[Axis], G: Array, size: float) -> list[Angles] | None:
    """Return the angles of all postures, or None if no closed form is known."""
    for forward in (True, False):
        chain = axes if forward else axes[::-1]
        goal = G if forward else inverse_pose(G)
        parallel = all(are_parallel(chain[1], axis) for axis in chain[2:4])
        result: Iterator[Angles]
        if (wrist := meeting_point(chain[3:], size)) is not None:
            result = _by_wrist(chain, goal, wrist)
        elif parallel and (wrist := meeting_point(chain[4:], size)) is not None:
            result = _by_parallel_axes(chain, goal, wrist)
        else:
            continue
        return [item if forward else tuple(-x for x in item[::-1]) for item in result]
    return None


def _by_wrist(axes: list[Axis], G: Array, wrist: Array) -> Iterator[Angles]:
    """Yield the angles of an arm whose last three axes meet."""
    R, w = G[:3, :3], [axis.w for axis in axes]
    for first in three_turns(axes[:3], wrist, R @ wrist + G[:3, 3]):
        arm = np.eye(3)
        for axis, angle in zip(w[:3], first, strict=True):
            arm = arm @ exp_so3(angle * axis)
        rest = arm.T @ R
        v = rest @ w[5]
        for y in with_two_products(w[4], float(w[4] @ w[5]), w[3], float(w[3] @ v), 1.0):
            fourth, fifth = angle_between(w[3], y, v), angle_between(w[4], w[5], y)
            last = exp_so3(fifth * w[4]).T @ exp_so3(fourth * w[3]).T @ rest
            yield (*first, fourth, fifth, _turn(w[5], last))


def _turn(w: Array, R: Array) -> float:
    """Return the angle of a rotation about w."""
    beside = np.cross(w, np.eye(3)[int(np.argmin(np.abs(w)))])
    return angle_between(w, beside, R @ beside)


def _by_parallel_axes(axes: list[Axis], G: Array, wrist: Array) -> Iterator[Angles]:
    """Yield the angles of an arm whose axes 2, 3 and 4 are parallel and whose last two meet."""
    R, w, n = G[:3, :3], [axis.w for axis in axes], axes[1].w
    base = axes[0]
    far = R @ wrist + G[:3, 3] - base.o
    along, across = (w[0] @ far) * w[0], far - (w[0] @ far) * w[0]
    height = float(n @ (wrist - base.o)) - float(n @ along)  # n . (R1^T far) = n . (wrist - o1)
    for first in sinusoid(float(n @ across), -float(n @ np.cross(w[0], far)), height):
        R1 = exp_so3(first * w[0])
        u = R.T @ R1 @ n
        for y in with_two_products(w[4], float(w[4] @ n), w[5], float(w[5] @ u), 1.0):
            fifth, sixth = angle_between(w[4], y, n), angle_between(w[5], u, y)
            planar = R1.T @ R @ exp_so3(sixth * w[5]).T @ exp_so3(fifth * w[4]).T
            whole = _turn(n, planar)
            # Position of the fourth axis: the wrist is fixed in the frame of link 4.
            there = base.turned(R @ wrist + G[:3, 3], -first) + planar @ (axes[3].o - wrist)
            for second, third in _triangle(axes[1], axes[2], axes[3].o, there):
                signs = [float(np.sign(w[k] @ n)) for k in (1, 2, 3)]
                fourth = (whole - second - signs[1] * third) * signs[2]
                yield first, second, third, fourth, fifth, sixth


def _triangle(shoulder: Axis, elbow: Axis, x: Array, there: Array) -> Iterator[tuple[float, float]]:
    """Yield the angles about two parallel axes that move x to ``there``, in the plane normal to the axes."""
    n = shoulder.w

    def flat(vector: Array) -> Array:
        return np.asarray(vector - (n @ vector) * n)

    upper, lower, goal = flat(elbow.o - shoulder.o), flat(x - elbow.o), flat(there - shoulder.o)
    a, b = 2 * float(upper @ lower), 2 * float(upper @ np.cross(elbow.w, lower))
    for third in sinusoid(a, b, float(goal @ goal - upper @ upper - lower @ lower)):
        yield angle_between(n, upper + rotated(elbow.w, lower, third), goal), third


def _polished(robot: Robot, q: Array, T: Array, place: str | int) -> Array:
    """Return the postures whose forward kinematics matches the pose T, after removing rounding errors."""
    target = (Pose(place, T),)
    problem = Problem.of(robot, target, limited=False)
    data = np.tile(problem.data(target), (len(q), 1))
    ends = chased(problem, q, data, (POSE_TOLERANCE * 1e-3) ** 2, POLISH_STEPS, patient=True)
    near = np.abs(ends.q - q).max(axis=1, initial=0.0) < 1e-3  # drop a search that went elsewhere
    return np.asarray(ends.q[near & (ends.cost <= POSE_TOLERANCE**2)])


def _distinct(robot: Robot, q: Array, at: list[int], limits: bool) -> Array:
    """Return the distinct postures (..., nq) in order, with angles from -pi to pi.

    With ``limits``, angles are shifted by whole turns into the limits where possible, and other postures are omitted.
    """
    q = q.copy()
    q[:, at] = np.angle(np.exp(1j * q[:, at]))
    if limits:
        low, high = robot.lower[at] - ZERO_TOLERANCE, robot.upper[at] + ZERO_TOLERANCE
        for turn in (2 * np.pi, -2 * np.pi):
            angles, others = q[:, at], q[:, at] + turn
            out = (angles < low) | (angles > high)
            q[:, at] = np.where(out & (others >= low) & (others <= high), others, angles)
        q = q[((q[:, at] >= low) & (q[:, at] <= high)).all(axis=1)]
    kept: list[Array] = []
    for item in q:
        if all(np.abs(np.exp(1j * item[at]) - np.exp(1j * other[at])).max() > POSTURE_TOLERANCE for other in kept):
            kept.append(item)
    return np.array(sorted(kept, key=lambda each: each.round(6).tolist())).reshape(-1, robot.nq)
