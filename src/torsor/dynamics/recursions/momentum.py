"""Momentum of the robot about its centre of mass, as a linear function of the velocities: h = A(q) v.

At a unit rate of joint k, the subtree that it carries (one rigid body, see ``composite``) has the momentum F = I S_k.
Column k of A is this momentum in base axes about the centre of mass c. With the rates of S_k and I relative to the
base,

    F' = I S'_k + I' S_k,    S'_k = V_k x S_k + dS_k/dt

The rate I' of a body with twist (w, v) has the second moments D + D^T, D = v ms^T + [w] Sigma, the first moments
m v + w x ms and no mass. It is transformed and summed like I. Because the reference point moves with c', the angular
rows of A' also contain -c' x (linear rows of A). A rotor has the column R h, whose rate is R (w x h).

The momentum A v equals ``momentum``. Rotors are included, but armature is not, because the model does not define the
spin axis that it represents. The velocity-dependent part A' v of the momentum's rate is the sum of the bodies' inertial
wrenches at zero acceleration. See Orin and Goswami 2008, and Wensing and Orin 2016.
"""

import casadi as ca

from torsor.base.arrays import Array
from torsor.dynamics.recursions.composite import (
    Composite,
    Coordinates,
    composites,
    coordinates,
    onto_coordinates,
    rotors,
    summed,
)
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import Move, motions, moves, sx, twists, world_poses
from torsor.dynamics.recursions.newton_euler import wrenches
from torsor.dynamics.recursions.passive import spring_energy
from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import ad, cross, rotational_inertia, skew


