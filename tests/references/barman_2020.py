"""Joint forces and their sensitivities in standard Denavit-Hartenberg frames: steps 1 to 10 of chapter III of
S. Barman, "Recursive Newton-Euler dynamics and sensitivity analysis for dynamic motion planning", Oklahoma State
University 2020 (equation numbers at the lines; "corrected" where what is printed cannot be).

The thesis writes x_{j,i}, x_{j,i'} and x_{j,i''} for the sensitivities of x_j by q_i, q'_i and q''_i; here they are the
columns i of x.q, x.qd and x.qdd, and those of joints after j are zero. Robot, load and signs are those of
``denavit_hartenberg``. Positions and velocities of the origins (steps 5 and 6 in part) enter nothing else.
"""

from dataclasses import dataclass

import numpy as np

from references.denavit_hartenberg import rotation


@dataclass(frozen=True)
class Sensitive:
    """A vector (3,) with its sensitivities, (3, n) each."""

    x: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @staticmethod
    def zero(n):
        return Sensitive(np.zeros(3), *np.zeros((3, 3, n)))

    def __add__(self, other):
        return Sensitive(self.x + other.x, self.q + other.q, self.qd + other.qd, self.qdd + other.qdd)

    def turned(self, R, R_own):
        """Return R x; R varies with one variable only, whose column of sensitivities ``R_own`` makes from R_{j,j} x."""
        return Sensitive(R @ self.x, R @ self.q + R_own(self.x), R @ self.qd, R @ self.qdd)


def cross(a, b):
    """Vector product of columns."""
    return np.cross(a.T, b.T).T


class Link:
    """Step 2 for link j: its local rotation, its unit vector, and what leads from O_{j-1} to O_j and to G_j."""

    def __init__(self, robot, j, q):
        self.robot, self.j, self.n = robot, j, len(robot.m)
        self.turns, self.slides = float(robot.revolute[j]), float(not robot.revolute[j])
        theta, d = robot.theta[j] + self.turns * q[j], robot.d[j] + self.slides * q[j]
        sa, ca = np.sin(robot.alpha[j]), np.cos(robot.alpha[j])
        self.R = rotation(theta, robot.alpha[j])
        self.R_own = self.turns * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]]) @ self.R  # R_{j,j}; prismatic: 3.1
        self.e = np.array([0, sa, ca])  # step 1g
        self.Dx = np.array([robot.a[j], d * sa, d * ca])
        self.DxG = self.Dx + robot.r[j]  # 3.2, corrected: the centre of mass may be anywhere
        self.Dx_q = self.own(self.slides * self.e)  # 3.3, 3.4; the same for G_j

    def own(self, x):
        """Return sensitivities that are x for joint j and zero for the others."""
        return np.outer(x, np.eye(self.n)[self.j])

    def down(self, x):
        """Return ^jx_{j-1} = R_j^T x_{j-1}."""
        return x.turned(self.R.T, lambda x: self.own(self.R_own.T @ x))

    def up(self, x):
        """Return R_j x_j."""
        return x.turned(self.R, lambda x: self.own(self.R_own @ x))


def angular(link, w, wd, qd, qdd):
    """Return the angular velocity and acceleration of link j from those of link j-1: steps 3 and 4."""
    e, none = link.turns * link.e, np.zeros((3, link.n))
    Dw, Dw_qd = qd * e, link.own(e)  # 3.5 to 3.7
    wp = link.down(w)  # 3.8 to 3.10
    Dwd = Sensitive(
        qdd * e + cross(wp.x, Dw),  # 3.17
        cross(wp.q, Dw),
        cross(wp.qd, Dw) + cross(wp.x, Dw_qd),  # 3.18 corrected: R_j^T e, not its sensitivity
        link.own(e),
    )
    return wp + Sensitive(Dw, none, Dw_qd, none), link.down(wd) + Dwd  # 3.11 to 3.13 corrected, 3.20 to 3.22


def linear(link, w, wd, qd, qdd, D):
    """Return what link j adds to the acceleration of O_{j-1}, at O_j (D is Dx) or G_j (D is DxG): steps 6 and 7."""
    e, D_q = link.slides * link.e, link.Dx_q
    slide, slide_qd = qd * e, link.own(e)
    Dxd = cross(w.x, D) + slide  # 3.35, 3.41
    Dxd_q = cross(w.q, D) + cross(w.x, D_q)  # 3.36, 3.37, 3.42, 3.43
    Dxd_qd = cross(w.qd, D) + slide_qd
    return Sensitive(
        cross(wd.x, D) + cross(w.x, Dxd + slide) + qdd * e,  # 3.50, 3.56
        cross(wd.q, D) + cross(wd.x, D_q) + cross(w.q, Dxd + slide) + cross(w.x, Dxd_q),  # 3.52 corrected: w' x e
        cross(wd.qd, D) + cross(w.qd, Dxd + slide) + cross(w.x, Dxd_qd + slide_qd),
        cross(wd.qdd, D) + link.own(e),  # 3.51 corrected: w', not w
    )


