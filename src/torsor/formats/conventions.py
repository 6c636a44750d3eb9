"""Coordinates of other programs: the order of joints and quaternions, and the velocities of a floating base."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Maybe
from torsor.base.checks import frozen_array, known_name, one_of, several
from torsor.base.errors import ModelError
from torsor.mechanism import Joint, Mechanism


class _Program(NamedTuple):
    """The coordinates of a program.

    Joints are in ``order``: depth first, breadth first, or depth first with children sorted by name. Quaternions may
    begin with their real part. Velocities of free joints begin with the linear part. ``world`` states whether the
    linear and the angular part are in the axes before the joint, and not in body axes; ``at_com``, whether the linear
    part is that of the centre of mass; and ``circles``, whether continuous joints have (cos, sin), and planar joints
    velocities in body axes. The program does not have joints of the ``excluded`` types.
    """

    order: str
    real_first: bool
    world: tuple[bool, bool]
    at_com: bool
    excluded: tuple[str, ...]
    circles: bool = False


_BY_NAME, _BREADTH, _DEPTH = "by name", "breadth", "depth"
_PHYSX = ("spherical", "planar", "helical", "flexible")
PROGRAMS = {
    "mujoco": _Program(_DEPTH, True, (True, False), False, ("helical", "flexible")),
    "pinocchio": _Program(_BY_NAME, False, (False, False), False, ("flexible",), circles=True),
    "isaaclab": _Program(_BREADTH, True, (True, True), True, _PHYSX),
    "isaaclab3": _Program(_BREADTH, False, (True, True), True, _PHYSX),
    "newton": _Program(_DEPTH, False, (True, True), True, ("helical", "flexible")),
}
_QUATERNION = {True: (3, 0, 1, 2), False: (0, 1, 2, 3)}  # places of the components in (x, y, z, w)
_OUTSIDE = ("universe", "root_joint")  # names that Pinocchio lists and a robot may not have
_Three = tuple[Any, Any, Any]
_SIX = (3, 4, 5, 0, 1, 2)  # from (angular, linear) to (linear, angular)


# Joints whose velocities differ from Torsor's in more than their order. ``x`` is a copy of velocities or forces, in the
# order of the program, that is converted in place, to the program or back; ``q`` are Torsor's positions.


class _Free(NamedTuple):
    """A free joint: starts of its quaternion in q and of its velocities (linear, angular), their axes and point."""

    q: int
    at: int
    world: tuple[bool, bool]
    arm: _Three

    def convert(self, q: Any, x: Any, back: bool, force: bool) -> None:
        linear, angular = _three(x, self.at), _three(x, self.at + 3)
        if back:
            linear, angular = self._turned(q, linear, angular, back)
        sign = -1.0 if back else 1.0
        arm = (sign * self.arm[0], sign * self.arm[1], sign * self.arm[2])
        if force:
            angular = _sum(angular, _cross(linear, arm))
        else:
            linear = _sum(linear, _cross(angular, arm))
        if not back:
            linear, angular = self._turned(q, linear, angular, back)
        _put(x, self.at, (*linear, *angular))

    def _turned(self, q: Any, linear: _Three, angular: _Three, back: bool) -> tuple[_Three, _Three]:
        """Return vectors in body axes in the axes of the program, or the reverse if ``back``."""
        result = [_rotated(q, self.q, x, back) if w else x for x, w in zip((linear, angular), self.world, strict=True)]
        return result[0], result[1]

    def add_convective(self, q: Any, v: Any, a: Any, sign: float) -> None:
        """Add the part of their acceleration due to velocities, in body axes, to ``a``; ``v`` are those of Torsor."""
        if self.world[0]:
            omega = _three(v, self.at + 3)
            rate = _cross(omega, _sum(_three(v, self.at), _cross(omega, self.arm)))
            _put(a, self.at, [x + sign * y for x, y in zip(_three(a, self.at), rate, strict=True)])


class _Ball(NamedTuple):
    """A ball joint with angular velocities in the axes before the joint: starts of its quaternion and velocities."""

    q: int
    at: int

    def convert(self, q: Any, x: Any, back: bool, force: bool) -> None:
        _put(x, self.at, _rotated(q, self.q, _three(x, self.at), back))

    def add_convective(self, q: Any, v: Any, a: Any, sign: float) -> None:
        """Add nothing: the rates of an angular velocity are the same in both axes, only rotated."""


class _Plane(NamedTuple):
    """A planar joint with linear velocities in moved axes: places of its angle and start of its velocities."""

    q: int
    at: int

    def convert(self, q: Any, x: Any, back: bool, force: bool) -> None:
        angle = q[..., self.q] * (1.0 if back else -1.0)
        c, s, (right, up, _) = np.cos(angle), np.sin(angle), _three(x, self.at)
        _put(x, self.at, (c * right - s * up, s * right + c * up))

    def add_convective(self, q: Any, v: Any, a: Any, sign: float) -> None:
        """Add the rate of the moved axes times the velocities, in the axes before the joint."""
        right, up, turning = _three(v, self.at)
        _put(a, self.at, (a[..., self.at] + sign * turning * up, a[..., self.at + 1] - sign * turning * right))


def _three(x: Any, start: int) -> _Three:
    return x[..., start] * 1.0, x[..., start + 1] * 1.0, x[..., start + 2] * 1.0  # copies: x may be changed


def _put(x: Any, start: int, values: Sequence[Any]) -> None:
    for k, value in enumerate(values, start):
        x[..., k] = value


def _sum(a: _Three, b: _Three) -> _Three:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _cross(a: _Three, b: _Three) -> _Three:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _rotated(q: Any, start: int, x: _Three, back: bool) -> _Three:
    """Return a vector rotated by the quaternion (x, y, z, w) that starts at ``start`` in q, or by its inverse."""
    u, w = _three(q, start), q[..., start + 3] * (-2.0 if back else 2.0)
    once = _cross(u, x)
    twice = _cross(u, once)
    return _sum(x, (w * once[0] + 2.0 * twice[0], w * once[1] + 2.0 * twice[1], w * once[2] + 2.0 * twice[2]))


class Convention:
    """The coordinates of a robot in another program: "mujoco", "pinocchio", "isaaclab", "isaaclab3" or "newton".

    | program | joints | quaternion | velocity of a free joint: linear, angular |
    |---|---|---|---|
    | mujoco | depth first | w, x, y, z | of the origin in world axes, in body axes |
    | pinocchio | depth first, by name | x, y, z, w | of the origin in body axes, in body axes |
    | isaaclab (2.x) | breadth first | w, x, y, z | of the centre of mass in world axes, in world axes |
    | isaaclab3 (3.x), newton (1.x) | breadth first, depth first | x, y, z, w | as isaaclab |

    Positions and velocities are one vector each: (root_pos_w, root_quat_w, joint_pos) and (root_lin_vel_w,
    root_ang_vel_w, joint_vel) in Isaac Lab. Pinocchio has (cos, sin) for continuous joints, and velocities of planar
    joints in moved axes. Newton has velocities of ball joints in the axes before the joint.

    ``joints`` are the names of the program's joints in its order, with or without a free joint of the base, such as
    ``model.names`` of Pinocchio or ``joint_names`` of Isaac Lab. None selects the order in the table, for a model whose
    fixed joints are merged. ``com`` is the centre of mass of the base in link axes; None selects that of the robot, and
    zeros select ``root_link_lin_vel_w``.

    Arrays (NumPy, CuPy, or PyTorch tensors) have the same leading axes as q. Quaternions have length 1. Except for
    ``ours``, q is that of Torsor.

    Example:
        >>> robot = torsor.library.quadruped()
        >>> mujoco = torsor.formats.Convention(robot, "mujoco")
        >>> qpos, qvel = mujoco.theirs(robot.neutral(), np.arange(robot.nv))
        >>> qpos[3:7].tolist(), qvel[:6].tolist()
        ([1.0, 0.0, 0.0, 0.0], [3.0, 4.0, 5.0, 0.0, 1.0, 2.0])
        >>> mujoco.mass_matrix(robot.neutral(), robot.mass_matrix(robot.neutral())).shape == (robot.nv, robot.nv)
        True
    """

    def __init__(
        self, robot: Mechanism, program: str, joints: Sequence[str] | None = None, com: ArrayLike | None = None
    ) -> None:
        where = robot.name
        self._program = PROGRAMS[one_of(program, tuple(PROGRAMS), where, "program")]
        for joint in robot.joints:
            self._check(joint, robot, program)
        order = self._order(robot) if joints is None else _given(robot, joints)
        self.joint_names = tuple(robot.joints[k].name for k in order)
        self._q, self._v = list[int](), list[int]()  # the place in Torsor's q and v of each of their numbers
        self._parts, self._circles = list[_Free | _Ball | _Plane](), list[tuple[int, int]]()
        given = None if com is None else tuple(frozen_array(com, (3,), where, "com").tolist())
        if given and not (self._program.at_com and order and robot.joints[order[0]].type == "free"):
            found = "is given, but no velocity depends on it"
            raise ModelError(found, argument="com", value=com, where=where, fix="omit `com`")
        for k in order:
            self._add(robot, k, given)
            given = None  # for the base only
        self._own_q = [self._q.index(k) for k in range(robot.nq)]
        self._own_v = [self._v.index(k) for k in range(robot.nv)]

    def _add(self, robot: Mechanism, k: int, com: Any) -> None:
        """Add the coordinates of joint k; ``com`` is None for the centre of mass of its link."""
        (joint, at), program, start = (robot.joints[k], robot.coordinates[k]), self._program, len(self._v)
        q, v = [*range(at.q.start, at.q.stop)], [*range(at.v.start, at.v.stop)]
        if joint.type in ("free", "spherical"):
            if joint.type == "free":
                arm = (com or tuple(robot.links[k].com.tolist())) if program.at_com else (0.0, 0.0, 0.0)
                self._parts.append(_Free(q[-4], start, program.world, arm))
                v = [v[place] for place in _SIX]
            elif program.world[1]:
                self._parts.append(_Ball(q[0], start))
            q[-4:] = [q[-4:][place] for place in _QUATERNION[program.real_first]]
        elif program.circles and joint.type in ("continuous", "planar"):
            self._circles.append((q[-1], len(self._q) + len(q) - 1))
            if joint.type == "planar":
                self._parts.append(_Plane(q[-1], start))
            q.append(q[-1])
        self._q += q
        self._v += v

    def _check(self, joint: Joint, robot: Mechanism, program: str) -> None:
        """Raise ModelError for a joint that the program does not have, or whose coordinates differ there."""
        why, fix = "", ""
        if joint.type in self._program.excluded:
            why = f"is {joint.type}"
        elif joint.follows or joint.is_elastic:
            why = f"follows {joint.coordinate!r}" if joint.follows else "is elastic"
        elif joint.type == "free" and self._program.world[0] and not _on_base(joint, robot):
            why, fix = "is free, but not at the origin of the base", "move its placement to the position"
        if why:
            found = f"joint {joint.name!r} {why}, which the coordinates of {program} do not support"
            raise ModelError(found, value=joint.name, where=robot.name, fix=fix)

    def _order(self, robot: Mechanism) -> list[int]:
        """Return the joints in the order of the program."""
        below: dict[str, list[int]] = {}
        for k, joint in enumerate(robot.joints):
            below.setdefault(joint.parent, []).append(k)
        merged = {frame.link for frame in robot.frames if frame.joint}
        if self._program.order == _BY_NAME:
            unclear = next((link for link, children in below.items() if len(children) > 1 and link in merged), None)
            if unclear is not None:
                found = f"the order of the joints on {unclear!r} depends on fixed joints that are merged"
                raise ModelError(found, where=robot.name, fix="give the names in their order: joints=model.names")
            below = {link: sorted(each, key=lambda k: robot.joints[k].name) for link, each in below.items()}
        order, waiting = list[int](), list(below.get(robot.base.name, ()))
        while waiting:
            order.append(waiting.pop(0))
            children = below.get(robot.joints[order[-1]].child, [])
            waiting = [*waiting, *children] if self._program.order == _BREADTH else [*children, *waiting]
        return order

    # States

    def theirs(self, q: ArrayLike, v: Maybe = None, a: Maybe = None) -> Any:
        """Return their positions for q, or their positions and velocities for (q, v), or all three for (q, v, a).

        Example:
            >>> robot = torsor.library.free_flying_arm()
            >>> torsor.formats.Convention(robot, "newton").theirs(robot.neutral()).shape == (robot.nq,)
            True
        """
        q = self._checked(q, len(self._own_q), "q")
        results = [self._positions(q)]
        if v is not None:
            v = self._checked(v, len(self._v), "v")
            results.append(self._converted(q, v))
            if a is not None:
                results.append(self._accelerations(q, v, self._checked(a, len(self._v), "a")))
        return results[0] if len(results) == 1 else tuple(results)

    def ours(self, q: ArrayLike, v: Maybe = None, a: Maybe = None) -> Any:
        """Return Torsor's q, (q, v) or (q, v, a) for their positions, velocities and accelerations.

        Their bias force, such as ``qfrc_bias`` of MuJoCo, is the force of their acceleration 0.

        Example:
            >>> robot = torsor.library.free_flying_arm()
            >>> mujoco, zero = torsor.formats.Convention(robot, "mujoco"), np.zeros(robot.nv)
            >>> state = mujoco.ours(mujoco.theirs(robot.neutral()), zero, zero)
            >>> bias = mujoco.forces(state[0], robot.inverse_dynamics(*state))
            >>> bias.shape == (robot.nv,)
            True
        """
        q = self._own_positions(self._checked(q, len(self._q), "q"))
        results = [q]
        if v is not None:
            results.append(self._converted(q, self._checked(v, len(self._v), "v"), back=True))
            if a is not None:
                results.append(self._accelerations(q, results[1], self._checked(a, len(self._v), "a"), back=True))
        return results[0] if len(results) == 1 else tuple(results)

    # Forces and matrices

    def forces(self, q: ArrayLike, tau: ArrayLike) -> Any:
        """Return their generalised forces (..., nv) for Torsor's q (..., nq) and tau (..., nv).

        Example:
            >>> robot = torsor.library.free_flying_arm()
            >>> torsor.formats.Convention(robot, "pinocchio").forces(robot.neutral(), np.arange(robot.nv))[:6].tolist()
            [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]
        """
        return self._converted(*self._pair(q, tau, "tau"), force=True)

    def own_forces(self, q: ArrayLike, tau: ArrayLike) -> Any:
        """Return Torsor's generalised forces (..., nv) for Torsor's q (..., nq) and their forces (..., nv).

        Example:
            >>> robot, rng = torsor.library.free_flying_arm(), np.random.default_rng(0)
            >>> newton, q, tau = torsor.formats.Convention(robot, "newton"), robot.neutral(), rng.normal(size=robot.nv)
            >>> bool(np.allclose(newton.own_forces(q, newton.forces(q, tau)), tau))
            True
        """
        return self._converted(*self._pair(q, tau, "tau"), back=True, force=True)

    def mass_matrix(self, q: ArrayLike, M: ArrayLike) -> Any:
        """Return a mass matrix M (..., nv, nv), or another one that maps accelerations to forces, in their coordinates.

        Example:
            >>> robot = torsor.library.free_flying_arm()
            >>> M = robot.mass_matrix(robot.neutral())
            >>> float(torsor.formats.Convention(robot, "mujoco").mass_matrix(robot.neutral(), M)[0, 0]) == robot.mass
            True
        """
        at, matrix = self._pair(q, M, "M")
        for _ in range(2):  # the rows, then the columns
            matrix = self._converted(at[..., None, :], matrix, force=True).swapaxes(-1, -2)
        return matrix

    def jacobian(self, q: ArrayLike, J: ArrayLike) -> Any:
        """Return a Jacobian J (..., rows, nv) in their coordinates. Six rows become (linear, angular).

        The rows keep their axes and point: those of ``robot.jacobian(q, place, axes="aligned")`` are those of
        ``mj_jacBody`` in MuJoCo, and of LOCAL_WORLD_ALIGNED in Pinocchio.

        Example:
            >>> robot = torsor.library.free_flying_arm()
            >>> J = robot.jacobian(robot.neutral(), robot.link_names[0], axes="aligned")
            >>> torsor.formats.Convention(robot, "mujoco").jacobian(robot.neutral(), J)[:3, :3].tolist()
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        at, matrix = self._pair(q, J, "J")
        result = self._converted(at[..., None, :], matrix, force=True)
        return result[..., list(_SIX), :] if result.shape[-2] == 6 else result

    def _checked(self, x: Any, count: int, name: str) -> Any:
        """Return an array; raise ModelError if its last axis is not as long as it should be."""
        array = x if hasattr(x, "shape") else np.asarray(x, dtype=float)
        if not array.shape or array.shape[-1] != count:
            raise ModelError(f"has shape {tuple(array.shape)}", argument=name, allowed=f"(..., {count})")
        return array

    def _pair(self, q: Any, x: Any, name: str) -> tuple[Any, Any]:
        return self._checked(q, len(self._own_q), "q"), self._checked(x, len(self._v), name)

    def _positions(self, q: Any) -> Any:
        result = q[..., self._q] * 1.0  # a copy, whose numbers are real
        for own, at in self._circles:
            result[..., at], result[..., at + 1] = np.cos(q[..., own]), np.sin(q[..., own])
        return result

    def _own_positions(self, q: Any) -> Any:
        result = q[..., self._own_q] * 1.0
        for own, at in self._circles:
            result[..., own] = np.arctan2(q[..., at + 1], q[..., at])
        return result

    def _converted(self, q: Any, x: Any, back: bool = False, force: bool = False) -> Any:
        """Return velocities or forces in their coordinates (from theirs in Torsor's if ``back``), at Torsor's q."""
        result = x * 1.0 if back else x[..., self._v] * 1.0
        for part in self._parts:
            part.convert(q, result, back, force)
        return result[..., self._own_v] if back else result

    def _accelerations(self, q: Any, v: Any, a: Any, back: bool = False) -> Any:
        """Return accelerations in their coordinates (from theirs in Torsor's if ``back``), at Torsor's q and v."""
        v, result = v[..., self._v], self._converted(q, a, back)[..., self._v] if back else a[..., self._v] * 1.0
        for part in self._parts:
            part.add_convective(q, v, result, -1.0 if back else 1.0)
        result = result[..., self._own_v]
        return result if back else self._converted(q, result)


def _on_base(joint: Joint, robot: Mechanism) -> bool:
    return joint.parent == robot.base.name and np.array_equal(joint.placement, np.eye(4))


def _given(robot: Mechanism, names: Sequence[str]) -> list[int]:
    """Return the joints with given names; a free joint of the base comes first."""
    free = [robot.joints[0].name] if robot.joints and robot.joints[0].type == "free" else []
    own, where = robot.joint_names, robot.name
    listed = [str(name) for name in several(names) if name not in (*free, *_OUTSIDE) or name in own[len(free) :]]
    for name in listed:
        known_name(name, own, where, "joint")
    found = [*free, *listed]
    if sorted(found) != sorted(own):
        missing = [name for name in own if name not in found]
        problem = f"do not contain {missing}" if missing else "contain a name twice"
        raise ModelError(problem, argument="joints", value=found, where=where, allowed="each joint once")
    return [own.index(name) for name in found]
