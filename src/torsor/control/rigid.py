"""Control of robots with rigid joints: PD with gravity compensation, computed torque, and operational space."""

from __future__ import annotations

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import frozen_pose, positive_vector
from torsor.base.errors import ModelError
from torsor.control.controller import Controller, JointReference, Law, Reference, law_function, pd_gains, traced
from torsor.control.controller import reference as make_reference
from torsor.control.partition import Partition, check_quaternions, check_rigid, check_tree, check_vector_space
from torsor.robot.robot import Robot
from torsor.spatial import skew


def gravity_pd(robot: Robot, reference: JointReference | Reference, kp: ArrayLike, kd: ArrayLike) -> Controller:
    """Return a PD controller that compensates gravity and the joint springs.

    ``reference`` is a motion, samples, a function of time, or constants (see ``control.reference``). ``kp`` (N m/rad or
    N/m) and ``kd`` (N m s/rad or N s/m) are one number or one per joint velocity. If positions include quaternions (of
    a floating base or ball joint), the reference must be a constant q_d (nq), and all nv coordinates are driven. For
    rigid robots, the law is

        tau = kp (q_d - q) + kd (v_d - v) + g(q) + springs(q)                  Takegaki and Arimoto 1981

    With elastic joints, the feedback acts on the motors, and gravity is compensated at q_d:

        tau_m = kp (theta_d - theta) + kd (theta_d' - theta') + g(q_d),  theta_d = q_d + g(q_d) / K        Tomei 1991

    Rigid rows have the same form. The law is stable if the stiffness of kp and K in series, kp K / (kp + K), exceeds
    the norm of dg/dq.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> gravity_pd(arm, [0.1], kp=50.0, kd=10.0)(0.0, [0.0], [0.0]).round(9).tolist()  # 50 * 0.1 + 29.43
        [34.43]
    """
    check_tree(robot, "gravity_pd")
    if robot.nq != robot.nv:
        return _with_quaternions(robot, reference, kp, kd)
    drives = Partition.of(robot, "gravity_pd", damped=True)
    desired = make_reference(robot, reference)
    P, D = positive_vector(kp, drives.n, robot.name, "kp"), positive_vector(kd, drives.n, robot.name, "kd")
    driven = drives.driven

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d = desired.rates(t, 0)[0]
        # Forces evaluated at q could feed energy into the springs; forces at constant q_d derive from a potential.
        hold = drives.static(q_d if drives.elastic else q)
        target = ca.SX(q_d)
        force = drives.of_elastic(hold) / drives.ratio  # spring force
        target[drives.elastic] = drives.unloaded(q_d) + force / drives.K
        hold[drives.elastic] = force
        rate = ca.jtimes(target, t, ca.SX(1))
        tau = ca.SX.zeros(robot.nv, 1)
        tau[driven] = P * (target - q[driven]) + D * (rate - v[driven]) + hold
        return tau

    return traced("gravity_pd", robot, law, desired)


