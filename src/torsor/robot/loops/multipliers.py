"""Motion of all coordinates while loops are closed, whatever drives them: the equations with multipliers."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics.loops.constrained import Closing
from torsor.errors import ModelError, describe
from torsor.robot.loops.assembled import Assembled
from torsor.robot.loops.mobility import RANK, choose

__all__ = ["POOR", "SINGULAR", "Multiplied"]

Array = NDArray[np.float64]

# Below this margin another choice of equations is looked for; below that one, there is none.
POOR, SINGULAR = 0.02, 1e-7
SMALL = 1e-4  # what an equation that says nothing there is taken for, in parts of the largest
MASSLESS = 1e-14  # below this part of the largest, an eigenvalue of the mass matrix is rounding
MOST = 8  # choices that one call looks for


class Multiplied(Assembled):
    """A robot whose loops push with multipliers: no coordinate is dependent, and none need be active."""

    @cached_property
    def _kept(self) -> Closing:
        """Equations of closure that are independent where the mechanism is not singular."""
        return self._kept_at(self._reference)

    @cached_property
    def _scales(self) -> Array:
        """What A M^-1 A^T of each equation of closure (c,) is where the mechanism is not singular."""
        return self._scales_at(self._reference)

    def _scales_at(self, q: Array) -> Array:
        A, M = self.closure_jacobian(q), self._call("mass_matrix", q)
        moments, directions = np.linalg.eigh(M)
        if self.nv and moments[0] <= MASSLESS * moments[-1]:
            name = self.coordinate_names[int(np.argmax(np.abs(directions[:, 0])))]
            found = f"nothing resists the force of {name} where the loops are cut: the mass matrix is singular"
            raise ModelError(describe(found, where=self.name, fix="give what it moves an inertia"))
        lengths = np.diag(A @ np.linalg.solve(M, A.T))
        return np.asarray(np.maximum(lengths, SMALL * lengths.max(initial=0.0)))

    def _kept_at(self, q: Array) -> Closing:
        """Return the equations of closure that are independent at one configuration (nq,), chosen to be so well."""
        rows = choose(self._measured_jacobian(q), []).rows
        try:
            scales = self._scales
        except ModelError:  # no such place was found, but this one is closed
            scales = self._scales_at(q)
        return self._with_units(Closing(rows, scales=tuple(scales[list(rows)].tolist())))

    def _kept_near(self, q: Array) -> Closing:
        """Return equations to begin with at q (nq,): the general ones, unless none were found or more hold there."""
        try:
            kept = self._kept
        except ModelError:
            return self._kept_at(q)
        return kept if self._ranks(q) <= len(kept.rows) else self._kept_at(q)

    def _ranks(self, q: Array) -> NDArray[np.intp]:
        """Return how many equations of closure are independent at each of the configurations (..., nq)."""
        values = np.linalg.svd(self._measured_jacobian(q), compute_uv=False)
        return np.asarray((values > RANK * values[..., :1]).sum(axis=-1))

    def _held(self, name: str, kept: Closing, external: bool = False) -> Callable[..., Any]:
        return self._kernel(self._request(name, external=external, closing=kept))

    def _by_multipliers(self, name: str, q: ArrayLike, *values: ArrayLike) -> Array:
        """Return an algorithm's result by equations that are independent at each of the positions."""
        self._check_open(q)
        at, loaded = np.asarray(q, dtype=float), len(values) > 2
        kept = self._kept_near(at.reshape(-1, self.nq)[0]) if at.size else self._kept
        found: Array = self._held(name, kept, loaded)(at, *values)
        if at.ndim > 1 and self._differ(at, kept):
            return self._one_by_one(name, at, found.shape, values)
        margin = self._held("closure_margin", kept)(at)
        for _ in range(MOST):
            poor = np.nan_to_num(margin) < POOR
            if not poor.any():
                return found
            worst = np.unravel_index(int(np.argmin(np.where(poor, np.nan_to_num(margin), np.inf))), margin.shape)
            others = self._kept_at(at[worst])
            if len(others.rows) < len(kept.rows):
                break
            new = self._held("closure_margin", others)(at)
            better = np.nan_to_num(new) > 2 * np.nan_to_num(margin)
            if not better[worst]:
                break
            instead = self._held(name, others, loaded)(at, *values)
            found = np.where(better[..., None], instead, found)
            margin = np.where(better, new, margin)
        if not (margin >= SINGULAR).all():
            raise ModelError(describe("the equations of closure lose their rank", where=self.name, fix=_FIX))
        return found

    def _differ(self, q: Array, kept: Closing) -> bool:
        """Return whether the configurations (..., nq) are held by different numbers of equations."""
        spare = [k for k in range(len(self._units[0])) if k not in kept.rows]
        silent = not np.abs(self._measured_jacobian(q)[..., spare, :]).max(initial=0.0) > RANK
        if silent and kept == self.__dict__.get("_kept"):  # as in a plane: the others are spare everywhere
            return False
        return bool((self._ranks(q) != len(kept.rows)).any())

    def _one_by_one(self, name: str, q: Array, shape: tuple[int, ...], values: tuple[ArrayLike, ...]) -> Array:
        """Return an algorithm's result where each state has its own choice of equations."""
        cores = self._shapes_of(self._request(name, external=len(values) > 2))[0].values()
        batch, found = shape[:-1], np.empty(shape)
        given = zip((q, *values), cores, strict=True)
        spread = [np.broadcast_to(np.asarray(each, dtype=float), (*batch, *core)) for each, core in given]
        for index in np.ndindex(batch):
            found[index] = self._by_multipliers(name, *(each[index] for each in spread))
        return found

    def closed_forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None
    ) -> Array:
        """Return the accelerations (..., nv) of all coordinates that forces (..., nv) on them cause, loops closed.

        M a + C v + g + friction - J^T external = tau + A^T lambda, with A a = -A' v (Khalil 2010, section 2.2). The
        velocities (..., nv) satisfy A v = 0, see ``constrained_velocities``. No coordinate need be active, and dead
        points of the active ones are no trouble: only where the equations of closure lose their rank there is no
        answer. Without loops, it is ``forward_dynamics``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.closed_forward_dynamics([0.4, 0.2], [0.0, 0.0], [1.0, 0.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.allclose(a, G / (G @ M @ G)))
            True
        """
        return self._by_multipliers("closed_forward_dynamics", q, v, tau, *([] if external is None else [external]))

    def closed_velocities(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the velocities (..., nv) with closed loops, A v = 0, that are nearest to ``v`` (..., nv).

        Nearest in kinetic energy: v - M^-1 A^T (A M^-1 A^T)^-1 A v, what an impulse of the loops would leave.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> v = robot.closed_velocities([0.4, 0.2], [2.0, 0.0])
            >>> bool(np.isclose(v[0], 2 * v[1]))
            True
        """
        return self._by_multipliers("closed_velocities", q, v)

    def closed_loop_forces(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None
    ) -> Array:
        """Return what the loops pass on (..., c) under forces (..., nv) on all coordinates.

        The multipliers with M a + C v + g + friction - J^T external = tau + A^T lambda, as in ``loop_forces``: what the
        equations of closure hold together with, 0 for those that are spare. Arguments as in
        ``closed_forward_dynamics``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> still = [0.4, 0.2], [0.0, 0.0], [1.0, 0.0]
            >>> a, belt = robot.closed_forward_dynamics(*still), robot.closed_loop_forces(*still)
            >>> tau = robot.inverse_dynamics([0.4, 0.2], [0.0, 0.0], a)
            >>> bool(np.isclose(tau[1], -2.0 * belt[0]))  # nothing else drives joint2
            True
        """
        return self._by_multipliers("closed_loop_forces", q, v, tau, *([] if external is None else [external]))

    def loop_loads(self, q: ArrayLike, forces: ArrayLike) -> Array:
        """Return the wrenches (..., L, 6) of the loops on the links, at their origins in their axes (N m and N).

        ``forces`` (..., c) are those of the equations of closure, from ``loop_forces`` or ``closed_loop_forces``. As
        external wrenches they make the cut tree move as the closed mechanism does, and ``joint_wrenches`` with them
        are what its bearings carry. Where equations are spare, how bearings share a load is not decided by mechanics;
        what is given then is one way. Couplings act within joints, and put no wrench on a link.

        Example:
            >>> import torsor
            >>> chain = torsor.library.planar_chain(1).with_frame("tip", "link1", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = chain.with_frame("nail", "base", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = rod.with_loop("held", "nail", "tip", "spherical")  # it cannot fall
            >>> held = rod.loop_loads([0.0], rod.closed_loop_forces([0.0], [0.0], [0.0]))
            >>> float(rod.joint_wrenches([0.0], [0.0], [0.0], held)[0, 4].round(3))  # half of its weight
            4.905
        """
        return self._call("loop_loads", q, forces)


_FIX = "another configuration; robot.mobility(q) has the motions that part there"
