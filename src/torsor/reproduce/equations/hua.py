"""Robots with rigid and elastic joints and motors on any link: Hua et al. 2022.

The notation follows M. T. Hua, M. Poursina and F. Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint
robotic manipulator using recursive Newton-Euler formulation" (equation numbers in comments; a ``Form`` names those
evaluated as printed).

Joint i turns about the z axis of frame i, and frame i+1 is fixed to link i: R^i_{i+1} = Rz(q_i) Rfix_i. A unified body
is a link with all motors on it, with their rotors locked. theta is the motor angle at the gear output.
"""

from typing import NamedTuple

import numpy as np

from torsor.reproduce.equations.form import CORRECTED, Form, Matrix, Vector

Z = np.array([0.0, 0.0, 1.0])


class Robot(NamedTuple):
    """A chain of N joints. Link arrays are in frame i+1, and r is the vector from O_{i-1} to O_i in frame i."""

    Rfix: Matrix  # (N, 3, 3)
    r: Matrix  # (N, 3)
    r_tip: Vector  # (3,) of the end effector from O_N, in frame N+1
    m: Vector  # (N,) of unified bodies
    rc: Matrix  # (N, 3) their centres of mass from O_i
    I: Matrix  # (N, 3, 3) about them  # noqa: E741
    carrier: tuple[int, ...]  # l_m: 0 is the base
    eta: Vector  # (N,) gear ratios
    Iz: Vector  # (N,) of the rotors about their axes
    zm: Matrix  # (N, 3) axes of the motors in frame l_m + 1
    K: Vector  # (N,) stiffness; 0 is a rigid joint
    g: Vector  # in frame 0


class Torques(NamedTuple):
    """Results of Algorithm 1: tau (N,), forces f_b and moments tau_b (N, 3) on link i from link i-1, in frame i+1."""

    tau: Vector
    f_b: Matrix
    tau_b: Matrix
    load: Vector  # tau_b along the axes of the joints


def rotation(angle: float) -> Matrix:
    """Return Rz."""
    s, c = np.sin(angle), np.cos(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def inverse_dynamics(
    robot: Robot,
    q: Vector,
    qd: Vector,
    qdd: Vector,
    theta: Vector,
    thetad: Vector,
    thetadd: Vector,
    f_e: Vector | None = None,
    tau_e: Vector | None = None,
    form: Form = CORRECTED,
) -> Torques:
    """Evaluate Algorithm 1. theta and its rates (N,) are used at elastic joints; f_e acts on the environment."""
    N, elastic = len(robot.m), robot.K > 0
    of_motor = form("algorithm 1", elastic, ~elastic)
    phid, phidd = np.where(of_motor, thetad, qd), np.where(of_motor, thetadd, qdd)  # (8), (9)
    R = [rotation(q[i]) @ robot.Rfix[i] for i in range(N)]
    w, wd, p, gravity = [np.zeros(3)], [np.zeros(3)], [np.zeros(3)], [np.asarray(robot.g)]  # of the base, in frame 1
    pc = []
    for i in range(N):
        before, rate, r = w[i], wd[i], robot.r[i]
        p.append(R[i].T @ (p[i] + np.cross(rate, r) + np.cross(before, np.cross(before, r))))  # (16)
        w.append(R[i].T @ (before + qd[i] * Z))  # (4)
        wd.append(R[i].T @ (rate + qdd[i] * Z + qd[i] * np.cross(before, Z)))  # (5)
        rc = robot.rc[i]
        pc.append(p[-1] + np.cross(wd[-1], rc) + np.cross(w[-1], np.cross(w[-1], rc)))  # (17)
        gravity.append(R[i].T @ gravity[i])
    force = np.zeros(3) if f_e is None else form("20", f_e, -np.asarray(f_e))  # (20)
    moment = np.zeros(3) if tau_e is None else form("20", tau_e, -np.asarray(tau_e))  # (26)
    f_b, tau_b, ahead = np.zeros((N, 3)), np.zeros((N, 3)), [*robot.r[1:], robot.r_tip]
    for i in reversed(range(N)):
        body, rc, inertia = i + 1, robot.rc[i], robot.I[i]
        f_b[i] = force + robot.m[i] * (pc[i] - gravity[body])  # (19)
        arm_moments = np.cross(rc, f_b[i]) - np.cross(rc - ahead[i], force)
        momentum = inertia @ wd[body] + np.cross(w[body], inertia @ w[body])
        spin = np.zeros(3)
        for k in range(N):
            if robot.carrier[k] == body:
                turned = phidd[k] * robot.zm[k] + phid[k] * np.cross(w[body], robot.zm[k])
                spin = spin + robot.eta[k] * robot.Iz[k] * turned  # (23)
        tau_b[i] = moment + form("21 levers", arm_moments, 0 * arm_moments) + momentum + form("21", spin, -spin)  # (25)
        force, moment = R[i] @ f_b[i], R[i] @ tau_b[i]
    load = np.array([tau_b[i] @ R[i].T @ Z for i in range(N)])
    motors = np.zeros(N)
    for k in range(N):
        on = robot.carrier[k]
        rotor_rate = robot.eta[k] * (phidd[k] * robot.zm[k] + phid[k] * np.cross(w[on], robot.zm[k]))
        motors[k] = robot.eta[k] * robot.Iz[k] * (wd[on] + rotor_rate) @ robot.zm[k]  # (8), (9)
    spring = robot.K * (theta - q)
    return Torques(np.where(elastic, spring, load) + motors, f_b, tau_b, load)  # (27) to (29)


def rows(robot: Robot, found: Torques) -> Vector:
    """Return the rows of (30): loads (without springs), then motors of elastic joints."""
    elastic = robot.K > 0
    return np.concatenate([np.where(elastic, found.load, found.tau), found.tau[elastic]])


def forward_dynamics(
    robot: Robot,
    q: Vector,
    qd: Vector,
    theta: Vector,
    thetad: Vector,
    tau: Vector,
    f_e: Vector | None = None,
    tau_e: Vector | None = None,
    friction: Vector | float = 0.0,
    form: Form = CORRECTED,
) -> tuple[Matrix, Vector, Vector]:
    """Return A, zeta and the accelerations of joints and elastic-joint motors: Algorithm 2, (31) to (36).

    ``friction`` (N + N_e,) are tau_fr of the joints and of the motors of elastic joints.
    """
    N, elastic = len(robot.m), robot.K > 0
    rest = np.zeros(N)
    zeta = rows(robot, inverse_dynamics(robot, q, qd, rest, theta, thetad, rest, f_e, tau_e))  # (32), (33)
    weightless, columns = robot._replace(g=np.zeros(3)), []
    v, w = form("column", rest, qd), form("column", rest, thetad)
    for unit in np.eye(N + int(elastic.sum())):
        thetadd = np.zeros(N)
        thetadd[elastic] = unit[N:]
        result = rows(robot, inverse_dynamics(weightless, q, v, unit[:N], theta, w, thetadd))
        result[N:] -= (robot.K * (theta - q))[elastic]  # (34), (35)
        columns.append(result)
    A = np.array(columns).T
    spring = robot.K * form("algorithm 2", theta - q, robot.eta * (theta - robot.eta * q))  # (28)
    forces = np.concatenate([np.where(elastic, spring, tau), tau[elastic]])
    return A, zeta, np.linalg.solve(A, forces + friction - zeta)  # (36)
