"""The compiled step of batches of motions with fixed steps, and its gradients: for rollouts and environments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, on_host
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.requests import pulled
from torsor.mechanism.free import Free, Numbers, free_numbers
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot, checked_robot
from torsor.simulation.contact import Contact, with_contact
from torsor.simulation.dynamics import compiled, forces, held_inputs, symbols
from torsor.simulation.hard import contact_step, step_key
from torsor.simulation.inputs import Source
from torsor.simulation.loop_projection import Choices, project_start
from torsor.simulation.setup import FASTEST

PULLED = ("q", "v", "tau", "external", "gains", "p")
"""Inputs of a step for which there are gradients."""


@dataclass(frozen=True, eq=False)
class FixedStep:
    """The step (t, q, v, [tau], [external], [windows], [gains], [parameters], [p], h) -> (q, v) of a batch of motions.

    The velocities of a motion that has diverged are NaN. A motion keeps its state where ``stop`` is negative. If the
    robot has loops, ``choice`` are the equations that keep them closed. p are its ``free`` parameters.
    """

    robot: Robot
    method: str
    law: Source
    wrenches: Source
    contact: Contact | None
    choice: ClosureChoice | None
    stop: ca.Function | None = None
    free: tuple[Free, ...] = ()

    @classmethod
    def of(
        cls,
        robot: Robot,
        method: str,
        law: Source,
        wrenches: Source,
        contact: Contact | None,
        choice: ClosureChoice | None,
        stop: ca.Function | None = None,
        free: tuple[Free, ...] = (),
    ) -> "FixedStep":
        """Return the step of a method with contact, which adds its wrenches or replaces the method."""
        if Numbers(free).move_loops and (contact is not None or choice is not None):
            found = f"positions of joints are inputs, which {'contact' if contact else 'closed loops'} cannot read"
            allowed = "masses, centres of mass, inertias, friction, stiffness, gravity"
            raise ModelError(found, where=robot.name, allowed=allowed, fix="robot.at(p), for each p")
        wrenches = with_contact(robot, wrenches, contact, method)
        step = cls(robot, method, law, wrenches, contact, choice, stop, free)
        closes = choice is None or robot.target.dtype == "float64" or step.is_hard or method == "linearly_implicit"
        if not closes:
            found = f'method "{method}" does not support closed loops in {robot.target.dtype}'
            fix = 'use `robot.to(dtype="float64")`, or `method="linearly_implicit"`'
            raise ModelError(found, where=robot.name, fix=fix)
        return step

    @property
    def is_hard(self) -> bool:
        """Whether contact is hard, which is a method of its own."""
        return self.contact is not None and self.contact.kind == "hard"

    @property
    def sources(self) -> tuple[Source, Source, bool]:
        """The arguments of ``forces``: controller, external wrenches, and that the controller is not sampled."""
        return self.law, self.wrenches, False

    def function(self) -> ca.Function:
        """Return the step as a CasADi function."""
        robot = self.robot
        acting = forces(robot, *self.sources, self.free)
        function = contact_step(robot, self.method, acting, self.contact, self.choice, free=self.free)
        inputs = symbols(function)
        q_next, v_next, *_ = function.call(inputs)
        ends = [q_next, ca.if_else(ca.sumsqr(v_next) < FASTEST**2, v_next, ca.SX.nan(robot.nv, 1))]
        if self.stop is not None:
            going = self.stop(*inputs[:3]) >= 0
            ends = [ca.if_else(going, end, start) for end, start in zip(ends, inputs[1:3], strict=True)]
        return ca.Function(function.name(), inputs, ends, function.name_in(), function.name_out()[:2])

    @cached_property
    def kernel(self) -> AnyKernel:
        """The compiled step."""
        return compiled(self.robot, self._label, self._traced, self.function)

    @cached_property
    def pull(self) -> AnyKernel:
        """The compiled gradients: the inputs of the step and weights of its results -> gradients of ``PULLED``."""

        def make() -> ca.Function:
            function = self.function()
            return pulled_function(function, [name for name in function.name_in() if name in PULLED])

        return compiled(self.robot, f"{self._label} pull", self._traced, make)

    @property
    def _traced(self) -> list[ca.Function]:
        all_functions = self.law.function, self.wrenches.function, self.wrenches.added, self.stop
        return [each for each in all_functions if each is not None]

    @property
    def _label(self) -> str:
        """Text that identifies the step, with its traced functions, among those of the robot."""
        given = *held_inputs(*self.sources), self.law.function, self.wrenches.function, self.wrenches.added, self.stop
        limit = None if self.law.limit is None else self.law.limit.tolist()
        label = f"fixed step {self.method} {self.choice} {[bool(each) for each in given]} {limit} {self.free}"
        return label + step_key(self.robot, self.method, self.contact)


def pulled_function(function: ca.Function, by: Sequence[str] | None = None) -> ca.Function:
    """Return the gradients with respect to inputs of a function from the gradients with respect to its results.

    The inputs are those ``by`` name, by default all.
    """
    inputs = dict(zip(function.name_in(), symbols(function), strict=True))
    results = dict(zip(function.name_out(), function.call(list(inputs.values())), strict=True))
    weights, gradients = pulled({name: inputs[name] for name in by or inputs}, results, {})
    inputs |= weights
    return ca.Function("pull", list(inputs.values()), ca.cse(list(gradients.values())), list(inputs), list(gradients))


def with_inputs(robot: Robot | Parametric[Robot]) -> tuple[Robot, tuple[Free, ...]]:
    """Return a robot and its free parameters: those of a parametric robot, or none."""
    if isinstance(robot, Parametric):
        return robot.robot, free_numbers(robot.robot, robot.paths)
    return checked_robot(robot), ()


def closed_start(robot: Robot, q0: Any, v0: Any) -> tuple[Any, Any, ClosureChoice | None]:
    """Return the initial state with closed loops, and closure equations that are independent in the first motion.

    States on the GPU stay there: the first step closes their loops. Robots without loops have no closure equations.
    """
    if not robot.loops:
        return q0, v0, None
    on_gpu, robot = robot.target.device == "cuda", robot.to(device="cpu", dtype="float64")
    choices = Choices(robot)
    if not on_gpu:
        q, v = (np.asarray(each, dtype=float) for each in (q0, v0))
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = (np.broadcast_to(each, (*batch, each.shape[-1])) for each in (q, v))
        q0, v0 = project_start(robot, choices, q, v)
    return q0, v0, choices.near(on_host(q0).astype(float).reshape(-1, robot.nq)[0])
