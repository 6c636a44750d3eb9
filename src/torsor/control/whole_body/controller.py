"""The whole-body controller: torques that do the tasks as well as contacts, friction and limits allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import flag, indices_of, instance_of, number, positive, rows, table, vectors
from torsor.compiler import AnyKernel, compile
from torsor.control.drives import check_no_flexible_links, check_quaternions, check_rigid, check_tree
from torsor.control.whole_body import contacts as kinds_of_contact
from torsor.control.whole_body.program import Contact, Program, Settings, program
from torsor.control.whole_body.solver import INFEASIBLE, SOLVED, Problem, conflict, solve
from torsor.control.whole_body.tasks import Task
from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot

HUMAN = ("tx", "ty", "tz", "yaw", "tilt", "list")  # coordinates of the whole body of ``torsor.library.human``
_MOTION = "equations of motion"


@dataclass(frozen=True, eq=False)
class WholeBodyResult:
    """What the controller found for one state.

    ``status`` is "solved", "infeasible" or "failed"; only if it is "solved" are there numbers, and NaN elsewhere.
    ``tau`` (nv) are the forces of the drives, 0 at coordinates without one, ``a`` (nv) the accelerations, ``forces``
    those of each contact (``PointContact``: 3, base axes; ``SurfaceContact``: 6, moment then force, axes of the place).
    ``conflict`` names what has no solution together, and has one without any one of them.
    """

    status: str
    tau: Array
    a: Array
    forces: Mapping[str, Array]
    conflict: tuple[str, ...] = ()


class WholeBody:
    """An inverse-dynamics controller with tasks, contacts, friction and limits, by one quadratic program a call.

    ``tasks`` are ``FramePose``, ``FramePosition``, ``FrameOrientation``, ``FrameDirection``, ``CenterOfMass``,
    ``Posture`` and ``AngularMomentum``, ``contacts`` are ``PointContact`` and ``SurfaceContact``. ``passive`` names the
    coordinates without a drive, by default those of free joints, and of the whole body of the human. ``effort_limits``
    and ``joint_limits`` say whether limits of the robot hold; those of positions and velocities hold at the end of
    ``horizon`` (s). ``regularisation`` are small weights of accelerations and contact forces, which decide what no task
    does.

    Example:
        >>> arm = torsor.library.two_link()
        >>> WholeBody(arm, [torsor.control.Posture([0.03, 0.05], bandwidth=10.0)])
        <WholeBody of 'two_link', tasks: 1, contacts: 0>
    """

    def __init__(
        self,
        robot: Robot,
        tasks: Sequence[Task],
        contacts: Sequence[Contact] = (),
        *,
        passive: Sequence[str] | None = None,
        effort_limits: bool = True,
        joint_limits: bool = True,
        horizon: float = 0.05,
        regularisation: tuple[float, float] = (1e-9, 1e-9),
    ):
        check_tree(robot, "WholeBody")
        check_rigid(robot, "WholeBody", "fix the motors (robot.without_motor), or use control.mixed")
        check_no_flexible_links(robot, "WholeBody")
        where = f"{robot.name}: WholeBody"
        self.robot, self.tasks = robot, tuple(rows(tasks, where, "tasks"))
        self.contacts: tuple[Contact, ...] = tuple(rows(contacts, where, "contacts"))
        if not self.tasks:
            raise ModelError(describe("no task", where=where, fix="tasks=[control.Posture(q), ...]"))
        for task in self.tasks:
            instance_of(task, Task, where, "a task", allowed="control.FramePose, CenterOfMass, Posture, ...").check(
                robot
            )
        for each in self.contacts:
            allowed = "control.PointContact or SurfaceContact"
            instance_of(each, kinds_of_contact.Contact, where, "a contact", allowed=allowed).check(robot)
        _check_once(
            [task.label for task in self.tasks if task.target is None], "tasks whose target is given later", where
        )
        _check_once([each.place for each in self.contacts], "contacts", where)
        weights = [positive(each, where, "regularisation") for each in rows(regularisation, where, "regularisation")]
        if len(weights) != 2:
            allowed = "two numbers: of accelerations and of forces"
            raise ModelError(describe(f"regularisation is {regularisation}", where=where, allowed=allowed))
        self._given = tuple(k for k, task in enumerate(self.tasks) if task.target is None)
        self._settings = Settings(
            _passive(robot, passive, where),
            (weights[0], weights[1]),
            positive(horizon, where, "horizon"),
            flag(effort_limits, where, "effort_limits"),
            flag(joint_limits, where, "joint_limits"),
        )

    def __repr__(self) -> str:
        return f"<WholeBody of {self.robot.name!r}, tasks: {len(self.tasks)}, contacts: {len(self.contacts)}>"

    @cached_property
    def program(self) -> Program:
        """The quadratic program over symbols."""
        return program(self.robot, self.tasks, self.contacts, self._given, self._settings)

    @cached_property
    def _kernel(self) -> AnyKernel:
        target = self.robot.target.changed("", dtype="float64")
        return compile(self.program.function, **vars(target))

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the forces tau (nv) at the time t (s), positions q (nq) and velocities v (nv), or raise ModelError.

        As a controller of ``simulate``; targets that are given at each call need ``solve``.
        """
        found = self.solve(q, v, t)
        if found.status != "solved":
            names = " and ".join(found.conflict) or "the solver stopped"
            text = f"no torques at t = {t}: {found.status}, {names}"
            fix = "lower weights or targets, more friction, fewer hard tasks; solve(q, v, t) returns the status instead"
            raise ModelError(describe(text, where=f"{self.robot.name}: WholeBody", fix=fix))
        return found.tau

    def solve(
        self, q: ArrayLike, v: ArrayLike, t: float = 0.0, targets: Mapping[str, ArrayLike] | None = None
    ) -> WholeBodyResult:
        """Return torques, accelerations and contact forces at one state, or what makes them impossible.

        ``targets`` are those of the tasks that were made without one, by the name of the task (or its place).
        """
        given = () if targets is None and not self._given else self._targets({} if targets is None else targets)
        H, g, A, lower, upper, h = self._kernel(np.asarray(t, dtype=float), q, v, *given)
        if H.ndim > 2 or not isfinite(g.dot(g) + h.dot(h) + t):
            self._refuse(t, q, v)
        equations, driven = self.program.equations, self.program.driven
        problem = Problem(H, g, A, lower, upper, self.program.kinds, equations)
        x, flag, _ = solve(problem)
        nv, forces = self.robot.nv, self.program.forces
        if flag != SOLVED:
            nothing = np.full(len(g), np.nan)
            names = conflict(problem, self.program.groups, [_MOTION]) if flag == INFEASIBLE else ()
            status = "infeasible" if flag == INFEASIBLE else "failed"
            return WholeBodyResult(
                status, nothing[:nv], nothing[:nv], {k: nothing[i] for k, i in forces.items()}, names
            )
        tau = np.zeros(nv)
        tau[driven] = A[equations : equations + len(driven)].dot(x) + h[driven]
        return WholeBodyResult("solved", tau, x[:nv], {k: x[i] for k, i in forces.items()})

    def _targets(self, targets: Mapping[str, ArrayLike]) -> tuple[Array]:
        """Return the targets that are given, one after the other, as the last input of the kernel."""
        names = [self.tasks[k].label for k in self._given]
        if set(table(targets, f"{self.robot.name}: WholeBody", "targets")) != set(names):
            found = f"targets of {', '.join(map(repr, targets)) or 'no task'}"
            allowed = f"those of {', '.join(map(repr, names)) or 'no task: all have a target of their own'}"
            raise ModelError(describe(found, where=f"{self.robot.name}: WholeBody", allowed=allowed))
        tasks = (self.tasks[k] for k in self._given)
        return (np.concatenate([task.checked(self.robot, targets[task.label]).ravel() for task in tasks]),)

    def _refuse(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Raise ModelError for a batch of states, or for numbers that are not finite."""
        where = f"{self.robot.name}: WholeBody"
        number(t, where, "t")
        for value, count, what in ((q, self.robot.nq, "q"), (v, self.robot.nv, "v")):
            shape = vectors(value, count, where, what).shape
            if len(shape) > 1:
                fix = "call it for each state"
                raise ModelError(describe(f"{what} has shape {shape}", where=where, allowed=f"({count},)", fix=fix))
        check_quaternions(self.robot, vectors(q, self.robot.nq, where, "q"), where, "q")
        raise ModelError(describe("the dynamics or the targets are not finite at this state and time", where=where))


def _check_once(names: Sequence[str], what: str, where: str) -> None:
    """Raise ModelError where a name is there twice."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(describe(f"two {what} are named {twice[0]!r}", where=where, fix="name='...' for one of them"))


def _passive(robot: Robot, names: Sequence[str] | None, where: str) -> tuple[int, ...]:
    """Return the indices of the coordinates without a drive."""
    every = robot.coordinate_names
    if names is not None:
        return tuple(indices_of(names, every, where))
    found = set[int]()
    for joint, coordinate in zip(robot.joints, robot.coordinates, strict=True):
        if joint.type == "free":
            found |= set(range(coordinate.v.start, coordinate.v.stop))
    if tuple(every[:6]) == HUMAN:
        found |= set(range(6))
    return tuple(sorted(found))
