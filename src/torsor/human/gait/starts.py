"""Initial guesses of a walk: standing with randomly bent joints."""

import numpy as np

from torsor.arrays import Array
from torsor.checks import number, whole_number
from torsor.human.body.coordinates import GLOBAL
from torsor.motion import MotionProblem


def bent_start(problem: MotionProblem, seed: int, offset: float = 0.2) -> Array:
    """Return variables (n,) of a constant posture: every joint is off the initial guess by a normal random angle.

    The angles are the same for the same seed; ``offset`` (rad) is their standard deviation. Bounds are kept. The six
    global coordinates are those of ``problem.guess()``.

    Example:
        >>> from torsor.human import walking
        >>> problem = walking()
        >>> x = bent_start(problem, 0)
        >>> bool((x == bent_start(problem, 0)).all()), bool((x <= problem.program.upper).all())
        (True, True)
    """
    seed = whole_number(seed, problem.name, "seed", least=0)
    offset = number(offset, problem.name, "offset", least=0.0)
    rng, x, program = np.random.default_rng(seed), problem.guess(), problem.program
    for phase_layout in program.layout.phases:
        for name, columns in zip(problem.model.names, phase_layout.columns, strict=True):
            if name not in GLOBAL:
                x[columns[columns >= 0]] += offset * rng.normal()
    return np.clip(x, program.lower, program.upper)
