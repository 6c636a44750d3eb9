"""Compliant contact: the law of Hunt and Crossley with regularised Coulomb friction, as wrenches on the links.

With the depth x of a point, its rate x' and the slip u (tangential velocity),

    f_n = k x^n max(0, 1 + d x')            f_t = -mu f_n u / sqrt(|u|^2 + s^2)

(Hunt and Crossley 1975). The elastic part k x^n is the gradient of an energy; the rest takes power at every state,
since f_n - k x^n has the sign of x' and f_t opposes u: energy never grows. A body that hits with the speed v rebounds
with e v,

    d v (1 + e) = log((1 + d v) / (1 - d e v))

for every stiffness, exponent and mass. At rest under a tangential force of r mu f_n, r < 1, it creeps with the speed
s r / sqrt(1 - r^2).
"""

import casadi as ca

from torsor.base.checks import instance_of
from torsor.dynamics import Tree
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact
from torsor.simulation.contact_points import ContactPoint, ContactState

# m: keeps the derivative of x^n finite where shapes do not touch; the elastic force stays a function of depth alone.
_TINY = 1e-12


def _force(contact: Contact, point: ContactPoint) -> ca.SX:
    """Return the force (3 x 1) on the second shape, in base axes."""
    depth, apart = ca.fmax(-point.distance, 0), ca.dot(point.normal, point.velocity)
    elastic = contact.stiffness * depth
    if contact.exponent == 1.5:
        elastic = elastic * ca.sqrt(depth + _TINY)
    elif contact.exponent > 1:
        elastic = elastic * (depth + _TINY) ** (contact.exponent - 1)
    normal = elastic * ca.fmax(1 - contact.dissipation * apart, 0)
    if not contact.friction:
        return normal * point.normal
    slip = point.velocity - apart * point.normal
    return normal * (point.normal - contact.friction / ca.sqrt(ca.sumsqr(slip) + contact.slip**2) * slip)


def added_contact(robot: Robot, contact: Contact | None) -> ca.Function | None:
    """Return ``contact_wrenches`` of the contact given to a simulation, made once for each robot; None without any."""
    if contact is None:
        return None
    instance_of(contact, Contact, robot.name, "contact", allowed="a torsor.simulation.Contact")
    if contact.kind == "hard":
        return None  # its forces depend on the step: they are part of it
    made: ca.Function = robot.kernels.once(("contact", contact.key(robot)), lambda: contact_wrenches(robot, contact))
    return made


def contact_wrenches(robot: Robot, contact: Contact) -> ca.Function:
    """Return the wrenches of contact as a function of (t, q, v), (L x 6): on each link at its origin in its axes.

    Example:
        >>> ball = torsor.library.quadruped().with_shapes("fl_foot", [torsor.Shape("sphere", (0.02,))])
        >>> contact_wrenches(ball, Contact())
        Function(contact:(t,q[19],v[18])->(contact[13x6]) SXFunction)
    """
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    state = ContactState(Tree.of(robot), contact.touches(robot), q, v)
    wrenches = state.wrenches([_force(contact, each) for each in state.points])
    return ca.Function("contact", [t, q, v], [ca.densify(wrenches)], ["t", "q", "v"], ["contact"])
