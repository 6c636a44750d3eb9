"""Errata of the Lie-algebra notes."""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.reproduce.equations import lie
from torsor.reproduce.errata.erratum import Decision, compare, decide
from torsor.reproduce.samples import screws

STEP = 1e-30  # of complex steps


def _transform() -> Decision:
    data, robot, state = screws()
    return compare("4", robot.inverse_dynamics(*state), lambda form: lie.compact(data, *state, form=form).tau)


def _adjoint() -> Decision:
    data, robot, state = screws()
    return compare("6.2", robot.inverse_dynamics(*state), lambda form: lie.components(data, *state, form=form).tau)


def planar() -> tuple[lie.Robot, tuple[Array, Array, Array]]:
    """Return a planar arm of two 1 m, 1 kg bars that hangs along -y, and a state."""
    homes = np.array([np.eye(4), np.eye(4)])
    homes[:, 0, 3] = 0.5, 1.5
    axes = np.array([[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]], dtype=float)
    inertia = np.tile(np.diag([0.01, 0.08, 0.08]), (2, 1, 1))
    state = np.array([0.4, 0.7]), np.array([1.0, -0.6]), np.array([0.5, 0.3])
    return lie.Robot(homes, axes, np.ones(2), inertia, np.array([0, -9.81, 0.0])), state


def lagrange(state: tuple[Array, Array, Array]) -> Array:
    """Return the torques of the planar arm from its Lagrangian, in closed form."""
    (q1, q2), (v1, v2), (a1, a2) = state
    c2, h, inertia = np.cos(q2), 0.5 * np.sin(q2), 0.08 + 0.25
    M = np.array([[2 * inertia + 1 + c2, inertia + 0.5 * c2], [inertia + 0.5 * c2, inertia]])
    weight = 9.81 * np.array([1.5 * np.cos(q1) + 0.5 * np.cos(q1 + q2), 0.5 * np.cos(q1 + q2)])
    return np.array(M @ [a1, a2] + [-h * (2 * v1 * v2 + v2**2), h * v1**2] + weight)


def _two_link() -> Decision:
    data, state = planar()
    return compare("6.2", lagrange(state)[0], lambda form: lie.components(data, *state, form=form).tau[0])


def _vee(matrix: Array) -> Array:
    return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0], *matrix[:3, 3]])


def _body_velocity() -> Decision:
    data, _, _ = screws()
    A, home = np.array([0.0, 0.0, 1.0, 0.3, -0.2, 0.1]), data.M[0]
    T, rate = home @ lie.exp(A, 0.4), home @ lie.exp(A, 0.4 + 1j * STEP).imag / STEP
    return decide(A, _vee(np.linalg.inv(T) @ rate), _vee(rate @ np.linalg.inv(T)))


def _orders() -> Decision:
    data, theta, dtheta = two_links()
    motion = lie.compact(data, theta, dtheta, np.zeros(2))

    def spin(t: complex) -> Array:  # of link 2 in the space frame, along the motion without accelerations
        (A, T), q = lie.transforms(data, theta + dtheta * t), theta + dtheta * t
        w = T[1][:3, :3] @ A[0][:3] * dtheta[0] + A[1][:3] * dtheta[1]
        pose = lie.exp(data.S[0], q[0]) @ lie.exp(data.S[1], q[1]) @ data.M[1]
        return np.array(pose[:3, :3] @ w)

    R = (lie.exp(data.S[0], theta[0]) @ lie.exp(data.S[1], theta[1]) @ data.M[1])[:3, :3]
    truth = R.T @ spin(1j * STEP).imag / STEP
    z = lie.transforms(data, theta)[0][1][:3]
    return decide(truth, dtheta[1] * np.cross(motion.V[1, :3], z), np.zeros(3))


def _vectors() -> tuple[Array, Array]:
    """Return random rates (2,), and vectors R z_1, z_2, b_2, R b_1 and p (5, 3)."""
    return np.array([0.7, -1.3]), np.random.default_rng(6).normal(size=(6, 3))[:5]