def inertial(link, w, wd, xddG, R0, R0_q):
    """Return the inertia force and torque of link j: step 8."""
    m, inertia, g = link.robot.m[link.j], link.robot.I[link.j], link.robot.g
    g_q = np.array([each.T @ g for each in R0_q]).T
    FG = Sensitive(m * (xddG.x - R0.T @ g), m * (xddG.q - g_q), m * xddG.qd, m * xddG.qdd)  # 3.67, 3.68
    H, H_q, H_qd = inertia @ w.x, inertia @ w.q, inertia @ w.qd  # 3.64 to 3.66
    tG = Sensitive(
        inertia @ wd.x + cross(w.x, H),  # 3.69
        inertia @ wd.q + cross(w.q, H) + cross(w.x, H_q),  # 3.70, 3.71
        inertia @ wd.qd + cross(w.qd, H) + cross(w.x, H_qd),
        inertia @ wd.qdd,
    )
    return FG, tG


def levered(D, D_q, F):
    """Return D x F."""
    return Sensitive(cross(D, F.x), cross(D, F.q) + cross(D_q, F.x), cross(D, F.qd), cross(D, F.qdd))


def outward(robot, q, qd, qdd):
    """Yield link, angular velocity and acceleration, and accelerations of O_j and G_j in frame j, root to tip."""
    w = wd = xdd = Sensitive.zero(len(robot.m))
    for j in range(len(robot.m)):
        link = Link(robot, j, q)
        w, wd = angular(link, w, wd, qd[j], qdd[j])
        xddp = link.down(xdd)  # 3.47 to 3.49
        xdd = xddp + linear(link, w, wd, qd[j], qdd[j], link.Dx)  # 3.53 to 3.55
        xddG = xddp + linear(link, w, wd, qd[j], qdd[j], link.DxG)  # 3.59 to 3.61
        yield link, w, wd, xdd, xddG


def sensitivities(robot, q, qd, qdd, load=None):
    """Return tau, Fp and Tp, each as (value, by q, by qd, by qdd) with the variable last.

    Fp_j, Tp_j is the wrench of link j-1 on link j at O_{j-1}, in frame j. ``load`` keeps its direction in frame 0.
    """
    n = len(robot.m)
    R0, R0_q, links, wrenches, rotations = np.eye(3), np.zeros((n, 3, 3)), [], [], []
    for j, (link, w, wd, _, xddG) in enumerate(outward(robot, q, qd, qdd)):
        R0_q = np.array([(R0 @ link.R_own) if i == j else R0_q[i] @ link.R for i in range(n)])  # 3.63
        R0 = R0 @ link.R  # 3.62
        links.append(link)
        rotations.append((R0, R0_q))
        wrenches.append(inertial(link, w, wd, xddG, R0, R0_q))
    Fd = Td = Sensitive.zero(n)
    for j in reversed(range(n)):  # tip to root
        link, (FG, tG) = links[j], wrenches[j]
        Fp = Fd + FG  # 3.74, 3.75
        # 3.82, 3.83 corrected: the levers of a prismatic joint vary also
        Tp = Td + tG + levered(link.Dx, link.Dx_q, Fd) + levered(link.DxG, link.Dx_q, FG)
        wrenches[j] = Fp, Tp
        Fd, Td = link.up(Fp), link.up(Tp)  # 3.72, 3.73, 3.80, 3.81
    if load is not None:
        add_load(load, links, rotations, wrenches)
    tau = []
    for link, (Fp, Tp) in zip(links, wrenches, strict=True):  # 3.92 to 3.95; R_{j,j}^T e_z is zero
        felt = Tp if link.turns else Fp
        tau.append((link.e @ felt.x, link.e @ felt.q, link.e @ felt.qd, link.e @ felt.qdd))

    def parts(vectors):
        return [np.array([getattr(each, part) for each in vectors]) for part in ("x", "q", "qd", "qdd")]

    return [np.array(part) for part in zip(*tau, strict=True)], *map(parts, zip(*wrenches, strict=True))


def add_load(load, links, rotations, wrenches):
    """Add an external force and moment to the finished chain, from link k to the root.

    Its sensitivities by qd and qdd are zero: those of Fp and Tp stay (3.79, 3.87, 3.91 corrected).
    """
    n, (R0, R0_q) = len(links), rotations[load.k]

    def in_link(x):  # 3.76 corrected, 3.77, 3.88, 3.89
        return Sensitive(R0.T @ x, np.array([each.T @ x for each in R0_q]).T, *np.zeros((2, 3, n)))

    Fe = in_link(load.F)
    Te = in_link(load.tau) + levered(load.r, np.zeros((3, n)), Fe)  # 3.84, 3.85 corrected: r_k in both
    for j in reversed(range(load.k + 1)):
        link, (Fp, Tp) = links[j], wrenches[j]
        Te = Te + levered(link.Dx, link.Dx_q, Fe)  # 3.84, 3.85
        wrenches[j] = Fp + Fe, Tp + Te  # 3.78, 3.86, 3.90
        Fe, Te = link.up(Fe), link.up(Te)
