"""Where searches of a walk start: standing, or standing with all joints bent by chance."""

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.human.contact.balance import GLOBAL
from torsor.motion import MotionProblem

__all__ = ["bent_start"]

Array = NDArray[np.float64]


def bent_start(problem: MotionProblem, seed: int, offset: float = 0.2) -> Array:
    """Return variables (n,) of a body that keeps a posture: all joints are off by normal numbers, the same for a seed.

    ``offset`` (rad) is their standard deviation; bounds are kept. The six global coordinates are as in ``guess``.

    Example:
        >>> from torsor.human import walking
        >>> problem = walking()
        >>> x = bent_start(problem, 0)
        >>> bool((x == bent_start(problem, 0)).all()), bool((x <= problem.program.upper).all())
        (True, True)
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ModelError(describe(f"seed is {seed!r}", where=problem.name, allowed="a whole number, 0 or more"))
    if isinstance(offset, bool) or not isinstance(offset, (int, float)) or not 0 <= offset < np.inf:
        raise ModelError(describe(f"offset is {offset!r}", where=problem.name, allowed="rad, 0 or more"))
    rng, x, program = np.random.default_rng(seed), problem.guess(), problem.program
    for phase_layout in program.layout.phases:
        for name, columns in zip(problem.model.names, phase_layout.columns, strict=True):
            if name not in GLOBAL:
                x[columns[columns >= 0]] += offset * rng.normal()
    return np.clip(x, program.lower, program.upper)
