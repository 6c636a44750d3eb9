"""Constraint violations at the nodes, and on a finer grid between them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.program import Program

FINER = 10  # times as many nodes on the grid on which violations between nodes are checked


def on_finer_grid(program: Program, times: int = FINER) -> tuple[Program, NDArray[np.bool_]]:
    """Return the program with ``times`` as many nodes, and which of its rows (m,) have to hold.

    Terms that hold only at given moments (``at``) are not checked between them.
    """
    batches, required = list[Batch](), list[NDArray[np.bool_]]()
    for batch in program.batches:
        terms = batch.kernels.constraints
        if not batch.kernels.m:
            continue
        everywhere = [term.at is None for term in terms]
        inserted = 1 if not any(everywhere) else times
        parts = np.arange(inserted) / inserted
        s = np.append((batch.s[:-1, None] + np.diff(batch.s)[:, None] * parts).ravel(), batch.s[-1])
        batches.append(replace(batch, s=s, weights=np.zeros(len(s))))
        between = np.repeat(everywhere, [len(bound.labels) for bound in batch.kernels.rows])
        required.append((between | (np.arange(len(s)) % inserted == 0)[:, None]).ravel())
    required.append(np.ones(program.linear.m, dtype=bool))
    return replace(program, batches=tuple(batches)), np.concatenate(required)
