"""The table of methods: each with a fixed step is one function that makes its step."""

from collections.abc import Callable

import casadi as ca

from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.robot import Robot
from torsor.simulation.implicit import implicit_midpoint
from torsor.simulation.runge_kutta import runge_kutta

__all__ = ["METHODS", "STEPS"]

STEPS: dict[str, Callable[[Robot, ca.Function, ClosureChoice | None], ca.Function]] = {
    "rk4": runge_kutta,
    "implicit": implicit_midpoint,
}
"""Methods of fixed step by name: each takes a robot, what acts, (t, q, v, ...) -> forces, and the equations that keep
loops closed (None if there are no loops), and returns its step.

Both are CasADi functions over SX. The inputs of the step are those of the forces, by name and in order, and the
length "h" (s); its outputs are "q_next" and "v_next", with loops also "margin": see
``runge_kutta``. Names give the kernel its shapes.
"""

METHODS = (*STEPS, "adaptive")
"""All names that ``simulate`` takes for its method."""