def gravity_compensation(robot: Robot, kd: ArrayLike = 0.0) -> Controller:
    """Return a controller that compensates gravity and joint springs and adds damping.

    A robot at rest then stays in its posture. The law is tau = g(q) + springs(q) - kd v, for robots with rigid joints
    and a fixed or floating base. If the base floats, all nv coordinates are driven. ``kd`` (N m s/rad or N s/m) is one
    number or one per velocity.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> gravity_compensation(arm, kd=2.0)(0.0, [0.0], [1.0]).round(9).tolist()  # 29.43 - 2
        [27.43]
    """
    check_tree(robot, "gravity_compensation")
    check_rigid(robot, "gravity_compensation", "use gravity_pd")
    D = positive_vector(kd, robot.nv, robot.name, "kd", or_zero=True)

    def law_of(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        return robot.function("gravity_force")(q) + robot.function("spring_force")(q) - D * v

    return traced("gravity_compensation", robot, law_of, None)


def _with_quaternions(robot: Robot, law: JointReference | Reference, kp: ArrayLike, kd: ArrayLike) -> Controller:
    check_rigid(robot, "gravity_pd of a robot with quaternions", "use a robot with rigid joints, or a fixed base")
    desired = make_reference(robot, law)
    P, D = positive_vector(kp, robot.nv, robot.name, "kp"), positive_vector(kd, robot.nv, robot.name, "kd")
    t = ca.SX.sym("t")
    if ca.depends_on(desired.function(t), t):
        message = "the reference of a robot with quaternions must be constant"
        raise ModelError(message, where=robot.name, allowed="constant positions (nq)")
    check_quaternions(robot, desired.function(0).full().ravel(), robot.name, "the reference")

    def law_of(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        error = robot.function("difference")(q, desired.rates(t, 0)[0])
        return error * P - v * D + robot.function("gravity_force")(q) + robot.function("spring_force")(q)

    return traced("gravity_pd", robot, law_of, desired)


# Operational-space control: the position or pose of a frame follows a reference, with damping in the null space.


def operational_space(
    robot: Robot,
    frame: str | int,
    position: Law | None = None,
    pose: Law | None = None,
    *,
    kp: Maybe = None,
    kd: Maybe = None,
    bandwidth: Maybe = None,
    damping: ArrayLike = 1.0,
    null_damping: ArrayLike = 0.0,
) -> Controller:
    """Return an operational-space controller of a link or frame (Khatib 1987), for robots with rigid joints.

    Pass either ``position``, the desired position (3) of the frame's origin in base axes, or ``pose``, the desired pose
    (4 x 4). Either is constant or a function of a symbolic (CasADi) time t. Gains are one number or one per error
    component (3, or 6 with the orientation first): ``kp`` (1/s^2) and ``kd`` (1/s), or ``bandwidth`` (rad/s) and
    ``damping`` ratio.
    ``null_damping`` (N m s/rad), one number or one per coordinate, damps the motion in the null space of the task. If
    it exceeds 2 inertia / period, a controller sampled with that period is unstable.

        x''_c = the acceleration for which e'' + kd e' + kp e = 0
        tau = J^T L (x''_c - J' v) + C v + g + friction + springs - N^T null_damping N v
        L = (J M^-1 J^T)^-1,  N = 1 - M^-1 J^T L J

    The orientation error is e = 2 tan(angle / 2) axis of R_d R^T, in base axes. It satisfies its equation exactly for
    errors below half a turn. L is unbounded where J loses rank.

    Example:
        >>> arm = torsor.library.seven_axis_arm()
        >>> law = operational_space(arm, "link7", position=[0.4, 0.0, 0.6], bandwidth=10.0, null_damping=0.2)
        >>> law(0.0, [0, 0.5, 0, -1.5, 0, 1.0, 0], [0.0] * 7).shape
        (7,)
    """
    where = f"{robot.name}: operational_space"
    check_vector_space(robot, "operational_space")
    check_rigid(robot, "operational_space", "use control.mixed with a joint reference")
    robot.place(frame)
    if (position is None) == (pose is None):
        message = "neither position nor pose is given" if position is None else "both position and pose are given"
        raise ModelError(message, where=where, allowed="exactly one of them")
    size = 3 if pose is None else 6
    if pose is None:
        desired = Reference(law_function(position, (3,), f"{where}: position"))  # type: ignore[arg-type]
    else:
        desired = Reference(law_function(pose, (4, 4), f"{where}: pose"))
        frozen_pose(desired.function(0).full(), where, "pose at t = 0")
    P, D = pd_gains(size, where, kp, kd, bandwidth, damping)
    brake = positive_vector(null_damping, robot.nv, where, "null_damping", or_zero=True)

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        T, still = robot.function("pose", frame)(q), ca.SX.zeros(robot.nv, 1)
        # Jacobian, twist and acceleration are expressed in the frame's own axes.
        R = ca.diagcat(T[:3, :3], T[:3, :3])[-size:, :]
        J = R @ robot.function("jacobian", frame)(q)
        V = R @ robot.function("velocity", frame)(q, v)
        drift = R @ robot.function("acceleration", frame)(q, v, still)  # J' v
        rates = desired.rates(t, 2)
        if pose is None:
            x_d, v_d, a_d = rates
            desired_acceleration = a_d + D * (v_d - V) + P * (x_d - T[:3, 3])
        else:
            x_d, v_d, a_d = (rate[:3, 3] for rate in rates)
            turn = _turn(T[:3, :3], V[:3], [rate[:3, :3] for rate in rates], P[:3], D[:3])
            desired_acceleration = ca.vertcat(turn, a_d + D[3:] * (v_d - V[3:]) + P[3:] * (x_d - T[:3, 3]))
        inverse = _solve(robot.function("mass_matrix")(q), J.T)  # M^-1 J^T
        mobility = J @ inverse  # the inverse of L, the inertia of the task
        free = -brake * (v - inverse @ _solve(mobility, J @ v))
        # The task force also cancels the effect of null-space damping on the task.
        force = _solve(mobility, desired_acceleration - drift - inverse.T @ free)
        return ca.SX(J.T @ force + free + robot.function("bias_force")(q, v))

    return traced("operational_space", robot, law, desired)


def _turn(R: ca.SX, w: ca.SX, desired: list[ca.SX], kp: Array, kd: Array) -> ca.SX:
    """Return the angular acceleration (3) for which the error e of R_d R^T satisfies e'' + kd e' + kp e = 0."""
    rotation, rate = ca.SX.sym("R", 3, 3), ca.SX.sym("w", 3)
    desired_rotations = [ca.SX.sym(name, 3, 3) for name in ("R_d", "R_d1", "R_d2")]
    E = desired_rotations[0] @ rotation.T
    e = 2 * ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]) / (1 + ca.trace(E))
    moving = ca.vertcat(ca.vec(rotation), ca.vec(desired_rotations[0]), ca.vec(desired_rotations[1]))
    flow = ca.vertcat(ca.vec(skew(rate) @ rotation), ca.vec(desired_rotations[1]), ca.vec(desired_rotations[2]))
    e_rate = ca.jtimes(e, moving, flow)
    # e'' = A w' + b
    A, b = ca.jacobian(e_rate, rate), ca.jtimes(e_rate, moving, flow)
    acceleration = ca.inv(A) @ (-e_rate * kd - e * kp - b)
    return ca.SX(ca.Function("turn", [rotation, rate, *desired_rotations], [acceleration])(R, w, *desired))


