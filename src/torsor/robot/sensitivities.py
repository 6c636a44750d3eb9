"""Derivatives, and rates of forces, as methods of a robot."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.differentiation import Loads
from torsor.robot.parametric import Freeable

__all__ = ["Sensitivities"]

Array = NDArray[np.float64]


class Sensitivities(Freeable):
    """A robot with the derivatives of its forces, accelerations and reactions, and with their rates."""

    def _loaded(self, name: str, values: tuple[ArrayLike, ...], loads: Loads, **options: Any) -> tuple[Array, ...]:
        keeps, given = loads.given(self, name)
        found: tuple[Array, ...] = self._kernel(self._request(name, external=keeps, **options))(*values, *given)
        return found

    def _derivatives(
        self,
        name: str,
        values: tuple[ArrayLike, ...],
        external: ArrayLike | None,
        fixed_in: str,
        points: ArrayLike | None,
        **options: Any,
    ) -> tuple[Array, Array, Array]:
        if external is None and points is None and isinstance(fixed_in, str) and fixed_in == "link" and not options:
            found: Any = self._call(name, *values)  # most calls, by the shortest way
        else:
            found = self._loaded(name, values, Loads(external, fixed_in, points), **options)
        return found  # type: ignore[no-any-return]

    def _with_rates(
        self,
        name: str,
        values: tuple[ArrayLike, ...],
        higher: Iterable[ArrayLike],
        external: ArrayLike | None,
        external_rate: ArrayLike | None,
    ) -> tuple[Array, ...]:
        if isinstance(higher, str) or not isinstance(higher, Iterable):
            found = f"higher of {name} is {higher!r}"
            raise ModelError(describe(found, where=self.name, allowed="a list of arrays (..., nv)"))
        more = tuple(higher)
        if external is None and external_rate is None and not more:
            plain: Any = self._call(name, *values)
            return plain  # type: ignore[no-any-return]
        loads = Loads(external, external_rate=external_rate)
        return self._loaded(name, (*values, *more), loads, order=1 + len(more))

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of tau = ID(q, v, a), each (..., nv, nv): row force, column variable.

        dq is along ``integrate``: moving q to integrate(q, d) changes tau by dq d. da is the mass matrix. External
        wrenches, given in their links' axes at their origins, stay as they are in the link (``fixed_in="link"``) or in
        the world (``fixed_in="world"``) while q changes. There a force acts on the link's origin or, with ``points``
        (..., L, 3) in the links' axes, on that point of the link, as a weight does, and only the rest of the moment is
        a couple. By analytical recursion in O(n x depth), for every joint, with rotors, springs and friction (of
        Coulomb's own law the jump at rest is left out); Barman 2020, chapter III; Singh, Russell and Wensing 2022.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.inverse_dynamics_derivatives([0.0, np.pi / 2], [1.0, 2.0], [0.0, 0.0])
            >>> dv.round(9).tolist()
            [[-0.16, -0.24], [0.08, 0.0]]
            >>> bool((da == robot.mass_matrix([0.0, np.pi / 2])).all())
            True
        """
        return self._derivatives("inverse_dynamics_derivatives", (q, v, a), external, fixed_in, points)

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, dtau) of a = FD(q, v, tau), each (..., nv, nv): row acceleration.

        They are -M^-1 d ID/dq, -M^-1 d ID/dv and M^-1, with the derivatives of inverse dynamics at that acceleration,
        and ``fixed_in`` and ``points`` as there.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> dq, dv, dtau = robot.forward_dynamics_derivatives([0.0, 0.5], [1.0, 2.0], [0.1, 0.2])
            >>> bool(np.allclose(dtau @ robot.mass_matrix([0.0, 0.5]), np.eye(2), atol=1e-12))
            True
        """
        return self._derivatives("forward_dynamics_derivatives", (q, v, tau), external, fixed_in, points)

    def hybrid_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike,
        forced: Sequence[str],
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, dgiven), each (..., nv, nv), of what ``hybrid_dynamics`` finds.

        Row k is what is wanted of coordinate k: its acceleration if it is ``forced``, its force if not. Columns of
        dgiven are what is given: forces of those that are forced, accelerations of the others. None forced is
        ``inverse_dynamics_derivatives``, all forced is ``forward_dynamics_derivatives``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> state = [0.0, 0.5], [1.0, 2.0], [0.0, 3.0], [0.1, 0.0]
            >>> dq, dv, dgiven = robot.hybrid_dynamics_derivatives(*state, forced=["joint1"])
            >>> bool(np.isclose(dgiven[0, 0], 1 / robot.mass_matrix([0.0, 0.5])[0, 0]))
            True
        """
        values, loads = (q, v, a, tau), (external, fixed_in, points)
        return self._derivatives("hybrid_dynamics_derivatives", values, *loads, forced=forced)

    def joint_wrench_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of the joint reactions, each (..., L, 6, nv).

        Row (moment, force) of the reaction in the link's axes at its origin, column variable; Barman 2020, ch. III.
        ``fixed_in`` and ``points`` as in ``inverse_dynamics_derivatives``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dq, dv, da = robot.joint_wrench_derivatives([0.0], [1.0], [0.0])
            >>> dv[0, :, 0].round(9).tolist()  # the centrifugal force 3 v^2 along the rod
            [0.0, 0.0, 0.0, -6.0, 0.0, 0.0]
        """
        return self._derivatives("joint_wrench_derivatives", (q, v, a), external, fixed_in, points)

    def inverse_dynamics_hessian(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, weight: ArrayLike, external: ArrayLike | None = None
    ) -> Array:
        """Return the second derivatives (..., 3 nv, 3 nv) of weight . tau, with tau = ID(q, v, a), by (q, v, a).

        ``weight`` (..., nv) are the multipliers of the forces, as in the Hessian of a Lagrangian or in differential
        dynamic programming. It is the Hessian of u -> weight . ID(integrate(q, u_q), v + u_v, a + u_a) at u = 0, and so
        symmetric for every joint; external wrenches stay fixed in their links. The blocks (v, a) and (a, a) are zero,
        (a, q) is the derivative of M(q) weight. By analytical recursion in O(n x depth): what each joint's derivatives
        feel of the motion before it climbs to the root.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> H = robot.inverse_dynamics_hessian([0.0], [1.0], [0.0], [2.0])  # of 2 (4 a + 29.43 cos(q))
            >>> H.shape, float(H[0, 0].round(9))
            ((3, 3), -58.86)
        """
        return self._call("inverse_dynamics_hessian", q, v, a, weight, external=external)

    def force_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        external: ArrayLike | None = None,
        external_rate: ArrayLike | None = None,
        higher: Sequence[ArrayLike] = (),
    ) -> tuple[Array, ...]:
        """Return (tau, tau'), each (..., nv): the forces of a motion and their rates in time, N m/s or N/s.

        ``j`` (..., nv) is the rate of a. ``external_rate`` (..., L, 6) are the rates of the components of ``external``
        in the links' axes: zero for wrenches that are fixed in their links. ``higher`` are the next rates of a, any
        number of them, and bring as many more rates of tau (external wrenches then have no higher ones).
        One recursion for every joint, floating bases, rotors, springs, dampers and smooth friction; order 1 is that of
        Guarino Lo Bianco 2009, eqs. 3-21.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> tau, rate = robot.force_rate([0.0], [1.0], [0.0], [2.0])  # 4 j - 3 g v sin(q)
            >>> tau.round(9).tolist(), rate.round(9).tolist()
            ([29.43], [8.0])
        """
        return self._with_rates("force_rate", (q, v, a, j), higher, external, external_rate)

    def joint_wrench_rates(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        external: ArrayLike | None = None,
        external_rate: ArrayLike | None = None,
        higher: Sequence[ArrayLike] = (),
    ) -> tuple[Array, ...]:
        """Return the joint reactions and the rates of their components in the links' axes, each (..., L, 6).

        Arguments as in ``force_rate``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
            >>> _, rate = robot.joint_wrench_rates([0.0], [1.0], [0.5], [0.0])
            >>> rate[0].round(9).tolist()  # the centrifugal force 3 v^2 grows
            [0.0, 0.0, 0.0, -3.0, 0.0, 0.0]
        """
        return self._with_rates("joint_wrench_rates", (q, v, a, j), higher, external, external_rate)
