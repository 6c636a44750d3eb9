"""Joint forces and their sensitivities by the recursive Lagrangian formulation, with 4 x 4 matrices.

The forces follow J. M. Hollerbach, "A recursive Lagrangian formulation of manipulator dynamics and a comparative
study of dynamics formulation complexity", 1980. The sensitivities are their derivatives, in the form of Y. Xiang,
J. S. Arora and K. Abdel-Malek, "Optimization-based motion prediction of mechanical systems: sensitivity analysis",
2009. Barman 2020 compares the recursive Newton-Euler formulation with this one.

A_j is the pose of link j, and B_j and C_j are its first and second time derivatives. The sensitivities of A_j, B_j and
C_j are with respect to the joints between link j and the root, and those of D_j and E_j also to the joints beyond it.
Matrices are NumPy arrays or CasADi expressions; joint forces are object arrays in both cases.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.reproduce.equations.form import Matrix, Vector
from torsor.robot.robot import Robot as LibraryRobot
from torsor.spatial import skew


class Robot(NamedTuple):
    """A tree of revolute and prismatic joints."""

    parents: Sequence[int]  # -1 is the base
    revolute: Sequence[bool]
    place: Sequence[Any]  # (4, 4) pose of link j in its parent at q_j = 0
    Q: Sequence[Any]  # (4, 4) derivative of the pose of link j by q_j, in link j
    J: Sequence[Any]  # (4, 4) integral of r r^T dm, with r = (x, y, z, 1), in link j
    g: Any  # (4,) gravity acceleration, in the base, and 0
    base: Any  # (4, 4) pose of the base


def from_library(robot: LibraryRobot) -> Robot:
    """Return the data of a library robot with revolute and prismatic joints."""
    n = robot.nv
    Q, J = np.zeros((n, 4, 4)), np.zeros((n, 4, 4))
    for j, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        axis, m, r, inertia = np.asarray(joint.axis), link.mass, np.asarray(link.com), np.asarray(link.inertia)
        if joint.type == "revolute":
            Q[j, :3, :3], Q[j, :3, 3] = skew(axis), np.cross(joint.point, axis)
        else:
            Q[j, :3, 3] = axis
        J[j, :3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia + m * np.outer(r, r)
        J[j, :3, 3], J[j, 3, :3], J[j, 3, 3] = m * r, m * r, m
    place = np.array([joint.placement for joint in robot.joints])
    turns = [joint.type == "revolute" for joint in robot.joints]
    return Robot(robot.parents, turns, list(place), list(Q), list(J), np.array([*robot.gravity, 0.0]), np.eye(4))


def symbolic(robot: Robot) -> Robot:
    """Return the robot with CasADi matrices, in which zeros require no operations."""
    place, Q, J = ([ca.sparsify(ca.SX(each)) for each in matrices] for matrices in (robot.place, robot.Q, robot.J))
    return Robot(robot.parents, robot.revolute, place, Q, J, ca.sparsify(ca.SX(robot.g)).T, ca.SX.eye(4))


class Step(NamedTuple):
    """The pose of link j in its parent, and its first three derivatives with respect to q_j."""

    T: Any
    T1: Any
    T2: Any
    T3: Any


def steps(robot: Robot, q: Any) -> list[Step]:
    """Return the pose of each link in its parent, with derivatives."""
    result = []
    for j, turns in enumerate(robot.revolute):
        P, PQ, PQQ = robot.place[j], robot.place[j] @ robot.Q[j], robot.place[j] @ robot.Q[j] @ robot.Q[j]
        if turns:
            s, c = ca.sin(q[j]), ca.cos(q[j])
            T1 = c * PQ + s * PQQ
            result.append(Step(P + s * PQ + (1 - c) * PQQ, T1, c * PQQ - s * PQ, -T1))
        else:
            result.append(Step(P + q[j] * PQ, PQ, 0 * PQ, 0 * PQ))
    return result


def inverse_dynamics(robot: Robot, chain: Sequence[Step], qd: Any, qdd: Any) -> Vector:
    """Return the joint forces."""
    return _outward_and_back(robot, chain, qd, qdd)[0]


def _outward_and_back(robot: Robot, chain: Sequence[Step], qd: Any, qdd: Any) -> tuple[Vector, Any]:
    n, U = len(chain), list[Any]()
    A, B, C = (n * [None] + [scale * robot.base] for scale in (1, 0, 0))  # the last one is the base
    for j, (T, T1, T2, _) in enumerate(chain):
        p, U_j = robot.parents[j], A[robot.parents[j]] @ T1
        A[j] = A[p] @ T
        B[j] = B[p] @ T + U_j * qd[j]
        C[j] = C[p] @ T + B[p] @ T1 * (2 * qd[j]) + A[p] @ T2 * qd[j] ** 2 + U_j * qdd[j]
        U.append(U_j)
    D, E = [J @ C_j.T for J, C_j in zip(robot.J, C, strict=False)], [J[:, 3] for J in robot.J]
    tau = np.zeros(n, dtype=object)
    for j in reversed(range(n)):
        tau[j] = trace(U[j], D[j]) - robot.g @ (U[j] @ E[j])
        if (p := robot.parents[j]) >= 0:
            D[p], E[p] = D[p] + chain[j].T @ D[j], E[p] + chain[j].T @ E[j]
    return tau, (A, B, C, D, E, U)


def trace(a: Any, b: Any) -> Any:
    """Return tr(a b)."""
    return ca.sum1(ca.sum2(a * b.T)) if isinstance(a, ca.SX) else (a * b.T).sum()


class Sensitivities(NamedTuple):
    """Joint forces, and their sensitivities (n, n) to positions, velocities and accelerations."""

    tau: Vector
    q: Matrix
    qd: Matrix
    qdd: Matrix


def sensitivities(robot: Robot, chain: Sequence[Step], qd: Any, qdd: Any) -> Sensitivities:
    """Return the joint forces with their sensitivities."""
    tau, (A, B, C, D, E, U) = _outward_and_back(robot, chain, qd, qdd)
    n = len(chain)
    A_k, B_k, C_k, U_k = (list[dict[int, Any]]({} for _ in range(n + 1)) for _ in range(4))
    for j, (T, T1, T2, T3) in enumerate(chain):
        p, v, a = robot.parents[j], qd[j], qdd[j]
        for k in A_k[p]:
            U_k[j][k] = A_k[p][k] @ T1
            A_k[j][k] = A_k[p][k] @ T
            B_k[j][k] = B_k[p][k] @ T + U_k[j][k] * v
            C_k[j][k] = C_k[p][k] @ T + B_k[p][k] @ T1 * (2 * v) + A_k[p][k] @ T2 * v**2 + U_k[j][k] * a
        U_k[j][j], A_k[j][j] = A[p] @ T2, U[j]
        B_k[j][j] = B[p] @ T1 + U_k[j][j] * v
        C_k[j][j] = C[p] @ T1 + B[p] @ T2 * (2 * v) + A[p] @ T3 * v**2 + U_k[j][j] * a
    D_q = [{k: J @ x.T for k, x in own.items()} for J, own in zip(robot.J, C_k, strict=False)]
    D_qd = [{k: J @ (2 * x).T for k, x in own.items()} for J, own in zip(robot.J, B_k, strict=False)]
    D_qdd = [{k: J @ x.T for k, x in own.items()} for J, own in zip(robot.J, A_k, strict=False)]
    E_q = list[dict[int, Any]]({} for _ in range(n))
    result = np.zeros((3, n, n), dtype=object)
    for j in reversed(range(n)):
        p, (T, T1, *_) = robot.parents[j], chain[j]
        for part, D_x in zip(result, (D_q, D_qd, D_qdd), strict=True):
            for k, x in D_x[j].items():
                part[j, k] = trace(U[j], x)
        for k, x in U_k[j].items():
            result[0, j, k] = result[0, j, k] + trace(x, D[j]) - robot.g @ (x @ E[j])
        for k, x in E_q[j].items():
            result[0, j, k] = result[0, j, k] - robot.g @ (U[j] @ x)
        if p < 0:
            continue
        for D_x in (D_q, D_qd, D_qdd):
            for k, x in D_x[j].items():
                D_x[p][k] = D_x[p][k] + T @ x if k in D_x[p] else T @ x
        D_q[p][j] = D_q[p][j] + T1 @ D[j]
        E_q[p] |= {k: T @ x for k, x in E_q[j].items()} | {j: T1 @ E[j]}
    return Sensitivities(tau, *result)
