"""Ctrl-C always interrupts compilation, and a fork while another thread compiles leaves a working child process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from torsor.base.interrupts import OutOfTimeError, Stoppable, is_stoppable
from torsor.compiler.llvm import native
from torsor.optimisation.program import Iteration, StoppedError
from torsor.optimisation.record import Watch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

MODULE = "define double @one() {\n  ret double 1.0\n}\n"


@pytest.fixture(autouse=True)
def python_handles_ctrl_c():
    """Tests start with Python's own SIGINT handler, whatever the parent process uses, and must leave it in place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler and not is_stoppable()
    signal.signal(signal.SIGINT, before)


def discarded() -> None:
    """Discard an interrupt, as CasADi's conversions do."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_foreign_code_discards_is_repeated():
    pause, went_on = threading.Event(), False
    with pytest.raises(KeyboardInterrupt), Stoppable():
        discarded()
        went_on = True
        assert not pause.wait(60)  # nobody sets it: only an interrupt ends this
        raise AssertionError("the interrupt was lost")
    assert went_on


def test_an_interrupt_that_is_discarded_at_the_end_is_raised_there():
    with pytest.raises(KeyboardInterrupt), Stoppable():
        discarded()


def test_an_interrupt_replaces_an_error_that_it_caused():
    with pytest.raises(KeyboardInterrupt), Stoppable():
        discarded()
        raise NotImplementedError("Wrong number or type of arguments")  # CasADi's text after an interrupt


def test_an_interrupt_stops_at_once_and_other_errors_pass():
    with pytest.raises(KeyboardInterrupt), Stoppable(), Stoppable():
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not stopped")
    with pytest.raises(ZeroDivisionError), Stoppable():
        _ = 1 / 0


def test_a_users_own_handler_decides():
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with Stoppable():
        signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Stoppable():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_limit_of_time_interrupts_like_ctrl_c(handler):
    signal.signal(signal.SIGINT, handler)
    with pytest.raises(OutOfTimeError), Stoppable(0.0):
        assert not threading.Event().wait(60)
    with pytest.raises(OutOfTimeError), Stoppable(0.0):
        with contextlib.suppress(KeyboardInterrupt):  # as foreign code does
            threading.Event().wait(60)
        threading.Event().wait(60)
    with Stoppable(600.0):
        pass  # the limit of work that is done has no effect
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_before_a_limit_of_time_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), Stoppable(600.0):
        signal.raise_signal(signal.SIGINT)


def test_a_limit_of_time_ends_work_in_other_threads_where_the_next_function_begins():
    ended = []

    def work():
        try:
            with Stoppable(-1.0), Stoppable():
                ended.append("not stopped")
        except OutOfTimeError:
            ended.append("stopped")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == ["stopped"]


def test_other_threads_have_no_signals():
    found = []

    def work() -> None:
        with Stoppable():
            found.append(is_stoppable())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


def test_compiling_inside_of_a_solver_stops_too_and_the_solver_knows():
    with Watch() as watch:
        with pytest.raises(KeyboardInterrupt), Stoppable():
            signal.raise_signal(signal.SIGINT)
        assert watch.interrupted
    with Watch() as watch:  # at an iteration, the solver ends by itself
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(StoppedError):
            watch(Iteration(0, 0.0, 0.0, 0.0), np.zeros(1))


def script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_a_helper_that_a_signal_ends_is_not_replaced(tmp_path: Path, number: str, monkeypatch):
    monkeypatch.setattr(native, "host", lambda: pytest.fail("compiled in place after a signal"))
    with pytest.raises(KeyboardInterrupt):
        native._Helpers(script(tmp_path, f"kill -{number} $$; sleep 60")).emit([MODULE], 2)


def test_a_helper_that_fails_is_replaced(tmp_path: Path):
    assert native._Helpers(script(tmp_path, "exit 3")).emit([MODULE], 2) == native.host().objects([MODULE], 2)
    assert native._Helpers(str(tmp_path / "nothing")).emit([MODULE], 2) == native.host().objects([MODULE], 2)


def test_helpers_end_with_the_interrupt_of_the_process_that_waits_for_them(tmp_path: Path, monkeypatch):
    helpers, found = native._Helpers(script(tmp_path, "echo; exec sleep 1000")), []
    thread = threading.Thread(target=lambda: found.append(helpers.emit([MODULE], 2)))
    monkeypatch.setattr(native, "host", lambda: pytest.fail("compiled in place after an interrupt"))
    thread.start()
    while not helpers._running and thread.is_alive():
        os.sched_yield()
    helpers.stop()
    thread.join()
    assert found == [[]] and helpers._running[0].returncode == -signal.SIGKILL
    assert helpers.emit([MODULE], 2) == []  # none starts any more


FORKS = """
import os, signal, threading
import casadi as ca, numpy as np
from torsor.compiler import compile
from torsor.compiler.llvm import native

x = ca.SX.sym("x", 300)
y = x
for _ in range(8):
    y = ca.sin(y) * ca.vertcat(y[1:], y[0]) + y
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.program import read_program
modules = write_llvm(read_program(ca.Function("f", [x], [y])), (1, 1), "float64", 2)
end, begun = threading.Event(), threading.Event()

def work():
    while not end.is_set():
        begun.set()
        native.host().objects(modules[:2], 2)

thread = threading.Thread(target=work)
thread.start()
begun.wait()
for k in range(6):
    child = os.fork()
    if not child:
        signal.alarm(60)  # a child that hangs dies of this
        z = ca.SX.sym("z")
        found = compile(ca.Function("g", [z], [(k + 2) * z]))(3.0)
        os._exit(0 if found == 3.0 * (k + 2) else 1)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
end.set()
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_another_thread_compiles_can_compile():
    environment = os.environ | {"TORSOR_CACHE": "off"}
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["0"] * 6, done.stderr


def test_an_interrupt_in_the_callback_of_a_weak_reference_takes_effect_after_it():
    class Interrupting(set):
        def discard(self, item):
            signal.raise_signal(signal.SIGINT)

    class Thing:
        pass

    thing = Thing()
    things = weakref.WeakSet([thing])
    things.data = Interrupting(things.data)
    with pytest.raises(KeyboardInterrupt), Stoppable():
        del thing
