"""A long search shows a line on a terminal, and nothing elsewhere."""

import io
import sys

import numpy as np
import pytest

from torsor.optimisation import record as module
from torsor.optimisation.program import Iteration
from torsor.optimisation.record import Watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("shown", "expected"), [(None, True), (False, False)])
def test_a_long_search_shows_a_line_on_a_terminal(
    shown: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", -1.0)
    with Watch(shown, "walk") as watch:
        watch(Iteration(7, 3.0, 0.5, 0.0), np.zeros(1))
    assert ("walk: iteration 7" in terminal.getvalue()) is expected


def test_a_search_without_a_terminal_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", -1.0)
    with Watch(None, "walk") as watch:
        watch(Iteration(7, 3.0, 0.5, 0.0), np.zeros(1))
    assert stream.getvalue() == ""
