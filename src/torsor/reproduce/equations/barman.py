"""Joint forces and their sensitivities in standard Denavit-Hartenberg frames: chapter III of Barman 2020.

Steps 1 to 10 follow S. Barman, "Recursive Newton-Euler dynamics and sensitivity analysis for dynamic motion
planning", Oklahoma State University 2020 (equation numbers in comments; a ``Form`` names those evaluated as printed).

Frame j is at the end of link j, and joint j moves about or along z_{j-1}. Vectors of link j are in frame j. The centre
of mass may be anywhere (r_j from O_j), which the thesis's l_j and d_Gj do not allow. Here, g is the acceleration of a
falling body, so eq. 3.67 has a minus sign; in the thesis, g points upwards. The thesis writes x_{j,i}, x_{j,i'} and
x_{j,i''} for the sensitivities of x_j to q_i, q'_i and q''_i. Here they are the columns i of x.q, x.qd and x.qdd, and
the sensitivities to joints after j are zero.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Flags
from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector, cross


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
    """The wrench that link k (from 0) exerts on its environment, in frame 0, at O_k + r_k (r_k in frame k)."""

    k: int
    F: Vector
    tau: Vector
    r: Vector


def rotation(theta: complex, alpha: float) -> Matrix:
    """Return R_j, eq. 2.10."""
    s, c, sa, ca = np.sin(theta), np.cos(theta), np.sin(alpha), np.cos(alpha)
    return np.array([[c, -ca * s, sa * s], [s, ca * c, -sa * c], [0 * s, sa, ca]])


def inverse_dynamics(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, load: Load | None = None
) -> tuple[Vector, Matrix, Matrix]:
    """Return (tau, Fp, Tp) without sensitivities."""
    tau, Fp, Tp = sensitivities(robot, q, qd, qdd, load, columns=0)
    return tau.x, Fp.x, Tp.x


@dataclass(frozen=True)
class Sensitive:
    """A vector (3,) with its sensitivities, (3, n) each."""

    x: Vector
    q: Matrix
    qd: Matrix
    qdd: Matrix

    @staticmethod
    def zero(n: int) -> "Sensitive":
        """Return a constant that is zero."""
        return Sensitive(np.zeros(3), *np.zeros((3, 3, n)))

    def __add__(self, other: "Sensitive") -> "Sensitive":
        return Sensitive(self.x + other.x, self.q + other.q, self.qd + other.qd, self.qdd + other.qdd)

    def turned(self, R: Matrix, R_own: Callable[[Vector], Matrix]) -> "Sensitive":
        """Return R x, where R depends on one variable, whose sensitivity column ``R_own`` computes from R_{j,j} x."""
        return Sensitive(R @ self.x, R @ self.q + R_own(self.x), R @ self.qd, R @ self.qdd)

    def at_rest(self) -> "Sensitive":
        """Return the vector without its sensitivities to velocities and accelerations."""
        return replace(self, qd=0 * self.qd, qdd=0 * self.qdd)


class Parts(NamedTuple):
    """Values of all links with their sensitivities, whose last axis is the variable."""

    x: Any
    q: Any
    qd: Any
    qdd: Any


class Sensitivities(NamedTuple):
    """Joint forces, and Fp_j, Tp_j exerted by link j-1 on link j at O_{j-1}, in frame j."""

    tau: Parts
    Fp: Parts
    Tp: Parts


class Link:
    """Step 2 for link j: its local rotation, its unit vector, and the vectors from O_{j-1} to O_j and to G_j."""

    def __init__(self, robot: Robot, j: int, q: Vector, columns: int | None = None) -> None:
        self.robot, self.j, self.n = robot, j, len(robot.m) if columns is None else columns
        self.turns, self.slides = float(robot.revolute[j]), float(not robot.revolute[j])
        theta, d = robot.theta[j] + self.turns * q[j], robot.d[j] + self.slides * q[j]
        sa, ca = np.sin(robot.alpha[j]), np.cos(robot.alpha[j])
        self.R = rotation(theta, robot.alpha[j])
        self.R_own = self.turns * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]]) @ self.R  # R_{j,j}; prismatic: 3.1
        self.e = np.array([0, sa, ca])  # step 1g
        self.Dx = np.array([robot.a[j], d * sa, d * ca])
        self.DxG = self.Dx + robot.r[j]  # 3.2, corrected: the centre of mass may be anywhere
        self.Dx_q = self.own(self.slides * self.e)  # 3.3, 3.4; the same for G_j

    def own(self, x: Vector) -> Matrix:
        """Return sensitivities that are x for joint j and zero for the others."""
        return np.outer(x, np.eye(len(self.robot.m), self.n)[self.j])

    def down(self, x: Sensitive) -> Sensitive:
        """Return ^jx_{j-1} = R_j^T x_{j-1}."""
        return x.turned(self.R.T, lambda x: self.own(self.R_own.T @ x))

    def up(self, x: Sensitive) -> Sensitive:
        """Return R_j x_j."""
        return x.turned(self.R, lambda x: self.own(self.R_own @ x))


def angular(link: Link, w: Sensitive, wd: Sensitive, qd: float, qdd: float, form: Form) -> tuple[Sensitive, Sensitive]:
    """Return the angular velocity and acceleration of link j from link j-1: steps 3 and 4."""
    e, none = link.turns * link.e, np.zeros((3, link.n))
    Dw, Dw_qd = qd * e, link.own(e)  # 3.5 to 3.7
    wp = link.down(w)  # 3.8 to 3.10
    turned_e = link.own(link.turns * link.R_own.T @ np.array([0.0, 0.0, 1.0]))  # which is zero
    Dwd = Sensitive(
        qdd * e + cross(wp.x, Dw),  # 3.17
        cross(wp.q, Dw),
        cross(wp.qd, Dw) + cross(wp.x, form("3.18", Dw_qd, turned_e)),
        link.own(e),
    )
    w_j = wp + Sensitive(Dw, none, Dw_qd, none)  # 3.11, 3.12
    if link.slides:
        w_j = replace(w_j, qd=form("3.13", w_j.qd, none))
    return w_j, link.down(wd) + Dwd  # 3.20 to 3.22


def linear(
    link: Link, w: Sensitive, wd: Sensitive, qd: float, qdd: float, D: Vector, at_centre: bool, form: Form
) -> Sensitive:
    """Return the contribution of link j to the acceleration at O_j (D is Dx) or G_j (D is DxG): steps 6 and 7."""
    e, D_q, none = link.slides * link.e, link.Dx_q, np.zeros((3, link.n))
    slide, slide_qd, push = qd * e, link.own(e), qdd * e
    Dxd = cross(w.x, D) + slide  # 3.35, 3.41
    Dxd_q = cross(w.q, D) + cross(w.x, D_q)  # 3.36, 3.37, 3.42, 3.43
    Dxd_qd = cross(w.qd, D) + slide_qd
    turning, wd_qdd = wd.x, wd.qdd
    if at_centre:
        push = form("3.56", push, slide)
    else:
        turning = form("3.52", turning, w.x)
        wd_qdd = form("3.51", wd_qdd, none) if link.turns else wd_qdd  # as printed, that of w, which is zero
    return Sensitive(
        cross(wd.x, D) + cross(w.x, Dxd + slide) + push,  # 3.50, 3.56
        cross(wd.q, D) + cross(turning, D_q) + cross(w.q, Dxd + slide) + cross(w.x, Dxd_q),  # 3.51, 3.52, 3.57, 3.58
        cross(wd.qd, D) + cross(w.qd, Dxd + slide) + cross(w.x, Dxd_qd + slide_qd),
        cross(wd_qdd, D) + link.own(e),
    )


def inertial(
    link: Link, w: Sensitive, wd: Sensitive, xddG: Sensitive, R0: Matrix, R0_q: Matrix
) -> tuple[Sensitive, Sensitive]:
    """Return the inertia force and torque of link j: step 8."""
    m, inertia = link.robot.m[link.j], link.robot.I[link.j]
    up = -link.robot.g
    up_q = np.array([each.T @ up for each in R0_q]).reshape(-1, 3).T
    FG = Sensitive(m * (xddG.x + R0.T @ up), m * (xddG.q + up_q), m * xddG.qd, m * xddG.qdd)  # 3.67, 3.68
    H, H_q, H_qd = inertia @ w.x, inertia @ w.q, inertia @ w.qd  # 3.64 to 3.66
    tG = Sensitive(
        inertia @ wd.x + cross(w.x, H),  # 3.69
        inertia @ wd.q + cross(w.q, H) + cross(w.x, H_q),  # 3.70, 3.71
        inertia @ wd.qd + cross(w.qd, H) + cross(w.x, H_qd),
        inertia @ wd.qdd,
    )
    return FG, tG


def moment_of(D: Vector, D_q: Matrix, F: Sensitive) -> Sensitive:
    """Return D x F."""
    return Sensitive(cross(D, F.x), cross(D, F.q) + cross(D_q, F.x), cross(D, F.qd), cross(D, F.qdd))


class Step(NamedTuple):
    """A link, its angular velocity and acceleration, and the accelerations of O_j and G_j, all in frame j."""

    link: Link
    w: Sensitive
    wd: Sensitive
    xdd: Sensitive
    xdd_centre: Sensitive


def outward(
    robot: Robot, q: Vector, qd: Vector, qdd: Vector, form: Form = CORRECTED, columns: int | None = None
) -> Iterator[Step]:
    """Yield the motion of each link with its sensitivities, from root to tip: steps 2 to 7."""
    w = wd = xdd = Sensitive.zero(len(robot.m) if columns is None else columns)
    for j in range(len(robot.m)):
        link = Link(robot, j, q, columns)
        w, wd = angular(link, w, wd, qd[j], qdd[j], form)
        xddp = link.down(xdd)  # 3.47 to 3.49
        xdd = xddp + linear(link, w, wd, qd[j], qdd[j], link.Dx, False, form)  # 3.53 to 3.55
        xddG = xddp + linear(link, w, wd, qd[j], qdd[j], link.DxG, True, form)  # 3.59 to 3.61
        yield Step(link, w, wd, xdd, xddG)


def sensitivities(
    robot: Robot,
    q: Vector,
    qd: Vector,
    qdd: Vector,
    load: Load | None = None,
    form: Form = CORRECTED,
    columns: int | None = None,
) -> Sensitivities:
    """Return tau, Fp and Tp with their sensitivities. The force and moment of ``load`` are constant in frame 0.

    Sensitivities are computed for the first ``columns`` joints, by default all.
    """
    n = len(robot.m) if columns is None else columns
    R0, R0_q, links, wrenches, rotations = np.eye(3), np.zeros((n, 3, 3)), [], [], []
    for j, (link, w, wd, _, xddG) in enumerate(outward(robot, q, qd, qdd, form, columns)):
        R0_q = np.array([(R0 @ link.R_own) if i == j else R0_q[i] @ link.R for i in range(n)])  # 3.63
        R0 = R0 @ link.R  # 3.62
        links.append(link)
        rotations.append((R0, R0_q))
        wrenches.append(inertial(link, w, wd, xddG, R0, R0_q))
    Fd = Td = Sensitive.zero(n)
    for j in reversed(range(len(robot.m))):  # tip to root
        link, (FG, tG) = links[j], wrenches[j]
        Fp = Fd + FG  # 3.74, 3.75
        Dx_q = form("3.83", link.Dx_q, 0 * link.Dx_q)  # the moment arms of a prismatic joint also vary
        Tp = Td + tG + moment_of(link.Dx, Dx_q, Fd) + moment_of(link.DxG, Dx_q, FG)  # 3.82, 3.83
        wrenches[j] = Fp, Tp
        Fd, Td = link.up(Fp), link.up(Tp)  # 3.72, 3.73, 3.80, 3.81
    if load is not None:
        add_load(load, links, rotations, wrenches, form)
    tau = []
    for link, (Fp, Tp) in zip(links, wrenches, strict=True):  # 3.92 to 3.95; R_{j,j}^T e_z is zero
        felt = Tp if link.turns else Fp
        tau.append((link.e @ felt.x, link.e @ felt.q, link.e @ felt.qd, link.e @ felt.qdd))

    def parts(vectors: Sequence[Sensitive]) -> Parts:
        return Parts(*(np.array([getattr(vector, part) for vector in vectors]) for part in Parts._fields))

    forces, moments = zip(*wrenches, strict=True)
    return Sensitivities(Parts(*(np.array(part) for part in zip(*tau, strict=True))), parts(forces), parts(moments))


def add_load(
    load: Load,
    links: Sequence[Link],
    rotations: Sequence[tuple[Matrix, Matrix]],
    wrenches: list[tuple[Sensitive, Sensitive]],
    form: Form,
) -> None:
    """Add an external force and moment to the finished chain, from link k to the root.

    Its sensitivities to qd and qdd are zero, so Fp and Tp keep theirs (3.79, 3.87, 3.91 corrected).
    """
    R0, R0_q = rotations[load.k]
    n = len(R0_q)

    def in_link(x: Vector) -> Sensitive:  # 3.76, 3.77, 3.88, 3.89
        return Sensitive(R0.T @ x, np.array([each.T @ x for each in R0_q]).reshape(-1, 3).T, *np.zeros((2, 3, n)))

    Fe, moment = in_link(load.F), in_link(load.tau)
    if "3.76" in form.printed:
        Fe = replace(Fe, x=R0_q[load.k].T @ load.F)
    at_load = moment_of(load.r, np.zeros((3, n)), Fe)  # 3.84, 3.85: r_k in both
    of_force = replace(at_load, q=form("3.85", at_load.q, 0 * at_load.q))
    for j in reversed(range(load.k + 1)):
        link, (Fp, Tp) = links[j], wrenches[j]
        of_force = of_force + moment_of(link.Dx, link.Dx_q, Fe)  # 3.84, 3.85
        Fp, Tp = (form("3.79", each, each.at_rest()) for each in (Fp, Tp))
        wrenches[j] = Fp + Fe, Tp + of_force + moment  # 3.78, 3.86, 3.90
        both = of_force + moment  # tau^e, which stands in 3.84, 3.85, 3.88 and 3.89 for one of the two
        of_force, moment = (link.up(form("3.84", each, both)) for each in (of_force, moment))
        Fe = link.up(Fe)


def velocities(robot: Robot, q: Vector, qd: Vector, form: Form = CORRECTED) -> tuple[Matrix, Matrix]:
    """Return the velocities of the origins O_j in frame j and their sensitivities to qd: step 6, 3.32 to 3.40."""
    n = len(robot.m)
    w = wd = xd = Sensitive.zero(n)
    results = []
    for j in range(n):
        link = Link(robot, j, q)
        w, wd = angular(link, w, wd, qd[j], 0.0, form)
        before = link.down(xd)  # 3.32 to 3.34
        added = cross(w.x, link.Dx) + qd[j] * link.slides * link.e  # 3.35
        added_qd = cross(w.qd, link.Dx) + link.own(link.slides * link.e)  # 3.36, 3.37
        if link.slides:
            is_own_joint = np.arange(n) == j
            added_qd = form("3.40", added_qd, np.where(is_own_joint, added_qd, 0.0))
        none = np.zeros((3, n))
        xd = before + Sensitive(added, none, added_qd, none)  # 3.38 to 3.40; those by q are left out here
        results.append(xd)
    return np.array([result.x for result in results]), np.array([each.qd for each in results])
