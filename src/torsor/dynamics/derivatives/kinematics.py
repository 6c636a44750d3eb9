"""Derivatives of the velocity, acceleration and jerk of a link or frame by q, v, a and j.

With the twist V and its rate A of the body before joint k, in the frame of the body that it moves, and the twist (w, v)
of the place, the joint contributes the columns

    of the twist of the place    dq: P1 = V x S                              dv: S
    of its rate                  dq: A x S + V x P1 - (w, v) x P1            dv: (2 V + S v_k - (w, v)) x S

transformed to the place as twists: a displacement of the joint moves the body before it the other way, seen from the
place. Where S depends on q, the derivatives of S v and of S a + S' v are added. The acceleration of the origin is the
linear part of the rate plus w x v: with its change, what (w, v) x (dw, dv) takes away becomes (w x dw, 2 v x dw).
Components are in the axes of the place, which move with q, as those of ``velocity`` and ``acceleration`` do. Barman
2020, chapter III; Singh, Russell and Wensing 2022.
"""

from typing import NamedTuple

import casadi as ca

from torsor.dynamics.recursions import rates
from torsor.dynamics.recursions.composite import Coordinates, coordinates, onto_coordinates
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import Move, moves
from torsor.dynamics.recursions.places import place_in_body
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Place
from torsor.spatial import ad, skew


class _Joint(NamedTuple):
    """A joint above a place, and the pose (R, p) of the place in the frame of its body."""

    body: Body
    move: Move
    R: ca.SX
    p: ca.SX

    def seen(self, X: ca.SX) -> ca.SX:
        """Return twists of the body (columns) as those of the place, in its axes."""
        seen: ca.SX = ca.vertcat(self.R.T @ X[:3, :], self.R.T @ (X[3:, :] - skew(self.p) @ X[:3, :]))
        return seen


def _joints_above(tree: Tree, q: ca.SX, place: Place) -> list[_Joint]:
    """Return the joints above a place, root to place."""
    moved, (R, p), k = moves(tree, q), place_in_body(tree, place), place.link
    found = list[_Joint]()
    while k >= 0:
        found.append(_Joint(tree.bodies[k], moved[k], R, p))
        R, p, k = moved[k].up(R), moved[k].p + moved[k].up(p), tree.bodies[k].parent
    return found[::-1]


def _changes(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place) -> tuple[ca.SX, ...]:
    """Return by coordinates (6 x nv): J, P1, and the derivatives of (omega', acceleration of the origin) by q and v."""
    V = A = ca.SX.zeros(6, 1)
    kinds, columns = [[ca.SX(6, 0)] for _ in range(4)], Coordinates()
    above = _joints_above(tree, q, place)
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
        for kind, each in zip(kinds, (S, P1, by_q, by_v), strict=True):
            kind.append(joint.seen(each))
        columns += coordinates(joint.body)
    gather = onto_coordinates(columns, tree.nv)
    J, P1, by_q, by_v = (ca.horzcat(*kind) @ gather for kind in kinds)
    V = above[-1].seen(V) if above else V
    turning = ca.vertcat(skew(V[:3]), 2 * skew(V[3:]))
    return J, P1, by_q - turning @ P1[:3, :], by_v - turning @ J[:3, :]


def velocity_derivatives(tree: Tree, q: ca.SX, v: ca.SX, place: Place) -> tuple[ca.SX, ca.SX]:
    """Return the derivatives of the twist of a place by q (along ``integrate``) and v, each 6 x nv."""
    J, P1, _, _ = _changes(tree, q, v, ca.SX.zeros(tree.nv, 1), place)
    return P1, J


def acceleration_derivatives(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of (omega', acceleration of the origin) of a place by q, v and a, each 6 x nv."""
    J, _, by_q, by_v = _changes(tree, q, v, a, place)
    return by_q, by_v, J


def jerk_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, place: Place
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of (omega'', jerk of the origin) of a place by q, v, a and j, each 6 x nv.

    They are those of the recursion over jets, by CasADi.
    """
    jerk = rates.jerk(tree, q, v, a, j, place)
    by_q, by_v, by_a, by_j = (ca.jacobian(jerk, each) for each in (q, v, a, j))
    return by_q @ steps(tree, q), by_v, by_a, by_j
