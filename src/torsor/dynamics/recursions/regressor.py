"""Regressors: inverse dynamics, energy and power are linear in the parameters; these are the matrices.

A link has ten inertial parameters, about its origin in its own axes: m, m c, and J. The wrench of each parameter at
unit value is a column of Newton's and Euler's equations, and is transformed to the joints above like any other. Rotor
inertias and friction have a column each. Springs and motors are not among the parameters; their forces are added.
Khalil 2010, section 3.1; Khalil and Dombre 2002. The energy of each parameter at unit value is its column of the energy
regressor (Gautier and Khalil 1988), and force times velocity that of the power regressor.
"""

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.dynamics.recursions.composite import climb
from torsor.dynamics.recursions.energy import body_gravity_energy, twice_kinetic_energy
from torsor.dynamics.recursions.kinematics import Motion, motions, moves, sx, twists, world_poses
from torsor.dynamics.recursions.newton_euler import body_wrench
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Mechanism
from torsor.mechanism.flexible import Modes
from torsor.mechanism.free import PAIRS
from torsor.spatial import move_pseudo_inertia, pseudo_inertia, rotational_inertia, second_moment

INERTIAL = ("m", "mx", "my", "mz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
"""The inertial parameters of a link: mass, first moments, moments of inertia about its origin."""


def parameter_basis() -> list[Array]:
    """Return the pseudo-inertia (4 x 4) of each inertial parameter at unit value, in the link's axes."""
    bases = np.zeros((10, 4, 4))
    for P, (i, j) in zip(bases, ((3, 3), (0, 3), (1, 3), (2, 3), *PAIRS), strict=True):
        P[i, j] = P[j, i] = 1.0
    for P in bases[4:]:
        P[:3, :3] = second_moment(P[:3, :3])
    return list(bases)


def _parts(body: Body) -> Iterator[Body]:
    """Yield a body with one inertial parameter of its link at unit value, for each of them; it has no rotors."""
    return (replace(body, P=move_pseudo_inertia(body.link, unit), rotors=()) for unit in parameter_basis())


def _link_columns(body: Body, motion: Motion) -> tuple[ca.SX, ca.SX]:
    """Return the inertial wrenches (n, f), 3 x 10 each, of the inertial parameters of a link at unit value."""
    n, f = zip(*(body_wrench(part, motion, None, None) for part in _parts(body)), strict=True)
    return ca.horzcat(*n), ca.horzcat(*f)


def regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return Y (nv x p) with tau = Y pi, pi as in ``parameters``, without the forces of springs and motors."""
    _refuse_modes(tree)
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


def _refuse_modes(tree: Tree) -> None:
    """Raise ModelError for links with assumed modes: their forces are not linear in inertial parameters alone."""
    bent = next((body.joint.child for body in tree.bodies if body.modal), None)
    if bent is not None:
        found = f"link {bent!r} has assumed modes, and the inertia of modes is not among the parameters"
        names = (body.joint.name for body in tree.bodies if isinstance(body.joint.flexible, Modes))
        fix = f"make the link rigid: robot.fix({next(names)!r}, 0)"
        raise ModelError(describe(found, allowed="rigid links and rods", fix=fix))


def power_regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return y (p x 1) with v . tau = y . pi: the rate of the energy plus the dissipation of friction, in W."""
    return regressor(tree, q, v, a).T @ v


def energy_regressor(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return h (p x 1) with kinetic energy + gravity energy = h . pi, in J; zero for friction."""
    _refuse_modes(tree)
    moved = moves(tree, q)
    columns: list[ca.SX] = []
    for body, V, pose in zip(tree.bodies, twists(tree, moved, v), world_poses(tree, moved), strict=True):
        energies = ((twice_kinetic_energy(p, V, v), body_gravity_energy(p, pose, tree.gravity)) for p in _parts(body))
        columns += [twice / 2 + potential for twice, potential in energies]
    for body in tree.bodies:
        rate = body.rate(v)
        for k in range(rate.size1()):
            columns += [rate[k] ** 2 / 2, ca.SX(1, 1), ca.SX(1, 1)]
    return ca.densify(ca.vertcat(ca.SX(0, 1), *columns))


def _joint_columns(tree: Tree, v: ca.SX, a: ca.SX) -> Iterator[ca.SX]:
    """Yield the columns of rotor inertia, Coulomb and viscous friction of each velocity of each joint."""
    for body in tree.bodies:
        rate, acceleration, smooth = body.rate(v), body.rate(a), body.joint.smooth
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            direction = ca.tanh(rate[k] / smooth) if smooth else ca.sign(rate[k])
            for value in (acceleration[k], direction, rate[k]):
                column = ca.SX(tree.nv, 1)
                column[index] = body.joint.ratio * value
                yield column


def inertial(P: Array) -> Array:
    """Return the inertial parameters (10,) of a pseudo-inertia (4 x 4), about the same origin."""
    J = rotational_inertia(P[:3, :3])
    return np.array([P[3, 3], *P[:3, 3], *(J[i, j] for i, j in PAIRS)])


def parameters(mechanism: Mechanism) -> Array:
    """Return pi (p,): ten for each link, then rotor inertia, Coulomb and viscous friction of each joint velocity."""
    values: list[float] = []
    for link in mechanism.links:
        values += inertial(pseudo_inertia(*link.body)).tolist()
    for joint in mechanism.joints:
        values += np.column_stack([joint.rotor_inertia, joint.coulomb, joint.viscous]).ravel().tolist()
    return np.array(values)


def parameter_count(mechanism: Mechanism) -> int:
    """Return the number of parameters."""
    return len(INERTIAL) * len(mechanism.links) + 3 * sum(joint.nv for joint in mechanism.joints)


def parameter_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of the parameters in their order: "link2.mx", "joint3.coulomb"."""
    links = [f"{link.name}.{each}" for link in mechanism.links for each in INERTIAL]
    drives = ("rotor_inertia", "coulomb", "viscous")
    return (*links, *(f"{v}.{each}" for joint in mechanism.joints for v in joint.velocity_names for each in drives))
