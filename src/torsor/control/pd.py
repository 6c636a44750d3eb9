"""PD feedback with compensation of gravity and springs."""

from __future__ import annotations

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.checks import positive_vector
from torsor.base.errors import ModelError, describe
from torsor.control.controller import Controller, traced
from torsor.control.drives import Drives, check_no_flexible_links, check_quaternions, check_rigid, check_tree
from torsor.control.references import Law, Reference, reference
from torsor.robot.robot import Robot


def gravity_pd(robot: Robot, reference: Law | Reference, kp: ArrayLike, kd: ArrayLike) -> Controller:
    """Return PD feedback with compensation of gravity and of the springs of the joints.

    ``reference`` is a law of time or constants (see ``control.reference``); ``kp`` (N m/rad or N/m) and ``kd``
    (N m s/rad or N s/m) are numbers or one for each joint velocity. For rigid robots, with floating bases too (there
    the reference is constant, q_d (nq), and all nv coordinates are driven):

        tau = kp (q_d - q) + kd (v_d - v) + g(q) + springs(q)                  Takegaki and Arimoto 1981

    With elastic joints the motors are fed back, and gravity is compensated at q_d:

        tau_m = kp (theta_d - theta) + kd (theta_d' - theta') + g(q_d),  theta_d = q_d + g(q_d) / K        Tomei 1991

    and likewise in the rigid rows. It is stable if kp and K exceed the norm of dg/dq.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> gravity_pd(arm, [0.1], kp=50.0, kd=10.0)(0.0, [0.0], [0.0]).round(9).tolist()  # 50 * 0.1 + 29.43
        [34.43]
    """
    check_tree(robot, "gravity_pd")
    check_no_flexible_links(robot, "gravity_pd")
    if robot.nq != robot.nv:
        return _of_rigid_robot(robot, reference, kp, kd)
    return _of_motors(robot, reference, kp, kd)


def gravity_compensation(robot: Robot, kd: ArrayLike = 0.0) -> Controller:
    """Return the compensation of gravity and of the springs of the joints, with damping: the robot floats.

    tau = g(q) + springs(q) - kd v, for robots with rigid joints, with floating bases too (then all nv coordinates are
    driven). ``kd`` (N m s/rad or N s/m) is a number or one for each velocity.

    Example:
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> gravity_compensation(arm, kd=2.0)(0.0, [0.0], [1.0]).round(9).tolist()  # 29.43 - 2
        [27.43]
    """
    check_tree(robot, "gravity_compensation")
    check_no_flexible_links(robot, "gravity_compensation")
    check_rigid(robot, "gravity_compensation", "use gravity_pd")
    D = positive_vector(kd, robot.nv, robot.name, "kd", or_zero=True)

    def law_of(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        return robot.function("gravity_force")(q) + robot.function("spring_force")(q) - D * v

    return traced("gravity_compensation", robot, law_of, None)


def _of_motors(robot: Robot, law: Law | Reference, kp: ArrayLike, kd: ArrayLike) -> Controller:
    drives = Drives.of(robot, "gravity_pd", damped=True)
    desired = reference(robot, law)
    P, D = positive_vector(kp, drives.n, robot.name, "kp"), positive_vector(kd, drives.n, robot.name, "kd")
    own = drives.driven

    def law_of(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        q_d = desired.rates(t, 0)[0]
        # Forces at q could feed energy into the springs; forces at the constant q_d derive from a potential.
        hold = drives.static(q_d if drives.elastic else q)
        target = ca.SX(q_d)
        force = drives.of_elastic(hold) / drives.ratio  # of the springs
        target[drives.elastic] = drives.unloaded(q_d) + force / drives.K
        hold[drives.elastic] = force
        rate = ca.jtimes(target, t, ca.SX(1))
        tau = ca.SX.zeros(robot.nv, 1)
        tau[own] = P * (target - q[own]) + D * (rate - v[own]) + hold
        return tau

    return traced("gravity_pd", robot, law_of, desired)


def _of_rigid_robot(robot: Robot, law: Law | Reference, kp: ArrayLike, kd: ArrayLike) -> Controller:
    check_rigid(robot, "gravity_pd with a floating base", "use a robot with rigid joints, or a fixed base")
    desired = reference(robot, law)
    P, D = positive_vector(kp, robot.nv, robot.name, "kp"), positive_vector(kd, robot.nv, robot.name, "kd")
    t = ca.SX.sym("t")
    if ca.depends_on(desired.function(t), t):
        found = "a moving reference for a robot with quaternions among its positions"
        raise ModelError(describe(found, where=robot.name, allowed="constant positions (nq)"))
    check_quaternions(robot, desired.function(0).full().ravel(), robot.name, "the reference")

    def law_of(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
        error = robot.function("difference")(q, desired.rates(t, 0)[0])
        return error * P - v * D + robot.function("gravity_force")(q) + robot.function("spring_force")(q)

    return traced("gravity_pd", robot, law_of, desired)
