"""One robot in two libraries: dynamics of Pinocchio and MuJoCo in Torsor coordinates, and the differences."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.coordinates import Coordinates, MujocoCoordinates, PinocchioCoordinates, quaternions
from torsor.base.arrays import Array
from torsor.robot.robot import Robot

_SINGULAR = 1e14  # condition of a mass matrix, scaled to a diagonal of 1, above which accelerations mean nothing


class Differences(NamedTuple):
    """The largest differences from a peer, relative to the largest number; forward dynamics is None if M is singular.

    Forces of inverse dynamics are relative to |M| |a| + |h|, because their terms may cancel. Accelerations are compared
    by the corresponding forces M a, because light fingers on heavy arms make accelerations, but not forces, sensitive.
    """

    mass_matrix: float
    inverse_dynamics: float
    forward_dynamics: float | None

    @property
    def largest(self) -> float:
        """The largest of these differences."""
        return max(self.mass_matrix, self.inverse_dynamics, self.forward_dynamics or 0.0)


class Twin(ABC):
    """A robot, and the ``model`` of the same file in another library; ``data`` is the workspace of the model."""

    def __init__(self, coordinates: Coordinates, model: Any, data: Any):
        self.coordinates, self.robot, self.model, self.data = coordinates, coordinates.robot, model, data

    @abstractmethod
    def mass_matrix(self, q: Array) -> Array:
        """Return the peer's mass matrix in Torsor coordinates."""

    @abstractmethod
    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Return the peer's generalised forces in Torsor coordinates."""

    @abstractmethod
    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return the peer's accelerations in Torsor coordinates."""

    def states(self, count: int) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield random (q, v, a, tau), with numbers up to 1."""
        rng = np.random.default_rng(0)
        for _ in range(count):
            q = self.robot.neutral() + rng.uniform(-1, 1, self.robot.nq)
            for quaternion in quaternions(self.robot):
                q[quaternion] /= np.linalg.norm(q[quaternion])
            yield q, *rng.uniform(-1, 1, (3, self.robot.nv))

    def differences(self, states: int = 2) -> Differences:
        """Return the largest differences at random states; loops are cut in both libraries."""
        loops = "open" if self.robot.loops else None
        found = np.zeros((states, 3))
        for row, (q, v, a, tau) in zip(found, self.states(states), strict=True):
            M, theirs = self.robot.mass_matrix(q, loops=loops), self.mass_matrix(q)
            bias = self.inverse_dynamics(q, v, np.zeros_like(a))
            row[0] = _relative(M - theirs, theirs)
            forces = self.robot.inverse_dynamics(q, v, a, loops=loops) - self.inverse_dynamics(q, v, a)
            row[1] = _relative(forces, np.abs(theirs) @ np.abs(a) + np.abs(bias))
            if _is_singular(theirs):
                row[2] = np.nan
                continue
            expected = self.forward_dynamics(q, v, tau)
            forces = theirs @ (self.robot.forward_dynamics(q, v, tau, loops=loops) - expected)
            row[2] = _relative(forces, np.abs(theirs) @ np.abs(expected) + np.abs(tau) + np.abs(bias))
        most = found.max(axis=0).tolist()
        return Differences(most[0], most[1], None if np.isnan(most[2]) else most[2])


def _relative(difference: Array, reference: Array) -> float:
    """Return the largest absolute difference relative to the largest reference; infinite where it is no number."""
    size, scale = np.abs(difference).max(initial=0.0), np.abs(reference).max(initial=0.0)
    if not np.isfinite(size):
        return float("inf")
    return float(size / scale) if scale else float("inf") if size else 0.0


def _is_singular(M: Array) -> bool:
    """Whether a joint, or a combination of joints, moves no inertia."""
    diagonal = np.diag(M)
    if (diagonal <= 0).any():
        return True
    scale = 1 / np.sqrt(diagonal)
    return bool(np.linalg.cond(M * np.outer(scale, scale)) > _SINGULAR)


class PinocchioTwin(Twin):
    """A robot without friction and motors, and Pinocchio's model of the same URDF file."""

    def __init__(self, robot: Robot, model: Any):
        import pinocchio

        self._pin: Any = pinocchio
        for joint in robot.joints:
            robot = robot.without_motor(joint.name) if joint.motor else robot
        model.armature[:] = 0
        super().__init__(PinocchioCoordinates(robot.without_friction(), model), model, model.createData())

    def mass_matrix(self, q: Array) -> Array:
        """Return Pinocchio's mass matrix in Torsor coordinates."""
        at, A = self.coordinates.positions(q), self.coordinates.velocity_map(q)
        M = self._pin.crba(self.model, self.data, at)
        return np.asarray(A.T @ (np.triu(M) + np.triu(M, 1).T) @ A)

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Return Pinocchio's generalised forces in Torsor coordinates."""
        at, A = self.coordinates.positions(q), self.coordinates.velocity_map(q)
        forces = self._pin.rnea(self.model, self.data, at, A @ v, self.coordinates.accelerations(q, v, a))
        return np.asarray(A.T @ forces)

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return Pinocchio's accelerations in Torsor coordinates, by its own algorithm if no joint follows another."""
        at, A = self.coordinates.positions(q), self.coordinates.velocity_map(q)
        if A.shape[0] != A.shape[1]:
            return np.asarray(np.linalg.solve(self.mass_matrix(q), tau - self.inverse_dynamics(q, v, np.zeros_like(v))))
        a = self._pin.aba(self.model, self.data, at, A @ v, np.linalg.solve(A.T, tau))
        return np.asarray(np.linalg.solve(A, a - self.coordinates.convective(q, v)))


