"""Hard contact: a step in velocities and impulses, with Coulomb's cone, by projected Gauss-Seidel, in one kernel.

With the velocities u (3 per point, normal n and two tangents) of the points of contact, u = J v, a step of length h is

    v+ = v + M^-1 (h (tau - C v - g - friction + external) + J^T p)             q+ = q + h v+ (on the group)
    0 <= p_n   complementary to   u_n+ + p_n / (h k (h + r)) + d >= 0,          d = distance / (h + r), / h if positive
    |p_t| <= mu p_n,   p_t opposes u_t+ where they are equal, and u_t+ = 0 inside the cone

(Stewart and Trinkle 1996; Anitescu and Potra 1997). The normal direction is relaxed as a spring k with damping k r,
both taken at the end of the step, so that any stiffness is stable: a weight F rests at the depth F / k, and penetration
vanishes in the time r. There is no restitution. Friction is not relaxed: what sticks does not creep.

The impulses are found in two parts. The first guess is the impulse with which every point that touches sticks, one
factorisation of G = J M^-1 J^T. Then sweeps of projected Gauss-Seidel over the points: the normal impulse, then the
tangential one with a step of 1 over the larger eigenvalue of its block of G, projected onto the disc mu p_n. Every
subproblem is convex, and all of it is a fixed sequence of operations, for batches as for a single motion.
"""

from typing import NamedTuple

import casadi as ca

from torsor.dynamics import Body, Tree, lean
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact
from torsor.simulation.contact_points import ContactState
from torsor.simulation.dynamics import step_function, symbols
from torsor.spatial import cross

# Relative to its diagonal, what makes G regular in the first guess: points may be more than the motion can tell apart.
_REGULAR = 1e-6
# Relative to the diagonal of G, the compliance in the first guess of a point that does not touch.
_AWAY = 1e9
# 1/kg: that of a point that cannot move in some direction. Also keeps derivatives of square roots finite at zero.
_IMMOBILE = 1e-12


class _Solved(NamedTuple):
    """A step: inputs by name, velocities at its end (in the axes of its start), wrenches (L x 6) of contact in it."""

    inputs: dict[str, ca.SX]
    v_next: ca.SX
    wrenches: ca.SX


