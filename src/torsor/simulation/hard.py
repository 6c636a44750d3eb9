"""Hard contact: a step in velocities and impulses, with Coulomb's cone, by projected Gauss-Seidel, in one kernel.

A step of length h first goes to (q*, v*), its end without contact (``free_motion``, of order 2); forces change the
velocities by w. There, with the velocities u = J v of the points of contact (3 each: normal n and two tangents), M and
the distances of shapes, impulses p are added:

    v+ = v* + M^-1 J^T p
    0 <= p_n   complementary to   u_n+ + p_n / (h k (h + r)) + d >= 0,          d = x / (h + r), x / h if positive
    |p_t| <= mu p_n,   p_t opposes u_t+ where they are equal, and u_t+ = 0 inside the cone

(Stewart and Trinkle 1996; Anitescu and Potra 1997), x = distance - h u_n* + h/2 (J w)_n. The normal is relaxed
as a spring k with damping k r, both taken at the end of the step, so that any stiffness is stable: a weight F rests at
the depth F / k, and penetration vanishes in the time r. There is no restitution. Friction is not relaxed: what sticks
does not creep. The positions follow the impulses, but those p_w that only hold what touches against w move it by half:

    q+ = q* + h M^-1 J^T (p - p_w / 2)          J w + G p_w = 0 where shapes touch

so that impacts do not penetrate, what rests does not move, and all other motion is of order 2. Impulses take the energy
p^T G p / 2 and what friction and spring take. The rest of the step changes it by errors of order h^2 in flight, and of
order h where points that touch are accelerated by velocity products: docs/contact.md has their size.

The impulses are found in two parts (``impulses``, ``mobility``). The first guess is the impulse with which every point
that touches sticks, one factorisation of G = J M^-1 J^T. Then sweeps of projected Gauss-Seidel over the points: the
normal impulse, then the tangential one with a step of 1 over the larger eigenvalue of its block of G, projected onto
the disc mu p_n. Every subproblem is convex, and all of it is a fixed sequence of operations, for batches as for a
single motion.
"""

from typing import NamedTuple

import casadi as ca

from torsor.base.errors import ModelError, describe
from torsor.dynamics import Tree, lean
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact
from torsor.simulation.contact_points import ContactState
from torsor.simulation.dynamics import step_function
from torsor.simulation.free_motion import FreeMotion, free_motion, turned
from torsor.simulation.impulses import impulses
from torsor.simulation.methods import STEPS
from torsor.simulation.mobility import Mobility


class _Solved(NamedTuple):
    """A step: without contact, what impulses change its velocities and positions by, wrenches (L x 6) of contact."""

    free: FreeMotion
    kick: ca.SX
    shift: ca.SX
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
    free, kick, shift, _ = _solved(robot, acting, contact)
    q_next = robot.function("chart")(free.q, shift)
    v_next = turned(Tree.of(robot), free.q, q_next, free.v + kick)
    return step_function("hard", robot, free.inputs, q_next, v_next, None)


def contact_step(robot: Robot, method: str, acting: ca.Function, contact: Contact | None) -> ca.Function:
    """Return the step of a method, or that of hard contact; raise ModelError for a method beside hard contact."""
    if contact is None or contact.kind == "compliant":
        return STEPS[method](robot, acting, None, None)
    if method != "rk4":
        what, fix = f'hard contact with method "{method}"', "leave the method out: it has a step of its own"
        raise ModelError(describe(what, where=robot.name, fix=fix))
    return hard_step(robot, acting, contact)


def hard_wrenches(robot: Robot, acting: ca.Function, contact: Contact) -> ca.Function:
    """Return the wrenches (L x 6) of contact in the step from (t, q, v, [tau], [external], h): impulses / h."""
    found = _solved(robot, acting, contact)
    inputs, wrenches = found.free.inputs, ca.cse(ca.densify(found.wrenches))
    return ca.Function("hard_contact", list(inputs.values()), [wrenches], list(inputs), ["contact"])


def _solved(robot: Robot, acting: ca.Function, contact: Contact) -> _Solved:
    free = free_motion(robot, acting)
    h, velocity = free.inputs["h"], ca.SX.sym("velocity", robot.nv)
    state = ContactState(Tree.of(robot), contact.touches(robot), free.q, velocity)
    frames = [ca.horzcat(each.normal, tangents(each.normal)) for each in state.points]
    points = [frame.T @ each.velocity for frame, each in zip(frames, state.points, strict=True)]
    J = ca.jacobian(ca.vertcat(*points), velocity)
    mobility = Mobility(mass_matrix(lean(Tree.of(robot)), free.q), J)
    u, change = J @ free.v, J @ free.change
    distance = ca.vertcat(*(each.distance for each in state.points)) - h * u[::3] + h / 2 * change[::3]
    p, held = impulses(contact, mobility, u, distance, change, h)
    kicks = mobility.kicks(ca.horzcat(p, p - held / 2))
    forces = [frame @ part / h for frame, part in zip(frames, ca.vertsplit(p, 3), strict=True)]
    return _Solved(free, kicks[:, 0], h * kicks[:, 1], state.wrenches(forces))
