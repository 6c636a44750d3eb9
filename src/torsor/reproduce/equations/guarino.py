"""Joint forces and their rates in modified Denavit-Hartenberg frames: Guarino Lo Bianco 2009.

The notation is that of C. Guarino Lo Bianco, "Evaluation of generalized force derivatives by means of a recursive
Newton-Euler approach", 2009 (equation numbers in comments; a ``Form`` names those evaluated as printed).

Frame i is on the axis of joint i; it is obtained from frame i-1 by Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d).
Rates of vectors are relative to an inertial frame, expressed in frame i.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Flags
from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector, cross


class Robot(NamedTuple):
    """A modified Denavit-Hartenberg table with its masses."""

    revolute: Flags  # (n,) bool; else prismatic
    a: Vector  # (n,) a and alpha lead from frame i-1 to frame i: those of row i-1 in the paper's tables
    alpha: Vector
    theta: Vector  # (n,) the variable q_i adds to theta_i or to d_i
    d: Vector
    m: Vector
    c: Matrix  # (n, 3) centre of mass in frame i
    I: Matrix  # (n, 3, 3) about the centre of mass, in the axes of frame i  # noqa: E741
    g: Vector  # gravity acceleration, in frame 0


def placement(a: float, alpha: float, theta: complex, d: complex) -> tuple[Matrix, Vector]:
    """Return the rotation and origin of frame i+1 in frame i."""
    s, c, sa, ca = np.sin(theta), np.cos(theta), np.sin(alpha), np.cos(alpha)
    R = np.array([[c, -s, 0 * s], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]])
    return R, np.array([a, -sa * d, ca * d])


def inverse_dynamics(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, f_tip: ArrayLike | None = None, n_tip: ArrayLike | None = None
) -> tuple[Vector, Matrix, Matrix]:
    """Return (tau, f, n) without rates; link N exerts f_tip, n_tip on its environment, at O_N."""
    f, n = (np.zeros(3) if tip is None else np.asarray(tip) for tip in (f_tip, n_tip))
    rates = force_rates(robot, q, qd, qdd, np.zeros(len(q)), Tip(np.eye(3), np.zeros(3), f, n, *np.zeros((2, 3))))
    return rates.tau, rates.f, rates.n


z = np.array([0.0, 0.0, 1.0])


class Tip(NamedTuple):
    """The wrench that link N exerts on its environment at O_{N+1}, in frame N+1, which is fixed to link N."""

    R: Matrix  # of frame N+1 in frame N
    p: Vector  # of O_{N+1} in frame N
    f: Vector
    n: Vector
    f_rate: Vector
    n_rate: Vector


def acceleration(w: Vector, gam: Vector, r: Vector) -> Vector:
    """Return the acceleration of a point at r minus that of the origin: (6), (7)."""
    return cross(gam, r) + cross(w, cross(w, r))


def jerk(w: Vector, gam: Vector, iota: Vector, r: Vector) -> Vector:
    """Return the jerk of a point at r minus that of the origin: (8), (9)."""
    value: Vector = cross(iota, r) + 2 * cross(gam, cross(w, r)) + cross(w, acceleration(w, gam, r))
    return value


class Rates(NamedTuple):
    """Joint forces and their rates; link i-1 exerts f_i, n_i on link i at O_i, in frame i."""

    tau: Vector
    tau_rate: Vector
    f: Matrix
    n: Matrix
    f_rate: Matrix
    n_rate: Matrix


def force_rates(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, qddd: Vector, tip: Tip | None = None, form: Form = CORRECTED
) -> Rates:
    """Return forces, reactions and their rates: (3) to (21)."""
    N = len(robot.m)
    R, p, d1, W = list[Matrix](), list[Vector](), list[float](), list[Vector]()
    F, T, F_rate, T_rate = [], [], [], []
    w, gam, iota, a, j = np.zeros(3), np.zeros(3), np.zeros(3), -np.asarray(robot.g), np.zeros(3)
    for i in range(N):  # root to tip
        th, d = ((q[i], qd[i], qdd[i], qddd[i]), (0, 0, 0, 0))[:: 1 if robot.revolute[i] else -1]
        R_i, p_i = placement(robot.a[i], robot.alpha[i], robot.theta[i] + th[0], robot.d[i] + d[0])
        Rw, Rgam = R_i.T @ w, R_i.T @ gam
        a, j = R_i.T @ (a + acceleration(w, gam, p_i)), R_i.T @ (j + jerk(w, gam, iota, p_i))  # from the parent
        w = Rw + th[1] * z  # (3)
        gam = Rgam + cross(Rw, th[1] * z) + th[2] * z  # (4)
        iota = R_i.T @ iota + cross(Rgam, th[1] * z) + form("5", th[3], th[2]) * z  # (5)
        iota = iota + cross(Rw, 2 * th[2] * z + cross(Rw, th[1] * z))  # (5)
        a = a + 2 * cross(w, d[1] * z) + d[2] * z  # (6)
        j = j + form("8", d[3], d[2]) * z + 3 * cross(Rgam, d[1] * z)  # (8)
        j = j + cross(Rw, 3 * d[2] * z + 3 * cross(Rw, d[1] * z))  # (8)
        m, c, inertia = robot.m[i], robot.c[i], robot.I[i]
        F.append(m * (a + acceleration(w, gam, c)))  # (7), (10)
        T.append(inertia @ gam + cross(w, inertia @ w))  # (11), N in the paper
        F_rate.append(m * (j + jerk(w, gam, iota, c)))  # (9), (12)
        turned = cross(w, inertia @ gam) + inertia @ cross(gam, w)
        T_rate.append(turned + inertia @ iota + cross(gam, inertia @ w) + cross(w, T[i]))  # (13)
        R, p, d1, W = [*R, R_i], [*p, p_i], [*d1, d[1]], [*W, w]
    if tip is None:
        tip = Tip(np.eye(3), *np.zeros((5, 3)))
    f, n, f_rate, n_rate = np.zeros((4, N, 3), np.result_type(q, qd, qdd, float))
    R, p, d1 = [*R, tip.R], [*p, tip.p], [*d1, 0.0]
    f_next, n_next, f_rate_next, n_rate_next = tip[2:]
    for i in reversed(range(N)):  # tip to root
        R_i, p_i, c, w = R[i + 1], p[i + 1], robot.c[i], W[i]
        Rf, Rf_rate = R_i @ f_next, R_i @ f_rate_next
        f[i] = Rf + F[i]  # (14)
        n[i] = R_i @ n_next + cross(c, F[i]) + cross(p_i, Rf) + T[i]  # (15)
        f_rate[i] = Rf_rate + F_rate[i]  # (16)
        n_rate[i] = R_i @ n_rate_next + cross(cross(w, c), F[i]) + cross(c, F_rate[i]) + T_rate[i]  # (17)
        p_rate = cross(w, p_i) + d1[i + 1] * R_i @ z  # (29)
        n_rate[i] += cross(p_rate, form("17", Rf, Rf_rate)) + cross(p_i, Rf_rate)  # (17)
        f_next, n_next, f_rate_next, n_rate_next = f[i], n[i], f_rate[i], n_rate[i]
    felt, felt_rate = (np.where(robot.revolute[:, None], *pair) for pair in ((n, f), (n_rate, f_rate)))
    tau_rate = (felt_rate + np.cross(felt, W)) @ z  # (20), (21)
    tau = form("19", felt @ z, np.where(robot.revolute, felt @ z, tau_rate))  # (18), (19)
    return Rates(tau, tau_rate, f, n, f_rate, n_rate)
