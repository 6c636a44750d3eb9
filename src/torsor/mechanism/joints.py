"""Joint types: their kinematics in the joint frame, whose z axis is the joint axis.

``transform(q)`` is the pose of the moved frame in the rest frame. The relative twist, in the axes of the moved frame at
its origin, is S(q) v with the motion subspace S = ``subspace(q)`` (6 x nv, angular rows first). Its time derivative is
S a + S' v. All functions take numbers or CasADi symbols. No algorithm in ``dynamics`` depends on the joint type.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.spatial import Matrix, Vector, about_z, axis_frame, cross, from_quaternion, matrix, stack
from torsor.spatial.exponentials import inverse_left_jacobian, left_jacobian
from torsor.spatial.rotations import log_rotation, quaternion_exp, quaternion_product


@dataclass(frozen=True)
class JointKind:
    """A joint type: numbers of positions ``nq`` and velocities ``nv``, velocity names, and kinematics.

    In the base class, the velocities are the time derivatives of the positions. ``pitch`` is the advance (m/rad) of a
    helical joint, and zero for other types.
    """

    name: str
    velocity_names: tuple[str, ...]
    turns: tuple[bool, ...]  # whether each velocity is angular (rad/s) or linear (m/s)
    absorbs_turn: bool = False  # whether rotating the joint frame about its axis only adds an offset to the coordinate
    _neutral: ClassVar[tuple[float, ...]] = ()  # positions of the rest pose, if not nv zeros
    _invisible: ClassVar[tuple[tuple[int, int], ...]] = ()  # see ``invisible``
    _shifts: ClassVar[tuple[bool, bool, bool]] = (False, False, False)  # joint axes along which the frame can be moved

    @property
    def nv(self) -> int:
        """Number of velocities, and of generalised forces."""
        return len(self.velocity_names)

    @property
    def nq(self) -> int:
        """Number of positions."""
        return len(self._neutral) or self.nv

    @property
    def neutral(self) -> Array:
        """Positions (nq,) of the rest pose."""
        return np.array(self._neutral or [0.0] * self.nv)

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        """Return (R, p), the rotation (3 x 3) and origin (3) of the moved frame in the rest frame."""
        raise NotImplementedError

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        """Return S (6 x nv) in the moved frame."""
        raise NotImplementedError

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix | None:
        """Return the time derivative of S (6 x nv) at the velocities v, or None if S is constant."""
        return None

    @cached_property
    def turns_about_z(self) -> bool | None:
        """True if the joint rotates only about its z axis, False if it does not rotate, None otherwise."""
        angular = ca.densify(ca.SX(self.subspace(ca.SX.sym("q", self.nq), 0.0)))[:3, :]
        rows = [any(not angular[i, k].is_zero() for k in range(self.nv)) for i in range(3)]
        return None if rows[0] or rows[1] else rows[2]

    def subspace_before(self, q: Vector, pitch: float) -> Matrix:
        """Return S (6 x nv) in the axes of the rest frame."""
        R, S = ca.SX(self.transform(q, pitch)[0]), ca.SX(self.subspace(q, pitch))
        return ca.vertcat(R @ S[:3, :], R @ S[3:, :])

    def bias(self, q: Vector, v: Vector, pitch: float) -> Vector | None:
        """Return S' v (6), the acceleration due to the velocities v, or None if S is constant."""
        rate = self.subspace_rate(q, v, pitch)
        return None if rate is None else rate @ v

    @property
    def simple(self) -> tuple[tuple[str, Array], ...]:
        """An equivalent chain of joint types with constant S, with their axes (3 x 3) in the rest frame."""
        return ((self.name, np.eye(3)),)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Return the positions after one unit of time at the constant velocity dv."""
        return q + dv

    def difference(self, start: Vector, end: Vector) -> Vector:
        """Return dv (nv) such that integrate(start, dv) = end."""
        return end - start

    def chart(self, q: Vector, u: Vector) -> Vector:
        """Return the positions at local coordinates u (nv) about q, computed without sines and cosines."""
        return q + u

    def chart_rate(self, u: Vector, v: Vector) -> Vector:
        """Return the time derivative of u at the velocities v, which is v at u = 0."""
        return v

    def chart_velocity(self, u: Vector, u_rate: Vector) -> Vector:
        """Return the velocities for a given time derivative of u: the inverse of ``chart_rate``."""
        return u_rate

    def chart_carry(self, u: Vector, v: Vector) -> Vector:
        """Return the velocities at chart(q, u) for constant u, if q moves with the velocities v."""
        return v

    def invisible(self, P: Array) -> Array:
        """Return the part of a pseudo-inertia P (4 x 4) that can be moved to the parent without changing any force.

        The joint motion adds no momentum to this part and leaves it unchanged in the parent's frame. Forces therefore
        cannot distinguish it from inertia of the parent (Khalil's regrouping of inertial parameters).
        """
        kept = np.zeros_like(P)
        for i, j in self._invisible:
            kept[i, j] = kept[j, i] = P[i, j]
        return kept

    def free_shift(self, p: Array) -> Array:
        """Return the translation (3), in joint axes, to the equivalent joint frame nearest to the parent's origin.

        ``p`` is the origin of the joint frame relative to the parent's origin, in joint axes.
        """
        return np.where(self._shifts, -p, 0.0)


def _column(*values: Any) -> Array:
    return np.array(values, dtype=float).reshape(6, -1)


class _Revolute(JointKind):
    _invisible = (3, 3), (2, 3), (2, 2)  # mass on the axis does not move
    _shifts = False, False, True

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return about_z(q[0]), np.zeros(3)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return _column(0, 0, 1, 0, 0, 0)


class _Prismatic(JointKind):
    # The link rotates with its parent, so its rotational inertia can be moved to the parent.
    _invisible = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)
    _shifts = True, True, True

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return np.eye(3), stack(0.0, 0.0, q[0])

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return _column(0, 0, 0, 0, 0, 1)


class _Helical(JointKind):
    _invisible = ((2, 2),)
    _shifts = False, False, True

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return about_z(q[0]), stack(0.0, 0.0, pitch * q[0])

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return _column(0, 0, 1, 0, 0, pitch)


class _Planar(JointKind):
    # Positions (x, y, angle) in the rest frame and their time derivatives; S depends on the angle.
    _invisible = ((2, 2),)
    _shifts = False, False, True

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return about_z(q[2]), stack(q[0], q[1], 0.0)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        c, s = ca.cos(q[2]), ca.sin(q[2])
        return matrix([[0, 0, 0], [0, 0, 0], [0, 0, 1], [c, s, 0], [-s, c, 0], [0, 0, 0]])

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        c, s = ca.cos(q[2]) * v[2], ca.sin(q[2]) * v[2]
        return matrix([[0, 0, 0], [0, 0, 0], [0, 0, 0], [-s, c, 0], [-c, -s, 0], [0, 0, 0]])

    @property
    def simple(self) -> tuple[tuple[str, Array], ...]:
        return ("prismatic", axis_frame([1, 0, 0])), ("prismatic", axis_frame([0, 1, 0])), ("revolute", np.eye(3))


class _Spherical(JointKind):
    # Positions: quaternion (x, y, z, w) of the moved frame; velocities: omega in the moved axes.
    _neutral = 0.0, 0.0, 0.0, 1.0
    _invisible = ((3, 3),)

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return from_quaternion(q), np.zeros(3)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return np.eye(6)[:, :3]

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return quaternion_product(q, quaternion_exp(dv))

    def difference(self, start: Vector, end: Vector) -> Vector:
        return log_rotation(quaternion_product(_conjugate(start), end))

    def chart(self, q: Vector, u: Vector) -> Vector:
        return _rotate_quaternion(q, u)

    def chart_rate(self, u: Vector, v: Vector) -> Vector:
        return _gibbs_rate(u, v)

    def chart_velocity(self, u: Vector, u_rate: Vector) -> Vector:
        return _gibbs_velocity(u, u_rate)

    def chart_carry(self, u: Vector, v: Vector) -> Vector:
        return from_quaternion(_gibbs_turn(u)).T @ v


class _Free(JointKind):
    # Positions: (x, y, z) and quaternion (x, y, z, w); velocities: (omega, v of the origin) in the moved axes.
    _neutral = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return from_quaternion(q[3:]), q[:3]

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return np.eye(6)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        step = from_quaternion(q[3:]) @ (left_jacobian(dv[:3]) @ dv[3:])
        return stack(q[:3] + step, quaternion_product(q[3:], quaternion_exp(dv[:3])))

    def difference(self, start: Vector, end: Vector) -> Vector:
        omega = log_rotation(quaternion_product(_conjugate(start[3:]), end[3:]))
        step = from_quaternion(start[3:]).T @ (end[:3] - start[:3])
        return stack(omega, inverse_left_jacobian(omega) @ step)

    # Local coordinates: the Gibbs vector of the rotation, and the displacement of the origin in the axes at q.
    def chart(self, q: Vector, u: Vector) -> Vector:
        return stack(q[:3] + from_quaternion(q[3:]) @ u[3:], _rotate_quaternion(q[3:], u[:3]))

    def chart_rate(self, u: Vector, v: Vector) -> Vector:
        return stack(_gibbs_rate(u[:3], v[:3]), from_quaternion(_gibbs_turn(u[:3])) @ v[3:])

    def chart_velocity(self, u: Vector, u_rate: Vector) -> Vector:
        return stack(_gibbs_velocity(u[:3], u_rate[:3]), from_quaternion(_gibbs_turn(u[:3])).T @ u_rate[3:])

    def chart_carry(self, u: Vector, v: Vector) -> Vector:
        back = from_quaternion(_gibbs_turn(u[:3])).T
        return stack(back @ v[:3], back @ (v[3:] + cross(v[:3], u[3:])))


class _Fixed(JointKind):
    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return np.eye(3), np.zeros(3)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return np.zeros((6, 0))


def _conjugate(quaternion: Vector) -> Vector:
    return stack(-quaternion[0], -quaternion[1], -quaternion[2], quaternion[3])


def _gibbs_turn(u: Vector) -> Vector:
    """Return the unnormalised quaternion of the Gibbs vector u = 2 tan(angle / 2) axis, without sines and cosines."""
    return stack(u / 2, 1.0)


def _rotate_quaternion(q: Vector, u: Vector) -> Vector:
    """Return the quaternion q rotated by the Gibbs vector u, normalised to prevent drift over many steps."""
    x, y, z, w = (quaternion_product(q, _gibbs_turn(u))[k] for k in range(4))
    return stack(x, y, z, w) / ca.sqrt(x * x + y * y + z * z + w * w)


def _gibbs_rate(u: Vector, omega: Vector) -> Vector:
    """Return u' = omega + u x omega / 2 + u (u . omega) / 4, with omega in the moved axes."""
    return omega + cross(u, omega) / 2 + u * ((u[0] * omega[0] + u[1] * omega[1] + u[2] * omega[2]) / 4)


def _gibbs_velocity(u: Vector, u_rate: Vector) -> Vector:
    """Return omega = (u' - u x u' / 2) / (1 + u . u / 4) in the moved axes."""
    return (u_rate - cross(u, u_rate) / 2) / (1 + (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) / 4)


_ANGULAR, _LINEAR = ("wx", "wy", "wz"), ("vx", "vy", "vz")

KINDS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        _Revolute("revolute", ("",), (True,), absorbs_turn=True),
        _Revolute("continuous", ("",), (True,), absorbs_turn=True),
        _Prismatic("prismatic", ("",), (False,)),
        _Helical("helical", ("",), (True,)),
        _Planar("planar", ("x", "y", "angle"), (False, False, True)),
        _Spherical("spherical", _ANGULAR, (True,) * 3),
        _Free("free", _ANGULAR + _LINEAR, (True,) * 3 + (False,) * 3),
        _Fixed("fixed", (), ()),
    )
}
"""Joint types by name."""
