"""Hua et al. 2022, section IV: the controller, its error equations, and the Lyapunov function along the closed loop."""

import math
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from torsor import control, library
from torsor.base.arrays import Array
from torsor.reproduce.item import Outcome, same

GAINS: dict[str, Any] = {
    "K_D": (38.0, 33.5, 16.0),
    "Lambda": (10.8, 10.2, 7.05),
    "K_D_motor": 20.0,
    "Lambda_motor": 40.0,
}
N, ELASTIC, STIFFNESS = 3, 2, 100.0  # joints, the elastic one, and its spring (N m/rad)


@cache
def law() -> control.Controller:
    """Return the controller of the library; the paper prints no gains, these were fitted to its errors.

    Example:
        >>> law().robot.name
        'elastic_arm'
    """
    return control.mixed(library.elastic_arm(), lambda t: N * [0.5 * ca.sin(0.5 * math.pi * t)], **GAINS)


def _closed_loop() -> ca.Function:
    """Return sides of eqs. 40, 50 and 52 as functions of (t, q, v), with rates along the closed loop of the library."""
    controller = law()
    robot, reference = controller.robot, controller.reference
    assert reference is not None
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", N + 1), ca.SX.sym("v", N + 1)
    a = robot.function("forward_dynamics")(q, v, controller.function(t, q, v))
    state, flow = ca.vertcat(t, q, v), ca.vertcat(1, v, a)

    def rate(value: ca.SX) -> ca.SX:
        return ca.jtimes(value, state, flow)

    K_D, Lambda = ca.DM(GAINS["K_D"]), ca.DM(GAINS["Lambda"])
    K_motor, Lambda_motor = GAINS["K_D_motor"], GAINS["Lambda_motor"]
    joints, theta = q[:N], q[N]
    still = ca.vertcat(v[:N], 0)
    M = robot.function("mass_matrix")(q)
    C = robot.function("coriolis_matrix")(q, still)[:N, :N]
    g = robot.function("gravity_force")(q)[:N]
    e = reference.function(t) - joints
    q_r = rate(e) + v[:N] + Lambda * e  # (37)
    sigma = q_r - v[:N]  # (38)
    tau_c = M[:N, :N] @ rate(q_r) + C @ q_r + g + K_D * sigma  # (39), S and C_1 are zero here
    theta_d = tau_c[ELASTIC] / STIFFNESS + joints[ELASTIC]  # (43)
    e_m = theta_d - theta  # (44)
    sigma_m = rate(e_m) + Lambda_motor * e_m + sigma[ELASTIC]  # (47)
    pull = ca.SX.zeros(N)
    pull[ELASTIC] = STIFFNESS * e_m
    load = M[:N, :N] @ rate(sigma) + C @ sigma + K_D * sigma  # (40), left
    motor = ca.vertcat(M[N, N] * rate(sigma_m) + K_motor * sigma_m, -STIFFNESS * e_m)  # (50), both sides
    V = (ca.dot(sigma, M[:N, :N] @ sigma) + 2 * ca.dot(e, Lambda * K_D * e)) / 2  # (41)
    V += (M[N, N] * sigma_m**2 + STIFFNESS * e_m**2) / 2  # (51)
    e_rate = rate(e)
    loss = -ca.dot(e_rate, K_D * e_rate) - ca.dot(e, Lambda * K_D * Lambda * e)
    loss -= K_motor * sigma_m**2 + STIFFNESS * Lambda_motor * e_m**2  # (52)
    return ca.Function("closed_loop", [t, q, v], [load, pull, motor, ca.vertcat(rate(V), loss)])


def stability() -> Outcome:
    """Compare both sides of eqs. 40, 50 and 52 at random states."""
    closed, rng = _closed_loop(), np.random.default_rng(1)
    found: list[list[Array]] = []
    for _ in range(3):
        q, v = 0.4 * rng.normal(size=N + 1), 0.5 * rng.normal(size=N + 1)
        found.append([np.asarray(each, dtype=float).ravel() for each in closed(rng.uniform(0, 5), q, v)])
    load, pull, motor, falls = (np.array(each) for each in zip(*found, strict=True))
    size = np.abs(motor).max()
    return Outcome(
        [
            same("M σ' + C σ + K_D σ = e_τ, eq. 40", pull, load, 1e-9 * size / np.abs(pull).max(), "N m"),
            same("B σ'_θ + K_Dθ σ_θ = -K e_θ, eq. 50", motor[:, 1], motor[:, 0], 1e-8, "N m"),
            same("rate of V_2, eq. 52 (below zero)", falls[:, 1], falls[:, 0], 1e-8, "W"),
        ]
    )
