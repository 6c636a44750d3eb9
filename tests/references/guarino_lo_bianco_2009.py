"""Joint forces and their rates in modified Denavit-Hartenberg frames, in the letters of C. Guarino Lo Bianco,
"Evaluation of generalized force derivatives by means of a recursive Newton-Euler approach", 2009 (equation numbers at
the lines; "corrected" where what is printed cannot be). The robot is that of ``luh_walker_paul``.

Rates of vectors are those that an observer at rest sees, in the axes of frame i.
"""

from typing import NamedTuple

import numpy as np

from references.luh_walker_paul import placement

z = np.array([0.0, 0.0, 1.0])


class Tip(NamedTuple):
    """What link N exerts on its environment at O_{N+1}, in frame N+1, which is fixed in link N."""

    R: np.ndarray  # of frame N+1 in frame N
    p: np.ndarray  # of O_{N+1} in frame N
    f: np.ndarray
    n: np.ndarray
    f_rate: np.ndarray
    n_rate: np.ndarray


def acceleration(w, gam, r):
    """What a point at r has more than the origin: (6), (7)."""
    return np.cross(gam, r) + np.cross(w, np.cross(w, r))


def jerk(w, gam, iota, r):
    """Its jerk: (8), (9)."""
    return np.cross(iota, r) + 2 * np.cross(gam, np.cross(w, r)) + np.cross(w, acceleration(w, gam, r))


def force_rates(robot, q, qd, qdd, qddd, tip=None):
    """Return (tau, tau', f, n, f', n'): f_i, n_i is link i-1 on link i at O_i, in frame i."""
    N = len(robot.m)
    R, p, d1, F, T, F_rate, T_rate, W = [], [], [], [], [], [], [], []
    w, gam, iota, a, j = np.zeros(3), np.zeros(3), np.zeros(3), -np.asarray(robot.g), np.zeros(3)
    for i in range(N):  # root to tip
        th, d = ((q[i], qd[i], qdd[i], qddd[i]), (0, 0, 0, 0))[:: 1 if robot.revolute[i] else -1]
        R_i, p_i = placement(robot.a[i], robot.alpha[i], robot.theta[i] + th[0], robot.d[i] + d[0])
        Rw, Rgam = R_i.T @ w, R_i.T @ gam
        a, j = R_i.T @ (a + acceleration(w, gam, p_i)), R_i.T @ (j + jerk(w, gam, iota, p_i))  # from the parent
        w = Rw + th[1] * z  # (3)
        gam = Rgam + np.cross(Rw, th[1] * z) + th[2] * z  # (4)
        iota = R_i.T @ iota + np.cross(Rgam, th[1] * z) + th[3] * z  # (5) corrected: the third rate of theta
        iota = iota + np.cross(Rw, 2 * th[2] * z + np.cross(Rw, th[1] * z))  # (5)
        a = a + 2 * np.cross(w, d[1] * z) + d[2] * z  # (6)
        j = j + d[3] * z + 3 * np.cross(Rgam, d[1] * z)  # (8) corrected: the third rate of d
        j = j + np.cross(Rw, 3 * d[2] * z + 3 * np.cross(Rw, d[1] * z))  # (8)
        m, c, inertia = robot.m[i], robot.c[i], robot.I[i]
        F.append(m * (a + acceleration(w, gam, c)))  # (7), (10)
        T.append(inertia @ gam + np.cross(w, inertia @ w))  # (11), N in the paper
        F_rate.append(m * (j + jerk(w, gam, iota, c)))  # (9), (12)
        turned = np.cross(w, inertia @ gam) + inertia @ np.cross(gam, w)
        T_rate.append(turned + inertia @ iota + np.cross(gam, inertia @ w) + np.cross(w, T[i]))  # (13)
        R.append(R_i), p.append(p_i), d1.append(d[1]), W.append(w)
    if tip is None:
        tip = Tip(np.eye(3), *np.zeros((5, 3)))
    f, n, f_rate, n_rate = np.zeros((4, N, 3), np.result_type(q, float))
    R, p, d1 = [*R, tip.R], [*p, tip.p], [*d1, 0.0]
    f_next, n_next, f_rate_next, n_rate_next = tip[2:]
    for i in reversed(range(N)):  # tip to root
        R_i, p_i, c, w = R[i + 1], p[i + 1], robot.c[i], W[i]
        Rf, Rf_rate = R_i @ f_next, R_i @ f_rate_next
        f[i] = Rf + F[i]  # (14)
        n[i] = R_i @ n_next + np.cross(c, F[i]) + np.cross(p_i, Rf) + T[i]  # (15)
        f_rate[i] = Rf_rate + F_rate[i]  # (16)
        n_rate[i] = R_i @ n_rate_next + np.cross(np.cross(w, c), F[i]) + np.cross(c, F_rate[i]) + T_rate[i]  # (17)
        p_rate = np.cross(w, p_i) + d1[i + 1] * R_i @ z  # (29)
        n_rate[i] += np.cross(p_rate, Rf) + np.cross(p_i, Rf_rate)  # (17) corrected: R f, not its rate
        f_next, n_next, f_rate_next, n_rate_next = f[i], n[i], f_rate[i], n_rate[i]
    felt, felt_rate = (np.where(robot.revolute[:, None], *pair) for pair in ((n, f), (n_rate, f_rate)))
    tau = felt @ z  # (18), (19)
    tau_rate = (felt_rate + np.cross(felt, W)) @ z  # (20), (21)
    return tau, tau_rate, f, n, f_rate, n_rate
