"""Errata of Hua et al. 2022."""

from functools import partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import hua
from torsor.reproduce.errata.erratum import Decision, by_place, compare, decide, derivative, words
from torsor.reproduce.samples import mixed

JOINTS = 4  # of the sample


def library_rows(external: Array | None = None) -> Array:
    """Return the rows of eq. 30 from the library: loads without springs, then elastic-joint motors with springs."""
    robot, (q, v, a) = mixed().robot, mixed().state
    tau = robot.inverse_dynamics(q, v, a, external=external)
    return np.asarray(tau - np.where(np.arange(robot.nv) < JOINTS, robot.spring_force(q), 0.0))


def _rows(place: str) -> Decision:
    data, _, joints, motors = mixed()
    return compare(
        place, library_rows(), lambda form: hua.rows(data, hua.inverse_dynamics(data, *joints, *motors, form=form))
    )


def _crosses() -> Decision:
    """Compare the angular acceleration of the last link with and without the cross product of (5)."""
    _, robot, (q, v, a), _ = mixed()
    full = (np.r_[x, y] for x, y in zip((q, v, a), np.zeros((3, 2)), strict=True))
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
    both = (hua.inverse_dynamics(data, *joints, *motors, sign * force, sign * moment) for sign in (-1, 1))
    return decide(library_rows(external), *(hua.rows(data, each) for each in both))


def _coriolis() -> Decision:
    """Compare the terms of the load rows with both a joint and a motor velocity: C_1 theta'."""
    data, robot, (q, v, _), (theta, w, _) = mixed()
    elastic, rest = data.K > 0, np.zeros(JOINTS)

    def bias(v: Array, w: Array) -> Array:
        return np.asarray(robot.bias_force(np.r_[q, theta[elastic]], np.r_[v, w[elastic]]))[:JOINTS]

    truth = bias(v, w) - bias(v, rest) - bias(rest, w) + bias(rest, rest)

    def of_form(v: Array, w: Array) -> Array:  # C_1(q, v) w, linear in both
        def zeta(v: Array, w: Array) -> Array:
            return hua.rows(data, hua.inverse_dynamics(data, q, v, rest, theta, w, rest))[:JOINTS]

        return np.asarray(zeta(v, w) - zeta(v, rest) - zeta(rest, w) + zeta(rest, rest))

    return decide(truth, of_form(v, w), of_form(w, w))  # as printed in (30): C_1(q, theta') theta'


def _column() -> Decision:
    data, robot, (q, v, _), (theta, w, _) = mixed()
    truth, none = robot.mass_matrix(mixed().state[0]), np.zeros(JOINTS)
    return compare("column", truth, lambda form: hua.forward_dynamics(data, q, v, theta, w, none, form)[0])


def _lyapunov() -> Decision:
    """Compare the rate of 1/2 s^T M s along a motion with s^T M s', with and without the term in M'."""
    arm = library.elastic_arm().to(device="casadi")
    q, v, s, rate = np.random.default_rng(9).normal(size=(4, 4))

    def energy(t: float) -> float:
        sigma = s + rate * t
        return float(0.5 * sigma @ arm.mass_matrix(q + v * t) @ sigma)

    C, printed = arm.coriolis_matrix(q, v), s @ arm.mass_matrix(q) @ rate
    return decide(derivative(energy, 1e-5), printed + 0.5 * s @ (C + C.T) @ s, printed)


def _springs() -> Decision:
    data, robot, (q, v, _), (theta, w, _) = mixed()
    elastic = data.K > 0
    tau = np.array([3.0, -1.0, 2.0, 0.5])
    forces = np.r_[np.where(elastic, 0.0, tau), tau[elastic]]
    truth = robot.forward_dynamics(np.r_[q, theta[elastic]], np.r_[v, w[elastic]], forces)
    return compare("algorithm 2", truth, lambda form: hua.forward_dynamics(data, q, v, theta, w, tau, form)[2])


def _triangle() -> Decision:
    """Test whether the principal moments of links 2 and 3 are physical: none exceeds the sum of the others."""

    def is_body(inertia: Array) -> bool:
        moments = np.linalg.eigvalsh(inertia)
        return bool(moments[2] <= moments[0] + moments[1])

    links = library.elastic_arm().links[1:3]
    bodies = [np.diag(np.diag(link.inertia)) for link in links]  # without products of inertia they are bodies
    return words(all(map(is_body, bodies)), any(is_body(link.inertia) for link in links))


DECISIONS = {
    "eq-8": _crosses,
    "eq-20": _payload,
    "eq-30": _coriolis,
    "eq-34": _column,
    "eq-42": _lyapunov,
    "algorithm-1-labels": partial(_rows, "algorithm 1"),
    "algorithm-2-spring": _springs,
    "table-1-inertia": _triangle,
    **by_place(_rows, "21", "21 levers"),
}
