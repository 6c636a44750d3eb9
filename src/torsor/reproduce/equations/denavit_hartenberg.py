"""Newton-Euler in standard Denavit-Hartenberg frames: chapter III of Barman 2020.

In the letters of S. Barman, "Recursive Newton-Euler dynamics and
sensitivity analysis for dynamic motion planning", Oklahoma State University 2020 (equation numbers at the lines).

Frame j is at the end of link j; joint j moves about or along z_{j-1}. Vectors of link j are in frame j. The centre of
mass is anywhere (r_j from O_j), which the thesis's l_j and d_Gj do not allow; g is the acceleration of a falling body,
so that eq. 3.67 has a minus.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Flags
from torsor.reproduce.equations.form import Matrix, Vector


class Robot(NamedTuple):
    """A standard Denavit-Hartenberg table with its masses."""

    revolute: Flags  # (n,) bool; else prismatic
    theta: Vector  # (n,) the variable q_j adds to theta_j or to d_j
    d: Vector
    a: Vector
    alpha: Vector
    r: Matrix  # (n, 3) centre of mass from O_j, in frame j
    m: Vector
    I: Matrix  # (n, 3, 3) about the centre of mass, in frame j  # noqa: E741
    g: Vector  # gravity acceleration, in frame 0


class Load(NamedTuple):
    """What link k (counted from 0) exerts on its environment, in axes of frame 0, at O_k + r_k (r_k in frame k)."""

    k: int
    F: Vector
    tau: Vector
    r: Vector


def rotation(theta: complex, alpha: float) -> Matrix:
    """R_j, eq. 2.10."""
    s, c, sa, ca = np.sin(theta), np.cos(theta), np.sin(alpha), np.cos(alpha)
    return np.array([[c, -ca * s, sa * s], [s, ca * c, -sa * c], [0 * s, sa, ca]])


def inverse_dynamics(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, load: Load | None = None
) -> tuple[Vector, Matrix, Matrix]:
    """Return (tau, Fp, Tp): Fp_j, Tp_j is the wrench of link j-1 on link j at O_{j-1}, in frame j."""
    n = len(robot.m)
    R, e, Dx, FG, DxG, tG, R0 = [], [], [], [], [], [], []
    w, wd, xdd, R_0 = np.zeros(3), np.zeros(3), np.zeros(3), np.eye(3)
    for j in range(n):  # root to tip
        turns = robot.revolute[j]
        theta, d = robot.theta[j] + turns * q[j], robot.d[j] + (1 - turns) * q[j]
        sa, ca = np.sin(robot.alpha[j]), np.cos(robot.alpha[j])
        R.append(rotation(theta, robot.alpha[j]))
        e.append(np.array([0, sa, ca]))  # R_j^T e_z, step 1g
        Dx.append(np.array([robot.a[j], d * sa, d * ca]))  # R_j^T times 2.11
        DxG.append(Dx[j] + robot.r[j])  # 3.2
        wp = R[j].T @ w  # 3.8
        Dw, slide = turns * qd[j] * e[j], (1 - turns) * qd[j] * e[j]  # 3.5
        w = wp + Dw  # 3.11
        wd = R[j].T @ wd + turns * qdd[j] * e[j] + np.cross(wp, Dw)  # 3.14, 3.17, 3.20
        xdd_p, push = R[j].T @ xdd, (1 - turns) * qdd[j] * e[j] + 2 * np.cross(w, slide)  # 3.47
        Dxdd, DxddG = (np.cross(wd, D) + np.cross(w, np.cross(w, D)) + push for D in (Dx[j], DxG[j]))  # 3.50, 3.56
        xdd, xddG = xdd_p + Dxdd, xdd_p + DxddG  # 3.53, 3.59
        R_0 = R_0 @ R[j]  # 3.62
        R0.append(R_0)
        H = robot.I[j] @ w  # 3.64
        FG.append(robot.m[j] * (xddG - R_0.T @ robot.g))  # 3.67
        tG.append(robot.I[j] @ wd + np.cross(w, H))  # 3.69
    Fp, Tp, Fd, Td = [np.zeros(3)] * n, [np.zeros(3)] * n, np.zeros(3), np.zeros(3)
    for j in reversed(range(n)):  # tip to root
        Fp[j] = Fd + FG[j]  # 3.74
        Tp[j] = Td + tG[j] + np.cross(Dx[j], Fd) + np.cross(DxG[j], FG[j])  # 3.82
        Fd, Td = R[j] @ Fp[j], R[j] @ Tp[j]  # 3.72, 3.80
    if load is not None:  # on top of the finished chain, from link k to the root
        k = load.k
        Fe, Te = R0[k].T @ load.F, R0[k].T @ load.tau  # 3.76, 3.88
        Te = Te + np.cross(load.r, Fe)  # 3.84, the lever from O_k
        for j in reversed(range(k + 1)):
            Te = Te + np.cross(Dx[j], Fe)  # 3.84
            Fp[j], Tp[j] = Fp[j] + Fe, Tp[j] + Te  # 3.78, 3.86, 3.90
            Fe, Te = R[j] @ Fe, R[j] @ Te
    tau = [e[j] @ (Tp[j] if robot.revolute[j] else Fp[j]) for j in range(n)]  # 3.92, 3.94
    return np.array(tau), np.array(Fp), np.array(Tp)
