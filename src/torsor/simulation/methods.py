"""The table of methods: each with a fixed step is one function that makes its step."""

from collections.abc import Callable

import casadi as ca

from torsor.model import Robot
from torsor.simulation.runge_kutta import runge_kutta

__all__ = ["METHODS", "STEPS"]

STEPS: dict[str, Callable[[Robot, ca.Function], ca.Function]] = {"rk4": runge_kutta}
"""Methods of fixed step by name: (robot, a(t, q, v, ...)) -> step(t, q, v, ..., h) -> (q, v), as CasADi functions."""

METHODS = (*STEPS, "adaptive")
"""All names that ``simulate`` takes for its method."""
