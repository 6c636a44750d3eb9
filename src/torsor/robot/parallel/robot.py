"""Parallel robots. Each dynamics method evaluates an algorithm of ``decomposition``."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import vectors
from torsor.base.errors import ModelError, shortened
from torsor.robot.closed_loops.closed import Closed
from torsor.robot.closed_loops.closure import MAX_CLOSURE_ERROR
from torsor.robot.inertial import Inertial
from torsor.robot.parallel.inertial import carriers, start_of, with_parameters
from torsor.robot.parallel.kernels import RULES, Assembled, Rule
from torsor.robot.parallel.kinematics import Kinematics
from torsor.robot.parallel.workspace import Workspace, explore, grid
from torsor.robot.robot import Robot


class ParallelRobot(Assembled):
    """A robot whose legs connect one moving platform to the base, with dynamics computed leg by leg.

    ``platform`` is a Link, and ``motion`` its motion relative to the base: "free" (6), "planar" (x, y, angle about z),
    "translation" (x, y, z), "spherical" or any other kind of joint. ``platform`` may also be a Robot: an open chain
    whose last link is the platform. ``legs`` are ``Leg`` objects. ``home`` is a pose far from singularities, at which
    the closure equations are chosen. The legs keep their assembly modes. ``gravity`` (3,) is in m/s^2, in base axes.
    See Khalil 2010, section 5.

    - **Pose** (..., 7) = (x, y, z, qx, qy, qz, qw), or matrices (..., 4, 4).
    - **Twist** (..., 6) = (omega, v of the platform's origin) in the platform's own axes.
    - **Acceleration** (..., 6): the time derivatives of the twist's components. The origin's acceleration is the second
      part plus omega x v.
    - Forces (..., N) belong to the driven coordinates.
    - ``external`` (..., 6) is the wrench (moment, force) that the environment exerts on the platform, at its origin in
      its axes.
    - ``q`` (..., nq) are the positions of all legs; the default is ``inverse_kinematics``.

    For other motions, pose, twist and acceleration are the joint's own positions, velocities and accelerations. If a
    leg is singular, or the drives do not control the platform, a ``ModelError`` names the uncontrolled motion.

    Example:
        >>> robot = torsor.library.gough_stewart()
        >>> still = np.zeros(6)
        >>> robot.inverse_dynamics(robot.home, still, still).round(2).tolist()  # weight of platform and legs
        [32.37, 32.37, 32.37, 32.37, 32.37, 32.37]
    """

    def _call(self, name: str, pose: ArrayLike, *values: ArrayLike, q: Maybe, external: Any = None) -> list[Array]:
        x = self._coordinates(pose)
        inputs = [*values] if external is None else [*values, external]
        result: list[Array]
        fused, known = q is None and self.has_closed_form, None
        if not fused:
            known = self.inverse_kinematics(x) if q is None else vectors(q, self.nq, self.name, "q")
            inputs.insert(0, known)
        try:
            *result, state = self._kernel(name, fused, external is not None, checked=True)(x, *inputs)
        except ModelError as error:  # the error names the wrong input
            raise error.inside(self.name) from None
        except (TypeError, ValueError) as error:
            raise ModelError(str(error), where=self.name) from None
        rule = RULES[name]
        regular = (state[..., : len(rule.margins)] > rule.margins).all()
        if not (regular and (fused or (state[..., -1] <= MAX_CLOSURE_ERROR).all())):
            self._refuse_state(rule, x, known, state)
        return result

    def _refuse_state(self, rule: Rule, x: Array, q: Array | None, state: Array) -> None:
        """Raise ModelError if an algorithm cannot be evaluated at one of the states, with the reason."""
        self._check_finite(x)
        known = self.inverse_kinematics(x) if q is None else q
        open_ = np.zeros(state.shape[:-1]) if q is None else state[..., -1]
        if not (open_ <= MAX_CLOSURE_ERROR).all():
            size = float(np.max(open_)) * self._parts.length
            fix = "q = robot.inverse_kinematics(pose, guess=q)"
            message = f"does not close the legs: the closure error is {size:.2g}"
            raise ModelError(message, argument="q", where=self.name, fix=fix)
        bad = np.argwhere(~(state[..., : len(rule.margins)] > rule.margins).all(axis=-1))[0]
        at = [np.broadcast_to(item, (*state.shape[:-1], item.shape[-1]))[tuple(bad)] for item in (x, known)]
        self._refuse_singular(*at)
        place, effect = shortened(at[0].round(6)), "results would have few correct digits"
        message = f"the robot is nearly singular at pose {place}: {effect}"
        raise ModelError(message, where=self.name, fix="avoid that pose")

    @cached_property
    def _kinematics(self) -> Kinematics:
        return Kinematics(self)

    def inverse_kinematics(self, pose: ArrayLike, guess: Maybe = None) -> Array:
        """Return the positions (..., nq) of all legs for a pose of the platform (..., 7).

        UPS legs (universal, prismatic and spherical joints) have a closed form. Other legs are closed by damped Newton
        iterations, in the assembly mode of home or of a ``guess`` (..., nq). If no positions are found for a leg, a
        ModelError names the leg. Joint limits are not checked; see ``workspace``.

        Example:
            >>> robot = torsor.library.gough_stewart()
            >>> robot.inverse_kinematics([0.0, 0.0, 0.8, 0, 0, 0, 1])[robot.leg_slices[0]].shape
            (3,)
        """
        near = None if guess is None else vectors(guess, self.nq, self.name, "guess")
        return self._kinematics.inverse(self._coordinates(pose), near)

    def forward_kinematics(self, q_driven: ArrayLike, guess: Maybe = None) -> Array:
        """Return the pose (..., 7) of the platform for positions of the driven coordinates (..., N).

        If there are several solutions, the one near ``guess``, a pose (..., 7), is returned; the default guess is home.
        From there, the drives move to their goal in steps that do not pass through a singular configuration. After each
        step, damped Newton iterations close the loops. The positions of redundant drives must agree.

        Example:
            >>> robot = torsor.library.gough_stewart()
            >>> lengths = robot.inverse_kinematics(robot.home)[2::3]
            >>> bool(np.allclose(robot.forward_kinematics(lengths + 0.1)[:2], 0.0))  # equal extensions: straight up
            True
        """
        return self._kinematics.forward(q_driven, None if guess is None else self._coordinates(guess, "guess"))

    def inverse_dynamics(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        acceleration: ArrayLike,
        external: Maybe = None,
        share: Maybe = None,
        q: Maybe = None,
    ) -> Array:
        """Return the drive forces (..., N) for a motion of the platform, in N and N m.

        They are Gamma = J_p^T (F_p + sum of J_vi^T J_i^-T Gamma_i) (Khalil 2010, eq. 66). If there are more drives than
        degrees of freedom, the forces minimise the sum of Gamma_k^2 / share_k over the drives k; ``share`` (..., N) are
        positive weights, by default 1.

        Example:
            >>> robot = torsor.library.delta()
            >>> robot.inverse_dynamics(robot.home, [0, 0, 0], [0, 0, 0]).round(3).tolist()
            [-2.958, -2.958, -2.958]
        """
        count = len(self._driven)
        weights = np.ones(count) if share is None else vectors(share, count, self.name, "share")
        if not (weights > 0).all():
            raise ModelError("is not positive", argument="share", where=self.name, allowed="numbers above 0")
        return self._call("inverse_dynamics", pose, twist, acceleration, weights, q=q, external=external)[0]

    def platform_force(
        self, pose: ArrayLike, twist: ArrayLike, acceleration: ArrayLike, external: Maybe = None, q: Maybe = None
    ) -> Array:
        """Return the inverse dynamics in the platform's own coordinates (..., 6): the wrench that causes the motion.

        It is the bracketed term of Khalil 2010, eq. 66: (moment, force) at the platform's origin in its axes, or the
        generalised forces of its motion. It equals M acceleration + bias force (gravity, velocities, ``external``).

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> robot.platform_force(robot.home, np.zeros(3), np.zeros(3)).tolist()  # the robot is horizontal
            [0.0, 0.0, 0.0]
        """
        return self._call("platform_force", pose, twist, acceleration, q=q, external=external)[0]

    def forward_dynamics(
        self, pose: ArrayLike, twist: ArrayLike, forces: ArrayLike, external: Maybe = None, q: Maybe = None
    ) -> Array:
        """Return the platform acceleration (..., 6) for drive forces (..., N).

        It is M^-1 (J_p^-T Gamma - F at zero acceleration), the inverse of ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> forces = robot.inverse_dynamics(robot.home, [0.1, 0, 1], [1, 2, 3])
            >>> robot.forward_dynamics(robot.home, [0.1, 0, 1], forces).round(9).tolist()
            [1.0, 2.0, 3.0]
        """
        return self._call("forward_dynamics", pose, twist, forces, q=q, external=external)[0]

    def mass_matrix(self, pose: ArrayLike, q: Maybe = None) -> Array:
        """Return the mass matrix (..., 6, 6) of the platform and legs in the platform's own coordinates.

        It is M_p + sum of G_i^T M_i G_i.

        Example:
            >>> M = torsor.library.gough_stewart().mass_matrix([0, 0, 0.8, 0, 0, 0, 1])
            >>> bool(np.allclose(M, M.T) and np.linalg.eigvalsh(M).min() > 0)
            True
        """
        return self._call("mass_matrix", pose, q=q)[0]

    def jacobian(self, pose: ArrayLike, q: Maybe = None) -> Array:
        """Return J_p (..., 6, N): the platform's twist is J_p times the drive rates (Khalil 2010, eq. 60).

        If there are more drives than degrees of freedom, it is the pseudo-inverse of ``inverse_jacobian``.

        Example:
            >>> robot = torsor.library.delta()
            >>> J, K = robot.jacobian(robot.home), robot.inverse_jacobian(robot.home)
            >>> bool(np.allclose(J @ K, np.eye(3)))
            True
        """
        return self._call("jacobian", pose, q=q)[0]

    def inverse_jacobian(self, pose: ArrayLike, q: Maybe = None) -> Array:
        """Return J_p^-1 (..., N, 6): the drive rates are J_p^-1 times the twist of the platform.

        Example:
            >>> robot = torsor.library.gough_stewart()
            >>> robot.inverse_jacobian([0, 0, 0.8, 0, 0, 0, 1]).shape
            (6, 6)
        """
        return self._call("inverse_jacobian", pose, q=q)[0]

    def leg_velocities(self, pose: ArrayLike, twist: ArrayLike, q: Maybe = None) -> Array:
        """Return the velocities (..., nv) of all leg coordinates: q_i' = J_i^-1 J_vi V (Khalil 2010, eq. 62).

        Example:
            >>> robot = torsor.library.gough_stewart()
            >>> up = robot.leg_velocities(robot.home, [0, 0, 0, 0, 0, 1.0])
            >>> bool(np.ptp(up[2::3]) < 1e-9)  # all legs extend equally
            True
        """
        return self._call("leg_velocities", pose, twist, q=q)[0]

    def leg_accelerations(
        self, pose: ArrayLike, twist: ArrayLike, acceleration: ArrayLike, q: Maybe = None
    ) -> tuple[Array, Array]:
        """Return the velocities and accelerations (v, a), each (..., nv), of all leg coordinates.

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> v, a = robot.leg_accelerations(robot.home, [0, 0, 1.0], [0, 0, 0])
            >>> v.shape
            (6,)
        """
        v, a = self._call("leg_accelerations", pose, twist, acceleration, q=q)
        return v, a

    def kinetic_energy(self, pose: ArrayLike, twist: ArrayLike, q: Maybe = None) -> Array:
        """Return the kinetic energy (...) of the platform and legs, in J.

        Example:
            >>> robot, u = torsor.library.delta(), np.array([0.1, 0.2, 0.3])
            >>> bool(np.isclose(robot.kinetic_energy(robot.home, u), u @ robot.mass_matrix(robot.home) @ u / 2))
            True
        """
        return self._call("kinetic_energy", pose, twist, q=q)[0]

    def potential_energy(self, pose: ArrayLike, q: Maybe = None) -> Array:
        """Return the potential energy (...) of the platform and legs, in J: gravity and springs.

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> float(robot.potential_energy(robot.home))  # the robot is horizontal
            0.0
        """
        return self._call("potential_energy", pose, q=q)[0]

    def workspace(self, poses: ArrayLike, length: float = 1.0) -> Workspace:
        """Return which poses (..., 7), for example of a grid, are reachable, within joint limits, or singular.

        ``length`` (m) is the characteristic length that makes rotations and translations comparable. The condition
        number of J_p^-1 depends on it. See ``Workspace`` for the result.

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> map_ = robot.workspace(robot.grid(x=np.linspace(-0.5, 0.5, 11), y=np.linspace(-0.5, 0.5, 11)))
            >>> map_.reachable.shape, bool(map_.reachable[5, 5]), bool(map_.reachable[0, 0])
            ((11, 11), True, False)
        """
        return explore(self._kinematics, self._coordinates(poses), length)

    def grid(self, **ranges: ArrayLike) -> Array:
        """Return a grid of poses around home, with one axis per range, then the pose axis.

        Ranges are named after the platform's positions: x, y, z, angle. A free platform also has turn_x, turn_y and
        turn_z (rad): rotations from home about the base axes, applied in the given order.

        Example:
            >>> torsor.library.gough_stewart().grid(x=[-0.1, 0.0, 0.1], turn_z=[0.0, 0.5]).shape
            (3, 2, 7)
        """
        return grid(self, ranges)

    @cached_property
    def _tree(self) -> Robot:
        return self.as_robot()

    @property
    def closed(self) -> Closed:
        """The closed loops of ``as_robot``: q contains pose and leg positions, and the drives are active.

        Example:
            >>> torsor.library.three_rrr().closed.mobility().dof
            3
        """
        return self._tree.closed

    @cached_property
    def inertial(self) -> Inertial[Self]:
        """Inertial and friction parameters of the platform and legs, in the order of ``as_robot``.

        Example:
            >>> robot = torsor.library.three_rrr()
            >>> robot.inertial.replaced(2 * robot.inertial.values).platform.mass
            3.0
        """
        return Inertial(self._tree.closed.closure, self._replaced, carriers(self), start_of(self))

    def _replaced(self, values: ArrayLike) -> Self:
        return with_parameters(self, self._tree.inertial.replaced(values))

    def as_robot(self) -> Robot:
        """Return the mechanism as a tree with loops, in which the joints between the legs and the platform are cut.

        The driven coordinates are its active ones. Its ``closed`` methods return the same forces by the general
        algorithm for loops, with one large matrix instead of a small one per leg.

        Example:
            >>> torsor.library.three_rrr().as_robot().closed.mobility().dof
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
        """Return a copy with another gravity vector (3,), m/s^2, in base axes.

        Example:
            >>> torsor.library.three_rrr().with_gravity([0, -9.81, 0]).gravity.tolist()
            [0.0, -9.81, 0.0]
        """
        return replace(self, gravity=gravity)  # type: ignore[arg-type]  # __post_init__ converts it


Workspace.robot_class = ParallelRobot
