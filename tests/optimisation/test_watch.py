"""Ctrl-C during a search: the first one ends the search, and a process that ignores it still ignores it."""

import signal
from collections.abc import Callable

import numpy as np
import pytest

from torsor.optimisation.outcome import Iteration, StoppedError
from torsor.optimisation.watch import Watch

ITERATION = Iteration(0, 1.0, 0.0, 0.1)


def test_the_first_ctrl_c_ends_the_search_and_the_second_the_program(ctrl_c: Callable[[], None]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with Watch() as watch:
        watch(ITERATION, np.zeros(1))
        ctrl_c()
        with pytest.raises(StoppedError):
            watch(ITERATION, np.zeros(1))
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(ctrl_c: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the shell does for background jobs
    with Watch() as watch:
        ctrl_c()
        watch(ITERATION, np.zeros(1))
    assert not watch.interrupted
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
