"""Whole-body controller: torques that perform tasks as well as contacts, friction and limits permit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import flag, indices_of, instance_of, number, positive, rows, table, vectors
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, compile
from torsor.control.partition import check_quaternions, check_rigid, check_tree
from torsor.control.whole_body import program as qp
from torsor.control.whole_body import tasks as kinds_of_contact
from torsor.control.whole_body.tasks import Task
from torsor.robot.robot import Robot

HUMAN_ROOT_COORDINATES = ("tx", "ty", "tz", "yaw", "tilt", "list")  # root coordinates of ``torsor.library.human``
_MOTION_GROUP = "equations of motion"
NARROW_WIDTH = 2  # states per vector: calls usually have one state, which wide vectors would slow down


@dataclass(frozen=True, eq=False)
class WholeBodyResult:
    """Torques, accelerations and contact forces at one state, or at several states (leading axes of the arrays).

    ``status`` is "solved", "infeasible" or "failed". Unless it is "solved", all numbers are NaN. ``tau`` (nv) are the
    drive forces (N m, N), which are 0 at coordinates without a drive, and ``a`` (nv) are the accelerations. ``forces``
    contains the force of each contact (``PointContact``: 3, base axes; ``SurfaceContact``: 6, moment then force, in the
    axes of its frame). ``conflict`` names a minimal set of requirements without a common solution. For several states,
    ``status`` is an array of strings, and ``conflict`` is an array of tuples of names.
    """

    status: str | NDArray[np.str_]
    tau: Array
    a: Array
    forces: Mapping[str, Array]
    conflict: tuple[str, ...] | NDArray[np.object_] = ()


class WholeBody:
    """An inverse-dynamics controller with tasks, contacts, friction and limits; each call solves a quadratic program.

    ``tasks`` are ``FramePose``, ``FramePosition``, ``FrameOrientation``, ``FrameDirection``, ``CenterOfMass``,
    ``Posture`` and ``AngularMomentum``. All have a ``weight`` (inf: a hard constraint), ``bandwidth`` (rad/s), damping
    ratio ``damping``, ``name``, and ``priority`` (tasks with a lower number have strict precedence). ``contacts`` are
    ``PointContact`` and ``SurfaceContact``, with a ``friction`` coefficient, the largest normal force ``most`` (N) and
    the rate ``damping`` (1/s) at which slip decays. ``passive`` names the coordinates without a drive, by default those
    of free joints and the root coordinates of the human. ``effort_limits`` and ``joint_limits`` enable the limits of
    the robot. Position and velocity limits are enforced at the end of ``horizon`` (s). ``regularisation`` contains
    small weights of accelerations and contact forces, which determine the motion where no task does. Robots with loops
    or elastic joints raise ModelError.

    Example:
        >>> arm = torsor.library.two_link()
        >>> WholeBody(arm, [torsor.control.Posture([0.03, 0.05], bandwidth=10.0)])
        <WholeBody of 'two_link', tasks: 1, contacts: 0>
    """

    def __init__(
        self,
        robot: Robot,
        tasks: Sequence[Task],
        contacts: Sequence[qp.Contact] = (),
        *,
        passive: Sequence[str] | None = None,
        effort_limits: bool = True,
        joint_limits: bool = True,
        horizon: float = 0.05,
        regularisation: tuple[float, float] = (1e-9, 1e-9),
    ):
        check_tree(robot, "WholeBody")
        check_rigid(robot, "WholeBody", "fix the motors (robot.without_motor), or use control.mixed")
        where = f"{robot.name}: WholeBody"
        self.robot, self.tasks = robot, tuple(rows(tasks, where, "tasks"))
        self.contacts: tuple[qp.Contact, ...] = tuple(rows(contacts, where, "contacts"))
        if not self.tasks:
            raise ModelError("there is no task", where=where, fix="pass tasks=[control.Posture(q), ...]")
        for task in self.tasks:
            allowed = "control.FramePose, CenterOfMass, Posture, ..."
            instance_of(task, Task, where, "a task", allowed=allowed).check(robot)
        for contact in self.contacts:
            allowed = "control.PointContact or SurfaceContact"
            instance_of(contact, kinds_of_contact.Contact, where, "a contact", allowed=allowed).check(robot)
        later = [task.label for task in self.tasks if task.target is None]
        _check_once(later, "tasks whose target is given later", where)
        _check_once([contact.place for contact in self.contacts], "contacts", where)
        weights = [positive(row, where, "regularisation") for row in rows(regularisation, where, "regularisation")]
        if len(weights) != 2:
            allowed = "two numbers: the weights of accelerations and forces"
            raise ModelError(argument="regularisation", value=regularisation, where=where, allowed=allowed)
        self._given = tuple(k for k, task in enumerate(self.tasks) if task.target is None)
        self._settings = qp.Settings(
            _passive(robot, passive, where),
            (weights[0], weights[1]),
            positive(horizon, where, "horizon"),
            flag(effort_limits, where, "effort_limits"),
            flag(joint_limits, where, "joint_limits"),
        )

    def __repr__(self) -> str:
        return f"<WholeBody of {self.robot.name!r}, tasks: {len(self.tasks)}, contacts: {len(self.contacts)}>"

    @cached_property
    def program(self) -> qp.Program:
        """The symbolic quadratic program."""
        return qp.program(self.robot, self.tasks, self.contacts, self._given, self._settings)

    @cached_property
    def _kernel(self) -> AnyKernel:
        target = self.robot.target.changed("", dtype="float64")
        return compile(self.program.function, **vars(target), width=NARROW_WIDTH)

    def __call__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the forces tau (..., nv) at times t (s), positions q (..., nq), velocities v (..., nv).

        ``simulate`` accepts the object as a controller. If targets are passed at each call, use ``solve``. ModelError
        is raised if the program has no solution.
        """
        result = self.solve(q, v, t)
        failed = np.argwhere(np.asarray(result.status) != "solved")
        if len(failed):
            at = tuple(failed[0].tolist())  # () for a single state
            conflict = result.conflict if isinstance(result.conflict, tuple) else result.conflict[at]
            names, state = " and ".join(conflict) or "the solver stopped", f", state {at}" if at else ""
            message = f"there is no solution at t = {t!r}{state}: {np.asarray(result.status)[at].item()}, {names}"
            fix = "use lower targets, more friction or fewer hard tasks; solve(q, v, t) returns the status instead"
            raise ModelError(message, value=t, where=f"{self.robot.name}: WholeBody", fix=fix)
        return result.tau

    def solve(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, targets: Mapping[str, ArrayLike] | None = None
    ) -> WholeBodyResult:
        """Return torques, accelerations and contact forces at a state, or the conflict that makes them impossible.

        ``q`` is (..., nq), ``v`` is (..., nv), and ``t`` (s) is a number or (...). Leading axes are several states,
        whose matrices are computed together. If a task was created without a target, ``targets`` maps its name (or
        frame) to the target, which is the same for all states.

        Example:
            >>> law = WholeBody(torsor.library.two_link(), [torsor.control.Posture([0.03, 0.05])])
            >>> found = law.solve(np.zeros((5, 2)), np.zeros(2))
            >>> found.tau.shape, found.status[0]
            ((5, 2), np.str_('solved'))
        """
        inputs = () if targets is None and not self._given else self._targets({} if targets is None else targets)
        matrices = self._kernel(t if type(t) is not float else np.array(t), q, v, *inputs)
        batch, g, h = matrices[0].shape[:-2], matrices[1], matrices[5]
        if batch:
            if not np.isfinite(g.sum() + h.sum() + np.sum(t)):
                self._refuse(t, q, v)
            return self._solve_each(matrices, batch)
        if not isfinite(g.dot(g) + h.dot(h) + t):
            self._refuse(t, q, v)
        return self._solve(matrices)

    def _solve(self, matrices: Sequence[Array]) -> WholeBodyResult:
        """Return the result of one state, given the matrices of its program."""
        H, g, A, lower, upper, h, *tasks = matrices
        equations, driven = self.program.equations, self.program.driven
        problem = qp.Problem(H, g, A, lower, upper, self.program.kinds, equations)
        x, flag, _ = qp.solve(problem)
        if tasks and flag == qp.SOLVED:
            J, b = tasks
            x, flag = qp.solve_levels(problem, x, J, b, self.program.levels, self._settings.regularisation)
        nv, forces = self.robot.nv, self.program.forces
        if flag != qp.SOLVED:
            nothing = np.full(len(g), np.nan)
            names = qp.conflict(problem, self.program.groups, [_MOTION_GROUP]) if flag == qp.INFEASIBLE else ()
            status = "infeasible" if flag == qp.INFEASIBLE else "failed"
            unknown = {k: nothing[i] for k, i in forces.items()}
            return WholeBodyResult(status, nothing[:nv], nothing[:nv], unknown, names)
        tau = np.zeros(nv)
        tau[driven] = A[equations : equations + len(driven)].dot(x) + h[driven]
        return WholeBodyResult("solved", tau, x[:nv], {k: x[i] for k, i in forces.items()})

    def _solve_each(self, matrices: Sequence[Array], batch: tuple[int, ...]) -> WholeBodyResult:
        nv, places = self.robot.nv, self.program.forces
        status, conflict = np.empty(batch, dtype="<U10"), np.empty(batch, dtype=object)
        tau, a = np.empty((*batch, nv)), np.empty((*batch, nv))
        forces = {name: np.empty((*batch, place.stop - place.start)) for name, place in places.items()}
        for k in np.ndindex(batch):
            solution = self._solve([matrix[k] for matrix in matrices])
            status[k], conflict[k], tau[k], a[k] = solution.status, solution.conflict, solution.tau, solution.a
            for name, force in solution.forces.items():
                forces[name][k] = force
        return WholeBodyResult(status, tau, a, forces, conflict)

    def _targets(self, targets: Mapping[str, ArrayLike]) -> tuple[Array]:
        """Return the concatenated targets as the last input of the kernel."""
        names = [self.tasks[k].label for k in self._given]
        where = f"{self.robot.name}: WholeBody"
        named = table(targets, where, "targets")
        if unknown := [name for name in named if name not in names]:
            message = f"contains {', '.join(map(repr, unknown))}"
            allowed = ", ".join(map(repr, names)) or "none: all tasks already have a target"
            raise ModelError(message, argument="targets", where=where, allowed=allowed)
        if missing := [name for name in names if name not in named]:
            fix = f"set it in the task, or pass it at each call: solve(q, v, targets={{{missing[0]!r}: ...}})"
            raise ModelError(f"task {missing[0]!r} has no target", where=where, fix=fix)
        tasks = (self.tasks[k] for k in self._given)
        return (np.concatenate([task.checked(self.robot, targets[task.label]).ravel() for task in tasks]),)

    def _refuse(self, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> None:
        """Raise a ModelError that names the argument that is not finite."""
        where = f"{self.robot.name}: WholeBody"
        for time in np.ravel(t).tolist():
            number(time, where, "t")
        vectors(v, self.robot.nv, where, "v")
        for positions in vectors(q, self.robot.nq, where, "q").reshape(-1, self.robot.nq):
            check_quaternions(self.robot, positions, where, "q")
        raise ModelError("the dynamics or the targets are not finite at this state and time", where=where)


def _check_once(names: Sequence[str], what: str, where: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f"two {what} are named {twice[0]!r}", where=where, fix="set `name='...'` for one of them")


def _passive(robot: Robot, names: Sequence[str] | None, where: str) -> tuple[int, ...]:
    """Return the indices of the coordinates without a drive."""
    every = robot.coordinate_names
    if names is not None:
        return tuple(indices_of(names, every, where))
    result = set[int]()
    for joint, coordinate in zip(robot.joints, robot.coordinates, strict=True):
        if joint.type == "free":
            result |= set(range(coordinate.v.start, coordinate.v.stop))
    if tuple(every[:6]) == HUMAN_ROOT_COORDINATES:
        result |= set(range(6))
    return tuple(sorted(result))
