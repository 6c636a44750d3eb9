"""The robot: a mechanism that computes. Each method is an algorithm of ``dynamics``."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.robot.loops import Looped

__all__ = ["Robot"]

Array = NDArray[np.float64]


class Robot(Looped):
    """A tree of links and joints with its dynamics.

    Made by ``torsor.load``, ``from_dh``, ``from_mdh``, ``from_screws`` and ``torsor.library``. SI units, radians.
    Arrays have any leading axes, which broadcast: ``q`` is (..., nq), ``v``, ``a`` and forces are (..., nv). Spatial
    vectors have the angular part first. ``external`` is (..., L, 6): the wrench (moment, force) that the environment
    exerts on each moving link, at the link's origin, in the link's axes.

    Example:
        >>> import torsor
        >>> robot = torsor.library.two_link()
        >>> robot.inverse_dynamics([0.3, -1.2], [1.1, -0.7], [2.0, 3.5]).round(6).tolist()
        [1.129562, 0.643878]
    """

    # Forces

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None) -> Array:
        """Return the generalised forces (..., nv) of a motion, in N m and N.

        ``external`` (..., L, 6) is the wrench (moment, force) of the environment on each moving link, at its origin in
        its axes. tau = M(q) a + C(q, v) v + g(q) + friction(v) - sum of J^T external, by Newton-Euler recursion
        (Barman 2020; Guarino Lo Bianco 2009; Khalil 2010). Rotor inertias and friction are included.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.inverse_dynamics([0.0], [0.0], [0.0])[0].round(9))  # 3 kg, 1 m away
            29.43
        """
        return self._call("inverse_dynamics", q, v, a, external=external)

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None) -> Array:
        """Return the accelerations (..., nv) that generalised forces cause: the inverse of ``inverse_dynamics``.

        a = M(q)^-1 (tau - C(q, v) v - g(q) - friction(v) + sum of J^T external), in O(n) by articulated bodies
        (Khalil 2010, section 3.3.2). A joint that moves no inertia at all makes it infinite.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> tau = robot.inverse_dynamics([0.3, -1.2], [1.1, -0.7], [2.0, 3.5])
            >>> robot.forward_dynamics([0.3, -1.2], [1.1, -0.7], tau).round(9).tolist()
            [2.0, 3.5]
        """
        return self._call("forward_dynamics", q, v, tau, external=external)

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike,
        forced: Sequence[str],
        external: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Return (a, tau), each (..., nv) and complete, where some coordinates are driven by force, others by motion.

        ``forced`` names the coordinates (or joints, for all of theirs) whose force is given in ``tau`` and whose
        acceleration is wanted; of all others the acceleration is given in ``a`` and the force wanted. What is given for
        the wanted ones is ignored. None forced is inverse dynamics, all forced is direct dynamics, and the base of a
        floating robot forced is the moving-base inverse model of Khalil 2010 (eqs. 89-100).

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> a, tau = robot.hybrid_dynamics([0, 0.5], [1, 0], [0, 2.0], [0.3, 0], forced=["joint1"])
            >>> robot.inverse_dynamics([0, 0.5], [1, 0], a).round(9).tolist() == tau.round(9).tolist()
            True
        """
        kernel = self._kernel(self._request("hybrid_dynamics", external=external is not None, forced=forced))
        complete: tuple[Array, Array] = kernel(q, v, a, tau, *([] if external is None else [external]))
        return complete

    def joint_wrenches(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None) -> Array:
        """Return the reactions (..., L, 6): what each parent exerts on its link through the joint.

        (moment, force) at the link's origin in the link's axes, in N m and N (Barman 2020, Khalil 2010). The component
        along a joint's axis is what its drive, friction and rotor take together; the rest is carried by the bearings.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> robot.joint_wrenches([0.0], [0.0], [0.0])[0].round(9).tolist()
            [0.0, 0.0, 29.43, 0.0, 29.43, 0.0]
        """
        return self._call("joint_wrenches", q, v, a, external=external)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Return M(q) (..., nv, nv): symmetric, rotor inertias on its diagonal. Composite bodies, Walker and Orin 1982.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().mass_matrix([0.0, 0.0]).round(9).tolist()
            [[0.4, 0.16], [0.16, 0.12]]
        """
        return self._call("mass_matrix", q)

    def bias_force(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the forces (..., nv) that remain without acceleration: C(q, v) v + g(q) + friction(v).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().bias_force([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [0.0, 0.04]
        """
        return self._call("bias_force", q, v)

    def gravity_force(self, q: ArrayLike) -> Array:
        """Return the forces (..., nv) that hold the robot still against gravity: g(q).

        Example:
            >>> import torsor
            >>> torsor.library.slide_link().gravity_force([0.1, 0.2]).tolist()
            [0.0, 0.0]
        """
        return self._call("gravity_force", q)

    def friction_force(self, v: ArrayLike) -> Array:
        """Return the forces (..., nv) that friction takes: Fs sign(v) + Fv v, or Fs tanh(v / smooth) + Fv v.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_friction("joint2", coulomb=1.0).friction_force([1.0, -2.0]).tolist()
            [0.0, -1.0]
        """
        return self._call("friction_force", v)

    def spring_force(self, q: ArrayLike) -> Array:
        """Return what the springs ask of each coordinate (..., nv): K(x) x of those on joints and behind motors.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_motor("joint2", 1e-3, stiffness=100.0)
            >>> robot.spring_force([0.0, 0.0, 0.2]).tolist()  # the motor is ahead and pulls the joint after it
            [0.0, -20.0, 20.0]
        """
        return self._call("spring_force", q)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return C(q, v) (..., nv, nv): C v are the velocity forces and the rate of M minus 2 C is skew-symmetric.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().coriolis_matrix([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [[0.0, -0.04], [0.04, 0.0]]
        """
        return self._call("coriolis_matrix", q, v)

    # Motion

    def poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., L, 4, 4) of the moving links in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().poses([0.0, 0.0])[1, :3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self._call("poses", q)

    def velocities(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the twists (..., L, 6) of the moving links: (omega, v of the origin) in the link's axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().velocities([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.8, 0.0]
        """
        return self._call("velocities", q, v)

    def accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return (..., L, 6) of the moving links: (rate of omega, acceleration of the origin) in the link's axes.

        The second part is the acceleration of the point, as an accelerometer would have it in the absence of gravity.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().accelerations([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 0.0, -0.8, 0.0, 0.0]
        """
        return self._call("accelerations", q, v, a)

    def jerks(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, j: ArrayLike) -> Array:
        """Return (..., L, 6): (second rate of omega, jerk of the origin) of each link in its own axes.

        Example:
            >>> import torsor
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.jerks(still, [1.0, 0.0], still, still)[0].round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self._call("jerks", q, v, a, j)

    def pose(self, q: ArrayLike, place: str | int) -> Array:
        """Return the pose (..., 4, 4), in base axes, of a link (name or index) or named frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().pose([0.0, 0.0], "link2")[:3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self._call("pose", q, place=place)

    def velocity(self, q: ArrayLike, v: ArrayLike, place: str | int) -> Array:
        """Return the twist (..., 6) of a link or named frame: (omega, v of its origin) in its own axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().velocity([0.0, 0.0], [1.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.4, 0.0]
        """
        return self._call("velocity", q, v, place=place)

    def acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, place: str | int) -> Array:
        """Return (..., 6) of a link or named frame: (rate of omega, acceleration of its origin) in its own axes.

        It equals J a + J' v + (0, omega x v), with the place's Jacobian J and twist (omega, v).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self._call("acceleration", q, v, a, place=place)

    def jerk(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, j: ArrayLike, place: str | int) -> Array:
        """Return (..., 6) of a link or named frame: (second rate of omega, jerk of its origin) in its own axes.

        ``j`` (..., nv) is the rate of a. They are the rates of what ``acceleration`` gives, as vectors seen from the
        base; Guarino Lo Bianco 2009, eqs. 5 and 8, for every joint.

        Example:
            >>> import torsor
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.jerk(still, [1.0, 0.0], still, still, "link1").round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self._call("jerk", q, v, a, j, place=place)

    def jacobian(self, q: ArrayLike, link: str | int) -> Array:
        """Return J (..., 6, nv) of a link or named frame: (omega, v of its origin) = J v, in its own axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().jacobian([0.0, 0.0], "link2")[4].round(9).tolist()
            [0.8, 0.4]
        """
        return self._call("jacobian", q, place=link)

    def jacobian_rate(self, q: ArrayLike, v: ArrayLike, link: str | int) -> Array:
        """Return the rate (..., 6, nv) of the Jacobian's components, in the axes of the link or frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().jacobian_rate([0.0, 0.0], [0.0, 1.0], "link2")[3].round(9).tolist()
            [0.4, 0.0]
        """
        return self._call("jacobian_rate", q, v, place=link)

    # Sums over the links

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the kinetic energy (...), in J: v^T M v / 2, rotors included.

        Example:
            >>> import torsor
            >>> float(torsor.library.two_link().kinetic_energy([0.0, 0.0], [1.0, 0.0]).round(9))
            0.2
        """
        return self._call("kinetic_energy", q, v)

    def potential_energy(self, q: ArrayLike) -> Array:
        """Return the potential energy (...) in gravity, in J, zero with the centre of mass at the base's origin.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.potential_energy([np.pi / 2]).round(9))
            29.43
        """
        return self._call("potential_energy", q)

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Return the centre of mass (..., 3) of the moving links, in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().center_of_mass([0.0, 0.0]).round(9).tolist()
            [0.4, 0.0, 0.0]
        """
        return self._call("center_of_mass", q)

    def momentum(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return (..., 6): angular momentum about the centre of mass, and linear momentum, in base axes.

        Example:
            >>> import torsor
            >>> (torsor.library.two_link().momentum([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.24, 0.0, 0.4, 0.0]
        """
        return self._call("momentum", q, v)

    # Positions

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """Return the positions (..., nq) after one unit of time at the constant velocity dv (..., nv).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().integrate([0.1, 0.2], [1.0, 1.0]).tolist()
            [1.1, 1.2]
        """
        return self._call("integrate", q, dv)

    def difference(self, q: ArrayLike, q_end: ArrayLike) -> Array:
        """Return the dv (..., nv) with ``integrate(q, dv) = q_end``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().difference([0.1, 0.2], [1.1, 1.2]).tolist()
            [1.0, 1.0]
        """
        return self._call("difference", q, q_end)