def _momentum(body: Body, V: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return a body's momentum (angular about its origin, linear) at the twist V and the rotor ``rates`` (nv x 1)."""
    J, ms, m = body.J, body.ms, body.mass
    (w, v), (h, b) = (V[:3], V[3:]), body.momenta(rates)
    return J @ w + cross(ms, v) + h, m * v + cross(w, ms) + b


def twice_kinetic_energy(body: Body, V: ca.SX, v: ca.SX) -> ca.SX:
    """Return omega . h + v . p (J) of a body with the twist V, whose rotors spin at the rates v (nv x 1)."""
    # The coupling of spin and body rotation is counted twice: in the energy of the body and in that of the rotor.
    return ca.dot(V, ca.vertcat(*_momentum(body, V, 2 * v)))


def kinetic_energy(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return v^T M v / 2 (J): the energy of all bodies, including rotor spin."""
    moved = moves(tree, q)
    bodies = zip(moved, twists(tree, moved, v), strict=True)
    spin = ca.dot(v, tree.armature_times(v))
    return sum((twice_kinetic_energy(move.body, V, v) for move, V in bodies), start=spin) / 2


def _body_first_moment(body: Body, pose: tuple[ca.SX, ca.SX]) -> ca.SX:
    """Return the mass times centre of mass (3 x 1) of a body at the pose (R, p), in base axes."""
    R, p = pose
    return R @ body.ms + body.mass * p


def body_gravity_energy(body: Body, pose: tuple[ca.SX, ca.SX], gravity: Array) -> ca.SX:
    """Return -m g . c (J) of a body at the pose (R, p) in base axes."""
    return -ca.dot(sx(gravity), _body_first_moment(body, pose))


def _first_moment(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the sum of mass times centre of mass (3 x 1) over the bodies, in base axes."""
    moved = moves(tree, q)
    bodies = zip(moved, world_poses(tree, moved), strict=True)
    return sum((_body_first_moment(move.body, pose) for move, pose in bodies), start=ca.SX.zeros(3, 1))


def total_mass(tree: Tree) -> ca.SX:
    """Return the mass (kg) of the moving links."""
    return ca.SX(sum(body.mass for body in tree.bodies))


def gravity_energy(tree: Tree, q: ca.SX) -> ca.SX:
    """Return -m g . c (J), which is zero if the centre of mass is at the origin of the base."""
    return -ca.dot(sx(tree.gravity), _first_moment(tree, q))


def potential_energy(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the energy (J) of gravity and of the springs."""
    return gravity_energy(tree, q) + spring_energy(tree, q)


def center_of_mass(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the centre of mass (3 x 1) of the moving links, in base axes."""
    return _over_mass(tree, _first_moment(tree, q))


def momentum(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the momentum (6 x 1) of the moving links in base axes: angular about the centre of mass, then linear."""
    moved, (h, p, first) = moves(tree, q), [ca.SX.zeros(3, 1)] * 3
    bodies = zip(moved, twists(tree, moved, v), world_poses(tree, moved), strict=True)
    for move, V, (R, origin) in bodies:
        h_body, p_body = _momentum(move.body, V, v)
        p_world = R @ p_body
        h, p = h + R @ h_body + cross(origin, p_world), p + p_world
        first = first + _body_first_moment(move.body, (R, origin))
    mass = total_mass(tree)
    return ca.vertcat(h if mass.is_zero() else h - cross(first, p) / mass, p)


Pose = tuple[ca.SX, ca.SX]


def _whole(tree: Tree, moved: list[Move], composites_of: list[Composite]) -> Composite:
    """Return all moving links as one rigid body in base axes, about the base origin."""
    total = Composite(ca.SX.zeros(3, 3), ca.SX.zeros(3, 1), 0.0)
    for body, move, composite in zip(tree.bodies, moved, composites_of, strict=True):
        if body.parent < 0:
            total = total + composite.up(move)
    return total


def _centre(whole: Composite) -> ca.SX:
    """Return the centre of mass (3 x 1), or the base origin if there is no mass to define one."""
    return ca.SX.zeros(3, 1) if ca.SX(whole.m).is_zero() else whole.ms / whole.m


def _about(pose: Pose, centre: ca.SX, F: ca.SX) -> ca.SX:
    """Return a body's momenta F (6 rows), given in its own frame, in base axes about the point ``centre``."""
    R, p = pose
    f = R @ F[3:, :]
    return ca.vertcat(R @ F[:3, :] + skew(p - centre) @ f, f)


def _columns(tree: Tree, q: ca.SX) -> tuple[list[ca.SX], ca.SX, list[Move], list[Composite], list[Pose], ca.SX]:
    """Return blocks of A, their map to coordinates, and the moves, composites, poses and centre of mass."""
    moved = moves(tree, q)
    item, poses = composites(tree, moved), world_poses(tree, moved)
    centre = _centre(_whole(tree, moved, item))
    parts, of = [ca.SX(6, 0)], Coordinates()
    for move, composite, pose in zip(moved, item, poses, strict=True):
        parts.append(_about(pose, centre, ca.vertcat(*composite.momentum(move.S))))
        of += coordinates(move.body)
    for k, rotor in rotors(moved):
        parts.append(_about(poses[k], centre, ca.vertcat(*rotor.momentum)))
        of += coordinates(rotor)
    return parts, onto_coordinates(of, tree.nv), moved, item, poses, centre


def centroidal_momentum_matrix(tree: Tree, q: ca.SX) -> ca.SX:
    """Return A (6 x nv), where A v is the momentum (angular about the centre of mass, then linear) in base axes."""
    parts, gather, *_ = _columns(tree, q)
    return ca.densify(ca.horzcat(*parts) @ gather)


def centroidal_momentum_matrix_rate(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return A' (6 x nv), the rate of A at the velocities v."""
    if tree.bends:  # the inertia of its bodies depends on q
        A = centroidal_momentum_matrix(tree, q)
        return ca.reshape(ca.jtimes(ca.vec(ca.densify(A)), q, steps(tree, q) @ v), A.shape)
    columns, gather, moved, item, poses, centre = _columns(tree, q)
    twist = twists(tree, moved, v)
    rates = []  # rates of each body's inertia relative to the base, in the body's axes
    for body, V in ((move.body, V) for move, V in zip(moved, twist, strict=True)):
        D = V[3:] @ body.ms.T + skew(V[:3]) @ body.Sigma
        ms_rate = body.mass * V[3:] + cross(V[:3], body.ms)
        rates.append(Composite(ca.triu2symm(ca.triu(D + D.T)), ms_rate, 0.0))
    rates = summed(tree, moved, rates)
    changes = [ca.SX(6, 0)]
    for k, (move, composite) in enumerate(zip(moved, item, strict=True)):
        S_rate = ad(twist[k]) @ move.S + move.S_rate(move.body.rate(v))
        F_rate = ca.vertcat(*composite.momentum(S_rate)) + ca.vertcat(*rates[k].momentum(move.S))
        changes.append(_about(poses[k], centre, F_rate))
    for k, rotor in rotors(moved):
        turned = cross(twist[k][:3], rotor.momentum[0])
        changes.append(_about(poses[k], centre, ca.vertcat(turned, ca.SX.zeros(3, 1))))
    roots = (k for k, body in enumerate(tree.bodies) if body.parent < 0)
    momentum = sum((poses[k][0] @ rates[k].ms for k in roots), start=ca.SX.zeros(3, 1))
    mass = total_mass(tree)
    if not mass.is_zero():
        moving = skew(momentum / mass)
        for k, column in enumerate(columns):
            changes[k] = ca.vertcat(changes[k][:3, :] - moving @ column[3:, :], changes[k][3:, :])
    return ca.densify(ca.horzcat(*changes) @ gather)


def _momentum_rate(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX | None) -> ca.SX:
    """Return the rate (6 x 1) of the momentum, in base axes, which is the wrench about the centre of mass."""
    moved = moves(tree, q)
    wrench, total = wrenches(tree, moved, motions(tree, moved, v, a), v, a, None), ca.SX.zeros(6, 1)
    for body, move, (n, f) in zip(tree.bodies, moved, wrench, strict=True):
        if body.parent < 0:
            total = total + ca.vertcat(*move.up_wrench(n, f))
    centre = ca.SX.zeros(3, 1) if total_mass(tree).is_zero() else center_of_mass(tree, q)
    return ca.vertcat(total[:3] - cross(centre, total[3:]), total[3:])


def centroidal_momentum_bias(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return A' v (6 x 1): the rate of the momentum at zero acceleration."""
    return _momentum_rate(tree, q, v, None)


def composite_inertia(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the inertia (6 x 6) of the robot with all joints locked, about the centre of mass, in base axes."""
    moved = moves(tree, q)
    whole = _whole(tree, moved, composites(tree, moved))
    c, m = _centre(whole), ca.SX(whole.m)
    return ca.diagcat(rotational_inertia(whole.Sigma - whole.ms @ c.T), m * ca.SX.eye(3))


def _over_mass(tree: Tree, momentum: ca.SX) -> ca.SX:
    """Return linear momentum or its rates divided by the mass, or NaN if there is no mass."""
    mass = total_mass(tree)
    return ca.SX.nan(*momentum.shape) if mass.is_zero() else momentum / mass


def center_of_mass_jacobian(tree: Tree, q: ca.SX) -> ca.SX:
    """Return J (3 x nv), where J v is the velocity of the centre of mass in base axes."""
    return _over_mass(tree, centroidal_momentum_matrix(tree, q)[3:, :])


def center_of_mass_jacobian_rate(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return J' (3 x nv), the rate of the Jacobian of the centre of mass."""
    return _over_mass(tree, centroidal_momentum_matrix_rate(tree, q, v)[3:, :])


def center_of_mass_velocity(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the velocity (3 x 1) of the centre of mass in base axes."""
    return center_of_mass_jacobian(tree, q) @ v


def center_of_mass_acceleration(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return the acceleration (3 x 1) of the centre of mass in base axes, without gravity."""
    return _over_mass(tree, _momentum_rate(tree, q, v, a)[3:])
