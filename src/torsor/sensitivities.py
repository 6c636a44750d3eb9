"""Derivatives as methods of a robot."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.computing import Computing

__all__ = ["Sensitivities"]

Array = NDArray[np.float64]


class Sensitivities(Computing):
    """A robot with the derivatives of its forces, accelerations and reactions."""

    def _several(self, name: str, *values: ArrayLike, external: ArrayLike | None) -> Any:
        return self._kernel(name, external is not None)(*values, *([] if external is None else [external]))

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of tau = ID(q, v, a), each (..., nv, nv): row force, column variable.

        dq is along ``integrate``: moving q to integrate(q, d) changes tau by dq d. da is the mass matrix. External
        wrenches are fixed in their links. By analytical recursion in O(n x depth), for every joint, with rotors,
        springs and friction (of Coulomb's own law the jump at rest is left out); document 001, chapter III; Singh,
        Russell and Wensing 2022.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.inverse_dynamics_derivatives([0.0, np.pi / 2], [1.0, 2.0], [0.0, 0.0])
            >>> dv.round(9).tolist()
            [[-0.16, -0.24], [0.08, 0.0]]
            >>> bool((da == robot.mass_matrix([0.0, np.pi / 2])).all())
            True
        """
        found: tuple[Array, Array, Array] = self._several("inverse_dynamics_derivatives", q, v, a, external=external)
        return found

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, dtau) of a = FD(q, v, tau), each (..., nv, nv): row acceleration.

        They are -M^-1 d ID/dq, -M^-1 d ID/dv and M^-1, with the derivatives of inverse dynamics at that acceleration.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> dq, dv, dtau = robot.forward_dynamics_derivatives([0.0, 0.5], [1.0, 2.0], [0.1, 0.2])
            >>> bool(np.allclose(dtau @ robot.mass_matrix([0.0, 0.5]), np.eye(2), atol=1e-12))
            True
        """
        found: tuple[Array, Array, Array] = self._several("forward_dynamics_derivatives", q, v, tau, external=external)
        return found

    def joint_wrench_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of the joint reactions, each (..., L, 6, nv).

        Row (moment, force) of the reaction in the link's axes at its origin, column variable; document 001, ch. III.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dq, dv, da = robot.joint_wrench_derivatives([0.0], [1.0], [0.0])
            >>> dv[0, :, 0].round(9).tolist()  # the centrifugal force 3 v^2 along the rod
            [0.0, 0.0, 0.0, -6.0, 0.0, 0.0]
        """
        found: tuple[Array, Array, Array] = self._several("joint_wrench_derivatives", q, v, a, external=external)
        return found
