"""Derivatives of the velocity, acceleration and jerk of a link or frame with respect to q, v, a and j.

Let V be the twist of the body before joint k and A its rate, in the frame of the body that the joint moves, and (w, c)
the twist of the place. Joint k, with velocity v_k, contributes the columns

    of the twist of the place    dq: P1 = V x S                              dv: S
    of its rate                  dq: A x S + V x P1 - (w, c) x P1            dv: (2 V + S v_k - (w, c)) x S

which are transformed to the place as twists: relative to the place, a displacement of the joint moves the body before
it in the opposite direction. If S depends on q, the derivatives of S v and of S a + S' v are added, where S' = dS/dt.
The acceleration of the origin is the linear part of the rate plus w x c. Including its change, the subtracted term
(w, c) x (dw, dc) becomes (w x dw, 2 c x dw). Components are in the place's axes, which move with q, as in ``velocity``
and ``acceleration``. In base axes, which do not move, a vector u becomes R u, and its change is
R (du + (J_omega dq) x u). See Barman 2020, chapter III, and Singh, Russell and Wensing 2022.
"""

from collections.abc import Callable

import casadi as ca

from torsor.dynamics.recursions import rates
from torsor.dynamics.recursions.composite import Coordinates, coordinates, onto_coordinates
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.recursions.places import (
    acceleration,
    body_in_base,
    joints_above,
    place_in_body,
    spatial_rate,
    velocity,
)
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place
from torsor.spatial import ad, skew


def _changes(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place, point: ca.SX | None
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return J, P1, and dq and dv of (omega', acceleration), 6 x nv each, in the place's own axes."""
    V = A = ca.SX.zeros(6, 1)
    kinds, columns = [[ca.SX(6, 0)] for _ in range(4)], Coordinates()
    above = joints_above(tree, moves(tree, q), place, point=point)
    for joint in above:
        move, S, rate, acceleration = joint.move, joint.move.S, joint.body.rate(v), joint.body.rate(a)
        V, A = move.down_twist(V), move.down_twist(A)
        both, across = 2 * V + S @ rate, ad(V) @ S
        P1, by_q, by_v = across, ad(A) @ S + ad(V) @ across, ad(both) @ S
        A = A + S @ acceleration + across @ rate
        if move.varies:
            S_v, S_av, S_vv = move.variations(rate, acceleration)
            P1, by_q, by_v = P1 + S_v, by_q + S_av + ad(both) @ S_v, by_v + S_vv
            A = A + move.bias(rate)
        V = V + S @ rate
        for kind, item in zip(kinds, (S, P1, by_q, by_v), strict=True):
            kind.append(joint.seen(item))
        columns += coordinates(joint.body)
    gather = onto_coordinates(columns, tree.nv)
    J, P1, by_q, by_v = (ca.horzcat(*kind) @ gather for kind in kinds)
    V = above[-1].seen(V) if above else V
    turning = ca.vertcat(skew(V[:3]), 2 * skew(V[3:]))
    return J, P1, by_q - turning @ P1[:3, :], by_v - turning @ J[:3, :]


def _in_base_axes(
    tree: Tree, q: ca.SX, place: Place, point: ca.SX | None, axes: str, J: ca.SX, rates: list[ca.SX]
) -> Callable[..., ca.SX]:
    """Return a function that maps changes (6 x nv) of a place's rates from its own axes to base axes.

    ``rates`` are the twist and its rates in the place's own axes. The function takes the changes of the rates, and a
    flag for changes with respect to q, which also move the place by its Jacobian J.
    """
    body = body_in_base(tree, moves(tree, q), place.link)
    R_place, p = place_in_body(tree, place, point)
    R, x = body[0] @ R_place, body[1] + body[0] @ p
    turn, shift, rate_symbols = ca.SX.sym("turn", 3), ca.SX.sym("shift", 3), [ca.SX.sym("rate", 6) for _ in rates]
    turned = R + R @ skew(turn)
    w, linear = [turned @ entry[:3] for entry in rate_symbols], [turned @ entry[3:] for entry in rate_symbols]
    result = ca.vertcat(w[-1], linear[-1]) if axes == "aligned" else spatial_rate(w, [x + R @ shift, *linear])
    symbols = ca.vertcat(turn, shift, *rate_symbols)
    derivative = ca.substitute(ca.jacobian(result, symbols), symbols, ca.vertcat(ca.SX.zeros(6, 1), *rates))

    def mapped(*changes: ca.SX, by_q: bool = False) -> ca.SX:
        return ca.SX(derivative @ ca.vertcat(J if by_q else ca.SX(6, tree.nv), *changes))

    return mapped


def velocity_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> tuple[ca.SX, ca.SX]:
    """Return the derivatives of the twist of a place with respect to q (along ``integrate``) and v, each 6 x nv."""
    J, P1, _, _ = _changes(tree, q, v, ca.SX.zeros(tree.nv, 1), place, point)
    if axes == "local" or place.link < 0:
        return P1, J
    mapped = _in_base_axes(tree, q, place, point, axes, J, [velocity(tree, q, v, place, point=point)])
    return mapped(P1, by_q=True), mapped(J)


def acceleration_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the derivatives (6 x nv) of ``acceleration`` with respect to q (along ``integrate``), v and a."""
    J, P1, by_q, by_v = _changes(tree, q, v, a, place, point)
    if axes == "local" or place.link < 0:
        return by_q, by_v, J
    rates = [velocity(tree, q, v, place, point=point), acceleration(tree, q, v, a, place, point=point)]
    mapped = _in_base_axes(tree, q, place, point, axes, J, rates)
    return mapped(P1, by_q, by_q=True), mapped(J, by_v), mapped(ca.SX(6, tree.nv), J)


def jerk_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of ``jerk`` of a place with respect to q, v, a and j, each 6 x nv, from CasADi."""
    jerk = rates.jerk(tree, q, v, a, j, place, axes, point)
    by_q, by_v, by_a, by_j = (ca.jacobian(jerk, item) for item in (q, v, a, j))
    return by_q @ steps(tree, q), by_v, by_a, by_j
