"""Computed torque control: inverse dynamics, after which the error of each joint obeys a linear equation."""

from __future__ import annotations

import casadi as ca
from numpy.typing import ArrayLike

from torsor.control.controller import Controller, pd_gains, traced
from torsor.control.drives import check_rigid, check_vector_space
from torsor.control.references import Law, Reference
from torsor.control.references import reference as make_reference
from torsor.robot.robot import Robot


def computed_torque(
    robot: Robot,
    reference: Law | Reference,
    kp: ArrayLike | None = None,
    kd: ArrayLike | None = None,
    *,
    bandwidth: ArrayLike | None = None,
    damping: ArrayLike = 1.0,
) -> Controller:
    """Return the inverse-dynamics controller of a robot with rigid joints.

    With e = q_d - q it is tau = ID(q, v, a_d + kd e' + kp e), so that e'' + kd e' + kp e = 0 (Luh, Walker and Paul
    1980). ``kp`` (1/s^2) and ``kd`` (1/s) are numbers or one for each coordinate; or ``bandwidth`` w (rad/s) and
    ``damping`` d give kp = w^2, kd = 2 d w. Friction, springs and rotors of the model are cancelled too.

    Example:
        >>> arm = torsor.library.two_link()
        >>> law = computed_torque(arm, lambda t: [ca.sin(t), 0.0], bandwidth=10.0)
        >>> tau = law(0.0, [0.0, 0.0], [0.0, 0.0])  # e = 0, e' = (1, 0), kd = 20
        >>> arm.forward_dynamics([0.0, 0.0], [0.0, 0.0], tau).round(9).tolist()
        [20.0, 0.0]
    """
    check_vector_space(robot, "computed_torque")
    check_rigid(robot, "computed_torque", "use control.mixed, for elastic joints")
    desired = make_reference(robot, reference)
    P, D = pd_gains(robot.nv, f"{robot.name}: computed_torque", kp, kd, bandwidth, damping)

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d, v_d, a_d = desired.rates(t, 2)
        return robot.function("inverse_dynamics")(q, v, a_d + D * (v_d - v) + P * (q_d - q))

    return traced("computed_torque", robot, law, desired)
