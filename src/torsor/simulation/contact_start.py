"""Checks before a simulation with contact: shapes that overlap, and steps that are too long for the stiffness."""

import math
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.dynamics import Tree
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact
from torsor.simulation.contact_points import ContactState

# Shapes may start this many times as deep as at rest under the whole weight: a motion may go on from an impact.
DEEPER = 10.0
SHALLOW = 1e-3  # m: always allowed
# Classical Runge-Kutta is stable for h times a decay rate, or an angular frequency, of up to 2.78.
STABLE = 2.78
FEW = 64  # rollouts whose step is checked


class Start(NamedTuple):
    """Points of contact at q: distances (..., K), and the Jacobians (..., K, 3, nv) of their relative velocities."""

    names: list[tuple[str, str]]
    distance: Array
    normal: Array
    jacobian: Array


def points_at(robot: Robot, contact: Contact, q: Array) -> Start:
    """Return the points of contact at postures q (B, nq); traced once, not compiled."""
    key = ("contact at the start", contact.key(robot))
    names, function = robot.kernels.once(key, lambda: _traced(robot, contact))
    table = function.map(len(q))(q.T).full().T.reshape(len(q), -1, len(names)).swapaxes(-1, -2)
    jacobian = table[..., 4:].reshape(*table.shape[:-1], 3, robot.nv)
    return Start(names, table[..., 0], table[..., 1:4], jacobian)


def _traced(robot: Robot, contact: Contact) -> tuple[list[tuple[str, str]], ca.Function]:
    """Return the names of the shapes of each point, and the function from q to all numbers of ``Start``."""
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    points = ContactState(Tree.of(robot), contact.touches(robot), q, v).points
    rows = [ca.vertcat(each.distance, each.normal, ca.vec(ca.jacobian(each.velocity, v).T)) for each in points]
    names = [(each.touch.first.name, each.touch.second.name) for each in points]
    return names, ca.Function("start", [q], [ca.vec(ca.densify(ca.horzcat(*rows).T))])


def check_start(robot: Robot, contact: Contact, q: Array, step: float | None) -> None:
    """Raise ModelError if shapes overlap at q (..., nq); warn if the ``step`` (s) is too long, unless it is None."""
    postures = q.reshape(math.prod(q.shape[:-1]), robot.nq)
    start = points_at(robot, contact, postures)
    weight = robot.mass * max(float(np.linalg.norm(robot.gravity)), 1.0)
    allowed = max(SHALLOW, DEEPER * contact.depth(weight))
    least = start.distance.min(axis=0)
    deepest = dict[tuple[str, str], float]()
    for name, distance in zip(start.names, least, strict=True):
        deepest[name] = min(distance, deepest.get(name, np.inf))
    deep = sorted((distance, name) for name, distance in deepest.items() if distance < -allowed)
    if deep:
        found = listing((f"{a!r} and {b!r} by {-1e3 * distance:.3g} mm" for distance, (a, b) in deep), most=4)
        limit = f"{1e3 * allowed:.3g} mm: {DEEPER:g} times the depth at rest, at least 1 mm"
        fix = "start higher or apart, or leave the pair out by shapes= or pairs="
        raise ModelError(describe(f"shapes overlap at the start: {found}", where=robot.name, allowed=limit, fix=fix))
    if step is not None:
        longest = stable_step(robot, contact, postures[:FEW], start, weight)
        if step > longest:
            text = (
                f"the step of {step:.3g} s is too long for the contact: about {longest:.2g} s is the largest stable one"
            )
            fix = 'a shorter step, method="adaptive", a smaller stiffness, or a larger slip'
            warn(describe(text, where=robot.name, fix=fix))


def stable_step(robot: Robot, contact: Contact, q: Array, start: Start, weight: float) -> float:
    """Return the largest stable step (s) of classical Runge-Kutta: an estimate, with all weight on any one point."""
    M = robot.mass_matrix(q, loops="open").reshape(-1, 1, robot.nv, robot.nv)
    J = start.jacobian[: len(q)]
    compliance = J @ np.linalg.solve(np.broadcast_to(M, (*J.shape[:2], *M.shape[2:])), J.swapaxes(-1, -2))
    depth = contact.depth(weight)
    slope = contact.exponent * weight / depth
    n = start.normal[: len(q)]
    frequency = np.sqrt(slope * np.einsum("bki,bkij,bkj->bk", n, compliance, n).max())
    decay = contact.friction * weight / contact.slip * np.linalg.eigvalsh(compliance).max()
    damping = contact.dissipation * weight * frequency**2 / slope
    return float(STABLE / max(frequency, decay, damping, 1e-300))
