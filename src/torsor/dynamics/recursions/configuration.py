"""Steps, differences and charts of the configuration space, joint by joint; motor angles are plain numbers."""

import casadi as ca

from torsor.dynamics.trees.tree import Tree


def integrate(tree: Tree, q: ca.SX, dv: ca.SX) -> ca.SX:
    """Return the positions (nq x 1) reached from q after one unit of time at the constant velocity dv (nv x 1)."""
    parts = [body.joint.kind.integrate(q[body.q], dv[body.v]) for body in tree.bodies if not body.joint.follows]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(q[i] + dv[j] for i, j in tree.motors))


def steps(tree: Tree, q: ca.SX) -> ca.SX:
    """Return E (nq x nv), the derivative of the components of q with respect to a step along ``integrate``, at zero."""
    u = ca.SX.sym("u", tree.nv)
    return ca.substitute(ca.jacobian(integrate(tree, q, u), u), u, ca.SX.zeros(tree.nv, 1))


def difference(tree: Tree, q: ca.SX, q_end: ca.SX) -> ca.SX:
    """Return the constant velocity (nv x 1) that moves q to q_end in one unit of time."""
    parts = [body.joint.kind.difference(q[body.q], q_end[body.q]) for body in tree.bodies if not body.joint.follows]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(q_end[i] - q[i] for i, _ in tree.motors))


def chart(tree: Tree, q: ca.SX, u: ca.SX) -> ca.SX:
    """Return the positions (nq x 1) at the local coordinates u (nv x 1) about q."""
    parts = [body.joint.kind.chart(q[body.q], u[body.v]) for body in tree.bodies if not body.joint.follows]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(q[i] + u[j] for i, j in tree.motors))


def chart_rate(tree: Tree, u: ca.SX, v: ca.SX) -> ca.SX:
    """Return the rate (nv x 1) of the local coordinates u at the velocity v."""
    parts = [body.joint.kind.chart_rate(u[body.v], v[body.v]) for body in tree.bodies if not body.joint.follows]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(v[j] for _, j in tree.motors))


def chart_velocity(tree: Tree, u: ca.SX, u_rate: ca.SX) -> ca.SX:
    """Return the velocity (nv x 1) at which the local coordinates u have the rate u_rate."""
    leaders = (body for body in tree.bodies if not body.joint.follows)
    parts = [body.joint.kind.chart_velocity(u[body.v], u_rate[body.v]) for body in leaders]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(u_rate[j] for _, j in tree.motors))


def chart_carry(tree: Tree, u: ca.SX, v: ca.SX) -> ca.SX:
    """Return the velocity (nv x 1) of the point u of a chart whose centre moves with the velocity v."""
    parts = [body.joint.kind.chart_carry(u[body.v], v[body.v]) for body in tree.bodies if not body.joint.follows]
    return ca.vertcat(ca.SX.zeros(0, 1), *parts, *(v[j] for _, j in tree.motors))
