"""Newton-Euler in the Lie algebra se(3), in the letters of the notes "Recursive Newton-Euler Algorithm: Lie Algebra
Formulation" (section numbers at the lines), with the transforms T_{i,i-1} and T_{i,i+1} where they belong.

Twists are (omega, v), wrenches (n, f); frame {i} is at the centre of mass of link i. Real or complex (complex step).
"""

from typing import NamedTuple

import numpy as np


class Robot(NamedTuple):
    M: np.ndarray  # (n, 4, 4) home poses M_{0,i} of the frames at the centres of mass
    S: np.ndarray  # (n, 6) screw axes in the space frame; revolute (z, -z x r), prismatic (0, z)
    m: np.ndarray  # (n,) masses
    I: np.ndarray  # (n, 3, 3) inertias about the centres of mass, in the axes of {i}  # noqa: E741
    g: np.ndarray  # gravity acceleration in the space frame


def skew(a):
    """[a], section 3.1."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def inverse(T):
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R.T, (-R.T @ p)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def Ad(T):
    """[Ad_T], section 3.1."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def ad(V):
    """[ad_V], section 3.2."""
    w, v = skew(V[:3]), skew(V[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def exp(A, theta):
    """exp([A] theta) for a unit revolute or prismatic screw A: Rodrigues' formula."""
    w, v = skew(A[:3]), A[3:]
    s, c = np.sin(theta), np.cos(theta)
    R = np.eye(3) + s * w + (1 - c) * w @ w
    p = (theta * np.eye(3) + (1 - c) * w + (theta - s) * w @ w) @ v
    return np.block([[R, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def inverse_dynamics(robot, theta, dtheta, ddtheta, F_tip=None):
    """Return (tau, F, V). F_i is the wrench of link i-1 on link i at {i}; F_tip that of link n on its environment."""
    n = len(robot.m)
    A, T, V, Vd = [], [], [], []
    M_0, V_0, Vd_0 = np.eye(4), np.zeros(6), np.concatenate([np.zeros(3), -np.asarray(robot.g)])  # 8.3
    for i in range(n):  # root to tip
        M = inverse(robot.M[i]) @ M_0  # 1.3: M_{i,i-1}
        A.append(Ad(inverse(robot.M[i])) @ robot.S[i])  # 4, step 1
        T.append(exp(A[i], -theta[i]) @ M)  # 4, step 2: T_{i,i-1}
        V.append(Ad(T[i]) @ V_0 + A[i] * dtheta[i])  # 4, step 3
        Vd.append(Ad(T[i]) @ Vd_0 + ad(V[i]) @ A[i] * dtheta[i] + A[i] * ddtheta[i])  # 4, step 4
        M_0, V_0, Vd_0 = robot.M[i], V[i], Vd[i]
    F, tau = [None] * n, [None] * n
    F_next = np.zeros(6) if F_tip is None else np.asarray(F_tip)  # given in {n}: T_{n+1,n} = 1
    for i in reversed(range(n)):  # tip to root
        G = np.block([[robot.I[i], np.zeros((3, 3))], [np.zeros((3, 3)), robot.m[i] * np.eye(3)]])  # 6.1
        F[i] = F_next + G @ Vd[i] - ad(V[i]).T @ G @ V[i]  # 4, step 5
        tau[i] = F[i] @ A[i]  # 4, step 6
        F_next = Ad(T[i]).T @ F[i]
    return np.array(tau), np.array(F), np.array(V)
