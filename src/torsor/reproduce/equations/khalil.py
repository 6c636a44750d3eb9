"""Newton-Euler dynamics of trees in Khalil and Kleinfinger's six parameters: Khalil 2010.

The notation follows W. Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", ICINCO 2010
(equation numbers in comments; a ``Form`` names those evaluated as printed). The module contains inverse dynamics,
forward dynamics by matrices and by recursion, elastic joints, and a moving base.

Frame j is on the axis of joint j. Inertial parameters M, MS, J are about O_j, in the axes of frame j. Twists are
(V, w), wrenches (f, m).
"""

from collections.abc import Sequence
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
    """The root body: inertial parameters about O_0, velocity, acceleration minus gravity, load on the environment."""

    M: float
    MS: Vector
    J: Matrix
    w: Vector
    Vd: Vector  # (6,) classical acceleration of O_0 minus gravity, and rate of w
    fe: Vector = np.zeros(6)

    @property
    def beta(self) -> Vector:
        """The terms of (90) and (102) for j = 0."""
        return velocity_wrench(self.w, self.MS, self.J) - self.fe


class Wrenches(NamedTuple):
    """Joint forces, and f_j, m_j exerted by a(j) on link j at O_j."""

    Gamma: Vector
    f: Matrix
    m: Matrix


