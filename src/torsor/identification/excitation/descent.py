"""Minimisation of a smooth function within its domain: BFGS with a line search that stays inside."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from torsor.base.arrays import Array

SHORTEST = 1e-10  # fraction of a step at which the line search fails
ARMIJO = 1e-4  # fraction of the predicted decrease that a step must reach


@dataclass(eq=False)
class Descent:
    """Minimisation of a function x -> (value, gradient), infinite outside its domain, from a point ``x`` (z,).

    ``H`` (z, z) is the BFGS approximation of the inverse Hessian (Nocedal and Wright, "Numerical
    Optimization", 2006, chapter 6).

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
        """Continue with another function from the same point."""
        self.function = function
        self.value, self.gradient = function(self.x)
        self.H = np.eye(len(self.x)) * 0.1 / max(float(np.linalg.norm(self.gradient)), 1e-12)

    def step(self) -> bool:
        """Take one step; return whether the value decreased by more than rounding."""
        direction = -self.H @ self.gradient
        slope = float(direction @ self.gradient)
        fraction = 1.0
        while fraction > SHORTEST:
            x = self.x + fraction * direction
            value, gradient = self.function(x)
            if value <= self.value + ARMIJO * fraction * slope:
                break
            fraction /= 2
        else:
            return False
        s, y = x - self.x, gradient - self.gradient
        decrease = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        curvature = float(s @ y)
        if curvature > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            factor = np.eye(len(s)) - np.outer(s, y) / curvature
            self.H = factor @ self.H @ factor.T + np.outer(s, s) / curvature
        return decrease > 1e-9 * max(abs(value), 1e-3)
