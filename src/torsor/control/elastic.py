"""Tracking with elastic joints whose springs have damping and whose motors sit on moving links.

The desired motion of the joints determines that of the motors. With F = K d + D d', d = theta - ratio q - offset, the
rows of the elastic joints are

    ratio F = M q'' + S theta'' + c(q, q', theta') + g(q) + friction and springs of the joints

so that the deflection d follows from the motion of the joints, but for D d' and the coupling S theta'' + c(theta') with
rotors on moving links. Both are inserted from the pass before, differentiated exactly in time.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, positive_vector, whole_number
from torsor.control.controller import Controller, traced
from torsor.control.drives import Drives
from torsor.control.references import Law, Reference
from torsor.control.references import reference as make_reference
from torsor.robot.robot import Robot

PASSES = 3
MOST_PASSES = 6  # each differentiates the forces of the one before once or twice more


def motor_equilibrium(robot: Robot, q: ArrayLike) -> Array:
    """Return all positions (nq) at which the robot with its joints at q (n) stands still: motors with loaded springs.

    The springs of elastic joints, which must be linear, carry gravity and the springs of the joints.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, carrier="base", stiffness=100.0)
        >>> motor_equilibrium(arm, [0.0]).round(9).tolist()  # 4.905 N m / 100 N m/rad
        [0.0, 0.04905]
    """
    drives = Drives.of(robot, "motor_equilibrium", damped=True)
    joints = ca.DM(frozen_array(q, (drives.n,), f"{robot.name}: motor_equilibrium", "q"))
    symbol = ca.SX.sym("q", drives.n)
    force = drives.of_elastic(drives.static(symbol)) / drives.ratio
    whole = ca.vertcat(symbol, drives.unloaded(symbol) + force / drives.K)
    return np.asarray(ca.Function("motors", [symbol], [whole])(joints).full().ravel())


def elastic_feed_forward(robot: Robot, reference: Law | Reference, passes: int = PASSES) -> ca.Function:
    """Return the whole motion of an elastic robot whose joints follow a reference: t -> (q, v, a, tau, residual).

    q (nq), v and a (nv) have the motors too; tau (nv) is the inverse dynamics, zero at elastic joints up to
    ``residual``, its largest part there, in N m. Without damping and coupling one pass is exact; with rotors on links
    that elastic joints move, as many passes as there are such joints in a row, and one more. With damping D the
    residual shrinks in each pass by about D / K times the frequency of the motion. The reference is differentiated 3
    times and up to twice more for each pass.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, 10, "base", stiffness=200.0, damping=0.1)
        >>> law = lambda t: [0.5 * ca.sin(t)]
        >>> [float(elastic_feed_forward(arm, law, passes)(0.3)[4]) < 1e-3**passes for passes in (1, 2, 3)]
        [True, True, True]
    """
    drives = Drives.of(robot, "elastic_feed_forward", damped=True)
    where = f"{robot.name}: elastic_feed_forward"
    whole_number(passes, where, "passes", most=MOST_PASSES)
    damping = ca.DM([float(joint.motor.damping) for joint in robot.elastic if joint.motor is not None])
    t = ca.SX.sym("t")
    desired = make_reference(robot, reference).rates(t, 2)
    inverse = robot.function("inverse_dynamics")

    def rate(value: ca.SX) -> ca.SX:
        return ca.jtimes(value, t, ca.SX(1))

    def motion(motors: ca.SX) -> list[ca.SX]:
        first = rate(motors)
        return [ca.vertcat(*pair) for pair in zip(desired, (motors, first, rate(first)), strict=True)]

    free = drives.unloaded(desired[0])
    motors = free
    for _ in range(passes if drives.elastic else 0):
        q, v, a = motion(motors)
        # Inverse dynamics has the forces of the springs too: those of this pass are taken out again.
        spring = drives.K * (motors - free) + damping * rate(motors - free)
        load = drives.of_elastic(inverse(q, v, a)[: drives.n]) / drives.ratio + spring
        motors = ca.cse(free + (load - damping * rate(motors - free)) / drives.K)
    q, v, a = motion(motors)
    tau = inverse(q, v, a)
    left = drives.of_elastic(tau[: drives.n])
    residual = ca.norm_inf(left) if drives.elastic else ca.SX(0)
    for k in drives.elastic:
        tau[k] = 0
    outputs = ca.cse([ca.densify(each) for each in (q, v, a, tau, residual)])
    return ca.Function("feed_forward", [t], outputs, ["t"], ["q", "v", "a", "tau", "residual"])


def elastic_tracking(
    robot: Robot, reference: Law | Reference, kp: ArrayLike, kd: ArrayLike, passes: int = PASSES
) -> Controller:
    """Return a tracking controller of elastic arms, with damped springs and with motors on moving links.

    The feed-forward is the inverse dynamics of the whole motion (``elastic_feed_forward``), the feedback is that of the
    motors, and of the joints where they are rigid:

        tau_m = tau_d + kp (theta_d - theta) + kd (theta_d' - theta')

    ``kp`` (N m/rad) and ``kd`` (N m s/rad) are numbers or one for each joint. Only motors are measured. At the
    reference the feedback is zero; near it the loop is that of a spring kp behind the spring of the joint, which is
    stable if kp and K exceed the norm of dg/dq (Tomei 1991), and damping of the springs helps. All springs must be
    linear.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, 10, "base", stiffness=200.0, damping=0.5)
        >>> law = elastic_tracking(arm, [0.0], kp=300.0, kd=10.0)
        >>> law(0.0, motor_equilibrium(arm, [0.0]), [0.0, 0.0]).round(9).tolist()  # gravity alone
        [0.0, 4.905]
    """
    drives = Drives.of(robot, "elastic_tracking", damped=True)
    where = f"{robot.name}: elastic_tracking"
    P, D = positive_vector(kp, drives.n, where, "kp"), positive_vector(kd, drives.n, where, "kd")
    desired = make_reference(robot, reference)
    forward = elastic_feed_forward(robot, desired, passes)
    own = drives.driven

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d, v_d, _, tau, _ = forward(t)
        tau[own] = tau[own] + P * (q_d[own] - q[own]) + D * (v_d[own] - v[own])
        return tau

    return traced("elastic_tracking", robot, law, desired)
