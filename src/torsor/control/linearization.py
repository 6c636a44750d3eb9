"""Feedback linearisation of robots with elastic joints: each joint becomes a chain of four integrators."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import positive_vector
from torsor.base.errors import ModelError, describe
from torsor.control.controller import Controller, traced
from torsor.control.drives import Drives
from torsor.control.references import Law, Reference
from torsor.control.references import reference as make_reference
from torsor.robot.robot import Robot


def feedback_linearization(robot: Robot, reference: Law | Reference, poles: ArrayLike) -> Controller:
    """Return the controller that makes the error of each elastic joint obey a linear equation of the fourth order.

    ``poles`` p (1/s) is a positive number, for four poles at -p, or four of them, the same for all joints: the error
    e = q_d - q obeys (d/dt + p1)(d/dt + p2)(d/dt + p3)(d/dt + p4) e = 0. The joints' q'' and q''' come from the state
    through the model, M q'' + C q' + g = K (theta - q) and its rate, and the motors' torque from q'''' = u (Spong
    1987). All joints must be elastic, with linear springs without damping, and no rotor may be carried about its own
    axis (the inertia between joints and motors is zero: the reduced model). The reference is differentiated four times.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, ratio=10, carrier="base", stiffness=200.0)
        >>> law = feedback_linearization(arm, [0.0], poles=20.0)
        >>> law(0.0, [0.0, 4.905 / 200], [0.0, 0.0]).round(9).tolist()  # at rest at the reference: gravity alone
        [0.0, 4.905]
    """
    drives = Drives.of(robot, "feedback_linearization")
    where = f"{robot.name}: feedback_linearization"
    _check(drives, where)
    desired = make_reference(robot, reference)
    gains = np.poly(-positive_vector(poles, 4, where, "poles"))[:0:-1]  # of e, e', e'', e'''

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        (q, theta), (v, w) = drives.split(q), drives.split(v)
        state, ratio = ca.vertcat(q, v, theta), drives.ratio
        order = drives.elastic
        force = drives.K * (theta - drives.unloaded(q))
        joint_force = ca.SX.zeros(drives.n, 1)
        joint_force[order] = ratio * force
        a = drives.forward(q, v, joint_force)
        flow = ca.vertcat(v, a, w)
        jerk = ca.jtimes(a, state, flow)
        drift = ca.jtimes(jerk, state, flow)  # q'''' without theta''
        rates = desired.rates(t, 4)
        u = rates[4] + sum(k * (r - own) for k, r, own in zip(gains, rates, (q, v, a, jerk), strict=False))
        M, _, B = drives.mass(q)
        # M q'''' = M drift + ratio K theta''
        motor_a = drives.of_elastic(M @ (u - drift)) / (ratio * drives.K)
        _, motor_bias = drives.bias(q, v, w)
        return ca.vertcat(ca.SX.zeros(drives.n, 1), B @ motor_a + force + motor_bias)

    return traced("feedback_linearization", robot, law, desired)


def _check(drives: Drives, where: str) -> None:
    stiff = [name for k, name in enumerate(drives.robot.coordinate_names[: drives.n]) if k not in drives.elastic]
    if stiff:
        found = f"the rigid coordinates {', '.join(map(repr, stiff[:5]))}"
        fix = "use control.mixed, or control.computed_torque if no joint is elastic"
        raise ModelError(describe(found, where=where, allowed="elastic joints only", fix=fix))
    coupled = drives.coupled(range(drives.n))
    if coupled:
        found = f"the rotors of {', '.join(map(repr, coupled[:5]))} are carried about their axes by other links"
        fix = "put the motors on the base, or use control.mixed"
        raise ModelError(describe(found, where=where, allowed="no inertia between joints and motors", fix=fix))