def _solve(matrix: ca.SX, b: ca.SX) -> ca.SX:
    """Return the solution x of matrix x = b for a symmetric positive definite matrix."""
    return ca.ldl_solve(b, *ca.ldl(matrix))


def computed_torque(
    robot: Robot,
    reference: JointReference | Reference,
    kp: Maybe = None,
    kd: Maybe = None,
    *,
    bandwidth: Maybe = None,
    damping: ArrayLike = 1.0,
) -> Controller:
    """Return a computed-torque (inverse-dynamics) controller for a robot with rigid joints and without quaternions.

    With e = q_d - q, tau = ID(q, v, a_d + kd e' + kp e), so that e'' + kd e' + kp e = 0 (Luh, Walker and Paul 1980).
    ``reference`` is a motion, samples, a function of time, or constants (see ``control.reference``). ``kp`` (1/s^2) and
    ``kd`` (1/s) are one number or one per coordinate. Alternatively, ``bandwidth`` w (rad/s) and ``damping`` d
    determine kp = w^2 and kd = 2 d w. Modelled friction, springs and rotors are also cancelled.

    Example:
        >>> arm = torsor.library.two_link()
        >>> law = computed_torque(arm, lambda t: [ca.sin(t), 0.0], bandwidth=10.0)
        >>> tau = law(0.0, [0.0, 0.0], [0.0, 0.0])  # e = 0, e' = (1, 0), kd = 20
        >>> arm.forward_dynamics([0.0, 0.0], [0.0, 0.0], tau).round(9).tolist()
        [20.0, 0.0]
    """
    check_vector_space(robot, "computed_torque")
    check_rigid(robot, "computed_torque", "use control.mixed")
    desired = make_reference(robot, reference)
    P, D = pd_gains(robot.nv, f"{robot.name}: computed_torque", kp, kd, bandwidth, damping)

    def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d, v_d, a_d = desired.rates(t, 2)
        return robot.function("inverse_dynamics")(q, v, a_d + D * (v_d - v) + P * (q_d - q))

    return traced("computed_torque", robot, law, desired)
