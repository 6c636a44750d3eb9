"""Sums over the bodies: energies, centre of mass, momentum."""

import casadi as ca

from torsor.base.arrays import Array
from torsor.dynamics.recursions.kinematics import moves, sx, twists, world_poses
from torsor.dynamics.recursions.passive import spring_energy
from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import cross


def _momentum(body: Body, V: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return (angular momentum about the body's origin, linear momentum) for its twist V, in its axes.

    The spin of its rotors at the rates (nv x 1) of the coordinates is included.
    """
    J, ms, m = body.J, body.ms, body.mass
    (w, v), (h, b) = (V[:3], V[3:]), body.momenta(rates)
    return J @ w + cross(ms, v) + h, m * v + cross(w, ms) + b


def twice_kinetic_energy(body: Body, V: ca.SX, v: ca.SX) -> ca.SX:
    """Return omega . h + v . p (J) of a body with the twist V, its rotors spinning at the rates v (nv x 1)."""
    # The coupling of spin and body rotation counts twice: in the energy of the body and in that of the rotor.
    return ca.dot(V, ca.vertcat(*_momentum(body, V, 2 * v)))


def kinetic_energy(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return v^T M v / 2 (J): the sum over the bodies, and the energy of the rotors' spin."""
    moved = moves(tree, q)
    bodies = zip(moved, twists(tree, moved, v), strict=True)
    spin = ca.dot(v, tree.armature_times(v))
    return sum((twice_kinetic_energy(move.body, V, v) for move, V in bodies), start=spin) / 2


def _body_first_moment(body: Body, pose: tuple[ca.SX, ca.SX]) -> ca.SX:
    """Return mass times position of a body at the pose (R, p), in base axes."""
    R, p = pose
    return R @ body.ms + body.mass * p


def body_gravity_energy(body: Body, pose: tuple[ca.SX, ca.SX], gravity: Array) -> ca.SX:
    """Return -m g . c (J) of a body at the pose (R, p) in base axes."""
    return -ca.dot(sx(gravity), _body_first_moment(body, pose))


def _first_moment(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the sum of mass times position over the bodies, in base axes."""
    moved = moves(tree, q)
    bodies = zip(moved, world_poses(tree, moved), strict=True)
    return sum((_body_first_moment(move.body, pose) for move, pose in bodies), start=ca.SX.zeros(3, 1))


def total_mass(tree: Tree) -> ca.SX:
    """Return the mass (kg) of the moving links."""
    return ca.SX(sum(body.mass for body in tree.bodies))


def gravity_energy(tree: Tree, q: ca.SX) -> ca.SX:
    """Return -m g . c (J), zero with the centre of mass at the origin of the base."""
    return -ca.dot(sx(tree.gravity), _first_moment(tree, q))


def potential_energy(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the energy (J) of gravity and of the springs."""
    return gravity_energy(tree, q) + spring_energy(tree, q)


def center_of_mass(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the centre of mass (3 x 1) of the moving links, in base axes."""
    mass = total_mass(tree)
    return ca.SX.nan(3, 1) if mass.is_zero() else _first_moment(tree, q) / mass  # undefined without mass


def momentum(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return (angular momentum about the centre of mass, linear momentum) of the moving links in base axes (6 x 1).

    If the total mass is zero, the angular momentum is the same about every point.
    """
    moved, (h, p, first) = moves(tree, q), [ca.SX.zeros(3, 1)] * 3
    bodies = zip(moved, twists(tree, moved, v), world_poses(tree, moved), strict=True)
    for move, V, (R, origin) in bodies:
        h_body, p_body = _momentum(move.body, V, v)
        p_world = R @ p_body
        h, p = h + R @ h_body + cross(origin, p_world), p + p_world
        first = first + _body_first_moment(move.body, (R, origin))
    mass = total_mass(tree)
    return ca.vertcat(h if mass.is_zero() else h - cross(first, p) / mass, p)
