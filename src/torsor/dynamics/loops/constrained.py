"""Dynamics with closed loops, in the active (driven) coordinates.

A largest independent subset of the equations of closure A v = 0 is chosen, and as many coordinates are dependent (d).
The independent coordinates x determine the motion:

    v = G x,   G = [1; -A_d^-1 A_x]             a = G x' + g,   g = [0; -A_d^-1 drift]

Constraint forces of the loops do no work along G, so the projected inverse dynamics of the tree equal those of the
drives:

    G^T ID(q, v, a) = G_a^T tau_a        M_c x' + H_c = G_a^T tau_a,   M_c = G^T M G,   H_c = G^T ID(q, v, g)

(Khalil 2010, eqs. 55-58). With redundant actuation, the solution of least tau^T share^-1 tau is chosen, where ``share``
are the weights of the drives. The forces in the cut joints are the Lagrange multipliers of A. A single column of motion
or force is solved with A_d itself, without G: G^T maps forces of the dependent coordinates by -A_x^T A_d^-T.
"""

from functools import cached_property
from typing import NamedTuple

import casadi as ca

from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.loops.factors import Columns, Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics
from torsor.dynamics.trees.tree import Tree


class ClosureChoice(NamedTuple):
    """The chosen equations of closure (``rows``), the independent coordinates, and the active (driven) ones.

    ``coupled``: the weights of the drives are a matrix. ``units`` (c) and ``length`` (m) are the scales of
    errors of closure and of steps of coordinates. For dynamics with multipliers no coordinates are independent;
    ``scales`` then has the entry of A M^-1 A^T of each chosen equation at a configuration far from singular.
    """

    rows: tuple[int, ...]
    independent: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    coupled: bool = False
    units: tuple[float, ...] = ()
    length: float = 1.0
    scales: tuple[float, ...] = ()


