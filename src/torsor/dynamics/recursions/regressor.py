"""Regressors: inverse dynamics, energy and power are linear in the parameters; these are the matrices.

A link has ten inertial parameters, about its origin in its own axes: m, m c, and J. The wrench of each parameter at
unit value is a column of Newton's and Euler's equations, and is transformed to the joints above like any other. Rotor
inertias and friction have a column each. Springs and motors are not among the parameters; their forces are added.
Khalil 2010, section 3; Khalil and Dombre 2002. The energy of each parameter at unit value is its column of the energy
regressor (Gautier and Khalil 1988), and force times velocity that of the power regressor.
"""

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.dynamics.recursions.composite import climb
from torsor.dynamics.recursions.energy import body_gravity_energy, twice_kinetic_energy
from torsor.dynamics.recursions.kinematics import Motion, motions, moves, sx, twists, world_poses
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Mechanism
from torsor.spatial import cross, moment, move_pseudo_inertia, pseudo_inertia, rotational_inertia

INERTIAL = ("m", "mx", "my", "mz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
"""The inertial parameters of a link: mass, first moments, moments of inertia about its origin."""
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def parameter_basis() -> list[Array]:
    """Return the pseudo-inertia (4 x 4) of each inertial parameter at unit value, in the link's axes."""
    bases = []
    for k in range(10):
        P = np.zeros((4, 4))
        if k == 0:
            P[3, 3] = 1.0
        elif k < 4:
            P[k - 1, 3] = P[3, k - 1] = 1.0
        else:
            J = np.zeros((3, 3))
            i, j = _PAIRS[k - 4]
            J[i, j] = J[j, i] = 1.0
            P[:3, :3] = np.trace(J) / 2 * np.eye(3) - J
        bases.append(P)
    return bases


def _parts(body: Body) -> Iterator[Array]:
    """Yield the pseudo-inertia (4 x 4) of each inertial parameter of a link at unit value, in the body's axes."""
    return (move_pseudo_inertia(body.link, unit) for unit in parameter_basis())


def _link_columns(body: Body, motion: Motion) -> tuple[ca.SX, ca.SX]:
    """Return the inertial wrenches (n, f), 3 x 10 each, of the inertial parameters of a link at unit value."""
    columns = []
    for P in _parts(body):
        Sigma, ms, m = sx(P[:3, :3]), sx(P[:3, 3]), sx(P[3, 3])
        columns.append((moment(motion.U, Sigma) + cross(ms, motion.a), m * motion.a + motion.U @ ms))
    return ca.horzcat(*(n for n, _ in columns)), ca.horzcat(*(f for _, f in columns))


def regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return Y (nv x p) with tau = Y pi, pi as in ``parameters``, without the forces of springs and motors."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    blocks: list[ca.SX] = []
    for k, (body, m) in enumerate(zip(tree.bodies, motion, strict=True)):
        rows: dict[int, ca.SX] = {}
        for j, wrench in climb(tree, moved, k, *_link_columns(body, m)):
            above = tree.bodies[j]
            forces = above.joint.ratio * (moved[j].S.T @ wrench)
            for r in range(forces.size1()):
                rows[above.v.start + r] = rows.get(above.v.start + r, 0) + forces[r, :]
        blocks.append(ca.vertcat(ca.SX(0, 10), *(rows.get(r, ca.SX(1, 10)) for r in range(tree.nv))))
    return ca.horzcat(ca.SX(tree.nv, 0), *blocks, *_joint_columns(tree, v, a))


def power_regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return y (p x 1) with v . tau = y . pi: the rate of the energy plus the dissipation of friction, in W."""
    return regressor(tree, q, v, a).T @ v


def energy_regressor(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return h (p x 1) with kinetic energy + gravity energy = h . pi, in J; zero for friction."""
    moved = moves(tree, q)
    columns: list[ca.SX] = []
    for body, V, pose in zip(tree.bodies, twists(tree, moved, v), world_poses(tree, moved), strict=True):
        for P in _parts(body):
            part = replace(body, P=P, rotors=())
            columns.append(twice_kinetic_energy(part, V, v) / 2 + body_gravity_energy(part, pose, tree.gravity))
    for body in tree.bodies:
        rate = body.rate(v)
        for k in range(rate.size1()):
            columns += [rate[k] ** 2 / 2, ca.SX(1, 1), ca.SX(1, 1)]
    return ca.densify(ca.vertcat(ca.SX(0, 1), *columns))


def _column(nv: int, forces: dict[int, ca.SX]) -> ca.SX:
    return ca.vertcat(ca.SX(0, 1), *(forces.get(k, ca.SX(1, 1)) for k in range(nv)))


def _joint_columns(tree: Tree, v: ca.SX, a: ca.SX) -> Iterator[ca.SX]:
    """Yield the columns of rotor inertia, Coulomb and viscous friction of each velocity of each joint."""
    for body in tree.bodies:
        rate, acceleration, smooth = body.rate(v), body.rate(a), body.joint.smooth
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            direction = ca.tanh(rate[k] / smooth) if smooth else ca.sign(rate[k])
            for value in (acceleration[k], direction, rate[k]):
                yield _column(tree.nv, {index: body.joint.ratio * value})


def inertial(P: Array) -> Array:
    """Return the inertial parameters (10,) of a pseudo-inertia (4 x 4), about the same origin."""
    J = rotational_inertia(P[:3, :3])
    return np.array([P[3, 3], *P[:3, 3], *(J[i, j] for i, j in _PAIRS)])


def parameters(mechanism: Mechanism) -> Array:
    """Return pi (p,): ten for each link, then rotor inertia, Coulomb and viscous friction of each joint velocity."""
    values: list[float] = []
    for link in mechanism.links:
        values += inertial(pseudo_inertia(*link.body)).tolist()
    for joint in mechanism.joints:
        for k in range(joint.nv):
            values += [float(np.asarray(getattr(joint, name))[k]) for name in ("rotor_inertia", "coulomb", "viscous")]
    return np.array(values)


def parameter_count(mechanism: Mechanism) -> int:
    """Return the number of parameters."""
    return len(INERTIAL) * len(mechanism.links) + 3 * sum(joint.nv for joint in mechanism.joints)


def parameter_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of the parameters in their order: "link2.mx", "joint3.coulomb"."""
    links = [f"{link.name}.{each}" for link in mechanism.links for each in INERTIAL]
    drives = ("rotor_inertia", "coulomb", "viscous")
    return (*links, *(f"{v}.{each}" for joint in mechanism.joints for v in joint.velocity_names for each in drives))
