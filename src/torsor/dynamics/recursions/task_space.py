"""The robot as its link or frame feels it: manipulability, Cartesian mass matrix and motions that leave it at rest.

With the rows J of the Jacobian that count, and a weight W of the coordinates (the mass matrix M, or 1),

    manipulability       sqrt(det(J J^T)), the product of the singular values of J      (Yoshikawa 1985)
    Cartesian mass       (J M^-1 J^T)^-1                                                (Khatib 1987)
    null space           N = 1 - W^-1 J^T (J W^-1 J^T)^-1 J,   J N = 0

All of them come from orthonormal columns Q of L^-1 J^T, W = L L^T: the products J W^-1 J^T, which square the condition
number, are not inverted for the null space. Rows that depend on the ones before are left out there.
"""

import casadi as ca

from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.places import jacobian
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place

# A row whose part that is orthogonal to the others is shorter than this fraction of it counts as dependent on them.
DEPENDENT = 1e-9
PARTS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}


def _orthonormal(A: ca.SX) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return orthonormal columns of the space of A's columns, zero for dependent ones, and their lengths before."""
    units, lengths = list[ca.SX](), list[ca.SX]()
    for column in ca.horzsplit(ca.densify(A)):
        rest = column
        for _ in range(2):  # once loses orthogonality where columns are nearly dependent
            for unit in units:
                rest = rest - unit * ca.dot(unit, rest)
        length, before = ca.norm_2(rest), ca.norm_2(column)
        dependent = length <= DEPENDENT * before  # false for NaN, which must not become zero
        units.append(ca.if_else(dependent, 0, rest / ca.if_else(dependent, 1, length)))
        lengths.append(length)
    return units, lengths


def _rows(tree: Tree, q: ca.SX, place: Place, axes: str, rows: str, point: ca.SX | None) -> ca.SX:
    return jacobian(tree, q, place, axes, point)[PARTS[rows], :]


def manipulability(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the product of the singular values of the Jacobian's rows; of its columns, if there are fewer."""
    J = _rows(tree, q, place, "local", rows, point)
    product = ca.SX(1)
    for length in _orthonormal(J.T if J.size1() <= J.size2() else J)[1]:
        product = product * length
    return product


def manipulability_gradient(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return the derivative of ``manipulability`` by q (nv x 1), along ``integrate``."""
    return steps(tree, q).T @ ca.gradient(manipulability(tree, q, place, rows, point), q)


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
    """Return N (nv x nv) of the mass matrix: the dynamically consistent one, with J M^-1 N^T = 0."""
    M, factors, Y = _scaled(tree, q, _rows(tree, q, place, "local", rows, point))
    Q = ca.horzcat(ca.SX(tree.nv, 0), *_orthonormal(Y)[0])
    scaled = [row / ca.sqrt(factors.D[k]) for k, row in enumerate(ca.vertsplit(Q))]
    Z = factors.placed(factors.back(scaled, Q.size2()))
    return ca.densify(ca.SX.eye(tree.nv) - Z @ (Z.T @ M))


def kinematic_null_space(tree: Tree, q: ca.SX, place: Place, rows: str = "all", point: ca.SX | None = None) -> ca.SX:
    """Return N (nv x nv) without weights: the orthogonal projector onto the null space of J."""
    J = _rows(tree, q, place, "local", rows, point)
    Q = ca.horzcat(ca.SX(tree.nv, 0), *_orthonormal(J.T)[0])
    return ca.densify(ca.SX.eye(tree.nv) - Q @ Q.T)
