"""Batched searches: unfinished searches step together, and finished searches are set aside."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Flags

Indices = NDArray[np.intp]
State = list[Any]  # arrays with one entry per search


def advance(
    state: State,
    step: Callable[[State, Indices], State],
    finished: Callable[[int, State, Indices], Flags | None],
    most: int,
    ends: Mapping[int, NDArray[Any]],
    leaving: float = 0.0,
) -> Flags:
    """Advance searches by up to ``most`` steps, and return a mask (K,) of those that are finished.

    The arrays in ``state`` have one entry per search. ``step(state, todo)`` returns the next state of the searches
    ``todo``. ``finished(k, state, todo)`` returns a mask of those that are finished after step k, or None; it may
    replace arrays in the state. ``ends`` maps indices of state arrays to arrays for their final values. Finished
    searches are set aside once they exceed a fraction ``leaving`` of the remaining ones, because selection is slower
    than a few more steps.

    Example:
        >>> end = np.zeros(2)
        >>> halved, small = lambda state, todo: [state[0] / 2], lambda k, state, todo: state[0] < 1
        >>> advance([np.array([1.0, 8.0])], halved, small, most=2, ends={0: end}).tolist(), end.tolist()
        ([True, False], [0.5, 2.0])
    """
    todo = np.arange(len(state[0]))
    done = np.zeros(len(todo), dtype=bool)
    for k in range(1, most + 1 if len(todo) else 0):
        state = step(state, todo)
        out = finished(k, state, todo)
        gone = 0 if out is None else np.count_nonzero(out)
        if k == most or gone == len(todo):
            done[todo] = False if out is None else out
            for at, end in ends.items():
                end[todo] = state[at]
            break
        if out is None or gone <= leaving * len(todo):
            continue
        leave, stay = np.flatnonzero(out), np.flatnonzero(~out)
        done[todo[leave]] = True
        for at, end in ends.items():
            end[todo[leave]] = state[at][leave]
        todo, state = todo[stay], [array[stay] for array in state]
    return done
