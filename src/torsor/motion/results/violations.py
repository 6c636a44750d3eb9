"""Violations of the rows of a program, at its nodes and between them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.program import Program

__all__ = ["finer", "violations"]

Array = NDArray[np.float64]


def violations(program: Program, x: Array) -> Array:
    """Return by how much each row (m,) is outside its bounds, in parts of its scale; 0 for those that hold.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0)]
        >>> limits = motion.Velocities(upper=1.0)
        >>> phase = motion.Phase(1.0, points=4, nodes=3)
        >>> problem = motion.MotionProblem(torsor.library.planar_chain(1), phase, motion.Effort(), [*ends, limits])
        >>> violations(problem.program, problem.guess()).tolist()  # at rest, at 1.5 rad/s, at rest
        [0.0, 0.5, 0.0]
    """
    rows = program.value(x)[1]
    return np.maximum(np.maximum(program.row_lower - rows, rows - program.row_upper), 0.0)


def finer(program: Program, times: int = 10) -> tuple[Program, NDArray[np.bool_]]:
    """Return the program with nodes ``times`` as close, and which of its rows (m,) are asked for.

    A term that holds at given moments alone is not asked for between them.
    """
    batches, kept = list[Batch](), list[NDArray[np.bool_]]()
    for batch in program.batches:
        terms = batch.traced.rows
        if not batch.traced.m:
            continue
        everywhere = [term.at is None for term in terms]
        inserted = 1 if not any(everywhere) else times
        parts = np.arange(inserted) / inserted
        s = np.append((batch.s[:-1, None] + np.diff(batch.s)[:, None] * parts).ravel(), batch.s[-1])
        batches.append(replace(batch, s=s, weights=np.zeros(len(s))))
        between = np.repeat(everywhere, [len(bound.labels) for bound in batch.traced.bounds])
        kept.append((between | (np.arange(len(s)) % inserted == 0)[:, None]).ravel())
    kept.append(np.ones(program.linear.m, dtype=bool))
    return replace(program, batches=tuple(batches)), np.concatenate(kept)
