"""Descent of a smooth function inside of its domain: BFGS with a line search that never leaves it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Descent"]

Array = NDArray[np.float64]

GIVEN_UP = 1e-10  # shortest part of a step that is tried
ENOUGH = 1e-4  # share of the promised descent that a step must bring (Armijo)


@dataclass(eq=False)
class Descent:
    """A point ``x`` (z,) that steps down a function: x -> (value, gradient), with an infinite value outside its domain.

    BFGS keeps the inverse of the Hessian, ``H`` (z, z); Nocedal and Wright, "Numerical Optimization", 2006, chapter 6.

    Example:
        >>> bowl = Descent(lambda x: (float(x @ x), 2 * x), np.array([3.0, 4.0]))
        >>> while bowl.step():
        ...     pass
        >>> bool(np.abs(bowl.x).max() < 1e-6)
        True
    """

    function: Callable[[Array], tuple[float, Array]]
    x: Array
    value: float = field(init=False)
    gradient: Array = field(init=False)
    H: Array = field(init=False)

    def __post_init__(self) -> None:
        self.restart(self.function)

    def restart(self, function: Callable[[Array], tuple[float, Array]]) -> None:
        """Go on with another function, from the same point."""
        self.function = function
        self.value, self.gradient = function(self.x)
        self.H = np.eye(len(self.x)) * 0.1 / max(float(np.linalg.norm(self.gradient)), 1e-12)

    def step(self) -> bool:
        """Take one step; return whether it went down by more than rounding."""
        direction = -self.H @ self.gradient
        slope = float(direction @ self.gradient)
        share = 1.0
        while share > GIVEN_UP:
            x = self.x + share * direction
            value, gradient = self.function(x)
            if value <= self.value + ENOUGH * share * slope:
                break
            share /= 2
        else:
            return False
        s, y = x - self.x, gradient - self.gradient
        down = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        curvature = float(s @ y)
        if curvature > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            side = np.eye(len(s)) - np.outer(s, y) / curvature
            self.H = side @ self.H @ side.T + np.outer(s, s) / curvature
        return down > 1e-9 * max(abs(value), 1e-3)
