"""Inverse-dynamics control of robots with any mix of rigid and elastic joints: Hua et al. 2022, section IV.

Two control loops. The outer loop gives the torques tau_c of the load. In elastic joints the springs transmit them, so
tau_c determines the desired motor angles theta_d, which the inner loop tracks. The rates of theta_d are exact: they are
differentiated through the model, with the accelerations of the closed loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import positive_vector
from torsor.base.errors import ModelError, describe, warn
from torsor.control.controller import Controller, traced
from torsor.control.drives import Drives
from torsor.control.references import Law, Reference
from torsor.control.references import reference as make_reference
from torsor.robot.robot import Robot

Pair = tuple[ca.SX, ca.SX]


def mixed(
    robot: Robot,
    reference: Law | Reference,
    K_D: ArrayLike,
    Lambda: ArrayLike,
    K_D_motor: ArrayLike | None = None,
    Lambda_motor: ArrayLike | None = None,
) -> Controller:
    """Return the inverse-dynamics controller of Hua et al. 2022 (eqs. 37-49), for rigid and elastic joints.

    ``K_D`` (N m s/rad) and ``Lambda`` (1/s) are numbers or one for each joint, ``K_D_motor`` and ``Lambda_motor`` one
    for each elastic joint. The tau (nv) is zero at elastic joints, which are driven by their springs. With e = q_d - q,
    q_r' = q_d' + Lambda e, sigma = q_r' - q' and M, C, g of the load (g includes friction and springs of the joints):

        tau_c = M q_r'' + C q_r' + g + K_D sigma,   theta_d = q + tau_c / K  of the elastic joints
        theta_r' = theta_d' + Lambda_motor (theta_d - theta) + sigma,   sigma_m = theta_r' - theta'
        tau_m = S^T q'' + B theta_r'' + C_2 q' + K (theta_d - q) + K_D_motor sigma_m + the motor's friction

    Then M sigma' + C sigma + K_D sigma = K (theta_d - theta), zero in rigid rows, and B sigma_m' + K_D_motor sigma_m +
    K (theta_d - theta) = 0: stable, by the Lyapunov function of eq. 51. The accelerations q'' and theta'' of this
    closed loop are known functions of the state, and so theta_d' and theta_d'' are exact; nothing is filtered.

    Rigid rows have S theta'' + C_1 theta' in full. In elastic rows these terms (the coupling of rotor spin with the
    rotation of the carrier) are neglected in theta_d, which would otherwise need the fourth derivative of theta. They
    are zero where no elastic joint moves the motor of an elastic joint, as in the robot of Hua et al.; elsewhere there
    is a warning, and the equations above hold only if these terms are small compared with the inertia of the links.
    The springs must be linear and without damping.

    Example:
        >>> arm = torsor.library.elastic_arm()
        >>> law = mixed(arm, [0.0, 0.0, 0.0], K_D=30.0, Lambda=8.0, K_D_motor=20.0, Lambda_motor=40.0)
        >>> law(0.0, arm.neutral(), np.zeros(4)).round(6).tolist()[:3]  # gravity; joint 3 is driven by its spring
        [0.0, 6.3765, 0.0]
    """
    drives = Drives.of(robot, "mixed")
    count, where = len(drives.elastic), f"{robot.name}: mixed"
    if count and (K_D_motor is None or Lambda_motor is None):
        fix = f"give numbers, or one for each of the {count} elastic joints"
        raise ModelError(describe("K_D_motor or Lambda_motor is missing", where=where, fix=fix))
    gains = _Gains(
        positive_vector(K_D, drives.n, where, "K_D"),
        positive_vector(Lambda, drives.n, where, "Lambda"),
        positive_vector(1.0 if K_D_motor is None else K_D_motor, count, where, "K_D_motor"),
        positive_vector(1.0 if Lambda_motor is None else Lambda_motor, count, where, "Lambda_motor"),
    )
    desired = make_reference(robot, reference)
    neglected = drives.coupled(drives.elastic)
    if neglected:
        names = ", ".join(map(repr, neglected[:5]))
        warn(f"{where}: elastic joints move the motors of {names}; theta_d neglects the coupling with their rotors")

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        joints, motors = zip(drives.split(q), drives.split(v), strict=True)
        return _Loops(drives, gains, desired, t, joints, motors).torques()

    return traced("mixed", robot, law, desired)


@dataclass(frozen=True, eq=False)
class _Gains:
    K_D: Array
    Lambda: Array
    K_D_motor: Array
    Lambda_motor: Array


class _Loops:
    """The two control loops at a state, over symbols: joints (q, v) and motors (theta, w)."""

    def __init__(self, drives: Drives, gains: _Gains, desired: Reference, t: ca.SX, joints: Pair, motors: Pair):
        self.drives, self.gains, self.t = drives, gains, t
        (q, v), (self.theta, self.w) = joints, motors
        self.q, self.v = q, v
        q_d, v_d, a_d = desired.rates(t, 2)
        self.sigma = v_d + gains.Lambda * (q_d - q) - v
        self.a_r = a_d + gains.Lambda * (v_d - v)
        # M q_r'' + C q_r' = (M q_r'' + C q') + C sigma, and the bracket is inverse dynamics.
        self.tau_c = drives.inverse(q, v, self.a_r) + drives.coriolis(q, v) @ self.sigma + gains.K_D * self.sigma

    def torques(self) -> ca.SX:
        """Return tau of joints and motors."""
        drives, gains = self.drives, self.gains
        tau, elastic = ca.SX(self.tau_c), drives.elastic
        deflection = drives.of_elastic(self.tau_c) / (drives.ratio * drives.K)
        theta_d = drives.unloaded(self.q) + deflection
        e = theta_d - self.theta
        # The forces on the load: tau_c in rigid joints, the springs in elastic ones.
        joint_force = ca.SX(self.tau_c)
        joint_force[elastic] = drives.ratio * drives.K * (self.theta - drives.unloaded(self.q))
        a = drives.forward(self.q, self.v, joint_force)
        theta_d_rate = self._rate(theta_d, a)
        theta_d_rate2 = self._rate(theta_d_rate, a)
        sigma, sigma_rate = (drives.ratio * drives.of_elastic(each) for each in (self.sigma, self.a_r - a))
        sigma_m = theta_d_rate + gains.Lambda_motor * e + sigma - self.w
        a_m_r = theta_d_rate2 + gains.Lambda_motor * (theta_d_rate - self.w) + sigma_rate
        _, S, B = drives.mass(self.q)
        feedback = gains.K_D_motor * sigma_m
        bias, motor_bias = drives.bias(self.q, self.v, self.w)
        still_bias, _ = drives.bias(self.q, self.v, 0 * self.w)
        a_m = a_m_r + (feedback + drives.K * e) / ca.diag(B)
        tau = tau + S @ a_m + (bias - still_bias)
        tau[elastic] = 0
        return ca.vertcat(tau, S.T @ a + B @ a_m_r + motor_bias + drives.K * deflection + feedback)

    def _rate(self, value: ca.SX, a: ca.SX) -> ca.SX:
        """Return the time derivative of a function of the state, with the accelerations a of the joints."""
        state = ca.vertcat(self.t, self.q, self.v, self.theta)
        return ca.jtimes(value, state, ca.vertcat(1, self.v, a, self.w))
