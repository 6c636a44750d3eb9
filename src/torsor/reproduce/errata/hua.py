"""Misprints of Hua et al. 2022."""

from functools import partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import hua
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, words
from torsor.reproduce.samples import mixed

JOINTS = 4  # of the sample


def library_rows(external: Array | None = None) -> Array:
    """Return the rows of eq. 30 by the library: loads without their springs, then elastic motors with them."""
    robot, (q, v, a) = mixed().robot, mixed().state
    tau = robot.inverse_dynamics(q, v, a, external=external)
    return np.asarray(tau - np.where(np.arange(robot.nv) < JOINTS, robot.spring_force(q), 0.0))


def _rows(place: str) -> Decision:
    data, _, joints, motors = mixed()
    corrected, printed = (
        hua.rows(data, hua.inverse_dynamics(data, *joints, *motors, form=form)) for form in (Form(), Form([place]))
    )
    return decide(library_rows(), corrected, printed)


def _crosses() -> Decision:
    """Compare the angular acceleration of the last link with and without the vector product of (5)."""
    _, robot, (q, v, a), _ = mixed()
    coordinates = np.zeros((3, 2))
    full = (np.r_[x, y] for x, y in zip((q, v, a), coordinates, strict=True))
    truth = robot.accelerations(*full)[-1, :3]

    def last(product: float) -> Array:
        w, wd = np.zeros(3), np.zeros(3)
        for i in range(JOINTS):
            R = hua.rotation(q[i]) @ mixed().data.Rfix[i]
            wd = R.T @ (wd + a[i] * hua.Z + product * v[i] * np.cross(w, hua.Z))
            w = R.T @ (w + v[i] * hua.Z)
        return np.asarray(wd)

    return decide(truth, last(1.0), last(0.0))


def _payload() -> Decision:
    data, _, joints, motors = mixed()
    force, moment = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.2, -0.4])
    external = np.zeros((JOINTS, 6))  # applied to the end effector
    external[-1] = np.concatenate([moment + np.cross(data.r_tip, force), force])
    corrected, printed = (
        hua.rows(data, hua.inverse_dynamics(data, *joints, *motors, sign * force, sign * moment)) for sign in (-1, 1)
    )
    return decide(library_rows(external), corrected, printed)


def _coriolis() -> Decision:
    """Compare the part of the load rows that has a joint's and a motor's velocity: C_1 theta'."""
    data, robot, (q, v, _), (theta, w, _) = mixed()
    elastic, rest = data.K > 0, np.zeros(JOINTS)

    def bias(v: Array, w: Array) -> Array:
        return np.asarray(robot.bias_force(np.r_[q, theta[elastic]], np.r_[v, w[elastic]]))[:JOINTS]

    truth = bias(v, w) - bias(v, rest) - bias(rest, w) + bias(rest, rest)

    def of_form(v: Array, w: Array) -> Array:  # C_1(q, v) w, linear in both
        def zeta(v: Array, w: Array) -> Array:
            found = hua.inverse_dynamics(data, q, v, rest, theta, w, rest)
            return hua.rows(data, found)[:JOINTS]

        return np.asarray(zeta(v, w) - zeta(v, rest) - zeta(rest, w) + zeta(rest, rest))

    return decide(truth, of_form(v, w), of_form(w, w))  # as printed in (30): C_1(q, theta') theta'


def _column() -> Decision:
    data, robot, (q, v, _), (theta, w, _) = mixed()
    corrected, printed = (
        hua.forward_dynamics(data, q, v, theta, w, np.zeros(JOINTS), form)[0] for form in (Form(), Form(["column"]))
    )
    return decide(robot.mass_matrix(mixed().state[0]), corrected, printed)


def _lyapunov() -> Decision:
    """Compare the rate of 1/2 s^T M s along a motion with s^T M s', and with the term of M' besides."""
    arm, h = library.elastic_arm().to(device="casadi"), 1e-5
    q, v, s, rate = np.random.default_rng(9).normal(size=(4, 4))

    def energy(t: float) -> float:
        sigma = s + rate * t
        return float(0.5 * sigma @ arm.mass_matrix(q + v * t) @ sigma)

    truth = (energy(-2 * h) - 8 * energy(-h) + 8 * energy(h) - energy(2 * h)) / (12 * h)
    M, C = arm.mass_matrix(q), arm.coriolis_matrix(q, v)
    printed = s @ M @ rate
    return decide(truth, printed + 0.5 * s @ (C + C.T) @ s, printed)


