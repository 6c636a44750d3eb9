"""Newton-Euler of trees in Khalil and Kleinfinger's six parameters: Khalil 2010.

In the letters of W. Khalil, "Dynamic modeling of
robots using recursive Newton-Euler techniques", ICINCO 2010 (equation numbers at the lines; a ``Form`` names those that
are to be as printed): the inverse model, and the direct model by matrices.

Frame j is on the axis of joint j. Inertial parameters M, MS, J are about O_j, in the axes of frame j.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Indices
from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector


class Robot(NamedTuple):
    """A tree."""

    antecedent: Indices  # (n,) a(j) counted from 0, -1 for the base; a link comes after its antecedent
    sigma: Indices  # (n,) 0 revolute, 1 prismatic
    gamma: Vector
    b: Vector
    alpha: Vector
    d: Vector
    theta: Vector  # (n,) the variable q_j adds to theta_j or to r_j
    r: Vector
    M: Vector  # (n,) masses
    MS: Matrix  # (n, 3) first moments
    J: Matrix  # (n, 3, 3) second moments about O_j
    Ia: Vector  # (n,) rotor inertias seen from the joint
    Fs: Vector  # (n,) Coulomb friction
    Fv: Vector  # (n,) viscous friction
    g: Vector  # gravity acceleration in the base's axes


class Base(NamedTuple):
    """The body at the root: its inertial parameters about O_0, its velocity and its acceleration minus gravity."""

    M: float
    MS: Vector
    J: Matrix
    w: Vector
    Vd: Vector  # (6,) classical acceleration of O_0 minus gravity, and rate of w


class Wrenches(NamedTuple):
    """Forces of the joints, and f_j, m_j of a(j) on link j at O_j."""

    Gamma: Vector
    f: Matrix
    m: Matrix


def hat(w: Vector) -> Matrix:
    """Return the matrix of the vector product, (24)."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def placement(gamma: float, b: float, alpha: float, d: float, theta: complex, r: complex) -> tuple[Matrix, Vector]:
    """Return iR_j and iP_j, (1): Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r)."""

    def about_z(angle: complex) -> Matrix:
        s, c = np.sin(angle), np.cos(angle)
        return np.array([[c, -s, 0 * s], [s, c, 0 * s], [0 * s, 0 * s, 1 + 0 * s]])

    s, c = np.sin(alpha), np.cos(alpha)
    tilt = about_z(gamma) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return tilt @ about_z(theta), tilt @ np.array([d, 0, r]) + np.array([0, 0, b])


def placements(robot: Robot, q: Vector) -> list[tuple[Matrix, Vector]]:
    """Return iR_j and iP_j of all joints."""
    theta, r = robot.theta + (1 - robot.sigma) * q, robot.r + robot.sigma * q
    table = zip(robot.gamma, robot.b, robot.alpha, robot.d, theta, r, strict=True)
    return [placement(*row) for row in table]


def inverse_dynamics(
    robot: Robot,
    q: Vector,
    qd: Vector,
    qdd: Vector,
    fe: Matrix | None = None,
    me: Matrix | None = None,
    form: Form = CORRECTED,
) -> Wrenches:
    """Return forces and reactions, (12): fe_j, me_j is link j on its environment."""
    return _recursion(robot, (q, qd, qdd), fe, me, None, form)[0]


def base_wrench(
    robot: Robot,
    base: Base,
    q: Vector,
    qd: Vector,
    qdd: Vector,
    fe: Matrix | None = None,
    me: Matrix | None = None,
) -> tuple[Wrenches, Vector]:
    """Return forces and reactions on a base that moves as given, and the wrench (6,) that it needs for it.

    The recursion goes on to j = 0 (section 7.1, first method). The wrench is zero for the motion of a free base.
    """
    return _recursion(robot, (q, qd, qdd), fe, me, base, CORRECTED)


def _recursion(
    robot: Robot,
    state: tuple[Vector, Vector, Vector],
    fe: Matrix | None,
    me: Matrix | None,
    base: Base | None,
    form: Form,
) -> tuple[Wrenches, Vector]:
    q, qd, qdd = state
    n, z, s = len(robot.M), np.array([0, 0, 1]), robot.sigma
    places = placements(robot, q)
    w, wd, Vd, U = list[Vector](), list[Vector](), list[Vector](), list[Matrix]()
    zero = np.zeros(3)
    root = (zero, zero, -robot.g, np.zeros((3, 3)))
    if base is not None:
        root = base.w, base.Vd[3:], base.Vd[:3], hat(base.Vd[3:]) + hat(base.w) @ hat(base.w)
    f, m = [], []
    for j in range(n):  # root to tips
        i = robot.antecedent[j]
        w_i, wd_i, Vd_i, U_i = (w[i], wd[i], Vd[i], U[i]) if i >= 0 else root
        R_j, P_j = places[j]
        jw_i = R_j.T @ w_i  # (18)
        w.append(form("18", jw_i + (1 - s[j]) * qd[j] * z, jw_i))  # (19)
        wd.append(R_j.T @ wd_i + (1 - s[j]) * (qdd[j] * z + np.cross(jw_i, qd[j] * z)))  # (20)
        Vd.append(R_j.T @ (Vd_i + U_i @ P_j) + s[j] * (qdd[j] * z + 2 * np.cross(jw_i, qd[j] * z)))  # (21)
        U.append(hat(form("U", wd[j], w[j])) + hat(w[j]) @ hat(w[j]))
        F = robot.M[j] * Vd[j] + U[j] @ robot.MS[j]  # (22)
        Mo = robot.J[j] @ wd[j] + np.cross(w[j], robot.J[j] @ w[j]) + np.cross(robot.MS[j], Vd[j])  # (23)
        f.append(F if fe is None else F + fe[j])  # (26)
        m.append(Mo if me is None else Mo + me[j])  # (27)
    f_0, m_0 = zero, zero
    if base is not None:
        w_0, wd_0, Vd_0, U_0 = root
        f_0 = base.M * Vd_0 + U_0 @ base.MS
        m_0 = base.J @ wd_0 + np.cross(w_0, base.J @ w_0) + np.cross(base.MS, Vd_0)
    for j in reversed(range(n)):  # tips to root
        i, (R_j, P_j) = robot.antecedent[j], places[j]
        if_j = R_j @ f[j]  # (28)
        im_j = R_j @ m[j] + np.cross(P_j, if_j)
        if i >= 0:
            f[i], m[i] = f[i] + if_j, m[i] + im_j  # (29), (30)
        else:
            f_0, m_0 = f_0 + if_j, m_0 + im_j
    joint = np.array([(s[j] * f[j] + (1 - s[j]) * m[j]) @ z for j in range(n)])
    Gamma = joint + robot.Ia * qdd + robot.Fs * np.sign(np.real(qd)) + robot.Fv * qd  # (31)
    return Wrenches(Gamma, np.array(f), np.array(m)), np.concatenate([f_0, m_0])


def direct_model(
    robot: Robot, q: Vector, qd: Vector, fe: Matrix | None = None, me: Matrix | None = None
) -> tuple[Matrix, Vector]:
    """Return (A, H) of Gamma = A qdd + H, (7), column by column from the inverse model (section 3.3.1)."""
    rest = np.zeros(len(robot.M))
    weightless = robot._replace(g=np.zeros(3))
    columns = [inverse_dynamics(weightless, q, rest, unit)[0] for unit in np.eye(len(rest))]
    return np.array(columns).T, inverse_dynamics(robot, q, qd, rest, fe, me)[0]
