"""Derivatives by CasADi, for trees with flexible links: rates, derivatives, second derivatives and Coriolis matrix.

The analytical recursions of this package are those of rigid bodies. The inertia of a body with assumed modes depends on
q, so its forces are differentiated as they are traced. Positions with quaternions change along ``integrate``: the
components of q change by E(q) per step (``configuration.steps``).

The Coriolis matrix is that of the Levi-Civita connection of the metric M in the fields e_k of unit velocities, whose
Lie brackets are those of the joints' groups (Koszul's formula):

    2 C_ij = v(M_ij) + sum of v_k (e_j(M_ik) - e_i(M_jk)) + (M ad_v)_ij - (M ad_v)_ji - [e_j, e_i] . M v
"""

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from torsor.dynamics.recursions import composite, rates
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import integrate, steps
from torsor.dynamics.recursions.kinematics import moves, sx, world_poses
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics, joint_wrenches
from torsor.dynamics.trees.tree import Tree
from torsor.spatial import ad, cross, skew

Rule = Callable[..., ca.SX]  # (tree, q, v, a, external) -> forces (nv x 1) or reactions (L x 6)


def _symbols(tree: Tree, **given: ca.SX | None) -> dict[str, ca.SX]:
    return {name: ca.SX.sym(name, *each.shape) for name, each in given.items() if each is not None}


def _flat(result: ca.SX) -> ca.SX:
    """Return forces as they are, and a matrix with a row for each link as a column, row by row."""
    return ca.densify(ca.vec(result.T) if result.size2() > 1 else result)


