"""The recursive models of Khalil 2010: forward dynamics, elastic joints, and a base that moves.

W. Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", ICINCO 2010: sections
3.3.2, 6 and 7, with equation numbers at the lines; a ``Form`` names those that are to be as printed.

Twists are (V, w), wrenches (f, m). Robots and letters are those of ``khalil``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector
from torsor.reproduce.equations.khalil import Base, Robot, hat, placements


class Direct(NamedTuple):
    """Accelerations of the joints, reactions (6,) of a(j) on link j; accelerations of base and links minus gravity."""

    qdd: Vector
    f: Matrix
    Vd_0: Vector
    Vd: Matrix


class Inverse(NamedTuple):
    """Forces and accelerations of the joints, acceleration of the base minus gravity, and betac_0 of a free base."""

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
        """Return jT_i Vd_i, which is printed without jT_i in some places."""
        i = self.robot.antecedent[j]
        before = Vd[i] if i >= 0 else Vd_0
        return self.form(place, self.T[j] @ before, before)


def spatial_inertia(M: float, MS: Vector, J: Matrix) -> Matrix:
    """Return J_j (6, 6), (11)."""
    return np.block([[M * np.eye(3), -hat(MS)], [hat(MS), J]])


def velocity_wrench(w: Vector, MS: Vector, J: Matrix) -> Vector:
    """Return what (9) has besides J Vd, with a minus."""
    return -np.concatenate([np.cross(w, np.cross(w, MS)), np.cross(w, J @ w)])


def gravity_twist(robot: Robot) -> Vector:
    """Return the acceleration of a base at rest: (-g, 0)."""
    return np.concatenate([-robot.g, np.zeros(3)])


def direct_dynamics(
    robot: Robot,
    q: Vector,
    qd: Vector,
    Gamma: Vector,
    fe: Matrix,
    base: Base | None = None,
    form: Form = CORRECTED,
) -> Direct:
    """Return the accelerations: (32) to (44), and with a free base (101) to (112). fe (n, 6) is on the environment.

    Of ``base``, the acceleration is not used.
    """
    step = Pass(robot, q, qd, fe, None if base is None else base.w, form)
    n, J, beta = len(robot.M), list(step.J), list(step.beta)
    J_0, beta_0 = np.zeros((6, 6)), np.zeros(6)
    if base is not None:
        J_0, beta_0 = spatial_inertia(base.M, base.MS, base.J), velocity_wrench(base.w, base.MS, base.J)
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
    """Return the inverse model of section 6.3, without friction: where K_spring_j > 0 the joint is elastic."""
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
    Vd, found, Gamma, Vd_0 = [np.zeros(6)] * n, np.array(qdd, dtype=float), np.zeros(n), gravity_twist(robot)
    for j in step.order:
        moved, a = step.of_antecedent(j, Vd, Vd_0, "79"), step.a[j]
        f = K[j] @ moved + alpha[j]  # (79)
        if is_elastic[j]:
            pull = -K_spring[j] * deflection[j] + a @ beta[j]
            found[j] = (-a @ J[j] @ (moved + step.gamma[j]) + pull) / H[j]  # (80)
            Vd[j] = moved + a * found[j] + step.gamma[j]  # (81)
        else:
            Vd[j] = form("81", moved + a * found[j] + step.gamma[j], moved)  # (81), for every joint
            Gamma[j] = f @ a + robot.Ia[j] * found[j]  # (82)
    return Inverse(Gamma, found, Vd_0, np.zeros(6))


def moving_base_inverse(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, fe: Matrix, base: Base, form: Form = CORRECTED
) -> Inverse:
    """Return the inverse model with a free base: (89) to (100). Of ``base``, the acceleration is not used."""
    step = Pass(robot, q, qd, fe, base.w, form)
    n = len(robot.M)
    zeta = [step.gamma[j] + step.a[j] * qdd[j] for j in range(n)]  # (89)
    Jc, betac = list(step.J), list(step.beta)  # (90)
    J_0 = spatial_inertia(base.M, base.MS, base.J)
    beta_0 = velocity_wrench(base.w, base.MS, base.J)
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