class MujocoTwin(Twin):
    """A robot and MuJoCo's model of the same MJCF file, without contacts or constraints.

    Features that ``torsor.load`` omits with a warning are disabled in the model (``without_omitted``). In MuJoCo,
    frictionloss is a constraint; here, its force equals its bound at any nonzero speed and opposes the motion. MuJoCo
    also moves a centre of mass within 1e-6 m of the origin of its body to the origin; here, the number in the file is
    used.
    """

    def __init__(self, robot: Robot, model: Any):
        import mujoco

        self._mujoco: Any = mujoco
        flags = mujoco.mjtDisableBit
        without_omitted(model)
        frictionless = int(flags.mjDSBL_FRICTIONLOSS) | int(flags.mjDSBL_CONSTRAINT)
        self._friction = np.array(model.dof_frictionloss) * (not model.opt.disableflags & frictionless)
        model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_CONTACT)
        model.opt.enableflags = 0
        model.body_sameframe[:] = 0
        super().__init__(MujocoCoordinates(robot), model, mujoco.MjData(model))

    def _set(self, q: Array, v: Array) -> Array:
        """Bring MuJoCo into a state, and return the forces of frictionloss there."""
        self.data.qpos[:], self.data.qvel[:] = self.coordinates.positions(q), self.coordinates.velocity_map(q) @ v
        self._mujoco.mj_forward(self.model, self.data)
        return np.asarray(self._friction * np.sign(self.data.qvel))

    def mass_matrix(self, q: Array) -> Array:
        """Return MuJoCo's mass matrix in Torsor coordinates."""
        self._set(q, np.zeros(self.robot.nv))
        A = self.coordinates.velocity_map(q)
        return A.T @ mujoco_mass_matrix(self.model, self.data) @ A

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Return MuJoCo's generalised forces in Torsor coordinates, with springs, damping and frictionloss."""
        friction = self._set(q, v)
        self.data.qacc[:] = self.coordinates.accelerations(q, v, a)
        self._mujoco.mj_inverse(self.model, self.data)
        return np.asarray(self.coordinates.velocity_map(q).T @ (self.data.qfrc_inverse + friction))

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return MuJoCo's accelerations in Torsor coordinates, from its mass-matrix factors; no actuator acts."""
        friction, A = self._set(q, v), self.coordinates.velocity_map(q)
        forces = np.linalg.solve(A.T, tau) - friction - self.data.qfrc_bias + self.data.qfrc_passive
        a = np.zeros((1, self.model.nv))
        self._mujoco.mj_solveM(self.model, self.data, a, forces[None])
        return np.linalg.solve(A, a[0] - self.coordinates.convective(q, v))


def mujoco_mass_matrix(model: Any, data: Any) -> Array:
    """Return MuJoCo's own mass matrix, column by column: the arguments of mj_fullM depend on the version."""
    import mujoco

    columns = np.zeros((model.nv, model.nv))
    for column, unit in zip(columns, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    return columns.T


def without_omitted(model: Any) -> None:
    """Disable the features of a MuJoCo model that a mechanism lacks and a ``ModelWarning`` names."""
    model.opt.density = model.opt.viscosity = 0.0
    single = np.isin(model.jnt_type, (2, 3))  # slides and hinges, of mjtJoint
    free = model.jnt_type[model.dof_jntid] == 0
    indirect = ~np.isin(model.actuator_trntype, (0, 1))  # not on a joint, of mjtTrn
    everywhere = slice(None)
    switched: dict[str, Any] = {
        "body_gravcomp": everywhere,
        "jnt_stiffness": ~single,
        "jnt_stiffnesspoly": everywhere,
        "dof_dampingpoly": everywhere,
        "dof_armature": free,
        "dof_frictionloss": free,
        "actuator_armature": indirect,
        "actuator_damping": indirect,
        "actuator_dampingpoly": everywhere,
        **{f"tendon_{name}": everywhere for name in ("stiffness", "damping", "armature", "frictionloss")},
        **{f"tendon_{name}": everywhere for name in ("stiffnesspoly", "dampingpoly")},
    }
    for name, where in switched.items():
        if hasattr(model, name):  # not every version has all arrays
            getattr(model, name)[where] = 0.0
