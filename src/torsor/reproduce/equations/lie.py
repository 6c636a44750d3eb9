"""Newton-Euler dynamics in the Lie algebra se(3): the Lie-algebra notes.

The notation follows the notes "Recursive Newton-Euler Algorithm: Lie Algebra Formulation" (section numbers in
comments).

Twists are (omega, v), and wrenches are (n, f). Frame {i} is at the centre of mass of link i. Values are real, or
complex for complex steps.
As printed: "4" has T_{i,i+1} instead of T_{i,i-1}, and "6.2" has (R, p)_{i+1,i} instead of (R, p)_{i,i+1}.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector


class Robot(NamedTuple):
    """Screws and home poses."""

    M: Matrix  # (n, 4, 4) home poses M_{0,i} of the frames at the centres of mass
    S: Matrix  # (n, 6) screw axes in the space frame; revolute (z, -z x r), prismatic (0, z)
    m: Vector  # (n,) masses
    I: Matrix  # (n, 3, 3) inertias about the centres of mass, in the axes of {i}  # noqa: E741
    g: Vector  # gravity acceleration in the space frame


class Motion(NamedTuple):
    """Results of the recursion, each (n, ...)."""

    tau: Vector
    F: Matrix  # wrench of link i-1 on link i at {i}
    V: Matrix
    Vd: Matrix  # starts from (0, -g)


def skew(a: Vector) -> Matrix:
    """Return [a], section 3.1."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def inverse(T: Matrix) -> Matrix:
    """Return T^-1 of a pose."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R.T, (-R.T @ p)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def Ad(T: Matrix) -> Matrix:
    """Return [Ad_T], section 3.1."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def ad(V: Vector) -> Matrix:
    """Return [ad_V], section 3.2."""
    w, v = skew(V[:3]), skew(V[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def exp(A: Vector, theta: complex) -> Matrix:
    """Return the exponential of [A] theta for a unit screw A, revolute or prismatic: Rodrigues' formula."""
    w, v = skew(A[:3]), A[3:]
    s, c = np.sin(theta), np.cos(theta)
    R = np.eye(3) + s * w + (1 - c) * w @ w
    p = (theta * np.eye(3) + (1 - c) * w + (theta - s) * w @ w) @ v
    return np.block([[R, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def transforms(robot: Robot, theta: Vector, form: Form = CORRECTED) -> tuple[list[Vector], list[Matrix]]:
    """Return the screws A_i in {i} and T_{i,i-1}: steps 1 and 2 of section 4."""
    n, A, T = len(robot.m), [], []
    M = [np.eye(4), *robot.M, robot.M[-1]]  # {n+1} is {n}
    for i in range(1, n + 1):
        A.append(Ad(inverse(M[i])) @ robot.S[i - 1])  # step 1
        home = inverse(M[i]) @ form("4", M[i - 1], M[i + 1])  # 1.3: M_{i,i-1}
        T.append(exp(A[-1], -theta[i - 1]) @ home)  # step 2: T_{i,i-1}
    return A, T


def compact(
    robot: Robot, theta: Vector, dtheta: Vector, ddtheta: Vector, F_tip: ArrayLike | None = None, form: Form = CORRECTED
) -> Motion:
    """Return the motion in the compact form of section 4. Link n exerts the wrench F_tip on its environment."""
    n, V, Vd = len(robot.m), [], []
    A, T = transforms(robot, theta, form)
    V_0, Vd_0 = np.zeros(6), np.concatenate([np.zeros(3), -np.asarray(robot.g)])  # 8.3
    for i in range(n):  # root to tip
        V.append(Ad(T[i]) @ V_0 + A[i] * dtheta[i])  # 4, step 3
        Vd.append(Ad(T[i]) @ Vd_0 + ad(V[i]) @ A[i] * dtheta[i] + A[i] * ddtheta[i])  # 4, step 4
        V_0, Vd_0 = V[i], Vd[i]
    F, tau = [np.zeros(6)] * n, list[Any]([0.0]) * n
    F_next: Vector = np.zeros(6) if F_tip is None else np.asarray(F_tip)  # given in {n}: T_{n+1,n} = 1
    for i in reversed(range(n)):  # tip to root
        G = np.block([[robot.I[i], np.zeros((3, 3))], [np.zeros((3, 3)), robot.m[i] * np.eye(3)]])  # 6.1
        F[i] = F_next + G @ Vd[i] - ad(V[i]).T @ G @ V[i]  # 4, step 5
        tau[i] = F[i] @ A[i]  # 4, step 6
        F_next = Ad(T[i]).T @ F[i]
    return Motion(np.array(tau), np.array(F), np.array(V), np.array(Vd))


def components(robot: Robot, theta: Vector, dtheta: Vector, ddtheta: Vector, form: Form = CORRECTED) -> Motion:
    """Return the motion in component form: sections 5 to 7, without a load."""
    n, (A, T) = len(robot.m), transforms(robot, theta)
    w, v, wd, vd = np.zeros(3), np.zeros(3), np.zeros(3), -np.asarray(robot.g)  # 8.3
    V, Vd = [], []
    for i in range(n):  # root to tip
        R, p, z, b = T[i][:3, :3], T[i][:3, 3], A[i][:3], A[i][3:]  # 5.2
        v = np.cross(p, R @ w) + R @ v + dtheta[i] * b  # 5.3
        w_i = R @ w + dtheta[i] * z
        vd = np.cross(p, R @ wd) + R @ vd + dtheta[i] * (np.cross(v, z) + np.cross(w_i, b)) + ddtheta[i] * b  # 5.4
        wd = R @ wd + dtheta[i] * np.cross(w_i, z) + ddtheta[i] * z
        w = w_i
        V.append(np.concatenate([w, v]))
        Vd.append(np.concatenate([wd, vd]))
    F, tau, moment, force = [np.zeros(6)] * n, list[Any]([0.0]) * n, np.zeros(3), np.zeros(3)
    for i in reversed(range(n)):  # tip to root
        (w, v), (wd, vd) = np.split(V[i], 2), np.split(Vd[i], 2)
        inertia = robot.I[i]
        n_i = moment + inertia @ wd + np.cross(w, inertia @ w)  # 6.2
        f_i = force + robot.m[i] * (vd + np.cross(w, v))
        F[i], tau[i] = np.concatenate([n_i, f_i]), n_i @ A[i][:3] + f_i @ A[i][3:]  # 7
        link = form("6.2", inverse(T[i]), T[i])  # (R, p)_{i-1,i}
        R, p = link[:3, :3], link[:3, 3]
        moment, force = R @ n_i + np.cross(p, R @ f_i), R @ f_i
    return Motion(np.array(tau), np.array(F), np.array(V), np.array(Vd))
