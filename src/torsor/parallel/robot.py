"""Parallel robots: legs from the base to one platform. Each method is an algorithm of ``decomposition``."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.parallel.inputs import numbers
from torsor.parallel.placing import Placed
from torsor.parallel.rules import RULES, Rule
from torsor.parallel.workspace import Workspace, explore, grid
from torsor.robot.closed_loops.closure import OPEN
from torsor.robot.robot import Robot

__all__ = ["ParallelRobot"]

Array = NDArray[np.float64]


class ParallelRobot(Placed):
    """Legs from the base to one moving platform, and their dynamics leg by leg (Khalil 2010, section 5).

    ``platform`` is a Link; ``motion`` says how it may move against the base: "free" (6), "planar" (x, y, angle about
    z), "translation" (x, y, z), "spherical" or any other kind of joint. (A Robot may be given in its place: an open
    chain whose last link is the platform.) ``legs`` are ``Leg``s. ``home`` is a pose of the platform where the robot
    is far from singular: equations are chosen there, and legs stay put together as they are there. ``gravity`` (3,) is
    in base axes.

    **Pose** (..., 7) = (x, y, z, qx, qy, qz, qw), or matrices (..., 4, 4); of other motions the joint's own positions.
    **Twist** (..., 6) = (omega, v of the platform's origin) in the platform's own axes, **acceleration** (..., 6) the
    rates of these six numbers: the origin's acceleration is their second part + omega x v. Of other motions both have
    the joint's own velocities. Forces (..., N) are those of the driven coordinates. ``external`` (..., 6) is the wrench
    (moment, force) of the environment on the platform, at its origin in its axes. ``q`` (..., nq) are the positions of
    all legs where they are known already; by default they follow from the pose (``inverse_kinematics``). Where a leg is
    singular, or drives that are needed do not hold the platform, methods raise a ``ModelError`` that says what moves.

    Example:
        >>> import torsor
        >>> robot = torsor.library.gough_stewart()
        >>> still = np.zeros(6)
        >>> robot.inverse_dynamics(robot.home, still, still).round(2).tolist()  # they carry the platform and themselves
        [32.37, 32.37, 32.37, 32.37, 32.37, 32.37]
    """

    def _call(self, name: str, pose: ArrayLike, *values: ArrayLike, q: ArrayLike | None, external: Any = None) -> Any:
        x = self._coordinates(pose)
        given = [*values] if external is None else [*values, external]
        fused, known = q is None and self.has_closed_form, None
        if not fused:
            known = self.inverse_kinematics(x) if q is None else self._positions(q, "q")
            given.insert(0, known)
        try:
            *found, state = self._kernel(name, fused, external is not None, checked=True)(x, *given)
        except (TypeError, ValueError) as error:  # it says which input is of the wrong shape, or no number
            raise ModelError(describe(str(error), where=self.name)) from None
        rule = RULES[name]
        if not (state[..., : len(rule.margins)] > rule.margins).all() or not (fused or (state[..., -1] <= OPEN).all()):
            self._refuse_state(rule, x, known, state)
        return found[0] if len(found) == 1 else tuple(found)

    def _refuse_state(self, rule: Rule, x: Array, q: Array | None, state: Array) -> None:
        """Raise the error that says why a function cannot be computed at one of the states."""
        self._check_finite(x)
        known = self.inverse_kinematics(x) if q is None else q
        open_ = np.zeros(state.shape[:-1]) if q is None else state[..., -1]
        if not (open_ <= OPEN).all():
            size = float(np.max(open_)) * self._parts.length
            fix = "q = robot.inverse_kinematics(pose, guess=q)"
            text = f"q does not close the legs: they are open by {size:.2g}"
            raise ModelError(describe(text, where=self.name, fix=fix))
        bad = np.argwhere(~(state[..., : len(rule.margins)] > rule.margins).all(axis=-1))[0]
        at = [np.broadcast_to(each, (*state.shape[:-1], each.shape[-1]))[tuple(bad)] for each in (x, known)]
        self._refuse_singular(*at)
        text = f"nearly singular at pose {at[0].round(6).tolist()}: results would have few digits"
        raise ModelError(describe(text, where=self.name, fix="go round that pose"))

    def inverse_dynamics(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        acceleration: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        q: ArrayLike | None = None,
    ) -> Array:
        """Return the forces (..., N) of the drives for a motion of the platform, in N and N m.

        Gamma = J_p^T (F_p + sum of J_vi^T J_i^-T Gamma_i), Khalil 2010, eq. 66. Of more drives than the platform has
        freedoms the forces have the least sum of tau^2 / ``share`` (..., N).

        Example:
            >>> import torsor
            >>> robot = torsor.library.delta()
            >>> robot.inverse_dynamics(robot.home, [0, 0, 0], [0, 0, 0]).round(3).tolist()
            [-2.958, -2.958, -2.958]
        """
        shares = np.ones(len(self._driven)) if share is None else numbers(share, self.name, "share")
        if not (np.isfinite(shares) & (shares > 0)).all():
            raise ModelError(describe("share is not positive", where=self.name, allowed="numbers above 0"))
        found: Array = self._call("inverse_dynamics", pose, twist, acceleration, shares, q=q, external=external)
        return found

    def platform_force(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        acceleration: ArrayLike,
        external: ArrayLike | None = None,
        q: ArrayLike | None = None,
    ) -> Array:
        """Return what a motion takes in the platform's own space (..., 6): the wrench that would do it by itself.

        The bracket of Khalil 2010, eq. 66: (moment, force) at the platform's origin in its axes, or forces along the
        coordinates of its motion. It is M acceleration + what is left without acceleration.

        Example:
            >>> import torsor
            >>> robot = torsor.library.three_rrr()
            >>> robot.platform_force(robot.home, np.zeros(3), np.zeros(3)).tolist()  # it lies flat
            [0.0, 0.0, 0.0]
        """
        found: Array = self._call("platform_force", pose, twist, acceleration, q=q, external=external)
        return found

    def forward_dynamics(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        forces: ArrayLike,
        external: ArrayLike | None = None,
        q: ArrayLike | None = None,
    ) -> Array:
        """Return the acceleration (..., 6) of the platform that forces (..., N) of the drives cause.

        M^-1 (J_p^-T Gamma - F at no acceleration): the inverse of ``inverse_dynamics``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.three_rrr()
            >>> forces = robot.inverse_dynamics(robot.home, [0.1, 0, 1], [1, 2, 3])
            >>> robot.forward_dynamics(robot.home, [0.1, 0, 1], forces).round(9).tolist()
            [1.0, 2.0, 3.0]
        """
        found: Array = self._call("forward_dynamics", pose, twist, forces, q=q, external=external)
        return found

    def mass_matrix(self, pose: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return M (..., 6, 6) of platform and legs in the platform's own space: M_p + sum of G_i^T M_i G_i.

        Example:
            >>> import torsor
            >>> M = torsor.library.gough_stewart().mass_matrix([0, 0, 0.8, 0, 0, 0, 1])
            >>> bool(np.allclose(M, M.T) and np.linalg.eigvalsh(M).min() > 0)
            True
        """
        found: Array = self._call("mass_matrix", pose, q=q)
        return found

    def jacobian(self, pose: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return J_p (..., 6, N): the platform's twist is J_p times the rates of the drives (Khalil 2010, eq. 60).

        With more drives than freedoms it is the left inverse of ``inverse_jacobian`` with the least squares.

        Example:
            >>> import torsor
            >>> robot = torsor.library.delta()
            >>> J, K = robot.jacobian(robot.home), robot.inverse_jacobian(robot.home)
            >>> bool(np.allclose(J @ K, np.eye(3)))
            True
        """
        found: Array = self._call("jacobian", pose, q=q)
        return found

    def inverse_jacobian(self, pose: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return J_p^-1 (..., N, 6): the rates of the drives are J_p^-1 times the twist of the platform.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> robot.inverse_jacobian([0, 0, 0.8, 0, 0, 0, 1]).shape
            (6, 6)
        """
        found: Array = self._call("inverse_jacobian", pose, q=q)
        return found

    def leg_velocities(self, pose: ArrayLike, twist: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return the velocities (..., nv) of all coordinates of the legs: q_i' = J_i^-1 J_vi V (Khalil 2010, eq. 62).

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> up = robot.leg_velocities(robot.home, [0, 0, 0, 0, 0, 1.0])
            >>> bool(np.ptp(up[2::3]) < 1e-9)  # all legs grow alike
            True
        """
        found: Array = self._call("leg_velocities", pose, twist, q=q)
        return found

    def leg_accelerations(
        self, pose: ArrayLike, twist: ArrayLike, acceleration: ArrayLike, q: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return (v, a), each (..., nv), of all coordinates of the legs.

        Example:
            >>> import torsor
            >>> robot = torsor.library.three_rrr()
            >>> v, a = robot.leg_accelerations(robot.home, [0, 0, 1.0], [0, 0, 0])
            >>> v.shape
            (6,)
        """
        found: tuple[Array, Array] = self._call("leg_accelerations", pose, twist, acceleration, q=q)
        return found

    def kinetic_energy(self, pose: ArrayLike, twist: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return the kinetic energy (...) of platform and legs, in J.

        Example:
            >>> import torsor
            >>> robot, u = torsor.library.delta(), np.array([0.1, 0.2, 0.3])
            >>> bool(np.isclose(robot.kinetic_energy(robot.home, u), u @ robot.mass_matrix(robot.home) @ u / 2))
            True
        """
        found: Array = self._call("kinetic_energy", pose, twist, q=q)
        return found

    def potential_energy(self, pose: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return the potential energy (...) of platform and legs in gravity and springs, in J.

        Example:
            >>> import torsor
            >>> robot = torsor.library.three_rrr()
            >>> float(robot.potential_energy(robot.home))  # it lies flat
            0.0
        """
        found: Array = self._call("potential_energy", pose, q=q)
        return found

    def workspace(self, poses: ArrayLike, length: float = 1.0) -> Workspace:
        """Return what the robot can do at poses (..., 7), a grid for example: reach, limits, singularities.

        ``length`` (m) makes one kind of number of turns and ways: the condition of J_p^-1 depends on it. See
        ``Workspace`` for what it has.

        Example:
            >>> import torsor
            >>> robot = torsor.library.three_rrr()
            >>> map_ = robot.workspace(robot.grid(x=np.linspace(-0.5, 0.5, 11), y=np.linspace(-0.5, 0.5, 11)))
            >>> map_.reachable.shape, bool(map_.reachable[5, 5]), bool(map_.reachable[0, 0])
            ((11, 11), True, False)
        """
        return explore(self, self._coordinates(poses), length)

    def grid(self, **ranges: ArrayLike) -> Array:
        """Return a grid of poses about home: one axis for each range of values, and behind them that of the pose.

        Ranges are named after the platform's positions: x, y, z, angle. Those of a free platform may also be turn_x,
        turn_y and turn_z (rad), turns from home about the axes of the base, the first named first.

        Example:
            >>> import torsor
            >>> torsor.library.gough_stewart().grid(x=[-0.1, 0.0, 0.1], turn_z=[0.0, 0.5]).shape
            (3, 2, 7)
        """
        return grid(self, ranges)

    def as_robot(self) -> Robot:
        """Return the same mechanism as a tree with loops: the platform on its own joint, the legs' tips cut from it.

        The driven coordinates are its active ones. Its constrained dynamics gives the same forces by the generic
        route, from one large matrix in place of one small one for each leg.

        Example:
            >>> import torsor
            >>> torsor.library.three_rrr().as_robot().mobility().dof
            3
        """
        robot = replace(self.carriage, name=self.name, target=self.target)
        platform = robot.links[-1].name
        for leg in self.legs:
            stand, place = f"stand/{leg.name}", f"at/{leg.name}"
            robot = robot.with_frame(stand, robot.base.name, leg.base).with_frame(place, platform, leg.at)
            robot = robot.attach(leg.robot, at=stand, prefix=f"{leg.name}/")
            robot = robot.with_loop(leg.name, f"{leg.name}/{leg.tip}", place, leg.kind, leg.length)
        return robot.with_active(self.driven_names)

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """Return the robot under another gravity (3,), m/s^2, in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.three_rrr().with_gravity([0, -9.81, 0]).gravity.tolist()
            [0.0, -9.81, 0.0]
        """
        return replace(self, gravity=gravity)  # type: ignore[arg-type]  # checked and converted there
