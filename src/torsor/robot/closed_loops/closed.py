"""Mechanisms with closed loops (the accessor ``robot.closed``): closure, assembly, mobility and dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import indices_of, one_of
from torsor.base.errors import ModelError
from torsor.robot.closed_loops.assembly import assemble, closed_positions
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.constrained import active_accelerations, by_multipliers, constrained, triple, written
from torsor.robot.closed_loops.mobility import Mobility, analyse, valid_sets
from torsor.robot.closed_loops.regressor import constrained_regressor
from torsor.robot.closed_loops.search import one_thread
from torsor.robot.derivatives import Loads, Three, Two
from torsor.robot.kernels import Out
from torsor.robot.method_names import Accessor


@dataclass(frozen=True, eq=False, repr=False)
class ClosedDerivatives(Accessor):
    """Derivatives of the methods of ``robot.closed`` with the same names: ``robot.closed.derivatives``.

    The columns belong to the active coordinates. dq is taken along motions that keep the loops closed, dv at constant
    positions, and da at constant positions and velocities. Columns of redundant active coordinates are zero. G maps
    the active velocities to all: v = G v_active. External wrenches are fixed in their links, unless ``fixed_in``
    selects the world (see ``robot.derivatives.inverse_dynamics``).
    """

    _closure: LoopClosure

    def velocities(self, q: ArrayLike, v_active: ArrayLike, out: Out = None) -> Two:
        """Return the derivatives (dq, dv) of ``closed.velocities``, each (..., nv, N); dv is G.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> dq, dv = robot.with_active(["joint1"]).closed.derivatives.velocities([0.4, 0.2], [1.0])
            >>> dq.tolist(), dv.tolist()  # the ratio of the belt is constant
            ([[0.0], [0.0]], [[1.0], [0.5]])
        """
        result: Any = constrained(self._closure, "constrained_velocity_derivatives", (q, v_active), out=out)
        return result[0], result[1]

    def accelerations(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike, out: Out = None) -> Three:
        """Return the derivatives (dq, dv, da) of the accelerations of all coordinates, each (..., nv, N); da is G.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.closed.derivatives.accelerations([0.4, 0.2], [1.0], [3.0])
            >>> da.tolist()
            [[1.0], [0.5]]
        """
        name, values = "constrained_acceleration_derivatives", (q, v_active, a_active)
        return triple(self._closure, name, values, out=out)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``closed.inverse_dynamics``, each (..., N, N), one row per force.

        da is the mass matrix G^T M G of the closed mechanism. With constant lambda, and with changes of v and a that
        keep the loops closed,

            dtau/dq = G^T [d(ID - A^T lambda)/dq G + d(ID)/dv dv/dq + M da/dq]

        where the derivatives of ID are those of ``robot.derivatives.inverse_dynamics``. For ``share`` see
        ``closed.inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.closed.derivatives.inverse_dynamics([0.4, 0.2], [1.0], [0.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(da[0, 0], G @ M @ G))
            True
        """
        name, loads = "constrained_inverse_dynamics_derivatives", Loads(external, fixed_in, points)
        return triple(self._closure, name, (q, v_active, a_active), share, loads, out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, dtau) of ``closed.forward_dynamics``, each (..., N, N).

        They are -M_c^-1 dtau/dq, -M_c^-1 dtau/dv and M_c^-1, where M_c is the mass matrix of the closed mechanism, and
        tau is its inverse dynamics at the computed acceleration.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, dtau = robot.closed.derivatives.forward_dynamics([0.4, 0.2], [1.0], [0.0])
            >>> _, _, M = robot.closed.derivatives.inverse_dynamics([0.4, 0.2], [1.0], [0.0])
            >>> bool(np.isclose(dtau[0, 0] * M[0, 0], 1.0))
            True
        """
        name, loads = "constrained_forward_dynamics_derivatives", Loads(external, fixed_in, points)
        return triple(self._closure, name, (q, v_active, tau_active), loads=loads, out=out)

    def loop_forces(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``closed.loop_forces``, each (..., c, N), with the same arguments.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.closed.derivatives.loop_forces([0.4, 0.2], [0.0], [1.0])
            >>> bool(np.isclose(-2.0 * da[0, 0], robot.mass_matrix([0.4, 0.2], loops="open")[1] @ [1.0, 0.5]))
            True
        """
        values, loads = (q, v_active, a_active), Loads(external, fixed_in, points)
        return triple(self._closure, "loop_force_derivatives", values, share, loads, out)

    def loop_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``closed.loop_wrenches``, each (..., l, 6, N).

        Example:
            >>> closed, q = torsor.library.four_bar().closed, torsor.library.four_bar().closed.assemble([0.5])
            >>> dq, dv, da = closed.derivatives.loop_wrenches(q, [0.0], [0.0])
            >>> change = closed.loop_wrenches(q, [0.0], [1.0]) - closed.loop_wrenches(q, [0.0], [0.0])
            >>> bool(np.allclose(change, da[..., 0]))
            True
        """
        values, loads = (q, v_active, a_active), Loads(external)
        return triple(self._closure, "loop_wrench_derivatives", values, share, loads, out)

    def joint_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``closed.joint_wrenches``, each (..., L, 6, N).

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.closed.derivatives.joint_wrenches([0.4, 0.2], [0.0], [1.0])
            >>> _, _, by_a = robot.open_tree().derivatives.joint_wrenches([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])
            >>> bool(np.allclose(da[..., 0], by_a @ [1.0, 0.5]))
            True
        """
        values, loads = (q, v_active, a_active), Loads(external)
        return triple(self._closure, "constrained_joint_wrench_derivatives", values, share, loads, out)


