"""Control of robots with elastic joints: feedback linearisation, mixed inverse dynamics and tracking.

The desired joint motion determines the motor motion. With F = K d + D d', d = theta - ratio q - offset, the rows of the
elastic joints are

    ratio F = M q'' + S theta'' + c(q, q', theta') + g(q) + friction and springs of the joints

so the deflection d follows from the joint motion, except for D d' and the coupling S theta'' + c(theta') with rotors on
moving links. Both terms are taken from the previous pass, and their time derivatives are exact.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import frozen_array, positive_vector, whole_number
from torsor.base.errors import ModelError, warn
from torsor.control.controller import Controller, JointReference, Reference, traced
from torsor.control.controller import reference as make_reference
from torsor.control.partition import Partition
from torsor.robot.robot import Robot

# Feedback linearisation of robots with elastic joints: each joint becomes a chain of four integrators.


def feedback_linearization(robot: Robot, reference: JointReference | Reference, poles: ArrayLike) -> Controller:
    """Return a controller for which the error of each elastic joint satisfies a linear fourth-order equation.

    ``poles`` p (1/s) is one positive number, for four poles at -p, or four numbers, shared by all joints. The error
    e = q_d - q satisfies (d/dt + p1)(d/dt + p2)(d/dt + p3)(d/dt + p4) e = 0. The model, M q'' + C q' + g =
    K (theta - q) and its rate, gives q'' and q''' from the state, and the motor torques from q'''' = u (Spong 1987).
    All joints must be elastic, with linear undamped springs, and no link may rotate a rotor about its spin axis (the
    reduced model, without inertia between joints and motors). The reference is differentiated four times.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, ratio=10, carrier="base", stiffness=200.0)
        >>> law = feedback_linearization(arm, [0.0], poles=20.0)
        >>> law(0.0, [0.0, 4.905 / 200], [0.0, 0.0]).round(9).tolist()  # at rest at the reference: only gravity
        [0.0, 4.905]
    """
    drives = Partition.of(robot, "feedback_linearization")
    where = f"{robot.name}: feedback_linearization"
    stiff = [name for k, name in enumerate(robot.coordinate_names[: drives.n]) if k not in drives.elastic]
    if stiff:
        message = f"the coordinates {', '.join(map(repr, stiff[:5]))} are rigid"
        fix = "use control.mixed, or control.computed_torque if no joint is elastic"
        raise ModelError(message, where=where, allowed="elastic joints only", fix=fix)
    coupled = drives.coupled(range(drives.n))
    if coupled:
        message = f"the rotors of {', '.join(map(repr, coupled[:5]))} are carried about their axes by moving links"
        fix = "put the motors on the base, or use control.mixed"
        raise ModelError(message, where=where, allowed="no inertia between joints and motors", fix=fix)
    desired = make_reference(robot, reference)
    gains = np.poly(-positive_vector(poles, 4, where, "poles"))[:0:-1]  # gains of e, e', e'', e'''

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
        drift = ca.jtimes(jerk, state, flow)  # q'''' for theta'' = 0
        rates = desired.rates(t, 4)
        u = rates[4] + sum(k * (r - value) for k, r, value in zip(gains, rates, (q, v, a, jerk), strict=False))
        M, _, B = drives.mass(q)
        # M q'''' = M drift + ratio K theta''
        motor_a = drives.of_elastic(M @ (u - drift)) / (ratio * drives.K)
        _, motor_bias = drives.bias(q, v, w)
        return ca.vertcat(ca.SX.zeros(drives.n, 1), B @ motor_a + force + motor_bias)

    return traced("feedback_linearization", robot, law, desired)


# Inverse-dynamics control for any mix of rigid and elastic joints: Hua et al. 2022, section IV.
#
# There are two control loops. The outer loop computes the load torques tau_c. In elastic joints, the springs transmit
# these torques, so tau_c determines the desired motor angles theta_d, which the inner loop tracks. The rates of theta_d
# are exact, because they are computed by the model with the closed-loop accelerations.


def mixed(
    robot: Robot,
    reference: JointReference | Reference,
    K_D: ArrayLike,
    Lambda: ArrayLike,
    K_D_motor: Maybe = None,
    Lambda_motor: Maybe = None,
) -> Controller:
    """Return the inverse-dynamics controller of Hua et al. 2022 (eqs. 37-49), for rigid and elastic joints.

    ``K_D`` (N m s/rad) and ``Lambda`` (1/s) are one number or one per joint; ``K_D_motor`` and ``Lambda_motor`` are one
    number or one per elastic joint. tau (nv) is zero at elastic joints, which are driven by their springs. With e =
    q_d - q, q_r' = q_d' + Lambda e, sigma = q_r' - q', and M, C, g of the load (g includes joint friction and springs):

        tau_c = M q_r'' + C q_r' + g + K_D sigma,   theta_d = q + tau_c / K  for the elastic joints
        theta_r' = theta_d' + Lambda_motor (theta_d - theta) + sigma,   sigma_m = theta_r' - theta'
        tau_m = S^T q'' + B theta_r'' + C_2 q' + K (theta_d - q) + K_D_motor sigma_m + the motor's friction

    Then M sigma' + C sigma + K_D sigma = K (theta_d - theta), which is zero in rigid rows, and B sigma_m' + K_D_motor
    sigma_m + K (theta_d - theta) = 0. Stability follows from the Lyapunov function in eq. 51. The closed-loop
    accelerations q'' and theta'' are known functions of the state, so theta_d' and theta_d'' are exact and no filter is
    needed.

    Rigid rows include S theta'' + C_1 theta'. In elastic rows, theta_d neglects these terms (the coupling of rotor spin
    with the rotation of the carrier), because it would otherwise require the fourth derivative of theta. They are zero
    if no elastic joint moves the motor of an elastic joint, as in the robot of Hua et al. Otherwise a warning is
    issued, and the equations above are valid only if these terms are small compared with the inertia of the links. The
    springs must be linear and undamped.

    Example:
        >>> arm = torsor.library.elastic_arm()
        >>> law = mixed(arm, [0.0, 0.0, 0.0], K_D=30.0, Lambda=8.0, K_D_motor=20.0, Lambda_motor=40.0)
        >>> law(0.0, arm.neutral(), np.zeros(4)).round(6).tolist()[:3]  # gravity; joint 3 is driven by its spring
        [0.0, 6.3765, 0.0]
    """
    drives = Partition.of(robot, "mixed")
    count, where = len(drives.elastic), f"{robot.name}: mixed"
    if count and (K_D_motor is None or Lambda_motor is None):
        fix = f"give one number, or one for each of the {count} elastic joints"
        raise ModelError("K_D_motor or Lambda_motor is missing", where=where, fix=fix)
    P, rate = positive_vector(K_D, drives.n, where, "K_D"), positive_vector(Lambda, drives.n, where, "Lambda")
    P_motor = positive_vector(1.0 if K_D_motor is None else K_D_motor, count, where, "K_D_motor")
    rate_motor = positive_vector(1.0 if Lambda_motor is None else Lambda_motor, count, where, "Lambda_motor")
    desired = make_reference(robot, reference)
    neglected = drives.coupled(drives.elastic)
    if neglected:
        names = ", ".join(map(repr, neglected[:5]))
        warn(f"{where}: elastic joints move the motors of {names}; theta_d neglects the rotor coupling")

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        (q, theta), (v, w) = drives.split(q), drives.split(v)
        q_d, v_d, a_d = desired.rates(t, 2)
        sigma, a_r = v_d + rate * (q_d - q) - v, a_d + rate * (v_d - v)
        # M q_r'' + C q_r' = (M q_r'' + C q') + C sigma, and the bracket is the inverse dynamics.
        tau_c = drives.inverse(q, v, a_r) + drives.coriolis(q, v) @ sigma + P * sigma
        deflection = drives.of_elastic(tau_c) / (drives.ratio * drives.K)
        theta_d = drives.unloaded(q) + deflection
        e = theta_d - theta
        # Forces on the load: tau_c in rigid joints, spring forces in elastic joints.
        joint_force = ca.SX(tau_c)
        joint_force[drives.elastic] = drives.ratio * drives.K * (theta - drives.unloaded(q))
        a = drives.forward(q, v, joint_force)
        state, flow = ca.vertcat(t, q, v, theta), ca.vertcat(1, v, a, w)
        theta_d_rate = ca.jtimes(theta_d, state, flow)
        theta_d_rate2 = ca.jtimes(theta_d_rate, state, flow)
        sigma_joint, sigma_rate = (drives.ratio * drives.of_elastic(values) for values in (sigma, a_r - a))
        sigma_m = theta_d_rate + rate_motor * e + sigma_joint - w
        a_m_r = theta_d_rate2 + rate_motor * (theta_d_rate - w) + sigma_rate
        _, S, B = drives.mass(q)
        feedback = P_motor * sigma_m
        bias, motor_bias = drives.bias(q, v, w)
        still_bias, _ = drives.bias(q, v, 0 * w)
        a_m = a_m_r + (feedback + drives.K * e) / ca.diag(B)
        tau = ca.SX(tau_c) + S @ a_m + (bias - still_bias)
        tau[drives.elastic] = 0
        return ca.vertcat(tau, S.T @ a + B @ a_m_r + motor_bias + drives.K * deflection + feedback)

    return traced("mixed", robot, law, desired)


PASSES = 3
MAX_PASSES = 6  # each pass differentiates the forces of the previous pass once or twice more


def motor_equilibrium(robot: Robot, q: ArrayLike) -> Array:
    """Return the equilibrium positions (nq) for joint positions q (n), with motor angles that hold the load.

    The springs of the elastic joints, which must be linear, balance gravity and the joint springs.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, carrier="base", stiffness=100.0)
        >>> motor_equilibrium(arm, [0.0]).round(9).tolist()  # 4.905 N m / 100 N m/rad
        [0.0, 0.04905]
    """
    drives = Partition.of(robot, "motor_equilibrium", damped=True)
    joints = ca.DM(frozen_array(q, (drives.n,), f"{robot.name}: motor_equilibrium", "q"))
    symbol = ca.SX.sym("q", drives.n)
    force = drives.of_elastic(drives.static(symbol)) / drives.ratio
    whole = ca.vertcat(symbol, drives.unloaded(symbol) + force / drives.K)
    return np.asarray(ca.Function("motors", [symbol], [whole])(joints).full().ravel())


def elastic_feed_forward(robot: Robot, reference: JointReference | Reference, passes: int = PASSES) -> ca.Function:
    """Return the full motion of an elastic robot whose joints follow a reference: t -> (q, v, a, tau, residual).

    q (nq), v and a (nv) include the motors. tau (nv) is the inverse dynamics. At elastic joints it is zero up to
    ``residual`` (N m), its largest entry there. Without damping and coupling, one pass is exact. If rotors are on links
    that elastic joints move, the required number of passes is one more than the number of such joints in series. With
    damping D, each pass multiplies the residual by about D / K times the frequency of the motion. The reference is
    differentiated three times, and up to twice more per pass (``passes`` is 1 to 6). For a sampled motion,
    ``window(t)`` of ``control.reference`` is a second argument.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, 10, "base", stiffness=200.0, damping=0.1)
        >>> law = lambda t: [0.5 * ca.sin(t)]
        >>> [float(elastic_feed_forward(arm, law, passes)(0.3)[4]) < 1e-3**passes for passes in (1, 2, 3)]
        [True, True, True]
    """
    drives = Partition.of(robot, "elastic_feed_forward", damped=True)
    where = f"{robot.name}: elastic_feed_forward"
    whole_number(passes, where, "passes", most=MAX_PASSES)
    damping = ca.DM([float(joint.motor.damping) for joint in robot.elastic if joint.motor is not None])
    t = ca.SX.sym("t")
    followed = make_reference(robot, reference)
    desired = followed.rates(t, 2)
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
        # Inverse dynamics includes spring forces, so those of this pass are removed.
        spring = drives.K * (motors - free) + damping * rate(motors - free)
        load = drives.of_elastic(inverse(q, v, a)[: drives.n]) / drives.ratio + spring
        motors = ca.cse(free + (load - damping * rate(motors - free)) / drives.K)
    q, v, a = motion(motors)
    tau = inverse(q, v, a)
    left = drives.of_elastic(tau[: drives.n])
    residual = ca.norm_inf(left) if drives.elastic else ca.SX(0)
    for k in drives.elastic:
        tau[k] = 0
    outputs = ca.cse([ca.densify(output) for output in (q, v, a, tau, residual)])
    inputs, names = [t, *followed.inputs], ["t", *["window"] * len(followed.inputs)]
    return ca.Function("feed_forward", inputs, outputs, names, ["q", "v", "a", "tau", "residual"])


def elastic_tracking(
    robot: Robot, reference: JointReference | Reference, kp: ArrayLike, kd: ArrayLike, passes: int = PASSES
) -> Controller:
    """Return a tracking controller for elastic arms, including damped springs and motors on moving links.

    The feed-forward is the inverse dynamics of the full motion (``elastic_feed_forward``). The feedback acts on the
    motors of elastic joints and on rigid joints:

        tau_m = tau_d + kp (theta_d - theta) + kd (theta_d' - theta')

    ``kp`` (N m/rad) and ``kd`` (N m s/rad) are one number or one per joint. Elastic joints need only a motor sensor. At
    the reference, the feedback is zero. Near it, the loop acts like a spring kp in series with the joint spring. It is
    stable if the stiffness of both, kp K / (kp + K), exceeds the norm of dg/dq (Tomei 1991); spring damping improves
    stability. All springs must be linear. For ``passes`` see ``elastic_feed_forward``.

    Example:
        >>> arm = torsor.library.planar_chain(1).with_motor("joint1", 1e-3, 10, "base", stiffness=200.0, damping=0.5)
        >>> law = elastic_tracking(arm, [0.0], kp=300.0, kd=10.0)
        >>> law(0.0, motor_equilibrium(arm, [0.0]), [0.0, 0.0]).round(9).tolist()  # only gravity
        [0.0, 4.905]
    """
    drives = Partition.of(robot, "elastic_tracking", damped=True)
    where = f"{robot.name}: elastic_tracking"
    P, D = positive_vector(kp, drives.n, where, "kp"), positive_vector(kd, drives.n, where, "kd")
    desired = make_reference(robot, reference)
    forward = elastic_feed_forward(robot, desired, passes)
    driven = drives.driven

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d, v_d, _, tau, _ = forward(t, *desired.inputs)
        tau[driven] = tau[driven] + P * (q_d[driven] - q[driven]) + D * (v_d[driven] - v[driven])
        return tau

    return traced("elastic_tracking", robot, law, desired)