def tangents(normal: ca.SX) -> ca.SX:
    """Return two unit vectors (3 x 2) perpendicular to a unit vector and to each other (Duff et al. 2017).

    Example:
        >>> ca.DM(tangents(ca.SX([0, 0, 1]))).full().T.tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    x, y, z = ca.vertsplit(normal)
    side = ca.if_else(z >= 0, 1, -1)
    a = -1 / (side + z)
    b = x * y * a
    first, second = ca.vertcat(1 + side * x**2 * a, side * b, -side * x), ca.vertcat(b, side + y**2 * a, -y)
    return ca.horzcat(first, second)


def hard_step(robot: Robot, acting: ca.Function, contact: Contact) -> ca.Function:
    """Return step(t, q, v, [tau], [external], h) -> (q, v), one step of length h (s) with hard contact."""
    found = _solved(robot, acting, contact)
    q, h, v = found.inputs["q"], found.inputs["h"], found.v_next
    q_next, v_next = robot.function("integrate")(q, h * v), ca.SX(v)
    for body in _free(Tree.of(robot)):
        before, after = (body.joint.kind.transform(body.position(each), body.joint.pitch)[0] for each in (q, q_next))
        origin, linear = range(body.q.start, body.q.start + 3), range(body.v.start + 3, body.v.start + 6)
        along = before @ v[linear]
        q_next[origin], v_next[linear] = q[origin] + h * along, after.T @ along
    return step_function("hard", robot, found.inputs, q_next, v_next, None)


def _free(tree: Tree) -> list[Body]:
    """Return the bodies that are free to move."""
    return [body for body in tree.bodies if body.joint.type == "free"]


def hard_wrenches(robot: Robot, acting: ca.Function, contact: Contact) -> ca.Function:
    """Return the wrenches (L x 6) of contact in the step from (t, q, v, [tau], [external], h): impulses / h."""
    found = _solved(robot, acting, contact)
    inputs, wrenches = found.inputs, ca.cse(ca.densify(found.wrenches))
    return ca.Function("hard_contact", list(inputs.values()), [wrenches], list(inputs), ["contact"])


def _solved(robot: Robot, acting: ca.Function, contact: Contact) -> _Solved:
    t, q, v, *held = symbols(acting)
    h = ca.SX.sym("h")
    inputs = dict(zip([*acting.name_in(), "h"], [t, q, v, *held, h], strict=True))
    tau, *external = acting.call([t, q, v, *held])
    state = ContactState(Tree.of(robot), contact.touches(robot), q, v)
    frames = [ca.horzcat(each.normal, tangents(each.normal)) for each in state.points]
    J = ca.vertcat(*(ca.jacobian(frame.T @ each.velocity, v) for frame, each in zip(frames, state.points, strict=True)))
    tree = lean(Tree.of(robot))
    mass = Squares(mass_matrix(tree, q), list(reversed(range(tree.nv))))
    force = tau - inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external[0] if external else None)
    Z = ca.vertcat(*mass.forth(J[:, mass.order].T))
    u = ca.vertcat(*mass.forth(h * force[mass.order]))
    r = 1 / mass.D
    G = symmetric(Z.T @ (ca.diag(r) @ Z))
    # Velocities of free bodies are in their own axes. The step keeps the axes of its start and turns them at its end:
    # otherwise a body that spins would gain energy from the acceleration omega x v of its axes.
    kept = ca.SX(v)
    for body in _free(tree):
        start = body.v.start
        kept[start + 3 : start + 6] += h * cross(v[start : start + 3], v[start + 3 : start + 6])
    free = J @ kept + Z.T @ (u * r)
    distance = ca.vertcat(*(each.distance for each in state.points))
    p = _impulses(contact, G, free, distance, h)
    v_next = kept + mass.placed(mass.back(ca.vertsplit((u + Z @ p) * r), 1))
    parts = ca.vertsplit(p, 3)
    forces = [frame @ part / h for frame, part in zip(frames, parts, strict=True)]
    return _Solved(inputs, v_next, state.wrenches(forces))


def _impulses(contact: Contact, G: ca.SX, free: ca.SX, distance: ca.SX, h: ca.SX) -> ca.SX:
    """Return the impulses (3 K x 1) of K points, from their velocities without contact and their distances."""
    count, soft = distance.numel(), 1 / (contact.stiffness * h * (h + contact.relaxation))
    drift = distance / ca.if_else(distance > 0, h, h + contact.relaxation)
    touching = distance + h * free[::3] < 0
    wanted = ca.SX(free)
    wanted[::3] = free[::3] + drift
    added = ca.SX.zeros(3 * count, 1)
    for k in range(count):
        size = G[3 * k, 3 * k] + G[3 * k + 1, 3 * k + 1] + G[3 * k + 2, 3 * k + 2] + _IMMOBILE
        added[3 * k : 3 * k + 3] = ca.if_else(touching[k], _REGULAR, _AWAY) * size
    added[::3] += soft
    guess = -Squares(G + ca.diag(added)).solve(wanted)
    p = [ca.SX(each) for each in ca.vertsplit(guess)]
    mu = contact.friction
    for k in range(count):
        p[3 * k] = ca.fmax(p[3 * k], 0)
        p[3 * k + 1 : 3 * k + 3] = _on_disc(p[3 * k + 1], p[3 * k + 2], mu * p[3 * k])
    rows = [G[i, :] for i in range(3 * count)]
    for _ in range(contact.sweeps):
        for k in range(count):
            n, a, b = 3 * k, 3 * k + 1, 3 * k + 2
            rate = rows[n] @ ca.vertcat(*p) + wanted[n] + soft * p[n]
            p[n] = ca.fmax(p[n] - rate / (G[n, n] + soft), 0)
            if not mu:
                continue
            mean, half = (G[a, a] + G[b, b]) / 2, (G[a, a] - G[b, b]) / 2
            step = 1 / (mean + ca.sqrt(half**2 + G[a, b] ** 2 + _IMMOBILE**2))
            now = ca.vertcat(*p)
            x, y = (p[i] - step * (rows[i] @ now + wanted[i]) for i in (a, b))
            p[a], p[b] = _on_disc(x, y, mu * p[n])
    return ca.vertcat(*p)


def _on_disc(x: ca.SX, y: ca.SX, radius: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the point of a disc about 0 that is nearest to (x, y)."""
    length = ca.sqrt(x**2 + y**2 + _IMMOBILE**2)
    outside = length > radius
    scale = ca.if_else(outside, radius / ca.if_else(outside, length, 1), 1)
    return scale * x, scale * y
