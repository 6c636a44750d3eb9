"""Inverse-dynamics control of robots with any mix of rigid and elastic joints: Hua et al. 2022, section IV.

Two loops. The load is driven by the torques tau_c; in elastic joints these come from springs, so tau_c says where the
motors shall be; and the motors are driven there. The rates of that place are exact: they are differentiated through the
model, along the accelerations that the closed loop has.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.control.controller import Controller, traced
from torsor.control.drives import Drives
from torsor.control.gains import positive
from torsor.control.references import Law, Reference
from torsor.control.references import reference as make_reference
from torsor.errors import ModelError, describe, warn
from torsor.robot.robot import Robot

__all__ = ["mixed"]

Array = NDArray[np.float64]


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
    for each elastic joint. The tau (nv) is zero at elastic joints, which only their springs drive. With e = q_d - q,
    q_r' = q_d' + Lambda e, sigma = q_r' - q' and the load's M, C, g (friction and the joints' own springs in g):

        tau_c = M q_r'' + C q_r' + g + K_D sigma,   theta_d = q + tau_c / K  of the elastic joints
        theta_r' = theta_d' + Lambda_motor (theta_d - theta) + sigma,   sigma_m = theta_r' - theta'
        tau_m = S^T q'' + B theta_r'' + C_2 q' + K (theta_d - q) + K_D_motor sigma_m + the motor's friction

    Then M sigma' + C sigma + K_D sigma = K (theta_d - theta), zero in rigid rows, and B sigma_m' + K_D_motor sigma_m +
    K (theta_d - theta) = 0: stable, by the Lyapunov function of eq. 51. The accelerations q'' and theta'' of this
    closed loop are known functions of the state, and so theta_d' and theta_d'' are exact; nothing is filtered.

    Rigid rows carry S theta'' + C_1 theta' in full. In elastic rows these terms (the spin of rotors against the turning
    of their carriers) are left out of theta_d, which with them would need the fourth rate of theta. They are zero where
    no elastic joint turns the motor of an elastic joint, as in Hua et al.'s robot; elsewhere there is a warning, and
    the equations above hold only as far as these terms are small beside the links' inertia. The springs must be linear
    and without damping.

    Example:
        >>> import torsor
        >>> arm = torsor.library.elastic_arm()
        >>> law = mixed(arm, [0.0, 0.0, 0.0], K_D=30.0, Lambda=8.0, K_D_motor=20.0, Lambda_motor=40.0)
        >>> law(0.0, arm.neutral(), np.zeros(4)).round(6).tolist()[:3]  # the weight; joint 3 has no drive of its own
        [0.0, 6.3765, 0.0]
    """
    drives = Drives.of(robot, "mixed")
    count, where = len(drives.elastic), f"{robot.name}: mixed"
    if count and (K_D_motor is None or Lambda_motor is None):
        fix = f"give numbers, or one for each of the {count} elastic joints"
        raise ModelError(describe("K_D_motor or Lambda_motor is missing", where=where, fix=fix))
    gains = _Gains(
        positive(K_D, drives.n, where, "K_D"),
        positive(Lambda, drives.n, where, "Lambda"),
        positive(1.0 if K_D_motor is None else K_D_motor, count, where, "K_D_motor"),
        positive(1.0 if Lambda_motor is None else Lambda_motor, count, where, "Lambda_motor"),
    )
    desired = make_reference(robot, reference)
    left_out = drives.coupled(drives.elastic)
    if left_out:
        names = ", ".join(map(repr, left_out[:5]))
        warn(f"{where}: elastic joints turn the motors of {names}; what the joints feel of it is left out of theta_d")

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        joints, motors = zip(drives.split(q), drives.split(v), strict=True)
        return _Loops(drives, gains, desired, t, *joints, *motors).torques()

    return traced("mixed", robot, law, desired)


@dataclass(frozen=True, eq=False)
class _Gains:
    K_D: Array
    Lambda: Array
    K_D_motor: Array
    Lambda_motor: Array


class _Loops:
    """The two loops at a state: joints q, v and motors theta, w, all of them symbols."""

    def __init__(
        self, drives: Drives, gains: _Gains, desired: Reference, t: ca.SX, q: ca.SX, v: ca.SX, theta: ca.SX, w: ca.SX
    ):
        self.drives, self.gains, self.t = drives, gains, t
        self.q, self.v, self.theta, self.w = q, v, theta, w
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
        # What the load feels: tau_c, but in elastic joints what the springs give.
        felt = ca.SX(self.tau_c)
        felt[elastic] = drives.ratio * drives.K * (self.theta - drives.unloaded(self.q))
        a = drives.forward(self.q, self.v, felt)
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
        """Return the rate in time of a function of the state, along the accelerations a of the joints."""
        state = ca.vertcat(self.t, self.q, self.v, self.theta)
        return ca.jtimes(value, state, ca.vertcat(1, self.v, a, self.w))
