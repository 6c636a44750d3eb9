"""Dynamics with closed loops, in the active (driven) coordinates.

From the closure equations A v = 0, a maximal independent subset is chosen, with one dependent coordinate (d) per
equation. The independent coordinates x determine the motion:

    v = G x,   G = [1; -A_d^-1 A_x]             a = G x' + g,   g = [0; -A_d^-1 drift]

Constraint forces do no work along G, so the projected inverse dynamics of the tree equals the projected drive forces:

    G^T ID(q, v, a) = G_a^T tau_a        M_c x' + H_c = G_a^T tau_a,   M_c = G^T M G,   H_c = G^T ID(q, v, g)

(Khalil 2010, eqs. 55-58). If the actuation is redundant, the solution minimises tau^T share^-1 tau, where ``share``
contains the drive weights. The forces in the cut joints are the Lagrange multipliers of A. A single column of motion or
force is computed with A_d directly, without forming G: G^T maps forces of the dependent coordinates by -A_x^T A_d^-T.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from torsor.dynamics.loops.closure import Chain, Closures, characteristic_scales, closure_error, closure_jacobian
from torsor.dynamics.loops.factors import Columns, Squares, placed, reflected
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import chart, integrate
from torsor.dynamics.recursions.elimination import Stiffness
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics, joint_wrenches
from torsor.dynamics.trees.tree import Cut, Tree
from torsor.mechanism import Place
from torsor.spatial import skew


class ClosureChoice(NamedTuple):
    """The chosen closure equations (``rows``), the independent coordinates, and the active (driven) coordinates.

    ``coupled`` is True if the drive weights form a matrix. ``units`` (c) and ``length`` (m) are the scales of closure
    errors and of coordinate steps. For dynamics with multipliers, no coordinates are chosen as independent, and
    ``scales`` contains the diagonal of A M^-1 A^T for the chosen equations at a configuration far from singularities.
    ``between`` are the remaining equations, which relate active coordinates; these are then redundantly driven.
    """

    rows: tuple[int, ...]
    independent: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    coupled: bool = False
    units: tuple[float, ...] = ()
    length: float = 1.0
    scales: tuple[float, ...] = ()
    between: tuple[int, ...] = ()


class Linkage:
    """The motion of the dependent coordinates of a mechanism with closed loops at positions q."""

    def __init__(self, tree: Tree, q: ca.SX, choice: ClosureChoice):
        self.tree, self.q, self.choice = tree, q, choice
        self.rows, self.independent, self.active = map(list, choice[:3])
        self.dependent = [k for k in range(tree.nv) if k not in choice.independent]
        self.closures = Closures(tree, q)
        self.A = self.closures.A[self.rows, :]
        self._A_x = self.A[:, self.independent]
        self.factors = Columns(self.A[:, self.dependent])
        self.is_redundant = len(self.active) > len(self.independent)  # more drives than degrees of freedom

    @cached_property
    def G(self) -> ca.SX:
        """Matrix G (nv x m) of v = G x, from the independent to all coordinates."""
        return self.complete(ca.SX.eye(len(self.independent)), self._A_x)

    @cached_property
    def G_active(self) -> ca.SX:
        """Rows of G for the active coordinates."""
        return self.G[self.active, :]

    def complete(self, independent: ca.SX, right: ca.SX) -> ca.SX:
        """Return X (nv x k) with the given ``independent`` rows, and A_d X_d = -right for the chosen equations."""
        whole = ca.SX(self.tree.nv, independent.size2())
        whole[self.independent, :] = independent
        whole[self.dependent, :] = -self.factors.solve(right)
        return whole

    def following(self, right: ca.SX) -> ca.SX:
        """Return X (nv x k) with A X = -right and the independent coordinates at rest."""
        return self.complete(ca.SX(len(self.independent), right.size2()), right)

    def among_active(self, x_active: ca.SX) -> ca.SX:
        """Return the rates of the independent coordinates from the rates of the active ones."""
        return x_active[[self.choice.active.index(k) for k in self.independent], :]  # a column, even if empty

    def by_active(self, columns: ca.SX) -> ca.SX:
        """Convert derivatives from the independent to the active coordinates, with zeros for the others."""
        spread = ca.SX(columns.size1(), len(self.active))
        spread[:, [self.choice.active.index(k) for k in self.independent]] = columns
        return spread

    def velocities(self, v_active: ca.SX) -> ca.SX:
        """Return v (nv x 1) of all coordinates."""
        x = self.among_active(v_active)
        return ca.densify(self.complete(x, self._A_x @ x))  # dense even if a coordinate cannot move

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' of the chosen equations at zero acceleration."""
        return self.closures.drift(v)[self.rows]

    def motion(self, v_active: ca.SX, a_active: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return v and a (nv x 1 each) of all coordinates, from the motion of the active ones."""
        v, x = self.velocities(v_active), self.among_active(a_active)
        return v, ca.densify(self.complete(x, self._A_x @ x + self.drift(v)))

    def multipliers(self, force: ca.SX) -> ca.SX:
        """Return lambda (rows x k) such that A^T lambda = force (nv x k) in the dependent coordinates."""
        return self.factors.solve_transposed(force[self.dependent, :])

    def balance(self, tau: ca.SX, share: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the active forces and the multipliers that together are equivalent to tau (nv x 1)."""
        passed = self.multipliers(tau)
        needed = tau[self.independent] - self._A_x.T @ passed  # G^T tau
        active_forces = Sharing(self, share).forces(needed)
        if self.is_redundant:  # otherwise dependent coordinates are not driven
            passed = self.multipliers(tau - self.driven(active_forces))
        return active_forces, passed

    def driven(self, tau_active: ca.SX) -> ca.SX:
        """Return the forces (nv x k) of all coordinates, from the forces of the active ones."""
        return placed(self.tree.nv, self.active, tau_active)

    def all_rows(self, kept: ca.SX) -> ca.SX:
        """Return values for all equations from values for the chosen ones, with zeros for redundant equations."""
        return placed(self.closures.A.size1(), self.rows, kept)


class Sharing:
    """Distribution of forces among redundant drives: tau = share G_a y, with G_a^T tau = force."""

    def __init__(self, linkage: Linkage, share: ca.SX):
        self._linkage = linkage
        if linkage.is_redundant:
            self._share = share if linkage.choice.coupled else ca.diag(share)
            self._spread = self._share @ linkage.G_active
            self._factors = Squares(symmetric(linkage.G_active.T @ self._spread))

    def levels(self, force: ca.SX) -> ca.SX:
        """Return y (m x k) for ``force`` (m x k)."""
        return self._factors.solve(force)

    def forces(self, force: ca.SX) -> ca.SX:
        """Return the forces (N x k) of the active coordinates that are equivalent to ``force`` (m x k)."""
        if not self._linkage.is_redundant:
            order = [self._linkage.independent.index(k) for k in self._linkage.active]
            return force[order, :]
        return self._spread @ self.levels(force)

    def turned(self, force: ca.SX, change: ca.SX) -> ca.SX:
        """Return d(tau) such that G_a^T d(tau) = force (m x k), where d(G_a) y is ``change`` (N x k)."""
        moved = self._share @ change
        return moved + self.forces(force - self._linkage.G_active.T @ moved)


class Driven:
    """A moving linkage: v, a and tau of all coordinates, the drive forces ``given`` and the loop forces ``passed``."""

    def __init__(self, linkage: Linkage, v_active: ca.SX, a_active: ca.SX, share: ca.SX, external: Load):
        self.linkage = linkage
        self.v, self.a = linkage.motion(v_active, a_active)
        self.tau = inverse_dynamics(linkage.tree, linkage.q, self.v, self.a, external)
        self.given, self.passed = linkage.balance(self.tau, share)
        self.multipliers = linkage.all_rows(self.passed)  # (c x 1) of all closure equations


def constrained_velocities(tree: Tree, q: ca.SX, v_active: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return the velocities v (nv x 1) of all coordinates."""
    return Linkage(tree, q, choice).velocities(v_active)


def constrained_accelerations(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, choice: ClosureChoice
) -> tuple[ca.SX, ca.SX]:
    """Return the velocities v and accelerations a (nv x 1 each) of all coordinates."""
    return Linkage(tree, q, choice).motion(v_active, a_active)


def constrained_inverse_dynamics(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the forces (N x 1) of the active coordinates for their accelerations ``a_active`` (N x 1).

    If there are more active coordinates than degrees of freedom, ``share`` weighs their forces.
    """
    return Driven(Linkage(tree, q, choice), v_active, a_active, share, external).given


def constrained_forward_dynamics(
    tree: Tree, q: ca.SX, v_active: ca.SX, tau_active: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the accelerations (N x 1) of the active coordinates for their forces ``tau_active`` (N x 1)."""
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
    """Return the multipliers (c x 1) of the closure equations: the forces that a exerts on b in each cut joint."""
    return Driven(Linkage(tree, q, choice), v_active, a_active, share, external).multipliers


# Newton steps for assembling closed loops, and measures of the closure error and the distance from a singularity.
#
# With fixed independent coordinates, the Newton step of the dependent ones is -A_d^-1 phi (Khalil 2010, eqs. 3-4).
# Errors are relative to the size of the mechanism, so tolerances do not depend on it.

MAX_STEP = 1.0  # largest step of a coordinate, in rad or mechanism sizes


def closure_trial(tree: Tree, q: ca.SX, dv: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return an assembly trial (nq + nv + 2): the positions after the step dv, the next Newton step, error and side.

    The side measures the independence of the columns of A_d. It has the sign of the determinant of A_d, which changes
    at a singularity. All results are in one column, so that assembly calls one function per step.
    """
    there = integrate(tree, q, dv)
    error, rows = closure_error(tree, there), list(choice.rows)
    dependent = [k for k in range(tree.nv) if k not in choice.independent]
    newton, side = reflected(closure_jacobian(tree, there)[rows, dependent], error[rows])
    longest = ca.SX(MAX_STEP * characteristic_scales(tree, choice.length)[1])[dependent]
    step = ca.SX.zeros(tree.nv, 1)
    step[dependent] = ca.fmax(ca.fmin(-newton, longest), -longest)
    return ca.vertcat(there, step, ca.norm_2(error / ca.SX(choice.units)), side)


def closure_state(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return the closure residual, the distance from a singularity and the rate of redundant equations (3 x 1).

    The second is 0 where dependent coordinates can move while the independent ones are fixed. The third is the rate of
    the dropped equations for motions that satisfy the chosen ones, which is 0 if they are redundant.
    """
    linkage, units = Linkage(tree, q, choice), ca.SX(choice.units)
    unseen = ca.SX(0)
    for k in range(len(choice.units)):
        if k not in choice.rows:
            unseen += ca.sumsqr(linkage.closures.A[k, :] @ linkage.G) / choice.units[k] ** 2
    unseen = ca.sqrt(unseen / ca.sumsqr(linkage.G)) if choice.independent else ca.SX(0)
    return ca.vertcat(ca.norm_2(closure_error(tree, q) / units), linkage.factors.independence(), unseen)


# Wrenches in the cut joints and in the tree joints of a mechanism with closed loops.
#
# The multipliers of a cut joint's equations are generalised forces. Together they form the wrench that frame a exerts
# on frame b. This wrench and its opposite on a act on the tree as external loads.


def loop_wrenches(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the wrench that a exerts on b in each cut joint, at frame a in its axes (cuts x 6)."""
    driven = Driven(Linkage(tree, q, choice), v_active, a_active, share, external)
    return ca.vertcat(ca.SX(0, 6), *(wrench.T for wrench in driven.linkage.closures.wrenches(driven.multipliers)))


def constrained_joint_wrenches(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the wrench (L x 6) that each parent exerts on its link with closed loops, at its origin in link axes."""
    driven = Driven(Linkage(tree, q, choice), v_active, a_active, share, external)
    closures = driven.linkage.closures
    total = loads(tree, closures, closures.wrenches(driven.multipliers), external)
    return joint_wrenches(tree, q, driven.v, driven.a, total)


def loop_loads(tree: Tree, q: ca.SX, multipliers: ca.SX) -> ca.SX:
    """Return the wrenches (L x 6) that cut joints exert on the links, from the multipliers (c x 1)."""
    closures = Closures(tree, q)
    return loads(tree, closures, closures.wrenches(multipliers), None)


def ends(tree: Tree, closures: Closures) -> Iterator[tuple[Place, Place, Chain]]:
    """Yield both places of each cut joint, and the chain between them."""
    cuts = (closure for closure in tree.closures if isinstance(closure, Cut))
    for cut, chain in zip(cuts, closures.chains, strict=True):
        yield cut.a, cut.b, chain


def loads(tree: Tree, closures: Closures, wrenches: list[ca.SX], external: Load) -> ca.SX:
    """Return the wrenches (L x 6) that the environment and cut joints exert on links, at link origins in link axes."""
    total = ca.SX.zeros(len(tree.bodies), 6) if external is None else ca.SX(external)
    for (a, b, chain), wrench in zip(ends(tree, closures), wrenches, strict=True):
        for place, load in ((a, -wrench), (b, chain.at_b(wrench))):
            if place.link >= 0:
                total[place.link, :] += on_link(place, load).T
    return total


def on_link(place: Place, wrenches: ca.SX) -> ca.SX:
    """Return wrenches (6 x k), given at a place, at the origin of its link in link axes."""
    R, p = ca.SX(place.pose[:3, :3]), ca.SX(place.pose[:3, 3])
    f = R @ wrenches[3:, :]
    return ca.vertcat(R @ wrenches[:3, :] + skew(p) @ f, f)


# Dynamics with closed loops in all coordinates, with Lagrange multipliers, and projection of states onto closed loops.
#
# For the chosen independent closure equations, phi(q) = 0 and A v = 0, the loops exert forces along A^T:
#
#     M a + h = tau + A^T lambda        A a = -drift - 2 r A v - r^2 phi        h = C v + g + friction - J^T external
#
# (Khalil 2010, section 2.2; the index is 1, because closure is enforced for accelerations). With M = L D L^T,
# Z = L^-1 A^T, u = L^-1 (tau - h) and G = A M^-1 A^T = Z^T D^-1 Z,
#
#     a = L^-T D^-1 (u + Z lambda),   lambda = -G^-1 (Z^T D^-1 u + drift + ...)
#
# L has the sparsity of the tree, and Z has nonzero rows only for joints that move a loop. The dense matrix M^-1 A^T is
# not formed.
#
# No coordinates are chosen as dependent or active. It is enough that the rows of A are independent, even where a choice
# of dependent coordinates would be singular. The rate r (1/s) stabilises the loops against integration errors
# (Baumgarte); without it, closed loops remain closed up to these errors. The same Z and G project a state onto the
# nearest closed configuration in the norm of the mass matrix.
#
# If the motion of the active coordinates is given and no force acts on the others, the active coordinates become
# additional equations: with their rows S, [A; S] a = [-drift; a_active], and their multipliers are the drive forces.
# Equations that relate active coordinates to each other, such as a gear between two fingers, are omitted. Their
# multipliers would shift force from one drive to another, so the smallest drive forces are chosen.

# Integration errors e are at most 1e-5. One Newton step reduces e to about e^2, a second with the same matrix to e^3.
CORRECTIONS = 2
# Largest closure residual of a closed loop, relative to the size of the mechanism.
CLOSURE_TOLERANCE = 1e-10
# Margin above which equations do not become singular within one step of reasonable length.
SAFE_MARGIN = 0.1


class ClosedMass:
    """The inverse of M for velocities with A v = 0, M^-1 - M^-1 A^T (A M^-1 A^T)^-1 A M^-1; A may have no rows."""

    def __init__(self, M: ca.SX, A: ca.SX):
        self.M, self.A = M, A
        self.mass = Squares(M, list(reversed(range(M.size1()))))  # from the tips to the root
        self.Z = self.forth(A.T)
        self.r = 1 / self.mass.D
        self.factors = Squares(symmetric(self.Z.T @ (ca.diag(self.r) @ self.Z)))

    def forth(self, force: ca.SX) -> ca.SX:
        """Return u = L^-1 force (nv x k), in the order of elimination."""
        return ca.vertcat(ca.SX(0, force.size2()), *self.mass.forth(force[self.mass.order, :]))

    def restricted(self, u: ca.SX) -> ca.SX:
        """Return u (nv x k) without the part that A v = 0 resists, so that ``spread`` gives velocities with A v = 0."""
        return u - self.Z @ self.factors.solve(self.Z.T @ (ca.diag(self.r) @ u)) if self.A.size1() else u

    def spread(self, u: ca.SX) -> ca.SX:
        """Return L^-T D^-1 u (nv x k)."""
        rows = ca.vertsplit(ca.diag(self.r) @ u) if u.size1() else []
        return self.mass.placed(self.mass.back(rows, u.size2()))

    def solve(self, force: ca.SX) -> ca.SX:
        """Return the velocities (nv x k) with A v = 0 that impulses (nv x k) cause."""
        return self.spread(self.restricted(self.forth(force)))

    def project(self, x: ca.SX, rate: ca.SX) -> ca.SX:
        """Return y nearest to x (nv x k) in the norm of M with A y = A x - ``rate``."""
        return x - self.spread(self.Z @ self.factors.solve(rate))


class _WithMultipliers(ClosedMass):
    """Factors of the equations with multipliers at q: the chosen rows of A, then the rows of active coordinates.

    An impedance may be ``added`` to the mass matrix.
    """

    def __init__(self, tree: Tree, q: ca.SX, choice: ClosureChoice, added: Stiffness | None = None):
        self.tree, self.q, self.rows, self.closures = tree, q, list(choice.rows), Closures(tree, q)
        A = self.closures.A[self.rows, :]
        if choice.active:
            A = ca.vertcat(A, ca.SX.eye(tree.nv)[list(choice.active), :])
        super().__init__(mass_matrix(tree, q, added), A)
        # Part of each row that is independent of the previous rows, relative to its size at a regular configuration.
        independent = self.factors.D / ca.SX(list(choice.scales)) if choice.scales else ca.SX.ones(1, 1)
        self.margin = ca.sqrt(ca.fmax(0, ca.mmin(independent)))

    def project(self, x: ca.SX, rate: ca.SX) -> ca.SX:
        """Return ``ClosedMass.project`` for the rate of the chosen rows; active entries are kept."""
        kept = ca.SX.zeros(self.A.size1() - len(self.rows), 1)
        return super().project(x, ca.vertcat(rate, kept))

    def free(self, force: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return u = L^-1 force (nv x 1), in the order of elimination, and A M^-1 force, the unconstrained rates."""
        u = self.forth(force)
        return u, self.Z.T @ (u * self.r)

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' of the chosen equations at zero acceleration."""
        return self.closures.drift(v)[self.rows] if self.rows else ca.SX(0, 1)  # indexing a scalar with [] fails

    def result(self, value: ca.SX, margin: bool) -> ca.SX:
        """Return ``value``, with the margin stacked below it if requested, so that one function returns both."""
        return ca.vertcat(value, self.margin) if margin else value

    def accelerations(
        self, v: ca.SX, tau: ca.SX, external: Load, rate: float | ca.SX = 0.0, a_active: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX]:
        """Return a (nv x 1), and the negative multipliers of the chosen rows, then of the active coordinates."""
        tree, q = self.tree, self.q
        u, free = self.free(tau - inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external))
        drift, A = self.drift(v), self.A[: len(self.rows), :]
        if isinstance(rate, ca.SX) or rate:
            drift += 2 * rate * (A @ v) + rate**2 * closure_error(tree, q)[self.rows]
        known = drift if a_active is None else ca.vertcat(drift, -a_active)
        minus_lambda = self.factors.solve(free + known)
        return self.spread(u - self.Z @ minus_lambda), minus_lambda


def closed_forward_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    tau: ca.SX,
    choice: ClosureChoice,
    external: Load = None,
    rate: float | ca.SX = 0.0,
    margin: bool = False,
    a_active: ca.SX | None = None,
    added: Stiffness | None = None,
) -> ca.SX:
    """Return a (nv x 1) with closed loops; ``rate`` (1/s) is the rate of Baumgarte stabilisation.

    If ``choice`` has active coordinates, their accelerations are ``a_active``. An impedance may be ``added`` to the
    mass matrix.
    """
    system = _WithMultipliers(tree, q, choice, added)
    return system.result(system.accelerations(v, tau, external, rate, a_active)[0], margin)


def closed_inverse_dynamics(
    tree: Tree, q: ca.SX, v: ca.SX, a_active: ca.SX, choice: ClosureChoice, external: Load = None, margin: bool = False
) -> ca.SX:
    """Return the forces (N x 1) of the active coordinates for accelerations a_active; the others have no drive."""
    system = _WithMultipliers(tree, q, choice)
    _, loose = system.free(-inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external))
    missing = ca.vertcat(-system.drift(v), a_active) - loose
    forces = system.factors.solve(missing)[len(system.rows) :]
    return system.result(_shared(system, choice, forces) if choice.between else forces, margin)


def _shared(system: _WithMultipliers, choice: ClosureChoice, forces: ca.SX) -> ca.SX:
    """Return the smallest forces (N x 1) of redundant drives with the same effect as ``forces``."""
    A, active = system.closures.A, list(choice.active)
    passive = [k for k in range(system.tree.nv) if k not in choice.active]
    chosen, between = A[system.rows, :], A[list(choice.between), :]
    # After eliminating passive coordinates, these equations are B v_active = 0, so drive forces B^T x have no effect.
    by_chosen = Columns(chosen[:, passive].T).solve(between[:, passive].T)
    B = ca.densify(between[:, active] - by_chosen.T @ chosen[:, active])
    return forces - B.T @ Squares(symmetric(B @ B.T)).solve(B @ forces)


def closed_loop_forces(
    tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, choice: ClosureChoice, external: Load = None, margin: bool = False
) -> ca.SX:
    """Return lambda (c x 1) of M a + h = tau + A^T lambda for all closure equations, with 0 for redundant ones.

    With ``margin``, the last row of the result is that of ``closure_margin``.
    """
    system = _WithMultipliers(tree, q, choice)
    kept = -system.accelerations(v, tau, external)[1]
    return system.result(placed(system.closures.A.size1(), system.rows, kept), margin)


def closed_velocities(
    tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice, margin: bool = False, added: Stiffness | None = None
) -> ca.SX:
    """Return the velocities with A v = 0 that are nearest to v (nv x 1) in the norm of the mass matrix.

    An impedance may be ``added`` to the mass matrix.
    """
    system = _WithMultipliers(tree, q, choice, added)
    return system.result(system.project(v, system.A @ v), margin)


def closure_margin(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return the margin by which the chosen equations are independent: the smallest independent part of a row.

    Lengths are measured in the norm of M^-1, relative to a regular configuration, so units do not matter.
    """
    return _WithMultipliers(tree, q, choice).margin


def closed_state(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    choice: ClosureChoice,
    tolerance: float = CLOSURE_TOLERANCE,
    M: ca.SX | None = None,
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the nearest (q, v) with closed loops (v is NaN on failure), its margin, and the residual closure rate.

    Distances are in the norm of the mass matrix at q, or of ``M``: that of a step is factorised already.
    """
    system = _WithMultipliers(tree, q, choice)
    rows, margin, still = system.rows, system.margin, ca.SX.zeros(tree.nv, 1)
    nearest = system if M is None else ClosedMass(M, system.closures.A[rows, :])
    for _ in range(CORRECTIONS):
        q = chart(tree, q, nearest.project(still, closure_error(tree, q)[rows]))
    A = Closures(tree, q).A[rows, :]
    for _ in range(CORRECTIONS):
        v = nearest.project(v, A @ v)
    gap = ca.norm_2(ca.vertcat(ca.SX.zeros(1, 1), closure_error(tree, q) / ca.SX(choice.units)))
    units = ca.SX([choice.units[k] for k in rows])
    rate = ca.norm_2(ca.vertcat(ca.SX.zeros(1, 1), A @ v / units)) / ca.fmax(1, ca.norm_2(v))
    return q, ca.if_else(gap <= tolerance, v, ca.SX.nan(tree.nv, 1)), margin, rate


def projected_end(
    tree: Tree,
    q: ca.SX,
    q_next: ca.SX,
    v_next: ca.SX,
    choice: ClosureChoice,
    tolerance: float = CLOSURE_TOLERANCE,
    M: ca.SX | None = None,
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the end (q, v) of a step from q, projected onto closed loops (``closed_state``), and its margin.

    The margin is negative if it would vanish within the next step at the current rate. After a step that is too long,
    positions are NaN if the loops cannot be closed, and velocities are NaN if they open loops or make wheels slip.
    """
    before = closure_margin(tree, q, choice)
    q_next, v_next, after, rate = closed_state(tree, q_next, v_next, choice, tolerance, M)
    v_next = ca.if_else(rate <= tolerance, v_next, ca.SX.nan(tree.nv, 1))
    vanishes = ca.logic_and(2 * after <= before, after < SAFE_MARGIN)
    return q_next, v_next, ca.if_else(vanishes, -after, after)
