"""Newton-Euler of trees in Khalil and Kleinfinger's six parameters, in the letters of W. Khalil, "Dynamic modeling of
robots using recursive Newton-Euler techniques", ICINCO 2010 (equation numbers at the lines).

Frame j is on the axis of joint j. Inertial parameters M, MS, J are about O_j, in the axes of frame j.
"""

from typing import NamedTuple

import numpy as np


class Robot(NamedTuple):
    antecedent: np.ndarray  # (n,) a(j) counted from 0, -1 for the base; a link comes after its antecedent
    sigma: np.ndarray  # (n,) 0 revolute, 1 prismatic
    gamma: np.ndarray
    b: np.ndarray
    alpha: np.ndarray
    d: np.ndarray
    theta: np.ndarray  # (n,) the variable q_j adds to theta_j or to r_j
    r: np.ndarray
    M: np.ndarray  # (n,) masses
    MS: np.ndarray  # (n, 3) first moments
    J: np.ndarray  # (n, 3, 3) second moments about O_j
    Ia: np.ndarray  # (n,) rotor inertias seen from the joint
    Fs: np.ndarray  # (n,) Coulomb friction
    Fv: np.ndarray  # (n,) viscous friction
    g: np.ndarray  # gravity acceleration in the base's axes


def hat(w):
    """The matrix of the vector product, (24)."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def placement(gamma, b, alpha, d, theta, r):
    """iR_j and iP_j, (1): Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r)."""

    def about_z(angle):
        s, c = np.sin(angle), np.cos(angle)
        return np.array([[c, -s, 0 * s], [s, c, 0 * s], [0 * s, 0 * s, 1 + 0 * s]])

    s, c = np.sin(alpha), np.cos(alpha)
    tilt = about_z(gamma) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return tilt @ about_z(theta), tilt @ np.array([d, 0, r]) + np.array([0, 0, b])


def inverse_dynamics(robot, q, qd, qdd, fe=None, me=None):
    """Return (Gamma, f, m), (12): f_j, m_j is a(j) on link j at O_j; fe_j, me_j is link j on its environment."""
    n, z, s = len(robot.M), np.array([0, 0, 1]), robot.sigma
    P, R, w, wd, Vd, U = [], [], [], [], [], []
    zero = np.zeros(3)
    f, m = [], []
    for j in range(n):  # root to tips
        i = robot.antecedent[j]
        w_i, wd_i, Vd_i, U_i = (w[i], wd[i], Vd[i], U[i]) if i >= 0 else (zero, zero, -robot.g, np.zeros((3, 3)))
        theta, r = robot.theta[j] + (1 - s[j]) * q[j], robot.r[j] + s[j] * q[j]
        R_j, P_j = placement(robot.gamma[j], robot.b[j], robot.alpha[j], robot.d[j], theta, r)
        R.append(R_j), P.append(P_j)
        jw_i = R_j.T @ w_i  # (18)
        w.append(jw_i + (1 - s[j]) * qd[j] * z)  # (19)
        wd.append(R_j.T @ wd_i + (1 - s[j]) * (qdd[j] * z + np.cross(jw_i, qd[j] * z)))  # (20)
        Vd.append(R_j.T @ (Vd_i + U_i @ P_j) + s[j] * (qdd[j] * z + 2 * np.cross(jw_i, qd[j] * z)))  # (21)
        U.append(hat(wd[j]) + hat(w[j]) @ hat(w[j]))
        F = robot.M[j] * Vd[j] + U[j] @ robot.MS[j]  # (22)
        Mo = robot.J[j] @ wd[j] + np.cross(w[j], robot.J[j] @ w[j]) + np.cross(robot.MS[j], Vd[j])  # (23)
        f.append(F if fe is None else F + fe[j])  # (26)
        m.append(Mo if me is None else Mo + me[j])  # (27)
    for j in reversed(range(n)):  # tips to root
        i = robot.antecedent[j]
        if i >= 0:
            if_j = R[j] @ f[j]  # (28)
            f[i] = f[i] + if_j  # (29)
            m[i] = m[i] + R[j] @ m[j] + np.cross(P[j], if_j)  # (30)
    joint = np.array([(s[j] * f[j] + (1 - s[j]) * m[j]) @ z for j in range(n)])
    Gamma = joint + robot.Ia * qdd + robot.Fs * np.sign(np.real(qd)) + robot.Fv * qd  # (31)
    return Gamma, np.array(f), np.array(m)


def direct_model(robot, q, qd, fe=None, me=None):
    """Return (A, H) of Gamma = A qdd + H, (7), column by column from the inverse model (section 3.3.1)."""
    rest = np.zeros(len(robot.M))
    weightless = robot._replace(g=np.zeros(3))
    columns = [inverse_dynamics(weightless, q, rest, unit)[0] for unit in np.eye(len(rest))]
    return np.array(columns).T, inverse_dynamics(robot, q, qd, rest, fe, me)[0]
