"""The motion in a step without contact: order 2, symplectic where forces do not depend on velocities.

With the acceleration a(t, q, v) and local coordinates about q (``chart``),

    q_m = q + h/2 v     v_m = v + h/2 a(t, q, v)     w = h a(t + h/2, q_m, v_m)     v* = v + w     q* = q + h (v + w/2)

which is the method of Stormer and Verlet with velocity products at a predicted velocity. The linear velocity of a free
body is in its own axes; it is added in the axes of the start and turned afterwards, so that a body that spins keeps its
momentum to rounding.
"""

from typing import NamedTuple

import casadi as ca

from torsor.dynamics import Body, Tree
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import acceleration, symbols
from torsor.spatial import cross


class FreeMotion(NamedTuple):
    """A step without contact: its ``inputs`` by name, its end (q, v), and the change of velocity in it.

    ``change`` (nv x 1) is in the axes of the end, as v is.
    """

    inputs: dict[str, ca.SX]
    q: ca.SX
    v: ca.SX
    change: ca.SX


def free_motion(robot: Robot, acting: ca.Function) -> FreeMotion:
    """Return the step of length h from (t, q, v, [tau], [external], h) without contact."""
    t, q, v, *held = symbols(acting)
    h = ca.SX.sym("h")
    inputs = dict(zip([*acting.name_in(), "h"], [t, q, v, *held, h], strict=True))
    tree, accelerated = Tree.of(robot), acceleration(robot, acting)
    half = h / 2 * v
    middle = robot.function("chart")(q, half)
    v_middle = turned(tree, q, middle, v + h / 2 * _in_space(tree, v, accelerated(t, q, v, *held)))
    change = h * _in_space(tree, v_middle, accelerated(t + h / 2, middle, v_middle, *held))
    change = turned(tree, middle, q, change)
    mean = v + change / 2
    end = robot.function("chart")(q, h * robot.function("chart_rate")(half, mean))
    for body in free_bodies(tree):
        origin = slice(body.q.start, body.q.start + 3)
        end[origin] = q[origin] + h * (_axes(body, q) @ mean[_linear(body)])
    return FreeMotion(inputs, end, turned(tree, q, end, v + change), turned(tree, q, end, change))


def free_bodies(tree: Tree) -> list[Body]:
    """Return the bodies that are free to move."""
    return [body for body in tree.bodies if body.joint.type == "free"]


def turned(tree: Tree, start: ca.SX, end: ca.SX, v: ca.SX) -> ca.SX:
    """Return velocities v at the positions ``start`` with linear velocities of free bodies in their axes at ``end``."""
    v = ca.SX(v)
    for body in free_bodies(tree):
        v[_linear(body)] = _axes(body, end).T @ (_axes(body, start) @ v[_linear(body)])
    return v


def _in_space(tree: Tree, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return accelerations whose linear part, of free bodies, is that of the origin and not that of its components."""
    a = ca.SX(a)
    for body in free_bodies(tree):
        a[_linear(body)] += cross(v[body.v.start : body.v.start + 3], v[_linear(body)])
    return a


def _linear(body: Body) -> slice:
    return slice(body.v.start + 3, body.v.start + 6)


def _axes(body: Body, q: ca.SX) -> ca.SX:
    """Return the rotation matrix of a free body."""
    R: ca.SX = body.joint.kind.transform(body.position(q), body.joint.pitch)[0]
    return R
