"""Kinematics of links and frames: poses, velocities, accelerations, Jacobians and their rates.

A place is a link or frame, given by a pose in the axes of a link. Joint k above it contributes the column Ad S_k of the
Jacobian relative to an observer: the place itself ("local"), a frame that follows one of its points without rotating
("aligned"), or the base ("world"). The rate of this column is ad(V) Ad S_k + Ad S'_k, where V is the twist of body k
relative to the observer. V is the sum of columns times velocities: the negative of those after k for the place, and
those up to k for the base. The "aligned" frame rotates with the base and translates with the place.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import comb
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import Move, motions, moves, sx, twists, world_poses
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Place
from torsor.spatial import ad, cross, skew

# Axes and reference points for the motion of a place.
#
#     local     the place's own axes; rates of its origin, or of a point fixed to it
#     aligned   base axes; rates of the same point
#     world     base axes; the twist at the origin of the base, (omega, x' - omega x x) for any point x of the place
#
# The linear part of the twist at the base origin is not the velocity of the place. Its time derivatives are those of
# its components. With the derivatives of x in base axes, the Leibniz rule gives
#
#     (x' - omega x x)^(m) = x^(m+1) - sum over k of binomial(m, k) omega^(k) x x^(m-k)

AXES = ("local", "aligned", "world")


def place_in_body(tree: Tree, place: Place, point: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a place in its body's frame (or base axes), where p is its origin or ``point`` (3 x 1)."""
    T = tree.bodies[place.link].link @ place.pose if place.link >= 0 else place.pose
    R, p = sx(T[:3, :3]), sx(T[:3, 3])
    return R, p if point is None else p + R @ point


def place_in_base(tree: Tree, bodies: Sequence[tuple[ca.SX, ca.SX]], place: Place) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a place in base axes, from (R, p) of the bodies' frames."""
    R, p = place_in_body(tree, place)
    if place.link < 0:
        return R, p
    R_body, p_body = bodies[place.link]
    return R_body @ R, p_body + R_body @ p


def bodies_above(tree: Tree, link: int) -> list[int]:
    """Return the indices of a link's body and its ancestors, from the body to the root."""
    result = list[int]()
    while link >= 0:
        result.append(link)
        link = tree.bodies[link].parent
    return result


def body_in_base(tree: Tree, moved: list[Move], link: int) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a body's frame in base axes."""
    R, p = sx(ca.DM.eye(3)), ca.SX.zeros(3, 1)
    for k in reversed(bodies_above(tree, link)):
        R, p = moved[k].down(R.T).T, p + R @ moved[k].p
    return R, p


def spatial_rate(w: Sequence[ca.SX], x: Sequence[ca.SX]) -> ca.SX:
    """Return a rate (6 x 1) of the twist at the base origin, from the rates w of omega and one more rate of x."""
    m = len(w) - 1
    turned = sum((comb(m, k) * cross(w[k], x[m - k]) for k in range(m + 1)), start=ca.SX.zeros(3, 1))
    return ca.vertcat(w[m], x[m + 1] - turned)


def in_axes(
    tree: Tree,
    moved: list[Move],
    place: Place,
    point: ca.SX | None,
    axes: str,
    angular: Sequence[ca.SX],
    linear: Sequence[ca.SX],
) -> ca.SX:
    """Return the highest rate (6 x 1) of a place in the requested axes.

    ``angular`` are omega and its rates, and ``linear`` are the velocity of the point and its rates, all in body axes.
    Only the twist at the base origin depends on more than the highest rates.
    """
    R, p = place_in_body(tree, place, point)
    if axes == "local":
        return ca.vertcat(R.T @ angular[-1], R.T @ linear[-1])
    R, origin = body_in_base(tree, moved, place.link)
    if axes == "aligned":
        return ca.vertcat(R @ angular[-1], R @ linear[-1])
    return spatial_rate([R @ item for item in angular], [origin + R @ p, *(R @ item for item in linear)])


def links(tree: Tree) -> list[Place]:
    """Return the frames of the links as places."""
    return [Place(i, np.eye(4)) for i in range(len(tree.bodies))]


