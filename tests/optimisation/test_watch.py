"""Ctrl-C during a search: the first one ends the search, and a process that ignores it still ignores it."""

import signal
from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest

from torsor.optimisation import sqp
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.program import Formula, Iteration, Settings, StoppedError
from torsor.optimisation.record import Watch

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


class Pressed:
    """A watch on which Ctrl-C is pressed within an iteration."""

    interrupted = False

    def __call__(self, iteration: object, x: object) -> None:
        """See an iteration."""


def _valley() -> Formula:
    return Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 4, lambda x: x[0] ** 3 + x[1], n=2, row_upper=1.0)


def test_ctrl_c_acts_before_the_next_quadratic_program(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, solved, calls = Pressed(), sqp._Model._solve, []

    def pressed(model: sqp._Model, rows: np.ndarray, iterations: int) -> None:
        calls.append(iterations)
        watch.interrupted = True
        solved(model, rows, iterations)  # and not successful: another one would follow in the same iteration

    monkeypatch.setattr(sqp._Model, "_solve", pressed)
    outcome = sqp.solve_sqp(_valley(), np.array([3.0, 3.0]), Settings(watch=watch))
    assert outcome.status == "stopped" and calls == [100]


@pytest.mark.parametrize(("left", "most"), [(1000.0, 100), (60.0, 50), (30.0, 25), (1e-3, 12)])
def test_a_quadratic_program_has_the_iterations_that_fit_into_the_time(
    left: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(sqp._Model, "_time", lambda model, rows, iterations: float(iterations))  # a second for each
    model = sqp._Model(_valley())
    monkeypatch.setattr(model, "_solve", lambda rows, iterations: given.append(iterations))
    monkeypatch.setattr(model, "_qp", lambda iterations: type("QP", (), {"stats": lambda _: {"return_status": ""}})())
    model.step(np.zeros(1), left)
    assert given == [most]


def test_a_restoration_without_progress_ends() -> None:
    """x^2 + 1 = 0 has no solution; the residual falls to 1 and no further."""
    curve = Formula(lambda x: x[0], lambda x: ca.vertcat(x[0] ** 2 + x[1] ** 4 + 1), n=2, row_lower=0.0, row_upper=0.0)
    outcome = solve_condensed(curve, np.array([3.0, 3.0]), Settings(iterations=10_000))
    assert outcome.status == "no feasible point was found nearby" and outcome.iterations < 150