@dataclass(frozen=True, eq=False, repr=False)
class Closed(Accessor):
    """The mechanism with its loops closed: ``robot.closed``.

    Positions q (..., nq) always include all coordinates, and they must close the loops: see ``assemble``.
    ``coordinates`` selects the coordinates of rates and forces, in the methods that have this argument:

    - ``"active"`` (the default): rates and forces (..., N) of the active coordinates (``robot.with_active``), which
      determine the others. The equations of the tree are projected onto the motions of the closed mechanism. Every
      coordinate that moves independently must be active, and the active ones must control the mechanism at q.
    - ``"all"``: velocities and forces (..., nv) of all coordinates, with A v = 0. Lagrange multipliers enforce the
      closure equations. No coordinate needs to be active, and singular positions of the drives do not matter.

    ``external`` and ``out`` are as in ``Robot``. ``active`` are the names of the active coordinates, ``derivatives`` is
    the accessor of the derivatives, and ``closure`` contains loop data that are computed once.

    Example:
        >>> robot = torsor.library.four_bar()
        >>> q = robot.closed.assemble([0.5])
        >>> robot.closed.active, robot.closed.inverse_dynamics(q, [1.0], [2.0]).shape
        (('crank_joint',), (1,))
    """

    closure: LoopClosure

    @cached_property
    def derivatives(self) -> ClosedDerivatives:
        """Derivatives with respect to the active coordinates."""
        return ClosedDerivatives(self.closure)

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the active coordinates."""
        return self.closure.mechanism.active

    def _is_all(self, coordinates: str, **unused: object) -> bool:
        """Return whether ``coordinates`` is "all"; raise ModelError for arguments that only "active" supports."""
        every = one_of(coordinates, ("active", "all"), self.closure.name, "coordinates") == "all"
        unsupported = [name for name, value in unused.items() if value is not None]
        if every and unsupported:
            message, fix = f'{unsupported[0]} is not supported with coordinates="all"', f"omit {unsupported[0]}"
            raise ModelError(message, where=self.closure.name, fix=fix)
        return every

    def assemble(self, q_active: ArrayLike, guess: Maybe = None, missing: str = "raise", out: Out = None) -> Array:
        """Return positions (..., nq) that close the loops, for given active coordinates (..., N).

        If there are several assembly modes, the one near ``guess`` (..., nq) is selected; the default guess is a
        reference configuration that is computed once. From there, the active coordinates move to their goal in steps,
        and damped Newton iterations close the loops after each step. If the goal is unreachable, ``AssemblyError`` is
        raised with the closest reachable coordinates. If redundant active coordinates disagree, ModelError is raised.
        With ``missing="nan"``, neither error is raised, and the positions of these states are NaN. A ball or free joint
        has 4 or 7 entries in ``q_active``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).closed.assemble([0.4]).round(9).tolist()
            [0.4, 0.2]
        """
        return written(assemble(self.closure, q_active, guess, missing), out, "assemble")

    def positions(self, q: ArrayLike, out: Out = None) -> Array:
        """Return positions (..., nq) near ``q`` that close the loops, by minimum-norm steps of all coordinates.

        No coordinate needs to be active. Unlike ``assemble``, this method also changes active coordinates. If no closed
        positions are found, ModelError is raised.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed.positions([0.5, 0.0]).round(9).tolist()
            [0.4, 0.2]
        """
        return written(closed_positions(self.closure, q), out, "closed_positions")

    def error(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the closure errors (..., c): lengths in m, angles as 2 sin(angle/2), couplings in coordinate units.

        There is one entry per closure equation: a hinge has five, some of which may be redundant. The entries of a
        wheel are its height above its ground (m) and zeros for its slips, which are velocity equations.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed.error([0.4, 0.1]).round(9).tolist()
            [0.2]
        """
        return self.closure.kernels.call("closure_error", q, out=out)

    def jacobian(self, q: ArrayLike, out: Out = None) -> Array:
        """Return A (..., c, nv): A v is the time derivative of ``error`` or, in slip rows of wheels, the slip (m/s).

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed.jacobian([0.4, 0.1]).tolist()
            [[1.0, -2.0]]
        """
        return self.closure.kernels.call("closure_jacobian", q, out=out)

    def mobility(self, q: Maybe = None, output: str | int | None = None, point: bool = False) -> Mobility:
        """Return the mobility at positions q (nq,) that close the loops; the default is a regular configuration.

        ``Mobility`` contains the degrees of freedom, the redundant equations, and the motions that the active
        coordinates do not control. If ``output`` is a link or frame, ``Mobility`` also contains the singularities of
        the first kind (the drives move, but the output does not) and of the second kind (the output moves with locked
        drives). Output motions are twists (omega, v) in the output's own axes, or velocities of its origin if ``point``
        is True.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed.mobility().dof
            1
        """
        closure, kernels = self.closure, self.closure.kernels
        at, units, J = closure.one_closed(q), closure.scales[2], None
        lengths = np.full(3, closure.length) if point else np.repeat([1.0, closure.length], 3)
        if output is not None:
            J = kernels.exact.call("jacobian", at, place=output)[3 if point else 0 :] * units / lengths[:, None]
        active = closure.active if self.active else []
        A = closure.scaled_jacobian(at)
        with one_thread():
            result = analyse(A, active, units, J, closure.velocity_rows)
        if result.output is None:
            return result
        return replace(result, output=replace(result.output, loose=result.output.loose * lengths))

    def active_sets(
        self, q: Maybe = None, candidates: Sequence[str] | None = None, most: int = 20
    ) -> list[tuple[tuple[str, ...], float]]:
        """Return minimal sets of coordinates that can drive the mechanism at positions q (nq,), best first.

        The ``control`` value of a set is the smallest norm of its velocities over all motions of unit norm. It is at
        most 1; sets with the value 0 are singular and are omitted. The result contains pairs (coordinates, control).
        ``candidates`` are the coordinates that may have a drive (default: all). At most ``most`` sets are returned. If
        there are more than 20,000 possible sets, only one good set and those that differ from it in one coordinate are
        tried.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> [(names, round(control, 3)) for names, control in robot.closed.active_sets()]
            [(('joint1',), 0.894), (('joint2',), 0.447)]
        """
        at, names = self.closure.one_closed(q), self.closure.mechanism.coordinate_names
        result = valid_sets(self.closure.scaled_jacobian(at), indices_of(candidates, names, self.closure.name), most)
        return [(tuple(names[k] for k in item), control) for item, control in result]

    def velocities(self, q: ArrayLike, v_active: ArrayLike, coordinates: str = "active", out: Out = None) -> Array:
        """Return velocities (..., nv) of all coordinates that keep the loops closed: A v = 0.

        They are v = G v_active, where ``v_active`` (..., N) are the velocities of the active coordinates. With
        ``coordinates="all"``, ``v_active`` are velocities v (..., nv) of all coordinates, and the result is the
        admissible velocity nearest to v in the norm of the mass matrix: v - M^-1 A^T (A M^-1 A^T)^-1 A v. This is the
        velocity after impulsive loop reactions.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).closed.velocities([0.4, 0.2], [1.0]).tolist()
            [1.0, 0.5]
        """
        if self._is_all(coordinates):
            return by_multipliers(self.closure, "closed_velocities", q, v_active, out=out)
        return constrained(self.closure, "constrained_velocities", (q, v_active), out=out)

    def accelerations(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike, out: Out = None) -> Two:
        """Return (v, a), each (..., nv), of all coordinates: v = G v_active and a = G a_active + G' v_active.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> v, a = robot.with_active(["joint1"]).closed.accelerations([0.4, 0.2], [1.0], [3.0])
            >>> a.tolist()
            [3.0, 1.5]
        """
        result: Any = constrained(self.closure, "constrained_accelerations", (q, v_active, a_active), out=out)
        return result[0], result[1]

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        coordinates: str = "active",
        out: Out = None,
    ) -> Array:
        """Return the forces (..., N) of the active coordinates for a motion with closed loops.

        ``q`` (..., nq) are all positions (see ``assemble``); ``v_active`` and ``a_active`` (..., N) are velocities and
        accelerations of the active coordinates. Passive joints have springs and friction, but no drive. If there are
        more active coordinates than degrees of freedom, the forces minimise the sum of tau^2 / ``share`` (..., N), or
        tau^T share^-1 tau for symmetric positive definite matrices (..., N, N). Coordinates that move without a drive,
        such as a floating base, must be active too; their result is the force that a drive would have to apply. See
        Khalil 2010, eqs. 55-57.

        With ``coordinates="all"``, ``v_active`` are the velocities (..., nv) of all coordinates; ``a_active`` and the
        result still belong to the active ones. Coordinates that are not active are idle: they have no drive, and only
        gravity, springs, friction, loops and inertia move them. ``share`` is not supported. A floating base, a
        spring-loaded leg joint or a rod that spins about its axis then need not be active. If active coordinates depend
        on each other, such as two fingers on one tendon, the sum of the squared forces is minimal.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> tau = robot.with_active(["joint1"]).closed.inverse_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(tau[0], G @ M @ G))
            True
        """
        if self._is_all(coordinates, share=share):
            return by_multipliers(self.closure, "closed_inverse_dynamics", q, v_active, a_active, external, out=out)
        values = q, v_active, a_active
        return constrained(self.closure, "constrained_inverse_dynamics", values, share, Loads(external), out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: Maybe = None,
        method: str | None = None,
        coordinates: str = "active",
        out: Out = None,
    ) -> Array:
        """Return the accelerations (..., N) of the active coordinates due to forces (..., N) on them.

        This is the inverse of ``inverse_dynamics``. For an active floating base, pass zero forces. ``method`` is
        "projection" onto the motions of the closed mechanism (the default; Khalil 2010, eq. 58), or "multipliers",
        which obtains the same result from the equations of all coordinates and does not support ``out``.

        With ``coordinates="all"``, ``v_active`` and ``tau_active`` are velocities and forces (..., nv) of all
        coordinates. The result (..., nv) solves M a + C v + g + friction + springs - J^T external = tau + A^T lambda
        together with A a = -A' v (Khalil 2010, eq. 4). A solution exists unless the closure equations lose rank.
        Without loops, the result equals ``robot.forward_dynamics``. ``method`` is not supported.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.with_active(["joint1"]).closed.forward_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(a[0], 1 / (G @ M @ G)))
            True
        """
        if self._is_all(coordinates, method=method):
            return by_multipliers(self.closure, "closed_forward_dynamics", q, v_active, tau_active, external, out=out)
        where, methods = self.closure.name, ("projection", "multipliers")
        if method is not None and one_of(method, methods, where, "method") == "multipliers":
            if out is not None:
                message, fix = 'out is not supported with method="multipliers"', 'use `method="projection"`'
                raise ModelError(message, where=where, fix=fix)
            return active_accelerations(self.closure, q, v_active, tau_active, external)
        values, loads = (q, v_active, tau_active), Loads(external)
        return constrained(self.closure, "constrained_forward_dynamics", values, None, loads, out)

    def loop_forces(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        coordinates: str = "active",
        out: Out = None,
    ) -> Array:
        """Return the Lagrange multipliers (..., c) of the closure equations, 0 for redundant ones.

        They satisfy tau_tree = tau_active + A^T lambda. If an equation keeps origins coincident, lambda is the force
        (N) along an axis of frame a; if it keeps axes parallel, lambda is a moment (N m); for wheels, it is the ground
        force (N).

        The arguments are the same as for ``inverse_dynamics``. With ``coordinates="all"``, they are the same as for
        ``forward_dynamics``: ``v_active`` and ``a_active`` are velocities and **forces** (..., nv) of all coordinates.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> belt = robot.closed.loop_forces([0.4, 0.2], [0.0], [1.0])
            >>> tau = robot.inverse_dynamics([0.4, 0.2], [0.0, 0.0], [1.0, 0.5], loops="open")
            >>> bool(np.isclose(tau[1], -2.0 * belt[0]))  # only the belt drives joint2
            True
        """
        if self._is_all(coordinates, share=share):
            return by_multipliers(self.closure, "closed_loop_forces", q, v_active, a_active, external, out=out)
        return constrained(self.closure, "loop_forces", (q, v_active, a_active), share, Loads(external), out)

    def loop_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Array:
        """Return the wrenches in the cut joints (..., l, 6): (moment, force) that frame a exerts on frame b.

        They are at the origin of frame a in its axes, one for each of the l loops that are cut joints; couplings have
        none. Redundant equations (see ``mobility``) carry no load, because rigid-body mechanics does not determine how
        redundant bearings share a load.

        Example:
            >>> arm = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> arm = arm.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> arm = arm.with_frame("hook", "base", torsor.spatial.make_pose(p=[2, 1, 0]))
            >>> hung = arm.with_loop("wire", "hook", "tip", "rod", length=1.0).with_active(["joint1"])
            >>> wire = hung.closed.loop_wrenches([0.0, 0.0], [0.0], [0.0])[0]  # it carries half of link2
            >>> float(wire[4].round(9))
            14.715
        """
        return constrained(self.closure, "loop_wrenches", (q, v_active, a_active), share, Loads(external), out)

    def joint_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        out: Out = None,
    ) -> Array:
        """Return the reactions (..., L, 6) in the tree joints while the loops are closed.

        Each is the wrench (moment, force) that a parent exerts on its link, at the link's origin in link axes, as in
        ``robot.joint_wrenches``. The wrenches in the cut joints (``loop_wrenches``) act on the tree. The force of a
        coupling is included in the component along the joint axis. For ``share`` see ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> wrenches = robot.closed.joint_wrenches([0.4, 0.2], [0.0], [1.0])
            >>> tree = robot.open_tree()  # the belt exerts no wrench on links
            >>> bool(np.allclose(wrenches, tree.joint_wrenches([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])))
            True
        """
        values = q, v_active, a_active
        return constrained(self.closure, "constrained_joint_wrenches", values, share, Loads(external), out)

    def loop_loads(self, q: ArrayLike, forces: ArrayLike, out: Out = None) -> Array:
        """Return the wrenches (..., L, 6) that the loops exert on the links, at link origins in link axes (N m, N).

        ``forces`` (..., c) are the multipliers from ``loop_forces``. If the result is applied as external wrenches, the
        cut tree moves like the closed mechanism, and ``joint_wrenches`` with ``loops="open"`` returns the bearing
        loads. Couplings exert no wrench on a link. If equations are redundant, the loads can be distributed in other
        ways too.

        Example:
            >>> chain = torsor.library.planar_chain(1).with_frame("tip", "link1", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = chain.with_frame("nail", "base", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = rod.with_loop("held", "nail", "tip", "spherical")  # the rod is held at both ends
            >>> held = rod.closed.loop_loads([0.0], rod.closed.loop_forces([0.0], [0.0], [0.0], coordinates="all"))
            >>> float(rod.joint_wrenches([0.0], [0.0], [0.0], held, loops="open")[0, 4].round(3))  # half its weight
            4.905
        """
        return self.closure.kernels.call("loop_loads", q, forces, out=out)

    def regressor(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike) -> Array:
        """Return Y (..., N, p) with inverse_dynamics(q, v_active, a_active) = Y @ robot.inertial.values.

        It is G^T times the regressor of the tree, where v = G v_active. The arguments are the same as for
        ``inverse_dynamics``. There must be as many active coordinates as degrees of freedom. Forces of springs and
        motors are not included.

        Example:
            >>> robot = torsor.library.four_bar()
            >>> q = robot.closed.assemble([0.5])
            >>> Y, tau = robot.closed.regressor(q, [1], [2]), robot.closed.inverse_dynamics(q, [1], [2])
            >>> bool(np.allclose(Y @ robot.inertial.values, tau))
            True
        """
        return constrained_regressor(self.closure, q, v_active, a_active)