def _gyroscopic() -> tuple[Array, Array, Array]:
    """Return the gyroscopic moment w x I w, and the sum of its terms as corrected and as printed, each (3,)."""
    (one, two), (Rz1, z2, *_) = _vectors()
    w, inertia = one * Rz1 + two * z2, np.diag([0.3, 0.5, 0.7]) + 0.05
    first, last = one**2 * np.cross(Rz1, inertia @ Rz1), one * two * np.cross(z2, inertia @ Rz1)
    corrected = first + one * two * np.cross(Rz1, inertia @ z2) + last + two**2 * np.cross(z2, inertia @ z2)
    return np.cross(w, inertia @ w), corrected, first + one * two * np.cross(Rz1, z2) + last


def _torque() -> Decision:
    z2 = _vectors()[1][1]
    return decide(*(z2 @ each for each in _gyroscopic()))


def _cross() -> Decision:
    (one, two), (Rz1, z2, b2, Rb1, p) = _vectors()
    v = np.cross(p, one * Rz1) + one * Rb1 + two * b2
    product = np.cross(np.cross(p, Rz1), z2)
    corrected = one * product + one * np.cross(Rb1, z2) + two * np.cross(b2, z2)
    printed = one * two * product + one * two * np.cross(Rz1, z2) + two**2 * np.cross(b2, z2)
    return decide(np.cross(v, z2), corrected, printed)


class Expansion(NamedTuple):
    """Vectors of sections 9 and 10 for the first two links: R = R_21, p = p_21, z_i and b_i of the screws A_i."""

    R: Array
    p: Array
    z1: Array
    b1: Array
    z2: Array
    b2: Array
    Rz1: Array


def expansion(data: lie.Robot, theta: Array) -> Expansion:
    """Return the vectors of section 10, for the first two joints, at a position of all joints."""
    A, T = lie.transforms(data, theta)
    (z1, b1), (z2, b2) = np.split(A[0], 2), np.split(A[1], 2)
    return Expansion(T[1][:3, :3], T[1][:3, 3], z1, b1, z2, b2, T[1][:3, :3] @ z1)


def two_links() -> tuple[lie.Robot, Array, Array]:
    """Return the first two revolute joints of the sample without gravity, and their angles and rates."""
    data, _, (theta, dtheta, _) = screws()
    data = data._replace(S=data.S[[0, 2]], M=data.M[:2], m=data.m[:2], I=data.I[:2], g=np.zeros(3))
    return data, theta[:2], dtheta[:2]


def _force() -> Decision:
    """Compare the part of f_2ᵀ b_2 that is quadratic in θ'_1: only joint 1 moves, without gravity."""
    data, theta, (one, _) = two_links()
    x, m2 = expansion(data, theta), data.m[1]
    motion = lie.compact(data, theta, np.array([one, 0.0]), np.zeros(2))
    product = np.cross(x.p, x.Rz1)
    first = np.cross(x.Rz1, product)
    corrected, printed = first + x.R @ np.cross(x.z1, x.b1), first + product
    return decide(motion.F[1, 3:] @ x.b2, *(m2 * one**2 * each @ x.b2 for each in (corrected, printed)))


def _transposed() -> Decision:
    T = screws().data.M[1]
    return decide(np.linalg.inv(lie.Ad(T)).T, lie.Ad(lie.inverse(T)).T, lie.Ad(T).T)


DECISIONS = {
    "section-4": _transform,
    "section-6.2": _adjoint,
    "section-8.2": _two_link,
    "section-3.1": _body_velocity,
    "section-9.1": _orders,
    "section-10.1": lambda: decide(*_gyroscopic()),
    "section-10.2": _cross,
    "section-10.3": _torque,
    "section-10.3-force": _force,
    "appendix": _transposed,
}