class Linkage:
    """A mechanism with closed loops at positions q: the motion of its dependent coordinates."""

    def __init__(self, tree: Tree, q: ca.SX, choice: ClosureChoice):
        self.tree, self.q, self.choice = tree, q, choice
        self.rows, self.independent, self.active = map(list, choice[:3])
        self.dependent = [k for k in range(tree.nv) if k not in choice.independent]
        self.closures = Closures(tree, q)
        self.A = self.closures.A[self.rows, :]
        self._A_x = self.A[:, self.independent]
        self._factors = Columns(self.A[:, self.dependent])

    @property
    def independence(self) -> ca.SX:
        """The distance from singularity: 0 where dependent coordinates can move with the independent ones fixed."""
        return self._factors.independence()

    @cached_property
    def G(self) -> ca.SX:
        """The matrix v = G x of all coordinates (nv) for the independent ones."""
        return self.complete(ca.SX.eye(len(self.independent)), self._A_x)

    @cached_property
    def G_active(self) -> ca.SX:
        """The rows of G of the active coordinates."""
        return self.G[self.active, :]

    @property
    def is_redundant(self) -> bool:
        """Whether there are more active coordinates than degrees of freedom."""
        return len(self.active) > len(self.independent)

    def complete(self, independent: ca.SX, right: ca.SX) -> ca.SX:
        """Return X (nv x k) with given independent rows, and A_d X_d = -right for the chosen equations."""
        whole = ca.SX(self.tree.nv, independent.size2())
        whole[self.independent, :] = independent
        whole[self.dependent, :] = -self._factors.solve(right)
        return whole

    def following(self, right: ca.SX) -> ca.SX:
        """Return X (nv x k) with A X = -right and the independent coordinates at rest."""
        return self.complete(ca.SX(len(self.independent), right.size2()), right)

    def among_active(self, x_active: ca.SX) -> ca.SX:
        """Return the rates of the independent coordinates, from those of the active ones."""
        return x_active[[self.choice.active.index(k) for k in self.independent], :]  # a column, even if empty

    def by_active(self, columns: ca.SX) -> ca.SX:
        """Return derivatives by the active coordinates from those by the independent ones; zero for the others."""
        spread = ca.SX(columns.size1(), len(self.active))
        spread[:, [self.choice.active.index(k) for k in self.independent]] = columns
        return spread

    def velocities(self, v_active: ca.SX) -> ca.SX:
        """Return v (nv x 1) of all coordinates."""
        x = self.among_active(v_active)
        return ca.densify(self.complete(x, self._A_x @ x))  # dense, also where a coordinate cannot move

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration, of the chosen equations."""
        return self.closures.drift(v)[self.rows]

    def motion(self, v_active: ca.SX, a_active: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return v and a (nv x 1 each) of all coordinates, from those of the active ones."""
        v, x = self.velocities(v_active), self.among_active(a_active)
        return v, ca.densify(self.complete(x, self._A_x @ x + self.drift(v)))

    def multipliers(self, force: ca.SX) -> ca.SX:
        """Return lambda (rows x k) with A^T lambda = force (nv x k) in the dependent coordinates."""
        return self._factors.solve_transposed(force[self.dependent, :])

    def balance(self, tau: ca.SX, share: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the forces of the active coordinates and the multipliers that are equivalent to tau (nv x 1)."""
        passed = self.multipliers(tau)
        needed = tau[self.independent] - self._A_x.T @ passed  # G^T tau
        given = Sharing(self, share).forces(needed)
        if self.is_redundant:  # only then are dependent coordinates driven
            passed = self.multipliers(tau - self.driven(given))
        return given, passed

    def driven(self, tau_active: ca.SX) -> ca.SX:
        """Return the forces (nv x k) of all coordinates, from those of the active ones."""
        whole = ca.SX(self.tree.nv, tau_active.size2())
        whole[self.active, :] = tau_active
        return whole

    def all_rows(self, kept: ca.SX) -> ca.SX:
        """Return values of all equations from those of the chosen ones, zero for redundant equations."""
        found = ca.SX(self.closures.A.size1(), kept.size2())
        found[self.rows, :] = kept
        return found


class Sharing:
    """Distribution of forces over redundant drives: tau = share G_a y, with G_a^T tau = force."""

    def __init__(self, linkage: Linkage, share: ca.SX):
        self._linkage = linkage
        if linkage.is_redundant:
            self._share = share if linkage.choice.coupled else ca.diag(share)
            self._spread = self._share @ linkage.G_active
            self._factors = Squares(symmetric(linkage.G_active.T @ self._spread))

    def levels(self, force: ca.SX) -> ca.SX:
        """Return y (m x k)."""
        return self._factors.solve(force)

    def forces(self, force: ca.SX) -> ca.SX:
        """Return the forces (N x k) of the active coordinates that are equivalent to ``force`` (m x k)."""
        if not self._linkage.is_redundant:
            order = [self._linkage.independent.index(k) for k in self._linkage.active]
            return force[order, :]
        return self._spread @ self.levels(force)

    def turned(self, force: ca.SX, change: ca.SX) -> ca.SX:
        """Return d(tau) with G_a^T d(tau) = force (m x k), where d(G_a) y is ``change`` (N x k)."""
        moved = self._share @ change
        return moved + self.forces(force - self._linkage.G_active.T @ moved)


class Driven:
    """A linkage in motion: v, a, tau of all coordinates, and the forces ``given`` by drives and ``passed`` by loops."""

    def __init__(self, linkage: Linkage, v_active: ca.SX, a_active: ca.SX, share: ca.SX, external: Load):
        self.linkage = linkage
        self.v, self.a = linkage.motion(v_active, a_active)
        self.tau = inverse_dynamics(linkage.tree, linkage.q, self.v, self.a, external)
        self.given, self.passed = linkage.balance(self.tau, share)

    @property
    def multipliers(self) -> ca.SX:
        """The multipliers (c x 1) of all equations of closure."""
        return self.linkage.all_rows(self.passed)


def constrained_velocities(tree: Tree, q: ca.SX, v_active: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return v (nv x 1), of all coordinates."""
    return Linkage(tree, q, choice).velocities(v_active)


def constrained_accelerations(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, choice: ClosureChoice
) -> tuple[ca.SX, ca.SX]:
    """Return v and a (nv x 1 each), of all coordinates."""
    return Linkage(tree, q, choice).motion(v_active, a_active)


def constrained_inverse_dynamics(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the forces of the active coordinates."""
    return Driven(Linkage(tree, q, choice), v_active, a_active, share, external).given


def constrained_forward_dynamics(
    tree: Tree, q: ca.SX, v_active: ca.SX, tau_active: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the accelerations of the active coordinates."""
    linkage = Linkage(tree, q, choice)
    v = linkage.velocities(v_active)
    return accelerated(linkage, v, tau_active, mass_matrix(tree, q), external)[linkage.active]


def accelerated(linkage: Linkage, v: ca.SX, tau_active: ca.SX, M: ca.SX, external: Load) -> ca.SX:
    """Return the accelerations of all coordinates (nv x 1) under forces of the active ones."""
    tree, q, G = linkage.tree, linkage.q, linkage.G
    rest = linkage.following(linkage.drift(v))
    H = inverse_dynamics(tree, q, v, rest, external)
    x = Squares(projected_mass(linkage, M)).solve(linkage.G_active.T @ tau_active - G.T @ H)
    return ca.densify(G @ x + rest)


def projected_mass(linkage: Linkage, M: ca.SX) -> ca.SX:
    """Return M_c = G^T M G (m x m)."""
    return symmetric(linkage.G.T @ (M @ linkage.G))


def loop_forces(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the multipliers (c x 1) of the equations of closure: the forces of a on b in each cut joint."""
    return Driven(Linkage(tree, q, choice), v_active, a_active, share, external).multipliers
