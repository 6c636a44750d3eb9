"""Time derivatives of forces, of any order: inverse dynamics of components and their time derivatives.

Every quantity is a jet x, x', x'', ... of its components, so products obey the Leibniz rule. Between the frames of a
joint, with the joint's own angular velocity w_J in the axes of the child, the rates are

    down:  (R^T x)' = R^T x' - w_J x (R^T x)              up:  (R x)' = R (x' + w_J x x)

The rest is inverse dynamics (``kinematics``, ``newton_euler``), with U' = [w''] + [w'][w] + [w][w'] and so on. The
wrench of a body and its rate then take the same number of operations. Order 1 generalises Guarino Lo Bianco 2009, eqs.
3-21, to trees and every joint type, with rotors, springs, friction and loads; order 0 would be inverse dynamics itself.
The inertia of a body with assumed modes depends on q, so CasADi differentiates its traced forces.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb
from typing import Any

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import Move, moves, sx, symmetric, twists
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics, joint_wrenches, to_body, to_link
from torsor.dynamics.recursions.passive import gather, passive_force
from torsor.dynamics.recursions.places import in_axes, links, place_in_body, seen, twist_at
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Place
from torsor.spatial import cross, moment, skew

Jet = list[ca.SX]


def _product(times: Callable[[Any, Any], ca.SX], x: Sequence[Any], y: Sequence[Any], m: int) -> ca.SX:
    """Return the m-th rate of a product of two jets, by the Leibniz rule."""
    first, *rest = (comb(m, k) * times(x[k], y[m - k]) for k in range(m + 1))
    return ca.SX(sum(rest, start=first))


class _U:
    """A rate of U = [w'] + [w][w].

    In the rates of the diagonal of [w][w], every product occurs twice. The diagonal is halved and stored separately,
    and the factor 2 is applied to the vectors that U multiplies, which are constant except for prismatic displacements.
    """

    def __init__(self, w: Jet, m: int):
        self._times = 2 if m else 1
        self._rest, self._diagonal = skew(w[m + 1]), ca.SX.zeros(3, 3)
        for k in range(m // 2 + 1):
            both = skew(w[k]) @ skew(w[m - k])
            mirrored = 2 * k != m  # the term with k and m - k exchanged is its mirror image
            whole = symmetric(both + both.T if mirrored else both)
            self._rest += comb(m, k) * (whole - ca.diag(ca.diag(whole)))
            self._diagonal += comb(m, k) // (1 if mirrored else self._times) * ca.diag(ca.diag(both))

    def __matmul__(self, x: ca.SX) -> ca.SX:
        return ca.SX(self._rest @ x + self._diagonal @ (self._times * x))

    def moment(self, Sigma: ca.SX) -> ca.SX:
        """Return the integral of r x (U r) dm."""
        return ca.SX(moment(self._rest, Sigma) + moment(self._diagonal, self._times * Sigma))


class _Turning:
    """The transform of jets between the frames of a joint."""

    def __init__(self, move: Move, w: Jet):
        self.move, self.w = move, w
        # In parent axes, the second and higher rates of w_J differ.
        self._seen = w[:1] + self._rates_in_parent(w[1:]) if len(w) > 1 else w

    def _rates_in_parent(self, jet: Jet) -> Jet:
        """Return x, x' + w_J x x, ...: the rates relative to the parent, in the child's axes."""
        result, rates = jet[:1], jet
        while len(rates) > 1:
            rates = [rates[m + 1] + _product(cross, self.w, rates, m) for m in range(len(rates) - 1)]
            result = [*result, rates[0]]
        return result

    def up(self, jet: Jet) -> Jet:
        """Return the jet of the components in the parent's axes."""
        return [self.move.up(x) for x in self._rates_in_parent(jet)]

    def down(self, jet: Jet) -> Jet:
        """Return the jet of the components in the child's axes."""
        # levels[l][m]: the m-th rate relative to the parent of the l-th rate relative to the child.
        levels = [[self.move.down(x) for x in jet]]
        for level in range(1, len(jet)):
            levels.append([])
            for total in range(level, len(jet)):  # the next rate relative to the child, x' - w_J x x
                result = levels[0][total]
                for k in range(total):  # vectors are summed before the cross product
                    below = range(min(level, total - k))
                    first, *rest = (comb(total - 1 - i, k) * levels[i][total - 1 - i - k] for i in below)
                    result = result + cross(sum(rest, start=first), self._seen[k])
                levels[level].append(result)
        return [rates[0] for rates in levels]


class _Recursion:
    """The outward and inward recursions; ``rates`` are v, a, j, ..., two more than the order."""

    def __init__(self, tree: Tree, q: ca.SX, rates: Sequence[ca.SX]):
        self.tree, self.moved, self.rates = tree, moves(tree, q), rates
        self.orders = range(len(rates) - 1)
        self.w, self.a, self.S = list[Jet](), list[Jet](), list[Jet]()
        self.p = list[Jet]()  # jets of the body's origin in the parent's axes
        self.U, self.joints = list[list[_U]](), list[_Turning]()
        none = [ca.SX.zeros(3, 1)] * len(rates)
        still = none, [-sx(tree.gravity), *none[2:]], [_U(none, m) for m in self.orders]
        for body, move in zip(tree.bodies, self.moved, strict=True):
            k = body.parent
            self._outward(body, move, *((self.w[k], self.a[k], self.U[k]) if k >= 0 else still))

    def _outward(self, body: Body, move: Move, w_above: Jet, a_above: Jet, U_above: list[_U]) -> None:
        joint_rates = [body.rate(rate) for rate in self.rates]
        S = move.S_rates(joint_rates)
        twist = [
            _product(lambda S, x: S @ x, S, joint_rates, m) if move.varies else S[0] @ joint_rates[m]
            for m in range(len(joint_rates))
        ]
        wJ, vJ = [item[:3] for item in twist], [item[3:] for item in twist]
        joint = _Turning(move, wJ)
        p = [move.p, *joint.up(vJ)[: len(self.orders) - 1]]
        carried = joint.down(w_above)
        w = [carried[m] + wJ[m] for m in range(len(joint_rates))]
        a_origin = joint.down([a_above[m] + _product(lambda U, r: U @ r, U_above, p, m) for m in self.orders])
        across = [2 * carried[m] + wJ[m] for m in range(len(joint_rates))]
        a = [a_origin[m] + vJ[m + 1] + _product(cross, across, vJ, m) for m in self.orders]
        self.w.append(w)
        self.a.append(a)
        self.U.append([_U(w, m) for m in self.orders])
        self.S.append(S)
        self.joints.append(joint)
        self.p.append(p)

    def wrenches(self, external: Sequence[ca.SX]) -> list[tuple[Jet, Jet]]:
        """Return jets of (n, f) that parents exert on their bodies, tips to root; ``external`` is a jet of loads."""
        wrench = [self._inertial(i, body) for i, body in enumerate(self.tree.bodies)]
        for i in reversed(range(len(wrench))):
            body, (n, f) = self.tree.bodies[i], wrench[i]
            if external:
                pairs = [to_body(body, rate[i, :].T) for rate in external]
                n = [n[m] - pairs[m][0] for m in self.orders]
                f = [f[m] - pairs[m][1] for m in self.orders]
                wrench[i] = n, f
            if body.parent >= 0:
                f_up, (n_there, f_there) = self.joints[i].up(f), wrench[body.parent]
                n_up = self.joints[i].up(n)
                n_up = [n_up[m] + _product(cross, self.p[i], f_up, m) for m in self.orders]
                n, f = ([there[m] + up[m] for m in self.orders] for there, up in ((n_there, n_up), (f_there, f_up)))
                wrench[body.parent] = n, f
        return wrench

    def _inertial(self, i: int, body: Body) -> tuple[Jet, Jet]:
        """Return the jets of the inertial wrench of a body, rotors included."""
        Sigma, ms, mass = sx(body.P[:3, :3]), sx(body.P[:3, 3]), body.mass
        n = [self.U[i][m].moment(Sigma) + cross(ms, self.a[i][m]) for m in self.orders]
        f = [mass * self.a[i][m] + self.U[i][m] @ ms for m in self.orders]
        for rotor in body.rotors:
            h, spin = sx(rotor.h), [rate[rotor.v] for rate in self.rates]
            turned = [cross(w, h) for w in self.w[i]]
            n = [n[m] + h * spin[m + 1] + _product(lambda x, y: x * y, turned, spin, m) for m in self.orders]
        return n, f

    def forces(self, wrench: list[tuple[Jet, Jet]]) -> list[ca.SX]:
        """Return the jet of the forces that move the bodies, each nv x 1."""
        result = []
        for m in self.orders:
            forces: list[tuple[int, ca.SX]] = []
            for i, body in enumerate(self.tree.bodies):
                both = [ca.vertcat(n, f) for n, f in zip(*wrench[i], strict=True)]
                S, varies = self.S[i], self.moved[i].varies
                force = _product(lambda S, x: S.T @ x, S, both, m) if varies else S[0].T @ both[m]
                forces += enumerate(ca.vertsplit(body.joint.ratio * force), body.v.start)
                forces += [(rotor.v, ca.dot(sx(rotor.h), self.w[i][m + 1])) for rotor in body.rotors]
            result.append(gather(self.tree.nv, forces))
        return result


def _passive_rates(tree: Tree, q: ca.SX, rates: Sequence[ca.SX]) -> list[ca.SX]:
    """Return the jet of the forces of springs, dampers and friction."""
    springs = (passive for passive in tree.passives if passive.q)
    places = {k: v for spring in springs for k, v in zip(spring.q, spring.v, strict=True)}
    x, y = ca.SX.sym("x", tree.nq), [ca.SX.sym(f"y{k}", tree.nv) for k in range(len(rates))]
    x_rate = ca.vertcat(ca.SX.zeros(0, 1), *(y[0][places[k]] if k in places else 0 for k in range(tree.nq)))
    result = [passive_force(tree, x, y[0])]
    for _ in rates[2:]:
        result.append(ca.jtimes(result[-1], ca.vertcat(x, *y[:-1]), ca.vertcat(x_rate, *y[1:])))
    here = ca.vertcat(x, *y), ca.vertcat(q, *rates)
    return [ca.substitute(item, *here) for item in result]


def _load_rates(rates: Sequence[ca.SX], external: Load, external_rate: Load) -> list[ca.SX]:
    """Return the external wrenches and their rates along the motion ``rates``, or an empty list without wrenches.

    The first rate is ``external_rate`` (by default zero); higher rates are zero.
    """
    if external is None:
        return []
    none = ca.SX.zeros(*external.shape)
    return [external, none if external_rate is None else external_rate, *[none for _ in rates[3:]]]


def _traced(
    tree: Tree, rule: Callable[..., ca.SX], q: ca.SX, rates: Sequence[ca.SX], external: Sequence[ca.SX]
) -> tuple[ca.SX, ...]:
    """Return a result and its rates from CasADi; ``rates`` are v, a, j, ..., ``external`` are loads and their rates."""
    x, load = ca.SX.sym("q", tree.nq), [ca.SX.sym("load", *item.shape) for item in external]
    y = [ca.SX.sym("rate", tree.nv) for _ in rates]
    state = ca.vertcat(x, *y[:-1], *map(ca.vec, load[:-1]))
    change = ca.vertcat(steps(tree, x) @ y[0], *y[1:], *map(ca.vec, load[1:]))
    result = [rule(tree, x, y[0], y[1], load[0] if load else None)]
    for _ in rates[2:]:
        result.append(ca.reshape(ca.jtimes(ca.vec(result[-1]), state, change), result[-1].shape))
    results: Any = ca.Function("rates", [x, *y, *load], result)(q, *rates, *external)
    return tuple(results)


def force_rate(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, external: Load = None, external_rate: Load = None, **more: ca.SX
) -> tuple[ca.SX, ...]:
    """Return tau and its time derivatives (nv x 1 each), one for j and one for each derivative in ``more``.

    ``external_rate`` contains the rates of the components of ``external`` in link axes.
    """
    rates = [v, a, j, *more.values()]
    loads = _load_rates(rates, external, external_rate)
    if tree.bends:
        return _traced(tree, inverse_dynamics, q, rates, loads)
    recursion = _Recursion(tree, q, rates)
    moving = recursion.forces(recursion.wrenches(loads))
    passive, armature = _passive_rates(tree, q, rates), sx(tree.armature)
    return tuple(moving[m] + armature * rates[m + 1] + passive[m] for m in recursion.orders)


def joint_wrench_rates(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, external: Load = None, external_rate: Load = None, **more: ca.SX
) -> tuple[ca.SX, ...]:
    """Return the joint reactions in the links' axes and the rates of their components (L x 6 each)."""
    rates = [v, a, j, *more.values()]
    loads = _load_rates(rates, external, external_rate)
    if tree.bends:
        return _traced(tree, joint_wrenches, q, rates, loads)
    recursion = _Recursion(tree, q, rates)
    wrench = recursion.wrenches(loads)
    pairs = [(body, zip(*jets, strict=True)) for body, jets in zip(tree.bodies, wrench, strict=True)]
    links = [[to_link(body, n, f).T for n, f in jet] for body, jet in pairs]
    return tuple(ca.vertcat(ca.SX.zeros(0, 6), *(link[m] for link in links)) for m in recursion.orders)


class _Jerks:
    """The rates of body points up to the jerk, relative to the base, in the axes of their bodies."""

    def __init__(self, tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX):
        self.recursion = _Recursion(replace(tree, gravity=np.zeros(3)), q, [v, a, j])

    def __call__(self, i: int, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (omega'', jerk of the point p) of a body."""
        # The rate of a vector x relative to the base has the components x' + w x x in axes that rotate with w.
        w, rate = self.recursion.w[i], self.recursion.a[i][1] + self.recursion.U[i][1] @ p
        return w[2] + cross(w[0], w[1]), rate + cross(w[0], self.acceleration(i, p))

    def acceleration(self, i: int, p: ca.SX) -> ca.SX:
        """Return the acceleration of the point p of a body."""
        return self.recursion.a[i][0] + self.recursion.U[i][0] @ p


def jerks(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX) -> ca.SX:
    """Return (omega'', jerk of the origin) of each link in its own axes (L x 6)."""
    return seen(tree, links(tree), _Jerks(tree, q, v, a, j))


def jerk(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, j: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> ca.SX:
    """Return (omega'', jerk of the point) of a place (6 x 1); for "world", the second derivative of the twist."""
    if place.link < 0:
        return ca.SX.zeros(6, 1)
    i, p, jerk_of = place.link, place_in_body(tree, place, point)[1], _Jerks(tree, q, v, a, j)
    moved = jerk_of.recursion.moved
    w, x = list[ca.SX](), list[ca.SX]()
    if axes == "world":
        w_here, x_rate = twist_at(twists(tree, moved, v)[i], p)
        w, x = [w_here, jerk_of.recursion.w[i][1]], [x_rate, jerk_of.acceleration(i, p)]
    w_second, x_third = jerk_of(i, p)
    return in_axes(tree, moved, place, point, axes, [*w, w_second], [*x, x_third])
