"""Joint forces and their rates in modified Denavit-Hartenberg frames: Guarino Lo Bianco 2009.

The notation follows C. Guarino Lo Bianco, "Evaluation of generalized force derivatives by means of a recursive
Newton-Euler approach", 2009 (equation numbers in comments; a ``Form`` names those evaluated as printed).

Frame i is on the axis of joint i, and follows from frame i-1 by Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d).
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
    """Return (tau, f, n) without rates. Link N exerts f_tip, n_tip on its environment at O_N."""
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


class Rates(NamedTuple):
    """Joint forces and their rates. Link i-1 exerts f_i, n_i on link i at O_i, in frame i."""

    tau: Vector
    tau_rate: Vector
    f: Matrix
    n: Matrix
    f_rate: Matrix
    n_rate: Matrix


def frames(robot: Robot, q: Vector) -> tuple[list[Matrix], list[Vector]]:
    """Return the rotation and origin of each frame in the previous frame."""
    theta, d = (
        shift + np.where(own, q, 0) for shift, own in ((robot.theta, robot.revolute), (robot.d, ~robot.revolute))
    )
    pairs = [placement(*row) for row in zip(robot.a, robot.alpha, theta, d, strict=True)]
    R, p = zip(*pairs, strict=True)
    return list(R), list(p)


class Point(NamedTuple):
    """The velocity, acceleration and jerk of a point of a link, relative to the origin of its frame."""

    v: Vector
    a: Vector
    j: Vector


def moved(w: Vector, gam: Vector, twice_gam: Vector, iota: Vector, r: Vector) -> Point:
    """Return the motion of the point at r: (6) to (9)."""
    v = cross(w, r)
    a = cross(gam, r) + cross(w, v)
    return Point(v, a, cross(iota, r) + cross(twice_gam, v) + cross(w, a))


def force_rates(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, qddd: Vector, tip: Tip | None = None, form: Form = CORRECTED
) -> Rates:
    """Return forces, reactions and their rates: (3) to (21)."""
    return rates(robot, *frames(robot, q), qd, qdd, qddd, tip, form)


def rates(
    robot: Robot,
    R: list[Matrix],
    p: list[Vector],
    qd: Vector,
    qdd: Vector,
    qddd: Vector,
    tip: Tip | None = None,
    form: Form = CORRECTED,
    z: Vector = z,
    base: tuple[Vector, Vector] | None = None,
) -> Rates:
    """Return the results of ``force_rates`` for given frames and base acceleration and jerk, by default -g and 0.

    Terms that occur repeatedly are evaluated once, except w x p in (17).
    """
    N = len(robot.m)
    W, F, T, F_rate, T_rate, v_c = (list[Vector]() for _ in range(6))
    w = gam = twice_gam = iota = np.zeros(3)
    a, j = (-np.asarray(robot.g), np.zeros(3)) if base is None else base
    for i in range(N):  # root to tip
        turns, (z1, z2, z3) = robot.revolute[i], (qd[i] * z, qdd[i] * z, qddd[i] * z)
        R_i, after = R[i].T, moved(w, gam, twice_gam, iota, p[i])
        Rw, Rgam, Riota = R_i @ w, R_i @ gam, R_i @ iota
        a, j = R_i @ (a + after.a), R_i @ (j + after.j)  # (6), (8)
        w, gam, iota = Rw, Rgam, Riota
        if turns:
            turned = cross(Rw, z1)
            w, gam = w + z1, gam + turned + z2  # (3), (4)
            iota = iota + cross(Rgam, z1) + form("5", z3, z2)  # (5)
            if i:  # the base is at rest
                iota = iota + cross(Rw, 2 * z2 + turned)  # (5)
        else:
            a = a + 2 * cross(w, z1) + z2  # (6)
            j = j + form("8", z3, z2) + 3 * cross(Rgam, z1) + cross(Rw, 3 * z2 + 3 * cross(Rw, z1))  # (8)
        twice_gam = gam + gam
        m, inertia, centre = robot.m[i], robot.I[i], moved(w, gam, twice_gam, iota, robot.c[i])
        F.append(m * (a + centre.a))  # (7), (10)
        F_rate.append(m * (j + centre.j))  # (9), (12)
        Igam, Iw = inertia @ gam, inertia @ w
        T.append(Igam + cross(w, Iw))  # (11), N in the paper
        turned = cross(w, Igam) + inertia @ cross(gam, w)
        T_rate.append(turned + inertia @ iota + cross(gam, Iw) + cross(w, T[i]))  # (13)
        W.append(w)
        v_c.append(centre.v)
    if tip is None:
        tip = Tip(np.eye(3), *np.zeros((5, 3)))
    f, n, f_rate, n_rate = ([*N * [np.zeros(3)], last] for last in tip[2:])
    for i in reversed(range(N)):  # tip to root
        is_last = i == N - 1
        R_i, p_i, c, w = tip.R if is_last else R[i + 1], tip.p if is_last else p[i + 1], robot.c[i], W[i]
        Rf, Rf_rate = R_i @ f[i + 1], R_i @ f_rate[i + 1]
        f[i] = Rf + F[i]  # (14)
        n[i] = R_i @ n[i + 1] + cross(c, F[i]) + cross(p_i, Rf) + T[i]  # (15)
        f_rate[i] = Rf_rate + F_rate[i]  # (16)
        p_rate = cross(w, p_i)  # (29)
        if not is_last and not robot.revolute[i + 1]:
            p_rate = p_rate + qd[i + 1] * R_i @ z
        n_rate[i] = R_i @ n_rate[i + 1] + cross(v_c[i], F[i]) + cross(c, F_rate[i]) + T_rate[i]  # (17)
        n_rate[i] = n_rate[i] + cross(p_rate, form("17", Rf, Rf_rate)) + cross(p_i, Rf_rate)  # (17)
    felt, felt_rate = (
        [pair[not turns][i] for i, turns in enumerate(robot.revolute)] for pair in ((n, f), (n_rate, f_rate))
    )
    tau_rate = np.array([(rate + cross(x, w)) @ z for rate, x, w in zip(felt_rate, felt, W, strict=True)])  # (20), (21)
    tau = np.array([x @ z for x in felt])  # (18), (19)
    tau = form("19", tau, np.where(robot.revolute, tau, tau_rate))
    return Rates(tau, tau_rate, *(np.array(each[:N]) for each in (f, n, f_rate, n_rate)))
