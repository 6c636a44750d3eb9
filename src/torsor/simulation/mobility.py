"""The mobility of points of contact: G = J M^-1 J^T, in the form that takes fewer operations."""

import casadi as ca

from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.kinematics import symmetric


class Mobility:
    """How impulses at points change their velocities u = J v, as G = J M^-1 J^T = ``read`` ``write``.

    With fewer rows of J than coordinates, ``write`` is G and ``read`` is 1: a state of the points is u. With more rows,
    ``write`` is M^-1 J^T and ``read`` is J: a state is v, which is shorter, and so are factorisations.
    """

    def __init__(self, M: ca.SX, J: ca.SX):
        self.M, self.J = M, J
        self.is_wide = J.size1() > M.size1()
        self._mass = Squares(M, list(reversed(range(M.size1()))))
        if self.is_wide:
            self.read, self.write = J, self._mass.solve(ca.densify(J.T))
            return
        self._Z = ca.vertcat(*self._mass.forth(J[:, self._mass.order].T))
        self._D = ca.diag(1 / self._mass.D)
        self.read, self.write = ca.SX.eye(J.size1()), symmetric(self._Z.T @ (self._D @ self._Z))

    def kicks(self, p: ca.SX) -> ca.SX:
        """Return the velocities M^-1 J^T p (nv x k) of impulses p (3 K x k)."""
        if self.is_wide:
            return self.write @ p
        return self._mass.placed(self._mass.back(ca.vertsplit(self._D @ (self._Z @ p)), p.size2()))

    def block(self, n: int) -> ca.SX:
        """Return the block (3 x 3) of G of the point whose rows begin with n."""
        return self.read[n : n + 3, :] @ self.write[:, n : n + 3]


class Sticking:
    """The factors of G + D, with D diagonal: by themselves, or those of M + J^T D^-1 J (Woodbury)."""

    def __init__(self, mobility: Mobility, added: ca.SX):
        self._of, self._inverse, J = mobility, 1 / added, mobility.J
        if mobility.is_wide:
            matrix = mobility.M + J.T @ (ca.diag(self._inverse) @ J)
        else:
            matrix = mobility.write + ca.diag(added)
        self._factors = Squares(ca.densify(symmetric(matrix)))

    def solve(self, right: ca.SX) -> ca.SX:
        """Return (G + D)^-1 times a column."""
        if not self._of.is_wide:
            return self._factors.solve(right)
        J = self._of.J
        return self._inverse * (right - J @ self._factors.solve(J.T @ (self._inverse * right)))
