"""Derivatives of motion and forces with closed loops, as methods of a robot."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.robot.differentiation import Loads
from torsor.robot.loops.calls import Called

__all__ = ["LoopDerivatives"]

Array = NDArray[np.float64]
Three = tuple[Array, Array, Array]


class LoopDerivatives(Called):
    """A robot with the derivatives of what it does while its loops are closed.

    All are by the active coordinates, as the columns: ``dq`` along the closed mechanism, which follows them, ``dv`` by
    their velocities with the positions held, and so on. Where more coordinates are active than are needed, the motion
    is that of as many as are, and the columns of the others are zero: times rates of all active ones that agree with
    each other, they give the rates of the results.
    """

    def constrained_velocity_derivatives(self, q: ArrayLike, v_active: ArrayLike) -> tuple[Array, Array]:
        """Return the derivatives (dq, dv) of ``constrained_velocities``, each (..., nv, N); dv is G.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> dq, dv = robot.with_active(["joint1"]).constrained_velocity_derivatives([0.4, 0.2], [1.0])
            >>> dq.tolist(), dv.tolist()  # a belt is the same everywhere
            ([[0.0], [0.0]], [[1.0], [0.5]])
        """
        found: tuple[Array, Array] = self._closed("constrained_velocity_derivatives", q, v_active)
        return found

    def constrained_acceleration_derivatives(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike) -> Three:
        """Return the derivatives (dq, dv, da) of the accelerations of all coordinates, each (..., nv, N); da is G.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_acceleration_derivatives([0.4, 0.2], [1.0], [3.0])
            >>> da.tolist()
            [[1.0], [0.5]]
        """
        found: Three = self._closed("constrained_acceleration_derivatives", q, v_active, a_active)
        return found

    def constrained_inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``constrained_inverse_dynamics``, each (..., N, N): row force.

        da is the mass matrix G^T M G of the closed mechanism. With lambda the forces of the loops, held, and v and a
        changing as closed loops make them,

            dtau/dq = G^T [d(ID - A^T lambda)/dq G + d(ID)/dv dv/dq + M da/dq]

        from the recursion of ``inverse_dynamics_derivatives``; ``fixed_in`` and ``points`` as there, ``share`` as in
        ``constrained_inverse_dynamics``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_inverse_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.isclose(da[0, 0], G @ M @ G))
            True
        """
        loads = Loads(external, fixed_in, points)
        name = "constrained_inverse_dynamics_derivatives"
        found: Three = self._driven(name, (q, v_active, a_active), share, loads)
        return found

    def constrained_forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
    ) -> Three:
        """Return the derivatives (dq, dv, dtau) of ``constrained_forward_dynamics``, each (..., N, N).

        They are -M_c^-1 d(tau)/dq, -M_c^-1 d(tau)/dv and M_c^-1 of the closed mechanism's mass matrix M_c, with the
        derivatives of its inverse dynamics at that acceleration.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, dtau = robot.constrained_forward_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> _, _, M = robot.constrained_inverse_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> bool(np.isclose(dtau[0, 0] * M[0, 0], 1.0))
            True
        """
        loads, values = Loads(external, fixed_in, points), (q, v_active, tau_active)
        found: Any = self._closed("constrained_forward_dynamics_derivatives", *values, loads=loads)
        return found  # type: ignore[no-any-return]

    def loop_force_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``loop_forces``, each (..., c, N); arguments as there.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.loop_force_derivatives([0.4, 0.2], [0.0], [1.0])
            >>> bool(np.isclose(-2.0 * da[0, 0], robot.mass_matrix([0.4, 0.2])[1] @ [1.0, 0.5]))
            True
        """
        loads = Loads(external, fixed_in, points)
        found: Three = self._driven("loop_force_derivatives", (q, v_active, a_active), share, loads)
        return found

    def loop_wrench_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``loop_wrenches``, each (..., l, 6, N).

        External wrenches stay as they are in their links.

        Example:
            >>> import torsor
            >>> arm = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> arm = arm.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> arm = arm.with_frame("hook", "base", torsor.spatial.make_pose(p=[2, 1, 0]))
            >>> hung = arm.with_loop("wire", "hook", "tip", "rod", length=1.0).with_active(["joint1"])
            >>> dq, dv, da = hung.loop_wrench_derivatives([0.0, 0.0], [0.0], [0.0])
            >>> still, more = (hung.loop_wrenches([0.0, 0.0], [0.0], [a]) for a in (0.0, 1.0))
            >>> bool(np.allclose(more - still, da[..., 0]))
            True
        """
        found: Three = self._driven("loop_wrench_derivatives", (q, v_active, a_active), share, Loads(external))
        return found

    def constrained_joint_wrench_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``constrained_joint_wrenches``, each (..., L, 6, N).

        External wrenches stay as they are in their links.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_joint_wrench_derivatives([0.4, 0.2], [0.0], [1.0])
            >>> _, _, by_a = robot.joint_wrench_derivatives([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])
            >>> bool(np.allclose(da[..., 0], by_a @ [1.0, 0.5]))
            True
        """
        name = "constrained_joint_wrench_derivatives"
        found: Three = self._driven(name, (q, v_active, a_active), share, Loads(external))
        return found
