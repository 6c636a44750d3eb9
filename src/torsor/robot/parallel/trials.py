"""Newton steps that close a parallel robot: one leg for a given pose, or legs and platform for given drives.

A trial, as ``robot.closed_loops.search.Closer`` evaluates it, is one column: the state after a step, Newton's next
step, the closing error, and the side. The side is the signed distance from singular: it changes its sign where a leg,
or the platform, passes a singular configuration into another assembly mode.
"""

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.loops.factors import Columns, reflected
from torsor.dynamics.recursions.configuration import integrate
from torsor.robot.parallel.decomposition import Assembly, Parts
from torsor.robot.parallel.limbs import Limb, TracedLimb
from torsor.robot.parallel.platforms import Platform
from torsor.robot.parallel.small import least


def leg_trial(parts: Parts, leg_state: ca.SX, leg_move: ca.SX, leg: int) -> ca.SX:
    """Return a trial of closing one leg at a given pose; the state is (pose, q), a step (du, dv)."""
    n, m, limb = parts.platform.nq, parts.platform.nv, parts.limbs[leg]
    pose, q = ca.vertsplit(leg_state, [0, n, leg_state.numel()])
    du, dv = ca.vertsplit(leg_move, [0, m, leg_move.numel()])
    pose, q = integrate(parts.platform, pose, du), integrate(limb.tree, q, dv)
    traced = TracedLimb(limb, q, Platform(parts.platform, pose), closed=False)
    step = _short(traced.step(), limb.units[1])
    return ca.vertcat(pose, q, ca.SX(m, 1), step, ca.norm_2(traced.closure_error()), least(traced.margin(True), True))


def leg_side(parts: Parts, leg_q: ca.SX, leg: int) -> ca.SX:
    """Return the side of a leg whose matrix A_q depends on its own positions alone (not ``depends_on_pose``)."""
    limb, pose = parts.limbs[leg], ca.SX.sym("pose", parts.platform.nq)
    value = least(TracedLimb(limb, leg_q, Platform(parts.platform, pose)).margin(True), True)
    return ca.substitute(value, pose, ca.SX.ones(parts.platform.nq, 1))


def depends_on_pose(parts: Parts, leg: int) -> bool:
    """Return whether the matrix A_q of a leg, and so its distance from singular, depends on the platform's pose too."""
    limb = parts.limbs[leg]
    pose, q = ca.SX.sym("pose", parts.platform.nq), ca.SX.sym("q", limb.tree.nq)
    return bool(ca.depends_on(TracedLimb(limb, q, Platform(parts.platform, pose)).A, pose))


def assembly_trial(parts: Parts, state: ca.SX, move: ca.SX) -> ca.SX:
    """Return a trial of closing legs and platform for given drives; the state is (pose, q, drives).

    The positions of redundant drives need not agree before convergence: their part of the closing error is then the
    gradient of the sum of squares of their differences.
    """
    nq, nv = parts.limbs[-1].q.stop, parts.limbs[-1].v.stop
    n, m = parts.platform.nq, parts.platform.nv
    pose, q, driven = ca.vertsplit(state, [0, n, n + nq, state.numel()])
    du, dv, led = ca.vertsplit(move, [0, m, m + nv, move.numel()])
    pose, driven = integrate(parts.platform, pose, du), driven + led
    q = ca.vertcat(*(integrate(limb.tree, q[limb.q], dv[limb.v]) for limb in parts.limbs))
    whole = Assembly(parts, pose, q, closed=False)
    steps = [limb.step() for limb in whole.limbs]
    drives, places = ca.SX(drive_units(parts)), [_position(limb, k) for limb in parts.limbs for k in limb.driven]
    apart = (driven - ca.vertcat(*(q[k] for k in places))) / drives
    ahead = [step[k] for limb, step in zip(parts.limbs, steps, strict=True) for k in limb.driven]
    wanted, K = apart - ca.vertcat(*ahead) / drives, _scaled_jacobian(parts, whole)
    if K.size1() == K.size2():
        turn, side = reflected(K, wanted)
    else:
        columns = Columns(K)
        turn, side, apart = columns.solve(wanted), columns.independence(), K.T @ apart
    moved = [ca.SX(parts.units) * turn]
    twist = whole.platform.unit_rates() @ moved[0]
    for limb, step in zip(whole.limbs, steps, strict=True):
        moved.append(step + limb.carried(ca.SX.eye(limb.limb.tree.nv)).T @ twist)
    longest = np.concatenate([parts.units, *(limb.units[1] for limb in parts.limbs)])
    error = ca.norm_2(ca.vertcat(apart, *(limb.closure_error() for limb in whole.limbs)))
    all_sides = least([side, *(value for limb in whole.limbs for value in limb.margin(True))], signed=True)
    return ca.vertcat(pose, q, driven, _short(ca.vertcat(*moved), longest), ca.SX(driven.numel(), 1), error, all_sides)


def sides(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the sides of the legs, and that of the platform (legs + 1,), which is 1 with redundant drives."""
    whole = Assembly(parts, pose, q, closed=False)
    K = _scaled_jacobian(parts, whole)
    last = reflected(K, ca.SX(K.size1(), 1))[1] if K.size1() == K.size2() else ca.SX(1)
    return ca.vertcat(*(least(limb.margin(True), signed=True) for limb in whole.limbs), last)


def drive_units(parts: Parts) -> Array:
    """Return the characteristic scales (N,) of the drives."""
    return np.array([limb.units[1][k] for limb in parts.limbs for k in limb.driven])


def _scaled_jacobian(parts: Parts, whole: Assembly) -> ca.SX:
    """Return K without units: divided by the scales of the drives, multiplied by those of the platform."""
    K = whole.platform.project(whole.drives()).T
    return ca.diag(ca.SX(1 / drive_units(parts))) @ K @ ca.diag(ca.SX(parts.units))


def _short(step: ca.SX, longest: Array) -> ca.SX:
    """Return a step clipped to ``longest`` for each coordinate: 1 rad, or the size of the robot."""
    return ca.fmax(ca.fmin(step, ca.SX(longest)), -ca.SX(longest))


def _position(limb: Limb, k: int) -> int:
    """Return the index, among the positions of all legs, of the one whose rate is the velocity k of a leg."""
    body = next(body for body in limb.tree.bodies if body.v.start <= k < body.v.stop)
    return int(limb.q.start + body.q.start + k - body.v.start)
