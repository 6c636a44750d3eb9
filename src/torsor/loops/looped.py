"""Motion and forces of robots with closed loops, as methods of a robot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import ALGORITHMS, Request
from torsor.loops.multipliers import Multiplied

__all__ = ["Looped"]

Array = NDArray[np.float64]


class Looped(Multiplied):
    """A robot that moves and feels forces as a whole while its loops are closed."""

    def _new_request(
        self, name: str, place: str | int | None, external: bool | str, forced: Sequence[str] | None, **options: Any
    ) -> Request:
        if name in ALGORITHMS and ALGORITHMS[name].closed and "closing" not in options:
            options["closing"] = self._closing
        return super()._new_request(name, place, external, forced, **options)

    def _closed(self, name: str, *values: ArrayLike, external: ArrayLike | None = None) -> Any:
        self._check_closed(values[0])  # of an open loop all that follows would be wrong numbers
        request = self._request(name, external=external is not None)
        return self._kernel(request)(*values, *([] if external is None else [external]))

    def constrained_velocities(self, q: ArrayLike, v_active: ArrayLike) -> Array:
        """Return the velocities (..., nv) of all coordinates, from those of the active ones (..., N): v = G v_active.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).constrained_velocities([0.4, 0.2], [1.0]).tolist()
            [1.0, 0.5]
        """
        found: Array = self._closed("constrained_velocities", q, v_active)
        return found

    def constrained_accelerations(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike) -> tuple[Array, Array]:
        """Return (v, a), each (..., nv), of all coordinates, from the active ones: a = G a_active + G' v_active.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> v, a = robot.with_active(["joint1"]).constrained_accelerations([0.4, 0.2], [1.0], [3.0])
            >>> a.tolist()
            [3.0, 1.5]
        """
        found: tuple[Array, Array] = self._closed("constrained_accelerations", q, v_active, a_active)
        return found

    def constrained_inverse_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Array:
        """Return the forces (..., N) of the active coordinates of a motion with closed loops.

        ``q`` (..., nq) are all positions (see ``assemble``), ``v_active`` and ``a_active`` (..., N) the rates of the
        active ones. Passive joints have no drive, only their springs and friction. Where more coordinates are active
        than move the mechanism, the forces have the least sum of tau^2 / ``share`` (..., N). Document 003, eqs. 55-57.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> tau = robot.with_active(["joint1"]).constrained_inverse_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.isclose(tau[0], G @ M @ G))
            True
        """
        shares = np.ones(len(self._active)) if share is None else share
        found: Array = self._closed("constrained_inverse_dynamics", q, v_active, a_active, shares, external=external)
        return found

    def constrained_forward_dynamics(
        self, q: ArrayLike, v_active: ArrayLike, tau_active: ArrayLike, external: ArrayLike | None = None
    ) -> Array:
        """Return the accelerations (..., N) of the active coordinates that forces (..., N) on them cause.

        Arguments as in ``constrained_inverse_dynamics``, whose inverse it is. Document 003, eq. 58.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.with_active(["joint1"]).constrained_forward_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.isclose(a[0], 1 / (G @ M @ G)))
            True
        """
        found: Array = self._closed("constrained_forward_dynamics", q, v_active, tau_active, external=external)
        return found

    def loop_forces(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Array:
        """Return what the loops pass on (..., c): one number for each equation of closure, 0 for those that are spare.

        They are the multipliers lambda with tau_tree = tau_active + A^T lambda: for an equation that keeps origins
        together the force (N) along that axis of frame a, for one that keeps axes together a moment (N m).

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> belt = robot.loop_forces([0.4, 0.2], [0.0], [1.0])
            >>> tau = robot.inverse_dynamics([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])
            >>> bool(np.isclose(tau[1], -2.0 * belt[0]))  # nothing else drives joint2
            True
        """
        shares = np.ones(len(self._active)) if share is None else share
        found: Array = self._closed("loop_forces", q, v_active, a_active, shares, external=external)
        return found
