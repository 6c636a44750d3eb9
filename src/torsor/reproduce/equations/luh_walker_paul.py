"""Newton-Euler of Luh, Walker and Paul in modified Denavit-Hartenberg frames: Guarino Lo Bianco 2009.

In the letters of C. Guarino Lo Bianco,
"Evaluation of generalized force derivatives by means of a recursive Newton-Euler approach", 2009 (equation numbers at
the lines). Forces only, not their rates.

Frame i is on the axis of joint i; it follows from frame i-1 by Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Flags
from torsor.reproduce.equations.form import Matrix, Vector


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
    """Rotation and origin of frame i+1 in frame i."""
    s, c, sa, ca = np.sin(theta), np.cos(theta), np.sin(alpha), np.cos(alpha)
    R = np.array([[c, -s, 0 * s], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]])
    return R, np.array([a, -sa * d, ca * d])


def inverse_dynamics(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, f_tip: ArrayLike | None = None, n_tip: ArrayLike | None = None
) -> tuple[Vector, Matrix, Matrix]:
    """Return (tau, f, n): f_i, n_i is link i-1 on link i at O_i; f_tip, n_tip is link N on its environment, at O_N."""
    N, z = len(robot.m), np.array([0, 0, 1])
    R, p, F, T = list[Matrix](), list[Vector](), [], []
    w, gam, acc = np.zeros(3), np.zeros(3), -np.asarray(robot.g)
    for i in range(N):  # root to tip
        th, d = (q[i], 0) if robot.revolute[i] else (0, q[i])
        th1, d1 = (qd[i], 0) if robot.revolute[i] else (0, qd[i])
        th2, d2 = (qdd[i], 0) if robot.revolute[i] else (0, qdd[i])
        R_i, p_i = placement(robot.a[i], robot.alpha[i], robot.theta[i] + th, robot.d[i] + d)
        R, p = [*R, R_i], [*p, p_i]
        acc = R_i.T @ (acc + np.cross(gam, p_i) + np.cross(w, np.cross(w, p_i)))  # (6), what the parent gives
        Rw = R_i.T @ w
        w = Rw + th1 * z  # (3)
        gam = R_i.T @ gam + np.cross(Rw, th1 * z) + th2 * z  # (4)
        acc = acc + 2 * np.cross(w, d1 * z) + d2 * z  # (6), what the joint adds
        acc_c = acc + np.cross(gam, robot.c[i]) + np.cross(w, np.cross(w, robot.c[i]))  # (7)
        F.append(robot.m[i] * acc_c)  # (10)
        T.append(robot.I[i] @ gam + np.cross(w, robot.I[i] @ w))  # (11), N in the paper
    f, n = [np.zeros(3)] * N, [np.zeros(3)] * N
    f_next, n_next = (np.zeros(3) if tip is None else np.asarray(tip) for tip in (f_tip, n_tip))  # at O_N, in its axes
    p_next = np.zeros(3)
    for i in reversed(range(N)):  # tip to root
        f[i] = f_next + F[i]  # (14)
        n[i] = n_next + np.cross(robot.c[i], F[i]) + np.cross(p_next, f_next) + T[i]  # (15)
        f_next, n_next, p_next = R[i] @ f[i], R[i] @ n[i], p[i]
    tau = [(n[i] if robot.revolute[i] else f[i]) @ z for i in range(N)]  # (18), (19)
    return np.array(tau), np.array(f), np.array(n)