def _poses(tree: Tree, q: ca.SX, places: list[Place]) -> ca.SX:
    bodies = world_poses(tree, moves(tree, q))
    rows = (ca.horzcat(*place_in_base(tree, bodies, place)) for place in places)
    return ca.vertcat(ca.SX.zeros(0, 4), *(ca.vertcat(row, sx([[0, 0, 0, 1]])) for row in rows))


def poses(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the poses of the links in base axes, stacked (4 L x 4)."""
    return _poses(tree, q, links(tree))


def pose(tree: Tree, q: ca.SX, place: Place) -> ca.SX:
    """Return the pose of a place in base axes (4 x 4)."""
    return _poses(tree, q, [place])


def seen(tree: Tree, places: list[Place], rate: Callable[[int, ca.SX], tuple[ca.SX, ca.SX]]) -> ca.SX:
    """Return (angular, linear) rates of places (places x 6) in their own axes; ``rate`` computes those of points."""
    rows = [ca.SX.zeros(0, 6)]
    for place in places:
        R, p = place_in_body(tree, place)
        parts = rate(place.link, p) if place.link >= 0 else [ca.SX.zeros(3, 1)] * 2
        rows.append(ca.vertcat(*(R.T @ part for part in parts)).T)
    return ca.vertcat(*rows)


def velocities(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the twist (omega, v of the origin) of each link in its own axes (L x 6)."""
    twist = twists(tree, moves(tree, q), v)
    return seen(tree, links(tree), lambda k, p: twist_at(twist[k], p))


def twist_at(twist: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return (omega, velocity of the point p) of a body with the given twist, in the body's axes."""
    return twist[:3], twist[3:] + cross(twist[:3], p)


def velocity(tree: Tree, q: ca.SX, v: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None) -> ca.SX:
    """Return the twist (omega, v of the point) of a place (6 x 1)."""
    if place.link < 0:
        return ca.SX.zeros(6, 1)
    moved = moves(tree, q)
    w, x_rate = twist_at(twists(tree, moved, v)[place.link], place_in_body(tree, place, point)[1])
    return in_axes(tree, moved, place, point, axes, [w], [x_rate])


def accelerations(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return (omega', acceleration of the origin) of each link in its own axes, without gravity (L x 6)."""
    motion = motions(tree, moves(tree, q), v, a)
    return seen(tree, links(tree), lambda k, p: (motion[k].wd, motion[k].a + motion[k].U @ p))


def acceleration(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> ca.SX:
    """Return (omega', acceleration of the point) of a place (6 x 1), or the rate of the twist for "world" axes."""
    if place.link < 0:
        return ca.SX.zeros(6, 1)
    moved, p = moves(tree, q), place_in_body(tree, place, point)[1]
    motion = motions(tree, moved, v, a)[place.link]
    w, x_rate = list[ca.SX](), list[ca.SX]()
    if axes == "world":
        w, x_rate = ([item] for item in twist_at(twists(tree, moved, v)[place.link], p))
    return in_axes(tree, moved, place, point, axes, [*w, motion.wd], [*x_rate, motion.a + motion.U @ p])


class JointAbove(NamedTuple):
    """A joint above a place, with the pose (R, p) of the place in the joint's body, or of the body for an observer."""

    body: Body
    move: Move
    R: ca.SX
    p: ca.SX
    local: bool

    def seen(self, X: ca.SX) -> ca.SX:
        """Return twists of the body (columns) as seen from the place or the observer."""
        if self.local:  # shift before rotating, because joint columns have many zeros
            return ca.vertcat(self.R.T @ X[:3, :], self.R.T @ (X[3:, :] - skew(self.p) @ X[:3, :]))
        w = self.R @ X[:3, :]
        return ca.vertcat(w, self.R @ X[3:, :] + skew(self.p) @ w)


def joints_above(
    tree: Tree, moved: list[Move], place: Place, axes: str = "local", point: ca.SX | None = None
) -> list[JointAbove]:
    """Return the joints above a place, root to place."""
    R, p = place_in_body(tree, place, point)
    result, above = list[JointAbove](), bodies_above(tree, place.link)
    if axes == "local":
        for k in above:
            result.append(JointAbove(tree.bodies[k], moved[k], R, p, local=True))
            R, p = moved[k].up(R), moved[k].p + moved[k].up(p)
        return result[::-1]
    R_base, here = body_in_base(tree, moved, place.link)
    at = here + R_base @ p if axes == "aligned" else ca.SX.zeros(3, 1)
    for k in reversed(above):
        R, p = body_in_base(tree, moved, k)
        result.append(JointAbove(tree.bodies[k], moved[k], R, p - at, local=False))
    return result


def _jacobians(
    tree: Tree, q: ca.SX, v: ca.SX | None, place: Place, axes: str, point: ca.SX | None
) -> tuple[ca.SX, ca.SX]:
    """Return the Jacobian of a place and, given v, its rate (both 6 x nv)."""
    above = joints_above(tree, moves(tree, q), place, axes, point)
    columns = [entry.seen(entry.move.S) for entry in above]
    # Columns of joints that are not above the place are structural zeros.
    J = _gathered(tree, above, columns)
    if v is None:
        return J, J
    rates = [entry.body.rate(v) for entry in above]
    parts = [column @ rate for column, rate in zip(columns, rates, strict=True)]
    before = list(accumulate(parts))
    after = list(accumulate(parts[:0:-1], initial=ca.SX.zeros(6, 1)))[::-1]
    changes = []
    for k, (item, column) in enumerate(zip(above, columns, strict=True)):
        if axes == "local":
            change = -(ad(after[k]) @ column)
        else:
            relative = before[k] if axes == "world" else ca.vertcat(before[k][:3], -after[k][3:])
            change = ad(relative) @ column
        changes.append(item.seen(item.move.S_rate(rates[k])) + change)
    return J, _gathered(tree, above, changes)


def _gathered(tree: Tree, above: list[JointAbove], columns: list[ca.SX]) -> ca.SX:
    """Return joint columns as coordinate columns (6 x nv)."""
    result = [ca.SX(6, 1)] * tree.nv
    for item, block in zip(above, columns, strict=True):
        for c, index in enumerate(range(item.body.v.start, item.body.v.stop)):
            result[index] = result[index] + item.body.joint.ratio * block[:, c]
    return ca.horzcat(ca.SX.zeros(6, 0), *result)


def jacobian(tree: Tree, q: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None) -> ca.SX:
    """Return J (6 x nv), where J v is the twist of the place."""
    return _jacobians(tree, q, None, place, axes, point)[0]


def jacobian_rate(
    tree: Tree, q: ca.SX, v: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> ca.SX:
    """Return J' (6 x nv), the rate of the Jacobian's components."""
    return _jacobians(tree, q, v, place, axes, point)[1]


# Task-space quantities: manipulability, Cartesian mass matrix, and motions that leave a link or frame at rest.
#
# With the selected rows J of the Jacobian, and a weight W of the coordinates (the mass matrix M, or 1),
#
#     manipulability       sqrt(det(J J^T)), the product of the singular values of J      (Yoshikawa 1985)
#     Cartesian mass       (J M^-1 J^T)^-1                                                (Khatib 1987)
#     null space           N = 1 - W^-1 J^T (J W^-1 J^T)^-1 J,   J N = 0
#
# All follow from orthonormal columns Q of L^-1 J^T, where W = L L^T. For the null space, the product J W^-1 J^T is not
# inverted, because its condition number is that of J squared. Rows that depend on previous ones are omitted there.

# A row is dependent if its part orthogonal to the previous rows is shorter than this fraction of its length.
DEPENDENCE_TOLERANCE = 1e-9
ROUNDING = 1e-14  # the same for the gradient, which remains correct until this part is rounding error
PARTS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}


def _orthonormal(A: ca.SX, tolerance: float = DEPENDENCE_TOLERANCE) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return orthonormal columns that span the columns of A (zero for dependent columns), and their lengths."""
    units, lengths = list[ca.SX](), list[ca.SX]()
    for column in ca.horzsplit(ca.densify(A)):
        rest = column
        for _ in range(2):  # one pass loses orthogonality if columns are nearly dependent
            for unit in units:
                rest = rest - unit * ca.dot(unit, rest)
        length, before = ca.norm_2(rest), ca.norm_2(column)
        dependent = length <= tolerance * before  # false for NaN, so that NaN does not become zero
        units.append(ca.if_else(dependent, 0, rest / ca.if_else(dependent, 1, length)))
        lengths.append(length)
    return units, lengths


def _rows(tree: Tree, q: ca.SX, place: Place, axes: str, rows: str, point: ca.SX | None) -> ca.SX:
    return jacobian(tree, q, place, axes, point)[PARTS[rows], :]


def _independent(tree: Tree, q: ca.SX, place: Place, rows: str, point: ca.SX | None) -> ca.SX:
    """Return J^T, or J if it has fewer columns than rows, so that the columns can be independent."""
    J = _rows(tree, q, place, "local", rows, point)
    return J.T if J.size1() <= J.size2() else J


def manipulability(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the product of the singular values of the selected rows J of the Jacobian."""
    product = ca.SX(1)
    for length in _orthonormal(_independent(tree, q, place, rows, point))[1]:
        product = product * length
    return product


def manipulability_gradient(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the derivative of ``manipulability`` (nv x 1) with respect to q, along ``integrate``; 0 at singularities.

    With B = Q R (J^T, or J if it has fewer columns) and w = det R, dw = w tr(B^+ dB) = tr((w R^-1) Q^T dB). The
    adjugate w R^-1 is a polynomial in R, so there is no division by a vanishing w.
    """
    B = _independent(tree, q, place, rows, point)
    units, lengths = _orthonormal(B, ROUNDING)
    Q = ca.horzcat(ca.SX(B.size1(), 0), *units)
    by_B = Q @ _adjugate(Q.T @ B, lengths).T
    return steps(tree, q).T @ ca.jtimes(ca.vec(B), q, ca.vec(by_B), True)


def _adjugate(R: ca.SX, lengths: list[ca.SX]) -> ca.SX:
    """Return det(R) R^-1 for an upper triangular matrix R with the diagonal ``lengths``, without divisions."""
    n, result = len(lengths), ca.SX.zeros(len(lengths), len(lengths))

    def product(first: int, last: int) -> ca.SX:
        value = ca.SX(1)
        for length in lengths[first:last]:
            value = value * length
        return value

    for j in range(n):
        # Y[i] = (R^-1)[i, j] times the diagonal entries i to j, by back substitution.
        Y = {j: ca.SX(1)}
        for i in reversed(range(j)):
            Y[i] = -sum((R[i, k] * Y[k] * product(i + 1, k) for k in range(i + 1, j + 1)), start=ca.SX(0))
        for i, value in Y.items():
            result[i, j] = value * product(0, i) * product(j + 1, n)
    return result


def _scaled(tree: Tree, q: ca.SX, J: ca.SX) -> tuple[ca.SX, Squares, ca.SX]:
    """Return M, its factors L D L^T, and D^-1/2 L^-1 J^T in the order of elimination."""
    M = mass_matrix(tree, q)
    factors = Squares(M, list(reversed(range(tree.nv))))
    right = ca.densify(J.T)[factors.order, :]
    rows = [row / ca.sqrt(factors.D[k]) for k, row in enumerate(factors.forth(right))]
    return M, factors, ca.vertcat(ca.SX(0, J.size1()), *rows)


def cartesian_mass_matrix(
    tree: Tree, q: ca.SX, place: Place, axes: str = "local", rows: str = "all", point: ca.SX | None = None
) -> ca.SX:
    """Return (J M^-1 J^T)^-1 (rows x rows)."""
    Y = _scaled(tree, q, _rows(tree, q, place, axes, rows, point))[2]
    return Squares(ca.densify(Y.T @ Y)).inverse()


def null_space(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the dynamically consistent projector N (nv x nv), weighted by the mass matrix: J M^-1 N^T = 0."""
    M, factors, Y = _scaled(tree, q, _rows(tree, q, place, "local", rows, point))
    Q = ca.horzcat(ca.SX(tree.nv, 0), *_orthonormal(Y)[0])
    scaled = [row / ca.sqrt(factors.D[k]) for k, row in enumerate(ca.vertsplit(Q))]
    Z = factors.placed(factors.back(scaled, Q.size2()))
    return ca.densify(ca.SX.eye(tree.nv) - Z @ (Z.T @ M))


def kinematic_null_space(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the orthogonal projector N (nv x nv) onto the null space of J."""
    J = _rows(tree, q, place, "local", rows, point)
    Q = ca.horzcat(ca.SX(tree.nv, 0), *_orthonormal(J.T)[0])
    return ca.densify(ca.SX.eye(tree.nv) - Q @ Q.T)
