"""Work counted rather than timed: a count is the same on every machine, busy or not."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any


def lines_run(action: Callable[[], object]) -> int:
    """Return how many lines of Python an action runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def calls_made(action: Callable[[], object]) -> int:
    """Return how many functions an action calls: those of Python, and those in C."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def grows_linearly(work: Callable[[int], object], sizes: tuple[int, int, int]) -> bool:
    """Return whether the lines that ``work`` runs grow as its size does, at sizes of equal distance.

    A quadratic part would grow with the size; a tolerance of two percent allows for steps, such as containers
    that double their size.
    """
    first, second, third = (lines_run(partial(work, size)) for size in sizes)
    return 0 < third - second <= 1.02 * (second - first)