def _springs() -> Decision:
    data, robot, (q, v, _), (theta, w, _) = mixed()
    elastic = data.K > 0
    tau = np.array([3.0, -1.0, 2.0, 0.5])
    given = np.r_[np.where(elastic, 0.0, tau), tau[elastic]]
    truth = robot.forward_dynamics(np.r_[q, theta[elastic]], np.r_[v, w[elastic]], given)
    corrected, printed = (
        hua.forward_dynamics(data, q, v, theta, w, tau, form)[2] for form in (Form(), Form(["algorithm 2"]))
    )
    return decide(truth, corrected, printed)


def _stiffness() -> Decision:
    """Ask which unit makes K (theta - q) a moment, by the units (kg, m, s, rad) of each."""
    moment = np.array([1, 2, -2, 0])
    angle, per_metre, per_radian = np.array([0, 0, 0, 1]), np.array([1, 0, -2, 0]), np.array([1, 2, -2, -1])
    return words(bool((per_radian + angle == moment).all()), bool((per_metre + angle == moment).all()))


def _triangle() -> Decision:
    """Ask whether principal moments of links 2 and 3 are those of a body: no one above the sum of the others."""

    def is_body(inertia: Array) -> bool:
        moments = np.linalg.eigvalsh(inertia)
        return bool(moments[2] <= moments[0] + moments[1])

    links = library.elastic_arm().links[1:3]
    bodies = [np.diag(np.diag(link.inertia)) for link in links]  # without products of inertia they are bodies
    return words(all(map(is_body, bodies)), any(is_body(link.inertia) for link in links))


ROWS = "forces of the library, motors on other links"
ERRATA = [
    Erratum(
        "hua/eq-8",
        "eqs. 8, 9, 11, 12, 14 to 17",
        "crosses lost, or turned into dots: q' ω z, ω' r + ω' (ω' r)",
        "vector products: q' ω × z, ω' × r + ω × (ω × r)",
        _crosses,
        "angular acceleration of the last link by the library",
    ),
    Erratum(
        "hua/eq-20",
        "eqs. 20, 26",
        "f_e, τ_e are applied to the end effector",
        "as they are added, the end effector exerts them on its environment: a load that acts on it has a minus",
        _payload,
        "forces of the library under a load at the tip",
    ),
    Erratum(
        "hua/eq-21",
        "eq. 21",
        "τ_i - τ_{i+1} + Σ η φ' I_z z = d/dt (I ω)",
        "τ_i - τ_{i+1} + moments of the forces = d/dt (I ω + Σ η φ' I_z z), as (24) and (25) have it",
        partial(_rows, "21"),
        ROWS,
    ),
    Erratum(
        "hua/eq-21-levers",
        "eq. 21",
        "no moments of the forces f_i and f_{i+1}",
        "+ f_i × r_c - f_{i+1} × r_{i+1,c} on the left",
        partial(_rows, "21 levers"),
        ROWS,
    ),
    Erratum(
        "hua/eq-27",
        "eqs. 27, 29",
        "(ω'_mi)ᵀ z_mi in frame l_mi",
        "in frame l_mi + 1, which is fixed on the link of the motor",
        partial(_rows, "27"),
        ROWS,
    ),
    Erratum(
        "hua/eq-30",
        "eqs. 30, 31, 39",
        "C_1(q, θ') θ' in (30), C_1(q, q') θ' in (31) and (39)",
        "C_1(q, q') θ'",
        _coriolis,
        "bias forces of the library",
    ),
    Erratum(
        "hua/eq-34",
        "text before eq. 34",
        "[q'' θ''] = 0 ... [q'' θ''] = I_j for a column of A",
        "[q' θ'] = 0, [q'' θ''] = I_j",
        _column,
        "mass matrix of the library",
    ),
    Erratum(
        "hua/eq-42",
        "eq. 42, first line",
        "V'_1 = σᵀ M σ' + ...",
        "σᵀ M σ' + ½ σᵀ M' σ + ...; the new term cancels with C, and the result is right",
        _lyapunov,
        "fourth-order differences of ½ σᵀ M σ",
    ),
    Erratum(
        "hua/algorithm-1-labels",
        "Algorithm 1",
        "rigid: (8), elastic: (9)",
        "rigid: (9), elastic: (8)",
        partial(_rows, "algorithm 1"),
        ROWS,
    ),
    Erratum(
        "hua/algorithm-2-spring",
        "Algorithm 2",
        "τ_q = K η (θ - η q)",
        "K (θ - q), as in (28)",
        _springs,
        "forward dynamics of the library",
    ),
    Erratum("hua/section-5", "section V", "a stiffness of 100 N/m", "100 N m/rad", _stiffness, "units of a moment"),
    Erratum(
        "hua/table-1-inertia",
        "Table I",
        "inertias of links 2 and 3",
        "no body has them: one principal moment exceeds the sum of the two others; they are used as printed",
        _triangle,
        "triangle inequality of principal moments",
    ),
]
