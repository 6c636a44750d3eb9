"""The table of integration methods."""

from collections.abc import Callable

import casadi as ca

from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.robot import Robot
from torsor.simulation.implicit import implicit_midpoint
from torsor.simulation.runge_kutta import runge_kutta

STEPS: dict[str, Callable[[Robot, ca.Function, ClosureChoice | None], ca.Function]] = {
    "rk4": runge_kutta,
    "implicit": implicit_midpoint,
}
"""Methods of fixed step by name. Each takes a robot, the acting forces (t, q, v, ...) -> tau, [external], and the
equations that keep loops closed (None without loops), and returns its step.

Forces and step are CasADi functions over SX. The inputs of the step are those of the forces, by name and in order, and
the length "h" (s). Its outputs are "q_next" and "v_next", with loops also "margin": see ``runge_kutta``. The names
give the kernel its shapes.
"""

METHODS = (*STEPS, "adaptive")
"""The methods of ``simulate``."""