def traced_derivatives(tree: Tree, rule: Rule, q: ca.SX, v: ca.SX, a: ca.SX, loads: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of a rule by q (along ``integrate``), v and a; ``loads`` are external wrenches."""
    at = _symbols(tree, q=q, v=v, a=a, external=loads.external, points=loads.points)
    start, external = ca.SX.sym("start", tree.nq), at.get("external")
    if external is not None and loads.in_world:
        external = _turned(tree, start, at["q"], external, at.get("points"))
    result = _flat(rule(tree, at["q"], at["v"], at["a"], external))
    by_q = ca.jacobian(result, at["q"]) @ steps(tree, at["q"])
    found = [ca.substitute(each, start, at["q"]) for each in (by_q, *(ca.jacobian(result, at[x]) for x in "va"))]
    given = {"q": q, "v": v, "a": a, "external": loads.external, "points": loads.points}
    dq, dv, da = ca.Function("derivatives", list(at.values()), found)(*(given[name] for name in at))
    return dq, dv, da


def _turned(tree: Tree, start: ca.SX, q: ca.SX, external: ca.SX, points: ca.SX | None) -> ca.SX:
    """Return wrenches (L x 6) in the links' axes at q that are constant in the world, given at ``start``."""
    before, after = (world_poses(tree, moves(tree, each)) for each in (start, q))
    rows = [ca.SX(0, 6)]
    for i, body in enumerate(tree.bodies):
        own = sx(body.link[:3, :3])
        back = (after[i][0] @ own).T @ (before[i][0] @ own)
        n, f = external[i, :3].T, external[i, 3:].T
        x = ca.SX.zeros(3, 1) if points is None else points[i, :].T
        f_now = back @ f
        rows.append(ca.vertcat(back @ (n - cross(x, f)) + cross(x, f_now), f_now).T)
    return ca.vertcat(*rows)


def traced_rates(
    tree: Tree, rule: Rule, q: ca.SX, given: Sequence[ca.SX], external: Sequence[ca.SX]
) -> tuple[ca.SX, ...]:
    """Return a rule's result and its rates; ``given`` are v, a, j, ..., ``external`` wrenches and their rates."""
    x, load = ca.SX.sym("q", tree.nq), [ca.SX.sym("load", *each.shape) for each in external]
    y = [ca.SX.sym("rate", tree.nv) for _ in given]
    state = ca.vertcat(x, *y[:-1], *map(ca.vec, load[:-1]))
    change = ca.vertcat(steps(tree, x) @ y[0], *y[1:], *map(ca.vec, load[1:]))
    found = [rule(tree, x, y[0], y[1], load[0] if load else None)]
    for _ in given[2:]:
        found.append(ca.reshape(ca.jtimes(ca.vec(found[-1]), state, change), found[-1].shape))
    results: Any = ca.Function("rates", [x, *y, *load], found)(q, *given, *external)
    return tuple(results)


def traced_hessian(
    tree: Tree, rule: Rule, q: ca.SX, v: ca.SX, a: ca.SX, weight: ca.SX, external: ca.SX | None
) -> ca.SX:
    """Return the Hessian (3 nv x 3 nv) of weight . forces by q (along ``integrate``), v and a."""
    at = _symbols(tree, q=q, v=v, a=a, weight=weight, external=external)
    step = ca.SX.sym("step", tree.nv)
    forces = rule(tree, integrate(tree, at["q"], step), at["v"], at["a"], at.get("external"))
    H = ca.hessian(ca.dot(at["weight"], forces), ca.vertcat(step, at["v"], at["a"]))[0]
    here = ca.substitute(H, step, ca.SX.zeros(tree.nv, 1))
    given = [each for each in (q, v, a, weight, external) if each is not None]
    return ca.Function("hessian", list(at.values()), [here])(*given)


def traced_coriolis(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C(q, v) (nv x nv) with C v the velocity forces and M' - 2 C skew-symmetric."""
    n, M = tree.nv, ca.densify(mass_matrix(tree, q))
    slopes = ca.jacobian(ca.vec(M), q) @ steps(tree, q)
    along = [ca.reshape(slopes[:, k], n, n) for k in range(n)]  # e_k(M)
    rate = sum((along[k] * v[k] for k in range(n)), start=ca.SX.zeros(n, n))
    turned = ca.horzcat(*(along[j] @ v for j in range(n)))  # e_j(M) v as columns
    M_ad = M @ _brackets(tree, v)
    momentum = M @ v
    carried = ca.vertcat(*(momentum.T @ _brackets(tree, ca.SX(np.eye(n)[:, k])) for k in range(n)))  # [e_k, e_i] . M v
    return (rate + turned - turned.T + M_ad - M_ad.T - carried.T) / 2


def _brackets(tree: Tree, x: ca.SX) -> ca.SX:
    """Return ad_x (nv x nv): Lie brackets of velocities; only rotations and poses do not commute."""
    found = ca.SX(tree.nv, tree.nv)
    for body in tree.bodies:
        if body.joint.type == "spherical":
            found[body.v, body.v] = skew(x[body.v])
        elif body.joint.type == "free":
            found[body.v, body.v] = ad(x[body.v])
    return found


# The algorithms: the recursion of rigid bodies where it applies, and CasADi's derivatives for flexible links.


def coriolis_matrix(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C(q, v) (nv x nv) with C v the velocity forces and M' - 2 C skew-symmetric, without friction."""
    return traced_coriolis(tree, q, v) if tree.bends else composite.coriolis_matrix(tree, q, v)


def force_rate(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, external: Load = None, external_rate: Load = None, **more: ca.SX
) -> tuple[ca.SX, ...]:
    """Return tau and its rates (nv x 1 each), see ``rates.force_rate``."""
    if not tree.bends:
        return rates.force_rate(tree, q, v, a, j, external, external_rate, **more)
    given = [v, a, j, *more.values()]
    return traced_rates(tree, inverse_dynamics, q, given, rates.load_rates(given, external, external_rate))


def joint_wrench_rates(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, external: Load = None, external_rate: Load = None, **more: ca.SX
) -> tuple[ca.SX, ...]:
    """Return the joint reactions and the rates of their components (L x 6 each), see ``rates.joint_wrench_rates``."""
    if not tree.bends:
        return rates.joint_wrench_rates(tree, q, v, a, j, external, external_rate, **more)
    given = [v, a, j, *more.values()]
    return traced_rates(tree, joint_wrenches, q, given, rates.load_rates(given, external, external_rate))
