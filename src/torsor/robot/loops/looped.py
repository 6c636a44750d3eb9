"""Motion and forces of robots with closed loops, as methods of a robot."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.differentiation import Loads
from torsor.robot.loops.closed import numbers
from torsor.robot.loops.derivatives import LoopDerivatives

__all__ = ["Looped"]

Array = NDArray[np.float64]


class Looped(LoopDerivatives):
    """A robot that moves and feels forces as a whole while its loops are closed."""

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
        than move the mechanism, the motion is that of as many as do, and the forces have the least sum of tau^2 /
        ``share`` (..., N), or the least tau^T share^-1 tau of matrices (..., N, N), symmetric and positive. What nobody
        drives but moves on its own, such as a floating base or the link of an elastic joint, is active too: its force
        is what it would take to move it so. Khalil 2010, eqs. 55-57.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> tau = robot.with_active(["joint1"]).constrained_inverse_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.isclose(tau[0], G @ M @ G))
            True
        """
        values = q, v_active, a_active
        found: Array = self._driven("constrained_inverse_dynamics", values, share, Loads(external))
        return found

    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: ArrayLike | None = None,
        method: str = "projection",
    ) -> Array:
        """Return the accelerations (..., N) of the active coordinates that forces (..., N) on them cause.

        Arguments as in ``constrained_inverse_dynamics``, whose inverse it is; a floating base that is active has the
        force zero. ``method`` is "projection" on the motions of the closed mechanism (Khalil 2010, eq. 58), or
        "multipliers", the same by other equations: those of all coordinates, with the forces of the loops (see
        ``closed_forward_dynamics``, which also holds where the active coordinates lose hold of the mechanism).

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.with_active(["joint1"]).constrained_forward_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2]), np.array([1.0, 0.5])
            >>> bool(np.isclose(a[0], 1 / (G @ M @ G)))
            True
        """
        if method == "multipliers":
            given = numbers(tau_active, len(self._active), self.name, "tau_active")
            tau = np.zeros((*given.shape[:-1], self.nv))
            tau[..., self._active] = given
            v = self.constrained_velocities(q, v_active)
            return self.closed_forward_dynamics(q, v, tau, external)[..., self._active]
        if method != "projection":
            allowed = "'projection' or 'multipliers'"
            raise ModelError(describe(f"method is {method!r}", where=self.name, allowed=allowed))
        values = q, v_active, tau_active
        found: Array = self._closed("constrained_forward_dynamics", *values, loads=Loads(external))
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
        found: Array = self._driven("loop_forces", (q, v_active, a_active), share, Loads(external))
        return found

    def loop_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Array:
        """Return what the cut joints pass on (..., l, 6): the wrench (moment, force) that frame a exerts on frame b.

        At the origin of frame a in its axes, for each of the l loops that are cut joints; couplings, which are no
        joints, have none. Spare equations (see ``mobility``) carry nothing: of a hinge in a plane, what keeps it there
        is left to the others, and how much of it a real hinge takes no rigid body can tell.

        Example:
            >>> import torsor
            >>> arm = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> arm = arm.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> arm = arm.with_frame("hook", "base", torsor.spatial.make_pose(p=[2, 1, 0]))
            >>> hung = arm.with_loop("wire", "hook", "tip", "rod", length=1.0).with_active(["joint1"])
            >>> wire = hung.loop_wrenches([0.0, 0.0], [0.0], [0.0])[0]  # it carries half of the last link
            >>> float(wire[4].round(9))
            14.715
        """
        found: Array = self._driven("loop_wrenches", (q, v_active, a_active), share, Loads(external))
        return found

    def constrained_joint_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
    ) -> Array:
        """Return the reactions (..., L, 6) in the joints of the tree while loops are closed.

        What each parent exerts on its link, (moment, force) at the link's origin in the link's axes, as in
        ``joint_wrenches``: those of the tree that also carries what the cut joints pass on (``loop_wrenches``, with
        what is said there of spare equations). A coupling's force is in the component along the joint's axis.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> wrenches = robot.constrained_joint_wrenches([0.4, 0.2], [0.0], [1.0])
            >>> bool(np.allclose(wrenches, robot.joint_wrenches([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])))
            True
        """
        found: Array = self._driven("constrained_joint_wrenches", (q, v_active, a_active), share, Loads(external))
        return found