def hat(w: Vector) -> Matrix:
    """Return the cross-product matrix, (24)."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def placement(gamma: float, b: float, alpha: float, d: float, theta: complex, r: complex) -> tuple[Matrix, Vector]:
    """Return iR_j and iP_j, (1): Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r)."""

    def about_z(angle: complex) -> Matrix:
        s, c = np.sin(angle), np.cos(angle)
        return np.array([[c, -s, 0 * s], [s, c, 0 * s], [0 * s, 0 * s, 1 + 0 * s]])

    s, c = np.sin(alpha), np.cos(alpha)
    tilt = about_z(gamma) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return tilt @ about_z(theta), tilt @ np.array([d, 0, r]) + np.array([0, 0, b])


def six_parameters(R: Matrix, P: Vector) -> Vector:
    """Return gamma, b, alpha, d, theta, r of a placement: the inverse of (1)."""
    s, c = np.hypot(R[0, 2], R[1, 2]), R[2, 2]
    is_parallel = s < 1e-9
    gamma = np.arctan2(P[1], P[0]) if is_parallel else np.arctan2(R[0, 2], -R[1, 2])
    x = np.array([np.cos(gamma), np.sin(gamma), 0.0])  # the common normal
    y = np.array([-x[1], x[0], 0.0])
    theta = np.arctan2(-(x @ R[:, 1]), x @ R[:, 0])
    r = 0.0 if is_parallel else -(y @ P) / s
    return np.array([gamma, P[2] - c * r, np.arctan2(s, c), x @ P, theta, r])


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
    base: Base | None = None,
) -> Wrenches:
    """Return forces and reactions, (12), for a prescribed base motion; link j exerts fe_j, me_j on its environment."""
    n, z, s = len(robot.M), np.array([0, 0, 1]), robot.sigma
    places = placements(robot, q)
    w, wd, Vd, U = list[Vector](), list[Vector](), list[Vector](), list[Matrix]()
    root = (np.zeros(3), np.zeros(3), -robot.g, np.zeros((3, 3)))
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
    for j in reversed(range(n)):  # tips to root
        i, (R_j, P_j) = robot.antecedent[j], places[j]
        if i >= 0:
            if_j = R_j @ f[j]  # (28)
            f[i], m[i] = f[i] + if_j, m[i] + R_j @ m[j] + np.cross(P_j, if_j)  # (29), (30)
    joint = np.array([(s[j] * f[j] + (1 - s[j]) * m[j]) @ z for j in range(n)])
    Gamma = joint + robot.Ia * qdd + robot.Fs * np.sign(np.real(qd)) + robot.Fv * qd  # (31)
    return Wrenches(Gamma, np.array(f), np.array(m))


def base_wrench(
    robot: Robot, base: Base, q: Vector, qd: Vector, qdd: Vector, fe: Matrix | None = None, me: Matrix | None = None
) -> tuple[Wrenches, Vector]:
    """Return forces and reactions for a prescribed base motion, and the wrench (6,) that the base requires.

    The recursion continues to j = 0 (section 7.1, first method). The wrench is zero for the motion of a free base.
    """
    wrenches = inverse_dynamics(robot, q, qd, qdd, fe, me, base=base)
    wrench = spatial_inertia(base.M, base.MS, base.J) @ base.Vd - base.beta  # (9)
    for j, (R, P) in enumerate(placements(robot, q)):
        if robot.antecedent[j] < 0:
            f = R @ wrenches.f[j]
            wrench = wrench + np.concatenate([f, R @ wrenches.m[j] + np.cross(P, f)])
    return wrenches, wrench


def direct_model(
    robot: Robot, q: Vector, qd: Vector, fe: Matrix | None = None, me: Matrix | None = None
) -> tuple[Matrix, Vector]:
    """Return (A, H) of Gamma = A qdd + H, (7), column by column from inverse dynamics (section 3.3.1)."""
    rest = np.zeros(len(robot.M))
    weightless = robot._replace(g=np.zeros(3))
    columns = [inverse_dynamics(weightless, q, rest, unit)[0] for unit in np.eye(len(rest))]
    return np.array(columns).T, inverse_dynamics(robot, q, qd, rest, fe, me)[0]


class Direct(NamedTuple):
    """Joint accelerations, reactions (6,) of a(j) on link j, and accelerations of base and links minus gravity."""

    qdd: Vector
    f: Matrix
    Vd_0: Vector
    Vd: Matrix


class Inverse(NamedTuple):
    """Joint forces and accelerations, base acceleration minus gravity, and betac_0 of a free base."""

    Gamma: Vector
    qdd: Vector
    Vd_0: Vector
    beta_0: Vector


class Pass:
    """The first forward computation: jT_i, gamma_j, beta_j, J_j and a_j of all links, (13) to (17), (34), (35)."""

    def __init__(
        self, robot: Robot, q: Vector, qd: Vector, fe: Matrix, w_0: Vector | None = None, form: Form = CORRECTED
    ) -> None:
        self.robot, self.form, n = robot, form, len(robot.M)
        self.T, self.gamma, self.beta, self.J, self.a = [], list[Vector](), [], [], []
        w: list[Vector] = []
        for j, (R, P) in enumerate(placements(robot, q)):
            i, s = robot.antecedent[j], robot.sigma[j]
            w_i = w[i] if i >= 0 else np.zeros(3) if w_0 is None else w_0
            jw_i, rate = R.T @ w_i, np.array([0, 0, qd[j]])
            w.append(jw_i + (1 - s) * rate)
            self.T.append(np.block([[R.T, -R.T @ hat(P)], [np.zeros((3, 3)), R.T]]))  # (17)
            bent = R.T @ np.cross(w_i, np.cross(w_i, P)) + 2 * s * np.cross(jw_i, rate)
            self.gamma.append(np.concatenate([bent, (1 - s) * np.cross(form("15", jw_i, w_i), rate)]))  # (15), (34)
            self.a.append(np.array([0, 0, s, 0, 0, 1 - s]))  # (16)
            self.J.append(spatial_inertia(robot.M[j], robot.MS[j], robot.J[j]))
            self.beta.append(velocity_wrench(w[j], robot.MS[j], robot.J[j]) - fe[j])  # (33), (35)
        self.order = range(n)

    def of_antecedent(self, j: int, Vd: Sequence[Vector], Vd_0: Vector, place: str) -> Vector:
        """Return jT_i Vd_i, in which jT_i is missing in some printed equations, and transposed in (79) to (81)."""
        i = self.robot.antecedent[j]
        before = Vd[i] if i >= 0 else Vd_0
        return self.form(place, self.T[j] @ before, self.T[j].T @ before if place == "79" else before)


def spatial_inertia(M: float, MS: Vector, J: Matrix) -> Matrix:
    """Return J_j (6, 6), (11)."""
    return np.block([[M * np.eye(3), -hat(MS)], [hat(MS), J]])


def velocity_wrench(w: Vector, MS: Vector, J: Matrix) -> Vector:
    """Return the negative of the terms of (9) other than J Vd."""
    return -np.concatenate([np.cross(w, np.cross(w, MS)), np.cross(w, J @ w)])


def gravity_twist(robot: Robot) -> Vector:
    """Return the acceleration of a base at rest: (-g, 0)."""
    return np.concatenate([-robot.g, np.zeros(3)])


def direct_dynamics(
    robot: Robot, q: Vector, qd: Vector, Gamma: Vector, fe: Matrix, base: Base | None = None, form: Form = CORRECTED
) -> Direct:
    """Return the accelerations: (32) to (44), and with a free base (101) to (112). fe (n, 6) acts on the environment.

    The acceleration of ``base`` is not used.
    """
    step = Pass(robot, q, qd, fe, None if base is None else base.w, form)
    n, J, beta = len(robot.M), list(step.J), list(step.beta)
    J_0, beta_0 = np.zeros((6, 6)), np.zeros(6)
    if base is not None:
        J_0, beta_0 = spatial_inertia(base.M, base.MS, base.J), base.beta
    own = [*J], [*beta], J_0, beta_0
    tau = Gamma - robot.Fs * np.sign(qd) - robot.Fv * qd  # (44), (106)
    H, K, alpha = np.zeros(n), [np.zeros((6, 6))] * n, [np.zeros(6)] * n
    for j in reversed(step.order):
        a, T, i = step.a[j], step.T[j], robot.antecedent[j]
        H[j] = a @ J[j] @ a + robot.Ia[j]  # (36), (103)
        K[j] = J[j] - np.outer(J[j] @ a, a @ J[j]) / H[j]  # (37), (104)
        alpha[j] = K[j] @ step.gamma[j] + J[j] @ a * (tau[j] + a @ beta[j]) / H[j] - beta[j]  # (38), (107)
        alpha[j] = form("107", alpha[j], np.zeros(6))
        if i >= 0:  # (39), (40), (105), (108); as printed in section 7.3, one child replaces another
            J[i] = form("105", J[i], own[0][i]) + T.T @ K[j] @ T
            beta[i] = form("105", beta[i], own[1][i]) - T.T @ alpha[j]
        else:
            J_0, beta_0 = J_0 + T.T @ K[j] @ T, beta_0 - T.T @ alpha[j]
    Vd_0 = gravity_twist(robot) if base is None else np.linalg.solve(J_0, beta_0)  # (109)
    Vd, f, qdd = [np.zeros(6)] * n, [np.zeros(6)] * n, np.zeros(n)
    place = "41" if base is None else "110"
    for j in step.order:
        moved, a, i = step.of_antecedent(j, Vd, Vd_0, place), step.a[j], robot.antecedent[j]
        gamma = form("41 gamma", step.gamma[j], step.gamma[i] if i >= 0 else np.zeros(6))
        qdd[j] = (-a @ J[j] @ (moved + gamma) + tau[j] + a @ beta[j]) / H[j]  # (41), (110)
        f[j] = K[j] @ moved + alpha[j]  # (42), (111)
        Vd[j] = moved + a * qdd[j] + step.gamma[j]  # (43), (112)
    return Direct(qdd, np.array(f), Vd_0, np.array(Vd))


def elastic_inverse(
    robot: Robot,
    q: Vector,
    qd: Vector,
    qdd: Vector,
    fe: Matrix,
    K_spring: Vector,
    deflection: Vector,
    form: Form = CORRECTED,
) -> Inverse:
    """Return the inverse dynamics of section 6.3, without friction. Joint j is elastic if K_spring_j > 0."""
    step, n, is_elastic = Pass(robot, q, qd, fe, form=form), len(robot.M), K_spring > 0
    J, beta, H = list(step.J), list(step.beta), np.zeros(n)
    K, alpha = [np.zeros((6, 6))] * n, [np.zeros(6)] * n
    for j in reversed(step.order):
        a, T, i = step.a[j], step.T[j], robot.antecedent[j]
        if is_elastic[j]:
            H[j] = a @ J[j] @ a  # (72)
            K[j] = J[j] - np.outer(J[j] @ a, a @ J[j]) / H[j]  # (73)
            pull = -K_spring[j] * deflection[j] + a @ beta[j]
            alpha[j] = K[j] @ step.gamma[j] + J[j] @ a * pull / H[j] - beta[j]  # (74)
        else:
            K[j] = J[j]  # (75)
            alpha[j] = K[j] @ step.gamma[j] + J[j] @ a * qdd[j] - beta[j]  # (76)
        if i >= 0:
            beta[i], J[i] = beta[i] - T.T @ alpha[j], J[i] + T.T @ K[j] @ T  # (77), (78)
    Vd, accelerations, Gamma, Vd_0 = [np.zeros(6)] * n, np.array(qdd, dtype=float), np.zeros(n), gravity_twist(robot)
    for j in step.order:
        moved, a = step.of_antecedent(j, Vd, Vd_0, "79"), step.a[j]
        f = K[j] @ moved + alpha[j]  # (79)
        if is_elastic[j]:
            pull = -K_spring[j] * deflection[j] + a @ beta[j]
            accelerations[j] = (-a @ J[j] @ (moved + step.gamma[j]) + pull) / H[j]  # (80)
            Vd[j] = moved + a * accelerations[j] + step.gamma[j]  # (81)
        else:
            Vd[j] = form("81", moved + a * accelerations[j] + step.gamma[j], moved)  # (81), for every joint
            Gamma[j] = f @ a + robot.Ia[j] * accelerations[j]  # (82)
    return Inverse(Gamma, accelerations, Vd_0, np.zeros(6))


def moving_base_inverse(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, fe: Matrix, base: Base, form: Form = CORRECTED
) -> Inverse:
    """Return the inverse dynamics with a free base: (89) to (100). The acceleration of ``base`` is not used."""
    step = Pass(robot, q, qd, fe, base.w, form)
    n = len(robot.M)
    zeta = [step.gamma[j] + step.a[j] * qdd[j] for j in range(n)]  # (89)
    Jc, betac = list(step.J), list(step.beta)  # (90)
    J_0 = spatial_inertia(base.M, base.MS, base.J)
    beta_0 = base.beta
    if "95" in form.printed:  # Jc_j = Jc_j + ..., and only Jc_n has a start: that of a tip
        inner = set(robot.antecedent.tolist())
        Jc = [np.zeros((6, 6)) if j in inner else each for j, each in enumerate(Jc)]
        J_0 = np.zeros((6, 6))
    for j in reversed(step.order):
        T, i = step.T[j], robot.antecedent[j]
        of_child = T.T @ (betac[j] - Jc[j] @ zeta[j])  # (96)
        of_child = form("96", of_child, -of_child)
        if i >= 0:
            Jc[i], betac[i] = Jc[i] + T.T @ Jc[j] @ T, betac[i] + of_child  # (95), (96)
        else:
            J_0, beta_0 = J_0 + T.T @ Jc[j] @ T, beta_0 + of_child
    Vd_0, Vd, Gamma = np.linalg.solve(J_0, beta_0), list[Vector](), np.zeros(n)  # (97)
    for j in step.order:
        Vd.append(step.of_antecedent(j, Vd, Vd_0, "98") + zeta[j])  # (98)
        f = Jc[j] @ Vd[j] - betac[j]  # (99)
        friction = robot.Fs[j] * np.sign(qd[j]) + robot.Fv[j] * qd[j]
        Gamma[j] = f @ step.a[j] + friction + robot.Ia[j] * qdd[j]  # (100)
    return Inverse(Gamma, np.asarray(qdd, dtype=float), Vd_0, beta_0)
